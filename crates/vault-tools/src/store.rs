//! The parts of a vault on the disk: its files behind the sandbox, its state folder, and the index of its notes, which
//! is opened when first needed and updated before it is queried.

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
    /// How long to wait for another process that is changing the vault.
    pub wait: Duration,
}

impl VaultStore {
    /// Takes the lock for changing the vault and writing the journal.
    pub fn lock(&self) -> Result<Lock> {
        self.state.lock(self.wait)
    }
}

/// For this duration, [`NoteIndex::recent`] may miss the changes of other programs.
const FRESH: Duration = Duration::from_millis(500);

/// The same for searches while a watcher keeps the index up to date. It is limited because no system reports the
/// changes of other computers on a network drive.
const WATCHED: Duration = Duration::from_secs(10);

/// How long a search waits for another process that is writing the index.
const WAIT_TO_SEARCH: Duration = Duration::from_millis(300);

/// Where a rename finds the links that concern it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum IndexUse {
    /// In the index, or in the notes themselves if no index can be opened.
    #[default]
    Index,
    /// In all notes: slow, but independent of the index file.
    Scan,
}

/// The index and its age.
pub(crate) struct NoteIndex {
    vault: PathBuf,
    /// The options of the index file, which has no database.
    options: vault_index::Options,
    pub uses: IndexUse,
    wait: Duration,
    index: OnceLock<Index>,
    /// The index in a database, if there is one. It is never written: the notes in it may be those of another folder.
    shared: Option<(vault_index::Options, OnceLock<Index>)>,
    /// Whether this process has changed the vault since the index was updated.
    is_stale: AtomicBool,
    /// The time of the last update, and the watcher at that time.
    synced: Mutex<Option<(Instant, Option<String>)>>,
}

impl NoteIndex {
    pub fn new(vault: PathBuf, mut options: vault_index::Options, uses: IndexUse, wait: Duration) -> Self {
        let shared = options.database.is_some().then(|| (options.clone(), OnceLock::new()));
        options.database = None;
        let (index, is_stale, synced) = (OnceLock::new(), AtomicBool::new(true), Mutex::new(None));
        Self { vault, options, uses, wait, index, shared, is_stale, synced }
    }

    /// Records that the vault is about to be changed.
    pub fn mark_stale(&self) {
        self.is_stale.store(true, Ordering::SeqCst);
    }

    /// Returns the index, updated except for vectors if this process changed the vault or half a second has passed.
    pub fn recent(&self) -> Result<&Index> {
        self.no_older_than(FRESH, self.wait)
    }

    /// Returns the index in its current state, because a link that was just written must not be missed.
    pub fn current(&self) -> Result<&Index> {
        self.no_older_than(Duration::ZERO, self.wait)
    }

    /// Like [`Self::recent`], but relies on a watcher if there is one, and uses the index unchanged if another process
    /// is writing it. Also returns whether the index is recent.
    pub fn without_waiting(&self) -> Result<(&Index, bool)> {
        match self.no_older_than(self.age_for_search()?, WAIT_TO_SEARCH) {
            Err(error) if error.kind() == ErrorKind::Busy => Ok((self.opened()?, false)),
            recent => Ok((recent?, true)),
        }
    }

    /// A watcher is relied on only for changes after it was first seen here, because it may not have processed earlier
    /// ones yet.
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

    /// Returns the current rules for excluding files.
    pub fn exclusion(&self) -> Result<Exclusion> {
        Ok(Exclusion::new(&self.vault, &self.options.exclude)?)
    }

    /// Returns the index without updating it.
    pub fn opened(&self) -> Result<&Index> {
        self.opened_as(&self.options, &self.index)
    }

    pub fn has_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// Returns the index in a database, if there is one.
    pub fn shared(&self) -> Result<Option<&Index>> {
        self.shared.as_ref().map(|(options, index)| self.opened_as(options, index)).transpose()
    }

    fn opened_as<'i>(&self, options: &vault_index::Options, index: &'i OnceLock<Index>) -> Result<&'i Index> {
        if let Some(index) = index.get() {
            return Ok(index);
        }
        let opened = Index::open(&self.vault, options.clone())?;
        Ok(index.get_or_init(|| opened))
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
