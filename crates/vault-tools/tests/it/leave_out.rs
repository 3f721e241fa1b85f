//! Parts of calls and plans that a person leaves out: what is done is exactly the rest, and is undone as that.

use std::collections::BTreeSet;

use serde_json::json;
use vault_tools::approval::run_plan;
use vault_tools::plan::{CallId, Parameters, PlanPreview, StepState, dry_run, dry_run_without, validate};
use vault_tools::{Cancel, ErrorKind, Force, Grants, Toolbox};

use crate::vault::{TestVault, apply, assert_same, seen};

/// A note for each of three bullets, an index of them, and lines at the end of a note of forty.
fn plan() -> serde_json::Value {
    json!({
        "version": "1.0", "goal": "g", "riskLevel": "writes",
        "steps": [
            { "id": "items", "tool": "util.parseMarkdownBullets", "args": { "text": "- a\n- b\n- c" } },
            { "id": "make", "tool": "vault.createFile", "foreach": { "from": "$steps.items.items" },
              "args": { "path": "N/${item.text}.md", "content": "x\n" } },
            { "id": "made", "tool": "append_to_note", "foreach": { "from": "$steps.make.items" },
              "args": { "path": "Made.md", "content": "- ${item.path}" } },
            { "id": "links", "tool": "append_to_note", "foreach": { "from": "$steps.items.items" },
              "args": { "path": "Links.md", "content": "- [[${item.text}]]" } },
            { "id": "edit", "tool": "edit_note",
              "args": { "path": "Long.md", "old_text": "first", "new_text": "FIRST" } },
            { "id": "append", "tool": "append_to_note", "args": { "path": "Long.md", "content": "LAST" } },
            { "id": "after", "tool": "vault.writeFile", "dependsOn": ["edit"],
              "args": { "path": "After.md", "content": "after" } }
        ]
    })
}

fn vault() -> TestVault {
    let lines: String = (0..40).map(|line| format!("{line}\n")).collect();
    TestVault::new(&format!("//- Made.md\nmade\n//- Links.md\nlinks\n//- Long.md\nfirst\n{lines}"))
}

fn previewed(toolbox: &mut Toolbox, without: &[(&str, Option<usize>)]) -> PlanPreview {
    let checked = validate(&plan(), toolbox).unwrap();
    let parameters = Parameters::of(&toolbox.editor().unwrap(), &toolbox.now());
    let id = |(step, item): &(&str, Option<usize>)| CallId { step: step.to_string(), item: *item };
    let without: BTreeSet<CallId> = without.iter().map(id).collect();
    match without.is_empty() {
        true => dry_run(toolbox, &checked, &parameters, Cancel::default()).unwrap(),
        false => dry_run_without(toolbox, &checked, &parameters, &without, Cancel::default()).unwrap(),
    }
}

#[test]
fn a_plan_without_some_calls_and_hunks() {
    let vault = vault();
    let before = vault.tree();
    let mut toolbox = vault.toolbox();
    let whole = previewed(&mut toolbox, &[]);
    let calls = whole.separable_calls();
    let ids: Vec<(&str, Option<usize>)> = calls.iter().map(|call| (call.id.step.as_str(), call.id.item)).collect();
    // The others only edit files that nothing else touches.
    assert_eq!(ids, [("make", Some(0)), ("make", Some(1)), ("make", Some(2)), ("after", None)]);
    let files = whole.separable_files();
    let hunks: Vec<(&str, usize)> = files.iter().map(|file| (file.path().as_str(), file.hunks().len())).collect();
    assert_eq!(hunks, [("Links.md", 1), ("Long.md", 2), ("Made.md", 1)]);

    let mut chosen = previewed(&mut toolbox, &[("make", Some(1))]);
    assert!(chosen.digest != whole.digest && chosen.steps[1].left_out[0].what == "b");
    chosen.note_links_to_left_out(&whole);
    assert!(chosen.notices.iter().any(|notice| notice == "Links.md has a link to N/b.md, which is left out"));
    let mut files = chosen.separable_files();
    files[1].leave_out(1);
    let digest = chosen.digest.clone();
    chosen.keep(&files).unwrap();
    assert_ne!(chosen.digest, digest, "an approval holds for what is left");
    let done = run_plan(&mut toolbox, chosen.clone(), &mut seen, Cancel::default(), &mut |_| {}).unwrap();
    assert_eq!(vault.read("Made.md"), "made\n\n- N/a.md\n- N/c.md\n");
    assert!(vault.read("Long.md").starts_with("FIRST\n0\n") && !vault.read("Long.md").contains("LAST"));
    assert!(!vault.root().join("N/b.md").exists() && vault.root().join("After.md").exists());
    assert_eq!(done.left_out[0].1.reason, "a person left it out");
    assert!(done.left_out_hunks[0].path == "Long.md" && done.left_out_hunks[0].diff.contains("+LAST"));
    let said = "the step append: a person left out 1 of the 2 hunks in Long.md";
    assert!(done.notices.iter().any(|notice| notice == said), "{:?}", done.notices);
    let log = vault_tools::read_log(toolbox.vault().state()).unwrap();
    let logged: Vec<&str> = log.iter().flat_map(|record| &record.left_out).map(String::as_str).collect();
    let hunk = "a person left out 1 of the 2 hunks in Long.md";
    assert_eq!(logged, ["a person left out item 2, b", hunk, hunk], "both steps that edit it");
    toolbox.vault().undo(None, Force::No).unwrap();
    assert_same(&vault.tree(), &before, "undone");
}

#[test]
fn what_depends_on_a_step_that_is_left_out_is_skipped() {
    let vault = vault();
    let mut toolbox = vault.toolbox();
    let without = [("edit", None), ("make", Some(0)), ("make", Some(1)), ("make", Some(2))];
    let chosen = previewed(&mut toolbox, &without);
    let skipped: Vec<&str> =
        chosen.steps.iter().filter(|step| step.state != StepState::Ready).map(|step| step.id.as_str()).collect();
    assert_eq!(skipped, ["make", "made", "edit", "after"]);
    run_plan(&mut toolbox, chosen.clone(), &mut seen, Cancel::default(), &mut |_| {}).unwrap();
    assert!(vault.read("Long.md").starts_with("first\n") && !vault.root().join("After.md").exists());
}

#[test]
fn what_is_left_is_bound_to_the_files_as_they_were_shown() {
    let vault = vault();
    let mut toolbox = vault.toolbox();
    let text = vault.read("Long.md").replace("first", "FIRST") + "LAST\n";
    let args = json!({ "path": "Long.md", "content": text, "mode": "replace" });
    let proposed = |toolbox: &mut Toolbox| {
        let mut proposal = toolbox.propose("write_note", args.clone(), Cancel::default()).unwrap();
        let mut files = proposal.separable_files();
        files[0].leave_out(0);
        proposal.keep(&files);
        proposal
    };
    let stale = proposed(&mut toolbox);
    vault.write("Long.md", vault.read("Long.md") + "more\n");
    assert_eq!(apply(&mut toolbox, stale, &Grants::default(), &mut seen).unwrap_err().kind(), ErrorKind::Conflict);
    let proposal = proposed(&mut toolbox);
    let version = proposal.output["version"].clone();
    let output = apply(&mut toolbox, proposal, &Grants::default(), &mut seen).unwrap();
    assert!(output.text().starts_with("note: a person left out 1 of the 2 hunks in Long.md\n"), "{}", output.text());
    // The next call can build on the version that the answer has.
    let next = json!({ "path": "Long.md", "content": "next", "expected_version": version });
    toolbox.call("append_to_note", next, &mut seen).unwrap();
    let log = vault_tools::read_log(toolbox.vault().state()).unwrap();
    assert!(log.iter().any(|record| record.left_out == ["a person left out 1 of the 2 hunks in Long.md"]));
}

#[test]
fn a_tag_is_renamed_in_some_notes_only() {
    let vault = TestVault::new("//- a.md\n#old\n//- b.md\n#old\n");
    let mut toolbox = vault.toolbox();
    let args = json!({ "tag": "old", "new_tag": "new" });
    let mut proposal = toolbox.propose("rename_tag", args, Cancel::default()).unwrap();
    let mut files = proposal.separable_files();
    files[0].leave_out(0);
    proposal.keep(&files);
    let output = apply(&mut toolbox, proposal, &Grants::default(), &mut seen).unwrap();
    assert_eq!((vault.read("a.md").as_str(), vault.read("b.md").as_str()), ("#old\n", "#new\n"));
    assert_eq!(output.left_out[0].path, "a.md");
}

#[test]
fn lines_that_move_are_one_hunk_or_none() {
    let lines: String = (0..20).map(|line| format!("line {line}\n")).collect();
    let vault = TestVault::new(&format!("//- a.md\n- [x] done\n{lines}# Done\n"));
    let mut toolbox = vault.toolbox();
    let args = json!({ "path": "a.md", "to_path": "a.md", "tasks": "done", "to_heading": "Done" });
    let proposal = toolbox.propose("move_lines", args, Cancel::default()).unwrap();
    assert_eq!(proposal.preview().files[0].diff.as_ref().unwrap().matches("\n@@ ").count(), 2);
    assert!(proposal.separable_files().is_empty(), "a line would be lost, or there twice");
}
