//! An index of another format is rebuilt, and its vectors are kept by text.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rusqlite::Connection;
use vault_index::{Embedder, ErrorKind, HashedEmbedder, Index, Options, Result, Role, SyncOptions};

use crate::vault::Vault;

/// A model of few dimensions, so that the committed index is small, which counts the texts that it embeds.
#[derive(Debug, Default)]
struct SmallModel(AtomicUsize);

impl vault_index::TokenCount for SmallModel {
    fn count(&self, text: &str) -> usize {
        HashedEmbedder::new().count(text)
    }
}

impl Embedder for SmallModel {
    fn id(&self) -> &str {
        "small-8"
    }

    fn dimensions(&self) -> usize {
        8
    }

    fn max_tokens(&self) -> usize {
        HashedEmbedder::new().max_tokens()
    }

    fn embed(&self, texts: &[&str], role: Role) -> Result<Vec<Vec<f32>>> {
        if role == Role::Passage {
            self.0.fetch_add(texts.len(), Ordering::Relaxed);
        }
        let mut vectors = HashedEmbedder::new().embed(texts, role)?;
        for vector in &mut vectors {
            let sums: Vec<f32> = (0..8).map(|n| 0.01 + vector.iter().skip(n).step_by(8).sum::<f32>()).collect();
            let length = sums.iter().map(|sum| sum * sum).sum::<f32>().sqrt();
            *vector = sums.iter().map(|sum| sum / length).collect();
        }
        Ok(vectors)
    }
}

fn open(vault: &Vault, model: &Arc<SmallModel>) -> Index {
    let options = Options::new().index_file(vault.index_file()).embedder(model.clone());
    Index::open(vault.root(), options).unwrap()
}

/// The notes of which `testdata/format-9.db` is the index; the README beside it says how it was made.
fn notes() -> Vault {
    Vault::new(
        "//- Garden.md\n---\ntags: [garden]\n---\n# Garden\n\nPrune the roses in late winter, see [[Tools]].\n\n## Water\n\nA deep can once a week.\n\
         //- Tools.md\nA sharp knife and a can.\n",
    )
}

/// Puts the committed index in the place of the vault's, as a program of format 9 would have left it there.
fn with_format_9() -> Vault {
    // An index that is open has sqlite-vec registered for the process, which the views of the old one need.
    Vault::new("").sync();
    let vault = notes();
    std::fs::create_dir_all(vault.index_file().parent().unwrap()).unwrap();
    let committed = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/format-9.db");
    std::fs::copy(committed, vault.index_file()).unwrap();
    let db = Connection::open(vault.index_file()).unwrap();
    db.execute("UPDATE meta SET value = ?1 WHERE key = 'vault'", [vault.root().to_str().unwrap()]).unwrap();
    db.execute_batch("PRAGMA page_size = 4096; VACUUM; PRAGMA journal_mode = WAL").unwrap();
    assert_eq!(format(&vault), 9);
    vault
}

fn format(vault: &Vault) -> i64 {
    let db = Connection::open(vault.index_file()).unwrap();
    db.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

#[test]
fn the_vectors_of_format_9_are_kept_and_nothing_is_embedded_again() {
    let (vault, model) = (with_format_9(), Arc::new(SmallModel::default()));
    let index = open(&vault, &model);
    let error = index.searcher().unwrap_err();
    assert_eq!((error.kind(), format(&vault)), (ErrorKind::OtherFormat, 9), "reading changes nothing");
    assert!(error.one_line().contains("format 9") && error.one_line().contains("vault-index sync"), "{error}");
    let report = index.sync().unwrap();
    assert_eq!((report.added, report.embedded, report.reused, report.pending), (2, 0, 2, 0), "{report:?}");
    assert_eq!(model.0.load(Ordering::Relaxed), 0);
    assert!(index.check(&SyncOptions::default()).unwrap().faults.is_empty());
    drop(index);
    assert_ne!(format(&vault), 9);

    // All is as in an index that is made from nothing.
    let (fresh, of_fresh) = (notes(), Arc::new(SmallModel::default()));
    open(&fresh, &of_fresh).sync().unwrap();
    assert_eq!(of_fresh.0.load(Ordering::Relaxed), 3);
    assert_eq!(vault.dump(), fresh.dump());
}

#[test]
fn vectors_that_cannot_be_read_are_embedded_again() {
    let (vault, model) = (with_format_9(), Arc::new(SmallModel::default()));
    Connection::open(vault.index_file()).unwrap().execute_batch("ALTER TABLE embedding RENAME TO vectors").unwrap();
    let report = open(&vault, &model).sync().unwrap();
    assert_eq!((report.embedded, model.0.load(Ordering::Relaxed), report.pending), (3, 3, 0));
}

#[test]
fn an_index_of_another_format_and_another_vault_is_left_alone() {
    let (vault, model) = (with_format_9(), Arc::new(SmallModel::default()));
    let db = Connection::open(vault.index_file()).unwrap();
    db.execute_batch("UPDATE meta SET value = '/elsewhere' WHERE key = 'vault'").unwrap();
    assert_eq!(open(&vault, &model).sync().unwrap_err().kind(), ErrorKind::Vault);
    assert_eq!(format(&vault), 9);
    // Neither is one that does not say of which vault it is.
    db.execute_batch("DROP TABLE meta").unwrap();
    let error = open(&vault, &model).sync().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Damaged);
    assert!(error.one_line().contains("vault-index forget"), "{}", error.one_line());
    assert_eq!(format(&vault), 9);
}

#[test]
fn a_database_of_another_program_is_no_index_of_another_format() {
    let (vault, model) = (notes(), Arc::new(SmallModel::default()));
    std::fs::create_dir_all(vault.index_file().parent().unwrap()).unwrap();
    let db = Connection::open(vault.index_file()).unwrap();
    db.execute_batch("CREATE TABLE mine(a); PRAGMA user_version = 9").unwrap();
    drop(db);
    let before = std::fs::read(vault.index_file()).unwrap();
    let index = open(&vault, &model);
    assert_eq!(index.sync().unwrap_err().kind(), ErrorKind::Damaged);
    assert_eq!(index.rebuild(&SyncOptions::default()).unwrap_err().kind(), ErrorKind::Damaged);
    assert_eq!(std::fs::read(vault.index_file()).unwrap(), before);
}
