//! A change done as one: compared with the disk, written down, done, and put back if anything fails in between.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use serde::Serialize;

use crate::action::{Action, Gone};
use crate::change::expected::{Expected, Step, expected};
use crate::change::put_back::{Inverse, PutBack};
use crate::change::{Change, Vault, origin_of};
use crate::content::Content;
use crate::error::{Error, ErrorKind, Result};
use crate::journal::{Ending, NewRun, RunId, RunKind, Writer};
use crate::sandbox::{Found, Kept, SafePath};

/// How a change is applied.
#[derive(Default)]
pub struct ApplyOptions<'a> {
    /// What the journal calls the run.
    pub label: String,
    /// Asked before each action.
    pub progress: Option<&'a mut dyn FnMut(Applying) -> Go>,
}

/// How far it has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Applying {
    /// Where in [`Change::actions`] the action stands that is next, from 0. Folders that are there by now are left out.
    pub index: usize,
    /// How many there are.
    pub total: usize,
}

/// Whether it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Go {
    /// Yes.
    On,
    /// No: what was done stays, as a run that can be taken back.
    Stop,
    /// No: what was done before this action stays, and what was done from it on is put back.
    StopAt(usize),
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Run {
    /// By which it is taken back; 0 when nothing was done.
    pub id: RunId,
    /// How many actions were done.
    pub done: usize,
    /// Whether it was stopped before its end.
    pub stopped: bool,
    /// What could not be put back as it was: lost by a forced undo, or changed by somebody while a run that was
    /// stopped was put back.
    pub lost: Vec<String>,
}

impl Vault {
    /// Does what a change says: all of it, or nothing.
    ///
    /// One sync of the journal before and one after, and one of what was written, whatever its size.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] when a file it read or touches is no longer as it was, a file or link came that makes a
    /// difference to the links that it keeps, or another process is at work; nothing was done then. An error in the middle puts back what was done.
    pub fn apply(&self, change: &Change, options: ApplyOptions<'_>) -> Result<Run> {
        let new = NewRun { label: options.label, kind: RunKind::Apply, of: None };
        self.apply_as(&new, change, &[], options.progress)
    }

    /// `gives` is what an action gives back to what it makes or moves, by its place.
    pub(super) fn apply_as(
        &self,
        new: &NewRun,
        change: &Change,
        gives: &[Kept],
        mut progress: Option<&mut dyn FnMut(Applying) -> Go>,
    ) -> Result<Run> {
        if change.is_empty() {
            return Ok(Run { id: RunId(0), done: 0, stopped: false, lost: Vec::new() });
        }
        let _lock = self.lock()?;
        self.recover()?;
        // A folder that somebody made in the meantime is not ours to take back.
        let there = self.check_disk(change)?;
        let doings = self.doings(change, gives, &there)?;
        let writer = Writer::begin(self.state(), new, doings.iter().map(|doing| (doing.action, &doing.kept)))?;
        self.is_stale.store(true, Ordering::SeqCst);
        let mut running = Running { vault: self, writer, doings: &doings, done: 0 };
        let total = change.actions.len();
        for (index, doing) in doings.iter().enumerate() {
            let place = doing.place;
            let stop_at = match progress.as_mut().map_or(Go::On, |progress| progress(Applying { index: place, total }))
            {
                Go::On => None,
                Go::Stop => Some(place),
                Go::StopAt(place) => Some(place),
            };
            if let Some(place) = stop_at {
                let stays = doings[..index].iter().take_while(|doing| doing.place < place).count();
                return running.end(stays);
            }
            if let Err(error) = self.act(running.writer.run(), index, doing, new.kind) {
                return Err(running.give_up(&while_doing(&error, place, total)));
            }
            running.done = index + 1;
            running.writer.did(running.done);
        }
        running.end(doings.len())
    }

    /// What there is to do, and what its inverse will need that only the disk knows.
    fn doings<'c>(&self, change: &'c Change, gives: &[Kept], there: &BTreeSet<SafePath>) -> Result<Vec<Doing<'c>>> {
        let mut doings = Vec::with_capacity(change.actions.len());
        for (place, action) in change.actions.iter().enumerate() {
            let kept = |path: &SafePath| self.sandbox().kept(&origin_of(&change.actions[..place], path));
            let kept = match action {
                Action::MakeFolder { path } if there.contains(path) => continue,
                Action::Move { from, .. } => kept(from)?.name_only(),
                Action::Delete { path, .. } | Action::RemoveFolder { path } => kept(path)?,
                _ => Kept::default(),
            };
            doings.push(Doing { place, action, kept, gives: gives.get(place).cloned().unwrap_or_default() });
        }
        Ok(doings)
    }

    /// Sees to it that all is as it was read. Returns folders to be made that are there by now.
    fn check_disk(&self, change: &Change) -> Result<BTreeSet<SafePath>> {
        for (path, hash) in &change.reads {
            if self.sandbox().found(path)? != Found::File(*hash) {
                return Err(Error::conflict(path, "changed since it was read"));
            }
        }
        change.seen.check(self)?;
        let mut made_by_now = BTreeSet::new();
        let steps: Vec<Step> = change.actions.iter().map(Step::of).collect();
        for (path, expected) in expected(&steps, 0) {
            let found = self.sandbox().found(&path)?;
            if expected.is_met_by(found) {
                continue;
            }
            let touches = |action: &&Action| {
                let (first, second) = action.paths();
                *first == path || second == Some(&path)
            };
            let first = change.actions.iter().find(touches);
            if found == Found::Folder && matches!(first, Some(Action::MakeFolder { .. })) {
                made_by_now.insert(path);
                continue;
            }
            let what = match (expected, found) {
                (Expected::Nothing, _) => "is there by now",
                (_, Found::Nothing) => "is gone since it was read",
                _ => "changed since it was read",
            };
            return Err(Error::conflict(&path, what));
        }
        Ok(made_by_now)
    }

    /// Does one action.
    fn act(&self, run: RunId, index: usize, doing: &Doing<'_>, kind: RunKind) -> Result<()> {
        let sandbox = self.sandbox();
        let temporary = temporary(run, index);
        match doing.action {
            Action::MakeFolder { path } => sandbox.make_folder(path, &doing.gives),
            Action::RemoveFolder { path } => match sandbox.remove_folder(path)? {
                // A folder that is to be deleted was empty when it was shown; one that is only taken back may stay.
                false if kind == RunKind::Apply => Err(Error::conflict(path, "is not empty by now")),
                _ => Ok(()),
            },
            Action::Create { path, content } => sandbox.create(path, content, &temporary, &doing.gives),
            Action::Edit { path, before, after } => {
                self.is_still(path, before)?;
                sandbox.replace(path, after, &temporary)
            }
            Action::Move { from, to } => sandbox.rename(from, to, &doing.gives),
            Action::Delete { path, content, to } => {
                self.is_still(path, content)?;
                match to {
                    Gone::ForGood => sandbox.remove_file(path),
                    Gone::SystemTrash => sandbox.to_system_trash(path),
                }
            }
        }
    }

    fn is_still(&self, path: &SafePath, content: &Content) -> Result<()> {
        match self.sandbox().found(path)? {
            Found::File(hash) if hash == content.hash() => Ok(()),
            _ => Err(Error::conflict(path, "changed since it was read")),
        }
    }
}

/// One action of a run.
struct Doing<'c> {
    /// Where it stands in the change.
    place: usize,
    action: &'c Action,
    /// What its inverse gives back.
    kept: Kept,
    /// What it gives back itself.
    gives: Kept,
}

/// A run that has begun.
struct Running<'r> {
    vault: &'r Vault,
    writer: Writer<'r>,
    doings: &'r [Doing<'r>],
    /// How many actions are done.
    done: usize,
}

impl Running<'_> {
    /// Ends it, so that the first `stays` actions are done and no others. If the disk does not take that, none is.
    fn end(mut self, stays: usize) -> Result<Run> {
        let put_back = if stays < self.done { self.put_back(stays)? } else { PutBack::default() };
        let paths = self.doings[..stays].iter().flat_map(|doing| {
            let (path, to) = doing.action.paths();
            [Some(path), to]
        });
        // The run counts as done only when what it wrote is on the disk.
        let ending = if stays == 0 { Ending::RolledBack } else { Ending::Done(stays) };
        let synced = self.vault.sandbox().sync(paths.flatten());
        if let Err(error) = synced.and_then(|()| self.writer.end(ending)) {
            let told = Error::new(error.kind(), "what was done could not be made to last, and all was put back");
            return Err(self.give_up(&told.because(&error)));
        }
        let stopped = stays < self.doings.len();
        let id = if stays == 0 { RunId(0) } else { self.writer.run() };
        Ok(Run { id, done: stays, stopped, lost: put_back.left })
    }

    /// Puts back all that was done, because of an error. Returns what is told of it.
    fn give_up(&mut self, error: &Error) -> Error {
        match self.put_back(0) {
            Err(second) => {
                let remedy = "open the vault again when the disk is in order; the rest is put back then";
                let path = error.path().unwrap_or_default().to_string();
                let text = format!("{}; but that failed, too: {second}", error.message());
                let told = Error::new(ErrorKind::Io, text).remedy(remedy);
                if path.is_empty() { told } else { told.at(path) }
            }
            Ok(put_back) => {
                // If this cannot be written either, the next start finds that nothing is left to be put back.
                let _ = self.writer.end(Ending::RolledBack);
                match put_back.left.as_slice() {
                    [] => error.clone(),
                    left => error.clone().remedy(format!("left as it is: {}", left.join("; "))),
                }
            }
        }
    }

    /// Puts back what was done from an action on.
    fn put_back(&mut self, from: usize) -> Result<PutBack> {
        let inverses: Vec<Inverse> =
            self.doings[..self.done].iter().map(|doing| Inverse::of(doing.action, &doing.kept)).collect();
        let done = self.vault.put_back(self.writer.run(), &inverses, from..self.done)?;
        self.done = from;
        Ok(done)
    }
}

/// The file beside a note in which its new content is gathered. Hidden, so that neither links nor tools see it.
pub(super) fn temporary(run: RunId, index: usize) -> String {
    format!(".vault-tools-{run}-{index}.tmp")
}

/// Says where in a run something failed.
fn while_doing(error: &Error, index: usize, total: usize) -> Error {
    let text = format!("action {} of {total} failed, and all was put back", index + 1);
    let mut told = Error::new(error.kind(), text).because(error.message());
    if let Some(path) = error.path() {
        told = told.at(path);
    }
    match error.remedy_text() {
        // Theirs may say that nothing was done, which is so again.
        Some(remedy) => told.remedy(remedy),
        None => told,
    }
}
