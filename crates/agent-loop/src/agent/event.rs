//! Events of a run for a user interface, and the observer that also saves the run.

use std::time::Duration;

use serde_json::Value;

use crate::approval::Question;
use crate::error::{Failure, Result};
use crate::message::{CallId, ToolCall, Usage};
use crate::model::Delta;
use crate::run::{Outcome, Run};
use crate::tool::{ToolError, ToolOutput};

/// Something that happened. Ids of calls in deltas are the provider's; from `ToolStarted` on they are the run's.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// More text.
    Text(String),
    /// More reasoning.
    Reasoning(String),
    /// The model begins a call.
    CallStarted {
        /// Which call of the reply.
        index: usize,
        /// The tool.
        name: String,
    },
    /// More of a call's arguments, as JSON text.
    CallArguments {
        /// Which call of the reply.
        index: usize,
        /// The piece.
        text: String,
    },
    /// A call that cannot be read.
    CallFault {
        /// Which call of the reply.
        index: usize,
        /// Why.
        fault: String,
    },
    /// Something about the reply that a person may want to know, such as a call in a form that cannot be read.
    Warning(String),
    /// Tokens of the reply so far.
    Usage(Usage),
    /// The request failed before anything was shown; it is made again.
    Retry {
        /// Which attempt failed, from 1.
        attempt: u32,
        /// How long it waits.
        delay: Duration,
        /// What failed.
        failure: Failure,
    },
    /// A person has to decide.
    ApprovalNeeded(Question),
    /// A tool runs.
    ToolStarted {
        /// The call, with the arguments it runs with.
        call: ToolCall,
    },
    /// A tool has ended.
    ToolFinished {
        /// The call.
        call: CallId,
        /// How.
        end: Result<ToolOutput, ToolError>,
        /// Time since the start of its batch.
        after: Duration,
    },
    /// The conversation was made shorter.
    Compacted {
        /// Bytes before.
        before: usize,
        /// Bytes now.
        after: usize,
    },
    /// The conversation could not be made shorter. The run goes on where it can.
    NotCompacted {
        /// Why.
        failure: Failure,
    },
    /// The run is done.
    Done(Outcome),
}

impl Event {
    pub(super) fn of(delta: Delta) -> Option<Self> {
        Some(match delta {
            Delta::Text { text } => Self::Text(text),
            Delta::Reasoning { text, .. } if !text.is_empty() => Self::Reasoning(text),
            Delta::CallStart { index, name, .. } => Self::CallStarted { index, name },
            Delta::CallArguments { index, text } => Self::CallArguments { index, text },
            Delta::CallFault { index, fault, .. } => Self::CallFault { index, fault },
            Delta::Warning { text } => Self::Warning(text),
            Delta::Usage(usage) => Self::Usage(usage),
            // Text so far is resolved by now.
            Delta::CumulativeText { .. }
            | Delta::Reasoning { .. }
            | Delta::CallEnd { .. }
            | Delta::Progress
            | Delta::End(_) => return None,
        })
    }

    /// The event as JSON, for a page or a log: an object with `event` and what belongs to it.
    pub fn to_json(&self) -> Value {
        use serde_json::json;
        match self {
            Self::Text(text) => json!({"event": "text", "text": text}),
            Self::Reasoning(text) => json!({"event": "reasoning", "text": text}),
            Self::CallStarted { index, name } => json!({"event": "call_started", "index": index, "name": name}),
            Self::CallArguments { index, text } => json!({"event": "call_arguments", "index": index, "text": text}),
            Self::CallFault { index, fault } => json!({"event": "call_fault", "index": index, "fault": fault}),
            Self::Warning(text) => json!({"event": "warning", "text": text}),
            Self::Usage(usage) => json!({"event": "usage", "usage": usage}),
            Self::Retry { attempt, delay, failure } => {
                json!({"event": "retry", "attempt": attempt, "delay_ms": delay.as_millis() as u64, "failure": failure})
            }
            Self::ApprovalNeeded(question) => json!({"event": "approval_needed", "question": question}),
            Self::ToolStarted { call } => json!({"event": "tool_started", "call": call}),
            Self::ToolFinished { call, end, after } => json!({
                "event": "tool_finished",
                "call": call,
                "output": end.as_ref().ok(),
                "error": end.as_ref().err().map(|error| &error.0),
                "after_ms": after.as_millis() as u64,
            }),
            Self::Compacted { before, after } => json!({"event": "compacted", "before": before, "after": after}),
            Self::NotCompacted { failure } => json!({"event": "not_compacted", "failure": failure}),
            Self::Done(outcome) => json!({"event": "done", "outcome": outcome}),
        }
    }
}

/// Sees a run as it goes on. A closure over [`Event`] is one, so is a [`Transcript`](crate::Transcript), and so is a
/// pair of two.
pub trait Observer: Send {
    /// Something happened. It must not block for long: the run waits.
    fn event(&mut self, _event: Event) {}

    /// The run has changed, or is about to run tools. What is saved here is what a later process goes on from.
    ///
    /// # Errors
    /// When it cannot be saved: the driver stops then, before anything else happens.
    fn save(&mut self, _run: &Run) -> Result<()> {
        Ok(())
    }
}

/// Nobody watches.
impl Observer for () {}

impl<F: FnMut(Event) + Send> Observer for F {
    fn event(&mut self, event: Event) {
        self(event);
    }
}

impl<A: Observer, B: Observer> Observer for (A, B) {
    fn event(&mut self, event: Event) {
        self.0.event(event.clone());
        self.1.event(event);
    }

    fn save(&mut self, run: &Run) -> Result<()> {
        self.0.save(run)?;
        self.1.save(run)
    }
}
