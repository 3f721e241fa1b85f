//! Excerpts of a text: its beginning, or the context of a match.

use std::ops::Range;

/// The beginning of a text on one line, at most `length` characters, with `...` where it was cut.
pub(super) fn beginning(text: &str, length: usize) -> String {
    // More words than this cannot fit.
    let line = text.split_whitespace().take(length + 1).collect::<Vec<_>>().join(" ");
    let Some((limit, _)) = line.char_indices().nth(length) else { return line };
    // A first word that is too long is cut.
    let end = if line[limit..].starts_with(' ') { limit } else { line[..limit].rfind(' ').unwrap_or(limit) };
    format!("{}...", &line[..end])
}

/// About `length` characters around a match, on one line, with `...` where it was cut.
pub(super) fn around(text: &str, found: &Range<usize>, length: usize) -> String {
    let inside = text[found.clone()].chars().count();
    let room = length.saturating_sub(inside) / 2;
    let before = text[..found.start].char_indices().rev().take(room).last().map_or(found.start, |(at, _)| at);
    let after = text[found.end..].char_indices().nth(room).map_or(text.len(), |(at, _)| found.end + at);
    let line = text[before..after].split_whitespace().collect::<Vec<_>>().join(" ");
    let start = if before > 0 { "..." } else { "" };
    let end = if after < text.len() { "..." } else { "" };
    format!("{start}{line}{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginnings() {
        assert_eq!(beginning("one two\nthree", 100), "one two three");
        assert_eq!(beginning("one two three", 8), "one two...");
        assert_eq!(beginning("abcdefgh", 3), "abc...");
        assert_eq!(beginning("", 3), "");
    }

    #[test]
    fn around_a_match() {
        let text = "The quick brown fox jumps over the lazy dog";
        assert_eq!(around(text, &(16..19), 13), "...rown fox jump...");
        assert_eq!(around(text, &(16..19), 400), text);
    }
}
