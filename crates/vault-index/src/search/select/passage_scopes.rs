//! The lines, blocks, sections and tasks of a text, which are the scopes of conditions.

use std::collections::HashSet;
use std::ops::Range;

/// The blocks: runs of lines without a blank line between them; each list item starts another one.
pub(super) fn blocks(text: &str) -> Vec<Range<usize>> {
    let mut blocks = Vec::new();
    let (mut start, mut at) = (0, 0);
    for line in text.split_inclusive('\n') {
        let is_blank = line.trim().is_empty();
        if (is_blank || item(line).is_some()) && start < at {
            blocks.push(start..at);
            start = at;
        }
        at += line.len();
        if is_blank {
            start = at;
        }
    }
    if start < at {
        blocks.push(start..at);
    }
    blocks
}

/// The tasks, each with its mark: list items that begin with a mark in brackets, with their continuation lines. Code
/// that looks like a task counts as one here.
pub(super) fn tasks(text: &str) -> Vec<(char, Range<usize>)> {
    blocks(text).into_iter().filter_map(|block| Some((mark(item(&text[block.clone()])?)?, block))).collect()
}

/// The sections between headings, which are the lines with these numbers, counted from that of the first line.
pub(super) fn sections(text: &str, first_line: u32, headings: &HashSet<u32>) -> Vec<Range<usize>> {
    let mut sections = Vec::new();
    let (mut start, mut at) = (0, 0);
    for (line, text) in (first_line..).zip(text.split_inclusive('\n')) {
        if headings.contains(&line) && start < at {
            sections.push(start..at);
            start = at;
        }
        at += text.len();
    }
    sections.push(start..at);
    sections
}

/// The text after the mark of a list item at the start of a line, also within quotes.
fn item(line: &str) -> Option<&str> {
    let line = line.trim_start_matches([' ', '\t', '>']);
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let behind = match digits {
        0 => line.strip_prefix(['-', '*', '+'])?,
        1..=9 => line[digits..].strip_prefix(['.', ')'])?,
        _ => return None,
    };
    behind.starts_with([' ', '\t']).then(|| behind.trim_start_matches([' ', '\t']))
}

/// The mark between the brackets of a task.
fn mark(item: &str) -> Option<char> {
    let mut inside = item.strip_prefix('[')?.chars();
    let mark = inside.next()?;
    let behind = inside.as_str().strip_prefix(']')?;
    behind.starts_with(char::is_whitespace).then_some(mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_and_tasks() {
        let text = "One\ntwo\n\n- [ ] call Ann\n  today\n- [x] mail\n\t* [-] dropped\n\n> 1. [ ] quoted\n\n- []\n- [ ]no\n-[ ] no";
        let trimmed: Vec<&str> = blocks(text).into_iter().map(|block| text[block].trim()).collect();
        let expected = [
            "One\ntwo",
            "- [ ] call Ann\n  today",
            "- [x] mail",
            "* [-] dropped",
            "> 1. [ ] quoted",
            "- []",
            "- [ ]no\n-[ ] no",
        ];
        assert_eq!(trimmed, expected);
        let marks: Vec<char> = tasks(text).into_iter().map(|(mark, _)| mark).collect();
        assert_eq!(marks, [' ', 'x', '-', ' ']);
        assert!(tasks("").is_empty() && blocks("\n\n").is_empty());
        assert_eq!(tasks("- [ ] \u{e9}").len(), 1);
    }
}
