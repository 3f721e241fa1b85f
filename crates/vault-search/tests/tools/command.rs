//! The command `vault-tools`, run as people and scripts run it: without a terminal.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};

use crate::vault::{TestVault, assert_same};

pub struct Shell {
    pub vault: TestVault,
    pub home: tempfile::TempDir,
}

pub struct CommandOutput {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl CommandOutput {
    pub fn of(child: Child) -> Self {
        let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: status.code().unwrap(), out: text(stdout), err: text(stderr) }
    }
}

impl Shell {
    pub fn new(files: &str) -> Self {
        Self { vault: TestVault::new(files), home: tempfile::tempdir().unwrap() }
    }

    pub fn run(&self, args: &[&str]) -> CommandOutput {
        self.run_with(args, "")
    }

    pub fn run_with(&self, args: &[&str], input: &str) -> CommandOutput {
        let mut child = self.start(args);
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        CommandOutput::of(child)
    }

    pub fn start(&self, args: &[&str]) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vault-tools"));
        command.args(args).env_clear().current_dir(self.vault.root());
        command.env("HOME", self.home.path()).env("VAULT_DIR", self.vault.root());
        for name in ["XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "LOCALAPPDATA", "APPDATA"]
        {
            command.env(name, self.home.path());
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// The folder below which programs keep the user's settings and state.
    fn user_folder(&self) -> PathBuf {
        let home = self.home.path();
        if cfg!(target_os = "macos") { home.join("Library/Application Support") } else { home.to_path_buf() }
    }

    /// Writes a file of the user's configuration.
    pub fn configure(&self, name: &str, text: &str) {
        let folder = self.user_folder().join("vault-index");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(name), text).unwrap();
    }

    /// The vault's own folder in the state folder of the user.
    pub fn state(&self) -> PathBuf {
        let folders = std::fs::read_dir(self.user_folder().join("vault-tools")).unwrap();
        folders.map(|entry| entry.unwrap().path()).next().unwrap()
    }

    #[track_caller]
    pub fn done(&self, args: &[&str]) -> String {
        let ran = self.run(args);
        assert_eq!(ran.code, 0, "{args:?}: {}{}", ran.out, ran.err);
        ran.out
    }
}

#[test]
fn tools_are_listed_and_described() {
    let shell = Shell::new("//- a.md\nx\n");
    let list: Value = serde_json::from_str(&shell.done(&["list", "--json"])).unwrap();
    // How many each toolset has is tested in `tools.rs`.
    assert!(list.as_array().unwrap().iter().any(|tool| tool["name"] == "vault.createFile"));
    assert_eq!(shell.done(&["list", "--toolset", "chat"]).lines().count(), 2);
    let schema: Value = serde_json::from_str(&shell.done(&["schema", "rename_note"])).unwrap();
    assert_eq!(schema["input_schema"]["required"], json!(["path", "new_path"]));
    assert!(shell.done(&["schema", "plan"]).contains("riskLevel"));
    let tools = |provider: &str| -> Value {
        serde_json::from_str(&shell.done(&["schema", "--toolset", "actions", "--for", provider])).unwrap()
    };
    let (openai, anthropic, gemini) = (tools("openai"), tools("anthropic"), tools("gemini"));
    assert_eq!((&openai[1]["name"], &openai[1]["strict"]), (&json!("vault_createFile"), &json!(false)));
    assert_eq!(openai[1]["parameters"], anthropic[1]["input_schema"]);
    assert_eq!(openai[1]["parameters"], gemini[0]["functionDeclarations"][1]["parametersJsonSchema"]);
    assert_eq!(openai.as_array().unwrap().len(), 18);
    let one: Value = serde_json::from_str(&shell.done(&["schema", "read_note", "--for", "gemini"])).unwrap();
    assert_eq!(one[0]["functionDeclarations"][0]["name"], "read_note");
    let plan = shell.run(&["schema", "plan", "--for", "openai"]);
    assert!(plan.code == 2 && plan.err.contains("--for") && plan.out.is_empty(), "{}", plan.err);
    assert!(shell.done(&["list", "--schema"]).contains("toolset"));
    assert_eq!(shell.run(&["schema", "nope"]).code, 2);
    for command in ["completions bash", "man"] {
        let args: Vec<&str> = command.split(' ').collect();
        assert!(shell.done(&args).contains("vault-tools"));
    }
}

/// Each sub-command with its options.
#[test]
fn the_manual_page_has_every_option() {
    let page = Shell::new("//- a.md\nx\n").done(&["man"]).replace('\\', "");
    for part in [".SH \"VAULT-TOOLS CALL\"", ".SH \"VAULT-TOOLS PLAN RUN\"", "--dry-run", "--digest", "--older-than"] {
        assert!(page.contains(part), "{part} is not in the manual page");
    }
}

/// What a person reads in a plan is what a parser takes.
#[test]
fn ambiguous_input_is_refused() {
    let shell = Shell::new("//- a.md\nx\n");
    let twice = shell.run(&["call", "read_note", r#"{"path":"a.md","path":"b.md"}"#]);
    assert!(twice.code == 2 && twice.err.contains("the key `path` occurs twice"), "{}", twice.err);
    let both = shell.run_with(&["plan", "run", "-", "--selection", "-"], "- a");
    assert!(both.code == 2 && both.err.contains("standard input can be read only once"), "{}", both.err);
    for args in [&["--vault", "x", "list"][..], &["schema", "--index", "x.db"], &["call", "--set", "a=b", "read_note"]]
    {
        let ran = shell.run(args);
        let option = args.iter().find(|arg| arg.starts_with("--")).unwrap();
        assert!(ran.code == 2 && ran.err.contains(option), "{args:?}: {}", ran.err);
    }
    let prune = shell.run(&["prune"]);
    assert!(prune.err.contains("<--older-than <DAYS>|--max-size <MB>>"), "{}", prune.err);
}

/// A plan that says `now` can be approved by somebody who takes time to think.
/// A run says what the preview said, once, with the step.
#[test]
fn a_cut_list_and_what_is_left_out_are_said_by_preview_and_run() {
    let shell = Shell::new("//- a.md\nx\n//- b.md\nx\n");
    let plan = json!({
        "version": "1.0", "goal": "more", "riskLevel": "writes",
        "steps": [
            { "id": "list", "tool": "vault.listFiles", "args": { "limit": 1 } },
            {
                "id": "add", "tool": "append_to_note", "foreach": { "from": "$steps.list.items" },
                "args": { "path": "${item.path}", "content": "y" }
            },
            {
                "id": "edit", "tool": "edit_note", "foreach": { "from": "$steps.list.items" }, "onError": "skip",
                "args": { "path": "${item.path}", "old_text": "none", "new_text": "z" }
            }
        ]
    });
    let file = shell.home.path().join("plan.json");
    std::fs::write(&file, plan.to_string()).unwrap();
    let file = file.to_str().unwrap();
    let cut = "note: the step list: the list was cut at 1 entries; offset 1 goes on\n";
    let preview = shell.done(&["plan", "preview", file]);
    assert!(preview.matches("was cut").count() == 1 && preview.contains(cut), "{preview}");
    let ran = shell.run(&["plan", "run", file, "--yes"]);
    assert!(ran.err.contains(cut) && ran.err.contains("left out: edit, item 1, a.md: "), "{}", ran.err);
    assert!(ran.out.starts_with("0 done, 1 left out"), "{}", ran.out);
}

#[test]
fn a_digest_includes_the_time_of_its_preview() {
    let shell = Shell::new("//- a.md\nx\n");
    let plan = json!({
        "version": "1.0", "goal": "a stamp", "riskLevel": "writes",
        "steps": [{ "id": "w", "tool": "vault.createFile", "args": { "path": "b.md", "content": "${now} ${name}" } }]
    });
    let file = shell.home.path().join("plan.json");
    std::fs::write(&file, plan.to_string()).unwrap();
    let file = file.to_str().unwrap();
    let preview: Value =
        serde_json::from_str(&shell.done(&["plan", "preview", file, "--set", "name=n", "--json"])).unwrap();
    let digest = preview["digest"].as_str().unwrap();
    let (hash, moment) = digest.split_once('@').unwrap();
    let other = format!("{hash}@2020-01-02T03:04:05Z");
    let conflict = shell.run(&["plan", "run", file, "--set", "name=n", "--digest", &other]);
    // A script cannot take the new digest from there: somebody has to look at the plan.
    assert!(conflict.code == 3 && !conflict.err.contains('@'), "{}", conflict.err);
    assert_eq!(shell.run(&["plan", "run", file, "--set", "name=n", "--digest", hash.get(1..).unwrap()]).code, 3);
    shell.done(&["plan", "run", file, "--set", "name=n", "--digest", digest]);
    assert_eq!(shell.vault.read("b.md"), format!("{moment} n"));
    let unused = shell.run(&["plan", "preview", file, "--set", "nmae=n"]);
    assert!(unused.code == 2 && unused.err.contains("its parameters are name, now"), "{}", unused.err);
}

/// Whoever has shown a model the schemas relies on them, so that a change of them is seen.
#[test]
fn schemas_match_the_snapshot() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tools.json");
    let expected = std::fs::read_to_string(file).unwrap();
    let actual = Shell::new("//- a.md\nx\n").done(&["schema"]);
    assert!(actual == expected, "if the change is meant: vault-tools schema > testdata/tools.json");
}

#[test]
fn texts_are_printed_bare() {
    let shell = Shell::new("//- a.md\nhello\n");
    assert_eq!(shell.done(&["call", "read_note", r#"{"path":"a.md"}"#]), "hello\n");
    let record: Value =
        serde_json::from_str(&shell.done(&["call", "read_note", r#"{"path":"a.md"}"#, "--json"])).unwrap();
    assert_eq!((&record["output"]["content"], &record["transaction"]), (&json!("hello\n"), &Value::Null));
    let missing = shell.run(&["call", "read_note", r#"{"path":"b.md"}"#]);
    assert_eq!((missing.code, missing.out.as_str()), (2, ""));
    assert!(missing.err.starts_with("error: Note not found: b.md"), "{}", missing.err);
}

#[test]
fn a_write_without_a_terminal_needs_yes() {
    let shell = Shell::new("//- a.md\nhello\n");
    let before = shell.vault.tree();
    let args = r#"{"path":"b.md","content":"new"}"#;
    let refused = shell.run(&["call", "write_note", args]);
    assert_eq!(refused.code, 3);
    assert!(refused.err.contains("--yes"), "{}", refused.err);
    let read = shell.run(&["call", "search_notes", r#"{"query": "x", "top_k": 101}"#, "--dry-run"]);
    assert!(read.err.contains("100 notes at most"), "{}", read.err);
    let dry = shell.done(&["call", "write_note", args, "--dry-run"]);
    assert!(dry.contains("create b.md") && dry.contains("+new"), "{dry}");
    assert_same(&shell.vault.tree(), &before, "nothing was agreed to");
    assert!(shell.done(&["call", "write_note", args, "--yes"]).contains("created"));
    assert_eq!(shell.vault.read("b.md"), "new");
    let replaced = shell.run(&["call", "write_note", r#"{"path":"b.md","content":"other"}"#, "--yes"]);
    assert!(replaced.code == 3 && replaced.err.contains("mode: replace"), "{}", replaced.err);
    let denied = shell.run(&["call", "delete_note", r#"{"path":"b.md"}"#, "--yes"]);
    assert_eq!(denied.code, 3, "{}", denied.err);
    shell.done(&["call", "delete_note", r#"{"path":"b.md"}"#, "--yes", "--allow-delete"]);
    let listed = shell.done(&["undo", "--list"]);
    assert!(listed.lines().any(|line| line.ends_with("write_note  b.md")), "{listed}");
    assert_eq!(shell.run(&["undo"]).code, 3);
    shell.done(&["undo", "--yes"]);
    shell.done(&["undo", "--yes"]);
    let left = shell.vault.tree().into_iter().filter(|(path, _)| !path.starts_with(".trash")).collect();
    assert_same(&left, &before, "after two undos");
    shell.done(&["redo", "--yes"]);
    assert_eq!(shell.vault.read("b.md"), "new");
    let runs: Value = serde_json::from_str(&shell.done(&["undo", "--list", "--json"])).unwrap();
    assert_eq!(runs.as_array().unwrap().len(), 5);
    let stats: Value = serde_json::from_str(&shell.done(&["log", "--stats", "--json"])).unwrap();
    let delete = stats.as_array().unwrap().iter().find(|row| row["tool"] == "delete_note").unwrap();
    assert_eq!((&delete["calls"], &delete["refusals"]), (&json!(2), &json!(1)));
    assert!(shell.done(&["log", "-n", "1", "--jsonl"]).contains("delete_note"));
    // That drops nothing, so nobody has to agree; this drops all.
    shell.done(&["prune", "--older-than", "30"]);
    let unasked = shell.run(&["prune", "--older-than", "0"]);
    assert!(unasked.code == 3 && unasked.err.contains("every transaction"), "{}", unasked.err);
    assert!(!shell.done(&["undo", "--list"]).is_empty());
    shell.done(&["prune", "--older-than", "0", "--yes"]);
    assert_eq!(shell.done(&["undo", "--list"]), "");
}

#[test]
fn replacing_renaming_and_deleting_ask() {
    let shell = Shell::new("//- a.md\nhello\n//- b.md\n[[a]]\n");
    let before = shell.vault.tree();
    let calls = [
        ["call", "write_note", r#"{"path":"a.md","content":"new","mode":"replace"}"#],
        ["call", "rename_note", r#"{"path":"a.md","new_path":"c.md"}"#],
        ["call", "delete_note", r#"{"path":"a.md"}"#],
    ];
    for call in &calls {
        let refused = shell.run(&[&call[..], &["--allow-delete"]].concat());
        assert!(refused.code == 3 && refused.err.contains("--yes"), "{call:?}: {}", refused.err);
    }
    assert_same(&shell.vault.tree(), &before, "nothing was agreed to");
    for call in &calls {
        shell.done(&[&call[..], &["--allow-delete", "--yes"]].concat());
        assert_ne!(shell.vault.tree(), before, "{call:?}");
        shell.done(&["undo", "--yes"]);
    }
}

#[test]
fn chat_tools_ask_before_they_read() {
    let shell = Shell::new("//- a.md\nhello\n");
    let args = r#"{"filePaths":["a.md"]}"#;
    let refused = shell.run(&["call", "file_read", args]);
    assert_eq!((refused.code, refused.out.as_str()), (3, ""));
    let dry = shell.run(&["call", "file_read", args, "--dry-run"]);
    assert!(dry.code == 3 && dry.err.contains("--yes instead of --dry-run"), "{}", dry.err);
    assert!(shell.done(&["log"]).contains("refused  file_read"));
    assert!(shell.done(&["call", "file_read", args, "--yes"]).contains("hello"));
}

pub(crate) fn example() -> Value {
    json!({
        "version": "1.0", "goal": "Create notes from bullet points", "riskLevel": "writes",
        "steps": [
            { "id": "ensureFolder", "tool": "vault.ensureFolder", "args": { "path": "Projects" } },
            { "id": "parseBullets", "tool": "util.parseMarkdownBullets", "args": { "text": "${selection}" } },
            {
                "id": "createNotes", "tool": "vault.createFile",
                "foreach": { "from": "$steps.parseBullets.items", "itemName": "item" },
                "args": { "path": "Projects/${item.text}.md", "content": "# ${item.text}\n" }
            }
        ]
    })
}

#[test]
fn the_example_plan() {
    let shell = Shell::new("//- Inbox.md\n- one \"1\"\n- two 🚲 ${x}\n");
    let before = shell.vault.tree();
    let file = shell.home.path().join("plan.json");
    std::fs::write(&file, example().to_string()).unwrap();
    let file = file.to_str().unwrap();
    assert!(shell.done(&["plan", "check", file]).contains("selection"));
    let missing = shell.run(&["plan", "preview", file]);
    assert_eq!(missing.code, 2);
    assert!(missing.err.contains("--selection"), "{}", missing.err);
    let selection = ["--selection-from", "Inbox.md:1-2"];
    let preview = shell.done(&["plan", "preview", file, selection[0], selection[1]]);
    for part in ["[WRITE]", "Projects/one -1-.md", "Projects/two 🚲 ${x}.md", "make folder Projects", "digest "] {
        assert!(preview.contains(part), "{part} is not in {preview}");
    }
    let digest = preview.trim().rsplit(' ').next().unwrap().to_string();
    assert_eq!(shell.run(&["plan", "run", file, selection[0], selection[1]]).code, 3);
    let wrong = shell.run(&["plan", "run", file, selection[0], selection[1], "--digest", "00"]);
    assert_eq!(wrong.code, 3, "{}", wrong.err);
    assert_same(&shell.vault.tree(), &before, "nothing was agreed to");
    assert!(!wrong.err.contains(digest.split('@').next().unwrap()), "a script could just use it: {}", wrong.err);
    shell.done(&["plan", "run", file, selection[0], selection[1], "--digest", &digest]);
    let after = shell.vault.tree();
    assert_eq!(shell.vault.read("Projects/two 🚲 ${x}.md"), "# two 🚲 ${x}\n");
    shell.done(&["undo", "--yes"]);
    assert_same(&shell.vault.tree(), &before, "after undo");
    shell.done(&["redo", "--yes"]);
    assert_same(&shell.vault.tree(), &after, "after redo");
    shell.done(&["undo", "--yes"]);

    let dry = shell.run_with(&["plan", "run", file, "--dry-run", "--jsonl", "--selection", "-"], "- three\n");
    assert_eq!(dry.out.lines().count(), 1, "a record is a line");
    assert!(serde_json::from_str::<Value>(&dry.out).unwrap()["digest"].is_string());
    let ran = shell.run_with(&["plan", "run", file, "--yes", "--selection", "-", "--jsonl"], "- three\n");
    assert_eq!(ran.code, 0, "{}", ran.err);
    let last: Value = serde_json::from_str(ran.out.lines().last().unwrap()).unwrap();
    assert_eq!((&last["event"], &last["status"]), (&json!("run.finished"), &json!("done")));
    assert_eq!(shell.vault.read("Projects/three.md"), "# three\n");
}

#[test]
fn checking_an_invalid_plan_fails() {
    let shell = Shell::new("//- a.md\nx\n");
    let mut plan = example();
    plan["riskLevel"] = json!("read-only");
    plan["steps"][0]["args"]["path"] = json!("../out");
    let checked = shell.run_with(&["plan", "check", "-"], &plan.to_string());
    assert_eq!(checked.code, 1);
    assert!(checked.out.contains("/riskLevel") && checked.out.contains("/steps/0/args/path"), "{}", checked.out);
    // Nobody reads what it says; the code says it all the same.
    let mut unread = shell.start(&["plan", "check", "-"]);
    drop(unread.stdout.take());
    unread.stdin.take().unwrap().write_all(plan.to_string().as_bytes()).unwrap();
    assert_eq!(unread.wait().unwrap().code(), Some(1));
    assert_eq!(shell.run_with(&["plan", "run", "-", "--yes"], &plan.to_string()).code, 2);
    assert_eq!(shell.run_with(&["plan", "check", "-"], "no json").code, 2);
}

#[test]
fn macros_from_the_command_line() {
    let shell = Shell::new("//- a.md\nx\n");
    let save = ["macro", "save", "bullets", "-", "--description", "notes", "--default", "selection=- x"];
    let untried = shell.run_with(&save, &example().to_string());
    assert!(untried.code == 3 && untried.err.contains("--untried"), "{}", untried.err);
    let saved = shell.run_with(&[&save[..], &["--untried"]].concat(), &example().to_string());
    assert_eq!(saved.code, 0, "{}", saved.err);
    assert!(shell.done(&["macro", "list"]).contains("bullets"));
    shell.done(&["macro", "run", "bullets", "--yes"]);
    assert_eq!(shell.vault.read("Projects/x.md"), "# x\n");
    let export = shell.done(&["macro", "export"]);
    shell.done(&["macro", "rename", "bullets", "b"]);
    assert!(shell.done(&["macro", "show", "b"]).contains("createNotes"));
    let imported = shell.run_with(&["macro", "import", "-"], &export);
    assert_eq!(imported.code, 0, "{}", imported.err);
    assert_eq!(shell.run_with(&["macro", "import", "-"], &export).code, 1);
    // One that ran can be saved: as its file, as what ran last, by its run.
    let saved = shell.run_with(&["macro", "save", "file", "-"], &example().to_string());
    assert_eq!(saved.code, 0, "{}", saved.err);
    shell.done(&["macro", "save", "last"]);
    shell.done(&["macro", "save", "first", "--run", "1"]);
    let unknown = shell.run(&["macro", "save", "second", "--run", "2"]);
    assert!(unknown.code == 2 && unknown.err.contains("transaction 2 is not a plan that succeeded"), "{}", unknown.err);
    let plan = |name: &str| {
        let shown: Value = serde_json::from_str(&shell.done(&["macro", "show", name])).unwrap();
        shown["plan"].clone()
    };
    assert!(plan("file") == plan("last") && plan("last") == plan("first"));
    shell.done(&["prune", "--older-than", "0", "--yes"]);
    assert_eq!(shell.run(&["macro", "save", "late"]).code, 2);
    let unasked = shell.run(&["macro", "delete", "b"]);
    assert!(unasked.code == 3 && unasked.err.contains("--yes"), "{}", unasked.err);
    shell.done(&["macro", "delete", "b", "--yes"]);
    assert_eq!(shell.run(&["macro", "show", "b"]).code, 2);
}

/// The history of a vault that has moved is still where it was, and only its index says whose it is.
#[test]
fn a_vault_that_has_moved_is_told_of_its_history() {
    let shell = Shell::new("//- one/.obsidian/app.json\n{}\n//- one/a.md\nx\n");
    let at = |folder: &str| shell.vault.root().join(folder).to_string_lossy().into_owned();
    let (old, new) = (at("one"), at("two"));
    shell.done(&["call", "search_notes", r#"{"query": "x"}"#, "--vault", &old]);
    shell.done(&["call", "write_note", r#"{"path":"b.md","content":"b"}"#, "--yes", "--vault", &old]);
    std::fs::rename(&old, &new).unwrap();
    let list = shell.run(&["undo", "--list", "--vault", &new]);
    assert!(list.code == 0 && list.err.contains("adopt") && list.err.contains("one"), "{}", list.err);
    shell.done(&["adopt", &old, "--vault", &new]);
    let undone = shell.run(&["undo", "--yes", "--vault", &new]);
    assert!(undone.code == 0 && !undone.err.contains("adopt"), "{}", undone.err);
    assert!(!shell.vault.root().join("two/b.md").exists());
}

#[test]
fn the_editor_is_described_by_flags() {
    let shell = Shell::new("//- a.md\nline one\nline two\n");
    shell.done(&[
        "call",
        "editor.insertAtCursor",
        r#"{"text":"!"}"#,
        "--active-file",
        "a.md",
        "--cursor",
        "1:8",
        "--yes",
    ]);
    assert_eq!(shell.vault.read("a.md"), "line one\nline two!\n");
    let replaced = ["call", "editor_replaceSelection", r#"{"text":"x"}"#, "--selection-from", "a.md:1", "--yes"];
    shell.done(&replaced);
    assert_eq!(shell.vault.read("a.md"), "x\nline two!\n");
    let beyond = shell.run(&["call", "editor.getSelection", "--selection-from", "a.md:2-9"]);
    assert_eq!(beyond.code, 2);
    assert!(beyond.err.contains("2 lines"), "{}", beyond.err);
    let swapped = shell.run(&["call", "editor.getSelection", "--selection-from", "a.md:2-1"]);
    assert!(swapped.code == 2 && swapped.err.contains("give 1-2"), "{}", swapped.err);
    shell.vault.write("sub 1/b.md", "x");
    for (prefix, code) in [("nosuch", 2), ("sub", 0), ("sub/", 2), ("sub 1/", 0)] {
        let listed = shell.run(&["call", "vault.listFiles", &format!(r#"{{"prefix": "{prefix}"}}"#)]);
        assert!(listed.code == code && !listed.err.contains("Note not found"), "{prefix}: {}", listed.err);
    }
}

#[test]
fn user_settings_can_deny_and_slips_are_errors() {
    let shell = Shell::new("//- a.md\nx\n");
    shell.vault.write(".vault.toml", "");
    shell.configure("tools.toml", "denied_paths = ['a.md']\n");
    let denied = shell.run(&["call", "read_note", r#"{"path":"a.md"}"#, "--yes"]);
    assert_eq!(denied.code, 3, "{}", denied.err);
    shell.configure("tools.toml", "denied_tools = ['delete_notes']\n");
    let slip = shell.run(&["call", "read_note", r#"{"path":"a.md"}"#]);
    assert!(slip.code == 2 && slip.err.contains("no tool \"delete_notes\""), "{}", slip.err);
    shell.configure("tools.toml", "denied_paths = ['Privat', 'a']\nallowed_tools = ['read*']\n");
    let nowhere = shell.run(&["call", "read_note", r#"{"path":"a.md"}"#]);
    assert!(nowhere.err.contains("nothing in this vault matches \"Privat\""), "{}", nowhere.err);
    assert!(nowhere.code == 3 && !nowhere.err.contains("matches \"a\""), "{}", nowhere.err);
    shell.configure("tools.toml", "denied_paths = ['Privat/**', '*.md']\n");
    let nowhere = shell.run(&["call", "read_note", r#"{"path":"a.md"}"#]);
    assert!(nowhere.code == 3 && nowhere.err.contains("matches \"Privat/**\""), "{}", nowhere.err);
    assert!(!nowhere.err.contains("matches \"*.md\""), "{}", nowhere.err);
    let said_before = shell.run(&["call", "read_note", r#"{"path":"a.md"}"#]);
    assert!(!said_before.err.contains("nothing in this vault"), "{}", said_before.err);
    for names in ["denied_tools = ['delte*']", "[tools]\n'read*' = 'always-ask'"] {
        shell.configure("tools.toml", names);
        let slip = shell.run(&["call", "read_note", r#"{"path":"a.md"}"#]);
        assert!(slip.code == 2 && slip.err.contains("tools.toml"), "{}", slip.err);
    }
    shell.configure("tools.toml", "");
    shell.vault.write(".vault.toml", "denied_paths = ['a.md']\n");
    let vault = shell.run(&["call", "read_note", r#"{"path":"a.md"}"#]);
    assert!(vault.code == 2 && vault.err.contains("unknown field `denied_paths`"), "{}", vault.err);
    // What was done can be seen and undone all the same.
    for args in [&["log"][..], &["undo", "--list"], &["undo", "--recover"]] {
        shell.done(args);
    }
    shell.vault.write(".vault.toml", "");
    shell.configure("tools.toml", "denied = 1\n");
    let wrong = shell.run(&["call", "read_note", r#"{"path":"a.md"}"#]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.err.contains("unknown field `denied`") && wrong.err.contains("tools.toml"), "{}", wrong.err);
}

#[test]
fn what_the_search_settings_exclude_is_not_indexed() {
    let shell = Shell::new("//- a.md\nx\n//- b.md\n[[a]]\n//- Old/c.md\n[[a]]\n");
    let backlinks = || shell.done(&["call", "list_backlinks", r#"{"path":"a.md"}"#, "--yes", "--json"]);
    assert!(backlinks().contains("Old/c.md"));
    shell.configure("config.toml", "exclude = ['Old/**']\n");
    let left = backlinks();
    assert!(left.contains("b.md") && !left.contains("Old/c.md"), "{left}");
}

#[test]
fn undo_reports_links_made_since() {
    let shell = Shell::new("//- a.md\nx\n//- l.md\n[[a]]\n//- f/c.md\nx\n");
    shell.done(&["call", "rename_note", r#"{"path":"a.md","new_path":"b.md"}"#, "--yes"]);
    shell.vault.write("since.md", "one\n[[b]]\n");
    let shown = shell.done(&["undo", "--dry-run"]);
    assert!(shown.contains("note: since.md, line 2: leads to b.md, which goes"), "{shown}");
    assert!(!shown.contains("l.md, line"), "that link is given back: {shown}");
    shell.done(&["undo", "--yes"]);
    assert_eq!(shell.vault.read("l.md"), "[[a]]\n");
    // Of what lies in a folder, too.
    shell.done(&["call", "vault.rename", r#"{"fromPath":"f","toPath":"g"}"#, "--yes"]);
    shell.vault.write("since.md", "[[g/c]]\n");
    let shown = shell.done(&["undo", "--dry-run"]);
    assert!(shown.contains("since.md, line 1: leads to g/c.md, which goes"), "{shown}");
}

#[test]
fn deleting_a_folder_shows_what_is_in_it() {
    let shell = Shell::new("//- f/a.md\nx\n//- f/g/b.md\nx\n//- f/.hidden\nx\n");
    let delete = ["call", "vault.delete", r#"{"path":"f"}"#, "--allow-delete", "--dry-run"];
    let shown = shell.done(&delete);
    for part in ["delete f -> .trash/f (a folder with 3 files)", "    f/.hidden", "    f/a.md", "    f/g/b.md"] {
        assert!(shown.contains(part), "{part:?} is not in {shown}");
    }
    let for_good = ["call", "vault.delete", r#"{"path":"f","trash":false}"#, "--allow-delete", "--yes"];
    let refused = shell.run(&for_good);
    assert_eq!(refused.code, 3);
    assert!(refused.err.contains(".hidden"), "{}", refused.err);
}

#[test]
fn the_history_moves_with_its_vault_and_can_be_forgotten() {
    let shell = Shell::new("//- a.md\n0\n");
    shell.done(&["call", "write_note", r#"{"path":"a.md","content":"1","mode":"replace"}"#, "--yes"]);
    let moved = shell.home.path().join("moved");
    let (old, new) = (shell.vault.root(), moved.to_str().unwrap().to_string());
    std::fs::create_dir(&moved).unwrap();
    // A copy beside the vault does not take its history.
    let adopt = ["adopt", old.to_str().unwrap(), "--vault", &new];
    let refused = shell.run(&adopt);
    assert!(refused.code == 3 && refused.err.contains("this folder is still there"), "{}", refused.err);
    std::fs::rename(old.join("a.md"), moved.join("a.md")).unwrap();
    shell.done(&adopt);
    assert_eq!(shell.done(&["undo", "--list"]), "");
    shell.done(&["undo", "--yes", "--vault", &new]);
    assert_eq!(std::fs::read_to_string(moved.join("a.md")).unwrap(), "0\n");
    let refused = shell.run(&["forget", "--vault", &new]);
    assert_eq!(refused.code, 3, "{}", refused.err);
    // The folder itself may be gone by then.
    std::fs::remove_dir_all(&moved).unwrap();
    let deleted = shell.done(&["forget", "--vault", &new, "--yes"]);
    assert!(deleted.contains("journal") && deleted.contains("log.jsonl"), "{deleted}");
    assert!(shell.done(&["forget", "--vault", &new, "--yes"]).starts_with("nothing is stored"));
}

/// With `trash = "system"` a note goes where the person finds it among other deleted files, and undo recreates it.
#[test]
#[cfg(target_os = "linux")]
fn a_deleted_note_can_go_to_the_systems_trash() {
    let shell = Shell::new("//- d/a.md\none\n//- b.md\n[[a]]\n//- c.md\nthree\n//- f/e.md\nx\n//- n.md\nx\n");
    let before = shell.vault.tree();
    shell.configure("tools.toml", "allow_delete = true\ntrash = 'system'\n");
    let trash = shell.home.path().join("Trash");
    let delete = |path: &str, more: &[&str]| {
        let args = format!(r#"{{"path":"{path}"}}"#);
        shell.done(&[&["call", "delete_note", &args], more].concat())
    };

    let shown = delete("d/a.md", &["--dry-run"]);
    assert!(shown.contains("delete d/a.md -> the system's trash") && shown.contains("undo recreates it"), "{shown}");
    assert!(shown.contains("b.md:1: the link [[a]] leads nowhere now"), "{shown}");
    assert!(!trash.exists());

    let done = delete("d/a.md", &["--yes"]);
    assert!(done.contains("\"trashed_to\": \"the system's trash\""), "{done}");
    assert_eq!(std::fs::read_to_string(trash.join("files/a.md")).unwrap(), "one\n");
    let info = std::fs::read_to_string(trash.join("info/a.md.trashinfo")).unwrap();
    assert!(info.contains("/vault/d/a.md\n") && info.contains("DeletionDate="), "{info}");
    assert!(!shell.vault.root().join("d/a.md").exists() && !shell.vault.root().join(".trash").exists());
    shell.done(&["undo", "--yes"]);
    assert_same(&shell.vault.tree(), &before, "undo");
    assert!(trash.join("files/a.md").exists());
    shell.done(&["redo", "--yes"]);
    assert!(!shell.vault.root().join("d/a.md").exists());
    shell.done(&["undo", "--yes"]);

    // A folder could not be made anew as it was.
    shell.done(&["call", "vault.delete", r#"{"path":"f"}"#, "--yes"]);
    assert_eq!(shell.vault.read(".trash/f/e.md"), "x\n");
    // The vault's own setting can keep files in it, and can not have them deleted for good.
    shell.vault.write(".obsidian/app.json", r#"{"trashOption":"none"}"#);
    delete("c.md", &["--yes"]);
    assert!(trash.join("files/c.md").exists());
    shell.vault.write(".obsidian/app.json", r#"{"trashOption":"local"}"#);
    delete("n.md", &["--yes"]);
    assert_eq!(shell.vault.read(".trash/n.md"), "x\n");
    shell.done(&["undo", "--yes"]);
    // What the person does not say, the vault may.
    shell.configure("tools.toml", "allow_delete = true\n");
    for (option, goes_to_system) in [("none", false), ("system", true)] {
        shell.vault.write(".obsidian/app.json", format!(r#"{{"trashOption":"{option}"}}"#));
        let shown = delete("n.md", &["--dry-run"]);
        assert_eq!(shown.contains("the system's trash"), goes_to_system, "{shown}");
    }
    shell.configure("tools.toml", "allow_delete = true\ntrash = 'vault'\n");
    assert!(delete("n.md", &["--dry-run"]).contains(".trash/n.md"));
    shell.configure("tools.toml", "allow_delete = true\ntrash = 'system'\n");
    for _ in 0..2 {
        shell.done(&["undo", "--yes"]);
    }
    std::fs::remove_dir_all(shell.vault.root().join(".obsidian")).unwrap();
    std::fs::remove_dir_all(shell.vault.root().join(".trash")).ok();
    assert_same(&shell.vault.tree(), &before, "undo of all");

    // A trash that takes nothing: the note stays.
    std::fs::remove_dir_all(&trash).unwrap();
    std::fs::write(&trash, "no folder").unwrap();
    let refused = shell.run(&["call", "delete_note", r#"{"path":"c.md"}"#, "--yes"]);
    assert!(refused.code == 2 && refused.err.contains("tools.toml"), "{}", refused.err);
    assert_same(&shell.vault.tree(), &before, "after a trash that takes nothing");
}

#[test]
#[cfg(unix)]
fn a_dangling_symlink_is_refused_before_anything_is_done() {
    let shell = Shell::new("//- a.md\nx\n");
    std::os::unix::fs::symlink("nowhere", shell.vault.root().join("dead.md")).unwrap();
    for (tool, args) in [
        ("write_note", r#"{"path":"dead.md","content":"y"}"#),
        ("rename_note", r#"{"path":"a.md","new_path":"dead.md"}"#),
    ] {
        for more in ["--dry-run", "--yes"] {
            let refused = shell.run(&["call", tool, args, more]);
            assert!(refused.code != 0 && refused.err.contains("is a symbolic link to a file"), "{}", refused.err);
        }
    }
    assert_eq!(shell.vault.read("a.md"), "x\n");
}

#[test]
fn names_with_odd_spaces_can_be_renamed_but_not_created() {
    let shell = Shell::new("//- a.md\nx\n");
    let old = "x\u{a0}y.md";
    shell.vault.write(old, "1");
    let call = |tool: &str, args: Value| shell.run(&["call", tool, &args.to_string(), "--yes"]);
    let refused = call("rename_note", json!({ "path": "a.md", "new_path": "a\u{a0}b.md" }));
    assert!(refused.code != 0 && refused.err.contains("a<U+00A0>b.md"), "{}", refused.err);
    assert!(refused.err.contains("use the name \"a b.md\""), "{}", refused.err);
    for (tool, args) in [
        ("write_note", json!({ "path": old, "content": "2", "mode": "replace" })),
        ("read_note", json!({ "path": old })),
        ("rename_note", json!({ "path": old, "new_path": format!("f/{old}") })),
        ("rename_note", json!({ "path": format!("f/{old}"), "new_path": "f/x y.md" })),
    ] {
        let done = call(tool, args);
        assert_eq!(done.code, 0, "{tool}: {}", done.err);
    }
    assert_eq!(shell.vault.read("f/x y.md"), "2");
}

/// So many passages that no machine makes their vectors in the second that each search takes for them. They are in a few
/// notes, because titles have vectors too, and only passages are counted.
#[test]
fn a_search_says_how_far_the_index_is() {
    let shell = Shell::new("//- pruning.md\nPrune the apple tree.\n");
    for note in 0..4 {
        let section = |number: usize| {
            let words: Vec<String> = (0..60).map(|word| format!("word{}", number * 60 + word)).collect();
            format!("# {number}\n\n{}\n\n", words.join(" "))
        };
        let sections: String = (note * 1_000..(note + 1) * 1_000).map(section).collect();
        shell.vault.write(&format!("{note}.md"), sections);
    }
    // The second search is for weak notes, when more vectors are there.
    let ran = shell.run(&["call", "search_notes", r#"{"query": "pruning", "top_k": 100}"#]);
    assert!(ran.out.contains("pruning.md"), "{}{}", ran.out, ran.err);
    let notices: Vec<&str> = ran.err.lines().filter(|line| line.contains("passages have no vector yet")).collect();
    let [notice] = notices[..] else { panic!("one notice: {}", ran.err) };
    let numbers: Vec<usize> = notice.split(' ').filter_map(|word| word.parse().ok()).collect();
    assert!(matches!(numbers[..], [pending, all] if 0 < pending && pending < all && all >= 4_001), "{notice}");
}

#[test]
fn tokens_of_tools_are_listed_with_their_sum() {
    let shell = Shell::new("//- a.md\n");
    let printed = shell.done(&["list", "--tokens", "--toolset", "chat"]);
    let numbers: Vec<u32> = printed
        .lines()
        .filter_map(|line| line.split(" tokens").next()?.split_whitespace().last()?.parse().ok())
        .collect();
    assert!(
        numbers.len() == 3 && numbers[0] + numbers[1] == numbers[2] && printed.contains("all of chat"),
        "{printed}"
    );
}

#[test]
fn the_command_passes_on_no_selection_of_a_denied_note() {
    let shell = Shell::new("//- Private/salary.md\n1000\n//- a.md\nx\n");
    shell.configure("tools.toml", "denied_paths = ['Private']\n");
    for (flag, file) in [
        ("--selection-from", "Private/salary.md:1-1"),
        ("--active-file", "private/Salary.md"),
        ("--active-file", "Private/none.md"),
    ] {
        let ran = shell.run(&["call", "editor.getSelection", flag, file]);
        assert!(ran.code == 3 && ran.out.is_empty() && ran.err.contains("denied by your settings"), "{}", ran.err);
    }
    let ran = shell.run(&["call", "editor.getSelection", "--active-file", "salary.md"]);
    assert!(ran.code == 2 && !ran.err.contains("Private"), "{}", ran.err);
}
