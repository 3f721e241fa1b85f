//! The handle that a caller holds: a vault, its index and its journal.

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
use crate::journal::{
    self, EntryState, JournalEntry, NewTransaction, PruneOptions, PruneReport, TransactionId, TransactionKind,
};
use crate::overlay::Overlay;
use crate::read_versions::ReadVersions;
use crate::sandbox::Sandbox;
use crate::state::State;
use crate::store::{IndexUse, NoteIndex, VaultStore};
use crate::transaction::{ApplyOptions, Force, RecoveryMode, RecoveryReport, Transaction};

/// How a vault is opened.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct VaultOptions {
    /// Where journal, log and macros are kept. `None`: in the user's state folder.
    pub state_folder: Option<PathBuf>,
    /// How the index is opened.
    pub index: vault_index::Options,
    /// Whether links are looked up in the index.
    pub use_index: IndexUse,
    /// How long to wait for another process that changes the vault; 10 seconds by default.
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
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps journal, log and macros in this folder, which must not be in the vault.
    #[must_use]
    pub fn state_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.state_folder = Some(folder.into());
        self
    }

    /// Opens the index with these options.
    #[must_use]
    pub fn index(mut self, options: vault_index::Options) -> Self {
        self.index = options;
        self
    }

    /// Looks links up in the index, or in the notes themselves.
    #[must_use]
    pub fn use_index(mut self, uses: IndexUse) -> Self {
        self.use_index = uses;
        self
    }

    /// Waits so long for another process that changes the vault.
    #[must_use]
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }
}

/// A vault that is read and changed. Usable from many threads.
///
/// It asks nobody: it does what the program says. Where a policy and a person decide, changes go through a
/// [`Toolbox`](crate::Toolbox) and [`approval`](crate::approval).
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
    /// What it does.
    pub kind: TransactionKind,
    /// The transaction that it undid or redid.
    pub of: Option<TransactionId>,
    /// How many actions it did.
    pub actions: usize,
    /// Files and folders it touched, each once.
    pub paths: Vec<String>,
    /// Whether it can be undone, was, or never came to be.
    pub status: TransactionStatus,
}

fn rfc3339<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{:.0}", Timestamp::try_from(*time).unwrap_or_default()))
}

/// What became of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum TransactionStatus {
    /// It is in effect.
    Done,
    /// A later transaction undid it.
    Undone,
    /// It was interrupted or failed, and nothing is left of it.
    RolledBack,
    /// It was interrupted, and is not rolled back yet.
    Interrupted,
    /// The journal does not have all of it any more, so it cannot be undone.
    Damaged,
}

impl Vault {
    /// Opens a vault. A transaction that was interrupted by a crash is rolled back first. Where that is not certain to
    /// be right, because the journal is damaged or notes were edited since, or cannot be done now, nothing is changed:
    /// the vault can be read, and [`Vault::warnings`] says why.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when there is no such folder; [`ErrorKind::Refused`] when the state folder would be in
    /// it; [`ErrorKind::InvalidArguments`] for a `.vault.toml` that cannot be understood.
    pub fn open(vault: impl AsRef<Path>, options: VaultOptions) -> Result<Self> {
        let vault = Self::open_unchecked(vault, options)?;
        vault.check_settings()?;
        Ok(vault)
    }

    /// Requires that the vault's `.vault.toml` can be understood: somebody wrote there what is to be kept out.
    pub fn check_settings(&self) -> Result<()> {
        Ok(check_vault_toml(self.path())?)
    }

    /// As [`Vault::open`], whatever `.vault.toml` holds: what was done can be undone nonetheless.
    pub fn open_unchecked(vault: impl AsRef<Path>, options: VaultOptions) -> Result<Self> {
        let sandbox = Sandbox::open(vault.as_ref())?;
        let VaultOptions { state_folder, index, use_index, wait } = options;
        let state = match state_folder {
            Some(folder) => State::at(folder),
            None => State::of(sandbox.vault())?,
        };
        if state.lies_in(sandbox.vault()) {
            // What it holds would be listed, searched, synced and journalled itself.
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
                (None, vec![error.to_string()])
            }
        };
        Ok(Self { store, versions: ReadVersions::default(), recovered, warnings })
    }

    /// What whoever uses the vault should know: that a transaction was interrupted and is not rolled back yet, or that
    /// the journal is damaged. The vault can be read; nothing is changed in it until an interrupted transaction is
    /// rolled back or kept.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// What was rolled back when the vault was opened.
    pub fn recovered(&self) -> Option<&RecoveryReport> {
        self.recovered.as_ref()
    }

    /// Rolls back or keeps an interrupted transaction that was not rolled back when the vault was opened. `None` if
    /// there is none.
    ///
    /// # Errors
    /// When files or the journal cannot be read or written.
    pub fn recover(&self, how: RecoveryMode) -> Result<Option<RecoveryReport>> {
        self.store.recover(how)
    }

    /// The vault's folder, canonical.
    pub fn path(&self) -> &Path {
        self.store.sandbox.vault()
    }

    /// The vault as it is on the disk.
    pub fn sandbox(&self) -> &Sandbox {
        &self.store.sandbox
    }

    /// Where journal, log and macros are kept.
    pub fn state(&self) -> &State {
        &self.store.state
    }

    /// The vault with changes not yet made; none at first.
    pub fn overlay(&self) -> Overlay<'_> {
        Overlay::new(&self.store)
    }

    /// What was read of it lately.
    pub(crate) fn versions(&self) -> &ReadVersions {
        &self.versions
    }

    /// The index, brought up to date but for vectors: if something was written here, or half a second has passed.
    ///
    /// # Errors
    /// When it cannot be opened or written.
    pub fn index(&self) -> Result<&Index> {
        self.store.index.recent()
    }

    /// The index for a search, and whether it was brought up to date: where another process writes, it is as it is.
    ///
    /// # Errors
    /// As [`Vault::index`].
    pub fn index_for_search(&self) -> Result<(&Index, bool)> {
        self.store.index.without_waiting()
    }

    /// What the index leaves out, and lists and searches with it.
    pub(crate) fn exclusion(&self) -> Result<Exclusion> {
        self.store.index.exclusion()
    }

    /// Does what a change says: all of it, or nothing.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] when a file it read or touches is no longer as it was, a file or link came that makes a
    /// difference to the links that it keeps; [`ErrorKind::Busy`] when another process is at work. Nothing was done then.
    /// An error in the middle rolls back what was done. [`ErrorKind::Journal`] while an interrupted transaction waits for
    /// [`Vault::recover`].
    pub fn apply(&self, change: &Change, options: ApplyOptions<'_>) -> Result<Transaction> {
        let new = NewTransaction { label: options.label, kind: TransactionKind::Apply, of: None };
        self.store.apply(&new, change, &[], options.progress)
    }

    /// Undoes a transaction: the newest that is not undone yet, or the one named.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when there is none; [`ErrorKind::Conflict`] with the files that changed since, none of
    /// which is touched.
    pub fn undo(&self, id: Option<TransactionId>, force: Force) -> Result<Transaction> {
        let undoing = self.store.undoing(id, force)?;
        self.store.apply_undo(undoing)
    }

    /// Undoes the newest undo.
    ///
    /// # Errors
    /// As [`Vault::undo`].
    pub fn redo(&self, force: Force) -> Result<Transaction> {
        let undoing = self.store.redoing(force)?;
        self.store.apply_undo(undoing)
    }

    /// What [`Vault::undo`] would do.
    ///
    /// # Errors
    /// As [`Vault::undo`].
    pub fn preview_undo(&self, id: Option<TransactionId>, force: Force) -> Result<Change> {
        self.store.undoing(id, force).map(|undoing| self.store.preview_of(undoing))
    }

    /// What [`Vault::redo`] would do.
    ///
    /// # Errors
    /// As [`Vault::undo`].
    pub fn preview_redo(&self, force: Force) -> Result<Change> {
        self.store.redoing(force).map(|undoing| self.store.preview_of(undoing))
    }

    /// All transactions, newest first.
    ///
    /// # Errors
    /// [`ErrorKind::Journal`] for a journal of another format.
    pub fn transactions(&self) -> Result<Vec<TransactionInfo>> {
        let (entries, _) = journal::entries(self.state())?;
        let mut infos: Vec<TransactionInfo> = entries.iter().map(|entry| info(entry, &entries)).collect();
        infos.reverse();
        Ok(infos)
    }

    /// The change that a transaction made, as far as its texts are still known: a file that was edited outside since is
    /// named in a notice. For example, `past_change(id)?.preview()` has the diffs of a list of recent changes.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when there is no such transaction; as [`Vault::transactions`].
    pub fn past_change(&self, id: TransactionId) -> Result<Change> {
        self.store.past_change(id)
    }

    /// The newest transaction that is in effect and is no undo itself.
    ///
    /// # Errors
    /// As [`Vault::transactions`]; [`ErrorKind::NotFound`] where there is none.
    pub fn newest_undoable(&self) -> Result<TransactionInfo> {
        let is_undoable =
            |info: &TransactionInfo| info.status == TransactionStatus::Done && info.kind != TransactionKind::Undo;
        self.transactions()?.into_iter().find(is_undoable).ok_or_else(|| {
            Error::new(ErrorKind::NotFound, "there is nothing to undo")
                .with_remedy("nothing was changed in this vault yet")
        })
    }

    /// Whether parts of the journal cannot be read, so that transactions may be missing from
    /// [`Vault::transactions`]. Those that are listed as [`TransactionStatus::Damaged`] do not count.
    ///
    /// # Errors
    /// As [`Vault::transactions`].
    pub fn is_journal_damaged(&self) -> Result<bool> {
        journal::entries(self.state()).map(|(_, is_damaged)| is_damaged)
    }

    /// What [`Vault::prune`] would drop, but for the bytes.
    ///
    /// # Errors
    /// When the journal cannot be read.
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

    /// The journal files that [`Vault::reset_journal`] would move aside.
    pub fn journal_files(&self) -> Vec<PathBuf> {
        journal::files(self.state())
    }

    /// Moves the journal aside, whatever its format, so that the vault can be changed again. Returns where it is now;
    /// what it holds can no longer be undone.
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
