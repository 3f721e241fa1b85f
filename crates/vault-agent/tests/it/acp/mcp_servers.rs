//! MCP servers that an editor names: used under the same policy, and ended with the session.

use std::path::Path;

use serde_json::{Value, json};

use super::editor::{Editor, agent, everything, options, selected};
use crate::http_server::HttpServer;
use crate::model_server::{ModelServer, Reply};
use crate::stdio::{PROGRAM, Place};

/// Another vault, and a server of it: this program itself, which asks nobody.
fn other(place: &Place) -> (std::path::PathBuf, Value) {
    let folder = place.home().join("Other");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("Far.md"), "about herons\n").unwrap();
    let home = place.home();
    // With settings of its own: what those deny, it does not offer.
    let places = [("HOME", ""), ("XDG_STATE_HOME", ""), ("XDG_CACHE_HOME", ""), ("XDG_CONFIG_HOME", "far")];
    let env: Vec<Value> =
        places.iter().map(|(name, folder)| json!({ "name": name, "value": home.join(folder) })).collect();
    let server = json!({
        "name": "other", "command": PROGRAM, "args": ["mcp", "--vault", folder, "--allow-write"], "env": env,
    });
    (folder, server)
}

fn open(editor: &mut Editor, cwd: &Path, servers: Value) -> String {
    let session = editor.result("session/new", json!({ "cwd": cwd, "mcpServers": servers }));
    session["sessionId"].as_str().unwrap().to_owned()
}

/// The name under which the model knows a tool of the server.
fn named(model: &ModelServer, tool: &str) -> String {
    let tools = model.requests()[0]["tools"].as_array().unwrap().clone();
    let names = tools.iter().map(|it| it["function"]["name"].as_str().unwrap().to_owned());
    names.into_iter().find(|name| name.starts_with("other") && name.ends_with(tool)).unwrap()
}

/// A model that calls a tool of the server once, whatever its name is.
fn calls(tool: &'static str, args: Value) -> ModelServer {
    ModelServer::that(move |request| {
        let messages = request["messages"].as_array().unwrap();
        if messages.last().unwrap()["role"] == "tool" {
            return Reply::text("Done.");
        }
        let tools = request["tools"].as_array().unwrap();
        let mut names = tools.iter().map(|it| it["function"]["name"].as_str().unwrap());
        match names.find(|name| name.starts_with("other") && name.ends_with(tool)) {
            Some(name) => Reply::call(name, args.clone()),
            None => Reply::text("There is no such tool."),
        }
    })
}

#[test]
fn every_call_of_a_server_is_asked_about() {
    let place = Place::new("//- Home.md\nx\n");
    let (folder, server) = other(&place);
    for (answer, expected) in [("reject", "about herons\n"), ("allow", "about herons\n\nand otters\n")] {
        let model = calls("append_to_note", json!({ "path": "Far.md", "content": "and otters" }));
        let mut editor = Editor::plain(&place, &model);
        let session = open(&mut editor, &place.vault(), json!([server]));
        editor.chooses(answer);
        assert_eq!(editor.stops(&session, "Go"), "end_turn");
        assert_eq!(std::fs::read_to_string(folder.join("Far.md")).unwrap(), expected, "{}", editor.said());
        let asked = editor.asked_with("session/request_permission");
        assert_eq!((asked.len(), asked[0]["toolCall"]["kind"].clone()), (1, Value::Null));
        let content = asked[0]["toolCall"]["content"].to_string();
        assert!(content.contains("a tool of another program") && content.contains("and otters"), "{content}");
        assert_eq!(editor.end().0, 0);
    }
    // One that says that it only reads is not believed.
    let model = calls("search_notes", json!({ "query": "herons" }));
    let mut editor = Editor::plain(&place, &model);
    let session = open(&mut editor, &place.vault(), json!([server]));
    editor.chooses("allow_always");
    editor.say(&session, "Go");
    editor.say(&session, "Go again");
    let told = model.told("tool").join("\n");
    assert!(told.contains("Far.md") && editor.asked.len() == 1, "{told}");
}

#[test]
fn a_server_is_reached_over_http_with_its_headers() {
    let place = Place::new("//- Home.md\nx\n");
    let (folder, _) = other(&place);
    std::fs::write(place.home().join("key"), "a long secret\n").unwrap();
    let mut command = place.command(&["mcp", "--http", "127.0.0.1:0", "--key-file", "home/key", "--allow-write"]);
    command.env("VAULT_DIR", &folder);
    let http = HttpServer::start(command);
    let server = |key: &str| {
        let header = json!({ "name": "Authorization", "value": format!("Bearer {key}") });
        json!({ "type": "http", "name": "other", "url": format!("http://{}/mcp", http.address), "headers": [header] })
    };
    let model = calls("append_to_note", json!({ "path": "Far.md", "content": "and otters" }));
    let mut editor = Editor::silent(agent(&place, &model, &[]));
    let hello = editor.result("initialize", json!({ "protocolVersion": 1 }));
    assert_eq!(hello["agentCapabilities"]["mcpCapabilities"]["http"], true);
    let session = open(&mut editor, &place.vault(), json!([server("a long secret")]));
    editor.chooses_each(&["reject", "allow"]);
    for expected in ["about herons\n", "about herons\n\nand otters\n"] {
        assert_eq!(editor.stops(&session, "Go"), "end_turn");
        assert_eq!(std::fs::read_to_string(folder.join("Far.md")).unwrap(), expected, "{}", editor.said());
    }
    assert_eq!(editor.asked_with("session/request_permission").len(), 2);
    assert!(model.told("tool").last().unwrap().contains("Far.md"), "{:?}", model.told("tool"));
    assert_eq!(editor.end().0, 0);
    // Without its key it is left out, and that is said.
    let mut editor = Editor::plain(&place, &model);
    let session = open(&mut editor, &place.vault(), json!([server("a wrong secret")]));
    editor.until(|editor| editor.said().contains("other"));
    editor.say(&session, "Go");
    for said in ["other: it requires authentication", "There is no such tool."] {
        assert!(editor.said().contains(said), "{said}: {}", editor.said());
    }
    assert!(!editor.said().contains("a wrong secret"), "{}", editor.said());
}

#[test]
fn what_the_settings_deny_and_a_read_only_session_hold_for_servers_too() {
    let place = Place::new("//- Home.md\nx\n");
    let (folder, server) = other(&place);
    place.configure("tools.toml", "allowed_tools = [\"search_notes\"]\n");
    let model = calls("append_to_note", json!({ "path": "Far.md", "content": "y" }));
    let mut editor = Editor::able(&place, &model);
    let session = open(&mut editor, &place.vault(), json!([server]));
    editor.chooses("allow");
    editor.say(&session, "Go");
    assert!(model.told("tool")[0].contains("denied"), "{:?}", model.told("tool"));
    assert!(!named(&model, "append_to_note").is_empty());
    place.configure("tools.toml", "");
    let mut editor = Editor::able(&place, &model);
    let session = open(&mut editor, &place.vault(), json!([server]));
    editor.result("session/set_mode", json!({ "sessionId": session, "modeId": "read" }));
    editor.say(&session, "Go");
    assert!(editor.said().contains("There is no such tool."), "{}", editor.said());
    assert_eq!(
        (editor.asked.len(), std::fs::read_to_string(folder.join("Far.md")).unwrap()),
        (0, "about herons\n".into())
    );
}

#[test]
fn a_server_that_fails_is_said_and_left_out() {
    let place = Place::new("//- Home.md\nx\n");
    let model = ModelServer::that(|_| Reply::text("Without it."));
    let gone = json!({ "name": "gone", "command": "/no/such/program", "args": [], "env": [] });
    for (capabilities, kind) in [(everything(), "notice"), (json!({}), "agent_message_chunk")] {
        let mut editor = Editor::start(agent(&place, &model, &[]), capabilities);
        let session = open(&mut editor, &place.vault(), json!([gone]));
        editor.until(|editor| !editor.of(kind).is_empty());
        assert!(editor.of(kind)[0].to_string().contains("gone"), "{:?}", editor.of(kind));
        assert_eq!(editor.stops(&session, "Go"), "end_turn");
    }
    let mut editor = Editor::plain(&place, &model);
    let sse = json!([{ "type": "sse", "name": "old", "url": "http://127.0.0.1:9/sse", "headers": [] }]);
    let (code, message) = editor.error("session/new", json!({ "cwd": place.vault(), "mcpServers": sse }));
    assert!(code == -32602 && message.contains("MCP servers"), "{code} {message}");
}

#[test]
fn questions_of_a_server_are_forms_of_the_editor() {
    let place = Place::new("//- Home.md\nx\n");
    let (folder, mut server) = other(&place);
    server["args"] = json!(["mcp", "--vault", folder]);
    let model = calls("append_to_note", json!({ "path": "Far.md", "content": "and otters" }));
    let mut editor = Editor::able(&place, &model);
    let session = open(&mut editor, &place.vault(), json!([server]));
    editor.answers(|method, params| match method {
        "elicitation/create" => {
            let message = params["message"].as_str().unwrap();
            assert!(message.starts_with("The MCP server other asks: append_to_note in the vault Other"), "{message}");
            Some(json!({ "action": "accept", "content": { "approve": true } }))
        }
        _ => {
            assert!(options(params).contains(&"edit".to_owned()));
            Some(selected("allow"))
        }
    });
    editor.say(&session, "Go");
    assert_eq!(std::fs::read_to_string(folder.join("Far.md")).unwrap(), "about herons\n\nand otters\n");
    assert_eq!(editor.asked.len(), 2);
}

/// The processes whose command line holds a text.
#[cfg(target_os = "linux")]
fn processes(with: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| std::fs::read_to_string(entry.path().join("cmdline")).ok());
    lines.filter(|line| line.contains(with) && line.contains("\0mcp\0")).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn servers_end_with_their_session_and_with_the_agent() {
    let place = Place::new("//- Home.md\nx\n");
    let (folder, server) = other(&place);
    let folder = folder.display().to_string();
    let model = ModelServer::that(|_| Reply::text("ok"));
    let ends = |what: &str| {
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while !processes(&folder).is_empty() {
            assert!(std::time::Instant::now() < deadline, "{what}: {:?}", processes(&folder));
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    };
    let mut editor = Editor::plain(&place, &model);
    let session = open(&mut editor, &place.vault(), json!([server]));
    assert_eq!(processes(&folder).len(), 1);
    editor.result("session/close", json!({ "sessionId": session }));
    ends("closed");
    open(&mut editor, &place.vault(), json!([server]));
    assert_eq!(processes(&folder).len(), 1);
    assert_eq!(editor.end().0, 0);
    assert!(processes(&folder).is_empty(), "nothing is left when the agent has ended");
}
