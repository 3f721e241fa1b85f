//! The commands `vault-search` and `vault-index`: arguments in, calls of the library, text or JSON out.
//!
//! Data goes to standard output, everything else to standard error. Nothing here decides what a note, a link or a score
//! is.

mod settings;

mod consent;
mod progress;

mod open;
mod background;

mod search_args;

mod answer;
mod excerpt;

mod hits;
mod notices;
mod editor;

mod one_query;

mod queries;

mod index_args;
mod records;

mod links;
mod models;
mod service;
mod sync;

mod graph;
mod status;
mod doctor;
mod list;
mod watch;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::{CliResult, Failure, JsonArgs, Out, VaultArgs};

pub use background::{embed_in_background, embed_main};
pub use doctor::{Finding, FindingKind, doctor};
use index_args::{Command, IndexArgs, ModelsArgs, ReportArgs, SyncArgs};
#[cfg(feature = "http")]
pub use models::{describe, hub};
use search_args::SearchArgs;
use settings::IndexedVaultArgs;

/// The main function of `vault-search`.
#[doc(hidden)]
pub fn search_main() -> ExitCode {
    if crate::program() == background::BACKGROUND {
        return embed_main();
    }
    crate::install_handler();
    crate::install_logger();
    let mut out = Out::stdout();
    let result = search_args::parse(crate::arguments()).and_then(|args| match &args.queries {
        Some(file) if !args.output.schema => queries::run(&args, file, &mut out),
        _ => one_query::run(&args, &mut out),
    });
    out.finish(result)
}

/// Runs `vault-index sync` for the vault that the arguments select.
///
/// # Errors
/// Errors of the index; several vaults.
pub fn sync_vault(vault_args: &VaultArgs, json: &JsonArgs, out: &mut Out) -> CliResult {
    let vault_args = IndexedVaultArgs { vault_args: vault_args.clone(), ..IndexedVaultArgs::default() };
    let output = ReportArgs { warnings: false, json: json.clone() };
    sync::sync(&vault_args, &SyncArgs { no_vectors: false, full: false, yes: false, output }, out)
}

/// The main function of `vault-index`.
#[doc(hidden)]
pub fn index_main() -> ExitCode {
    if crate::program() == background::BACKGROUND {
        return embed_main();
    }
    crate::install_handler();
    crate::install_logger();
    let mut out = Out::stdout();
    let result =
        IndexArgs::try_parse_from(crate::arguments()).map_err(Failure::from).and_then(|args| run_index(args, &mut out));
    out.finish(result)
}

fn run_index(args: IndexArgs, out: &mut Out) -> CliResult {
    let vault = args.vault_args;
    match args.command {
        Command::List(_) | Command::Completions(_) | Command::Man(_) => vault.refuse()?,
        // A model belongs to no vault.
        Command::Models(ModelsArgs { command: Some(_), .. }) => vault.refuse()?,
        Command::Stop(_) | Command::Models(_) | Command::Forget(_) | Command::Adopt(_) => vault.refuse_filling()?,
        Command::Status(_) | Command::Doctor(_) => vault.refuse_syncing()?,
        _ => {}
    }
    let manuals = || [IndexArgs::command(), SearchArgs::command()];
    match args.command {
        Command::Sync(args) => sync::sync(&vault, &args, out),
        Command::Rebuild(args) => sync::rebuild(&vault, &args, out),
        #[cfg(feature = "postgres")]
        Command::Push(args) => sync::copy(&vault, &args, true, out),
        #[cfg(feature = "postgres")]
        Command::Pull(args) => sync::copy(&vault, &args, false, out),
        Command::Watch(args) => watch::run(&vault, &args, out),
        Command::Stop(args) => sync::stop(&vault, &args, out),
        Command::Status(args) => status::status(&vault, &args.output, out),
        Command::Doctor(args) => doctor::run(&vault, &args, Vec::new(), out),
        Command::List(args) => list::run(&args, out),
        Command::Check(args) => status::check(&vault, &args, out),
        Command::Models(args) => match &args.command {
            None => status::models(&vault, &args.output, out),
            Some(command) => models::run(command, out),
        },
        Command::Links(args) => links::links(&vault, &args, out),
        Command::Backlinks(args) => links::backlinks(&vault, &args, out),
        Command::Mentions(args) => links::mentions(&vault, &args, out),
        Command::Unresolved(args) => links::unresolved(&vault, &args, out),
        Command::Orphans(args) => links::orphans(&vault, &args, out),
        Command::Deadends(args) => links::deadends(&vault, &args, out),
        Command::Tags(args) => links::tags(&vault, &args, out),
        Command::Resolve(args) => links::resolve(&vault, &args, out),
        Command::Graph(args) => graph::run(&vault, &args, out),
        Command::Forget(args) => crate::forget(&vault.vault_args, &args, out),
        Command::Adopt(args) => crate::adopt(&vault.vault_args, &args, out),
        Command::Completions(args) => crate::completions(manuals(), args.shell, out),
        Command::Man(args) => crate::pages(manuals(), args.dir.as_deref(), out),
    }
}
