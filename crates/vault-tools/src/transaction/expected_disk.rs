//! The expected state of the disk after the first n actions of a transaction. This module does no I/O.
//!
//! With n = 0 this is the state that is required before the transaction; with all actions done, before its undo. An
//! interrupted transaction is at the point at which the disk is as expected.

use std::collections::BTreeMap;

use crate::action::{Action, ActionOutline};
use crate::content::ContentHash;
use crate::sandbox::{PathState, SafePath};

/// The expected state of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExpectedState {
    /// Any state.
    Anything,
    Nothing,
    Folder,
    /// A file, folder or link must exist.
    Something,
    File(ContentHash),
}

impl ExpectedState {
    pub(super) fn is_met_by(self, found: PathState) -> bool {
        match self {
            Self::Anything => true,
            Self::Nothing => found == PathState::Nothing,
            Self::Folder => found == PathState::Folder,
            Self::Something => found != PathState::Nothing,
            Self::File(hash) => found == PathState::File(hash),
        }
    }
}

/// The expected state of each path that a transaction concerns, at a point between two of its actions.
#[derive(Debug, Default)]
pub(super) struct ExpectedPaths(pub BTreeMap<SafePath, ExpectedState>);

impl ExpectedPaths {
    /// Returns the state after all actions.
    pub(super) fn after<'a>(actions: impl Iterator<Item = &'a ActionOutline>) -> Self {
        let mut expected = Self::default();
        actions.for_each(|action| drop(expected.advance(action)));
        expected
    }

    /// Returns the state before all actions.
    pub(super) fn before<'a>(actions: impl DoubleEndedIterator<Item = &'a ActionOutline> + Clone) -> Self {
        let mut expected = Self::after(actions.clone());
        actions.rev().for_each(|action| drop(expected.step_back(action)));
        expected
    }

    /// Advances from before an action to after it. Returns the paths whose expected state changes.
    fn advance(&mut self, action: &ActionOutline) -> Vec<SafePath> {
        match action {
            Action::MakeFolder { path } => self.set(path, ExpectedState::Folder),
            // It may not have been empty.
            Action::RemoveFolder { path } => self.set(path, ExpectedState::Anything),
            Action::Create { path, content } => self.set(path, ExpectedState::File(*content)),
            Action::Edit { path, after, .. } => self.set(path, ExpectedState::File(*after)),
            Action::Delete { path, .. } => self.set(path, ExpectedState::Nothing),
            Action::Move { from, to } => self.move_along(from, to),
        }
    }

    /// Goes back from after an action to before it. Returns the paths whose expected state changes.
    pub(super) fn step_back(&mut self, action: &ActionOutline) -> Vec<SafePath> {
        match action {
            Action::MakeFolder { path } | Action::Create { path, .. } => self.set(path, ExpectedState::Nothing),
            Action::RemoveFolder { path } => self.set(path, ExpectedState::Anything),
            Action::Edit { path, before, .. } => self.set(path, ExpectedState::File(*before)),
            Action::Delete { path, content, .. } => self.set(path, ExpectedState::File(*content)),
            Action::Move { from, to } => self.move_along(to, from),
        }
    }

    fn set(&mut self, path: &SafePath, expected: ExpectedState) -> Vec<SafePath> {
        self.0.insert(path.clone(), expected);
        vec![path.clone()]
    }

    /// Moves the expected state at and below `from` to `to`, where nothing was before.
    fn move_along(&mut self, from: &SafePath, to: &SafePath) -> Vec<SafePath> {
        // `folder-x` sorts between `folder` and `folder/x`.
        let below = |top: &SafePath| {
            let named_alike = self.0.range(top..).take_while(|(path, _)| path.as_str().starts_with(top.as_str()));
            named_alike.map(|(path, _)| path.clone()).filter(|path| path.is_in(top)).collect::<Vec<SafePath>>()
        };
        let mut changed = [below(from), below(to)].concat();
        let left: Vec<_> = changed.iter().filter_map(|path| Some((path.moved(from, to)?, self.0[path]))).collect();
        for path in &changed {
            self.0.remove(path);
        }
        changed.extend(left.iter().map(|(path, _)| path.clone()));
        self.0.extend(left);
        self.0.entry(to.clone()).or_insert(ExpectedState::Something);
        self.0.insert(from.clone(), ExpectedState::Nothing);
        changed.extend([from.clone(), to.clone()]);
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::DeleteMode;

    fn path(text: &str) -> SafePath {
        SafePath::new(text).unwrap()
    }

    fn hash(text: &str) -> ContentHash {
        ContentHash::of(text.as_bytes())
    }

    fn create(name: &str, content: &str) -> ActionOutline {
        Action::Create { path: path(name), content: hash(content) }
    }

    fn edit(name: &str, before: &str, after: &str) -> ActionOutline {
        Action::Edit { path: path(name), before: hash(before), after: hash(after) }
    }

    fn moved(from: &str, to: &str) -> ActionOutline {
        Action::Move { from: path(from), to: path(to) }
    }

    fn expected(actions: &[ActionOutline], done: usize) -> BTreeMap<SafePath, ExpectedState> {
        let mut expected = ExpectedPaths::after(actions.iter());
        actions[done..].iter().rev().for_each(|action| drop(expected.step_back(action)));
        expected.0
    }

    #[test]
    fn every_point_of_a_transaction_expects_its_own_files() {
        let actions = [
            Action::MakeFolder { path: path("new") },
            moved("a.md", "new/a.md"),
            edit("new/a.md", "1", "2"),
            create("a.md", "3"),
        ];
        let at = |done: usize| {
            let found = expected(&actions, done);
            ["new", "a.md", "new/a.md"].map(|name| found[&path(name)])
        };
        use ExpectedState::{File, Folder, Nothing};
        assert_eq!(at(0), [Nothing, File(hash("1")), Nothing]);
        assert_eq!(at(1), [Folder, File(hash("1")), Nothing]);
        assert_eq!(at(2), [Folder, Nothing, File(hash("1"))]);
        assert_eq!(at(3), [Folder, Nothing, File(hash("2"))]);
        assert_eq!(at(4), [Folder, File(hash("3")), File(hash("2"))]);
    }

    #[test]
    fn what_lies_in_a_folder_moves_with_it() {
        let actions = [edit("f/a.md", "1", "2"), moved("f", "g"), edit("g/b.md", "3", "4")];
        assert_eq!(expected(&actions, 0)[&path("f/b.md")], ExpectedState::File(hash("3")));
        assert_eq!(expected(&actions, 2)[&path("g/a.md")], ExpectedState::File(hash("2")));
        assert_eq!(expected(&actions, 3)[&path("g/b.md")], ExpectedState::File(hash("4")));
    }

    #[test]
    fn what_was_there_before_is_not_what_comes_after() {
        let actions = [
            moved("a.md", "b.md"),
            create("a.md", "1"),
            edit("a.md", "1", "2"),
            Action::Delete { path: path("b.md"), content: hash("0"), mode: DeleteMode::Permanent },
            moved("a.md", "b.md"),
        ];
        assert_eq!(expected(&actions, 0)[&path("a.md")], ExpectedState::File(hash("0")));
        assert_eq!(expected(&actions, 5)[&path("b.md")], ExpectedState::File(hash("2")));
        assert_eq!(expected(&actions, 5)[&path("a.md")], ExpectedState::Nothing);
    }
}
