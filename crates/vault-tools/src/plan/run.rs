//! Runs an approved plan: applies the changes of its preview step by step, with events.
//! `approval/settle.rs` has compared the digest by then.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::Value;

use super::dry_run::can_be_retried;
use super::foreach::LeftOutItem;
use super::history;
use super::preview::{LEFT_OUT, PlanPreview, StepPreview, StepState};
use super::schema::{OnError, Retry, Step};
use crate::change::LeftOutHunks;
use crate::error::{Error, ErrorKind, Result};
use crate::host::Host;
use crate::journal::TransactionId;
use crate::log::{Approval, Record};
use crate::policy::{Grants, Permission};
use crate::tool::{Cancel, HostEffect};
use crate::toolbox::{Toolbox, millis};
use crate::tools::fill_in_times;
use crate::transaction::{ApplyOptions, ApplyProgress, ControlFlow};
use crate::vault::Vault;

/// The result of running a plan.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PlanRun {
    /// How it ended.
    pub status: RunStatus,
    /// The transaction that `undo` reverts, if anything was changed.
    pub transaction: Option<TransactionId>,
    /// The outputs of the steps that are done, by id.
    pub outputs: BTreeMap<String, Value>,
    /// The step that failed, and the error.
    pub failed: Option<(String, Error)>,
    /// Steps that were skipped, and the reasons.
    pub skipped: Vec<(String, String)>,
    /// Items of loops that were left out, with the id of the step.
    pub left_out: Vec<(String, LeftOutItem)>,
    /// The hunks that a person left out of files that the finished steps have edited.
    pub left_out_hunks: Vec<LeftOutHunks>,
    /// Notices of the finished steps, each with the id of the step.
    pub notices: Vec<String>,
    /// The ids of the host's commands that ran. No undo reverts what they did.
    pub commands: Vec<String>,
}

/// Applies the changes of a preview. `approval` records who approved it; `on_event` is called with each event.
///
/// Exactly the actions of the preview are applied. If one of the files they concern has changed since, nothing is done.
/// If the disk fails, the vault is rolled back to its state before the plan, after the attempts that the step allows. A
/// step that is cancelled while it changes files is rolled back, so that no step is half done; the steps before it
/// remain applied, and `undo` reverts them. A step also remains applied if only its host effects failed. A command that
/// ran is not reverted: it is in [`PlanRun::commands`], also if all files were rolled back.
///
/// # Errors
/// [`PlanPreview::blocked`]; [`ErrorKind::Denied`] if it was not approved; the error of a step whose effects a person
/// must see, if no person saw them; [`ErrorKind::Conflict`] before anything is done. A step that fails is not an error
/// of this call: it is in [`PlanRun::failed`]. All are logged, and a plan that succeeds is added to the history, from
/// which macros are made.
pub(crate) fn run(
    toolbox: &mut Toolbox,
    preview: &PlanPreview,
    approval: Approval,
    cancel: Cancel<'_>,
    on_event: &mut dyn FnMut(&Event),
) -> Result<PlanRun> {
    let can_run = preview.blocked.clone().map_or(Ok(()), Err);
    if let Err(error) = can_run.and_then(|()| check_approval(toolbox, preview, approval)) {
        refuse(toolbox, preview, &error);
        return Err(error);
    }
    on_event(&Event::RunStarted { goal: preview.plan.goal.clone(), steps: preview.steps.len() });
    let mut took = preview.steps.iter().map(|step| (step.id.clone(), step.took)).collect();
    let outcome = run_approved(toolbox, preview, cancel, on_event, &mut took);
    let (status, transaction) =
        outcome.as_ref().map_or((RunStatus::Failed, None), |done| (done.status, done.transaction));
    let notices = outcome.as_ref().map_or(Vec::new(), |done| done.notices.clone());
    let left_out = outcome.as_ref().map_or(Vec::new(), |done| done.left_out_hunks.clone());
    on_event(&Event::RunFinished { status, transaction: transaction.map(|id| id.0), notices, left_out });
    log_steps(toolbox, preview, outcome.as_ref(), approval, &took);
    if status == RunStatus::Done {
        let written = history::add(toolbox.vault().state(), &preview.plan, transaction);
        toolbox.note_log_error(written);
    }
    outcome
}

/// Logs a plan that was not run because the policy or a person refused it.
pub(crate) fn refuse(toolbox: &mut Toolbox, preview: &PlanPreview, reason: &Error) {
    match preview.blocked_at.and_then(|at| preview.steps.iter().find(|step| step.at == at)) {
        Some(step) => {
            let args = Value::Object(preview.plan.steps[step.at].args.clone());
            let (took, how) = (millis(step.took), Approval::of_failure(reason));
            toolbox.log(&Record::new(&step.tool, &[&args], Err(reason), took, how));
        }
        None => log_steps(toolbox, preview, Err(reason), Approval::Denied, &BTreeMap::new()),
    }
}

fn run_approved(
    toolbox: &mut Toolbox,
    preview: &PlanPreview,
    cancel: Cancel<'_>,
    on_event: &mut dyn FnMut(&Event),
    took: &mut BTreeMap<String, Duration>,
) -> Result<PlanRun> {
    let (vault, policy) = (Arc::clone(toolbox.vault()), toolbox.policy().clone());
    let named: Vec<String> = preview.steps.iter().flat_map(|step| &step.paths).cloned().collect();
    let mut cursor = StepCursor {
        preview,
        vault: &vault,
        host: toolbox.host(),
        cancel,
        on_event,
        at: 0,
        started: None,
        took,
        outputs: BTreeMap::new(),
        skipped: Vec::new(),
        host_acted: false,
        commands: Vec::new(),
        disk_failures: 0,
        failed: None,
    };
    let mut transaction = None;
    while !preview.change.is_empty() {
        let editors = cursor.host.open_editors();
        let mut progress = |at: ApplyProgress| cursor.reach(at.index);
        let options = ApplyOptions::new().label(&preview.plan.goal).editors(editors).progress(&mut progress);
        match vault.apply(&preview.change, options).map_err(|error| policy.discreet(error, &named)) {
            Ok(done) => transaction = (done.done > 0).then_some(done.id),
            Err(error) if error.kind() == ErrorKind::Conflict && cursor.commands.is_empty() => return Err(error),
            // The vault has been rolled back, so the next attempt starts at the first step.
            Err(error) => match cursor.restart(&error) {
                Ok(true) => continue,
                // No step has started: the journal or the lock beside it cannot be written.
                Ok(false) if cursor.at == 0 && cursor.started.is_none() => return Err(error),
                Ok(false) => cursor.fail_all(error),
                Err(cancelled) => cursor.fail_all(cancelled),
            },
        }
        break;
    }
    if cursor.failed.is_none() {
        cursor.reach(usize::MAX);
    }
    let StepCursor { outputs, failed, skipped, commands, .. } = cursor;
    let done = || preview.steps.iter().filter(|step| outputs.contains_key(&step.id));
    let notices = done().flat_map(StepPreview::named_notices).collect();
    let hunks = preview.left_out.iter().filter(|file| done().any(|step| step.paths.contains(&file.path)));
    let left_out_hunks = hunks.cloned().collect();
    // A step of which every item is left out is skipped.
    let reached = done().chain(preview.steps.iter().filter(|step| skipped.iter().any(|(id, _)| *id == step.id)));
    let left_out = reached.flat_map(|step| step.left_out.iter().map(|item| (step.id.clone(), item.clone()))).collect();
    if let (Some(_), Some(editor)) = (transaction, &preview.editor) {
        toolbox.set_editor(editor.clone());
    }
    let status = match &failed {
        None => RunStatus::Done,
        Some((_, error)) if error.kind() == ErrorKind::Cancelled => RunStatus::Cancelled,
        Some(_) => RunStatus::Failed,
    };
    Ok(PlanRun { status, transaction, outputs, failed, skipped, left_out, left_out_hunks, notices, commands })
}

/// Checks the approval. A plan that the policy denies is denied here too, even if it was approved.
fn check_approval(toolbox: &Toolbox, preview: &PlanPreview, approval: Approval) -> Result<()> {
    let mut grants = Grants::default();
    let permission = match approval {
        // A grant for the plan's tools also approves the plan, up to the tools' own risks.
        Approval::Granted => {
            preview.steps.iter().for_each(|step| grants.grant(&step.tool));
            let permissions = preview.calls().map(|call| toolbox.policy().decide(&call, &grants));
            permissions.max().unwrap_or(Permission::Allow)
        }
        _ => preview.permission(toolbox.policy(), &grants),
    };
    approval.check(permission, "the plan")?;
    approval.check_seen(preview.stops.as_ref().map(|(_, error)| error))?;
    let effects = preview.steps.iter().filter(|step| step.runs()).flat_map(|step| &step.effects);
    effects.into_iter().try_for_each(|effect| effect.check(toolbox.policy()))?;
    preview.steps.iter().try_for_each(|step| {
        approval
            .check_seen(step.unless_seen.as_ref())
            .map_err(|error| error.within(format!("the step {} ({})", step.id, step.tool)))
    })
}

/// Writes one log line for each step that ran, with the time that its preview and its changes took; if the plan did not
/// run, one for each step that would have run.
fn log_steps(
    toolbox: &mut Toolbox,
    preview: &PlanPreview,
    outcome: Result<&PlanRun, &Error>,
    approval: Approval,
    took: &BTreeMap<String, Duration>,
) {
    for step in preview.steps.iter().filter(|step| step.runs()) {
        let result = match outcome {
            Err(error) => Err(error),
            Ok(done) => match (done.outputs.get(&step.id), &done.failed) {
                (Some(output), _) => Ok(output),
                (None, Some((failed, error))) if *failed == step.id => Err(error),
                _ => continue,
            },
        };
        let args: Vec<&Value> = step.calls.iter().map(|call| &call.args).collect();
        let took = took.get(&step.id).copied().unwrap_or_default();
        let mut record = Record::new(&step.tool, &args, result, millis(took), approval);
        record.transaction = outcome.ok().and_then(|done| done.transaction).map(|id| id.0);
        let hunks = preview.left_out.iter().filter(|file| step.paths.contains(&file.path));
        let items = step.left_out.iter().filter(|item| item.reason == LEFT_OUT);
        let items = items.map(|item| format!("a person left out item {}, {}", item.item, item.what));
        record.left_out = hunks.map(LeftOutHunks::sentence).chain(items).collect();
        toolbox.log(&record);
    }
}

/// The position of a run in its steps.
struct StepCursor<'a> {
    preview: &'a PlanPreview,
    vault: &'a Vault,
    host: &'a mut dyn Host,
    cancel: Cancel<'a>,
    on_event: &'a mut dyn FnMut(&Event),
    /// The position of the current or next step.
    at: usize,
    /// When the current step started.
    started: Option<Instant>,
    /// The time that each finished step took.
    took: &'a mut BTreeMap<String, Duration>,
    outputs: BTreeMap<String, Value>,
    skipped: Vec<(String, String)>,
    /// Whether the host did something, so that the run cannot be restarted.
    host_acted: bool,
    /// The commands of the host that ran.
    commands: Vec<String>,
    /// The number of disk failures.
    disk_failures: u32,
    /// The step at which the run ended early.
    failed: Option<(String, Error)>,
}

impl<'a> StepCursor<'a> {
    /// After the disk failed, goes back to the first step if the current step allows another attempt.
    ///
    /// # Errors
    /// If it is cancelled while it waits.
    fn restart(&mut self, error: &Error) -> Result<bool> {
        let Some(step) = self.preview.steps.get(self.at) else { return Ok(false) };
        // The lock is shared by all steps, so the one with the most attempts decides.
        let retry = match error.kind() {
            ErrorKind::Busy => {
                self.preview.steps.iter().map(|step| self.retry(step)).max_by_key(|retry| retry.max_attempts)
            }
            _ => None,
        };
        let retry = retry.unwrap_or_else(|| self.retry(step));
        self.disk_failures += 1;
        if !can_be_retried(error) || self.disk_failures >= retry.max_attempts || self.host_acted {
            return Ok(false);
        }
        self.report_failure(step, error, self.disk_failures, true);
        self.cancel.sleep(retry.wait_after(self.disk_failures))?;
        (self.at, self.started) = (0, None);
        self.outputs.clear();
        self.skipped.clear();
        Ok(true)
    }

    /// Records that the current step failed finally, and that all files were rolled back. Steps on which only the host
    /// acts stay done.
    fn fail_all(&mut self, error: Error) {
        let acts = |id: &String| self.preview.steps.iter().any(|step| step.id == *id && !step.effects.is_empty());
        self.outputs.retain(|id, _| acts(id));
        self.fail(error, self.disk_failures.max(1));
    }

    /// Called before action `index`: finishes the steps before the one that the action belongs to, and starts that one.
    /// Returns whether to continue. A step that is cancelled is rolled back.
    fn reach(&mut self, index: usize) -> ControlFlow {
        while let (None, Some(step)) = (&self.failed, self.preview.steps.get(self.at)) {
            if let StepState::Skipped { reason } = &step.state {
                let (id, left_out) = (step.id.clone(), step.left_out.clone());
                (self.on_event)(&Event::StepSkipped { step: id, reason: reason.clone(), left_out });
                self.skipped.push((step.id.clone(), reason.clone()));
                self.at += 1;
                continue;
            }
            let starts = self.started.is_none();
            if let (StepState::Fails { .. }, Some((_, error))) = (&step.state, &self.preview.stops) {
                // The event and the result have the name of the step in a field of its own, so the message does not
                // repeat it.
                let prefix = format!("the step {} ({}): ", step.id, step.tool);
                let message = error.message().strip_prefix(&prefix).unwrap_or(error.message());
                let alone = Error::new(error.kind(), message);
                let alone = error.remedy().map_or(alone.clone(), |remedy| alone.with_remedy(remedy));
                self.fail(alone, 1);
                return ControlFlow::Stop;
            }
            if starts {
                self.started = Some(Instant::now());
                (self.on_event)(&Event::StepStarted { step: step.id.clone(), tool: step.tool.clone() });
            }
            let has_actions_left = index < step.actions.end;
            // A step whose files are all changed is finished and can no longer be cancelled, unless the host has to
            // act.
            if (starts || has_actions_left || !step.effects.is_empty())
                && let Err(error) = self.check_limits(step)
            {
                self.fail(error, 1);
                return ControlFlow::StopAt(if has_actions_left { step.actions.start } else { step.actions.end });
            }
            if has_actions_left {
                self.report_progress(step, index - step.actions.start);
                return ControlFlow::Continue;
            }
            self.finish(step);
        }
        if self.failed.is_none() { ControlFlow::Continue } else { ControlFlow::Stop }
    }

    /// # Errors
    /// If the run is cancelled or the step times out.
    fn check_limits(&self, step: &StepPreview) -> Result<()> {
        self.cancel.check()?;
        let timeout = self.planned(step).timeout_ms.map(Duration::from_millis);
        match (timeout, self.started) {
            (Some(timeout), Some(started)) if started.elapsed() > timeout => {
                let message = format!("it took longer than {} ms", timeout.as_millis());
                Err(Error::new(ErrorKind::TimedOut, message).with_remedy("allow more time with timeoutMs"))
            }
            _ => Ok(()),
        }
    }

    /// Finishes a step whose actions are all done: the host carries out its effects.
    fn finish(&mut self, step: &StepPreview) {
        let mut output = step.output.clone();
        fill_in_times(&mut output, self.vault.sandbox());
        for (number, effect) in step.effects.iter().enumerate() {
            self.report_progress(step, step.actions.len() + number);
            self.host_acted = true;
            let Err((error, attempt)) = self.run_effect(step, effect) else {
                if let HostEffect::Command { id, .. } = effect {
                    self.commands.push(id.clone());
                }
                continue;
            };
            if !self.can_ignore_failure(step) {
                return self.fail(error, attempt);
            }
            self.report_failure(step, &error, attempt, false);
            effect.report_failure(&mut output, &error);
        }
        let left_out = step.left_out.clone();
        (self.on_event)(&Event::StepFinished { step: step.id.clone(), output: output.clone(), left_out });
        self.outputs.insert(step.id.clone(), output);
        self.at += 1;
        self.note_time(step);
    }

    /// Runs an effect as often as the step's retry allows, unless it may have run although the host did not say so. The
    /// error comes with the number of its attempt.
    fn run_effect(&mut self, step: &StepPreview, effect: &HostEffect) -> Result<(), (Error, u32)> {
        let retry = self.retry(step);
        let mut attempt = 1;
        while let Err(error) = effect.run(self.host) {
            if attempt >= retry.max_attempts || error.kind() == ErrorKind::TimedOut {
                return Err((error, attempt));
            }
            self.report_failure(step, &error, attempt, true);
            let waited = self.cancel.sleep(retry.wait_after(attempt)).and_then(|()| self.check_limits(step));
            waited.map_err(|cancelled| (cancelled, attempt))?;
            attempt += 1;
        }
        Ok(())
    }

    /// Returns whether the plan continues although the host failed: the step allows it, and no other step depends on
    /// it.
    fn can_ignore_failure(&self, step: &StepPreview) -> bool {
        let plan = &self.preview.plan;
        let has_dependents = plan.steps.iter().any(|other| other.depends_on.contains(&step.id));
        plan.on_error(self.planned(step)) == OnError::Skip && !has_dependents
    }

    /// Records that the current step failed finally, at an attempt.
    fn fail(&mut self, error: Error, attempt: u32) {
        let Some(step) = self.preview.steps.get(self.at) else { return };
        self.report_failure(step, &error, attempt, false);
        self.failed = Some((step.id.clone(), error));
        self.note_time(step);
    }

    /// Records the time that a finished step took.
    fn note_time(&mut self, step: &StepPreview) {
        let took = self.started.take().map(|started| started.elapsed()).unwrap_or_default();
        *self.took.entry(step.id.clone()).or_default() += took;
    }

    fn planned(&self, step: &StepPreview) -> &'a Step {
        &self.preview.plan.steps[step.at]
    }

    fn retry(&self, step: &StepPreview) -> Retry {
        self.preview.plan.retry(self.planned(step))
    }

    fn report_progress(&mut self, step: &StepPreview, done: usize) {
        let total = step.actions.len() + step.effects.len();
        (self.on_event)(&Event::StepProgress { step: step.id.clone(), done, total });
    }

    fn report_failure(&mut self, step: &StepPreview, error: &Error, attempt: u32, will_retry: bool) {
        let (step, error) = (step.id.clone(), error.clone());
        (self.on_event)(&Event::StepFailed { step, error, attempt, will_retry });
    }
}

/// An event of a running plan. Serializes with its name under `event`: `run.started`, `step.progress` and so on.
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
        /// Items of its loop that were left out.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        left_out: Vec<LeftOutItem>,
    },
    /// An attempt of a step failed.
    #[serde(rename = "step.failed")]
    StepFailed {
        /// Its id.
        step: String,
        /// The error.
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
        /// The reason.
        reason: String,
        /// Items of its loop that were left out: all, or none.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        left_out: Vec<LeftOutItem>,
    },
    /// The run ends.
    #[serde(rename = "run.finished")]
    RunFinished {
        /// How it ended.
        status: RunStatus,
        /// The transaction that `undo` reverts.
        transaction: Option<u64>,
        /// Notices of the finished steps, each with the id of the step.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        notices: Vec<String>,
        /// The hunks that a person left out of files that the finished steps have edited.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        left_out: Vec<LeftOutHunks>,
    },
}

impl PlanRun {
    /// Returns what a plan that has failed leaves behind, and how to revert it. `undo` reverts its changes of files.
    pub fn what_is_left(&self, undo: &str) -> String {
        let files = match (self.transaction, &self.commands[..]) {
            (Some(_), _) => format!("the steps before it stay; {undo}"),
            (None, []) => "nothing was changed".to_owned(),
            (None, _) => "no file was changed by the plan".to_owned(),
        };
        match &self.commands[..] {
            [] => files,
            [one] => format!("{files}; it ran the command {one}, which cannot be undone"),
            several => format!("{files}; it ran the commands {}, which cannot be undone", several.join(", ")),
        }
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum RunStatus {
    /// All steps have finished or were skipped.
    Done,
    /// A step failed; the steps before it remain applied.
    Failed,
    /// It was cancelled; the steps before it remain applied.
    Cancelled,
}
