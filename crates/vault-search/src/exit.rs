//! How a command ends: exit codes, and lines on standard error.

use std::fmt;
use std::io::{self, Write};

use crate::sanitize::{sanitize, wrapped};
use crate::terminal::Paint;

/// How a command ended well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Done or found; an empty list too. Exit code 0.
    Done,
    /// A search that found nothing, or a check that failed. Exit code 1.
    Nothing,
}

/// Why a command ended early.
#[derive(Debug)]
pub enum Failure {
    /// An error. Exit code 2.
    Error(String),
    /// Refused, denied, or in conflict with another process. Exit code 3.
    Refused(String),
    /// What clap has to say: help and the version are 0, the rest is 2.
    Usage(clap::Error),
    /// The reader of standard output has gone: a quiet end, exit code 0.
    PipeClosed,
    /// Ctrl-C or SIGTERM, and what becomes of the work. Exit code 2.
    Interrupted(&'static str),
}

/// What a command returns.
pub type CliResult<T = Outcome> = Result<T, Failure>;

impl Failure {
    /// The exit code.
    pub fn code(&self) -> u8 {
        match self {
            Self::Error(_) | Self::Interrupted(_) => 2,
            Self::Refused(_) => 3,
            Self::Usage(error) => u8::try_from(error.exit_code()).unwrap_or(2),
            Self::PipeClosed => 0,
        }
    }
}

/// What is said of it, without a mark before it.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error(text) | Self::Refused(text) => f.write_str(text),
            Self::Usage(error) => error.fmt(f),
            Self::PipeClosed => f.write_str("standard output was closed"),
            Self::Interrupted(text) => f.write_str(text),
        }
    }
}

impl From<clap::Error> for Failure {
    fn from(error: clap::Error) -> Self {
        Self::Usage(error)
    }
}

/// A bare I/O error comes from writing to standard output; those of files name their path where they happen.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::PipeClosed,
            _ => Self::Error(format!("cannot write to standard output: {error}")),
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        io::Error::from(error).into()
    }
}

/// A line for people on standard error, broken between words on a terminal. It is never data, so a closed standard error is
/// no failure.
pub fn say(kind: &str, text: &str) {
    let line = format!("{kind}: {}", sanitize(text));
    let line = Paint::stderr().width().map_or_else(|| line.clone(), |width| wrapped(&line, width));
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Says something a person should know that stops nothing.
pub fn note(text: &str) {
    say("note", text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes() {
        assert_eq!(Failure::Error("x".into()).code(), 2);
        assert_eq!(Failure::Refused("x".into()).code(), 3);
        assert_eq!(Failure::from(io::Error::from(io::ErrorKind::BrokenPipe)).code(), 0);
        assert_eq!(Failure::from(io::Error::from(io::ErrorKind::StorageFull)).code(), 2);
        let usage = |arg: &str| clap::Command::new("x").try_get_matches_from(["x", arg]).unwrap_err();
        assert_eq!(Failure::from(usage("nonsense")).code(), 2);
        assert_eq!(Failure::from(usage("--help")).code(), 0);
    }
}
