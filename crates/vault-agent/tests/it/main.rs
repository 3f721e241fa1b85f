//! What the program promises as a whole, checked from outside.

mod stdio;

mod approvals;
mod doctor;
#[cfg(unix)]
mod hostile;
mod http;
mod install;
mod resources;
mod servers;
mod tokens;
mod tools;
