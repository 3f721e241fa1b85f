//! Streamable HTTP: one server for many clients, at one path, with access control.
//!
//! Anyone who can reach the address could ask for notes. So it is loopback by default, `Host` and `Origin` must be
//! names of this server (which keeps out web pages with a domain of their own), and a key can be required.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use agent_proxy::{ConnectionLimits, Refusal, check_key, check_origin, serve_router};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, FromRequest, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use rmcp::model::ProtocolVersion;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use vault_tools::{Error, ErrorKind, Result};

use super::Server;
use super::messages::{InvalidMessage, read};
use crate::message_lines::Head;

/// The path of the server.
pub(crate) const PATH: &str = "/mcp";

const LIMITS: ConnectionLimits =
    ConnectionLimits { connections: 256, client_timeout: Duration::from_secs(60), grace: Duration::from_secs(5) };

/// The maximum bytes of a request, enough for a note of any sensible size as JSON.
const MAX_BODY: usize = 8 << 20;

/// How long a response is kept so that older clients can resume an interrupted stream.
const RESUMABLE: Duration = Duration::from_secs(10);

/// The access control of the server.
#[derive(Debug)]
pub(crate) struct Access {
    /// The key that clients must send as `Authorization: Bearer …`.
    pub key: Option<String>,
    /// The names of this server.
    pub hosts: Vec<String>,
}

impl Access {
    /// Allows the names that always mean this machine, and `more`.
    pub fn new(key: Option<String>, more: &[String]) -> Self {
        let own = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
        Self { key, hosts: own.into_iter().chain(more.iter().cloned()).collect() }
    }
}

/// Listens at an address.
///
/// # Errors
/// A port that is in use; an address that others can reach, if no key is required.
pub(crate) async fn listen(address: SocketAddr, access: &Access) -> Result<TcpListener> {
    if !address.ip().is_loopback() && access.key.is_none() {
        let message = format!("others can reach {address}, and could read the notes");
        return Err(Error::new(ErrorKind::Refused, message)
            .with_remedy("add --key-file FILE, and --host NAME for the name that clients use"));
    }
    TcpListener::bind(address).await.map_err(|error| {
        let error = Error::io(address, &error);
        error.with_remedy("another program may listen there: choose another port, or 0 for a free one")
    })
}

impl Server {
    /// Serves many clients until `stop` completes.
    pub async fn on_http(mut self, listener: TcpListener, access: Access, stop: impl Future<Output = ()>) {
        self.is_http = true;
        let ended = CancellationToken::new();
        let config = StreamableHttpServerConfig::default()
            .with_allowed_hosts(access.hosts.clone())
            .with_max_request_body_bytes(MAX_BODY)
            .with_cancellation_token(ended.clone());
        let mut sessions = LocalSessionManager::default();
        sessions.session_config.completed_cache_ttl = RESUMABLE;
        let sessions = Arc::new(sessions);
        let checks = Checks { access: Arc::new(access), sessions: Arc::clone(&sessions) };
        let service = StreamableHttpService::new(move || Ok(self.for_client()), sessions, config);
        let router = Router::new()
            .route_service(PATH, service)
            .fallback(async || {
                Refusal::new(404, "not_found", format!("There is nothing at this path, only at {PATH}."))
            })
            .layer(from_fn_with_state(checks, check))
            .layer(DefaultBodyLimit::max(MAX_BODY));
        let closing = ended.clone();
        let stop = async move {
            stop.await;
            closing.cancel();
        };
        serve_router(router, listener, LIMITS, stop, || ()).await;
        ended.cancel();
    }
}

/// The state for the checks of requests.
#[derive(Clone)]
struct Checks {
    access: Arc<Access>,
    sessions: Arc<LocalSessionManager>,
}

/// Whether a request starts a session. Only the older revisions have sessions, and a request without an id starts one.
fn begins_session(request: &Request) -> bool {
    let header = |name: &str| request.headers().get(name).map(HeaderValue::as_bytes);
    let is_newest = header("mcp-protocol-version") == Some(ProtocolVersion::V_2026_07_28.as_str().as_bytes());
    request.method() == Method::POST && header("mcp-session-id").is_none() && !is_newest
}

async fn check(State(checks): State<Checks>, request: Request, next: Next) -> Response {
    let access = &checks.access;
    let checked =
        check_origin(&access.hosts, &request).and_then(|()| check_key(access.key.as_deref(), request.headers()));
    if let Err(refusal) = checked {
        return refusal.into_response();
    }
    if begins_session(&request) && checks.sessions.sessions.read().await.len() >= LIMITS.connections {
        let message =
            format!("{} sessions are open here; they end five minutes after their last request.", LIMITS.connections);
        return Refusal::new(503, "too_many_sessions", message).into_response();
    }
    let ends_session = request.method() == Method::DELETE;
    let mut response = answer(request, next).await;
    // Python clients treat any success other than 200 and 204 as a failure, and warn about it.
    if ends_session && response.status() == StatusCode::ACCEPTED {
        *response.status_mut() = StatusCode::NO_CONTENT;
    }
    response
}

/// Returns the response of the library. If it is a plain text about an invalid body, it becomes an error of JSON-RPC.
async fn answer(request: Request, next: Next) -> Response {
    let (head, body) = request.into_parts();
    let body = match Bytes::from_request(Request::from_parts(head.clone(), body), &()).await {
        Ok(body) => body,
        Err(refused) if refused.status() == StatusCode::PAYLOAD_TOO_LARGE => {
            return not_read(refused.status(), &InvalidMessage::too_long(&Head::default(), MAX_BODY as u64));
        }
        Err(refused) => return refused.into_response(),
    };
    let response = next.run(Request::from_parts(head, Body::from(body.clone()))).await;
    if response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE
        && let Err(unread) = read(&body)
    {
        return not_read(StatusCode::BAD_REQUEST, &unread);
    }
    response
}

fn not_read(status: StatusCode, unread: &InvalidMessage) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], unread.answer().to_string()).into_response()
}
