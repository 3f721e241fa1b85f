//! What a file or folder has on the disk besides path and content: its name, permissions, owner and attributes.

#![allow(clippy::disallowed_methods)]

use std::fs::File;
use std::io::ErrorKind as IoKind;

use cap_std::fs::Metadata;
use unicode_normalization::UnicodeNormalization;

use crate::error::Result;
use crate::sandbox::{SafePath, Sandbox};

/// What a file or folder is given back when it is made or moved back: the name that the disk had for it, where that
/// is another spelling of the path's, and its permissions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SavedMetadata {
    pub name: Option<String>,
    pub mode: Option<u32>,
}

impl SavedMetadata {
    pub(crate) fn new(name: Option<String>, mode: Option<u32>) -> Self {
        Self { name, mode: mode.map(|mode| mode & 0o7777) }
    }

    /// What a path's last name is on the disk. One that does not spell it counts for nothing.
    pub(super) fn name_for<'a>(&'a self, path: &'a SafePath) -> &'a str {
        match &self.name {
            Some(name) if name.nfc().eq(path.file_name().chars()) => name,
            _ => path.file_name(),
        }
    }
}

impl Sandbox {
    /// What would have to be given back if a path were moved or deleted. Nothing for a path where nothing is.
    pub(crate) fn saved_metadata(&self, path: &SafePath) -> Result<SavedMetadata> {
        let Some(place) = self.place(path)? else { return Ok(SavedMetadata::default()) };
        let Some(metadata) = Self::metadata(&place, path)? else { return Ok(SavedMetadata::default()) };
        let name = (place.name != path.file_name()).then_some(place.name);
        Ok(SavedMetadata::new(name, mode_of(&metadata)))
    }

    /// What whoever approves new content for a file should know of the old one.
    pub(crate) fn caution(&self, path: &SafePath) -> Result<Option<String>> {
        let Some(place) = self.place(path)? else { return Ok(None) };
        let Some(metadata) = Self::metadata(&place, path)?.filter(Metadata::is_file) else { return Ok(None) };
        if metadata.permissions().readonly() {
            return Ok(Some("is marked read-only, and is written all the same".to_string()));
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

/// Sets permissions, where there are any to set.
#[cfg(unix)]
pub(super) fn set_mode(file: &File, mode: Option<u32>) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    mode.map_or(Ok(()), |mode| file.set_permissions(std::fs::Permissions::from_mode(mode & 0o7777)))
}

/// Sets permissions, where there are any to set.
#[cfg(not(unix))]
pub(super) fn set_mode(_: &File, _: Option<u32>) -> std::io::Result<()> {
    Ok(())
}

/// Gives a new file the owner, the attributes and the permissions of the one that it replaces; owner and attributes
/// as far as the system lets us. `source` is the old file, if it can be read.
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
        // What the old group was allowed is not for another one.
        mode = (mode & !0o2070) | ((mode & 0o007) << 3);
    }
    if let Some(source) = source {
        copy_attributes(source, new);
    }
    set_mode(new, Some(mode))
}

/// Extended attributes: tags and comments of macOS, access lists.
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn copy_attributes(source: &File, new: &File) {
    use rustix::fs::{XattrFlags, fgetxattr, fgetxattr_query, flistxattr, flistxattr_query, fsetxattr};

    let Ok(length @ 1..) = flistxattr_query(source) else { return };
    let mut names = vec![0_u8; length];
    let Ok(length) = flistxattr(source, names.as_mut_slice()) else { return };
    for name in names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let Ok(length) = fgetxattr_query(source, name) else { continue };
        let mut value = vec![0_u8; length];
        // Some belong to the system alone; the file is whole without them.
        if let Ok(length) = fgetxattr(source, name, value.as_mut_slice()) {
            let _ = fsetxattr(new, name, &value[..length], XattrFlags::empty());
        }
    }
}

#[cfg(all(unix, not(any(target_os = "linux", target_os = "android", target_vendor = "apple"))))]
fn copy_attributes(_: &File, _: &File) {}

/// Hands a file to the disk. The journal's own sync, which follows, has the disk empty what it holds.
pub(super) fn sync(file: &File) -> std::io::Result<()> {
    #[cfg(unix)]
    let done = rustix::fs::fsync(file).map_err(std::io::Error::from);
    #[cfg(not(unix))]
    let done = file.sync_all();
    synced(done)
}

/// A sync that the file system does not know of is none that failed.
pub(super) fn synced(result: std::io::Result<()>) -> std::io::Result<()> {
    match result {
        Err(error) if matches!(error.kind(), IoKind::InvalidInput | IoKind::Unsupported) => Ok(()),
        result => result,
    }
}
