//! How a sync runs: whether it embeds, how hard it looks, and when it gives up.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::error::Result;
use crate::place::{self, Lock, LockName};
use crate::report::Progress;

/// How a sync runs.
#[derive(Clone, Default)]
pub struct SyncOptions<'a> {
    /// Whether passages are embedded.
    pub vectors: Vectors,
    /// Set it from another thread to stop at the next batch; what is done stays done.
    pub cancel: Option<&'a AtomicBool>,
    /// Called now and then with how far it has come.
    pub progress: Option<&'a (dyn Fn(Progress) + Sync)>,
    /// How long to wait for another writer. `None`: without limit.
    pub wait: Option<Duration>,
    /// Stop starting new batches after this moment (what is done stays done).
    pub deadline: Option<Instant>,
    /// Whether files whose size and times are unchanged are hashed all the same.
    pub look: Look,
    /// Whether the report tells what was seen, so that [`Index::shows`](crate::Index::shows) can be asked.
    pub print: Print,
}

impl SyncOptions<'_> {
    /// Takes a lock of an index. Who writes is done soon; who embeds or rebuilds may take minutes, so that for them
    /// the deadline counts too.
    ///
    /// # Errors
    /// As [`place::lock`].
    pub(crate) fn lock(&self, index: &Path, name: LockName) -> Result<Lock> {
        let deadline = self.deadline.filter(|_| name != LockName::Write);
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        place::lock(index, name, self.wait.into_iter().chain(left).min(), self.cancel)
    }

    /// Cancelled, or out of time: no new batch is started.
    pub(crate) fn is_over(&self) -> bool {
        self.cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed))
            || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

/// Whether a sync embeds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Vectors {
    /// After text, links and keywords, newest notes first.
    #[default]
    Embed,
    /// Not now; what lacks a vector stays pending.
    Later,
}

/// Whether a sync tells what it saw of the vault's files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Print {
    /// No.
    #[default]
    No,
    /// In its report.
    Yes,
}

/// How hard a sync looks for changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Look {
    /// By size, times and inode.
    #[default]
    Quick,
    /// By content: every note is read.
    Everything,
}
