//! Adds the rows of a transaction and of its actions, with room for its end.

use rusqlite::{Connection, params};

use super::database::Failure;
use super::entry::{ActionRow, JournalEntry, name_of};
use crate::content::Content;

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
