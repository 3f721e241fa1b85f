//! The options of a sync: whether it embeds, how thoroughly it checks, and when it gives up.

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::error::Result;
use crate::lock::{self, Lock, LockName};
use crate::report::Progress;

/// The options of a sync. By default it embeds, trusts the sizes and times of files, and waits for other writers.
///
/// ```
/// use std::time::{Duration, Instant};
/// use vault_index::SyncOptions;
///
/// let options = SyncOptions::new().without_vectors().deadline(Instant::now() + Duration::from_secs(1));
/// # assert!(!options.vectors);
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct SyncOptions<'a> {
    /// Whether passages are embedded; otherwise passages without a vector stay pending.
    pub vectors: bool,
    /// Whether files are read even if their size and times are unchanged.
    pub read_all: bool,
    /// Set this flag from another thread to stop at the next batch; completed batches are kept.
    pub cancel: Option<&'a AtomicBool>,
    /// Called from time to time with the progress.
    pub progress: Option<&'a (dyn Fn(Progress) + Sync)>,
    /// How long to wait for another writer. `None`: without limit.
    pub wait: Option<Duration>,
    /// No new batch starts after this moment; completed batches are kept.
    pub deadline: Option<Instant>,
    /// The time limit for embedding, without waiting for another process that embeds; text, links and words do not
    /// count. `None`: no limit.
    pub vectors_within: Option<Duration>,
    /// With `vectors_within`: embed only if the time is about enough for all pending texts.
    pub all_vectors: bool,
}

impl Default for SyncOptions<'_> {
    fn default() -> Self {
        Self {
            vectors: true,
            read_all: false,
            cancel: None,
            progress: None,
            wait: None,
            deadline: None,
            vectors_within: None,
            all_vectors: false,
        }
    }
}

impl<'a> SyncOptions<'a> {
    /// Returns the default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Turns embedding off.
    #[must_use]
    pub fn without_vectors(mut self) -> Self {
        self.vectors = false;
        self
    }

    /// Reads every note, even if its size and times are unchanged.
    #[must_use]
    pub fn reading_all(mut self) -> Self {
        self.read_all = true;
        self
    }

    /// Stops once the flag is set.
    #[must_use]
    pub fn cancel(mut self, cancel: &'a AtomicBool) -> Self {
        self.cancel = Some(cancel);
        self
    }

    /// Calls `progress` from time to time.
    #[must_use]
    pub fn progress(mut self, progress: &'a (dyn Fn(Progress) + Sync)) -> Self {
        self.progress = Some(progress);
        self
    }

    /// Waits for another writer for at most this long.
    #[must_use]
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = Some(wait);
        self
    }

    /// Starts no new batch after this moment.
    #[must_use]
    pub fn deadline(mut self, deadline: Instant) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Embeds for at most this long; finished embeddings are kept.
    #[must_use]
    pub fn vectors_within(mut self, limit: Duration) -> Self {
        self.vectors_within = Some(limit);
        self
    }

    /// Embeds for at most this long, and only if that is about enough for all pending texts.
    #[must_use]
    pub fn all_vectors_within(mut self, limit: Duration) -> Self {
        (self.vectors_within, self.all_vectors) = (Some(limit), true);
        self
    }

    /// Takes a lock of an index. Writing is short, but embedding or rebuilding may take minutes, so for those locks the
    /// deadline applies too.
    ///
    /// # Errors
    /// The errors of [`lock::lock`].
    pub(crate) fn lock(&self, index: &Path, name: LockName) -> Result<Lock> {
        let deadline = self.deadline.filter(|_| name != LockName::Write);
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        lock::lock(index, name, self.wait.into_iter().chain(left).min(), self.cancel)
    }

    /// Whether the sync is cancelled or out of time, so that no new batch starts.
    pub(crate) fn is_over(&self) -> bool {
        self.cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed))
            || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

impl fmt::Debug for SyncOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SyncOptions")
            .field("vectors", &self.vectors)
            .field("read_all", &self.read_all)
            .field("wait", &self.wait)
            .field("deadline", &self.deadline)
            .field("vectors_within", &self.vectors_within)
            .field("all_vectors", &self.all_vectors)
            .finish_non_exhaustive()
    }
}
