//! What a vault is made of on the disk: its files behind the sandbox, our state beside them, and the index of its notes,
//! opened when first needed and brought up to date before it is asked.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use vault_index::internal::{Exclusion, Lock};
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
    synced: Mutex<Option<Instant>>,
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

    /// As [`Self::recent`], but as it is where another process writes; and whether it is recent.
    pub fn without_waiting(&self) -> Result<(&Index, bool)> {
        match self.no_older_than(FRESH, WAIT_TO_SEARCH) {
            Err(error) if error.kind() == ErrorKind::Conflict => Ok((self.opened()?, false)),
            recent => Ok((recent?, true)),
        }
    }

    fn no_older_than(&self, age: Duration, wait: Duration) -> Result<&Index> {
        let index = self.opened()?;
        let mut synced = self.synced.lock().unwrap_or_else(PoisonError::into_inner);
        let is_stale = self.is_stale.swap(false, Ordering::SeqCst);
        if is_stale || synced.is_none_or(|synced| synced.elapsed() >= age) {
            let options = SyncOptions::new().without_vectors().wait(wait);
            index.sync_with(&options).inspect_err(|_| self.mark_stale())?;
            *synced = Some(Instant::now());
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
