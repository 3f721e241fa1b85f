//! Nothing is changed without a person's yes, and what they said yes to is what is done, once.

use serde_json::{Value, json};

use crate::stdio::{Client, Era, OLD, Place, detached, yes};

const NOTES: &str = "//- Log.md\n- begun\n//- Home.md\nSee [[Log]].\n";

fn append() -> Value {
    json!({ "path": "Log.md", "content": "- done" })
}

#[test]
fn a_client_of_the_newest_revision_asks_by_the_answer() {
    let place = Place::new(NOTES);
    let mut client = place.asking_client(Era::New, &[]);
    let before = place.tree();
    let question = client.call("append_to_note", append());
    assert_eq!(question["resultType"], "input_required");
    let request = &question["inputRequests"]["approve"];
    assert_eq!(request["method"], "elicitation/create");
    let message = request["params"]["message"].as_str().unwrap();
    for said in ["append_to_note in the vault Notes (risk: write)", "modify Log.md (+1 -0)", "+- done", "undone"] {
        assert!(message.contains(said), "{said}: {message}");
    }
    assert_eq!(request["params"]["requestedSchema"]["required"], json!(["approve"]));
    assert!(request["params"]["requestedSchema"]["properties"]["approve"].get("default").is_none());

    for (answer, said) in [
        (json!({ "action": "decline" }), "declined in the client"),
        (json!({ "action": "cancel" }), "not answered in the client"),
        (json!({ "action": "accept", "content": { "approve": false } }), "declined in the client"),
        (json!({ "action": "accept" }), "declined in the client"),
    ] {
        let question = client.call("append_to_note", append());
        let refused = client.call_again("append_to_note", append(), &question, answer);
        assert_eq!((&refused["isError"], &refused["structuredContent"]["status"]), (&json!(false), &json!("declined")));
        let said = format!("User cancelled tool execution: {said}; nothing was changed");
        assert_eq!(refused["structuredContent"]["message"], said, "{refused}");
    }
    assert_eq!(place.tree(), before);

    // The yes to one call is none to another, and holds once.
    let other = json!({ "path": "Log.md", "content": "- something else" });
    let refused = client.call_again("append_to_note", other, &question, yes());
    assert_eq!(refused["structuredContent"]["error"]["code"], "REFUSED");
    let done = client.call_again("append_to_note", append(), &question, yes());
    assert_eq!(done["structuredContent"]["transaction"], 1, "{done}");
    assert_eq!(place.read("Log.md"), "- begun\n- done\n");
    let again = client.call_again("append_to_note", append(), &question, yes());
    assert_eq!(again["structuredContent"]["error"]["code"], "REFUSED");
    assert_eq!(place.read("Log.md"), "- begun\n- done\n");
}

#[test]
fn notes_that_change_while_the_person_thinks_are_a_conflict() {
    let place = Place::new(NOTES);
    let mut client = place.asking_client(Era::New, &[]);
    let question = client.call("append_to_note", append());
    place.write("Log.md", "- begun\n- written meanwhile\n");
    let answer = client.call_again("append_to_note", append(), &question, yes());
    assert_eq!(answer["structuredContent"]["error"]["code"], "CONFLICT", "{answer}");
    assert_eq!(place.read("Log.md"), "- begun\n- written meanwhile\n");
}

#[test]
fn a_client_that_is_not_relied_on_is_not_asked() {
    for era in [Era::New, OLD] {
        let place = Place::new(NOTES);
        let mut client = place.asking_client(era, &["--ask-outside"]);
        client.answer = Some(yes());
        assert_eq!(client.done("append_to_note", append())["status"], "needs_approval");
        assert!(client.asked.is_empty() && place.read("Log.md") == "- begun\n");
    }
}

#[test]
fn a_state_of_another_server_is_refused() {
    let place = Place::new(NOTES);
    let question = place.asking_client(Era::New, &[]).call("append_to_note", append());
    let mut other = place.asking_client(Era::New, &[]);
    let answer = other.call_again("append_to_note", append(), &question, yes());
    assert_eq!(answer["structuredContent"]["error"]["code"], "REFUSED", "{answer}");
    assert_eq!(place.read("Log.md"), "- begun\n");
}

#[test]
fn an_older_client_is_asked_during_the_call() {
    for version in ["2025-06-18", "2025-11-25"] {
        let place = Place::new(NOTES);
        let mut client = place.asking_client(Era::Old(version), &[]);
        for answer in [json!({ "action": "decline" }), json!({ "action": "cancel" })] {
            client.answer = Some(answer);
            assert_eq!(client.done("append_to_note", append())["status"], "declined");
        }
        assert_eq!(client.asked.len(), 2);
        assert!(client.asked[0]["params"]["message"].as_str().unwrap().contains("+- done"));
        assert_eq!(place.read("Log.md"), "- begun\n");
        client.answer = Some(yes());
        assert_eq!(client.done("append_to_note", append())["transaction"], 1);
        assert_eq!(place.read("Log.md"), "- begun\n- done\n");
    }
}

#[test]
fn while_one_person_thinks_others_can_change_the_vault() {
    let place = Place::new(NOTES);
    let mut waiting = place.asking_client(OLD, &[]);
    waiting.answer = None;
    waiting.ask("tools/call", json!({ "name": "append_to_note", "arguments": append() }));
    let question = waiting.next();
    assert_eq!(question["method"], "elicitation/create");
    let mut other = place.asking_client(OLD, &[]);
    other.answer = Some(yes());
    other.done("append_to_note", json!({ "path": "Home.md", "content": "- other" }));
    // The same server answers too.
    let id = waiting.ask("tools/call", json!({ "name": "read_note", "arguments": { "path": "Home.md" } }));
    assert!(waiting.response(id)["result"]["structuredContent"]["content"].as_str().unwrap().contains("- other"));
}

/// The code under which a change waits.
#[track_caller]
fn code(answer: &Value) -> String {
    assert_eq!(answer["status"], "needs_approval", "{answer}");
    answer["code"].as_str().unwrap().to_owned()
}

#[cfg(unix)]
#[test]
fn without_forms_a_person_approves_at_a_terminal() {
    for era in [Era::New, OLD] {
        let place = Place::new(NOTES);
        let mut client = place.client(era, &[]);
        let before = place.tree();
        let first = code(&client.done("append_to_note", append()));
        // Asking again changes nothing, and is the same question.
        assert_eq!(code(&client.done("append_to_note", append())), first);
        assert_eq!(place.tree(), before);

        let (shown, exit) = place.approve(&first, "n");
        assert!(exit == 3 && shown.contains("+- done") && shown.contains("append_to_note (write)"), "{shown}");
        let second = code(&client.done("append_to_note", append()));
        assert_ne!(first, second);
        let (shown, exit) = place.approve(&first, "y");
        assert!(exit == 2 && shown.contains("no change is pending under the code"), "{shown}");

        let (shown, exit) = place.approve(&second.to_lowercase(), "y");
        assert!(exit == 0 && shown.contains("approved: tell the assistant to continue"), "{shown}");
        assert_eq!(place.tree(), before);
        assert_eq!(client.done("append_to_note", append())["transaction"], 1);
        assert_eq!(place.read("Log.md"), "- begun\n- done\n");
        // The yes was for one change.
        assert_ne!(code(&client.done("append_to_note", append())), second);
        assert_eq!(place.read("Log.md"), "- begun\n- done\n");
    }
}

#[test]
fn without_a_terminal_nobody_approves() {
    let place = Place::new(NOTES);
    let mut client = place.client(OLD, &[]);
    let code = code(&client.done("append_to_note", append()));
    for args in [vec!["approve", &*code], vec!["approve", "--yes", &code], vec!["approve", &code, "y"]] {
        let mut command = place.command(&args);
        // Of a session of its own, so that it has no terminal to ask on.
        let output = detached(&mut command).output().unwrap();
        assert!(!output.status.success(), "{args:?}");
    }
    assert_eq!(self::code(&client.done("append_to_note", append())), code);
    assert_eq!(place.read("Log.md"), "- begun\n");
}

#[cfg(unix)]
#[test]
fn a_yes_at_the_terminal_is_for_the_notes_as_they_were() {
    let place = Place::new(NOTES);
    let mut client = place.client(OLD, &[]);
    let asked = code(&client.done("append_to_note", append()));
    place.write("Log.md", "- begun\n- meanwhile\n");
    let (shown, exit) = place.approve(&asked, "y");
    assert!(exit == 3 && shown.contains("have changed since the assistant asked"), "{shown}");

    let asked = code(&client.done("append_to_note", append()));
    assert_eq!(place.approve(&asked, "y").1, 0);
    place.write("Log.md", "- begun\n- after the yes\n");
    let anew = code(&client.done("append_to_note", append()));
    assert_ne!(anew, asked);
    assert_eq!(place.read("Log.md"), "- begun\n- after the yes\n");
}

#[test]
fn plans_are_previewed_approved_and_undone_as_one() {
    let place = Place::new(NOTES);
    let mut client = place.asking_client(OLD, &[]);
    let before = place.tree();
    let step = |id: &str, path: &str| {
        let args = json!({ "path": path, "content": "${$steps.first.path}\n" });
        json!({ "id": id, "tool": "vault.createFile", "args": args })
    };
    let mut first = step("first", "One.md");
    first["args"]["content"] = json!("one\n");
    let plan = json!({ "version": "1.0", "goal": "Two notes", "riskLevel": "writes", "steps": [first, step("second", "Two.md")] });
    let preview = client.done("plan_preview", json!({ "plan": plan }));
    assert!(preview["needs_approval"] == true && preview["files"] == 2, "{preview}");
    assert!(preview["preview"].as_str().unwrap().contains("+One.md"), "{preview}");
    let id = json!({ "id": preview["id"] });
    assert_eq!(client.done("plan_apply", id.clone())["status"], "declined");
    assert_eq!(place.tree(), before);

    client.answer = Some(yes());
    let params = json!({ "name": "plan_apply", "arguments": id, "_meta": { "progressToken": "p" } });
    let done = client.result("tools/call", params);
    assert_eq!(done["structuredContent"]["done"], true, "{done}");
    assert_eq!(place.read("Two.md"), "One.md\n");
    let progress: Vec<&Value> = client.told.iter().filter(|it| it["method"] == "notifications/progress").collect();
    assert_eq!((progress.len(), &progress[1]["params"]["progress"]), (2, &json!(2.0)));

    // What was previewed was for the vault as it was.
    assert_eq!(client.error("plan_apply", json!({ "id": preview["id"] }))["code"], "CONFLICT");
    assert_eq!(client.error("plan_apply", json!({ "id": "nothing" }))["code"], "NOT_FOUND");

    assert_eq!(client.done("undo", json!({}))["undone"], 1);
    assert_eq!(place.tree(), before);
    let told = client.asked.last().unwrap()["params"]["message"].as_str().unwrap().to_owned();
    assert!(told.contains("undo transaction 1") && told.contains("delete Two.md"), "{told}");
    assert_eq!(client.error("undo", json!({}))["code"], "NOT_FOUND");
}

#[test]
fn what_a_person_allowed_at_the_start_is_not_asked_again() {
    let place = Place::new("//- Log.md\n- begun\n//- Old.md\nold\n");
    let mut client = place.client(OLD, &["--allow-write"]);
    assert_eq!(client.done("append_to_note", append())["transaction"], 1);
    // Nobody saw the diff, so a note is not replaced by the way.
    let error = client.error("write_note", json!({ "path": "Old.md", "content": "new\n" }));
    assert_eq!(error["code"], "EXISTS");
    place.configure("tools.toml", "allow_delete = true\n[tools]\nappend_to_note = \"always-ask\"\n");
    let mut client = place.client(OLD, &["--allow-write"]);
    assert_eq!(client.done("append_to_note", append())["status"], "needs_approval");
    assert_eq!(client.done("delete_note", json!({ "path": "Old.md" }))["status"], "needs_approval");
}

/// What the settings deny whatever its arguments is not offered; `--allow-delete` allows it, and it asks.
#[test]
fn deleting_is_offered_where_it_is_allowed() {
    let place = Place::new("//- Old.md\nold\n");
    let has_delete = |client: &mut Client| {
        let tools = client.result("tools/list", json!({}))["tools"].clone();
        tools.as_array().unwrap().iter().any(|tool| tool["name"] == "delete_note")
    };
    assert!(!has_delete(&mut place.client(OLD, &["--allow-write"])));
    let mut client = place.client(OLD, &["--allow-write", "--allow-delete"]);
    assert!(has_delete(&mut client));
    assert_eq!(client.done("delete_note", json!({ "path": "Old.md" }))["status"], "needs_approval");
    let mut client = place.asking_client(OLD, &["--allow-delete"]);
    client.answer = Some(yes());
    client.done("delete_note", json!({ "path": "Old.md" }));
    assert!(!place.vault().join("Old.md").exists() && place.vault().join(".trash/Old.md").exists());
    // What it undid, and what there is to undo.
    let error = client.error("undo", json!({ "transaction": 9999 }));
    assert!(error["remedy"].as_str().unwrap().contains("the newest are 1 ("), "{error}");
    let error = client.error("undo", json!({ "number": 9999 }));
    assert_eq!((&error["code"], &error["path"]), (&json!("INVALID_ARGUMENTS"), &json!("/number")));
    let undone = client.done("undo", json!({ "transaction": "1" }));
    assert_eq!(undone["paths"], json!(["Old.md"]));
    assert!(place.vault().join("Old.md").exists());
}

#[test]
fn objects_may_come_as_text() {
    let place = Place::new(NOTES);
    let mut client = place.asking_client(OLD, &[]);
    client.answer = Some(yes());
    let step = json!({ "id": "a", "tool": "vault.createFile", "args": { "path": "${name}.md", "content": "x" } });
    let plan = json!({ "version": "1.0", "goal": "g", "riskLevel": "writes", "steps": [step] });
    let preview = client.done("plan_preview", json!({ "plan": plan.to_string(), "parameters": "{\"name\": \"New\"}" }));
    assert!(preview["preview"].as_str().unwrap().contains("create New.md"), "{preview}");
    let updated =
        client.done("update_frontmatter", json!({ "path": "Log.md", "updates": "{\"tags\": \"[\\\"a\\\"]\"}" }));
    assert_eq!(updated["notices"].as_array().unwrap().len(), 2, "{updated}");
    assert_eq!(place.read("Log.md"), "---\ntags:\n  - a\n---\n- begun\n");
}

#[test]
fn a_client_that_asks_by_itself_can_be_trusted() {
    let place = Place::new(NOTES);
    let mut client = place.asking_client(OLD, &["--trust-client"]);
    let tools = client.result("tools/list", json!({}))["tools"].clone();
    for tool in tools.as_array().unwrap() {
        let hints = &tool["annotations"];
        assert_ne!(hints["readOnlyHint"] == true, hints["destructiveHint"] == true, "{tool}");
    }
    client.done("append_to_note", append());
    assert!(client.asked.is_empty());
    assert_eq!(place.read("Log.md"), "- begun\n- done\n");
}

#[test]
fn the_page_decides_with_the_key_that_came_with_the_change_and_once() {
    let place = Place::new(NOTES);
    let pages =
        json!({ "extensions": { "io.modelcontextprotocol/ui": { "mimeTypes": ["text/html;profile=mcp-app"] } } });
    let mut client = Client::of(place.command(&["mcp", "--approval-page"]), Era::New, pages);
    let code = code(&client.done("append_to_note", append()));
    let decide = |key: &str| json!({ "code": code, "key": key, "decision": "approve" });
    let without_key = json!({ "code": code, "decision": "approve" });
    assert_eq!(client.error("approve_change", without_key)["code"], "INVALID_ARGUMENTS");
    let open = |client: &mut Client| client.done("approve_change", json!({ "code": code }))["key"].clone();
    let (first, second) = (open(&mut client), open(&mut client));
    assert_eq!(client.error("approve_change", decide(first.as_str().unwrap()))["code"], "REFUSED");
    // That was the one try, so the key that would have been right is gone too.
    assert_eq!(client.error("approve_change", decide(second.as_str().unwrap()))["code"], "REFUSED");
    assert_eq!(client.done("append_to_note", append())["status"], "needs_approval");
    let third = open(&mut client);
    assert_eq!(client.done("approve_change", decide(third.as_str().unwrap()))["status"], "approved");
    assert_eq!(client.done("append_to_note", append())["transaction"], 1);
    assert_eq!(client.error("approve_change", decide(third.as_str().unwrap()))["code"], "NOT_FOUND");
    assert_eq!(place.read("Log.md"), "- begun\n- done\n");
}

#[test]
fn what_only_reads_has_no_tool_that_writes() {
    let place = Place::new(NOTES);
    let mut client = place.asking_client(OLD, &["--read-only", "--toolset", "notes,actions,bulk"]);
    let tools = client.result("tools/list", json!({}))["tools"].clone();
    assert!(tools.as_array().unwrap().iter().all(|tool| tool["annotations"]["readOnlyHint"] == true));
    for tool in ["append_to_note", "plan_apply", "undo", "vault_writeFile"] {
        let response = client.request("tools/call", json!({ "name": tool, "arguments": {} }));
        assert_eq!(response["error"]["code"], -32602, "{response}");
    }
}

#[test]
fn an_undo_says_nothing_of_a_denied_folder() {
    let place = Place::new("//- Private/Diary.md\nsecret words\n");
    let mut client = Client::of(place.command(&["mcp", "--allow-write"]), OLD, json!({}));
    client.done("append_to_note", json!({ "path": "Private/Diary.md", "content": "more" }));
    place.configure("tools.toml", "denied_paths = [\"Private\"]\n");
    let mut client = place.asking_client(OLD, &[]);
    client.answer = Some(yes());
    let error = client.error("undo", json!({}));
    assert_eq!(error["code"], "DENIED");
    assert!(!client.heard.contains("secret words") && !client.heard.contains("Diary"), "{}", client.heard);
}
