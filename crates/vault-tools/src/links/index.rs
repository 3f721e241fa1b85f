//! Which names links can lead to, and which notes may link to a name. What they really link to is read in their texts.

use std::collections::{BTreeSet, HashMap};

use vault_index::links::{Names, keys_leading_to, ranked};
use vault_index::{FileId, VaultFile, VaultPath, VaultState};

use super::occurrences::link_keys;
use crate::change::Notice;
use crate::content::Content;
use crate::error::{Error, ErrorKind, Result};
use crate::sandbox::{EntryKind, SafePath, Sandbox, View};
use crate::store::{IndexUse, NoteIndex};

/// Notes above this size are not looked through for links. In bytes.
const LARGEST: u64 = 100_000_000;

/// How many notes that could not be read are named.
const NAMED: usize = 5;

/// Files that are created, deleted or moved, all at once.
#[derive(Debug, Clone, Default)]
pub(crate) struct Delta {
    pub moves: Vec<(SafePath, SafePath)>,
    pub created: Vec<SafePath>,
    /// Bytes of the contents of `created`.
    pub created_bytes: u64,
    pub deleted: Vec<SafePath>,
    pub carried: Option<CarriedText>,
}

/// A text that goes from one note to another, with the links that it holds and those that lead to it.
#[derive(Debug, Clone)]
pub(crate) struct CarriedText {
    pub from: SafePath,
    pub to: SafePath,
    pub text: String,
    /// The ids of the blocks in it; `None` where it is the whole note, to which all links lead along.
    pub blocks: Option<BTreeSet<String>>,
}

impl CarriedText {
    /// Whether a link to the note, with this subpath, leads to the text.
    pub fn takes(&self, subpath: Option<&str>) -> bool {
        let Some(ids) = &self.blocks else { return true };
        let id = subpath.and_then(|subpath| subpath.rsplit('#').next()?.trim().strip_prefix('^'));
        id.is_some_and(|id| ids.contains(&id.to_ascii_lowercase()))
    }
}

/// The files of the disk, and the links that only the texts of notes tell.
#[derive(Default)]
pub(crate) struct DiskLinks {
    files: Vec<SafePath>,
    /// Positions in `files`, by the keys of links that can lead there.
    names: HashMap<String, Vec<usize>>,
    /// Whether the index knows the links of the notes that are not in `read`.
    is_indexed: bool,
    /// Notes that were read here, by the keys of their links: those that the index leaves out, or all.
    read: HashMap<String, BTreeSet<SafePath>>,
    /// Notes that could not be read, and why.
    unread: Vec<Notice>,
    /// Files that the index leaves out; symbolic links are among them.
    left_out: Vec<SafePath>,
    /// The state of vault and index when they were asked; `None` where it is not certain, or notes were read of which the
    /// index tells nothing.
    pub state: Option<VaultState>,
}

impl DiskLinks {
    /// As it is now.
    pub fn now(sandbox: &Sandbox, index: &NoteIndex) -> Result<Self> {
        // Without a model there may be no index; what links there are can be read from the notes all the same.
        let (mut disk, files) = match indexed(index) {
            Some((files, state)) => {
                let files = files.into_iter().filter_map(|file| Some((SafePath::found(file.path)?, file.is_indexed)));
                (Self { is_indexed: true, state, ..Self::default() }, files.collect::<Vec<_>>())
            }
            None => {
                let entries = sandbox.walk(None)?.into_iter().filter(|entry| entry.stat.kind == EntryKind::File);
                // A link to a note is no note of its own.
                (Self::default(), entries.map(|entry| (entry.path, entry.stat.symlink)).collect())
            }
        };
        for (path, is_indexed) in files {
            if !is_indexed {
                disk.left_out.push(path.clone());
            }
            if !is_indexed && path.is_note() {
                disk.scan(sandbox, &path);
                // What was read here, the index knows nothing of.
                disk.state = None;
            }
            for key in keys_leading_to(path.vault_path()) {
                disk.names.entry(key).or_default().push(disk.files.len());
            }
            disk.files.push(path);
        }
        Ok(disk)
    }

    /// A note whose links only its text tells.
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

    /// Files that may be symbolic links to one of others: those of which the index has no text, with the same extension.
    pub fn possible_aliases<'d>(&'d self, files: &'d BTreeSet<&SafePath>) -> impl Iterator<Item = &'d SafePath> {
        let extensions: BTreeSet<Option<&str>> = files.iter().map(|path| path.extension()).collect();
        self.left_out.iter().filter(move |path| extensions.contains(&path.extension()) && !files.contains(path))
    }

    /// The files that links under a key can lead to.
    pub fn named(&self, key: &str) -> BTreeSet<SafePath> {
        self.names.get(key).into_iter().flatten().map(|at| self.files[*at].clone()).collect()
    }

    /// Notices about the notes that could not be read, the first time it is asked.
    pub fn unread(&mut self) -> Vec<Notice> {
        let mut notices = std::mem::take(&mut self.unread);
        if let Some(more) = notices.len().checked_sub(NAMED).filter(|more| *more > 0) {
            notices.truncate(NAMED);
            notices.push(format!("links in {more} more notes, which could not be read, were not looked at").into());
        }
        notices
    }

    /// The notes that may hold a link under one of the keys.
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

/// A note's content, unless it is too large to be looked through.
pub(crate) fn readable(view: &dyn View, path: &SafePath) -> Result<Content> {
    if view.stat(path)?.is_some_and(|stat| stat.size > LARGEST) {
        return Err(Error::new(ErrorKind::Unsupported, format!("it is larger than {} MB", LARGEST / 1_000_000)));
    }
    view.read(path)
}

/// The notice about a note that could not be read.
pub(crate) fn not_looked_through(path: &SafePath, why: &str) -> Notice {
    let text = format!("{path}: links in it were not looked at and may lead nowhere now: {why}");
    Notice { about: Some(path.clone()), text }
}

/// A text in which what is not UTF-8 is replaced, to see which links it may hold.
pub(crate) fn lossy(content: &Content) -> String {
    String::from_utf8_lossy(content.bytes()).into_owned()
}

/// Which files there are and which notes may link to them, in the vault as it would be.
pub(crate) struct LinkIndex {
    pub names: Names,
    next: u32,
    pub disk: DiskLinks,
    /// Notes with new content, by the keys of the links that they have or had.
    changed: HashMap<String, BTreeSet<SafePath>>,
}

impl LinkIndex {
    /// Of the files of the disk that are still in their places, and of others.
    pub fn new(disk: DiskLinks, is_in_place: impl Fn(&SafePath) -> bool, others: &[SafePath]) -> Self {
        let files = disk.files.iter().filter(|path| is_in_place(path)).chain(others);
        let names: Names = (0..).map(FileId).zip(files.map(|path| path.vault_path().clone())).collect();
        Self { next: names.len() as u32, names, disk, changed: HashMap::new() }
    }

    /// Learns what links the new content of a note has.
    pub fn add_content(&mut self, path: &SafePath, content: &Content) {
        for key in link_keys(path, &lossy(content)) {
            self.changed.entry(key).or_default().insert(path.clone());
        }
    }

    fn add(&mut self, path: &VaultPath) {
        self.names.insert(FileId(self.next), path);
        self.next += 1;
    }

    /// Brings the names up to date.
    pub fn apply(&mut self, delta: &Delta) {
        let ids: Vec<Option<FileId>> = delta.moves.iter().map(|(from, _)| self.names.id(from.vault_path())).collect();
        let deleted: Vec<FileId> = delta.deleted.iter().filter_map(|path| self.names.id(path.vault_path())).collect();
        // All leave before the first arrives: files may swap paths, or take that of one that is deleted.
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

    /// Whether links that have led to another file could lead to a new one.
    pub fn is_name_taken(&self, path: &SafePath) -> bool {
        keys_leading_to(path.vault_path()).any(|key| !ranked(&self.names, &key, path.vault_path()).is_empty())
    }

    /// The notes with new content that hold a link under one of the keys, or held one.
    pub fn linking_in_changed(&self, keys: &BTreeSet<String>) -> impl Iterator<Item = &SafePath> {
        keys.iter().filter_map(|key| self.changed.get(key)).flatten()
    }
}

/// The files that the index has, and the state of vault and index that they are of; `None` where it is not used.
fn indexed(index: &NoteIndex) -> Option<(Vec<VaultFile>, Option<VaultState>)> {
    let index = if index.uses == IndexUse::Index { index.current().ok()? } else { return None };
    // In this order: should something be committed in between, the next look finds another state.
    let state = index.state().ok()?;
    Some((index.files().ok()?, state))
}
