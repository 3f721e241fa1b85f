//! The events of a running plan.

use serde::Serialize;
use serde_json::Value;

use crate::error::Error;

/// What happens while a plan runs. Serializes with its name under `event`: `run.started`, `step.progress` and so on.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event")]
#[non_exhaustive]
pub enum Event {
    /// The run begins.
    #[serde(rename = "run.started")]
    RunStarted {
        /// The goal of the plan.
        goal: String,
        /// The number of steps, including those that are skipped.
        steps: usize,
    },
    /// A step begins.
    #[serde(rename = "step.started")]
    StepStarted {
        /// Its id.
        step: String,
        /// Its tool.
        tool: String,
    },
    /// A step makes progress.
    #[serde(rename = "step.progress")]
    StepProgress {
        /// Its id.
        step: String,
        /// Changes and commands that are done.
        done: usize,
        /// Changes and commands in all.
        total: usize,
    },
    /// A step is done.
    #[serde(rename = "step.finished")]
    StepFinished {
        /// Its id.
        step: String,
        /// Its output.
        output: Value,
    },
    /// An attempt of a step failed.
    #[serde(rename = "step.failed")]
    StepFailed {
        /// Its id.
        step: String,
        /// Why.
        error: Error,
        /// The number of the attempt, from 1.
        attempt: u32,
        /// Whether there is another attempt.
        will_retry: bool,
    },
    /// A step is skipped.
    #[serde(rename = "step.skipped")]
    StepSkipped {
        /// Its id.
        step: String,
        /// Why.
        reason: String,
    },
    /// The run ends.
    #[serde(rename = "run.finished")]
    RunFinished {
        /// How it ended.
        status: RunStatus,
        /// The transaction that `undo` reverts.
        run: Option<u64>,
    },
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum RunStatus {
    /// All steps were done or skipped.
    Done,
    /// A step failed; the steps before it stay.
    Failed,
    /// It was cancelled; the steps before it stay.
    Cancelled,
}
