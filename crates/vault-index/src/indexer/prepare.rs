//! Parses and chunks one file, and prepares everything that the store needs. Pure except for the read.

use std::collections::HashSet;
use std::ops::Range;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::chunk::{
    CHUNKER_VERSION, Chunk, ChunkOptions, ChunkWithText, chunks_with_texts, embedded_text, file_title_text,
};
use crate::embed::Embedder;
use crate::error::Warning;
use crate::files::{DiskFile, MAX_NOTE_BYTES, read_note};
use crate::indexer::words::{NoteTexts, SentWords, WordReader, without_drawings};
use crate::links::{Resolver, link_key};
use crate::note::{Link, Note, PARSER_VERSION, ParseOptions, Property, TitleSource, parse, property_key};
use crate::path::VaultPath;
use crate::store::{
    Anchors, LinkRow, Name, NewNote, NewPassage, NoteRow, PassageFields, PropertyValue, json, key_of, number_of,
};
use crate::terms::{TERMS_VERSION, name_key};

/// Increased whenever the words of the passages of an unchanged note can change.
const FIELDS_VERSION: u32 = 5;

/// The stored bytes of a name's spelling. People do not type longer names letter by letter.
const MAX_NAME: usize = 512;

/// The version of everything that determines a note's rows, as a number.
pub(super) fn version(embedder: &dyn Embedder, parse: &ParseOptions) -> i64 {
    let (id, window) = (embedder.id(), embedder.max_tokens());
    let plain = if parse.relative_destinations { " plain" } else { "" };
    number_of(&format!("{PARSER_VERSION}.{CHUNKER_VERSION}.{TERMS_VERSION}.{FIELDS_VERSION} {id} {window}{plain}"))
}

/// The options for cutting notes for this model.
fn chunk_options(embedder: &dyn Embedder) -> ChunkOptions {
    let max_tokens = embedder.max_tokens().max(16);
    ChunkOptions { max_tokens, max_context_tokens: (max_tokens / 4).min(64), ..ChunkOptions::default() }
}

pub(super) struct Preparer<'a> {
    vault: &'a Path,
    embedder: &'a dyn Embedder,
    options: ChunkOptions,
    resolver: Resolver<'a>,
    parse: ParseOptions,
    sent: SentWords,
}

impl<'a> Preparer<'a> {
    pub(super) fn new(
        vault: &'a Path,
        embedder: &'a dyn Embedder,
        resolver: Resolver<'a>,
        parse: ParseOptions,
    ) -> Self {
        Self { vault, embedder, options: chunk_options(embedder), resolver, parse, sent: SentWords::new() }
    }

    /// # Errors
    /// A warning that says why the note is skipped.
    pub(super) fn prepare(&self, file: &DiskFile) -> Result<NewNote, Warning> {
        let checked_at_ns = now_ns();
        let content = read_note(self.vault, file, MAX_NOTE_BYTES)?;
        let note = parse(&file.path, &content.bytes, &self.parse);
        let (stat, hash) = (content.stat, content.hash);
        // The note has its own copy of the text.
        drop(content.bytes);
        let path = &file.path;
        let named_by_file = note.title.source == TitleSource::FileName;
        let title = (!named_by_file).then_some(note.title.text.as_str());
        let mut chunks = chunks_with_texts(&note, self.embedder, &self.options);
        if chunks.is_empty() {
            // A note without text is found by its title, tags, aliases and properties.
            let line = note.lines.line_at(note.searched.start);
            let span = note.searched.start..note.searched.start;
            let text = embedded_text(title, &[], "", self.embedder, &self.options);
            let tokens = self.embedder.count(&text);
            chunks.push(ChunkWithText {
                chunk: Chunk { span, lines: (line, line), headings: Vec::new() },
                text,
                text_start: 0,
                tokens,
            });
        }
        let shown: Vec<String> = note.tags.iter().map(|tag| tag.shown.clone()).collect();
        let mut reader = WordReader::new(&self.sent);
        let fields = reader.note_fields(&NoteTexts {
            title: &note.title.text,
            named_by_file,
            aliases: &note.aliases,
            tags: &shown,
            properties: &note.properties,
            path,
        });
        let is_only = chunks.len() == 1;
        let passages = chunks
            .into_iter()
            .map(|ChunkWithText { chunk, text: embedded, text_start, tokens }| {
                let text = note.slice(chunk.span.clone()).to_string();
                let fields = PassageFields {
                    headings: reader.joined(chunk.headings.iter().map(String::as_str)),
                    body: reader.joined([without_drawings(&text).as_ref()]),
                };
                let key = key_of(or_title(&embedded, &note.title.text));
                // The only passage of a note also includes its title.
                let own = if is_only { &embedded } else { &embedded[text_start..] };
                let said = said(own, is_only_links(&note, &chunk.span));
                let headings = json(&chunk.headings);
                NewPassage { headings, lines: chunk.lines, span: chunk.span, text, key, said, tokens, fields }
            })
            .collect();
        let anchors = Anchors {
            headings: (note.headings.iter().enumerate())
                .map(|(at, heading)| (heading.level, note.heading_source(at).to_string(), heading.line))
                .collect(),
            blocks: note.block_ids.iter().map(|b| (b.id.clone(), b.line)).collect(),
        };
        let row = NoteRow {
            title_source: note.title.source,
            file_title: file_title_text(&note, path),
            names: names(&note, path),
            aliases: json(&note.aliases),
            shown_tags: json(&shown),
            tags: note.tags.iter().map(|tag| (tag.key().as_str().to_string(), tag.shown.clone())).collect(),
            frontmatter: json(&note.properties),
            properties: property_values(&note),
            anchors: json(&anchors),
            words: note.words,
            title: note.title.text,
        };
        let title_key = row.file_title.as_deref().map(key_of);
        let links = note.links.into_iter().map(|link| self.link(link, path)).collect();
        let (words, warnings) = (reader.into_new(), note.warnings);
        Ok(NewNote { stat, hash, checked_at_ns, row, title_key, links, fields, passages, words, warnings })
    }

    fn link(&self, link: Link, source: &VaultPath) -> LinkRow {
        let name = number_of(&link_key(&link.path));
        let target = self.resolver.resolve(&link.path, source).target;
        LinkRow { link, name, target }
    }
}

/// The text that the model gets for a passage: the title if the note contains it, the headings, the text; for a passage
/// without any text, the note's title. Equal to the text that the passage's key was made of (`prepare`), because the
/// key finds a vector again.
pub(super) fn text_to_embed(
    embedder: &dyn Embedder,
    title: Option<&str>,
    headings: &[String],
    text: &str,
    note_title: &str,
) -> String {
    or_title(&embedded_text(title, headings, text, embedder, &chunk_options(embedder)), note_title).to_string()
}

/// [`PassageRow::said`](crate::store::PassageRow::said).
fn said(text: &str, is_only_links: bool) -> u32 {
    match text.is_empty() {
        true => 0,
        false => (number_of(text) as u32 & !1).max(2) | u32::from(is_only_links),
    }
}

/// Whether a passage has links to notes or files, and no words outside of them, its headings aside.
fn is_only_links(note: &Note, passage: &Range<usize>) -> bool {
    // Both are in the order of the text, so that a note with many passages and links is not read once for each passage.
    let mut spans: Vec<_> = inside(&note.links, passage, |link| &link.span).collect();
    if spans.is_empty() {
        return false;
    }
    spans.extend(inside(&note.headings, passage, |heading| &heading.span));
    spans.sort_unstable_by_key(|span| span.start);
    let mut end = passage.start;
    for span in spans {
        if note.slice(end..span.start.max(end)).contains(char::is_alphabetic) {
            return false;
        }
        end = end.max(span.end);
    }
    !note.slice(end..passage.end).contains(char::is_alphabetic)
}

/// The spans of those items that are in a passage. The items are ordered by the start of their span.
fn inside<'n, T>(
    items: &'n [T],
    passage: &Range<usize>,
    span: impl Fn(&T) -> &Range<usize> + Copy,
) -> impl Iterator<Item = &'n Range<usize>> {
    let (start, end) = (passage.start, passage.end);
    let first = items.partition_point(|item| span(item).start < start);
    items[first..].iter().map(span).take_while(move |span| span.start <= end).filter(move |span| span.end <= end)
}

fn or_title<'t>(embedded: &'t str, note_title: &'t str) -> &'t str {
    if embedded.trim().is_empty() { note_title } else { embedded }
}

/// The names of the note, each spelling once: its title, its file's name, its aliases.
fn names(note: &Note, path: &VaultPath) -> Vec<Name> {
    let mut names: Vec<Name> = Vec::new();
    let mut spelled = HashSet::new();
    let texts = [note.title.text.as_str(), path.stem()].into_iter().chain(note.aliases.iter().map(String::as_str));
    for (n, text) in texts.map(str::trim).enumerate() {
        let key = name_key(text);
        if !key.is_empty() && spelled.insert(text) {
            let is_heading = n == 0 && note.title.source == TitleSource::Heading && text != path.stem();
            names.push(Name { key, text: text[..text.floor_char_boundary(MAX_NAME)].to_string(), is_heading });
        }
    }
    names
}

/// One row per value: lists have one per item, and empty values have none. Nested maps are found under `outer.inner`.
fn property_values(note: &Note) -> Vec<(String, PropertyValue)> {
    let mut values = Vec::new();
    for (key, property) in note.properties.iter() {
        collect(&key.to_lowercase(), property, &mut values);
    }
    for (key, property) in note.fields.iter() {
        collect(&property_key(key), property, &mut values);
    }
    values
}

fn collect(key: &str, property: &Property, values: &mut Vec<(String, PropertyValue)>) {
    let mut push = |number: Option<f64>, text: String| values.push((key.to_string(), PropertyValue { number, text }));
    match property {
        Property::Null => {}
        Property::Bool(value) => push(None, value.to_string()),
        Property::Number(value) => push(Some(*value), value.to_string()),
        Property::Text(text) | Property::Date(text) | Property::DateTime(text) => {
            if !text.trim().is_empty() {
                push(text.trim().parse().ok().filter(|n: &f64| n.is_finite()), text.clone());
            }
        }
        Property::List(items) => items.iter().for_each(|item| collect(key, item, values)),
        Property::Map(entries) => {
            entries
                .iter()
                .for_each(|(inner, value)| collect(&format!("{key}.{}", inner.to_lowercase()), value, values));
        }
    }
}

/// The current time in nanoseconds since 1970, as in the stats of files.
pub(super) fn now_ns() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| i64::try_from(d.as_nanos()).unwrap_or(i64::MAX))
}
