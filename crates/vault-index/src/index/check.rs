//! Checks that the index is sound and matches the vault, by comparing it with a new one that is built from the vault.
//!
//! The index is a cache, so it is not repaired in place: damaged and different parts are built again from the vault.
//! Only vectors, which are expensive, are copied, each found by its text.

use std::collections::BTreeSet;
use std::time::Instant;

use crate::error::{ErrorKind, Result};
use crate::index::Index;
use crate::index::mutex::lock;
use crate::indexer::{Indexer, SyncOptions};
use crate::path::is_within;
use crate::report::CheckReport;
use crate::store::{Differences, REPAIR, ReadContents, ReadNotes, ReadPassages, Store, differences_of};

impl Index {
    /// Checks the file itself, and compares its whole content with an index that is built now, in a temporary file,
    /// from every note of the vault. Nothing is embedded, so a vector that was replaced together with its codes is not
    /// noticed. Takes about as long as a first sync without vectors. Of an index in a database, all content but the
    /// vectors is read; the soundness of the tables is the server's to check.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when there is no index, [`ErrorKind::Damaged`] when the file is not an index. The
    /// findings of a check are not errors.
    pub fn check(&self, options: &SyncOptions<'_>) -> Result<CheckReport> {
        Ok(self.examine(options)?.0)
    }

    /// Checks the index and, if anything is wrong with it or vectors are missing, builds it again from the vault. Sound
    /// vectors of unchanged texts are copied. The faults of the report are those that were repaired, or those that are
    /// left. An index in a database is emptied and filled again, and searches meanwhile find what is there so far.
    ///
    /// # Errors
    /// As [`Index::check`] and [`Index::rebuild`].
    pub fn repair(&self, options: &SyncOptions<'_>) -> Result<CheckReport> {
        let started = Instant::now();
        let (before, doubtful) = self.examine(options)?;
        if before.faults.is_empty() && before.pending == 0 {
            return Ok(before);
        }
        *lock(&self.reader) = None;
        let rebuilt = match &self.database {
            Some(database) => self.rebuild_database(&**database, Some(database.reader()?), options),
            None => self.rebuild_reusing(Some(&doubtful), options),
        };
        rebuilt.map_err(|error| match error.remedy() {
            // The remedy is what this call already does.
            Some(REPAIR) => {
                error.with_remedy("run `vault-index forget --index-only`, then `vault-index sync` to rebuild it")
            }
            _ => error,
        })?;
        let (mut now, _) = self.examine(options)?;
        now.repaired = now.faults.is_empty() && !before.faults.is_empty();
        if now.repaired {
            now.faults = before.faults;
        }
        now.took_ms = started.elapsed().as_millis() as u64;
        Ok(now)
    }

    /// Also returns the slots of vectors that may belong to other texts. Damage is a finding, not an error.
    fn examine(&self, options: &SyncOptions<'_>) -> Result<(CheckReport, BTreeSet<i64>)> {
        let started = Instant::now();
        if let Some(database) = &self.database {
            let mut report = self.compare_database(&*database.reader()?, options)?;
            report.took_ms = started.elapsed().as_millis() as u64;
            return Ok((report, BTreeSet::new()));
        }
        if !self.file.exists() || !self.may_delete(&self.file)? {
            // A file that is not an index is not examined and never replaced.
            drop(Store::open_read(&self.file)?);
        }
        let (mut report, doubtful) = match self.compare_with_vault(options) {
            Err(error) if error.kind() == ErrorKind::Damaged => {
                (CheckReport { faults: vec![error.what()], ..CheckReport::default() }, BTreeSet::new())
            }
            found => found?,
        };
        report.took_ms = started.elapsed().as_millis() as u64;
        Ok((report, doubtful))
    }

    fn compare_database(&self, store: &dyn ReadContents, options: &SyncOptions<'_>) -> Result<CheckReport> {
        self.check_model(store)?;
        let embedder = self.embedder(store)?;
        let expected = Store::scratch()?;
        expected.make_vectors(embedder.id(), embedder.dimensions())?;
        let indexer = Indexer { locks: None, ..self.indexer(&expected, embedder.as_ref(), options) };
        let unreadable = expected.unreadable(&indexer.write_text()?)?;
        let differences = differences_of(store, &expected)?;
        report_of(&differences, &unreadable, &expected, store.pending()?)
    }

    fn compare_with_vault(&self, options: &SyncOptions<'_>) -> Result<(CheckReport, BTreeSet<i64>)> {
        let store = Store::open_read(&self.file)?;
        // Reads one state, whatever other processes write meanwhile.
        store.pin()?;
        self.check_vault(&store)?;
        let faults = store.faults()?;
        if !faults.is_empty() {
            return Ok((CheckReport { faults, ..CheckReport::default() }, BTreeSet::new()));
        }
        let embedder = self.embedder(&store)?;
        let expected = Store::scratch()?;
        expected.make_vectors(embedder.id(), embedder.dimensions())?;
        expected.copy_keys(&store)?;
        let indexer = Indexer { locks: None, ..self.indexer(&expected, embedder.as_ref(), options) };
        let unlisted = indexer.write_text()?;
        let unreadable = expected.unreadable(&unlisted)?;
        let differences = store.differences(&expected)?;
        let report = report_of(&differences, &unreadable, &expected, store.pending()?)?;
        Ok((report, differences.doubtful))
    }
}

/// `unreadable` are the paths that were not compared, each with the reason.
fn report_of(
    differences: &Differences,
    unreadable: &[(String, String)],
    expected: &Store,
    pending: usize,
) -> Result<CheckReport> {
    Ok(CheckReport {
        faults: differences.faults(|path| unreadable.iter().any(|(place, _)| is_within(path, place))),
        unreadable: unreadable.iter().map(|(path, why)| format!("{path}: {why}")).collect(),
        notes: expected.note_count()?,
        pending,
        ..CheckReport::default()
    })
}
