//! Incremental UTF-8 decoder: bytes may be split inside a character.

/// The bytes of an incomplete character at the end of the last input.
#[derive(Debug, Default)]
pub(super) struct Utf8Decoder(Vec<u8>);

impl Utf8Decoder {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Drops the incomplete character.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Passes on the text that these bytes complete. Invalid UTF-8 becomes U+FFFD.
    pub(super) fn decode(&mut self, bytes: &[u8], mut take: impl FnMut(&str)) {
        self.0.extend_from_slice(bytes);
        let mut decoded = 0;
        for chunk in self.0.utf8_chunks() {
            take(chunk.valid());
            decoded += chunk.valid().len();
            let invalid = chunk.invalid();
            let is_last = decoded + invalid.len() == self.0.len();
            if is_last && std::str::from_utf8(invalid).is_err_and(|error| error.error_len().is_none()) {
                break;
            }
            if !invalid.is_empty() {
                take("\u{fffd}");
            }
            decoded += invalid.len();
        }
        self.0.drain(..decoded);
    }
}
