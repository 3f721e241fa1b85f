//! The sub-commands of `vault-agent` and their options.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use vault_cli::CompletionsArgs;
use vault_tools::Toolset;
use vault_tools::cli::VaultArgs;

/// Serve a folder of Markdown notes to assistants, and approve what they want to change.
#[derive(Debug, Parser)]
#[command(
    name = "vault-agent",
    version,
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
    /// Serve the notes to an assistant over the Model Context Protocol
    #[command(after_help = "Examples:\n  vault-agent mcp --vault ~/Notes\n  vault-agent mcp --http 127.0.0.1:8571")]
    Mcp(McpArgs),
    /// Show a change that an assistant asked for, and approve it
    #[command(
        after_help = "The change is shown as a diff, and asked about at the terminal: no option answers for you. \
The assistant makes it when it asks again.\n\nExample:\n  vault-agent approve K7Q2MX"
    )]
    Approve(ApproveArgs),
    /// Print the completions of a shell
    Completions(CompletionsArgs),
    /// Print the manual
    Man,
}

#[derive(Debug, Args)]
pub(super) struct McpArgs {
    #[command(flatten)]
    pub serve: ServeArgs,
}

/// What is served, and how.
#[derive(Debug, Clone, Args)]
pub(super) struct ServeArgs {
    /// Serve over streamable HTTP at this address instead of on standard input and output; port 0 takes a free one
    #[arg(long, value_name = "ADDR")]
    pub http: Option<SocketAddr>,
    /// Over HTTP, require the key in this file: `Authorization: Bearer KEY`
    #[arg(long, value_name = "FILE", requires = "http")]
    pub key_file: Option<PathBuf>,
    /// Over HTTP, a name by which the server may be addressed besides localhost (repeatable)
    #[arg(long, value_name = "NAME", requires = "http")]
    pub host: Vec<String>,
    /// The tools to offer besides plans and undo: notes, actions, bulk, chat (comma-separated)
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "notes")]
    pub toolset: Vec<Toolset>,
    /// Offer only tools that read
    #[arg(long)]
    pub read_only: bool,
    /// Make changes that the settings allow without asking; what the settings always ask about still asks
    #[arg(long, conflicts_with = "read_only")]
    pub allow_write: bool,
    /// Count the client's own question before a tool that changes notes as your yes: only for clients that always ask
    #[arg(long, conflicts_with = "read_only")]
    pub trust_client: bool,
    /// Let the approval page in the client approve: only for clients that hide the page's tool from the model
    #[arg(long, conflicts_with = "read_only")]
    pub approval_page: bool,
}

#[derive(Debug, Args)]
pub(super) struct ApproveArgs {
    /// The code that the assistant was given
    pub code: String,
}
