//! Hosted models: each wire format is a pure encoder and decoder; the HTTP connection is the trait [`Transport`].
//!
//! ```text
//! Request ──> wire: body ──> Transport ──> status ── not 2xx ──> failure: a typed error
//!                                            └─ bytes ──> sse, lines: events ──> wire ──> deltas: Delta
//! ```
//!
//! Without the feature `hosted` there is no HTTP stack: implement [`Transport`] over your own. With it there is `Http`.

mod provider;
mod lines;
mod sse;
mod error_words;
mod failure;
mod deltas;
mod without_nulls;
mod extra_body;
mod body_text;
mod unsupported;
mod body_stream;
mod chat_reasoning;
mod chat;
mod output_texts;
mod openai_responses;
mod anthropic;
mod gemini;
mod ollama;
#[cfg(feature = "hosted")]
mod http;

use std::fmt;

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use serde_json::Value;

#[cfg(feature = "hosted")]
use crate::error::ErrorKind;
use crate::error::{Error, Result};
use crate::model::{Delta, EndReason, ImageSupport, Model, ReplyStream, Request};
use crate::raw_json::to_text;
use crate::schema::WireNames;
use crate::tool::BoxFuture;

#[cfg(feature = "hosted")]
pub use http::{Http, HttpOptions, HttpProxy};

pub use provider::{Provider, ReasoningField, ReturnReasoning, Streaming, TextDeltas, Wire};

use body_stream::{BodyFormat, BodyStream};
use body_text::BodyText;
use deltas::Deltas;
use failure::Refusal;

/// The longest provider message that is quoted in an error.
const MAX_MESSAGE_BYTES: usize = 600;

/// A request to send as `POST`.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpRequest {
    /// The URL.
    pub url: String,
    /// The headers, including `content-type` and the key.
    pub headers: Vec<(String, String)>,
    /// The body, which is JSON.
    pub body: Vec<u8>,
}

impl fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpRequest").field("url", &self.url).field("bytes", &self.body.len()).finish_non_exhaustive()
    }
}

/// The bytes of a body as they arrive.
pub type ByteStream = BoxStream<'static, Result<Vec<u8>>>;

/// The response to a request.
pub struct HttpReply {
    /// The status.
    pub status: u16,
    /// The headers. Names may have any case.
    pub headers: Vec<(String, String)>,
    /// The body, as it arrives. Dropping it cancels the request.
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

/// Sends requests. Implementations must not follow a redirect to another host, because the key would go with it, and
/// must not retry.
pub trait Transport: Send + Sync {
    /// Sends one request and returns the head of the reply, whatever its status.
    ///
    /// # Errors
    /// `Unavailable` if there is no connection; `CutStream` in the body if it breaks off.
    fn post(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpReply>>;
}

/// Decodes one reply. Implementations are pure.
trait Decode: Send {
    /// Decodes the data of one event.
    fn event(&mut self, event: &Value, out: &mut Deltas) -> Result<()>;

    /// Handles `[DONE]`, which ends a stream if the wire defines it; some gateways add it on other wires.
    fn done(&mut self, _: &mut Deltas) {}

    /// Handles the end of the body. Wires with a terminal event ignore this.
    fn end(&mut self, _: &mut Deltas) {}

    /// Decodes a body that is one JSON object instead of events. It is always complete, so it needs no terminal event;
    /// an object that is not a reply is an error.
    fn whole(&mut self, body: &Value, out: &mut Deltas) -> Result<()>;
}

/// A hosted model.
pub struct HostedModel<T> {
    provider: Provider,
    model: String,
    transport: T,
}

#[cfg(feature = "hosted")]
impl HostedModel<Http> {
    /// Returns a model by the names of its provider and its own, for example `"openai:gpt-5.6"`, with the key that the
    /// environment has for the provider ([`Provider::from_env`] lists the names) and its own connection.
    ///
    /// # Errors
    /// `BadRequest` if the text has no `:` or the provider is unknown, `Authentication` if its key is not set; that of
    /// [`Http::new`].
    pub fn from_env(model: &str) -> Result<Self> {
        let Some((provider, model)) = model.split_once(':') else {
            let message = format!("{model:?} names no provider: write it as \"openai:{model}\"");
            return Err(Error::new(ErrorKind::BadRequest, message));
        };
        Ok(Self::new(Provider::from_env(provider)?, model, Http::new()?))
    }
}

impl<T: Transport> HostedModel<T> {
    /// Creates a model of a provider, by the provider's name for it.
    pub fn new(provider: Provider, model: impl Into<String>, transport: T) -> Self {
        Self { provider, model: model.into(), transport }
    }

    fn http_request(&self, request: &Request, names: &WireNames) -> Result<HttpRequest> {
        let Provider { base_url, key, key_header, query, wire, streaming, .. } = &self.provider;
        unsupported::check(request, &self.provider)?;
        let (model, is_streamed) = (self.model.as_str(), *streaming == Streaming::Yes);
        let (path, list, mut fields) = match wire {
            Wire::OpenAiChat | Wire::Chat => {
                ("chat/completions".to_string(), "messages", chat::fields(model, request, names, &self.provider))
            }
            Wire::OpenAiResponses => {
                ("responses".into(), "input", openai_responses::fields(model, request, names, is_streamed))
            }
            Wire::Anthropic => ("messages".into(), "messages", anthropic::fields(model, request, names, is_streamed)),
            Wire::Gemini => (gemini::path(model, is_streamed), "contents", gemini::fields(model, request, names)),
            Wire::Ollama => ("api/chat".into(), "messages", ollama::fields(model, request, names, &self.provider)),
        };
        if !request.settings.extra_body.is_null() {
            extra_body::merge(&mut fields, &request.settings.extra_body);
        }
        // The extra body of the caller may have replaced the messages.
        let body = if fields.get(list).is_some() {
            to_text(&fields)
        } else {
            let mut body = BodyText::new(&fields, list, request.messages.iter().map(|message| message.size()).sum());
            match wire {
                Wire::OpenAiChat | Wire::Chat => chat::add_messages(&mut body, request, names, &self.provider),
                Wire::OpenAiResponses => openai_responses::add_items(&mut body, request, names),
                Wire::Anthropic => anthropic::add_messages(&mut body, request, names),
                Wire::Gemini => gemini::add_contents(&mut body, request, names),
                Wire::Ollama => ollama::add_messages(&mut body, request, names, &self.provider),
            }
            body.finish()
        };
        let key = key.as_ref().map(|key| match (key_header, wire) {
            (Some(header), _) => (header.as_str(), key.clone()),
            (_, Wire::Anthropic) => ("x-api-key", key.clone()),
            (_, Wire::Gemini) => ("x-goog-api-key", key.clone()),
            _ => ("authorization", format!("Bearer {key}")),
        });
        let version = (*wire == Wire::Anthropic).then(|| ("anthropic-version", "2023-06-01".to_string()));
        let accepted = match wire {
            _ if !is_streamed => "application/json",
            Wire::Ollama => "application/x-ndjson",
            _ => "text/event-stream",
        };
        let common = [("content-type", "application/json".to_string()), ("accept", accepted.to_string())];
        let headers = key.into_iter().chain(version).chain(common).map(|(name, value)| (name.to_string(), value));
        let headers = headers.chain(self.provider.headers.iter().cloned()).collect();
        let mark = if path.contains('?') { '&' } else { '?' };
        let query = query.as_ref().map_or_else(String::new, |query| format!("{mark}{query}"));
        Ok(HttpRequest { url: format!("{base_url}/{path}{query}"), headers, body: body.into_bytes() })
    }

    fn decoder(&self, request: &Request) -> Box<dyn Decode> {
        match self.provider.wire {
            Wire::OpenAiChat | Wire::Chat => Box::new(chat::Decoder::new(&self.provider.name)),
            Wire::OpenAiResponses => Box::new(openai_responses::Decoder::default()),
            Wire::Anthropic => Box::new(anthropic::Decoder::new(request)),
            Wire::Gemini => Box::new(gemini::Decoder::default()),
            Wire::Ollama => Box::new(ollama::Decoder::new(&self.provider.name)),
        }
    }

    /// Adds the provider's name to an error and removes the key from its texts.
    fn redact(&self, error: Error) -> Error {
        let key = self.provider.key.as_deref().unwrap_or_default();
        error.redacted(key, MAX_MESSAGE_BYTES).with_path(self.provider.name.clone())
    }

    async fn open(&self, request: Request) -> Result<ReplyStream<'_>> {
        let names = WireNames::new(request.tools.iter().map(|tool| tool.name.as_str()));
        let http_request = self.http_request(&request, &names)?;
        log::debug!("{}: POST of {} bytes", self.provider.name, http_request.body.len());
        let reply = self.transport.post(http_request).await?;
        log::debug!("{}: status {}", self.provider.name, reply.status);
        if !(200..300).contains(&reply.status) {
            return match failure::of_status(reply).await {
                Refusal::Error(error) if self.provider.wire == Wire::Ollama => {
                    Err(ollama::with_remedy(error, &self.model))
                }
                Refusal::Error(error) => Err(error),
                Refusal::UnreadableCall(fault) => {
                    let deltas = [fault, Delta::End(EndReason::Complete)];
                    Ok(Box::pin(stream::iter(deltas.map(Ok))))
                }
            };
        }
        let form = match reply.header("content-type").unwrap_or_default() {
            kind if kind.starts_with("application/json") => BodyFormat::Whole(Vec::new()),
            _ if self.provider.wire == Wire::Ollama => BodyFormat::Lines(lines::Lines::default()),
            kind if kind.starts_with("text/event-stream") => BodyFormat::Events(sse::SseParser::default()),
            _ => BodyFormat::Unknown,
        };
        let deltas = Deltas::new(&request, names, &self.provider);
        let reading = BodyStream::new(reply.body, form, self.decoder(&request), deltas);
        Ok(Box::pin(reading.deltas().map(|delta| delta.map_err(|error| self.redact(error)))))
    }
}

impl<T: Transport> Model for HostedModel<T> {
    fn name(&self) -> &str {
        &self.model
    }

    fn provider(&self) -> Option<&str> {
        // The conventions name the API, and Gemini has two.
        Some(match self.provider.name.as_str() {
            "gemini" => "gcp.gemini",
            name => name,
        })
    }

    fn image_support(&self) -> ImageSupport {
        ImageSupport::Native
    }

    fn reply(&self, request: Request) -> BoxFuture<'_, Result<ReplyStream<'_>>> {
        Box::pin(async move { self.open(request).await.map_err(|error| self.redact(error)) })
    }
}

impl<T> fmt::Debug for HostedModel<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostedModel")
            .field("provider", &self.provider)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}
