//! The tools of several servers as the tools of an agent: listed, named, called, with a new connection where one ended.

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

/// How long a call may take altogether: a server has a limit of its own, which progress and questions extend.
const LONGEST_CALL: Duration = Duration::from_secs(60 * 60);

/// Is told of the progress of calls.
pub type OnProgress = Arc<dyn Fn(McpProgress) + Send + Sync>;

/// How far a call is.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct McpProgress {
    /// The call, by the id that the run's events have.
    pub call: CallId,
    /// How much is done, in the server's own measure.
    pub done: f64,
    /// How much there is to do, if the server knows.
    pub total: Option<f64>,
    /// What it says about it, without control characters.
    pub message: Option<String>,
}

/// Who hears of questions and progress, and how connections are made.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct McpOptions {
    /// Shows the questions of servers to a person. By default nobody does: servers are told so, and get a no.
    pub asker: Option<Arc<dyn Asker>>,
    /// Is told of the progress of calls. By default nobody is.
    pub on_progress: Option<OnProgress>,
    /// Connections with servers over HTTP.
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

/// The tools of MCP servers, as [`Tools`] of an agent. Clones are the same; the servers end with the last one.
#[derive(Clone)]
pub struct McpTools(Arc<Shared>);

struct Shared {
    servers: Vec<ServerState>,
    options: McpOptions,
    /// Where one of the servers has an address: to make it takes some milliseconds.
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
    /// Its own name.
    name: String,
    description: String,
    parameters: Value,
    effect: Effect,
    harm: Harm,
}

/// What a server says of a tool that writes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Harm {
    Unknown,
    Destroys,
}

/// A tool as it is offered to the model.
#[derive(Clone)]
struct OfferedTool {
    /// The position of its server.
    server: usize,
    /// By the server's name for it.
    tool: String,
    spec: ToolSpec,
    harm: Harm,
}

impl McpTools {
    /// Connects to all servers at the same time and lists their tools. What failed is said, with the server's name as
    /// the error's path, and is left out: the tools of the others can be used, and [`refresh`](Self::refresh) tries again.
    ///
    /// # Errors
    /// `BadRequest` for [`HttpOptions`] that cannot be used, if one of the servers has an address.
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

    /// Lists the tools of all servers again, with a new connection where there is none. Servers change their lists: do
    /// this before an [`Agent`](crate::Agent) is made for the next run, since an agent reads its tools once.
    ///
    /// Returns what failed: servers, whose tools stay as they were, and single tools, which are left out.
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

    /// Ends all servers and waits for them, ten seconds at most. Later calls start them again.
    pub async fn close(&self) {
        join_all(self.0.servers.iter().map(async |served| {
            if let Some(connection) = served.connection.lock().await.take() {
                connection.close().await;
            }
        }))
        .await;
    }

    /// Whether a server says that this tool, by the name that the model knows, destroys something.
    pub(super) fn destroys(&self, name: &str) -> bool {
        self.0.find(name).is_some_and(|tool| tool.harm == Harm::Destroys)
    }
}

impl Shared {
    fn find(&self, name: &str) -> Option<OfferedTool> {
        read(&self.offered).iter().find(|tool| tool.spec.name == name).cloned()
    }

    /// The connection with a server: the one there is, if it is alive, or a new one.
    async fn connection(&self, served: &ServerState) -> Result<Arc<Connection>> {
        let mut connection = served.connection.lock().await;
        if let Some(open) = connection.as_ref()
            && open.is_alive().await
        {
            return Ok(Arc::clone(open));
        }
        // The old one ends by itself once its last call has.
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

/// A tool as the server lists it.
///
/// # Errors
/// Why it cannot be offered.
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
