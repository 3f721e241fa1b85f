//! Describes a note without its text: `get_note_metadata`.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use vault_index::Warning;
use vault_index::note::Property;

use crate::edit::frontmatter;
use crate::error::Result;
use crate::sandbox::View;
use crate::tool::Context;
use crate::tools::links::backlinks::{links_of, links_to};
use crate::tools::shared::arguments::NoteArgs;
use crate::tools::shared::locate;

/// A note without its text.
#[derive(Serialize, JsonSchema)]
pub(in crate::tools) struct NoteMetadata {
    /// Its path.
    #[schemars(extend("x-vault-path" = true))]
    path: String,
    /// Its title.
    title: String,
    /// Its frontmatter: keys and values as they stand, in their order; empty if missing. Of one that is not valid YAML,
    /// what can be read.
    frontmatter: Map<String, Value>,
    /// Its other names.
    aliases: Vec<String>,
    /// Its tags, without `#`.
    tags: Vec<String>,
    /// Its headings in order.
    headings: Vec<Heading>,
    /// The number of words.
    words: usize,
    /// Its size in bytes.
    size: u64,
    /// When it was created: its property `created`, else the file system's time, which an edit can renew.
    created: Option<String>,
    /// When it was last changed; null if not yet written.
    modified: Option<String>,
    /// The number of its links.
    forward_links: usize,
    /// The number of links to it, including its own.
    backlinks: usize,
    /// Problems found in it.
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

pub(in crate::tools) fn get_note_metadata(args: NoteArgs, context: &mut Context<'_, '_>) -> Result<NoteMetadata> {
    let (path, note) = locate::note(&args.path, context)?;
    let stat = context.overlay.stat(&path)?;
    let as_they_stand = frontmatter::properties(&note.text).ok();
    let frontmatter = serde_json::to_value(as_they_stand.as_ref().unwrap_or(&note.properties)).unwrap_or_default();
    let headings = note.headings.iter();
    let headings = headings.map(|h| Heading { level: h.level, text: h.text.clone(), line: h.line }).collect();
    let property = note.properties.get("created").and_then(Property::as_str).map(str::to_string);
    let file_time = || stat.as_ref().and_then(|stat| stat.created).and_then(locate::rfc3339);
    Ok(NoteMetadata {
        created: property.or_else(file_time),
        title: note.title.text.clone(),
        frontmatter: frontmatter.as_object().cloned().unwrap_or_default(),
        aliases: note.aliases.clone(),
        tags: note.tags.iter().map(|tag| tag.shown.clone()).collect(),
        headings,
        words: note.words,
        size: stat.as_ref().map_or(0, |stat| stat.size),
        modified: stat.and_then(|stat| stat.modified).and_then(locate::rfc3339),
        forward_links: links_of(&path, context)?.len(),
        backlinks: links_to(&path, context)?.len(),
        warnings: note.warnings.iter().map(warning_text).collect(),
        path: path.to_string(),
    })
}

fn warning_text(warning: &Warning) -> String {
    warning.line.map_or_else(|| warning.message.clone(), |line| format!("line {line}: {}", warning.message))
}
