//! `vault-tools plan`: checks, previews and runs plans.

use std::io;

use jiff::tz::TimeZone;
use jiff::{Timestamp, Unit};
use serde_json::{Value, json};
use vault_cli::{CliResult, Format, Out, Outcome, ask, can_ask, note, sanitize, sanitize_line, say};

use super::approve::{Answer, ask_about, declined, nobody_to_ask};
use super::args::VaultArgs;
use super::context::{json_of, list_of_parameters, parameters, with_toolbox};
use super::plan_args::{ContextArgs, PlanFileArgs, PlanPreviewArgs, PlanRunArgs, RunningArgs};
use super::preview_text::texts_after;
use super::records::PlanRecord;
use crate::change::Preview;
use crate::error::{Error, ErrorKind, Result};
use crate::log::Approval;
use crate::plan::{self, Checked, Event, LeftOut, PlanPreview, PlanRun, RunStatus, StepState};
use crate::policy::{Grants, Permission, Risk};
use crate::tool::Cancel;
use crate::toolbox::Toolbox;

/// Calls of a loop, and items left out of it, that a question shows; `w` shows all.
const SHOWN_CALLS: usize = 8;

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
        let preview = dry_run(toolbox, &json_of(&args.plan.file)?, &args.context.set, &[])?;
        print_preview(&preview, toolbox, if args.plan.json { Format::Json } else { Format::Human }, out)
    })
}

pub(super) fn run(vault_args: &VaultArgs, args: &PlanRunArgs, out: &mut Out) -> CliResult {
    with_toolbox(vault_args, &args.running.context, |toolbox| {
        run_value(toolbox, &json_of(&args.file)?, &args.running, &[], out)
    })
}

/// Runs a plan; `defaults` are values of parameters that nobody gave.
pub(super) fn run_value(
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
                .with_remedy("copy it as plan preview prints it")
        })?;
        toolbox.set_now(time.to_zoned(TimeZone::system()));
    }
    let preview = dry_run(toolbox, value, &args.context.set, defaults)?;
    if args.dry_run {
        return print_preview(&preview, toolbox, if args.jsonl { Format::JsonLines } else { Format::Human }, out);
    }
    let can_run = preview.blocked.clone().map_or(Ok(()), Err);
    let decision = can_run
        .and_then(|()| approved(toolbox, &preview, args))
        .inspect_err(|error| plan::refuse(toolbox, &preview, error))?;
    let listening = vault_cli::listen();
    let _writing = vault_cli::write_section();
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
        let left = if done.run.is_some() {
            "the steps before it stay; vault-tools undo reverts them"
        } else {
            "nothing was changed"
        };
        let message = format!("step {step}: {}", error.message());
        return Err(Error::new(error.kind(), message).with_remedy(left).into());
    }
    written?;
    if !args.jsonl {
        let undo = done.run.map(|run| format!("; transaction {run}, vault-tools undo reverts it")).unwrap_or_default();
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

/// Checks and previews; parameters that are missing get their defaults, or are asked for.
fn dry_run(toolbox: &mut Toolbox, value: &Value, set: &[String], defaults: &[(String, String)]) -> Result<PlanPreview> {
    // A plan sees one time as now, to the second, so that it can be printed with the digest.
    let now = toolbox.now();
    toolbox.set_now(now.round(Unit::Second).unwrap_or(now));
    let checked: Checked = plan::validate(value, toolbox)?;
    let mut parameters = parameters(toolbox, set, &checked.parameters)?;
    let missing: Vec<String> = parameters.missing(&checked.parameters).into_iter().map(str::to_string).collect();
    for name in missing {
        if let Some((_, default)) = defaults.iter().find(|(parameter, _)| *parameter == name) {
            parameters.set(name, default.clone());
        } else if can_ask()
            && let Some(given) = ask(&format!("{name}:"))
        {
            parameters.set(name, given);
        }
    }
    let listening = vault_cli::listen();
    plan::preview(toolbox, &checked, &parameters, Cancel::on(listening.flag()))
}

/// What `plan preview` prints and `--digest` takes: the digest, and the time the preview took as now. With the same time
/// the same preview comes out, however long somebody thought about it.
fn digest_and_time(preview: &PlanPreview, toolbox: &Toolbox) -> String {
    format!("{}@{}", preview.digest, toolbox.now().strftime("%Y-%m-%dT%H:%M:%S%:z"))
}

fn approved(toolbox: &Toolbox, preview: &PlanPreview, args: &RunningArgs) -> Result<Approval> {
    if let Some(approved) = &args.digest {
        if approved.split('@').next() == Some(&preview.digest) {
            return Ok(Approval::Approved);
        }
        let now = digest_and_time(preview, toolbox);
        return Err(Error::new(ErrorKind::Conflict, "the plan no longer does what was approved")
            .with_remedy(format!("look at it again with plan preview; its digest is now {now}")));
    }
    match preview.permission(toolbox.policy(), &Grants::default()) {
        Permission::Allow => return Ok(Approval::Allowed),
        Permission::Deny(reason) => return Err(Error::new(ErrorKind::Denied, reason)),
        Permission::Ask if args.yes => return Ok(Approval::Preapproved),
        Permission::Ask if !can_ask() => return Err(nobody_to_ask("the plan")),
        Permission::Ask => {}
    }
    let change = change_of(preview);
    let (short, _) = texts_after(table(preview, SHOWN_CALLS), &change);
    match ask_about("Run this plan?", &short, &whole_text(preview, &change), None)? {
        Answer::Yes => Ok(Approval::Approved),
        _ => Err(declined()),
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

/// The changes without their notices, which are among those of the plan.
fn change_of(preview: &PlanPreview) -> Preview {
    Preview { notices: Vec::new(), ..preview.change.preview() }
}

fn whole_text(preview: &PlanPreview, change: &Preview) -> String {
    texts_after(table(preview, usize::MAX), change).1
}

/// Goal, steps with their risks, loops expanded up to so many calls, and notices.
fn table(preview: &PlanPreview, most: usize) -> Vec<String> {
    let mut lines = vec![format!("{} [{}]", sanitize_line(&preview.plan.goal), badge(preview.risk))];
    lines.extend(preview.plan.assumptions.iter().map(|text| format!("assumes: {}", sanitize_line(text))));
    let width = preview.steps.iter().map(|step| step.id.len()).max().unwrap_or(0);
    for (number, step) in preview.steps.iter().enumerate() {
        let what = step.preview.as_deref().map(sanitize_line).unwrap_or_default();
        let head = format!("{:>3}. {:width$}  [{}]  {}", number + 1, step.id, badge(step.risk), step.tool);
        lines.push(format!("{head}  {what}").trim_end().to_string());
        match &step.state {
            StepState::Skipped { reason } => lines.push(format!("       skipped: {}", sanitize_line(reason))),
            StepState::Ready if step.calls.len() > 1 => {
                let calls = step.calls.iter().map(|call| format!("- {}", in_short(&call.args)));
                lines.extend(indented(calls, most));
            }
            StepState::Ready => {}
        }
        let filtered = step.filtered.iter().map(|item| format!("filtered out: {}", left_out(item)));
        lines.extend(indented(filtered, most));
        lines.extend(indented(step.left_out.iter().map(|item| format!("left out: {}", left_out(item))), most));
        lines.extend(step.effects.iter().map(|effect| format!("       {}", sanitize_line(&effect.to_string()))));
    }
    let more = preview.notices.len().saturating_sub(most);
    lines.extend(preview.notices.iter().take(most).map(|notice| format!("note: {}", sanitize_line(notice))));
    lines.extend((more > 0).then(|| format!("note: {more} more")));
    lines
}

/// The first lines of a list, and how many more there are.
fn indented(lines: impl ExactSizeIterator<Item = String>, most: usize) -> Vec<String> {
    let more = lines.len().saturating_sub(most);
    let shown = lines.take(most).chain((more > 0).then(|| format!("... {more} more")));
    shown.map(|line| format!("       {line}")).collect()
}

fn badge(risk: Risk) -> String {
    risk.name().to_uppercase()
}

/// The calls of the loops from which items were left out.
fn calls_of(preview: &PlanPreview, done: &PlanRun) -> usize {
    let loops = preview.steps.iter().filter(|step| done.left_out.iter().any(|(id, _)| *id == step.id));
    loops.map(|step| step.calls.len()).sum()
}

/// An item that is left out, and why.
fn left_out(item: &LeftOut) -> String {
    format!("item {}, {}: {}", item.item, sanitize_line(&item.what), sanitize_line(&item.reason))
}

/// Paths of a call, or its arguments on one line.
fn in_short(args: &Value) -> String {
    let named = ["path", "fromPath", "toPath", "new_path"].into_iter().filter_map(|name| args.get(name)?.as_str());
    let named: Vec<&str> = named.collect();
    let text = if named.is_empty() { args.to_string() } else { named.join(" -> ") };
    let mut short: String = sanitize_line(&text).chars().take(120).collect();
    if short.len() < text.len() {
        short.push_str("...");
    }
    short
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_of_calls_are_cut_where_a_question_shows_them() {
        let lines = |most| indented(["a", "b", "c"].into_iter().map(str::to_owned), most);
        assert_eq!(lines(2), ["       a", "       b", "       ... 1 more"]);
        assert_eq!((lines(3).len(), lines(usize::MAX).len()), (3, 3));
    }
}
