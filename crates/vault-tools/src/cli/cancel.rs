//! Ctrl-C and SIGTERM: the first asks whoever listens to stop, the second ends at once. While the vault is written
//! somebody always listens, so that nothing stays half-written without a word.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);
static LISTENING: AtomicUsize = AtomicUsize::new(0);
static WRITING: AtomicUsize = AtomicUsize::new(0);

/// What a shell expects of a command that a signal ended.
const ENDED_BY_SIGNAL: i32 = 130;

/// Takes over the signals. Where nobody listens they end the process, as they would have.
pub(super) fn install() {
    // A program with a handler of its own keeps it; then plans simply run to their end.
    let _ = ctrlc::set_handler(|| {
        let first = !ASKED.swap(true, Ordering::SeqCst);
        let writing = WRITING.load(Ordering::SeqCst) > 0;
        if first && LISTENING.load(Ordering::SeqCst) > 0 {
            if writing {
                super::say("note", "it ends as soon as the vault is whole; another signal ends it at once");
            }
            return;
        }
        if writing {
            super::say("note", "ended in the middle; what was done by half is taken back at the next start");
        }
        std::process::exit(ENDED_BY_SIGNAL);
    });
}

/// While it lives, the first signal is a request and not the end.
pub(super) struct Listening(());

/// Begins to listen.
pub(super) fn listen() -> Listening {
    LISTENING.fetch_add(1, Ordering::SeqCst);
    Listening(())
}

/// While it lives, the vault is written: the first signal is heard when it is whole again.
pub(super) struct Writing {
    _listening: Listening,
}

/// Begins to write.
pub(super) fn writing() -> Writing {
    WRITING.fetch_add(1, Ordering::SeqCst);
    Writing { _listening: listen() }
}

impl Drop for Writing {
    fn drop(&mut self) {
        WRITING.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Listening {
    /// What long calls look at.
    pub(super) fn flag(&self) -> &'static AtomicBool {
        &ASKED
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        LISTENING.fetch_sub(1, Ordering::SeqCst);
    }
}
