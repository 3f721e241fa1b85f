//! One state of the index for searches, which later writes do not change.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use crate::embed::Embedder;
use crate::error::Result;
use crate::search::note_passages::NotePassages;
use crate::search::repeated_passages::mark_repeated;
use crate::search::vector_rows::{PassageSlots, VectorSource};
use crate::search::vocabulary::Vocabulary;
use crate::store::{InUse, OpenReader, PassageRow, ReadStore, Readers, may_share};
use crate::vectors::Codes;

/// The source of the model that turns queries into vectors.
pub(crate) type EmbedderSource = Arc<dyn Fn() -> Result<Arc<dyn Embedder>> + Send + Sync>;

pub(super) struct Snapshot {
    /// Pinned: all of them read the same state.
    readers: Readers<dyn ReadStore>,
    /// How more of them are opened.
    sharing: Option<OpenReader>,
    pub embedder: EmbedderSource,
    /// Ordered by id.
    pub passages: Vec<PassageRow>,
    of_notes: OnceLock<NotePassages>,
    vocabulary: OnceLock<Vocabulary>,
    pub notes: usize,
    /// Passages and file titles without a vector, counted as in a status.
    pub pending: usize,
    pub has_vectors: bool,
    pub unread: usize,
    /// Whether the store answers questions together, because each takes long.
    pub prefetches: bool,
    /// Whether a search by meaning has read the codes in the index.
    was_searched: AtomicBool,
    /// Loaded by the second search by meaning.
    codes: OnceLock<Codes>,
    /// Created by the first search by meaning.
    pub slots: OnceLock<PassageSlots>,
}

/// Asks for everything that a new snapshot reads.
pub(crate) fn ask_for_snapshot(store: &dyn ReadStore) -> Result<()> {
    store.embedder()?;
    store.passages()?;
    store.pending()?;
    store.note_count()?;
    store.unread()?;
    store.sharing().map(drop)
}

impl Snapshot {
    /// See [`Searcher::new`](super::Searcher::new).
    pub(super) fn new(store: Box<dyn ReadStore>, embedder: EmbedderSource, usable: bool) -> Result<Self> {
        store.prefetch(&mut || ask_for_snapshot(&*store))?;
        let mut passages = store.passages()?;
        if !usable {
            passages.iter_mut().for_each(|passage| passage.vector = None);
        }
        let has_vectors = passages.iter().any(|passage| passage.vector.is_some());
        // Vectors that cannot be compared with the query's count as missing.
        let pending = if usable { store.pending()? } else { passages.len() };
        let (notes, unread, prefetches) = (store.note_count()?, store.unread()?, store.prefetches());
        let sharing = store.sharing()?;
        mark_repeated(&mut passages, may_share(notes));
        Ok(Self {
            readers: Readers::new(Some(store)),
            sharing,
            embedder,
            passages,
            of_notes: OnceLock::new(),
            vocabulary: OnceLock::new(),
            notes,
            pending,
            has_vectors,
            unread,
            prefetches,
            was_searched: AtomicBool::new(false),
            codes: OnceLock::new(),
            slots: OnceLock::new(),
        })
    }

    /// A reader for this thread. Other threads may wait for it, so it is dropped where something else takes long.
    ///
    /// # Errors
    /// If all connections were lost, and another one cannot see this state.
    pub(super) fn store(&self) -> Result<InUse<'_, dyn ReadStore>> {
        self.readers.take(|| self.sharing.as_ref().map_or(Ok(None), |open| open()))
    }

    /// The position in `passages` of a passage's id.
    pub(super) fn position(&self, id: i64) -> Option<usize> {
        self.passages.binary_search_by_key(&id, |passage| passage.id).ok()
    }

    /// The passages of each note, computed by the first call.
    pub(super) fn of_notes(&self) -> &NotePassages {
        self.of_notes.get_or_init(|| NotePassages::new(&self.passages))
    }

    /// All words of the vault, read by the first call.
    pub(super) fn vocabulary(&self, store: &dyn ReadStore) -> Result<&Vocabulary> {
        if self.vocabulary.get().is_none() {
            let words = store.vocabulary()?;
            _ = self.vocabulary.set(Vocabulary::new(words.iter().map(String::as_str)));
        }
        Ok(self.vocabulary.get_or_init(Vocabulary::default))
    }

    /// The source of the codes for a search by meaning: the first search reads the index, later ones memory. `None`:
    /// there are no vectors.
    pub(super) fn source(&self) -> Result<Option<VectorSource<'_>>> {
        if self.codes.get().is_none() {
            let store = self.store()?;
            let Some((_, dimensions)) = store.embedder()? else { return Ok(None) };
            let codes = match self.was_searched.swap(true, Ordering::Relaxed) {
                true => store.codes()?,
                false => None,
            };
            let Some(codes) = codes else { return Ok(Some(VectorSource::Stored { store, dimensions })) };
            _ = self.codes.set(codes);
        }
        Ok(self.codes.get().map(VectorSource::Loaded))
    }
}
