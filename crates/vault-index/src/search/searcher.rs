//! Answers queries from one state of the index.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::path::{FileId, VaultPath};
use crate::search::eligible::eligible;
use crate::search::fuse::{Floor, Scored, Weights};
use crate::search::hit::Hits;
use crate::search::query::{Grouping, Mode, Query};
use crate::search::scored_query::{ScoredQuery, hit, hits, vectors_of};
use crate::search::snapshot::{EmbedderSource, Snapshot};
use crate::store::{PassageRow, Store};

/// A consistent snapshot of an index: what is written meanwhile does not change its answers. Cheap to clone, usable
/// from many threads. It holds 24 bytes a passage in memory, and `dimensions + 12` bytes a vector from the
/// second search by meaning on.
///
/// ```
/// use vault_index::{Index, Options, Query};
///
/// # let vault = tempfile::tempdir()?;
/// # std::fs::write(vault.path().join("Roses.md"), "Cut the stems back to an outward-facing bud in late winter.")?;
/// # let mut options = Options::default();
/// # options.index_file = Some(vault.path().join(".index/index.db"));
/// # options.embedder = Some(std::sync::Arc::new(vault_index::Hashed::new()));
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

/// Queries whose texts are embedded together.
const BATCH: usize = 16;

impl Searcher {
    /// `usable` says whether the vectors are of the model that `embedder` gives; if not, words alone rank.
    pub(crate) fn new(store: Store, embedder: EmbedderSource, usable: bool) -> Result<Self> {
        Snapshot::new(store, embedder, usable).map(|snapshot| Self { snapshot: Arc::new(snapshot) })
    }

    /// Answers a query: exact, best first. The same query on the same snapshot always gets the same answer.
    ///
    /// # Errors
    /// [`ErrorKind::Query`] for an empty query, a bad filter, or options that exclude each other;
    /// [`ErrorKind::NotFound`] for an unknown note in `like`; [`ErrorKind::Model`] when the model fails, or a vector
    /// has other dimensions than those of the index.
    pub fn search(&self, query: &Query) -> Result<Hits> {
        self.search_with(query, None)
    }

    /// Answers many queries, in their order, each as [`search`](Self::search) would; the model reads several of them
    /// at once.
    pub fn search_many(&self, queries: &[Query]) -> Vec<Result<Hits>> {
        let mut answers = Vec::with_capacity(queries.len());
        for batch in queries.chunks(BATCH) {
            let vectors = vectors_of(&self.snapshot, batch);
            answers.extend(batch.iter().zip(vectors).map(|(query, vector)| self.search_with(query, vector)));
        }
        answers
    }

    /// An answer without results.
    #[cfg(feature = "cli")]
    pub(crate) fn nothing(&self, mode: Mode) -> Hits {
        hits(&self.snapshot, Vec::new(), mode, Vec::new())
    }

    /// `vector` is that of the query's text, where it is known already.
    fn search_with(&self, query: &Query, vector: Option<Vec<f32>>) -> Result<Hits> {
        check(query)?;
        if query.ranked_text().trim().is_empty() && query.like.is_none() && query.vector.is_none() {
            return self.list(query);
        }
        let scored = ScoredQuery::new(&self.snapshot, query, vector)?;
        let floor = Floor::of(query.min_score, scored.mode, scored.weights);
        let results = scored.best(query.grouping, query.limit, floor)?;
        let near_misses = match results.is_empty() && query.limit > 0 {
            true => scored.near_misses()?,
            false => Vec::new(),
        };
        Ok(hits(&self.snapshot, results, scored.mode, near_misses))
    }

    /// Only filters were given: the notes that pass, newest first; equal times by path, then by line.
    fn list(&self, query: &Query) -> Result<Hits> {
        let eligible = eligible(&self.snapshot, query)?;
        let store = self.snapshot.store();
        let notes: HashMap<FileId, (VaultPath, i64)> =
            store.notes()?.into_iter().map(|(id, path, time)| (id, (path, time))).collect();
        let mut rows: Vec<(Option<&(VaultPath, i64)>, &PassageRow)> = Vec::new();
        let mut listed = HashSet::new();
        for (at, passage) in self.snapshot.passages.iter().enumerate() {
            if eligible.as_ref().is_none_or(|eligible| eligible[at])
                && (query.grouping == Grouping::Passages || listed.insert(passage.note))
            {
                rows.push((notes.get(&passage.note), passage));
            }
        }
        // Ids are in the order in which notes were indexed, which must not show; within a note they are in order.
        rows.sort_by_key(|(note, passage)| {
            (std::cmp::Reverse(note.map(|(_, time)| time)), note.map(|(path, _)| path), passage.id)
        });
        rows.truncate(query.limit);
        let results = rows
            .iter()
            .map(|(_, passage)| hit(&store, &Scored::listed(passage), Vec::new(), Weights::NONE))
            .collect::<Result<_>>()?;
        Ok(hits(&self.snapshot, results, query.mode, Vec::new()))
    }
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
            "notes are similar by meaning, so `like` does not go with words only",
            "leave out --mode lexical",
        );
    }
    if query.vector.is_some() && (query.like.is_some() || query.mode == Mode::Lexical) {
        return refuse(
            "a query by a vector is by meaning, and of that vector only",
            "leave out `like`, and use the mode semantic or hybrid",
        );
    }
    Ok(())
}
