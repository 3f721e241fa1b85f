//! Where things of ours lie on this machine, private to the user, and who may write them now (file locks).

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::error::{Error, ErrorKind, Result};

const APP: &str = "vault-index";

/// The vault's folder, canonical.
///
/// # Errors
/// [`ErrorKind::Vault`] when there is no such folder.
pub fn canonical_vault(vault: &Path) -> Result<PathBuf> {
    let missing = |why: &str| {
        Error::new(ErrorKind::Vault, why).at(vault).remedy("name the folder that holds your notes with --vault DIR")
    };
    let canonical = std::fs::canonicalize(vault).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => missing("there is no such folder"),
        _ => missing("the vault cannot be opened").because(error),
    })?;
    if !canonical.is_dir() {
        return Err(missing("this is not a folder"));
    }
    Ok(canonical)
}

/// The folder of a vault that may be gone, as it was when it was there: the folders above it that are left are
/// canonical.
pub(crate) fn vault_or_gone(vault: &Path) -> Result<PathBuf> {
    let absolute = std::path::absolute(vault).map_err(|error| Error::io(vault, error))?;
    for above in absolute.ancestors() {
        if let Ok(canonical) = std::fs::canonicalize(above) {
            let rest = absolute.strip_prefix(above).unwrap_or(Path::new(""));
            // `join("")` would add a separator, and so another key.
            return Ok(if rest.as_os_str().is_empty() { canonical } else { canonical.join(rest) });
        }
    }
    Ok(absolute)
}

/// The index file of a vault: in the user's cache folder, keyed by the canonical path.
///
/// # Errors
/// When the vault does not exist or the system names no cache folder.
pub fn default_index_file(vault: &Path) -> Result<PathBuf> {
    Ok(index_folder_of(&canonical_vault(vault)?)?.join("index.db"))
}

/// The folder of a vault that may be gone: `canonical` is taken as it is.
pub(crate) fn index_folder_of(canonical: &Path) -> Result<PathBuf> {
    let hash = blake3::hash(canonical.as_os_str().as_encoded_bytes()).to_hex();
    let name: String = canonical
        .file_name()
        .map(|n| {
            n.to_string_lossy().chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).take(32).collect()
        })
        .unwrap_or_default();
    let cache = cache_folder().ok_or_else(|| {
        Error::new(ErrorKind::Io, "the system names no cache folder")
            .remedy("set HOME, or choose a file with --index FILE")
    })?;
    Ok(cache.join(APP).join(format!("{name}-{}", &hash[..16])))
}

/// The user's cache folder, as the system's conventions name it.
pub fn cache_folder() -> Option<PathBuf> {
    user_folder("Library/Caches", "LOCALAPPDATA", "XDG_CACHE_HOME", ".cache")
}

/// The user's configuration folder.
pub fn config_folder() -> Option<PathBuf> {
    user_folder("Library/Application Support", "APPDATA", "XDG_CONFIG_HOME", ".config").map(|folder| folder.join(APP))
}

/// The user's state folder: for what is neither a setting nor made anew at will.
pub fn state_folder() -> Option<PathBuf> {
    let folder = user_folder("Library/Application Support", "LOCALAPPDATA", "XDG_STATE_HOME", ".local/state");
    folder.map(|folder| folder.join(APP))
}

/// A folder of the user's: on macOS within home; on Windows by a variable; elsewhere by one, else within home.
fn user_folder(macos: &str, windows: &str, xdg: &str, in_home: &str) -> Option<PathBuf> {
    if cfg!(target_os = "macos") {
        home().map(|h| h.join(macos))
    } else if cfg!(windows) {
        variable(windows)
    } else {
        variable(xdg).or_else(|| home().map(|h| h.join(in_home)))
    }
}

/// The user's home folder.
pub fn home() -> Option<PathBuf> {
    std::env::home_dir().filter(|h| h.is_absolute())
}

/// A folder from the environment; relative ones are ignored, as the XDG convention asks.
fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute())
}

/// Makes a folder, and those above it that are missing, private to the user (0700).
pub(crate) fn private_folder(folder: &Path) -> Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).map_err(|error| Error::io(folder, error))
}

/// Opens a file for reading and writing, made private to the user (0600) if it is new.
pub(crate) fn private_file(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map_err(|error| Error::io(path, error))
}

/// Takes from all others what they may do with a file of ours that was there before, or was opened to them since.
pub(crate) fn make_private(path: &Path) -> Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        let mode = std::fs::metadata(path).map_err(|error| Error::io(path, error))?.mode();
        if mode & 0o077 != 0 {
            let private = std::fs::Permissions::from_mode(mode & 0o700);
            std::fs::set_permissions(path, private).map_err(|error| Error::io(path, error))?;
        }
    }
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}

/// A lock held by this process until dropped. The file behind it stays: only the lock on it counts,
/// so a process that is killed holds nothing.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
}

/// The locks of an index file; who wants more than one takes them in the order of [`LockName::ALL`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LockName {
    /// Held while a batch is written.
    Write,
    /// Held for as long as texts are embedded, so that two processes do not embed the same ones.
    Embed,
    /// Held for as long as a new index is built beside this one.
    Rebuild,
    /// Held for as long as a watcher keeps the index fresh.
    Watch,
}

impl LockName {
    /// In the order in which they are taken.
    pub const ALL: [Self; 4] = [Self::Watch, Self::Rebuild, Self::Embed, Self::Write];

    fn file(self, index: &Path) -> PathBuf {
        with_ending(
            index,
            match self {
                Self::Write => ".lock",
                Self::Embed => ".embed",
                Self::Rebuild => ".rebuilding",
                Self::Watch => ".watch",
            },
        )
    }
}

/// The logs that SQLite keeps beside an index.
pub(crate) fn logs_of(index: &Path) -> [PathBuf; 2] {
    ["-wal", "-shm"].map(|ending| with_ending(index, ending))
}

/// Where the new index is made while the old one is searched.
pub(crate) fn rebuild_of(index: &Path) -> PathBuf {
    with_ending(index, ".rebuild")
}

/// The lock files of an index file, as far as they are there and ours.
///
/// # Errors
/// [`ErrorKind::Io`] when one cannot be read.
pub(crate) fn locks_of(index: &Path) -> Result<Vec<PathBuf>> {
    let mut ours = Vec::new();
    for path in LockName::ALL.map(|name| name.file(index)) {
        match File::open(&path).and_then(|mut file| is_lock(&mut file)) {
            Ok(true) => ours.push(path),
            Ok(false) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(Error::io(path, error)),
        }
    }
    Ok(ours)
}

/// What damaged index files are called that were set aside: this, or this with a number.
const ASIDE: &str = ".damaged";

/// A name that no file has yet, for a damaged index to be set aside.
pub(crate) fn free_aside(index: &Path) -> PathBuf {
    let numbered = (2..).map(|n| with_ending(index, &format!("{ASIDE}-{n}")));
    let mut names = std::iter::once(with_ending(index, ASIDE)).chain(numbered);
    // A link that leads nowhere has the name too.
    names.find(|name| std::fs::symlink_metadata(name).is_err()).unwrap_or_else(|| with_ending(index, ASIDE))
}

/// The files that are called as a damaged index which was set aside.
pub(crate) fn asides_of(index: &Path) -> Vec<PathBuf> {
    let name = with_ending(index, ASIDE);
    let (Some(folder), Some(name)) = (index.parent(), name.file_name()) else { return Vec::new() };
    let is_number =
        |rest: &[u8]| rest.strip_prefix(b"-").is_some_and(|n| !n.is_empty() && n.iter().all(u8::is_ascii_digit));
    let is_aside = |file: &std::ffi::OsStr| {
        let rest = file.as_encoded_bytes().strip_prefix(name.as_encoded_bytes());
        rest.is_some_and(|rest| rest.is_empty() || is_number(rest))
    };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut asides: Vec<PathBuf> = entries.filter(|e| is_aside(&e.file_name())).map(|e| e.path()).collect();
    asides.sort_unstable();
    asides
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_os_string();
    name.push(ending);
    PathBuf::from(name)
}

/// Takes a lock, waiting for at most `wait` (`None`: without limit).
///
/// # Errors
/// [`ErrorKind::Locked`] with the holder when the wait is over; [`ErrorKind::Cancelled`]; [`ErrorKind::Io`] when a
/// file of somebody else has the lock's name.
pub(crate) fn lock(index: &Path, name: LockName, wait: Option<Duration>, cancel: Option<&AtomicBool>) -> Result<Lock> {
    let path = name.file(index);
    let mut file = private_file(&path)?;
    let started = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::Error(error)) => return Err(Error::io(&path, error)),
            Err(TryLockError::WouldBlock) => {
                if cancel.is_some_and(|c| c.load(Ordering::Relaxed)) {
                    return Err(Error::new(ErrorKind::Cancelled, "cancelled while waiting for the index's lock"));
                }
                if wait.is_some_and(|w| started.elapsed() >= w) {
                    let holder = read_holder(&mut file);
                    return Err(Error::new(ErrorKind::Locked, format!("the index is held by {holder}"))
                        .at(index)
                        .remedy("wait for it to end, or stop it"));
                }
                // There is no portable way to wait for a file lock with a limit but to ask again.
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
    if !is_lock(&mut file).map_err(|error| Error::io(&path, error))? {
        return Err(Error::new(ErrorKind::Io, "this file has the name of a lock of the index, and is none")
            .at(path)
            .remedy("move it away, or choose another place for the index with --index FILE"));
    }
    let holder = format!("{HOLDER}{} ({})", std::process::id(), program());
    file.set_len(0)
        .and_then(|()| file.seek(SeekFrom::Start(0)))
        .and_then(|_| file.write_all(holder.as_bytes()))
        .map_err(|error| Error::io(&path, error))?;
    Ok(Lock { file })
}

/// Who holds a lock now, if anybody. Never creates the file.
pub(crate) fn holder(index: &Path, name: LockName) -> Option<String> {
    let mut file = File::open(name.file(index)).ok()?;
    match file.try_lock_shared() {
        Ok(()) => None,
        Err(TryLockError::WouldBlock) => Some(read_holder(&mut file)),
        Err(TryLockError::Error(_)) => None,
    }
}

/// What a lock file begins with; the process's number and name follow.
const HOLDER: &str = "process ";

/// Whether a file holds what [`lock`] writes, all of it or what a killed process came to, and nothing else.
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
    name.unwrap_or_else(|| APP.to_string())
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing the file unlocks it as well; a failure here changes nothing.
        let _ = self.file.unlock();
    }
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

    #[test]
    fn no_name_is_used_twice_for_what_is_set_aside() {
        let dir = tempfile::tempdir().unwrap();
        let index = dir.path().join("index.db");
        let mut names = Vec::new();
        for _ in 0..3 {
            let name = free_aside(&index);
            std::fs::write(&name, "").unwrap();
            names.push(name);
        }
        for other in ["index.db.damaged-x", "index.db.damaged-", "index.db.damagedly", "other.db.damaged"] {
            std::fs::write(dir.path().join(other), "").unwrap();
        }
        assert_eq!(asides_of(&index), names);
        let endings: Vec<String> =
            names.iter().map(|n| n.to_string_lossy().rsplit('.').next().unwrap().to_string()).collect();
        assert_eq!(endings, ["damaged", "damaged-2", "damaged-3"]);
    }

    #[test]
    fn a_vault_that_is_gone_has_the_name_it_had() {
        let dir = tempfile::tempdir().unwrap();
        let vault = dir.path().join("a/vault");
        std::fs::create_dir_all(&vault).unwrap();
        let before = canonical_vault(&vault).unwrap();
        assert_eq!(vault_or_gone(&vault).unwrap(), before);
        for gone in [vault, dir.path().join("a")] {
            std::fs::remove_dir(&gone).unwrap();
            assert_eq!(vault_or_gone(&dir.path().join("a/vault")).unwrap(), before);
        }
    }

    #[cfg(unix)]
    #[test]
    fn what_is_made_is_private() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("a/b");
        private_folder(&folder).unwrap();
        private_file(&folder.join("f")).unwrap();
        let mode = |p: &Path| std::fs::metadata(p).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&dir.path().join("a")), mode(&folder), mode(&folder.join("f"))), (0o700, 0o700, 0o600));
    }
}
