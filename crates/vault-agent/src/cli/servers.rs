//! `vault-agent mcp add`, `list` and `remove`: your own MCP servers, whose tools `ask` and `chat` offer.

use std::collections::BTreeMap;
use std::path::PathBuf;

use agent_loop::{Effect, Tools};
use clap::Args;
use vault_search::{CliResult, Failure, ListArgs, Out, Outcome, counted, note, padded, sanitize_line};

use tokio::runtime::Runtime;
use vault_tools::Result as ToolResult;

use super::runtime::runtime;
use super::screen::Screen;
use super::stop::Interrupts;
use crate::conversation::Conversation;
use crate::own_servers::{OwnServer, add_server, connect, own_servers, remove_server};

#[derive(Debug, Args)]
pub(super) struct AddArgs {
    /// The name of the server, which begins the names of its tools
    pub name: String,
    /// The program; its arguments follow `--`
    #[arg(required_unless_present = "url", conflicts_with_all = ["url", "header"])]
    pub command: Option<PathBuf>,
    /// Arguments of the program
    #[arg(last = true)]
    pub args: Vec<String>,
    /// The URL of a streamable HTTP server
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// Environment variable of the program (repeatable)
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair, conflicts_with = "url")]
    pub env: Vec<(String, String)>,
    /// HTTP header of the requests to it (repeatable)
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair, requires = "url")]
    pub header: Vec<(String, String)>,
    /// Vouch that its tools only read
    ///
    /// `ask` then offers them, too, and `chat` asks only at the first use of each. A tool that the server itself
    /// declares to be writing still asks each time, and is not offered by `ask`.
    #[arg(long)]
    pub reads: bool,
}

#[derive(Debug, Args)]
pub(super) struct RemoveArgs {
    /// The server's name
    pub name: String,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

pub(super) fn add(args: &AddArgs, out: &mut Out) -> CliResult {
    let map = |pairs: &[(String, String)]| pairs.iter().cloned().collect::<BTreeMap<_, _>>();
    let server = OwnServer {
        name: args.name.clone(),
        command: args.command.clone(),
        args: args.args.clone(),
        env: map(&args.env),
        url: args.url.clone(),
        headers: map(&args.header),
        reads: args.reads,
    };
    let file = add_server(&server)?;
    note(&format!("written to {}", file.display()));
    let runtime = runtime()?;
    let connected = runtime.block_on(connect(&[server]))?;
    if let Some((tools, failures)) = connected {
        failures.iter().for_each(|failure| note(failure));
        let specs = tools.specs();
        if failures.is_empty() {
            note(&format!("it has {}", counted(specs.len(), "tool")));
        }
        let width = specs.iter().map(|spec| spec.name.len()).max().unwrap_or(0);
        for spec in &specs {
            let offered = match spec.effect {
                Effect::Read => "ask, chat",
                Effect::Write => "chat, asks each time",
            };
            out.line(&format!("{}  {offered}", padded(&sanitize_line(&spec.name), width)))?;
        }
        runtime.block_on(tools.close());
    }
    Ok(Outcome::Done)
}

pub(super) fn list(args: &ListArgs, out: &mut Out) -> CliResult {
    if args.schema {
        return out.list_schema::<OwnServer>(args);
    }
    let mut servers = own_servers()?;
    // Values are hidden because they are often keys.
    servers.iter_mut().flat_map(|server| server.env.values_mut().chain(server.headers.values_mut())).for_each(
        |value| {
            "(hidden)".clone_into(value);
        },
    );
    out.list(args.format(), &servers, |out, servers| {
        let width = servers.iter().map(|server| server.name.len()).max().unwrap_or(0);
        servers.iter().try_for_each(|server| {
            let reads = if server.reads { "  only reads" } else { "" };
            out.line(&format!("{}  {}{reads}", padded(&server.name, width), sanitize_line(&server.place())))
        })
    })
}

pub(super) fn remove(args: &RemoveArgs) -> CliResult {
    let file = remove_server(&args.name).map_err(Failure::from)?;
    note(&format!("written to {}", file.display()));
    Ok(Outcome::Done)
}

/// Adds the tools of your own servers to a conversation. A read-only conversation gets only servers that you vouch for.
pub(super) fn add_servers(conversation: &mut Conversation, runtime: &Runtime, screen: &mut Screen) -> ToolResult<()> {
    let mut servers = own_servers()?;
    servers.retain(|server| server.reads || conversation.tools().offers_changes());
    if !servers.is_empty() {
        let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
        screen.draw(&[format!("starting {} · Ctrl-C continues without", names.join(", "))]);
    }
    let connected = runtime.block_on(async {
        let mut interrupts = Interrupts::listen();
        tokio::select! {
            connected = connect(&servers) => connected,
            () = interrupts.next() => Ok(None),
        }
    });
    screen.erase();
    if let Some((tools, failures)) = connected? {
        failures.iter().for_each(|failure| screen.warn(failure));
        conversation.set_servers(tools)?;
    }
    Ok(())
}
