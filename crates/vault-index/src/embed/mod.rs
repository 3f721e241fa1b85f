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
//! date never waits for a model. Which texts are embedded, and with what heading in front, is the
//! indexer's business; what a model wants before a text (its prompt) is ours: `prompts.rs`.

mod available;
#[cfg(any(feature = "fastembed", feature = "http"))]
mod estimate;
#[cfg(feature = "fastembed")]
mod fastembed;
mod hashed;
#[cfg(feature = "http")]
mod http;
mod load;
#[cfg(feature = "minilm")]
mod minilm;
mod name;
#[cfg(any(feature = "fastembed", feature = "http"))]
mod prompts;
mod unit;

pub use available::{ModelInfo, ModelPlace, ModelState, available};
pub use hashed::Hashed;
pub use load::{LoadOptions, load};
pub use name::ModelName;
pub use unit::to_unit;

use crate::chunk::TokenCount;
use crate::error::Result;

/// An embedding model. Implement it to bring your own; copy `hashed.rs` to start.
///
/// The token counts of [`TokenCount`] decide how notes are cut for this model.
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

    /// The share of the words of `text` that the model knows, 0 to 1. Below one half, words alone rank.
    fn known_share(&self, _text: &str) -> f32 {
        1.0
    }

    /// Whether texts leave this machine to be embedded.
    fn is_remote(&self) -> bool {
        false
    }

    /// How many texts a call should get at least to be quick.
    fn batch_size(&self) -> usize {
        64
    }
}

/// What a text is to a search; some models treat the two differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A passage of a note.
    Passage,
    /// What a person asks.
    Query,
}
