//! Reads files: `read_note`, `file_read`, `vault.readFile`.

use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::content::Content;
use crate::edit;
use crate::error::{Error, ErrorKind, Result};
use crate::sandbox::{SafePath, View};
use crate::tool::{Context, PathArg};
use crate::tools::shared::arguments::number;
use crate::tools::shared::locate;

/// The default limit of `read_note` in bytes: some 10,000 tokens of English.
const DEFAULT_BYTES: usize = 40_000;

/// The part of a file to read.
enum Part<'a> {
    Whole,
    Section(&'a str),
    Block(&'a str),
    Lines(&'a str),
    /// Its headings, in place of its text.
    Outline,
}

/// The part of a file that was read, up to the limit of bytes.
struct TextPart {
    /// The version of the whole file, with which a later write is compared.
    version: String,
    /// The line at which the text begins, from 1.
    first_line: u32,
    text: String,
    bytes_left: usize,
    /// The offset at which to continue; `None` at the end.
    next_offset: Option<usize>,
}

/// Reads a part of a file from an offset within the part, at most `max_bytes`. All three tools use it.
fn read(
    path: &SafePath,
    part: &Part<'_>,
    offset: usize,
    max_bytes: Option<usize>,
    context: &Context<'_, '_>,
) -> Result<TextPart> {
    let text = context.overlay.text(path)?;
    let content = Content::from(text.as_str());
    context.vault.versions().keep(&content);
    let found = match part {
        Part::Section(heading) => edit::find_section(&text, heading).map(|found| found.heading.start..found.body.end),
        Part::Block(id) => edit::find_block(&text, id),
        Part::Lines(lines) => edit::find_lines(&text, lines),
        Part::Whole | Part::Outline => Ok(0..text.len()),
    };
    let found = found.map_err(|error| error.at(path))?;
    let outline = matches!(part, Part::Outline).then(|| edit::outline(&text));
    let part = outline.as_deref().unwrap_or(&text[found.clone()]);
    let cut = cut(part, offset, max_bytes);
    let bytes_left = part.len() - cut.end;
    Ok(TextPart {
        version: content.hash().etag(),
        first_line: if outline.is_some() { 1 } else { edit::position_of(&text, found.start + cut.start).line + 1 },
        bytes_left,
        next_offset: (bytes_left > 0).then_some(cut.end),
        text: part[cut].to_owned(),
    })
}

/// Returns the bytes of a text from an offset, at most `max_bytes`, cut between characters but never to an empty range.
fn cut(text: &str, offset: usize, max_bytes: Option<usize>) -> Range<usize> {
    let start = text.floor_char_boundary(offset);
    let end = text.floor_char_boundary(start.saturating_add(max_bytes.unwrap_or(usize::MAX)));
    let first = text[start..].chars().next().map_or(start, |first| start + first.len_utf8());
    match max_bytes {
        // When several notes are read, no bytes may remain for this one.
        Some(0) => start..start,
        _ => start..end.max(first),
    }
}

#[derive(Default, Deserialize, JsonSchema)]
pub(in crate::tools) struct NoteArgs {
    /// The note's path, `Projects/Garden.md`, or its name as in a link: `Garden`, `[[Garden]]`, `Garden#Roses`.
    path: Option<PathArg>,
    /// In place of path: several notes. max_bytes is of all of them.
    #[serde(default)]
    paths: Vec<PathArg>,
    /// Read only the section under this heading: `Plan`, `## Plan` or `Work#Plan`.
    heading: Option<String>,
    /// Read only the block with this id, as in `[[Note#^id]]`.
    block: Option<String>,
    /// Read only these lines: `3-9`, `3-` or `3`.
    lines: Option<String>,
    /// List the headings instead, each with its line and the bytes of its section.
    #[serde(default)]
    outline: bool,
    /// Bytes to skip: next_offset of the answer before.
    #[serde(default)]
    offset: usize,
    /// The most bytes to return.
    #[serde(default = "number::<DEFAULT_BYTES>")]
    #[schemars(range(min = 1))]
    max_bytes: usize,
}

/// A note, or several.
#[derive(Serialize, JsonSchema)]
#[schemars(extend("anyOf" = [{ "required": ["path", "version", "content"] }, { "required": ["notes"] }]))]
pub(in crate::tools) struct Notes {
    #[serde(flatten)]
    one: Option<NoteText>,
    /// Those of paths, in their order.
    #[serde(skip_serializing_if = "Option::is_none")]
    notes: Option<Vec<OneOfNotes>>,
}

/// A note of several, or why it cannot be read.
#[derive(Serialize, JsonSchema)]
struct OneOfNotes {
    #[serde(flatten)]
    note: Option<NoteText>,
    /// The path that was asked for, where there is no such note.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-vault-path" = true))]
    asked: Option<String>,
    /// Why it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// A note, or the part of it that was asked for.
#[derive(Serialize, JsonSchema)]
pub(in crate::tools) struct NoteText {
    /// Its path.
    #[schemars(extend("x-vault-path" = true))]
    path: String,
    /// The version of the whole note: give it as expected_version when you write.
    version: String,
    /// The line at which the text begins, from 1.
    first_line: u32,
    /// The bytes that are left after it.
    bytes_left: usize,
    /// The offset to go on with; null at the end.
    next_offset: Option<usize>,
    /// The text.
    content: String,
}

pub(in crate::tools) fn notes(mut args: NoteArgs, context: &mut Context<'_, '_>) -> Result<Notes> {
    let paths = std::mem::take(&mut args.paths);
    let is_part = args.heading.is_some() || args.block.is_some() || args.lines.is_some() || args.outline;
    let wrong = |what: &str| Error::new(ErrorKind::InvalidArguments, what);
    match (&args.path, paths.is_empty()) {
        (Some(_), true) => Ok(Notes { one: Some(note(args, context)?), notes: None }),
        (None, true) => Err(wrong("is missing; expected a text (arguments of read_note)").at("/path")),
        (Some(_), false) => Err(wrong("path and paths exclude each other").with_remedy("give one of them")),
        (None, false) if is_part || args.offset > 0 => {
            Err(wrong("a part is read of one note").at("/paths").with_remedy("give path in place of paths"))
        }
        (None, false) => several(paths, args.max_bytes, context),
    }
}

/// Reads whole notes, up to the limit of bytes. An unreadable note does not prevent reading the others.
fn several(paths: Vec<PathArg>, max_bytes: usize, context: &mut Context<'_, '_>) -> Result<Notes> {
    let mut left = max_bytes;
    let mut notes = Vec::with_capacity(paths.len());
    for path in paths {
        context.cancel.check()?;
        let asked = path.to_string();
        let args = NoteArgs { path: Some(path), max_bytes: left, ..NoteArgs::default() };
        notes.push(match note(args, context) {
            Ok(note) => {
                left = left.saturating_sub(note.content.len());
                OneOfNotes { note: Some(note), asked: None, error: None }
            }
            Err(error) => OneOfNotes { note: None, asked: Some(asked), error: Some(error.to_string()) },
        });
    }
    Ok(Notes { one: None, notes: Some(notes) })
}

fn note(mut args: NoteArgs, context: &mut Context<'_, '_>) -> Result<NoteText> {
    let parts = [args.heading.is_some(), args.block.is_some(), args.lines.is_some(), args.outline];
    if parts.iter().filter(|part| **part).count() > 1 {
        return Err(Error::new(ErrorKind::InvalidArguments, "heading, block, lines and outline exclude each other")
            .with_remedy("give one of them"));
    }
    let asked = args.path.take().unwrap_or_default();
    let (path, subpath) = locate::linked(&asked, context)?;
    if !parts.contains(&true) {
        match subpath.as_deref().map(|subpath| (subpath, subpath.strip_prefix('^'))) {
            Some((_, Some(id))) => args.block = Some(id.to_owned()),
            Some((heading, None)) => args.heading = Some(heading.to_owned()),
            None => {}
        }
    }
    let part = match (&args.heading, &args.block, &args.lines) {
        (Some(heading), _, _) => Part::Section(heading),
        (_, Some(id), _) => Part::Block(id),
        (_, _, Some(lines)) => Part::Lines(lines),
        _ if args.outline => Part::Outline,
        _ => Part::Whole,
    };
    let TextPart { version, first_line, text, bytes_left, next_offset } =
        read(&path, &part, args.offset, Some(args.max_bytes), context)?;
    if let Some(offset) = next_offset {
        context.overlay.notice(format!("{path}: {bytes_left} bytes are left; offset {offset} goes on"));
    }
    Ok(NoteText { path: path.to_string(), version, first_line, bytes_left, next_offset, content: text })
}

#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct FilesArgs {
    /// The files, by their paths as vault_search gives them.
    #[serde(rename = "filePaths")]
    #[schemars(length(min = 1))]
    file_paths: Vec<PathArg>,
}

/// A file, or why it cannot be read.
#[derive(Serialize, JsonSchema)]
pub(in crate::tools) struct SharedFile {
    /// The requested path.
    #[schemars(extend("x-vault-path" = true))]
    path: String,
    /// Its text, or what is wrong.
    content: String,
    /// Its size in bytes; 0 when it cannot be read.
    size: usize,
}

/// Reads files. A missing file is a result, not an error.
pub(in crate::tools) fn files(args: FilesArgs, context: &mut Context<'_, '_>) -> Result<Vec<SharedFile>> {
    let mut files = Vec::with_capacity(args.file_paths.len());
    for asked in args.file_paths {
        context.cancel.check()?;
        let path = asked.to_string();
        let text = context.path(&asked).and_then(|path| {
            // A person approved these paths, not the files that a name may refer to.
            match context.overlay.exists(&path)? {
                true => read(&path, &Part::Whole, 0, None, context),
                false => Err(context.missing_file(&path)),
            }
        });
        files.push(match text {
            Ok(TextPart { text: content, .. }) => SharedFile { size: content.len(), path, content },
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
pub(in crate::tools) struct FileArgs {
    /// The file.
    path: PathArg,
    /// The most bytes to return, cut between characters; default all.
    #[schemars(range(min = 1))]
    max_bytes: Option<usize>,
    /// Bytes to skip: nextOffset of the answer before.
    #[serde(default)]
    offset: usize,
}

/// The file.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) struct FileText {
    /// Its path.
    #[schemars(extend("x-vault-path" = true))]
    path: String,
    /// Its text.
    content: String,
    /// When it was last changed, in milliseconds since 1970; null if not yet written.
    mtime_ms: Option<i64>,
    /// Whether more follows.
    truncated: bool,
    /// The offset to go on with; null at the end.
    next_offset: Option<usize>,
    /// The hash of the whole content.
    etag: String,
}

pub(in crate::tools) fn file(args: FileArgs, context: &mut Context<'_, '_>) -> Result<FileText> {
    let (path, _) = locate::linked(&args.path, context)?;
    let part = read(&path, &Part::Whole, args.offset, args.max_bytes, context)?;
    Ok(FileText {
        path: path.to_string(),
        content: part.text,
        mtime_ms: locate::mtime_ms(&path, &*context.overlay)?,
        truncated: part.bytes_left > 0,
        next_offset: part.next_offset,
        etag: part.version,
    })
}
