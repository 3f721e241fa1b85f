//! Converts the events of the Responses API to chunks of the Chat Completions API. Pure: ids and time are arguments.

use agent_loop::{Delta, Error};
use serde_json::{Value, json};

use crate::ResponseEvents;

use super::{ChatRequest, UsageChunk};

/// Converts the deltas of one reply to chunks. Call [`start`](Self::start), then [`push`](Self::push) for each delta,
/// then [`end`](Self::end), however the stream ended. After the last chunk they return nothing more.
///
/// A reply ends with one chunk that has a `finish_reason`, then the tokens if they were requested, then the text
/// `"[DONE]"`; or with one object that has an `error`, and nothing after it.
#[derive(Debug)]
pub struct ChatEvents {
    events: ResponseEvents,
    id: String,
    model: String,
    created: u64,
    usage_chunk: UsageChunk,
    /// The position of each call in the output of the response.
    calls: Vec<Value>,
    completion: Option<Value>,
}

impl ChatEvents {
    /// Creates the converter for one request. `stem` makes the ids of this reply unique: use some random hexadecimal
    /// digits. `now` is in seconds since 1970.
    pub fn new(request: &ChatRequest, stem: impl Into<String>, now: u64) -> Self {
        let stem = stem.into();
        Self {
            id: format!("chatcmpl-{stem}"),
            model: request.api.model.clone(),
            created: now,
            usage_chunk: request.usage,
            events: ResponseEvents::new(&request.api, stem, now),
            calls: Vec::new(),
            completion: None,
        }
    }

    /// Returns the first chunk, which has the role of the message.
    pub fn start(&mut self) -> Vec<Value> {
        self.convert(ResponseEvents::start)
    }

    /// Returns the chunks for a delta.
    pub fn push(&mut self, delta: Delta) -> Vec<Value> {
        self.convert(|events| events.push(delta))
    }

    /// Ends the stream, with an error or without one. A missing error is an error too if no [`Delta::End`] came before.
    pub fn end(&mut self, error: Option<&Error>) -> Vec<Value> {
        self.convert(|events| events.end(error))
    }

    /// Returns whether the last chunk was returned.
    pub fn is_over(&self) -> bool {
        self.completion.is_some()
    }

    /// Returns the whole object, for clients that do not stream: a `chat.completion`, or an object with an `error`.
    /// `None` before the end.
    pub fn completion(&self) -> Option<&Value> {
        self.completion.as_ref()
    }

    /// Converts events of the Responses API to chunks.
    pub(crate) fn convert(&mut self, say: impl FnOnce(&mut ResponseEvents) -> Vec<Value>) -> Vec<Value> {
        say(&mut self.events).iter().flat_map(|event| self.chunks_of(event)).collect()
    }

    fn chunks_of(&mut self, event: &Value) -> Vec<Value> {
        let item = &event["item"];
        let delta = match event["type"].as_str().unwrap_or_default() {
            "response.created" => json!({"role": "assistant", "content": ""}),
            "response.output_text.delta" => json!({"content": event["delta"]}),
            "response.output_item.added" if item["type"] == "function_call" => {
                let mut call = call_object(item);
                call["index"] = json!(self.calls.len());
                self.calls.push(event["output_index"].clone());
                json!({"tool_calls": [call]})
            }
            "response.function_call_arguments.delta" => {
                let index = self.calls.iter().position(|call| *call == event["output_index"]);
                json!({"tool_calls": [{"index": index, "function": {"arguments": event["delta"]}}]})
            }
            "response.completed" | "response.incomplete" | "response.failed" => return self.finish(&event["response"]),
            _ => return Vec::new(),
        };
        vec![self.chunk(json!([{"index": 0, "delta": delta, "finish_reason": null, "logprobs": null}]))]
    }

    fn chunk(&self, choices: Value) -> Value {
        let mut chunk = self.object("chat.completion.chunk", choices);
        if self.usage_chunk == UsageChunk::Sent {
            chunk["usage"] = Value::Null;
        }
        chunk
    }

    fn object(&self, kind: &str, choices: Value) -> Value {
        json!({"id": self.id, "object": kind, "created": self.created, "model": self.model, "choices": choices})
    }

    fn finish(&mut self, response: &Value) -> Vec<Value> {
        let items = |kind: &'static str| {
            response["output"].as_array().into_iter().flatten().filter(move |item| item["type"] == kind)
        };
        let half = items("function_call").find(|call| call["status"] != "completed");
        let finish_reason = match (response["incomplete_details"]["reason"].as_str(), half) {
            _ if response["error"].is_object() => {
                return self.fail(&response["error"]["code"], &response["error"]["message"]);
            }
            (Some("max_output_tokens"), _) => "length",
            (Some(_), _) => "content_filter",
            (None, Some(call)) => {
                let message =
                    format!("the model's call of {} is incomplete", call["name"].as_str().unwrap_or_default());
                return self.fail(&json!("server_error"), &json!(message));
            }
            (None, None) if self.calls.is_empty() => "stop",
            (None, None) => "tool_calls",
        };
        let text: String = items("message").filter_map(|item| item["content"][0]["text"].as_str()).collect();
        let content = if text.is_empty() && !self.calls.is_empty() { Value::Null } else { json!(text) };
        let mut message = json!({"role": "assistant", "content": content, "refusal": null});
        if !self.calls.is_empty() {
            message["tool_calls"] = items("function_call").map(call_object).collect();
        }
        let choice = |field: &str, value: Value| json!([{"index": 0, field: value, "finish_reason": finish_reason, "logprobs": null}]);
        let usage = usage_object(&response["usage"]);
        let mut completion = self.object("chat.completion", choice("message", message));
        completion["usage"] = usage.clone();
        self.completion = Some(completion);
        let mut chunks = vec![self.chunk(choice("delta", json!({})))];
        if self.usage_chunk == UsageChunk::Sent {
            let mut chunk = self.chunk(json!([]));
            chunk["usage"] = usage;
            chunks.push(chunk);
        }
        chunks.push(json!("[DONE]"));
        chunks
    }

    fn fail(&mut self, code: &Value, message: &Value) -> Vec<Value> {
        let error = json!({"error": {"message": message, "type": "server_error", "param": null, "code": code}});
        self.completion = Some(error.clone());
        vec![error]
    }
}

/// Converts an item of the Responses API to a call.
fn call_object(item: &Value) -> Value {
    let function = json!({"name": item["name"], "arguments": item["arguments"]});
    json!({"id": item["call_id"], "type": "function", "function": function})
}

fn usage_object(usage: &Value) -> Value {
    if usage.is_null() {
        return Value::Null;
    }
    json!({
        "prompt_tokens": usage["input_tokens"],
        "prompt_tokens_details": usage["input_tokens_details"],
        "completion_tokens": usage["output_tokens"],
        "completion_tokens_details": usage["output_tokens_details"],
        "total_tokens": usage["total_tokens"],
    })
}

/// Returns a chunk in the format of server-sent events.
pub fn to_sse(chunk: &Value) -> String {
    match chunk {
        Value::String(mark) => format!("data: {mark}\n\n"),
        chunk => format!("data: {chunk}\n\n"),
    }
}
