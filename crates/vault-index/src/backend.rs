//! What a store of the index must do that is not the SQLite file: the traits, their rows, and how they are used.
//!
//! The ranking, the filters and the indexer are the same for every store, so a store that answers these questions truly
//! gives the same results, passage by passage. `vault-postgres` is such a store.
//!
//! A store implements the questions of a search ([`ReadStore`], the sum of [`ReadNotes`], [`ReadNames`], [`ReadLinks`],
//! [`ReadWords`], [`ReadPassages`] and [`ReadVectors`]), and what the indexer asks and changes besides ([`WriteStore`],
//! the sum of the same and [`WriteNotes`], [`WriteLinks`], [`WriteWords`], [`WritePassages`] and [`WriteVectors`]). All
//! of them take `&self`, are called by one thread at a time, and wait: there is no asynchronous runtime here.
//!
//! A reader is one state of the index, which no writer changes. Texts are compared byte by byte. Who may write is up to
//! the store: a writer exists for as long as nobody else writes to its vault.

use std::path::Path;
use std::sync::Arc;

pub use crate::files::{ContentHash, FileStat, KnownFile};
pub use crate::note::TitleSource;
pub use crate::store::{
    Anchors, Batch, EmbeddingKey, Field, Holder, LinkRow, Name, NamedNote, NewNote, NewPassage, NoteFields, NoteMeta,
    NoteRow, PassageFields, PassageRow, PassageText, PendingText, PropertyValue, ReadLinks, ReadNames, ReadNotes,
    ReadPassages, ReadStore, ReadVectors, ReadWords, Slot, StoredFile, StoredLink, StoredTexts, VectorReader, Word,
    WriteLinks, WriteNotes, WritePassages, WriteStore, WriteVectors, WriteWords, has_key, ids_of, key_of, least_size,
    may_share, number_of,
};
pub use crate::terms::{HYPHENATED, QueryTerm, TermMatch};
pub use crate::vectors::{Codes, Interval};

use crate::dirs::canonical_vault;
use crate::embed::Embedder;
use crate::error::{Error, ErrorKind, Result};
use crate::files::WalkRules;
use crate::indexer::{Indexer, SyncOptions};
use crate::note::ParseOptions;
use crate::report::Report;
use crate::search::Searcher;
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
    let usable = is_of(store.embedder()?, &*embedder);
    Searcher::new(store, Arc::new(move || Ok(Arc::clone(&embedder))), usable)
}

/// Whether vectors of this model and of these dimensions are those of `embedder`.
fn is_of(stored: Option<(String, usize)>, embedder: &dyn Embedder) -> bool {
    stored.is_some_and(|(id, dimensions)| id == embedder.id() && dimensions == embedder.dimensions())
}

/// Checks that a vector can be a row: finite numbers, of length 1 at most.
///
/// # Errors
/// [`ErrorKind::Model`].
pub fn check_vector(vector: &[f32]) -> Result<()> {
    QuantizedRow::new(vector).map(drop)
}
