//! Links and tags inside a block, as the Markdown parser delivers them and where it does not.

use std::ops::Range;

use pulldown_cmark::{Event, LinkType, Parser, Tag};

use super::body::{BodyParser, OpenLink};
use super::tag::inline_tag;
use super::wikilink::{LinkText, destination, split_link};
use super::{Link, LinkKind};

impl BodyParser<'_> {
    pub(super) fn open_link(&mut self, link_type: LinkType, dest: &str, range: Range<usize>, image: bool) {
        // An embed before `(…)`, which Markdown takes for an image whose text is in brackets.
        let marks = self.text[range.clone()].starts_with("![[");
        let wiki = matches!(link_type, LinkType::WikiLink { .. });
        self.inline(&range);
        let mut open = OpenLink {
            slot: None,
            shows: None,
            heading_text: None,
            heading_len: self.heading.as_ref().map_or(0, String::len),
        };
        let wikilink = if wiki || marks { self.wikilink(range.clone()) } else { None };
        if let Some((link, shown)) = wikilink {
            open.slot = Some(self.found.links.len());
            open.heading_text = (!image).then_some(shown);
            self.push_wikilink(link);
        } else if wiki || matches!(link_type, LinkType::Autolink | LinkType::Email) {
            if wiki {
                self.plain(range.clone());
            }
            open.heading_text = Some(range.start..range.start);
        } else {
            let start = range.start + if image { 2 } else { 1 };
            open.shows = Some(start..start);
            open.heading_text = Some(start..start);
            if let Some(parts) = destination(dest) {
                let kind = if image { LinkKind::Embed } else { LinkKind::Markdown };
                open.slot = Some(self.found.links.len());
                let definition = self.definition.take();
                self.found.links.push(Link { definition, ..self.link(kind, range, parts) });
            }
        }
        self.open_links.push(open);
    }

    pub(super) fn close_link(&mut self) {
        let Some(open) = self.open_links.pop() else { return };
        if let (Some(slot), Some(shows)) = (open.slot, open.shows) {
            let shown = self.text[shows].trim();
            if !shown.is_empty() {
                self.found.links[slot].display = Some(shown.to_owned());
            }
        }
        if let Some(heading) = &mut self.heading {
            match open.heading_text {
                None => heading.truncate(open.heading_len),
                Some(shown) if heading.len() == open.heading_len => heading.push_str(self.text[shown].trim()),
                Some(_) => {}
            }
        }
    }

    /// The wikilink that a range starts with, and what it shows; `None` if it is none: over more
    /// than one line, with another one inside, or empty.
    fn wikilink(&self, range: Range<usize>) -> Option<(Link, Range<usize>)> {
        let raw = &self.text[range.clone()];
        let open = if raw.starts_with('!') { 3 } else { 2 };
        let length = raw.get(open..)?.find("]]")?;
        let inner = &raw[open..open + length];
        if inner.contains(['\n', '\r']) || inner.contains("[[") {
            return None;
        }
        let parts = split_link(inner);
        if parts.is_empty() {
            return None;
        }
        let kind = if open == 3 { LinkKind::Embed } else { LinkKind::Wikilink };
        let inside = range.start + open..range.start + open + length;
        let shown = match inner.rfind('|') {
            Some(at) if parts.display.is_some() => inside.start + at + 1..inside.end,
            _ => inside.start..inside.start + inner.find('|').unwrap_or(length),
        };
        Some((self.link(kind, range.start..inside.end + 2, parts), shown))
    }

    fn link(&self, kind: LinkKind, span: Range<usize>, parts: LinkText) -> Link {
        Link::new(kind, span, parts, self.text, self.lines)
    }

    fn push_wikilink(&mut self, link: Link) {
        let (kind, span) = (link.kind, link.span.clone());
        self.found.links.push(link);
        if kind == LinkKind::Embed {
            self.link_around(&span);
        }
    }

    /// The link around an embed, `[![[pic.png]]](note.md)`: Obsidian reads it as one, Markdown does not.
    fn link_around(&mut self, embed: &Range<usize>) {
        let (before, after) = (&self.text[..embed.start], &self.text[embed.end..]);
        let is_open = before.ends_with('[') && !before.ends_with("\\[");
        if !is_open || !after.starts_with("](") {
            return;
        }
        let line = after[1..].split(['\n', '\r']).next().unwrap_or_default();
        let alone = format!("[x]{line}");
        let mut events = Parser::new(&alone).into_offset_iter().skip(1);
        let Some((Event::Start(Tag::Link { link_type: LinkType::Inline, dest_url, .. }), range)) = events.next() else {
            return;
        };
        if let Some(parts) = destination(&dest_url) {
            let span = embed.start - 1..embed.end + 1 + range.end - "[x]".len();
            let mut link = self.link(LinkKind::Markdown, span, parts);
            link.display = Some(self.text[embed.clone()].to_owned());
            self.found.links.push(link);
        }
    }

    /// Reads links and tags from text that the parser took for something else.
    pub(super) fn plain(&mut self, range: Range<usize>) {
        let mut at = range.start;
        while let Some(close) = self.text[at..range.end].find("]]") {
            let end = at + close + 2;
            let before = &self.text[at..end];
            let Some(open) = before.rfind("[[") else {
                at = end;
                continue;
            };
            let start = at + open - usize::from(before[..open].ends_with('!'));
            if let Some((link, _)) = self.wikilink(start..end) {
                self.push_wikilink(link);
            }
            at = end;
        }
        self.tags_in(range);
    }

    /// Adds the tags of a piece of plain text. A tag may run on beyond it: `#snake_case` comes in pieces.
    pub(super) fn tags_in(&mut self, range: Range<usize>) {
        if !self.open_links.is_empty() {
            return;
        }
        let shown = self.shown.as_bytes();
        let (start, end) = (range.start - self.base, range.end - self.base);
        for at in start..end {
            if shown[at] != b'#' {
                continue;
            }
            let follows = if at == start && self.line_start {
                // An escaped `#` starts a text, but after its backslash.
                shown[..at].last() != Some(&b'\\')
            } else {
                self.shown[..at].ends_with(char::is_whitespace)
            };
            if follows && let Some(tag) = inline_tag(&self.shown[at + 1..]) {
                self.found.tags.add(tag);
                let start = at + self.base;
                self.found.tag_spans.push(start..start + 1 + tag.len());
            }
        }
    }
}
