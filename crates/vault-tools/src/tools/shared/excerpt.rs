//! Excerpts of a text: its beginning, or the context of a match.

use std::ops::Range;

/// Returns the beginning of a text on one line, at most `length` characters, with `...` if it was cut.
pub(in crate::tools) fn beginning(text: &str, length: usize) -> String {
    // More words than this cannot fit.
    let line = text.split_whitespace().take(length + 1).collect::<Vec<_>>().join(" ");
    let Some((limit, _)) = line.char_indices().nth(length) else { return line };
    // A first word that is too long is cut.
    let end = if line[limit..].starts_with(' ') { limit } else { line[..limit].rfind(' ').unwrap_or(limit) };
    format!("{}...", &line[..end])
}

/// Returns about `length` characters around a match, on one line, with `...` where it was cut.
pub(in crate::tools) fn around(text: &str, found: &Range<usize>, length: usize) -> String {
    let (start, inner, end) = cut_around(text, found, length);
    let line = inner.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{start}{line}{end}")
}

/// Like [`around`], but keeps the white space of the line, so that the excerpt can be searched for.
pub(in crate::tools) fn within_line(line: &str, found: &Range<usize>, length: usize) -> String {
    let (start, inner, end) = cut_around(line, found, length);
    format!("{start}{inner}{end}")
}

fn cut_around<'t>(text: &'t str, found: &Range<usize>, length: usize) -> (&'static str, &'t str, &'static str) {
    let inside = text[found.clone()].chars().count();
    let room = length.saturating_sub(inside) / 2;
    let before = text[..found.start].char_indices().rev().take(room).last().map_or(found.start, |(at, _)| at);
    let after = text[found.end..].char_indices().nth(room).map_or(text.len(), |(at, _)| found.end + at);
    let dots = |is_cut: bool| if is_cut { "..." } else { "" };
    (dots(before > 0), &text[before..after], dots(after < text.len()))
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
        assert_eq!(around("\t- a  b", &(3..4), 400), "- a b");
        assert_eq!(within_line("\t- a  b", &(3..4), 400), "\t- a  b");
    }
}
