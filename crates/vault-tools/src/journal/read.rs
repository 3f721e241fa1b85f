//! Reads the journal: transactions without their contents, and the contents of one transaction when they are needed.

use std::collections::BTreeSet;

use rusqlite::{Connection, OptionalExtension, Row};

use super::database::{Failure, open, path};
use super::entry::{ActionRow, JournalAction, JournalEntry, LOST, State as EntryState, TransactionId, TransactionKind};
use super::entry::{name_of, named};
use crate::content::Content;
use crate::error::{Error, ErrorKind, Result};
use crate::state::State;

/// The largest gap between two readable transactions of a damaged file within which each number is tried.
const MOST_MISSING: i64 = 100_000;

/// Returns the result of `read` on the journal; the default if there is no journal.
fn found<T: Default>(state: &State, read: impl Fn(&Connection) -> Result<T, Failure>) -> Result<T, Failure> {
    open(state)?.map_or_else(|| Ok(T::default()), |connection| read(&connection))
}

/// Returns all transactions, oldest first, including damaged ones, and whether the file has further damage.
pub(crate) fn entries(state: &State) -> Result<(Vec<JournalEntry>, bool)> {
    match found(state, entries_of) {
        Err(Failure::Damaged(_)) => Ok((Vec::new(), true)),
        found => found.map_err(|failure| failure.into_error(state)),
    }
}

/// Returns the transaction that a crash interrupted, if there is one, which can only be the last. Takes constant time.
pub(crate) fn unfinished(state: &State) -> Result<Option<JournalEntry>> {
    let last = |connection: &Connection| {
        let last = "SELECT id FROM transaction_ WHERE id = (SELECT max(id) FROM transaction_) AND state NOT IN (?, ?)";
        let ended = [EntryState::Done, EntryState::RolledBack].map(name_of);
        let id = connection.query_row(last, ended, |row| row.get(0)).optional()?;
        id.map_or(Ok(None), |id| entry(connection, id))
    };
    let last = found(state, last).map_err(|failure| failure.into_error(state))?;
    Ok(last.filter(JournalEntry::is_unfinished))
}

/// Returns whether anything in the file is damaged. Reads the whole file.
pub(crate) fn has_damage(state: &State) -> Result<bool> {
    let check = |connection: &Connection| {
        let found: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
        let (entries, mut has_damage) = entries_of(connection)?;
        for entry in &entries {
            has_damage = has_damage || entry.is_damaged || !has_all(&entry.actions, &contents_of(connection, entry)?);
        }
        Ok(has_damage || found != "ok")
    };
    match found(state, check) {
        Err(Failure::Damaged(_)) => Ok(true),
        found => found.map_err(|failure| failure.into_error(state)),
    }
}

/// Returns the contents that the inverses of a transaction's actions need; `None` for an action that removed no
/// content, and for a content that cannot be read.
pub(crate) fn contents(state: &State, entry: &JournalEntry) -> Result<Vec<Option<Content>>> {
    found(state, |connection| contents_of(connection, entry)).map_err(|failure| failure.into_error(state))
}

/// Returns whether all contents are available that the inverses of some actions need.
pub(crate) fn has_all(actions: &[JournalAction], contents: &[Option<Content>]) -> bool {
    let needed = actions.iter().filter(|action| action.outline.removed_content().is_some()).count();
    contents.iter().flatten().count() == needed
}

pub(crate) fn damaged(state: &State, what: String) -> Error {
    Error::new(ErrorKind::Journal, format!("the journal is damaged: {what}"))
        .at(path(state).display())
        .with_remedy("that transaction cannot be undone; others can")
}

pub(super) fn contents_of(connection: &Connection, entry: &JournalEntry) -> Result<Vec<Option<Content>>, Failure> {
    let select = |id: i64| -> Result<Option<Content>, Failure> {
        let mut select = connection.prepare_cached("SELECT content FROM action WHERE id = ?")?;
        Ok(select.query_row([id], |row| row.get::<_, Vec<u8>>(0)).optional()?.map(Content::from))
    };
    let content = |(id, action): (i64, &JournalAction)| {
        let Some(hash) = action.outline.removed_content() else { return Ok(None) };
        match select(id) {
            Err(Failure::Damaged(_)) => Ok(None),
            content => content.map(|content| content.filter(|content| content.hash() == *hash)),
        }
    };
    (entry.first_action..).zip(&entry.actions).map(content).collect()
}

/// Returns every transaction that can be found, and whether some cannot.
pub(super) fn entries_of(connection: &Connection) -> Result<(Vec<JournalEntry>, bool), Failure> {
    let (ids, mut has_damage) = ids(connection)?;
    let mut entries = Vec::with_capacity(ids.len());
    for id in ids {
        match entry(connection, id) {
            Ok(found) => entries.extend(found),
            Err(Failure::Damaged(_)) => has_damage = true,
            Err(error) => return Err(error),
        }
    }
    Ok((entries, has_damage))
}

/// Returns the numbers of all transactions. In a damaged table, these are the numbers before and after the damage, and
/// those between them that are found by trying each number.
fn ids(connection: &Connection) -> Result<(BTreeSet<i64>, bool), Failure> {
    let mut ids = BTreeSet::new();
    let mut ends = Vec::new();
    let mut has_damage = false;
    for order in ["ASC", "DESC"] {
        let mut last = None;
        let mut scan = || -> Result<(), Failure> {
            let mut statement = connection.prepare(&format!("SELECT id FROM transaction_ ORDER BY id {order}"))?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let id: i64 = row.get(0)?;
                last = Some(id);
                ids.insert(id);
            }
            Ok(())
        };
        match scan() {
            Ok(()) if !has_damage => return Ok((ids, false)),
            Ok(()) => {}
            Err(Failure::Damaged(_)) => has_damage = true,
            Err(error) => return Err(error),
        }
        ends.push(last);
    }
    if let [Some(before), Some(behind)] = ends[..]
        && behind.saturating_sub(before) < MOST_MISSING
    {
        ids.extend(before..behind);
    }
    Ok((ids, true))
}

/// Returns the transaction with a number; `None` if it does not exist.
pub(super) fn entry(connection: &Connection, id: i64) -> Result<Option<JournalEntry>, Failure> {
    let found = connection.query_row("SELECT * FROM transaction_ WHERE id = ?", [id], without_actions).optional()?;
    let Some((mut entry, checksum)) = found else { return Ok(None) };
    if entry.checksum() != checksum {
        // The state in a damaged row may be wrong.
        (entry.digest, entry.state) = (LOST.to_owned(), EntryState::Done);
    }
    entry.actions = match actions_of(connection, &entry) {
        Err(Failure::Damaged(_)) => Vec::new(),
        actions => actions?,
    };
    entry.is_damaged = entry.digest != entry.digest_of_actions() && entry.state != EntryState::RolledBack;
    Ok(Some(entry))
}

/// Reads a transaction, and its stored checksum.
fn without_actions(row: &Row<'_>) -> rusqlite::Result<(JournalEntry, String)> {
    let entry = JournalEntry {
        id: TransactionId(row.get("id")?),
        time_ms: row.get("time_ms")?,
        label: row.get("label")?,
        kind: named(row.get("kind")?).unwrap_or(TransactionKind::Apply),
        of: row.get::<_, Option<u64>>("of")?.map(TransactionId),
        first_action: row.get("first_action")?,
        count: row.get("actions")?,
        digest: row.get("digest")?,
        state: named(row.get("state")?).unwrap_or(EntryState::Done),
        done: row.get("done")?,
        actions: Vec::new(),
        is_damaged: false,
    };
    Ok((entry, row.get("checksum")?))
}

/// Reads the actions of a transaction that can be read.
fn actions_of(connection: &Connection, entry: &JournalEntry) -> Result<Vec<JournalAction>, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT kind, path, target, before, after, name, mode FROM action WHERE id >= ? ORDER BY id LIMIT ?",
    )?;
    let rows = statement.query_map((entry.first_action, entry.count), |row| {
        Ok(ActionRow {
            kind: row.get(0)?,
            path: row.get(1)?,
            target: row.get(2)?,
            before: row.get(3)?,
            after: row.get(4)?,
            name: row.get(5)?,
            mode: row.get(6)?,
        })
    })?;
    Ok(rows.filter_map(|row| row.map(ActionRow::into_action).transpose()).collect::<rusqlite::Result<_>>()?)
}
