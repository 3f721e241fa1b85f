//! Writing, in transactions: notes with everything that belongs to them, each as a whole.
//!
//! SQLite makes the keyword index write out its buffered words before any statement that may have to be undone alone,
//! such as an upsert or the removal of a note's words, and one part of that index per note would be far too slow. The
//! rows of a new note need no such statement, so its words are written with them. The words of other notes are written
//! last in each transaction.

use crate::error::{Result, Warning};
use crate::files::{ContentHash, FileStat};
use crate::path::{FileId, VaultPath};
use crate::store::contents::ReadContents;
use crate::store::fulltext::{NoteFields, PassageFields, Word, WriteWords};
use crate::store::links::{LinkRow, WriteLinks};
use crate::store::notes::{NoteRow, WriteNotes};
use crate::store::passages::{NewPassage, WritePassages};
use crate::store::vectors::{EmbeddingKey, WriteVectors};
use crate::store::{Store, StoreTransaction};

/// All that is stored about a note.
#[derive(Debug)]
pub struct NewNote {
    /// The stat of the file when it was read.
    pub stat: FileStat,
    /// The hash of its content.
    pub hash: ContentHash,
    /// The time before it was read.
    pub checked_at_ns: i64,
    /// Its title, names, tags and properties.
    pub row: NoteRow,
    /// The key of [`NoteRow::file_title`].
    pub title_key: Option<EmbeddingKey>,
    /// Its links, in order.
    pub links: Vec<LinkRow>,
    /// The words of its own fields.
    pub fields: NoteFields,
    /// Its passages, in order.
    pub passages: Vec<NewPassage>,
    /// The words that the vocabulary may lack.
    pub words: Vec<Word>,
    /// The faults that were found while it was read.
    pub warnings: Vec<Warning>,
}

impl NewNote {
    /// The total length of all terms.
    pub(crate) fn word_bytes(&self) -> usize {
        self.fields.bytes() + self.passages.iter().map(|passage| passage.fields.bytes()).sum::<usize>()
    }
}

/// An index as the indexer writes it.
pub trait WriteStore: ReadContents + WriteNotes + WriteLinks + WriteWords + WritePassages + WriteVectors {
    /// Starts a transaction that will write; readers continue to see the previous state.
    fn begin(&self) -> Result<Box<dyn Batch + '_>>;

    /// Sets a setting.
    fn set_meta(&self, key: &str, value: &str) -> Result<()>;

    /// Tidies up after changes, so that the next process which opens the index has less to read.
    fn checkpoint(&self);
}

/// A transaction that writes: rolled back when dropped before it is committed.
pub trait Batch {
    /// Adds a note whose earlier rows were removed; with `is_new`, it had none. `version` is that of the parser, chunker
    /// and window. Returns the number of its passages that have a vector already.
    fn put_note(&mut self, id: FileId, path: &VaultPath, note: &NewNote, version: i64, is_new: bool) -> Result<usize>;

    /// Commits changes of notes, of which `unread` are left to read.
    fn commit_notes(self: Box<Self>, unread: usize) -> Result<()>;

    /// Commits changes of anything else.
    fn commit(self: Box<Self>) -> Result<()>;
}

/// A transaction of a [`Store`].
struct StoreBatch<'a> {
    store: &'a Store,
    transaction: StoreTransaction<'a>,
    /// The id of the next new passage, once there is one.
    next_passage: Option<i64>,
    /// The words that are written last, by note and by passage.
    note_words: Vec<(FileId, NoteFields)>,
    words: Vec<(i64, PassageFields)>,
}

impl WriteStore for Store {
    fn begin(&self) -> Result<Box<dyn Batch + '_>> {
        let (transaction, note_words, words) = (self.begin()?, Vec::new(), Vec::new());
        Ok(Box::new(StoreBatch { store: self, transaction, next_passage: None, note_words, words }))
    }

    fn set_meta(&self, key: &str, value: &str) -> Result<()> {
        self.set_meta(key, value)
    }

    fn checkpoint(&self) {
        self.checkpoint();
    }
}

impl Batch for StoreBatch<'_> {
    fn put_note(&mut self, id: FileId, path: &VaultPath, note: &NewNote, version: i64, is_new: bool) -> Result<usize> {
        let store = self.store;
        store.put_warnings(path.as_str(), &note.warnings, false)?;
        store.set_read(id, &note.stat, &note.hash, note.checked_at_ns, version)?;
        let title_vector = note.title_key.map_or(Ok(None), |key| store.find_vector(&key))?;
        store.put_note(id, &note.row, title_vector)?;
        store.put_links(id, &note.links)?;
        store.put_vocabulary(&note.words)?;
        match is_new {
            true => store.put_note_words(id, &note.fields)?,
            false => self.note_words.push((id, note.fields.clone())),
        }
        let mut next = self.next_passage.map_or_else(|| store.next_passage_id(), Ok)?;
        let mut reused = 0;
        for passage in &note.passages {
            let vector = store.find_vector(&passage.key)?;
            reused += usize::from(vector.is_some());
            store.put_passage(next, id, vector, passage)?;
            match is_new {
                true => store.put_words(next, &passage.fields)?,
                false => self.words.push((next, passage.fields.clone())),
            }
            next += 1;
        }
        self.next_passage = Some(next);
        Ok(reused)
    }

    fn commit_notes(mut self: Box<Self>, unread: usize) -> Result<()> {
        let store = self.store;
        // In ascending order, because the keyword index is written out before an id that is lower than the last one.
        self.note_words.sort_unstable_by_key(|(note, _)| *note);
        self.note_words.iter().try_for_each(|(note, fields)| store.put_note_words(*note, fields))?;
        self.words.iter().try_for_each(|(passage, fields)| store.put_words(*passage, fields))?;
        store.set_unread(unread)?;
        if let Some(next) = self.next_passage {
            store.set_next_passage_id(next)?;
        }
        store.find_shared_headings()?;
        self.commit()
    }

    fn commit(self: Box<Self>) -> Result<()> {
        self.transaction.commit()
    }
}
