//! `vault-agent acp` from outside: an editor that speaks the protocol by hand, and a model on loopback.

mod editor;

mod commands;
#[cfg(unix)]
mod hostile;
mod protocol;
mod questions;
mod sessions;
mod turns;
