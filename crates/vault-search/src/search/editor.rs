//! Opens a note at a line in an editor (the setting `editor`, else `$VISUAL`, else `$EDITOR`) or in Obsidian.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitStatus};

use crate::{CliResult, Failure, ignore_signals, shell_command, terminal_input, url_path};

/// The value of the setting for Obsidian.
const OBSIDIAN: &str = "obsidian";

/// Editors that take the line as `+7` before the file.
const PLUS: [&str; 14] = [
    "vi",
    "vim",
    "nvim",
    "gvim",
    "mvim",
    "nano",
    "pico",
    "emacs",
    "emacsclient",
    "micro",
    "hx",
    "helix",
    "kak",
    "gedit",
];

/// Editors that take `-g FILE:7`.
const GOTO: [&str; 6] = ["code", "code-insiders", "codium", "vscodium", "cursor", "windsurf"];

/// Editors that take `FILE:7`.
const SUFFIX: [&str; 4] = ["subl", "sublime_text", "zed", "zeditor"];

/// Opens a file at a line, and waits for the editor.
///
/// # Errors
/// No editor is configured; it cannot be started, or it ends with an error.
pub(super) fn open(setting: Option<&str>, file: &Path, line: u32) -> CliResult<()> {
    let variable = |name| std::env::var(name).ok().filter(|line| !line.trim().is_empty());
    let editor = setting.map(str::to_owned).or_else(|| variable("VISUAL")).or_else(|| variable("EDITOR"));
    let Some(editor) = editor else {
        return Err(Failure::Error(
            "no editor is configured (set EDITOR, or in config.toml editor = \"obsidian\" or a command)".to_owned(),
        ));
    };
    let mut command = if editor == OBSIDIAN { obsidian(file) } else { shell_command(&editor) };
    if editor != OBSIDIAN {
        command.args(arguments(&editor, file, line)).stdin(terminal_input());
    }
    let _ignoring = ignore_signals();
    match command.status() {
        Ok(ended) if ended.success() => Ok(()),
        Ok(ended) => Err(Failure::Error(format!("the editor `{editor}` ended with {}", shown(ended)))),
        Err(error) => Err(Failure::Error(format!("the editor `{editor}` cannot be started: {error}"))),
    }
}

fn shown(ended: ExitStatus) -> String {
    ended.code().map_or_else(|| ended.to_string(), |code| format!("exit code {code}"))
}

/// Returns the arguments for an editor to open a file at a line. An unknown editor gets only the file.
fn arguments(editor: &str, file: &Path, line: u32) -> Vec<OsString> {
    let program = editor.split_whitespace().next().unwrap_or_default();
    let name = Path::new(program).file_stem().unwrap_or_default().to_string_lossy().to_lowercase();
    let with_line = || {
        let mut text = file.as_os_str().to_owned();
        text.push(format!(":{line}"));
        text
    };
    match name.as_str() {
        name if PLUS.contains(&name) => vec![format!("+{line}").into(), file.into()],
        name if GOTO.contains(&name) => vec!["-g".into(), with_line()],
        name if SUFFIX.contains(&name) => vec![with_line()],
        _ => vec![file.into()],
    }
}

/// Returns the command that opens a note in Obsidian. There is no way to give it a line.
fn obsidian(file: &Path) -> Command {
    let (program, before): (_, &[&str]) = match std::env::consts::OS {
        "macos" => ("open", &[]),
        "windows" => ("cmd", &["/C", "start", ""]),
        _ => ("xdg-open", &[]),
    };
    let mut command = Command::new(program);
    command.args(before).arg(format!("obsidian://open?path={}", url_path(file).replace('/', "%2F")));
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_editor_is_told_the_line_in_its_own_way() {
        let check = |editor: &str, expected: &[&str]| {
            assert_eq!(arguments(editor, Path::new("/n/a b.md"), 7), expected, "{editor}");
        };
        check("vim", &["+7", "/n/a b.md"]);
        check("/usr/bin/nvim -u NONE", &["+7", "/n/a b.md"]);
        check("emacsclient -t", &["+7", "/n/a b.md"]);
        check("code --wait", &["-g", "/n/a b.md:7"]);
        check("Cursor.exe", &["-g", "/n/a b.md:7"]);
        check("subl -w", &["/n/a b.md:7"]);
        check("zed", &["/n/a b.md:7"]);
        check("notepad", &["/n/a b.md"]);
    }

    #[cfg(unix)]
    #[test]
    fn obsidian_is_told_the_path() {
        let command = obsidian(Path::new("/n/a b é.md"));
        assert_eq!(command.get_args().last().unwrap(), "obsidian://open?path=%2Fn%2Fa%20b%20%C3%A9.md");
    }
}
