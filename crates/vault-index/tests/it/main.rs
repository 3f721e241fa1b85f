//! What the crate promises as a whole, checked from outside.

#[cfg(feature = "minilm")]
mod demo;
mod adjacent;
mod architecture;
mod background;
mod formats;
mod incremental;
mod names;
mod own_words;
mod operators;
mod readers;
mod rerank;
mod search_laws;
mod vault;
#[cfg(feature = "watch")]
mod watching;
mod word_forms;
