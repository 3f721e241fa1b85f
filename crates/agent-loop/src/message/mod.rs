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

/// One message. The system text is not a message but a part of the request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// The person.
    User {
        /// The text.
        text: String,
        /// The images.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        images: Vec<Image>,
    },
    /// A message of the loop itself: a correction, a summary, a request to sum up. Providers get it as a user message.
    Note {
        /// The text.
        text: String,
    },
    /// The model.
    Assistant {
        /// Text, reasoning and calls, in the order in which they arrived.
        parts: Vec<Part>,
    },
    /// The results of all calls of the assistant message before it, in the order of the calls.
    Results {
        /// Exactly one result for each call.
        results: Vec<ToolResult>,
    },
}

/// A part of a model's message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "part", rename_all = "snake_case")]
pub enum Part {
    /// Text for the person.
    Text {
        /// The text.
        text: String,
        /// The purpose of the text, if the provider reports it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        phase: Option<TextPhase>,
        /// Data that the provider requires back with the text (a signature).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        opaque: Option<Value>,
    },
    /// The model's reasoning.
    Reasoning {
        /// The part of it that the provider exposes.
        text: String,
        /// Data that the provider requires back unchanged (a signature, an encrypted item).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        opaque: Option<Value>,
    },
    /// A call of a tool.
    Call(ToolCall),
}

/// The purpose of a model's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextPhase {
    /// Commentary during the work, such as what the model is about to do.
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
    /// The arguments, an object. If `fault` is set, it may be a string: the text that could not be read.
    pub arguments: Value,
    /// The arguments as the model wrote them, if that differs from the compact text of `arguments`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) raw_arguments: Option<String>,
    /// The reason why this call must not run, for the model: it was cut off, or its arguments are not valid JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// Data that the provider requires back unchanged with this call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<Value>,
}

impl ToolCall {
    /// Creates a valid call.
    pub fn new(id: impl Into<CallId>, name: impl Into<String>, arguments: Value) -> Self {
        Self { id: id.into(), name: name.into(), arguments, raw_arguments: None, fault: None, opaque: None }
    }

    /// Creates a call from its arguments as text, as a model or server wrote it: an empty text and `null` mean no
    /// arguments, and an object may be wrapped in a string. Any other text stays in `arguments`, and `fault` gives the
    /// reason why the call must not run.
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

    /// Sets the arguments from their text, or the fault that prevents the call from running.
    pub(crate) fn set_text(&mut self, text: String) {
        match read_arguments(&text) {
            Ok(arguments) => {
                // Only an object's own text can be sent back, not a text that means no arguments, and not an object
                // within a string.
                let compact = arguments.to_string();
                let is_own = text.trim_start().starts_with('{') && text != compact;
                self.raw_arguments = is_own.then_some(text);
                self.arguments = arguments;
            }
            Err(fault) => (self.arguments, self.fault) = (Value::String(text), Some(fault)),
        }
    }

    /// Returns the text that the model wrote, if it still has the value of `arguments`. The program may have changed
    /// that field.
    fn raw_arguments(&self) -> Option<&str> {
        let says_the_same = |raw: &&str| serde_json::from_str::<Value>(raw).is_ok_and(|raw| raw == self.arguments);
        self.raw_arguments.as_deref().filter(says_the_same)
    }

    /// Returns the arguments as JSON text, byte for byte as the model wrote it; compact if the program set them.
    pub fn arguments_text(&self) -> Cow<'_, str> {
        self.raw_arguments().map_or_else(|| Cow::Owned(self.arguments.to_string()), Cow::Borrowed)
    }

    /// Returns the arguments as text that a provider accepts back. Arguments that could not be read would be rejected
    /// again, and the result describes the issue with them.
    pub(crate) fn sent_text(&self) -> Cow<'_, str> {
        if self.arguments.is_object() { self.arguments_text() } else { Cow::Borrowed("{}") }
    }

    /// Returns the same as an object, for a body that [`raw_json::to_text`](crate::raw_json::to_text) writes.
    pub(crate) fn sent_object(&self) -> Value {
        match self.raw_arguments() {
            _ if !self.arguments.is_object() => Value::Object(Map::new()),
            Some(text) => raw(text),
            None => self.arguments.clone(),
        }
    }
}

/// Parses arguments as servers send them: an empty text and `null` mean no arguments, and an object may be wrapped in a
/// string.
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
    /// The call could not run or failed; the text contains the reason.
    Error,
    /// A person or the policy denied the call; it did not run.
    Denied,
    /// The call was cancelled; the text tells whether it may have had an effect.
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
    /// A note of the loop that the arguments were edited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// How long the tool ran; `None` if it did not run or did not end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<Duration>,
    /// The tool's output, item by item. It is data, never an instruction.
    pub items: Vec<String>,
}

impl ToolResult {
    /// Creates a result with one item.
    pub fn new(call: &ToolCall, status: Status, text: impl Into<String>) -> Self {
        let (call, name) = (call.id.clone(), call.name.clone());
        Self { call, name, status, note: None, duration: None, items: vec![text.into()] }
    }

    /// Returns the text that a model gets: the note, if there is one, and the items, each on its own line.
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
    /// Creates a person's message.
    pub fn user(message: impl Into<UserMessage>) -> Self {
        message.into().into()
    }

    /// Creates a message of the loop itself.
    pub fn note(text: impl Into<String>) -> Self {
        Self::Note { text: text.into() }
    }

    /// Creates a model's message that contains only text.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::Assistant { parts: vec![Part::text(text)] }
    }

    /// Returns the message's calls, in order.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        let parts: &[Part] = if let Self::Assistant { parts } = self { parts } else { &[] };
        parts.iter().filter_map(|part| if let Part::Call(call) = part { Some(call) } else { None })
    }

    /// Returns the images of a person's message.
    pub fn images(&self) -> &[Image] {
        if let Self::User { images, .. } = self { images } else { &[] }
    }

    /// Returns the message's text, without reasoning, calls and results.
    pub fn text(&self) -> String {
        match self {
            Self::User { text, .. } | Self::Note { text } => text.clone(),
            Self::Assistant { parts } => Part::visible_text(parts),
            Self::Results { .. } => String::new(),
        }
    }

    /// Returns whether this is a person's message.
    pub(crate) fn is_of_person(&self) -> bool {
        matches!(self, Self::User { .. })
    }

    /// Returns the approximate size in bytes of what a provider gets for it. An image counts as much as the text of the
    /// same cost. Linear in the message.
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
    /// Creates a text part without a phase or provider data.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into(), phase: None, opaque: None }
    }

    /// Returns the text of these parts that is meant for a person.
    pub(crate) fn visible_text(parts: &[Self]) -> String {
        Self::texts(parts).map(|(text, _)| text).collect()
    }

    /// Returns the text of these parts without commentary, or the commentary if there is no other text.
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

    /// Releases the memory that its text does not need.
    pub(crate) fn shrink(&mut self) {
        if let Self::Text { text, .. } | Self::Reasoning { text, .. } = self {
            text.shrink_to_fit();
        }
    }

    /// Returns the approximate size in bytes of what a provider gets for it.
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

/// An image costs about a thousand tokens regardless of its size in bytes, and four bytes are about one token.
const IMAGE_SIZE: usize = 4_000;

/// Returns the approximate length of a value's JSON text, without writing it.
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
    /// Tokens of the request, including cached ones.
    pub input: u64,
    /// Tokens of the reply, including reasoning.
    pub output: u64,
    /// The tokens of `input` that came from the provider's cache.
    #[serde(default)]
    pub cached: u64,
    /// The tokens of `output` that were reasoning.
    #[serde(default)]
    pub reasoning: u64,
    /// The cost in millionths of a US dollar, if the provider reports it, as OpenRouter does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<u64>,
}

setters!(Usage { input: u64, output: u64, cached: u64, reasoning: u64, cost: Option<u64> });

impl Usage {
    /// Returns the sum of input and output.
    pub fn total(self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// Returns the sum of both.
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

/// Returns the sum of both costs, or `None` if neither is known.
pub(crate) fn costs(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (None, None) => None,
        (one, other) => Some(one.unwrap_or(0).saturating_add(other.unwrap_or(0))),
    }
}
