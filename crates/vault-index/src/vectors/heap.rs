//! The k best of what is pushed: a bounded heap.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// The k best of what is pushed: by score descending, then by id ascending, a total order, so the
/// order of pushing does not matter. A NaN never gets in; 0 and -0 are equal. `O(log k)` a push.
#[derive(Debug, Clone)]
pub struct TopK<T> {
    k: usize,
    heap: BinaryHeap<Worst<T>>,
}

impl<T: Ord> TopK<T> {
    /// Keeps at most `k`; 0 keeps nothing. Memory grows with what is kept, not with `k`.
    pub fn new(k: usize) -> Self {
        Self { k, heap: BinaryHeap::new() }
    }

    /// Offers one; says whether it got in.
    pub fn push(&mut self, score: f32, id: T) -> Entry {
        if score.is_nan() || self.k == 0 {
            return Entry::Out;
        }
        // -0.0 + 0.0 is 0.0: the two must not differ in total_cmp.
        let new = Worst { score: score + 0.0, id };
        if self.heap.len() < self.k {
            self.heap.push(new);
            return Entry::In;
        }
        match self.heap.peek_mut() {
            Some(mut worst) if new < *worst => {
                *worst = new;
                Entry::In
            }
            _ => Entry::Out,
        }
    }

    /// The score of the worst one kept, once there are `k`: lower scores cannot get in any more,
    /// an equal one can.
    pub fn threshold(&self) -> Option<f32> {
        if self.heap.len() < self.k { None } else { self.heap.peek().map(|worst| worst.score) }
    }

    /// How many are kept.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether none is kept.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// What was kept, best first.
    pub fn into_sorted(self) -> Vec<(T, f32)> {
        self.heap.into_sorted_vec().into_iter().map(|entry| (entry.id, entry.score)).collect()
    }
}

/// Whether something got into a [`TopK`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// It is among the best so far.
    In,
    /// It is not.
    Out,
}

/// Greater means worse, so that the worst one is on top of the heap.
#[derive(Debug, Clone)]
struct Worst<T> {
    score: f32,
    id: T,
}

impl<T: Ord> Ord for Worst<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then_with(|| self.id.cmp(&other.id))
    }
}

impl<T: Ord> PartialOrd for Worst<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: Ord> PartialEq for Worst<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T: Ord> Eq for Worst<T> {}
