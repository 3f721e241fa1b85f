//! What the crate promises as a whole, checked from outside.

#[cfg(feature = "minilm")]
mod demo;
mod adjacent_words;
mod architecture;
mod background;
mod formats;
mod incremental;
mod names;
mod operators;
mod readers;
mod repeated_text;
mod rerank;
mod search_invariants;
mod vault;
#[cfg(feature = "watch")]
mod watching;
mod word_forms;
