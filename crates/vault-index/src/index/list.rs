//! All indexes in the user's cache folder: the vault of each, and whether that vault still exists.

use std::path::PathBuf;

use crate::dirs;
use crate::error::{Error, ErrorKind, Result};
use crate::index::{INDEX_FILE, Index};
use crate::report::{FolderState, ListedIndex};
use crate::store::{ReadNotes, Store, index_bytes};

impl Index {
    /// All indexes in the user's cache folder, ordered by vault; those that do not name their vault come last. Reads a
    /// few settings of each; read errors are reported in [`ListedIndex::problem`]. Indexes in other places, which
    /// [`Options::index_file`](crate::Options::index_file) names, are not known.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] when the system has no cache folder or it cannot be listed.
    pub fn list() -> Result<Vec<ListedIndex>> {
        let folder = dirs::indexes_folder()?;
        let entries = match std::fs::read_dir(&folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(|error| Error::io(&folder, error))?,
        };
        let files = entries.flatten().map(|entry| entry.path().join(INDEX_FILE)).filter(|file| file.is_file());
        let mut listed: Vec<ListedIndex> = files.map(listed).collect();
        listed.sort_by(|a, b| (a.vault.is_none(), &a.vault, &a.index).cmp(&(b.vault.is_none(), &b.vault, &b.index)));
        Ok(listed)
    }
}

fn listed(index: PathBuf) -> ListedIndex {
    let mut listed = ListedIndex { index_bytes: index_bytes(&index), index, ..ListedIndex::default() };
    if let Err(error) = read(&mut listed) {
        listed.problem = Some(error.what());
    }
    listed
}

fn read(listed: &mut ListedIndex) -> Result<()> {
    let store = Store::open_settings(&listed.index)?;
    let vault = store.meta("vault")?.map(PathBuf::from);
    // An index with another vault's name under this vault's key is damaged, and must not be offered for deletion under
    // that name.
    let is_its_own =
        |vault: &PathBuf| dirs::index_folder_of(vault).is_ok_and(|folder| listed.index.starts_with(folder));
    let Some(vault) = vault.filter(is_its_own) else {
        return Err(Error::new(ErrorKind::Damaged, "it does not name its vault"));
    };
    listed.state = match std::fs::metadata(&vault) {
        Ok(what) if what.is_dir() => FolderState::There,
        Ok(_) => FolderState::Gone,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => FolderState::Gone,
        // A parent folder may be unreadable, or on a disk that is not connected now.
        Err(_) => FolderState::Unknown,
    };
    listed.vault = Some(vault);
    listed.model = store.meta("model")?;
    listed.last_sync = store.meta("last_sync")?.and_then(|time| time.parse().ok());
    listed.notes = Some(store.note_count()?);
    Ok(())
}
