//! Embedding in a separate background process.
//!
//! It yields to every process that waits: it stops after its current round. It skips texts that the model cannot embed.

use std::borrow::Cow;
use std::path::Path;
use std::slice;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::embed::ModelName;
use crate::error::{Error, ErrorKind, Result};
use crate::files::identity;
use crate::index::Index;
use crate::indexer::{EmbeddingSchedule, Indexer, SyncOptions};
use crate::lock::{self, LockName, is_claimed};
use crate::report::{BackgroundStatus, FailedText, Report};
use crate::store::{BACKGROUND, PendingText, REBUILDING_TO, ReadContents, Store, WriteStore};

/// After a process failed or was killed, no other one starts for this long.
const AFTER_A_FAILURE: SignedDuration = SignedDuration::from_hours(1);

/// The number of attempts to embed a text.
const TRIES: u32 = 3;

/// After a process was killed, this number of texts is embedded one by one, to find the text that caused it.
const ONE_BY_ONE: usize = 64;

/// The record of background embedding that the index keeps.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Record {
    started: Option<Timestamp>,
    ended: Option<Timestamp>,
    error: Option<String>,
    /// The first text of the current round, by [`PendingText::id`].
    at: Option<i64>,
    /// The number of consecutive processes that were killed at this text.
    kills: u32,
    failed: Vec<(i64, FailedText)>,
}

impl Record {
    fn of(store: &dyn ReadContents) -> Result<Self> {
        let mut record: Self =
            store.meta(BACKGROUND)?.and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default();
        // A note that was changed has other texts.
        record.failed.retain(|(id, _)| store.is_pending(*id).unwrap_or(true));
        Ok(record)
    }

    fn save(&self, store: &dyn WriteStore) -> Result<()> {
        store.set_meta(BACKGROUND, &serde_json::to_string(self).expect("plain values"))
    }

    fn leave_out(&mut self, store: &dyn WriteStore, id: i64, error: String) -> Result<()> {
        if let Some((path, line)) = store.place_of(id)? {
            self.failed.push((id, FailedText { path, line, error }));
        }
        self.save(store)
    }
}

impl Index {
    /// Embeds pending texts until none is left, the options stop it, or another process wants to embed. It does not
    /// read the vault, and does not wait for other processes. Returns whether it tried to embed: it does not while
    /// another process embeds, with a remote model, with a model whose vectors would differ from those of the index, or
    /// during a rebuild.
    ///
    /// It stops before the next round (a quarter of a second, or one batch of the model) when a sync, a rebuild, a
    /// watcher, [`Index::forget`] or [`Index::stop_background`] waits, and when the vault or the index file was removed
    /// or replaced.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when there is no index; [`ErrorKind::Store`] when it cannot be written. The error is
    /// also stored for [`Index::background`].
    pub fn embed_in_background(&self, options: &SyncOptions<'_>) -> Result<bool> {
        self.only_file("embedding in the background")?;
        // A writer would create a missing index.
        self.read(|_| Ok(()))?;
        let _embedding = match lock::lock(&self.file, LockName::Embed, Some(Duration::ZERO), options.cancel) {
            Err(error) if error.kind() == ErrorKind::Locked => return Ok(false),
            embedding => embedding?,
        };
        let writer = self.writer()?;
        let store = writer.as_ref().expect("opened by writer()");
        self.check_vault(store)?;
        self.check_model(store)?;
        let embedder = self.embedder(store)?;
        if embedder.is_remote() || self.differs(store)?.is_some() || store.meta(REBUILDING_TO)?.is_some() {
            return Ok(false);
        }
        let mut run = Background::begin(self, store, options)?;
        let indexer = self.indexer(store, embedder.as_ref(), options);
        let ended = indexer.embed_rounds(indexer.pace()?, &mut run, &mut Report::default());
        (run.record.ended, run.record.at) = (Some(Timestamp::now()), None);
        run.record.error = ended.as_ref().err().map(Error::one_line);
        if !run.is_gone() {
            run.record.save(store)?;
        }
        ended.map(|()| true)
    }

    /// The status of background embedding.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when there is no index yet.
    pub fn background(&self) -> Result<BackgroundStatus> {
        self.read(|store| self.background_of(store))
    }

    pub(super) fn background_of(&self, store: &dyn ReadContents) -> Result<BackgroundStatus> {
        let Record { started, ended, error, failed, .. } = Record::of(store)?;
        let process = self.embedding().filter(|_| started.is_some() && ended.is_none());
        let failed = failed.into_iter().map(|(_, text)| text).collect();
        Ok(BackgroundStatus { process, started, ended, error, failed })
    }

    /// Whether background embedding has work: not within an hour after it failed or was killed, nor with a model that a
    /// server runs, even on this machine.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when there is no index yet.
    pub fn has_background_work(&self) -> Result<bool> {
        if self.database.is_some() {
            return Ok(false);
        }
        let status = self.background()?;
        let failed_at = match (status.ended, &status.error) {
            (Some(_), None) => None,
            (Some(ended), Some(_)) => Some(ended),
            (None, _) => status.started.filter(|_| status.process.is_none()),
        };
        if failed_at.is_some_and(|at| Timestamp::now().duration_since(at) < AFTER_A_FAILURE) {
            return Ok(false);
        }
        // The search reports errors of the model.
        let Ok((name, embedder)) = self.model() else { return Ok(false) };
        // A server on this machine works for other programs, too.
        let is_served = matches!(name.parse(), Ok(ModelName::OpenAi(_) | ModelName::Ollama(_)));
        self.read(|store| {
            let may_run = !is_served
                && !embedder.is_remote()
                && store.meta(REBUILDING_TO)?.is_none()
                && self.differs(store)?.is_none();
            Ok(may_run && store.pending()? > status.failed.len())
        })
    }

    /// Stops background embedding, and waits at most this long. Returns whether it was running.
    ///
    /// # Errors
    /// [`ErrorKind::Locked`] when another process embeds, or does not stop in time.
    pub fn stop_background(&self, wait: Duration) -> Result<bool> {
        let was_at_work = self.background()?.process.is_some();
        if was_at_work {
            drop(lock::lock(&self.file, LockName::Embed, Some(wait), None)?);
        }
        Ok(was_at_work)
    }
}

/// A run of background embedding.
struct Background<'a> {
    index: &'a Path,
    vault: &'a Path,
    /// The identities of the index file that was opened and of the vault.
    identities: [Option<(u64, u64)>; 2],
    record: Record,
    /// The first text of the last round, which may be that of a process that was killed in it.
    last: Option<i64>,
    /// The number of texts that are still embedded one by one.
    one_by_one: usize,
    skipped: String,
}

impl<'a> Background<'a> {
    fn begin(index: &'a Index, store: &Store, options: &SyncOptions<'_>) -> Result<Self> {
        let mut record = Record::of(store)?;
        let killed_at = record.at.take().filter(|_| record.ended.is_none());
        (record.started, record.ended, record.error) = (Some(Timestamp::now()), None, None);
        record.kills = if killed_at.is_some() { record.kills + 1 } else { 0 };
        let _lock = options.lock(&index.file, LockName::Write)?;
        match killed_at {
            Some(id) if record.kills >= TRIES => {
                record.kills = 0;
                record.leave_out(store, id, "the process that embedded it was killed each time".to_owned())?;
            }
            _ => record.save(store)?,
        }
        let mut run = Self {
            index: &index.file,
            vault: &index.vault,
            identities: [&index.file, &index.vault].map(|path| identity_of(path)),
            record,
            last: killed_at,
            one_by_one: if killed_at.is_some() { ONE_BY_ONE } else { 0 },
            skipped: String::new(),
        };
        run.skip_failed();
        Ok(run)
    }

    fn skip_failed(&mut self) {
        let ids: Vec<i64> = self.record.failed.iter().map(|(id, _)| *id).collect();
        self.skipped = serde_json::to_string(&ids).expect("numbers");
    }

    /// Whether the vault or the index was removed or replaced.
    fn is_gone(&self) -> bool {
        let mut files = [self.index, self.vault].into_iter().zip(self.identities);
        files.any(|(path, was)| !path.exists() || identity_of(path) != was)
    }
}

impl EmbeddingSchedule for Background<'_> {
    fn most_texts(&self) -> usize {
        if self.one_by_one > 0 { 1 } else { usize::MAX }
    }

    fn skipped(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.skipped)
    }

    fn begins(&mut self, indexer: &Indexer<'_>, texts: &[PendingText]) -> Result<bool> {
        if is_claimed(self.index) || self.is_gone() {
            return Ok(false);
        }
        self.one_by_one = self.one_by_one.saturating_sub(1);
        let first = texts.first().map(PendingText::id);
        if first != self.last {
            self.record.kills = 0;
        }
        (self.last, self.record.at) = (first, first);
        let _lock = indexer.lock(LockName::Write)?;
        self.record.save(indexer.store)?;
        Ok(true)
    }

    fn failed(&mut self, indexer: &Indexer<'_>, texts: &[PendingText], _error: Error) -> Result<()> {
        let mut pace = indexer.pace()?;
        for text in texts {
            let mut embed = || indexer.embed_round(slice::from_ref(text), &mut pace, &mut Report::default());
            let tries = (0..TRIES).map_while(|_| match embed() {
                Err(error) if error.kind() == ErrorKind::Model => Some(Ok(error)),
                Err(error) => Some(Err(error)),
                Ok(()) => None,
            });
            let errors = tries.collect::<Result<Vec<Error>>>()?;
            if errors.len() == TRIES as usize {
                let _lock = indexer.lock(LockName::Write)?;
                self.record.leave_out(indexer.store, text.id(), errors[0].one_line())?;
                self.skip_failed();
            }
        }
        Ok(())
    }

    fn goes_on(&mut self, _time_left: Option<Duration>) -> bool {
        true
    }
}

fn identity_of(path: &Path) -> Option<(u64, u64)> {
    identity(&std::fs::metadata(path).ok()?)
}
