//! Incremental UTF-8 decoder: bytes may be split inside a character.

/// An incomplete character at the end of the last input.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Utf8Decoder {
    bytes: [u8; 4],
    length: usize,
}

impl Utf8Decoder {
    pub(super) fn is_empty(self) -> bool {
        self.length == 0
    }

    /// Hands on the text that these bytes complete. Invalid UTF-8 becomes U+FFFD.
    pub(super) fn decode(&mut self, mut bytes: &[u8], mut take: impl FnMut(&str)) {
        // The first byte of a character says how long it is.
        while self.length > 0 && !bytes.is_empty() {
            let mut begun = std::mem::take(self);
            let missing = begun.bytes[0].leading_ones() as usize - begun.length;
            let (more, rest) = bytes.split_at(missing.min(bytes.len()));
            let length = begun.length + more.len();
            begun.bytes[begun.length..length].copy_from_slice(more);
            self.decode_from_start(&begun.bytes[..length], &mut take);
            bytes = rest;
        }
        self.decode_from_start(bytes, &mut take);
    }

    /// Bytes that begin with a character, unless nothing is left of them.
    fn decode_from_start(&mut self, bytes: &[u8], take: &mut impl FnMut(&str)) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let error = match std::str::from_utf8(rest) {
                Ok(text) => return take(text),
                Err(error) => error,
            };
            let (valid, after) = rest.split_at(error.valid_up_to());
            take(std::str::from_utf8(valid).unwrap_or_default());
            let Some(length) = error.error_len() else {
                self.length = after.len();
                self.bytes[..after.len()].copy_from_slice(after);
                return;
            };
            take("\u{fffd}");
            rest = &after[length..];
        }
    }
}
