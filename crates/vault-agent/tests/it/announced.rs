//! What tools announce of themselves: a title, and what calls of them really do.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};

use crate::stdio::{Client, Era, OLD, Place, Tree, yes};

const NOTES: &str =
    "//- a.md\n---\ntags: [a, c]\nlist: [x]\n---\n# A\nold #a\n\n- [x] done\n\n# B\ntext\n//- b.md\nSee [[a]].\n";

const ALL: [&str; 2] = ["--toolset", "notes,actions,bulk,chat"];

/// Tools that need an editor around the vault, and whether they can lose something there.
const OF_EDITORS: [(&str, bool); 3] =
    [("editor_replaceSelection", true), ("editor_insertAtCursor", false), ("commands_run", true)];

/// Calls of all tools that write: those that lose most, and those that do most when they are made again.
fn writes() -> Vec<(&'static str, Value)> {
    let delete = json!({ "id": "one", "tool": "vault.delete", "args": { "path": "a.md" } });
    let plan = json!({ "version": "1.0", "goal": "x", "riskLevel": "writes", "steps": [delete] });
    let insert = |position: &str| json!({ "path": "a.md", "content": "more", "position": position, "heading": "A" });
    let rename = json!([{ "from": "a", "to": "a/b" }]);
    vec![
        ("write_note", json!({ "path": "a.md", "content": "new\n", "mode": "replace" })),
        ("write_note", json!({ "path": "new.md", "content": "new\n" })),
        ("update_frontmatter", json!({ "path": "a.md", "updates": { "list": ["y"], "tags": null } })),
        ("edit_list_property", json!({ "path": "a.md", "property": "list", "add": ["y"], "remove": ["x"] })),
        ("edit_list_property", json!({ "path": "a.md", "property": "list", "add": ["y"], "remove": ["y"] })),
        ("create_daily_note", json!({ "content": "- more" })),
        ("create_periodic_note", json!({ "period": "week", "content": "- more" })),
        ("rename_note", json!({ "path": "a.md", "new_path": "c.md" })),
        ("delete_note", json!({ "path": "a.md" })),
        ("edit_note", json!({ "path": "a.md", "old_text": "old", "new_text": "older" })),
        ("append_to_note", json!({ "path": "a.md", "content": "more" })),
        ("append_to_note", json!({ "path": "a.md", "content": "more", "heading": "A" })),
        ("insert_in_note", insert("before")),
        ("insert_in_note", insert("start")),
        ("insert_in_note", insert("end")),
        ("replace_section", json!({ "path": "a.md", "heading": "A", "content": "new\n\n# C\nmore\n" })),
        ("edit_tags", json!({ "path": "a.md", "rename": rename })),
        ("rename_tag", json!({ "tag": "a", "new_tag": "a/b" })),
        ("merge_notes", json!({ "path": "b.md", "into": "a.md" })),
        ("move_lines", json!({ "path": "a.md", "to_path": "b.md", "tasks": "done" })),
        ("vault_ensureFolder", json!({ "path": "x/y" })),
        ("vault_createFile", json!({ "path": "a.md", "content": "new\n", "collisionStrategy": "overwrite" })),
        ("vault_createFile", json!({ "path": "a.md", "content": "new\n", "collisionStrategy": "create-unique" })),
        ("vault_writeFile", json!({ "path": "a.md", "content": "new\n" })),
        ("vault_writeFile", json!({ "path": "a.md", "content": "more\n", "mode": "append" })),
        ("vault_rename", json!({ "fromPath": "a.md", "toPath": "b.md", "collisionStrategy": "overwrite" })),
        ("vault_delete", json!({ "path": "a.md" })),
        ("plan_apply", json!({ "plan": plan })),
        ("undo", json!({ "path": "a.md", "content": "more" })),
    ]
}

/// The arguments of a call, after what has to come before it.
fn prepared(client: &mut Client, tool: &str, args: Value) -> Value {
    match tool {
        "plan_apply" => json!({ "id": client.done("plan_preview", args)["id"] }),
        "undo" => {
            client.done("append_to_note", args);
            json!({})
        }
        _ => args,
    }
}

/// Whether all lines of all files are still there, in their order.
fn is_kept(before: &Tree, after: &Tree) -> bool {
    let lines = |file: &[u8]| -> Vec<Vec<u8>> { file.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect() };
    let kept = |path: &Path, file: &[u8]| {
        let mut now = after.get(path).map(|file| lines(file)).unwrap_or_default().into_iter();
        lines(file).iter().filter(|line| !line.is_empty()).all(|line| now.any(|other| other == *line))
    };
    before.iter().all(|(path, file)| kept(path, file))
}

fn tools(client: &mut Client) -> Vec<Value> {
    client.result("tools/list", json!({}))["tools"].as_array().unwrap().clone()
}

#[test]
fn tools_that_write_do_what_they_announce() {
    let (mut losing, mut repeating) = (BTreeSet::new(), BTreeSet::new());
    let mut called = BTreeSet::new();
    for (tool, args) in writes() {
        let place = Place::new(NOTES);
        place.configure("tools.toml", "allow_delete = true\n");
        let mut client = place.asking_client(OLD, &ALL);
        client.answer = Some(yes());
        let args = prepared(&mut client, tool, args);
        let before = place.tree();
        client.done(tool, args.clone());
        let after = place.tree();
        if !is_kept(&before, &after) {
            losing.insert(tool);
        }
        client.call(tool, args);
        if place.tree() != after {
            repeating.insert(tool);
        }
        called.insert(tool);
    }
    let of_editors = BTreeMap::from(OF_EDITORS);
    for tool in tools(&mut Place::new(NOTES).client(Era::New, &ALL)) {
        let (name, hints) = (tool["name"].as_str().unwrap(), &tool["annotations"]);
        assert_eq!(hints["openWorldHint"], false, "{name}");
        if hints["readOnlyHint"] == true {
            assert!(hints["destructiveHint"].is_null() && hints["idempotentHint"].is_null(), "{name}");
            continue;
        }
        let loses = of_editors.get(name).copied().unwrap_or_else(|| losing.contains(name));
        assert!(called.contains(name) || of_editors.contains_key(name), "no call of {name}");
        assert_eq!(hints["destructiveHint"], loses, "{name}");
        assert!(hints["idempotentHint"] == false || !repeating.contains(name), "{name}");
    }
}

#[test]
fn tools_that_read_change_nothing() {
    let place = Place::new(NOTES);
    let mut client = place.client(OLD, &ALL);
    let before = place.tree();
    let reading = tools(&mut client).into_iter().filter(|tool| tool["annotations"]["readOnlyHint"] == true);
    for tool in reading {
        let required = tool["inputSchema"]["required"].as_array().cloned().unwrap_or_default();
        let value = |name: &str| match (name, &tool["inputSchema"]["properties"][name]["type"]) {
            ("path", _) => json!("a.md"),
            ("tags", _) => json!(["a"]),
            (_, kind) if kind == "array" => json!(["a.md"]),
            _ => json!("old"),
        };
        let mut args: Value =
            required.iter().map(|name| name.as_str().unwrap()).map(|name| (name, value(name))).collect();
        if tool["name"] == "read_note" {
            args = json!({ "paths": ["a.md"] });
        }
        client.done(tool["name"].as_str().unwrap(), args);
        assert_eq!(place.tree(), before, "{}", tool["name"]);
    }
}

#[test]
fn every_tool_has_a_title() {
    let place = Place::new(NOTES);
    let pages = json!({ "mimeTypes": ["text/html;profile=mcp-app"] });
    let capabilities = json!({ "extensions": { "io.modelcontextprotocol/ui": pages } });
    let command = place.command(&[&["mcp", "--approval-page"], &ALL[..]].concat());
    let tools = tools(&mut Client::of(command, OLD, capabilities));
    let titles: BTreeMap<&str, &str> = tools
        .iter()
        .map(|tool| (tool["name"].as_str().unwrap(), tool["title"].as_str().unwrap_or_else(|| panic!("{tool}"))))
        .collect();
    for (name, title) in [
        ("read_note", "Read note"),
        ("get_note_metadata", "Get note metadata"),
        ("vault_ensureFolder", "Vault: ensure folder"),
        ("editor_getActiveFilePath", "Editor: get active file path"),
        ("plan_apply", "Plan apply"),
        ("undo", "Undo"),
        ("approve_change", "Approve a change"),
    ] {
        assert_eq!(titles[name], title);
    }
    assert_eq!(titles.values().collect::<BTreeSet<_>>().len(), tools.len(), "{titles:?}");
    assert!(titles.values().all(|title| title.len() <= 32 && !title.contains('_')), "{titles:?}");
}
