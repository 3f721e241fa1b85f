//! A journal that is damaged, of another format or on a full disk; and interrupted transactions where somebody was at
//! work since.

use std::path::PathBuf;

use super::tests::{Fixture, open, path, write};
use super::*;
use crate::error::ErrorKind;
use crate::failpoint;
use crate::journal::{interrupt_last, sizes};
use crate::sandbox::View;
use crate::*;

impl Fixture {
    fn journal(&self) -> PathBuf {
        self.vault.state().folder().join("journal.db")
    }

    /// Changes the bytes of the journal.
    fn damage(&self, damage: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = std::fs::read(self.journal()).unwrap();
        damage(&mut bytes);
        std::fs::write(self.journal(), bytes).unwrap();
    }

    /// As if the process had been killed just before it wrote that the last transaction is over.
    fn interrupt(&self) {
        interrupt_last(self.vault.state());
    }

    fn opened_again(&self) -> Vault {
        open(self.folder.path())
    }

    fn write_over(&self, name: &str, text: &str) -> Transaction {
        self.change(|overlay| overlay.write(&path(name), text)).unwrap().1
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Vec<usize> {
    (0..bytes.len().saturating_sub(what.len() - 1)).filter(|at| bytes[*at..].starts_with(what)).collect()
}

#[test]
fn damage_costs_the_transactions_it_hit_and_no_others() {
    let fixture = Fixture::new("//- a.md\n0\n//- b.md\n0\n//- c.md\n0\n");
    for name in ["a.md", "b.md", "c.md"] {
        fixture.write_over(name, "1\n");
    }
    fixture.damage(|bytes| {
        // Rows of a page are filled in from its end.
        let label = find(bytes, b"testapply").pop().unwrap();
        bytes[label] = b'T';
    });
    let vault = fixture.opened_again();
    assert!(vault.recovered().is_none());
    let transactions =
        || vault.transactions().unwrap().into_iter().rev().map(|one| (one.id.0, one.status)).collect::<Vec<_>>();
    use TransactionStatus::{Damaged, Done};
    assert_eq!(transactions(), [(1, Damaged), (2, Done), (3, Done)]);
    assert_eq!(fixture.write_over("a.md", "2\n").id, TransactionId(4), "the number of no other transaction");
    assert_eq!(vault.undo(Some(TransactionId(1)), Force::Yes).unwrap_err().kind(), ErrorKind::Journal);
    for (id, name) in [(2, "b.md"), (3, "c.md"), (4, "a.md")] {
        vault.undo(Some(TransactionId(id)), Force::No).unwrap();
        assert_eq!(fixture.read(name), if id == 4 { "1\n" } else { "0\n" });
    }
}

/// What can happen to the bytes of a file.
fn damaged(bytes: &mut Vec<u8>, kind: usize, at: usize) {
    let end = (at + 100).min(bytes.len());
    match kind {
        0 => bytes[at] ^= 1 << (at % 8),
        1 => bytes.truncate(at),
        2 => bytes[at..end].fill(0),
        3 => drop(bytes.splice(at..at, *b"inserted")),
        4 => drop(bytes.drain(at..end)),
        _ => {
            let copy = bytes[at..end].to_vec();
            bytes.splice(at..at, copy);
        }
    }
}

/// Flipped, cut, zeroed, inserted, deleted and duplicated bytes at 200 places: the vault stays as it is, transactions
/// are listed and made, what is listed as whole can be undone, and no damaged file is deleted.
#[test]
fn whatever_is_damaged_the_vault_stays_and_new_transactions_work() {
    const PLACES: usize = 200;
    const NOTES: usize = 12;
    let fixture = Fixture::new("");
    for number in 0..NOTES {
        write(fixture.root(), &format!("{number}.md"), &format!("before {number} {}\n", "long ".repeat(number * 150)));
    }
    for number in 0..NOTES {
        fixture.write_over(&format!("{number}.md"), &format!("after {number}\n"));
    }
    let good = std::fs::read(fixture.journal()).unwrap();
    let after = fixture.snapshot();
    let state = fixture.vault.state().folder().to_path_buf();
    let mut undone = 0;
    // A fixed sequence that looks random.
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    for place in 0..PLACES {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let kind = place % 6;
        let at = if place < 12 { place * 7 } else { (random >> 33) as usize % good.len() };
        let named = format!("kind {kind} at {at}");
        for entry in std::fs::read_dir(&state).unwrap() {
            std::fs::remove_file(entry.unwrap().path()).unwrap();
        }
        let mut bytes = good.clone();
        damaged(&mut bytes, kind, at);
        std::fs::write(fixture.journal(), &bytes).unwrap();
        let vault = fixture.opened_again();
        assert!(vault.recovered().is_none() && fixture.snapshot() == after, "{named}: opening changed the vault");
        vault.transactions().unwrap_or_else(|error| panic!("{named}: {error}"));
        assert_eq!(fixture.snapshot(), after, "{named}: listing changed the vault");
        let mut overlay = vault.overlay();
        overlay.create(&path("new.md"), "new").unwrap();
        vault.apply(&overlay.change(), ApplyOptions::new()).unwrap_or_else(|error| panic!("{named}: {error}"));
        vault.undo(None, Force::No).unwrap_or_else(|error| panic!("{named}: {error}"));
        assert_eq!(fixture.snapshot(), after, "{named}: undo of a new transaction");
        let kept = std::fs::read_dir(&state).unwrap().map(|entry| entry.unwrap().path());
        let kept: Vec<_> = kept.filter(|path| path.to_string_lossy().contains("journal.db.damaged")).collect();
        assert!(
            kept.iter()
                .all(|path| path.to_string_lossy().ends_with("-journal") || std::fs::read(path).unwrap() == bytes)
        );
        let whole = |one: &TransactionInfo| one.status == TransactionStatus::Done && one.label == "test";
        for one in vault.transactions().unwrap().into_iter().filter(whole) {
            match vault.undo(Some(one.id), Force::No) {
                Ok(_) => undone += 1,
                // Its row is whole, and the content is not.
                Err(error) => assert_eq!(error.kind(), ErrorKind::Journal, "{named}: {error}"),
            }
        }
        for number in 0..NOTES {
            let name = format!("{number}.md");
            let text = fixture.read(&name);
            assert!(text == format!("after {number}\n") || text.starts_with(&format!("before {number} ")), "{named}");
            write(fixture.root(), &name, &format!("after {number}\n"));
        }
    }
    assert!(undone > PLACES * NOTES / 2, "only {undone} of {} could be undone", PLACES * NOTES);
}

#[test]
fn a_journal_of_another_format_is_left_alone_and_the_vault_can_be_read() {
    let text = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/journal-before-sqlite/journal");
    for version in [None, Some(2), Some(99), Some(-1)] {
        let fixture = Fixture::new("//- a.md\n0\n");
        fixture.write_over("a.md", "1\n");
        let file = match version {
            Some(version) => {
                let journal = rusqlite::Connection::open(fixture.journal()).unwrap();
                // Another program may keep its log otherwise.
                let other = format!("PRAGMA journal_mode = WAL; PRAGMA user_version = {version}");
                journal.execute_batch(&other).unwrap();
                fixture.journal()
            }
            None => {
                let file = fixture.journal().with_file_name("journal");
                std::fs::copy(text, &file).unwrap();
                file
            }
        };
        let before = std::fs::read(&file).unwrap();
        let vault = fixture.opened_again();
        assert!(vault.warnings().iter().any(|warning| warning.contains("another format")), "{:?}", vault.warnings());
        assert_eq!(vault.overlay().text(&path("a.md")).unwrap(), "1\n");
        let mut overlay = vault.overlay();
        overlay.write(&path("a.md"), "2\n").unwrap();
        let change = overlay.change();
        let errors = [
            vault.apply(&change, ApplyOptions::default()).unwrap_err(),
            vault.undo(None, Force::No).unwrap_err(),
            vault.redo(Force::No).unwrap_err(),
            vault.recover(RecoveryMode::RollBack).unwrap_err(),
            vault.prune(&PruneOptions::default().max_bytes(0)).unwrap_err(),
            vault.transactions().unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.kind(), ErrorKind::Journal, "{error}");
            let said = error.to_string();
            assert!(said.contains(file.to_str().unwrap()) && said.contains("vault-tools journal reset"), "{said}");
        }
        assert_eq!((std::fs::read(&file).unwrap(), fixture.read("a.md").as_str()), (before.clone(), "1\n"));
        let moved = vault.reset_journal().unwrap();
        assert!(!file.exists() && moved.iter().any(|moved| std::fs::read(moved).unwrap() == before), "{moved:?}");
        vault.apply(&change, ApplyOptions::default()).unwrap();
        vault.undo(None, Force::No).unwrap();
        assert_eq!((fixture.read("a.md").as_str(), vault.transactions().unwrap().len()), ("1\n", 2));
        // A second one finds another name.
        assert!(vault.reset_journal().unwrap().iter().all(|second| !moved.contains(second)));
    }
}

#[test]
fn a_journal_with_an_interrupted_transaction_is_not_moved_aside() {
    let fixture = Fixture::new("//- a.md\n0\n");
    fixture.write_over("a.md", "1\n");
    fixture.interrupt();
    assert_eq!(fixture.vault.reset_journal().unwrap_err().kind(), ErrorKind::Journal);
    assert_eq!(fixture.opened_again().recovered().unwrap().rolled_back, 1);
    assert_eq!(fixture.opened_again().reset_journal().unwrap().len(), 1);
}

/// What was not reverted is not said to be, and nothing is done unasked.
#[test]
fn an_interrupted_transaction_whose_content_is_lost_is_rolled_back_as_far_as_possible_when_asked() {
    let fixture = Fixture::new("//- a.md\nthe old text\n//- b.md\n0\n");
    fixture
        .change(|overlay| {
            overlay.write(&path("a.md"), "new")?;
            overlay.write(&path("b.md"), "new")
        })
        .unwrap();
    fixture.interrupt();
    fixture.damage(|bytes| {
        let at = find(bytes, b"the old text")[0];
        bytes[at] = b'T';
    });
    let after = fixture.snapshot();
    let vault = fixture.opened_again();
    assert!(vault.recovered().is_none() && vault.warnings()[0].contains("damaged"), "{:?}", vault.warnings());
    assert_eq!(fixture.snapshot(), after);
    let recovered = vault.recover(RecoveryMode::RollBack).unwrap().unwrap();
    assert_eq!(recovered.rolled_back, 1, "{recovered:?}");
    assert!(recovered.left.len() == 1 && recovered.left[0].starts_with("a.md: "), "{recovered:?}");
    assert_eq!((fixture.read("a.md").as_str(), fixture.read("b.md").as_str()), ("new", "0\n"));
}

#[test]
fn an_interrupted_transaction_whose_record_is_damaged_leaves_the_files_as_they_are() {
    let fixture = Fixture::new("//- a.md\n0\n");
    fixture.write_over("a.md", "1\n");
    fixture.interrupt();
    fixture.damage(|bytes| {
        let at = find(bytes, b"edita.md").pop().unwrap();
        bytes[at] = b'E';
    });
    let vault = fixture.opened_again();
    assert!(vault.recovered().is_none() && !vault.warnings().is_empty());
    let recovered = vault.recover(RecoveryMode::RollBack).unwrap().unwrap();
    assert!(recovered.rolled_back == 0 && !recovered.left.is_empty(), "{recovered:?}");
    assert_eq!(fixture.read("a.md"), "1\n");
    assert_eq!(vault.transactions().unwrap()[0].status, TransactionStatus::Damaged);
    assert_eq!(vault.undo(None, Force::No).unwrap_err().kind(), ErrorKind::Journal);
    fixture.write_over("a.md", "2\n");
    assert!(fixture.opened_again().warnings().is_empty());
}

/// Neither ending a transaction nor rolling one back takes room on the disk.
#[test]
fn the_end_of_a_transaction_takes_no_room() {
    let fixture = Fixture::new("//- a.md\n0\n//- b.md\n0\n");
    let state = fixture.vault.state().clone();
    for number in 0..40 {
        let mut overlay = fixture.vault.overlay();
        overlay.write(&path("a.md"), format!("{number}\n")).unwrap();
        overlay.create(&path(&format!("{number}.md")), "x".repeat(number * 100)).unwrap();
        let mut begun = None;
        let mut progress = |_| {
            begun.get_or_insert_with(|| sizes(&state));
            if number % 3 == 2 { ControlFlow::StopAt(0) } else { ControlFlow::Continue }
        };
        let options = ApplyOptions::new().label("x".repeat(number)).progress(&mut progress);
        fixture.vault.apply(&overlay.change(), options).unwrap();
        assert_eq!(begun.unwrap(), sizes(&state), "transaction {number}");
    }
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
    fixture.interrupt();
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
    fixture.interrupt();
    std::fs::remove_dir(fixture.root().join("f")).unwrap();
    write(fixture.root(), "f", "a file now");
    let vault = fixture.opened_again();
    assert!(vault.recovered().is_none());
    let recovered = vault.recover(RecoveryMode::RollBack).unwrap().unwrap();
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
    // The intent, and the end.
    assert_eq!(writes, 2);
    for first in 0..writes {
        for last in [first + 1, usize::MAX] {
            let fixture = Fixture::new(files);
            let before = fixture.snapshot();
            failpoint::refuse_writes(first..last);
            let error = fixture.change(propose).unwrap_err();
            failpoint::refuse_writes(0..0);
            assert_eq!(error.kind(), ErrorKind::Io, "{error}");
            let expected = if first == 0 { "nothing was done" } else { "rolled back" };
            assert!(error.to_string().contains(expected), "{error}");
            let vault = fixture.opened_again();
            assert!(vault.recovered().is_none_or(|recovered| recovered.rolled_back == 0), "{first}..{last}");
            assert_eq!(fixture.snapshot(), before, "{first}..{last}");
            fixture.change(propose).unwrap();
        }
    }
}
