//! From what the parser delivers to blocks that cover the body: gaps filled, ids given.

use std::ops::Range;

use super::{Block, BlockId, BlockKind, LineMap};

/// Adds the blocks that the parser makes no event for: comments alone on their lines, and
/// reference definitions. Only white space is left between blocks.
pub(super) fn fill_gaps(text: &str, body: Range<usize>, blocks: Vec<Block>, comments: &[Range<usize>]) -> Vec<Block> {
    let mut filled = Vec::with_capacity(blocks.len() + comments.len());
    let add = |blocks: &mut Vec<Block>, kind, gap: Range<usize>| {
        let span = trimmed(text, gap);
        if !span.is_empty() {
            blocks.push(Block { kind, span, seams: Vec::new(), id: None });
        }
    };
    let mut comments = comments.iter().peekable();
    let mut at = body.start;
    for block in blocks.into_iter().map(Some).chain([None]) {
        let end = block.as_ref().map_or(body.end, |block| block.span.start);
        while let Some(comment) = comments.next_if(|comment| comment.start < end) {
            if comment.start >= at && comment.end <= end {
                add(&mut filled, BlockKind::Other, at..comment.start);
                add(&mut filled, BlockKind::Comment, comment.clone());
                at = comment.end;
            }
        }
        add(&mut filled, BlockKind::Other, at..end);
        if let Some(block) = block {
            at = block.span.end;
            filled.push(block);
        }
    }
    filled
}

/// Gives blocks their ids. An id alone in a paragraph names the block before it and joins it.
pub(super) fn name(text: &str, blocks: Vec<Block>, lines: &LineMap, ids: &mut Vec<BlockId>) -> Vec<Block> {
    let mut named: Vec<Block> = Vec::with_capacity(blocks.len());
    for mut block in blocks {
        let id = match block.kind {
            BlockKind::List | BlockKind::Code | BlockKind::Comment | BlockKind::Node => None,
            _ => trailing_id(&text[block.span.clone()]),
        };
        if let Some(id) = id {
            let alone = block.kind == BlockKind::Paragraph && id.len() + 1 == block.span.len();
            if alone && let Some(previous) = named.last_mut().filter(|previous| takes_id(previous)) {
                previous.span.end = block.span.end;
                previous.id = Some(id.to_ascii_lowercase());
                continue;
            }
            block.id = Some(id.to_ascii_lowercase());
        }
        named.push(block);
    }
    for block in &named {
        if let Some(id) = &block.id {
            let line = lines.line_at(block.span.start);
            ids.push(BlockId { id: id.clone(), span: block.span.clone(), line });
        }
    }
    ids.sort_by_key(|id| (id.span.start, std::cmp::Reverse(id.span.end)));
    named
}

fn takes_id(block: &Block) -> bool {
    block.id.is_none() && !matches!(block.kind, BlockKind::Heading | BlockKind::Comment)
}

/// The id of `… ^id` at the end of a block: letters, digits and dashes after a caret after white space.
pub(super) fn trailing_id(block: &str) -> Option<&str> {
    let bytes = block.as_bytes();
    let length = bytes.iter().rev().take_while(|b| b.is_ascii_alphanumeric() || **b == b'-').count();
    let (rest, id) = block.split_at(block.len() - length);
    let before = rest.strip_suffix('^')?;
    (length > 0 && (before.is_empty() || before.ends_with(char::is_whitespace))).then_some(id)
}

/// A span without the ASCII white space at its ends.
pub(super) fn trimmed(text: &str, span: Range<usize>) -> Range<usize> {
    let part = &text[span.clone()];
    let start = span.start + (part.len() - part.trim_ascii_start().len());
    start..start.max(span.start + part.trim_ascii_end().len())
}

#[cfg(test)]
mod tests {
    #[test]
    fn ids_stand_at_the_end() {
        for (block, expected) in [
            ("text ^id", Some("id")),
            ("text\n^a-1", Some("a-1")),
            ("^alone", Some("alone")),
            ("x^2", None),
            ("text ^", None),
            ("text ^a_b", None),
            ("[^1]", None),
            ("text ^id.", None),
            ("é ^é", None),
            ("", None),
        ] {
            assert_eq!(super::trailing_id(block), expected, "{block:?}");
        }
    }
}
