//! The position in the text of a reply, to extract the new suffix of cumulative text.

use super::Delta;

/// The position in the text of one reply, in bytes.
///
/// Whoever reads a [`ReplyStream`](crate::ReplyStream) by itself sends every delta through one of these;
/// [`ReplyBuilder`](crate::ReplyBuilder) and the agent do so.
#[derive(Debug, Clone, Default)]
pub struct TextCursor(usize);

impl TextCursor {
    /// At the beginning of a reply.
    pub fn new() -> Self {
        Self::default()
    }

    /// The delta with what is new of its text: [`Delta::CumulativeText`] becomes [`Delta::Text`], or [`Delta::Progress`]
    /// where nothing is new. All others stay as they are.
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

    /// How many bytes of text have come.
    pub(crate) fn bytes(&self) -> usize {
        self.0
    }

    /// The new suffix of a text that begins at this byte. Only positions count, never contents: what a model really says
    /// twice stays.
    pub(crate) fn new_suffix<'t>(&mut self, begin: usize, text: &'t str) -> &'t str {
        let known = self.0.saturating_sub(begin).min(text.len());
        self.0 = self.0.max(begin.saturating_add(text.len()));
        // Text that differs from what was sent before may have a character across this offset.
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
