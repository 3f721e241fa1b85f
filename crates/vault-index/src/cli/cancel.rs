//! Ctrl-C and SIGTERM: the first asks whoever listens to stop at the next batch, the second ends at once.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);
static LISTENING: AtomicUsize = AtomicUsize::new(0);

/// What a shell expects of a command that a signal ended.
const ENDED_BY_SIGNAL: i32 = 130;

/// Takes over the signals. Where nobody listens they end the process, as they would have.
pub(super) fn install() {
    // A host that has its own handler keeps it; then the library's batches simply run to their end.
    let _ = ctrlc::set_handler(|| {
        let first = !ASKED.swap(true, Ordering::SeqCst);
        if !(first && LISTENING.load(Ordering::SeqCst) > 0) {
            std::process::exit(ENDED_BY_SIGNAL);
        }
    });
}

/// While it lives, the first signal is a request and not the end.
pub(super) struct Listening(());

/// Begins to listen.
pub(super) fn listen() -> Listening {
    LISTENING.fetch_add(1, Ordering::SeqCst);
    Listening(())
}

impl Listening {
    /// What long calls look at.
    pub(super) fn flag(&self) -> &'static AtomicBool {
        &ASKED
    }

    /// Whether somebody asked to stop.
    pub(super) fn asked(&self) -> bool {
        ASKED.load(Ordering::SeqCst)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        LISTENING.fetch_sub(1, Ordering::SeqCst);
    }
}
