//! Models behind HTTP: each wire is a pure pair of functions, the connection is a trait of two structs.
//!
//! ```text
//! Request ──> wire: body ──> Transport ──> status ── not 2xx ──> failure: a typed error
//!                                            └─ bytes ──> lines: events ──> wire: deltas ──> restored ──> Delta
//! ```
//!
//! By default no HTTP stack is pulled in: a [`Transport`] is some lines over whichever one the program has, or `Http`,
//! behind the feature `hosted`.

mod anthropic;
mod chat;
mod failure;
mod gemini;
#[cfg(feature = "hosted")]
mod http;
mod http_date;
mod lines;
mod openai_responses;
mod restored;

use std::fmt;

use futures_util::{Stream, StreamExt, stream};
use serde_json::Value;

use crate::error::{Error, ErrorKind, Result};
use crate::model::{Delta, Model, ReplyStream, Request};
use crate::schema::WireNames;
use crate::tool::Boxed;

#[cfg(feature = "hosted")]
pub use http::{Http, HttpOptions, HttpProxy};

use lines::Events;
use restored::Restored;

/// The most bytes of a provider's message that are repeated.
const LONGEST_MESSAGE: usize = 600;

/// How to reach a provider.
#[derive(Clone, PartialEq, Eq)]
pub struct Provider {
    /// What it is called in errors and events.
    pub name: String,
    /// The format it speaks.
    pub wire: Wire,
    /// Where its API begins, without the wire's own path: `https://api.openai.com/v1`.
    pub base_url: String,
    /// The key, if it wants one. It is in no error and no debug output.
    pub key: Option<String>,
    /// Sent with every request, after those of the wire.
    pub headers: Vec<(String, String)>,
    /// Whether replies come in pieces.
    pub streaming: Streaming,
}

/// Whether replies come in pieces.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Streaming {
    /// As they are written.
    #[default]
    Yes,
    /// Whole, for servers that cannot stream, or not with tools. The agent's limit of silence is then one on the reply.
    No,
}

/// A format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// Chat Completions as OpenAI has it, with strict schemas.
    OpenAiChat,
    /// Chat Completions as everybody else has it: OpenRouter, Ollama, LM Studio, llama.cpp, vLLM, Groq, Mistral …
    Chat,
    /// OpenAI's Responses, nothing stored, with strict schemas.
    OpenAiResponses,
    /// Anthropic's Messages.
    Anthropic,
    /// Gemini's generateContent.
    Gemini,
}

impl Wire {
    /// Whether schemas that allow it are sent in strict mode.
    fn is_strict(self) -> bool {
        matches!(self, Self::OpenAiChat | Self::OpenAiResponses)
    }
}

impl Provider {
    /// A provider under an address.
    pub fn new(name: impl Into<String>, wire: Wire, base_url: impl Into<String>, key: Option<String>) -> Self {
        let base_url = base_url.into().trim_end_matches('/').to_string();
        Self { name: name.into(), wire, base_url, key, headers: Vec::new(), streaming: Streaming::Yes }
    }

    /// OpenAI, by its Responses.
    pub fn openai(key: impl Into<String>) -> Self {
        Self::new("openai", Wire::OpenAiResponses, "https://api.openai.com/v1", Some(key.into()))
    }

    /// Anthropic.
    pub fn anthropic(key: impl Into<String>) -> Self {
        Self::new("anthropic", Wire::Anthropic, "https://api.anthropic.com/v1", Some(key.into()))
    }

    /// Gemini.
    pub fn gemini(key: impl Into<String>) -> Self {
        let base_url = "https://generativelanguage.googleapis.com/v1beta";
        Self::new("gemini", Wire::Gemini, base_url, Some(key.into()))
    }

    /// OpenRouter.
    pub fn openrouter(key: impl Into<String>) -> Self {
        Self::new("openrouter", Wire::Chat, "https://openrouter.ai/api/v1", Some(key.into()))
    }

    /// Ollama on this machine.
    pub fn ollama() -> Self {
        Self::new("ollama", Wire::Chat, "http://127.0.0.1:11434/v1", None)
    }

    /// LM Studio on this machine.
    pub fn lm_studio() -> Self {
        Self::new("lm-studio", Wire::Chat, "http://127.0.0.1:1234/v1", None)
    }

    /// The server of llama.cpp on this machine.
    pub fn llama_cpp() -> Self {
        Self::new("llama.cpp", Wire::Chat, "http://127.0.0.1:8080/v1", None)
    }
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.key.as_ref().map(|_| "…");
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Provider")
            .field("name", &self.name)
            .field("wire", &self.wire)
            .field("base_url", &self.base_url)
            .field("key", &key)
            .field("headers", &headers)
            .field("streaming", &self.streaming)
            .finish()
    }
}

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
    fn post(&self, request: HttpRequest) -> Boxed<'_, Result<HttpReply>>;
}

/// Reads the events of one reply. Pure.
trait Decode: Send {
    /// One event: its name, where the wire has names, and its data.
    fn event(&mut self, name: &str, data: &str) -> Result<Vec<Delta>>;

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

    /// The error with the provider's name, and without the key, whoever wrote it into its message.
    fn told(&self, error: Error) -> Error {
        let error = error.without(self.provider.key.as_deref().unwrap_or_default());
        error.shortened(LONGEST_MESSAGE).at(self.provider.name.clone())
    }

    async fn open(&self, request: Request) -> Result<ReplyStream<'_>> {
        let names = WireNames::new(request.tools.iter().map(|tool| tool.name.as_str()));
        let reply = self.transport.post(self.http_request(&request, &names)).await?;
        if !(200..300).contains(&reply.status) {
            return Err(failure::of_status(reply).await);
        }
        let is_events = match reply.header("content-type").unwrap_or_default() {
            kind if kind.starts_with("application/json") => false,
            kind if kind.starts_with("text/event-stream") => true,
            _ => self.provider.streaming == Streaming::Yes,
        };
        let restored = Restored::new(&request, names, self.provider.wire);
        let (events, decoder) = (Events::default(), self.decoder());
        let reading = Reading { body: Some(reply.body), events, decoder, restored };
        if is_events {
            let deltas = stream::unfold(reading, |mut reading| async move { Some((reading.next().await?, reading)) });
            let deltas = deltas.flat_map(|batch: Result<Vec<Delta>>| {
                let items: Vec<Result<Delta>> = match batch {
                    Ok(deltas) => deltas.into_iter().map(Ok).collect(),
                    Err(error) => vec![Err(error)],
                };
                stream::iter(items)
            });
            return Ok(Box::pin(deltas.map(|delta| delta.map_err(|error| self.told(error)))));
        }
        let deltas = reading.whole().await?;
        Ok(Box::pin(stream::iter(deltas.into_iter().map(Ok))))
    }
}

impl<T: Transport> Model for Hosted<T> {
    fn name(&self) -> &str {
        &self.model
    }

    fn reply(&self, request: Request) -> Boxed<'_, Result<ReplyStream<'_>>> {
        Box::pin(async move { self.open(request).await.map_err(|error| self.told(error)) })
    }
}

impl<T> fmt::Debug for Hosted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hosted").field("provider", &self.provider).field("model", &self.model).finish_non_exhaustive()
    }
}

/// A body on its way to deltas.
struct Reading {
    /// `None` behind its end.
    body: Option<ByteStream>,
    events: Events,
    decoder: Box<dyn Decode>,
    restored: Restored,
}

impl Reading {
    /// The next deltas; `None` at the end. Bytes that complete none of them are progress: whoever waits is told that
    /// the model is not silent.
    async fn next(&mut self) -> Option<Result<Vec<Delta>>> {
        let body = self.body.as_mut()?;
        let deltas = match body.next().await {
            Some(Ok(bytes)) => self.take(&bytes),
            Some(Err(error)) => Err(error),
            None => {
                self.body = None;
                // Some servers do not end their last event with the empty line it should have. One that cannot be
                // read was cut.
                let cut = |error| Error::new(ErrorKind::CutStream, "the stream ended inside an event").because(error);
                self.take(b"\n\n")
                    .map_err(|error| if error.kind() == ErrorKind::BadResponse { cut(error) } else { error })
                    .map(|mut deltas| {
                        let end = self.decoder.end();
                        deltas.extend(self.restored.apply(end));
                        deltas
                    })
            }
        };
        let Ok(mut deltas) = deltas else {
            self.body = None;
            return Some(deltas);
        };
        // Behind the end of the reply nothing is waited for, and nothing can break it any more.
        if deltas.iter().any(|delta| matches!(delta, Delta::End(_))) {
            self.body = None;
        } else if deltas.is_empty() && self.body.is_some() {
            deltas.push(Delta::Progress);
        }
        Some(Ok(deltas))
    }

    fn take(&mut self, bytes: &[u8]) -> Result<Vec<Delta>> {
        let mut deltas = Vec::new();
        for (name, data) in self.events.push(bytes)? {
            deltas.extend(self.restored.apply(self.decoder.event(&name, &data)?));
        }
        Ok(deltas)
    }

    async fn whole(mut self) -> Result<Vec<Delta>> {
        let bytes = match self.body.take() {
            Some(body) => lines::collect(body).await?,
            None => Vec::new(),
        };
        let body: Value = serde_json::from_slice(&bytes)
            .map_err(|error| Error::new(ErrorKind::BadResponse, "the body is no JSON").because(error))?;
        let deltas = self.decoder.whole(&body)?;
        Ok(self.restored.apply(deltas))
    }
}
