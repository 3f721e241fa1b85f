//! Embedding models and cross-encoders on ONNX Runtime, through fastembed: by its names, and from folders of the user's.
//!
//! [vault-index](https://docs.rs/vault-index) uses this crate for the models `fastembed:NAME` and `onnx:DIR`; it knows
//! nothing of notes, and can be used alone. It adds to fastembed what stored vectors need:
//!
//! - A text has the same vector, and a pair the same score, whatever the others are.
//! - [`EmbeddingModel::id`] changes when the same text may get another vector.
//! - ONNX Runtime is looked for in the usual places, and its version checked, before anything uses it.
//! - Nothing is downloaded or loaded before the first text or pair. Only a model in a folder is loaded at once if its
//!   dimensions are not given.
//! - An [`Error`] says what happened, where, and what to do.
//!
//! ```no_run
//! use std::path::Path;
//!
//! use vault_models::{CrossEncoder, EmbeddingModel};
//!
//! let model = EmbeddingModel::in_folder(Path::new("my-model"), None)?;
//! let vectors = model.embed(&["how do I prune fruit trees"])?;
//! println!("{} gives {} dimensions", model.id(), vectors[0].len());
//!
//! // Downloaded to this folder for the first score.
//! let reranker = CrossEncoder::named("BGERerankerBase", Path::new("downloads"))?;
//! println!("{:?}", reranker.score("prune fruit trees", &["Cut apple branches.", "Interest rates rose."])?);
//! # Ok::<(), vault_models::Error>(())
//! ```
//!
//! A vector has the length that the model gives it, and texts are embedded as they are: the caller writes the prompts that
//! a model expects ([`EmbeddingModel::prompts`]) before them.

#![deny(missing_docs)]

mod error;
mod runtime;
mod files;
mod embedding_folder;
mod embedding_model;
mod cross_encoder;
#[cfg(test)]
mod tests;

pub use cross_encoder::CrossEncoder;
pub use embedding_folder::Prompts;
pub use embedding_model::{EmbeddingModel, NamedModel};
pub use error::{Error, ModelError, Result};

/// The window of the models in tokens, including special ones, unless they have a smaller one.
const WINDOW: usize = 512;

/// The examples of the README, as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
