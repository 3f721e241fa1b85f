//! Alternatives for scanning rows, with a common interface: `new(rows)`, then the best `k` of a query as slots.

mod plain;
mod sqlite_vec;
#[cfg(feature = "peers")]
mod usearch;

pub use plain::{plain_scores, plain_top_k};
pub use sqlite_vec::{Element, SqliteVec};
#[cfg(feature = "peers")]
pub use usearch::Usearch;

/// Returns the share of `exact` that is in `found`.
pub fn overlap(found: &[usize], exact: &[usize]) -> f64 {
    let both = exact.iter().filter(|slot| found.contains(slot)).count();
    both as f64 / exact.len().max(1) as f64
}
