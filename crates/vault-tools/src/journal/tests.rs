//! The journal by example: written, read, cut at every byte, hurt at every byte, of another version, pruned.

use super::*;
use crate::action::Gone;
use crate::content::Content;
use crate::error::ErrorKind;
use crate::sandbox::SafePath;

fn path(text: &str) -> SafePath {
    SafePath::new(text).unwrap()
}

fn actions() -> Vec<(Action, Kept)> {
    let kept = Kept::new(Some("e\u{301}.md".into()), Some(0o600));
    vec![
        (Action::MakeFolder { path: path("é") }, Kept::default()),
        (Action::Create { path: path("é/a.md"), content: "new".into() }, Kept::default()),
        (Action::Edit { path: path("b.md"), before: "vt1 was\nvt1 2\n\0".into(), after: "is".into() }, Kept::default()),
        (Action::Move { from: path("c.md"), to: path("d.md") }, Kept::default()),
        (Action::Delete { path: path("é.md"), content: "gone".into(), to: Gone::ForGood }, kept),
    ]
}

fn state() -> (tempfile::TempDir, State) {
    let folder = tempfile::tempdir().unwrap();
    let state = State::at(folder.path());
    (folder, state)
}

fn begin<'s>(state: &'s State, actions: &[(Action, Kept)]) -> Writer<'s> {
    let new = NewRun { label: "a \"label\"".into(), kind: RunKind::Apply, of: None };
    Writer::begin(state, &new, actions.iter().map(|(action, kept)| (action, kept))).unwrap()
}

fn run(state: &State) -> RunId {
    let mut writer = begin(state, &actions());
    writer.end(Ending::Done(5)).unwrap();
    writer.run()
}

fn bytes(state: &State) -> Vec<u8> {
    std::fs::read(state.folder().join(FILE)).unwrap()
}

fn put(state: &State, bytes: &[u8]) {
    std::fs::write(state.folder().join(FILE), bytes).unwrap();
}

#[test]
fn what_is_written_is_read() {
    let (_folder, state) = state();
    let mut writer = begin(&state, &actions());
    writer.did(1);
    let cut = runs(&state).unwrap();
    assert_eq!((cut.len(), cut[0].is_ready, cut[0].done, cut[0].is_over), (1, true, 1, false));
    assert!(!is_at_rest(&state).unwrap());
    let length = bytes(&state).len();
    writer.end(Ending::Done(5)).unwrap();
    assert_eq!(bytes(&state).len(), length, "to end a run takes no room");
    assert!(is_at_rest(&state).unwrap());
    let read = runs(&state).unwrap().remove(0);
    assert_eq!((read.id, read.label.as_str(), read.done, read.is_over), (RunId(1), "a \"label\"", 5, true));
    assert!(!read.is_damaged);
    let contents: Vec<Content> = read.actions.iter().map(|action| content_of(&state, action).unwrap()).collect();
    let expected: [Content; 5] = ["".into(), "".into(), "vt1 was\nvt1 2\n\0".into(), "".into(), "gone".into()];
    assert_eq!(contents, expected);
    assert_eq!(read.actions[3].to.as_ref().map(SafePath::as_str), Some("d.md"));
    assert_eq!(read.actions[2].after, Some(Content::from("is").hash()));
    assert_eq!(read.actions[4].kept, actions()[4].1);
}

#[test]
fn a_frame_that_was_cut_is_not_there() {
    let (_folder, state) = state();
    run(&state);
    let whole = bytes(&state);
    begin(&state, &actions());
    let both = bytes(&state);
    let slot_at = both.len() - slot_length() as usize;
    for length in whole.len()..both.len() {
        put(&state, &both[..length]);
        let (cut, aside) = mend(&state).unwrap();
        // All but the word of how far it has come is there: for all we know, it has begun.
        assert_eq!((cut.is_some(), aside), (length >= slot_at, None), "{length}");
        if let Some(cut) = cut {
            Writer::resume(&state, &cut).unwrap().end(Ending::RolledBack).unwrap();
        }
        assert!(is_at_rest(&state).unwrap(), "{length}");
        assert_eq!(run(&state), RunId(if length >= slot_at { 3 } else { 2 }), "{length}");
        let runs = runs(&state).unwrap();
        assert!(runs.iter().all(|run| run.is_over && !run.is_damaged), "{length}");
    }
}

/// Of three runs, any byte may be hurt: what can be read stays, and nothing is ever cut off.
#[test]
fn a_bad_byte_costs_one_run() {
    let (_folder, state) = state();
    let mut starts = Vec::new();
    for _ in 0..3 {
        starts.push(bytes_or_none(&state).len());
        run(&state);
    }
    let good = bytes(&state);
    let last_slot = good.len() - slot_length() as usize;
    let damaged_run = |at: usize| starts.iter().rposition(|start| *start <= at).unwrap();
    for at in 0..last_slot {
        let mut hurt = good.clone();
        hurt[at] ^= 1;
        put(&state, &hurt);
        let read = runs(&state).unwrap_or_else(|error| panic!("{at}: {error}"));
        let hurt_run = damaged_run(at);
        for (number, run) in read.iter().enumerate() {
            let lost = 3 - read.len();
            assert!(lost == 0, "{at}: {read:?}");
            assert_eq!(run.id, RunId(number as u64 + 1));
            let contents = run.actions.iter().all(|action| content_of(&state, action).is_ok());
            let is_whole = !run.is_damaged && contents && run.actions.len() == 5 && run.done == 5;
            // A bit of a blank behind a frame changes nothing.
            assert!(is_whole || number == hurt_run, "{at}: {run:?}");
        }
        assert!(mend(&state).unwrap().0.is_none(), "{at}: nothing was under way");
        assert_eq!(bytes(&state), hurt, "{at}");
        assert_eq!(run(&state), RunId(4), "{at}");
        assert_eq!(bytes(&state)[..hurt.len()], hurt, "{at}: the file is only added to");
    }
    // In the last word of the last run it cannot be told from a crash.
    for at in last_slot..good.len() {
        let mut hurt = good.clone();
        hurt[at] ^= 1;
        put(&state, &hurt);
        let read = runs(&state);
        if let Ok(runs) = read {
            assert!(runs.len() == 3 && runs[..2].iter().all(|run| run.is_over && !run.is_damaged), "{at}");
        }
    }
}

fn bytes_or_none(state: &State) -> Vec<u8> {
    std::fs::read(state.folder().join(FILE)).unwrap_or_default()
}

#[test]
fn what_a_newer_version_wrote_is_left_alone() {
    let (_folder, state) = state();
    run(&state);
    let mut both = bytes(&state);
    both.extend(b"vt2 12 0 something else\n{\"new\":true}\n\n");
    put(&state, &both);
    assert_eq!(runs(&state).unwrap_err().kind(), ErrorKind::Journal);
    assert_eq!(mend(&state).unwrap_err().kind(), ErrorKind::Journal);
    let new = NewRun { label: String::new(), kind: RunKind::Apply, of: None };
    assert_eq!(Writer::begin(&state, &new, [].into_iter()).unwrap_err().kind(), ErrorKind::Journal);
    assert_eq!(prune(&state, &PruneOptions::default()).unwrap_err().kind(), ErrorKind::Journal);
    assert_eq!(bytes(&state), both);
}

#[test]
fn what_no_crash_leaves_is_kept_aside() {
    let (_folder, state) = state();
    run(&state);
    let good = bytes(&state);
    let garbage = b"something else that was written over the end of the file\n".repeat(9);
    put(&state, &[good.as_slice(), &garbage].concat());
    let (cut, aside) = mend(&state).unwrap();
    assert_eq!((cut.is_none(), bytes(&state)), (true, good));
    assert_eq!(std::fs::read(aside.unwrap()).unwrap(), garbage);
}

/// A content is never taken for frames, even if the head before it is hurt.
#[test]
fn a_note_that_holds_a_journal_is_a_note() {
    let (_folder, state) = state();
    let mut other =
        frame(&Record::Begin { run: RunId(9), time_ms: 0, label: "x".into(), kind: RunKind::Apply, of: None }, b"");
    other.extend(frame(&Record::Ready { run: RunId(9), actions: 0 }, b""));
    other.extend(slot(&Record::End { run: RunId(9), done: 0, rolled_back: false }));
    let note = vec![(Action::Delete { path: path("a.md"), content: other.into(), to: Gone::ForGood }, Kept::default())];
    begin(&state, &note).end(Ending::Done(1)).unwrap();
    run(&state);
    let good = bytes(&state);
    let head = good.windows(4).position(|four| four == b"\nvt1").unwrap() + 1;
    let mut hurt = good;
    hurt[head] = b'x';
    put(&state, &hurt);
    let read = runs(&state).unwrap();
    assert_eq!(read.iter().map(|run| (run.id.0, run.is_damaged)).collect::<Vec<_>>(), [(1, true), (2, false)]);
}

#[test]
fn numbers_are_never_given_twice() {
    let (_folder, state) = state();
    for _ in 0..3 {
        run(&state);
    }
    let all = PruneOptions { older_than: Some(std::time::Duration::ZERO), max_bytes: None };
    let pruned = prune(&state, &all).unwrap();
    assert_eq!((pruned.runs, pruned.left), (3, 0));
    assert!(is_at_rest(&state).unwrap() && runs(&state).unwrap().is_empty());
    assert_eq!(run(&state), RunId(4));
    run(&state);
    let one = bytes(&state).len() as u64 / 2 + 2 * slot_length();
    let pruned = prune(&state, &PruneOptions { older_than: None, max_bytes: Some(one) }).unwrap();
    assert_eq!((pruned.runs, pruned.left), (1, 1));
    assert_eq!(run(&state), RunId(6));
    assert_eq!(runs(&state).unwrap().iter().map(|run| run.id.0).collect::<Vec<_>>(), [5, 6]);
}

/// Whoever begins a run reads its end alone: what lies before is neither read nor missed.
#[test]
fn a_long_journal_costs_a_new_run_nothing() {
    let (_folder, state) = state();
    run(&state);
    let mut bytes = bytes(&state);
    let end = bytes.len() - slot_length() as usize;
    bytes[..end].fill(b'\n');
    put(&state, &bytes);
    assert!(is_at_rest(&state).unwrap());
    assert!(mend(&state).unwrap().0.is_none());
    assert_eq!(run(&state), RunId(2));
}
