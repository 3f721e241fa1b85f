//! Moves the journal aside, so that a new one begins. This is how to continue when a journal has another format.

use std::path::PathBuf;

use super::database::{FILE, OLDER_FILE};
use super::read;
use crate::error::{Error, ErrorKind, Result};
use crate::state::State;

/// The files that SQLite keeps beside a database. They are moved before it, because a database without them could not
/// be read.
const BESIDE: [&str; 3] = ["-journal", "-wal", "-shm"];

/// Returns the existing journal files.
pub(crate) fn files(state: &State) -> Vec<PathBuf> {
    let names = [FILE, OLDER_FILE].into_iter().filter(|name| state.has(name));
    names.map(|name| state.folder().join(name)).collect()
}

/// Moves the journal aside, whatever its format, and returns the new paths. The caller holds the lock.
///
/// # Errors
/// [`ErrorKind::Journal`] while a transaction is interrupted, because only the journal contains the data to roll it
/// back.
pub(crate) fn reset(state: &State) -> Result<Vec<PathBuf>> {
    if let Ok(Some(entry)) = read::unfinished(state) {
        let what = format!("the transaction {} ({}) was interrupted", entry.id, entry.label);
        return Err(Error::new(ErrorKind::Journal, what).with_remedy(
            "decide first: `vault-tools undo --recover` rolls it back, `vault-tools undo --keep` keeps it",
        ));
    }
    let mut moved = Vec::new();
    for name in [FILE, OLDER_FILE].into_iter().filter(|name| state.has(name)) {
        let aside = state.free_name(&format!("{name}.old"));
        for ending in BESIDE.into_iter().filter(|ending| state.has(&format!("{name}{ending}"))) {
            state.rename(&format!("{name}{ending}"), &format!("{aside}{ending}"))?;
        }
        state.rename(name, &aside)?;
        moved.push(state.folder().join(aside));
    }
    state.sync_folder();
    Ok(moved)
}
