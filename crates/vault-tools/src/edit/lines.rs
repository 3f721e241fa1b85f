//! Takes lines out of a note: list items with everything nested in them, and lines of paragraphs.

use std::collections::BTreeSet;
use std::ops::Range;

use vault_index::note::{Block, BlockKind};

use super::item::{check_mark, columns, marker};
use super::section::{footnotes, line_start, note, structure};
use super::spans::LineEnding;
use crate::error::{Error, ErrorKind, Result};

/// The result of [`take_lines`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TakenLines {
    /// The text without them.
    pub left: String,
    /// The lines, without the indentation that all lines of an item share.
    pub taken: String,
    /// The number of lines that matched, without those nested in others.
    pub count: usize,
    /// Open tasks that are taken because they are nested in a line that matched.
    pub open_tasks: usize,
    /// Lines that match and stay because they are in quotes, tables and headings.
    pub passed_over: usize,
    /// The ids of blocks in the taken lines.
    pub blocks: BTreeSet<String>,
    /// Whether links by a label, or references to footnotes, were taken without the definition of the label.
    pub loses_labels: bool,
}

/// Takes the matching lines out of the part of a text, except those in `except`. Code, comments and frontmatter are
/// ignored.
///
/// # Errors
/// [`ErrorKind::Refused`] if the remaining text would be parsed differently.
pub fn take_lines(
    text: &str,
    part: &Range<usize>,
    except: &Range<usize>,
    matches: &dyn Fn(&str) -> bool,
) -> Result<TakenLines> {
    // The byte order mark belongs to the file and not to its first line.
    if let Some(rest) = text.strip_prefix('\u{feff}') {
        let marked = text.len() - rest.len();
        let moved = |range: &Range<usize>| range.start.saturating_sub(marked)..range.end.saturating_sub(marked);
        let mut done = take_lines(rest, &moved(part), &moved(except), matches)?;
        done.left.insert(0, '\u{feff}');
        return Ok(done);
    }
    let old = note(text);
    let mut done = TakenLines::default();
    let mut spans: Vec<(Range<usize>, BlockKind)> = Vec::new();
    let is_meant = |block: &&Block| part.contains(&block.span.start) && !except.contains(&block.span.start);
    for block in old.blocks.iter().filter(is_meant) {
        let lines = lines_of(text, &block.span);
        match block.kind {
            BlockKind::List => take_items(text, block, matches, &mut spans, &mut done),
            BlockKind::Paragraph => {
                let taken = lines.filter(|line| matches(bare(&text[line.clone()])));
                spans.extend(taken.map(|line| (line, BlockKind::Paragraph)));
            }
            BlockKind::Quote | BlockKind::Table | BlockKind::Heading => {
                let in_quote = |line: &Range<usize>| bare(&text[line.clone()]).trim_start_matches(['>', ' ']);
                done.passed_over += lines.filter(|line| matches(in_quote(line))).count();
            }
            _ => {}
        }
    }
    done.count = spans.len();
    done.taken = taken(text, &spans);
    done.left = without(text, &spans);
    let (before, after) = (structure(text), structure(&done.left));
    if (before.0, before.2) != (after.0, after.2) {
        let what = "without these lines, other lines would become a heading or code, or cease to be one";
        return Err(Error::new(ErrorKind::Refused, what).with_remedy("move them with edit_note"));
    }
    let moved = note(&done.taken);
    // A sorted list, because there may be as many taken spans as links.
    let is_taken = |at: usize| {
        let begun = spans.partition_point(|(span, _)| span.start <= at);
        spans[..begun].last().is_some_and(|(span, _)| span.contains(&at))
    };
    // If several blocks have one id, links refer to the first.
    let first = |id: &str| old.block_ids.iter().find(|block| block.id.eq_ignore_ascii_case(id));
    let is_meant = |id: &String| first(id).is_none_or(|block| is_taken(block.span.start));
    done.blocks = moved.block_ids.into_iter().map(|block| block.id).filter(is_meant).collect();
    let loses_footnote = footnotes(&done.left).iter().any(|label| done.taken.contains(&format!("[^{label}]")));
    done.loses_labels =
        loses_footnote || moved.links.len() < old.links.iter().filter(|link| is_taken(link.span.start)).count();
    Ok(done)
}

/// Takes the list items that match, with the items nested in them.
fn take_items(
    text: &str,
    list: &Block,
    matches: &dyn Fn(&str) -> bool,
    spans: &mut Vec<(Range<usize>, BlockKind)>,
    done: &mut TakenLines,
) {
    let first_line = |start: usize| bare(text[start..].split('\n').next().unwrap_or_default());
    let mut fence = None;
    // The start of each item, its column, and the column of its content.
    let mut items: Vec<(usize, usize, usize)> = Vec::new();
    for line in lines_of(text, &list.span) {
        let trimmed = text[line.clone()].trim_start();
        let marks = ["```", "~~~"].into_iter().find(|marks| trimmed.starts_with(marks));
        match (fence, marks) {
            (None, None) => {
                if let Some((width, _)) = marker(bare(trimmed)) {
                    let column = columns(&text[line.start..line.end - trimmed.len()]);
                    items.push((line.start, column, column + width));
                }
            }
            (None, Some(_)) => fence = marks,
            (Some(_), _) if fence == marks => fence = None,
            (Some(_), _) => {}
        }
    }
    let end = line_end(text, list.span.end);
    let mut until = 0;
    for (number, (start, _, content)) in items.iter().enumerate() {
        if *start < until {
            done.open_tasks += usize::from(check_mark(first_line(*start)) == Some(' '));
        } else if matches(first_line(*start)) {
            until = items[number + 1..].iter().find(|(_, column, _)| column < content).map_or(end, |next| next.0);
            spans.push((*start..until, BlockKind::List));
        }
    }
}

/// Joins the spans to one text.
fn taken(text: &str, spans: &[(Range<usize>, BlockKind)]) -> String {
    let eol = LineEnding::of(text).as_str();
    let mut taken = String::new();
    let mut last = None;
    for (span, kind) in spans {
        if let Some(last) = last {
            taken.push_str(eol);
            // A list item is not part of the paragraph before it, nor the other way round.
            taken.push_str(if last == *kind { "" } else { eol });
        }
        last = Some(*kind);
        let lines = text[span.clone()].trim_end();
        let indent = lines.len() - lines.trim_start_matches([' ', '\t']).len();
        for (number, line) in lines.split('\n').enumerate() {
            let own = line.len() - line.trim_start_matches([' ', '\t']).len();
            taken.push_str(if number == 0 { "" } else { "\n" });
            taken.push_str(&line[own.min(indent)..]);
        }
    }
    taken
}

/// Returns the text without the spans; of blank lines on both sides of a span, those on one side are removed.
fn without(text: &str, spans: &[(Range<usize>, BlockKind)]) -> String {
    let mut left = String::new();
    let mut at = 0;
    for (span, _) in spans {
        left.push_str(&text[at..span.start]);
        at = span.end;
        let ends_blank = left.trim_end_matches([' ', '\t']).ends_with("\n\n") || left.ends_with("\n\r\n");
        if ends_blank {
            let blank = text[at..].len() - text[at..].trim_start_matches(['\n', '\r']).len();
            at += blank;
        }
    }
    left.push_str(&text[at..]);
    if !spans.is_empty() && at == text.len() {
        let filled = left.trim_end().len();
        let eol = LineEnding::of(text).as_str();
        left.truncate(filled);
        left.push_str(if text.ends_with('\n') && filled > 0 { eol } else { "" });
    }
    left
}

/// Returns the lines of a block, each with its line ending.
fn lines_of<'t>(text: &'t str, span: &Range<usize>) -> impl Iterator<Item = Range<usize>> + use<'t> {
    let start = line_start(text, span.start);
    let mut at = start;
    text[start..line_end(text, span.end)].split_inclusive('\n').map(move |line| {
        at += line.len();
        at - line.len()..at
    })
}

/// Returns the end of the line that contains an offset, including its line ending.
fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |newline| at + newline + 1)
}

fn bare(line: &str) -> &str {
    line.trim_end_matches(['\n', '\r'])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn take(text: &str) -> TakenLines {
        let is_done = |line: &str| check_mark(line) == Some('x') || line.contains("DONE");
        take_lines(text, &(0..text.len() + 1), &(0..0), &is_done).unwrap()
    }

    #[test]
    fn items_go_with_what_is_nested_in_them() {
        for (text, left, taken) in [
            ("- [x] a\n- [ ] b\n", "- [ ] b\n", "- [x] a"),
            ("- [ ] a\n  - [x] b\n    more\n    - c\n  - d\n", "- [ ] a\n  - d\n", "- [x] b\n  more\n  - c"),
            ("text\n\n- [x] a\n\n- [x] b\n\nend\n", "text\n\nend\n", "- [x] a\n- [x] b"),
            ("- [x] a\r\n  - b\r\n- c\r\n", "- c\r\n", "- [x] a\r\n  - b"),
            ("1. [x] a\n   - b\n2. c", "2. c", "1. [x] a\n   - b"),
            ("- [ ] p\n\t- [x] a\n\t\t- b\n", "- [ ] p\n", "- [x] a\n\t- b"),
            ("text\n- [x] a", "text", "- [x] a"),
            ("one DONE\ntwo\n", "two\n", "one DONE"),
            ("a DONE\n\n- [x] b\n", "", "a DONE\n\n- [x] b"),
            ("- [x] same\n- [x] same\n", "", "- [x] same\n- [x] same"),
            ("```\n- [x] a\n```\n%% DONE %%\n---\n", "```\n- [x] a\n```\n%% DONE %%\n---\n", ""),
            ("\u{feff}- [x] a\n- b\n", "\u{feff}- b\n", "- [x] a"),
            ("\u{feff}DONE\r\nb\r\n", "\u{feff}b\r\n", "DONE"),
            ("- a\n  ```\n  - [x] no\n  ```\n", "- a\n  ```\n  - [x] no\n  ```\n", ""),
        ] {
            let done = take(text);
            assert_eq!((done.left.as_str(), done.taken.as_str()), (left, taken), "{text:?}");
        }
        let done = take("- [x] a ^one\n  - [ ] b ^two\n> - [x] c\n\n| DONE |\n| - |\n\n# DONE\n");
        assert_eq!((done.count, done.open_tasks, done.passed_over), (1, 1, 3));
        assert_eq!(done.blocks.into_iter().collect::<Vec<_>>(), ["one", "two"]);
        assert!(take("- [ ] a ^i\n- [x] b ^I\n").blocks.is_empty(), "links mean the first");
        assert_eq!(take("- [x] a ^i\n- [ ] b ^i\n").blocks.into_iter().collect::<Vec<_>>(), ["i"]);
        assert_eq!(take("- [x] a\n- [x] b\n\n^list\n").blocks.into_iter().collect::<Vec<_>>(), ["list"]);
        assert!(take("- [x] [a][l]\n\n[l]: b.md\n").loses_labels);
        assert!(take("- [x] a[^1]\n\n[^1]: b\n").loses_labels && !take("- [x] a[^1]\n").loses_labels);
        let refused = take_lines("text\n- [x] a\n---\n", &(0..99), &(0..0), &|line| line.contains("[x]")).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Refused);
    }

    proptest! {
        #[test]
        fn no_word_is_lost(
            pieces in prop::collection::vec(prop::sample::select(vec![
                "- [x] a\n", "- [ ] b\n", "  - [x] c\n", "    - d\n", "\t- [x] e\n", "text\n", "DONE f\n", "\n", "\r\n",
                "```\n", "> - [x] g\n", "1. [x] h\n", "   i\n", "# j\n", "%%\n", "---\n", "- [X] k", "* l\n", "\u{feff}",
            ]), 0..20),
        ) {
            let text = pieces.concat();
            let is_done = |line: &str| matches!(check_mark(line), Some('x' | 'X')) || line.contains("DONE");
            if let Ok(done) = take_lines(&text, &(0..text.len() + 1), &(0..0), &is_done) {
                let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
                // The mark of the file stays at its beginning.
                let rest = text.trim_start_matches('\u{feff}');
                let left = done.left.strip_prefix(&text[..text.len() - rest.len()]).unwrap();
                let (mut all, mut expected) = ([words(left), words(&done.taken)].concat(), words(rest));
                all.sort();
                expected.sort();
                prop_assert_eq!(all, expected);
                prop_assert!(done.count > 0 || done.left == text);
            }
        }
    }
}
