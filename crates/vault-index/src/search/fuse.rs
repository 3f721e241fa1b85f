//! Keyword and vector results become one: a weighted sum of absolute scores, its k best found exactly.
//!
//! `score = w_s · max(0, cosine) + w_l · lexical`. Both parts are absolute, so the sum is: the same passage and
//! query have the same score whatever else matches, and the best possible one is 1.
//!
//! The weights are equal: so measured on three public collections, on the links of four vaults and on questions to the
//! demo vault whose words the wanted note does not hold (the table is in `benches/record/`). The square root of the
//! lexical share does as well on the collections, but lets one word in common outweigh the meaning in a small vault.
//!
//! The lexical part is exact for every passage; the cosine is an interval. Passages are taken in the order of
//! their highest possible score and scored exactly, until the next can no longer reach the k-th best: the result
//! is the exact k best of all passages, with no cut-off of candidates before the merge.

use std::collections::HashMap;

use crate::error::Result;
use crate::path::FileId;
use crate::search::lexical::Lexical;
use crate::search::query::{Grouping, Mode};
use crate::search::semantic::Semantic;
use crate::store::PassageRow;
use crate::vectors::Bitmap;

/// What the parts of a score are multiplied by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Weights {
    pub semantic: f32,
    pub lexical: f32,
}

impl Weights {
    pub(super) const HYBRID: Self = Self { semantic: 0.5, lexical: 0.5 };
    pub(super) const SEMANTIC: Self = Self { semantic: 1.0, lexical: 0.0 };
    pub(super) const LEXICAL: Self = Self { semantic: 0.0, lexical: 1.0 };
    pub(super) const NONE: Self = Self { semantic: 0.0, lexical: 0.0 };

    /// The same scale, while there are no vectors yet.
    pub(super) fn without_semantic(self) -> Self {
        Self { semantic: 0.0, ..self }
    }
}

/// The score below which nothing is found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Floor {
    /// Of passages that have a vector.
    with_meaning: f32,
    /// Of those that words alone rank.
    words_alone: f32,
}

/// Measured on the demo vault: its hardest question has its answer at .151 (cosine .302), words that mean nothing
/// reach at most .135 (cosine .27). Of 618 questions to three public collections none is below the floor.
const HYBRID_FLOOR: f32 = 0.14;
const SEMANTIC_FLOOR: f32 = 0.28;

/// As a share of the best score there can be by words.
const LEXICAL_FLOOR: f32 = 0.02;

impl Floor {
    /// Whatever has anything in common with the query.
    pub(super) const NONE: Self = Self { with_meaning: 0.0, words_alone: 0.0 };

    /// What was asked for, else what was measured.
    pub(super) fn of(asked: Option<f32>, mode: Mode, weights: Weights) -> Self {
        let words_alone = weights.lexical * LEXICAL_FLOOR;
        let with_meaning = match mode {
            Mode::Semantic => SEMANTIC_FLOOR,
            Mode::Hybrid if weights.semantic > 0.0 => HYBRID_FLOOR,
            _ => words_alone,
        };
        Self { with_meaning: asked.unwrap_or(with_meaning), words_alone: asked.unwrap_or(words_alone) }
    }

    fn least(&self, has_meaning: bool) -> f32 {
        if has_meaning { self.with_meaning } else { self.words_alone }
    }
}

/// A passage with its exact score.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Scored {
    pub passage: i64,
    pub note: FileId,
    pub score: f32,
    pub lexical: f32,
    pub semantic: Option<f32>,
    pub title: Option<f32>,
}

impl Scored {
    /// A passage that is listed, not ranked.
    pub(super) fn listed(passage: &PassageRow) -> Self {
        Self { passage: passage.id, note: passage.note, score: 1.0, lexical: 0.0, semantic: None, title: None }
    }
}

/// All that can be found, with the parts of its score.
pub(super) struct Candidates<'a> {
    pub passages: &'a [PassageRow],
    pub eligible: Option<&'a Bitmap>,
    pub lexical: &'a Lexical,
    pub semantic: &'a Semantic,
    pub weights: Weights,
    pub grouping: Grouping,
}

impl Candidates<'_> {
    /// The `k` best with at least `floor`, and all that tie with the last of them; in no particular order of ties.
    pub(super) fn best(&self, k: usize, floor: Floor, vector: &dyn Fn(i64) -> Result<Vec<f32>>) -> Result<Vec<Scored>> {
        if k == 0 {
            return Ok(Vec::new());
        }
        let mut queue: Vec<(f32, usize)> = Vec::new();
        let mut lowest = LowestOfBest::new(k, self.grouping);
        for (at, passage) in self.passages.iter().enumerate() {
            if self.eligible.is_some_and(|e| !e.contains(at)) {
                continue;
            }
            let (lower, upper, has_meaning) = self.bounds(at, passage);
            // A passage that shares neither words nor any meaning is not a result, however low the floor.
            if upper > 0.0 && upper >= floor.least(has_meaning) {
                queue.push((upper, at));
                lowest.offer(passage.note, lower);
            }
        }
        let reach = lowest.value();
        queue.retain(|(upper, _)| *upper >= reach);
        queue.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));

        let mut kept = Kept::new(k, self.grouping);
        for (upper, at) in queue {
            if kept.threshold().is_some_and(|threshold| upper < threshold) {
                break;
            }
            let scored = self.exact(at, vector)?;
            if scored.score > 0.0 && scored.score >= floor.least(scored.semantic.is_some()) {
                kept.push(scored);
            }
        }
        Ok(kept.into_best())
    }

    /// What a score is at least and at most, and whether meaning is a part of it.
    fn bounds(&self, at: usize, passage: &PassageRow) -> (f32, f32, bool) {
        let lexical = self.weights.lexical * self.lexical.score(at);
        match self.semantic.bounds(passage) {
            // The sum is rounded once more than its parts; a step up and down keeps the interval true.
            Some((lower, upper)) => {
                let of = |cosine: f32| self.weights.semantic * cosine.max(0.0) + lexical;
                (of(lower).next_down(), of(upper).next_up(), true)
            }
            None => (lexical, lexical, false),
        }
    }

    fn exact(&self, at: usize, vector: &dyn Fn(i64) -> Result<Vec<f32>>) -> Result<Scored> {
        let passage = &self.passages[at];
        let lexical = self.lexical.score(at);
        let cosine = self.semantic.exact(passage, vector)?;
        let meaning = cosine.map_or(0.0, |c| c.score.max(0.0));
        Ok(Scored {
            passage: passage.id,
            note: passage.note,
            score: (self.weights.semantic * meaning + self.weights.lexical * lexical).min(1.0),
            lexical,
            semantic: cosine.map(|_| meaning),
            title: cosine.and_then(|c| c.title),
        })
    }
}

/// The k-th best of the lower bounds: what no result can be below.
struct LowestOfBest {
    k: usize,
    grouping: Grouping,
    by_note: HashMap<FileId, f32>,
    /// The best so far of the note whose passages are under way. They come together, so that few are looked up.
    current: Option<(FileId, f32)>,
    all: Vec<f32>,
}

impl LowestOfBest {
    fn new(k: usize, grouping: Grouping) -> Self {
        Self { k, grouping, by_note: HashMap::new(), current: None, all: Vec::new() }
    }

    fn offer(&mut self, note: FileId, lower: f32) {
        match self.grouping {
            Grouping::Passages => self.all.push(lower),
            Grouping::BestPassage => match &mut self.current {
                Some((current, best)) if *current == note => *best = best.max(lower),
                current => {
                    let done = current.replace((note, lower));
                    self.note_is_over(done);
                }
            },
        }
    }

    fn note_is_over(&mut self, done: Option<(FileId, f32)>) {
        if let Some((note, lower)) = done {
            let best = self.by_note.entry(note).or_insert(lower);
            *best = best.max(lower);
        }
    }

    fn value(mut self) -> f32 {
        let done = self.current.take();
        self.note_is_over(done);
        self.all.extend(self.by_note.into_values());
        if self.all.len() < self.k {
            return f32::NEG_INFINITY;
        }
        let (_, kth, _) = self.all.select_nth_unstable_by(self.k - 1, |a, b| b.total_cmp(a));
        *kth
    }
}

/// The best exact scores so far.
struct Kept {
    k: usize,
    grouping: Grouping,
    scored: Vec<Scored>,
    /// Position in `scored` of each note's best, when notes are grouped.
    of_note: HashMap<FileId, usize>,
}

impl Kept {
    fn new(k: usize, grouping: Grouping) -> Self {
        Self { k, grouping, scored: Vec::new(), of_note: HashMap::new() }
    }

    fn push(&mut self, new: Scored) {
        if self.grouping == Grouping::BestPassage {
            if let Some(&at) = self.of_note.get(&new.note) {
                let old = &mut self.scored[at];
                // Of a note's equal passages the first in it is shown.
                if new.score > old.score || (new.score == old.score && new.passage < old.passage) {
                    *old = new;
                }
                return;
            }
            self.of_note.insert(new.note, self.scored.len());
        }
        self.scored.push(new);
    }

    /// The k-th best score; what is lower cannot get in any more.
    fn threshold(&self) -> Option<f32> {
        if self.scored.len() < self.k {
            return None;
        }
        let mut scores: Vec<f32> = self.scored.iter().map(|s| s.score).collect();
        let (_, kth, _) = scores.select_nth_unstable_by(self.k - 1, |a, b| b.total_cmp(a));
        Some(*kth)
    }

    fn into_best(mut self) -> Vec<Scored> {
        let threshold = self.threshold();
        self.scored.retain(|s| threshold.is_none_or(|t| s.score >= t));
        self.scored.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.passage.cmp(&b.passage)));
        self.scored
    }
}
