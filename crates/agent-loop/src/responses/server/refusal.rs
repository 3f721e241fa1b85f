//! Failures before the first byte of a reply: an HTTP status, a JSON error and `retry-after`.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, Response, header};
use serde_json::Value;

use super::super::ApiError;
use crate::error::{Error, ErrorKind};

#[derive(Debug)]
pub(super) struct Refusal {
    error: ApiError,
    retry_after: Option<Duration>,
}

impl From<ApiError> for Refusal {
    fn from(error: ApiError) -> Self {
        Self { error, retry_after: None }
    }
}

impl Refusal {
    pub(super) fn new(status: u16, code: &str, message: impl Into<String>) -> Self {
        ApiError { status, message: message.into(), param: None, code: Some(code.into()) }.into()
    }

    pub(super) fn about(mut self, param: &str) -> Self {
        self.error.param = Some(param.into());
        self
    }

    pub(super) fn again_after(mut self, delay: Duration) -> Self {
        self.retry_after = Some(delay);
        self
    }

    /// What a failure of the backend is to the client. A client can mend what it asked, and wait; the backend's key and
    /// address are the proxy's own business, and so never a 401 or 403.
    pub(super) fn of_backend(error: &Error) -> Self {
        let error = &to_client_error(error);
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

    pub(super) fn response(&self) -> Response<Body> {
        let mut response = json_response(self.error.status, &self.error.body());
        let headers = response.headers_mut();
        if let Some(delay) = self.retry_after {
            // Whole seconds are all that the header knows, and too late is better than too early.
            headers.insert(header::RETRY_AFTER, HeaderValue::from(delay.as_millis().div_ceil(1000) as u64));
        }
        if self.error.status == 401 {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// A backend's failure as the client may see it: without the proxy's own credentials.
pub(super) fn to_client_error(error: &Error) -> Error {
    let (kind, message) = match error.kind() {
        ErrorKind::Authentication => (
            ErrorKind::Authentication,
            "the backend does not accept this proxy's own credentials, which no key of the client's can change".into(),
        ),
        kind => (kind, error.text_with_source()),
    };
    let to_client_error = Error::new(kind, message);
    match error.retry_after() {
        Some(delay) => to_client_error.with_retry_after(delay),
        None => to_client_error,
    }
}

pub(super) fn json_response(status: u16, body: &Value) -> Response<Body> {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status.try_into().unwrap_or_default();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
