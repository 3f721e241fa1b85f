//! A new index beside the old one, which is searched until the new one is complete and takes its place.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::embed::{Embedder, ModelName, load};
use crate::error::{Error, ErrorKind, Result};
use crate::index::{Index, REBUILDING_TO, SyncOptions, Vectors};
use crate::indexer::Indexer;
use crate::place::{self, LockName, lock};
use crate::report::Report;
use crate::store::Store;

impl Index {
    /// Makes the index anew with the model asked for (the one it has, if none was), embedding everything. Search
    /// goes on with the old vectors until the new ones are complete; interrupted, the next sync goes on. A
    /// damaged index file is set aside under `….damaged` first.
    ///
    /// # Errors
    /// As [`Index::sync_with`]; [`ErrorKind::Damaged`] when `--index` names a file that is not an index.
    pub fn rebuild(&self, options: &SyncOptions<'_>) -> Result<Report> {
        match self.rebuild_beside(options) {
            Err(error) if error.kind() == ErrorKind::Damaged => {
                self.set_aside(error)?;
                self.sync_with(options)
            }
            result => result,
        }
    }

    fn rebuild_beside(&self, options: &SyncOptions<'_>) -> Result<Report> {
        let mut writer = self.writer()?;
        let store = writer.as_mut().expect("opened by writer()");
        self.check_vault(store)?;
        let embedder = match (&self.options.embedder, &self.options.model) {
            (Some(embedder), _) => embedder.clone(),
            (None, Some(name)) => load(name, self.options.base_url.as_deref())?,
            (None, None) => self.embedder()?,
        };
        let empty = store.counts()?.0 == 0 && store.embedder()?.is_none();
        if empty {
            drop(writer);
            return self.sync_with(options);
        }
        let name = match self.asked_model() {
            Some(name) => name,
            None => store.meta("model")?.unwrap_or_else(|| ModelName::default().to_string()),
        };
        {
            let _lock = lock(&self.file, LockName::Write, options.wait, options.cancel)?;
            store.set_meta(REBUILDING_TO, &name)?;
            match &self.options.base_url {
                Some(url) => store.set_meta("rebuilding_base_url", url)?,
                None => store.clear_meta("rebuilding_base_url")?,
            }
            // What an earlier rebuild left unfinished is not part of this one.
            remove_index(&self.rebuild_file())?;
        }
        self.rebuild_into(store, options, &embedder)
    }

    /// The model of a rebuild that was interrupted.
    pub(super) fn unfinished_rebuild(&self, store: &Store) -> Result<Option<Arc<dyn Embedder>>> {
        let Some(name) = store.meta(REBUILDING_TO)? else { return Ok(None) };
        if let Some(embedder) = &self.options.embedder
            && embedder.id() == name
        {
            return Ok(Some(embedder.clone()));
        }
        let base_url = store.meta("rebuilding_base_url")?;
        name.parse::<ModelName>().and_then(|name| load(&name, base_url.as_deref())).map(Some)
    }

    /// Builds beside, or goes on with it, and puts the result in place once nothing is pending.
    pub(super) fn rebuild_into(
        &self,
        store: &mut Store,
        options: &SyncOptions<'_>,
        embedder: &Arc<dyn Embedder>,
    ) -> Result<Report> {
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
            Some((id, _)) if id != embedder.id() => {
                drop(side);
                remove_index(&path)?;
                Store::open(&path)?
            }
            _ => side,
        };
        if side.embedder()?.is_none() {
            self.describe(&side, embedder)?;
            let name = store.meta(REBUILDING_TO)?.or(store.meta("model")?);
            if let Some(name) = name {
                side.set_meta("model", &name)?;
            }
            match store.meta("rebuilding_base_url")?.or(store.meta("base_url")?) {
                Some(url) => side.set_meta("base_url", &url)?,
                None => side.clear_meta("base_url")?,
            }
        }
        let indexer =
            Indexer { store: &side, vault: &self.vault, embedder: embedder.as_ref(), rules: &self.rules, options };
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

    /// Moves a damaged index out of the way. A file of another kind that `--index` named by mistake stays.
    fn set_aside(&self, error: Error) -> Result<()> {
        if self.options.index_file.is_some() && !Store::was_index(&self.file) {
            return Err(error);
        }
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
