//! Creates hits from ranked passages: texts, headings, titles and tags.

use std::collections::HashSet;

use jiff::Timestamp;

use crate::error::{Error, ErrorKind, Result};
use crate::path::{FileId, FileKind};
use crate::search::excerpt::best_match;
use crate::search::hit::{Hit, Hits, NearMiss, ScoreParts};
use crate::search::query::Mode;
use crate::search::rank::fuse::{ScoredPassage, Weights};
use crate::search::snapshot::Snapshot;
use crate::store::ReadStore;

/// Creates the hit of a passage, with its text and the parts of its score.
pub(super) fn hit(store: &dyn ReadStore, scored: &ScoredPassage, terms: Vec<String>, weights: Weights) -> Result<Hit> {
    let missing =
        || Error::new(ErrorKind::Damaged, "a passage has no text").with_remedy("run `vault-index check --repair`");
    let text = store.passage_text(scored.passage)?.ok_or_else(missing)?;
    let note = store.note_meta(scored.note)?.ok_or_else(missing)?;
    let why = ScoreParts {
        semantic: scored.semantic,
        estimated: scored.estimated,
        title: scored.title,
        lexical: scored.lexical,
        terms,
        weights: (weights.semantic, weights.lexical),
        name: scored.name,
        least: scored.least,
        repeated: scored.repeated,
        rerank: None,
    };
    let (mut line, mut headings) = (text.line, text.headings);
    if let Some(at) = best_match(&text.text, &why.terms) {
        // The first line is the first one that is not blank.
        let above = text.text[..at].trim_start().matches('\n').count() as u32;
        // The cards of a canvas have lines that do not exist in its file.
        line = (text.line + above).min(text.end_line);
        if note.path.kind() == FileKind::Markdown && line > text.line {
            headings = headings_at(store, scored.note, text.line, line)?.unwrap_or(headings);
        }
    }
    Ok(Hit {
        path: note.path,
        title: note.title,
        headings,
        line,
        start_line: text.line,
        end_line: text.end_line,
        score: scored.score,
        text: text.text,
        tags: note.tags,
        modified: Timestamp::from_nanosecond(i128::from(note.modified_ns)).unwrap_or_default(),
        why,
        is_weak: false,
    })
}

/// Asks for all that [`hit`] reads.
pub(super) fn ask_for_hit(store: &dyn ReadStore, passage: i64, note: FileId) -> Result<()> {
    store.passage_text(passage)?;
    store.note_meta(note)?;
    store.anchors(note).map(drop)
}

/// The headings above a line of a note, if one of them is below the line `first`.
fn headings_at(store: &dyn ReadStore, note: FileId, first: u32, line: u32) -> Result<Option<Vec<String>>> {
    let mut above: Vec<(u8, String)> = Vec::new();
    let mut last = 0;
    for (level, text, at) in
        store.anchors(note)?.unwrap_or_default().headings.into_iter().take_while(|(_, _, at)| *at <= line)
    {
        above.retain(|(outer, _)| *outer < level);
        above.push((level, text));
        last = at;
    }
    Ok((last > first).then(|| above.into_iter().map(|(_, text)| text).collect()))
}

/// The result of a search in a snapshot, with the counts that every result has.
pub(super) fn hits(snapshot: &Snapshot, results: Vec<Hit>, mode: Mode, near_misses: Vec<NearMiss>) -> Hits {
    let (indexed, passages) = (snapshot.notes, snapshot.passages.len());
    let (pending, unread) = (snapshot.pending, snapshot.unread);
    let (substitutions, unknown_words) = (Vec::new(), Vec::new());
    Hits {
        results,
        mode,
        reranker: None,
        indexed,
        passages,
        pending,
        unread,
        substitutions,
        unknown_words,
        near_misses,
    }
}

/// The number of near misses that are named if nothing is found.
pub(super) const NEAR_MISSES: usize = 3;

/// The best notes of a ranking that has no results.
pub(super) fn near_misses(ranking: &[Hit]) -> Vec<NearMiss> {
    let mut notes = HashSet::new();
    let of_notes = ranking.iter().filter(|hit| notes.insert(&hit.path));
    let miss = |hit: &Hit| NearMiss { path: hit.path.clone(), title: hit.title.clone(), score: hit.score };
    of_notes.take(NEAR_MISSES).map(miss).collect()
}

/// Sorts hits, best first; equal scores by path, then by line.
pub(super) fn order(hits: &mut [Hit]) {
    hits.sort_by(|a, b| {
        b.score.total_cmp(&a.score).then_with(|| a.path.cmp(&b.path)).then(a.start_line.cmp(&b.start_line))
    });
}
