//! The files of an index: their names, and whether a file is an index at all.
//!
//! The first bytes of a file decide that. SQLite does not open it for this, because it may leave files beside it.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::dirs::{beside, indexes_folder};
use crate::error::{Error, ErrorKind, Result};
use crate::private_file::private_file;
use crate::store::open_file::{OpenFile, look};
use crate::store::schema::APPLICATION_ID;

/// The logs that SQLite keeps beside an index.
pub(crate) fn logs_of(index: &Path) -> [PathBuf; 2] {
    ["-wal", "-shm"].map(|ending| beside(index, ending))
}

/// The size of an index file and its log in bytes.
pub(crate) fn index_bytes(index: &Path) -> u64 {
    let size = |path: &Path| std::fs::metadata(path).map_or(0, |file| file.len());
    let [log, _] = logs_of(index);
    size(index) + size(&log)
}

/// The path where a new index is built while the old one is searched.
pub(crate) fn rebuild_of(index: &Path) -> PathBuf {
    beside(index, ".rebuild")
}

/// The suffix of damaged index files that a rebuild moved away, which a number may follow.
const DAMAGED: &str = ".damaged";

/// An unused name for a damaged index that is moved away.
pub(crate) fn free_damaged_name(index: &Path) -> PathBuf {
    let numbered = (2..).map(|n| beside(index, &format!("{DAMAGED}-{n}")));
    let mut names = std::iter::once(beside(index, DAMAGED)).chain(numbered);
    // A broken symbolic link also occupies the name.
    names.find(|name| std::fs::symlink_metadata(name).is_err()).unwrap_or_else(|| beside(index, DAMAGED))
}

/// The files with the names of damaged indexes that were moved away.
pub(crate) fn damaged_of(index: &Path) -> Vec<PathBuf> {
    let name = beside(index, DAMAGED);
    let (Some(folder), Some(name)) = (index.parent(), name.file_name()) else { return Vec::new() };
    let is_number =
        |rest: &[u8]| rest.strip_prefix(b"-").is_some_and(|n| !n.is_empty() && n.iter().all(u8::is_ascii_digit));
    let is_damaged = |file: &std::ffi::OsStr| {
        let rest = file.as_encoded_bytes().strip_prefix(name.as_encoded_bytes());
        rest.is_some_and(|rest| rest.is_empty() || is_number(rest))
    };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.filter(|e| is_damaged(&e.file_name())).map(|e| e.path()).collect();
    found.sort_unstable();
    found
}

/// The first bytes of a SQLite database.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
/// The offset of `application_id` in its header.
const APPLICATION_ID_AT: usize = 68;
/// The length of the header.
const HEADER: u64 = 100;

/// The kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileContent {
    /// An index, sound or damaged.
    Index,
    /// The file is empty or does not exist.
    Nothing,
    /// A SQLite database of another program.
    OtherDatabase,
    /// Another file, or an index whose beginning is damaged.
    Unknown,
}

impl FileContent {
    /// Reads the first bytes of a file, unless this process has it open as an index.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] when it exists but cannot be read.
    pub(crate) fn of(path: &Path) -> Result<Self> {
        look(path, || Self::read(path)).unwrap_or(Ok(Self::Index))
    }

    fn read(path: &Path) -> Result<Self> {
        // Opening a pipe would wait for a writer.
        if std::fs::metadata(path).is_ok_and(|what| !what.is_file() && !what.is_dir()) {
            return Ok(Self::Unknown);
        }
        let mut header = Vec::with_capacity(HEADER as usize);
        let read = File::open(path).and_then(|file| file.take(HEADER).read_to_end(&mut header));
        match read {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::Nothing),
            Err(error) => return Err(Error::io(path, error)),
            Ok(_) => {}
        }
        if header.is_empty() {
            return Ok(Self::Nothing);
        }
        if !header.starts_with(MAGIC) {
            return Ok(Self::Unknown);
        }
        Ok(match header.get(APPLICATION_ID_AT..APPLICATION_ID_AT + 4) {
            Some(id) if id == APPLICATION_ID.to_be_bytes() => Self::Index,
            Some(_) => Self::OtherDatabase,
            None => Self::Unknown,
        })
    }

    /// Checks that a file is an index or empty. A file named by mistake (a note, a photo, another program's database)
    /// must never be written, nor read by SQLite, which may leave files of its own beside it.
    ///
    /// # Errors
    /// [`ErrorKind::Damaged`] when the file is neither an index nor empty.
    pub(crate) fn index_or_nothing(path: &Path) -> Result<Self> {
        Self::of(path)?.or_refuse(path)
    }

    fn or_refuse(self, path: &Path) -> Result<Self> {
        let (message, remedy) = match self {
            Self::Index | Self::Nothing => return Ok(self),
            Self::OtherDatabase => (
                "this is the database of another program, or an index whose header is damaged",
                "choose another file with --index FILE, or move this one away; `vault-index sync` creates a new index",
            ),
            Self::Unknown => (
                "this file is not an index, or its beginning is damaged",
                match indexes_folder().is_ok_and(|ours| path.starts_with(ours)) {
                    true => "run `vault-index check --repair`, which sets it aside and rebuilds the index",
                    // Other files that a user names are never touched.
                    false => {
                        "if it was an index, delete it and run `vault-index sync`; otherwise choose another file with --index FILE"
                    }
                },
            ),
        };
        Err(Error::new(ErrorKind::Damaged, message).at(path).with_remedy(remedy))
    }
}

/// Opens an index that SQLite may read.
///
/// # Errors
/// The errors of [`FileContent::index_or_nothing`]; [`ErrorKind::NotFound`] when the file is missing or empty.
pub(super) fn index_to_read(path: &Path) -> Result<OpenFile> {
    OpenFile::new(path, || match FileContent::read(path)?.or_refuse(path)? {
        FileContent::Nothing => Err(no_index(path)),
        _ => Ok(()),
    })
}

/// Opens an index, or an empty file, that SQLite may write. A missing file is created, private to the user.
///
/// # Errors
/// The errors of [`FileContent::index_or_nothing`]; [`ErrorKind::Io`] when it cannot be created.
pub(super) fn index_to_write(path: &Path) -> Result<OpenFile> {
    // Created before SQLite opens it, so that it is private from its first byte.
    OpenFile::new(path, || {
        drop(private_file(path)?);
        FileContent::read(path)?.or_refuse(path).map(drop)
    })
}

pub(super) fn no_index(path: &Path) -> Error {
    Error::new(ErrorKind::NotFound, "there is no index yet").at(path).with_remedy("run `vault-index sync`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    #[test]
    fn by_its_first_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.db");
        let check = |expected| assert_eq!(FileContent::read(&file).unwrap(), expected);
        check(FileContent::Nothing);
        for (content, expected) in
            [(&b""[..], FileContent::Nothing), (b"SQLite", FileContent::Unknown), (b"# a note", FileContent::Unknown)]
        {
            std::fs::write(&file, content).unwrap();
            check(expected);
        }
        std::fs::remove_file(&file).unwrap();
        let store = Store::open(&file).unwrap();
        // Before any part of its log was folded in.
        check(FileContent::Index);
        drop(store);
        check(FileContent::Index);
        std::fs::remove_file(&file).unwrap();
        rusqlite::Connection::open(&file).unwrap().execute_batch("CREATE TABLE mine(a)").unwrap();
        check(FileContent::OtherDatabase);
    }

    #[test]
    fn no_name_is_used_twice_for_a_damaged_index() {
        let dir = tempfile::tempdir().unwrap();
        let index = dir.path().join("index.db");
        let mut names = Vec::new();
        for _ in 0..3 {
            let name = free_damaged_name(&index);
            std::fs::write(&name, "").unwrap();
            names.push(name);
        }
        for other in ["index.db.damaged-x", "index.db.damaged-", "index.db.damagedly", "other.db.damaged"] {
            std::fs::write(dir.path().join(other), "").unwrap();
        }
        assert_eq!(damaged_of(&index), names);
        let endings: Vec<String> =
            names.iter().map(|n| n.to_string_lossy().rsplit('.').next().unwrap().to_string()).collect();
        assert_eq!(endings, ["damaged", "damaged-2", "damaged-3"]);
    }
}
