//! The built-in tools, in a module for each subject; [`catalog`] lists them.
//!
//! An operation is written once, in a separate file; if toolsets offer it under several names, the file has a function
//! for each form of arguments and output. A module uses only those above it.

mod shared;
mod obsidian;
mod links;
mod find;
mod checks;
mod notes;
mod editor;
mod text;
mod catalog;

pub use catalog::all;
pub(crate) use shared::locate::fill_in_times;
