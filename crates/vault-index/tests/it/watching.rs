//! Watching: whatever happens to the vault, the index ends up equal to a rebuild.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use vault_index::{
    Embedder, ErrorKind, HashedEmbedder, Index, Query, Result, Role, SyncOptions, TokenCount, WatchEvent, WatchOptions,
};

use crate::vault::Vault;

/// Longer than anything here takes on a loaded machine; only a failure waits for so long.
const PATIENCE: Duration = Duration::from_secs(60);

fn watched(vault: &Vault, scenario: impl FnOnce(&Receiver<WatchEvent>)) {
    let cancel = AtomicBool::new(false);
    let (send, events) = channel();
    std::thread::scope(|scope| {
        let index = vault.index();
        let watcher = scope.spawn({
            let cancel = &cancel;
            move || {
                let options = WatchOptions::new().debounce(Duration::from_millis(40)).cancel(cancel);
                index.watch(&options)?.try_for_each(|event| event.map(|event| drop(send.send(event))))
            }
        });
        // Ends the watcher also when the scenario fails.
        struct Stop<'a>(&'a AtomicBool);
        impl Drop for Stop<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let stop = Stop(&cancel);
        assert_eq!(events.recv_timeout(PATIENCE).unwrap(), WatchEvent::Started);
        scenario(&events);
        drop(stop);
        watcher.join().unwrap().unwrap();
    });
}

/// Takes events until the index says `expected`.
fn until(vault: &Vault, events: &Receiver<WatchEvent>, holds: impl Fn(&Vault) -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds(vault) {
        let left = end.saturating_duration_since(Instant::now());
        events.recv_timeout(left).expect("the index never got there");
    }
}

fn finds(word: &'static str, count: usize) -> impl Fn(&Vault) -> bool {
    move |vault| {
        let query = Query::literal(word).limit(5000);
        vault.index().search(&query).is_ok_and(|hits| hits.results.len() == count)
    }
}

#[test]
fn edits_renames_and_bursts() {
    let vault = Vault::new("//- a.md\nthe walrus\n");
    watched(&vault, |events| {
        until(&vault, events, finds("walrus", 1));
        // An editor that saves by renaming.
        vault.write(".a.md.tmp", "the ostrich\n");
        std::fs::rename(vault.root().join(".a.md.tmp"), vault.root().join("a.md")).unwrap();
        until(&vault, events, finds("ostrich", 1));
        assert!(finds("walrus", 0)(&vault));
        // A burst of a thousand files.
        for note in 0..1000 {
            vault.write(&format!("burst/n{note}.md"), "a heron\n");
        }
        until(&vault, events, finds("heron", 1000));
        // A folder moved within the vault costs no embedding, then out of it.
        std::fs::rename(vault.root().join("burst"), vault.root().join("moved")).unwrap();
        let mut report = None;
        while report.is_none() {
            if let WatchEvent::Synced(synced) = events.recv_timeout(PATIENCE).unwrap()
                && synced.renamed > 0
            {
                report = Some(synced);
            }
        }
        assert_eq!(report.unwrap().embedded, 0);
        std::fs::rename(vault.root().join("moved"), vault.root().parent().unwrap().join("out")).unwrap();
        until(&vault, events, finds("heron", 0));
        std::fs::rename(vault.root().parent().unwrap().join("out"), vault.root().join("in")).unwrap();
        until(&vault, events, finds("heron", 1000));
    });
    assert_eq!(vault.dump(), vault.dump_of_rebuild());
}

#[test]
fn the_vaults_own_file_is_read_anew_each_time() {
    let vault = Vault::new("//- a.md\nthe walrus\n//- private/b.md\nthe ostrich\n");
    watched(&vault, |events| {
        until(&vault, events, finds("ostrich", 1));
        vault.write(".vault.toml", "exclude = ['private/']\n");
        until(&vault, events, finds("ostrich", 0));
        // While it is broken, what it may have left out does not come back.
        vault.write(".vault.toml", "exclude = 'private/'\n");
        let says = |event: WatchEvent| matches!(event, WatchEvent::Notice(text) if text.contains(".vault.toml"));
        while !says(events.recv_timeout(PATIENCE).unwrap()) {}
        assert!(finds("ostrich", 0)(&vault));
        std::fs::remove_file(vault.root().join(".vault.toml")).unwrap();
        until(&vault, events, finds("ostrich", 1));
    });
    assert_eq!(vault.dump(), vault.dump_of_rebuild());
}

/// The folder `.obsidian` and the file in it that says what to leave out come together.
#[test]
fn excluded_files_of_obsidian_count_as_soon_as_they_are_there() {
    let vault = Vault::new("//- a.md\nthe walrus\n//- private/b.md\nthe ostrich\n");
    let away = vault.root().with_file_name("settings");
    std::fs::create_dir(&away).unwrap();
    std::fs::write(away.join("app.json"), r#"{"userIgnoreFilters":["private/"]}"#).unwrap();
    watched(&vault, |events| {
        until(&vault, events, finds("ostrich", 1));
        std::fs::rename(&away, vault.root().join(".obsidian")).unwrap();
        until(&vault, events, finds("ostrich", 0));
        std::fs::rename(vault.root().join(".obsidian"), &away).unwrap();
        until(&vault, events, finds("ostrich", 1));
        vault.write(".obsidian/app.json", r#"{"userIgnoreFilters":["private/"]}"#);
        until(&vault, events, finds("ostrich", 0));
    });
    assert_eq!(vault.dump(), vault.dump_of_rebuild());
}

#[test]
fn the_folder_goes_and_comes_back() {
    let vault = Vault::new("//- a.md\nthe walrus\n");
    let away = vault.root().with_file_name("away");
    watched(&vault, |events| {
        until(&vault, events, finds("walrus", 1));
        std::fs::rename(vault.root(), &away).unwrap();
        while events.recv_timeout(PATIENCE).unwrap() != WatchEvent::VaultGone {}
        std::fs::write(away.join("b.md"), "the ostrich\n").unwrap();
        std::fs::rename(&away, vault.root()).unwrap();
        until(&vault, events, |vault| vault.root().exists() && finds("ostrich", 1)(vault));
        assert!(finds("walrus", 1)(&vault), "a vault that is away is not an empty one");
    });
    assert_eq!(vault.dump(), vault.dump_of_rebuild());
}

#[test]
fn one_watcher_a_vault_and_it_is_known() {
    let vault = Vault::new("//- a.md\nthe walrus\n");
    assert_eq!(vault.index().watcher(), None);
    watched(&vault, |events| {
        until(&vault, events, finds("walrus", 1));
        assert!(vault.index().watcher().unwrap().contains("process"));
        let second = vault.index().watch(&WatchOptions::new()).map(drop).unwrap_err();
        assert_eq!(second.kind(), ErrorKind::Locked);
        // Its lock is not the write lock: others can still sync.
        vault.write("b.md", "the ostrich\n");
        vault.sync();
        assert!(finds("ostrich", 1)(&vault));
    });
    assert_eq!(vault.index().watcher(), None);
}

#[test]
fn embedding_is_told_in_few_events_and_walks_nothing() {
    let vault = Vault::new("");
    (0..60).for_each(|n| vault.write(&format!("note {n}.md"), format!("# Note {n}\n\nA heron waits in water {n}.\n")));
    vault.index().sync_with(&SyncOptions::new().without_vectors()).unwrap();
    // A model of which a slice embeds a few texts.
    let slow = Arc::new(SlowModel(HashedEmbedder::new()));
    let index = Index::open(vault.root(), vault.options().embedder(slow)).unwrap();
    let cancel = AtomicBool::new(false);
    let options = WatchOptions::new().cancel(&cancel);
    let mut synced = Vec::new();
    for event in index.watch(&options).unwrap() {
        if let WatchEvent::Synced(report) = event.unwrap() {
            cancel.store(report.pending == 0, Ordering::Relaxed);
            synced.push(report);
        }
    }
    let embedded: usize = synced.iter().map(|report| report.embedded).sum();
    assert_eq!((synced.len(), embedded), (2, 60), "{synced:?}");
    assert!(synced[0].stages_ms.contains_key("walk") && !synced[1].stages_ms.contains_key("walk"), "{synced:?}");
}

struct SlowModel(HashedEmbedder);

impl TokenCount for SlowModel {
    fn count(&self, text: &str) -> usize {
        self.0.count(text)
    }
}

impl Embedder for SlowModel {
    fn id(&self) -> &str {
        self.0.id()
    }
    fn dimensions(&self) -> usize {
        self.0.dimensions()
    }
    fn max_tokens(&self) -> usize {
        self.0.max_tokens()
    }
    fn batch_size(&self) -> usize {
        4
    }
    fn embed(&self, texts: &[&str], role: Role) -> Result<Vec<Vec<f32>>> {
        std::thread::sleep(Duration::from_millis(60) * texts.len() as u32);
        self.0.embed(texts, role)
    }
}
