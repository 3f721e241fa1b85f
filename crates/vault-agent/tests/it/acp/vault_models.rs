//! The methods `_vault/…` for the model of conversations, and the approvals that clients show by themselves.

use serde_json::{Value, json};

use super::editor::{Editor, agent, everything, options, selected};
use super::vault::{refused, result};
use crate::model_server::{ModelServer, Reply};
use crate::stdio::Place;

const NOTES: &str = "//- Home.md\n# Home\n\nfirst\n";

/// What an editor declares that shows approvals by itself.
fn with_approvals() -> Value {
    let mut capabilities = everything();
    capabilities["_meta"] = json!({ "vault": { "approvals": true } });
    capabilities
}

/// The approval of a permission request, which fits the schema.
fn approval(asked: &Value) -> Value {
    let approval = asked["toolCall"]["_meta"]["vault"].clone();
    super::vault::fits(&json!({ "$ref": "#/$defs/Approval" }), &approval, "approval");
    approval
}

#[test]
fn an_approval_has_its_risk_its_files_and_the_parts_that_can_be_left_out() {
    let place = Place::new(NOTES);
    let long = format!("top\n{}bottom\n", "line\n".repeat(20));
    place.write("Long.md", &long);
    let content = long.replace("top", "TOP").replace("bottom", "BOTTOM");
    let args = json!({ "path": "Long.md", "mode": "replace", "content": content });
    let model = ModelServer::with([Reply::call("write_note", args), Reply::text("Done.")]);
    let mut editor = Editor::start(agent(&place, &model, &[]), with_approvals());
    let session = editor.session(&place.vault());
    let mut chosen = ["pick", "allow"].into_iter();
    editor.answers(move |method, params| match method {
        "session/request_permission" => {
            let choice = chosen.next().unwrap();
            assert!(options(params).iter().any(|option| option == choice));
            Some(selected(choice))
        }
        _ => Some(json!({ "action": "accept", "content": { "ticked": ["1"] } })),
    });
    editor.say(&session, "Go");
    assert_eq!(place.read("Long.md"), long.replace("bottom", "BOTTOM"));
    let asked = editor.asked_with("session/request_permission");
    let first = approval(&asked[0]);
    assert_eq!((&first["tool"], &first["risk"]), (&json!("write_note"), &json!("write")));
    assert!(first["purpose"].as_str().unwrap().len() > 10, "{first}");
    assert!(first["undo"].as_str().unwrap().contains("can be undone"), "{first}");
    assert!(first["leaves"].as_str().unwrap().contains("stays on this machine"), "{first}");
    assert_eq!((&first["files"][0]["path"], &first["files"][0]["kind"]), (&json!("Long.md"), &json!("modified")));
    let parts = first["parts"].as_array().unwrap();
    assert_eq!(parts.len(), 2);
    assert!(
        parts[0]["diff"].as_str().unwrap().contains("+TOP") && parts[1]["diff"].as_str().unwrap().contains("+BOTTOM")
    );
    let left = approval(&asked[1]);
    assert!(!left["files"][0]["diff"].as_str().unwrap().contains("TOP\n"), "what is left is shown again: {left}");
}

#[test]
fn what_was_left_out_stays_left_out_when_more_is() {
    let place = Place::new("//- A.md\n#old a\n//- B.md\n#old b\n//- C.md\n#old c\n");
    let model =
        ModelServer::with([Reply::call("rename_tag", json!({ "tag": "old", "new_tag": "new" })), Reply::text("Done.")]);
    let mut editor = Editor::start(agent(&place, &model, &["--toolset", "bulk"]), with_approvals());
    let session = editor.session(&place.vault());
    let mut chosen = ["pick", "pick", "allow"].into_iter();
    let mut ticked = [json!(["1", "2"]), json!(["1"])].into_iter();
    editor.answers(move |method, _| match method {
        "session/request_permission" => Some(selected(chosen.next().unwrap())),
        _ => Some(json!({ "action": "accept", "content": { "ticked": ticked.next().unwrap() } })),
    });
    editor.say(&session, "Go");
    assert_eq!((place.read("A.md"), place.read("B.md")), ("#old a\n".into(), "#old b\n".into()));
    assert_eq!(place.read("C.md"), "#new c\n");
}

#[test]
fn parts_that_were_left_out_are_said_to_be_there_again() {
    let place = Place::new(NOTES);
    let long = format!("top\n{}bottom\n", "line\n".repeat(20));
    place.write("Long.md", &long);
    let content = long.replace("top", "TOP").replace("bottom", "BOTTOM");
    let args = json!({ "path": "Long.md", "mode": "replace", "content": content });
    let model = ModelServer::with([Reply::call("write_note", args), Reply::text("Done.")]);
    let mut editor = Editor::start(agent(&place, &model, &[]), with_approvals());
    let session = editor.session(&place.vault());
    let mut chosen = ["prepare_again", "pick", "prepare_again", "reject"].into_iter();
    editor.answers(move |method, _| match method {
        "session/request_permission" => Some(selected(chosen.next().unwrap())),
        _ => Some(json!({ "action": "accept", "content": { "ticked": ["1"] } })),
    });
    editor.say(&session, "Go");
    let asked: Vec<Value> = editor.asked_with("session/request_permission").iter().map(approval).collect();
    let parts = |at: usize| asked[at]["parts"].as_array().unwrap().len();
    assert_eq!((parts(1), parts(3)), (2, 2));
    assert_eq!((&asked[1]["problem"], &asked[2]["problem"]), (&Value::Null, &Value::Null));
    assert_eq!(asked[3]["problem"], "The parts that you left out are in the change again.");
}

#[test]
fn an_approval_is_sent_to_clients_that_ask_for_it_and_says_why_it_is_asked_again() {
    let place = Place::new(NOTES);
    let appends = || Reply::call("append_to_note", json!({ "path": "Home.md", "content": "x" }));
    let model = ModelServer::with([appends(), Reply::text("Done."), appends(), Reply::text("Done.")]);
    let mut editor = Editor::able(&place, &model);
    let session = editor.session(&place.vault());
    editor.chooses("reject");
    editor.say(&session, "Go");
    assert!(editor.asked[0].1["toolCall"]["_meta"].is_null(), "others get no more than the protocol has");
    let mut editor = Editor::start(agent(&place, &model, &[]), with_approvals());
    let session = editor.session(&place.vault());
    let mut chosen = ["edit", "reject"].into_iter();
    editor.answers(move |method, _| match method {
        "session/request_permission" => Some(selected(chosen.next().unwrap())),
        _ => Some(json!({ "action": "accept", "content": { "path": "../outside.md", "content": "x" } })),
    });
    editor.say(&session, "Go");
    let asked = editor.asked_with("session/request_permission");
    assert_eq!(approval(&asked[0])["problem"], Value::Null);
    assert!(approval(&asked[1])["problem"].as_str().unwrap().contains("cannot be made"));
}

#[test]
fn a_change_is_prepared_again_when_a_note_has_changed_since() {
    let place = Place::new(NOTES);
    let appends = Reply::call("append_to_note", json!({ "path": "Home.md", "content": "x" }));
    let model = ModelServer::with([appends, Reply::text("Done.")]);
    let mut editor = Editor::start(agent(&place, &model, &[]), with_approvals());
    let session = editor.session(&place.vault());
    let home = place.vault().join("Home.md");
    let mut chosen = ["prepare_again", "allow"].into_iter();
    editor.answers(move |_, params| {
        let choice = chosen.next().unwrap();
        assert!(options(params).iter().any(|option| option == choice));
        if choice == "prepare_again" {
            std::fs::write(&home, "# Home\n\nfirst, typed a moment ago\n").unwrap();
        }
        Some(selected(choice))
    });
    editor.say(&session, "Go");
    assert_eq!(place.read("Home.md"), "# Home\n\nfirst, typed a moment ago\n\nx\n");
    let asked = editor.asked_with("session/request_permission");
    assert!(approval(&asked[1])["files"][0]["diff"].as_str().unwrap().contains("typed a moment ago"));
    assert!(!model.requests()[1].to_string().contains("changed the arguments"));
}

#[test]
fn an_approval_of_a_command_has_its_files() {
    let place = Place::new(NOTES);
    let appends = Reply::call("append_to_note", json!({ "path": "Home.md", "content": "x" }));
    let model = ModelServer::with([appends, Reply::text("Done.")]);
    let mut editor = Editor::start(agent(&place, &model, &[]), with_approvals());
    let session = editor.session(&place.vault());
    editor.chooses("allow");
    editor.say(&session, "Go");
    editor.say(&session, "/undo");
    assert_eq!(place.read("Home.md"), "# Home\n\nfirst\n");
    let asked = editor.asked_with("session/request_permission");
    let undo = approval(asked.last().unwrap());
    assert_eq!((&undo["tool"], &undo["files"][0]["path"]), (&json!("undo"), &json!("Home.md")));
}

#[test]
fn the_state_of_the_model_says_what_is_missing_and_what_is_allowed() {
    let place = Place::new(NOTES);
    place.configure("tools.toml", "denied_paths = [\"Private\"]\n");
    let mut editor = Editor::start(place.command(&["acp"]), json!({}));
    let state = result(&mut editor, "_vault/model_state", json!({}));
    assert_eq!((&state["provider"], &state["problem"]), (&Value::Null, &json!("no model is chosen")));
    let policy = state["policy"].as_array().unwrap();
    let of = |name: &str| policy.iter().find(|setting| setting["name"] == name).unwrap()["value"].clone();
    assert_eq!(
        (of("denied_paths"), of("confirm_writes"), of("allow_delete")),
        (json!("Private"), json!("yes"), json!("no"))
    );
    assert!(
        state["providers"]
            .as_array()
            .unwrap()
            .iter()
            .any(|known| known["name"] == "ollama" && known["isLocal"] == true)
    );
    assert_eq!(refused(&mut editor, "_vault/test_model", json!({})), "CONFIG");
}

#[test]
fn a_model_is_chosen_tested_and_used_by_the_next_session() {
    let place = Place::new(NOTES);
    let model = ModelServer::with([Reply::text(" ready "), Reply::text("Hello.")]);
    let mut editor = Editor::start(place.command(&["acp"]), json!({}));
    let wanted = json!({ "provider": model.address, "model": "scripted" });
    let state = result(&mut editor, "_vault/set_model", wanted);
    assert_eq!((&state["provider"], &state["model"]), (&json!(model.address), &json!("scripted")));
    assert_eq!((&state["problem"], &state["host"], &state["fixed"]), (&Value::Null, &Value::Null, &json!([])));
    let tested = result(&mut editor, "_vault/test_model", json!({}));
    assert_eq!((&tested["model"], &tested["reply"]), (&json!("scripted"), &json!("ready")));
    assert!(!model.requests()[0].to_string().contains("first"), "no note is sent");
    let listed = result(&mut editor, "_vault/models", json!({ "provider": model.address }));
    assert_eq!(listed["models"], json!(["other", "scripted"]));
    let session = editor.session(&place.vault());
    assert_eq!(editor.stops(&session, "Hi"), "end_turn");
}

/// A server that lists "keyed" if it is sent a key.
#[test]
fn an_address_gets_a_key_once_it_is_saved() {
    let place = Place::new(NOTES);
    let model = ModelServer::with([]);
    let mut command = place.command(&["acp"]);
    command.env("VAULT_AGENT_API_KEY", "secret-key");
    let mut editor = Editor::start(command, json!({}));
    let models =
        |editor: &mut Editor| result(editor, "_vault/models", json!({ "provider": model.address }))["models"].clone();
    assert_eq!(models(&mut editor), json!(["other", "scripted"]));
    result(&mut editor, "_vault/set_model", json!({ "provider": model.address, "model": "scripted" }));
    assert_eq!(models(&mut editor), json!(["keyed", "other", "scripted"]));
}

#[test]
fn a_new_provider_does_not_keep_the_address_of_the_old_one() {
    let place = Place::new(NOTES);
    let file = "provider = \"ollama\"\nbase_url = \"http://127.0.0.1:1/v1\" # mine\n";
    place.configure("agent.toml", file);
    let mut command = place.command(&["acp"]);
    // A variable names the new provider already.
    command.env("VAULT_AGENT_PROVIDER", "lmstudio");
    let mut editor = Editor::start(command, json!({}));
    result(&mut editor, "_vault/set_model", json!({ "provider": "ollama", "model": "a" }));
    let written = || std::fs::read_to_string(place.home().join("vault-index/agent.toml")).unwrap();
    assert_eq!(written(), format!("{file}model = \"a\"\n"), "the same provider keeps it");
    result(&mut editor, "_vault/set_model", json!({ "provider": "lmstudio", "model": "b" }));
    assert_eq!(written(), "provider = \"lmstudio\"\nmodel = \"b\"\n");
}

#[test]
fn a_policy_that_was_edited_counts_at_once() {
    let place = Place::new(NOTES);
    let mut editor = Editor::start(place.command(&["acp"]), json!({}));
    let denied = |editor: &mut Editor| {
        let state = result(editor, "_vault/model_state", json!({}));
        let policy = state["policy"].as_array().unwrap().clone();
        policy.into_iter().find(|setting| setting["name"] == "denied_paths").unwrap()["value"].clone()
    };
    assert_eq!(denied(&mut editor), "none");
    place.configure("tools.toml", "denied_paths = [\"Home.md\"]\n");
    assert_eq!(denied(&mut editor), "Home.md");
    let change = json!({ "kind": "rename", "path": "Home.md", "newPath": "Other.md" });
    assert_eq!(refused(&mut editor, "_vault/prepare", json!({ "change": change })), "DENIED");
    place.configure("tools.toml", "denied_paths = 3\n");
    assert_eq!(refused(&mut editor, "_vault/model_state", json!({})), "CONFIG");
}

#[test]
fn a_model_that_cannot_be_chosen_changes_nothing() {
    let place = Place::new(NOTES);
    let mut editor = Editor::start(place.command(&["acp"]), json!({}));
    for wrong in [
        json!({ "provider": "nobody" }),
        json!({ "provider": "local:x.gguf", "key": "k" }),
        json!({ "provider": "openai", "key": "two words" }),
    ] {
        assert_eq!(refused(&mut editor, "_vault/set_model", wrong), "INVALID_ARGUMENTS");
    }
    assert_eq!(result(&mut editor, "_vault/model_state", json!({}))["provider"], Value::Null);
    // A key is given to the keyring alone: where there is none, nothing else is written either.
    let response =
        editor.request("_vault/set_model", json!({ "provider": "openai", "model": "x", "key": "secret-key" }));
    assert_eq!(response["error"]["data"]["code"], "UNSUPPORTED", "{response}");
    assert!(!response.to_string().contains("secret-key"));
    assert_eq!(result(&mut editor, "_vault/model_state", json!({}))["provider"], Value::Null);
}

#[test]
fn a_variable_that_goes_before_the_file_is_named() {
    let place = Place::new(NOTES);
    let model = ModelServer::with([]);
    let mut editor = Editor::start(agent(&place, &model, &[]), json!({}));
    let state = result(&mut editor, "_vault/model_state", json!({}));
    assert_eq!(state["fixed"], json!(["provider", "model"]));
}

fn plan_of_two() -> Value {
    let step = |id: &str| {
        let args = json!({ "path": format!("{id}.md"), "content": "x" });
        json!({ "id": id, "tool": "write_note", "preview": format!("create {id}"), "args": args })
    };
    json!({ "version": "1.0", "goal": "two notes", "riskLevel": "writes", "assumptions": ["none"], "steps": [step("one"), step("two")] })
}

#[test]
fn a_plan_is_approved_step_by_step_and_what_is_left_is_shown_again() {
    let place = Place::new(NOTES);
    let model = ModelServer::with([Reply::text(&plan_of_two().to_string())]);
    let mut editor = Editor::start(agent(&place, &model, &[]), with_approvals());
    let session = editor.session(&place.vault());
    let mut chosen = ["pick", "pick", "allow"].into_iter();
    let mut ticked = [json!({ "ticked": [] }), json!({ "ticked": ["0"] })].into_iter();
    editor.answers(move |method, params| match method {
        "session/request_permission" => {
            let choice = chosen.next().unwrap();
            assert!(options(params).iter().any(|option| option == choice));
            Some(selected(choice))
        }
        _ => Some(json!({ "action": "accept", "content": ticked.next().unwrap() })),
    });
    editor.say(&session, "/plan two notes");
    assert_eq!(place.read("one.md"), "x");
    assert!(!place.vault().join("two.md").exists());
    let asked = editor.asked_with("session/request_permission");
    let [whole, again, left] = &asked[..] else { panic!("{}", asked.len()) };
    let plan = &approval(whole)["plan"];
    assert_eq!(
        (&plan["goal"], &plan["assumptions"], &plan["notes"]),
        (&json!("two notes"), &json!(["none"]), &json!(2))
    );
    assert_eq!((&plan["steps"][1]["preview"], &plan["steps"][1]["skipped"]), (&json!("create two"), &Value::Null));
    assert_eq!(&approval(again)["plan"], plan, "a form without a tick leaves the plan as it is");
    let left = approval(left);
    assert_eq!(left["plan"]["steps"][1]["skipped"], "a person left it out");
    assert_eq!(left["files"].as_array().unwrap().len(), 1);
    let entries = editor.of("plan").pop().unwrap()["entries"].clone();
    assert_eq!((entries.as_array().unwrap().len(), &entries[0]["status"]), (1, &json!("completed")));
}

#[test]
fn a_plan_is_prepared_again_when_a_note_has_changed_since() {
    let place = Place::new(NOTES);
    let edit = json!({ "id": "one", "tool": "append_to_note", "args": { "path": "Home.md", "content": "x" } });
    let plan = json!({ "version": "1.0", "goal": "a line", "riskLevel": "writes", "assumptions": [], "steps": [edit] });
    let model = ModelServer::with([Reply::text(&plan.to_string())]);
    let mut editor = Editor::start(agent(&place, &model, &[]), with_approvals());
    let session = editor.session(&place.vault());
    let home = place.vault().join("Home.md");
    let mut chosen = ["prepare_again", "allow"].into_iter();
    editor.answers(move |_, _| {
        let choice = chosen.next().unwrap();
        if choice == "prepare_again" {
            std::fs::write(&home, "typed a moment ago\n").unwrap();
        }
        Some(selected(choice))
    });
    editor.say(&session, "/plan a line");
    assert_eq!(place.read("Home.md"), "typed a moment ago\n\nx\n");
}

#[test]
fn a_plan_of_other_clients_is_a_yes_or_a_no() {
    let place = Place::new(NOTES);
    let model = ModelServer::with([Reply::text(&plan_of_two().to_string())]);
    let mut editor = Editor::able(&place, &model);
    let session = editor.session(&place.vault());
    editor.chooses("reject");
    editor.say(&session, "/plan two notes");
    assert_eq!(options(&editor.asked_with("session/request_permission")[0]), ["allow", "reject"]);
}

#[test]
fn the_plan_of_a_transaction_is_saved_whatever_ran_since() {
    let place = Place::new(NOTES);
    let other = plan_of_two().to_string().replace("one", "three").replace("two", "four");
    let model = ModelServer::with([Reply::text(&plan_of_two().to_string()), Reply::text(&other)]);
    let mut editor = Editor::start(agent(&place, &model, &[]), with_approvals());
    let session = editor.session(&place.vault());
    editor.chooses("allow");
    editor.say(&session, "/plan two notes");
    editor.say(&session, "/plan four notes");
    let transactions: Vec<u64> = editor
        .of("tool_call_update")
        .iter()
        .filter_map(|update| update["_meta"]["vault"]["transaction"].as_u64())
        .collect();
    assert_eq!(transactions, [1, 2]);
    let saved = result(&mut editor, "_vault/save_macro", json!({ "name": "Two", "transaction": 1 }));
    assert_eq!((&saved["name"], &saved["isShipped"]), (&json!("Two"), &json!(false)));
    let change = json!({ "kind": "macro", "name": "Two", "parameters": {} });
    editor.say(&session, "/undo 1");
    let shown = result(&mut editor, "_vault/prepare", json!({ "change": change }));
    assert!(shown["files"].as_array().unwrap().iter().any(|file| file["path"] == "one.md"), "{shown}");
    let unknown = json!({ "name": "None", "transaction": 99 });
    assert_eq!(refused(&mut editor, "_vault/save_macro", unknown), "NOT_FOUND");
}

#[test]
fn macros_are_listed_and_run_without_a_model_after_an_approval() {
    let place = Place::new(NOTES);
    let model = ModelServer::with([Reply::text(&plan_of_two().to_string())]);
    let mut editor = Editor::start(agent(&place, &model, &[]), json!({}));
    let session = editor.session(&place.vault());
    editor.chooses("allow");
    editor.say(&session, "/plan two notes");
    editor.say(&session, "/macro save Two notes");
    editor.say(&session, "/undo");
    editor.end();
    let mut editor = Editor::start(place.command(&["acp"]), json!({}));
    let macros = result(&mut editor, "_vault/macros", json!({}))["macros"].clone();
    assert_eq!((&macros[0]["name"], &macros[0]["isShipped"]), (&json!("Two notes"), &json!(false)));
    assert!(macros.as_array().unwrap().iter().any(|of| of["isShipped"] == true));
    let change = json!({ "kind": "macro", "name": "Two notes", "parameters": {} });
    let shown = result(&mut editor, "_vault/prepare", json!({ "change": change }));
    assert!(!place.vault().join("one.md").exists());
    result(&mut editor, "_vault/apply", json!({ "change": change, "digest": shown["digest"] }));
    assert_eq!((place.read("one.md"), place.read("two.md")), ("x".to_owned(), "x".to_owned()));
    let unknown = json!({ "kind": "macro", "name": "None of it", "parameters": {} });
    assert_eq!(refused(&mut editor, "_vault/prepare", json!({ "change": unknown })), "NOT_FOUND");
}
