//! The vault with changes not yet made: what the disk holds, and over it what was proposed. Nothing here writes.
//!
//! A tool works on an [`Overlay`]: it reads what would be there, and what it changes is recorded as actions. What is
//! shown is made from those actions, and the same actions are applied.

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

/// Contents that one change may hold in memory, in bytes: those it writes and those that its undo would need.
const MAX_CHANGE_BYTES: usize = if cfg!(test) { 32_000_000 } else { 256_000_000 };

/// The vault as it would be.
///
/// An operation that fails changes nothing. Reads are those of [`View`].
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
    /// What differs from the disk, and what lies below it; see [`Overlay::look_up`].
    pub(super) nodes: BTreeMap<SafePath, Node>,
    /// Files of the disk that would lie elsewhere: from where, to where.
    pub(super) moved: HashMap<SafePath, SafePath>,
    pub(super) actions: Vec<Action>,
    /// Actions before this one are never changed again.
    pub(super) sealed: usize,
    /// What the reader of a preview should know, and how many actions there were by then.
    notices: Vec<(usize, Notice)>,
    /// What moves along with folders, by the index of the action.
    carried: BTreeMap<usize, FolderContents>,
    /// Names of all files and who links to what; made when first needed.
    links: Option<LinkIndex>,
    /// Where nodes have changed since `links` was last brought up to date.
    pub(super) touched: Vec<SafePath>,
    /// What was assumed of the disk so far, beside the files that were read.
    preconditions: Preconditions,
    reads: Mutex<BTreeMap<SafePath, ContentHash>>,
    /// Whether several calls work on it, one upon the other.
    is_shared: bool,
    /// Whether a path may be read, if not all may; where links are kept, others are as if they were not there.
    permits: Option<Arc<PathFilter>>,
    /// Per folder that was looked at: its names by their lower case, to see which would collide.
    folded: HashMap<Option<SafePath>, HashMap<String, String>>,
    /// Bytes of the contents in `actions`.
    held_bytes: usize,
}

/// What the overlay says of a path.
#[derive(Debug, Clone)]
pub(super) enum Node {
    /// Nothing is there any more.
    Deleted,
    /// A folder that is new there: what the disk has at and below this path does not show.
    Folder,
    /// A file.
    File(FileNode),
}

/// A file that is not as on the disk.
#[derive(Debug, Clone, Default)]
pub(super) struct FileNode {
    /// Where on the disk it lies now.
    pub base: Option<SafePath>,
    /// Its content, where that is not the one on the disk.
    pub content: Option<Content>,
    /// The action that gave it its content.
    pub set_by: Option<usize>,
    /// The file it is a symbolic link to.
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

    /// How many actions there are. Later operations do not change them, so that what lies between two marks is what
    /// was done between them.
    pub fn mark(&mut self) -> usize {
        self.sealed = self.actions.len();
        self.sealed
    }

    /// Makes one action of two: of the edit that is all that was done after the mark `call`, and of the action before it,
    /// unless that is before the mark `first`, if it gave the same file its content. So a loop that adds to a note holds
    /// and writes the note once, not as often as it has items.
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

    /// Drops what was done after a mark.
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

    /// Whether anything would be changed.
    pub fn is_changed(&self) -> bool {
        !self.actions.is_empty()
    }

    /// What was done so far.
    pub fn change(&self) -> Change {
        Change {
            actions: self.actions.clone(),
            carried: self.carried.clone(),
            reads: self.lock_reads().clone(),
            preconditions: self.preconditions.clone(),
            notices: self.notices.iter().map(|(_, notice)| notice.clone()).collect(),
        }
    }

    /// Binds the change to what a file holds now, since something was learnt of it elsewhere, as from the index.
    pub fn bind(&self, path: &SafePath) {
        if self.is_shared {
            // One that cannot be read was not read.
            let _ = self.read(path);
        }
    }

    /// For one call alone: what it learns from the index, no later one builds upon, and no file is read to bind it.
    pub(crate) fn of_one_call(mut self) -> Self {
        self.is_shared = false;
        self
    }

    /// For calls that may not read every path: links in the others are not rewritten, nor links to them kept.
    pub(crate) fn permitting(mut self, permits: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        self.permits = Some(Arc::new(permits));
        self
    }

    /// Whether a file is there that is not on the disk, under this path or another.
    ///
    /// # Errors
    /// When it cannot be looked at.
    pub(crate) fn is_new(&self, path: &SafePath) -> Result<bool> {
        Ok(matches!(self.look_up(&self.real(path)?), Some(Node::File(FileNode { base: None, .. }))))
    }

    /// How many notices there are, for [`Overlay::truncate_notices`].
    pub(crate) fn notice_count(&self) -> usize {
        self.notices.len()
    }

    /// Drops all notices but the first, after those of a call that failed.
    pub(crate) fn truncate_notices(&mut self, count: usize) {
        self.notices.truncate(count);
    }

    /// Adds a line to what the reader of a preview should know.
    pub fn notice(&mut self, text: impl Into<String>) {
        self.add_notice(text.into().into());
    }

    pub(super) fn add_notice(&mut self, notice: Notice) {
        self.notices.push((self.actions.len(), notice));
    }

    /// What the overlay has at a path, itself; `None` where that is what the disk has.
    pub(super) fn look_up(&self, path: &SafePath) -> Option<&Node> {
        if self.nodes.is_empty() {
            return None;
        }
        // Below what is gone or new, the disk does not show.
        let is_hidden =
            || std::iter::successors(path.parent(), SafePath::parent).any(|folder| self.nodes.contains_key(&folder));
        self.nodes.get(path).or_else(|| is_hidden().then_some(&Node::Deleted))
    }

    /// The file a path stands for: itself, or the one it is a symbolic link to.
    pub(crate) fn real(&self, path: &SafePath) -> Result<SafePath> {
        match self.look_up(path) {
            None => self.store.sandbox.real(path),
            Some(Node::File(FileNode { link: Some(target), .. })) => Ok(target.clone()),
            _ => Ok(path.clone()),
        }
    }

    /// The content of a file that is no link.
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
        // Whoever builds on two reads builds on one state.
        match *self.lock_reads().entry(base).or_insert(content.hash()) {
            first if first == content.hash() => Ok(content),
            _ => Err(Error::conflict(path, "changed since it was read")),
        }
    }

    fn lock_reads(&self) -> MutexGuard<'_, BTreeMap<SafePath, ContentHash>> {
        self.reads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The name in a folder that differs from a path's only in its case.
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

    /// Adds an action, and shows what it does.
    pub(crate) fn push(&mut self, action: Action) {
        self.held_bytes += action.content_bytes();
        self.enter(&action);
        self.actions.push(action);
    }

    /// Whether the action that gave a file its content may still be changed.
    pub(super) fn is_replaceable(&self, path: &SafePath) -> bool {
        matches!(self.nodes.get(path), Some(Node::File(FileNode { set_by: Some(number), .. })) if *number >= self.sealed)
    }

    /// Replaces the content that an action gives a file, if the action may still be changed.
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

    /// Refuses contents for which there is no room in this change.
    pub(super) fn check_size(&self, more_bytes: u64) -> Result<()> {
        if self.held_bytes as u64 + more_bytes <= MAX_CHANGE_BYTES as u64 {
            return Ok(());
        }
        let what =
            format!("one change can hold {} MB of file contents, and this is more", MAX_CHANGE_BYTES / 1_000_000);
        Err(Error::new(ErrorKind::Unsupported, what).with_remedy(
            "make several smaller changes, one after the other; what is deleted to .trash or moved counts for nothing",
        ))
    }

    /// The names in a folder that no tool sees; they move with it.
    pub(crate) fn unseen(&self, folder: &SafePath) -> Result<Vec<String>> {
        let origin = origin_of(&self.actions, folder);
        match self.look_up(folder) {
            // What the disk has at the path of a folder that is new is another one.
            Some(Node::Folder) if origin == *folder => Ok(Vec::new()),
            _ => self.store.sandbox.unseen(&origin),
        }
    }

    /// Shows what an action does.
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
        // Names of whole folders have changed.
        if is_folder {
            self.folded.clear();
        }
    }

    /// A file as the overlay would write it down.
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

    /// The overlay's own nodes below a folder.
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

    /// The names that links can lead to. Costs a walk of the vault.
    pub(crate) fn names(&self) -> Result<Names> {
        let files = self.walk(None)?.into_iter().filter(|entry| entry.stat.kind == EntryKind::File);
        let paths = files.map(|entry| entry.path.vault_path().clone());
        Ok((0..).map(FileId).zip(paths).collect())
    }

    /// The content that the overlay gave a note.
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
