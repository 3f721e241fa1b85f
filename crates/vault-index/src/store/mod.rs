//! The only module with SQL: one SQLite file contains a vault's notes, passages, links, words and vectors.
//!
//! # The file
//! A SQLite database in WAL mode, `application_id` "vidx", `user_version` = the format ([`schema::FORMAT`]).
//! All rows of one note change in one transaction, so readers never see a partly written note.
//!
//! | table | a row is | notes |
//! | --- | --- | --- |
//! | `meta` | a setting | `vault`, `embedder`, `dimensions`, `window`, `last_sync`, `rebuilding_to`; `unread`, the number of notes without a hash that can be read; `next_passage`, the first id that no passage ever had; `postings_cleaned_at`, its value when entries of removed passages were last deleted |
//! | `file` | a file of the vault that is not hidden | its stat (size, times, inode), when it was last checked, and for indexed notes their content hash and `version` |
//! | `note` | an indexed note (same id as its file) | title, aliases, tags, frontmatter, headings and blocks as JSON; `file_title` and its vector if the note does not contain its file's name |
//! | `name` | a name of a note: title, file name without ending, aliases, each spelling once | `key` as [`crate::terms`] folds it; `n` counts a note's names |
//! | `tag` | a tag of a note | `key` folded, `shown` is the first spelling |
//! | `property` | one value of a frontmatter property | `n` counts a note's values; lists have one row per item |
//! | `passage` | a chunk: its note, its vector, the number of terms of its text and of tokens of its embedded text | |
//! | `passage_block` | the same for 256 passages, packed | read by searches for all passages; layout in [`passages`] |
//! | `passage_text` | the chunk's text, headings, lines and bytes | read for the hits only |
//! | `link` | a link or embed | its id is its note's id and its number in the note, so that a note's links are adjacent; `name` is a hash of what its resolution depends on; `target` a file, or NULL |
//! | `words` | FTS5 over a passage's headings and body | contentless; fed with the terms of [`crate::terms`] joined by spaces; rowid = passage id |
//! | `posting` | the passages of 4,096 ids that contain a term, packed | how often, without positions; layout in [`postings`] |
//! | `note_words` | FTS5 over a note's title, aliases, tags, values of properties and folder names | the same; rowid = note id; they count as words of all its passages |
//! | `vocabulary` | a word that a note has or had, folded | `stem` if it is another word; used to expand a query's words |
//! | `embedding` | a text that has a vector | `key` = hash of the exact text embedded; its id is the vector's rowid and slot |
//! | `vectors_NAME` | the f32 vectors | a sqlite-vec `vec0` table with cosine distance, 8 vectors per blob, named after the model |
//! | `codes` | int8 codes of 1,024 slots | scanned by searches; layout in [`crate::vectors`] |
//! | `codes_sum` | the checksum of a block of `codes` | stored beside it, because a block is written row by row |
//! | `warning` | a warning about a file | `skipped`: 0 if the note is indexed, 1 if reading it failed, 2 if listing the vault found it |
//!
//! Columns named `sum` hold checksums ([`checksum`]). Views for other programs: `documents`, `chunks`, `links`.
//!
//! # Other stores
//! A search asks a [`ReadStore`], and the indexer writes to a [`WriteStore`]; neither need be SQLite. Each is the sum of
//! one trait for each subject, beside the SQL that answers it. Files, locks, formats and the replacement of a whole
//! index are not among them: these belong to [`Store`].
//!
//! # Freshness
//! A note is up to date when its file's content hash and `version` (parser, chunker, model window) are those of its
//! row. A passage has its vector, or `vector` is NULL and it is pending. Vectors are found by text, so they are reused
//! after a rename, a move, an edit elsewhere in the note or a copy. Unused vectors stay for a while, because notes may
//! come back; [`vectors`] deletes them when there are many.

mod schema;
mod checksum;
mod open_file;
mod file;
mod names;
mod notes;
mod links;
mod fulltext;
mod postings;
mod vectors;
mod passages;
mod contents;
mod batch;
mod readers;
mod database;
mod compare;

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, OpenFlags, OptionalExtension, Params, Row, Transaction, TransactionBehavior};

use crate::error::{Error, ErrorKind, Result};
use crate::path::{FileId, VaultPath};
use crate::private_file::make_private;
use crate::report::counted_as;
use crate::store::open_file::OpenFile;
use crate::store::postings::NewPostings;

pub use batch::{Batch, NewNote, WriteStore};
pub(crate) use compare::{Differences, differences_of};
pub use contents::ReadContents;
pub use database::{Database, DatabaseIndex, DatabaseReader};
pub(crate) use file::{FileContent, damaged_of, free_damaged_name, index_bytes, logs_of, rebuild_of};
pub(crate) use fulltext::FIELD_COUNT;
pub use fulltext::{Field, Holder, NoteFields, PassageFields, ReadWords, Word, WriteWords};
pub use links::{LinkRow, ReadLinks, StoredLink, WriteLinks, ids_of};
pub use names::{Name, NamedNote, ReadNames, may_share};
pub(crate) use notes::json;
pub use notes::{Anchors, NoteMeta, NoteRow, PropertyValue, ReadNotes, StoredFile, StoredTexts, WriteNotes, has_key};
pub use passages::{NewPassage, PassageRow, PassageText, PendingText, ReadPassages, Slot, WritePassages, least_size};
pub(crate) use readers::{InUse, Readers};
pub use readers::{OpenReader, Share};
pub(crate) use schema::FORMAT;
pub use vectors::{EmbeddingKey, ReadVectors, VectorReader, WriteVectors, key_of};

/// How long to wait for another process's transaction.
const BUSY: Duration = Duration::from_secs(30);

/// The key of the speed at which the last sync embedded.
pub(crate) const PACE: &str = "embedding_pace";

/// The key of the record of background embedding.
pub(crate) const BACKGROUND: &str = "background_embedding";

/// The remedy in errors about damage.
pub(crate) const REPAIR: &str = "run `vault-index check --repair`; your notes are not touched";

/// The setting with the name of the model of an unfinished rebuild.
pub(crate) const REBUILDING_TO: &str = "rebuilding_to";
/// Its id, which includes its address, and the address as it was given.
pub(crate) const REBUILDING_EMBEDDER: &str = "rebuilding_embedder";
pub(crate) const REBUILDING_URL: &str = "rebuilding_base_url";

/// The settings that identify the vault and the model of an index; the others follow from its rows.
const KEPT_SETTINGS: [&str; 7] =
    ["vault", "model", "base_url", PACE, REBUILDING_TO, REBUILDING_EMBEDDER, REBUILDING_URL];

/// One state of an index, as a search reads it: everything that ranking asks. It need not be SQLite.
pub trait ReadStore:
    ReadNotes + ReadNames + ReadLinks + ReadWords + ReadPassages + ReadVectors + Prefetch + Share + Send
{
}

impl<S: ReadNotes + ReadNames + ReadLinks + ReadWords + ReadPassages + ReadVectors + Prefetch + Share + Send> ReadStore
    for S
{
}

/// Tells a store what it will be asked, so that one behind a network can read many answers in one round trip. A store that
/// answers at once has nothing to do.
pub trait Prefetch {
    /// Whether [`prefetch`](Self::prefetch) calls `ask`.
    fn prefetches(&self) -> bool {
        false
    }

    /// Calls `ask`, whose questions to this store may get empty answers, and then reads all that they ask for. `ask`
    /// changes nothing.
    fn prefetch(&self, ask: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let _ = ask;
        Ok(())
    }
}

impl Prefetch for Store {}

impl Share for Store {}

/// A connection to an index file.
pub(crate) struct Store {
    conn: Connection,
    path: PathBuf,
    /// The blocks that this transaction has changed.
    changed: RefCell<BTreeSet<ChangedBlock>>,
    /// The words of the passages that this transaction has added.
    new_postings: RefCell<NewPostings>,
    /// A second connection to the same state, for the first scan of all vectors.
    other: Cell<Option<Box<Store>>>,
    /// Whether this connection has the views of [`occurrence_views`](Self::occurrence_views).
    has_views: Cell<bool>,
    /// Dropped after the connection, because it is the last field; `None` for one without a file.
    _file: Option<OpenFile>,
}

/// A block that is completed when the transaction is committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ChangedBlock {
    /// It must be packed again, with its checksum.
    Passages(i64),
    /// It needs a new checksum.
    Codes(i64),
}

/// A transaction of a [`Store`] that writes: rolled back when dropped before `commit`.
pub(crate) struct StoreTransaction<'a> {
    store: &'a Store,
    transaction: Transaction<'a>,
}

impl StoreTransaction<'_> {
    /// Commits.
    pub(crate) fn commit(self) -> Result<()> {
        let Self { store, transaction } = self;
        store.write_postings()?;
        store.with(|_| {
            for block in store.changed.take() {
                match block {
                    ChangedBlock::Passages(block) => store.pack(block)?,
                    ChangedBlock::Codes(block) => store.sum_codes(block)?,
                }
            }
            transaction.commit()
        })
    }
}

impl Store {
    /// Opens an index for writing; creates it if it is missing or empty.
    ///
    /// # Errors
    /// [`ErrorKind::Damaged`] for a file that is not an index, or a damaged one; [`ErrorKind::OtherFormat`].
    pub(crate) fn open(path: &Path) -> Result<Self> {
        retry_while_busy(|| Self::open_now(path))
    }

    fn open_now(path: &Path) -> Result<Self> {
        let store = Self::open_any_format(path)?;
        schema::create(&store)?;
        Ok(store)
    }

    /// Opens an index for writing, whatever its format: only its settings may be read and written, or its whole content
    /// replaced.
    ///
    /// # Errors
    /// [`ErrorKind::Damaged`] for a file that is not an index, or a damaged one.
    pub(crate) fn open_any_format(path: &Path) -> Result<Self> {
        let file = file::index_to_write(path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let conn = Self::connect(path, flags, false).map_err(|e| Error::from(e).at(path))?;
        let store = Self::new(conn, path, Some(file));
        make_private(path)?;
        if store.only::<i64>("PRAGMA application_id", [])? == 0 {
            // Set before there is a log, so that the file itself identifies its program even if the process is killed
            // at any later point.
            store.with(|conn| conn.pragma_update(None, "application_id", schema::APPLICATION_ID))?;
        }
        store.with(|conn| {
            conn.pragma_update(None, "journal_mode", "wal")?;
            conn.pragma_update(None, "synchronous", "normal")?;
            conn.pragma_update(None, "wal_autocheckpoint", 4000)
        })?;
        Ok(store)
    }

    /// Opens an index for reading. Never writes; works on read-only media.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when there is no index; otherwise as [`Store::open`].
    pub(crate) fn open_read(path: &Path) -> Result<Self> {
        retry_while_busy(|| {
            let store = Self::open_settings(path)?;
            schema::check_format(&store)?;
            Ok(store)
        })
    }

    /// Opens an index, whatever its format: only its settings may be read.
    ///
    /// # Errors
    /// The errors of [`Store::open_read`].
    pub(crate) fn open_settings(path: &Path) -> Result<Self> {
        let file = file::index_to_read(path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        // A WAL database needs its `-shm` file. If the folder is not writable and no writer has created one, the file
        // cannot change either, and is opened as immutable. The first read of the file shows which case it is. In an
        // immutable file, the contents of an existing log would be missed.
        let [log, _] = logs_of(path);
        let is_folded = std::fs::metadata(&log).map_or(true, |log| log.len() == 0);
        let conn = match Self::connect(path, flags, false) {
            Err(error) if is_cannot_open(&error) && is_folded => Self::connect(path, flags, true),
            result => result,
        }
        .map_err(|e| Error::from(e).at(path))?;
        let store = Self::new(conn, path, Some(file));
        // The process that created it was killed before it had tables.
        if schema::format_of(&store)? == 0 { Err(file::no_index(path)) } else { Ok(store) }
    }

    /// With `immutable`, no process can change the file, as on read-only media.
    fn connect(path: &Path, flags: OpenFlags, immutable: bool) -> rusqlite::Result<Connection> {
        vectors::register_sqlite_vec();
        let conn = match immutable {
            false => Connection::open_with_flags(path, flags)?,
            true => {
                let escaped = percent_encoding::utf8_percent_encode(&path.to_string_lossy(), URI).to_string();
                let uri = format!("file:{escaped}?immutable=1");
                Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI)?
            }
        };
        setup(&conn)?;
        conn.query_row("SELECT count(*) FROM sqlite_master", [], |_| Ok(()))?;
        Ok(conn)
    }

    fn new(conn: Connection, path: &Path, file: Option<OpenFile>) -> Self {
        let (changed, new_postings) = (RefCell::default(), RefCell::default());
        let (other, has_views) = (Cell::default(), Cell::default());
        Self { conn, path: path.to_path_buf(), changed, new_postings, other, has_views, _file: file }
    }

    /// Starts a transaction that will write; readers continue to see the previous state.
    pub(crate) fn begin(&self) -> Result<StoreTransaction<'_>> {
        let transaction = self.with(|conn| Transaction::new_unchecked(conn, TransactionBehavior::Immediate))?;
        // A program of another version may have rebuilt it meanwhile.
        schema::check_format(self)?;
        // Changes of a transaction that was rolled back.
        self.changed.borrow_mut().clear();
        self.new_postings.borrow_mut().clear();
        Ok(StoreTransaction { store: self, transaction })
    }

    /// Starts a read-only transaction: one state for all of its queries, and no lock for each query.
    pub(crate) fn reading(&self) -> Result<Transaction<'_>> {
        self.with(|conn| Transaction::new_unchecked(conn, TransactionBehavior::Deferred))
    }

    /// Pins this connection to the committed state until it is dropped.
    pub(crate) fn pin(&self) -> Result<()> {
        self.with(|conn| conn.execute_batch("BEGIN; SELECT count(*) FROM sqlite_master"))
    }

    /// Changes whenever another connection commits.
    pub(crate) fn data_version(&self) -> Result<i64> {
        self.only("PRAGMA data_version", [])
    }

    /// Returns a setting.
    pub(crate) fn meta(&self, key: &str) -> Result<Option<String>> {
        self.first("SELECT value FROM meta WHERE key = ?1", [key], |row| row.get(0))
    }

    /// Whether it contains anything besides settings.
    pub(crate) fn has_content(&self) -> Result<bool> {
        self.only("SELECT EXISTS (SELECT 1 FROM file) OR EXISTS (SELECT 1 FROM embedding)", [])
    }

    /// Sets a setting.
    pub(crate) fn set_meta(&self, key: &str, value: &str) -> Result<()> {
        self.run("INSERT INTO meta(key, value) VALUES(?1, ?2) ON CONFLICT DO UPDATE SET value = ?2", (key, value))
    }

    /// Sets a setting, or removes it.
    pub(crate) fn set_optional_meta(&self, key: &str, value: Option<&str>) -> Result<()> {
        match value {
            Some(value) => self.set_meta(key, value),
            None => self.run("DELETE FROM meta WHERE key = ?1", [key]),
        }
    }

    /// The size of the file and its log in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        index_bytes(&self.path)
    }

    /// Creates an empty index without a model, in a temporary file that other processes cannot open.
    pub(crate) fn scratch() -> Result<Self> {
        vectors::register_sqlite_vec();
        let conn = Connection::open("")?;
        setup(&conn)?;
        let store = Self::new(conn, Path::new(""), None);
        schema::create(&store)?;
        Ok(store)
    }

    /// The inconsistencies of the file, one line per fault: those that SQLite reports, and redundant data that differs.
    pub(crate) fn faults(&self) -> Result<Vec<String>> {
        let mut faults: Vec<String> = self.all("PRAGMA integrity_check(20)", [], |row| row.get(0))?;
        faults.retain(|row| row != "ok");
        let one_and_many =
            ["vector differs from its codes or is missing", "vectors differ from their codes or are missing"];
        let vectors = (self.unsound_vectors()?, one_and_many);
        let one_and_many =
            ["block of codes does not match its checksum", "blocks of codes do not match their checksums"];
        let codes = (self.unsound_codes()?, one_and_many);
        let one_and_many = ["block of passages differs from its rows", "blocks of passages differ from their rows"];
        let blocks = (self.outdated_passage_blocks()?, one_and_many);
        let one_and_many = ["text does not match its checksum", "texts do not match their checksums"];
        let texts = (self.unsound_texts()?, one_and_many);
        let one_and_many =
            ["posting list differs from the keyword index", "posting lists differ from the keyword index"];
        let postings = (self.unsound_postings()?, one_and_many);
        let unsound = [vectors, codes, blocks, texts, postings].into_iter().filter(|(number, _)| *number > 0);
        faults.extend(unsound.map(|(number, [one, many])| counted_as(number, one, many)));
        Ok(faults)
    }

    /// Empties the index, in this program's format, in one transaction, and keeps the settings and the vectors of the
    /// old one as far as they can be read. Returns the old format, and the number of vectors that were kept.
    pub(crate) fn renew(&mut self) -> Result<(i64, usize)> {
        let new = Self::scratch()?;
        for setting in KEPT_SETTINGS {
            new.set_optional_meta(setting, self.meta(setting)?.as_deref())?;
        }
        if let Some((embedder, dimensions)) = self.embedder()? {
            new.make_vectors(&embedder, dimensions)?;
            new.copy_vectors(self, &BTreeSet::new())?;
        }
        let old = schema::format_of(self)?;
        self.replace_with(&new)?;
        Ok((old, new.vector_count()?))
    }

    /// Replaces all content with that of another index file, in one transaction: readers see the old or the new
    /// content.
    pub(crate) fn replace_with(&mut self, other: &Self) -> Result<()> {
        let path = self.path.clone();
        let fail = |e: rusqlite::Error| Error::from(e).at(&path);
        let backup = rusqlite::backup::Backup::new(&other.conn, &mut self.conn).map_err(fail)?;
        // All pages in one step, with the destination's write lock held throughout.
        loop {
            match backup.step(-1).map_err(fail)? {
                rusqlite::backup::StepResult::Done => return Ok(()),
                _ => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// Folds the log into the file and empties it. Otherwise the next process that opens the index has to read the log
    /// first.
    pub(crate) fn checkpoint(&self) {
        // Readers may prevent this from finishing. It does not wait for them; then the log is folded in later.
        let _ = self.conn.busy_timeout(Duration::ZERO);
        let _ = self.conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        let _ = self.conn.busy_timeout(BUSY);
    }

    /// Runs `work` with the connection, and adds the file to its errors.
    fn with<'s, T>(&'s self, work: impl FnOnce(&'s Connection) -> rusqlite::Result<T>) -> Result<T> {
        work(&self.conn).map_err(|error| Error::from(error).at(&self.path))
    }

    fn damaged(&self, message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Damaged, message).at(&self.path).with_remedy(REPAIR)
    }

    /// Runs a statement without results.
    fn run(&self, sql: &str, params: impl Params) -> Result<()> {
        self.with(|conn| conn.prepare_cached(sql)?.execute(params).map(drop))
    }

    /// Returns all results of a query, converted by `read`.
    fn all<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>> {
        self.with(|conn| conn.prepare_cached(sql)?.query_map(params, read)?.collect())
    }

    /// Returns the first result of a query, if it has one.
    fn first<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>> {
        self.with(|conn| conn.prepare_cached(sql)?.query_row(params, read).optional())
    }

    /// Returns the value of a query that always has one.
    fn only<T: FromSql>(&self, sql: &str, params: impl Params) -> Result<T> {
        self.with(|conn| conn.prepare_cached(sql)?.query_row(params, |row| row.get(0)))
    }
}

impl FromSql for FileId {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        u32::column_result(value).map(Self)
    }
}

impl ToSql for FileId {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        self.0.to_sql()
    }
}

/// Paths are stored from [`VaultPath`]s, so an invalid one can only be damage.
impl FromSql for VaultPath {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let text = value.as_str()?;
        Self::new(text).ok_or_else(|| FromSqlError::Other(format!("not a path: {text:?}").into()))
    }
}

/// Opens a file, and retries if it is busy. While the last process that closes the file removes its log, or another one
/// creates it, SQLite does not wait by itself.
fn retry_while_busy(open: impl Fn() -> Result<Store>) -> Result<Store> {
    let until = Instant::now() + BUSY;
    loop {
        match open() {
            Err(error) if error.kind() == ErrorKind::Locked && Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(5));
            }
            result => return result,
        }
    }
}

/// Turns a text into a number, for columns that are only compared: 64 bits of its BLAKE3 hash.
pub fn number_of(text: &str) -> i64 {
    i64::from_le_bytes(*blake3::hash(text.as_bytes()).as_bytes().first_chunk().expect("a hash has 32 bytes"))
}

fn setup(conn: &Connection) -> rusqlite::Result<()> {
    conn.busy_timeout(BUSY)?;
    conn.pragma_update(None, "cache_size", -16_000)?;
    conn.pragma_update(None, "temp_store", "memory")?;
    conn.set_prepared_statement_cache_capacity(64);
    checksum::register(conn)?;
    // Without this, cached statements are compiled again at each use, because the bound values might suggest another
    // plan.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}

/// The characters that need escaping in the path of a `file:` URI.
const URI: &percent_encoding::AsciiSet = &percent_encoding::CONTROLS.add(b' ').add(b'%').add(b'?').add(b'#');

/// Whether the disk is full. This includes the case that the memory-mapped file that readers and writers share cannot
/// grow.
fn is_no_room(error: &rusqlite::Error) -> bool {
    let extended = error.sqlite_error().map(|error| error.extended_code);
    extended == Some(rusqlite::ffi::SQLITE_IOERR_SHMSIZE)
        || error.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull)
}

fn is_cannot_open(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{CannotOpen, ReadOnly, SystemIoFailure};
    matches!(error.sqlite_error_code(), Some(CannotOpen | ReadOnly | SystemIoFailure))
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::Error as Sql;
        use rusqlite::ErrorCode as Code;
        let is_damage = match &error {
            Sql::SqlInputError { .. }
            | Sql::FromSqlConversionFailure(..)
            | Sql::IntegralValueOutOfRange(..)
            | Sql::Utf8Error(..)
            | Sql::InvalidColumnType(..)
            | Sql::BlobSizeError => true,
            // The statements are our own and correct, so if SQLite or its extensions cannot execute one, this is
            // damage: for example, a blob of vectors that cannot be opened, a missing table, or a page that ends too
            // soon.
            Sql::SqliteFailure(error, _) => {
                [rusqlite::ffi::SQLITE_ERROR, rusqlite::ffi::SQLITE_IOERR_SHORT_READ].contains(&error.extended_code)
            }
            _ => false,
        };
        let (kind, message, remedy) = match error.sqlite_error_code() {
            _ if is_damage => (ErrorKind::Damaged, "the index is damaged", REPAIR),
            Some(Code::ConstraintViolation | Code::TypeMismatch | Code::DatabaseCorrupt | Code::NotADatabase) => {
                (ErrorKind::Damaged, "the index is damaged", REPAIR)
            }
            Some(Code::DatabaseBusy | Code::DatabaseLocked) => {
                (ErrorKind::Locked, "the index is busy", "try again when the other process is done")
            }
            _ if is_no_room(&error) => (
                ErrorKind::Store,
                "the disk has no space left for the index",
                "free some space, or choose another place with --index FILE; committed data is safe",
            ),
            Some(Code::ReadOnly | Code::PermissionDenied | Code::CannotOpen) => (
                ErrorKind::Store,
                "the index cannot be written",
                "check the folder's permissions, choose another place with --index FILE, or search with --no-sync",
            ),
            Some(Code::SystemIoFailure) => (
                ErrorKind::Store,
                "the index could not be read or written",
                "check the disk, then run `vault-index check --repair`",
            ),
            _ => (ErrorKind::Store, "the index refused", "try again; if the error persists, run `vault-index rebuild`"),
        };
        let described = Self::new(kind, message).with_remedy(remedy);
        match error {
            // The error's own text would show the statement, which does not help the reader.
            Sql::SqlInputError { msg, .. } => described.because(msg),
            error => described.because(error),
        }
    }
}
