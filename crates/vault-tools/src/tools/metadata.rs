//! Describes a note without its text: `get_note_metadata`.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use vault_index::note::Property;

use super::links::{links_of, links_to};
use super::locate::{self, NoteArgs};
use crate::error::Result;
use crate::sandbox::View;
use crate::tool::Context;

/// What is known about a note.
#[derive(Serialize, JsonSchema)]
pub(super) struct NoteMetadata {
    /// Where it lies.
    path: String,
    /// Its title.
    title: String,
    /// Its frontmatter; empty when it has none or a broken one.
    frontmatter: Map<String, Value>,
    /// Other names it has.
    aliases: Vec<String>,
    /// Its tags, without `#`.
    tags: Vec<String>,
    /// Its headings in order.
    headings: Vec<Heading>,
    /// Words of its text.
    words: usize,
    /// Its size in bytes.
    size: u64,
    /// When it was made: as its property `created` says, else as the file system knows, to which an edit makes it anew.
    created: Option<String>,
    /// When it was last changed; null for what is not yet written.
    modified: Option<String>,
    /// Links it has.
    forward_links: usize,
    /// Links that lead to it, its own included.
    backlinks: usize,
    /// What is odd about it.
    warnings: Vec<String>,
}

/// A heading.
#[derive(Serialize, JsonSchema)]
struct Heading {
    /// 1 to 6.
    level: u8,
    /// Its text.
    text: String,
    /// Its line, from 1.
    line: u32,
}

pub(super) fn get_note_metadata(args: NoteArgs, context: &mut Context<'_, '_>) -> Result<NoteMetadata> {
    let (path, note) = locate::note(&args.path, context)?;
    let stat = context.overlay.stat(&path)?;
    let frontmatter: Map<String, Value> = note
        .properties
        .iter()
        .map(|(key, value)| (key.to_string(), serde_json::to_value(value).unwrap_or_default()))
        .collect();
    let headings = note.headings.iter();
    let headings = headings.map(|h| Heading { level: h.level, text: h.text.clone(), line: h.line }).collect();
    let property = note.properties.get("created").and_then(Property::as_str).map(str::to_string);
    let born = || stat.as_ref().and_then(|stat| stat.created).and_then(locate::rfc3339);
    Ok(NoteMetadata {
        created: property.or_else(born),
        title: note.title.text.clone(),
        frontmatter,
        aliases: note.aliases.clone(),
        tags: note.tags.iter().map(|tag| tag.shown.clone()).collect(),
        headings,
        words: note.words,
        size: stat.as_ref().map_or(0, |stat| stat.size),
        modified: stat.and_then(|stat| stat.modified).and_then(locate::rfc3339),
        forward_links: links_of(&path, context)?.len(),
        backlinks: links_to(&path, context)?.len(),
        warnings: note.warnings.iter().map(|warning| warning.message.clone()).collect(),
        path: path.to_string(),
    })
}
