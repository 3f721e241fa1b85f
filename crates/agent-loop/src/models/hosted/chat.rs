//! Chat Completions: OpenAI's format and the dialects of compatible servers.

use serde_json::{Map, Value, json};

use crate::error::Result;
use crate::message::{Message, Part, ToolCall, Usage};
use crate::model::{Delta, EndReason, Parallel, Request, TextCursor, ToolChoice};
use crate::schema::{Strict, WireNames};

use super::{Decode, Wire, failure};

pub(super) fn headers(key: Option<&str>) -> Vec<(String, String)> {
    key.map(|key| ("authorization".to_string(), format!("Bearer {key}"))).into_iter().collect()
}

pub(super) fn body(model: &str, request: &Request, names: &WireNames, wire: Wire) -> Value {
    let is_openai = wire == Wire::OpenAiChat;
    let mut messages: Vec<Value> =
        request.system.iter().map(|text| json!({"role": "system", "content": &**text})).collect();
    for message in request.messages.iter() {
        add_message(&mut messages, message, names);
    }
    let mut body = json!({
        "model": model,
        "messages": messages,
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    if !request.tools.is_empty() {
        let tool = |tool: &crate::tool::ToolSpec| {
            let mut function = json!({"name": names.wire(&tool.name), "description": tool.description});
            if is_openai {
                let (parameters, is_strict) = Strict::of(&tool.parameters).into_parts();
                (function["parameters"], function["strict"]) = (parameters, json!(is_strict));
            } else {
                function["parameters"] = tool.parameters.clone();
            }
            json!({"type": "function", "function": function})
        };
        body["tools"] = request.tools.iter().map(tool).collect();
        body["tool_choice"] = match &request.tool_choice {
            ToolChoice::Auto => json!("auto"),
            ToolChoice::None => json!("none"),
            ToolChoice::Required => json!("required"),
            ToolChoice::Tool(name) => json!({"type": "function", "function": {"name": names.wire(name)}}),
        };
        if request.parallel == Parallel::One {
            body["parallel_tool_calls"] = json!(false);
        }
    }
    if let Some(schema) = &request.answer_schema {
        let strict = if is_openai { Strict::of_answer(schema) } else { Strict::No(Value::clone(schema)) };
        let (schema, is_strict) = strict.into_parts();
        let shape = json!({"name": "answer", "schema": schema, "strict": is_strict});
        body["response_format"] = json!({"type": "json_schema", "json_schema": shape});
    }
    if let Some(most) = request.max_output_tokens {
        body[if is_openai { "max_completion_tokens" } else { "max_tokens" }] = json!(most);
    }
    if let Some(temperature) = request.temperature {
        body["temperature"] = json!(temperature);
    }
    body
}

fn add_message(messages: &mut Vec<Value>, message: &Message, names: &WireNames) {
    match message {
        Message::User { text } | Message::Note { text } => messages.push(json!({"role": "user", "content": text})),
        Message::Assistant { parts } => {
            let text = message.text();
            let mut out = json!({"role": "assistant", "content": text});
            let calls: Vec<Value> = message.calls().map(|call| call_object(call, names)).collect();
            if !calls.is_empty() {
                // An empty content beside calls is refused by some, null by others; null is the specification's.
                out["content"] = if text.is_empty() { Value::Null } else { json!(text) };
                out["tool_calls"] = Value::Array(calls);
            } else if text.is_empty() && parts.iter().any(|part| matches!(part, Part::Reasoning { .. })) {
                return;
            }
            messages.push(out);
        }
        Message::Results { results } => messages.extend(
            results.iter().map(|result| json!({"role": "tool", "tool_call_id": result.call, "content": result.text()})),
        ),
    }
}

fn call_object(call: &ToolCall, names: &WireNames) -> Value {
    let arguments = call.sent_arguments().to_string();
    json!({
        "id": call.id, "type": "function", "function": {"name": names.wire(&call.name), "arguments": arguments},
    })
}

/// Reads chunks. The end is known at `[DONE]` or at the end of the body, since usage comes behind the finish reason.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    calls: Vec<Call>,
    cursor: TextCursor,
    has_reasoning: bool,
    usage: Option<Usage>,
    finish: Option<EndReason>,
    is_refused: bool,
    is_done: bool,
}

#[derive(Debug)]
struct Call {
    /// The server's index, which may be that of another call.
    index: u64,
    id: String,
    arguments: String,
}

impl Decode for Decoder {
    fn event(&mut self, _: &str, data: &str) -> Result<Vec<Delta>> {
        if self.is_done {
            return Ok(Vec::new());
        }
        let chunk = super::sse::json(data)?;
        if !chunk["error"].is_null() {
            return Err(failure::in_stream(&chunk));
        }
        let choice = &chunk["choices"][0];
        let mut deltas = self.parts(&choice["delta"]);
        // Some servers tell the whole message again, with the finish reason or in a chunk of its own.
        deltas.extend(self.whole_message(&choice["message"]));
        self.finish_and_usage(choice, &chunk);
        Ok(deltas)
    }

    fn done(&mut self) -> Vec<Delta> {
        self.finish.get_or_insert(EndReason::Complete);
        self.end()
    }

    fn end(&mut self) -> Vec<Delta> {
        let Some(finish) = self.finish.filter(|_| !self.is_done) else { return Vec::new() };
        self.is_done = true;
        let calls = 0..self.calls.len();
        let mut deltas: Vec<Delta> = calls.map(|index| Delta::CallEnd { index, opaque: None }).collect();
        deltas.extend(self.usage.map(Delta::Usage));
        deltas.push(Delta::End(if self.is_refused { EndReason::Refused } else { finish }));
        deltas
    }

    fn whole(&mut self, body: &Value) -> Result<Vec<Delta>> {
        if !body["error"].is_null() {
            return Err(failure::in_stream(body));
        }
        let choice = &body["choices"][0];
        let mut deltas = self.whole_message(&choice["message"]);
        self.finish_and_usage(choice, body);
        deltas.extend(self.end());
        Ok(deltas)
    }
}

impl Decoder {
    /// What a chunk adds.
    fn parts(&mut self, delta: &Value) -> Vec<Delta> {
        let mut deltas = Vec::new();
        self.reasoning(delta, &mut deltas);
        let text = self.text(delta);
        if !text.is_empty() {
            self.cursor.new_suffix(self.cursor.bytes(), &text);
            deltas.push(Delta::Text { text });
        }
        for (position, call) in delta["tool_calls"].as_array().into_iter().flatten().enumerate() {
            self.call(position as u64, call, &mut deltas);
        }
        deltas
    }

    /// All of a message, some of which may have arrived before.
    fn whole_message(&mut self, message: &Value) -> Vec<Delta> {
        let mut deltas = Vec::new();
        if !self.has_reasoning {
            self.reasoning(message, &mut deltas);
        }
        let text = self.text(message);
        if !self.cursor.new_suffix(0, &text).is_empty() {
            deltas.push(Delta::CumulativeText { begin: 0, text });
        }
        let known = self.calls.len();
        for (position, call) in message["tool_calls"].as_array().into_iter().flatten().enumerate() {
            let id = call["id"].as_str().unwrap_or_default();
            let is_known = match id {
                "" => position < known,
                id => self.calls.iter().any(|call| call.id == id),
            };
            if !is_known {
                self.call(position as u64, call, &mut deltas);
            }
        }
        deltas
    }

    fn reasoning(&mut self, message: &Value, deltas: &mut Vec<Delta>) {
        let reasoning = [&message["reasoning_content"], &message["reasoning"]].into_iter().find_map(Value::as_str);
        if let Some(text) = reasoning.filter(|text| !text.is_empty()) {
            self.has_reasoning = true;
            deltas.push(Delta::Reasoning { text: text.into(), opaque: None });
        }
    }

    fn text(&mut self, message: &Value) -> String {
        let mut all = match &message["content"] {
            Value::String(text) => text.clone(),
            Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
            _ => String::new(),
        };
        if let Some(text) = message["refusal"].as_str().filter(|text| !text.is_empty()) {
            self.is_refused = true;
            all.push_str(text);
        }
        all
    }

    /// A fragment of a call, or a whole one.
    fn call(&mut self, position: u64, fragment: &Value, deltas: &mut Vec<Delta>) {
        let wire_index = fragment["index"].as_u64().unwrap_or(position);
        let id = fragment["id"].as_str().unwrap_or_default();
        let name = fragment["function"]["name"].as_str().unwrap_or_default();
        let arguments = match &fragment["function"]["arguments"] {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            object => object.to_string(),
        };
        let known = self.calls.iter().rposition(|call| call.index == wire_index).filter(|at| {
            let call = &self.calls[*at];
            let is_other = !id.is_empty() && id != call.id;
            // Without ids, a name behind complete arguments begins another call.
            let is_next = id.is_empty()
                && !name.is_empty()
                && serde_json::from_str::<Map<String, Value>>(&call.arguments).is_ok();
            !is_other && !is_next
        });
        let index = known.unwrap_or_else(|| {
            self.calls.push(Call { index: wire_index, id: id.into(), arguments: String::new() });
            let index = self.calls.len() - 1;
            deltas.push(Delta::CallStart { index, id: id.into(), name: name.into() });
            index
        });
        if !arguments.is_empty() {
            self.calls[index].arguments.push_str(&arguments);
            deltas.push(Delta::CallArguments { index, text: arguments });
        }
    }

    fn finish_and_usage(&mut self, choice: &Value, chunk: &Value) {
        self.finish = match choice["finish_reason"].as_str() {
            None | Some("") => self.finish,
            Some("length") => Some(EndReason::Length),
            Some("content_filter") => Some(EndReason::Filtered),
            // Which of the other words is used says nothing: calls come with `stop`, answers with `tool_calls`.
            Some(_) => Some(EndReason::Complete),
        };
        let usage = &chunk["usage"];
        if let (Some(input), Some(output)) = (usage["prompt_tokens"].as_u64(), usage["completion_tokens"].as_u64()) {
            let cached = usage["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap_or(0);
            let reasoning = usage["completion_tokens_details"]["reasoning_tokens"].as_u64().unwrap_or(0);
            self.usage = Some(Usage { input, output, cached, reasoning });
        }
    }
}
