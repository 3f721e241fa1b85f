//! Markup of Obsidian in text that the Markdown parser leaves unparsed. A tag may start inside it and right after it.
//!
//! Obsidian pairs marks at any position, so `snake_case_` emphasizes `case`, and it treats brackets as a link even if
//! their label is not defined.

use std::ops::Range;

/// Longer marks come first.
const MARKS: [&str; 5] = ["**", "__", "==", "*", "_"];

/// Finds the markup of one text, from left to right.
#[derive(Default)]
pub(super) struct Marks {
    /// Marks that have no closing mark in the rest of the text. Without this, a line of them would take quadratic time.
    unpaired: [bool; MARKS.len()],
}

impl Marks {
    /// The markup at the start of `rest`, the rest of the text: the span of its content, and its length.
    pub(super) fn at_start_of(&mut self, rest: &str) -> Option<(Range<usize>, usize)> {
        match rest.as_bytes() {
            [b'\\', escaped, ..] if escaped.is_ascii_punctuation() => Some((0..0, 2)),
            [b'[', next, ..] if *next != b']' => {
                let close = 1 + rest[1..].find(['[', ']'])?;
                let closes = rest[close..].starts_with(']') && !rest[close..].starts_with("]]");
                closes.then_some((1..close, close + 1))
            }
            [b'*' | b'_' | b'=', ..] => (0..MARKS.len()).find_map(|index| self.pair(rest, index)),
            _ => None,
        }
    }

    fn pair(&mut self, rest: &str, index: usize) -> Option<(Range<usize>, usize)> {
        let mark = MARKS[index];
        let inside = rest.strip_prefix(mark)?;
        if self.unpaired[index] {
            return None;
        }
        let length = closing(inside, mark);
        self.unpaired[index] = length.is_none();
        let end = mark.len() + length.filter(|&length| !inside[..length].trim().is_empty())?;
        Some((mark.len()..end, end + mark.len()))
    }
}

/// The position of the mark that closes the one before `inside`: it must be alone, and `_` must not be followed by a
/// word.
fn closing(inside: &str, mark: &str) -> Option<usize> {
    let bytes = inside.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let run = bytes[at..].iter().take_while(|&&b| b == byte).count();
        let before_word = mark == "_" && bytes.get(at + 1).is_some_and(u8::is_ascii_alphanumeric);
        if run == mark.len() && byte == mark.as_bytes()[0] && !before_word {
            return Some(at);
        }
        at += if byte == b'\\' { 2 } else { run };
    }
    None
}

/// The first character of a text and those after it that begin no tag, no URL and no markup.
pub(super) fn plain_start(text: &str) -> &str {
    let first = text.chars().next().map_or(0, char::len_utf8);
    let may_begin = |byte: &u8| matches!(byte, b'#' | b'h' | b'\\' | b'[' | b'*' | b'_' | b'=');
    let plain = text.as_bytes()[first..].iter().position(may_begin);
    &text[..plain.map_or(text.len(), |plain| first + plain)]
}

/// The length of the bare URL that a text begins with. A closing bracket that it does not open ends it.
pub(super) fn bare_url(text: &str) -> Option<usize> {
    if !text.starts_with("https://") && !text.starts_with("http://") {
        return None;
    }
    let mut open = 0;
    let ends = |c: char| {
        match c {
            '(' | '[' => open += 1,
            ')' | ']' => open -= 1,
            _ => {}
        }
        open < 0 || c == '<' || c.is_whitespace()
    };
    Some(text.find(ends).unwrap_or(text.len()))
}
