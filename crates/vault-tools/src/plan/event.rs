//! What is told while a plan runs.

use serde::Serialize;
use serde_json::Value;

use crate::error::Error;

/// Something happened. Serializes with its name under `event`: `run.started`, `step.progress` and so on.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event")]
pub enum Event {
    /// It begins.
    #[serde(rename = "run.started")]
    RunStarted {
        /// What the plan is for.
        goal: String,
        /// Steps in all, those that are skipped included.
        steps: usize,
    },
    /// A step begins.
    #[serde(rename = "step.started")]
    StepStarted {
        /// Which one.
        step: String,
        /// Its tool.
        tool: String,
    },
    /// A step goes on.
    #[serde(rename = "step.progress")]
    StepProgress {
        /// Which one.
        step: String,
        /// Changes and commands that are done.
        done: usize,
        /// Changes and commands in all.
        total: usize,
    },
    /// A step is done.
    #[serde(rename = "step.finished")]
    StepFinished {
        /// Which one.
        step: String,
        /// Its answer.
        output: Value,
    },
    /// A step failed: for good, or once, and it is tried again.
    #[serde(rename = "step.failed")]
    StepFailed {
        /// Which one.
        step: String,
        /// Why.
        error: Error,
        /// Which attempt it was, from 1.
        attempt: u32,
        /// Whether it is tried again.
        will_retry: bool,
    },
    /// A step is left out.
    #[serde(rename = "step.skipped")]
    StepSkipped {
        /// Which one.
        step: String,
        /// Why.
        reason: String,
    },
    /// It ends.
    #[serde(rename = "run.finished")]
    RunFinished {
        /// How.
        status: RunStatus,
        /// What `undo` takes back.
        run: Option<u64>,
    },
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RunStatus {
    /// All of it was done.
    Done,
    /// A step failed; what was done before stays.
    Failed,
    /// Somebody stopped it; what was done before stays.
    Cancelled,
}
