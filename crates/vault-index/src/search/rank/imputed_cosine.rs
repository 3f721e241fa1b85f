//! The estimated cosine of a passage without a vector, from passages with vectors that match the same words.
//!
//! While vectors are missing, a cosine of 0 would rank every pending passage below all others. Of the passages with a
//! vector, the [`NEIGHBOURS`] that match the query's words best give a line by ridge regression of their cosine on
//! their lexical score, and the estimate is
//!
//! ```text
//! line(lexical) + 2 · (1 - share) · deviation
//! ```
//!
//! where `share` is the share of matching passages that have a vector, and `deviation` is the standard deviation of the
//! cosines around the line. The line alone is too low while few have a vector: the best of those few are above it by
//! chance as much as by their meaning, and the first results would be whatever has been embedded by then. Measured with
//! `eval --shares` on three public collections (`benches/record/`).
//!
//! It depends only on the query and the state of the index, not on filters. A passage that matches no word has no
//! estimate.

use crate::error::Result;
use crate::search::rank::bm25::WordScores;
use crate::search::rank::cosine_bounds::CosineBounds;
use crate::store::PassageRow;

/// The number of passages whose cosines are used.
const NEIGHBOURS: usize = 100;

/// Keeps the line flat while the lexical scores of the neighbours hardly differ.
const RIDGE: f64 = 0.2;

/// Standard deviations above the line while hardly any passage has a vector.
const DEVIATIONS: f64 = 2.0;

/// An estimate for each passage that matches a word; see the module.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::search) struct ImputedCosine {
    /// For a lexical score of 0.
    base: f64,
    /// Not negative.
    slope: f64,
}

impl ImputedCosine {
    /// `None`: no passage needs an estimate, or no passage with a vector matches a word, so that only words rank.
    pub(in crate::search) fn new(
        passages: &[PassageRow],
        lexical: &WordScores,
        semantic: &CosineBounds<'_>,
        vector: &dyn Fn(i64) -> Result<Vec<f32>>,
    ) -> Result<Option<Self>> {
        if semantic.is_none() || lexical.is_none() {
            return Ok(None);
        }
        let matching: Vec<usize> = (0..passages.len()).filter(|at| lexical.score(*at) > 0.0).collect();
        let has_vector = |at: &usize| semantic.has_vector(&passages[*at]);
        let mut known: Vec<usize> = matching.iter().copied().filter(has_vector).collect();
        if known.is_empty() || known.len() == matching.len() {
            return Ok(None);
        }
        let share = known.len() as f64 / matching.len() as f64;
        if known.len() > NEIGHBOURS {
            known.select_nth_unstable_by(NEIGHBOURS, |a, b| {
                lexical.score(*b).total_cmp(&lexical.score(*a)).then(a.cmp(b))
            });
            known.truncate(NEIGHBOURS);
            // Sorted, because sums must not depend on the order of selection.
            known.sort_unstable();
        }
        let mut points = Vec::with_capacity(known.len());
        for at in known {
            if let Some(cosine) = semantic.exact(&passages[at], vector)? {
                points.push((f64::from(lexical.score(at)), f64::from(cosine.score.max(0.0))));
            }
        }
        Ok(Some(Self::of(&points, share)))
    }

    /// Fits the line to pairs of lexical score and cosine.
    fn of(points: &[(f64, f64)], share: f64) -> Self {
        let mean = |of: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / points.len().max(1) as f64;
        let (lexical, cosine) = (mean(&|p| p.0), mean(&|p| p.1));
        let covariance: f64 = points.iter().map(|p| (p.0 - lexical) * (p.1 - cosine)).sum();
        let variance: f64 = points.iter().map(|p| (p.0 - lexical).powi(2)).sum();
        let slope = (covariance / (variance + RIDGE)).max(0.0);
        let line = cosine - slope * lexical;
        let deviation = mean(&|p| (p.1 - line - slope * p.0).powi(2)).sqrt();
        Self { base: line + DEVIATIONS * (1.0 - share) * deviation, slope }
    }

    /// 0 to 1; increases with the lexical score. `None`: no word matches.
    pub(in crate::search) fn cosine(&self, lexical: f32) -> Option<f32> {
        (lexical > 0.0).then(|| (self.base + self.slope * f64::from(lexical)).clamp(0.0, 1.0) as f32)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::OnceLock;

    use super::*;
    use crate::path::FileId;
    use crate::search::query::{Grouping, Mode};
    use crate::search::rank::cosine_bounds::CosineScale;
    use crate::search::rank::fuse::{Candidates, Floor, Weights};
    use crate::search::rank::k_best_candidates::prune;
    use crate::search::rank::name_match::Bands;
    use crate::search::vector_rows::VectorSource;
    use crate::store::Slot;
    use crate::vectors::{Codes, QuantizedRow, block_len, row_bytes};

    const DIMENSIONS: usize = 8;
    const PASSAGES: usize = 400;
    const QUERIES: usize = 40;
    const SHARES: [f64; 9] = [0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0];

    /// SplitMix64.
    struct Random(u64);

    impl Random {
        fn unit(&mut self) -> f32 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((z ^ (z >> 31)) >> 40) as f32 / (1_u64 << 24) as f32
        }

        /// Approximately normal, mean 0, deviation 1.
        fn normal(&mut self) -> f32 {
            (0..12).map(|_| self.unit()).sum::<f32>() - 6.0
        }
    }

    /// A query and its passages: how relevant each passage is determines, with the same randomness in each, its words
    /// and its vector. The first ten are the relevant ones.
    struct RandomQuery {
        lexical: Vec<f32>,
        vectors: Vec<Vec<f32>>,
    }

    impl RandomQuery {
        fn new(random: &mut Random) -> Self {
            let (mut lexical, mut vectors) = (Vec::new(), Vec::new());
            for at in 0..PASSAGES {
                let about = if at < 10 { 2.0 } else { 0.0 } + 0.5 * random.normal();
                let matches = random.unit() < if at < 10 { 0.9 } else { 0.6 };
                lexical.push(if matches { (0.15 + 0.06 * (about + random.normal())).clamp(0.01, 1.0) } else { 0.0 });
                let cosine = (0.2 + 0.08 * (about + random.normal())).clamp(-1.0, 1.0);
                // The query is the first axis.
                let mut vector = vec![0.0; DIMENSIONS];
                (vector[0], vector[1]) = (cosine, (1.0 - cosine * cosine).sqrt());
                vectors.push(vector);
            }
            Self { lexical, vectors }
        }

        /// nDCG@10 while only the passages in `has_vector` have a vector.
        fn ndcg10(&self, has_vector: &dyn Fn(usize) -> bool) -> f64 {
            let mut block = vec![0; block_len(DIMENSIONS)];
            for (at, vector) in self.vectors.iter().enumerate() {
                for (offset, bytes) in row_bytes(at + 1, &QuantizedRow::new(vector).unwrap()) {
                    block[offset..][..bytes.len()].copy_from_slice(&bytes);
                }
            }
            let mut codes = Codes::new(DIMENSIONS);
            codes.load_block(0, &block).unwrap();
            let passage = |at: usize| PassageRow {
                id: at as i64,
                note: FileId(at as u32),
                vector: Slot::new(at as u32 + 1).filter(|_| has_vector(at)),
                title: None,
                length: 10,
                said: 0,
                repeated: 0,
            };
            let passages: Vec<PassageRow> = (0..PASSAGES).map(passage).collect();
            let query = [1.0].into_iter().chain([0.0; DIMENSIONS - 1]).collect();
            let slots = OnceLock::new();
            let semantic = {
                let (scale, source) = (CosineScale::new(None), VectorSource::Loaded(&codes));
                CosineBounds::new(query, scale, source, &passages, &slots, true).unwrap()
            };
            let lexical = WordScores::of_scores(self.lexical.clone());
            let vector = |slot: i64| Ok(self.vectors[slot as usize - 1].clone());
            let candidates = Candidates {
                passages: &passages,
                eligible: None,
                lexical: &lexical,
                semantic: &semantic,
                estimate: ImputedCosine::new(&passages, &lexical, &semantic, &vector).unwrap(),
                names: &Bands::default(),
                weights: Weights::HYBRID,
                grouping: Grouping::BestPassage,
                k: 10,
                floor: Floor::of(Some(0.0), Mode::Hybrid, Weights::HYBRID),
            };
            let best = candidates.best(prune(&[candidates]).pop().unwrap(), &vector, &|_| Ok(())).unwrap();
            let discount = |rank: usize| 1.0 / (rank as f64 + 2.0).log2();
            let found = best.iter().take(10).enumerate().filter(|(_, scored)| scored.passage < 10);
            found.map(|(rank, _)| discount(rank)).sum::<f64>() / (0..10).map(discount).sum::<f64>()
        }
    }

    /// While vectors are added, results are never worse than by words only, and half of the vectors bring a third of
    /// the gain.
    #[test]
    fn results_get_better_with_the_share_of_vectors() {
        let mut random = Random(1);
        let asked: Vec<RandomQuery> = (0..QUERIES).map(|_| RandomQuery::new(&mut random)).collect();
        let mut means = Vec::new();
        for share in SHARES {
            let mut sum = 0.0;
            for subset in 0..5 {
                let mut order = Random(subset);
                let places: Vec<f32> = (0..PASSAGES).map(|_| order.unit()).collect();
                let has_vector = |at: usize| f64::from(places[at]) < share;
                sum += asked.iter().map(|asked| asked.ndcg10(&has_vector)).sum::<f64>();
            }
            means.push(sum / (5 * QUERIES) as f64);
        }
        let (words, half, full) = (means[0], means[5], means[8]);
        assert!(full > words + 0.05, "{means:?}");
        assert!(means.iter().all(|mean| *mean >= words - 0.005), "{means:?}");
        assert!(half >= words + (full - words) / 3.0, "{means:?}");
    }

    /// Points on a line give that line; the fewer have a vector, the higher the estimate for points around it.
    #[test]
    fn an_estimate_is_on_the_line_or_above_it() {
        let line: Vec<(f64, f64)> = (0..100).map(|n| f64::from(n) / 100.0).map(|x| (x, 0.1 + 0.5 * x)).collect();
        let estimate = ImputedCosine::of(&line, 1.0);
        assert!((estimate.cosine(0.5).unwrap() - 0.35).abs() < 0.01, "{estimate:?}");
        assert_eq!(estimate.cosine(0.0), None);
        let around: Vec<(f64, f64)> = [(0.2, 0.2), (0.2, 0.4), (0.4, 0.2), (0.4, 0.4)].into();
        let at = |share| ImputedCosine::of(&around, share).cosine(0.3).unwrap();
        assert!((at(1.0) - 0.3).abs() < 1e-6 && (at(0.5) - 0.4).abs() < 1e-6 && (at(0.0) - 0.5).abs() < 1e-6);
        let falling = ImputedCosine::of(&[(0.2, 0.6), (0.8, 0.2)], 1.0);
        assert!(falling.cosine(0.9) >= falling.cosine(0.1), "more words in common never lower it: {falling:?}");
    }
}
