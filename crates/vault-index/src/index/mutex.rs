//! Mutexes of an index, which outlive a panic of their holder.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A poisoned lock guards nothing half-done here: stores roll back, caches are made again.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
