//! Keeps an index up to date: sync, wait for a signal, sync again.
//!
//! Only the comparison with the disk decides what changed; a signal only says when to compare.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::error::{ErrorKind, Result};
use crate::files::{FileWatcher, Signal};
use crate::index::Index;
use crate::indexer::SyncOptions;
use crate::lock::{Lock, LockName, lock};
use crate::report::{Progress, Report};

/// The options of a watcher.
#[derive(Clone)]
#[non_exhaustive]
pub struct WatchOptions<'a> {
    /// How long the vault must be unchanged before it is synced.
    pub debounce: Duration,
    /// How often it is compared with the disk even without a signal, because events can be lost.
    pub full_check_every: Duration,
    /// Set this flag from another thread to stop; everything is committed first.
    pub cancel: Option<&'a AtomicBool>,
    /// Called from time to time with the progress of a sync.
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

impl<'a> WatchOptions<'a> {
    /// Returns the defaults: 200 ms without a change before a sync, and one every five minutes in any case.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how long the vault must be unchanged before it is synced.
    #[must_use]
    pub fn debounce(mut self, debounce: Duration) -> Self {
        self.debounce = debounce;
        self
    }

    /// Sets how often the vault is compared with the disk even without a signal.
    #[must_use]
    pub fn full_check_every(mut self, every: Duration) -> Self {
        self.full_check_every = every;
        self
    }

    /// Stops the watcher once the flag is set.
    #[must_use]
    pub fn cancel(mut self, cancel: &'a AtomicBool) -> Self {
        self.cancel = Some(cancel);
        self
    }

    /// Calls `progress` from time to time during a sync.
    #[must_use]
    pub fn progress(mut self, progress: &'a (dyn Fn(Progress) + Sync)) -> Self {
        self.progress = Some(progress);
        self
    }
}

impl fmt::Debug for WatchOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchOptions")
            .field("debounce", &self.debounce)
            .field("full_check_every", &self.full_check_every)
            .finish_non_exhaustive()
    }
}

/// An event of a watched vault.
#[derive(Debug, Clone, PartialEq)]
pub enum WatchEvent {
    /// The vault is now watched; the first sync follows.
    Started,
    /// A batch of changes is in the index.
    Synced(Report),
    /// A message for the user; watching continues.
    Notice(String),
    /// The vault's folder was removed. The index stays as it is until the folder is back.
    VaultGone,
    /// The vault's folder is back.
    VaultBack,
}

/// Embedding is interrupted this often to check for changes.
const SLICE: Duration = Duration::from_secs(1);

/// While nothing else happens, embedding is reported this often.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// After an error, the vault is synced again after this time.
const RETRY: Duration = Duration::from_secs(10);

static NEVER: AtomicBool = AtomicBool::new(false);

impl Index {
    /// Keeps the index up to date while the [`Watcher`] is polled for events. One watcher per vault.
    ///
    /// # Errors
    /// [`ErrorKind::Locked`] when another watcher is running.
    pub fn watch<'a>(&'a self, options: &WatchOptions<'a>) -> Result<Watcher<'a>> {
        // In a database, each sync takes the lock of the vault's writer.
        let lock = match self.database {
            Some(_) => None,
            None => {
                drop(self.writer()?);
                Some(lock(&self.file, LockName::Watch, Some(Duration::ZERO), None)?)
            }
        };
        let files = FileWatcher::new(&self.vault, options.debounce)?;
        log::info!("watching {}", self.vault.display());
        Ok(Watcher {
            index: self,
            options: options.clone(),
            files,
            events: VecDeque::from([WatchEvent::Started]),
            due: Instant::now(),
            walk_due: Instant::now(),
            embedded: None,
            has_synced: false,
            has_ended: false,
            _lock: lock,
        })
    }

    /// Why a watcher of this vault would have to poll, if the system does not report changes of its files. Watches the
    /// vault for a moment, as [`Index::watch`] would, and takes no lock.
    ///
    /// # Errors
    /// [`ErrorKind::Vault`] when the folder does not exist.
    pub fn watch_notice(&self) -> Result<Option<String>> {
        Ok(FileWatcher::new(&self.vault, WatchOptions::default().debounce)?.notice())
    }
}

/// The events of a watched vault, as they happen. Requesting the next one waits for it and syncs meanwhile. The
/// iterator ends when it is cancelled, or with an error of the first sync. Later errors are notices, and the sync is
/// tried again.
pub struct Watcher<'a> {
    index: &'a Index,
    options: WatchOptions<'a>,
    files: FileWatcher,
    /// Events that have not been fetched yet.
    events: VecDeque<WatchEvent>,
    /// When the next comparison or slice of embedding is due without a signal; at the start, now.
    due: Instant,
    /// When the next comparison with the vault is due.
    walk_due: Instant,
    /// The embedding that has not been reported yet, and when it started.
    embedded: Option<(Report, Instant)>,
    has_synced: bool,
    has_ended: bool,
    _lock: Option<Lock>,
}

impl fmt::Debug for Watcher<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watcher")
            .field("vault", &self.index.vault)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl Iterator for Watcher<'_> {
    type Item = Result<WatchEvent>;

    fn next(&mut self) -> Option<Result<WatchEvent>> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(Ok(event));
            }
            if self.has_ended || self.cancel().load(Ordering::Relaxed) {
                return None;
            }
            let is_due = self.wait();
            self.events.extend(self.files.notice().map(WatchEvent::Notice));
            if !is_due {
                continue;
            }
            match self.sync() {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::Cancelled => self.has_ended = true,
                Err(error) if !self.has_synced => {
                    self.has_ended = true;
                    return Some(Err(error));
                }
                Err(error) => {
                    log::warn!("{}", error.one_line());
                    self.events.push_back(WatchEvent::Notice(error.one_line()));
                    self.due = Instant::now() + RETRY;
                    self.walk_due = self.due;
                }
            }
            self.has_synced = true;
        }
    }
}

impl<'a> Watcher<'a> {
    fn cancel(&self) -> &'a AtomicBool {
        self.options.cancel.unwrap_or(&NEVER)
    }

    /// Waits for a signal, at most until a comparison is due anyway. Returns whether it is time to compare.
    fn wait(&mut self) -> bool {
        let wait = self.due.saturating_duration_since(Instant::now());
        let cancel = self.cancel();
        match self.files.wait(wait, cancel) {
            Signal::TimedOut => true,
            Signal::Changed => {
                self.walk_due = Instant::now();
                true
            }
            Signal::Back => {
                self.walk_due = Instant::now();
                self.events.push_back(WatchEvent::VaultBack);
                true
            }
            Signal::Gone => {
                log::warn!("{} is gone", self.index.vault.display());
                self.events.push_back(WatchEvent::VaultGone);
                false
            }
            Signal::Cancelled => false,
        }
    }

    /// Syncs, or embeds for a slice of time. Text goes first, so that changes during embedding are found soon.
    fn sync(&mut self) -> Result<()> {
        // A database is filled by whole syncs, because each begins with a walk and a connection.
        let mut options = match self.index.database {
            Some(_) => SyncOptions::new(),
            None => SyncOptions::new().deadline(Instant::now() + SLICE),
        };
        (options.cancel, options.progress) = (self.options.cancel, self.options.progress);
        if Instant::now() < self.walk_due
            && let Some(report) = self.index.embed_with(&options)?
        {
            self.due = if report.pending > 0 { Instant::now() } else { self.walk_due };
            self.tell_of_embedding(report);
            return Ok(());
        }
        let mut report = self.index.sync_with(&options)?;
        if let Some((sum, _)) = self.embedded.take() {
            (report.embedded, report.reused) = (report.embedded + sum.embedded, report.reused + sum.reused);
        }
        self.walk_due =
            Instant::now() + if report.unread == 0 { self.options.full_check_every } else { Duration::ZERO };
        self.due = if report.pending > 0 { Instant::now() } else { self.walk_due };
        if !report.is_unchanged() {
            self.events.push_back(WatchEvent::Synced(report));
        }
        Ok(())
    }

    /// Emits one event for the embedding of a minute, or for the rest of it.
    fn tell_of_embedding(&mut self, report: Report) {
        let (sum, since) = self.embedded.get_or_insert_with(|| (Report::default(), Instant::now()));
        *sum = Report {
            embedded: sum.embedded + report.embedded,
            reused: sum.reused + report.reused,
            took_ms: sum.took_ms + report.took_ms,
            ..report
        };
        if (sum.pending == 0 || since.elapsed() >= TELL_EVERY)
            && let Some((sum, _)) = self.embedded.take().filter(|(sum, _)| !sum.is_unchanged())
        {
            self.events.push_back(WatchEvent::Synced(sum));
        }
    }
}
