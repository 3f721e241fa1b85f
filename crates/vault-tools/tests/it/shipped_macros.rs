//! The macros that come with the program, each previewed, run and undone on the demo vault.

use std::path::Path;

use vault_tools::approval::{AutoApprover, run_plan};
use vault_tools::plan::{Parameters, PlanRun, RunStatus, dry_run, validate};
use vault_tools::{Cancel, Force, Macros};

use crate::vault::{TestVault, assert_same, tree};

/// Runs a macro on the demo vault with its defaults but for `set`, looks at what it did, and undoes it.
fn check(name: &str, set: &[(&str, &str)], look: impl FnOnce(&TestVault, &PlanRun)) {
    let demo = tree(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/vaults/demo"));
    check_on(&TestVault::of(&demo), name, set, look);
}

fn check_on(vault: &TestVault, name: &str, set: &[(&str, &str)], look: impl FnOnce(&TestVault, &PlanRun)) {
    let before = vault.tree();
    let mut toolbox = vault.toolbox();
    let shipped = Macros::new(toolbox.vault().state()).get(name).unwrap();
    let checked = validate(&shipped.plan, &toolbox).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut parameters = Parameters::of(&toolbox.editor().unwrap(), &toolbox.now());
    for parameter in shipped.parameters {
        assert!(checked.parameters.contains(&parameter.name), "{name} has no parameter {}", parameter.name);
        parameter.default.into_iter().for_each(|value| parameters.set(&parameter.name, value));
    }
    set.iter().for_each(|(parameter, value)| parameters.set(*parameter, *value));
    let shown = dry_run(&mut toolbox, &checked, &parameters, Cancel::default());
    let shown = shown.unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_same(&vault.tree(), &before, &format!("{name}: the preview"));
    let done = run_plan(&mut toolbox, shown.clone(), &mut AutoApprover, Cancel::default(), &mut |_| {}).unwrap();
    assert_eq!(done.status, RunStatus::Done, "{name}: {:?}", done.failed);
    look(vault, &done);
    toolbox.vault().undo(done.transaction, Force::No).unwrap();
    assert_same(&vault.tree(), &before, &format!("{name}: undone"));
}

#[test]
fn every_shipped_macro_is_valid_and_has_its_parameters() {
    let vault = TestVault::new("//- a.md\nx\n");
    let toolbox = vault.toolbox();
    let shipped = Macros::shipped();
    let refused = Macros::new(toolbox.vault().state()).delete(&shipped[0].name).unwrap_err();
    assert!(refused.to_string().contains("comes with the program"), "{refused}");
    assert_eq!(
        shipped.len(),
        std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/macros")).unwrap().count()
    );
    assert!(shipped.is_sorted_by(|a, b| a.name < b.name));
    for shipped in shipped {
        let checked = validate(&shipped.plan, &toolbox).unwrap_or_else(|error| panic!("{}: {error}", shipped.name));
        let mut needed: Vec<String> = checked.parameters.into_iter().filter(|name| name != "today").collect();
        let mut given: Vec<String> = shipped.parameters.into_iter().map(|parameter| parameter.name).collect();
        needed.sort();
        given.sort();
        assert_eq!(needed, given, "{}", shipped.name);
    }
}

#[test]
fn inbox_to_notes() {
    check("inbox-to-notes", &[("inboxNote", "Daily/2026-03-15.md")], |vault, _| {
        let inbox = vault.read("Daily/2026-03-15.md");
        assert!(inbox.contains("- [[Notes/Broadband|Broadband]]\n") && inbox.contains("## Tomorrow\n"), "{inbox}");
        let note = vault.read("Notes/write to Pastor Lindqvist about the hall for the concert.md");
        assert!(note.contains("[[Ideas#^house-concert|the concert]]") && note.contains("2026-03-02"), "{note}");
    });
}

#[test]
fn an_inbox_with_lines_of_one_name_links_and_marks_of_plans() {
    let vault = TestVault::new("");
    vault.write("Inbox.md", "- milk\n- [ ] milk\n- \n- ${today} $steps.x\n- [[Notes/old|old]]\n- [[old]] again\n");
    vault.write("Notes/old.md", "old\n");
    check_on(&vault, "inbox-to-notes", &[], |vault, done| {
        assert!(done.left_out.is_empty(), "{:?}", done.left_out);
        let inbox = "- [[Notes/milk|milk]]\n- [[Notes/milk|milk]]\n- \n\
            - [[Notes/${today} $steps.x|${today} $steps.x]]\n- [[Notes/old|old]]\n- [[Notes/old again|old again]]\n";
        assert_eq!(vault.read("Inbox.md"), inbox);
        assert!(vault.read("Notes/milk.md").ends_with("\n\nmilk\n\nmilk\n"));
        assert_eq!(vault.read("Notes/old.md"), "old\n");
    });
}

#[test]
fn tag_cleanup() {
    check("tag-cleanup", &[("tag", "garden"), ("newTag", "allotment")], |vault, _| {
        let note = vault.read("Garden/Index.md");
        assert!(note.contains("  - allotment\n") && note.contains("#allotment #🌱"), "{note}");
        assert!(vault.read("About this vault.md").contains("#allotment/pruning"));
    });
}

#[test]
fn weekly_review() {
    check("weekly-review", &[("since", "2026-01-01")], |vault, _| {
        let note = vault.read("Reviews/Week to 2026-03-02.md");
        let (changed, tasks) = note.split_once("## Notes with open tasks\n").unwrap();
        assert!(changed.contains("- [[Garden/Index|Plot 23]]\n"), "{note}");
        assert!(tasks.contains("- [[2026-03-14]]\n") && !tasks.contains("2026-03-05"), "{note}");
        assert_eq!(tasks.matches("Spring check").count(), 1, "each note once: {tasks}");
    });
}

#[test]
fn folder_index() {
    // The note is there and stays; of the notes in the folder it is the only one without a link to it.
    check("folder-index", &[("folderName", "Garden")], |vault, _| {
        let note = vault.read("Garden/Index.md");
        assert!(note.contains("## All notes\n\n- [[A year in the garden]]\n"), "{note}");
        assert!(note.contains("- [[Tomatoes]]\n") && note.contains("# Plot 23\n"), "{note}");
        assert!(!note.contains("|Index]]"), "{note}");
    });
    check("folder-index", &[("folderName", "Money"), ("index", "All")], |vault, _| {
        assert!(vault.read("Money/All.md").starts_with("# Money\n\n## All notes\n\n- [[Compound interest]]"));
    });
}

#[test]
fn broken_links() {
    check("broken-links", &[], |vault, _| {
        let note = vault.read("Reports/Broken links 2026-03-02.md");
        assert!(note.contains("- [[Reading/Index.md]], line 18: `Moby-Dick`\n"), "{note}");
        assert!(!note.contains("Tomatoes"), "{note}");
    });
}

#[test]
fn archive_done_tasks() {
    check("archive-done-tasks", &[], |vault, done| {
        let archive = vault.read("Archive/Done tasks.md");
        assert!(archive.contains("## Done by 2026-03-02\n"), "{archive}");
        assert!(
            archive.contains("- [x] plates upright\n") && !archive.contains("[ ] write the new address"),
            "{archive}"
        );
        let daily = vault.read("Daily/2026-03-12.md");
        assert!(!daily.contains("[x]") && daily.contains("- [ ] write the new address"), "{daily}");
        assert!(done.left_out.is_empty(), "{:?}", done.left_out);
    });
}
