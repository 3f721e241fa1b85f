//! Does the index say what the vault says? Every note is read and prepared anew and compared; nothing is written.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;

use rayon::prelude::*;

use crate::error::{Result, Warning, WarningKind};
use crate::files::{Change, ContentHash, DiskFile, KnownFile, Stamp, diff, settle, walk};
use crate::indexer::prepare::{Outcome, Prepared, Preparer};
use crate::indexer::text::batches;
use crate::indexer::{CountsAs, Indexer, Job, cancelled, now_ns};
use crate::links::{Names, Resolver};
use crate::path::{FileId, VaultPath};
use crate::report::Stage;
use crate::store::{EmbeddingKey, Expected, PassageToPut, Store, WordPrints};

/// Where the index does not say what the vault says.
pub(crate) struct Differences {
    /// How many notes were read and compared.
    pub notes: usize,
    /// One line each.
    pub faults: Vec<String>,
    /// Notes and folders that could not be read, a line each: what is known of them may be wrong.
    pub unreadable: Vec<String>,
    /// Files whose rows differ though their content is the one that was indexed: a sync alone would not see them.
    pub odd: Vec<FileId>,
    /// Slots that are not of the texts they should be, ascending.
    pub vectors: Vec<i64>,
    /// Likewise not seen by a sync.
    pub remarks: Remarks,
}

/// What is said beside the rows of notes, and is not so.
#[derive(Debug, Default)]
pub(crate) struct Remarks {
    /// Warnings are kept of these files, and they are not there.
    pub of_nothing: Vec<String>,
    /// Notes are said to wait to be read, and none does.
    pub unread_is_wrong: bool,
}

impl Remarks {
    pub(crate) fn are_right(&self) -> bool {
        self.of_nothing.is_empty() && !self.unread_is_wrong
    }

    fn faults(&self) -> impl Iterator<Item = String> {
        let of_nothing = self.of_nothing.iter().map(|file| format!("{file}: has a warning, and is not in the index"));
        let unread = self.unread_is_wrong.then(|| "notes are said to be not read yet, and all are".to_string());
        of_nothing.chain(unread)
    }
}

/// A note whose rows are not what a sync would write.
struct OddNote {
    id: FileId,
    fault: String,
    /// Slots that are not of the texts they should be.
    vectors: Vec<i64>,
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
    /// What a sync would find to do, a line each, with everything hashed, and what it would not: rows that are not
    /// those it would write.
    pub(crate) fn differences(&self) -> Result<Differences> {
        let walked = walk(self.vault, self.rules, self.cancel())?;
        let (known, outdated) = self.known()?;
        let mut difference = diff(&known, &walked.files, now_ns());
        difference.keep(&walked.unlisted);
        let (hashes, refused) = self.hash(&difference.to_hash())?;
        let unreadable = |path: &VaultPath| refused.get(path).filter(|why| why.kind == WarningKind::Unreadable);
        let mut faults: Vec<String> = settle(&difference, &hashes)
            .iter()
            .filter_map(|change| match change {
                Change::Removed(known) => Some(format!("{}: is gone, and still in the index", known.path)),
                Change::Renamed(pair) => Some(format!("{}: was renamed from {}", pair.file.path, pair.known.path)),
                Change::Flipped(pair) => Some(format!("{}: is excluded now, or no longer", pair.file.path)),
                Change::Changed(pair) if unreadable(&pair.file.path).is_some() => None,
                Change::Changed(pair) if pair.known.hash.is_none() => {
                    Some(format!("{}: is not read yet", pair.file.path))
                }
                Change::Changed(pair) => Some(format!("{}: has other content than the index", pair.file.path)),
                Change::Added(file) => Some(format!("{}: is not in the index", file.path)),
                Change::Touched(pair) => {
                    let outside = |stamp: Stamp| (stamp.size, stamp.modified_ns);
                    let differs = outside(pair.known.stamp) != outside(pair.file.stamp);
                    differs.then(|| format!("{}: has another size or time than in the index", pair.file.path))
                }
            })
            .collect();
        faults.extend(
            known
                .iter()
                .filter(|k| outdated.contains(&k.id))
                .map(|k| format!("{}: was read by an older version", k.path)),
        );
        let unlisted = walked.warnings.iter().filter(|(path, _)| walked.unlisted.contains(path));
        let unread = difference.suspect.iter().map(|pair| &pair.file.path);
        let unread = unread.filter_map(|path| Some((path.as_str(), unreadable(path)?)));
        let said = |(path, why): (&str, &Warning)| format!("{path}: {}", why.message);
        let mut differences = Differences {
            notes: difference.suspect.iter().filter(|pair| hashes.contains_key(&pair.file.path)).count(),
            faults,
            unreadable: unlisted.map(|(path, why)| (path.as_str(), why)).chain(unread).map(said).collect(),
            odd: Vec::new(),
            vectors: Vec::new(),
            remarks: self.remarks(&known, &refused)?,
        };
        differences.faults.extend(differences.remarks.faults());
        let by_path: HashMap<&VaultPath, &DiskFile> = walked.files.iter().map(|file| (&file.path, file)).collect();
        for known in &known {
            if by_path.get(&known.path).is_some_and(|file| file.kind != known.kind) {
                differences.faults.push(format!("{}: is of another kind than in the index", known.path));
                differences.odd.push(known.id);
            }
        }
        let stored = self.stored_walk_warnings()?;
        let odd_names: HashSet<&str> = walked.warnings.iter().chain(&stored).map(|(path, _)| path.as_str()).collect();
        for note in self.odd_notes(&known, &walked.files, &outdated, &odd_names)? {
            differences.faults.push(note.fault);
            differences.odd.push(note.id);
            differences.vectors.extend(note.vectors);
        }
        differences.vectors.sort_unstable();
        differences.vectors.dedup();
        Ok(differences)
    }

    /// `refused` are the files whose content cannot be had now: they do not wait for anything.
    fn remarks(&self, known: &[KnownFile], refused: &HashMap<VaultPath, Warning>) -> Result<Remarks> {
        let notes = || known.iter().filter(|known| known.indexed && known.kind.is_note());
        let stored = self.stored_walk_warnings()?;
        let files: HashSet<&str> =
            notes().map(|known| known.path.as_str()).chain(stored.iter().map(|(path, _)| path.as_str())).collect();
        let mut of_nothing = self.store.files_with_warnings()?;
        of_nothing.retain(|file| !files.contains(file.as_str()));
        let waiting = notes().any(|known| known.hash.is_none() && !refused.contains_key(&known.path));
        Ok(Remarks { of_nothing, unread_is_wrong: !waiting && self.store.unread()? > 0 })
    }

    /// Compares the rows of the notes whose content is the one that was indexed; others are read again anyway. Those
    /// in `odd_names` have warnings of the walk, which are not compared.
    fn odd_notes(
        &self,
        known: &[KnownFile],
        disk: &[DiskFile],
        outdated: &HashSet<FileId>,
        odd_names: &HashSet<&str>,
    ) -> Result<Vec<OddNote>> {
        let names: Names = self.store.paths()?.into_iter().collect();
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
            let as_indexed =
                jobs.into_iter().zip(prepared).filter(|(job, now)| hashes.get(&job.id) == Some(&now.file.hash));
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
            store.put_note(id, &note.row, None)?;
            store.put_links([(id, note.links.as_slice())])?;
            store.put_warnings(path.as_str(), &note.warnings, false)?;
            let mut passages = Vec::with_capacity(note.passages.len());
            for passage in note.passages {
                let length = passage.fields.length();
                let row = PassageToPut { id: next_passage, note: id, vector: None, length, text: &passage.row };
                store.put_passages(&[row])?;
                words.push((next_passage, passage.fields));
                passages.push(passage.key);
                next_passage += 1;
            }
            notes.push(Note { id, path, title: note.title_key, passages });
        }
        store.put_words(&words)?;
        transaction.commit()?;
        let words = store.word_prints()?;
        Ok(Self { store, words, notes })
    }
}
