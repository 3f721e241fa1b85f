//! The error type: its messages tell a model or a person what happened, where, and how to fix it.

use std::fmt;
use std::sync::Arc;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error: its kind, the place, what happened, and how the reader can fix it. Cheap to clone.
///
/// Serializes to `{code, message, path, remedy}`, with the causes in the message. Two errors are equal if they
/// serialize to the same value.
#[derive(Debug, Clone)]
pub struct Error(Box<Inner>);

#[derive(Debug, Clone)]
struct Inner {
    kind: ErrorKind,
    message: String,
    path: Option<String>,
    remedy: Option<String>,
    /// The error of the index from which this one was converted; the cause of that error is also the cause of this one.
    of_index: Option<Arc<vault_index::Error>>,
}

impl PartialEq for Error {
    fn eq(&self, other: &Self) -> bool {
        let Inner { kind, path, remedy, .. } = &*self.0;
        (kind, path, remedy) == (&other.0.kind, &other.0.path, &other.0.remedy)
            && self.message_with_causes() == other.message_with_causes()
    }
}

impl Eq for Error {}

/// The kinds of error that a caller may want to distinguish.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A path that is not inside the vault, or that no note may have.
    InvalidPath,
    /// Arguments that do not match a tool's schema, or contradict each other.
    InvalidArguments,
    /// A note, folder, tool, transaction or heading does not exist.
    NotFound,
    /// A file or folder already exists.
    Exists,
    /// A file or folder changed since it was read.
    Conflict,
    /// Another process holds a lock. Nothing was done; you may try again.
    Busy,
    /// The name or text matches several places.
    Ambiguous,
    /// The operation is refused because it would do damage.
    Refused,
    /// The policy or a person denied it.
    Denied,
    /// This program or host cannot do it.
    Unsupported,
    /// Frontmatter that cannot be read, or could not be changed without changing more than was asked.
    Frontmatter,
    /// A file that is not text in UTF-8.
    Encoding,
    /// The journal is damaged, has another format, or has an interrupted transaction about which a person must decide.
    Journal,
    /// A plan that cannot be run.
    Plan,
    /// Invalid settings.
    Config,
    /// The caller cancelled.
    Cancelled,
    /// It took longer than allowed.
    TimedOut,
    /// The index could not be used.
    Index,
    /// A file could not be read or written.
    Io,
}

impl ErrorKind {
    /// Returns the name for programs: `CONFLICT`.
    pub fn code(self) -> &'static str {
        match self {
            Self::InvalidPath => "INVALID_PATH",
            Self::InvalidArguments => "INVALID_ARGUMENTS",
            Self::NotFound => "NOT_FOUND",
            Self::Exists => "EXISTS",
            Self::Conflict => "CONFLICT",
            Self::Busy => "BUSY",
            Self::Ambiguous => "AMBIGUOUS",
            Self::Refused => "REFUSED",
            Self::Denied => "DENIED",
            Self::Unsupported => "UNSUPPORTED",
            Self::Frontmatter => "FRONTMATTER",
            Self::Encoding => "ENCODING",
            Self::Journal => "JOURNAL",
            Self::Plan => "PLAN",
            Self::Config => "CONFIG",
            Self::Cancelled => "CANCELLED",
            Self::TimedOut => "TIMED_OUT",
            Self::Index => "INDEX",
            Self::Io => "IO",
        }
    }
}

impl Error {
    /// Creates an error with a message that tells what happened.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner { kind, message: message.into(), path: None, remedy: None, of_index: None }))
    }

    /// Sets the file or folder that the error is about, or the JSON pointer.
    #[must_use]
    pub fn at(mut self, path: impl fmt::Display) -> Self {
        self.0.path = Some(path.to_string());
        self
    }

    /// Sets how the reader can fix it.
    #[must_use]
    pub fn with_remedy(mut self, remedy: impl Into<String>) -> Self {
        self.0.remedy = Some(remedy.into());
        self
    }

    /// Adds the interrupted operation before the message.
    #[must_use]
    pub fn within(mut self, what: impl fmt::Display) -> Self {
        self.0.message = format!("{what}: {}", self.0.message);
        self
    }

    /// Appends the reason to the message.
    #[must_use]
    pub fn because(mut self, reason: impl fmt::Display) -> Self {
        self.0.message = format!("{}: {reason}", self.0.message);
        self
    }

    /// Creates an I/O error at a path.
    pub fn io(path: impl fmt::Display, error: &std::io::Error) -> Self {
        Self::new(ErrorKind::Io, "cannot be read or written").because(error).at(path)
    }

    /// The error for a path that does not exist; `nearest` are similar existing paths, best first.
    pub fn not_found(path: impl fmt::Display, nearest: &[String]) -> Self {
        let error = Self::new(ErrorKind::NotFound, format!("Note not found: {path}"));
        match nearest {
            [] => error.with_remedy("list or search the vault for the note's path"),
            near => error.with_remedy(format!("did you mean {}?", near.join(" or "))),
        }
    }

    /// The error for a path that is refused, with the reason.
    pub fn invalid_path(path: impl fmt::Debug, why: &str) -> Self {
        Self::new(ErrorKind::InvalidPath, format!("Invalid path: must be within vault directory: {path:?} {why}"))
    }

    /// The error for a file that has changed since the change was prepared.
    pub fn conflict(path: impl fmt::Display, what: &str) -> Self {
        Self::new(ErrorKind::Conflict, what)
            .at(path)
            .with_remedy("read it again and repeat the change; nothing was done")
    }

    /// Returns its kind.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns what happened, without path, causes and remedy.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the path or JSON pointer that it is about.
    pub fn path(&self) -> Option<&str> {
        self.0.path.as_deref()
    }

    /// Returns how the reader can fix it.
    pub fn remedy(&self) -> Option<&str> {
        self.0.remedy.as_deref()
    }
}

impl Error {
    /// Returns path, message, causes and remedy in one line, for people. `Display` begins with the code and omits the
    /// causes, which [`source`](std::error::Error::source) returns.
    pub fn one_line(&self) -> String {
        self.line("", &self.message_with_causes())
    }

    fn message_with_causes(&self) -> String {
        let mut text = self.0.message.clone();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            text.push_str(&format!(": {error}"));
            cause = error.source();
        }
        text
    }

    fn line(&self, code: &str, message: &str) -> String {
        let Inner { path, remedy, .. } = &*self.0;
        let path = path.as_ref().map_or_else(String::new, |path| format!("{path}: "));
        let remedy = remedy.as_ref().map_or_else(String::new, |remedy| format!(" ({remedy})"));
        format!("{code}{path}{message}{remedy}")
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // These two have no code because callers know them by the first words of their messages.
        let code = match self.0.kind {
            ErrorKind::InvalidPath | ErrorKind::NotFound => String::new(),
            kind => format!("{}: ", kind.code()),
        };
        f.write_str(&self.line(&code, &self.0.message))
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(&**self.0.of_index.as_ref()?)
    }
}

impl Serialize for Error {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut error = serializer.serialize_struct("Error", 4)?;
        error.serialize_field("code", self.0.kind.code())?;
        error.serialize_field("message", &self.message_with_causes())?;
        error.serialize_field("path", &self.0.path)?;
        error.serialize_field("remedy", &self.0.remedy)?;
        error.end()
    }
}

impl From<vault_index::Error> for Error {
    fn from(error: vault_index::Error) -> Self {
        use vault_index::ErrorKind as Theirs;
        let kind = match error.kind() {
            Theirs::NotFound => ErrorKind::NotFound,
            Theirs::Query => ErrorKind::InvalidArguments,
            Theirs::Cancelled => ErrorKind::Cancelled,
            Theirs::Locked => ErrorKind::Busy,
            Theirs::Io => ErrorKind::Io,
            _ => ErrorKind::Index,
        };
        let mut own = Self::new(kind, error.message());
        own.0.path = error.path().map(|path| path.display().to_string());
        own.0.remedy = error.remedy().map(str::to_owned);
        own.0.of_index = Some(Arc::new(error));
        own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_what_where_and_what_to_do() {
        let conflict = Error::conflict("a/b.md", "changed since it was read");
        assert_eq!(
            conflict.to_string(),
            "CONFLICT: a/b.md: changed since it was read (read it again and repeat the change; nothing was done)"
        );
        assert_eq!(
            Error::not_found("x.md", &["y/x.md".into()]).to_string(),
            "Note not found: x.md (did you mean y/x.md?)"
        );
        let invalid = Error::invalid_path("../x", "leads out of it").to_string();
        assert!(invalid.starts_with("Invalid path: must be within vault directory"), "{invalid}");
        assert_eq!(serde_json::to_value(&conflict).unwrap()["code"], "CONFLICT");
    }
}
