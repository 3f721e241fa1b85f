//! What the crate promises as a whole, checked from outside.

mod test_tools;
// Some features need neither programs nor models.
#[allow(dead_code)]
mod programs;
// The cases of the contract run over two kinds of connections.
#[allow(clippy::duplicate_mod)]
mod contract;
mod as_written;
mod ask;
mod chat;
mod driver;
mod events;
mod formats;
mod hostile;
mod invariants;
#[cfg(all(feature = "hosted", unix))]
mod llama_server;
mod loop_contract;
#[cfg(feature = "local")]
mod local;
// The processes are started with a Unix shell's help.
#[cfg(all(feature = "mcp", unix))]
mod mcp;
#[cfg(feature = "proxy")]
mod proxy;
mod responses;
mod saved_runs;
mod settings;
mod text_models;
mod transcripts;
mod tree;
