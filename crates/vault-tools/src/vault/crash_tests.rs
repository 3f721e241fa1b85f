//! A process that is killed at any step leaves a vault that the next start brings back as a whole.
//!
//! The test runs itself as a child, which ends at its n-th step (`failpoint.rs`), for every n there is.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::tests::{open, path, snapshot, write};
use super::*;
use crate::host::OpenEditors;
use crate::{failpoint, *};

const FOLDER: &str = "VAULT_TOOLS_CRASH_FOLDER";
const DOES: &str = "VAULT_TOOLS_CRASH_DOES";
const DIE_AT: &str = "VAULT_TOOLS_DIE_AT";

/// One of each action, in an order in which they meet.
fn propose(overlay: &mut Overlay<'_>) {
    overlay.create(&path("new/sub/n.md"), "[[a]]").unwrap();
    overlay.write(&path("e.md"), "edited").unwrap();
    overlay.rename(&path("f"), &path("g/f")).unwrap();
    overlay.rename(&path("a.md"), &path("b.md")).unwrap();
    overlay.create(&path("a.md"), "another").unwrap();
    overlay.delete(&path("t.md"), DeleteMode::Trash).unwrap();
    overlay.delete(&path("p"), DeleteMode::Permanent).unwrap();
    overlay.write(&path("g/f/x.md"), "[[b]] and more").unwrap();
}

fn make(folder: &Path) {
    for (name, text) in [
        ("a.md", "[[f/x]]"),
        ("e.md", "before"),
        ("f/x.md", "[[a]]\r\n"),
        ("f/i.png", "\u{0}"),
        ("t.md", "trash"),
        ("p/q/r.md", "gone"),
        ("s.md", "[[a]] [x](f/x.md)"),
    ] {
        write(&folder.join("vault"), name, text);
    }
}

fn change(vault: &Vault, editors: Option<Box<dyn OpenEditors>>) {
    let mut overlay = vault.overlay();
    propose(&mut overlay);
    vault.apply(&overlay.change(), ApplyOptions::default().editors(editors)).unwrap();
}

/// The editors of an app that has every file open. It outlives this process, and writes in place.
struct Editors(PathBuf);

impl OpenEditors for Editors {
    fn replace(&mut self, path: &SafePath, _: &str, after: &str) {
        failpoint::step();
        std::fs::write(self.0.join(path.as_str()), after).unwrap();
        failpoint::step();
    }
}

/// In a process that `run` has started, this is what it does.
#[test]
fn a_process_told_to_die_at_a_step_ends_there() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        let vault = open(Path::new(&folder));
        return match std::env::var(DOES).unwrap().as_str() {
            "apply" => change(&vault, None),
            "edit" => change(&vault, Some(Box::new(Editors(Path::new(&folder).join("vault"))))),
            "undo" => drop(vault.undo(None, Force::No).unwrap()),
            "redo" => drop(vault.redo(Force::No).unwrap()),
            "open" => {}
            other => panic!("{other}"),
        };
    }
    let folder = tempfile::tempdir().unwrap();
    make(folder.path());
    let before = snapshot(&folder.path().join("vault"));
    assert!(!run(folder.path(), "apply", Some(1)));
    assert_eq!(snapshot(&folder.path().join("vault")), before);
    assert!(run(folder.path(), "apply", None));
    assert_ne!(snapshot(&folder.path().join("vault")), before);
}

/// Whether the child came to its end.
fn run(folder: &Path, does: &str, die_at: Option<usize>) -> bool {
    let mut child = Command::new(std::env::current_exe().unwrap());
    let test = "vault::crash_tests::a_process_told_to_die_at_a_step_ends_there";
    child.args(["--exact", test, "--test-threads", "1"]).env(FOLDER, folder).env(DOES, does);
    if let Some(step) = die_at {
        child.env(DIE_AT, step.to_string());
    }
    child.output().unwrap().status.success()
}

/// Kills `does` at each of its steps, then the recovery at one of its own, and looks at what is left.
fn killed_anywhere(prepare: &dyn Fn(&Path), does: &str) {
    let mut steps = 0;
    loop {
        steps += 1;
        let folder = tempfile::tempdir().unwrap();
        make(folder.path());
        prepare(folder.path());
        let before = snapshot(&folder.path().join("vault"));
        let ended = run(folder.path(), does, Some(steps));
        if !ended {
            // The recovery is killed as well, each time a little later.
            run(folder.path(), "open", Some(1 + steps % 7));
        }
        drop(open(folder.path()));
        let after = snapshot(&folder.path().join("vault"));
        if ended {
            assert_ne!(after, before, "{does} did something");
            break;
        }
        if after != before {
            // Only its very last words were cut off: the run is whole.
            let whole = tempfile::tempdir().unwrap();
            make(whole.path());
            prepare(whole.path());
            assert!(run(whole.path(), does, None));
            assert_eq!(after, snapshot(&whole.path().join("vault")), "{does} killed at step {steps}");
        }
        // And the vault can be worked with.
        let vault = open(folder.path());
        assert!(vault.recovered().is_none());
        let now = snapshot(&folder.path().join("vault"));
        let mut overlay = vault.overlay();
        overlay.create(&path("later.md"), "x").unwrap();
        vault.apply(&overlay.change(), ApplyOptions::default()).unwrap();
        vault.undo(None, Force::No).unwrap();
        assert_eq!(snapshot(&folder.path().join("vault")), now);
    }
    assert!(steps > 30, "{does}: {steps} steps");
}

#[test]
fn killed_while_applying() {
    killed_anywhere(&|_| {}, "apply");
}

/// Also between the save of an editor and the record of it.
#[test]
fn killed_while_editors_apply() {
    killed_anywhere(&|_| {}, "edit");
}

#[test]
fn killed_while_undoing() {
    killed_anywhere(&|folder| assert!(run(folder, "apply", None)), "undo");
}

#[test]
fn killed_while_redoing() {
    let prepare = |folder: &Path| {
        assert!(run(folder, "apply", None));
        assert!(run(folder, "undo", None));
    };
    killed_anywhere(&prepare, "redo");
}

/// Kills `apply` somewhere behind its first edits.
fn interrupted(folder: &Path) {
    make(folder);
    let mut step = 40;
    while run(folder, "apply", Some(step)) {
        open(folder).undo(None, Force::No).unwrap();
        step -= 3;
    }
}

#[test]
fn after_later_edits_an_interrupted_transaction_is_rolled_back_only_when_asked() {
    for edited in ["s.md", "elsewhere.md"] {
        let folder = tempfile::tempdir().unwrap();
        interrupted(folder.path());
        let root = folder.path().join("vault");
        write(&root, edited, "mine");
        let left = snapshot(&root);
        let vault = open(folder.path());
        assert!(vault.recovered().is_none() && vault.warnings().len() == 1, "{:?}", vault.warnings());
        assert!(
            vault.warnings()[0].contains(edited) && vault.warnings()[0].contains("--recover"),
            "{:?}",
            vault.warnings()
        );
        assert_eq!(vault.transactions().unwrap()[0].status, TransactionStatus::Interrupted);
        let mut overlay = vault.overlay();
        overlay.create(&path("later.md"), "x").unwrap();
        let refused = vault.apply(&overlay.change(), ApplyOptions::new()).unwrap_err();
        assert_eq!((refused.kind(), snapshot(&root)), (ErrorKind::Journal, left));
        assert_eq!(vault.undo(None, Force::No).unwrap_err().kind(), ErrorKind::Journal);
        assert!(vault.recover(RecoveryMode::RollBack).unwrap().unwrap().rolled_back > 0);
        let mut expected = {
            let fresh = tempfile::tempdir().unwrap();
            make(fresh.path());
            snapshot(&fresh.path().join("vault"))
        };
        expected.insert(edited.into(), Some(b"mine".to_vec()));
        assert_eq!(snapshot(&root), expected);
        assert!(vault.recover(RecoveryMode::RollBack).unwrap().is_none());
        vault.apply(&overlay.change(), ApplyOptions::new()).unwrap();
    }
}

#[cfg(unix)]
#[test]
fn rollback_leaves_a_symlink_that_replaced_a_note_and_reverts_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    interrupted(folder.path());
    let root = folder.path().join("vault");
    let outside = folder.path().join("outside");
    std::fs::write(&outside, "theirs").unwrap();
    std::fs::remove_file(root.join("s.md")).unwrap();
    std::os::unix::fs::symlink(&outside, root.join("s.md")).unwrap();
    let vault = open(folder.path());
    let recovered = vault.recover(RecoveryMode::RollBack).unwrap().unwrap();
    assert!(recovered.rolled_back > 0 && recovered.left.iter().any(|left| left.starts_with("s.md: ")), "{recovered:?}");
    assert_eq!(std::fs::read_link(root.join("s.md")).unwrap(), outside);
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "theirs");
    std::fs::remove_file(root.join("s.md")).unwrap();
    let fresh = tempfile::tempdir().unwrap();
    make(fresh.path());
    let mut expected = snapshot(&fresh.path().join("vault"));
    expected.remove("s.md");
    assert_eq!(snapshot(&root), expected);
}

#[test]
fn an_interrupted_transaction_that_is_kept_can_be_undone() {
    let folder = tempfile::tempdir().unwrap();
    interrupted(folder.path());
    let root = folder.path().join("vault");
    write(&root, "elsewhere.md", "mine");
    let left = snapshot(&root);
    let vault = open(folder.path());
    vault.recover(RecoveryMode::Keep).unwrap().unwrap();
    let of_ours = |name: &String| !name.ends_with(".tmp");
    let left: Vec<_> = left.into_iter().filter(|(name, _)| of_ours(name)).collect();
    assert_eq!(snapshot(&root).into_iter().collect::<Vec<_>>(), left);
    vault.undo(None, Force::No).unwrap();
    std::fs::remove_file(root.join("elsewhere.md")).unwrap();
    let fresh = tempfile::tempdir().unwrap();
    make(fresh.path());
    assert_eq!(snapshot(&root), snapshot(&fresh.path().join("vault")));
}
