//! What a tool reads through: the vault as it is, or as it will be.

use std::collections::BTreeSet;
use std::time::SystemTime;

use crate::content::Content;
use crate::error::{Error, ErrorKind, Result};
use crate::sandbox::SafePath;

/// Files and folders that can be read: those on the disk, or those that a change would leave.
pub trait View {
    /// All of a file. A symbolic link to a file of the vault stands for that file.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`]; [`ErrorKind::InvalidArguments`] for a folder.
    fn read(&self, path: &SafePath) -> Result<Content>;

    /// What is at a path; `None` when nothing is.
    ///
    /// # Errors
    /// When it cannot be looked at.
    fn stat(&self, path: &SafePath) -> Result<Option<Stat>>;

    /// What lies in a folder (`None`: the vault's root), by name; nothing hidden.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when there is no such folder.
    fn list(&self, folder: Option<&SafePath>) -> Result<Vec<Entry>>;

    /// The text of a file.
    ///
    /// # Errors
    /// Those of [`View::read`], and [`ErrorKind::Encoding`].
    fn text(&self, path: &SafePath) -> Result<String> {
        self.read(path)?.text().map(str::to_owned).ok_or_else(|| {
            Error::new(ErrorKind::Encoding, "is not text in UTF-8")
                .at(path)
                .with_remedy("tools read and write text only; convert the file to UTF-8 first")
        })
    }

    /// Whether anything is at a path.
    ///
    /// # Errors
    /// When it cannot be looked at.
    fn exists(&self, path: &SafePath) -> Result<bool> {
        Ok(self.stat(path)?.is_some())
    }

    /// Everything below a folder, by path.
    ///
    /// # Errors
    /// Those of [`View::list`].
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

/// What is at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// A file or a folder.
    pub kind: EntryKind,
    /// Bytes; 0 for a folder.
    pub size: u64,
    /// When it was last changed; `None` for what is not yet written.
    pub modified: Option<SystemTime>,
    /// When it was made, where the system knows; an edit makes a file anew.
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
    /// Where it is.
    pub path: SafePath,
    /// What it is.
    pub stat: Stat,
}

/// No folder is at a path of which the content was asked for.
pub(crate) fn no_folder(path: Option<&SafePath>) -> Error {
    let name = path.map_or("", SafePath::as_str);
    Error::new(ErrorKind::NotFound, format!("Folder not found: {name}"))
}

/// The files below a folder of a view; none where no folder is.
pub(crate) fn files_below(view: &dyn View, folder: &SafePath) -> Result<BTreeSet<SafePath>> {
    match view.walk(Some(folder)) {
        Ok(entries) => {
            Ok(entries.into_iter().filter(|entry| entry.stat.kind == EntryKind::File).map(|entry| entry.path).collect())
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(BTreeSet::new()),
        Err(error) => Err(error),
    }
}
