//! MCP servers as tools of an agent (feature `mcp`).
//!
//! ```text
//! McpServer ──connect──> Connection (a process, or HTTP) ──tools/list──> names, schemas, effects ──> ToolSpec
//!                          │  ^ again, once a call finds it ended                                      │
//! Asker <── questions ─────┘  └──────────────────────── tools/call <──────────────────── ToolCall <────┘
//! ```
//!
//! All text from a server is data. Its results go to the model like those of any tool. Its hint that a tool only reads
//! is honoured only for servers that you trust ([`Hints::Trusted`]); its hint that a tool destroys something always
//! counts ([`AskBeforeDestroying`]). A server that exits, hangs or violates the protocol is an error that the model
//! gets as the result of its call; the next call connects again, once.
//!
//! All revisions of the protocol are supported, and the newest is tried first. Resources, prompts, sampling and roots
//! are not supported.
//!
//! ```no_run
//! # async fn example(model: agent_loop::ScriptedModel) -> agent_loop::error::Result<()> {
//! use agent_loop::mcp::{AskBeforeDestroying, McpOptions, McpServer, McpTools};
//! use agent_loop::{Agent, AskBeforeWriting, Tool};
//!
//! let servers = [
//!     McpServer::stdio("files", "mcp-server-files").args(["/notes"]),
//!     McpServer::http("search", "https://example.org/mcp").bearer("a key"),
//! ];
//! let (tools, failures) = McpTools::connect(servers, McpOptions::default()).await?;
//! failures.iter().for_each(|failure| eprintln!("{failure}"));
//! let own: Vec<Tool> = Vec::new();
//! let policy = AskBeforeDestroying::new(tools.clone(), AskBeforeWriting);
//! let agent = Agent::new(model, (own, tools))?.policy(policy);
//! # drop(agent);
//! # Ok(())
//! # }
//! ```

mod clean;
mod server;
mod question;
mod names;
mod input_schema;
mod output;
mod handler;
mod process;
mod connection;
mod call;
mod tools;
mod policy;

pub use policy::AskBeforeDestroying;
pub use question::{Asker, QuestionAnswer, QuestionKind, ServerQuestion};
pub use server::{Hints, McpServer};
pub use tools::{McpOptions, McpProgress, McpTools, OnProgress};
