//! What links were kept by: the names and the linking notes that the disk had when they were looked at.
//!
//! A change is made of the files it reads, and is compared with them before it is done. But where a link leads is
//! also decided by files that nobody reads: one that comes with the same name, or a note that links to it by now.

use std::collections::{BTreeMap, BTreeSet};

use vault_index::IndexVersion;

use crate::change::Vault;
use crate::change::sources::OnDisk;
use crate::error::{Error, ErrorKind, Result};
use crate::sandbox::{EntryKind, SafePath, View};

/// Names, links and folders as they were.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// By link key: the files that links under it can lead to.
    pub names: BTreeMap<String, BTreeSet<SafePath>>,
    /// Keys whose links were looked for.
    pub keys: BTreeSet<String>,
    /// The notes in which they may stand.
    pub linking: BTreeSet<SafePath>,
    /// The files in a folder that moves or goes.
    pub folders: BTreeMap<SafePath, BTreeSet<SafePath>>,
    /// The index at each of the looks, while it is the same.
    version: Option<IndexVersion>,
}

impl Seen {
    /// Adds keys and their files. What was seen first counts.
    pub fn add_names(&mut self, names: Vec<(String, BTreeSet<SafePath>)>) {
        for (key, files) in names {
            self.names.entry(key).or_insert(files);
        }
    }

    /// What is added was seen in this state of the index.
    pub fn looked(&mut self, version: Option<IndexVersion>) {
        let is_first = self.names.is_empty() && self.keys.is_empty();
        self.version = version.filter(|now| is_first || self.version == Some(*now));
    }

    /// Looks at all of it again. If no file of the vault changed, a sync tells that; else it costs what the first look of
    /// a rename costs. Nothing if no links were looked at.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] with a file that makes a difference.
    pub fn check(&self, vault: &Vault) -> Result<()> {
        for (folder, files) in &self.folders {
            let now = files_below(vault.sandbox(), folder)?;
            if let Some(other) = now.symmetric_difference(files).next() {
                return Err(Error::conflict(other, "came into the folder, or went, since that was looked at"));
            }
        }
        if self.names.is_empty() && self.keys.is_empty() {
            return Ok(());
        }
        if self.version.is_some() && self.version == vault.index_of_now()?.version().ok() {
            return Ok(());
        }
        let disk = OnDisk::now(vault)?;
        for (key, files) in &self.names {
            if let Some(other) = disk.named(key).symmetric_difference(files).next() {
                return Err(Error::conflict(other, "came or went since links by that name were looked at"));
            }
        }
        let linking = disk.linking_by(vault, &self.keys)?;
        match linking.difference(&self.linking).next() {
            Some(note) => Err(Error::conflict(note, "holds links by now that were not looked at")),
            None => Ok(()),
        }
    }
}

/// The files below a folder of a view; none where no folder is.
pub(super) fn files_below(view: &dyn View, folder: &SafePath) -> Result<BTreeSet<SafePath>> {
    match view.walk(Some(folder)) {
        Ok(entries) => {
            Ok(entries.into_iter().filter(|entry| entry.stat.kind == EntryKind::File).map(|entry| entry.path).collect())
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(BTreeSet::new()),
        Err(error) => Err(error),
    }
}
