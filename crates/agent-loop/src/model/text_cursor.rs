//! The position in the text of a reply, used to extract the new suffix of cumulative text.

use super::Delta;

/// The position in the text of one reply, in bytes.
///
/// A program that reads a [`ReplyStream`](crate::ReplyStream) itself must send every delta through a cursor.
/// [`ReplyBuilder`](crate::ReplyBuilder) and the agent do so.
#[derive(Debug, Clone, Default)]
pub struct TextCursor(usize);

impl TextCursor {
    /// Creates a cursor at the beginning of a reply.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the delta with only the new part of its text: [`Delta::CumulativeText`] becomes [`Delta::Text`], or
    /// [`Delta::Progress`] if nothing is new. All other deltas stay unchanged.
    pub fn resolve(&mut self, delta: Delta) -> Delta {
        match &delta {
            Delta::Text { text } => {
                self.0 += text.len();
                delta
            }
            Delta::CumulativeText { begin, text } => match self.new_suffix(*begin, text) {
                "" => Delta::Progress,
                text => Delta::Text { text: text.into() },
            },
            _ => delta,
        }
    }

    /// Returns how many bytes of text have been received.
    pub(crate) fn bytes(&self) -> usize {
        self.0
    }

    /// Returns the new suffix of a text that starts at this byte. Only positions count, never contents, so a text that
    /// a model repeats is kept.
    pub(crate) fn new_suffix<'t>(&mut self, begin: usize, text: &'t str) -> &'t str {
        let known = self.0.saturating_sub(begin).min(text.len());
        self.0 = self.0.max(begin.saturating_add(text.len()));
        // If the text differs from the earlier text, a character may span this offset.
        &text[text.ceil_char_boundary(known)..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_suffix_beyond_the_cursor_is_new() {
        let mut cursor = TextCursor::new();
        assert_eq!(cursor.new_suffix(0, "ab"), "ab");
        assert_eq!(cursor.new_suffix(0, "ab"), "");
        assert_eq!(cursor.new_suffix(0, "abc"), "c");
        assert_eq!(cursor.new_suffix(1, "bcd"), "d");
        assert_eq!(cursor.new_suffix(0, "a"), "", "a text that became shorter takes nothing back");
        assert_eq!(cursor.new_suffix(4, "abcd"), "abcd", "what is said twice stays");
        assert_eq!(cursor.new_suffix(100, "x"), "x", "what was missed between stays missed");
        assert_eq!(cursor.bytes(), 101);
        assert_eq!(cursor.new_suffix(usize::MAX, "x"), "x");
        let mut cursor = TextCursor::new();
        cursor.new_suffix(0, "a");
        assert_eq!(cursor.new_suffix(0, "üb"), "b");
    }
}
