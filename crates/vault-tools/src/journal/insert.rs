//! Adds the rows of a transaction and of its actions, with room for its end.

use rusqlite::{Connection, params};

use super::database::Failure;
use super::entry::{ActionRow, TransactionRow};

/// Bytes that a row is made shorter by when its transaction ends: more than the end can make it longer.
const RESERVE: usize = 64;

/// Adds a transaction that may still end; its numbers are filled in, unless it has one already.
pub(super) fn insert(
    connection: &Connection,
    row: &mut TransactionRow,
    actions: &[(&ActionRow, Option<&[u8]>)],
) -> Result<(), Failure> {
    let last: i64 = connection.query_row("SELECT coalesce(max(id), 0) FROM action", [], |row| row.get(0))?;
    row.first_action = last + 1;
    let mut add = connection.prepare_cached(
        "INSERT INTO action (id, kind, path, target, before, after, name, mode, content) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )?;
    for (id, (action, content)) in (row.first_action..).zip(actions) {
        let ActionRow { kind, path, target, before, after, name, mode } = action;
        add.execute(params![id, kind, path, target, before, after, name, mode, content])?;
    }
    let number = (row.id > 0).then_some(row.id);
    let reserve = vec![0_u8; RESERVE];
    connection.execute(
        "INSERT INTO transaction_ (id, time_ms, label, kind, of, first_action, actions, digest, state, done, checksum, reserve) \
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '0123456789abcdef', ?)",
        params![number, row.time_ms, row.label, row.kind, row.of, row.first_action, row.actions, row.digest, row.state, row.done, reserve],
    )?;
    // The number is part of what the checksum is of.
    row.id = connection.last_insert_rowid();
    connection.execute("UPDATE transaction_ SET checksum = ? WHERE id = ?", params![row.checksum(), row.id])?;
    Ok(())
}
