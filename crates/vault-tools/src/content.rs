//! The bytes of a file as a value: shared, never changed, known by their hash. Many of them rest on the disk.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::error::{Error, ErrorKind, Result};

/// All bytes of a file. Cheap to clone; two are equal when their bytes are.
#[derive(Clone)]
pub struct Content(Arc<Inner>);

struct Inner {
    bytes: Bytes,
    length: usize,
    hash: OnceLock<ContentHash>,
}

enum Bytes {
    InMemory(Vec<u8>),
    AtRest(Place),
}

impl Content {
    /// The bytes.
    ///
    /// # Errors
    /// When they rest on the disk, as those of a change do that has many, and cannot be read.
    pub fn bytes(&self) -> Result<Cow<'_, [u8]>> {
        self.read().map_err(|error| {
            Error::new(ErrorKind::Io, format!("what is to be written cannot be read again: {error}"))
                .remedy("see to the disk that holds the state folder, and propose the change again")
        })
    }

    pub(crate) fn read(&self) -> io::Result<Cow<'_, [u8]>> {
        match &self.0.bytes {
            Bytes::InMemory(bytes) => Ok(Cow::Borrowed(bytes)),
            Bytes::AtRest(place) => place.read().map(Cow::Owned),
        }
    }

    /// The text, if it is UTF-8; a byte order mark is part of it.
    ///
    /// # Errors
    /// Those of [`Content::bytes`].
    pub fn text(&self) -> Result<Option<String>> {
        Ok(String::from_utf8(self.bytes()?.into_owned()).ok())
    }

    /// The hash of the bytes; made once.
    pub fn hash(&self) -> ContentHash {
        // What rests has its hash.
        *self.0.hash.get_or_init(|| ContentHash::of(self.in_memory().unwrap_or_default()))
    }

    /// How many bytes there are.
    pub fn len(&self) -> usize {
        self.0.length
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.length == 0
    }

    fn in_memory(&self) -> Option<&[u8]> {
        match &self.0.bytes {
            Bytes::InMemory(bytes) => Some(bytes),
            Bytes::AtRest(_) => None,
        }
    }
}

impl From<Vec<u8>> for Content {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Arc::new(Inner { length: bytes.len(), bytes: Bytes::InMemory(bytes), hash: OnceLock::new() }))
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        text.into_bytes().into()
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        text.as_bytes().to_vec().into()
    }
}

impl PartialEq for Content {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || match (self.in_memory(), other.in_memory()) {
                (Some(one), Some(other)) => one == other,
                _ => self.len() == other.len() && self.hash() == other.hash(),
            }
    }
}

impl Eq for Content {}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.in_memory().and_then(|bytes| std::str::from_utf8(bytes).ok()) {
            Some(text) if text.len() <= 200 => write!(f, "{text:?}"),
            _ => write!(f, "{} bytes", self.len()),
        }
    }
}

/// So many bytes of contents stay in memory; what comes after them rests on the disk.
const IN_MEMORY: usize = 256 << 10;

/// What is no longer than this is not worth a place on the disk.
const SHORT: usize = 128;

/// So many places are looked at for one that is large enough.
const HOLES_LOOKED_AT: usize = 64;

/// Contents of a change that is not done yet, most of which rest on the disk: in a file without a name, which is gone
/// with the last of them.
#[derive(Default)]
pub(crate) struct Spool {
    in_memory: usize,
    shelf: Option<Arc<Mutex<Shelf>>>,
    /// There is no such file to be had, or no room in it.
    is_closed: bool,
}

/// The file, and what room there is in it.
struct Shelf {
    file: File,
    end: u64,
    /// Room that was given back, by where it begins; no two touch each other or the end.
    free: BTreeMap<u64, u64>,
}

/// Where a content rests. Its room is given back when it is dropped: a note that a plan adds to a thousand times would
/// fill the disk with what it was in between.
struct Place {
    shelf: Arc<Mutex<Shelf>>,
    at: u64,
    length: usize,
}

impl Spool {
    /// The same content; it may rest from now on. `open` gives the file.
    pub(crate) fn rest(&mut self, content: Content, open: impl FnOnce() -> io::Result<File>) -> Content {
        let Some(bytes) = content.in_memory().filter(|bytes| bytes.len() > SHORT) else { return content };
        if self.is_closed || self.in_memory + bytes.len() <= IN_MEMORY {
            self.in_memory += bytes.len();
            return content;
        }
        match self.add(bytes, open) {
            Ok(place) => {
                let hash = OnceLock::from(content.hash());
                Content(Arc::new(Inner { bytes: Bytes::AtRest(place), length: bytes.len(), hash }))
            }
            // Then memory has to do.
            Err(_) => {
                self.is_closed = true;
                content
            }
        }
    }

    fn add(&mut self, bytes: &[u8], open: impl FnOnce() -> io::Result<File>) -> io::Result<Place> {
        let shelf = match &self.shelf {
            Some(shelf) => Arc::clone(shelf),
            None => {
                let shelf = Shelf { file: open()?, end: 0, free: BTreeMap::new() };
                Arc::clone(self.shelf.insert(Arc::new(Mutex::new(shelf))))
            }
        };
        let at = {
            let mut shelf = lock(&shelf);
            let at = shelf.take(bytes.len() as u64);
            shelf.file.seek(SeekFrom::Start(at))?;
            shelf.file.write_all(bytes)?;
            at
        };
        Ok(Place { shelf, at, length: bytes.len() })
    }
}

impl Shelf {
    fn take(&mut self, length: u64) -> u64 {
        let room = self.free.iter().take(HOLES_LOOKED_AT).find(|(_, room)| **room >= length);
        let Some((at, room)) = room.map(|(at, room)| (*at, *room)) else {
            self.end += length;
            return self.end - length;
        };
        self.free.remove(&at);
        if room > length {
            self.free.insert(at + length, room - length);
        }
        at
    }

    fn give_back(&mut self, mut at: u64, mut length: u64) {
        if let Some((before, room)) = self.free.range(..at).next_back().map(|(at, room)| (*at, *room))
            && before + room == at
        {
            self.free.remove(&before);
            (at, length) = (before, room + length);
        }
        if let Some(after) = self.free.remove(&(at + length)) {
            length += after;
        }
        if at + length == self.end {
            self.end = at;
        } else {
            self.free.insert(at, length);
        }
    }
}

impl Place {
    fn read(&self) -> io::Result<Vec<u8>> {
        let mut shelf = lock(&self.shelf);
        let mut bytes = vec![0; self.length];
        shelf.file.seek(SeekFrom::Start(self.at))?;
        shelf.file.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.shelf).give_back(self.at, self.length as u64);
    }
}

fn lock(shelf: &Mutex<Shelf>) -> MutexGuard<'_, Shelf> {
    shelf.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The BLAKE3 hash of a file's bytes; displayed as 64 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContentHash([u8; 32]);

impl ContentHash {
    /// The hash of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// The hash of what a reader gives, a piece at a time.
    pub(crate) fn of_reader(reader: impl std::io::Read) -> std::io::Result<Self> {
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(reader)?;
        Ok(Self(*hasher.finalize().as_bytes()))
    }

    /// From 64 hexadecimal digits.
    pub fn from_hex(hex: &str) -> Option<Self> {
        Some(Self(*blake3::Hash::from_hex(hex).ok()?.as_bytes()))
    }

    /// The first half, as tools hand it out: equal etags mean equal content.
    pub fn etag(&self) -> String {
        self.to_string()[..32].to_string()
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_known_by_its_bytes() {
        let (one, two) = (Content::from("a"), Content::from("a".to_string()));
        assert_eq!((one.hash(), one.text().unwrap().as_deref()), (two.hash(), Some("a")));
        assert_eq!(one, two);
        assert_eq!(ContentHash::of_reader(&b"a"[..]).unwrap(), one.hash());
        assert_eq!(ContentHash::from_hex(&one.hash().to_string()), Some(one.hash()));
        assert_eq!(one.hash().etag().len(), 32);
        assert_eq!(Content::from(vec![0xff]).text().unwrap(), None);
    }

    #[test]
    fn what_rests_is_what_it_was() {
        let mut spool = Spool::default();
        let contents: Vec<Content> = (0..300_u32).map(|n| vec![n as u8; 20_000 + n as usize].into()).collect();
        let resting: Vec<Content> =
            contents.iter().map(|content| spool.rest(content.clone(), tempfile::tempfile)).collect();
        let in_memory: usize = resting.iter().filter_map(Content::in_memory).map(<[u8]>::len).sum();
        assert!(in_memory <= IN_MEMORY, "{in_memory} bytes are still in memory");
        for (content, resting) in contents.iter().zip(&resting) {
            assert_eq!((content, content.hash(), content.len()), (resting, resting.hash(), resting.len()));
            assert_eq!(content.bytes().unwrap(), resting.bytes().unwrap());
        }
        assert_ne!(resting[298], resting[299]);
        // They outlive the spool.
        drop(spool);
        assert_eq!(resting[299].text().unwrap(), contents[299].text().unwrap());
    }

    #[test]
    fn room_is_given_back() {
        let mut spool = Spool::default();
        let mut texts = vec![String::new(); 3];
        let mut contents: Vec<Content> = vec!["".into(); 3];
        for n in 0..900 {
            // Three notes that grow in turns, as those that a loop adds to.
            texts[n % 3] += &format!("{n} {}", "x".repeat(1000));
            let grown = spool.rest(texts[n % 3].clone().into(), tempfile::tempfile);
            contents[n % 3] = grown;
        }
        for (text, content) in texts.iter().zip(&contents) {
            assert_eq!(content.text().unwrap().as_ref(), Some(text));
        }
        let shelf = spool.shelf.clone().unwrap();
        let (length, live) =
            (lock(&shelf).file.metadata().unwrap().len(), texts.iter().map(String::len).sum::<usize>());
        assert!(length < 4 * live as u64, "{length} bytes for {live}");
        drop(contents);
        let shelf = lock(&shelf);
        assert_eq!((shelf.end, shelf.free.len()), (0, 0));
    }

    #[test]
    fn without_a_file_contents_stay_in_memory() {
        let mut spool = Spool::default();
        for n in 0..4_u8 {
            let content = Content::from(vec![n; IN_MEMORY]);
            let resting = spool.rest(content.clone(), || Err(io::Error::other("no file")));
            assert_eq!(resting.in_memory(), content.in_memory());
        }
    }
}
