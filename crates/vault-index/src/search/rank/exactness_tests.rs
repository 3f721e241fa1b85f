//! The k best equal those of the naive loop over all passages, in every mode, with filters, titles and ties.

use std::sync::OnceLock;

use proptest::prelude::*;

use crate::path::FileId;
use crate::search::hit::NameMatch;
use crate::search::note_passages::NotePassages;
use crate::search::query::{Grouping, Mode};
use crate::search::rank::bm25::WordScores;
use crate::search::rank::cosine_bounds::{CosineBounds, CosineScale, ONLY_LINKS};
use crate::search::rank::fuse::{Candidates, Floor, ScoredPassage, Weights};
use crate::search::rank::imputed_cosine::ImputedCosine;
use crate::search::rank::k_best_candidates::prune_by;
use crate::search::rank::name_match::{Band, BandHalf, Bands, ORDINARY, Spelling};
use crate::search::repeated_passages::REPEATED;
use crate::search::vector_rows::{PassageSlots, VectorSource};
use crate::store::{PassageRow, Slot};
use crate::vectors::{BLOCK_ROWS, Codes, QuantizedRow, block_len, rescore, row_bytes};

const DIMENSIONS: usize = 24;

/// Vectors by slot, and passages that have some of them.
#[derive(Debug, Clone)]
struct Index {
    vectors: Vec<Vec<f32>>,
    passages: Vec<PassageRow>,
    lexical: Vec<f32>,
}

impl Index {
    /// The first slot is 1.
    fn codes(&self) -> Codes {
        let mut block = vec![0; block_len(DIMENSIONS)];
        assert!(self.vectors.len() < BLOCK_ROWS);
        for (at, vector) in self.vectors.iter().enumerate() {
            for (offset, bytes) in row_bytes(at + 1, &QuantizedRow::new(vector).unwrap()) {
                block[offset..][..bytes.len()].copy_from_slice(&bytes);
            }
        }
        let mut codes = Codes::new(DIMENSIONS);
        codes.load_block(0, &block).unwrap();
        codes
    }

    fn vector(&self, slot: i64) -> &[f32] {
        &self.vectors[slot as usize - 1]
    }

    /// A naive implementation of `Candidates::best`.
    fn naive(&self, asked: &TestQuery, estimate: Option<ImputedCosine>) -> Vec<ScoredPassage> {
        let scale = CosineScale::new(asked.range);
        let cosine = |slot: Slot| scale.apply(rescore(&asked.query, self.vector(slot.get().into())));
        let mut all: Vec<ScoredPassage> = Vec::new();
        for (position, passage) in self.passages.iter().enumerate() {
            if asked.eligible.as_ref().is_some_and(|eligible| !eligible[position]) {
                continue;
            }
            let text = passage.vector.filter(|_| asked.weights.semantic > 0.0).map(cosine);
            let title = text.and(passage.title.filter(|_| asked.with_titles)).map(cosine);
            let own = match (passage.is_repeated(), passage.is_only_links()) {
                (true, _) => REPEATED,
                (false, true) => ONLY_LINKS,
                (false, false) => 1.0,
            };
            let with_title = |text: f32, title: f32| (own * text).max((own - 0.25) * text + 0.25 * title);
            let semantic = text.map(|text| title.map_or(own * text, |title| with_title(text, title)).max(0.0));
            let lexical = if asked.weights.lexical > 0.0 { self.lexical[position] } else { 0.0 };
            let estimated = if text.is_none() { estimate.and_then(|estimate| estimate.cosine(lexical)) } else { None };
            let meaning = semantic.or(estimated).unwrap_or(0.0);
            let sum = (asked.weights.semantic * meaning + asked.weights.lexical * lexical).min(ORDINARY);
            // Some have the words of the query side by side.
            let least = Some(ORDINARY * (0.9 * lexical)).filter(|least| position % 7 == 0 && *least > sum);
            let ordinary = least.unwrap_or(sum);
            let repeated = passage.is_repeated().then_some(passage.repeated as usize);
            let band = asked.names.iter().find(|(note, _)| *note == passage.note).map(|(_, band)| *band);
            let score = band.map_or(ordinary, |band| band.score(ordinary));
            let (passage, note, name) = (passage.id, passage.note, band.map(Band::name_match));
            all.push(ScoredPassage {
                passage,
                note,
                score,
                lexical,
                semantic,
                estimated,
                title,
                name,
                least,
                repeated,
            });
        }
        let floor = Floor::of(asked.min_score, asked.mode, asked.weights);
        all.retain(|scored| scored.score > 0.0 && scored.score >= floor.least(scored.semantic.is_some()));
        all.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.passage.cmp(&b.passage)));
        if asked.grouping == Grouping::BestPassage {
            let mut notes = std::collections::HashSet::new();
            all.retain(|scored| notes.insert(scored.note));
        }
        // All that tie with the k-th are returned, to be ordered by path and line.
        let kth = asked.k.checked_sub(1).and_then(|last| all.get(last)).map(|scored| scored.score);
        all.retain(|scored| asked.k > 0 && kth.is_none_or(|kth| scored.score >= kth));
        all
    }
}

#[derive(Debug, Clone)]
struct TestQuery {
    query: Vec<f32>,
    /// The cosines of unrelated texts and of answers by the model.
    range: Option<(f32, f32)>,
    mode: Mode,
    weights: Weights,
    with_titles: bool,
    names: Vec<(FileId, Band)>,
    eligible: Option<Vec<bool>>,
    grouping: Grouping,
    min_score: Option<f32>,
    k: usize,
}

fn unit() -> impl Strategy<Value = Vec<f32>> {
    prop::collection::vec(-1.0_f32..1.0, DIMENSIONS).prop_map(|mut vector| {
        let norm = rescore(&vector, &vector).sqrt().max(1e-3);
        vector.iter_mut().for_each(|x| *x /= norm);
        vector
    })
}

/// Vectors of which many are equal, equal except for the last bit, or closer than codes can distinguish; passages that
/// share notes and vectors.
fn index() -> impl Strategy<Value = Index> {
    let vectors = (
        prop::collection::vec(unit(), 1..12),
        prop::collection::vec((any::<prop::sample::Index>(), 0..3_u8, 0..40_usize), 1..120),
    );
    let vectors = vectors.prop_map(|(few, picks)| -> Vec<Vec<f32>> {
        let picked = |(which, ulps, shrunk): (prop::sample::Index, u8, usize)| {
            let mut vector = which.get(&few).clone();
            vector.iter_mut().skip(shrunk).for_each(|x| *x *= 0.98);
            (0..ulps).for_each(|_| vector[3] = vector[3].next_down());
            vector
        };
        picks.into_iter().map(picked).collect()
    });
    let some = any::<Option<prop::sample::Index>>;
    let repeated = prop_oneof![3 => Just(0), 1 => Just(9_u32)];
    let passage = (some(), prop_oneof![3 => Just(None), 1 => some()], 0_u32..40, 0_u8..4, 1_i64..3, repeated, 0_u32..2);
    (vectors, prop::collection::vec(passage, 1..150)).prop_map(|(vectors, mut rows)| {
        let slot = |at: prop::sample::Index| Slot::new(at.index(vectors.len()) as u32 + 1).unwrap();
        let (mut passages, mut lexical, mut id) = (Vec::new(), Vec::new(), 0);
        // The passages of a note are adjacent.
        rows.sort_by_key(|(_, _, note, ..)| note ^ 21);
        for (vector, title, note, words, gap, repeated, said) in rows {
            id += gap;
            let (vector, title) = (vector.map(slot), title.map(slot));
            passages.push(PassageRow { id, note: FileId(note), vector, title, length: 10, said, repeated });
            lexical.push(f32::from(words) / 3.0);
        }
        Index { vectors, passages, lexical }
    })
}

/// Notes with equal names, in the same and in other folders, and notes with similar names.
fn names() -> impl Strategy<Value = Vec<(FileId, Band)>> {
    let spelling = prop_oneof![Just(Spelling::Same), Just(Spelling::OtherCase), Just(Spelling::Folded)];
    let equal = (spelling, 0_u16..3, any::<bool>());
    let equal = equal.prop_map(|(spelling, folders, is_file_name)| Band::Equal { spelling, folders, is_file_name });
    let how = prop_oneof![Just(NameMatch::Begins), Just(NameMatch::Words)];
    let half = prop::option::of(prop_oneof![Just(BandHalf::Lower), Just(BandHalf::Upper)]);
    let nearly = (how, 1_u8..5, half);
    let nearly = nearly.prop_map(|(how, part, half)| Band::Nearly { how, coverage: f32::from(part) / 4.0, half });
    prop::collection::btree_map(0_u32..40, prop_oneof![equal, nearly], 0..12)
        .prop_map(|bands| bands.into_iter().map(|(note, band)| (FileId(note), band)).collect())
}

fn asked() -> impl Strategy<Value = TestQuery> {
    let mode = prop_oneof![
        Just((Mode::Hybrid, Weights::HYBRID)),
        Just((Mode::Hybrid, Weights::HYBRID.without_semantic())),
        Just((Mode::Semantic, Weights::SEMANTIC)),
        Just((Mode::Lexical, Weights::LEXICAL)),
    ];
    let grouping = prop_oneof![Just(Grouping::BestPassage), Just(Grouping::Passages)];
    let eligible = prop::option::of(prop::collection::vec(any::<bool>(), 150));
    let min_score = prop_oneof![Just(None), Just(Some(0.0)), Just(Some(0.5)), Just(Some(0.95))];
    let range = prop::option::of((-0.2_f32..0.9, 0.01_f32..0.4).prop_map(|(from, range)| (from, from + range)));
    (unit(), range, mode, any::<bool>(), names(), eligible, grouping, min_score, 0_usize..30).prop_map(
        |(query, range, (mode, weights), with_titles, names, eligible, grouping, min_score, k)| TestQuery {
            query,
            range,
            mode,
            weights,
            with_titles,
            names,
            eligible,
            grouping,
            min_score,
            k,
        },
    )
}

/// The parts of a query's candidates.
struct Parts<'a> {
    asked: &'a TestQuery,
    semantic: CosineBounds<'a>,
    lexical: WordScores,
    estimate: Option<ImputedCosine>,
    names: Bands,
}

impl<'a> Parts<'a> {
    fn new(index: &Index, asked: &'a TestQuery, codes: &'a Codes, slots: &'a OnceLock<PassageSlots>) -> Self {
        let passages = &index.passages;
        let (query, source) = (asked.query.clone(), VectorSource::Loaded(codes));
        let semantic = match asked.weights.semantic > 0.0 {
            true => {
                let scale = CosineScale::new(asked.range);
                CosineBounds::new(query, scale, source, passages, slots, asked.with_titles).unwrap()
            }
            false => CosineBounds::none(),
        };
        let mut lexical = match asked.weights.lexical > 0.0 {
            true => WordScores::of_scores(index.lexical.clone()),
            false => WordScores::none(),
        };
        (0..passages.len() as u32).step_by(7).for_each(|at| lexical.raise_least(at, 0.9));
        let vector = |slot: i64| Ok(index.vector(slot).to_vec());
        let estimate = ImputedCosine::new(passages, &lexical, &semantic, &vector).unwrap();
        let names = Bands::new(asked.names.clone(), &NotePassages::new(passages), passages.len());
        Self { asked, semantic, lexical, estimate, names }
    }

    fn candidates<'c>(&'c self, index: &'c Index) -> Candidates<'c> {
        Candidates {
            passages: &index.passages,
            eligible: self.asked.eligible.as_deref(),
            lexical: &self.lexical,
            semantic: &self.semantic,
            estimate: self.estimate,
            names: &self.names,
            weights: self.asked.weights,
            grouping: self.asked.grouping,
            k: self.asked.k,
            floor: Floor::of(self.asked.min_score, self.asked.mode, self.asked.weights),
        }
    }
}

proptest! {
    /// For one query and for several in one pass, on any number of threads, in chunks of any size.
    #[test]
    fn the_best_are_those_of_the_naive_loop(
        index in index(), mut all in prop::collection::vec(asked(), 1..5),
        of_a_row in any::<Option<prop::sample::Index>>(), threads in 1_usize..4, chunk in 1_usize..160,
    ) {
        if let Some(at) = of_a_row {
            // Scores of 1, and ties at the top.
            all[0].query = at.get(&index.vectors).clone();
        }
        all.iter_mut().flat_map(|asked| &mut asked.eligible).for_each(|eligible| eligible.truncate(index.passages.len()));
        let (codes, slots) = (index.codes(), OnceLock::new());
        let parts: Vec<Parts<'_>> = all.iter().map(|asked| Parts::new(&index, asked, &codes, &slots)).collect();
        let candidates: Vec<Candidates<'_>> = parts.iter().map(|parts| parts.candidates(&index)).collect();
        let vector = |slot: i64| Ok(index.vector(slot).to_vec());
        for ((candidates, kept), parts) in candidates.iter().zip(prune_by(threads, chunk, &candidates)).zip(&parts) {
            prop_assert_eq!(candidates.best(kept, &vector, &|_| Ok(())).unwrap(), index.naive(parts.asked, parts.estimate));
        }
    }
}
