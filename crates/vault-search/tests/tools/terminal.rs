//! The command `vault-tools` at a terminal: what a person is shown and asked, and what becomes of the answers.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};

use rustix::fs::{Mode, OFlags};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::vault::{TestVault, assert_same};

/// A program whose input and errors are a terminal, and whose output is a pipe.
pub struct Session {
    child: Child,
    terminal: File,
    shown: String,
}

impl Session {
    pub fn new(vault: &TestVault, home: &tempfile::TempDir, args: &[&str]) -> Self {
        Self::with(vault, home, &[env!("CARGO_BIN_EXE_vault-tools")], args, &[])
    }

    /// With what starts the program, and more of its environment.
    fn with(
        vault: &TestVault,
        home: &tempfile::TempDir,
        program: &[&str],
        args: &[&str],
        environment: &[(&str, &str)],
    ) -> Self {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        // Another test's program must not hold it open.
        fcntl_setfd(&terminal, FdFlags::CLOEXEC).unwrap();
        grantpt(&terminal).unwrap();
        unlockpt(&terminal).unwrap();
        let name = ptsname(&terminal, Vec::new()).unwrap();
        let side =
            File::from(rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).unwrap());
        let mut command = Command::new(program[0]);
        command.args(&program[1..]).args(args).env_clear().current_dir(vault.root());
        command.env("HOME", home.path()).env("VAULT_DIR", vault.root()).env("TERM", "xterm");
        command.envs(environment.iter().copied());
        for name in ["XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"] {
            command.env(name, home.path());
        }
        let child = command.stdin(side.try_clone().unwrap()).stderr(side).stdout(Stdio::piped()).spawn().unwrap();
        // The command holds the terminal's other side open until it is dropped: without it, reading ends with the child.
        drop(command);
        Self { child, terminal: File::from(terminal), shown: String::new() }
    }

    /// Reads on until a question ends, which is what has come since the last one.
    pub fn until(&mut self, end: &str) -> String {
        let from = self.shown.len();
        let mut bytes = Vec::new();
        while !String::from_utf8_lossy(&bytes).contains(end) {
            let mut byte = [0];
            match self.terminal.read(&mut byte) {
                Ok(1) => bytes.push(byte[0]),
                // How the end of a terminal's other side is told differs between systems.
                _ => break,
            }
        }
        self.shown.push_str(&String::from_utf8_lossy(&bytes));
        assert!(self.shown[from..].contains(end), "{end:?} never came:\n{}", self.shown);
        self.shown[from..].to_string()
    }

    pub fn answer(&mut self, text: &str) {
        self.terminal.write_all(format!("{text}\n").as_bytes()).unwrap();
        // What was typed is shown too.
        self.until("\n");
    }

    /// What it printed, and its exit code.
    pub fn end(mut self) -> (String, i32) {
        let mut out = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        (out, self.child.wait().unwrap().code().unwrap())
    }
}

const NOTES: &str = "//- Log.md\n# Log\n//- Secret.md\nno apples\n//- Open.md\napples\n";
const APPEND: [&str; 3] = ["call", "append_to_note", r#"{"path": "Log.md", "content": "- done"}"#];

#[test]
fn a_write_is_shown_in_colour_and_asked_about() {
    let (vault, home) = (TestVault::new(NOTES), tempfile::tempdir().unwrap());
    let before = vault.tree();

    let mut session = Session::new(&vault, &home, &APPEND);
    let shown = session.until("] ");
    assert!(shown.contains("modify Log.md") && shown.contains("\x1b[32m+- done\x1b[0m"), "{shown}");
    assert!(shown.contains("do it? [y yes, n no, e edit arguments]"), "{shown}");
    session.answer("n");
    assert_eq!(session.end().1, 3);
    assert_same(&vault.tree(), &before, "refused");

    let mut session = Session::new(&vault, &home, &APPEND);
    session.until("] ");
    session.answer("what?");
    session.until("] ");
    session.answer("y");
    assert_eq!(session.end().1, 0);
    assert_eq!(vault.read("Log.md"), "# Log\n\n- done\n");

    let mut session = Session::new(&vault, &home, &["undo"]);
    assert!(session.until("] ").contains("-- done"));
    session.answer("y");
    assert_eq!(session.end().1, 0);
    assert_same(&vault.tree(), &before, "taken back");
}

#[test]
fn an_undo_of_something_else_than_was_shown_is_refused() {
    let (vault, home) = (TestVault::new(NOTES), tempfile::tempdir().unwrap());
    let append = |text: &str| {
        let yes = Session::new(&vault, &home, &["append", "Log", text, "--yes"]);
        assert_eq!(yes.end().1, 0);
    };
    append("- shown");
    let mut session = Session::new(&vault, &home, &["undo"]);
    assert!(session.until("] ").contains("-- shown"));
    append("- newer");
    session.answer("y");
    session.until("the notes have changed since this was shown");
    assert_eq!(session.end().1, 3);
    assert!(vault.read("Log.md").ends_with("- shown\n- newer\n"), "{}", vault.read("Log.md"));
}

#[test]
fn arguments_can_be_edited_and_are_checked_again() {
    let (vault, home) = (TestVault::new(NOTES), tempfile::tempdir().unwrap());
    let mut session = Session::new(&vault, &home, &APPEND);
    session.until("] ");
    session.answer("e");
    session.until("no change: ");
    session.answer(r#"{"path": "Log.md", "text": "- other"}"#);
    let shown = session.until("] ");
    assert!(shown.contains("/text"), "the fault is named: {shown}");
    session.answer("e");
    session.until("no change: ");
    session.answer(r#"{"path": "../Log.md", "content": "- other"}"#);
    let shown = session.until("] ");
    assert!(shown.contains("Invalid path"), "out of the vault, whoever asks: {shown}");
    session.answer("e");
    session.until("no change: ");
    session.answer(r#"{"path": "Log.md", "content": "- other"}"#);
    assert!(session.until("] ").contains("+- other"));
    session.answer("y");
    assert_eq!(session.end().1, 0);
    assert_eq!(vault.read("Log.md"), "# Log\n\n- other\n");
    let mut log = Session::new(&vault, &home, &["log"]);
    let log = (log.child.stdin.take(), log.end().0).1;
    assert!(log.contains("edited"), "{log}");
}

#[test]
fn a_long_diff_is_shown_whole_when_asked() {
    let (vault, home) = (TestVault::new(NOTES), tempfile::tempdir().unwrap());
    let lines: String = (1..=200).map(|n| format!("line {n}\\n")).collect();
    let args = format!(r#"{{"path": "New.md", "content": "{lines}"}}"#);
    let mut session = Session::new(&vault, &home, &["call", "write_note", &args]);
    let short = session.until("] ");
    assert!(short.contains("more lines") && !short.contains("+line 200"), "{short}");
    session.answer("w");
    assert!(session.until("] ").contains("+line 200"));
    session.answer("y");
    assert_eq!(session.end().1, 0);
    assert!(vault.read("New.md").ends_with("line 200\n"));
}

/// A note of forty lines, and what changes its first and its last.
fn long_note() -> (String, String) {
    let lines = |first: &str, last: &str| {
        let middle: String = (2..40).map(|line| format!("line {line}\n")).collect();
        format!("{first}\n{middle}{last}\n")
    };
    (lines("first", "last"), lines("FIRST", "LAST"))
}

#[test]
fn a_hunk_can_be_left_out_and_the_answer_says_so() {
    let (before, after) = long_note();
    let (vault, home) = (TestVault::new(&format!("//- Long.md\n{before}")), tempfile::tempdir().unwrap());
    let tree = vault.tree();
    let args = serde_json::json!({ "path": "Long.md", "content": after, "mode": "replace" }).to_string();
    let mut session = Session::new(&vault, &home, &["call", "write_note", &args, "--json"]);
    assert!(session.until("] ").contains("p choose parts"));
    session.answer("p");
    assert!(session.until("help] ").contains("hunk 1 of 2"));
    session.answer("y");
    assert!(session.until("help] ").contains("+LAST"));
    session.answer("n");
    let shown = session.until("] ");
    assert!(shown.contains("+FIRST") && !shown.contains("+LAST"), "{shown}");
    // What is chosen can be chosen again, from the whole.
    session.answer("p");
    session.until("help] ");
    session.answer("y");
    session.until("help] ");
    session.answer("n");
    session.until("] ");
    session.answer("y");
    let (out, code) = session.end();
    assert_eq!(code, 0);
    assert_eq!(vault.read("Long.md"), after.replace("LAST", "last"));
    let answer: serde_json::Value = serde_json::from_str(&out).unwrap();
    let left_out = &answer["left_out"][0];
    assert_eq!((&left_out["path"], &left_out["hunks"], &left_out["of"]), (&"Long.md".into(), &1.into(), &2.into()));
    assert!(left_out["diff"].as_str().unwrap().contains("+LAST"), "{out}");
    assert!(answer["notices"][0].as_str().unwrap().contains("left out 1 of the 2 hunks in Long.md"), "{out}");
    let mut read = Session::new(&vault, &home, &["call", "read_note", r#"{"path": "Long.md"}"#, "--json"]);
    let read = (read.child.stdin.take(), read.end().0).1;
    let read: serde_json::Value = serde_json::from_str(&read).unwrap();
    assert_eq!(answer["output"]["version"], read["output"]["version"], "the version is that of what was written");
    let mut undo = Session::new(&vault, &home, &["undo", "--yes"]);
    assert_eq!((undo.child.stdin.take(), undo.end().1).1, 0);
    assert_same(&vault.tree(), &tree, "undone");
}

#[test]
fn of_what_is_left_out_as_a_whole_nothing_is_done() {
    let (before, after) = long_note();
    let (vault, home) = (TestVault::new(&format!("//- Long.md\n{before}")), tempfile::tempdir().unwrap());
    let tree = vault.tree();
    let args = serde_json::json!({ "path": "Long.md", "content": after, "mode": "replace" });
    let step = serde_json::json!({ "id": "write", "tool": "write_note", "args": args });
    let plan = serde_json::json!({ "version": "1.0", "goal": "g", "riskLevel": "writes", "steps": [step] });
    let file = home.path().join("plan.json");
    std::fs::write(&file, plan.to_string()).unwrap();
    for command in [["call", "write_note", &args.to_string()], ["plan", "run", file.to_str().unwrap()]] {
        let mut session = Session::new(&vault, &home, &command);
        session.until("] ");
        session.answer("p");
        session.until("help] ");
        session.answer("q");
        assert_eq!(session.end().1, 3);
        assert_same(&vault.tree(), &tree, "nothing is done");
    }
}

#[test]
fn a_rename_and_its_links_are_one() {
    let notes = "//- A.md\na\n//- B.md\n[[A]]\n";
    let (vault, home) = (TestVault::new(notes), tempfile::tempdir().unwrap());
    let before = vault.tree();
    let args = ["call", "rename_note", r#"{"path": "A.md", "new_path": "C.md"}"#];
    let mut session = Session::new(&vault, &home, &args);
    session.until("] ");
    session.answer("p");
    assert!(session.until("] ").contains("belongs together"));
    session.answer("n");
    assert_eq!(session.end().1, 3);
    assert_same(&vault.tree(), &before, "refused");
}

#[test]
fn calls_of_a_plan_can_be_left_out_and_the_plan_edited() {
    let (long, changed) = long_note();
    let notes = format!("//- A.md\na\n//- B.md\nb\n//- Links.md\n[[A]] [[B]]\n//- Long.md\n{long}");
    let (vault, home) = (TestVault::new(&notes), tempfile::tempdir().unwrap());
    let before = vault.tree();
    let list = "- A\n- B\n- None";
    let plan = serde_json::json!({
        "version": "1.0", "goal": "Tidy up", "riskLevel": "writes",
        "steps": [
            { "id": "items", "tool": "util.parseMarkdownBullets", "args": { "text": list } },
            { "id": "move", "tool": "rename_note", "onError": "skip", "foreach": { "from": "$steps.items.items" },
              "args": { "path": "${item.text}.md", "new_path": "Old/${item.text} 1.md" } },
            { "id": "log", "tool": "append_to_note", "foreach": { "from": "$steps.move.items" },
              "args": { "path": "Log/${item.new_path}", "content": "moved" }, "onError": "skip" },
            { "id": "write", "tool": "write_note", "args": { "path": "Long.md", "content": changed } }
        ]
    });
    let file = home.path().join("plan.json");
    std::fs::write(&file, plan.to_string()).unwrap();
    // Not every sed edits in place.
    let commands = r#"sed 's/Tidy up/Tidy up slowly/; s/ 1\.md/ one.md/' "$1" > "$1.new"; mv "$1.new" "$1""#;
    let editor = format!("edit() {{ {commands}; }}; edit");
    let args = ["plan", "run", file.to_str().unwrap()];
    let mut session = Session::with(&vault, &home, &[TOOL], &args, &[("EDITOR", &editor)]);
    session.until("Run this plan? [");
    session.answer("e");
    let shown = session.until("Run this plan? [");
    assert!(shown.contains("Tidy up slowly") && shown.contains("Old/B one.md"), "{shown}");
    session.answer("p");
    let shown = session.until("help] ");
    assert!(shown.contains("item 1") && shown.contains("rename A.md -> Old/A one.md"), "{shown}");
    session.answer("n");
    assert!(session.until("help] ").contains("rename B.md"));
    // To the second hunk of the note.
    session.answer("/hunk 2");
    session.until("help] ");
    session.answer("q");
    let shown = session.until("Run this plan? [");
    assert!(shown.contains("left out: item 1, A: a person left it out"), "{shown}");
    assert!(!shown.contains("+LAST") && !shown.contains("rename A.md"), "{shown}");
    session.answer("y");
    let shown = session.until("left out 1 of the 2 hunks in Long.md");
    assert!(shown.contains("item 1, A: a person left it out"), "{shown}");
    assert_eq!(session.end().1, 0);
    assert_eq!(vault.read("Links.md"), "[[A]] [[B one]]\n");
    assert_eq!(vault.read("Long.md"), changed.replace("LAST", "last"));
    let mut undo = Session::new(&vault, &home, &["undo", "--yes"]);
    assert_eq!((undo.child.stdin.take(), undo.end().1).1, 0);
    assert_same(&vault.tree(), &before, "undone");
}

#[test]
fn a_selection_of_several_lines_can_be_typed() {
    let (vault, home) = (TestVault::new(NOTES), tempfile::tempdir().unwrap());
    let plan = serde_json::json!({
        "version": "1.0", "goal": "g", "riskLevel": "writes",
        "steps": [{ "id": "a", "tool": "vault.createFile", "args": { "path": "New.md", "content": "${selection}" } }]
    });
    let file = home.path().join("plan.json");
    std::fs::write(&file, plan.to_string()).unwrap();
    let mut session = Session::new(&vault, &home, &["plan", "run", file.to_str().unwrap()]);
    session.until("dot alone");
    for line in ["- a", "  - b", "", "- c", "."] {
        session.until("| ");
        session.answer(line);
    }
    session.until("Run this plan? [");
    session.answer("y");
    assert_eq!(session.end().1, 0);
    assert_eq!(vault.read("New.md"), "- a\n  - b\n\n- c");
}

#[test]
fn files_to_share_are_ticked() {
    let (vault, home) = (TestVault::new(NOTES), tempfile::tempdir().unwrap());
    let mut session =
        Session::new(&vault, &home, &["call", "file_read", r#"{"filePaths": ["Secret.md", "Open.md", "Log.md"]}"#]);
    assert!(session.until("Enter to share] ").contains("[x] 1 Secret.md"));
    session.answer("1 3");
    let shown = session.until("Enter to share] ");
    assert!(shown.contains("[ ] 1 Secret.md") && shown.contains("[x] 2 Open.md"), "{shown}");
    session.answer("");
    let (out, code) = session.end();
    assert_eq!(code, 0);
    assert!(out.contains("Open.md") && !out.contains("Secret") && !out.contains("Log.md"), "{out}");
}

#[test]
fn found_files_can_be_withheld_without_a_hint() {
    let (vault, home) = (TestVault::new(NOTES), tempfile::tempdir().unwrap());
    let mut session = Session::new(&vault, &home, &["call", "vault_search", r#"{"query": "apples"}"#]);
    session.until("] ");
    session.answer("y");
    let shown = session.until("Enter to share] ");
    assert!(shown.contains("Secret.md  no apples") && shown.contains("Open.md  apples"), "{shown}");
    let secret = if shown.contains("1 Secret.md") { "1" } else { "2" };
    session.answer(secret);
    session.until("Enter to share] ");
    session.answer("");
    let (out, code) = session.end();
    assert_eq!(code, 0);
    assert!(out.contains("Open.md") && !out.contains("Secret") && !out.contains("no apples"), "{out}");
}

#[test]
fn the_end_of_input_is_a_no() {
    let (vault, home) = (TestVault::new(NOTES), tempfile::tempdir().unwrap());
    let before = vault.tree();
    let mut session = Session::new(&vault, &home, &APPEND);
    session.until("] ");
    // Ctrl-D.
    session.terminal.write_all(b"\x04").unwrap();
    assert_eq!(session.end().1, 3);
    assert_same(&vault.tree(), &before, "nobody agreed");
}

const TOOL: &str = env!("CARGO_BIN_EXE_vault-tools");

#[test]
fn a_pager_that_is_missing_or_interrupted_ends_nothing() {
    let (vault, home) = (TestVault::new(NOTES), tempfile::tempdir().unwrap());
    let line = "word ".repeat(2_000);
    let args = ["call", "write_note", &format!(r#"{{"path": "New.md", "content": "{line}end"}}"#)];
    let mut session = Session::with(&vault, &home, &[TOOL], &args, &[("PAGER", "no-such-pager")]);
    assert!(!session.until("] ").contains("end"));
    session.answer("w");
    assert!(session.until("] ").contains("word end"));
    session.answer("n");
    assert_eq!(session.end().1, 3);

    // Ctrl-C is for the pager, which goes on until it is told to end.
    let pager = "kill -INT $PPID; cat; read line <&2; true";
    let mut session = Session::with(&vault, &home, &[TOOL], &args, &[("PAGER", pager)]);
    session.until("] ");
    session.answer("w");
    session.until("word end");
    session.answer("enough");
    session.until("] ");
    session.answer("n");
    assert_eq!(session.end().1, 3);
}

#[test]
fn what_was_typed_in_an_editor_can_be_edited_further() {
    let (vault, home) = (TestVault::new(NOTES), tempfile::tempdir().unwrap());
    // It writes what it finds to a file, then the next of three texts.
    let script = home.path().join("edit");
    let texts = [
        r#"{"path": "Log.md", "content": "- typed""#,
        r#"{"path": "Log.md", "text": "- typed"}"#,
        r#"{"path": "Log.md", "content": "- mended"}"#,
    ];
    for (number, text) in texts.iter().enumerate() {
        std::fs::write(home.path().join(format!("text-{number}")), text).unwrap();
    }
    let lines = r#"n=$(ls "$HOME" | grep -c '^seen-'); cp "$1" "$HOME/seen-$n"; cp "$HOME/text-$n" "$1""#;
    std::fs::write(&script, lines).unwrap();
    let args = ["call", "append_to_note", r#"{"path": "Log.md", "content": "- \u202edone"}"#];
    let editor = format!("sh {}", script.display());
    let mut session = Session::with(&vault, &home, &[TOOL], &args, &[("EDITOR", &editor)]);
    session.until("] ");
    session.answer("e");
    assert!(session.until("again? [y/N] ").contains("not valid JSON"));
    session.answer("y");
    assert!(session.until("] ").contains("/text"));
    session.answer("e");
    assert!(session.until("] ").contains("+- mended"));
    session.answer("y");
    assert_eq!(session.end().1, 0);
    assert_eq!(vault.read("Log.md"), "# Log\n\n- mended\n");
    let seen = |number| std::fs::read_to_string(home.path().join(format!("seen-{number}"))).unwrap();
    assert!(seen(0).contains(r"\u202edone") && !seen(0).contains('\u{202e}'), "{}", seen(0));
    assert_eq!(seen(1), texts[0]);
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&seen(2)).unwrap(),
        serde_json::from_str::<serde_json::Value>(texts[1]).unwrap()
    );
}

#[cfg(target_os = "linux")]
#[test]
fn arguments_from_a_pipe_are_asked_about_at_the_terminal() {
    let (vault, home) = (TestVault::new(NOTES), tempfile::tempdir().unwrap());
    let line = r#"echo '{"path": "Piped.md", "content": "x"}' | "$@""#;
    let program = ["setsid", "-c", "sh", "-c", line, "sh", TOOL];
    let mut session = Session::with(&vault, &home, &program, &["call", "write_note", "-"], &[]);
    session.until("do it? [");
    session.answer("y");
    assert_eq!(session.end().1, 0);
    assert_eq!(vault.read("Piped.md"), "x");
}

/// In the background, reading the terminal would stop the process.
#[cfg(target_os = "linux")]
#[test]
fn in_the_background_nobody_is_asked() {
    let (vault, home) = (TestVault::new(NOTES), tempfile::tempdir().unwrap());
    // `timeout` makes a group of its own below the shell, which has the terminal.
    for line in [r#"timeout -s KILL 20 "$@"; exit $?"#, r#"timeout 20 "$@" </dev/null; exit $?"#] {
        let program = ["setsid", "-c", "sh", "-c", line, "sh", TOOL];
        let mut session = Session::with(&vault, &home, &program, &APPEND, &[]);
        session.until("no terminal to ask on");
        assert_eq!(session.end().1, 3);
    }
}

/// A line behind the cut of each question: the first yes shows it, and only the second counts.
#[test]
fn a_yes_counts_once_all_was_shown() {
    let (vault, home) = (TestVault::new(NOTES), tempfile::tempdir().unwrap());
    let before = vault.tree();
    let content: String = (1..400).map(|number| format!("- line {number}\n")).collect::<String>() + "- EVIL";
    let args = serde_json::json!({ "path": "Log.md", "content": content });
    let step = serde_json::json!({ "id": "a", "tool": "append_to_note", "args": args });
    let plan = serde_json::json!({ "version": "1.0", "goal": "g", "riskLevel": "writes", "steps": [step] });
    let file = home.path().join("plan.json");
    std::fs::write(&file, plan.to_string()).unwrap();
    for command in [
        vec!["call", "append_to_note", &args.to_string()],
        vec!["plan", "run", file.to_str().unwrap()],
        vec!["append", "Log", &content],
    ] {
        let mut session = Session::new(&vault, &home, &command);
        let shown = session.until("once all of it is shown");
        assert!(!shown.contains("EVIL"), "{shown}");
        session.until("] ");
        session.answer("y");
        session.until("EVIL");
        session.until("] ");
        assert_same(&vault.tree(), &before, "one yes does nothing");
        session.answer("n");
        assert_eq!(session.end().1, 3);
        assert_same(&vault.tree(), &before, "refused");
    }
}
