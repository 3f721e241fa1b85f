//! The complete preview of a plan, as plain data.

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

/// The reason for a call that a person left out.
pub(super) const LEFT_OUT: &str = "a person left it out";

/// A call of a plan: its step, and the position of its item in the step's loop.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallId {
    /// The id of the step.
    pub step: String,
    /// The item, from 0; `None` for a step without a loop.
    pub item: Option<usize>,
}

/// The complete effects of a plan. A person approves it, and [`run_plan`](crate::approval::run_plan) does exactly this.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PlanPreview {
    /// The plan.
    pub plan: Plan,
    /// Its steps in the order in which they run.
    pub steps: Vec<StepPreview>,
    /// All changes of the vault. Private, because only an approval may apply them.
    pub(crate) change: Change,
    /// The highest risk of its tools and its changes.
    pub risk: Risk,
    /// Notices, for example about commands that cannot be previewed or undone, and about fields that are ignored.
    pub notices: Vec<String>,
    /// The hunks that a person left out of the files that it edits; see [`PlanPreview::keep`].
    pub left_out: Vec<LeftOutHunks>,
    /// The reason that the plan cannot run here: a step needs an editor, which this host does not have. Steps that do
    /// not depend on that step are still previewed.
    pub blocked: Option<Error>,
    /// The position of that step in the plan.
    pub(super) blocked_at: Option<usize>,
    /// The id of the step at which the plan stops, and the reason: that step and the ones after it do not run. The
    /// steps before it run only if a person approves this preview.
    pub stops: Option<(String, Error)>,
    /// Identifies the preview, so that an approval is valid for no other one: previews with the same digest have the
    /// same effects.
    pub digest: String,
    /// The state of the editor after the plan; `None` if something is left out.
    pub(super) editor: Option<Editor>,
}

/// The effects of a step.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct StepPreview {
    /// Its id.
    pub id: String,
    /// Its tool.
    pub tool: String,
    /// The description by the author of the plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
    /// The highest risk of its effects.
    pub risk: Risk,
    /// Whether it runs.
    pub state: StepState,
    /// Its calls: one, or one for each item of its loop.
    pub calls: Vec<CallPreview>,
    /// Items of its loop that are left out because their calls failed and the step has `onError: skip`; if this
    /// concerns all items, the step is skipped.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOutItem>,
    /// Items that its loop leaves out by `filter` and `unique`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub filtered: Vec<LeftOutItem>,
    /// Notices of its calls, for example about a truncated list or an unchanged file. Each occurs once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
    /// Its output.
    pub output: Value,
    /// The effects that the host carries out.
    pub effects: Vec<HostEffect>,
    /// The error that ends the plan unless a person has seen the effects of this step and approves them.
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
    /// Which parts of its calls can be left out.
    #[serde(skip)]
    pub(super) separable: SeparableParts,
    /// The range of its own actions in the change.
    #[serde(skip)]
    pub(super) actions: Range<usize>,
    /// The range of its own notices in the change.
    #[serde(skip)]
    pub(super) said: Range<usize>,
    /// Every path that it names or changes.
    #[serde(skip)]
    pub(super) paths: Vec<String>,
}

/// The state of a step in the preview.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase", tag = "is")]
pub enum StepState {
    /// It runs.
    Ready,
    /// It is skipped.
    Skipped {
        /// The reason.
        reason: String,
    },
    /// It fails, and the plan stops.
    Fails {
        /// The reason.
        reason: String,
    },
}

/// A call with its references resolved. Its output is that of its step; in a loop, it is one of the `items` of that
/// output.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CallPreview {
    /// Its arguments.
    pub args: Value,
    /// The position of its item in the loop.
    #[serde(skip)]
    pub(super) item: Option<usize>,
    /// The range of its own actions in the change.
    #[serde(skip)]
    pub(super) actions: Range<usize>,
}

impl PlanPreview {
    /// Returns its changes, file by file, with diffs.
    pub fn preview(&self) -> Preview {
        self.change.preview()
    }

    /// Returns its actions on the files of the vault, in order.
    pub fn actions(&self) -> &[Action] {
        self.change.actions()
    }

    /// Returns whether the policy permits the plan as a whole.
    pub fn permission(&self, policy: &Policy, grants: &Grants) -> Permission {
        let calls: Vec<Call<'_>> = self.calls().collect();
        match policy.decide_plan(&calls, grants) {
            Permission::Allow if self.stops.is_some() => Permission::Ask,
            decided => decided,
        }
    }

    /// Returns the calls of the steps that run, in the form for the policy.
    pub(crate) fn calls(&self) -> impl Iterator<Item = Call<'_>> {
        self.steps.iter().filter(|step| step.runs()).map(StepPreview::as_call)
    }
}

impl StepPreview {
    pub(super) fn runs(&self) -> bool {
        self.state == StepState::Ready
    }

    /// Returns its notices, each with the id of the step.
    pub(super) fn named_notices(&self) -> impl Iterator<Item = String> {
        self.notices.iter().map(|notice| format!("the step {}: {notice}", self.id))
    }

    fn as_call(&self) -> Call<'_> {
        Call { risk: self.risk, ..Call::new(&self.tool, self.toolset, self.tool_risk, &self.paths) }
    }
}

/// Returns a digest that identifies the effects of a plan.
pub(super) fn digest_of(plan: &Plan, steps: &[StepPreview], change: &Change) -> Result<String> {
    let running = || steps.iter().filter(|step| step.runs());
    let calls: Vec<&Value> = running().flat_map(|step| step.calls.iter().map(|call| &call.args)).collect();
    let effects: Vec<&HostEffect> = running().flat_map(|step| &step.effects).collect();
    // Hashed while it is written, so that its JSON is never in memory as a whole.
    let mut hasher = blake3::Hasher::new();
    serde_json::to_writer(&mut hasher, &(plan, calls, effects, change.digest()))
        .map_err(|error| Error::new(ErrorKind::Plan, format!("the plan cannot be written as JSON: {error}")))?;
    Ok(hasher.finalize().to_hex().to_string())
}
