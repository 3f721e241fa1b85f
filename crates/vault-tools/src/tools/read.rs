//! Reads files: `read_note`, `file_read`, `vault.readFile`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::locate;
use crate::error::{ErrorKind, Result};
use crate::sandbox::{SafePath, View};
use crate::tool::{Context, PathArg};

/// The text of a file that exists.
fn read(path: &PathArg, context: &Context<'_, '_>) -> Result<(SafePath, String)> {
    let path = locate::file(path, context)?;
    let text = context.overlay.text(&path)?;
    Ok((path, text))
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct NoteArgs {
    /// The note's path from the vault's root, ending included: `Projects/Garden.md`.
    path: PathArg,
}

pub(super) fn note(args: NoteArgs, context: &mut Context<'_, '_>) -> Result<String> {
    Ok(read(&args.path, context)?.1)
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct FilesArgs {
    /// The files, by their paths as vault_search gives them.
    #[serde(rename = "filePaths")]
    #[schemars(length(min = 1))]
    file_paths: Vec<PathArg>,
}

/// A file, or why it cannot be read.
#[derive(Serialize, JsonSchema)]
pub(super) struct SharedFile {
    /// The requested path.
    path: String,
    /// Its text, or what is wrong.
    content: String,
    /// Its size in bytes; 0 when it cannot be read.
    size: usize,
}

/// A missing file is a result, not an error.
pub(super) fn files(args: FilesArgs, context: &mut Context<'_, '_>) -> Result<Vec<SharedFile>> {
    let mut files = Vec::with_capacity(args.file_paths.len());
    for asked in args.file_paths {
        context.cancel.check()?;
        let path = asked.to_string();
        files.push(match read(&asked, context) {
            Ok((_, content)) => SharedFile { size: content.len(), path, content },
            Err(error) if error.kind() == ErrorKind::NotFound => {
                SharedFile { content: format!("File not found: {path}"), path, size: 0 }
            }
            Err(error) => SharedFile { content: format!("Error reading file: {error}"), path, size: 0 },
        });
    }
    Ok(files)
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct FileArgs {
    /// The file.
    path: PathArg,
    /// The most bytes to return, cut between characters; default all.
    #[schemars(range(min = 1))]
    max_bytes: Option<usize>,
}

/// The file.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct FileText {
    /// Its path.
    path: String,
    /// Its text.
    content: String,
    /// When it was last changed, in milliseconds since 1970; null if not yet written.
    mtime_ms: Option<i64>,
    /// Whether the text was cut.
    truncated: bool,
}

pub(super) fn file(args: FileArgs, context: &mut Context<'_, '_>) -> Result<FileText> {
    let (path, mut content) = read(&args.path, context)?;
    let length = content.len();
    if let Some(limit) = args.max_bytes.filter(|limit| *limit < length) {
        content.truncate(content.floor_char_boundary(limit));
    }
    Ok(FileText {
        truncated: content.len() < length,
        mtime_ms: locate::mtime_ms(&path, &*context.overlay)?,
        path: path.to_string(),
        content,
    })
}
