//! How a run ends: the outcome with its reason, and the error of a run that ended without an answer.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::budget::{Limit, RunUsage};
use crate::error::Failure;

/// Why a run is done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "stop", rename_all = "snake_case")]
#[non_exhaustive]
pub enum StopReason {
    /// The model answered without calling a tool.
    Answered,
    /// The model answered, but never in the shape that was asked for.
    BadAnswer {
        /// What was wrong with the last one.
        faults: String,
    },
    /// The budget is used up.
    Limit {
        /// Which part of it.
        limit: Limit,
    },
    /// The reply hit its limit of length; its text is incomplete.
    Length,
    /// A content filter stopped the reply.
    Filtered,
    /// The model or the provider declined to answer.
    Refused,
    /// The model said nothing and called nothing; it may have reasoned.
    Empty,
    /// It was cancelled.
    Cancelled,
    /// The model failed for good. [`Run::retry`](super::Run::retry) tries again.
    Failed {
        /// How.
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

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunOutcome {
    /// Why.
    pub stop: StopReason,
    /// The last reply to the person's message, without commentary where the provider tells it apart from the answer; empty
    /// if it said nothing. What was said before calls is no part of it.
    pub text: String,
    /// The answer, where [`RunOptions::answer`](super::RunOptions::answer) asked for one and it fits.
    pub answer: Option<Value>,
    /// What was used since the person's last message.
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
/// off, or for another [`StopReason`]. Its text is that of the reason.
#[derive(Debug, Clone, PartialEq)]
pub struct RunError(Box<RunOutcome>);

impl RunError {
    /// The outcome: the reason, what the model said last, and what was spent.
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
