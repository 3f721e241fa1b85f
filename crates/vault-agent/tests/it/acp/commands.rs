//! Commands, modes and models.

use serde_json::{Value, json};

use super::editor::{Editor, agent, everything, options, selected};
use crate::model_server::{ModelServer, Reply};
use crate::stdio::Place;

const NOTES: &str = "//- Home.md\n# Home\n\nfirst\n//- Inbox.md\n- one\n- two\n";

fn plan(goal: &str) -> String {
    json!({ "version": "1.0", "goal": goal, "riskLevel": "writes", "assumptions": [], "steps": [
        { "id": "make", "tool": "vault.createFile", "preview": "make a note ![x](https://evil.example)",
            "args": { "path": "New.md", "content": "new\n" } },
        { "id": "tell", "tool": "append_to_note", "args": { "path": "Home.md", "content": "[[New]]" } },
    ] })
    .to_string()
}

#[test]
fn a_plan_is_shown_as_entries_run_after_a_yes_undone_and_kept() {
    let place = Place::new(NOTES);
    let before = place.tree();
    let model = ModelServer::that(|_| Reply::Text(plan("make a note")));
    let mut editor = Editor::able(&place, &model);
    let session = editor.session(&place.vault());
    editor.chooses("reject");
    assert_eq!(editor.stops(&session, "/plan a new note"), "end_turn");
    assert_eq!(place.tree(), before);
    assert!(editor.said().contains("Nothing was changed."), "{}", editor.said());
    editor.chooses("allow");
    assert_eq!(editor.stops(&session, "/plan a new note"), "end_turn");
    assert_eq!((place.read("New.md"), place.read("Home.md")), ("new\n".into(), "# Home\n\nfirst\n\n[[New]]\n".into()));
    let plans = editor.of("plan");
    let statuses = |plan: &Value| -> Vec<String> {
        plan["entries"].as_array().unwrap().iter().map(|entry| entry["status"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(plans[0]["entries"][0]["content"], "vault.createFile `make a note ![x](https://evil.example)`");
    assert_eq!(statuses(&plans[0]), ["pending", "pending"]);
    assert_eq!(statuses(plans.last().unwrap()), ["completed", "completed"]);
    assert!(plans.iter().any(|plan| statuses(plan) == ["completed", "in_progress"]), "{plans:?}");
    let asked = editor.asked_with("session/request_permission");
    assert_eq!(options(&asked[1]), ["allow", "reject"]);
    let diffs = asked[1]["toolCall"]["content"].as_array().unwrap().iter().filter(|it| it["type"] == "diff").count();
    assert_eq!(diffs, 2);
    let made = place.tree();

    assert_eq!(editor.stops(&session, "/macro save make it"), "end_turn");
    assert_eq!(editor.stops(&session, "/undo"), "end_turn");
    assert_eq!(place.tree(), before, "{}", editor.said());
    let requests = model.requests().len();
    assert_eq!(editor.stops(&session, "/macro make it"), "end_turn");
    assert_eq!((place.tree(), model.requests().len()), (made, requests), "without a model");
    editor.say(&session, "/macro");
    assert!(editor.said().contains("make it:") && editor.said().contains("weekly"), "{}", editor.said());
    for (text, said) in [
        ("/undo 99", "99"),
        ("/undo x", "not a transaction number"),
        ("/macro nope", "nope"),
        ("/macro make it =", "NAME=VALUE"),
        ("/plan", "the instruction is missing"),
    ] {
        let from = editor.said().len();
        assert_eq!(editor.stops(&session, text), "end_turn");
        assert!(editor.said()[from..].contains(said), "{text}: {}", &editor.said()[from..]);
    }
    assert!(editor.of("session_info_update").is_empty(), "commands are no conversation");
}

#[test]
fn undo_asks_where_the_settings_ask_and_nowhere_else() {
    for (settings, questions) in [("confirm_writes = true\n", 2), ("confirm_writes = false\n", 0)] {
        let place = Place::new(NOTES);
        place.configure("tools.toml", settings);
        let model = ModelServer::with([
            Reply::call("append_to_note", json!({ "path": "Home.md", "content": "x" })),
            Reply::text("Done."),
        ]);
        let mut editor = Editor::plain(&place, &model);
        let session = editor.session(&place.vault());
        let before = place.read("Home.md");
        editor.chooses("allow");
        editor.say(&session, "Go");
        assert_ne!(place.read("Home.md"), before);
        editor.say(&session, "/undo");
        assert_eq!(place.read("Home.md"), before, "{}", editor.said());
        assert_eq!(editor.asked_with("session/request_permission").len(), questions, "{settings}");
    }
}

#[test]
fn a_plan_that_stays_invalid_does_nothing() {
    let place = Place::new(NOTES);
    let before = place.tree();
    let model = ModelServer::that(|_| Reply::text("{\"version\":\"1.0\"}"));
    let mut editor = Editor::plain(&place, &model);
    let session = editor.session(&place.vault());
    assert_eq!(editor.stops(&session, "/plan a new note"), "end_turn");
    assert!(editor.said().contains("no valid plan") && model.requests().len() == 3, "{}", editor.said());
    assert_eq!(place.tree(), before);
}

#[test]
fn values_that_a_plan_needs_are_asked_for_in_a_form() {
    let place = Place::new(NOTES);
    let plan = json!({ "version": "1.0", "goal": "g", "riskLevel": "writes", "steps": [
        { "id": "make", "tool": "vault.createFile", "args": { "path": "${topic}.md", "content": "x\n" } } ] });
    let text = plan.to_string();
    let model = ModelServer::that(move |_| Reply::Text(text.clone()));
    let mut editor = Editor::able(&place, &model);
    let session = editor.session(&place.vault());
    editor.answers(|method, params| match method {
        "elicitation/create" => {
            assert!(params["requestedSchema"]["properties"]["topic"].is_object());
            Some(json!({ "action": "accept", "content": { "topic": "Roses" } }))
        }
        _ => Some(selected("allow")),
    });
    editor.say(&session, "/plan a note about something");
    assert_eq!(place.read("Roses.md"), "x\n", "{}", editor.said());
    editor.say(&session, "/macro save topic note");
    let mut plain = Editor::plain(&place, &model);
    let session = plain.session(&place.vault());
    plain.say(&session, "/macro topic note");
    assert!(plain.said().contains("needs values for topic"), "{}", plain.said());
    plain.chooses("allow");
    plain.say(&session, "/macro topic note topic=\"Two words\"");
    assert_eq!(place.read("Two words.md"), "x\n", "{}", plain.said());
}

#[test]
fn a_read_only_session_changes_nothing() {
    let place = Place::new(NOTES);
    let before = place.tree();
    let model =
        ModelServer::that(|request| match request["messages"].as_array().unwrap().last().unwrap()["role"] == "user" {
            true => Reply::call("append_to_note", json!({ "path": "Home.md", "content": "x" })),
            false => Reply::text("ok"),
        });
    for (method, params) in [
        ("session/set_mode", json!({ "modeId": "read" })),
        ("session/set_config_option", json!({ "configId": "mode", "value": "read" })),
    ] {
        let mut editor = Editor::plain(&place, &model);
        let started = editor.result("session/new", json!({ "cwd": place.vault(), "mcpServers": [] }));
        let session = started["sessionId"].as_str().unwrap().to_owned();
        assert_eq!(started["modes"]["currentModeId"], "ask");
        assert_eq!(started["configOptions"][0]["currentValue"], "ask");
        let mut params = params;
        params["sessionId"] = json!(session);
        let answer = editor.result(method, params);
        if method == "session/set_mode" {
            let told = editor.of("config_option_update");
            assert_eq!(told[0]["configOptions"][0]["currentValue"], "read");
        } else {
            assert_eq!(answer["configOptions"][0]["currentValue"], "read");
            assert_eq!(editor.of("current_mode_update")[0]["currentModeId"], "read");
        }
        editor.say(&session, "Go");
        editor.say(&session, "/undo");
        assert_eq!((place.tree(), editor.asked.len()), (before.clone(), 0));
        assert!(editor.said().contains("read only"), "{}", editor.said());
        let tools = model.requests().pop().unwrap()["tools"].to_string();
        assert!(tools.contains("search_notes") && !tools.contains("append_to_note"));
        editor.say(&session, "/tools");
        assert!(editor.said().contains("runs    search_notes"), "{}", editor.said());
    }
    let mut editor = Editor::plain(&place, &model);
    let session = editor.session(&place.vault());
    editor.say(&session, "/tools");
    assert!(editor.said().contains("asks    append_to_note"), "{}", editor.said());
}

#[test]
fn the_mode_holds_at_once() {
    // Also where a yes comes after it.
    for answer in ["reject", "allow", "allow_always"] {
        let place = Place::new(NOTES);
        let before = place.tree();
        let model = ModelServer::with([
            Reply::Calls(vec![
                ("append_to_note".to_owned(), json!({ "path": "Home.md", "content": "x" })),
                ("append_to_note".to_owned(), json!({ "path": "Inbox.md", "content": "x" })),
            ]),
            Reply::text("ok"),
        ]);
        let mut editor = Editor::plain(&place, &model);
        let session = editor.session(&place.vault());
        editor.answers(|_, _| None);
        let turn = editor.ask("session/prompt", super::editor::prompt(&session, "Go"));
        editor.until(|editor| editor.open.is_some());
        editor.result("session/set_mode", json!({ "sessionId": session, "modeId": "read" }));
        editor.answer_open(selected(answer));
        editor.response(turn);
        assert_eq!((editor.asked.len(), place.tree()), (1, before), "{answer}");
        assert!(model.told("tool")[1].contains("read only"), "{answer}: {:?}", model.told("tool"));
    }
}

#[test]
fn the_model_is_one_of_those_that_are_allowed() {
    let place = Place::new(NOTES);
    let model = ModelServer::that(|_| Reply::text("ok"));
    let mut command = agent(&place, &model, &[]);
    command.env("VAULT_AGENT_ALLOWED_MODELS", "scripted,other");
    let mut editor = Editor::start(command, everything());
    let started = editor.result("session/new", json!({ "cwd": place.vault(), "mcpServers": [] }));
    let session = started["sessionId"].as_str().unwrap().to_owned();
    let option = &started["configOptions"][1];
    assert_eq!((&option["category"], &option["currentValue"]), (&json!("model"), &json!("scripted")));
    let names: Vec<&Value> = option["options"].as_array().unwrap().iter().map(|option| &option["value"]).collect();
    assert_eq!(names, ["scripted", "other"]);
    editor.say(&session, "Hi");
    let set = |value: &str| json!({ "sessionId": session, "configId": "model", "value": value });
    let answer = editor.result("session/set_config_option", set("other"));
    assert_eq!(answer["configOptions"][1]["currentValue"], "other");
    assert_eq!(editor.error("session/set_config_option", set("third")).0, -32602);
    editor.say(&session, "Hi again");
    let models: Vec<Value> = model.requests().iter().map(|request| request["model"].clone()).collect();
    assert_eq!(models, ["scripted", "other"]);
}

#[test]
fn a_conversation_is_made_shorter_when_asked() {
    let place = Place::new(NOTES);
    let model = ModelServer::that(|request| match request.to_string().contains("Write a summary") {
        true => Reply::text("They talked."),
        false => Reply::text(&"long ".repeat(2_000)),
    });
    for (capabilities, kind) in [(everything(), "compaction_update"), (json!({}), "agent_message_chunk")] {
        let mut editor = Editor::start(agent(&place, &model, &[]), capabilities);
        let session = editor.session(&place.vault());
        for _ in 0..5 {
            editor.say(&session, "Tell me more");
        }
        editor.say(&session, "/compact");
        assert!(editor.said().contains("is made shorter before the next message"));
        let from = editor.updates.len();
        editor.say(&session, "Tell me more");
        let told: Vec<&Value> = editor.updates[from..].iter().map(|update| &update["update"]).collect();
        let is_told = |update: &&&Value| {
            update["sessionUpdate"] == kind
                && (update["status"] == "completed" || update.to_string().contains("was made shorter"))
        };
        assert!(told.iter().any(|update| is_told(&update)), "{kind}");
        let requests = model.requests();
        let [.., before, _, after] = &requests[..] else { panic!("the summary is asked for between them") };
        let [before, after] = [before, after].map(|request| request["messages"].to_string().len());
        assert!(after + 10_000 < before, "{before} bytes, then {after}");
    }
}
