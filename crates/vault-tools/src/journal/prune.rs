//! Removes old transactions from the journal, and with them the contents that only they still hold.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::Connection;
use serde::Serialize;

use super::database::{Failure, open, path};
use super::{read, salvage};
use crate::error::Result;
use crate::state::State;

/// Which transactions to keep.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct PruneOptions {
    /// Transactions older than this are dropped. `None`: no limit on the age.
    pub older_than: Option<Duration>,
    /// The oldest transactions are dropped until the journal has at most this size in bytes. `None`: no limit on the
    /// size.
    pub max_bytes: Option<u64>,
}

impl PruneOptions {
    /// Drops transactions older than this.
    #[must_use]
    pub fn older_than(mut self, age: Duration) -> Self {
        self.older_than = Some(age);
        self
    }

    /// Drops the oldest transactions until the journal has at most this size in bytes.
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = Some(bytes);
        self
    }
}

/// The result of pruning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PruneReport {
    /// The number of transactions that can no longer be undone.
    pub transactions: usize,
    /// The number of bytes that were freed.
    pub bytes: u64,
    /// The number of remaining transactions.
    pub left: usize,
}

/// Returns what [`prune`] would drop. The lock need not be held.
pub(crate) fn prunable(state: &State, options: &PruneOptions) -> Result<PruneReport> {
    let count = |state| -> Result<PruneReport, Failure> {
        let Some(connection) = open(state)? else { return Ok(PruneReport::default()) };
        let (entries, _) = read::entries_of(&connection)?;
        let last = newest_dropped(&connection, options)?.unwrap_or(0);
        let transactions = entries.iter().filter(|entry| entry.id.0.cast_signed() <= last).count();
        Ok(PruneReport { transactions, bytes: 0, left: entries.len() - transactions })
    };
    count(state).map_err(|failure| failure.into_error(state))
}

/// Drops the oldest transactions. The caller holds the lock, and no transaction is unfinished.
pub(crate) fn prune(state: &State, options: &PruneOptions) -> Result<PruneReport> {
    salvage::with_repair(state, || try_prune(state, options))
}

fn try_prune(state: &State, options: &PruneOptions) -> Result<PruneReport, Failure> {
    let Some(connection) = open(state)? else { return Ok(PruneReport::default()) };
    let (entries, has_damage) = read::entries_of(&connection)?;
    if has_damage {
        return Err(Failure::Damaged("transactions are missing".to_owned()));
    }
    let Some(last) = newest_dropped(&connection, options)? else {
        return Ok(PruneReport { left: entries.len(), ..PruneReport::default() });
    };
    let length = || std::fs::metadata(path(state)).map_or(0, |metadata| metadata.len());
    let before = length();
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let transactions = connection.execute("DELETE FROM transaction_ WHERE id <= ?", [last])?;
    connection
        .execute("DELETE FROM action WHERE id < coalesce((SELECT min(first_action) FROM transaction_), id + 1)", [])?;
    // VACUUM leaves no free pages in the file, so that a writer only ever appends to it.
    connection.execute_batch("COMMIT; VACUUM;")?;
    Ok(PruneReport { transactions, bytes: before.saturating_sub(length()), left: entries.len() - transactions })
}

/// Returns the newest transaction to drop. All older ones are dropped too, so that the remaining history has no gaps.
fn newest_dropped(connection: &Connection, options: &PruneOptions) -> Result<Option<i64>, Failure> {
    let oldest = options.older_than.and_then(|age| SystemTime::now().checked_sub(age)).unwrap_or(UNIX_EPOCH);
    let oldest_ms = oldest.duration_since(UNIX_EPOCH).map_or(0, |age| age.as_millis() as i64);
    let max_bytes = options.max_bytes.map_or(i64::MAX, |bytes| i64::try_from(bytes).unwrap_or(i64::MAX));
    Ok(connection.query_row(
        "SELECT max(id) FROM (
            SELECT id, time_ms, sum(300 + bytes) OVER (ORDER BY id DESC) AS bytes_since FROM (
                SELECT id, time_ms, (
                    SELECT coalesce(sum(300 + length(path) + coalesce(length(content), 0)), 0) FROM action
                    WHERE action.id >= first_action AND action.id < first_action + actions
                ) AS bytes FROM transaction_
            )
        ) WHERE time_ms < ? OR bytes_since > ?",
        [oldest_ms, max_bytes],
        |row| row.get(0),
    )?)
}
