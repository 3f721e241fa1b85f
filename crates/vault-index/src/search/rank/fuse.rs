//! Fuses keyword and vector results: a weighted sum of absolute scores, with the k best found exactly.
//!
//! `score = w_s · max(0, cosine) + w_l · lexical`, at most .8; the name of a note can lift it into one of the bands
//! above (`name_match.rs`). Both parts are absolute, so the sum is too: the same passage and query have the same score
//! whatever else matches. A passage without a vector has an estimated cosine (`imputed_cosine.rs`). For a passage that
//! many notes repeat, both parts are already halved (`repeated_passages.rs`). A passage that contains the whole query
//! word for word has a least score (`adjacent_words.rs`).
//!
//! The weights are equal, as the result of measurements on three public collections, on the links of four vaults and on
//! questions to the demo vault whose words the wanted note does not contain (the table is in `benches/record/`). The
//! square root of the lexical share does as well on the collections, but lets one common word outweigh the meaning in a
//! small vault.
//!
//! The lexical part is exact for every passage. The cosine first has an upper bound, from four bits per dimension, and
//! an interval from eight if that bound reaches the k best (`k_best_candidates.rs`). The remaining passages are scored
//! exactly, by descending upper end, until the next can no longer reach the k-th best. The result is the exact k best of all
//! passages, without a cut-off of candidates before the fusion. The bounds need no slack for the sum, because each of
//! its steps, including rounding, increases with the cosine, and bounds and exact scores go through the same steps.

use std::collections::HashSet;

use crate::error::Result;
use crate::path::FileId;
use crate::search::hit::NameMatch;
use crate::search::query::{Grouping, Mode};
use crate::search::rank::bm25::WordScores;
use crate::search::rank::cosine_bounds::CosineBounds;
use crate::search::rank::imputed_cosine::ImputedCosine;
use crate::search::rank::name_match::{Band, Bands, ORDINARY};
use crate::store::PassageRow;
use crate::vectors::{Interval, TopK};

/// The weights of the parts of a score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::search) struct Weights {
    pub semantic: f32,
    pub lexical: f32,
}

impl Weights {
    pub(in crate::search) const HYBRID: Self = Self { semantic: 0.5 * ORDINARY, lexical: 0.5 * ORDINARY };
    pub(in crate::search) const SEMANTIC: Self = Self { semantic: ORDINARY, lexical: 0.0 };
    pub(in crate::search) const LEXICAL: Self = Self { semantic: 0.0, lexical: ORDINARY };
    pub(in crate::search) const NONE: Self = Self { semantic: 0.0, lexical: 0.0 };

    /// The weights while there are no vectors yet, on the same scale.
    pub(in crate::search) fn without_semantic(self) -> Self {
        Self { semantic: 0.0, ..self }
    }
}

/// The number of passages whose vectors are read together, where that saves round trips.
pub(in crate::search) const AHEAD: usize = 256;

/// The minimum score of a result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::search) struct Floor {
    /// For passages that have a vector.
    with_meaning: f32,
    /// For passages that are ranked by words only.
    words_alone: f32,
}

/// Measured on the demo vault: the answer to its hardest question has the cosine .302, and meaningless words have at
/// most .27. For 618 questions to three public collections, no answer is below the floor. No name match is below it
/// either.
pub(in crate::search) const HYBRID_FLOOR: f32 = 0.14 * ORDINARY;
const SEMANTIC_FLOOR: f32 = 0.28 * ORDINARY;

/// As a share of the best possible score by words.
const LEXICAL_FLOOR: f32 = 0.02;

/// A result is weak up to this multiple of the floor, which is the cosine .49 without a common word. Questions and
/// notes that answer them in other words are mostly above it, unrelated notes below.
const WEAK: f32 = 1.75;

impl Floor {
    /// The floor of 0 accepts everything that has anything in common with the query.
    pub(in crate::search) const NONE: Self = Self { with_meaning: 0.0, words_alone: 0.0 };

    /// The requested floor, otherwise the measured one.
    pub(in crate::search) fn of(asked: Option<f32>, mode: Mode, weights: Weights) -> Self {
        let words_alone = weights.lexical * LEXICAL_FLOOR;
        let with_meaning = match mode {
            Mode::Semantic => SEMANTIC_FLOOR,
            Mode::Hybrid if weights.semantic > 0.0 => HYBRID_FLOOR,
            _ => words_alone,
        };
        Self { with_meaning: asked.unwrap_or(with_meaning), words_alone: asked.unwrap_or(words_alone) }
    }

    /// The floor at a share of its height, for passages that have a vector.
    pub(in crate::search) fn lowered(self, share: f32) -> Self {
        Self { with_meaning: share * self.with_meaning, ..self }
    }

    pub(in crate::search) fn least(&self, has_meaning: bool) -> f32 {
        if has_meaning { self.with_meaning } else { self.words_alone }
    }

    /// Whether a score is so close above the measured floor that it may be due to chance.
    pub(in crate::search) fn is_barely_reached(&self, score: f32, has_meaning: bool) -> bool {
        score < WEAK * self.least(has_meaning)
    }
}

/// A passage with its exact score.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::search) struct ScoredPassage {
    pub passage: i64,
    pub note: FileId,
    pub score: f32,
    pub lexical: f32,
    pub semantic: Option<f32>,
    /// The estimated cosine of a passage without a vector.
    pub estimated: Option<f32>,
    pub title: Option<f32>,
    pub name: Option<NameMatch>,
    /// The least score of a passage that contains the whole query, if it is higher than the sum.
    pub least: Option<f32>,
    /// The number of notes with this passage, if that halves its score.
    pub repeated: Option<usize>,
}

impl ScoredPassage {
    /// A passage of a list without a ranking.
    pub(in crate::search) fn listed(passage: &PassageRow) -> Self {
        let (passage, note) = (passage.id, passage.note);
        Self {
            passage,
            note,
            score: 1.0,
            lexical: 0.0,
            semantic: None,
            estimated: None,
            title: None,
            name: None,
            least: None,
            repeated: None,
        }
    }
}

/// All passages that can be found, with the parts of their scores.
#[derive(Clone, Copy)]
pub(in crate::search) struct Candidates<'a> {
    pub passages: &'a [PassageRow],
    /// By position, as in `passages`. `None`: all passages.
    pub eligible: Option<&'a [bool]>,
    pub lexical: &'a WordScores,
    pub semantic: &'a CosineBounds<'a>,
    /// Estimates for passages without a vector.
    pub estimate: Option<ImputedCosine>,
    pub names: &'a Bands,
    pub weights: Weights,
    pub grouping: Grouping,
    /// The number of results.
    pub k: usize,
    pub floor: Floor,
}

/// A passage, by its position, and the bounds of its score.
#[derive(Clone, Copy)]
pub(in crate::search) struct BoundedPassage {
    pub position: u32,
    pub interval: Interval,
}

impl Candidates<'_> {
    /// The `k` best with at least `floor`, and all that tie with the last of them; best first, ties in the order of
    /// their passages' ids. With [`Grouping::BestPassage`] each note occurs once, with the first of its best passages.
    /// `kept` is the result of `k_best_candidates.rs` for these candidates. `ahead` is called with passages whose
    /// vectors are probably read next.
    pub(in crate::search) fn best(
        &self,
        mut kept: Vec<BoundedPassage>,
        vector: &dyn Fn(i64) -> Result<Vec<f32>>,
        ahead: &dyn Fn(&[BoundedPassage]) -> Result<()>,
    ) -> Result<Vec<ScoredPassage>> {
        kept.sort_unstable_by(|a, b| b.interval.upper.total_cmp(&a.interval.upper).then(a.position.cmp(&b.position)));
        let mut best = TopK::new(self.k);
        let mut scored = Vec::new();
        for (n, candidate) in kept.iter().enumerate() {
            if best.threshold().is_some_and(|threshold| candidate.interval.upper < threshold) {
                break;
            }
            if n % AHEAD == 0 {
                ahead(&kept[n..kept.len().min(n + AHEAD)])?;
            }
            let exact = self.exact(candidate.position, vector)?;
            if exact.score > 0.0 && exact.score >= self.floor.least(exact.semantic.is_some()) {
                best.push(exact.score, self.group(candidate.position));
                scored.push(exact);
            }
        }
        scored.retain(|s| best.threshold().is_none_or(|threshold| s.score >= threshold));
        scored.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.passage.cmp(&b.passage)));
        if self.grouping == Grouping::BestPassage {
            let mut notes = HashSet::new();
            scored.retain(|s| notes.insert(s.note));
        }
        Ok(scored)
    }

    /// Estimates the bytes of codes that a pass over all candidates reads.
    pub(super) fn bytes_scanned(&self) -> usize {
        let eligible = |eligible: &[bool]| eligible.iter().filter(|eligible| **eligible).count();
        self.eligible.map_or(self.passages.len(), eligible) * self.semantic.bytes_scanned()
    }

    /// The bounds of the scores of some passages.
    pub(super) fn bounds_of(&self, positions: &[u32]) -> impl Iterator<Item = BoundedPassage> {
        let bounded = |(position, cosine): (&u32, Interval)| {
            let score = |end: f32| self.score(*position as usize, cosine.is_some().then_some(end));
            let interval = Interval { lower: score(cosine.lower), upper: score(cosine.upper) };
            BoundedPassage { position: *position, interval }
        };
        positions.iter().zip(self.semantic.intervals(self.passages, positions)).map(bounded)
    }

    /// The unit of which there is only one result.
    pub(super) fn group(&self, position: u32) -> u32 {
        match self.grouping {
            Grouping::Passages => position,
            Grouping::BestPassage => self.passages[position as usize].note.0,
        }
    }

    /// Whether the score of any passage can be higher than its [`sum`](Self::sum).
    pub(super) fn raises_any(&self) -> bool {
        !self.names.is_empty() || self.lexical.has_least() || self.estimate.is_some()
    }

    /// Whether the score of this passage can be: by a name, a least score, or the estimate of an unknown cosine.
    pub(super) fn raises(&self, position: usize, has_cosine: bool) -> bool {
        let is_estimated = !has_cosine && self.estimate.is_some();
        is_estimated || self.names.of(position).is_some() || self.lexical.least(position) > 0.0
    }

    /// The score of a passage whose cosine with the query is `cosine`; increases with it.
    pub(super) fn score(&self, position: usize, cosine: Option<f32>) -> f32 {
        let lexical = self.lexical.score(position);
        let meaning = cosine.or_else(|| self.estimated(lexical)).map_or(0.0, |cosine| cosine.max(0.0));
        let ordinary = self.sum(meaning, lexical).max(ORDINARY * self.lexical.least(position));
        self.names.of(position).map_or(ordinary, |band| band.score(ordinary))
    }

    #[inline]
    pub(super) fn sum(&self, meaning: f32, lexical: f32) -> f32 {
        (self.weights.semantic * meaning + self.weights.lexical * lexical).min(ORDINARY)
    }

    fn estimated(&self, lexical: f32) -> Option<f32> {
        self.estimate.and_then(|estimate| estimate.cosine(lexical))
    }

    fn exact(&self, position: u32, vector: &dyn Fn(i64) -> Result<Vec<f32>>) -> Result<ScoredPassage> {
        let position = position as usize;
        let passage = &self.passages[position];
        let cosine = self.semantic.exact(passage, vector)?;
        let lexical = self.lexical.score(position);
        let semantic = cosine.map(|cosine| cosine.score.max(0.0));
        let estimated = if semantic.is_none() { self.estimated(lexical) } else { None };
        let least = ORDINARY * self.lexical.least(position);
        let is_more = least > self.sum(semantic.or(estimated).unwrap_or(0.0), lexical);
        Ok(ScoredPassage {
            passage: passage.id,
            note: passage.note,
            score: self.score(position, cosine.map(|cosine| cosine.score)),
            lexical,
            semantic,
            estimated,
            title: cosine.and_then(|cosine| cosine.title),
            name: self.names.of(position).map(Band::name_match),
            least: is_more.then_some(least),
            repeated: passage.is_repeated().then_some(passage.repeated as usize),
        })
    }
}
