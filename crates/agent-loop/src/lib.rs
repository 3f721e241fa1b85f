//! An agent loop: a language model in, tool calls out, with approvals, budgets and runs that can be saved at any step.
//!
//! ```text
//!            ┌──────────────────────── run: what is needed next (pure, can be saved) ───────────────────────┐
//!            │                                                                                              │
//! message ──>│ CallModel ──> model ──> reply ──> calls ──> policy ──> Ask ──> a person ──> RunTools ──> results │──> Done
//!            │                                                                                              │
//!            └──────────────────────── agent: does it (time, concurrency, retries) ─────────────────────────┘
//! ```
//!
//! A [`Run`] is a conversation as a value. It decides what is needed next (a reply of the model, results of tools, an
//! approval) and does nothing itself, so it can be saved after any step, as JSON, and resumed in another process; for
//! example, when the person who has to approve a call is away until tomorrow. An [`Agent`] carries a run out: it calls
//! the model, runs tools concurrently where they only read, retries what is safe to retry, and asks your approver.
//! [`Agent::ask`] is a whole run in one call.
//!
//! Every call gets exactly one result before the model speaks again. A call that needs approval runs only after a
//! person's decision, which is bound to this call and its arguments, or under a grant that the person gave for the
//! session. One budget ends a run with a typed reason, unless every limit is removed. Each of the eleven invariants is a
//! test with its number (`invariant_05_…`), in `tests/it` or beside the code.
//!
//! ```
//! use agent_loop::{Agent, Event, Json, Run, RunId, RunOptions, ScriptedModel, ScriptedReply, ToolError, tool};
//! use futures_util::TryStreamExt;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let add = tool! {
//!     /// Adds two numbers.
//!     read async fn add(a: i64, b: i64) -> Result<Json<i64>, ToolError> { Ok(Json(a + b)) }
//! };
//! // A hosted model: `HostedModel::from_env("openai:gpt-5.6")?`, with the feature `hosted`.
//! let model = ScriptedModel::new([
//!     ScriptedReply::calls([("add", serde_json::json!({"a": 2, "b": 3}))]),
//!     ScriptedReply::text("It is 5."),
//! #   ScriptedReply::text("It is 5."),
//! ]);
//! let agent = Agent::new(model, vec![add])?;
//!
//! // The run with its events, which can be saved and resumed:
//! let mut run = Run::new(RunId::random(), RunOptions::default(), "What is 2 + 3?");
//! let mut events = agent.stream(&mut run, ());
//! while let Some(event) = events.try_next().await? {
//!     if let Event::Text(text) = event {
//!         print!("{text}");
//!     }
//! }
//! # drop(events);
//! assert_eq!(run.results().next().map(|result| result.text()).as_deref(), Some("5"));
//!
//! // The same without events:
//! assert_eq!(agent.ask("What is 2 + 3?").await?.text, "It is 5.");
//! # Ok(())
//! # }
//! ```
//!
//! # Errors
//! There are two error types, because they have different readers. A [`ToolError`] is for the model: it becomes the
//! result of the call, so that the model can correct itself. An [`Error`] is for the program and ends the run; its kind
//! tells whether a retry can help, and a run that failed can still be saved and continued.
//!
//! # Compared with other libraries
//!
//! - **rig** has more providers, vector stores, embeddings and hooks at every step, and runs in a browser. A pause that
//!   outlives the process is driven by hand there, without the agent's hooks, and a saved run resumes only with the
//!   version that saved it.
//! - **genai** has more providers and chooses them by the model's name. It sends one request and returns one reply: the
//!   loop, approvals and budgets are the program's.
//! - **Pydantic AI** has more providers, typed dependencies, evaluations, and durable execution on Temporal, DBOS,
//!   Prefect or Restate. It is Python; a pause that outlives the process ends the run there, and an approval names a
//!   call's id, not its arguments.
//!
//! The README has versions and links.

#![deny(missing_docs, missing_debug_implementations)]

/// Builder methods, one for each named public field: `Options::default().field(value)`.
macro_rules! setters {
    ($type:ident { $($field:ident: $value:ty),+ $(,)? }) => {
        impl $type {
            $(
                #[doc = concat!("Sets the field `", stringify!($field), "`.")]
                #[must_use]
                pub fn $field(mut self, $field: $value) -> Self {
                    self.$field = $field;
                    self
                }
            )+
        }
    };
}

// The order of the modules is the order of dependencies: a module uses only modules above it. A test checks it.
pub mod error;
mod canonical;
mod raw_json;
mod message;
mod tool;
mod model;
mod budget;
mod approval;
mod compaction;
mod run;
mod agent;
mod transcript;
pub mod text_calls;
mod schema;
mod models;
#[cfg(feature = "mcp")]
pub mod mcp;

pub use agent::{Agent, Event, EventStream, Limits, Observer, Pause, Retries};
pub use approval::{
    AllowAll, AskBeforeWriting, BoundDecision, CallPermission, CallPolicy, Decision, Digest, Question, QuestionSubject,
    Rejection, RejectionReason, Rejections, Review, RunId,
};
pub use budget::{AtLimit, Budget, Limit, RunUsage};
pub use compaction::{Compaction, DropThenSummarize};
pub use error::{Error, ErrorKind, Failure};
pub use message::{
    CallId, History, Image, Message, Messages, Part, Repair, Status, TextPhase, ToolCall, ToolResult, Usage,
    UserMessage,
};
pub use model::{
    Delta, EndReason, ImageSupport, Model, ModelSettings, Parallel, PromptCache, ReasoningEffort, Reply, ReplyBuilder,
    ReplyStream, Request, TextCursor, ToolChoice, ToolSupport,
};
pub use models::{
    ByteStream, HostedModel, HttpReply, HttpRequest, Provider, ReasoningField, ReplayModel, ReturnReasoning,
    ScriptedModel, ScriptedReply, Streaming, TextDeltas, Transport, Wire,
};
#[cfg(feature = "hosted")]
pub use models::{Http, HttpOptions, HttpProxy};
pub use run::{AnswerShape, NextStep, ReadyCall, Run, RunContext, RunError, RunOptions, RunOutcome, StopReason};
pub use text_calls::TextCalls;
pub use tool::{
    BoxFuture, Effect, IntoOutput, Json, SchemaCheck, Tool, ToolContext, ToolError, ToolOutput, ToolSet, ToolSpec,
    Tools, portable_schema,
};
pub use transcript::{Durability, Transcript, to_markdown};

/// Used by [`tool!`].
#[doc(hidden)]
pub mod __private {
    pub use schemars::{self, JsonSchema};
    pub use serde::{self, Deserialize};
}

// The examples in the README use hosted models and MCP servers.
#[cfg(all(doctest, feature = "mcp"))]
#[doc = include_str!("../README.md")]
struct ReadMe;
