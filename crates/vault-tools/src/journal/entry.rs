//! Transactions and their actions in the form of the journal: their rows, the space reserved for the end, and the
//! checks that detect damage to a row.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, params};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::database::Failure;
use crate::action::{Action, ActionOutline, DeleteMode};
use crate::content::{Content, ContentHash};
use crate::sandbox::{SafePath, SavedMetadata};

/// Replaces the digest of a transaction that is listed but cannot be undone.
pub(super) const LOST: &str = "lost";

/// The number of a transaction; later ones have higher numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct TransactionId(pub u64);

impl fmt::Display for TransactionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The kind of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum TransactionKind {
    /// Something new.
    Apply,
    /// Undoes a transaction.
    Undo,
    /// Undoes an undo.
    Redo,
}

/// The state of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum State {
    /// It was interrupted, or is in progress.
    Unfinished,
    /// Unfinished according to a damaged journal, so perhaps wrongly.
    Suspect,
    Done,
    RolledBack,
}

/// Returns the name of a kind or a state in its column.
pub(super) fn name_of(value: impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}

/// Returns the kind or state with a name.
pub(super) fn named<T: DeserializeOwned>(name: String) -> Option<T> {
    serde_json::from_value(Value::String(name)).ok()
}

/// The properties of a transaction before it begins.
#[derive(Debug, Clone)]
pub(crate) struct NewTransaction {
    pub label: String,
    pub kind: TransactionKind,
    /// The transaction that is undone or redone.
    pub of: Option<TransactionId>,
}

/// A transaction as the journal stores it. The checksum of its row is computed from its serialized form.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct JournalEntry {
    pub id: TransactionId,
    /// The start time in milliseconds since 1970.
    pub(super) time_ms: u64,
    pub label: String,
    pub kind: TransactionKind,
    /// The transaction that is undone or redone.
    pub of: Option<TransactionId>,
    /// The row of its first action. Those of the others follow it.
    pub(super) first_action: i64,
    #[serde(rename = "actions")]
    pub(super) count: usize,
    /// The digest of all its actions.
    pub(super) digest: String,
    pub state: State,
    /// How many of its actions are in effect after its end.
    pub done: usize,
    #[serde(skip)]
    pub actions: Vec<JournalAction>,
    /// Whether a part of it cannot be read.
    #[serde(skip)]
    pub is_damaged: bool,
}

impl JournalEntry {
    /// Creates one that has not begun.
    pub(super) fn new(new: NewTransaction, actions: Vec<JournalAction>) -> Self {
        let NewTransaction { label, kind, of } = new;
        let (id, time_ms, first_action, digest) = (TransactionId(0), 0, 0, String::new());
        let (count, state, done, is_damaged) = (actions.len(), State::Unfinished, 0, false);
        Self { id, time_ms, label, kind, of, first_action, count, digest, state, done, actions, is_damaged }
    }

    pub fn is_unfinished(&self) -> bool {
        matches!(self.state, State::Unfinished | State::Suspect)
    }

    /// The original transaction if this one is an undo, or the undo of an undo; otherwise itself.
    pub fn root(&self) -> TransactionId {
        self.of.unwrap_or(self.id)
    }

    /// Returns the start time.
    pub fn time(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.time_ms)
    }

    /// Returns the correct value of the column `checksum`.
    pub(super) fn checksum(&self) -> String {
        short_hash(&serde_json::to_vec(self).unwrap_or_default())
    }

    /// Returns the correct value of the column `digest`.
    pub(super) fn digest_of_actions(&self) -> String {
        let rows: Vec<ActionRow> = self.actions.iter().map(ActionRow::of).collect();
        short_hash(&serde_json::to_vec(&rows).unwrap_or_default())
    }
}

fn short_hash(bytes: &[u8]) -> String {
    ContentHash::of(bytes).to_string()[..16].to_owned()
}

/// An action as the journal stores it, without its content.
#[derive(Debug, Clone)]
pub(crate) struct JournalAction {
    pub outline: ActionOutline,
    /// The metadata that its inverse restores besides the content.
    pub saved: SavedMetadata,
}

/// The columns of a row of the table `action`, except its content.
#[derive(Debug, Serialize)]
pub(super) struct ActionRow {
    pub kind: String,
    pub path: String,
    pub target: Option<String>,
    pub before: Option<String>,
    pub after: Option<String>,
    pub name: Option<String>,
    pub mode: Option<u32>,
}

impl ActionRow {
    pub(super) fn of(JournalAction { outline, saved }: &JournalAction) -> Self {
        let (path, target) = outline.paths();
        let (before, after) = match outline {
            Action::Create { content, .. } => (None, Some(content)),
            Action::Edit { before, after, .. } => (Some(before), Some(after)),
            Action::Delete { content, .. } => (Some(content), None),
            _ => (None, None),
        };
        Self {
            kind: outline.name().to_owned(),
            path: path.to_string(),
            target: target.map(SafePath::to_string),
            before: before.map(ContentHash::to_string),
            after: after.map(ContentHash::to_string),
            name: saved.name.clone(),
            mode: saved.mode,
        }
    }

    /// Converts a row; `None` for values that no action can have.
    pub(super) fn into_action(self) -> Option<JournalAction> {
        let path = SafePath::recorded(&self.path).ok()?;
        let hash = |hex: Option<String>| ContentHash::from_hex(&hex?);
        let outline = match self.kind.as_str() {
            "make-folder" => Action::MakeFolder { path },
            "remove-folder" => Action::RemoveFolder { path },
            "create" => Action::Create { path, content: hash(self.after)? },
            "edit" => Action::Edit { path, before: hash(self.before)?, after: hash(self.after)? },
            "move" => Action::Move { from: path, to: SafePath::recorded(&self.target?).ok()? },
            "delete" => Action::Delete { path, content: hash(self.before)?, mode: DeleteMode::Permanent },
            _ => return None,
        };
        Some(JournalAction { outline, saved: SavedMetadata::new(self.name, self.mode) })
    }
}

/// By how many bytes a row becomes shorter when its transaction ends: more than the end can lengthen it, so that the
/// end needs no space.
const RESERVE: usize = 64;

/// Adds a transaction whose end is still to be written, with the contents that its actions removed. Its numbers are
/// assigned, unless it already has one.
pub(super) fn insert(
    connection: &Connection,
    entry: &mut JournalEntry,
    contents: &[Option<Content>],
) -> Result<(), Failure> {
    let last: i64 = connection.query_row("SELECT coalesce(max(id), 0) FROM action", [], |row| row.get(0))?;
    (entry.first_action, entry.count) = (last + 1, entry.actions.len());
    let mut add = connection.prepare_cached(
        "INSERT INTO action (id, kind, path, target, before, after, name, mode, content) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )?;
    for ((id, action), content) in (entry.first_action..).zip(&entry.actions).zip(contents) {
        let ActionRow { kind, path, target, before, after, name, mode } = ActionRow::of(action);
        let content = content.as_ref().map(Content::bytes);
        add.execute(params![id, kind, path, target, before, after, name, mode, content])?;
    }
    let JournalEntry { time_ms, label, kind, of, first_action, count, digest, state, done, .. } = &*entry;
    connection.execute(
        "INSERT INTO transaction_ (id, time_ms, label, kind, of, first_action, actions, digest, state, done, checksum, reserve) \
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '0123456789abcdef', ?)",
        params![
            (entry.id.0 > 0).then_some(entry.id.0), time_ms, label, name_of(kind), of.map(|of| of.0), first_action, count,
            digest, name_of(state), done, vec![0_u8; RESERVE]
        ],
    )?;
    // The checksum covers the number.
    entry.id.0 = connection.last_insert_rowid().cast_unsigned();
    connection.execute("UPDATE transaction_ SET checksum = ? WHERE id = ?", params![entry.checksum(), entry.id.0])?;
    Ok(())
}
