//! How a client's person is asked for approval, and their answer.
//!
//! | the client | how the person is asked |
//! | --- | --- |
//! | speaks 2026-07-28 and declared forms | the call returns `input_required`; its state comes back sealed |
//! | is older and declared forms | the server asks during the call |
//! | has no forms, or is not trusted (`--ask-outside`) | the call returns a code for `vault-agent approve CODE` |
//! | is trusted to ask (`--trust-client`) | the client asks before it makes the call |
//!
//! A form shows the whole of a change. A change that is too long for a form is pending under a code, and its form can
//! only decline it.
//!
//! Nothing is locked while a person thinks. The approval is bound to a digest of the files before and after the change.
//! If the digest differs when the change is carried out, nothing is done.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Zoned;
use rmcp::model::{
    ClientCapabilities, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema,
    InputRequest, InputRequiredResult, InputResponses, ProtocolVersion, RequestStateCodec, SealOptions,
};
use rmcp::service::RequestContext;
use rmcp::{Peer, RoleServer};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use vault_tools::{Error, ErrorKind, Result};

use super::catalog::CatalogOptions;

/// The name of the question and of its one field.
const APPROVE: &str = "approve";

/// How long a question may stay open.
const OPEN: Duration = Duration::from_secs(15 * 60);

/// How the person can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConsentMethod {
    /// The client has already asked.
    Trusted,
    /// By the response to the call.
    InputRequired,
    /// By a request during the call.
    Elicit,
    /// Outside of the client.
    Code,
}

/// Chooses the method for a client from its version and capabilities.
pub(super) fn consent_method(context: &RequestContext<RoleServer>, options: &CatalogOptions) -> ConsentMethod {
    let is_new = context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
    match context.client_capabilities() {
        _ if options.trust_client => ConsentMethod::Trusted,
        _ if options.ask_outside => ConsentMethod::Code,
        Some(client) if !has_forms(&client) => ConsentMethod::Code,
        None => ConsentMethod::Code,
        Some(_) if is_new => ConsentMethod::InputRequired,
        Some(_) => ConsentMethod::Elicit,
    }
}

/// Whether the client supports forms. An empty declaration means that it does.
fn has_forms(client: &ClientCapabilities) -> bool {
    client.elicitation.as_ref().is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
}

/// A person's answer in a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FormAnswer {
    Yes,
    /// They declined.
    No,
    /// They closed the question, or did not answer.
    NoAnswer,
}

/// The state of a question, which the client sends back with the answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct QuestionState {
    /// Makes the state usable only once.
    pub nonce: u64,
    /// The digest of the prepared change.
    pub digest: String,
    /// The time that the change was prepared for.
    pub now: Zoned,
    /// The code of the pending change, if the form could not approve it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

/// Seals the states of questions, and remembers which were answered.
pub(super) struct QuestionStates {
    codec: RequestStateCodec,
    used: Mutex<HashMap<u64, Instant>>,
}

impl QuestionStates {
    /// Creates a key that lives as long as the process.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub fn new() -> Result<Self> {
        let mut key = [0; 32];
        let failed = |why: String| Error::new(ErrorKind::Io, format!("cannot create a key: {why}"));
        getrandom::fill(&mut key).map_err(|error| failed(error.to_string()))?;
        let codec = RequestStateCodec::try_new(key).map_err(|error| failed(error.to_string()))?;
        Ok(Self { codec, used: Mutex::default() })
    }

    /// Returns the response to a call that asks a person first. The state is bound to `call`.
    ///
    /// # Errors
    /// When the state cannot be written as JSON.
    pub fn input_required(&self, form: Form, question: &QuestionState, call: &str) -> Result<InputRequiredResult> {
        let options = SealOptions::new().associated_data(call.as_bytes()).ttl(OPEN);
        let state = self.codec.seal_json_with(question, &options);
        let state = state.map_err(|error| Error::new(ErrorKind::Io, error.to_string()))?;
        let request = InputRequest::Elicitation(ElicitRequest::new(form.into()));
        let requests = std::iter::once((APPROVE.to_owned(), request)).collect();
        Ok(InputRequiredResult::new(Some(requests), Some(state)))
    }

    /// Opens a state that came back. It cannot be used again.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`] for a state that is not from here, for another call, expired or already used.
    pub fn open(&self, state: &str, call: &str) -> Result<QuestionState> {
        let refused = || {
            Error::new(ErrorKind::Refused, "this requestState is not valid for this call, too old, or was used before")
                .with_remedy("make the call again without it; nothing was done")
        };
        let question: QuestionState = self.codec.open_json_with(state, call.as_bytes()).map_err(|_| refused())?;
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.retain(|_, at| at.elapsed() < OPEN);
        match used.insert(question.nonce, Instant::now()) {
            None => Ok(question),
            Some(_) => Err(refused()),
        }
    }
}

/// A question to a person.
#[derive(Debug)]
pub(super) struct Form {
    message: String,
    /// Whether it has a checkbox that approves.
    approves: bool,
}

impl Form {
    /// Creates a form with one unticked checkbox.
    pub fn approving(message: String) -> Self {
        Self { message, approves: true }
    }

    /// Creates a form without a checkbox, which can only be declined or closed.
    pub fn declining(message: String) -> Self {
        Self { message, approves: false }
    }
}

impl From<Form> for ElicitRequestParams {
    fn from(form: Form) -> Self {
        let schema = ElicitationSchema::builder();
        let schema = match form.approves {
            true => schema.required_bool_property(APPROVE, |field| field.title("Make this change")),
            false => schema,
        };
        let requested_schema = schema.build().unwrap_or_else(|_| ElicitationSchema::new(Default::default()));
        Self::FormElicitationParams { meta: None, message: form.message, requested_schema }
    }
}

/// Asks during the call.
///
/// # Errors
/// When the client disconnects or sends an invalid response.
pub(super) async fn elicit(peer: &Peer<RoleServer>, form: Form) -> Result<FormAnswer> {
    match peer.create_elicitation_with_timeout(form.into(), Some(OPEN)).await {
        Ok(result) => Ok(answer_of(&result)),
        Err(rmcp::ServiceError::Timeout { .. }) => Ok(FormAnswer::NoAnswer),
        Err(error) => Err(Error::new(ErrorKind::Denied, format!("the client could not ask: {error}"))
            .with_remedy("nothing was changed")),
    }
}

/// Returns the answer among those that came back with a state.
pub(super) fn answer_in(responses: Option<&InputResponses>) -> FormAnswer {
    let given = responses.and_then(|responses| responses.get(APPROVE));
    given
        .and_then(|value| serde_json::from_value(value.clone()).ok())
        .map_or(FormAnswer::NoAnswer, |given| answer_of(&given))
}

/// Only a ticked checkbox approves.
fn answer_of(result: &ElicitResult) -> FormAnswer {
    let is_ticked = || result.content.as_ref().and_then(|content| content.get(APPROVE)) == Some(&Value::Bool(true));
    match result.action {
        ElicitationAction::Accept if is_ticked() => FormAnswer::Yes,
        ElicitationAction::Accept | ElicitationAction::Decline => FormAnswer::No,
        _ => FormAnswer::NoAnswer,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn question(nonce: u64) -> QuestionState {
        QuestionState { nonce, digest: "d".to_owned(), now: Zoned::now(), code: None }
    }

    #[test]
    fn a_state_holds_once_for_its_call_and_its_server() {
        let (consent, other) = (QuestionStates::new().unwrap(), QuestionStates::new().unwrap());
        let state = |nonce| {
            consent
                .input_required(Form::approving("q".to_owned()), &question(nonce), "call")
                .unwrap()
                .request_state
                .unwrap()
        };
        let first = state(1);
        assert!(consent.open(&first, "another call").is_err());
        assert!(other.open(&first, "call").is_err());
        let mut forged = first.clone().into_bytes();
        let middle = forged.len() / 2;
        forged[middle] = if forged[middle] == b'A' { b'B' } else { b'A' };
        assert!(consent.open(&String::from_utf8(forged).unwrap(), "call").is_err());
        assert_eq!(consent.open(&first, "call").unwrap().nonce, 1);
        assert!(consent.open(&first, "call").is_err());
        assert!(consent.open(&state(2), "call").is_ok());
    }

    #[test]
    fn only_a_ticked_box_is_a_yes() {
        let answer = |value: Value| answer_in(Some(&std::iter::once((APPROVE.to_owned(), value)).collect()));
        assert_eq!(answer(json!({ "action": "accept", "content": { "approve": true } })), FormAnswer::Yes);
        for no in [
            json!({ "action": "accept", "content": { "approve": "true" } }),
            json!({ "action": "accept", "content": { "approve": false } }),
            json!({ "action": "accept", "content": {} }),
            json!({ "action": "accept" }),
            json!({ "action": "decline", "content": { "approve": true } }),
        ] {
            assert_eq!(answer(no.clone()), FormAnswer::No, "{no}");
        }
        for nothing in [json!({ "action": "cancel" }), json!("yes"), json!(null), json!({ "approve": true })] {
            assert_eq!(answer(nothing.clone()), FormAnswer::NoAnswer, "{nothing}");
        }
        assert_eq!(answer_in(None), FormAnswer::NoAnswer);
    }
}
