//! Files and folders that only the user may read and write: 0600 and 0700 on Unix.

use std::fs::{File, OpenOptions};
use std::path::Path;

use crate::error::{Error, Result};

/// Creates a folder, and its missing parents, private to the user (0700).
pub fn private_folder(folder: &Path) -> Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).map_err(|error| Error::io(folder, error))
}

/// Makes files that are created with these options private to the user (0600).
pub fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

/// Opens a file for reading and writing; a new file is private to the user (0600).
pub fn private_file(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    private(options.read(true).write(true).create(true).truncate(false))
        .open(path)
        .map_err(|error| Error::io(path, error))
}

/// Makes an existing file private to the user: removes all permissions of group and others.
pub fn make_private(path: &Path) -> Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        let mode = std::fs::metadata(path).map_err(|error| Error::io(path, error))?.mode();
        if mode & 0o077 != 0 {
            let private = std::fs::Permissions::from_mode(mode & 0o700);
            std::fs::set_permissions(path, private).map_err(|error| Error::io(path, error))?;
        }
    }
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn what_is_made_is_private() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("a/b");
        private_folder(&folder).unwrap();
        private_file(&folder.join("f")).unwrap();
        let mode = |p: &Path| std::fs::metadata(p).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&dir.path().join("a")), mode(&folder), mode(&folder.join("f"))), (0o700, 0o700, 0o600));
    }
}
