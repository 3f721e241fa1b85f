//! Sessions that are saved: listed, loaded, resumed, closed, deleted, and gone on with in another process.

use serde_json::{Value, json};

use super::editor::{Editor, agent, prompt, selected};
use crate::model_server::{ModelServer, Reply};
use crate::stdio::Place;

const NOTES: &str = "//- Home.md\n# Home\n\nfirst\n";

fn appends() -> Reply {
    Reply::call("append_to_note", json!({ "path": "Home.md", "content": "second" }))
}

fn listed(editor: &mut Editor, params: Value) -> Vec<Value> {
    editor.result("session/list", params)["sessions"].as_array().unwrap().clone()
}

#[test]
fn sessions_are_listed_loaded_resumed_closed_and_deleted() {
    let place = Place::new(NOTES);
    let model = ModelServer::that(|request| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        match last["role"] == "user" && last.to_string().contains("append") {
            true => appends(),
            false => Reply::text("It says first [Home.md:3]."),
        }
    });
    let mut editor = Editor::plain(&place, &model);
    let silent = editor.session(&place.vault());
    assert!(listed(&mut editor, json!({})).is_empty(), "nothing was said in it");
    let session = editor.session(&place.vault());
    editor.chooses("allow");
    editor.say(&session, "What is in append Home?");
    let all = listed(&mut editor, json!({ "cwd": place.vault() }));
    let [one] = &all[..] else { panic!("{all:?}") };
    assert_eq!((&one["sessionId"], &one["title"]), (&json!(session), &json!("What is in append Home?")));
    assert_eq!(one["cwd"], json!(place.vault().canonicalize().unwrap()));
    assert!(one["updatedAt"].as_str().unwrap().ends_with('Z'));
    assert!(listed(&mut editor, json!({ "cwd": place.home() })).len() == 1, "VAULT_DIR is the vault there, too");
    assert_eq!(editor.end().0, 0);

    let mut editor = Editor::plain(&place, &model);
    let load = json!({ "sessionId": session, "cwd": place.vault(), "mcpServers": [] });
    let loaded = editor.result("session/load", load.clone());
    assert_eq!(loaded["configOptions"][0]["id"], "mode");
    let kinds: Vec<&str> = editor.updates.iter().map(|it| it["update"]["sessionUpdate"].as_str().unwrap()).collect();
    assert_eq!(
        kinds,
        ["user_message_chunk", "tool_call", "tool_call_update", "agent_message_chunk"],
        "all before the answer"
    );
    assert_eq!(editor.of("user_message_chunk")[0]["content"]["text"], "What is in append Home?");
    assert_eq!(editor.said(), "It says first [Home.md:3].");
    assert_eq!((&editor.calls()[0]["status"], &editor.calls()[0]["kind"]), (&json!("completed"), &json!("edit")));
    // It goes on where it was.
    editor.say(&session, "And what else?");
    let messages = model.requests().pop().unwrap()["messages"].to_string();
    assert!(messages.contains("What is in append Home?") && messages.contains("And what else?"));
    assert_eq!(editor.result("session/close", json!({ "sessionId": session })), json!({}));
    assert_eq!(editor.error("session/prompt", prompt(&session, "x")).0, -32002);

    let mut editor = Editor::plain(&place, &model);
    editor.result("session/resume", json!({ "sessionId": session, "cwd": place.vault() }));
    assert!(editor.updates.is_empty(), "nothing is told again: {:?}", editor.updates);
    editor.say(&session, "Once more");
    assert!(model.requests().pop().unwrap()["messages"].to_string().contains("And what else?"));
    // Loading what is open takes it over.
    editor.result("session/load", load);
    assert_eq!(editor.result("session/delete", json!({ "sessionId": session })), json!({}));
    assert_eq!(
        editor.result("session/delete", json!({ "sessionId": silent })),
        json!({}),
        "what is not there is deleted"
    );
    assert!(listed(&mut editor, json!({})).is_empty());
    assert_eq!(editor.error("session/load", json!({ "sessionId": silent, "cwd": place.vault() })).0, -32002);
    assert_eq!(editor.error("session/resume", json!({ "sessionId": session, "cwd": place.vault() })).0, -32002);
}

#[test]
fn a_session_in_which_nothing_was_said_can_be_opened_again() {
    let place = Place::new(NOTES);
    let model = ModelServer::that(|_| Reply::text("ok"));
    let mut editor = Editor::plain(&place, &model);
    let session = editor.session(&place.vault());
    // In the same process and in another one, as after a reload of the editor.
    editor.result("session/load", json!({ "sessionId": session, "cwd": place.vault(), "mcpServers": [] }));
    drop(editor);
    let mut editor = Editor::plain(&place, &model);
    assert!(listed(&mut editor, json!({})).is_empty());
    editor.result("session/load", json!({ "sessionId": session, "cwd": place.vault(), "mcpServers": [] }));
    assert!(editor.updates.iter().all(|update| update["sessionUpdate"] == "available_commands_update"));
    editor.say(&session, "Hi");
    assert_eq!(listed(&mut editor, json!({})).len(), 1);
}

#[test]
fn a_session_is_of_its_vault() {
    let place = Place::new(NOTES);
    let other = place.home().join("Other");
    std::fs::create_dir_all(other.join(".obsidian")).unwrap();
    std::fs::write(other.join("o.md"), "x\n").unwrap();
    let model = ModelServer::that(|_| Reply::text("ok"));
    let mut editor = Editor::plain(&place, &model);
    let session = editor.session(&place.vault());
    editor.say(&session, "Hi");
    let (code, message) = editor.error("session/load", json!({ "sessionId": session, "cwd": other, "mcpServers": [] }));
    assert!(code == -32602 && message.contains("another vault"), "{code} {message}");
    assert!(listed(&mut editor, json!({ "cwd": other })).is_empty());
    // An id is the whole of it.
    let begin = &session[..4];
    assert_eq!(editor.error("session/resume", json!({ "sessionId": begin, "cwd": place.vault() })).0, -32002);
}

#[test]
fn the_list_comes_in_pages() {
    let place = Place::new(NOTES);
    let model = ModelServer::that(|_| Reply::text("ok"));
    let mut editor = Editor::plain(&place, &model);
    for number in 0..53 {
        let session = editor.session(&place.vault());
        editor.say(&session, &format!("question {number}"));
    }
    let first = editor.result("session/list", json!({}));
    assert_eq!(
        (first["sessions"].as_array().unwrap().len(), &first["sessions"][0]["title"]),
        (50, &json!("question 52"))
    );
    let second = editor.result("session/list", json!({ "cursor": first["nextCursor"] }));
    assert_eq!((second["sessions"].as_array().unwrap().len(), &second["nextCursor"]), (3, &Value::Null));
}

#[test]
fn an_open_question_is_asked_again_in_another_process() {
    let place = Place::new(NOTES);
    let model = ModelServer::that(|request| {
        let messages = request["messages"].as_array().unwrap();
        match messages.iter().any(|message| message["role"] == "tool") {
            true => Reply::text("Done."),
            false => appends(),
        }
    });
    for method in ["session/load", "session/resume"] {
        place.write("Home.md", "# Home\n\nfirst\n");
        let mut editor = Editor::plain(&place, &model);
        let session = editor.session(&place.vault());
        editor.answers(|_, _| None);
        editor.ask("session/prompt", prompt(&session, "Add a line"));
        editor.until(|editor| editor.open.is_some());
        editor.kill();
        assert_eq!(place.read("Home.md"), "# Home\n\nfirst\n");

        let mut editor = Editor::plain(&place, &model);
        editor.result(method, json!({ "sessionId": session, "cwd": place.vault(), "mcpServers": [] }));
        editor.until(|editor| editor.said().contains("waits for your decision"));
        if method == "session/load" {
            assert_eq!(editor.calls()[0]["status"], Value::Null, "it is pending");
        }
        editor.chooses("allow");
        assert_eq!(editor.stops(&session, "/continue"), "end_turn");
        assert_eq!(place.read("Home.md"), "# Home\n\nfirst\n\nsecond\n", "once");
        assert!(editor.said().contains("Done."), "{}", editor.said());
        assert_eq!((editor.asked.len(), &editor.calls()[0]["status"]), (1, &json!("completed")));
        assert_eq!(editor.stops(&session, "/continue"), "end_turn");
        assert!(editor.said().contains("Nothing is waiting."));
        assert_eq!(editor.end().0, 0);
    }
}

#[test]
fn a_message_after_an_open_question_comes_after_its_answer() {
    let place = Place::new(NOTES);
    let model = ModelServer::with([appends(), Reply::text("Then not."), Reply::text("Hello.")]);
    let mut editor = Editor::plain(&place, &model);
    let session = editor.session(&place.vault());
    editor.answers(|_, _| None);
    editor.ask("session/prompt", prompt(&session, "Add a line"));
    editor.until(|editor| editor.open.is_some());
    // The editor leaves; the question stays open.
    assert_eq!(editor.end().0, 0);
    let mut editor = Editor::start(agent(&place, &model, &[]), json!({}));
    editor.result("session/resume", json!({ "sessionId": session, "cwd": place.vault() }));
    editor.answers(|_, _| Some(selected("reject")));
    assert_eq!(editor.stops(&session, "Hi there"), "end_turn");
    assert_eq!(place.read("Home.md"), "# Home\n\nfirst\n");
    let requests = model.requests();
    let last = requests[2]["messages"].to_string();
    assert!(last.contains("Tool call denied") && last.contains("Hi there") && editor.said().ends_with("Hello."));
    assert!(!requests[1]["messages"].to_string().contains("Hi there"));
}

#[test]
fn a_note_that_changes_while_a_question_is_open_is_not_overwritten() {
    let place = Place::new(NOTES);
    let model = ModelServer::with([
        Reply::call("edit_note", json!({ "path": "Home.md", "old_text": "first", "new_text": "1st" })),
        Reply::text("I see."),
    ]);
    let mut editor = Editor::plain(&place, &model);
    let session = editor.session(&place.vault());
    let file = place.vault().join("Home.md");
    editor.answers(move |_, _| {
        std::fs::write(&file, "# Home\n\nfirst of all\n").unwrap();
        Some(selected("allow"))
    });
    editor.say(&session, "Go");
    assert_eq!(place.read("Home.md"), "# Home\n\nfirst of all\n");
    let told = model.told("tool").pop().unwrap();
    assert!(told.contains("have changed since this was shown"), "{told}");
}
