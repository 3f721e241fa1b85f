//! Serves one reply: the backend's deltas with all timeouts, as a stream of events or as one object.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use agent_loop::{Delta, Error, ErrorKind, Model, ReplyStream, Request, error::Result};
use axum::body::{Body, Bytes};
use axum::http::{HeaderName, HeaderValue, Response, header};
use futures_util::{FutureExt, StreamExt, TryFutureExt, stream};
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::refusal::{Refusal, json_response};
use super::{OnWarning, ProxyOptions};
use crate::chat::{self, ChatEvents};
use crate::{Delivery, PendingEntry, ResponseEvents, Store, to_sse};

/// How many batches of events wait for a client before its backend has to wait. The number is small so that a slow
/// client needs little memory.
const QUEUED_BATCHES: usize = 16;
/// A comment, because clients ignore lines that begin with a colon.
const COMMENT: &str = ": waiting for the model\n\n";

pub(super) struct Job {
    pub(super) model: Arc<dyn Model>,
    pub(super) request: Request,
    pub(super) api: Api,
    pub(super) writer: Option<StoreWriter>,
    pub(super) options: Arc<ProxyOptions>,
    /// Cancelled when the server shuts down.
    pub(super) stop: CancellationToken,
    /// Released when the backend's stream is dropped.
    pub(super) permit: OwnedSemaphorePermit,
}

/// Stores a complete response, with the conversation before it.
pub(super) struct StoreWriter {
    pub(super) store: Arc<Mutex<Store>>,
    pub(super) entry: PendingEntry,
}

impl StoreWriter {
    fn complete(self, response: &Value) {
        self.store.lock().unwrap_or_else(PoisonError::into_inner).keep(self.entry, response);
    }
}

/// The API that the client uses.
pub(super) enum Api {
    Responses(Box<ResponseEvents>),
    Chat(Box<ChatEvents>),
}

impl Api {
    /// Returns the bytes to send for these events.
    fn write(&mut self, say: impl FnOnce(&mut ResponseEvents) -> Vec<Value>) -> Bytes {
        let lines: String = match self {
            Self::Responses(events) => say(events).iter().map(to_sse).collect(),
            Self::Chat(events) => events.convert(say).iter().map(chat::to_sse).collect(),
        };
        lines.into()
    }

    /// Returns the bytes to send for a delta, and logs its faults.
    fn push(&mut self, delta: Delta, on_warning: Option<&OnWarning>) -> Bytes {
        self.write(|events| {
            let sent = events.push(delta);
            let warnings = events.take_warnings();
            on_warning.iter().for_each(|hear| warnings.iter().for_each(|warning| hear(warning)));
            sent
        })
    }

    /// Returns the whole object; `None` before the end.
    fn whole(&self) -> Option<&Value> {
        match self {
            Self::Responses(events) => events.response(),
            Self::Chat(events) => events.completion(),
        }
    }
}

impl Job {
    pub(super) async fn answer(self, delivery: Delivery) -> Result<Response<Body>, Refusal> {
        if delivery == Delivery::Whole {
            return self.whole().await.map(|object| json_response(200, &object));
        }
        let (accept, accepted) = oneshot::channel();
        let (out, waiting) = mpsc::channel(QUEUED_BATCHES);
        // The stream needs its own task, because it borrows the model. The task ends when the client drops the body.
        let task = AbortOnDropHandle::new(tokio::spawn(self.stream(accept, out)));
        accepted.await.unwrap_or_else(|_| Err(Refusal::new(500, "server_error", "The reply was abandoned.")))?;
        let events = stream::unfold((waiting, task), |(mut waiting, task)| async move {
            let bytes: Bytes = waiting.recv().await?;
            Some((Ok::<_, std::convert::Infallible>(bytes), (waiting, task)))
        });
        let mut response = Response::new(Body::from_stream(events));
        let headers = [
            (header::CONTENT_TYPE, "text/event-stream; charset=utf-8"),
            (header::CACHE_CONTROL, "no-cache"),
            // Some proxies buffer responses without this.
            (HeaderName::from_static("x-accel-buffering"), "no"),
        ];
        response.headers_mut().extend(headers.map(|(name, value)| (name, HeaderValue::from_static(value))));
        Ok(response)
    }

    async fn whole(mut self) -> Result<Value, Refusal> {
        let mut backend = Backend::new(&self.options, &self.stop);
        let mut deltas = backend.start(&*self.model, self.request, self.options.backend_timeout).await?;
        while self.api.whole().is_none() {
            if let Some(delta) = backend.next(&mut deltas).await? {
                self.api.push(delta, self.options.on_warning.as_ref());
            }
        }
        let object = self.api.whole().cloned().unwrap_or_default();
        if let Some(writer) = self.writer {
            writer.complete(&object);
        }
        // A reply may fail after its end, when it is checked.
        match object["error"]["message"].as_str() {
            Some(message) => Err(Refusal::new(502, "backend_error", message)),
            None => Ok(object),
        }
    }

    /// Writes the events of the reply. An error of `out` means that the client disconnected.
    async fn stream(mut self, accept: oneshot::Sender<Result<(), Refusal>>, out: mpsc::Sender<Bytes>) {
        let mut backend = Backend::new(&self.options, &self.stop);
        let mut deltas = match backend.start(&*self.model, self.request, self.options.headers_within).await {
            Ok(deltas) => deltas,
            Err(error) => {
                let _ = accept.send(Err(error.into()));
                return;
            }
        };
        let first = self.api.write(ResponseEvents::start);
        if accept.send(Ok(())).is_err() || out.send(first).await.is_err() {
            return;
        }
        let last = loop {
            let bytes = match backend.next(&mut deltas).await {
                Ok(Some(delta)) => self.api.push(delta, self.options.on_warning.as_ref()),
                Ok(None) => Bytes::from_static(COMMENT.as_bytes()),
                Err(error) => self.api.write(|events| events.end(Some(&error))),
            };
            if self.api.whole().is_some() {
                break bytes;
            }
            if bytes.is_empty() {
                continue;
            }
            let sending = Instant::now();
            if out.send(bytes).await.is_err() {
                return;
            }
            // The time that a slow client takes does not count as silence of the backend.
            backend.received_at += sending.elapsed();
            backend.sent_at = Instant::now();
        };
        // A client that has read the end can immediately send its next request, and refer to this response.
        if let Some((writer, object)) = self.writer.zip(self.api.whole()) {
            writer.complete(object);
        }
        drop(deltas);
        drop(self.permit);
        let _ = out.send(last).await;
    }
}

/// The backend's side of a reply, with its timeouts.
struct Backend<'a> {
    options: &'a ProxyOptions,
    stop: &'a CancellationToken,
    received_at: Instant,
    sent_at: Instant,
}

impl<'a> Backend<'a> {
    fn new(options: &'a ProxyOptions, stop: &'a CancellationToken) -> Self {
        Self { options, stop, received_at: Instant::now(), sent_at: Instant::now() }
    }

    /// Sends the request to the model. If the model has not answered after `at_most`, the wait continues inside the
    /// stream.
    async fn start<'m>(
        &mut self,
        model: &'m dyn Model,
        request: Request,
        at_most: Duration,
    ) -> Result<ReplyStream<'m>> {
        let reply = AssertUnwindSafe(async move { model.reply(request).await });
        let mut starting = reply.catch_unwind().map(|caught| caught.unwrap_or_else(|_| Err(panicked()))).boxed();
        let most = at_most.min(self.options.backend_timeout);
        let started = tokio::select! {
            biased;
            () = self.stop.cancelled() => return Err(stopping()),
            started = timeout(most, &mut starting) => started,
        };
        match started {
            Ok(started) => {
                self.received_at = Instant::now();
                started.map_err(for_client)
            }
            Err(_) if most < self.options.backend_timeout => Ok(Box::pin(starting.try_flatten_stream())),
            Err(_) => Err(silent(self.options)),
        }
    }

    /// Returns the next delta; `None` if the backend is silent and a comment is due.
    async fn next(&mut self, deltas: &mut ReplyStream<'_>) -> Result<Option<Delta>> {
        let silent_at = self.received_at + self.options.backend_timeout;
        let until = silent_at.min(self.sent_at + self.options.keep_alive);
        let next = tokio::select! {
            biased;
            () = self.stop.cancelled() => Err(stopping()),
            caught = AssertUnwindSafe(deltas.next()).catch_unwind() => {
                self.received_at = Instant::now();
                let cut = || Err(Error::new(ErrorKind::CutStream, "the backend's stream ended early"));
                caught.unwrap_or_else(|_| Some(Err(panicked()))).unwrap_or_else(cut).map(Some).map_err(for_client)
            }
            () = sleep_until(until) => {
                self.sent_at = Instant::now();
                if self.sent_at < silent_at { Ok(None) } else { Err(silent(self.options)) }
            }
        };
        // The APIs have no field for it.
        if let (Ok(Some(Delta::Warning { text })), Some(hear)) = (&next, &self.options.on_warning) {
            hear(text);
        }
        next
    }
}

/// Returns the error for the client: a failure of the proxy's own credentials is replaced by a general message.
fn for_client(error: Error) -> Error {
    if error.kind() != ErrorKind::Authentication {
        return error;
    }
    let message = "the backend rejects the proxy's own credentials, and a key of the client cannot change that";
    Error::new(ErrorKind::Authentication, message)
}

fn silent(options: &ProxyOptions) -> Error {
    Error::new(ErrorKind::TimedOut, format!("the backend sent nothing for {:?}", options.backend_timeout))
}

fn stopping() -> Error {
    Error::new(ErrorKind::Unavailable, "the server is being stopped")
}

fn panicked() -> Error {
    Error::new(ErrorKind::BadResponse, "the backend failed because of a bug")
}

/// Returns the seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Returns the random part of ids.
pub(super) fn stem() -> String {
    format!("{:016x}", fastrand::u64(..))
}
