//! Failures before the first byte of a reply: an HTTP status, a JSON error and `retry-after`.

use std::time::Duration;

use agent_loop::{Error, ErrorKind};
use axum::body::Body;
use axum::http::{HeaderValue, Response, header};
use axum::response::IntoResponse;
use serde_json::Value;

use crate::ApiError;

/// A failure as an HTTP response.
#[derive(Debug)]
pub struct Refusal {
    pub(super) error: ApiError,
    pub(super) retry_after: Option<Duration>,
}

impl From<ApiError> for Refusal {
    fn from(error: ApiError) -> Self {
        Self { error, retry_after: None }
    }
}

/// Converts a failure of the backend for the client. A client can correct its request, and wait; but it cannot change
/// the backend's key and address, so those failures are never a 401 or 403.
impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let (status, code) = match error.kind() {
            ErrorKind::RateLimit => (429, "rate_limit_exceeded"),
            ErrorKind::ContextTooLong => (400, "context_length_exceeded"),
            ErrorKind::Filtered => (400, "content_filter"),
            ErrorKind::BadRequest => (400, "invalid_prompt"),
            ErrorKind::ToolsUnsupported | ErrorKind::Tools => (400, "invalid_tools"),
            ErrorKind::History => (400, "invalid_history"),
            ErrorKind::Unavailable => (503, "backend_unavailable"),
            ErrorKind::TimedOut => (504, "backend_timeout"),
            ErrorKind::Authentication | ErrorKind::CutStream | ErrorKind::BadResponse => (502, "backend_error"),
            _ => (500, "server_error"),
        };
        Self { retry_after: error.retry_after(), ..Self::new(status, code, error.text_with_source()) }
    }
}

impl Refusal {
    /// Creates a refusal with a code for programs and a message for people.
    pub fn new(status: u16, code: &str, message: impl Into<String>) -> Self {
        ApiError { status, message: message.into(), param: None, code: Some(code.into()) }.into()
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response<Body> {
        let mut response = json_response(self.error.status, &self.error.body());
        let headers = response.headers_mut();
        if let Some(delay) = self.retry_after {
            // The header only allows whole seconds, and too late is better than too early.
            headers.insert(header::RETRY_AFTER, HeaderValue::from(delay.as_millis().div_ceil(1000) as u64));
        }
        if self.error.status == 401 {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

pub(super) fn json_response(status: u16, body: &Value) -> Response<Body> {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status.try_into().unwrap_or_default();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
