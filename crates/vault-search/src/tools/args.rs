//! The sub-commands of `vault-tools` and their options.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use vault_tools::Toolset;

use crate::{AdoptArgs, CompletionsArgs, ForgetArgs, ListArgs, VaultArgs};

use super::note_args::{NoteCommand, TagCommand};
use super::plan_args::{ContextArgs, MacroCommand, PlanCommand};
use super::shared_help::shared_help;

const EXAMPLES: &str = "\
Examples:
  vault-tools rename Compost 'Hot compost'
  vault-tools append Log '- pruned the roses'
  vault-tools undo
  vault-tools call read_note '{\"path\": \"Projects/Garden.md\"}'
  vault-tools plan run plan.json --selection-from Inbox.md:3-9

Exit codes: 0 done, 1 a check failed, 2 error, 3 refused or in conflict with a concurrent change, \
130 interrupted. Writes are shown for your approval; without a terminal they need --yes.

Settings: tools.toml in the user's configuration folder (~/.config/vault-index on Linux, \
~/Library/Application Support/vault-index on macOS, %APPDATA%\\vault-index on Windows) sets what may run: confirm_writes, \
allow_commands, allowed_commands, denied_commands, allow_delete, auto_approve_read_only, allowed_tools, denied_tools, \
allowed_paths, denied_paths, \
trash (\"vault\" for the vault's .trash, or \"system\"; default: the setting of Obsidian, else .trash); \
under [tools], NAME = \"always-ask\", \"never-ask\" or \"by-risk\"; under [vault.NAME], where NAME is the vault's folder name, \
additions to the four lists of tools and paths for that vault; under [[vault.NAME.permissions]], a tool and a folder whose notes it may \
change without asking. Paths are folders or globs; a denied path without a / is denied in every folder. \
No flag overrides a denial. NO_COLOR turns colors off.";

/// Change a folder of Markdown notes by commands, tools and plans, and undo the changes.
#[derive(Debug, Parser)]
#[command(
    name = "vault-tools",
    version,
    after_long_help = EXAMPLES,
    mut_subcommands(shared_help("vault-tools")),
    max_term_width = 100,
    subcommand_required = true,
    args_override_self = true,
    arg_required_else_help = true
)]
pub(super) struct ToolsArgs {
    #[command(flatten)]
    pub vault_args: VaultArgs,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    #[command(flatten)]
    Note(NoteCommand),
    /// Suggest missing links, and repair broken ones
    #[command(subcommand)]
    Links(LinksCommand),
    /// Check the vault: links, frontmatter, names, tags, attachments
    #[command(
        after_long_help = "Rules: broken-link, broken-heading, broken-block, frontmatter, unreadable, ambiguous-link, \
tag-case, unused-attachment, and okf (the Open Knowledge Format 0.2), which is off by default. A table [lint] in the vault's \
.vault.toml chooses the rules: off = [\"RULE\"], on = [\"okf\"] and ignore = [\"GLOB\"]. Exits with 1 if there are findings.\n\n\
Examples:\n  vault-tools lint --vault docs\n  vault-tools lint --rule broken-link --rule broken-heading --json"
    )]
    Lint(LintArgs),
    /// List the tools
    #[command(
        after_long_help = "Examples:\n  vault-tools list\n  vault-tools list --toolset actions --json\n  vault-tools list --tokens"
    )]
    List(ListToolsArgs),
    /// Print the JSON schemas of a tool's arguments and output, or of all tools
    #[command(after_long_help = "Examples:\n  vault-tools schema edit_note\n  vault-tools schema plan\n  \
vault-tools schema --toolset notes --for openai > tools.json")]
    Schema(SchemaArgs),
    /// Call a tool
    #[command(
        after_long_help = "A write is shown as a diff for you to approve: y yes, n no, e edit the arguments, p choose parts, w show the whole diff. \
p asks about each file or hunk, like git add -p; a rename and its link updates are one part.\n\n\
Examples:\n  vault-tools call search_notes '{\"query\": \"how to prune\"}'\n  \
echo '{\"path\": \"Log.md\", \"content\": \"- done\"}' | vault-tools call append_to_note - --yes\n  \
vault-tools call delete_note '{\"path\": \"Old.md\"}' --allow-delete"
    )]
    Call(CallArgs),
    /// Check, preview and run plans
    #[command(subcommand)]
    Plan(PlanCommand),
    /// Undo the last transaction, or the one given
    Undo(UndoArgs),
    /// Redo the last undone transaction
    Redo(RedoArgs),
    /// Save plans that have run, and run them again by name, without a model
    #[command(subcommand)]
    Macro(MacroCommand),
    /// Show past calls and their outcomes
    Log(LogArgs),
    /// Delete old transactions from the journal, and old lines from the log
    #[command(after_long_help = "Deleted transactions can no longer be undone, nor their plans saved as macros. \
Asks first if this would delete every transaction.\n\nExamples:\n  vault-tools prune --older-than 90\n  vault-tools prune --max-size 50")]
    Prune(PruneArgs),
    /// Start a new journal
    #[command(subcommand)]
    Journal(JournalCommand),
    /// Delete everything that is stored about a vault; the notes stay
    #[command(
        after_long_help = "This includes the index and the files of vault-agent. Nothing can be undone afterwards.\n\n\
Examples:\n  vault-tools forget\n  vault-tools forget --vault ~/Old --yes"
    )]
    Forget(ForgetArgs),
    /// Take over everything that is stored about a vault whose folder has moved
    #[command(after_long_help = "Example:\n  vault-tools adopt ~/Documents/Notes --vault ~/Notes")]
    Adopt(AdoptArgs),
    /// Print shell completions
    #[command(after_long_help = "Example:\n  source <(vault-tools completions bash)")]
    Completions(CompletionsArgs),
    /// Print the manual page
    #[command(after_long_help = "Example:\n  vault-tools man | man -l -")]
    Man,
}

impl Command {
    /// Whether `--index` makes a difference.
    pub fn uses_index(&self) -> bool {
        match self {
            Self::Note(NoteCommand::Append(_) | NoteCommand::Prop(_)) => false,
            Self::Note(NoteCommand::Tag(command)) => matches!(command, TagCommand::Rename(_)),
            Self::Plan(command) => !matches!(command, PlanCommand::Check(_)),
            Self::Macro(command) => matches!(command, MacroCommand::Run(_)),
            Self::Undo(_) | Self::Redo(_) | Self::Log(_) | Self::Prune(_) | Self::Journal(_) => false,
            _ => true,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(super) enum LinksCommand {
    /// List missing links, best first
    ///
    /// A link is missing where a note names another note without linking to it. For a single NOTE, notes that are close
    /// in meaning are listed too, even if it does not name them.
    #[command(after_long_help = "Examples:\n  vault-tools links suggest Compost\n  \
vault-tools links suggest Compost --plan > links.json\n  vault-tools plan run links.json")]
    Suggest(LinksArgs),
    /// List broken links, each with its probable targets
    ///
    /// If another program renamed the target, the repair is certain; repairs by similar names and headings are likely or
    /// possible.
    #[command(after_long_help = "Examples:\n  vault-tools links repair\n  \
vault-tools links repair --plan --least certain > repair.json\n  vault-tools plan run repair.json")]
    Repair(RepairArgs),
}

#[derive(Debug, Args)]
pub(super) struct LinksArgs {
    /// Only this note: its name, path or alias, as in a link
    pub note: Option<String>,
    /// Maximum number of links [default: 50; for a plan of repairs, all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub limit: Option<u32>,
    /// Print a plan with a step for each link, for `vault-tools plan run`
    #[arg(long, help_heading = "Output", conflicts_with_all = ["json", "jsonl"])]
    pub plan: bool,
    #[command(flatten)]
    pub output: ListArgs,
}

#[derive(Debug, Args)]
pub(super) struct RepairArgs {
    /// Minimum certainty to plan: certain, likely, possible
    #[arg(long, value_name = "LEVEL", default_value = "likely", requires = "plan", hide_possible_values = true)]
    pub least: LeastCertainty,
    #[command(flatten)]
    pub list: LinksArgs,
}

/// The minimum certainty of a planned repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum LeastCertainty {
    /// The file was renamed, and no other file is possible
    Certain,
    /// Also the best candidate, if no other is nearly as good
    Likely,
    /// Also similar names and headings
    Possible,
}

impl LeastCertainty {
    /// Whether a certainty, by its name, is at least this one.
    pub fn includes(self, certainty: &str) -> bool {
        match self {
            Self::Certain => certainty == "certain",
            Self::Likely => certainty != "possible",
            Self::Possible => true,
        }
    }
}

#[derive(Debug, Args)]
pub(super) struct LintArgs {
    /// Only this rule (repeatable)
    #[arg(long = "rule", value_name = "RULE")]
    pub rules: Vec<String>,
    #[command(flatten)]
    pub output: ListArgs,
}

#[derive(Debug, Subcommand)]
pub(super) enum JournalCommand {
    /// Move the journal aside, and start a new one
    ///
    /// For example, if another version of this program wrote it.
    #[command(after_long_help = "The notes stay. The transactions of the old journal can no longer be undone.\n\n\
Example:\n  vault-tools journal reset")]
    Reset(ResetArgs),
}

#[derive(Debug, Args)]
pub(super) struct ResetArgs {
    /// Skip confirmation
    #[arg(long)]
    pub yes: bool,
}

#[derive(Debug, Args)]
pub(super) struct ListToolsArgs {
    /// Only one toolset
    #[arg(long, value_name = "TOOLSET", value_parser = toolset_values())]
    pub toolset: Option<Toolset>,
    /// Print the cost of each tool in tokens when it is offered to a model
    #[arg(long)]
    pub tokens: bool,
    #[command(flatten)]
    pub output: ListArgs,
}

#[derive(Debug, Args)]
pub(super) struct SchemaArgs {
    /// The tool; `plan` prints the schema of plans
    pub tool: Option<String>,
    /// Print tools for this API
    ///
    /// Tool names contain no dots, and output schemas are left out.
    #[arg(long = "for", value_name = "PROVIDER")]
    pub provider: Option<Provider>,
    /// Only one toolset
    #[arg(long, value_name = "TOOLSET", value_parser = toolset_values(), conflicts_with = "tool")]
    pub toolset: Option<Toolset>,
}

/// The names of the toolsets, as the values of an option.
pub fn toolset_values() -> impl TypedValueParser<Value = Toolset> {
    let names = Toolset::ALL.map(|toolset| PossibleValue::new(toolset.name()).help(toolset.description()));
    PossibleValuesParser::new(names).map(|name| {
        let named = Toolset::ALL.into_iter().find(|toolset| toolset.name() == name);
        named.expect("clap has checked the name")
    })
}

/// A provider of models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Provider {
    /// OpenAI's Responses API
    Openai,
    /// Anthropic's Messages API
    Anthropic,
    /// Gemini's generateContent
    Gemini,
}

#[derive(Debug, Args)]
pub(super) struct CallArgs {
    /// The tool
    pub tool: String,
    /// Its arguments; `-` reads standard input
    #[arg(value_name = "JSON", default_value = "{}")]
    pub args: String,
    /// Skip confirmation; if a file changes meanwhile, run again on its new content
    #[arg(long)]
    pub yes: bool,
    /// Show what would be done, and do nothing
    #[arg(long, conflicts_with = "yes")]
    pub dry_run: bool,
    /// Print the output as JSON, with the number of the transaction
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Whether the call comes from a command such as `rename`. Then a call that changes nothing needs no approval.
    #[arg(skip)]
    pub typed: bool,
    #[command(flatten)]
    pub context: ContextArgs,
}

#[derive(Debug, Args)]
pub struct UndoArgs {
    /// The transaction's number [default: the last one that has not been undone]
    #[arg(value_name = "TRANSACTION")]
    pub transaction: Option<u64>,
    /// List the transactions, newest first
    #[arg(long, conflicts_with_all = ["transaction", "force", "yes", "dry_run"])]
    pub list: bool,
    /// Roll back a transaction interrupted by a crash (normally automatic)
    #[arg(long, conflicts_with_all = ["transaction", "list", "force", "dry_run", "keep"])]
    pub recover: bool,
    /// Keep the changes of an interrupted transaction; undo can revert them later
    #[arg(long, conflicts_with_all = ["transaction", "list", "force", "dry_run"])]
    pub keep: bool,
    #[command(flatten)]
    pub revert: RevertArgs,
    #[command(flatten)]
    pub output: ListArgs,
}

/// Options for how a transaction is undone or redone.
#[derive(Debug, Args)]
pub struct RevertArgs {
    /// Revert even if files have changed since
    #[arg(long)]
    pub force: bool,
    /// Skip confirmation
    #[arg(long)]
    pub yes: bool,
    /// Show what would be done, and do nothing
    #[arg(long, conflicts_with = "yes")]
    pub dry_run: bool,
}

#[derive(Debug, Args)]
pub struct RedoArgs {
    #[command(flatten)]
    pub revert: RevertArgs,
    /// Print the outcome as JSON
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct LogArgs {
    /// Summarize calls, failures, refusals and times for each tool
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
pub(super) struct PruneLimits {
    /// Delete entries older than this many days
    #[arg(long, value_name = "DAYS")]
    pub older_than: Option<u32>,
    /// Delete the oldest until journal and log are each at most this many MB
    #[arg(long, value_name = "MB")]
    pub max_size: Option<u64>,
}

#[derive(Debug, Args)]
pub(super) struct PruneArgs {
    #[command(flatten)]
    pub what: PruneLimits,
    /// Skip confirmation even if this deletes every transaction
    #[arg(long)]
    pub yes: bool,
}
