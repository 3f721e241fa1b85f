//! Approval of tool calls: the policy's permission, and a person's decision, which is bound to one call.
//!
//! ```text
//! call ──> CallPolicy::permission ──┬─ Allow ───────────────────────────────> runs
//!                               ├─ Ask ──> a grant or a decision? ─ yes ─> runs
//!                               │                 └─ no ──> Question ──> a person ──> BoundDecision
//!                               └─ Deny ──> a result that says why
//! ```
//!
//! `run/calls.rs` asks the policy about every open call, applies decisions, and runs approved calls in order.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::canonical::{canonical_json, fingerprint};
use crate::message::{CallId, ToolCall};
use crate::tool::{Effect, ToolOutput, ToolSpec};

/// The permission that a policy gives to a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ruling", rename_all = "snake_case")]
pub enum CallPermission {
    /// The call runs.
    Allow,
    /// A person decides.
    Ask {
        /// The reason, in words for the person.
        why: String,
        /// The grant that "allow for the session" gives: it covers every later call whose permission asks for the same
        /// grant.
        grant: String,
    },
    /// The call does not run. No decision and no grant overrules this.
    Deny {
        /// The reason, in words for the model.
        reason: String,
    },
}

/// Whether a person sees a result before the model does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Review {
    /// The model gets the result immediately.
    Pass,
    /// A person may withhold items of it first.
    Ask,
}

/// Decides which calls run. It must be a pure function of configuration and call: it is evaluated again whenever a run
/// resumes, so that a decision never outlives the policy under which it was made.
pub trait CallPolicy: Send + Sync {
    /// Returns whether this call may run.
    fn permission(&self, call: &ToolCall, spec: &ToolSpec) -> CallPermission;

    /// Returns whether a person sees the result of this call before the model does.
    fn review(&self, _call: &ToolCall, _spec: &ToolSpec) -> Review {
        Review::Pass
    }
}

/// Allows reads and asks before writes. A grant covers one tool.
#[derive(Debug, Clone, Copy, Default)]
pub struct AskBeforeWriting;

impl CallPolicy for AskBeforeWriting {
    fn permission(&self, call: &ToolCall, spec: &ToolSpec) -> CallPermission {
        match spec.effect {
            Effect::Read => CallPermission::Allow,
            Effect::Write => {
                CallPermission::Ask { why: format!("{} changes something", call.name), grant: call.name.clone() }
            }
        }
    }
}

/// Allows everything. Use it only for tools that can do no harm.
#[derive(Debug, Clone, Copy, Default)]
pub struct AllowAll;

impl CallPolicy for AllowAll {
    fn permission(&self, _: &ToolCall, _: &ToolSpec) -> CallPermission {
        CallPermission::Allow
    }
}

impl<F: Fn(&ToolCall, &ToolSpec) -> CallPermission + Send + Sync> CallPolicy for F {
    fn permission(&self, call: &ToolCall, spec: &ToolSpec) -> CallPermission {
        self(call, spec)
    }
}

/// The id of a run. It must be unique among all runs of all users of a program.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(pub String);

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The fingerprint that binds a decision, as 64 hexadecimal digits: BLAKE3 over the run, the call's id, its name, its
/// arguments with sorted keys, and, if the question is about the result, the items of the result. Each is preceded by
/// its length.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest(pub String);

impl Digest {
    /// Returns the digest of a call of a run, and of its result if the question is about the result.
    pub fn of(run: &RunId, call: &ToolCall, output: Option<&ToolOutput>) -> Self {
        let arguments = canonical_json(&call.arguments);
        let result = output
            .into_iter()
            .flat_map(|output| std::iter::once("result").chain(output.items.iter().map(String::as_str)));
        let texts = [run.0.as_str(), &call.id.0, &call.name, &arguments];
        Self(fingerprint(texts.into_iter().chain(result)).to_string())
    }
}

/// A question for a person about a call or its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// The run that asks.
    pub run: RunId,
    /// The call.
    pub call: ToolCall,
    /// Whether the tool has side effects.
    pub effect: Effect,
    /// The subject: running the call, or sharing its result.
    pub about: QuestionSubject,
    /// The digest that a decision must repeat.
    pub digest: Digest,
}

/// The subject of a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "about", rename_all = "snake_case")]
pub enum QuestionSubject {
    /// Whether the call may run.
    Running {
        /// The reason why the policy asks.
        why: String,
    },
    /// Which items of the result the model may see.
    Sharing {
        /// The result. A decision refers to its items by index.
        output: ToolOutput,
    },
}

impl Question {
    /// Binds a decision to this question.
    pub fn decide(&self, decision: Decision) -> BoundDecision {
        BoundDecision { run: self.run.clone(), call: self.call.id.clone(), digest: self.digest.clone(), decision }
    }
}

/// A person's decision, bound to exactly what the person saw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BoundDecision {
    /// The run.
    pub run: RunId,
    /// The call.
    pub call: CallId,
    /// The digest of the question.
    pub digest: Digest,
    /// The decision itself.
    #[serde(rename = "verdict")]
    pub decision: Decision,
}

/// A person's answer to a [`Question`]: about running a call, or about sharing its result with the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Decision {
    /// The call runs once.
    Allow,
    /// The call runs, and so does every later call in this run that asks for the same grant.
    AllowForSession,
    /// The call runs once, with edited arguments. They must fit the schema, and the result tells the model about the
    /// edit.
    AllowEdited {
        /// All arguments, the unchanged ones included.
        arguments: Value,
    },
    /// The call does not run, or, if the question is about its result, the model sees none of it.
    Deny {
        /// A reason for the model, if the person gives one.
        reason: Option<String>,
    },
    /// The model sees the result without these items.
    Share {
        /// Indices into the result's items, from 0.
        withheld: Vec<usize>,
    },
}

/// Why a decision was rejected. The question stays open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Rejection {
    /// The call that the decision named.
    pub call: CallId,
    /// The reason.
    pub why: RejectionReason,
}

/// Why a decision was rejected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RejectionReason {
    /// The decision belongs to another run.
    OtherRun,
    /// No such call is open.
    UnknownCall,
    /// The call has been decided already, or runs without a decision.
    AlreadyDecided,
    /// The call, its arguments or its result differ from those that the question showed.
    OtherDigest,
    /// The decision is about running the call although the question is about sharing its result, or the other way
    /// round.
    OtherQuestion,
    /// The edited arguments do not fit the schema. The text names each issue.
    BadArguments(String),
    /// The result has no item at this index.
    NoSuchItem(usize),
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { call, why } = self;
        match why {
            RejectionReason::OtherRun => write!(f, "{call}: the decision belongs to another run"),
            RejectionReason::UnknownCall => write!(f, "{call}: no such call is open"),
            RejectionReason::AlreadyDecided => write!(f, "{call}: it has been decided already"),
            RejectionReason::OtherDigest => write!(f, "{call}: the decision was made about other content; ask again"),
            RejectionReason::OtherQuestion => write!(f, "{call}: the decision answers another question"),
            RejectionReason::BadArguments(faults) => write!(f, "{call}: {faults}"),
            RejectionReason::NoSuchItem(index) => write!(f, "{call}: its result has no item {index}"),
        }
    }
}

impl std::error::Error for Rejection {}

/// The decisions that [`Run::decide`](crate::Run::decide) rejected, at least one. Their questions stay open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejections(pub Vec<Rejection>);

impl fmt::Display for Rejections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<String> = self.0.iter().map(Rejection::to_string).collect();
        f.write_str(&texts.join("; "))
    }
}

impl std::error::Error for Rejections {}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_digest_is_of_run_id_name_arguments_and_result() {
        let run = RunId("r".into());
        let call = ToolCall::new("1", "move", json!({"from": "a", "to": "b"}));
        let digest = Digest::of(&run, &call, None);
        let same = ToolCall { arguments: serde_json::from_str(r#"{"to":"b","from":"a"}"#).unwrap(), ..call.clone() };
        assert_eq!(digest, Digest::of(&run, &same, None));
        let output = ToolOutput::items(["ab", "c"]);
        let others = [
            Digest::of(&RunId("s".into()), &call, None),
            Digest::of(&run, &ToolCall { id: "2".into(), ..call.clone() }, None),
            Digest::of(&run, &ToolCall { name: "copy".into(), ..call.clone() }, None),
            Digest::of(&run, &ToolCall { arguments: json!({"from": "a", "to": "c"}), ..call.clone() }, None),
            Digest::of(&run, &call, Some(&output)),
            Digest::of(&run, &call, Some(&ToolOutput::items(["a", "bc"]))),
        ];
        for (index, other) in others.iter().enumerate() {
            assert_ne!(&digest, other);
            assert!(!others[..index].contains(other));
        }
    }
}
