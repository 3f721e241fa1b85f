//! Plans: every scenario of `testdata/plans`, and what needs more than one run to be seen.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use vault_tools::approval::{Approver, AutoApprover, HeadlessApprover, run_plan};
use vault_tools::plan::{Event, Parameters, PlanPreview, PlanRun, RunStatus, StepState, dry_run, validate};
use vault_tools::{
    Approval, Cancel, Editor, Error, ErrorKind, Force, Leaf, PolicySettings, Position, SafePath, Selection, Span,
    Toolbox, read_log,
};

use crate::vault::{TestVault, assert_same, says_no, seen, tree};

/// Checks, previews and, if nothing is wrong, runs a plan.
pub(crate) fn previewed(toolbox: &mut Toolbox, plan: &Value, set: &Value) -> Result<PlanPreview, Error> {
    let checked = validate(plan, toolbox)?;
    let mut parameters = Parameters::of(&toolbox.editor()?, &toolbox.now());
    for (name, value) in set.as_object().into_iter().flatten() {
        parameters.set(name, value.clone());
    }
    dry_run(toolbox, &checked, &parameters, Cancel::default())
}

pub(crate) fn ran(toolbox: &mut Toolbox, preview: &PlanPreview) -> Result<PlanRun, Error> {
    run_plan(toolbox, preview.clone(), &mut seen, Cancel::default(), &mut |_| {})
}

/// What a scenario says about the editor, as the command line would.
fn editor(context: &Value, vault: &TestVault) -> Editor {
    let mut editor = Editor::default();
    if let Some(active) = context["activeFile"].as_str() {
        editor.show(&SafePath::new(active).unwrap(), Leaf::Current);
    }
    if let Some(text) = context["selection"].as_str() {
        editor.selection = Some(Selection { text: text.into(), span: None });
    }
    if let Some((file, lines)) = context["selectionFrom"].as_str().and_then(|text| text.rsplit_once(':')) {
        let (from, to) = lines.split_once('-').unwrap();
        let (from, to): (u32, u32) = (from.parse().unwrap(), to.parse().unwrap());
        let content = vault.read(file);
        let lines: Vec<&str> = content.lines().skip(from as usize - 1).take((to - from + 1) as usize).collect();
        let end = Position { line: to - 1, ch: lines.last().unwrap().encode_utf16().count() as u32 };
        editor.show(&SafePath::new(file).unwrap(), Leaf::Current);
        let span = Some(Span { from: Position { line: from - 1, ch: 0 }, to: end });
        editor.selection = Some(Selection { text: lines.join("\n"), span });
    }
    if let Some(cursor) = context["cursor"].as_array() {
        let at = |index: usize| cursor[index].as_u64().unwrap() as u32;
        editor.cursor = Some(Position { line: at(0), ch: at(1) });
    }
    editor
}

/// Everything in `part` is in `whole`.
fn holds(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(key, part)| whole.get(key).is_some_and(|whole| holds(whole, part)))
        }
        (Value::Array(whole), Value::Array(part)) => {
            whole.len() == part.len() && whole.iter().zip(part).all(|(whole, part)| holds(whole, part))
        }
        _ => whole == part,
    }
}

fn json_at(file: PathBuf) -> Value {
    std::fs::read_to_string(file).map_or(Value::Null, |text| serde_json::from_str(&text).unwrap())
}

fn scenario(folder: &Path) {
    let name = folder.file_name().unwrap().to_str().unwrap();
    let (plan, context) = (json_at(folder.join("plan.json")), json_at(folder.join("context.json")));
    let input = tree(&folder.join("input"));
    let vault = TestVault::of(&input);
    let mut policy: PolicySettings = match &context["policy"] {
        Value::Null => PolicySettings::default(),
        policy => serde_json::from_value(policy.clone()).unwrap(),
    };
    policy.allow_delete |= context["allowDelete"] == true;
    let mut toolbox = vault.toolbox_with(editor(&context, &vault), &policy);
    let preview = previewed(&mut toolbox, &plan, &context["set"]);
    assert_same(&vault.tree(), &input, &format!("{name}: the preview changed something"));

    if let Ok(refused) = std::fs::read_to_string(folder.join("refused.txt")) {
        // What comes before a step that fails runs only for who saw it.
        let unseen = |preview: PlanPreview, toolbox: &mut Toolbox| {
            run_plan(toolbox, preview, &mut AutoApprover, Cancel::default(), &mut |_| {})
        };
        let done = preview.and_then(|preview| match preview.stops {
            Some(_) => unseen(preview, &mut toolbox),
            None => ran(&mut toolbox, &preview),
        });
        assert_same(&vault.tree(), &input, &format!("{name}: something was done"));
        let error = done.err().unwrap_or_else(|| panic!("{name}: was not refused")).to_string();
        for line in refused.lines() {
            assert!(error.contains(line), "{name}: {line:?} is not in\n{error}");
        }
        return;
    }
    let preview = preview.unwrap_or_else(|error| panic!("{name}: {error}"));
    let done = ran(&mut toolbox, &preview).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!((done.status, &done.failed), (RunStatus::Done, &None), "{name}");
    let expected = tree(&folder.join("expected"));
    assert_same(&vault.tree(), &expected, &format!("{name}: after the run"));

    let outcome = json_at(folder.join("outcome.json"));
    let skipped: Vec<&String> = done.skipped.iter().map(|(step, _)| step).collect();
    let order: Vec<&String> = preview.steps.iter().map(|step| &step.id).collect();
    let found = json!({
        "risk": preview.risk, "outputs": done.outputs, "skipped": skipped, "order": order
    });
    assert!(outcome.is_null() || holds(&found, &outcome), "{name}: {outcome} is not in\n{found:#}");

    if done.transaction.is_none() {
        assert_same(&expected, &input, &format!("{name}: nothing was done"));
        return;
    }
    toolbox.vault().undo(None, Force::No).unwrap_or_else(|error| panic!("{name}: undo: {error}"));
    assert_same(&vault.tree(), &input, &format!("{name}: after undo"));
    toolbox.vault().redo(Force::No).unwrap_or_else(|error| panic!("{name}: redo: {error}"));
    assert_same(&vault.tree(), &expected, &format!("{name}: after redo"));
}

/// What a person gives may name folders, what a note says may not.
#[test]
fn a_given_parameter_can_be_a_folder_in_a_folder() {
    let vault = TestVault::new("//- a.md\nx\n");
    let plan = json!({
        "version": "1.0", "goal": "notes", "riskLevel": "writes",
        "steps": [
            { "id": "p", "tool": "util.parseMarkdownBullets", "args": { "text": "- one/two" } },
            { "id": "m", "tool": "vault.createFile", "foreach": { "from": "$steps.p.items", "itemName": "item" },
              "args": { "path": "${folderName}/${item.text}.md", "content": "" } }
        ]
    });
    let mut toolbox = vault.toolbox();
    let preview = previewed(&mut toolbox, &plan, &json!({ "folderName": "Projects/2026" })).unwrap();
    assert_eq!(preview.preview().files[0].path, "Projects/2026/one-two.md");
    for folder in ["../out", "/out", "a//b"] {
        let error = previewed(&mut toolbox, &plan, &json!({ "folderName": folder })).unwrap_err().to_string();
        assert!(error.contains("not a path within the vault"), "{error}");
    }
    // What would become another name is not used under it.
    for (folder, remedy) in [(".obsidian", "obsidian"), ("C:/x", "C-/x"), ("A\\B", "A-B")] {
        let error = previewed(&mut toolbox, &plan, &json!({ "folderName": folder })).unwrap_err().to_string();
        assert!(error.contains("which no path can have") && error.contains(&format!("write {remedy:?}")), "{error}");
    }
}

#[test]
fn a_list_is_no_part_of_a_path() {
    let vault = TestVault::new("//- a.md\n- x\n");
    let plan = json!({
        "version": "1.0", "goal": "junk", "riskLevel": "writes",
        "steps": [
            { "id": "p", "tool": "util.parseMarkdownBullets", "args": { "text": "- x" } },
            { "id": "m", "tool": "vault.createFile", "args": { "path": "N/${$steps.p.items}.md", "content": "" } }
        ]
    });
    let error = previewed(&mut vault.toolbox(), &plan, &Value::Null).unwrap_err().to_string();
    assert!(error.contains("`$steps.p.items` is a list, not a part of a path"), "{error}");
}

/// Whoever approves without a look is told which step needs one, and the preview says so.
#[test]
fn a_step_that_replaces_a_note_must_be_seen() {
    let vault = TestVault::new("//- a.md\nold\n//- b.md\nsame\n");
    let mut toolbox = vault.toolbox();
    let plan = writing(json!([
        { "id": "same", "tool": "write_note", "args": { "path": "b.md", "content": "same\n" } },
        { "id": "new", "tool": "write_note", "args": { "path": "a.md", "content": "new\n" } }
    ]));
    let preview = previewed(&mut toolbox, &plan, &Value::Null).unwrap();
    let [notice] = &preview.notices[..] else { panic!("{:?}", preview.notices) };
    assert!(notice.starts_with("the step new: a.md: the note exists already; it runs only if"), "{notice}");
    let error = run_plan(&mut toolbox, preview.clone(), &mut AutoApprover, Cancel::default(), &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("the step new (write_note): the note exists"), "{error}");
    assert_eq!(ran(&mut toolbox, &preview).unwrap().status, RunStatus::Done);
}

#[test]
fn every_scenario_runs_and_is_undone_and_redone_as_written() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/plans");
    let mut folders: Vec<PathBuf> = std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    assert!(folders.len() >= 40);
    let failures: Vec<String> = folders
        .iter()
        .filter_map(|folder| {
            let told = std::panic::catch_unwind(|| scenario(folder)).err()?;
            let text = told.downcast_ref::<String>().cloned();
            Some(text.unwrap_or_else(|| format!("{}: panicked", folder.display())))
        })
        .collect();
    assert!(failures.is_empty(), "{} of {} scenarios:\n\n{}", failures.len(), folders.len(), failures.join("\n\n"));
}

pub(crate) fn writing(steps: Value) -> Value {
    json!({ "version": "1.0", "goal": "a test", "riskLevel": "writes", "steps": steps })
}

#[test]
fn what_runs_is_what_was_shown_or_nothing() {
    let vault = TestVault::new("//- a.md\none\n//- b.md\ntwo\n");
    let mut toolbox = vault.toolbox();
    let plan = writing(json!([
        { "id": "read", "tool": "vault.readFile", "args": { "path": "b.md" } },
        { "id": "write", "tool": "vault.writeFile", "args": { "path": "a.md", "content": "${$steps.read.content}" } }
    ]));
    let shown = previewed(&mut toolbox, &plan, &Value::Null).unwrap();
    assert_eq!(shown.digest, previewed(&mut toolbox, &plan, &Value::Null).unwrap().digest);
    for changed in ["a.md", "b.md"] {
        let before = vault.read(changed);
        vault.write(changed, "somebody else\n");
        let tree = vault.tree();
        let error = ran(&mut toolbox, &shown).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
        assert_same(&vault.tree(), &tree, "a conflict changes nothing");
        vault.write(changed, before);
    }
    let done = ran(&mut toolbox, &shown).unwrap();
    assert_eq!((done.status, vault.read("a.md").as_str()), (RunStatus::Done, "two\n"));
    vault.write("b.md", "three\n");
    assert_ne!(shown.digest, previewed(&mut toolbox, &plan, &Value::Null).unwrap().digest);
}

/// What a plan learnt of a note from the index binds it as if it had read the note.
#[test]
fn a_note_that_was_found_binds_the_plan() {
    let vault = TestVault::new("//- a.md\n#fresh [[c]]\n//- b.md\n#fresh\n//- c.md\nthree\n");
    let mut toolbox = vault.toolbox();
    for (tool, args, from, changed) in [
        ("search_by_tag", json!({ "tags": ["fresh"] }), "$steps.found", "a.md"),
        ("list_backlinks", json!({ "path": "c.md" }), "$steps.found", "a.md"),
        ("list_forward_links", json!({ "path": "a.md" }), "$steps.found", "a.md"),
        ("search_notes", json!({ "query": "three" }), "$steps.found", "c.md"),
    ] {
        let plan = writing(json!([
            { "id": "found", "tool": tool, "args": args },
            {
                "id": "make", "tool": "vault.createFile", "foreach": { "from": from, "indexName": "number" },
                "args": { "path": "made ${number}.md", "content": "" }
            }
        ]));
        let shown = previewed(&mut toolbox, &plan, &Value::Null).unwrap();
        let before = vault.read(changed);
        vault.write(changed, "somebody else\n");
        let error = ran(&mut toolbox, &shown).unwrap_err();
        assert!(error.kind() == ErrorKind::Conflict && error.to_string().contains(changed), "{tool}: {error}");
        vault.write(changed, before);
        let shown = previewed(&mut toolbox, &plan, &Value::Null).unwrap();
        assert_eq!(ran(&mut toolbox, &shown).unwrap().status, RunStatus::Done, "{tool}");
        toolbox.vault().undo(None, Force::No).unwrap();
    }
}

/// The setting answers the question that a plan is, and no other.
#[test]
fn a_plan_that_reads_asks_where_its_calls_do() {
    use vault_tools::{Grants, Permission, ToolSetting};
    let vault = TestVault::new("//- a.md\none\n");
    let mut auto = PolicySettings::default();
    auto.auto_approve_read_only = true;
    let mut asking = auto.clone();
    asking.tools = [("read_note".to_string(), ToolSetting::AlwaysAsk)].into();
    let permission = |policy: &PolicySettings, tool: &str, args: Value| {
        let mut toolbox = vault.toolbox_with(Editor::default(), policy);
        let plan = json!({
            "version": "1.0", "goal": "g", "riskLevel": "read-only",
            "steps": [{ "id": "r", "tool": tool, "args": args }]
        });
        let shown = previewed(&mut toolbox, &plan, &Value::Null).unwrap();
        let allowed =
            run_plan(&mut toolbox, shown.clone(), &mut HeadlessApprover, Cancel::default(), &mut |_| {}).is_ok();
        let permission = shown.permission(toolbox.policy(), &Grants::default());
        assert_eq!(allowed, permission == Permission::Allow);
        permission
    };
    assert_eq!(permission(&auto, "read_note", json!({ "path": "a.md" })), Permission::Allow);
    assert_eq!(permission(&asking, "read_note", json!({ "path": "a.md" })), Permission::Ask);
    assert_eq!(permission(&auto, "file_read", json!({ "filePaths": ["a.md"] })), Permission::Ask);
}

/// When a file was written is known once it is, in each call of a loop as well; fields of that name elsewhere stay.
#[test]
fn answers_are_filled_in_by_the_tools_they_are_of() {
    let vault = TestVault::new("//- a.md\none\n");
    let mut toolbox = vault.toolbox();
    let plan = writing(json!([
        { "id": "parse", "tool": "util.parseMarkdownBullets", "args": { "text": "- x\n- y" } },
        {
            "id": "make", "tool": "vault.createFile", "foreach": { "from": "$steps.parse.items" },
            "args": { "path": "${item.text}.md", "content": "" }
        },
        { "id": "one", "tool": "vault.writeFile", "args": { "path": "a.md", "content": "1" } }
    ]));
    let shown = previewed(&mut toolbox, &plan, &Value::Null).unwrap();
    let done = ran(&mut toolbox, &shown).unwrap();
    assert!(done.outputs["one"]["mtimeMs"].is_i64(), "{:?}", done.outputs);
    assert!(done.outputs["make"]["items"].as_array().unwrap().iter().all(|made| made["mtimeMs"].is_i64()));
    assert!(done.outputs["parse"]["items"][0].get("mtimeMs").is_none());
}

#[test]
fn nothing_runs_without_approval() {
    let vault = TestVault::new("//- a.md\none\n");
    let mut toolbox = vault.toolbox();
    let plan = writing(json!([{ "id": "w", "tool": "vault.createFile", "args": { "path": "b.md", "content": "" } }]));
    let shown = previewed(&mut toolbox, &plan, &Value::Null).unwrap();
    let approvers: [&mut dyn Approver; 2] = [&mut says_no, &mut HeadlessApprover];
    for approver in approvers {
        let error = run_plan(&mut toolbox, shown.clone(), approver, Cancel::default(), &mut |_| {}).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied);
    }
    assert!(!vault.root().join("b.md").exists());
}

#[test]
fn events_tell_what_happens() {
    let vault = TestVault::new("//- a.md\none\n");
    let mut toolbox = vault.toolbox();
    let plan = writing(json!([
        { "id": "read", "tool": "vault.readFile", "args": { "path": "no.md" }, "onError": "skip" },
        { "id": "make", "tool": "vault.createFile", "args": { "path": "x/b.md", "content": "" } },
        { "id": "count", "tool": "util.slugifyTitle", "args": { "title": "T" } }
    ]));
    let shown = previewed(&mut toolbox, &plan, &Value::Null).unwrap();
    assert!(matches!(shown.steps[0].state, StepState::Skipped { .. }));
    let mut names = Vec::new();
    let mut tell = |event: &Event| {
        let event = serde_json::to_value(event).unwrap();
        let step = event["step"].as_str().unwrap_or_default();
        names.push(format!("{} {step}", event["event"].as_str().unwrap()).trim().to_string());
    };
    run_plan(&mut toolbox, shown.clone(), &mut seen, Cancel::default(), &mut tell).unwrap();
    assert_eq!(
        names,
        [
            "run.started",
            "step.skipped read",
            "step.started make",
            "step.progress make",
            "step.progress make",
            "step.finished make",
            "step.started count",
            "step.finished count",
            "run.finished"
        ]
    );
}

#[test]
fn a_cancelled_run_keeps_what_was_done_and_undo_takes_it_back() {
    let vault = TestVault::new("//- a.md\none\n");
    let before = vault.tree();
    let mut toolbox = vault.toolbox();
    let plan = writing(json!([
        { "id": "one", "tool": "vault.createFile", "args": { "path": "1.md", "content": "" } },
        { "id": "two", "tool": "vault.createFile", "args": { "path": "2.md", "content": "" } }
    ]));
    let shown = previewed(&mut toolbox, &plan, &Value::Null).unwrap();
    let cancel = std::sync::atomic::AtomicBool::new(false);
    let mut tell = |event: &Event| {
        if matches!(event, Event::StepFinished { step, .. } if step == "one") {
            cancel.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    };
    let done = run_plan(&mut toolbox, shown.clone(), &mut seen, Cancel::on(&cancel), &mut tell).unwrap();
    assert_eq!(done.status, RunStatus::Cancelled);
    assert!(vault.root().join("1.md").exists() && !vault.root().join("2.md").exists());
    toolbox.vault().undo(done.transaction, Force::No).unwrap();
    assert_same(&vault.tree(), &before, "after undo");
}

/// A rename of a note that three others link to, after a step of its own.
fn rename_plan(on_error: &str) -> (TestVault, Value) {
    let vault = TestVault::new("//- hub.md\none\n//- 1.md\n[[hub]]\n//- 2.md\n[[hub]]\n//- 3.md\n[[hub]]\n");
    let plan = writing(json!([
        { "id": "make", "tool": "vault.createFile", "args": { "path": "new.md", "content": "" } },
        {
            "id": "rename", "tool": "vault.rename", "args": { "fromPath": "hub.md", "toPath": "f/center.md" },
            "onError": on_error, "timeoutMs": 60000
        },
        { "id": "last", "tool": "vault.createFile", "args": { "path": "last.md", "content": "" } }
    ]));
    (vault, plan)
}

/// Runs a plan, and asks it to stop when `when` hears of the progress of a step.
fn stopped(vault: &TestVault, plan: &Value, when: &dyn Fn(&str, usize, usize) -> bool) -> (PlanRun, Toolbox) {
    let mut toolbox = vault.toolbox();
    let shown = previewed(&mut toolbox, plan, &Value::Null).unwrap();
    let cancel = std::sync::atomic::AtomicBool::new(false);
    let mut tell = |event: &Event| {
        if let Event::StepProgress { step, done, total } = event
            && when(step, *done, *total)
        {
            cancel.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    };
    let done = run_plan(&mut toolbox, shown.clone(), &mut seen, Cancel::on(&cancel), &mut tell).unwrap();
    (done, toolbox)
}

#[test]
fn a_step_is_whole_or_not_there() {
    // Wherever in the rename it is stopped.
    for at in 0..4 {
        let (vault, plan) = rename_plan("stop");
        let before = vault.tree();
        let (done, toolbox) = stopped(&vault, &plan, &|step, now, _| step == "rename" && now == at);
        assert_eq!((done.status, done.failed.unwrap().0.as_str()), (RunStatus::Cancelled, "rename"), "{at}");
        assert_eq!(done.outputs.keys().collect::<Vec<_>>(), ["make"]);
        let mut expected = before.clone();
        expected.insert("new.md".into(), Vec::new());
        assert_same(&vault.tree(), &expected, "the step before stays, and nothing of the one that was stopped");
        toolbox.vault().undo(done.transaction, Force::No).unwrap();
        assert_same(&vault.tree(), &before, "after undo");
    }
    // When its last file is written, it is done; the next one is not begun.
    let (vault, plan) = rename_plan("stop");
    let (done, _) = stopped(&vault, &plan, &|step, now, total| step == "rename" && now + 1 == total);
    assert_eq!((done.status, done.failed.unwrap().0.as_str()), (RunStatus::Cancelled, "last"));
    assert_eq!((vault.read("3.md").as_str(), vault.root().join("hub.md").exists()), ("[[center]]\n", false));
    assert!(!vault.root().join("last.md").exists());
}

#[test]
fn a_run_that_did_nothing_cannot_be_undone() {
    let (vault, plan) = rename_plan("stop");
    let before = vault.tree();
    let mut toolbox = vault.toolbox();
    let shown = previewed(&mut toolbox, &plan, &Value::Null).unwrap();
    let cancel = std::sync::atomic::AtomicBool::new(true);
    let done = run_plan(&mut toolbox, shown.clone(), &mut seen, Cancel::on(&cancel), &mut |_| {}).unwrap();
    assert_eq!((done.status, done.transaction), (RunStatus::Cancelled, None));
    assert_same(&vault.tree(), &before, "nothing was done");
}

/// Whatever `onError` says: what comes after was shown with the step done.
#[test]
fn a_step_that_runs_out_of_time_is_not_done_by_half() {
    for on_error in ["stop", "skip"] {
        let mut millis = 1;
        // On a busy machine the time may be over before the first file is changed: then the step gets more.
        while !runs_out_of_time_after_a_file(on_error, millis) {
            millis *= 2;
        }
    }
}

/// Runs a plan whose second step may take so long, and is held up for longer after its first file. Returns whether it
/// got that far.
fn runs_out_of_time_after_a_file(on_error: &str, millis: u64) -> bool {
    let (vault, plan) = rename_plan(on_error);
    let before = vault.tree();
    let mut toolbox = vault.toolbox();
    let mut shown = previewed(&mut toolbox, &plan, &Value::Null).unwrap();
    shown.plan.steps[1].timeout_ms = Some(millis);
    let (limit, mut started, mut is_held_up) = (Duration::from_millis(millis), Instant::now(), false);
    let mut tell = |event: &Event| match event {
        Event::StepStarted { step, .. } if step == "rename" => started = Instant::now(),
        Event::StepProgress { step, done: 1, .. } if step == "rename" => {
            is_held_up = true;
            while started.elapsed() <= limit {
                std::hint::spin_loop();
            }
        }
        _ => {}
    };
    let done = run_plan(&mut toolbox, shown, &mut seen, Cancel::default(), &mut tell).unwrap();
    let (step, error) = done.failed.unwrap();
    assert_eq!((step.as_str(), error.kind(), done.status), ("rename", ErrorKind::TimedOut, RunStatus::Failed));
    let mut expected = before.clone();
    expected.insert("new.md".into(), Vec::new());
    assert_same(&vault.tree(), &expected, "the step before it alone is done");
    toolbox.vault().undo(done.transaction, Force::No).unwrap();
    assert_same(&vault.tree(), &before, on_error);
    is_held_up
}

/// What was done is done, whether the log takes a line of it or not.
#[test]
fn a_log_that_cannot_be_written_changes_no_outcome() {
    let vault = TestVault::new("//- a.md\none\n");
    let mut toolbox = vault.toolbox();
    std::fs::create_dir_all(toolbox.vault().state().folder().join("log.jsonl")).unwrap();
    let args = json!({ "path": "a.md", "content": "- done" });
    let output = toolbox.call("append_to_note", args, &mut seen).unwrap();
    assert!(output.transaction.is_some() && toolbox.take_log_error().is_some() && toolbox.take_log_error().is_none());
    assert_eq!(vault.read("a.md"), "one\n\n- done\n");
    assert_eq!(
        toolbox.call("read_note", json!({ "path": "b.md" }), &mut HeadlessApprover).unwrap_err().kind(),
        ErrorKind::NotFound
    );
    let plan = writing(json!([{ "id": "w", "tool": "vault.createFile", "args": { "path": "b.md", "content": "" } }]));
    let shown = previewed(&mut toolbox, &plan, &Value::Null).unwrap();
    let done = ran(&mut toolbox, &shown).unwrap();
    assert_eq!(
        (done.status, done.transaction.is_some(), toolbox.take_log_error().is_some()),
        (RunStatus::Done, true, true)
    );
}

#[test]
fn plans_that_do_not_run_are_in_the_log() {
    let vault = TestVault::new("//- a.md\none\n");
    let mut toolbox = vault.toolbox();
    let plan = writing(json!([
        { "id": "w", "tool": "vault.writeFile", "args": { "path": "a.md", "content": "two" } },
        { "id": "x", "tool": "vault.writeFile", "args": { "path": "b.md", "content": "two" } }
    ]));
    let shown = previewed(&mut toolbox, &plan, &Value::Null).unwrap();
    run_plan(&mut toolbox, shown.clone(), &mut says_no, Cancel::default(), &mut |_| {}).unwrap_err();
    vault.write("a.md", "three\n");
    let mut last = None;
    let mut tell = |event: &Event| last = Some(event.clone());
    run_plan(&mut toolbox, shown.clone(), &mut seen, Cancel::default(), &mut tell).unwrap_err();
    let (notices, left_out) = (Vec::new(), Vec::new());
    assert_eq!(last, Some(Event::RunFinished { status: RunStatus::Failed, transaction: None, notices, left_out }));
    let missing = writing(json!([{ "id": "r", "tool": "vault.readFile", "args": { "path": "none.md" } }]));
    previewed(&mut toolbox, &missing, &Value::Null).unwrap_err();
    let records = read_log(toolbox.vault().state()).unwrap();
    let told: Vec<(&str, Approval, bool)> = records
        .iter()
        .map(|record| {
            let error = record.error.as_deref().unwrap_or_default();
            (record.tool.as_str(), record.decision, error.starts_with("CONFLICT"))
        })
        .collect();
    let write = "vault.writeFile";
    assert_eq!(
        told,
        [
            (write, Approval::Denied, false),
            (write, Approval::Denied, false),
            (write, Approval::Approved, true),
            (write, Approval::Approved, true),
            ("vault.readFile", Approval::Allowed, false),
        ]
    );
}

#[test]
fn answers_come_as_they_were_given() {
    let key = "$serde_json::private::RawValue";
    let vault = TestVault::new(&format!("//- a.md\n---\nx: 31.245270191439438\n\"{key}\": \"[1, 2\"\n---\n"));
    let mut toolbox = vault.toolbox();
    let plan = writing(json!([
        { "id": "read", "tool": "get_note_metadata", "args": { "path": "a.md" } },
        {
            "id": "write", "tool": "vault.createFile",
            "args": { "path": "b.md", "content": "${$steps.read.frontmatter.x}" }
        }
    ]));
    let shown = previewed(&mut toolbox, &plan, &Value::Null).unwrap();
    let done = ran(&mut toolbox, &shown).unwrap();
    assert_eq!((done.status, vault.read("b.md").trim_end()), (RunStatus::Done, "31.245270191439438"));
    assert_eq!(done.outputs["read"]["frontmatter"][key], "[1, 2");
}

/// Most of what it writes rests on the disk between the preview and the run, and is read again for later steps.
#[test]
fn a_thousand_files_are_one_run() {
    let vault = TestVault::new("//- a.md\none\n");
    let before = vault.tree();
    let mut toolbox = vault.toolbox();
    let bullets: String = (0..1000).map(|number| format!("- note {number}\n")).collect();
    let (text, path) = (format!("${{item.text}} [[a]]\n{}\n", "long ".repeat(200)), "many/${item.text}.md");
    let each = json!({ "from": "$steps.parse.items", "itemName": "item" });
    let plan = writing(json!([
        { "id": "parse", "tool": "util.parseMarkdownBullets", "args": { "text": bullets } },
        { "id": "make", "tool": "vault.createFile", "args": { "path": path, "content": text }, "foreach": each },
        {
            "id": "add", "tool": "append_to_note", "args": { "path": path, "content": "more of ${item.text}" },
            "foreach": each, "dependsOn": ["make"]
        },
        { "id": "rename", "tool": "rename_note", "args": { "path": "a.md", "new_path": "b.md" }, "dependsOn": ["add"] }
    ]));
    let shown = previewed(&mut toolbox, &plan, &Value::Null).unwrap();
    let diffs = shown.preview();
    assert!(diffs.files.iter().any(|file| file.diff.as_deref().unwrap_or_default().contains("+more of note 999\n")));
    let done = ran(&mut toolbox, &shown).unwrap();
    assert_eq!(done.outputs["make"]["count"], 1000);
    let after = vault.tree();
    assert_eq!(after.len(), before.len() + 1001);
    for number in 0..1000 {
        let expected = format!("note {number} [[b]]\n{}\n\nmore of note {number}\n", "long ".repeat(200));
        assert_eq!(vault.read(&format!("many/note {number}.md")), expected);
    }
    toolbox.vault().undo(None, Force::No).unwrap();
    assert_same(&vault.tree(), &before, "after undo");
    toolbox.vault().redo(Force::No).unwrap();
    assert_same(&vault.tree(), &after, "after redo");
}

/// `concurrency` was part of loops once and never had an effect.
#[test]
fn a_loop_runs_in_the_order_of_its_list_and_concurrency_is_ignored_with_a_notice() {
    let plan = |concurrency: Value| {
        json!({
            "version": "1.0", "goal": "one line each", "riskLevel": "writes",
            "steps": [
                { "id": "parse", "tool": "util.parseMarkdownBullets", "args": { "text": "${bullets}" } },
                {
                    "id": "add", "tool": "append_to_note",
                    "foreach": { "from": "$steps.parse.items", "concurrency": concurrency },
                    "args": { "path": "Log.md", "content": "${item.text}" }
                }
            ]
        })
    };
    let bullets: String = (0..40).map(|number| format!("- {number}\n")).collect();
    let lines: String = (0..40).map(|number| format!("\n{number}\n")).collect();
    for concurrency in [json!(null), json!(1), json!(16)] {
        let vault = TestVault::new("//- Log.md\nbegin\n");
        let mut toolbox = vault.toolbox();
        let shown = previewed(&mut toolbox, &plan(concurrency.clone()), &json!({ "bullets": bullets })).unwrap();
        let notice = "the step add: foreach.concurrency is ignored, the calls run one after the other";
        let expected: &[&str] = if concurrency.is_null() { &[] } else { &[notice] };
        assert_eq!(shown.notices, expected, "{concurrency}");
        ran(&mut toolbox, &shown).unwrap();
        assert_eq!(vault.read("Log.md"), format!("begin\n{lines}"), "{concurrency}");
    }
    let schema = vault_tools::plan::plan_schema();
    assert!(!schema.to_string().contains("concurrency"), "{schema}");
}
