//! The handle that a caller holds: the vault, its index, its journal and its lock.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use serde::Serialize;
use vault_index::{Index, SyncOptions};

use crate::change::recover::Recovery;
use crate::change::{Overlay, Recovered};
use crate::error::{Error, ErrorKind, Result};
use crate::journal::{self, Logged, PruneOptions, Pruned, RunId, RunKind};
use crate::sandbox::Sandbox;
use crate::state::{Lock, State};

/// For so long what others changed may go unnoticed by [`Vault::index`].
const FRESH: Duration = Duration::from_millis(500);

/// How a vault is opened.
#[derive(Clone)]
pub struct VaultOptions {
    /// Where journal, log and macros lie. `None`: in the user's state folder.
    pub state_folder: Option<PathBuf>,
    /// How the index is opened.
    pub index: vault_index::Options,
    /// Whether links are looked up in the index.
    pub use_index: IndexUse,
    /// How long to wait for another process that changes the vault. 10 seconds unless told.
    pub wait: Duration,
}

impl Default for VaultOptions {
    fn default() -> Self {
        Self {
            state_folder: None,
            index: vault_index::Options::default(),
            use_index: IndexUse::default(),
            wait: Duration::from_secs(10),
        }
    }
}

/// Where a rename looks for the links that concern it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum IndexUse {
    /// In the index; in the notes themselves if there can be none.
    #[default]
    Index,
    /// In all notes: slow, and independent of any file of ours.
    Scan,
}

/// A vault that is read and changed. Usable from many threads.
pub struct Vault {
    sandbox: Sandbox,
    state: State,
    options: VaultOptions,
    index: OnceLock<Index>,
    /// Something was written here since the index was brought up to date.
    pub(super) is_stale: AtomicBool,
    synced: Mutex<Option<Instant>>,
    recovered: Option<Recovered>,
    warnings: Vec<String>,
}

/// A run, for a list.
#[derive(Debug, Clone, Serialize)]
pub struct RunInfo {
    /// Its number.
    pub id: RunId,
    /// When it began.
    pub time: SystemTime,
    /// What it was called.
    pub label: String,
    /// What it does.
    pub kind: RunKind,
    /// The run that it undid or redid.
    pub of: Option<RunId>,
    /// How many actions it did.
    pub actions: usize,
    /// Files and folders it touched, each once.
    pub paths: Vec<String>,
    /// Whether it can be taken back, was, or never came to be.
    pub status: RunStatus,
}

/// What became of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunStatus {
    /// It is in effect.
    Done,
    /// A later run took it back.
    TakenBack,
    /// It was cut or failed, and nothing is left of it.
    RolledBack,
    /// It was cut, and will be rolled back.
    Cut,
    /// The journal does not have all of it any more, so it cannot be taken back.
    Damaged,
}

impl Vault {
    /// Opens a vault. A run that was cut by a crash is rolled back first; if that cannot be done now, the vault can be
    /// read all the same, and [`Vault::warnings`] tells why.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when there is no such folder; [`ErrorKind::Refused`] when the state folder would lie in
    /// it.
    pub fn open(vault: impl AsRef<Path>, options: VaultOptions) -> Result<Self> {
        let sandbox = Sandbox::open(vault.as_ref())?;
        let state = match &options.state_folder {
            Some(folder) => State::at(folder),
            None => State::of(sandbox.vault())?,
        };
        if state.lies_in(sandbox.vault()) {
            // What it holds would be listed, searched, synced and journalled itself.
            let what = "the folder for journal, log and macros lies in the vault";
            return Err(Error::new(ErrorKind::Refused, what)
                .at(state.folder().display())
                .remedy("choose another one; on Linux XDG_STATE_HOME names where it is made"));
        }
        let mut vault = Self {
            sandbox,
            state,
            options,
            index: OnceLock::new(),
            is_stale: AtomicBool::new(true),
            synced: Mutex::new(None),
            recovered: None,
            warnings: Vec::new(),
        };
        match vault.recover_if_needed() {
            Ok(Recovery { rolled_back, kept_aside }) => {
                vault.recovered = rolled_back;
                vault.warnings.extend(kept_aside.map(|file| {
                    format!(
                        "the end of the journal could not be read; what was there is kept as {}, and what it could \
                         take back is lost",
                        file.display()
                    )
                }));
            }
            Err(error) => vault.warnings.push(error.to_string()),
        }
        Ok(vault)
    }

    /// Rolls back a run that was cut, if there is one.
    pub(super) fn recover_if_needed(&self) -> Result<Recovery> {
        if journal::is_at_rest(&self.state)? {
            return Ok(Recovery::default());
        }
        let _lock = self.lock()?;
        self.recover()
    }

    /// What whoever uses the vault should know: that a run was cut and could not be rolled back yet, or what of the
    /// journal could not be read when the vault was opened. The vault can be read; nothing is changed in it until a
    /// run that was cut is rolled back.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// What was rolled back when the vault was opened.
    pub fn recovered(&self) -> Option<&Recovered> {
        self.recovered.as_ref()
    }

    /// The vault's folder, canonical.
    pub fn path(&self) -> &Path {
        self.sandbox.vault()
    }

    /// The vault as it is on the disk.
    pub fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// Where journal, log and macros lie.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The vault with changes not yet made; none at first.
    pub fn overlay(&self) -> Overlay<'_> {
        Overlay::new(self)
    }

    /// The index, brought up to date but for vectors: if something was written here, or half a second has passed.
    ///
    /// # Errors
    /// When it cannot be opened or written.
    pub fn index(&self) -> Result<&Index> {
        self.index_no_older_than(FRESH)
    }

    /// The index as of now: a link that was written a moment ago must not be missed.
    pub(super) fn index_of_now(&self) -> Result<&Index> {
        self.index_no_older_than(Duration::ZERO)
    }

    fn index_no_older_than(&self, age: Duration) -> Result<&Index> {
        let index = self.opened_index()?;
        let mut synced = self.synced.lock().unwrap_or_else(PoisonError::into_inner);
        let is_stale = self.is_stale.swap(false, Ordering::SeqCst);
        if is_stale || synced.is_none_or(|synced| synced.elapsed() >= age) {
            let options = SyncOptions::new().without_vectors().wait(self.options.wait);
            index.sync_with(&options).inspect_err(|_| self.is_stale.store(true, Ordering::SeqCst))?;
            *synced = Some(Instant::now());
        }
        Ok(index)
    }

    /// The index as it is.
    pub(super) fn opened_index(&self) -> Result<&Index> {
        if let Some(index) = self.index.get() {
            return Ok(index);
        }
        let index = Index::open(self.path(), self.options.index.clone())?;
        Ok(self.index.get_or_init(|| index))
    }

    pub(super) fn uses_index(&self) -> IndexUse {
        self.options.use_index
    }

    pub(super) fn lock(&self) -> Result<Lock> {
        self.state.lock(self.options.wait)
    }

    /// All runs, newest first.
    ///
    /// # Errors
    /// [`ErrorKind::Journal`](crate::ErrorKind::Journal).
    pub fn runs(&self) -> Result<Vec<RunInfo>> {
        let runs = journal::runs(&self.state)?;
        let mut infos: Vec<RunInfo> = runs.iter().map(|run| info(run, &runs)).collect();
        infos.reverse();
        Ok(infos)
    }

    /// How many bytes of the journal cannot be read. The runs they held are lost, or [`RunStatus::Damaged`].
    ///
    /// # Errors
    /// [`ErrorKind::Journal`](crate::ErrorKind::Journal).
    pub fn unreadable_journal(&self) -> Result<u64> {
        journal::unreadable(&self.state)
    }

    /// Drops old runs from the journal; they can no longer be taken back.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) while another process changes the vault.
    pub fn prune(&self, options: &PruneOptions) -> Result<Pruned> {
        let _lock = self.lock()?;
        self.recover()?;
        journal::prune(&self.state, options)
    }
}

fn info(run: &Logged, all: &[Logged]) -> RunInfo {
    let mut paths: Vec<String> = run
        .actions
        .iter()
        .take(run.done)
        .flat_map(|action| [Some(&action.path), action.to.as_ref()])
        .flatten()
        .map(ToString::to_string)
        .collect();
    paths.sort();
    paths.dedup();
    let root = Some(run.of.unwrap_or(run.id));
    let mut later = all.iter().filter(|later| later.of == root && later.id > run.id);
    let status = match later.rfind(|later| later.is_over && !later.rolled_back) {
        _ if run.rolled_back => RunStatus::RolledBack,
        _ if !run.is_over => RunStatus::Cut,
        _ if run.is_damaged => RunStatus::Damaged,
        Some(later) if (later.kind == RunKind::Undo) != (run.kind == RunKind::Undo) => RunStatus::TakenBack,
        Some(_) | None => RunStatus::Done,
    };
    RunInfo {
        id: run.id,
        time: run.time,
        label: run.label.clone(),
        kind: run.kind,
        of: run.of,
        actions: run.done,
        paths,
        status,
    }
}
