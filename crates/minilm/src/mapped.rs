//! A file as bytes in memory, mapped and not copied.
#![expect(unsafe_code, reason = "a mapped file must not be cut while it is read")]

use std::fs::File;
use std::path::Path;

use memmap2::Mmap;

use crate::error::ModelError;

/// Maps a file for reading.
///
/// Compiled models are never changed in place: they are written under another name and renamed, so a mapping keeps the
/// bytes that it had. The published files of a folder are the user's, and another process may change them: then a model
/// is compiled from other numbers than the digests say, or, where the file was cut, the system ends the process (SIGBUS)
/// before the compiled file gets its name. Windows refuses to cut a mapped file.
pub(crate) fn map(path: &Path) -> Result<Mmap, ModelError> {
    let io = |error| ModelError::Io(path.to_owned(), error);
    let file = File::open(path).map_err(io)?;
    // SAFETY: the mapping is only read, and every bit pattern is a valid byte. This program never changes a file that it
    // maps; for another process that does, see above.
    let map = unsafe { Mmap::map(&file) }.map_err(io)?;
    match file.metadata().map_err(io)?.len() == map.len() as u64 {
        true => Ok(map),
        false => Err(ModelError::damaged(path, "another process changes the file")),
    }
}
