//! `vault-tools call`: calls one tool, and asks a person where the policy says so.

use std::path::{Path, PathBuf};

use serde_json::Value;
use vault_tools::{
    Approval, Cancel, Error, ErrorKind, Grants, Output, Permission, Preview, Proposal, Result, Toolbox, Toolset,
    content_of, text_of,
};

use crate::{CliResult, Out, Outcome, Writing, can_ask, note, program, sanitize, sanitize_line, say};

use super::approve::{Answer, Question, ask_about, declined, nobody_to_ask, nobody_to_ask_but, tick};
use super::args::{CallArgs, VaultArgs};
use super::choose::{Chosen, choose_hunks};
use super::context::{json, json_of, with_vaults};
use super::preview_text::{has_parts, texts_after};
use super::records::CallRecord;

/// What a person can edit.
const ARGUMENTS: &str = "arguments";

/// How often --yes repeats a call on files that changed meanwhile.
const MAX_ATTEMPTS: usize = 20;

pub(super) fn call(vault_args: &VaultArgs, args: &CallArgs, out: &mut Out) -> CliResult {
    with_vaults(vault_args, &args.context, |vaults| {
        let given = match args.args.as_str() {
            "-" => json_of(Path::new("-"))?,
            text => json(text, "arguments")?,
        };
        let route = vaults.route(&args.tool, given)?;
        // Held until the output is printed: a signal that comes after the change must not end the command.
        let mut writing = None;
        let mut all = Vec::new();
        for &vault in &route.vaults {
            let name = vaults.names().nth(vault).filter(|_| vaults.names().count() > 1).map(str::to_owned);
            let made = make(vaults.toolbox(vault), args, route.args.clone(), name.as_deref(), &mut writing);
            let mut made = made.map_err(|error| vaults.shown_error(vault, error))?;
            made.output.value = vaults.shown(vault, &args.tool, made.output.value)?;
            if let Some(name) = name {
                made.output.notices.iter_mut().for_each(|notice| *notice = format!("{name}: {notice}"));
            }
            all.push(made);
        }
        let values: Vec<Value> = all.iter_mut().map(|made| made.output.value.take()).collect();
        let made = all.into_iter().reduce(|mut merged, next| {
            merged.output.notices.extend(next.output.notices);
            merged.vault = None;
            merged
        });
        let Some(mut made) = made else { return Ok(Outcome::Done) };
        made.output.value = match <[Value; 1]>::try_from(values) {
            Ok([value]) => value,
            Err(values) => vaults.merged(&args.tool, &route.args, values),
        };
        made.output.notices.extend(route.notice);
        print_made(made, args, out)
    })
}

/// Makes the call that a person's command stands for; `said` is its output in words, and whether
/// anything has changed.
pub(super) fn typed(
    toolbox: &mut Toolbox,
    args: &CallArgs,
    given: Value,
    said: impl FnOnce(&Value, bool) -> String,
    out: &mut Out,
) -> CliResult {
    let mut writing = None;
    let mut made = make(toolbox, args, given, None, &mut writing)?;
    if !args.json {
        let changes = made.proposed.as_ref().is_none_or(|(preview, _)| !preview.files.is_empty());
        made.output.value = said(&made.output.value, changes).into();
    }
    if !args.dry_run {
        made.proposed = None;
    }
    print_made(made, args, out)
}

/// A call that was made, or only proposed.
struct Made {
    tool: String,
    args: Value,
    output: Output,
    /// Whether a person saw the change.
    was_shown: bool,
    /// The vault's name and the folder that `undo` has to be told, where there are several.
    vault: Option<(String, PathBuf)>,
    /// The change that was proposed only, as diffs and as text.
    proposed: Option<(Preview, String)>,
}

/// Makes a call in one vault, or proposes it where that is all that is asked for.
fn make(
    toolbox: &mut Toolbox,
    args: &CallArgs,
    given: Value,
    vault: Option<&str>,
    writing: &mut Option<Writing>,
) -> Result<Made> {
    let vault = vault.map(|name| (name.to_owned(), toolbox.vault().sandbox().vault().to_path_buf()));
    let head = vault.iter().map(|(name, _)| format!("in the vault {}:", sanitize_line(name))).collect();
    let mut call = Calling { toolbox, args, head, decision: Approval::Allowed };
    let mut proposal = match call.toolbox.spec(&args.tool)?.toolset {
        Toolset::Chat => call.asked_before(given)?,
        _ => call.propose(given)?,
    };
    if args.dry_run || args.typed && proposal.only_reads() {
        let preview = proposal.change.preview();
        let text = if proposal.only_reads() { String::new() } else { texts_after(call.head, &preview).1 };
        let output = Output::previewed(proposal.output, preview.notices.clone());
        let proposed = Some((preview, text));
        return Ok(Made { tool: proposal.tool, args: proposal.args, output, was_shown: false, vault, proposed });
    }
    let mut attempts = 1;
    loop {
        let approved = call.approved(proposal)?;
        let (tool, used) = (approved.tool.clone(), approved.args.clone());
        let was_shown = !approved.only_reads() && matches!(call.decision, Approval::Approved | Approval::Edited);
        writing.get_or_insert_with(crate::write_section);
        match call.toolbox.apply(approved, call.decision) {
            // Nobody was shown the files, so the call may build on what another process wrote meanwhile.
            Err(error) if args.yes && error.kind() == ErrorKind::Conflict && attempts < MAX_ATTEMPTS => {
                attempts += 1;
                proposal = call.propose(used)?;
            }
            output => return Ok(Made { tool, args: used, output: output?, was_shown, vault, proposed: None }),
        }
    }
}

fn print_made(made: Made, args: &CallArgs, out: &mut Out) -> CliResult {
    let Made { tool, args: used, output, was_shown, vault, proposed } = made;
    let Output { value, run, notices, left_out, .. } = output;
    if args.json {
        let change = proposed.map(|(preview, _)| preview);
        let run = run.map(|run| run.0);
        let vault = vault.map(|(name, _)| name);
        out.json(&CallRecord { vault, tool, args: used, output: value, run, notices, left_out, change })?;
        return Ok(Outcome::Done);
    }
    if let Some((_, text)) = proposed.filter(|(_, text)| !text.is_empty()) {
        let text = out.paint.diff(&text);
        out.text(&text)?;
        return Ok(Outcome::Done);
    }
    if !was_shown {
        notices.iter().for_each(|notice| note(notice));
    }
    left_out.iter().filter(|_| was_shown).for_each(|left_out| note(&left_out.sentence()));
    print(&value, out)?;
    if let Some(run) = run {
        let vault = vault.map(|(_, folder)| format!(" --vault {folder:?}")).unwrap_or_default();
        note(&format!("transaction {run}; {} undo{vault} reverts it", program()));
    }
    Ok(Outcome::Done)
}

struct Calling<'a> {
    toolbox: &'a mut Toolbox,
    args: &'a CallArgs,
    /// What stands before a preview: the vault, where there are several.
    head: Vec<String>,
    decision: Approval,
}

impl Calling<'_> {
    fn propose(&mut self, args: Value) -> Result<Proposal> {
        let listening = crate::listen();
        self.toolbox.propose(&self.args.tool, args, Cancel::on(listening.flag()))
    }

    /// Logs a call that was not made.
    fn refused(&mut self, args: &Value, reason: Error) -> Error {
        self.toolbox.refuse(&self.args.tool, args, &reason);
        reason
    }

    /// Whether a person has to be asked. What is denied is refused, and logged, when it is proposed or made.
    fn has_to_ask(&mut self, permission: Permission, args: &Value) -> Result<bool> {
        match permission {
            Permission::Allow | Permission::Deny(_) => Ok(false),
            Permission::Ask if self.args.yes => {
                self.decision = Approval::Preapproved;
                Ok(false)
            }
            Permission::Ask if can_ask() => Ok(true),
            // Only a tool that asks before it reads gets here.
            Permission::Ask if self.args.dry_run => {
                let remedy = "it changes nothing: run it with --yes in place of --dry-run";
                Err(self.refused(args, nobody_to_ask_but(&self.args.tool, remedy)))
            }
            Permission::Ask => Err(self.refused(args, nobody_to_ask(&self.args.tool))),
        }
    }

    fn agreed(&mut self) {
        if self.decision != Approval::Edited {
            self.decision = Approval::Approved;
        }
    }

    /// A call of the toolset `chat`: a person is asked before anything is read, and again before it is shared.
    fn asked_before(&mut self, mut args: Value) -> Result<Proposal> {
        let tool = &self.args.tool;
        loop {
            let permission = self.toolbox.permission(tool, &args, &Grants::default())?;
            if !self.has_to_ask(permission, &args)? {
                return self.propose(args);
            }
            if let Some(paths) = args.get_mut("filePaths").and_then(Value::as_array_mut) {
                keep_ticked("Share these files?", paths, text_of);
                if paths.is_empty() {
                    return Err(self.refused(&args, declined()));
                }
                self.agreed();
                return self.propose(args);
            }
            let text = format!("{tool} {args}");
            let about = Question {
                question: "Run it?",
                short: &text,
                whole: &text,
                edited: Some((ARGUMENTS, &args)),
                has_parts: false,
            };
            match ask_about(&about)? {
                Answer::No | Answer::Choose => return Err(self.refused(&args, declined())),
                Answer::Edited(edited) => {
                    args = edited;
                    self.decision = Approval::Edited;
                }
                Answer::Yes => {
                    self.agreed();
                    let mut proposal = self.propose(args)?;
                    // Nothing in the output hints at what the person withholds.
                    if let Some(found) = proposal.output.as_array_mut().filter(|found| !found.is_empty()) {
                        let part = |item: &Value, name: &str| item.get(name).map(text_of).unwrap_or_default();
                        let name = |item: &Value| format!("{}  {}", part(item, "path"), part(item, "preview"));
                        keep_ticked("Share these results?", found, name);
                    }
                    return Ok(proposal);
                }
            }
        }
    }

    /// The proposal once the policy or a person approves it.
    fn approved(&mut self, mut proposal: Proposal) -> Result<Proposal> {
        // Arguments that were edited and cannot be used, to be edited further.
        let mut typed: Option<Value> = None;
        // What was proposed, where a person has left out some of it.
        let mut whole_proposal: Option<Proposal> = None;
        loop {
            let permission = self.toolbox.policy().decide(&proposal.as_call(), &Grants::default());
            let was_asked = proposal.only_reads() && self.decision != Approval::Allowed;
            if was_asked || !self.has_to_ask(permission, &proposal.args)? {
                return Ok(proposal);
            }
            let preview = proposal.change.preview();
            let (short, whole) = texts_after(self.head.clone(), &preview);
            let effects: String =
                proposal.effects.iter().map(|effect| format!("it {}\n", sanitize_line(&effect.to_string()))).collect();
            let question = format!("{} ({}): do it?", proposal.tool, proposal.risk.name());
            let (short, whole) = (format!("{effects}{short}"), format!("{effects}{whole}"));
            let about = Question {
                question: &question,
                short: &short,
                whole: &whole,
                edited: Some((ARGUMENTS, typed.as_ref().unwrap_or(&proposal.args))),
                has_parts: whole_proposal.is_some() || has_parts(&preview),
            };
            match ask_about(&about)? {
                Answer::Yes => {
                    self.agreed();
                    return Ok(proposal);
                }
                Answer::No => return Err(self.refused(&proposal.args, declined())),
                Answer::Choose => {
                    let all = whole_proposal.take().unwrap_or_else(|| proposal.clone());
                    match choose_hunks(all.separable_files()) {
                        Chosen::Whole => {}
                        Chosen::Nothing => return Err(self.refused(&proposal.args, declined())),
                        Chosen::Part(files) => {
                            proposal = all.clone();
                            proposal.keep(&files);
                            if proposal.only_reads() {
                                return Err(self.refused(&proposal.args, declined()));
                            }
                        }
                    }
                    whole_proposal = Some(all);
                }
                Answer::Edited(edited) => match self.propose(edited.clone()) {
                    Ok(again) => {
                        (typed, whole_proposal) = (None, None);
                        self.decision = Approval::Edited;
                        proposal = again;
                    }
                    // Arguments can be edited again; what the settings deny stays denied.
                    Err(error) if !matches!(error.kind(), ErrorKind::Denied | ErrorKind::Cancelled) => {
                        say("error", &error.to_string());
                        typed = Some(edited);
                    }
                    Err(error) => return Err(error),
                },
            }
        }
    }
}

/// Keeps the items that a person selects.
fn keep_ticked(question: &str, items: &mut Vec<Value>, name: impl Fn(&Value) -> String) {
    let names: Vec<String> = items.iter().map(name).collect();
    let mut ticked = tick(question, &names, |at| format!("{:#}", items[at])).into_iter();
    items.retain(|_| ticked.next() == Some(true));
}

/// Of an object with a `content`, that alone goes to standard output, and the rest to standard error.
fn print(output: &Value, out: &mut Out) -> std::io::Result<()> {
    let text = match (output, content_of(output)) {
        (Value::String(text), _) => text.clone(),
        (_, Some((content, rest))) => {
            note(&rest.to_string());
            content.to_owned()
        }
        (value, None) => serde_json::to_string_pretty(value)?,
    };
    let text = if std::io::IsTerminal::is_terminal(&std::io::stdout()) { sanitize(&text).into_owned() } else { text };
    out.text(&text)?;
    if !text.ends_with('\n') {
        out.line("")?;
    }
    Ok(())
}
