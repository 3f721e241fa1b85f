//! Converts a model's deltas to events of the Responses API. Pure: ids and time are arguments.

use std::collections::{HashMap, HashSet};

use agent_loop::{
    CallId, Delta, EndReason, Error, ErrorKind, SchemaCheck, TextCursor, TextPhase, ToolCall, ToolChoice, Usage,
};
use serde_json::{Map, Value, json};

use crate::request::known_name;
use crate::stop_sequences::StopSequences;
use crate::{ApiRequest, StrictTools};

/// Converts the deltas of one reply to events. Call [`start`](Self::start), then [`push`](Self::push) for each delta,
/// then [`end`](Self::end), however the stream ended. After the terminal event they return nothing more.
#[derive(Debug)]
pub struct ResponseEvents {
    /// A part of every id of this response.
    stem: String,
    model: String,
    created_at: u64,
    /// Fields of the request that the response repeats.
    echo: Map<String, Value>,
    strict: Vec<(String, SchemaCheck)>,
    /// Whether arguments that do not fit the schema of a strict tool fail the reply.
    is_enforced: bool,
    /// The names of the offered tools.
    offered: HashSet<String>,
    choice: ToolChoice,
    /// The ids of all calls of the conversation.
    taken: HashSet<CallId>,
    stop: StopSequences,
    /// The same as in the request.
    namespaced: HashMap<String, (String, String)>,
    next_sequence: u64,
    next_id: u64,
    /// All items that have started, in their present state.
    output: Vec<Value>,
    /// The items that have not ended, oldest first.
    open: Vec<OpenItem>,
    cursor: TextCursor,
    /// Blank text without an open message. It starts a message only if other text follows.
    blank: String,
    /// The purpose of the next text, if the backend reports it.
    phase: Option<TextPhase>,
    /// The name of a call that was left out because calls were not allowed.
    unwanted: Option<String>,
    usage: Option<Usage>,
    events: Vec<Value>,
    warnings: Vec<String>,
    last: Option<Value>,
}

/// An item that has started and has not ended.
#[derive(Debug, Clone, Copy)]
struct OpenItem {
    /// Its position in `output`.
    at: usize,
    /// The index of the call in the deltas; `None` for a message.
    call: Option<usize>,
}

impl ResponseEvents {
    /// Creates the converter for one request. `stem` makes the ids of this response unique: use some random hexadecimal
    /// digits. `now` is in seconds since 1970.
    pub fn new(request: &ApiRequest, stem: impl Into<String>, now: u64) -> Self {
        let strict_tools = request.request.tools.iter().filter(|tool| request.strict.contains(&tool.name));
        let made = request.request.messages.iter().flat_map(|message| message.calls());
        Self {
            stem: stem.into(),
            model: request.model.clone(),
            created_at: now,
            echo: request.echo.clone(),
            strict: strict_tools
                .filter_map(|tool| Some((tool.name.clone(), SchemaCheck::new(&tool.parameters).ok()?)))
                .collect(),
            offered: request.request.tools.iter().map(|tool| tool.name.clone()).collect(),
            is_enforced: request.strict_tools == StrictTools::Enforced,
            choice: request.request.tool_choice.clone(),
            taken: made.map(|call| call.id.clone()).collect(),
            stop: StopSequences::new(request.stop.clone()),
            namespaced: request.namespaced.clone(),
            next_sequence: 0,
            next_id: 0,
            output: Vec::new(),
            open: Vec::new(),
            cursor: TextCursor::new(),
            blank: String::new(),
            phase: None,
            unwanted: None,
            usage: None,
            events: Vec::new(),
            warnings: Vec::new(),
            last: None,
        }
    }

    /// Returns the first events.
    pub fn start(&mut self) -> Vec<Value> {
        let response = self.object("in_progress", json!({}));
        self.emit("response.created", json!({"response": response}));
        self.emit("response.in_progress", json!({"response": response}));
        std::mem::take(&mut self.events)
    }

    /// Returns the events for a delta.
    pub fn push(&mut self, delta: Delta) -> Vec<Value> {
        if self.last.is_some() {
            return Vec::new();
        }
        match self.cursor.resolve(delta) {
            Delta::Text { text } => self.text_until_stop(&text),
            // A block that is not a valid call is still text of the model.
            Delta::CallFault { index, raw, .. } => match self.open_call(index) {
                Some(call) => self.close(call, "incomplete"),
                None => self.text_until_stop(&raw),
            },
            Delta::CallStart { index, id, name } => self.start_call(index, id, &name),
            Delta::CallArguments { index, text } => self.arguments(index, &text),
            Delta::CallEnd { index, .. } => self.end_call(index),
            Delta::Usage(usage) => self.usage = Some(usage),
            Delta::TextStart { phase } => self.begin_text(phase),
            Delta::End(reason) => self.finish(reason),
            // Ends of texts, reasoning, warnings and progress have no event here in either API.
            _ => {}
        }
        std::mem::take(&mut self.events)
    }

    /// Ends the stream, with an error or without one. A missing error is an error too if no [`Delta::End`] came before.
    pub fn end(&mut self, error: Option<&Error>) -> Vec<Value> {
        if self.last.is_none() {
            match error {
                Some(error) => self.fail(code_of(error.kind()), &error.text_with_source()),
                None => self.fail("server_error", "the backend's stream ended early"),
            }
        }
        std::mem::take(&mut self.events)
    }

    /// Returns the response object of the terminal event, for clients that do not stream; `None` before it.
    pub fn response(&self) -> Option<&Value> {
        self.last.as_ref().map(|event| &event["response"])
    }

    /// Returns, for a log, the faults of the reply since the last call that the client does not get: calls of tools
    /// that the request does not offer, arguments that do not fit the schema of a strict tool.
    pub fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    fn emit(&mut self, kind: &str, mut fields: Value) {
        fields["type"] = json!(kind);
        fields["sequence_number"] = json!(self.next_sequence);
        self.next_sequence += 1;
        self.events.push(fields);
    }

    /// Emits an event about the item at this position.
    fn emit_at(&mut self, at: usize, kind: &str, mut fields: Value) {
        fields["item_id"] = self.output[at]["id"].clone();
        fields["output_index"] = json!(at);
        self.emit(kind, fields);
    }

    fn new_id(&mut self, kind: &str) -> String {
        self.next_id += 1;
        format!("{kind}_{}{:04x}", self.stem, self.next_id)
    }

    /// Opens an item at the next free position, and returns the position.
    fn open(&mut self, call: Option<usize>, mut item: Value) -> usize {
        let at = self.output.len();
        item["status"] = json!("in_progress");
        self.emit("response.output_item.added", json!({"output_index": at, "item": item}));
        self.output.push(item);
        self.open.push(OpenItem { at, call });
        at
    }

    fn open_call(&self, index: usize) -> Option<OpenItem> {
        self.open.iter().copied().find(|item| item.call == Some(index))
    }

    fn text_until_stop(&mut self, text: &str) {
        let (text, is_over) = self.stop.push(text);
        self.text(&text);
        if is_over {
            self.finish(EndReason::Complete);
        }
    }

    /// Emits the text that was held back, because something else follows it.
    fn flush(&mut self) {
        let held = self.stop.flush();
        self.text(&held);
    }

    /// Starts a text. Commentary and answer are separate messages.
    fn begin_text(&mut self, phase: Option<TextPhase>) {
        if phase != self.phase {
            self.flush();
            self.close_message();
            self.phase = phase;
        }
    }

    fn close_message(&mut self) {
        while let Some(message) = self.open.iter().copied().find(|item| item.call.is_none()) {
            self.close(message, "completed");
        }
    }

    fn text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let at = match self.open.iter().find(|item| item.call.is_none()) {
            Some(message) => message.at,
            None => {
                self.blank.push_str(text);
                if self.blank.trim().is_empty() {
                    return;
                }
                let id = self.new_id("msg");
                let mut item = json!({"id": id, "type": "message", "role": "assistant", "content": []});
                if let Some(phase) = self.phase {
                    item["phase"] = json!(phase);
                }
                let at = self.open(None, item);
                let part = json!({"type": "output_text", "text": "", "annotations": [], "logprobs": []});
                self.output[at]["content"] = json!([part]);
                self.emit_at(at, "response.content_part.added", json!({"content_index": 0, "part": part}));
                at
            }
        };
        let text = if self.blank.is_empty() { text.to_owned() } else { std::mem::take(&mut self.blank) };
        append(&mut self.output[at]["content"][0]["text"], &text);
        let delta = json!({"content_index": 0, "delta": text, "logprobs": []});
        self.emit_at(at, "response.output_text.delta", delta);
    }

    fn start_call(&mut self, index: usize, id: String, name: &str) {
        if self.choice == ToolChoice::None {
            self.unwanted = Some(name.to_string());
            return;
        }
        self.flush();
        self.blank.clear();
        if !self.offered.contains(name) {
            self.warnings.push(format!("the model calls {name}, which the request does not offer"));
        }
        // A message is closed before a call opens; several calls of one reply may be open at the same time.
        self.close_message();
        // Some servers use the same id for all calls of a reply, and others start to count again in each reply.
        let is_free = !id.is_empty() && self.taken.insert(CallId(id.clone()));
        let call_id = if is_free { id } else { self.new_id("call") };
        let id = self.new_id("fc");
        let mut item = json!({"id": id, "type": "function_call", "call_id": call_id, "name": name, "arguments": ""});
        if let Some((namespace, name)) = self.namespaced.get(name) {
            (item["namespace"], item["name"]) = (json!(namespace), json!(name));
        }
        self.open(Some(index), item);
    }

    /// Sends arguments once they are known to be an object, because servers also send `null`, and an object in a
    /// string.
    fn arguments(&mut self, index: usize, text: &str) {
        let Some(OpenItem { at, .. }) = self.open_call(index) else { return };
        let was_sent = is_object(&self.output[at]);
        append(&mut self.output[at]["arguments"], text);
        if was_sent {
            self.send_arguments(at, json!(text));
        } else if is_object(&self.output[at]) {
            self.send_arguments(at, self.output[at]["arguments"].clone());
        }
    }

    fn send_arguments(&mut self, at: usize, text: Value) {
        if text != "" {
            self.emit_at(at, "response.function_call_arguments.delta", json!({"delta": text}));
        }
    }

    fn end_call(&mut self, index: usize) {
        let Some(call) = self.open_call(index) else { return };
        let item = &mut self.output[call.at];
        // Arguments that were sent cannot be changed.
        if !is_object(item) {
            let read = ToolCall::from_text("", "", item["arguments"].as_str().unwrap_or_default());
            if read.fault.is_none() {
                item["arguments"] = json!(read.arguments.to_string());
                self.send_arguments(call.at, json!(read.arguments.to_string()));
            }
        }
        let fault = self.strict_fault(&self.output[call.at]);
        self.warnings.extend(fault.clone());
        let fault = fault.filter(|_| self.is_enforced);
        self.close(call, if fault.is_some() { "incomplete" } else { "completed" });
        if let Some(fault) = fault {
            self.fail("server_error", &fault);
        }
    }

    /// Returns why the arguments of a call do not fit, if its tool is strict.
    fn strict_fault(&self, call: &Value) -> Option<String> {
        let known = name_known_to_model(call);
        let (name, check) = self.strict.iter().find(|(name, _)| *name == known)?;
        let faults = match serde_json::from_str(call["arguments"].as_str().unwrap_or_default()) {
            Ok(value) => check.issues(&value).join("; "),
            Err(error) => format!("not valid JSON: {error}"),
        };
        (!faults.is_empty()).then(|| format!("the model's arguments of the strict tool {name} do not fit: {faults}"))
    }

    fn close(&mut self, item: OpenItem, status: &str) {
        let at = item.at;
        self.open.retain(|open| open.at != at);
        if item.call.is_some() {
            let (name, arguments) = (self.output[at]["name"].clone(), self.output[at]["arguments"].clone());
            if !is_object(&self.output[at]) {
                self.send_arguments(at, arguments.clone());
            }
            self.emit_at(at, "response.function_call_arguments.done", json!({"arguments": arguments, "name": name}));
        } else {
            let part = self.output[at]["content"][0].clone();
            let done = json!({"content_index": 0, "text": part["text"], "logprobs": []});
            self.emit_at(at, "response.output_text.done", done);
            self.emit_at(at, "response.content_part.done", json!({"content_index": 0, "part": part}));
        }
        self.output[at]["status"] = json!(status);
        let item = self.output[at].clone();
        self.emit("response.output_item.done", json!({"output_index": at, "item": item}));
    }

    fn finish(&mut self, reason: EndReason) {
        let incomplete = match reason {
            EndReason::Complete | EndReason::Refused => None,
            EndReason::Length => Some("max_output_tokens"),
            EndReason::Filtered => Some("content_filter"),
        };
        self.flush();
        if let Some(fault) = self.choice_fault().filter(|_| reason == EndReason::Complete) {
            return self.fail("server_error", &fault);
        }
        let status = if incomplete.is_some() { "incomplete" } else { "completed" };
        // A call that never ended is incomplete, whatever the end of the reply is.
        for item in self.open.clone() {
            self.close(item, if item.call.is_some() { "incomplete" } else { status });
        }
        self.terminal(status, json!({"incomplete_details": incomplete.map(|reason| json!({"reason": reason}))}));
    }

    /// Returns why a complete reply violates `tool_choice`.
    fn choice_fault(&self) -> Option<String> {
        let mut calls = self.output.iter().filter(|item| item["type"] == "function_call");
        match (&self.choice, &self.unwanted) {
            (ToolChoice::None, Some(name)) if self.output.is_empty() => {
                Some(format!("the model only called {name}, where tool_choice allows no call"))
            }
            (ToolChoice::Required, _) if calls.next().is_none() => {
                Some("the model made no call, where tool_choice requires one".into())
            }
            (ToolChoice::Tool(name), _) if !calls.any(|call| name_known_to_model(call) == *name) => {
                Some(format!("the model did not call {name}, which tool_choice requires"))
            }
            _ => None,
        }
    }

    fn fail(&mut self, code: &str, message: &str) {
        self.flush();
        for item in self.open.clone() {
            self.close(item, "incomplete");
        }
        self.terminal("failed", json!({"error": {"code": code, "message": message}}));
    }

    fn terminal(&mut self, status: &str, more: Value) {
        let response = self.object(status, more);
        self.emit(&format!("response.{status}"), json!({"response": response}));
        self.last = self.events.last().cloned();
    }

    /// Returns the response object, with every field that clients expect.
    fn object(&self, status: &str, more: Value) -> Value {
        let usage = self.usage.map(|usage| {
            json!({
                "input_tokens": usage.input,
                "input_tokens_details": {"cached_tokens": usage.cached},
                "output_tokens": usage.output,
                "output_tokens_details": {"reasoning_tokens": usage.reasoning},
                "total_tokens": usage.total(),
            })
        });
        let mut response = json!({
            "id": format!("resp_{}", self.stem),
            "object": "response",
            "created_at": self.created_at,
            "status": status,
            "background": false,
            "error": null,
            "incomplete_details": null,
            "model": self.model,
            "output": self.output,
            "previous_response_id": null,
            "usage": usage,
        });
        if let (Some(response), Value::Object(more)) = (response.as_object_mut(), more) {
            response.extend(self.echo.clone());
            response.extend(more);
        }
        response
    }
}

fn name_known_to_model(call: &Value) -> String {
    known_name(call["namespace"].as_str(), call["name"].as_str().unwrap_or_default())
}

fn append(text: &mut Value, more: &str) {
    if let Value::String(text) = text {
        text.push_str(more);
    }
}

/// Returns whether the arguments of a call begin as an object.
fn is_object(call: &Value) -> bool {
    call["arguments"].as_str().is_some_and(|arguments| arguments.trim_start().starts_with('{'))
}

/// Returns the API's code for a failure after the first event.
fn code_of(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::RateLimit => "rate_limit_exceeded",
        ErrorKind::ContextTooLong => "context_length_exceeded",
        ErrorKind::BadRequest => "invalid_prompt",
        _ => "server_error",
    }
}

/// Returns an event in the format of server-sent events.
pub fn to_sse(event: &Value) -> String {
    format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or("message"))
}
