//! A journal that is damaged, of a newer version or on a full disk; and runs that were cut where somebody was at work.

use std::path::PathBuf;

use super::tests::{Fixture, open, path, write};
use super::*;
use crate::error::ErrorKind;
use crate::failpoint;
use crate::journal::{self, TransactionId};
use crate::sandbox::View;

impl Fixture {
    fn journal(&self) -> PathBuf {
        self.vault.state().folder().join("journal")
    }

    /// Changes the bytes of the journal.
    fn hurt(&self, hurt: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = std::fs::read(self.journal()).unwrap();
        hurt(&mut bytes);
        std::fs::write(self.journal(), bytes).unwrap();
    }

    /// As if the process had been killed just before it wrote that the run is over.
    fn cut(&self) {
        self.hurt(|bytes| bytes.truncate(find(bytes, b"\nvt1 ").pop().unwrap() + 1));
    }

    fn opened_again(&self) -> Vault {
        open(self.folder.path())
    }

    fn write_over(&self, name: &str, text: &str) -> Run {
        self.change(|overlay| overlay.write(&path(name), text)).unwrap().1
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Vec<usize> {
    (0..bytes.len().saturating_sub(what.len() - 1)).filter(|at| bytes[*at..].starts_with(what)).collect()
}

#[test]
fn damage_costs_the_runs_it_hit_and_no_others() {
    let fixture = Fixture::new("//- a.md\n0\n//- b.md\n0\n//- c.md\n0\n");
    for name in ["a.md", "b.md", "c.md"] {
        fixture.write_over(name, "1\n");
    }
    fixture.hurt(|bytes| {
        let label = find(bytes, b"\"test\"")[0];
        bytes[label + 1] = b'T';
    });
    let vault = fixture.opened_again();
    assert!(vault.recovered().is_none() && vault.warnings().is_empty());
    let runs = || vault.runs().unwrap().into_iter().rev().map(|run| (run.id.0, run.status)).collect::<Vec<_>>();
    assert_eq!(runs(), [(1, RunStatus::Damaged), (2, RunStatus::Done), (3, RunStatus::Done)]);
    assert!(vault.unreadable_journal().unwrap() > 0);
    let run = fixture.write_over("a.md", "2\n");
    assert_eq!(run.id, TransactionId(4), "the number of no other run");
    assert_eq!(vault.undo(Some(TransactionId(1)), Force::Yes).unwrap_err().kind(), ErrorKind::Journal);
    for (run, name) in [(2, "b.md"), (3, "c.md"), (4, "a.md")] {
        vault.undo(Some(TransactionId(run)), Force::No).unwrap();
        assert_eq!(fixture.read(name), if run == 4 { "1\n" } else { "0\n" });
    }
}

#[test]
fn a_journal_of_a_newer_version_is_left_alone_and_the_vault_can_be_read() {
    let fixture = Fixture::new("//- a.md\n0\n");
    fixture.write_over("a.md", "1\n");
    fixture.hurt(|bytes| bytes.extend(b"vt2 3 0 x y\n{ }\n\n"));
    let before = std::fs::read(fixture.journal()).unwrap();
    let vault = fixture.opened_again();
    assert!(vault.warnings().iter().any(|warning| warning.contains("newer version")), "{:?}", vault.warnings());
    assert_eq!(vault.overlay().text(&path("a.md")).unwrap(), "1\n");
    let mut overlay = vault.overlay();
    overlay.write(&path("a.md"), "2\n").unwrap();
    assert_eq!(vault.apply(&overlay.change(), ApplyOptions::default()).unwrap_err().kind(), ErrorKind::Journal);
    assert_eq!(vault.undo(None, Force::No).unwrap_err().kind(), ErrorKind::Journal);
    assert_eq!((std::fs::read(fixture.journal()).unwrap(), fixture.read("a.md").as_str()), (before, "1\n"));
}

/// What was not taken back is not said to be.
#[test]
fn a_cut_run_whose_content_is_lost_is_told_of() {
    let fixture = Fixture::new("//- a.md\nthe old text\n//- b.md\n0\n");
    fixture
        .change(|overlay| {
            overlay.write(&path("a.md"), "new")?;
            overlay.write(&path("b.md"), "new")
        })
        .unwrap();
    fixture.cut();
    fixture.hurt(|bytes| {
        let at = find(bytes, b"the old text")[0];
        bytes[at] = b'T';
    });
    let vault = fixture.opened_again();
    let recovered = vault.recovered().unwrap();
    assert_eq!(recovered.taken_back, 1, "{recovered:?}");
    assert!(recovered.left.len() == 1 && recovered.left[0].starts_with("a.md: "), "{recovered:?}");
    assert_eq!((fixture.read("a.md").as_str(), fixture.read("b.md").as_str()), ("new", "0\n"));
}

#[test]
fn a_cut_run_whose_record_is_hurt_is_told_of() {
    let fixture = Fixture::new("//- a.md\n0\n");
    fixture.write_over("a.md", "1\n");
    fixture.hurt(|bytes| {
        // It says that one action is done, and no longer which.
        let at = find(bytes, b"\"edit\"")[0];
        bytes[at + 1] = b'E';
        let end = find(bytes, b"\nvt1 ").pop().unwrap() + 1;
        bytes.truncate(end);
        bytes.extend(journal::did_for_tests(TransactionId(1), 1));
    });
    let vault = fixture.opened_again();
    let recovered = vault.recovered().unwrap();
    assert!(recovered.taken_back == 0 && !recovered.left.is_empty(), "{recovered:?}");
    assert_eq!((fixture.read("a.md").as_str(), vault.runs().unwrap()[0].status), ("1\n", RunStatus::Damaged));
    assert_eq!(vault.undo(None, Force::No).unwrap_err().kind(), ErrorKind::Journal);
    fixture.write_over("a.md", "2\n");
    assert!(fixture.opened_again().recovered().is_none());
}

#[test]
fn folders_that_went_since_the_crash_are_made_again() {
    let fixture = Fixture::new("//- f/a.md\nhi\n//- h/i/b.md\nhi\n//- s.md\n[[f/a]]\n");
    let before = fixture.snapshot();
    fixture
        .change(|overlay| {
            overlay.rename(&path("f/a.md"), &path("g/b.md"))?;
            overlay.delete(&path("h/i"), DeleteMode::Permanent)
        })
        .unwrap();
    fixture.cut();
    std::fs::remove_dir(fixture.root().join("f")).unwrap();
    std::fs::remove_dir(fixture.root().join("h")).unwrap();
    let vault = fixture.opened_again();
    let recovered = vault.recovered().unwrap();
    assert!(recovered.left.is_empty() && vault.warnings().is_empty(), "{recovered:?}");
    assert_eq!(fixture.snapshot(), before);
}

#[test]
fn what_is_in_the_way_of_a_rollback_stays_and_the_rest_goes_back() {
    let fixture = Fixture::new("//- f/a.md\nhi\n//- s.md\n[[f/a]]\n");
    fixture.change(|overlay| overlay.rename(&path("f/a.md"), &path("g/b.md"))).unwrap();
    fixture.cut();
    std::fs::remove_dir(fixture.root().join("f")).unwrap();
    write(fixture.root(), "f", "a file now");
    let vault = fixture.opened_again();
    let recovered = vault.recovered().unwrap();
    assert!(recovered.left.len() == 1 && recovered.left[0].starts_with("f/a.md: "), "{recovered:?}");
    assert_eq!(fixture.read("s.md"), "[[f/a]]\n");
    assert_eq!((fixture.read("f").as_str(), fixture.read("g/b.md").as_str()), ("a file now", "hi\n"));
    // It is over: the vault can be worked with.
    fixture.write_over("s.md", "x");
    assert!(fixture.opened_again().recovered().is_none());
}

/// Whichever write of the journal fails, once or from then on: all or nothing, and the next start finds it so.
#[test]
fn a_disk_that_does_not_take_the_journal() {
    let files = "//- a.md\n0\n//- f/s.md\n[[a]]\n//- t.md\n[[a]]\n";
    let propose = |overlay: &mut Overlay<'_>| overlay.rename(&path("a.md"), &path("g/b.md"));
    failpoint::refuse_writes(0..0);
    Fixture::new(files).change(propose).unwrap();
    let writes = failpoint::refuse_writes(0..0);
    // The intent, in pieces; how far it has come after each of four actions; the end.
    let intent = writes - 4 - 1;
    assert_eq!(intent, 2, "{writes} writes");
    for first in 0..writes {
        for last in [first + 1, usize::MAX] {
            let fixture = Fixture::new(files);
            let before = fixture.snapshot();
            failpoint::refuse_writes(first..last);
            let done = fixture.change(propose);
            failpoint::refuse_writes(0..0);
            let only_advice = last == first + 1 && (intent..writes - 1).contains(&first);
            assert_eq!(done.is_ok(), only_advice, "{first}..{last}");
            let vault = fixture.opened_again();
            assert!(vault.recovered().is_none_or(|recovered| recovered.taken_back == 0), "{first}..{last}");
            match done {
                Ok(_) => drop(vault.undo(None, Force::No).unwrap()),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
                    assert!(
                        error.to_string().contains(if first < intent { "nothing was done" } else { "put back" }),
                        "{error}"
                    );
                }
            }
            assert_eq!(fixture.snapshot(), before, "{first}..{last}");
            fixture.change(propose).unwrap();
        }
    }
}
