//! The change that a transaction made, read back from the journal.
//!
//! The journal keeps the contents that a transaction removed, not those that it wrote. A written content is found where a
//! later transaction removed it, else on the disk, if the file has not been edited outside since.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::action::Action;
use crate::change::Change;
use crate::content::{Content, ContentHash};
use crate::error::{Error, ErrorKind, Result};
use crate::journal::{self, EntryState, JournalAction, JournalEntry, TransactionId};
use crate::sandbox::{SafePath, View};
use crate::store::VaultStore;

/// The contents that some transactions removed, read once each.
type RemovedContents = BTreeMap<TransactionId, Vec<Option<Content>>>;

impl VaultStore {
    /// Returns the change that a transaction made. A file whose text is no longer known is listed in a notice instead.
    pub(crate) fn past_change(&self, id: TransactionId) -> Result<Change> {
        let (entries, _) = journal::entries(&self.state)?;
        let at = entries.iter().position(|entry| entry.id == id);
        let at = at.ok_or_else(|| Error::new(ErrorKind::NotFound, format!("there is no transaction {id}")))?;
        let removed = journal::contents(&self.state, &entries[at])?;
        let mut cache = RemovedContents::new();
        let mut change = Change::default();
        for (number, JournalAction { outline, .. }) in done_actions(&entries[at]).iter().enumerate() {
            let before = removed.get(number).cloned().flatten();
            let action = match outline.clone() {
                Action::MakeFolder { path } => Some(Action::MakeFolder { path }),
                Action::RemoveFolder { path } => Some(Action::RemoveFolder { path }),
                Action::Move { from, to } => Some(Action::Move { from, to }),
                Action::Delete { path, mode, .. } => before.map(|content| Action::Delete { path, content, mode }),
                Action::Create { path, content } => {
                    let written = self.written(&entries[at..], number, &path, content, &mut cache)?;
                    written.map(|content| Action::Create { path, content })
                }
                Action::Edit { path, after, .. } => {
                    let written = self.written(&entries[at..], number, &path, after, &mut cache)?;
                    before.zip(written).map(|(before, after)| Action::Edit { path, before, after })
                }
            };
            match action {
                Some(action) => change.actions.push(action),
                None => {
                    let path = outline.paths().0;
                    change.notices.push(format!("{path}: {}, and its text is no longer known", past(outline)).into());
                }
            }
        }
        Ok(change)
    }

    /// Returns the content that action `number` of the first of some transactions wrote to a file, if it is still
    /// known.
    fn written(
        &self,
        entries: &[JournalEntry],
        number: usize,
        path: &SafePath,
        hash: ContentHash,
        cache: &mut RemovedContents,
    ) -> Result<Option<Content>> {
        let mut now = path.clone();
        for (later, entry) in entries.iter().enumerate().filter(|(_, entry)| entry.state == EntryState::Done) {
            let skipped = if later == 0 { number + 1 } else { 0 };
            for (index, JournalAction { outline, .. }) in done_actions(entry).iter().enumerate().skip(skipped) {
                if let Action::Move { from, to } = outline {
                    now = now.moved(from, to).unwrap_or(now);
                } else if *outline.paths().0 == now && outline.removed_content() == Some(&hash) {
                    let removed = match cache.entry(entry.id) {
                        Entry::Occupied(known) => known.into_mut(),
                        Entry::Vacant(unread) => unread.insert(journal::contents(&self.state, entry)?),
                    };
                    return Ok(removed.get(index).cloned().flatten());
                }
            }
        }
        // A file that is gone or cannot be read is not an error: the rest of the change is still shown.
        Ok(self.sandbox.read(&now).ok().filter(|content| content.hash() == hash))
    }
}

/// Returns the actions of a transaction that took effect.
fn done_actions(entry: &JournalEntry) -> &[JournalAction] {
    &entry.actions[..entry.done.min(entry.actions.len())]
}

fn past<C>(action: &Action<C>) -> &'static str {
    match action {
        Action::Create { .. } => "it was created",
        Action::Delete { .. } => "it was deleted",
        _ => "it was edited",
    }
}
