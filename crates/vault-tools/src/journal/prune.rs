//! Old runs leave the journal, and with them the contents that only they still hold.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::time::{Duration, SystemTime};

use serde::Serialize;

use crate::error::Result;
use crate::journal::record::{Record, RunId, slot, slot_length};
use crate::journal::{FILE, read};
use crate::state::State;

/// Which runs are kept.
#[derive(Debug, Clone, Default)]
pub struct PruneOptions {
    /// Older runs go. `None`: whatever their age.
    pub older_than: Option<Duration>,
    /// The oldest runs go until the journal is no larger. `None`: whatever its size.
    pub max_bytes: Option<u64>,
}

/// What pruning did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Pruned {
    /// Runs that can no longer be taken back.
    pub runs: usize,
    /// Bytes that were freed.
    pub bytes: u64,
    /// Runs that are left.
    pub left: usize,
}

/// Drops the oldest runs. The lock is held, and no run is cut.
pub(crate) fn prune(state: &State, options: &PruneOptions) -> Result<Pruned> {
    let read::Scan { runs, end, .. } = read::scan(state)?;
    let oldest = options.older_than.and_then(|age| SystemTime::now().checked_sub(age));
    let goes = |run: &&read::Logged| {
        oldest.is_some_and(|oldest| run.time < oldest)
            || options.max_bytes.is_some_and(|max| end - run.bytes.start + slot_length() > max)
    };
    // From the front only: what is kept is a history without holes.
    let pruned = runs.iter().take_while(goes).count();
    let Some(last) = pruned.checked_sub(1).map(|last| &runs[last]) else {
        return Ok(Pruned { left: runs.len(), ..Pruned::default() });
    };
    let from = runs.get(pruned).map_or(end, |kept| kept.bytes.start);
    let keep = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(state.folder().join(FILE))?;
        file.seek(SeekFrom::Start(from))?;
        // Numbers go on where they were: an old note of one must never lead to another run.
        let mut bytes = slot(&Record::Pruned { run: RunId(last.id.0) });
        file.take(end - from).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let kept = keep().map_err(|error| state.failed(FILE, &error))?;
    state.replace_bytes(FILE, &kept)?;
    Ok(Pruned { runs: pruned, bytes: end.saturating_sub(kept.len() as u64), left: runs.len() - pruned })
}
