//! Laws of plans: what runs is what the preview said, undo gives the vault before, redo the vault after.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};
use vault_tools::approval::run_plan;
use vault_tools::plan::{CallId, Parameters, RunStatus, dry_run, dry_run_without, validate};
use vault_tools::{Cancel, Editor, Force, Leaf, PolicySettings, Position, SafePath};

use crate::vault::{TestVault, Tree, assert_same, seen};

const PATHS: [&str; 7] = ["a.md", "b.md", "F/a.md", "F/c.md", "F/G/d.md", "pic.png", "H/e.md"];
const FOLDERS: [&str; 4] = ["F", "F/G", "H", "New/Folder"];
const TEXTS: [&str; 8] = [
    "",
    "plain\n",
    "[[a]] and [[F/a|x]]\n",
    "![[d#H]] [y](F/c.md)\r\n",
    "---\ntags: t\n---\n[[c]]\n",
    "no end",
    "- x\n- y\n",
    "🚲\n",
];

fn path() -> impl Strategy<Value = String> {
    prop_oneof![3 => proptest::sample::select(&PATHS[..]), 1 => Just("new.md"), 1 => Just("F/new.md")]
        .prop_map(String::from)
}

fn text() -> impl Strategy<Value = String> {
    proptest::sample::select(&TEXTS[..]).prop_map(String::from)
}

fn folder() -> impl Strategy<Value = String> {
    proptest::sample::select(&FOLDERS[..]).prop_map(String::from)
}

fn collision() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(&["error", "create-unique", "overwrite"][..])
}

/// A tool and its arguments.
fn call() -> impl Strategy<Value = (&'static str, Value)> {
    prop_oneof![
        folder().prop_map(|path| ("vault.ensureFolder", json!({ "path": path }))),
        (path(), text(), collision()).prop_map(|(path, content, collision)| {
            ("vault.createFile", json!({ "path": path, "content": content, "collisionStrategy": collision }))
        }),
        (path(), text(), any::<bool>()).prop_map(|(path, content, append)| {
            let mode = if append { "append" } else { "overwrite" };
            ("vault.writeFile", json!({ "path": path, "content": content, "mode": mode }))
        }),
        (path(), path(), collision()).prop_map(|(from, to, collision)| {
            ("vault.rename", json!({ "fromPath": from, "toPath": to, "collisionStrategy": collision }))
        }),
        (folder(), folder()).prop_map(|(from, to)| ("vault.rename", json!({ "fromPath": from, "toPath": to }))),
        (path(), any::<bool>()).prop_map(|(path, trash)| ("vault.delete", json!({ "path": path, "trash": trash }))),
        (folder(), any::<bool>()).prop_map(|(path, trash)| ("vault.delete", json!({ "path": path, "trash": trash }))),
        text().prop_map(|text| ("editor.insertAtCursor", json!({ "text": text }))),
        text().prop_map(|text| ("editor.replaceSelection", json!({ "text": text }))),
        (path(), text()).prop_map(|(path, text)| {
            ("append_to_note", json!({ "path": path, "content": format!("{text}."), "heading": "H" }))
        }),
        path().prop_map(|path| ("update_frontmatter", json!({ "path": path, "updates": { "k": "v", "tags": null } }))),
    ]
}

fn vault() -> impl Strategy<Value = Tree> {
    proptest::collection::btree_map(path(), text().prop_map(String::into_bytes), 1..6)
}

/// When a file was written is known only when it is.
fn without_times(output: &Value) -> Value {
    match output {
        Value::Object(fields) => {
            let others = fields.iter().filter(|(name, _)| *name != "mtimeMs");
            Value::Object(others.map(|(name, value)| (name.clone(), without_times(value))).collect())
        }
        Value::Array(entries) => Value::Array(entries.iter().map(without_times).collect()),
        other => other.clone(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whole, or without what a person leaves out of it.
    #[test]
    fn a_plan_run_undone_and_redone(
        files in vault(),
        calls in proptest::collection::vec(call(), 1..8),
        left_out in prop_oneof![Just(0), any::<u32>()],
    ) {
        let vault = TestVault::of(&files);
        let before = vault.tree();
        let mut editor = Editor::default();
        if let Some(path) = files.keys().next() {
            editor.show(&SafePath::new(path).unwrap(), Leaf::Current);
            editor.cursor = Some(Position::default());
        }
        let mut policy = PolicySettings::default();
        policy.allow_delete = true;
        let mut toolbox = vault.toolbox_with(editor, &policy);
        let steps: Vec<Value> = calls
            .iter()
            .enumerate()
            .map(|(n, (tool, args))| {
                let mut step = json!({ "id": format!("s{n}"), "tool": tool, "args": args, "onError": "skip" });
                // A loop of one call.
                if n % 3 == 1 {
                    let filter = json!({ "value": "${item}", "equals": "y", "not": true });
                    step["foreach"] = json!({ "from": ["x", "y", "x"], "filter": filter, "unique": "${item}" });
                }
                if n % 3 == 2 {
                    step["if"] = json!({ "value": format!("$steps.s{}.items[*]", n - 1), "empty": false });
                }
                step
            })
            .collect();
        let plan = json!({ "version": "1.1", "goal": "a law", "riskLevel": "writes", "steps": steps });
        let checked = validate(&plan, &toolbox).unwrap();
        let shown = dry_run(&mut toolbox, &checked, &Parameters::default(), Cancel::default()).unwrap();
        let is_left_out = |part: usize| left_out >> (part % 32) & 1 == 1;
        let mut part = 0;
        let mut next = || {
            part += 1;
            is_left_out(part)
        };
        let without: BTreeSet<CallId> =
            shown.separable_calls().into_iter().filter(|_| next()).map(|call| call.id).collect();
        let parameters = Parameters::default();
        let mut chosen = dry_run_without(&mut toolbox, &checked, &parameters, &without, Cancel::default()).unwrap();
        prop_assert!(!without.is_empty() || chosen.digest == shown.digest);
        let mut edited = chosen.separable_files();
        for file in &mut edited {
            (0..file.hunks().len()).filter(|_| next()).for_each(|hunk| file.leave_out(hunk));
        }
        let digest = chosen.digest.clone();
        chosen.keep(&edited).unwrap();
        prop_assert_eq!(edited.iter().any(|file| file.left_out().is_some()), chosen.digest != digest);
        let shown = chosen;
        assert_same(&vault.tree(), &before, "the preview changed something");
        let done = run_plan(&mut toolbox, shown.clone(), &mut seen, Cancel::default(), &mut |_| {}).unwrap();
        prop_assert_eq!(done.status, RunStatus::Done);
        for step in &shown.steps {
            if let Some(output) = done.outputs.get(&step.id) {
                prop_assert_eq!(without_times(output), without_times(&step.output));
            }
        }
        let after = vault.tree();
        for file in edited.iter().filter(|file| file.left_out().is_some_and(|left_out| left_out.hunks == left_out.of)) {
            prop_assert_eq!(after.get(file.path().as_str()), before.get(file.path().as_str()));
        }
        if done.transaction.is_none() {
            assert_same(&after, &before, "nothing was done");
            return Ok(());
        }
        toolbox.vault().undo(None, Force::No).unwrap();
        assert_same(&vault.tree(), &before, "after undo");
        toolbox.vault().redo(Force::No).unwrap();
        assert_same(&vault.tree(), &after, "after redo");
        toolbox.vault().undo(None, Force::No).unwrap();
        assert_same(&vault.tree(), &before, "after a second undo");
    }
}
