//! Do the rows of every note say what its file says? Each is read and prepared anew and compared; nothing is written.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::files::{ContentHash, DiskFile, KnownFile};
use crate::indexer::prepare::{Outcome, Prepared, Preparer};
use crate::indexer::text::batches;
use crate::indexer::{CountsAs, Indexer, Job, cancelled};
use crate::links::{Names, Resolver};
use crate::path::{FileId, VaultPath};
use crate::report::Stage;
use crate::store::{EmbeddingKey, Expected, IsNew, PassageRow, Store, WordPrints};

/// A note whose rows are not what a sync would write.
pub(super) struct OddNote {
    pub id: FileId,
    pub fault: String,
    /// Slots that are not of the texts they should be.
    pub vectors: Vec<i64>,
}

/// The rows that a batch of notes should have.
struct Batch {
    store: Store,
    words: WordPrints,
    notes: Vec<Note>,
}

struct Note {
    id: FileId,
    path: VaultPath,
    title: Option<EmbeddingKey>,
    passages: Vec<EmbeddingKey>,
}

impl Indexer<'_> {
    /// Compares the rows of the notes whose content is the one that was indexed; others are read again anyway. Those
    /// in `odd_names` have warnings of the walk, which are not compared.
    pub(super) fn odd_notes(
        &self,
        known: &[KnownFile],
        disk: &[DiskFile],
        outdated: &HashSet<FileId>,
        odd_names: &HashSet<&str>,
    ) -> Result<Vec<OddNote>> {
        let mut names = Names::new();
        self.store.paths()?.iter().for_each(|(id, path)| names.insert(*id, path));
        let preparer = Preparer::new(self.vault, self.embedder, Resolver::new(&names));
        let on_disk: HashMap<&VaultPath, &DiskFile> =
            disk.iter().filter(|file| file.is_read()).map(|file| (&file.path, file)).collect();
        let hashes: HashMap<FileId, Option<ContentHash>> = known.iter().map(|k| (k.id, k.hash)).collect();
        let jobs: Vec<Job> = known
            .iter()
            .filter(|known| known.indexed && !outdated.contains(&known.id))
            .filter_map(|known| Some(Job::again(known.id, on_disk.get(&known.path)?, CountsAs::Changed)))
            .collect();
        let (total, mut done) = (jobs.len(), 0);
        let words = self.store.word_prints()?;
        let mut odd = Vec::new();
        for jobs in batches(jobs) {
            if self.cancel().load(Ordering::Relaxed) {
                return Err(cancelled());
            }
            done += jobs.len();
            let prepared: Vec<Prepared> = jobs.par_iter().map(|job| preparer.prepare(&job.file)).collect();
            let as_indexed = jobs.into_iter().zip(prepared).filter(|(job, now)| hashes.get(&job.id) == Some(&now.hash));
            let expected = Batch::new(as_indexed)?;
            for note in &expected.notes {
                odd.extend(self.odd_note(note, &words, &expected, odd_names)?);
            }
            self.progress(Stage::Text, done, total);
        }
        Ok(odd)
    }

    fn odd_note(
        &self,
        note: &Note,
        words: &WordPrints,
        batch: &Batch,
        odd_names: &HashSet<&str>,
    ) -> Result<Option<OddNote>> {
        let expected =
            Expected { store: &batch.store, words: &batch.words, title: note.title, passages: &note.passages };
        let mut differ = self.store.compare_note(note.id, words, &expected)?;
        if !odd_names.contains(note.path.as_str()) {
            differ.parts.extend(self.store.warnings_differ(&batch.store, note.path.as_str())?);
        }
        Ok((!differ.parts.is_empty()).then(|| OddNote {
            id: note.id,
            fault: format!("rows of {} differ: {}", note.path, differ.parts.join(", ")),
            vectors: differ.vectors,
        }))
    }
}

impl Batch {
    /// Written to memory by the code that writes the index.
    fn new(prepared: impl Iterator<Item = (Job, Prepared)>) -> Result<Self> {
        let store = Store::scratch()?;
        let mut notes = Vec::new();
        let transaction = store.begin()?;
        let mut words = Vec::new();
        let mut next_passage = 1;
        for (job, prepared) in prepared {
            let (id, path) = (job.id, job.file.path);
            let note = match prepared.outcome {
                Outcome::Note(note) => *note,
                Outcome::Skipped(warning) => {
                    store.put_warnings(path.as_str(), &[warning], true)?;
                    notes.push(Note { id, path, title: None, passages: Vec::new() });
                    continue;
                }
            };
            store.put_note(id, &note.row, None, IsNew::Yes)?;
            store.put_links(id, &note.links)?;
            store.put_warnings(path.as_str(), &note.warnings, false)?;
            let mut passages = Vec::with_capacity(note.passages.len());
            for passage in note.passages {
                let length = passage.fields.length();
                store.put_passage(PassageRow { id: next_passage, note: id, vector: None, length }, &passage.row)?;
                words.push((next_passage, passage.fields));
                passages.push(passage.key);
                next_passage += 1;
            }
            notes.push(Note { id, path, title: note.title_key, passages });
        }
        for (passage, fields) in words {
            store.put_words(passage, &fields)?;
        }
        transaction.commit().map_err(Error::from)?;
        let words = store.word_prints()?;
        Ok(Self { store, words, notes })
    }
}
