//! Applies a change as one: compares it with the disk, records it, applies it, and rolls back if anything fails.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;

use serde::Serialize;

use super::expected_disk::{ExpectedPaths, ExpectedState};
use super::file_closer::FileCloser;
use super::inverse::{CHANGED, Force, Inverses};
use crate::action::{Action, ActionOutline, DeleteMode};
use crate::change::{Change, ObservedState, Preconditions, origin_of};
use crate::content::Content;
use crate::error::{Error, ErrorKind, Result};
use crate::failpoint;
use crate::host::OpenEditors;
use crate::journal::{EntryState, JournalAction, NewTransaction, TransactionId, TransactionKind, Writer};
use crate::links::DiskLinks;
use crate::sandbox::{PathState, SafePath, SavedMetadata, files_below};
use crate::store::VaultStore;

/// Options for applying a change.
#[derive(Default)]
#[non_exhaustive]
pub struct ApplyOptions<'a> {
    /// The label of the transaction in the journal.
    pub label: String,
    /// Called before each action.
    pub progress: Option<&'a mut dyn FnMut(ApplyProgress) -> ControlFlow>,
    /// The editors that have files open; edits of these files are made in them.
    pub(crate) editors: Option<Box<dyn OpenEditors>>,
}

impl<'a> ApplyOptions<'a> {
    /// Returns the options with an empty label and without progress.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the label of the transaction in the journal.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Sets the editors in which edits of open files are made.
    #[must_use]
    pub(crate) fn editors(mut self, editors: Option<Box<dyn OpenEditors>>) -> Self {
        self.editors = editors;
        self
    }

    /// Sets a function that is called before each action and decides whether to continue.
    #[must_use]
    pub fn progress(mut self, progress: &'a mut dyn FnMut(ApplyProgress) -> ControlFlow) -> Self {
        self.progress = Some(progress);
        self
    }
}

impl fmt::Debug for ApplyOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApplyOptions").field("label", &self.label).finish_non_exhaustive()
    }
}

/// The progress of applying a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApplyProgress {
    /// The index in [`Change::actions`] of the next action. Folders that exist by now are left out.
    pub index: usize,
    /// How many actions there are.
    pub total: usize,
}

/// Whether to continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControlFlow {
    /// Continue with the next action.
    Continue,
    /// Stop. The finished actions stay, as a transaction that can be undone.
    Stop,
    /// Stop. The actions before the one with this index stay, and the rest is rolled back.
    StopAt(usize),
}

/// A change that was applied and can be undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Transaction {
    /// The number with which it can be undone; 0 if nothing was done.
    pub id: TransactionId,
    /// How many actions were done.
    pub done: usize,
    /// Whether it was stopped before its end.
    pub stopped: bool,
    /// Files that could not be restored exactly: they were lost by a forced undo, or changed by somebody while a
    /// transaction that was stopped was rolled back.
    pub lost: Vec<String>,
}

impl VaultStore {
    /// Applies a whole change, or nothing of it. `restore` is the metadata for the file or folder that an action
    /// creates or moves, by the index of the action.
    pub(crate) fn apply(
        &self,
        new: &NewTransaction,
        change: &Change,
        restore: &[SavedMetadata],
        mut progress: Option<&mut dyn FnMut(ApplyProgress) -> ControlFlow>,
        mut editors: Option<Box<dyn OpenEditors>>,
    ) -> Result<Transaction> {
        // An undo of which nothing is left to do still counts as done.
        if change.is_empty() && new.kind == TransactionKind::Apply {
            return Ok(Transaction { id: TransactionId(0), done: 0, stopped: false, lost: Vec::new() });
        }
        let _lock = self.lock()?;
        self.recover_before_change()?;
        self.check_still_last(new)?;
        // A folder that somebody created in the meantime must not be removed by an undo.
        let existing = self.check_preconditions(change)?;
        let planned = self.plan_actions(change, &existing)?;
        let actions: Vec<_> = planned.iter().map(|planned| (planned.action, &planned.saved)).collect();
        let writer = Writer::begin(&self.state, new, &actions)?;
        self.index.mark_stale();
        let closing = FileCloser::of(planned.len());
        let mut running = OpenTransaction { store: self, writer, planned: &planned, done: 0, closing };
        let total = change.actions.len();
        let plain = SavedMetadata::default();
        for (number, next) in planned.iter().enumerate() {
            let progress = progress.as_mut();
            let flow = progress.map_or(ControlFlow::Continue, |ask| ask(ApplyProgress { index: next.index, total }));
            let stop_at = match flow {
                ControlFlow::Continue => None,
                ControlFlow::Stop => Some(next.index),
                ControlFlow::StopAt(index) => Some(index),
            };
            if let Some(index) = stop_at {
                let stays = planned[..number].iter().take_while(|planned| planned.index < index).count();
                return running.end(stays);
            }
            let restored = restore.get(next.index).unwrap_or(&plain);
            let editors = editors.as_deref_mut();
            match self.act(running.writer.entry.id, next.action, restored, new.kind, editors) {
                Ok(replaced) => replaced.into_iter().for_each(|file| running.closing.close(file)),
                Err(error) => {
                    return Err(running.give_up(error, &format!("action {} of {total} failed", next.index + 1)));
                }
            }
            running.done = number + 1;
            failpoint::step();
        }
        running.end(planned.len())
    }

    /// Returns the actions to apply, and the metadata from the disk that their inverses will need.
    fn plan_actions<'c>(&self, change: &'c Change, existing: &BTreeSet<SafePath>) -> Result<Vec<PlannedAction<'c>>> {
        let mut planned = Vec::with_capacity(change.actions.len());
        for (index, action) in change.actions.iter().enumerate() {
            let metadata = |path: &SafePath| self.sandbox.saved_metadata(&origin_of(&change.actions[..index], path));
            let saved = match action {
                Action::MakeFolder { path } if existing.contains(path) => continue,
                // A moved file keeps its permissions.
                Action::Move { from, .. } => SavedMetadata { mode: None, ..metadata(from)? },
                Action::Delete { path, .. } | Action::RemoveFolder { path } => metadata(path)?,
                _ => SavedMetadata::default(),
            };
            planned.push(PlannedAction { index, action, saved });
        }
        Ok(planned)
    }

    /// Checks that everything is as it was read. Returns the folders to be created that exist by now.
    fn check_preconditions(&self, change: &Change) -> Result<BTreeSet<SafePath>> {
        let outlines: Vec<ActionOutline> = change.actions.iter().map(Action::outline).collect();
        let before = ExpectedPaths::before(outlines.iter());
        for (path, hash) in &change.reads {
            let is_checked_below = before.0.get(path) == Some(&ExpectedState::File(*hash));
            if !is_checked_below && self.sandbox.found(path)? != PathState::File(*hash) {
                return Err(Error::conflict(path, "changed since it was read"));
            }
        }
        change.preconditions.check(self)?;
        let mut existing = BTreeSet::new();
        for (path, expected, found) in self.unmet(before)? {
            let first = change.actions.iter().find(|action| action.all_paths().any(|touched| *touched == path));
            if found == PathState::Folder && matches!(first, Some(Action::MakeFolder { .. })) {
                existing.insert(path);
                continue;
            }
            let what = match (expected, found) {
                (ExpectedState::Nothing, _) => "exists now",
                (_, PathState::Nothing) => "is gone since it was read",
                _ => "changed since it was read",
            };
            return Err(Error::conflict(&path, what));
        }
        Ok(existing)
    }

    /// Returns the paths at which the disk differs from the expected state, and their actual state.
    pub(super) fn unmet(&self, expected: ExpectedPaths) -> Result<Vec<(SafePath, ExpectedState, PathState)>> {
        let mut unmet = Vec::new();
        for (path, expected) in expected.0 {
            let found = self.sandbox.found(&path)?;
            if !expected.is_met_by(found) {
                unmet.push((path, expected, found));
            }
        }
        Ok(unmet)
    }

    /// Applies one action. `restore` is the metadata for the file or folder that it creates or moves. Returns the file
    /// that it replaced, open.
    fn act(
        &self,
        id: TransactionId,
        action: &Action,
        restore: &SavedMetadata,
        kind: TransactionKind,
        editors: Option<&mut (dyn OpenEditors + '_)>,
    ) -> Result<Option<File>> {
        let sandbox = &self.sandbox;
        match action {
            Action::MakeFolder { path } => sandbox.make_folder(path, restore)?,
            Action::RemoveFolder { path } => {
                let is_removed = sandbox.remove_folder(path)?;
                // A folder to be deleted was empty when it was shown; one that an undo removes may stay.
                if !is_removed && kind == TransactionKind::Apply {
                    return Err(Error::conflict(path, "is no longer empty"));
                }
            }
            Action::Create { path, content } => sandbox.create(path, content, &temporary(id), restore)?,
            Action::Edit { path, before, after } => {
                self.is_still(path, before)?;
                if let Some(editors) = editors
                    && self.is_edited_by(editors, path, before, after)?
                {
                    return Ok(None);
                }
                return sandbox.replace(path, after, &temporary(id));
            }
            Action::Move { from, to } => sandbox.rename(from, to, restore)?,
            Action::Delete { path, content, mode } => {
                self.is_still(path, content)?;
                match mode {
                    DeleteMode::SystemTrash => sandbox.to_system_trash(path)?,
                    DeleteMode::Permanent | DeleteMode::Trash => sandbox.remove_file(path)?,
                }
            }
        }
        Ok(None)
    }

    /// Reverts actions of a transaction, the last one first, and makes that durable. Files that somebody has changed
    /// since stay unchanged, and are reported.
    ///
    /// # Errors
    /// If the disk cannot be read or written; the caller may try again.
    pub(super) fn roll_back(
        &self,
        id: TransactionId,
        done: &[JournalAction],
        contents: Vec<Option<Content>>,
    ) -> Result<Rollback> {
        let Inverses { now, restore, mut reverted, mut left, .. } = Inverses::of(self, done, contents, Force::No)?;
        for (action, restore) in now.change().actions.iter().zip(&restore) {
            match self.act(id, action, restore, TransactionKind::Undo, None) {
                // A file or folder is in the way.
                Err(error) if error.kind() == ErrorKind::Conflict => {
                    let text = action.all_paths().last().map(|path| format!("{path}: {CHANGED}"));
                    left.extend(text.filter(|text| !left.contains(text)));
                    reverted = reverted.saturating_sub(1);
                }
                acted => drop(acted?),
            }
        }
        self.sandbox.sync(done.iter().flat_map(|done| done.outline.all_paths()))?;
        Ok(Rollback { reverted, left })
    }

    /// Has an editor that has the file open make an edit. Returns whether the file has the new content. Only the file
    /// itself decides that: a host can be wrong about it, or answer too late.
    fn is_edited_by(
        &self,
        editors: &mut dyn OpenEditors,
        path: &SafePath,
        before: &Content,
        after: &Content,
    ) -> Result<bool> {
        let (Some(old), Some(new)) = (before.text(), after.text()) else { return Ok(false) };
        editors.replace(path, old, new);
        match self.sandbox.found(path)? {
            PathState::File(hash) if hash == after.hash() => Ok(true),
            PathState::File(hash) if hash == before.hash() => Ok(false),
            _ => Err(Error::conflict(path, "was changed by the editor to something else")),
        }
    }

    fn is_still(&self, path: &SafePath, content: &Content) -> Result<()> {
        match self.sandbox.found(path)? {
            PathState::File(hash) if hash == content.hash() => Ok(()),
            _ => Err(Error::conflict(path, "changed since it was read")),
        }
    }
}

/// Returns the name of the file beside a note to which its new content is written first. It is hidden, so that neither
/// links nor tools find it.
pub(super) fn temporary(id: TransactionId) -> String {
    format!(".vault-tools-{id}.tmp")
}

/// The result of a rollback.
#[derive(Debug, Default)]
pub(super) struct Rollback {
    /// How many actions were reverted.
    pub reverted: usize,
    /// The files that were left unchanged, and why.
    pub left: Vec<String>,
}

/// One action of a transaction.
struct PlannedAction<'c> {
    /// Its index in the change.
    index: usize,
    action: &'c Action,
    /// The metadata that its inverse restores.
    saved: SavedMetadata,
}

/// A transaction that has begun.
struct OpenTransaction<'r> {
    store: &'r VaultStore,
    writer: Writer<'r>,
    planned: &'r [PlannedAction<'r>],
    /// How many actions are done.
    done: usize,
    /// The files that were replaced.
    closing: FileCloser,
}

impl OpenTransaction<'_> {
    /// Ends the transaction, so that exactly the first `stays` actions are in effect. If the disk fails, none is.
    fn end(mut self, stays: usize) -> Result<Transaction> {
        let rollback = if stays < self.done { self.roll_back(stays)? } else { Rollback::default() };
        let paths = self.planned[..stays].iter().flat_map(|planned| planned.action.all_paths());
        // The transaction counts as done only when its changes are durable.
        let is_in_effect = stays > 0 || self.writer.entry.kind != TransactionKind::Apply;
        let state = if is_in_effect { EntryState::Done } else { EntryState::RolledBack };
        let synced = self.store.sandbox.sync(paths);
        if let Err(error) = synced.and_then(|()| self.writer.end(state, stays)) {
            return Err(self.give_up(error, "the changes could not be made durable"));
        }
        let stopped = stays < self.planned.len();
        let id = if is_in_effect { self.writer.entry.id } else { TransactionId(0) };
        Ok(Transaction { id, done: stays, stopped, lost: rollback.left })
    }

    /// Rolls back everything because of an error. Returns the error to report.
    fn give_up(&mut self, error: Error, what: &str) -> Error {
        ::log::warn!("transaction {} is rolled back: {error}", self.writer.entry.id);
        // Each file was replaced while the old one still existed, so there is room for the old one again as soon as no
        // handle on it is open.
        self.closing = FileCloser::default();
        let undone = if self.done == 0 { "nothing was changed" } else { "everything was rolled back" };
        match self.roll_back(0) {
            Err(second) => error
                .within(format!("{what}, and not everything could be rolled back yet ({second})"))
                .with_remedy("free disk space or repair the disk; the next command rolls back the rest first"),
            Ok(rollback) => {
                // If this cannot be written either, the next start finds nothing left to roll back.
                let _ = self.writer.end(EntryState::RolledBack, 0);
                match rollback.left.as_slice() {
                    [] => error.within(format!("{what}, and {undone}")),
                    left => error
                        .within(format!("{what}, and everything was rolled back except later changes"))
                        .with_remedy(format!("left as it is: {}", left.join("; "))),
                }
            }
        }
    }

    /// Rolls back the actions from `from` on.
    fn roll_back(&mut self, from: usize) -> Result<Rollback> {
        let contents = self.planned[from..self.done].iter().map(|planned| planned.action.removed_content().cloned());
        let done = &self.writer.entry.actions[from..self.done];
        let rollback = self.store.roll_back(self.writer.entry.id, done, contents.collect())?;
        self.done = from;
        Ok(rollback)
    }
}

impl Preconditions {
    /// Checks all of it again. If no file of the vault differs, this is a walk; otherwise it costs as much as the first
    /// check of a rename. Does nothing if no links were checked.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) with a file that makes a difference.
    fn check(&self, store: &VaultStore) -> Result<()> {
        for (folder, files) in &self.folders {
            let now = files_below(&store.sandbox, folder)?;
            if let Some(other) = now.symmetric_difference(files).next() {
                return Err(Error::conflict(other, "was added to or removed from the folder since it was read"));
            }
        }
        if self.names.is_empty() && self.keys.is_empty() {
            return Ok(());
        }
        if let ObservedState::At(state) = &self.observed
            && store.index.opened()?.is_still(state).unwrap_or(false)
        {
            return Ok(());
        }
        let disk = DiskLinks::now(&store.sandbox, &store.index)?;
        for (key, files) in &self.names {
            if let Some(other) = disk.named(key).symmetric_difference(files).next() {
                return Err(Error::conflict(other, "was added or removed since the links with its name were checked"));
            }
        }
        let linking = disk.linking_by(&store.index, &self.keys)?;
        match linking.difference(&self.linking).next() {
            Some(note) => Err(Error::conflict(note, "has new links that were not checked")),
            None => Ok(()),
        }
    }
}
