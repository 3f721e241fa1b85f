//! Ctrl-C and SIGTERM: the first signal asks a listener to stop, the second ends the process at once.
//!
//! While the vault is being written, there is always a listener, so that no change is left half-written without a
//! message.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::exit::{ENDED_BY_SIGNAL, note};
use crate::interrupt::{REQUESTED, is_interrupted};

static LISTENING: AtomicUsize = AtomicUsize::new(0);
static WRITING: AtomicUsize = AtomicUsize::new(0);
static IGNORING: AtomicUsize = AtomicUsize::new(0);

/// Installs the signal handler. Without a listener, a signal ends the process, as it would without the handler.
pub fn install_handler() {
    // A program that has already set a handler keeps it; then long work runs to its end.
    let _ = ctrlc::set_handler(|| {
        if IGNORING.load(Ordering::SeqCst) > 0 {
            return;
        }
        let is_first = !REQUESTED.swap(true, Ordering::SeqCst);
        let is_writing = WRITING.load(Ordering::SeqCst) > 0;
        if is_first && LISTENING.load(Ordering::SeqCst) > 0 {
            if is_writing {
                note("stopping after the current change; another signal ends the program at once");
            }
            return;
        }
        if is_writing {
            note("ended in the middle of a change; the next start rolls it back");
        }
        std::process::exit(i32::from(ENDED_BY_SIGNAL));
    });
}

/// A listener: while it lives, the first signal is a request to stop and does not end the process.
#[derive(Debug)]
pub struct SignalGuard(());

/// Starts to listen for signals.
pub fn listen() -> SignalGuard {
    LISTENING.fetch_add(1, Ordering::SeqCst);
    SignalGuard(())
}

impl SignalGuard {
    /// Returns the flag that a signal sets, for calls that check it while they run.
    pub fn flag(&self) -> &'static AtomicBool {
        &REQUESTED
    }

    /// Whether a signal has asked to stop.
    pub fn is_cancelled(&self) -> bool {
        is_interrupted()
    }
}

impl Drop for SignalGuard {
    fn drop(&mut self) {
        LISTENING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// While it lives, signals are ignored, because signals from the keyboard are meant for the program that has the
/// terminal.
#[derive(Debug)]
pub struct IgnoreSignalsGuard(());

/// Starts to ignore signals while an editor or a pager runs.
pub fn ignore_signals() -> IgnoreSignalsGuard {
    IGNORING.fetch_add(1, Ordering::SeqCst);
    IgnoreSignalsGuard(())
}

impl Drop for IgnoreSignalsGuard {
    fn drop(&mut self) {
        IGNORING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// While it lives, the vault is being written: the first signal takes effect at the end of the change.
#[derive(Debug)]
pub struct WriteGuard {
    _listening: SignalGuard,
}

/// Starts a section in which the vault is written.
pub fn write_section() -> WriteGuard {
    WRITING.fetch_add(1, Ordering::SeqCst);
    WriteGuard { _listening: listen() }
}

impl Drop for WriteGuard {
    fn drop(&mut self) {
        WRITING.fetch_sub(1, Ordering::SeqCst);
    }
}
