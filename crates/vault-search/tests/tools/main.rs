//! The command `vault-tools`, run as a person runs it.

mod command;
mod forget;
mod interrupted;
mod journal;
mod note_commands;
mod options;
mod several_vaults;
#[cfg(unix)]
mod terminal;
#[path = "../../../vault-tools/tests/it/vault.rs"]
#[allow(dead_code)] // The tests of the library use the rest.
mod vault;
