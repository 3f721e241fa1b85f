//! `vault-agent acp` from outside: an editor that speaks the protocol by hand, and a model on loopback.

pub mod editor;

mod commands;
mod live_host;
mod community_plugins;
mod embedding_models;
mod mcp_servers;
mod protocol;
mod questions;
mod sessions;
mod turns;
mod vault;
mod vault_models;
