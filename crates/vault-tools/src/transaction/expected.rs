//! What must be where on the disk when the first n actions of a transaction are done. Pure.
//!
//! With none done it is what must hold before the transaction; with all done, before it is undone; and one that was
//! interrupted stands where the disk is as expected.

use std::collections::{BTreeMap, BTreeSet};

use crate::action::Action;
use crate::content::ContentHash;
use crate::journal::JournalAction;
use crate::sandbox::{Found, SafePath};

/// What must be at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expected {
    /// Whatever there is.
    Anything,
    Nothing,
    Folder,
    /// A file, folder or link.
    Something,
    File(ContentHash),
}

/// An action without its contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ActionOutline {
    MakeFolder(SafePath),
    RemoveFolder(SafePath),
    Create(SafePath, ContentHash),
    Edit(SafePath, ContentHash, ContentHash),
    Move(SafePath, SafePath),
    Delete(SafePath, ContentHash),
}

impl Expected {
    pub(super) fn is_met_by(self, found: Found) -> bool {
        match self {
            Self::Anything => true,
            Self::Nothing => found == Found::Nothing,
            Self::Folder => found == Found::Folder,
            Self::Something => found != Found::Nothing,
            Self::File(hash) => found == Found::File(hash),
        }
    }
}

impl ActionOutline {
    pub(super) fn of(action: &Action) -> Self {
        match action {
            Action::MakeFolder { path } => Self::MakeFolder(path.clone()),
            Action::RemoveFolder { path } => Self::RemoveFolder(path.clone()),
            Action::Create { path, content } => Self::Create(path.clone(), content.hash()),
            Action::Edit { path, before, after } => Self::Edit(path.clone(), before.hash(), after.hash()),
            Action::Move { from, to } => Self::Move(from.clone(), to.clone()),
            Action::Delete { path, content, .. } => Self::Delete(path.clone(), content.hash()),
        }
    }

    /// From the journal; `None` for a record that no version of ours wrote.
    pub(super) fn logged(action: &JournalAction) -> Option<Self> {
        let path = action.path.clone();
        Some(match action.kind.as_str() {
            "make-folder" => Self::MakeFolder(path),
            "remove-folder" => Self::RemoveFolder(path),
            "create" => Self::Create(path, action.after?),
            "edit" => Self::Edit(path, action.before?, action.after?),
            "move" => Self::Move(path, action.to.clone()?),
            "delete" => Self::Delete(path, action.before?),
            _ => return None,
        })
    }

    /// The path it is done to.
    pub(super) fn path(&self) -> &SafePath {
        match self {
            Self::MakeFolder(path)
            | Self::RemoveFolder(path)
            | Self::Create(path, _)
            | Self::Edit(path, ..)
            | Self::Move(path, _)
            | Self::Delete(path, _) => path,
        }
    }

    /// That, and for a move the one it leads to.
    pub(super) fn paths(&self) -> impl Iterator<Item = &SafePath> {
        self.before().into_iter().flatten().map(|(path, _)| path)
    }

    /// What must be before it: one path, for a move two.
    fn before(&self) -> [Option<(&SafePath, Expected)>; 2] {
        match self {
            Self::MakeFolder(path) | Self::Create(path, _) => [Some((path, Expected::Nothing)), None],
            Self::RemoveFolder(path) => [Some((path, Expected::Anything)), None],
            Self::Edit(path, before, _) => [Some((path, Expected::File(*before))), None],
            Self::Delete(path, before) => [Some((path, Expected::File(*before))), None],
            Self::Move(from, to) => [Some((from, Expected::Something)), Some((to, Expected::Nothing))],
        }
    }

    /// What must be after it.
    fn after(&self) -> [Option<(&SafePath, Expected)>; 2] {
        match self {
            Self::MakeFolder(path) => [Some((path, Expected::Folder)), None],
            // It may not have been empty.
            Self::RemoveFolder(path) => [Some((path, Expected::Anything)), None],
            Self::Create(path, after) | Self::Edit(path, _, after) => [Some((path, Expected::File(*after))), None],
            Self::Delete(path, _) => [Some((path, Expected::Nothing)), None],
            Self::Move(from, to) => [Some((from, Expected::Nothing)), Some((to, Expected::Something))],
        }
    }
}

/// What must be where when the first `done` steps are done.
///
/// Of each path the last step before that point decides, else the first one after it; paths that a move carries
/// along are followed.
pub(super) fn expected(steps: &[ActionOutline], done: usize) -> BTreeMap<SafePath, Expected> {
    let (past, coming) = steps.split_at(done.min(steps.len()));
    let mut found: BTreeMap<SafePath, Expected> = BTreeMap::new();
    let mut passed = Passed::default();
    for step in past.iter().rev() {
        for (path, expected) in step.after().into_iter().flatten() {
            if let Some(now) = passed.follow(path, Direction::Forward) {
                note(&mut found, now, expected);
            }
        }
        passed.add(step);
    }
    passed = Passed::default();
    for step in coming {
        for (path, expected) in step.before().into_iter().flatten() {
            if let Some(now) = passed.follow(path, Direction::Back) {
                note(&mut found, now, expected);
            }
        }
        passed.add(step);
    }
    found
}

/// The steps between a step and the point in question, the nearest to the point first.
#[derive(Default)]
struct Passed<'s> {
    steps: Vec<&'s ActionOutline>,
    has_moves: bool,
    touched: BTreeSet<&'s SafePath>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Forward,
    Back,
}

impl<'s> Passed<'s> {
    fn add(&mut self, step: &'s ActionOutline) {
        self.has_moves |= matches!(step, ActionOutline::Move(..));
        self.touched.extend(step.before().into_iter().flatten().map(|(path, _)| path));
        self.steps.push(step);
    }

    /// Where a path of a step is at the point in question; `None` when a step in between decides what is there.
    fn follow(&self, path: &SafePath, direction: Direction) -> Option<SafePath> {
        if !self.has_moves {
            return (!self.touched.contains(path)).then(|| path.clone());
        }
        let mut path = path.clone();
        for step in self.steps.iter().rev() {
            match (step, direction) {
                (ActionOutline::Move(from, to), Direction::Forward) => match path.moved(from, to) {
                    Some(moved) => path = moved,
                    None if path.is_in(to) => return None,
                    None => {}
                },
                (ActionOutline::Move(from, to), Direction::Back) => match path.moved(to, from) {
                    Some(moved) => path = moved,
                    None if path.is_in(from) => return None,
                    None => {}
                },
                (step, _) if step.before()[0].is_some_and(|(other, _)| *other == path) => return None,
                _ => {}
            }
        }
        Some(path)
    }
}

/// The first word on a path counts; that something is there is made exact by what it holds.
fn note(found: &mut BTreeMap<SafePath, Expected>, path: SafePath, expected: Expected) {
    match found.get(&path) {
        None => drop(found.insert(path, expected)),
        Some(Expected::Something) if matches!(expected, Expected::File(_) | Expected::Folder) => {
            found.insert(path, expected);
        }
        Some(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> SafePath {
        SafePath::new(text).unwrap()
    }

    #[test]
    fn every_point_of_a_transaction_expects_its_own_files() {
        let hash = |text: &str| ContentHash::of(text.as_bytes());
        let steps = [
            ActionOutline::MakeFolder(path("new")),
            ActionOutline::Move(path("a.md"), path("new/a.md")),
            ActionOutline::Edit(path("new/a.md"), hash("1"), hash("2")),
            ActionOutline::Create(path("a.md"), hash("3")),
        ];
        let at = |done: usize| {
            let found = expected(&steps, done);
            ["new", "a.md", "new/a.md"].map(|name| found[&path(name)])
        };
        use Expected::{File, Folder, Nothing};
        assert_eq!(at(0), [Nothing, File(hash("1")), Nothing]);
        assert_eq!(at(1), [Folder, File(hash("1")), Nothing]);
        assert_eq!(at(2), [Folder, Nothing, File(hash("1"))]);
        assert_eq!(at(3), [Folder, Nothing, File(hash("2"))]);
        assert_eq!(at(4), [Folder, File(hash("3")), File(hash("2"))]);
    }

    #[test]
    fn what_lies_in_a_folder_moves_with_it() {
        let hash = |text: &str| ContentHash::of(text.as_bytes());
        let steps = [
            ActionOutline::Edit(path("f/a.md"), hash("1"), hash("2")),
            ActionOutline::Move(path("f"), path("g")),
            ActionOutline::Edit(path("g/b.md"), hash("3"), hash("4")),
        ];
        assert_eq!(expected(&steps, 0)[&path("f/b.md")], Expected::File(hash("3")));
        assert_eq!(expected(&steps, 2)[&path("g/a.md")], Expected::File(hash("2")));
        assert_eq!(expected(&steps, 3)[&path("g/b.md")], Expected::File(hash("4")));
    }

    #[test]
    fn what_was_there_before_is_not_what_comes_after() {
        let hash = |text: &str| ContentHash::of(text.as_bytes());
        let steps = [
            ActionOutline::Move(path("a.md"), path("b.md")),
            ActionOutline::Create(path("a.md"), hash("1")),
            ActionOutline::Edit(path("a.md"), hash("1"), hash("2")),
            ActionOutline::Delete(path("b.md"), hash("0")),
            ActionOutline::Move(path("a.md"), path("b.md")),
        ];
        assert_eq!(expected(&steps, 0)[&path("a.md")], Expected::File(hash("0")));
        assert_eq!(expected(&steps, 5)[&path("b.md")], Expected::File(hash("2")));
        assert_eq!(expected(&steps, 5)[&path("a.md")], Expected::Nothing);
    }
}
