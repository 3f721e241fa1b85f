//! The history of the vault or of one note from the journal, and restoring a note to its state before a change:
//! `list_history`, `restore_note`.
//!
//! A note is followed through its renames: a transaction that changed it under an older name is part of its history.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::action::Action;
use crate::error::{Error, ErrorKind, Result};
use crate::journal::{self, EntryState, JournalEntry, TransactionId, TransactionKind};
use crate::sandbox::{SafePath, View};
use crate::tool::{Context, PathArg};
use crate::tools::shared::arguments::{number, page};
use crate::tools::shared::{expected_version, locate};

#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct HistoryArgs {
    /// Only what changed this note, also under its older names.
    path: Option<PathArg>,
    /// The most changes to return, the newest first.
    #[serde(default = "number::<50>")]
    #[schemars(range(min = 1, max = 10_000))]
    limit: usize,
    /// How many changes to skip.
    #[serde(default)]
    offset: usize,
}

/// A change.
#[derive(Serialize, JsonSchema)]
pub(in crate::tools) struct PastChange {
    /// Its number, for undo and restore_note.
    transaction: TransactionId,
    /// When it was made.
    time: String,
    /// The tool that made it, or the goal of the plan.
    by: String,
    /// apply, undo or redo.
    kind: TransactionKind,
    /// The transaction that it undid or redid.
    of: Option<TransactionId>,
    /// What it did to files.
    files: Vec<PastAction>,
}

/// What a change did to a file.
#[derive(Serialize, JsonSchema)]
struct PastAction {
    /// create, edit, move or delete.
    action: String,
    /// The file's path at the time of the change.
    #[schemars(extend("x-vault-path" = true))]
    path: String,
    /// Where it was moved to.
    #[schemars(extend("x-vault-path" = true))]
    to: Option<String>,
}

/// The maximum number of files of one change that are listed.
const LISTED: usize = 20;

pub(in crate::tools) fn list_history(args: HistoryArgs, context: &mut Context<'_, '_>) -> Result<Vec<PastChange>> {
    // A deleted note has a history too.
    let mut name = args.path.as_ref().map(|path| locate::linked(path, context).map(|(path, _)| path)).transpose();
    if let (Err(_), Some(path)) = (&name, &args.path) {
        name = context.path(path).map(Some);
    }
    let mut name = name?;
    let mut changes = Vec::new();
    let mut entries = ended(context)?;
    entries.reverse();
    for entry in entries {
        let mut files = Vec::new();
        for action in done_actions(&entry).rev() {
            let (path, to) = action.paths();
            let is_meant = name.as_ref().is_none_or(|name| concerns(action, name));
            if let Some(name) = &mut name
                && let Action::Move { from, to } = action
                && let Some(before) = name.moved(to, from)
            {
                *name = before;
            }
            let is_file = !matches!(action, Action::MakeFolder { .. } | Action::RemoveFolder { .. });
            if is_meant && is_file && context.permits(path) && to.is_none_or(|to| context.permits(to)) {
                let to = to.map(ToString::to_string);
                files.push(PastAction { action: action.name().to_owned(), path: path.to_string(), to });
            }
        }
        if files.is_empty() {
            continue;
        }
        files.reverse();
        files.truncate(LISTED);
        changes.push(PastChange {
            transaction: entry.id,
            time: locate::rfc3339(entry.time()).unwrap_or_default(),
            by: entry.label.clone(),
            kind: entry.kind,
            of: entry.of,
            files,
        });
    }
    Ok(page(changes, args.limit, args.offset, "changes were made", context))
}

#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct RestoreArgs {
    /// The note, by its name now or when it was changed.
    path: PathArg,
    /// The number of the change: the note becomes what it was before it. From list_history.
    #[schemars(range(min = 1))]
    transaction: u64,
}

/// The note.
#[derive(Serialize, JsonSchema)]
pub(in crate::tools) struct RestoredNote {
    /// Where it is.
    #[schemars(extend("x-vault-path" = true))]
    path: String,
    /// Whether it was gone, and was made anew.
    created: bool,
    /// Its new version.
    version: String,
}

/// Restores one note. All other effects of the change remain, including moves.
pub(in crate::tools) fn restore_note(args: RestoreArgs, context: &mut Context<'_, '_>) -> Result<RestoredNote> {
    let asked = context.path(&args.path).ok();
    let here = locate::file(&args.path, context).ok().or_else(|| asked.clone());
    let entries = ended(context)?;
    let wrong = |what: String| {
        Error::new(ErrorKind::NotFound, what).at(args.path.as_str()).with_remedy("list_history names its changes")
    };
    let Some(at) = entries.iter().position(|entry| entry.id.0 == args.transaction) else {
        return Err(wrong(format!("there is no transaction {}", args.transaction)));
    };
    let entry = &entries[at];
    let contents = journal::contents(context.vault.state(), entry)?;
    // The first action on the note has the content before all of them.
    for (number, action) in done_actions(entry).enumerate() {
        let (then, content) = match action {
            // The note, or a folder that contained it, went to the trash.
            Action::Move { from, to } if to.is_in_trash() => {
                let Some(then) = asked.clone().filter(|asked| asked.below(from).is_some()) else { continue };
                let Some(trashed) = then.moved(from, to) else { continue };
                let content = context.overlay.read(&trashed)?;
                (then, Some(content))
            }
            Action::Create { .. } | Action::Edit { .. } | Action::Delete { .. } => {
                (action.paths().0.clone(), contents.get(number).cloned().flatten())
            }
            _ => continue,
        };
        let now = now_at(&then, entry, number, &entries[at..]);
        if ![&then, &now].into_iter().any(|path| asked.as_ref() == Some(path) || here.as_ref() == Some(path)) {
            continue;
        }
        if matches!(action, Action::Create { .. }) {
            let what = format!("transaction {} made the note, so it did not exist before", entry.id);
            let remedy = "delete it, or undo the transaction";
            return Err(Error::new(ErrorKind::Refused, what).at(&now).with_remedy(remedy));
        }
        let now = if now.is_in_trash() { then.clone() } else { now };
        if !context.permits(&now) || !context.permits(&then) {
            break;
        }
        let Some(content) = content else {
            return Err(Error::new(ErrorKind::Journal, "the journal no longer has its earlier content").at(&now));
        };
        let created = !context.overlay.exists(&now)?;
        match created {
            true => context.overlay.create(&now, content)?,
            false => drop(context.overlay.write(&now, content)?),
        }
        return Ok(RestoredNote { version: expected_version::of(&now, context)?, path: now.to_string(), created });
    }
    let is_moved = |action: &crate::action::ActionOutline| {
        matches!(action, Action::Move { .. })
            && [&asked, &here].into_iter().flatten().any(|note| concerns(action, note))
    };
    if done_actions(entry).any(is_moved) {
        let what = format!("transaction {} moved the note and left its text unchanged", entry.id);
        return Err(Error::new(ErrorKind::Refused, what).at(args.path.as_str()).with_remedy("undo reverts the move"));
    }
    Err(wrong(format!("transaction {} did not change this note", entry.id)))
}

/// Returns the transactions that took effect, oldest first.
fn ended(context: &Context<'_, '_>) -> Result<Vec<JournalEntry>> {
    let (mut entries, has_damage) = journal::entries(context.vault.state())?;
    if has_damage {
        log::warn!("parts of the journal are damaged, so that changes may be missing");
    }
    entries.retain(|entry| entry.state == EntryState::Done && !entry.is_damaged);
    Ok(entries)
}

/// Returns the actions of a transaction that took effect, in order.
fn done_actions(
    entry: &JournalEntry,
) -> impl DoubleEndedIterator<Item = &crate::action::ActionOutline> + ExactSizeIterator {
    entry.actions[..entry.done.min(entry.actions.len())].iter().map(|action| &action.outline)
}

/// Returns whether an action concerns a note, or a folder above it.
fn concerns(action: &crate::action::ActionOutline, note: &SafePath) -> bool {
    let (path, to) = action.paths();
    let is_of = |path: &SafePath| path == note || note.moved(path, path).is_some();
    is_of(path) || to.is_some_and(is_of)
}

/// Returns the current path of the file that was at `path` when action `number` of the first of some transactions
/// began.
fn now_at(path: &SafePath, first: &JournalEntry, number: usize, entries: &[JournalEntry]) -> SafePath {
    let mut now = path.clone();
    for entry in entries {
        let skipped = if entry.id == first.id { number } else { 0 };
        for action in done_actions(entry).skip(skipped) {
            if let Action::Move { from, to } = action {
                now = now.moved(from, to).unwrap_or(now);
            }
        }
    }
    now
}
