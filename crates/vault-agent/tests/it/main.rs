//! What the program promises as a whole, checked from outside.

mod http_server;
mod model_server;
mod stdio;
mod web_server;
#[cfg(unix)]
mod terminal;

mod acp;
mod approvals;
mod ask;
#[cfg(unix)]
mod chat;
mod doctor;
#[cfg(unix)]
mod hostile;
mod http;
mod install;
mod models;
mod plan;
mod proxy;
mod resources;
mod servers;
mod settings;
mod tokens;
mod tools;
mod wires;
