//! `vault-tools call`: calls one tool, and asks a person where the rules say so.

use std::path::Path;

use serde_json::Value;
use vault_cli::{CliResult, Out, Outcome, can_ask, note, sanitize, sanitize_line, say};

use super::approve::{Answer, ask_about, declined, nobody_to_ask, texts_of, tick};
use super::args::{CallArgs, VaultArgs};
use super::context::{json, json_of, toolbox};
use super::records::CallRecord;
use crate::error::{Error, ErrorKind, Result};
use crate::log::Approval;
use crate::policy::{Grants, Permission, Toolset};
use crate::tool::Cancel;
use crate::toolbox::{Output, Proposal, Toolbox};

/// How often --yes repeats a call on files that changed meanwhile.
const MAX_ATTEMPTS: usize = 20;

pub(super) fn call(vault_args: &VaultArgs, args: &CallArgs, out: &mut Out) -> CliResult {
    let mut toolbox = toolbox(vault_args, &args.context)?;
    let ended = call_on(&mut toolbox, args, out);
    warn_of_log(&mut toolbox);
    ended
}

/// Warns of a missing line in the log, which changes nothing about what was done.
pub(super) fn warn_of_log(toolbox: &mut Toolbox) {
    if let Some(error) = toolbox.take_log_error() {
        say("warning", &format!("this could not be logged: {error}"));
    }
}

fn call_on(toolbox: &mut Toolbox, args: &CallArgs, out: &mut Out) -> CliResult {
    let given = match args.args.as_str() {
        "-" => json_of(Path::new("-"))?,
        text => json(text, "arguments")?,
    };
    let mut call = Calling { toolbox, args, decision: Approval::Allowed };
    let mut proposal = match call.toolbox.spec(&args.tool)?.toolset {
        Toolset::Chat => call.asked_before(given)?,
        _ => call.propose(given)?,
    };
    if args.dry_run {
        return dry_run(&proposal, args, out);
    }
    // Held until the output is printed: a signal that comes after the change must not end the command.
    let mut writing = None;
    let mut attempts = 1;
    let (tool, used, output) = loop {
        let (approved, decision) = call.approved(proposal)?;
        let (tool, used) = (approved.tool.clone(), approved.args.clone());
        writing.get_or_insert_with(vault_cli::write_section);
        match call.toolbox.apply(approved, decision) {
            // Nobody was shown the files, so the call may build on what another process wrote meanwhile.
            Err(error) if args.yes && error.kind() == ErrorKind::Conflict && attempts < MAX_ATTEMPTS => {
                attempts += 1;
                proposal = call.propose(used)?;
            }
            result => break (tool, used, result?),
        }
    };
    match args.json {
        true => {
            let run = output.run.map(|run| run.0);
            out.json(&CallRecord { tool, args: used, output: output.value, run, change: None })?;
        }
        false => print(&output, out)?,
    }
    Ok(Outcome::Done)
}

struct Calling<'a> {
    toolbox: &'a mut Toolbox,
    args: &'a CallArgs,
    decision: Approval,
}

impl Calling<'_> {
    fn propose(&mut self, args: Value) -> Result<Proposal> {
        let listening = vault_cli::listen();
        self.toolbox.propose(&self.args.tool, args, Cancel::on(listening.flag()))
    }

    /// Logs a call that was not made.
    fn refused(&mut self, args: &Value, reason: Error) -> Error {
        self.toolbox.refuse(&self.args.tool, args, &reason);
        reason
    }

    /// A call of the toolset `chat`: a person is asked before anything is read, and again before it is shared.
    fn asked_before(&mut self, mut args: Value) -> Result<Proposal> {
        let tool = self.args.tool.clone();
        loop {
            match self.toolbox.permission(&tool, &args, &Grants::default())? {
                // What is denied is refused, and logged, when it is proposed.
                Permission::Allow | Permission::Deny(_) => return self.propose(args),
                Permission::Ask if self.args.yes => {
                    self.decision = Approval::Approved;
                    return self.propose(args);
                }
                Permission::Ask if !can_ask() => return Err(self.refused(&args, nobody_to_ask(&tool))),
                Permission::Ask => {}
            }
            if let Some(paths) = args.get("filePaths").and_then(Value::as_array).cloned() {
                let names: Vec<String> = paths.iter().map(crate::toolbox::text_of).collect();
                let ticked = tick("Share these files?", &names);
                let kept: Vec<Value> =
                    paths.into_iter().zip(ticked).filter(|(_, ticked)| *ticked).map(|(p, _)| p).collect();
                if kept.is_empty() {
                    return Err(self.refused(&args, declined()));
                }
                self.decision = Approval::Approved;
                args["filePaths"] = Value::Array(kept);
                return self.propose(args);
            }
            let text = format!("{tool} {args}");
            match ask_about("Run it?", &text, &text, Some(&args))? {
                Answer::No => return Err(self.refused(&args, declined())),
                Answer::Edited(edited) => {
                    args = edited;
                    self.decision = Approval::Edited;
                }
                Answer::Yes => {
                    if self.decision != Approval::Edited {
                        self.decision = Approval::Approved;
                    }
                    return self.propose(args).map(withheld);
                }
            }
        }
    }

    /// The proposal once the rules or a person approve it, and who did.
    fn approved(&mut self, mut proposal: Proposal) -> Result<(Proposal, Approval)> {
        loop {
            let grants = Grants::default();
            let permission = self.toolbox.policy().decide(&proposal.as_call(), &grants);
            match permission {
                // What is denied is refused, and logged, when it is to be done.
                Permission::Allow | Permission::Deny(_) => return Ok((proposal, self.decision)),
                Permission::Ask if self.args.yes => return Ok((proposal, Approval::Approved)),
                // Asked and answered before it was run.
                Permission::Ask if proposal.only_reads() && self.decision != Approval::Allowed => {
                    return Ok((proposal, self.decision));
                }
                Permission::Ask if !can_ask() => {
                    let refusal = nobody_to_ask(&proposal.tool);
                    // Logs the refusal.
                    let _ = self.toolbox.apply(proposal, Approval::Denied);
                    return Err(refusal);
                }
                Permission::Ask => {}
            }
            let (short, whole) = texts_of(&proposal.change.preview());
            let effects: String =
                proposal.effects.iter().map(|effect| format!("it {}\n", sanitize_line(&effect.to_string()))).collect();
            let question = format!("{} ({}): do it?", proposal.tool, proposal.risk);
            match ask_about(
                &question,
                &format!("{effects}{short}"),
                &format!("{effects}{whole}"),
                Some(&proposal.args),
            )? {
                Answer::Yes => {
                    let decision = if self.decision == Approval::Edited { self.decision } else { Approval::Approved };
                    return Ok((proposal, decision));
                }
                Answer::No => {
                    let _ = self.toolbox.apply(proposal, Approval::Denied);
                    return Err(declined());
                }
                Answer::Edited(edited) => match self.propose(edited) {
                    Ok(again) => {
                        self.decision = Approval::Edited;
                        proposal = again;
                    }
                    // Arguments can be edited again; what the settings deny stays denied.
                    Err(error) if !matches!(error.kind(), ErrorKind::Denied | ErrorKind::Cancelled) => {
                        say("error", &error.to_string())
                    }
                    Err(error) => return Err(error),
                },
            }
        }
    }
}

/// What a search of the toolset `chat` found, without what the person withholds. Nothing in the answer hints at it.
fn withheld(mut proposal: Proposal) -> Proposal {
    if let Value::Array(found) = &proposal.output
        && !found.is_empty()
    {
        let name = |item: &Value| item.get("path").map(crate::toolbox::text_of).unwrap_or_default();
        let names: Vec<String> = found.iter().map(name).collect();
        let ticked = tick("Share these results?", &names);
        let kept = found.iter().zip(ticked).filter(|(_, ticked)| *ticked).map(|(item, _)| item.clone());
        proposal.output = Value::Array(kept.collect());
    }
    proposal
}

fn dry_run(proposal: &Proposal, args: &CallArgs, out: &mut Out) -> CliResult {
    let preview = proposal.change.preview();
    if args.json {
        let record = CallRecord {
            tool: proposal.tool.clone(),
            args: proposal.args.clone(),
            output: proposal.output.clone(),
            run: None,
            change: Some(preview),
        };
        out.json(&record)?;
    } else if proposal.only_reads() {
        print(&Output { value: proposal.output.clone(), run: None }, out)?;
    } else {
        let text = out.paint.diff(&texts_of(&preview).1);
        out.text(&text)?;
    }
    Ok(Outcome::Done)
}

fn print(output: &Output, out: &mut Out) -> std::io::Result<()> {
    let text = match &output.value {
        Value::String(text) => text.clone(),
        value => serde_json::to_string_pretty(value)?,
    };
    let text = if std::io::IsTerminal::is_terminal(&std::io::stdout()) { sanitize(&text).into_owned() } else { text };
    out.text(&text)?;
    if !text.ends_with('\n') {
        out.line("")?;
    }
    if let Some(run) = output.run {
        note(&format!("transaction {run}; vault-tools undo reverts it"));
    }
    Ok(())
}
