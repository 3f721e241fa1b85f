//! Is the index sound, and does it say what the vault says? It is compared with one that is made now from the vault.
//!
//! The index is a cache, so nothing in it is repaired: what is damaged or differs is made again, and only vectors, which
//! are expensive, are taken over, each found by its text.

use std::collections::BTreeSet;
use std::time::Instant;

use crate::error::{ErrorKind, Result};
use crate::index::Index;
use crate::index::mutex::lock;
use crate::indexer::{Indexer, SyncOptions};
use crate::report::CheckReport;
use crate::store::Store;

/// What a check found.
#[derive(Default)]
struct Findings {
    faults: Vec<String>,
    /// Files and folders that could not be read.
    unreadable: Vec<String>,
    /// Notes that were compared.
    notes: usize,
    /// Texts without a vector.
    pending: usize,
    /// Slots of vectors that may belong to other texts.
    doubtful: BTreeSet<i64>,
}

impl Findings {
    fn report(self, repaired: bool, started: Instant) -> CheckReport {
        CheckReport {
            faults: self.faults,
            unreadable: self.unreadable,
            notes: self.notes,
            pending: self.pending,
            repaired,
            took_ms: started.elapsed().as_millis() as u64,
        }
    }
}

impl Index {
    /// Checks the file itself, and compares all that it says with an index that is made now, in a temporary file, from
    /// every note of the vault. Nothing is embedded, so that a vector which was replaced together with its codes is not
    /// noticed. Takes about as long as a first sync without vectors.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when there is no index, [`ErrorKind::Damaged`] when the file is not an index; what a
    /// check finds is no error.
    pub fn check(&self, options: &SyncOptions<'_>) -> Result<CheckReport> {
        let started = Instant::now();
        Ok(self.examine(options)?.report(false, started))
    }

    /// Checks the index and, if anything is wrong with it or vectors are missing, makes it again from the vault. Sound
    /// vectors of texts that are the same are taken over. The faults of the report are those that were repaired, or
    /// those that are left.
    ///
    /// # Errors
    /// As [`Index::check`] and [`Index::rebuild`].
    pub fn repair(&self, options: &SyncOptions<'_>) -> Result<CheckReport> {
        let started = Instant::now();
        let before = self.examine(options)?;
        if before.faults.is_empty() && before.pending == 0 {
            return Ok(before.report(false, started));
        }
        *lock(&self.reader) = None;
        self.rebuild_reusing(Some(&before.doubtful), options)?;
        let mut now = self.examine(options)?;
        let repaired = now.faults.is_empty() && !before.faults.is_empty();
        if repaired {
            now.faults = before.faults;
        }
        Ok(now.report(repaired, started))
    }

    /// Damage is a finding, no error.
    fn examine(&self, options: &SyncOptions<'_>) -> Result<Findings> {
        if !self.file.exists() || !self.can_be_set_aside() {
            // What is no index is not looked into, let alone replaced.
            drop(Store::open_read(&self.file)?);
        }
        match self.compare_with_vault(options) {
            Err(error) if error.kind() == ErrorKind::Damaged => {
                Ok(Findings { faults: vec![error.what()], ..Findings::default() })
            }
            findings => findings,
        }
    }

    fn compare_with_vault(&self, options: &SyncOptions<'_>) -> Result<Findings> {
        let store = Store::open_read(&self.file)?;
        // One state, whatever others write meanwhile.
        store.pin()?;
        self.check_vault(&store)?;
        let faults = store.faults()?;
        if !faults.is_empty() {
            return Ok(Findings { faults, ..Findings::default() });
        }
        let embedder = self.embedder(&store)?;
        let expected = Store::scratch()?;
        expected.make_vectors(embedder.id(), embedder.dimensions())?;
        expected.copy_keys(&store)?;
        let (vault, rules) = (&self.vault, &self.rules);
        let indexer = Indexer { store: &expected, locks: None, vault, embedder: embedder.as_ref(), rules, options };
        let unlisted = indexer.write_text()?;
        let unreadable = expected.unreadable(&unlisted)?;
        let is_unreadable = |path: &str| {
            let below = |folder: &String| {
                path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            unreadable.iter().any(|(place, _)| below(place))
        };
        let differences = store.differences(&expected)?;
        Ok(Findings {
            faults: differences.faults(is_unreadable),
            doubtful: differences.doubtful,
            unreadable: unreadable.iter().map(|(path, why)| format!("{path}: {why}")).collect(),
            notes: expected.note_count()?,
            pending: store.pending()?,
        })
    }
}
