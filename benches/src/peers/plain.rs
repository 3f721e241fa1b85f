//! A plain f32 loop over all rows: what anybody would write first, and the truth that answers are held against.

use vault_index::vectors::{Bitmap, TopK, rescore};

/// The score of each row, in f32.
pub fn plain_scores(rows: &[f32], query: &[f32]) -> Vec<f32> {
    rows.chunks_exact(query.len()).map(|row| rescore(query, row)).collect()
}

/// The `k` best rows with their scores, best first, equal scores by slot; with a filter, only slots in it.
pub fn plain_top_k(rows: &[f32], query: &[f32], k: usize, filter: Option<&Bitmap>) -> Vec<(usize, f32)> {
    let mut best = TopK::new(k);
    for (slot, row) in rows.chunks_exact(query.len()).enumerate() {
        if filter.is_none_or(|filter| filter.contains(slot)) {
            best.push(rescore(query, row), slot);
        }
    }
    best.into_sorted()
}
