//! How a run ends: the outcome with its reason, and the error of a run that ended without an answer.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::budget::{Limit, RunUsage};
use crate::error::Failure;

/// The reason why a run is done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "stop", rename_all = "snake_case")]
#[non_exhaustive]
pub enum StopReason {
    /// The model answered without calling a tool.
    Answered,
    /// The model answered, but never in the requested shape.
    BadAnswer {
        /// The issues of the last answer.
        faults: String,
    },
    /// The budget is used up.
    Limit {
        /// The limit that was reached.
        limit: Limit,
    },
    /// The reply reached its length limit; its text is incomplete.
    Length,
    /// A content filter stopped the reply.
    Filtered,
    /// The model or the provider declined to answer.
    Refused,
    /// The model returned neither text nor a call. It may have reasoned.
    Empty,
    /// The run was cancelled.
    Cancelled,
    /// The model failed permanently. [`Run::retry`](super::Run::retry) tries again.
    Failed {
        /// The failure.
        failure: Failure,
    },
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answered => f.write_str("answered"),
            Self::BadAnswer { faults } => write!(f, "the answer does not have the shape that was asked for:\n{faults}"),
            Self::Limit { limit } => write!(f, "{limit}"),
            Self::Length => f.write_str("the reply was cut off by the limit on its length"),
            Self::Filtered => f.write_str("a content filter stopped the reply"),
            Self::Refused => f.write_str("the model declined to answer"),
            Self::Empty => f.write_str("the model said nothing"),
            Self::Cancelled => f.write_str("cancelled"),
            Self::Failed { failure } => write!(f, "{failure}"),
        }
    }
}

/// The outcome of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunOutcome {
    /// The reason why the run is done.
    pub stop: StopReason,
    /// The last reply to the person's message, without commentary if the provider distinguishes it from the answer;
    /// empty if there was no text. Text before calls is not included.
    pub text: String,
    /// The answer, if [`RunOptions::answer`](super::RunOptions::answer) requested one and it fits.
    pub answer: Option<Value>,
    /// The usage since the person's last message.
    pub spent: RunUsage,
}

impl RunOutcome {
    /// Returns the outcome of a run that answered.
    ///
    /// # Errors
    /// [`RunError`] with the outcome for every other [`StopReason`].
    pub fn answered(self) -> Result<Self, RunError> {
        if self.stop == StopReason::Answered { Ok(self) } else { Err(RunError(Box::new(self))) }
    }
}

/// The error of a run that ended without an answer, because the model failed, the budget was used up, the reply was cut
/// off, or for another [`StopReason`]. It displays as that reason.
#[derive(Debug, Clone, PartialEq)]
pub struct RunError(Box<RunOutcome>);

impl RunError {
    /// Returns the outcome: the reason, the model's last text, and the usage.
    pub fn outcome(&self) -> &RunOutcome {
        &self.0
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.stop.fmt(f)
    }
}

impl std::error::Error for RunError {}
