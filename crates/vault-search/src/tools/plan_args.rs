//! The options of `vault-tools plan` and `vault-tools macro`, and the context of tools and plans.

use std::path::PathBuf;

use crate::ListArgs;
use clap::{Args, Subcommand};

/// The state of an editor, given by options because no editor is running. Tools and plans ask for its selection, its
/// active note and its cursor.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Context")]
pub struct EditorArgs {
    /// The selected text; `-` reads standard input
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, conflicts_with = "selection_from")]
    pub selection: Option<String>,
    /// The selection as lines of a note, counted from 1
    #[arg(long, value_name = "FILE:FROM-TO")]
    pub selection_from: Option<String>,
    /// The active note
    #[arg(long, value_name = "NOTE")]
    pub active_file: Option<String>,
    /// The cursor in that note: line and column, counted from 0
    ///
    /// Columns are in UTF-16 units.
    #[arg(long, value_name = "LINE:CH")]
    pub cursor: Option<String>,
}

/// The context in which tools are called.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Context")]
pub struct ContextArgs {
    #[command(flatten)]
    pub editor: EditorArgs,
    /// Allow deleting; each deletion still needs approval
    #[arg(long)]
    pub allow_delete: bool,
    /// Whether the call comes from a command that deletes, such as `delete`. Then it needs approval, even if the
    /// settings let it run without.
    #[arg(skip)]
    pub asks_to_delete: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum PlanCommand {
    /// Check a plan without running anything; exit code 1 if it is invalid
    #[command(
        after_long_help = "Examples:\n  vault-tools plan check plan.json\n  vault-tools plan check - < plan.json"
    )]
    Check(PlanFileArgs),
    /// Show what a plan would do: its steps with loops expanded, and all diffs
    #[command(
        after_long_help = "Examples:\n  vault-tools plan preview plan.json --selection '- a\n- b'\n  vault-tools plan preview plan.json --json"
    )]
    Preview(PlanPreviewArgs),
    /// Show a plan, ask, and run it
    #[command(
        after_long_help = "At the prompt, e edits the plan, and p leaves out single calls, files or hunks; the plan is \
then shown again. Exactly the plan that was shown runs. Ctrl-C stops it: the current step is rolled back; the steps before \
it stay, and undo reverts them.\n\n\
Examples:\n  vault-tools plan run plan.json\n  vault-tools plan run plan.json --yes --selection - < bullets.md\n  \
vault-tools plan run plan.json --digest 3f2a...@2026-03-02T15:04:09+01:00"
    )]
    Run(PlanRunArgs),
}

#[derive(Debug, Subcommand)]
pub enum MacroCommand {
    /// Save a plan that has run successfully under a name
    Save(MacroSaveArgs),
    /// List the macros
    List(MacroListArgs),
    /// Print a macro with its plan
    Show(MacroNameArgs),
    /// Run a macro; it is shown, approved and recorded like any plan
    Run(MacroRunArgs),
    /// Rename a macro
    Rename(MacroRenameArgs),
    /// Delete a macro
    Delete(MacroDeleteArgs),
    /// Print macros as JSON
    Export(MacroExportArgs),
    /// Import macros; invalid entries are reported and left out
    Import(MacroImportArgs),
}

#[derive(Debug, Args)]
pub(super) struct PlanFileArgs {
    /// The plan; `-` reads standard input
    pub file: PathBuf,
    /// Print one JSON document
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(super) struct PlanPreviewArgs {
    #[command(flatten)]
    pub plan: PlanFileArgs,
    /// A parameter that the plan uses (repeatable)
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    #[command(flatten)]
    pub context: ContextArgs,
}

/// Options for how a plan or macro is run.
#[derive(Debug, Default, Args)]
pub struct ExecutionArgs {
    /// Skip confirmation
    #[arg(long)]
    pub yes: bool,
    /// Skip confirmation if the preview has this digest
    #[arg(long, value_name = "DIGEST")]
    pub digest: Option<String>,
    /// Show what would be done, and do nothing
    #[arg(long, conflicts_with_all = ["yes", "digest"])]
    pub dry_run: bool,
    /// Print one JSON event per line
    #[arg(long, help_heading = "Output")]
    pub jsonl: bool,
    /// A parameter that the plan uses (repeatable)
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    #[command(flatten)]
    pub context: ContextArgs,
}

#[derive(Debug, Args)]
pub(super) struct PlanRunArgs {
    /// The plan; `-` reads standard input
    pub file: PathBuf,
    #[command(flatten)]
    pub running: ExecutionArgs,
}

#[derive(Debug, Args)]
pub struct MacroSaveArgs {
    /// The macro's name
    pub name: String,
    /// The plan, which must have run successfully in this vault; `-` reads standard input
    #[arg(value_name = "FILE", conflicts_with = "run")]
    pub file: Option<PathBuf>,
    /// The plan of a transaction, by its number in undo --list
    #[arg(long, value_name = "TRANSACTION")]
    pub run: Option<u64>,
    /// Save the plan even if it has never run successfully
    #[arg(long, requires = "file")]
    pub untried: bool,
    /// A description of the macro
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub description: String,
    /// A parameter's default value (repeatable)
    #[arg(long, value_name = "NAME=VALUE")]
    pub default: Vec<String>,
    /// Replace a macro of the same name
    #[arg(long)]
    pub force: bool,
}

#[derive(Debug, Args)]
pub struct MacroNameArgs {
    /// The macro
    pub name: String,
}

#[derive(Debug, Args)]
pub struct MacroListArgs {
    /// List the macros that come with the program
    ///
    /// Run them by name, unless a macro of yours has the same name.
    #[arg(long)]
    pub shipped: bool,
    #[command(flatten)]
    pub output: ListArgs,
}

#[derive(Debug, Args)]
pub struct MacroDeleteArgs {
    /// The macro
    pub name: String,
    /// Skip confirmation
    #[arg(long)]
    pub yes: bool,
}

#[derive(Debug, Args)]
pub struct MacroRunArgs {
    /// The macro
    pub name: String,
    #[command(flatten)]
    pub running: ExecutionArgs,
}

#[derive(Debug, Args)]
pub struct MacroRenameArgs {
    /// The macro
    pub name: String,
    /// Its new name
    pub new_name: String,
}

#[derive(Debug, Args)]
pub struct MacroExportArgs {
    /// The macros [default: all]
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
}

#[derive(Debug, Args)]
pub struct MacroImportArgs {
    /// The exported file; `-` reads standard input
    pub file: PathBuf,
    /// Replace macros of the same names
    #[arg(long)]
    pub force: bool,
    /// Print one JSON document
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}
