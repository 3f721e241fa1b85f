//! Deletes the index of a vault, or takes over that of a moved vault; decides which files may be deleted.
//!
//! The folder that `--index` names may contain other files, even with names that an index would use. So a file is
//! deleted only if its first bytes say that it is an index, or if it is empty. In the user's cache folder, which
//! belongs to this program, a file with such a name that is not a database at all counts as an index whose beginning is
//! damaged.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::dirs;
use crate::error::{Error, ErrorKind, Result};
use crate::index::mutex::lock;
use crate::index::{INDEX_FILE, Index, Options};
use crate::lock::{self as file_lock, Lock, LockName, locks_of};
use crate::store::{FileContent, Store, damaged_of, logs_of, rebuild_of};

/// Longer than background embedding takes to stop, which is one batch of the model.
const GIVES_WAY: Duration = Duration::from_secs(3);

impl Index {
    /// Deletes the index and all its files; the notes are not touched. Returns the deleted files.
    ///
    /// # Errors
    /// [`ErrorKind::Locked`] while a writer or watcher is running (background embedding stops for it);
    /// [`ErrorKind::Damaged`] when the file that [`Options::index_file`] names is not an index.
    pub fn forget(self) -> Result<Vec<PathBuf>> {
        self.close();
        if let Some(database) = &self.database {
            database.forget()?;
            return Ok(vec![self.file]);
        }
        if !self.file.parent().is_some_and(Path::exists) {
            return Ok(Vec::new());
        }
        if !self.may_delete(&self.file)? {
            FileContent::index_or_nothing(&self.file)?;
        }
        let locks = all_locks(&self.file)?;
        let mut deleted = self.delete_indexes(&self.index_files())?;
        drop(locks);
        if self.options.index_file.is_none()
            && let Some(folder) = self.file.parent()
            && std::fs::remove_dir(folder).is_ok()
        {
            deleted.push(folder.to_path_buf());
        }
        Ok(deleted)
    }

    /// Takes over the index of a vault whose folder has moved here from `old`. Returns the index file.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when there is no index of `old`; [`ErrorKind::Locked`] when it is in use, when `old`
    /// still exists (and is not an empty folder), or when this vault already has an index.
    pub fn adopt(vault: impl AsRef<Path>, old: &Path, options: &Options) -> Result<PathBuf> {
        let index = Self::open(vault, options.clone())?;
        index.only_file("a vault that has moved")?;
        let old = dirs::vault_or_gone(old)?;
        if old == index.vault {
            return Err(Error::new(ErrorKind::Query, "this is where the vault is now, so there is nothing to adopt")
                .at(old)
                .with_remedy("name the folder as it was before it moved, and with --vault where it is now"));
        }
        if std::fs::read_dir(&old).is_ok_and(|mut entries| entries.next().is_some()) {
            let here = index.vault.display();
            return Err(Error::new(ErrorKind::Locked, "this folder is still there, so its index stays its own")
                .at(old)
                .with_remedy(format!("`vault-index sync --vault \"{here}\"` makes an index of {here}, with another file if --index names one")));
        }
        match options.index_file {
            Some(_) => index.must_be_of(&old)?,
            None => index.move_from(&old)?,
        }
        let store = Store::open_any_format(&index.file)?;
        let _locks = all_locks(&index.file)?;
        store.set_meta("vault", &index.vault.to_string_lossy())?;
        Ok(index.file.clone())
    }

    /// Whether there is an index, or a file that belongs to one.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] when a file cannot be checked.
    pub fn is_kept(&self) -> Result<bool> {
        if self.database.is_some() {
            return self.exists();
        }
        for path in self.index_files() {
            if path.exists() && self.may_delete(&path)? {
                return Ok(true);
            }
        }
        // `forget` refuses to delete a file of another program.
        Ok(self.file.exists())
    }

    fn must_be_of(&self, old: &Path) -> Result<()> {
        let has = Store::open_settings(&self.file)?.meta("vault")?;
        if has.as_deref() == Some(&*old.to_string_lossy()) {
            return Ok(());
        }
        let of = has.unwrap_or_else(|| "no vault".to_string());
        Err(Error::new(ErrorKind::NotFound, format!("this is the index of {of}, not of {}", old.display()))
            .at(&self.file)
            .with_remedy("name the folder that it is of"))
    }

    fn move_from(&self, old: &Path) -> Result<()> {
        let from = dirs::index_folder_of(old)?;
        let to = dirs::index_folder_of(&self.vault)?;
        if !from.join(INDEX_FILE).exists() {
            return Err(Error::new(ErrorKind::NotFound, "there is no index of this folder").at(old).with_remedy(
                "name the folder as it was before it moved; or run `vault-index sync` to make a new index",
            ));
        }
        if self.file.exists() {
            return Err(Error::new(ErrorKind::Locked, "this vault already has an index")
                .at(&self.file)
                .with_remedy("run `vault-index forget --index-only` first"));
        }
        drop(all_locks(&from.join(INDEX_FILE))?);
        if to.exists() {
            // Locks or leftovers of an index that does not exist.
            self.delete_indexes(&self.index_files())?;
            std::fs::remove_dir(&to).map_err(|error| {
                Error::new(
                    ErrorKind::Io,
                    "the folder of the vault's index contains files that do not belong to an index",
                )
                .at(&to)
                .because(error)
                .with_remedy("move them away")
            })?;
        }
        std::fs::rename(&from, &to).map_err(|error| Error::io(&from, error))
    }

    /// Closes all connections, because they would continue to use the deleted file.
    pub(super) fn close(&self) {
        *lock(&self.snapshot) = None;
        *lock(&self.reader) = None;
        self.database_readers.close_idle();
        // Last, because only the writer can fold the log into the file.
        *lock(&self.writer) = None;
    }

    /// Whether a file with a name that an index would use may be deleted.
    pub(super) fn may_delete(&self, path: &Path) -> Result<bool> {
        Ok(match FileContent::of(path)? {
            FileContent::Index | FileContent::Nothing => true,
            FileContent::Unknown => self.options.index_file.is_none(),
            FileContent::OtherDatabase => false,
        })
    }

    /// The index, a new one that a rebuild makes, and damaged ones that were moved away.
    fn index_files(&self) -> Vec<PathBuf> {
        let made = [self.file.clone(), rebuild_of(&self.file)];
        made.into_iter().chain(damaged_of(&self.file)).collect()
    }

    /// Deletes the file of an unfinished rebuild.
    ///
    /// # Errors
    /// See [`Self::claim_rebuild_file`].
    pub(super) fn delete_rebuild(&self) -> Result<()> {
        self.delete_indexes(&[self.claim_rebuild_file()?]).map(drop)
    }

    /// The path at which a rebuild creates the new index.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] when another program's file has that path.
    pub(super) fn claim_rebuild_file(&self) -> Result<PathBuf> {
        let path = rebuild_of(&self.file);
        if self.may_delete(&path)? {
            return Ok(path);
        }
        Err(Error::new(
            ErrorKind::Store,
            "a rebuild creates the new index at this path, but the file there is not an index",
        )
        .at(path)
        .with_remedy("move it away, or choose another place for the index with --index FILE"))
    }

    /// Deletes index files with their logs and locks, if they belong to this program.
    fn delete_indexes(&self, indexes: &[PathBuf]) -> Result<Vec<PathBuf>> {
        let mut deleted = Vec::new();
        for index in indexes {
            // A log has no mark of its own; it belongs to the file beside it.
            if index.exists() && self.may_delete(index)? {
                delete(index.clone(), &mut deleted)?;
                logs_of(index).into_iter().try_for_each(|log| delete(log, &mut deleted))?;
            }
        }
        for index in indexes {
            locks_of(index)?.into_iter().try_for_each(|lock| delete(lock, &mut deleted))?;
        }
        Ok(deleted)
    }
}

/// Takes all locks, to delete or move an index. Waits for background embedding, because it yields; for other processes,
/// the error names them.
fn all_locks(index: &Path) -> Result<Vec<Lock>> {
    let wait = |name| if name == LockName::Watch { Duration::ZERO } else { GIVES_WAY };
    LockName::ALL.into_iter().map(|name| file_lock::lock(index, name, Some(wait(name)), None)).collect()
}

fn delete(path: PathBuf, deleted: &mut Vec<PathBuf>) -> Result<()> {
    match std::fs::remove_file(&path) {
        Ok(()) => deleted.push(path),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(Error::io(path, error)),
    }
    Ok(())
}
