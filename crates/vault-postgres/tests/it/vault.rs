//! A vault with an index file and a place in a database, to compare their answers.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use vault_index::{HashedEmbedder, Index, Options, Query, Report, Result, Searcher, SyncOptions, backend};
use vault_postgres::{Database, VaultStore};

pub struct Vault {
    folder: TempDir,
    pub name: &'static str,
}

pub fn model() -> Arc<HashedEmbedder> {
    Arc::new(HashedEmbedder::new())
}

impl Vault {
    pub fn new(name: &'static str) -> Self {
        let vault = Self { folder: tempfile::tempdir().unwrap(), name };
        std::fs::create_dir(vault.root()).unwrap();
        vault
    }

    pub fn root(&self) -> PathBuf {
        self.folder.path().join("vault")
    }

    pub fn write(&self, path: &str, content: &str) {
        let file = self.root().join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, content).unwrap();
    }

    /// The index file, up to date.
    pub fn index(&self) -> Index {
        let options = Options::new().index_file(self.folder.path().join("index/index.db")).embedder(model());
        let index = Index::open(self.root(), options).unwrap();
        index.sync().unwrap();
        index
    }

    pub fn writer(&self, database: &Database) -> Result<VaultStore> {
        database.writer(self.name, &*model(), Duration::from_millis(50))
    }

    pub fn sync(&self, database: &Database) -> Result<Report> {
        backend::sync(&self.writer(database)?, &self.root(), &*model(), &[], &SyncOptions::new())
    }

    pub fn searcher(&self, database: &Database) -> Result<Searcher> {
        backend::searcher(database.reader(self.name)?, model())
    }
}

/// All that a search answers, to the last bit of every score.
pub fn answer(searcher: &Searcher, query: &Query) -> String {
    match searcher.search(query) {
        Ok(hits) => format!("{hits:#?}"),
        Err(error) => error.one_line(),
    }
}

/// Asserts that both answer a query alike, the second time too, when an index file has its codes in memory.
pub fn assert_same(file: &Searcher, database: &Searcher, query: &Query) {
    for _ in 0..2 {
        let (expected, found) = (answer(file, query), answer(database, query));
        assert!(expected == found, "{query:?}\n{expected}\n--- in the database:\n{found}");
    }
}
