//! Parses a Chat Completions request into the same request as the Responses API's.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::message::{CallId, History, Message, Part, Status, ToolCall, ToolResult};
use crate::model::{Parallel, Request, read_arguments};

use super::super::request::{add_part, content_text, name_of, read_choice, read_json, read_model, read_tools};
use super::super::{ApiError, ApiRequest, Delivery};

/// A request as it was understood.
#[derive(Debug, Clone)]
pub struct ChatRequest {
    /// What both APIs have in common.
    pub api: ApiRequest,
    /// Whether the client wants a chunk with the tokens.
    pub usage: UsageChunk,
}

/// Whether the last chunk of a stream tells the tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageChunk {
    /// `stream_options.include_usage` was asked for.
    Sent,
    /// The default.
    LeftOut,
}

impl ChatRequest {
    /// Reads the body of `POST /v1/chat/completions`. Unknown fields pass.
    ///
    /// # Errors
    /// `ApiError` with status 400 and the field that is wrong.
    pub fn parse(body: &[u8]) -> Result<Self, ApiError> {
        let body = read_json(body)?;
        let model = read_model(&body)?;
        if body["n"].as_u64().is_some_and(|choices| choices != 1) {
            return Err(ApiError::invalid("n", "One choice is all that is given here."));
        }
        let (tools, strict) = read_tools(&body["tools"])?;
        let (messages, system) = read_messages(&body["messages"])?;
        let (history, warnings) = History::repaired(messages);
        if history.messages().is_empty() {
            return Err(ApiError::invalid("messages", "There is no message."));
        }
        let (tool_choice, tools) = read_choice(&flat_choice(&body["tool_choice"]), tools)?;
        let format = &body["response_format"];
        let answer_schema =
            (format["type"] == "json_schema").then(|| Arc::new(format["json_schema"]["schema"].clone()));
        let most = body["max_completion_tokens"].as_u64().or_else(|| body["max_tokens"].as_u64());
        let request = Request {
            system: (!system.is_empty()).then(|| system.join("\n\n").into()),
            messages: history.messages().clone(),
            tools: tools.into(),
            tool_choice,
            parallel: if body["parallel_tool_calls"] == false { Parallel::One } else { Parallel::Many },
            answer_schema,
            max_output_tokens: most.and_then(|most| u32::try_from(most).ok()),
            temperature: body["temperature"].as_f64(),
        };
        let delivery = if body["stream"] == true { Delivery::Events } else { Delivery::Whole };
        let asks_usage = body["stream_options"]["include_usage"] == true;
        let usage = if asks_usage { UsageChunk::Sent } else { UsageChunk::LeftOut };
        Ok(Self { api: ApiRequest { model, request, delivery, warnings, echo: Map::new(), strict }, usage })
    }
}

/// Allowed tools in the other API's shape; all else is the same in both.
fn flat_choice(choice: &Value) -> Value {
    if choice["type"] != "allowed_tools" {
        return choice.clone();
    }
    let allowed = &choice["allowed_tools"];
    let names = allowed["tools"].as_array().into_iter().flatten().map(|tool| json!({"name": tool["function"]["name"]}));
    json!({"type": "allowed_tools", "mode": allowed["mode"], "tools": names.collect::<Vec<_>>()})
}

/// The conversation, and its system texts.
fn read_messages(given: &Value) -> Result<(Vec<Message>, Vec<String>), ApiError> {
    let (mut messages, mut system) = (Vec::new(), Vec::new());
    let Value::Array(given) = given else {
        return Err(ApiError::invalid("messages", "The messages must be a list."));
    };
    for (index, message) in given.iter().enumerate() {
        let param = |field: &str| format!("messages[{index}].{field}");
        let text = content_text(&message["content"]);
        match message["role"].as_str() {
            Some("system" | "developer") => system.push(text),
            Some("user") => messages.push(Message::user(text)),
            Some("assistant") => {
                if !text.is_empty() {
                    add_part(&mut messages, Part::Text { text });
                }
                let calls = message["tool_calls"].as_array().into_iter().flatten();
                for (number, call) in calls.enumerate().filter(|(_, call)| call["type"] != "custom") {
                    let call = read_call(call, |field| param(&format!("tool_calls[{number}].{field}")))?;
                    add_part(&mut messages, Part::Call(call));
                }
            }
            Some("tool") => {
                let id = message["tool_call_id"].as_str();
                let id = id.ok_or_else(|| ApiError::invalid(param("tool_call_id"), "This is needed, as a string."))?;
                let call = CallId(id.to_string());
                let name = name_of(&messages, &call);
                let result = ToolResult { call, name, status: Status::Ok, note: None, items: vec![text] };
                messages.push(Message::Results { results: vec![result] });
            }
            role => {
                let role = role.unwrap_or_default();
                let message = format!("{role:?} is not one of system, developer, user, assistant, tool.");
                return Err(ApiError::invalid(param("role"), message));
            }
        }
    }
    Ok((messages, system))
}

fn read_call(call: &Value, param: impl Fn(&str) -> String) -> Result<ToolCall, ApiError> {
    let needed = |value: &Value, field: &str| match value.as_str() {
        Some(text) => Ok(text.to_string()),
        None => Err(ApiError::invalid(param(field), "This is needed, as a string.")),
    };
    let function = &call["function"];
    let raw = function["arguments"].as_str().unwrap_or_default();
    let mut call = ToolCall::new(needed(&call["id"], "id")?, needed(&function["name"], "function.name")?, json!({}));
    match read_arguments(raw) {
        Ok(arguments) => call.arguments = arguments,
        Err(fault) => (call.arguments, call.fault) = (json!(raw), Some(fault)),
    }
    Ok(call)
}
