//! Errors: which file, model or runtime cannot be used, why, and what to do.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a model cannot be used.
#[derive(Debug)]
pub enum Error {
    /// A file could not be read.
    Io(PathBuf, io::Error),
    /// A model, one of its files or ONNX Runtime cannot be used.
    Model(ModelError),
}

/// An error of a model: what happened, where, and a remedy. `Display` leaves out the cause.
#[derive(Debug)]
#[non_exhaustive]
pub struct ModelError {
    /// What happened, without path, cause and remedy.
    pub message: String,
    /// The file or folder that it is about.
    pub path: Option<PathBuf>,
    /// What the reader can do.
    pub remedy: Option<String>,
    /// The error that caused it.
    pub cause: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl ModelError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), path: None, remedy: None, cause: None }
    }

    pub(crate) fn at(mut self, path: impl AsRef<Path>) -> Self {
        self.path = Some(path.as_ref().to_path_buf());
        self
    }

    pub(crate) fn with_remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    pub(crate) fn because(mut self, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.cause = Some(cause.into());
        self
    }
}

/// Formats an error with its causes in one line, because fastembed's messages do not include them.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut below = error.source();
    while let Some(cause) = below {
        text = format!("{text}: {cause}");
        below = cause.source();
    }
    text
}

impl From<ModelError> for Error {
    fn from(error: ModelError) -> Self {
        Self::Model(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(path, _) => write!(f, "{}: cannot be read", path.display()),
            Self::Model(error) => error.fmt(f),
        }
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.path {
            write!(f, "{}: ", path.display())?;
        }
        f.write_str(&self.message)?;
        self.remedy.as_ref().map_or(Ok(()), |remedy| write!(f, " ({remedy})"))
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(_, error) => Some(error),
            Self::Model(error) => error.source(),
        }
    }
}

impl std::error::Error for ModelError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.as_deref().map(|cause| cause as _)
    }
}
