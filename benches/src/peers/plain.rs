//! A plain f32 loop over all rows: the baseline, and the reference for the answers of the others.

use vault_index::backend::{TopK, rescore};

/// Returns the score of each row, in f32.
pub fn plain_scores(rows: &[f32], query: &[f32]) -> Vec<f32> {
    rows.chunks_exact(query.len()).map(|row| rescore(query, row)).collect()
}

/// Returns the `k` best rows that pass, with their scores, best first and equal scores by number.
pub fn plain_top_k(rows: &[f32], query: &[f32], k: usize, passes: impl Fn(usize) -> bool) -> Vec<(usize, f32)> {
    let mut best = TopK::new(k);
    for (number, row) in rows.chunks_exact(query.len()).enumerate().filter(|(number, _)| passes(*number)) {
        best.push(rescore(query, row), number);
    }
    best.into_sorted()
}
