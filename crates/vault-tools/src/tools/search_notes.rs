//! Finds the notes that fit a question best, by meaning and by words: `search_notes`.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vault_index::{Query, SyncOptions};

use super::arguments::number;
use super::note_filter::NoteFilter;
use crate::error::{Error, ErrorKind, Result};
use crate::sandbox::{SafePath, View};
use crate::tool::Context;

/// How long a search makes missing vectors, where that is enough for all of them.
const EMBED_FOR: Duration = Duration::from_secs(1);

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// What to find, in plain words: a question, a topic, a phrase.
    query: String,
    /// The most notes to return.
    #[serde(default = "number::<10>")]
    #[schemars(range(min = 1, max = 100))]
    top_k: usize,
    /// Which notes to rank.
    filter: Option<NoteFilter>,
}

/// A note and its best passage.
#[derive(Serialize, JsonSchema)]
pub(super) struct FoundNote {
    /// The note.
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
}

/// Searches the disk. Within a plan that is the vault before the plan, without the notes that earlier steps moved or
/// deleted.
pub(super) fn search_notes(args: Args, context: &mut Context<'_, '_>) -> Result<Vec<FoundNote>> {
    let filter = args.filter.unwrap_or_default();
    if args.query.trim().is_empty() && filter.is_empty() {
        return Err(Error::new(ErrorKind::InvalidArguments, "the query is empty")
            .at("/query")
            .with_remedy("say what to find, or give a filter"));
    }
    // Denied notes are left out after the search, so it is repeated with a higher limit until there are enough.
    let mut limit = args.top_k;
    let mut query = Query::literal(args.query.trim());
    query.filter = filter.for_index(context.now)?;
    loop {
        query.limit = limit;
        let (found, complete) = search(&query, context)?;
        if complete || found.len() >= args.top_k {
            return Ok(found.into_iter().take(args.top_k).collect());
        }
        limit *= 4;
    }
}

/// The permitted results, and whether the search has no more.
fn search(query: &Query, context: &Context<'_, '_>) -> Result<(Vec<FoundNote>, bool)> {
    let index = context.vault.index()?;
    let mut hits = index.search(query)?;
    if hits.pending > 0 {
        let mut options = SyncOptions::new().vectors_within(EMBED_FOR).wait(Duration::ZERO);
        (options.deadline, options.cancel) = (context.cancel.deadline, context.cancel.flag);
        match index.sync_with(&options) {
            // Who writes now is not waited for.
            Err(error) if error.kind() == vault_index::ErrorKind::Locked => {}
            synced => _ = synced?,
        }
        hits = index.search(query)?;
    }
    let complete = hits.results.len() < query.limit;
    let mut found = Vec::with_capacity(hits.results.len());
    for hit in hits.results {
        let Ok(path) = SafePath::new(hit.path.as_str()) else { continue };
        if !context.permits(&path) || (context.overlay.is_changed() && !context.overlay.exists(&path)?) {
            continue;
        }
        context.overlay.bind(&path);
        found.push(FoundNote {
            path: path.to_string(),
            title: hit.title,
            heading: hit.headings.last().cloned(),
            line: hit.start_line,
            chunk: hit.text,
            score: hit.score,
        });
    }
    Ok((found, complete))
}
