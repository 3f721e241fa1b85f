//! How a command ends: exit codes, and lines on standard error.

use std::fmt;
use std::io::{self, Write};

use crate::sanitize::{sanitize, wrapped};
use crate::terminal::Paint;

/// The exit code of a command that Ctrl-C or SIGTERM ended, as shells report it.
pub const ENDED_BY_SIGNAL: u8 = 130;

/// The outcome of a command that ran to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Done or found; also an empty list. Exit code 0.
    Done,
    /// A search that found nothing, or a check that failed. Exit code 1.
    Nothing,
}

/// The reason why a command failed or ended early.
#[derive(Debug)]
pub enum Failure {
    /// An error. Exit code 2.
    Error(String),
    /// Refused, denied, or in conflict with another process. Exit code 3.
    Refused(String),
    /// A message of clap. Exit code 0 for the help and the version, 2 for usage errors.
    Usage(clap::Error),
    /// The reader of standard output closed the pipe: ends without a message. Exit code 0.
    PipeClosed,
    /// Ctrl-C or SIGTERM, with a message about the state of the work. Exit code 130.
    Interrupted(String),
}

/// The result of a command.
pub type CliResult<T = Outcome> = Result<T, Failure>;

impl Failure {
    /// The exit code.
    pub fn code(&self) -> u8 {
        match self {
            Self::Error(_) => 2,
            Self::Refused(_) => 3,
            Self::Usage(error) => u8::try_from(error.exit_code()).unwrap_or(2),
            Self::PipeClosed => 0,
            Self::Interrupted(_) => ENDED_BY_SIGNAL,
        }
    }
}

/// The message, without a prefix such as `error:`.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error(text) | Self::Refused(text) | Self::Interrupted(text) => f.write_str(text),
            Self::Usage(error) => error.fmt(f),
            Self::PipeClosed => f.write_str("standard output was closed"),
        }
    }
}

impl From<clap::Error> for Failure {
    fn from(error: clap::Error) -> Self {
        Self::Usage(error)
    }
}

/// A bare I/O error comes from writing to standard output, because errors of files get their path where they occur.
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

/// Prints a line for people on standard error, wrapped on a terminal. The line is never data, so a closed standard
/// error is ignored.
pub fn say(kind: &str, text: &str) {
    let line = format!("{kind}: {}", sanitize(text));
    let line = Paint::stderr().width().map_or_else(|| line.clone(), |width| wrapped(&line, width));
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Prints a notice on standard error: something the user should know that is not an error.
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
        assert_eq!(Failure::Interrupted("x".into()).code(), 130);
        assert_eq!(Failure::from(io::Error::from(io::ErrorKind::BrokenPipe)).code(), 0);
        assert_eq!(Failure::from(io::Error::from(io::ErrorKind::StorageFull)).code(), 2);
        let usage = |arg: &str| clap::Command::new("x").try_get_matches_from(["x", arg]).unwrap_err();
        assert_eq!(Failure::from(usage("nonsense")).code(), 2);
        assert_eq!(Failure::from(usage("--help")).code(), 0);
    }
}
