//! The files on disk and their changes: listing, comparing with the index, reading a note, watching.
//!
//! ```text
//! walk   folder            -> DiskFile list   one stat a file, nothing opened
//! diff   known x disk      -> Diff            pure: what is new, gone, or has to be looked into
//! read   DiskFile          -> Content         bytes and their hash, only for what diff asks
//! settle Diff x hashes     -> Change list     pure: added, changed, renamed, removed, touched, flipped
//! watch  events of a folder -> Signal          only says "look again"; what changed is diff's answer
//! ```
//!
//! Nothing here writes to the vault or interprets the content of notes.

mod stat;
mod vault_toml;
mod exclude;
mod walk;
mod diff;
mod fingerprint;
mod read;
#[cfg(feature = "watch")]
mod watch;

pub use diff::{Change, ContentHash, KnownFile, Pair, diff, settle};
pub use exclude::{Exclusion, check_globs};
pub use fingerprint::Fingerprint;
pub use read::{MAX_NOTE_BYTES, read_note};
pub use stat::FileStat;
pub(crate) use stat::identity;
pub use vault_toml::{LintTable, check_vault_toml};
pub use walk::{DiskFile, WalkRules, is_obsidian_vault, walk};
#[cfg(feature = "watch")]
pub use watch::{FileWatcher, Signal};
