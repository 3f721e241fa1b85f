//! Notes -> rows of text, links and words: read and cut in parallel, written by one, some batches a transaction.

use std::sync::mpsc::sync_channel;

use rayon::prelude::*;

use crate::error::Result;
use crate::indexer::prepare::{Outcome, Prepared, Preparer};
use crate::indexer::{CountsAs, Indexer, Job};
use crate::links::{Names, Resolver};
use crate::report::{Report, Stage};
use crate::store::{Batch, EmbeddingKey, Fields, IsNew};

/// A batch is closed at this many notes or bytes, whichever is first: enough for a transaction to pay, little
/// enough that memory does not grow with the vault.
const BATCH_NOTES: usize = 256;
const BATCH_BYTES: u64 = 1 << 20;

/// Batches that may wait to be written: enough for reading to go on while a transaction is closed.
const BATCHES_WAITING: usize = 12;

/// A transaction is closed at this many notes or bytes of words: each close writes a part of the keyword index, to be
/// merged later.
const TRANSACTION_NOTES: usize = 4096;
const TRANSACTION_WORDS: usize = 16 << 20;

/// Writes notes, some batches a transaction.
///
/// Words are written last in each transaction: SQLite makes the keyword index write out what it has gathered before
/// any statement that may have to be undone alone, such as an upsert, and a part of that index a note is ruinous.
struct Writer<'a> {
    indexer: &'a Indexer<'a>,
    version: i64,
    next_passage: i64,
    /// Notes not written yet.
    unread: usize,
    /// Whether there are any vectors that a passage may have already.
    look_up: bool,
    transaction: Option<Batch<'a>>,
    /// What the transaction has so far.
    notes: usize,
    words: Vec<(i64, Fields)>,
    bytes: usize,
}

impl Indexer<'_> {
    /// Reads, parses and writes notes, until the time is over.
    pub(super) fn write_notes(&self, jobs: Vec<Job>, version: i64, report: &mut Report) -> Result<()> {
        if jobs.is_empty() {
            return Ok(());
        }
        let total = jobs.len();
        let mut names = Names::new();
        self.store.paths()?.iter().for_each(|(id, path)| names.insert(*id, path));
        let preparer = Preparer::new(self.vault, self.embedder, Resolver::new(&names));
        let mut writer = Writer::new(self, version, total)?;
        let mut done = 0;
        let mut writing: Result<()> = Ok(());
        std::thread::scope(|scope| {
            let (send, receive) = sync_channel::<Vec<(Job, Prepared)>>(BATCHES_WAITING);
            scope.spawn({
                let preparer = &preparer;
                let options = self.options;
                move || {
                    for batch in batches(jobs) {
                        if options.is_over() {
                            return;
                        }
                        let prepared: Vec<Prepared> = batch.par_iter().map(|job| preparer.prepare(&job.file)).collect();
                        if send.send(batch.into_iter().zip(prepared).collect()).is_err() {
                            return;
                        }
                    }
                }
            });
            writing = receive
                .into_iter()
                .try_for_each(|batch| {
                    done += batch.len();
                    writer.batch(batch, report)?;
                    self.progress(Stage::Text, done, total);
                    Ok(())
                })
                .and_then(|()| writer.commit());
        });
        writing
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
            words: Vec::new(),
            bytes: 0,
        })
    }

    fn batch(&mut self, batch: Vec<(Job, Prepared)>, report: &mut Report) -> Result<()> {
        if self.transaction.is_none() {
            self.transaction = Some(self.indexer.store.begin()?);
        }
        self.notes += batch.len();
        self.unread -= batch.len();
        for (job, prepared) in batch {
            self.note(job, prepared, report)?;
        }
        if self.notes >= TRANSACTION_NOTES || self.bytes >= TRANSACTION_WORDS { self.commit() } else { Ok(()) }
    }

    fn note(&mut self, job: Job, prepared: Prepared, report: &mut Report) -> Result<()> {
        let store = self.indexer.store;
        let path = job.file.path.as_str();
        if job.is_new == IsNew::No {
            store.remove_passages(job.id)?;
            store.remove_links(job.id)?;
        }
        let note = match prepared.outcome {
            Outcome::Note(note) => *note,
            Outcome::Skipped(warning) => {
                store.remove_note(job.id)?;
                return store.put_warnings(path, &[warning], true);
            }
        };
        match job.counts_as {
            CountsAs::Added => report.added += 1,
            CountsAs::Changed => report.changed += 1,
            CountsAs::Renamed => report.renamed += 1,
        }
        store.set_read(job.id, prepared.stamp, prepared.hash, prepared.seen_ns, self.version)?;
        let title_vector = note.title_key.map_or(Ok(None), |key| self.find(&key))?;
        store.put_note(job.id, &note.row, title_vector, job.is_new)?;
        for passage in note.passages {
            let vector = self.find(&passage.key)?;
            report.reused += usize::from(vector.is_some());
            let length = passage.fields.length();
            store.put_passage(self.next_passage, job.id, vector, length, &passage.row)?;
            self.bytes += passage.fields.bytes();
            self.words.push((self.next_passage, passage.fields));
            self.next_passage += 1;
        }
        store.put_links(job.id, &note.links)?;
        if !note.warnings.is_empty() || job.is_new == IsNew::No {
            store.put_warnings(path, &note.warnings, false)?;
        }
        Ok(())
    }

    fn find(&self, key: &EmbeddingKey) -> Result<Option<i64>> {
        if self.look_up { self.indexer.store.find_vector(key) } else { Ok(None) }
    }

    fn commit(&mut self) -> Result<()> {
        let Some(transaction) = self.transaction.take() else { return Ok(()) };
        for (passage, fields) in self.words.drain(..) {
            self.indexer.store.put_words(passage, &fields)?;
        }
        self.indexer.store.set_unread(self.unread)?;
        self.indexer.store.set_next_passage_id(self.next_passage)?;
        (self.notes, self.bytes) = (0, 0);
        transaction.commit()
    }
}

/// Jobs in the order given, some at a time.
pub(super) fn batches(jobs: Vec<Job>) -> impl Iterator<Item = Vec<Job>> {
    let mut jobs = jobs.into_iter().peekable();
    std::iter::from_fn(move || {
        let mut batch = Vec::new();
        let mut bytes = 0;
        while let Some(job) = jobs.next_if(|job| {
            batch.is_empty() || (batch.len() < BATCH_NOTES && bytes + job.file.stamp.size <= BATCH_BYTES)
        }) {
            bytes += job.file.stamp.size;
            batch.push(job);
        }
        (!batch.is_empty()).then_some(batch)
    })
}
