//! The handle of one vault's index: open it, update it, search it, query its links.

mod mutex;
mod model;
mod database;
mod forget;
mod rebuild;
mod advice;
mod background;
mod check;
mod list;
mod graph;
mod mentions;
mod broken_links;
mod duplicates;
mod suggest;
#[cfg(feature = "watch")]
mod watch;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::dirs::{self, canonical_vault};
use crate::embed::{Embedder, ModelName};
use crate::error::{Error, ErrorKind, Result};
use crate::files::{DiskFile, Fingerprint, MAX_NOTE_BYTES, WalkRules, read_note, walk};
use crate::index::model::LoadedModel;
use crate::index::mutex::lock;
use crate::indexer::{Indexer, Pace, SyncOptions};
use crate::lock::{self as file_lock, LockName};
use crate::note::ParseOptions;
use crate::path::VaultPath;
use crate::private_file::private_folder;
use crate::report::{Report, Status};
use crate::search::{Hits, Query, Rerank, Searcher};
use crate::store::{
    Database, DatabaseIndex, DatabaseReader, PACE, REBUILDING_TO, REPAIR, ReadContents, ReadVectors, Readers, Store,
};

pub use graph::{GraphData, GraphNode, VaultFile};
#[cfg(feature = "watch")]
pub use watch::{WatchEvent, WatchOptions, Watcher};

/// The index of one vault. Opening is cheap. It can be used from many threads.
///
/// ```
/// use vault_index::{Index, Options, Query};
///
/// # let vault = tempfile::tempdir()?;
/// # std::fs::write(vault.path().join("Roses.md"), "Prune in late winter, see [[Tools]].")?;
/// # std::fs::write(vault.path().join("Tools.md"), "A sharp knife.")?;
/// # let options = Options::new().index_file(vault.path().join(".index/index.db"));
/// # let vault_dir = vault.path();
/// let index = Index::open(vault_dir, options)?;
/// index.sync()?;
/// assert_eq!(index.status()?.notes, 2);
/// assert_eq!(index.search(&Query::parse("winter")?)?.results[0].title, "Roses");
/// assert_eq!(index.backlinks("Tools", 1)?[0].source.as_str(), "Roses.md");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Index {
    vault: PathBuf,
    file: PathBuf,
    options: Options,
    rules: WalkRules,
    /// Models that are loaded.
    loaded: Mutex<Vec<LoadedModel>>,
    /// The newest snapshot and the version that it belongs to.
    snapshot: Mutex<Option<(IndexVersion, Searcher)>>,
    /// The number of readers that have been opened.
    readers: AtomicU64,
    reader: Mutex<Option<Store>>,
    /// The index, if it is in a database; then there is no file.
    database: Option<Arc<dyn DatabaseIndex>>,
    database_readers: Readers<dyn DatabaseReader>,
    /// The files that the last sync of this handle found, if all of them are in the index.
    synced: Mutex<Option<Fingerprint>>,
    /// Closed last, because only a connection that may write can fold the log into the file, and the last one should do
    /// that.
    writer: Mutex<Option<Store>>,
}

/// A version of the index, numbered by one reader: the data versions of two connections cannot be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct IndexVersion {
    reader: u64,
    data_version: i64,
}

/// The state of a vault and its index after a sync, for comparison with a later one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VaultState {
    files: Fingerprint,
    version: IndexVersion,
}

/// The options of an index. The default: the bundled model, the user's cache folder.
///
/// ```
/// use vault_index::{ModelName, Options};
///
/// let options = Options::new().index_file("notes.db").model(ModelName::Hashed).exclude(["drafts/"]);
/// # assert_eq!(options.exclude.len(), 1);
/// ```
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct Options {
    /// The index file. `None`: in the user's cache folder, keyed by the vault's canonical path.
    pub index_file: Option<PathBuf>,
    /// The database that has the index instead of a file.
    pub database: Option<Arc<dyn Database>>,
    /// The model by name. `None`: the model of the index, or the bundled one for a new index.
    pub model: Option<ModelName>,
    /// The address of a remote model.
    pub base_url: Option<String>,
    /// A model of your own, which takes precedence over `model`.
    pub embedder: Option<Arc<dyn Embedder>>,
    /// Globs of files to exclude from the index, as in `.gitignore`, besides those that the vault's own files exclude
    /// (`.vaultignore`, `.vault.toml` and so on).
    pub exclude: Vec<String>,
}

impl Options {
    /// Returns the default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the index file.
    #[must_use]
    pub fn index_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.index_file = Some(file.into());
        self
    }

    /// Sets the database that has the index instead of a file.
    #[must_use]
    pub fn database(mut self, database: Arc<dyn Database>) -> Self {
        self.database = Some(database);
        self
    }

    /// Sets the model.
    #[must_use]
    pub fn model(mut self, model: ModelName) -> Self {
        self.model = Some(model);
        self
    }

    /// Sets the address of a remote model.
    #[must_use]
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = Some(url.into());
        self
    }

    /// Sets a model of your own.
    #[must_use]
    pub fn embedder(mut self, embedder: Arc<dyn Embedder>) -> Self {
        self.embedder = Some(embedder);
        self
    }

    /// Excludes the files that these globs match.
    #[must_use]
    pub fn exclude(mut self, globs: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.exclude.extend(globs.into_iter().map(Into::into));
        self
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("index_file", &self.index_file)
            .field("database", &self.database)
            .field("model", &self.model)
            .field("base_url", &self.base_url)
            .field("embedder", &self.embedder.as_ref().map(|embedder| embedder.id()))
            .field("exclude", &self.exclude)
            .finish()
    }
}

impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index").field("vault", &self.vault).field("file", &self.file).finish_non_exhaustive()
    }
}

impl Index {
    /// Opens the index of a vault. Nothing is read, written or loaded yet.
    ///
    /// # Errors
    /// [`ErrorKind::Vault`] when the folder does not exist.
    pub fn open(vault: impl AsRef<Path>, options: Options) -> Result<Self> {
        Self::of(canonical_vault(vault.as_ref())?, options)
    }

    /// Opens the index of a vault whose folder may no longer exist, so that it can be read and forgotten.
    ///
    /// # Errors
    /// When the system names no cache folder.
    pub fn open_gone(vault: impl AsRef<Path>, options: Options) -> Result<Self> {
        Self::of(dirs::vault_or_gone(vault.as_ref())?, options)
    }

    fn of(vault: PathBuf, options: Options) -> Result<Self> {
        let database = options.database.as_ref().map(|database| database.index_of(&vault));
        let file = match (&database, &options.index_file) {
            // For messages.
            (Some(database), _) => PathBuf::from(database.address()),
            (None, Some(file)) => std::path::absolute(file).map_err(|error| Error::io(file, error))?,
            (None, None) => dirs::index_folder_of(&vault)?.join(INDEX_FILE),
        };
        let rules = WalkRules { exclude: options.exclude.clone() };
        Ok(Self {
            vault,
            file,
            options,
            rules,
            loaded: Mutex::default(),
            writer: Mutex::new(None),
            reader: Mutex::new(None),
            database,
            database_readers: Readers::new(None),
            synced: Mutex::new(None),
            snapshot: Mutex::new(None),
            readers: AtomicU64::new(0),
        })
    }

    /// The vault's folder, canonical.
    pub fn vault(&self) -> &Path {
        &self.vault
    }

    /// The index file; for an index in a database its address, without a password.
    pub fn index_file(&self) -> &Path {
        &self.file
    }

    /// Updates the index, and waits as long as that takes.
    ///
    /// # Errors
    /// See [`Index::sync_with`].
    pub fn sync(&self) -> Result<Report> {
        self.sync_with(&SyncOptions::default())
    }

    /// Updates the index: reads only what changed, embeds only new texts. The comparison with the disk is linear in the
    /// number of files, the rest in the bytes of the changes.
    ///
    /// # Errors
    /// [`ErrorKind::Locked`] when another writer does not finish in time, [`ErrorKind::OtherModel`] when the index has
    /// another model than the requested one, or one at another remote address, [`ErrorKind::Query`] for an invalid
    /// `.vault.toml`, [`ErrorKind::Model`], [`ErrorKind::Damaged`], [`ErrorKind::Store`]. Everything that was committed
    /// before stays, and the next sync continues from there.
    pub fn sync_with(&self, options: &SyncOptions<'_>) -> Result<Report> {
        self.sync_taking(&Ok, options)
    }

    /// Updates the index; `vectors` wraps the model.
    fn sync_taking(&self, vectors: &WrapModel<'_>, options: &SyncOptions<'_>) -> Result<Report> {
        if let Some(database) = &self.database {
            return self.sync_database(&**database, vectors, options);
        }
        let mut writer = self.writer()?;
        *lock(&self.synced) = None;
        let store = writer.as_mut().expect("opened by writer()");
        self.prepare(store, options)?;
        if self.differs(store)?.is_some() {
            let _embedding = options.lock(&self.file, LockName::Embed)?;
            // The process that held the lock may have done it.
            let Some(differs) = self.differs(store)? else {
                drop((writer, _embedding));
                return self.sync_taking(vectors, options);
            };
            let wanted = match self.unfinished_rebuild(store)? {
                Some(wanted) => wanted,
                // The user has not agreed that notes are sent to this address.
                None if differs.is_remote => return Err(differs.error()),
                None => self.wanted(store)?,
            };
            // All vectors are missing. Those that are computed within the limit stay for the next sync.
            let within = options.vectors_within.and_then(|limit| Instant::now().checked_add(limit));
            let deadline = options.deadline.into_iter().chain(within).min();
            return self.rebuild_into(store, &wanted, None, &SyncOptions { deadline, ..options.clone() });
        }
        let embedder = vectors(self.embedder(store)?)?;
        let (report, fingerprint) = self.indexer(store, embedder.as_ref(), options).sync()?;
        *lock(&self.synced) = fingerprint;
        if !options.vectors || options.vectors_within.is_some() || store.meta(REBUILDING_TO)?.is_none() {
            return Ok(report);
        }
        // A process that rebuilds now continues it.
        let _embedding = match file_lock::lock(&self.file, LockName::Embed, Some(Duration::ZERO), None) {
            Err(error) if error.kind() == ErrorKind::Locked => return Ok(report),
            embedding => embedding?,
        };
        match self.unfinished_rebuild(store)? {
            Some(wanted) => self.rebuild_into(store, &wanted, None, options),
            None => Ok(report),
        }
    }

    /// Embeds pending texts as [`Index::sync_with`] does, without reading the vault. `None`: only a sync can continue.
    #[cfg(feature = "watch")]
    fn embed_with(&self, options: &SyncOptions<'_>) -> Result<Option<Report>> {
        if self.database.is_some() {
            return Ok(None);
        }
        let writer = self.writer()?;
        let store = writer.as_ref().expect("opened by writer()");
        if self.differs(store)?.is_some() || store.meta(REBUILDING_TO)?.is_some() {
            return Ok(None);
        }
        let embedder = self.embedder(store)?;
        self.indexer(store, embedder.as_ref(), options).embed().map(Some)
    }

    /// An indexer for a store that other processes write to as well.
    fn indexer<'a>(
        &'a self,
        store: &'a Store,
        embedder: &'a dyn Embedder,
        options: &'a SyncOptions<'a>,
    ) -> Indexer<'a> {
        let (vault, rules) = (&self.vault, &self.rules);
        let parse = ParseOptions::of_vault(vault);
        Indexer { store, locks: Some(&self.file), vault, parse, embedder, rules, options }
    }

    /// The state after the last sync by this handle; `None` if some files of the vault are not known.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn state(&self) -> Result<Option<VaultState>> {
        // The order matters: a sync in between gives a version that [`Index::is_still`] does not find again.
        let version = self.read(|store| self.version_of(store))?;
        let files = *lock(&self.synced);
        Ok(files.map(|files| VaultState { files, version }))
    }

    /// Whether no file of the vault has changed since `state`, and nothing was written to the index. Costs a walk of
    /// the vault, and reading the notes that were edited in the two seconds before `state`; nothing is synced.
    ///
    /// # Errors
    /// If the vault cannot be listed, or the index cannot be read.
    pub fn is_still(&self, state: &VaultState) -> Result<bool> {
        let walked = walk(&self.vault, &self.rules, &AtomicBool::new(false))?;
        let Some(young) = state.files.same_but(&walked) else { return Ok(false) };
        let known: Option<Vec<_>> = self.read(|store| {
            let is_same = self.version_of(store)? == state.version;
            is_same.then(|| young.iter().map(|file| store.content_hash(&file.path)).collect()).transpose()
        })?;
        let Some(known) = known else { return Ok(false) };
        let hash = |file: &DiskFile| Some(read_note(&self.vault, file, MAX_NOTE_BYTES).ok()?.hash);
        Ok(young.into_iter().zip(known).all(|(file, known)| hash(file) == known))
    }

    fn version_of(&self, store: &dyn ReadContents) -> Result<IndexVersion> {
        Ok(IndexVersion { reader: self.readers.load(Ordering::Relaxed), data_version: store.version()? })
    }

    /// Returns a snapshot for searches; the same one until something is committed.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when there is no index yet, [`ErrorKind::OtherModel`], [`ErrorKind::Damaged`].
    pub fn searcher(&self) -> Result<Searcher> {
        if let Some(database) = &self.database {
            return self.database_searcher(&**database);
        }
        let version = self.read(|store| {
            self.check_vault(store)?;
            self.check_model(store)?;
            self.version_of(store)
        })?;
        let mut cached = lock(&self.snapshot);
        if let Some((at, searcher)) = cached.as_ref()
            && *at == version
        {
            return Ok(searcher.clone());
        }
        // The old snapshot is dropped first, so that the log that it reads can be folded into the file.
        *cached = None;
        let store = Store::open_read(&self.file)?;
        let (source, usable) = self.query_source(&store)?;
        store.pin_for_search()?;
        let searcher = Searcher::new(Box::new(store), source, usable)?;
        *cached = Some((version, searcher.clone()));
        Ok(searcher)
    }

    /// Searches the index as it is now. Call [`Index::sync`] first to find recent changes.
    ///
    /// # Errors
    /// See [`Index::searcher`] and [`Searcher::search`].
    pub fn search(&self, query: &Query) -> Result<Hits> {
        self.searcher()?.search(query)
    }

    /// Searches like [`Index::search`], with the best passages scored again by a reranker.
    ///
    /// # Errors
    /// See [`Index::searcher`] and [`Searcher::search_reranked`].
    pub fn search_reranked(&self, query: &Query, rerank: &Rerank) -> Result<Hits> {
        self.searcher()?.search_reranked(query, rerank)
    }

    /// Estimates how long a sync takes for the missing vectors, from the speed of the last one that embedded. `None`:
    /// no vector is missing, or nothing has been embedded yet. Linear in the number of missing vectors.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when there is no index yet.
    pub fn time_to_embed(&self) -> Result<Option<Duration>> {
        self.read(|store| match store.pending()? {
            0 => Ok(None),
            texts => Ok(Pace::new(store.meta(PACE)?.as_deref()).time(store.pending_size(texts)?)),
        })
    }

    /// The process that embeds for this index now, if there is one.
    pub fn embedding(&self) -> Option<String> {
        self.only_file("").ok()?;
        file_lock::holder(&self.file, LockName::Embed)
    }

    /// The watcher that keeps this index up to date now, if there is one.
    pub fn watcher(&self) -> Option<String> {
        self.only_file("").ok()?;
        file_lock::holder(&self.file, LockName::Watch)
    }

    /// The path of a file by its name on disk, which differs from the [`VaultPath`] if the name is not Unicode or not
    /// in composed form.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when there is no index yet.
    pub fn file_of(&self, path: &VaultPath) -> Result<PathBuf> {
        let disk = self.read(|store| store.disk_path(path))?;
        Ok(self.vault.join(disk.as_deref().unwrap_or(Path::new(path.as_str()))))
    }

    /// The contents and the state of the index.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when there is no index yet.
    pub fn status(&self) -> Result<Status> {
        self.read(|store| {
            self.check_vault(store)?;
            let (notes, attachments, tags) = store.counts()?;
            let (links, unresolved) = store.link_counts()?;
            let (skipped, warnings) = store.warnings()?;
            let (_, dimensions) = store.embedder()?.unwrap_or_default();
            let (unknown_share, advice) = self.advice(store)?;
            Ok(Status {
                vault: self.vault.clone(),
                index: self.file.clone(),
                index_bytes: store.bytes()?,
                notes,
                attachments,
                chunks: store.passage_count()?,
                pending: store.pending()?,
                unread: store.unread()?,
                links,
                unresolved,
                tags,
                model: store.meta("model")?.unwrap_or_default(),
                background: self.background_of(store)?,
                rebuilding_to: store.meta(REBUILDING_TO)?,
                dimensions,
                vectors: store.vector_count()?,
                last_sync: store.meta("last_sync")?.and_then(|t| t.parse().ok()),
                watcher: self.watcher(),
                unknown_share,
                advice,
                skipped,
                warnings,
            })
        })
    }

    /// The open writer, which the first call opens. It rebuilds an index of another format.
    fn writer(&self) -> Result<MutexGuard<'_, Option<Store>>> {
        self.only_file("this")?;
        let mut writer = lock(&self.writer);
        if writer.is_none() {
            if let Some(folder) = self.file.parent() {
                private_folder(folder)?;
            }
            *writer = Some(match Store::open(&self.file) {
                Err(error) if error.kind() == ErrorKind::OtherFormat => self.renew()?,
                store => store?,
            });
        }
        Ok(writer)
    }

    /// Calls `read` with the open reader, which the first call opens.
    fn read<T>(&self, read: impl FnOnce(&dyn ReadContents) -> Result<T>) -> Result<T> {
        if let Some(database) = &self.database {
            return self.read_database(&**database, read);
        }
        let mut reader = lock(&self.reader);
        if reader.is_none() {
            *reader = Some(Store::open_read(&self.file)?);
            self.readers.fetch_add(1, Ordering::Relaxed);
        }
        let store = reader.as_ref().expect("just opened");
        let result = store.reading().and_then(|_one_state| read(store));
        if result.is_err() {
            // After any error, the next call opens a new reader, because the file may have been replaced.
            *reader = None;
        }
        result
    }

    /// Gives a new index its model and vault; checks those of an existing one.
    fn prepare(&self, store: &Store, options: &SyncOptions<'_>) -> Result<()> {
        self.check_vault(store)?;
        self.check_model(store)?;
        if store.embedder()?.is_some() {
            return Ok(());
        }
        let wanted = self.wanted(store)?;
        let _lock = options.lock(&self.file, LockName::Write)?;
        if store.embedder()?.is_none() {
            self.describe(store, &wanted)?;
        }
        Ok(())
    }

    fn check_vault(&self, store: &dyn ReadContents) -> Result<()> {
        if self.database.is_some() {
            // Its folder may be another one on each machine.
            return Ok(());
        }
        match store.meta("vault")? {
            Some(vault) if vault != self.vault.to_string_lossy() => Err(self.is_of(&vault)),
            Some(_) if store.embedder()?.is_some() && store.meta("model")?.is_some() => Ok(()),
            // A new index gets its settings before anything else.
            _ if store.has_content()? => Err(self.has_lost_settings()),
            _ => Ok(()),
        }
    }

    fn is_of(&self, vault: &str) -> Error {
        let Some(file) = &self.options.index_file else {
            // The folder belongs to this vault only.
            return self.has_lost_settings();
        };
        let error = Error::new(ErrorKind::Vault, format!("this index is of another vault, {vault}")).at(&self.file);
        let (here, file) = (self.vault.display(), file.display());
        match Path::new(vault).is_dir() {
            true => error.with_remedy(format!(
                "name that vault with --vault \"{vault}\"; an index of {here} needs another file"
            )),
            false => error.with_remedy(format!(
                "if that vault has moved here, run `vault-index adopt \"{vault}\" --vault \"{here}\" --index \"{file}\"`"
            )),
        }
    }

    fn has_lost_settings(&self) -> Error {
        Error::new(ErrorKind::Damaged, "the index no longer names its vault or its model")
            .at(&self.file)
            .with_remedy(REPAIR)
    }
}

/// Wraps a model before it embeds.
type WrapModel<'a> = dyn Fn(Arc<dyn Embedder>) -> Result<Arc<dyn Embedder>> + 'a;

/// The name of the index file in its folder.
const INDEX_FILE: &str = "index.db";

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_vault_is_still_as_it_was_until_a_file_or_the_index_changes() {
        let folder = tempfile::tempdir().unwrap();
        let (vault, note) = (folder.path().join("vault"), folder.path().join("vault/a.md"));
        fs::create_dir(&vault).unwrap();
        fs::write(&note, "one").unwrap();
        let options = Options::new().index_file(folder.path().join("index.db")).model(ModelName::Hashed);
        let index = Index::open(&vault, options).unwrap();
        let synced = || {
            index.sync().unwrap();
            index.state().unwrap().unwrap()
        };
        let first = synced();
        assert!(index.is_still(&first).unwrap() && index.is_still(&synced()).unwrap());
        fs::write(&note, "two").unwrap();
        assert!(!index.is_still(&first).unwrap());
        // The clock may be too coarse to distinguish two edits, so the stat is made to look like that of the first.
        let now_ns = i64::try_from(jiff::Timestamp::now().as_nanosecond()).unwrap();
        let walked = walk(&index.vault, &index.rules, &AtomicBool::new(false)).unwrap();
        let edited = VaultState { files: Fingerprint::of(&walked, now_ns).unwrap(), ..first };
        assert!(!index.is_still(&edited).unwrap());
        let second = synced();
        assert!(index.is_still(&second).unwrap());
        index.writer().unwrap().as_ref().unwrap().set_meta("anything", "new").unwrap();
        assert!(!index.is_still(&second).unwrap(), "somebody wrote to the index");
        fs::remove_file(&note).unwrap();
        assert!(!index.is_still(&second).unwrap());
    }
}
