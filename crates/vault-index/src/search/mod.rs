//! The reading half: query -> hits. A [`Searcher`] is a snapshot; what is written meanwhile does not change it.
//!
//! ```text
//! query ── filter ──> which passages may be found at all            filter.rs, eligible below
//!       ── lexical ─> BM25 of every passage that holds a word       lexical.rs
//!       ── semantic > cosine of every passage, as an interval       semantic.rs
//!       ── fuse ────> the k best sums, exact                        fuse.rs
//!       ── hits ────> their texts, titles, tags                     below
//!       ── rerank ──> only if asked: the best of them in the order of another model    rerank.rs
//! ```

pub(crate) mod filter;
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

use jiff::{Timestamp, Zoned};

pub use filter::{Comparison, DateEdge, Filter, PropertyTest, parse_date};
pub use hit::{Hit, Hits, NearMiss, Reranked, Why};
pub use query::{Grouping, Mode, Query};
pub use rerank::Rerank;
pub use snippet::marks;
pub use unmatched::Unmatched;

use crate::embed::{Embedder, Role};
use crate::error::{Error, ErrorKind, Result};
use crate::links::{Names, resolve};
use crate::note::{TagKey, property_key};
use crate::path::{FileId, VaultPath};
use crate::search::filter::PropertyValue;
use crate::search::fuse::{Candidates, FLOOR, Scored, Weights};
use crate::search::lexical::Lexical;
use crate::search::path_pattern::{PathPattern, any_matches};
use crate::search::semantic::Semantic;
use crate::store::{PassageRow, Store};
use crate::vectors::{BLOCK_ROWS, Bitmap, Codes, Estimate, Precision, QueryCodes, Threads, block_estimates};

/// A consistent snapshot of an index. Cheap to clone, usable from many threads; costs `dimensions + 12` bytes a
/// vector and 40 a passage.
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
    codes: OnceLock<Codes>,
    asked: AtomicBool,
    titles: OnceLock<HashMap<FileId, i64>>,
}

impl Searcher {
    /// `usable` says whether the vectors are of the model that `embedder` gives; if not, words alone rank.
    pub(crate) fn new(store: Store, embedder: EmbedderSource, usable: bool) -> Result<Self> {
        store.pin()?;
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
            codes: OnceLock::new(),
            asked: AtomicBool::new(false),
            titles: OnceLock::new(),
        };
        Ok(Self { snapshot: Arc::new(snapshot) })
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
                .remedy("write what you look for, or a filter such as tag:garden"));
        }
        if query.like.is_some() && query.mode == Mode::Lexical {
            return Err(Error::new(
                ErrorKind::Query,
                "notes are similar by meaning, so `like` does not go with words only",
            )
            .remedy("leave out --mode lexical"));
        }
        let like = query.like.as_deref().map(|note| self.find_note(note)).transpose()?;
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
        let floor = query.min_score.unwrap_or(FLOOR.of(asked.mode));
        let results = self.best(&asked, query.grouping, query.limit, floor)?;
        let near_misses = match results.is_empty() && query.limit > 0 {
            true => self.near_misses(&asked, query.grouping)?,
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
    ) -> Result<Asked<'_>> {
        let mode = if like.is_some() { Mode::Semantic } else { mode };
        let lexical = match mode {
            Mode::Semantic => Lexical::none(),
            _ => Lexical::run(&self.store(), &self.passages, text)?,
        };
        let weights = self.weights(mode, text)?;
        let semantic = match weights.semantic > 0.0 {
            true => self.semantic(like, text, meaning)?,
            false => Semantic::none(),
        };
        Ok(Asked { eligible, lexical, semantic, weights, mode })
    }

    /// The `limit` best with at least `floor`, best first.
    fn best(&self, asked: &Asked<'_>, grouping: Grouping, limit: usize, floor: f32) -> Result<Vec<Hit>> {
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
        let mut estimates = Vec::new();
        if self.codes.get().is_none() && !self.asked.swap(true, Ordering::Relaxed) {
            self.store().each_block(|number, bytes| {
                estimates.resize(number * BLOCK_ROWS, Estimate::NONE);
                block_estimates(query, bytes, &mut estimates)
            })?;
            return Ok(estimates);
        }
        if let Some(codes) = self.codes()? {
            codes.estimates(query, Precision::Fine, Threads::Auto, &mut estimates);
        }
        Ok(estimates)
    }

    /// All codes, in memory. `None`: there are none.
    fn codes(&self) -> Result<Option<&Codes>> {
        if self.codes.get().is_none()
            && let Some(codes) = self.store().codes()?
        {
            let _ = self.codes.set(codes);
        }
        Ok(self.codes.get())
    }

    fn titles(&self) -> Result<&HashMap<FileId, i64>> {
        if self.titles.get().is_none() {
            let titles = self.store().title_vectors()?.into_iter().collect();
            let _ = self.titles.set(titles);
        }
        Ok(self.titles.get().expect("just set"))
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

    fn semantic(&self, like: Option<FileId>, text: &str, meaning: Option<Meaning>) -> Result<Semantic<'_>> {
        if let Some(Meaning { vector, estimates }) = meaning {
            return Ok(Semantic::new(vector, estimates, Some(self.titles()?)));
        }
        let (vector, titles) = match like {
            Some(note) => (self.mean_vector(note)?, None),
            None => {
                let embedder = (self.embedder)()?;
                let vector = embedder.embed(&[text], Role::Query)?.pop().unwrap_or_default();
                (vector, Some(self.titles()?))
            }
        };
        let estimates = self.estimates(&QueryCodes::new(&vector)?)?;
        Ok(Semantic::new(vector, estimates, titles))
    }

    /// The direction of a note: the sum of its passages' vectors, of unit length.
    fn mean_vector(&self, note: FileId) -> Result<Vec<f32>> {
        let store = self.store();
        let mut sum: Vec<f32> = Vec::new();
        let passages = store.passages_of(note)?;
        if passages.is_empty() {
            return Err(Error::new(
                ErrorKind::NotFound,
                "this is not an indexed note, so nothing is known to be like it",
            )
            .remedy("name a note; attachments and what is excluded or skipped have no text in the index"));
        }
        for passage in passages {
            let Some(slot) = passage.vector else { continue };
            let vector = store.vector(slot)?;
            sum.resize(vector.len(), 0.0);
            sum.iter_mut().zip(&vector).for_each(|(a, b)| *a += b);
        }
        let norm = sum.iter().map(|x| x * x).sum::<f32>().sqrt();
        if norm == 0.0 {
            return Err(Error::new(ErrorKind::NotFound, "this note has no vectors yet")
                .remedy("run `vault-index sync` to its end"));
        }
        sum.iter_mut().for_each(|x| *x /= norm);
        Ok(sum)
    }

    /// The note that a person names: by its path, or as a link from the vault's root would.
    fn find_note(&self, name: &str) -> Result<FileId> {
        let store = self.store();
        find_note(&store, name)
    }

    /// Which passages may be found. `None`: all.
    fn eligible(&self, query: &Query) -> Result<Option<Bitmap>> {
        let filter = &query.filter;
        if filter.is_empty() && query.without.is_empty() && query.phrases.is_empty() {
            return Ok(None);
        }
        let store = self.store();
        let mut notes: Option<HashSet<FileId>> = None;
        let mut keep = |ids: Vec<FileId>| {
            let ids = ids.into_iter().collect();
            notes = Some(match notes.take() {
                None => ids,
                Some(before) => before.intersection(&ids).copied().collect(),
            });
        };
        for tag in &filter.tags {
            keep(store.notes_with_tag(TagKey::new(tag).as_str())?);
        }
        if filter.after.is_some() || filter.before.is_some() || !filter.paths.is_empty() {
            let patterns = patterns(&filter.paths)?;
            // Times of files end in 1677 and 2262; a date beyond is the end it is beyond.
            let ends = (i128::from(i64::MIN), i128::from(i64::MAX));
            let nanoseconds = |t: Timestamp| t.as_nanosecond().clamp(ends.0, ends.1) as i64;
            let after = filter.after.map_or(i64::MIN, nanoseconds);
            let before = filter.before.map_or(i64::MAX, nanoseconds);
            let mut ids = Vec::new();
            for (id, path, modified) in store.notes()? {
                let path_holds = patterns.is_empty() || any_matches(&patterns, &path);
                if path_holds && after <= modified && modified < before {
                    ids.push(id);
                }
            }
            keep(ids);
        }
        let now = Zoned::now();
        for test in &filter.properties {
            keep(holding(&store, test, &now)?);
        }
        let mut eligible: Bitmap = match &notes {
            Some(notes) => self.positions(|p| notes.contains(&p.note)),
            None => (0..self.passages.len()).collect(),
        };
        for tag in &filter.without_tags {
            let notes: HashSet<FileId> = store.notes_with_tag(TagKey::new(tag).as_str())?.into_iter().collect();
            let allowed = self.positions(|p| !notes.contains(&p.note));
            eligible.intersect(&allowed);
        }
        if !filter.without_paths.is_empty() {
            let patterns = patterns(&filter.without_paths)?;
            let matched = |path: &VaultPath| any_matches(&patterns, path);
            let notes: HashSet<FileId> =
                store.notes()?.into_iter().filter(|(_, path, _)| matched(path)).map(|(id, ..)| id).collect();
            let allowed = self.positions(|p| !notes.contains(&p.note));
            eligible.intersect(&allowed);
        }
        for word in &query.without {
            let holders = lexical::holders_of_word(&store, word)?;
            let notes: HashSet<FileId> =
                holders.iter().filter_map(|&id| self.position(id)).map(|at| self.passages[at].note).collect();
            let allowed = self.positions(|p| !notes.contains(&p.note));
            eligible.intersect(&allowed);
        }
        for phrase in &query.phrases {
            let holders = lexical::holders_of_phrase(&store, phrase)?;
            let allowed: Bitmap = holders.iter().filter_map(|&id| self.position(id)).collect();
            eligible.intersect(&allowed);
        }
        Ok(Some(eligible))
    }

    fn positions(&self, holds: impl Fn(&PassageRow) -> bool) -> Bitmap {
        self.passages.iter().enumerate().filter(|(_, p)| holds(p)).map(|(at, _)| at).collect()
    }

    fn position(&self, id: i64) -> Option<usize> {
        self.passages.binary_search_by_key(&id, |p| p.id).ok()
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
            || Error::new(ErrorKind::Damaged, "a passage has no text").remedy("run `vault-index check --repair`");
        let text = store.passage_text(scored.passage)?.ok_or_else(gone)?;
        let note = store.note_meta(scored.note)?.ok_or_else(gone)?;
        let why = Why {
            semantic: scored.semantic,
            title: scored.title,
            lexical: scored.lexical,
            terms: lexical.terms_of(store, scored.passage)?,
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
    fn near_misses(&self, asked: &Asked<'_>, grouping: Grouping) -> Result<Vec<NearMiss>> {
        let store = self.store();
        let candidates = asked.candidates(&self.passages, grouping);
        let mut misses: Vec<NearMiss> = Vec::new();
        for scored in candidates.best(NEAR_MISSES, 0.0, &|slot| store.vector(slot))? {
            if let Some(note) = store.note_meta(scored.note)?
                && misses.iter().all(|miss| miss.path != note.path)
            {
                misses.push(NearMiss { path: note.path, title: note.title, score: scored.score });
            }
        }
        misses.truncate(NEAR_MISSES);
        Ok(misses)
    }
}

/// A query that is looked up: what every passage's score is made of.
struct Asked<'a> {
    eligible: Option<Bitmap>,
    lexical: Lexical,
    semantic: Semantic<'a>,
    weights: Weights,
    mode: Mode,
}

impl Asked<'_> {
    fn candidates<'a>(&'a self, passages: &'a [PassageRow], grouping: Grouping) -> Candidates<'a> {
        let Self { eligible, lexical, semantic, weights, .. } = self;
        Candidates { passages, eligible: eligible.as_ref(), lexical, semantic, weights: *weights, grouping }
    }
}

/// Notes whose properties pass a test.
fn holding(store: &Store, test: &PropertyTest, now: &Zoned) -> Result<Vec<FileId>> {
    let key = property_key(&test.key);
    if test.test == Comparison::Exists {
        return store.notes_with_property(&key);
    }
    let mut of_notes: HashMap<FileId, Vec<PropertyValue>> = HashMap::new();
    if test.test == Comparison::NotEqual {
        // A property that is empty has no values, and is not equal to any.
        of_notes.extend(store.notes_with_property(&key)?.into_iter().map(|note| (note, Vec::new())));
    }
    for (note, value) in store.property_values(&key)? {
        of_notes.entry(note).or_default().push(value);
    }
    let wanted = test.wanted(now);
    of_notes.retain(|_, values| wanted.holds(values));
    Ok(of_notes.into_keys().collect())
}

fn patterns(texts: &[String]) -> Result<Vec<PathPattern>> {
    texts.iter().map(|text| PathPattern::new(text)).collect()
}

/// Best first; equal scores by path, then by line.
fn order(hits: &mut [Hit]) {
    hits.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.path.cmp(&b.path)).then(a.line.cmp(&b.line)));
}

/// The note that a person names: by its path, with or without `.md`, or as a link from the vault's root would.
pub(crate) fn find_note(store: &Store, name: &str) -> Result<FileId> {
    let name = name.trim().trim_start_matches("[[").trim_end_matches("]]");
    if let Some(path) = VaultPath::new(name)
        && let Some(id) = store.file_id(&path)?
    {
        return Ok(id);
    }
    let files = store.paths()?;
    let mut names = Names::new();
    files.iter().for_each(|(id, path)| names.insert(*id, path));
    let root = VaultPath::new("x.md").expect("a path");
    if let Some(id) = (!name.is_empty()).then(|| resolve(&names, name, &root).target).flatten() {
        return Ok(id);
    }
    let error = Error::new(ErrorKind::NotFound, format!("there is no note `{name}`"));
    let near = nearest(name, files.iter().map(|(_, path)| path));
    Err(match near.is_empty() {
        true => error.remedy("name it by its path in the vault, or as a link would"),
        false => error.remedy(format!("did you mean {}?", near.join(" or "))),
    })
}

/// Up to three paths whose names are most like `name`, by shared pairs of letters.
fn nearest<'a>(name: &str, paths: impl Iterator<Item = &'a VaultPath>) -> Vec<String> {
    let pairs = |text: &str| -> HashSet<(char, char)> {
        let letters: Vec<char> = text.to_lowercase().chars().filter(|c| c.is_alphanumeric()).collect();
        letters.windows(2).map(|w| (w[0], w[1])).collect()
    };
    let wanted = pairs(name.rsplit('/').next().unwrap_or(name).trim_end_matches(".md"));
    let mut scored: Vec<(f32, &VaultPath)> = paths
        .filter(|path| path.kind().is_note())
        .map(|path| {
            let have = pairs(path.stem());
            let shared = wanted.intersection(&have).count() as f32;
            (2.0 * shared / (wanted.len() + have.len()).max(1) as f32, path)
        })
        .filter(|(score, _)| *score >= 0.4)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    scored.into_iter().take(3).map(|(_, path)| format!("`{path}`")).collect()
}
