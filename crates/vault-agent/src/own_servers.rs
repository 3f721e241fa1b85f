//! The user's own MCP servers, in `servers.toml` of the configuration folder: a table for each, by its name, written by
//! `vault-agent mcp add`. `ask` and `chat` offer their tools, too.

use std::collections::BTreeMap;
use std::path::PathBuf;

use agent_loop::mcp::{Hints, McpOptions, McpServer, McpTools};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vault_index::settings_file::read_settings_file;
use vault_search::sanitize_line;
use vault_tools::{Error, ErrorKind, Result};

use crate::loop_error::of_loop;
use crate::settings::{change_file, config_file};

const NAME: &str = "servers.toml";

const REMEDY: &str = "vault-agent mcp add writes it, and vault-agent mcp list shows it";

/// A server: a program or a URL.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct OwnServer {
    /// The name, which begins the names of its tools.
    #[serde(skip_deserializing, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<PathBuf>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Variables of the program. Besides these it gets only those that programs need to run.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The URL of a streamable HTTP server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Whether the user vouches that its tools only read, except those that it declares to be writing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub reads: bool,
}

impl OwnServer {
    /// # Errors
    /// A server with neither or both of a program and a URL.
    fn server(&self) -> Result<McpServer> {
        let server = match (&self.command, &self.url) {
            (Some(command), None) => {
                let server = McpServer::stdio(&self.name, command).args(&self.args);
                self.env.iter().fold(server, |server, (name, value)| server.env(name, value))
            }
            (None, Some(url)) => {
                let server = McpServer::http(&self.name, url);
                self.headers.iter().fold(server, |server, (name, value)| server.header(name, value))
            }
            _ => {
                let message = format!("the server {} needs either command or url", self.name);
                return Err(Error::new(ErrorKind::Config, message).at(NAME).with_remedy(REMEDY));
            }
        };
        Ok(server.hints(if self.reads { Hints::Vouched } else { Hints::OnlyStricter }))
    }

    /// Returns the program with its arguments, or the URL, on one line.
    pub fn place(&self) -> String {
        match (&self.command, &self.url) {
            (Some(command), _) => [&[command.display().to_string()], &self.args[..]].concat().join(" "),
            (None, url) => url.clone().unwrap_or_default(),
        }
    }
}

/// Returns all servers, by name.
///
/// # Errors
/// A file that cannot be read or parsed.
pub(crate) fn own_servers() -> Result<Vec<OwnServer>> {
    let Ok(path) = config_file(NAME) else { return Ok(Vec::new()) };
    let Some(text) = read_settings_file(&path, REMEDY)? else { return Ok(Vec::new()) };
    let all: BTreeMap<String, OwnServer> = toml_edit::de::from_str(&text).map_err(|error| {
        let line = error.span().map(|span| format!("line {}: ", 1 + text[..span.start].matches('\n').count()));
        let message = format!("{}{}", line.unwrap_or_default(), error.message());
        Error::new(ErrorKind::Config, message).at(path.display()).with_remedy(REMEDY)
    })?;
    Ok(all.into_iter().map(|(name, server)| OwnServer { name, ..server }).collect())
}

/// Adds a server, or replaces the one with the same name.
///
/// # Errors
/// An invalid name; a server with neither or both of a program and a URL; a file that cannot be written.
pub(crate) fn add_server(server: &OwnServer) -> Result<PathBuf> {
    let is_name =
        |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    if !is_name(&server.name) || server.name.contains("__") {
        let message = format!("{:?} cannot be the name of a server", server.name);
        return Err(Error::new(ErrorKind::InvalidArguments, message).with_remedy("use letters, digits and -"));
    }
    server.server()?;
    let bad = |error: &dyn std::fmt::Display| Error::new(ErrorKind::InvalidArguments, error.to_string());
    let written = OwnServer { name: String::new(), ..server.clone() };
    let table = toml_edit::ser::to_document(&written).map_err(|error| bad(&error))?.into_table();
    change_file(config_file(NAME)?, |document| {
        document.insert(&server.name, toml_edit::Item::Table(table));
        Ok(())
    })
}

/// Removes a server.
///
/// # Errors
/// An unknown name; a file that cannot be written.
pub(crate) fn remove_server(name: &str) -> Result<PathBuf> {
    if !own_servers()?.iter().any(|server| server.name == name) {
        let message = format!("there is no server {name}");
        return Err(Error::new(ErrorKind::NotFound, message).with_remedy("vault-agent mcp list lists all servers"));
    }
    change_file(config_file(NAME)?, |document| {
        document.remove(name);
        Ok(())
    })
}

/// Starts servers and lists their tools, or returns `None` without servers. Servers that fail are left out, with a
/// message for each.
///
/// # Errors
/// A server with neither or both of a program and a URL.
pub(crate) async fn connect(servers: &[OwnServer]) -> Result<Option<(McpTools, Vec<String>)>> {
    if servers.is_empty() {
        return Ok(None);
    }
    let servers = servers.iter().map(OwnServer::server).collect::<Result<Vec<_>>>()?;
    let (tools, failures) = McpTools::connect(servers, McpOptions::default()).await.map_err(of_loop)?;
    let failures = failures.iter().map(|failure| format!("an MCP server: {}", sanitize_line(&failure.to_string())));
    Ok(Some((tools, failures.collect())))
}
