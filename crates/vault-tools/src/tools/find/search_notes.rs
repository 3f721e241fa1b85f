//! Finds the notes that match a query best, by name, words and meaning: `search_notes`, `vault_search`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vault_index::{Hit, Query, matched_ranges};

use crate::error::{Error, ErrorKind, Result};
use crate::sandbox::{SafePath, View};
use crate::tool::Context;
use crate::tools::shared::arguments::number;
use crate::tools::shared::excerpt;
use crate::tools::shared::note_filter::NoteFilter;
use crate::tools::shared::ranked::ranked;

/// The maximum number of notes in one result, and of files in that of `vault_search`.
const MAX_NOTES: usize = 100;
const MAX_FILES: usize = 50;

/// The number of characters of a preview.
const PREVIEW: usize = 200;

#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct Args {
    /// What to find: a question or topic in plain words. Also `"exact phrase"`, `-word`, `/regex/`, `OR`, `tag:x`, `path:x`.
    query: String,
    /// The most notes to return, up to 100.
    #[serde(default = "number::<10>")]
    #[schemars(range(min = 1))]
    top_k: usize,
    /// Which notes to rank.
    filter: Option<NoteFilter>,
}

/// Returns the number of results to return, which is limited. A lower number than requested is reported.
fn capped(wanted: usize, most: usize, what: &str, context: &mut Context<'_, '_>) -> usize {
    if most < wanted {
        context.overlay.notice(format!("{most} {what} at most are returned, not {wanted}"));
    }
    wanted.min(most)
}

/// A note and its best passage.
#[derive(Serialize, JsonSchema)]
pub(in crate::tools) struct FoundNote {
    /// The note.
    #[schemars(extend("x-vault-path" = true))]
    path: String,
    /// Its title.
    title: String,
    /// The heading above the passage.
    heading: Option<String>,
    /// The first line of the passage, from 1.
    line: u32,
    /// The passage.
    chunk: String,
    /// The relevance, 0 to 1.
    score: f32,
    /// Whether it is so low that the note may have nothing to do with the query.
    weak: bool,
}

/// Finds notes. Those whose score is below the threshold of the index come last, marked as weak.
pub(in crate::tools) fn search_notes(args: Args, context: &mut Context<'_, '_>) -> Result<Vec<FoundNote>> {
    let filter = args.filter.unwrap_or_default();
    if args.query.trim().is_empty() && filter.is_empty() {
        return Err(Error::new(ErrorKind::InvalidArguments, "the query is empty")
            .at("/query")
            .with_remedy("say what to find, or give a filter"));
    }
    let top_k = capped(args.top_k, MAX_NOTES, "notes", context);
    let mut query = Query::parse_at(args.query.trim(), context.now)
        .map_err(|error| Error::new(ErrorKind::InvalidArguments, error.to_string()).at("/query"))?;
    query.filter = filter.for_index(context.now)?;
    if !query.unknown_operators.is_empty() {
        let words = query.unknown_operators.join(", ");
        context.overlay.notice(format!("searched as plain words, because there is no such operator: {words}"));
    }
    let mut found: Vec<FoundNote> = Vec::new();
    let mut notices: Vec<String> = Vec::new();
    for (is_weak, query) in [(false, query.clone()), (true, query.min_score(0.0))] {
        if found.len() < top_k {
            let (notes, lacks) = ranked(query, top_k, context)?;
            // The second search reports what the index lacks by now.
            notices = lacks;
            let notes = notes.into_iter().map(|(path, hit)| FoundNote::new(&path, hit, is_weak));
            let new: Vec<FoundNote> = notes.filter(|note| found.iter().all(|other| other.path != note.path)).collect();
            found.extend(new);
        }
    }
    found.truncate(top_k);
    notices.into_iter().for_each(|notice| context.overlay.notice(notice));
    Ok(found)
}

impl FoundNote {
    fn new(path: &SafePath, hit: Hit, weak: bool) -> Self {
        Self {
            path: path.to_string(),
            title: hit.title,
            heading: hit.headings.last().cloned(),
            line: hit.start_line,
            chunk: hit.text,
            score: hit.score,
            weak,
        }
    }
}

#[derive(Deserialize, JsonSchema)]
pub(in crate::tools) struct FilesArgs {
    /// What to find, in plain words.
    #[schemars(length(min = 1))]
    query: String,
    /// The most files to return, up to 50.
    #[serde(default = "number::<10>")]
    #[schemars(range(min = 1))]
    limit: usize,
}

/// A file that was found.
#[derive(Serialize, JsonSchema)]
pub(in crate::tools) struct FoundFile {
    /// The file.
    #[schemars(extend("x-vault-path" = true))]
    path: String,
    /// Its name without extension.
    basename: String,
    /// How often the words that were found stand in its name and text; 0 for one that is only near in meaning.
    matches: usize,
    /// The part that fits best.
    preview: String,
}

pub(in crate::tools) fn files(args: FilesArgs, context: &mut Context<'_, '_>) -> Result<Vec<FoundFile>> {
    let query = args.query.trim();
    if query.is_empty() {
        return Err(Error::new(ErrorKind::InvalidArguments, "the query is empty").at("/query"));
    }
    let limit = capped(args.limit, MAX_FILES, "files", context);
    let mut files = Vec::new();
    let (found, notices) = ranked(Query::literal(query), limit, context)?;
    notices.into_iter().for_each(|notice| context.overlay.notice(notice));
    for (path, hit) in found {
        context.cancel.check()?;
        let text = context.overlay.text(&path).unwrap_or_default();
        let terms = &hit.why.terms;
        let matches = matched_ranges(path.stem(), terms).len() + matched_ranges(&text, terms).len();
        let preview = match matched_ranges(&hit.text, terms).first() {
            Some(first) => excerpt::around(&hit.text, first, PREVIEW),
            None => excerpt::beginning(&hit.text, PREVIEW),
        };
        files.push(FoundFile { path: path.to_string(), basename: path.stem().to_string(), matches, preview });
    }
    Ok(files)
}
