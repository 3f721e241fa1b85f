//! From notes to rows of text, links and words.
//!
//! Notes are read and cut in parallel and written by one thread, some batches per transaction.

use std::collections::BTreeMap;
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, PoisonError};

use crate::error::{Error, Result, Warning};
use crate::indexer::prepare::Preparer;
use crate::indexer::{ChangeKind, Indexer, Job};
use crate::links::{Names, Resolver};
use crate::report::{Report, Stage};
use crate::store::{Batch, NewNote};

/// A batch is closed at this number of notes or bytes, whichever comes first. It is small, so that all cores have work
/// even with few notes, and no core waits long for the last batch.
const BATCH_NOTES: usize = 32;
const BATCH_BYTES: u64 = 1 << 17;

/// The number of batches that are read but not written yet. It is large enough for reading to continue while a
/// transaction is committed, and small enough that memory does not grow with the vault.
const BATCHES_READ: usize = 64;

/// A transaction is committed at this number of notes or bytes of words. Each commit writes a part of the keyword
/// index, which must be merged later.
const TRANSACTION_NOTES: usize = 8192;
const TRANSACTION_WORDS: usize = 16 << 20;

/// Writes notes, some batches per transaction.
struct Writer<'a> {
    indexer: &'a Indexer<'a>,
    /// The number of notes that are not written yet.
    unread: usize,
    transaction: Option<Box<dyn Batch + 'a>>,
    /// The size of the transaction, in notes and bytes of words.
    notes: usize,
    bytes: usize,
}

impl Indexer<'_> {
    /// Reads, parses and writes notes, until the time limit is reached.
    pub(super) fn write_notes(&self, jobs: Vec<Job>, names: &Names, report: &mut Report) -> Result<()> {
        let total = jobs.len();
        let preparer = Preparer::new(self.vault, self.embedder, Resolver::new(names), self.parse.clone());
        let mut writer = Writer { indexer: self, unread: total, transaction: None, notes: 0, bytes: 0 };
        let options = self.options;
        let read = |job: Job| {
            let note = preparer.prepare(&job.file);
            (job, note)
        };
        let batches = Mutex::new(batches(jobs).enumerate());
        let read_next = || {
            // No batch starts once the time limit is reached.
            let mut batches = batches.lock().unwrap_or_else(PoisonError::into_inner);
            let (number, jobs) = batches.next().filter(|_| !options.is_over())?;
            drop(batches);
            Some((number, jobs.into_iter().map(read).collect::<Vec<_>>()))
        };
        std::thread::scope(|scope| {
            let (send, prepared) = sync_channel(BATCHES_READ);
            // This thread writes, and also reads while no batch is ready to be written, so that no core waits for
            // another.
            for _ in 1..rayon::current_num_threads().min(total) {
                let (send, read_next) = (send.clone(), &read_next);
                // Sending fails if writing has failed.
                scope.spawn(move || while read_next().is_some_and(|batch| send.send(batch).is_ok()) {});
            }
            drop(send);
            let mut ready = BTreeMap::new();
            for number in 0.. {
                while !ready.contains_key(&number) {
                    match prepared.try_recv().ok().or_else(read_next).or_else(|| prepared.recv().ok()) {
                        Some((number, batch)) => _ = ready.insert(number, batch),
                        None => return Ok(()),
                    }
                }
                writer.write(ready.remove(&number).unwrap_or_default(), report)?;
                self.progress(Stage::Text, total - writer.unread, total);
            }
            Ok::<(), Error>(())
        })?;
        writer.commit()
    }
}

impl Writer<'_> {
    fn write(&mut self, notes: Vec<(Job, Result<NewNote, Warning>)>, report: &mut Report) -> Result<()> {
        let mut batch = self.transaction.take().map_or_else(|| self.indexer.store.begin(), Ok)?;
        self.notes += notes.len();
        self.unread -= notes.len();
        for (job, note) in &notes {
            self.bytes += note.as_ref().map_or(0, NewNote::word_bytes);
            self.write_note(&mut *batch, job, note, report)?;
        }
        self.transaction = Some(batch);
        // Another thread frees the memory that other threads allocated, while this one continues to write.
        rayon::spawn(move || drop(notes));
        if self.notes >= TRANSACTION_NOTES || self.bytes >= TRANSACTION_WORDS { self.commit() } else { Ok(()) }
    }

    /// Replaces the rows of a note; for one that could not be read, stores only the warning.
    fn write_note(
        &self,
        batch: &mut dyn Batch,
        job: &Job,
        note: &Result<NewNote, Warning>,
        report: &mut Report,
    ) -> Result<()> {
        let (indexer, store, path) = (self.indexer, self.indexer.store, &job.file.path);
        let is_new = job.counts_as == ChangeKind::Added;
        let had_rows = !is_new && store.remove_note(job.id)?;
        let note = match note {
            Ok(note) => note,
            Err(warning) => {
                report.removed += usize::from(had_rows);
                return store.put_warnings(path.as_str(), std::slice::from_ref(warning), true);
            }
        };
        match job.counts_as {
            ChangeKind::Changed if had_rows => report.changed += 1,
            ChangeKind::Renamed if had_rows => report.renamed += 1,
            // This includes notes that an earlier, interrupted sync did not reach.
            _ => report.added += 1,
        }
        report.reused += batch.put_note(job.id, path, note, indexer.version(), is_new)?;
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        let Some(batch) = self.transaction.take() else { return Ok(()) };
        (self.notes, self.bytes) = (0, 0);
        batch.commit_notes(self.unread)
    }
}

/// The jobs in their order, in groups.
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
