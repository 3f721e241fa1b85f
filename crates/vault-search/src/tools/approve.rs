//! Approval in a terminal: shows a change to the user, who can approve, edit or decline it.

use std::io::{self, Write};
use std::process::{Command, Stdio};

use serde_json::Value;
use vault_tools::approval::{Answer, Approver, PreparedChange};
use vault_tools::{Error, ErrorKind, Result};

use crate::{
    Paint, ask, can_ask, confirm, escape_json, ignore_signals, note, sanitize, sanitize_line, say, shell_command,
    terminal_input,
};

use super::context::json;
use super::plan_text::texts_of_change;
use super::preview_text::{cut, has_parts};

/// The parts of a change that a person chose.
pub enum PartChoice<T> {
    /// The parts belong together, so there was no choice.
    Whole,
    /// The chosen parts.
    Part(T),
    /// No part was chosen, or the input ended.
    Nothing,
}

/// Asks a question and reads a line as the answer, or `None` at the end of input: [`ask`](crate::ask), or the line editor
/// of a program that has one.
pub type ReadLine<'r> = dyn FnMut(&str) -> Option<String> + 'r;

/// The answer of a person to a question about a change.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    Yes,
    No,
    /// Edited arguments, or an edited plan, which need to be checked, shown and approved.
    Edited(Value),
    /// The person wants to leave out some parts.
    Choose,
}

/// The error if approval is needed and there is no terminal to ask on.
pub(super) fn nobody_to_ask(what: &str) -> Error {
    nobody_to_ask_but(what, "inspect it with --dry-run, then add --yes")
}

/// [`nobody_to_ask`] with another remedy.
pub(super) fn nobody_to_ask_but(what: &str, remedy: &str) -> Error {
    Error::new(ErrorKind::Denied, format!("{what} needs approval, and there is no terminal to ask on"))
        .with_remedy(remedy)
}

/// Requires confirmation, by a flag or by an answer.
pub(super) fn agreed(yes: bool, what: &str, remedy: &str, question: &str) -> Result<()> {
    match yes {
        true => Ok(()),
        false if !can_ask() => Err(nobody_to_ask_but(what, remedy)),
        false if confirm(question) => Ok(()),
        false => Err(declined()),
    }
}

/// The error if the user declines.
pub fn declined() -> Error {
    Error::new(ErrorKind::Denied, "not approved; nothing was done")
}

/// The error if the user declines before a tool runs. Clients compare its message.
pub(super) fn cancelled() -> Error {
    Error::new(ErrorKind::Denied, "User cancelled tool execution").with_remedy("nothing was done")
}

/// The approver in a terminal: shows a change, and asks on the line below it.
#[derive(Default)]
pub struct TerminalPrompt<'a> {
    /// The question, without a question mark. The default is the title of the change with `do it`.
    pub question: Option<&'a str>,
    /// Lines before the change.
    pub head: Vec<String>,
    /// The editor of the change, if it can be edited.
    pub changing: Option<&'a mut dyn ChangeEditor>,
    /// The whole change, if some parts of it have been left out.
    pub whole: Option<PreparedChange>,
}

/// Prepares a change again after the user has edited it or left out parts. The new change is then shown for approval.
pub trait ChangeEditor {
    /// Returns the name and the value of the part of a change that can be edited, such as the arguments of a call.
    ///
    /// # Errors
    /// A value that cannot be written as JSON.
    fn editable(&self, change: &PreparedChange) -> Result<(&'static str, Value)>;

    /// Prepares the change with the edited value.
    ///
    /// # Errors
    /// The errors of preparing the change.
    fn edited(&mut self, edited: Value) -> Result<PreparedChange>;

    /// Asks which parts of a change to make.
    ///
    /// # Errors
    /// The chosen parts cannot be made without the ones that were left out.
    fn choose(&mut self, whole: &PreparedChange) -> Result<PartChoice<PreparedChange>>;
}

impl Approver for TerminalPrompt<'_> {
    fn ask(&mut self, change: &PreparedChange) -> Answer {
        if !can_ask() {
            let what = change.call().map_or("the plan", |call| &call.tool);
            return Answer::No(nobody_to_ask(what));
        }
        self.answer(change).unwrap_or_else(Answer::No)
    }
}

impl TerminalPrompt<'_> {
    fn answer(&mut self, change: &PreparedChange) -> Result<Answer> {
        // An edited value that turned out to be invalid, so that the user can continue from it.
        let mut typed: Option<Value> = None;
        let (short, whole) = texts_of_change(change, self.head.clone());
        let question = match self.question {
            Some(question) => format!("{question}?"),
            None => format!("{} ({}): do it?", sanitize_line(&change.title()), change.risk().name()),
        };
        loop {
            let editable = self.changing.as_ref().map(|changing| changing.editable(change)).transpose()?;
            let edited = editable.as_ref().map(|(what, value)| (*what, typed.as_ref().unwrap_or(value)));
            let has_parts = edited.is_some() && (self.whole.is_some() || has_parts(change.preview()));
            let about = TerminalQuestion { question: &question, short: &short, whole: &whole, edited, has_parts };
            let reply = ask_about(&about)?;
            let Some(changing) = &mut self.changing else {
                return Ok(if reply == Reply::Yes { Answer::Yes } else { Answer::Declined(None) });
            };
            match reply {
                Reply::Yes => return Ok(Answer::Yes),
                Reply::No => return Ok(Answer::Declined(None)),
                Reply::Choose => {
                    let all = self.whole.take().unwrap_or_else(|| change.clone());
                    let chosen = match changing.choose(&all) {
                        Ok(PartChoice::Part(chosen)) => Some(chosen),
                        Ok(PartChoice::Whole) => None,
                        Ok(PartChoice::Nothing) => return Ok(Answer::Declined(None)),
                        Err(error) if error.kind() == ErrorKind::Cancelled => return Err(error),
                        Err(error) => {
                            say("error", &error.within("without what is left out").one_line());
                            note("nothing was left out; here is the whole change again:");
                            Some(all.clone())
                        }
                    };
                    self.whole = Some(all);
                    if let Some(chosen) = chosen {
                        return Ok(Answer::Instead(Box::new(chosen)));
                    }
                }
                Reply::Edited(edited) => match changing.edited(edited.clone()) {
                    Ok(again) => {
                        self.whole = None;
                        return Ok(Answer::Instead(Box::new(again.edited())));
                    }
                    // The user can edit it again, unless the settings deny the call.
                    Err(error) if !matches!(error.kind(), ErrorKind::Denied | ErrorKind::Cancelled) => {
                        say("error", &error.one_line());
                        typed = Some(edited);
                    }
                    Err(error) => return Err(error),
                },
            }
        }
    }
}

/// A question about a change.
#[derive(Debug, Default)]
pub struct TerminalQuestion<'a> {
    pub question: &'a str,
    /// The text that is shown before the question.
    pub short: &'a str,
    /// The text that the key `w` shows.
    pub whole: &'a str,
    /// The name and the value of the part that can be edited.
    pub edited: Option<(&'a str, &'a Value)>,
    /// Whether the key `p` is offered.
    pub has_parts: bool,
}

/// Shows a change and asks about it. A yes counts only after the whole change has been shown: if the screen shows only
/// a part, the first yes shows the whole, and the question is asked again.
pub fn ask_about(about: &TerminalQuestion<'_>) -> Result<Reply> {
    let TerminalQuestion { question, short, whole, edited: editable, has_parts } = *about;
    let paint = Paint::stderr();
    let (shown, mut is_cut) = cut(short, whole);
    show(&paint.diff(&shown));
    let yes = if is_cut { "y yes, once all of it is shown" } else { "y yes" };
    let mut keys = vec![yes.to_owned(), "n no".to_owned()];
    keys.extend(editable.map(|(what, _)| format!("e edit {what}")));
    keys.extend(has_parts.then(|| "p choose parts".to_owned()));
    keys.extend((short != whole).then(|| "w show whole".to_owned()));
    loop {
        let Some(answer) = ask(&format!("{question} [{}]", keys.join(", "))) else { return Ok(Reply::No) };
        match (answer.to_lowercase().as_str(), editable) {
            ("y" | "yes", _) if !is_cut => return Ok(Reply::Yes),
            ("y" | "yes" | "w" | "whole", _) => {
                page(&paint.diff(whole));
                is_cut = false;
            }
            ("n" | "no" | "", _) => return Ok(Reply::No),
            ("p" | "parts", _) if has_parts => return Ok(Reply::Choose),
            ("e" | "edit", Some((what, value))) => match edited(what, value) {
                Ok(Some(edited)) => return Ok(Reply::Edited(edited)),
                Ok(None) => {}
                Err(error) => say("error", &error.one_line()),
            },
            _ => {}
        }
    }
}

/// Lets the user select the items to share. At first all are selected; at the end of input, none is. `items` has a line
/// for each item, and `whole` returns all of it. `read_line` reads the answers.
pub fn tick(
    question: &str,
    items: &[String],
    whole: impl Fn(usize) -> String,
    read_line: &mut ReadLine<'_>,
) -> Vec<bool> {
    let mut ticked = vec![true; items.len()];
    loop {
        for (number, item) in items.iter().enumerate() {
            let mark = if ticked[number] { 'x' } else { ' ' };
            show(&format!("  [{mark}] {} {}", number + 1, sanitize_line(item)));
        }
        let keys = "numbers to tick or untick, a all, n none, w NUMBER to see it whole, Enter to share";
        let Some(answer) = read_line(&format!("{question} [{keys}]")) else { return vec![false; items.len()] };
        match answer.to_lowercase().as_str() {
            "" | "y" | "yes" => return ticked,
            "a" | "all" => ticked.fill(true),
            "n" | "none" => ticked.fill(false),
            shown if shown.starts_with('w') => {
                let number = shown[1..].trim().parse::<usize>().ok();
                let at = number.and_then(|number| number.checked_sub(1)).filter(|at| *at < items.len());
                at.into_iter().for_each(|at| page(&sanitize(&whole(at))));
            }
            numbers => {
                let numbers = numbers.split([',', ' ']).filter_map(|number| number.trim().parse::<usize>().ok());
                for number in numbers.filter(|number| (1..=items.len()).contains(number)) {
                    ticked[number - 1] = !ticked[number - 1];
                }
            }
        }
    }
}

/// Prints text for people on standard error as it is.
pub fn show(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", text.trim_end());
}

/// Shows text of any length: in `$PAGER`, if it is set.
pub fn page(text: &str) {
    let Some(mut pager) = program("PAGER") else { return show(text) };
    // Options of less: exit if the text fits on the screen (F), show colors (R), leave the text on the screen (X).
    if std::env::var_os("LESS").is_none() {
        pager.env("LESS", "FRX");
    }
    let _ignoring = ignore_signals();
    let ended = pager.stdin(Stdio::piped()).spawn().and_then(|mut child| {
        // A write error is ignored, because the user may quit the pager before the end.
        child.stdin.take().into_iter().for_each(|mut input| _ = input.write_all(text.as_bytes()));
        child.wait()
    });
    // Exit codes of a shell for a program that cannot be run or does not exist.
    if ended.map_or(true, |status| matches!(status.code(), Some(126 | 127))) {
        show(text);
    }
}

/// Lets the user edit a JSON value in `$VISUAL`, `$EDITOR` or the system's editor, or type it if there is no editor.
/// Returns `None` if the value is unchanged. Invalid JSON can be edited again.
///
/// # Errors
/// A file that cannot be written or read; an editor that fails; typed text that is not valid JSON.
pub fn edited(what: &str, value: &Value) -> Result<Option<Value>> {
    let failed = |error: io::Error| Error::io(format!("{what} to edit"), &error);
    let program = || program("VISUAL").or_else(|| program("EDITOR")).or_else(system_editor);
    if program().is_none() {
        show(&escape_json(value.to_string()));
        let typed = ask(&format!("{what} as JSON, empty for no change:")).filter(|text| !text.is_empty());
        return typed.map(|text| json(&text, what)).transpose();
    }
    let mut file = tempfile::Builder::new().prefix("edit-").suffix(".json").tempfile().map_err(failed)?;
    file.write_all(format!("{}\n", escape_json(format!("{value:#}"))).as_bytes()).map_err(failed)?;
    while let Some(mut editor) = program() {
        let ignoring = ignore_signals();
        let ended = editor.arg(file.path()).stdin(terminal_input()).status().map_err(failed)?;
        drop(ignoring);
        if !ended.success() {
            return Err(Error::new(ErrorKind::Io, format!("the editor ended with an error; {what}: unchanged")));
        }
        // Many editors replace the file instead of writing into it.
        let text = std::fs::read_to_string(file.path()).map_err(failed)?;
        match json(&text, what) {
            Ok(edited) => return Ok((edited != *value).then_some(edited)),
            Err(error) => say("error", &error.one_line()),
        }
        if !confirm("Edit it again?") {
            break;
        }
    }
    Ok(None)
}

/// Returns the editor that every Unix or Windows system has, if it is found in `PATH`.
fn system_editor() -> Option<Command> {
    let name = if cfg!(windows) { "notepad.exe" } else { "vi" };
    let folders = std::env::var_os("PATH")?;
    let file = std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|file| file.is_file())?;
    let mut command = Command::new(file);
    command.stdout(io::stderr());
    Some(command)
}

/// Returns the program that an environment variable names, with its options, ready for more arguments. It prints to
/// standard error, so that its output is not mixed with data on standard output.
fn program(variable: &str) -> Option<Command> {
    let line = std::env::var(variable).ok().filter(|line| !line.trim().is_empty())?;
    let mut command = shell_command(&line);
    command.stdout(io::stderr());
    Some(command)
}
