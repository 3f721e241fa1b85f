//! Bytes of many rows in memory, each row on lines of the cache of its own.

use std::fmt;
use std::ops::{Deref, DerefMut};

use super::kernel::LINE;

/// A vector of bytes whose first byte lies at a multiple of [`LINE`].
#[derive(Default)]
pub(super) struct Plane {
    /// The plane is `bytes[start..]`. Never grown beyond its capacity, so that `start` stays true.
    bytes: Vec<u8>,
    start: usize,
}

impl Plane {
    /// Makes room for `len` bytes in all.
    pub fn reserve(&mut self, len: usize) {
        if self.start + len <= self.bytes.capacity() {
            return;
        }
        let mut bytes: Vec<u8> = Vec::with_capacity(len + LINE);
        // An answer beyond a line would mean that it cannot be told: then the scan is slower, not wrong.
        let start = bytes.as_ptr().align_offset(LINE).min(LINE);
        bytes.resize(start, 0);
        bytes.extend_from_slice(self);
        *self = Self { bytes, start };
    }

    /// Cuts the end off, or adds zeros.
    pub fn resize(&mut self, len: usize) {
        self.grow(len);
        self.bytes.resize(self.start + len, 0);
    }

    /// Adds bytes.
    pub fn extend(&mut self, bytes: &[u8]) {
        self.grow(self.len() + bytes.len());
        self.bytes.extend_from_slice(bytes);
    }

    /// Room for `len` bytes, and as many again as there are, so that adding a row at a time is cheap.
    fn grow(&mut self, len: usize) {
        if self.start + len > self.bytes.capacity() {
            self.reserve(len.max(2 * self.len()));
        }
    }
}

impl Deref for Plane {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

impl DerefMut for Plane {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..]
    }
}

impl Clone for Plane {
    fn clone(&self) -> Self {
        let mut plane = Self::default();
        plane.extend(self);
        plane
    }
}

impl fmt::Debug for Plane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len())
    }
}
