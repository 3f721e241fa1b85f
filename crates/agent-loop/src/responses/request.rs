//! Parses a client's request: unknown fields and items are ignored, invalid ones are rejected by name.

use std::collections::HashMap;
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
    /// What was changed so that calls and results pair; the output of an unknown call is kept as text.
    pub warnings: Vec<Repair>,
    /// Fields that the response repeats as they were asked.
    pub(super) echo: Map<String, Value>,
    /// Names of the tools whose arguments must fit their schema.
    pub(super) strict: Vec<String>,
    /// The namespace of a function and its name there, by the name that the model knows.
    pub(super) namespaced: HashMap<String, (String, String)>,
}

/// How a client wants the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// As server-sent events.
    Events,
    /// As one object.
    Whole,
}

/// The fields that the response repeats, with their defaults.
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
        if let Some(id) = body["previous_response_id"].as_str() {
            let message = format!("Previous response with id '{id}' not found: responses are not stored here.");
            let code = Some("previous_response_not_found".into());
            return Err(ApiError { code, ..ApiError::invalid("previous_response_id", message) });
        }
        let mut input = read_input(&body["input"])?;
        if let Some(instructions) = body["instructions"].as_str() {
            input.system.insert(0, instructions.to_string());
        }
        let format = &body["text"]["format"];
        let schema = (format["type"] == "json_schema").then_some(&format["schema"]);
        let mut understood = Self::new(&body, "input", input, schema)?;
        understood.request.max_output_tokens = read_limit(&body["max_output_tokens"]);
        understood.echo = echoed(&body);
        Ok(understood)
    }

    /// What both APIs have in common. `field` is where the conversation comes from.
    pub(super) fn new(
        body: &Value,
        field: &str,
        conversation: Conversation,
        answer_schema: Option<&Value>,
    ) -> Result<Self, ApiError> {
        let model = body["model"].as_str().filter(|model| !model.is_empty());
        let model = model.ok_or_else(|| ApiError::invalid("model", "A model is needed."))?.to_string();
        let Tools { specs, strict, namespaced } = read_tools(&body["tools"])?;
        let (tool_choice, tools) = read_choice(&body["tool_choice"], specs)?;
        let Conversation { messages, system } = conversation;
        let (history, warnings) = History::repaired(messages);
        if history.messages().is_empty() {
            return Err(ApiError::invalid(field, "There is no message."));
        }
        let request = Request {
            system: (!system.is_empty()).then(|| system.join("\n\n").into()),
            messages: history.messages().clone(),
            tools: tools.into(),
            tool_choice,
            parallel: if body["parallel_tool_calls"] == false { Parallel::One } else { Parallel::Many },
            answer_schema: answer_schema.cloned().map(Arc::new),
            max_output_tokens: None,
            temperature: body["temperature"].as_f64(),
        };
        let delivery = if body["stream"] == true { Delivery::Events } else { Delivery::Whole };
        Ok(Self { model, request, delivery, warnings, echo: Map::new(), strict, namespaced })
    }
}

/// A limit of tokens; anything but a number in range counts as absent.
pub(super) fn read_limit(limit: &Value) -> Option<u32> {
    limit.as_u64().and_then(|most| u32::try_from(most).ok())
}

pub(super) fn read_json(body: &[u8]) -> Result<Value, ApiError> {
    serde_json::from_slice(body).map_err(|error| ApiError {
        status: 400,
        message: format!("The body is not valid JSON: {error}."),
        param: None,
        code: None,
    })
}

/// The functions of a request.
#[derive(Default)]
struct Tools {
    specs: Vec<ToolSpec>,
    /// See [`ApiRequest`].
    strict: Vec<String>,
    namespaced: HashMap<String, (String, String)>,
}

/// Function tools in both shapes, those of namespaces too; other tools are accepted but not offered to the model.
fn read_tools(tools: &Value) -> Result<Tools, ApiError> {
    let mut read = Tools::default();
    let tools = match tools {
        Value::Null => return Ok(read),
        Value::Array(tools) => tools,
        _ => return Err(ApiError::invalid("tools", "The tools must be a list.")),
    };
    for (index, tool) in tools.iter().enumerate() {
        let param = format!("tools[{index}]");
        match tool["type"].as_str().unwrap_or_default() {
            "function" => read.function(tool.get("function").unwrap_or(tool), None, &param)?,
            // The tools of an MCP server, as Codex sends them.
            "namespace" => {
                let namespace = needed(&tool["name"], || format!("{param}.name"))?;
                let functions = tool["tools"].as_array().into_iter().flatten().enumerate();
                for (at, function) in functions.filter(|(_, tool)| tool["type"] == "function") {
                    read.function(function, Some(namespace), &format!("{param}.tools[{at}]"))?;
                }
            }
            _ => {}
        }
    }
    Ok(read)
}

impl Tools {
    fn function(&mut self, function: &Value, namespace: Option<&str>, param: &str) -> Result<(), ApiError> {
        let param = |field: &str| format!("{param}.{field}");
        let own = function["name"].as_str().filter(|name| !name.is_empty());
        let own = own.ok_or_else(|| ApiError::invalid(param("name"), "A function needs a name."))?;
        let name = known_name(namespace, own);
        if self.specs.iter().any(|spec| spec.name == name) {
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
            self.strict.push(name.clone());
        }
        if let Some(namespace) = namespace {
            self.namespaced.insert(name.clone(), (namespace.to_string(), own.to_string()));
        }
        self.specs.push(ToolSpec {
            name,
            description: function["description"].as_str().unwrap_or_default().to_string(),
            parameters,
            effect: Effect::Write,
            time_limit: None,
        });
        Ok(())
    }
}

/// The name that the model knows: models have no namespaces.
pub(super) fn known_name(namespace: Option<&str>, name: &str) -> String {
    namespace.map_or_else(|| name.to_string(), |namespace| format!("{namespace}__{name}"))
}

/// The name of a function in either API's shape.
fn name_of(function: &Value) -> Option<&str> {
    function.get("function").unwrap_or(function)["name"].as_str()
}

fn read_choice(choice: &Value, mut tools: Vec<ToolSpec>) -> Result<(ToolChoice, Vec<ToolSpec>), ApiError> {
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
            let allowed = choice.get("allowed_tools").unwrap_or(choice);
            let names: Vec<&str> = allowed["tools"].as_array().into_iter().flatten().filter_map(name_of).collect();
            tools.retain(|tool| names.contains(&tool.name.as_str()));
            of_mode(&allowed["mode"]).unwrap_or_default()
        }
        choice => match name_of(choice).filter(|name| tools.iter().any(|tool| tool.name == **name)) {
            Some(name) => ToolChoice::Tool(name.to_string()),
            None => return wrong("It names no function of this request.".into()),
        },
    };
    Ok((chosen, tools))
}

/// A conversation as it is read, message by message.
#[derive(Default)]
pub(super) struct Conversation {
    pub(super) messages: Vec<Message>,
    /// Texts of the system, which are no messages.
    pub(super) system: Vec<String>,
}

impl Conversation {
    /// Adds a text of one of the roles that both APIs have.
    pub(super) fn text(&mut self, role: &str, text: String) -> Result<(), String> {
        match role {
            "system" | "developer" => self.system.push(text),
            "user" => self.messages.push(Message::user(text)),
            "assistant" if text.is_empty() => {}
            "assistant" => self.part(Part::Text { text }),
            _ => return Err(format!("{role:?} is not one of system, developer, user, assistant")),
        }
        Ok(())
    }

    pub(super) fn call(&mut self, id: &str, name: &str, arguments: &Value) {
        let raw = arguments.as_str().unwrap_or_default();
        let mut call = ToolCall::new(id, name, json!({}));
        match read_arguments(raw) {
            Ok(arguments) => call.arguments = arguments,
            Err(fault) => (call.arguments, call.fault) = (json!(raw), Some(fault)),
        }
        self.part(Part::Call(call));
    }

    pub(super) fn result(&mut self, id: &str, text: String) {
        let call = CallId(id.to_string());
        let made = self.messages.iter().rev().flat_map(|message| message.calls()).find(|made| made.id == call);
        let name = made.map_or("unknown", |made| &made.name).to_string();
        let result = ToolResult { call, name, status: Status::Ok, note: None, items: vec![text] };
        self.messages.push(Message::Results { results: vec![result] });
    }

    /// Adds a part to the model's message; consecutive parts are one message.
    fn part(&mut self, part: Part) {
        match self.messages.last_mut() {
            Some(Message::Assistant { parts }) => parts.push(part),
            _ => self.messages.push(Message::Assistant { parts: vec![part] }),
        }
    }
}

/// The items of the input.
fn read_input(input: &Value) -> Result<Conversation, ApiError> {
    let mut conversation = Conversation::default();
    let items = match input {
        Value::String(text) => {
            conversation.messages.push(Message::user(text));
            return Ok(conversation);
        }
        Value::Array(items) => items,
        _ => return Err(ApiError::invalid("input", "The input must be a string or a list of items.")),
    };
    for (index, item) in items.iter().enumerate() {
        let param = |name: &str| format!("input[{index}].{name}");
        let field = |name: &str| needed(&item[name], || param(name));
        match item["type"].as_str().or_else(|| item.get("role").map(|_| "message")).unwrap_or_default() {
            "message" => {
                let added = conversation.text(field("role")?, content_text(&item["content"]));
                added.map_err(|what| ApiError::invalid(param("role"), what + "."))?;
            }
            "function_call" => {
                let name = known_name(item["namespace"].as_str(), field("name")?);
                conversation.call(field("call_id")?, &name, &item["arguments"]);
            }
            "function_call_output" => conversation.result(field("call_id")?, content_text(&item["output"])),
            // Reasoning of other models, built-in tools, future items: nothing that a text-only model can use.
            _ => {}
        }
    }
    Ok(conversation)
}

/// A field that must be a string.
pub(super) fn needed(value: &Value, param: impl Fn() -> String) -> Result<&str, ApiError> {
    value.as_str().ok_or_else(|| ApiError::invalid(param(), "This is needed, as a string."))
}

/// The text of a content: a string, or parts. Parts without text are named, so that the model knows of them.
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
