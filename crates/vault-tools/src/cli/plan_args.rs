//! What `vault-tools plan` and `vault-tools macro` can be told.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use vault_cli::ListArgs;

use super::args::ContextArgs;

#[derive(Debug, Subcommand)]
pub(super) enum PlanCommand {
    /// Check a plan without running anything; exit code 1 if it has faults
    #[command(after_help = "Examples:\n  vault-tools plan check plan.json\n  vault-tools plan check - < plan.json")]
    Check(PlanFileArgs),
    /// Show what a plan would do: its steps, loops expanded, and all diffs
    #[command(
        after_help = "Examples:\n  vault-tools plan preview plan.json --selection '- a\n- b'\n  vault-tools plan preview plan.json --json"
    )]
    Preview(PlanPreviewArgs),
    /// Show a plan, ask, and run it
    #[command(
        after_help = "What runs is exactly what was shown. Ctrl-C stops it; a step that is under way is put back, the steps before it \
stay, and undo takes them back.\n\n\
Examples:\n  vault-tools plan run plan.json\n  vault-tools plan run plan.json --yes --selection - < bullets.md\n  \
vault-tools plan run plan.json --digest 3f2a...@2026-03-02T15:04:09+01:00"
    )]
    Run(PlanRunArgs),
}

#[derive(Debug, Subcommand)]
pub(super) enum MacroCommand {
    /// Save a plan that ran to its end under a name
    #[command(after_help = "Without FILE and --run it is the plan that ran last.\n\n\
Examples:\n  vault-tools plan run plan.json && vault-tools macro save bullets\n  \
vault-tools macro save bullets --run 12 --description 'a note for each bullet'\n  \
vault-tools macro save bullets plan.json --untried")]
    Save(MacroSaveArgs),
    /// The macros there are
    #[command(after_help = "Example:\n  vault-tools macro list --json")]
    List(ListArgs),
    /// A macro with its plan
    #[command(after_help = "Example:\n  vault-tools macro show bullets")]
    Show(MacroNameArgs),
    /// Run a macro: shown, asked about and journalled as any plan
    #[command(
        after_help = "Example:\n  vault-tools macro run bullets --selection-from Inbox.md:3-9 --set folderName=Work"
    )]
    Run(MacroRunArgs),
    /// Give a macro another name
    #[command(after_help = "Example:\n  vault-tools macro rename bullets notes-from-bullets")]
    Rename(MacroRenameArgs),
    /// Delete a macro
    #[command(after_help = "Example:\n  vault-tools macro delete bullets")]
    Delete(MacroNameArgs),
    /// Print macros as JSON
    #[command(after_help = "Example:\n  vault-tools macro export > macros.json")]
    Export(MacroExportArgs),
    /// Take in exported macros; bad entries are reported, good ones kept
    #[command(after_help = "Example:\n  vault-tools macro import macros.json")]
    Import(MacroImportArgs),
}

#[derive(Debug, Args)]
pub(super) struct PlanFileArgs {
    /// The plan; `-` reads standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Print one JSON document
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(super) struct PlanPreviewArgs {
    #[command(flatten)]
    pub plan: PlanFileArgs,
    #[command(flatten)]
    pub context: ContextArgs,
}

/// How a plan or macro is run.
#[derive(Debug, Args)]
pub(super) struct RunningArgs {
    /// Run it without asking
    #[arg(long)]
    pub yes: bool,
    /// Run it without asking if its preview has this digest, given with its moment as plan preview prints it
    #[arg(long, value_name = "DIGEST")]
    pub digest: Option<String>,
    /// Show what it would do, and do nothing
    #[arg(long, conflicts_with_all = ["yes", "digest"])]
    pub dry_run: bool,
    /// Print an event a line as JSON
    #[arg(long, help_heading = "Output")]
    pub jsonl: bool,
    #[command(flatten)]
    pub context: ContextArgs,
}

#[derive(Debug, Args)]
pub(super) struct PlanRunArgs {
    /// The plan; `-` reads standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    #[command(flatten)]
    pub running: RunningArgs,
}

#[derive(Debug, Args)]
pub(super) struct MacroSaveArgs {
    /// What it is to be called
    #[arg(value_name = "NAME")]
    pub name: String,
    /// The plan, which must have run to its end in this vault; `-` reads standard input
    #[arg(value_name = "FILE", conflicts_with = "run")]
    pub file: Option<PathBuf>,
    /// The plan of a run, by its number in undo --list
    #[arg(long, value_name = "RUN")]
    pub run: Option<u64>,
    /// Save a plan that never ran to its end, too
    #[arg(long, requires = "file")]
    pub untried: bool,
    /// What it is for
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub description: String,
    /// What a parameter is unless it is given (repeatable)
    #[arg(long, value_name = "NAME=VALUE")]
    pub default: Vec<String>,
    /// Replace a macro of the same name
    #[arg(long)]
    pub force: bool,
}

#[derive(Debug, Args)]
pub(super) struct MacroNameArgs {
    /// The macro
    #[arg(value_name = "NAME")]
    pub name: String,
}

#[derive(Debug, Args)]
pub(super) struct MacroRunArgs {
    /// The macro
    #[arg(value_name = "NAME")]
    pub name: String,
    #[command(flatten)]
    pub running: RunningArgs,
}

#[derive(Debug, Args)]
pub(super) struct MacroRenameArgs {
    /// The macro
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Its new name
    #[arg(value_name = "NEW_NAME")]
    pub new_name: String,
}

#[derive(Debug, Args)]
pub(super) struct MacroExportArgs {
    /// The macros; all unless told
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
}

#[derive(Debug, Args)]
pub(super) struct MacroImportArgs {
    /// What was exported; `-` reads standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Replace macros of the same names
    #[arg(long)]
    pub force: bool,
    /// Print one JSON document
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}
