//! What a plan would do, in full, as plain data.

use std::ops::Range;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use super::foreach::LeftOutItem;
use super::schema::Plan;
use crate::action::Action;
use crate::change::{Change, LeftOutHunks, Preview, SeparableParts};
use crate::error::{Error, ErrorKind, Result};
use crate::host::Editor;
use crate::policy::{Call, Grants, Permission, Policy, Risk, Toolset};
use crate::tool::HostEffect;

/// Why a call is left out that a person does not want.
pub(super) const LEFT_OUT: &str = "a person left it out";

/// A call of a plan: its step, and the position of its item in the step's loop.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallId {
    /// The id of the step.
    pub step: String,
    /// The item, from 0; `None` for a step without a loop.
    pub item: Option<usize>,
}

/// What a plan would do, in full. A person approves it, and [`run_plan`](crate::approval::run_plan) does exactly this.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PlanPreview {
    /// The plan.
    pub plan: Plan,
    /// Its steps in the order in which they run.
    pub steps: Vec<StepPreview>,
    /// All changes of the vault. Private: they are applied by an approval only.
    pub(crate) change: Change,
    /// The worst that it does, going by its tools and its changes.
    pub risk: Risk,
    /// What cannot be previewed or undone, and what is ignored.
    pub notices: Vec<String>,
    /// What a person left out of the files that it edits, see [`PlanPreview::keep`].
    pub left_out: Vec<LeftOutHunks>,
    /// Why the plan cannot run here: a step needs an editor, and there is none. What does not depend on that step is
    /// previewed all the same.
    pub blocked: Option<Error>,
    /// That step, by its position in the plan.
    pub(super) blocked_at: Option<usize>,
    /// The id of the step at which the plan stops, and why: it and what comes after it are not done. What comes before runs
    /// only if a person approves this preview.
    pub stops: Option<(String, Error)>,
    /// Identifies what was shown, so that an approval holds for nothing else: previews with the same digest do the same.
    pub digest: String,
    /// What the editor shows then; unknown if something is left out.
    pub(super) editor: Option<Editor>,
}

/// What a step would do.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct StepPreview {
    /// Its id.
    pub id: String,
    /// Its tool.
    pub tool: String,
    /// What its author says it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
    /// The worst that it does.
    pub risk: Risk,
    /// Whether it runs.
    pub state: StepState,
    /// Its calls: one, or one for each item of its loop.
    pub calls: Vec<CallPreview>,
    /// Items of its loop that are left out because their calls failed and the step says `onError: skip`; if these are
    /// all, the step is skipped.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOutItem>,
    /// Items that its loop leaves out by `filter` and `unique`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub filtered: Vec<LeftOutItem>,
    /// What its calls say besides their outputs: a list that was cut, a file that is left as it is. Each once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
    /// Its output.
    pub output: Value,
    /// What the host does.
    pub effects: Vec<HostEffect>,
    /// The error of the plan unless a person sees what this step does and approves it.
    #[serde(skip)]
    pub(super) unless_seen: Option<Error>,
    /// Its position in the plan.
    #[serde(skip)]
    pub(super) at: usize,
    #[serde(skip)]
    pub(super) toolset: Toolset,
    #[serde(skip)]
    pub(super) tool_risk: Risk,
    /// How long its calls took.
    #[serde(skip)]
    pub(super) took: Duration,
    /// What of its calls can be left out.
    #[serde(skip)]
    pub(super) separable: SeparableParts,
    /// Which actions of the change are its own.
    #[serde(skip)]
    pub(super) actions: Range<usize>,
    /// Which notices of the change are its own.
    #[serde(skip)]
    pub(super) said: Range<usize>,
    /// Every path that it names or changes.
    #[serde(skip)]
    pub(super) paths: Vec<String>,
}

/// Whether a step runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase", tag = "is")]
pub enum StepState {
    /// It runs.
    Ready,
    /// It is left out.
    Skipped {
        /// Why.
        reason: String,
    },
    /// It fails, and the plan stops.
    Fails {
        /// Why.
        reason: String,
    },
}

/// A call with its references resolved. Its output is that of its step; of a loop, one of the `items` of that.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CallPreview {
    /// Its arguments.
    pub args: Value,
    /// The position of its item in the loop.
    #[serde(skip)]
    pub(super) item: Option<usize>,
    /// Which actions of the change are its own.
    #[serde(skip)]
    pub(super) actions: Range<usize>,
}

impl PlanPreview {
    /// What it would change, file by file, with diffs.
    pub fn preview(&self) -> Preview {
        self.change.preview()
    }

    /// What it would do to the files of the vault, in order.
    pub fn actions(&self) -> &[Action] {
        self.change.actions()
    }

    /// Whether the policy permits the plan as a whole.
    pub fn permission(&self, policy: &Policy, grants: &Grants) -> Permission {
        let calls: Vec<Call<'_>> = self.calls().collect();
        match policy.decide_plan(&calls, grants) {
            Permission::Allow if self.stops.is_some() => Permission::Ask,
            decided => decided,
        }
    }

    /// The calls of the steps that run, as the policy sees them.
    pub(crate) fn calls(&self) -> impl Iterator<Item = Call<'_>> {
        self.steps.iter().filter(|step| step.runs()).map(StepPreview::as_call)
    }
}

impl StepPreview {
    pub(super) fn runs(&self) -> bool {
        self.state == StepState::Ready
    }

    /// Its notices, each with its id.
    pub(super) fn named_notices(&self) -> impl Iterator<Item = String> {
        self.notices.iter().map(|notice| format!("the step {}: {notice}", self.id))
    }

    fn as_call(&self) -> Call<'_> {
        Call { risk: self.risk, ..Call::new(&self.tool, self.toolset, self.tool_risk, &self.paths) }
    }
}

/// Identifies what a plan does.
pub(super) fn digest_of(plan: &Plan, steps: &[StepPreview], change: &Change) -> Result<String> {
    let running = || steps.iter().filter(|step| step.runs());
    let calls: Vec<&Value> = running().flat_map(|step| step.calls.iter().map(|call| &call.args)).collect();
    let effects: Vec<&HostEffect> = running().flat_map(|step| &step.effects).collect();
    // Hashed as it is written, so that its JSON is never in memory as a whole.
    let mut hasher = blake3::Hasher::new();
    serde_json::to_writer(&mut hasher, &(plan, calls, effects, change.digest()))
        .map_err(|error| Error::new(ErrorKind::Plan, format!("the plan cannot be written as JSON: {error}")))?;
    Ok(hasher.finalize().to_hex().to_string())
}
