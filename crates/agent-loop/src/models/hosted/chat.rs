//! Chat Completions: OpenAI's format and the dialects of compatible servers.

use serde_json::{Map, Value, json};

use crate::error::Result;
use crate::message::{Image, Message, Part, ToolCall, Usage};
use crate::model::{Delta, EndReason, ModelSettings, Parallel, PromptCache, ReasoningEffort, Request, ToolChoice};
use crate::schema::{WireNames, strict, strict_answer};
use crate::tool::ToolSpec;

use super::chat_reasoning::{DETAILS, ReasoningFields, TEXTS, THOUGHTS, thinking_of};
use super::deltas::Deltas;
use super::without_nulls::without_nulls;
use super::{Decode, Provider, ReasoningField, ReturnReasoning, Streaming, Wire, failure};

pub(super) fn fields(model: &str, request: &Request, names: &WireNames, provider: &Provider) -> Value {
    let (is_openai, is_streamed) = (provider.wire == Wire::OpenAiChat, provider.streaming == Streaming::Yes);
    let has_tools = !request.tools.is_empty();
    let choice = match &request.tool_choice {
        ToolChoice::Tool(name) => json!({"type": "function", "function": {"name": names.wire(name)}}),
        // The API uses the same names.
        word => json!(word),
    };
    let format = request.answer_schema.as_ref().map(|schema| {
        let strict = strict_answer(schema).filter(|_| is_openai);
        let (is_strict, schema) = (strict.is_some(), strict.as_ref().unwrap_or(schema));
        json!({"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, "strict": is_strict}})
    });
    let limit = if is_openai { "max_completion_tokens" } else { "max_tokens" };
    let settings = &request.settings;
    let effort = settings.reasoning_effort;
    let (effort, reasoning, thinking) = match provider.reasoning_field {
        ReasoningField::Effort => (effort, None, None),
        ReasoningField::Reasoning => (None, reasoning_object(settings), None),
        ReasoningField::Thinking if effort == Some(ReasoningEffort::None) => (None, None, Some("disabled")),
        ReasoningField::Thinking => (effort, None, effort.map(|_| "enabled")),
    };
    let retention = (is_openai && settings.prompt_cache == PromptCache::Long).then_some("24h");
    without_nulls(json!({
        "model": model,
        "stream": is_streamed,
        "stream_options": is_streamed.then(|| json!({"include_usage": true})),
        "tools": has_tools.then(|| request.tools.iter().map(|tool| tool_object(tool, names, is_openai)).collect::<Value>()),
        "tool_choice": has_tools.then_some(choice),
        "parallel_tool_calls": (has_tools && request.parallel == Parallel::One).then_some(false),
        "response_format": format,
        limit: request.max_output_tokens,
        "temperature": request.temperature,
        "top_p": settings.top_p,
        "stop": (!settings.stop.is_empty()).then_some(&settings.stop),
        "seed": settings.seed,
        "reasoning_effort": effort,
        "reasoning": reasoning,
        "thinking": thinking.map(|kind| json!({"type": kind})),
        "prompt_cache_key": settings.prompt_cache_key,
        "prompt_cache_retention": retention,
        "service_tier": settings.service_tier,
    }))
}

fn tool_object(tool: &ToolSpec, names: &WireNames, is_openai: bool) -> Value {
    let mut function = json!({"name": names.wire(&tool.name), "description": tool.description});
    if is_openai {
        let strict = strict(&tool.parameters);
        function["strict"] = json!(strict.is_some());
        function["parameters"] = strict.unwrap_or_else(|| tool.parameters.clone());
    } else {
        function["parameters"] = tool.parameters.clone();
    }
    json!({"type": "function", "function": function})
}

/// For your own [`Model`](crate::Model) whose server accepts messages in the form of OpenAI's Chat Completions. The
/// names of tools stay unchanged.
impl Request {
    /// Returns the system text and the messages in the form of OpenAI's Chat Completions. Reasoning is left out.
    pub fn to_openai_messages(&self) -> Vec<Value> {
        let provider = Provider::new("", Wire::Chat, "", None).return_reasoning(ReturnReasoning::Never);
        let mut messages = Vec::new();
        add_messages(&mut messages, self, &self.own_names(), &provider);
        messages
    }

    /// Returns the tools in the form of OpenAI's Chat Completions, with their schemas unchanged (not strict).
    pub fn to_openai_tools(&self) -> Vec<Value> {
        let names = self.own_names();
        self.tools.iter().map(|tool| tool_object(tool, &names, false)).collect()
    }

    fn own_names(&self) -> WireNames {
        WireNames::unchanged(self.tools.iter().map(|tool| tool.name.as_str()))
    }
}

pub(super) fn add_messages(body: &mut impl Extend<Value>, request: &Request, names: &WireNames, provider: &Provider) {
    body.extend(request.system.iter().map(|text| json!({"role": "system", "content": &**text})));
    for message in request.messages.iter() {
        add_message(body, message, names, provider);
    }
}

/// Returns the object that requests reasoning from OpenRouter.
fn reasoning_object(settings: &ModelSettings) -> Option<Value> {
    let object = without_nulls(json!({"effort": settings.reasoning_effort, "max_tokens": settings.thinking_budget}));
    (object != json!({})).then_some(object)
}

fn add_message(body: &mut impl Extend<Value>, message: &Message, names: &WireNames, provider: &Provider) {
    match message {
        Message::User { text, images } if !images.is_empty() => {
            let image = |image: &Image| json!({"type": "image_url", "image_url": {"url": image.to_url()}});
            let text = (!text.is_empty()).then(|| json!({"type": "text", "text": text}));
            let content: Vec<Value> = images.iter().map(image).chain(text).collect();
            body.extend([json!({"role": "user", "content": content})]);
        }
        Message::User { text, .. } | Message::Note { text } => {
            body.extend([json!({"role": "user", "content": text})]);
        }
        Message::Assistant { parts } => {
            let text = message.text();
            let mut out = json!({"role": "assistant", "content": text});
            let call_object = |call: &ToolCall| {
                let function = json!({"name": names.wire(&call.name), "arguments": call.sent_text()});
                let extra = call.opaque.as_ref().filter(|opaque| opaque["from"] == *provider.name);
                let extra = extra.map(|opaque| &opaque["extra_content"]);
                without_nulls(json!({"id": call.id, "type": "function", "function": function, "extra_content": extra}))
            };
            let calls: Vec<Value> = message.calls().map(call_object).collect();
            if !calls.is_empty() {
                // Some servers reject an empty content beside calls, others null; the specification has null.
                out["content"] = if text.is_empty() { Value::Null } else { json!(text) };
                out["tool_calls"] = Value::Array(calls);
            } else if text.is_empty() && parts.iter().any(|part| matches!(part, Part::Reasoning { .. })) {
                return;
            }
            add_reasoning(&mut out, parts, provider);
            body.extend([out]);
        }
        Message::Results { results } => body.extend(
            results.iter().map(|result| json!({"role": "tool", "tool_call_id": result.call, "content": result.text()})),
        ),
    }
}

/// Adds the reasoning that came from this provider.
fn add_reasoning(out: &mut Value, parts: &[Part], provider: &Provider) {
    let mut fields = ReasoningFields::default();
    for part in parts {
        if let Part::Reasoning { opaque: Some(opaque), .. } = part
            && opaque["from"] == *provider.name
        {
            fields.add(opaque);
        }
    }
    match provider.return_reasoning {
        ReturnReasoning::Never => return,
        ReturnReasoning::Details if fields.0.contains_key(DETAILS) => fields.0.retain(|field, _| field == DETAILS),
        ReturnReasoning::Details | ReturnReasoning::AsReceived => {}
    }
    let thoughts = fields.0.remove(THOUGHTS);
    if let Some(Value::Array(mut content)) = thoughts {
        let text = out["content"].as_str().filter(|text| !text.is_empty());
        content.extend(text.map(|text| json!({"type": "text", "text": text})));
        out["content"] = Value::Array(content);
    }
    if let Some(out) = out.as_object_mut() {
        out.extend(fields.0);
    }
}

/// Decodes chunks. The end is at `[DONE]` or at the end of the body, because usage comes after the finish reason.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    provider: String,
    calls: Vec<Call>,
    /// Reasoning that is not yet in a part of the reply.
    reasoning: ReasoningFields,
    has_reasoning: bool,
    finish: Option<EndReason>,
    is_refused: bool,
}

#[derive(Debug)]
struct Call {
    /// The server's index, which may be the same for several calls.
    index: u64,
    id: String,
    arguments: String,
    /// Data that the server requires back with the call: Gemini's signature on its compatible endpoint.
    extra: Value,
}

impl Decode for Decoder {
    fn event(&mut self, chunk: &Value, out: &mut Deltas) -> Result<()> {
        if let Some(fault) = failure::unreadable_call(chunk) {
            self.end_reasoning(out);
            out.push(fault);
            out.push(Delta::End(EndReason::Complete));
            return Ok(());
        }
        if !chunk["error"].is_null() {
            return Err(failure::in_stream(chunk));
        }
        for choice in of_reply(&chunk["choices"]) {
            self.piece(&choice["delta"], out);
            // Some servers repeat the whole message, with the finish reason or in a separate chunk.
            self.whole_message(&choice["message"], out);
            self.finish = match choice["finish_reason"].as_str() {
                None | Some("") => self.finish,
                // The second value is Z.ai's.
                Some("length" | "model_context_window_exceeded") => Some(EndReason::Length),
                Some("content_filter" | "sensitive") => Some(EndReason::Filtered),
                // From OpenRouter, with the error beside it.
                Some("error") => return Err(failure::in_stream(choice)),
                // The other values are not reliable: calls come with `stop`, answers with `tool_calls`.
                Some(_) => Some(EndReason::Complete),
            };
        }
        let usage = &chunk["usage"];
        if let (Some(input), Some(output)) = (usage["prompt_tokens"].as_u64(), usage["completion_tokens"].as_u64()) {
            // The second is Moonshot's, the third was DeepSeek's.
            let places = [
                &usage["prompt_tokens_details"]["cached_tokens"],
                &usage["cached_tokens"],
                &usage["prompt_cache_hit_tokens"],
            ];
            let cached = places.into_iter().find_map(Value::as_u64).unwrap_or(0);
            let reasoning = usage["completion_tokens_details"]["reasoning_tokens"].as_u64().unwrap_or(0);
            // OpenRouter's credits are dollars.
            let dollars = usage["cost"].as_f64().filter(|cost| cost.is_finite() && *cost >= 0.0);
            let cost = dollars.map(|cost| (cost * 1e6).round() as u64);
            out.push(Delta::Usage(Usage { input, output, cached, reasoning, cost }));
        }
        Ok(())
    }

    fn done(&mut self, out: &mut Deltas) {
        self.finish.get_or_insert(EndReason::Complete);
        self.end(out);
    }

    fn end(&mut self, out: &mut Deltas) {
        let Some(finish) = self.finish else { return };
        // Beside calls, the server requires an empty field back as well.
        if !self.calls.is_empty() && !self.has_reasoning && !self.reasoning.0.is_empty() {
            out.reasoning("", Some(self.reasoning.take(&self.provider)));
        }
        self.end_reasoning(out);
        for (index, call) in self.calls.iter_mut().enumerate() {
            let extra = call.extra.take();
            let opaque = (!extra.is_null()).then(|| json!({"from": self.provider, "extra_content": extra}));
            out.call_end(index, opaque);
        }
        out.push(Delta::End(if self.is_refused { EndReason::Refused } else { finish }));
    }

    fn whole(&mut self, body: &Value, out: &mut Deltas) -> Result<()> {
        self.event(body, out)?;
        let says = |choice: &Value| choice["message"].is_object() || choice["delta"].is_object();
        if out.is_over() {
            return Ok(());
        }
        // Azure's filter removes the whole message.
        if self.finish.is_none() && !of_reply(&body["choices"]).any(says) {
            return Err(failure::no_reply());
        }
        self.done(out);
        Ok(())
    }
}

/// Returns the choices that are part of the reply: the first one if a server sends several; all of them if they have no
/// index, because Copilot sends text and calls as two such choices.
fn of_reply(choices: &Value) -> impl Iterator<Item = &Value> {
    choices.as_array().into_iter().flatten().filter(|choice| choice["index"].as_u64().unwrap_or(0) == 0)
}

impl Decoder {
    pub(super) fn new(provider: &str) -> Self {
        Self { provider: provider.into(), ..Self::default() }
    }

    /// Adds the content of a chunk.
    fn piece(&mut self, delta: &Value, out: &mut Deltas) {
        self.reasoning(delta, out);
        let text = self.text(delta);
        if !text.is_empty() {
            self.end_reasoning(out);
        }
        out.text(&text);
        for (position, call) in delta["tool_calls"].as_array().into_iter().flatten().enumerate() {
            self.call(position as u64, call, out);
        }
        self.old_call(delta, out);
    }

    /// Adds a whole message, parts of which may have arrived before.
    fn whole_message(&mut self, message: &Value, out: &mut Deltas) {
        if !message.is_object() {
            return;
        }
        if !self.has_reasoning {
            self.reasoning(message, out);
        }
        self.end_reasoning(out);
        out.text_at(0, &self.text(message));
        let known = self.calls.len();
        for (position, call) in message["tool_calls"].as_array().into_iter().flatten().enumerate() {
            let is_known = match call["id"].as_str().unwrap_or_default() {
                "" => position < known,
                id => self.calls.iter().any(|call| call.id == id),
            };
            if !is_known {
                self.call(position as u64, call, out);
            }
        }
        if known == 0 {
            self.old_call(message, out);
        }
    }

    /// Adds the single call of a message in the format before `tool_calls`. It is never requested, but some servers
    /// still send it.
    fn old_call(&mut self, message: &Value, out: &mut Deltas) {
        // Snowflake sends an empty one with every message.
        let call = &message["function_call"];
        if ["name", "arguments"].iter().any(|field| call[field].as_str().is_some_and(|text| !text.is_empty())) {
            self.call(0, &json!({"function": call}), out);
        }
    }

    fn reasoning(&mut self, message: &Value, out: &mut Deltas) {
        let mut texts = TEXTS.into_iter().filter_map(|field| message[field].as_str());
        let text = texts.find(|text| !text.is_empty()).map_or_else(|| thinking_of(message), str::to_owned);
        self.reasoning.add(message);
        self.has_reasoning |= !self.reasoning.are_empty() || !text.is_empty();
        out.reasoning(&text, None);
    }

    /// Ends the reasoning so far as one part of the reply.
    fn end_reasoning(&mut self, out: &mut Deltas) {
        if !self.reasoning.are_empty() {
            out.reasoning("", Some(self.reasoning.take(&self.provider)));
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

    /// Adds a fragment of a call, or a whole call.
    fn call(&mut self, position: u64, fragment: &Value, out: &mut Deltas) {
        let wire_index = fragment["index"].as_u64().unwrap_or(position);
        let id = fragment["id"].as_str().unwrap_or_default();
        let name = &fragment["function"]["name"];
        let arguments = match &fragment["function"]["arguments"] {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            object => object.to_string(),
        };
        let named = name.as_str().is_some_and(|name| !name.is_empty());
        let of_index = self.calls.iter().rposition(|call| call.index == wire_index);
        // A fragment that begins no call and has an unknown index continues the last call.
        let of_last = self.calls.len().checked_sub(1).filter(|_| of_index.is_none() && id.is_empty() && !named);
        let known = of_index.or(of_last).filter(|at| {
            let call = &self.calls[*at];
            let is_other = !id.is_empty() && id != call.id;
            // Without ids, a name after complete arguments begins another call.
            let is_next = id.is_empty() && named && serde_json::from_str::<Map<String, Value>>(&call.arguments).is_ok();
            !is_other && !is_next
        });
        let index = known.unwrap_or_else(|| {
            let index = self.calls.len();
            self.end_reasoning(out);
            self.calls.push(Call { index: wire_index, id: id.into(), arguments: String::new(), extra: Value::Null });
            out.call_start(index, &fragment["id"], name);
            index
        });
        if !fragment["extra_content"].is_null() {
            self.calls[index].extra = fragment["extra_content"].clone();
        }
        self.calls[index].arguments.push_str(&arguments);
        out.call_arguments(index, &arguments);
    }
}
