//! The configuration file of another program: read and replaced as a whole, with a backup beside it.

use std::io::Write;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;
use vault_tools::{Error, ErrorKind, Result};

/// A configuration as it was read.
#[derive(Debug)]
pub(super) struct ConfigFile {
    /// The canonical path, so that a symbolic link to the file stays a link.
    path: PathBuf,
    /// `None` if the file does not exist.
    bytes: Option<Vec<u8>>,
    text: String,
}

impl ConfigFile {
    /// Reads a file; a missing one is empty.
    ///
    /// # Errors
    /// A file that cannot be read or is not UTF-8.
    pub fn read(path: &Path) -> Result<Self> {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => Some(bytes),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(Error::io(path.display(), &error)),
        };
        let text = String::from_utf8(bytes.clone().unwrap_or_default()).map_err(|_| {
            Error::new(ErrorKind::Encoding, "this configuration is not text in UTF-8").at(path.display())
        })?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned();
        Ok(Self { path, bytes, text })
    }

    /// The canonical path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The content, without a byte order mark.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Replaces the content atomically, and returns the path of the backup, if there was a file before.
    ///
    /// # Errors
    /// When it cannot be written, or has changed since it was read.
    pub fn replace(&self, text: &str) -> Result<Option<PathBuf>> {
        let failed = |error: &std::io::Error| Error::io(self.path.display(), error);
        let folder = self.path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder).map_err(|error| failed(&error))?;
        let mut file = NamedTempFile::new_in(folder).map_err(|error| failed(&error))?;
        let mark =
            if self.bytes.as_ref().is_some_and(|bytes| bytes.starts_with(b"\xef\xbb\xbf")) { "\u{feff}" } else { "" };
        write!(file, "{mark}{text}").and_then(|()| file.as_file().sync_all()).map_err(|error| failed(&error))?;
        let backup = self.bytes.as_ref().map(|bytes| self.back_up(bytes)).transpose()?;
        if let Ok(metadata) = self.path.metadata() {
            file.as_file().set_permissions(metadata.permissions()).map_err(|error| failed(&error))?;
        }
        if std::fs::read(&self.path).ok() != self.bytes {
            return Err(Error::new(ErrorKind::Conflict, "this configuration has changed since it was read")
                .at(self.path.display())
                .with_remedy("try again"));
        }
        file.persist(&self.path).map_err(|error| failed(&error.error))?;
        Ok(backup)
    }

    /// Writes a backup beside the file, under the first free name.
    fn back_up(&self, bytes: &[u8]) -> Result<PathBuf> {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let names = (1_u32..).map(|number| self.path.with_file_name(format!("{name}.backup-{number}")));
        for backup in names {
            match std::fs::OpenOptions::new().write(true).create_new(true).open(&backup) {
                Ok(mut file) => {
                    let written =
                        self.path.metadata().and_then(|metadata| file.set_permissions(metadata.permissions()));
                    written
                        .and_then(|()| file.write_all(bytes))
                        .and_then(|()| file.sync_all())
                        .map_err(|error| Error::io(backup.display(), &error))?;
                    return Ok(backup);
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(Error::io(backup.display(), &error)),
            }
        }
        unreachable!("numbers do not end")
    }
}
