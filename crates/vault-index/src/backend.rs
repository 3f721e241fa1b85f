//! The traits of a store of the index that is not the SQLite file, their rows, and how they are used.
//!
//! The ranking, the filters and the indexer are the same for every store, so a store that answers these questions truly
//! gives the same results, passage by passage. `vault-postgres` is such a store.
//!
//! A store implements the questions of a search ([`ReadStore`], the sum of [`ReadNotes`], [`ReadNames`], [`ReadLinks`],
//! [`ReadWords`], [`ReadPassages`], [`ReadVectors`], [`Prefetch`] and [`Share`]), those of link queries and reports
//! ([`ReadContents`]), and what the indexer asks and changes besides ([`WriteStore`], the sum of the same and
//! [`WriteNotes`], [`WriteLinks`], [`WriteWords`], [`WritePassages`] and [`WriteVectors`]). All of them take `&self`, are
//! called by one thread at a time, and wait: there is no asynchronous runtime here.
//!
//! [`Options::database`](crate::Options::database) makes an [`Index`](crate::Index) of such a store.
//!
//! A reader is one state of the index, which no writer changes. With [`Share`], searches at the same time use more readers
//! of the state. Texts are compared byte by byte. Who may write is up to
//! the store: a writer exists for as long as nobody else writes to its vault.

use std::path::Path;
use std::sync::Arc;

pub use crate::files::{ContentHash, FileStat, KnownFile};
pub use crate::indexer::StoredVectors;
pub use crate::note::TitleSource;
pub use crate::store::{
    Anchors, Batch, Database, DatabaseIndex, DatabaseReader, EmbeddingKey, Field, Holder, LinkRow, Name, NamedNote,
    NewNote, NewPassage, NoteFields, NoteMeta, NoteRow, OpenReader, PassageFields, PassageRow, PassageText,
    PendingText, Prefetch, PropertyValue, ReadContents, ReadLinks, ReadNames, ReadNotes, ReadPassages, ReadStore,
    ReadVectors, ReadWords, Share, Slot, StoredFile, StoredLink, StoredTexts, VectorReader, Word, WriteLinks,
    WriteNotes, WritePassages, WriteStore, WriteVectors, WriteWords, has_key, ids_of, key_of, least_size, may_share,
    number_of,
};
pub use crate::terms::{HYPHENATED, QueryTerm, TermMatch};
pub use crate::vectors::{Codes, Interval, Kernel, TopK, rescore};

use crate::dirs::canonical_vault;
use crate::embed::Embedder;
use crate::error::{Error, ErrorKind, Result};
use crate::files::WalkRules;
use crate::indexer::{Indexer, SyncOptions, is_of};
use crate::note::ParseOptions;
use crate::report::Report;
use crate::search::{Searcher, ask_for_snapshot};
use crate::store::Store;
use crate::vectors::QuantizedRow;

/// Updates a store from its vault as [`Index::sync_with`](crate::Index::sync_with) updates a file. `exclude` are globs
/// of files that are left out.
///
/// # Errors
/// [`ErrorKind::OtherModel`] if the vectors of the store are of another model, and the errors of the vault, the model
/// and the store. What was committed before stays, and the next sync continues from there.
pub fn sync(
    store: &dyn WriteStore,
    vault: &Path,
    embedder: &dyn Embedder,
    exclude: &[String],
    options: &SyncOptions<'_>,
) -> Result<Report> {
    if !is_of(store.embedder()?, embedder) {
        return Err(Error::new(ErrorKind::OtherModel, "the vectors of this index are of another model"));
    }
    let vault = &canonical_vault(vault)?;
    let rules = &WalkRules { exclude: exclude.to_vec() };
    let parse = ParseOptions::of_vault(vault);
    let indexer = Indexer { store, locks: None, vault, parse, embedder, rules, options };
    indexer.sync().map(|(report, _)| report)
}

/// A searcher of one state of a store. If its vectors are of another model than the embedder, only words rank.
///
/// # Errors
/// If the store cannot be read.
pub fn searcher(store: impl ReadStore + 'static, embedder: Arc<dyn Embedder>) -> Result<Searcher> {
    store.prefetch(&mut || ask_for_snapshot(&store))?;
    let usable = is_of(store.embedder()?, &*embedder);
    Searcher::new(Box::new(store), Arc::new(move || Ok(Arc::clone(&embedder))), usable)
}

/// One state of an index file, as a store.
///
/// # Errors
/// [`ErrorKind::NotFound`] if it does not exist, [`ErrorKind::OtherFormat`], [`ErrorKind::Damaged`].
pub fn file(index: &Path) -> Result<impl ReadStore + use<>> {
    let store = Store::open_read(index)?;
    store.pin()?;
    Ok(store)
}

/// Checks that a vector can be a row: finite numbers, of length 1 at most.
///
/// # Errors
/// [`ErrorKind::Model`].
pub fn check_vector(vector: &[f32]) -> Result<()> {
    QuantizedRow::new(vector).map(drop)
}
