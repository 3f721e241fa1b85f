//! Moves files to the system's trash, from which people restore them by hand.
//!
//! The system's trash takes a path and not a handle, so this is the only step that does not start from the handle on
//! the vault's folder. Immediately before it, the path is checked to lead to the same file as the handle.

#![allow(clippy::disallowed_methods)]

use crate::error::{Error, ErrorKind, Result};
use crate::failpoint;
use crate::sandbox::{SafePath, Sandbox};

/// Whether this program can use the system's trash.
pub(crate) const HAS_SYSTEM_TRASH: bool = cfg!(feature = "trash");

impl Sandbox {
    /// Moves a file into the system's trash.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] if the file is gone; [`ErrorKind::Io`] if the trash does not accept it.
    pub(crate) fn to_system_trash(&self, path: &SafePath) -> Result<()> {
        let Some(place) = self.place(path)? else { return Err(Error::conflict(path, "its folder is gone")) };
        let Some(here) = Self::metadata(&place, path)? else { return Err(Error::conflict(path, "is gone")) };
        let folder = path.parent().map_or_else(|| self.vault().to_owned(), |folder| self.vault().join(folder.as_str()));
        let file = folder.join(&place.name);
        let there = std::fs::symlink_metadata(&file).map_err(|error| Error::io(path, &error))?;
        let is_within = folder.canonicalize().is_ok_and(|real| real.starts_with(self.vault()));
        if !is_within || !here.is_file() || !is_same(&here, &there) {
            return Err(Error::conflict(path, "is not where its path leads to"));
        }
        let trashed = trash(&file);
        failpoint::step();
        trashed.map_err(|why| {
            Error::new(ErrorKind::Io, format!("the system's trash does not accept it: {why}"))
                .at(path)
                .with_remedy("set trash = \"vault\" in tools.toml to have it moved to .trash")
        })
    }
}

#[cfg(unix)]
fn is_same(here: &cap_std::fs::Metadata, there: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    let here = (cap_fs_ext::MetadataExt::dev(here), cap_fs_ext::MetadataExt::ino(here));
    here == (there.dev(), there.ino())
}

/// Links are followed by no path of this system that is a file.
#[cfg(not(unix))]
fn is_same(_: &cap_std::fs::Metadata, there: &std::fs::Metadata) -> bool {
    there.is_file()
}

#[cfg(feature = "trash")]
fn trash(file: &std::path::Path) -> Result<(), String> {
    #[cfg_attr(not(target_os = "macos"), allow(unused_mut))]
    let mut system = trash::TrashContext::default();
    // The other method asks the Finder, which may ask the user.
    #[cfg(target_os = "macos")]
    trash::macos::TrashContextExtMacos::set_delete_method(&mut system, trash::macos::DeleteMethod::NsFileManager);
    system.delete(file).map_err(|error| error.to_string())
}

#[cfg(not(feature = "trash"))]
fn trash(_: &std::path::Path) -> Result<(), String> {
    Err("this program was built without it".into())
}
