//! Unpacks the files of a model from a `.tar` or `.tar.gz` file, for machines without a network.
//!
//! An archive with anything but files and folders, such as a link, or with a path that leaves its folder, is refused as
//! a whole.

use std::cell::Cell;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use flate2::bufread::GzDecoder;
use tar::EntryType;

use super::installed::{source_of_folder, unpacked_folder};
use super::{AddingLock, MOST_BYTES, ModelSource};
use crate::error::{Error, ErrorKind, Result};
use crate::private_file::{private_file, private_folder};

/// The most bytes of the headers before one entry, such as long names, which tar reads into memory.
const MOST_HEADER_BYTES: u64 = 1 << 20;

/// The first byte of each member of a gzip file.
const GZIP: u8 = 0x1f;

/// Unpacks the files of a model, and returns their folder and what to record about them. Other files of the archive are
/// left out. [`delete_unpacked`](super::delete_unpacked) deletes the folder.
///
/// # Errors
/// [`ErrorKind::Model`] when this is no such archive, when it is damaged, too large or contains links or paths that
/// leave its folder; [`ErrorKind::Cancelled`] when `cancel` is set. Nothing is left then.
pub fn unpack(lock: &AddingLock, archive: &Path, cancel: &AtomicBool) -> Result<(PathBuf, ModelSource)> {
    unpack_to(&unpacked_folder(lock)?, archive, cancel)
}

fn unpack_to(folder: &Path, archive: &Path, cancel: &AtomicBool) -> Result<(PathBuf, ModelSource)> {
    let unpacked = fill(folder, archive, cancel);
    if unpacked.is_err() {
        // The first error counts.
        let _ = fs::remove_dir_all(folder);
    }
    unpacked
}

fn fill(folder: &Path, archive: &Path, cancel: &AtomicBool) -> Result<(PathBuf, ModelSource)> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(Error::io(folder, error)),
        _ => private_folder(folder)?,
    }
    let file = File::open(archive).map_err(|error| Error::io(archive, error))?;
    let mut start = [0; 2];
    let mut reader = BufReader::with_capacity(1 << 16, file);
    let is_read = reader.read_exact(&mut start).and_then(|()| reader.seek_relative(-2));
    is_read.map_err(|_| refused(archive, "this is not a .tar or .tar.gz file"))?;
    let content: Box<dyn Read> = match start {
        [GZIP, 0x8b] => Box::new(Members(GzDecoder::new(Box::new(reader)))),
        _ => Box::new(reader),
    };
    let content = Bounded { content, left: MOST_BYTES, left_of_headers: &Cell::default(), cancel };
    unpack_entries(content, archive, folder).map_err(|error| match cancel.load(Ordering::Relaxed) {
        true => Error::new(ErrorKind::Cancelled, "interrupted"),
        false => error,
    })?;
    let root = root(folder, archive)?;
    let from = fs::canonicalize(archive).map_err(|error| Error::io(archive, error))?;
    let source = ModelSource { from: from.to_string_lossy().into_owned(), ..source_of_folder(&root)? };
    Ok((root, source))
}

/// The folder with the model's files: the archive itself, or the one folder in it.
fn root(folder: &Path, archive: &Path) -> Result<PathBuf> {
    let has_config = |folder: &Path| folder.join("config.json").is_file();
    if has_config(folder) {
        return Ok(folder.to_owned());
    }
    let entries = fs::read_dir(folder).map_err(|error| Error::io(folder, error))?;
    let mut roots = entries.flatten().map(|entry| entry.path()).filter(|path| has_config(path));
    match (roots.next(), roots.next()) {
        (Some(root), None) => Ok(root),
        _ => Err(refused(archive, "it does not contain the files of one model, such as config.json")),
    }
}

fn refused(archive: &Path, what: &str) -> Error {
    Error::new(ErrorKind::Model, what)
        .at(archive)
        .with_remedy("unpack the model's files yourself, and name their folder with --from")
}

/// The members of a gzip file, without the zeros that may follow them.
struct Members(GzDecoder<Box<dyn BufRead>>);

impl Read for Members {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.0.read(buffer)?;
            if read > 0 || buffer.is_empty() || self.0.get_mut().fill_buf()?.first() != Some(&GZIP) {
                return Ok(read);
            }
            let reader = std::mem::replace(self.0.get_mut(), Box::new(io::empty()));
            self.0.reset(reader);
        }
    }
}

/// Ends with an error at a number of bytes, because a small `.tar.gz` can hold any number of them, at a number of bytes
/// before an entry, and when `cancel` is set.
struct Bounded<'a> {
    content: Box<dyn Read>,
    left: u64,
    /// Up to the next entry; without a limit within one.
    left_of_headers: &'a Cell<u64>,
    cancel: &'a AtomicBool,
}

impl Read for Bounded<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cancel.load(Ordering::Relaxed) {
            return Err(io::Error::other("interrupted"));
        }
        let read = self.content.read(buffer)?;
        self.left = self
            .left
            .checked_sub(read as u64)
            .ok_or_else(|| too_large(format!("it has more than {} GB when it is unpacked", MOST_BYTES >> 30)))?;
        let left_of_headers = self.left_of_headers.get().checked_sub(read as u64);
        self.left_of_headers.set(left_of_headers.ok_or_else(|| {
            too_large(format!("the headers of an entry have more than {} MB", MOST_HEADER_BYTES >> 20))
        })?);
        Ok(read)
    }
}

fn unpack_entries(content: Bounded, archive: &Path, folder: &Path) -> Result<()> {
    let unread = |error| unread(archive, error);
    let left_of_headers = content.left_of_headers;
    let mut tar = tar::Archive::new(content);
    let mut entries = tar.entries().map_err(unread)?;
    loop {
        left_of_headers.set(MOST_HEADER_BYTES);
        let entry = entries.next();
        left_of_headers.set(u64::MAX);
        let Some(entry) = entry else { break };
        let mut entry = entry.map_err(unread)?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let what = match (entry.header().entry_type(), safe_path(&name)) {
            (EntryType::Regular | EntryType::Continuous, Some(path)) if is_of_a_model(&path) => {
                write(&mut entry, archive, &folder.join(path))?;
                continue;
            }
            (EntryType::Regular | EntryType::Continuous | EntryType::Directory, Some(_))
            | (EntryType::XGlobalHeader, _) => {
                // Else it is skipped with the headers of the next entry, and counts as theirs.
                io::copy(&mut entry, &mut io::sink()).map_err(unread)?;
                continue;
            }
            (EntryType::Regular | EntryType::Continuous | EntryType::Directory, None) => {
                format!("the path {name:?} leaves the archive's folder")
            }
            (EntryType::Link | EntryType::Symlink, _) => {
                "it contains links instead of files (tar -h puts the files into an archive)".to_owned()
            }
            _ => "it contains an entry that is neither a file nor a folder".to_owned(),
        };
        return Err(refused(archive, &what));
    }
    // The entries end at a block of zeros, and the checksum of a .tar.gz file comes after it.
    io::copy(&mut tar.into_inner(), &mut io::sink()).map(drop).map_err(unread)
}

/// An error of reading the archive.
fn unread(archive: &Path, error: io::Error) -> Error {
    match error.kind() {
        _ if error.raw_os_error().is_some() => Error::io(archive, error),
        io::ErrorKind::FileTooLarge => refused(archive, &error.to_string()),
        _ => refused(archive, &format!("it is damaged, or not a .tar or .tar.gz file: {error}")),
    }
}

fn too_large(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, what)
}

fn write(entry: &mut tar::Entry<Bounded>, archive: &Path, to: &Path) -> Result<()> {
    if let Some(parent) = to.parent() {
        private_folder(parent)?;
    }
    if to.exists() {
        let name = to.file_name().unwrap_or_default();
        return Err(refused(archive, &format!("it contains {} twice", name.display())));
    }
    // The crate takes the end of the archive for the end of the entry.
    match copy(entry, archive, &mut private_file(to)?, to)? == entry.size() {
        true => Ok(()),
        false => Err(unread(archive, io::Error::other("it is cut off"))),
    }
}

/// Like [`io::copy`], but an error says which of the two it is about.
fn copy(content: &mut impl Read, archive: &Path, file: &mut File, to: &Path) -> Result<u64> {
    let (mut buffer, mut copied) = (vec![0; 1 << 16], 0);
    loop {
        match content.read(&mut buffer).map_err(|error| unread(archive, error))? {
            0 => return Ok(copied),
            read => {
                file.write_all(&buffer[..read]).map_err(|error| Error::io(to, error))?;
                copied += read as u64;
            }
        }
    }
}

/// The path of an entry below the archive's folder; `None` if it leads elsewhere on any system.
fn safe_path(name: &str) -> Option<PathBuf> {
    if name.starts_with('/') || name.contains(['\\', ':', '\0']) {
        return None;
    }
    let parts = name.split('/').filter(|part| !["", "."].contains(part));
    parts.map(|part| (part != "..").then_some(part)).collect()
}

/// Whether a model may need a file: those of its folder, of a folder in it, and of one around both.
fn is_of_a_model(path: &Path) -> bool {
    let is_hidden = path.iter().any(|part| part.to_string_lossy().starts_with('.'));
    let is_read = path.extension().is_some_and(|kind| kind == "json" || kind == "safetensors");
    is_read && !is_hidden && path.iter().count() <= 3
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: usize = 512;

    /// An entry of a tar file.
    fn entry(name: &str, kind: u8, content: &[u8]) -> Vec<u8> {
        sized(name, kind, content.len() as u64, content)
    }

    fn sized(name: &str, kind: u8, size: u64, content: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; BLOCK];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        bytes[124..136].copy_from_slice(format!("{size:011o}\0").as_bytes());
        bytes[156] = kind;
        bytes[257..265].copy_from_slice(b"ustar\x0000");
        bytes[148..156].fill(b' ');
        let sum: u64 = bytes.iter().map(|byte| u64::from(*byte)).sum();
        bytes[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        bytes.extend(content);
        bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
        bytes
    }

    fn unpacked(entries: &[Vec<u8>]) -> Result<(Vec<String>, ModelSource), String> {
        let dir = tempfile::tempdir().unwrap();
        let (archive, to) = (dir.path().join("model.tar"), dir.path().join("to"));
        fs::write(&archive, [entries.concat(), vec![0; 2 * BLOCK]].concat()).unwrap();
        let done = unpack_to(&to, &archive, &AtomicBool::new(false)).map_err(|error| error.to_string());
        let outside: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(outside.len(), if done.is_ok() { 2 } else { 1 }, "{outside:?}");
        done.map(|(root, source)| (super::super::files_of(&root).unwrap(), source))
    }

    #[test]
    fn the_files_of_a_model_are_found_in_a_folder_or_without() {
        for top in ["", "./", "gte-small/"] {
            let long = format!("{top}1_Pooling/config.json");
            let record = format!("{} path={long}\n", long.len() + 9);
            let files = [
                entry(&format!("{top}.cache"), b'5', b""),
                entry(&format!("{top}config.json"), b'0', b"{}"),
                entry(&format!("{top}README.md"), b'0', &[b'x'; 1000]),
                entry("name", b'x', record.as_bytes()),
                entry("short", b'0', b"{\"a\": 1}"),
                entry("name", b'L', format!("{top}model.safetensors\0").as_bytes()),
                entry("short", 0, &[7; 700]),
            ];
            let (found, source) = unpacked(&files).unwrap();
            assert_eq!(found, ["1_Pooling/config.json", "config.json", "model.safetensors"]);
            assert!(source.from.ends_with("model.tar"));
            assert_eq!(source.files.iter().map(|file| file.bytes).collect::<Vec<_>>(), [8, 2, 700]);
        }
    }

    #[test]
    fn what_leads_elsewhere_or_is_no_file_is_refused() {
        let config = entry("config.json", b'0', b"{}");
        for (bad, expected) in [
            (entry("../config.json", b'0', b"{}"), "leaves"),
            (entry("a/../../config.json", b'0', b"{}"), "leaves"),
            (entry("/etc/config.json", b'0', b"{}"), "leaves"),
            (entry("C:config.json", b'0', b"{}"), "leaves"),
            (entry("..\\config.json", b'0', b"{}"), "leaves"),
            (entry("model.safetensors", b'2', b""), "links"),
            (entry("model.safetensors", b'1', b""), "links"),
            (entry("model.safetensors", b'3', b""), "neither"),
            (entry("config.json", b'0', b"{}"), "twice"),
            (sized("model.safetensors", b'0', 5000, b"short"), "cut off"),
            (sized("README.md", b'0', 5000, b"short"), "damaged"),
            (vec![1; BLOCK], "not a .tar"),
        ] {
            let error = unpacked(&[config.clone(), bad]).unwrap_err();
            assert!(error.contains(expected) && error.contains("model.tar"), "{expected}: {error}");
        }
        let error = unpacked(&[entry("a/config.json", b'0', b"{}"), entry("b/config.json", b'0', b"{}")]).unwrap_err();
        assert!(error.contains("one model"), "{error}");
    }

    #[test]
    fn the_checksum_of_a_compressed_one_is_checked() {
        let weights = entry("model.safetensors", b'0', &[b'w'; 3000]);
        let tar = [entry("config.json", b'0', b"{}"), weights, vec![0; 20 * BLOCK]].concat();
        // Not made smaller, so that a changed byte is no error of the format.
        let gz = |tar: &[u8]| {
            let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
            gz.write_all(tar).unwrap();
            gz.finish().unwrap()
        };
        let dir = tempfile::tempdir().unwrap();
        let unpacked = |bytes: &[u8]| {
            let archive = dir.path().join("model.tar.gz");
            fs::write(&archive, bytes).unwrap();
            unpack_to(&dir.path().join("to"), &archive, &AtomicBool::new(false)).map_err(|error| error.to_string())
        };
        let (one, two) = (gz(&tar), [gz(&tar[..1000]), gz(&tar[1000..])].concat());
        for sound in [&one, &two, &[one.clone(), vec![0; 600]].concat()] {
            assert_eq!(super::super::files_of(&unpacked(sound).unwrap().0).unwrap().len(), 2);
        }
        let mut changed = one;
        let at = changed.iter().position(|byte| *byte == b'w').unwrap();
        changed[at + 1000] ^= 1;
        let error = unpacked(&changed).unwrap_err();
        assert!(error.contains("it is damaged") && error.contains("checksum"), "{error}");
    }

    fn bounded(content: Box<dyn Read>, left: u64) -> Bounded<'static> {
        static NEVER: AtomicBool = AtomicBool::new(false);
        Bounded { content, left, left_of_headers: Box::leak(Box::default()), cancel: &NEVER }
    }

    #[test]
    fn a_name_that_would_fill_the_memory_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let large = MOST_HEADER_BYTES * 4;
        // What is not a header may be as large.
        let readme = entry("README.md", b'0', &vec![b'x'; large as usize]);
        for kind in [b'L', b'K', b'x'] {
            let header = sized("name", kind, large, b"");
            let before = io::Cursor::new([readme.clone(), header].concat());
            let content = bounded(Box::new(before.chain(io::repeat(b'x').take(large))), 3 * large);
            let error = unpack_entries(content, Path::new("model.tar"), dir.path()).unwrap_err().to_string();
            assert!(error.contains("headers of an entry have more than 1 MB"), "{error}");
        }
    }

    #[test]
    fn an_archive_that_is_larger_than_a_model_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (config, notice) = (entry("config.json", b'0', b"{}"), entry("README.md", b'0', &[b'x'; 5000]));
        let bytes = std::io::Cursor::new([config, notice, vec![0; 2 * BLOCK]].concat());
        for (left, fits) in [(bytes.get_ref().len() as u64, true), (4000, false)] {
            let content = bounded(Box::new(bytes.clone()), left);
            let unpacked = unpack_entries(content, Path::new("model.tar"), dir.path());
            let unpacked = unpacked.map_err(|error| error.to_string());
            assert_eq!(unpacked.is_ok(), fits, "{unpacked:?}");
            assert!(unpacked.err().is_none_or(|error| error.contains("more than 4 GB")));
            fs::remove_file(dir.path().join("config.json")).unwrap();
        }
    }

    #[test]
    fn an_error_of_the_disk_names_the_place_on_it() {
        let dir = tempfile::tempdir().unwrap();
        let (archive, to) = (dir.path().join("model.tar"), dir.path().join("models"));
        fs::write(&to, "a file in the place of the folder").unwrap();
        let bytes = io::Cursor::new(entry("config.json", b'0', b"{}"));
        let error = unpack_entries(bounded(Box::new(bytes), MOST_BYTES), &archive, &to).unwrap_err();
        assert_eq!((error.kind(), error.path()), (ErrorKind::Io, Some(&*to)), "{error}");
        #[cfg(target_os = "linux")]
        {
            let full = Path::new("/dev/full");
            let mut file = File::options().write(true).open(full).unwrap();
            let error = copy(&mut &b"weights"[..], &archive, &mut file, full).unwrap_err();
            assert_eq!((error.kind(), error.path()), (ErrorKind::Io, Some(full)), "{error}");
        }
    }

    #[test]
    fn nothing_is_left_of_a_cancelled_one() {
        let dir = tempfile::tempdir().unwrap();
        let archive = dir.path().join("model.tar");
        fs::write(&archive, entry("config.json", b'0', b"{}")).unwrap();
        let to = dir.path().join("to");
        let error = unpack_to(&to, &archive, &AtomicBool::new(true)).unwrap_err();
        assert!(error.kind() == ErrorKind::Cancelled && !to.exists(), "{error}");
    }
}
