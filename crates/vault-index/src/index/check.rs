//! Is the index sound, and does it say what the vault says? Everything is hashed and compared; nothing is believed.

use std::collections::HashMap;
use std::time::Instant;

use crate::error::{ErrorKind, Result};
use crate::index::{Index, Look, SyncOptions, Vectors};
use crate::indexer::Indexer;
use crate::links::{Names, Resolver};
use crate::path::{FileId, VaultPath};
use crate::report::CheckReport;
use crate::store::Store;

/// Whether a check mends what it finds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Repair {
    /// It only reports.
    #[default]
    No,
    /// What is not sound is rebuilt, what is not up to date is synced.
    Yes,
}

impl Index {
    /// Checks the file, the keyword index, the vectors, every note's hash and every link. Reads all of the vault.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when there is no index; what a check finds is no error.
    pub fn check(&self, repair: Repair, options: &SyncOptions<'_>) -> Result<CheckReport> {
        let started = Instant::now();
        let mut report = CheckReport::default();
        if !self.file.exists() {
            Store::open_read(&self.file)?;
        }
        let sound = match self.unsound() {
            Ok(faults) => {
                report.faults = faults;
                report.faults.is_empty()
            }
            Err(error) if error.kind() == ErrorKind::Damaged => {
                report.faults.push(error.to_string());
                false
            }
            Err(error) => return Err(error),
        };
        if sound {
            let (notes, faults) = self.stale(options)?;
            report.notes = notes;
            report.faults = faults;
        }
        if repair == Repair::Yes && !report.faults.is_empty() {
            *super::lock(&self.reader) = None;
            if sound {
                self.sync_with(&SyncOptions { look: Look::Everything, ..options.clone() })?;
            } else {
                self.rebuild(options)?;
            }
            let left = self.check(Repair::No, options)?;
            report.repaired = left.faults.is_empty();
            if !report.repaired {
                report.faults = left.faults;
            }
            report.notes = left.notes;
        }
        report.took_ms = started.elapsed().as_millis() as u64;
        Ok(report)
    }

    /// Faults of the file itself.
    fn unsound(&self) -> Result<Vec<String>> {
        let writer = self.writer()?;
        let store = writer.as_ref().expect("opened by writer()");
        self.check_vault(store)?;
        let mut faults = store.integrity()?;
        faults.extend(store.check_words());
        faults.extend(store.check_rows()?);
        faults.extend(store.check_vectors()?);
        faults.extend(wrong_links(store)?);
        Ok(faults)
    }

    /// Notes whose rows are not what the vault says.
    fn stale(&self, options: &SyncOptions<'_>) -> Result<(usize, Vec<String>)> {
        let writer = self.writer()?;
        let store = writer.as_ref().expect("opened by writer()");
        let embedder = self.embedder(store)?;
        let options = SyncOptions { look: Look::Everything, vectors: Vectors::Later, ..options.clone() };
        let indexer =
            Indexer { store, vault: &self.vault, embedder: embedder.as_ref(), rules: &self.rules, options: &options };
        let (notes, mut faults) = indexer.differences()?;
        let pending = store.pending()?;
        if pending > 0 {
            faults.push(format!("{pending} passages have no vector yet"));
        }
        Ok((notes, faults))
    }
}

/// Links whose stored target is not where they lead.
fn wrong_links(store: &Store) -> Result<Vec<String>> {
    let paths: HashMap<FileId, VaultPath> = store.paths()?.into_iter().collect();
    let mut names = Names::new();
    paths.iter().for_each(|(id, path)| names.insert(*id, path));
    let resolver = Resolver::new(&names);
    let mut wrong = 0;
    store.each_link(&mut |link| {
        let expected = paths.get(&link.source).and_then(|source| resolver.resolve(&link.path, source).target);
        wrong += usize::from(expected != link.target);
        Ok(())
    })?;
    Ok(if wrong > 0 { vec![format!("{wrong} links lead elsewhere than they should")] } else { Vec::new() })
}
