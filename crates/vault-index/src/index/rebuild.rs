//! Builds a new index beside the old one, which is searched until the new one is complete and replaces it.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};
use crate::index::Index;
use crate::index::model::RecordedModel;
use crate::indexer::{Indexer, SyncOptions};
use crate::lock::{LockName, lock};
use crate::report::{Report, counted_as};
use crate::store::{
    FORMAT, REBUILDING_EMBEDDER, REBUILDING_TO, REBUILDING_URL, ReadVectors, Store, free_damaged_name, logs_of,
};

/// How long to wait for another process that rebuilds an index of another format, which copies vectors.
const RENEWAL: Duration = Duration::from_secs(60);

impl Index {
    /// Builds the index again with the requested model (or its own if none was requested), and embeds everything.
    /// Searches use the old vectors until the new ones are complete; if it is interrupted, the next sync continues it.
    /// A damaged index file that cannot be written is first renamed to `….damaged`.
    ///
    /// # Errors
    /// The errors of [`Index::sync_with`]; [`ErrorKind::Damaged`] when `--index` names a file that is not an index, and
    /// when a damaged one no longer names its model and none was requested.
    pub fn rebuild(&self, options: &SyncOptions<'_>) -> Result<Report> {
        if let Some(database) = &self.database {
            return self.rebuild_database(&**database, None, options);
        }
        self.rebuild_reusing(None, options)
    }

    /// Rebuilds the index; with `doubtful`, copies the sound vectors of the old index, except those in these slots.
    pub(super) fn rebuild_reusing(
        &self,
        doubtful: Option<&BTreeSet<i64>>,
        options: &SyncOptions<'_>,
    ) -> Result<Report> {
        let damaged = free_damaged_name(&self.file);
        match self.rebuild_beside(doubtful, options) {
            Err(error) if error.kind() == ErrorKind::Damaged => {
                self.rebuild_damaged(error, &damaged, doubtful, options)
            }
            result => result,
        }
    }

    /// `damaged` was an unused name when the file was found to be damaged.
    fn rebuild_damaged(
        &self,
        error: Error,
        damaged: &Path,
        doubtful: Option<&BTreeSet<i64>>,
        options: &SyncOptions<'_>,
    ) -> Result<Report> {
        if !self.may_delete(&self.file)? {
            return Err(error);
        }
        if self.has_lost_its_model() {
            let message = "the index is damaged, and the name of its model is lost";
            return Err(Error::new(ErrorKind::Damaged, message)
                .at(&self.file)
                .with_remedy("name one: `vault-index rebuild --model NAME`; the default is minilm"));
        }
        // A watcher would continue to use the file that is moved away, and another rebuild would move the new one away.
        let locks = (
            lock(&self.file, LockName::Watch, Some(Duration::ZERO), None)?,
            options.lock(&self.file, LockName::Embed)?,
        );
        match free_damaged_name(&self.file) == damaged {
            true => self.replace_damaged(damaged, doubtful, options)?,
            // The process that held the lock has done it.
            false => self.close(),
        }
        drop(locks);
        self.sync_with(options)
    }

    fn replace_damaged(
        &self,
        damaged: &Path,
        doubtful: Option<&BTreeSet<i64>>,
        options: &SyncOptions<'_>,
    ) -> Result<()> {
        let wanted = self.wanted_on_disk()?;
        self.close();
        log::warn!("{} is damaged; it is renamed to {}", self.file.display(), damaged.display());
        std::fs::rename(&self.file, damaged).map_err(|e| Error::io(&self.file, e))?;
        for path in logs_of(&self.file) {
            let _ = std::fs::remove_file(path);
        }
        let writer = self.writer()?;
        let store = writer.as_ref().expect("opened by writer()");
        let _lock = options.lock(&self.file, LockName::Write)?;
        self.describe(store, &wanted)?;
        if let (Some(doubtful), Ok(old)) = (doubtful, Store::open_read(damaged)) {
            store.copy_vectors(&old, doubtful)?;
        }
        Ok(())
    }

    /// Empties the index, in this program's format, and keeps the old vectors. They are found by text, so the sync that
    /// follows embeds nothing again.
    pub(super) fn renew(&self) -> Result<Store> {
        let _lock = lock(&self.file, LockName::Write, Some(RENEWAL), None)?;
        match Store::open(&self.file) {
            Err(error) if error.kind() == ErrorKind::OtherFormat => {}
            // The process that held the lock has done it.
            store => return store,
        }
        let mut store = Store::open_any_format(&self.file)?;
        self.check_vault(&store).map_err(|error| match error.kind() {
            ErrorKind::Damaged => {
                error.with_remedy("run `vault-index forget --index-only`, then `vault-index sync` to rebuild it")
            }
            _ => error,
        })?;
        let (format, vectors) = store.renew()?;
        store.checkpoint();
        log::warn!(
            "{}: the index had format {format}; it is rebuilt in format {FORMAT}, and {} kept",
            self.file.display(),
            counted_as(vectors, "vector is", "vectors are")
        );
        Ok(store)
    }

    fn rebuild_beside(&self, doubtful: Option<&BTreeSet<i64>>, options: &SyncOptions<'_>) -> Result<Report> {
        let mut writer = self.writer()?;
        let store = writer.as_mut().expect("opened by writer()");
        self.check_vault(store)?;
        let empty = store.counts()?.0 == 0 && store.embedder()?.is_none();
        if empty {
            drop(writer);
            return self.sync_with(options);
        }
        let wanted = self.wanted_anew(store)?;
        let _embedding = options.lock(&self.file, LockName::Embed)?;
        self.claim_rebuild_file()?;
        {
            let _lock = options.lock(&self.file, LockName::Write)?;
            store.set_meta(REBUILDING_TO, &wanted.name)?;
            store.set_meta(REBUILDING_EMBEDDER, wanted.embedder.id())?;
            store.set_optional_meta(REBUILDING_URL, wanted.base_url.as_deref())?;
            // The leftovers of an earlier rebuild do not belong to this one.
            self.delete_rebuild()?;
        }
        self.rebuild_into(store, &wanted, doubtful, options)
    }

    /// Builds the new index, or continues it, and replaces the old one once no text is pending. The caller holds
    /// [`LockName::Embed`], which guards both files, because a second rebuild would discard the result of the first.
    pub(super) fn rebuild_into(
        &self,
        store: &mut Store,
        wanted: &RecordedModel,
        doubtful: Option<&BTreeSet<i64>>,
        options: &SyncOptions<'_>,
    ) -> Result<Report> {
        let path = self.claim_rebuild_file()?;
        let open = || -> Result<Option<Store>> {
            match Store::open(&path) {
                Err(error) if error.kind() == ErrorKind::OtherFormat => Ok(None),
                Ok(new) if new.embedder()?.is_none_or(|(id, _)| id == wanted.embedder.id()) => Ok(Some(new)),
                Err(error) if error.kind() != ErrorKind::Damaged => Err(error),
                _ => Ok(None),
            }
        };
        let new = match open()? {
            Some(new) => new,
            // It has another model or format, or is damaged.
            None => {
                self.delete_rebuild()?;
                Store::open(&path)?
            }
        };
        if new.embedder()?.is_none() {
            self.describe(&new, wanted)?;
            if let Some(doubtful) = doubtful {
                new.copy_vectors(store, doubtful)?;
            }
        }
        let indexer = Indexer { locks: None, ..self.indexer(&new, wanted.embedder.as_ref(), options) };
        let (report, _) = indexer.sync()?;
        // A sync that ran out of time may not even have read all notes.
        let complete = report.unread == 0 && (report.pending == 0 || !options.vectors);
        if complete && !options.is_over() {
            let _lock = options.lock(&self.file, LockName::Write)?;
            let batch = new.begin()?;
            new.copy_former_paths(store)?;
            batch.commit()?;
            store.replace_with(&new)?;
            log::info!("{}: rebuilt with {}", self.file.display(), wanted.name);
            drop(new);
            store.checkpoint();
            self.delete_rebuild()?;
        }
        Ok(report)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::embed::HashedEmbedder;
    use crate::index::Options;

    const NOW: Option<Duration> = Some(Duration::ZERO);

    fn index() -> (tempfile::TempDir, Index) {
        let folder = tempfile::tempdir().unwrap();
        let vault = folder.path().join("vault");
        std::fs::create_dir(&vault).unwrap();
        std::fs::write(vault.join("a.md"), "one").unwrap();
        let options =
            Options::new().index_file(folder.path().join("index.db")).embedder(Arc::new(HashedEmbedder::new()));
        let index = Index::open(vault, options).unwrap();
        index.sync().unwrap();
        (folder, index)
    }

    #[test]
    fn a_sync_leaves_a_rebuild_to_who_is_at_it() {
        let (_folder, index) = index();
        Store::open(index.index_file()).unwrap().set_meta(REBUILDING_TO, "another").unwrap();
        let _other = lock(index.index_file(), LockName::Embed, NOW, None).unwrap();
        std::fs::write(index.vault().join("b.md"), "two").unwrap();
        let report = index.sync_with(&SyncOptions::new().wait(Duration::ZERO)).unwrap();
        assert_eq!((report.added, report.pending), (1, 2), "the rebuild embeds it");
    }

    #[test]
    fn a_sync_with_a_deadline_leaves_embedding_to_who_is_at_it() {
        let (_folder, index) = index();
        let other = lock(index.index_file(), LockName::Embed, NOW, None).unwrap();
        std::fs::write(index.vault().join("b.md"), "two").unwrap();
        let soon = std::time::Instant::now() + Duration::from_secs(2);
        let report = index.sync_with(&SyncOptions::new().deadline(soon)).unwrap();
        assert_eq!((report.added, report.pending), (1, 2));
        drop(other);
        assert_eq!(index.sync().unwrap().pending, 0);
    }

    #[test]
    fn a_damaged_index_stays_where_it_is_while_somebody_watches() {
        let (folder, index) = index();
        index.close();
        let file = index.index_file();
        let half = std::fs::metadata(file).unwrap().len() / 2;
        std::fs::OpenOptions::new().write(true).open(file).unwrap().set_len(half).unwrap();
        let watcher = lock(file, LockName::Watch, NOW, None).unwrap();
        let error = index.rebuild(&SyncOptions::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Locked, "{error}");
        assert_eq!(std::fs::metadata(file).unwrap().len(), half);
        drop(watcher);
        index.rebuild(&SyncOptions::default()).unwrap();
        assert!(folder.path().join("index.db.damaged").exists());
        assert_eq!(index.status().unwrap().notes, 1);
    }

    #[test]
    fn who_waited_for_a_new_file_does_not_move_it_away() {
        let (_folder, index) = index();
        let name = free_damaged_name(index.index_file());
        std::fs::write(&name, "set aside by somebody meanwhile").unwrap();
        let damaged = Error::new(ErrorKind::Damaged, "it was");
        assert_eq!(index.rebuild_damaged(damaged, &name, None, &SyncOptions::default()).unwrap().unchanged, 1);
    }
}
