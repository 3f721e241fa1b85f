//! Undoes a whole transaction, or an undo: each is a separate transaction that consists of inverses.

use std::collections::{BTreeMap, BTreeSet};

use super::apply::Transaction;
use super::expected_disk::{ExpectedPaths, ExpectedState};
use super::inverse::{Force, Inverses};
use crate::action::Action;
use crate::change::Change;
use crate::error::{Error, ErrorKind, Result};
use crate::host::OpenEditors;
use crate::journal::{self, EntryState, JournalAction, JournalEntry, NewTransaction, TransactionId, TransactionKind};
use crate::sandbox::{PathState, SavedMetadata};
use crate::store::{IndexUse, VaultStore};

/// The maximum number of files that an error lists.
const NAMED: usize = 8;

/// The number of transactions that an error lists.
const NEWEST: usize = 5;

/// The actions that undo a transaction.
pub(crate) struct PreparedUndo {
    new: NewTransaction,
    change: Change,
    /// For each action, the metadata for the file or folder that it creates or moves.
    restore: Vec<SavedMetadata>,
    lost: Vec<String>,
}

impl VaultStore {
    /// Returns the change that an undo would make, with notices about what it loses.
    pub(crate) fn preview_of(&self, undoing: PreparedUndo) -> Change {
        let PreparedUndo { mut change, lost, .. } = undoing;
        change.notices.extend(lost.into_iter().map(|what| format!("lost: {what}").into()));
        let links = self.links_left(&change);
        change.notices.extend(links.iter().take(NAMED).cloned().map(Into::into));
        if links.len() > NAMED {
            change.notices.push(format!("and {} more such links", links.len() - NAMED).into());
        }
        change
    }

    /// Returns the links that were added since to files that the undo removes. The undo does not change these links,
    /// because it only restores the earlier state. They are found by the index only; without an index, there are no
    /// notices.
    fn links_left(&self, change: &Change) -> Vec<String> {
        let mut gone = Vec::new();
        for (index, action) in change.actions.iter().enumerate() {
            let path = action.paths().0;
            if matches!(action, Action::Move { .. } | Action::Delete { .. }) {
                gone.extend(change.carried.get(&index).map_or(std::slice::from_ref(path), |carried| &carried.files));
            }
        }
        let index = match self.index.uses {
            IndexUse::Index if !gone.is_empty() => self.index.current(),
            _ => return Vec::new(),
        };
        let Ok(index) = index else { return Vec::new() };
        // The links in these files are restored too, or the files themselves are removed.
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

    /// Applies a prepared undo.
    pub(crate) fn apply_undo(
        &self,
        undoing: PreparedUndo,
        editors: Option<Box<dyn OpenEditors>>,
    ) -> Result<Transaction> {
        let PreparedUndo { new, change, restore, lost } = undoing;
        let done = self.apply(&new, &change, &restore, None, editors)?;
        Ok(Transaction { lost: [lost, done.lost].concat(), ..done })
    }

    /// Prepares the undo of a transaction: the newest that is not undone yet, or the given one.
    pub(crate) fn undoing(&self, wanted: Option<TransactionId>, force: Force) -> Result<PreparedUndo> {
        let (entries, lost) = self.ended_transactions()?;
        let chains = chains(&entries);
        let last = match wanted {
            Some(wanted) => {
                let entry = entries.iter().find(|entry| entry.id == wanted);
                let entry = entry.ok_or_else(|| no_transaction(wanted, &chains))?;
                let last = chains.get(&entry.root()).copied().unwrap_or(entry);
                if (entry.kind == TransactionKind::Undo) != (last.kind == TransactionKind::Undo) {
                    let what = format!("transaction {wanted} is undone already, by transaction {}", last.id);
                    return Err(not_found(what));
                }
                last
            }
            None => chains
                .values()
                .copied()
                .rfind(|last| last.kind != TransactionKind::Undo)
                .ok_or_else(|| not_found("there is no transaction that could be undone".to_owned()))?,
        };
        self.inverse(last, force, lost)
    }

    /// Prepares the undo of the newest undo.
    pub(crate) fn redoing(&self, force: Force) -> Result<PreparedUndo> {
        let (entries, lost) = self.ended_transactions()?;
        let chains = chains(&entries);
        let undone = chains.values().filter(|last| last.kind == TransactionKind::Undo);
        let newest = undone.max_by_key(|last| last.id);
        self.inverse(newest.ok_or_else(|| not_found("there is nothing to redo".to_owned()))?, force, lost)
    }

    /// Refuses an undo or redo if another process has done it since it was prepared. Comparing the files is not enough,
    /// because an undo of which nothing is left to do still counts as done.
    pub(super) fn check_still_last(&self, new: &NewTransaction) -> Result<()> {
        let Some(root) = new.of else { return Ok(()) };
        let (entries, _) = journal::entries(&self.state)?;
        let mut chain =
            entries.iter().rev().filter(|entry| entry.state != EntryState::RolledBack && entry.root() == root);
        match chain.next() {
            Some(last) if (last.kind == TransactionKind::Undo) == (new.kind == TransactionKind::Undo) => {
                let how = if new.kind == TransactionKind::Undo { "undone" } else { "redone" };
                let what = format!("transaction {root} was {how} meanwhile, by transaction {}", last.id);
                Err(Error::new(ErrorKind::Conflict, what).with_remedy("nothing was done"))
            }
            _ => Ok(()),
        }
    }

    /// Returns the transactions that were not rolled back, and notices about those that a damaged journal lost.
    fn ended_transactions(&self) -> Result<(Vec<JournalEntry>, Vec<String>)> {
        let (mut entries, has_damage) = journal::entries(&self.state)?;
        if has_damage || self.needs_recovery()? {
            let _lock = self.lock()?;
            journal::repair(&self.state)?;
            self.recover_before_change()?;
            entries = journal::entries(&self.state)?.0;
        }
        entries.retain(|entry| entry.state != EntryState::RolledBack);
        let lost = "transactions that the journal no longer has, since it was damaged, cannot be undone";
        Ok((entries, has_damage.then(|| lost.to_owned()).into_iter().collect()))
    }

    /// Computes the actions that undo the last transaction of a chain: an undo, or the undo of one, which is a redo.
    /// They are computed on an overlay, because one may need the result of another.
    fn inverse(&self, entry: &JournalEntry, force: Force, mut lost: Vec<String>) -> Result<PreparedUndo> {
        let root = entry.root();
        if entry.is_damaged {
            return Err(journal::damaged(&self.state, format!("it does not contain all of transaction {}", entry.id)));
        }
        let actions = &entry.actions[..entry.done.min(entry.actions.len())];
        let changed = self.changed_since(actions)?;
        if force == Force::No && !changed.is_empty() {
            let mut named: Vec<String> = changed.iter().take(NAMED).cloned().collect();
            if changed.len() > NAMED {
                named.push(format!("and {} more", changed.len() - NAMED));
            }
            return Err(Error::new(
                ErrorKind::Conflict,
                format!(
                    "transaction {} cannot be undone, since files changed after it: {}",
                    entry.id,
                    named.join("; ")
                ),
            )
            .with_remedy("nothing was done, so that these later changes are not lost"));
        }
        let mut contents = journal::contents(&self.state, entry)?;
        contents.truncate(actions.len());
        if !journal::has_all(actions, &contents) {
            let what = format!("it does not contain all that transaction {} removed", entry.id);
            return Err(journal::damaged(&self.state, what));
        }
        let Inverses { now, restore, left, .. } = Inverses::of(self, actions, contents, force)?;
        let mut change = now.change();
        if change.is_empty() && !left.is_empty() {
            let what = format!("nothing of transaction {} can be undone any more: {}", entry.id, left.join("; "));
            return Err(Error::new(ErrorKind::Conflict, what).with_remedy("nothing was done"));
        }
        // The actions contain all that the inverses need; nothing else was read.
        change.reads.clear();
        lost.extend(left);
        let (kind, word) = if entry.kind == TransactionKind::Undo {
            (TransactionKind::Redo, "redo")
        } else {
            (TransactionKind::Undo, "undo")
        };
        let new = NewTransaction { label: format!("{word} {root}: {}", root_label(entry)), kind, of: Some(root) };
        Ok(PreparedUndo { new, change, restore, lost })
    }

    /// Lists the files that differ from the state after the transaction, and how they differ.
    fn changed_since(&self, actions: &[JournalAction]) -> Result<Vec<String>> {
        let mut changed = Vec::new();
        let expected = ExpectedPaths::after(actions.iter().map(|action| &action.outline));
        for (path, expected, found) in self.unmet(expected)? {
            // A folder that the transaction created may be gone, and one with new files in it stays.
            if expected == ExpectedState::Folder && found == PathState::Nothing {
                continue;
            }
            let how = match (expected, found) {
                (ExpectedState::Nothing, _) => "is there again",
                (_, PathState::Nothing) => "is gone",
                _ => "was changed",
            };
            changed.push(format!("{path} {how}"));
        }
        Ok(changed)
    }
}

/// Returns each transaction that is or was in effect, with the last of the transactions that applied, undid and redid
/// it.
fn chains(entries: &[JournalEntry]) -> BTreeMap<TransactionId, &JournalEntry> {
    let mut chains = BTreeMap::new();
    for entry in entries {
        chains.insert(entry.root(), entry);
    }
    chains
}

/// Returns the label of the first transaction of its chain.
fn root_label(entry: &JournalEntry) -> &str {
    match entry.kind {
        TransactionKind::Apply => &entry.label,
        _ => entry.label.split_once(": ").map_or(entry.label.as_str(), |(_, label)| label),
    }
}

fn not_found(what: String) -> Error {
    Error::new(ErrorKind::NotFound, what)
}

/// Returns the error for a number that no transaction has, with the newest ones that can be undone.
fn no_transaction(wanted: TransactionId, chains: &BTreeMap<TransactionId, &JournalEntry>) -> Error {
    let in_effect = chains.values().rev().filter(|last| last.kind != TransactionKind::Undo);
    let newest: Vec<String> =
        in_effect.take(NEWEST).map(|last| format!("{} ({})", last.root(), root_label(last))).collect();
    let error = not_found(format!("there is no transaction {wanted}"));
    match newest.is_empty() {
        true => error.with_remedy("no transaction can be undone"),
        false => error.with_remedy(format!("the newest are {}", newest.join(", "))),
    }
}
