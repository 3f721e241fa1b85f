//! What `vault-tools` can be told: its sub-commands and their options.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use vault_cli::{AdoptArgs, CompletionsArgs, ForgetArgs, ListArgs};

use super::plan_args::{MacroCommand, PlanCommand};
use crate::policy::Toolset;

const EXAMPLES: &str = "\
Examples:
  vault-tools list --toolset notes
  vault-tools call read_note '{\"path\": \"Projects/Garden.md\"}'
  vault-tools call rename_note '{\"path\": \"a.md\", \"new_path\": \"b/A.md\"}' --dry-run
  vault-tools plan run plan.json --selection-from Inbox.md:3-9
  vault-tools undo

Exit codes: 0 done, 1 a check that failed, 2 error, 3 refused or in conflict with what changed meanwhile. \
Writes are shown and asked about; without a terminal they need --yes.

Settings: what may run is set in tools.toml in the user's configuration folder (~/.config/vault-index on Linux, \
~/Library/Application Support/vault-index on macOS, %APPDATA%\\vault-index on Windows): confirm_writes, \
allow_commands, allow_delete, auto_approve_read_only, allowed_tools, denied_tools, allowed_paths, denied_paths, \
trash (\"vault\", the default: .trash in it, or \"system\"), and \
under [tools] NAME = \"always-ask\", \"never-ask\" or \"by-risk\". Paths are folders or globs; one that is denied and \
has no / in it is denied in every folder. What is denied stays denied, whatever a flag says. \
NO_COLOR set to anything turns colours off.";

/// Call tools on a folder of Markdown notes, run plans, and take back what was done.
#[derive(Debug, Parser)]
#[command(
    name = "vault-tools",
    version,
    after_help = EXAMPLES,
    max_term_width = 100,
    subcommand_required = true,
    args_override_self = true,
    arg_required_else_help = true
)]
pub(super) struct ToolsArgs {
    #[command(flatten)]
    pub place: PlaceArgs,
    #[command(subcommand)]
    pub command: Command,
}

/// Options that every command takes.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Vault and index")]
pub(super) struct PlaceArgs {
    /// The folder that holds the notes [env: VAULT_DIR]; default: the nearest one upward with an `.obsidian`, else the
    /// configured one, else the current folder
    #[arg(long, value_name = "DIR", global = true)]
    pub vault: Option<PathBuf>,
    /// The index file [env: VAULT_INDEX_FILE]; default: one per vault in the user's cache folder
    #[arg(long, value_name = "FILE", global = true)]
    pub index: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// The tools there are
    #[command(after_help = "Examples:\n  vault-tools list\n  vault-tools list --toolset actions --json")]
    List(ListToolsArgs),
    /// The JSON schema of a tool's arguments and answer, or of all tools
    #[command(
        after_help = "Examples:\n  vault-tools schema edit_note\n  vault-tools schema plan\n  vault-tools schema > tools.json"
    )]
    Schema(SchemaArgs),
    /// Call a tool
    #[command(
        after_help = "A write is shown as a diff and asked about: y yes, n no, e edit the arguments, w show the whole diff.\n\n\
Examples:\n  vault-tools call search_notes '{\"query\": \"how to prune\"}'\n  \
echo '{\"path\": \"Log.md\", \"content\": \"- done\"}' | vault-tools call append_to_note - --yes\n  \
vault-tools call delete_note '{\"path\": \"Old.md\"}' --allow-delete"
    )]
    Call(CallArgs),
    /// Check, preview and run plans
    #[command(subcommand)]
    Plan(PlanCommand),
    /// Take back the newest run, or the one named
    #[command(
        after_help = "Nothing is touched if a file changed since; --force takes it back all the same and says what is lost.\n\n\
--json, --jsonl and --schema are for --list, --json also for what was taken back.\n\n\
Examples:\n  vault-tools undo\n  vault-tools undo 12\n  vault-tools undo --list\n  vault-tools undo --yes --json"
    )]
    Undo(UndoArgs),
    /// Take back the newest undo
    #[command(after_help = "Example:\n  vault-tools redo")]
    Redo(RedoArgs),
    /// Save plans that ran under a name, and run them again without a model
    #[command(subcommand)]
    Macro(MacroCommand),
    /// What was called, and how it went
    #[command(after_help = "Examples:\n  vault-tools log -n 20\n  vault-tools log --stats\n  vault-tools log --jsonl")]
    Log(LogArgs),
    /// Drop old runs from the journal, and old lines from the log
    #[command(
        after_help = "Runs that are dropped can no longer be taken back, nor their plans saved as macros.\n\nExamples:\n  vault-tools prune --older-than 90\n  vault-tools prune --max-size 50"
    )]
    Prune(PruneArgs),
    /// Delete journal, log, plans and macros of a vault; the notes stay
    #[command(after_help = "Nothing can be taken back after that. The index is forgotten with vault-index forget.\n\n\
Examples:\n  vault-tools forget\n  vault-tools forget --vault ~/Old --yes")]
    Forget(ForgetArgs),
    /// Take over journal, log, plans and macros of a vault whose folder has moved
    #[command(after_help = "The index is taken over with vault-index adopt.\n\n\
Example:\n  vault-tools adopt ~/Documents/Notes --vault ~/Notes")]
    Adopt(AdoptArgs),
    /// Print shell completions
    #[command(after_help = "Example:\n  source <(vault-tools completions bash)")]
    Completions(CompletionsArgs),
    /// Print the manual page
    #[command(after_help = "Example:\n  vault-tools man | man -l -")]
    Man,
}

/// What tools and plans are told about an editor that is not there.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Context")]
pub(super) struct ContextArgs {
    /// The selected text; `-` reads standard input
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, conflicts_with = "selection_from")]
    pub selection: Option<String>,
    /// The selection as lines of a note, from 1
    #[arg(long, value_name = "FILE:FROM-TO")]
    pub selection_from: Option<String>,
    /// The note that has the focus
    #[arg(long, value_name = "NOTE")]
    pub active_file: Option<String>,
    /// The cursor in that note: line and column from 0, columns in UTF-16 units
    #[arg(long, value_name = "LINE:CH")]
    pub cursor: Option<String>,
    /// A parameter that the plan uses (repeatable)
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// Allow deleting; it is still asked about
    #[arg(long)]
    pub allow_delete: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum ToolsetName {
    Notes,
    Chat,
    Actions,
}

impl From<ToolsetName> for Toolset {
    fn from(name: ToolsetName) -> Self {
        match name {
            ToolsetName::Notes => Self::Notes,
            ToolsetName::Chat => Self::Chat,
            ToolsetName::Actions => Self::Actions,
        }
    }
}

#[derive(Debug, Args)]
pub(super) struct ListToolsArgs {
    /// Only the tools of one toolset
    #[arg(long, value_name = "TOOLSET")]
    pub toolset: Option<ToolsetName>,
    #[command(flatten)]
    pub output: ListArgs,
}

#[derive(Debug, Args)]
pub(super) struct SchemaArgs {
    /// The tool; `plan` for that of plans
    #[arg(value_name = "TOOL")]
    pub tool: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct CallArgs {
    /// The tool
    #[arg(value_name = "TOOL")]
    pub tool: String,
    /// Its arguments; `-` reads standard input
    #[arg(value_name = "JSON", default_value = "{}")]
    pub args: String,
    /// Do it without asking; if a file changed meanwhile, on what it holds by then
    #[arg(long)]
    pub yes: bool,
    /// Show what it would do, and do nothing
    #[arg(long, conflicts_with = "yes")]
    pub dry_run: bool,
    /// Print the answer as JSON, with the run that undo takes back
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    #[command(flatten)]
    pub context: ContextArgs,
}

#[derive(Debug, Args)]
pub(super) struct UndoArgs {
    /// The run's number; the newest that is not taken back yet unless told
    #[arg(value_name = "RUN")]
    pub run: Option<u64>,
    /// List the runs, newest first
    #[arg(long, conflicts_with_all = ["run", "force", "yes"])]
    pub list: bool,
    /// Roll back a transaction that a crash interrupted, where that was not done by itself
    #[arg(long, conflicts_with_all = ["run", "list", "force", "dry_run", "keep"])]
    pub recover: bool,
    /// Keep what an interrupted transaction did; it can be undone later
    #[arg(long, conflicts_with_all = ["run", "list", "force", "dry_run"])]
    pub keep: bool,
    /// Take it back although files changed since
    #[arg(long)]
    pub force: bool,
    /// Do it without asking
    #[arg(long)]
    pub yes: bool,
    /// Show what it would do, and do nothing
    #[arg(long, conflicts_with_all = ["yes", "list"])]
    pub dry_run: bool,
    #[command(flatten)]
    pub output: ListArgs,
}

#[derive(Debug, Args)]
pub(super) struct RedoArgs {
    /// Take it back although files changed since
    #[arg(long)]
    pub force: bool,
    /// Do it without asking
    #[arg(long)]
    pub yes: bool,
    /// Show what it would do, and do nothing
    #[arg(long, conflicts_with = "yes")]
    pub dry_run: bool,
    /// Print what was done as JSON
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(super) struct LogArgs {
    /// Sum up: calls, failures, refusals and times of each tool
    #[arg(long)]
    pub stats: bool,
    /// Only the newest N
    #[arg(short = 'n', long, value_name = "N", conflicts_with = "stats")]
    pub limit: Option<usize>,
    #[command(flatten)]
    pub output: ListArgs,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub(super) struct PruneArgs {
    /// Drop what is older than so many days
    #[arg(long, value_name = "DAYS")]
    pub older_than: Option<u32>,
    /// Drop the oldest until journal and log each take at most so many megabytes
    #[arg(long, value_name = "MB")]
    pub max_size: Option<u64>,
}
