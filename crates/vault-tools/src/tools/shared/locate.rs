//! Finds the file that an argument refers to: existing notes, new notes, and their times.

use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use serde_json::Value;
use vault_index::VaultPath;
use vault_index::links::ranked;
use vault_index::note::{LinkText, Note, ParseOptions, parse, split_link};

use crate::content::Content;
use crate::error::{Error, ErrorKind, Result};
use crate::sandbox::{EntryKind, SafePath, View};
use crate::tool::{Context, PathArg};

/// The maximum number of files with the same name that an error lists.
const NAMED: usize = 5;

/// Returns the file with a path, or with a name as in a link that only one file has: `Compost`, `[[Compost|heap]]`.
///
/// # Errors
/// Not found, with the nearest paths; a folder; a name that several files have.
pub(in crate::tools) fn file(path: &PathArg, context: &Context<'_, '_>) -> Result<SafePath> {
    let (link, asked) = match look_up(path, context)? {
        Lookup::File(path) => return Ok(path),
        Lookup::Link(link, asked) => (link, asked),
    };
    match &candidates(&link.path, context)?[..] {
        [] => Err(nothing_there(asked, context)),
        [only] => Ok(only.clone()),
        several => {
            let named: Vec<String> = several.iter().take(NAMED).map(ToString::to_string).collect();
            let what = format!("{} files have this name: {}", several.len(), named.join(", "));
            Err(Error::new(ErrorKind::Ambiguous, what).at(path.as_str()).with_remedy("give the path of one of them"))
        }
    }
}

/// Like [`file`], for a tool that only reads: of several files, it returns the one to which a link in the vault's root
/// leads. Also returns the heading or `^block` in the link.
///
/// # Errors
/// Not found, with the nearest paths; a folder.
pub(in crate::tools) fn linked(path: &PathArg, context: &Context<'_, '_>) -> Result<(SafePath, Option<String>)> {
    match look_up(path, context)? {
        Lookup::File(path) => Ok((path, None)),
        Lookup::Link(link, asked) => match candidates(&link.path, context)?.into_iter().next() {
            Some(best) => Ok((best, link.subpath)),
            None => Err(nothing_there(asked, context)),
        },
    }
}

enum Lookup {
    File(SafePath),
    /// A link, and the path if it is one, at which there is no file.
    Link(LinkText, Result<SafePath>),
}

fn look_up(path: &PathArg, context: &Context<'_, '_>) -> Result<Lookup> {
    let asked = context.path(path);
    let text = path.as_str().trim();
    let inner = text.strip_prefix("[[").and_then(|text| text.strip_suffix("]]"));
    match &asked {
        Ok(path) => {
            if context.overlay.stat(path)?.is_some_and(|stat| stat.kind == EntryKind::File) {
                return Ok(Lookup::File(path.clone()));
            }
        }
        // Not a path, but possibly a link.
        Err(error) if error.kind() == ErrorKind::InvalidPath && (inner.is_some() || text.contains('#')) => {}
        Err(error) => return Err(error.clone()),
    }
    let link = split_link(inner.unwrap_or(text));
    // A link with dots could lead back into the vault.
    let has_dots = link.path.split('/').any(|name| matches!(name, "." | ".."));
    if link.path.is_empty() || has_dots || link.path.contains('\\') {
        return Err(asked.map_or_else(|error| error, |path| context.missing_file(&path)));
    }
    Ok(Lookup::Link(link, asked))
}

/// Returns the files to which a link in the vault's root could lead and that the policy permits, the best first.
fn candidates(link: &str, context: &Context<'_, '_>) -> Result<Vec<SafePath>> {
    let Some(root) = VaultPath::new("-.md") else { return Ok(Vec::new()) };
    let names = context.names()?;
    let found = ranked(names, link, &root).into_iter().filter_map(|id| SafePath::found(names.path(id)?.clone()));
    Ok(found.filter(|path| context.permits(path)).collect())
}

fn nothing_there(asked: Result<SafePath>, context: &Context<'_, '_>) -> Error {
    match asked {
        Ok(path) if context.overlay.exists(&path).unwrap_or(false) => {
            Error::new(ErrorKind::InvalidArguments, "this is a folder, not a file")
                .at(path)
                .with_remedy("name a file in it")
        }
        Ok(path) => context.missing_file(&path),
        Err(error) => error,
    }
}

/// Returns the path of an existing file or folder.
///
/// # Errors
/// Not found, with the nearest paths.
pub(in crate::tools) fn existing(path: &PathArg, context: &Context<'_, '_>) -> Result<SafePath> {
    let path = context.path(path)?;
    if context.overlay.exists(&path)? { Ok(path) } else { Err(context.missing(&path)) }
}

/// Returns the path of a note to write: it ends in `.md` or `.canvas`, so that it is recognized as a note.
///
/// # Errors
/// Another extension, with the path that was probably intended.
pub(in crate::tools) fn new_note(path: &PathArg, context: &Context<'_, '_>) -> Result<SafePath> {
    let path = context.path(path)?;
    if path.is_note() {
        return Ok(path);
    }
    Err(Error::new(ErrorKind::InvalidArguments, "a note's path ends in .md")
        .at(&path)
        .with_remedy(format!("write {path}.md")))
}

/// Returns the path of an existing Markdown note; `what` is the error for other files.
///
/// # Errors
/// The errors of [`file`]; a file that is not Markdown.
pub(in crate::tools) fn markdown(path: &PathArg, what: &str, context: &Context<'_, '_>) -> Result<SafePath> {
    let path = file(path, context)?;
    match path.is_markdown() {
        true => Ok(path),
        false => Err(Error::new(ErrorKind::InvalidArguments, what).at(path).with_remedy("name a .md file")),
    }
}

/// Reads and parses an existing note.
///
/// # Errors
/// The errors of [`linked`]; a file that is not a note.
pub(in crate::tools) fn note(path: &PathArg, context: &Context<'_, '_>) -> Result<(SafePath, Note)> {
    let (path, _) = linked(path, context)?;
    if !path.is_note() {
        return Err(Error::new(ErrorKind::InvalidArguments, "this file is not a note")
            .at(path)
            .with_remedy("name a .md file"));
    }
    let content = context.overlay.read(&path)?;
    let note = parsed(&path, &content);
    Ok((path, note))
}

/// Parses a file as a note.
pub(in crate::tools) fn parsed(path: &SafePath, content: &Content) -> Note {
    parse(path.vault_path(), content.bytes(), &ParseOptions::default())
}

/// Returns the time of a file's last change, in milliseconds since 1970; `None` if it is not yet written.
pub(in crate::tools) fn mtime_ms(path: &SafePath, view: &dyn View) -> Result<Option<i64>> {
    Ok(view.stat(path)?.and_then(|stat| stat.modified).map(millis))
}

/// Converts a time to milliseconds since 1970.
pub(in crate::tools) fn millis(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_millis()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_millis()).unwrap_or(i64::MAX),
    }
}

/// Formats a time as RFC 3339, to the second.
pub(in crate::tools) fn rfc3339(time: SystemTime) -> Option<String> {
    Timestamp::try_from(time).ok().map(|time| format!("{time:.0}"))
}

/// Fills in the modification times that were unknown before the files were written: `mtimeMs` beside a `path`.
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
