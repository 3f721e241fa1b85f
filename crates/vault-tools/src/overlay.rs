//! The vault with proposed changes: the content of the disk, and over it the changes. Nothing here writes to the disk.
//!
//! A tool works on an [`Overlay`]: it reads the vault as it would be after the change, and its changes are recorded as
//! actions. The preview is computed from those actions, and the same actions are applied.

mod relink;
mod edits;
mod carry;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use vault_index::FileId;
use vault_index::links::Names;

use crate::action::Action;
use crate::change::{Change, FolderContents, Notice, Preconditions, origin_of};
use crate::content::{Content, ContentHash};
use crate::error::{Error, ErrorKind, Result};
use crate::links::{LinkIndex, PathFilter};
use crate::sandbox::{Entry, EntryKind, SafePath, Stat, View, no_folder};
use crate::store::VaultStore;

pub(crate) use carry::JoinedText;
pub use edits::{BrokenFrontmatter, DeleteReport, RenameReport, WriteOutcome};

/// The maximum size in bytes of the contents that one change may hold in memory: those it writes and those that its
/// undo needs.
const MAX_CHANGE_BYTES: usize = if cfg!(test) { 32_000_000 } else { 256_000_000 };

/// The vault as it would be after the change.
///
/// An operation that fails changes nothing. Read with the methods of [`View`].
///
/// ```
/// use vault_tools::{IndexUse, SafePath, Vault, VaultOptions, View};
///
/// # let folder = tempfile::tempdir()?;
/// # std::fs::create_dir(folder.path().join("notes"))?;
/// # std::fs::write(folder.path().join("notes/Home.md"), "See [[Roses]].\n")?;
/// # std::fs::write(folder.path().join("notes/Roses.md"), "Prune them.\n")?;
/// # let options = VaultOptions::new().state_folder(folder.path().join("state")).use_index(IndexUse::Scan);
/// let vault = Vault::open(folder.path().join("notes"), options)?;
/// let mut overlay = vault.overlay();
/// overlay.write(&SafePath::new("Roses.md")?, "Prune them in spring.\n")?;
/// let renamed = overlay.rename(&SafePath::new("Roses.md")?, &SafePath::new("Pruning.md")?)?;
/// assert_eq!(renamed.rewritten[0].after, "Pruning");
/// assert_eq!(overlay.text(&SafePath::new("Home.md")?)?, "See [[Pruning]].\n");
/// assert_eq!(std::fs::read_to_string(folder.path().join("notes/Home.md"))?, "See [[Roses]].\n"); // not applied yet
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Overlay<'v> {
    pub(crate) store: &'v VaultStore,
    /// The paths that differ from the disk, which also hide the paths below them; see [`Overlay::look_up`].
    pub(super) nodes: BTreeMap<SafePath, Node>,
    /// Files of the disk that are moved, by their old path.
    pub(super) moved: HashMap<SafePath, SafePath>,
    pub(super) actions: Vec<Action>,
    /// Actions before this one are never changed.
    pub(super) sealed: usize,
    /// Notices for the reader of a preview, each with the number of actions before it.
    notices: Vec<(usize, Notice)>,
    /// The contents of moved folders, by the index of the action.
    carried: BTreeMap<usize, FolderContents>,
    /// The names of all files and the notes that link to them; built when first needed.
    links: Option<LinkIndex>,
    /// The paths of nodes that have changed since `links` was last updated.
    pub(super) touched: Vec<SafePath>,
    /// The assumptions about the disk so far, besides the files that were read.
    preconditions: Preconditions,
    reads: Mutex<BTreeMap<SafePath, ContentHash>>,
    /// Whether several calls work on it, each building on the ones before.
    is_shared: bool,
    /// Returns whether a path may be read; `None` if all may be. When links are preserved, other files are treated as
    /// missing.
    permits: Option<Arc<PathFilter>>,
    /// For each folder that was checked: its names by their lower case, to detect collisions.
    folded: HashMap<Option<SafePath>, HashMap<String, String>>,
    /// The size of the contents in `actions`.
    held_bytes: usize,
}

/// The state of a path in the overlay.
#[derive(Debug, Clone)]
pub(super) enum Node {
    /// Nothing is left at this path.
    Deleted,
    /// A new folder, which hides everything that the disk has at and below this path.
    Folder,
    /// A file.
    File(FileNode),
}

/// A file that differs from the disk.
#[derive(Debug, Clone, Default)]
pub(super) struct FileNode {
    /// Its current path on the disk.
    pub base: Option<SafePath>,
    /// Its content, if it differs from that on the disk.
    pub content: Option<Content>,
    /// The index of the action that set its content.
    pub set_by: Option<usize>,
    /// The target, if it is a symbolic link.
    pub link: Option<SafePath>,
}

impl<'v> Overlay<'v> {
    pub(crate) fn new(store: &'v VaultStore) -> Self {
        Self {
            store,
            nodes: BTreeMap::new(),
            moved: HashMap::new(),
            actions: Vec::new(),
            sealed: 0,
            notices: Vec::new(),
            carried: BTreeMap::new(),
            links: None,
            touched: Vec::new(),
            preconditions: Preconditions::default(),
            reads: Mutex::default(),
            is_shared: true,
            permits: None,
            folded: HashMap::new(),
            held_bytes: 0,
        }
    }

    /// Returns the number of actions. Later operations do not change these, so the actions between two marks are those
    /// that were added between them.
    pub fn mark(&mut self) -> usize {
        self.sealed = self.actions.len();
        self.sealed
    }

    /// Merges the last action into the one before it. It must be an edit and the only action after the mark `call`; the
    /// one before must not be before the mark `first` and must have set the content of the same file. This lets a loop
    /// that adds to a note hold and write the note once, rather than once for each item.
    pub(crate) fn join_edits(&mut self, first: usize, call: usize) {
        if call <= first || self.actions.len() != call + 1 {
            return;
        }
        let Some(Action::Edit { path, before, after }) = self.actions.last().cloned() else { return };
        match &mut self.actions[call - 1] {
            Action::Create { path: same, content } | Action::Edit { path: same, after: content, .. }
                if *same == path =>
            {
                self.held_bytes -= before.len() + content.len();
                *content = after;
            }
            _ => return,
        }
        self.actions.pop();
        if let Some(Node::File(file)) = self.nodes.get_mut(&path) {
            file.set_by = Some(call - 1);
        }
        self.notices.iter_mut().for_each(|(at, _)| *at = (*at).min(call));
    }

    /// Drops the actions after a mark.
    pub fn rollback(&mut self, mark: usize) {
        if mark >= self.actions.len() {
            return;
        }
        let actions: Vec<Action> = self.actions.drain(..).take(mark).collect();
        let reads = std::mem::take(&mut *self.lock_reads());
        let mut notices = std::mem::take(&mut self.notices);
        notices.retain(|(at, _)| *at <= mark);
        let preconditions = std::mem::take(&mut self.preconditions);
        let (is_shared, permits) = (self.is_shared, self.permits.clone());
        *self = Self { notices, preconditions, reads: Mutex::new(reads), is_shared, permits, ..Self::new(self.store) };
        for action in actions {
            self.push(action);
        }
        self.sealed = mark;
    }

    /// Returns whether it has any changes.
    pub fn is_changed(&self) -> bool {
        !self.actions.is_empty()
    }

    /// Returns the changes so far.
    pub fn change(&self) -> Change {
        Change {
            actions: self.actions.clone(),
            carried: self.carried.clone(),
            reads: self.lock_reads().clone(),
            preconditions: self.preconditions.clone(),
            notices: self.notices.iter().map(|(_, notice)| notice.clone()).collect(),
        }
    }

    /// Makes the change depend on the current content of a file, because information about the file came from
    /// elsewhere, for example from the index.
    pub fn bind(&self, path: &SafePath) {
        if self.is_shared {
            // A file that cannot be read was not read before either.
            let _ = self.read(path);
        }
    }

    /// Marks the overlay as one for a single call. No later call builds on what the call learns from the index, so no
    /// file is read to bind it.
    pub(crate) fn of_one_call(mut self) -> Self {
        self.is_shared = false;
        self
    }

    /// Restricts the overlay to readable paths, for calls that may not read every path: links in other files are not
    /// rewritten, and links to them are not preserved.
    pub(crate) fn permitting(mut self, permits: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        self.permits = Some(Arc::new(permits));
        self
    }

    /// Returns whether there is a file that is not on the disk, under this path or another.
    ///
    /// # Errors
    /// If the path cannot be read.
    pub(crate) fn is_new(&self, path: &SafePath) -> Result<bool> {
        Ok(matches!(self.look_up(&self.real(path)?), Some(Node::File(FileNode { base: None, .. }))))
    }

    /// Returns the number of notices, for [`Overlay::truncate_notices`].
    pub(crate) fn notice_count(&self) -> usize {
        self.notices.len()
    }

    /// Drops all but the first `count` notices, for example after a call that failed.
    pub(crate) fn truncate_notices(&mut self, count: usize) {
        self.notices.truncate(count);
    }

    /// Adds a notice for the reader of a preview.
    pub fn notice(&mut self, text: impl Into<String>) {
        self.add_notice(text.into().into());
    }

    pub(super) fn add_notice(&mut self, notice: Notice) {
        self.notices.push((self.actions.len(), notice));
    }

    /// Returns the overlay's own node for a path; `None` if the path is as on the disk.
    pub(super) fn look_up(&self, path: &SafePath) -> Option<&Node> {
        if self.nodes.is_empty() {
            return None;
        }
        // A deleted or new path hides everything below it on the disk.
        let is_hidden =
            || std::iter::successors(path.parent(), SafePath::parent).any(|folder| self.nodes.contains_key(&folder));
        self.nodes.get(path).or_else(|| is_hidden().then_some(&Node::Deleted))
    }

    /// Returns the file that a path refers to: itself, or the target of a symbolic link.
    pub(crate) fn real(&self, path: &SafePath) -> Result<SafePath> {
        match self.look_up(path) {
            None => self.store.sandbox.real(path),
            Some(Node::File(FileNode { link: Some(target), .. })) => Ok(target.clone()),
            _ => Ok(path.clone()),
        }
    }

    /// Returns the content of a file that is not a symbolic link.
    fn content(&self, path: &SafePath) -> Result<Content> {
        let base = match self.look_up(path) {
            Some(Node::File(FileNode { content: Some(content), .. })) => return Ok(content.clone()),
            Some(Node::File(FileNode { base: Some(base), .. })) => base.clone(),
            None => path.clone(),
            Some(Node::Folder) => {
                return Err(Error::new(ErrorKind::InvalidArguments, "is a folder")
                    .at(path)
                    .with_remedy("name a file, or list the folder"));
            }
            _ => return Err(Error::not_found(path, &[])),
        };
        let content = self.store.sandbox.read(&base).map_err(|error| match error.kind() {
            ErrorKind::NotFound => Error::not_found(path, &[]),
            _ => error,
        })?;
        // All reads of a file must see the same content, because the change may depend on several of them.
        match *self.lock_reads().entry(base).or_insert(content.hash()) {
            first if first == content.hash() => Ok(content),
            _ => Err(Error::conflict(path, "changed since it was read")),
        }
    }

    fn lock_reads(&self) -> MutexGuard<'_, BTreeMap<SafePath, ContentHash>> {
        self.reads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the name in a folder that differs from that of a path only in case.
    pub(super) fn collides(&mut self, path: &SafePath) -> Result<Option<String>> {
        let folder = path.parent();
        if !self.folded.contains_key(&folder) {
            let there = match &folder {
                Some(folder) if !self.exists(folder)? => Vec::new(),
                folder => self.list(folder.as_ref())?,
            };
            let names = there.iter().map(|entry| entry.path.file_name());
            self.folded.insert(folder.clone(), names.map(|name| (name.to_lowercase(), name.to_string())).collect());
        }
        let known = self.folded.get(&folder).and_then(|names| names.get(&path.file_name().to_lowercase()));
        Ok(known.filter(|name| *name != path.file_name()).cloned())
    }

    /// Adds an action, and applies it to the overlay.
    pub(crate) fn push(&mut self, action: Action) {
        self.held_bytes += action.content_bytes();
        self.enter(&action);
        self.actions.push(action);
    }

    /// Returns whether the action that set a file's content may still be changed.
    pub(super) fn is_replaceable(&self, path: &SafePath) -> bool {
        matches!(self.nodes.get(path), Some(Node::File(FileNode { set_by: Some(number), .. })) if *number >= self.sealed)
    }

    /// Replaces the content in the action that set it, if the action may still be changed.
    pub(super) fn replace_content(&mut self, path: &SafePath, new: &Content) -> bool {
        if self.is_replaceable(path)
            && let Some(Node::File(FileNode { content, set_by: Some(number), .. })) = self.nodes.get_mut(path)
            && let Some(Action::Create { content: set, .. } | Action::Edit { after: set, .. }) =
                self.actions.get_mut(*number)
        {
            self.held_bytes = self.held_bytes + new.len() - set.len();
            *content = Some(new.clone());
            *set = new.clone();
            self.touched.push(path.clone());
            return true;
        }
        false
    }

    /// Refuses contents that exceed the limit of this change.
    pub(super) fn check_size(&self, more_bytes: u64) -> Result<()> {
        if self.held_bytes as u64 + more_bytes <= MAX_CHANGE_BYTES as u64 {
            return Ok(());
        }
        let what =
            format!("one change can hold {} MB of file contents, and this is more", MAX_CHANGE_BYTES / 1_000_000);
        Err(Error::new(ErrorKind::Unsupported, what).with_remedy(
            "make several smaller changes, one after the other; files that are moved or deleted to .trash do not count",
        ))
    }

    /// Returns the names in a folder that are invisible to tools; they move with the folder.
    pub(crate) fn unseen(&self, folder: &SafePath) -> Result<Vec<String>> {
        let origin = origin_of(&self.actions, folder);
        match self.look_up(folder) {
            // A folder on the disk at the path of a new folder is another one.
            Some(Node::Folder) if origin == *folder => Ok(Vec::new()),
            _ => self.store.sandbox.unseen(&origin),
        }
    }

    /// Applies an action to the overlay.
    pub(super) fn enter(&mut self, action: &Action) {
        let number = self.actions.len();
        match action {
            Action::MakeFolder { path } => self.set(path, Node::Folder),
            Action::RemoveFolder { path } | Action::Delete { path, .. } => self.set(path, Node::Deleted),
            Action::Create { path, content } => {
                let content = Some(content.clone());
                self.set(path, Node::File(FileNode { content, set_by: Some(number), ..FileNode::default() }));
            }
            Action::Edit { path, after, .. } => {
                let mut file = self.file_at(path);
                file.content = Some(after.clone());
                file.set_by = Some(number);
                self.set(path, Node::File(file));
            }
            Action::Move { from, to } => self.enter_move(from, to),
        }
    }

    fn enter_move(&mut self, from: &SafePath, to: &SafePath) {
        let is_folder = matches!(self.stat(from), Ok(Some(stat)) if stat.kind == EntryKind::Folder && !stat.symlink);
        let mut files = Vec::new();
        if is_folder {
            let mut carried = FolderContents::default();
            for entry in self.walk(Some(from)).unwrap_or_default() {
                let Some(new) = entry.path.moved(from, to) else { continue };
                match entry.stat.kind {
                    EntryKind::Folder => {
                        files.push((new, Node::Folder));
                        carried.folders.push(entry.path);
                    }
                    EntryKind::File => {
                        files.push((new, Node::File(self.file_at(&entry.path))));
                        carried.files.push(entry.path);
                    }
                }
            }
            for folder in std::iter::once(from).chain(&carried.folders) {
                let unseen = self.unseen(folder).unwrap_or_default();
                carried.hidden.extend(unseen.into_iter().map(|name| format!("{folder}/{name}")));
            }
            self.carried.insert(self.actions.len(), carried);
            files.push((to.clone(), Node::Folder));
        } else {
            files.push((to.clone(), Node::File(self.file_at(from))));
        }
        let below: Vec<SafePath> = self.below(from).map(|(path, _)| path.clone()).collect();
        for path in below {
            self.nodes.remove(&path);
            self.touched.push(path);
        }
        self.set(from, Node::Deleted);
        for (path, node) in files {
            if let Node::File(FileNode { base: Some(base), .. }) = &node {
                self.moved.insert(base.clone(), path.clone());
            }
            self.set(&path, node);
        }
        // The names of whole folders have changed.
        if is_folder {
            self.folded.clear();
        }
    }

    /// Returns the node that would represent a file.
    fn file_at(&self, path: &SafePath) -> FileNode {
        match self.look_up(path) {
            Some(Node::File(file)) => file.clone(),
            _ => {
                let real = self.store.sandbox.real(path).ok().filter(|real| real != path);
                FileNode { base: Some(path.clone()), link: real, ..FileNode::default() }
            }
        }
    }

    fn set(&mut self, path: &SafePath, node: Node) {
        if let Some(names) = self.folded.get_mut(&path.parent()) {
            let folded = path.file_name().to_lowercase();
            match node {
                Node::Deleted if names.get(&folded).is_some_and(|name| name == path.file_name()) => {
                    names.remove(&folded);
                }
                Node::Deleted => {}
                _ => {
                    names.insert(folded, path.file_name().to_string());
                }
            }
        }
        self.nodes.insert(path.clone(), node);
        self.touched.push(path.clone());
    }

    /// Returns the overlay's own nodes below a folder.
    fn below<'o>(&'o self, folder: &SafePath) -> impl Iterator<Item = (&'o SafePath, &'o Node)> + use<'o, 'v> {
        let folder = folder.clone();
        // `folder-x` sorts between `folder` and `folder/x`.
        self.nodes
            .range(folder.clone()..)
            .take_while({
                let folder = folder.clone();
                move |(path, _)| path.as_str().starts_with(folder.as_str())
            })
            .filter(move |(path, _)| **path != folder && path.is_in(&folder))
    }

    /// Returns the names that links can lead to. Costs a walk of the vault.
    pub(crate) fn names(&self) -> Result<Names> {
        let files = self.walk(None)?.into_iter().filter(|entry| entry.stat.kind == EntryKind::File);
        let paths = files.map(|entry| entry.path.vault_path().clone());
        Ok((0..).map(FileId).zip(paths).collect())
    }

    /// Returns the content that the overlay has set for a note.
    pub(super) fn changed_note(&self, path: &SafePath) -> Option<&Content> {
        match self.nodes.get(path) {
            Some(Node::File(FileNode { content, .. })) if path.is_note() && !path.is_in_trash() => content.as_ref(),
            _ => None,
        }
    }
}

impl fmt::Debug for Overlay<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Overlay").field("vault", &self.store.sandbox.vault()).field("actions", &self.actions).finish()
    }
}

impl View for Overlay<'_> {
    fn read(&self, path: &SafePath) -> Result<Content> {
        self.content(&self.real(path)?)
    }

    fn stat(&self, path: &SafePath) -> Result<Option<Stat>> {
        let symlink = |stat: Stat| Stat { symlink: true, ..stat };
        let new = |kind, size| Some(Stat { kind, size, modified: None, created: None, symlink: false });
        match self.look_up(path) {
            Some(Node::Deleted) => Ok(None),
            Some(Node::Folder) => Ok(new(EntryKind::Folder, 0)),
            Some(Node::File(FileNode { link: Some(target), .. })) => Ok(self.stat(target)?.map(symlink)),
            Some(Node::File(FileNode { content: Some(content), .. })) => Ok(new(EntryKind::File, content.len() as u64)),
            Some(Node::File(FileNode { base: Some(base), .. })) => self.store.sandbox.stat(base),
            Some(Node::File(_)) => Ok(new(EntryKind::File, 0)),
            None => match self.store.sandbox.stat(path)? {
                Some(stat) if stat.symlink => match self.real(path) {
                    Ok(real) if real != *path => Ok(self.stat(&real)?.map(symlink)),
                    _ => Ok(None),
                },
                stat => Ok(stat),
            },
        }
    }

    fn list(&self, folder: Option<&SafePath>) -> Result<Vec<Entry>> {
        let from_disk = match folder.and_then(|folder| self.look_up(folder)) {
            None => self.store.sandbox.list(folder)?,
            Some(Node::Folder) => Vec::new(),
            Some(_) => return Err(no_folder(folder)),
        };
        let mut paths: BTreeSet<SafePath> = BTreeSet::new();
        let mut found: Vec<Entry> = Vec::new();
        for entry in from_disk {
            if self.nodes.contains_key(&entry.path) || entry.stat.symlink {
                paths.insert(entry.path);
            } else {
                found.push(entry);
            }
        }
        let own: Box<dyn Iterator<Item = (&SafePath, &Node)>> = match folder {
            Some(folder) => Box::new(self.below(folder)),
            None => Box::new(self.nodes.iter()),
        };
        paths.extend(own.map(|(path, _)| path).filter(|path| path.parent().as_ref() == folder).cloned());
        for path in paths {
            if !path.file_name().starts_with('.')
                && let Some(stat) = self.stat(&path)?
            {
                found.push(Entry { path, stat });
            }
        }
        found.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::DeleteMode;
    use crate::vault::tests::{Fixture, path};

    #[test]
    fn a_change_above_the_limit_is_refused_and_leaves_the_overlay_as_it_was() {
        let fixture = Fixture::new("//- a.md\n1\n");
        let mut overlay = fixture.vault.overlay();
        let large = Content::from(vec![b'x'; MAX_CHANGE_BYTES - 1000]);
        overlay.create(&path("large.md"), large.clone()).unwrap();
        let before = overlay.change().actions().to_vec();
        for (name, size) in [("a.md", 1001), ("new/b.md", 1001)] {
            let error = overlay.write(&path(name), vec![b'y'; size]).unwrap_err();
            assert!(error.kind() == ErrorKind::Unsupported && error.to_string().contains("32 MB"), "{error}");
        }
        assert_eq!(overlay.change().actions(), before);
        // The content is replaced in the same action, so it counts once.
        overlay.write(&path("large.md"), vec![b'z'; MAX_CHANGE_BYTES - 1000]).unwrap();
        overlay.mark();
        assert!(overlay.write(&path("large.md"), vec![b'w'; 2000]).is_err());
        assert!(overlay.delete(&path("large.md"), DeleteMode::Permanent).is_err());
        overlay.delete(&path("large.md"), DeleteMode::Trash).unwrap();
        overlay.rollback(0);
        overlay.create(&path("large.md"), large).unwrap();
    }
}
