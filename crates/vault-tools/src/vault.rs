//! The main type of the crate: a vault with its index and its journal.

#[cfg(test)]
mod crash_tests;
#[cfg(all(test, target_os = "linux"))]
mod full_disk_tests;
#[cfg(test)]
mod damage_tests;
#[cfg(test)]
mod metadata_tests;
#[cfg(test)]
mod property_tests;
#[cfg(test)]
pub(crate) mod tests;
#[cfg(test)]
mod undo_tests;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use vault_index::Index;
use vault_index::{Exclusion, check_vault_toml};

use crate::change::Change;
use crate::error::{Error, ErrorKind, Result};
use crate::host::OpenEditors;
use crate::journal::{
    self, EntryState, JournalEntry, NewTransaction, PruneOptions, PruneReport, TransactionId, TransactionKind,
};
use crate::overlay::Overlay;
use crate::recent_reads::ReadVersions;
use crate::sandbox::Sandbox;
use crate::state::State;
use crate::store::{IndexUse, NoteIndex, VaultStore};
use crate::transaction::{ApplyOptions, Force, RecoveryMode, RecoveryReport, Transaction};

/// Options for opening a vault.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct VaultOptions {
    /// The folder for journal, log and macros. `None`: in the user's state folder.
    pub state_folder: Option<PathBuf>,
    /// Options for opening the index. A database that they name only ranks, see [`Vault::index_for_ranking`]; links, tags
    /// and changes have an index file beside it, without vectors.
    pub index: vault_index::Options,
    /// Whether links are found with the index.
    pub use_index: IndexUse,
    /// How long to wait for another process that is changing the vault; 10 seconds by default.
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

impl VaultOptions {
    /// Returns the default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the folder for journal, log and macros, which must not be in the vault.
    #[must_use]
    pub fn state_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.state_folder = Some(folder.into());
        self
    }

    /// Sets the options for opening the index.
    #[must_use]
    pub fn index(mut self, options: vault_index::Options) -> Self {
        self.index = options;
        self
    }

    /// Sets whether links are found with the index, or in the notes themselves.
    #[must_use]
    pub fn use_index(mut self, uses: IndexUse) -> Self {
        self.use_index = uses;
        self
    }

    /// Sets how long to wait for another process that is changing the vault.
    #[must_use]
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }
}

/// A vault that can be read and changed. It can be used from many threads.
///
/// It does what your program tells it to do, without approval. If a policy and a person are to decide, make changes
/// with a [`Toolbox`](crate::Toolbox) and [`approval`](crate::approval).
///
/// ```
/// use vault_tools::{ApplyOptions, Force, IndexUse, SafePath, Vault, VaultOptions};
///
/// # let folder = tempfile::tempdir()?;
/// # std::fs::create_dir(folder.path().join("notes"))?;
/// # let options = VaultOptions::new().state_folder(folder.path().join("state")).use_index(IndexUse::Scan);
/// let vault = Vault::open(folder.path().join("notes"), options)?;
/// let mut overlay = vault.overlay();
/// overlay.create(&SafePath::new("Roses.md")?, "Prune them.\n")?;
/// let done = vault.apply(&overlay.change(), ApplyOptions::new().label("a first note"))?;
/// assert!(folder.path().join("notes/Roses.md").exists());
/// vault.undo(Some(done.id), Force::No)?;
/// assert!(!folder.path().join("notes/Roses.md").exists());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Vault {
    store: VaultStore,
    versions: ReadVersions,
    recovered: Option<RecoveryReport>,
    warnings: Vec<String>,
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vault").field("path", &self.path()).field("state", self.state()).finish_non_exhaustive()
    }
}

/// A transaction, for a list.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct TransactionInfo {
    /// Its number.
    #[serde(rename = "transaction")]
    pub id: TransactionId,
    /// When it began; in JSON as RFC 3339.
    #[serde(serialize_with = "rfc3339")]
    #[schemars(with = "String")]
    pub time: SystemTime,
    /// Its label.
    pub label: String,
    /// Its kind.
    pub kind: TransactionKind,
    /// The transaction that it undid or redid.
    pub of: Option<TransactionId>,
    /// The number of its actions.
    pub actions: usize,
    /// Files and folders it touched, each once.
    pub paths: Vec<String>,
    /// Its status.
    pub status: TransactionStatus,
}

fn rfc3339<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{:.0}", Timestamp::try_from(*time).unwrap_or_default()))
}

/// The status of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum TransactionStatus {
    /// It is in effect.
    Done,
    /// A later transaction undid it.
    Undone,
    /// It was interrupted or failed, and none of its changes remain.
    RolledBack,
    /// It was interrupted, and is not rolled back yet.
    Interrupted,
    /// The journal no longer contains all of it, so it cannot be undone.
    Damaged,
}

impl Vault {
    /// Opens a vault. A transaction that was interrupted by a crash is rolled back first. If that is not certainly
    /// right, because the journal is damaged or notes were edited since, or if it cannot be done now, nothing is
    /// changed: the vault can be read, and [`Vault::warnings`] gives the reason.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if there is no such folder; [`ErrorKind::Refused`] if the state folder would be in it;
    /// [`ErrorKind::InvalidArguments`] for an invalid `.vault.toml`.
    pub fn open(vault: impl AsRef<Path>, options: VaultOptions) -> Result<Self> {
        let vault = Self::open_unchecked(vault, options)?;
        vault.check_settings()?;
        Ok(vault)
    }

    /// Checks that the vault's `.vault.toml` is valid, because it can contain rules for excluding files.
    pub fn check_settings(&self) -> Result<()> {
        Ok(check_vault_toml(self.path())?)
    }

    /// Like [`Vault::open`], but ignores errors in `.vault.toml`, so that changes can still be undone.
    pub fn open_unchecked(vault: impl AsRef<Path>, options: VaultOptions) -> Result<Self> {
        let sandbox = Sandbox::open(vault.as_ref())?;
        let VaultOptions { state_folder, index, use_index, wait } = options;
        let state = match state_folder {
            Some(folder) => State::at(folder),
            None => State::of(sandbox.vault())?,
        };
        if state.lies_in(sandbox.vault()) {
            // The files in it would be listed, searched, synced and journaled themselves.
            let what = "the folder for journal, log and macros is in the vault";
            return Err(Error::new(ErrorKind::Refused, what)
                .at(state.folder().display())
                .with_remedy("choose another one; on Linux XDG_STATE_HOME names where it is made"));
        }
        let index = NoteIndex::new(sandbox.vault().to_path_buf(), index, use_index, wait);
        let store = VaultStore { sandbox, state, index, wait };
        let (recovered, warnings) = match store.recover_on_open() {
            Ok(recovered) => (recovered, Vec::new()),
            Err(error) => {
                ::log::warn!("{error}");
                (None, vec![error.one_line()])
            }
        };
        Ok(Self { store, versions: ReadVersions::default(), recovered, warnings })
    }

    /// Returns warnings for the user: for example, that a transaction was interrupted and is not rolled back yet, or
    /// that the journal is damaged. The vault can be read, but it cannot be changed until an interrupted transaction is
    /// rolled back or kept.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns the recovery that was done when the vault was opened.
    pub fn recovered(&self) -> Option<&RecoveryReport> {
        self.recovered.as_ref()
    }

    /// Rolls back or keeps an interrupted transaction that was not rolled back when the vault was opened. Returns
    /// `None` if there is no such transaction.
    ///
    /// # Errors
    /// If files or the journal cannot be read or written.
    pub fn recover(&self, how: RecoveryMode) -> Result<Option<RecoveryReport>> {
        self.store.recover(how)
    }

    /// Returns the canonical path of the vault's folder.
    pub fn path(&self) -> &Path {
        self.store.sandbox.vault()
    }

    /// Returns the vault in its state on the disk.
    pub fn sandbox(&self) -> &Sandbox {
        &self.store.sandbox
    }

    /// Returns the folder for journal, log and macros.
    pub fn state(&self) -> &State {
        &self.store.state
    }

    /// Returns an overlay on the vault, initially without changes.
    pub fn overlay(&self) -> Overlay<'_> {
        Overlay::new(&self.store)
    }

    /// Returns the contents that were read recently.
    pub(crate) fn versions(&self) -> &ReadVersions {
        &self.versions
    }

    /// Returns the index. It is updated, except for vectors, if this process changed the vault or half a second has
    /// passed.
    ///
    /// # Errors
    /// If it cannot be opened or written.
    pub fn index(&self) -> Result<&Index> {
        self.store.index.recent()
    }

    /// Returns the index without bringing it up to date.
    ///
    /// # Errors
    /// The index cannot be opened.
    pub fn index_without_sync(&self) -> Result<&Index> {
        self.store.index.opened()
    }

    /// Returns the index for a search, and whether it was updated. If another process is writing it, it is used
    /// unchanged.
    ///
    /// # Errors
    /// The errors of [`Vault::index`].
    pub fn index_for_search(&self) -> Result<(&Index, bool)> {
        self.store.index.without_waiting()
    }

    /// Whether the options name an index in a database.
    pub fn has_database(&self) -> bool {
        self.store.index.has_shared()
    }

    /// Returns the index that ranks notes by words and meaning, and whether it was updated. This is the index in a
    /// database as it is, if the options name one, else [`Vault::index_for_search`].
    ///
    /// # Errors
    /// The database cannot be reached; the errors of [`Vault::index`].
    pub fn index_for_ranking(&self) -> Result<(&Index, bool)> {
        match self.store.index.shared()? {
            Some(index) => Ok((index, true)),
            None => self.index_for_search(),
        }
    }

    /// Returns the rules for files that the index, lists and searches exclude.
    pub(crate) fn exclusion(&self) -> Result<Exclusion> {
        self.store.index.exclusion()
    }

    /// Applies a whole change, or nothing of it.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] if a file that it read or touches has changed, or if a file or link was added that
    /// affects the links that it preserves; [`ErrorKind::Busy`] if another process is changing the vault. In these
    /// cases nothing was done. An error in the middle rolls back the actions so far. [`ErrorKind::Journal`] while an
    /// interrupted transaction waits for [`Vault::recover`].
    pub fn apply(&self, change: &Change, options: ApplyOptions<'_>) -> Result<Transaction> {
        let new = NewTransaction { label: options.label, kind: TransactionKind::Apply, of: None };
        self.store.apply(&new, change, &[], options.progress, options.editors)
    }

    /// Undoes a transaction: the newest that is not undone yet, or the given one.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if there is no such transaction; [`ErrorKind::Conflict`] with the files that changed
    /// since, none of which is touched.
    pub fn undo(&self, id: Option<TransactionId>, force: Force) -> Result<Transaction> {
        self.undo_in(id, force, None)
    }

    /// Like [`Self::undo`]; edits of open files are made in their editors.
    ///
    /// # Errors
    /// The errors of [`Self::undo`].
    pub(crate) fn undo_in(
        &self,
        id: Option<TransactionId>,
        force: Force,
        editors: Option<Box<dyn OpenEditors>>,
    ) -> Result<Transaction> {
        let undoing = self.store.undoing(id, force)?;
        self.store.apply_undo(undoing, editors)
    }

    /// Undoes the newest undo.
    ///
    /// # Errors
    /// The errors of [`Vault::undo`].
    pub fn redo(&self, force: Force) -> Result<Transaction> {
        let undoing = self.store.redoing(force)?;
        self.store.apply_undo(undoing, None)
    }

    /// Returns the change that [`Vault::undo`] would make.
    ///
    /// # Errors
    /// The errors of [`Vault::undo`].
    pub fn preview_undo(&self, id: Option<TransactionId>, force: Force) -> Result<Change> {
        self.store.undoing(id, force).map(|undoing| self.store.preview_of(undoing))
    }

    /// Returns the change that [`Vault::redo`] would make.
    ///
    /// # Errors
    /// The errors of [`Vault::undo`].
    pub fn preview_redo(&self, force: Force) -> Result<Change> {
        self.store.redoing(force).map(|undoing| self.store.preview_of(undoing))
    }

    /// Returns all transactions, newest first.
    ///
    /// # Errors
    /// [`ErrorKind::Journal`] for a journal of another format.
    pub fn transactions(&self) -> Result<Vec<TransactionInfo>> {
        let (entries, _) = journal::entries(self.state())?;
        let mut infos: Vec<TransactionInfo> = entries.iter().map(|entry| info(entry, &entries)).collect();
        infos.reverse();
        Ok(infos)
    }

    /// Returns the change that a transaction made, as far as its texts are still known: a file that was edited outside
    /// since is listed in a notice. For example, `past_change(id)?.preview()` has the diffs of a list of recent
    /// changes.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if there is no such transaction; the errors of [`Vault::transactions`].
    pub fn past_change(&self, id: TransactionId) -> Result<Change> {
        self.store.past_change(id)
    }

    /// Returns the newest transaction that is in effect and is not an undo itself.
    ///
    /// # Errors
    /// The errors of [`Vault::transactions`]; [`ErrorKind::NotFound`] if there is no such transaction.
    pub fn newest_undoable(&self) -> Result<TransactionInfo> {
        let is_undoable =
            |info: &TransactionInfo| info.status == TransactionStatus::Done && info.kind != TransactionKind::Undo;
        self.transactions()?.into_iter().find(is_undoable).ok_or_else(|| {
            Error::new(ErrorKind::NotFound, "there is nothing to undo")
                .with_remedy("nothing was changed in this vault yet")
        })
    }

    /// Returns whether parts of the journal cannot be read, so that transactions may be missing from
    /// [`Vault::transactions`]. Those that are listed as [`TransactionStatus::Damaged`] do not count.
    ///
    /// # Errors
    /// The errors of [`Vault::transactions`].
    pub fn is_journal_damaged(&self) -> Result<bool> {
        journal::entries(self.state()).map(|(_, is_damaged)| is_damaged)
    }

    /// Returns what [`Vault::prune`] would drop, without the number of bytes.
    ///
    /// # Errors
    /// If the journal cannot be read.
    pub fn prunable(&self, options: &PruneOptions) -> Result<PruneReport> {
        journal::prunable(self.state(), options)
    }

    /// Drops old transactions from the journal; they can no longer be undone.
    ///
    /// # Errors
    /// [`ErrorKind::Busy`] while another process changes the vault.
    pub fn prune(&self, options: &PruneOptions) -> Result<PruneReport> {
        let _lock = self.store.lock()?;
        self.store.recover_before_change()?;
        journal::prune(self.state(), options)
    }

    /// Returns the journal files that [`Vault::reset_journal`] would move aside.
    pub fn journal_files(&self) -> Vec<PathBuf> {
        journal::files(self.state())
    }

    /// Moves the journal aside, whatever its format, so that the vault can be changed again. Returns the new paths; the
    /// transactions in it can no longer be undone.
    ///
    /// # Errors
    /// [`ErrorKind::Journal`] while an interrupted transaction waits for [`Vault::recover`];
    /// [`ErrorKind::Busy`] while another process changes the vault.
    pub fn reset_journal(&self) -> Result<Vec<PathBuf>> {
        let _lock = self.store.lock()?;
        journal::reset(self.state())
    }
}

fn info(entry: &JournalEntry, all: &[JournalEntry]) -> TransactionInfo {
    let done = entry.actions.iter().take(entry.done);
    let mut paths: Vec<String> = done.flat_map(|action| action.outline.all_paths()).map(ToString::to_string).collect();
    paths.sort();
    paths.dedup();
    let root = Some(entry.root());
    let is_in_effect = |later: &&JournalEntry| !later.is_unfinished() && later.state != EntryState::RolledBack;
    let mut later = all.iter().filter(|later| later.of == root && later.id > entry.id);
    let status = match later.rfind(is_in_effect) {
        _ if entry.state == EntryState::RolledBack => TransactionStatus::RolledBack,
        _ if entry.is_unfinished() => TransactionStatus::Interrupted,
        _ if entry.is_damaged => TransactionStatus::Damaged,
        Some(later) if (later.kind == TransactionKind::Undo) != (entry.kind == TransactionKind::Undo) => {
            TransactionStatus::Undone
        }
        Some(_) | None => TransactionStatus::Done,
    };
    TransactionInfo {
        id: entry.id,
        time: entry.time(),
        label: entry.label.clone(),
        kind: entry.kind,
        of: entry.of,
        actions: entry.done,
        paths,
        status,
    }
}
