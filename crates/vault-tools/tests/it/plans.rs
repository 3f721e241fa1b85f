//! Plans: every scenario of `testdata/plans`, and what needs more than one run to be seen.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use vault_tools::plan::{Event, Parameters, PlanPreview, PlanRun, RunStatus, StepState, preview, run, validate};
use vault_tools::{
    Approval, Cancel, Editor, Error, ErrorKind, Force, Host, HostCommand, Leaf, Policy, Position, SafePath, Selection,
    Settings, Span, Toolbox, read_log,
};

use crate::vault::{TestVault, assert_same, tree};

/// Checks, previews and, if nothing is wrong, runs a plan.
pub(crate) fn previewed(toolbox: &mut Toolbox, plan: &Value, set: &Value) -> Result<PlanPreview, Error> {
    let checked = validate(plan, toolbox)?;
    let mut parameters = Parameters::of(&toolbox.editor()?, &toolbox.now());
    for (name, value) in set.as_object().into_iter().flatten() {
        parameters.set(name, value.clone());
    }
    preview(toolbox, &checked, &parameters, Cancel::default())
}

pub(crate) fn ran(toolbox: &mut Toolbox, preview: &PlanPreview) -> Result<PlanRun, Error> {
    run(toolbox, preview, Approval::Approved, Cancel::default(), &mut |_| {})
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
    let mut policy: Settings = match &context["policy"] {
        Value::Null => Settings::default(),
        policy => serde_json::from_value(policy.clone()).unwrap(),
    };
    policy.allow_delete |= context["allowDelete"] == true;
    let mut toolbox = vault.toolbox_with(editor(&context, &vault), &policy);
    let preview = previewed(&mut toolbox, &plan, &context["set"]);
    assert_same(&vault.tree(), &input, &format!("{name}: the preview changed something"));

    if let Ok(refused) = std::fs::read_to_string(folder.join("refused.txt")) {
        let done = preview.and_then(|preview| ran(&mut toolbox, &preview));
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

    if done.run.is_none() {
        assert_same(&expected, &input, &format!("{name}: nothing was done"));
        return;
    }
    toolbox.vault().undo(None, Force::No).unwrap_or_else(|error| panic!("{name}: undo: {error}"));
    assert_same(&vault.tree(), &input, &format!("{name}: after undo"));
    toolbox.vault().redo(Force::No).unwrap_or_else(|error| panic!("{name}: redo: {error}"));
    assert_same(&vault.tree(), &expected, &format!("{name}: after redo"));
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
    assert_eq!(preview.change.preview().files[0].path, "Projects/2026/one-two.md");
    for folder in ["../out", "/out", "a//b"] {
        let error = previewed(&mut toolbox, &plan, &json!({ "folderName": folder })).unwrap_err().to_string();
        assert!(error.contains("no path within the vault"), "{error}");
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
    let done = run(&mut toolbox, &preview, Approval::Approved, Cancel::default(), &mut tell).unwrap();
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

/// A file that was there is left as it is, which is said; what the plan itself put there is never lost in silence.
#[test]
fn only_files_that_were_there_before_the_plan_are_left_as_they_are() {
    let vault = TestVault::new("//- n1.md\nold\n");
    let mut toolbox = vault.toolbox();
    let preview = previewed(&mut toolbox, &creating("- n1\n- n2", json!({})), &Value::Null).unwrap();
    assert_eq!(preview.notices, ["the step make: n1.md exists and is left as it is"]);
    let create = |id: &str, text: &str, after: &str| json!({ "id": id, "tool": "vault.createFile", "args": { "path": "n1.md", "content": text }, "dependsOn": [after] });
    let rename = json!({ "id": "away", "tool": "vault.rename", "args": { "fromPath": "n1.md", "toPath": "old1.md" } });
    let plan = writing(json!([rename, create("first", "first", "away"), create("second", "SECOND", "first")]));
    let error = previewed(&mut toolbox, &plan, &Value::Null).unwrap_err();
    assert!(error.kind() == ErrorKind::Exists && error.to_string().contains("the step second"), "{error}");
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
        matches!(&make.state, StepState::Skipped { reason } if reason.starts_with("TIMED_OUT")),
        "{:?}",
        make.state
    );
    assert!(make.left_out.is_empty() && preview.change.is_empty());
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
    let done = run(&mut toolbox, &preview, Approval::Approved, Cancel::default(), &mut tell).unwrap();
    assert_eq!(skipped, [("move".to_owned(), 2), ("edit".to_owned(), 2)]);
    let told: Vec<String> =
        done.left_out.iter().map(|(id, item)| format!("{id} {}: {}", item.what, item.reason)).collect();
    let taken = "taken.md: a file or folder of this name exists";
    let same = "old_text and new_text are the same";
    let expected =
        [format!("move a: {taken}"), format!("move b: {taken}"), format!("edit a: {same}"), format!("edit b: {same}")];
    assert_eq!(told, expected);
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
    let error = run(&mut toolbox, &preview, Approval::Preapproved, Cancel::default(), &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("the step new (write_note): the note exists"), "{error}");
    assert_eq!(ran(&mut toolbox, &preview).unwrap().status, RunStatus::Done);
}

#[test]
fn scenarios() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/plans");
    if !root.exists() {
        return; // A published crate stands without them.
    }
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
    let mut auto = Settings::default();
    auto.auto_approve_read_only = true;
    let mut asking = auto.clone();
    asking.tools = [("read_note".to_string(), ToolSetting::AlwaysAsk)].into();
    let permission = |policy: &Settings, tool: &str, args: Value| {
        let mut toolbox = vault.toolbox_with(Editor::default(), policy);
        let plan = json!({
            "version": "1.0", "goal": "g", "riskLevel": "read-only",
            "steps": [{ "id": "r", "tool": tool, "args": args }]
        });
        let shown = previewed(&mut toolbox, &plan, &Value::Null).unwrap();
        let allowed = run(&mut toolbox, &shown, Approval::Allowed, Cancel::default(), &mut |_| {}).is_ok();
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
    for decision in [Approval::Denied, Approval::Allowed] {
        let error = run(&mut toolbox, &shown, decision, Cancel::default(), &mut |_| {}).unwrap_err();
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
    run(&mut toolbox, &shown, Approval::Approved, Cancel::default(), &mut tell).unwrap();
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
    let done = run(&mut toolbox, &shown, Approval::Approved, Cancel::on(&cancel), &mut tell).unwrap();
    assert_eq!(done.status, RunStatus::Cancelled);
    assert!(vault.root().join("1.md").exists() && !vault.root().join("2.md").exists());
    toolbox.vault().undo(done.run, Force::No).unwrap();
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
    let done = run(&mut toolbox, &shown, Approval::Approved, Cancel::on(&cancel), &mut tell).unwrap();
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
        toolbox.vault().undo(done.run, Force::No).unwrap();
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
fn a_run_that_did_nothing_cannot_be_taken_back() {
    let (vault, plan) = rename_plan("stop");
    let before = vault.tree();
    let mut toolbox = vault.toolbox();
    let shown = previewed(&mut toolbox, &plan, &Value::Null).unwrap();
    let cancel = std::sync::atomic::AtomicBool::new(true);
    let done = run(&mut toolbox, &shown, Approval::Approved, Cancel::on(&cancel), &mut |_| {}).unwrap();
    assert_eq!((done.status, done.run), (RunStatus::Cancelled, None));
    assert_same(&vault.tree(), &before, "nothing was done");
}

/// Whatever `onError` says: what comes after was shown with the step done.
#[test]
fn a_step_that_runs_out_of_time_is_not_done_by_half() {
    for on_error in ["stop", "skip"] {
        let (vault, mut plan) = rename_plan(on_error);
        let before = vault.tree();
        // The step is held up until its time is over.
        plan["steps"][1]["timeoutMs"] = json!(500);
        let mut toolbox = vault.toolbox();
        let shown = previewed(&mut toolbox, &plan, &Value::Null).unwrap();
        let mut tell = |event: &Event| {
            if matches!(event, Event::StepProgress { step, done: 1, .. } if step == "rename") {
                let until = std::time::Instant::now() + std::time::Duration::from_millis(501);
                while let Some(left) = until.checked_duration_since(std::time::Instant::now()) {
                    std::thread::sleep(left);
                }
            }
        };
        let done = run(&mut toolbox, &shown, Approval::Approved, Cancel::default(), &mut tell).unwrap();
        let (step, error) = done.failed.unwrap();
        assert_eq!((step.as_str(), error.kind(), done.status), ("rename", ErrorKind::TimedOut, RunStatus::Failed));
        toolbox.vault().undo(done.run, Force::No).unwrap();
        assert_same(&vault.tree(), &before, on_error);
    }
}

/// What was done is done, whether the log takes a line of it or not.
#[test]
fn a_log_that_cannot_be_written_changes_no_outcome() {
    let vault = TestVault::new("//- a.md\none\n");
    let mut toolbox = vault.toolbox();
    std::fs::create_dir_all(toolbox.vault().state().folder().join("log.jsonl")).unwrap();
    let args = json!({ "path": "a.md", "content": "- done" });
    let output = toolbox.call("append_to_note", args, Approval::Approved).unwrap();
    assert!(output.run.is_some() && toolbox.take_log_error().is_some() && toolbox.take_log_error().is_none());
    assert_eq!(vault.read("a.md"), "one\n\n- done\n");
    assert_eq!(
        toolbox.call("read_note", json!({ "path": "b.md" }), Approval::Allowed).unwrap_err().kind(),
        ErrorKind::NotFound
    );
    let plan = writing(json!([{ "id": "w", "tool": "vault.createFile", "args": { "path": "b.md", "content": "" } }]));
    let shown = previewed(&mut toolbox, &plan, &Value::Null).unwrap();
    let done = ran(&mut toolbox, &shown).unwrap();
    assert_eq!((done.status, done.run.is_some(), toolbox.take_log_error().is_some()), (RunStatus::Done, true, true));
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
    run(&mut toolbox, &shown, Approval::Denied, Cancel::default(), &mut |_| {}).unwrap_err();
    vault.write("a.md", "three\n");
    let mut last = None;
    let mut tell = |event: &Event| last = Some(event.clone());
    run(&mut toolbox, &shown, Approval::Approved, Cancel::default(), &mut tell).unwrap_err();
    let (notices, left_out) = (Vec::new(), Vec::new());
    assert_eq!(last, Some(Event::RunFinished { status: RunStatus::Failed, run: None, notices, left_out }));
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
    let diffs = shown.change.preview();
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

/// A program around the vault whose command fails as often as it is told to.
struct Live {
    failures: u32,
    ran: std::sync::Arc<std::sync::Mutex<Vec<String>>>,
    root: PathBuf,
}

impl Host for Live {
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
    let host = Live { failures, ran: std::sync::Arc::clone(&ran), root: vault.root() };
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
    let done = run(&mut toolbox, &shown, Approval::Approved, Cancel::default(), &mut tell).unwrap();
    assert_eq!((done.status, failures), (RunStatus::Done, vec![(1, true), (2, true)]));
    assert!(done.outputs["one"]["mtimeMs"].is_number());
    let sort = "app:sort [true, false]";
    assert_eq!(*ran.lock().unwrap(), [sort, sort, sort, "open 2.md"]);
    assert_eq!(done.outputs["show"]["opened"], true);
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
    toolbox.vault().undo(done.run, Force::No).unwrap();
    assert_same(&vault.tree(), &before, "after undo");
    let mut unknown = command_plan("stop");
    unknown["steps"][1]["args"]["id"] = json!("app:none");
    let error = previewed(&mut toolbox, &unknown, &Value::Null).unwrap_err();
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
