//! Previews a plan: runs its steps on one overlay, so that later steps see what earlier ones wrote.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::iter;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::dead_links::dead_links;
use super::foreach::{self, Item, LeftOutItem};
use super::order::Order;
use super::preview::{CallId, CallPreview, LEFT_OUT, PlanPreview, StepPreview, StepState, digest_of};
use super::reference::{ResolvedValue, Root};
use super::schema::{OnError, Plan, Step};
use super::scope::{Parameters, Scope};
use super::validate::ValidPlan;
use crate::change::Notice;
use crate::error::{Error, ErrorKind, Result};
use crate::log::{Approval, Record};
use crate::policy::Risk;
use crate::sandbox::SafePath;
use crate::tool::{Cancel, Draft, HostEffect, Issue, StepCache, Tool};
use crate::toolbox::{CallResult, Toolbox};

/// The maximum number of calls of a loop.
const MAX_ITEMS: usize = 10_000;

/// The maximum memory in bytes for the arguments and outputs of one plan.
const MAX_OUTPUT_BYTES: usize = 256_000_000;

/// Runs a plan on an overlay. Nothing is changed.
///
/// # Errors
/// A missing parameter; the error of a step whose failure ends the plan, with the step and the item of its loop;
/// [`ErrorKind::Denied`] if a step, or one of its changes, is denied.
pub fn dry_run(
    toolbox: &mut Toolbox,
    checked: &ValidPlan,
    parameters: &Parameters,
    cancel: Cancel<'_>,
) -> Result<PlanPreview> {
    dry_run_without(toolbox, checked, parameters, &BTreeSet::new(), cancel)
}

/// Like [`dry_run`], but without the calls that a person left out, and without the steps that depend on a step of which
/// nothing remains.
///
/// # Errors
/// The errors of [`dry_run`].
pub fn dry_run_without(
    toolbox: &mut Toolbox,
    checked: &ValidPlan,
    parameters: &Parameters,
    left_out: &BTreeSet<CallId>,
    cancel: Cancel<'_>,
) -> Result<PlanPreview> {
    parameters.require(&checked.parameters)?;
    let vault = Arc::clone(toolbox.vault());
    let plan = &checked.plan;
    let draft = toolbox.draft(&vault, vault.overlay())?;
    let steps = Vec::with_capacity(plan.steps.len());
    let (blocked, stops) = (None, None);
    let (order, places) = (&checked.order, HashMap::new());
    let mut dry_run =
        DryRun { toolbox, plan, order, draft, steps, places, blocked, stops, parameters, left_out, output_bytes: 0 };
    for &at in &checked.order.steps {
        let skipped = dry_run.dependencies(at).find(|step| !step.runs());
        let is_left_out = left_out.contains(&CallId { step: plan.steps[at].id.clone(), item: None });
        let skipped = skipped.map(|step| format!("it depends on the step {}, which is skipped", step.id));
        let stopped = dry_run.stops.as_ref().map(|(id, _)| format!("the plan stops at the step {id}"));
        let preview = match stopped.or(skipped).or_else(|| is_left_out.then(|| LEFT_OUT.to_owned())) {
            Some(reason) => dry_run.skip(at, reason)?,
            None => match dry_run.step_with_retries(at, cancel) {
                Err(error)
                    if plan.on_error(&plan.steps[at]) == OnError::Skip
                        && can_be_skipped(&error)
                        && cancel.check().is_ok() =>
                {
                    dry_run.skip(at, error.one_line())?
                }
                Err(error) if dry_run.needs_editor(at, &error) => {
                    let preview = dry_run.skip(at, error.one_line())?;
                    let remedy = error.remedy().map(|remedy| format!("{remedy}; ")).unwrap_or_default();
                    let remedy = format!("{remedy}with \"onError\": \"skip\" the rest of the plan runs here");
                    dry_run.blocked.get_or_insert((at, error.with_remedy(remedy)));
                    preview
                }
                Err(error) if dry_run.can_stop_before(&error) => {
                    let id = plan.steps[at].id.clone();
                    let end = dry_run.draft.overlay.mark();
                    let reason = error.one_line();
                    dry_run.stops = Some((id, error));
                    dry_run.preview(at, StepState::Fails { reason }, end..end)?
                }
                Err(error) => {
                    dry_run.log_failure(&plan.steps[at], &error);
                    return Err(error);
                }
                Ok(preview) => preview,
            },
        };
        dry_run.places.insert(at, dry_run.steps.len());
        dry_run.steps.push(preview);
    }
    dry_run.finish(checked)
}

/// Returns whether another attempt can succeed because the lock, the disk or the index was only temporarily
/// unavailable.
pub(super) fn can_be_retried(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Busy | ErrorKind::Io | ErrorKind::Index)
}

/// Returns whether `onError: skip` covers an error: it does not cover a denial or a cancellation.
fn can_be_skipped(error: &Error) -> bool {
    !matches!(error.kind(), ErrorKind::Denied | ErrorKind::Cancelled)
}

/// The steps that ran so far, and the draft they ran on.
struct DryRun<'a, 'v> {
    toolbox: &'a mut Toolbox,
    plan: &'a Plan,
    order: &'a Order,
    draft: Draft<'v>,
    steps: Vec<StepPreview>,
    /// The index in `steps` of each step of the plan that ran, by its position in the plan.
    places: HashMap<usize, usize>,
    /// The first step that needs an editor, and its error.
    blocked: Option<(usize, Error)>,
    /// The step whose failure ends the plan, and its error.
    stops: Option<(String, Error)>,
    parameters: &'a Parameters,
    /// The calls that a person left out.
    left_out: &'a BTreeSet<CallId>,
    /// The size of all arguments and outputs so far.
    output_bytes: usize,
}

impl DryRun<'_, '_> {
    fn skip(&mut self, at: usize, reason: String) -> Result<StepPreview> {
        let end = self.draft.overlay.mark();
        self.preview(at, StepState::Skipped { reason }, end..end)
    }

    fn preview(&self, at: usize, state: StepState, actions: Range<usize>) -> Result<StepPreview> {
        let step = &self.plan.steps[at];
        let spec = self.toolbox.spec(&step.tool)?;
        Ok(StepPreview {
            at,
            id: step.id.clone(),
            tool: spec.name.clone(),
            preview: step.preview.clone(),
            risk: spec.risk,
            state,
            calls: Vec::new(),
            left_out: Vec::new(),
            filtered: Vec::new(),
            notices: Vec::new(),
            output: Value::Null,
            effects: Vec::new(),
            unless_seen: None,
            toolset: spec.toolset,
            tool_risk: spec.risk,
            separable: self.toolbox.tool(&step.tool)?.parts(),
            actions,
            said: 0..0,
            paths: Vec::new(),
            took: Duration::ZERO,
        })
    }

    /// Returns whether a step failed because it needs an editor, so that the rest of the plan can be previewed.
    fn needs_editor(&self, at: usize, error: &Error) -> bool {
        let spec = self.toolbox.spec(&self.plan.steps[at].tool);
        error.kind() == ErrorKind::Unsupported && spec.is_ok_and(|spec| spec.risk == Risk::Command)
    }

    /// Returns whether the changes of the steps before a failed one can be approved alone: there are some, and the
    /// failure is one of the step itself.
    fn can_stop_before(&self, error: &Error) -> bool {
        let acts = self.draft.overlay.is_changed() || self.steps.iter().any(|step| !step.effects.is_empty());
        acts && !can_be_retried(error) && can_be_skipped(error) && error.kind() != ErrorKind::Conflict
    }

    /// Runs a step, with as many attempts as its retry allows.
    fn step_with_retries(&mut self, at: usize, cancel: Cancel<'_>) -> Result<StepPreview> {
        let retry = self.plan.retry(&self.plan.steps[at]);
        let mut attempt = 1;
        loop {
            match self.step(at, cancel) {
                Err(error) if can_be_retried(&error) && attempt < retry.max_attempts => {
                    cancel.sleep(retry.wait_after(attempt))?;
                    attempt += 1;
                }
                ended => return ended,
            }
        }
    }

    /// Runs a step. If it fails, the draft is restored.
    fn step(&mut self, at: usize, cancel: Cancel<'_>) -> Result<StepPreview> {
        let started = Instant::now();
        let (mark, editor) = (self.draft.overlay.mark(), self.draft.editor.clone());
        let (said, output_bytes) = (self.draft.overlay.notice_count(), self.output_bytes);
        let result = self.calls(at, mark, cancel);
        if result.is_err() {
            self.draft.overlay.rollback(mark);
            self.draft.overlay.truncate_notices(said);
            self.output_bytes = output_bytes;
            self.draft.editor = editor;
            self.draft.effects.clear();
            self.draft.unless_seen = None;
        }
        result.map(|preview| StepPreview { took: started.elapsed(), ..preview })
    }

    fn calls(&mut self, at: usize, mark: usize, cancel: Cancel<'_>) -> Result<StepPreview> {
        let step = &self.plan.steps[at];
        let timeout = step.timeout_ms.map(|millis| Instant::now() + Duration::from_millis(millis));
        let cancel = timeout.map_or(cancel, |deadline| cancel.until(deadline));
        if let Some(condition) = &step.condition
            && let Some(reason) =
                condition.unmet(&self.scope(at), "/if").map_err(|issues| at_step(unresolved(&issues), step, None))?
        {
            return self.skip(at, format!("its condition does not hold: {reason}"));
        }
        let (items, filtered) = self.items(at).map_err(|error| at_step(error, step, None))?;
        let count = step.foreach.is_some().then_some(items.len());
        let skips_items = count.is_some() && self.plan.on_error(step) == OnError::Skip;
        let (mut calls, mut paths, mut outputs, mut left_out) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        self.draft.cache = StepCache::default();
        let said = self.draft.overlay.notice_count();
        if count == Some(0) || !filtered.is_empty() {
            self.draft.overlay.notice(what_is_left(count.unwrap_or(0), filtered.len()));
        }
        let in_all = items.len() + filtered.len();
        for (index, Item { position, value }) in items.into_iter().enumerate() {
            if self.left_out.contains(&CallId { step: step.id.clone(), item: Some(position) }) {
                left_out.push(LeftOutItem::new(position, &value, |_| LEFT_OUT.to_owned()));
                continue;
            }
            let shown = if skips_items { value.clone() } else { Value::Null };
            let first = self.draft.overlay.mark();
            match self.item(at, (index, count.unwrap_or(1)), value, cancel) {
                // The time limit is that of the step, so it is not the item that failed.
                Err(error) if skips_items && can_be_skipped(&error) && error.kind() != ErrorKind::TimedOut => {
                    left_out.push(LeftOutItem::failed(position, &shown, &error));
                }
                Err(error) => return Err(at_step(error, step, count.map(|_| (position, in_all)))),
                Ok(done) => {
                    self.output_bytes += memory_of(&done.args) + memory_of(&done.output);
                    if self.output_bytes > MAX_OUTPUT_BYTES {
                        return Err(at_step(too_much_output(), step, None));
                    }
                    paths.extend(done.paths);
                    self.draft.overlay.join_edits(mark, first);
                    let (item, actions) = (count.map(|_| position), first..self.draft.overlay.mark());
                    calls.push(CallPreview { args: done.args, item, actions });
                    outputs.push(done.output);
                }
            }
        }
        // No call of the step remains, so the step is skipped, and so are the steps that depend on it.
        if let (true, [first, ..]) = (calls.is_empty(), &left_out[..]) {
            let message = format!("none of {} items can be done; {}: {}", left_out.len(), first.what, first.reason);
            let reason = at_step(Error::new(ErrorKind::Plan, message), step, None).to_string();
            return Ok(StepPreview { left_out, filtered, ..self.skip(at, reason)? });
        }
        let output = match count {
            Some(_) => json!({ "count": outputs.len(), "items": Value::Array(outputs) }),
            None => outputs.pop().unwrap_or_default(),
        };
        let effects = std::mem::take(&mut self.draft.effects);
        let unless_seen = self.draft.unless_seen.take();
        let actions = mark..self.draft.overlay.mark();
        Ok(StepPreview {
            said: said..self.draft.overlay.notice_count(),
            calls,
            left_out,
            filtered,
            output,
            effects,
            unless_seen,
            paths,
            ..self.preview(at, StepState::Ready, actions)?
        })
    }

    /// Runs one call of a step. If it fails, the draft is restored.
    fn item(&mut self, at: usize, turn: (usize, usize), item: Value, cancel: Cancel<'_>) -> Result<CallResult> {
        let draft = &mut self.draft;
        let (mark, editor) = (draft.overlay.mark(), draft.editor.clone());
        let (effects, unless_seen) = (draft.effects.len(), draft.unless_seen.clone());
        let said = draft.overlay.notice_count();
        let result = self.call(at, turn, item, cancel);
        if result.is_err() {
            let draft = &mut self.draft;
            draft.overlay.rollback(mark);
            draft.overlay.truncate_notices(said);
            (draft.editor, draft.unless_seen) = (editor, unless_seen);
            draft.effects.truncate(effects);
        }
        result
    }

    fn call(&mut self, at: usize, turn: (usize, usize), item: Value, cancel: Cancel<'_>) -> Result<CallResult> {
        cancel.check()?;
        let args = self.args(at, turn, item)?;
        self.toolbox.run_on(&mut self.draft, &self.plan.steps[at].tool, args, cancel)
    }

    /// Logs the failure of a step that ends the plan. Because the plan does not run, this is its only line in the log.
    fn log_failure(&mut self, step: &Step, error: &Error) {
        let args = Value::Object(step.args.clone());
        self.toolbox.log(&Record::new(&step.tool, &[&args], Err(error), 0, Approval::of_failure(error)));
    }

    /// Returns the items of a loop, and those that its filter leaves out; for a step without a loop, one item that is
    /// null.
    fn items(&self, at: usize) -> Result<(Vec<Item>, Vec<LeftOutItem>)> {
        let Some(foreach) = &self.plan.steps[at].foreach else {
            return Ok((vec![Item { position: 0, value: Value::Null }], Vec::new()));
        };
        let mut scope = self.scope(at);
        let from = scope.resolve(&foreach.from, &Value::Null, "/foreach/from");
        let list = match from.map_err(|issues| unresolved(&issues))? {
            Value::Array(list) => list,
            _ => {
                let from = foreach.from.as_str().unwrap_or_default();
                let message = format!("`{from}` is not a list, so there is nothing to loop over");
                return Err(Error::new(ErrorKind::Plan, message));
            }
        };
        let (items, filtered) =
            foreach::choose(foreach, list, &mut scope, self.plan.version).map_err(|issues| unresolved(&issues))?;
        if items.len() > MAX_ITEMS {
            let message = format!("a loop over {} items; {MAX_ITEMS} at most", items.len());
            return Err(
                Error::new(ErrorKind::Plan, message).with_remedy("make it several loops, each over a part of them")
            );
        }
        Ok((items, filtered))
    }

    /// Returns the previews of the steps that a step depends on.
    fn dependencies(&self, at: usize) -> impl Iterator<Item = &StepPreview> {
        self.order.dependencies[at].iter().filter_map(|before| Some(&self.steps[*self.places.get(before)?]))
    }

    /// Returns the values that a step can refer to.
    fn scope(&self, at: usize) -> Scope<'_> {
        let mut scope = Scope::new(self.parameters);
        for step in self.dependencies(at).filter(|step| step.runs()) {
            let captured = self.plan.steps[step.at].capture_as.clone().map(Root::Var);
            for root in iter::once(Root::Step(step.id.clone())).chain(captured) {
                scope.bind(root, Cow::Borrowed(&step.output));
            }
        }
        scope
    }

    fn args(&mut self, at: usize, (index, count): (usize, usize), item: Value) -> Result<Value> {
        let step = &self.plan.steps[at];
        let mut scope = self.scope(at);
        if let Some(foreach) = &step.foreach {
            foreach::bind(&mut scope, foreach, self.plan.version, item, index, count);
        }
        let schema = self.toolbox.tool(&step.tool).map_or(&Value::Null, Tool::marked_schema);
        let args = Value::Object(step.args.clone());
        let ResolvedValue { value, issues, as_json } = scope.resolved(&args, schema, "/args");
        as_json.into_iter().for_each(|what| self.draft.overlay.notice(what));
        if issues.is_empty() { Ok(value) } else { Err(unresolved(&issues)) }
    }

    fn finish(self, checked: &ValidPlan) -> Result<PlanPreview> {
        let (policy, mut steps) = (self.toolbox.policy(), self.steps);
        let mut change = self.draft.overlay.change();
        for step in steps.iter_mut().filter(|step| step.runs()) {
            let may_be_shown =
                |notice: &&Notice| notice.about.as_ref().is_none_or(|at| policy.permits_path(at.as_str()));
            let mut known = HashSet::new();
            let shown = change.notices[step.said.clone()].iter().filter(may_be_shown);
            step.notices =
                shown.filter(|notice| known.insert(&notice.text)).map(|notice| notice.text.clone()).collect();
        }
        change.retain_notices(&|path| policy.permits_path(path.as_str()));
        for step in steps.iter_mut().filter(|step| step.runs()) {
            let spec = self.toolbox.spec(&step.tool)?;
            let risk = self.toolbox.check_changes(spec, &mut step.paths, &change, step.actions.clone());
            step.risk = risk
                .map_err(|error| Error::new(ErrorKind::Denied, format!("the step {}: {}", step.id, error.message())))?;
        }
        let running = || steps.iter().filter(|step| step.runs());
        let mut notices = checked.notices.clone();
        notices
            .extend(self.blocked.as_ref().map(|(_, error)| format!("the plan cannot run here: {}", error.one_line())));
        notices.extend(running().flat_map(StepPreview::named_notices));
        notices.extend(running().filter_map(|step| Some(needs_eye(&step.id, step.unless_seen.as_ref()?))));
        notices.extend(running().flat_map(|step| step.effects.iter().map(|effect| notice(&step.id, effect))));
        let options = self.draft.vault.sandbox().parse_options();
        let permits = |path: &SafePath| policy.permits_path(path.as_str());
        notices.extend(dead_links(change.actions(), &self.draft.overlay, &options, &permits)?);
        let digest = digest_of(&checked.plan, &steps, &change)?;
        if let Some((_, error)) = &self.stops {
            let what = "the steps before it run only if a person approves this preview or its digest";
            let remedy = error.remedy().map(|remedy| format!(" ({remedy})")).unwrap_or_default();
            notices.insert(0, format!("the plan stops at {}{remedy}; {what}", error.message()));
        }
        let (blocked_at, blocked) = self.blocked.unzip();
        // A step that cannot run here counts too, because the plan runs it elsewhere.
        let is_shown = |step: &&StepPreview| step.runs() || Some(step.at) == blocked_at;
        let risk = steps.iter().filter(is_shown).map(|step| step.risk).max().unwrap_or(Risk::Read);
        let (plan, editor, left_out) = (checked.plan.clone(), self.draft.editor, Vec::new());
        Ok(PlanPreview {
            plan,
            steps,
            change,
            risk,
            notices,
            left_out,
            blocked,
            blocked_at,
            stops: self.stops,
            digest,
            editor,
        })
    }
}

/// Estimates the memory that a value takes, in bytes.
fn memory_of(value: &Value) -> usize {
    let content = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(memory_of).sum(),
        Value::Object(fields) => fields.iter().map(|(name, value)| name.len() + memory_of(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    content + size_of::<Value>()
}

fn too_much_output() -> Error {
    let limit = MAX_OUTPUT_BYTES / 1_000_000;
    Error::new(ErrorKind::Plan, format!("the outputs of the plan exceed {limit} MB"))
        .with_remedy("make it several plans, or read less in one: fewer notes, or shorter lists")
}

/// Describes how many items of its list a loop takes.
fn what_is_left(taken: usize, filtered: usize) -> String {
    match (taken, filtered) {
        (0, 0) => "its list is empty, so that there is nothing to do".to_string(),
        (0, all) => format!("its loop takes none of {all} items, so that there is nothing to do"),
        (taken, filtered) => format!("its loop takes {taken} of {} items", taken + filtered),
    }
}

/// Returns a notice that a step does not run unseen. Approving the digest counts as seeing it, because the digest
/// identifies exactly this preview.
fn needs_eye(step: &str, unless_seen: &Error) -> String {
    let path = unless_seen.path().map(|path| format!("{path}: ")).unwrap_or_default();
    let what = unless_seen.message();
    format!("the step {step}: {path}{what}; it runs only if a person approves this preview or its digest")
}

fn notice(step: &str, effect: &HostEffect) -> String {
    let limits = match effect {
        HostEffect::Command { .. } => ": what it does is not previewed, and cannot be undone",
        HostEffect::Open { .. } => "",
    };
    format!("the step {step} {effect}{limits}")
}

fn unresolved(issues: &[Issue]) -> Error {
    let all: Vec<String> = issues.iter().map(ToString::to_string).collect();
    Error::new(ErrorKind::Plan, all.join("; "))
}

/// Adds to an error the step, and the index and number of items of its loop.
fn at_step(error: Error, step: &Step, item: Option<(usize, usize)>) -> Error {
    let item = item.map(|(index, count)| format!(", item {} of {count}", index + 1)).unwrap_or_default();
    let path = error.path().map(|path| format!("{path}: ")).unwrap_or_default();
    let message = format!("the step {} ({}{item}): {path}{}", step.id, step.tool, error.message());
    let located = Error::new(error.kind(), message);
    match error.remedy() {
        Some(remedy) => located.with_remedy(remedy),
        None => located,
    }
}
