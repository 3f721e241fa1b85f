//! What the program promises as a whole, checked from outside.

mod http_server;
mod web_server;
#[allow(dead_code, reason = "vault-search's tests use the rest")]
#[path = "../../../vault-search/tests/search/hub.rs"]
mod hub;
#[path = "../../../vault-search/tests/search/small_model.rs"]
mod small_model;
#[cfg(unix)]
mod wire_rules;
mod model_server;
mod stdio;
#[cfg(unix)]
mod terminal;

mod acp;
mod announced;
mod approvals;
mod ask;
#[cfg(unix)]
mod chat;
#[cfg(unix)]
mod compaction;
mod demo;
mod doctor;
#[cfg(unix)]
mod everyday;
mod flags;
#[cfg(unix)]
mod full_disk;
#[cfg(unix)]
mod hostile;
#[cfg(unix)]
mod help;
mod http;
mod install;
mod library;
mod models;
mod names;
mod own_servers;
mod permissions;
mod plan;
mod proxy;
mod requests;
mod resources;
mod servers;
mod settings;
mod setup;
mod tokens;
mod tools;
#[cfg(unix)]
mod unseen;
#[cfg(unix)]
mod wires;
