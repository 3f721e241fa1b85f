//! The calls of one reply until each has a result: validated, approved (`approval.rs`), run in order, reviewed.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::approval::{
    BoundDecision, CallPermission, Decision, Digest, Question, QuestionSubject, RejectionReason, Review, RunId,
};
use crate::error::{Error, ErrorKind, Result};
use crate::message::{CallId, Status, ToolCall, ToolResult};
use crate::tool::{Effect, ToolError, ToolOutput};

use super::{ReadyCall, RunContext};

/// The result of a call that a person or the policy denied.
const DENIED: &str = "Tool call denied";

/// All calls of a reply, in its order.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Calls(Vec<PendingCall>);

#[derive(Debug, Clone, Serialize, Deserialize)]
struct PendingCall {
    /// The call, with the arguments it runs with.
    call: ToolCall,
    /// Shown to the model before the result.
    #[serde(default)]
    note: Option<String>,
    /// How long the tool ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    duration: Option<Duration>,
    /// Whether an observer has received the result.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_told: bool,
    #[serde(rename = "step")]
    state: CallState,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
enum CallState {
    /// The call has not run.
    Open {
        /// The policy's request for approval when it was last evaluated.
        #[serde(default, rename = "asked")]
        request: Option<ApprovalRequest>,
        /// A person's approval.
        #[serde(default)]
        allowed: CallApproval,
    },
    /// The call was handed to the driver.
    Running {
        effect: Effect,
        /// Why the call was allowed, in case it has to be handed out again.
        #[serde(default, skip_serializing_if = "CallApproval::is_not_yet")]
        allowed: CallApproval,
    },
    /// The call ran, and a person decides what the model sees.
    Review {
        effect: Effect,
        output: ToolOutput,
    },
    Answered {
        result: ToolResult,
    },
}

/// The policy's request for a person's approval of a call.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct ApprovalRequest {
    why: String,
    grant: String,
    effect: Effect,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum CallApproval {
    #[default]
    NotYet,
    ByPerson,
}

impl CallApproval {
    fn is_not_yet(&self) -> bool {
        *self == Self::NotYet
    }
}

impl PendingCall {
    fn answer(&mut self, status: Status, mut items: Vec<String>) {
        // They are stored as long as the conversation exists.
        items.iter_mut().for_each(String::shrink_to_fit);
        let ToolCall { id, name, .. } = &self.call;
        let (note, duration) = (self.note.take(), self.duration);
        let result = ToolResult { call: id.clone(), name: name.clone(), status, note, duration, items };
        self.state = CallState::Answered { result };
    }

    fn deny(&mut self, reason: Option<&str>) {
        let reason = reason.map(str::trim).filter(|reason| !reason.is_empty());
        let text = reason.map_or_else(|| DENIED.to_string(), |reason| format!("{DENIED}: {reason}"));
        self.answer(Status::Denied, vec![text]);
    }

    fn add_note(&mut self, note: String) {
        self.note = Some(self.note.take().map_or(note.clone(), |before| format!("{before}\n{note}")));
    }

    /// Validates an open call and checks its approval. Returns `Some` if it may run now.
    fn check(&mut self, context: RunContext<'_>, grants: &BTreeSet<String>) -> Option<ReadyCall> {
        let CallState::Open { request, allowed } = &mut self.state else { return None };
        let spec = match context.tools.check(&self.call) {
            Ok(spec) => spec,
            Err(fault) => {
                self.answer(Status::Error, vec![fault]);
                return None;
            }
        };
        match context.policy.permission(&self.call, spec) {
            CallPermission::Allow => *request = None,
            // A denial by the policy overrules every decision of a person.
            CallPermission::Deny { reason } => {
                self.deny(Some(&reason));
                return None;
            }
            CallPermission::Ask { why, grant } => {
                let is_granted = *allowed == CallApproval::ByPerson || grants.contains(&grant);
                *request = Some(ApprovalRequest { why, grant, effect: spec.effect });
                if !is_granted {
                    return None;
                }
            }
        }
        Some(ReadyCall { index: 0, call: self.call.clone(), effect: spec.effect, time_limit: spec.time_limit })
    }

    fn waits_to_write(&self) -> bool {
        matches!(&self.state, CallState::Open { request: Some(request), .. } if request.effect == Effect::Write)
    }

    /// Returns the question for a person, or `None` if a grant for the session covers it.
    fn question(&self, run: &RunId, grants: &BTreeSet<String>) -> Option<Question> {
        let (about, effect, output) = match &self.state {
            CallState::Open { request: Some(request), allowed: CallApproval::NotYet }
                if !grants.contains(&request.grant) =>
            {
                (QuestionSubject::Running { why: request.why.clone() }, request.effect, None)
            }
            CallState::Review { output, effect } => {
                (QuestionSubject::Sharing { output: output.clone() }, *effect, Some(output))
            }
            _ => return None,
        };
        let digest = Digest::of(run, &self.call, output);
        Some(Question { run: run.clone(), call: self.call.clone(), effect, about, digest })
    }
}

impl Calls {
    /// Creates open calls; those from `granted` on are answered with `beyond`.
    pub(super) fn open(calls: Vec<ToolCall>, granted: usize, beyond: &str) -> Self {
        let open = |(index, call)| {
            let state = CallState::Open { request: None, allowed: CallApproval::NotYet };
            let mut pending = PendingCall { call, note: None, duration: None, is_told: false, state };
            if index >= granted {
                pending.answer(Status::Cancelled, vec![beyond.to_string()]);
            }
            pending
        };
        Self(calls.into_iter().enumerate().map(open).collect())
    }

    /// Validates all open calls and checks their approval.
    pub(super) fn check(&mut self, context: RunContext<'_>, grants: &BTreeSet<String>) {
        for pending in &mut self.0 {
            pending.check(context, grants);
        }
    }

    /// Returns the calls that may run now, and marks them as running: one that writes, or all reads that have no write
    /// before them that is about to run. A call that waits for a person holds up only the writes after it.
    pub(super) fn take_ready(&mut self, context: RunContext<'_>, grants: &BTreeSet<String>) -> Vec<ReadyCall> {
        // All are settled before the first runs, so that a person gets all questions at once.
        let settled: Vec<_> = self.0.iter_mut().map(|pending| pending.check(context, grants)).collect();
        let mut ready = Vec::new();
        if self.any_writing() {
            return ready;
        }
        let (is_reading, mut a_write_waits) = (self.any_running(), false);
        for (index, (pending, settled)) in self.0.iter_mut().zip(settled).enumerate() {
            let Some(mut call) = settled else {
                a_write_waits |= pending.waits_to_write();
                continue;
            };
            let is_write = call.effect == Effect::Write;
            call.index = index;
            if is_write && a_write_waits {
                continue;
            }
            // A read after a write that is about to run may depend on that write.
            if is_write && (is_reading || !ready.is_empty()) {
                break;
            }
            if let CallState::Open { allowed, .. } = pending.state {
                pending.state = CallState::Running { effect: call.effect, allowed };
            }
            ready.push(call);
            if is_write {
                break;
            }
        }
        ready
    }

    pub(super) fn any_running(&self) -> bool {
        self.0.iter().any(|pending| matches!(pending.state, CallState::Running { .. }))
    }

    fn any_writing(&self) -> bool {
        self.0.iter().any(|pending| matches!(pending.state, CallState::Running { effect: Effect::Write, .. }))
    }

    pub(super) fn questions(&self, run: &RunId, grants: &BTreeSet<String>) -> Vec<Question> {
        self.0.iter().filter_map(|pending| pending.question(run, grants)).collect()
    }

    /// Applies a decision about a call that has not run and is not decided, even if the current policy would not have
    /// asked: a decision counts until the call runs.
    pub(super) fn decide(
        &mut self,
        context: RunContext<'_>,
        run: &RunId,
        grants: &mut BTreeSet<String>,
        decision: BoundDecision,
    ) -> Result<(), RejectionReason> {
        if decision.run != *run {
            return Err(RejectionReason::OtherRun);
        }
        let pending = self.0.iter_mut().find(|pending| pending.call.id == decision.call);
        let pending = pending.ok_or(RejectionReason::UnknownCall)?;
        pending.check(context, grants);
        let output = match &pending.state {
            CallState::Open { allowed: CallApproval::NotYet, .. } => None,
            CallState::Review { output, .. } => Some(output.clone()),
            _ => return Err(RejectionReason::AlreadyDecided),
        };
        if decision.digest != Digest::of(run, &pending.call, output.as_ref()) {
            return Err(RejectionReason::OtherDigest);
        }
        match output {
            None => pending.decide_running(context, grants, decision.decision),
            Some(output) => pending.decide_sharing(output, decision.decision),
        }
    }

    pub(super) fn ran_for(&mut self, call: &CallId, duration: Duration) {
        let pending = self.0.iter_mut().find(|pending| pending.call.id == *call);
        pending.into_iter().for_each(|pending| pending.duration = Some(duration));
    }

    pub(super) fn finished(
        &mut self,
        context: RunContext<'_>,
        call: &CallId,
        end: Result<ToolOutput, ToolError>,
    ) -> Result<()> {
        let is_this = |pending: &&mut PendingCall| pending.call.id == *call;
        let running = self.0.iter_mut().find(is_this).and_then(|pending| match pending.state {
            CallState::Running { effect, .. } => Some((pending, effect)),
            _ => None,
        });
        let Some((pending, effect)) = running else {
            return Err(Error::new(ErrorKind::State, format!("the call {call} is not running")));
        };
        match end {
            Err(ToolError(text)) => pending.answer(Status::Error, vec![text]),
            Ok(output) => {
                let spec = context.tools.get(&pending.call.name);
                let review = spec.map_or(Review::Pass, |spec| context.policy.review(&pending.call, spec));
                match review {
                    Review::Pass => pending.answer(Status::Ok, output.items),
                    Review::Ask => pending.state = CallState::Review { effect, output },
                }
            }
        }
        Ok(())
    }

    /// Resets calls that were running when the process ended: a read may run again; the outcome of a write is unknown.
    pub(super) fn interrupted(&mut self) {
        for pending in &mut self.0 {
            match pending.state {
                CallState::Running { effect: Effect::Read, allowed } => {
                    pending.state = CallState::Open { request: None, allowed }
                }
                CallState::Running { effect: Effect::Write, .. } => {
                    pending.answer(Status::Cancelled, vec![INTERRUPTED_WRITE.into()])
                }
                _ => {}
            }
        }
    }

    /// Returns whether these are exactly the given calls, in order.
    pub(super) fn are(&self, calls: &[&ToolCall]) -> bool {
        let same = |(pending, call): (&PendingCall, &&ToolCall)| {
            let is_of_other = matches!(&pending.state, CallState::Answered { result } if result.call != call.id);
            pending.call.id == call.id && !is_of_other
        };
        self.0.len() == calls.len() && self.0.iter().zip(calls).all(same)
    }

    /// Returns the calls as they ran, with their results. Open ones are left out.
    pub(super) fn answered(&self) -> impl Iterator<Item = (&ToolCall, &ToolResult)> {
        self.0.iter().filter_map(|pending| match &pending.state {
            CallState::Answered { result } => Some((&pending.call, result)),
            _ => None,
        })
    }

    /// Returns the results that no observer has received yet, each with the index of its call in the reply.
    pub(super) fn take_untold(&mut self) -> Vec<(usize, ToolResult)> {
        let mut untold = Vec::new();
        for (index, pending) in self.0.iter_mut().enumerate() {
            if let CallState::Answered { result } = &pending.state
                && !std::mem::replace(&mut pending.is_told, true)
            {
                untold.push((index, result.clone()));
            }
        }
        untold
    }

    /// Answers the calls that have no result, because they are cancelled.
    pub(super) fn cancel(&mut self) {
        for pending in &mut self.0 {
            let text = match &pending.state {
                CallState::Answered { .. } => continue,
                CallState::Open { .. } => "Cancelled before it ran.",
                CallState::Running { effect: Effect::Read, .. } => "Cancelled while it ran.",
                CallState::Running { effect: Effect::Write, .. } => INTERRUPTED_WRITE,
                CallState::Review { .. } => "It ran; its result was withheld, since the run was cancelled.",
            };
            pending.answer(Status::Cancelled, vec![text.into()]);
        }
    }

    /// Returns one result for each call. All calls must be answered.
    pub(super) fn into_results(self) -> Vec<ToolResult> {
        let result = |pending: PendingCall| match pending.state {
            CallState::Answered { result } => result,
            state => unreachable!("{} is closed at {state:?}", pending.call.id),
        };
        self.0.into_iter().map(result).collect()
    }
}

/// The result of a write that was interrupted.
const INTERRUPTED_WRITE: &str =
    "Interrupted while it ran. It may or may not have taken effect: check before repeating it.";

impl PendingCall {
    fn decide_running(
        &mut self,
        context: RunContext<'_>,
        grants: &mut BTreeSet<String>,
        decision: Decision,
    ) -> Result<(), RejectionReason> {
        let CallState::Open { request, allowed } = &mut self.state else { return Err(RejectionReason::AlreadyDecided) };
        match decision {
            Decision::Share { .. } => return Err(RejectionReason::OtherQuestion),
            Decision::Deny { reason } => self.deny(reason.as_deref()),
            Decision::Allow => *allowed = CallApproval::ByPerson,
            Decision::AllowForSession => {
                *allowed = CallApproval::ByPerson;
                grants.extend(request.as_ref().map(|request| request.grant.clone()));
            }
            Decision::AllowEdited { arguments } => {
                let edited = ToolCall { arguments, raw_arguments: None, ..self.call.clone() };
                context.tools.check(&edited).map_err(RejectionReason::BadArguments)?;
                *allowed = CallApproval::ByPerson;
                if edited.arguments != self.call.arguments {
                    self.add_note(format!("(The user changed the arguments to {} before it ran.)", edited.arguments));
                    self.call = edited;
                }
            }
        }
        Ok(())
    }

    fn decide_sharing(&mut self, output: ToolOutput, decision: Decision) -> Result<(), RejectionReason> {
        let withheld: BTreeSet<usize> = match decision {
            Decision::Share { withheld } => withheld.into_iter().collect(),
            Decision::Allow => BTreeSet::new(),
            Decision::Deny { reason } => {
                let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
                self.answer(Status::Ok, vec![format!("(It ran. The user withheld the result{reason}.)")]);
                return Ok(());
            }
            Decision::AllowForSession | Decision::AllowEdited { .. } => return Err(RejectionReason::OtherQuestion),
        };
        if let Some(index) = withheld.iter().find(|index| **index >= output.items.len()) {
            return Err(RejectionReason::NoSuchItem(*index));
        }
        let items = output.items.into_iter().enumerate().filter(|(index, _)| !withheld.contains(index));
        let mut items: Vec<String> = items.map(|(_, item)| item).collect();
        // Some providers reject an empty result.
        if items.is_empty() {
            items.push("(no results)".into());
        }
        self.answer(Status::Ok, items);
        Ok(())
    }
}
