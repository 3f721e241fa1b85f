//! Reranking: the best passages of a ranking are scored again together with the query, by a slower model.
//!
//! ```text
//! ranking ── the `depth` best passages (and as many more as are needed for the requested number of results)
//!         ── (query; title, headings and text) ──> reranker ──> score
//!         ── best first, each note by its best passage, those below `min_score` dropped
//! ```
//!
//! A reranker only sees passages that the ranking finds. It scores each one alone, so candidates do not affect each
//! other's scores.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use crate::chunk::{ChunkOptions, embedded_text};
use crate::embed::HashedEmbedder;
use crate::error::{Error, ErrorKind, Result};
use crate::rerank::Reranker;
use crate::search::hit::{Hit, Hits, NameMatch, PriorRank};
use crate::search::make_hits::{hits, near_misses, order};
use crate::search::query::{Grouping, Query};
use crate::search::scored_query::{Ranking, ScoredQuery};
use crate::search::searcher::Searcher;

/// A reranker, and the number of passages that it scores.
#[derive(Clone)]
#[non_exhaustive]
pub struct Rerank {
    /// The reranker.
    pub reranker: Arc<dyn Reranker>,
    /// The number of the ranking's best passages that it scores; at least [`Query::limit`].
    pub depth: usize,
}

impl Rerank {
    /// The default depth. The share of questions with an answer among the best passages of the default ranking, and so
    /// within a reranker's reach: 10 passages, cranfield 89 %, scifact 84 %; 50 passages, 96 % and 93 %; 100 passages,
    /// 97 % and 95 %. So twice the time would add only one or two questions in a hundred.
    pub const DEPTH: usize = 50;

    /// Uses this reranker, with the default depth.
    pub fn new(reranker: Arc<dyn Reranker>) -> Self {
        Self { reranker, depth: Self::DEPTH }
    }

    /// Sets the number of the ranking's best passages that it scores.
    #[must_use]
    pub fn depth(self, depth: usize) -> Self {
        Self { depth, ..self }
    }
}

impl fmt::Debug for Rerank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reranker, depth } = self;
        f.debug_struct("Rerank").field("reranker", &reranker.id()).field("depth", depth).finish()
    }
}

impl Searcher {
    /// Ranks as [`Searcher::search`] does, then scores the best passages with a reranker and sorts them by that score.
    ///
    /// The candidates are the [`Rerank::depth`] best passages of the query's mode, after all filters. If those belong
    /// to fewer notes than requested, the best passage of each further note is added, so that there are as many results
    /// as without a reranker. [`Hit::score`] is the reranker's, 0 to 1; each note is shown by the passage that scores
    /// best (with [`Grouping::Passages`], all are shown); equal scores are ordered by path, then line. Notes with a
    /// name that equals the query ([`NameMatch::Equal`]) come before all others, whatever their scores.
    /// [`Query::min_score`] is compared with the reranker's score, while the ranking's own floor applies to the
    /// candidates. The earlier rank and score of a passage are in [`ScoreParts::rerank`](crate::ScoreParts::rerank).
    ///
    /// [`Query::sort`] is ignored.
    ///
    /// Costs the search, and one pair of texts through the reranker for each candidate. Their number is at most the
    /// larger of `depth` and `limit`, plus `limit`.
    ///
    /// # Errors
    /// [`ErrorKind::Query`] for a query without words, that is with filters only, or with [`Query::like`];
    /// [`ErrorKind::Model`] when the reranker fails, or returns another number of scores than passages, or a score
    /// outside of 0 to 1; and the errors of [`Searcher::search`].
    pub fn search_reranked(&self, query: &Query, rerank: &Rerank) -> Result<Hits> {
        let text = &query.text;
        if query.like.is_some() || text.trim().is_empty() {
            let message = "a reranker needs the words of a query, and this query has none";
            return Err(Error::new(ErrorKind::Query, message)
                .with_remedy("add words to the query, or search without a reranker"));
        }
        // The minimum score applies to the reranker's score.
        let ranked = Query { min_score: None, ..query.clone() };
        let mut ranking = ScoredQuery::new(&self.snapshot, &ranked, None)?;
        let find = |ranking: &ScoredQuery<'_>| candidates(ranking, &ranked, rerank.depth);
        let candidates = ranking.find(&ranked, find, |hit| hit.score)?;
        let nothing_ranked = candidates.is_empty() && query.limit > 0;
        let mut results = rescored(candidates, text, rerank.reranker.as_ref())?;
        order(&mut results);
        // A note whose name was typed stays first.
        results.sort_by_key(|hit| hit.why.name != Some(NameMatch::Equal));
        if query.grouping == Grouping::BestPassage {
            let mut shown = HashSet::new();
            results.retain(|hit| shown.insert(hit.path.clone()));
        }
        let is_good_enough = |hit: &Hit| query.min_score.is_none_or(|least| hit.score >= least);
        let (mut results, below): (Vec<Hit>, Vec<Hit>) = results.into_iter().partition(is_good_enough);
        let near_misses = match results.is_empty() {
            true if nothing_ranked => ranking.near_misses()?,
            true => near_misses(&below),
            false => Vec::new(),
        };
        results.truncate(query.limit);
        let hits = hits(&self.snapshot, results, ranking.mode, near_misses);
        let ScoredQuery { substitutions, unknown_words, .. } = ranking;
        Ok(Hits { reranker: Some(rerank.reranker.id().to_owned()), substitutions, unknown_words, ..hits })
    }
}

/// The passages to rerank, in the order of the ranking.
fn candidates(ranking: &ScoredQuery<'_>, query: &Query, depth: usize) -> Result<Vec<Hit>> {
    if query.limit == 0 {
        return Ok(Vec::new());
    }
    let (depth, own) = (depth.max(query.limit), ranking.ranking(query));
    let mut candidates = ranking.best(Ranking { grouping: Grouping::Passages, limit: depth, ..own })?;
    // Fewer than `depth` candidates are all there are.
    if query.grouping == Grouping::BestPassage && candidates.len() == depth {
        let notes: HashSet<_> = candidates.iter().map(|hit| hit.path.clone()).collect();
        if notes.len() < query.limit {
            let of_notes = ranking.best(Ranking { grouping: Grouping::BestPassage, ..own })?;
            candidates.extend(of_notes.into_iter().filter(|hit| !notes.contains(&hit.path)));
            order(&mut candidates);
        }
    }
    Ok(candidates)
}

/// The candidates with the reranker's scores, in their previous order.
fn rescored(mut candidates: Vec<Hit>, query: &str, reranker: &dyn Reranker) -> Result<Vec<Hit>> {
    if candidates.is_empty() {
        return Ok(candidates);
    }
    let texts: Vec<String> = candidates.iter().map(passage).collect();
    let scores = reranker.score(query, &texts.iter().map(String::as_str).collect::<Vec<_>>())?;
    let failed = |what: String| {
        Error::new(ErrorKind::Model, format!("the reranker `{}` {what}", reranker.id()))
            .with_remedy("search without it, or with another one")
    };
    if scores.len() != texts.len() {
        return Err(failed(format!("gave {} scores for {} passages", scores.len(), texts.len())));
    }
    for (position, (hit, score)) in candidates.iter_mut().zip(scores).enumerate() {
        if !(0.0..=1.0).contains(&score) {
            return Err(failed(format!("gave {}:{} the score {score}, not one within 0 to 1", hit.path, hit.line)));
        }
        hit.why.rerank = Some(PriorRank { rank: position + 1, score: hit.score });
        hit.score = score;
    }
    Ok(candidates)
}

/// The text that a reranker reads of a passage: that of an embedding model, and always the title. The token count only
/// shortens very long headings, so any count will do.
fn passage(hit: &Hit) -> String {
    embedded_text(Some(&hit.title), &hit.headings, &hit.text, &HashedEmbedder::new(), &ChunkOptions::default())
}
