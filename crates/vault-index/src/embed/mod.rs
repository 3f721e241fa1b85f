//! Text -> vector: the trait every embedding model implements, and the models we know.
//!
//! | name | file | feature | where texts go |
//! | --- | --- | --- | --- |
//! | `minilm` | `minilm.rs` | `minilm` | nowhere: the model is in the program |
//! | `fastembed:NAME`, `onnx:DIR` | `fastembed/` | `fastembed` | nowhere; `fastembed:` downloads the model once |
//! | `openai:NAME`, `ollama:NAME` | `http/` | `http` | to a server, on this machine or another |
//! | `hashed` | `hashed.rs` | | nowhere: no model at all, for tests |
//!
//! Loading is cheap: weights are read when the first text is embedded, so an index that is up to
//! date never waits for a model. The indexer decides which texts are embedded, and with which headings before
//! them; the prompt that a model wants before a text is added here (`prompts.rs`).
//!
//! A model with a name of its own is a variant of [`ModelName`], an arm in `load.rs` and a line in `available.rs`.

mod unit;
mod name;
#[cfg(any(feature = "fastembed", feature = "http"))]
mod token_estimate;
#[cfg(any(feature = "fastembed", feature = "http"))]
mod prompts;
mod hashed;
#[cfg(feature = "minilm")]
mod minilm;
#[cfg(feature = "fastembed")]
mod fastembed;
#[cfg(feature = "http")]
mod http;
mod available;
mod load;

pub use available::ModelInfo;
pub use hashed::HashedEmbedder;
pub(crate) use load::MULTILINGUAL;
pub use name::{LoadOptions, ModelName};
pub use unit::to_unit;

use crate::chunk::TokenCount;
use crate::error::Result;

/// An embedding model. Implement it to bring your own; copy `hashed.rs` to start.
///
/// The token counts of [`TokenCount`] decide how notes are cut for this model.
///
/// ```
/// use std::sync::Arc;
/// use vault_index::{Embedder, Index, Options, Query, Result, Role, TokenCount};
///
/// /// Two subjects: how much of a text is about water, and how much about fire.
/// struct Subjects;
///
/// impl TokenCount for Subjects {
///     fn count(&self, text: &str) -> usize {
///         text.split_whitespace().count()
///     }
/// }
///
/// impl Embedder for Subjects {
///     fn id(&self) -> &str {
///         "subjects-v1"
///     }
///
///     fn dimensions(&self) -> usize {
///         2
///     }
///
///     fn max_tokens(&self) -> usize {
///         200
///     }
///
///     fn embed(&self, texts: &[&str], _role: Role) -> Result<Vec<Vec<f32>>> {
///         let count = |text: &str, words: &[&str]| words.iter().filter(|word| text.contains(**word)).count() as f32;
///         let vector = |text: &&str| {
///             let (water, fire) = (count(text, &["rain", "river"]), count(text, &["flame", "smoke"]));
///             let length = water.hypot(fire).max(1.0);
///             vec![water / length, fire / length]
///         };
///         Ok(texts.iter().map(vector).collect())
///     }
/// }
///
/// # let vault = tempfile::tempdir()?;
/// # std::fs::write(vault.path().join("Walk.md"), "Along the river.")?;
/// # let mut options = Options::default();
/// # options.index_file = Some(vault.path().join(".index/index.db"));
/// # let vault_dir = vault.path();
/// options.embedder = Some(Arc::new(Subjects));
/// let index = Index::open(vault_dir, options)?;
/// index.sync()?;
/// assert_eq!(index.search(&Query::literal("rain"))?.results[0].path.as_str(), "Walk.md");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Embedder: TokenCount {
    /// Names the model and its version. Vectors are comparable if and only if their ids are equal,
    /// so it changes whenever the same text may get another vector.
    fn id(&self) -> &str;

    /// The length of every vector.
    fn dimensions(&self) -> usize;

    /// Tokens one text may have, special tokens not counted. Longer texts are cut by the model.
    fn max_tokens(&self) -> usize;

    /// One vector a text, in the order of `texts`, each of unit length (or all zeros for a text
    /// without any content). The same text gives the same vector, whatever stands beside it.
    ///
    /// # Errors
    /// When the model or service fails; then no vector of the batch is kept.
    fn embed(&self, texts: &[&str], role: Role) -> Result<Vec<Vec<f32>>>;

    /// The share of the words of `text` that the model knows, 0 to 1. A query below one half is ranked by words alone.
    fn known_share(&self, _text: &str) -> f32 {
        1.0
    }

    /// Whether it was made for English alone, so that `status` tells of notes in other languages.
    fn is_english(&self) -> bool {
        false
    }

    /// Whether texts leave this machine to be embedded.
    fn is_remote(&self) -> bool {
        false
    }

    /// How many texts a call should get, at least, to be fast.
    fn batch_size(&self) -> usize {
        64
    }
}

/// What a text is to a search; some models treat the two differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Role {
    /// A passage of a note.
    Passage,
    /// What a person asks.
    Query,
}
