//! Converts a model's deltas to chunks of the Chat Completions API. Pure: ids and time are arguments.

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::error::{Error, ErrorKind};
use crate::message::Usage;
use crate::model::{Delta, EndReason, TextCursor, read_arguments};

use super::super::events::{code_of, strict_fault, strict_tools};
use super::{ChatRequest, UsageChunk};

/// Turns the deltas of one reply into chunks. Call [`start`](Self::start), then [`push`](Self::push) for each delta,
/// then [`end`](Self::end), however the stream ended; behind the last chunk all of them give nothing more.
///
/// A reply ends with one chunk that has a `finish_reason`, then the tokens if they were asked for, then the text
/// `"[DONE]"`; or with one object that has an `error`, and nothing behind it.
#[derive(Debug)]
pub struct ChatEvents {
    id: String,
    model: String,
    created: u64,
    /// Part of every id of this reply.
    stem: String,
    usage_chunk: UsageChunk,
    usage: Option<Usage>,
    cursor: TextCursor,
    text: String,
    calls: Vec<Call>,
    strict: Vec<(String, Validator)>,
    chunks: Vec<Value>,
    outcome: Option<Outcome>,
}

#[derive(Debug)]
struct Call {
    /// In the numbering of the deltas.
    index: usize,
    id: String,
    name: String,
    /// All that was sent.
    arguments: String,
    /// What may have to be written otherwise: servers also write no arguments as `null`, and an object as a string.
    held: String,
    is_open: bool,
}

#[derive(Debug)]
enum Outcome {
    Finished(&'static str),
    Failed(Value),
}

impl ChatEvents {
    /// For one request. `stem` makes the ids of this reply unlike those of any other: some random hexadecimal digits.
    /// `now` is in seconds since 1970.
    pub fn new(request: &ChatRequest, stem: impl Into<String>, now: u64) -> Self {
        let stem = stem.into();
        Self {
            id: format!("chatcmpl-{stem}"),
            model: request.api.model.clone(),
            created: now,
            stem,
            usage_chunk: request.usage,
            usage: None,
            cursor: TextCursor::new(),
            text: String::new(),
            calls: Vec::new(),
            strict: strict_tools(&request.api),
            chunks: Vec::new(),
            outcome: None,
        }
    }

    /// The first chunk, which says whose message it is.
    pub fn start(&mut self) -> Vec<Value> {
        self.emit(json!({"role": "assistant", "content": ""}), None);
        self.take()
    }

    /// What a delta leads to.
    pub fn push(&mut self, delta: Delta) -> Vec<Value> {
        if self.outcome.is_some() {
            return Vec::new();
        }
        match self.cursor.resolve(delta) {
            Delta::Text { text } => self.add_text(&text),
            // A block that is no call is still what the model wrote; a call that had begun stays open, and so the
            // reply cannot end well.
            Delta::CallFault { index, raw, .. } if self.open_call(index).is_none() => self.add_text(&raw),
            Delta::CallStart { index, id, name } => self.start_call(index, id, name),
            Delta::CallArguments { index, text } => self.add_arguments(index, &text),
            Delta::CallEnd { index, .. } => self.end_call(index),
            Delta::Usage(usage) => self.usage = Some(usage),
            Delta::End(reason) => self.finish(reason),
            _ => {}
        }
        self.take()
    }

    /// The stream is over: with an error, or without one, which is an error too if no [`Delta::End`] came before.
    pub fn end(&mut self, error: Option<&Error>) -> Vec<Value> {
        if self.outcome.is_none() {
            match error {
                Some(error) => self.fail(code_of(error.kind()), &error.text_with_source()),
                None => {
                    let cut = Error::new(ErrorKind::CutStream, "the backend's stream ended early");
                    self.fail(code_of(cut.kind()), &cut.text_with_source());
                }
            }
        }
        self.take()
    }

    /// Whether the last chunk was given.
    pub fn is_over(&self) -> bool {
        self.outcome.is_some()
    }

    /// The whole object, for clients that do not stream: a `chat.completion`, or an object with an `error`. `None`
    /// before the end.
    pub fn completion(&self) -> Option<Value> {
        let finish_reason = match self.outcome.as_ref()? {
            Outcome::Finished(reason) => reason,
            Outcome::Failed(error) => return Some(error.clone()),
        };
        let calls = self.calls.iter().map(|call| {
            json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}})
        });
        let calls: Vec<Value> = calls.collect();
        let content = if self.text.is_empty() && !calls.is_empty() { Value::Null } else { json!(self.text) };
        let mut message = json!({"role": "assistant", "content": content, "refusal": null});
        if !calls.is_empty() {
            message["tool_calls"] = json!(calls);
        }
        let choice = json!({"index": 0, "message": message, "finish_reason": finish_reason, "logprobs": null});
        Some(json!({
            "id": self.id, "object": "chat.completion", "created": self.created, "model": self.model,
            "choices": [choice], "usage": self.usage_object(),
        }))
    }

    fn take(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.chunks)
    }

    fn emit(&mut self, delta: Value, finish_reason: Option<&str>) {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": null});
        let chunk = self.chunk(json!([choice]));
        self.chunks.push(chunk);
    }

    fn chunk(&self, choices: Value) -> Value {
        let mut chunk = json!({
            "id": self.id, "object": "chat.completion.chunk", "created": self.created, "model": self.model,
            "choices": choices,
        });
        if self.usage_chunk == UsageChunk::Sent {
            chunk["usage"] = Value::Null;
        }
        chunk
    }

    fn add_text(&mut self, text: &str) {
        if !text.is_empty() {
            self.text.push_str(text);
            self.emit(json!({"content": text}), None);
        }
    }

    fn open_call(&self, wanted: usize) -> Option<usize> {
        self.calls.iter().rposition(|call| call.is_open && call.index == wanted)
    }

    fn start_call(&mut self, index: usize, id: String, name: String) {
        let at = self.calls.len();
        // Some servers give all calls of a reply one id.
        let is_used = self.calls.iter().any(|call| call.id == id);
        let id = if id.is_empty() || is_used { format!("call_{}{:04x}", self.stem, at + 1) } else { id };
        let call = json!({
            "index": at, "id": id, "type": "function", "function": {"name": name, "arguments": ""},
        });
        self.emit(json!({"tool_calls": [call]}), None);
        self.calls.push(Call { index, id, name, arguments: String::new(), held: String::new(), is_open: true });
    }

    fn add_arguments(&mut self, index: usize, text: &str) {
        let Some(at) = self.open_call(index) else { return };
        let call = &mut self.calls[at];
        if !call.arguments.is_empty() {
            self.send_arguments(at, text);
            return;
        }
        call.held.push_str(text);
        if call.held.trim_start().starts_with('{') {
            let held = std::mem::take(&mut call.held);
            self.send_arguments(at, &held);
        }
    }

    fn send_arguments(&mut self, at: usize, text: &str) {
        if !text.is_empty() {
            self.calls[at].arguments.push_str(text);
            self.emit(json!({"tool_calls": [{"index": at, "function": {"arguments": text}}]}), None);
        }
    }

    fn end_call(&mut self, index: usize) {
        let Some(at) = self.open_call(index) else { return };
        let call = &mut self.calls[at];
        call.is_open = false;
        if call.arguments.is_empty() {
            let held = std::mem::take(&mut call.held);
            let written = read_arguments(&held).map_or(held, |object| object.to_string());
            self.send_arguments(at, &written);
        }
        let call = &self.calls[at];
        if let Some(fault) = strict_fault(&self.strict, &call.name, &call.arguments) {
            self.fail("server_error", &fault);
        }
    }

    fn finish(&mut self, reason: EndReason) {
        let finish_reason = match reason {
            EndReason::Length => "length",
            EndReason::Filtered => "content_filter",
            EndReason::Complete | EndReason::Refused => match self.calls.iter().find(|call| call.is_open) {
                Some(call) => {
                    let message = format!("the model's call of {} is incomplete", call.name);
                    return self.fail("server_error", &message);
                }
                None if self.calls.is_empty() => "stop",
                None => "tool_calls",
            },
        };
        self.emit(json!({}), Some(finish_reason));
        if self.usage_chunk == UsageChunk::Sent {
            let mut chunk = self.chunk(json!([]));
            chunk["usage"] = self.usage_object();
            self.chunks.push(chunk);
        }
        self.chunks.push(json!("[DONE]"));
        self.outcome = Some(Outcome::Finished(finish_reason));
    }

    fn fail(&mut self, code: &str, message: &str) {
        let error = json!({"error": {"message": message, "type": "server_error", "param": null, "code": code}});
        self.chunks.push(error.clone());
        self.outcome = Some(Outcome::Failed(error));
    }

    fn usage_object(&self) -> Value {
        let usage = self.usage.unwrap_or_default();
        json!({
            "prompt_tokens": usage.input,
            "prompt_tokens_details": {"cached_tokens": usage.cached},
            "completion_tokens": usage.output,
            "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
            "total_tokens": usage.total(),
        })
    }
}

/// A chunk as it goes over the wire.
pub fn to_sse(chunk: &Value) -> String {
    match chunk {
        Value::String(mark) => format!("data: {mark}\n\n"),
        chunk => format!("data: {chunk}\n\n"),
    }
}
