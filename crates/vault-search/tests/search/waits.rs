//! What a search waits for: never for another process, and for vectors only where all can be made in a moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rusqlite::Connection;
use vault_index::chunk::TokenCount;
use vault_index::{Embedder, HashedEmbedder, Index, Result, Role, SyncOptions};

use crate::commands::{run, stderr, stdout};
use crate::vault::Vault;

fn notes(count: usize) -> Vault {
    let vault = Vault::new("");
    (0..count)
        .for_each(|n| vault.write(&format!("Note {n}.md"), format!("# Note {n}\n\na heron waits in water {n}\n")));
    vault
}

/// Holds a lock of the vault's index, as another process would.
fn held(vault: &Vault, ending: &str) -> std::fs::File {
    let mut name = vault.index_file().into_os_string();
    name.push(ending);
    let file = std::fs::File::options().create(true).append(true).open(name).unwrap();
    file.lock().unwrap();
    file
}

fn set_pace(vault: &Vault, terms_a_second: &str) {
    let db = Connection::open(vault.index_file()).unwrap();
    db.execute("INSERT OR REPLACE INTO meta(key, value) VALUES('embedding_pace', ?1)", [terms_a_second]).unwrap();
}

/// A model that counts its calls and texts.
#[derive(Default)]
struct CountingModel {
    model: HashedEmbedder,
    calls: AtomicUsize,
    texts: AtomicUsize,
}

impl TokenCount for CountingModel {
    fn count(&self, text: &str) -> usize {
        self.model.count(text)
    }
}

impl Embedder for CountingModel {
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
        4
    }
    fn embed(&self, texts: &[&str], role: Role) -> Result<Vec<Vec<f32>>> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.texts.fetch_add(texts.len(), Ordering::Relaxed);
        self.model.embed(texts, role)
    }
}

#[test]
fn vectors_are_begun_only_where_all_can_be_made_in_time() {
    let vault = notes(40);
    let model = Arc::new(CountingModel::default());
    let index = Index::open(vault.root(), vault.options().embedder(model.clone())).unwrap();
    let sync = |within| index.sync_with(&SyncOptions::new().all_vectors_within(within)).unwrap();
    // Nothing is known of the model: it is tried, once.
    let report = sync(Duration::ZERO);
    assert_eq!((report.added, report.embedded, report.pending), (40, 4, 36));
    assert_eq!(index.time_to_embed().unwrap(), None);
    // It is known to be too slow: it is not even tried.
    set_pace(&vault, "1");
    let report = sync(Duration::from_secs(1));
    assert_eq!((report.embedded, report.pending, model.calls.load(Ordering::Relaxed)), (0, 36, 1));
    // 36 texts of at least five terms each.
    assert!(index.time_to_embed().unwrap() > Some(Duration::from_secs(36 * 5)));
    // There is time for all.
    let report = sync(Duration::from_secs(3600));
    assert_eq!((report.embedded, report.pending, model.texts.load(Ordering::Relaxed)), (36, 0, 40));
    assert_eq!(index.time_to_embed().unwrap(), None);
    // What was measured is the pace from now on.
    vault.write("new.md", "another heron\n");
    assert_eq!(sync(Duration::ZERO).added, 1);
    let time = index.time_to_embed().unwrap();
    assert!(time.is_none_or(|time| time < Duration::from_secs(5)), "{time:?}");
}

#[test]
fn vectors_that_another_process_makes_are_left_to_it() {
    let vault = notes(3);
    let index = vault.index();
    index.sync_with(&SyncOptions::new().without_vectors()).unwrap();
    let embedding = held(&vault, ".embed");
    let report = index.sync_with(&SyncOptions::new().vectors_within(Duration::from_secs(3600))).unwrap();
    assert_eq!((report.embedded, report.pending), (0, 3));
    assert_eq!(index.embedding().as_deref(), Some("another process"));
    drop(embedding);
    assert_eq!((index.sync().unwrap().pending, index.embedding()), (0, None));
}

#[test]
fn beside_another_writer_the_answer_comes_from_what_is_there() {
    let vault = notes(3);
    assert!(run(&vault, "vault-index", &["sync", "--model", "hashed"]).status.success());
    let writing = held(&vault, ".lock");
    vault.write("new.md", "another heron\n");
    let output = run(&vault, "vault-search", &["--files", "--mode", "lexical", "heron"]);
    assert_eq!(stdout(&output).lines().count(), 3, "{}", stderr(&output));
    assert!(stderr(&output).contains("is writing the index"), "{}", stderr(&output));
    let links = run(&vault, "vault-index", &["deadends"]);
    assert!(links.status.success() && stderr(&links).contains("is writing the index"), "{}", stderr(&links));
    // Whoever asked to wait does.
    let wait = run(&vault, "vault-search", &["--files", "--wait", "0.2", "heron"]);
    assert!(stderr(&wait).contains("is writing the index"), "{}", stderr(&wait));
    drop(writing);
    let output = run(&vault, "vault-search", &["--files", "--mode", "lexical", "heron"]);
    assert_eq!((stdout(&output).lines().count(), stderr(&output).as_str()), (4, ""));
}

#[test]
fn what_has_no_vector_is_said_with_the_time_it_takes() {
    let vault = notes(30);
    assert!(run(&vault, "vault-index", &["sync", "--model", "hashed", "--no-vectors"]).status.success());
    set_pace(&vault, "3");
    let search = |arguments: &[&str]| run(&vault, "vault-search", arguments);
    let output = search(&["--files", "--no-sync", "heron"]);
    let said = stderr(&output);
    assert!(output.status.success() && said.contains("30 passages have no vector yet"), "{said}");
    assert!(said.contains("`vault-index sync` makes them, in about ") && said.contains(" min"), "{said}");
    let json: serde_json::Value = serde_json::from_slice(&search(&["--json", "--no-sync", "heron"]).stdout).unwrap();
    assert_eq!(json["pending"], 30);
    // Words and filters need none.
    assert_eq!(stderr(&search(&["--files", "--mode", "lexical", "heron"])), "");
    assert_eq!(stderr(&search(&["--files", "--no-sync", "path:\"Note 1.md\""])), "");
    let embedding = held(&vault, ".embed");
    let said = stderr(&search(&["--files", "heron"]));
    assert!(said.contains(" makes them") && !said.contains("vault-index sync"), "{said}");
    drop(embedding);
    // In a script what a second is enough for is made, however slow that was to be.
    assert_eq!(stderr(&search(&["--files", "heron"])), "");
}
