//! What the crate promises as a whole, checked from outside.

mod bench_tools;
mod chat;
mod contract;
mod driver;
mod invariants;
#[cfg(feature = "proxy")]
mod proxy;
mod responses;
mod saved_runs;
mod text_models;
mod transcripts;
mod tree;
