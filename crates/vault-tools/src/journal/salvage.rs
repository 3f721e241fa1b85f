//! A damaged journal is copied as far as it can be read, and kept: nothing of it is ever deleted.

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

/// A transaction that can be read, with what of its contents can.
type SalvagedTransaction = (JournalEntry, Vec<Option<Content>>);

/// Does something with the journal: if that finds it damaged, once more with what can be read of it. The lock is held.
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

/// If the file is damaged beyond single transactions, puts a new journal in its place, with all that can be read, and
/// returns where the old one is kept. The lock is held.
pub(crate) fn repair(state: &State) -> Result<Option<PathBuf>> {
    if read::entries(state)?.1 { set_aside(state).map(Some) } else { Ok(None) }
}

/// Puts a new journal in the place of a damaged one, with all that can be read. Returns where the old one is kept.
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
    ::log::warn!("the journal was damaged: it is kept as {aside}, and what can be read of it was copied");
    Ok(state.folder().join(aside))
}

/// Gives later transactions numbers above this one.
pub(super) fn number_from(connection: &Connection, newest: i64) -> rusqlite::Result<()> {
    // The table has a row once there was a transaction.
    connection.execute(
        "INSERT INTO sqlite_sequence (name, seq) SELECT 'transaction_', 0 \
         WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'transaction_')",
        [],
    )?;
    let update = "UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = 'transaction_'";
    connection.execute(update, [newest]).map(drop)
}

/// All transactions that can be read, and the highest number that one had.
fn readable(state: &State) -> Result<(Vec<SalvagedTransaction>, i64), Failure> {
    let found = found_in(&database::path(state)).unwrap_or_default();
    if !found.0.is_empty() {
        return Ok(found);
    }
    // Nothing can be found where the first page is damaged, which is the same in all journals.
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
    // A damaged number would be given on to all that follow.
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

/// A copy of the damaged file whose first page is that of a new journal.
fn mended(state: &State) -> Result<PathBuf, Failure> {
    let read = |name: &str| {
        std::fs::read(state.folder().join(name)).map_err(|error| Failure::Other(state.failed(name, &error)))
    };
    let (mut bytes, new) = (read(FILE)?, read(SALVAGED)?);
    let pages = u32::try_from(bytes.len() / PAGE).unwrap_or(u32::MAX);
    if let (Some(page), Some(first)) = (bytes.get_mut(..PAGE), new.get(..PAGE)) {
        page.copy_from_slice(first);
        // How many pages there are.
        page[28..32].copy_from_slice(&pages.to_be_bytes());
    }
    state.replace(MENDED, &bytes)?;
    Ok(state.folder().join(MENDED))
}
