//! From a query and a passage to a score: the trait that every reranker implements, and the built-in cross-encoders.
//!
//! | name | file | feature | where texts go |
//! | --- | --- | --- | --- |
//! | `fastembed:NAME`, `onnx:DIR` | `cross_encoder.rs` | `fastembed` | nowhere; `fastembed:` downloads the model once |
//!
//! An embedding model reads each passage once, before any query is known; a cross-encoder reads query and passage
//! together, once for each pair. So it scores only a few passages, those that a ranking found (`search/rerank.rs`), and
//! only if the user names one: otherwise nothing here is loaded.

mod name;
#[cfg(feature = "fastembed")]
mod cross_encoder;
mod load;

pub use name::RerankerName;

use crate::error::Result;

/// Scores passages by how well they answer a query. Implement it to bring your own.
///
/// ```
/// use std::sync::Arc;
/// use vault_index::{Index, Options, Query, Rerank, Reranker, Result};
///
/// /// The share of the query's words that a passage holds.
/// struct SharedWords;
///
/// impl Reranker for SharedWords {
///     fn id(&self) -> &str {
///         "shared-words"
///     }
///
///     fn score(&self, query: &str, passages: &[&str]) -> Result<Vec<f32>> {
///         let words: Vec<&str> = query.split_whitespace().collect();
///         let share = |passage: &&str| {
///             words.iter().filter(|word| passage.contains(**word)).count() as f32 / words.len().max(1) as f32
///         };
///         Ok(passages.iter().map(share).collect())
///     }
/// }
///
/// # let vault = tempfile::tempdir()?;
/// # std::fs::write(vault.path().join("Roses.md"), "Cut the stems back in late winter.")?;
/// # let embedder: Option<Arc<dyn vault_index::Embedder>> = Some(Arc::new(vault_index::HashedEmbedder::new()));
/// # let options = Options::new().index_file(vault.path().join(".index/index.db"));
/// # let vault_dir = vault.path();
/// let index = Index::open(vault_dir, options)?;
/// index.sync()?;
/// let rerank = Rerank::new(Arc::new(SharedWords));
/// let hits = index.search_reranked(&Query::parse("late winter pruning")?, &rerank)?;
/// assert_eq!(hits.results[0].score, 2.0 / 3.0);
/// assert_eq!(hits.reranker.as_deref(), Some("shared-words"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Reranker: Send + Sync {
    /// The name of the reranker, which hits and errors show to people.
    fn id(&self) -> &str;

    /// Returns one score per passage, in the order of `passages`: 0 to 1, higher for a passage that answers the query
    /// better. Each score depends only on its pair: the same query and passage have the same score, whatever the other
    /// passages are.
    ///
    /// A passage comes with its note's title and its headings, one per line before its text. The model truncates pairs
    /// that are too long. Called once per search, with all candidates.
    ///
    /// # Errors
    /// When the model fails; then the search fails.
    fn score(&self, query: &str, passages: &[&str]) -> Result<Vec<f32>>;
}
