//! The question of a server to a person during a call, and the trait through which a host answers.

use std::fmt;

use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction};
use serde_json::Value;

use crate::tool::{BoxFuture, SchemaCheck};

use super::clean::clean;

/// A question of a server to the person. Both forms of the protocol are converted to it: a request of an older server
/// while a call runs, and a result of a newer one that asks for input before the call can be completed.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ServerQuestion {
    /// The name of the server. Show it, because a person must see who asks.
    pub server: String,
    /// The server's message, without control characters.
    pub message: String,
    /// The kind of answer that the server expects.
    pub kind: QuestionKind,
}

/// The kind of answer that a server expects from a person.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum QuestionKind {
    /// Values that fit this schema: an object of strings, numbers, booleans and choices. Its titles and descriptions
    /// have no control characters; its choices are unchanged.
    Form {
        /// A JSON Schema of a flat object.
        schema: Value,
    },
    /// A visit to a web page. It must never be opened before the person has seen the URL and agreed.
    Url {
        /// The URL.
        url: String,
    },
}

/// A person's answer.
#[derive(Debug, Clone, PartialEq)]
pub enum QuestionAnswer {
    /// Yes, with the values of the form; for a page they are ignored. Values that do not fit the schema are not sent:
    /// the server is told that the question was cancelled.
    Accept(Value),
    /// No.
    Decline,
    /// Neither: the person closed the question.
    Cancel,
}

/// Shows the questions of servers to a person.
pub trait Asker: Send + Sync {
    /// Shows a question and waits for the answer. The future is dropped when the question is no longer relevant; the
    /// question should then disappear.
    fn ask(&self, question: ServerQuestion) -> BoxFuture<'_, QuestionAnswer>;
}

impl fmt::Debug for dyn Asker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Asker")
    }
}

impl ServerQuestion {
    /// Converts a request; `None` for an unknown kind of question.
    pub(super) fn of(server: &str, request: ElicitRequestParams) -> Option<Self> {
        let (message, kind) = match request {
            ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
                let mut schema = serde_json::to_value(requested_schema).ok()?;
                clean_texts(&mut schema);
                (message, QuestionKind::Form { schema })
            }
            ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
                (message, QuestionKind::Url { url: clean(&url) })
            }
            _ => return None,
        };
        Some(Self { server: server.to_string(), message: clean(&message), kind })
    }
}

/// Removes control characters from the texts that a form shows beside its fields.
fn clean_texts(schema: &mut Value) {
    match schema {
        Value::Object(fields) => fields.iter_mut().for_each(|(keyword, value)| match value {
            Value::String(text) if keyword == "title" || keyword == "description" => *text = clean(text),
            value => clean_texts(value),
        }),
        Value::Array(values) => values.iter_mut().for_each(clean_texts),
        _ => {}
    }
}

impl QuestionAnswer {
    /// Returns the answer in the form that the server gets.
    pub(super) fn into_result(self, kind: &QuestionKind) -> ElicitResult {
        match (self, kind) {
            (Self::Accept(values), QuestionKind::Form { schema }) => match SchemaCheck::new(schema) {
                Ok(check) if check.fits(&values) => ElicitResult::new(ElicitationAction::Accept).with_content(values),
                _ => {
                    log::warn!("the answer to a server's question does not fit its schema, and is not sent");
                    ElicitResult::new(ElicitationAction::Cancel)
                }
            },
            (Self::Accept(_), QuestionKind::Url { .. }) => ElicitResult::new(ElicitationAction::Accept),
            (Self::Decline, _) => ElicitResult::new(ElicitationAction::Decline),
            (Self::Cancel, _) => ElicitResult::new(ElicitationAction::Cancel),
        }
    }
}
