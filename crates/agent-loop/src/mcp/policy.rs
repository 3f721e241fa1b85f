//! A policy that asks about every single call of a tool that destroys something.

use crate::approval::{CallPermission, CallPolicy, Review};
use crate::message::ToolCall;
use crate::tool::ToolSpec;

use super::tools::McpTools;

/// Another policy, except for the tools that their server declares as destructive: a person is asked about each of
/// their calls, and "allow for the session" allows only that one call.
#[derive(Debug, Clone)]
pub struct AskBeforeDestroying<P> {
    tools: McpTools,
    inner: P,
}

impl<P: CallPolicy> AskBeforeDestroying<P> {
    /// Creates the policy for these tools. `inner` decides about all others, and its denials remain denials.
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
                // The grant contains the call's id, so that it covers no other call.
                grant: format!("{} {}", call.name, call.id),
            },
        }
    }

    fn review(&self, call: &ToolCall, spec: &ToolSpec) -> Review {
        self.inner.review(call, spec)
    }
}
