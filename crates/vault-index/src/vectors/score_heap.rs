//! The k best of a series of scores, used for bounds and scores by `search/rank/fuse.rs`.
//!
//! It is the only such implementation in the crate.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;

/// The `k` keys with the best scores: by score descending, then by key ascending. This is a total order, so the order
/// of pushing does not matter. A key that is pushed again keeps its best score. NaN is never stored; 0 and -0 are
/// equal.
///
/// A push takes `O(log k)` if it enters, `O(1)` if it is below the k-th best.
#[derive(Debug, Clone)]
pub struct TopK<K> {
    k: usize,
    /// Best first.
    best: BTreeSet<(Reverse<i32>, K)>,
    scores: HashMap<K, f32>,
    /// The k-th best score, once there are `k` keys.
    threshold: Option<f32>,
}

impl<K: Copy + Ord + Hash> TopK<K> {
    /// Keeps at most `k` keys; 0 keeps none. Memory grows with the number of stored keys, not with `k`.
    pub fn new(k: usize) -> Self {
        Self { k, best: BTreeSet::new(), scores: HashMap::new(), threshold: None }
    }

    /// Offers a key.
    #[inline]
    pub fn push(&mut self, score: f32, key: K) {
        // NaN is not greater than anything.
        let may_enter = self.threshold().map_or(!score.is_nan() && self.k > 0, |least| score >= least);
        if may_enter {
            self.insert(score, key);
        }
    }

    fn insert(&mut self, score: f32, key: K) {
        // -0.0 + 0.0 is 0.0: the two must be equal in total_cmp.
        let score = score + 0.0;
        match self.scores.get_mut(&key) {
            Some(before) if *before >= score => return,
            Some(before) => {
                self.best.remove(&(rank(*before), key));
                *before = score;
            }
            None => _ = self.scores.insert(key, score),
        }
        self.best.insert((rank(score), key));
        if self.best.len() > self.k
            && let Some((_, worst)) = self.best.pop_last()
        {
            self.scores.remove(&worst);
        }
        if self.best.len() == self.k {
            self.threshold = self.best.last().map(|(_, worst)| self.scores[worst]);
        }
    }

    /// The k-th best score, once there are `k` keys. A lower score can no longer enter, an equal one can.
    #[inline]
    pub fn threshold(&self) -> Option<f32> {
        self.threshold
    }

    /// The keys and their scores, best first.
    pub fn into_sorted(self) -> Vec<(K, f32)> {
        self.best.into_iter().map(|(_, key)| (key, self.scores[&key])).collect()
    }
}

/// Orders like [`f32::total_cmp`], the best score first.
fn rank(score: f32) -> Reverse<i32> {
    let bits = score.to_bits().cast_signed();
    // For negative numbers, larger bits mean a lower number.
    Reverse(if bits < 0 { bits ^ i32::MAX } else { bits })
}
