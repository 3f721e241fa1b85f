//! One POST with retries: on 429, on 5xx, and when the connection breaks.

use std::fmt;
use std::io::ErrorKind as Io;
use std::thread::sleep;
use std::time::Duration;

use ureq::Agent;
use ureq::http::{HeaderMap, header};

use super::address::Address;
use super::{Limits, wire};

/// Longer responses are errors: 64 vectors of 4,096 numbers are about 4 MB.
const LONGEST_ANSWER: u64 = 64 << 20;

/// A secret key. It can only be sent; `Debug` hides it.
#[derive(Clone)]
pub(super) struct Key(String);

impl Key {
    /// `None` if the variable is not set or blank.
    pub(super) fn from_environment(variable: &str) -> Option<Self> {
        std::env::var(variable).ok().and_then(|key| Self::new(&key))
    }

    pub(super) fn new(key: &str) -> Option<Self> {
        let key = key.trim();
        (!key.is_empty()).then(|| Self(key.to_owned()))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(***)")
    }
}

/// Why a request failed. No text in it contains the key.
#[derive(Debug)]
pub(super) enum Failure {
    /// Nothing listens at the address.
    Refused,
    /// The host name cannot be resolved.
    NoHost,
    TimedOut,
    Status {
        code: u16,
        message: String,
    },
    /// Another network error.
    Connection(String),
    /// There is a response, but it cannot be used.
    Answer(String),
}

/// Whether the request is worth a retry, and the minimum wait before it.
enum RetryDecision {
    No,
    After(Option<Duration>),
}

/// Sends requests to one URL.
#[derive(Debug)]
pub(super) struct Sender {
    agent: Agent,
    url: String,
    key: Option<Key>,
    limits: Limits,
}

impl Sender {
    pub(super) fn new(address: &Address, path: &str, key: Option<Key>, limits: &Limits) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            // Texts go only to this address.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_connect(Some(limits.connect))
            .timeout_send_body(Some(limits.answer))
            .timeout_recv_response(Some(limits.answer))
            .timeout_recv_body(Some(limits.answer))
            .user_agent(concat!("vault-index/", env!("CARGO_PKG_VERSION")));
        // A proxy cannot reach servers on this machine.
        let config = if address.is_loopback() { config.proxy(None) } else { config };
        Self { agent: config.build().into(), url: format!("{address}{path}"), key, limits: limits.clone() }
    }

    /// Returns the body of the response.
    pub(super) fn post(&self, body: &[u8]) -> Result<Vec<u8>, Failure> {
        let mut wait = self.limits.first_wait;
        let mut tries = 1;
        loop {
            let (failure, again) = match self.once(body) {
                Ok(answer) => return Ok(answer),
                Err(failed) => failed,
            };
            let RetryDecision::After(asked) = again else { return Err(failure) };
            let pause = asked.unwrap_or(wait);
            if tries == self.limits.tries || pause > self.limits.longest_wait {
                return Err(failure);
            }
            sleep(pause);
            tries += 1;
            wait = (wait * 2).min(self.limits.longest_wait);
        }
    }

    fn once(&self, body: &[u8]) -> Result<Vec<u8>, (Failure, RetryDecision)> {
        let mut request = self.agent.post(&self.url).header(header::CONTENT_TYPE, "application/json");
        if let Some(Key(key)) = &self.key {
            request = request.header(header::AUTHORIZATION, format!("Bearer {key}"));
        }
        let mut answer = request.send(body).map_err(connection)?;
        let code = answer.status().as_u16();
        let after = retry_after(answer.headers());
        let bytes = answer.body_mut().with_config().limit(LONGEST_ANSWER).read_to_vec().map_err(connection)?;
        let again = match code {
            200..=299 => return Ok(bytes),
            429 if wire::is_out_of_quota(&bytes) => RetryDecision::No,
            429 | 500..=599 => RetryDecision::After(after),
            _ => RetryDecision::No,
        };
        Err((Failure::Status { code, message: self.without_key(wire::error_message(&bytes)) }, again))
    }

    /// Removes the key from a text, because servers often repeat the key that they refuse.
    fn without_key(&self, text: String) -> String {
        match &self.key {
            Some(Key(key)) => text.replace(key.as_str(), "***"),
            None => text,
        }
    }
}

/// Uses only our own messages and the kinds of errors, because some of ureq's messages quote the request.
fn connection(error: ureq::Error) -> (Failure, RetryDecision) {
    let broken = |what: &str| Failure::Connection(what.to_owned());
    match error {
        ureq::Error::Timeout(_) => (Failure::TimedOut, RetryDecision::No),
        ureq::Error::HostNotFound => (Failure::NoHost, RetryDecision::No),
        ureq::Error::Io(error) => match error.kind() {
            Io::ConnectionRefused => (Failure::Refused, RetryDecision::No),
            Io::TimedOut | Io::WouldBlock => (Failure::TimedOut, RetryDecision::No),
            Io::ConnectionReset | Io::ConnectionAborted | Io::BrokenPipe | Io::UnexpectedEof => {
                (broken("it was closed before the response was complete"), RetryDecision::After(None))
            }
            kind => (Failure::Connection(kind.to_string()), RetryDecision::No),
        },
        ureq::Error::BodyExceedsLimit(_) => (Failure::Answer("it is too long".into()), RetryDecision::No),
        ureq::Error::Protocol(_) => (Failure::Answer("it is not HTTP".into()), RetryDecision::No),
        ureq::Error::Http(_) => {
            (broken("the address or the key contains a character that cannot be sent"), RetryDecision::No)
        }
        ureq::Error::Tls(_) | ureq::Error::Rustls(_) => (broken("the TLS handshake failed"), RetryDecision::No),
        ureq::Error::InvalidProxyUrl => {
            (broken("invalid proxy URL in HTTPS_PROXY, HTTP_PROXY or ALL_PROXY"), RetryDecision::No)
        }
        _ => (broken("it could not be established"), RetryDecision::No),
    }
}

/// `Retry-After`, in seconds or as a date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = value.parse::<u32>() {
        return Some(Duration::from_secs(seconds.into()));
    }
    let then = jiff::fmt::rfc2822::parse(value).ok()?.timestamp();
    Some(Duration::try_from(then.duration_since(jiff::Timestamp::now())).unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_read() {
        let read = |value: &str| retry_after(&HeaderMap::from_iter([(header::RETRY_AFTER, value.parse().unwrap())]));
        assert_eq!(read("7"), Some(Duration::from_secs(7)));
        assert_eq!(read("Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::ZERO));
        assert!(read("Wed, 21 Oct 2065 07:28:00 GMT").unwrap() > Duration::from_secs(1_000_000));
        assert_eq!(read("soon"), None);
        assert_eq!(retry_after(&HeaderMap::new()), None);
    }

    #[test]
    fn keys_are_hidden() {
        assert_eq!(format!("{:?}", Key::new(" sk-secret\n")), "Some(Key(***))");
        assert!(Key::new("  ").is_none());
    }
}
