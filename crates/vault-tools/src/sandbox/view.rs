//! The trait through which tools read the vault, as it is or as it will be.

use std::collections::BTreeSet;
use std::time::SystemTime;

use crate::content::Content;
use crate::error::{Error, ErrorKind, Result};
use crate::sandbox::SafePath;

/// Files and folders that can be read: those on the disk, or those that will exist after a change.
pub trait View {
    /// Reads a whole file. A symbolic link to a file of the vault is followed.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`]; [`ErrorKind::InvalidArguments`] for a folder.
    fn read(&self, path: &SafePath) -> Result<Content>;

    /// Returns the kind and properties of a path; `None` if there is nothing.
    ///
    /// # Errors
    /// If the path cannot be read.
    fn stat(&self, path: &SafePath) -> Result<Option<Stat>>;

    /// Lists a folder (`None`: the vault's root), by name and without hidden entries.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if there is no such folder.
    fn list(&self, folder: Option<&SafePath>) -> Result<Vec<Entry>>;

    /// Reads the text of a file.
    ///
    /// # Errors
    /// The errors of [`View::read`], and [`ErrorKind::Encoding`].
    fn text(&self, path: &SafePath) -> Result<String> {
        self.read(path)?.text().map(str::to_owned).ok_or_else(|| {
            Error::new(ErrorKind::Encoding, "is not text in UTF-8")
                .at(path)
                .with_remedy("tools read and write text only; convert the file to UTF-8 first")
        })
    }

    /// Returns whether there is anything at a path.
    ///
    /// # Errors
    /// If the path cannot be read.
    fn exists(&self, path: &SafePath) -> Result<bool> {
        Ok(self.stat(path)?.is_some())
    }

    /// Lists everything below a folder, by path.
    ///
    /// # Errors
    /// The errors of [`View::list`].
    fn walk(&self, folder: Option<&SafePath>) -> Result<Vec<Entry>> {
        let mut found = Vec::new();
        let mut folders = vec![folder.cloned()];
        while let Some(folder) = folders.pop() {
            for entry in self.list(folder.as_ref())? {
                if entry.stat.kind == EntryKind::Folder && !entry.stat.symlink {
                    folders.push(Some(entry.path.clone()));
                }
                found.push(entry);
            }
        }
        found.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(found)
    }
}

/// The kind and properties of a file or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// A file or a folder.
    pub kind: EntryKind,
    /// The size in bytes; 0 for a folder.
    pub size: u64,
    /// The time of the last change; `None` for a file that is not yet written.
    pub modified: Option<SystemTime>,
    /// The time of creation, if the system knows it. An edit replaces the file, so it counts as a creation.
    pub created: Option<SystemTime>,
    /// Whether the path is a symbolic link to it.
    pub symlink: bool,
}

/// A file or a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A file.
    File,
    /// A folder.
    Folder,
}

/// A file or folder that was listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its path.
    pub path: SafePath,
    /// Its kind and properties.
    pub stat: Stat,
}

/// Returns the error for listing a path at which there is no folder.
pub(crate) fn no_folder(path: Option<&SafePath>) -> Error {
    let name = path.map_or("", SafePath::as_str);
    Error::new(ErrorKind::NotFound, format!("Folder not found: {name}"))
}

/// Returns the files below a folder of a view; empty if there is no folder.
pub(crate) fn files_below(view: &dyn View, folder: &SafePath) -> Result<BTreeSet<SafePath>> {
    match view.walk(Some(folder)) {
        Ok(entries) => {
            Ok(entries.into_iter().filter(|entry| entry.stat.kind == EntryKind::File).map(|entry| entry.path).collect())
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(BTreeSet::new()),
        Err(error) => Err(error),
    }
}
