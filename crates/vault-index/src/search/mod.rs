//! The reading half: query -> hits. A [`Searcher`] is a snapshot; what is written meanwhile does not change it.
//!
//! ```text
//! query ── filter ──> which passages may be found at all            filter.rs, eligible.rs
//!       ── lexical ─> BM25 of every passage that holds a word       lexical.rs
//!       ── semantic > cosine of every passage, as an interval       semantic.rs
//!       ── fuse ────> the k best sums, exact                        fuse.rs
//!       ── hits ────> their texts, titles, tags                     below
//!       ── rerank ──> only if asked: the best of them in the order of another model    rerank.rs
//! ```

mod cold;
mod eligible;
mod filter;
mod find_note;
mod fuse;
mod hit;
mod lexical;
mod path_pattern;
mod query;
mod rerank;
mod semantic;
mod snippet;
mod unmatched;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use jiff::Timestamp;

pub use filter::{Comparison, DateEdge, Filter, PropertyTest, parse_date};
pub(crate) use find_note::find_note;
pub use hit::{Hit, Hits, NearMiss, Reranked, Why};
pub use query::{Grouping, Mode, Query};
pub use rerank::Rerank;
pub use snippet::marks;
pub use unmatched::Unmatched;

use crate::embed::{Embedder, Role};
use crate::error::{Error, ErrorKind, Result};
use crate::path::{FileId, VaultPath};
use crate::search::fuse::{Candidates, Floor, Scored, Weights};
use crate::search::lexical::Lexical;
use crate::search::semantic::{Semantic, Titles};
use crate::store::{LoadedCodes, PassageRow, Store};
use crate::vectors::{Bitmap, Codes, Estimate, Precision, QueryCodes, Threads};

/// A consistent snapshot of an index. Cheap to clone, usable from many threads; costs `dimensions + 12` bytes a
/// vector and 32 a passage.
#[derive(Clone)]
pub struct Searcher {
    snapshot: Arc<Snapshot>,
}

/// Notes that are named where none is found.
const NEAR_MISSES: usize = 3;

/// Where a searcher gets the model that turns queries into vectors.
pub(crate) type EmbedderSource = Arc<dyn Fn() -> Result<Arc<dyn Embedder>> + Send + Sync>;

/// Queries whose vectors are made, and compared with all others, at once.
const TOGETHER: usize = 16;

/// A query's vector, and what it comes to with every slot.
struct Meaning {
    vector: Vec<f32>,
    estimates: Vec<Estimate>,
}

pub(crate) struct Snapshot {
    /// Pinned: all its reads see the same state.
    store: Mutex<Store>,
    embedder: EmbedderSource,
    /// By id.
    passages: Vec<PassageRow>,
    notes: usize,
    /// Passages and file titles without a vector, as a status counts them.
    pending: usize,
    has_vectors: bool,
    unread: usize,
    /// Loaded for the second query: one alone is answered sooner from the file.
    codes: OnceLock<LoadedCodes>,
    asked: AtomicBool,
}

impl Searcher {
    /// `usable` says whether the vectors are of the model that `embedder` gives; if not, words alone rank. `known` are
    /// the codes of a snapshot before: of them, only what changed since is read.
    pub(crate) fn new(
        store: Store,
        embedder: EmbedderSource,
        usable: bool,
        known: Option<LoadedCodes>,
    ) -> Result<Self> {
        store.pin()?;
        let codes = OnceLock::new();
        // Where that fails, the search that needs them finds it out.
        if known.is_some()
            && let Ok(Some(now)) = store.codes(known)
        {
            _ = codes.set(now);
        }
        let mut passages = store.passages()?;
        if !usable {
            passages.iter_mut().for_each(|passage| passage.vector = None);
        }
        let has_vectors = passages.iter().any(|p| p.vector.is_some());
        // Vectors that cannot be used are as good as none.
        let pending = if usable { store.pending()? } else { passages.len() };
        let (notes, unread) = (store.note_count()?, store.unread()?);
        let snapshot = Snapshot {
            store: Mutex::new(store),
            embedder,
            passages,
            notes,
            pending,
            has_vectors,
            unread,
            codes,
            asked: AtomicBool::new(false),
        };
        Ok(Self { snapshot: Arc::new(snapshot) })
    }

    /// The codes that were loaded, for the snapshot that comes after this one.
    pub(crate) fn into_codes(self) -> Option<LoadedCodes> {
        match Arc::try_unwrap(self.snapshot) {
            Ok(snapshot) => snapshot.codes.into_inner(),
            // Somebody still searches it.
            Err(snapshot) => snapshot.codes.get().cloned(),
        }
    }

    /// Answers a query: exact, best first. The same query on the same snapshot always gets the same answer.
    ///
    /// # Errors
    /// [`ErrorKind::Query`] for an empty query or a bad filter, [`ErrorKind::NotFound`] for an unknown note
    /// in `like`, [`ErrorKind::Model`] when the model fails.
    pub fn search(&self, query: &Query) -> Result<Hits> {
        self.snapshot.search(query, None)
    }

    /// Answers many queries, in their order, each as [`search`](Self::search) would: the model reads some of them at
    /// once, and these share one pass over the codes. Takes 8 bytes a vector for each of 16 queries meanwhile.
    pub fn search_many(&self, queries: &[Query]) -> Vec<Result<Hits>> {
        let mut answers = Vec::with_capacity(queries.len());
        for together in queries.chunks(TOGETHER) {
            let meanings = self.snapshot.meanings(together);
            answers.extend(together.iter().zip(meanings).map(|(query, meaning)| self.snapshot.search(query, meaning)));
        }
        answers
    }
}

impl Snapshot {
    fn store(&self) -> std::sync::MutexGuard<'_, Store> {
        // A panic while reading leaves nothing half-done: readers do not write.
        self.store.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// `meaning` saves the work that was done for many queries at once.
    fn search(&self, query: &Query, meaning: Option<Meaning>) -> Result<Hits> {
        if query.is_empty() {
            return Err(Error::new(ErrorKind::Query, "the query is empty")
                .with_remedy("write what you look for, or a filter such as tag:garden"));
        }
        if query.like.is_some() && query.mode == Mode::Lexical {
            return Err(Error::new(
                ErrorKind::Query,
                "notes are similar by meaning, so `like` does not go with words only",
            )
            .with_remedy("leave out --mode lexical"));
        }
        let like = query.like.as_deref().map(|note| find_note(&self.store(), note)).transpose()?;
        let mut eligible = self.eligible(query)?;
        if let Some(note) = like {
            // A note is not similar to itself.
            let mask = eligible.get_or_insert_with(|| (0..self.passages.len()).collect());
            self.passages.iter().enumerate().filter(|(_, p)| p.note == note).for_each(|(at, _)| mask.remove(at));
        }
        let text = query.ranked_text();
        if text.trim().is_empty() && like.is_none() {
            return self.list(query, eligible.as_ref());
        }
        let asked = self.ask(query.mode, like, &text, eligible, meaning)?;
        let floor = Floor::of(query.min_score, asked.mode, asked.weights);
        let results = self.best(&asked, query.grouping, query.limit, floor)?;
        let near_misses = match results.is_empty() && query.limit > 0 {
            true => self.near_misses(&asked)?,
            false => Vec::new(),
        };
        Ok(self.hits(results, asked.mode, near_misses))
    }

    /// Looks the words up and scans the vectors: all that every passage's score is made of.
    fn ask(
        &self,
        mode: Mode,
        like: Option<FileId>,
        text: &str,
        eligible: Option<Bitmap>,
        meaning: Option<Meaning>,
    ) -> Result<Asked> {
        if let Some(note) = like {
            let (mode, weights) = (Mode::Semantic, self.weights(Mode::Semantic, text)?);
            let semantic = self.compared(self.mean_vector(note)?, Titles::LeftOut)?;
            return Ok(Asked { eligible, lexical: Lexical::none(), semantic, weights, mode });
        }
        let words = || match mode {
            Mode::Semantic => Ok(Lexical::none()),
            _ => Lexical::run(&self.store(), &self.passages, text),
        };
        if let Some(Meaning { vector, estimates }) = meaning {
            let (weights, semantic) = (self.weights(mode, text)?, Semantic::new(vector, estimates, Titles::Weighed));
            return Ok(Asked { eligible, lexical: words()?, semantic, weights, mode });
        }
        // The model reads the query, and is loaded for the first one, while the words are looked up. A thread of its
        // own: one of a pool might take up another search meanwhile, which waits for the same model.
        let (lexical, read) = std::thread::scope(|scope| {
            let is_both = mode == Mode::Hybrid && self.has_vectors;
            let spawn = || std::thread::Builder::new().spawn_scoped(scope, || self.read(mode, text)).ok();
            let reading = is_both.then(spawn).flatten();
            let lexical = words();
            // Where no thread can be had, one after the other.
            let read = reading.map_or_else(|| Ok(self.read(mode, text)), std::thread::ScopedJoinHandle::join);
            (lexical, read.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        });
        let (lexical, (weights, vector)) = (lexical?, read?);
        let semantic = match vector {
            Some(vector) => self.compared(vector, Titles::Weighed)?,
            None => Semantic::none(),
        };
        Ok(Asked { eligible, lexical, semantic, weights, mode })
    }

    /// The `limit` best with at least `floor`, best first.
    fn best(&self, asked: &Asked, grouping: Grouping, limit: usize, floor: Floor) -> Result<Vec<Hit>> {
        let store = self.store();
        let mut results = Vec::new();
        for scored in asked.candidates(&self.passages, grouping).best(limit, floor, &|slot| store.vector(slot))? {
            results.push(self.hit(&store, &scored, &asked.lexical, asked.weights)?);
        }
        order(&mut results);
        results.truncate(limit);
        Ok(results)
    }

    fn hits(&self, results: Vec<Hit>, mode: Mode, near_misses: Vec<NearMiss>) -> Hits {
        let (indexed, pending, unread) = (self.notes, self.pending, self.unread);
        Hits { results, mode, reranker: None, indexed, pending, unread, near_misses }
    }

    /// What the parts of the score are multiplied by: where most words of the query are unknown to the model,
    /// words alone decide.
    fn weights(&self, mode: Mode, text: &str) -> Result<Weights> {
        Ok(match mode {
            Mode::Lexical => Weights::LEXICAL,
            Mode::Semantic => Weights::SEMANTIC,
            Mode::Hybrid if !self.has_vectors => Weights::HYBRID.without_semantic(),
            Mode::Hybrid if (self.embedder)()?.known_share(text) < 0.5 => Weights::LEXICAL,
            Mode::Hybrid => Weights::HYBRID,
        })
    }

    /// The estimated score of every slot.
    fn estimates(&self, query: &QueryCodes) -> Result<Vec<Estimate>> {
        if self.codes.get().is_none() && !self.asked.swap(true, Ordering::Relaxed) {
            return cold::estimates(&self.store(), query);
        }
        let mut estimates = Vec::new();
        if let Some(codes) = self.codes()? {
            codes.estimates(query, Precision::Fine, Threads::Auto, &mut estimates);
        }
        Ok(estimates)
    }

    /// All codes, in memory. `None`: there are none.
    fn codes(&self) -> Result<Option<&Codes>> {
        if self.codes.get().is_none()
            && let Some(codes) = self.store().codes(None)?
        {
            let _ = self.codes.set(codes);
        }
        Ok(self.codes.get().map(|loaded| &loaded.codes))
    }

    /// The meanings of the queries that are ranked by the vectors of their texts. Where the model fails, none: each
    /// search finds that out for itself.
    fn meanings(&self, queries: &[Query]) -> Vec<Option<Meaning>> {
        let mut meanings: Vec<Option<Meaning>> = queries.iter().map(|_| None).collect();
        let texts: Vec<(usize, String)> = queries
            .iter()
            .enumerate()
            .filter(|(_, query)| query.like.is_none())
            .map(|(at, query)| (at, query.mode, query.ranked_text()))
            .filter(|(_, mode, text)| {
                !text.trim().is_empty() && self.weights(*mode, text).is_ok_and(|weights| weights.semantic > 0.0)
            })
            .map(|(at, _, text)| (at, text))
            .collect();
        if texts.len() > 1
            && let Ok(made) = self.meanings_of(&texts.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>())
        {
            texts.iter().zip(made).for_each(|((at, _), meaning)| meanings[*at] = Some(meaning));
        }
        meanings
    }

    fn meanings_of(&self, texts: &[&str]) -> Result<Vec<Meaning>> {
        let vectors = (self.embedder)()?.embed(texts, Role::Query)?;
        let queries = vectors.iter().map(|vector| QueryCodes::new(vector)).collect::<Result<Vec<_>>>()?;
        let mut estimates = vec![Vec::new(); vectors.len()];
        if let Some(codes) = self.codes()? {
            codes.estimates_many(&queries, Precision::Fine, Threads::Auto, &mut estimates);
        }
        Ok(vectors.into_iter().zip(estimates).map(|(vector, estimates)| Meaning { vector, estimates }).collect())
    }

    /// The weights of a query's text, and its vector where that has a weight.
    fn read(&self, mode: Mode, text: &str) -> Result<(Weights, Option<Vec<f32>>)> {
        let weights = self.weights(mode, text)?;
        let vector = match weights.semantic > 0.0 {
            true => (self.embedder)()?.embed(&[text], Role::Query)?.pop(),
            false => None,
        };
        Ok((weights, vector))
    }

    /// The vector compared with all others.
    fn compared(&self, vector: Vec<f32>, titles: Titles) -> Result<Semantic> {
        let estimates = self.estimates(&QueryCodes::new(&vector)?)?;
        Ok(Semantic::new(vector, estimates, titles))
    }

    /// The direction of a note: the sum of its passages' vectors, of unit length.
    fn mean_vector(&self, note: FileId) -> Result<Vec<f32>> {
        let store = self.store();
        let mut sum: Vec<f32> = Vec::new();
        let Some(slots) = store.vectors_of(note)? else {
            return Err(Error::new(
                ErrorKind::NotFound,
                "this is not an indexed note, so nothing is known to be like it",
            )
            .with_remedy("name a note; attachments and what is excluded or skipped have no text in the index"));
        };
        for slot in slots {
            let vector = store.vector(slot)?;
            sum.resize(vector.len(), 0.0);
            sum.iter_mut().zip(&vector).for_each(|(a, b)| *a += b);
        }
        let norm = sum.iter().map(|x| x * x).sum::<f32>().sqrt();
        if norm == 0.0 {
            return Err(Error::new(ErrorKind::NotFound, "this note has no vectors yet")
                .with_remedy("run `vault-index sync` to its end"));
        }
        sum.iter_mut().for_each(|x| *x /= norm);
        Ok(sum)
    }

    /// Only filters were given: the notes that pass, newest first; equal times by path, then by line.
    fn list(&self, query: &Query, eligible: Option<&Bitmap>) -> Result<Hits> {
        let store = self.store();
        let notes: HashMap<FileId, (VaultPath, i64)> =
            store.notes()?.into_iter().map(|(id, path, time)| (id, (path, time))).collect();
        let mut rows: Vec<(Option<&(VaultPath, i64)>, &PassageRow)> = Vec::new();
        let mut seen = HashSet::new();
        for (at, passage) in self.passages.iter().enumerate() {
            if eligible.is_none_or(|e| e.contains(at))
                && (query.grouping == Grouping::Passages || seen.insert(passage.note))
            {
                rows.push((notes.get(&passage.note), passage));
            }
        }
        // Ids say in which order notes were indexed, which is nobody's business; within a note they are in order.
        rows.sort_by_key(|(note, passage)| {
            (std::cmp::Reverse(note.map(|(_, time)| time)), note.map(|(path, _)| path), passage.id)
        });
        rows.truncate(query.limit);
        let (lexical, weights) = (Lexical::none(), Weights::NONE);
        let results = rows
            .iter()
            .map(|(_, passage)| self.hit(&store, &Scored::listed(passage), &lexical, weights))
            .collect::<Result<_>>()?;
        Ok(self.hits(results, query.mode, Vec::new()))
    }

    fn hit(&self, store: &Store, scored: &Scored, lexical: &Lexical, weights: Weights) -> Result<Hit> {
        let gone =
            || Error::new(ErrorKind::Damaged, "a passage has no text").with_remedy("run `vault-index check --repair`");
        let text = store.passage_text(scored.passage)?.ok_or_else(gone)?;
        let note = store.note_meta(scored.note)?.ok_or_else(gone)?;
        let why = Why {
            semantic: scored.semantic,
            title: scored.title,
            lexical: scored.lexical,
            terms: self.position(scored.passage).map_or_else(Vec::new, |at| lexical.terms_of(at)),
            weights: (weights.semantic, weights.lexical),
            rerank: None,
        };
        Ok(Hit {
            path: note.path,
            title: note.title,
            headings: text.headings,
            line: text.line,
            end_line: text.end_line,
            score: scored.score,
            text: text.text,
            tags: note.tags,
            modified: Timestamp::from_nanosecond(i128::from(note.modified_ns)).unwrap_or_default(),
            why,
        })
    }

    /// The best notes without regard to a floor.
    fn near_misses(&self, asked: &Asked) -> Result<Vec<NearMiss>> {
        Ok(near_misses(&self.best(asked, Grouping::BestPassage, NEAR_MISSES, Floor::NONE)?))
    }
}

/// The best notes of a ranking none of which is a result.
fn near_misses(ranking: &[Hit]) -> Vec<NearMiss> {
    let mut notes = HashSet::new();
    let of_notes = ranking.iter().filter(|hit| notes.insert(&hit.path));
    let miss = |hit: &Hit| NearMiss { path: hit.path.clone(), title: hit.title.clone(), score: hit.score };
    of_notes.take(NEAR_MISSES).map(miss).collect()
}

/// A query that is looked up: what every passage's score is made of.
struct Asked {
    eligible: Option<Bitmap>,
    lexical: Lexical,
    semantic: Semantic,
    weights: Weights,
    mode: Mode,
}

impl Asked {
    fn candidates<'a>(&'a self, passages: &'a [PassageRow], grouping: Grouping) -> Candidates<'a> {
        let Self { eligible, lexical, semantic, weights, .. } = self;
        Candidates { passages, eligible: eligible.as_ref(), lexical, semantic, weights: *weights, grouping }
    }
}

/// Best first; equal scores by path, then by line.
fn order(hits: &mut [Hit]) {
    hits.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.path.cmp(&b.path)).then(a.line.cmp(&b.line)));
}
