//! Staying: sync, wait for a hint, sync again. The comparison with the disk is the truth; a hint only says when.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::error::{ErrorKind, Result};
use crate::files::{Hint, Watcher};
use crate::index::Index;
use crate::indexer::{SyncOptions, Vectors};
use crate::place::{LockName, lock};
use crate::report::{Progress, Report};

/// How a vault is watched.
#[derive(Clone)]
pub struct WatchOptions<'a> {
    /// How long the vault must be still before it is looked at.
    pub debounce: Duration,
    /// How often it is looked at without any hint, since events can be lost.
    pub full_check_every: Duration,
    /// Set it from another thread to end; everything is committed first.
    pub cancel: Option<&'a AtomicBool>,
    /// Called now and then with how far a sync has come.
    pub progress: Option<&'a (dyn Fn(Progress) + Sync)>,
}

impl Default for WatchOptions<'_> {
    fn default() -> Self {
        Self {
            debounce: Duration::from_millis(200),
            full_check_every: Duration::from_secs(300),
            cancel: None,
            progress: None,
        }
    }
}

/// What happens while a vault is watched.
#[derive(Debug, Clone, PartialEq)]
pub enum WatchEvent {
    /// The vault is watched from now on; the first sync follows.
    Started,
    /// A batch of changes is in the index.
    Synced(Report),
    /// Something the user should know; watching goes on.
    Notice(String),
    /// The vault's folder is gone. The index stays as it is until it comes back.
    VaultGone,
    /// The vault's folder is back.
    VaultBack,
}

/// Embedding is interrupted this often to look whether something changed.
const SLICE: Duration = Duration::from_secs(1);

/// After an error the vault is looked at again this soon.
const RETRY: Duration = Duration::from_secs(10);

static NEVER: AtomicBool = AtomicBool::new(false);

impl Index {
    /// Keeps the index up to date until cancelled. One watcher a vault.
    ///
    /// # Errors
    /// [`ErrorKind::Locked`] when another watcher is at work; those of the first sync. Later errors of a sync are
    /// notices, and it is tried again.
    pub fn watch(&self, options: &WatchOptions<'_>, on_event: &mut dyn FnMut(WatchEvent)) -> Result<()> {
        drop(self.writer()?);
        let _lock = lock(&self.file, LockName::Watch, Some(Duration::ZERO), None)?;
        let cancel = options.cancel.unwrap_or(&NEVER);
        let watcher = Watcher::new(&self.vault, options.debounce)?;
        on_event(WatchEvent::Started);
        let mut is_first = true;
        // When the next look is due without a hint; now, to begin with.
        let mut due = Instant::now();
        loop {
            if cancel.load(Ordering::Relaxed) {
                return Ok(());
            }
            let wait = due.saturating_duration_since(Instant::now());
            let look = if wait.is_zero() {
                true
            } else {
                match watcher.wait(wait, cancel) {
                    Hint::LookAgain { .. } | Hint::TimedOut => true,
                    Hint::Gone => {
                        on_event(WatchEvent::VaultGone);
                        false
                    }
                    Hint::Back => {
                        on_event(WatchEvent::VaultBack);
                        true
                    }
                    Hint::Cancelled => false,
                }
            };
            for notice in watcher.notices() {
                on_event(WatchEvent::Notice(notice.to_string()));
            }
            if !look {
                continue;
            }
            match self.catch_up(options, &watcher, on_event) {
                Ok(()) => due = Instant::now() + options.full_check_every,
                Err(error) if error.kind() == ErrorKind::Cancelled => return Ok(()),
                Err(error) if is_first => return Err(error),
                Err(error) => {
                    on_event(WatchEvent::Notice(error.to_string()));
                    due = Instant::now() + RETRY;
                }
            }
            is_first = false;
        }
    }

    /// Syncs until nothing is pending. Text goes first whenever something changes in the middle of embedding.
    fn catch_up(
        &self,
        options: &WatchOptions<'_>,
        watcher: &Watcher,
        on_event: &mut dyn FnMut(WatchEvent),
    ) -> Result<()> {
        let cancel = options.cancel.unwrap_or(&NEVER);
        loop {
            let sync = SyncOptions {
                vectors: Vectors::Embed,
                cancel: options.cancel,
                progress: options.progress,
                deadline: Some(Instant::now() + SLICE),
                ..SyncOptions::default()
            };
            let report = self.sync_with(&sync)?;
            let left = report.pending + report.unread;
            if !report.is_unchanged() {
                on_event(WatchEvent::Synced(report));
            }
            if left == 0 || cancel.load(Ordering::Relaxed) {
                return Ok(());
            }
            // A hint that came meanwhile is taken: the next round looks at the vault first anyway.
            let _ = watcher.wait(Duration::ZERO, cancel);
        }
    }
}
