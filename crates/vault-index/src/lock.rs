//! Locks of an index file, held by one process at a time: one for writing, one for embedding, one for watching.

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::dirs::beside;
use crate::error::{Error, ErrorKind, Result};
use crate::private_file::private_file;

/// A lock that this process holds until it is dropped. The lock file stays, because only the operating system's lock on
/// it counts: a killed process holds nothing.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

/// The locks of an index file. To take more than one, take them in the order of [`LockName::ALL`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LockName {
    /// Held while a batch is written.
    Write,
    /// Held while texts are embedded, including those for a new index that is built beside this one, so that no two
    /// processes embed the same texts.
    Embed,
    /// Held while a watcher keeps the index up to date.
    Watch,
}

impl LockName {
    /// All locks, in the order in which they are taken.
    pub const ALL: [Self; 3] = [Self::Watch, Self::Embed, Self::Write];

    fn file(self, index: &Path) -> PathBuf {
        let ending = match self {
            Self::Write => ".lock",
            Self::Embed => ".embed",
            Self::Watch => ".watch",
        };
        beside(index, ending)
    }
}

/// Takes a lock, and waits for at most `wait` (`None`: without limit).
///
/// # Errors
/// [`ErrorKind::Locked`] with the holder when the wait times out, and the errors of [`lock_file`].
pub(crate) fn lock(index: &Path, name: LockName, wait: Option<Duration>, cancel: Option<&AtomicBool>) -> Result<Lock> {
    let file = name.file(index);
    let held = match lock_file(&file, Some(Duration::ZERO), cancel)? {
        Err(_) if wait != Some(Duration::ZERO) => {
            let _claim = if name == LockName::Embed { Some(claim(index)?) } else { None };
            lock_file(&file, wait, cancel)?
        }
        held => held,
    };
    held.map_err(|holder| {
        Error::new(ErrorKind::Locked, format!("the index is held by {holder}"))
            .at(index)
            .with_remedy("wait for it to end, or stop it")
    })
}

/// Requests that background embedding stops, for as long as the returned file is held. The lock is shared, because
/// several processes may wait.
fn claim(index: &Path) -> Result<File> {
    let path = claim_file(index);
    let file = private_file(&path)?;
    // Waits at most as long as a check by [`is_claimed`] takes.
    file.lock_shared().map_err(|error| Error::io(path, error))?;
    Ok(file)
}

/// Whether another process waits for [`LockName::Embed`].
pub(crate) fn is_claimed(index: &Path) -> bool {
    File::open(claim_file(index)).is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
}

fn claim_file(index: &Path) -> PathBuf {
    beside(index, ".claim")
}

/// Takes the lock of a file, which is created if it does not exist, and waits for at most `wait` (`None`: without
/// limit). The inner error is the holder when the wait times out.
///
/// # Errors
/// [`ErrorKind::Cancelled`]; [`ErrorKind::Io`] when a file that is not a lock has its name.
pub fn lock_file(
    path: &Path,
    wait: Option<Duration>,
    cancel: Option<&AtomicBool>,
) -> Result<std::result::Result<Lock, String>> {
    let mut file = private_file(path)?;
    let started = Instant::now();
    let mut is_waiting = false;
    loop {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::Error(error)) => return Err(Error::io(path, error)),
            Err(TryLockError::WouldBlock) => {
                if cancel.is_some_and(|c| c.load(Ordering::Relaxed)) {
                    return Err(Error::new(ErrorKind::Cancelled, "cancelled while waiting for the index's lock"));
                }
                if wait.is_some_and(|w| started.elapsed() >= w) {
                    return Ok(Err(read_holder(&mut file)));
                }
                if !is_waiting {
                    log::info!("waiting for {}, held by {}", path.display(), read_holder(&mut file));
                    is_waiting = true;
                }
                // Polls, because there is no portable way to wait for a file lock with a time limit.
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
    if !is_lock(&mut file).map_err(|error| Error::io(path, error))? {
        return Err(Error::new(ErrorKind::Io, "this file has the name of a lock file, but is not one")
            .at(path)
            .with_remedy("move it away, or choose another place for the index with --index FILE"));
    }
    let holder = format!("{HOLDER}{} ({})", std::process::id(), program());
    file.set_len(0)
        .and_then(|()| file.seek(SeekFrom::Start(0)))
        .and_then(|_| file.write_all(holder.as_bytes()))
        .map_err(|error| Error::io(path, error))?;
    Ok(Ok(Lock { file }))
}

/// The process that holds a lock now, if there is one. Never creates the file.
pub(crate) fn holder(index: &Path, name: LockName) -> Option<String> {
    let mut file = File::open(name.file(index)).ok()?;
    match file.try_lock_shared() {
        Ok(()) => None,
        Err(TryLockError::WouldBlock) => Some(read_holder(&mut file)),
        Err(TryLockError::Error(_)) => None,
    }
}

/// The start of a lock file; the process's number and name follow.
const HOLDER: &str = "process ";

/// Whether a file contains exactly what [`lock`] writes, or the part that a killed process wrote.
fn is_lock(file: &mut File) -> std::io::Result<bool> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.take(4096).read_to_end(&mut bytes)?;
    let Some(rest) = bytes.strip_prefix(HOLDER.as_bytes()) else { return Ok(HOLDER.as_bytes().starts_with(&bytes)) };
    let name = &rest[rest.iter().take_while(|byte| byte.is_ascii_digit()).count()..];
    Ok((name.is_empty() || name.starts_with(b" ")) && !name.contains(&b'\n'))
}

fn read_holder(file: &mut File) -> String {
    let mut text = String::new();
    let read = file.seek(SeekFrom::Start(0)).and_then(|_| file.take(200).read_to_string(&mut text));
    match read {
        Ok(_) if !text.is_empty() => text,
        _ => "another process".to_string(),
    }
}

fn program() -> String {
    let name = std::env::current_exe().ok().and_then(|p| p.file_stem().map(|n| n.to_string_lossy().into_owned()));
    name.unwrap_or_else(|| "vault-index".to_string())
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing the file unlocks it as well, so a failure here does not matter.
        let _ = self.file.unlock();
    }
}

/// The lock files of an index file that exist and belong to this program.
///
/// # Errors
/// [`ErrorKind::Io`] when one cannot be read.
pub(crate) fn locks_of(index: &Path) -> Result<Vec<PathBuf>> {
    let mut ours = Vec::new();
    for path in LockName::ALL.map(|name| name.file(index)).into_iter().chain([claim_file(index)]) {
        match File::open(&path).and_then(|mut file| is_lock(&mut file)) {
            Ok(true) => ours.push(path),
            Ok(false) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(Error::io(path, error)),
        }
    }
    Ok(ours)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_has_one_holder_and_names_it() {
        let dir = tempfile::tempdir().unwrap();
        let index = dir.path().join("index.db");
        assert_eq!(holder(&index, LockName::Write), None);
        let held = lock(&index, LockName::Write, None, None).unwrap();
        let me = format!("process {}", std::process::id());
        assert!(holder(&index, LockName::Write).unwrap().starts_with(&me));
        let refused = lock(&index, LockName::Write, Some(Duration::ZERO), None).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Locked);
        assert!(refused.to_string().contains(&me), "{refused}");
        assert_eq!(holder(&index, LockName::Watch), None);
        drop(held);
        assert_eq!(holder(&index, LockName::Write), None);
        lock(&index, LockName::Write, Some(Duration::ZERO), None).unwrap();
    }

    #[test]
    fn what_somebody_else_wrote_is_no_lock() {
        let dir = tempfile::tempdir().unwrap();
        let index = dir.path().join("index.db");
        let file = LockName::Write.file(&index);
        for text in ["my notes\n", "process 12 of the plan\nand more", "process of making bread", "p\0"] {
            std::fs::write(&file, text).unwrap();
            let error = lock(&index, LockName::Write, None, None).unwrap_err();
            assert!(error.to_string().contains("move it away"), "{error}");
            assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
            assert_eq!(locks_of(&index).unwrap(), [""; 0].map(PathBuf::from));
        }
        // Empty, or all that a process which was killed came to write.
        for text in ["", "proce", "process 1", "process 12 (vault-in"] {
            std::fs::write(&file, text).unwrap();
            lock(&index, LockName::Write, None, None).unwrap();
        }
        assert_eq!(locks_of(&index).unwrap(), [file]);
    }
}
