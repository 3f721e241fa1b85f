//! The command `vault-agent`: arguments in, servers and answers out.
//!
//! Data goes to standard output, everything else to standard error. A server on standard output writes nothing there but
//! the protocol.

mod listening;
mod config;
mod login;
mod models;
mod call_line;
mod ask;
mod plan;
mod sessions;
mod chat;
mod proxy;
mod args;
mod approve;
mod serve;
mod install;
mod doctor;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use tokio::runtime::{Builder, Runtime};
use vault_cli::{CliResult, Failure, Out, Outcome};
use vault_tools::Error;
use vault_tools::cli::{log, redo, run_macro, undo};

use args::{AgentArgs, Command, McpArgs, McpCommand};

use crate::mcp::SKILL;
use crate::workspace::AT_ONCE;

pub(crate) fn main() -> ExitCode {
    let args = AgentArgs::try_parse().map_err(Failure::from);
    // A server ends by signals as its client expects, and a conversation stops a turn by them; the other commands finish
    // what they write first.
    let has_its_own = |command: &Command| {
        let is_server = matches!(command, Command::Mcp(McpArgs { command: None, .. }) | Command::Proxy(_));
        is_server || matches!(command, Command::Chat(_) | Command::Resume(_))
    };
    if !args.as_ref().is_ok_and(|args| has_its_own(&args.command)) {
        vault_cli::install_handler();
    }
    let mut out = Out::stdout().indented();
    let result = args.and_then(|args| run(args, &mut out));
    out.finish(result)
}

fn run(args: AgentArgs, out: &mut Out) -> CliResult {
    let vault = args.vault_args;
    match args.command {
        Command::Mcp(args) => match &args.command {
            None => serve::serve(&vault, &args),
            Some(McpCommand::Install(args)) => install::install(&vault, args, out),
            Some(McpCommand::Uninstall(args)) => install::uninstall(args, out),
            Some(McpCommand::Doctor(args)) => doctor::doctor(&vault, args, out),
            Some(McpCommand::Skill(_)) => {
                out.text(SKILL)?;
                Ok(Outcome::Done)
            }
        },
        Command::Ask(args) => ask::ask(&vault, &args, out),
        Command::Chat(args) => chat::chat(&vault, &args),
        Command::Resume(args) => chat::resume(&vault, &args),
        Command::Plan(args) => plan::plan(&vault, &args, out),
        Command::Sessions(args) => sessions::sessions(&args, out),
        Command::Macro(command) => run_macro(&vault, &command, out),
        Command::Undo(args) => undo(&vault, &args, out),
        Command::Redo(args) => redo(&vault, &args, out),
        Command::Log(args) => log(&vault, &args, out),
        Command::Approve(args) => approve::approve(&args, out),
        Command::Proxy(args) => proxy::proxy(&vault, &args),
        Command::Models(args) => models::models(&args, out),
        Command::Config(command) => config::config(&command, out),
        Command::Login(args) => login::login(&args),
        Command::Logout(args) => login::logout(&args),
        Command::Completions(args) => vault_cli::completions([AgentArgs::command()], args.shell, out),
        Command::Man => vault_cli::pages([AgentArgs::command()], None, out),
    }
}

/// The threads of a command that asks a model.
fn runtime() -> vault_tools::Result<Runtime> {
    let built = Builder::new_multi_thread().worker_threads(2).enable_all().max_blocking_threads(AT_ONCE).build();
    built.map_err(|error| Error::io("the threads of the program", &error))
}
