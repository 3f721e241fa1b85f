//! Finds the file that an argument means: existing notes, new notes, and their times.

use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use serde_json::Value;
use vault_index::VaultPath;
use vault_index::note::{Note, ParseOptions, parse};

use crate::content::Content;
use crate::error::{Error, ErrorKind, Result};
use crate::sandbox::{EntryKind, SafePath, View};
use crate::tool::{Context, PathArg};

/// The path of an existing file.
///
/// # Errors
/// Not found, with the nearest paths; a folder.
pub(super) fn file(path: &PathArg, context: &Context<'_, '_>) -> Result<SafePath> {
    let path = context.path(path)?;
    match context.overlay.stat(&path)? {
        Some(stat) if stat.kind == EntryKind::Folder => {
            Err(Error::new(ErrorKind::InvalidArguments, "this is a folder, not a file")
                .at(path)
                .with_remedy("name a file in it"))
        }
        Some(_) => Ok(path),
        None => Err(context.missing(&path)),
    }
}

/// The path of an existing file or folder.
///
/// # Errors
/// Not found, with the nearest paths.
pub(super) fn existing(path: &PathArg, context: &Context<'_, '_>) -> Result<SafePath> {
    let path = context.path(path)?;
    if context.overlay.exists(&path)? { Ok(path) } else { Err(context.missing(&path)) }
}

/// The path of a note to write: it ends in `.md` or `.canvas`, so that it is recognized as a note.
///
/// # Errors
/// Another extension, with the path that was probably meant.
pub(super) fn new_note(path: &PathArg, context: &Context<'_, '_>) -> Result<SafePath> {
    let path = context.path(path)?;
    if path.is_note() {
        return Ok(path);
    }
    Err(Error::new(ErrorKind::InvalidArguments, "a note's path ends in .md")
        .at(&path)
        .with_remedy(format!("write {path}.md")))
}

/// The path of an existing Markdown note; `what` is the error for other files.
///
/// # Errors
/// As [`file`]; a file that is not Markdown.
pub(super) fn markdown(path: &PathArg, what: &str, context: &Context<'_, '_>) -> Result<SafePath> {
    let path = file(path, context)?;
    match path.is_markdown() {
        true => Ok(path),
        false => Err(Error::new(ErrorKind::InvalidArguments, what).at(path).with_remedy("name a .md file")),
    }
}

/// An existing note, parsed.
///
/// # Errors
/// As [`file`]; a file that is not a note.
pub(super) fn note(path: &PathArg, context: &Context<'_, '_>) -> Result<(SafePath, Note)> {
    let path = file(path, context)?;
    if !path.is_note() {
        return Err(Error::new(ErrorKind::InvalidArguments, "this file is not a note")
            .at(path)
            .with_remedy("name a .md file"));
    }
    let content = context.overlay.read(&path)?;
    let note = parsed(&path, &content);
    Ok((path, note))
}

/// A file as a note.
pub(super) fn parsed(path: &SafePath, content: &Content) -> Note {
    parse(path.vault_path(), content.bytes(), &ParseOptions::default())
}

/// When a file was last changed, in milliseconds since 1970; `None` if it is not yet written.
pub(super) fn mtime_ms(path: &SafePath, view: &dyn View) -> Result<Option<i64>> {
    Ok(view.stat(path)?.and_then(|stat| stat.modified).map(millis))
}

/// A moment in milliseconds since 1970.
pub(super) fn millis(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_millis()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_millis()).unwrap_or(i64::MAX),
    }
}

/// A moment as RFC 3339, to the second.
pub(super) fn rfc3339(time: SystemTime) -> Option<String> {
    Timestamp::try_from(time).ok().map(|time| format!("{time:.0}"))
}

/// Fills in the modification times that were not known before the files were written: `mtimeMs` beside a `path`.
pub(crate) fn fill_in_times(output: &mut Value, vault: &dyn View) {
    match output {
        Value::Array(items) => items.iter_mut().for_each(|item| fill_in_times(item, vault)),
        Value::Object(fields) => {
            let path = fields.get("path").and_then(Value::as_str).and_then(VaultPath::new).and_then(SafePath::found);
            if let (Some(Value::Null), Some(path)) = (fields.get("mtimeMs"), path) {
                fields.insert("mtimeMs".into(), mtime_ms(&path, vault).ok().flatten().into());
            }
            fields.values_mut().for_each(|value| fill_in_times(value, vault));
        }
        _ => {}
    }
}
