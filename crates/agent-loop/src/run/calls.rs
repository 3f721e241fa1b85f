//! The calls of one reply on their way to their results: checked, ruled on, decided, run in order, reviewed.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::approval::{About, Decision, Digest, Question, RejectedBecause, Review, Ruling, RunId, Verdict};
use crate::error::{Error, ErrorKind, Result};
use crate::message::{CallId, History, Status, ToolCall, ToolResult};
use crate::tool::{Effect, ToolError, ToolOutput};

use super::{ReadyCall, Rules};

/// What the model is told of a call that a person or the policy refused.
const DENIED: &str = "Tool call denied";

/// All calls of a reply, in its order.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Calls(Vec<Pending>);

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Pending {
    /// With the arguments it runs with.
    call: ToolCall,
    /// For the model, in front of the result.
    #[serde(default)]
    note: Option<String>,
    step: Step,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
enum Step {
    /// It has not run.
    Open {
        /// What the policy asked when it was last heard.
        #[serde(default)]
        asked: Option<Asked>,
        /// A person allowed it.
        #[serde(default)]
        allowed: Allowed,
    },
    /// It was handed out; whether it ran is known to whoever drives the run.
    Running {
        effect: Effect,
        /// What it was handed out on, for the case that it has to be handed out again.
        #[serde(default, skip_serializing_if = "Allowed::is_not_yet")]
        allowed: Allowed,
    },
    /// It ran; a person decides what the model sees.
    Review {
        effect: Effect,
        output: ToolOutput,
    },
    Answered {
        result: ToolResult,
    },
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Asked {
    why: String,
    grant: String,
    effect: Effect,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Allowed {
    #[default]
    NotYet,
    ByPerson,
}

impl Allowed {
    fn is_not_yet(&self) -> bool {
        *self == Self::NotYet
    }
}

impl Pending {
    fn answer(&mut self, status: Status, items: Vec<String>) {
        let ToolCall { id, name, .. } = &self.call;
        let result = ToolResult { call: id.clone(), name: name.clone(), status, note: self.note.take(), items };
        self.step = Step::Answered { result };
    }

    fn deny(&mut self, reason: Option<&str>) {
        let reason = reason.map(str::trim).filter(|reason| !reason.is_empty());
        let text = reason.map_or_else(|| DENIED.to_string(), |reason| format!("{DENIED}: {reason}"));
        self.answer(Status::Denied, vec![text]);
    }

    fn add_note(&mut self, note: String) {
        self.note = Some(self.note.take().map_or(note.clone(), |before| format!("{before}\n{note}")));
    }

    /// Checks an open call and hears the policy. `Some` when it may run now.
    fn settle(&mut self, rules: Rules<'_>, grants: &BTreeSet<String>) -> Option<ReadyCall> {
        let Step::Open { asked, allowed } = &mut self.step else { return None };
        let spec = match rules.tools.check(&self.call) {
            Ok(spec) => spec,
            Err(fault) => {
                self.answer(Status::Error, vec![fault]);
                return None;
            }
        };
        match rules.policy.rule(&self.call, spec) {
            Ruling::Allow => *asked = None,
            Ruling::Ask { why, grant } => {
                let is_allowed = *allowed == Allowed::ByPerson || grants.contains(&grant);
                *asked = Some(Asked { why, grant, effect: spec.effect });
                if !is_allowed {
                    return None;
                }
            }
            Ruling::Deny { reason } => {
                self.deny(Some(&reason));
                return None;
            }
        }
        Some(ReadyCall { call: self.call.clone(), effect: spec.effect, time_limit: spec.time_limit })
    }

    fn waits_to_write(&self) -> bool {
        matches!(&self.step, Step::Open { asked: Some(asked), .. } if asked.effect == Effect::Write)
    }

    /// What a person is asked about it; nothing where the session grants it already.
    fn question(&self, run: &RunId, grants: &BTreeSet<String>) -> Option<Question> {
        let (about, effect, output) = match &self.step {
            Step::Open { asked: Some(asked), allowed: Allowed::NotYet } if !grants.contains(&asked.grant) => {
                (About::Running { why: asked.why.clone() }, asked.effect, None)
            }
            Step::Review { output, effect } => (About::Sharing { output: output.clone() }, *effect, Some(output)),
            _ => return None,
        };
        let digest = Digest::of(run, &self.call, output);
        Some(Question { run: run.clone(), call: self.call.clone(), effect, about, digest })
    }
}

impl Calls {
    /// Calls that wait; those from `granted` on are answered with `beyond`.
    pub(super) fn open(calls: Vec<ToolCall>, granted: usize, beyond: &str) -> Self {
        let open = |(index, call)| {
            let step = Step::Open { asked: None, allowed: Allowed::NotYet };
            let mut pending = Pending { call, note: None, step };
            if index >= granted {
                pending.answer(Status::Cancelled, vec![beyond.to_string()]);
            }
            pending
        };
        Self(calls.into_iter().enumerate().map(open).collect())
    }

    /// Checks all open calls and hears the policy about them.
    pub(super) fn settle(&mut self, rules: Rules<'_>, grants: &BTreeSet<String>) {
        for pending in &mut self.0 {
            pending.settle(rules, grants);
        }
    }

    /// The calls that may run now, which from here on are running: one that writes, or all that read and have no
    /// writing call before them that is about to run. A call that waits for a person holds up only the writing calls
    /// behind it.
    pub(super) fn take_ready(&mut self, rules: Rules<'_>, grants: &BTreeSet<String>) -> Vec<ReadyCall> {
        // All are settled before the first runs, so that a person is asked about all of them at once.
        let settled: Vec<_> = self.0.iter_mut().map(|pending| pending.settle(rules, grants)).collect();
        let mut ready = Vec::new();
        if self.any_writing() {
            return ready;
        }
        let (is_reading, mut a_write_waits) = (self.any_running(), false);
        for (pending, settled) in self.0.iter_mut().zip(settled) {
            let Some(call) = settled else {
                a_write_waits |= pending.waits_to_write();
                continue;
            };
            let is_write = call.effect == Effect::Write;
            if is_write && a_write_waits {
                continue;
            }
            // What reads behind a write that is about to run may depend on it.
            if is_write && (is_reading || !ready.is_empty()) {
                break;
            }
            if let Step::Open { allowed, .. } = pending.step {
                pending.step = Step::Running { effect: call.effect, allowed };
            }
            ready.push(call);
            if is_write {
                break;
            }
        }
        ready
    }

    pub(super) fn any_running(&self) -> bool {
        self.0.iter().any(|pending| matches!(pending.step, Step::Running { .. }))
    }

    fn any_writing(&self) -> bool {
        self.0.iter().any(|pending| matches!(pending.step, Step::Running { effect: Effect::Write, .. }))
    }

    pub(super) fn questions(&self, run: &RunId, grants: &BTreeSet<String>) -> Vec<Question> {
        self.0.iter().filter_map(|pending| pending.question(run, grants)).collect()
    }

    /// Takes a decision about a call that has not run and is not decided, whether or not the policy of now would have
    /// asked: what a person said before it runs counts.
    pub(super) fn decide(
        &mut self,
        rules: Rules<'_>,
        run: &RunId,
        grants: &mut BTreeSet<String>,
        decision: Decision,
    ) -> Result<(), RejectedBecause> {
        if decision.run != *run {
            return Err(RejectedBecause::OtherRun);
        }
        let pending = self.0.iter_mut().find(|pending| pending.call.id == decision.call);
        let pending = pending.ok_or(RejectedBecause::UnknownCall)?;
        pending.settle(rules, grants);
        let output = match &pending.step {
            Step::Open { allowed: Allowed::NotYet, .. } => None,
            Step::Review { output, .. } => Some(output.clone()),
            _ => return Err(RejectedBecause::AlreadyDecided),
        };
        if decision.digest != Digest::of(run, &pending.call, output.as_ref()) {
            return Err(RejectedBecause::OtherDigest);
        }
        match output {
            None => pending.decide_running(rules, grants, decision.verdict),
            Some(output) => pending.decide_sharing(output, decision.verdict),
        }
    }

    pub(super) fn finished(
        &mut self,
        rules: Rules<'_>,
        call: &CallId,
        end: Result<ToolOutput, ToolError>,
    ) -> Result<()> {
        let is_this = |pending: &&mut Pending| pending.call.id == *call;
        let running = self.0.iter_mut().find(is_this).and_then(|pending| match pending.step {
            Step::Running { effect, .. } => Some((pending, effect)),
            _ => None,
        });
        let Some((pending, effect)) = running else {
            return Err(Error::new(ErrorKind::State, format!("the call {call} is not running")));
        };
        match end {
            Err(ToolError(text)) => pending.answer(Status::Error, vec![text]),
            Ok(output) => {
                let spec = rules.tools.get(&pending.call.name);
                let review = spec.map_or(Review::Pass, |spec| rules.policy.review(&pending.call, spec));
                match review {
                    Review::Pass => pending.answer(Status::Ok, output.items),
                    Review::Ask => pending.step = Step::Review { effect, output },
                }
            }
        }
        Ok(())
    }

    /// What the process that saved this left running: a read may run again; of a write it is not known what became.
    pub(super) fn interrupted(&mut self) {
        for pending in &mut self.0 {
            match pending.step {
                Step::Running { effect: Effect::Read, allowed } => pending.step = Step::Open { asked: None, allowed },
                Step::Running { effect: Effect::Write, .. } => pending.answer(Status::Cancelled, vec![UNKNOWN.into()]),
                _ => {}
            }
        }
    }

    /// Whether these are exactly the given calls, in order.
    pub(super) fn are(&self, calls: &[&ToolCall]) -> bool {
        let same = |(pending, call): (&Pending, &&ToolCall)| {
            let is_result_of = |result: &ToolResult| result.call == call.id;
            let fits = if let Step::Answered { result } = &pending.step { is_result_of(result) } else { true };
            pending.call.id == call.id && fits
        };
        self.0.len() == calls.len() && self.0.iter().zip(calls).all(same)
    }

    /// The calls as they ran, with their results. Open ones are left out.
    pub(super) fn answered(&self) -> impl Iterator<Item = (&ToolCall, &ToolResult)> {
        self.0.iter().filter_map(|pending| match &pending.step {
            Step::Answered { result } => Some((&pending.call, result)),
            _ => None,
        })
    }

    /// One result for each call; those that have none are cancelled.
    pub(super) fn cancelled(mut self) -> Vec<ToolResult> {
        for pending in &mut self.0 {
            let text = match &pending.step {
                Step::Answered { .. } => continue,
                Step::Open { .. } => "Cancelled before it ran.",
                Step::Running { effect: Effect::Read, .. } => "Cancelled while it ran.",
                Step::Running { effect: Effect::Write, .. } => UNKNOWN,
                Step::Review { .. } => "It ran; its result was withheld, since the run was cancelled.",
            };
            pending.answer(Status::Cancelled, vec![text.into()]);
        }
        self.into_results()
    }

    /// One result for each call, all of which are answered.
    pub(super) fn into_results(self) -> Vec<ToolResult> {
        let result = |pending: Pending| match pending.step {
            Step::Answered { result } => result,
            step => unreachable!("{} is closed at {step:?}", pending.call.id),
        };
        self.0.into_iter().map(result).collect()
    }
}

/// What the model is told of a writing call that was given up while it ran.
const UNKNOWN: &str = "Interrupted while it ran. It may or may not have taken effect: check before repeating it.";

impl Pending {
    fn decide_running(
        &mut self,
        rules: Rules<'_>,
        grants: &mut BTreeSet<String>,
        verdict: Verdict,
    ) -> Result<(), RejectedBecause> {
        let Step::Open { asked, allowed } = &mut self.step else { return Err(RejectedBecause::AlreadyDecided) };
        match verdict {
            Verdict::Share { .. } => return Err(RejectedBecause::OtherQuestion),
            Verdict::Deny { reason } => self.deny(reason.as_deref()),
            Verdict::Allow => *allowed = Allowed::ByPerson,
            Verdict::AllowForSession => {
                *allowed = Allowed::ByPerson;
                grants.extend(asked.as_ref().map(|asked| asked.grant.clone()));
            }
            Verdict::AllowEdited { arguments } => {
                let edited = ToolCall { arguments, ..self.call.clone() };
                rules.tools.check(&edited).map_err(RejectedBecause::BadArguments)?;
                *allowed = Allowed::ByPerson;
                if edited.arguments != self.call.arguments {
                    self.add_note(format!("(The user changed the arguments to {} before it ran.)", edited.arguments));
                    self.call = edited;
                }
            }
        }
        Ok(())
    }

    fn decide_sharing(&mut self, output: ToolOutput, verdict: Verdict) -> Result<(), RejectedBecause> {
        let withheld: BTreeSet<usize> = match verdict {
            Verdict::Share { withheld } => withheld.into_iter().collect(),
            Verdict::Allow => BTreeSet::new(),
            Verdict::Deny { reason } => {
                let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
                self.answer(Status::Ok, vec![format!("(It ran. The user withheld the result{reason}.)")]);
                return Ok(());
            }
            Verdict::AllowForSession | Verdict::AllowEdited { .. } => return Err(RejectedBecause::OtherQuestion),
        };
        if let Some(place) = withheld.iter().find(|place| **place >= output.items.len()) {
            return Err(RejectedBecause::NoSuchItem(*place));
        }
        if !withheld.is_empty() {
            self.add_note(format!("(The user withheld {} of {} items.)", withheld.len(), output.items.len()));
        }
        let items = output.items.into_iter().enumerate().filter(|(place, _)| !withheld.contains(place));
        let items = items.map(|(_, item)| item).collect();
        self.answer(Status::Ok, items);
        Ok(())
    }
}

/// Why a decision finds no open call in a run without open calls.
pub(super) fn why_not_open(history: &History, call: &CallId) -> RejectedBecause {
    if history.has_call(call) { RejectedBecause::AlreadyDecided } else { RejectedBecause::UnknownCall }
}
