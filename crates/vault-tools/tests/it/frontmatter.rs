//! Frontmatter: shown as it stands, and never broken without a word.

use serde_json::json;
use vault_tools::approval::{Answer, PreparedChange};
use vault_tools::{ErrorKind, Force};

use crate::tools::call;
use crate::vault::{TestVault, assert_same, seen};

#[test]
fn no_change_breaks_frontmatter_unsaid() {
    let vault = TestVault::new("//- q.md\n---\ntitle: Q3\ntags: [a]\n---\ntext\n//- plain.md\ntext\n");
    let mut toolbox = vault.toolbox();
    let before = vault.tree();
    let edit = json!({ "path": "q.md", "old_text": "title: Q3", "new_text": "title: Q3: Planning" });
    let whole = json!({ "path": "q.md", "content": "---\ntitle: Q3: Planning\n---\n", "mode": "replace" });
    let file = json!({ "path": "q.md", "content": "---\ntitle: Q3: Planning\n---\n" });
    let calls = [
        ("edit_note", edit.clone(), "line 2: ", "allow_broken_frontmatter"),
        ("write_note", whole, "line 2: ", "allow_broken_frontmatter"),
        ("vault.writeFile", file, "line 2: ", "allowBrokenFrontmatter"),
        (
            "edit_note",
            json!({ "path": "q.md", "old_text": "[a]\n---", "new_text": "[a]" }),
            "not closed",
            "allow_broken",
        ),
    ];
    for (tool, mut args, why, argument) in calls {
        let error = toolbox.call(tool, args.clone(), &mut seen).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Frontmatter, "{tool}: {error}");
        assert!(error.message().contains(why), "{tool}: {error}");
        let remedy = error.remedy().unwrap();
        assert!(remedy.contains(argument), "{tool}: {error}");
        assert!(why != "line 2: " || remedy.contains("`title: \"Q3: Planning\"`"), "{tool}: {error}");
        assert_same(&vault.tree(), &before, tool);
        args[if tool == "vault.writeFile" { "allowBrokenFrontmatter" } else { "allow_broken_frontmatter" }] =
            json!(true);
        let output = toolbox.call(tool, args, &mut seen).unwrap();
        assert!(output.notices.iter().any(|said| said.contains("q.md") && said.contains(why)), "{:?}", output.notices);
        toolbox.vault().undo(None, Force::No).unwrap();
    }
    // Where nothing is lost, it is said: in the preview, and to the model.
    for (tool, args) in [
        (
            "write_note",
            json!({ "path": "new.md", "content": "---\ntitle: Ontology 101: A guide\n---\n", "mode": "create" }),
        ),
        ("write_note", json!({ "path": "plain.md", "content": "---\na: b: c\n---\n", "mode": "replace" })),
        ("vault.createFile", json!({ "path": "new 2.md", "content": "---\na: [b\n---\n" })),
    ] {
        let mut shown = String::new();
        let mut see = |change: &PreparedChange| {
            shown = change.preview().to_string();
            Answer::Yes
        };
        let output = toolbox.call(tool, args, &mut see).unwrap();
        assert!(output.notices.iter().any(|said| said.contains("line 2: ")), "{tool}: {:?}", output.notices);
        assert!(shown.contains("has no properties for Obsidian: line 2: "), "{tool}: {shown}");
    }
    // What was broken before can be edited; what stays as it is is not named again.
    let output = toolbox
        .call("edit_note", json!({ "path": "plain.md", "old_text": "b: c", "new_text": "b: d" }), &mut seen)
        .unwrap();
    assert!(output.notices.iter().any(|said| said.contains("line 2: ")), "{:?}", output.notices);
    let output = toolbox.call("append_to_note", json!({ "path": "plain.md", "content": "x" }), &mut seen).unwrap();
    assert!(!output.notices.iter().any(|said| said.contains("properties")), "{:?}", output.notices);
}

/// What a tool says to give back whole can be given back whole.
#[test]
fn metadata_shows_frontmatter_as_it_stands() {
    let text =
        "---\nb: 1\ntags: [keep, 42, two words, {meta}]\nTag: x\nalias: one\ncssclass: wide\nempty:\na: 2\n---\n";
    let vault = TestVault::new("//- n.md\n");
    vault.write("n.md", text);
    let mut toolbox = vault.toolbox();
    let shown = call(&mut toolbox, "get_note_metadata", json!({ "path": "n.md" }))["frontmatter"].clone();
    assert_eq!(
        shown.to_string(),
        r#"{"b":1,"tags":["keep",42,"two words",{"meta":null}],"Tag":"x","alias":"one","cssclass":"wide","empty":null,"a":2}"#
    );
    let mut tags = shown["tags"].clone();
    tags.as_array_mut().unwrap().push(json!("important"));
    call(&mut toolbox, "update_frontmatter", json!({ "path": "n.md", "updates": { "tags": tags } }));
    let again = call(&mut toolbox, "get_note_metadata", json!({ "path": "n.md" }))["frontmatter"].clone();
    assert_eq!(again["tags"], json!(["keep", 42, "two words", { "meta": null }, "important"]));
    assert_eq!(again.as_object().unwrap().len(), 7);
}
