//! A model that takes vectors from another store, for copies of an index.

use std::sync::{Arc, Mutex, PoisonError};

use crate::chunk::TokenCount;
use crate::embed::{Embedder, Role};
use crate::error::{Error, ErrorKind, Result};
use crate::store::{EmbeddingKey, ReadStore, key_of};

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
        Self::of(Box::new(store), model)
    }

    /// [`new`](Self::new) for a store that is boxed already.
    pub(crate) fn of(store: Box<dyn ReadStore>, model: Arc<dyn Embedder>) -> Result<Self> {
        match is_of(store.embedder()?, &*model) {
            true => Ok(Self { store: Mutex::new(store), model }),
            false => Err(Error::new(ErrorKind::OtherModel, "the vectors to copy are of another model")),
        }
    }

    /// The vectors that the store has of some texts.
    fn stored(&self, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>> {
        let store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        let keys: Vec<EmbeddingKey> = texts.iter().map(|text| key_of(text)).collect();
        let (slots, read) = (store.slots_of(&keys)?, store.vectors()?);
        store.prefetch(&mut || slots.values().try_for_each(|slot| read(*slot).map(drop)))?;
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
pub(crate) fn is_of(stored: Option<(String, usize)>, embedder: &dyn Embedder) -> bool {
    stored.is_some_and(|(id, dimensions)| id == embedder.id() && dimensions == embedder.dimensions())
}
