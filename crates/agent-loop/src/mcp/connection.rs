//! A connection with one server: opened, checked, closed. The newest revision of the protocol is tried first, then the
//! handshake of the older ones.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::{ClientRequest, ListToolsRequest, ProtocolVersion};
use rmcp::service::{ClientInitializeError, ClientLifecycleMode, ClientServiceExt, Peer, RunningService, ServiceError};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{RoleClient, model};
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::error::{Error, ErrorKind, Result};
use crate::models::Http;

use super::clean::clean;
use super::handler::Handler;
use super::process::{self, StderrTail};
use super::server::{Endpoint, McpServer};

/// How long a server that did not answer a call may take to show that it is alive.
const SIGN_OF_LIFE: Duration = Duration::from_secs(5);
/// How long a server may take to exit: its input is closed, it is asked to exit, and then it is killed.
const GOODBYE: Duration = Duration::from_secs(10);
/// The most bytes of an error message.
const MOST_OF_AN_ERROR: usize = 2000;

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) peer: Peer<RoleClient>,
    pub(super) handler: Handler,
    running: Mutex<RunningService<RoleClient, Handler>>,
    stderr_tail: Option<StderrTail>,
    /// Whether a call failed in a way that may mean that the server has exited or hangs.
    in_doubt: AtomicBool,
}

impl Connection {
    /// # Errors
    /// `Unavailable`, `TimedOut`, `Authentication`, `BadRequest` or `BadResponse`, with the server's name as the path.
    pub(super) async fn open(server: &McpServer, handler: Handler, http: Option<&Http>) -> Result<Self> {
        let opening = async {
            let versions = vec![ProtocolVersion::V_2026_07_28];
            let newest = ClientLifecycleMode::Auto { preferred_versions: versions, legacy_version: None };
            match Self::open_as(server, handler.clone(), http, newest).await {
                // Some older servers exit when they do not know the first message.
                Err(ConnectError::Broken(_)) => {
                    let oldest = Self::open_as(server, handler, http, ClientLifecycleMode::Initialize).await;
                    oldest.map_err(ConnectError::into_error)
                }
                opened => opened.map_err(ConnectError::into_error),
            }
        };
        let opened = timeout(server.start_limit, opening).await;
        let opened = opened.unwrap_or_else(|_| {
            let message = format!("it did not answer within {:?}", server.start_limit);
            Err(Error::new(ErrorKind::TimedOut, message)
                .with_remedy("give it more time to start, or check why it hangs"))
        });
        opened.map_err(|error| without_secrets(error, server).with_path(&server.name))
    }

    async fn open_as(
        server: &McpServer,
        handler: Handler,
        http: Option<&Http>,
        mode: ClientLifecycleMode,
    ) -> Result<Self, ConnectError> {
        let mut stderr_tail = None;
        let started = match &server.endpoint {
            Endpoint::Stdio { command, args, env, dir } => {
                let (process, stderr) =
                    process::start(command, args, env, dir.as_ref()).map_err(ConnectError::Final)?;
                stderr_tail = stderr;
                handler.clone().serve_with_lifecycle(process, mode).await
            }
            Endpoint::Http { url, headers } => {
                let http = http.expect("there is a client where a server has an address");
                let transport = transport(url, headers, http).map_err(ConnectError::Final)?;
                handler.clone().serve_with_lifecycle(transport, mode).await
            }
        };
        match started {
            Ok(running) => Ok(Self {
                peer: running.peer().clone(),
                handler,
                running: Mutex::new(running),
                stderr_tail,
                in_doubt: AtomicBool::new(false),
            }),
            Err(error) => Err(ConnectError::of(&error, stderr_tail.as_ref()).await),
        }
    }

    /// Returns all tools that the server lists.
    ///
    /// # Errors
    /// The same as those of [`open`](Self::open).
    pub(super) async fn tools(&self, server: &McpServer) -> Result<Vec<model::Tool>> {
        let listed = match timeout(server.start_limit, self.peer.list_all_tools()).await {
            Ok(listed) => listed.map_err(|error| self.failure(&error)),
            Err(_) => Err(Error::new(ErrorKind::TimedOut, format!("no list of tools within {:?}", server.start_limit))),
        };
        listed.map_err(|error| without_secrets(error, server).with_path(&server.name))
    }

    fn failure(&self, error: &ServiceError) -> Error {
        let kind = match error {
            _ if error.is_authorization_required() => ErrorKind::Authentication,
            ServiceError::TransportSend(_) | ServiceError::TransportClosed => ErrorKind::Unavailable,
            _ => ErrorKind::BadResponse,
        };
        Error::new(kind, clean(&error.to_string()))
    }

    /// Returns the server's last output before it exited, to be appended to a sentence.
    pub(super) async fn stderr_tail(&self) -> String {
        match &self.stderr_tail {
            Some(words) => stderr_tail(words).await,
            None => String::new(),
        }
    }

    pub(super) fn doubt(&self) {
        self.in_doubt.store(true, Ordering::Relaxed);
    }

    /// Returns whether the connection can be used. After an unanswered call the server has to show that it is alive.
    pub(super) async fn is_alive(&self) -> bool {
        if self.peer.is_transport_closed() {
            return false;
        }
        if !self.in_doubt.load(Ordering::Relaxed) {
            return true;
        }
        // `list_tools` is not used, because it may answer from its cache. The newest revision has no ping.
        let list = self.peer.send_request(ClientRequest::ListToolsRequest(ListToolsRequest::default()));
        let is_alive = matches!(timeout(SIGN_OF_LIFE, list).await, Ok(Ok(_)));
        self.in_doubt.store(!is_alive, Ordering::Relaxed);
        is_alive
    }

    /// Stops the server and waits until it has exited.
    pub(super) async fn close(&self) {
        let mut running = self.running.lock().await;
        if !matches!(running.close_with_timeout(GOODBYE).await, Ok(Some(_))) {
            log::warn!("an MCP server did not end in time");
        }
    }
}

/// The reason why there is no connection.
enum ConnectError {
    /// Another attempt would fail in the same way.
    Final(Error),
    /// The connection broke off.
    Broken(Error),
}

impl ConnectError {
    async fn of(error: &ClientInitializeError, words: Option<&StderrTail>) -> Self {
        let said = match words {
            Some(words) => stderr_tail(words).await,
            None => String::new(),
        };
        let broken = |what: String| Self::Broken(Error::new(ErrorKind::Unavailable, what + &said));
        match error {
            _ if error.is_authorization_required() => {
                let error = Error::new(ErrorKind::Authentication, "it requires authentication");
                Self::Final(error.with_remedy("give it a key"))
            }
            ClientInitializeError::ConnectionClosed(_) => broken("it ended the connection before it answered".into()),
            // The server supports the newest handshake but not the newest revision.
            ClientInitializeError::NoCompatibleProtocolVersion { .. } => broken(clean(&error.to_string())),
            ClientInitializeError::TransportError { error, .. } => {
                broken(clean(&format!("the connection with it failed: {error}")))
            }
            _ => Self::Final(Error::new(ErrorKind::BadResponse, clean(&format!("{error}{said}")))),
        }
    }

    fn into_error(self) -> Error {
        match self {
            Self::Final(error) | Self::Broken(error) => error,
        }
    }
}

async fn stderr_tail(words: &StderrTail) -> String {
    match words.text().await {
        text if text.is_empty() => String::new(),
        text => format!("; its last output was: {text}"),
    }
}

fn transport(
    url: &str,
    headers: &[(String, String)],
    http: &Http,
) -> Result<StreamableHttpClientTransport<reqwest::Client>> {
    let invalid = |what: String| Error::new(ErrorKind::BadRequest, what);
    let address = reqwest::Url::parse(url).map_err(|_| invalid("its address is not a URL".into()))?;
    let header = |(name, value): &(String, String)| {
        let parsed = HeaderName::try_from(name).ok().zip(HeaderValue::try_from(value).ok());
        let (name, mut value) = parsed.ok_or_else(|| {
            invalid(format!("the header {name:?} contains a character that cannot be sent"))
                .with_remedy("check for a line break after the key")
        })?;
        value.set_sensitive(true);
        Ok((name, value))
    };
    let headers = headers.iter().map(header).collect::<Result<_>>()?;
    let config = StreamableHttpClientTransportConfig::with_uri(url).custom_headers(headers);
    Ok(StreamableHttpClientTransport::with_client(http.client_for(&address).clone(), config))
}

/// Removes secrets from an error, because it names the address or command, and some servers repeat what they were sent.
fn without_secrets(error: Error, server: &McpServer) -> Error {
    server.secrets().into_iter().fold(error, |error, secret| error.redacted(secret, MOST_OF_AN_ERROR))
}
