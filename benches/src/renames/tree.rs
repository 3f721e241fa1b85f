//! The complete content of a folder, to copy and compare: files with their bytes, and folders.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

/// Files with their bytes, and folders, by their path below the root, separated by `/`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree(pub BTreeMap<String, Option<Vec<u8>>>);

impl Tree {
    /// Reads a folder. Follows symbolic links to files.
    ///
    /// # Errors
    /// If a file or folder cannot be read.
    pub fn of(root: &Path) -> io::Result<Self> {
        let mut tree = Self::default();
        let mut folders = vec![String::new()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(root.join(&folder))? {
                let entry = entry?;
                let name = entry.file_name().into_string().map_err(|name| io::Error::other(format!("{name:?}")))?;
                let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
                if entry.file_type()?.is_dir() {
                    tree.0.insert(path.clone(), None);
                    folders.push(path);
                } else {
                    tree.0.insert(path, Some(fs::read(entry.path())?));
                }
            }
        }
        Ok(tree)
    }

    /// Returns the files that are not hidden, with their bytes: the possible targets of links.
    pub fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let files = self.0.iter().filter_map(|(path, bytes)| Some((path.as_str(), bytes.as_deref()?)));
        files.filter(|(path, _)| !is_hidden(path))
    }

    /// Returns the folders that are not hidden.
    pub fn folders(&self) -> impl Iterator<Item = &str> {
        self.0
            .iter()
            .filter(|(_, bytes)| bytes.is_none())
            .map(|(path, _)| path.as_str())
            .filter(|path| !is_hidden(path))
    }

    /// Returns the differences of two trees: paths that only one has, and files with different bytes.
    pub fn differences<'t>(&'t self, other: &'t Self) -> Vec<&'t str> {
        let paths: BTreeSet<&String> = self.0.keys().chain(other.0.keys()).collect();
        paths.into_iter().filter(|path| self.0.get(*path) != other.0.get(*path)).map(String::as_str).collect()
    }
}

fn is_hidden(path: &str) -> bool {
    path.split('/').any(|name| name.starts_with('.'))
}

/// Copies a folder with its content to a path that does not exist. The copies are writable.
///
/// # Errors
/// If a file or folder cannot be read or written.
pub fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for (path, bytes) in Tree::of(from)?.0 {
        match bytes {
            // `fs::copy` also copies the permissions, so the copy of a read-only file would be read-only.
            Some(bytes) => fs::write(to.join(path), bytes)?,
            None => fs::create_dir_all(to.join(path))?,
        }
    }
    Ok(())
}
