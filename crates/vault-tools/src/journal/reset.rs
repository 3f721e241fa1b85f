//! Moves the journal aside, so that a new one begins: the way on from a journal of another format.

use std::path::PathBuf;

use super::database::{FILE, OLDER_FILE};
use super::read;
use crate::error::{Error, ErrorKind, Result};
use crate::state::State;

/// What SQLite keeps beside a database. They are moved before it: a database without them could not be read again.
const BESIDE: [&str; 3] = ["-journal", "-wal", "-shm"];

/// The journal files that there are.
pub(crate) fn files(state: &State) -> Vec<PathBuf> {
    let names = [FILE, OLDER_FILE].into_iter().filter(|name| state.has(name));
    names.map(|name| state.folder().join(name)).collect()
}

/// Moves the journal aside, whatever its format, and returns where it is now. The lock is held.
///
/// # Errors
/// [`ErrorKind::Journal`] while a transaction is interrupted, since nothing else knows how to roll it back.
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
