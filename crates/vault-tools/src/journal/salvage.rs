//! A damaged journal is copied as far as it can be read, and kept: nothing of it is ever deleted.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension};

use super::database::{self, FILE, Failure, PAGE, SALVAGED};
use super::entry::{ActionRow, State as EntryState};
use super::insert::insert;
use super::progress;
use super::read::{self, Rows};
use crate::content::{Content, ContentHash};
use crate::error::Result;
use crate::state::State;

/// What replaces the digest of a transaction that is listed and cannot be undone.
pub(super) const LOST: &str = "lost";

/// A copy of the damaged file with a new first page.
const MENDED: &str = "journal.db.try";

/// A transaction that can be read, with what of its contents can.
struct Found {
    rows: Rows,
    contents: Vec<Option<Content>>,
}

/// If the file is damaged beyond single transactions, puts a new journal in its place, with all that can be read, and
/// returns where the old one is kept. The lock is held.
pub(crate) fn repair(state: &State) -> Result<Option<PathBuf>> {
    if read::entries(state)?.1 { set_aside(state).map(Some) } else { Ok(None) }
}

/// Puts a new journal in the place of a damaged one, with all that can be read. Returns where the old one is kept.
pub(super) fn set_aside(state: &State) -> Result<PathBuf> {
    let copied = || -> Result<(), Failure> {
        let new = database::create(state, SALVAGED)?;
        let (found, newest) = readable(state)?;
        new.execute_batch("BEGIN IMMEDIATE")?;
        for found in found {
            copy(&new, found)?;
        }
        let newest = newest.max(progress::newest(state).map_or(0, |id| id.0.cast_signed()));
        number_from(&new, newest)?;
        new.execute_batch("COMMIT")?;
        Ok(())
    };
    copied().map_err(|failure| failure.into_error(state))?;
    let aside = state.free_name(&format!("{FILE}.damaged"));
    let journal = format!("{FILE}-journal");
    if state.has(&journal) {
        state.rename(&journal, &format!("{aside}-journal"))?;
    }
    state.rename(FILE, &aside)?;
    state.rename(SALVAGED, FILE)?;
    state.rename(&format!("{SALVAGED}-journal"), &journal)?;
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
fn readable(state: &State) -> Result<(Vec<Found>, i64), Failure> {
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

fn found_in(path: &Path) -> Result<(Vec<Found>, i64), Failure> {
    let connection = database::connect(path)?;
    let mut found = Vec::new();
    for id in read::ids(&connection)?.0 {
        let Ok(Some(rows)) = read::rows(&connection, id) else { continue };
        let content = |(id, action): &(i64, ActionRow)| {
            let before = ContentHash::from_hex(action.before.as_deref()?)?;
            read::bytes_of(&connection, *id).ok().flatten().filter(|content| content.hash() == before)
        };
        let contents = rows.actions.iter().map(content).collect();
        found.push(Found { rows, contents });
    }
    // A damaged number would be given on to all that follow.
    let newest = found.iter().filter(|found| found.rows.is_row_whole).map(|found| found.rows.row.id).max().unwrap_or(0);
    found.retain(|found| found.rows.is_row_whole || (1..newest).contains(&found.rows.row.id));
    let sequence = "SELECT seq FROM sqlite_sequence WHERE name = 'transaction_'";
    let last = connection.query_row(sequence, [], |row| row.get::<_, i64>(0)).optional().ok().flatten().unwrap_or(0);
    let is_likely = (newest..newest.saturating_add(1000)).contains(&last);
    Ok((found, if is_likely { last } else { newest }))
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
    state.replace_bytes(MENDED, &bytes)?;
    Ok(state.folder().join(MENDED))
}

fn copy(new: &Connection, found: Found) -> Result<(), Failure> {
    let Found { rows: Rows { mut row, is_row_whole, actions }, contents } = found;
    if !is_row_whole {
        (row.digest, row.state, row.done) = (LOST.to_owned(), EntryState::Done.name().to_owned(), 0);
    }
    if row.state == EntryState::Unfinished.name() {
        row.state = EntryState::Suspect.name().to_owned();
    }
    let contents = contents.iter().map(|content| content.as_ref().map(Content::bytes));
    let actions: Vec<(&ActionRow, Option<&[u8]>)> = actions.iter().map(|(_, action)| action).zip(contents).collect();
    insert(new, &mut row, &actions)
}
