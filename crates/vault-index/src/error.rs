//! Errors, which say what happened, where, and what to do; and warnings, which do not stop the work.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error: its kind, its path, a message, and a remedy for the reader.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    path: Option<PathBuf>,
    message: String,
    remedy: Option<String>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// The kinds of error that a caller may want to distinguish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The vault's folder does not exist, is not a folder, or is refused.
    Vault,
    /// A file or folder could not be read or written.
    Io,
    /// The index file is damaged, or is not an index.
    Damaged,
    /// The index was written by another version of the program.
    OtherFormat,
    /// The index holds vectors of another model than the one asked for.
    OtherModel,
    /// Another process holds the lock.
    Locked,
    /// The query, a filter or an option cannot be understood.
    Query,
    /// A note, link or file that was named does not exist.
    NotFound,
    /// The embedding model could not be loaded or failed.
    Model,
    /// The caller cancelled.
    Cancelled,
    /// The database refused for another reason (disk full, read-only, ...).
    Store,
}

impl Error {
    /// Creates an error of `kind` with a message that says what happened.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, path: None, message: message.into(), remedy: None, source: None }
    }

    /// Adds the file or folder that the error is about.
    #[must_use]
    pub fn at(mut self, path: impl AsRef<Path>) -> Self {
        self.path = Some(path.as_ref().to_path_buf());
        self
    }

    /// Adds a remedy: what the reader can do.
    #[must_use]
    pub fn with_remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// Adds the error that caused this one.
    #[must_use]
    pub fn because(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Creates an I/O error at a path.
    pub fn io(path: impl AsRef<Path>, error: std::io::Error) -> Self {
        use std::io::ErrorKind as Io;
        let remedy = match error.kind() {
            Io::PermissionDenied => Some("check its permissions and those of its parent folders"),
            Io::ReadOnlyFilesystem => Some("choose another place: this file system is read-only"),
            Io::StorageFull | Io::QuotaExceeded => Some("free space on the disk"),
            Io::IsADirectory => Some("this is a folder; name a file"),
            Io::NotADirectory => Some("one of its parent folders is a file"),
            _ => None,
        };
        let error = Self::new(ErrorKind::Io, "cannot be read or written").at(path).because(error);
        match remedy {
            Some(remedy) => error.with_remedy(remedy),
            None => error,
        }
    }

    /// The kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// A description of what happened, without path, cause and remedy.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The path that the error is about, if any.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// A remedy for the reader, if one is known.
    pub fn remedy(&self) -> Option<&str> {
        self.remedy.as_deref()
    }

    /// Path, message, causes and remedy in one line, for programs that show an error that way. `Display` leaves out the
    /// causes, which [`source`](std::error::Error::source) returns.
    pub fn one_line(&self) -> String {
        self.what() + &self.in_parentheses()
    }

    /// Path, message and causes, without a remedy: for a list that gives the remedy once.
    pub(crate) fn what(&self) -> String {
        let mut text = self.located();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            text.push_str(&format!(": {error}"));
            cause = error.source();
        }
        text
    }

    fn located(&self) -> String {
        let path = self.path.as_ref().map_or_else(String::new, |path| format!("{}: ", path.display()));
        path + &self.message
    }

    fn in_parentheses(&self) -> String {
        self.remedy.as_ref().map_or_else(String::new, |remedy| format!(" ({remedy})"))
    }
}

#[cfg(feature = "fastembed")]
impl From<vault_models::Error> for Error {
    fn from(error: vault_models::Error) -> Self {
        match error {
            vault_models::Error::Io(path, error) => Self::io(path, error),
            vault_models::Error::Model(vault_models::ModelError { message, path, remedy, cause, .. }) => {
                Self { kind: ErrorKind::Model, path, message, remedy, source: cause }
            }
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.located(), self.in_parentheses())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|e| e as _)
    }
}

/// A problem in one note or file that does not stop indexing it, or at least not the rest of the vault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct Warning {
    /// The kind of the warning.
    #[cfg_attr(feature = "schemars", schemars(with = "String"))]
    pub kind: WarningKind,
    /// The line that it is about, from 1, if it has one.
    pub line: Option<u32>,
    /// A description of the problem and of how it was handled.
    pub message: String,
}

/// The subject of a [`Warning`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum WarningKind {
    /// Frontmatter that is not valid YAML, or over its budget; the body is indexed.
    Frontmatter,
    /// Bytes that are not UTF-8; they were read as U+FFFD.
    Encoding,
    /// A file over the size limit; only its name and size are known.
    TooLarge,
    /// A file that looks binary; only its name and size are known.
    Binary,
    /// A file or folder that could not be read.
    Unreadable,
    /// A canvas that is not valid JSON Canvas; what could be read is indexed.
    Canvas,
    /// Two files whose names are the same once normalised; one is left out.
    NameClash,
    /// A symbolic link that leads out of the vault, nowhere or in a circle; it is not followed.
    Symlink,
}

impl Warning {
    /// Creates a warning about a whole file.
    pub fn new(kind: WarningKind, message: impl Into<String>) -> Self {
        Self { kind, line: None, message: message.into() }
    }

    /// Adds the line that the warning is about, from 1.
    #[must_use]
    pub fn on_line(mut self, line: u32) -> Self {
        self.line = Some(line);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_shows_its_cause_once() {
        let error = Error::new(ErrorKind::Io, "cannot be read").at("a.md").because("no space").with_remedy("make room");
        assert_eq!(error.to_string(), "a.md: cannot be read (make room)");
        assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "no space");
        assert_eq!(error.one_line(), "a.md: cannot be read: no space (make room)");
        let getters = (error.kind(), error.message(), error.path(), error.remedy());
        assert_eq!(getters, (ErrorKind::Io, "cannot be read", Some(Path::new("a.md")), Some("make room")));
    }
}
