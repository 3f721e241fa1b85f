//! The sentence embedding model all-MiniLM-L6-v2 with its weights inside, and an engine for others of its kind.
//!
//! A text becomes token ids ([`WordPiece`]), which go through an encoder with int8 matrices. The result is a unit vector
//! of [`DIMENSIONS`] numbers, with the same bits on every processor. The dot product of two vectors is their cosine, a
//! measure of how similar their texts are in meaning. The model reads English; [`WordPiece::known_share`] says how much
//! of a text it can read.
//!
//! ```
//! let model = minilm::MiniLm::load();
//! let cosine = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f32>();
//!
//! let query = model.embed("how do I prune fruit trees");
//! let garden = model.embed("Cut apple branches back in late winter.");
//! let money = model.embed("The bank raised its interest rate.");
//! assert!(cosine(&query, &garden) > cosine(&query, &money));
//! ```
//!
//! Other models are compiled from their published files ([`ModelFolder`]) to one that is mapped ([`Model`]).
//!
//! `PROVENANCE.md` says where the weights come from and how they were computed.

mod error;
mod mapped;
mod vocabulary;
mod normalize;
mod wordpiece;
mod trie;
mod charsmap;
mod unigram;
mod tokenizer;
mod kernel;
mod weights;
mod pooling;
mod encoder;
mod batch;
mod engine;
mod model_file;
mod model;
mod compile;

pub use compile::{CompileOptions, ModelFolder};
pub use error::ModelError;
pub use model::{MiniLm, Model};
pub use model_file::{CosineRange, Description, ModelPrompts};
pub use weights::{Pooling, Sizes};
pub use wordpiece::WordPiece;

/// The length of every vector.
pub const DIMENSIONS: usize = 384;

/// The number of tokens that the model reads of one text, including `[CLS]` before and `[SEP]` after it: 254 of its
/// own.
pub const MAX_TOKENS: usize = 256;

/// The range of the bundled model's cosines, as [`Description::cosine_range`] of others.
pub const COSINE_RANGE: CosineRange = CosineRange { unrelated: 0.018241176, related: 0.3823466 };

/// The version of the vectors. Vectors with different ids are not comparable, so stored ones must be computed again
/// when it changes.
///
/// It ends with the first eight digits of the SHA-256 of vocabulary, graph and weights.
pub const ID: &str = "minilm-l6-v2-int8-c2b94dcf";

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;
