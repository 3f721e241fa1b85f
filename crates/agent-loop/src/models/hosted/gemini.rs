//! Gemini's generateContent API.

use std::collections::HashMap;
use std::slice;

use serde_json::{Value, json};

use crate::error::Result;
use crate::message::{CallId, Image, Message, Part, Status, ToolCall, ToolResult, Usage};
use crate::model::{Delta, EndReason, ModelSettings, ReasoningEffort, Request, ToolChoice};
use crate::schema::{WireNames, gemini};
use crate::tool::ToolSpec;

use super::body_text::BodyText;
use super::deltas::{Deltas, first_of};
use super::without_nulls::without_nulls;
use super::{Decode, failure};

pub(super) fn path(model: &str, is_streamed: bool) -> String {
    let method = if is_streamed { "streamGenerateContent?alt=sse" } else { "generateContent" };
    format!("models/{model}:{method}")
}

/// Models that reject a shape of the answer together with tools: "Function calling with a response mime type … is
/// unsupported".
const NO_SHAPE_WITH_TOOLS: [&str; 2] = ["gemini-1", "gemini-2"];

pub(super) fn fields(model: &str, request: &Request, names: &WireNames) -> Value {
    let has_tools = !request.tools.is_empty();
    let is_old = NO_SHAPE_WITH_TOOLS.iter().any(|old| model.contains(old));
    let schema = request.answer_schema.as_deref().filter(|_| !has_tools || !is_old);
    let settings = &request.settings;
    let config = without_nulls(json!({
        "maxOutputTokens": request.max_output_tokens,
        "temperature": request.temperature,
        "topP": settings.top_p,
        "seed": settings.seed,
        "stopSequences": (!settings.stop.is_empty()).then_some(&settings.stop),
        "thinkingConfig": thinking(settings),
        "responseMimeType": schema.map(|_| "application/json"),
        "responseJsonSchema": schema,
    }));
    let declaration = |tool: &ToolSpec| {
        let (name, parameters) = (names.wire(&tool.name), gemini(&tool.parameters));
        without_nulls(json!({"name": name, "description": tool.description, "parameters": parameters}))
    };
    let declarations: Vec<Value> = request.tools.iter().map(declaration).collect();
    let calling = match &request.tool_choice {
        ToolChoice::Auto => json!({"mode": "AUTO"}),
        ToolChoice::None => json!({"mode": "NONE"}),
        ToolChoice::Required => json!({"mode": "ANY"}),
        ToolChoice::Tool(name) => json!({"mode": "ANY", "allowedFunctionNames": [names.wire(name)]}),
    };
    without_nulls(json!({
        "systemInstruction": request.system.as_deref().map(|text| json!({"parts": [{"text": text}]})),
        "tools": has_tools.then(|| json!([{"functionDeclarations": declarations}])),
        "toolConfig": has_tools.then(|| json!({"functionCallingConfig": calling})),
        "generationConfig": (config != json!({})).then_some(config),
        "service_tier": settings.service_tier,
    }))
}

/// Requests a level for Gemini 3 and a budget for Gemini 2.5. If thinking is requested, the thoughts are returned, too.
fn thinking(settings: &ModelSettings) -> Option<Value> {
    let level = match settings.reasoning_effort {
        Some(ReasoningEffort::None) => return Some(json!({"thinkingBudget": 0})),
        // The API has no higher level.
        Some(ReasoningEffort::XHigh | ReasoningEffort::Max) => Some(ReasoningEffort::High),
        effort => effort,
    };
    let budget = settings.thinking_budget;
    let config = || json!({"thinkingLevel": level, "thinkingBudget": budget, "includeThoughts": true});
    (level.is_some() || budget.is_some()).then(|| without_nulls(config()))
}

pub(super) fn add_contents(body: &mut BodyText, request: &Request, names: &WireNames) {
    // The provider's own ids. If it sent none, calls and results are matched by their order.
    let mut ids: HashMap<&CallId, &Value> = HashMap::new();
    for message in request.messages.iter() {
        ids.extend(message.calls().filter_map(|call| Some((&call.id, call.opaque.as_ref()?.get("id")?))));
        let (role, parts): (_, Vec<Value>) = match &**message {
            Message::User { text, images } => ("user", user_parts(text, images)),
            Message::Note { text } => ("user", vec![json!({"text": text})]),
            Message::Assistant { parts } => {
                let part = |part: &Part| match part {
                    Part::Text { text, opaque, .. } => {
                        let signature = opaque.as_ref().and_then(|opaque| opaque.get("thoughtSignature"));
                        Some(without_nulls(json!({"text": text, "thoughtSignature": signature})))
                    }
                    Part::Reasoning { .. } => None,
                    Part::Call(call) => Some(call_part(call, names)),
                };
                ("model", parts.iter().filter_map(part).collect())
            }
            Message::Results { results } => {
                let part = |result: &ToolResult| {
                    let field = if result.status == Status::Ok { "output" } else { "error" };
                    let (name, id) = (names.wire(&result.name), ids.get(&result.call));
                    let response = without_nulls(json!({"name": name, "id": id, "response": {field: result.text()}}));
                    json!({"functionResponse": response})
                };
                ("user", results.iter().map(part).collect())
            }
        };
        if !parts.is_empty() {
            body.push(json!({"role": role, "parts": parts}));
        }
    }
}

fn user_parts(text: &str, images: &[Image]) -> Vec<Value> {
    let image = |image: &Image| match image {
        Image::Inline { media_type, base64 } => json!({"inlineData": {"mimeType": media_type, "data": base64}}),
        Image::Url { url } => json!({"fileData": without_nulls(json!({"fileUri": url, "mimeType": media_type(url)}))}),
    };
    let needs_text = images.is_empty() || !text.is_empty();
    images.iter().map(image).chain(needs_text.then(|| json!({"text": text}))).collect()
}

/// Returns the media type that the end of a URL implies, because models on Vertex require it.
fn media_type(url: &str) -> Option<&'static str> {
    let path = url.split(['?', '#']).next().unwrap_or(url);
    Some(match path.rsplit_once('.')?.1.to_ascii_lowercase().as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "webp" => "image/webp",
        "gif" => "image/gif",
        _ => return None,
    })
}

fn call_part(call: &ToolCall, names: &WireNames) -> Value {
    let opaque = |field: &str| call.opaque.as_ref()?.get(field);
    let (name, arguments) = (names.wire(&call.name), call.sent_object());
    without_nulls(json!({
        "functionCall": without_nulls(json!({"name": name, "args": arguments, "id": opaque("id")})),
        "thoughtSignature": opaque("thoughtSignature"),
    }))
}

/// Decodes chunks. There is no terminal event: a chunk with a finish reason, followed by the end of the body, is the
/// end.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    calls: usize,
    /// Whether the arguments of a call came in parts.
    in_parts: bool,
    finish: Option<EndReason>,
}

/// Arguments come in parts only if an extra field of the body requests it (`streamFunctionCallArguments`).
const IN_PARTS: &str = "The arguments came in parts, which are not read here, so nothing ran.";

impl Decode for Decoder {
    fn event(&mut self, chunk: &Value, out: &mut Deltas) -> Result<()> {
        if let Value::Array(chunks) = chunk {
            return chunks.iter().try_for_each(|chunk| self.event(chunk, out));
        }
        if !chunk["error"].is_null() {
            return Err(failure::in_stream(chunk));
        }
        let candidate = first_of(&chunk["candidates"]);
        for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
            self.part(part, out);
        }
        let usage = &chunk["usageMetadata"];
        if usage.is_object() {
            let number = |field: &str| usage[field].as_u64().unwrap_or(0);
            let reasoning = number("thoughtsTokenCount");
            let output = number("candidatesTokenCount") + reasoning;
            let input = usage["promptTokenCount"].as_u64().unwrap_or(number("totalTokenCount").saturating_sub(output));
            out.push(Delta::Usage(Usage {
                input,
                output,
                cached: number("cachedContentTokenCount"),
                reasoning,
                cost: None,
            }));
        }
        if chunk["promptFeedback"]["blockReason"].is_string() {
            self.finish = Some(EndReason::Filtered);
        }
        match candidate["finishReason"].as_str() {
            None | Some("") => {}
            Some("MAX_TOKENS") => self.finish = Some(EndReason::Length),
            // The loop handles a call of a missing tool, or too many calls, if the reply contains the calls.
            Some("UNEXPECTED_TOOL_CALL" | "TOO_MANY_TOOL_CALLS") if self.calls > 0 => {
                self.finish = Some(EndReason::Complete);
            }
            Some(reason @ ("MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "TOO_MANY_TOOL_CALLS")) => {
                let raw = candidate["finishMessage"].as_str().unwrap_or_default().to_string();
                let fault = format!("The call could not be read ({reason}): {raw}");
                out.push(Delta::CallFault { index: self.calls, fault, raw });
                self.calls += 1;
                self.finish = Some(EndReason::Complete);
            }
            Some("STOP" | "FINISH_REASON_UNSPECIFIED") => self.finish = Some(EndReason::Complete),
            // Filters, which become more every year, and other reasons that stop a model before its own end.
            Some(reason) => {
                log::warn!("the reply was stopped: {reason}");
                self.finish = Some(EndReason::Filtered);
            }
        }
        Ok(())
    }

    fn end(&mut self, out: &mut Deltas) {
        self.finish.into_iter().for_each(|finish| out.push(Delta::End(finish)));
    }

    fn whole(&mut self, body: &Value, out: &mut Deltas) -> Result<()> {
        self.event(body, out)?;
        // Without `alt=sse` the chunks come as one list.
        let mut chunks = body.as_array().map_or(slice::from_ref(body), Vec::as_slice).iter();
        if self.finish.is_none() && chunks.all(|chunk| first_of(&chunk["candidates"]).is_null()) {
            return Err(failure::no_reply());
        }
        self.finish.get_or_insert(EndReason::Complete);
        self.end(out);
        Ok(())
    }
}

impl Decoder {
    fn part(&mut self, part: &Value, out: &mut Deltas) {
        let call = &part["functionCall"];
        let text = part["text"].as_str().unwrap_or_default();
        let is_partial =
            call["willContinue"] == true || call["partialArgs"].as_array().is_some_and(|parts| !parts.is_empty());
        if is_partial || self.in_parts && call["name"].is_null() && call.is_object() {
            self.in_parts = true;
            if call["name"].is_string() {
                out.push(Delta::CallFault { index: self.calls, fault: IN_PARTS.into(), raw: String::new() });
                self.calls += 1;
            }
        } else if call.is_object() {
            let (id, signature) = (call["id"].as_str(), part["thoughtSignature"].as_str());
            let opaque = without_nulls(json!({"id": id, "thoughtSignature": signature}));
            out.call_start(self.calls, &call["id"], &call["name"]);
            if call["args"].is_object() {
                out.call_arguments(self.calls, &call["args"].to_string());
            }
            out.call_end(self.calls, (opaque != json!({})).then_some(opaque));
            self.calls += 1;
        } else if part["thought"] == true {
            out.reasoning(text, None);
        } else {
            out.text(text);
            // In a stream the signature may come with an empty text after the others.
            if part["thoughtSignature"].is_string() {
                out.push(Delta::TextEnd { opaque: json!({"thoughtSignature": part["thoughtSignature"]}) });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::tool::Effect;

    #[test]
    fn older_models_are_not_given_a_shape_beside_tools() {
        let tools = [ToolSpec {
            name: "now".into(),
            description: String::new(),
            parameters: json!({"type": "object"}),
            effect: Effect::Read,
            time_limit: None,
        }];
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
        let shape = |model: &str, tools: &[ToolSpec]| {
            let request = Request::default().answer_schema(Some(Arc::new(schema.clone()))).tools(tools.into());
            fields(model, &request, &WireNames::new(["now"]))["generationConfig"]["responseJsonSchema"].clone()
        };
        for (model, tools, expected) in [
            ("gemini-2.5-pro", &tools[..], &Value::Null),
            ("gemini-2.5-pro", &[], &schema),
            ("gemini-3.5-flash", &tools, &schema),
            ("gemini-flash-latest", &tools, &schema),
        ] {
            assert_eq!(&shape(model, tools), expected, "{model}");
        }
    }
}
