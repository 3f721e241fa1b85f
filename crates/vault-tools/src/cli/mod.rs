//! The command `vault-tools`: arguments in, calls of the library, text or JSON out.
//!
//! Data goes to standard output, everything else to standard error. Nothing here decides what may run: the rules do,
//! and where they ask, the person at the terminal.

mod approve;
mod args;
mod call;
mod cancel;
mod context;
mod forget;
mod log;
mod macros;
mod manual;
mod output;
mod plan;
mod plan_args;
mod records;
mod settings;
mod terminal;
mod tools;
mod undo;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;

use crate::error::{Error, ErrorKind};
use args::{Command, ToolsArgs};
use output::Out;
use plan_args::{MacroCommand, PlanCommand};

/// How a command ended well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// Exit code 0.
    Done,
    /// A check that failed. Exit code 1.
    Failed,
}

/// Why a command ended early.
#[derive(Debug)]
enum Failure {
    /// Exit code 2, or 3 where it was refused or something changed meanwhile.
    Error(Error),
    /// What clap has to say: help and the version are 0, the rest is 2.
    Usage(clap::Error),
    /// Nobody reads on: a quiet end, exit code 0.
    PipeClosed,
}

impl Failure {
    fn code(&self) -> u8 {
        match self {
            Self::Error(error) => match error.kind() {
                ErrorKind::Denied | ErrorKind::Conflict | ErrorKind::Refused => 3,
                _ => 2,
            },
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

/// Every bare I/O error in this module comes from writing to standard output.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::PipeClosed,
            _ => Self::Error(Error::io("standard output", &error)),
        }
    }
}

type Ended<T = Outcome> = Result<T, Failure>;

/// What `vault-tools` does.
#[doc(hidden)]
pub fn main() -> ExitCode {
    cancel::install();
    let mut out = Out::stdout();
    let ended = ToolsArgs::try_parse().map_err(Failure::Usage).and_then(|args| run(args, &mut out));
    let ended = ended.and_then(|outcome| match out.flush() {
        // A check that failed has failed, whether or not anybody reads why.
        Ok(()) | Err(Failure::PipeClosed) => Ok(outcome),
        Err(failure) => Err(failure),
    });
    let failure = match ended {
        Ok(Outcome::Done) => return ExitCode::SUCCESS,
        Ok(Outcome::Failed) => return ExitCode::from(1),
        Err(failure) => failure,
    };
    // What was said before it went wrong is still wanted; a second failure to write adds nothing.
    let _ = out.flush();
    match &failure {
        Failure::Error(error) => say("error", &error.to_string()),
        Failure::Usage(error) => drop(error.print()),
        Failure::PipeClosed => {}
    }
    ExitCode::from(failure.code())
}

fn run(args: ToolsArgs, out: &mut Out) -> Ended {
    let place = args.place;
    match args.command {
        Command::List(args) => tools::list(&args, out),
        Command::Schema(args) => tools::schema(&args, out),
        Command::Call(args) => call::call(&place, &args, out),
        Command::Plan(PlanCommand::Check(args)) => plan::check(&place, &args, out),
        Command::Plan(PlanCommand::Preview(args)) => plan::preview(&place, &args, out),
        Command::Plan(PlanCommand::Run(args)) => plan::run(&place, &args, out),
        Command::Undo(args) => undo::undo(&place, &args, out),
        Command::Redo(args) => undo::redo(&place, &args, out),
        Command::Macro(MacroCommand::Save(args)) => macros::save(&place, &args, out),
        Command::Macro(MacroCommand::List(args)) => macros::list(&place, &args, out),
        Command::Macro(MacroCommand::Show(args)) => macros::show(&place, &args, out),
        Command::Macro(MacroCommand::Run(args)) => macros::run(&place, &args, out),
        Command::Macro(MacroCommand::Rename(args)) => macros::rename(&place, &args, out),
        Command::Macro(MacroCommand::Delete(args)) => macros::delete(&place, &args, out),
        Command::Macro(MacroCommand::Export(args)) => macros::export(&place, &args, out),
        Command::Macro(MacroCommand::Import(args)) => macros::import(&place, &args, out),
        Command::Log(args) => log::log(&place, &args, out),
        Command::Prune(args) => undo::prune(&place, &args, out),
        Command::Forget(args) => forget::forget(&place, &args, out),
        Command::Adopt(args) => forget::adopt(&place, &args, out),
        Command::Completions(args) => manual::completions(args.shell, out),
        Command::Man => manual::page(out),
    }
}

/// A line for people on standard error. It is never data, so a closed standard error is no failure.
fn say(kind: &str, text: &str) {
    let _ = writeln!(io::stderr().lock(), "{kind}: {}", terminal::harmless(text));
}

/// Text for people on standard error, as it is.
fn show(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", text.trim_end());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes() {
        let code = |kind| Failure::from(Error::new(kind, "x")).code();
        assert_eq!(
            [ErrorKind::NotFound, ErrorKind::Denied, ErrorKind::Conflict, ErrorKind::Plan].map(code),
            [2, 3, 3, 2]
        );
        assert_eq!(Failure::from(io::Error::from(io::ErrorKind::BrokenPipe)).code(), 0);
        let help = ToolsArgs::try_parse_from(["vault-tools", "--help"]).unwrap_err();
        assert_eq!(Failure::Usage(help).code(), 0);
        let wrong = ToolsArgs::try_parse_from(["vault-tools", "nonsense"]).unwrap_err();
        assert_eq!(Failure::Usage(wrong).code(), 2);
    }
}
