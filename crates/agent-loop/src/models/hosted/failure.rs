//! Maps HTTP statuses and providers' error bodies to typed errors.

use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::error::{Error, ErrorKind};

use super::{HttpReply, sse};

/// The error of a reply whose status is not 2xx. The body is read, within a limit.
pub(super) async fn of_status(reply: HttpReply) -> Error {
    let status = reply.status;
    let id = ["x-request-id", "request-id"].iter().find_map(|name| reply.header(name)).map(str::to_owned);
    let delay = retry_after(&reply);
    let bytes = sse::collect(reply.body).await.unwrap_or_default();
    let body: Value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    // Gemini's compatible endpoint wraps the object in a list.
    let body = if body.is_array() { body[0].clone() } else { body };
    let text = String::from_utf8_lossy(&bytes);
    let message = message_of(&body).unwrap_or_else(|| text.trim().to_string());
    let mut error = new(kind_of(status, &body, &message), &message).with_status(status);
    if let Some(id) = id.or_else(|| body["request_id"].as_str().map(str::to_owned)) {
        error = error.with_request_id(id);
    }
    match delay {
        Some(delay) => error.with_retry_after(delay),
        None => error,
    }
}

/// The error inside a stream whose status was 200.
pub(super) fn in_stream(body: &Value) -> Error {
    let message = message_of(body).unwrap_or_else(|| "the provider reports an error without a message".into());
    let error = &body["error"];
    let status = error["code"].as_u64().or_else(|| error["status"].as_u64());
    let word = |field: &str| error[field].as_str().filter(|word| *word != "error");
    let kind = word("type").or_else(|| word("code")).unwrap_or_default();
    let status = status.and_then(|status| u16::try_from(status).ok()).unwrap_or(match kind {
        "authentication_error" | "permission_error" => 401,
        "rate_limit_error" | "rate_limit_exceeded" => 429,
        "invalid_request_error" | "invalid_prompt" | "context_length_exceeded" => 400,
        _ => 500,
    });
    new(kind_of(status, body, &message), &message)
}

fn new(kind: ErrorKind, message: &str) -> Error {
    let message = if message.is_empty() { "the provider gave no reason" } else { message };
    let error = Error::new(kind, message);
    match kind {
        ErrorKind::Authentication => error.with_remedy("check the key, and that it may use this model"),
        ErrorKind::ContextTooLong => {
            error.with_remedy("make the conversation shorter, or take a model with a longer context")
        }
        ErrorKind::ToolsUnsupported => error.with_remedy("give this model its calls in text"),
        _ => error,
    }
}

fn message_of(body: &Value) -> Option<String> {
    let places = [&body["error"]["message"], &body["error"], &body["message"], &body["detail"]];
    places.into_iter().find_map(Value::as_str).map(str::to_owned)
}

fn kind_of(status: u16, body: &Value, message: &str) -> ErrorKind {
    let error = &body["error"];
    let code = error["code"].as_str().unwrap_or_default();
    let kind = error["type"].as_str().unwrap_or_default();
    let message = message.to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|words| message.contains(words));
    let is_long = code == "context_length_exceeded"
        || kind == "exceed_context_size_error"
        || says(&["context length", "context size", "context window", "prompt is too long", "maximum context"]);
    let no_tools = says(&[
        "does not support tool",
        "does not support function",
        "support tool use",
        "tools param requires",
        "tool use is not supported",
        "tools are not supported",
        "tool calling is not supported",
    ]);
    match status {
        // Waiting does not help, paying does.
        429 if code == "insufficient_quota" => ErrorKind::Authentication,
        429 => ErrorKind::RateLimit,
        401 | 403 => ErrorKind::Authentication,
        402 => ErrorKind::Authentication,
        413 => ErrorKind::ContextTooLong,
        _ if no_tools => ErrorKind::ToolsUnsupported,
        _ if is_long => ErrorKind::ContextTooLong,
        408 | 409 | 425 | 500.. => ErrorKind::Unavailable,
        _ if code == "content_policy_violation" || code == "content_filter" => ErrorKind::Filtered,
        _ => ErrorKind::BadRequest,
    }
}

/// The delay that is asked for: in milliseconds, in seconds, or up to a moment.
fn retry_after(reply: &HttpReply) -> Option<Duration> {
    let number = |name: &str| reply.header(name)?.trim().parse::<f64>().ok().filter(|number| *number >= 0.0);
    let Some(seconds) = number("retry-after-ms").map(|ms| ms / 1000.0).or_else(|| number("retry-after")) else {
        let date = |name: &str| httpdate::parse_http_date(reply.header(name)?.trim()).ok();
        // Measured by the server's own clock where it gives the time: ours may be wrong.
        let now = date("date").unwrap_or_else(SystemTime::now);
        return Some(date("retry-after")?.duration_since(now).unwrap_or_default());
    };
    Duration::try_from_secs_f64(seconds).ok()
}
