//! A plain f32 loop over all rows: what anybody would write first, and the truth that answers are held against.

use vault_index::{TopK, rescore};

/// The score of each row, in f32.
pub fn plain_scores(rows: &[f32], query: &[f32]) -> Vec<f32> {
    rows.chunks_exact(query.len()).map(|row| rescore(query, row)).collect()
}

/// The `k` best rows that pass with their scores, best first, equal scores by number.
pub fn plain_top_k(rows: &[f32], query: &[f32], k: usize, passes: impl Fn(usize) -> bool) -> Vec<(usize, f32)> {
    let mut best = TopK::new(k);
    for (number, row) in rows.chunks_exact(query.len()).enumerate().filter(|(number, _)| passes(*number)) {
        best.push(rescore(query, row), number);
    }
    best.into_sorted()
}
