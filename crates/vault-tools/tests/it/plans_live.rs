//! Plans whose steps run commands of an editor.

use std::path::PathBuf;

use serde_json::{Value, json};
use vault_tools::approval::run_plan;
use vault_tools::plan::{Event, Parameters, RunStatus, preview, validate};
use vault_tools::{Cancel, Editor, Error, ErrorKind, Force, Host, HostCommand, Leaf, Policy, SafePath, Toolbox};

use crate::plans::{previewed, ran, writing};
use crate::vault::{TestVault, assert_same, seen};

/// A program around the vault whose command fails as often as it is told to.
struct LiveHost {
    failures: u32,
    ran: std::sync::Arc<std::sync::Mutex<Vec<String>>>,
    root: PathBuf,
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

    fn open(&mut self, path: &SafePath, _: Leaf) -> Result<bool, Error> {
        self.ran.lock().unwrap().push(format!("open {path}"));
        Ok(true)
    }

    fn commands(&self) -> Result<Vec<HostCommand>, Error> {
        Ok(vec![HostCommand { id: "app:sort".into(), name: "Sort".into() }])
    }

    fn run_command(&mut self, id: &str) -> Result<(), Error> {
        let there: Vec<bool> = ["1.md", "2.md"].iter().map(|name| self.root.join(name).exists()).collect();
        self.ran.lock().unwrap().push(format!("{id} {there:?}"));
        match self.failures.checked_sub(1) {
            Some(left) => {
                self.failures = left;
                Err(Error::new(ErrorKind::Io, "busy"))
            }
            None => Ok(()),
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
    let ran = std::sync::Arc::default();
    let host = LiveHost { failures, ran: std::sync::Arc::clone(&ran), root: vault.root() };
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
        preview(&mut toolbox, &checked, &Parameters::default(), Cancel::default().until(std::time::Instant::now()))
            .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
}
