//! What the program promises as a whole, checked from outside.

mod model_server;
mod stdio;
#[cfg(unix)]
mod terminal;

mod approvals;
mod ask;
#[cfg(unix)]
mod chat;
mod doctor;
#[cfg(unix)]
mod hostile;
mod http;
mod install;
mod plan;
mod resources;
mod servers;
mod tokens;
mod tools;
mod wires;
