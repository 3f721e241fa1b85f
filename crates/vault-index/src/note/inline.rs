//! Links and tags inside a block: those that the Markdown parser reports, and those that it does not.

use std::ops::Range;

use pulldown_cmark::{Event, LinkType, Parser, Tag};

use super::body::{BodyParser, OpenLink};
use super::marks::{Marks, bare_url, plain_start};
use super::tag::inline_tag;
use super::wikilink::{LinkText, destination, split_link};
use super::{Link, LinkKind};

impl BodyParser<'_> {
    pub(super) fn open_link(&mut self, link_type: LinkType, dest: &str, range: Range<usize>, image: bool) {
        // An embed before `(…)`, which Markdown reads as an image with its text in brackets.
        let marks = self.text[range.clone()].starts_with("![[");
        let wiki = matches!(link_type, LinkType::WikiLink { .. });
        self.inline(&range);
        let mut open = OpenLink {
            slot: None,
            shows: None,
            heading_text: None,
            heading_len: self.heading.as_ref().map_or(0, String::len),
            may_hold_tags: !(image || wiki || matches!(link_type, LinkType::Autolink | LinkType::Email)),
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

    /// The wikilink that a range starts with, and its displayed text. `None` if it is not a wikilink: it spans several
    /// lines, contains another one, or is empty.
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

    /// The link around an embed, `[![[pic.png]]](note.md)`: Obsidian reads it as a link, Markdown does not.
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

    /// Reads links and tags from text that the parser read as something else.
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
        let end = range.end - self.base;
        self.tags_in(range.start - self.base..end, end);
    }

    /// Adds a piece of text. An escaped character comes without its backslash.
    pub(super) fn read_prose(&mut self, range: &Range<usize>) {
        let (start, end) = (range.start - self.base, range.end - self.base);
        let escaped = usize::from(self.shown[..start].ends_with('\\'));
        self.prose = Some(self.prose.take().map_or(start - escaped, |prose| prose.start)..end);
    }

    /// Adds the tags of the text that ends here. The last tag may continue in the next element: `#_draft_`.
    pub(super) fn end_prose(&mut self, runs_on: bool) {
        if let Some(prose) = self.prose.take() {
            let limit = if runs_on { self.shown.len() } else { prose.end };
            self.tags_in(prose, limit);
        }
    }

    /// Adds the tags of a text between markup, which is a range of `shown`. A tag follows markup, white space or a tag,
    /// and ends at `limit` at the latest.
    fn tags_in(&mut self, range: Range<usize>, limit: usize) {
        let shown = &self.shown[..limit];
        let mut at = range.start.max(self.tags_until);
        let may_hold_any = self.open_links.iter().all(|link| link.may_hold_tags);
        if !may_hold_any || at >= range.end {
            return;
        }
        // No tag and no URL begins after the last of these, so the rest is not looked at.
        let text = &shown[at..range.end];
        let last_of = |byte: u8| memchr::memrchr(byte, text.as_bytes());
        let scheme = last_of(b':').and_then(|colon| text[..colon].rfind("http"));
        let Some(last) = last_of(b'#').max(scheme).map(|last| at + last) else { return };
        let mut marks = Marks::default();
        let mut may_begin = true;
        while at <= last {
            let (text, text_to_limit) = (&shown[at..range.end], &shown[at..]);
            if may_begin && let Some(tag) = text_to_limit.strip_prefix('#').and_then(inline_tag) {
                at = self.add_tag(at, tag);
            } else if let Some(length) = bare_url(text_to_limit) {
                at += length;
                self.tags_until = at;
                may_begin = false;
            } else if let Some((inside, length)) = marks.at_start_of(text) {
                self.tags_in(at + inside.start..at + inside.end, at + inside.end);
                at += length;
                may_begin = true;
            } else {
                let plain = plain_start(text);
                at += plain.len();
                may_begin = plain.ends_with(char::is_whitespace);
            }
        }
    }

    /// Adds the tag whose `#` is at `at`, and returns its end, including trailing slashes that do not belong to it.
    fn add_tag(&mut self, at: usize, tag: &str) -> usize {
        let end = at + 1 + tag.len();
        self.found.tags.add(tag);
        self.found.tag_spans.push(at + self.base..end + self.base);
        let slashes = self.shown[end..].bytes().take_while(|&byte| byte == b'/').count();
        self.tags_until = end + slashes;
        self.tags_until
    }
}
