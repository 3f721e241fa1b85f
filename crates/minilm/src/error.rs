//! Errors of a model's files: which file, what is wrong, and what to do.

use std::io;
use std::path::{Path, PathBuf};

/// Why a model cannot be used or made.
#[derive(Debug)]
#[non_exhaustive]
pub enum ModelError {
    /// A file could not be read or written.
    Io(PathBuf, io::Error),
    /// A file is damaged, cut off, or something else than its name says.
    Damaged(PathBuf, String),
    /// The files are sound, but this program does not run such a model.
    Unsupported(PathBuf, String),
    /// The caller cancelled the work on this file, which is not complete.
    Cancelled(PathBuf),
}

impl ModelError {
    pub(crate) fn damaged(path: &Path, what: impl Into<String>) -> ModelError {
        ModelError::Damaged(path.to_owned(), what.into())
    }

    pub(crate) fn unsupported(path: &Path, what: impl Into<String>) -> ModelError {
        ModelError::Unsupported(path.to_owned(), what.into())
    }

    /// The file that it is about.
    pub fn path(&self) -> &Path {
        match self {
            ModelError::Io(path, _)
            | ModelError::Damaged(path, _)
            | ModelError::Unsupported(path, _)
            | ModelError::Cancelled(path) => path,
        }
    }
}

impl std::fmt::Display for ModelError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ModelError::Io(path, error) => write!(f, "{}: {error}", path.display()),
            ModelError::Damaged(path, what) | ModelError::Unsupported(path, what) => {
                write!(f, "{}: {what}", path.display())
            }
            ModelError::Cancelled(path) => write!(f, "{}: interrupted", path.display()),
        }
    }
}

impl std::error::Error for ModelError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ModelError::Io(_, error) => Some(error),
            ModelError::Damaged(..) | ModelError::Unsupported(..) | ModelError::Cancelled(_) => None,
        }
    }
}
