//! From a file to a [`Note`]: decode, remove the frontmatter, read the body, choose the title.

use std::ops::Range;
use std::path::Path;

use unicode_normalization::char::is_combining_mark;

use super::body::{self, BodyContents};
use super::frontmatter::{self, Frontmatter};
use super::{LineMap, Link, LinkKind, Note, Title, TitleSource, canvas};
use crate::error::{Warning, WarningKind};
use crate::files::{MAX_NOTE_BYTES, is_obsidian_vault};
use crate::path::{FileKind, VaultPath};

/// Increased whenever the same file can give another note, so that existing notes are parsed again.
pub const PARSER_VERSION: u32 = 6;

/// Options of the parser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseOptions {
    /// The size limit in bytes, 10 MB by default. A longer file becomes a note without text, with a warning.
    pub max_bytes: usize,
    /// Whether the destination of a Markdown link is relative to the folder of its note, as in all programs except
    /// Obsidian. Then the [`path`](Link::path) of `[shown](x.md)` is `./x.md`. False by default.
    pub relative_destinations: bool,
}

impl ParseOptions {
    /// The options for a vault. If the folder is not an Obsidian vault, that is, has no folder `.obsidian`,
    /// destinations of Markdown links are relative to the folder of their note.
    pub fn of_vault(root: &Path) -> Self {
        Self { relative_destinations: !is_obsidian_vault(root), ..Self::default() }
    }
}

impl Default for ParseOptions {
    fn default() -> Self {
        Self { max_bytes: MAX_NOTE_BYTES as usize, relative_destinations: false }
    }
}

/// Reads one file. It cannot fail: malformed parts are left out or read as text, with a warning.
///
/// Pure: the same bytes give the same note. Linear in the length, except for markers nested hundreds deep in a short
/// note. Canvases are read as JSON, all other files as Markdown.
///
/// ```
/// use vault_index::VaultPath;
/// use vault_index::note::{ParseOptions, parse};
///
/// let path = VaultPath::new("Garden/Roses.md").expect("a path");
/// let note = parse(&path, b"---\ntags: [garden]\n---\n# My roses\n\nSee [[Tools#Knife]].\n", &ParseOptions::default());
/// assert_eq!(note.title.text, "My roses");
/// assert_eq!((note.links[0].path.as_str(), note.tags[0].shown.as_str()), ("Tools", "garden"));
/// ```
pub fn parse(path: &VaultPath, bytes: &[u8], options: &ParseOptions) -> Note {
    // Offsets are stored in 32 bits.
    if bytes.len() > options.max_bytes.min(u32::MAX as usize) {
        let message =
            format!("{} bytes are over the limit of {} bytes; only its name is known", bytes.len(), options.max_bytes);
        return Note {
            title: file_title(path),
            warnings: vec![Warning::new(WarningKind::TooLarge, message)],
            ..Note::default()
        };
    }
    let (text, odd) = decode(bytes);
    let (mut note, found) = match path.kind() {
        FileKind::Canvas => canvas::read(&text),
        FileKind::Markdown | FileKind::Attachment => markdown(text),
    };
    note.warnings.extend(odd);
    if note.title.text.is_empty() {
        note.title = title(path, &found);
    }
    note.words = count_words(&note.text[note.body.clone()]);
    note.headings = found.headings;
    note.blocks = found.blocks;
    note.block_ids = found.block_ids;
    note.links = found.links;
    note.unused_definitions = found.unused_definitions;
    // Canvases are specific to Obsidian.
    if options.relative_destinations && path.kind() != FileKind::Canvas {
        let links = note.links.iter_mut().chain(&mut note.unused_definitions);
        links.filter(|link| link.has_destination()).for_each(|link| relative(&mut link.path));
    }
    note.tags = found.tags.into_list();
    note.fields = found.fields.into();
    note
}

/// The spans of the tags of a Markdown text, each from its `#` to its end, in order, without those of its frontmatter.
///
/// ```
/// assert_eq!(vault_index::note::tag_spans("Roses #garden `#code`"), [6..13]);
/// ```
pub fn tag_spans(text: &str) -> Vec<Range<usize>> {
    let start = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let start = frontmatter::find(text, start).map_or(start, |fences| fences.whole.end);
    let mut found = BodyContents::default();
    body::read(text, start..text.len(), &LineMap::of(text), &mut found);
    found.tag_spans.sort_by_key(|span| span.start);
    found.tag_spans.dedup();
    found.tag_spans
}

/// Makes a path that begins with a name explicitly relative to the folder of its note.
fn relative(path: &mut String) {
    let begins_with_a_name = !path.is_empty() && !path.starts_with('/') && !path.starts_with("./");
    if begins_with_a_name && !path.starts_with("../") {
        path.insert_str(0, "./");
    }
}

fn markdown(text: String) -> (Note, BodyContents) {
    let start = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let lines = LineMap::of(&text);
    let mut found = BodyContents::default();
    let mut note = Note::default();
    let mut body = start..text.len();
    let mut searched = body.clone();
    if let Some(fences) = frontmatter::find(&text, start) {
        body.start = fences.whole.end;
        let head = frontmatter::read(&text, &fences);
        searched.start = if head.is_broken { fences.inside } else { body.start };
        note.frontmatter = Some(fences.whole);
        take_head(head, &text, &lines, &mut note, &mut found);
    }
    body::read(&text, body.clone(), &lines, &mut found);
    note.body = body;
    note.searched = searched;
    note.lines = lines;
    note.text = text;
    (note, found)
}

fn take_head(head: Frontmatter, text: &str, lines: &LineMap, note: &mut Note, found: &mut BodyContents) {
    if let Some(text) = head.title {
        note.title = Title { text, source: TitleSource::Frontmatter };
    }
    note.aliases = head.aliases;
    note.properties = head.properties;
    note.warnings = head.warnings;
    head.tags.iter().for_each(|tag| found.tags.add(tag));
    found
        .links
        .extend(head.links.into_iter().map(|(span, parts)| Link::new(LinkKind::Wikilink, span, parts, text, lines)));
}

/// The first heading, if it is of level 1, else the file's name, because a level-1 heading below others begins a
/// section. A canvas has the name of its file as its title, and so does a drawing, whose first heading belongs to its
/// data.
fn title(path: &VaultPath, found: &BodyContents) -> Title {
    let heading = found.headings.iter().find(|heading| !heading.text.is_empty());
    match heading {
        Some(heading) if heading.level == 1 && path.kind() != FileKind::Canvas && heading.text != DRAWING_DATA => {
            Title { text: heading.text.clone(), source: TitleSource::Heading }
        }
        _ => file_title(path),
    }
}

/// The first heading in each note that Excalidraw writes.
const DRAWING_DATA: &str = "Excalidraw Data";

fn file_title(path: &VaultPath) -> Title {
    Title { text: path.stem().to_owned(), source: TitleSource::FileName }
}

fn decode(bytes: &[u8]) -> (String, Option<Warning>) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (text.to_owned(), None),
        Err(error) => {
            let valid = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
            let line = LineMap::of(&valid).line_at(valid.len());
            let message = "bytes that are not UTF-8 were read as \u{fffd}";
            let warning = Warning::new(WarningKind::Encoding, message).on_line(line);
            (String::from_utf8_lossy(bytes).into_owned(), Some(warning))
        }
    }
}

/// Counts runs of letters and digits; each CJK character counts as one. One pass, no allocation.
fn count_words(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut words = 0;
    let mut inside = false;
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        if byte < 0x80 {
            let letter = byte.is_ascii_alphanumeric();
            words += usize::from(letter && !inside);
            inside = letter;
            at += 1;
            continue;
        }
        let Some(c) = text[at..].chars().next() else { break };
        at += c.len_utf8();
        if is_cjk(c) {
            words += 1;
            inside = false;
        } else if c.is_alphanumeric() {
            words += usize::from(!inside);
            inside = true;
        } else if !is_combining_mark(c) {
            inside = false;
        }
    }
    words
}

/// Whether a character is Han, kana, bopomofo or a Hangul syllable.
fn is_cjk(c: char) -> bool {
    matches!(c,
        '\u{3005}'..='\u{3007}' | '\u{3041}'..='\u{3096}' | '\u{30a1}'..='\u{30ff}'
        | '\u{3105}'..='\u{312f}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}' | '\u{ff66}'..='\u{ff9d}'
        | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    #[test]
    fn words_are_runs_of_letters_and_digits() {
        for (text, expected) in [
            ("", 0),
            ("one two", 2),
            ("v1.2 plan", 3),
            ("don't", 2),
            ("**bold**ly", 2),
            ("re\u{301}sume\u{301}", 1),
            ("Grüße, Welt", 2),
            ("漢字かな", 4),
            ("a漢b", 3),
            ("हिन्दी भाषा", 2),
            ("🎉 --- 🎉", 0),
        ] {
            assert_eq!(super::count_words(text), expected, "{text:?}");
        }
    }
}
