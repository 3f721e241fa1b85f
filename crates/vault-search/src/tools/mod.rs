//! The command `vault-tools`: arguments in, calls of the library, text or JSON out.
//!
//! Data goes to standard output, everything else to standard error. This module does not decide what may run: the
//! policy does, and if it requires approval, the person at the terminal.

// A doc comment on an argument becomes its help text, so some fields have none.
#![allow(missing_docs)]

mod json_unique_keys;
mod options;
mod plan_args;
mod note_args;
mod shared_help;

mod args;

mod settings;

mod context;

mod preview_text;
mod plan_text;
mod approve;
mod choose;
mod records;

mod call;
mod plan;

mod note_name;
mod note_words;
mod note_commands;
mod links;

mod moved;
mod log;
mod macros;
mod list_tools;
mod undo;
mod complete_notes;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use vault_tools::{Error, ErrorKind};

use crate::{CliResult, Failure, Out, Outcome};

pub use approve::{
    PartChoice, ReadLine, Reply, TerminalPrompt, TerminalQuestion, ask_about, declined, edited, page, show, tick,
};
use args::{Command, JournalCommand, ToolsArgs};
pub use args::{LogArgs, RedoArgs, UndoArgs, toolset_values};
pub use choose::choose_hunks;
pub use context::{editor, with_toolbox};
pub use log::log;
pub use plan::run_value as run_plan;
use plan_args::PlanCommand;
pub use plan_args::{EditorArgs, ExecutionArgs, MacroCommand, MacroSaveArgs};
pub use plan_text::{texts_for_client, texts_of_change};
pub use preview_text::{cut, cut_beside, texts_of};
pub use settings::{OpenedVault, check_settings, open_with_settings, policy_of};
pub use shared_help::shared_help;
pub use undo::{redo, undo};

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let text = options::named(&error.one_line());
        match error.kind() {
            ErrorKind::Denied | ErrorKind::Conflict | ErrorKind::Busy | ErrorKind::Exists | ErrorKind::Refused => {
                Self::Refused(text)
            }
            ErrorKind::Cancelled => Self::Interrupted(text),
            _ => Self::Error(text),
        }
    }
}

/// The main function of `vault-tools`.
#[doc(hidden)]
pub fn main() -> ExitCode {
    let mut words = crate::arguments().skip(1);
    if words.next().is_some_and(|word| word == complete_notes::COMMAND) {
        let mut out = Out::stdout();
        let printed = complete_notes::names(words).iter().try_for_each(|name| out.line(name));
        return out.finish(printed.map(|()| Outcome::Done).map_err(Failure::from));
    }
    crate::install_handler();
    crate::install_logger();
    let mut out = Out::stdout().indented();
    let result =
        ToolsArgs::try_parse_from(crate::arguments()).map_err(Failure::from).and_then(|args| run(args, &mut out));
    out.finish(result)
}

fn run(args: ToolsArgs, out: &mut Out) -> CliResult {
    let vault = args.vault_args;
    if matches!(args.command, Command::List(_) | Command::Schema(_) | Command::Completions(_) | Command::Man) {
        vault.refuse()?;
    }
    if !args.command.uses_index() {
        vault.refuse_index()?;
    }
    match args.command {
        Command::Note(command) => note_commands::run(&vault, &command, out),
        Command::Links(command) => links::links(&vault, &command, out),
        Command::Lint(args) => links::lint(&vault, &args, out),
        Command::List(args) => list_tools::list(&args, out),
        Command::Schema(args) => list_tools::schema(&args, out),
        Command::Call(args) => call::call(&vault, &args, out),
        Command::Plan(PlanCommand::Check(args)) => plan::check(&vault, &args, out),
        Command::Plan(PlanCommand::Preview(args)) => plan::preview(&vault, &args, out),
        Command::Plan(PlanCommand::Run(args)) => plan::run(&vault, &args, out),
        Command::Undo(args) => undo::undo(&vault, &args, out),
        Command::Redo(args) => undo::redo(&vault, &args, out),
        Command::Macro(command) => run_macro(&vault, &command, out),
        Command::Log(args) => log::log(&vault, &args, out),
        Command::Prune(args) => undo::prune(&vault, &args, out),
        Command::Journal(JournalCommand::Reset(args)) => undo::reset_journal(&vault, &args, out),
        Command::Forget(args) => crate::forget(&vault, &args, out),
        Command::Adopt(args) => crate::adopt(&vault, &args, out),
        Command::Completions(args) => {
            crate::completions([ToolsArgs::command()], args.shell, out)?;
            out.text(complete_notes::script(args.shell))?;
            Ok(Outcome::Done)
        }
        Command::Man => crate::pages([ToolsArgs::command()], None, out),
    }
}

/// Runs a sub-command of `macro`.
///
/// # Errors
/// The errors of the sub-command.
pub fn run_macro(vault: &crate::VaultArgs, command: &MacroCommand, out: &mut Out) -> CliResult {
    match command {
        MacroCommand::Save(args) => macros::save(vault, args, out),
        MacroCommand::List(args) => macros::list(vault, args, out),
        MacroCommand::Show(args) => macros::show(vault, args, out),
        MacroCommand::Run(args) => macros::run(vault, args, out),
        MacroCommand::Rename(args) => macros::rename(vault, args, out),
        MacroCommand::Delete(args) => macros::delete(vault, args, out),
        MacroCommand::Export(args) => macros::export(vault, args, out),
        MacroCommand::Import(args) => macros::import(vault, args, out),
    }
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
    }
}
