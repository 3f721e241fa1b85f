//! The vault with changes not yet made: what the disk holds, and over it what was proposed. Nothing here writes.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::action::Action;
use crate::change::seen::Seen;
use crate::change::sources::Sources;
use crate::change::{Carried, Change, Notice, Vault, origin_of};
use crate::content::{Content, ContentHash, Spool};
use crate::error::{Error, ErrorKind, Result};
use crate::sandbox::{Entry, EntryKind, SafePath, Stat, View};

/// For so long what others changed on the disk may go unnoticed by what is remembered.
const FRESH: Duration = Duration::from_millis(500);

/// What takes long to make is remembered for so many times as long, so that it costs little however large the vault.
const TIMES: u32 = 10;

/// The vault as it would be.
///
/// An operation that fails changes nothing.
pub struct Overlay<'v> {
    pub(super) vault: &'v Vault,
    /// What differs from the disk, and what lies below it; see [`Overlay::look_up`].
    pub(super) nodes: BTreeMap<SafePath, Node>,
    /// Files of the disk that would lie elsewhere: from where, to where.
    pub(super) moved: HashMap<SafePath, SafePath>,
    pub(super) actions: Vec<Action>,
    /// Actions before this one are never changed again.
    pub(super) sealed: usize,
    /// What was told, and how many actions there were by then.
    pub(super) notices: Vec<(usize, Notice)>,
    /// What moves along with folders, by the place of the action.
    carried: BTreeMap<usize, Carried>,
    /// Names of all files and who links to what; made when first needed.
    pub(super) sources: Option<Sources>,
    /// Where nodes have changed since `sources` last looked at them.
    pub(super) touched: Vec<SafePath>,
    /// What links were kept by so far.
    pub(super) seen: Seen,
    reads: Mutex<BTreeMap<SafePath, ContentHash>>,
    /// Whether several calls work on it, one upon the other.
    is_shared: bool,
    /// Per folder that was looked at: its names by their lower case, to see which would collide.
    folded: HashMap<Option<SafePath>, HashMap<String, String>>,
    memory: Mutex<Memory>,
    /// Where most contents of the actions are.
    spool: Spool,
}

/// What reading calls worked out of many files.
#[derive(Default)]
struct Memory {
    /// How many actions there were.
    at: usize,
    /// By what it is.
    values: HashMap<String, Remembered>,
}

struct Remembered {
    value: Arc<dyn Any + Send + Sync>,
    until: Instant,
}

/// What the overlay says of a path.
#[derive(Debug, Clone)]
pub(super) enum Node {
    /// Nothing is there any more.
    Gone,
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

/// What is known of a path.
pub(super) enum LookUp<'o> {
    /// It is as on the disk.
    Disk,
    /// Nothing is there.
    Nothing,
    /// A folder, with only what the overlay puts into it.
    Folder,
    /// A file of the overlay's.
    File(&'o FileNode),
}

impl<'v> Overlay<'v> {
    pub(super) fn new(vault: &'v Vault) -> Self {
        Self {
            vault,
            nodes: BTreeMap::new(),
            moved: HashMap::new(),
            actions: Vec::new(),
            sealed: 0,
            notices: Vec::new(),
            carried: BTreeMap::new(),
            sources: None,
            touched: Vec::new(),
            seen: Seen::default(),
            reads: Mutex::default(),
            is_shared: true,
            folded: HashMap::new(),
            memory: Mutex::default(),
            spool: Spool::default(),
        }
    }

    /// How many actions there are. Later operations do not change them, so that what lies between two marks is what
    /// was done between them.
    pub fn mark(&mut self) -> usize {
        self.sealed = self.actions.len();
        self.sealed
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
        let seen = std::mem::take(&mut self.seen);
        let (is_shared, spool) = (self.is_shared, std::mem::take(&mut self.spool));
        *self = Self { notices, seen, reads: Mutex::new(reads), is_shared, spool, ..Self::new(self.vault) };
        for action in actions {
            self.enter(&action);
            self.actions.push(action);
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
            seen: self.seen.clone(),
            notices: self.notices.iter().map(|(_, notice)| notice.clone()).collect(),
        }
    }

    /// The same, of an overlay that is no longer needed.
    pub(crate) fn into_change(self) -> Change {
        Change {
            actions: self.actions,
            carried: self.carried,
            reads: self.reads.into_inner().unwrap_or_else(PoisonError::into_inner),
            seen: self.seen,
            notices: self.notices.into_iter().map(|(_, notice)| notice).collect(),
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

    /// Adds a line to what the reader of a preview should know.
    pub fn notice(&mut self, text: impl Into<String>) {
        self.tell(text.into().into());
    }

    pub(super) fn tell(&mut self, notice: Notice) {
        self.notices.push((self.actions.len(), notice));
    }

    /// What is at a path, itself.
    pub(super) fn look_up(&self, path: &SafePath) -> LookUp<'_> {
        match self.nodes.get(path) {
            Some(Node::File(file)) => return LookUp::File(file),
            Some(Node::Folder) => return LookUp::Folder,
            Some(Node::Gone) => return LookUp::Nothing,
            None if self.nodes.is_empty() => return LookUp::Disk,
            None => {}
        }
        // Below what is gone or new, the disk does not show.
        let mut above = path.parent();
        while let Some(folder) = above {
            if self.nodes.contains_key(&folder) {
                return LookUp::Nothing;
            }
            above = folder.parent();
        }
        LookUp::Disk
    }

    /// The file a path stands for: itself, or the one it is a symbolic link to.
    pub(crate) fn real(&self, path: &SafePath) -> Result<SafePath> {
        match self.look_up(path) {
            LookUp::Disk => self.vault.sandbox().real(path),
            LookUp::File(FileNode { link: Some(target), .. }) => Ok(target.clone()),
            _ => Ok(path.clone()),
        }
    }

    /// The content of a file that is no link.
    fn content(&self, path: &SafePath) -> Result<Content> {
        let base = match self.look_up(path) {
            LookUp::File(FileNode { content: Some(content), .. }) => return Ok(content.clone()),
            LookUp::File(FileNode { base: Some(base), .. }) => base.clone(),
            LookUp::Disk => path.clone(),
            LookUp::Folder => {
                return Err(Error::new(ErrorKind::InvalidArguments, "is a folder")
                    .at(path)
                    .remedy("name a file, or list the folder"));
            }
            _ => return Err(Error::not_found(path, &[])),
        };
        let content = self.vault.sandbox().read(&base).map_err(|error| match error.kind() {
            ErrorKind::NotFound => Error::not_found(path, &[]),
            _ => error,
        })?;
        // Whoever builds on two reads builds on one state.
        match *self.lock_reads().entry(base).or_insert(content.hash()) {
            first if first == content.hash() => Ok(content),
            _ => Err(Error::conflict(path, "changed since it was read")),
        }
    }

    /// What is made of many files, such as a table of all names; the same one again until there is another action.
    pub(crate) fn remembered<T: Send + Sync + 'static>(
        &self,
        what: &str,
        make: impl FnOnce() -> Result<T>,
    ) -> Result<Arc<T>> {
        let at = self.actions.len();
        // The content of an action that is not sealed may change without another one.
        if self.sealed != at {
            return make().map(Arc::new);
        }
        let now = Instant::now();
        let known = {
            let mut memory = self.lock_memory();
            if memory.at != at {
                *memory = Memory { at, ..Memory::default() };
            }
            memory.values.get(what).filter(|known| now < known.until).map(|known| known.value.clone())
        };
        if let Some(known) = known.and_then(|known| known.downcast::<T>().ok()) {
            return Ok(known);
        }
        // Not locked meanwhile: it may be made of what is remembered.
        let made = Arc::new(make()?);
        let value: Arc<dyn Any + Send + Sync> = made.clone();
        let until = now + FRESH.max(now.elapsed() * TIMES);
        let mut memory = self.lock_memory();
        memory.values.retain(|_, known| now < known.until);
        memory.values.insert(what.to_owned(), Remembered { value, until });
        Ok(made)
    }

    fn lock_memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
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
    pub(super) fn push(&mut self, mut action: Action) {
        match &mut action {
            Action::Create { content, .. } | Action::Delete { content, .. } => self.rest(content),
            Action::Edit { before, after, .. } => {
                self.rest(before);
                self.rest(after);
            }
            Action::MakeFolder { .. } | Action::RemoveFolder { .. } | Action::Move { .. } => {}
        }
        self.enter(&action);
        self.actions.push(action);
    }

    /// A content that is needed later need not stay in memory.
    pub(crate) fn rest(&mut self, content: &mut Content) {
        let kept = std::mem::replace(content, Content::from(Vec::new()));
        *content = self.spool.rest(kept, || self.vault.state().nameless_file());
    }

    /// The names in a folder that no tool sees; they move with it.
    pub(super) fn unseen(&self, folder: &SafePath) -> Result<Vec<String>> {
        let origin = origin_of(&self.actions, folder);
        match self.look_up(folder) {
            // What the disk has at the path of a folder that is new is another one.
            LookUp::Folder if origin == *folder => Ok(Vec::new()),
            _ => self.vault.sandbox().unseen(&origin),
        }
    }

    /// Shows what an action does.
    pub(super) fn enter(&mut self, action: &Action) {
        let number = self.actions.len();
        match action {
            Action::MakeFolder { path } => self.set(path, Node::Folder),
            Action::RemoveFolder { path } | Action::Delete { path, .. } => self.set(path, Node::Gone),
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
        let is_folder = match self.look_up(from) {
            LookUp::Folder => true,
            LookUp::File(_) => false,
            _ => matches!(self.stat(from), Ok(Some(stat)) if stat.kind == EntryKind::Folder && !stat.symlink),
        };
        let mut files = Vec::new();
        if is_folder {
            let mut carried = Carried::default();
            for entry in self.walk(Some(from)).unwrap_or_default() {
                let Some(new) = entry.path.moved(from, to) else { continue };
                let node = match entry.stat.kind {
                    EntryKind::Folder => Node::Folder,
                    EntryKind::File => Node::File(self.file_at(&entry.path)),
                };
                files.push((new, node));
                match entry.stat.kind {
                    EntryKind::Folder => carried.folders.push(entry.path),
                    EntryKind::File => carried.files.push(entry.path),
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
        self.set(from, Node::Gone);
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
            LookUp::File(file) => file.clone(),
            _ => {
                let real = self.vault.sandbox().real(path).ok().filter(|real| real != path);
                FileNode { base: Some(path.clone()), link: real, ..FileNode::default() }
            }
        }
    }

    fn set(&mut self, path: &SafePath, node: Node) {
        if let Some(names) = self.folded.get_mut(&path.parent()) {
            let folded = path.file_name().to_lowercase();
            match node {
                Node::Gone if names.get(&folded).is_some_and(|name| name == path.file_name()) => {
                    names.remove(&folded);
                }
                Node::Gone => {}
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

    /// Files that the overlay gave other content.
    pub(super) fn changed_file(&self, path: &SafePath) -> Option<&Content> {
        match self.nodes.get(path) {
            Some(Node::File(FileNode { content, .. })) => content.as_ref(),
            _ => None,
        }
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
            LookUp::Nothing => Ok(None),
            LookUp::Folder => Ok(new(EntryKind::Folder, 0)),
            LookUp::File(FileNode { link: Some(target), .. }) => Ok(self.stat(target)?.map(symlink)),
            LookUp::File(FileNode { content: Some(content), .. }) => Ok(new(EntryKind::File, content.len() as u64)),
            LookUp::File(FileNode { base: Some(base), .. }) => self.vault.sandbox().stat(base),
            LookUp::File(_) => Ok(new(EntryKind::File, 0)),
            LookUp::Disk => match self.vault.sandbox().stat(path)? {
                Some(stat) if stat.symlink => match self.real(path) {
                    Ok(real) if real != *path => Ok(self.stat(&real)?.map(symlink)),
                    _ => Ok(None),
                },
                stat => Ok(stat),
            },
        }
    }

    fn list(&self, folder: Option<&SafePath>) -> Result<Vec<Entry>> {
        let from_disk = match folder.map(|folder| self.look_up(folder)) {
            None | Some(LookUp::Disk) => self.vault.sandbox().list(folder)?,
            Some(LookUp::Folder) => Vec::new(),
            Some(_) => {
                let name = folder.map_or("", SafePath::as_str);
                return Err(Error::new(
                    ErrorKind::NotFound,
                    format!("Note not found: {name} is no folder of the vault"),
                ));
            }
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
    use crate::change::tests::{Fixture, path};

    fn texts(overlay: &Overlay<'_>) -> Result<Vec<(SafePath, String)>> {
        let mut texts = Vec::new();
        for entry in overlay.walk(None)? {
            texts.push((entry.path.clone(), overlay.text(&entry.path)?));
        }
        Ok(texts)
    }

    #[track_caller]
    fn check(overlay: &Overlay<'_>) {
        for _ in 0..2 {
            assert_eq!(*overlay.remembered("texts", || texts(overlay)).unwrap(), texts(overlay).unwrap());
        }
    }

    #[test]
    fn what_is_remembered_is_what_would_be_made_anew() {
        let fixture = Fixture::new("//- a.md\n1\n//- b.md\n1\n");
        let mut overlay = fixture.vault.overlay();
        check(&overlay);
        overlay.write(&path("a.md"), "2\n").unwrap();
        check(&overlay);
        // Goes into the same action.
        overlay.write(&path("a.md"), "3\n").unwrap();
        check(&overlay);
        let mark = overlay.mark();
        check(&overlay);
        overlay.write(&path("a.md"), "4\n").unwrap();
        overlay.mark();
        check(&overlay);
        overlay.rollback(mark);
        check(&overlay);
        // As many actions as before the rollback.
        overlay.write(&path("b.md"), "5\n").unwrap();
        overlay.mark();
        check(&overlay);
        overlay.rename(&path("b.md"), &path("c.md")).unwrap();
        overlay.mark();
        check(&overlay);
    }
}
