//! What a plan would do: its steps run on one overlay, so that later ones see what earlier ones wrote.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Map, Value};

use super::order::captures;
use super::parameters::Parameters;
use super::reference::Scope;
use super::schema::{OnError, Plan, Step};
use super::validate::Checked;
use crate::change::Change;
use crate::error::{Error, ErrorKind, Result};
use crate::host::Editor;
use crate::log::{Decision, Record};
use crate::policy::{Attendance, Call, Grants, Risk, Rules, Toolset, Verdict};
use crate::tool::{Draft, Effect, Fault, StepCache, Stop, Tool};
use crate::toolbox::Toolbox;

/// Calls that a loop may make.
const MOST_ITEMS: usize = 10_000;

/// Arguments and answers that the preview of one plan may hold in memory, in bytes.
const MAX_ANSWER_BYTES: usize = 256_000_000;

/// What a plan would do, in full. It is what a person approves, and what [`super::run`] does.
#[derive(Debug, Clone)]
pub struct PlanPreview {
    /// The plan.
    pub plan: Plan,
    /// Its steps in the order in which they run.
    pub steps: Vec<StepPreview>,
    /// All that is changed.
    pub change: Change,
    /// What it does at worst, by its tools and its changes.
    pub risk: Risk,
    /// What cannot be previewed or undone, in words.
    pub notices: Vec<String>,
    /// Binds an approval to what was shown: two previews with the same digest do the same.
    pub digest: String,
    pub(super) editor: Editor,
}

/// What a step would do.
#[derive(Debug, Clone, Serialize)]
pub struct StepPreview {
    /// Its id.
    pub id: String,
    /// Its tool.
    pub tool: String,
    /// What its author says it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
    /// What it does at worst.
    pub risk: Risk,
    /// What becomes of it.
    pub state: StepState,
    /// Its calls: one, or one for each item of its loop.
    pub calls: Vec<CallPreview>,
    /// Its answer.
    pub output: Value,
    /// What it has the host do.
    pub effects: Vec<Effect>,
    #[serde(skip)]
    pub(super) toolset: Toolset,
    #[serde(skip)]
    tool_risk: Risk,
    /// Which actions of the change are its own.
    #[serde(skip)]
    pub(super) actions: Range<usize>,
    /// Every path that it names or changes.
    #[serde(skip)]
    pub(super) paths: Vec<String>,
}

/// What becomes of a step.
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
}

/// One call with its references resolved. Its answer is that of its step, or of a loop in the `items` of that.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CallPreview {
    /// Its arguments.
    pub args: Value,
}

impl PlanPreview {
    /// What the policy says of the whole plan.
    pub fn verdict(&self, rules: &Rules, grants: &Grants, attendance: Attendance) -> Verdict {
        let calls: Vec<Call<'_>> = self.calls().collect();
        rules.decide_plan(&calls, grants, attendance)
    }

    /// The calls of the steps that run, as the policy sees them.
    pub(super) fn calls(&self) -> impl Iterator<Item = Call<'_>> {
        self.steps.iter().filter(|step| step.state == StepState::Ready).map(StepPreview::as_call)
    }
}

impl StepPreview {
    fn as_call(&self) -> Call<'_> {
        let Self { tool, toolset, tool_risk, risk, paths, .. } = self;
        Call { tool, toolset: *toolset, tool_risk: *tool_risk, risk: *risk, paths }
    }
}

/// Runs a plan on an overlay. Nothing is changed.
///
/// # Errors
/// A missing parameter; the error of a step whose failure stops the plan, with the step and the item it failed at;
/// [`ErrorKind::Denied`] when a step, or something it would change, is denied.
pub fn preview(
    toolbox: &mut Toolbox,
    checked: &Checked,
    parameters: &Parameters,
    stop: Stop<'_>,
) -> Result<PlanPreview> {
    parameters.require(&checked.parameters)?;
    let vault = Arc::clone(toolbox.vault());
    let (overlay, editor, now) = (vault.overlay(), toolbox.editor()?, toolbox.now());
    let plan = &checked.plan;
    let mut rehearsal = Rehearsal {
        toolbox,
        draft: Draft { vault: &vault, overlay, editor, effects: Vec::new(), now, cache: StepCache::default() },
        outputs: BTreeMap::new(),
        captures: captures(plan),
        parameters,
        held_bytes: 0,
    };
    // Who is the last to look at the answer of a step; others are not kept for it.
    let waits_for = |at: &usize| checked.order.waits_for[*at].iter().copied();
    let mut awaited_until = BTreeMap::new();
    for (turn, at) in checked.order.steps.iter().enumerate() {
        awaited_until.extend(waits_for(at).map(|before| (before, turn)));
    }
    let mut steps: Vec<StepPreview> = Vec::with_capacity(plan.steps.len());
    let mut left_out: BTreeMap<usize, String> = BTreeMap::new();
    for (turn, at) in checked.order.steps.iter().enumerate() {
        let step = &plan.steps[*at];
        let before = checked.order.waits_for[*at].iter().find(|before| left_out.contains_key(before));
        let result = match before {
            Some(before) => {
                let reason = format!("it depends on the step {}, which is skipped", plan.steps[*before].id);
                Ok(rehearsal.skipped(step, reason)?)
            }
            None => rehearsal.step(step, awaited_until.contains_key(at), stop),
        };
        let preview = match result {
            Ok(preview) => preview,
            Err(error) if plan.on_error(step) == OnError::Skip && may_be_skipped(&error) => {
                rehearsal.skipped(step, error.to_string())?
            }
            Err(error) => {
                rehearsal.log(step, &error);
                return Err(error);
            }
        };
        if let StepState::Skipped { reason } = &preview.state {
            left_out.insert(*at, reason.clone());
        }
        steps.push(preview);
        for before in waits_for(at).filter(|before| awaited_until.get(before) == Some(&turn)) {
            rehearsal.outputs.remove(&plan.steps[before].id);
        }
    }
    rehearsal.finish(plan, steps)
}

/// Neither a no nor a stop is a failure that a plan may pass over.
fn may_be_skipped(error: &Error) -> bool {
    !matches!(error.kind(), ErrorKind::Denied | ErrorKind::Cancelled)
}

struct Rehearsal<'a, 'v> {
    toolbox: &'a mut Toolbox,
    draft: Draft<'v>,
    /// Answers that steps still to come look at.
    outputs: BTreeMap<String, Value>,
    captures: BTreeMap<String, String>,
    parameters: &'a Parameters,
    /// Bytes of all arguments and answers so far.
    held_bytes: usize,
}

impl Rehearsal<'_, '_> {
    /// Runs a step; if it fails, overlay and editor are as they were.
    fn step(&mut self, step: &Step, is_awaited: bool, stop: Stop<'_>) -> Result<StepPreview> {
        let (mark, editor) = (self.draft.overlay.mark(), self.draft.editor.clone());
        let result = self.calls(step, is_awaited, mark, stop);
        if result.is_err() {
            self.draft.overlay.rollback(mark);
            self.draft.editor = editor;
            self.draft.effects.clear();
        }
        result
    }

    fn calls(&mut self, step: &Step, is_awaited: bool, mark: usize, stop: Stop<'_>) -> Result<StepPreview> {
        let timeout = step.timeout_ms.map(|millis| Instant::now() + Duration::from_millis(millis));
        let deadline = [stop.deadline, timeout].into_iter().flatten().min();
        let stop = Stop { deadline, ..stop };
        let mut calls = Vec::new();
        let mut paths = Vec::new();
        let count = self.count(step)?;
        let mut answers = Vec::new();
        self.draft.cache = StepCache::default();
        for number in 0..count.unwrap_or(1) {
            let place = |error: Error| told(error, step, count.map(|count| (number, count)));
            stop.check().map_err(place)?;
            let args = self.args(step, number).map_err(|faults| place(unresolved(&faults)))?;
            let done = self.toolbox.run_on(&mut self.draft, &step.tool, args, stop).map_err(place)?;
            paths.extend(done.paths);
            self.held_bytes += bytes_of(&done.args) + bytes_of(&done.output);
            if self.held_bytes > MAX_ANSWER_BYTES {
                return Err(place(too_many_answers()));
            }
            calls.push(CallPreview { args: done.args });
            answers.push(done.output);
        }
        let output = match count {
            Some(count) => {
                Map::from_iter([("count".to_owned(), count.into()), ("items".to_owned(), Value::Array(answers))]).into()
            }
            None => answers.pop().unwrap_or_default(),
        };
        if is_awaited {
            self.outputs.insert(step.id.clone(), output.clone());
        }
        let end = self.draft.overlay.mark();
        let spec = self.toolbox.spec(&step.tool)?;
        Ok(StepPreview {
            id: step.id.clone(),
            tool: spec.name.clone(),
            preview: step.preview.clone(),
            risk: spec.risk,
            state: StepState::Ready,
            calls,
            output,
            effects: std::mem::take(&mut self.draft.effects),
            toolset: spec.toolset,
            tool_risk: spec.risk,
            actions: mark..end,
            paths,
        })
    }

    fn skipped(&mut self, step: &Step, reason: String) -> Result<StepPreview> {
        let mark = self.draft.overlay.mark();
        let spec = self.toolbox.spec(&step.tool)?;
        Ok(StepPreview {
            id: step.id.clone(),
            tool: spec.name.clone(),
            preview: step.preview.clone(),
            risk: spec.risk,
            state: StepState::Skipped { reason },
            calls: Vec::new(),
            output: Value::Null,
            effects: Vec::new(),
            toolset: spec.toolset,
            tool_risk: spec.risk,
            actions: mark..mark,
            paths: Vec::new(),
        })
    }

    /// The plan ends here, so that this is the line that the log has of it.
    fn log(&mut self, step: &Step, error: &Error) {
        let decision = if error.kind() == ErrorKind::Denied { Decision::Denied } else { Decision::Allowed };
        let args = Value::Object(step.args.clone());
        self.toolbox.log(&Record::new(&step.tool, &args, Err(error), 0, decision));
    }

    /// How many items a loop has; `None` for a step that is none.
    fn count(&self, step: &Step) -> Result<Option<usize>> {
        let Some(foreach) = &step.foreach else { return Ok(None) };
        let scope = self.scope();
        let list = scope.list(&foreach.from).map_err(|message| {
            let fault = Fault { pointer: "/foreach/from".to_owned(), message };
            told(unresolved(&[fault]), step, None)
        })?;
        let Some(items) = list else {
            let message = format!("`{}` is no list, so there is nothing to loop over", foreach.from);
            return Err(told(Error::new(ErrorKind::Plan, message), step, None));
        };
        if items.len() > MOST_ITEMS {
            let message = format!("a loop over {} items; {MOST_ITEMS} at most", items.len());
            return Err(told(Error::new(ErrorKind::Plan, message), step, None));
        }
        Ok(Some(items.len()))
    }

    fn scope(&self) -> Scope<'_> {
        Scope {
            steps: Some(&self.outputs),
            captures: Some(&self.captures),
            parameters: Some(&self.parameters.0),
            bindings: BTreeMap::new(),
        }
    }

    fn args(&self, step: &Step, number: usize) -> Result<Value, Vec<Fault>> {
        let mut scope = self.scope();
        if let Some(foreach) = &step.foreach {
            let item = scope.list(&foreach.from).ok().flatten().and_then(|items| items.get(number)).cloned();
            scope.bindings.insert(foreach.item_name.clone(), item.unwrap_or_default());
            if let Some(index) = &foreach.index_name {
                scope.bindings.insert(index.clone(), number.into());
            }
        }
        let schema = self.toolbox.tool(&step.tool).map_or(&Value::Null, Tool::marked_schema);
        scope.resolve(&Value::Object(step.args.clone()), schema, "/args")
    }

    fn finish(self, plan: &Plan, mut steps: Vec<StepPreview>) -> Result<PlanPreview> {
        let mut change = self.draft.overlay.into_change();
        change.tell_only(&|path| self.toolbox.rules().permits_path(path.as_str()));
        for step in &mut steps {
            if change.deletes_in(step.actions.clone()) {
                step.risk = step.risk.max(Risk::Delete);
            }
            let changed = change.paths_in(step.actions.clone());
            self.toolbox.rules().permit_changes(&step.paths, &changed).map_err(|error| of_step(&step.id, &error))?;
            step.paths.extend(changed);
        }
        let running = || steps.iter().filter(|step| step.state == StepState::Ready);
        let grants = Grants::default();
        for step in running() {
            if let Verdict::Deny(reason) = self.toolbox.rules().decide(&step.as_call(), &grants, Attendance::Attended) {
                return Err(of_step(&step.id, &Error::new(ErrorKind::Denied, reason)));
            }
        }
        let mut notices: Vec<String> = change.notices().map(str::to_owned).collect();
        for step in running() {
            notices.extend(step.effects.iter().map(|effect| notice(&step.id, effect)));
        }
        let told = Told {
            plan,
            calls: running().flat_map(|step| step.calls.iter().map(|call| &call.args)).collect(),
            effects: running().flat_map(|step| &step.effects).collect(),
            change: change.digest(),
        };
        let digest = told.digest()?;
        let risk = running().map(|step| step.risk).max().unwrap_or(Risk::Read);
        Ok(PlanPreview { plan: plan.clone(), steps, change, risk, notices, digest, editor: self.draft.editor })
    }
}

/// About the memory that a value takes.
fn bytes_of(value: &Value) -> usize {
    let inside = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(bytes_of).sum(),
        Value::Object(fields) => fields.iter().map(|(name, value)| name.len() + bytes_of(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    inside + size_of::<Value>()
}

fn too_many_answers() -> Error {
    let what = format!("the answers of one plan can take {} MB, and these are more", MAX_ANSWER_BYTES / 1_000_000);
    Error::new(ErrorKind::Plan, what)
        .remedy("make it several plans, or read less in one: fewer notes, or shorter lists")
}

/// What the digest of a preview is of.
#[derive(Serialize)]
struct Told<'a> {
    plan: &'a Plan,
    calls: Vec<&'a Value>,
    effects: Vec<&'a Effect>,
    change: String,
}

impl Told<'_> {
    /// The hash of it as JSON, which is nowhere as a whole.
    fn digest(&self) -> Result<String> {
        let mut hasher = blake3::Hasher::new();
        serde_json::to_writer(&mut hasher, self)
            .map_err(|error| Error::new(ErrorKind::Plan, format!("the plan is no JSON: {error}")))?;
        Ok(hasher.finalize().to_hex().to_string())
    }
}

fn notice(step: &str, effect: &Effect) -> String {
    let lost = match effect {
        Effect::Command { .. } => ": what it does is not previewed, and undo does not take it back",
        Effect::Open { .. } => "",
    };
    format!("the step {step} {effect}{lost}")
}

fn of_step(step: &str, error: &Error) -> Error {
    Error::new(error.kind(), format!("the step {step}: {}", error.message()))
}

fn unresolved(faults: &[Fault]) -> Error {
    let told: Vec<String> = faults.iter().map(ToString::to_string).collect();
    Error::new(ErrorKind::Plan, told.join("; "))
}

/// The error, with the step and item it happened at.
fn told(error: Error, step: &Step, item: Option<(usize, usize)>) -> Error {
    let item = item.map(|(number, count)| format!(", item {} of {count}", number + 1)).unwrap_or_default();
    let path = error.path().map(|path| format!("{path}: ")).unwrap_or_default();
    let message = format!("the step {} ({}{item}): {path}{}", step.id, step.tool, error.message());
    let told = Error::new(error.kind(), message);
    match error.remedy_text() {
        Some(remedy) => told.remedy(remedy),
        None => told,
    }
}
