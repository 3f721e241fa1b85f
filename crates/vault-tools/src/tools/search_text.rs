//! Where a text or a pattern stands in the vault's files, line by line.

use regex::RegexBuilder;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::excerpt;
use crate::error::{Error, ErrorKind, Result};
use crate::sandbox::{EntryKind, SafePath, View};
use crate::tool::{Context, PathArg};

/// Files above this size are not looked into.
const MAX_BYTES: u64 = 10_000_000;

/// A place where it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TextMatch {
    /// The file.
    pub path: String,
    /// The line, from 1.
    pub line: u32,
    /// The column of its first character, from 0, in UTF-16 units as editors count.
    pub start: u32,
    /// The column behind its last character.
    pub end: u32,
    /// The text around it.
    pub snippet: String,
}

/// How the query is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SearchMode {
    /// As it stands.
    #[default]
    Plain,
    /// As a regular expression.
    Regex,
}

/// What is looked for.
#[derive(Debug, Clone)]
pub(super) struct TextQuery {
    pub query: String,
    pub mode: SearchMode,
    pub case_sensitive: bool,
    pub limit: usize,
    pub snippet_length: usize,
}

/// What was found.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(super) struct Matches {
    /// The matches, by path and line.
    matches: Vec<TextMatch>,
    /// Whether there are more.
    truncated: bool,
    /// Files that could not be looked into.
    skipped: Vec<NotSearched>,
}

/// A file that could not be looked into.
#[derive(Debug, Serialize, JsonSchema)]
struct NotSearched {
    /// The file.
    path: String,
    /// Why.
    reason: String,
}

/// The matches in the order of paths and lines, up to the limit.
///
/// Notes are looked into: those at and below `paths`, or all. One that cannot be read keeps nobody from the others.
pub(super) fn search(query: &TextQuery, paths: &[PathArg], context: &Context<'_, '_>) -> Result<Matches> {
    let pattern = match query.mode {
        SearchMode::Plain => regex::escape(&query.query),
        SearchMode::Regex => query.query.clone(),
    };
    let regex = RegexBuilder::new(&pattern).case_insensitive(!query.case_sensitive).build().map_err(|error| {
        Error::new(ErrorKind::InvalidArguments, format!("not a regular expression: {error}")).at("/query")
    })?;
    let mut found_all = Matches::default();
    let Matches { matches, truncated, skipped } = &mut found_all;
    for path in files(paths, context)? {
        context.stop.check()?;
        let text = match text_to_search(&path, context) {
            Ok(text) => text,
            Err(error) => {
                skipped.push(NotSearched { path: path.to_string(), reason: error.message().to_string() });
                continue;
            }
        };
        for (number, line) in (1..).zip(text.lines()) {
            for found in regex.find_iter(line).filter(|found| !found.is_empty()) {
                if matches.len() == query.limit {
                    *truncated = true;
                    return Ok(found_all);
                }
                matches.push(TextMatch {
                    path: path.to_string(),
                    line: number,
                    start: units(&line[..found.start()]),
                    end: units(&line[..found.end()]),
                    snippet: excerpt::around(line, &found.range(), query.snippet_length),
                });
            }
        }
    }
    Ok(found_all)
}

/// The text of a file that is searched.
///
/// # Errors
/// A file that is too large, cannot be read or is no text.
pub(super) fn text_to_search(path: &SafePath, context: &Context<'_, '_>) -> Result<String> {
    if context.overlay.stat(path)?.is_some_and(|stat| stat.size > MAX_BYTES) {
        return Err(Error::new(ErrorKind::Unsupported, format!("is larger than {} MB", MAX_BYTES / 1_000_000)));
    }
    context.overlay.text(path)
}

/// The notes at and below paths, each once; a file that is named is looked into whatever it is.
fn files(paths: &[PathArg], context: &Context<'_, '_>) -> Result<Vec<SafePath>> {
    let mut found = Vec::new();
    let mut below = |folder: Option<&SafePath>| -> Result<()> {
        for entry in context.overlay.walk(folder)? {
            let is_searched = entry.stat.kind == EntryKind::File && entry.path.is_note();
            if is_searched && context.permits(&entry.path) {
                found.push(entry.path);
            }
        }
        Ok(())
    };
    if paths.is_empty() {
        below(None)?;
    }
    let mut named = Vec::new();
    for path in paths {
        let path = context.path(path)?;
        match context.overlay.stat(&path)? {
            None => return Err(context.missing(&path)),
            Some(stat) if stat.kind == EntryKind::Folder => below(Some(&path))?,
            Some(_) => named.push(path),
        }
    }
    found.extend(named);
    found.sort();
    found.dedup();
    Ok(found)
}

/// The length of a text in UTF-16 units.
fn units(text: &str) -> u32 {
    u32::try_from(text.encode_utf16().count()).unwrap_or(u32::MAX)
}
