//! `ask --output-format stream-json`: events as they happen, one JSON object per line, for other programs.

use agent_loop::{Event, Status};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// A line. The last one is `end`, whatever happens.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum StreamLine<'a, R> {
    /// The first line.
    Start {
        /// The question.
        question: &'a str,
        /// The saved conversation, for `vault-agent resume`; `null` where no model is configured.
        session: Option<&'a str>,
    },
    /// More of a reply. Of several replies the last is the answer, which `end` has whole, with its citations checked.
    Text { text: &'a str },
    /// More of what the model says on the way, where its provider tells it from the answer.
    Commentary { text: &'a str },
    /// More of the model's thoughts.
    Reasoning { text: &'a str },
    /// A tool runs.
    Call { id: &'a str, tool: &'a str, args: &'a Value },
    /// A call has its result, or was denied or cancelled.
    CallEnded {
        id: &'a str,
        tool: &'a str,
        /// How: ok, error, denied or cancelled.
        #[schemars(with = "String")]
        status: Status,
    },
    /// A fault that does not end the question, such as a request that is made again.
    Warning { message: String },
    /// Tokens of the reply so far.
    Usage { input: u64, output: u64 },
    /// The last line: what `--json` prints.
    End(R),
}

/// Returns the line of an event, without a newline, or `None` if the event is of no use to other programs.
pub(super) fn line_of(event: &Event) -> Option<String> {
    let line: StreamLine<'_, Value> = match event {
        Event::Text(text) => StreamLine::Text { text },
        Event::Commentary(text) => StreamLine::Commentary { text },
        Event::Reasoning(text) => StreamLine::Reasoning { text },
        Event::ToolStarted { call, .. } => StreamLine::Call { id: &call.id.0, tool: &call.name, args: &call.arguments },
        Event::ToolFinished { result, .. } => {
            StreamLine::CallEnded { id: &result.call.0, tool: &result.name, status: result.status }
        }
        Event::Warning(message) => StreamLine::Warning { message: message.clone() },
        Event::Retry { failure, .. } => StreamLine::Warning { message: failure.to_string() },
        Event::Usage(usage) => StreamLine::Usage { input: usage.input, output: usage.output },
        _ => return None,
    };
    serde_json::to_string(&line).ok()
}
