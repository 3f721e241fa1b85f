//! A new index beside the old one, which is searched until the new one is complete and takes its place.

use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Result};
use crate::index::model::Wanted;
use crate::index::{Index, REBUILDING_EMBEDDER, REBUILDING_TO, REBUILDING_URL, SyncOptions, Vectors};
use crate::indexer::Indexer;
use crate::place::{self, Lock, LockName, lock};
use crate::report::Report;
use crate::store::Store;

impl Index {
    /// Makes the index anew with the model asked for (the one it has, if none was), embedding everything. Search
    /// goes on with the old vectors until the new ones are complete; interrupted, the next sync goes on. A
    /// damaged index file is set aside under `….damaged` first.
    ///
    /// # Errors
    /// As [`Index::sync_with`]; [`ErrorKind::Damaged`] when `--index` names a file that is not an index, and when a
    /// damaged one does not say any more which model it has and none was asked for.
    pub fn rebuild(&self, options: &SyncOptions<'_>) -> Result<Report> {
        match self.rebuild_beside(options) {
            Err(error) if error.kind() == ErrorKind::Damaged => self.rebuild_damaged(error, options),
            result => result,
        }
    }

    fn rebuild_damaged(&self, error: Error, options: &SyncOptions<'_>) -> Result<Report> {
        if !self.can_be_set_aside() {
            return Err(error);
        }
        if self.has_lost_its_model() {
            let message = "the index is so damaged that it does not say which model it has";
            return Err(Error::new(ErrorKind::Damaged, message)
                .at(&self.file)
                .remedy("name one: `vault-index rebuild --model NAME`; the default is minilm"));
        }
        let wanted = self.wanted_on_disk()?;
        self.set_aside()?;
        {
            let writer = self.writer()?;
            let store = writer.as_ref().expect("opened by writer()");
            let _lock = lock(&self.file, LockName::Write, options.wait, options.cancel)?;
            self.describe(store, &wanted)?;
        }
        self.sync_with(options)
    }

    fn rebuild_beside(&self, options: &SyncOptions<'_>) -> Result<Report> {
        let mut writer = self.writer()?;
        let store = writer.as_mut().expect("opened by writer()");
        self.check_vault(store)?;
        let empty = store.counts()?.0 == 0 && store.embedder()?.is_none();
        if empty {
            drop(writer);
            return self.sync_with(options);
        }
        let wanted = self.wanted_anew(store)?;
        let _alone = self.rebuild_alone(options)?;
        {
            let _lock = lock(&self.file, LockName::Write, options.wait, options.cancel)?;
            store.set_meta(REBUILDING_TO, &wanted.name)?;
            store.set_meta(REBUILDING_EMBEDDER, wanted.embedder.id())?;
            match &wanted.base_url {
                Some(url) => store.set_meta(REBUILDING_URL, url)?,
                None => store.clear_meta(REBUILDING_URL)?,
            }
            // What an earlier rebuild left unfinished is not part of this one.
            remove_index(&self.rebuild_file())?;
        }
        self.rebuild_into(store, options, &wanted)
    }

    /// One rebuild at a time: a second one would throw away what the first has made.
    pub(super) fn rebuild_alone(&self, options: &SyncOptions<'_>) -> Result<Lock> {
        lock(&self.file, LockName::Rebuild, options.wait, options.cancel)
    }

    /// Builds beside, or goes on with it, and puts the result in place once nothing is pending. The caller holds
    /// [`Self::rebuild_alone`].
    pub(super) fn rebuild_into(&self, store: &mut Store, options: &SyncOptions<'_>, wanted: &Wanted) -> Result<Report> {
        let path = self.rebuild_file();
        let side = match Store::open(&path) {
            Ok(side) => side,
            Err(error) if error.kind() == ErrorKind::Damaged => {
                remove_index(&path)?;
                Store::open(&path)?
            }
            Err(error) => return Err(error),
        };
        let side = match side.embedder()? {
            Some((id, _)) if id != wanted.embedder.id() => {
                drop(side);
                remove_index(&path)?;
                Store::open(&path)?
            }
            _ => side,
        };
        if side.embedder()?.is_none() {
            self.describe(&side, wanted)?;
        }
        let indexer = Indexer {
            store: &side,
            vault: &self.vault,
            embedder: wanted.embedder.as_ref(),
            rules: &self.rules,
            options,
        };
        let report = indexer.sync()?;
        // A sync that ran out of time may not even have read all notes.
        let complete = report.unread == 0 && (report.pending == 0 || options.vectors == Vectors::Later);
        if complete && !options.is_over() {
            let _lock = lock(&self.file, LockName::Write, options.wait, options.cancel)?;
            store.replace_with(&side)?;
            drop(side);
            remove_index(&path)?;
        }
        Ok(report)
    }

    fn rebuild_file(&self) -> PathBuf {
        let mut name = self.file.as_os_str().to_os_string();
        name.push(".rebuild");
        PathBuf::from(name)
    }

    /// A file of another kind that `--index` named by mistake is left as it is.
    pub(super) fn can_be_set_aside(&self) -> bool {
        self.options.index_file.is_none() || Store::was_index(&self.file)
    }

    /// Moves a damaged index out of the way.
    fn set_aside(&self) -> Result<()> {
        // Whoever holds the file open here would go on with what is set aside.
        *super::lock(&self.writer) = None;
        *super::lock(&self.reader) = None;
        *super::lock(&self.snapshot) = None;
        let mut aside = self.file.as_os_str().to_os_string();
        aside.push(".damaged");
        std::fs::rename(&self.file, &aside).map_err(|e| Error::io(&self.file, e))?;
        for path in place::logs_of(&self.file) {
            let _ = std::fs::remove_file(path);
        }
        Ok(())
    }
}

/// Deletes an index file and what belongs to it.
fn remove_index(path: &Path) -> Result<()> {
    for path in place::files_of(path) {
        match std::fs::remove_file(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(Error::io(path, error)),
        }
    }
    Ok(())
}
