//! Approval by the person at the terminal, who is shown what would be done and can change it.

use std::io::{self, Write};

use serde_json::Value;
use vault_cli::{Paint, ask, escape_json, sanitize, sanitize_line, say};

use super::context::json;
use crate::change::{Kind, Preview};
use crate::error::{Error, ErrorKind, Result};

/// Lines of a diff that are shown until somebody asks for all of it.
const SHOWN_LINES: usize = 60;

/// What a person decided.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Answer {
    Yes,
    No,
    /// Other arguments, which are checked, shown and asked about again.
    Edited(Value),
}

/// The refusal where nobody can be asked.
pub(super) fn nobody_to_ask(what: &str) -> Error {
    Error::new(ErrorKind::Denied, format!("{what} needs approval, and there is no terminal to ask on"))
        .with_remedy("inspect it with --dry-run, then add --yes")
}

/// The refusal of a person.
pub(super) fn declined() -> Error {
    Error::new(ErrorKind::Denied, "not approved; nothing was done")
}

/// Shows something and asks about it. `whole` is what `w` shows; `args` can be edited where there are any.
pub(super) fn ask_about(question: &str, short: &str, whole: &str, args: Option<&Value>) -> Result<Answer> {
    let paint = Paint::stderr();
    show(&paint.diff(short));
    let mut keys = vec!["y yes", "n no"];
    if args.is_some() {
        keys.push("e edit arguments");
    }
    if short != whole {
        keys.push("w show whole");
    }
    loop {
        let Some(answer) = ask(&format!("{question} [{}]", keys.join(", "))) else { return Ok(Answer::No) };
        match (answer.to_lowercase().as_str(), args) {
            ("y" | "yes", _) => return Ok(Answer::Yes),
            ("n" | "no" | "", _) => return Ok(Answer::No),
            ("w" | "whole", _) => show(&paint.diff(whole)),
            ("e" | "edit", Some(args)) => {
                show(&escape_json(args.to_string()));
                let Some(text) = ask("arguments as JSON, empty to leave them:").filter(|text| !text.is_empty()) else {
                    continue;
                };
                match json(&text, "arguments") {
                    Ok(edited) => return Ok(Answer::Edited(edited)),
                    Err(error) => say("error", &error.to_string()),
                }
            }
            _ => {}
        }
    }
}

/// Lets a person select what is shared: all of it at first, nothing at the end of input.
pub(super) fn tick(question: &str, items: &[String]) -> Vec<bool> {
    let mut ticked = vec![true; items.len()];
    loop {
        for (number, item) in items.iter().enumerate() {
            let mark = if ticked[number] { 'x' } else { ' ' };
            show(&format!("  [{mark}] {} {}", number + 1, sanitize_line(item)));
        }
        let Some(answer) = ask(&format!("{question} [numbers to tick or untick, a all, n none, Enter to share]"))
        else {
            return vec![false; items.len()];
        };
        match answer.to_lowercase().as_str() {
            "" | "y" | "yes" => return ticked,
            "a" | "all" => ticked.fill(true),
            "n" | "none" => ticked.fill(false),
            numbers => {
                let numbers = numbers.split([',', ' ']).filter_map(|number| number.trim().parse::<usize>().ok());
                for number in numbers.filter(|number| (1..=items.len()).contains(number)) {
                    ticked[number - 1] = !ticked[number - 1];
                }
            }
        }
    }
}

/// A change for people: one line per file, then diffs; the first text is cut, the second whole.
pub(super) fn texts_of(preview: &Preview) -> (String, String) {
    let mut lines = Vec::new();
    for folder in &preview.folders {
        let what = if folder.kind == Kind::Deleted { "remove folder" } else { "make folder" };
        lines.push(format!("{what} {}", sanitize_line(&folder.path)));
    }
    for file in &preview.files {
        let to = file.to.as_ref().map(|to| format!(" -> {}", sanitize_line(to))).unwrap_or_default();
        let counts = match file.inside.len() {
            0 => format!("+{} -{}", file.added, file.removed),
            1 => "a folder with 1 file".to_string(),
            files => format!("a folder with {files} files"),
        };
        let what = match file.kind {
            Kind::Created => "create",
            Kind::Modified => "modify",
            Kind::Renamed => "rename",
            Kind::Deleted => "delete",
        };
        lines.push(format!("{what} {}{to} ({counts})", sanitize_line(&file.path)));
        lines.extend(file.inside.iter().map(|inside| format!("    {}", sanitize_line(inside))));
    }
    lines.extend(preview.notices.iter().map(|notice| format!("note: {}", sanitize_line(notice))));
    for diff in preview.files.iter().filter_map(|file| file.diff.as_ref()) {
        lines.push(String::new());
        lines.extend(diff_lines(diff));
    }
    let whole = lines.join("\n");
    if lines.len() <= SHOWN_LINES {
        return (whole.clone(), whole);
    }
    let left = lines.len() - SHOWN_LINES;
    lines.truncate(SHOWN_LINES);
    (format!("{}\n... {left} more lines", lines.join("\n")), whole)
}

/// The lines of one file's diff. Where lines change whose ends differ, those that end as on Windows are marked.
fn diff_lines(diff: &str) -> impl Iterator<Item = String> {
    let is_changed =
        |line: &&str| line.starts_with(['+', '-']) && !line.starts_with("+++ ") && !line.starts_with("--- ");
    let mut ends = diff.split('\n').filter(is_changed).map(|line| line.ends_with('\r'));
    let first = ends.next();
    let differ = ends.any(|end| Some(end) != first);
    diff.lines().zip(diff.split('\n')).map(move |(line, whole)| {
        let mark = if differ && whole.ends_with('\r') && is_changed(&whole) { "^M" } else { "" };
        format!("{}{mark}", sanitize(line))
    })
}

/// Text for people on standard error, as it is.
fn show(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", text.trim_end());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_lines_show_where_they_change() {
        let lines = |diff| diff_lines(diff).collect::<Vec<_>>();
        assert_eq!(lines("@@\n-a\r\n+a\n b\r\n"), ["@@", "-a^M", "+a", " b"]);
        assert_eq!(lines("-a\r\n+b\r\n"), ["-a", "+b"]);
        assert_eq!(lines("-a\n+b\n"), ["-a", "+b"]);
    }
}
