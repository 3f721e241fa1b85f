//! Maps HTTP statuses and providers' error bodies to typed errors.

use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::error::{Error, ErrorKind};
use crate::model::Delta;

use super::{HttpReply, error_words, sse};

/// The reason why a request has no reply.
pub(super) enum Refusal {
    /// An error for the caller.
    Error(Error),
    /// A fault for the model, whose call could not be read.
    UnreadableCall(Delta),
}

/// Returns the refusal for a reply whose status is not 2xx. It reads the body up to a size limit.
pub(super) async fn of_status(reply: HttpReply) -> Refusal {
    let status = reply.status;
    let id = ["x-request-id", "request-id"].iter().find_map(|name| reply.header(name)).map(str::to_owned);
    let delay = retry_after(&reply);
    let bytes = sse::collect(reply.body).await.unwrap_or_default();
    let body: Value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    // Gemini's compatible endpoint wraps the object in a list.
    let body = if body.is_array() { body[0].clone() } else { body };
    if let Some(fault) = unreadable_call(&body) {
        return Refusal::UnreadableCall(fault);
    }
    let text = String::from_utf8_lossy(&bytes);
    let message = message_of(&body).unwrap_or_else(|| text.trim().to_string());
    let mut error = new(kind_of(status, &body["error"], &message), &body["error"], &message).with_status(status);
    if let Some(id) = id.or_else(|| body["request_id"].as_str().map(str::to_owned)) {
        error = error.with_request_id(id);
    }
    if status == 404 && error.remedy().is_none() {
        error = error.with_remedy("check the model's name and the address");
    }
    Refusal::Error(match delay {
        Some(delay) => error.with_retry_after(delay),
        None => error,
    })
}

/// Returns the error inside a stream whose status was 200.
pub(super) fn in_stream(body: &Value) -> Error {
    let message = message_of(body).unwrap_or_else(|| "the provider reports an error without a message".into());
    let error = &body["error"];
    let status = error["code"].as_u64().or_else(|| error["status"].as_u64());
    let is_invalid = |word: &Value| word == "invalid_request_error" || word == "invalid_prompt";
    let status = status.and_then(|status| u16::try_from(status).ok());
    let other = if is_invalid(&error["type"]) || is_invalid(&error["code"]) { 400 } else { 500 };
    new(kind_of(status.unwrap_or(other), error, &message), error, &message)
}

/// Returns a call that the provider could not read. Groq rejects the reply and quotes it, before the stream or inside
/// it.
pub(super) fn unreadable_call(body: &Value) -> Option<Delta> {
    let error = &body["error"];
    let raw = error["failed_generation"].as_str().filter(|_| error["code"] == "tool_use_failed")?;
    let fault = format!("The call could not be read: {}", message_of(body).unwrap_or_default());
    // The index is larger than those of all calls that arrived.
    Some(Delta::CallFault { index: usize::MAX, fault, raw: raw.into() })
}

/// Returns the error for a whole body that contains no reply.
pub(super) fn no_reply() -> Error {
    Error::new(ErrorKind::BadResponse, "the body is JSON but not a reply")
}

fn new(kind: ErrorKind, error: &Value, message: &str) -> Error {
    let delay = kind.is_retryable().then(|| error_words::delay(error, message)).flatten();
    let message = if message.is_empty() { "the provider gave no reason" } else { message };
    let error = Error::new(kind, message);
    let error = delay.into_iter().fold(error, Error::with_retry_after);
    match kind {
        ErrorKind::Authentication => error.with_remedy("check the key, and that it may use this model"),
        ErrorKind::ContextTooLong => {
            error.with_remedy("shorten the conversation, or use a model with a longer context")
        }
        ErrorKind::ToolsUnsupported => error.with_remedy("let this model call tools in text"),
        ErrorKind::BadRequest if error_words::of_message(error.message()) == Some(ErrorKind::BadRequest) => {
            error.with_remedy("remove the image, or use a model that accepts images")
        }
        _ => error,
    }
}

fn message_of(body: &Value) -> Option<String> {
    let places = [&body["error"]["message"], &body["error"], &body["message"], &body["detail"]];
    places.into_iter().find_map(Value::as_str).map(str::to_owned)
}

fn kind_of(status: u16, error: &Value, message: &str) -> ErrorKind {
    let coded = error_words::of_codes(error);
    match status {
        // Waiting does not help here, only paying does.
        429 if coded == Some(ErrorKind::Authentication) => ErrorKind::Authentication,
        429 => ErrorKind::RateLimit,
        401..=403 => ErrorKind::Authentication,
        413 => ErrorKind::ContextTooLong,
        _ => coded.or_else(|| error_words::of_message(message)).unwrap_or(match status {
            408 | 409 | 425 | 500.. => ErrorKind::Unavailable,
            _ => ErrorKind::BadRequest,
        }),
    }
}

/// Returns the requested delay: in milliseconds, in seconds, or up to a point in time.
fn retry_after(reply: &HttpReply) -> Option<Duration> {
    let number = |name: &str| reply.header(name)?.trim().parse::<f64>().ok().filter(|number| *number >= 0.0);
    // Some gateways send zero milliseconds beside valid seconds.
    let milliseconds = number("retry-after-ms").map(|ms| ms / 1000.0);
    let Some(seconds) = milliseconds.filter(|wait| *wait > 0.0).or_else(|| number("retry-after")).or(milliseconds)
    else {
        let date = |name: &str| httpdate::parse_http_date(reply.header(name)?.trim()).ok();
        // The delay is measured by the server's clock if the reply has its time, because the local clock may be wrong.
        let now = date("date").unwrap_or_else(SystemTime::now);
        return Some(date("retry-after")?.duration_since(now).unwrap_or_default());
    };
    Duration::try_from_secs_f64(seconds).ok()
}
