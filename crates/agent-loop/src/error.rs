//! Errors with kind, message, path and remedy; never with a key or a prompt in them.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A `Result` with the error of this crate. It is not exported by the root of the crate, so that `use agent_loop::*`
/// leaves the standard library's `Result` in place.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error: its kind, where it happened, a message, and a remedy.
#[derive(Debug)]
pub struct Error(Box<Details>);

/// Boxed, so that `Result` stays small.
#[derive(Debug)]
struct Details {
    kind: ErrorKind,
    message: String,
    path: Option<String>,
    remedy: Option<String>,
    status: Option<u16>,
    request_id: Option<String>,
    retry_after: Option<Duration>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// The kinds of error that a caller may want to distinguish.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// The key is missing, or the provider rejected it.
    Authentication,
    /// Too many requests; [`Error::retry_after`] may say how long to wait.
    RateLimit,
    /// The conversation does not fit the model's context.
    ContextTooLong,
    /// A content filter stopped the reply.
    Filtered,
    /// The provider could not be reached, or is temporarily unavailable.
    Unavailable,
    /// No data arrived within the time limit.
    TimedOut,
    /// A stream ended without its terminal event; what came before it may be incomplete.
    CutStream,
    /// The provider's answer does not have the expected format.
    BadResponse,
    /// The provider rejected the request as invalid, or it cannot be sent.
    BadRequest,
    /// The model does not support tools; [`TextCalls`](crate::TextCalls) lets it call them in text.
    ToolsUnsupported,
    /// The list of tools is invalid: a duplicate name, or an invalid schema.
    Tools,
    /// A message would break the pairing of calls and results.
    History,
    /// The run's state does not allow this operation.
    State,
    /// The file was saved by a newer version of the program, or in a newer format.
    Newer,
    /// A saved run, a transcript or a model file cannot be read.
    Damaged,
    /// The model does not fit into the free memory.
    Memory,
    /// A file could not be read or written.
    Io,
    /// A scripted or replayed model was asked for something that is not in its script.
    Script,
}

impl ErrorKind {
    /// Returns whether the same request may succeed later.
    pub fn is_retryable(self) -> bool {
        matches!(self, Self::RateLimit | Self::Unavailable | Self::TimedOut | Self::CutStream)
    }
}

impl Error {
    /// Creates an error of `kind` with a message that describes what happened.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Details {
            kind,
            message: message.into(),
            path: None,
            remedy: None,
            status: None,
            request_id: None,
            retry_after: None,
            source: None,
        }))
    }

    /// Sets where it happened: a file, a provider, a tool.
    #[must_use]
    pub fn with_path(mut self, path: impl Into<String>) -> Self {
        self.0.path = Some(path.into());
        self
    }

    /// Sets the remedy: what the reader can do about the error.
    #[must_use]
    pub fn with_remedy(mut self, remedy: impl Into<String>) -> Self {
        self.0.remedy = Some(remedy.into());
        self
    }

    /// Sets the HTTP status of the response.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.0.status = Some(status);
        self
    }

    /// Sets the provider's id of the request, which its support asks for.
    #[must_use]
    pub fn with_request_id(mut self, id: impl Into<String>) -> Self {
        self.0.request_id = Some(id.into());
        self
    }

    /// Sets how long the provider asks to wait.
    #[must_use]
    pub fn with_retry_after(mut self, delay: Duration) -> Self {
        self.0.retry_after = Some(delay);
        self
    }

    /// Sets the cause, which [`source`](std::error::Error::source) returns.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Removes a secret from the message and the cause, because providers repeat keys in their messages; then shortens
    /// the message. The other order could leave half of a key.
    pub(crate) fn redacted(mut self, secret: &str, most: usize) -> Self {
        if !secret.is_empty() {
            self.0.message = self.0.message.replace(secret, "…");
            if self.0.source.as_ref().is_some_and(|source| source.to_string().contains(secret)) {
                self.0.source = None;
            }
        }
        self.0.message.truncate(self.0.message.floor_char_boundary(most));
        self
    }

    /// Returns the kind of error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the message, without path, remedy and cause.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns where it happened, if known: a file, a provider, a tool.
    pub fn path(&self) -> Option<&str> {
        self.0.path.as_deref()
    }

    /// Returns what the reader can do about the error, if anything is known.
    pub fn remedy(&self) -> Option<&str> {
        self.0.remedy.as_deref()
    }

    /// Returns the full text including the cause, for output without an error chain, such as a log or the body of an
    /// HTTP response.
    pub fn text_with_source(&self) -> String {
        self.text(self.0.source.as_ref().map_or_else(String::new, |source| format!(": {source}")))
    }

    fn text(&self, source: String) -> String {
        let path = self.path().map_or_else(String::new, |path| format!("{path}: "));
        let status = self.status().map_or_else(String::new, |status| format!(" (status {status})"));
        let id = self.request_id().map_or_else(String::new, |id| format!(" [request {id}]"));
        let remedy = self.remedy().map_or_else(String::new, |remedy| format!(" ({remedy})"));
        format!("{path}{}{status}{id}{source}{remedy}", self.message())
    }

    /// Returns the HTTP status of the response, if there was one.
    pub fn status(&self) -> Option<u16> {
        self.0.status
    }

    /// Returns the provider's id of the request, if it sent one.
    pub fn request_id(&self) -> Option<&str> {
        self.0.request_id.as_deref()
    }

    /// Returns how long the provider asks to wait, if it sent a delay.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }
}

/// Shows everything but the cause, which [`source`](std::error::Error::source) returns.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.text(String::new()), wait_text(self.retry_after()))
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|e| e as _)
    }
}

/// An [`Error`] as plain data that a run can store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The kind of error.
    pub kind: ErrorKind,
    /// The full text, with path, cause and remedy.
    pub message: String,
    /// How long the provider asks to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Duration>,
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        Self { kind: error.kind(), message: error.text_with_source(), retry_after: error.retry_after() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.message, wait_text(self.retry_after))
    }
}

/// Describes the delay that a provider asks for, if it is a second or more.
fn wait_text(wait: Option<Duration>) -> String {
    let wait = wait.map(|wait| wait.as_secs_f64().ceil()).filter(|seconds| *seconds >= 1.0);
    wait.map_or_else(String::new, |seconds| format!("; to be tried again in {seconds} s"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_shows_path_message_and_remedy_and_its_cause_only_as_source() {
        let error = Error::new(ErrorKind::RateLimit, "too many requests")
            .with_path("openai")
            .with_status(429)
            .with_request_id("req_7")
            .with_source("slow down")
            .with_remedy("wait a minute");
        assert_eq!(error.to_string(), "openai: too many requests (status 429) [request req_7] (wait a minute)");
        assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "slow down");
        assert_eq!((error.path(), error.remedy()), (Some("openai"), Some("wait a minute")));
        assert_eq!(
            Failure::from(&error).message,
            "openai: too many requests (status 429) [request req_7]: slow down (wait a minute)"
        );
        assert!(error.kind().is_retryable() && !ErrorKind::BadRequest.is_retryable());
    }
}
