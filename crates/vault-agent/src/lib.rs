//! The program `vault-agent`: asks a folder of Markdown notes, talks about it and changes it by plans; and serves it to
//! assistants, with changes that need a person's approval.

#![deny(missing_docs)]

// The order of modules is the order of dependencies: a module uses only modules above it. A test checks it.
mod workspace;
mod vault_instructions;
mod call_line;
mod change_text;
mod changes;
mod state_folder;
mod pending_changes;
mod index_watcher;
mod vectors;
mod terminal;
mod loop_error;
mod known_providers;
mod settings;
mod own_servers;
mod keys;
mod traffic;
mod local_models;
mod model;
mod model_list;
mod embeddings;
mod conversation;
mod plan_writer;
mod notes_model;
mod message_lines;
mod mcp;
mod acp;
mod clients;
mod cli;

/// Runs `vault-agent`.
#[doc(hidden)]
pub fn main() -> std::process::ExitCode {
    cli::main()
}
