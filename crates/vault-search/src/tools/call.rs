//! `vault-tools call`: calls one tool, and asks for approval if the policy requires it.

use std::path::{Path, PathBuf};

use serde_json::Value;
use vault_tools::approval::{Answer, AppliedChange, AutoApprover, GivenAnswer, PreparedChange, settle};
use vault_tools::{
    Cancel, Error, ErrorKind, Grants, Output, Permission, Preview, Proposal, Result, Toolbox, Toolset, content_of,
    text_of,
};

use crate::{CliResult, Out, Outcome, WriteGuard, ask, can_ask, note, program, sanitize, sanitize_line};

use super::approve::{
    ChangeEditor, PartChoice, Reply, TerminalPrompt, TerminalQuestion, ask_about, cancelled, nobody_to_ask,
    nobody_to_ask_but, tick,
};
use super::args::CallArgs;
use super::choose::choose_hunks;
use super::context::{json, json_of, with_vaults};
use super::plan_text::texts_for_client;
use super::records::CallRecord;
use crate::VaultArgs;

/// The name of the part of a call that can be edited.
const ARGUMENTS: &str = "arguments";

/// The maximum number of times that --yes makes a call if its files change meanwhile.
const MAX_ATTEMPTS: usize = 20;

pub(super) fn call(vault_args: &VaultArgs, args: &CallArgs, out: &mut Out) -> CliResult {
    with_vaults(vault_args, &args.context, |vaults| {
        let given = match args.args.as_str() {
            "-" => json_of(Path::new("-"))?,
            text => json(text, "arguments")?,
        };
        let route = vaults.route(&args.tool, given)?;
        // Held until the output is printed, because a signal after the change must not end the command.
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

/// Makes the call of a command such as `rename`. `said` turns its output, and whether anything has changed, into a
/// sentence.
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

/// The result of a call that was made or only proposed.
struct CallResult {
    tool: String,
    args: Value,
    output: Output,
    /// Whether a person has seen the change.
    was_shown: bool,
    /// The name of the vault and its folder, which `undo` needs, if there are several vaults.
    vault: Option<(String, PathBuf)>,
    /// The change that was only proposed, as diffs and as text.
    proposed: Option<(Preview, String)>,
}

/// Makes a call in one vault, or only proposes it for `--dry-run`.
fn make(
    toolbox: &mut Toolbox,
    args: &CallArgs,
    given: Value,
    vault: Option<&str>,
    writing: &mut Option<WriteGuard>,
) -> Result<CallResult> {
    let vault = vault.map(|name| (name.to_owned(), toolbox.vault().sandbox().vault().to_path_buf()));
    let head: Vec<String> = vault.iter().map(|(name, _)| format!("in the vault {}:", sanitize_line(name))).collect();
    let mut call = CallEditor { toolbox, args };
    let (mut change, mut given) = match call.toolbox.spec(&args.tool)?.toolset {
        Toolset::Chat => call.asked_before(given)?,
        _ => (call.prepare(given)?, None),
    };
    let changes_nothing = change.call().is_some_and(|call| call.only_reads());
    if args.dry_run || args.typed && changes_nothing {
        return Ok(call.proposed(&change, head, vault));
    }
    let mut attempts = 1;
    loop {
        let used = change.call().map(|call| call.args.clone()).unwrap_or_default();
        let grants = Grants::default();
        let settled = match given.take() {
            Some(answer) => settle(change, &grants, &mut GivenAnswer(Some(answer))),
            None if args.yes => settle(change, &grants, &mut AutoApprover),
            None => {
                let changing: Option<&mut dyn ChangeEditor> = Some(&mut call);
                settle(
                    change,
                    &grants,
                    &mut TerminalPrompt { head: head.clone(), changing, ..TerminalPrompt::default() },
                )
            }
        };
        let approved = settled.map_err(|refused| refused.log(call.toolbox))?;
        let Some(Proposal { tool, args: made_with, .. }) = approved.change().call().cloned() else { break };
        let was_shown = approved.was_seen() && approved.change().call().is_some_and(|call| !call.only_reads());
        writing.get_or_insert_with(crate::write_section);
        match approved.carry_out(call.toolbox, Cancel::default(), &mut |_| {}) {
            // No person has seen the old content, so the call may run again on the new content.
            Err(error) if args.yes && error.kind() == ErrorKind::Conflict && attempts < MAX_ATTEMPTS => {
                attempts += 1;
                change = call.prepare(used)?;
            }
            Ok(AppliedChange::Call(output)) => {
                return Ok(CallResult { tool, args: made_with, output, was_shown, vault, proposed: None });
            }
            Ok(_) => break,
            Err(error) => return Err(error),
        }
    }
    Err(Error::new(ErrorKind::Unsupported, "a call was carried out as something else"))
}

fn print_made(made: CallResult, args: &CallArgs, out: &mut Out) -> CliResult {
    let CallResult { tool, args: used, output, was_shown, vault, proposed } = made;
    let Output { value, transaction, notices, left_out, .. } = output;
    if args.json {
        let change = proposed.map(|(preview, _)| preview);
        let transaction = transaction.map(|id| id.0);
        let vault = vault.map(|(name, _)| name);
        out.json(&CallRecord { vault, tool, args: used, output: value, transaction, notices, left_out, change })?;
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
    if let Some(id) = transaction {
        let vault = vault.map(|(_, folder)| format!(" --vault {folder:?}")).unwrap_or_default();
        note(&format!("transaction {id}; {} undo{vault} reverts it", program()));
    }
    Ok(Outcome::Done)
}

struct CallEditor<'a> {
    toolbox: &'a mut Toolbox,
    args: &'a CallArgs,
}

impl ChangeEditor for CallEditor<'_> {
    fn editable(&self, change: &PreparedChange) -> Result<(&'static str, Value)> {
        Ok((ARGUMENTS, change.call().map(|call| call.args.clone()).unwrap_or_default()))
    }

    fn edited(&mut self, edited: Value) -> Result<PreparedChange> {
        self.prepare(edited)
    }

    fn choose(&mut self, whole: &PreparedChange) -> Result<PartChoice<PreparedChange>> {
        Ok(match choose_hunks(whole.separable_files(), &mut ask) {
            PartChoice::Part(files) => Some(whole.without(&files))
                .filter(|rest| rest.call().is_some_and(|call| !call.only_reads()))
                .map_or(PartChoice::Nothing, PartChoice::Part),
            PartChoice::Whole => PartChoice::Whole,
            PartChoice::Nothing => PartChoice::Nothing,
        })
    }
}

impl CallEditor<'_> {
    fn propose(&mut self, args: Value) -> Result<Proposal> {
        let listening = crate::listen();
        self.toolbox.propose(&self.args.tool, args, Cancel::on(listening.flag()))
    }

    fn prepare(&mut self, args: Value) -> Result<PreparedChange> {
        let proposal = self.propose(args)?;
        Ok(PreparedChange::of_call(proposal, self.toolbox.policy()))
    }

    /// Logs that a call was refused, and returns the reason.
    fn refused(&mut self, args: &Value, reason: Error) -> Error {
        self.toolbox.refuse(&self.args.tool, args, &reason);
        reason
    }

    /// Returns the result that `--dry-run` prints.
    fn proposed(&self, change: &PreparedChange, head: Vec<String>, vault: Option<(String, PathBuf)>) -> CallResult {
        let preview = change.preview().clone();
        let (tool, args, value, text) = match change.call() {
            Some(call) if call.only_reads() => (&call.tool, &call.args, call.output.clone(), String::new()),
            Some(call) => (&call.tool, &call.args, call.output.clone(), texts_for_client(change, head).1),
            None => (&self.args.tool, &Value::Null, Value::Null, String::new()),
        };
        let output = Output::previewed(value, preview.notices.clone());
        CallResult {
            tool: tool.clone(),
            args: args.clone(),
            output,
            was_shown: false,
            vault,
            proposed: Some((preview, text)),
        }
    }

    /// Prepares a call of the toolset `chat`: asks before anything is read, and again before it is shared. Returns the
    /// answer with the change.
    fn asked_before(&mut self, mut args: Value) -> Result<(PreparedChange, Option<Answer>)> {
        let tool = &self.args.tool;
        let mut is_edited = false;
        loop {
            let permission = self.toolbox.permission(tool, &args, &Grants::default())?;
            // A call that the settings deny is refused and logged when it is proposed.
            if permission != Permission::Ask || self.args.yes {
                return Ok((self.prepare(args)?, None));
            }
            if !can_ask() {
                let remedy = "it changes nothing: run it with --yes instead of --dry-run";
                let error = match self.args.dry_run {
                    true => nobody_to_ask_but(tool, remedy),
                    false => nobody_to_ask(tool),
                };
                return Err(self.refused(&args, error));
            }
            if let Some(paths) = args.get_mut("filePaths").and_then(Value::as_array_mut) {
                keep_ticked("Share these files?", paths, text_of);
                if paths.is_empty() {
                    return Err(self.refused(&args, cancelled()));
                }
                return Ok((self.prepare(args)?, Some(Answer::Yes)));
            }
            let text = format!("{tool} {args}");
            let about = TerminalQuestion {
                question: "Run it?",
                short: &text,
                whole: &text,
                edited: Some((ARGUMENTS, &args)),
                has_parts: false,
            };
            match ask_about(&about)? {
                Reply::No | Reply::Choose => return Err(self.refused(&args, cancelled())),
                Reply::Edited(edited) => (args, is_edited) = (edited, true),
                Reply::Yes => {
                    let mut proposal = self.propose(args)?;
                    // Remove items from the output itself, so that nothing hints at those that the user does not share.
                    if let Some(found) = proposal.output.as_array_mut().filter(|found| !found.is_empty()) {
                        let part = |item: &Value, name: &str| item.get(name).map(text_of).unwrap_or_default();
                        let name = |item: &Value| format!("{}  {}", part(item, "path"), part(item, "preview"));
                        keep_ticked("Share these results?", found, name);
                    }
                    let change = PreparedChange::of_call(proposal, self.toolbox.policy());
                    return Ok((if is_edited { change.edited() } else { change }, Some(Answer::Yes)));
                }
            }
        }
    }
}

/// Keeps the items that the user selects.
fn keep_ticked(question: &str, items: &mut Vec<Value>, name: impl Fn(&Value) -> String) {
    let names: Vec<String> = items.iter().map(name).collect();
    let mut ticked = tick(question, &names, |at| format!("{:#}", items[at]), &mut ask).into_iter();
    items.retain(|_| ticked.next() == Some(true));
}

/// Prints the output of a call. If it is an object with a `content`, only the content goes to standard output, and the
/// rest to standard error.
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
