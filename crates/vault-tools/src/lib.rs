//! Tools that read and safely change a folder of Markdown notes: every change is shown first, done as one, and can be
//! taken back.
//!
//! ```text
//! text ──> SafePath ──> Overlay: the vault with changes not yet made ──> Change ──> Preview
//!                                                                          └─────> a run in the journal ──> undo, redo
//! ```
//!
//! ```
//! use vault_tools::{ApplyOptions, Force, SafePath, Vault, VaultOptions};
//!
//! # let folder = tempfile::tempdir()?;
//! # std::fs::create_dir(folder.path().join("notes"))?;
//! # std::fs::write(folder.path().join("notes/Roses.md"), "Prune them.\n")?;
//! # std::fs::write(folder.path().join("notes/Home.md"), "See [[Roses]].\n")?;
//! # let vault_dir = folder.path().join("notes");
//! # let options = VaultOptions {
//! #     state_folder: Some(folder.path().join("state")),
//! #     use_index: vault_tools::IndexUse::Scan,
//! #     ..VaultOptions::default()
//! # };
//! let vault = Vault::open(&vault_dir, options)?;
//! let mut overlay = vault.overlay();
//! overlay.rename(&SafePath::new("Roses.md")?, &SafePath::new("Garden/Pruning roses.md")?)?;
//! let change = overlay.change();
//! print!("{}", change.preview());                             // unified diffs; nothing has happened yet
//! vault.apply(&change, ApplyOptions::default())?;             // all of it, or nothing
//! # assert_eq!(std::fs::read_to_string(vault_dir.join("Home.md"))?, "See [[Pruning roses]].\n");
//! vault.undo(None, Force::No)?;                               // byte for byte
//! # assert_eq!(std::fs::read_to_string(vault_dir.join("Home.md"))?, "See [[Roses]].\n");
//! # assert!(!vault_dir.join("Garden").exists());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Nothing outside the vault's folder is read or written ([`SafePath`], [`Sandbox`]) but files of ours in the user's
//! state folder ([`State`]). How links are kept is page one of `change/relink.rs`, the journal's format
//! that of `journal.rs`.

#![deny(missing_docs)]
// Tests make vaults, and look at what became of them.
#![cfg_attr(test, allow(clippy::disallowed_methods))]

// The order of the rooms is the order of the arrows: a room uses only rooms above it. A test checks it.
mod fault;
mod error;
mod content;
mod json_unique_keys;
mod sandbox;
mod state;
mod host;
pub mod edit;
mod action;
mod journal;
mod change;
mod policy;
mod log;
mod tool;
mod tools;
mod toolbox;
pub mod plan;
mod macros;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod cli;

pub use action::{Action, Gone};
pub use change::{
    ApplyOptions, Applying, Change, Deleted, Deletion, FilePreview, FolderPreview, Force, Go, IndexUse, Kind, LinkAt,
    Overlay, Preview, Recovered, Renamed, Rewritten, Run, RunInfo, RunStatus, Vault, VaultOptions, Written,
};
pub use content::{Content, ContentHash};
pub use error::{Error, ErrorKind, Result};
pub use host::{Editor, Headless, Host, HostCommand, Leaf, Position, Selection, Span};
pub use journal::{PruneOptions, Pruned, RunId, RunKind};
pub use log::{
    Approval, Record, ToolStats, append as append_to_log, prune as prune_log, read as read_log, stats as log_stats,
};
pub use macros::{Export, IfExists, Imported, Macro, Macros, Parameter, ParameterKind, Rejected, SaveOptions};
pub use policy::{Call, Grants, Permission, Policy, Risk, Settings, ToolSetting, Toolset, Trash};
pub use sandbox::{Entry, EntryKind, SafePath, Sandbox, Stat, View};
pub use state::State;
pub use tool::{Cancel, Context, HostEffect, Issue, PathArg, Tool, ToolSpec};
pub use toolbox::{Output, Proposal, Toolbox};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;
