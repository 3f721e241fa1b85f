//! The names that links can lead to, and the notes that may link to a name. Targets are read from the notes' text.

use std::collections::{BTreeSet, HashMap};

use vault_index::links::{Names, keys_leading_to, ranked};
use vault_index::{FileId, VaultFile, VaultPath, VaultState};

use super::occurrences::link_keys;
use crate::change::Notice;
use crate::content::Content;
use crate::error::{Error, ErrorKind, Result};
use crate::sandbox::{EntryKind, SafePath, Sandbox, View};
use crate::store::{IndexUse, NoteIndex};

/// The maximum size in bytes of a note in which links are searched for.
const LARGEST: u64 = 100_000_000;

/// The maximum number of unreadable notes that are listed.
const NAMED: usize = 5;

/// Files that are created, deleted or moved in one step.
#[derive(Debug, Clone, Default)]
pub(crate) struct Delta {
    pub moves: Vec<(SafePath, SafePath)>,
    pub created: Vec<SafePath>,
    /// The total size of the contents in `created`.
    pub created_bytes: u64,
    pub deleted: Vec<SafePath>,
    pub carried: Option<CarriedText>,
}

/// A text that moves from one note to another, with the links in it and the links that lead to it.
#[derive(Debug, Clone)]
pub(crate) struct CarriedText {
    pub from: SafePath,
    pub to: SafePath,
    pub text: String,
    /// The ids of the blocks in it; `None` if it is the whole note, so that all links to the note follow it.
    pub blocks: Option<BTreeSet<String>>,
}

impl CarriedText {
    /// Returns whether a link to the note with this subpath leads to the moved text.
    pub fn takes(&self, subpath: Option<&str>) -> bool {
        let Some(ids) = &self.blocks else { return true };
        let id = subpath.and_then(|subpath| subpath.rsplit('#').next()?.trim().strip_prefix('^'));
        id.is_some_and(|id| ids.contains(&id.to_ascii_lowercase()))
    }
}

/// The files of the disk, and the links that are known only from the text of notes.
#[derive(Default)]
pub(crate) struct DiskLinks {
    files: Vec<SafePath>,
    /// Positions in `files`, by the keys of links that can lead there.
    names: HashMap<String, Vec<usize>>,
    /// Whether the index knows the links of the notes that are not in `read`.
    is_indexed: bool,
    /// Notes that were read here, by the keys of their links: those that the index omits, or all.
    read: HashMap<String, BTreeSet<SafePath>>,
    /// Notices about notes that could not be read.
    unread: Vec<Notice>,
    /// Files that the index omits, including symbolic links.
    left_out: Vec<SafePath>,
    /// The state of vault and index at which this was read; `None` if it is uncertain, or if notes were read that are
    /// not in the index.
    pub state: Option<VaultState>,
}

impl DiskLinks {
    /// Reads the current state.
    pub fn now(sandbox: &Sandbox, index: &NoteIndex) -> Result<Self> {
        // The index may be unavailable, for example without a model; the links can still be read from the notes.
        let (mut disk, files) = match indexed(index) {
            Some((files, state)) => {
                let files = files.into_iter().filter_map(|file| Some((SafePath::found(file.path)?, file.is_indexed)));
                (Self { is_indexed: true, state, ..Self::default() }, files.collect::<Vec<_>>())
            }
            None => {
                let entries = sandbox.walk(None)?.into_iter().filter(|entry| entry.stat.kind == EntryKind::File);
                // A symbolic link to a note is not a note itself.
                (Self::default(), entries.map(|entry| (entry.path, entry.stat.symlink)).collect())
            }
        };
        for (path, is_indexed) in files {
            if !is_indexed {
                disk.left_out.push(path.clone());
            }
            if !is_indexed && path.is_note() {
                disk.scan(sandbox, &path);
                // The state of the index does not cover a note that was read here.
                disk.state = None;
            }
            for key in keys_leading_to(path.vault_path()) {
                disk.names.entry(key).or_default().push(disk.files.len());
            }
            disk.files.push(path);
        }
        Ok(disk)
    }

    /// Reads the links of a note that are known only from its text.
    fn scan(&mut self, sandbox: &Sandbox, path: &SafePath) {
        let text = readable(sandbox, path).map(|content| lossy(&content));
        match text {
            Ok(text) => {
                for key in link_keys(path, &text) {
                    self.read.entry(key).or_default().insert(path.clone());
                }
            }
            Err(error) => self.unread.push(not_looked_through(path, error.message())),
        }
    }

    /// Returns the files that may be symbolic links to one of the given files: those that the index omits, with the
    /// same extension.
    pub fn possible_aliases<'d>(&'d self, files: &'d BTreeSet<&SafePath>) -> impl Iterator<Item = &'d SafePath> {
        let extensions: BTreeSet<Option<&str>> = files.iter().map(|path| path.extension()).collect();
        self.left_out.iter().filter(move |path| extensions.contains(&path.extension()) && !files.contains(path))
    }

    /// Returns the files that a link with this key can lead to.
    pub fn named(&self, key: &str) -> BTreeSet<SafePath> {
        self.names.get(key).into_iter().flatten().map(|at| self.files[*at].clone()).collect()
    }

    /// Returns notices about the notes that could not be read, the first time it is called.
    pub fn unread(&mut self) -> Vec<Notice> {
        let mut notices = std::mem::take(&mut self.unread);
        if let Some(more) = notices.len().checked_sub(NAMED).filter(|more| *more > 0) {
            notices.truncate(NAMED);
            notices.push(format!("links in {more} more notes could not be read and were not checked").into());
        }
        notices
    }

    /// Returns the notes that may contain a link with one of the keys.
    pub fn linking_by(&self, index: &NoteIndex, keys: &BTreeSet<String>) -> Result<BTreeSet<SafePath>> {
        let mut notes: BTreeSet<SafePath> =
            keys.iter().filter_map(|key| self.read.get(key)).flatten().cloned().collect();
        if self.is_indexed {
            let found = index.opened()?.notes_linking_by(keys.iter().map(String::as_str))?;
            notes.extend(found.into_iter().filter_map(SafePath::found));
        }
        Ok(notes)
    }
}

/// Reads a note's content, unless it is too large to search for links.
pub(crate) fn readable(view: &dyn View, path: &SafePath) -> Result<Content> {
    if view.stat(path)?.is_some_and(|stat| stat.size > LARGEST) {
        return Err(Error::new(ErrorKind::Unsupported, format!("it is larger than {} MB", LARGEST / 1_000_000)));
    }
    view.read(path)
}

/// Creates the notice about a note that could not be read.
pub(crate) fn not_looked_through(path: &SafePath, why: &str) -> Notice {
    let text = format!("{path}: links in it were not checked and may be broken now: {why}");
    Notice { about: Some(path.clone()), text }
}

/// Converts content to text in which invalid UTF-8 is replaced, to find out which links it may contain.
pub(crate) fn lossy(content: &Content) -> String {
    String::from_utf8_lossy(content.bytes()).into_owned()
}

/// The files, and the notes that may link to them, in the vault as it would be after the change.
pub(crate) struct LinkIndex {
    pub names: Names,
    next: u32,
    pub disk: DiskLinks,
    /// Notes with new content, by the keys of their old and new links.
    changed: HashMap<String, BTreeSet<SafePath>>,
}

impl LinkIndex {
    /// Creates an index of the files of the disk that are still in their places, and of others.
    pub fn new(disk: DiskLinks, is_in_place: impl Fn(&SafePath) -> bool, others: &[SafePath]) -> Self {
        let files = disk.files.iter().filter(|path| is_in_place(path)).chain(others);
        let names: Names = (0..).map(FileId).zip(files.map(|path| path.vault_path().clone())).collect();
        Self { next: names.len() as u32, names, disk, changed: HashMap::new() }
    }

    /// Records the links in the new content of a note.
    pub fn add_content(&mut self, path: &SafePath, content: &Content) {
        for key in link_keys(path, &lossy(content)) {
            self.changed.entry(key).or_default().insert(path.clone());
        }
    }

    fn add(&mut self, path: &VaultPath) {
        self.names.insert(FileId(self.next), path);
        self.next += 1;
    }

    /// Updates the names.
    pub fn apply(&mut self, delta: &Delta) {
        let ids: Vec<Option<FileId>> = delta.moves.iter().map(|(from, _)| self.names.id(from.vault_path())).collect();
        let deleted: Vec<FileId> = delta.deleted.iter().filter_map(|path| self.names.id(path.vault_path())).collect();
        // All names are removed before the first is added, because files may swap paths, or take that of a deleted one.
        for id in ids.iter().flatten().chain(&deleted) {
            self.names.remove(*id);
        }
        for (id, (_, to)) in ids.into_iter().zip(&delta.moves) {
            match id {
                Some(id) => self.names.insert(id, to.vault_path()),
                None => self.add(to.vault_path()),
            }
        }
        for path in &delta.created {
            self.add(path.vault_path());
        }
    }

    /// Returns whether links that led to another file could lead to a new one.
    pub fn is_name_taken(&self, path: &SafePath) -> bool {
        keys_leading_to(path.vault_path()).any(|key| !ranked(&self.names, &key, path.vault_path()).is_empty())
    }

    /// Returns the notes with new content that contain, or contained, a link with one of the keys.
    pub fn linking_in_changed(&self, keys: &BTreeSet<String>) -> impl Iterator<Item = &SafePath> {
        keys.iter().filter_map(|key| self.changed.get(key)).flatten()
    }
}

/// Returns the files in the index, and the state of vault and index; `None` if the index is not used.
fn indexed(index: &NoteIndex) -> Option<(Vec<VaultFile>, Option<VaultState>)> {
    let index = if index.uses == IndexUse::Index { index.current().ok()? } else { return None };
    // The state is read before the files: if something is committed in between, a later check finds another state.
    let state = index.state().ok()?;
    Some((index.files().ok()?, state))
}
