//! How the passages that may be found are ranked. A query's words are expanded and scored by BM25, its vector is compared
//! with those of the passages, names of notes lift a passage into a band of its own, and the parts are fused: bounds
//! first, then the exact scores of the passages that can still be among the k best.

mod slips;
pub(super) mod forms;
pub(super) mod lexical;
pub(super) mod names;
pub(super) mod semantic;
pub(super) mod estimate;
pub(super) mod fuse;
pub(super) mod prune;
pub(super) mod adjacent;
pub(super) mod direction;

#[cfg(test)]
mod lexical_tests;
#[cfg(test)]
mod exact_tests;
