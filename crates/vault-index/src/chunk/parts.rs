//! The blocks of a note as parts that tile its body: what sections and pieces are made of.

use crate::note::{BlockKind, Note};

/// A block with the white space after it. Parts tile the body.
pub(super) struct Part {
    pub start: usize,
    pub kind: BlockKind,
    /// Its index in `Note::blocks`.
    pub block: usize,
    /// The heading it is under (a heading: itself), as an index into `Note::headings`.
    pub section: Option<usize>,
    /// Starts something that shares no chunk with what is before it.
    pub alone: bool,
}

/// The blocks of a note as parts that tile its body; never none.
pub(super) fn parts(note: &Note) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::with_capacity(note.blocks.len().max(1));
    let mut section = None;
    let mut next_heading = 0;
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
        let start = if parts.is_empty() { note.body.start } else { line_start(note, block.span.start) };
        parts.push(Part { start, kind, block: index, section, alone: kind == BlockKind::Node });
    }
    if parts.is_empty() {
        let kind = BlockKind::Other;
        parts.push(Part { start: note.body.start, kind, block: usize::MAX, section: None, alone: false });
    }
    parts
}

/// The start of a line if only white space and quote marks stand between it and `at`, else `at`.
pub(super) fn line_start(note: &Note, at: usize) -> usize {
    let before = &note.text.as_bytes()[note.body.start..at];
    let marks = before.iter().rev().take_while(|b| matches!(b, b' ' | b'\t' | b'>')).count();
    let start = at - marks;
    if start == note.body.start || matches!(note.text.as_bytes()[start - 1], b'\n' | b'\r') { start } else { at }
}
