//! The `response` object and its items, with every field that clients expect.

use serde_json::{Map, Value, json};

use crate::message::Usage;

/// What is known of a response before its first event.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    pub(super) id: String,
    pub(super) model: String,
    pub(super) created_at: u64,
    pub(super) echo: Map<String, Value>,
}

impl Frame {
    pub(super) fn response(&self, status: &str, output: &[Value], usage: Option<Usage>, more: Value) -> Value {
        let mut response = json!({
            "id": self.id,
            "object": "response",
            "created_at": self.created_at,
            "status": status,
            "background": false,
            "error": null,
            "incomplete_details": null,
            "model": self.model,
            "output": output,
            "previous_response_id": null,
            "usage": usage.map(usage_object),
        });
        if let (Some(response), Value::Object(more)) = (response.as_object_mut(), more) {
            response.extend(self.echo.clone());
            response.extend(more);
        }
        response
    }
}

fn usage_object(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.total(),
    })
}

pub(super) fn text_part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

pub(super) fn message_item(id: &str, status: &str, text: Option<&str>) -> Value {
    let content: Vec<Value> = text.map(text_part).into_iter().collect();
    json!({"id": id, "type": "message", "role": "assistant", "status": status, "content": content})
}

pub(super) fn call_item(id: &str, call_id: &str, name: &str, status: &str, arguments: &str) -> Value {
    json!({
        "id": id, "type": "function_call", "call_id": call_id, "name": name, "status": status, "arguments": arguments,
    })
}
