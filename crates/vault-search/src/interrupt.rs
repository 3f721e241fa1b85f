//! The request to stop: set by a signal, or by a program that handles Ctrl-C itself.

use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) static REQUESTED: AtomicBool = AtomicBool::new(false);

/// Does what the first Ctrl-C does, in a program that handles Ctrl-C itself: asks the listeners to stop and ends the
/// question at the terminal. [`clear_interrupt`] ends that.
pub fn interrupt() {
    REQUESTED.store(true, Ordering::SeqCst);
}

/// Forgets the request of [`interrupt`], once the work that it stopped has ended.
pub fn clear_interrupt() {
    REQUESTED.store(false, Ordering::SeqCst);
}

/// Whether a signal or [`interrupt`] has asked to stop.
pub(crate) fn is_interrupted() -> bool {
    REQUESTED.load(Ordering::SeqCst)
}
