//! The interface to a language model: one request in, a stream of deltas out, terminated by exactly one `End`.

mod settings;
mod text_cursor;
mod reply;

use std::sync::Arc;

use futures_util::stream::BoxStream;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::Result;
use crate::message::{Messages, TextPhase, Usage};
use crate::tool::{BoxFuture, ToolSpec};

pub(crate) use reply::CUT_BY_LENGTH;
pub use reply::{Reply, ReplyBuilder};
pub(crate) use settings::is_default;
pub use settings::{ModelSettings, PromptCache, ReasoningEffort};
pub use text_cursor::TextCursor;

/// A request to a model. Clones share messages and tools.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct Request {
    /// The system text.
    pub system: Option<Arc<str>>,
    /// The conversation. Every call in it has its result.
    pub messages: Messages,
    /// The tools that the model may call, in a fixed order.
    pub tools: Arc<[ToolSpec]>,
    /// Whether the model may, must or must not call tools.
    pub tool_choice: ToolChoice,
    /// How many calls one reply may contain.
    pub parallel: Parallel,
    /// A schema that the text of the reply should fit, for providers that can enforce one.
    pub answer_schema: Option<Arc<Value>>,
    /// The most tokens of the reply; `None` means the provider's own limit.
    pub max_output_tokens: Option<u32>,
    /// The sampling temperature, 0 to about 2; `None` means the provider's default.
    pub temperature: Option<f64>,
    /// Settings that not every provider has.
    #[serde(skip_serializing_if = "is_default")]
    pub settings: ModelSettings,
}

setters!(Request {
    system: Option<Arc<str>>,
    messages: Messages,
    tools: Arc<[ToolSpec]>,
    tool_choice: ToolChoice,
    parallel: Parallel,
    answer_schema: Option<Arc<Value>>,
    max_output_tokens: Option<u32>,
    temperature: Option<f64>,
    settings: ModelSettings,
});

/// Whether a model may call tools.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// The model must not call a tool.
    None,
    /// The model must call at least one tool.
    Required,
    /// The model must call this tool.
    Tool(String),
}

/// How many calls a reply may hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Parallel {
    /// Any number.
    #[default]
    Many,
    /// At most one. A model in this process stops after it.
    One,
}

/// A piece of a reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "delta", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Delta {
    /// More text.
    Text {
        /// Never empty.
        text: String,
    },
    /// Cumulative text, from providers that repeat earlier text: the reply's text from byte `begin` on, counted over
    /// all its text parts. Only text beyond the end of the received text is new. Texts are never compared, so a text
    /// that a model repeats is kept. [`TextCursor`] converts it to [`Delta::Text`].
    #[serde(rename = "text_so_far")]
    CumulativeText {
        /// 0 for the whole text of the reply.
        begin: usize,
        /// The text received so far.
        text: String,
    },
    /// A new text part with this purpose starts. All text up to the next such delta belongs to it.
    TextStart {
        /// `None` if the provider does not report it.
        phase: Option<TextPhase>,
    },
    /// The text before this is complete.
    TextEnd {
        /// Data that the provider requires back with it.
        opaque: Value,
    },
    /// More reasoning. `opaque` replaces the earlier value and ends this part.
    Reasoning {
        /// The next piece of reasoning; it may be empty if there is `opaque`.
        text: String,
        /// Data that the provider requires back.
        opaque: Option<Value>,
    },
    /// A call starts.
    CallStart {
        /// The index of the call, in any numbering that is unique within the reply.
        index: usize,
        /// The provider's id; empty if it sends none.
        id: String,
        /// The tool's name.
        name: String,
    },
    /// More of a call's arguments, as JSON text.
    CallArguments {
        /// The index of the call.
        index: usize,
        /// The next piece; it may be empty.
        text: String,
    },
    /// A call is complete. A call without this never runs.
    CallEnd {
        /// The index of the call.
        index: usize,
        /// Data that the provider requires back with the call.
        opaque: Option<Value>,
    },
    /// A call that cannot be read; it never runs, and its result tells the model why.
    CallFault {
        /// The index of the call, which need not have started.
        index: usize,
        /// The issue, in words for the model.
        fault: String,
        /// The text that could not be read.
        raw: String,
    },
    /// The tokens so far. They replace earlier counts.
    Usage(Usage),
    /// A problem that a person may want to know about. It is not part of the reply.
    Warning {
        /// The text of the warning.
        text: String,
    },
    /// Data arrived that yields no delta yet, for example a part of a call that is buffered. It shows that the model is
    /// still sending.
    Progress,
    /// The reply is over. No delta follows.
    End(EndReason),
}

/// Why a reply is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// It is complete, with or without tool calls: providers do not agree on separate names for the two.
    Complete,
    /// It reached a length limit; its last part may be incomplete.
    Length,
    /// A content filter stopped it.
    Filtered,
    /// The model or the provider declined to answer.
    Refused,
}

/// The deltas of a reply as they arrive. Dropping the stream cancels the request.
pub type ReplyStream<'a> = BoxStream<'a, Result<Delta>>;

/// Whether a model supports tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolSupport {
    /// It supports tools.
    Native,
    /// It ignores tools or rejects the request.
    None,
}

/// Whether a model accepts images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageSupport {
    /// It accepts images, or its provider rejects them.
    Native,
    /// It only reads text.
    None,
}

/// A language model. Implementations must not retry, because only the agent knows what has been shown.
pub trait Model: Send + Sync {
    /// Returns the model's name, for events and transcripts.
    fn name(&self) -> &str;

    /// Returns who serves the model, for spans: the name that OpenTelemetry's conventions give the provider, if there
    /// is one.
    fn provider(&self) -> Option<&str> {
        None
    }

    /// Returns whether the model supports tools.
    fn tool_support(&self) -> ToolSupport {
        ToolSupport::Native
    }

    /// Returns whether the model accepts images. A request with images is not sent to a model that does not.
    fn image_support(&self) -> ImageSupport {
        ImageSupport::None
    }

    /// Starts one reply. A stream that ends without [`Delta::End`] counts as broken off.
    ///
    /// # Errors
    /// Failures before the first byte are returned here, later ones in the stream; nothing follows an error. The kinds
    /// are those of models in [`ErrorKind`](crate::ErrorKind), with status, request id and `retry-after` if they are
    /// known.
    fn reply(&self, request: Request) -> BoxFuture<'_, Result<ReplyStream<'_>>>;
}

impl<M: Model + ?Sized> Model for Arc<M> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn provider(&self) -> Option<&str> {
        (**self).provider()
    }

    fn tool_support(&self) -> ToolSupport {
        (**self).tool_support()
    }

    fn image_support(&self) -> ImageSupport {
        (**self).image_support()
    }

    fn reply(&self, request: Request) -> BoxFuture<'_, Result<ReplyStream<'_>>> {
        (**self).reply(request)
    }
}
