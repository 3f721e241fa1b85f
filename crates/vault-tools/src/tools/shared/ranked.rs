//! Finds the notes that match a query best, by name, words and meaning, for `search_notes` and `vault_search`.

use std::time::Duration;

use vault_index::{Hit, Hits, Index, Mode, Query, SyncOptions};

use crate::error::Result;
use crate::sandbox::{SafePath, View};
use crate::tool::Context;

/// The time that a search spends on missing vectors, if it is enough for all of them.
const EMBED_FOR: Duration = Duration::from_secs(1);

/// Notes, each with its best passage.
pub(in crate::tools) type RankedNotes = Vec<(SafePath, Hit)>;

/// Returns the best of the notes that may be read, and notices about what the index lacks. A query sees the disk:
/// within a plan this is the vault before the plan, without the notes that earlier steps moved or deleted.
pub(in crate::tools) fn ranked(
    mut query: Query,
    limit: usize,
    context: &mut Context<'_, '_>,
) -> Result<(RankedNotes, Vec<String>)> {
    // Denied notes are removed after the search, so the search is repeated with a higher limit until there are enough.
    query.limit = limit;
    loop {
        let (hits, is_current) = search(&query, context)?;
        let is_complete = hits.results.len() < query.limit;
        let notices = notices(&hits, is_current);
        let mut found = Vec::with_capacity(hits.results.len());
        for hit in hits.results {
            let Some(path) = SafePath::found(hit.path.clone()) else { continue };
            if context.permits(&path) && (!context.overlay.is_changed() || context.overlay.exists(&path)?) {
                found.push((path, hit));
            }
        }
        if is_complete || found.len() >= limit {
            found.truncate(limit);
            found.iter().for_each(|(path, _)| context.overlay.bind(path));
            return Ok((found, notices));
        }
        query.limit *= 4;
    }
}

/// Returns the result of the index, and whether the index was updated.
fn search(query: &Query, context: &Context<'_, '_>) -> Result<(Hits, bool)> {
    let (index, is_current) = context.vault.index_for_ranking()?;
    let hits = index.search(query)?;
    if hits.pending == 0 || context.vault.has_database() {
        return Ok((hits, is_current));
    }
    make_vectors(index, context)?;
    Ok((index.search(query)?, is_current))
}

/// Computes missing vectors in the index file, if a short time is enough for all of them.
fn make_vectors(index: &Index, context: &Context<'_, '_>) -> Result<()> {
    let mut options = SyncOptions::new().vectors_within(EMBED_FOR).wait(Duration::ZERO);
    (options.deadline, options.cancel) = (context.cancel.deadline, context.cancel.flag);
    match index.sync_with(&options) {
        // Do not wait for another process that is writing.
        Err(error) if error.kind() == vault_index::ErrorKind::Locked => Ok(()),
        synced => Ok(synced.map(drop)?),
    }
}

/// Returns the index for a search by meaning without a query: with its vectors, if a short time is enough to compute
/// them; otherwise a notice tells which are missing. Beside a database, the index has none: the lines that it names must
/// be those of this folder.
pub(in crate::tools) fn index_with_vectors<'v>(context: &mut Context<'_, 'v>) -> Result<&'v Index> {
    let (index, is_current) = context.vault.index_for_search()?;
    let pending = |index: &Index| Ok::<_, vault_index::Error>(index.searcher()?.nothing(Mode::Semantic));
    let mut hits = pending(index)?;
    if hits.pending > 0 && !context.vault.has_database() {
        make_vectors(index, context)?;
        hits = pending(index)?;
    }
    notices(&hits, is_current).into_iter().for_each(|notice| context.overlay.notice(notice));
    Ok(index)
}

/// Returns notices about what the result lacks.
fn notices(hits: &Hits, is_current: bool) -> Vec<String> {
    let mut notices = Vec::new();
    if !is_current {
        notices.push("another process updates the index, so the newest changes may not be found yet".to_string());
    }
    if hits.unread > 0 {
        let (unread, all) = (hits.unread, hits.indexed + hits.unread);
        notices.push(format!("{unread} of {all} notes are not read yet, so not found; try again later"));
    }
    let pending = hits.pending.saturating_sub(hits.unread);
    if pending > 0 {
        // File titles have vectors too.
        let (pending, all) = (pending.min(hits.passages), hits.passages);
        notices.push(format!("{pending} of {all} passages have no vector yet and are ranked by their words"));
    }
    for read in &hits.substitutions {
        notices.push(format!("searched for {} ({} is in no note)", read.read_as.join(", "), read.word));
    }
    notices
}
