//! The operations that can be proposed: files are created, written, renamed with every link to them, and deleted.

use serde::Serialize;

use super::{Node, Overlay};
use crate::action::{Action, DeleteMode};
use crate::change::{Notice, SYSTEM_TRASH, origin_of};
use crate::content::Content;
use crate::edit::frontmatter;
use crate::error::{Error, ErrorKind, Result};
use crate::links::{Delta, LinkAt, LinkChanges, RewrittenLink};
use crate::sandbox::{EntryKind, HAS_SYSTEM_TRASH, SafePath, Stat, View, check_new_name, files_below};

/// The result of writing a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WriteOutcome {
    /// The file is new.
    Created,
    /// The file existed, with other content.
    Overwritten,
    /// The file already had this content.
    Unchanged,
}

/// Whether a note with readable frontmatter may get frontmatter that cannot be read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BrokenFrontmatter {
    /// No; it is an error.
    #[default]
    Refuse,
    /// Yes, with a notice.
    Allow,
}

/// The result of a rename.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RenameReport {
    /// Each moved file, as old and new path.
    pub moved: Vec<(SafePath, SafePath)>,
    /// Links that were rewritten so that they still lead to the same file.
    pub rewritten: Vec<RewrittenLink>,
    /// Links that were broken and now lead to a file.
    pub satisfied: Vec<LinkAt>,
}

/// The result of a deletion.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DeleteReport {
    /// The new path: in `.trash`, or `the system's trash`.
    pub trashed_to: Option<String>,
    /// Links that are broken now.
    pub dangling: Vec<LinkAt>,
    /// Links that now lead to another file of the same name.
    pub redirected: Vec<LinkAt>,
}

impl Overlay<'_> {
    /// Creates a folder, and missing folders above it. Returns `false` if it exists.
    ///
    /// # Errors
    /// [`ErrorKind::Exists`] if there is a file at the path; [`ErrorKind::InvalidPath`] for a name that a folder should
    /// not have.
    pub fn make_folder(&mut self, path: &SafePath) -> Result<bool> {
        let missing = self.missing_folders(path)?;
        for folder in &missing {
            self.push(Action::MakeFolder { path: folder.clone() });
        }
        Ok(!missing.is_empty())
    }

    /// Creates a file, and missing folders above it.
    ///
    /// Links that the new name would redirect from their file are rewritten.
    ///
    /// # Errors
    /// [`ErrorKind::Exists`] if there is something at the path; [`ErrorKind::InvalidPath`] for a name that links could
    /// not lead to.
    pub fn create(&mut self, path: &SafePath, content: impl Into<Content>) -> Result<()> {
        let content = content.into();
        if self.exists(path)? {
            return Err(Error::new(ErrorKind::Exists, "is there already")
                .at(path)
                .with_remedy("choose another name, or change the file that is there"));
        }
        self.check_no_dead_link(path)?;
        let folders = self.folders_above(path)?;
        self.check_new(path, None)?;
        self.check_frontmatter(path, None, &content, BrokenFrontmatter::Allow)?;
        let relinked = self.relink(&Delta {
            created: vec![path.clone()],
            created_bytes: content.len() as u64,
            ..Delta::default()
        })?;
        for folder in folders {
            self.push(Action::MakeFolder { path: folder });
        }
        self.push(Action::Create { path: path.clone(), content });
        self.edit_all(relinked.edits);
        relinked.notices.into_iter().for_each(|notice| self.add_notice(notice));
        Ok(())
    }

    /// Creates a file or replaces the content of an existing one. Writes through a symbolic link.
    ///
    /// # Errors
    /// The errors of [`Overlay::create`]; [`ErrorKind::InvalidArguments`] for a folder; [`ErrorKind::Frontmatter`] if
    /// the frontmatter could be read before and no longer can.
    pub fn write(&mut self, path: &SafePath, content: impl Into<Content>) -> Result<WriteOutcome> {
        self.write_with(path, content, BrokenFrontmatter::Refuse)
    }

    /// Like [`Overlay::write`], but the caller decides what to do if the frontmatter could be read before and no longer
    /// can.
    ///
    /// # Errors
    /// The errors of [`Overlay::write`].
    pub fn write_with(
        &mut self,
        path: &SafePath,
        content: impl Into<Content>,
        broken: BrokenFrontmatter,
    ) -> Result<WriteOutcome> {
        let content = content.into();
        if !self.exists(path)? {
            return self.create(path, content).map(|()| WriteOutcome::Created);
        }
        let real = self.real(path)?;
        let before = self.read(&real)?;
        if before == content {
            return Ok(WriteOutcome::Unchanged);
        }
        let more = match self.is_replaceable(&real) {
            true => content.len().saturating_sub(before.len()),
            false => before.len() + content.len(),
        };
        self.check_size(more as u64)?;
        self.check_frontmatter(path, Some(&before), &content, broken)?;
        self.edit(&real, before, content);
        Ok(WriteOutcome::Overwritten)
    }

    /// Adds a notice if the frontmatter of a note cannot be read with its new content; returns an error if it can be
    /// read now and must remain readable.
    fn check_frontmatter(
        &mut self,
        path: &SafePath,
        before: Option<&Content>,
        after: &Content,
        broken: BrokenFrontmatter,
    ) -> Result<()> {
        if !path.is_markdown() {
            return Ok(());
        }
        let before = before.map_or_else(Default::default, |before| String::from_utf8_lossy(before.bytes()));
        let after = String::from_utf8_lossy(after.bytes());
        if frontmatter::as_written(&before) == frontmatter::as_written(&after) {
            return Ok(());
        }
        let is_readable = frontmatter::properties(&before).is_ok_and(|properties| !properties.is_empty());
        let Some(fault) = frontmatter::fault(&after, is_readable) else { return Ok(()) };
        if is_readable && broken == BrokenFrontmatter::Refuse {
            return Err(fault.within("with this change the note has no properties any more").at(path));
        }
        let remedy = fault.remedy().map_or(String::new(), |remedy| format!(" ({remedy})"));
        let text = format!("{path}: the note has no properties for Obsidian: {}{remedy}", fault.message());
        self.add_notice(Notice { about: Some(path.clone()), text });
        Ok(())
    }

    /// Renames or moves a file or folder. Every link that led to a moved file still does, in its original style. The
    /// links inside it, and those that the new name would redirect, keep their targets too.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`], [`ErrorKind::Exists`], [`ErrorKind::InvalidPath`]; [`ErrorKind::Refused`] if a link
    /// could not be preserved.
    pub fn rename(&mut self, from: &SafePath, to: &SafePath) -> Result<RenameReport> {
        self.rename_with(from, to, None)
    }

    /// Like [`Overlay::rename`], but a file or folder at the new path is moved to the trash, and links to it lead to
    /// its replacement.
    ///
    /// # Errors
    /// The errors of [`Overlay::rename`], except [`ErrorKind::Exists`].
    pub fn rename_over(&mut self, from: &SafePath, to: &SafePath) -> Result<RenameReport> {
        // Names that differ only in case may refer to one file.
        let is_same = from.as_str().to_lowercase() == to.as_str().to_lowercase();
        let over = if is_same { None } else { self.stat(to)? };
        self.rename_with(from, to, over)
    }

    fn rename_with(&mut self, from: &SafePath, to: &SafePath, over: Option<Stat>) -> Result<RenameReport> {
        let Some(stat) = self.stat(from)? else { return Err(Error::not_found(from, &[])) };
        if from == to {
            return Ok(RenameReport::default());
        }
        let folders = self.folders_above(to)?;
        self.check_target((from, &stat), (to, over.as_ref()))?;
        let moved = self.files_of(from, &stat)?;
        let moved: Vec<(SafePath, SafePath)> =
            moved.into_iter().filter_map(|file| Some((file.clone(), file.moved(from, to)?))).collect();
        let (deleted, trashing) = match &over {
            Some(stat) => (self.files_of(to, stat)?, self.trash(to)?),
            None => (Vec::new(), Vec::new()),
        };
        self.mark();
        let relinked = self.relink(&Delta { moves: moved.clone(), deleted, ..Delta::default() })?;
        for action in trashing {
            self.push(action);
        }
        for folder in folders {
            self.push(Action::MakeFolder { path: folder });
        }
        self.push(Action::Move { from: from.clone(), to: to.clone() });
        let LinkChanges { edits, rewritten, satisfied, dangling, redirected, notices, .. } = relinked;
        self.edit_all(edits);
        self.add_link_notices(&satisfied, "led nowhere and leads to a note now");
        self.add_link_notices(&dangling, "leads nowhere now");
        self.add_link_notices(&redirected, "led to the replaced file and leads to its replacement");
        notices.into_iter().for_each(|notice| self.add_notice(notice));
        Ok(RenameReport { moved, rewritten, satisfied })
    }

    /// Deletes a file, or a folder with all its contents.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`]; [`ErrorKind::Refused`] for permanently deleting a symbolic link, or a folder with
    /// hidden files, which would stay.
    pub fn delete(&mut self, path: &SafePath, mode: DeleteMode) -> Result<DeleteReport> {
        let Some(stat) = self.stat(path)? else { return Err(Error::not_found(path, &[])) };
        self.mark();
        let deleted = self.files_of(path, &stat)?;
        let (relinked, trashed_to) = self.remove(path, mode, Delta { deleted, ..Delta::default() })?;
        let LinkChanges { dangling, redirected, notices, .. } = relinked;
        self.add_link_notices(&dangling, "leads nowhere now");
        self.add_link_notices(&redirected, "leads to another note of that name now");
        notices.into_iter().for_each(|notice| self.add_notice(notice));
        Ok(DeleteReport { trashed_to, dangling, redirected })
    }

    /// Removes a file or folder. Returns the effects on links, which have not been applied yet, and its new path.
    pub(super) fn remove(
        &mut self,
        path: &SafePath,
        mode: DeleteMode,
        delta: Delta,
    ) -> Result<(LinkChanges, Option<String>)> {
        let Some(stat) = self.stat(path)? else { return Err(Error::not_found(path, &[])) };
        let actions = match mode {
            DeleteMode::SystemTrash if stat.kind == EntryKind::File && !stat.symlink => self.system_trash(path)?,
            DeleteMode::Trash | DeleteMode::SystemTrash => self.trash(path)?,
            DeleteMode::Permanent => self.delete_permanently(path, &stat)?,
        };
        let relinked = self.relink(&delta)?;
        let trashed_to = match actions.last() {
            Some(Action::Move { to, .. }) => Some(to.to_string()),
            Some(Action::Delete { mode: DeleteMode::SystemTrash, .. }) => Some(SYSTEM_TRASH.to_owned()),
            _ => None,
        };
        if trashed_to.as_deref() == Some(SYSTEM_TRASH) {
            let what = "goes to the system's trash; undo recreates it from the journal and leaves that copy there";
            self.notice(format!("{path} {what}"));
        } else if mode == DeleteMode::SystemTrash {
            self.notice(format!(
                "{path} goes to the vault's .trash, since undo could not recreate it from the journal"
            ));
        }
        for action in actions {
            self.push(action);
        }
        Ok((relinked, trashed_to))
    }

    pub(super) fn add_link_notices(&mut self, links: &[LinkAt], what: &str) {
        // A line that contains one link several times is listed once.
        for link in links.chunk_by(PartialEq::eq).filter_map(<[LinkAt]>::first) {
            let text = format!("{}:{}: the link {} {what}", link.path, link.line, link.raw);
            self.add_notice(Notice { about: Some(link.path.clone()), text });
        }
    }

    fn trash(&self, path: &SafePath) -> Result<Vec<Action>> {
        let no_place = || Error::new(ErrorKind::InvalidPath, "has no place in the trash").at(path);
        let mut number = 0;
        let to = loop {
            number += 1;
            let name = match (number, path.extension()) {
                (1, _) => path.file_name().to_string(),
                (_, Some(ending)) => format!("{} {number}.{ending}", path.stem()),
                (_, None) => format!("{} {number}", path.file_name()),
            };
            let rest = path.parent().map_or(name.clone(), |folder| format!("{folder}/{name}"));
            let to = SafePath::in_trash(&rest).ok_or_else(no_place)?;
            if !self.is_there(&to)? {
                break to;
            }
        };
        let missing = self.missing_above(&to)?.into_iter();
        let mut actions: Vec<Action> = missing.map(|path| Action::MakeFolder { path }).collect();
        actions.push(Action::Move { from: path.clone(), to });
        Ok(actions)
    }

    fn system_trash(&self, path: &SafePath) -> Result<Vec<Action>> {
        if !HAS_SYSTEM_TRASH {
            return Err(Error::new(ErrorKind::Unsupported, "this program was built without the system's trash")
                .with_remedy("set trash = \"vault\" in tools.toml, or build it with the feature `trash`"));
        }
        let content = self.read(path)?;
        self.check_size(content.len() as u64)?;
        Ok(vec![Action::Delete { path: path.clone(), content, mode: DeleteMode::SystemTrash }])
    }

    fn delete_permanently(&self, path: &SafePath, stat: &Stat) -> Result<Vec<Action>> {
        let mut actions = Vec::new();
        let mut folders = Vec::new();
        let mut entries = vec![(path.clone(), *stat)];
        if stat.kind == EntryKind::Folder {
            entries.extend(self.walk(Some(path))?.into_iter().map(|entry| (entry.path, entry.stat)));
        }
        self.check_size(entries.iter().map(|(_, stat)| stat.size).sum())?;
        for (path, stat) in entries {
            if stat.symlink {
                return Err(Error::new(ErrorKind::Refused, "is a symbolic link, which undo could not recreate")
                    .at(&path)
                    .with_remedy("delete it to the trash"));
            }
            match stat.kind {
                EntryKind::Folder => {
                    if let Some(name) = self.unseen(&path)?.first() {
                        let what =
                            format!("holds {name:?}, which is hidden from tools, so it cannot be deleted permanently");
                        return Err(Error::new(ErrorKind::Refused, what)
                            .at(&path)
                            .with_remedy("delete it to the trash (trash: true), where it goes with all its contents"));
                    }
                    folders.push(Action::RemoveFolder { path });
                }
                EntryKind::File => {
                    let content = self.read(&path)?;
                    actions.push(Action::Delete { path, content, mode: DeleteMode::Permanent });
                }
            }
        }
        // The deepest folder first.
        actions.extend(folders.into_iter().rev());
        Ok(actions)
    }

    /// Returns the missing folders above a path, the outermost first.
    pub(crate) fn missing_above(&self, path: &SafePath) -> Result<Vec<SafePath>> {
        let mut missing = Vec::new();
        for folder in std::iter::successors(path.parent(), SafePath::parent) {
            if self.is_there(&folder)? {
                break;
            }
            missing.insert(0, folder);
        }
        Ok(missing)
    }

    /// Returns whether there is anything at a path, hidden or not.
    pub(crate) fn is_there(&self, path: &SafePath) -> Result<bool> {
        match self.look_up(path) {
            None => self.store.sandbox.is_there(path),
            Some(Node::Deleted) => Ok(false),
            _ => Ok(true),
        }
    }

    /// Returns the files at or below a path. If a folder's files change before the change is applied, it is refused.
    fn files_of(&mut self, path: &SafePath, stat: &Stat) -> Result<Vec<SafePath>> {
        if stat.kind == EntryKind::File {
            return Ok(vec![path.clone()]);
        }
        if self.look_up(path).is_none() {
            self.preconditions.folders.insert(path.clone(), files_below(&self.store.sandbox, path)?);
        }
        Ok(files_below(&*self, path)?.into_iter().collect())
    }

    /// Checks that a file or folder can move to a path, replacing the one there if `over` is given.
    fn check_target(&mut self, (from, stat): (&SafePath, &Stat), (to, over): (&SafePath, Option<&Stat>)) -> Result<()> {
        if over.is_some() && from.is_in(to) {
            return Err(Error::new(ErrorKind::InvalidArguments, "is inside the folder that it would replace").at(from));
        }
        if to.is_in(from) {
            return Err(Error::new(ErrorKind::InvalidArguments, "a folder cannot be moved into itself").at(to));
        }
        let is_other_case = from.as_str().to_lowercase() == to.as_str().to_lowercase();
        if over.is_none()
            && self.exists(to)?
            && !(is_other_case && self.collides(to)?.is_some_and(|name| name == from.file_name()))
        {
            return Err(Error::new(ErrorKind::Exists, "is there already")
                .at(to)
                .with_remedy("choose another name, or move that one away first"));
        }
        if !is_other_case && over.is_none() {
            self.check_no_dead_link(to)?;
        }
        if stat.symlink && from.parent() != to.parent() {
            return Err(Error::new(
                ErrorKind::Refused,
                "is a symbolic link, which would lead elsewhere from another folder",
            )
            .at(from)
            .with_remedy("move the file that it leads to"));
        }
        self.check_new(to, Some(from))
    }

    /// Checks that a file or folder may be created at a path; `from` is a path that will be free by then.
    fn check_new(&mut self, path: &SafePath, from: Option<&SafePath>) -> Result<()> {
        // Only a new name is checked, so that a file with an invalid name can still be moved.
        if from.is_none_or(|from| from.file_name() != path.file_name()) {
            check_new_name(path.file_name())?;
        }
        match self.collides(path)? {
            Some(name) if from.is_none_or(|from| from.file_name() != name || from.parent() != path.parent()) => {
                let there = path.parent().map_or(name.clone(), |folder| format!("{folder}/{name}"));
                Err(Error::new(ErrorKind::Exists, format!("differs from {there:?} only in upper and lower case"))
                    .at(path)
                    .with_remedy("use that path, or another name: not every system tells the two apart"))
            }
            _ => Ok(()),
        }
    }

    /// Returns whether a new file or folder cannot have this path, because the path is taken, or one that differs only
    /// in case.
    ///
    /// # Errors
    /// If the path cannot be read.
    pub fn is_taken(&mut self, path: &SafePath) -> Result<bool> {
        // A folder that cannot be listed is reported when the file is created.
        Ok(self.is_there(path)? || matches!(self.collides(path), Ok(Some(_))))
    }

    /// Refuses a path that can be neither read nor created.
    fn check_no_dead_link(&self, path: &SafePath) -> Result<()> {
        if !self.is_there(path)? {
            return Ok(());
        }
        let what = match self.real(path)? {
            real if real != *path => "is a symbolic link to a file that is not there",
            _ => "is neither a file nor a folder",
        };
        Err(Error::new(ErrorKind::Exists, what).at(path).with_remedy("choose another name, or remove it by hand first"))
    }

    fn folders_above(&mut self, path: &SafePath) -> Result<Vec<SafePath>> {
        path.parent().map_or(Ok(Vec::new()), |folder| self.missing_folders(&folder))
    }

    /// Returns the folders that must be created for a folder to exist, the outermost first.
    fn missing_folders(&mut self, path: &SafePath) -> Result<Vec<SafePath>> {
        let mut missing = Vec::new();
        for path in std::iter::successors(Some(path.clone()), SafePath::parent) {
            match self.stat(&path)? {
                Some(stat) if stat.kind == EntryKind::Folder && !stat.symlink => break,
                Some(_) => {
                    return Err(Error::new(ErrorKind::Exists, "is a file, so it cannot contain anything")
                        .at(&path)
                        .with_remedy("choose another folder"));
                }
                None => self.check_new(&path, None)?,
            }
            missing.insert(0, path);
        }
        Ok(missing)
    }

    pub(super) fn edit_all(&mut self, edits: Vec<(SafePath, Content, String)>) {
        for (path, before, after) in edits {
            self.edit(&path, before, after.into());
        }
    }

    /// Replaces the content of a file: in the action that set its current content, if that may still be changed.
    fn edit(&mut self, path: &SafePath, before: Content, after: Content) {
        if self.replace_content(path, &after) {
            return;
        }
        self.push(Action::Edit { path: path.clone(), before, after });
        if let Ok(Some(caution)) = self.store.sandbox.caution(&origin_of(&self.actions, path)) {
            self.add_notice(Notice { about: Some(path.clone()), text: format!("{path} {caution}") });
        }
    }
}
