//! Is the index sound, and does it say what the vault says? Everything is read and compared; nothing is believed.

use std::time::Instant;

use crate::error::{ErrorKind, Result};
use crate::index::Index;
use crate::indexer::{Differences, Indexer, Look, Remarks, SyncOptions, Vectors};
use crate::path::FileId;
use crate::place::LockName;
use crate::report::CheckReport;
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
    /// Notes and folders that could not be read.
    unreadable: Vec<String>,
    /// Notes that were compared.
    notes: usize,
    /// Texts without a vector.
    pending: usize,
    cure: Cure,
}

/// What mends it.
enum Cure {
    /// A new file.
    Rebuild,
    /// A sync, after what it would not do by itself.
    Sync(Undo),
}

/// What a sync alone would not see.
struct Undo {
    /// SQL that makes indexes and views again.
    layout: Vec<String>,
    /// Files to be looked into again.
    files: Vec<FileId>,
    /// Slots whose vectors may not be of the texts they are kept for.
    vectors: Vec<i64>,
    /// What is said beside the rows of notes, and is not so.
    remarks: Remarks,
}

impl Undo {
    /// Damage of rows; vectors in doubt come with the notes that have them.
    fn is_empty(&self) -> bool {
        self.layout.is_empty() && self.files.is_empty() && self.remarks.are_right()
    }
}

impl Findings {
    fn rebuild(faults: Vec<String>) -> Self {
        Self { faults, unreadable: Vec::new(), notes: 0, pending: 0, cure: Cure::Rebuild }
    }

    /// Whether this is damage: a sync alone would not see it.
    fn is_damage(&self) -> bool {
        match &self.cure {
            Cure::Rebuild => !self.faults.is_empty(),
            Cure::Sync(undo) => !undo.is_empty(),
        }
    }
}

impl Index {
    /// Checks the file, its tables, the keyword index, the vectors, every note's hash and every row of every note:
    /// they are compared with those that a sync would write now. Reads all of the vault; embeds nothing, so that a
    /// vector which was replaced together with its codes is not noticed.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when there is no index, [`ErrorKind::Damaged`] when the file is none; what a check finds
    /// is no error.
    pub fn check(&self, repair: Repair, options: &SyncOptions<'_>) -> Result<CheckReport> {
        let started = Instant::now();
        if !self.file.exists() || !self.can_be_set_aside() {
            // What is no index is not looked into, let alone mended.
            drop(Store::open_read(&self.file)?);
        }
        let mut now = self.look(options)?;
        let mut faults = std::mem::take(&mut now.faults);
        let mut repaired = false;
        if repair == Repair::Yes && (!faults.is_empty() || now.pending > 0) {
            now = self.mend(&now.cure, options)?;
            repaired = now.faults.is_empty() && !faults.is_empty();
            if !now.faults.is_empty() {
                faults = std::mem::take(&mut now.faults);
            }
        }
        let Findings { unreadable, notes, pending, .. } = now;
        let took_ms = started.elapsed().as_millis() as u64;
        Ok(CheckReport { faults, unreadable, notes, pending, repaired, took_ms })
    }

    /// Mends what was found; what is damaged even then is made anew. Returns what is left.
    fn mend(&self, cure: &Cure, options: &SyncOptions<'_>) -> Result<Findings> {
        *super::lock(&self.reader) = None;
        if let Cure::Sync(undo) = cure {
            let mended = self
                .undo_damage(undo, options)
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
    fn undo_damage(&self, undo: &Undo, options: &SyncOptions<'_>) -> Result<()> {
        if undo.is_empty() && undo.vectors.is_empty() {
            return Ok(());
        }
        let writer = self.writer()?;
        let store = writer.as_ref().expect("opened by writer()");
        let _lock = options.lock(&self.file, LockName::Write)?;
        store.mend_layout(&undo.layout)?;
        let batch = store.begin()?;
        undo.files.iter().try_for_each(|file| store.mark_unread(*file))?;
        if !undo.vectors.is_empty() {
            store.distrust_vectors(&undo.vectors)?;
        }
        undo.remarks.of_nothing.iter().try_for_each(|file| store.remove_warnings(file))?;
        if undo.remarks.unread_is_wrong {
            store.set_unread(0)?;
        }
        batch.commit()
    }

    /// Damage is a finding, no error.
    fn look(&self, options: &SyncOptions<'_>) -> Result<Findings> {
        match self.look_inside(options) {
            Err(error) if error.kind() == ErrorKind::Damaged => Ok(Findings::rebuild(vec![error.what()])),
            result => result,
        }
    }

    fn look_inside(&self, options: &SyncOptions<'_>) -> Result<Findings> {
        let words = self.faults_of_words(options)?;
        // One state, whatever others write meanwhile.
        let store = Store::open_read(&self.file)?;
        store.pin()?;
        let (mut faults, layout) = match self.look_at_tables(&store, words)? {
            Tables::Unsound(faults) => return Ok(Findings::rebuild(faults)),
            Tables::Sound { faults, layout } => (faults, layout),
        };
        let embedder = self.embedder(&store)?;
        let options = SyncOptions { look: Look::Everything, vectors: Vectors::Later, ..options.clone() };
        let indexer = Indexer {
            store: &store,
            vault: &self.vault,
            embedder: embedder.as_ref(),
            rules: &self.rules,
            options: &options,
        };
        let Differences { notes, faults: differ, unreadable, odd, vectors, remarks } = indexer.differences()?;
        faults.extend(differ);
        let cure = match vectors.len() > FEW_VECTORS {
            true => Cure::Rebuild,
            false => Cure::Sync(Undo { layout, files: odd, vectors, remarks }),
        };
        Ok(Findings { faults, unreadable, notes, pending: store.pending()?, cure })
    }

    /// What SQLite finds in the keyword index. It takes this question for a write, so that nothing is asked where
    /// nothing can be written; every word is compared with those of the notes anyway.
    fn faults_of_words(&self, options: &SyncOptions<'_>) -> Result<Option<String>> {
        let writer = match self.writer() {
            Err(error) if matches!(error.kind(), ErrorKind::Io | ErrorKind::Store) => return Ok(None),
            writer => writer?,
        };
        let _lock = options.lock(&self.file, LockName::Write)?;
        writer.as_ref().expect("opened by writer()").check_words()
    }

    fn look_at_tables(&self, store: &Store, words: Option<String>) -> Result<Tables> {
        self.check_vault(store)?;
        let (mut faults, mut layout) = (Vec::new(), Vec::new());
        let mut lost = false;
        for misfit in store.misfits()? {
            faults.push(misfit.fault);
            lost |= misfit.mend.is_none();
            layout.extend(misfit.mend);
        }
        if lost {
            return Ok(Tables::Unsound(faults));
        }
        for misfit in [store.misfit_of_blocks()?, store.misfit_of_states()?].into_iter().flatten() {
            faults.push(misfit.fault);
            layout.extend(misfit.mend);
        }
        let mut unsound = store.integrity()?;
        unsound.extend(words);
        unsound.extend(store.check_rows()?);
        unsound.extend(store.check_vectors()?);
        faults.extend(unsound.iter().cloned());
        Ok(if unsound.is_empty() { Tables::Sound { faults, layout } } else { Tables::Unsound(faults) })
    }
}

/// What a look at the file itself found.
enum Tables {
    /// Rows are lost or in doubt.
    Unsound(Vec<String>),
    /// What there is to mend is made again by SQL.
    Sound { faults: Vec<String>, layout: Vec<String> },
}
