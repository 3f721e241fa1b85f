//! Parses a Chat Completions request into the same request as the Responses API's.

use std::sync::Arc;

use serde_json::Value;

use crate::fields::{answer_schema, content_text, flag, limit, needed, optional, read_json, refuse_unsupported, text};
use crate::request::Conversation;
use crate::{ApiError, ApiRequest};

/// Fields that are not supported; the first two are the older form of tools.
const UNSUPPORTED: [&str; 7] =
    ["functions", "function_call", "logprobs", "top_logprobs", "logit_bias", "audio", "web_search_options"];

/// A parsed request.
#[derive(Debug, Clone)]
pub struct ChatRequest {
    /// The part that both APIs have in common.
    pub api: ApiRequest,
    /// Whether the client wants a chunk with the token counts.
    pub usage: UsageChunk,
}

/// Whether the last chunk of a stream has the token counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageChunk {
    /// The client set `stream_options.include_usage`.
    Sent,
    /// The default.
    LeftOut,
}

impl ChatRequest {
    /// Parses the body of `POST /v1/chat/completions`.
    ///
    /// # Errors
    /// `ApiError` with status 400 and the invalid field.
    pub fn parse(body: &[u8]) -> Result<Self, ApiError> {
        let body = read_json(body)?;
        refuse_unsupported(&body, &UNSUPPORTED)?;
        if optional(&body["n"], "n", "a whole number", Value::as_u64)?.is_some_and(|choices| choices != 1) {
            return Err(ApiError::invalid("n", "Only one choice is supported."));
        }
        let modalities = optional(&body["modalities"], "modalities", "a list", Value::as_array)?;
        if modalities.is_some_and(|modalities| modalities.iter().any(|modality| modality != "text")) {
            return Err(ApiError::invalid("modalities", "Only text is supported."));
        }
        let mut api = ApiRequest::new(&body, "messages", read_messages(&body["messages"])?)?;
        let schema = answer_schema(&body["response_format"], "response_format", "/json_schema/schema")?;
        api.request.answer_schema = schema.map(Arc::new);
        let older_limit = limit(&body["max_tokens"], "max_tokens")?;
        api.request.max_output_tokens = limit(&body["max_completion_tokens"], "max_completion_tokens")?.or(older_limit);
        let options = &body["stream_options"];
        optional(options, "stream_options", "an object", Value::as_object)?;
        let asks_usage = flag(&options["include_usage"], "stream_options.include_usage")? == Some(true);
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
        let role = message["role"].as_str().unwrap_or_default();
        let said = match &message["content"] {
            Value::Null => text(&message["refusal"], &param("refusal"))?.unwrap_or_default().to_string(),
            content => content_text(content, &param("content"))?,
        };
        if role == "tool" {
            conversation.result(needed(&message["tool_call_id"], || param("tool_call_id"))?, said);
            continue;
        }
        conversation.text(role, said).map_err(|what| ApiError::invalid(param("role"), what + ", tool."))?;
        if role != "assistant" {
            continue;
        }
        if !message["function_call"].is_null() {
            return Err(ApiError::invalid(param("function_call"), "This is the deprecated form of tool_calls."));
        }
        let calls = optional(&message["tool_calls"], &param("tool_calls"), "a list", Value::as_array)?;
        for (number, call) in calls.into_iter().flatten().enumerate() {
            let param = |field: &str| param(&format!("tool_calls[{number}].{field}"));
            if text(&call["type"], &param("type"))?.is_some_and(|kind| kind != "function") {
                return Err(ApiError::invalid(param("type"), "Only functions are supported here."));
            }
            let (id, function) = (needed(&call["id"], || param("id"))?, &call["function"]);
            let name = needed(&function["name"], || param("function.name"))?;
            let arguments = text(&function["arguments"], &param("function.arguments"))?;
            conversation.call(id, name, arguments.unwrap_or_default());
        }
    }
    Ok(conversation)
}
