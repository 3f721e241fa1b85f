//! Anthropic's Messages API.

use serde_json::{Value, json};

use crate::error::{Error, ErrorKind, Result};
use crate::message::{Image, Message, Part, Status, TextPhase, ToolResult, Usage};
use crate::model::{Delta, EndReason, Parallel, PromptCache, ReasoningEffort, Request, ToolChoice};
use crate::schema::{WireNames, anthropic_answer};
use crate::tool::ToolSpec;

use super::body_text::BodyText;
use super::deltas::Deltas;
use super::without_nulls::without_nulls;
use super::{Decode, failure};

/// The API requires a limit; all current models accept this one.
const MAX_TOKENS: u32 = 8_192;
/// The limit includes thinking tokens. All models that choose the amount themselves accept this many more.
const ADAPTIVE_TOKENS: u32 = 24_576;
/// The tool whose arguments are the answer, if `output_config` cannot express its schema.
const ANSWER: &str = "answer";
const ANSWER_DESCRIPTION: &str = "Gives the answer. Its arguments are the JSON that you are asked to answer with.";

pub(super) fn fields(model: &str, request: &Request, names: &WireNames, is_streamed: bool) -> Value {
    let tool = |tool: &ToolSpec| json!({"name": names.wire(&tool.name), "description": tool.description, "input_schema": tool.parameters});
    let answer_tool = answer_tool(request);
    let takes_one = request.parallel == Parallel::One || answer_tool.is_some();
    let tools: Vec<Value> = request.tools.iter().map(tool).chain(answer_tool).collect();
    let has_tools = !tools.is_empty();
    let mut choice = match &request.tool_choice {
        ToolChoice::Auto => json!({"type": "auto"}),
        ToolChoice::None => json!({"type": "none"}),
        ToolChoice::Required => json!({"type": "any"}),
        ToolChoice::Tool(name) => json!({"type": "tool", "name": names.wire(name)}),
    };
    if takes_one && request.tool_choice != ToolChoice::None {
        choice["disable_parallel_tool_use"] = json!(true);
    }
    let settings = &request.settings;
    let (thinking, room) = match (settings.reasoning_effort, settings.thinking_budget) {
        (Some(ReasoningEffort::None), _) => (Some(json!({"type": "disabled"})), 0),
        (_, Some(tokens)) => (Some(json!({"type": "enabled", "budget_tokens": tokens})), tokens),
        (Some(_), None) => (Some(json!({"type": "adaptive"})), ADAPTIVE_TOKENS),
        (None, None) => (None, 0),
    };
    let effort = settings.reasoning_effort.and_then(|effort| match effort {
        ReasoningEffort::None => None,
        ReasoningEffort::Minimal => Some(json!("low")),
        // The API uses the same names.
        word => Some(json!(word)),
    });
    let schema = request.answer_schema.as_deref().and_then(anthropic_answer);
    let format = schema.map(|schema| json!({"type": "json_schema", "schema": schema}));
    let output = without_nulls(json!({"effort": effort, "format": format}));
    let mut body = without_nulls(json!({
        "model": model,
        "max_tokens": request.max_output_tokens.unwrap_or(MAX_TOKENS.saturating_add(room)),
        "stream": is_streamed,
        "system": request.system.as_deref(),
        "tools": has_tools.then_some(tools),
        "tool_choice": has_tools.then_some(choice),
        "temperature": request.temperature,
        "top_p": settings.top_p,
        "stop_sequences": (!settings.stop.is_empty()).then_some(&settings.stop),
        "thinking": thinking,
        "output_config": (output != json!({})).then_some(output),
        "service_tier": settings.service_tier,
    }));
    if let Some(mark) = cache_mark(request) {
        if let Some(text) = body["system"].as_str().filter(|text| !text.trim().is_empty()) {
            body["system"] = json!([{"type": "text", "text": text, "cache_control": mark}]);
        } else if let Some(tool) = body["tools"].as_array_mut().and_then(|tools| tools.last_mut()) {
            tool["cache_control"] = mark;
        }
    }
    body
}

/// Returns the tool that takes the answer, because the API accepts schemas for the arguments of a tool that it rejects in
/// `output_config`. A request with tools has no such tool, because one of them may have its name.
///
/// The model is not forced to call it, because the API rejects that together with thinking.
fn answer_tool(request: &Request) -> Option<Value> {
    let is_alone = request.tools.is_empty() && request.tool_choice == ToolChoice::Auto;
    let schema = request.answer_schema.as_deref().filter(|_| is_alone)?;
    let is_object = schema["type"] == "object";
    let is_choice = ["anyOf", "oneOf", "allOf"].iter().any(|key| schema.get(*key).is_some());
    let is_tool = is_object && !is_choice && anthropic_answer(schema).is_none();
    is_tool.then(|| json!({"name": ANSWER, "description": ANSWER_DESCRIPTION, "input_schema": schema}))
}

/// Returns the mark at the end of a prefix to cache. Marked are tools and system text; all messages; and the messages
/// up to the person's or tools' previous message, which the previous request has cached, because the API searches only
/// 20 blocks back from a mark.
///
/// Caching a prefix costs more once, which pays off only if a later request begins with it.
fn cache_mark(request: &Request) -> Option<Value> {
    let is_followed = !request.tools.is_empty() || request.messages.len() > 1;
    match request.settings.prompt_cache {
        PromptCache::Off => None,
        PromptCache::Long => Some(json!({"type": "ephemeral", "ttl": "1h"})),
        _ => Some(json!({"type": "ephemeral"})),
    }
    .filter(|_| is_followed)
}

/// Messages in which the roles alternate, with all results of a turn in one.
pub(super) fn add_messages(body: &mut BodyText, request: &Request, names: &WireNames) {
    for message in request.messages.iter() {
        let (role, content): (_, Vec<Value>) = match &**message {
            Message::User { text, images } => ("user", user_blocks(text, images)),
            Message::Note { text } => ("user", vec![text_block(text)]),
            Message::Results { results } => {
                let block = |result: &ToolResult| {
                    json!({
                        "type": "tool_result", "tool_use_id": tool_use_id(&result.call.0), "content": result.text(),
                        "is_error": result.status != Status::Ok,
                    })
                };
                ("user", results.iter().map(block).collect())
            }
            Message::Assistant { parts } => ("assistant", parts.iter().filter_map(|part| block(part, names)).collect()),
        };
        if content.is_empty() {
            continue;
        }
        let last = body.open().last_mut().filter(|last| last["role"] == role);
        match last.and_then(|last| last["content"].as_array_mut()) {
            Some(last) => last.extend(content),
            None => body.push(json!({"role": role, "content": content})),
        }
    }
    let Some(mark) = cache_mark(request) else { return };
    // Roles alternate: both are among the last four.
    for message in body.open().iter_mut().rev().filter(|message| message["role"] == "user").take(2) {
        if let Some(block) = message["content"].as_array_mut().and_then(|blocks| blocks.last_mut()) {
            block["cache_control"] = mark.clone();
        }
    }
}

fn user_blocks(text: &str, images: &[Image]) -> Vec<Value> {
    let image = |image: &Image| {
        let source = match image {
            Image::Inline { media_type, base64 } => json!({"type": "base64", "media_type": media_type, "data": base64}),
            Image::Url { url } => json!({"type": "url", "url": url}),
        };
        json!({"type": "image", "source": source})
    };
    let needs_text = images.is_empty() || !text.trim().is_empty();
    images.iter().map(image).chain(needs_text.then(|| text_block(text))).collect()
}

fn text_block(text: &str) -> Value {
    // The API rejects an empty text.
    json!({"type": "text", "text": if text.trim().is_empty() { "…" } else { text }})
}

fn block(part: &Part, names: &WireNames) -> Option<Value> {
    match part {
        Part::Text { text, .. } => (!text.trim().is_empty()).then(|| json!({"type": "text", "text": text})),
        // A thought goes back exactly as it came; without its signature, or from another wire, it does not.
        Part::Reasoning { opaque, .. } => {
            let is_thought = |block: &&Value| block["type"] == "thinking" || block["type"] == "redacted_thinking";
            opaque.as_ref().filter(is_thought).cloned()
        }
        Part::Call(call) => {
            let (id, name) = (tool_use_id(&call.id.0), names.wire(&call.name));
            Some(json!({"type": "tool_use", "id": id, "name": name, "input": call.sent_object()}))
        }
    }
}

/// Returns an id for the API, because ids of other providers may contain characters that it rejects.
fn tool_use_id(id: &str) -> String {
    id.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' }).collect()
}

/// Reads events.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    /// Whether the answer may come as arguments of a tool. Text beside it is commentary then.
    has_answer_tool: bool,
    block: Block,
    /// How many calls have begun. Some gateways begin the message again when its first try breaks off, with the same
    /// indexes.
    calls: usize,
    usage: Usage,
    reason: Option<EndReason>,
}

/// The content block that is open.
#[derive(Debug, Default)]
enum Block {
    #[default]
    None,
    Thinking {
        text: String,
        signature: String,
    },
    Call {
        index: usize,
        /// Arguments that came with the start of the block, until a piece of them arrives.
        input: Option<Value>,
    },
    /// A call by a program, with its arguments so far.
    ProgramCall {
        index: usize,
        arguments: String,
    },
    Answer {
        /// The answer that came with the start of the block, until a piece of it arrives.
        whole: Option<Value>,
    },
    Text {
        begin: usize,
    },
}

impl Decode for Decoder {
    fn event(&mut self, event: &Value, out: &mut Deltas) -> Result<()> {
        match event["type"].as_str().unwrap_or_default() {
            "error" => return Err(failure::in_stream(event)),
            "message_start" => self.count(&event["message"]["usage"]),
            "content_block_start" => self.start(&event["content_block"], out),
            "content_block_delta" => self.delta(&event["delta"], out),
            "content_block_stop" => self.stop(&event["content_block"], out),
            "message_delta" => {
                refuse_pause(&event["delta"])?;
                self.count(&event["usage"]);
                self.reason = reason(&event["delta"]["stop_reason"]).or(self.reason);
                out.push(Delta::Usage(self.usage));
            }
            "message_stop" => {
                // Some gateways repeat the whole message.
                let blocks = event["message"]["content"].as_array().into_iter().flatten();
                let text: String = blocks.filter_map(|block| block["text"].as_str()).collect();
                out.text_at(0, &text);
                out.push(Delta::End(self.reason.unwrap_or(EndReason::Complete)));
            }
            // Pings, and what will be invented.
            _ => {}
        }
        Ok(())
    }

    fn whole(&mut self, body: &Value, out: &mut Deltas) -> Result<()> {
        if body["type"] == "error" {
            return Err(failure::in_stream(body));
        }
        refuse_pause(body)?;
        let blocks = body["content"].as_array().ok_or_else(failure::no_reply)?;
        for block in blocks {
            self.start(block, out);
            self.stop(&Value::Null, out);
        }
        self.count(&body["usage"]);
        out.push(Delta::Usage(self.usage));
        out.push(Delta::End(reason(&body["stop_reason"]).unwrap_or(EndReason::Complete)));
        Ok(())
    }
}

/// Refuses a turn that the provider paused, to be continued by another request. Only its own tools pause a turn, and
/// those are never requested, except by an extra body.
fn refuse_pause(end: &Value) -> Result<()> {
    if end["stop_reason"] != "pause_turn" {
        return Ok(());
    }
    let error =
        Error::new(ErrorKind::BadResponse, "the provider paused the turn (pause_turn), which cannot be continued");
    Err(error.with_remedy("limit the uses of the tools that the provider runs (max_uses), or do not request them"))
}

fn reason(stop: &Value) -> Option<EndReason> {
    Some(match stop.as_str()? {
        "max_tokens" | "model_context_window_exceeded" => EndReason::Length,
        "refusal" => EndReason::Refused,
        _ => EndReason::Complete,
    })
}

impl Decoder {
    pub(super) fn new(request: &Request) -> Self {
        Self { has_answer_tool: answer_tool(request).is_some(), ..Self::default() }
    }

    fn start(&mut self, block: &Value, out: &mut Deltas) {
        let text = |field: &str| block[field].as_str().unwrap_or_default();
        match text("type") {
            "tool_use" if self.has_answer_tool && text("name") == ANSWER => {
                out.push(Delta::TextStart { phase: Some(TextPhase::FinalAnswer) });
                self.block = Block::Answer { whole: Some(block["input"].clone()) };
            }
            "tool_use" if block["caller"]["type"].as_str().is_some_and(|caller| caller != "direct") => {
                out.call_start(self.calls, &block["id"], &block["name"]);
                let input =
                    Some(&block["input"]).filter(|input| input.as_object().is_some_and(|input| !input.is_empty()));
                let arguments = input.map(Value::to_string).unwrap_or_default();
                self.block = Block::ProgramCall { index: self.calls, arguments };
                self.calls += 1;
            }
            "tool_use" => {
                // Some servers send all arguments here, and no pieces.
                let input = Some(&block["input"]).filter(|input| !input.is_null() && **input != json!({}));
                out.call_start(self.calls, &block["id"], &block["name"]);
                self.block = Block::Call { index: self.calls, input: input.cloned() };
                self.calls += 1;
            }
            "thinking" => {
                // In a stream the text comes in pieces.
                out.reasoning(text("thinking"), None);
                self.block = Block::Thinking { text: text("thinking").into(), signature: text("signature").into() };
            }
            "redacted_thinking" => out.reasoning("", Some(block.clone())),
            _ => {
                if self.has_answer_tool {
                    out.push(Delta::TextStart { phase: Some(TextPhase::Commentary) });
                }
                self.block = Block::Text { begin: out.position() };
                out.text(text("text"));
            }
        }
    }

    fn delta(&mut self, delta: &Value, out: &mut Deltas) {
        let piece = |field: &str| delta[field].as_str().unwrap_or_default();
        match (piece("type"), &mut self.block) {
            ("text_delta", _) => out.text(piece("text")),
            ("input_json_delta", Block::Call { index, input }) if !piece("partial_json").is_empty() => {
                *input = None;
                out.call_arguments(*index, piece("partial_json"));
            }
            ("input_json_delta", Block::ProgramCall { arguments, .. }) => arguments.push_str(piece("partial_json")),
            ("input_json_delta", Block::Answer { whole }) if !piece("partial_json").is_empty() => {
                *whole = None;
                out.text_at(out.position(), piece("partial_json"));
            }
            ("thinking_delta", Block::Thinking { text, .. }) => {
                text.push_str(piece("thinking"));
                out.reasoning(piece("thinking"), None);
            }
            ("signature_delta", Block::Thinking { signature, .. }) => signature.push_str(piece("signature")),
            _ => {}
        }
    }

    /// Handles the end of a block, which some gateways repeat as a whole.
    fn stop(&mut self, block: &Value, out: &mut Deltas) {
        match std::mem::take(&mut self.block) {
            Block::None => {}
            Block::Text { begin } => out.text_at(begin, block["text"].as_str().unwrap_or_default()),
            Block::Call { index, input } => {
                input.into_iter().for_each(|input| out.call_arguments(index, &input.to_string()));
                out.call_end(index, None);
            }
            Block::ProgramCall { index, arguments } => out.call_of_program(index, arguments),
            Block::Answer { whole } => {
                whole.into_iter().for_each(|answer| out.text_at(out.position(), &answer.to_string()));
            }
            Block::Thinking { text, signature } => {
                let block = json!({"type": "thinking", "thinking": text, "signature": signature});
                out.reasoning("", Some(block));
            }
        }
    }

    /// Counts are cumulative; those that come later replace those before.
    fn count(&mut self, usage: &Value) {
        let number = |field: &str| usage[field].as_u64();
        let (created, read) = (number("cache_creation_input_tokens"), number("cache_read_input_tokens"));
        if let Some(input) = number("input_tokens") {
            self.usage.input = input + created.unwrap_or(0) + read.unwrap_or(0);
            self.usage.cached = read.unwrap_or(0);
        }
        self.usage.output = number("output_tokens").unwrap_or(self.usage.output);
    }
}
