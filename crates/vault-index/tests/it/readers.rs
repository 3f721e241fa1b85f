//! Many readers and one writer: a reader sees one state and never waits; a second writer is told who is at work.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use vault_index::{ErrorKind, Index, Mode, Query, SyncOptions};

use crate::vault::Vault;

/// Every note says the same number; a state in which two numbers can be found was never committed... per batch.
#[test]
fn readers_see_whole_notes_while_a_writer_writes() {
    let vault = Vault::new("");
    let write_round = |round: usize| {
        for note in 0..20 {
            vault.write(&format!("n{note}.md"), format!("# Note\n\nround{round} first\n\nround{round} second\n"));
        }
    };
    write_round(0);
    vault.sync();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let index = vault.index();
                    let mut answers = 0;
                    while !done.load(Ordering::Relaxed) {
                        let query = Query::literal("first second").mode(Mode::Lexical).limit(100);
                        let hits = index.search(&query).unwrap();
                        assert_eq!(hits.results.len(), 20);
                        for hit in &hits.results {
                            let rounds: Vec<&str> =
                                hit.text.split_whitespace().filter(|w| w.starts_with("round")).collect();
                            assert!(rounds.len() == 2 && rounds[0] == rounds[1], "a torn note: {:?}", hit.text);
                        }
                        // The same snapshot gives the same answer, whatever is committed meanwhile.
                        let searcher = index.searcher().unwrap();
                        let (a, b) = (searcher.search(&query).unwrap(), searcher.search(&query).unwrap());
                        assert_eq!(a, b);
                        answers += 1;
                    }
                    answers
                })
            })
            .collect();
        for round in 1..15 {
            write_round(round);
            vault.sync();
        }
        done.store(true, Ordering::Relaxed);
        let answers: usize = readers.into_iter().map(|r| r.join().unwrap()).sum();
        assert!(answers > 0);
    });
    assert_eq!(vault.dump(), vault.dump_of_rebuild());
}

/// A snapshot takes over what the one before had loaded; what it answers does not tell.
#[test]
fn a_handle_that_stays_open_answers_as_one_opened_anew() {
    let vault = Vault::new("");
    let text = |note: usize, round: usize| {
        const SUBJECTS: [&str; 5] =
            ["rye bread", "a river in flood", "tax returns", "roses and aphids", "night trains"];
        format!("# Note {note}\n\nSomething about {} in year {round}.\n", SUBJECTS[(note + round) % 5])
    };
    (0..12).for_each(|note| vault.write(&format!("n{note}.md"), text(note, 0)));
    vault.sync();
    let open = vault.index();
    let query = Query::literal("baking with rye").mode(Mode::Semantic).limit(20);
    for round in 1..8 {
        // Codes are loaded for the second query of a snapshot that took over none.
        let first = open.search(&query).unwrap();
        assert_eq!(open.search(&query).unwrap(), first);
        assert_eq!(vault.index().search(&query).unwrap(), first, "round {round}");
        match round % 3 {
            0 => std::fs::remove_file(vault.root().join(format!("n{round}.md"))).unwrap(),
            1 => vault.write(&format!("n{round}.md"), text(round, round)),
            _ => vault.write(&format!("new{round}.md"), text(round, round)),
        }
        // By this handle or by another one.
        if round % 2 == 0 { _ = open.sync().unwrap() } else { _ = vault.sync() }
    }
}

/// A question that fails ends the reader, and the next one counts states anew.
#[test]
fn a_failed_question_does_not_bring_back_an_old_state() {
    let vault = Vault::new("//- a.md\nold words\n");
    let index = vault.index();
    index.sync().unwrap();
    let query = Query::literal("words").mode(Mode::Lexical);
    assert_eq!(index.search(&query).unwrap().results.len(), 1);
    vault.write("b.md", "new words\n");
    index.sync().unwrap();
    assert_eq!(index.backlinks("nowhere", 1).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(index.search(&query).unwrap().results.len(), 2);
}

#[test]
fn a_writer_that_another_version_has_overtaken_writes_no_more() {
    let vault = Vault::new("//- a.md\ntext\n");
    let index = vault.index();
    index.sync().unwrap();
    let db = rusqlite::Connection::open(vault.index_file()).unwrap();
    let format: i64 = db.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    db.pragma_update(None, "user_version", format + 1).unwrap();
    vault.write("b.md", "more\n");
    assert_eq!(index.sync().unwrap_err().kind(), ErrorKind::OtherFormat);
    db.pragma_update(None, "user_version", format).unwrap();
    drop(db);
    index.sync().unwrap();
    assert_eq!(vault.dump(), vault.dump_of_rebuild());
}

#[test]
fn two_writers_at_once_lose_nothing() {
    let vault = Vault::new("");
    for note in 0..60 {
        vault.write(&format!("n{note}.md"), format!("# Note {note}\n\nabout {note}\n"));
    }
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| vault.index().sync().unwrap());
        }
    });
    assert_eq!(vault.dump(), vault.dump_of_rebuild());
}

#[test]
fn a_second_writer_is_told_who_holds_the_lock() {
    let vault = Vault::new("//- a.md\ntext\n");
    vault.sync();
    let mut name = vault.index_file().into_os_string();
    name.push(".lock");
    let held = std::fs::File::open(name).unwrap();
    held.lock().unwrap();
    let options = SyncOptions::new().wait(Duration::from_millis(50));
    let error = vault.index().sync_with(&options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked);
    assert!(error.to_string().contains("process"), "{error}");
    // Readers do not care.
    assert_eq!(vault.index().search(&Query::literal("text")).unwrap().results.len(), 1);
    held.unlock().unwrap();
    vault.index().sync_with(&options).unwrap();
}

#[test]
fn a_cancelled_sync_keeps_what_it_did() {
    let vault = Vault::new("");
    for note in 0..30 {
        vault.write(&format!("n{note}.md"), format!("# Note {note}\n\nabout {note}\n"));
    }
    let cancel = AtomicBool::new(true);
    let options = SyncOptions::new().cancel(&cancel);
    // Cancelled before it began, in the walk.
    assert_eq!(vault.index().sync_with(&options).unwrap_err().kind(), ErrorKind::Cancelled);
    cancel.store(false, Ordering::Relaxed);
    let stop_at_vectors = |progress: vault_index::Progress| {
        if progress.stage == vault_index::Stage::Text {
            cancel.store(true, Ordering::Relaxed);
        }
    };
    let options = options.progress(&stop_at_vectors);
    let report = vault.index().sync_with(&options).unwrap();
    assert_eq!((report.added, report.embedded), (30, 0));
    assert!(report.pending > 0);
    // Words find what has no vector yet.
    let hits = vault.index().search(&Query::literal("about 7")).unwrap();
    assert_eq!(hits.results[0].path.as_str(), "n7.md");
    assert!(hits.pending > 0);
    assert_eq!(vault.sync().pending, 0);
    assert_eq!(vault.dump(), vault.dump_of_rebuild());
}

/// A model that says when it begins, and goes on when it is told to.
struct SlowModel {
    model: vault_index::HashedEmbedder,
    begun: std::sync::mpsc::SyncSender<()>,
    go_on: std::sync::Mutex<std::sync::mpsc::Receiver<()>>,
}

impl vault_index::chunk::TokenCount for SlowModel {
    fn count(&self, text: &str) -> usize {
        self.model.count(text)
    }
}

impl vault_index::Embedder for SlowModel {
    fn id(&self) -> &str {
        self.model.id()
    }
    fn dimensions(&self) -> usize {
        self.model.dimensions()
    }
    fn max_tokens(&self) -> usize {
        self.model.max_tokens()
    }
    fn embed(&self, texts: &[&str], role: vault_index::Role) -> vault_index::Result<Vec<Vec<f32>>> {
        self.begun.send(()).unwrap();
        self.go_on.lock().unwrap().recv().unwrap();
        self.model.embed(texts, role)
    }
}

#[test]
fn while_one_embeds_others_write_and_read() {
    let vault = Vault::new("//- a.md\nthe first note\n");
    let (begun, begins) = std::sync::mpsc::sync_channel(1);
    let (goes_on, go_on) = std::sync::mpsc::channel();
    let slow = SlowModel { model: vault_index::HashedEmbedder::new(), begun, go_on: std::sync::Mutex::new(go_on) };
    let index = |embedder| {
        let options = vault.options().embedder(embedder);
        Index::open(vault.root(), options).unwrap()
    };
    let (slow, quick) =
        (index(std::sync::Arc::new(slow)), index(std::sync::Arc::new(vault_index::HashedEmbedder::new())));
    std::thread::scope(|scope| {
        let embedding = scope.spawn(|| slow.sync().unwrap());
        begins.recv().unwrap();
        vault.write("a.md", "the first note, changed\n");
        vault.write("b.md", "the second note\n");
        let now = SyncOptions::new().wait(std::time::Duration::ZERO);
        let text = now.clone().without_vectors();
        let report = quick.sync_with(&text).unwrap();
        assert_eq!((report.added, report.changed), (1, 1));
        assert_eq!(quick.search(&Query::literal("second")).unwrap().results[0].path.as_str(), "b.md");
        // Two do not embed at the same time.
        assert_eq!(quick.sync_with(&now).unwrap_err().kind(), ErrorKind::Locked);
        // What was changed meanwhile does not get the vector of what stood there before.
        (0..2).for_each(|_| goes_on.send(()).unwrap());
        begins.recv().unwrap();
        embedding.join().unwrap();
    });
    assert_eq!(vault.sync().pending, 0);
    assert_eq!(vault.dump(), vault.dump_of_rebuild());
}

#[test]
fn another_model_is_refused_until_a_rebuild_which_can_be_interrupted() {
    struct OtherModel(vault_index::HashedEmbedder);
    impl vault_index::chunk::TokenCount for OtherModel {
        fn count(&self, text: &str) -> usize {
            self.0.count(text)
        }
    }
    impl vault_index::Embedder for OtherModel {
        fn id(&self) -> &str {
            "other-v1"
        }
        fn dimensions(&self) -> usize {
            self.0.dimensions()
        }
        fn max_tokens(&self) -> usize {
            self.0.max_tokens()
        }
        fn embed(&self, texts: &[&str], role: vault_index::Role) -> vault_index::Result<Vec<Vec<f32>>> {
            self.0.embed(texts, role)
        }
    }
    let vault = Vault::new("//- a.md\nthe first note\n//- b.md\nthe second note\n");
    vault.sync();
    let mut options = vault.options();
    options.embedder = Some(std::sync::Arc::new(OtherModel(vault_index::HashedEmbedder::new())));
    let other = Index::open(vault.root(), options).unwrap();
    for error in [other.sync().unwrap_err(), other.search(&Query::literal("note")).unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::OtherModel);
        assert!(error.to_string().contains("rebuild --model other-v1"), "{error}");
    }
    // Interrupted before anything is embedded: the old vectors are still there and searched.
    let now = SyncOptions::new().deadline(std::time::Instant::now());
    assert_eq!(other.rebuild(&now).unwrap().embedded, 0);
    assert_eq!(vault.index().search(&Query::literal("note")).unwrap().results.len(), 2);
    assert_eq!(vault.index().status().unwrap().rebuilding_to.as_deref(), Some("other-v1"));
    other.rebuild(&SyncOptions::default()).unwrap();
    assert_eq!(other.search(&Query::literal("note")).unwrap().results.len(), 2);
    assert_eq!(other.status().unwrap().rebuilding_to, None);
    assert_eq!(vault.index().sync().unwrap_err().kind(), ErrorKind::OtherModel);
}

/// Notes change meanwhile, so that a check may find them changed; but never damage.
#[test]
fn a_check_beside_a_writer_finds_no_damage() {
    let vault = Vault::new("//- still.md\nit stands\n");
    vault.sync();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let checks = scope.spawn(|| {
            let mut checks = 0;
            while !done.load(Ordering::Relaxed) {
                let faults = vault.index().check(&SyncOptions::default()).unwrap().faults;
                let odd: Vec<_> =
                    faults.iter().filter(|fault| !fault.starts_with("n") && !fault.contains(" n")).collect();
                assert!(odd.is_empty(), "{odd:?}");
                let damage = ["codes", "rows", "keyword", "slot", "passages"];
                assert!(!faults.iter().any(|fault| damage.iter().any(|word| fault.contains(word))), "{faults:?}");
                checks += 1;
            }
            checks
        });
        for round in 0..40 {
            let note = |n: usize| format!("# Note {n}\n\nround{round} first\n\n## Part\n\nround{round} second\n");
            (0..10).for_each(|n| vault.write(&format!("n{n}.md"), note(n)));
            vault.sync();
        }
        done.store(true, Ordering::Relaxed);
        assert!(checks.join().unwrap() > 0);
    });
}
