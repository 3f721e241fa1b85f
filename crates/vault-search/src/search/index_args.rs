//! The sub-commands of `vault-index` and their options.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::{AdoptArgs, CompletionsArgs, ForgetArgs, JsonArgs, ListArgs};

use super::search_args::at_least_one;
use super::settings::{IndexedVaultArgs, SETTINGS_HELP};

const EXAMPLES: &str = "\
Examples:
  vault-index sync
  vault-index backlinks 'Garden/Soil.md'
  vault-index graph --format html -o graph.html
  vault-index watch &

Exit codes: 0 done, 1 a check that failed or an unresolved link, 2 error, 3 refused or in conflict \
with another process, 130 interrupted. The index is in your cache folder; notes are never written.";

/// Index a folder of Markdown notes, and query its links.
#[derive(Debug, Parser)]
#[command(
    name = "vault-index",
    version,
    after_long_help = format!("{EXAMPLES}\n\n{SETTINGS_HELP}"),
    max_term_width = 100,
    subcommand_required = true,
    args_override_self = true,
    arg_required_else_help = true
)]
pub(super) struct IndexArgs {
    #[command(flatten)]
    pub vault_args: IndexedVaultArgs,
    #[command(subcommand)]
    pub command: Command,
}

/// Examples with models that are built in.
const OF_HTTP: &str = match cfg!(feature = "http") {
    true => "\n  vault-index rebuild --model openai:text-embedding-3-small --base-url http://localhost:8080/v1",
    false => "",
};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Bring the index up to date
    #[command(
        after_long_help = "Keyword search works seconds after the start; vectors follow, newest notes first. An interrupted sync \
resumes where it stopped.\n\nExamples:\n  vault-index sync\n  vault-index sync --no-vectors --json\n  vault-index sync --vault ~/Notes --exclude 'Archive/**'"
    )]
    Sync(SyncArgs),
    /// Watch the vault, and keep the index up to date
    #[command(
        after_long_help = "One watcher per vault. Searches keep working and never wait for it. Ctrl-C and SIGTERM stop \
it once everything is committed.\n\nExamples:\n  vault-index watch\n  vault-index watch --jsonl --debounce 500\n  vault-index watch --print-service > ~/.config/systemd/user/vault-index.service"
    )]
    Watch(WatchArgs),
    /// Show what the index holds and what state it is in
    #[command(after_long_help = "Examples:\n  vault-index status\n  vault-index status --json")]
    Status(StatusArgs),
    /// Find what commonly goes wrong with a vault and its index, and what to do about it
    #[command(
        after_long_help = "It reads changed notes first, but embeds nothing. A problem is something that does not work; a notice is something \
that may be intended. With several --vault, it examines each. vault-agent mcp doctor checks assistants.\n\nExit codes: 0 no problem, 1 a problem.\n\nExamples:\n  vault-index doctor\n  vault-index doctor --vault ~/Notes --json"
    )]
    Doctor(ListArgs),
    /// List all indexes in your cache folder, and whether their vaults are still there
    #[command(after_long_help = "Examples:\n  vault-index list\n  vault-index list --jsonl")]
    List(ListArgs),
    /// List the links of a note
    #[command(
        after_long_help = "Examples:\n  vault-index links 'Garden/Soil.md'\n  vault-index links Soil --depth 2 --jsonl\n  vault-index links --all --jsonl"
    )]
    Links(LinksArgs),
    /// List the links to a note
    #[command(
        after_long_help = "Examples:\n  vault-index backlinks 'Garden/Soil.md'\n  vault-index backlinks Soil --depth 2 --json"
    )]
    Backlinks(BacklinksArgs),
    /// List where other notes name a note without linking it
    #[command(
        after_long_help = "A mention is the file name, the title or an alias of the note, as whole words, in any case. Links, \
code, tags, URLs and frontmatter do not count.\n\nExamples:\n  vault-index mentions 'Garden/Soil.md'\n  vault-index mentions Soil --jsonl"
    )]
    Mentions(MentionsArgs),
    /// List link targets that do not exist
    #[command(
        after_long_help = "Examples:\n  vault-index unresolved\n  vault-index unresolved --headings\n  vault-index unresolved --jsonl"
    )]
    Unresolved(UnresolvedArgs),
    /// List notes that no link leads to
    #[command(after_long_help = "Examples:\n  vault-index orphans\n  vault-index orphans --json")]
    Orphans(AskArgs),
    /// List notes without links to other notes
    #[command(after_long_help = "Examples:\n  vault-index deadends\n  vault-index deadends --json")]
    Deadends(AskArgs),
    /// List tags, and how many notes have them
    #[command(after_long_help = "Examples:\n  vault-index tags\n  vault-index tags --json")]
    Tags(AskArgs),
    /// Print the link graph as data or as a picture
    #[command(
        after_long_help = "The HTML picture is a single file that works offline.\n\nExamples:\n  vault-index graph --format html -o graph.html\n  vault-index graph --format dot | dot -Tsvg > graph.svg\n  vault-index graph --format json"
    )]
    Graph(GraphArgs),
    /// Show where a link leads, and which rule decided
    #[command(
        after_long_help = "Exits with 1 if the link is unresolved.\n\nExamples:\n  vault-index resolve Soil --from 'Garden/Index.md'\n  vault-index resolve '[[Soil#Clay]]' --from Home.md --json"
    )]
    Resolve(ResolveArgs),
    /// List embedding models, and the one that the index uses; add and remove models
    #[command(
        args_conflicts_with_subcommands = true,
        after_long_help = "Examples:\n  vault-index models\n  vault-index models --json\n  vault-index models add multilingual-e5-small"
    )]
    Models(ModelsArgs),
    /// Check that the index is sound and matches the vault; reads every file
    #[command(
        after_long_help = "Exits with 1 if it does not, or if a file or folder cannot be read. A text without a vector \
is not a fault.\n\nExamples:\n  vault-index check\n  vault-index check --repair"
    )]
    Check(CheckArgs),
    /// Rebuild the index, with another model if one is given
    #[command(
        after_long_help = format!("All notes are embedded again; searches use the old vectors until the new ones are ready.\n\nExamples:\n  vault-index rebuild\n  vault-index rebuild --model multilingual-e5-small{OF_HTTP}")
    )]
    Rebuild(RebuildArgs),
    /// Copy the index from a file to a database; only new texts are embedded
    #[cfg(feature = "postgres")]
    #[command(
        after_long_help = "The database gets the notes of this folder and the vectors of the file.\n\nExample:\n  vault-index push --index postgres://ann@db.example/notes"
    )]
    Push(CopyArgs),
    /// Copy the index from a database to a file; only new texts are embedded
    #[cfg(feature = "postgres")]
    #[command(
        after_long_help = "The file gets the notes of this folder and the vectors of the database.\n\nExample:\n  vault-index pull --index postgres://ann@db.example/notes"
    )]
    Pull(CopyArgs),
    /// Stop embedding in the background
    #[command(after_long_help = STOP_HELP)]
    Stop(StopArgs),
    /// Delete everything that is stored about a vault; the notes stay
    #[command(
        after_long_help = "Files next to the index that are not part of an index are kept, whatever their names.\n\nExamples:\n  vault-index forget\n  vault-index forget --vault ~/Old --yes"
    )]
    Forget(ForgetArgs),
    /// Take over everything stored about a vault that has moved
    #[command(after_long_help = "Example:\n  vault-index adopt ~/Documents/Notes --vault ~/Notes")]
    Adopt(AdoptArgs),
    /// Print shell completions for vault-index and vault-search
    #[command(
        after_long_help = "Examples:\n  source <(vault-index completions bash)\n  vault-index completions fish > ~/.config/fish/completions/vault-index.fish"
    )]
    Completions(CompletionsArgs),
    /// Print the manual pages, or write all of them to a folder
    #[command(after_long_help = "Examples:\n  vault-index man | man -l -\n  vault-index man ~/.local/share/man/man1")]
    Man(ManArgs),
}

const STOP_HELP: &str = "A search on a terminal starts a background process that embeds passages without vectors. The process ends when it is \
done, after 15 minutes, or when a sync, a watcher or a server wants to embed. To turn this off, set background = false \
in config.toml, or VAULT_BACKGROUND=0.

Examples:
  vault-index stop
  VAULT_BACKGROUND=0 vault-search 'apple trees'";

/// Arguments of `vault-index stop`.
#[derive(Debug, Args)]
pub(super) struct StopArgs {}

#[derive(Debug, Args)]
pub(super) struct SyncArgs {
    /// Stop after text, links and keywords
    #[arg(long)]
    pub no_vectors: bool,
    /// Read every note, even if its size and times are unchanged
    #[arg(long)]
    pub full: bool,
    /// Allow sending the notes to a remote model
    #[arg(long)]
    pub yes: bool,
    #[command(flatten)]
    pub output: ReportArgs,
}

#[derive(Debug, Args)]
pub(super) struct RebuildArgs {
    /// Allow a download of the model, and sending the notes to a remote one
    #[arg(long)]
    pub yes: bool,
    #[command(flatten)]
    pub output: ReportArgs,
}

/// Arguments of `vault-index push` and `pull`.
#[cfg(feature = "postgres")]
#[derive(Debug, Args)]
pub(super) struct CopyArgs {
    /// The index file [default: that of the vault in your cache folder]
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Allow sending new notes to a remote model
    #[arg(long)]
    pub yes: bool,
    #[command(flatten)]
    pub output: ReportArgs,
}

#[derive(Debug, Args)]
pub(super) struct StatusArgs {
    #[command(flatten)]
    pub output: ReportArgs,
}

/// Options for how findings about notes are printed.
#[derive(Debug, Args)]
pub(super) struct ReportArgs {
    /// List all warnings and skipped files instead of counting them
    #[arg(long, help_heading = "Output")]
    pub warnings: bool,
    #[command(flatten)]
    pub json: JsonArgs,
}

#[derive(Debug, Args)]
pub(super) struct WatchArgs {
    /// Wait until this many milliseconds have passed without a change [default: 200]
    #[arg(long, value_name = "MS")]
    pub debounce: Option<u64>,
    /// Print a service definition for systemd or launchd, and exit
    #[arg(long)]
    pub print_service: bool,
    /// Print one JSON event per line
    #[arg(long, help_heading = "Output")]
    pub jsonl: bool,
    /// Print the JSON schema of an event, and exit
    #[arg(long, help_heading = "Output", hide_short_help = true)]
    pub schema: bool,
}

/// Options of commands that list links or tags.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct AskArgs {
    /// Use the index as it is, without checking for changed files
    #[arg(long, help_heading = "Vault and index")]
    pub no_sync: bool,
    #[command(flatten)]
    pub output: ListArgs,
}

#[derive(Debug, Args)]
pub(super) struct UnresolvedArgs {
    /// Also list links to headings and blocks that their note does not have
    #[arg(long)]
    pub headings: bool,
    #[command(flatten)]
    pub ask: AskArgs,
}

#[derive(Debug, Args)]
pub(super) struct LinksArgs {
    /// The note: its path, its name, or a link to it
    #[arg(value_name = "NOTE", required_unless_present_any = ["all", "schema"])]
    pub note: Option<String>,
    /// List every link of the vault
    #[arg(long, conflicts_with_all = ["note", "depth"])]
    pub all: bool,
    /// Follow links up to this many steps
    #[arg(long, value_name = "N", default_value = "1", value_parser = at_least_one)]
    pub depth: usize,
    #[command(flatten)]
    pub ask: AskArgs,
}

#[derive(Debug, Args)]
pub(super) struct BacklinksArgs {
    /// The note: its path, its name, or a link to it
    #[arg(value_name = "NOTE", required_unless_present = "schema")]
    pub note: Option<String>,
    /// Follow links up to this many steps
    #[arg(long, value_name = "N", default_value = "1", value_parser = at_least_one)]
    pub depth: usize,
    #[command(flatten)]
    pub ask: AskArgs,
}

#[derive(Debug, Args)]
pub(super) struct MentionsArgs {
    /// The note: its path, its name, or a link to it
    #[arg(value_name = "NOTE", required_unless_present = "schema")]
    pub note: Option<String>,
    #[command(flatten)]
    pub ask: AskArgs,
}

#[derive(Debug, Args)]
pub(super) struct GraphArgs {
    /// The output format
    ///
    /// [default: json; required to print to a terminal]
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<GraphFormat>,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Use the index as it is, without checking for changed files
    #[arg(long, help_heading = "Vault and index")]
    pub no_sync: bool,
    /// Print the JSON schema of --format json, and exit
    #[arg(long, help_heading = "Output", hide_short_help = true)]
    pub schema: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum GraphFormat {
    /// Graphviz
    Dot,
    /// Nodes and edges as one JSON document
    Json,
    /// A picture for a browser, as a single file that works offline
    Html,
}

#[derive(Debug, Args)]
pub(super) struct ResolveArgs {
    /// The link: its path, or the whole link as in a note
    ///
    /// For example, [[path#heading|shown]] or [shown](path.md#heading).
    #[arg(value_name = "LINK", required_unless_present = "schema", allow_hyphen_values = true)]
    pub link: Option<String>,
    /// The note that contains the link [default: a note in the vault's root]
    #[arg(long, value_name = "NOTE")]
    pub from: Option<String>,
    /// Use the index as it is, without checking for changed files
    #[arg(long, help_heading = "Vault and index")]
    pub no_sync: bool,
    #[command(flatten)]
    pub output: JsonArgs,
}

#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// Repair the faults that are found
    #[arg(long)]
    pub repair: bool,
    #[command(flatten)]
    pub output: JsonArgs,
}

#[derive(Debug, Args)]
pub(super) struct ModelsArgs {
    #[command(subcommand)]
    pub command: Option<ModelsCommand>,
    #[command(flatten)]
    pub output: ListArgs,
}

#[derive(Debug, Subcommand)]
pub(super) enum ModelsCommand {
    /// Download a model, or take its files from a folder or an archive, and make it ready to use
    #[command(
        after_long_help = "It says the size, the address and the licence, and asks once. A download that was interrupted goes on where it stopped. \
Every file is checked against the digest that the hub lists. HTTPS_PROXY is used where it is set. An installed file that is damaged is replaced. \
Of a text, a model reads 256 tokens, and passages are made to fit.\n\nExit codes: 0 done, 2 error, 3 refused: \
without a terminal, --yes is needed, 130 interrupted.\n\nExamples:\n  vault-index models add multilingual-e5-small\n  vault-index models add multilingual-e5-small --hub https://mirror.example.org --yes\n  vault-index models add multilingual-e5-small --from ~/Downloads/multilingual-e5-small"
    )]
    Add(AddModelArgs),
    /// Delete a model that was added
    #[command(
        after_long_help = "An index with its vectors can then be searched by words only.\n\nExample:\n  vault-index models remove multilingual-e5-small"
    )]
    Remove(RemoveModelArgs),
}

#[derive(Debug, Args)]
pub(super) struct AddModelArgs {
    /// The model: a name of vault-index models
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Take the model's files from this folder or archive; nothing is downloaded
    ///
    /// An archive is a .tar or .tar.gz file.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["hub", "yes"])]
    pub from: Option<PathBuf>,
    /// The address of a mirror of the hub
    ///
    /// Default: the variable HF_ENDPOINT, else https://huggingface.co.
    #[arg(long, value_name = "URL")]
    pub hub: Option<String>,
    /// Download without asking
    #[arg(long)]
    pub yes: bool,
}

#[derive(Debug, Args)]
pub(super) struct RemoveModelArgs {
    /// The model
    #[arg(value_name = "NAME")]
    pub name: String,
}

#[derive(Debug, Args)]
pub(super) struct ManArgs {
    /// Write a page for every command to this folder
    #[arg(value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn accepted(line: &str) -> bool {
        let words = std::iter::once("vault-index").chain(line.split_whitespace());
        IndexArgs::try_parse_from(words).is_ok()
    }

    #[test]
    fn the_definition_is_sound() {
        IndexArgs::command().debug_assert();
    }

    #[test]
    fn every_command_and_option_of_the_contract() {
        for line in [
            "sync --no-vectors --json --full",
            "sync --vault v --index i --exclude a --exclude b",
            "--vault v sync",
            "watch --jsonl --debounce 200",
            "watch --print-service",
            "status --json",
            "status --warnings",
            "sync --warnings",
            "doctor",
            "doctor --vault v --json",
            "list",
            "list --jsonl",
            "mentions a.md --json",
            "mentions --schema",
            "links a.md --depth 3 --jsonl",
            "links --all --jsonl",
            "links --schema",
            "backlinks a.md --json",
            "unresolved --headings --json",
            "orphans --jsonl",
            "deadends",
            "tags --json",
            "graph --format html -o g.html",
            "graph --format dot",
            "resolve x --from a.md --json",
            "resolve -x",
            "models --json",
            "models add leaf-ir --hub https://x --yes",
            "models add leaf-ir --from dir",
            "models remove leaf-ir",
            "check --repair --json",
            "rebuild --model openai:x --base-url http://x --yes",
            "forget --yes",
            "adopt old",
            "completions zsh",
            "man",
            "man dir",
        ] {
            assert!(accepted(line), "{line}");
        }
        for line in [
            "",
            "links",
            "links a.md --all",
            "links --all --depth 2",
            "backlinks",
            "mentions",
            "list a",
            "resolve --from a.md",
            "models add",
            "models add x --from dir --yes",
            "models --json add x",
            "tags --json --jsonl",
            "graph --format png",
            "links a --depth 0",
            "adopt",
            "completions tcsh",
            "status --jsonl",
            "sync extra",
        ] {
            assert!(!accepted(line), "{line}");
        }
    }

    #[test]
    fn everything_has_a_help_text_and_every_command_examples() {
        fn check(command: &clap::Command) {
            let name = command.get_name();
            assert!(command.get_about().is_some(), "{name} has no description");
            assert!(
                command.get_after_long_help().is_some_and(|help| help.to_string().contains("Example")),
                "{name} has no examples"
            );
            for arg in command.get_arguments().filter(|arg| !matches!(arg.get_id().as_str(), "help" | "version")) {
                assert!(arg.get_help().is_some(), "{name} {} has no help", arg.get_id());
            }
            command.get_subcommands().for_each(check);
        }
        check(&IndexArgs::command());
        check(&super::super::search_args::SearchArgs::command());
    }
}
