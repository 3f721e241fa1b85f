//! The assistants that can start the server, and their configuration files.

mod edit;
mod file;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde_json::{Map, Value, json};
use vault_index::dirs::{config_folder, home};
use vault_tools::{Error, ErrorKind, Result};

use edit::Format;
use file::ConfigFile;

/// The server's key in a client's configuration.
pub(crate) const NAME: &str = "vault";

/// An assistant that can start the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Client {
    ClaudeCode,
    ClaudeDesktop,
    Codex,
    Cursor,
    Vscode,
    Zed,
    Opencode,
}

/// The command that starts a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StartCommand {
    /// An absolute path, or a name that is searched for in `PATH`.
    pub program: PathBuf,
    pub args: Vec<String>,
    /// Environment variables besides those that the client passes on.
    pub env: BTreeMap<String, String>,
}

/// The entry under [`NAME`] in a client's configuration.
#[derive(Debug)]
pub(crate) struct ServerEntry {
    /// `None` if the client does not start the server as a program.
    pub start: Option<StartCommand>,
    /// Whether the entry is disabled in the client.
    pub is_off: bool,
}

impl ServerEntry {
    /// Whether it starts this program, from whichever folder.
    fn is_ours(&self) -> bool {
        self.start.as_ref().is_some_and(|start| {
            start.program.file_stem().is_some_and(|name| name == "vault-agent")
                && start.args.first().is_some_and(|arg| arg == "mcp")
        })
    }
}

/// How a configuration was changed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ConfigChange {
    /// It was written; the path of the backup, if there was a configuration before.
    Written(Option<PathBuf>),
    /// It already had the entry.
    Unchanged,
}

impl Client {
    /// All clients.
    pub fn all() -> &'static [Self] {
        Self::value_variants()
    }

    /// The product name.
    pub fn title(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::ClaudeDesktop => "Claude Desktop",
            Self::Codex => "Codex CLI",
            Self::Cursor => "Cursor",
            Self::Vscode => "VS Code",
            Self::Zed => "Zed",
            Self::Opencode => "opencode",
        }
    }

    /// The name on the command line.
    pub fn id(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// Whether the client shows the approval page, and hides the page's tool from the model.
    pub fn has_page(self) -> bool {
        self == Self::ClaudeDesktop
    }

    /// Returns the path of the client's user configuration.
    ///
    /// # Errors
    /// When the system names no folder for it.
    pub fn config_file(self) -> Result<PathBuf> {
        let unknown = || {
            Error::new(ErrorKind::Config, "the system names no home folder")
                .with_remedy("set HOME (on Windows: APPDATA)")
        };
        let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = || home().ok_or_else(unknown);
        // `Application Support` on macOS, `AppData\Roaming` on Windows, `.config` elsewhere.
        let programs = || config_folder().and_then(|own| own.parent().map(Path::to_owned)).ok_or_else(unknown);
        let dot_config = || match variable("XDG_CONFIG_HOME") {
            Some(folder) => Ok(folder),
            None => home().map(|home| home.join(".config")),
        };
        Ok(match self {
            Self::ClaudeCode => variable("CLAUDE_CONFIG_DIR").map_or_else(home, Ok)?.join(".claude.json"),
            Self::ClaudeDesktop => programs()?.join("Claude/claude_desktop_config.json"),
            Self::Codex => match variable("CODEX_HOME") {
                Some(folder) => folder.join("config.toml"),
                None => home()?.join(".codex/config.toml"),
            },
            Self::Cursor => home()?.join(".cursor/mcp.json"),
            Self::Vscode => programs()?.join("Code/User/mcp.json"),
            Self::Zed if cfg!(windows) => programs()?.join("Zed/settings.json"),
            Self::Zed => dot_config()?.join("zed/settings.json"),
            Self::Opencode => {
                let folder = dot_config()?.join("opencode");
                let with_comments = folder.join("opencode.jsonc");
                if with_comments.exists() { with_comments } else { folder.join("opencode.json") }
            }
        })
    }

    /// Adds the server to the client's configuration.
    ///
    /// # Errors
    /// A configuration that cannot be read, parsed or written; another server of the same name.
    pub fn install(self, start: &StartCommand) -> Result<ConfigChange> {
        let file = ConfigFile::read(&self.config_file()?)?;
        let value = self.parse(&file)?;
        let path = self.place(&value);
        let known = at(&value, &path).cloned().unwrap_or_default();
        if !known.is_null() && !self.read(&known).is_ours() {
            let message = format!("{} already has another server named `{NAME}`", self.title());
            return Err(Error::new(ErrorKind::Exists, message)
                .at(file.path().display())
                .with_remedy("rename or remove it there, then try again"));
        }
        let known = known.as_object().cloned().unwrap_or_default();
        let mut changes = self.entry(start);
        changes.retain(|key, value| known.get(key) != Some(value));
        if changes.is_empty() {
            return Ok(ConfigChange::Unchanged);
        }
        let text = self.format().set(file.text(), &path, &changes).map_err(|error| error.at(file.path().display()))?;
        file.replace(&text).map(ConfigChange::Written)
    }

    /// Removes the server from the client's configuration.
    ///
    /// # Errors
    /// As [`Client::install`].
    pub fn uninstall(self) -> Result<ConfigChange> {
        let file = ConfigFile::read(&self.config_file()?)?;
        let value = self.parse(&file)?;
        let path = self.place(&value);
        if !at(&value, &path).is_some_and(|entry| self.read(entry).is_ours()) {
            return Ok(ConfigChange::Unchanged);
        }
        let text = self.format().remove(file.text(), &path).map_err(|error| error.at(file.path().display()))?;
        file.replace(&text).map(ConfigChange::Written)
    }

    /// Returns the entry under [`NAME`], if there is one.
    ///
    /// # Errors
    /// A configuration that cannot be read or parsed.
    pub fn installed(self) -> Result<Option<ServerEntry>> {
        let value = self.parse(&ConfigFile::read(&self.config_file()?)?)?;
        Ok(at(&value, &self.place(&value)).map(|entry| self.read(entry)))
    }

    /// Returns the entry as it would be in an empty configuration.
    pub fn example(self, start: &StartCommand) -> String {
        let text = self.format().set("", &self.place(&Value::Null), &self.entry(start));
        text.expect("an empty configuration has a place for every key")
    }

    fn format(self) -> Format {
        if self == Self::Codex { Format::Toml } else { Format::Json }
    }

    fn parse(self, file: &ConfigFile) -> Result<Value> {
        self.format().parse(file.text()).map_err(|error| error.at(file.path().display()))
    }

    /// The path of keys to the server's entry.
    fn place(self, config: &Value) -> Vec<&'static str> {
        let mut keys = match self {
            Self::ClaudeCode | Self::ClaudeDesktop | Self::Cursor => vec!["mcpServers"],
            Self::Codex => vec!["mcp_servers"],
            Self::Vscode => vec!["servers"],
            Self::Zed => vec!["context_servers"],
            // Version 2 of opencode nests the servers one level deeper.
            Self::Opencode if config["mcp"]["servers"].is_object() => vec!["mcp", "servers"],
            Self::Opencode => vec!["mcp"],
        };
        keys.push(NAME);
        keys
    }

    fn entry(self, start: &StartCommand) -> Map<String, Value> {
        let program = start.program.to_string_lossy();
        let entry = match self {
            Self::Opencode => {
                let command: Vec<&str> =
                    std::iter::once(&*program).chain(start.args.iter().map(String::as_str)).collect();
                json!({ "type": "local", "command": command, "environment": start.env })
            }
            Self::ClaudeCode | Self::Cursor | Self::Vscode => {
                json!({ "type": "stdio", "command": program, "args": start.args, "env": start.env })
            }
            _ => json!({ "command": program, "args": start.args, "env": start.env }),
        };
        let Value::Object(mut entry) = entry else { unreachable!("every entry is an object") };
        if start.env.is_empty() {
            entry.retain(|key, _| key != "env" && key != "environment");
        }
        entry
    }

    fn read(self, entry: &Value) -> ServerEntry {
        let texts = |value: &Value| -> Vec<String> {
            value.as_array().into_iter().flatten().filter_map(|text| text.as_str().map(str::to_owned)).collect()
        };
        let (command, env) = match self {
            Self::Opencode => (texts(&entry["command"]), &entry["environment"]),
            _ => {
                let program = entry["command"].as_str().map(str::to_owned);
                (program.into_iter().chain(texts(&entry["args"])).collect(), &entry["env"])
            }
        };
        let mut command = command.into_iter();
        let env = env.as_object().into_iter().flatten();
        let start = command.next().map(|program| StartCommand {
            program: program.into(),
            args: command.collect(),
            env: env.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect(),
        });
        ServerEntry { start, is_off: entry["enabled"] == false || entry["disabled"] == true }
    }
}

fn at<'v>(value: &'v Value, path: &[&str]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, key| value.get(key))
}
