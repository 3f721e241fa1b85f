//! Incremental parser for server-sent events, and reading a whole body within a limit.

use futures_util::StreamExt;

use crate::error::{Error, ErrorKind, Result};

use super::ByteStream;

/// The largest event or whole body that is accepted.
pub(super) const MAX_BYTES: usize = 32 << 20;

/// Splits a body into events.
#[derive(Debug, Default)]
pub(super) struct SseParser {
    buffer: Vec<u8>,
    /// Up to here there is no line end.
    searched: usize,
    name: String,
    data: Option<String>,
}

impl SseParser {
    /// Adds the events that these bytes complete, as name and data.
    ///
    /// # Errors
    /// `BadResponse` for invalid UTF-8 or has no end; the events before it are there.
    pub(super) fn push(&mut self, bytes: &[u8], events: &mut Vec<(String, String)>) -> Result<()> {
        self.buffer.extend_from_slice(bytes);
        let mut begin = 0;
        while let Some(at) = memchr::memchr(b'\n', &self.buffer[self.searched..]) {
            let end = self.searched + at;
            self.searched = end + 1;
            let line = self.buffer[begin..end].strip_suffix(b"\r").unwrap_or(&self.buffer[begin..end]);
            let line = std::str::from_utf8(line).map_err(|error| bad("the stream is not UTF-8").with_source(error))?;
            begin = end + 1;
            if line.is_empty() {
                let name = std::mem::take(&mut self.name);
                events.extend(self.data.take().map(|data| (name, data)));
                continue;
            }
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            match (field, value.strip_prefix(' ').unwrap_or(value)) {
                ("event", name) => name.clone_into(&mut self.name),
                ("data", data) => match &mut self.data {
                    None => self.data = Some(data.to_string()),
                    Some(all) => {
                        all.push('\n');
                        all.push_str(data);
                    }
                },
                // Comments, which keep a connection alive, and fields that mean nothing here.
                _ => {}
            }
        }
        self.buffer.drain(..begin);
        self.searched = self.buffer.len();
        if self.buffer.len() + self.data.as_ref().map_or(0, String::len) > MAX_BYTES {
            return Err(bad("an event of the stream has no end"));
        }
        Ok(())
    }
}

fn bad(what: &str) -> Error {
    Error::new(ErrorKind::BadResponse, what)
}

/// The data of an event.
pub(super) fn json(data: &str) -> Result<serde_json::Value> {
    serde_json::from_str(data).map_err(|error| bad("an event of the stream is not valid JSON").with_source(error))
}

/// The whole of a body.
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
        let expected = [("a", "{\"x\":\"ü\"}"), ("", "1\n2"), ("", "[DONE]")];
        for size in 1..=text.len() {
            let mut events = SseParser::default();
            let mut found = Vec::new();
            text.as_bytes().chunks(size).for_each(|bytes| events.push(bytes, &mut found).unwrap());
            let found: Vec<_> = found.iter().map(|(name, data)| (name.as_str(), data.as_str())).collect();
            assert_eq!(found, expected, "{size}");
        }
        let mut found = Vec::new();
        assert!(SseParser::default().push(b"data: 1\n\ndata: \xff\n", &mut found).is_err());
        assert_eq!(found.len(), 1, "what was whole before it is there");
    }
}
