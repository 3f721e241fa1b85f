//! The places in a note where a link can be added: in its prose, around whole words, and at the end of its lines.

use std::ops::Range;

use super::mask::mask;
use super::opaque::opaque_spans;
use super::{BlockKind, Note, body, tag_spans};

/// The prose of a note.
pub struct Prose<'n> {
    note: &'n Note,
    /// The spans that are not prose, ordered by their starts; they may overlap.
    opaque: Vec<Range<usize>>,
}

impl<'n> Prose<'n> {
    /// Parses the body again. Links, code, formulas, HTML, comments, tags, and the template expressions of Templater
    /// and similar plugins (`<% … %>`, `{{ … }}`) are not prose.
    pub fn of(note: &'n Note) -> Self {
        let mut opaque = opaque_spans(note);
        let (start, text) = (note.body.start, &note.text[note.body.clone()]);
        let comments = mask(text, body::OPTIONS).comments.into_iter();
        opaque.extend(comments.map(|span| start + span.start..start + span.end));
        opaque.extend(tag_spans(&note.text));
        for (open, close) in [("<%", "%>"), ("{{", "}}")] {
            let mut from = 0;
            while let Some(at) = text[from..].find(open).map(|at| from + at) {
                let end = text[at..].find(close).map_or(text.len(), |length| at + length + close.len());
                opaque.push(start + at..start + end);
                from = end;
            }
        }
        opaque.sort_by_key(|span| span.start);
        Self { note, opaque }
    }

    /// Whether words are in prose and stand alone: not as part of a word, a path, an address, a tag, a block id, or a
    /// key of Dataview, and not in brackets.
    pub fn holds(&self, words: &Range<usize>) -> bool {
        let text = &self.note.text;
        let is_within = self.note.body.start <= words.start && words.end <= self.note.body.end;
        let is_opaque = |span: &Range<usize>| span.start < words.end && words.start < span.end;
        if !is_within || words.is_empty() || self.opaque.iter().any(is_opaque) {
            return false;
        }
        let (mut before, mut after) = (text[..words.start].chars().rev(), text[words.end..].chars());
        let (last, next) = (before.next(), after.next());
        let (first, end) = (text[words.clone()].chars().next(), text[words.clone()].chars().next_back());
        let joins = |c: char| matches!(c, '_' | '/' | '\\' | '@' | '#' | '^');
        let is_cut_before = last.zip(first).is_some_and(|(last, first)| {
            !is_boundary(last, first)
                || joins(last)
                || last == '['
                || matches!(last, '.' | '-' | ':') && before.next().is_some_and(char::is_alphanumeric)
        });
        let is_cut_after = end.zip(next).is_some_and(|(end, next)| {
            let then = after.next();
            !is_boundary(end, next)
                || joins(next)
                || next == ']'
                || next == ':' && then == Some(':')
                || matches!(next, '.' | '-') && then.is_some_and(char::is_alphanumeric)
        });
        !is_cut_before && !is_cut_after
    }

    /// The offset at which a link is added at the end of a line (from 1): before its block id. `None` if the line is
    /// not prose: a heading, a table, code, a comment, frontmatter, or an empty line.
    pub fn end_of_line(&self, line: u32) -> Option<usize> {
        let note = self.note;
        let mut start = 0;
        let content = note.text.split_inclusive('\n').find(|content| {
            let is_it = note.lines.line_at(start) == line && start >= note.body.start;
            start += if is_it { 0 } else { content.len() };
            is_it
        })?;
        let content = content.trim_end();
        let inner = content.trim_start_matches(['>', ' ', '\t']);
        let end_of_words = match content.rsplit_once(char::is_whitespace) {
            Some((rest, id)) if is_block_id(id) => rest.trim_end().len(),
            _ => content.len(),
        };
        let end = start + end_of_words;
        let block = note.blocks.iter().find(|block| block.span.start < end && end <= block.span.end)?;
        let is_prose = matches!(block.kind, BlockKind::Paragraph | BlockKind::List | BlockKind::Quote);
        // An opaque span that ends with the line would not be broken.
        let is_in_opaque = self.opaque.iter().any(|span| span.start < end && end < span.end);
        let is_code = inner.starts_with(['|', '#']) || inner.starts_with("```") || inner.starts_with("~~~");
        let can_be = is_prose && !inner.is_empty() && !is_code && !is_in_opaque && !content.ends_with('\\');
        can_be.then_some(end)
    }
}

fn is_block_id(word: &str) -> bool {
    word.strip_prefix('^')
        .is_some_and(|id| !id.is_empty() && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'))
}

/// Whether a word can end between two characters: not between letters or digits, except in scripts without spaces.
pub(crate) fn is_boundary(before: char, after: char) -> bool {
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    !(is_letter(before) && is_letter(after)) || [before, after].into_iter().any(has_no_spaces)
}

/// Scripts without spaces between words: Han, kana, Thai, Lao, Khmer, Myanmar. Hangul has spaces, but particles are
/// attached to its words.
fn has_no_spaces(c: char) -> bool {
    matches!(c, '\u{0E00}'..='\u{0EFF}' | '\u{1000}'..='\u{109F}' | '\u{1100}'..='\u{11FF}' | '\u{1780}'..='\u{17FF}'
        | '\u{3040}'..='\u{30FF}' | '\u{3400}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7A3}' | '\u{F900}'..='\u{FAFF}'
        | '\u{20000}'..='\u{3FFFF}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::note::{ParseOptions, parse};
    use crate::path::VaultPath;

    fn note(text: &str) -> Note {
        parse(&VaultPath::new("a.md").unwrap(), text.as_bytes(), &ParseOptions::default())
    }

    #[test]
    fn words_stand_by_themselves_in_prose() {
        for (text, expected) in [
            ("the soil here", true),
            ("(soil), **soil**", true),
            ("| soil | x |\n|---|---|\n| a | b |", true),
            ("最近soil太多", true),
            ("%% soil %% x", false),
            ("%%\nsoil\n%%", false),
            ("<% soil %> {{soil}}", false),
            ("<span>#soil-x</span> #soil", false),
            ("www.soil.org a/soil/b soil.md soil/x", false),
            ("[soil] (soil:: x) ^soil soil_x", false),
            ("date-soil soil-based topsoil", false),
            ("[[soil]] `soil` $soil$ <b soil>", false),
            ("---\na: soil\n---\nx", false),
        ] {
            let note = note(text);
            let prose = Prose::of(&note);
            let found = text.match_indices("soil").any(|(at, word)| prose.holds(&(at..at + word.len())));
            assert_eq!(found, expected, "{text:?}");
        }
    }

    #[test]
    fn links_are_added_at_the_end_of_lines_of_prose() {
        let text = "---\nt: x\n---\n# Head\n\nOne line\nand more ^id\n\n- item\n\n| a |\n|---|\n| b |\n\n```\ncode\n```\n\n%% no %%\n\nhard\\\nlast\n\n> quote\n";
        let note = note(text);
        let prose = Prose::of(&note);
        let ends: Vec<&str> = (1..=30)
            .filter_map(|line| prose.end_of_line(line))
            .map(|end| text[..end].rsplit('\n').next().unwrap())
            .collect();
        assert_eq!(ends, ["One line", "and more", "- item", "last", "> quote"]);
    }
}
