//! The sentence embedding model all-MiniLM-L6-v2 with its weights inside: no download, no network, no C.
//!
//! The flow: a text becomes token ids ([`WordPiece`]), the ids go through the
//! encoder, an engine for this one model whose matrices are int8, and out comes
//! one unit vector of [`DIMENSIONS`] numbers, the same bits on every processor.
//! The dot product of two vectors is their cosine, a measure of how near their
//! texts are in meaning. The model reads English; [`WordPiece::known_share`]
//! says how much of a text it can read.
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
//! Where the weights come from, and how they were made, is in `PROVENANCE.md`.

mod vocabulary;
mod normalize;
mod wordpiece;
mod kernel;
mod weights;
mod encoder;
mod batch;
mod model;

pub use model::MiniLm;
pub use wordpiece::WordPiece;

/// Length of every vector.
pub const DIMENSIONS: usize = 384;

/// Tokens the model reads of one text, with `[CLS]` before and `[SEP]` after it: 254 of its own.
pub const MAX_TOKENS: usize = 256;

/// Names the vectors: with another id they are not comparable, and stored ones must be made anew.
///
/// Ends in the first eight digits of the SHA-256 of vocabulary, graph and weights.
pub const ID: &str = "minilm-l6-v2-int8-c2b94dcf";

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;
