//! All that is in a folder, to be copied and compared: contents, and the set of files and folders.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

/// Files with their bytes, and folders, by their path below the root with `/`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree(pub BTreeMap<String, Option<Vec<u8>>>);

impl Tree {
    /// Of a folder. Symbolic links are followed, if they lead to files.
    ///
    /// # Errors
    /// When something cannot be read.
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

    /// The files that are not hidden, with their bytes: what links can lead to.
    pub fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let files = self.0.iter().filter_map(|(path, bytes)| Some((path.as_str(), bytes.as_deref()?)));
        files.filter(|(path, _)| !is_hidden(path))
    }

    /// The folders that are not hidden.
    pub fn folders(&self) -> impl Iterator<Item = &str> {
        self.0
            .iter()
            .filter(|(_, bytes)| bytes.is_none())
            .map(|(path, _)| path.as_str())
            .filter(|path| !is_hidden(path))
    }

    /// Where two trees differ: paths that only one has, and files whose bytes are not the same.
    pub fn differences<'t>(&'t self, other: &'t Self) -> Vec<&'t str> {
        let paths: BTreeSet<&String> = self.0.keys().chain(other.0.keys()).collect();
        paths.into_iter().filter(|path| self.0.get(*path) != other.0.get(*path)).map(String::as_str).collect()
    }
}

fn is_hidden(path: &str) -> bool {
    path.split('/').any(|name| name.starts_with('.'))
}

/// Copies a folder with all in it to a place where nothing is. The copies can be written.
///
/// # Errors
/// When something cannot be read or written.
pub fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for (path, bytes) in Tree::of(from)?.0 {
        match bytes {
            // What `fs::copy` makes of a file that may not be written may not be written either.
            Some(bytes) => fs::write(to.join(path), bytes)?,
            None => fs::create_dir_all(to.join(path))?,
        }
    }
    Ok(())
}
