//! A run taken back as a whole, and an undo taken back: each is a run of its own, made of inverses.

use std::collections::{BTreeMap, BTreeSet};

use crate::action::{Action, Gone};
use crate::change::expected::{Expected, Step, expected};
use crate::change::{Change, IndexUse, Overlay, Run, Vault};
use crate::content::Content;
use crate::error::{Error, ErrorKind, Result};
use crate::journal::{self, Ending, Logged, LoggedAction, NewRun, RunId, RunKind};
use crate::sandbox::{EntryKind, Found, Kept, SafePath, View};

/// Most files that an error names.
const NAMED: usize = 8;

/// What happens to files that changed since.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Force {
    /// Nothing: the undo is refused, and touches no file.
    #[default]
    No,
    /// They are put back all the same, and what is lost is told.
    Yes,
}

/// What takes a run back.
struct Undoing {
    new: NewRun,
    change: Change,
    /// What each action gives back to what it makes or moves.
    gives: Vec<Kept>,
    lost: Vec<String>,
}

impl Vault {
    /// Takes back a run: the newest that is not taken back yet, or the one named.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when there is none; [`ErrorKind::Conflict`] with the files that changed since, none of
    /// which is touched.
    pub fn undo(&self, run: Option<RunId>, force: Force) -> Result<Run> {
        let undoing = self.undoing(run, force)?;
        self.take_back(undoing)
    }

    /// Takes back the newest undo.
    ///
    /// # Errors
    /// As [`Vault::undo`].
    pub fn redo(&self, force: Force) -> Result<Run> {
        let undoing = self.redoing(force)?;
        self.take_back(undoing)
    }

    /// What [`Vault::undo`] would do.
    ///
    /// # Errors
    /// As [`Vault::undo`].
    pub fn preview_undo(&self, run: Option<RunId>, force: Force) -> Result<Change> {
        self.undoing(run, force).map(|undoing| self.shown(undoing))
    }

    /// What [`Vault::redo`] would do.
    ///
    /// # Errors
    /// As [`Vault::undo`].
    pub fn preview_redo(&self, force: Force) -> Result<Change> {
        self.redoing(force).map(|undoing| self.shown(undoing))
    }

    fn shown(&self, undoing: Undoing) -> Change {
        let Undoing { mut change, lost, .. } = undoing;
        change.notices.extend(lost.into_iter().map(|what| format!("lost: {what}").into()));
        let links = self.links_left(&change);
        change.notices.extend(links.iter().take(NAMED).cloned().map(Into::into));
        if links.len() > NAMED {
            change.notices.push(format!("and {} more such links", links.len() - NAMED).into());
        }
        change
    }

    /// Links that were made since, to files that go: undo gives back what was, and touches nothing else. Only the
    /// index can tell; where there is none, nothing is told.
    fn links_left(&self, change: &Change) -> Vec<String> {
        let mut gone = Vec::new();
        for (place, action) in change.actions.iter().enumerate() {
            let path = action.paths().0;
            if matches!(action, Action::Move { .. } | Action::Delete { .. }) {
                gone.extend(change.carried.get(&place).map_or(std::slice::from_ref(path), |carried| &carried.files));
            }
        }
        let index = match self.uses_index() {
            IndexUse::Index if !gone.is_empty() => self.index_of_now(),
            _ => return Vec::new(),
        };
        let Ok(index) = index else { return Vec::new() };
        // Their links are given back too, or they go themselves.
        let mut touched: BTreeSet<&str> = change.actions.iter().map(|action| action.paths().0.as_str()).collect();
        touched.extend(gone.iter().map(|path| path.as_str()));
        let mut links = Vec::new();
        for path in gone {
            let rows = index.backlinks(path.as_str(), 1).unwrap_or_default();
            let left = rows.into_iter().filter(|row| !touched.contains(row.source.as_str()));
            links.extend(left.map(|row| format!("{}, line {}: leads to {path}, which goes", row.source, row.line)));
        }
        links
    }

    fn take_back(&self, undoing: Undoing) -> Result<Run> {
        let Undoing { new, change, gives, lost } = undoing;
        if change.is_empty() {
            // Nothing is left to be done, but the run counts as taken back from now on.
            let _lock = self.lock()?;
            self.recover()?;
            let mut writer = journal::Writer::begin(self.state(), &new, [].into_iter())?;
            writer.end(Ending::Done(0))?;
            return Ok(Run { id: writer.run(), done: 0, stopped: false, lost });
        }
        let run = self.apply_as(&new, &change, &gives, None)?;
        Ok(Run { lost: [lost, run.lost].concat(), ..run })
    }

    fn undoing(&self, wanted: Option<RunId>, force: Force) -> Result<Undoing> {
        let runs = self.runs_that_ended()?;
        let chains = chains(&runs);
        let root = match wanted {
            Some(wanted) => {
                let run = runs.iter().find(|run| run.id == wanted);
                let run = run.ok_or_else(|| no_run(format!("there is no run {wanted}")))?;
                let root = run.of.unwrap_or(run.id);
                let last = chains.get(&root).copied().unwrap_or(run);
                if (run.kind == RunKind::Undo) != (last.kind == RunKind::Undo) {
                    return Err(no_run(format!("run {wanted} is taken back already, by run {}", last.id)));
                }
                root
            }
            None => chains
                .iter()
                .rev()
                .find(|(_, last)| last.kind != RunKind::Undo)
                .map(|(root, _)| *root)
                .ok_or_else(|| no_run("there is no run that could be taken back".to_owned()))?,
        };
        let Some(last) = chains.get(&root) else { return Err(no_run(format!("there is no run {root}"))) };
        self.inverse(root, last, force)
    }

    fn redoing(&self, force: Force) -> Result<Undoing> {
        let runs = self.runs_that_ended()?;
        let chains = chains(&runs);
        let newest = chains.iter().filter(|(_, last)| last.kind == RunKind::Undo).max_by_key(|(_, last)| last.id);
        let Some((root, last)) = newest else { return Err(no_run("there is no undo that could be taken back".into())) };
        self.inverse(*root, last, force)
    }

    fn runs_that_ended(&self) -> Result<Vec<Logged>> {
        self.recover_if_needed()?;
        let mut runs = journal::runs(self.state())?;
        runs.retain(|run| !run.rolled_back);
        Ok(runs)
    }

    /// The actions that take back the last run of a chain: an undo, or the undo of one, which is a redo. They are made
    /// on an overlay, since one may need what another puts there.
    fn inverse(&self, root: RunId, run: &Logged, force: Force) -> Result<Undoing> {
        if run.is_damaged {
            return Err(journal::damaged(self.state(), format!("it does not have all of run {}", run.id)));
        }
        let actions = &run.actions[..run.done.min(run.actions.len())];
        let steps: Vec<Step> = actions.iter().filter_map(Step::logged).collect();
        if steps.len() < actions.len() {
            return Err(Error::new(ErrorKind::Journal, "the run was written by a newer version of this program")
                .remedy("use that version to take it back"));
        }
        let changed = self.changed_since(&steps)?;
        if force == Force::No && !changed.is_empty() {
            let mut named: Vec<String> = changed.iter().take(NAMED).cloned().collect();
            if changed.len() > NAMED {
                named.push(format!("and {} more", changed.len() - NAMED));
            }
            return Err(Error::new(
                ErrorKind::Conflict,
                format!("run {} cannot be taken back, since files changed after it: {}", run.id, named.join("; ")),
            )
            .remedy("nothing was done; with --force it is taken back all the same, and these later changes are lost"));
        }
        let mut back = Backwards { now: self.overlay(), gives: Vec::new(), lost: Vec::new() };
        for (action, step) in actions.iter().zip(steps).rev() {
            let content = match step {
                Step::Edit(..) | Step::Delete(..) => journal::content_of(self.state(), action)?,
                _ => "".into(),
            };
            back.take_back(action, &step, content)?;
        }
        let Backwards { now, gives, lost } = back;
        let mut change = now.change();
        if change.is_empty() && !lost.is_empty() {
            let what = format!("nothing of run {} can be taken back any more: {}", run.id, lost.join("; "));
            return Err(Error::new(ErrorKind::Conflict, what).remedy("nothing was done"));
        }
        // What the inverses need is in them; nothing else was read.
        change.reads.clear();
        let (kind, word) = if run.kind == RunKind::Undo { (RunKind::Redo, "redo") } else { (RunKind::Undo, "undo") };
        let new = NewRun { label: format!("{word} {root}: {}", root_label(run)), kind, of: Some(root) };
        Ok(Undoing { new, change, gives, lost })
    }

    /// The files that are not as the run left them, and how they differ.
    fn changed_since(&self, steps: &[Step]) -> Result<Vec<String>> {
        let mut changed = Vec::new();
        for (path, expected) in expected(steps, steps.len()) {
            let found = self.sandbox().found(&path)?;
            // A folder that the run made may be gone, and one with new files in it stays.
            if expected.is_met_by(found) || (expected == Expected::Folder && found == Found::Nothing) {
                continue;
            }
            let how = match (expected, found) {
                (Expected::Nothing, _) => "is there again",
                (_, Found::Nothing) => "is gone",
                _ => "was changed",
            };
            changed.push(format!("{path} {how}"));
        }
        Ok(changed)
    }
}

/// A run on its way back.
struct Backwards<'v> {
    /// The vault, with what is taken back by now.
    now: Overlay<'v>,
    /// What each action gives back to what it makes or moves.
    gives: Vec<Kept>,
    lost: Vec<String>,
}

impl Backwards<'_> {
    fn push(&mut self, action: Action, gives: &Kept) {
        self.now.push(action);
        self.gives.push(gives.clone());
    }

    /// Adds an action that puts something at a path, and the folders above it that somebody removed since.
    fn push_into(&mut self, path: &SafePath, action: Action, gives: &Kept) -> Result<()> {
        let mut missing = Vec::new();
        let mut above = path.parent();
        while let Some(folder) = above {
            if self.now.is_there(&folder)? {
                break;
            }
            above = folder.parent();
            missing.push(folder);
        }
        for path in missing.into_iter().rev() {
            self.push(Action::MakeFolder { path }, &Kept::default());
        }
        self.push(action, gives);
        Ok(())
    }

    fn file(&self, path: &SafePath) -> Result<Option<Content>> {
        if self.now.is_there(path)? { self.now.read(path).map(Some) } else { Ok(None) }
    }

    /// Adds the inverse of an action as things are now; none when there is nothing left to take back.
    fn take_back(&mut self, action: &LoggedAction, step: &Step, content: Content) -> Result<()> {
        let (path, kept) = (action.path.clone(), &action.kept);
        match step {
            Step::MakeFolder(_) => {
                let stat = self.now.stat(&path)?;
                if stat.is_none_or(|stat| stat.kind != EntryKind::Folder || stat.symlink) {
                    return Ok(());
                }
                let is_empty = self.now.list(Some(&path))?.is_empty() && self.now.unseen(&path)?.is_empty();
                match is_empty {
                    true => self.push(Action::RemoveFolder { path }, kept),
                    false => self.now.notice(format!("the folder {path} stays, since there are other files in it")),
                }
            }
            Step::RemoveFolder(_) => {
                if !self.now.is_there(&path)? {
                    self.push_into(&path, Action::MakeFolder { path: path.clone() }, kept)?;
                }
            }
            Step::Create(_, after) => {
                if let Some(now) = self.file(&path)? {
                    if now.hash() != *after {
                        self.lost.push(format!("{path}: what was changed in it after the run"));
                    }
                    self.push(Action::Delete { path, content: now, to: Gone::ForGood }, kept);
                }
            }
            Step::Edit(_, _, after) => match self.file(&path)? {
                Some(now) => {
                    if now.hash() != *after {
                        self.lost.push(format!("{path}: what was changed in it after the run"));
                    }
                    self.push(Action::Edit { path, before: now, after: content }, kept);
                }
                None => {
                    self.lost.push(format!("{path}: that it was deleted or moved after the run; it is made again"));
                    self.push_into(&path, Action::Create { path: path.clone(), content }, kept)?;
                }
            },
            Step::Move(from, to) => match (self.now.is_there(from)?, self.now.is_there(to)?) {
                (false, true) => {
                    self.push_into(from, Action::Move { from: to.clone(), to: from.clone() }, kept)?;
                }
                (true, _) => self.lost.push(format!("{to} stays where it is: {from} is there again")),
                (false, false) => self.lost.push(format!("{to} is gone and cannot go back to {from}")),
            },
            Step::Delete(..) => match self.file(&path)? {
                None => self.push_into(&path, Action::Create { path: path.clone(), content }, kept)?,
                Some(now) => {
                    self.lost.push(format!("{path}: the file that was made there after the run"));
                    self.push(Action::Edit { path, before: now, after: content }, kept);
                }
            },
        }
        Ok(())
    }
}

/// Each run that is in effect or was, with the last one of those that applied, undid and redid it.
fn chains(runs: &[Logged]) -> BTreeMap<RunId, &Logged> {
    let mut chains = BTreeMap::new();
    for run in runs {
        chains.insert(run.of.unwrap_or(run.id), run);
    }
    chains
}

/// What the run was called before it was undone and redone.
fn root_label(run: &Logged) -> &str {
    match run.kind {
        RunKind::Apply => &run.label,
        _ => run.label.split_once(": ").map_or(run.label.as_str(), |(_, label)| label),
    }
}

fn no_run(what: String) -> Error {
    Error::new(ErrorKind::NotFound, what).remedy("`undo --list` shows all runs")
}
