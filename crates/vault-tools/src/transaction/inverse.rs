//! The inverses of a transaction's actions, computed on an overlay of the current vault.
//!
//! Reverting an action that was not done does no harm, so a rollback can itself be interrupted and restarted.

use std::collections::HashSet;

use crate::action::{Action, DeleteMode};
use crate::content::{Content, ContentHash};
use crate::error::{ErrorKind, Result};
use crate::journal::JournalAction;
use crate::overlay::Overlay;
use crate::sandbox::{EntryKind, SafePath, SavedMetadata, View};
use crate::store::VaultStore;

/// How to treat files that have changed since.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Force {
    /// Refuse the undo, and change no file.
    #[default]
    No,
    /// Overwrite them, and report what is lost.
    Yes,
}

pub(super) const CHANGED: &str = "it was changed meanwhile";
const LOST: &str = "its earlier content can no longer be read from the journal";

/// The inverses of some actions, in the order in which to apply them.
pub(super) struct Inverses<'v> {
    /// The vault with the inverses so far. One inverse may need the result of another.
    pub now: Overlay<'v>,
    /// For each inverse, the metadata for the file or folder that it creates or moves.
    pub restore: Vec<SavedMetadata>,
    /// How many actions they revert.
    pub reverted: usize,
    /// For a rollback: the files that stay unchanged, and why. For an undo: what is lost.
    pub left: Vec<String>,
    /// Whether files that were changed since are overwritten.
    force: Force,
}

impl<'v> Inverses<'v> {
    /// Computes the inverses of actions in the order in which they were done, with the contents that they removed; a
    /// content is `None` if the action removed none, or if the journal has lost it.
    ///
    /// # Errors
    /// If the disk cannot be read.
    pub fn of(
        store: &'v VaultStore,
        done: &[JournalAction],
        contents: Vec<Option<Content>>,
        force: Force,
    ) -> Result<Self> {
        let mut inverses = Self { now: Overlay::new(store), restore: Vec::new(), reverted: 0, left: Vec::new(), force };
        for (action, content) in done.iter().zip(contents).rev() {
            let before = inverses.restore.len();
            match inverses.add(action, content) {
                // Somebody replaced it, or a folder above it, by a link that leads out of the vault. The rest is still
                // reverted.
                Err(error) if error.kind() == ErrorKind::InvalidPath => {
                    inverses.left.extend(action.outline.all_paths().map(|path| format!("{path}: {CHANGED}")));
                }
                added => added?,
            }
            inverses.reverted += usize::from(inverses.restore.len() > before);
        }
        // Several actions may have changed one file.
        let mut known = HashSet::new();
        inverses.left.retain(|left| known.insert(left.clone()));
        Ok(inverses)
    }

    /// Adds the inverse of an action, unless there is nothing left to revert.
    fn add(&mut self, JournalAction { outline, saved }: &JournalAction, content: Option<Content>) -> Result<()> {
        match outline.clone() {
            Action::MakeFolder { path } => {
                let stat = self.now.stat(&path)?;
                if stat.is_none_or(|stat| stat.kind != EntryKind::Folder || stat.symlink) {
                    return Ok(());
                }
                let is_empty = self.now.list(Some(&path))?.is_empty() && self.now.unseen(&path)?.is_empty();
                match is_empty {
                    true => self.push(Action::RemoveFolder { path }, saved),
                    false => self.now.notice(format!("the folder {path} stays, since there are other files in it")),
                }
            }
            Action::RemoveFolder { path } => {
                if !self.now.is_there(&path)? {
                    self.push_into(&path, Action::MakeFolder { path: path.clone() }, saved)?;
                }
            }
            Action::Create { path, content: after } => {
                if let Some(now) = self.file(&path)?
                    && self.may_replace(&path, &now, after)
                {
                    self.push(Action::Delete { path, content: now, mode: DeleteMode::Permanent }, saved);
                }
            }
            Action::Edit { path, before, after } => match self.file(&path)? {
                Some(now) if now.hash() == before => {}
                Some(now) => {
                    if self.may_replace(&path, &now, after)
                        && let Some(content) = self.needed(&path, content)
                    {
                        self.push(Action::Edit { path, before: now, after: content }, saved);
                    }
                }
                None => {
                    let what = "that it was deleted or moved after the transaction; it is created again";
                    if self.may_lose(&path, what)
                        && let Some(content) = self.needed(&path, content)
                    {
                        self.push_into(&path, Action::Create { path: path.clone(), content }, saved)?;
                    }
                }
            },
            Action::Move { from, to } => match (self.now.is_there(&from)?, self.now.is_there(&to)?) {
                (false, true) => self.push_into(&from, Action::Move { from: to, to: from.clone() }, saved)?,
                // The action was not done.
                (true, false) if self.force == Force::No => {}
                // If the system ignores case, both names can refer to one file.
                (true, true)
                    if self.force == Force::No && from.as_str().to_lowercase() == to.as_str().to_lowercase() =>
                {
                    self.push(Action::Move { from: to, to: from }, saved);
                }
                _ if self.force == Force::No => self.left.push(format!("{from}: {CHANGED}")),
                (true, _) => self.left.push(format!("{to} stays where it is: {from} is there again")),
                (false, false) => self.left.push(format!("{to} is gone and cannot go back to {from}")),
            },
            Action::Delete { path, content: before, .. } => match self.file(&path)? {
                Some(now) if now.hash() == before => {}
                Some(now) => {
                    if self.may_lose(&path, "the file that was created there after the transaction")
                        && let Some(content) = self.needed(&path, content)
                    {
                        self.push(Action::Edit { path, before: now, after: content }, saved);
                    }
                }
                None => {
                    if let Some(content) = self.needed(&path, content) {
                        self.push_into(&path, Action::Create { path: path.clone(), content }, saved)?;
                    }
                }
            },
        }
        Ok(())
    }

    fn push(&mut self, action: Action, restore: &SavedMetadata) {
        self.now.push(action);
        self.restore.push(restore.clone());
    }

    /// Adds an action that creates or moves something at a path, and creates the folders above it that were removed
    /// since.
    fn push_into(&mut self, path: &SafePath, action: Action, restore: &SavedMetadata) -> Result<()> {
        for path in self.now.missing_above(path)? {
            self.push(Action::MakeFolder { path }, &SavedMetadata::default());
        }
        self.push(action, restore);
        Ok(())
    }

    fn file(&self, path: &SafePath) -> Result<Option<Content>> {
        match self.now.stat(path)? {
            Some(stat) if stat.kind == EntryKind::File && !stat.symlink => self.now.read(path).map(Some),
            _ => Ok(None),
        }
    }

    /// Returns whether the file at a path, which the action left with the hash `after`, may be overwritten or removed.
    fn may_replace(&mut self, path: &SafePath, now: &Content, after: ContentHash) -> bool {
        now.hash() == after
            || self.force == Force::No && is_torn(now)
            || self.may_lose(path, "the changes in it after the transaction")
    }

    /// Returns whether a later change at a path may be lost; reports it in either case.
    fn may_lose(&mut self, path: &SafePath, what: &str) -> bool {
        let is_lost = self.force == Force::Yes;
        self.left.push(format!("{path}: {}", if is_lost { what } else { CHANGED }));
        is_lost
    }

    fn needed(&mut self, path: &SafePath, content: Option<Content>) -> Option<Content> {
        if content.is_none() {
            self.left.push(format!("{path}: {LOST}"));
        }
        content
    }
}

/// Returns whether a file's content had not reached the disk when the power failed: file systems leave such a file
/// empty, or with the right length and without its content.
pub(super) fn is_torn(content: &Content) -> bool {
    content.bytes().iter().all(|byte| *byte == 0)
}
