//! Searches one state of the index: looks a query up, and creates hits from the best passages.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::path::{FileId, VaultPath};
use crate::search::hit::{Hit, Hits};
use crate::search::make_hits::{ask_for_hit, hit, hits};
use crate::search::query::{Grouping, Mode, Query, Sort};
use crate::search::rank::fuse::{Floor, ScoredPassage, Weights};
use crate::search::scored_query::{Ranking, ScoredQuery, prune_together, vectors_of};
use crate::search::select::eligible::eligible;
use crate::search::snapshot::{EmbedderSource, Snapshot};
use crate::store::{PassageRow, ReadStore};

/// A consistent snapshot of an index, which later writes do not change. Cheap to clone, usable from many threads. It
/// takes 36 bytes per passage in memory, and `dimensions + 12` bytes per vector from the second search by meaning on.
///
/// ```
/// use vault_index::{Index, Options, Query};
///
/// # let vault = tempfile::tempdir()?;
/// # std::fs::write(vault.path().join("Roses.md"), "Cut the stems back to an outward-facing bud in late winter.")?;
/// # let mut options = Options::default();
/// # options.index_file = Some(vault.path().join(".index/index.db"));
/// # options.embedder = Some(std::sync::Arc::new(vault_index::HashedEmbedder::new()));
/// # let vault_dir = vault.path();
/// let index = Index::open(vault_dir, options)?;
/// index.sync()?;
/// let searcher = index.searcher()?;
/// let hits = searcher.search(&Query::literal("late winter"))?;
/// assert_eq!(hits.results[0].path.as_str(), "Roses.md");
/// // Many queries at once: their texts are embedded together.
/// let queries = ["cut stems", "summer rain"].map(Query::literal);
/// assert!(searcher.search_many(&queries).iter().all(Result::is_ok));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Searcher {
    pub(super) snapshot: Arc<Snapshot>,
}

/// The number of queries that are embedded and compared with the vectors together.
const BATCH: usize = 16;

impl Searcher {
    /// `usable` says whether the vectors belong to the model of `embedder`; if not, only words rank.
    pub(crate) fn new(store: Box<dyn ReadStore>, embedder: EmbedderSource, usable: bool) -> Result<Self> {
        Snapshot::new(store, embedder, usable).map(|snapshot| Self { snapshot: Arc::new(snapshot) })
    }

    /// Runs a query: exact, best first. The same query on the same snapshot always has the same result.
    ///
    /// # Errors
    /// [`ErrorKind::Query`] for an empty query, an invalid filter, or options that exclude each other;
    /// [`ErrorKind::NotFound`] for an unknown note in `like`; [`ErrorKind::Model`] when the model fails, or a vector
    /// has other dimensions than those of the index.
    pub fn search(&self, query: &Query) -> Result<Hits> {
        self.answer(query, self.score_query(query, None)?)
    }

    /// Runs many queries, in order, each with the result of [`search`](Self::search). The model reads several of them
    /// at once, and one pass over the vectors serves 16 of them.
    pub fn search_many(&self, queries: &[Query]) -> Vec<Result<Hits>> {
        let mut answers = Vec::with_capacity(queries.len());
        for batch in queries.chunks(BATCH) {
            let vectors = vectors_of(&self.snapshot, batch);
            let mut scored: Vec<_> =
                batch.iter().zip(vectors).map(|(query, vector)| self.score_query(query, vector)).collect();
            prune_together(batch, &mut scored);
            answers.extend(batch.iter().zip(scored).map(|(query, scored)| self.answer(query, scored?)));
        }
        answers
    }

    /// An empty result, with the counts of pending notes that every result has.
    pub fn nothing(&self, mode: Mode) -> Hits {
        hits(&self.snapshot, Vec::new(), mode, Vec::new())
    }

    /// `None`: the query only filters. `vector` is that of its text, if it is already known.
    fn score_query(&self, query: &Query, vector: Option<Vec<f32>>) -> Result<Option<ScoredQuery<'_>>> {
        check(query)?;
        if is_list(query) { Ok(None) } else { ScoredQuery::new(&self.snapshot, query, vector).map(Some) }
    }

    fn answer(&self, query: &Query, scored: Option<ScoredQuery<'_>>) -> Result<Hits> {
        let Some(mut scored) = scored else {
            let eligible = eligible(&self.snapshot, query)?;
            let results = self.list(eligible.as_deref(), query, query.limit)?;
            return Ok(hits(&self.snapshot, results, query.mode, Vec::new()));
        };
        let mut results = scored.find(query, |scored| self.sorted(scored, query), |hit| hit.score)?;
        if query.sort == Sort::Score && query.finds_all() && results.len() < query.limit {
            let shown =
                |hit: &Hit| (hit.path.clone(), (query.grouping == Grouping::Passages).then_some(hit.start_line));
            let ranked: HashSet<_> = results.iter().map(shown).collect();
            let others = self.list(scored.eligible.as_deref(), query, query.limit.saturating_add(results.len()))?;
            let others = others.into_iter().filter(|hit| !ranked.contains(&shown(hit)));
            results.extend(others.map(|hit| Hit { score: 0.0, ..hit }));
            results.truncate(query.limit);
        }
        let near_misses = match results.is_empty() && query.limit > 0 {
            true => scored.near_misses()?,
            false => Vec::new(),
        };
        if !query.finds_all() {
            let floor = Floor::of(None, scored.mode, scored.weights);
            results
                .iter_mut()
                .for_each(|hit| hit.is_weak = floor.is_barely_reached(hit.score, hit.why.semantic.is_some()));
        }
        let ScoredQuery { substitutions, unknown_words, mode, .. } = scored;
        Ok(Hits { substitutions, unknown_words, ..hits(&self.snapshot, results, mode, near_misses) })
    }

    /// The first results in the order that the query requests.
    fn sorted(&self, scored: &ScoredQuery<'_>, query: &Query) -> Result<Vec<Hit>> {
        if query.sort == Sort::Score {
            return scored.best(scored.ranking(query));
        }
        let mut all = self.all(scored, query)?;
        let notes = self.notes()?;
        all.sort_by_cached_key(|scored| (key(notes.get(&scored.note), query.sort), scored.passage));
        all.truncate(query.limit);
        scored.hits(&all)
    }

    /// All results of a ranked query, best first, without the texts.
    fn all(&self, scored: &ScoredQuery<'_>, query: &Query) -> Result<Vec<ScoredPassage>> {
        let eligible = scored.eligible.as_deref();
        let mut all = scored.ranked(Ranking { limit: usize::MAX, ..scored.ranking(query) })?;
        if query.finds_all() {
            let is_ranked: HashSet<i64> = match query.grouping {
                Grouping::Passages => all.iter().map(|scored| scored.passage).collect(),
                Grouping::BestPassage => all.iter().map(|scored| i64::from(scored.note.0)).collect(),
            };
            let group = |passage: &PassageRow| match query.grouping {
                Grouping::Passages => passage.id,
                Grouping::BestPassage => i64::from(passage.note.0),
            };
            let others =
                self.listed(eligible, query)?.into_iter().filter(|passage| !is_ranked.contains(&group(passage)));
            all.extend(others.map(|passage| ScoredPassage { score: 0.0, ..ScoredPassage::listed(passage) }));
        }
        Ok(all)
    }

    /// The matching notes, each once, or with [`Grouping::Passages`] once for each matching passage, in the order of
    /// the results: what [`search`](Self::search) would find without a limit, best first, or newest first if the query
    /// only filters. No text is read.
    ///
    /// # Errors
    /// The errors of [`search`](Self::search).
    pub fn matches(&self, query: &Query) -> Result<Vec<VaultPath>> {
        check(query)?;
        let ids: Vec<FileId> = match is_list(query) {
            true => {
                let eligible = eligible(&self.snapshot, query)?;
                self.listed(eligible.as_deref(), query)?.into_iter().map(|passage| passage.note).collect()
            }
            false => {
                let mut scored = ScoredQuery::new(&self.snapshot, query, None)?;
                let all = scored.find(query, |scored| self.all(scored, query), |passage| passage.score)?;
                all.into_iter().map(|passage| passage.note).collect()
            }
        };
        let notes = self.notes()?;
        Ok(ids.iter().filter_map(|id| Some(notes.get(id)?.0.clone())).collect())
    }

    /// The eligible passages without a ranking, in the order of [`Self::listed`].
    fn list(&self, eligible: Option<&[bool]>, query: &Query, limit: usize) -> Result<Vec<Hit>> {
        let mut rows = self.listed(eligible, query)?;
        rows.truncate(limit);
        let store = self.snapshot.store()?;
        store.prefetch(&mut || rows.iter().try_for_each(|row| ask_for_hit(&*store, row.id, row.note)))?;
        rows.into_iter()
            .map(|passage| hit(&*store, &ScoredPassage::listed(passage), Vec::new(), Weights::NONE))
            .collect()
    }

    /// The eligible passages, or the first of each note. Unless they are sorted by path, newest notes first; equal
    /// times by path, then by line.
    fn listed(&self, eligible: Option<&[bool]>, query: &Query) -> Result<Vec<&PassageRow>> {
        let notes = self.notes()?;
        let mut rows: Vec<&PassageRow> = Vec::new();
        let mut listed = HashSet::new();
        for (at, passage) in self.snapshot.passages.iter().enumerate() {
            if eligible.is_none_or(|eligible| eligible[at])
                && (query.grouping == Grouping::Passages || listed.insert(passage.note))
            {
                rows.push(passage);
            }
        }
        // Ids are in the order in which notes were indexed, which must not affect the result; within a note they are in
        // order.
        let sort = if query.sort == Sort::Score { Sort::Modified } else { query.sort };
        rows.sort_by_key(|passage| (key(notes.get(&passage.note), sort), passage.id));
        Ok(rows)
    }

    /// The paths and modification times of all notes.
    fn notes(&self) -> Result<HashMap<FileId, (VaultPath, i64)>> {
        Ok(self.snapshot.store()?.notes()?.into_iter().map(|(id, path, time)| (id, (path, time))).collect())
    }
}

/// Whether the query only filters, so that nothing is ranked.
fn is_list(query: &Query) -> bool {
    query.text.trim().is_empty() && query.like.is_none() && query.vector.is_none()
}

/// The sort key of notes: the newest first, or by path only.
fn key(note: Option<&(VaultPath, i64)>, sort: Sort) -> (Option<Reverse<i64>>, Option<&VaultPath>) {
    (note.filter(|_| sort == Sort::Modified).map(|(_, time)| Reverse(*time)), note.map(|(path, _)| path))
}

impl fmt::Debug for Searcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (notes, passages) = (self.snapshot.notes, self.snapshot.passages.len());
        f.debug_struct("Searcher").field("notes", &notes).field("passages", &passages).finish_non_exhaustive()
    }
}

fn check(query: &Query) -> Result<()> {
    let refuse = |message: &str, remedy: &str| Err(Error::new(ErrorKind::Query, message).with_remedy(remedy));
    if query.is_empty() {
        return refuse("the query is empty", "write what you look for, or a filter such as tag:garden");
    }
    if query.like.is_some() && query.mode == Mode::Lexical {
        return refuse(
            "`like` searches by meaning, so it cannot be combined with the lexical mode",
            "leave out --mode lexical",
        );
    }
    if query.vector.is_some() && (query.like.is_some() || query.mode == Mode::Lexical) {
        return refuse(
            "a query with a vector cannot have `like` or the lexical mode",
            "leave out `like`, and use the mode semantic or hybrid",
        );
    }
    Ok(())
}
