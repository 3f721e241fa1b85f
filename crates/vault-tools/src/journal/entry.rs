//! A transaction and its actions as the journal has them, and the checks by which damage to a row is noticed.

use std::fmt;
use std::time::SystemTime;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::action::Action;
use crate::content::{Content, ContentHash};
use crate::sandbox::{SafePath, SavedMetadata};

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

impl TransactionKind {
    const ALL: [Self; 3] = [Self::Apply, Self::Undo, Self::Redo];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Apply => "apply",
            Self::Undo => "undo",
            Self::Redo => "redo",
        }
    }

    pub(super) fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// How far a transaction has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// It was cut, or is under way.
    Unfinished,
    /// The same, as far as a damaged file can be believed.
    Suspect,
    Done,
    RolledBack,
}

impl State {
    const ALL: [Self; 4] = [Self::Unfinished, Self::Suspect, Self::Done, Self::RolledBack];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Unfinished => "unfinished",
            Self::Suspect => "suspect",
            Self::Done => "done",
            Self::RolledBack => "rolled-back",
        }
    }

    pub(super) fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }
}

/// A transaction as the journal has it.
#[derive(Debug, Clone)]
pub(crate) struct JournalEntry {
    pub id: TransactionId,
    pub time: SystemTime,
    pub label: String,
    pub kind: TransactionKind,
    /// The transaction that is undone or redone.
    pub of: Option<TransactionId>,
    pub state: State,
    /// How many actions are known to be done.
    pub done: usize,
    pub actions: Vec<JournalAction>,
    /// Not all of it can be read.
    pub is_damaged: bool,
}

impl JournalEntry {
    pub fn is_unfinished(&self) -> bool {
        matches!(self.state, State::Unfinished | State::Suspect)
    }
}

/// An action as the journal has it, without its content.
#[derive(Debug, Clone)]
pub(crate) struct JournalAction {
    pub kind: String,
    pub path: SafePath,
    pub to: Option<SafePath>,
    pub before: Option<ContentHash>,
    pub after: Option<ContentHash>,
    /// What its inverse restores besides the content.
    pub saved: SavedMetadata,
    /// Its row.
    pub(super) row: i64,
}

/// The columns of a row of the table `action`, but for its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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
    pub(super) fn of(action: &Action, saved: &SavedMetadata) -> Self {
        let (path, target) = action.paths();
        let hash = |content: &Content| Some(content.hash().to_string());
        let (before, after) = match action {
            Action::Create { content, .. } => (None, hash(content)),
            Action::Edit { before, after, .. } => (hash(before), hash(after)),
            Action::Delete { content, .. } => (hash(content), None),
            _ => (None, None),
        };
        Self {
            kind: action.name().to_owned(),
            path: path.to_string(),
            target: target.map(SafePath::to_string),
            before,
            after,
            name: saved.name().map(str::to_owned),
            mode: saved.mode(),
        }
    }

    /// `None` for paths that no action can have had.
    pub(super) fn action(self, row: i64) -> Option<JournalAction> {
        let hash = |hex: Option<String>| hex.as_deref().and_then(ContentHash::from_hex);
        Some(JournalAction {
            kind: self.kind,
            path: SafePath::recorded(&self.path).ok()?,
            to: self.target.as_deref().map(SafePath::recorded).transpose().ok()?,
            before: hash(self.before),
            after: hash(self.after),
            saved: SavedMetadata::new(self.name, self.mode),
            row,
        })
    }
}

/// The columns of a row of the table `transaction_`, but for `checksum` and `reserve`.
#[derive(Debug, Clone, Serialize)]
pub(super) struct TransactionRow {
    pub id: i64,
    pub time_ms: i64,
    pub label: String,
    pub kind: String,
    pub of: Option<i64>,
    pub first_action: i64,
    pub actions: i64,
    /// Of all actions.
    pub digest: String,
    pub state: String,
    pub done: i64,
}

impl TransactionRow {
    /// What the column `checksum` must hold.
    pub(super) fn checksum(&self) -> String {
        short_hash(&serde_json::to_vec(self).unwrap_or_default())
    }
}

/// What the column `digest` of a transaction with these actions must hold.
pub(super) fn digest(actions: &[&ActionRow]) -> String {
    short_hash(&serde_json::to_vec(actions).unwrap_or_default())
}

fn short_hash(bytes: &[u8]) -> String {
    ContentHash::of(bytes).to_string()[..16].to_owned()
}
