//! A transaction that a crash interrupted is rolled back, so that the vault is as it was before it.
//!
//! How far it had come is read off the disk: at one point of it, all paths it touches are as that point expects. The
//! journal says where to look first. Rolling back goes through points of the same transaction, so it may be interrupted
//! itself and begun again.
//!
//! It is rolled back unasked only where that is certainly right: the journal is undamaged, all files of the transaction
//! are as some point of it left them, and no other file of the vault was edited since it began. A journal that was
//! restored from a backup would otherwise undo what is long settled.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::expected::{ActionOutline, Expected, expected};
use super::rollback::{Inverse, Rollback, temporary};
use crate::error::{Error, ErrorKind, Result};
use crate::journal::{self, Ending, EntryState, JournalEntry, TransactionId, Writer};
use crate::sandbox::{EntryKind, Found, SafePath, View};
use crate::store::VaultStore;

/// What becomes of an interrupted transaction that is not rolled back unasked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recover {
    /// The files that are as it left them get back what they were; others stay as they are.
    RollBack,
    /// All files stay as they are. It can be undone later.
    Keep,
}

/// What a recovery did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Recovered {
    /// The transaction that was rolled back, or kept.
    #[serde(rename = "run")]
    pub id: TransactionId,
    /// Its label.
    pub label: String,
    /// How many of its actions were reverted.
    #[serde(rename = "taken_back")]
    pub reverted: usize,
    /// Files that were left as they are, each with the reason: somebody changed it after the crash, or the journal is
    /// damaged.
    pub left: Vec<String>,
}

impl VaultStore {
    /// Rolls back the transaction that was interrupted, if there is one. The lock is held.
    ///
    /// # Errors
    /// [`ErrorKind::Journal`] where somebody has to decide.
    pub(crate) fn recover_before_change(&self) -> Result<Option<Recovered>> {
        journal::take_over(&self.state)?;
        let unfinished = match journal::unfinished(&self.state) {
            Err(error) if error.kind() == ErrorKind::Journal => {
                journal::repair(&self.state)?;
                journal::unfinished(&self.state)?
            }
            unfinished => unfinished?,
        };
        match unfinished {
            Some(entry) => self.recover_unasked(&entry).map(Some),
            None => Ok(None),
        }
    }

    /// Whether there is anything to recover, or an old journal to take over. In constant time.
    pub(crate) fn needs_recovery(&self) -> Result<bool> {
        Ok(self.state.has(journal::LEGACY_FILE) || journal::unfinished(&self.state)?.is_some())
    }

    /// The same when a vault is opened: a damaged journal stays as it is.
    pub(crate) fn recover_on_open(&self) -> Result<Option<Recovered>> {
        if !self.needs_recovery()? {
            return Ok(None);
        }
        let _lock = self.lock()?;
        journal::take_over(&self.state)?;
        match journal::unfinished(&self.state)? {
            Some(entry) => self.recover_unasked(&entry).map(Some),
            None => Ok(None),
        }
    }

    /// Recovers as somebody decided.
    pub(crate) fn recover(&self, how: Recover) -> Result<Option<Recovered>> {
        let _lock = self.lock()?;
        journal::take_over(&self.state)?;
        journal::repair(&self.state)?;
        let Some(entry) = journal::unfinished(&self.state)? else { return Ok(None) };
        match how {
            Recover::RollBack => self.roll_back_interrupted(&entry).map(Some),
            Recover::Keep => self.keep_interrupted(&entry).map(Some),
        }
    }

    fn recover_unasked(&self, entry: &JournalEntry) -> Result<Recovered> {
        if let Some(why) = self.reason_to_ask(entry)? {
            let what = format!("the transaction {} ({}) was interrupted, and {why}", entry.id, entry.label);
            return Err(Error::new(ErrorKind::Journal, what).with_remedy(
                "nothing is changed until you decide: `vault-tools undo --recover` rolls it back, \
                 `vault-tools undo --keep` leaves all files as they are",
            ));
        }
        self.roll_back_interrupted(entry)
    }

    /// Why an interrupted transaction is not rolled back unasked.
    fn reason_to_ask(&self, entry: &JournalEntry) -> Result<Option<String>> {
        if entry.state == EntryState::Suspect || entry.is_damaged || !journal::is_whole(&self.state)? {
            return Ok(Some("the journal is damaged".to_owned()));
        }
        let outlines: Vec<ActionOutline> = entry.actions.iter().filter_map(ActionOutline::logged).collect();
        let (_, differing) = self.point_of(entry, &outlines)?;
        if let Some(path) = differing {
            return Ok(Some(format!("{path} was edited after it")));
        }
        Ok(self.edited_since(entry)?.map(|path| format!("{path} was written after it began")))
    }

    /// A file that the transaction does not touch and that was written after it began.
    fn edited_since(&self, entry: &JournalEntry) -> Result<Option<SafePath>> {
        let own: Vec<&SafePath> =
            entry.actions.iter().flat_map(|action| [Some(&action.path), action.to.as_ref()]).flatten().collect();
        let exact: BTreeSet<&SafePath> = own.iter().copied().collect();
        let folders: Vec<&SafePath> = entry
            .actions
            .iter()
            .filter(|action| action.to.is_some())
            .flat_map(|action| [Some(&action.path), action.to.as_ref()])
            .flatten()
            .collect();
        let is_own = |path: &SafePath| exact.contains(path) || folders.iter().any(|folder| path.is_in(folder));
        let later = self.sandbox.walk(None)?.into_iter().find(|other| {
            other.stat.kind == EntryKind::File
                && other.stat.modified.is_some_and(|modified| modified > entry.time)
                && !is_own(&other.path)
        });
        Ok(later.map(|entry| entry.path))
    }

    fn roll_back_interrupted(&self, entry: &JournalEntry) -> Result<Recovered> {
        self.try_roll_back(entry)
            .inspect(|done| {
                ::log::info!("transaction {} was interrupted and is rolled back: {} actions", done.id, done.reverted);
            })
            .map_err(|error| {
                let what = format!(
                    "the transaction {} ({}) was interrupted and could not be rolled back",
                    entry.id, entry.label
                );
                Error::new(ErrorKind::Journal, what).because(&error).with_remedy(
                    "see to it that the vault and the journal beside it can be written, and try again; \
                 until then nothing is changed",
                )
            })
    }

    fn try_roll_back(&self, entry: &JournalEntry) -> Result<Recovered> {
        let mut writer = Writer::resume(&self.state, entry)?;
        self.index.mark_stale();
        let recovered = |done: Rollback| {
            let Rollback { reverted, left } = done;
            Recovered { id: entry.id, label: entry.label.clone(), reverted, left }
        };
        let Some(inverses) = self.inverses(entry)? else {
            // What it had done cannot be known from what is left of its record.
            let all = format!("whatever it changed: its record is damaged, of which {} actions were done", entry.done);
            let known = entry.actions.iter().map(|action| format!("{}: perhaps one of them", action.path));
            let left = std::iter::once(all).chain(known).collect();
            writer.end(Ending::Done(entry.done))?;
            return Ok(recovered(Rollback { reverted: 0, left }));
        };
        self.remove_temporaries(entry)?;
        let outlines: Vec<ActionOutline> = inverses.iter().map(|inverse| inverse.outline.clone()).collect();
        let (done, _) = self.point_of(entry, &outlines)?;
        let rollback = self.roll_back(entry.id, &inverses, 0..done)?;
        writer.end(Ending::RolledBack)?;
        Ok(recovered(rollback))
    }

    fn keep_interrupted(&self, entry: &JournalEntry) -> Result<Recovered> {
        let mut writer = Writer::resume(&self.state, entry)?;
        self.remove_temporaries(entry)?;
        let outlines: Vec<ActionOutline> = entry.actions.iter().filter_map(ActionOutline::logged).collect();
        let (done, _) = self.point_of(entry, &outlines)?;
        writer.end(if done == 0 { Ending::RolledBack } else { Ending::Done(done) })?;
        Ok(Recovered { id: entry.id, label: entry.label.clone(), reverted: 0, left: Vec::new() })
    }

    /// What reverts each action; `None` for a transaction whose record is damaged.
    fn inverses(&self, entry: &JournalEntry) -> Result<Option<Vec<Inverse>>> {
        if entry.is_damaged {
            return Ok(None);
        }
        let mut inverses = Vec::with_capacity(entry.actions.len());
        for action in &entry.actions {
            let Some(outline) = ActionOutline::logged(action) else { return Ok(None) };
            let content = match outline {
                ActionOutline::Edit(..) | ActionOutline::Delete(..) => match journal::content_of(&self.state, action) {
                    // It may not be needed; if it is, that is reported.
                    Err(error) if error.kind() == ErrorKind::Journal => None,
                    content => Some(content?),
                },
                _ => None,
            };
            inverses.push(Inverse { outline, content, saved: action.saved.clone() });
        }
        Ok(Some(inverses))
    }

    fn remove_temporaries(&self, entry: &JournalEntry) -> Result<()> {
        for (index, action) in entry.actions.iter().enumerate() {
            // Beside where the file is, wherever a move had brought its folder.
            let mut paths = vec![action.path.clone()];
            paths.extend(entry.actions.iter().filter_map(|other| action.path.moved(&other.path, other.to.as_ref()?)));
            for path in paths {
                self.sandbox.remove_temporary(&path, &temporary(entry.id, index))?;
            }
        }
        Ok(())
    }

    /// How many actions were done when the transaction was interrupted, and a path that is not as expected then.
    fn point_of(&self, entry: &JournalEntry, outlines: &[ActionOutline]) -> Result<(usize, Option<SafePath>)> {
        let known = entry.done.min(outlines.len());
        // A rollback that was interrupted has come from there downwards.
        let near = [known + 1, known].into_iter().filter(|done| *done <= outlines.len());
        let mut best: Option<(usize, usize, SafePath)> = None;
        // Each file is read once, however many points are compared with it.
        let (mut on_disk, mut torn) = (BTreeMap::new(), BTreeMap::new());
        for done in near.chain((0..known).rev()).chain(known + 2..=outlines.len()) {
            let mut differing = Vec::new();
            for (path, expected) in expected(outlines, done) {
                let found = match on_disk.get(&path) {
                    Some(found) => *found,
                    None => *on_disk.entry(path.clone()).or_insert(self.sandbox.found(&path)?),
                };
                let is_met = expected.is_met_by(found)
                    || matches!((expected, found), (Expected::File(_), Found::File(_)))
                        && match torn.get(&path) {
                            Some(is_torn) => *is_torn,
                            None => *torn.entry(path.clone()).or_insert(self.is_torn(&path)?),
                        };
                if !is_met {
                    differing.push(path);
                }
            }
            let count = differing.len();
            let Some(first) = differing.into_iter().next() else { return Ok((done, None)) };
            if best.as_ref().is_none_or(|(least, at, _)| (count, done) < (*least, *at)) {
                best = Some((count, done, first));
            }
        }
        // Somebody changed files since. Where most is as expected, the rest is left alone.
        Ok(best.map_or((known, None), |(_, done, path)| (done, Some(path))))
    }
}
