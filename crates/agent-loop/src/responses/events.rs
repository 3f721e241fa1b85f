//! Converts a model's deltas to events of the Responses API. Pure: ids and time are arguments.

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::error::{Error, ErrorKind};
use crate::message::Usage;
use crate::model::{Delta, EndReason, TextCursor, read_arguments};
use crate::tool::{compile, issues_of};

use super::ApiRequest;
use super::object::{Frame, call_item, message_item, text_part};

/// Turns the deltas of one reply into events. Call [`start`](Self::start), then [`push`](Self::push) for each delta,
/// then [`end`](Self::end), however the stream ended; behind the terminal event all of them give nothing more.
#[derive(Debug)]
pub struct ResponseEvents {
    frame: Frame,
    /// Part of every id of this response.
    stem: String,
    next_sequence: u64,
    next_id: u64,
    output: Vec<Value>,
    open: Vec<Item>,
    cursor: TextCursor,
    usage: Option<Usage>,
    strict: Vec<(String, Validator)>,
    events: Vec<Value>,
    last: Option<Value>,
}

/// An item that has begun and has not ended.
#[derive(Debug)]
struct Item {
    id: String,
    output_index: usize,
    body: Body,
}

#[derive(Debug)]
enum Body {
    Message { text: String },
    Call { index: usize, call_id: String, name: String, arguments: String },
}

impl ResponseEvents {
    /// For one request. `stem` makes the ids of this response unlike those of any other: some random hexadecimal
    /// digits. `now` is in seconds since 1970.
    pub fn new(request: &ApiRequest, stem: impl Into<String>, now: u64) -> Self {
        let stem = stem.into();
        let frame = Frame {
            id: format!("resp_{stem}"),
            model: request.model.clone(),
            created_at: now,
            echo: request.echo.clone(),
        };
        Self {
            frame,
            stem,
            next_sequence: 0,
            next_id: 0,
            output: Vec::new(),
            open: Vec::new(),
            cursor: TextCursor::new(),
            usage: None,
            strict: strict_tools(request),
            events: Vec::new(),
            last: None,
        }
    }

    /// The first events.
    pub fn start(&mut self) -> Vec<Value> {
        let response = self.frame.response("in_progress", &[], None, json!({}));
        self.emit("response.created", json!({"response": response}));
        self.emit("response.in_progress", json!({"response": response}));
        self.take()
    }

    /// What a delta leads to.
    pub fn push(&mut self, delta: Delta) -> Vec<Value> {
        if self.last.is_some() {
            return Vec::new();
        }
        match self.cursor.resolve(delta) {
            Delta::Text { text } => self.text(&text),
            // A block that is no call is still what the model wrote.
            Delta::CallFault { index, raw, .. } => match self.call_at(index) {
                Some(at) => self.close(at, "incomplete"),
                None => self.text(&raw),
            },
            Delta::CallStart { index, id, name } => self.start_call(index, id, name),
            Delta::CallArguments { index, text } => self.arguments(index, &text),
            Delta::CallEnd { index, .. } => self.end_call(index),
            Delta::Usage(usage) => self.usage = Some(usage),
            Delta::CumulativeText { .. } | Delta::Reasoning { .. } | Delta::Progress => {}
            Delta::End(reason) => self.finish(reason),
        }
        self.take()
    }

    /// The stream is over: with an error, or without one, which is an error too if no [`Delta::End`] came before.
    pub fn end(&mut self, error: Option<&Error>) -> Vec<Value> {
        if self.last.is_none() {
            let cut;
            let error = match error {
                Some(error) => error,
                None => {
                    cut = Error::new(ErrorKind::CutStream, "the backend's stream ended early");
                    &cut
                }
            };
            self.fail(code_of(error.kind()), &error.text_with_source());
        }
        self.take()
    }

    /// The response object of the terminal event, for clients that do not stream; `None` before it.
    pub fn response(&self) -> Option<&Value> {
        self.last.as_ref().map(|event| &event["response"])
    }

    fn take(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.events)
    }

    fn emit(&mut self, kind: &str, mut fields: Value) {
        fields["type"] = json!(kind);
        fields["sequence_number"] = json!(self.next_sequence);
        self.next_sequence += 1;
        self.events.push(fields);
    }

    fn new_id(&mut self, kind: &str) -> String {
        self.next_id += 1;
        format!("{kind}_{}{:04x}", self.stem, self.next_id)
    }

    /// Opens an item; the place in the output is its own from here on.
    fn open(&mut self, id: String, body: Body) {
        let output_index = self.output.len();
        let item = match &body {
            Body::Message { .. } => message_item(&id, "in_progress", None),
            Body::Call { call_id, name, .. } => call_item(&id, call_id, name, "in_progress", ""),
        };
        self.output.push(item.clone());
        self.emit("response.output_item.added", json!({"output_index": output_index, "item": item}));
        self.open.push(Item { id, output_index, body });
    }

    fn text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if !self.open.iter().any(|item| matches!(item.body, Body::Message { .. })) {
            let id = self.new_id("msg");
            self.open(id, Body::Message { text: String::new() });
            let part = json!({"content_index": 0, "part": text_part("")});
            self.emit_at_last("response.content_part.added", part);
        }
        if let Some(Item { body: Body::Message { text: all }, .. }) = self.open.last_mut() {
            all.push_str(text);
        }
        let delta = json!({"content_index": 0, "delta": text, "logprobs": []});
        self.emit_at_last("response.output_text.delta", delta);
    }

    /// An event about the item that was opened last.
    fn emit_at_last(&mut self, kind: &str, mut fields: Value) {
        if let Some(item) = self.open.last() {
            fields["item_id"] = json!(item.id);
            fields["output_index"] = json!(item.output_index);
            self.emit(kind, fields);
        }
    }

    fn start_call(&mut self, index: usize, id: String, name: String) {
        // A message is closed before a call opens; calls of one reply may be open side by side.
        while let Some(at) = self.open.iter().position(|item| matches!(item.body, Body::Message { .. })) {
            self.close(at, "completed");
        }
        // Some servers give all calls of a reply one id.
        let is_used = self.output.iter().any(|item| item["call_id"] == *id);
        let call_id = if id.is_empty() || is_used { self.new_id("call") } else { id };
        let id = self.new_id("fc");
        self.open(id, Body::Call { index, call_id, name, arguments: String::new() });
    }

    fn call_at(&self, wanted: usize) -> Option<usize> {
        self.open.iter().position(|item| matches!(item.body, Body::Call { index, .. } if index == wanted))
    }

    fn arguments(&mut self, index: usize, text: &str) {
        let Some(at) = self.call_at(index).filter(|_| !text.is_empty()) else { return };
        let item = &mut self.open[at];
        if let Body::Call { arguments, .. } = &mut item.body {
            arguments.push_str(text);
        }
        let fields = json!({"item_id": item.id, "output_index": item.output_index, "delta": text});
        self.emit("response.function_call_arguments.delta", fields);
    }

    fn end_call(&mut self, index: usize) {
        let Some(at) = self.call_at(index) else { return };
        // Nothing, `null`, and an object in a string are all ways in which servers write an object.
        if let Body::Call { arguments, .. } = &mut self.open[at].body
            && !arguments.trim_start().starts_with('{')
            && let Ok(object) = read_arguments(arguments)
        {
            *arguments = object.to_string();
        }
        let fault = self.strict_fault(at);
        self.close(at, if fault.is_some() { "incomplete" } else { "completed" });
        if let Some(fault) = fault {
            self.fail("server_error", &fault);
        }
    }

    /// Why the arguments of a strict tool do not fit.
    fn strict_fault(&self, at: usize) -> Option<String> {
        let Body::Call { name, arguments, .. } = &self.open[at].body else { return None };
        strict_fault(&self.strict, name, arguments)
    }

    fn close_all(&mut self, status: &str) {
        while !self.open.is_empty() {
            self.close(0, status);
        }
    }

    fn close(&mut self, at: usize, status: &str) {
        let Item { id, output_index, body } = self.open.remove(at);
        let here = |mut fields: Value| {
            fields["item_id"] = json!(id);
            fields["output_index"] = json!(output_index);
            fields
        };
        let item = match body {
            Body::Message { text } => {
                let done = json!({"content_index": 0, "text": text, "logprobs": []});
                self.emit("response.output_text.done", here(done));
                let part = json!({"content_index": 0, "part": text_part(&text)});
                self.emit("response.content_part.done", here(part));
                message_item(&id, status, Some(&text))
            }
            Body::Call { call_id, name, arguments, .. } => {
                let done = json!({"arguments": arguments, "name": name});
                self.emit("response.function_call_arguments.done", here(done));
                call_item(&id, &call_id, &name, status, &arguments)
            }
        };
        self.output[output_index] = item.clone();
        self.emit("response.output_item.done", json!({"output_index": output_index, "item": item}));
    }

    fn finish(&mut self, reason: EndReason) {
        let (kind, status, more) = match reason {
            EndReason::Complete | EndReason::Refused => ("response.completed", "completed", json!({})),
            EndReason::Length => {
                let details = json!({"incomplete_details": {"reason": "max_output_tokens"}});
                ("response.incomplete", "incomplete", details)
            }
            EndReason::Filtered => {
                let details = json!({"incomplete_details": {"reason": "content_filter"}});
                ("response.incomplete", "incomplete", details)
            }
        };
        // A call that never ended is incomplete, whatever the reply says of itself.
        while let Some(at) = self.open.iter().position(|item| matches!(item.body, Body::Call { .. })) {
            self.close(at, "incomplete");
        }
        self.close_all(status);
        let usage = Some(self.usage.unwrap_or_default());
        let response = self.frame.response(status, &self.output, usage, more);
        self.terminal(kind, response);
    }

    fn fail(&mut self, code: &str, message: &str) {
        self.close_all("incomplete");
        let more = json!({"error": {"code": code, "message": message}});
        let response = self.frame.response("failed", &self.output, self.usage, more);
        self.terminal("response.failed", response);
    }

    fn terminal(&mut self, kind: &str, response: Value) {
        self.emit(kind, json!({"response": response}));
        self.last = self.events.last().cloned();
    }
}

/// The strict tools of a request, with their schemas compiled.
pub(super) fn strict_tools(request: &ApiRequest) -> Vec<(String, Validator)> {
    let specs = request.request.tools.iter().filter(|tool| request.strict.contains(&tool.name));
    specs.filter_map(|tool| Some((tool.name.clone(), compile(&tool.parameters).ok()?))).collect()
}

/// Why the arguments of a call do not fit, where its tool is strict.
pub(super) fn strict_fault(strict: &[(String, Validator)], name: &str, arguments: &str) -> Option<String> {
    let (_, check) = strict.iter().find(|(strict, _)| strict == name)?;
    let faults = match serde_json::from_str(arguments) {
        Ok(value) => issues_of(check, &value).iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
        Err(error) => format!("not valid JSON: {error}"),
    };
    (!faults.is_empty()).then(|| format!("the model's arguments of the strict tool {name} do not fit: {faults}"))
}

/// The API's code for a failure behind the first event.
pub(super) fn code_of(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::RateLimit => "rate_limit_exceeded",
        ErrorKind::ContextTooLong => "context_length_exceeded",
        ErrorKind::BadRequest => "invalid_prompt",
        _ => "server_error",
    }
}

/// An event as it goes over the wire.
pub fn to_sse(event: &Value) -> String {
    format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or("message"))
}
