//! A note as a value: the contents of one file, read in one pass that cannot fail.

mod line_map;
mod tag;
mod wikilink;
mod property;
mod mask;
mod marks;
mod field;
mod body;
mod inline;
mod frontmatter;
mod canvas;
mod parse;
mod opaque;
mod prose;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod invariant_tests;

use std::ops::Range;

use serde::{Deserialize, Serialize};

pub use frontmatter::{frontmatter_properties, frontmatter_span, property_key};
pub use line_map::LineMap;
pub(crate) use opaque::{code_blocks, opaque_spans};
pub use parse::{PARSER_VERSION, ParseOptions, parse, tag_spans};
pub use property::{Properties, Property};
pub use prose::Prose;
pub(crate) use prose::is_boundary;
pub use tag::{Tag, TagKey, is_inline_tag};
pub(crate) use wikilink::tidy;
pub use wikilink::{LinkText, split_link};

use crate::error::Warning;

/// A parsed note. All spans are byte ranges of [`Note::text`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Note {
    /// The text that all spans index. For Markdown: the decoded file (invalid UTF-8 as U+FFFD, a byte order mark kept).
    /// For a canvas: its text nodes in file order, then the labels of its groups and edges and the addresses of its
    /// links, separated by blank lines.
    pub text: String,
    /// The line of the file for each byte of `text`.
    pub lines: LineMap,
    /// The title of the note, and its source.
    pub title: Title,
    /// Other names, from the frontmatter, in order, without duplicates.
    pub aliases: Vec<String>,
    /// Tags of the frontmatter, then of the body, each once, with the first spelling.
    pub tags: Vec<Tag>,
    /// All typed properties of the frontmatter; if it is not valid YAML, those that can be read line by line. Tags,
    /// aliases and classes are lists, under `tags`, `aliases` and `cssclasses`.
    pub properties: Properties,
    /// Inline fields of the body, `key:: value`, as Dataview reads them: in order, with repeated keys.
    pub fields: Properties,
    /// The frontmatter with its fences, if the file begins with one (broken or not).
    pub frontmatter: Option<Range<usize>>,
    /// The rest of the text. Together with `frontmatter` (and a byte order mark) it covers `text`.
    pub body: Range<usize>,
    /// The text for chunks: the body, preceded by the lines of a frontmatter that is not valid YAML, because readers
    /// see it as text.
    pub searched: Range<usize>,
    /// Headings in order.
    pub headings: Vec<Heading>,
    /// Top-level blocks of the body in order. They do not overlap, and only white space is between them.
    pub blocks: Vec<Block>,
    /// The possible targets of `[[note#^id]]`, in order of the spans, the outer before the inner.
    pub block_ids: Vec<BlockId>,
    /// Links and embeds in order of their spans; those of the frontmatter first.
    pub links: Vec<Link>,
    /// The link reference definitions, `[label]: path`, with a label that none of `links` uses, in order. Foam writes
    /// them for wikilinks, because programs without wikilinks read `[[label]]` as a link by a label.
    pub unused_definitions: Vec<Link>,
    /// Words of the body (runs of letters and digits; each CJK character counts as one).
    pub words: usize,
    /// Warnings.
    pub warnings: Vec<Warning>,
}

/// A note's title and its source.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Title {
    /// The title, one line, trimmed, never empty.
    pub text: String,
    /// Where it was found.
    pub source: TitleSource,
}

/// The source of a title: the first of these that exists.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TitleSource {
    /// Frontmatter `title`.
    Frontmatter,
    /// The first heading, if it is of level 1.
    Heading,
    /// The file's name, without its extension.
    #[default]
    FileName,
}

/// A heading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heading {
    /// 1 to 6.
    pub level: u8,
    /// Its text without markup.
    pub text: String,
    /// Its line, from 1.
    pub line: u32,
    /// From its first `#` (or, for setext, its text) to the end of its last line.
    pub span: Range<usize>,
    /// The index of its parent heading, if any: the nearest one before it with a lower level.
    pub parent: Option<usize>,
}

/// A top-level block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The kind of the block.
    pub kind: BlockKind,
    /// Its bytes, fences and markers included.
    pub span: Range<usize>,
    /// Offsets where it may be cut if it is too long by itself: the start of the line of each list item (including
    /// nested ones), table row or, in a quote or callout, paragraph. In a canvas node, also the start of each of its
    /// blocks. Ascending, inside `span`, never at its start.
    pub seams: Vec<usize>,
    /// The `^id` at its end, lower-cased, without the caret. The ids of list items are in `Note::block_ids`.
    pub id: Option<String>,
}

/// A `^id` and its target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockId {
    /// The id, lower-cased, without the caret.
    pub id: String,
    /// The block, list item (with its nested content) or paragraph that it names, including the id itself.
    pub span: Range<usize>,
    /// The line of the span's start, from 1.
    pub line: u32,
}

/// Kinds of [`Block`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockKind {
    /// A heading; the same as an entry of `Note::headings`.
    Heading,
    /// A paragraph.
    Paragraph,
    /// A list with all its items.
    List,
    /// A fenced or indented code block.
    Code,
    /// A table.
    Table,
    /// A block quote or callout.
    Quote,
    /// A math block.
    Math,
    /// A `%% comment %%` that stands alone.
    Comment,
    /// Raw HTML, a rule, a footnote definition, a reference definition, or anything else.
    Other,
    /// A text node of a canvas, whatever its content, so that nodes do not share chunks. One more node has the labels
    /// of its groups and edges and the addresses of its links, one per line.
    Node,
}

/// A link or embed, as written. [`crate::links`] resolves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The syntax of the link.
    pub kind: LinkKind,
    /// Its line in the file, from 1.
    pub line: u32,
    /// The whole link: `[[…]]`, `![[…]]`, `[…](…)`. For a file node of a canvas: empty, at the end of the text.
    pub span: Range<usize>,
    /// The characters of `span` (for a file node: the path as in the JSON).
    pub raw: String,
    /// The path part, decoded (percent-decoding, `\|`), trimmed, without subpath. Empty: the note itself.
    pub path: String,
    /// The text after the first `#`, decoded.
    pub subpath: Option<String>,
    /// The display text, if any.
    pub display: Option<String>,
    /// For a link by a label, `[…][label]`, `[label][]` or `[label]`: the span of the definition that applies.
    pub definition: Option<Range<usize>>,
}

/// The syntax of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkKind {
    /// `[[path#subpath|display]]`, in the body or quoted in the frontmatter.
    Wikilink,
    /// `[display](path)`, reference links included.
    Markdown,
    /// `![[…]]` or `![…](…)`, or a file node of a canvas.
    Embed,
}

impl Link {
    /// Whether it is a Markdown link, `[shown](path)` or `![shown](path)`; false for wikilinks and files of canvases.
    pub fn has_destination(&self) -> bool {
        match self.kind {
            LinkKind::Wikilink => false,
            LinkKind::Markdown => true,
            LinkKind::Embed => self.raw.starts_with("![") && !self.raw.starts_with("![["),
        }
    }

    fn new(kind: LinkKind, span: Range<usize>, parts: LinkText, text: &str, lines: &LineMap) -> Self {
        Self {
            kind,
            line: lines.line_at(span.start),
            raw: text[span.clone()].to_owned(),
            span,
            path: parts.path,
            subpath: parts.subpath,
            display: parts.display,
            definition: None,
        }
    }
}

impl Note {
    /// The text of a byte range.
    pub fn slice(&self, span: Range<usize>) -> &str {
        &self.text[span]
    }

    /// The text of heading `index` as written, with its markup, but without `#` or underline. `[[note#heading]]` is
    /// compared with it.
    pub fn heading_source(&self, index: usize) -> &str {
        let source = self.text[self.headings[index].span.clone()].trim();
        let Some(after) = source.strip_prefix('#') else {
            // Setext: without the line of `=` or `-`.
            return source.rfind(['\n', '\r']).map_or(source, |end| source[..end].trim_end());
        };
        let text = after.trim_start_matches('#').trim();
        let open = text.trim_end_matches('#');
        // Closing hashes count only after white space.
        if open.is_empty() || open.ends_with([' ', '\t']) { open.trim_end() } else { text }
    }

    /// The headings above heading `index`, outermost first, followed by itself.
    pub fn heading_path(&self, index: usize) -> Vec<&str> {
        let mut path = Vec::new();
        let mut at = Some(index);
        while let Some(i) = at {
            path.push(self.headings[i].text.as_str());
            at = self.headings[i].parent;
        }
        path.reverse();
        path
    }
}
