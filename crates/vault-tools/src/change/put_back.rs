//! Actions that were done, taken back one by one: of a run that failed or was stopped, and of one that a crash cut.
//!
//! A file that is as the action left it gets back what it was; one that somebody changed since stays as it is, and is
//! told of. It does no harm to take back what was not done, so that this may be cut itself and begun again.

use std::ops::Range;

use crate::action::Action;
use crate::change::Vault;
use crate::change::apply::temporary;
use crate::change::expected::Step;
use crate::content::Content;
use crate::error::{ErrorKind, Result};
use crate::journal::RunId;
use crate::sandbox::{Found, Kept, SafePath, View};

/// What takes one action back.
pub(super) struct Inverse {
    pub step: Step,
    /// The content it took; `None` also for one that the journal has lost.
    pub content: Option<Content>,
    pub kept: Kept,
}

/// How that went.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PutBack {
    /// How many actions were taken back.
    pub taken_back: usize,
    /// What was left as it is, and why.
    pub left: Vec<String>,
}

/// What became of one action.
enum Outcome {
    TakenBack,
    /// There was nothing to take back.
    Nothing,
    Left(&'static str),
}

const CHANGED: &str = "it was changed meanwhile";
const LOST: &str = "what it held before can no longer be read from the journal";

impl Inverse {
    pub(super) fn of(action: &Action, kept: &Kept) -> Self {
        let content = match action {
            Action::Edit { before, .. } => Some(before.clone()),
            Action::Delete { content, .. } => Some(content.clone()),
            _ => None,
        };
        Self { step: Step::of(action), content, kept: kept.clone() }
    }
}

impl Vault {
    /// Takes back some of a run's actions, the last one first, and sees to it that this is on the disk.
    ///
    /// # Errors
    /// When the disk cannot be read or written; it may be tried again.
    pub(super) fn put_back(&self, run: RunId, inverses: &[Inverse], range: Range<usize>) -> Result<PutBack> {
        let mut done = PutBack::default();
        for index in range.clone().rev() {
            let inverse = &inverses[index];
            let outcome = match self.put_back_one(&temporary(run, index), inverse) {
                // Something is in the way.
                Err(error) if error.kind() == ErrorKind::Conflict => Outcome::Left(CHANGED),
                outcome => outcome?,
            };
            match outcome {
                Outcome::TakenBack => done.taken_back += 1,
                Outcome::Nothing => {}
                Outcome::Left(why) => done.left.push(format!("{}: {why}", inverse.step.path())),
            }
        }
        self.sandbox().sync(inverses[range].iter().flat_map(|inverse| inverse.step.paths()))?;
        Ok(done)
    }

    fn put_back_one(&self, temporary: &str, inverse: &Inverse) -> Result<Outcome> {
        let sandbox = self.sandbox();
        let Inverse { step, content, kept } = inverse;
        let as_told = |is_back: bool| if is_back { Outcome::TakenBack } else { Outcome::Left(CHANGED) };
        Ok(match step {
            // Others may have put something into it.
            Step::MakeFolder(path) => {
                sandbox.remove_folder(path)?;
                Outcome::TakenBack
            }
            Step::RemoveFolder(path) => {
                self.make_folders_above(path)?;
                sandbox.make_folder(path, kept)?;
                Outcome::TakenBack
            }
            Step::Create(path, after) => match self.file(path)? {
                Some(now) if now.hash() == *after || is_torn(&now) => {
                    sandbox.remove_file(path)?;
                    Outcome::TakenBack
                }
                now => as_told(now.is_none()),
            },
            Step::Edit(path, before, after) => match (self.file(path)?, content) {
                (Some(now), _) if now.hash() == *before => Outcome::Nothing,
                (Some(now), Some(content)) if now.hash() == *after || is_torn(&now) => {
                    sandbox.replace(path, content, temporary)?;
                    Outcome::TakenBack
                }
                (Some(now), None) if now.hash() == *after || is_torn(&now) => Outcome::Left(LOST),
                _ => Outcome::Left(CHANGED),
            },
            Step::Move(from, to) => match (sandbox.found(from)?, sandbox.found(to)?) {
                (Found::Nothing, Found::Nothing) => Outcome::Left(CHANGED),
                (Found::Nothing, _) => {
                    self.make_folders_above(from)?;
                    sandbox.rename(to, from, kept)?;
                    Outcome::TakenBack
                }
                (_, Found::Nothing) => Outcome::Nothing,
                // On a system that does not tell cases apart, both are the one.
                _ if from.as_str().to_lowercase() == to.as_str().to_lowercase() => {
                    sandbox.rename(to, from, kept)?;
                    Outcome::TakenBack
                }
                _ => Outcome::Left(CHANGED),
            },
            Step::Delete(path, before) => match (sandbox.found(path)?, content) {
                (Found::File(now), _) if now == *before => Outcome::Nothing,
                (Found::Nothing, Some(content)) => {
                    self.make_folders_above(path)?;
                    sandbox.create(path, content, temporary, kept)?;
                    Outcome::TakenBack
                }
                (Found::Nothing, None) => Outcome::Left(LOST),
                _ => Outcome::Left(CHANGED),
            },
        })
    }

    fn file(&self, path: &SafePath) -> Result<Option<Content>> {
        match self.sandbox().found(path)? {
            Found::File(_) => self.sandbox().read(path).map(Some),
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
            if self.sandbox().found(&folder)? != Found::Nothing {
                break;
            }
            above = folder.parent();
            missing.push(folder);
        }
        missing.iter().rev().try_for_each(|folder| self.sandbox().make_folder(folder, &Kept::default()))
    }
}

/// File systems leave such a file empty, or of the right length and without its bytes.
fn is_torn(content: &Content) -> bool {
    content.bytes().iter().all(|byte| *byte == 0)
}
