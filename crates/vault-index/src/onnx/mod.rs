//! Embedding models and cross-encoders on ONNX Runtime, through fastembed: by its names, and from folders of the user's.

mod error;
mod runtime;
mod files;
mod embedding_folder;
mod embedding_model;
mod cross_encoder;
#[cfg(test)]
pub(crate) mod tests;

pub use cross_encoder::CrossEncoder;
pub use embedding_model::EmbeddingModel;
pub use error::{Error, ModelError};

/// The window of the models in tokens, including special ones, unless they have a smaller one.
const WINDOW: usize = 512;
