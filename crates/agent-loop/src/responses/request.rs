//! Parses a client's request: unknown fields and items are ignored, invalid ones are rejected by name.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::message::{CallId, History, Message, Part, Repair, Status, ToolCall, ToolResult};
use crate::model::{Parallel, Request, ToolChoice, read_arguments};
use crate::tool::{Effect, ToolSpec, compile};

/// An error before the first event: a status and a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiError {
    /// The HTTP status.
    pub status: u16,
    /// What is wrong.
    pub message: String,
    /// The field it is about.
    pub param: Option<String>,
    /// The API's code.
    pub code: Option<String>,
}

impl ApiError {
    /// A field that cannot be used: status 400.
    pub fn invalid(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self { status: 400, message: message.into(), param: Some(param.into()), code: None }
    }

    /// The body.
    pub fn body(&self) -> Value {
        let kind = if self.status < 500 { "invalid_request_error" } else { "server_error" };
        json!({"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}})
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.param {
            Some(param) => write!(f, "{param}: {} (status {})", self.message, self.status),
            None => write!(f, "{} (status {})", self.message, self.status),
        }
    }
}

impl std::error::Error for ApiError {}

/// A request as it was understood.
#[derive(Debug, Clone)]
pub struct ApiRequest {
    /// The model that was asked for.
    pub model: String,
    /// What the model is asked.
    pub request: Request,
    /// Whether the client wants events.
    pub delivery: Delivery,
    /// What had to be changed so that calls and results pair; an output of a call that was never made is kept as text.
    pub warnings: Vec<Repair>,
    /// Fields that the response repeats as they were asked.
    pub(super) echo: Map<String, Value>,
    /// Names of the tools whose arguments must fit their schema.
    pub(super) strict: Vec<String>,
}

/// How a client wants the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// As server-sent events.
    Events,
    /// As one object.
    Whole,
}

/// What is repeated in the response, with the value where the client said nothing.
fn echoed(body: &Value) -> Map<String, Value> {
    let defaults = json!({
        "instructions": null, "max_output_tokens": null, "metadata": {}, "parallel_tool_calls": true,
        "temperature": 1.0, "tool_choice": "auto", "tools": [], "top_p": 1.0, "reasoning": {"effort": null, "summary": null},
        "text": {"format": {"type": "text"}}, "store": false, "truncation": "disabled", "user": null,
    });
    let Value::Object(mut echo) = defaults else { return Map::new() };
    for (field, value) in &mut echo {
        if let Some(asked) = body.get(field).filter(|asked| !asked.is_null()) {
            *value = asked.clone();
        }
    }
    echo
}

impl ApiRequest {
    /// Reads the body of `POST /v1/responses`.
    ///
    /// # Errors
    /// `ApiError` with status 400 and the field that is wrong.
    pub fn parse(body: &[u8]) -> Result<Self, ApiError> {
        let body = read_json(body)?;
        let model = read_model(&body)?;
        if let Some(id) = body["previous_response_id"].as_str() {
            let message = format!("Previous response with id '{id}' not found: responses are not stored here.");
            let code = Some("previous_response_not_found".into());
            return Err(ApiError { code, ..ApiError::invalid("previous_response_id", message) });
        }
        let (tools, strict) = read_tools(&body["tools"])?;
        let (messages, mut system) = read_input(&body["input"])?;
        if let Some(instructions) = body["instructions"].as_str() {
            system.insert(0, instructions.to_string());
        }
        let (history, warnings) = History::repaired(messages);
        if history.messages().is_empty() {
            return Err(ApiError::invalid("input", "The input has no message."));
        }
        let (tool_choice, tools) = read_choice(&body["tool_choice"], tools)?;
        let format = &body["text"]["format"];
        let answer_schema = (format["type"] == "json_schema").then(|| Arc::new(format["schema"].clone()));
        let request = Request {
            system: (!system.is_empty()).then(|| system.join("\n\n").into()),
            messages: history.messages().clone(),
            tools: tools.into(),
            tool_choice,
            parallel: if body["parallel_tool_calls"] == false { Parallel::One } else { Parallel::Many },
            answer_schema,
            max_output_tokens: body["max_output_tokens"].as_u64().and_then(|most| u32::try_from(most).ok()),
            temperature: body["temperature"].as_f64(),
        };
        let delivery = if body["stream"] == true { Delivery::Events } else { Delivery::Whole };
        Ok(Self { model, request, delivery, warnings, echo: echoed(&body), strict })
    }
}

pub(super) fn read_json(body: &[u8]) -> Result<Value, ApiError> {
    serde_json::from_slice(body).map_err(|error| ApiError {
        status: 400,
        message: format!("The body is not valid JSON: {error}."),
        param: None,
        code: None,
    })
}

pub(super) fn read_model(body: &Value) -> Result<String, ApiError> {
    let model = body["model"].as_str().filter(|model| !model.is_empty());
    Ok(model.ok_or_else(|| ApiError::invalid("model", "A model is needed."))?.to_string())
}

/// Function tools in both shapes; others pass without being offered to the model.
pub(super) fn read_tools(tools: &Value) -> Result<(Vec<ToolSpec>, Vec<String>), ApiError> {
    let (mut specs, mut strict): (Vec<ToolSpec>, Vec<String>) = (Vec::new(), Vec::new());
    let tools = match tools {
        Value::Null => return Ok((specs, strict)),
        Value::Array(tools) => tools,
        _ => return Err(ApiError::invalid("tools", "The tools must be a list.")),
    };
    for (index, tool) in tools.iter().enumerate().filter(|(_, tool)| tool["type"] == "function") {
        let function = tool.get("function").unwrap_or(tool);
        let param = |field: &str| format!("tools[{index}].{field}");
        let name = function["name"].as_str().filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| ApiError::invalid(param("name"), "A function needs a name."))?;
        if specs.iter().any(|spec| spec.name == name) {
            return Err(ApiError::invalid(param("name"), format!("There are two functions {name:?}.")));
        }
        let parameters = match &function["parameters"] {
            Value::Null => json!({"type": "object", "properties": {}}),
            given => given.clone(),
        };
        if let Err(what) = compile(&parameters) {
            return Err(ApiError::invalid(param("parameters"), format!("This schema cannot be used: {what}.")));
        }
        if function["strict"] == true {
            strict.push(name.to_string());
        }
        specs.push(ToolSpec {
            name: name.to_string(),
            description: function["description"].as_str().unwrap_or_default().to_string(),
            parameters,
            effect: Effect::Write,
            time_limit: None,
        });
    }
    Ok((specs, strict))
}

pub(super) fn read_choice(choice: &Value, mut tools: Vec<ToolSpec>) -> Result<(ToolChoice, Vec<ToolSpec>), ApiError> {
    let wrong = |message: String| Err(ApiError::invalid("tool_choice", message));
    let of_mode = |mode: &Value| match mode.as_str() {
        Some("auto") => Some(ToolChoice::Auto),
        Some("none") => Some(ToolChoice::None),
        Some("required") => Some(ToolChoice::Required),
        _ => None,
    };
    let chosen = match choice {
        Value::Null => ToolChoice::Auto,
        Value::String(_) => match of_mode(choice) {
            Some(mode) => mode,
            None => return wrong(format!("{choice} is not one of auto, none, required.")),
        },
        choice if choice["type"] == "allowed_tools" => {
            let allowed: Vec<&str> =
                choice["tools"].as_array().into_iter().flatten().filter_map(|tool| tool["name"].as_str()).collect();
            tools.retain(|tool| allowed.contains(&tool.name.as_str()));
            of_mode(&choice["mode"]).unwrap_or_default()
        }
        choice => {
            let name = choice["name"].as_str().or_else(|| choice["function"]["name"].as_str());
            match name.filter(|name| tools.iter().any(|tool| tool.name == **name)) {
                Some(name) => ToolChoice::Tool(name.to_string()),
                None => return wrong("It names no function of this request.".into()),
            }
        }
    };
    Ok((chosen, tools))
}

/// The messages of the input, and its system texts.
fn read_input(input: &Value) -> Result<(Vec<Message>, Vec<String>), ApiError> {
    let (mut messages, mut system) = (Vec::new(), Vec::new());
    let items = match input {
        Value::String(text) => return Ok((vec![Message::user(text)], system)),
        Value::Array(items) => items,
        _ => return Err(ApiError::invalid("input", "The input must be a string or a list of items.")),
    };
    for (index, item) in items.iter().enumerate() {
        let kind = item["type"].as_str().or_else(|| item.get("role").map(|_| "message")).unwrap_or_default();
        let field = |name: &str| {
            let missing = || ApiError::invalid(format!("input[{index}].{name}"), "This is needed, as a string.");
            item[name].as_str().ok_or_else(missing)
        };
        match kind {
            "message" => {
                let text = content_text(&item["content"]);
                match field("role")? {
                    "user" => messages.push(Message::user(text)),
                    "assistant" if text.is_empty() => {}
                    "assistant" => add_part(&mut messages, Part::Text { text }),
                    "system" | "developer" => system.push(text),
                    role => {
                        let message = format!("{role:?} is not one of user, assistant, system, developer.");
                        return Err(ApiError::invalid(format!("input[{index}].role"), message));
                    }
                }
            }
            "function_call" => {
                let raw = item["arguments"].as_str().unwrap_or_default();
                let mut call = ToolCall::new(field("call_id")?, field("name")?, json!({}));
                match read_arguments(raw) {
                    Ok(arguments) => call.arguments = arguments,
                    Err(fault) => (call.arguments, call.fault) = (json!(raw), Some(fault)),
                }
                add_part(&mut messages, Part::Call(call));
            }
            "function_call_output" => {
                let call = CallId(field("call_id")?.to_string());
                let items = vec![content_text(&item["output"])];
                let name = name_of(&messages, &call);
                let result = ToolResult { call, name, status: Status::Ok, note: None, items };
                messages.push(Message::Results { results: vec![result] });
            }
            // Reasoning of other models, built-in tools and what will be invented: nothing a text-only model can use.
            _ => {}
        }
    }
    Ok((messages, system))
}

/// The tool that a call before was of.
pub(super) fn name_of(messages: &[Message], id: &CallId) -> String {
    let call = messages.iter().rev().flat_map(|message| message.calls()).find(|call| call.id == *id);
    call.map_or_else(|| "unknown".into(), |call| call.name.clone())
}

/// A part of what the model said: together with what stands directly before it, it is one message.
pub(super) fn add_part(messages: &mut Vec<Message>, part: Part) {
    match messages.last_mut() {
        Some(Message::Assistant { parts }) => parts.push(part),
        _ => messages.push(Message::Assistant { parts: vec![part] }),
    }
}

/// The text of a content: a string, or parts. What is no text is named, so that the model knows that it was there.
pub(super) fn content_text(content: &Value) -> String {
    let part = |part: &Value| match part["type"].as_str() {
        _ if part["text"].is_string() => part["text"].as_str().unwrap_or_default().to_string(),
        Some("refusal") => part["refusal"].as_str().unwrap_or_default().to_string(),
        Some(kind) => format!("[{kind}]"),
        None => String::new(),
    };
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(part).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    }
}
