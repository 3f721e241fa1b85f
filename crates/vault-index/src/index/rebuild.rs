//! A new index beside the old one, which is searched until the new one is complete and takes its place.

use crate::error::{Error, ErrorKind, Result};
use crate::index::model::Wanted;
use crate::index::{Index, REBUILDING_EMBEDDER, REBUILDING_TO, REBUILDING_URL, SyncOptions, Vectors};
use crate::indexer::Indexer;
use crate::place::{self, Lock, LockName, lock};
use crate::report::Report;
use crate::store::{Owner, Store};

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
        self.claim_rebuild_file()?;
        {
            let _lock = lock(&self.file, LockName::Write, options.wait, options.cancel)?;
            store.set_meta(REBUILDING_TO, &wanted.name)?;
            store.set_meta(REBUILDING_EMBEDDER, wanted.embedder.id())?;
            match &wanted.base_url {
                Some(url) => store.set_meta(REBUILDING_URL, url)?,
                None => store.clear_meta(REBUILDING_URL)?,
            }
            // What an earlier rebuild left unfinished is not part of this one.
            self.delete_rebuild()?;
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
        let path = self.claim_rebuild_file()?;
        let side = match Store::open(&path) {
            Ok(side) => side,
            Err(error) if error.kind() == ErrorKind::Damaged => {
                self.delete_rebuild()?;
                Store::open(&path)?
            }
            Err(error) => return Err(error),
        };
        let side = match side.embedder()? {
            Some((id, _)) if id != wanted.embedder.id() => {
                drop(side);
                self.delete_rebuild()?;
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
            self.delete_rebuild()?;
        }
        Ok(report)
    }

    /// A file of another kind is left as it is: one that `--index` named by mistake, another program's database
    /// anywhere.
    pub(super) fn can_be_set_aside(&self) -> bool {
        match Owner::of(&self.file) {
            Ok(Owner::Us) => true,
            Ok(Owner::Unknown) => self.options.index_file.is_none(),
            _ => false,
        }
    }

    /// Moves a damaged index out of the way.
    fn set_aside(&self) -> Result<()> {
        self.close();
        std::fs::rename(&self.file, place::free_aside(&self.file)).map_err(|e| Error::io(&self.file, e))?;
        for path in place::logs_of(&self.file) {
            let _ = std::fs::remove_file(path);
        }
        Ok(())
    }
}
