//! Stored items of a conversation: each has an id and the form in which the API returns it.

use serde_json::{Value, json};

/// Returns the input of a request as items. It does not validate them, because that was done before.
pub(crate) fn input_items(input: &Value, mut new_id: impl FnMut(&str) -> String) -> Vec<Value> {
    let items = match input {
        Value::String(text) => vec![json!({"role": "user", "content": text})],
        Value::Array(items) => items.clone(),
        _ => Vec::new(),
    };
    items.into_iter().map(|item| whole_item(item, &mut new_id)).collect()
}

/// Adds the type, an id and a status to an item, and converts its text to parts.
fn whole_item(mut item: Value, new_id: &mut impl FnMut(&str) -> String) -> Value {
    if item["type"].is_null() {
        item["type"] = json!("message");
    }
    let kind = match item["type"].as_str() {
        Some("function_call") => "fc",
        Some("function_call_output") => "fco",
        _ => "msg",
    };
    if kind == "msg"
        && let Value::String(text) = &item["content"]
    {
        let part = match item["role"].as_str() {
            Some("assistant") => json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []}),
            _ => json!({"type": "input_text", "text": text}),
        };
        item["content"] = json!([part]);
    }
    if item["id"].as_str().is_none_or(str::is_empty) {
        item["id"] = json!(new_id(kind));
    }
    if item["status"].is_null() {
        item["status"] = json!("completed");
    }
    item
}
