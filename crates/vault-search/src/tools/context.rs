//! The state of the editor from the command line (selection, active file, cursor), and the parameters of plans.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;
use vault_tools::edit::{offset_of, position_of};
use vault_tools::plan::Parameters;
use vault_tools::{
    Editor, Error, ErrorKind, Headless, Policy, Position, Result, SafePath, Selection, Span, ToolSetting, Toolbox,
    Vault, Vaults, View, missing,
};

use crate::{CliResult, note, say};

use super::json_unique_keys::json_with_unique_keys;
use super::plan_args::{ContextArgs, EditorArgs};
use super::settings;
use crate::VaultArgs;

/// Opens the tools of the vault that the arguments select, with the given editor state, and passes them to `act`. If
/// the log could not be written, prints a warning and still returns the result of `act`.
///
/// # Errors
/// A vault or argument that cannot be opened or parsed; the errors of `act`.
pub fn with_toolbox(
    vault_args: &VaultArgs,
    context: &ContextArgs,
    act: impl FnOnce(&mut Toolbox) -> CliResult,
) -> CliResult {
    let mut toolbox = toolbox(settings::open(vault_args)?, context)?;
    let ended = act(&mut toolbox);
    warn_of_log(&mut toolbox);
    ended
}

/// [`with_toolbox`] for one vault or several.
pub(super) fn with_vaults(
    vault_args: &VaultArgs,
    context: &ContextArgs,
    act: impl FnOnce(&mut Vaults) -> CliResult,
) -> CliResult {
    let vaults = settings::open_all(&crate::Settings::load(vault_args)?)?;
    if vaults.len() > 1 && (context.editor.active_file.is_some() || context.editor.selection_from.is_some()) {
        let message = "an active file or a selection belongs to one vault, but several are open";
        return Err(Error::new(ErrorKind::InvalidArguments, message).with_remedy("name one vault").into());
    }
    let toolboxes = vaults.into_iter().map(|vault| toolbox(vault, context)).collect::<CliResult<Vec<Toolbox>>>()?;
    let mut vaults = Vaults::new(toolboxes)?;
    let ended = act(&mut vaults);
    for at in 0..vaults.names().count() {
        warn_of_log(vaults.toolbox(at));
    }
    ended
}

fn toolbox(vault: Vault, context: &ContextArgs) -> CliResult<Toolbox> {
    vault.check_settings()?;
    let mut policy = settings::policy(&vault)?;
    policy.allow_delete |= context.allow_delete;
    if context.asks_to_delete && !policy.allow_delete {
        policy.allow_delete = true;
        policy.tools.retain(|_, setting| *setting != ToolSetting::NeverAsk);
    }
    let policy = policy.compile()?;
    let editor = editor(&vault, &policy, &context.editor)?;
    Ok(Toolbox::new(Arc::new(vault), Box::new(Headless { editor }), policy))
}

fn warn_of_log(toolbox: &mut Toolbox) {
    if let Some(error) = toolbox.take_log_error() {
        say("warning", &format!("this could not be logged: {error}"));
    }
}

/// Returns the parameters of a plan as the end of a sentence; empty if it has none.
pub(super) fn list_of_parameters<'n>(names: impl Iterator<Item = &'n String>) -> String {
    let names: Vec<&str> = names.map(String::as_str).collect();
    if names.is_empty() { String::new() } else { format!("; its parameters: {}", names.join(", ")) }
}

/// Returns the parameters of a plan that uses `names`, from the editor, the clock and `--set`.
///
/// # Errors
/// Text that is not `NAME=VALUE`, or a parameter that the plan does not have.
pub(super) fn parameters(toolbox: &Toolbox, set: &[String], names: &BTreeSet<String>) -> Result<Parameters> {
    let mut parameters = Parameters::of(&toolbox.editor()?, &toolbox.now());
    for (name, value) in pairs("--set", set)? {
        if !names.contains(&name) {
            let message = format!("the plan has no parameter `{name}`");
            let used = names.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            let remedy = if used.is_empty() { "it has none".to_string() } else { format!("its parameters are {used}") };
            return Err(Error::new(ErrorKind::InvalidArguments, message).at("--set").with_remedy(remedy));
        }
        if parameters.get(&name).is_some() {
            note(&format!("--set overrides {name}: it is {value:?}"));
        }
        parameters.set(name, value);
    }
    Ok(parameters)
}

/// Parses texts of the form `NAME=VALUE`.
///
/// # Errors
/// Text of another form.
pub(super) fn pairs(option: &str, texts: &[String]) -> Result<Vec<(String, String)>> {
    let pair = |text: &String| {
        let (name, value) = text.split_once('=').ok_or_else(|| wrong(option, text, "NAME=VALUE"))?;
        Ok((name.trim().to_string(), value.to_string()))
    };
    texts.iter().map(pair).collect()
}

/// Reads JSON from a file, or with `-` from standard input.
///
/// # Errors
/// A file that cannot be read or is not JSON.
pub(super) fn json_of(file: &Path) -> Result<Value> {
    let text = match file.as_os_str() == "-" {
        true => standard_input()?,
        false => std::fs::read_to_string(file).map_err(|error| Error::io(file.display(), &error))?,
    };
    json(&text, &file.display().to_string())
}

/// Parses JSON. `source` names the origin of the text in errors.
///
/// # Errors
/// Invalid JSON, or a duplicate key.
pub(super) fn json(text: &str, source: &str) -> Result<Value> {
    json_with_unique_keys(text).map_err(|error| not_json(&error.to_string()).at(source))
}

fn not_json(why: &str) -> Error {
    let error = Error::new(ErrorKind::InvalidArguments, format!("this is not valid JSON: {why}"));
    if why.contains("hex escape") {
        error.with_remedy("write the character itself, or both halves of its escape, as in \\ud83d\\ude00")
    } else if why.contains("recursion limit") {
        error.with_remedy("values may be nested at most 127 deep")
    } else {
        error
    }
}

/// Reads all of standard input.
///
/// # Errors
/// If it cannot be read, or was read before.
pub(super) fn standard_input() -> Result<String> {
    static WAS_READ: AtomicBool = AtomicBool::new(false);
    if WAS_READ.swap(true, Ordering::SeqCst) {
        return Err(Error::new(
            ErrorKind::InvalidArguments,
            "standard input can be read only once, but `-` is given twice",
        )
        .with_remedy("give one of the two as a file or as text"));
    }
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(|error| Error::io("standard input", &error))?;
    Ok(text)
}

/// Returns the state of the editor that the command line describes.
///
/// # Errors
/// A note that does not exist or is denied; lines or a cursor outside of the note.
pub fn editor(vault: &Vault, policy: &Policy, args: &EditorArgs) -> Result<Editor> {
    let mut editor = Editor::default();
    if let Some(active) = &args.active_file {
        let path = existing(vault, policy, active)?;
        editor.show(&path, vault_tools::Leaf::Current);
    }
    if let Some(from) = &args.selection_from {
        let (path, selection) = selected_lines(vault, policy, from)?;
        if editor.active_file.as_ref().is_some_and(|active| *active != path) {
            return Err(Error::new(ErrorKind::InvalidArguments, "the selection is not in the active file")
                .with_remedy("leave out --active-file"));
        }
        editor.show(&path, vault_tools::Leaf::Current);
        editor.cursor = selection.span.map(|span| span.to);
        editor.selection = Some(selection);
    } else if let Some(text) = &args.selection {
        let text = if text == "-" { standard_input()? } else { text.clone() };
        editor.selection = Some(Selection { text, span: None });
    }
    if let Some(cursor) = &args.cursor {
        let Some(active) = &editor.active_file else {
            return Err(
                Error::new(ErrorKind::InvalidArguments, "a cursor needs a file").with_remedy("add --active-file NOTE")
            );
        };
        let position = position(cursor)?;
        offset_of(&vault.sandbox().text(active)?, position).map_err(|error| error.at(active))?;
        editor.cursor = Some(position);
    }
    Ok(editor)
}

/// Returns the path of a file that the user named. The error for a missing file may suggest similar names.
fn existing(vault: &Vault, policy: &Policy, path: &str) -> Result<SafePath> {
    let sandbox = vault.sandbox();
    let path = SafePath::new_or_existing(path, |path| sandbox.is_there(path).unwrap_or(false))?;
    let permits = |path: &SafePath| policy.permits_path(path.as_str());
    if !permits(&path) || sandbox.real(&path).is_ok_and(|real| !permits(&real)) {
        return Err(Error::new(ErrorKind::Denied, "this path is denied by your settings").at(path));
    }
    if sandbox.exists(&path)? { Ok(path) } else { Err(missing(&path, sandbox, &|entry| permits(&entry.path))) }
}

/// Returns the selection `FILE:FROM-TO` or `FILE:LINE`, with lines counted from 1. It does not include the end of its
/// last line.
fn selected_lines(vault: &Vault, policy: &Policy, text: &str) -> Result<(SafePath, Selection)> {
    let wrong = || wrong("--selection-from", text, "FILE:FROM-TO, lines from 1");
    let (file, lines) = text.rsplit_once(':').ok_or_else(wrong)?;
    let (from, to) = lines.split_once('-').unwrap_or((lines, lines));
    let number = |text: &str| text.trim().parse::<u32>().ok().filter(|line| *line > 0).ok_or_else(wrong);
    let (from, to) = (number(from)?, number(to)?);
    let path = existing(vault, policy, file)?;
    let content = vault.sandbox().text(&path)?;
    let wrong_lines = |message| Err(Error::new(ErrorKind::InvalidArguments, message).at(&path));
    let count = content.lines().count();
    if from > to {
        return wrong_lines(format!("lines {from}-{to}: the first line comes after the last; give {to}-{from}"));
    }
    if to as usize > count {
        return wrong_lines(format!("the file has {count} lines, so there are no lines {from}-{to}"));
    }
    let start = offset_of(&content, Position { line: from - 1, ch: 0 })?;
    let last = offset_of(&content, Position { line: to - 1, ch: 0 })?;
    let end = last + content[last..].lines().next().unwrap_or_default().len();
    let span = Span { from: position_of(&content, start), to: position_of(&content, end) };
    Ok((path, Selection { text: content[start..end].to_string(), span: Some(span) }))
}

fn position(text: &str) -> Result<Position> {
    let parsed = text
        .split_once(':')
        .and_then(|(line, ch)| Some(Position { line: line.trim().parse().ok()?, ch: ch.trim().parse().ok()? }));
    parsed.ok_or_else(|| wrong("--cursor", text, "LINE:CH, both from 0"))
}

fn wrong(option: &str, text: &str, form: &str) -> Error {
    Error::new(ErrorKind::InvalidArguments, format!("`{text}` is not of the form {form}")).at(option)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_json_is_an_error_with_a_remedy() {
        for (text, expected) in [
            (r#"{"a": "\ud83d"}"#.to_owned(), r"both halves of its escape, as in \ud83d\ude00"),
            (r#"{"a": "\ud83d x"}"#.to_owned(), "both halves"),
            ("[".repeat(500) + &"]".repeat(500), "nested at most 127 deep"),
            ("{".to_owned(), "line 1"),
        ] {
            let error = json(&text, "args").unwrap_err().to_string();
            assert!(error.contains("args") && error.contains("not valid JSON") && error.contains(expected), "{error}");
        }
        assert!(json(&("[".repeat(127) + &"]".repeat(127)), "args").is_ok());
    }
}
