//! Is the index sound, and does it say what the vault says? Everything is read and compared; nothing is believed.

use std::time::Instant;

use crate::error::{Error, ErrorKind, Result};
use crate::index::{Index, Look, SyncOptions, Vectors};
use crate::indexer::Indexer;
use crate::path::FileId;
use crate::place::{self, LockName};
use crate::report::{CheckReport, counted_as};
use crate::store::Store;

/// Vectors in doubt are dropped one by one up to this many; above, all are made anew.
const FEW_VECTORS: usize = 1000;

/// Whether a check mends what it finds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Repair {
    /// It only reports.
    #[default]
    No,
    /// What is not sound is rebuilt, what is not up to date is synced.
    Yes,
}

/// What a look at everything found.
struct Findings {
    faults: Vec<String>,
    /// Notes that were compared.
    notes: usize,
    cure: Cure,
}

/// What mends it.
enum Cure {
    /// A new file.
    Rebuild,
    /// A sync, after what it would not do by itself.
    Sync {
        /// SQL that makes indexes and views again.
        layout: Vec<String>,
        /// Files to be looked into again.
        files: Vec<FileId>,
        /// Slots whose vectors may not be of the texts they are kept for.
        vectors: Vec<i64>,
    },
}

impl Findings {
    fn rebuild(faults: Vec<String>) -> Self {
        Self { faults, notes: 0, cure: Cure::Rebuild }
    }

    /// Whether this is damage: a sync alone would not see it.
    fn is_damage(&self) -> bool {
        match &self.cure {
            Cure::Rebuild => !self.faults.is_empty(),
            Cure::Sync { layout, files, .. } => !layout.is_empty() || !files.is_empty(),
        }
    }
}

impl Index {
    /// Checks the file, its tables, the keyword index, the vectors, every note's hash and every row of every note:
    /// they are compared with those that a sync would write now. Reads all of the vault; embeds nothing, so that a
    /// vector which was replaced together with its codes is not noticed.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when there is no index; what a check finds is no error.
    pub fn check(&self, repair: Repair, options: &SyncOptions<'_>) -> Result<CheckReport> {
        let started = Instant::now();
        if !self.file.exists() {
            Store::open_read(&self.file)?;
        }
        let found = self.look(options)?;
        let mut report = CheckReport { notes: found.notes, ..CheckReport::default() };
        if repair == Repair::Yes && !found.faults.is_empty() {
            let left = self.mend(&found.cure, options)?;
            report.notes = left.notes;
            report.repaired = left.faults.is_empty();
            report.faults = if report.repaired { found.faults } else { left.faults };
        } else {
            report.faults = found.faults;
        }
        report.took_ms = started.elapsed().as_millis() as u64;
        Ok(report)
    }

    /// Mends what was found; what is damaged even then is made anew. Returns what is left.
    fn mend(&self, cure: &Cure, options: &SyncOptions<'_>) -> Result<Findings> {
        *super::lock(&self.reader) = None;
        if let Cure::Sync { layout, files, vectors } = cure {
            let mended = self
                .undo_damage(layout, files, vectors, options)
                .and_then(|()| self.sync_with(&SyncOptions { look: Look::Everything, ..options.clone() }));
            match mended {
                Err(error) if error.kind() == ErrorKind::Damaged => {}
                Err(error) => return Err(error),
                Ok(_) => {
                    let left = self.look(options)?;
                    if !left.is_damage() {
                        return Ok(left);
                    }
                }
            }
        }
        self.rebuild(options)?;
        self.look(options)
    }

    /// Makes damage such that a sync sees it.
    fn undo_damage(
        &self,
        layout: &[String],
        files: &[FileId],
        vectors: &[i64],
        options: &SyncOptions<'_>,
    ) -> Result<()> {
        if layout.is_empty() && files.is_empty() && vectors.is_empty() {
            return Ok(());
        }
        let writer = self.writer()?;
        let store = writer.as_ref().expect("opened by writer()");
        let _lock = place::lock(&self.file, LockName::Write, options.wait, options.cancel)?;
        store.mend_layout(layout)?;
        let batch = store.begin()?;
        for file in files {
            store.mark_unread(*file)?;
        }
        if !vectors.is_empty() {
            store.distrust_vectors(vectors)?;
        }
        batch.commit().map_err(Error::from)
    }

    /// Damage is a finding, no error.
    fn look(&self, options: &SyncOptions<'_>) -> Result<Findings> {
        match self.look_inside(options) {
            Err(error) if error.kind() == ErrorKind::Damaged => Ok(Findings::rebuild(vec![error.what()])),
            result => result,
        }
    }

    fn look_inside(&self, options: &SyncOptions<'_>) -> Result<Findings> {
        let (mut faults, mut layout) = (Vec::new(), Vec::new());
        {
            let writer = self.writer()?;
            let store = writer.as_ref().expect("opened by writer()");
            self.check_vault(store)?;
            let mut lost = false;
            for misfit in store.misfits()? {
                faults.push(misfit.fault);
                lost |= misfit.mend.is_none();
                layout.extend(misfit.mend);
            }
            if lost {
                return Ok(Findings::rebuild(faults));
            }
            let mut unsound = store.integrity()?;
            unsound.extend(store.check_words());
            unsound.extend(store.check_rows()?);
            unsound.extend(store.check_vectors()?);
            if !unsound.is_empty() {
                faults.extend(unsound);
                return Ok(Findings::rebuild(faults));
            }
        }
        // One state, whatever others write meanwhile.
        let store = Store::open_read(&self.file)?;
        store.pin()?;
        let embedder = self.embedder(&store)?;
        let options = SyncOptions { look: Look::Everything, vectors: Vectors::Later, ..options.clone() };
        let indexer = Indexer {
            store: &store,
            vault: &self.vault,
            embedder: embedder.as_ref(),
            rules: &self.rules,
            options: &options,
        };
        let differences = indexer.differences()?;
        faults.extend(differences.faults);
        let pending = store.pending()?;
        if pending > 0 {
            faults.push(counted_as(pending, "text has no vector yet", "texts have no vector yet"));
        }
        let cure = match differences.vectors.len() > FEW_VECTORS {
            true => Cure::Rebuild,
            false => Cure::Sync { layout, files: differences.odd, vectors: differences.vectors },
        };
        Ok(Findings { faults, notes: differences.notes, cure })
    }
}
