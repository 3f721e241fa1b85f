//! The commands `vault-search` and `vault-index`: arguments in, calls of the library, text or JSON out.
//!
//! Data goes to standard output, everything else to standard error. Nothing here decides what a note,
//! a link or a score is.

mod cancel;
mod config;
mod consent;
mod forget;
mod fresh;
mod graph;
mod index_args;
mod links;
mod manual;
mod output;
mod passage;
mod progress;
mod queries;
mod records;
mod search;
mod search_args;
mod service;
mod settings;
mod status;
mod sync;
mod terminal;
mod vault;
mod watch;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;

use crate::{Error, ErrorKind};
use index_args::{Command, IndexArgs};
use output::Out;

/// How a command ended well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// Done or found; an empty list too. Exit code 0.
    Done,
    /// A search that found nothing, or a check that failed. Exit code 1.
    Nothing,
}

/// Why a command ended early.
#[derive(Debug)]
enum Failure {
    /// Exit code 2, or 3 where another process is in the way.
    Error(Error),
    /// We will not, unless asked in so many words. Exit code 3.
    Refused(Error),
    /// What clap has to say: help and the version are 0, the rest is 2.
    Usage(clap::Error),
    /// Nobody reads on: a quiet end, exit code 0.
    PipeClosed,
    /// Ctrl-C or SIGTERM; what is done stays done. Exit code 2.
    Interrupted(&'static str),
}

impl Failure {
    fn code(&self) -> u8 {
        match self {
            Self::Error(error) if error.kind() == ErrorKind::Locked => 3,
            Self::Error(_) | Self::Interrupted(_) => 2,
            Self::Refused(_) => 3,
            Self::Usage(error) => u8::try_from(error.exit_code()).unwrap_or(2),
            Self::PipeClosed => 0,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl From<clap::Error> for Failure {
    fn from(error: clap::Error) -> Self {
        Self::Usage(error)
    }
}

/// Every bare I/O error in this module comes from writing to standard output; those of files are made
/// errors with their path where they happen.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::PipeClosed,
            _ => Self::Error(Error::new(ErrorKind::Io, "standard output cannot be written").because(error)),
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        io::Error::from(error).into()
    }
}

type Ended<T = Outcome> = Result<T, Failure>;

/// What `vault-search` does.
#[doc(hidden)]
pub fn search_main() -> ExitCode {
    cancel::install();
    let mut out = Out::stdout();
    let ended = search_args::parse(std::env::args_os()).and_then(|args| search::run(args, &mut out));
    finish(ended, out)
}

/// What `vault-index` does.
#[doc(hidden)]
pub fn index_main() -> ExitCode {
    cancel::install();
    let mut out = Out::stdout();
    let ended = IndexArgs::try_parse().map_err(Failure::from).and_then(|args| run_index(args, &mut out));
    finish(ended, out)
}

fn run_index(args: IndexArgs, out: &mut Out) -> Ended {
    let place = args.place;
    match args.command {
        Command::Sync(args) => sync::sync(&place, &args, out),
        Command::Rebuild(args) => sync::rebuild(&place, &args, out),
        Command::Watch(args) => watch::run(&place, &args, out),
        Command::Status(args) => status::status(&place, &args, out),
        Command::Check(args) => status::check(&place, &args, out),
        Command::Models(args) => status::models(&place, &args, out),
        Command::Links(args) => links::links(&place, &args, out),
        Command::Backlinks(args) => links::backlinks(&place, &args, out),
        Command::Unresolved(args) => links::unresolved(&place, &args, out),
        Command::Orphans(args) => links::orphans(&place, &args, out),
        Command::Deadends(args) => links::deadends(&place, &args, out),
        Command::Tags(args) => links::tags(&place, &args, out),
        Command::Resolve(args) => links::resolve(&place, &args, out),
        Command::Graph(args) => graph::run(&place, &args, out),
        Command::Forget(args) => forget::forget(&place, &args, out),
        Command::Adopt(args) => forget::adopt(&place, &args, out),
        Command::Completions(args) => manual::completions(args.shell, out),
        Command::Man(args) => manual::pages(args.dir.as_deref(), out),
    }
}

fn finish(ended: Ended, mut out: Out) -> ExitCode {
    let ended = ended.and_then(|outcome| out.flush().map(|()| outcome));
    let failure = match ended {
        Ok(Outcome::Done) => return ExitCode::SUCCESS,
        Ok(Outcome::Nothing) => return ExitCode::from(1),
        Err(failure) => failure,
    };
    // What was found before it went wrong is still wanted; a second failure to write adds nothing.
    let _ = out.flush();
    match &failure {
        Failure::Error(error) | Failure::Refused(error) => say("error", &error.one_line()),
        Failure::Usage(error) => drop(error.print()),
        Failure::Interrupted(what) => say("interrupted", what),
        Failure::PipeClosed => {}
    }
    ExitCode::from(failure.code())
}

/// A line for people on standard error. It is never data, so a closed standard error is no failure.
fn say(kind: &str, text: &str) {
    let _ = writeln!(io::stderr().lock(), "{kind}: {}", terminal::harmless(text));
}

/// Something a person should know that stops nothing.
fn notice(text: &str) {
    say("note", text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes() {
        let error = |kind| Failure::from(Error::new(kind, "x"));
        assert_eq!(error(ErrorKind::Query).code(), 2);
        assert_eq!(error(ErrorKind::OtherModel).code(), 2);
        assert_eq!(error(ErrorKind::Locked).code(), 3);
        assert_eq!(Failure::Refused(Error::new(ErrorKind::Vault, "x")).code(), 3);
        assert_eq!(Failure::from(io::Error::from(io::ErrorKind::BrokenPipe)).code(), 0);
        assert_eq!(Failure::from(io::Error::from(io::ErrorKind::StorageFull)).code(), 2);
        let usage = IndexArgs::try_parse_from(["vault-index", "nonsense"]).unwrap_err();
        assert_eq!(Failure::from(usage).code(), 2);
        let help = IndexArgs::try_parse_from(["vault-index", "--help"]).unwrap_err();
        assert_eq!(Failure::from(help).code(), 0);
    }
}
