//! The command `vault-agent`: its arguments, its sub-commands and its output.
//!
//! Data goes to standard output, everything else to standard error. A server on standard input and output writes only
//! the protocol to standard output.

mod runtime;
mod server_setup;
mod config;
mod login;
mod models;
mod type_ahead;
mod screen;
mod first_run;
mod quiet_terminal;
mod stop;
mod stream_json;
mod retry_wait;
mod turn;
mod answer_sources;
mod servers;
mod withheld_items;
mod insert;
mod ask;
mod plan;
mod sessions;
mod acp;
mod proxy;
mod chat;
mod demo;
mod args;
mod approve_code;
mod serve;
mod install;
mod setup;
mod doctor;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use vault_search::tools::{MacroCommand, log, redo, run_macro, undo};
use vault_search::{CliResult, Failure, Out, Outcome};

use args::{AgentArgs, Command, McpCommand};

use crate::mcp::SKILL;

/// Runs the program that the name of the file selects. `cargo install` builds one file per command; an archive has this
/// one file under all names, because the weights of the bundled model are then in the archive only once.
pub(crate) fn main() -> ExitCode {
    match vault_search::program().as_str() {
        "vault-search" => vault_search::search::search_main(),
        "vault-index" => vault_search::search::index_main(),
        "vault-tools" => vault_search::tools::main(),
        "vault-embed" => vault_search::search::embed_main(),
        _ => agent_main(),
    }
}

fn agent_main() -> ExitCode {
    let args = AgentArgs::try_parse_from(vault_search::arguments()).map_err(Failure::from);
    // Servers end on signals as their clients expect, and a conversation uses them to stop a turn. The other commands
    // finish writing first.
    let handles_signals = |args: &AgentArgs| match &args.command {
        Command::Mcp(args) => args.command.is_none(),
        Command::Acp(_) | Command::Proxy(_) | Command::Chat(_) | Command::Resume(_) => true,
        _ => false,
    };
    if !args.as_ref().is_ok_and(handles_signals) {
        vault_search::install_handler();
    }
    vault_search::install_logger();
    let mut out = Out::stdout().indented();
    let result = args.and_then(|args| run(args, &mut out));
    out.finish(result)
}

fn run(args: AgentArgs, out: &mut Out) -> CliResult {
    let vault = args.vault_args;
    let works_on_none = match &args.command {
        Command::Sessions(_) | Command::Approve(_) | Command::Models(_) | Command::Login(_) | Command::Logout(_) => {
            true
        }
        Command::Config(command) => !matches!(command, config::ConfigCommand::Check(_)),
        Command::Mcp(args) => match &args.command {
            None | Some(McpCommand::Install(_) | McpCommand::Doctor(_)) => false,
            Some(McpCommand::Uninstall(_) | McpCommand::Skill) => true,
            Some(McpCommand::Add(_) | McpCommand::List(_) | McpCommand::Remove(_)) => true,
        },
        Command::Demo(_) | Command::Completions(_) | Command::Man => true,
        _ => false,
    };
    if works_on_none {
        vault.refuse()?;
    }
    let reads_no_index = match &args.command {
        Command::Macro(command) => !matches!(command, MacroCommand::Run(_)),
        Command::Undo(_) | Command::Redo(_) | Command::Log(_) | Command::Config(_) => true,
        _ => false,
    };
    if reads_no_index {
        vault.refuse_index()?;
    }
    match args.command {
        Command::Mcp(args) => match &args.command {
            None => serve::serve(&vault, &args),
            Some(McpCommand::Install(args)) => install::install(&vault, args, out),
            Some(McpCommand::Uninstall(args)) => install::uninstall(args, out),
            Some(McpCommand::Doctor(args)) => doctor::doctor(&vault, args, out),
            Some(McpCommand::Add(args)) => servers::add(args, out),
            Some(McpCommand::List(args)) => servers::list(args, out),
            Some(McpCommand::Remove(args)) => servers::remove(args),
            Some(McpCommand::Skill) => {
                out.text(SKILL)?;
                Ok(Outcome::Done)
            }
        },
        Command::Ask(args) => ask::ask(&vault, &args, out),
        Command::Chat(args) => chat::chat(&vault, &args),
        Command::Resume(args) => chat::resume(&vault, &args),
        Command::Plan(args) => plan::plan(&vault, &args, out),
        Command::Sync(args) => vault_search::search::sync_vault(&vault, &args, out),
        Command::Setup(args) => setup::setup(&vault, &args, out),
        Command::Demo(args) => demo::demo(&args, out),
        Command::Doctor(args) => vault_search::search::doctor(&vault, &args, config::findings()?, out),
        Command::Sessions(args) => sessions::sessions(&args, out),
        Command::Macro(command) => run_macro(&vault, &command, out),
        Command::Undo(args) => undo(&vault, &args, out),
        Command::Redo(args) => redo(&vault, &args, out),
        Command::Log(args) => log(&vault, &args, out),
        Command::Acp(args) => acp::acp(&vault, &args, out),
        Command::Approve(args) => approve_code::approve(&args, out),
        Command::Proxy(args) => proxy::proxy(&vault, &args),
        Command::Models(args) => models::models(&args, out),
        Command::Config(command) => config::config(&vault, &command, out),
        Command::Login(args) => login::login(&args),
        Command::Logout(args) => login::logout(&args),
        Command::Completions(args) => vault_search::completions([AgentArgs::command()], args.shell, out),
        Command::Man => vault_search::pages([AgentArgs::command()], None, out),
    }
}
