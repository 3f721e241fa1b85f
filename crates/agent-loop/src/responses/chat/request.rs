//! Parses a Chat Completions request into the same request as the Responses API's.

use serde_json::Value;

use super::super::request::{Conversation, answer_schema, content_text, needed, read_json, read_limit};
use super::super::{ApiError, ApiRequest};

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
        if body["n"].as_u64().is_some_and(|choices| choices != 1) {
            return Err(ApiError::invalid("n", "One choice is all that is given here."));
        }
        let conversation = read_messages(&body["messages"])?;
        let format = &body["response_format"];
        let schema = answer_schema(format, &format["json_schema"]["schema"]);
        let mut api = ApiRequest::new(&body, "messages", conversation, schema)?;
        let limit = body.get("max_completion_tokens").filter(|limit| limit.is_u64()).unwrap_or(&body["max_tokens"]);
        api.request.max_output_tokens = read_limit(limit);
        let asks_usage = body["stream_options"]["include_usage"] == true;
        Ok(Self { api, usage: if asks_usage { UsageChunk::Sent } else { UsageChunk::LeftOut } })
    }
}

fn read_messages(given: &Value) -> Result<Conversation, ApiError> {
    let Value::Array(given) = given else {
        return Err(ApiError::invalid("messages", "The messages must be a list."));
    };
    let mut conversation = Conversation::default();
    for (index, message) in given.iter().enumerate() {
        let param = |field: &str| format!("messages[{index}].{field}");
        let text = content_text(&message["content"]);
        let role = message["role"].as_str().unwrap_or_default();
        if role == "tool" {
            conversation.result(needed(&message["tool_call_id"], || param("tool_call_id"))?, text);
            continue;
        }
        conversation.text(role, text).map_err(|what| ApiError::invalid(param("role"), what + ", tool."))?;
        let calls = message["tool_calls"].as_array().into_iter().flatten().enumerate();
        for (number, call) in calls.filter(|(_, call)| role == "assistant" && call["type"] != "custom") {
            let param = |field: &str| param(&format!("tool_calls[{number}].{field}"));
            let (id, function) = (needed(&call["id"], || param("id"))?, &call["function"]);
            let name = needed(&function["name"], || param("function.name"))?;
            conversation.call(id, name, &function["arguments"]);
        }
    }
    Ok(conversation)
}
