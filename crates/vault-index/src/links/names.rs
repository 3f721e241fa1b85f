//! The names of a vault's files: look-up by number, path or file name, and the keys of links that may lead to a file.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::iter;

use crate::note::tidy;
use crate::path::{FileId, VaultPath};

/// The text after the last `/`.
pub(super) fn last_segment(path: &str) -> &str {
    path.rfind('/').map_or(path, |at| &path[at + 1..])
}

/// Converts a text to a lower case in which a letter does not depend on its neighbours: a final `ς` becomes `σ`.
///
/// Standard lower-casing turns `ΟΔΟΣ` into `οδος` but `ΟΔΟΣ.md` into `οδοσ.md`, so keys that are cut or compared in
/// parts must not use it.
pub(super) fn fold_case(text: &str) -> String {
    let lower = text.to_lowercase();
    if lower.contains('ς') { lower.replace('ς', "σ") } else { lower }
}

/// The key under which a link is stored: the last segment of its path, in lower case.
///
/// When a file is added or removed, only links whose key is among the file's [`keys_leading_to`], and links whose
/// source has moved, can resolve differently.
///
/// ```
/// use vault_index::links::link_key;
/// assert_eq!(link_key("Projects/Plan.md"), "plan.md");
/// ```
pub fn link_key(link_path: &str) -> String {
    fold_case(last_segment(&tidy(link_path)))
}

/// Returns every [`link_key`] that could lead to a file: its name and, for a Markdown file, the name without its
/// extension.
pub fn keys_leading_to(path: &VaultPath) -> impl Iterator<Item = String> + use<> {
    let name = fold_case(path.file_name());
    let stem = name.strip_suffix(".md").or_else(|| name.strip_suffix(".markdown")).map(str::to_owned);
    iter::once(name).chain(stem)
}

/// The name by which links to a missing file are grouped: the path in lower case, without `.md` at its end. For
/// example, `[[x]]` and `[[X.md]]` mean the same missing note.
pub fn unresolved_key(link_path: &str) -> String {
    let path = tidy(link_path);
    let cut = path.len().saturating_sub(3);
    let has_md = cut > 0 && path.get(cut..).is_some_and(|end| end.eq_ignore_ascii_case(".md"));
    // Lower-cased with its extension, as in the resolver, because of the final sigma.
    let mut key = format!("{}.md", if has_md { &path[..cut] } else { &path }).to_lowercase();
    key.truncate(key.len() - 3);
    key
}

/// All files of a vault that are not hidden: notes, attachments, and files that are excluded from the index.
///
/// Looked up in full Unicode lower case. Invariants: a file's number and its path each occur once, and the three maps
/// agree. A few hundred bytes per file.
#[derive(Debug, Clone, Default)]
pub struct Names {
    files: HashMap<FileId, File>,
    /// Lower-cased path -> its files (several if the disk is case-sensitive).
    by_path: HashMap<Box<str>, Vec<FileId>>,
    /// Lower-cased file name -> all files of that name, in no particular order.
    by_name: HashMap<Box<str>, Vec<FileId>>,
}

#[derive(Debug, Clone)]
struct File {
    path: VaultPath,
    lower: Box<str>,
    /// The length of `path` in UTF-16 units.
    length: u32,
}

/// The order of candidates: the shorter path first, then alphabetical.
///
/// The alphabetical order is that of the lower-cased paths; the original case decides last, so that no two files are
/// equal.
pub(super) type Preference<'n> = (u32, &'n str, &'n str);

impl Names {
    /// Creates an empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file in constant time.
    ///
    /// A known number moves to the new path; a file that had this path is removed from the table.
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

    /// Removes a file and returns its path. Linear in the number of files of the same name.
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

    /// The file at exactly this path, in this case.
    pub fn id(&self, path: &VaultPath) -> Option<FileId> {
        let lower = path.as_str().to_lowercase();
        self.at(&lower).iter().copied().find(|id| self.path(*id) == Some(path))
    }

    /// The number of files.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// All files, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (FileId, &VaultPath)> {
        self.files.iter().map(|(id, file)| (*id, &file.path))
    }

    /// The files with this lower-cased file name.
    pub(super) fn named(&self, lower_name: &str) -> &[FileId] {
        self.by_name.get(lower_name).map_or(&[], Vec::as_slice)
    }

    /// Every lower-cased file name with its files.
    pub(super) fn by_name(&self) -> impl Iterator<Item = (&str, &[FileId])> {
        self.by_name.iter().map(|(name, files)| (&**name, files.as_slice()))
    }

    /// The files with this lower-cased path.
    pub(super) fn at(&self, lower_path: &str) -> &[FileId] {
        self.by_path.get(lower_path).map_or(&[], Vec::as_slice)
    }

    /// The lower-cased path of a file that is in the table.
    pub(super) fn lower(&self, id: FileId) -> &str {
        &self.files[&id].lower
    }

    /// The sort key of a file in the table, among others of its name.
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

/// The file name of a lower-cased path. Lower-casing never depends on text across a `/`, so this is also the
/// lower-cased file name.
fn name_of(lower_path: &str) -> &str {
    last_segment(lower_path)
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

    #[test]
    fn keys_are_last_segments() {
        for (link, key, unresolved) in [
            ("Note", "note", "note"),
            ("Note.MD", "note.md", "note"),
            ("a/B c/Note", "note", "a/b c/note"),
            ("\u{a0}v1.2\u{a0}plan ", "v1.2 plan", "v1.2 plan"),
            ("Pic.png", "pic.png", "pic.png"),
            ("Cafe\u{301}", "caf\u{e9}", "caf\u{e9}"),
            ("ΟΔΟΣ", "οδοσ", "οδοσ"),
            ("ΟΔΟΣ.md", "οδοσ.md", "οδοσ"),
            ("folder/", "", "folder/"),
            (".md", ".md", ".md"),
            ("é", "é", "é"),
            ("", "", ""),
        ] {
            assert_eq!((link_key(link).as_str(), unresolved_key(link).as_str()), (key, unresolved), "{link:?}");
        }
    }

    #[test]
    fn a_file_knows_the_keys_that_lead_to_it() {
        for (path, expected) in [
            ("a/Note.md", vec!["note.md", "note"]),
            ("Note.MD", vec!["note.md", "note"]),
            ("Note.markdown", vec!["note.markdown", "note"]),
            ("a/Pic.PNG", vec!["pic.png"]),
            ("Board.canvas", vec!["board.canvas"]),
            ("note.md.md", vec!["note.md.md", "note.md"]),
        ] {
            let path = VaultPath::new(path).unwrap();
            assert_eq!(keys_leading_to(&path).collect::<Vec<_>>(), expected, "{path}");
        }
    }
}
