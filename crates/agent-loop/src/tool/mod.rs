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
    /// No side effects: calls may run in parallel, and again after a crash.
    Read,
    /// Side effects: calls run one at a time, in order, and are never repeated automatically.
    Write,
}

/// The specification of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The name, unique in its list. Characters that a provider does not accept in a name are replaced in requests to
    /// it.
    pub name: String,
    /// The description for the model: what the tool does and when to use it.
    pub description: String,
    /// The JSON Schema of the arguments, which are an object. It may not have remote references.
    pub parameters: Value,
    /// Whether the tool has side effects.
    pub effect: Effect,
    /// How long a call may take; `None` means the agent's own limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit: Option<Duration>,
}

/// The output of a tool: items that a person can withhold one by one before the model sees them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolOutput {
    /// The parts of the result, such as search hits, notes or lines. Often there is just one.
    pub items: Vec<String>,
}

impl ToolOutput {
    /// Creates an output with one item.
    pub fn text(text: impl Into<String>) -> Self {
        Self { items: vec![text.into()] }
    }

    /// Creates an output with several items.
    pub fn items(items: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { items: items.into_iter().map(Into::into).collect() }
    }
}

/// Why a tool failed, in words that a model can act on. The run continues; the model sees the error as the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolError(pub String);

impl ToolError {
    /// Creates an error with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

/// Converts a text, or any error through its `Display` text.
impl<T: fmt::Display> From<T> for ToolError {
    fn from(error: T) -> Self {
        Self(error.to_string())
    }
}

/// The tools of an agent. `Vec<Tool>` implements it, and so do `()`, which has no tools, and a pair of two
/// implementations.
pub trait Tools: Send + Sync {
    /// Returns all tools, in an order that does not change from call to call. It is called once, when an agent is
    /// created.
    fn specs(&self) -> Vec<ToolSpec>;

    /// Returns whether there is a tool of this name.
    fn has(&self, name: &str) -> bool {
        self.specs().iter().any(|spec| spec.name == name)
    }

    /// Runs one call. Its name is in [`specs`](Self::specs), and its arguments fit the schema.
    ///
    /// The call should end soon after `cancel` is cancelled; otherwise it is dropped after a limited time. Work that
    /// blocks a thread belongs in `spawn_blocking`.
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

/// The tools of both: those of the first, then those of the second.
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
