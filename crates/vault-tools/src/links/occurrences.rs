//! Finds the position of each link's path in the text of a note or canvas, so that only the path can be rewritten; in a
//! canvas, this is a position within the characters of its JSON.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use serde::Deserialize;
use serde_json::value::RawValue;
use vault_index::links::link_key;
use vault_index::note::{LineMap, Link, ParseOptions, parse};
use vault_index::{FileKind, VaultPath};

use crate::edit::TextEdit;
use crate::sandbox::SafePath;

/// A text with links in it: a whole note, or a text within the JSON of a canvas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fragment {
    pub text: String,
    /// Its position in the file as a JSON string, including quotes; `None` for a whole note.
    pub json: Option<Range<usize>>,
    pub links: Vec<LinkOccurrence>,
}

/// A link in a fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LinkOccurrence {
    /// The line in the file, from 1.
    pub line: u32,
    /// The whole link as written.
    pub raw: String,
    /// Its path, decoded.
    pub path: String,
    /// The decoded text after `#`; that of a file in a canvas is omitted.
    pub subpath: Option<String>,
    /// The position and encoding of its path; `None` if they are unknown.
    pub location: Option<LinkLocation>,
}

/// The position of the path of a link in its fragment, and its encoding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LinkLocation {
    pub span: Range<usize>,
    pub encoding: LinkEncoding,
}

/// The encoding of the path of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkEncoding {
    /// Between `[[` and `]]`, unencoded.
    Wikilink,
    /// The same in a quoted text of the frontmatter, with the quote character.
    Quoted(char),
    /// `(…)`, percent-encoded.
    Destination,
    /// `(<…>)`, in which spaces are not encoded.
    Pointed,
    /// A path without any delimiters.
    Bare,
}

/// Returns the links of a file, in order.
pub(crate) fn fragments(path: &SafePath, text: &str, options: &ParseOptions) -> Vec<Fragment> {
    match path.vault_path().kind() {
        FileKind::Markdown => vec![Fragment { text: text.to_owned(), json: None, links: links_of_text(text, options) }],
        FileKind::Canvas => canvas(text),
        FileKind::Attachment => Vec::new(),
    }
}

/// Returns the links of a file as they are written, in order.
pub(crate) fn raw_links(path: &SafePath, text: &str, options: &ParseOptions) -> impl Iterator<Item = String> + use<> {
    fragments(path, text, options).into_iter().flat_map(|fragment| fragment.links).map(|link| link.raw)
}

/// Returns the keys under which a file's links are looked up.
pub(crate) fn link_keys(path: &SafePath, text: &str) -> HashSet<String> {
    // The targets of the links do not matter here.
    let fragments = fragments(path, text, &ParseOptions::default());
    fragments.iter().flat_map(|fragment| &fragment.links).map(|link| link_key(&link.path)).collect()
}

/// Returns the links of a Markdown text.
pub(super) fn links_of_text(text: &str, options: &ParseOptions) -> Vec<LinkOccurrence> {
    // The file name only determines that the text is parsed as Markdown.
    let Some(path) = VaultPath::new("-.md") else { return Vec::new() };
    // No size limit, because links of notes that are too large for the index are preserved too.
    let note = parse(&path, text.as_bytes(), &ParseOptions { max_bytes: usize::MAX, ..options.clone() });
    let head = note.frontmatter.clone().unwrap_or(0..0);
    let occurrence = |link: &Link| LinkOccurrence {
        line: link.line,
        raw: link.raw.clone(),
        path: link.path.clone(),
        subpath: link.subpath.clone(),
        location: location(text, link, &head),
    };
    let mut links: Vec<(usize, LinkOccurrence)> =
        note.links.iter().map(|link| (link.span.start, occurrence(link))).collect();
    for definition in &note.unused_definitions {
        let label = label_of_wikilink(definition, &note.links, occurrence);
        links.extend(label.into_iter().chain([occurrence(definition)]).map(|link| (definition.span.start, link)));
    }
    links.sort_by_key(|(start, _)| *start);
    links.into_iter().map(|(_, link)| link).collect()
}

/// Returns the label of a definition as an additional wikilink, if the text has a wikilink with the same content.
/// Programs other than Obsidian read that wikilink as a link by this label, so both must stay the same.
fn label_of_wikilink(
    definition: &Link,
    links: &[Link],
    occurrence: impl Fn(&Link) -> LinkOccurrence,
) -> Option<LinkOccurrence> {
    let label = definition.raw.strip_prefix('[')?;
    let label = &label[..label.find("]:")?];
    let is_same = |link: &&Link| link.raw.strip_prefix("[[").and_then(|raw| raw.strip_suffix("]]")) == Some(label);
    let wikilink = links.iter().find(is_same)?;
    let mut found = LinkOccurrence { line: definition.line, ..occurrence(wikilink) };
    let span = &mut found.location.as_mut()?.span;
    let shift = |at: usize| at - (wikilink.span.start + "[[".len()) + definition.span.start + "[".len();
    *span = shift(span.start)..shift(span.end);
    Some(found)
}

fn location(text: &str, link: &Link, head: &Range<usize>) -> Option<LinkLocation> {
    let raw = text.get(link.span.clone())?;
    let marks = raw.strip_prefix('!').unwrap_or(raw);
    if marks.starts_with("[[") {
        let start = link.span.start + (raw.len() - marks.len()) + 2;
        let inner = &text[start..link.span.end.checked_sub(2)?];
        let end = inner.find(['|', '#']).unwrap_or(inner.len());
        // In a table the bar is escaped as `\|`.
        let end = if inner[end..].starts_with('|') && inner[..end].ends_with('\\') { end - 1 } else { end };
        let encoding = if head.contains(&link.span.start) {
            LinkEncoding::Quoted(quote_before(text, link.span.start)?)
        } else {
            LinkEncoding::Wikilink
        };
        return Some(LinkLocation { span: trimmed(text, start..start + end), encoding });
    }
    let (span, encoding) = match &link.definition {
        Some(at) => definition(text, at.clone())?,
        None => {
            let (span, encoding) = inline_destination(raw)?;
            (link.span.start + span.start..link.span.start + span.end, encoding)
        }
    };
    let path = end_of_path(&text[span.clone()]);
    Some(LinkLocation { span: span.start..span.start + path, encoding })
}

/// Returns the offset of the subpath of a destination, or the end of the destination: the position of the first `#`
/// after backslashes and entities are decoded. For example, the `#` in `&#39;` does not count.
fn end_of_path(destination: &str) -> usize {
    let mut at = 0;
    while let Some(found) = destination[at..].find(['#', '&', '\\']) {
        at += found;
        let rest = &destination[at..];
        if rest.starts_with('#') || rest.starts_with("\\#") {
            return at;
        }
        match entity(rest) {
            Some((_, true)) => return at,
            Some((length, false)) => at += length,
            // A backslash escapes the character after it.
            None if rest.starts_with('\\') => at += 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            None => at += 1,
        }
    }
    destination.len()
}

/// Returns the length of the entity at the beginning of a text, and whether it is `#`.
fn entity(text: &str) -> Option<(usize, bool)> {
    let inner = text.strip_prefix('&')?.split(';').next()?;
    let length = inner.len() + 2;
    if length > text.len() {
        return None;
    }
    let number = match inner.strip_prefix('#') {
        None if inner.chars().all(|c| c.is_ascii_alphanumeric()) && !inner.is_empty() => {
            return Some((length, inner == "num"));
        }
        None => return None,
        Some(number) => number,
    };
    let number = match number.strip_prefix(['x', 'X']) {
        Some(hexadecimal) if hexadecimal.len() <= 6 => u32::from_str_radix(hexadecimal, 16).ok()?,
        None if number.len() <= 7 => number.parse().ok()?,
        _ => return None,
    };
    Some((length, number == u32::from(b'#')))
}

fn trimmed(text: &str, span: Range<usize>) -> Range<usize> {
    let space = |c: char| c.is_whitespace() || c == '\u{a0}';
    let inner = &text[span.clone()];
    let start = span.start + (inner.len() - inner.trim_start_matches(space).len());
    start..(start + inner.trim_matches(space).len())
}

fn quote_before(text: &str, at: usize) -> Option<char> {
    text[..at].trim_end_matches([' ', '\t']).chars().next_back().filter(|c| matches!(c, '"' | '\''))
}

/// Returns the destination of `[text](destination "title")` or `![…](…)`; `None` for a link without one.
fn inline_destination(raw: &str) -> Option<(Range<usize>, LinkEncoding)> {
    let bytes = raw.as_bytes();
    let open = raw.find('[')?;
    let mut at = end_of_text(bytes, open)?;
    if bytes.get(at) != Some(&b'(') {
        return None;
    }
    at += 1;
    while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
        at += 1;
    }
    destination(bytes, at)
}

/// Returns the destination that begins at an offset.
fn destination(bytes: &[u8], mut at: usize) -> Option<(Range<usize>, LinkEncoding)> {
    if bytes.get(at) == Some(&b'<') {
        let start = at + 1;
        at = start;
        while *bytes.get(at)? != b'>' {
            at += if bytes[at] == b'\\' { 2 } else { 1 };
        }
        return Some((start..at, LinkEncoding::Pointed));
    }
    let (start, mut depth) = (at, 0usize);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 1,
            b'(' => depth += 1,
            b')' if depth == 0 => break,
            b')' => depth -= 1,
            byte if byte.is_ascii_whitespace() => break,
            _ => {}
        }
        at += 1;
    }
    Some((start..at.min(bytes.len()), LinkEncoding::Destination))
}

/// Returns the offset after the `]` that closes the `[` at `open`. Escaped brackets and those in code do not count.
fn end_of_text(bytes: &[u8], open: usize) -> Option<usize> {
    let (mut at, mut depth) = (open, 0usize);
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'`' => at = end_of_code(bytes, at) - 1,
            b'[' => depth += 1,
            b']' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Returns the offset after a code span; the offset after its opening backticks if it is not closed.
fn end_of_code(bytes: &[u8], start: usize) -> usize {
    let run = |from: usize| bytes[from..].iter().take_while(|byte| **byte == b'`').count();
    let ticks = run(start);
    let mut at = start + ticks;
    while at < bytes.len() {
        match run(at) {
            0 => at += 1,
            other if other == ticks => return at + ticks,
            other => at += other,
        }
    }
    start + ticks
}

/// Returns the destination of a definition, `[label]: destination "title"`.
fn definition(text: &str, span: Range<usize>) -> Option<(Range<usize>, LinkEncoding)> {
    let bytes = &text.as_bytes()[..span.end];
    let label = end_of_text(bytes, span.start)?;
    let mut at = label + 1;
    if bytes.get(label) != Some(&b':') {
        return None;
    }
    while bytes.get(at).is_some_and(|byte| byte.is_ascii_whitespace()) {
        at += 1;
    }
    destination(bytes, at)
}

#[derive(Deserialize)]
struct Canvas<'t> {
    #[serde(borrow, default)]
    nodes: Vec<BTreeMap<String, &'t RawValue>>,
}

/// Returns the links of the texts and file names of a canvas.
fn canvas(text: &str) -> Vec<Fragment> {
    let lines = LineMap::of(text);
    let fragment = |(value, span, is_text): (String, Range<usize>, bool)| {
        let line = lines.line_at(span.start);
        let links = if is_text {
            node_sites(&value, line)
        } else {
            let location = LinkLocation { span: 0..value.len(), encoding: LinkEncoding::Bare };
            vec![LinkOccurrence {
                line,
                raw: value.clone(),
                path: tidy(&value),
                subpath: None,
                location: Some(location),
            }]
        };
        Fragment { text: value, json: Some(span), links }
    };
    canvas_strings(text).into_iter().map(fragment).collect()
}

/// Returns the texts and file names of a canvas, each with its position as a JSON string, and whether it is a text. An
/// invalid canvas has none that could be changed.
pub(crate) fn canvas_strings(text: &str) -> Vec<(String, Range<usize>, bool)> {
    let json = text.trim_start_matches('\u{feff}');
    let Ok(canvas) = serde_json::from_str::<Canvas<'_>>(json) else { return Vec::new() };
    let string_of = |node: &BTreeMap<String, &RawValue>| {
        let string = |key: &str| -> Option<(String, Range<usize>)> {
            let raw = node.get(key)?.get();
            let start = raw.as_ptr().addr() - text.as_ptr().addr();
            Some((serde_json::from_str(raw).ok()?, start..start + raw.len()))
        };
        let (key, is_text) = match string("type")?.0.as_str() {
            "text" => ("text", true),
            "file" => ("file", false),
            "group" => ("background", false),
            _ => return None,
        };
        string(key).map(|(value, span)| (value, span, is_text))
    };
    canvas.nodes.iter().filter_map(string_of).collect()
}

/// Converts an edit of the text in a JSON string to an edit of the file that contains the string.
pub(crate) fn edit_in_json(file: &str, string: &Range<usize>, edit: &TextEdit) -> Option<TextEdit> {
    let span = span_in_json(&file[string.clone()], &edit.span)?;
    let text = serde_json::Value::String(edit.text.clone()).to_string();
    let text = text[1..text.len() - 1].to_owned();
    Some(TextEdit { span: string.start + span.start..string.start + span.end, text })
}

/// Returns the links of a canvas node's text. A line is put before the text, because a canvas text has no frontmatter.
fn node_sites(text: &str, line: u32) -> Vec<LinkOccurrence> {
    let mut links = links_of_text(&format!("\n{text}"), &ParseOptions::default());
    for link in &mut links {
        link.line = line;
        if let Some(location) = &mut link.location {
            location.span = location.span.start - 1..location.span.end - 1;
        }
    }
    links
}

fn tidy(path: &str) -> String {
    use unicode_normalization::UnicodeNormalization;
    path.trim().replace('\u{a0}', " ").nfc().collect()
}

/// Returns the bytes of a JSON string, including quotes, that encode a range of its text.
///
/// `None` for a range that is not in the text, or if `json` is not a JSON string.
fn span_in_json(json: &str, range: &Range<usize>) -> Option<Range<usize>> {
    let (mut start, mut end) = (None, None);
    let mut decoded = 0;
    let mut rest = json.strip_prefix('"')?;
    loop {
        let at = json.len() - rest.len();
        if decoded == range.start && start.is_none() {
            start = Some(at);
        }
        if decoded == range.end && end.is_none() {
            end = Some(at);
        }
        if let (Some(start), Some(end)) = (start, end) {
            return Some(start..end);
        }
        let (length, letter) = first_letter(rest)?;
        decoded += letter.len_utf8();
        rest = &rest[length..];
    }
}

/// Returns the first character that is encoded, and the length of its encoding in bytes; `None` at the closing quote.
fn first_letter(json: &str) -> Option<(usize, char)> {
    let mut chars = json.chars();
    match chars.next()? {
        '"' => None,
        '\\' => match chars.next()? {
            'u' => {
                let unit = |at: usize| u16::from_str_radix(json.get(at + 2..at + 6)?, 16).ok();
                let first = unit(0)?;
                if let Some(letter) = char::from_u32(u32::from(first)) {
                    return Some((6, letter));
                }
                let letter = char::decode_utf16([first, unit(6)?]).next()?.ok()?;
                Some((12, letter))
            }
            escaped => Some((2, escaped)),
        },
        letter => Some((letter.len_utf8(), letter)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let path = SafePath::new("a.md").unwrap();
        let fragments = fragments(&path, text, &ParseOptions::default());
        let found: Vec<&str> = fragments
            .iter()
            .flat_map(|fragment| fragment.links.iter().map(move |link| (fragment, link)))
            .map(|(fragment, link)| {
                link.location.as_ref().map_or("?", |location| &fragment.text[location.span.clone()])
            })
            .collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn the_path_of_each_link_is_found() {
        check("[[a]] ![[b c#d|e]] [[ f | g ]] [[#own]]", &["a", "b c", "f", ""]);
        check("| x |\n|---|\n| [[a b\\|c]] |\n", &["a b"]);
        check("---\nup: \"[[a]]\"\nl: ['[[b#c]]']\n---\n[[d]]", &["a", "b", "d"]);
        check("[t](a%20b.md#c \"title\") ![](<x y.png>) [`]`](q.md)", &["a%20b.md", "x y.png", "q.md"]);
        check("[![alt](pic.png)](note.md)", &["note.md", "pic.png"]);
        check("[p](a(1).md) [\\]](b.md)", &["a(1).md", "b.md"]);
        check("[t][Ref] [ref] [u][]\n\n[ref]: a.md\n[u]: <b c.md> 'x'\n", &["a.md", "a.md", "b c.md"]);
        check("```\n[r]: no.md\n```\n\n    [r]: no.md\n\n[t][r]\n\n[r]: a.md", &["a.md"]);
        check("- [a  b]: x.md\n- > [q]: y.md\n\n[A B] [t][Q]", &["x.md", "y.md"]);
        check(
            "[a](it&#39;s.md) [b](&#97;&amp;b.md#c) [c](a\\#b) [d](a&#35;b) [e](a&num;b&#x23;)",
            &["it&#39;s.md", "&#97;&amp;b.md", "a", "a", "a"],
        );
        check("[a](x&y#z) [b](&#;#z) [c](a&#9999999999;)", &["x&y", "&", "a&"]);
        check("`[[no]]` %%[[no]]%% [x](https://a.b)", &[]);
        check("[[a]] [[b|c]]\n\n[a]: p/a.md\n[b]: b.md\n[B|c]: b.md", &["a", "b", "a", "p/a.md", "b.md", "b.md"]);
    }

    #[test]
    fn a_canvas_has_texts_and_files() {
        let path = SafePath::new("a.canvas").unwrap();
        let text = r##"{"nodes":[{"id":"1","type":"text","text":"---\n[[a]] \"q\" [x](b.md)"},
            {"type":"file","file":"p/é.md","subpath":"#h"},{"type":"link","url":"c"}],"edges":[]}"##;
        let fragments = fragments(&path, text, &ParseOptions::default());
        assert_eq!(fragments.len(), 2);
        let paths: Vec<&str> = fragments.iter().flat_map(|f| &f.links).map(|link| link.path.as_str()).collect();
        assert_eq!(paths, ["a", "b.md", "p/é.md"]);
        assert_eq!(&text[fragments[1].json.clone().unwrap()], "\"p/é.md\"");
        assert_eq!(fragments[1].links[0].line, 2);
    }

    #[test]
    fn every_range_of_the_text_is_found() {
        let json = r#""a\u00e9\/\"é\ud83d\ude00\n[[x]]\\""#;
        let text: String = serde_json::from_str(json).unwrap();
        assert_eq!(text, "aé/\"é😀\n[[x]]\\");
        let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
        for (number, from) in ends.iter().enumerate() {
            for to in &ends[number..] {
                let span = span_in_json(json, &(*from..*to)).unwrap();
                let part: String = serde_json::from_str(&format!("\"{}\"", &json[span])).unwrap();
                assert_eq!(part, text[*from..*to]);
            }
        }
        assert_eq!(span_in_json(json, &(0..text.len() + 1)), None);
        assert_eq!(span_in_json(json, &(2..3)), None);
        assert_eq!(span_in_json("no", &(0..0)), None);
    }
}
