//! JSON-RPC 2.0 over lines: parses the client's messages, and writes the agent's messages in order.
//!
//! An invalid line is answered with an error and dropped. Each request of the agent waits for its own response. If the
//! agent stops waiting, it tells the client, so that the client closes the question.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::message_lines::{Head, is_json};

use super::wire::{CancelRequestNotification, Error, ErrorCode, PROTOCOL_METHODS, RequestId, error};

/// The maximum bytes of a line, which is large because a prompt can embed files.
pub(super) const LONGEST_LINE: u64 = 64 << 20;

/// A message of the client.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Message {
    Request { id: RequestId, method: String, params: Value },
    Notification { method: String, params: Value },
    Answer { id: RequestId, result: Result<Value, Error> },
}

/// The error for an invalid line, and the id of the request that it answers.
#[derive(Debug)]
pub(super) struct InvalidMessage {
    pub id: RequestId,
    pub error: Error,
}

/// Parses a line.
///
/// # Errors
/// The error for an invalid line, and the id of the request that it answers.
pub(super) fn parse(line: &[u8]) -> Result<Message, Box<InvalidMessage>> {
    let mut object = match serde_json::from_slice::<Value>(line) {
        Ok(Value::Object(object)) => object,
        Ok(Value::Array(_)) => return Err(invalid(RequestId::Null, "a line must hold one message, not a batch")),
        Ok(_) => return Err(invalid(RequestId::Null, "a message must be an object")),
        Err(fault) => return Err(unread(line, &fault)),
    };
    let id = match object.remove("id").map(serde_json::from_value) {
        None => None,
        Some(Ok(id)) => Some(id),
        Some(Err(_)) => return Err(invalid(RequestId::Null, "`id` must be a whole number, a string or null")),
    };
    if object.get("jsonrpc") != Some(&json!("2.0")) {
        return Err(invalid(id.unwrap_or(RequestId::Null), "`jsonrpc` must be \"2.0\""));
    }
    let params = object.remove("params").unwrap_or_default();
    match (object.remove("method"), id) {
        (Some(Value::String(method)), Some(id)) => Ok(Message::Request { id, method, params }),
        (Some(Value::String(method)), None) => Ok(Message::Notification { method, params }),
        (None, Some(id)) => answer_in(object, id),
        (_, id) => Err(invalid(id.unwrap_or(RequestId::Null), "`method` is missing or not a string")),
    }
}

fn unread(line: &[u8], fault: &serde_json::Error) -> Box<InvalidMessage> {
    let head = Head::of(line);
    match head.too_deep().filter(|_| is_json(line)) {
        Some(message) => invalid(id_in(&head), &message),
        None => {
            let error = error(ErrorCode::ParseError, format!("this is not JSON: {fault}"));
            Box::new(InvalidMessage { id: RequestId::Null, error })
        }
    }
}

fn answer_in(mut object: Map<String, Value>, id: RequestId) -> Result<Message, Box<InvalidMessage>> {
    let result = match (object.remove("result"), object.remove("error")) {
        (Some(result), None) => Ok(result),
        (None, Some(fault)) => Err(serde_json::from_value(fault)
            .unwrap_or_else(|_| error(ErrorCode::InternalError, "the client failed and did not say why"))),
        _ => return Err(invalid(id, "a message must have a method, a result or an error")),
    };
    Ok(Message::Answer { id, result })
}

fn invalid(id: RequestId, message: &str) -> Box<InvalidMessage> {
    Box::new(InvalidMessage { id, error: error(ErrorCode::InvalidRequest, message) })
}

/// Deserializes the parameters of a method.
///
/// # Errors
/// Invalid params, with the reason.
pub(super) fn read<T: DeserializeOwned>(params: Value) -> Result<T, Error> {
    serde_json::from_value(params).map_err(|fault| error(ErrorCode::InvalidParams, format!("params: {fault}")))
}

/// Returns the error for a line above the maximum length.
pub(super) fn too_long(head: &Head) -> Box<InvalidMessage> {
    invalid(id_in(head), &format!("the line is longer than {} MiB", LONGEST_LINE >> 20))
}

fn id_in(head: &Head) -> RequestId {
    head.awaited().and_then(|id| serde_json::from_value(id).ok()).unwrap_or(RequestId::Null)
}

/// The client at the other end. Clones write to the same client.
#[derive(Debug, Clone)]
pub(super) struct Client {
    lines: mpsc::UnboundedSender<String>,
    waiting: Arc<Mutex<PendingRequests>>,
}

#[derive(Debug, Default)]
struct PendingRequests {
    last: i64,
    answers: HashMap<i64, oneshot::Sender<Result<Value, Error>>>,
}

impl Client {
    /// Creates a client, and the receiver of the lines to write to it.
    pub fn new() -> (Self, mpsc::UnboundedReceiver<String>) {
        let (lines, written) = mpsc::unbounded_channel();
        (Self { lines, waiting: Arc::default() }, written)
    }

    fn send(&self, message: &Value) {
        // If the client is gone, the end of its input is noticed elsewhere.
        let _ = self.lines.send(format!("{message}\n"));
    }

    /// Sends a notification.
    pub fn notify(&self, method: &str, params: &impl Serialize) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Sends the response to a request.
    pub fn answer(&self, id: &RequestId, result: Result<Value, Error>) {
        self.send(&match result {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err(error) => json!({ "jsonrpc": "2.0", "id": id, "error": error }),
        });
    }

    /// Sends a request and waits for the response.
    ///
    /// # Errors
    /// The client's error; a response of the wrong form; request cancelled if `cancel` is cancelled first.
    pub async fn request<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &impl Serialize,
        cancel: &CancellationToken,
    ) -> Result<T, Error> {
        let (sender, answer) = oneshot::channel();
        let id = {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.last += 1;
            let id = waiting.last;
            waiting.answers.insert(id, sender);
            id
        };
        let withdrawn = CancelOnDrop { client: self, id };
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        let answered = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(error(ErrorCode::RequestCancelled, "the question was withdrawn")),
            answered = answer => answered,
        };
        drop(withdrawn);
        let gone = |_| error(ErrorCode::InternalError, "the client is gone");
        let form = |fault| error(ErrorCode::InvalidParams, format!("the answer to {method}: {fault}"));
        serde_json::from_value(answered.map_err(gone)??).map_err(form)
    }

    fn take_waiting(&self, id: i64) -> Option<oneshot::Sender<Result<Value, Error>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).answers.remove(&id)
    }

    /// Passes a response to the request that waits for it. If no request waits, the response is dropped.
    pub fn answered(&self, id: &RequestId, result: Result<Value, Error>) {
        let waiting = match id {
            RequestId::Number(id) => self.take_waiting(*id),
            // Some clients return numeric ids as strings.
            RequestId::Str(id) => id.parse().ok().and_then(|id| self.take_waiting(id)),
            RequestId::Null => None,
        };
        if let Some(waiting) = waiting {
            let _ = waiting.send(result);
        }
    }
}

/// Cancels the request at the client when this is dropped before the response has arrived.
struct CancelOnDrop<'c> {
    client: &'c Client,
    id: i64,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if self.client.take_waiting(self.id).is_some() {
            self.client.notify(PROTOCOL_METHODS.cancel_request, &CancelRequestNotification::new(self.id));
        }
    }
}

/// Writes lines until there are no more, or the client closes its side.
///
/// # Errors
/// Errors of the output.
pub(super) async fn write_lines(
    mut lines: mpsc::UnboundedReceiver<String>,
    mut output: impl AsyncWrite + Unpin,
) -> std::io::Result<()> {
    while let Some(line) = lines.recv().await {
        output.write_all(line.as_bytes()).await?;
        output.flush().await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn refused(line: &str) -> (RequestId, i32) {
        let fault = parse(line.as_bytes()).unwrap_err();
        (fault.id, fault.error.code.into())
    }

    #[test]
    fn what_is_no_message_has_an_error_of_its_own() {
        for (line, id, code) in [
            ("", RequestId::Null, -32700),
            ("{", RequestId::Null, -32700),
            ("\u{feff}{}", RequestId::Null, -32700),
            ("7", RequestId::Null, -32600),
            ("[]", RequestId::Null, -32600),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"initialize"}]"#, RequestId::Null, -32600),
            (r#"{"id":1,"method":"initialize"}"#, RequestId::Number(1), -32600),
            (r#"{"jsonrpc":"1.0","id":"a","method":"x"}"#, RequestId::Str("a".into()), -32600),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"x"}"#, RequestId::Null, -32600),
            (r#"{"jsonrpc":"2.0","id":{},"method":"x"}"#, RequestId::Null, -32600),
            (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, RequestId::Number(1), -32600),
            (r#"{"jsonrpc":"2.0","id":1}"#, RequestId::Number(1), -32600),
            (r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{}}"#, RequestId::Number(1), -32600),
            (r#"{"jsonrpc":"2.0"}"#, RequestId::Null, -32600),
        ] {
            assert_eq!(refused(line), (id, code), "{line}");
        }
        assert_eq!(parse(b"\xff\xfe").unwrap_err().error.code, ErrorCode::ParseError);
    }

    #[test]
    fn requests_notifications_and_answers_are_told_apart() {
        let of = |line: &str| parse(line.as_bytes()).unwrap();
        let method = || "m".to_owned();
        assert_eq!(
            of(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1}}"#),
            Message::Request { id: RequestId::Number(1), method: method(), params: json!({"a": 1}) }
        );
        assert_eq!(
            of(r#"{"jsonrpc":"2.0","method":"m"}"#),
            Message::Notification { method: method(), params: Value::Null }
        );
        assert_eq!(
            of(r#"{"jsonrpc":"2.0","id":2,"result":null}"#),
            Message::Answer { id: RequestId::Number(2), result: Ok(Value::Null) }
        );
        let Message::Answer { result: Err(fault), .. } = of(r#"{"jsonrpc":"2.0","id":2,"error":"no"}"#) else {
            panic!("an error that is none is an error, too");
        };
        assert_eq!(fault.code, ErrorCode::InternalError);
    }

    proptest! {
        #[test]
        fn no_line_breaks_the_reader(line in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&line);
        }

        #[test]
        fn no_json_breaks_the_reader(
            key in "(id|method|result|error|params|jsonrpc)",
            value in "(null|true|1|-1.5|1e99|\"2.0\"|\"x\"|\\[\\]|\\{\\}|\\{\"code\":1\\})",
            more in "(|,\"jsonrpc\":\"2.0\"|,\"jsonrpc\":\"2.0\",\"id\":1|,\"method\":\"m\")",
        ) {
            let line = format!("{{\"{key}\":{value}{more}}}");
            match parse(line.as_bytes()) {
                Ok(_) => prop_assert!(line.contains("\"2.0\"")),
                Err(fault) => prop_assert!([-32700, -32600].contains(&fault.error.code.into()), "{}", line),
            }
        }
    }

    #[tokio::test]
    async fn a_question_that_is_withdrawn_is_told_to_the_client_and_its_answer_is_dropped() {
        let (client, mut lines) = Client::new();
        let cancel = CancellationToken::new();
        let asking = client.clone();
        let token = cancel.clone();
        let asked = tokio::spawn(async move { asking.request::<Value>("ask", &json!({}), &token).await });
        let question: Value = serde_json::from_str(&lines.recv().await.unwrap()).unwrap();
        assert_eq!((&question["id"], &question["method"]), (&json!(1), &json!("ask")));
        cancel.cancel();
        assert_eq!(asked.await.unwrap().unwrap_err().code, ErrorCode::RequestCancelled);
        let told: Value = serde_json::from_str(&lines.recv().await.unwrap()).unwrap();
        assert_eq!(told, json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": 1 } }));
        client.answered(&RequestId::Number(1), Ok(json!("late")));
        client.answered(&RequestId::Number(9), Ok(json!("never asked")));
    }

    #[tokio::test]
    async fn answers_find_who_asked_in_any_order() {
        let (client, mut lines) = Client::new();
        let ask = |what: &'static str| {
            let client = client.clone();
            tokio::spawn(
                async move { client.request::<String>(what, &json!({}), &CancellationToken::new()).await.unwrap() },
            )
        };
        let (first, second) = (ask("first"), ask("second"));
        let mut asked = Vec::new();
        for _ in 0..2 {
            let line: Value = serde_json::from_str(&lines.recv().await.unwrap()).unwrap();
            asked.push((line["id"].as_i64().unwrap(), line["method"].as_str().unwrap().to_owned()));
        }
        for (id, method) in asked.into_iter().rev() {
            client.answered(&RequestId::Str(id.to_string()), Ok(json!(method)));
        }
        assert_eq!((first.await.unwrap(), second.await.unwrap()), ("first".to_owned(), "second".to_owned()));
    }
}
