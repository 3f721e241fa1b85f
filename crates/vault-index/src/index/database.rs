//! An index in a database, and copies between indexes.
//!
//! The lock of the writer, the states that readers see and the rights are those of the database; there are no lock
//! files, no embedding in the background, and an index is emptied and filled again by a rebuild, not built beside.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use crate::embed::Embedder;
use crate::error::{Error, ErrorKind, Result};
use crate::index::mutex::lock;
use crate::index::{Index, WrapModel};
use crate::indexer::{Indexer, StoredVectors, SyncOptions};
use crate::note::ParseOptions;
use crate::report::Report;
use crate::search::Searcher;
use crate::store::{DatabaseIndex, DatabaseReader, InUse, ReadContents, ReadStore, Store, WriteStore};

impl Index {
    /// Whether there is an index, as far as this user may know.
    pub(super) fn exists(&self) -> Result<bool> {
        match &self.database {
            None => Ok(self.file.exists()),
            Some(_) => match self.read(|_| Ok(())) {
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
                read => read.map(|()| true),
            },
        }
    }

    /// As [`exists`](Self::exists), before a sync: upgrades a database of an older format.
    pub(super) fn exists_upgraded(&self) -> Result<bool> {
        match (self.exists(), &self.database) {
            (Err(error), Some(database)) if error.kind() == ErrorKind::OtherFormat => database.create().map(|()| true),
            (exists, _) => exists,
        }
    }

    /// Refuses something that needs an index file.
    pub(super) fn only_file(&self, what: &str) -> Result<()> {
        match &self.database {
            None => Ok(()),
            Some(_) => Err(Error::new(
                ErrorKind::Query,
                format!("{what} needs an index file, and this index is in a database"),
            )
            .at(&self.file)
            .with_remedy("leave out --index; `vault-index pull` makes an index file of a database")),
        }
    }

    /// Calls `read` with the newest state.
    pub(super) fn read_database<T>(
        &self,
        database: &dyn DatabaseIndex,
        read: impl FnOnce(&dyn ReadContents) -> Result<T>,
    ) -> Result<T> {
        read(&*self.newest(database)?)
    }

    /// A reader of the newest state.
    fn newest(&self, database: &dyn DatabaseIndex) -> Result<InUse<'_, dyn DatabaseReader>> {
        loop {
            let is_new = Cell::new(false);
            let reader = self.database_readers.take(|| {
                is_new.set(true);
                database.reader().map(Some).map_err(|error| match error.kind() {
                    // A search may be of several databases.
                    ErrorKind::OtherFormat => error.at(&self.file),
                    _ => error,
                })
            })?;
            if is_new.get() || reader.renew().is_ok() {
                return Ok(reader);
            }
            // The connection was lost since, and probably also those of the searcher.
            drop(reader.into_inner());
            *lock(&self.snapshot) = None;
        }
    }

    /// As [`Index::searcher`].
    pub(super) fn database_searcher(&self, database: &dyn DatabaseIndex) -> Result<Searcher> {
        let reader = self.newest(database)?;
        self.check_model(&*reader)?;
        let version = self.version_of(&*reader)?;
        let mut cached = lock(&self.snapshot);
        if let Some((at, searcher)) = cached.as_ref()
            && *at == version
        {
            return Ok(searcher.clone());
        }
        *cached = None;
        let (source, usable) = self.query_source(&*reader)?;
        // The reader becomes the searcher's; the next look for changes opens another.
        let searcher = Searcher::new(reader.into_inner(), source, usable)?;
        *cached = Some((version, searcher.clone()));
        Ok(searcher)
    }

    pub(super) fn sync_database(
        &self,
        database: &dyn DatabaseIndex,
        vectors: &WrapModel<'_>,
        options: &SyncOptions<'_>,
    ) -> Result<Report> {
        *lock(&self.synced) = None;
        if !self.exists_upgraded()? {
            database.create()?;
        }
        let wanted = self.read(|store| {
            self.check_model(store)?;
            match self.differs(store)? {
                Some(differs) if differs.is_remote => Err(differs.error()),
                Some(differs) => {
                    Err(differs.error().with_remedy("run `vault-index rebuild`, which embeds everything again"))
                }
                None => self.wanted(store),
            }
        })?;
        let store = database.writer(&*wanted.embedder, wait_of(options))?;
        if store.meta("model")?.is_none() {
            store.set_meta("model", &wanted.name)?;
            wanted.base_url.iter().try_for_each(|url| store.set_meta("base_url", url))?;
        }
        self.fill(&*store, &*vectors(wanted.embedder)?, options)
    }

    /// Empties the index and fills it again, with the vectors that `before` has. Searches meanwhile find what is there so
    /// far.
    pub(super) fn rebuild_database(
        &self,
        database: &dyn DatabaseIndex,
        before: Option<Box<dyn DatabaseReader>>,
        options: &SyncOptions<'_>,
    ) -> Result<Report> {
        if !self.exists()? {
            return self.sync_with(options);
        }
        let wanted = self.read(|store| self.wanted_anew(store))?;
        let mut settings = vec![("model", wanted.name.as_str())];
        settings.extend(wanted.base_url.as_deref().map(|url| ("base_url", url)));
        let store = database.emptied(&*wanted.embedder, &settings, wait_of(options))?;
        let embedder = match before {
            Some(before) => Arc::new(StoredVectors::of(before, wanted.embedder)?),
            None => wanted.embedder,
        };
        self.fill(&*store, &*embedder, options)
    }

    fn fill(&self, store: &dyn WriteStore, embedder: &dyn Embedder, options: &SyncOptions<'_>) -> Result<Report> {
        let (vault, rules) = (&self.vault, &self.rules);
        let parse = ParseOptions::of_vault(vault);
        let (report, fingerprint) = Indexer { store, locks: None, vault, parse, embedder, rules, options }.sync()?;
        *lock(&self.synced) = fingerprint;
        // Open transactions of a watcher that waits would keep the server from cleaning up.
        self.database_readers.close_idle();
        Ok(report)
    }

    /// Updates this index as [`Index::sync_with`] does, with the vectors that another index of the vault has: only texts
    /// that are new are embedded. A new index gets the model of the other one.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if there is no other index; [`ErrorKind::OtherModel`] if this one has another model; those
    /// of [`Index::sync_with`].
    pub fn copy_from(mut self, source: &Self, options: &SyncOptions<'_>) -> Result<Report> {
        let (name, base_url) = source.read(|store| Ok((store.meta("model")?, store.meta("base_url")?)))?;
        let name = name.ok_or_else(|| {
            Error::new(ErrorKind::NotFound, "the index to copy has no model yet")
                .at(&source.file)
                .with_remedy("sync it first")
        })?;
        if self.options.embedder.is_none() {
            self.options.model = Some(name.parse()?);
            self.options.base_url = base_url;
        }
        let wrap = |model: Arc<dyn Embedder>| -> Result<Arc<dyn Embedder>> {
            let store: Box<dyn ReadStore> = match &source.database {
                Some(database) => database.reader()?,
                None => {
                    let store = Store::open_read(&source.file)?;
                    store.pin()?;
                    Box::new(store)
                }
            };
            Ok(Arc::new(StoredVectors::of(store, model)?))
        };
        self.sync_taking(&wrap, options)
    }
}

/// How long to wait for another writer.
fn wait_of(options: &SyncOptions<'_>) -> Duration {
    options.wait.unwrap_or(FOR_ANOTHER_WRITER)
}

/// How long to wait for another writer by default.
const FOR_ANOTHER_WRITER: Duration = Duration::from_secs(60);
