//! Actions that were done, reverted one by one: of a transaction that failed or was stopped, and of one that a crash
//! interrupted.
//!
//! A file that is as the action left it gets back what it was; one that somebody changed since stays as it is, and is
//! reported. It does no harm to revert what was not done, so that this may be interrupted itself and begun again.

use std::ops::Range;

use super::expected::ActionOutline;
use crate::action::Action;
use crate::content::Content;
use crate::error::{ErrorKind, Result};
use crate::journal::TransactionId;
use crate::sandbox::{Found, SafePath, SavedMetadata, View};
use crate::store::VaultStore;

/// What reverts one action.
pub(super) struct Inverse {
    pub outline: ActionOutline,
    /// The content it took; `None` also for one that the journal has lost.
    pub content: Option<Content>,
    pub saved: SavedMetadata,
}

/// What a rollback did.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Rollback {
    /// How many actions were reverted.
    pub reverted: usize,
    /// What was left as it is, and why.
    pub left: Vec<String>,
}

/// What became of one action.
enum Outcome {
    Reverted,
    /// There was nothing to revert.
    Nothing,
    Left(&'static str),
}

const CHANGED: &str = "it was changed meanwhile";
const LOST: &str = "what it held before can no longer be read from the journal";

impl Inverse {
    pub(super) fn of(action: &Action, saved: &SavedMetadata) -> Self {
        let content = match action {
            Action::Edit { before, .. } => Some(before.clone()),
            Action::Delete { content, .. } => Some(content.clone()),
            _ => None,
        };
        Self { outline: ActionOutline::of(action), content, saved: saved.clone() }
    }
}

impl VaultStore {
    /// Reverts some of a transaction's actions, the last one first, and makes that durable.
    ///
    /// # Errors
    /// When the disk cannot be read or written; it may be tried again.
    pub(super) fn roll_back(&self, id: TransactionId, inverses: &[Inverse], range: Range<usize>) -> Result<Rollback> {
        let mut done = Rollback::default();
        for index in range.clone().rev() {
            let inverse = &inverses[index];
            let outcome = match self.revert(&temporary(id, index), inverse) {
                // Something is in the way.
                Err(error) if error.kind() == ErrorKind::Conflict => Outcome::Left(CHANGED),
                outcome => outcome?,
            };
            match outcome {
                Outcome::Reverted => done.reverted += 1,
                Outcome::Nothing => {}
                Outcome::Left(why) => done.left.push(format!("{}: {why}", inverse.outline.path())),
            }
        }
        self.sandbox.sync(inverses[range].iter().flat_map(|inverse| inverse.outline.paths()))?;
        Ok(done)
    }

    fn revert(&self, temporary: &str, inverse: &Inverse) -> Result<Outcome> {
        let sandbox = &self.sandbox;
        let Inverse { outline, content, saved } = inverse;
        let when = |is_reverted: bool| if is_reverted { Outcome::Reverted } else { Outcome::Left(CHANGED) };
        Ok(match outline {
            // Others may have put something into it.
            ActionOutline::MakeFolder(path) => {
                sandbox.remove_folder(path)?;
                Outcome::Reverted
            }
            ActionOutline::RemoveFolder(path) => {
                self.make_folders_above(path)?;
                sandbox.make_folder(path, saved)?;
                Outcome::Reverted
            }
            ActionOutline::Create(path, after) => match self.file(path)? {
                Some(now) if now.hash() == *after || is_torn(&now) => {
                    sandbox.remove_file(path)?;
                    Outcome::Reverted
                }
                now => when(now.is_none()),
            },
            ActionOutline::Edit(path, before, after) => match (self.file(path)?, content) {
                (Some(now), _) if now.hash() == *before => Outcome::Nothing,
                (Some(now), Some(content)) if now.hash() == *after || is_torn(&now) => {
                    sandbox.replace(path, content, temporary)?;
                    Outcome::Reverted
                }
                (Some(now), None) if now.hash() == *after || is_torn(&now) => Outcome::Left(LOST),
                _ => Outcome::Left(CHANGED),
            },
            ActionOutline::Move(from, to) => match (sandbox.found(from)?, sandbox.found(to)?) {
                (Found::Nothing, Found::Nothing) => Outcome::Left(CHANGED),
                (Found::Nothing, _) => {
                    self.make_folders_above(from)?;
                    sandbox.rename(to, from, saved)?;
                    Outcome::Reverted
                }
                (_, Found::Nothing) => Outcome::Nothing,
                // On a system that does not tell cases apart, both are the one.
                _ if from.as_str().to_lowercase() == to.as_str().to_lowercase() => {
                    sandbox.rename(to, from, saved)?;
                    Outcome::Reverted
                }
                _ => Outcome::Left(CHANGED),
            },
            ActionOutline::Delete(path, before) => match (sandbox.found(path)?, content) {
                (Found::File(now), _) if now == *before => Outcome::Nothing,
                (Found::Nothing, Some(content)) => {
                    self.make_folders_above(path)?;
                    sandbox.create(path, content, temporary, saved)?;
                    Outcome::Reverted
                }
                (Found::Nothing, None) => Outcome::Left(LOST),
                _ => Outcome::Left(CHANGED),
            },
        })
    }

    fn file(&self, path: &SafePath) -> Result<Option<Content>> {
        match self.sandbox.found(path)? {
            Found::File(_) => self.sandbox.read(path).map(Some),
            _ => Ok(None),
        }
    }

    /// Whether a file's bytes had not reached the disk when the power went.
    pub(super) fn is_torn(&self, path: &SafePath) -> Result<bool> {
        Ok(self.file(path)?.is_some_and(|content| is_torn(&content)))
    }

    /// Makes the folders that somebody removed since.
    fn make_folders_above(&self, path: &SafePath) -> Result<()> {
        let mut missing = Vec::new();
        let mut above = path.parent();
        while let Some(folder) = above {
            if self.sandbox.found(&folder)? != Found::Nothing {
                break;
            }
            above = folder.parent();
            missing.push(folder);
        }
        missing.iter().rev().try_for_each(|folder| self.sandbox.make_folder(folder, &SavedMetadata::default()))
    }
}

/// File systems leave such a file empty, or of the right length and without its bytes.
fn is_torn(content: &Content) -> bool {
    content.bytes().iter().all(|byte| *byte == 0)
}

/// The file beside a note in which its new content is written first. Hidden, so that neither links nor tools see it.
pub(super) fn temporary(id: TransactionId, index: usize) -> String {
    format!(".vault-tools-{id}-{index}.tmp")
}
