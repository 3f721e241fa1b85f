//! The proxy: both APIs over HTTP/1.1, for any models, on a listener from the caller.
//!
//! ```text
//! listener ──> connections ──> auth: Host, Origin, key ──> routes ──> body: within its limits
//!                                                                      │
//! client <── events, or one object <── reply: the backend's deltas and timeouts
//! ```
//!
//! | path | is |
//! | --- | --- |
//! | `POST /v1/responses` | the Responses API, streaming and not |
//! | `POST /v1/chat/completions` | Chat Completions, streaming and not |
//! | `GET /v1/models`, `GET /v1/models/NAME` | the names of the models, with the context length if it was declared |
//! | `/v1/responses/ID`, `/v1/conversations` | stored objects, if the proxy has a [`store`](ProxyOptions::store) |
//! | `GET /health` | that it is alive, and how many replies are in progress; it needs no key |
//!
//! A failure before the first byte of a reply is a status and a JSON error; a later one is `response.failed`, or an
//! `error` object in a chat stream. The proxy never retries, because clients do.
//!
//! If a client disconnects, its backend's stream ends immediately; if it stops reading, after
//! [`client_timeout`](ProxyOptions::client_timeout). A fast backend is slowed down to its client's speed.

mod refusal;
mod body;
mod auth;
mod write_timeout;
mod reply;
mod store_routes;
mod routes;
mod connections;

pub use auth::{check_key, check_origin};
pub use connections::{ConnectionLimits, serve_router};
pub use refusal::Refusal;

use std::fmt;
use std::future::Future;
use std::io;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent_loop::Model;
use agent_loop::text_calls::TextCalls;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::{Store, StoreLimits, StrictTools};

/// Receives warnings: repairs of a client's history, and fields of its request that are not passed on.
pub type OnWarning = Arc<dyn Fn(&str) + Send + Sync>;

/// Limits, timeouts and access rules of a proxy.
#[derive(Clone)]
#[non_exhaustive]
pub struct ProxyOptions {
    /// The key that clients must send as `Authorization: Bearer …`. Default: none, so that every program on this
    /// machine has access.
    pub key: Option<String>,
    /// The names (without port) by which the proxy may be addressed, and from which pages may come. A request with
    /// another `Host`, or another `Origin` if it has one, is rejected, so that no web page can reach the proxy through
    /// its own domain name. Default: `localhost`, `127.0.0.1`, `::1`.
    pub hosts: Vec<String>,
    /// How to handle a request for a model that is not served. Default: it is rejected.
    pub unknown_model: UnknownModel,
    /// How to handle a call of a strict tool whose arguments do not fit. Default: it is passed on to the client.
    pub strict_tools: StrictTools,
    /// Whether responses are stored in memory while the proxy runs, so that `previous_response_id`, `conversation` and
    /// `item_reference` work, and how many. Default: nothing is stored, and these are rejected.
    pub store: Option<StoreLimits>,
    /// The most bytes of a request body. Default: 32 MiB.
    pub max_body: usize,
    /// The most replies at once; others are rejected with status 503 and `retry-after`. Default: 256.
    pub max_replies: usize,
    /// The most connections at once; others wait to be accepted. Default: 1,024.
    pub max_connections: usize,
    /// How long a backend may be silent before the reply fails. Default: five minutes.
    pub backend_timeout: Duration,
    /// How long a backend may take to accept a request before a streaming client gets its headers anyway; later
    /// failures are reported in the stream, not as a status. Default: ten seconds.
    pub headers_within: Duration,
    /// How often a comment is sent while the backend is silent, so that no intermediary closes the connection as dead.
    /// Default: 15 seconds.
    pub keep_alive: Duration,
    /// How long a client may take to send its headers, to send its body, and to read some of a reply. Default: one
    /// minute.
    pub client_timeout: Duration,
    /// How long replies may continue after shutdown was requested; then they end with an error. Default: ten seconds.
    pub grace: Duration,
    /// Receives warnings. Default: they are discarded.
    pub on_warning: Option<OnWarning>,
}

setters!(ProxyOptions {
    key: Option<String>,
    hosts: Vec<String>,
    unknown_model: UnknownModel,
    strict_tools: StrictTools,
    store: Option<StoreLimits>,
    max_body: usize,
    max_replies: usize,
    max_connections: usize,
    backend_timeout: Duration,
    headers_within: Duration,
    keep_alive: Duration,
    client_timeout: Duration,
    grace: Duration,
    on_warning: Option<OnWarning>,
});

/// How to handle a request for a model that is not served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownModel {
    /// Status 404, `model_not_found`.
    Refused,
    /// The first model that was added answers, for clients whose model names cannot be changed.
    First,
}

impl Default for ProxyOptions {
    fn default() -> Self {
        Self {
            key: None,
            hosts: ["localhost", "127.0.0.1", "::1"].map(str::to_owned).into(),
            unknown_model: UnknownModel::Refused,
            strict_tools: StrictTools::default(),
            store: None,
            max_body: 32 << 20,
            max_replies: 256,
            max_connections: 1024,
            backend_timeout: Duration::from_secs(300),
            headers_within: Duration::from_secs(10),
            keep_alive: Duration::from_secs(15),
            client_timeout: Duration::from_secs(60),
            grace: Duration::from_secs(10),
            on_warning: None,
        }
    }
}

impl fmt::Debug for ProxyOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has_key = self.key.is_some();
        f.debug_struct("ProxyOptions").field("hosts", &self.hosts).field("has_key", &has_key).finish_non_exhaustive()
    }
}

/// A server of the Responses and the Chat Completions API, for models by name.
#[derive(Clone)]
pub struct Proxy {
    options: Arc<ProxyOptions>,
    models: Vec<NamedModel>,
    /// The routes that are served beside the APIs.
    more: axum::Router,
}

/// A model and its name.
#[derive(Clone)]
struct NamedModel {
    name: String,
    model: Arc<dyn Model>,
    /// The context length in tokens.
    context_length: Option<u64>,
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.models.iter().map(|served| &served.name).collect();
        f.debug_struct("Proxy").field("models", &names).field("options", &self.options).finish()
    }
}

/// The state that all requests of a server share.
struct Shared {
    proxy: Proxy,
    replies: Arc<Semaphore>,
    store: Option<Arc<Mutex<Store>>>,
    /// Cancelled when all replies must end.
    stop: CancellationToken,
    started: u64,
}

/// The longest timeout: larger values could overflow the clock.
const FOREVER: Duration = Duration::from_secs(60 * 60 * 24 * 365);

impl Proxy {
    /// Creates a proxy without models.
    pub fn new(mut options: ProxyOptions) -> Self {
        for wait in [
            &mut options.backend_timeout,
            &mut options.headers_within,
            &mut options.keep_alive,
            &mut options.client_timeout,
            &mut options.grace,
        ] {
            *wait = (*wait).min(FOREVER);
        }
        options.max_connections = options.max_connections.min(Semaphore::MAX_PERMITS);
        options.max_replies = options.max_replies.min(Semaphore::MAX_PERMITS);
        Self { options: Arc::new(options), models: Vec::new(), more: axum::Router::new() }
    }

    /// Serves a model under this name, and replaces an earlier one of the same name. A model without tool support gets
    /// its calls in text ([`TextCalls`]), and up to two corrections if an answer does not fit its schema.
    #[must_use]
    pub fn model(mut self, name: impl Into<String>, model: impl Model + 'static) -> Self {
        let name = name.into();
        let served =
            NamedModel { name, model: Arc::new(TextCalls::when_needed(model).corrections(2)), context_length: None };
        match self.models.iter_mut().find(|old| old.name == served.name) {
            Some(old) => *old = served,
            None => self.models.push(served),
        }
        self
    }

    /// Declares how many tokens the model of this name accepts, request and reply together. Clients get it from `GET
    /// /v1/models`; nothing is checked against it. A name that is not served is ignored.
    #[must_use]
    pub fn context_length(mut self, name: &str, tokens: u64) -> Self {
        self.models
            .iter_mut()
            .filter(|served| served.name == name)
            .for_each(|served| served.context_length = Some(tokens));
        self
    }

    /// Serves additional paths behind the same checks of `Host`, `Origin` and key. A path of the proxy itself must not
    /// be among them, because axum panics. A handler must limit by itself how much it reads.
    #[must_use]
    pub fn routes(mut self, more: axum::Router) -> Self {
        self.more = self.more.merge(more);
        self
    }

    /// Binds a listener that only this machine can reach: on 127.0.0.1, at a free port if `port` is 0.
    ///
    /// # Errors
    /// Those of binding the address.
    pub async fn listen(port: u16) -> io::Result<TcpListener> {
        TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await
    }

    /// Serves until `shutdown` is ready. Then no more connections are accepted, replies in progress continue for
    /// [`grace`](ProxyOptions::grace) and then end with an error, and connections that are still open one second later
    /// are closed. Dropping the future ends everything immediately.
    ///
    /// Every program that can reach the listener can send requests: beyond loopback, set a key, and add the listener's
    /// name to `hosts`.
    ///
    /// # Errors
    /// None yet: errors of accepting are temporary, or concern one connection.
    pub async fn serve(self, listener: TcpListener, shutdown: impl Future<Output = ()>) -> io::Result<()> {
        let options = Arc::clone(&self.options);
        let shared = Arc::new(Shared {
            replies: Arc::new(Semaphore::new(options.max_replies)),
            store: options.store.map(|limits| Arc::new(Mutex::new(Store::new(limits)))),
            stop: CancellationToken::new(),
            started: reply::now(),
            proxy: self,
        });
        let limits = ConnectionLimits {
            connections: options.max_connections,
            client_timeout: options.client_timeout,
            grace: options.grace,
        };
        let router = routes::router(Arc::clone(&shared));
        serve_router(router, listener, limits, shutdown, || shared.stop.cancel()).await;
        Ok(())
    }

    fn find(&self, name: &str) -> Option<&Arc<dyn Model>> {
        let named = self.models.iter().find(|served| served.name == name);
        let first = || self.models.first().filter(|_| self.options.unknown_model == UnknownModel::First);
        named.or_else(first).map(|served| &served.model)
    }
}
