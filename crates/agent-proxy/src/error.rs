//! A request that cannot be served: an HTTP status, the field and a JSON body.

use std::fmt;

use serde_json::{Value, json};

/// An error before the first event: a status and a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiError {
    /// The HTTP status.
    pub status: u16,
    /// The issue.
    pub message: String,
    /// The invalid field.
    pub param: Option<String>,
    /// The error code of the API.
    pub code: Option<String>,
}

impl ApiError {
    /// Creates the error for an invalid field, with status 400.
    pub fn invalid(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self { status: 400, message: message.into(), param: Some(param.into()), code: None }
    }

    /// Creates the error for a reference to an object that is not stored, with status 400, as in the API.
    pub(super) fn not_found(param: &str, code: &str, message: String) -> Self {
        Self { code: Some(code.into()), ..Self::invalid(param, message) }
    }

    /// Returns the JSON body.
    pub fn body(&self) -> Value {
        let kind = if self.status < 500 { "invalid_request_error" } else { "server_error" };
        json!({"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}})
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.param {
            Some(param) => write!(f, "{param}: {} (status {})", self.message, self.status),
            None => write!(f, "{} (status {})", self.message, self.status),
        }
    }
}

impl std::error::Error for ApiError {}
