//! The program's own files: a vault's state folder, which is outside the vault, private to the user, and has one lock.
//!
//! Besides the sandbox, this is the only code that writes files.

#![allow(clippy::disallowed_methods)]

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind as IoKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use vault_index::dirs::{key_of_vault, vault_or_gone};
use vault_index::lock::{Lock, lock_file};
use vault_index::private_file::{private_file, private_folder};

use crate::error::{Error, ErrorKind, Result};

const APP: &str = "vault-tools";

/// How long to wait for another process to write one of these files, which takes almost no time.
const FILE_WAIT: Duration = Duration::from_secs(5);

/// The files whose loss a user would notice. `journal` is a journal of another format; see `journal.rs`.
const VALUABLE: [&str; 5] = ["journal.db", "journal", "log.jsonl", "plans.jsonl", "macros.json"];

/// Returns whether a name is that of one of the program's own files: those above, locks, the additional files of the
/// journal, and files that a crash left while another was being replaced.
fn is_ours(name: &str) -> bool {
    let of_journal = name == "journal.db-journal"
        || ["journal.db.new", "journal.db.try", "journal.db.damaged", "journal.db.old", "journal.old"]
            .iter()
            .any(|begin| name.starts_with(begin));
    let rest = VALUABLE.iter().find_map(|file| name.strip_prefix(file)).or_else(|| name.strip_prefix("lock"));
    let is_replaced = |rest: &str| {
        let process = rest.strip_prefix('.').and_then(|rest| rest.strip_suffix(".new"));
        process.is_some_and(|process| process.parse::<u32>().is_ok())
    };
    of_journal || rest.is_some_and(|rest| matches!(rest, "" | ".lock") || is_replaced(rest))
}

/// The folder for the journal, log and macros of one vault. It is created with the first write.
#[derive(Debug, Clone)]
pub struct State {
    folder: PathBuf,
}

impl State {
    /// Returns the state folder of a vault: in the user's state folder, keyed by the vault's canonical path.
    ///
    /// # Errors
    /// If the system provides no state folder.
    pub fn of(canonical_vault: &Path) -> Result<Self> {
        let user =
            vault_index::dirs::state_folder().and_then(|folder| Some(folder.parent()?.join(APP))).ok_or_else(|| {
                Error::new(ErrorKind::Io, "the system names no folder for the state of programs")
                    .with_remedy("set HOME or XDG_STATE_HOME")
            })?;
        Ok(Self::at(user.join(key_of_vault(canonical_vault))))
    }

    /// Returns a state folder at a path that the caller chooses, which must not be inside the vault.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// Returns whether it is, or would be, inside a folder.
    pub(crate) fn lies_in(&self, canonical_folder: &Path) -> bool {
        vault_or_gone(&self.folder).unwrap_or_else(|_| self.folder.clone()).starts_with(canonical_folder)
    }

    /// Returns its path.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Reads the text of a file; `None` if the file does not exist.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(&self, name: &str) -> Result<Option<String>> {
        self.if_there(name, std::fs::read_to_string(self.folder.join(name)))
    }

    /// Reads the lines of a file; empty if the file does not exist. Invalid UTF-8 in them is replaced.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn lines(&self, name: &str) -> Result<Vec<String>> {
        let bytes = self.if_there(name, std::fs::read(self.folder.join(name)))?.unwrap_or_default();
        Ok(String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect())
    }

    /// Appends a line to a file. An incomplete line that a crash left before it remains a separate line.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn append(&self, name: &str, line: &str) -> Result<()> {
        drop(self.open(name)?);
        let opened = OpenOptions::new().read(true).append(true).open(self.folder.join(name));
        let mut file = opened.map_err(|error| self.failed(name, &error))?;
        let mut add = || -> std::io::Result<()> {
            let mut last = [b'\n'];
            if file.metadata()?.len() > 0 {
                file.seek(SeekFrom::End(-1))?;
                file.read_exact(&mut last)?;
            }
            let begin = if last == [b'\n'] { "" } else { "\n" };
            file.write_all(format!("{begin}{line}\n").as_bytes())
        };
        add().map_err(|error| self.failed(name, &error))
    }

    /// Returns the size of a file in bytes; 0 if the file does not exist.
    ///
    /// # Errors
    /// If its metadata cannot be read.
    pub(crate) fn length(&self, name: &str) -> Result<u64> {
        let metadata = self.if_there(name, std::fs::metadata(self.folder.join(name)))?;
        Ok(metadata.map_or(0, |metadata| metadata.len()))
    }

    /// Drops the unwanted lines of a file, then the oldest until the remaining ones take at most `max_bytes`. Returns
    /// the number of dropped lines.
    ///
    /// # Errors
    /// If it cannot be read or written.
    pub(crate) fn prune_lines(
        &self,
        name: &str,
        max_bytes: Option<u64>,
        is_wanted: &dyn Fn(&str) -> bool,
    ) -> Result<usize> {
        if !self.has(name) {
            return Ok(0);
        }
        // The lock prevents other processes from adding a line between the reading and the writing.
        let _lock = self.lock_file(name)?;
        let lines = self.lines(name)?;
        let mut kept: Vec<&str> = lines.iter().map(String::as_str).filter(|line| is_wanted(line)).collect();
        if let Some(most) = max_bytes {
            let mut bytes: u64 = 0;
            let fits = |line: &&&str| {
                bytes += line.len() as u64 + 1;
                bytes <= most
            };
            let count = kept.iter().rev().take_while(fits).count();
            kept.drain(..kept.len() - count);
        }
        let dropped = lines.len() - kept.len();
        if dropped > 0 {
            let text: String = kept.iter().flat_map(|line| [line, "\n"]).collect();
            self.replace(name, &text)?;
        }
        Ok(dropped)
    }

    /// Replaces the content of a file atomically: a reader sees either the old or the new content.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn replace(&self, name: &str, bytes: impl AsRef<[u8]>) -> Result<()> {
        let temporary = format!("{name}.{}.new", std::process::id());
        let mut file = self.open(&temporary)?;
        file.set_len(0)
            .and_then(|()| file.write_all(bytes.as_ref()))
            .and_then(|()| file.sync_all())
            .and_then(|()| std::fs::rename(self.folder.join(&temporary), self.folder.join(name)))
            .map_err(|error| self.failed(name, &error))?;
        self.sync_folder();
        Ok(())
    }

    /// Makes the names in the folder durable, if the system supports it.
    pub(crate) fn sync_folder(&self) {
        if cfg!(unix) {
            let _ = File::open(&self.folder).and_then(|folder| folder.sync_all());
        }
    }

    /// Removes a file. Returns whether it existed: if two callers remove it at the same time, only one gets `true`.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn remove(&self, name: &str) -> Result<bool> {
        self.if_there(name, std::fs::remove_file(self.folder.join(name))).map(|done| done.is_some())
    }

    fn if_there<T>(&self, name: &str, done: std::io::Result<T>) -> Result<Option<T>> {
        match done {
            Err(error) if error.kind() == IoKind::NotFound => Ok(None),
            done => done.map(Some).map_err(|error| self.failed(name, &error)),
        }
    }

    /// Deletes all of the program's own files, and the folder if it contains nothing else. Returns the deleted paths.
    ///
    /// # Errors
    /// [`ErrorKind::Busy`] while another process changes the vault; an error if a file cannot be deleted.
    pub fn forget(&self) -> Result<Vec<PathBuf>> {
        if !self.folder.exists() {
            return Ok(Vec::new());
        }
        drop(self.lock(Duration::ZERO)?);
        let failed = |error: std::io::Error| self.failed("", &error);
        let mut deleted = Vec::new();
        for entry in std::fs::read_dir(&self.folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if entry.file_name().to_str().is_some_and(is_ours) {
                std::fs::remove_file(entry.path()).map_err(|error| Error::io(entry.path().display(), &error))?;
                deleted.push(entry.path());
            }
        }
        deleted.sort();
        if std::fs::remove_dir(&self.folder).is_ok() {
            deleted.push(self.folder.clone());
        }
        Ok(deleted)
    }

    /// Moves the files of a vault whose folder was moved to this state folder.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if the old state folder is empty; [`ErrorKind::Conflict`] if this one already has files,
    /// or another process changes one of the two.
    pub fn adopt(&self, old: &Self) -> Result<()> {
        if old.folder == self.folder {
            return Err(Error::new(ErrorKind::InvalidArguments, "this is where the vault is now")
                .with_remedy("name the folder as it was before it moved, and with --vault where it is now"));
        }
        if !old.has_history() {
            return Err(Error::new(ErrorKind::NotFound, "there is no saved state for that folder")
                .at(old.folder.display())
                .with_remedy("name the folder that the vault was in"));
        }
        if let Some(file) = VALUABLE.iter().find(|file| self.has(file)) {
            return Err(Error::new(ErrorKind::Conflict, "this vault has a history of its own already")
                .at(self.folder.join(file).display())
                .with_remedy("nothing was done; forget the one of this vault first if the old one is worth more"));
        }
        drop(old.lock(Duration::ZERO)?);
        self.forget()?;
        let parent = self.folder.parent().unwrap_or(&self.folder);
        private_folder(parent)?;
        std::fs::rename(&old.folder, &self.folder).map_err(|error| self.failed("", &error))
    }

    /// Opens a file for reading and writing. A new one is private to the user (0600), and so is the folder (0700).
    pub(crate) fn open(&self, name: &str) -> Result<File> {
        if self.folder.is_file() {
            return Err(Error::new(ErrorKind::Io, "is a file, where the folder for journal, log and macros should be")
                .at(self.folder.display())
                .with_remedy("move the file away"));
        }
        private_folder(&self.folder)?;
        Ok(private_file(&self.folder.join(name))?)
    }

    /// Returns whether it contains files whose loss a user would notice.
    pub fn has_history(&self) -> bool {
        VALUABLE.iter().any(|file| self.has(file))
    }

    /// Returns whether a file exists.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.folder.join(name).exists()
    }

    /// Renames a file.
    pub(crate) fn rename(&self, from: &str, to: &str) -> Result<()> {
        std::fs::rename(self.folder.join(from), self.folder.join(to)).map_err(|error| self.failed(from, &error))
    }

    /// Returns an unused name: the given one, or one with a number.
    pub(crate) fn free_name(&self, name: &str) -> String {
        let numbered = |number: u32| if number == 1 { name.to_owned() } else { format!("{name}-{number}") };
        (1..).map(numbered).find(|name| !self.has(name)).unwrap_or_default()
    }

    /// Refuses folders with the names of the program's own files.
    pub(crate) fn check_no_folder(&self, names: &[&str]) -> Result<()> {
        match names.iter().map(|name| self.folder.join(name)).find(|path| path.is_dir()) {
            Some(path) => Err(Error::new(ErrorKind::Io, "is a folder, where a file of this program should be")
                .at(path.display())
                .with_remedy("move the folder away")),
            None => Ok(()),
        }
    }

    pub(crate) fn failed(&self, name: &str, error: &std::io::Error) -> Error {
        Error::io(self.folder.join(name).display(), error)
    }

    /// Takes the lock for changing the vault, waiting for at most `wait`. If the process is killed, the lock is
    /// released.
    ///
    /// # Errors
    /// [`ErrorKind::Busy`] with the holder, if the wait times out.
    pub(crate) fn lock(&self, wait: Duration) -> Result<Lock> {
        self.lock_on("lock", "this vault", wait)
    }

    /// Takes the lock of one of the files here, which is held while the file is read and rewritten.
    ///
    /// # Errors
    /// [`ErrorKind::Busy`] with the holder, if the wait times out.
    pub(crate) fn lock_file(&self, file: &str) -> Result<Lock> {
        self.lock_on(&format!("{file}.lock"), file, FILE_WAIT)
    }

    fn lock_on(&self, name: &str, what: &str, wait: Duration) -> Result<Lock> {
        drop(self.open(name)?);
        lock_file(&self.folder.join(name), Some(wait), None)?.map_err(|holder| {
            Error::new(ErrorKind::Busy, format!("{holder} is changing {what}"))
                .with_remedy("nothing was done; try again when it has ended")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_process_changes_a_vault_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let state = State::at(folder.path().join("state"));
        let held = state.lock(Duration::ZERO).unwrap();
        let refused = state.lock(Duration::ZERO).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Busy);
        assert!(refused.to_string().contains(&format!("process {}", std::process::id())), "{refused}");
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| state.lock(Duration::from_secs(60)).map(drop));
            drop(held);
            waits.join().unwrap().unwrap();
        });
    }

    #[test]
    fn files_are_forgotten_and_adopted() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (State::at(folder.path().join("old")), State::at(folder.path().join("new")));
        assert_eq!(new.adopt(&old).unwrap_err().kind(), ErrorKind::NotFound);
        old.append("journal", "x").unwrap();
        drop(old.lock_file("journal").unwrap());
        drop(new.lock(Duration::ZERO).unwrap());
        new.adopt(&old).unwrap();
        assert!(!old.folder().exists() && new.has("journal"));
        old.append("log.jsonl", "x").unwrap();
        assert_eq!(new.adopt(&old).unwrap_err().kind(), ErrorKind::Conflict);
        let held = new.lock(Duration::ZERO).unwrap();
        assert_eq!(new.forget().unwrap_err().kind(), ErrorKind::Busy);
        drop(held);
        // What is not ours stays.
        for name in ["journal.12.new", "journal.old-2", "journal.db.old", "journal.txt", "lock.x.new"] {
            new.append(name, "x").unwrap();
        }
        new.forget().unwrap();
        let mut left: Vec<_> =
            std::fs::read_dir(new.folder()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["journal.txt", "lock.x.new"]);
        assert_eq!(old.forget().unwrap().last().unwrap(), old.folder());
        let canonical = folder.path().canonicalize().unwrap();
        assert!(old.lies_in(&canonical) && !old.lies_in(&canonical.join("ol")));
    }

    #[test]
    fn files_of_ours_are_private_and_replaced_whole() {
        let folder = tempfile::tempdir().unwrap();
        let state = State::at(folder.path().join("a/state"));
        assert_eq!(state.read("log").unwrap(), None);
        state.append("log", "one").unwrap();
        state.append("log", "two").unwrap();
        assert_eq!(state.read("log").unwrap().as_deref(), Some("one\ntwo\n"));
        // What a crash cut, in the middle of a letter, spoils no other line.
        std::fs::write(state.folder().join("log"), b"one\ntw\xc3").unwrap();
        state.append("log", "three").unwrap();
        assert_eq!(state.lines("log").unwrap(), ["one", "tw\u{fffd}", "three"]);
        assert!(state.lines("none").unwrap().is_empty());
        state.replace("log", "new").unwrap();
        assert_eq!(state.read("log").unwrap().as_deref(), Some("new"));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(state.folder()), mode(&state.folder().join("log"))), (0o700, 0o600));
        }
        state.remove("log").unwrap();
        state.remove("log").unwrap();
        assert!(!state.has("log"));
    }
}
