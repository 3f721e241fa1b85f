//! Rolls back a transaction that a crash interrupted, so that the vault is restored to its state before it.
//!
//! How far it had progressed is determined from the disk: at one point of it, all paths it concerns are as expected. A
//! rollback passes through points of the same transaction, so it can itself be interrupted and restarted.
//!
//! It is rolled back automatically only if that is certainly right: the journal is undamaged, all files of the
//! transaction are as some point of it left them, and no other file of the vault was edited since it began. Otherwise,
//! for example, a journal that was restored from a backup would revert a transaction that finished long ago.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::apply::{Rollback, temporary};
use super::expected_disk::{ExpectedPaths, ExpectedState};
use super::inverse::is_torn;
use crate::action::Action;
use crate::error::{Error, ErrorKind, Result};
use crate::journal::{self, EntryState, JournalEntry, TransactionId, Writer};
use crate::sandbox::{EntryKind, PathState, SafePath, View};
use crate::store::VaultStore;

/// How to recover an interrupted transaction that is not rolled back automatically.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecoveryMode {
    /// Files that are as the transaction left them are restored; others stay unchanged.
    RollBack,
    /// All files stay unchanged. The transaction can be undone later.
    Keep,
}

/// The result of a recovery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RecoveryReport {
    /// The transaction that was rolled back, or kept.
    #[serde(rename = "transaction")]
    pub id: TransactionId,
    /// Its label.
    pub label: String,
    /// How many of its actions were reverted.
    pub rolled_back: usize,
    /// Files that were left unchanged, each with the reason: somebody changed it after the crash, or the journal is
    /// damaged.
    pub left: Vec<String>,
}

impl VaultStore {
    /// Rolls back the interrupted transaction, if there is one. The caller holds the lock.
    ///
    /// # Errors
    /// [`ErrorKind::Journal`] if a person has to decide.
    pub(crate) fn recover_before_change(&self) -> Result<Option<RecoveryReport>> {
        let unfinished = match journal::unfinished(&self.state) {
            Err(error) if error.kind() == ErrorKind::Journal => {
                journal::repair(&self.state)?;
                journal::unfinished(&self.state)?
            }
            unfinished => unfinished?,
        };
        match unfinished {
            Some(entry) => self.recover_unasked(entry).map(Some),
            None => Ok(None),
        }
    }

    /// Returns whether there is anything to recover. Takes constant time.
    pub(crate) fn needs_recovery(&self) -> Result<bool> {
        Ok(journal::unfinished(&self.state)?.is_some())
    }

    /// Like [`Self::recover_before_change`], for opening a vault: a journal that cannot be read is left unchanged.
    pub(crate) fn recover_on_open(&self) -> Result<Option<RecoveryReport>> {
        if !self.needs_recovery()? {
            return Ok(None);
        }
        let _lock = self.lock()?;
        self.recover_before_change()
    }

    /// Recovers in the way that a person chose.
    pub(crate) fn recover(&self, how: RecoveryMode) -> Result<Option<RecoveryReport>> {
        let _lock = self.lock()?;
        journal::repair(&self.state)?;
        let Some(entry) = journal::unfinished(&self.state)? else { return Ok(None) };
        match how {
            RecoveryMode::RollBack => self.roll_back_interrupted(entry).map(Some),
            RecoveryMode::Keep => self.keep_interrupted(entry).map(Some),
        }
    }

    fn recover_unasked(&self, entry: JournalEntry) -> Result<RecoveryReport> {
        if let Some(why) = self.reason_to_ask(&entry)? {
            let what = format!("the transaction {} ({}) was interrupted, and {why}", entry.id, entry.label);
            return Err(Error::new(ErrorKind::Journal, what).with_remedy(
                "nothing is changed until you decide: `vault-tools undo --recover` rolls it back, \
                 `vault-tools undo --keep` leaves all files as they are",
            ));
        }
        self.roll_back_interrupted(entry)
    }

    /// Returns the reason that an interrupted transaction is not rolled back automatically.
    fn reason_to_ask(&self, entry: &JournalEntry) -> Result<Option<String>> {
        if entry.state == EntryState::Suspect || entry.is_damaged || journal::has_damage(&self.state)? {
            return Ok(Some("the journal is damaged".to_owned()));
        }
        if let (_, Some(path)) = self.point_of(entry)? {
            return Ok(Some(format!("{path} was edited after it")));
        }
        Ok(self.edited_since(entry)?.map(|path| format!("{path} was written after it began")))
    }

    /// Returns a file that the transaction does not concern and that was written after it began.
    fn edited_since(&self, entry: &JournalEntry) -> Result<Option<SafePath>> {
        let is_own = |path: &SafePath| {
            entry.actions.iter().any(|action| match &action.outline {
                Action::Move { from, to } => path.is_in(from) || path.is_in(to),
                outline => outline.paths().0 == path,
            })
        };
        let later = self.sandbox.walk(None)?.into_iter().find(|other| {
            other.stat.kind == EntryKind::File
                && other.stat.modified.is_some_and(|modified| modified > entry.time())
                && !is_own(&other.path)
        });
        Ok(later.map(|entry| entry.path))
    }

    fn roll_back_interrupted(&self, entry: JournalEntry) -> Result<RecoveryReport> {
        let (id, label) = (entry.id, entry.label.clone());
        match self.try_roll_back(entry) {
            Ok(Rollback { reverted, left }) => {
                ::log::info!("transaction {id} was interrupted and is rolled back: {reverted} actions");
                Ok(RecoveryReport { id, label, rolled_back: reverted, left })
            }
            Err(error) => {
                let what = format!("the transaction {id} ({label}) was interrupted and could not be rolled back");
                Err(Error::new(ErrorKind::Journal, what).because(&error).with_remedy(
                    "make sure that the vault and its journal can be written, and try again; \
                     until then nothing is changed",
                ))
            }
        }
    }

    fn try_roll_back(&self, entry: JournalEntry) -> Result<Rollback> {
        let mut writer = Writer::resume(&self.state, entry)?;
        let entry = &writer.entry;
        self.index.mark_stale();
        if entry.is_damaged {
            // The damaged record does not tell what it had done.
            let all = "whatever it changed: its record is damaged".to_owned();
            let known = entry.actions.iter().map(|action| format!("{}: perhaps one of them", action.outline.paths().0));
            let left = std::iter::once(all).chain(known).collect();
            writer.end(EntryState::Done, 0)?;
            return Ok(Rollback { reverted: 0, left });
        }
        self.remove_temporaries(entry)?;
        let (done, _) = self.point_of(entry)?;
        let mut contents = journal::contents(&self.state, entry)?;
        contents.truncate(done);
        let rollback = self.roll_back(entry.id, &entry.actions[..done], contents)?;
        writer.end(EntryState::RolledBack, 0)?;
        Ok(rollback)
    }

    fn keep_interrupted(&self, entry: JournalEntry) -> Result<RecoveryReport> {
        let mut writer = Writer::resume(&self.state, entry)?;
        self.remove_temporaries(&writer.entry)?;
        let (done, _) = self.point_of(&writer.entry)?;
        writer.end(if done == 0 { EntryState::RolledBack } else { EntryState::Done }, done)?;
        let JournalEntry { id, label, .. } = writer.entry;
        Ok(RecoveryReport { id, label, rolled_back: 0, left: Vec::new() })
    }

    fn remove_temporaries(&self, entry: &JournalEntry) -> Result<()> {
        let moves: Vec<_> = entry.actions.iter().filter_map(|action| action.outline.moved()).collect();
        // Beside each file, at every path that a move could have given it.
        let paths = entry.actions.iter().map(|action| action.outline.paths().0).flat_map(|path| {
            let moved = moves.iter().filter_map(|(from, to)| path.moved(from, to));
            moved.chain([path.clone()]).collect::<Vec<SafePath>>()
        });
        paths
            .collect::<BTreeSet<_>>()
            .iter()
            .try_for_each(|path| self.sandbox.remove_temporary(path, &temporary(entry.id)))
    }

    /// Returns how many actions were done when the transaction was interrupted, and a path that is not as expected at
    /// that point. If several points match, the last one is taken, because reverting an action that was not done does
    /// no harm.
    fn point_of(&self, entry: &JournalEntry) -> Result<(usize, Option<SafePath>)> {
        let mut expected = ExpectedPaths::after(entry.actions.iter().map(|action| &action.outline));
        let mut on_disk = BTreeMap::new();
        let mut is_met = |path: &SafePath, expected: ExpectedState| -> Result<bool> {
            let found = match on_disk.get(path) {
                Some(found) => *found,
                None => *on_disk.entry(path.clone()).or_insert(self.sandbox.found(path)?),
            };
            Ok(expected.is_met_by(found)
                || matches!((expected, found), (ExpectedState::File(_), PathState::File(_)))
                    && is_torn(&self.sandbox.read(path)?))
        };
        let mut differing = BTreeSet::new();
        let mut changed: Vec<SafePath> = expected.0.keys().cloned().collect();
        let mut best: Option<(usize, usize, Option<SafePath>)> = None;
        for done in (0..=entry.actions.len()).rev() {
            for path in changed {
                match expected.0.get(&path) {
                    Some(expected) if !is_met(&path, *expected)? => differing.insert(path),
                    _ => differing.remove(&path),
                };
            }
            // Files were changed since. The point with the fewest differences is taken, and the differing files are
            // left unchanged.
            if best.as_ref().is_none_or(|(least, ..)| differing.len() < *least) {
                best = Some((differing.len(), done, differing.first().cloned()));
            }
            let Some(before) = done.checked_sub(1).filter(|_| !differing.is_empty()) else { break };
            changed = expected.step_back(&entry.actions[before].outline);
        }
        Ok(best.map_or((0, None), |(_, done, path)| (done, path)))
    }
}
