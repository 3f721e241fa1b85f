//! Plans whose steps run commands of an editor.

use std::path::PathBuf;

use serde_json::{Map, Value, json};
use vault_tools::approval::{ChangeRequest, now, run_plan, settle};
use vault_tools::plan::{Event, Parameters, RunStatus, dry_run, validate};
use vault_tools::{
    Cancel, Editor, Error, ErrorKind, Force, Grants, Host, HostCommand, Leaf, OpenEditors, Policy, PolicySettings,
    SafePath, Toolbox, read_log,
};

use crate::plans::{previewed, ran, writing};
use crate::vault::{TestVault, assert_same, seen};

/// A program around the vault whose command fails as often as it is told to.
struct LiveHost {
    failures: u32,
    ran: std::sync::Arc<std::sync::Mutex<Vec<String>>>,
    root: PathBuf,
    command: &'static str,
    /// What a failure is.
    fails_with: ErrorKind,
    /// What the command writes to a note, if anything.
    writes: Option<(&'static str, &'static str)>,
}

impl LiveHost {
    fn new(vault: &TestVault, failures: u32) -> Self {
        let (ran, root) = (std::sync::Arc::default(), vault.root());
        Self { failures, ran, root, command: "app:sort", fails_with: ErrorKind::Io, writes: None }
    }
}

impl Host for LiveHost {
    fn name(&self) -> &str {
        "live"
    }

    fn is_live(&self) -> bool {
        true
    }

    fn editor(&self) -> Result<Editor, Error> {
        Ok(Editor::default())
    }

    fn open(&mut self, path: &SafePath, _: Leaf, _: Option<u32>) -> Result<bool, Error> {
        self.ran.lock().unwrap().push(format!("open {path}"));
        Ok(true)
    }

    fn commands(&self) -> Result<Vec<HostCommand>, Error> {
        Ok(vec![HostCommand { id: self.command.into(), name: "Sort".into() }])
    }

    fn run_command(&mut self, id: &str) -> Result<(), Error> {
        let there: Vec<bool> = ["1.md", "2.md"].iter().map(|name| self.root.join(name).exists()).collect();
        self.ran.lock().unwrap().push(format!("{id} {there:?}"));
        match self.failures.checked_sub(1) {
            Some(left) => {
                self.failures = left;
                Err(Error::new(self.fails_with, "busy"))
            }
            None => {
                self.writes.into_iter().for_each(|(path, text)| std::fs::write(self.root.join(path), text).unwrap());
                Ok(())
            }
        }
    }
}

fn command_plan(on_error: &str) -> Value {
    json!({
        "version": "1.0", "goal": "commands", "riskLevel": "commands",
        "steps": [
            { "id": "one", "tool": "vault.createFile", "args": { "path": "1.md", "content": "" } },
            {
                "id": "sort", "tool": "commands.run", "args": { "id": "app:sort" }, "dependsOn": ["one"],
                "onError": on_error, "retry": { "maxAttempts": 3, "backoffMs": 1 }
            },
            { "id": "two", "tool": "vault.createFile", "args": { "path": "2.md", "content": "" }, "dependsOn": ["sort"] },
            { "id": "show", "tool": "workspace.openFile", "args": { "path": "2.md" }, "dependsOn": ["two"] }
        ]
    })
}

fn with_live_host(vault: &TestVault, failures: u32) -> (Toolbox, std::sync::Arc<std::sync::Mutex<Vec<String>>>) {
    let host = LiveHost::new(vault, failures);
    let ran = std::sync::Arc::clone(&host.ran);
    (Toolbox::new(std::sync::Arc::new(vault.open()), Box::new(host), Policy::default()), ran)
}

#[test]
fn commands_run_in_their_place_and_are_tried_again() {
    let vault = TestVault::new("//- a.md\none\n");
    let (mut toolbox, ran) = with_live_host(&vault, 2);
    let shown = previewed(&mut toolbox, &command_plan("retry"), &Value::Null).unwrap();
    assert!(ran.lock().unwrap().is_empty(), "a preview runs no command");
    assert!(shown.notices.iter().any(|notice| notice.contains("app:sort")), "{:?}", shown.notices);
    let mut failures = Vec::new();
    let mut tell = |event: &Event| {
        if let Event::StepFailed { attempt, will_retry, .. } = event {
            failures.push((*attempt, *will_retry));
        }
    };
    let done = run_plan(&mut toolbox, shown.clone(), &mut seen, Cancel::default(), &mut tell).unwrap();
    assert_eq!((done.status, failures), (RunStatus::Done, vec![(1, true), (2, true)]));
    assert!(done.outputs["one"]["mtimeMs"].is_number());
    let sort = "app:sort [true, false]";
    assert_eq!(*ran.lock().unwrap(), [sort, sort, sort, "open 2.md"]);
    assert_eq!(done.outputs["show"]["opened"], true);
}

#[test]
fn a_retry_waits_and_gives_up_after_its_attempts() {
    for (attempts, failures, status) in [(3, 2, RunStatus::Done), (2, 2, RunStatus::Failed)] {
        let vault = TestVault::new("//- a.md\none\n");
        let (mut toolbox, ran) = with_live_host(&vault, failures);
        let mut plan = command_plan("retry");
        plan["steps"][1]["retry"] = json!({ "maxAttempts": attempts, "backoffMs": 40 });
        let shown = previewed(&mut toolbox, &plan, &Value::Null).unwrap();
        let started = std::time::Instant::now();
        let done = run_plan(&mut toolbox, shown.clone(), &mut seen, Cancel::default(), &mut |_| {}).unwrap();
        assert_eq!(done.status, status, "{attempts}");
        let tried = ran.lock().unwrap().iter().filter(|command| command.starts_with("app:sort")).count();
        assert_eq!(tried, attempts, "{attempts}");
        // Before the second attempt as long as it says, before the third twice that.
        let least = if attempts == 3 { 40 + 80 } else { 40 };
        assert!(started.elapsed().as_millis() >= least, "{:?}", started.elapsed());
    }
}

#[test]
fn a_command_of_which_it_is_not_known_whether_it_ran_is_not_run_again() {
    let vault = TestVault::new("//- a.md\none\n");
    let host = LiveHost { fails_with: ErrorKind::TimedOut, ..LiveHost::new(&vault, 1) };
    let run = std::sync::Arc::clone(&host.ran);
    let mut toolbox = Toolbox::new(std::sync::Arc::new(vault.open()), Box::new(host), Policy::default());
    let shown = previewed(&mut toolbox, &command_plan("retry"), &Value::Null).unwrap();
    let done = ran(&mut toolbox, &shown).unwrap();
    assert_eq!((done.status, run.lock().unwrap().len()), (RunStatus::Failed, 1));
}

#[test]
fn a_command_that_ran_is_reported_and_logged_if_the_files_are_rolled_back() {
    let vault = TestVault::new("//- a.md\none\n");
    let host = LiveHost { writes: Some(("a.md", "sorted\n")), ..LiveHost::new(&vault, 0) };
    let mut toolbox = Toolbox::new(std::sync::Arc::new(vault.open()), Box::new(host), Policy::default());
    let mut plan = command_plan("stop");
    // The command has changed the note of which the preview knows the text.
    plan["steps"][2] = json!({
        "id": "two", "tool": "append_to_note", "args": { "path": "a.md", "content": "two" }, "dependsOn": ["sort"],
    });
    plan["steps"].as_array_mut().unwrap().pop();
    let request = ChangeRequest::Plan { plan, parameters: Map::new() };
    let prepared = request.prepare(&mut toolbox, &now(), Cancel::default()).unwrap();
    let approved = settle(prepared, &Grants::default(), &mut seen).unwrap();
    let error = approved.carry_out(&mut toolbox, Cancel::default(), &mut |_| {}).unwrap().done().unwrap_err();
    let said = "CONFLICT: a.md: step two: action 2 of 2 failed, and everything was rolled back: changed since it was read \
                (no file was changed by the plan; it ran the command app:sort, which cannot be undone)";
    assert_eq!(error.to_string(), said);
    assert_eq!((vault.read("a.md").as_str(), vault.root().join("1.md").exists()), ("sorted\n", false));
    let log = read_log(toolbox.vault().state()).unwrap();
    let logged: Vec<(&str, bool)> = log.iter().map(|record| (record.tool.as_str(), record.error.is_none())).collect();
    assert_eq!(logged, [("commands.run", true), ("append_to_note", false)]);
}

#[test]
fn a_failed_command_stops_the_plan_and_what_was_done_stays() {
    let vault = TestVault::new("//- a.md\none\n");
    let before = vault.tree();
    let (mut toolbox, _) = with_live_host(&vault, 9);
    let shown = previewed(&mut toolbox, &command_plan("stop"), &Value::Null).unwrap();
    let done = ran(&mut toolbox, &shown).unwrap();
    assert_eq!((done.status, done.failed.as_ref().map(|(step, _)| step.as_str())), (RunStatus::Failed, Some("sort")));
    assert!(vault.root().join("1.md").exists() && !vault.root().join("2.md").exists());
    toolbox.vault().undo(done.transaction, Force::No).unwrap();
    assert_same(&vault.tree(), &before, "after undo");
    let mut unknown = command_plan("stop");
    unknown["steps"][1]["args"]["id"] = json!("app:none");
    let (_, error) = previewed(&mut toolbox, &unknown, &Value::Null).unwrap().stops.unwrap();
    assert!(error.to_string().contains("there is no command `app:none`"), "{error}");
    let mut alone = command_plan("skip");
    alone["steps"][2]["dependsOn"] = json!([]);
    let shown = previewed(&mut toolbox, &alone, &Value::Null).unwrap();
    let done = ran(&mut toolbox, &shown).unwrap();
    assert_eq!((done.status, done.outputs["sort"]["executed"].clone()), (RunStatus::Done, json!(false)));
}

#[test]
fn time_runs_out() {
    let vault = TestVault::new("//- a.md\none\n");
    let mut toolbox = vault.toolbox();
    let plan = writing(json!([{ "id": "s", "tool": "vault.searchText", "args": { "query": "one" } }]));
    let checked = validate(&plan, &toolbox).unwrap();
    let error =
        dry_run(&mut toolbox, &checked, &Parameters::default(), Cancel::default().until(std::time::Instant::now()))
            .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
}

#[test]
fn commands_are_denied_by_their_ids() {
    let vault = TestVault::new("//- a.md\none\n");
    let settings = |allowed: &[&str], denied: &[&str]| {
        let mut settings = PolicySettings::default();
        settings.allowed_commands = allowed.iter().map(ToString::to_string).collect();
        settings.denied_commands = denied.iter().map(ToString::to_string).collect();
        settings.compile().unwrap()
    };
    // Ids are no paths: some plugins put the path of a note into them.
    let of_note = "templater:Daily/Note.md";
    for (command, policy, is_permitted) in [
        ("app:sort", settings(&[], &[]), true),
        ("app:sort", settings(&["app:sort"], &[]), true),
        ("app:sort", settings(&["editor:*"], &[]), false),
        ("app:sort", settings(&[], &["APP:*"]), false),
        ("app:sort", settings(&["app:*"], &["app:sort"]), false),
        (of_note, settings(&[], &["templater:*"]), false),
        (of_note, settings(&["templater:*"], &[]), true),
    ] {
        let host = LiveHost { command, ..LiveHost::new(&vault, 0) };
        let mut toolbox = Toolbox::new(std::sync::Arc::new(vault.open()), Box::new(host), policy);
        let list = toolbox.call("commands.list", json!({}), &mut seen).unwrap().value;
        assert_eq!(list["commands"].as_array().unwrap().len(), usize::from(is_permitted));
        let run = toolbox.call("commands.run", json!({ "id": command }), &mut seen);
        assert_eq!(run.as_ref().map_err(Error::kind).err(), (!is_permitted).then_some(ErrorKind::Denied), "{run:?}");
    }
    // An approval for a command that the settings have denied since does not run it.
    let (mut toolbox, _) = with_live_host(&vault, 0);
    let shown = previewed(&mut toolbox, &command_plan("stop"), &Value::Null).unwrap();
    let host = LiveHost::new(&vault, 0);
    let ran = std::sync::Arc::clone(&host.ran);
    let mut stricter = Toolbox::new(std::sync::Arc::new(vault.open()), Box::new(host), settings(&[], &["app:sort"]));
    let error = run_plan(&mut stricter, shown, &mut seen, Cancel::default(), &mut |_| {}).unwrap_err();
    assert_eq!((error.kind(), ran.lock().unwrap().len()), (ErrorKind::Denied, 0), "{error}");
    assert!(!vault.root().join("1.md").exists());
}

#[test]
fn a_file_that_the_host_does_not_show_is_not_reported_as_open() {
    let vault = TestVault::new("//- a.md\none\n");
    let mut toolbox = with_editing_host(&vault, true, |_, _| {});
    let output = toolbox.call("workspace.openFile", json!({ "path": "a.md" }), &mut seen).unwrap();
    assert_eq!(output.value, json!({ "path": "a.md", "opened": false }));
}

/// An editor that does with an edit of a file what a test says.
struct EditingHost {
    root: PathBuf,
    act: fn(&PathBuf, &str),
    /// Whether the host says in which state its editor is.
    responds: bool,
}

impl Host for EditingHost {
    fn name(&self) -> &str {
        "editing"
    }

    fn is_live(&self) -> bool {
        true
    }

    fn editor(&self) -> Result<Editor, Error> {
        match self.responds {
            true => Ok(Editor { active_file: Some(SafePath::new("a.md").unwrap()), ..Editor::default() }),
            false => Err(Error::new(ErrorKind::TimedOut, "no response")),
        }
    }

    fn open(&mut self, _: &SafePath, _: Leaf, _: Option<u32>) -> Result<bool, Error> {
        Ok(false)
    }

    fn commands(&self) -> Result<Vec<HostCommand>, Error> {
        Ok(Vec::new())
    }

    fn run_command(&mut self, _: &str) -> Result<(), Error> {
        Ok(())
    }

    fn open_editors(&self) -> Option<Box<dyn OpenEditors>> {
        Some(Box::new(FileEditor { root: self.root.clone(), act: self.act }))
    }
}

struct FileEditor {
    root: PathBuf,
    act: fn(&PathBuf, &str),
}

impl OpenEditors for FileEditor {
    fn replace(&mut self, path: &SafePath, before: &str, after: &str) {
        let file = self.root.join(path.as_str());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), before);
        (self.act)(&file, after);
    }
}

fn with_editing_host(vault: &TestVault, responds: bool, act: fn(&PathBuf, &str)) -> Toolbox {
    let host = EditingHost { root: vault.root(), act, responds };
    Toolbox::new(std::sync::Arc::new(vault.open()), Box::new(host), Policy::default())
}

#[test]
fn an_edit_that_an_editor_makes_is_recorded_by_its_content() {
    let saves: fn(&PathBuf, &str) = |file, after| {
        // Written in place, as editors do: the file stays the same one.
        std::fs::write(file, after).unwrap();
        std::fs::write(file.with_extension("seen"), "").unwrap();
    };
    let ignores: fn(&PathBuf, &str) = |_, _| {};
    for (act, is_edited) in [(saves, true), (ignores, false)] {
        let vault = TestVault::new("//- a.md\none\n");
        let mut toolbox = with_editing_host(&vault, true, act);
        let args = json!({ "path": "a.md", "content": "two" });
        let done = toolbox.call("append_to_note", args.clone(), &mut seen).unwrap();
        assert_eq!(vault.read("a.md"), "one\n\ntwo\n");
        assert_eq!(vault.root().join("a.seen").exists(), is_edited);
        let step = json!([{ "id": "s", "tool": "append_to_note", "args": args }]);
        let shown = previewed(&mut toolbox, &writing(step), &Value::Null).unwrap();
        let plan = run_plan(&mut toolbox, shown, &mut seen, Cancel::default(), &mut |_| {}).unwrap();
        assert_eq!(vault.read("a.md"), "one\n\ntwo\n\ntwo\n");
        for undone in [plan.transaction, done.transaction] {
            toolbox.vault().undo(undone, Force::No).unwrap();
        }
        assert_eq!(vault.read("a.md"), "one\n");
    }
}

#[test]
fn an_editor_that_writes_something_else_reverts_the_change_and_keeps_its_text() {
    let vault = TestVault::new("//- a.md\none\n//- b.md\none\n");
    let mut toolbox = with_editing_host(&vault, true, |file, after| match file.ends_with("b.md") {
        true => std::fs::write(file, "typed\n").unwrap(),
        false => std::fs::write(file, after).unwrap(),
    });
    let append = |id: &str| json!({ "id": id, "tool": "append_to_note", "args": { "path": format!("{id}.md"), "content": "x" } });
    let shown = previewed(&mut toolbox, &writing(json!([append("a"), append("b")])), &Value::Null).unwrap();
    let error = run_plan(&mut toolbox, shown, &mut seen, Cancel::default(), &mut |_| {}).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    assert_eq!((vault.read("a.md"), vault.read("b.md")), ("one\n".to_owned(), "typed\n".to_owned()));
    assert!(
        toolbox.vault().transactions().unwrap().iter().all(|info| info.status != vault_tools::TransactionStatus::Done)
    );
}

#[test]
fn only_calls_that_need_the_editor_fail_while_it_does_not_respond() {
    let vault = TestVault::new("//- a.md\none\n");
    let mut toolbox = with_editing_host(&vault, false, |_, _| {});
    toolbox.call("read_note", json!({ "path": "a.md" }), &mut seen).unwrap();
    toolbox.call("append_to_note", json!({ "path": "a.md", "content": "two" }), &mut seen).unwrap();
    for (content, needs_editor) in [("three", false), ("${selection}", true)] {
        let step = json!([{ "id": "s", "tool": "append_to_note", "args": { "path": "a.md", "content": content } }]);
        let request = ChangeRequest::Plan { plan: writing(step), parameters: Map::new() };
        let prepared = request.prepare(&mut toolbox, &now(), Cancel::default()).map(drop);
        assert_eq!(
            prepared.map_err(|error| error.kind()).err(),
            needs_editor.then_some(ErrorKind::TimedOut),
            "{content}"
        );
    }
    for tool in ["editor.getSelection", "editor.getActiveFilePath", "workspace.getContext"] {
        let error = toolbox.call(tool, json!({}), &mut seen).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut, "{tool}: {error}");
    }
}
