//! The index of a vault in a database instead of a file, as [`Index`](crate::Index) uses it.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::embed::Embedder;
use crate::error::Result;
use crate::store::{ReadContents, WriteStore};

/// A database with the indexes of vaults, for [`Options::database`](crate::Options::database).
pub trait Database: fmt::Debug + Send + Sync {
    /// The index of the vault in a folder. Opens no connection.
    fn index_of(&self, vault: &Path) -> Arc<dyn DatabaseIndex>;
}

/// The index of one vault in a database. Every method opens a connection of its own.
pub trait DatabaseIndex: Send + Sync {
    /// Where it is, without a password, for messages.
    fn address(&self) -> String;

    /// Creates what is missing for a sync: the tables, and an empty index of the vault. Upgrades tables of an older format.
    fn create(&self) -> Result<()>;

    /// Opens it to read. [`ErrorKind::NotFound`](crate::ErrorKind::NotFound): there is no index of this vault, or this
    /// user may not read it. [`ErrorKind::OtherFormat`](crate::ErrorKind::OtherFormat): its tables have another format.
    fn reader(&self) -> Result<Box<dyn DatabaseReader>>;

    /// Opens it to write, with the vectors of this model. Waits for another writer for this long.
    /// [`ErrorKind::Locked`](crate::ErrorKind::Locked) names that one.
    fn writer(&self, embedder: &dyn Embedder, wait: Duration) -> Result<Box<dyn WriteStore>>;

    /// Empties it in one transaction, with these settings, and opens it to write with another model.
    fn emptied(
        &self,
        embedder: &dyn Embedder,
        settings: &[(&str, &str)],
        wait: Duration,
    ) -> Result<Box<dyn WriteStore>>;

    /// Deletes it.
    fn forget(&self) -> Result<()>;
}

/// An open [`DatabaseIndex`], which reads one state until it is renewed.
pub trait DatabaseReader: ReadContents {
    /// Goes to the newest state.
    fn renew(&self) -> Result<()>;
}
