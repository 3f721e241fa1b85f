//! A file as bytes in memory, mapped and not copied.
#![expect(unsafe_code, reason = "a mapped file must not be cut while it is read")]

use std::fs::File;
use std::path::Path;

use memmap2::Mmap;

use crate::error::ModelError;

/// Maps a file for reading.
///
/// Files of models are never changed in place: they are written under another name and renamed, so a mapping keeps the
/// bytes that it had.
pub(crate) fn map(path: &Path) -> Result<Mmap, ModelError> {
    let io = |error| ModelError::Io(path.to_owned(), error);
    let file = File::open(path).map_err(io)?;
    // SAFETY: nobody is expected to cut the file; see above.
    unsafe { Mmap::map(&file) }.map_err(io)
}
