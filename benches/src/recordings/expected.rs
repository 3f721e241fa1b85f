//! The expected reply of a recording, read in the simplest way: all pieces of text joined, all arguments joined.

use agent_loop::{EndReason, Part, Reply, Wire};
use serde_json::{Value, json};

use super::Verdict;

/// The reply as which a recording should be parsed.
#[derive(Debug, Default)]
pub(super) struct Expected {
    text: String,
    /// The names and arguments of the calls, as text.
    calls: Vec<(String, String)>,
    end: Option<EndReason>,
    output_tokens: Option<u64>,
}

/// Returns the JSON objects of a body: a single one, one per line, or one per event; and the text `[DONE]`.
pub(super) fn events_of(body: &str) -> Vec<Value> {
    if let Ok(whole) = serde_json::from_str(body) {
        return vec![whole];
    }
    let data = |line: &str| match line.strip_prefix("data:").unwrap_or(line).trim() {
        "[DONE]" => Some(json!("[DONE]")),
        line => serde_json::from_str(line).ok().filter(Value::is_object),
    };
    body.lines().filter_map(data).collect()
}

pub(super) fn wire_of(events: &[Value]) -> Option<Wire> {
    events.iter().find_map(|event| {
        let kind = event["type"].as_str().unwrap_or_default();
        Some(match event {
            _ if event["object"] == "response" || kind.starts_with("response.") => Wire::OpenAiResponses,
            _ if kind == "message_start" || (kind == "message" && event["role"] == "assistant") => Wire::Anthropic,
            // Completions without messages have their text here.
            _ if event["choices"][0].get("text").is_some() => return None,
            _ if event["choices"].is_array() => Wire::Chat,
            _ if event["candidates"].is_array() || event["promptFeedback"].is_object() => Wire::Gemini,
            _ if event["message"].is_object() && event["done"].is_boolean() => Wire::Ollama,
            _ => return None,
        })
    })
}

impl Expected {
    /// Returns the expected reply; `None` if the recording is an error, or a reply that is incomplete.
    pub(super) fn new(wire: Wire, events: &[Value]) -> Option<Self> {
        let is_error = |event: &Value| !event["error"].is_null() && event["object"] != "response";
        if events.iter().any(|event| is_error(event) || event["type"] == "error" || event["type"] == "response.failed")
        {
            return None;
        }
        if events.iter().all(|event| matches!(event["status"].as_str(), Some("queued" | "in_progress" | "failed"))) {
            return None;
        }
        let mut all = Self::default();
        match wire {
            Wire::OpenAiChat | Wire::Chat => events.iter().for_each(|event| all.chat(event, events.len() == 1)),
            Wire::OpenAiResponses => all.responses(events),
            Wire::Anthropic => events.iter().for_each(|event| all.anthropic(event)),
            Wire::Gemini => events.iter().for_each(|event| all.gemini(event)),
            Wire::Ollama => events.iter().for_each(|event| all.ollama(event)),
        }
        Some(all)
    }

    fn chat(&mut self, event: &Value, is_only: bool) {
        if event == "[DONE]" {
            self.end.get_or_insert(EndReason::Complete);
        }
        // Only the first of several choices counts.
        let mut choices = event["choices"].as_array().into_iter().flatten();
        let Some(choice) = choices.find(|choice| choice["index"].as_u64().unwrap_or(0) == 0) else {
            return self.tokens(&event["usage"]["completion_tokens"]);
        };
        // Perplexity sends both: the message so far with each delta, and an empty delta with a complete message.
        let is_whole = choice["message"].is_object() && (is_only || !choice["delta"].is_object());
        let message = if is_whole { &choice["message"] } else { &choice["delta"] };
        match &message["content"] {
            Value::Array(parts) => parts.iter().for_each(|part| self.text(&part["text"])),
            text => self.text(text),
        }
        self.text(&message["refusal"]);
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        for (position, call) in calls.enumerate() {
            let at = call["index"].as_u64().map_or(position, |index| index as usize);
            if self.calls.len() <= at {
                self.calls.resize(at + 1, Default::default());
            }
            let (name, arguments) = &mut self.calls[at];
            name.push_str(call["function"]["name"].as_str().unwrap_or_default());
            arguments.push_str(&text_of(&call["function"]["arguments"]));
        }
        match choice["finish_reason"].as_str() {
            // It is empty in replies of Snowflake.
            None | Some("") if is_whole => self.end = Some(EndReason::Complete),
            None | Some("") => {}
            Some("length") => self.end = Some(EndReason::Length),
            Some("content_filter") => self.end = Some(EndReason::Filtered),
            Some(_) if self.end == Some(EndReason::Refused) => {}
            Some(_) => self.end = Some(EndReason::Complete),
        }
        if message["refusal"].as_str().is_some_and(|text| !text.is_empty()) {
            self.end = Some(EndReason::Refused);
        }
        self.tokens(&event["usage"]["completion_tokens"]);
    }

    fn responses(&mut self, events: &[Value]) {
        let is_end = |kind: &Value| kind == "response.completed" || kind == "response.incomplete";
        let last = events.iter().rev().find(|event| is_end(&event["type"]));
        let response = last.map_or(&events[0], |event| &event["response"]);
        let done = events.iter().filter(|event| event["type"] == "response.output_item.done");
        let done: Vec<Value> = done.map(|event| event["item"].clone()).collect();
        let items = if done.is_empty() { response["output"].as_array().cloned().unwrap_or_default() } else { done };
        self.end = Some(match response["incomplete_details"]["reason"].as_str() {
            None if response["status"] == "incomplete" => EndReason::Length,
            None => EndReason::Complete,
            Some("content_filter") => EndReason::Filtered,
            Some(_) => EndReason::Length,
        });
        for item in &items {
            for part in item["content"].as_array().into_iter().flatten().filter(|_| item["type"] == "message") {
                self.text(&part["text"]);
                self.text(&part["refusal"]);
                if part["type"] == "refusal" {
                    self.end = Some(EndReason::Refused);
                }
            }
            if item["type"] == "function_call" {
                self.call(&item["name"], &item["arguments"]);
            }
        }
        self.tokens(&response["usage"]["output_tokens"]);
    }

    fn anthropic(&mut self, event: &Value) {
        let blocks = event["content"].as_array().into_iter().flatten();
        for block in blocks.chain([&event["content_block"]]) {
            match block["type"].as_str() {
                Some("text") => self.text(&block["text"]),
                // In a stream, the arguments follow.
                Some("tool_use") if block["input"] == json!({}) && event["type"] != "message" => {
                    self.call(&block["name"], &json!(""));
                }
                Some("tool_use") => self.call(&block["name"], &block["input"]),
                // The arguments of the provider's own tools follow, too.
                Some("server_tool_use" | "mcp_tool_use") => self.calls.push(Default::default()),
                _ => {}
            }
        }
        self.text(&event["delta"]["text"]);
        if let (Some(piece), Some((_, arguments))) = (event["delta"]["partial_json"].as_str(), self.calls.last_mut()) {
            arguments.push_str(piece);
        }
        let stop = event["stop_reason"].as_str().or(event["delta"]["stop_reason"].as_str());
        self.end = stop.map_or(self.end, |stop| {
            Some(match stop {
                "max_tokens" | "model_context_window_exceeded" | "pause_turn" => EndReason::Length,
                "refusal" => EndReason::Refused,
                _ => EndReason::Complete,
            })
        });
        self.tokens(&event["usage"]["output_tokens"]);
    }

    fn gemini(&mut self, event: &Value) {
        let candidate = &event["candidates"][0];
        for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
            if part["thought"] != true {
                self.text(&part["text"]);
            }
            if part["functionCall"].is_object() {
                self.call(&part["functionCall"]["name"], &part["functionCall"]["args"]);
            }
        }
        match candidate["finishReason"].as_str() {
            None => {}
            Some("MAX_TOKENS") => self.end = Some(EndReason::Length),
            Some("STOP" | "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL") => self.end = Some(EndReason::Complete),
            Some(_) => self.end = Some(EndReason::Filtered),
        }
        if event["promptFeedback"]["blockReason"].is_string() {
            self.end = Some(EndReason::Filtered);
        }
        let usage = &event["usageMetadata"];
        if usage.is_object() {
            let count = |field: &str| usage[field].as_u64().unwrap_or(0);
            self.output_tokens = Some(count("candidatesTokenCount") + count("thoughtsTokenCount"));
        }
    }

    fn ollama(&mut self, event: &Value) {
        self.text(&event["message"]["content"]);
        for call in event["message"]["tool_calls"].as_array().into_iter().flatten() {
            self.call(&call["function"]["name"], &call["function"]["arguments"]);
        }
        if event["done"] == true {
            let is_cut = event["done_reason"] == "length";
            self.end = Some(if is_cut { EndReason::Length } else { EndReason::Complete });
        }
        self.tokens(&event["eval_count"]);
    }

    fn text(&mut self, text: &Value) {
        self.text.push_str(text.as_str().unwrap_or_default());
    }

    fn call(&mut self, name: &Value, arguments: &Value) {
        self.calls.push((text_of(name), text_of(arguments)));
    }

    fn tokens(&mut self, count: &Value) {
        self.output_tokens = count.as_u64().or(self.output_tokens);
    }

    /// Compares a reply with the expected one. A call whose arguments are not an object must be a fault.
    pub(super) fn compare(&self, reply: &Reply) -> Verdict {
        let texts =
            reply.parts.iter().filter_map(|part| if let Part::Text { text, .. } = part { Some(&**text) } else { None });
        let text: String = texts.collect();
        let calls = reply.parts.iter().filter_map(|part| if let Part::Call(call) = part { Some(call) } else { None });
        let calls: Vec<_> =
            calls.map(|call| (call.name.clone(), call.fault.is_none().then(|| call.arguments.clone()))).collect();
        let arguments = |text: &str| match text {
            "" | "null" => Some(json!({})),
            text => serde_json::from_str(text).ok().filter(Value::is_object),
        };
        let wanted = self.calls.iter().filter(|(name, _)| !name.is_empty());
        // The calls of a truncated reply do not run.
        let is_whole = self.end == Some(EndReason::Complete);
        let wanted: Vec<_> = wanted.map(|(name, text)| (name.clone(), arguments(text).filter(|_| is_whole))).collect();
        let tokens = reply.usage.map(|usage| usage.output);
        let difference = if text != self.text {
            format!("text: {:?} instead of {:?}", short(&text), short(&self.text))
        } else if calls != wanted {
            format!("calls: {calls:?} instead of {wanted:?}")
        } else if Some(reply.end) != self.end {
            format!("end: {:?} instead of {:?}", reply.end, self.end)
        } else if tokens != self.output_tokens {
            format!("output tokens: {tokens:?} instead of {:?}", self.output_tokens)
        } else {
            return Verdict::Right;
        };
        Verdict::Wrong(difference)
    }
}

/// Returns a string as it is, and another value as JSON.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        object => object.to_string(),
    }
}

fn short(text: &str) -> &str {
    &text[..text.floor_char_boundary(120)]
}
