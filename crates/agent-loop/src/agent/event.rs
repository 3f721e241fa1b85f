//! Events of a run for a user interface, and the observer that also saves the run.

use std::time::Duration;

use serde_json::Value;

use crate::approval::Question;
use crate::error::{Failure, Result};
use crate::message::{Status, TextPhase, ToolCall, ToolResult, Usage};
use crate::model::Delta;
use crate::run::{Run, RunOutcome};

/// Something that happened.
///
/// A call has the same `index` from its first event to its last: its place among the calls of its reply, from 0. Its id
/// while it is streamed is the provider's, which may be empty or used before; from `ToolStarted` on it is the run's.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// More text.
    Text(String),
    /// More text, of which the provider says that it is not the answer: what the model says on the way.
    Commentary(String),
    /// More reasoning.
    Reasoning(String),
    /// The model begins a call.
    CallStarted {
        /// Which call of the reply.
        index: usize,
        /// The provider's id; empty where it has none.
        id: String,
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
        /// Which call of the reply.
        index: usize,
        /// The call, with the arguments it runs with.
        call: ToolCall,
    },
    /// A call has its result. There is one such event for each call, whatever became of it: also for one that was
    /// denied, cancelled, beyond the budget or not valid, and whose tool never ran.
    ToolFinished {
        /// Which call of the reply.
        index: usize,
        /// What the model is told, and how long the tool ran.
        result: ToolResult,
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
    Done(RunOutcome),
}

impl Event {
    /// The event of a delta within text of this phase. `calls` holds the indices of the calls so far: those of deltas are
    /// in any numbering.
    pub(super) fn of(delta: Delta, phase: Option<TextPhase>, calls: &mut Vec<usize>) -> Option<Self> {
        let mut place = |index| {
            calls.iter().rposition(|call| *call == index).unwrap_or_else(|| {
                calls.push(index);
                calls.len() - 1
            })
        };
        Some(match delta {
            Delta::Text { text } if phase == Some(TextPhase::Commentary) => Self::Commentary(text),
            Delta::Text { text } => Self::Text(text),
            Delta::Reasoning { text, .. } if !text.is_empty() => Self::Reasoning(text),
            Delta::CallStart { index, id, name } => Self::CallStarted { index: place(index), id, name },
            Delta::CallArguments { index, text } => Self::CallArguments { index: place(index), text },
            Delta::CallFault { index, fault, .. } => Self::CallFault { index: place(index), fault },
            Delta::Warning { text } => Self::Warning(text),
            Delta::Usage(usage) => Self::Usage(usage),
            // Text so far is resolved by now.
            Delta::CumulativeText { .. }
            | Delta::TextStart { .. }
            | Delta::TextEnd { .. }
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
            Self::Commentary(text) => json!({"event": "commentary", "text": text}),
            Self::Reasoning(text) => json!({"event": "reasoning", "text": text}),
            Self::CallStarted { index, id, name } => {
                json!({"event": "call_started", "index": index, "id": id, "name": name})
            }
            Self::CallArguments { index, text } => json!({"event": "call_arguments", "index": index, "text": text}),
            Self::CallFault { index, fault } => json!({"event": "call_fault", "index": index, "fault": fault}),
            Self::Warning(text) => json!({"event": "warning", "text": text}),
            Self::Usage(usage) => json!({"event": "usage", "usage": usage}),
            Self::Retry { attempt, delay, failure } => {
                json!({"event": "retry", "attempt": attempt, "delay_ms": delay.as_millis() as u64, "failure": failure})
            }
            Self::ApprovalNeeded(question) => json!({"event": "approval_needed", "question": question}),
            Self::ToolStarted { index, call } => json!({"event": "tool_started", "index": index, "call": call}),
            Self::ToolFinished { index, result } => json!({
                "event": "tool_finished",
                "index": index,
                "call": result.call,
                "status": result.status,
                "note": result.note,
                "output": (result.status == Status::Ok).then(|| json!({"items": result.items})),
                "error": (result.status != Status::Ok).then(|| result.items.join("\n")),
                "duration_ms": result.duration.map(|duration| duration.as_millis() as u64),
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

impl Observer for &mut (dyn Observer + '_) {
    fn event(&mut self, event: Event) {
        (**self).event(event);
    }

    fn save(&mut self, run: &Run) -> Result<()> {
        (**self).save(run)
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
