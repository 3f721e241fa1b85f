//! `vault-tools plan`: checks, previews and runs plans.

use std::collections::BTreeSet;
use std::io;

use jiff::tz::TimeZone;
use jiff::{Timestamp, Unit};
use serde_json::{Value, json};
use vault_tools::plan::{self, CallId, Checked, Event, Parameters, PlanPreview, PlanRun, RunStatus};
use vault_tools::{Approval, Cancel, Error, ErrorKind, Grants, Permission, Result, Toolbox};

use crate::{
    CliResult, Format, Out, Outcome, ask, ask_for_lines, can_ask, note, program, sanitize, sanitize_line, say,
};

use super::approve::{Answer, Question, ask_about, declined, nobody_to_ask};
use super::choose::{Chosen, choose_of_plan};
use super::context::{json_of, list_of_parameters, parameters, with_toolbox};
use super::plan_args::{ContextArgs, PlanFileArgs, PlanPreviewArgs, PlanRunArgs, RunningArgs};
use super::plan_text::{change_of, left_out, texts_of_plan, whole_text};
use super::preview_text::has_parts;
use super::records::PlanRecord;
use crate::VaultArgs;

/// The most notices that are printed after a run.
const MAX_NOTICES: usize = 20;

pub(super) fn check(vault_args: &VaultArgs, args: &PlanFileArgs, out: &mut Out) -> CliResult {
    with_toolbox(vault_args, &ContextArgs::default(), |toolbox| check_on(toolbox, args, out))
}

fn check_on(toolbox: &Toolbox, args: &PlanFileArgs, out: &mut Out) -> CliResult {
    let (record, text, outcome) = match plan::validate(&json_of(&args.file)?, toolbox) {
        Ok(Checked { risk, parameters, notices, .. }) => {
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
        // The exit code tells the outcome even if nobody reads the text.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(outcome),
    }
}

pub(super) fn preview(vault_args: &VaultArgs, args: &PlanPreviewArgs, out: &mut Out) -> CliResult {
    with_toolbox(vault_args, &args.context, |toolbox| {
        let prepared = dry_run(toolbox, &json_of(&args.plan.file)?, &args.context.set, &mut Vec::new())?;
        print_preview(&prepared.preview, toolbox, if args.plan.json { Format::Json } else { Format::Human }, out)
    })
}

pub(super) fn run(vault_args: &VaultArgs, args: &PlanRunArgs, out: &mut Out) -> CliResult {
    with_toolbox(vault_args, &args.running.context, |toolbox| {
        run_value(toolbox, &json_of(&args.file)?, &args.running, &[], out)
    })
}

/// Shows a plan, asks, and runs it; `defaults` are values of parameters that nobody gives.
///
/// # Errors
/// A plan that is not valid, is not approved, or fails.
pub fn run_value(
    toolbox: &mut Toolbox,
    value: &Value,
    args: &RunningArgs,
    defaults: &[(String, String)],
    out: &mut Out,
) -> CliResult {
    if let Some((_, time)) = args.digest.as_deref().and_then(|digest| digest.split_once('@')) {
        let time: Timestamp = time.parse().map_err(|error| {
            Error::new(ErrorKind::InvalidArguments, format!("what follows the @ is not a time: {error}"))
                .at("--digest")
                .with_remedy("copy it as the preview prints it")
        })?;
        toolbox.set_now(time.to_zoned(TimeZone::system()));
    }
    let mut asked = defaults.to_vec();
    let mut prepared = dry_run(toolbox, value, &args.context.set, &mut asked)?;
    if args.dry_run {
        let format = if args.jsonl { Format::JsonLines } else { Format::Human };
        return print_preview(&prepared.preview, toolbox, format, out);
    }
    let decision = approved(toolbox, &mut prepared, args, &mut asked)
        .inspect_err(|error| plan::refuse(toolbox, &prepared.preview, error))?;
    let preview = prepared.preview;
    let listening = crate::listen();
    let _writing = crate::write_section();
    let cancel = Cancel::on(listening.flag());
    // The plan runs on even when nobody reads its events any more.
    let mut written = Ok(());
    let mut report = |event: &Event| {
        if !args.jsonl {
            print_event(event);
        } else if written.is_ok() {
            written = out.record(event).and_then(|()| out.flush());
        }
    };
    let done = plan::run(toolbox, &preview, decision, cancel, &mut report)?;
    done.left_out.iter().for_each(|(step, item)| say("left out", &format!("{step}, {}", left_out(item))));
    say_notices(&done.notices);
    if let Some((step, error)) = &done.failed {
        let left = match done.transaction {
            Some(_) => format!("the steps before it stay; {} undo reverts them", program()),
            None => "nothing was changed".to_owned(),
        };
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

/// What the steps say, the first of many.
fn say_notices(notices: &[String]) {
    notices.iter().take(MAX_NOTICES).for_each(|notice| note(&sanitize_line(notice)));
    if let Some(more @ 1..) = notices.len().checked_sub(MAX_NOTICES) {
        note(&format!("{more} more; plan preview and --jsonl have them all"));
    }
}

/// A plan that is ready to be approved.
struct Prepared {
    checked: Checked,
    parameters: Parameters,
    preview: PlanPreview,
}

/// Checks and previews; parameters that are missing are taken from those that are known, or are asked for and then known.
fn dry_run(
    toolbox: &mut Toolbox,
    value: &Value,
    set: &[String],
    known: &mut Vec<(String, String)>,
) -> Result<Prepared> {
    // A plan sees one time as now, to the second, so that it can be printed with the digest.
    let now = toolbox.now();
    toolbox.set_now(now.round(Unit::Second).unwrap_or(now));
    let checked: Checked = plan::validate(value, toolbox)?;
    let mut parameters = parameters(toolbox, set, &checked.parameters)?;
    let missing: Vec<String> = parameters.missing(&checked.parameters).into_iter().map(str::to_string).collect();
    for name in missing {
        if let Some((_, value)) = known.iter().find(|(parameter, _)| *parameter == name) {
            parameters.set(name, value.clone());
        } else if can_ask()
            && let Some(given) = asked(&name)
        {
            known.push((name.clone(), given.clone()));
            parameters.set(name, given);
        }
    }
    let listening = crate::listen();
    let preview = plan::preview(toolbox, &checked, &parameters, Cancel::on(listening.flag()))?;
    Ok(Prepared { checked, parameters, preview })
}

/// A parameter's value, typed by a person; that of the selection may have several lines.
fn asked(name: &str) -> Option<String> {
    if name == "selection" { ask_for_lines("selection:") } else { ask(&format!("{name}:")) }
}

/// What `plan preview` prints and `--digest` takes: the digest, and the time the preview took as now. With the same time
/// the same preview comes out, however long somebody thought about it.
fn digest_and_time(preview: &PlanPreview, toolbox: &Toolbox) -> String {
    format!("{}@{}", preview.digest, toolbox.now().strftime("%Y-%m-%dT%H:%M:%S%:z"))
}

/// Who approves a plan, which a person may have edited, or parts of which are left out.
fn approved(
    toolbox: &mut Toolbox,
    prepared: &mut Prepared,
    args: &RunningArgs,
    known: &mut Vec<(String, String)>,
) -> Result<Approval> {
    if let Some(error) = &prepared.preview.blocked {
        return Err(error.clone());
    }
    if let Some(approved) = &args.digest {
        return match approved.split('@').next() == Some(&prepared.preview.digest) {
            true => Ok(Approval::Approved),
            // The new digest is printed beside what it stands for, and nowhere else.
            false => Err(Error::new(ErrorKind::Conflict, "the plan no longer does what was approved")
                .with_remedy("look at it again with plan preview, which prints its new digest")),
        };
    }
    let mut approval = Approval::Approved;
    // A plan that was edited and is not valid, to be edited further.
    let mut typed: Option<Value> = None;
    // All of the plan, where a person has left out some of it.
    let mut whole_plan: Option<PlanPreview> = None;
    loop {
        let preview = &prepared.preview;
        match preview.permission(toolbox.policy(), &Grants::default()) {
            Permission::Allow if approval == Approval::Approved => return Ok(Approval::Allowed),
            Permission::Deny(reason) => return Err(Error::new(ErrorKind::Denied, reason)),
            Permission::Ask if args.yes => return Ok(Approval::Preapproved),
            Permission::Ask if !can_ask() => return Err(nobody_to_ask("the plan")),
            Permission::Allow | Permission::Ask => {}
        }
        let change = change_of(preview);
        let (short, whole) = texts_of_plan(preview, &change);
        let plan = typed.clone().map_or_else(|| serde_json::to_value(&preview.plan), Ok).map_err(io::Error::from);
        let plan = plan.map_err(|error| Error::io("the plan to edit", &error))?;
        let about = Question {
            question: "Run this plan?",
            short: &short,
            whole: &whole,
            edited: Some(("the plan", &plan)),
            has_parts: whole_plan.is_some() || has_parts(&change),
        };
        match ask_about(&about)? {
            Answer::Yes => return Ok(approval),
            Answer::No => return Err(declined()),
            Answer::Choose => {
                let all = whole_plan.take().unwrap_or_else(|| preview.clone());
                let again = |left_out: &BTreeSet<CallId>| {
                    let listening = crate::listen();
                    let cancel = Cancel::on(listening.flag());
                    plan::preview_without(toolbox, &prepared.checked, &prepared.parameters, left_out, cancel)
                };
                match choose_of_plan(&all, again) {
                    Ok(Chosen::Part(chosen)) => prepared.preview = chosen,
                    Ok(Chosen::Whole) => {}
                    Ok(Chosen::Nothing) => return Err(declined()),
                    Err(error) if error.kind() == ErrorKind::Cancelled => return Err(error),
                    // What is left cannot be done without what was left out.
                    Err(error) => {
                        say("error", &error.within("without what is left out").to_string());
                        note("nothing is left out; this is the whole plan again:");
                        prepared.preview = all.clone();
                    }
                }
                whole_plan = Some(all);
            }
            Answer::Edited(edited) => match dry_run(toolbox, &edited, &args.context.set, known)
                .and_then(|again| again.preview.blocked.clone().map_or(Ok(again), Err))
            {
                Ok(again) => {
                    (typed, whole_plan, approval) = (None, None, Approval::Edited);
                    *prepared = again;
                }
                Err(error) if !matches!(error.kind(), ErrorKind::Denied | ErrorKind::Cancelled) => {
                    say("error", &error.to_string());
                    typed = Some(edited);
                }
                Err(error) => return Err(error),
            },
        }
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
        change: preview.change.preview(),
        notices: &preview.notices,
        blocked: preview.blocked.as_ref(),
        digest: &digest,
    };
    match format {
        Format::Json => out.json(&record())?,
        Format::JsonLines => out.record(&record())?,
        Format::Human => {
            let text = out.paint.diff(&whole_text(preview, &change_of(preview)));
            out.text(&text)?;
            out.line(&format!("\ndigest {digest}"))?;
        }
    }
    Ok(Outcome::Done)
}

/// The calls of the loops from which items were left out.
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
            say("failed", &format!("{step}, attempt {attempt}: {error}{next}"));
        }
        _ => {}
    }
}
