//! Gemini's generateContent API.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::error::Result;
use crate::message::{CallId, Message, Part, Status, ToolCall, Usage};
use crate::model::{Delta, EndReason, Request, ToolChoice};
use crate::schema::{WireNames, gemini};

use super::{Decode, Streaming, failure};

pub(super) fn headers(key: Option<&str>) -> Vec<(String, String)> {
    key.map(|key| ("x-goog-api-key".to_string(), key.to_string())).into_iter().collect()
}

pub(super) fn path(model: &str, streaming: Streaming) -> String {
    let method = match streaming {
        Streaming::Yes => "streamGenerateContent?alt=sse",
        Streaming::No => "generateContent",
    };
    format!("models/{model}:{method}")
}

pub(super) fn body(request: &Request, names: &WireNames) -> Value {
    let mut body = json!({"contents": contents(request, names)});
    if let Some(system) = &request.system {
        body["systemInstruction"] = json!({"parts": [{"text": &**system}]});
    }
    let mut config = json!({});
    if let Some(most) = request.max_output_tokens {
        config["maxOutputTokens"] = json!(most);
    }
    if let Some(temperature) = request.temperature {
        config["temperature"] = json!(temperature);
    }
    if request.tools.is_empty() {
        if let Some(schema) = &request.answer_schema {
            config["responseMimeType"] = json!("application/json");
            config["responseJsonSchema"] = Value::clone(schema);
        }
    } else {
        let declaration = |tool: &crate::tool::ToolSpec| {
            let mut declaration = json!({"name": names.wire(&tool.name), "description": tool.description});
            if let Some(parameters) = gemini(&tool.parameters) {
                declaration["parameters"] = parameters;
            }
            declaration
        };
        let declarations: Vec<Value> = request.tools.iter().map(declaration).collect();
        body["tools"] = json!([{"functionDeclarations": declarations}]);
        let calling = match &request.tool_choice {
            ToolChoice::Auto => json!({"mode": "AUTO"}),
            ToolChoice::None => json!({"mode": "NONE"}),
            ToolChoice::Required => json!({"mode": "ANY"}),
            ToolChoice::Tool(name) => json!({"mode": "ANY", "allowedFunctionNames": [names.wire(name)]}),
        };
        body["toolConfig"] = json!({"functionCallingConfig": calling});
    }
    if config != json!({}) {
        body["generationConfig"] = config;
    }
    body
}

fn contents(request: &Request, names: &WireNames) -> Vec<Value> {
    let mut contents: Vec<Value> = Vec::new();
    // The provider's own ids; where it gave none, calls and results are matched by their order.
    let mut ids: HashMap<&CallId, &Value> = HashMap::new();
    for message in request.messages.iter() {
        ids.extend(message.calls().filter_map(|call| Some((&call.id, call.opaque.as_ref()?.get("id")?))));
        let (role, parts): (_, Vec<Value>) = match &**message {
            Message::User { text } | Message::Note { text } => ("user", vec![json!({"text": text})]),
            Message::Assistant { parts } => {
                ("model", parts.iter().filter_map(|part| part_object(part, names)).collect())
            }
            Message::Results { results } => {
                let part = |result: &crate::message::ToolResult| {
                    let field = if result.status == Status::Ok { "output" } else { "error" };
                    let mut response = json!({"name": names.wire(&result.name), "response": {field: result.text()}});
                    if let Some(id) = ids.get(&result.call) {
                        response["id"] = Value::clone(id);
                    }
                    json!({"functionResponse": response})
                };
                ("user", results.iter().map(part).collect())
            }
        };
        if !parts.is_empty() {
            contents.push(json!({"role": role, "parts": parts}));
        }
    }
    contents
}

fn part_object(part: &Part, names: &WireNames) -> Option<Value> {
    match part {
        Part::Text { text } => Some(json!({"text": text})),
        Part::Reasoning { .. } => None,
        Part::Call(call) => Some(call_part(call, names)),
    }
}

fn call_part(call: &ToolCall, names: &WireNames) -> Value {
    let mut part = json!({"functionCall": {"name": names.wire(&call.name), "args": call.sent_arguments()}});
    if let Some(opaque) = &call.opaque {
        if let Some(id) = opaque.get("id") {
            part["functionCall"]["id"] = id.clone();
        }
        if let Some(signature) = opaque.get("thoughtSignature") {
            part["thoughtSignature"] = signature.clone();
        }
    }
    part
}

/// Reads chunks. There is no terminal event: a chunk with a finish reason, then the end of the body, are the end.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    calls: usize,
    usage: Option<Usage>,
    finish: Option<EndReason>,
}

impl Decode for Decoder {
    fn event(&mut self, _: &str, data: &str) -> Result<Vec<Delta>> {
        self.chunk(&super::sse::json(data)?)
    }

    fn end(&mut self) -> Vec<Delta> {
        let Some(finish) = self.finish.take() else { return Vec::new() };
        self.usage.map(Delta::Usage).into_iter().chain([Delta::End(finish)]).collect()
    }

    fn whole(&mut self, body: &Value) -> Result<Vec<Delta>> {
        let mut deltas = Vec::new();
        // Without `alt=sse` the chunks come as one list.
        match body {
            Value::Array(chunks) => {
                chunks.iter().try_for_each(|chunk| self.chunk(chunk).map(|more| deltas.extend(more)))?
            }
            chunk => deltas.extend(self.chunk(chunk)?),
        }
        deltas.extend(self.end());
        Ok(deltas)
    }
}

impl Decoder {
    fn chunk(&mut self, chunk: &Value) -> Result<Vec<Delta>> {
        if !chunk["error"].is_null() {
            return Err(failure::in_stream(chunk));
        }
        let candidate = &chunk["candidates"][0];
        let parts = candidate["content"]["parts"].as_array().into_iter().flatten();
        let mut deltas: Vec<Delta> = parts.flat_map(|part| self.part(part)).collect();
        let usage = &chunk["usageMetadata"];
        if let Some(input) = usage["promptTokenCount"].as_u64() {
            let number = |field: &str| usage[field].as_u64().unwrap_or(0);
            let reasoning = number("thoughtsTokenCount");
            let output = number("candidatesTokenCount") + reasoning;
            self.usage = Some(Usage { input, output, cached: number("cachedContentTokenCount"), reasoning });
        }
        if chunk["promptFeedback"]["blockReason"].is_string() {
            self.finish = Some(EndReason::Filtered);
        }
        match candidate["finishReason"].as_str() {
            None => {}
            Some("MAX_TOKENS") => self.finish = Some(EndReason::Length),
            Some("SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII") => {
                self.finish = Some(EndReason::Filtered);
            }
            Some(reason @ ("MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "TOO_MANY_TOOL_CALLS")) => {
                let raw = candidate["finishMessage"].as_str().unwrap_or_default().to_string();
                let fault = format!("The call could not be read ({reason}): {raw}");
                deltas.push(Delta::CallFault { index: self.calls, fault, raw });
                self.calls += 1;
                self.finish = Some(EndReason::Complete);
            }
            Some(_) => self.finish = Some(EndReason::Complete),
        }
        Ok(deltas)
    }

    fn part(&mut self, part: &Value) -> Vec<Delta> {
        let call = &part["functionCall"];
        if call.is_object() {
            let index = self.calls;
            self.calls += 1;
            let text = |field: &str| call[field].as_str().unwrap_or_default().to_string();
            let mut opaque = serde_json::Map::new();
            for (field, value) in [("id", &call["id"]), ("thoughtSignature", &part["thoughtSignature"])] {
                if value.is_string() {
                    opaque.insert(field.into(), value.clone());
                }
            }
            let opaque = (!opaque.is_empty()).then_some(Value::Object(opaque));
            let arguments = if call["args"].is_object() { call["args"].to_string() } else { String::new() };
            return vec![
                Delta::CallStart { index, id: text("id"), name: text("name") },
                Delta::CallArguments { index, text: arguments },
                Delta::CallEnd { index, opaque },
            ];
        }
        match part["text"].as_str().filter(|text| !text.is_empty()) {
            None => Vec::new(),
            Some(text) if part["thought"] == true => vec![Delta::Reasoning { text: text.into(), opaque: None }],
            Some(text) => vec![Delta::Text { text: text.into() }],
        }
    }
}
