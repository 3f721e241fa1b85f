//! Models that are not bundled: the ones known by name, where they are installed, and how they get there.
//!
//! ```text
//! hub ──download, verify──> folder of original files ──compile──> NAME.model in the cache folder
//! a folder of the user's, an archive ─────────────────────^
//! ```
//!
//! Everything is written under another name and renamed when it is complete, so a model is installed whole or not at
//! all.

mod known;
#[cfg(feature = "minilm")]
mod installed;
#[cfg(all(feature = "minilm", feature = "http"))]
mod archive;
#[cfg(all(feature = "minilm", feature = "http"))]
mod hub;
#[cfg(all(feature = "minilm", feature = "http"))]
mod download;

#[cfg(all(feature = "minilm", feature = "http"))]
pub use archive::unpack;
#[cfg(all(feature = "minilm", feature = "http"))]
pub use download::download;
#[cfg(all(feature = "minilm", feature = "http"))]
pub use hub::{Hub, Listing};
#[cfg(feature = "minilm")]
pub use installed::{
    AddingLock, InstalledModel, ModelSource, SourceFile, delete_part, delete_unpacked, install, installed, remove,
    source_of_folder,
};
#[cfg(feature = "minilm")]
pub(crate) use installed::{files_of, model_file, open};
pub use known::{KnownModel, ModelLanguages};

/// The most bytes of a model's files at a hub, and of all that an archive contains when it is unpacked.
#[cfg(all(feature = "minilm", feature = "http"))]
const MOST_BYTES: u64 = 4 << 30;
