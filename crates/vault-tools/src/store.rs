//! What a vault is made of on the disk: its files behind the sandbox, our state beside them, and the index of its notes,
//! opened when first needed and brought up to date before it is asked.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use vault_index::Exclusion;
use vault_index::lock::Lock;
use vault_index::{Index, SyncOptions};

use crate::error::{ErrorKind, Result};
use crate::sandbox::Sandbox;
use crate::state::State;

/// The parts that overlays and transactions work on.
pub(crate) struct VaultStore {
    pub sandbox: Sandbox,
    pub state: State,
    pub index: NoteIndex,
    /// How long to wait for another process that changes the vault.
    pub wait: Duration,
}

impl VaultStore {
    /// The right to change the vault and to write the journal.
    pub fn lock(&self) -> Result<Lock> {
        self.state.lock(self.wait)
    }
}

/// For so long what others changed may go unnoticed by [`NoteIndex::recent`].
const FRESH: Duration = Duration::from_millis(500);

/// For so long where a watcher keeps the index up to date and nothing but a search asks: not for ever, since no system
/// tells of what others change on a network drive.
const WATCHED: Duration = Duration::from_secs(10);

/// For so long a search waits for another process that writes the index.
const WAIT_TO_SEARCH: Duration = Duration::from_millis(300);

/// Where a rename looks for the links that concern it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum IndexUse {
    /// In the index; in the notes themselves if there can be none.
    #[default]
    Index,
    /// In all notes: slow, and independent of the index file.
    Scan,
}

/// The index and how current it is.
pub(crate) struct NoteIndex {
    vault: PathBuf,
    options: vault_index::Options,
    pub uses: IndexUse,
    wait: Duration,
    index: OnceLock<Index>,
    /// Something was written here since the index was brought up to date.
    is_stale: AtomicBool,
    /// When it was brought up to date, and who watched it then.
    synced: Mutex<Option<(Instant, Option<String>)>>,
}

impl NoteIndex {
    pub fn new(vault: PathBuf, options: vault_index::Options, uses: IndexUse, wait: Duration) -> Self {
        let (index, is_stale, synced) = (OnceLock::new(), AtomicBool::new(true), Mutex::new(None));
        Self { vault, options, uses, wait, index, is_stale, synced }
    }

    /// The vault is about to be changed.
    pub fn mark_stale(&self) {
        self.is_stale.store(true, Ordering::SeqCst);
    }

    /// Up to date but for vectors, if something was written here or half a second has passed.
    pub fn recent(&self) -> Result<&Index> {
        self.no_older_than(FRESH, self.wait)
    }

    /// As of now: a link that was written a moment ago must not be missed.
    pub fn current(&self) -> Result<&Index> {
        self.no_older_than(Duration::ZERO, self.wait)
    }

    /// As [`Self::recent`], but as a watcher leaves it where there is one, and as it is where another process writes; and
    /// whether it is recent.
    pub fn without_waiting(&self) -> Result<(&Index, bool)> {
        match self.no_older_than(self.age_for_search()?, WAIT_TO_SEARCH) {
            Err(error) if error.kind() == ErrorKind::Busy => Ok((self.opened()?, false)),
            recent => Ok((recent?, true)),
        }
    }

    /// A watcher is relied on for what has changed since it was seen at work here: what was before, it may not have come to.
    fn age_for_search(&self) -> Result<Duration> {
        let watcher = self.opened()?.watcher();
        let synced = self.synced.lock().unwrap_or_else(PoisonError::into_inner);
        let is_watched = watcher.is_some() && synced.as_ref().is_some_and(|(_, then)| *then == watcher);
        Ok(if is_watched { WATCHED } else { FRESH })
    }

    fn no_older_than(&self, age: Duration, wait: Duration) -> Result<&Index> {
        let index = self.opened()?;
        let mut synced = self.synced.lock().unwrap_or_else(PoisonError::into_inner);
        let is_stale = self.is_stale.swap(false, Ordering::SeqCst);
        if is_stale || synced.as_ref().is_none_or(|(at, _)| at.elapsed() >= age) {
            let watcher = index.watcher();
            let options = SyncOptions::new().without_vectors().wait(wait);
            index.sync_with(&options).inspect_err(|_| self.mark_stale())?;
            *synced = Some((Instant::now(), watcher));
        }
        Ok(index)
    }

    /// What it leaves out, as of now.
    pub fn exclusion(&self) -> Result<Exclusion> {
        Ok(Exclusion::new(&self.vault, &self.options.exclude)?)
    }

    /// As it is.
    pub fn opened(&self) -> Result<&Index> {
        if let Some(index) = self.index.get() {
            return Ok(index);
        }
        let index = Index::open(&self.vault, self.options.clone())?;
        Ok(self.index.get_or_init(|| index))
    }
}

#[cfg(test)]
mod tests {
    use vault_index::ModelName;
    use vault_index::lock::lock_file;

    use super::*;

    #[test]
    fn a_search_relies_on_a_watcher_that_was_there_when_the_index_was_brought_up_to_date() {
        let folder = tempfile::tempdir().unwrap();
        let (vault, file) = (folder.path().join("vault"), folder.path().join("index.db"));
        std::fs::create_dir(&vault).unwrap();
        let options = vault_index::Options::new().index_file(&file).model(ModelName::Hashed);
        let index = NoteIndex::new(vault, options, IndexUse::Index, Duration::ZERO);
        let age = || index.age_for_search().unwrap();
        let watch = || lock_file(&folder.path().join("index.db.watch"), None, None).unwrap().unwrap();
        index.current().unwrap();
        assert_eq!(age(), FRESH, "nobody watches");
        let watcher = watch();
        assert_eq!(age(), FRESH, "it has just begun");
        index.current().unwrap();
        assert_eq!(age(), WATCHED);
        drop(watcher);
        assert_eq!(age(), FRESH, "it has ended");
    }
}
