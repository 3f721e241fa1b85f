//! Distributes many texts over threads: duplicates once, long texts first, results in the order of the input.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Vectors with the indices of their texts in [`TextQueue::distinct`].
pub(crate) type IndexedVectors = Vec<(usize, Vec<f32>)>;

/// The texts of one call, and how many of them the threads have taken.
pub(crate) struct TextQueue<'a> {
    /// Without duplicates, the longest first: a free thread takes the next one, so only short texts are left at the end
    /// and no thread waits long for another.
    distinct: Vec<&'a str>,
    /// For each text of the call, its index in `distinct`.
    index: Vec<usize>,
    next: AtomicUsize,
    threads: usize,
}

impl<'a> TextQueue<'a> {
    /// A queue for up to `threads` threads (0 counts as 1).
    pub(crate) fn new(texts: &[&'a str], threads: usize) -> TextQueue<'a> {
        let mut distinct = texts.to_vec();
        distinct.sort_unstable_by_key(|text| (Reverse(text.len()), *text));
        distinct.dedup();
        let indices: HashMap<&str, usize> = distinct.iter().enumerate().map(|(index, text)| (*text, index)).collect();
        let threads = threads.min(distinct.len()).max(1);
        TextQueue {
            index: texts.iter().map(|text| indices[text]).collect(),
            distinct,
            next: AtomicUsize::new(0),
            threads,
        }
    }

    /// The next text that no thread has taken yet, and its index.
    pub(crate) fn take(&self) -> Option<(usize, &'a str)> {
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        self.distinct.get(index).map(|text| (index, *text))
    }

    /// The number of texts a thread may take before it computes them, limited so that every thread has work.
    pub(crate) fn share(&self) -> usize {
        self.distinct.len().div_ceil(self.threads)
    }

    /// Runs `worker` on the threads, this one included, and puts their results in order.
    pub(crate) fn run(&self, worker: impl Fn() -> IndexedVectors + Sync) -> Vec<Vec<f32>> {
        let parts = std::thread::scope(|scope| {
            let started: Vec<_> = (1..self.threads).map(|_| scope.spawn(&worker)).collect();
            let mut parts = vec![worker()];
            parts.extend(
                started
                    .into_iter()
                    .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))),
            );
            parts
        });
        let mut vectors = vec![Vec::new(); self.distinct.len()];
        for (index, vector) in parts.into_iter().flatten() {
            vectors[index] = vector;
        }
        self.index.iter().map(|index| vectors[*index].clone()).collect()
    }
}
