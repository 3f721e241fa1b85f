//! A policy that asks about every single call of a tool that destroys something.

use crate::approval::{CallPermission, CallPolicy, Review};
use crate::message::ToolCall;
use crate::tool::ToolSpec;

use super::tools::McpTools;

/// Another policy, but for the tools of which their server says that they destroy something: a person is asked about
/// each call of theirs, and "allow for the session" allows that one call.
#[derive(Debug, Clone)]
pub struct AskBeforeDestroying<P> {
    tools: McpTools,
    inner: P,
}

impl<P: CallPolicy> AskBeforeDestroying<P> {
    /// For these tools. `inner` decides about all others, and what it denies stays denied.
    pub fn new(tools: McpTools, inner: P) -> Self {
        Self { tools, inner }
    }
}

impl<P: CallPolicy> CallPolicy for AskBeforeDestroying<P> {
    fn permission(&self, call: &ToolCall, spec: &ToolSpec) -> CallPermission {
        match self.inner.permission(call, spec) {
            denied @ CallPermission::Deny { .. } => denied,
            other if !self.tools.destroys(&call.name) => other,
            _ => CallPermission::Ask {
                why: format!("{} destroys or overwrites something, as its server says", call.name),
                // No other call asks for it.
                grant: format!("{} {}", call.name, call.id),
            },
        }
    }

    fn review(&self, call: &ToolCall, spec: &ToolSpec) -> Review {
        self.inner.review(call, spec)
    }
}
