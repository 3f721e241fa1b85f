//! A transaction and its actions as the journal has them: their rows, the room for the end, and the checks by which
//! damage to a row is noticed.

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

/// What replaces the digest of a transaction that is listed and cannot be undone.
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

/// What a transaction does.
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

/// How far a transaction has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum State {
    /// It was interrupted, or is under way.
    Unfinished,
    /// The same, as far as a damaged file can be believed.
    Suspect,
    Done,
    RolledBack,
}

/// How a kind or a state is called in its column.
pub(super) fn name_of(value: impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}

/// The kind or state of a name.
pub(super) fn named<T: DeserializeOwned>(name: String) -> Option<T> {
    serde_json::from_value(Value::String(name)).ok()
}

/// What is said of a transaction before it begins.
#[derive(Debug, Clone)]
pub(crate) struct NewTransaction {
    pub label: String,
    pub kind: TransactionKind,
    /// The transaction that is undone or redone.
    pub of: Option<TransactionId>,
}

/// A transaction as the journal has it. The checksum of its row is of what this serializes to.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct JournalEntry {
    pub id: TransactionId,
    /// When it began, since 1970.
    pub(super) time_ms: u64,
    pub label: String,
    pub kind: TransactionKind,
    /// The transaction that is undone or redone.
    pub of: Option<TransactionId>,
    /// The row of its first action. Those of the others follow.
    pub(super) first_action: i64,
    #[serde(rename = "actions")]
    pub(super) count: usize,
    /// Of all its actions.
    pub(super) digest: String,
    pub state: State,
    /// How many of its actions are in effect, once it has ended.
    pub done: usize,
    #[serde(skip)]
    pub actions: Vec<JournalAction>,
    /// Not all of it can be read.
    #[serde(skip)]
    pub is_damaged: bool,
}

impl JournalEntry {
    /// One that has not begun.
    pub(super) fn new(new: NewTransaction, actions: Vec<JournalAction>) -> Self {
        let NewTransaction { label, kind, of } = new;
        let (id, time_ms, first_action, digest) = (TransactionId(0), 0, 0, String::new());
        let (count, state, done, is_damaged) = (actions.len(), State::Unfinished, 0, false);
        Self { id, time_ms, label, kind, of, first_action, count, digest, state, done, actions, is_damaged }
    }

    pub fn is_unfinished(&self) -> bool {
        matches!(self.state, State::Unfinished | State::Suspect)
    }

    /// The transaction of which it is an undo, or the undo of an undo; itself, if it is neither.
    pub fn root(&self) -> TransactionId {
        self.of.unwrap_or(self.id)
    }

    /// When it began.
    pub fn time(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.time_ms)
    }

    /// What the column `checksum` must hold.
    pub(super) fn checksum(&self) -> String {
        short_hash(&serde_json::to_vec(self).unwrap_or_default())
    }

    /// What the column `digest` must hold.
    pub(super) fn digest_of_actions(&self) -> String {
        let rows: Vec<ActionRow> = self.actions.iter().map(ActionRow::of).collect();
        short_hash(&serde_json::to_vec(&rows).unwrap_or_default())
    }
}

fn short_hash(bytes: &[u8]) -> String {
    ContentHash::of(bytes).to_string()[..16].to_owned()
}

/// An action as the journal has it, without its content.
#[derive(Debug, Clone)]
pub(crate) struct JournalAction {
    pub outline: ActionOutline,
    /// What its inverse restores besides the content.
    pub saved: SavedMetadata,
}

/// The columns of a row of the table `action`, but for its content.
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

    /// `None` for what no action can have been.
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

/// Bytes that a row is made shorter by when its transaction ends: more than the end can make it longer.
const RESERVE: usize = 64;

/// Adds a transaction that may still end, with what its actions removed; its numbers are filled in, unless it has one
/// already.
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
    // The number is part of what the checksum is of.
    entry.id.0 = connection.last_insert_rowid().cast_unsigned();
    connection.execute("UPDATE transaction_ SET checksum = ? WHERE id = ?", params![entry.checksum(), entry.id.0])?;
    Ok(())
}
