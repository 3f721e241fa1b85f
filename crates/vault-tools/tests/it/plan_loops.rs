//! Conditions and loops of plans: what a preview says of them, and what it says where there is no editor.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use vault_tools::approval::{Approver, AutoApprover, HeadlessApprover, run_plan};
use vault_tools::plan::{Event, RunStatus, StepState, validate};
use vault_tools::{
    Approval, Cancel, Editor, ErrorKind, Force, Headless, IndexUse, Leaf, Macros, Policy, PolicySettings, Position,
    Risk, SafePath, SaveOptions, Selection, Span, Toolbox, Vault, VaultOptions, log_stats, read_log,
};

use crate::plans::{previewed, ran, writing};
use crate::vault::{TestVault, assert_same, seen};

fn newest(steps: Value) -> Value {
    let mut plan = writing(steps);
    plan["version"] = "1.1".into();
    plan
}

#[test]
fn a_preview_says_what_conditions_leave_out_and_why() {
    let vault =
        TestVault::new("//- F/a.md\n---\nstatus: done\n---\n//- F/b.md\nx\n//- F/c.md\n---\nstatus: open\n---\n");
    let mut toolbox = vault.toolbox();
    let plan = newest(json!([
        { "id": "list", "tool": "vault.listFiles", "args": { "prefix": "F" } },
        { "id": "meta", "tool": "get_note_metadata", "foreach": { "from": "$steps.list.items" }, "args": { "path": "${item.path}" } },
        {
            "id": "move", "tool": "vault.rename", "args": { "fromPath": "${m.path}", "toPath": "Done/${loop.padded} ${m.basename}.md" },
            "foreach": {
                "from": "$steps.meta.items", "itemName": "m", "filter": { "value": "${m.frontmatter.status}", "equals": "done" }
            }
        },
        {
            "id": "none", "tool": "vault.ensureFolder", "args": { "path": "${item.path}" },
            "foreach": { "from": "$steps.list.items", "filter": { "value": "${item.kind}", "equals": "folder" } }
        },
        { "id": "empty", "tool": "vault.ensureFolder", "args": { "path": "${item}" }, "foreach": { "from": [] } },
        {
            "id": "log", "tool": "vault.createFile", "args": { "path": "Log.md", "content": "" },
            "if": { "value": "$steps.move.count", "equals": 3 }
        }
    ]));
    let preview = previewed(&mut toolbox, &plan, &Value::Null).unwrap();
    let moved = &preview.steps[2];
    let filtered: Vec<String> =
        moved.filtered.iter().map(|item| format!("{} {}: {}", item.item, item.what, item.reason)).collect();
    assert_eq!(
        filtered,
        [
            "2 F/b.md: ${m.frontmatter.status} has no value; it must be \"done\"",
            "3 F/c.md: ${m.frontmatter.status} is \"open\"; it must be \"done\"",
        ]
    );
    assert_eq!((moved.calls.len(), moved.left_out.len()), (1, 0));
    assert_eq!(
        preview.notices,
        [
            "the step move: its loop takes 1 of 3 items",
            "the step none: its loop takes none of 3 items, so that there is nothing to do",
            "the step empty: its list is empty, so that there is nothing to do",
        ]
    );
    let StepState::Skipped { reason } = &preview.steps[5].state else { panic!("{:?}", preview.steps[5]) };
    assert_eq!(reason, "its condition does not hold: $steps.move.count is 1; it must be 3");
    let done = ran(&mut toolbox, &preview).unwrap();
    assert_eq!((done.status, done.notices.len(), done.skipped.len()), (RunStatus::Done, 3, 1));
    assert!(vault.root().join("Done/01 a.md").exists() && !vault.root().join("Log.md").exists());
}

/// Positions are those of the list, whatever the filter takes; numbers are those of the calls.
#[test]
fn an_item_that_fails_is_named_as_the_list_has_it() {
    let vault = TestVault::new("//- a.md\nx\n//- b.md\nx\n//- c.md\nx\n");
    let mut toolbox = vault.toolbox();
    let mut plan = newest(json!([{
        "id": "edit", "tool": "edit_note", "args": { "path": "${item}.md", "old_text": "x", "new_text": "${loop.number}" },
        "foreach": { "from": ["a", "b", "none", "c"], "filter": { "value": "${item}", "equals": "a", "not": true } }
    }]));
    let error = previewed(&mut toolbox, &plan, &Value::Null).unwrap_err().to_string();
    assert!(error.contains("item 3 of 4"), "{error}");
    plan["steps"][0]["onError"] = "skip".into();
    let preview = previewed(&mut toolbox, &plan, &Value::Null).unwrap();
    assert_eq!((preview.steps[0].left_out[0].item, preview.steps[0].left_out[0].what.as_str()), (3, "none"));
    ran(&mut toolbox, &preview).unwrap();
    assert_eq!((vault.read("b.md"), vault.read("c.md")), ("1\n".to_string(), "3\n".to_string()));
}

/// A note that is found several times is changed once.
#[test]
fn a_loop_takes_each_note_once() {
    let vault = TestVault::new("//- a.md\nx\nx\n//- b.md\nx\n");
    let mut toolbox = vault.toolbox();
    let mut plan = newest(json!([
        { "id": "find", "tool": "vault.searchText", "args": { "query": "x" } },
        {
            "id": "add", "tool": "append_to_note", "args": { "path": "${item.path}", "content": "${loop.number}" },
            "foreach": { "from": "$steps.find.matches", "unique": "${item.path}" }
        }
    ]));
    let preview = previewed(&mut toolbox, &plan, &Value::Null).unwrap();
    let [twice] = &preview.steps[1].filtered[..] else { panic!("{:?}", preview.steps[1].filtered) };
    assert_eq!((twice.item, twice.reason.as_str()), (2, "${item.path} is the same as that of item 1"));
    ran(&mut toolbox, &preview).unwrap();
    assert_eq!((vault.read("a.md"), vault.read("b.md")), ("x\nx\n\n1\n".to_string(), "x\n\n2\n".to_string()));
    plan["version"] = "1.0".into();
    plan["steps"][1]["foreach"]["unique"] = "path".into();
    let invalid = validate(&plan, &toolbox).unwrap_err().to_string();
    assert!(
        invalid.contains("/steps/1/foreach/unique: this needs") && invalid.contains("always the same"),
        "{invalid}"
    );
}

#[test]
fn parameters_of_conditions_and_lists_are_those_of_a_macro() {
    let vault = TestVault::new("//- a.md\nx\n");
    let toolbox = vault.toolbox();
    let plan = newest(json!([{
        "id": "make", "tool": "vault.ensureFolder", "args": { "path": "${item}" },
        "if": { "value": "${really}", "equals": "${word}" },
        "foreach": { "from": ["${first}", "x"], "filter": { "value": "${item}", "contains": "${part}" } }
    }]));
    let options = SaveOptions::default().allow_untried();
    let saved = Macros::new(toolbox.vault().state()).save(&toolbox, "m", &plan, &options).unwrap();
    let names: Vec<&str> = saved.parameters.iter().map(|parameter| parameter.name.as_str()).collect();
    assert_eq!(names, ["first", "part", "really", "word"]);
}

/// What was meant as a reference and is none goes on as before, and is said.
#[test]
fn a_reference_without_braces_within_a_text_is_a_notice() {
    let vault = TestVault::new("//- a.md\nx\n");
    let mut toolbox = vault.toolbox();
    let plan = writing(json!([
        { "id": "e", "tool": "vault.searchText", "args": { "query": "x" } },
        { "id": "w", "tool": "vault.createFile", "args": { "path": "b.md", "content": "First: $steps.e.matches, $steps.f.x" } }
    ]));
    let checked = validate(&plan, &toolbox).unwrap();
    let notice = "/steps/1/args/content: `$steps.e.matches` stays as it is written; its value is ${$steps.e.matches}";
    assert_eq!(checked.notices, [notice]);
    let preview = previewed(&mut toolbox, &plan, &Value::Null).unwrap();
    assert_eq!(preview.notices, [notice]);
    ran(&mut toolbox, &preview).unwrap();
    assert_eq!(vault.read("b.md"), "First: $steps.e.matches, $steps.f.x");
}

/// An issue of a loop hides no other and makes none up.
#[test]
fn the_names_of_a_malformed_loop_stay_bound() {
    let vault = TestVault::new("//- a.md\nx\n");
    let plan = newest(json!([{
        "id": "make", "tool": "vault.ensureFolder", "args": { "path": "${n.path}/${i}", "recursive": true },
        "foreach": { "from": 3, "itemName": "n", "indexName": "i" }
    }]));
    let invalid = validate(&plan, &vault.toolbox()).unwrap_err().to_string();
    assert_eq!(invalid.lines().count(), 2, "{invalid}");
    assert!(invalid.contains("/steps/0/foreach/from: ") && invalid.contains("/steps/0/args/recursive: "), "{invalid}");
}

/// The rest of the plan is previewed, and runs if the step may be skipped.
#[test]
fn a_command_without_an_editor_blocks_the_run_and_not_the_preview() {
    let vault = TestVault::new("//- a.md\nx\n");
    let mut toolbox = vault.toolbox();
    let mut plan = json!({
        "version": "1.0", "goal": "commands", "riskLevel": "commands",
        "steps": [
            { "id": "make", "tool": "vault.createFile", "args": { "path": "b.md", "content": "" } },
            { "id": "sort", "tool": "commands.run", "args": { "id": "app:sort" } },
            { "id": "after", "tool": "vault.createFile", "args": { "path": "c.md", "content": "" }, "dependsOn": ["sort"] },
            { "id": "show", "tool": "workspace.openFile", "args": { "path": "b.md" }, "dependsOn": ["make"] }
        ]
    });
    let preview = previewed(&mut toolbox, &plan, &Value::Null).unwrap();
    assert_eq!(preview.preview().files.len(), 1);
    let blocked = preview.blocked.as_ref().unwrap();
    assert!(blocked.kind() == ErrorKind::Unsupported && blocked.to_string().contains("app:sort"), "{blocked}");
    assert!(matches!(&preview.steps[1].state, StepState::Skipped { reason } if reason.contains("no editor")));
    assert!(
        matches!(&preview.steps[2].state, StepState::Skipped { reason } if reason.contains("depends on the step sort"))
    );
    assert!(preview.notices[0].contains("the plan cannot run here: the step sort"), "{:?}", preview.notices);
    assert_eq!(preview.notices[1], "the step show: b.md is not shown, because that needs an editor");
    assert_eq!(preview.risk, Risk::Command);
    assert_eq!(ran(&mut toolbox, &preview).unwrap_err().kind(), ErrorKind::Unsupported);
    assert!(!vault.root().join("b.md").exists());
    // The log has the step that failed, as what it is, and nothing of the others.
    let log = read_log(toolbox.vault().state()).unwrap();
    let logged: Vec<_> = log.iter().map(|record| (record.tool.as_str(), record.decision)).collect();
    assert_eq!(logged, [("commands.run", Approval::Allowed)]);
    assert!(log[0].error.as_deref().unwrap().contains("the step sort"));
    plan["steps"][1]["onError"] = "skip".into();
    let preview = previewed(&mut toolbox, &plan, &Value::Null).unwrap();
    assert!(preview.blocked.is_none());
    let done = ran(&mut toolbox, &preview).unwrap();
    assert_eq!((done.status, done.skipped.len()), (RunStatus::Done, 2));
    assert!(vault.root().join("b.md").exists() && !vault.root().join("c.md").exists());
}

/// A step that fails in the preview, and only there, ends the plan before it: what comes before runs if a person has seen
/// that.
#[test]
fn a_plan_runs_up_to_the_step_that_fails_if_a_person_approves_it() {
    let vault = TestVault::new("//- a.md\nx\n");
    let settings: PolicySettings = serde_json::from_value(json!({ "confirm_writes": false })).unwrap();
    let mut toolbox = vault.toolbox_with(Editor::default(), &settings);
    let create = |id: &str, after: &[&str]| json!({ "id": id, "tool": "vault.createFile", "args": { "path": format!("{id}.md"), "content": "" }, "dependsOn": after });
    let read =
        json!({ "id": "read", "tool": "vault.readFile", "args": { "path": "missing.md" }, "dependsOn": ["one"] });
    let plan = writing(json!([create("one", &[]), read, create("two", &["read"]), create("three", &["one"])]));
    let before = vault.tree();
    let preview = previewed(&mut toolbox, &plan, &Value::Null).unwrap();
    let states: Vec<(&str, &StepState)> = preview.steps.iter().map(|step| (step.id.as_str(), &step.state)).collect();
    assert_eq!(states[0], ("one", &StepState::Ready));
    assert!(matches!(states[1], ("read", StepState::Fails { reason }) if reason.contains("missing.md")), "{states:?}");
    for (id, state) in &states[2..] {
        assert!(matches!(state, StepState::Skipped { reason } if reason == "the plan stops at the step read"), "{id}");
    }
    assert!(
        preview.notices[0].starts_with("the plan stops at the step read (vault.readFile): Note not found: missing.md"),
        "{:?}",
        preview.notices
    );
    assert_eq!(preview.preview().files.len(), 1);

    // Not even where the settings allow what it does.
    for approver in [&mut AutoApprover as &mut dyn Approver, &mut HeadlessApprover] {
        let refused = run_plan(&mut toolbox, preview.clone(), approver, Cancel::default(), &mut |_| {});
        refused.unwrap_err();
        assert_same(&vault.tree(), &before, "unseen");
    }
    let done = ran(&mut toolbox, &preview).unwrap();
    let (step, error) = done.failed.unwrap();
    assert_eq!((done.status, step.as_str(), error.kind()), (RunStatus::Failed, "read", ErrorKind::NotFound));
    assert!(vault.root().join("one.md").exists() && !vault.root().join("three.md").exists());
    toolbox.vault().undo(done.transaction, Force::No).unwrap();
    assert_same(&vault.tree(), &before, "undone");

    // Where nothing comes before it, there is nothing to approve.
    let alone = writing(
        json!([{ "id": "read", "tool": "vault.readFile", "args": { "path": "missing.md" } }, create("two", &["read"])]),
    );
    assert_eq!(previewed(&mut toolbox, &alone, &Value::Null).unwrap_err().kind(), ErrorKind::NotFound);
}

/// A plan waits for another process that changes the vault as often as its steps say.
#[test]
fn a_busy_vault_is_tried_again() {
    let vault = TestVault::new("//- a.md\nx\n");
    let state = vault.open().state().folder().to_owned();
    let options = VaultOptions::new().state_folder(&state).use_index(IndexUse::Scan).wait(Duration::ZERO);
    let hasty = Arc::new(Vault::open(vault.root(), options).unwrap());
    let mut toolbox = Toolbox::new(hasty, Box::new(Headless::default()), Policy::default());
    let plan = |on_error: &str| {
        writing(json!([{
            "id": "one", "tool": "vault.createFile", "args": { "path": "b.md", "content": "" }, "onError": on_error,
            "retry": { "maxAttempts": 10, "backoffMs": 1 }
        }]))
    };
    std::fs::create_dir_all(&state).unwrap();
    let lock = std::fs::File::options().create(true).append(true).open(state.join("lock")).unwrap();
    lock.lock().unwrap();
    let mut attempts = Vec::new();
    let mut run = |on_error: &str, events: &mut dyn FnMut(&Event)| {
        let preview = previewed(&mut toolbox, &plan(on_error), &Value::Null).unwrap();
        run_plan(&mut toolbox, preview, &mut seen, Cancel::default(), events)
    };
    assert_eq!(run("stop", &mut |_| {}).unwrap_err().kind(), ErrorKind::Busy);
    let done = run("retry", &mut |event| {
        if let Event::StepFailed { error, attempt, will_retry, .. } = event {
            attempts.push((error.kind(), *attempt, *will_retry));
            if *attempt == 2 {
                lock.unlock().unwrap();
            }
        }
    });
    assert_eq!(done.unwrap().status, RunStatus::Done);
    assert_eq!(attempts, [(ErrorKind::Busy, 1, true), (ErrorKind::Busy, 2, true)]);
    assert!(vault.root().join("b.md").exists());
}

/// The selection is replaced by links to the notes that were made of it, in one step.
#[test]
fn a_selection_is_replaced_by_links() {
    let vault = TestVault::new("//- Inbox.md\n* Alpha\n* **Beta** #tag\n\nrest\n");
    let mut editor = Editor::default();
    editor.show(&SafePath::new("Inbox.md").unwrap(), Leaf::Current);
    let span = Span { from: Position { line: 0, ch: 0 }, to: Position { line: 1, ch: 15 } };
    editor.selection = Some(Selection { text: "* Alpha\n* **Beta** #tag".into(), span: Some(span) });
    let mut toolbox = vault.toolbox_with(editor, &PolicySettings::default());
    let mut plan = creating("${selection}", json!({}));
    plan["version"] = "1.1".into();
    plan["steps"][1]["args"]["path"] = "Projects/${item.name}.md".into();
    let links = json!({ "links": "$steps.make.items[*].path" });
    plan["steps"]
        .as_array_mut()
        .unwrap()
        .push(json!({ "id": "link", "tool": "editor.replaceSelection", "args": links }));
    let preview = previewed(&mut toolbox, &plan, &Value::Null).unwrap();
    assert_eq!(preview.notices, [""; 0]);
    ran(&mut toolbox, &preview).unwrap();
    assert_eq!(vault.read("Inbox.md"), "* [[Alpha]]\n* [[Beta]]\n\nrest\n");
    for args in [json!({}), json!({ "text": "x", "links": ["Inbox.md"] })] {
        let error = toolbox.call("editor.replaceSelection", args, &mut seen).unwrap_err();
        assert!(error.to_string().contains("either text or links is wanted"), "{error}");
    }
}

/// Each step of a plan has its own time, and a loop counts as its calls.
#[test]
fn the_log_has_the_time_and_the_calls_of_each_step() {
    let vault = TestVault::new("//- a.md\nx\n");
    let mut toolbox = vault.toolbox();
    let bullets: String = (0..60).map(|number| format!("- n{number}\n")).collect();
    let mut plan = creating(&bullets, json!({}));
    let late = json!({ "id": "late", "tool": "vault.createFile", "args": { "path": "z.md", "content": "" }, "dependsOn": ["make"] });
    plan["steps"].as_array_mut().unwrap().push(late);
    let began = Instant::now();
    let preview = previewed(&mut toolbox, &plan, &Value::Null).unwrap();
    ran(&mut toolbox, &preview).unwrap();
    let took = began.elapsed().as_millis();
    let log = read_log(toolbox.vault().state()).unwrap();
    let calls: Vec<_> = log.iter().map(|record| (record.tool.as_str(), record.calls)).collect();
    assert_eq!(calls, [("util.parseMarkdownBullets", 1), ("vault.createFile", 60), ("vault.createFile", 1)]);
    assert!(log.iter().map(|record| u128::from(record.duration_ms)).sum::<u128>() <= took, "{log:?} {took}");
    let stats = log_stats(&log);
    assert_eq!((stats[1].tool.as_str(), stats[1].calls), ("vault.createFile", 61));
}

/// A loop over many notes does what can be done, names the rest, and is undone as one.
#[test]
fn a_loop_goes_on_past_items_that_fail() {
    let notes: BTreeMap<String, Vec<u8>> = (0..1000)
        .map(|number| {
            let frontmatter = if number % 70 == 9 { "tags: [a\n" } else { "tags: a\n" };
            (format!("N/{number:04}.md"), format!("---\n{frontmatter}---\n").into_bytes())
        })
        .collect();
    let vault = TestVault::of(&notes);
    let before = vault.tree();
    let mut toolbox = vault.toolbox();
    let plan = json!({
        "version": "1.0", "goal": "a status for all", "riskLevel": "writes",
        "steps": [
            { "id": "list", "tool": "vault.listFiles", "args": { "prefix": "N", "limit": 1000 } },
            { "id": "set", "tool": "update_frontmatter", "foreach": { "from": "$steps.list.items", "itemName": "n" },
              "args": { "path": "${n.path}", "updates": { "status": "done" } }, "onError": "skip" },
            { "id": "log", "tool": "vault.createFile", "args": { "path": "Log.md", "content": "${$steps.set.count} done" } }
        ]
    });
    let preview = previewed(&mut toolbox, &plan, &Value::Null).unwrap();
    let set = &preview.steps[1];
    assert_eq!((set.calls.len(), set.left_out.len()), (985, 15));
    assert_eq!((set.left_out[0].item, set.left_out[0].what.as_str()), (10, "N/0009.md"));
    assert!(set.left_out[0].reason.contains("YAML"), "{}", set.left_out[0].reason);
    let done = ran(&mut toolbox, &preview).unwrap();
    assert_eq!((done.status, done.left_out.len()), (RunStatus::Done, 15));
    assert_eq!((vault.read("Log.md").as_str(), vault.read("N/0009.md").contains("status")), ("985 done", false));
    toolbox.vault().undo(None, Force::No).unwrap();
    assert_same(&vault.tree(), &before, "undone");
    let mut strict = plan.clone();
    strict["steps"][1]["onError"] = "stop".into();
    assert!(previewed(&mut toolbox, &strict, &Value::Null).unwrap_err().to_string().contains("item 10 of 1000"));
}

/// A plan that works on a part of a list is told so before it runs.
#[test]
fn a_list_that_was_cut_is_a_notice() {
    let vault = TestVault::new("//- a.md\nx\n//- b.md\nx x\n//- c.md\nx\n");
    let mut toolbox = vault.toolbox();
    let plan = json!({
        "version": "1.0", "goal": "look", "riskLevel": "read-only",
        "steps": [
            { "id": "list", "tool": "vault.listFiles", "args": { "limit": 2 } },
            { "id": "find", "tool": "vault.searchText", "args": { "query": "x", "limit": 2, "offset": 1 } }
        ]
    });
    let preview = previewed(&mut toolbox, &plan, &Value::Null).unwrap();
    let cut = [
        "the step list: the list was cut at 2 entries; offset 2 goes on",
        "the step find: the matches were cut at 2; offset 3 goes on",
    ];
    assert_eq!(preview.notices, cut);
    assert_eq!(preview.steps[1].output["matches"][0]["path"], "b.md");
    let mut last = None;
    let mut tell = |event: &Event| last = Some(event.clone());
    let done = run_plan(&mut toolbox, preview.clone(), &mut seen, Cancel::default(), &mut tell).unwrap();
    assert_eq!(done.notices, cut);
    assert!(matches!(last, Some(Event::RunFinished { notices, .. }) if notices == cut));
}

/// A loop that creates `${item.text}.md` for each bullet.
fn creating(bullets: &str, more: Value) -> Value {
    let mut make = json!({
        "id": "make", "tool": "vault.createFile", "foreach": { "from": "$steps.parse.items" },
        "args": { "path": "${item.text}.md", "content": "made" }
    });
    make.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    writing(json!([{ "id": "parse", "tool": "util.parseMarkdownBullets", "args": { "text": bullets } }, make]))
}

/// An index of the notes that a plan makes: the list is joined, an empty item makes no note, and a link to a name that
/// became another one is told.
#[test]
fn the_links_of_an_index_are_joined_and_dead_ones_are_named() {
    let vault = TestVault::new("//- Log.md\nsee [[Nowhere]]\n");
    let mut toolbox = vault.toolbox();
    let plan = |index: Value| {
        let bullets = "- Alpha\n- **two** [[a|x]] #tag ^id\n- \n";
        let mut plan = creating(bullets, json!({}));
        plan["version"] = "1.1".into();
        plan["steps"][1]["args"]["path"] = "${item.name}.md".into();
        plan["steps"].as_array_mut().unwrap().push(index);
        plan
    };
    let written = |text: &str| json!({ "id": "index", "tool": "vault.writeFile", "args": { "path": "Log.md", "content": text, "mode": "append" } });

    let joined = plan(written(r#"- ${$steps.parse.items[*].name|join:"\n- "}"#));
    let preview = previewed(&mut toolbox, &joined, &Value::Null).unwrap();
    assert_eq!(preview.notices, [""; 0]);
    ran(&mut toolbox, &preview).unwrap();
    assert_eq!(vault.read("Log.md"), "see [[Nowhere]]\n- Alpha\n- two x\n");
    assert!(!vault.root().join("-.md").exists() && vault.root().join("two x.md").exists());

    let mut linked = plan(json!({
        "id": "index", "tool": "vault.writeFile", "foreach": { "from": "$steps.parse.items" },
        "args": { "path": "Log.md", "content": "- [[${item.text}]]", "mode": "append" }
    }));
    linked["steps"][1]["args"]["path"] = "New/${item.name}.md".into();
    let preview = previewed(&mut toolbox, &linked, &Value::Null).unwrap();
    assert_eq!(preview.notices, ["Log.md: no file is there for [[a|x]]"]);

    let json = plan(written("Links: ${$steps.parse.items[*].name}"));
    let preview = previewed(&mut toolbox, &json, &Value::Null).unwrap();
    let told = "the step index: `$steps.parse.items[*].name` is written as JSON; for the entries of a list as text, write \
                ${$steps.parse.items[*].name|join:\", \"}";
    assert!(preview.notices.iter().any(|notice| notice == told), "{:?}", preview.notices);

    for (text, error) in [
        ("${$steps.parse.count|join:\", \"}", "is a number, so nothing can be joined"),
        ("${$steps.parse.items|join:\", \"}", "has an object in it, which is not text"),
        ("${$steps.parse.items[*].name|join}", "write |join:"),
    ] {
        let refused = previewed(&mut toolbox, &plan(written(text)), &Value::Null).unwrap_err().to_string();
        assert!(refused.contains(error), "{refused}");
    }
}

/// A file that was there is left as it is, which is said; what the plan itself put there is never lost in silence.
#[test]
fn only_files_that_were_there_before_the_plan_are_left_as_they_are() {
    let vault = TestVault::new("//- n1.md\nold\n");
    let mut toolbox = vault.toolbox();
    let preview = previewed(&mut toolbox, &creating("- n1\n- n2", json!({})), &Value::Null).unwrap();
    assert_eq!(preview.notices, ["the step make: n1.md exists and is left unchanged"]);
    let create = |id: &str, text: &str, after: &str| json!({ "id": id, "tool": "vault.createFile", "args": { "path": "n1.md", "content": text }, "dependsOn": [after] });
    let rename = json!({ "id": "away", "tool": "vault.rename", "args": { "fromPath": "n1.md", "toPath": "old1.md" } });
    let plan = writing(json!([rename, create("first", "first", "away"), create("second", "SECOND", "first")]));
    let (step, error) = previewed(&mut toolbox, &plan, &Value::Null).unwrap().stops.unwrap();
    assert!(step == "second" && error.kind() == ErrorKind::Exists, "{error}");
}

/// The time is that of the step, so that no item is left out for it.
#[test]
fn a_loop_that_runs_out_of_time_is_skipped_as_a_whole() {
    let vault = TestVault::new("//- a.md\nx\n");
    let bullets: String = (0..400).map(|number| format!("- n{number}\n")).collect();
    let plan = creating(&bullets, json!({ "onError": "skip", "timeoutMs": 1 }));
    let preview = previewed(&mut vault.toolbox(), &plan, &Value::Null).unwrap();
    let make = &preview.steps[1];
    assert!(
        matches!(&make.state, StepState::Skipped { reason } if reason.contains("it took longer than allowed")),
        "{:?}",
        make.state
    );
    assert!(make.left_out.is_empty() && preview.actions().is_empty());
}

/// Items are named as the list has them, also if none can be done.
#[test]
fn every_item_that_is_left_out_is_named() {
    let vault = TestVault::new("//- a.md\nx\n//- b.md\nx\n//- taken.md\nx\n");
    let mut toolbox = vault.toolbox();
    let plan = writing(json!([
        { "id": "parse", "tool": "util.parseMarkdownBullets", "args": { "text": "- a\n- b" } },
        {
            "id": "move", "tool": "vault.rename", "foreach": { "from": "$steps.parse.items" }, "onError": "skip",
            "args": { "fromPath": "${item.text}.md", "toPath": "taken.md" }
        },
        {
            "id": "edit", "tool": "edit_note", "foreach": { "from": "$steps.parse.items" }, "onError": "skip",
            "args": { "path": "${item.text}.md", "old_text": "x", "new_text": "x" }
        },
        { "id": "log", "tool": "vault.createFile", "args": { "path": "Log.md", "content": "" } }
    ]));
    let preview = previewed(&mut toolbox, &plan, &Value::Null).unwrap();
    let mut skipped = Vec::new();
    let mut tell = |event: &Event| {
        if let Event::StepSkipped { step, left_out, .. } = event {
            skipped.push((step.clone(), left_out.len()));
        }
    };
    let done = run_plan(&mut toolbox, preview.clone(), &mut seen, Cancel::default(), &mut tell).unwrap();
    assert_eq!(skipped, [("move".to_owned(), 2), ("edit".to_owned(), 2)]);
    let told: Vec<String> =
        done.left_out.iter().map(|(id, item)| format!("{id} {}: {}", item.what, item.reason)).collect();
    let taken = "taken.md: a file or folder of this name exists";
    let same = "old_text and new_text are the same";
    let expected =
        [format!("move a: {taken}"), format!("move b: {taken}"), format!("edit a: {same}"), format!("edit b: {same}")];
    assert_eq!(told, expected);
}

/// The note is written once, however many items add to it; one that fails in between is left out all the same.
#[test]
fn a_loop_that_adds_to_one_note_changes_it_once() {
    let vault = TestVault::new("//- Log.md\n- 0\n");
    let before = vault.tree();
    let mut toolbox = vault.toolbox();
    let bullets: String = (1..=20).map(|item| format!("- {}\n", if item == 7 { "Missing" } else { "Log" })).collect();
    let plan = writing(json!([
        { "id": "items", "tool": "util.parseMarkdownBullets", "args": { "text": bullets } },
        { "id": "new", "tool": "vault.createFile", "args": { "path": "New.md", "content": "" } },
        { "id": "log", "tool": "append_to_note", "foreach": { "from": "$steps.items.items" }, "onError": "skip",
          "args": { "path": "${item.text}.md", "content": "- more" } },
        { "id": "list", "tool": "append_to_note", "foreach": { "from": "$steps.items.items" },
          "args": { "path": "New.md", "content": "- ${item.text}" } }
    ]));
    let preview = previewed(&mut toolbox, &plan, &json!({})).unwrap();
    assert_eq!(preview.actions().len(), 3, "one for each step");
    assert_eq!((preview.steps[2].calls.len(), preview.steps[2].left_out.len()), (19, 1));
    ran(&mut toolbox, &preview).unwrap();
    assert_eq!((vault.read("Log.md").matches("- more").count(), vault.read("New.md").lines().count()), (19, 20));
    toolbox.vault().undo(None, Force::No).unwrap();
    assert_same(&vault.tree(), &before, "undone");
}
