//! Tools: the trait `Tools`, the specification of a tool, its output and its errors.

mod schema_check;
mod mend;
mod set;
mod typed;

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::message::ToolCall;

pub use futures_util::future::BoxFuture;
pub use schema_check::SchemaCheck;
pub(crate) use schema_check::list_issues;
pub use set::ToolSet;
#[cfg(feature = "mcp")]
pub(crate) use typed::strip as strip_schema;
pub use typed::{IntoOutput, Json, Tool, ToolContext, portable_schema};

/// Whether a tool has side effects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// It has none: calls may run in parallel, and again after a crash.
    Read,
    /// It has side effects: calls run one at a time, in order, and are never repeated automatically.
    Write,
}

/// The specification of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Unique in its list. What a provider does not take in a name is replaced on the way to it.
    pub name: String,
    /// For the model: what it does and when to use it.
    pub description: String,
    /// A JSON Schema of an object. Without remote references.
    pub parameters: Value,
    /// Whether it has side effects.
    pub effect: Effect,
    /// How long a call may take; `None`: as long as the agent's own limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit: Option<Duration>,
}

/// The output of a tool: items that a person can withhold one by one before the model sees them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolOutput {
    /// Hits, notes, lines: whatever the tool's result consists of. Often just one.
    pub items: Vec<String>,
}

impl ToolOutput {
    /// One item.
    pub fn text(text: impl Into<String>) -> Self {
        Self { items: vec![text.into()] }
    }

    /// Items one by one.
    pub fn items(items: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { items: items.into_iter().map(Into::into).collect() }
    }
}

/// Why a tool failed, in words that a model can act on. The run continues; the model sees the error as the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolError(pub String);

impl ToolError {
    /// An error with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

/// From a text, or any error by what it says.
impl<T: fmt::Display> From<T> for ToolError {
    fn from(error: T) -> Self {
        Self(error.to_string())
    }
}

/// The tools of an agent. `Vec<Tool>` implements it, and so do `()`, which has none, and a pair of two that do.
pub trait Tools: Send + Sync {
    /// All tools, in an order that does not change from call to call. Read once, when an agent is made.
    fn specs(&self) -> Vec<ToolSpec>;

    /// Whether there is a tool of this name.
    fn has(&self, name: &str) -> bool {
        self.specs().iter().any(|spec| spec.name == name)
    }

    /// Runs one call, whose name is one of the specs' and whose arguments fit the schema.
    ///
    /// It should end soon after `cancel` is cancelled; what has not ended then is dropped after a bounded time. Work
    /// that blocks a thread belongs in `spawn_blocking`.
    fn call<'a>(
        &'a self,
        call: &'a ToolCall,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;
}

/// No tools.
impl Tools for () {
    fn specs(&self) -> Vec<ToolSpec> {
        Vec::new()
    }

    fn call<'a>(
        &'a self,
        call: &'a ToolCall,
        _: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move { Err(ToolError(format!("there is no tool {:?}", call.name))) })
    }
}

/// The tools of both, those of the first before those of the second.
impl<A: Tools, B: Tools> Tools for (A, B) {
    fn specs(&self) -> Vec<ToolSpec> {
        let mut specs = self.0.specs();
        specs.extend(self.1.specs());
        specs
    }

    fn has(&self, name: &str) -> bool {
        self.0.has(name) || self.1.has(name)
    }

    fn call<'a>(
        &'a self,
        call: &'a ToolCall,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        if self.0.has(&call.name) { self.0.call(call, cancel) } else { self.1.call(call, cancel) }
    }
}
