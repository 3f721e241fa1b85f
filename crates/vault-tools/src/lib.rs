//! Tools that read and safely change a folder of Markdown notes.
//!
//! A change is made in three steps. An [`Overlay`] is the vault with edits that are not on disk yet: you rename, write and
//! delete in it, and it rewrites every link that would otherwise break. [`Overlay::change`] gives the [`Change`] that leads
//! there, and [`Change::preview`] its diffs. [`Vault::apply`] carries it out as one transaction: if a file in it was edited
//! since the overlay read it, nothing happens and you get a conflict; if the program is killed in the middle, the next one
//! rolls back, unless files were written since. [`Vault::undo`] restores every byte.
//!
//! ```text
//! text ──> SafePath ──> Overlay: the vault with changes not yet made ──> Change ──> Preview
//!                                                                          └─────> a transaction in the journal ──> undo, redo
//! ```
//!
//! ```
//! use vault_tools::{ApplyOptions, Force, IndexUse, SafePath, Vault, VaultOptions};
//!
//! # let folder = tempfile::tempdir()?;
//! # std::fs::create_dir(folder.path().join("notes"))?;
//! # std::fs::write(folder.path().join("notes/Roses.md"), "Prune them.\n")?;
//! # std::fs::write(folder.path().join("notes/Home.md"), "See [[Roses]].\n")?;
//! # let vault_dir = folder.path().join("notes");
//! # let options = VaultOptions::new().state_folder(folder.path().join("state")).use_index(IndexUse::Scan);
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
//! Models and programs use a [`Toolbox`] instead: named and typed tools with JSON schemas, whose writes go through the
//! same steps. A [`Policy`] decides which calls run, which ask and which are denied, and an
//! [`Approver`](approval::Approver) is asked with the prepared change, so that an approval is for exactly the diff that
//! was shown. A plan is a list of such calls that is previewed and applied as a whole.
//!
//! Only files inside the vault's folder are read and written ([`SafePath`], [`Sandbox`]), apart from the
//! journal, the log, plans and macros in the user's state folder ([`State`]), and the index in the cache folder.
//!
//! # Errors
//! There is one type, [`Error`]: a kind, where it happened, a message and a remedy. Messages are written for two readers,
//! the person who runs a command and the model that made a call, and both need the remedy ("read the note again, then
//! repeat the edit with its new version") more than a backtrace. Programs match on [`ErrorKind`], whose names are the codes
//! in JSON, for example `CONFLICT` and `DENIED`.

#![deny(missing_docs)]
// Tests create vaults and look at the files.
#![cfg_attr(test, allow(clippy::disallowed_methods))]

// The order of modules is the order of dependencies: a module uses only modules above it. A test checks it.
mod failpoint;
mod error;
mod content;
mod recent_reads;
mod sandbox;
mod state;
mod host;
pub mod edit;
mod action;
mod journal;
mod store;
mod change;
mod links;
mod expect;
mod overlay;
mod transaction;
mod vault;
mod policy;
mod log;
mod tool;
mod tools;
mod toolbox;
mod vaults;
pub mod plan;
mod macros;
pub mod approval;

pub use action::{Action, DeleteMode};
pub use change::{Change, EditedFile, FilePreview, FolderPreview, Kind, LeftOutHunks, Preview, SeparableParts};
pub use content::{Content, ContentHash};
pub use error::{Error, ErrorKind, Result};
pub use expect::{ChangeCounts, EXPECT, Expectation};
pub use host::{Editor, Headless, Host, HostCommand, Leaf, OpenEditors, Position, Selection, Span};
pub use journal::{PruneOptions, PruneReport, TransactionId, TransactionKind};
pub use links::{LinkAt, RewrittenLink};
pub use log::{
    Approval, Record, ToolStats, append as append_to_log, file as log_file, prune as prune_log, read as read_log,
    stats as log_stats,
};
pub use macros::{Export, IfExists, ImportReport, Macro, Macros, Parameter, ParameterKind, RejectedEntry, SaveOptions};
pub use overlay::{BrokenFrontmatter, DeleteReport, Overlay, RenameReport, WriteOutcome};
pub use policy::{
    Call, Grants, LastingPermission, Permission, Policy, PolicySettings, Risk, ToolSetting, Toolset, VaultLists,
    is_tool_of,
};
pub use sandbox::{Entry, EntryKind, SafePath, Sandbox, Stat, View, missing};
pub use state::State;
pub use store::IndexUse;
pub use tool::{Cancel, Context, HostEffect, Issue, PathArg, Tool, ToolSpec};
pub use toolbox::{Output, Proposal, Toolbox, content_of, find as find_tool, output_text, text_of};
pub use tools::all as builtin_tools;
pub use transaction::{ApplyOptions, ApplyProgress, ControlFlow, Force, RecoveryMode, RecoveryReport, Transaction};
pub use vault::{TransactionInfo, TransactionStatus, Vault, VaultOptions};
/// How the index of a vault is opened: [`VaultOptions::index`].
pub use vault_index::Options as IndexOptions;
pub use vaults::{Route, Vaults};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;
