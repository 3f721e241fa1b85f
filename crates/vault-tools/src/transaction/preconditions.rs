//! Compares what a change assumed beside the files it read with the disk as it is now.

use crate::change::{Observed, Preconditions};
use crate::error::{Error, Result};
use crate::links::DiskLinks;
use crate::sandbox::files_below;
use crate::store::VaultStore;

impl Preconditions {
    /// Looks at all of it again. Where no file of the vault differs, that is a walk; else it costs
    /// what the first look of a rename costs. Nothing if no links were looked at.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) with a file that makes a difference.
    pub(super) fn check(&self, store: &VaultStore) -> Result<()> {
        for (folder, files) in &self.folders {
            let now = files_below(&store.sandbox, folder)?;
            if let Some(other) = now.symmetric_difference(files).next() {
                return Err(Error::conflict(other, "came into the folder, or went, since that was looked at"));
            }
        }
        if self.names.is_empty() && self.keys.is_empty() {
            return Ok(());
        }
        if let Observed::At(state) = &self.observed
            && store.index.opened()?.is_still(state).unwrap_or(false)
        {
            return Ok(());
        }
        let disk = DiskLinks::now(&store.sandbox, &store.index)?;
        for (key, files) in &self.names {
            if let Some(other) = disk.named(key).symmetric_difference(files).next() {
                return Err(Error::conflict(other, "came or went since links by that name were looked at"));
            }
        }
        let linking = disk.linking_by(&store.index, &self.keys)?;
        match linking.difference(&self.linking).next() {
            Some(note) => Err(Error::conflict(note, "holds links by now that were not looked at")),
            None => Ok(()),
        }
    }
}
