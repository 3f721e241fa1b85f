//! Edits of byte spans, positions by line and column, and the replacement of a passage that occurs once.

use std::ops::Range;

use schemars::JsonSchema;
use serde::Deserialize;

use super::similar::{differences, similar};
use crate::error::{Error, ErrorKind, Result};
use crate::host::Position;

/// The maximum number of occurrences that an error lists.
const MAX_NAMED: usize = 5;

/// The replacement of one span of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextEdit {
    /// The bytes to replace.
    pub span: Range<usize>,
    /// The new text.
    pub text: String,
}

/// Applies edits that are sorted and do not overlap.
///
/// # Errors
/// [`ErrorKind::InvalidArguments`] for spans that overlap, are out of order, or cut a character.
pub fn apply_edits(text: &str, edits: &[TextEdit]) -> Result<String> {
    let mut new = String::with_capacity(text.len());
    let mut at = 0;
    for TextEdit { span, text: replacement } in edits {
        let (Some(kept), Some(_)) = (text.get(at..span.start), text.get(span.clone())) else {
            let message = format!("the bytes {} to {} cannot be replaced after byte {at}", span.start, span.end);
            return Err(Error::new(ErrorKind::InvalidArguments, message));
        };
        new.push_str(kept);
        new.push_str(replacement);
        at = span.end;
    }
    new.push_str(&text[at..]);
    Ok(new)
}

/// The line ending of a text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LineEnding {
    /// `\n`.
    #[default]
    Lf,
    /// `\r\n`.
    CrLf,
}

impl LineEnding {
    /// Returns the line ending that most lines of a text have.
    pub fn of(text: &str) -> Self {
        let windows = text.matches("\r\n").count();
        if windows * 2 > text.matches('\n').count() { Self::CrLf } else { Self::Lf }
    }

    /// Returns its characters.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lf => "\n",
            Self::CrLf => "\r\n",
        }
    }

    /// Converts every line of a text to this line ending.
    pub fn put(self, text: &str) -> String {
        let plain = text.replace("\r\n", "\n");
        match self {
            Self::Lf => plain,
            Self::CrLf => plain.replace('\n', "\r\n"),
        }
    }
}

/// Returns the byte offset of a position. A column beyond the end of its line means the end of the line, as in editors.
///
/// # Errors
/// [`ErrorKind::InvalidArguments`] for a line that does not exist, or a column inside a character.
pub fn offset_of(text: &str, position: Position) -> Result<usize> {
    let mut start = 0;
    for _ in 0..position.line {
        start += text[start..].find('\n').ok_or_else(|| {
            let lines = text.matches('\n').count() + 1;
            Error::new(ErrorKind::InvalidArguments, format!("there is no line {}", position.line))
                .with_remedy(format!("lines count from 0, and there are {lines}"))
        })? + 1;
    }
    let line = text[start..].split('\n').next().unwrap_or_default();
    let line = line.strip_suffix('\r').unwrap_or(line);
    let mut left = position.ch as usize;
    for (at, c) in line.char_indices() {
        if left == 0 {
            return Ok(start + at);
        }
        left = left.checked_sub(c.len_utf16()).ok_or_else(|| {
            Error::new(ErrorKind::InvalidArguments, format!("column {} is inside a character", position.ch))
                .with_remedy("columns count UTF-16 units")
        })?;
    }
    Ok(start + line.len())
}

/// Returns the position of a byte offset. An offset inside a character means the start of the character.
pub fn position_of(text: &str, offset: usize) -> Position {
    let before = &text[..text.floor_char_boundary(offset)];
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let line = before.matches('\n').count();
    let ch: usize = before[start..].chars().map(char::len_utf16).sum();
    Position { line: u32::try_from(line).unwrap_or(u32::MAX), ch: u32::try_from(ch).unwrap_or(u32::MAX) }
}

/// The result of [`replace_once`] and [`replace_all`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Replacement {
    /// The whole new text.
    pub text: String,
    /// The first line of the first replacement, from 1.
    pub first_line: u32,
    /// The last line of the last replacement; its first line if the replacement is empty.
    pub last_line: u32,
    /// How many passages were replaced.
    pub count: usize,
}

/// How a passage must be like what is replaced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Match {
    /// In every character; line endings can differ.
    #[default]
    Exact,
    /// Quotes, dashes, spaces and composed letters can be others, and lines can end in blanks. Where a passage is there
    /// exactly, only that is meant.
    Similar,
}

/// Replaces a passage that occurs exactly once.
///
/// # Errors
/// [`ErrorKind::NotFound`], with the most similar line; [`ErrorKind::Ambiguous`], with the lines of all occurrences.
pub fn replace_once(text: &str, old: &str, new: &str, how: Match) -> Result<Replacement> {
    let wanted = as_in_text(text, old)?;
    let mut found = overlapping(text, &wanted);
    if how == Match::Similar && found.is_empty() {
        found = similar(text, old);
    }
    if found.len() > 1 {
        let line = |at: &Range<usize>| (1 + text[..at.start].matches('\n').count()).to_string();
        let lines: Vec<String> = found.iter().take(MAX_NAMED).map(line).collect();
        let more = if found.len() > MAX_NAMED { ", ..." } else { "" };
        let count = text.matches(&wanted).count().max(found.len());
        let at_least = if found.len() > MAX_NAMED { "at least " } else { "" };
        let message = format!("the text occurs {at_least}{count} times, in lines {}{more}", lines.join(", "));
        return Err(Error::new(ErrorKind::Ambiguous, message)
            .with_remedy("give more of the surrounding text, so that it occurs once"));
    }
    replaced(text, old, found, new)
}

/// Replaces every occurrence of a passage, from left to right.
///
/// # Errors
/// [`ErrorKind::NotFound`], with the most similar line.
pub fn replace_all(text: &str, old: &str, new: &str, how: Match) -> Result<Replacement> {
    let wanted = as_in_text(text, old)?;
    let found = match how {
        Match::Exact => text.match_indices(&wanted).map(|(start, _)| start..start + wanted.len()).collect(),
        Match::Similar => similar(text, old),
    };
    replaced(text, old, found, new)
}

/// Returns a passage with the line endings that it has in a text, if it occurs there.
fn as_in_text(text: &str, old: &str) -> Result<String> {
    if old.is_empty() {
        return Err(Error::new(ErrorKind::InvalidArguments, "the text to be replaced is empty")
            .with_remedy("give the passage to replace; to add text at the end, append"));
    }
    Ok(if text.contains(old) { old.to_owned() } else { LineEnding::of(text).put(old) })
}

fn replaced(text: &str, old: &str, found: Vec<Range<usize>>, new: &str) -> Result<Replacement> {
    let new = if text.contains('\n') { LineEnding::of(text).put(new) } else { new.to_owned() };
    let edits: Vec<TextEdit> = found.into_iter().map(|span| TextEdit { span, text: new.clone() }).collect();
    let (Some(first), Some(last)) = (edits.first(), edits.last()) else { return Err(not_there(text, old)) };
    let lines = |text: &str| u32::try_from(text.matches('\n').count()).unwrap_or(u32::MAX);
    let first_line = 1 + lines(&text[..first.span.start]);
    let after = text.len() - last.span.end;
    let text = apply_edits(text, &edits)?;
    let start_of_last = text.len() - after - new.len();
    let last_line = 1 + lines(&text[..start_of_last]) + lines(new.trim_end_matches('\n'));
    Ok(Replacement { text, first_line, last_line, count: edits.len() })
}

/// Returns the first occurrences, including overlapping ones, and enough of them to show whether there are more than an
/// error lists. Overlapping ones count because replacing the first of several would be a guess.
fn overlapping(text: &str, wanted: &str) -> Vec<Range<usize>> {
    let step = wanted.chars().next().map_or(1, char::len_utf8);
    let (mut found, mut at) = (Vec::new(), 0);
    while found.len() <= MAX_NAMED
        && let Some(next) = text.get(at..).and_then(|rest| rest.find(wanted))
    {
        found.push(at + next..at + next + wanted.len());
        at += next + step;
    }
    found
}

fn not_there(text: &str, old: &str) -> Error {
    let error = Error::new(ErrorKind::NotFound, "the text to be replaced does not occur");
    if let Some(ends) = actual_line_endings(text, old) {
        return error.with_remedy(format!("its line endings differ; the note has: {ends}"));
    }
    if let Some(there) = similar(text, old).into_iter().next() {
        let passage = &text[there.clone()];
        let kinds = differences(passage, old).join(" and ");
        let before = passage.lines().zip(old.lines()).take_while(|(line, wanted)| line == wanted).count();
        let number = text[..there.start].matches('\n').count() + before;
        let line = text.lines().nth(number).unwrap_or_default();
        return error.with_remedy(format!(
            "line {} differs in {kinds}: {line:?}; copy it exactly, or set match to similar",
            number + 1
        ));
    }
    let squeeze = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    let first = old.lines().map(squeeze).find(|line| !line.is_empty()).unwrap_or_default();
    let near = text.lines().enumerate().find(|(_, line)| !first.is_empty() && squeeze(line).contains(&first));
    match near.map(|(number, _)| first_difference(text, old, number)) {
        Some((number, line)) => {
            error.with_remedy(format!("line {} is similar but differs; copy it exactly: {line:?}", number + 1))
        }
        None => error.with_remedy("read the note again and copy the words exactly"),
    }
}

/// Returns the first line, from `start` on, that differs from the corresponding line of `old`.
fn first_difference<'t>(text: &'t str, old: &str, start: usize) -> (usize, &'t str) {
    let there = text.lines().enumerate().skip(start);
    let wanted = old.lines().skip_while(|line| line.trim().is_empty());
    let mut pairs = there.clone().zip(wanted);
    let first = pairs.find(|((at, line), wanted)| if *at == start { !line.ends_with(wanted) } else { line != wanted });
    first.map(|(line, _)| line).or_else(|| there.clone().next()).unwrap_or((start, ""))
}

/// Describes the line endings of the passage that differs from `old` only in these; `None` if there is no such passage.
fn actual_line_endings(text: &str, old: &str) -> Option<String> {
    let plain = |text: &str| text.replace("\r\n", "\n");
    let (there, wanted) = (plain(text), plain(old));
    let first = there[..there.find(&wanted)?].matches('\n').count();
    let count = wanted.matches('\n').count();
    let end = |line: &str| if line.ends_with('\r') { r"\r\n" } else { r"\n" };
    let lines = text.split('\n').enumerate().skip(first).take(count.min(MAX_NAMED));
    let ends: Vec<String> = lines.map(|(at, line)| format!("line {} in {}", at + 1, end(line))).collect();
    let more = if count > MAX_NAMED { ", ..." } else { "" };
    (count > 0).then(|| format!("{}{more}", ends.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_made_in_order() {
        let text = "añb\r\nc";
        let edit = |span, text: &str| TextEdit { span, text: text.into() };
        let edits = [edit(0..1, "XX"), edit(3..3, "-"), edit(6..7, "")];
        assert_eq!(apply_edits(text, &edits).unwrap(), "XXñ-b\r\n");
        for bad in [vec![edit(1..2, "")], vec![edit(3..4, ""), edit(0..1, "")], vec![edit(9..10, "")]] {
            assert_eq!(apply_edits(text, &bad).unwrap_err().kind(), ErrorKind::InvalidArguments);
        }
    }

    #[test]
    fn positions_count_utf16_units() {
        let text = "a𝒳b\r\nzwei\n";
        for (line, ch, offset) in [(0, 0, 0), (0, 1, 1), (0, 3, 5), (0, 4, 6), (0, 99, 6), (1, 2, 10), (2, 0, 13)] {
            let position = Position { line, ch };
            assert_eq!(offset_of(text, position).unwrap(), offset, "{position:?}");
            if ch != 99 {
                assert_eq!(position_of(text, offset), position);
            }
        }
        assert!(offset_of(text, Position { line: 0, ch: 2 }).is_err());
        assert!(offset_of(text, Position { line: 3, ch: 0 }).is_err());
    }

    #[test]
    fn a_passage_is_replaced_if_it_occurs_once() {
        let differs = replace_once("intro\n\n## Log\n\n- a\n", "intro\n\n## Log\n\n- b", "x", Match::Exact)
            .unwrap_err()
            .to_string();
        assert!(differs.contains("line 5 is similar but differs; copy it exactly: \"- a\""), "{differs}");
        let done = replace_once("one\r\ntwo\r\nthree", "two\nthree", "2\n3", Match::Exact).unwrap();
        assert_eq!((done.text.as_str(), done.first_line, done.last_line), ("one\r\n2\r\n3", 2, 3));
        let several = replace_once("a b\na\n", "a", "x", Match::Exact).unwrap_err();
        assert!(several.kind() == ErrorKind::Ambiguous && several.to_string().contains("lines 1, 2"), "{several}");
        assert_eq!(replace_once("aaa", "aa", "x", Match::Exact).unwrap_err().kind(), ErrorKind::Ambiguous);
        let near = replace_once("x\n  Some  words here\n", "some words", "x", Match::Exact).unwrap_err();
        assert!(near.kind() == ErrorKind::NotFound && near.to_string().contains("line 2"), "{near}");
        assert!(replace_once("x", "", "y", Match::Exact).is_err());
        let all = replace_all("a b\r\nc a\r\n", "a", "x\ny", Match::Exact).unwrap();
        assert_eq!(
            (all.text.as_str(), all.first_line, all.last_line, all.count),
            ("x\r\ny b\r\nc x\r\ny\r\n", 1, 4, 2)
        );
        assert_eq!(replace_all("aaa", "aa", "b", Match::Exact).unwrap().text, "ba");
        assert_eq!(replace_all("a", "b", "c", Match::Exact).unwrap_err().kind(), ErrorKind::NotFound);
        let mixed = replace_once("a\nb\r\nc\n", "a\nb\nc", "x", Match::Exact).unwrap_err().to_string();
        assert!(mixed.contains(r"line 1 in \n, line 2 in \r\n"), "{mixed}");
        assert_eq!(replace_once("a\nb\r\nc\n", "b\r\nc", "x", Match::Exact).unwrap().text, "a\nx\n");
    }

    #[test]
    fn what_differs_in_typography_is_named_and_replaced_when_told() {
        let text = "intro\n“what…” he said –  \nno\n";
        let old = "\"what…\" he said -\nno";
        let refused = replace_once(text, old, "x", Match::Exact).unwrap_err().to_string();
        let why = "line 2 differs in quotes and dashes and blanks at the end of a line: \"“what…” he said –  \"; copy";
        assert!(refused.contains(why) && refused.contains("match to similar"), "{refused}");
        assert_eq!(replace_once(text, old, "x", Match::Similar).unwrap().text, "intro\nx\n");

        let below = replace_once("intro\n\n“q” b\n", "\n\"q\" b", "x", Match::Exact).unwrap_err().to_string();
        assert!(below.contains("line 3 differs in quotes: \"“q” b\""), "{below}");

        // The hint shows the blanks that differ.
        let blanks = replace_once("one\ntwo  \nthree\n", "two\nthree", "x", Match::Exact).unwrap_err().to_string();
        assert!(blanks.contains("line 2 differs in blanks at the end of a line: \"two  \""), "{blanks}");

        // What is there exactly is meant before what is similar, unless all are.
        let quotes = "‘a’ b 'a' c ‘a’";
        assert_eq!(replace_once(quotes, "'a'", "x", Match::Similar).unwrap().text, "‘a’ b x c ‘a’");
        assert_eq!(replace_once("‘a’ b ‘a’", "'a'", "x", Match::Similar).unwrap_err().kind(), ErrorKind::Ambiguous);
        assert_eq!(replace_all(quotes, "'a'", "x", Match::Similar).unwrap().text, "x b x c x");
        assert_eq!(replace_all(quotes, "'a'", "x", Match::Exact).unwrap().text, "‘a’ b x c ‘a’");
    }
}
