//! Taken back where somebody was at work since, and with all that a file has besides its text.

use super::tests::{Fixture, path, write};
use super::*;
use crate::error::ErrorKind;
use crate::sandbox::View;
use crate::*;

#[test]
fn folders_that_are_gone_are_made_again() {
    type Propose = fn(&mut Overlay<'_>);
    let proposals: [(Propose, Force); 5] = [
        (|overlay| drop(overlay.delete(&path("x/y/a.md"), DeleteMode::Trash).unwrap()), Force::No),
        (|overlay| drop(overlay.delete(&path("x/y/a.md"), DeleteMode::Permanent).unwrap()), Force::No),
        (|overlay| drop(overlay.delete(&path("x/y"), DeleteMode::Permanent).unwrap()), Force::No),
        (|overlay| drop(overlay.rename(&path("x/y/a.md"), &path("z.md")).unwrap()), Force::No),
        (
            |overlay| assert_eq!(overlay.write(&path("x/y/a.md"), "other").unwrap(), WriteOutcome::Overwritten),
            Force::Yes,
        ),
    ];
    for (number, (propose, force)) in proposals.into_iter().enumerate() {
        let fixture = Fixture::new("//- x/y/a.md\nhi\n//- s.md\n[[a]]\n");
        let before = fixture.snapshot();
        let change = |overlay: &mut Overlay<'_>| {
            propose(overlay);
            Ok(())
        };
        fixture.change(change).unwrap();
        std::fs::remove_dir_all(fixture.root().join("x")).unwrap();
        let after = fixture.snapshot();
        fixture.vault.undo(None, force).unwrap_or_else(|error| panic!("{number}: {error}"));
        let mut now = fixture.snapshot();
        now.retain(|name, _| !name.starts_with(".trash"));
        assert_eq!(now, before, "{number}");
        fixture.vault.redo(Force::No).unwrap();
        assert_eq!(fixture.snapshot(), after, "{number}: what the undo made goes again");
    }
}

#[test]
fn nothing_that_is_left_is_no_undo() {
    let fixture = Fixture::new("//- a.md\nhi\n");
    fixture.change(|overlay| overlay.delete(&path("a.md"), DeleteMode::Trash)).unwrap();
    std::fs::remove_dir_all(fixture.root().join(".trash")).unwrap();
    let refused = fixture.vault.undo(None, Force::Yes).unwrap_err();
    assert!(refused.to_string().contains(".trash/a.md is gone"), "{refused}");
    assert_eq!(fixture.vault.transactions().unwrap()[0].status, TransactionStatus::Done);
}

#[test]
fn what_a_forced_undo_loses_is_in_its_preview() {
    let fixture = Fixture::new("//- a.md\none\n");
    fixture.change(|overlay| overlay.write(&path("a.md"), "two")).unwrap();
    write(fixture.root(), "a.md", "three");
    let preview = fixture.vault.preview_undo(None, Force::Yes).unwrap().preview();
    assert_eq!(preview.notices, ["lost: a.md: the changes in it after the transaction"]);
}

#[test]
fn a_file_is_named_once_however_often_it_was_changed() {
    let fixture = Fixture::new("//- a.md\none\n//- b.md\n[[a]] and [[a]]\n");
    let change = |overlay: &mut Overlay<'_>| {
        for text in ["two", "three", "four"] {
            overlay.write(&path("a.md"), text)?;
            overlay.mark();
        }
        overlay.delete(&path("a.md"), DeleteMode::Trash)
    };
    let mut overlay = fixture.vault.overlay();
    change(&mut overlay).unwrap();
    assert_eq!(overlay.change().preview().notices.len(), 1, "one line with two links that dangle");
    fixture.change(change).unwrap();
    write(fixture.root(), ".trash/a.md", "changed");
    let preview = fixture.vault.preview_undo(None, Force::Yes).unwrap().preview();
    assert_eq!(preview.notices, ["lost: a.md: the changes in it after the transaction"]);
}

#[test]
fn a_folder_that_stays_is_not_said_to_go() {
    for file in ["f/mine.md", "f/.DS_Store"] {
        let fixture = Fixture::new("//- a.md\n\n");
        fixture.change(|overlay| overlay.create(&path("f/g/new.md"), "x")).unwrap();
        write(fixture.root(), file, "mine");
        let preview = fixture.vault.preview_undo(None, Force::No).unwrap().preview();
        let folders: Vec<&str> = preview.folders.iter().map(|folder| folder.path.as_str()).collect();
        assert_eq!(folders, ["f/g"], "{file}");
        assert_eq!(preview.notices, ["the folder f stays, since there are other files in it"]);
        fixture.vault.undo(None, Force::No).unwrap();
        assert!(fixture.root().join(file).exists() && !fixture.root().join("f/g").exists());
    }
}

#[test]
fn a_folder_with_hidden_files_cannot_be_deleted_for_good() {
    let fixture = Fixture::new("//- x/a.md\n1\n//- x/y/.DS_Store\n\n//- s.md\n\n");
    let before = fixture.snapshot();
    let refused = fixture.vault.overlay().delete(&path("x"), DeleteMode::Permanent).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Refused);
    assert!(refused.to_string().contains(".DS_Store") && refused.to_string().contains("trash"), "{refused}");
    // Wherever the folder would be by then; one that is new where it was is another one.
    let mut overlay = fixture.vault.overlay();
    overlay.rename(&path("x"), &path("z")).unwrap();
    overlay.delete(&path("z"), DeleteMode::Permanent).unwrap_err();
    overlay.make_folder(&path("x/y")).unwrap();
    overlay.delete(&path("x"), DeleteMode::Permanent).unwrap();
    // To the trash it goes with all that is in it, and what that is is shown.
    let mut overlay = fixture.vault.overlay();
    overlay.delete(&path("x"), DeleteMode::Trash).unwrap();
    let change = overlay.change();
    let files = change.preview().files;
    assert_eq!(files.len(), 1);
    assert_eq!(files[0].inside, ["x/a.md", "x/y/.DS_Store"]);
    assert!(change.preview().to_string().contains("  x/y/.DS_Store\n"));
    fixture.vault.apply(&change, ApplyOptions::default()).unwrap();
    fixture.vault.undo(None, Force::No).unwrap();
    assert_eq!(fixture.snapshot(), before);
}

#[test]
fn a_folder_that_is_not_empty_by_now_is_a_conflict() {
    let fixture = Fixture::new("//- x/a.md\n1\n//- s.md\n\n");
    let mut overlay = fixture.vault.overlay();
    overlay.delete(&path("x"), DeleteMode::Permanent).unwrap();
    write(fixture.root(), "x/.hidden", "mine");
    let before = fixture.snapshot();
    let refused = fixture.vault.apply(&overlay.change(), ApplyOptions::default()).unwrap_err();
    assert_eq!((refused.kind(), fixture.snapshot()), (ErrorKind::Conflict, before), "{refused}");
}

#[cfg(unix)]
#[test]
fn permissions_come_back() {
    use std::os::unix::fs::PermissionsExt;
    let fixture = Fixture::new("//- f/g/a.md\nx\n//- f/b.md\nx\n//- c.md\nx\n");
    let at = |name: &str| fixture.root().join(name);
    let modes = [("f", 0o700), ("f/g", 0o750), ("f/g/a.md", 0o600), ("f/b.md", 0o664), ("c.md", 0o400)];
    for (name, mode) in modes {
        std::fs::set_permissions(at(name), std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let check = |what: &str| {
        for (name, mode) in modes {
            assert_eq!(std::fs::metadata(at(name)).unwrap().permissions().mode() & 0o7777, mode, "{name} {what}");
        }
    };
    let delete = |overlay: &mut Overlay<'_>| {
        // Under another name by then.
        overlay.rename(&path("f"), &path("h"))?;
        overlay.delete(&path("h"), DeleteMode::Permanent)?;
        overlay.delete(&path("c.md"), DeleteMode::Permanent)
    };
    fixture.change(delete).unwrap();
    fixture.vault.undo(None, Force::No).unwrap();
    check("after undo");
    fixture.vault.redo(Force::No).unwrap();
    assert!(!at("f").exists());
    fixture.vault.undo(None, Force::No).unwrap();
    check("after redo and undo");
    // And where a run is put back.
    let mut overlay = fixture.vault.overlay();
    delete(&mut overlay).unwrap();
    let change = overlay.change();
    let last = change.actions().len() - 1;
    let mut progress =
        |now: ApplyProgress| if now.index == last { ControlFlow::StopAt(0) } else { ControlFlow::Continue };
    let options = ApplyOptions::new().progress(&mut progress);
    fixture.vault.apply(&change, options).unwrap();
    check("after a stop");
}

#[cfg(unix)]
#[test]
fn whoever_writes_over_a_marked_file_is_told() {
    use std::os::unix::fs::PermissionsExt;
    let fixture = Fixture::new("//- a.md\nx\n//- b.md\nx\n//- c.md\nx\n");
    std::fs::set_permissions(fixture.root().join("a.md"), std::fs::Permissions::from_mode(0o444)).unwrap();
    std::fs::hard_link(fixture.root().join("b.md"), fixture.folder.path().join("elsewhere.md")).unwrap();
    let mut overlay = fixture.vault.overlay();
    let before = overlay.mark();
    for name in ["a.md", "b.md", "c.md"] {
        overlay.write(&path(name), "y").unwrap();
    }
    let notices = overlay.change().preview().notices;
    assert!(notices.len() == 2 && notices[0].starts_with("a.md is marked read-only"), "{notices:?}");
    assert!(notices[1].starts_with("b.md is one of 2 hard links"), "{notices:?}");
    overlay.rollback(before);
    assert!(overlay.change().preview().notices.is_empty());
}

/// Names as other systems spell them are not spelt anew by an undo.
#[cfg(target_os = "linux")]
#[test]
fn names_come_back_as_the_disk_had_them() {
    let fixture = Fixture::new("//- s.md\n[[caf\u{e9}]]\n");
    write(fixture.root(), "Ordner\u{308}/cafe\u{301}.md", "x");
    let before = fixture.snapshot();
    assert!(before.contains_key("Ordner\u{308}/cafe\u{301}.md"));
    let folder = path("Ordner\u{308}");
    let note = path("Ordner\u{308}/caf\u{e9}.md");
    for number in 0..6 {
        let change = |overlay: &mut Overlay<'_>| match number {
            0 => overlay.rename(&note, &path("b.md")).map(drop),
            1 => overlay.delete(&note, DeleteMode::Trash).map(drop),
            2 => overlay.delete(&note, DeleteMode::Permanent).map(drop),
            3 => overlay.delete(&folder, DeleteMode::Permanent).map(drop),
            4 => overlay.rename(&folder, &path("f")).map(drop),
            _ => {
                overlay.rename(&folder, &path("f"))?;
                overlay.rename(&path("f/caf\u{e9}.md"), &path("f/b.md"))?;
                overlay.rename(&path("f/b.md"), &path("f/c.md")).map(drop)
            }
        };
        fixture.change(change).unwrap();
        assert_ne!(fixture.snapshot(), before);
        fixture.vault.undo(None, Force::No).unwrap();
        assert_eq!(fixture.snapshot(), before, "{number}");
    }
    assert_eq!(fixture.vault.sandbox().text(&note).unwrap(), "x");
}

#[test]
fn a_past_change_has_its_diffs_after_later_changes_and_renames() {
    let fixture = Fixture::new("//- a.md\none\n//- b.md\nuntouched\n");
    let edit = |text: &'static str| fixture.change(|overlay| overlay.write(&path("a.md"), text)).unwrap();
    edit("two\n");
    edit("three\n");
    fixture.change(|overlay| overlay.rename(&path("a.md"), &path("c.md"))).unwrap();
    let ids: Vec<_> = fixture.vault.transactions().unwrap().iter().rev().map(|info| info.id).collect();
    let diff = |at: usize| fixture.vault.past_change(ids[at]).unwrap().preview().to_string();
    assert!(diff(0).contains("-one\n+two\n"), "{}", diff(0));
    assert!(diff(1).contains("-two\n+three\n"), "{}", diff(1));
    assert_eq!(diff(2), "rename a.md -> c.md\n");
    // The newest text of the file stands only on the disk.
    write(fixture.root(), "c.md", "edited outside\n");
    assert!(diff(0).contains("-one\n+two\n"), "{}", diff(0));
    assert_eq!(diff(1), "note: a.md: it was edited, and its text is no longer known\n");
    let unknown = fixture.vault.past_change(TransactionId(99)).unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::NotFound);
}

#[test]
fn the_undo_of_a_new_note_is_a_past_change_too() {
    let fixture = Fixture::new("//- a.md\none\n");
    fixture.change(|overlay| overlay.create(&path("new.md"), "text\n")).unwrap();
    fixture.vault.undo(None, Force::No).unwrap();
    let newest = fixture.vault.transactions().unwrap();
    let diff = |at: usize| fixture.vault.past_change(newest[at].id).unwrap().preview().to_string();
    assert!(diff(1).starts_with("create new.md\n") && diff(1).contains("+text"), "{}", diff(1));
    assert!(diff(0).starts_with("delete new.md") && diff(0).contains("-text"), "{}", diff(0));
}

#[test]
fn of_two_undos_at_once_one_is_refused() {
    let fixture = Fixture::new("//- a.md\none\n");
    // Nothing is left for the second undo, so the files do not tell that it is late.
    fixture.change(|overlay| overlay.make_folder(&path("f"))).unwrap();
    let store = &fixture.vault.store;
    let undoing = || store.undoing(None, Force::No).unwrap();
    let redoing = || store.redoing(Force::No).unwrap();
    let undos = (undoing(), undoing());
    store.apply_undo(undos.0, None).unwrap();
    let refused = store.apply_undo(undos.1, None).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    assert!(refused.to_string().contains("transaction 1 was undone meanwhile, by transaction 2"), "{refused}");
    let redos = (redoing(), redoing());
    store.apply_undo(redos.0, None).unwrap();
    let refused = store.apply_undo(redos.1, None).unwrap_err();
    assert!(refused.to_string().contains("redone meanwhile, by transaction 3"), "{refused}");
    assert_eq!(fixture.vault.transactions().unwrap().len(), 3);
}
