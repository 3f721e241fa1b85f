//! Embedding in the background: it gives way, ends with what it works on, and leaves out what cannot be embedded.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rusqlite::Connection;
use vault_index::chunk::TokenCount;
use vault_index::{Embedder, Error, ErrorKind, HashedEmbedder, Index, Result, Role, SyncOptions};

use crate::vault::Vault;

/// A model that tells of each call, and goes on when it may.
struct SteppedModel {
    model: HashedEmbedder,
    called: Sender<Vec<String>>,
    go: Mutex<Receiver<()>>,
}

impl TokenCount for SteppedModel {
    fn count(&self, text: &str) -> usize {
        self.model.count(text)
    }
}

impl Embedder for SteppedModel {
    fn id(&self) -> &str {
        self.model.id()
    }
    fn dimensions(&self) -> usize {
        self.model.dimensions()
    }
    fn max_tokens(&self) -> usize {
        self.model.max_tokens()
    }
    fn batch_size(&self) -> usize {
        1
    }
    fn embed(&self, texts: &[&str], role: Role) -> Result<Vec<Vec<f32>>> {
        self.called.send(texts.iter().map(|text| (*text).to_owned()).collect()).unwrap();
        self.go.lock().unwrap().recv().unwrap();
        self.model.embed(texts, role)
    }
}

fn stepped() -> (Arc<SteppedModel>, Receiver<Vec<String>>, Sender<()>) {
    let ((called, calls), (step, go)) = (channel(), channel());
    (Arc::new(SteppedModel { model: HashedEmbedder::new(), called, go: Mutex::new(go) }), calls, step)
}

/// Notes that are read and have no vectors.
fn unembedded(count: usize) -> Vault {
    let vault = Vault::new("");
    (0..count).for_each(|n| vault.write(&format!("Note {n}.md"), format!("# Note {n}\n\na heron in water {n}\n")));
    vault.index().sync_with(&SyncOptions::new().without_vectors()).unwrap();
    vault
}

/// Waits until somebody waits for the lock.
fn until_claimed(vault: &Vault, has_ended: &dyn Fn() -> bool) {
    let mut claim = vault.index_file().into_os_string();
    claim.push(".claim");
    while std::fs::File::open(&claim).map_or(true, |file| file.try_lock().is_ok()) {
        assert!(!has_ended());
        std::thread::yield_now();
    }
}

#[test]
fn who_wants_to_embed_gets_the_lock_after_the_round_under_way() {
    let vault = unembedded(40);
    let (model, calls, step) = stepped();
    let index = Index::open(vault.root(), vault.options().embedder(model)).unwrap();
    std::thread::scope(|scope| {
        // Dropped where the test fails, so that the model waits no longer.
        let step = step;
        let background = scope.spawn(|| index.embed_in_background(&SyncOptions::new()).unwrap());
        calls.recv().unwrap();
        let status = vault.index().background().unwrap();
        assert!(status.process.is_some() && status.started.is_some() && status.ended.is_none(), "{status:?}");
        // A search waits for nobody, so it takes nothing away.
        let report = vault.index().sync_with(&SyncOptions::new().vectors_within(Duration::from_secs(60))).unwrap();
        assert_eq!((report.embedded, report.pending), (0, 40));
        assert!(!vault.index().embed_in_background(&SyncOptions::new()).unwrap(), "one process");

        let sync = scope.spawn(|| vault.index().sync().unwrap());
        until_claimed(&vault, &|| sync.is_finished());
        step.send(()).unwrap();
        assert!(background.join().unwrap());
        assert_eq!(calls.try_iter().count(), 0, "no round after the one under way");
        let report = sync.join().unwrap();
        assert_eq!((report.embedded, report.pending), (39, 0));
    });
    let status = vault.index().background().unwrap();
    assert!(status.process.is_none() && status.ended.is_some() && status.error.is_none(), "{status:?}");
}

#[test]
fn who_deletes_the_index_waits_for_the_round_under_way() {
    let vault = unembedded(40);
    let (model, calls, step) = stepped();
    let index = Index::open(vault.root(), vault.options().embedder(model)).unwrap();
    std::thread::scope(|scope| {
        let step = step;
        let background = scope.spawn(|| index.embed_in_background(&SyncOptions::new()));
        calls.recv().unwrap();
        let forget = scope.spawn(|| vault.index().forget().unwrap());
        until_claimed(&vault, &|| forget.is_finished());
        step.send(()).unwrap();
        assert!(background.join().unwrap().unwrap());
        assert!(forget.join().unwrap().contains(&vault.index_file()));
        assert_eq!(calls.try_iter().count(), 0, "no round after the one under way");
    });
    assert!(!vault.index_file().exists());
}

#[test]
fn it_ends_with_the_vault_and_with_the_index() {
    let gone = |vault: &Vault| std::fs::remove_dir_all(vault.root()).unwrap();
    let replaced = |vault: &Vault| {
        let (file, copy) = (vault.index_file(), vault.index_file().with_extension("copy"));
        std::fs::copy(&file, &copy).unwrap();
        std::fs::rename(copy, file).unwrap();
    };
    let removed = |vault: &Vault| std::fs::remove_file(vault.index_file()).unwrap();
    let another_vault = |vault: &Vault| {
        std::fs::rename(vault.root(), vault.root().with_extension("old")).unwrap();
        std::fs::create_dir(vault.root()).unwrap();
    };
    for change in [gone, another_vault, removed, replaced] {
        let vault = unembedded(9);
        let (model, calls, step) = stepped();
        let index = Index::open(vault.root(), vault.options().embedder(model)).unwrap();
        std::thread::scope(|scope| {
            let step = step;
            let background = scope.spawn(|| index.embed_in_background(&SyncOptions::new()));
            calls.recv().unwrap();
            change(&vault);
            step.send(()).unwrap();
            assert!(background.join().unwrap().unwrap());
        });
        assert_eq!(calls.try_iter().count(), 0);
    }
}

/// A model that cannot embed some texts.
#[derive(Default)]
struct FailingModel {
    model: HashedEmbedder,
    tries: AtomicUsize,
}

impl TokenCount for FailingModel {
    fn count(&self, text: &str) -> usize {
        self.model.count(text)
    }
}

impl Embedder for FailingModel {
    fn id(&self) -> &str {
        self.model.id()
    }
    fn dimensions(&self) -> usize {
        self.model.dimensions()
    }
    fn max_tokens(&self) -> usize {
        self.model.max_tokens()
    }
    fn embed(&self, texts: &[&str], role: Role) -> Result<Vec<Vec<f32>>> {
        if texts.iter().any(|text| text.contains("poison")) {
            self.tries.fetch_add(usize::from(texts.len() == 1), Ordering::Relaxed);
            return Err(Error::new(ErrorKind::Model, "no tokens"));
        }
        self.model.embed(texts, role)
    }
}

#[test]
fn a_text_that_fails_three_times_is_left_out_and_named() {
    let vault = unembedded(20);
    vault.write("bad.md", "# Bad\n\nfine\n\n## Worse\n\npoison\n");
    vault.index().sync_with(&SyncOptions::new().without_vectors()).unwrap();
    let model = Arc::new(FailingModel::default());
    let index = Index::open(vault.root(), vault.options().embedder(model.clone())).unwrap();
    assert!(index.has_background_work().unwrap());
    assert!(index.embed_in_background(&SyncOptions::new()).unwrap());
    let status = index.status().unwrap();
    let failed: Vec<(&str, &str)> = status.background.failed.iter().map(|text| (&*text.path, &*text.error)).collect();
    assert_eq!((status.pending, failed, model.tries.load(Ordering::Relaxed)), (1, vec![("bad.md", "no tokens")], 3));
    // No process starts for it, and another one would not try it.
    assert!(!index.has_background_work().unwrap());
    index.embed_in_background(&SyncOptions::new()).unwrap();
    assert_eq!(model.tries.load(Ordering::Relaxed), 3);
    // Another text is another matter.
    vault.write("bad.md", "# Bad\n\nfine\n\n## Better\n\nantidote\n");
    index.sync_with(&SyncOptions::new().without_vectors()).unwrap();
    assert!(index.has_background_work().unwrap() && index.background().unwrap().failed.is_empty());
}

/// The process is killed in the first round, as the index remembers it.
fn kill_at_first_text(vault: &Vault) {
    let (model, calls, step) = stepped();
    let index = Index::open(vault.root(), vault.options().embedder(model)).unwrap();
    let db = Connection::open(vault.index_file()).unwrap();
    let meta = || -> String {
        db.query_row("SELECT value FROM meta WHERE key = 'background_embedding'", [], |row| row.get(0)).unwrap()
    };
    std::thread::scope(|scope| {
        // Dropped where the test fails, so that the model waits no longer.
        let step = step;
        let background = scope.spawn(|| index.embed_in_background(&SyncOptions::new()));
        calls.recv().unwrap();
        let during = meta();
        drop(step);
        // The model panics: nothing is written any more.
        assert!(background.join().is_err());
        assert_eq!(meta(), during);
    });
}

#[test]
fn where_processes_are_killed_three_times_a_text_is_left_out() {
    let vault = unembedded(3);
    for kills in 1..=3 {
        kill_at_first_text(&vault);
        let index = vault.index();
        assert!(index.background().unwrap().failed.is_empty(), "{kills}");
        // Not within the hour.
        assert!(!index.has_background_work().unwrap());
    }
    let index = vault.index();
    index.embed_in_background(&SyncOptions::new()).unwrap();
    let status = index.status().unwrap();
    assert_eq!((status.pending, status.background.failed.len()), (1, 1), "{:?}", status.background);
    // A sync tries it again.
    assert_eq!(vault.sync().pending, 0);
    assert!(index.background().unwrap().failed.is_empty());
}
