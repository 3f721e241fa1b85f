//! Copies the readable part of a damaged journal and keeps the damaged file, of which nothing is ever deleted.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension};

use super::database::{self, FILE, Failure, PAGE, ROLLBACK, SALVAGED};
use super::entry::{JournalEntry, LOST, State as EntryState, insert};
use super::read;
use crate::content::Content;
use crate::error::Result;
use crate::state::State;

/// A copy of the damaged file with a new first page.
const MENDED: &str = "journal.db.try";

/// A readable transaction, with those of its contents that can be read.
type SalvagedTransaction = (JournalEntry, Vec<Option<Content>>);

/// Runs `work` on the journal. If it finds the journal damaged, repairs it and runs `work` again. The caller holds the
/// lock.
pub(super) fn with_repair<T>(state: &State, mut work: impl FnMut() -> Result<T, Failure>) -> Result<T> {
    let done = match work() {
        Err(Failure::Damaged(_)) => {
            set_aside(state)?;
            work()
        }
        done => done,
    };
    done.map_err(|failure| failure.into_error(state))
}

/// If the file is damaged beyond single transactions, replaces it by a new journal with all readable transactions, and
/// returns the path of the old one. The caller holds the lock.
pub(crate) fn repair(state: &State) -> Result<Option<PathBuf>> {
    if read::entries(state)?.1 { set_aside(state).map(Some) } else { Ok(None) }
}

/// Replaces a damaged journal by a new one with all readable transactions. Returns the path of the old one.
fn set_aside(state: &State) -> Result<PathBuf> {
    let copied = || -> Result<(), Failure> {
        let new = database::create(state, SALVAGED)?;
        let (found, newest) = readable(state)?;
        new.execute_batch("BEGIN IMMEDIATE")?;
        for (mut entry, contents) in found {
            if entry.state == EntryState::Unfinished {
                entry.state = EntryState::Suspect;
            }
            insert(&new, &mut entry, &contents)?;
        }
        number_from(&new, newest)?;
        new.execute_batch("COMMIT")?;
        Ok(())
    };
    copied().map_err(|failure| failure.into_error(state))?;
    let aside = state.free_name(&format!("{FILE}.damaged"));
    if state.has(ROLLBACK) {
        state.rename(ROLLBACK, &format!("{aside}-journal"))?;
    }
    state.rename(FILE, &aside)?;
    state.rename(SALVAGED, FILE)?;
    state.rename(&format!("{SALVAGED}-journal"), ROLLBACK)?;
    state.sync_folder();
    ::log::warn!("the journal was damaged: it is kept as {aside}, and its readable part was copied");
    Ok(state.folder().join(aside))
}

/// Makes later transactions have numbers above this one.
pub(super) fn number_from(connection: &Connection, newest: i64) -> rusqlite::Result<()> {
    // SQLite adds the row of the table only with its first transaction.
    connection.execute(
        "INSERT INTO sqlite_sequence (name, seq) SELECT 'transaction_', 0 \
         WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'transaction_')",
        [],
    )?;
    let update = "UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = 'transaction_'";
    connection.execute(update, [newest]).map(drop)
}

/// Returns all readable transactions, and the highest number that any transaction had.
fn readable(state: &State) -> Result<(Vec<SalvagedTransaction>, i64), Failure> {
    let found = found_in(&database::path(state)).unwrap_or_default();
    if !found.0.is_empty() {
        return Ok(found);
    }
    // If the first page is damaged nothing can be found, but this page is the same in all journals.
    let mended = mended(state)?;
    let found = found_in(&mended).unwrap_or_default();
    for name in [MENDED.to_owned(), format!("{MENDED}-journal")] {
        state.remove(&name)?;
    }
    Ok(found)
}

fn found_in(path: &Path) -> Result<(Vec<SalvagedTransaction>, i64), Failure> {
    let connection = database::connect(path)?;
    let (mut entries, _) = read::entries_of(&connection)?;
    // A damaged number would be passed on to all later transactions.
    let whole = entries.iter().filter(|entry| entry.digest != LOST);
    let newest = whole.map(|entry| entry.id.0.cast_signed()).max().unwrap_or(0);
    let sequence = "SELECT seq FROM sqlite_sequence WHERE name = 'transaction_'";
    let last = connection.query_row(sequence, [], |row| row.get::<_, i64>(0)).optional().ok().flatten().unwrap_or(0);
    let last = if (newest..newest.saturating_add(1000)).contains(&last) { last } else { newest };
    entries.retain(|entry| (1..=last).contains(&entry.id.0.cast_signed()));
    let mut found = Vec::with_capacity(entries.len());
    for entry in entries {
        let contents = read::contents_of(&connection, &entry)?;
        found.push((entry, contents));
    }
    Ok((found, last))
}

/// Copies the damaged file and replaces its first page by that of a new journal.
fn mended(state: &State) -> Result<PathBuf, Failure> {
    let read = |name: &str| {
        std::fs::read(state.folder().join(name)).map_err(|error| Failure::Other(state.failed(name, &error)))
    };
    let (mut bytes, new) = (read(FILE)?, read(SALVAGED)?);
    let pages = u32::try_from(bytes.len() / PAGE).unwrap_or(u32::MAX);
    if let (Some(page), Some(first)) = (bytes.get_mut(..PAGE), new.get(..PAGE)) {
        page.copy_from_slice(first);
        // The number of pages.
        page[28..32].copy_from_slice(&pages.to_be_bytes());
    }
    state.replace(MENDED, &bytes)?;
    Ok(state.folder().join(MENDED))
}
