//! How a client's person is asked, and what their answer was.
//!
//! | the client | how the person is asked |
//! | --- | --- |
//! | speaks 2026-07-28 and declared forms | the call answers `input_required`; its state comes back sealed |
//! | is older and declared forms | the server asks during the call |
//! | has no forms, or is not to be relied on (`--ask-outside`) | the call answers a code, and the person runs `vault-agent approve CODE` |
//! | is trusted to ask by itself (`--trust-client`) | the client asks before it makes the call |
//!
//! A form shows the whole of a change. One that is too long for a form waits under a code, and its form can only decline it.
//!
//! Nothing is locked while a person thinks. What they agreed to is bound by a digest: of the files as they were, and of
//! the files as they will be. Where it differs afterwards, nothing is done.

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

/// How a client's person can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConsentMethod {
    /// The client has asked already.
    Trusted,
    /// By the answer to the call.
    InputRequired,
    /// By a request during the call.
    Elicit,
    /// Outside of the client.
    Code,
}

/// What a client declared, for this request.
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

/// An empty declaration means forms.
fn has_forms(client: &ClientCapabilities) -> bool {
    client.elicitation.as_ref().is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
}

/// What a person said in a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FormAnswer {
    Yes,
    /// They refused.
    No,
    /// They closed the question, or did not answer.
    NoAnswer,
}

/// What comes back from a client, and says what the question was about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct QuestionState {
    /// Used once.
    pub nonce: u64,
    /// Of what was prepared.
    pub digest: String,
    /// What counted as now.
    pub now: Zoned,
    /// Under which it waits, where the form could not approve it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

/// Seals the state of questions, and knows which were answered.
pub(super) struct QuestionStates {
    codec: RequestStateCodec,
    used: Mutex<HashMap<u64, Instant>>,
}

impl QuestionStates {
    /// With a key that lives as long as the process.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub fn new() -> Result<Self> {
        let mut key = [0; 32];
        let failed = |why: String| Error::new(ErrorKind::Io, format!("no key could be made: {why}"));
        getrandom::fill(&mut key).map_err(|error| failed(error.to_string()))?;
        let codec = RequestStateCodec::try_new(key).map_err(|error| failed(error.to_string()))?;
        Ok(Self { codec, used: Mutex::default() })
    }

    /// The answer to a call that asks a person first. `call` is what the state is bound to.
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

    /// What the question was about whose state came back. From then on it is used.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`] for a state that was not made here, for another call, too long ago, or was used.
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
    /// Whether it has a box that approves.
    approves: bool,
}

impl Form {
    /// With one box, which nobody has ticked.
    pub fn approving(message: String) -> Self {
        Self { message, approves: true }
    }

    /// Without a box: it can be declined, or closed.
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
/// When the client goes away or answers something else.
pub(super) async fn elicit(peer: &Peer<RoleServer>, form: Form) -> Result<FormAnswer> {
    match peer.create_elicitation_with_timeout(form.into(), Some(OPEN)).await {
        Ok(result) => Ok(answer_of(&result)),
        Err(rmcp::ServiceError::Timeout { .. }) => Ok(FormAnswer::NoAnswer),
        Err(error) => Err(Error::new(ErrorKind::Denied, format!("the client could not ask: {error}"))
            .with_remedy("nothing was changed")),
    }
}

/// The answer among those that came back with a state.
pub(super) fn answer_in(responses: Option<&InputResponses>) -> FormAnswer {
    let given = responses.and_then(|responses| responses.get(APPROVE));
    given
        .and_then(|value| serde_json::from_value(value.clone()).ok())
        .map_or(FormAnswer::NoAnswer, |given| answer_of(&given))
}

/// Only a box that was ticked is a yes.
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
