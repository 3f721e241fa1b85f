//! The traits of a store of the index that is not the SQLite file, their rows, and how they are used.
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
use std::sync::{Arc, Mutex, PoisonError};

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

use crate::chunk::TokenCount;
use crate::dirs::canonical_vault;
use crate::embed::{Embedder, Role};
use crate::error::{Error, ErrorKind, Result};
use crate::files::WalkRules;
use crate::indexer::{Indexer, SyncOptions};
use crate::note::ParseOptions;
use crate::report::Report;
use crate::search::Searcher;
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
    let usable = is_of(store.embedder()?, &*embedder);
    Searcher::new(store, Arc::new(move || Ok(Arc::clone(&embedder))), usable)
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

/// A model that takes the vector of a text from a store, if that has one. A sync with it copies an index to another
/// store, and computes only what is new.
pub struct StoredVectors {
    store: Mutex<Box<dyn ReadStore>>,
    model: Arc<dyn Embedder>,
}

impl StoredVectors {
    /// Takes the vectors of `store`, which `model` has computed.
    ///
    /// # Errors
    /// [`ErrorKind::OtherModel`] if another one has.
    pub fn new(store: impl ReadStore + 'static, model: Arc<dyn Embedder>) -> Result<Self> {
        match is_of(store.embedder()?, &*model) {
            true => Ok(Self { store: Mutex::new(Box::new(store)), model }),
            false => Err(Error::new(ErrorKind::OtherModel, "the vectors to copy are of another model")),
        }
    }

    /// The vectors that the store has of some texts.
    fn stored(&self, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>> {
        let store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        let keys: Vec<EmbeddingKey> = texts.iter().map(|text| key_of(text)).collect();
        let (slots, read) = (store.slots_of(&keys)?, store.vectors()?);
        keys.iter().map(|key| slots.get(key).map(|slot| read(*slot)).transpose()).collect()
    }
}

impl TokenCount for StoredVectors {
    fn count(&self, text: &str) -> usize {
        self.model.count(text)
    }
}

impl Embedder for StoredVectors {
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
        let mut vectors = match role {
            Role::Passage => self.stored(texts)?,
            Role::Query => vec![None; texts.len()],
        };
        let (missing, new): (Vec<&mut Option<Vec<f32>>>, Vec<&str>) =
            vectors.iter_mut().zip(texts).filter(|(vector, _)| vector.is_none()).map(|(v, text)| (v, *text)).unzip();
        if !new.is_empty() {
            let computed = self.model.embed(&new, role)?;
            missing.into_iter().zip(computed).for_each(|(vector, computed)| *vector = Some(computed));
        }
        // A model that returns too few is noticed by the indexer.
        Ok(vectors.into_iter().flatten().collect())
    }

    fn known_share(&self, text: &str) -> f32 {
        self.model.known_share(text)
    }

    fn is_english(&self) -> bool {
        self.model.is_english()
    }

    fn is_remote(&self) -> bool {
        self.model.is_remote()
    }

    fn batch_size(&self) -> usize {
        self.model.batch_size()
    }
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
