//! Reads the journal: its transactions without the contents, and the contents of one when they are needed.

use std::collections::BTreeSet;

use rusqlite::{Connection, OptionalExtension, Row};

use super::database::{Failure, open, path};
use super::entry::{ActionRow, JournalAction, JournalEntry, LOST, State as EntryState, TransactionId, TransactionKind};
use super::entry::{name_of, named};
use crate::content::Content;
use crate::error::{Error, ErrorKind, Result};
use crate::state::State;

/// Most numbers between two readable transactions that are looked for one by one in a damaged file.
const MOST_MISSING: i64 = 100_000;

/// All transactions, oldest first, those that are damaged included; and whether the file has damage beyond those.
pub(crate) fn entries(state: &State) -> Result<(Vec<JournalEntry>, bool)> {
    let read = || match open(state)? {
        Some(connection) => entries_of(&connection),
        None => Ok((Vec::new(), false)),
    };
    match read() {
        Err(Failure::Damaged(_)) => Ok((Vec::new(), true)),
        read => read.map_err(|failure| failure.into_error(state)),
    }
}

/// The transaction that a crash interrupted, if there is one; the last of all it must be. In constant time.
pub(crate) fn unfinished(state: &State) -> Result<Option<JournalEntry>> {
    let last = || -> Result<Option<JournalEntry>, Failure> {
        let Some(connection) = open(state)? else { return Ok(None) };
        let last = "SELECT id FROM transaction_ WHERE id = (SELECT max(id) FROM transaction_) AND state NOT IN (?, ?)";
        let ended = [EntryState::Done, EntryState::RolledBack].map(name_of);
        match connection.query_row(last, ended, |row| row.get(0)).optional()? {
            Some(id) => entry(&connection, id),
            None => Ok(None),
        }
    };
    let last = last().map_err(|failure| failure.into_error(state))?;
    Ok(last.filter(JournalEntry::is_unfinished))
}

/// Whether nothing in the file is damaged. Reads all of it.
pub(crate) fn is_whole(state: &State) -> Result<bool> {
    let check = || -> Result<bool, Failure> {
        let Some(connection) = open(state)? else { return Ok(true) };
        let found: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
        let (entries, has_damage) = entries_of(&connection)?;
        let mut is_whole = found == "ok" && !has_damage;
        for entry in &entries {
            is_whole = is_whole && !entry.is_damaged && has_all(entry, &contents_of(&connection, entry)?);
        }
        Ok(is_whole)
    };
    match check() {
        Err(Failure::Damaged(_)) => Ok(false),
        checked => checked.map_err(|failure| failure.into_error(state)),
    }
}

/// The contents that the inverses of a transaction's actions need; `None` for an action that removed none, and for
/// a content that cannot be read.
pub(crate) fn contents(state: &State, entry: &JournalEntry) -> Result<Vec<Option<Content>>> {
    let read = || match open(state)? {
        Some(connection) => contents_of(&connection, entry),
        None => Ok(vec![None; entry.actions.len()]),
    };
    read().map_err(|failure| failure.into_error(state))
}

/// Whether no content is missing that an inverse needs.
pub(crate) fn has_all(entry: &JournalEntry, contents: &[Option<Content>]) -> bool {
    let is_there = |(action, content): (&JournalAction, &Option<Content>)| {
        action.outline.removed_content().is_none() || content.is_some()
    };
    entry.actions.iter().zip(contents).all(is_there)
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

/// Every transaction that can be found, and whether some cannot.
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

/// The numbers of all transactions. In a damaged table, those before and behind the damage, and whatever is found
/// between them one by one.
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

/// One transaction; `None` where there is none of that number.
pub(super) fn entry(connection: &Connection, id: i64) -> Result<Option<JournalEntry>, Failure> {
    let found = connection.query_row("SELECT * FROM transaction_ WHERE id = ?", [id], without_actions).optional()?;
    let Some((mut entry, checksum)) = found else { return Ok(None) };
    if entry.checksum() != checksum {
        // What a damaged row says of its end is not to be believed.
        (entry.digest, entry.state) = (LOST.to_owned(), EntryState::Done);
    }
    entry.actions = match actions_of(connection, &entry) {
        Err(Failure::Damaged(_)) => Vec::new(),
        actions => actions?,
    };
    entry.is_damaged = entry.digest != entry.digest_of_actions() && entry.state != EntryState::RolledBack;
    Ok(Some(entry))
}

/// A transaction, and the checksum beside it.
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

/// Those that can be read.
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
