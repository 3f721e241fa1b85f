//! Text that differs only in typography: quotes, dashes, spaces, composed letters, blanks at the ends of lines.

use std::ops::Range;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// A text with every typographic variant replaced by the plain form, and the origin of each of its bytes.
struct FoldedText {
    text: String,
    /// For each byte, the source character that it comes from.
    sources: Vec<Range<usize>>,
}

impl FoldedText {
    fn of(text: &str) -> Self {
        let mut folded = Self { text: String::with_capacity(text.len()), sources: Vec::with_capacity(text.len()) };
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            let content = match line.strip_suffix('\n') {
                Some(content) => content.strip_suffix('\r').unwrap_or(content).trim_end_matches(is_blank),
                None => line,
            };
            for (start, c) in content.char_indices() {
                let source = at + start..at + start + c.len_utf8();
                match plain(c) {
                    Some(plain) => folded.push(plain, &source),
                    None => [c].into_iter().nfd().for_each(|c| folded.push(c, &source)),
                }
            }
            at += line.len();
            if line.ends_with('\n') {
                folded.push('\n', &(at - 1..at));
            }
        }
        folded
    }

    fn push(&mut self, c: char, source: &Range<usize>) {
        self.text.push(c);
        self.sources.resize(self.text.len(), source.clone());
    }

    /// Returns the source of a range of the folded text; `None` if the range begins or ends inside a character.
    fn source(&self, range: &Range<usize>) -> Option<Range<usize>> {
        let first = self.sources.get(range.start)?;
        let last = self.sources.get(range.end.checked_sub(1)?)?;
        let is_within = |at: usize, other: &Range<usize>| at > 0 && self.sources.get(at).is_some_and(|it| it == other);
        let cuts_start = range.start > 0 && self.sources[range.start - 1] == *first;
        let goes_on = |c: char| is_combining_mark(c) || matches!(c, '\u{1160}'..='\u{11ff}');
        let cuts_end = is_within(range.end, last) || self.text[range.end..].starts_with(goes_on);
        (!cuts_start && !cuts_end).then_some(first.start..last.end)
    }
}

/// Returns the passages of a text that differ from `wanted` only in typography, from left to right, without overlaps.
pub(super) fn similar(text: &str, wanted: &str) -> Vec<Range<usize>> {
    let (there, wanted) = (FoldedText::of(text), FoldedText::of(wanted).text);
    let occurrences = |wanted: &str| -> Vec<Range<usize>> {
        let found = there.text.match_indices(wanted).filter(|_| !wanted.is_empty());
        found.filter_map(|(at, found)| there.source(&(at..at + found.len()))).collect()
    };
    let mut found = occurrences(&wanted);
    let without_blanks = wanted.trim_end_matches(is_blank);
    if found.is_empty() && without_blanks.len() < wanted.len() {
        // Blanks at the end of `wanted` are dropped only if the passage is at the end of a line.
        found = occurrences(without_blanks);
        found.retain(|at| {
            matches!(text[at.end..].trim_start_matches(is_blank).chars().next(), None | Some('\n' | '\r'))
        });
    }
    found
}

/// Lists the kinds of difference between two [`similar`] texts, for a message.
pub(super) fn differences(there: &str, wanted: &str) -> Vec<&'static str> {
    type CharPredicate = fn(char) -> bool;
    let of = |text: &str, is: CharPredicate| text.chars().filter(|c| is(*c)).collect::<String>();
    let blanks =
        |text: &str| text.lines().map(|line| line.len() - line.trim_end_matches(is_blank).len()).collect::<Vec<_>>();
    let kinds: [(CharPredicate, &str); 4] = [
        (|c| matches!(plain(c), Some('\'' | '"')) || matches!(c, '\'' | '"'), "quotes"),
        (|c| plain(c) == Some('-') || c == '-', "dashes"),
        (|c| plain(c) == Some(' '), "no-break or other spaces"),
        (|c| is_combining_mark(c) || plain(c).is_none() && !([c].into_iter().nfd().eq([c])), "composed letters"),
    ];
    let mut named: Vec<_> =
        kinds.into_iter().filter(|(is, _)| of(there, *is) != of(wanted, *is)).map(|(_, name)| name).collect();
    if blanks(there) != blanks(wanted) {
        named.push("blanks at the end of a line");
    }
    named
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t')
}

/// Returns the plain form of a typographic character.
fn plain(c: char) -> Option<char> {
    match c {
        '\u{2018}'..='\u{201b}' | '\u{2032}' | '\u{02bc}' | '\u{00b4}' => Some('\''),
        '\u{201c}'..='\u{201f}' | '\u{2033}' | '\u{00ab}' | '\u{00bb}' => Some('"'),
        '\u{2010}'..='\u{2015}' | '\u{2212}' => Some('-'),
        '\u{00a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => Some(' '),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typography_is_no_difference() {
        for (text, wanted, found, differs) in [
            ("say “what…” now", "\"what…\"", Some("“what…”"), "quotes"),
            ("it’s – a test", "it's - a test", Some("it’s – a test"), "quotes, dashes"),
            ("12\u{a0}km far", "12 km", Some("12\u{a0}km"), "no-break or other spaces"),
            ("a cafe\u{301} here", "café", Some("cafe\u{301}"), "composed letters"),
            ("a café here", "cafe\u{301} here", Some("café here"), "composed letters"),
            ("한국어", "\u{1112}\u{1161}\u{11ab}국", Some("한국"), "composed letters"),
            ("one  \ntwo\t\r\nend", "one\ntwo\nend", Some("one  \ntwo\t\r\nend"), "blanks at the end of a line"),
            ("one\ntwo", "one  \ntwo", Some("one\ntwo"), "blanks at the end of a line"),
            // What ends a passage stays outside of it.
            ("one  \ntwo", "one", Some("one"), ""),
            ("one  \ntwo", "one    ", Some("one"), "blanks at the end of a line"),
            ("“one” two", "\"one\" ", Some("“one” "), "quotes"),
            ("turn it once “x”", "on ", None, ""),
            ("the “cat”alog", "\"cat\" ", None, ""),
            ("5 \u{2126} x", "5 \u{3a9}", Some("5 \u{2126}"), "composed letters"),
            // No part of a letter.
            ("\u{1112}\u{1161}\u{11ab}", "\u{1112}\u{1161}", None, ""),
            ("é", "e", None, ""),
            ("e\u{301}", "e", None, ""),
            ("Two", "two", None, ""),
            ("a  b", "a b", None, ""),
            ("x", "  ", None, ""),
            ("a\rb", "ab", None, ""),
        ] {
            let ranges = similar(text, wanted);
            assert_eq!(ranges.first().map(|range| &text[range.clone()]), found, "{text:?} {wanted:?}");
            if let Some(found) = found {
                assert_eq!(differences(found, wanted).join(", "), differs, "{text:?} {wanted:?}");
            }
        }
        assert_eq!(similar("‘a’ 'a' ‘a’", "'a'").len(), 3);
    }

    proptest::proptest! {
        #[test]
        fn what_is_found_is_a_passage(text in "[ab'’“\"\\-–é\u{301} \t\r\n]{0,24}", wanted in "[ab'’“\"\\-–é\u{301} \n]{1,4}") {
            let found = similar(&text, &wanted);
            for range in &found {
                let passage = text.get(range.clone()).unwrap();
                proptest::prop_assert_eq!(similar(passage, &wanted), vec![0..passage.len()]);
            }
            proptest::prop_assert!(found.is_sorted_by(|a, b| a.end <= b.start));
        }
    }
}
