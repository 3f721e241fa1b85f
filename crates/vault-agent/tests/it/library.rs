//! The toolset `library` over MCP: macros as tools and prompts, and changes that say what they touch.

use serde_json::{Value, json};

use crate::stdio::{Client, OLD, Place, yes};

const NOTES: &str = "//- Roses.md\nSee [[Soil]].\n//- Soil.md\nClay.\n//- Log.md\n[[Soil]] and [[Soil|clay]]\n";

fn tools(client: &mut Client) -> Vec<Value> {
    client.result("tools/list", json!({}))["tools"].as_array().unwrap().clone()
}

fn has(tools: &[Value], name: &str) -> bool {
    tools.iter().any(|tool| tool["name"] == name)
}

#[test]
fn library_is_offered_when_it_is_named() {
    let place = Place::new(NOTES);
    let default = tools(&mut place.client(OLD, &[]));
    for name in ["list_tags", "suggest_links", "run_macro", "list_macros", "restore_note"] {
        assert!(!has(&default, name), "{name}");
    }
    let mut client = place.client(OLD, &["--toolset", "notes,library"]);
    let library = tools(&mut client);
    for name in ["list_tags", "suggest_links", "set_link", "run_macro", "list_macros", "restore_note", "lint_vault"] {
        assert!(has(&library, name), "{name}");
    }
    let reads = tools(&mut place.client(OLD, &["--toolset", "library", "--read-only"]));
    assert!(has(&reads, "list_macros") && !has(&reads, "run_macro") && !has(&reads, "set_link"));
    let broken = client.done("list_broken_links", json!({}));
    assert_eq!(broken["result"], json!([]));
}

#[test]
fn a_macro_is_a_tool_and_a_prompt() {
    let place = Place::new("//- Inbox.md\n- Alpha\n- Beta\n");
    let mut client = place.asking_client(OLD, &["--toolset", "library"]);
    let listed = client.done("list_macros", json!({ "name": "inbox" }));
    let named = &listed["macros"][0];
    assert_eq!(named["name"], "inbox-to-notes", "{listed}");
    let prompts = client.result("prompts/list", json!({}))["prompts"].clone();
    let prompt = prompts.as_array().unwrap().iter().find(|prompt| prompt["name"] == "inbox-to-notes");
    assert!(prompt.is_some(), "{prompts}");
    let got = client.result("prompts/get", json!({ "name": "inbox-to-notes", "arguments": { "x": "y" } }));
    assert!(got.to_string().contains("run_macro"), "{got}");
    let error = client.error("run_macro", json!({ "name": "inbox-to-notes", "parameters": { "nothing": "x" } }));
    assert_eq!(error["path"], "/parameters", "{error}");
    let error = client.error("run_macro", json!({ "name": "no such" }));
    assert_eq!(error["code"], "NOT_FOUND", "{error}");
    client.answer = Some(yes());
    let parameters: serde_json::Map<String, Value> = named["parameters"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|parameter| parameter["default"].is_null())
        .map(|parameter| (parameter["name"].as_str().unwrap().to_owned(), json!("Inbox.md")))
        .collect();
    client.done("run_macro", json!({ "name": "inbox-to-notes", "parameters": parameters }));
    let made = std::fs::read_dir(place.vault()).unwrap().count();
    assert!(made > 1, "no note or folder was made");
}

#[test]
fn a_change_can_be_required_to_say_what_it_touches() {
    let place = Place::new(NOTES);
    let mut client = place.client(OLD, &["--allow-write", "--require-expect"]);
    let all = tools(&mut client);
    for tool in &all {
        let writes = tool["annotations"]["readOnlyHint"] == false;
        let requires = tool["inputSchema"]["required"].as_array().is_some_and(|all| all.contains(&json!("expect")));
        assert_eq!(requires, writes && tool["name"] != "undo", "{tool}");
    }
    let rename = |expect: Value| json!({ "path": "Soil.md", "new_path": "Earth.md", "expect": expect });
    let error = client.error("rename_note", json!({ "path": "Soil.md", "new_path": "Earth.md" }));
    assert_eq!(error["path"], "/expect", "{error}");
    let error = client.error("rename_note", rename(json!({ "notes": 3, "links": 2 })));
    assert!(error["message"].as_str().unwrap().contains("3 notes and 3 links"), "{error}");
    assert!(place.vault().join("Soil.md").exists());
    client.done("rename_note", rename(json!({ "notes": 3, "links": 3 })));
    let step = json!({ "id": "a", "tool": "append_to_note", "args": { "path": "Log.md", "content": "[[Roses]]" } });
    let plan = json!({ "version": "1.0", "goal": "g", "riskLevel": "writes", "steps": [step] });
    let id = client.done("plan_preview", json!({ "plan": plan }))["id"].clone();
    assert_eq!(client.error("plan_apply", json!({ "id": id }))["path"], "/expect");
    let error = client.error("plan_apply", json!({ "id": id, "expect": { "notes": 2 } }));
    assert_eq!(error["code"], "REFUSED", "{error}");
    client.done("plan_apply", json!({ "id": id, "expect": { "notes": 1, "links": 1 } }));
    assert!(place.read("Log.md").ends_with("[[Roses]]\n"));
    // Where it is not required, it counts all the same.
    let mut client = place.client(OLD, &["--allow-write"]);
    let id = client.done("plan_preview", json!({ "plan": plan }))["id"].clone();
    let error = client.error("plan_apply", json!({ "id": id, "expect": { "notes": 2 } }));
    assert_eq!(error["code"], "REFUSED", "{error}");
    client.done("plan_apply", json!({ "id": id, "expect": { "notes": 1 } }));
}
