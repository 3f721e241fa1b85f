//! Who decides that a call may run: the policy, then a person whose decision is bound to exactly one call.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::canonical::{Fingerprint, canonical_json};
use crate::message::{CallId, ToolCall};
use crate::tool::{Effect, ToolOutput, ToolSpec};

/// What a policy says of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ruling", rename_all = "snake_case")]
pub enum Ruling {
    /// It runs.
    Allow,
    /// A person decides.
    Ask {
        /// Why, in words for the person.
        why: String,
        /// What "allow for the session" allows from then on: every call whose ruling asks for the same grant.
        grant: String,
    },
    /// It does not run. No decision and no grant overrules this.
    Deny {
        /// Why, in words for the model.
        reason: String,
    },
}

/// Whether a person sees a result before the model does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Review {
    /// The model gets the result at once.
    Pass,
    /// A person may withhold items of it first.
    Ask,
}

/// Decides about calls. A pure function of configuration and call: it is asked again whenever a run goes on, so that a
/// decision never outlives the policy it was made under.
pub trait Policy: Send + Sync {
    /// Whether this call runs.
    fn rule(&self, call: &ToolCall, spec: &ToolSpec) -> Ruling;

    /// Whether a person sees its result first.
    fn review(&self, call: &ToolCall, spec: &ToolSpec) -> Review {
        let _ = (call, spec);
        Review::Pass
    }
}

/// What reads runs; before something is written, a person is asked. A grant is for one tool.
#[derive(Debug, Clone, Copy, Default)]
pub struct AskBeforeWriting;

impl Policy for AskBeforeWriting {
    fn rule(&self, call: &ToolCall, spec: &ToolSpec) -> Ruling {
        match spec.effect {
            Effect::Read => Ruling::Allow,
            Effect::Write => Ruling::Ask { why: format!("{} changes something", call.name), grant: call.name.clone() },
        }
    }
}

/// Everything runs. For tools that cannot do harm.
#[derive(Debug, Clone, Copy, Default)]
pub struct AllowAll;

impl Policy for AllowAll {
    fn rule(&self, _: &ToolCall, _: &ToolSpec) -> Ruling {
        Ruling::Allow
    }
}

impl<F: Fn(&ToolCall, &ToolSpec) -> Ruling + Send + Sync> Policy for F {
    fn rule(&self, call: &ToolCall, spec: &ToolSpec) -> Ruling {
        self(call, spec)
    }
}

/// The name of a run, unique among all runs of a program's users.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(pub String);

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a decision is bound to, in 64 hexadecimal digits: BLAKE3 over the run, the call's id, its name, its arguments
/// with sorted keys, and the items of its result where those are the question; each with its length before it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest(pub String);

impl Digest {
    /// Of a call of a run, and of its result if that is what is asked about.
    pub fn of(run: &RunId, call: &ToolCall, output: Option<&ToolOutput>) -> Self {
        let mut all = Fingerprint::of([&run.0, &call.id.0, &call.name, &*canonical_json(&call.arguments)]);
        if let Some(output) = output {
            all.add("result");
            output.items.iter().for_each(|item| all.add(item));
        }
        Self(all.hex())
    }
}

/// What a person is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// The run it belongs to.
    pub run: RunId,
    /// The call.
    pub call: ToolCall,
    /// What the tool does to the world.
    pub effect: Effect,
    /// What is asked about it.
    pub about: About,
    /// What a decision has to name.
    pub digest: Digest,
}

/// What a question is about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "about", rename_all = "snake_case")]
pub enum About {
    /// Whether the call may run.
    Running {
        /// Why the policy asks.
        why: String,
    },
    /// What of its result the model may see.
    Sharing {
        /// The result; a decision names items by their place in it.
        output: ToolOutput,
    },
}

impl Question {
    /// The decision about it.
    pub fn decide(&self, verdict: Verdict) -> Decision {
        Decision { run: self.run.clone(), call: self.call.id.clone(), digest: self.digest.clone(), verdict }
    }
}

/// What a person said, bound to what the person saw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// The run.
    pub run: RunId,
    /// The call.
    pub call: CallId,
    /// Of the question.
    pub digest: Digest,
    /// What is to happen.
    pub verdict: Verdict,
}

/// What is to happen with a call or its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// It runs, this once.
    Allow,
    /// It runs, and in this run so does every later call that asks for the same grant.
    AllowForSession,
    /// It runs once, with other arguments; they must fit the schema, and the model is told.
    AllowEdited {
        /// All arguments, the unchanged ones included.
        arguments: Value,
    },
    /// It does not run; or the model sees nothing of its result.
    Deny {
        /// For the model, if the person wants to say why.
        reason: Option<String>,
    },
    /// The model sees the result without these items.
    Share {
        /// Places in the result's items, from 0.
        withheld: Vec<usize>,
    },
}

/// Why a decision was not taken. The question stays open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejection {
    /// The call it named.
    pub call: CallId,
    /// What was wrong with it.
    pub why: RejectedBecause,
}

/// What was wrong with a decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RejectedBecause {
    /// It is of another run.
    OtherRun,
    /// No such call is open.
    UnknownCall,
    /// The call is decided already, or runs without a decision.
    AlreadyDecided,
    /// The call, its arguments or its result are not those that were asked about.
    OtherDigest,
    /// A verdict about running where sharing was the question, or the other way round.
    OtherQuestion,
    /// The edited arguments do not fit; the text names each fault.
    BadArguments(String),
    /// The result has no item at this place.
    NoSuchItem(usize),
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { call, why } = self;
        match why {
            RejectedBecause::OtherRun => write!(f, "{call}: the decision is of another run"),
            RejectedBecause::UnknownCall => write!(f, "{call}: no such call is open"),
            RejectedBecause::AlreadyDecided => write!(f, "{call}: it is decided already"),
            RejectedBecause::OtherDigest => write!(f, "{call}: it is not what was asked about; ask again"),
            RejectedBecause::OtherQuestion => write!(f, "{call}: the verdict answers another question"),
            RejectedBecause::BadArguments(faults) => write!(f, "{call}: {faults}"),
            RejectedBecause::NoSuchItem(place) => write!(f, "{call}: its result has no item {place}"),
        }
    }
}

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
