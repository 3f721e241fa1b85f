//! Hosted models: each wire format is a pure encoder and decoder; the HTTP connection is the trait [`Transport`].
//!
//! ```text
//! Request ──> wire: body ──> Transport ──> status ── not 2xx ──> failure: a typed error
//!                                            └─ bytes ──> sse: events ──> wire: deltas ──> tool_names ──> Delta
//! ```
//!
//! Without the feature `hosted` there is no HTTP stack: implement [`Transport`] over your own. With it there is `Http`.

mod provider;
mod sse;
mod failure;
mod tool_names;
mod body_stream;
mod chat;
mod output_texts;
mod openai_responses;
mod anthropic;
mod gemini;
#[cfg(feature = "hosted")]
mod http;

use std::fmt;

use futures_util::{Stream, StreamExt};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::model::{Delta, Model, ReplyStream, Request};
use crate::schema::WireNames;
use crate::tool::BoxFuture;

#[cfg(feature = "hosted")]
pub use http::{Http, HttpOptions, HttpProxy};

pub use provider::{Provider, Streaming, TextDeltas, Wire};

use body_stream::{BodyFormat, BodyStream};
use tool_names::ToolNameRestorer;

/// The longest provider message that is quoted in an error.
const MAX_MESSAGE_BYTES: usize = 600;

/// A request to send as `POST`.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpRequest {
    /// Where to.
    pub url: String,
    /// With `content-type`; the key is in here.
    pub headers: Vec<(String, String)>,
    /// JSON.
    pub body: Vec<u8>,
}

impl fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpRequest").field("url", &self.url).field("bytes", &self.body.len()).finish_non_exhaustive()
    }
}

/// The bytes of a body as they come.
pub type ByteStream = std::pin::Pin<Box<dyn Stream<Item = Result<Vec<u8>>> + Send>>;

/// What came back.
pub struct HttpReply {
    /// The status.
    pub status: u16,
    /// Names in any case.
    pub headers: Vec<(String, String)>,
    /// The body, as it arrives. Dropping it ends the request.
    pub body: ByteStream,
}

impl fmt::Debug for HttpReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpReply").field("status", &self.status).finish_non_exhaustive()
    }
}

impl HttpReply {
    fn header(&self, wanted: &str) -> Option<&str> {
        let header = self.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
        header.map(|(_, value)| value.as_str())
    }
}

/// Sends requests. Implementations follow no redirect to another host (the key would go with it) and retry nothing.
pub trait Transport: Send + Sync {
    /// Sends one request and comes back with the head of the reply, whatever its status.
    ///
    /// # Errors
    /// `Unavailable` when there is no connection; `CutStream` in the body when it breaks off.
    fn post(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpReply>>;
}

/// Reads the events of one reply. Pure.
trait Decode: Send {
    /// One event: its name, where the wire has names, and its data.
    fn event(&mut self, name: &str, data: &str) -> Result<Vec<Delta>>;

    /// The mark behind the last event, where the wire has one; elsewhere gateways add it all the same.
    fn done(&mut self) -> Vec<Delta> {
        Vec::new()
    }

    /// The body is over. What the wire cannot end without is not made up here.
    fn end(&mut self) -> Vec<Delta>;

    /// A body that is one JSON object instead of events.
    fn whole(&mut self, body: &Value) -> Result<Vec<Delta>>;
}

/// A hosted model.
pub struct Hosted<T> {
    provider: Provider,
    model: String,
    transport: T,
}

impl<T: Transport> Hosted<T> {
    /// A model of a provider, by the provider's name for it.
    pub fn new(provider: Provider, model: impl Into<String>, transport: T) -> Self {
        Self { provider, model: model.into(), transport }
    }

    fn http_request(&self, request: &Request, names: &WireNames) -> HttpRequest {
        let Provider { base_url, key, wire, streaming, .. } = &self.provider;
        let key = key.as_deref();
        let model = self.model.as_str();
        let (path, mut headers, mut body) = match wire {
            Wire::OpenAiChat | Wire::Chat => {
                ("chat/completions".to_string(), chat::headers(key), chat::body(model, request, names, *wire))
            }
            Wire::OpenAiResponses => {
                ("responses".into(), chat::headers(key), openai_responses::body(model, request, names))
            }
            Wire::Anthropic => ("messages".into(), anthropic::headers(key), anthropic::body(model, request, names)),
            Wire::Gemini => (gemini::path(model, *streaming), gemini::headers(key), gemini::body(request, names)),
        };
        headers.push(("content-type".into(), "application/json".into()));
        let accepted = match streaming {
            Streaming::Yes => "text/event-stream",
            Streaming::No => {
                if let Some(fields) = body.as_object_mut().filter(|fields| fields.contains_key("stream")) {
                    fields.insert("stream".into(), Value::Bool(false));
                    fields.remove("stream_options");
                }
                "application/json"
            }
        };
        headers.push(("accept".into(), accepted.into()));
        headers.extend(self.provider.headers.iter().cloned());
        HttpRequest { url: format!("{base_url}/{path}"), headers, body: body.to_string().into_bytes() }
    }

    fn decoder(&self) -> Box<dyn Decode> {
        match self.provider.wire {
            Wire::OpenAiChat | Wire::Chat => Box::new(chat::Decoder::default()),
            Wire::OpenAiResponses => Box::new(openai_responses::Decoder::default()),
            Wire::Anthropic => Box::new(anthropic::Decoder::default()),
            Wire::Gemini => Box::new(gemini::Decoder::default()),
        }
    }

    /// Adds the provider's name to an error and removes the key from its texts.
    fn redact(&self, error: Error) -> Error {
        let error = error.without(self.provider.key.as_deref().unwrap_or_default());
        error.shortened(MAX_MESSAGE_BYTES).with_path(self.provider.name.clone())
    }

    async fn open(&self, request: Request) -> Result<ReplyStream<'_>> {
        let names = WireNames::new(request.tools.iter().map(|tool| tool.name.as_str()));
        let http_request = self.http_request(&request, &names);
        log::debug!("{}: POST of {} bytes", self.provider.name, http_request.body.len());
        let reply = self.transport.post(http_request).await?;
        log::debug!("{}: status {}", self.provider.name, reply.status);
        if !(200..300).contains(&reply.status) {
            return Err(failure::of_status(reply).await);
        }
        let form = match reply.header("content-type").unwrap_or_default() {
            kind if kind.starts_with("application/json") => BodyFormat::whole(),
            kind if kind.starts_with("text/event-stream") => BodyFormat::events(),
            _ if self.provider.streaming == Streaming::No => BodyFormat::whole(),
            _ => BodyFormat::Unknown,
        };
        let restorer = ToolNameRestorer::new(&request, names, self.provider.wire);
        let reading = BodyStream::new(reply.body, form, self.decoder(), self.provider.text_deltas, restorer);
        Ok(Box::pin(reading.deltas().map(|delta| delta.map_err(|error| self.redact(error)))))
    }
}

impl<T: Transport> Model for Hosted<T> {
    fn name(&self) -> &str {
        &self.model
    }

    fn reply(&self, request: Request) -> BoxFuture<'_, Result<ReplyStream<'_>>> {
        Box::pin(async move { self.open(request).await.map_err(|error| self.redact(error)) })
    }
}

impl<T> fmt::Debug for Hosted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hosted").field("provider", &self.provider).field("model", &self.model).finish_non_exhaustive()
    }
}
