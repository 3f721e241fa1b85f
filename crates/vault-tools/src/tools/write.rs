//! Creates and replaces files: `write_note`, `vault.createFile`, `vault.writeFile`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::collision::{Collision, free, taken};
use super::locate;
use crate::edit::{self, frontmatter};
use crate::error::{Error, Result};
use crate::overlay::Written;
use crate::sandbox::View;
use crate::tool::{Context, PathArg};

#[derive(Deserialize, JsonSchema)]
pub(super) struct NoteArgs {
    /// The path of the note, ending in `.md`; missing folders are created.
    path: PathArg,
    /// The whole text in Markdown, including any frontmatter.
    content: String,
}

pub(super) fn note(args: NoteArgs, context: &mut Context<'_, '_>) -> Result<String> {
    let path = locate::new_note(&args.path, context)?;
    Ok(match context.overlay.write(&path, args.content)? {
        Written::Created => format!("Note created successfully: {path}"),
        Written::Overwritten => format!("Note overwritten successfully: {path} (it was there before)"),
        Written::Unchanged => format!("Note unchanged: {path} (it was there with the same text)"),
    })
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CreateArgs {
    /// Its path with extension; missing folders are created.
    path: PathArg,
    /// Its text.
    content: String,
    /// With true, an existing file is left as it is, and `created` is false. collisionStrategy takes precedence.
    if_not_exists: Option<bool>,
    /// What happens if the path exists; default error.
    collision_strategy: Option<Collision>,
    /// Properties for the YAML frontmatter.
    frontmatter: Option<Map<String, Value>>,
}

/// The file.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CreatedFile {
    /// Its path; with create-unique it can differ from the requested one.
    path: String,
    /// Whether it was created now.
    created: bool,
    /// When it was written, in milliseconds since 1970; null in a preview.
    mtime_ms: Option<i64>,
}

pub(super) fn create(args: CreateArgs, context: &mut Context<'_, '_>) -> Result<CreatedFile> {
    let mut path = context.path(&args.path)?;
    let content = match &args.frontmatter {
        Some(properties) if !properties.is_empty() => frontmatter::update(&args.content, properties)?,
        _ => args.content,
    };
    if args.collision_strategy == Some(Collision::CreateUnique) {
        path = free(&path, context.overlay)?;
    }
    let created = !context.overlay.exists(&path)?;
    match (args.collision_strategy, args.if_not_exists) {
        _ if created => context.overlay.create(&path, content)?,
        (Some(Collision::Overwrite), _) => drop(context.overlay.write(&path, content)?),
        (None, Some(true)) => {}
        _ => return Err(taken(&path)),
    }
    Ok(CreatedFile { path: path.to_string(), created, mtime_ms: locate::mtime_ms(&path, &*context.overlay)? })
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct FileArgs {
    /// The file; it is created if missing.
    path: PathArg,
    /// The text.
    content: String,
    /// Whether the text replaces the content or is added after it; default overwrite.
    #[serde(default)]
    mode: WriteMode,
    /// The etag of the content to change, from vault.listFiles or an earlier write. If the file has another one now,
    /// nothing is written and the error is CONFLICT.
    expected_etag: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum WriteMode {
    #[default]
    Overwrite,
    Append,
}

/// The file.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct WrittenFile {
    /// Its path.
    path: String,
    /// The hash of its new content.
    etag: String,
    /// When it was written, in milliseconds since 1970; null in a preview.
    mtime_ms: Option<i64>,
    /// The bytes of the given text.
    bytes_written: usize,
}

pub(super) fn file(args: FileArgs, context: &mut Context<'_, '_>) -> Result<WrittenFile> {
    let path = context.path(&args.path)?;
    let exists = context.overlay.exists(&path)?;
    if let Some(expected) = &args.expected_etag {
        if !exists {
            return Err(Error::conflict(&path, "expectedEtag is given, but the file does not exist"));
        }
        if context.overlay.read(&path)?.hash().etag() != *expected {
            return Err(Error::conflict(&path, "changed since expectedEtag was taken"));
        }
    }
    let bytes_written = args.content.len();
    let content = match args.mode {
        WriteMode::Append if exists => edit::append(&context.overlay.text(&path)?, &args.content),
        _ => args.content,
    };
    context.overlay.write(&path, content)?;
    Ok(WrittenFile {
        etag: context.overlay.read(&path)?.hash().etag(),
        mtime_ms: locate::mtime_ms(&path, &*context.overlay)?,
        bytes_written,
        path: path.to_string(),
    })
}
