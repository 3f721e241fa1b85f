//! Finds exact text, each match with line and columns: `vault.searchText`.

use regex::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::edit::position_of;
use crate::error::{Error, ErrorKind, Result};
use crate::sandbox::{EntryKind, SafePath, View};
use crate::tool::{Context, PathArg};
use crate::tools::shared::arguments::number;
use crate::tools::shared::excerpt;

/// The maximum size in bytes of a file that is searched.
const MAX_BYTES: u64 = 10_000_000;

/// The maximum memory in bytes of a compiled query, which is enough for a page of literal text.
const MAX_REGEX_BYTES: usize = 100_000_000;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) struct MatchesArgs {
    /// The text, or with mode regex the pattern, to find within lines.
    #[schemars(length(min = 1))]
    query: String,
    /// How the query is read; default plain.
    #[serde(default)]
    mode: SearchMode,
    /// Folders and files to search; default: all notes.
    #[serde(default)]
    paths: Vec<PathArg>,
    /// Whether case matters.
    #[serde(default)]
    case_sensitive: bool,
    /// The most matches to return.
    #[serde(default = "number::<50>")]
    #[schemars(range(min = 1, max = 10_000))]
    limit: usize,
    /// How many matches to skip, to go on where an earlier search was cut.
    #[serde(default)]
    offset: usize,
    /// The characters of context around a match.
    #[serde(default = "number::<120>")]
    #[schemars(range(min = 10, max = 2000))]
    snippet_length: usize,
}

/// How the query is read.
// Serializes for the default in the schema.
#[derive(Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum SearchMode {
    /// Literally.
    #[default]
    Plain,
    /// As a regular expression.
    Regex,
}

/// The maximum number of files that a notice about unsearched files lists.
const NAMED_FILES: usize = 5;

/// The matches.
#[derive(Default, Serialize, JsonSchema)]
pub(in crate::tools) struct Matches {
    /// In the order of paths and lines.
    matches: Vec<TextMatch>,
    /// Whether there are more.
    truncated: bool,
    /// Files that could not be searched.
    skipped: Vec<SkippedFile>,
}

/// A match.
#[derive(Serialize, JsonSchema)]
struct TextMatch {
    /// The file.
    #[schemars(extend("x-vault-path" = true))]
    path: String,
    /// The line, from 1.
    line: u32,
    /// The column of its first character, from 0, in UTF-16 units as editors count.
    start: u32,
    /// The column after its last character.
    end: u32,
    /// The text around it as it is in the line, with `...` where it was cut.
    snippet: String,
}

/// A file that could not be searched.
#[derive(Serialize, JsonSchema)]
struct SkippedFile {
    /// The file.
    #[schemars(extend("x-vault-path" = true))]
    path: String,
    /// Why.
    reason: String,
}

/// Finds the matches in the order of paths and lines, up to the limit.
pub(in crate::tools) fn matches(args: MatchesArgs, context: &mut Context<'_, '_>) -> Result<Matches> {
    let pattern = match args.mode {
        SearchMode::Plain => regex::escape(&args.query),
        SearchMode::Regex => args.query,
    };
    let regex = regex_of(&pattern, args.case_sensitive)?;
    let (mut found, mut passed_over) = (Matches::default(), 0);
    'files: for path in files_to_search(&args.paths, context)? {
        context.cancel.check()?;
        let text = match searchable_text(&path, context) {
            Ok(text) => text,
            Err(error) => {
                found.skipped.push(SkippedFile { path: path.to_string(), reason: error.message().to_string() });
                continue;
            }
        };
        for (number, line) in (1..).zip(text.lines()) {
            for at in regex.find_iter(line).filter(|at| !at.is_empty()) {
                if found.matches.len() == args.limit {
                    found.truncated = true;
                    let next = args.offset + found.matches.len();
                    let cut = format!("the matches were cut at {}; offset {next} goes on", found.matches.len());
                    context.overlay.notice(cut);
                    break 'files;
                }
                if passed_over < args.offset {
                    passed_over += 1;
                    continue;
                }
                found.matches.push(TextMatch {
                    path: path.to_string(),
                    line: number,
                    start: position_of(line, at.start()).ch,
                    end: position_of(line, at.end()).ch,
                    snippet: excerpt::within_line(line, &at.range(), args.snippet_length),
                });
            }
        }
    }
    // A plan shows only notices and no outputs.
    if !found.skipped.is_empty() {
        let named: Vec<&str> = found.skipped.iter().take(NAMED_FILES).map(|file| file.path.as_str()).collect();
        let more = if found.skipped.len() > NAMED_FILES { " and more" } else { "" };
        let what = format!("files that could not be searched ({}): {}{more}", found.skipped.len(), named.join(", "));
        context.overlay.notice(what);
    }
    Ok(found)
}

fn regex_of(pattern: &str, case_sensitive: bool) -> Result<Regex> {
    let mut builder = RegexBuilder::new(pattern);
    builder.case_insensitive(!case_sensitive).size_limit(MAX_REGEX_BYTES).build().map_err(|error| {
        Error::new(ErrorKind::InvalidArguments, format!("cannot be searched for: {error}")).at("/query")
    })
}

/// # Errors
/// A file that is too large, cannot be read or is not text.
fn searchable_text(path: &SafePath, context: &Context<'_, '_>) -> Result<String> {
    if context.overlay.stat(path)?.is_some_and(|stat| stat.size > MAX_BYTES) {
        return Err(Error::new(ErrorKind::Unsupported, format!("is larger than {} MB", MAX_BYTES / 1_000_000)));
    }
    context.overlay.text(path)
}

/// Returns the notes at and below paths, each once, or all notes. A file that the call names is searched even if it is
/// not a note.
fn files_to_search(paths: &[PathArg], context: &mut Context<'_, '_>) -> Result<Vec<SafePath>> {
    let mut files = if paths.is_empty() { notes_below(None, context)? } else { Vec::new() };
    for path in paths {
        let path = context.path(path)?;
        match context.overlay.stat(&path)? {
            None => return Err(context.missing(&path)),
            Some(stat) if stat.kind == EntryKind::Folder => {
                context.notice_if_left_out(&path)?;
                files.extend(notes_below(Some(&path), context)?);
            }
            Some(_) => files.push(path),
        }
    }
    files.sort();
    files.dedup();
    Ok(files)
}

/// Returns the notes that may be read, in the order of their paths.
fn notes_below(folder: Option<&SafePath>, context: &Context<'_, '_>) -> Result<Vec<SafePath>> {
    let listing = context.listing()?;
    let entries = context.overlay.walk(folder)?.into_iter();
    let notes =
        entries.filter(|entry| entry.stat.kind == EntryKind::File && entry.path.is_note() && listing.has(entry));
    Ok(notes.map(|entry| entry.path).collect())
}
