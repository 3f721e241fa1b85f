//! The names that links can lead to, and which notes may hold a link to a name. What they really hold is read there.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use vault_index::links::{Names, keys_leading_to, ranked};
use vault_index::{FileId, IndexVersion, VaultPath};

use crate::change::overlay::LookUp;
use crate::change::place_of_links::link_keys;
use crate::change::{IndexUse, Notice, Overlay, Vault};
use crate::content::{Content, ContentHash};
use crate::error::{Error, ErrorKind, Result};
use crate::sandbox::{EntryKind, SafePath, View};

/// Notes above this size are not looked through for links. In bytes.
const LARGEST: u64 = 100_000_000;

/// How many notes that could not be read are told by name.
const TOLD: usize = 5;

/// Files that come, go or move, all at once.
#[derive(Debug, Clone, Default)]
pub(super) struct Delta {
    pub moves: Vec<(SafePath, SafePath)>,
    pub made: Vec<SafePath>,
    /// Bytes of the contents of `made`.
    pub made_bytes: u64,
    pub gone: Vec<SafePath>,
}

/// What the disk holds: the files, and the links that only the notes' texts tell.
pub(super) struct OnDisk {
    files: Vec<SafePath>,
    /// Positions in `files`, by the keys of links that can lead there.
    names: HashMap<String, Vec<usize>>,
    /// Whether the index knows the links of the notes that are not in `read`.
    indexed: bool,
    /// Notes that were read here, by the keys of their links: those that the index leaves out, or all.
    read: HashMap<String, BTreeSet<SafePath>>,
    /// Notes that could not be read, and why.
    unread: Vec<Notice>,
    /// The state of the index, if that tells whether another look would find the same.
    version: Option<IndexVersion>,
}

impl OnDisk {
    /// As it is now.
    pub fn now(vault: &Vault) -> Result<Self> {
        let Files { files, indexed, mut version } = files(vault)?;
        let (names, read, unread) = (HashMap::new(), HashMap::new(), Vec::new());
        let mut disk = Self { files: Vec::new(), names, indexed, read, unread, version: None };
        for (path, is_indexed) in files {
            if !is_indexed && path.is_note() {
                disk.scan(vault, &path);
                // What was read here, the index knows nothing of.
                version = None;
            }
            for key in keys_leading_to(path.vault_path()) {
                disk.names.entry(key).or_default().push(disk.files.len());
            }
            disk.files.push(path);
        }
        disk.version = version;
        Ok(disk)
    }

    /// A note whose links only its text tells.
    fn scan(&mut self, vault: &Vault, path: &SafePath) {
        let text = readable(vault.sandbox(), path).map(|content| lossy(&content));
        match text {
            Ok(text) => {
                for key in link_keys(path, &text) {
                    self.read.entry(key).or_default().insert(path.clone());
                }
            }
            Err(error) => self.unread.push(not_looked_through(path, error.message())),
        }
    }

    /// The files that links under a key can lead to.
    pub fn named(&self, key: &str) -> BTreeSet<SafePath> {
        self.names.get(key).into_iter().flatten().map(|at| self.files[*at].clone()).collect()
    }

    /// The notes that may hold a link under one of the keys.
    pub fn linking_by(&self, vault: &Vault, keys: &BTreeSet<String>) -> Result<BTreeSet<SafePath>> {
        let mut notes: BTreeSet<SafePath> =
            keys.iter().filter_map(|key| self.read.get(key)).flatten().cloned().collect();
        if self.indexed {
            let found = vault.opened_index()?.notes_linking_by(keys.iter().map(String::as_str))?;
            notes.extend(found.into_iter().filter_map(SafePath::found));
        }
        Ok(notes)
    }
}

/// A note's content, unless it is too large to be looked through.
pub(super) fn readable(view: &dyn View, path: &SafePath) -> Result<Content> {
    if view.stat(path)?.is_some_and(|stat| stat.size > LARGEST) {
        return Err(Error::new(ErrorKind::Unsupported, format!("it is larger than {} MB", LARGEST / 1_000_000)));
    }
    view.read(path)
}

/// What the reader of a preview is told of a note that could not be read.
pub(super) fn not_looked_through(path: &SafePath, why: &str) -> Notice {
    let text = format!("{path}: links in it were not looked at and may lead nowhere now: {why}");
    Notice { about: Some(path.clone()), text }
}

/// A text in which what is not UTF-8 is replaced, to see which links it may hold.
pub(super) fn lossy(content: &Content) -> String {
    String::from_utf8_lossy(content.bytes()).into_owned()
}

/// What is known of names and links.
pub(super) struct Sources {
    pub names: Names,
    next: u32,
    disk: OnDisk,
    /// Whether the notes that could not be read were told of.
    is_told: bool,
    /// Notes that the overlay changed, with the keys of their links.
    changed: HashMap<SafePath, Arc<HashSet<String>>>,
    /// The other way round.
    by_key: HashMap<String, BTreeSet<SafePath>>,
    /// Link keys by content, since notes move.
    keys: HashMap<ContentHash, Arc<HashSet<String>>>,
}

impl Sources {
    /// The state of the index, if that tells whether another look would find the same.
    pub fn version(&self) -> Option<IndexVersion> {
        self.disk.version
    }

    /// Of the overlay as it is now.
    pub fn new(overlay: &Overlay<'_>) -> Result<Self> {
        let disk = OnDisk::now(overlay.vault)?;
        let mut sources = Self {
            names: Names::new(),
            next: 0,
            disk,
            is_told: false,
            changed: HashMap::new(),
            by_key: HashMap::new(),
            keys: HashMap::new(),
        };
        for at in 0..sources.disk.files.len() {
            let path = sources.disk.files[at].clone();
            if matches!(overlay.look_up(&path), LookUp::Disk) {
                sources.add(path.vault_path());
            }
        }
        for entry in overlay.nodes.keys() {
            let is_file = matches!(overlay.look_up(entry), LookUp::File(_));
            if is_file && SafePath::found(entry.vault_path().clone()).is_some() {
                sources.add(entry.vault_path());
            }
        }
        Ok(sources)
    }

    /// Learns what links the notes at some paths have, where the overlay changed them.
    pub fn look_at(&mut self, overlay: &Overlay<'_>, paths: &[SafePath]) {
        for path in paths {
            for key in self.changed.remove(path).iter().flat_map(|keys| keys.iter()) {
                if let Some(notes) = self.by_key.get_mut(key) {
                    notes.remove(path);
                }
            }
            if path.is_note()
                && !path.is_in_trash()
                && let Some(content) = overlay.changed_file(path)
            {
                let keys = self.keys_of(path, content);
                for key in keys.iter() {
                    self.by_key.entry(key.clone()).or_default().insert(path.clone());
                }
                self.changed.insert(path.clone(), keys);
            }
        }
    }

    /// The files of the disk that links under each key can lead to.
    pub fn named<'k>(&self, keys: impl Iterator<Item = &'k String>) -> Vec<(String, BTreeSet<SafePath>)> {
        keys.map(|key| (key.clone(), self.disk.named(key))).collect()
    }

    /// What to tell of the notes that could not be read, once.
    pub fn unread(&mut self) -> Vec<Notice> {
        if std::mem::replace(&mut self.is_told, true) {
            return Vec::new();
        }
        let mut told: Vec<Notice> = self.disk.unread.iter().take(TOLD).cloned().collect();
        let more = self.disk.unread.len().saturating_sub(TOLD);
        if more > 0 {
            told.push(format!("links in {more} more notes, which could not be read, were not looked at").into());
        }
        told
    }

    fn add(&mut self, path: &VaultPath) {
        self.names.insert(FileId(self.next), path);
        self.next += 1;
    }

    /// Brings the names up to date.
    pub fn apply(&mut self, delta: &Delta) {
        let ids: Vec<Option<FileId>> = delta.moves.iter().map(|(from, _)| self.names.id(from.vault_path())).collect();
        let gone: Vec<FileId> = delta.gone.iter().filter_map(|path| self.names.id(path.vault_path())).collect();
        // All leave before the first arrives: files may change places, or take that of one that goes.
        for id in ids.iter().flatten().chain(&gone) {
            self.names.remove(*id);
        }
        for (id, (_, to)) in ids.into_iter().zip(&delta.moves) {
            match id {
                Some(id) => self.names.insert(id, to.vault_path()),
                None => self.add(to.vault_path()),
            }
        }
        for path in &delta.made {
            self.add(path.vault_path());
        }
    }

    /// Whether links that have led to another file could lead to a new one.
    pub fn is_name_taken(&self, path: &SafePath) -> bool {
        keys_leading_to(path.vault_path()).any(|key| !ranked(&self.names, &key, path.vault_path()).is_empty())
    }

    /// The notes, where they lie now, that may hold a link under one of the keys; and those of the disk.
    pub fn notes_linking_by(
        &mut self,
        overlay: &Overlay<'_>,
        keys: &BTreeSet<String>,
    ) -> Result<(BTreeSet<SafePath>, BTreeSet<SafePath>)> {
        let on_disk = self.disk.linking_by(overlay.vault, keys)?;
        let mut notes = BTreeSet::new();
        for base in &on_disk {
            let now = overlay.moved.get(base).unwrap_or(base);
            let is_same = match overlay.look_up(now) {
                LookUp::Disk => now == base,
                LookUp::File(file) => file.content.is_none() && file.base.as_ref() == Some(base),
                _ => false,
            };
            if is_same && !now.is_in_trash() {
                notes.insert(now.clone());
            }
        }
        notes.extend(keys.iter().filter_map(|key| self.by_key.get(key)).flatten().cloned());
        Ok((notes, on_disk))
    }

    fn keys_of(&mut self, path: &SafePath, content: &Content) -> Arc<HashSet<String>> {
        let keys = match self.keys.entry(content.hash()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(Arc::new(link_keys(path, &lossy(content)))),
        };
        keys.clone()
    }
}

/// Every file of the disk that a link can lead to.
struct Files {
    /// With whether the index knows its links.
    files: Vec<(SafePath, bool)>,
    /// Whether there is an index.
    indexed: bool,
    /// The state of the index.
    version: Option<IndexVersion>,
}

fn files(vault: &Vault) -> Result<Files> {
    if vault.uses_index() == IndexUse::Index {
        // Without a model there may be no index; what links there are can be read from the notes all the same.
        if let Ok(index) = vault.index_of_now()
            && let Ok(files) = index.files()
        {
            let files = files.into_iter().filter_map(|file| Some((SafePath::found(file.path)?, file.is_indexed)));
            return Ok(Files { files: files.collect(), indexed: true, version: index.version().ok() });
        }
    }
    let entries = vault.sandbox().walk(None)?.into_iter();
    let files = entries.filter(|entry| entry.stat.kind == EntryKind::File).map(|entry| {
        // A link to a note is no note of its own.
        (entry.path, entry.stat.symlink)
    });
    Ok(Files { files: files.collect(), indexed: false, version: None })
}
