//! Unpacks the files of a model from a `.tar` or (feature `http`) `.tar.gz` file, for machines without a network.
//!
//! A tar file is a row of entries: a header of 512 bytes, then the content, filled up to a multiple of 512. Read are
//! plain files and folders, with names in the header (ustar), in an entry before (GNU) or in a record (pax). An archive
//! with anything else, such as a link, or with a path that leaves its folder, is refused as a whole.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use super::installed::{part_folder, source_of_folder};
use super::{AddingLock, ModelSource};
use crate::error::{Error, ErrorKind, Result};
use crate::private_file::{private_file, private_folder};

const BLOCK: usize = 512;

/// The most bytes of an archive when it is unpacked: more than any model has that the engine runs.
const MOST_BYTES: u64 = 4 << 30;

/// The longest name of an entry, in bytes.
const LONGEST_NAME: u64 = 4096;

/// Unpacks the files of a model, and returns their folder and what to record about them. Other files of the archive are
/// left out. [`delete_part`](super::delete_part) deletes the folder.
///
/// # Errors
/// [`ErrorKind::Model`] when this is no such archive, when it is damaged, too large or contains links or paths that
/// leave its folder; [`ErrorKind::Cancelled`] when `cancel` is set. Nothing is left then.
pub fn unpack(lock: &AddingLock, archive: &Path, cancel: &AtomicBool) -> Result<(PathBuf, ModelSource)> {
    let folder = part_folder(lock)?;
    let unpacked = unpack_to(&folder, archive, cancel);
    if unpacked.is_err() {
        // The first error counts.
        let _ = fs::remove_dir_all(&folder);
    }
    unpacked
}

fn unpack_to(folder: &Path, archive: &Path, cancel: &AtomicBool) -> Result<(PathBuf, ModelSource)> {
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
        #[cfg(feature = "http")]
        [0x1f, 0x8b] => Box::new(flate2::bufread::MultiGzDecoder::new(reader)),
        #[cfg(not(feature = "http"))]
        [0x1f, 0x8b] => {
            return Err(refused(archive, "this program lacks the feature http, with which it reads .tar.gz"));
        }
        _ => Box::new(reader),
    };
    Entries { archive, content, read: 0, cancel }.unpack(folder)?;
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

struct Entries<'a> {
    archive: &'a Path,
    content: Box<dyn Read>,
    read: u64,
    cancel: &'a AtomicBool,
}

impl Entries<'_> {
    fn unpack(&mut self, folder: &Path) -> Result<()> {
        // From an entry before that only has a name.
        let mut long_name: Option<String> = None;
        while let Some(header) = self.header()? {
            let size = self.size(&header)?;
            match header[156] {
                b'L' => long_name = Some(text_of(&self.short(size)?)),
                b'x' => long_name = pax_path(&self.short(size)?).or(long_name),
                b'g' => drop(self.short(size)?),
                b'0' | 0 | b'5' => {
                    let name = long_name.take().unwrap_or_else(|| name_of(&header));
                    let path = safe_path(&name)
                        .ok_or_else(|| self.refused(&format!("the path {name:?} leaves the archive's folder")))?;
                    match header[156] != b'5' && is_of_a_model(&path) {
                        true => self.write(&folder.join(path), size)?,
                        false => self.copy(size, &mut io::sink())?,
                    }
                }
                b'1' | b'2' | b'K' => {
                    let what = "it contains links instead of files (tar -h puts the files into an archive)";
                    return Err(self.refused(what));
                }
                _ => return Err(self.refused("it contains an entry that is neither a file nor a folder")),
            }
        }
        Ok(())
    }

    /// The next header; `None` at the end.
    fn header(&mut self) -> Result<Option<[u8; BLOCK]>> {
        let mut header = [0; BLOCK];
        self.fill(&mut header)?;
        if header == [0; BLOCK] {
            return Ok(None);
        }
        // The sum of all bytes, with blanks in place of the sum itself.
        let sum: u64 = header.iter().map(|byte| u64::from(*byte)).sum();
        let own: u64 = header[148..156].iter().map(|byte| u64::from(*byte)).sum();
        match octal(&header[148..156]) {
            Some(found) if found == sum - own + 8 * u64::from(b' ') => Ok(Some(header)),
            _ => Err(self.refused("this is not a .tar or .tar.gz file, or it is damaged")),
        }
    }

    fn size(&self, header: &[u8; BLOCK]) -> Result<u64> {
        let size = octal(&header[124..136]).ok_or_else(|| self.refused("the size of an entry is damaged"))?;
        match self.read.saturating_add(size) <= MOST_BYTES {
            true => Ok(size),
            false => Err(self.refused(&format!("it has more than {} GB when it is unpacked", MOST_BYTES >> 30))),
        }
    }

    fn write(&mut self, to: &Path, size: u64) -> Result<()> {
        if let Some(parent) = to.parent() {
            private_folder(parent)?;
        }
        if to.exists() {
            return Err(self.refused(&format!("it contains {} twice", to.file_name().unwrap_or_default().display())));
        }
        let mut file = private_file(to)?;
        self.copy(size, &mut file)
    }

    /// The content of an entry that says something about another.
    fn short(&mut self, size: u64) -> Result<Vec<u8>> {
        if size > LONGEST_NAME {
            return Err(self.refused("it contains a name that is too long"));
        }
        let mut bytes = Vec::new();
        self.copy(size, &mut bytes)?;
        Ok(bytes)
    }

    /// Copies the content of an entry, and skips to the next one.
    fn copy(&mut self, size: u64, to: &mut dyn Write) -> Result<()> {
        let mut buffer = vec![0; 1 << 16];
        let mut left = size;
        while left > 0 {
            if self.cancel.load(Ordering::Relaxed) {
                return Err(Error::new(ErrorKind::Cancelled, "interrupted"));
            }
            let part = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            self.fill(&mut buffer[..part])?;
            to.write_all(&buffer[..part]).map_err(|error| Error::io(self.archive, error))?;
            left -= part as u64;
        }
        let filled = size.next_multiple_of(BLOCK as u64) - size;
        self.fill(&mut buffer[..filled as usize])
    }

    fn fill(&mut self, buffer: &mut [u8]) -> Result<()> {
        self.read += buffer.len() as u64;
        self.content.read_exact(buffer).map_err(|_| self.refused("it is cut off or damaged"))
    }

    fn refused(&self, what: &str) -> Error {
        refused(self.archive, what)
    }
}

/// A number in octal digits, which ends at a blank or a zero byte.
fn octal(field: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(field).ok()?.trim_matches(['\0', ' ']);
    if text.is_empty() { Some(0) } else { u64::from_str_radix(text, 8).ok() }
}

fn text_of(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

fn name_of(header: &[u8; BLOCK]) -> String {
    let name = text_of(&header[..100]);
    match text_of(&header[345..500]) {
        prefix if header[257..262] == *b"ustar" && !prefix.is_empty() => format!("{prefix}/{name}"),
        _ => name,
    }
}

/// The path in the records of a pax entry: `LENGTH KEY=VALUE\n`, where the length is that of the record.
fn pax_path(mut records: &[u8]) -> Option<String> {
    loop {
        let blank = records.iter().position(|byte| *byte == b' ')?;
        let length: usize = std::str::from_utf8(&records[..blank]).ok()?.parse().ok()?;
        let record = records.get(blank + 1..length.checked_sub(1)?)?;
        if let Some(path) = record.strip_prefix(b"path=") {
            return Some(String::from_utf8_lossy(path).into_owned());
        }
        records = records.get(length..)?;
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

    /// An entry of a tar file.
    fn entry(name: &str, kind: u8, content: &[u8]) -> Vec<u8> {
        sized(name, kind, content.len() as u64, content)
    }

    fn sized(name: &str, kind: u8, size: u64, content: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; BLOCK];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        bytes[124..136].copy_from_slice(format!("{size:011o}\0").as_bytes());
        bytes[156] = kind;
        bytes[257..263].copy_from_slice(b"ustar\0");
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
        assert_eq!(outside.len(), 2, "{outside:?}");
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
            (sized("model.safetensors", b'0', MOST_BYTES, b""), "more than 4 GB"),
            (sized("README.md", b'0', MOST_BYTES, b""), "more than 4 GB"),
            (sized("name", b'L', 1 << 20, b""), "too long"),
            (sized("model.safetensors", b'0', 5000, b"short"), "cut off"),
            (vec![1; BLOCK], "not a .tar"),
        ] {
            let error = unpacked(&[config.clone(), bad]).unwrap_err();
            assert!(error.contains(expected) && error.contains("model.tar"), "{expected}: {error}");
        }
        let error = unpacked(&[entry("a/config.json", b'0', b"{}"), entry("b/config.json", b'0', b"{}")]).unwrap_err();
        assert!(error.contains("one model"), "{error}");
    }

    #[test]
    fn nothing_is_left_of_a_cancelled_one() {
        let dir = tempfile::tempdir().unwrap();
        let archive = dir.path().join("model.tar");
        fs::write(&archive, entry("config.json", b'0', b"{}")).unwrap();
        let error = unpack_to(&dir.path().join("to"), &archive, &AtomicBool::new(true)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled);
    }
}
