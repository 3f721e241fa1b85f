//! Parses a client's request. Invalid and unsupported fields are rejected with the field's name. Fields that only tune
//! the reply, and tools that run elsewhere, cause a warning. Unknown fields are ignored.

use std::collections::HashMap;
use std::sync::Arc;

use agent_loop::{
    CallId, Effect, History, Message, Parallel, Part, Request, SchemaCheck, Status, TextPhase, ToolCall, ToolChoice,
    ToolResult, ToolSpec,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::ApiError;
use crate::fields::{
    answer_schema, asks_nothing, content_text, flag, limit, needed, number, optional, read_json, refuse_unsupported,
    stop_sequences, text,
};
use crate::store::{PendingEntry, Store};

/// Fields of both APIs that tune a reply and are not passed on.
const HINTS: [&str; 5] = ["top_p", "frequency_penalty", "presence_penalty", "seed", "reasoning_effort"];

/// A parsed request.
#[derive(Debug, Clone)]
pub struct ApiRequest {
    /// The requested model.
    pub model: String,
    /// The request for the model.
    pub request: Request,
    /// Whether the client wants events or one object.
    pub delivery: Delivery,
    /// Changes that were made so that calls and results pair (the output of an unknown call is kept as text), and
    /// fields that are not passed on.
    pub warnings: Vec<String>,
    /// How to handle a call of a strict tool whose arguments do not fit. Default: it is passed on.
    pub strict_tools: StrictTools,
    /// The texts at which the reply ends.
    pub(crate) stop: Vec<String>,
    /// Fields that the response repeats unchanged.
    pub(crate) echo: Map<String, Value>,
    /// Names of the tools whose arguments must fit their schema.
    pub(crate) strict: Vec<String>,
    /// The namespace of a function and its name there, by its name for the model.
    pub(crate) namespaced: HashMap<String, (String, String)>,
}

/// How to handle a call of a strict tool whose arguments do not fit its schema.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StrictTools {
    /// The client gets it unchanged. Most clients then send the issue to the model and continue.
    #[default]
    PassThrough,
    /// The reply fails.
    Enforced,
}

/// The form in which a client wants the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// As server-sent events.
    Events,
    /// As one object.
    Whole,
}

/// Returns the fields that the response repeats, with their defaults.
fn echoed(body: &Value) -> Map<String, Value> {
    let defaults = json!({
        "instructions": null, "max_output_tokens": null, "metadata": {}, "parallel_tool_calls": true,
        "temperature": 1.0, "tool_choice": "auto", "tools": [], "top_p": 1.0, "reasoning": {"effort": null, "summary": null},
        "text": {"format": {"type": "text"}}, "user": null,
    });
    let Value::Object(mut echo) = defaults else { return Map::new() };
    for (field, value) in &mut echo {
        if let Some(asked) = body.get(field).filter(|asked| !asked.is_null()) {
            *value = asked.clone();
        }
    }
    // These values are always used, whatever the request has.
    echo.extend([("store".into(), json!(false)), ("truncation".into(), json!("disabled"))]);
    echo
}

impl ApiRequest {
    /// Parses the body of `POST /v1/responses`.
    ///
    /// # Errors
    /// `ApiError` with status 400 and the invalid field.
    pub fn parse(body: &[u8]) -> Result<Self, ApiError> {
        let body = read_json(body)?;
        if let Some(id) = text(&body["previous_response_id"], "previous_response_id")? {
            let message = format!("Previous response with id '{id}' not found: responses are not stored here.");
            return Err(ApiError::not_found("previous_response_id", "previous_response_not_found", message));
        }
        refuse_unsupported(&body, &["conversation"])?;
        Self::read(&body, read_input(&[], &body["input"])?)
    }

    /// Parses the body of `POST /v1/responses`, which may refer to objects in a store. Pass the second value to
    /// [`Store::keep`] once the response is complete.
    ///
    /// # Errors
    /// The same as those of [`parse`](Self::parse), and an error for a reference to an object that is not, or no
    /// longer, in the store.
    pub fn parse_stored(body: &[u8], store: &mut Store) -> Result<(Self, PendingEntry), ApiError> {
        let body = read_json(body)?;
        let is_stored = flag(&body["store"], "store")? != Some(false);
        let mut resolved = store.resolve(&body)?;
        let earlier: Vec<&Value> = resolved.items().collect();
        let mut understood = Self::read(&body, read_input(&earlier, &resolved.input)?)?;
        understood.echo.insert("store".into(), json!(is_stored));
        understood.echo.append(&mut resolved.echo);
        Ok((understood, resolved.into_entry(is_stored)))
    }

    fn read(body: &Value, mut conversation: Conversation) -> Result<Self, ApiError> {
        refuse_unsupported(body, &["background", "prompt", "top_logprobs"])?;
        if text(&body["truncation"], "truncation")?.is_some_and(|truncation| truncation != "disabled") {
            return Err(ApiError::invalid("truncation", "Truncation is not supported: this can only be disabled."));
        }
        for field in ["metadata", "text", "reasoning"] {
            optional(&body[field], field, "an object", Value::as_object)?;
        }
        if let Some(instructions) = text(&body["instructions"], "instructions")? {
            conversation.system.insert(0, instructions.to_string());
        }
        let mut understood = Self::new(body, "input", conversation)?;
        understood.request.answer_schema =
            answer_schema(&body["text"]["format"], "text.format", "/schema")?.map(Arc::new);
        understood.request.max_output_tokens = limit(&body["max_output_tokens"], "max_output_tokens")?;
        understood.echo = echoed(body);
        Ok(understood)
    }

    /// Parses the part that both APIs have in common. `field` contains the conversation.
    pub(crate) fn new(body: &Value, field: &str, conversation: Conversation) -> Result<Self, ApiError> {
        let model = body["model"].as_str().filter(|model| !model.is_empty());
        let model = model.ok_or_else(|| ApiError::invalid("model", "A model is required."))?.to_string();
        let Conversation { messages, system, mut warnings, .. } = conversation;
        let Tools { specs, strict, namespaced } = read_tools(&body["tools"], &mut warnings)?;
        let (tool_choice, tools) = read_choice(&body["tool_choice"], specs)?;
        let (history, repairs) = History::repaired(messages);
        if history.messages().is_empty() {
            return Err(ApiError::invalid(field, "There is no message."));
        }
        warnings.extend(repairs.iter().map(ToString::to_string));
        let hints = HINTS.iter().filter(|hint| !asks_nothing(&body[**hint]));
        warnings.extend(hints.map(|hint| format!("{hint} is not passed on to the model")));
        let is_single = flag(&body["parallel_tool_calls"], "parallel_tool_calls")? == Some(false);
        let request = Request::default()
            .system((!system.is_empty()).then(|| system.join("\n\n").into()))
            .messages(history.messages().clone())
            .tools(tools.into())
            .tool_choice(tool_choice)
            .parallel(if is_single { Parallel::One } else { Parallel::Many })
            .temperature(number(&body["temperature"], "temperature", 2.0)?);
        let is_streamed = flag(&body["stream"], "stream")? == Some(true);
        Ok(Self {
            model,
            request,
            delivery: if is_streamed { Delivery::Events } else { Delivery::Whole },
            warnings,
            strict_tools: StrictTools::default(),
            stop: stop_sequences(&body["stop"])?,
            echo: Map::new(),
            strict,
            namespaced,
        })
    }
}

/// The functions of a request.
#[derive(Default)]
struct Tools {
    specs: Vec<ToolSpec>,
    /// See [`ApiRequest`].
    strict: Vec<String>,
    namespaced: HashMap<String, (String, String)>,
}

/// Parses function tools in both shapes, including those of namespaces. Clients send other tools whether a model
/// supports them or not, so those are accepted but not offered to the model.
fn read_tools(tools: &Value, warnings: &mut Vec<String>) -> Result<Tools, ApiError> {
    let mut read = Tools::default();
    let tools = optional(tools, "tools", "a list", Value::as_array)?;
    for (index, tool) in tools.into_iter().flatten().enumerate() {
        let param = format!("tools[{index}]");
        match needed(&tool["type"], || format!("{param}.type"))? {
            "function" => read.function(tool.get("function").unwrap_or(tool), None, &param)?,
            // The tools of an MCP server, as Codex sends them.
            "namespace" => {
                let namespace = needed(&tool["name"], || format!("{param}.name"))?;
                let functions = tool["tools"].as_array().into_iter().flatten().enumerate();
                for (at, function) in functions.filter(|(_, tool)| tool["type"] == "function") {
                    read.function(function, Some(namespace), &format!("{param}.tools[{at}]"))?;
                }
            }
            kind => warnings
                .push(format!("{param} is not offered to the model: it is not a function but of the type {kind}")),
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
        let parameters = optional(&function["parameters"], &param("parameters"), "an object", Value::as_object)?;
        let parameters = parameters.map_or_else(|| json!({"type": "object", "properties": {}}), |given| json!(given));
        if let Err(what) = SchemaCheck::new(&parameters) {
            return Err(ApiError::invalid(param("parameters"), format!("This schema cannot be used: {what}.")));
        }
        if flag(&function["strict"], &param("strict"))? == Some(true) {
            self.strict.push(name.clone());
        }
        if let Some(namespace) = namespace {
            self.namespaced.insert(name.clone(), (namespace.to_string(), own.to_string()));
        }
        self.specs.push(ToolSpec {
            name,
            description: text(&function["description"], &param("description"))?.unwrap_or_default().to_string(),
            parameters,
            effect: Effect::Write,
            time_limit: None,
        });
        Ok(())
    }
}

/// Returns a function's name for the model, which includes the namespace because models have none.
pub(crate) fn known_name(namespace: Option<&str>, name: &str) -> String {
    namespace.map_or_else(|| name.to_string(), |namespace| format!("{namespace}__{name}"))
}

/// Returns the name of a function in either API's shape.
fn name_of(function: &Value) -> Option<&str> {
    function.get("function").unwrap_or(function)["name"].as_str()
}

fn read_choice(choice: &Value, mut tools: Vec<ToolSpec>) -> Result<(ToolChoice, Vec<ToolSpec>), ApiError> {
    let wrong = |message: &str| Err(ApiError::invalid("tool_choice", message));
    let of_mode = |mode: &Value| match mode.as_str() {
        Some("auto") => Ok(ToolChoice::Auto),
        Some("none") => Ok(ToolChoice::None),
        Some("required") => Ok(ToolChoice::Required),
        _ => Err(ApiError::invalid("tool_choice", format!("{mode} is not one of auto, none, required."))),
    };
    let chosen = match choice {
        Value::Null => ToolChoice::Auto,
        Value::String(_) => of_mode(choice)?,
        choice if choice["type"] == "allowed_tools" => {
            let allowed = choice.get("allowed_tools").unwrap_or(choice);
            let names: Vec<&str> = allowed["tools"].as_array().into_iter().flatten().filter_map(name_of).collect();
            tools.retain(|tool| names.contains(&tool.name.as_str()));
            of_mode(&allowed["mode"])?
        }
        choice => match name_of(choice).filter(|name| tools.iter().any(|tool| tool.name == **name)) {
            Some(name) => ToolChoice::Tool(name.to_string()),
            None => return wrong("It does not name a function of this request."),
        },
    };
    if chosen == ToolChoice::Required && tools.is_empty() {
        return wrong("A call cannot be required without functions.");
    }
    Ok((chosen, tools))
}

/// A conversation that is being parsed, message by message.
#[derive(Default)]
pub(crate) struct Conversation {
    pub(crate) messages: Vec<Message>,
    /// System texts, which are not messages.
    pub(crate) system: Vec<String>,
    pub(crate) warnings: Vec<String>,
    /// The purpose of the model's next text.
    phase: Option<TextPhase>,
}

impl Conversation {
    /// Adds a text of one of the roles that both APIs have.
    pub(crate) fn text(&mut self, role: &str, text: String) -> Result<(), String> {
        match role {
            "system" | "developer" => self.system.push(text),
            "user" => self.messages.push(Message::user(text)),
            "assistant" if text.is_empty() => {}
            "assistant" => self.part(Part::Text { text, phase: self.phase, opaque: None }),
            _ => return Err(format!("{role:?} is not one of system, developer, user, assistant")),
        }
        Ok(())
    }

    pub(crate) fn call(&mut self, id: &str, name: &str, raw: &str) {
        self.part(Part::Call(ToolCall::from_text(id, name, raw)));
    }

    pub(crate) fn result(&mut self, id: &str, text: String) {
        let id = CallId::from(id);
        let made = self.messages.iter().rev().flat_map(|message| message.calls()).find(|made| made.id == id);
        let unknown = || ToolCall::new(id.clone(), "unknown", Value::Null);
        let result = ToolResult::new(&made.cloned().unwrap_or_else(unknown), Status::Ok, text);
        self.messages.push(Message::Results { results: vec![result] });
    }

    /// Adds a part to the model's message; consecutive parts become one message.
    fn part(&mut self, part: Part) {
        match self.messages.last_mut() {
            Some(Message::Assistant { parts }) => parts.push(part),
            _ => self.messages.push(Message::Assistant { parts: vec![part] }),
        }
    }
}

/// Parses the items of the input, after the stored ones.
fn read_input(earlier: &[&Value], input: &Value) -> Result<Conversation, ApiError> {
    let mut conversation = Conversation::default();
    read_items(earlier.iter().copied(), "input", &mut conversation)?;
    match input {
        Value::String(text) => conversation.messages.push(Message::user(text)),
        Value::Array(items) => read_items(items, "input", &mut conversation)?,
        // A stored conversation may continue without new input.
        Value::Null if !earlier.is_empty() => {}
        _ => return Err(ApiError::invalid("input", "The input must be a string or a list of items.")),
    }
    Ok(conversation)
}

/// Checks items to be stored. `items` is the field that contains them.
pub(crate) fn check_items(items: &Value) -> Result<(), ApiError> {
    let items = items.as_array().ok_or_else(|| ApiError::invalid("items", "This must be a list of items."))?;
    read_items(items, "items", &mut Conversation::default())
}

fn read_items<'a>(
    items: impl IntoIterator<Item = &'a Value>,
    field: &str,
    conversation: &mut Conversation,
) -> Result<(), ApiError> {
    for (index, item) in items.into_iter().enumerate() {
        let param = |name: &str| format!("{field}[{index}].{name}");
        let field = |name: &str| needed(&item[name], || param(name));
        match item["type"].as_str().or_else(|| item.get("role").map(|_| "message")).unwrap_or_default() {
            "message" => {
                let said = content_text(&item["content"], &param("content"))?;
                // The purpose as this API names it. Models do not know any other values.
                conversation.phase = TextPhase::deserialize(&item["phase"]).ok();
                conversation.text(field("role")?, said).map_err(|what| ApiError::invalid(param("role"), what + "."))?;
            }
            "function_call" => {
                let name = known_name(item["namespace"].as_str(), field("name")?);
                let arguments = text(&item["arguments"], &param("arguments"))?.unwrap_or_default();
                conversation.call(field("call_id")?, &name, arguments);
            }
            "function_call_output" => {
                conversation.result(field("call_id")?, content_text(&item["output"], &param("output"))?);
            }
            // Reasoning of other models, which only those models can use.
            "reasoning" => conversation.warnings.push(format!("input[{index}] is reasoning, which is not passed on")),
            "item_reference" => {
                let message = format!("Item with id '{}' not found: items are not stored here.", field("id")?);
                return Err(ApiError::not_found(&param("id"), "item_not_found", message));
            }
            kind => {
                let message = format!("An item of the type {kind:?} is not supported here.");
                return Err(ApiError::invalid(param("type"), message));
            }
        }
    }
    Ok(())
}
