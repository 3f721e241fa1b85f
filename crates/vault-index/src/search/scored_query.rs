//! One query against one snapshot: the parts of every passage's score, and the best passages.

use crate::embed::Role;
use crate::error::{Error, ErrorKind, Result};
use crate::path::FileId;
use crate::search::hit::{Hit, NearMiss, Substitution};
use crate::search::make_hits::{NEAR_MISSES, ask_for_hit, hit, near_misses, order};
use crate::search::query::filter::Filter;
use crate::search::query::{Grouping, Mode, Query, Sort};
use crate::search::rank::adjacent_words::add_adjacent;
use crate::search::rank::bm25::WordScores;
use crate::search::rank::cosine_bounds::{CosineBounds, CosineScale};
use crate::search::rank::fuse::{AHEAD, BoundedPassage, Candidates, Floor, HYBRID_FLOOR, ScoredPassage, Weights};
use crate::search::rank::imputed_cosine::ImputedCosine;
use crate::search::rank::k_best_candidates::prune;
use crate::search::rank::name_match::{Band, Bands, named};
use crate::search::rank::note_vector::note_vector;
use crate::search::rank::query_expansion::{ExpandedQuery, QueryText};
use crate::search::select::eligible::eligible;
use crate::search::select::find_note::find_note;
use crate::search::snapshot::Snapshot;
use crate::store::ReadStore;

/// The parts of the scores of all passages.
pub(super) struct ScoredQuery<'a> {
    snapshot: &'a Snapshot,
    pub eligible: Option<Vec<bool>>,
    pub substitutions: Vec<Substitution>,
    pub unknown_words: Vec<String>,
    lexical: WordScores,
    semantic: CosineBounds<'a>,
    estimate: Option<ImputedCosine>,
    names: Bands,
    pub weights: Weights,
    pub mode: Mode,
    /// Whether the model compares texts of different languages.
    crosses_languages: bool,
    /// The passages that a pass for many queries kept for this ranking.
    pub pruned: Option<(Ranking, Vec<BoundedPassage>)>,
}

/// The options of a ranking.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ranking {
    pub grouping: Grouping,
    pub limit: usize,
    pub floor: Floor,
}

impl<'a> ScoredQuery<'a> {
    /// Applies the filter, looks the words up and embeds the text. `vector` is that of the text, if it is already
    /// known.
    pub(super) fn new(snapshot: &'a Snapshot, query: &Query, vector: Option<Vec<f32>>) -> Result<Self> {
        let like = query.like.as_deref().map(|note| find_note(&*snapshot.store()?, note)).transpose()?;
        let mut eligible = eligible(snapshot, query)?;
        let text = query.text.clone();
        let has_text = like.is_none() && !text.trim().is_empty();
        let mode = if has_text { query.mode } else { Mode::Semantic };
        let vector = match (like, &query.vector) {
            (Some(note), _) => {
                // A note is not similar to itself.
                let eligible = eligible.get_or_insert_with(|| vec![true; snapshot.passages.len()]);
                eligible.iter_mut().zip(&snapshot.passages).for_each(|(eligible, p)| *eligible &= p.note != note);
                Some(unit(&note_vector(snapshot, note)?)?)
            }
            (None, Some(vector)) => Some(unit(vector)?),
            (None, None) => vector,
        };
        // Mostly all words are known, so that questions about all of them and about the meaning of the text are one round
        // trip. The model, which has been loaded by the second query, takes less than another.
        let guessed = match vector.is_none() && has_text && snapshot.prefetches {
            true => Some(embedded(snapshot, mode, &text)?),
            false => None,
        };
        let ahead = |store: &dyn ReadStore| {
            let mut words = WordScores::guess(&text);
            named(store, &text, &[], &WordScores::none())?;
            add_adjacent(store, snapshot, &text, &mut words)?;
            let vector = vector.as_ref().or_else(|| guessed.as_ref()?.1.as_ref());
            vector.map_or(Ok(()), |vector| store.intervals(vector).map(drop))
        };
        let expanded = if has_text { read(snapshot, query, &ahead)? } else { ExpandedQuery::default() };
        // Also asks for the bounds of `vector`, if it is known.
        let words = |vector: Option<&[f32]>| -> Result<(WordScores, Vec<(FileId, Band)>)> {
            if !has_text {
                return Ok((WordScores::none(), Vec::new()));
            }
            let store = snapshot.store()?;
            let by_meaning = mode == Mode::Semantic;
            let mut lexical =
                WordScores::run(&*store, &snapshot.passages, snapshot.of_notes(), &expanded, !by_meaning)?;
            store.prefetch(&mut || {
                named(&*store, &text, &expanded.meant, &lexical)?;
                if !by_meaning {
                    add_adjacent(&*store, snapshot, expanded.text(&text), &mut lexical.clone())?;
                }
                vector.map_or(Ok(()), |vector| store.intervals(vector).map(drop))
            })?;
            let named = named(&*store, &text, &expanded.meant, &lexical)?;
            if !by_meaning {
                add_adjacent(&*store, snapshot, expanded.text(&text), &mut lexical)?;
            }
            Ok((if by_meaning { WordScores::none() } else { lexical }, named))
        };
        let text = expanded.text(&text);
        let ((lexical, named), weights, vector) = match vector {
            Some(vector) => (words(Some(&vector))?, weights(snapshot, mode, text)?, Some(vector)),
            None if guessed.is_some() => {
                let guessed = guessed.filter(|_| expanded.meant.is_empty());
                let (weights, vector) = guessed.map_or_else(|| embedded(snapshot, mode, text), Ok)?;
                (words(vector.as_deref())?, weights, vector)
            }
            // The model, which is loaded for the first query, runs while the words are looked up. It has its own
            // thread, because one of a pool might start another search meanwhile, which waits for the same model.
            None => std::thread::scope(|scope| {
                let is_both = mode == Mode::Hybrid && snapshot.has_vectors;
                let spawn = || std::thread::Builder::new().spawn_scoped(scope, || embedded(snapshot, mode, text)).ok();
                let embedding = is_both.then(spawn).flatten();
                let lexical = words(None);
                let (weights, vector) = match embedding.map(std::thread::ScopedJoinHandle::join) {
                    Some(embedded) => embedded.unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                    // If no thread can be started, one after the other.
                    None => embedded(snapshot, mode, text),
                }?;
                Ok::<_, Error>((lexical?, weights, vector))
            })?,
        };
        let semantic = match vector.filter(|_| weights.semantic > 0.0) {
            Some(vector) => match snapshot.source()? {
                Some(source) => {
                    let (passages, slots, with_titles) = (&snapshot.passages, &snapshot.slots, like.is_none());
                    CosineBounds::new(vector, scale(snapshot), source, passages, slots, with_titles)?
                }
                None => CosineBounds::none(),
            },
            None => CosineBounds::none(),
        };
        let names = match named.is_empty() {
            true => Bands::default(),
            false => Bands::new(named, snapshot.of_notes(), snapshot.passages.len()),
        };
        let estimate = {
            let store = snapshot.store()?;
            let vectors = store.vectors()?;
            let estimate = || ImputedCosine::new(&snapshot.passages, &lexical, &semantic, &vectors);
            store.prefetch(&mut || estimate().map(drop))?;
            estimate()?
        };
        // In semantic mode, notes need not contain the words.
        let unknown_words = if mode == Mode::Semantic { Vec::new() } else { expanded.unknown_of(&query.text) };
        let substitutions = expanded.substitutions;
        Ok(Self {
            snapshot,
            eligible,
            substitutions,
            unknown_words,
            lexical,
            semantic,
            estimate,
            names,
            weights,
            mode,
            crosses_languages: crosses_languages(snapshot),
            pruned: None,
        })
    }

    /// The ranking for the query itself.
    pub(super) fn ranking(&self, query: &Query) -> Ranking {
        // If a query finds everything, its words require nothing of a note beyond its condition.
        let floor = match query.min_score {
            _ if query.finds_all() => Floor::NONE,
            Some(_) => Floor::of(query.min_score, self.mode, self.weights),
            None => self.measured_floor(),
        };
        Ranking { grouping: query.grouping, limit: query.limit, floor }
    }

    /// The minimum score of a query that asks for none.
    fn measured_floor(&self) -> Floor {
        let floor = Floor::of(None, self.mode, self.weights);
        if self.crosses_languages { floor.lowered(ACROSS_LANGUAGES) } else { floor }
    }

    /// The result of `find`, or its result by words only if the model cannot read the query.
    pub(super) fn find<T>(
        &mut self,
        query: &Query,
        find: impl Fn(&Self) -> Result<Vec<T>>,
        score: impl Fn(&T) -> f32,
    ) -> Result<Vec<T>> {
        let found = find(self)?;
        let is_near = match query.min_score {
            None => !found.is_empty(),
            Some(_) => found.iter().any(|found| score(found) >= HYBRID_FLOOR),
        };
        if !is_near && self.is_beyond_the_model(query)? {
            (self.mode, self.weights, self.pruned) = (Mode::Lexical, Weights::LEXICAL, None);
            return find(self);
        }
        Ok(found)
    }

    /// Whether nothing in the whole vault is close to a query by meaning and words, although its words occur: the model
    /// knows fragments of other languages, and places them far from everything. Filters and the minimum score do not
    /// affect this, so that they change no score. Called if nothing was found, or only weak results.
    fn is_beyond_the_model(&self, query: &Query) -> Result<bool> {
        if self.mode != Mode::Hybrid || self.weights.semantic == 0.0 || query.limit == 0 {
            return Ok(false);
        }
        let everywhere = Query { filter: Filter::default(), condition: None, min_score: None, ..query.clone() };
        if everywhere == *query {
            return Ok(true);
        }
        let finds_nothing = |scored: &Self| -> Result<bool> {
            Ok(scored
                .best(Ranking { grouping: Grouping::BestPassage, limit: 1, ..scored.ranking(&everywhere) })?
                .is_empty())
        };
        match query.filter.is_empty() && query.condition.is_none() {
            true => finds_nothing(self),
            false => finds_nothing(&Self::new(self.snapshot, &everywhere, None)?),
        }
    }

    /// The best of a ranking, best first.
    pub(super) fn best(&self, ranking: Ranking) -> Result<Vec<Hit>> {
        self.best_hits(&self.ranked(ranking)?, ranking.limit)
    }

    /// The best of a ranking and all that tie with the last of them, without their texts.
    pub(super) fn ranked(&self, ranking: Ranking) -> Result<Vec<ScoredPassage>> {
        let candidates = self.candidates(self.eligible.as_deref(), ranking);
        match &self.pruned {
            Some((of, kept)) if *of == ranking => self.score_exactly(&candidates, kept.clone()),
            _ => self.score_exactly(&candidates, pruned(candidates)),
        }
    }

    /// The store is locked only here, so that other searches can read it while passages are pruned.
    fn score_exactly(&self, candidates: &Candidates<'_>, kept: Vec<BoundedPassage>) -> Result<Vec<ScoredPassage>> {
        let store = self.snapshot.store()?;
        let vectors = store.vectors()?;
        let ahead = |kept: &[BoundedPassage]| {
            store.prefetch(&mut || {
                for passage in kept.iter().map(|kept| &candidates.passages[kept.position as usize]) {
                    if !self.semantic.is_none() {
                        let slots = [passage.vector, passage.title];
                        slots.into_iter().flatten().try_for_each(|slot| vectors(slot.get().into()).map(drop))?;
                    }
                    // Few results are wanted: most of these will be shown.
                    if candidates.k <= AHEAD {
                        ask_for_hit(&*store, passage.id, passage.note)?;
                    }
                }
                Ok(())
            })
        };
        candidates.best(kept, &vectors, &ahead)
    }

    fn best_hits(&self, ranked: &[ScoredPassage], limit: usize) -> Result<Vec<Hit>> {
        let mut hits = self.hits(ranked)?;
        order(&mut hits);
        hits.truncate(limit);
        Ok(hits)
    }

    fn candidates<'c>(&'c self, eligible: Option<&'c [bool]>, ranking: Ranking) -> Candidates<'c> {
        Candidates {
            passages: &self.snapshot.passages,
            eligible,
            lexical: &self.lexical,
            semantic: &self.semantic,
            estimate: self.estimate,
            names: &self.names,
            weights: self.weights,
            grouping: ranking.grouping,
            k: ranking.limit,
            floor: ranking.floor,
        }
    }

    pub(super) fn hits(&self, ranked: &[ScoredPassage]) -> Result<Vec<Hit>> {
        let store = self.snapshot.store()?;
        let hit = |scored: &ScoredPassage| {
            let terms = self.snapshot.position(scored.passage).map(|at| self.lexical.terms_of(at));
            hit(&*store, scored, terms.unwrap_or_default(), self.weights)
        };
        store
            .prefetch(&mut || ranked.iter().try_for_each(|scored| ask_for_hit(&*store, scored.passage, scored.note)))?;
        ranked.iter().map(hit).collect()
    }

    /// The best of the notes that would be found with the measured floor as the minimum score, and of those that
    /// contain a word of the query. By meaning alone, every text is near something, even meaningless words.
    pub(super) fn near_misses(&self) -> Result<Vec<NearMiss>> {
        let ranking = |floor| Ranking { grouping: Grouping::BestPassage, limit: NEAR_MISSES, floor };
        let mut near = self.best(ranking(self.measured_floor()))?;
        let is_eligible = |at: usize| self.eligible.as_ref().is_none_or(|eligible| eligible[at]);
        let holds_a_word = |at: usize| is_eligible(at) && self.lexical.score(at) > 0.0;
        let holders: Vec<bool> = (0..self.snapshot.passages.len()).map(holds_a_word).collect();
        let holders = self.candidates(Some(&holders), ranking(Floor::NONE));
        near.extend(self.best_hits(&self.score_exactly(&holders, pruned(holders))?, NEAR_MISSES)?);
        order(&mut near);
        Ok(near_misses(&near))
    }
}

fn pruned(candidates: Candidates<'_>) -> Vec<BoundedPassage> {
    prune(&[candidates]).pop().unwrap_or_default()
}

/// Prunes the passages of all queries that are ranked by score, in one pass.
pub(super) fn prune_together(queries: &[Query], scored: &mut [Result<Option<ScoredQuery<'_>>>]) {
    let by_score: Vec<(&mut ScoredQuery<'_>, Ranking)> = (scored.iter_mut().zip(queries))
        .filter(|(_, query)| query.sort == Sort::Score)
        .filter_map(|(scored, query)| scored.as_mut().ok()?.as_mut().map(|scored| (scored, query)))
        .map(|(scored, query)| {
            let ranking = scored.ranking(query);
            (scored, ranking)
        })
        .collect();
    let candidates: Vec<Candidates<'_>> =
        by_score.iter().map(|(scored, ranking)| scored.candidates(scored.eligible.as_deref(), *ranking)).collect();
    let kept = prune(&candidates);
    for ((scored, ranking), kept) in by_score.into_iter().zip(kept) {
        scored.pruned = Some((ranking, kept));
    }
}

/// The vectors of the queries that are ranked by the meaning of their text, embedded together. If the model fails,
/// all of them are missing, and each search reports the error itself.
pub(super) fn vectors_of(snapshot: &Snapshot, queries: &[Query]) -> Vec<Option<Vec<f32>>> {
    let mut vectors = vec![None; queries.len()];
    let mut texts: Vec<(usize, String)> = Vec::new();
    for (at, query) in queries.iter().enumerate() {
        let text = &query.text;
        let has_vector = query.like.is_some() || query.vector.is_some();
        if !has_vector
            && !text.trim().is_empty()
            && let Ok(expanded) = read(snapshot, query, &|_| Ok(()))
            && weights(snapshot, query.mode, expanded.text(text)).is_ok_and(|weights| weights.semantic > 0.0)
        {
            texts.push((at, expanded.text(text).to_owned()));
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

/// Expands the words of a query. `ahead` asks for what is probably needed next.
fn read(snapshot: &Snapshot, query: &Query, ahead: &dyn Fn(&dyn ReadStore) -> Result<()>) -> Result<ExpandedQuery> {
    let asked = QueryText { text: &query.text, prefixes: &query.prefixes };
    ExpandedQuery::new(&*snapshot.store()?, &asked, &|store| snapshot.vocabulary(store), ahead)
}

/// The weights of the score's parts. If most words of the query are unknown to the model, or the query has no words (an
/// emoji, a sign), only words count.
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

/// The weights for a query's text, and its vector if meaning has a weight.
fn embedded(snapshot: &Snapshot, mode: Mode, text: &str) -> Result<(Weights, Option<Vec<f32>>)> {
    let weights = weights(snapshot, mode, text)?;
    let vector = match weights.semantic > 0.0 {
        true => (snapshot.embedder)()?.embed(&[text], Role::Query)?.pop(),
        false => None,
    };
    Ok((weights, vector))
}

/// The vector, scaled to length 1. A vector of that length stays unchanged, bit for bit.
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

/// The height of the floor with a model of many languages, because a question is less close to its answer in another
/// language. With multilingual-e5-small, the medians of the bench `languages` are .13 (Russian) to .27 (Spanish) for
/// questions in English, and .37 to .46 for those in the language of the notes, on the scale of scores. Results below
/// the ordinary floor are weak.
const ACROSS_LANGUAGES: f32 = 0.36;

/// The scale of the cosines of the index's model.
fn scale(snapshot: &Snapshot) -> CosineScale {
    CosineScale::new((snapshot.embedder)().ok().and_then(|embedder| embedder.cosine_range()))
}

fn crosses_languages(snapshot: &Snapshot) -> bool {
    scale(snapshot).is_known() && (snapshot.embedder)().is_ok_and(|embedder| embedder.is_multilingual())
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::embed::HashedEmbedder;
    use crate::index::{Index, Options};
    use crate::terms::{Terms, is_stop_word, name_key};

    /// Numbers that a seed determines.
    struct Random(u64);

    impl Random {
        fn below(&mut self, end: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) as usize % end
        }

        fn item<'t, T>(&mut self, items: &'t [T]) -> &'t T {
            &items[self.below(items.len())]
        }
    }

    fn words(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        Terms::new().each(text, |term, _| words.push(term.to_owned()));
        words
    }

    /// Questions in which only stop words are adjacent as in some note: `apples of the river`, `apples of-the river`.
    /// A name of a note earns by itself.
    fn questions(vault: &Path, is_name: impl Fn(&str) -> bool, count: usize) -> Vec<String> {
        fn notes_in(folder: &Path, notes: &mut Vec<PathBuf>) {
            let mut entries: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
            entries.sort();
            for path in entries {
                match path.is_dir() {
                    true => notes_in(&path, notes),
                    false if path.extension().is_some_and(|ending| ending == "md") => notes.push(path),
                    false => {}
                }
            }
        }
        let mut paths = Vec::new();
        notes_in(vault, &mut paths);
        let texts = paths.iter().map(|path| std::fs::read_to_string(path).unwrap());
        let notes: Vec<Vec<String>> = texts.map(|text| words(&text)).filter(|words| !words.is_empty()).collect();
        let joined: Vec<String> = notes.iter().map(|words| format!(" {} ", words.join(" "))).collect();
        let is_in_a_note = |text: String| joined.iter().any(|note| note.contains(&text));
        let tells = |word: &str| word.len() > 3 && !is_stop_word(word) && !is_name(word);
        let mut random = Random(28);
        let mut questions = Vec::new();
        while questions.len() < count {
            let note = random.item(&notes);
            let start = random.below(note.len());
            let run = &note[start..note.len().min(start + 2 + random.below(2))];
            let [before, after] = [(), ()].map(|()| {
                let note: &Vec<String> = random.item(&notes);
                random.item(note).as_str()
            });
            if run.len() < 2 || !run.iter().all(|word| is_stop_word(word)) || !tells(before) || !tells(after) {
                continue;
            }
            let is_adjacent = [format!(" {before} {} ", run[0]), format!(" {} {after} ", run[run.len() - 1])];
            if !is_adjacent.into_iter().any(is_in_a_note) {
                let run = run.join(if random.below(2) == 0 { " " } else { "-" });
                questions.push(format!("{before} {run} {after}"));
            }
        }
        questions
    }

    #[test]
    fn adjacent_stop_words_change_no_result() {
        let vault = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/vaults/demo");
        let folder = tempfile::tempdir().unwrap();
        let options = Options::new().index_file(folder.path().join("index.db"));
        let index = Index::open(&vault, options.embedder(std::sync::Arc::new(HashedEmbedder::new()))).unwrap();
        index.sync().unwrap();
        let searcher = index.searcher().unwrap();
        let snapshot = &searcher.snapshot;
        // The results with adjacent words and without them.
        let both = |text: &str, mode: Mode| {
            let query = Query::literal(text).mode(mode);
            let mut scored = ScoredQuery::new(snapshot, &query, None).unwrap();
            let ranking = Ranking { floor: Floor::NONE, ..scored.ranking(&query) };
            let best = |scored: &ScoredQuery<'_>| -> Vec<(String, f32)> {
                let hits = scored.best(ranking).unwrap();
                hits.into_iter().map(|hit| (hit.path.to_string(), hit.score)).collect()
            };
            let with = best(&scored);
            let expanded = read(snapshot, &query, &|_| Ok(())).unwrap();
            let (passages, of_notes) = (&snapshot.passages, snapshot.of_notes());
            scored.lexical = WordScores::run(&*snapshot.store().unwrap(), passages, of_notes, &expanded, true).unwrap();
            (with, best(&scored))
        };
        let is_name = |word: &str| !snapshot.store().unwrap().notes_named(&name_key(word)).unwrap().is_empty();
        for question in questions(&vault, is_name, 100) {
            for mode in [Mode::Lexical, Mode::Hybrid] {
                let (with, without) = both(&question, mode);
                assert!(!with.is_empty());
                assert_eq!(with, without, "{question} ({mode:?})");
            }
        }
        // Other adjacent words do change results.
        let (with, without) = both("long even strokes", Mode::Lexical);
        assert_ne!(with, without);
    }
}
