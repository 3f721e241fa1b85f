//! Reads one note: its bytes and their hash, or a warning if it cannot be read.

use std::fs::{self, File, Metadata};
use std::io::{self, Read, Seek};
use std::path::Path;

use super::diff::ContentHash;
use super::stat::{FileStat, identity};
use super::walk::DiskFile;
use crate::error::{Warning, WarningKind};

/// The default size limit: larger notes are not read. 10 MB.
pub const MAX_NOTE_BYTES: u64 = 10_000_000;

/// A file with a NUL byte within this many bytes of the start is not text.
const SNIFF: u64 = 8 << 10;

/// How often a file that changes while it is read is read again.
const TRIES: usize = 3;

/// The content of a note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// All bytes of the note.
    pub bytes: Vec<u8>,
    /// Their BLAKE3 hash.
    pub hash: ContentHash,
    /// The stat that belongs to these bytes: store this one, not the walk's, which can be older. If the file kept
    /// changing, the stat is older than the bytes, so that the next comparison finds a difference and reads the file
    /// again.
    pub stat: FileStat,
}

/// Reads a note of at most `max_bytes`.
///
/// It opens the regular file that the walk found, or a file of the same vault that has replaced it since. No symbolic
/// link is followed, neither in the last part of the path nor in a folder above it. This protects against accidents,
/// not against a program that swaps folders between two of our calls.
///
/// # Errors
/// A warning, [`WarningKind::TooLarge`], `Binary`, `Symlink` or `Unreadable`, for a file that must not be or cannot be
/// read; other warnings do not stop the reading.
pub fn read_note(root: &Path, file: &DiskFile, max_bytes: u64) -> Result<Content, Warning> {
    let path = root.join(file.disk_path());
    let (mut open, mut before) = open(&path)?;
    let seen = FileStat::of(&before);
    if seen.inode == 0 || seen.inode != file.stat.inode {
        stays_inside(root, &path)?;
    }
    let mut tries = 1;
    loop {
        let bytes = read_all(&mut open, &before, max_bytes)?;
        let after = open.metadata().map_err(|e| unreadable(&e))?;
        let still = FileStat::of(&before) == FileStat::of(&after);
        if still || tries == TRIES {
            let hash = *blake3::hash(&bytes).as_bytes();
            return Ok(Content { bytes, hash, stat: FileStat::of(&before) });
        }
        tries += 1;
        before = after;
        open.rewind().map_err(|e| unreadable(&e))?;
    }
}

/// Opens the regular file at `path`, and only that, and returns its metadata.
fn open(path: &Path) -> Result<(File, Metadata), Warning> {
    // Checked before it is opened, because opening a pipe would wait for a writer.
    let named = fs::symlink_metadata(path).map_err(|e| unreadable(&e))?;
    if named.is_symlink() {
        return Err(Warning::new(WarningKind::Symlink, "became a symbolic link; it is not followed"));
    }
    let not_regular = || Warning::new(WarningKind::Unreadable, "is no longer a regular file");
    if !named.is_file() {
        return Err(not_regular());
    }
    let open = File::open(path).map_err(|e| unreadable(&e))?;
    let opened = open.metadata().map_err(|e| unreadable(&e))?;
    if !opened.is_file() {
        return Err(not_regular());
    }
    if identity(&named) != identity(&opened) {
        // An editor may have replaced the file with a new version between the two calls; a link would still be there.
        if fs::symlink_metadata(path).map_err(|e| unreadable(&e))?.is_symlink() {
            return Err(Warning::new(WarningKind::Symlink, "became a symbolic link; it is not followed"));
        }
    }
    Ok((open, opened))
}

fn stays_inside(root: &Path, path: &Path) -> Result<(), Warning> {
    let real = fs::canonicalize(path).map_err(|e| unreadable(&e))?;
    let root = fs::canonicalize(root).map_err(|e| unreadable(&e))?;
    if real.starts_with(root) {
        return Ok(());
    }
    Err(Warning::new(
        WarningKind::Symlink,
        "a folder above it became a symbolic link out of the vault; it is not followed",
    ))
}

fn read_all(open: &mut File, metadata: &Metadata, max_bytes: u64) -> Result<Vec<u8>, Warning> {
    let too_large = |size: u64| {
        let message = format!("{size} bytes are over the limit of {max_bytes} bytes; only its name is known");
        Warning::new(WarningKind::TooLarge, message)
    };
    if metadata.len() > max_bytes {
        return Err(too_large(metadata.len()));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0) + 1);
    open.take(SNIFF).read_to_end(&mut bytes).map_err(|e| unreadable(&e))?;
    if bytes.contains(&0) {
        let utf16 = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
        let message = if utf16 {
            "looks like UTF-16; save it as UTF-8 to have it indexed; only its name is known"
        } else {
            "contains NUL bytes, so it is not text; only its name is known"
        };
        return Err(Warning::new(WarningKind::Binary, message));
    }
    if bytes.len() as u64 == SNIFF {
        // One more byte than allowed, to notice that a file which grows meanwhile exceeds the limit.
        let rest = (max_bytes + 1).saturating_sub(SNIFF);
        open.take(rest).read_to_end(&mut bytes).map_err(|e| unreadable(&e))?;
    }
    if bytes.len() as u64 > max_bytes {
        return Err(too_large(bytes.len() as u64));
    }
    Ok(bytes)
}

fn unreadable(error: &io::Error) -> Warning {
    let message = match error.kind() {
        io::ErrorKind::NotFound => "was deleted after the folder was listed".to_owned(),
        _ => format!("cannot be read: {error}"),
    };
    Warning::new(WarningKind::Unreadable, message)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::files::{WalkRules, walk};

    const LIMIT: u64 = 20_000;

    /// A vault of one note with this content, and the note.
    fn note(content: &[u8]) -> (tempfile::TempDir, DiskFile) {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("folder")).unwrap();
        fs::write(root.path().join("folder/a.md"), content).unwrap();
        let files = walk(root.path(), &WalkRules::default(), &AtomicBool::new(false)).unwrap().files;
        let [file] = &files[..] else { panic!("one file") };
        (root, file.clone())
    }

    fn check(content: &[u8], expected: Option<WarningKind>) {
        let (root, file) = note(content);
        match (read_note(root.path(), &file, LIMIT), expected) {
            (Ok(read), None) => {
                assert_eq!(read.bytes, content);
                assert_eq!(read.hash, *blake3::hash(content).as_bytes());
                assert_eq!(read.stat, file.stat);
            }
            (read, expected) => assert_eq!(read.err().map(|w| w.kind), expected),
        }
    }

    #[test]
    fn bytes_or_a_warning() {
        let limit = usize::try_from(LIMIT).unwrap();
        check(b"", None);
        check(b"# one\n", None);
        check(b"\xff not unicode", None);
        check(&vec![b'x'; limit], None);
        check(&vec![b'x'; limit + 1], Some(WarningKind::TooLarge));
        check(b"a\0b", Some(WarningKind::Binary));
        check(b"\xff\xfea\0", Some(WarningKind::Binary));
        // A stray NUL far from the start is left to the parser.
        check(&[vec![b'x'; 9000], vec![0]].concat(), None);
    }

    #[test]
    fn a_file_that_is_gone_or_replaced() {
        let (root, file) = note(b"one");
        let path = root.path().join("folder/a.md");
        // Editors save like this: another file takes the name.
        fs::write(root.path().join("new"), "two").unwrap();
        fs::rename(root.path().join("new"), &path).unwrap();
        let read = read_note(root.path(), &file, LIMIT).unwrap();
        assert_eq!((&read.bytes[..], read.stat), (&b"two"[..], FileStat::of(&fs::metadata(&path).unwrap())));
        fs::remove_file(&path).unwrap();
        assert_eq!(read_note(root.path(), &file, LIMIT).unwrap_err().kind, WarningKind::Unreadable);
        fs::create_dir(&path).unwrap();
        assert_eq!(read_note(root.path(), &file, LIMIT).unwrap_err().kind, WarningKind::Unreadable);
    }

    #[cfg(unix)]
    #[test]
    fn no_link_that_was_put_in_its_place_is_followed() {
        use std::os::unix::fs::symlink;
        let (other, _) = note(b"secret");
        let (root, file) = note(b"one");
        let folder = root.path().join("folder");
        fs::remove_file(folder.join("a.md")).unwrap();
        symlink(other.path().join("folder/a.md"), folder.join("a.md")).unwrap();
        assert_eq!(read_note(root.path(), &file, LIMIT).unwrap_err().kind, WarningKind::Symlink);
        fs::remove_dir_all(&folder).unwrap();
        symlink(other.path().join("folder"), &folder).unwrap();
        assert_eq!(read_note(root.path(), &file, LIMIT).unwrap_err().kind, WarningKind::Symlink);
    }

    #[test]
    fn a_file_that_never_holds_still_is_read_in_the_end() {
        let (root, file) = note(b"");
        let path = root.path().join("folder/a.md");
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for n in 0usize.. {
                    if stop.load(std::sync::atomic::Ordering::Relaxed) {
                        break;
                    }
                    fs::write(&path, vec![b'x'; n % 100]).unwrap();
                }
            });
            let reads: Vec<_> = (0..200).map(|_| read_note(root.path(), &file, LIMIT)).collect();
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            assert!(reads.iter().all(Result::is_ok));
        });
        let last = read_note(root.path(), &file, LIMIT).unwrap();
        assert_eq!(last.bytes, fs::read(&path).unwrap());
        assert_eq!(last.stat, FileStat::of(&fs::metadata(&path).unwrap()));
    }
}
