//! One call of a server's tool: progress, questions to the person, the time limit, cancelling.

use std::collections::BTreeMap;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, CancelledNotificationParam, ClientRequest, InputRequest,
    InputRequiredResult, InputResponses, ProgressNotificationParam, RequestId, ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, ServiceError};
use serde_json::{Map, Value};
use tokio::runtime::Handle;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::tool::{ToolError, ToolOutput};

use super::clean::clean;
use super::connection::Connection;
use super::output::output;

/// How often a server may ask for more input before it completes a call.
const ROUNDS: usize = 10;
/// The wait before a call is repeated for a server that asks for a retry without a question.
const LATER: Duration = Duration::from_millis(250);

/// The parameters of a call.
pub(super) struct ServerCall<'a> {
    /// The server's name, for messages.
    pub(super) server: &'a str,
    /// The server's own name for the tool.
    pub(super) tool: &'a str,
    pub(super) arguments: &'a Map<String, Value>,
    /// How long the server may send nothing.
    pub(super) time_limit: Duration,
    /// Added to the message about a call that may or may not have taken effect.
    pub(super) warning: &'static str,
    pub(super) cancel: &'a CancellationToken,
    pub(super) on_progress: &'a (dyn Fn(ProgressNotificationParam) + Send + Sync),
}

/// Tells the server that a request is no longer needed, however the wait for it ends.
struct CancelOnDrop<'a> {
    peer: &'a Peer<RoleClient>,
    id: Option<RequestId>,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if let (Some(id), Ok(runtime)) = (self.id.take(), Handle::try_current()) {
            let peer = self.peer.clone();
            let why = CancelledNotificationParam::new(Some(id), Some("the request is no longer needed".into()));
            runtime.spawn(async move { peer.notify_cancelled(why).await });
        }
    }
}

impl Connection {
    /// # Errors
    /// The message of the tool, the server or the connection, in words for the model.
    pub(super) async fn call(&self, call: &ServerCall<'_>) -> Result<ToolOutput, ToolError> {
        let mut params = CallToolRequestParams::new(call.tool.to_string()).with_arguments(call.arguments.clone());
        for _ in 0..ROUNDS {
            let needed = match self.request(params.clone(), call).await? {
                CallResponse::Complete(result) => return output(result),
                CallResponse::InputRequired(needed) => needed,
            };
            params.request_state = needed.request_state;
            params.input_responses = tokio::select! {
                answers = self.answers(needed.input_requests.unwrap_or_default()) => answers?,
                () = call.cancel.cancelled() => return Err(cancelled()),
            };
        }
        Err(ToolError(format!(
            "The server {} asked {ROUNDS} times for more, and did not complete the call.",
            call.server
        )))
    }

    /// Sends the call and waits for the server's response.
    async fn request(&self, params: CallToolRequestParams, call: &ServerCall<'_>) -> Result<CallResponse, ToolError> {
        // Subscribed before the request is sent, so that nothing is missed.
        let (mut progress, mut questions) = (self.handler.progress(), self.handler.open_questions());
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let sent = self.peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await;
        let sent = match sent {
            Ok(sent) => sent,
            Err(error) => return Err(self.failed(&error, call).await),
        };
        let token = sent.progress_token.clone();
        let mut guard = CancelOnDrop { peer: &self.peer, id: Some(sent.id.clone()) };
        let mut answer = Box::pin(sent.await_response());
        let mut silent_at = Instant::now() + call.time_limit;
        loop {
            let is_asking = *questions.borrow_and_update() > 0;
            tokio::select! {
                biased;
                said = &mut answer => {
                    guard.id = None;
                    return match said {
                        Ok(ServerResult::CallToolResult(result)) => Ok(CallResponse::Complete(result)),
                        Ok(ServerResult::InputRequiredResult(needed)) => Ok(CallResponse::InputRequired(needed)),
                        Ok(ServerResult::EmptyResult(_)) => Ok(CallResponse::Complete(CallToolResult::default())),
                        Ok(_) => Err(ToolError(format!("The server {} sent an invalid result.", call.server))),
                        Err(error) => Err(self.failed(&error, call).await),
                    };
                }
                () = call.cancel.cancelled() => return Err(cancelled()),
                more = progress.recv() => match more {
                    Ok(more) if more.progress_token == token => {
                        silent_at = Instant::now() + call.time_limit;
                        (call.on_progress)(more);
                    }
                    Ok(_) | Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => unreachable!("the handler lives as long as the connection"),
                },
                // A question was opened or answered.
                changed = questions.changed() => {
                    debug_assert!(changed.is_ok(), "the handler lives as long as the connection");
                    silent_at = Instant::now() + call.time_limit;
                }
                () = sleep_until(silent_at), if !is_asking => {
                    self.doubt();
                    let (server, limit, warning) = (call.server, call.time_limit, call.warning);
                    return Err(ToolError(format!("The server {server} sent nothing for {limit:?}.{warning}")));
                }
            }
        }
    }

    async fn failed(&self, error: &ServiceError, call: &ServerCall<'_>) -> ToolError {
        let (server, warning) = (call.server, call.warning);
        ToolError(match error {
            ServiceError::McpError(error) => format!("{} (error {})", clean(&error.message), error.code.0),
            ServiceError::TransportClosed => {
                self.doubt();
                format!("The server {server} ended while the call ran{}.{warning}", self.stderr_tail().await)
            }
            ServiceError::TransportSend(error) => {
                self.doubt();
                format!("The connection with the server {server} failed: {}.{warning}", clean(&error.to_string()))
            }
            ServiceError::Cancelled { .. } => format!("The server {server} cancelled the call.{warning}"),
            error => format!("The server {server} violated the protocol: {}.{warning}", clean(&error.to_string())),
        })
    }

    /// Asks the person the server's questions, one after the other.
    async fn answers(&self, questions: BTreeMap<String, InputRequest>) -> Result<Option<InputResponses>, ToolError> {
        if questions.is_empty() {
            sleep(LATER).await;
            return Ok(None);
        }
        let mut answers = InputResponses::new();
        for (key, question) in questions {
            let InputRequest::Elicitation(question) = question else {
                return Err(ToolError::new(
                    "The server asks for something that only a person's program could give it.",
                ));
            };
            answers.insert(key, serde_json::to_value(self.handler.ask(question.params).await)?);
        }
        Ok(Some(answers))
    }
}

enum CallResponse {
    Complete(CallToolResult),
    InputRequired(InputRequiredResult),
}

fn cancelled() -> ToolError {
    ToolError::new("The call was cancelled.")
}
