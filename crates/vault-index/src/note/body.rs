//! The one pass over a body of Markdown: headings, blocks, links, tags and block ids.

use std::collections::HashSet;
use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::field::fields;
use super::mask::{DOLLAR, HIDDEN, MaskedText, mask};
use super::property::Property;
use super::tag::Tags;
use super::wikilink::destination;
use super::{Block, BlockId, BlockKind, Heading, LineMap, Link, LinkKind};

/// The enabled Markdown extensions. Frontmatter is removed before; callouts are quotes.
pub(super) const OPTIONS: Options = Options::ENABLE_TABLES
    .union(Options::ENABLE_FOOTNOTES)
    .union(Options::ENABLE_STRIKETHROUGH)
    .union(Options::ENABLE_TASKLISTS)
    .union(Options::ENABLE_MATH)
    .union(Options::ENABLE_WIKILINKS);

/// The contents of one or more bodies. All offsets are into the whole text.
#[derive(Debug, Default)]
pub(super) struct BodyContents {
    pub(super) headings: Vec<Heading>,
    pub(super) blocks: Vec<Block>,
    pub(super) links: Vec<Link>,
    pub(super) unused_definitions: Vec<Link>,
    pub(super) tags: Tags,
    /// The spans of the tags, `#` included. A tag that is read twice occurs twice.
    pub(super) tag_spans: Vec<Range<usize>>,
    pub(super) block_ids: Vec<BlockId>,
    /// Inline fields, `key:: value`.
    pub(super) fields: Vec<(String, Property)>,
}

/// Reads `text[span]` as a separate document and adds its contents.
pub(super) fn read(text: &str, span: Range<usize>, lines: &LineMap, found: &mut BodyContents) {
    let MaskedText { text: shown, comments } = mask(&text[span.clone()], OPTIONS);
    let mut parser = BodyParser {
        text,
        shown: &shown,
        base: span.start,
        lines,
        blocks: Vec::new(),
        found,
        depth: 0,
        top: None,
        in_code: false,
        in_table: false,
        prose: None,
        tags_until: 0,
        items: Vec::new(),
        leaf: None,
        opaque: Vec::new(),
        open_links: Vec::new(),
        outline: Vec::new(),
        heading: None,
        formula: Formula::None,
        definition: None,
    };
    let within = |range: &Range<usize>| range.start + span.start..range.end + span.start;
    let mut events = Parser::new_ext(&shown, OPTIONS).into_offset_iter();
    while let Some((event, range)) = events.next() {
        parser.definition = match &event {
            // Only reference links, which have a label, have an id.
            Event::Start(Tag::Link { id, .. } | Tag::Image { id, .. }) if !id.is_empty() => {
                events.reference_definitions().get(id).map(|definition| within(&definition.span))
            }
            _ => None,
        };
        parser.event(event, within(&range));
    }
    let blocks = std::mem::take(&mut parser.blocks);
    let used: HashSet<usize> = found.links.iter().filter_map(|link| Some(link.definition.as_ref()?.start)).collect();
    for (_, definition) in events.reference_definitions().iter() {
        let span = within(&definition.span);
        if let Some(parts) = destination(&definition.dest).filter(|_| !used.contains(&span.start)) {
            let link = Link::new(LinkKind::Markdown, span.clone(), parts, text, lines);
            found.unused_definitions.push(Link { definition: Some(span), ..link });
        }
    }
    found.unused_definitions.sort_by_key(|link| link.span.start);
    // The parser's events inside a link that was read as plain text come after it, possibly twice.
    if !found.links.is_sorted_by_key(|link| link.span.start) {
        found.links.sort_by_key(|link| link.span.start);
    }
    found.links.dedup_by(|next, link| next.span == link.span);
    let comments: Vec<_> = comments.iter().map(|c| c.start + span.start..c.end + span.start).collect();
    let blocks = fill_gaps(text, span, blocks, &comments);
    let named = name_blocks(text, blocks, lines, &mut found.block_ids);
    found.blocks.extend(named);
}

/// A link whose text is being read.
pub(super) struct OpenLink {
    /// Its index in `found.links`, unless it leads out of the vault.
    pub(super) slot: Option<usize>,
    /// The span of its own text so far, if it shows that text.
    pub(super) shows: Option<Range<usize>>,
    /// The text that a heading shows for it if the parser has no text for it; `None` for an embedded file.
    pub(super) heading_text: Option<Range<usize>>,
    /// The length of the heading's text before it.
    pub(super) heading_len: usize,
    /// Whether its text may contain tags; only the text of a Markdown link may.
    pub(super) may_hold_tags: bool,
}

/// The state of the pass.
pub(super) struct BodyParser<'t> {
    /// The whole text, and the masked one of this body, which starts at `base` of it.
    pub(super) text: &'t str,
    pub(super) shown: &'t str,
    pub(super) base: usize,
    pub(super) lines: &'t LineMap,
    pub(super) found: &'t mut BodyContents,
    /// The blocks of this body.
    blocks: Vec<Block>,
    /// The number of open block elements; `top` is the outermost.
    depth: usize,
    top: Option<Block>,
    in_code: bool,
    in_table: bool,
    /// The text since the last event other than text: a range of `shown`.
    pub(super) prose: Option<Range<usize>>,
    /// The offset in `shown` where the last tag or bare URL ends; no other tag starts before it.
    pub(super) tags_until: usize,
    items: Vec<Item>,
    /// The current inline content: a paragraph, or an item's text.
    leaf: Option<Range<usize>>,
    /// The parts of it that are code, a formula, HTML or a link.
    opaque: Vec<Range<usize>>,
    pub(super) open_links: Vec<OpenLink>,
    /// Indices of the headings above the next one, levels ascending.
    outline: Vec<usize>,
    /// The text so far of the current heading.
    pub(super) heading: Option<String>,
    formula: Formula,
    /// The definition of the link that starts now.
    pub(super) definition: Option<Range<usize>>,
}

/// An open list item. Its id is at the end of its first text.
struct Item {
    span: Range<usize>,
    has_text: bool,
}

/// Whether the current paragraph consists of exactly one formula.
#[derive(PartialEq)]
enum Formula {
    None,
    Only,
    Mixed,
}

impl BodyParser<'_> {
    fn event(&mut self, event: Event<'_>, range: Range<usize>) {
        if !matches!(event, Event::Text(_)) {
            self.end_prose(matches!(event, Event::Start(_)));
        }
        match event {
            Event::Start(Tag::Link { link_type, dest_url, .. }) => {
                self.opaque.push(range.clone());
                self.open_link(link_type, &dest_url, range, false);
            }
            Event::Start(Tag::Image { link_type, dest_url, .. }) => {
                self.opaque.push(range.clone());
                self.open_link(link_type, &dest_url, range, true);
            }
            Event::Start(Tag::Emphasis | Tag::Strong | Tag::Strikethrough | Tag::Superscript | Tag::Subscript) => {
                self.inline(&range);
            }
            Event::Start(tag) => self.open_block(&tag, range),
            Event::End(TagEnd::Link | TagEnd::Image) => self.close_link(),
            Event::End(TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough) => {}
            Event::End(TagEnd::Superscript | TagEnd::Subscript) => {}
            Event::End(tag) => self.close_block(tag),
            Event::Text(text) if !self.in_code => {
                self.read_prose(&range);
                self.inline(&range);
                self.say(&text);
            }
            Event::Text(_) | Event::Html(_) => {}
            Event::Code(text) => {
                self.opaque.push(range.clone());
                self.inline(&range);
                self.say(&text);
            }
            Event::InlineMath(text) => {
                // A closing `$` before a digit is a price, not the end of a formula.
                if self.text[range.end..].starts_with(|c: char| c.is_ascii_digit()) {
                    self.plain(range.clone());
                }
                self.opaque.push(range.clone());
                self.inline(&range);
                self.say(&text);
            }
            Event::DisplayMath(text) => {
                let first = self.formula == Formula::None && self.leaf.is_none();
                let only = first || self.formula == Formula::Only;
                self.opaque.push(range.clone());
                self.inline(&range);
                self.formula = if only { Formula::Only } else { Formula::Mixed };
                self.say(&text);
            }
            Event::InlineHtml(_) => {
                self.opaque.push(range.clone());
                self.inline(&range);
            }
            Event::FootnoteReference(_) | Event::TaskListMarker(_) => self.inline(&range),
            Event::SoftBreak | Event::HardBreak => self.say(" "),
            Event::Rule => {
                self.end_leaf();
                if self.depth == 0 {
                    self.add_block(BlockKind::Other, range, Vec::new());
                }
            }
        }
    }

    /// Records that inline content was read.
    pub(super) fn inline(&mut self, range: &Range<usize>) {
        self.formula = if self.formula == Formula::None { Formula::None } else { Formula::Mixed };
        match &mut self.leaf {
            Some(leaf) => leaf.end = leaf.end.max(range.end),
            None => self.leaf = Some(range.clone()),
        }
        if let Some(OpenLink { shows: Some(shows), .. }) = self.open_links.last_mut() {
            shows.end = shows.end.max(range.end);
        }
    }

    /// Appends to the text of the current heading.
    fn say(&mut self, text: &str) {
        if let Some(heading) = &mut self.heading {
            heading.push_str(text);
        }
    }

    fn open_block(&mut self, tag: &Tag<'_>, range: Range<usize>) {
        self.end_leaf();
        if self.depth == 0 {
            let kind = match tag {
                Tag::Heading { .. } => BlockKind::Heading,
                Tag::Paragraph => BlockKind::Paragraph,
                Tag::List(_) => BlockKind::List,
                Tag::CodeBlock(_) => BlockKind::Code,
                Tag::Table(_) => BlockKind::Table,
                Tag::BlockQuote(_) => BlockKind::Quote,
                _ => BlockKind::Other,
            };
            if let Tag::Heading { level, .. } = tag {
                self.open_heading(*level as u8, trimmed(self.text, range.clone()));
            }
            self.formula = Formula::None;
            self.top = Some(Block { kind, span: range.clone(), seams: Vec::new(), id: None });
        }
        self.depth += 1;
        match tag {
            Tag::Item => {
                self.seam(range.start);
                self.items.push(Item { span: range, has_text: false });
            }
            Tag::TableRow => self.seam(range.start),
            Tag::Paragraph if self.top.as_ref().is_some_and(|top| top.kind == BlockKind::Quote) => {
                self.seam(range.start);
            }
            Tag::Table(_) => self.in_table = true,
            Tag::CodeBlock(_) => self.in_code = true,
            _ => {}
        }
    }

    fn close_block(&mut self, tag: TagEnd) {
        self.end_leaf();
        match tag {
            TagEnd::Item => {
                self.items.pop();
            }
            TagEnd::Table => self.in_table = false,
            TagEnd::CodeBlock => self.in_code = false,
            _ => {}
        }
        self.depth = self.depth.saturating_sub(1);
        if self.depth > 0 {
            return;
        }
        if let Some(text) = self.heading.take()
            && let Some(heading) = self.found.headings.last_mut()
        {
            heading.text = unmasked(text);
        }
        if let Some(mut top) = self.top.take() {
            if top.kind == BlockKind::Paragraph && self.formula == Formula::Only {
                top.kind = BlockKind::Math;
            }
            if top.kind == BlockKind::Quote || top.kind == BlockKind::Other {
                self.unname_last_paragraph(&top);
            }
            self.add_block(top.kind, top.span, top.seams);
        }
    }

    fn open_heading(&mut self, level: u8, span: Range<usize>) {
        let headings = &mut self.found.headings;
        while self.outline.last().is_some_and(|&above| headings[above].level >= level) {
            self.outline.pop();
        }
        let parent = self.outline.last().copied();
        self.outline.push(headings.len());
        let line = self.lines.line_at(span.start);
        headings.push(Heading { level, text: String::new(), line, span, parent });
        self.heading = Some(String::new());
    }

    /// Adds a place to cut: the start of the line of `at`, if it is inside the block.
    fn seam(&mut self, at: usize) {
        let Some(top) = &mut self.top else { return };
        // For the parser, an item that is indented with a tab starts with the preceding line break.
        let at = at + self.text[at..].bytes().take_while(|b| matches!(b, b'\n' | b'\r')).count();
        let within = &self.text.as_bytes()[top.span.start..at];
        let Some(break_at) = within.iter().rposition(|b| matches!(b, b'\n' | b'\r')) else { return };
        let line = top.span.start + break_at + 1;
        if top.seams.last().is_none_or(|&last| last < line) {
            top.seams.push(line);
        }
    }

    /// Ends the current inline content; a `^id` at its end names the item or paragraph.
    fn end_leaf(&mut self) {
        let opaque = std::mem::take(&mut self.opaque);
        let Some(leaf) = self.leaf.take() else { return };
        self.fields_in(leaf.clone(), &opaque);
        if self.in_table || self.heading.is_some() {
            return;
        }
        let leaf = trimmed(self.text, leaf);
        let id = trailing_id(&self.text[leaf.clone()]);
        let item = self.items.last_mut().filter(|item| !item.has_text);
        let span = match item {
            Some(item) => {
                item.has_text = true;
                item.span.clone()
            }
            // A top-level paragraph is named with its block.
            None if self.depth <= 1 => return,
            None => leaf,
        };
        if let Some(id) = id {
            let span = trimmed(self.text, span);
            let line = self.lines.line_at(span.start);
            self.found.block_ids.push(BlockId { id: id.to_ascii_lowercase(), span, line });
        }
    }

    /// Adds the inline fields of the lines of some inline content.
    fn fields_in(&mut self, leaf: Range<usize>, opaque: &[Range<usize>]) {
        let shown = &self.shown[leaf.start - self.base..leaf.end - self.base];
        if !shown.contains("::") {
            return;
        }
        let may_be_one = !self.in_table && self.heading.is_none();
        let mut start = leaf.start;
        for whole in shown.split_inclusive(['\n', '\r']) {
            let line = whole.trim_start_matches([' ', '\t', '>']);
            let line = ["[ ] ", "[x] ", "[X] "].iter().find_map(|mark| line.strip_prefix(mark)).unwrap_or(line);
            let at = start + (whole.len() - line.len());
            start += whole.len();
            let line = line.trim_end();
            let line = trailing_id(line).map_or(line, |id| line[..line.len() - id.len() - 1].trim_end());
            let is_text = |colons: usize| !opaque.iter().any(|span| span.contains(&(at + colons)));
            fields(line, may_be_one, &is_text, &mut |key, value| {
                let value = Property::from_text(unmasked(value.to_owned()));
                self.found.fields.push((key.to_owned(), value));
            });
        }
    }

    /// Removes the id from the last paragraph of a quote, because it belongs to the quote.
    fn unname_last_paragraph(&mut self, top: &Block) {
        let end = trimmed(self.text, top.span.clone()).end;
        let inner = self.found.block_ids.last();
        if inner.is_some_and(|inner| inner.span.start >= top.span.start && inner.span.end == end) {
            self.found.block_ids.pop();
        }
    }

    fn add_block(&mut self, kind: BlockKind, span: Range<usize>, mut seams: Vec<usize>) {
        let from = self.blocks.last().map_or(self.base, |last| last.span.end);
        let mut span = trimmed(self.text, span.start.max(from)..span.end.max(from));
        if span.is_empty() {
            return;
        }
        if kind == BlockKind::Code {
            // The first line's indentation is part of the code.
            let indent = self.text.as_bytes()[from..span.start].iter().rev();
            span.start -= indent.take_while(|b| matches!(b, b' ' | b'\t')).count();
        }
        let masked = || self.shown.as_bytes()[span.start - self.base..span.end - self.base].iter();
        let hidden = kind == BlockKind::Paragraph && masked().all(|&b| b == HIDDEN || b.is_ascii_whitespace());
        seams.retain(|&seam| seam > span.start && seam < span.end);
        let kind = if hidden { BlockKind::Comment } else { kind };
        self.blocks.push(Block { kind, span, seams, id: None });
    }
}

/// The heading's text on one line, with the masked characters restored.
fn unmasked(text: String) -> String {
    let trimmed = text.trim();
    if trimmed.bytes().any(|b| matches!(b, HIDDEN | DOLLAR | b'\n' | b'\r')) {
        let kept = trimmed.chars().filter(|&c| c != char::from(HIDDEN));
        let kept: String = kept
            .map(|c| match c {
                '\n' | '\r' => ' ',
                c if c == char::from(DOLLAR) => '$',
                c => c,
            })
            .collect();
        return kept.trim().to_owned();
    }
    if trimmed.len() == text.len() { text } else { trimmed.to_owned() }
}

/// Adds the blocks for which the parser has no events: comments alone on their lines, and reference definitions.
/// Afterwards only white space is left between blocks.
fn fill_gaps(text: &str, body: Range<usize>, blocks: Vec<Block>, comments: &[Range<usize>]) -> Vec<Block> {
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

/// Assigns ids to blocks. An id alone in a paragraph names the previous block and joins it.
fn name_blocks(text: &str, blocks: Vec<Block>, lines: &LineMap, ids: &mut Vec<BlockId>) -> Vec<Block> {
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

/// The id of `… ^id` at the end of a block: white space, a caret, then letters, digits and dashes.
fn trailing_id(block: &str) -> Option<&str> {
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
