//! From notes to rows of text, links and words.
//!
//! Notes are read and cut in parallel and written by one thread, some batches per transaction.

use std::collections::BTreeMap;
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, PoisonError};

use crate::error::{Error, Result, Warning};
use crate::indexer::prepare::{PreparedNote, Preparer};
use crate::indexer::{ChangeKind, Indexer, Job};
use crate::links::{Names, Resolver};
use crate::path::FileId;
use crate::report::{Report, Stage};
use crate::store::{Batch, NoteFields, PassageFields};

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
///
/// SQLite makes the keyword index write out its buffered words before any statement that may have to be undone alone,
/// such as an upsert or the removal of a note's words, and one part of that index per note would be far too slow. The
/// rows of a new note need no such statement, so its words are written with them. The words of other notes are written
/// last in each transaction.
struct Writer<'a> {
    indexer: &'a Indexer<'a>,
    next_passage: i64,
    /// The number of notes that are not written yet.
    unread: usize,
    transaction: Option<Batch<'a>>,
    /// The size of the transaction, in notes and bytes of words.
    notes: usize,
    bytes: usize,
    /// The words that are written last, by note and by passage.
    note_words: Vec<(FileId, NoteFields)>,
    words: Vec<(i64, PassageFields)>,
}

impl Indexer<'_> {
    /// Reads, parses and writes notes, until the time limit is reached.
    pub(super) fn write_notes(&self, jobs: Vec<Job>, names: &Names, report: &mut Report) -> Result<()> {
        let total = jobs.len();
        let preparer = Preparer::new(self.vault, self.embedder, Resolver::new(names), self.parse.clone());
        let mut writer = Writer {
            indexer: self,
            next_passage: self.store.next_passage_id()?,
            unread: total,
            transaction: None,
            notes: 0,
            bytes: 0,
            note_words: Vec::new(),
            words: Vec::new(),
        };
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
    fn write(&mut self, batch: Vec<(Job, Result<PreparedNote, Warning>)>, report: &mut Report) -> Result<()> {
        if self.transaction.is_none() {
            self.transaction = Some(self.indexer.store.begin()?);
        }
        self.notes += batch.len();
        self.unread -= batch.len();
        batch.iter().try_for_each(|(job, note)| self.write_note(job, note, report))?;
        // Another thread frees the memory that other threads allocated, while this one continues to write.
        rayon::spawn(move || drop(batch));
        if self.notes >= TRANSACTION_NOTES || self.bytes >= TRANSACTION_WORDS { self.commit() } else { Ok(()) }
    }

    /// Replaces the rows of a note; for one that could not be read, stores only the warning.
    fn write_note(&mut self, job: &Job, note: &Result<PreparedNote, Warning>, report: &mut Report) -> Result<()> {
        let (indexer, store) = (self.indexer, self.indexer.store);
        let path = job.file.path.as_str();
        let is_new = job.counts_as == ChangeKind::Added;
        let had_rows = !is_new && indexer.remove_note(job.id)?;
        let note = match note {
            Ok(note) => note,
            Err(warning) => {
                report.removed += usize::from(had_rows);
                return store.put_warnings(path, std::slice::from_ref(warning), true);
            }
        };
        match job.counts_as {
            ChangeKind::Changed if had_rows => report.changed += 1,
            ChangeKind::Renamed if had_rows => report.renamed += 1,
            // This includes notes that an earlier, interrupted sync did not reach.
            _ => report.added += 1,
        }
        store.put_warnings(path, &note.warnings, false)?;
        store.set_read(job.id, &note.stat, &note.hash, note.checked_at_ns, indexer.version())?;
        let title_vector = note.title_key.map_or(Ok(None), |key| store.find_vector(&key))?;
        store.put_note(job.id, &note.row, title_vector)?;
        store.put_links(job.id, &note.links)?;
        store.put_vocabulary(&note.words)?;
        self.bytes += note.fields.bytes();
        match is_new {
            true => store.put_note_words(job.id, &note.fields)?,
            false => self.note_words.push((job.id, note.fields.clone())),
        }
        for passage in &note.passages {
            let vector = store.find_vector(&passage.key)?;
            report.reused += usize::from(vector.is_some());
            store.put_passage(self.next_passage, job.id, vector, passage)?;
            self.bytes += passage.fields.bytes();
            match is_new {
                true => store.put_words(self.next_passage, &passage.fields)?,
                false => self.words.push((self.next_passage, passage.fields.clone())),
            }
            self.next_passage += 1;
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        let Some(transaction) = self.transaction.take() else { return Ok(()) };
        let store = self.indexer.store;
        // In ascending order, because the keyword index is written out before an id that is lower than the last one.
        self.note_words.sort_unstable_by_key(|(note, _)| *note);
        self.note_words.drain(..).try_for_each(|(note, fields)| store.put_note_words(note, &fields))?;
        self.words.drain(..).try_for_each(|(passage, fields)| store.put_words(passage, &fields))?;
        store.set_unread(self.unread)?;
        store.set_next_passage_id(self.next_passage)?;
        store.find_shared_headings()?;
        (self.notes, self.bytes) = (0, 0);
        transaction.commit()
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
