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
    /// The tools it may call, in a fixed order.
    pub tools: Arc<[ToolSpec]>,
    /// Whether it may, must or must not call.
    pub tool_choice: ToolChoice,
    /// How many calls one reply may hold.
    pub parallel: Parallel,
    /// A schema that the text of the reply should fit, for providers that can enforce one.
    pub answer_schema: Option<Arc<Value>>,
    /// The most tokens of the reply; `None`: the provider's own limit.
    pub max_output_tokens: Option<u32>,
    /// Randomness, 0 to about 2; `None`: the provider's own.
    pub temperature: Option<f64>,
    /// What not every provider has.
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
    /// Not in this reply.
    None,
    /// At least one.
    Required,
    /// This one.
    Tool(String),
}

/// How many calls a reply may hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Parallel {
    /// As many as the model likes.
    #[default]
    Many,
    /// One at most: a model in this process stops at it.
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
    /// Cumulative text, from providers that repeat what they sent: the reply's text from byte `begin` on, counted over all
    /// its text parts. Only what lies beyond the text received so far is new. Texts are never compared, so what a model
    /// says twice stays. [`TextCursor`] converts it to [`Delta::Text`].
    #[serde(rename = "text_so_far")]
    CumulativeText {
        /// 0 for the whole text of the reply.
        begin: usize,
        /// The text received so far.
        text: String,
    },
    /// The text that follows is a part of its own, and this is what it is for; so is all text up to the next of these.
    TextStart {
        /// `None` where the provider does not tell.
        phase: Option<TextPhase>,
    },
    /// The text before this is complete.
    TextEnd {
        /// What the provider wants back with it.
        opaque: Value,
    },
    /// More reasoning; `opaque` replaces what was there, and ends this part.
    Reasoning {
        /// More of what it thought; may be empty when there is `opaque`.
        text: String,
        /// What the provider wants back.
        opaque: Option<Value>,
    },
    /// A call begins.
    CallStart {
        /// Which call of this reply, in any numbering that is unique within it.
        index: usize,
        /// The provider's id; empty where it has none.
        id: String,
        /// The tool's name.
        name: String,
    },
    /// More of a call's arguments, as JSON text.
    CallArguments {
        /// Which call.
        index: usize,
        /// May be empty.
        text: String,
    },
    /// A call is complete. A call without this never runs.
    CallEnd {
        /// Which call.
        index: usize,
        /// What the provider wants back with the call.
        opaque: Option<Value>,
    },
    /// A call that cannot be read; it never runs, and its result tells the model why.
    CallFault {
        /// Which call; it need not have begun.
        index: usize,
        /// What is wrong, in words for the model.
        fault: String,
        /// The text that could not be read.
        raw: String,
    },
    /// Tokens so far: replaces what was said before.
    Usage(Usage),
    /// Something about the reply that a person may want to know. It is no part of it.
    Warning {
        /// What, in words.
        text: String,
    },
    /// Data arrived that yields no delta yet, such as a part of a call that is buffered. It shows that the model is not
    /// silent.
    Progress,
    /// The reply is over. Nothing comes after it.
    End(EndReason),
}

/// Why a reply is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// It was complete, whether it calls tools or not: providers do not agree on a name for that.
    Complete,
    /// It hit a limit of length; its last part may be cut.
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
    /// It does.
    Native,
    /// It ignores them or rejects the request.
    None,
}

/// Whether a model can be shown images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageSupport {
    /// It can, or its provider says that it cannot.
    Native,
    /// It only reads text.
    None,
}

/// A language model. Implementations must not retry: the agent does, because it knows what has been shown.
pub trait Model: Send + Sync {
    /// Its name, for events and transcripts.
    fn name(&self) -> &str;

    /// Who serves it, for spans: where there is one, the name that OpenTelemetry's conventions give the provider.
    fn provider(&self) -> Option<&str> {
        None
    }

    /// Whether it supports tools.
    fn tool_support(&self) -> ToolSupport {
        ToolSupport::Native
    }

    /// Whether it can be shown images. A request with images does not reach a model that cannot.
    fn image_support(&self) -> ImageSupport {
        ImageSupport::None
    }

    /// Starts one reply. A stream that ends without [`Delta::End`] counts as cut.
    ///
    /// # Errors
    /// Here what fails before the first byte, in the stream what fails later; nothing follows an error. Kinds are
    /// those of models in [`ErrorKind`](crate::ErrorKind), with status, request id and `retry-after` where there are any.
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
