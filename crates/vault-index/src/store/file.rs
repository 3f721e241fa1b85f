//! The files of an index: what they are named, and whether a file is an index at all.
//!
//! The first bytes of a file decide that. SQLite does not open it for this, since it may leave files beside it.

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

/// Bytes of an index file and its log.
pub(crate) fn index_bytes(index: &Path) -> u64 {
    let size = |path: &Path| std::fs::metadata(path).map_or(0, |file| file.len());
    let [log, _] = logs_of(index);
    size(index) + size(&log)
}

/// Where the new index is made while the old one is searched.
pub(crate) fn rebuild_of(index: &Path) -> PathBuf {
    beside(index, ".rebuild")
}

/// How damaged index files that a rebuild moved away are named: with this at the end, or this and a number.
const DAMAGED: &str = ".damaged";

/// A name that no file has yet, for a damaged index that is moved away.
pub(crate) fn free_damaged_name(index: &Path) -> PathBuf {
    let numbered = (2..).map(|n| beside(index, &format!("{DAMAGED}-{n}")));
    let mut names = std::iter::once(beside(index, DAMAGED)).chain(numbered);
    // A link that leads nowhere has the name too.
    names.find(|name| std::fs::symlink_metadata(name).is_err()).unwrap_or_else(|| beside(index, DAMAGED))
}

/// The files that are named like a damaged index which was moved away.
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

/// A SQLite database begins with this.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
/// Where its header keeps `application_id`.
const APPLICATION_ID_AT: usize = 68;
/// The length of the header.
const HEADER: u64 = 100;

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileContent {
    /// It is an index, sound or damaged.
    Index,
    /// It is empty or not there.
    Nothing,
    /// It is a SQLite database of another kind.
    OtherDatabase,
    /// Something else, or an index whose beginning is damaged.
    Unknown,
}

impl FileContent {
    /// Reads the first bytes of a file, unless this process has it open as an index.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] when it is there and cannot be read.
    pub(crate) fn of(path: &Path) -> Result<Self> {
        look(path, || Self::read(path)).unwrap_or(Ok(Self::Index))
    }

    fn read(path: &Path) -> Result<Self> {
        // A pipe would have us wait for who writes to it.
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

    /// An index file named by mistake (a note, a photo, another program's database) must never be written to; nor
    /// read by SQLite, which may leave files of its own beside it.
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
                    // Whatever else a user names is never touched.
                    false => {
                        "if it was an index, delete it and run `vault-index sync`; otherwise choose another file with --index FILE"
                    }
                },
            ),
        };
        Err(Error::new(ErrorKind::Damaged, message).at(path).with_remedy(remedy))
    }
}

/// An index that SQLite may open for reading.
///
/// # Errors
/// As [`FileContent::index_or_nothing`]; [`ErrorKind::NotFound`] when there is no file or an empty one.
pub(super) fn index_to_read(path: &Path) -> Result<OpenFile> {
    OpenFile::new(path, || match FileContent::read(path)?.or_refuse(path)? {
        FileContent::Nothing => Err(no_index(path)),
        _ => Ok(()),
    })
}

/// An index, or an empty file, that SQLite may open for writing. A missing file is made, private to the user.
///
/// # Errors
/// As [`FileContent::index_or_nothing`]; [`ErrorKind::Io`] when it cannot be made.
pub(super) fn index_to_write(path: &Path) -> Result<OpenFile> {
    // Made by us before SQLite opens it, so that it is private from its first byte.
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
        // Before anything of its log was folded in.
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
