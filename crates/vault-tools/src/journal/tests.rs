//! The journal by example: what is written is read, numbers are never given twice, and it can be pruned.

use super::*;
use crate::action::{Action, ActionOutline, DeleteMode};
use crate::content::Content;
use crate::sandbox::{SafePath, SavedMetadata};
use crate::state::State;

fn path(text: &str) -> SafePath {
    SafePath::new(text).unwrap()
}

fn actions() -> Vec<(Action, SavedMetadata)> {
    let saved = SavedMetadata::new(Some("e\u{301}.md".into()), Some(0o600));
    let none = SavedMetadata::default;
    vec![
        (Action::MakeFolder { path: path("é") }, none()),
        (Action::Create { path: path("é/a.md"), content: "new".into() }, none()),
        (Action::Edit { path: path("b.md"), before: "was\n2\n\0".into(), after: "is".into() }, none()),
        (Action::Move { from: path("c.md"), to: path("d.md") }, none()),
        (Action::Delete { path: path("é.md"), content: "gone".into(), mode: DeleteMode::Permanent }, saved),
    ]
}

fn state() -> (tempfile::TempDir, State) {
    let folder = tempfile::tempdir().unwrap();
    let state = State::at(folder.path());
    (folder, state)
}

fn begin<'s>(state: &'s State, actions: &[(Action, SavedMetadata)]) -> Writer<'s> {
    let new = NewTransaction { label: "a \"label\"".into(), kind: TransactionKind::Apply, of: None };
    Writer::begin(state, &new, &actions.iter().map(|(action, saved)| (action, saved)).collect::<Vec<_>>()).unwrap()
}

fn transaction(state: &State) -> TransactionId {
    let mut writer = begin(state, &actions());
    writer.end(EntryState::Done, 5).unwrap();
    writer.entry.id
}

#[test]
fn what_is_written_is_read() {
    let (_folder, state) = state();
    let mut writer = begin(&state, &actions());
    let cut = unfinished(&state).unwrap().unwrap();
    assert_eq!((cut.id, cut.done, cut.state, cut.is_damaged), (TransactionId(1), 0, EntryState::Unfinished, false));
    writer.end(EntryState::Done, 5).unwrap();
    assert!(unfinished(&state).unwrap().is_none() && !has_damage(&state).unwrap());
    let (mut read, is_damaged) = entries(&state).unwrap();
    let read = read.remove(0);
    assert_eq!(
        (read.id, read.label.as_str(), read.done, read.state),
        (TransactionId(1), "a \"label\"", 5, EntryState::Done)
    );
    assert!(!read.is_damaged && !is_damaged);
    let contents: Vec<Content> = contents(&state, &read).unwrap().into_iter().flatten().collect();
    assert_eq!(contents, [Content::from("was\n2\n\0"), Content::from("gone")]);
    let written: Vec<ActionOutline> = actions().iter().map(|(action, _)| action.outline()).collect();
    assert_eq!(read.actions.iter().map(|action| action.outline.clone()).collect::<Vec<_>>(), written);
    assert_eq!(read.actions[4].saved, actions()[4].1);
}

#[test]
fn numbers_are_never_given_twice() {
    let (_folder, state) = state();
    for _ in 0..3 {
        transaction(&state);
    }
    let all = PruneOptions::default().older_than(std::time::Duration::ZERO);
    let pruned = prune(&state, &all).unwrap();
    assert_eq!((pruned.transactions, pruned.left), (3, 0));
    assert!(entries(&state).unwrap().0.is_empty() && !has_damage(&state).unwrap());
    assert_eq!(transaction(&state), TransactionId(4));
    transaction(&state);
    // Five actions are about two thousand bytes.
    let pruned = prune(&state, &PruneOptions::default().max_bytes(3000)).unwrap();
    assert_eq!((pruned.transactions, pruned.left), (1, 1));
    assert_eq!(transaction(&state), TransactionId(6));
    assert_eq!(entries(&state).unwrap().0.iter().map(|entry| entry.id.0).collect::<Vec<_>>(), [5, 6]);
}

#[cfg(unix)]
#[test]
fn nobody_else_can_read_it() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, state) = state();
    transaction(&state);
    let entries: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(Result::unwrap).collect();
    assert!(!entries.is_empty());
    for entry in entries {
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{:?}", entry.path());
    }
}
