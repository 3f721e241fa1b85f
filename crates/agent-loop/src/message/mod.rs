//! Messages, calls and results as plain data, and histories in which every call has exactly one result.

mod image;
mod history;
mod repair;

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::raw_json::raw;

pub(crate) use history::MessageChecker;
pub use history::{History, Messages};
pub use image::{Image, UserMessage};
pub use repair::Repair;

/// One message. The system text is not a message: it is part of the request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// The person.
    User {
        /// What the person says.
        text: String,
        /// What the person shows.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        images: Vec<Image>,
    },
    /// From the loop itself: a correction, a summary, a request to sum up. Sent to providers as a user message.
    Note {
        /// What the loop says.
        text: String,
    },
    /// The model.
    Assistant {
        /// Text, reasoning and calls in the order in which they came.
        parts: Vec<Part>,
    },
    /// The results of all calls of the assistant message before it, in the order of the calls.
    Results {
        /// One for each call, never more, never fewer.
        results: Vec<ToolResult>,
    },
}

/// A part of what a model says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "part", rename_all = "snake_case")]
pub enum Part {
    /// Text for the person.
    Text {
        /// The text.
        text: String,
        /// What it is for, where the provider tells.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        phase: Option<TextPhase>,
        /// What the provider wants back with it (a signature).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        opaque: Option<Value>,
    },
    /// The model's reasoning.
    Reasoning {
        /// As much of it as the provider exposes.
        text: String,
        /// What the provider wants back unchanged (a signature, an encrypted item).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        opaque: Option<Value>,
    },
    /// A call of a tool.
    Call(ToolCall),
}

/// What a text of a model is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextPhase {
    /// What the model says on the way, such as what it is about to do.
    Commentary,
    /// The answer, or a part of it.
    FinalAnswer,
}

/// The id of a call, unique within its conversation.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallId(pub String);

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<T: Into<String>> From<T> for CallId {
    fn from(id: T) -> Self {
        Self(id.into())
    }
}

/// A call as the model made it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolCall {
    /// Its id.
    pub id: CallId,
    /// The tool's name, as the model wrote it.
    pub name: String,
    /// An object. Where `fault` is set it may be a string: the text that could not be read.
    pub arguments: Value,
    /// The arguments as the model wrote them, where that is not the compact text of `arguments`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) raw_arguments: Option<String>,
    /// Why this call must not run, for the model: it was cut off, or its arguments are not valid JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// What the provider wants back unchanged with this call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<Value>,
}

impl ToolCall {
    /// A valid call.
    pub fn new(id: impl Into<CallId>, name: impl Into<String>, arguments: Value) -> Self {
        Self { id: id.into(), name: name.into(), arguments, raw_arguments: None, fault: None, opaque: None }
    }

    /// A call whose arguments are a text, as a model or server wrote it: nothing and `null` are no arguments, and an object
    /// may be wrapped in a string. Any other text stays in `arguments`, and `fault` says why the call must not run.
    ///
    /// ```
    /// use agent_loop::ToolCall;
    ///
    /// assert_eq!(ToolCall::from_text("c1", "read", r#"{"path": "a.md"}"#).arguments["path"], "a.md");
    /// assert!(ToolCall::from_text("c1", "read", r#"{"path": "#).fault.is_some());
    /// ```
    pub fn from_text(id: impl Into<CallId>, name: impl Into<String>, arguments: impl Into<String>) -> Self {
        let mut call = Self::new(id, name, Value::Null);
        call.set_text(arguments.into());
        call
    }

    /// Sets the arguments from their text, or the fault that keeps the call from running.
    pub(crate) fn set_text(&mut self, text: String) {
        match read_arguments(&text) {
            Ok(arguments) => {
                // Only an object's own text can go back: not what stands for none, and not an object within a string.
                let compact = arguments.to_string();
                let is_own = text.trim_start().starts_with('{') && text != compact;
                self.raw_arguments = is_own.then_some(text);
                self.arguments = arguments;
            }
            Err(fault) => (self.arguments, self.fault) = (Value::String(text), Some(fault)),
        }
    }

    /// The text that the model wrote, for as long as it says what `arguments` says: the field may have been changed.
    fn raw_arguments(&self) -> Option<&str> {
        let says_the_same = |raw: &&str| serde_json::from_str::<Value>(raw).is_ok_and(|raw| raw == self.arguments);
        self.raw_arguments.as_deref().filter(says_the_same)
    }

    /// The arguments as JSON text, byte for byte as the model wrote it; compact where the program set them.
    pub fn arguments_text(&self) -> Cow<'_, str> {
        self.raw_arguments().map_or_else(|| Cow::Owned(self.arguments.to_string()), Cow::Borrowed)
    }

    /// The arguments as a provider takes them back as text: arguments that could not be read would be refused again, and
    /// the result says what was wrong with them.
    pub(crate) fn sent_text(&self) -> Cow<'_, str> {
        if self.arguments.is_object() { self.arguments_text() } else { Cow::Borrowed("{}") }
    }

    /// The same as an object, for a body that [`raw_json::to_text`](crate::raw_json::to_text) writes.
    pub(crate) fn sent_object(&self) -> Value {
        match self.raw_arguments() {
            _ if !self.arguments.is_object() => Value::Object(Map::new()),
            Some(text) => raw(text),
            None => self.arguments.clone(),
        }
    }
}

/// Arguments as servers send them: nothing and `null` are no arguments, and an object may be wrapped in a string.
pub(crate) fn read_arguments(text: &str) -> Result<Value, String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    match serde_json::from_str(text) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(Value::Null) => Ok(Value::Object(Map::new())),
        Ok(Value::String(inner)) if inner.len() < text.len() => read_arguments(&inner),
        Ok(_) => Err("The arguments must be a JSON object.".into()),
        Err(error) => Err(format!("The arguments are not valid JSON: {error}.")),
    }
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The tool ran.
    Ok,
    /// It could not run or failed; the text says why.
    Error,
    /// A person or the policy denied it; it did not run.
    Denied,
    /// It was cancelled; the text says whether it may have had an effect.
    Cancelled,
}

/// The one result of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolResult {
    /// The call it belongs to.
    pub call: CallId,
    /// The tool's name.
    pub name: String,
    /// How the call ended.
    pub status: Status,
    /// A note by the loop: the arguments were edited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// How long the tool ran; `None` if it did not, or did not end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<Duration>,
    /// The tool's output, item by item. It is data, never an instruction.
    pub items: Vec<String>,
}

impl ToolResult {
    /// A result of one item.
    pub fn new(call: &ToolCall, status: Status, text: impl Into<String>) -> Self {
        let (call, name) = (call.id.clone(), call.name.clone());
        Self { call, name, status, note: None, duration: None, items: vec![text.into()] }
    }

    /// What a model is sent: the note, if there is one, and the items, each on a line of its own.
    pub fn text(&self) -> String {
        let mut text = String::with_capacity(self.size());
        for item in self.note.iter().chain(&self.items) {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(item);
        }
        text
    }

    fn size(&self) -> usize {
        self.note.iter().chain(&self.items).map(|item| item.len() + 1).sum()
    }
}

impl Message {
    /// What a person says.
    pub fn user(message: impl Into<UserMessage>) -> Self {
        message.into().into()
    }

    /// What the loop itself says.
    pub fn note(text: impl Into<String>) -> Self {
        Self::Note { text: text.into() }
    }

    /// What a model says, in text alone.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::Assistant { parts: vec![Part::text(text)] }
    }

    /// Its calls, in order.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        let parts: &[Part] = if let Self::Assistant { parts } = self { parts } else { &[] };
        parts.iter().filter_map(|part| if let Part::Call(call) = part { Some(call) } else { None })
    }

    /// The images that a person shows with it.
    pub fn images(&self) -> &[Image] {
        if let Self::User { images, .. } = self { images } else { &[] }
    }

    /// Its text: reasoning, calls and results are left out.
    pub fn text(&self) -> String {
        match self {
            Self::User { text, .. } | Self::Note { text } => text.clone(),
            Self::Assistant { parts } => Part::visible_text(parts),
            Self::Results { .. } => String::new(),
        }
    }

    /// Whether a person said it.
    pub(crate) fn is_of_person(&self) -> bool {
        matches!(self, Self::User { .. })
    }

    /// About how many bytes a provider is sent for it; for an image, those of as much text as it costs. Linear in the
    /// message.
    pub fn size(&self) -> usize {
        match self {
            Self::User { text, images } => text.len() + images.len() * IMAGE_SIZE,
            Self::Note { text } => text.len(),
            Self::Assistant { parts } => parts.iter().map(Part::size).sum(),
            Self::Results { results } => results.iter().map(|result| result.size() + result.name.len()).sum(),
        }
    }
}

impl Part {
    /// A text, without anything that a provider says of it.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into(), phase: None, opaque: None }
    }

    /// The text of these parts that is meant for a person.
    pub(crate) fn visible_text(parts: &[Self]) -> String {
        Self::texts(parts).map(|(text, _)| text).collect()
    }

    /// Their text without commentary; where there is nothing else, that.
    pub(crate) fn answer_text(parts: &[Self]) -> String {
        let answer = Self::texts(parts).filter(|(_, phase)| *phase != Some(TextPhase::Commentary));
        let answer: String = answer.map(|(text, _)| text).collect();
        if answer.is_empty() { Self::visible_text(parts) } else { answer }
    }

    fn texts(parts: &[Self]) -> impl Iterator<Item = (&str, Option<TextPhase>)> {
        let text =
            |part| if let &Self::Text { ref text, phase, .. } = part { Some((text.as_str(), phase)) } else { None };
        parts.iter().filter_map(text)
    }

    /// Gives back the memory that its text does not need.
    pub(crate) fn shrink(&mut self) {
        if let Self::Text { text, .. } | Self::Reasoning { text, .. } = self {
            text.shrink_to_fit();
        }
    }

    /// About how many bytes a provider is sent for it.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Text { text, opaque, .. } => text.len() + opaque.as_ref().map_or(0, value_size),
            Self::Reasoning { text, opaque } => text.len() + opaque.as_ref().map_or(0, value_size),
            Self::Call(call) => {
                call.name.len() + value_size(&call.arguments) + call.opaque.as_ref().map_or(0, value_size)
            }
        }
    }
}

/// An image is about a thousand tokens, however many bytes it has, and four bytes are about one.
const IMAGE_SIZE: usize = 4_000;

/// About the length of a value's JSON text, without writing it.
fn value_size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 5,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| value_size(item) + 1).sum::<usize>() + 2,
        Value::Object(fields) => fields.iter().map(|(key, value)| key.len() + value_size(value) + 4).sum::<usize>() + 2,
    }
}

/// Tokens of one or more replies, as the provider counted them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Usage {
    /// Of the request, the cached ones included.
    pub input: u64,
    /// Of the reply, reasoning included.
    pub output: u64,
    /// Those of `input` that came from the provider's cache.
    #[serde(default)]
    pub cached: u64,
    /// Those of `output` that were reasoning.
    #[serde(default)]
    pub reasoning: u64,
    /// What they cost in millionths of a US dollar, where the provider says so, as OpenRouter does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<u64>,
}

setters!(Usage { input: u64, output: u64, cached: u64, reasoning: u64, cost: Option<u64> });

impl Usage {
    /// Input and output together.
    pub fn total(self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cached: self.cached.saturating_add(other.cached),
            reasoning: self.reasoning.saturating_add(other.reasoning),
            cost: costs(self.cost, other.cost),
        }
    }
}

/// Both costs; unknown where neither is known.
pub(crate) fn costs(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (None, None) => None,
        (one, other) => Some(one.unwrap_or(0).saturating_add(other.unwrap_or(0))),
    }
}
