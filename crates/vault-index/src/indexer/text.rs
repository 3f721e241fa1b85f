//! Notes -> rows of text, links and words: read and cut in parallel, written by one, some batches a transaction.

use std::sync::mpsc::sync_channel;

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::indexer::prepare::{Outcome, Prepared, PreparedNote, PreparedPassage, Preparer};
use crate::indexer::{CountsAs, Indexer, Job};
use crate::links::{Names, Resolver};
use crate::report::{Report, Stage};
use crate::store::{Batch, EmbeddingKey, Fields, PassageToPut, ReadFile};

/// A batch is closed at this many notes or bytes, whichever is first: enough for a transaction to pay, little
/// enough that memory does not grow with the vault.
const BATCH_NOTES: usize = 256;
const BATCH_BYTES: u64 = 1 << 20;

/// Batches that are read and not written yet: few, so that reading does not end long before writing does.
const BATCHES_READ: usize = 2;

/// A transaction is closed at this many notes or bytes of words: each close writes a part of the keyword index, to be
/// merged later.
const TRANSACTION_NOTES: usize = 8192;
const TRANSACTION_WORDS: usize = 16 << 20;

/// Writes notes, some batches a transaction.
///
/// SQLite makes the keyword index write out what it has gathered before any statement that may have to be undone
/// alone, such as an upsert or the removal of a note's words, and a part of that index a note is ruinous. The rows of
/// a new note need no such statement: its words go with them. Those of other notes are written last in each
/// transaction.
struct Writer<'a> {
    indexer: &'a Indexer<'a>,
    version: i64,
    next_passage: i64,
    /// Notes not written yet.
    unread: usize,
    /// Whether there are any vectors that a passage may have already.
    look_up: bool,
    transaction: Option<Batch<'a>>,
    /// What the transaction has so far, in notes and bytes of words.
    notes: usize,
    bytes: usize,
    /// The words that are written last.
    words: Vec<(i64, Fields)>,
}

impl Indexer<'_> {
    /// Reads, parses and writes notes, until the time is over; `first` runs while the first of them are read.
    pub(super) fn write_notes(
        &self,
        jobs: Vec<Job>,
        names: &Names,
        first: impl FnOnce() -> Result<()>,
        report: &mut Report,
    ) -> Result<()> {
        let total = jobs.len();
        let preparer = Preparer::new(self.vault, self.embedder, Resolver::new(names));
        let mut writer = Writer::new(self, self.version(), total)?;
        let mut done = 0;
        let options = self.options;
        std::thread::scope(|scope| {
            let (send, prepared) = sync_channel::<Vec<(Job, Prepared)>>(BATCHES_READ);
            scope.spawn(move || {
                // No batch is begun once the time is over.
                for batch in batches(jobs).take_while(|_| !options.is_over()) {
                    let notes: Vec<Prepared> = batch.par_iter().map(|job| preparer.prepare(&job.file)).collect();
                    if send.send(batch.into_iter().zip(notes).collect()).is_err() {
                        // Writing failed.
                        break;
                    }
                }
            });
            first()?;
            for batch in prepared {
                done += batch.len();
                writer.batch(batch, report)?;
                self.progress(Stage::Text, done, total);
            }
            Ok::<(), Error>(())
        })?;
        writer.commit()
    }
}

impl<'a> Writer<'a> {
    fn new(indexer: &'a Indexer<'a>, version: i64, unread: usize) -> Result<Self> {
        let next_passage = indexer.store.next_passage_id()?;
        let look_up = !indexer.store.has_no_vectors()?;
        Ok(Self {
            indexer,
            version,
            next_passage,
            unread,
            look_up,
            transaction: None,
            notes: 0,
            bytes: 0,
            words: Vec::new(),
        })
    }

    /// Writes one kind of rows after the other: a table's pages and its statement stay warm.
    fn batch(&mut self, batch: Vec<(Job, Prepared)>, report: &mut Report) -> Result<()> {
        if self.transaction.is_none() {
            self.transaction = Some(self.indexer.store.begin()?);
        }
        self.notes += batch.len();
        self.unread -= batch.len();
        let is_new = batch.iter().all(|(job, _)| job.is_new);
        let store = self.indexer.store;
        let notes = self.read_notes(batch, report)?;
        store.set_read(notes.iter().map(|(job, _, read)| (job.id, read)), self.version)?;
        for (job, note, _) in &notes {
            let title_vector = note.title_key.map_or(Ok(None), |key| self.find(&key))?;
            store.put_note(job.id, &note.row, title_vector)?;
        }
        store.put_links(notes.iter().map(|(job, note, _)| (job.id, note.links.as_slice())))?;
        let mut passages = Vec::new();
        for (job, note, _) in &notes {
            for PreparedPassage { row, key, fields } in &note.passages {
                let vector = self.find(key)?;
                report.reused += usize::from(vector.is_some());
                passages.push(PassageToPut {
                    id: self.next_passage + passages.len() as i64,
                    note: job.id,
                    vector,
                    length: fields.length(),
                    text: row,
                });
            }
        }
        store.put_passages(&passages)?;
        let mut words = Vec::with_capacity(passages.len());
        drop(passages);
        let mut done = Vec::with_capacity(notes.len());
        for (job, mut note, _) in notes {
            if !note.warnings.is_empty() || !job.is_new {
                store.put_warnings(job.file.path.as_str(), &note.warnings, false)?;
            }
            for passage in &mut note.passages {
                self.bytes += passage.fields.bytes();
                words.push((self.next_passage, std::mem::take(&mut passage.fields)));
                self.next_passage += 1;
            }
            done.push((job, note));
        }
        if is_new {
            store.put_words(&words)?;
        } else {
            self.words.append(&mut words);
        }
        // What others have made is given back by others, and this thread writes on.
        rayon::spawn(move || drop((done, words)));
        if self.notes >= TRANSACTION_NOTES || self.bytes >= TRANSACTION_WORDS { self.commit() } else { Ok(()) }
    }

    /// The notes of a batch whose files could be read; what the index had of them, and of the others, goes.
    fn read_notes(
        &self,
        batch: Vec<(Job, Prepared)>,
        report: &mut Report,
    ) -> Result<Vec<(Job, Box<PreparedNote>, ReadFile)>> {
        let store = self.indexer.store;
        let mut notes = Vec::with_capacity(batch.len());
        for (job, prepared) in batch {
            let had_rows = !job.is_new && self.indexer.remove_note(job.id)?;
            match prepared.outcome {
                Outcome::Note(note) => {
                    match job.counts_as {
                        CountsAs::Changed if had_rows => report.changed += 1,
                        CountsAs::Renamed if had_rows => report.renamed += 1,
                        // Also what a sync that was stopped had not come to.
                        _ => report.added += 1,
                    }
                    notes.push((job, note, prepared.file));
                }
                Outcome::Skipped(warning) => {
                    report.removed += usize::from(had_rows);
                    store.put_warnings(job.file.path.as_str(), &[warning], true)?;
                }
            }
        }
        Ok(notes)
    }

    fn find(&self, key: &EmbeddingKey) -> Result<Option<i64>> {
        if self.look_up { self.indexer.store.find_vector(key) } else { Ok(None) }
    }

    fn commit(&mut self) -> Result<()> {
        let Some(transaction) = self.transaction.take() else { return Ok(()) };
        self.indexer.store.put_words(&self.words)?;
        let words = std::mem::take(&mut self.words);
        rayon::spawn(move || drop(words));
        self.indexer.store.set_unread(self.unread)?;
        self.indexer.store.set_next_passage_id(self.next_passage)?;
        (self.notes, self.bytes) = (0, 0);
        transaction.commit()
    }
}

/// Jobs in the order given, some at a time.
fn batches(jobs: Vec<Job>) -> impl Iterator<Item = Vec<Job>> {
    let mut jobs = jobs.into_iter().peekable();
    std::iter::from_fn(move || {
        let mut batch = Vec::new();
        let mut bytes = 0;
        while let Some(job) = jobs
            .next_if(|job| batch.is_empty() || (batch.len() < BATCH_NOTES && bytes + job.file.stat.size <= BATCH_BYTES))
        {
            bytes += job.file.stat.size;
            batch.push(job);
        }
        (!batch.is_empty()).then_some(batch)
    })
}
