//! Paths and files of the vault: [`SafePath`], and the only code that opens or changes the vault's files.
//!
//! A path is followed name by name from a handle on the vault's folder, and no name on the way may be a symbolic link.
//! Therefore every operation stays inside the vault, even if another program replaces a folder by a link in between. A
//! file that is itself a link to a file of the vault is an alias of that file: it is read and written through. Hidden
//! files and folders are treated as missing, except that deleted files go to `.trash`, or out to the system's trash.

mod safe_path;
mod view;
mod disk;
mod nearest;
mod metadata;
mod system_trash;
mod write;
#[cfg(test)]
mod tests;

pub(crate) use disk::PathState;
pub use disk::Sandbox;
pub(crate) use metadata::SavedMetadata;
pub use nearest::missing;
pub use safe_path::SafePath;
pub(crate) use safe_path::check_new_name;
pub(crate) use system_trash::HAS_SYSTEM_TRASH;
pub use view::{Entry, EntryKind, Stat, View};
pub(crate) use view::{files_below, no_folder};
