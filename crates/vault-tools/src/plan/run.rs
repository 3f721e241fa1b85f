//! A plan that was approved, done: the actions of its preview in their order, step by step, with events.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::event::{Event, RunStatus};
use super::preview::{PlanPreview, StepPreview, StepState};
use super::schema::{OnError, Retry};
use super::tried;
use crate::change::{ApplyOptions, Applying, Go, Vault};
use crate::error::{Error, ErrorKind, Result};
use crate::host::Host;
use crate::journal::RunId;
use crate::log::{Decision, Record};
use crate::policy::{Attendance, Grants, Verdict};
use crate::tool::Stop;
use crate::toolbox::{Toolbox, millis_since};
use crate::tools::fill_in_times;

/// How a plan went.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanRun {
    /// How it ended.
    pub status: RunStatus,
    /// What `undo` takes back, if anything was changed.
    pub run: Option<RunId>,
    /// The answers of the steps that are done, by id.
    pub outputs: BTreeMap<String, Value>,
    /// The step that failed, and why.
    pub failed: Option<(String, Error)>,
    /// Steps that were left out, and why.
    pub skipped: Vec<(String, String)>,
}

/// Does what a preview showed. `decision` says who approved it; `tell` hears what happens.
///
/// What is done is exactly the actions of the preview. If one of the files they concern is not as it was, nothing is
/// done. A disk that fails in the middle leaves the vault as it was before, after the attempts that the step allows.
/// A step that is stopped while it changes files is put back, so that no step is done by half; the ones before it
/// stay, and `undo` takes them back. So does a step of which only what the host was to do failed.
///
/// # Errors
/// [`ErrorKind::Denied`] when it was not approved; [`ErrorKind::Conflict`] before anything was done. A step that
/// fails is no error of this call: it is in [`PlanRun::failed`]. Both are logged, and a plan that came to its end is
/// kept, so that it can be saved as a macro.
pub fn run(
    toolbox: &mut Toolbox,
    preview: &PlanPreview,
    decision: Decision,
    stop: Stop<'_>,
    tell: &mut dyn FnMut(&Event),
) -> Result<PlanRun> {
    let started = Instant::now();
    if let Err(error) = approved(toolbox, preview, decision) {
        refuse(toolbox, preview, &error);
        return Err(error);
    }
    tell(&Event::RunStarted { goal: preview.plan.goal.clone(), steps: preview.steps.len() });
    let outcome = run_approved(toolbox, preview, stop, tell);
    let (status, run) = outcome.as_ref().map_or((RunStatus::Failed, None), |done| (done.status, done.run));
    tell(&Event::RunFinished { status, run: run.map(|run| run.0) });
    match &outcome {
        Ok(done) => {
            record(toolbox, preview, done, decision, millis_since(started));
            if done.status == RunStatus::Done {
                let kept = tried::keep(toolbox.vault().state(), &preview.plan, done.run);
                toolbox.unlogged_if(kept);
            }
        }
        Err(error) => record_all(toolbox, preview, error, decision, millis_since(started)),
    }
    outcome
}

/// Writes down that a plan was not run, since the rules or a person said no.
pub fn refuse(toolbox: &mut Toolbox, preview: &PlanPreview, reason: &Error) {
    record_all(toolbox, preview, reason, Decision::Denied, 0);
}

fn run_approved(
    toolbox: &mut Toolbox,
    preview: &PlanPreview,
    stop: Stop<'_>,
    tell: &mut dyn FnMut(&Event),
) -> Result<PlanRun> {
    let (vault, rules) = (Arc::clone(toolbox.vault()), toolbox.rules().clone());
    let named: Vec<String> = preview.steps.iter().flat_map(|step| &step.paths).cloned().collect();
    let mut walk = Walk::new(preview, &vault, toolbox.host(), stop, tell);
    let mut run = None;
    if !preview.change.is_empty() {
        loop {
            let mut progress = |at: Applying| walk.reach(at.index);
            let options = ApplyOptions { label: preview.plan.goal.clone(), progress: Some(&mut progress) };
            match vault.apply(&preview.change, options).map_err(|error| rules.discreet(error, &named)) {
                Ok(done) => run = (done.done > 0).then_some(done.id),
                Err(error) if error.kind() == ErrorKind::Conflict => return Err(error),
                Err(error) => match walk.begins_anew(&error) {
                    // What was done is put back by then, so the next attempt begins anew.
                    Ok(true) => continue,
                    Ok(false) => walk.all_was_put_back(error),
                    Err(stopped) => walk.all_was_put_back(stopped),
                },
            }
            break;
        }
    }
    if walk.ended.is_none() {
        walk.reach(usize::MAX);
    }
    let Walk { outputs, ended, skipped, .. } = walk;
    if run.is_some() {
        toolbox.set_editor(preview.editor.clone());
    }
    let status = match &ended {
        None => RunStatus::Done,
        Some((_, error)) if error.kind() == ErrorKind::Cancelled => RunStatus::Cancelled,
        Some(_) => RunStatus::Failed,
    };
    Ok(PlanRun { status, run, outputs, failed: ended, skipped })
}

/// What is denied is denied here too, whoever approved it.
fn approved(toolbox: &Toolbox, preview: &PlanPreview, decision: Decision) -> Result<()> {
    let mut grants = Grants::default();
    if decision == Decision::Granted {
        preview.steps.iter().for_each(|step| grants.grant(&step.tool));
    }
    let rules = toolbox.rules();
    let verdict = match decision {
        Decision::Denied => Verdict::Deny("the plan was not approved".into()),
        // Grants are about tools, and reach as far as they do; that of a plan stands for the plan's own question.
        Decision::Granted => {
            let verdicts = preview.calls().map(|call| rules.decide(&call, &grants, Attendance::Attended));
            verdicts.max().unwrap_or(Verdict::Allow)
        }
        _ => preview.verdict(rules, &grants, Attendance::Attended),
    };
    match verdict {
        Verdict::Deny(reason) => Err(Error::new(ErrorKind::Denied, reason)),
        Verdict::Ask if !matches!(decision, Decision::Approved | Decision::Edited) => {
            Err(Error::new(ErrorKind::Denied, "the plan needs a person's approval"))
        }
        _ => Ok(()),
    }
}

/// One line for each step that ran.
fn record(toolbox: &mut Toolbox, preview: &PlanPreview, done: &PlanRun, decision: Decision, took: u64) {
    for step in preview.steps.iter().filter(|step| step.state == StepState::Ready) {
        let output = done.outputs.get(&step.id);
        let outcome = match (&done.failed, output) {
            (_, Some(output)) => Ok(output),
            (Some((failed, error)), None) if *failed == step.id => Err(error),
            _ => continue,
        };
        let mut record = Record::of_calls(&step.tool, args_of(step), outcome, took, decision);
        record.run = done.run.map(|run| run.0);
        toolbox.log(&record);
    }
}

/// The same for steps none of which ran.
fn record_all(toolbox: &mut Toolbox, preview: &PlanPreview, error: &Error, decision: Decision, took: u64) {
    for step in preview.steps.iter().filter(|step| step.state == StepState::Ready) {
        toolbox.log(&Record::of_calls(&step.tool, args_of(step), Err(error), took, decision));
    }
}

fn args_of(step: &StepPreview) -> impl ExactSizeIterator<Item = Value> {
    step.calls.iter().map(|call| call.args.clone())
}

/// Which step a run is at.
struct Walk<'a> {
    preview: &'a PlanPreview,
    vault: &'a Vault,
    host: &'a mut dyn Host,
    stop: Stop<'a>,
    tell: &'a mut dyn FnMut(&Event),
    /// The position of the step that is under way or comes next.
    at: usize,
    /// When it began.
    begun: Option<Instant>,
    outputs: BTreeMap<String, Value>,
    skipped: Vec<(String, String)>,
    /// What the host did, in order; an attempt that begins anew does not do it again.
    effects_done: usize,
    effects_met: usize,
    /// How often the disk failed.
    failures: u32,
    /// The step at which it ended early.
    ended: Option<(String, Error)>,
}

impl<'a> Walk<'a> {
    fn new(
        preview: &'a PlanPreview,
        vault: &'a Vault,
        host: &'a mut dyn Host,
        stop: Stop<'a>,
        tell: &'a mut dyn FnMut(&Event),
    ) -> Self {
        let (outputs, skipped) = (BTreeMap::new(), Vec::new());
        Self {
            preview,
            vault,
            host,
            stop,
            tell,
            at: 0,
            begun: None,
            outputs,
            skipped,
            effects_done: 0,
            effects_met: 0,
            failures: 0,
            ended: None,
        }
    }

    /// Whether the step under way may be tried again after the disk failed; if so, the walk is at its beginning.
    ///
    /// # Errors
    /// When it is stopped while it waits.
    fn begins_anew(&mut self, error: &Error) -> Result<bool> {
        let Some(step) = self.preview.steps.get(self.at) else { return Ok(false) };
        let retry = self.retry(step);
        self.failures += 1;
        if error.kind() != ErrorKind::Io || self.failures >= retry.max_attempts {
            return Ok(false);
        }
        let event =
            Event::StepFailed { step: step.id.clone(), error: error.clone(), attempt: self.failures, will_retry: true };
        (self.tell)(&event);
        self.stop.wait(Duration::from_millis(retry.backoff_ms) * 2_u32.saturating_pow(self.failures - 1))?;
        (self.at, self.begun, self.effects_met) = (0, None, 0);
        self.outputs.clear();
        self.skipped.clear();
        Ok(true)
    }

    /// The step under way failed for good, and no step is done.
    fn all_was_put_back(&mut self, error: Error) {
        self.outputs.clear();
        self.fail(error, self.failures.max(1));
    }

    /// Action `index` comes next: the steps before the one it belongs to are done, and that one is under way.
    /// Returns whether to go on. A step that is stopped is not done by half: what it did to files is put back.
    fn reach(&mut self, index: usize) -> Go {
        while let (None, Some(step)) = (&self.ended, self.preview.steps.get(self.at)) {
            if let StepState::Skipped { reason } = &step.state {
                (self.tell)(&Event::StepSkipped { step: step.id.clone(), reason: reason.clone() });
                self.skipped.push((step.id.clone(), reason.clone()));
                self.at += 1;
                continue;
            }
            let begins = self.begun.is_none();
            if begins {
                self.begun = Some(Instant::now());
                (self.tell)(&Event::StepStarted { step: step.id.clone(), tool: step.tool.clone() });
            }
            let is_under_way = index < step.actions.end;
            // A step whose files are all changed is done, whoever stops it now.
            if (begins || is_under_way || !step.effects.is_empty())
                && let Err(error) = self.may_go_on(step)
            {
                self.fail(error, 1);
                return Go::StopAt(if is_under_way { step.actions.start } else { step.actions.end });
            }
            if is_under_way {
                self.progress(step, index - step.actions.start);
                return Go::On;
            }
            self.finish(step);
        }
        if self.ended.is_none() { Go::On } else { Go::Stop }
    }

    fn may_go_on(&self, step: &StepPreview) -> Result<()> {
        self.stop.check()?;
        let timeout = self.plan_step(step).and_then(|step| step.timeout_ms).map(Duration::from_millis);
        match (timeout, self.begun) {
            (Some(timeout), Some(begun)) if begun.elapsed() > timeout => {
                let message = format!("it took longer than {} ms", timeout.as_millis());
                Err(Error::new(ErrorKind::TimedOut, message).remedy("allow more with timeoutMs"))
            }
            _ => Ok(()),
        }
    }

    fn plan_step(&self, step: &StepPreview) -> Option<&'a super::schema::Step> {
        self.preview.plan.steps.iter().find(|planned| planned.id == step.id)
    }

    fn retry(&self, step: &StepPreview) -> Retry {
        let planned = self.plan_step(step);
        planned.map_or(Retry { max_attempts: 1, backoff_ms: 0 }, |planned| self.preview.plan.retry(planned))
    }

    fn progress(&mut self, step: &StepPreview, done: usize) {
        let total = step.actions.len() + step.effects.len();
        (self.tell)(&Event::StepProgress { step: step.id.clone(), done, total });
    }

    /// All actions of a step are done: what is left is what the host does.
    fn finish(&mut self, step: &StepPreview) {
        // What it was to do is done, whatever is known of its answer.
        let mut output = step.output.clone();
        fill_in_times(&mut output, self.vault.sandbox());
        for (number, effect) in step.effects.iter().enumerate() {
            self.effects_met += 1;
            if self.effects_met <= self.effects_done {
                continue;
            }
            self.effects_done += 1;
            self.progress(step, step.actions.len() + number);
            let Err((error, attempt)) = self.tried(step, &mut |host| effect.run(host)) else { continue };
            if !self.may_be_passed_over(step) {
                return self.fail(error, attempt);
            }
            let event = Event::StepFailed { step: step.id.clone(), error: error.clone(), attempt, will_retry: false };
            (self.tell)(&event);
            effect.report_failure(&mut output, &error);
        }
        let finished = Event::StepFinished { step: step.id.clone(), output };
        (self.tell)(&finished);
        if let Event::StepFinished { step, output } = finished {
            self.outputs.insert(step, output);
        }
        self.at += 1;
        self.begun = None;
    }

    /// Whether the plan goes on although the host failed: it says so, and nothing that was shown depends on it.
    fn may_be_passed_over(&self, step: &StepPreview) -> bool {
        let plan = &self.preview.plan;
        let is_waited_for = plan.steps.iter().any(|other| other.depends_on.contains(&step.id));
        self.plan_step(step).is_some_and(|step| plan.on_error(step) == OnError::Skip) && !is_waited_for
    }

    /// Tries something as often as the step says, with waits that double. An error comes with the attempt it was.
    fn tried(
        &mut self,
        step: &StepPreview,
        attempt: &mut dyn FnMut(&mut dyn Host) -> Result<()>,
    ) -> Result<(), (Error, u32)> {
        let retry = self.retry(step);
        let mut wait = Duration::from_millis(retry.backoff_ms);
        for number in 1.. {
            let Err(error) = attempt(self.host) else { break };
            if number >= retry.max_attempts {
                return Err((error, number));
            }
            let event = Event::StepFailed { step: step.id.clone(), error, attempt: number, will_retry: true };
            (self.tell)(&event);
            self.stop.wait(wait).and_then(|()| self.may_go_on(step)).map_err(|stopped| (stopped, number))?;
            wait *= 2;
        }
        Ok(())
    }

    /// The step under way failed for good, at an attempt.
    fn fail(&mut self, error: Error, attempt: u32) {
        let Some(step) = self.preview.steps.get(self.at) else { return };
        (self.tell)(&Event::StepFailed { step: step.id.clone(), error: error.clone(), attempt, will_retry: false });
        self.ended = Some((step.id.clone(), error));
    }
}
