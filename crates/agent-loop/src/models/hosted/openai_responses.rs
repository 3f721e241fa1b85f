//! The client side of OpenAI's Responses API, stateless: reasoning is sent back encrypted.

use serde_json::{Value, json};

use crate::error::Result;
use crate::message::{Message, Part, ToolCall, Usage};
use crate::model::{Delta, EndReason, Parallel, Request, ToolChoice};
use crate::schema::{Strict, WireNames};

use super::output_texts::{OutputTexts, is_refusal, output_index};
use super::{Decode, failure};

pub(super) fn body(model: &str, request: &Request, names: &WireNames) -> Value {
    let mut input = Vec::new();
    for message in request.messages.iter() {
        add_items(&mut input, message, names);
    }
    let mut body = json!({
        "model": model,
        "input": input,
        "stream": true,
        "store": false,
        "include": ["reasoning.encrypted_content"],
    });
    if let Some(system) = &request.system {
        body["instructions"] = json!(&**system);
    }
    if !request.tools.is_empty() {
        let tool = |tool: &crate::tool::ToolSpec| {
            let (parameters, strict) = Strict::of(&tool.parameters).into_parts();
            json!({
                "type": "function", "name": names.wire(&tool.name), "description": tool.description,
                "parameters": parameters, "strict": strict,
            })
        };
        body["tools"] = request.tools.iter().map(tool).collect();
        body["tool_choice"] = match &request.tool_choice {
            ToolChoice::Auto => json!("auto"),
            ToolChoice::None => json!("none"),
            ToolChoice::Required => json!("required"),
            ToolChoice::Tool(name) => json!({"type": "function", "name": names.wire(name)}),
        };
        body["parallel_tool_calls"] = json!(request.parallel == Parallel::Many);
    }
    if let Some(schema) = &request.answer_schema {
        let (schema, strict) = Strict::of_answer(schema).into_parts();
        body["text"] = json!({"format": {"type": "json_schema", "name": "answer", "schema": schema, "strict": strict}});
    }
    if let Some(most) = request.max_output_tokens {
        body["max_output_tokens"] = json!(most);
    }
    if let Some(temperature) = request.temperature {
        body["temperature"] = json!(temperature);
    }
    body
}

fn add_items(input: &mut Vec<Value>, message: &Message, names: &WireNames) {
    match message {
        Message::User { text } | Message::Note { text } => {
            input.push(json!({"type": "message", "role": "user", "content": text}))
        }
        Message::Assistant { parts } => input.extend(parts.iter().filter_map(|part| match part {
            Part::Text { text } => Some(json!({"type": "message", "role": "assistant", "content": text})),
            // An item of reasoning goes back as it came; a text of reasoning is no item.
            Part::Reasoning { opaque, .. } => opaque.as_ref().filter(|item| item["type"] == "reasoning").cloned(),
            Part::Call(call) => Some(call_item(call, names)),
        })),
        Message::Results { results } => input.extend(
            results
                .iter()
                .map(|result| json!({"type": "function_call_output", "call_id": result.call, "output": result.text()})),
        ),
    }
}

fn call_item(call: &ToolCall, names: &WireNames) -> Value {
    let arguments = call.sent_arguments().to_string();
    json!({"type": "function_call", "call_id": call.id, "name": names.wire(&call.name), "arguments": arguments})
}

/// Reads events.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    /// In the order in which they began; a call's position here is its index.
    calls: Vec<Call>,
    texts: OutputTexts,
    is_refused: bool,
}

/// A call that has begun. Some servers say that every item is at position 0 of the output, some give items no id.
#[derive(Debug)]
struct Call {
    item_id: String,
    call_id: String,
    position: u64,
    /// Whether pieces of its arguments have come.
    has_arguments: bool,
}

impl Decode for Decoder {
    fn event(&mut self, _: &str, data: &str) -> Result<Vec<Delta>> {
        let event = super::sse::json(data)?;
        let piece = || event["delta"].as_str().unwrap_or_default().to_string();
        Ok(match event["type"].as_str().unwrap_or_default() {
            "response.output_text.delta" => self.texts.piece(&event, &piece()).into_iter().collect(),
            "response.refusal.delta" => {
                self.is_refused = true;
                self.texts.piece(&event, &piece()).into_iter().collect()
            }
            "response.output_text.done" => self.texts.whole(&event, &event["text"]).into_iter().collect(),
            "response.refusal.done" => {
                self.is_refused = true;
                self.texts.whole(&event, &event["refusal"]).into_iter().collect()
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                vec![Delta::Reasoning { text: piece(), opaque: None }]
            }
            "response.output_item.added" if event["item"]["type"] == "function_call" => {
                self.start(output_index(&event), &event["item"]).1.into_iter().collect()
            }
            "response.function_call_arguments.delta" => match self.of_piece(&event) {
                Some(index) => {
                    self.calls[index].has_arguments |= !piece().is_empty();
                    vec![Delta::CallArguments { index, text: piece() }]
                }
                None => Vec::new(),
            },
            "response.output_item.done" => self.item_done(&event, &event["item"]),
            "response.completed" | "response.incomplete" => self.finish(&event["response"]),
            "response.failed" => return Err(failure::in_stream(&event["response"])),
            "error" if event["error"].is_object() => return Err(failure::in_stream(&event)),
            "error" => return Err(failure::in_stream(&json!({"error": event}))),
            _ => Vec::new(),
        })
    }

    fn end(&mut self) -> Vec<Delta> {
        Vec::new()
    }

    fn whole(&mut self, body: &Value) -> Result<Vec<Delta>> {
        if !body["error"].is_null() {
            return Err(failure::in_stream(body));
        }
        let mut deltas = Vec::new();
        for (position, item) in body["output"].as_array().into_iter().flatten().enumerate() {
            deltas.extend(self.item_done(&json!({"output_index": position}), item));
        }
        if body["status"].is_string() {
            deltas.extend(self.finish(body));
        }
        Ok(deltas)
    }
}

impl Decoder {
    /// The call that this item is of, with its beginning where it has not begun.
    fn start(&mut self, position: u64, item: &Value) -> (usize, Option<Delta>) {
        let text = |field: &str| item[field].as_str().unwrap_or_default().to_string();
        let (item_id, call_id) = (text("id"), text("call_id"));
        // The id that results name tells calls apart; without one it is the item's, and at last its position.
        let is_same = |call: &Call| match (call_id.as_str(), item_id.as_str()) {
            ("", "") => call.position == position,
            ("", item_id) => call.item_id == item_id,
            (call_id, _) => call.call_id == call_id,
        };
        if let Some(index) = self.calls.iter().rposition(is_same) {
            return (index, None);
        }
        let index = self.calls.len();
        let start = Delta::CallStart { index, id: call_id.clone(), name: text("name") };
        self.calls.push(Call { item_id, call_id, position, has_arguments: false });
        (index, Some(start))
    }

    /// The call that a piece of arguments belongs to.
    fn of_piece(&self, event: &Value) -> Option<usize> {
        let by_id = event["item_id"].as_str().filter(|id| !id.is_empty());
        let by_id = by_id.and_then(|id| self.calls.iter().rposition(|call| call.item_id == id));
        by_id.or_else(|| self.calls.iter().rposition(|call| call.position == output_index(event)))
    }

    fn item_done(&mut self, event: &Value, item: &Value) -> Vec<Delta> {
        match item["type"].as_str().unwrap_or_default() {
            "function_call" => {
                // Some servers send no item before this one, or no pieces of its arguments.
                let (index, start) = self.start(output_index(event), item);
                let mut deltas: Vec<Delta> = start.into_iter().collect();
                if !self.calls[index].has_arguments {
                    let text = item["arguments"].as_str().unwrap_or_default().to_string();
                    deltas.push(Delta::CallArguments { index, text });
                }
                // Without its end the call never runs.
                if item["status"].as_str().is_none_or(|status| status == "completed") {
                    deltas.push(Delta::CallEnd { index, opaque: None });
                }
                deltas
            }
            "reasoning" => {
                let mut item = item.clone();
                if let Some(fields) = item.as_object_mut() {
                    fields.remove("status");
                }
                vec![Delta::Reasoning { text: String::new(), opaque: Some(item) }]
            }
            "message" => {
                self.is_refused |= is_refusal(item);
                self.texts.item(event, item)
            }
            _ => Vec::new(),
        }
    }

    fn finish(&mut self, response: &Value) -> Vec<Delta> {
        let text = self.texts.response(response);
        self.is_refused |= response["output"].as_array().into_iter().flatten().any(is_refusal);
        let usage = &response["usage"];
        let number = |value: &Value| value.as_u64().unwrap_or(0);
        let counted = usage.is_object().then(|| Usage {
            input: number(&usage["input_tokens"]),
            output: number(&usage["output_tokens"]),
            cached: number(&usage["input_tokens_details"]["cached_tokens"]),
            reasoning: number(&usage["output_tokens_details"]["reasoning_tokens"]),
        });
        let reason = match response["incomplete_details"]["reason"].as_str() {
            Some("content_filter") => EndReason::Filtered,
            Some(_) => EndReason::Length,
            None if response["status"] == "incomplete" => EndReason::Length,
            None if self.is_refused => EndReason::Refused,
            None => EndReason::Complete,
        };
        text.into_iter().chain(counted.map(Delta::Usage)).chain([Delta::End(reason)]).collect()
    }
}
