//! Splits a note into parts that tile its body, and joins small neighbouring sections into one chunk.

use std::ops::Range;

use super::Chunker;
use crate::note::{BlockKind, Note};

const LOWEST: u8 = 6;
/// Longer runs of parts are never small, even with few tokens. Otherwise empty parts would be summed again and again.
const MANY: usize = 64;

/// A block with the white space after it. Parts tile the body.
pub(super) struct Part {
    pub start: usize,
    pub kind: BlockKind,
    /// Its index in `Note::blocks`.
    pub block: usize,
    /// The index in `Note::headings` of the heading that it is under; a heading is under itself.
    pub section: Option<usize>,
    /// Whether it starts something that does not share a chunk with the part before it.
    pub alone: bool,
}

/// The blocks of a note as parts that tile its body; at least one.
pub(super) fn parts(note: &Note) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::with_capacity(note.blocks.len().max(1));
    let mut section = None;
    let mut next_heading = 0;
    if note.searched.start < note.body.start {
        // A frontmatter that is read as text is under no heading.
        let (start, kind, block) = (note.searched.start, BlockKind::Other, usize::MAX);
        parts.push(Part { start, kind, block, section: None, alone: false });
    }
    for (index, block) in note.blocks.iter().enumerate() {
        let kind = block.kind;
        if kind == BlockKind::Node {
            section = None;
        }
        if kind == BlockKind::Heading {
            while note.headings.get(next_heading).is_some_and(|h| h.span.start < block.span.start) {
                next_heading += 1;
            }
            if note.headings.get(next_heading).is_some_and(|h| h.span.start == block.span.start) {
                section = Some(next_heading);
            }
        }
        let start = if parts.is_empty() { note.searched.start } else { line_start(note, block.span.start) };
        parts.push(Part { start, kind, block: index, section, alone: kind == BlockKind::Node });
    }
    if parts.is_empty() {
        let kind = BlockKind::Other;
        parts.push(Part { start: note.searched.start, kind, block: usize::MAX, section: None, alone: false });
    }
    parts
}

/// The start of a line if only white space and quote marks are between it and `at`, else `at`.
pub(super) fn line_start(note: &Note, at: usize) -> usize {
    let before = &note.text.as_bytes()[note.searched.start..at];
    let marks = before.iter().rev().take_while(|b| matches!(b, b' ' | b'\t' | b'>')).count();
    let start = at - marks;
    if start == note.searched.start || matches!(note.text.as_bytes()[start - 1], b'\n' | b'\r') { start } else { at }
}

/// Runs of parts, in order, that cover all parts. Each becomes one chunk, or is cut if it is too long.
pub(super) fn plan(chunker: &Chunker) -> Vec<Range<usize>> {
    let mut plan = Plan { chunker, runs: Vec::new() };
    let mut start = 0;
    while start < chunker.parts.len() {
        let rest = &chunker.parts[start + 1..];
        let end = start + 1 + rest.iter().position(|part| part.alone).unwrap_or(rest.len());
        let first_heading = plan.next_heading(start, end, LOWEST);
        plan.with_subsections(start, first_heading, end);
        start = end;
    }
    plan.runs
}

struct Plan<'a> {
    chunker: &'a Chunker<'a>,
    runs: Vec<Range<usize>>,
}

impl Plan<'_> {
    /// Plans the section of the heading `at`, up to `end`, together with the small parts from `from` on that precede
    /// it.
    fn section(&mut self, from: usize, at: usize, end: usize) {
        let own_end = self.next_heading(at + 1, end, LOWEST);
        self.with_subsections(from, own_end, end);
    }

    /// Plans `from..end`: text up to `own_end`, then subsections. They are planned by [`Self::section`], which calls
    /// this function again with a deeper level, at most six deep.
    fn with_subsections(&mut self, from: usize, own_end: usize, end: usize) {
        if self.fits(from..end) {
            self.runs.push(from..end);
            return;
        }
        // Small parts are kept back, to be joined to the next part.
        let mut left = from;
        // Whether the last run belongs to this section, so that small parts at the end can join it.
        let mut open = false;
        if left < own_end && (own_end == end || !self.is_small(left..own_end)) {
            self.runs.push(left..own_end);
            (left, open) = (own_end, true);
        }
        let mut child = own_end;
        while child < end {
            let child_end = self.next_heading(child + 1, end, self.level(child));
            if self.fits(left..child_end) {
                if !self.is_small(left..child_end) {
                    self.runs.push(left..child_end);
                    (left, open) = (child_end, true);
                }
            } else if left < child && self.fits(child..child_end) && !self.is_only_headings(left..child) {
                self.close(left..child, open);
                (left, open) = (child, true);
                continue;
            } else {
                self.section(left, child, child_end);
                (left, open) = (child_end, false);
            }
            child = child_end;
        }
        if left < end {
            self.close(left..end, open);
        }
    }

    /// Joins small parts to the previous run if they fit.
    fn close(&mut self, small: Range<usize>, open: bool) {
        match self.runs.last().cloned() {
            Some(last) if open && self.fits(last.start..small.end) => {
                self.runs.pop();
                self.runs.push(last.start..small.end);
            }
            _ => self.runs.push(small),
        }
    }

    fn fits(&self, parts: Range<usize>) -> bool {
        let chunker = self.chunker;
        let (tokens, window) = (chunker.tokens(&parts), chunker.options.window());
        if tokens > window {
            return false;
        }
        let headings = chunker.headings(chunker.common_section(&parts));
        let text = chunker.note.slice(chunker.span(&(parts.start..parts.start + 1)));
        tokens + chunker.context_tokens(&headings, text) <= window
    }

    fn is_small(&self, parts: Range<usize>) -> bool {
        parts.len() < MANY
            && (self.chunker.tokens(&parts) < self.chunker.options.min_tokens || self.is_only_headings(parts))
    }

    fn is_only_headings(&self, parts: Range<usize>) -> bool {
        self.chunker.parts[parts].iter().all(|part| part.kind == BlockKind::Heading)
    }

    fn is_heading(&self, part: usize) -> bool {
        self.chunker.parts[part].kind == BlockKind::Heading && self.chunker.parts[part].section.is_some()
    }

    fn level(&self, part: usize) -> u8 {
        self.chunker.parts[part].section.map_or(LOWEST, |section| self.chunker.note.headings[section].level)
    }

    /// The next heading of this level or a higher one (a lower number), or `end`.
    fn next_heading(&self, from: usize, end: usize, level: u8) -> usize {
        (from..end).find(|&part| self.is_heading(part) && self.level(part) <= level).unwrap_or(end)
    }
}
