//! From the folder of a model, as it is published, to the file that the engine maps.
//!
//! ```text
//! config.json, tokenizer.json, model.safetensors … ──read──> sizes, tables, f32 matrices
//!     ──calibrate: plain encoder on some texts, layer by layer──> SmoothQuant factors ──> int8, in panels ──> file
//! ```
//!
//! It follows the recipe of the bundled model (`recipe/make_model.py`), and all of its arithmetic is that of IEEE 754 in
//! a fixed order, so a folder gives the same file on every processor.

mod json_file;
mod tensors;
mod plain_encoder;
mod quantize;
mod tokenizer_json;
mod folder;
mod published;
mod sections;
mod cosine_range;
mod write;

#[cfg(test)]
mod tests;

pub use folder::{CompileOptions, ModelFolder};
