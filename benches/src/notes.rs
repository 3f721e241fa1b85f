//! The notes below a folder, in the order of their paths.

use std::io;
use std::path::{Path, PathBuf};

/// Returns all `.md` files below `folder`, sorted by path.
///
/// # Errors
/// If a folder cannot be read.
pub fn notes_in(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut notes = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "md") {
                notes.push(path);
            }
        }
    }
    notes.sort();
    Ok(notes)
}
