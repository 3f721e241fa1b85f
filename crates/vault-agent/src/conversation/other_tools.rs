//! Tools of other programs in a conversation: which are offered, and which ask.

use agent_loop::mcp::{AskBeforeDestroying, McpTools};
use agent_loop::{
    AskBeforeWriting, BoxFuture, CallPermission, CallPolicy, Effect, Review, ToolCall, ToolError, ToolOutput, ToolSpec,
    Tools,
};
use tokio_util::sync::CancellationToken;

use super::note_tools::NoteTools;

/// The tools that only read, as the user vouches. Only these are offered if no person can be asked.
#[derive(Clone)]
pub(super) struct ReadOnlyTools(pub McpTools);

impl Tools for ReadOnlyTools {
    fn specs(&self) -> Vec<ToolSpec> {
        let mut specs = self.0.specs();
        specs.retain(|spec| spec.effect == Effect::Read);
        specs
    }

    fn call<'a>(
        &'a self,
        call: &'a ToolCall,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, std::result::Result<ToolOutput, ToolError>> {
        self.0.call(call, cancel)
    }
}

/// The policy for tools of other programs. Tools that the settings of a vault deny stay denied. In a conversation every
/// call of the others asks; a tool that only reads, as the person vouches, asks only at its first call.
pub(super) struct OtherToolsPolicy {
    notes: NoteTools,
    others: AskBeforeDestroying<AskBeforeWriting>,
}

impl OtherToolsPolicy {
    pub fn new(notes: NoteTools, others: McpTools) -> Self {
        Self { notes, others: AskBeforeDestroying::new(others, AskBeforeWriting) }
    }
}

impl CallPolicy for OtherToolsPolicy {
    fn permission(&self, call: &ToolCall, spec: &ToolSpec) -> CallPermission {
        if self.notes.has(&call.name) {
            return self.notes.permission(call, spec);
        }
        if let Some(reason) = self.notes.closed().or_else(|| self.notes.denies(&call.name)) {
            return CallPermission::Deny { reason };
        }
        match self.others.permission(call, spec) {
            CallPermission::Allow if self.notes.offers_changes() => CallPermission::Ask {
                why: format!("{} is a tool of another program", call.name),
                grant: call.name.clone(),
            },
            other => other,
        }
    }

    fn review(&self, call: &ToolCall, spec: &ToolSpec) -> Review {
        if self.notes.has(&call.name) { self.notes.review(call, spec) } else { Review::Pass }
    }
}
