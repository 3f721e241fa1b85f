//! The guarantees of the crate as a whole, tested from outside.

mod test_tools;
#[cfg(all(feature = "mcp", unix))]
mod programs;
// The cases of the contract run over two kinds of connections.
#[allow(clippy::duplicate_mod)]
mod contract;
mod as_written;
mod approver;
mod ask;
mod driver;
mod edited;
mod events;
mod formats;
mod hostile;
mod invariants;
mod loop_contract;
// The processes are started with a Unix shell's help.
#[cfg(all(feature = "mcp", unix))]
mod mcp;
mod saved_runs;
mod settings;
mod stream;
mod text_models;
mod transcripts;
mod tree;
