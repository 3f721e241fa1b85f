//! The index files that this process has open.
//!
//! POSIX releases all locks of a process on a file when the process closes any descriptor of it. SQLite counts its own
//! descriptors. If we closed one of ours while SQLite has the file open, SQLite would lose its locks, and another
//! process could then write at the same time, or take an unfinished write for the remains of a crash. So the bytes of a
//! file are read through [`look`], which does not touch open files.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::Result;

/// Device and inode of a file.
type Identity = (u64, u64);

/// Each open file with its number of connections. Locked while a file is read, because SQLite must not open it then.
static OPEN: Mutex<BTreeMap<Identity, usize>> = Mutex::new(BTreeMap::new());

fn open_files() -> MutexGuard<'static, BTreeMap<Identity, usize>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `None` if the file does not exist, and on Windows, where each descriptor has locks of its own.
fn identity(path: &Path) -> Option<Identity> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        None
    }
}

fn is_open(open: &BTreeMap<Identity, usize>, path: &Path) -> bool {
    identity(path).is_some_and(|file| open.contains_key(&file))
}

/// The result of `read` for a file, or `None` if this process has it open as an index.
pub(super) fn look<T>(path: &Path, read: impl FnOnce() -> T) -> Option<T> {
    let open = open_files();
    (!is_open(&open, path)).then(read)
}

/// A file that SQLite has open. It exists from before SQLite opens the file until after it closes it.
pub(super) struct OpenFile(Option<Identity>);

impl OpenFile {
    /// Registers a file that SQLite may open if `check` succeeds, which may read and create the file. A file that is
    /// already open is not checked again.
    pub(super) fn new(path: &Path, check: impl FnOnce() -> Result<()>) -> Result<Self> {
        let mut open = open_files();
        if !is_open(&open, path) {
            check()?;
        }
        let file = identity(path);
        if let Some(file) = file {
            *open.entry(file).or_default() += 1;
        }
        Ok(Self(file))
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        let Some(file) = self.0 else { return };
        let mut open = open_files();
        if let Some(connections) = open.get_mut(&file) {
            *connections -= 1;
            if *connections == 0 {
                open.remove(&file);
            }
        }
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::path::Path;
    use std::process::Command;
    use std::time::Duration;

    use rusqlite::{Connection, ErrorCode};

    use crate::store::FileContent;
    use crate::store::file::{index_to_read, index_to_write};

    /// Set for the other process, which tries to write to this file.
    const OTHER_PROCESS: &str = "TEST_OTHER_PROCESS_WRITES";

    #[test]
    fn a_look_at_an_index_that_is_being_made_lets_no_other_process_write() {
        if let Some(index) = std::env::var_os(OTHER_PROCESS) {
            let other = Connection::open(index).unwrap();
            other.busy_timeout(Duration::ZERO).unwrap();
            let error = other.execute_batch("BEGIN IMMEDIATE").unwrap_err();
            assert_eq!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy));
            return;
        }
        stays_locked(|index| FileContent::of(index).unwrap());
        stays_locked(|index| index_to_read(index).unwrap());
        stays_locked(|index| index_to_write(index).unwrap());
    }

    fn stays_locked<T>(look: impl Fn(&Path) -> T) {
        let folder = tempfile::tempdir().unwrap();
        let index = folder.path().join("index.db");
        let _file = index_to_write(&index).unwrap();
        let connection = Connection::open(&index).unwrap();
        connection.execute_batch("BEGIN EXCLUSIVE").unwrap();
        let _looked = look(&index);
        let name = std::thread::current().name().unwrap().to_owned();
        let mut other = Command::new(std::env::current_exe().unwrap());
        let ran = other.args(["--exact", &name]).env(OTHER_PROCESS, &index).output().unwrap();
        assert!(ran.status.success() && String::from_utf8_lossy(&ran.stdout).contains("1 passed"), "{ran:?}");
    }
}
