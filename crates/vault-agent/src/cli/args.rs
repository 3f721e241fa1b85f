//! The sub-commands of `vault-agent` and their options.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use vault_search::VaultArgs;
use vault_search::tools::{LogArgs, MacroCommand, RedoArgs, UndoArgs, shared_help, toolset_values};
use vault_search::{CompletionsArgs, JsonArgs, ListArgs};
use vault_tools::Toolset;

use super::acp::AcpArgs;
use super::ask::AskArgs;
use super::chat::{ChatArgs, ResumeArgs};
use super::config::ConfigCommand;
use super::demo::DemoArgs;
use super::login::{LoginArgs, LogoutArgs};
use super::models::ModelsArgs;
use super::plan::PlanArgs;
use super::proxy::ProxyArgs;
use super::servers::{AddArgs, RemoveArgs};
use super::sessions::SessionsArgs;
use crate::clients::Client;
use crate::known_providers::ProviderChoice;

/// Ask a folder of Markdown notes, talk about it, and change it by plans that you approve; or serve it to assistants.
#[derive(Debug, Parser)]
#[command(
    name = "vault-agent",
    version,
    mut_subcommands(shared_help("vault-agent")),
    max_term_width = 100,
    subcommand_required = true,
    args_override_self = true,
    arg_required_else_help = true
)]
pub(super) struct AgentArgs {
    #[command(flatten)]
    pub vault_args: VaultArgs,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Answer a question from the notes, with the places that the answer is from
    #[command(
        after_long_help = "Without a model, the best matching passages are printed. Citations and quotes that do not exist are \
removed, and reported on standard error.\n\nExit codes: 0 answered, 1 nothing found, 2 error or an empty answer, 3 a limit was reached, 130 interrupted.\n\n\
Examples:\n  vault-agent ask \"how do I prune fruit trees?\"\n  vault-agent ask --note Projects/Shed.md \"what is missing here?\" \
--insert\n  vault-agent ask --json \"what did we decide about the fence?\" | jq -r .answer"
    )]
    Ask(AskArgs),
    /// Talk about the notes: search, read, and change them with your approval
    #[command(
        after_long_help = "Each change is shown first: y approves it, a approves it and stops asking about this tool, n denies it and takes your instructions instead, e edits the arguments, p leaves out parts, w shows the whole. /help lists the commands. Without a terminal, each line of \
standard input is a message, and calls that would ask are denied.\n\n\
Examples:\n  vault-agent chat\n  vault-agent chat --note Projects/Shed.md\n  vault-agent chat --model qwen3 --provider ollama\n  \
echo \"what did I write about compost?\" | vault-agent chat"
    )]
    Chat(ChatArgs),
    /// Continue a saved conversation
    ///
    /// If it waits for your decision, you are asked again.
    #[command(after_long_help = "Examples:\n  vault-agent resume\n  vault-agent resume 3f2a")]
    Resume(ResumeArgs),
    /// Have a model write a plan for an instruction, approve it, and run it
    #[command(
        after_long_help = "The plan is shown with every change before anything is done. p leaves out steps, e edits the plan. \
What runs is exactly what was shown; undo reverts it as a whole.\n\n\
Examples:\n  vault-agent plan \"a note in Projects for each bullet of the selection\" --selection-from Inbox.md:3-9\n  \
vault-agent plan \"tag all notes about the garden\" --dry-run"
    )]
    Plan(PlanArgs),
    /// Set up notes, assistant and model by three questions, and index the notes
    #[command(
        after_long_help = "It says what stays on this machine and what leaves it, and writes your settings only after the last \
answer. Each option answers a question; without a terminal, all are needed.\n\nExamples:\n  vault-agent setup\n  \
vault-agent setup --vault ~/Notes --assistant claude-code --provider none\n  \
vault-agent setup --vault ~/Notes --assistant none --provider ollama --model qwen3:8b"
    )]
    Setup(SetupArgs),
    /// Show what the programs do, on notes that come with them
    #[command(
        after_long_help = "It needs no notes, no key and no network. It unpacks a small vault into a temporary folder, runs the \
commands that it prints there, and deletes the folder. Nothing else on this machine is read or written.\n\n\
Examples:\n  vault-agent demo\n  vault-agent demo --keep"
    )]
    Demo(DemoArgs),
    /// Find what commonly goes wrong with notes, index and settings, and what to do about it
    #[command(
        after_long_help = "Same as vault-index doctor, and the settings of vault-agent. `vault-agent mcp doctor` checks assistants.\n\n\
Exit codes: 0 no problem, 1 a problem.\n\nExamples:\n  vault-agent doctor\n  vault-agent doctor --vault ~/Notes --json"
    )]
    Doctor(ListArgs),
    /// Bring the index up to date, vectors included, and wait for it
    #[command(
        after_long_help = "Same as vault-index sync. Questions and conversations also do this, in the background; run it once for a large vault.\n\n\
Examples:\n  vault-agent sync\n  vault-agent sync --vault ~/Notes"
    )]
    Sync(JsonArgs),
    /// List, search, show and delete saved conversations
    #[command(
        args_conflicts_with_subcommands = true,
        after_long_help = "Examples:\n  vault-agent sessions\n  vault-agent sessions search roses\n  vault-agent sessions show"
    )]
    Sessions(SessionsArgs),
    /// Save plans that have run, and run them again by name, without a model
    #[command(subcommand)]
    Macro(MacroCommand),
    /// Undo the last transaction, or the one given
    Undo(UndoArgs),
    /// Redo what was undone last
    Redo(RedoArgs),
    /// Show the calls that were made, and how they ended
    Log(LogArgs),
    /// Serve the notes to assistants over the Model Context Protocol, and set them up for it
    #[command(
        args_conflicts_with_subcommands = true,
        after_long_help = "Examples:\n  vault-agent mcp install claude-code --vault ~/Notes\n  vault-agent mcp doctor\n  \
vault-agent mcp --vault ~/Notes\n  vault-agent mcp --http 127.0.0.1:8571"
    )]
    Mcp(McpArgs),
    /// Serve an editor over the Agent Client Protocol, on standard input and output
    #[command(
        after_long_help = "The editor starts it; README.md has the configuration of Zed, Obsidian, Neovim and Emacs. The folder \
that is open in the editor chooses the vault: the nearest one upward with an `.obsidian`, else --vault, else the folder \
itself.\n\nExamples:\n  vault-agent acp\n  vault-agent acp --vault ~/Notes --provider ollama --model qwen3"
    )]
    Acp(AcpArgs),
    /// Show a change that an assistant asked for, and approve it
    #[command(
        after_long_help = "The change is shown as a diff, and asked about at the terminal: no option answers for you. \
The assistant makes it when it asks again.\n\nExample:\n  vault-agent approve K7Q2MX"
    )]
    Approve(ApproveArgs),
    /// Serve OpenAI's APIs over the model of the settings, to programs on this machine
    #[command(
        after_long_help = "It serves /v1/responses, /v1/chat/completions, /v1/models, and /v1/embeddings by the model of the \
vault's index. An address that others can reach requires --key-file.\n\nExamples:\n  \
vault-agent proxy --provider ollama --model qwen3:8b\n  vault-agent proxy --with-vault-tools --vault ~/Notes\n  \
curl http://127.0.0.1:8572/v1/models"
    )]
    Proxy(ProxyArgs),
    /// List the models of the providers that can be used
    #[command(
        after_long_help = "Providers that do not answer are reported on standard error.\n\nExit codes: 0 found, 1 none found, \
2 error.\n\nExamples:\n  vault-agent models\n  vault-agent models anthropic openrouter --json\n  \
vault-agent models http://192.168.1.5:8000/v1"
    )]
    Models(ModelsArgs),
    /// Show, change and check the settings
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Store the key of a provider in the system's keyring
    #[command(
        after_long_help = "The key is read from the terminal without being shown, or from standard input. It is stored nowhere \
else. A variable such as OPENAI_API_KEY overrides it.\n\nExamples:\n  vault-agent login anthropic\n  \
pass show openai | vault-agent login openai"
    )]
    Login(LoginArgs),
    /// Remove the key of a provider from the system's keyring
    #[command(after_long_help = "Example:\n  vault-agent logout anthropic")]
    Logout(LogoutArgs),
    /// Print the completions of a shell
    #[command(after_long_help = "Example:\n  source <(vault-agent completions bash)")]
    Completions(CompletionsArgs),
    /// Print the manual
    #[command(after_long_help = "Example:\n  vault-agent man | man -l -")]
    Man,
}

#[derive(Debug, Args)]
pub(super) struct McpArgs {
    #[command(subcommand)]
    pub command: Option<McpCommand>,
    #[command(flatten)]
    pub http: HttpArgs,
    #[command(flatten)]
    pub offer: OfferArgs,
}

#[derive(Debug, Subcommand)]
pub(super) enum McpCommand {
    /// Add the server to an assistant's configuration
    #[command(
        after_long_help = "The assistant then starts the server. A backup is kept beside the configuration; comments and everything else in it stay.\n\n\
Examples:\n  vault-agent mcp install codex --vault ~/Notes\n  vault-agent mcp install zed --print"
    )]
    Install(InstallArgs),
    /// Remove the server from an assistant's configuration
    #[command(after_long_help = "Example:\n  vault-agent mcp uninstall codex")]
    Uninstall(UninstallArgs),
    /// Start the server as an assistant would, and report problems
    #[command(
        after_long_help = "Without CLIENT, it checks every assistant that has the server in its configuration. If none \
has it, or with --vault or --http, it checks a server of the vault.\n\nExit codes: 0 all is well, 1 something is wrong.\n\n\
Examples:\n  vault-agent mcp doctor\n  vault-agent mcp doctor claude-code"
    )]
    Doctor(DoctorArgs),
    /// Add a server of your own; `ask` and `chat` then offer its tools
    #[command(
        after_long_help = "In `chat`, each call asks first; `ask` offers only tools that you vouch for (--reads). \
Tools that `tools.toml` denies stay denied. Of your environment, the program gets only what programs need to run and what \
--env names.\n\nExamples:\n  vault-agent mcp add calendar calendar-mcp -- --read-only\n  vault-agent mcp add search --url \
https://example.org/mcp --header 'Authorization=Bearer KEY' --reads"
    )]
    Add(AddArgs),
    /// List the servers of your own
    #[command(
        after_long_help = "Values of variables and headers are not shown.\n\nExample:\n  vault-agent mcp list --json"
    )]
    List(ListArgs),
    /// Remove a server of your own
    #[command(after_long_help = "Example:\n  vault-agent mcp remove calendar")]
    Remove(RemoveArgs),
    /// Print instructions for agents, as a skill or for an AGENTS.md
    #[command(after_long_help = "Example:\n  vault-agent mcp skill > AGENTS.md")]
    Skill,
}

#[derive(Debug, Args)]
pub(super) struct InstallArgs {
    /// The assistant: claude-code, claude-desktop, codex, cursor, vscode, zed or opencode
    #[arg(hide_possible_values = true)]
    pub client: Client,
    /// Print the entry, and write nothing
    #[arg(long)]
    pub print: bool,
    #[command(flatten)]
    pub offer: OfferArgs,
}

#[derive(Debug, Args)]
pub(super) struct UninstallArgs {
    /// The assistant: claude-code, claude-desktop, codex, cursor, vscode, zed or opencode
    #[arg(hide_possible_values = true)]
    pub client: Client,
    /// Print the current entry, and write nothing
    #[arg(long)]
    pub print: bool,
}

#[derive(Debug, Args)]
pub(super) struct DoctorArgs {
    /// The assistant: claude-code, claude-desktop, codex, cursor, vscode, zed or opencode
    #[arg(conflicts_with = "http", hide_possible_values = true)]
    pub client: Option<Client>,
    /// Start it over streamable HTTP at this address
    #[arg(long, value_name = "ADDR")]
    pub http: Option<SocketAddr>,
    #[command(flatten)]
    pub list: ListArgs,
}

/// Where the server listens.
#[derive(Debug, Clone, Args)]
pub(super) struct HttpArgs {
    /// Serve over streamable HTTP at this address
    ///
    /// Instead of on standard input and output. Port 0 picks a free port.
    #[arg(long, value_name = "ADDR")]
    pub http: Option<SocketAddr>,
    /// Over HTTP, require the key in this file
    ///
    /// Clients send it as `Authorization: Bearer KEY`.
    #[arg(long, value_name = "FILE", requires = "http")]
    pub key_file: Option<PathBuf>,
    /// Over HTTP, a name of the server besides localhost (repeatable)
    ///
    /// Requests that address the server by another name are refused.
    #[arg(long, value_name = "NAME", requires = "http")]
    pub host: Vec<String>,
}

/// The tools that the server offers, and how changes are approved.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct OfferArgs {
    /// Toolsets: notes, chat, actions, bulk, library
    ///
    /// Comma-separated. Plans and undo are offered too, and macros with the toolset library.
    #[arg(long, value_name = "NAME", value_parser = toolset_values(), value_delimiter = ',', default_value = "notes",
        hide_possible_values = true)]
    pub toolset: Vec<Toolset>,
    /// Offer only tools that read
    #[arg(long)]
    pub read_only: bool,
    /// Make changes that the settings allow without asking
    ///
    /// Changes that the settings always ask about are still asked about.
    #[arg(long, conflicts_with = "read_only")]
    pub allow_write: bool,
    /// Offer to delete notes, too, which asks first
    ///
    /// Without it, the setting allow_delete in tools.toml decides.
    #[arg(long, conflicts_with = "read_only")]
    pub allow_delete: bool,
    /// Count the client's own question as your approval
    ///
    /// Only for clients that always ask you before they call a tool that changes notes.
    #[arg(long, conflicts_with = "read_only")]
    pub trust_client: bool,
    /// Let the approval page in the client approve
    ///
    /// Only for clients that hide the page's tool from the model.
    #[arg(long, conflicts_with = "read_only")]
    pub approval_page: bool,
    /// Refuse changes that do not say how many notes and links they touch
    ///
    /// Every tool that writes then needs the argument `expect`; a change whose preview has other numbers is refused.
    #[arg(long, conflicts_with = "read_only")]
    pub require_expect: bool,
    /// Ask only through `vault-agent approve CODE`
    ///
    /// You then approve outside of the client. Use this for clients that answer questions by themselves, as some do
    /// when they run headless.
    #[arg(long, conflicts_with_all = ["read_only", "trust_client", "approval_page"])]
    pub ask_outside: bool,
}

impl OfferArgs {
    /// Converts the options back to command line arguments.
    pub fn to_args(&self) -> Vec<String> {
        let mut args = Vec::new();
        if !self.toolset.is_empty() && self.toolset != [Toolset::Notes] {
            let names: Vec<&str> = self.toolset.iter().map(|toolset| toolset.name()).collect();
            args.extend(["--toolset".to_owned(), names.join(",")]);
        }
        let flags = [
            (self.read_only, "--read-only"),
            (self.allow_write, "--allow-write"),
            (self.allow_delete, "--allow-delete"),
            (self.trust_client, "--trust-client"),
            (self.approval_page, "--approval-page"),
            (self.require_expect, "--require-expect"),
            (self.ask_outside, "--ask-outside"),
        ];
        args.extend(flags.iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| (*flag).to_owned()));
        args
    }
}

/// The answer that chooses nothing.
pub(super) const NONE: &str = "none";

#[derive(Debug, Args)]
pub(super) struct SetupArgs {
    /// The assistant or editor that gets access to the notes, or `none`
    ///
    /// claude-code, claude-desktop, codex, cursor, vscode, zed or opencode.
    #[arg(long, value_name = "NAME", value_parser = client_or_none)]
    pub assistant: Option<ClientChoice>,
    /// The provider of the model that answers questions, or `none`
    ///
    /// A name such as ollama or anthropic, a URL, or local:FILE.gguf. With `none`, nothing leaves this machine.
    #[arg(long, value_name = "PROVIDER", value_parser = provider_or_none)]
    pub provider: Option<String>,
    /// The model of this provider
    #[arg(long, value_name = "MODEL", requires = "provider")]
    pub model: Option<String>,
    /// Do not index the notes now
    #[arg(long)]
    pub no_sync: bool,
}

/// An assistant; `None` for none.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClientChoice(pub Option<Client>);

fn client_or_none(text: &str) -> Result<ClientChoice, String> {
    if text == NONE {
        return Ok(ClientChoice(None));
    }
    Client::from_str(text, true).map(|client| ClientChoice(Some(client))).map_err(|_| {
        let names: Vec<String> = Client::all().iter().map(|client| client.id()).collect();
        format!("it is {} or {NONE}", names.join(", "))
    })
}

fn provider_or_none(text: &str) -> Result<String, String> {
    if text != NONE {
        ProviderChoice::parse(text)?;
    }
    Ok(text.to_owned())
}

#[derive(Debug, Args)]
pub(super) struct ApproveArgs {
    /// The code that the assistant was given
    pub code: String,
}
