//! The commands `vault-search` and `vault-index`, run as a person runs them.

#[cfg(target_os = "linux")]
mod background;
mod bad_input;
mod commands;
mod crash;
mod damage;
mod doctor;
#[cfg(feature = "http")]
#[allow(dead_code, reason = "vault-agent's tests use the rest")]
mod hub;
#[cfg(all(target_os = "linux", feature = "http"))]
mod interrupt;
#[cfg(feature = "http")]
mod models;
mod output;
mod rerank;
#[cfg(feature = "http")]
mod small_model;
#[cfg(target_os = "linux")]
mod terminal;
#[path = "../../../vault-index/tests/it/vault.rs"]
mod vault;
mod waits;
