//! Anthropic's Messages API.

use serde_json::{Value, json};

use crate::error::Result;
use crate::message::{Message, Part, Status, Usage};
use crate::model::{Delta, EndReason, Parallel, Request, TextCursor, ToolChoice};
use crate::schema::WireNames;

use super::{Decode, failure};

/// The API wants a limit; this one every model of the last years takes.
const MAX_TOKENS: u32 = 8_192;

pub(super) fn headers(key: Option<&str>) -> Vec<(String, String)> {
    let key = key.map(|key| ("x-api-key".to_string(), key.to_string()));
    key.into_iter().chain([("anthropic-version".to_string(), "2023-06-01".to_string())]).collect()
}

pub(super) fn body(model: &str, request: &Request, names: &WireNames) -> Value {
    let mut body = json!({
        "model": model,
        "max_tokens": request.max_output_tokens.unwrap_or(MAX_TOKENS),
        "messages": messages(request, names),
        "stream": true,
    });
    if let Some(system) = &request.system {
        body["system"] = json!(&**system);
    }
    if !request.tools.is_empty() {
        let tool = |tool: &crate::tool::ToolSpec| json!({"name": names.wire(&tool.name), "description": tool.description, "input_schema": tool.parameters});
        body["tools"] = request.tools.iter().map(tool).collect();
        body["tool_choice"] = match &request.tool_choice {
            ToolChoice::Auto => json!({"type": "auto"}),
            ToolChoice::None => json!({"type": "none"}),
            ToolChoice::Required => json!({"type": "any"}),
            ToolChoice::Tool(name) => json!({"type": "tool", "name": names.wire(name)}),
        };
        if request.parallel == Parallel::One && request.tool_choice != ToolChoice::None {
            body["tool_choice"]["disable_parallel_tool_use"] = json!(true);
        }
    }
    if let Some(temperature) = request.temperature {
        body["temperature"] = json!(temperature);
    }
    body
}

/// Messages in which the roles alternate, with all results of a turn in one.
fn messages(request: &Request, names: &WireNames) -> Vec<Value> {
    let mut out: Vec<Value> = Vec::new();
    for message in request.messages.iter() {
        let (role, content): (_, Vec<Value>) = match &**message {
            Message::User { text } | Message::Note { text } => ("user", vec![text_block(text)]),
            Message::Results { results } => {
                let block = |result: &crate::message::ToolResult| {
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
        match out.last_mut().filter(|last| last["role"] == role).and_then(|last| last["content"].as_array_mut()) {
            Some(last) => last.extend(content),
            None => out.push(json!({"role": role, "content": content})),
        }
    }
    out
}

fn text_block(text: &str) -> Value {
    // An empty text is refused.
    json!({"type": "text", "text": if text.trim().is_empty() { "…" } else { text }})
}

fn block(part: &Part, names: &WireNames) -> Option<Value> {
    match part {
        Part::Text { text } => (!text.trim().is_empty()).then(|| json!({"type": "text", "text": text})),
        // A thought goes back exactly as it came, or, without its signature or from elsewhere, not at all.
        Part::Reasoning { opaque, .. } => {
            let is_thought = |block: &&Value| block["type"] == "thinking" || block["type"] == "redacted_thinking";
            opaque.as_ref().filter(is_thought).cloned()
        }
        Part::Call(call) => {
            let (id, name) = (tool_use_id(&call.id.0), names.wire(&call.name));
            Some(json!({"type": "tool_use", "id": id, "name": name, "input": call.sent_arguments()}))
        }
    }
}

/// Ids of other providers may hold what is refused here.
fn tool_use_id(id: &str) -> String {
    id.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' }).collect()
}

/// Reads events.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    block: Block,
    cursor: TextCursor,
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
        /// Arguments that came as a whole, for as long as no piece of them has come.
        input: Option<Value>,
    },
    Text {
        begin: usize,
    },
}

impl Decode for Decoder {
    fn event(&mut self, _: &str, data: &str) -> Result<Vec<Delta>> {
        let event = super::sse::json(data)?;
        let index = event["index"].as_u64().unwrap_or(0) as usize;
        match event["type"].as_str().unwrap_or_default() {
            "error" => Err(failure::in_stream(&event)),
            "message_start" => {
                self.count(&event["message"]["usage"]);
                Ok(Vec::new())
            }
            "content_block_start" => Ok(self.start(index, &event["content_block"])),
            "content_block_delta" => Ok(self.delta(&event["delta"])),
            "content_block_stop" => Ok(self.stop(&event["content_block"])),
            "message_delta" => {
                self.count(&event["usage"]);
                self.reason = reason(&event["delta"]["stop_reason"]).or(self.reason);
                Ok(vec![Delta::Usage(self.usage)])
            }
            "message_stop" => {
                // Some gateways tell the whole message again.
                let blocks = event["message"]["content"].as_array().into_iter().flatten();
                let text: String = blocks.filter_map(|block| block["text"].as_str()).collect();
                let end = Delta::End(self.reason.unwrap_or(EndReason::Complete));
                Ok(self.cumulative(0, &text).into_iter().chain([end]).collect())
            }
            // Pings, and what will be invented.
            _ => Ok(Vec::new()),
        }
    }

    fn end(&mut self) -> Vec<Delta> {
        Vec::new()
    }

    fn whole(&mut self, body: &Value) -> Result<Vec<Delta>> {
        if body["type"] == "error" {
            return Err(failure::in_stream(body));
        }
        let mut deltas = Vec::new();
        for (index, block) in body["content"].as_array().into_iter().flatten().enumerate() {
            deltas.extend(self.start(index, block));
            deltas.extend(self.stop(&Value::Null));
        }
        self.count(&body["usage"]);
        deltas.push(Delta::Usage(self.usage));
        deltas.extend(reason(&body["stop_reason"]).map(Delta::End));
        Ok(deltas)
    }
}

fn reason(stop: &Value) -> Option<EndReason> {
    Some(match stop.as_str()? {
        "max_tokens" | "model_context_window_exceeded" => EndReason::Length,
        "refusal" => EndReason::Refused,
        _ => EndReason::Complete,
    })
}

impl Decoder {
    fn start(&mut self, index: usize, block: &Value) -> Vec<Delta> {
        match block["type"].as_str().unwrap_or_default() {
            "tool_use" => {
                self.block = Block::Call { index, input: whole_input(block) };
                let text = |field: &str| block[field].as_str().unwrap_or_default().to_string();
                vec![Delta::CallStart { index, id: text("id"), name: text("name") }]
            }
            "thinking" => {
                let text = |field: &str| block[field].as_str().unwrap_or_default().to_string();
                self.block = Block::Thinking { text: text("thinking"), signature: text("signature") };
                Vec::new()
            }
            "redacted_thinking" => vec![Delta::Reasoning { text: String::new(), opaque: Some(block.clone()) }],
            _ => {
                self.block = Block::Text { begin: self.cursor.bytes() };
                self.text(&block["text"])
            }
        }
    }

    fn delta(&mut self, delta: &Value) -> Vec<Delta> {
        let piece = |field: &str| delta[field].as_str().unwrap_or_default();
        match (delta["type"].as_str().unwrap_or_default(), &mut self.block) {
            ("text_delta", _) => self.text(&delta["text"]),
            ("input_json_delta", Block::Call { index, input }) if !piece("partial_json").is_empty() => {
                *input = None;
                vec![Delta::CallArguments { index: *index, text: piece("partial_json").into() }]
            }
            ("thinking_delta", Block::Thinking { text, .. }) => {
                text.push_str(piece("thinking"));
                vec![Delta::Reasoning { text: piece("thinking").into(), opaque: None }]
            }
            ("signature_delta", Block::Thinking { signature, .. }) => {
                signature.push_str(piece("signature"));
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// The end of a block, which some gateways tell again as a whole.
    fn stop(&mut self, block: &Value) -> Vec<Delta> {
        match std::mem::take(&mut self.block) {
            Block::None => Vec::new(),
            Block::Text { begin } => {
                self.cumulative(begin, block["text"].as_str().unwrap_or_default()).into_iter().collect()
            }
            Block::Call { index, input } => {
                let whole = input.map(|input| Delta::CallArguments { index, text: input.to_string() });
                whole.into_iter().chain([Delta::CallEnd { index, opaque: None }]).collect()
            }
            Block::Thinking { text, signature } => {
                let block = json!({"type": "thinking", "thinking": text, "signature": signature});
                vec![Delta::Reasoning { text: String::new(), opaque: Some(block) }]
            }
        }
    }

    fn text(&mut self, text: &Value) -> Vec<Delta> {
        let text = self.cursor.new_suffix(self.cursor.bytes(), text.as_str().unwrap_or_default());
        if text.is_empty() { Vec::new() } else { vec![Delta::Text { text: text.into() }] }
    }

    fn cumulative(&mut self, begin: usize, text: &str) -> Option<Delta> {
        let is_new = !self.cursor.new_suffix(begin, text).is_empty();
        is_new.then(|| Delta::CumulativeText { begin, text: text.into() })
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

/// Some servers send no pieces of the arguments.
fn whole_input(block: &Value) -> Option<Value> {
    match &block["input"] {
        Value::Null => None,
        Value::Object(fields) if fields.is_empty() => None,
        input => Some(input.clone()),
    }
}
