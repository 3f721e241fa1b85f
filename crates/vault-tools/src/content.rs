//! The bytes of a file as a value: shared, immutable, identified by their hash.

use std::fmt;
use std::sync::{Arc, OnceLock};

/// All bytes of a file. Cheap to clone; two contents are equal if their bytes are.
#[derive(Clone)]
pub struct Content(Arc<Inner>);

struct Inner {
    bytes: Vec<u8>,
    hash: OnceLock<ContentHash>,
}

impl Content {
    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0.bytes
    }

    /// Returns the text, if it is UTF-8; a byte order mark is part of it.
    pub fn text(&self) -> Option<&str> {
        std::str::from_utf8(self.bytes()).ok()
    }

    /// Returns the hash of the bytes, which is computed once.
    pub fn hash(&self) -> ContentHash {
        *self.0.hash.get_or_init(|| ContentHash::of(self.bytes()))
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        self.bytes().len()
    }

    /// Returns whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.bytes().is_empty()
    }
}

impl From<Vec<u8>> for Content {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Arc::new(Inner { bytes, hash: OnceLock::new() }))
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
        Arc::ptr_eq(&self.0, &other.0) || self.bytes() == other.bytes()
    }
}

impl Eq for Content {}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.text() {
            Some(text) if text.len() <= 200 => write!(f, "{text:?}"),
            _ => write!(f, "{} bytes", self.len()),
        }
    }
}

/// The BLAKE3 hash of a file's bytes; displayed as 64 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContentHash([u8; 32]);

impl ContentHash {
    /// Computes the hash of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// Computes the hash of the data from a reader, in pieces.
    pub(crate) fn of_reader(reader: impl std::io::Read) -> std::io::Result<Self> {
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(reader)?;
        Ok(Self(*hasher.finalize().as_bytes()))
    }

    /// Parses 64 hexadecimal digits.
    pub fn from_hex(hex: &str) -> Option<Self> {
        Some(Self(*blake3::Hash::from_hex(hex).ok()?.as_bytes()))
    }

    /// Returns the first half, which is the form in which tools return it: equal etags mean equal content.
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
        assert_eq!((one.hash(), one.text()), (two.hash(), Some("a")));
        assert_eq!(one, two);
        assert_eq!(ContentHash::of_reader(&b"a"[..]).unwrap(), one.hash());
        assert_eq!(ContentHash::from_hex(&one.hash().to_string()), Some(one.hash()));
        assert_eq!(one.hash().etag().len(), 32);
        assert_eq!(Content::from(vec![0xff]).text(), None);
    }
}
