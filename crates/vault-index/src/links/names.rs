//! The name table: every file of a vault that a link can lead to, found by number, path or file name.

use std::borrow::Borrow;
use std::collections::HashMap;

use crate::path::{FileId, VaultPath};

/// All files of a vault that are not hidden: notes, attachments, and what is excluded from the index.
///
/// Looked up in full Unicode lower case. Invariants: a file's number and its path each occur once; the
/// three maps say the same. A few hundred bytes a file.
#[derive(Debug, Clone, Default)]
pub struct Names {
    files: HashMap<FileId, File>,
    /// Lower-cased path -> the files there (several where the disk tells cases apart).
    by_path: HashMap<Box<str>, Vec<FileId>>,
    /// Lower-cased file name -> all files of that name, in no particular order.
    by_name: HashMap<Box<str>, Vec<FileId>>,
}

#[derive(Debug, Clone)]
struct File {
    path: VaultPath,
    lower: Box<str>,
    /// Of `path`, in UTF-16 units.
    length: u32,
}

/// What makes one candidate come before another: the shorter path, then the alphabet.
///
/// The alphabet is that of the lower-cased paths; their own case decides last, so that no two
/// files are equal.
pub(super) type Preference<'n> = (u32, &'n str, &'n str);

impl Names {
    /// An empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// Enters a file. Constant time.
    ///
    /// A number that is already known moves to the new path; a file that had the path leaves the table.
    pub fn insert(&mut self, id: FileId, path: &VaultPath) {
        self.remove(id);
        if let Some(displaced) = self.id(path) {
            self.remove(displaced);
        }
        let lower: Box<str> = path.as_str().to_lowercase().into();
        let length = path.as_str().chars().map(char::len_utf16).sum::<usize>() as u32;
        add(&mut self.by_name, name_of(&lower), id);
        add(&mut self.by_path, &lower, id);
        self.files.insert(id, File { path: path.clone(), lower, length });
    }

    /// Takes a file out and returns its path. Linear in the files of the same name.
    pub fn remove(&mut self, id: FileId) -> Option<VaultPath> {
        let file = self.files.remove(&id)?;
        take(&mut self.by_name, name_of(&file.lower), id);
        take(&mut self.by_path, &file.lower, id);
        Some(file.path)
    }

    /// The path of a file.
    pub fn path(&self, id: FileId) -> Option<&VaultPath> {
        self.files.get(&id).map(|file| &file.path)
    }

    /// The file at exactly this path; here case matters.
    pub fn id(&self, path: &VaultPath) -> Option<FileId> {
        let lower = path.as_str().to_lowercase();
        self.at(&lower).iter().copied().find(|id| self.path(*id) == Some(path))
    }

    /// How many files there are.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// All files, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (FileId, &VaultPath)> {
        self.files.iter().map(|(id, file)| (*id, &file.path))
    }

    /// The files whose lower-cased file name this is.
    pub(super) fn named(&self, lower_name: &str) -> &[FileId] {
        self.by_name.get(lower_name).map_or(&[], Vec::as_slice)
    }

    /// Every lower-cased file name with its files.
    pub(super) fn by_name(&self) -> impl Iterator<Item = (&str, &[FileId])> {
        self.by_name.iter().map(|(name, files)| (&**name, files.as_slice()))
    }

    /// The files whose lower-cased path this is.
    pub(super) fn at(&self, lower_path: &str) -> &[FileId] {
        self.by_path.get(lower_path).map_or(&[], Vec::as_slice)
    }

    /// The lower-cased path of a file that is in the table.
    pub(super) fn lower(&self, id: FileId) -> &str {
        &self.files[&id].lower
    }

    /// What orders a file that is in the table among others of its name.
    pub(super) fn preference(&self, id: FileId) -> Preference<'_> {
        let file = &self.files[&id];
        (file.length, &file.lower, file.path.as_str())
    }
}

impl<P: Borrow<VaultPath>> FromIterator<(FileId, P)> for Names {
    fn from_iter<I: IntoIterator<Item = (FileId, P)>>(files: I) -> Self {
        let mut names = Self::new();
        for (id, path) in files {
            names.insert(id, path.borrow());
        }
        names
    }
}

/// The file name of a lower-cased path. Lower-casing never looks across a `/`, so this is also the
/// lower-cased file name.
fn name_of(lower_path: &str) -> &str {
    super::keys::last_segment(lower_path)
}

fn add(map: &mut HashMap<Box<str>, Vec<FileId>>, key: &str, id: FileId) {
    match map.get_mut(key) {
        Some(ids) => ids.push(id),
        None => {
            map.insert(key.into(), vec![id]);
        }
    }
}

fn take(map: &mut HashMap<Box<str>, Vec<FileId>>, key: &str, id: FileId) {
    let Some(ids) = map.get_mut(key) else { return };
    if let Some(at) = ids.iter().position(|other| *other == id) {
        ids.swap_remove(at);
    }
    if ids.is_empty() {
        map.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> VaultPath {
        VaultPath::new(text).unwrap()
    }

    #[test]
    fn renaming_is_removing_and_inserting() {
        let mut names: Names = [(FileId(7), path("a/Note.md")), (FileId(900), path("Pic.png"))].into_iter().collect();
        assert_eq!(names.id(&path("a/Note.md")), Some(FileId(7)));
        assert_eq!(names.id(&path("a/note.md")), None);
        assert_eq!(names.remove(FileId(7)), Some(path("a/Note.md")));
        names.insert(FileId(7), &path("b/Other.md"));
        assert_eq!((names.len(), names.path(FileId(7))), (2, Some(&path("b/Other.md"))));
        assert_eq!((names.named("note.md"), names.named("other.md")), (&[][..], &[FileId(7)][..]));
        assert_eq!(names.remove(FileId(8)), None);
    }

    #[test]
    fn a_number_and_a_path_occur_once() {
        let mut names = Names::new();
        names.insert(FileId(1), &path("a.md"));
        names.insert(FileId(2), &path("A.md"));
        assert_eq!(names.at("a.md"), [FileId(1), FileId(2)]);
        names.insert(FileId(2), &path("a.md"));
        assert_eq!((names.len(), names.at("a.md"), names.path(FileId(1))), (1, &[FileId(2)][..], None));
    }
}
