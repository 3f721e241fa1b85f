//! Answers queries from one state of the index: looks a query up, and makes hits of what scores best.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

use crate::embed::Role;
use crate::error::{Error, ErrorKind, Result};
use crate::path::{FileId, FileKind, VaultPath};
use crate::search::adjacent::add_adjacent;
use crate::search::direction::direction;
use crate::search::eligible::eligible;
use crate::search::estimate::Estimate;
use crate::search::excerpt::best_match;
use crate::search::filter::Filter;
use crate::search::find_note::find_note;
use crate::search::forms::{Asked, Reading};
use crate::search::fuse::{Candidates, Floor, HYBRID_FLOOR, Scored, Weights};
use crate::search::hit::{Hit, Hits, NearMiss, Substitution, Why};
use crate::search::lexical::Lexical;
use crate::search::names::{Band, Bands, named};
use crate::search::query::{Grouping, Mode, Query, Sort};
use crate::search::semantic::Semantic;
use crate::search::snapshot::{EmbedderSource, Snapshot};
use crate::store::{PassageRow, Store};

/// A consistent snapshot of an index: what is written meanwhile does not change its answers. Cheap to clone, usable
/// from many threads. It holds 32 bytes a passage in memory, and `dimensions + 12` bytes a vector from the
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

    /// An answer without results, with the counts of pending notes that every answer has.
    pub fn nothing(&self, mode: Mode) -> Hits {
        hits(&self.snapshot, Vec::new(), mode, Vec::new())
    }

    /// `vector` is that of the query's text, where it is known already.
    fn search_with(&self, query: &Query, vector: Option<Vec<f32>>) -> Result<Hits> {
        check(query)?;
        if is_list(query) {
            let eligible = eligible(&self.snapshot, query)?;
            let results = self.list(eligible.as_deref(), query, query.limit)?;
            return Ok(hits(&self.snapshot, results, query.mode, Vec::new()));
        }
        let mut scored = ScoredQuery::new(&self.snapshot, query, vector)?;
        let mut results = self.found(query, &mut scored, |scored| self.sorted(scored, query), |hit| hit.score)?;
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

    /// The first results in the order that the query wants.
    fn sorted(&self, scored: &ScoredQuery<'_>, query: &Query) -> Result<Vec<Hit>> {
        if query.sort == Sort::Score {
            return scored.best(query.grouping, query.limit, scored.floor(query));
        }
        let mut all = self.all(scored, query)?;
        let notes = self.notes()?;
        all.sort_by_cached_key(|scored| (key(notes.get(&scored.note), query.sort), scored.passage));
        all.truncate(query.limit);
        scored.hits(&all)
    }

    /// All that a ranked query finds, best first, without the texts.
    fn all(&self, scored: &ScoredQuery<'_>, query: &Query) -> Result<Vec<Scored>> {
        let eligible = scored.eligible.as_deref();
        let mut all = scored.ranked(eligible, query.grouping, usize::MAX, scored.floor(query))?;
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
            all.extend(others.map(|passage| Scored { score: 0.0, ..Scored::listed(passage) }));
        }
        Ok(all)
    }

    /// What `find` finds, or what it finds by words alone where the query is beyond the model.
    pub(super) fn found<'a, T>(
        &self,
        query: &Query,
        scored: &mut ScoredQuery<'a>,
        find: impl Fn(&ScoredQuery<'a>) -> Result<Vec<T>>,
        score: impl Fn(&T) -> f32,
    ) -> Result<Vec<T>> {
        let found = find(scored)?;
        let is_near = match query.min_score {
            None => !found.is_empty(),
            Some(_) => found.iter().any(|found| score(found) >= HYBRID_FLOOR),
        };
        if !is_near && self.is_beyond_the_model(query, scored)? {
            (scored.mode, scored.weights) = (Mode::Lexical, Weights::LEXICAL);
            return find(scored);
        }
        Ok(found)
    }

    /// Whether nothing in the whole vault is near enough a query by meaning and words, though words of it are there: the
    /// model knows pieces of other languages, and makes of them what lies far from everything. Neither filters nor the
    /// least score have a say in it, so that they change no score. Asked where nothing was found, or only what is too weak.
    fn is_beyond_the_model(&self, query: &Query, scored: &ScoredQuery<'_>) -> Result<bool> {
        if scored.mode != Mode::Hybrid || scored.weights.semantic == 0.0 || query.limit == 0 {
            return Ok(false);
        }
        let everywhere = Query { filter: Filter::default(), condition: None, min_score: None, ..query.clone() };
        if everywhere == *query {
            return Ok(true);
        }
        let finds_nothing = |scored: &ScoredQuery<'_>| -> Result<bool> {
            Ok(scored.best(Grouping::BestPassage, 1, scored.floor(&everywhere))?.is_empty())
        };
        match query.filter.is_empty() && query.condition.is_none() {
            true => finds_nothing(scored),
            false => finds_nothing(&ScoredQuery::new(&self.snapshot, &everywhere, None)?),
        }
    }

    /// The notes that match, each once, or with [`Grouping::Passages`] once for each of its passages that does, in the
    /// order of the results: what [`search`](Self::search) would find without a limit, best first or, without anything to
    /// rank by, newest first. No text is read.
    ///
    /// # Errors
    /// Those of [`search`](Self::search).
    pub fn matches(&self, query: &Query) -> Result<Vec<VaultPath>> {
        check(query)?;
        let ids: Vec<FileId> = match is_list(query) {
            true => {
                let eligible = eligible(&self.snapshot, query)?;
                self.listed(eligible.as_deref(), query)?.into_iter().map(|passage| passage.note).collect()
            }
            false => {
                let mut scored = ScoredQuery::new(&self.snapshot, query, None)?;
                let all = self.found(query, &mut scored, |scored| self.all(scored, query), |scored| scored.score)?;
                all.into_iter().map(|scored| scored.note).collect()
            }
        };
        let notes = self.notes()?;
        Ok(ids.iter().filter_map(|id| Some(notes.get(id)?.0.clone())).collect())
    }

    /// What may be found, without a ranking, in the order of [`Self::listed`].
    fn list(&self, eligible: Option<&[bool]>, query: &Query, limit: usize) -> Result<Vec<Hit>> {
        let mut rows = self.listed(eligible, query)?;
        rows.truncate(limit);
        let store = self.snapshot.store();
        rows.into_iter().map(|passage| hit(&store, &Scored::listed(passage), Vec::new(), Weights::NONE)).collect()
    }

    /// The passages that may be found, or the first of each note. Where they are not sorted by path, newest notes first;
    /// equal times by path, then by line.
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
        // Ids are in the order in which notes were indexed, which must not show; within a note they are in order.
        let sort = if query.sort == Sort::Score { Sort::Modified } else { query.sort };
        rows.sort_by_key(|passage| (key(notes.get(&passage.note), sort), passage.id));
        Ok(rows)
    }

    /// Paths of all notes, and when they were changed.
    fn notes(&self) -> Result<HashMap<FileId, (VaultPath, i64)>> {
        Ok(self.snapshot.store().notes()?.into_iter().map(|(id, path, time)| (id, (path, time))).collect())
    }
}

/// Whether there are only filters, so that nothing is ranked.
fn is_list(query: &Query) -> bool {
    query.text.trim().is_empty() && query.like.is_none() && query.vector.is_none()
}

/// What notes are sorted by: the newest first, or by path alone.
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

/// Notes that are named where none is found.
const NEAR_MISSES: usize = 3;

/// What every passage's score is made of.
pub(super) struct ScoredQuery<'a> {
    snapshot: &'a Snapshot,
    eligible: Option<Vec<bool>>,
    pub substitutions: Vec<Substitution>,
    pub unknown_words: Vec<String>,
    lexical: Lexical,
    semantic: Semantic<'a>,
    estimate: Option<Estimate>,
    names: Bands,
    pub weights: Weights,
    pub mode: Mode,
}

impl<'a> ScoredQuery<'a> {
    /// Applies the filter, looks the words up and scans the vectors. `vector` is that of the query's text, where it is
    /// known already.
    pub(super) fn new(snapshot: &'a Snapshot, query: &Query, vector: Option<Vec<f32>>) -> Result<Self> {
        let like = query.like.as_deref().map(|note| find_note(&snapshot.store(), note)).transpose()?;
        let mut eligible = eligible(snapshot, query)?;
        let text = query.text.clone();
        let has_text = like.is_none() && !text.trim().is_empty();
        let mode = if has_text { query.mode } else { Mode::Semantic };
        let vector = match (like, &query.vector) {
            (Some(note), _) => {
                // A note is not similar to itself.
                let eligible = eligible.get_or_insert_with(|| vec![true; snapshot.passages.len()]);
                eligible.iter_mut().zip(&snapshot.passages).for_each(|(eligible, p)| *eligible &= p.note != note);
                Some(unit(&direction(snapshot, note)?)?)
            }
            (None, Some(vector)) => Some(unit(vector)?),
            (None, None) => vector,
        };
        let reading = if has_text { read(snapshot, query)? } else { Reading::default() };
        let words = || -> Result<(Lexical, Vec<(FileId, Band)>)> {
            if !has_text {
                return Ok((Lexical::none(), Vec::new()));
            }
            let store = snapshot.store();
            let by_meaning = mode == Mode::Semantic;
            let mut lexical = Lexical::run(&store, &snapshot.passages, snapshot.of_notes(), &reading, !by_meaning)?;
            let named = named(&store, &text, &reading.meant, &lexical)?;
            if !by_meaning {
                add_adjacent(&store, snapshot, reading.text(&text), &mut lexical)?;
            }
            Ok((if by_meaning { Lexical::none() } else { lexical }, named))
        };
        let text = reading.text(&text);
        let ((lexical, named), weights, vector) = match vector {
            Some(vector) => (words()?, weights(snapshot, mode, text)?, Some(vector)),
            // The model reads the query, and is loaded for the first one, while the words are looked up. A thread of
            // its own: one of a pool might take up another search meanwhile, which waits for the same model.
            None => std::thread::scope(|scope| {
                let is_both = mode == Mode::Hybrid && snapshot.has_vectors;
                let spawn = || std::thread::Builder::new().spawn_scoped(scope, || embedded(snapshot, mode, text)).ok();
                let embedding = is_both.then(spawn).flatten();
                let lexical = words();
                let (weights, vector) = match embedding.map(std::thread::ScopedJoinHandle::join) {
                    Some(embedded) => embedded.unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                    // Where no thread can be had, one after the other.
                    None => embedded(snapshot, mode, text),
                }?;
                Ok::<_, Error>((lexical?, weights, vector))
            })?,
        };
        let semantic = match vector.filter(|_| weights.semantic > 0.0) {
            Some(vector) => match snapshot.source()? {
                Some(source) => Semantic::new(vector, source, &snapshot.passages, eligible.as_deref(), like.is_none())?,
                None => Semantic::none(),
            },
            None => Semantic::none(),
        };
        let names = match named.is_empty() {
            true => Bands::default(),
            false => Bands::new(named, snapshot.of_notes(), snapshot.passages.len()),
        };
        let estimate = {
            let store = snapshot.store();
            Estimate::new(&snapshot.passages, &lexical, &semantic, &|slot| store.vector(slot))?
        };
        // By meaning alone, words need not be in a note.
        let unknown_words = if mode == Mode::Semantic { Vec::new() } else { reading.unknown_of(&query.text) };
        let substitutions = reading.substitutions;
        Ok(Self { snapshot, eligible, substitutions, unknown_words, lexical, semantic, estimate, names, weights, mode })
    }

    pub(super) fn floor(&self, query: &Query) -> Floor {
        // The words of such a query ask nothing of a note that its condition does not.
        if query.finds_all() { Floor::NONE } else { Floor::of(query.min_score, self.mode, self.weights) }
    }

    /// The `limit` best with at least `floor`, best first.
    pub(super) fn best(&self, grouping: Grouping, limit: usize, floor: Floor) -> Result<Vec<Hit>> {
        self.best_of(self.eligible.as_deref(), grouping, limit, floor)
    }

    fn best_of(&self, eligible: Option<&[bool]>, grouping: Grouping, limit: usize, floor: Floor) -> Result<Vec<Hit>> {
        let mut results = self.hits(&self.ranked(eligible, grouping, limit, floor)?)?;
        order(&mut results);
        results.truncate(limit);
        Ok(results)
    }

    /// The same, and all that tie with the last of them, without their texts.
    fn ranked(&self, eligible: Option<&[bool]>, grouping: Grouping, limit: usize, floor: Floor) -> Result<Vec<Scored>> {
        let store = self.snapshot.store();
        let candidates = Candidates {
            passages: &self.snapshot.passages,
            eligible,
            lexical: &self.lexical,
            semantic: &self.semantic,
            estimate: self.estimate,
            names: &self.names,
            weights: self.weights,
            grouping,
        };
        candidates.best(limit, floor, &|slot| store.vector(slot))
    }

    fn hits(&self, ranked: &[Scored]) -> Result<Vec<Hit>> {
        let store = self.snapshot.store();
        let hit = |scored: &Scored| {
            let terms = self.snapshot.position(scored.passage).map(|at| self.lexical.terms_of(at));
            hit(&store, scored, terms.unwrap_or_default(), self.weights)
        };
        ranked.iter().map(hit).collect()
    }

    /// The best notes of those that would be found if no higher score were asked for than the measured floor, and of those
    /// that hold a word of the query. Meaning alone is near to anything, also to words that mean nothing.
    pub(super) fn near_misses(&self) -> Result<Vec<NearMiss>> {
        let mut near = self.best(Grouping::BestPassage, NEAR_MISSES, Floor::of(None, self.mode, self.weights))?;
        let is_eligible = |at: usize| self.eligible.as_ref().is_none_or(|eligible| eligible[at]);
        let holds_a_word = |at: usize| is_eligible(at) && self.lexical.score(at) > 0.0;
        let holders: Vec<bool> = (0..self.snapshot.passages.len()).map(holds_a_word).collect();
        near.extend(self.best_of(Some(&holders), Grouping::BestPassage, NEAR_MISSES, Floor::NONE)?);
        order(&mut near);
        Ok(near_misses(&near))
    }
}

/// The vectors of those queries that are ranked by the meaning of their text, made together. Where the model fails,
/// none: each search finds that out for itself.
pub(super) fn vectors_of(snapshot: &Snapshot, queries: &[Query]) -> Vec<Option<Vec<f32>>> {
    let mut vectors = vec![None; queries.len()];
    let mut texts: Vec<(usize, String)> = Vec::new();
    for (at, query) in queries.iter().enumerate() {
        let text = &query.text;
        let has_vector = query.like.is_some() || query.vector.is_some();
        if !has_vector
            && !text.trim().is_empty()
            && let Ok(reading) = read(snapshot, query)
            && weights(snapshot, query.mode, reading.text(text)).is_ok_and(|weights| weights.semantic > 0.0)
        {
            texts.push((at, reading.text(text).to_owned()));
        }
    }
    let made = || {
        let texts: Vec<&str> = texts.iter().map(|(_, text)| text.as_str()).collect();
        (snapshot.embedder)()?.embed(&texts, Role::Query)
    };
    if texts.len() > 1
        && let Ok(made) = made()
    {
        texts.iter().zip(made).for_each(|((at, _), vector)| vectors[*at] = Some(vector));
    }
    vectors
}

/// What the words of a query stand for.
fn read(snapshot: &Snapshot, query: &Query) -> Result<Reading> {
    let asked = Asked { text: &query.text, prefixes: &query.prefixes };
    Reading::new(&snapshot.store(), &asked, &|store| snapshot.vocabulary(store))
}

/// What the parts of the score are multiplied by: where most words of the query are unknown to the model, or it has none
/// (an emoji, a sign), words alone decide.
fn weights(snapshot: &Snapshot, mode: Mode, text: &str) -> Result<Weights> {
    Ok(match mode {
        Mode::Lexical => Weights::LEXICAL,
        Mode::Semantic => Weights::SEMANTIC,
        Mode::Hybrid if !snapshot.has_vectors => Weights::HYBRID.without_semantic(),
        Mode::Hybrid if !text.chars().any(char::is_alphanumeric) => Weights::LEXICAL,
        Mode::Hybrid if (snapshot.embedder)()?.known_share(text) < 0.5 => Weights::LEXICAL,
        Mode::Hybrid => Weights::HYBRID,
    })
}

/// The weights of a query's text, and its vector where that has a weight.
fn embedded(snapshot: &Snapshot, mode: Mode, text: &str) -> Result<(Weights, Option<Vec<f32>>)> {
    let weights = weights(snapshot, mode, text)?;
    let vector = match weights.semantic > 0.0 {
        true => (snapshot.embedder)()?.embed(&[text], Role::Query)?.pop(),
        false => None,
    };
    Ok((weights, vector))
}

/// The vector, scaled to length 1. One that has that length stays as it is, bit for bit.
fn unit(vector: &[f32]) -> Result<Vec<f32>> {
    let norm = vector.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>().sqrt();
    if !norm.is_finite() || norm == 0.0 {
        return Err(Error::new(
            ErrorKind::Query,
            "the query's vector has no direction: it is empty, all zeros, or not finite",
        )
        .with_remedy("use a vector that the index's model made of a text"));
    }
    let is_unit = (norm - 1.0).abs() < 1e-6;
    Ok(if is_unit { vector.to_vec() } else { vector.iter().map(|&x| (f64::from(x) / norm) as f32).collect() })
}

pub(super) fn hit(store: &Store, scored: &Scored, terms: Vec<String>, weights: Weights) -> Result<Hit> {
    let missing =
        || Error::new(ErrorKind::Damaged, "a passage has no text").with_remedy("run `vault-index check --repair`");
    let text = store.passage_text(scored.passage)?.ok_or_else(missing)?;
    let note = store.note_meta(scored.note)?.ok_or_else(missing)?;
    let why = Why {
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
        // The first line is the first that is not blank.
        let above = text.text[..at].trim_start().matches('\n').count() as u32;
        // The cards of a canvas have lines that its file has not.
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

/// The headings that a line of a note is under, where one of them stands below the line `first`.
fn headings_at(store: &Store, note: FileId, first: u32, line: u32) -> Result<Option<Vec<String>>> {
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

/// The best notes of a ranking none of which is a result.
pub(super) fn near_misses(ranking: &[Hit]) -> Vec<NearMiss> {
    let mut notes = HashSet::new();
    let of_notes = ranking.iter().filter(|hit| notes.insert(&hit.path));
    let miss = |hit: &Hit| NearMiss { path: hit.path.clone(), title: hit.title.clone(), score: hit.score };
    of_notes.take(NEAR_MISSES).map(miss).collect()
}

/// Best first; equal scores by path, then by line.
pub(super) fn order(hits: &mut [Hit]) {
    hits.sort_by(|a, b| {
        b.score.total_cmp(&a.score).then_with(|| a.path.cmp(&b.path)).then(a.start_line.cmp(&b.start_line))
    });
}
