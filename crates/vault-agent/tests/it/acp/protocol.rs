//! The protocol itself: what is declared, what is refused, and how it ends.

use serde_json::{Value, json};

use super::editor::{Editor, agent, prompt, stuck_model};
use crate::model_server::{ModelServer, Reply};
use crate::stdio::Place;
use crate::terminal::Terminal;

fn no_model() -> ModelServer {
    ModelServer::with([])
}

#[test]
fn the_version_is_one_whatever_the_client_asks_for() {
    let (place, model) = (Place::new("//- a.md\nx\n"), no_model());
    for version in [0, 1, 2, 65_535] {
        let mut editor = Editor::silent(agent(&place, &model, &[]));
        let hello = editor.result("initialize", json!({ "protocolVersion": version }));
        assert_eq!(hello["protocolVersion"], 1, "{version}");
        assert_eq!(hello["agentInfo"]["name"], "vault-agent");
        let capabilities = &hello["agentCapabilities"];
        assert_eq!(capabilities["loadSession"], true);
        assert_eq!(capabilities["promptCapabilities"]["embeddedContext"], true);
        assert_eq!(capabilities["promptCapabilities"]["image"], true);
        assert_ne!(capabilities["promptCapabilities"]["audio"], true);
        for method in ["list", "resume", "close", "delete"] {
            assert!(capabilities["sessionCapabilities"][method].is_object(), "{method}");
        }
        assert_eq!(editor.end(), (0, String::new()));
    }
}

#[test]
fn nothing_is_answered_before_the_client_introduces_itself() {
    let (place, model) = (Place::new("//- a.md\nx\n"), no_model());
    let mut editor = Editor::silent(agent(&place, &model, &[]));
    for method in ["session/new", "session/list", "session/prompt", "nope"] {
        assert_eq!(editor.error(method, json!({})).0, -32600, "{method}");
    }
    let (code, message) = editor.error("initialize", json!({ "protocolVersion": "one" }));
    assert!(code == -32602 && message.contains("params"), "{code} {message}");
    assert_eq!(editor.result("initialize", json!({ "protocolVersion": 1 }))["protocolVersion"], 1);
}

#[test]
fn garbage_has_errors_and_ends_nothing() {
    let place = Place::new("//- a.md\nx\n");
    let model = ModelServer::with([Reply::text("Still here.")]);
    let mut editor = Editor::plain(&place, &model);
    let session = editor.session(&place.vault());
    let deep = format!(r#"{{"jsonrpc":"2.0","params":{}{},"method":"x","id":"e"}}"#, "[".repeat(200), "]".repeat(200));
    let long = format!(r#"{{"jsonrpc":"2.0","params":"{}","method":"x","id":"f"}}"#, "x".repeat(65 << 20));
    let lines: [(&[u8], Value, i64); 12] = [
        (b"garbage", Value::Null, -32700),
        (b"\xff\xfe\x00", Value::Null, -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":", Value::Null, -32700),
        (b"[]", Value::Null, -32600),
        (b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}]", Value::Null, -32600),
        (b"{\"jsonrpc\":\"1.0\",\"id\":\"a\",\"method\":\"initialize\"}", json!("a"), -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":\"b\",\"method\":\"no/such\"}", json!("b"), -32601),
        (b"{\"jsonrpc\":\"2.0\",\"id\":\"c\",\"method\":\"session/new\",\"params\":{\"cwd\":7}}", json!("c"), -32602),
        (b"{\"jsonrpc\":\"2.0\",\"id\":\"d\",\"method\":\"session/prompt\",\"params\":[]}", json!("d"), -32602),
        (deep.as_bytes(), json!("e"), -32600),
        (&deep.as_bytes()[1..], Value::Null, -32700),
        (long.as_bytes(), json!("f"), -32600),
    ];
    // The commands of the session come when they come.
    editor.until(|editor| !editor.updates.is_empty());
    for (line, id, code) in lines {
        editor.send_line(line);
        let answer = editor.next();
        assert_eq!((&answer["id"], answer["error"]["code"].as_i64()), (&id, Some(code)), "{answer}");
    }
    // What nobody waits for, and what is no message of ours, has no answer.
    for line in ["", " \t", r#"{"jsonrpc":"2.0","id":77,"result":{}}"#, r#"{"jsonrpc":"2.0","method":"no/such"}"#] {
        editor.send_line(line.as_bytes());
    }
    editor.notify("session/cancel", json!({ "sessionId": "none" }));
    editor.notify("$/cancel_request", json!({ "requestId": 99 }));
    for (method, params, code) in [
        ("session/prompt", prompt("none", "x"), -32002),
        ("session/load", json!({ "sessionId": "none", "cwd": place.vault(), "mcpServers": [] }), -32002),
        ("session/resume", json!({ "sessionId": "none", "cwd": place.vault() }), -32002),
        ("session/close", json!({ "sessionId": "none" }), -32002),
        ("session/set_mode", json!({ "sessionId": session, "modeId": "yolo" }), -32602),
        ("session/set_config_option", json!({ "sessionId": session, "configId": "mode", "value": "yolo" }), -32602),
        (
            "session/set_config_option",
            json!({ "sessionId": session, "configId": "mode", "type": "boolean", "value": true }),
            -32602,
        ),
        ("session/set_config_option", json!({ "sessionId": session, "configId": "model", "value": "other" }), -32602),
        ("session/set_config_option", json!({ "sessionId": session, "configId": "nope", "value": "x" }), -32602),
        ("session/list", json!({ "cursor": "x" }), -32602),
        ("authenticate", json!({ "methodId": "nope" }), -32602),
        ("session/prompt", json!({ "sessionId": session, "prompt": [] }), -32602),
        (
            "session/prompt",
            json!({ "sessionId": session, "prompt": [
            { "type": "image", "mimeType": "image/png", "data": "" } ] }),
            -32602,
        ),
    ] {
        assert_eq!(editor.error(method, params.clone()).0, code, "{method} {params}");
    }
    assert_eq!(editor.stops(&session, "Are you still here?"), "end_turn");
    assert_eq!(editor.said(), "Still here.");
    assert_eq!(editor.end(), (0, String::new()));
}

#[test]
fn the_working_directory_chooses_the_vault() {
    let place = Place::new("//- a.md\nabout otters\n//- deep/er/b.md\nx\n");
    let plain = place.home().join("plain");
    let empty = place.home().join("empty");
    std::fs::create_dir_all(plain.join("sub")).unwrap();
    std::fs::create_dir_all(&empty).unwrap();
    std::fs::write(plain.join("p.md"), "about herons\n").unwrap();
    let obsidian = place.home().join("obsidian");
    std::fs::create_dir_all(obsidian.join(".obsidian")).unwrap();
    std::fs::create_dir_all(obsidian.join("a/b")).unwrap();
    std::fs::write(obsidian.join("o.md"), "about bitterns\n").unwrap();
    let list = |editor: &mut Editor, cwd: &std::path::Path| {
        let session = editor.session(cwd);
        editor.say(&session, "list");
        let calls = editor.calls();
        calls.last().unwrap()["content"][0]["content"]["text"].as_str().unwrap().to_owned()
    };
    let lists = || {
        ModelServer::that(|request| match request["messages"].as_array().unwrap().last().unwrap()["role"] == "tool" {
            true => Reply::text("ok"),
            false => Reply::call("search_notes", json!({ "query": "about" })),
        })
    };
    // The nearest folder upward with an `.obsidian` comes before the vault that is named.
    let model = lists();
    let mut editor = Editor::plain(&place, &model);
    assert!(list(&mut editor, &obsidian.join("a/b")).contains("o.md"));
    assert!(list(&mut editor, &plain).contains("a.md"), "VAULT_DIR names it");
    assert_eq!(editor.end().0, 0);
    // Nothing is named.
    let mut command = agent(&place, &model, &[]);
    command.env_remove("VAULT_DIR");
    let mut editor = Editor::start(command, json!({}));
    assert!(list(&mut editor, &plain).contains("p.md"));
    for (cwd, said) in [
        (json!(empty), "no notes in this folder"),
        (json!(place.home()), "home folder"),
        (json!("/"), "root"),
        (json!("relative"), "absolute"),
        (json!(place.home().join("gone")), "gone"),
    ] {
        let (code, message) = editor.error("session/new", json!({ "cwd": cwd, "mcpServers": [] }));
        assert!(code == -32602 && message.contains(said), "{cwd}: {code} {message}");
    }
    let plain_text = plain.display().to_string();
    let mut named = agent(&place, &model, &["--vault", &plain_text]);
    named.env_remove("VAULT_DIR");
    let mut editor = Editor::start(named, json!({}));
    assert!(list(&mut editor, &empty).contains("p.md"), "--vault names it");
}

#[test]
fn without_a_model_the_client_is_told_to_log_in() {
    let place = Place::new("//- a.md\nx\n");
    let mut editor = Editor::start(place.command(&["acp"]), json!({}));
    let (code, message) = editor.error("session/new", json!({ "cwd": place.vault(), "mcpServers": [] }));
    assert!(code == -32000 && message.contains("vault-agent config set provider"), "{code} {message}");
    assert_eq!(editor.error("authenticate", json!({ "methodId": "settings" })).0, -32000);
    // Settings are read again: nobody has to start the agent anew.
    let model = ModelServer::with([Reply::text("Hello.")]);
    place.configure("agent.toml", &format!("provider = \"{}\"\nmodel = \"scripted\"\n", model.address));
    editor.result("authenticate", json!({ "methodId": "settings" }));
    let session = editor.session(&place.vault());
    assert_eq!((editor.stops(&session, "Hi"), editor.said()), ("end_turn".to_owned(), "Hello.".to_owned()));
}

#[test]
fn a_client_with_a_terminal_can_have_a_model_chosen_there() {
    let place = Place::new("//- a.md\nx\n");
    let model = ModelServer::with([Reply::text("Hello.")]);
    place.configure("agent.toml", &format!("provider = \"{}\"\n", model.address));
    let methods = |capabilities: Value| {
        let mut editor = Editor::silent(place.command(&["acp"]));
        let hello = json!({ "protocolVersion": 1, "clientCapabilities": capabilities });
        editor.result("initialize", hello)["authMethods"].as_array().unwrap().clone()
    };
    assert!(methods(json!({})).iter().all(|method| method["type"] != "terminal"));
    let offered = methods(json!({ "auth": { "terminal": true } }));
    let method = offered.iter().find(|method| method["type"] == "terminal").expect("a way to log in in a terminal");
    assert_eq!(method["args"], json!(["--choose-model"]));
    // The client starts the agent as usual, with these arguments after its own.
    let mut terminal = Terminal::start(&place.command(&["acp", "--choose-model"]), 100);
    terminal.until("Number (empty for none)");
    terminal.press("2\r");
    let (screen, code) = terminal.end();
    assert!(code == 0 && screen.contains("scripted of "), "{screen}");
    let mut editor = Editor::start(place.command(&["acp"]), json!({}));
    let session = editor.session(&place.vault());
    assert_eq!((editor.stops(&session, "Hi"), editor.said()), ("end_turn".to_owned(), "Hello.".to_owned()));
    // Without a terminal, it ends and says why.
    let output = place.command(&["acp", "--choose-model"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no terminal"));
}

#[test]
fn it_ends_with_its_input_and_leaves_nothing_running() {
    let place = Place::new("//- a.md\nx\n");
    let (model, (stuck, asks)) = (no_model(), stuck_model());
    let silent = Editor::silent(agent(&place, &model, &[]));
    assert_eq!(silent.end(), (0, String::new()));
    // Also while a model is asked that never answers.
    let mut editor = Editor::plain(&place, &stuck);
    let session = editor.session(&place.vault());
    editor.ask("session/prompt", prompt(&session, "Hi"));
    asks.recv().unwrap();
    assert_eq!(editor.end().0, 0);
}
