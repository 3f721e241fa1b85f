//! The tools of several servers as the tools of an agent: listed, named and called, with reconnection if a server
//! exited.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use futures_util::future::join_all;
use rmcp::model;
use serde_json::{Map, Value};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::error::{Error, ErrorKind, Result};
use crate::message::{CallId, ToolCall};
use crate::models::{Http, HttpOptions};
use crate::tool::{BoxFuture, Effect, ToolError, ToolOutput, ToolSpec, Tools};

use super::call::ServerCall;
use super::clean::clean;
use super::connection::Connection;
use super::handler::Handler;
use super::input_schema::portable;
use super::names::unique_names;
use super::question::Asker;
use super::server::{Endpoint, Hints, McpServer};

/// How long a call may take in total. Progress and questions extend the time limit of a server, but not this one.
const LONGEST_CALL: Duration = Duration::from_secs(60 * 60);

/// A function that receives the progress of calls.
pub type OnProgress = Arc<dyn Fn(McpProgress) + Send + Sync>;

/// The progress of a call.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct McpProgress {
    /// The call, by its id in the run's events.
    pub call: CallId,
    /// The completed amount, in the server's own unit.
    pub done: f64,
    /// The total amount, if the server knows it.
    pub total: Option<f64>,
    /// The server's message, without control characters.
    pub message: Option<String>,
}

/// The options of [`McpTools::connect`]: receivers of questions and progress, and connection settings.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct McpOptions {
    /// Shows the questions of servers to a person. By default there is no asker: servers are told so, and their
    /// questions are declined.
    pub asker: Option<Arc<dyn Asker>>,
    /// Receives the progress of calls. By default it is discarded.
    pub on_progress: Option<OnProgress>,
    /// Options of HTTP connections.
    pub http: HttpOptions,
}

setters!(McpOptions {
    asker: Option<Arc<dyn Asker>>,
    on_progress: Option<OnProgress>,
    http: HttpOptions,
});

impl fmt::Debug for McpOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpOptions").field("asker", &self.asker).field("http", &self.http).finish_non_exhaustive()
    }
}

/// The tools of MCP servers, as [`Tools`] of an agent. Clones share the servers, which exit with the last clone.
#[derive(Clone)]
pub struct McpTools(Arc<Shared>);

struct Shared {
    servers: Vec<ServerState>,
    options: McpOptions,
    /// Set if one of the servers has a URL, because creating it takes some milliseconds.
    http: Option<Http>,
    offered: RwLock<Vec<OfferedTool>>,
}

struct ServerState {
    server: McpServer,
    connection: Mutex<Option<Arc<Connection>>>,
    listed: RwLock<Vec<ServerTool>>,
}

/// A tool of a server.
#[derive(Clone)]
struct ServerTool {
    /// The server's own name for it.
    name: String,
    description: String,
    parameters: Value,
    effect: Effect,
    harm: Harm,
}

/// How destructive a tool is, according to its server.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Harm {
    Unknown,
    Destroys,
}

/// A tool as it is offered to the model.
#[derive(Clone)]
struct OfferedTool {
    /// The index of its server.
    server: usize,
    /// The server's name for it.
    tool: String,
    spec: ToolSpec,
    harm: Harm,
}

impl McpTools {
    /// Connects to all servers at the same time and lists their tools. Failures are returned, with the server's name as
    /// the error's path: the tools of the other servers can be used, and [`refresh`](Self::refresh) tries again.
    ///
    /// # Errors
    /// `BadRequest` for [`HttpOptions`] that cannot be used, if one of the servers has a URL.
    pub async fn connect(
        servers: impl IntoIterator<Item = McpServer>,
        options: McpOptions,
    ) -> Result<(Self, Vec<Error>)> {
        let served = |server| ServerState { server, connection: Mutex::default(), listed: RwLock::default() };
        let servers: Vec<ServerState> = servers.into_iter().map(served).collect();
        let is_remote = servers.iter().any(|served| matches!(served.server.endpoint, Endpoint::Http { .. }));
        let http = is_remote.then(|| Http::with(options.http.clone())).transpose()?;
        let tools = Self(Arc::new(Shared { servers, options, http, offered: RwLock::default() }));
        let failures = tools.refresh().await;
        Ok((tools, failures))
    }

    /// Lists the tools of all servers again, and reconnects where necessary. Servers change their lists, and an agent
    /// reads its tools only once, so call this before you create an [`Agent`](crate::Agent) for the next run.
    ///
    /// Returns the failures: servers, whose tools stay as they were, and single tools, which are left out.
    pub async fn refresh(&self) -> Vec<Error> {
        let failed = join_all(self.0.servers.iter().map(|served| self.0.list(served))).await;
        let listed: Vec<Vec<ServerTool>> = self.0.servers.iter().map(|served| read(&served.listed).clone()).collect();
        let all = || listed.iter().enumerate().flat_map(|(server, tools)| tools.iter().map(move |tool| (server, tool)));
        let names =
            unique_names(all().map(|(server, tool)| (self.0.servers[server].server.name.as_str(), tool.name.as_str())));
        let offered = all().zip(names).map(|((server, tool), name)| OfferedTool {
            server,
            tool: tool.name.clone(),
            harm: tool.harm,
            spec: ToolSpec {
                name,
                description: tool.description.clone(),
                parameters: tool.parameters.clone(),
                effect: tool.effect,
                time_limit: Some(LONGEST_CALL),
            },
        });
        *self.0.offered.write().unwrap_or_else(PoisonError::into_inner) = offered.collect();
        failed.into_iter().flatten().collect()
    }

    /// Stops all servers and waits for them, ten seconds at most. Later calls start them again.
    pub async fn close(&self) {
        join_all(self.0.servers.iter().map(async |served| {
            if let Some(connection) = served.connection.lock().await.take() {
                connection.close().await;
            }
        }))
        .await;
    }

    /// Returns whether the server declares this tool, given by its name for the model, as destructive.
    pub(super) fn destroys(&self, name: &str) -> bool {
        self.0.find(name).is_some_and(|tool| tool.harm == Harm::Destroys)
    }
}

impl Shared {
    fn find(&self, name: &str) -> Option<OfferedTool> {
        read(&self.offered).iter().find(|tool| tool.spec.name == name).cloned()
    }

    /// Returns the connection with a server: the present one if it is alive, or a new one.
    async fn connection(&self, served: &ServerState) -> Result<Arc<Connection>> {
        let mut connection = served.connection.lock().await;
        if let Some(open) = connection.as_ref()
            && open.is_alive().await
        {
            return Ok(Arc::clone(open));
        }
        // The old one closes by itself after its last call.
        *connection = None;
        let handler = Handler::new(&served.server.name, self.options.asker.clone());
        let open = Arc::new(Connection::open(&served.server, handler, self.http.as_ref()).await?);
        Ok(Arc::clone(connection.insert(open)))
    }

    async fn list(&self, served: &ServerState) -> Vec<Error> {
        let listing = async { self.connection(served).await?.tools(&served.server).await };
        let listed = match listing.await {
            Ok(listed) => listed,
            Err(error) => return vec![error],
        };
        let (mut tools, mut failed) = (Vec::new(), Vec::new());
        for tool in listed {
            match read_tool(&tool, served.server.hints) {
                Ok(tool) => tools.push(tool),
                Err(why) => {
                    let message = format!("the tool {:?} is left out: {}", tool.name, clean(&why));
                    failed.push(Error::new(ErrorKind::Tools, message).with_path(&served.server.name));
                }
            }
        }
        *served.listed.write().unwrap_or_else(PoisonError::into_inner) = tools;
        failed
    }

    async fn call(&self, call: &ToolCall, cancel: &CancellationToken) -> Result<ToolOutput, ToolError> {
        let Some(tool) = self.find(&call.name) else {
            return Err(ToolError(format!("There is no tool {:?} any more.", call.name)));
        };
        let served = &self.servers[tool.server];
        let name = &served.server.name;
        let connection = tokio::select! {
            connection = self.connection(served) => connection,
            () = cancel.cancelled() => return Err(ToolError::new("The call was cancelled.")),
        };
        let connection =
            connection.map_err(|error| ToolError(format!("The server {name} cannot be used. {}", error.message())))?;
        let none = Map::new();
        let on_progress = |progress: model::ProgressNotificationParam| {
            if let Some(hear) = &self.options.on_progress {
                let message = progress.message.as_deref().map(clean);
                let (done, total) = (progress.progress, progress.total);
                hear(McpProgress { call: call.id.clone(), done, total, message });
            }
        };
        let server_call = ServerCall {
            server: name,
            tool: &tool.tool,
            arguments: call.arguments.as_object().unwrap_or(&none),
            time_limit: served.server.time_limit,
            warning: match tool.spec.effect {
                Effect::Read => "",
                Effect::Write => " The call may or may not have taken effect: check before repeating it.",
            },
            cancel,
            on_progress: &on_progress,
        };
        let ended = connection.call(&server_call).await;
        ended.map_err(|ToolError(text)| {
            ToolError(served.server.secrets().into_iter().fold(text, |text, secret| text.replace(secret, "…")))
        })
    }
}

/// Reads a tool from a server's list.
///
/// # Errors
/// The reason why it cannot be offered.
fn read_tool(tool: &model::Tool, hints: Hints) -> Result<ServerTool, String> {
    let destroys = tool.annotations.as_ref().and_then(|hints| hints.destructive_hint) == Some(true);
    let harm = if destroys { Harm::Destroys } else { Harm::Unknown };
    let read_only = tool.annotations.as_ref().and_then(|hints| hints.read_only_hint);
    let is_believed = match hints {
        Hints::OnlyStricter => false,
        Hints::Trusted => read_only == Some(true),
        Hints::Vouched => read_only != Some(false),
    };
    let only_reads = is_believed && harm == Harm::Unknown;
    let described = tool.description.as_deref().or(tool.title.as_deref()).unwrap_or_default();
    Ok(ServerTool {
        name: tool.name.to_string(),
        description: clean(described),
        parameters: portable(&tool.input_schema)?,
        effect: if only_reads { Effect::Read } else { Effect::Write },
        harm,
    })
}

fn read<T>(lock: &RwLock<T>) -> std::sync::RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for McpTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.servers.iter().map(|served| &served.server)).finish()
    }
}

impl Tools for McpTools {
    fn specs(&self) -> Vec<ToolSpec> {
        read(&self.0.offered).iter().map(|tool| tool.spec.clone()).collect()
    }

    fn has(&self, name: &str) -> bool {
        read(&self.0.offered).iter().any(|tool| tool.spec.name == name)
    }

    fn call<'a>(
        &'a self,
        call: &'a ToolCall,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(self.0.call(call, cancel))
    }
}
