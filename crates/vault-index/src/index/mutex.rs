//! Locks a mutex of an index even after a panic of its holder.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A poisoned lock is safe to use here: stores roll back, and caches are rebuilt.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
