//! Texts with their matches marked, as segments that a client shows without parsing anything.

use std::ops::Range;

use vault_index::{best_match, body_start, matched_ranges, readable};

use super::messages::Segment;

/// Characters of an excerpt, and of the text before its first match.
const LENGTH: usize = 240;
const BEFORE: usize = 60;

/// The part of a passage that matches best, without markup.
pub(super) fn excerpt(passage: &str, terms: &[String]) -> Vec<Segment> {
    let plain = readable(passage);
    let is_in_markup = best_match(&plain, terms).is_none() && best_match(passage, terms).is_some();
    let text = if plain.is_empty() || is_in_markup { passage } else { &plain };
    let at = best_match(text, terms).unwrap_or(0).max(body_start(text));
    let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let start = match text[line..at].chars().count() > BEFORE {
        true => word_after(text, back(text, at, BEFORE), at),
        false => line,
    };
    let end = word_before(text, start, forward(text, start, LENGTH));
    let marks = matched_ranges(text, terms);
    let mut segments = segments(text, start..end, &marks);
    let ellipsis = |text: &str| Segment { text: text.to_owned(), is_match: false };
    if start > line {
        segments.insert(0, ellipsis("… "));
    }
    if !text[end..].trim().is_empty() {
        segments.push(ellipsis(" …"));
    }
    segments
}

/// A whole text with the places of some words marked.
pub(super) fn marked(text: &str, terms: &[String]) -> Vec<Segment> {
    segments(text, 0..text.len(), &matched_ranges(text, terms))
}

/// A whole text with a phrase marked wherever it stands.
pub(super) fn marked_phrase(text: &str, phrase: &str) -> Vec<Segment> {
    let marks: Vec<Range<usize>> = match phrase {
        "" => Vec::new(),
        phrase => text.match_indices(phrase).map(|(at, _)| at..at + phrase.len()).collect(),
    };
    segments(text, 0..text.len(), &marks)
}

/// The pieces of a range of a text. Marks are in order and do not overlap.
fn segments(text: &str, range: Range<usize>, marks: &[Range<usize>]) -> Vec<Segment> {
    let mut segments = Vec::new();
    let mut push = |range: Range<usize>, is_match: bool| {
        if !range.is_empty() {
            segments.push(Segment { text: text[range].to_owned(), is_match });
        }
    };
    let mut at = range.start;
    for mark in marks.iter().filter(|mark| mark.end > range.start && mark.start < range.end) {
        let (start, end) = (mark.start.max(at), mark.end.min(range.end));
        push(at..start, false);
        push(start..end, true);
        at = end;
    }
    push(at..range.end, false);
    segments
}

/// The place some characters before another one.
fn back(text: &str, at: usize, characters: usize) -> usize {
    text[..at].char_indices().rev().nth(characters - 1).map_or(0, |(at, _)| at)
}

fn forward(text: &str, at: usize, characters: usize) -> usize {
    text[at..].char_indices().nth(characters).map_or(text.len(), |(more, _)| at + more)
}

/// The beginning of the next word, where there is one before `most`.
fn word_after(text: &str, at: usize, most: usize) -> usize {
    let Some(space) = text[at..most].find(char::is_whitespace) else { return at };
    at + space + (text[at + space..most].len() - text[at + space..most].trim_start().len())
}

/// The end of the last whole word, unless the text has no spaces.
fn word_before(text: &str, least: usize, at: usize) -> usize {
    if text[at..].starts_with(char::is_whitespace) || at == text.len() {
        return at;
    }
    text[least..at].rfind(char::is_whitespace).map_or(at, |space| least + space)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(segments: &[Segment]) -> String {
        segments.iter().map(|segment| segment.text.as_str()).collect()
    }

    fn matches(segments: &[Segment]) -> Vec<&str> {
        segments.iter().filter(|segment| segment.is_match).map(|segment| segment.text.as_str()).collect()
    }

    fn terms(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn an_excerpt_begins_near_its_match_and_ends_at_a_word() {
        let text = format!("# Soil\n\n{}the worms live in compost {}", "long ago ".repeat(20), "and rest ".repeat(60));
        let found = excerpt(&text, &terms(&["worms", "compost"]));
        assert_eq!(matches(&found), ["worms", "compost"]);
        let text = joined(&found);
        assert!(text.starts_with("… ") && text.ends_with(" …"), "{text}");
        assert!(text.chars().count() <= LENGTH + 4, "{text}");
    }

    #[test]
    fn a_short_passage_is_shown_without_markup_and_without_marks_where_nothing_matches() {
        assert_eq!(joined(&excerpt("# Soil\n\n[[Clay|clay]] is *wet*", &[])), "clay is wet");
        // The word stands in the markup only.
        assert_eq!(matches(&excerpt("[[Loam|clay]]", &terms(&["loam"]))), ["Loam"]);
        assert_eq!(joined(&excerpt("", &terms(&["loam"]))), "");
    }

    #[test]
    fn letters_of_several_bytes_are_not_cut() {
        let text = format!("{} käse {}", "ä".repeat(200), "é".repeat(400));
        assert_eq!(matches(&excerpt(&text, &terms(&["kase"]))), ["käse"]);
        assert_eq!(joined(&marked(&text, &[])), text);
        assert_eq!(matches(&marked_phrase("Rose, rose and Rose", "Rose")), ["Rose", "Rose"]);
    }
}
