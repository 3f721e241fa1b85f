//! The properties of a file or folder on the disk besides path and content: name, permissions, owner and attributes.

#![allow(clippy::disallowed_methods)]

use std::fs::File;
use std::io::ErrorKind as IoKind;

use cap_std::fs::Metadata;
use unicode_normalization::UnicodeNormalization;

use crate::error::Result;
use crate::sandbox::{SafePath, Sandbox};

/// The properties that a file or folder gets back when it is recreated or moved back: its name on the disk, if that is
/// another spelling of the path's name, and its permissions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SavedMetadata {
    pub name: Option<String>,
    pub mode: Option<u32>,
}

impl SavedMetadata {
    pub(crate) fn new(name: Option<String>, mode: Option<u32>) -> Self {
        Self { name, mode: mode.map(|mode| mode & 0o7777) }
    }

    /// Returns the name on the disk for a path's last name. A saved name that is not a spelling of it is ignored.
    pub(super) fn name_for<'a>(&'a self, path: &'a SafePath) -> &'a str {
        match &self.name {
            Some(name) if name.nfc().eq(path.file_name().chars()) => name,
            _ => path.file_name(),
        }
    }
}

impl Sandbox {
    /// Returns the properties to restore after a path is moved or deleted; empty if there is nothing at the path.
    pub(crate) fn saved_metadata(&self, path: &SafePath) -> Result<SavedMetadata> {
        let Some(place) = self.place(path)? else { return Ok(SavedMetadata::default()) };
        let Some(metadata) = Self::metadata(&place, path)? else { return Ok(SavedMetadata::default()) };
        let name = (place.name != path.file_name()).then_some(place.name);
        Ok(SavedMetadata::new(name, mode_of(&metadata)))
    }

    /// Returns a caution about the old file for the person who approves new content for it.
    pub(crate) fn caution(&self, path: &SafePath) -> Result<Option<String>> {
        let Some(place) = self.place(path)? else { return Ok(None) };
        let Some(metadata) = Self::metadata(&place, path)?.filter(Metadata::is_file) else { return Ok(None) };
        if metadata.permissions().readonly() {
            return Ok(Some("is marked read-only but is written anyway".to_string()));
        }
        #[cfg(unix)]
        {
            let names = cap_std::fs::MetadataExt::nlink(&metadata);
            if names > 1 {
                let text = format!("is one of {names} hard links to a file; the others keep the old text");
                return Ok(Some(text));
            }
        }
        Ok(None)
    }
}

#[cfg(unix)]
fn mode_of(metadata: &Metadata) -> Option<u32> {
    Some(cap_std::fs::MetadataExt::mode(metadata))
}

#[cfg(not(unix))]
fn mode_of(_: &Metadata) -> Option<u32> {
    None
}

/// Sets permissions, if any are given.
#[cfg(unix)]
pub(super) fn set_mode(file: &File, mode: Option<u32>) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    mode.map_or(Ok(()), |mode| file.set_permissions(std::fs::Permissions::from_mode(mode & 0o7777)))
}

/// Sets permissions, if any are given.
#[cfg(not(unix))]
pub(super) fn set_mode(_: &File, _: Option<u32>) -> std::io::Result<()> {
    Ok(())
}

/// Copies to a new file the owner, the attributes and the permissions of the file that it replaces; owner and
/// attributes only as far as the system permits. `source` is the old file, if it can be read.
#[cfg(unix)]
pub(super) fn carry_over(old: &Metadata, source: Option<&File>, new: &File) -> std::io::Result<()> {
    use cap_std::fs::MetadataExt as _;
    use std::os::unix::fs::{MetadataExt as _, fchown};

    let (uid, gid, mut mode) = (old.uid(), old.gid(), old.mode() & 0o7777);
    let fresh = new.metadata()?;
    let mut is_same_group = fresh.gid() == gid;
    if (fresh.uid(), fresh.gid()) != (uid, gid) {
        is_same_group = fchown(new, Some(uid), Some(gid)).or_else(|_| fchown(new, None, Some(gid))).is_ok();
    }
    if !is_same_group {
        // The permissions of the old group must not apply to another group.
        mode = (mode & !0o2070) | ((mode & 0o007) << 3);
    }
    if let Some(source) = source {
        copy_attributes(source, new);
    }
    set_mode(new, Some(mode))
}

/// Copies extended attributes: for example, tags and comments of macOS, and access control lists.
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn copy_attributes(source: &File, new: &File) {
    use rustix::fs::{XattrFlags, fgetxattr, fgetxattr_query, flistxattr, flistxattr_query, fsetxattr};

    let Ok(length @ 1..) = flistxattr_query(source) else { return };
    let mut names = vec![0_u8; length];
    let Ok(length) = flistxattr(source, names.as_mut_slice()) else { return };
    for name in names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let Ok(length) = fgetxattr_query(source, name) else { continue };
        let mut value = vec![0_u8; length];
        // Some attributes are reserved to the system; the file is complete without them.
        if let Ok(length) = fgetxattr(source, name, value.as_mut_slice()) {
            let _ = fsetxattr(new, name, &value[..length], XattrFlags::empty());
        }
    }
}

#[cfg(all(unix, not(any(target_os = "linux", target_os = "android", target_vendor = "apple"))))]
fn copy_attributes(_: &File, _: &File) {}

/// Flushes a file to the disk. The sync of the journal, which follows, flushes the disk's own cache.
pub(super) fn sync(file: &File) -> std::io::Result<()> {
    #[cfg(unix)]
    let done = rustix::fs::fsync(file).map_err(std::io::Error::from);
    #[cfg(not(unix))]
    let done = file.sync_all();
    synced(done)
}

/// Ignores the error of a file system that does not support sync.
pub(super) fn synced(result: std::io::Result<()>) -> std::io::Result<()> {
    match result {
        Err(error) if matches!(error.kind(), IoKind::InvalidInput | IoKind::Unsupported) => Ok(()),
        result => result,
    }
}
