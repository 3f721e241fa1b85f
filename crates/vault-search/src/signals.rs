//! Ctrl-C and SIGTERM: the first asks whoever listens to stop, the second ends the process at once. While the vault is
//! written somebody always listens, so that nothing is left half-written without a word.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::exit::note;

static REQUESTED: AtomicBool = AtomicBool::new(false);
static LISTENING: AtomicUsize = AtomicUsize::new(0);
static WRITING: AtomicUsize = AtomicUsize::new(0);
static IGNORING: AtomicUsize = AtomicUsize::new(0);

/// What a shell expects of a command that a signal ended.
const ENDED_BY_SIGNAL: i32 = 130;

/// Takes over the signals. Where nobody listens they end the process, as they would have.
pub fn install_handler() {
    // A program with a handler of its own keeps it; then long work simply runs to its end.
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
        std::process::exit(ENDED_BY_SIGNAL);
    });
}

/// While it lives, the first signal is a request and not the end.
#[derive(Debug)]
pub struct SignalGuard(());

/// Begins to listen.
pub fn listen() -> SignalGuard {
    LISTENING.fetch_add(1, Ordering::SeqCst);
    SignalGuard(())
}

impl SignalGuard {
    /// What long calls look at.
    pub fn flag(&self) -> &'static AtomicBool {
        &REQUESTED
    }

    /// Whether a signal asked to stop.
    pub fn is_cancelled(&self) -> bool {
        REQUESTED.load(Ordering::SeqCst)
    }
}

impl Drop for SignalGuard {
    fn drop(&mut self) {
        LISTENING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// While it lives, signals are ignored: those of the keyboard are meant for the program that has the terminal.
#[derive(Debug)]
pub struct IgnoreSignalsGuard(());

/// Begins to ignore signals, for as long as an editor or a pager runs.
pub fn ignore_signals() -> IgnoreSignalsGuard {
    IGNORING.fetch_add(1, Ordering::SeqCst);
    IgnoreSignalsGuard(())
}

impl Drop for IgnoreSignalsGuard {
    fn drop(&mut self) {
        IGNORING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// While it lives, the vault is being written: the first signal waits for the end of the change.
#[derive(Debug)]
pub struct WriteGuard {
    _listening: SignalGuard,
}

/// Begins to write.
pub fn write_section() -> WriteGuard {
    WRITING.fetch_add(1, Ordering::SeqCst);
    WriteGuard { _listening: listen() }
}

impl Drop for WriteGuard {
    fn drop(&mut self) {
        WRITING.fetch_sub(1, Ordering::SeqCst);
    }
}
