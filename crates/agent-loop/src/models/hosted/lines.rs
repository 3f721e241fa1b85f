//! Splits a body into lines as its bytes arrive.

use crate::error::{Error, ErrorKind, Result};

/// The lines of a body.
#[derive(Debug, Default)]
pub(super) struct Lines {
    buffer: Vec<u8>,
    /// The lines before this offset have been returned.
    done: usize,
    /// There is no line end between `done` and this offset.
    searched: usize,
}

impl Lines {
    /// Adds bytes. Call [`next`](Self::next) afterwards until it returns `None`.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.done);
        self.searched -= self.done;
        self.done = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the next complete line, without its line end.
    ///
    /// # Errors
    /// `BadResponse` for invalid UTF-8.
    pub(super) fn next(&mut self) -> Result<Option<&str>> {
        let Some(at) = memchr::memchr(b'\n', &self.buffer[self.searched..]) else {
            self.searched = self.buffer.len();
            return Ok(None);
        };
        let (begin, end) = (self.done, self.searched + at);
        (self.done, self.searched) = (end + 1, end + 1);
        let line = self.buffer[begin..end].strip_suffix(b"\r").unwrap_or(&self.buffer[begin..end]);
        std::str::from_utf8(line)
            .map(Some)
            .map_err(|error| Error::new(ErrorKind::BadResponse, "the stream is not UTF-8").with_source(error))
    }

    /// Returns how many bytes of the incomplete last line have arrived.
    pub(super) fn pending(&self) -> usize {
        self.buffer.len() - self.done
    }
}
