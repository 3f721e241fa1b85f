//! The client side of OpenAI's Responses API, stateless: reasoning is sent back encrypted.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::{Error, ErrorKind, Result};
use crate::message::{Image, Message, Part, TextPhase, Usage};
use crate::model::{Delta, EndReason, Parallel, PromptCache, Request, ToolChoice};
use crate::schema::{WireNames, strict, strict_answer};
use crate::tool::ToolSpec;

use super::body_text::BodyText;
use super::deltas::Deltas;
use super::output_texts::{OutputTexts, is_refusal, output_index, texts_of};
use super::without_nulls::without_nulls;
use super::{Decode, failure};

pub(super) fn fields(model: &str, request: &Request, names: &WireNames, is_streamed: bool) -> Value {
    let tool = |tool: &ToolSpec| {
        let strict = strict(&tool.parameters);
        json!({
            "type": "function", "name": names.wire(&tool.name), "description": tool.description,
            "parameters": strict.as_ref().unwrap_or(&tool.parameters), "strict": strict.is_some(),
        })
    };
    let has_tools = !request.tools.is_empty();
    let choice = match &request.tool_choice {
        ToolChoice::Tool(name) => json!({"type": "function", "name": names.wire(name)}),
        // The API uses the same names.
        word => json!(word),
    };
    let format = request.answer_schema.as_ref().map(|schema| {
        let strict = strict_answer(schema);
        let (is_strict, schema) = (strict.is_some(), strict.as_ref().unwrap_or(schema));
        json!({"format": {"type": "json_schema", "name": "answer", "schema": schema, "strict": is_strict}})
    });
    let settings = &request.settings;
    without_nulls(json!({
        "model": model,
        "stream": is_streamed,
        "store": false,
        "include": ["reasoning.encrypted_content"],
        "instructions": request.system.as_deref(),
        "tools": has_tools.then(|| request.tools.iter().map(tool).collect::<Value>()),
        "tool_choice": has_tools.then_some(choice),
        "parallel_tool_calls": has_tools.then_some(request.parallel == Parallel::Many),
        "text": format,
        "max_output_tokens": request.max_output_tokens,
        "temperature": request.temperature,
        "top_p": settings.top_p,
        "reasoning": settings.reasoning_effort.map(|effort| json!({"effort": effort})),
        "prompt_cache_key": settings.prompt_cache_key,
        "prompt_cache_retention": (settings.prompt_cache == PromptCache::Long).then_some("24h"),
        "service_tier": settings.service_tier,
    }))
}

pub(super) fn add_items(body: &mut BodyText, request: &Request, names: &WireNames) {
    for message in request.messages.iter() {
        add_items_of(body, message, names);
    }
}

fn add_items_of(body: &mut BodyText, message: &Message, names: &WireNames) {
    match message {
        Message::User { text, images } if !images.is_empty() => {
            let image = |image: &Image| json!({"type": "input_image", "image_url": image.to_url()});
            let text = (!text.is_empty()).then(|| json!({"type": "input_text", "text": text}));
            let content: Vec<Value> = images.iter().map(image).chain(text).collect();
            body.push(json!({"type": "message", "role": "user", "content": content}));
        }
        Message::User { text, .. } | Message::Note { text } => {
            body.push(json!({"type": "message", "role": "user", "content": text}))
        }
        Message::Assistant { parts } => body.extend(parts.iter().filter_map(|part| match part {
            Part::Text { text, phase, .. } => {
                Some(without_nulls(json!({"type": "message", "role": "assistant", "content": text, "phase": phase})))
            }
            // An item of reasoning is returned unchanged; plain reasoning text is not returned.
            Part::Reasoning { opaque, .. } => opaque.as_ref().filter(|item| item["type"] == "reasoning").cloned(),
            Part::Call(call) => {
                let (name, arguments) = (names.wire(&call.name), call.sent_text());
                Some(json!({"type": "function_call", "call_id": call.id, "name": name, "arguments": arguments}))
            }
        })),
        Message::Results { results } => body.extend(
            results
                .iter()
                .map(|result| json!({"type": "function_call_output", "call_id": result.call, "output": result.text()})),
        ),
    }
}

/// Decodes events.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    /// In the order in which they started; a call's position here is its index.
    calls: Vec<Call>,
    texts: OutputTexts,
    /// Whether pieces of the reasoning have arrived whose item is not complete.
    has_reasoning: bool,
    /// The phase of the last message.
    phase: Option<TextPhase>,
    is_refused: bool,
}

/// A call that has started. Some servers put every item at position 0 of the output, some give items no id.
#[derive(Debug)]
struct Call {
    item_id: String,
    call_id: String,
    position: u64,
    /// Whether pieces of its arguments have arrived.
    has_arguments: bool,
}

impl Decode for Decoder {
    fn event(&mut self, event: &Value, out: &mut Deltas) -> Result<()> {
        let kind = event["type"].as_str().unwrap_or_default();
        let piece = event["delta"].as_str().unwrap_or_default();
        match kind {
            "response.output_text.delta" | "response.refusal.delta" => {
                self.is_refused |= kind == "response.refusal.delta";
                self.texts.begin(event, out);
                out.text(piece);
            }
            "response.output_text.done" | "response.refusal.done" => {
                self.is_refused |= kind == "response.refusal.done";
                let text = event["text"].as_str().or_else(|| event["refusal"].as_str());
                out.text_at(self.texts.begin(event, out), text.unwrap_or_default());
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.has_reasoning |= !piece.is_empty();
                out.reasoning(piece, None);
            }
            "response.output_item.added" if event["item"]["type"] == "function_call" => {
                self.start(output_index(event), &event["item"], out);
            }
            "response.output_item.added" => self.begin_message(&event["item"], out),
            "response.function_call_arguments.delta" => {
                if let Some(index) = self.of_piece(event) {
                    self.calls[index].has_arguments |= !piece.is_empty();
                    out.call_arguments(index, piece);
                }
            }
            "response.output_item.done" => self.item_done(output_index(event), &event["item"], out),
            "response.completed" | "response.incomplete" => self.finish(&event["response"], out),
            // Some servers put the error beside the response.
            "response.failed" if event["response"]["error"].is_null() => return Err(failure::in_stream(event)),
            "response.failed" => return Err(failure::in_stream(&event["response"])),
            "error" if event["error"].is_object() => return Err(failure::in_stream(event)),
            "error" => return Err(failure::in_stream(&json!({"error": event}))),
            _ => {}
        }
        Ok(())
    }

    fn whole(&mut self, body: &Value, out: &mut Deltas) -> Result<()> {
        if !body["error"].is_null() {
            return Err(failure::in_stream(body));
        }
        for (position, item) in body["output"].as_array().into_iter().flatten().enumerate() {
            self.item_done(position as u64, item, out);
        }
        match body["status"].as_str().unwrap_or_default() {
            "failed" => return Err(failure::in_stream(body)),
            "queued" | "in_progress" => return Err(in_background()),
            "cancelled" => return Err(Error::new(ErrorKind::BadResponse, "the response was cancelled")),
            // Some servers use other names for a complete response.
            _ if body["output"].is_array() => {}
            _ => return Err(failure::no_reply()),
        }
        self.finish(body, out);
        Ok(())
    }
}

impl Decoder {
    /// Returns the index of this item's call, and starts the call if necessary.
    fn start(&mut self, position: u64, item: &Value, out: &mut Deltas) -> usize {
        let text = |field: &str| item[field].as_str().unwrap_or_default().to_string();
        let (item_id, call_id) = (text("id"), text("call_id"));
        // Calls are identified by the id that results use, else by the item's id, else by position.
        let is_same = |call: &Call| match (call_id.as_str(), item_id.as_str()) {
            ("", "") => call.position == position,
            ("", item_id) => call.item_id == item_id,
            (call_id, _) => call.call_id == call_id,
        };
        self.calls.iter().rposition(is_same).unwrap_or_else(|| {
            let index = self.calls.len();
            out.call_start(index, &item["call_id"], &item["name"]);
            self.calls.push(Call { item_id, call_id, position, has_arguments: false });
            index
        })
    }

    /// Returns the call to which a piece of arguments belongs.
    fn of_piece(&self, event: &Value) -> Option<usize> {
        let by_id = event["item_id"].as_str().filter(|id| !id.is_empty());
        let by_id = by_id.and_then(|id| self.calls.iter().rposition(|call| call.item_id == id));
        by_id.or_else(|| self.calls.iter().rposition(|call| call.position == output_index(event)))
    }

    /// Emits the purpose of a message's text, if it differs from that of the text before it.
    fn begin_message(&mut self, item: &Value, out: &mut Deltas) {
        if item["type"] != "message" {
            return;
        }
        let phase = TextPhase::deserialize(&item["phase"]).ok();
        if phase != self.phase {
            self.phase = phase;
            out.push(Delta::TextStart { phase });
        }
    }

    /// Handles a complete item at this position of the output.
    fn item_done(&mut self, position: u64, item: &Value, out: &mut Deltas) {
        match item["type"].as_str().unwrap_or_default() {
            "function_call" => {
                // Some servers send no item before this one, or no pieces of its arguments.
                let index = self.start(position, item, out);
                if item["caller"]["type"] == "program" {
                    let arguments = item["arguments"].as_str().unwrap_or_default();
                    return out.call_of_program(index, arguments.into());
                }
                if !self.calls[index].has_arguments {
                    out.call_arguments(index, item["arguments"].as_str().unwrap_or_default());
                }
                // Without its end the call never runs.
                if item["status"].as_str().is_none_or(|status| status == "completed") {
                    out.call_end(index, None);
                }
            }
            "reasoning" => {
                // Some servers send it only here, and so does a body that is one object.
                if !std::mem::take(&mut self.has_reasoning) {
                    out.reasoning(&reasoning_of(item), None);
                }
                let mut item = item.clone();
                if let Some(fields) = item.as_object_mut() {
                    fields.shift_remove("status");
                }
                out.reasoning("", Some(item));
            }
            "message" => {
                self.begin_message(item, out);
                self.is_refused |= is_refusal(item);
                self.texts.item(position, item, out);
            }
            _ => {}
        }
    }

    fn finish(&mut self, response: &Value, out: &mut Deltas) {
        let items = response["output"].as_array().map_or(&[][..], Vec::as_slice);
        self.is_refused |= items.iter().any(is_refusal);
        out.text_at(0, &items.iter().flat_map(texts_of).collect::<String>());
        let usage = &response["usage"];
        let number = |value: &Value| value.as_u64().unwrap_or(0);
        if usage.is_object() {
            out.push(Delta::Usage(Usage {
                input: number(&usage["input_tokens"]),
                output: number(&usage["output_tokens"]),
                cached: number(&usage["input_tokens_details"]["cached_tokens"]),
                reasoning: number(&usage["output_tokens_details"]["reasoning_tokens"]),
                cost: None,
            }));
        }
        out.push(Delta::End(match response["incomplete_details"]["reason"].as_str() {
            Some("content_filter") => EndReason::Filtered,
            Some(_) => EndReason::Length,
            None if response["status"] == "incomplete" => EndReason::Length,
            None if self.is_refused => EndReason::Refused,
            None => EndReason::Complete,
        }));
    }
}

/// Returns the error for a response that is not complete when the body ends, because it is created in the background. It
/// would have to be fetched later; only an extra body requests that.
fn in_background() -> Error {
    let error = Error::new(ErrorKind::BadResponse, "the response is created in the background and was not waited for");
    error.with_remedy("do not set background in the extra body")
}

/// Returns the text of a reasoning item: its summary, and the full text if a server sends it.
fn reasoning_of(item: &Value) -> String {
    let parts = [&item["summary"], &item["content"]].into_iter().filter_map(Value::as_array).flatten();
    parts.filter_map(|part| part["text"].as_str()).collect()
}
