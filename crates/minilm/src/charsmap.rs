//! SentencePiece's compiled normalization rules (`precompiled_charsmap`), which for most models are NFKC and more.
//!
//! The rules are a double array of a darts library in 32-bit units, and the replacements as zero-terminated strings:
//!
//! ```text
//! unit   bits 0–7 label   8 has a leaf   9 the offset counts in 256s   10–30 offset   31 set in leaves
//! leaf   bits 0–30 where the replacement begins
//! ```
//!
//! They are applied as the reference tokenizer does it, because the models were trained with its ids: to a whole
//! grapheme of at most five bytes, else to each of its characters; and the shortest rule that matches replaces all of
//! it, whatever comes after.

use unicode_segmentation::UnicodeSegmentation;

/// Longer graphemes are replaced character by character. In bytes.
const LONGEST_WHOLE: usize = 5;

/// The rules, which may be those of a damaged file: whatever they hold, the result is a text.
#[derive(Clone, Copy)]
pub(crate) struct Charsmap<'a> {
    units: &'a [u32],
    replacements: &'a [u8],
}

impl<'a> Charsmap<'a> {
    pub(crate) fn new(units: &'a [u32], replacements: &'a [u8]) -> Charsmap<'a> {
        Charsmap { units, replacements }
    }

    /// Appends `text` in normal form to `out`.
    pub(crate) fn normalize(self, text: &str, out: &mut String) {
        let bytes = text.as_bytes();
        let is_printable = |byte: &u8| matches!(byte, b' '..=b'~');
        let mut from = 0;
        // Always between two graphemes, as is every place between two printable ASCII characters.
        while from < bytes.len() {
            while from < bytes.len() && is_printable(&bytes[from]) && bytes.get(from + 1).is_none_or(is_printable) {
                self.replace(&text[from..from + 1], out);
                from += 1;
            }
            let pairs = bytes[from..].windows(2);
            let to = pairs.take_while(|pair| !pair.iter().all(is_printable)).count() + from + 1;
            let to = to.min(bytes.len());
            self.replace_graphemes(&text[from..to], out);
            from = to;
        }
    }

    fn replace_graphemes(self, text: &str, out: &mut String) {
        for grapheme in text.graphemes(true) {
            self.replace_grapheme(grapheme, out);
        }
    }

    fn replace_grapheme(self, grapheme: &str, out: &mut String) {
        if grapheme.len() <= LONGEST_WHOLE
            && let Some(replacement) = self.find(grapheme)
        {
            return out.push_str(replacement);
        }
        let mut buffer = [0; 4];
        for c in grapheme.chars() {
            self.replace(c.encode_utf8(&mut buffer), out);
        }
    }

    fn replace(self, character: &str, out: &mut String) {
        out.push_str(self.find(character).unwrap_or(character));
    }

    /// The replacement of the shortest rule that `text` starts with.
    #[inline]
    fn find(self, text: &str) -> Option<&'a str> {
        let mut at = unit_offset(*self.units.first()?);
        for byte in text.bytes().take_while(|byte| *byte != 0) {
            at ^= usize::from(byte);
            let unit = *self.units.get(at)?;
            if unit & 0x8000_00ff != u32::from(byte) {
                return None;
            }
            at ^= unit_offset(unit);
            if unit & 0x100 != 0 {
                let start = (*self.units.get(at)? & 0x7fff_ffff) as usize;
                let replacement = self.replacements.get(start..)?.split(|byte| *byte == 0).next()?;
                return std::str::from_utf8(replacement).ok();
            }
        }
        None
    }
}

#[inline]
fn unit_offset(unit: u32) -> usize {
    ((unit >> 10) << ((unit & 0x200) >> 6)) as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn damaged_rules_do_no_harm(
            units in prop::collection::vec(any::<u32>(), 0..300),
            replacements in any::<String>(),
            text in any::<String>(),
        ) {
            let mut out = String::new();
            Charsmap::new(&units, replacements.as_bytes()).normalize(&text, &mut out);
        }

        #[test]
        fn without_rules_a_text_stays_as_it_is(text in "([ -~]|\\PC|\r|\n|\u{301}|\u{200d}|\u{600}){0,30}") {
            let mut out = String::new();
            Charsmap::new(&[], &[]).normalize(&text, &mut out);
            prop_assert_eq!(out, text);
        }
    }
}
