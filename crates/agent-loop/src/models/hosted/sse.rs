//! Incremental parser for server-sent events, and a function that reads a whole body within a limit.

use futures_util::StreamExt;

use crate::error::{Error, ErrorKind, Result};

use super::ByteStream;
use super::lines::Lines;

/// The largest event or whole body that is accepted.
pub(super) const MAX_BYTES: usize = 32 << 20;

/// Splits a body into events and returns their data, in which all wires repeat the event's name.
#[derive(Debug, Default)]
pub(super) struct SseParser {
    lines: Lines,
    data: Option<String>,
}

impl SseParser {
    /// Adds bytes. Call [`next`](Self::next) afterwards until it returns `None`.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.lines.push(bytes);
    }

    /// Returns the data of the next complete event.
    ///
    /// # Errors
    /// `BadResponse` for invalid UTF-8, and for an event without an end.
    pub(super) fn next(&mut self) -> Result<Option<String>> {
        while let Some(line) = self.lines.next()? {
            if line.is_empty() {
                if let Some(data) = self.data.take() {
                    return Ok(Some(data));
                }
                continue;
            }
            // Comments, which keep a connection alive, and all other fields are ignored.
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match &mut self.data {
                _ if field != "data" => {}
                None => self.data = Some(value.to_string()),
                Some(all) => {
                    all.push('\n');
                    all.push_str(value);
                }
            }
        }
        if self.lines.pending() + self.data.as_ref().map_or(0, String::len) > MAX_BYTES {
            return Err(bad("an event of the stream has no end"));
        }
        Ok(None)
    }
}

fn bad(what: &str) -> Error {
    Error::new(ErrorKind::BadResponse, what)
}

/// Reads a whole body.
pub(super) async fn collect(mut body: ByteStream) -> Result<Vec<u8>> {
    let mut all = Vec::new();
    while let Some(bytes) = body.next().await {
        all.extend(bytes?);
        if all.len() > MAX_BYTES {
            return Err(bad("the body has no end"));
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_at_every_split() {
        let text = "event: a\r\ndata: {\"x\":\"ü\"}\r\n\r\n: ping\n\ndata:1\n:\ndata: 2\nid: 7\n\nevent: b\n\ndata: [DONE]\n\n";
        let expected = ["{\"x\":\"ü\"}", "1\n2", "[DONE]"];
        for size in 1..=text.len() {
            let mut events = SseParser::default();
            let mut found = Vec::new();
            for bytes in text.as_bytes().chunks(size) {
                events.push(bytes);
                found.extend(std::iter::from_fn(|| events.next().unwrap()));
            }
            assert_eq!(found, expected, "{size}");
        }
        let mut events = SseParser::default();
        events.push(b"data: 1\n\ndata: \xff\n");
        assert_eq!(events.next().unwrap().as_deref(), Some("1"), "what was whole before it is there");
        assert!(events.next().is_err());
    }
}
