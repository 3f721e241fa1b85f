//! The description of an MCP server: how it is reached, how long it may be silent, how far its hints are believed.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// The fewest bytes of what is taken for a secret.
const SHORTEST_SECRET: usize = 8;

/// An MCP server: a program that is started, or an address.
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
    /// A child process, over its standard input and output.
    Stdio { command: PathBuf, args: Vec<String>, env: Vec<(String, String)>, dir: Option<PathBuf> },
    /// Streamable HTTP.
    Http { url: String, headers: Vec<(String, String)> },
}

/// What becomes of a server's own word that a tool only reads. Its word that a tool destroys something always counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Hints {
    /// It is not trusted: every tool counts as one that writes. For servers that nobody vouches for.
    #[default]
    OnlyStricter,
    /// Somebody vouches that its tools only read: each counts as one that does, but for those of which the server says
    /// otherwise.
    Vouched,
    /// It is trusted: such a tool runs without a question, beside others, and again after a crash.
    Trusted,
}

impl McpServer {
    /// A program that speaks MCP on its standard input and output. `name` is what its tools' names begin with.
    ///
    /// It ends with the last clone of its [`McpTools`](super::McpTools), together with what it has started itself. Of
    /// this process's environment it gets what programs need to run (`PATH`, `HOME`, the language and the like) and
    /// nothing else, so that keys stay here; [`env`](Self::env) adds to it.
    pub fn stdio(name: impl Into<String>, command: impl Into<PathBuf>) -> Self {
        let endpoint = Endpoint::Stdio { command: command.into(), args: Vec::new(), env: Vec::new(), dir: None };
        Self::new(name.into(), endpoint)
    }

    /// A server of streamable HTTP at this address. Redirects are not followed.
    pub fn http(name: impl Into<String>, url: impl Into<String>) -> Self {
        Self::new(name.into(), Endpoint::Http { url: url.into(), headers: Vec::new() })
    }

    fn new(name: String, endpoint: Endpoint) -> Self {
        let (start_limit, time_limit) = (Duration::from_secs(60), Duration::from_secs(60));
        Self { name, endpoint, start_limit, time_limit, hints: Hints::default() }
    }

    /// Adds arguments. Of no effect over HTTP.
    #[must_use]
    pub fn args(mut self, more: impl IntoIterator<Item = impl Into<String>>) -> Self {
        if let Endpoint::Stdio { args, .. } = &mut self.endpoint {
            args.extend(more.into_iter().map(Into::into));
        }
        self
    }

    /// Adds a variable of the environment. Of no effect over HTTP.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        if let Endpoint::Stdio { env, .. } = &mut self.endpoint {
            env.push((name.into(), value.into()));
        }
        self
    }

    /// Sets the folder it runs in; by default this process's own. Of no effect over HTTP.
    #[must_use]
    pub fn dir(mut self, path: impl Into<PathBuf>) -> Self {
        if let Endpoint::Stdio { dir, .. } = &mut self.endpoint {
            *dir = Some(path.into());
        }
        self
    }

    /// Adds a header to every request. Of no effect over standard input and output.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        if let Endpoint::Http { headers, .. } = &mut self.endpoint {
            headers.push((name.into(), value.into()));
        }
        self
    }

    /// Sends this key as `Authorization: Bearer …`. Of no effect over standard input and output.
    #[must_use]
    pub fn bearer(self, key: impl fmt::Display) -> Self {
        self.header("authorization", format!("Bearer {key}"))
    }

    /// How long it may take to start and to list its tools; by default a minute, since some programs are fetched first.
    #[must_use]
    pub fn start_limit(mut self, limit: Duration) -> Self {
        self.start_limit = limit;
        self
    }

    /// How long it may say nothing about a call; by default a minute. Progress begins it anew, and while a person
    /// answers a question of the server it does not run.
    #[must_use]
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    /// How far its hints are believed; by default only where they make us more careful.
    #[must_use]
    pub fn hints(mut self, hints: Hints) -> Self {
        self.hints = hints;
        self
    }

    /// Where a server is told a secret: what it says of a failure may repeat one.
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
        // A shorter one is a word, or a number.
        secrets.into_iter().filter(|secret| secret.len() >= SHORTEST_SECRET).collect()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Without arguments, environment, address and headers: any of them may hold a key.
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
