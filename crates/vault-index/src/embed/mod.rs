//! From text to vector: the trait that every embedding model implements, and the built-in models.
//!
//! | name | file | feature | where texts go |
//! | --- | --- | --- | --- |
//! | `minilm` | `minilm.rs` | `minilm` | nowhere: the model is in the program |
//! | a name of `models/known.rs`, `dir:DIR` | `added.rs` | `minilm` | nowhere; `vault-index models add` downloads it once |
//! | `fastembed:NAME`, `onnx:DIR` | `fastembed.rs` | `fastembed` | nowhere; `fastembed:` downloads the model once |
//! | `openai:NAME`, `ollama:NAME` | `http/` | `http` | to a server, on this machine or another |
//! | `hashed` | `hashed.rs` | | nowhere: no model at all, for tests |
//!
//! Loading is cheap: weights are read when the first text is embedded, so an index that is up to date never waits for a
//! model. The indexer decides which texts are embedded, and which headings come before them. The prompt that a model
//! expects before a text is added here (`prompts.rs`).
//!
//! To add a built-in model, add a variant of [`ModelName`], an arm in `load.rs` and a line in `available.rs`.

mod unit;
mod name;
#[cfg(any(feature = "fastembed", feature = "http"))]
mod token_estimate;
#[cfg(any(feature = "fastembed", feature = "http"))]
mod prompts;
mod hashed;
#[cfg(feature = "minilm")]
mod minilm;
#[cfg(feature = "minilm")]
mod added;
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
    /// The name of the model and its version. Vectors are comparable if and only if their ids are equal, so the id must
    /// change whenever the same text may get another vector.
    fn id(&self) -> &str;

    /// The length of every vector.
    fn dimensions(&self) -> usize;

    /// The number of tokens that a text may have, without special tokens. The model truncates longer texts.
    fn max_tokens(&self) -> usize;

    /// Returns one vector for each text, in the order of `texts`, each of unit length (or all zeros for a text without
    /// content). The same text gives the same vector, whatever the other texts are.
    ///
    /// # Errors
    /// When the model or service fails; then all vectors of the batch are discarded.
    fn embed(&self, texts: &[&str], role: Role) -> Result<Vec<Vec<f32>>>;

    /// The share of the words of `text` that the model knows, 0 to 1. A query below one half is ranked by words only.
    fn known_share(&self, _text: &str) -> f32 {
        1.0
    }

    /// Whether the model was made for English only; then `status` reports notes in other languages.
    fn is_english(&self) -> bool {
        false
    }

    /// Whether the model compares texts of different languages. Then the floor of scores is lower, because a question is
    /// less close to an answer in another language.
    fn is_multilingual(&self) -> bool {
        false
    }

    /// The mean cosine of questions with passages about other things, and with passages that answer them in other words.
    /// Scores are computed from cosines on the scale of the bundled model, for which these are .02 and .38, because
    /// floors and weights were measured with it. `None`: not measured; cosines are used as they are.
    fn cosine_range(&self) -> Option<(f32, f32)> {
        None
    }

    /// Whether texts leave this machine to be embedded.
    fn is_remote(&self) -> bool {
        false
    }

    /// The least number of texts in a call for full speed.
    fn batch_size(&self) -> usize {
        64
    }
}

/// The role of a text in a search; some models treat the two differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Role {
    /// A passage of a note.
    Passage,
    /// A query.
    Query,
}
