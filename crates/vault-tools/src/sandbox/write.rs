//! The changes to the vault's folder, one step at a time: each is done or not, and overwrites nothing unintended.

#![allow(clippy::disallowed_methods)]

use std::fs::File;
use std::io::{ErrorKind as IoKind, Write};

use cap_fs_ext::{DirExt, FollowSymlinks, OpenOptionsFollowExt};
use cap_std::fs::{Dir, DirBuilder, Metadata, OpenOptions};

use super::disk::Place;
use super::metadata::{self, SavedMetadata};
use crate::content::Content;
use crate::error::{Error, Result};
use crate::failpoint;
use crate::sandbox::{PathState, SafePath, Sandbox};

/// Up to this number, files are synced one by one; for more, the whole file system is.
#[cfg(any(target_os = "linux", all(test, unix)))]
const SYNCED_ALONE: usize = 16;

impl Sandbox {
    /// Creates a file at a path whose folder exists; `saved` are properties to restore from an earlier file.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) if there is something at the path by now.
    pub(crate) fn create(
        &self,
        path: &SafePath,
        content: &Content,
        temporary: &str,
        saved: &SavedMetadata,
    ) -> Result<()> {
        let place = self.place_for(path, saved)?;
        let write = || -> std::io::Result<()> {
            let mut file = new_file(&place.folder, temporary, saved.mode)?;
            fill(&mut file, content)?;
            // On a disk without permissions the file exists anyway, and is no more open than it was.
            let _ = metadata::set_mode(&file, saved.mode);
            drop(file);
            failpoint::step();
            rename_to_nothing(&place.folder, temporary, &place.folder, &place.name)
        };
        Self::put(&place, path, temporary, write)
    }

    /// Replaces the content of a file; its permissions, owner and attributes are kept. The path itself must be the
    /// file, not a link to it. Returns the old file, still open, if the system allows replacing an open file.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) if the file is gone.
    pub(crate) fn replace(&self, path: &SafePath, content: &Content, temporary: &str) -> Result<Option<File>> {
        let place = self.place_to_write(path)?;
        let old = match Self::metadata(&place, path)? {
            Some(metadata) if metadata.is_file() => metadata,
            _ => return Err(Error::conflict(path, "is no longer a file")),
        };
        let write = || {
            // Only the user can read it until it has the permissions of the old one.
            let mut file = new_file(&place.folder, temporary, Some(0o600))?;
            fill(&mut file, content)?;
            let replaced = carry_over(&place, &old, &file)?;
            drop(file);
            failpoint::step();
            place.folder.rename(temporary, &place.folder, &place.name)?;
            Ok(replaced)
        };
        Self::put(&place, path, temporary, write)
    }

    fn put<T>(
        place: &Place,
        path: &SafePath,
        temporary: &str,
        write: impl FnOnce() -> std::io::Result<T>,
    ) -> Result<T> {
        let result = write();
        failpoint::step();
        result.map_err(|error| {
            // No other program uses this file name.
            let _ = place.folder.remove_file(temporary);
            match error.kind() {
                IoKind::AlreadyExists => Error::conflict(path, "exists now"),
                _ => Error::io(path, &error),
            }
        })
    }

    /// Moves a file or folder to a path that is free and whose folder exists; `saved` are properties to restore from an
    /// earlier file or folder.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) if the source is gone or the target exists.
    pub(crate) fn rename(&self, from: &SafePath, to: &SafePath, saved: &SavedMetadata) -> Result<()> {
        let (source, target) = (self.place_to_write(from)?, self.place_for(to, saved)?);
        // If the system ignores case, `to` can be the same file as `from`.
        let same = from.as_str().to_lowercase() == to.as_str().to_lowercase() && is_same_file(&source, &target);
        let renamed = if same {
            source.folder.rename(&source.name, &target.folder, saved.name_for(to))
        } else {
            rename_to_nothing(&source.folder, &source.name, &target.folder, &target.name)
        };
        failpoint::step();
        renamed.map_err(|error| match error.kind() {
            IoKind::NotFound => Error::conflict(from, "is gone"),
            IoKind::AlreadyExists | IoKind::DirectoryNotEmpty => Error::conflict(to, "exists now"),
            _ => Error::io(from, &error),
        })
    }

    /// Deletes a file permanently.
    pub(crate) fn remove_file(&self, path: &SafePath) -> Result<()> {
        let place = self.place_to_write(path)?;
        let removed = place.folder.remove_file(&place.name);
        failpoint::step();
        removed.map_err(|error| match error.kind() {
            IoKind::NotFound => Error::conflict(path, "is gone"),
            _ => Error::io(path, &error),
        })
    }

    /// Creates a folder in an existing one; nothing happens if it exists. `saved` are properties to restore from an
    /// earlier folder.
    pub(crate) fn make_folder(&self, path: &SafePath, saved: &SavedMetadata) -> Result<()> {
        let place = self.place_for(path, saved)?;
        let mut builder = DirBuilder::new();
        #[cfg(unix)]
        if let Some(mode) = saved.mode {
            // Permissions that the user's umask removes are restored afterwards; the folder is never more open than it
            // was.
            cap_std::fs::DirBuilderExt::mode(&mut builder, mode);
        }
        let made = place.folder.create_dir_with(&place.name, builder.recursive(false));
        failpoint::step();
        match made {
            Err(error) if error.kind() == IoKind::AlreadyExists && self.found(path)? == PathState::Folder => Ok(()),
            Err(error) => Err(Error::io(path, &error)),
            Ok(()) => {
                if saved.mode.is_some()
                    && let Ok(folder) = place.folder.open_dir_nofollow(&place.name).and_then(|folder| folder.open("."))
                {
                    // A folder with stricter permissions than before is acceptable.
                    let _ = metadata::set_mode(&folder.into_std(), saved.mode);
                }
                Ok(())
            }
        }
    }

    /// Removes a folder if it is empty; returns `false` if it is not.
    pub(crate) fn remove_folder(&self, path: &SafePath) -> Result<bool> {
        let Some(place) = self.place(path)? else { return Ok(true) };
        let removed = place.folder.remove_dir(&place.name);
        failpoint::step();
        match removed {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == IoKind::NotFound => Ok(true),
            Err(error) if error.kind() == IoKind::DirectoryNotEmpty => Ok(false),
            Err(error) => Err(Error::io(path, &error)),
        }
    }

    /// Removes a leftover temporary file beside a path.
    pub(crate) fn remove_temporary(&self, path: &SafePath, temporary: &str) -> Result<()> {
        let Some(place) = self.place(path)? else { return Ok(()) };
        match place.folder.remove_file(temporary) {
            Err(error) if error.kind() != IoKind::NotFound => Err(Error::io(path, &error)),
            _ => Ok(()),
        }
    }

    /// Makes the changes at these paths durable: contents, and names in their folders.
    ///
    /// # Errors
    /// If the disk reports an error.
    pub(crate) fn sync<'p>(&self, paths: impl Iterator<Item = &'p SafePath>) -> Result<()> {
        let paths: Vec<&SafePath> = paths.collect();
        #[cfg(target_os = "linux")]
        if paths.len() > SYNCED_ALONE {
            let root = self.root.open(".").map_err(|error| Error::io(".", &error))?;
            let synced = rustix::fs::syncfs(&root).map_err(std::io::Error::from);
            return metadata::synced(synced).map_err(|error| Error::io(".", &error));
        }
        let mut folders = std::collections::BTreeSet::new();
        for path in paths {
            folders.insert(path.parent());
            let Some(place) = self.place(path)? else { continue };
            let mut options = OpenOptions::new();
            // Windows syncs only files that are open for writing.
            options.read(true).write(cfg!(windows)).follow(FollowSymlinks::No);
            match Self::metadata(&place, path)? {
                Some(metadata) if metadata.is_file() => {}
                _ => continue,
            }
            // A file that the user may not open was not written by this program.
            let Ok(file) = place.folder.open_with(&place.name, &options) else { continue };
            metadata::sync(&file.into_std()).map_err(|error| Error::io(path, &error))?;
        }
        if cfg!(unix) {
            for folder in folders {
                // A folder that is gone was removed from another folder, which is synced.
                let Some(dir) = self.folder(folder.as_ref()).ok().flatten() else { continue };
                let Ok(dir) = dir.open(".") else { continue };
                let name = folder.as_ref().map_or(".", SafePath::as_str);
                metadata::sync(&dir.into_std()).map_err(|error| Error::io(name, &error))?;
            }
        }
        Ok(())
    }

    /// Returns the place of a file or folder to be changed, whose folder must exist.
    fn place_to_write(&self, path: &SafePath) -> Result<Place> {
        self.place(path)?.ok_or_else(|| Error::conflict(path, "its folder is gone"))
    }

    /// Returns the place of a file or folder to be created, with the name that it had on the disk before.
    fn place_for(&self, path: &SafePath, saved: &SavedMetadata) -> Result<Place> {
        let mut place = self.place_to_write(path)?;
        if Self::metadata(&place, path)?.is_none() {
            place.name = saved.name_for(path).to_string();
        }
        Ok(place)
    }
}

/// Creates a file and opens it for writing. A file with the same name that a crash left behind is removed.
fn new_file(folder: &Dir, name: &str, mode: Option<u32>) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).follow(FollowSymlinks::No);
    #[cfg(unix)]
    if mode.is_some() {
        // Only the user can read it until it is complete.
        cap_std::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    #[cfg(not(unix))]
    let _ = mode;
    let file = match folder.open_with(name, &options) {
        Err(error) if error.kind() == IoKind::AlreadyExists => {
            folder.remove_file(name)?;
            folder.open_with(name, &options)?
        }
        file => file?,
    };
    failpoint::step();
    Ok(file.into_std())
}

fn fill(file: &mut File, content: &Content) -> std::io::Result<()> {
    let bytes = content.bytes();
    let (first, rest) = bytes.split_at(bytes.len() / 2);
    file.write_all(first)?;
    failpoint::step();
    file.write_all(rest)
}

/// Copies to a file the metadata of the one that it replaces. Returns the old file, if it can be read.
#[cfg(unix)]
fn carry_over(place: &Place, old: &Metadata, file: &File) -> std::io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    options.read(true).follow(FollowSymlinks::No);
    cap_std::fs::OpenOptionsExt::custom_flags(&mut options, rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    let source = place.folder.open_with(&place.name, &options).ok().map(cap_std::fs::File::into_std);
    metadata::carry_over(old, source.as_ref(), file)?;
    Ok(source)
}

/// Copies to a file the metadata of the one that it replaces.
#[cfg(not(unix))]
fn carry_over(_: &Place, old: &Metadata, file: &File) -> std::io::Result<Option<File>> {
    file.set_permissions(old.permissions().into_std(file)?)?;
    Ok(None)
}

fn is_same_file(one: &Place, other: &Place) -> bool {
    use cap_fs_ext::MetadataExt;
    let of = |place: &Place| place.folder.symlink_metadata(&place.name).ok();
    let (Some(one), Some(other)) = (of(one), of(other)) else { return false };
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Renames, unless the new name exists.
fn rename_to_nothing(from: &Dir, old: &str, to: &Dir, new: &str) -> std::io::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
    {
        use rustix::fs::RenameFlags;
        use rustix::io::Errno;
        match rustix::fs::renameat_with(from, old, to, new, RenameFlags::NOREPLACE) {
            // Some file systems do not support this kind of rename.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
            renamed => return renamed.map_err(Into::into),
        }
    }
    match to.symlink_metadata(new) {
        Ok(_) => Err(IoKind::AlreadyExists.into()),
        Err(error) if error.kind() == IoKind::NotFound => from.rename(old, to, new),
        Err(error) => Err(error),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;

    fn sandbox() -> (tempfile::TempDir, Sandbox) {
        let folder = tempfile::tempdir().unwrap();
        let sandbox = Sandbox::open(folder.path()).unwrap();
        (folder, sandbox)
    }

    #[test]
    fn nobody_reads_a_private_file_before_it_is_whole() {
        let (folder, sandbox) = sandbox();
        for _ in 0..2 {
            // A second time over one that a crash left.
            drop(new_file(&sandbox.root, ".t.tmp", Some(0o644)).unwrap());
            let mode = std::fs::metadata(folder.path().join(".t.tmp")).unwrap().mode();
            assert_eq!(mode & 0o777, 0o600);
            std::fs::set_permissions(folder.path().join(".t.tmp"), std::fs::Permissions::from_mode(0o644)).unwrap();
        }
    }

    #[test]
    fn owner_and_attributes_stay() {
        let (folder, sandbox) = sandbox();
        let file = folder.path().join("a.md");
        std::fs::write(&file, "old").unwrap();
        // Not every disk has attributes, and not everybody may give files away.
        let note = File::options().write(true).open(&file).unwrap();
        #[cfg(target_os = "linux")]
        let has_attributes = rustix::fs::fsetxattr(&note, "user.tag", b"red", rustix::fs::XattrFlags::empty()).is_ok();
        let is_given = std::os::unix::fs::fchown(&note, Some(12345), Some(54321)).is_ok();
        sandbox.replace(&SafePath::new("a.md").unwrap(), &"new".into(), ".t.tmp").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "new");
        let now = std::fs::metadata(&file).unwrap();
        assert!(!is_given || (now.uid(), now.gid()) == (12345, 54321), "{now:?}");
        #[cfg(target_os = "linux")]
        if has_attributes {
            let mut value = [0; 9];
            let note = File::open(&file).unwrap();
            assert_eq!(rustix::fs::fgetxattr(&note, "user.tag", &mut value[..]), Ok(3));
            assert_eq!(&value[..3], b"red");
        }
    }

    #[test]
    fn few_and_many_and_missing_files_are_synced() {
        let (folder, sandbox) = sandbox();
        let paths: Vec<SafePath> =
            (0..2 * SYNCED_ALONE).map(|number| SafePath::new(&format!("f/{number}.md")).unwrap()).collect();
        sandbox.sync(paths.iter().take(3)).unwrap();
        std::fs::create_dir(folder.path().join("f")).unwrap();
        std::fs::write(folder.path().join("f/1.md"), "x").unwrap();
        sandbox.sync(paths.iter().take(3)).unwrap();
        sandbox.sync(paths.iter()).unwrap();
        sandbox.sync(std::iter::empty()).unwrap();
    }
}
