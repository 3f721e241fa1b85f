//! HTTP transport over reqwest: TLS, proxies, HTTP/1.1 and 2. It follows no redirects, never retries, and sets no
//! timeout on a reply, because the agent does.

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::stream;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, Url, redirect, retry};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ClientConfig, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};
use rustls_platform_verifier::Verifier;

use crate::error::{Error, ErrorKind, Result};
use crate::tool::BoxFuture;

use super::{HttpReply, HttpRequest, Transport};

/// Options of [`Http`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpOptions {
    /// The timeout for opening a connection, including TLS; by default ten seconds.
    pub connect: Duration,
    /// The proxy; by default that of the environment.
    pub proxy: HttpProxy,
    /// Certificates, in DER, that are trusted in addition to those of the system, for example that of your own gateway.
    /// By default none.
    pub roots: Vec<Vec<u8>>,
}

setters!(HttpOptions {
    connect: Duration,
    proxy: HttpProxy,
    roots: Vec<Vec<u8>>,
});

impl Default for HttpOptions {
    fn default() -> Self {
        Self { connect: Duration::from_secs(10), proxy: HttpProxy::Environment, roots: Vec::new() }
    }
}

/// The proxy that connections use.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum HttpProxy {
    /// The proxy in `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, which are read once. Models on this
    /// machine are always reached directly.
    #[default]
    Environment,
    /// No proxy.
    None,
    /// The proxy at this URL, which may contain a name and a password; for every request.
    Through(String),
}

impl fmt::Debug for HttpProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Environment => "Environment",
            Self::None => "None",
            Self::Through(_) => "Through(…)",
        })
    }
}

/// An HTTP client for hosted models. Clones share its connection pool.
///
/// Certificates are verified against the system's trusted ones, so that a company's own are accepted; if the system has
/// none, as in a bare container, against Mozilla's. If two headers have the same name, the later one is sent.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use agent_loop::{HostedModel, Http, Provider};
///
/// let key = std::env::var("OPENAI_API_KEY")?;
/// let model = HostedModel::new(Provider::openai(key), "gpt-5.6", Http::new()?);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Http {
    client: Client,
    /// The client for models on this machine.
    local: Client,
}

impl Http {
    /// Creates a client with the default options. Its first connection with TLS reads the system's certificates, which
    /// takes some milliseconds, so create one client for all models.
    ///
    /// # Errors
    /// `BadRequest` for an invalid proxy in the environment.
    pub fn new() -> Result<Self> {
        Self::with(HttpOptions::default())
    }

    /// Creates a client with other options.
    ///
    /// # Errors
    /// `BadRequest` for an invalid proxy URL or certificate.
    pub fn with(options: HttpOptions) -> Result<Self> {
        let HttpOptions { connect, proxy, roots } = options;
        let tls = tls(roots)?;
        let builder = || {
            Client::builder()
                .tls_backend_preconfigured(tls.clone())
                .redirect(redirect::Policy::none())
                .retry(retry::never())
                .referer(false)
                .connect_timeout(connect)
                .user_agent(concat!("agent-loop/", env!("CARGO_PKG_VERSION")))
        };
        let build = |builder: reqwest::ClientBuilder| {
            builder.build().map_err(|error| refused("the connection cannot be set up").with_source(reason(&error)))
        };
        let direct = build(builder().no_proxy())?;
        Ok(match proxy {
            HttpProxy::Environment => Self { client: build(builder())?, local: direct },
            HttpProxy::None => Self { client: direct.clone(), local: direct },
            HttpProxy::Through(address) => {
                let proxy = reqwest::Proxy::all(address).map_err(|_| refused("the address of the proxy is invalid"))?;
                let client = build(builder().proxy(proxy))?;
                Self { client: client.clone(), local: client }
            }
        })
    }

    /// Sends a `GET` request, for example for a provider's list of models, with the same rules as [`Transport::post`].
    ///
    /// # Errors
    /// `Unavailable` if there is no connection; `CutStream` in the body if it breaks off.
    pub async fn get(&self, url: impl Into<String>, headers: Vec<(String, String)>) -> Result<HttpReply> {
        self.send(Method::GET, HttpRequest { url: url.into(), headers, body: Vec::new() }).await
    }

    /// Returns the client for a URL.
    pub(crate) fn client_for(&self, url: &Url) -> &Client {
        if is_local(url) { &self.local } else { &self.client }
    }

    async fn send(&self, method: Method, request: HttpRequest) -> Result<HttpReply> {
        let url = Url::parse(&request.url).map_err(|_| refused("the provider's address is not a URL"))?;
        let headers = headers(&request.headers)?;
        let sent = self.client_for(&url).request(method, url.clone()).headers(headers).body(request.body).send().await;
        let reply = sent.map_err(|error| unanswered(&error, &url))?;
        let status = reply.status();
        if status.is_redirection() {
            return Err(redirected(&reply, &url));
        }
        let text = |(name, value): (&HeaderName, &HeaderValue)| Some((name.to_string(), value.to_str().ok()?.into()));
        let headers = reply.headers().iter().filter_map(text).collect();
        let body = stream::unfold(Some(reply), |reply| async move {
            let mut reply = reply?;
            match reply.chunk().await {
                Ok(bytes) => Some((Ok(bytes?.to_vec()), Some(reply))),
                Err(error) => {
                    let cut = Error::new(ErrorKind::CutStream, "the connection broke off inside the reply");
                    Some((Err(cut.with_source(reason(&error))), None))
                }
            }
        });
        Ok(HttpReply { status: status.as_u16(), headers, body: Box::pin(body) })
    }
}

impl Transport for Http {
    fn post(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpReply>> {
        Box::pin(self.send(Method::POST, request))
    }
}

/// Configures TLS on ring, whatever crypto provider the process has installed.
fn tls(roots: Vec<Vec<u8>>) -> Result<ClientConfig> {
    let provider = Arc::new(ring::default_provider());
    let verifier: Arc<dyn ServerCertVerifier> = match roots.is_empty() {
        true => Arc::new(SystemVerifier { provider: Arc::clone(&provider), verifier: OnceLock::new() }),
        false => verifier(roots, &provider)?,
    };
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| refused("TLS cannot be set up").with_source(error))?;
    let mut config = config.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// Verifies against the certificates of the system and some more; if the system has none, against Mozilla's.
fn verifier(roots: Vec<Vec<u8>>, provider: &Arc<CryptoProvider>) -> Result<Arc<dyn ServerCertVerifier>> {
    let roots: Vec<CertificateDer<'static>> = roots.into_iter().map(CertificateDer::from).collect();
    let unread = |error: &dyn fmt::Display| refused("a certificate cannot be read").with_source(error.to_string());
    Ok(match Verifier::new(Arc::clone(provider)) {
        Ok(system) if roots.is_empty() => Arc::new(system),
        Ok(_) => {
            let both = Verifier::new_with_extra_roots(roots, Arc::clone(provider));
            Arc::new(both.map_err(|error| unread(&error))?)
        }
        Err(_) => {
            let mut store = rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
            roots.into_iter().try_for_each(|root| store.add(root)).map_err(|error| unread(&error))?;
            let built = WebPkiServerVerifier::builder_with_provider(Arc::new(store), Arc::clone(provider)).build();
            built.map_err(|error| unread(&error))?
        }
    })
}

/// The verifier without certificates of the caller's. Those of the system are read when the first server shows one,
/// because that takes some milliseconds, and a model on this machine needs none.
#[derive(Debug)]
struct SystemVerifier {
    provider: Arc<CryptoProvider>,
    verifier: OnceLock<Result<Arc<dyn ServerCertVerifier>, String>>,
}

impl SystemVerifier {
    fn verifier(&self) -> Result<&dyn ServerCertVerifier, rustls::Error> {
        let read = || verifier(Vec::new(), &self.provider).map_err(|error| error.to_string());
        self.verifier.get_or_init(read).as_deref().map_err(|what| rustls::Error::General(what.clone()))
    }
}

impl ServerCertVerifier for SystemVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.verifier()?.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verifier()?.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verifier()?.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

fn headers(given: &[(String, String)]) -> Result<HeaderMap> {
    let mut headers = HeaderMap::with_capacity(given.len());
    for (name, value) in given {
        let parsed = HeaderName::try_from(name.as_str()).ok().zip(HeaderValue::from_bytes(value.as_bytes()).ok());
        // The value may be the key, so it is not in the message.
        let (parsed, mut value) = parsed.ok_or_else(|| {
            refused(format!("the header {name:?} contains a character that cannot be sent"))
                .with_remedy("check for a line break after the key")
        })?;
        // Any of them may contain a key: marked as sensitive, they are not in debug output or in HTTP/2's compression
        // tables.
        value.set_sensitive(true);
        headers.insert(parsed, value);
    }
    Ok(headers)
}

fn is_local(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

/// Returns host and port. The rest of a URL may contain secrets.
fn host_and_port(url: &Url) -> String {
    let port = url.port_or_known_default().map(|port| format!(":{port}"));
    format!("{}{}", url.host_str().unwrap_or_default(), port.unwrap_or_default())
}

fn refused(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::BadRequest, what)
}

/// Programs with a known port, and how to start them.
const SERVERS: [(u16, &str, &str); 2] = [
    (11434, "Ollama is not running", "start it with `ollama serve`; ollama.com has it"),
    (1234, "LM Studio's server is not running", "start it with `lms server start`"),
];

/// Returns the error for a request without a response head.
fn unanswered(error: &reqwest::Error, url: &Url) -> Error {
    if error.is_connect() && is_local(url) && is_refused(error) {
        let known = SERVERS.iter().find(|(port, ..)| url.port_or_known_default() == Some(*port));
        let (what, remedy) = known
            .map_or(("no server is running", "start it, or check the address"), |(_, what, remedy)| (*what, *remedy));
        let what = format!("{what} at {}", host_and_port(url));
        return Error::new(ErrorKind::Unavailable, what).with_remedy(remedy);
    }
    let (kind, what, remedy) = if error.is_builder() {
        (ErrorKind::BadRequest, "no request can be made to", "use an address that begins with https:// or http://")
    } else if error.is_connect() {
        (ErrorKind::Unavailable, "no connection to", "check the address, the network and the proxy")
    } else {
        (ErrorKind::Unavailable, "no answer from", "try again later")
    };
    Error::new(kind, format!("{what} {}", host_and_port(url))).with_source(reason(error)).with_remedy(remedy)
}

/// Returns the error for a redirect. It is not followed, because that would send the key and the conversation to a host
/// that you did not specify.
fn redirected(reply: &reqwest::Response, url: &Url) -> Error {
    let location = reply.headers().get("location").and_then(|value| value.to_str().ok());
    let target = location.and_then(|location| url.join(location).ok());
    let target = target.map(|target| format!(" to {}://{}", target.scheme(), host_and_port(&target)));
    refused(format!("{} answers with a redirect{}", host_and_port(url), target.unwrap_or_default()))
        .with_status(reply.status().as_u16())
        .with_remedy("use the address of its target, if you trust it")
}

fn is_refused(error: &reqwest::Error) -> bool {
    let refused = |cause: &(dyn std::error::Error + 'static)| {
        cause
            .downcast_ref::<std::io::Error>()
            .is_some_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
    };
    causes(error).any(refused)
}

fn causes(error: &reqwest::Error) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
    std::iter::successors(std::error::Error::source(error), |cause| cause.source())
}

/// Returns the innermost cause, because the outer ones quote the URL.
fn reason(error: &reqwest::Error) -> String {
    causes(error).last().map_or_else(|| "the request failed".into(), ToString::to_string)
}
