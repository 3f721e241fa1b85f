//! How far the transaction under way has come: a number in a file beside the journal, written over in place. It is
//! advice: it is not synced, may fail, and only says where recovery looks first.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};

use super::entry::TransactionId;
use crate::error::Result;
use crate::failpoint;
use crate::state::State;

pub(super) const FILE: &str = "journal.progress";

/// The file, open for writing.
pub(super) fn open(state: &State) -> Result<File> {
    state.open(FILE)
}

/// So many actions of a transaction are done.
pub(super) fn write(file: &mut File, id: TransactionId, done: usize) -> std::io::Result<()> {
    failpoint::write()?;
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&id.0.to_le_bytes());
    bytes[8..].copy_from_slice(&(done as u64).to_le_bytes());
    file.seek(SeekFrom::Start(0))?;
    file.write_all(&bytes)
}

/// How many actions of a transaction were done, if that was written.
pub(super) fn read(state: &State, id: TransactionId) -> Option<usize> {
    let (of, done) = numbers(state)?;
    (of == id).then(|| usize::try_from(done).ok()).flatten()
}

/// The last transaction that began.
pub(super) fn newest(state: &State) -> Option<TransactionId> {
    numbers(state).map(|(id, _)| id)
}

fn numbers(state: &State) -> Option<(TransactionId, u64)> {
    let mut bytes = [0; 16];
    File::open(state.folder().join(FILE)).ok()?.read_exact(&mut bytes).ok()?;
    let (id, done) = bytes.split_at(8);
    let number = |half: &[u8]| half.try_into().ok().map(u64::from_le_bytes);
    Some((TransactionId(number(id)?), number(done)?))
}
