//! Reads the journal: its transactions without the contents, and one content when it is needed.

use std::collections::BTreeSet;
use std::time::{Duration, UNIX_EPOCH};

use rusqlite::{Connection, OptionalExtension, Row};

use super::database::{Failure, open, path};
use super::entry::{ActionRow, JournalAction, JournalEntry, State as EntryState, TransactionId, TransactionKind};
use super::entry::{TransactionRow, digest};
use super::progress;
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

/// The transaction that a crash cut, if there is one; the last of all it must be. In constant time.
pub(crate) fn unfinished(state: &State) -> Result<Option<JournalEntry>> {
    let last = || -> Result<Option<JournalEntry>, Failure> {
        let Some(connection) = open(state)? else { return Ok(None) };
        let state_of_last = "SELECT id, state FROM transaction_ ORDER BY id DESC LIMIT 1";
        let last = connection.query_row(state_of_last, [], |row| Ok((row.get(0)?, row.get::<_, String>(1)?)));
        match last.optional()? {
            Some((_, state)) if state == EntryState::Done.name() || state == EntryState::RolledBack.name() => Ok(None),
            Some((id, _)) => entry(&connection, id),
            None => Ok(None),
        }
    };
    let last = last().map_err(|failure| failure.into_error(state))?;
    Ok(last
        .filter(JournalEntry::is_unfinished)
        .map(|entry| JournalEntry { done: progress::read(state, entry.id).unwrap_or(entry.done), ..entry }))
}

/// Whether nothing in the file is damaged. Reads all of it.
pub(crate) fn is_whole(state: &State) -> Result<bool> {
    let check = || -> Result<bool, Failure> {
        let Some(connection) = open(state)? else { return Ok(true) };
        let found: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
        let (entries, has_damage) = entries_of(&connection)?;
        let mut is_whole = found == "ok" && !has_damage;
        for entry in &entries {
            is_whole &= !entry.is_damaged;
            for action in entry.actions.iter().filter(|action| action.before.is_some()) {
                let content = bytes_of(&connection, action.row)?;
                is_whole &= content.is_some_and(|content| Some(content.hash()) == action.before);
            }
        }
        Ok(is_whole)
    };
    match check() {
        Err(Failure::Damaged(_)) => Ok(false),
        checked => checked.map_err(|failure| failure.into_error(state)),
    }
}

/// The content that the inverse of an action needs.
pub(crate) fn content_of(state: &State, action: &JournalAction) -> Result<Content> {
    let read = || match open(state)? {
        Some(connection) => Ok(bytes_of(&connection, action.row)?),
        None => Ok(None),
    };
    match read() {
        Ok(Some(content)) if Some(content.hash()) == action.before => Ok(content),
        Ok(_) | Err(Failure::Damaged(_)) => {
            Err(damaged(state, format!("what {} held before cannot be read", action.path)))
        }
        Err(failure) => Err(failure.into_error(state)),
    }
}

pub(crate) fn damaged(state: &State, what: String) -> Error {
    Error::new(ErrorKind::Journal, format!("the journal is damaged: {what}"))
        .at(path(state).display())
        .with_remedy("that transaction cannot be undone; others can")
}

pub(super) fn bytes_of(connection: &Connection, row: i64) -> rusqlite::Result<Option<Content>> {
    let read = |row: &Row<'_>| row.get::<_, Option<Vec<u8>>>(0);
    let found = connection.query_row("SELECT content FROM action WHERE id = ?", [row], read).optional()?;
    Ok(found.flatten().map(Content::from))
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
pub(super) fn ids(connection: &Connection) -> Result<(BTreeSet<i64>, bool), Failure> {
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

/// The rows of one transaction, as they stand in the file.
pub(super) struct Rows {
    pub row: TransactionRow,
    /// Whether the row's checksum fits.
    pub is_row_whole: bool,
    /// With their ids.
    pub actions: Vec<(i64, ActionRow)>,
}

/// The rows of one transaction; `None` where there is none of that number.
pub(super) fn rows(connection: &Connection, id: i64) -> Result<Option<Rows>, Failure> {
    let found = connection.query_row("SELECT * FROM transaction_ WHERE id = ?", [id], transaction_row).optional()?;
    let Some((row, checksum)) = found else { return Ok(None) };
    let actions = match action_rows(connection, &row) {
        Err(Failure::Damaged(_)) => Vec::new(),
        actions => actions?,
    };
    Ok(Some(Rows { is_row_whole: row.checksum() == checksum && row.id > 0, row, actions }))
}

/// One transaction; `None` where there is none of that number.
pub(super) fn entry(connection: &Connection, id: i64) -> Result<Option<JournalEntry>, Failure> {
    Ok(rows(connection, id)?.map(Rows::into_entry))
}

impl Rows {
    fn into_entry(self) -> JournalEntry {
        let Self { row, is_row_whole, actions } = self;
        let records: Vec<&ActionRow> = actions.iter().map(|(_, action)| action).collect();
        let are_actions_whole = digest(&records) == row.digest && records.len() as i64 == row.actions;
        let count = records.len();
        let actions: Vec<JournalAction> =
            actions.into_iter().filter_map(|(number, action)| action.action(number)).collect();
        let kind = TransactionKind::of_name(&row.kind);
        // What a damaged row says of its end is not to be believed.
        let state = EntryState::of_name(&row.state).filter(|_| is_row_whole).unwrap_or(EntryState::Done);
        let is_whole = is_row_whole && are_actions_whole && actions.len() == count && kind.is_some();
        JournalEntry {
            id: TransactionId(u64::try_from(row.id).unwrap_or(0)),
            time: UNIX_EPOCH + Duration::from_millis(u64::try_from(row.time_ms).unwrap_or(0)),
            label: row.label,
            kind: kind.unwrap_or(TransactionKind::Apply),
            of: row.of.and_then(|of| u64::try_from(of).ok()).map(TransactionId),
            state,
            done: usize::try_from(row.done).unwrap_or(0),
            actions,
            is_damaged: !is_whole && state != EntryState::RolledBack,
        }
    }
}

/// A row and the checksum beside it.
pub(super) fn transaction_row(row: &Row<'_>) -> rusqlite::Result<(TransactionRow, String)> {
    let transaction = TransactionRow {
        id: row.get("id")?,
        time_ms: row.get("time_ms")?,
        label: row.get("label")?,
        kind: row.get("kind")?,
        of: row.get("of")?,
        first_action: row.get("first_action")?,
        actions: row.get("actions")?,
        digest: row.get("digest")?,
        state: row.get("state")?,
        done: row.get("done")?,
    };
    Ok((transaction, row.get("checksum")?))
}

fn action_rows(connection: &Connection, row: &TransactionRow) -> Result<Vec<(i64, ActionRow)>, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT id, kind, path, target, before, after, name, mode FROM action WHERE id >= ? ORDER BY id LIMIT ?",
    )?;
    let rows = statement.query_map([row.first_action, row.actions.max(0)], |row| {
        let action = ActionRow {
            kind: row.get(1)?,
            path: row.get(2)?,
            target: row.get(3)?,
            before: row.get(4)?,
            after: row.get(5)?,
            name: row.get(6)?,
            mode: row.get(7)?,
        };
        Ok((row.get(0)?, action))
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}
