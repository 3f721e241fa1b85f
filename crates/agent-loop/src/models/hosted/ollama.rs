//! Ollama's own chat API, whose stream is one JSON object per line.

use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::message::{Image, Message, Part, ToolCall, ToolResult, Usage};
use crate::model::{Delta, EndReason, ReasoningEffort, Request, ToolChoice};
use crate::schema::WireNames;
use crate::tool::ToolSpec;

use super::body_text::BodyText;
use super::deltas::Deltas;
use super::without_nulls::without_nulls;
use super::{Decode, Provider, ReturnReasoning, Streaming, failure};

pub(super) fn fields(model: &str, request: &Request, names: &WireNames, provider: &Provider) -> Value {
    let settings = &request.settings;
    // The API cannot forbid calls, but it can be given no tools.
    let has_tools = !request.tools.is_empty() && request.tool_choice != ToolChoice::None;
    let tool = |tool: &ToolSpec| {
        let function =
            json!({"name": names.wire(&tool.name), "description": tool.description, "parameters": tool.parameters});
        json!({"type": "function", "function": function})
    };
    let options = without_nulls(json!({
        "num_ctx": settings.context_length,
        "num_predict": request.max_output_tokens,
        "temperature": request.temperature,
        "top_p": settings.top_p,
        "seed": settings.seed,
        "stop": (!settings.stop.is_empty()).then_some(&settings.stop),
    }));
    without_nulls(json!({
        "model": model,
        "stream": provider.streaming == Streaming::Yes,
        "tools": has_tools.then(|| request.tools.iter().map(tool).collect::<Value>()),
        "think": settings.reasoning_effort.map(think),
        // Every token would have to match the shape, including those of calls.
        "format": request.answer_schema.as_deref().filter(|_| !has_tools),
        "options": (options != json!({})).then_some(options),
        "keep_alive": settings.keep_alive,
        // Otherwise a conversation that is too long would silently lose its beginning.
        "truncate": false,
    }))
}

pub(super) fn add_messages(body: &mut BodyText, request: &Request, names: &WireNames, provider: &Provider) {
    body.extend(request.system.iter().map(|text| json!({"role": "system", "content": &**text})));
    for message in request.messages.iter() {
        add_message(body, message, names, provider);
    }
}

/// Returns a level, which some models accept; for the others any value except `false` enables thinking.
fn think(effort: ReasoningEffort) -> Value {
    match effort {
        ReasoningEffort::None => json!(false),
        ReasoningEffort::Minimal => json!("low"),
        ReasoningEffort::XHigh | ReasoningEffort::Max => json!("high"),
        // The API uses the same names.
        word => json!(word),
    }
}

fn add_message(body: &mut BodyText, message: &Message, names: &WireNames, provider: &Provider) {
    match message {
        Message::User { text, images } => {
            // Images given by URL were rejected before.
            let data =
                |image: &Image| if let Image::Inline { base64, .. } = image { Some(json!(base64)) } else { None };
            let images: Vec<Value> = images.iter().filter_map(data).collect();
            let images = (!images.is_empty()).then_some(images);
            body.push(without_nulls(json!({"role": "user", "content": text, "images": images})));
        }
        Message::Note { text } => body.push(json!({"role": "user", "content": text})),
        Message::Assistant { parts } => {
            let call = |call: &ToolCall| {
                let function = json!({"name": names.wire(&call.name), "arguments": call.sent_object()});
                json!({"id": call.id, "type": "function", "function": function})
            };
            let calls: Vec<Value> = message.calls().map(call).collect();
            let (text, thinking) = (message.text(), thinking(parts, provider));
            if text.is_empty() && calls.is_empty() {
                return;
            }
            let calls = (!calls.is_empty()).then_some(calls);
            let message = json!({"role": "assistant", "content": text, "thinking": thinking, "tool_calls": calls});
            body.push(without_nulls(message));
        }
        Message::Results { results } => body.extend(results.iter().map(|result: &ToolResult| {
            let name = names.wire(&result.name);
            json!({"role": "tool", "tool_name": name, "tool_call_id": result.call, "content": result.text()})
        })),
    }
}

/// Returns the thoughts that came from this provider.
fn thinking(parts: &[Part], provider: &Provider) -> Option<String> {
    let own = |part: &Part| match part {
        Part::Reasoning { opaque: Some(opaque), .. } if opaque["from"] == *provider.name => {
            opaque["thinking"].as_str().map(str::to_owned)
        }
        _ => None,
    };
    let thinking: String = parts.iter().filter_map(own).collect();
    (!thinking.is_empty() && provider.return_reasoning != ReturnReasoning::Never).then_some(thinking)
}

/// Adds a remedy to an error: a model has to be pulled before it can be used.
pub(super) fn with_remedy(error: Error, model: &str) -> Error {
    if error.status() == Some(404) && error.message().contains("not found") && !error.message().contains("page") {
        return error.with_remedy(format!("pull it first: `ollama pull {model}`"));
    }
    error
}

/// Decodes lines. The last one is marked as done.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    provider: String,
    calls: usize,
    thinking: String,
}

impl Decode for Decoder {
    fn event(&mut self, line: &Value, out: &mut Deltas) -> Result<()> {
        if !line["error"].is_null() {
            return Err(failure::in_stream(line));
        }
        let message = &line["message"];
        let piece = |field: &str| message[field].as_str().unwrap_or_default();
        self.thinking.push_str(piece("thinking"));
        out.reasoning(piece("thinking"), None);
        let calls = message["tool_calls"].as_array().map_or(&[][..], Vec::as_slice);
        if !piece("content").is_empty() || !calls.is_empty() || line["done"] == true {
            self.end_thinking(out);
        }
        out.text(piece("content"));
        for call in calls {
            let function = &call["function"];
            out.call_start(self.calls, &call["id"], &function["name"]);
            match &function["arguments"] {
                Value::String(text) => out.call_arguments(self.calls, text),
                Value::Null => {}
                object => out.call_arguments(self.calls, &object.to_string()),
            }
            out.call_end(self.calls, None);
            self.calls += 1;
        }
        if line["done"] == true {
            let count = |field: &str| line[field].as_u64();
            if let (input, Some(output)) = (count("prompt_eval_count"), count("eval_count")) {
                // If the prompt was cached, its count is missing.
                out.push(Delta::Usage(Usage::default().input(input.unwrap_or(0)).output(output)));
            }
            out.push(Delta::End(if line["done_reason"] == "length" { EndReason::Length } else { EndReason::Complete }));
        }
        Ok(())
    }

    fn whole(&mut self, body: &Value, out: &mut Deltas) -> Result<()> {
        self.event(body, out)?;
        if out.is_over() {
            return Ok(());
        }
        if !body["message"].is_object() {
            return Err(failure::no_reply());
        }
        self.end_thinking(out);
        out.push(Delta::End(EndReason::Complete));
        Ok(())
    }
}

impl Decoder {
    pub(super) fn new(provider: &str) -> Self {
        Self { provider: provider.into(), ..Self::default() }
    }

    /// Ends the thoughts so far as one part of the reply.
    fn end_thinking(&mut self, out: &mut Deltas) {
        if !self.thinking.is_empty() {
            let thinking = std::mem::take(&mut self.thinking);
            out.reasoning("", Some(json!({"from": self.provider, "thinking": thinking})));
        }
    }
}
