//! A request that cannot be served: an HTTP status, the field and a JSON body.

use std::fmt;

use serde_json::{Value, json};

/// An error before the first event: a status and a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiError {
    /// The HTTP status.
    pub status: u16,
    /// What is wrong.
    pub message: String,
    /// The field it is about.
    pub param: Option<String>,
    /// The API's code.
    pub code: Option<String>,
}

impl ApiError {
    /// A field that cannot be used: status 400.
    pub fn invalid(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self { status: 400, message: message.into(), param: Some(param.into()), code: None }
    }

    /// Something that a client thinks is stored here: status 400, as the API has it.
    pub(super) fn not_found(param: &str, code: &str, message: String) -> Self {
        Self { code: Some(code.into()), ..Self::invalid(param, message) }
    }

    /// The body.
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
