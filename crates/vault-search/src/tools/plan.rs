//! `vault-tools plan`: checks, previews and runs plans.

use std::collections::BTreeSet;
use std::io;

use jiff::tz::TimeZone;
use jiff::{Timestamp, Unit};
use serde_json::{Value, json};
use vault_tools::approval::{AppliedChange, ApprovedChange, AutoApprover, PreparedChange, settle, settle_shown};
use vault_tools::plan::{self, CallId, Event, Parameters, PlanPreview, PlanRun, RunStatus, ValidPlan};
use vault_tools::{Cancel, Error, ErrorKind, Grants, Result, Toolbox};

use crate::{
    CliResult, Format, Out, Outcome, ask, ask_for_lines, can_ask, note, program, sanitize, sanitize_line, say,
};

use super::approve::{ChangeEditor, PartChoice, TerminalPrompt};
use super::choose::choose_of_plan;
use super::context::{json_of, list_of_parameters, parameters, with_toolbox};
use super::plan_args::{ContextArgs, ExecutionArgs, PlanFileArgs, PlanPreviewArgs, PlanRunArgs};
use super::plan_text::{left_out, whole_text};
use super::records::PlanRecord;
use crate::VaultArgs;

/// The maximum number of notices that are printed after a run.
const MAX_NOTICES: usize = 20;

pub(super) fn check(vault_args: &VaultArgs, args: &PlanFileArgs, out: &mut Out) -> CliResult {
    with_toolbox(vault_args, &ContextArgs::default(), |toolbox| check_on(toolbox, args, out))
}

fn check_on(toolbox: &Toolbox, args: &PlanFileArgs, out: &mut Out) -> CliResult {
    let (record, text, outcome) = match plan::validate(&json_of(&args.file)?, toolbox) {
        Ok(ValidPlan { risk, parameters, notices, .. }) => {
            let text = format!("the plan is valid; its risk: {}{}", risk.name(), list_of_parameters(parameters.iter()));
            let text = notices.iter().fold(text, |text, notice| format!("{text}\nnote: {notice}"));
            let mut record = json!({ "faults": [], "risk": risk, "parameters": parameters });
            if !notices.is_empty() {
                record["notices"] = json!(notices);
            }
            (record, text, Outcome::Done)
        }
        Err(invalid) => {
            let issues = invalid.issues.iter();
            let rows: Vec<Value> =
                issues.map(|issue| json!({ "pointer": issue.pointer, "message": issue.message })).collect();
            (json!({ "faults": rows }), invalid.to_string(), Outcome::Nothing)
        }
    };
    let printed = match args.json {
        true => out.json(&record),
        false => out.line(&sanitize(&text)),
    };
    match printed {
        // The exit code reports the outcome, even if the reader has closed the pipe.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(outcome),
    }
}

pub(super) fn preview(vault_args: &VaultArgs, args: &PlanPreviewArgs, out: &mut Out) -> CliResult {
    with_toolbox(vault_args, &args.context, |toolbox| {
        let prepared = prepare(toolbox, &json_of(&args.plan.file)?, &args.set, &mut Vec::new())?;
        print_preview(&prepared.preview, toolbox, if args.plan.json { Format::Json } else { Format::Human }, out)
    })
}

pub(super) fn run(vault_args: &VaultArgs, args: &PlanRunArgs, out: &mut Out) -> CliResult {
    with_toolbox(vault_args, &args.running.context, |toolbox| {
        run_value(toolbox, &json_of(&args.file)?, &args.running, &[], out)
    })
}

/// Shows a plan, asks for approval, and runs it. `defaults` are values of parameters that are not given otherwise.
///
/// # Errors
/// A plan that is invalid, not approved, or fails.
pub fn run_value(
    toolbox: &mut Toolbox,
    value: &Value,
    args: &ExecutionArgs,
    defaults: &[(String, String)],
    out: &mut Out,
) -> CliResult {
    if let Some((_, time)) = args.digest.as_deref().and_then(|digest| digest.split_once('@')) {
        let time: Timestamp = time.parse().map_err(|error| {
            Error::new(ErrorKind::InvalidArguments, format!("the part after @ is not a time: {error}"))
                .at("--digest")
                .with_remedy("copy it as the preview prints it")
        })?;
        toolbox.set_now(time.to_zoned(TimeZone::system()));
    }
    let mut asked = defaults.to_vec();
    let prepared = prepare(toolbox, value, &args.set, &mut asked)?;
    if args.dry_run {
        let format = if args.jsonl { Format::JsonLines } else { Format::Human };
        return print_preview(&prepared.preview, toolbox, format, out);
    }
    let approved = approved(toolbox, prepared, args, &mut asked)?;
    let Some(preview) = approved.change().plan().cloned() else { return Ok(Outcome::Nothing) };
    let listening = crate::listen();
    let _writing = crate::write_section();
    let cancel = Cancel::on(listening.flag());
    // The plan continues even if its events can no longer be written.
    let mut written = Ok(());
    let mut report = |event: &Event| {
        if !args.jsonl {
            print_event(event);
        } else if written.is_ok() {
            written = out.record(event).and_then(|()| out.flush());
        }
    };
    let AppliedChange::Plan(done) = approved.carry_out(toolbox, cancel, &mut report)? else {
        return Ok(Outcome::Nothing);
    };
    done.left_out.iter().for_each(|(step, item)| say("left out", &format!("{step}, {}", left_out(item))));
    say_notices(&done.notices);
    if let Some((step, error)) = &done.failed {
        let left = done.what_is_left(&format!("{} undo reverts them", program()));
        let message = format!("step {step}: {}", error.message());
        return Err(Error::new(error.kind(), message).with_remedy(left).into());
    }
    written?;
    if !args.jsonl {
        let undo =
            done.transaction.map(|id| format!("; transaction {id}, {} undo reverts it", program())).unwrap_or_default();
        let ended = match (done.status, done.left_out.len()) {
            (RunStatus::Done, 0) => "done".to_owned(),
            (RunStatus::Done, left_out) => format!("{} done, {left_out} left out", calls_of(&preview, &done)),
            _ => "stopped".to_owned(),
        };
        out.line(&format!("{ended}{undo}"))?;
    }
    Ok(Outcome::Done)
}

/// Prints the notices of the steps, up to a maximum.
fn say_notices(notices: &[String]) {
    notices.iter().take(MAX_NOTICES).for_each(|notice| note(&sanitize_line(notice)));
    if let Some(more @ 1..) = notices.len().checked_sub(MAX_NOTICES) {
        note(&format!("{more} more; plan preview and --jsonl list them all"));
    }
}

/// A plan that is ready for approval.
struct PreparedPlan {
    checked: ValidPlan,
    parameters: Parameters,
    preview: PlanPreview,
}

/// Checks and previews a plan. Missing parameters are taken from `known`, or asked for and added to it.
fn prepare(
    toolbox: &mut Toolbox,
    value: &Value,
    set: &[String],
    known: &mut Vec<(String, String)>,
) -> Result<PreparedPlan> {
    // A plan uses a fixed time, rounded to seconds, so that it can be printed with the digest.
    let now = toolbox.now();
    toolbox.set_now(now.round(Unit::Second).unwrap_or(now));
    let checked: ValidPlan = plan::validate(value, toolbox)?;
    let mut parameters = parameters(toolbox, set, &checked.parameters)?;
    let missing: Vec<String> = parameters.missing(&checked.parameters).into_iter().map(str::to_string).collect();
    for name in missing {
        if let Some((_, value)) = known.iter().find(|(parameter, _)| *parameter == name) {
            parameters.set(name, value.clone());
        } else if can_ask()
            && let Some(given) = ask_for_parameter(&name)
        {
            known.push((name.clone(), given.clone()));
            parameters.set(name, given);
        }
    }
    let listening = crate::listen();
    let preview = plan::dry_run(toolbox, &checked, &parameters, Cancel::on(listening.flag()))?;
    Ok(PreparedPlan { checked, parameters, preview })
}

/// Asks for the value of a parameter. The selection may have several lines.
fn ask_for_parameter(name: &str) -> Option<String> {
    match name {
        "selection" => ask_for_lines("the plan works on a selection, and nothing is selected; type or paste its text:"),
        name => ask(&format!("the plan needs a value for {name}:")),
    }
}

/// Returns the text that `plan preview` prints and `--digest` takes: the digest, and the time that the preview used.
/// The time is part of it because the same time gives the same preview, even if the approval comes much later.
fn digest_and_time(preview: &PlanPreview, toolbox: &Toolbox) -> String {
    format!("{}@{}", preview.digest, toolbox.now().strftime("%Y-%m-%dT%H:%M:%S%:z"))
}

/// Gets approval for a plan. The user may edit the plan or leave out parts of it.
fn approved(
    toolbox: &mut Toolbox,
    prepared: PreparedPlan,
    args: &ExecutionArgs,
    known: &mut Vec<(String, String)>,
) -> Result<ApprovedChange> {
    let PreparedPlan { checked, parameters, preview } = prepared;
    let change = PreparedChange::of_plan(preview, toolbox.policy());
    let grants = Grants::default();
    let settled = match &args.digest {
        // The error does not contain the new digest: only a preview, which shows the change, prints it.
        Some(shown) => {
            let other = Error::new(ErrorKind::Conflict, "the plan no longer does what was approved")
                .with_remedy("run plan preview, which shows it again and prints its new digest");
            settle_shown(change, shown.split('@').next().unwrap_or_default(), other)
        }
        None if args.yes => settle(change, &grants, &mut AutoApprover),
        None => {
            let mut planning = PlanEditor { toolbox: &mut *toolbox, checked, parameters, args, known };
            let changing: Option<&mut dyn ChangeEditor> = Some(&mut planning);
            let question = Some("Run this plan");
            settle(change, &grants, &mut TerminalPrompt { question, changing, ..TerminalPrompt::default() })
        }
    };
    settled.map_err(|refused| refused.log(toolbox))
}

/// The editor of a plan at the prompt.
struct PlanEditor<'a> {
    toolbox: &'a mut Toolbox,
    checked: ValidPlan,
    parameters: Parameters,
    args: &'a ExecutionArgs,
    known: &'a mut Vec<(String, String)>,
}

impl ChangeEditor for PlanEditor<'_> {
    fn editable(&self, change: &PreparedChange) -> Result<(&'static str, Value)> {
        let plan =
            change.plan().map(|preview| serde_json::to_value(&preview.plan)).transpose().map_err(io::Error::from);
        Ok(("the plan", plan.map_err(|error| Error::io("the plan to edit", &error))?.unwrap_or_default()))
    }

    fn edited(&mut self, edited: Value) -> Result<PreparedChange> {
        let again = prepare(self.toolbox, &edited, &self.args.set, self.known)?;
        if let Some(blocked) = again.preview.blocked {
            return Err(blocked);
        }
        (self.checked, self.parameters) = (again.checked, again.parameters);
        Ok(PreparedChange::of_plan(again.preview, self.toolbox.policy()))
    }

    fn choose(&mut self, whole: &PreparedChange) -> Result<PartChoice<PreparedChange>> {
        let Some(plan) = whole.plan() else { return Ok(PartChoice::Whole) };
        let Self { toolbox, checked, parameters, .. } = self;
        let again = |left_out: &BTreeSet<CallId>| {
            let listening = crate::listen();
            plan::dry_run_without(toolbox, checked, parameters, left_out, Cancel::on(listening.flag()))
        };
        Ok(match choose_of_plan(plan, again)? {
            PartChoice::Part(rest) => PartChoice::Part(PreparedChange::of_plan(rest, self.toolbox.policy())),
            PartChoice::Whole => PartChoice::Whole,
            PartChoice::Nothing => PartChoice::Nothing,
        })
    }
}

fn print_preview(preview: &PlanPreview, toolbox: &Toolbox, format: Format, out: &mut Out) -> CliResult {
    let digest = digest_and_time(preview, toolbox);
    let record = || PlanRecord {
        goal: &preview.plan.goal,
        assumptions: &preview.plan.assumptions,
        declared: preview.plan.risk_level,
        risk: preview.risk,
        steps: &preview.steps,
        change: preview.preview(),
        notices: &preview.notices,
        blocked: preview.blocked.as_ref(),
        stops: preview.stops.as_ref().map(|(step, error)| (step.as_str(), error)),
        digest: &digest,
    };
    match format {
        Format::Json => out.json(&record())?,
        Format::JsonLines => out.record(&record())?,
        Format::Human => {
            let text = out.paint.diff(&whole_text(preview));
            out.text(&text)?;
            out.line(&format!("\ndigest {digest}"))?;
        }
    }
    Ok(Outcome::Done)
}

/// Returns the number of calls of the loops from which items were left out.
fn calls_of(preview: &PlanPreview, done: &PlanRun) -> usize {
    let loops = preview.steps.iter().filter(|step| done.left_out.iter().any(|(id, _)| *id == step.id));
    loops.map(|step| step.calls.len()).sum()
}

/// Prints progress for people.
fn print_event(event: &Event) {
    match event {
        Event::StepStarted { step, tool } => say("step", &format!("{step} ({tool})")),
        Event::StepSkipped { step, reason, .. } => say("skipped", &format!("{step}: {reason}")),
        Event::StepFailed { step, error, attempt, will_retry } => {
            let next = if *will_retry { "; retrying" } else { "" };
            say("failed", &format!("{step}, attempt {attempt}: {}{next}", error.one_line()));
        }
        _ => {}
    }
}
