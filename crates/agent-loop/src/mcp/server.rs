//! The description of an MCP server: how it is reached, how long it may be silent, and how far its hints are trusted.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// A value of fewer bytes is not treated as a secret.
const SHORTEST_SECRET: usize = 8;

/// An MCP server: a program to start, or a URL.
///
/// ```
/// use agent_loop::mcp::{Hints, McpServer};
///
/// let files = McpServer::stdio("files", "mcp-server-files").args(["--root", "/notes"]).hints(Hints::Trusted);
/// let search = McpServer::http("search", "https://example.org/mcp").bearer("a key");
/// # drop((files, search));
/// ```
#[derive(Clone)]
pub struct McpServer {
    pub(super) name: String,
    pub(super) endpoint: Endpoint,
    pub(super) start_limit: Duration,
    pub(super) time_limit: Duration,
    pub(super) hints: Hints,
}

#[derive(Clone)]
pub(super) enum Endpoint {
    /// A child process that speaks MCP over its standard input and output.
    Stdio { command: PathBuf, args: Vec<String>, env: Vec<(String, String)>, dir: Option<PathBuf> },
    /// Streamable HTTP.
    Http { url: String, headers: Vec<(String, String)> },
}

/// How a server's hint that a tool only reads is treated. Its hint that a tool destroys something always counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Hints {
    /// The hint is ignored: every tool counts as one that writes. Use it for servers that you do not trust.
    #[default]
    OnlyStricter,
    /// You vouch that the tools of the server only read: each counts as a read, unless the server declares otherwise.
    Vouched,
    /// The hint is trusted: such a tool runs without a question, in parallel with others, and again after a crash.
    Trusted,
}

impl McpServer {
    /// Describes a program that speaks MCP on its standard input and output. The names of its tools start with `name`.
    ///
    /// The program exits with the last clone of its [`McpTools`](super::McpTools), together with the processes that it
    /// started. It gets only the environment variables that programs need to run (`PATH`, `HOME`, the language and the
    /// like), so that it does not get your keys; [`env`](Self::env) adds others.
    pub fn stdio(name: impl Into<String>, command: impl Into<PathBuf>) -> Self {
        let endpoint = Endpoint::Stdio { command: command.into(), args: Vec::new(), env: Vec::new(), dir: None };
        Self::new(name.into(), endpoint)
    }

    /// Describes a streamable HTTP server at this URL. Redirects are not followed.
    pub fn http(name: impl Into<String>, url: impl Into<String>) -> Self {
        Self::new(name.into(), Endpoint::Http { url: url.into(), headers: Vec::new() })
    }

    fn new(name: String, endpoint: Endpoint) -> Self {
        let (start_limit, time_limit) = (Duration::from_secs(60), Duration::from_secs(60));
        Self { name, endpoint, start_limit, time_limit, hints: Hints::default() }
    }

    /// Adds arguments. No effect over HTTP.
    #[must_use]
    pub fn args(mut self, more: impl IntoIterator<Item = impl Into<String>>) -> Self {
        if let Endpoint::Stdio { args, .. } = &mut self.endpoint {
            args.extend(more.into_iter().map(Into::into));
        }
        self
    }

    /// Adds an environment variable. No effect over HTTP.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        if let Endpoint::Stdio { env, .. } = &mut self.endpoint {
            env.push((name.into(), value.into()));
        }
        self
    }

    /// Sets the working directory; by default that of this process. No effect over HTTP.
    #[must_use]
    pub fn dir(mut self, path: impl Into<PathBuf>) -> Self {
        if let Endpoint::Stdio { dir, .. } = &mut self.endpoint {
            *dir = Some(path.into());
        }
        self
    }

    /// Adds a header to every request. No effect over standard input and output.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        if let Endpoint::Http { headers, .. } = &mut self.endpoint {
            headers.push((name.into(), value.into()));
        }
        self
    }

    /// Sends this key as `Authorization: Bearer …`. No effect over standard input and output.
    #[must_use]
    pub fn bearer(self, key: impl fmt::Display) -> Self {
        self.header("authorization", format!("Bearer {key}"))
    }

    /// Sets how long the server may take to start and to list its tools; by default one minute, because some programs
    /// are downloaded first.
    #[must_use]
    pub fn start_limit(mut self, limit: Duration) -> Self {
        self.start_limit = limit;
        self
    }

    /// Sets how long the server may send nothing about a call; by default one minute. Progress restarts the time, and
    /// it is paused while a person answers a question of the server.
    #[must_use]
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    /// Sets how far the server's hints are trusted; by default only if they make the agent more careful.
    #[must_use]
    pub fn hints(mut self, hints: Hints) -> Self {
        self.hints = hints;
        self
    }

    /// Returns the secrets that the server gets, because its error messages may repeat them.
    pub(super) fn secrets(&self) -> Vec<&str> {
        const SECRET: [&str; 5] = ["KEY", "TOKEN", "SECRET", "PASS", "AUTH"];
        let secrets: Vec<&str> = match &self.endpoint {
            Endpoint::Stdio { env, .. } => {
                let named = |name: &str| SECRET.iter().any(|word| name.to_ascii_uppercase().contains(word));
                env.iter().filter(|(name, _)| named(name)).map(|(_, value)| value.as_str()).collect()
            }
            Endpoint::Http { url, headers } => {
                let query = url.split_once('?').map(|(_, query)| query);
                let values = headers.iter().map(|(_, value)| value.strip_prefix("Bearer ").unwrap_or(value));
                query.into_iter().chain(values).collect()
            }
        };
        // A shorter value is probably a word or a number.
        secrets.into_iter().filter(|secret| secret.len() >= SHORTEST_SECRET).collect()
    }

    /// Returns the server's name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Shows no arguments, environment, URL or headers, because any of them may contain a key.
impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.endpoint {
            Endpoint::Stdio { command, .. } => command.display().to_string(),
            Endpoint::Http { .. } => "http".into(),
        };
        let mut server = f.debug_struct("McpServer");
        server.field("name", &self.name).field("endpoint", &kind).field("hints", &self.hints).finish_non_exhaustive()
    }
}
