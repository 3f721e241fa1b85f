//! Approval by the person at the terminal, who is shown what would be done and can change it.

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

/// What a person made of the parts of a change.
pub enum PartChoice<T> {
    /// They belong together, so that there is no choice.
    Whole,
    /// What is left.
    Part(T),
    /// Nothing is left, or nobody answers.
    Nothing,
}

/// What a person typed.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    Yes,
    No,
    /// Other arguments, or another plan, which are checked, shown and asked about again.
    Edited(Value),
    /// Some parts are to be left out.
    Choose,
}

/// The refusal where nobody can be asked.
pub(super) fn nobody_to_ask(what: &str) -> Error {
    nobody_to_ask_but(what, "inspect it with --dry-run, then add --yes")
}

/// The same, with what to do instead.
pub(super) fn nobody_to_ask_but(what: &str, remedy: &str) -> Error {
    Error::new(ErrorKind::Denied, format!("{what} needs approval, and there is no terminal to ask on"))
        .with_remedy(remedy)
}

/// Requires a yes, by a flag or by a person.
pub(super) fn agreed(yes: bool, what: &str, remedy: &str, question: &str) -> Result<()> {
    match yes {
        true => Ok(()),
        false if !can_ask() => Err(nobody_to_ask_but(what, remedy)),
        false if confirm(question) => Ok(()),
        false => Err(declined()),
    }
}

/// The refusal of a person.
pub fn declined() -> Error {
    Error::new(ErrorKind::Denied, "not approved; nothing was done")
}

/// The refusal of a person who was asked before a tool runs, in the words of the source documents.
pub(super) fn cancelled() -> Error {
    Error::new(ErrorKind::Denied, "User cancelled tool execution").with_remedy("nothing was done")
}

/// The approver at a terminal: shows a change, and asks on the line below.
#[derive(Default)]
pub struct TerminalPrompt<'a> {
    /// What is asked, without a question mark; by default, to do what the change is.
    pub question: Option<&'a str>,
    /// What stands before the change.
    pub head: Vec<String>,
    /// How a person can change what is asked about.
    pub changing: Option<&'a mut dyn ChangeEditor>,
    /// All of the change, where a person has left out some of it.
    pub whole: Option<PreparedChange>,
}

/// Prepares what a person makes of a change, which is then shown and asked about.
pub trait ChangeEditor {
    /// What can be edited, and what it is called.
    ///
    /// # Errors
    /// What cannot be written as JSON.
    fn editable(&self, change: &PreparedChange) -> Result<(&'static str, Value)>;

    /// The change with what was edited.
    ///
    /// # Errors
    /// As those of preparing it.
    fn edited(&mut self, edited: Value) -> Result<PreparedChange>;

    /// Asks which parts of a change are made.
    ///
    /// # Errors
    /// What is left cannot be done without what is left out.
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
        // What was edited and cannot be used, to be edited further.
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
                    // It can be edited again; what the settings deny stays denied.
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

/// What a person is asked about.
#[derive(Debug, Default)]
pub struct TerminalQuestion<'a> {
    pub question: &'a str,
    /// What is shown.
    pub short: &'a str,
    /// What `w` shows.
    pub whole: &'a str,
    /// What can be edited, and what it is called.
    pub edited: Option<(&'a str, &'a Value)>,
    /// Whether `p` is offered.
    pub has_parts: bool,
}

/// Shows something and asks about it. A yes counts once all of it has been shown: where the screen has a part only, it shows
/// the whole, and asks again.
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

/// Lets a person select what is shared: all of it at first, nothing at the end of input. `whole` is all of an item, of
/// which `items` has a line.
pub fn tick(question: &str, items: &[String], whole: impl Fn(usize) -> String) -> Vec<bool> {
    let mut ticked = vec![true; items.len()];
    loop {
        for (number, item) in items.iter().enumerate() {
            let mark = if ticked[number] { 'x' } else { ' ' };
            show(&format!("  [{mark}] {} {}", number + 1, sanitize_line(item)));
        }
        let keys = "numbers to tick or untick, a all, n none, w NUMBER to see it whole, Enter to share";
        let Some(answer) = ask(&format!("{question} [{keys}]")) else { return vec![false; items.len()] };
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

/// Text for people on standard error, as it is.
pub fn show(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", text.trim_end());
}

/// Text of any length: in `$PAGER` where one is set.
pub fn page(text: &str) {
    let Some(mut pager) = program("PAGER") else { return show(text) };
    // Of less: leave at once what fits, keep colours, leave the text on the screen.
    if std::env::var_os("LESS").is_none() {
        pager.env("LESS", "FRX");
    }
    let _ignoring = ignore_signals();
    let ended = pager.stdin(Stdio::piped()).spawn().and_then(|mut child| {
        // Nobody has to read to the end.
        child.stdin.take().into_iter().for_each(|mut input| _ = input.write_all(text.as_bytes()));
        child.wait()
    });
    // What a shell answers where there is no such program, or it cannot be run.
    if ended.map_or(true, |status| matches!(status.code(), Some(126 | 127))) {
        show(text);
    }
}

/// Other JSON: written in `$VISUAL`, `$EDITOR` or the system's editor where there is one, else typed. `None` if it is left as it is. What is not
/// JSON can be edited further.
///
/// # Errors
/// A file that cannot be written or read; an editor that fails; what was typed and is no JSON.
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
            return Err(Error::new(ErrorKind::Cancelled, format!("the editor ended with an error; {what}: unchanged")));
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

/// The editor that every Unix or Windows has, where it can be found.
fn system_editor() -> Option<Command> {
    let name = if cfg!(windows) { "notepad.exe" } else { "vi" };
    let folders = std::env::var_os("PATH")?;
    let file = std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|file| file.is_file())?;
    let mut command = Command::new(file);
    command.stdout(io::stderr());
    Some(command)
}

/// The program that an environment variable names, with its options; its arguments are added. What it prints goes to the
/// terminal, not among the output.
fn program(variable: &str) -> Option<Command> {
    let line = std::env::var(variable).ok().filter(|line| !line.trim().is_empty())?;
    let mut command = shell_command(&line);
    command.stdout(io::stderr());
    Some(command)
}
