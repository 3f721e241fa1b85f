//! Events of a run for a user interface, and the observer that also saves the run.

use std::time::Duration;

use serde_json::Value;

use crate::approval::Question;
use crate::error::{Failure, Result};
use crate::message::{Status, TextPhase, ToolCall, ToolResult, Usage};
use crate::model::Delta;
use crate::run::{Run, RunOutcome};

/// An event of a run.
///
/// A call has the same `index` in all of its events: its position among the calls of its reply, from 0. While it is
/// streamed, its id is the provider's, which may be empty or a duplicate; from `ToolStarted` on it is the run's.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// More text.
    Text(String),
    /// More text that the provider marks as commentary instead of the answer, such as what the model is about to do.
    Commentary(String),
    /// More reasoning.
    Reasoning(String),
    /// A call starts.
    CallStarted {
        /// The index of the call in its reply.
        index: usize,
        /// The provider's id; empty if it sends none.
        id: String,
        /// The tool's name.
        name: String,
    },
    /// More of a call's arguments, as JSON text.
    CallArguments {
        /// The index of the call in its reply.
        index: usize,
        /// The next piece of text.
        text: String,
    },
    /// A call cannot be read.
    CallFault {
        /// The index of the call in its reply.
        index: usize,
        /// The reason.
        fault: String,
    },
    /// A problem of the reply that a person may want to know about, for example a call in a form that cannot be read.
    Warning(String),
    /// The tokens of the reply so far.
    Usage(Usage),
    /// The request failed before anything was shown, and will be sent again.
    Retry {
        /// The number of the failed attempt, from 1.
        attempt: u32,
        /// The wait before the next attempt.
        delay: Duration,
        /// The error.
        failure: Failure,
    },
    /// A person has to decide.
    ApprovalNeeded(Question),
    /// A tool starts.
    ToolStarted {
        /// The index of the call in its reply.
        index: usize,
        /// The call, with the arguments it runs with.
        call: ToolCall,
    },
    /// A call has its result. There is one such event for every call, including calls that were denied, cancelled,
    /// invalid or beyond the budget, whose tools never ran.
    ToolFinished {
        /// The index of the call in its reply.
        index: usize,
        /// The result that the model gets, including how long the tool ran.
        result: ToolResult,
    },
    /// The conversation was made shorter.
    Compacted {
        /// The size before, in bytes.
        before: usize,
        /// The size now, in bytes.
        after: usize,
    },
    /// The conversation could not be made shorter. The run continues if it can.
    NotCompacted {
        /// The reason.
        failure: Failure,
    },
    /// The run is done.
    Done(RunOutcome),
}

impl Event {
    /// Returns the event of a delta within text of this phase. `calls` holds the indices of the calls so far, because
    /// deltas may number their calls in any way.
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
            // Cumulative text has been resolved before.
            Delta::CumulativeText { .. }
            | Delta::TextStart { .. }
            | Delta::TextEnd { .. }
            | Delta::Reasoning { .. }
            | Delta::CallEnd { .. }
            | Delta::Progress
            | Delta::End(_) => return None,
        })
    }

    /// Returns the event as JSON for a web page or a log: an object with `event` and its fields.
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

/// Receives the events of a run and saves it. A closure over [`Event`] is an observer, and so are a
/// [`Transcript`](crate::Transcript) and a pair of two observers.
pub trait Observer: Send {
    /// Receives one event. It must not block for long, because the run waits for it.
    fn event(&mut self, _event: Event) {}

    /// Saves the run, which has changed or is about to run tools. A later process continues from the state that is
    /// saved here.
    ///
    /// # Errors
    /// If the run cannot be saved. The driver then stops before anything else happens.
    fn save(&mut self, _run: &Run) -> Result<()> {
        Ok(())
    }
}

/// Ignores all events and saves nothing.
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
