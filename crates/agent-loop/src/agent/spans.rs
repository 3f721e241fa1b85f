//! Spans for tracing, with the names and attributes of OpenTelemetry's semantic conventions for generative AI. They
//! contain no prompts or replies. Without a subscriber they cost nothing.

use tracing::field::{Empty, debug};
use tracing::{Span, info_span};

use crate::error::Error;
use crate::message::{Part, ToolCall};
use crate::model::{EndReason, Model, Reply, Request};
use crate::run::Run;

/// Returns the span of a run while it is driven.
pub(super) fn invoke_agent(run: &Run) -> Span {
    info_span!(
        "invoke_agent",
        otel.kind = "internal",
        gen_ai.operation.name = "invoke_agent",
        gen_ai.conversation.id = %run.id(),
    )
}

/// Returns the span of one request to the model.
pub(super) fn chat(model: &dyn Model, request: &Request) -> Span {
    info_span!(
        "chat",
        otel.name = format!("chat {}", model.name()),
        otel.kind = "client",
        otel.status_code = Empty,
        gen_ai.operation.name = "chat",
        gen_ai.provider.name = model.provider(),
        gen_ai.request.model = model.name(),
        gen_ai.request.max_tokens = request.max_output_tokens,
        gen_ai.request.temperature = request.temperature,
        gen_ai.request.top_p = request.settings.top_p,
        gen_ai.request.seed = request.settings.seed,
        gen_ai.response.finish_reasons = Empty,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        error.type = Empty,
    )
}

/// Records the outcome of a request.
pub(super) fn record_reply(span: &Span, reply: Result<&Reply, &Error>) {
    match reply {
        Ok(reply) => {
            let reason = match reply.end {
                EndReason::Complete if reply.parts.iter().any(|part| matches!(part, Part::Call(_))) => "tool_calls",
                EndReason::Complete => "stop",
                EndReason::Length => "length",
                EndReason::Filtered | EndReason::Refused => "content_filter",
            };
            span.record("gen_ai.response.finish_reasons", debug([reason]));
            if let Some(usage) = reply.usage {
                span.record("gen_ai.usage.input_tokens", usage.input)
                    .record("gen_ai.usage.output_tokens", usage.output);
            }
        }
        Err(error) => failed(span, &format!("{:?}", error.kind())),
    }
}

/// Returns the span of one tool call.
pub(super) fn execute_tool(call: &ToolCall) -> Span {
    info_span!(
        "execute_tool",
        otel.name = format!("execute_tool {}", call.name),
        otel.kind = "internal",
        otel.status_code = Empty,
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = call.name,
        gen_ai.tool.call.id = %call.id,
        gen_ai.tool.type = "function",
        error.type = Empty,
    )
}

/// Records that the operation of a span has failed.
pub(super) fn failed(span: &Span, kind: &str) {
    span.record("otel.status_code", "ERROR").record("error.type", kind);
}
