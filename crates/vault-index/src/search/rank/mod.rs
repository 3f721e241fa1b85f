//! Ranking of the eligible passages.
//!
//! The words of a query are expanded and scored by BM25, its vector is compared with those of the passages, names of
//! notes lift a passage into a higher band, and the parts are fused: first bounds, then the exact scores of the
//! passages that can still be among the k best.

mod spelling;
pub(super) mod query_expansion;
pub(super) mod bm25;
mod underscores;
pub(super) mod name_match;
pub(super) mod cosine_bounds;
pub(super) mod imputed_cosine;
pub(super) mod fuse;
pub(super) mod k_best_candidates;
pub(super) mod adjacent_words;
pub(super) mod note_vector;

#[cfg(test)]
mod bm25_tests;
#[cfg(test)]
mod exactness_tests;
