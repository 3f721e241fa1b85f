//! Over HTTP: who may ask, and how much.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::http_server::HttpServer;
use crate::stdio::Place;

fn start(place: &Place, args: &[&str]) -> HttpServer {
    HttpServer::start(place.command(&[&["mcp", "--http", "127.0.0.1:0"], args].concat()))
}

fn post(server: &HttpServer, headers: &[(&str, &str)], body: &str) -> (u16, String) {
    let mut all = String::from("Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n");
    headers.iter().for_each(|(name, value)| all += &format!("{name}: {value}\r\n"));
    server.ask("POST", "/mcp", &all, body)
}

const NEW: [(&str, &str); 2] = [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/list")];

fn list() -> String {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "_meta": meta } }).to_string()
}

fn initialize() -> String {
    let client = json!({ "name": "test", "version": "1" });
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }).to_string()
}

#[test]
fn only_those_are_answered_who_may_ask() {
    let place = Place::new("//- a.md\nx\n");
    place.write("../key", "a long secret\n");
    let open = start(&place, &["--host", "notes.example.org"]);
    let with = |more: &[(&'static str, &'static str)]| [&NEW[..], more].concat();
    let status = |server: &HttpServer, more: &[(&'static str, &'static str)]| post(server, &with(more), &list()).0;
    assert_eq!(status(&open, &[]), 200);
    assert_eq!(status(&open, &[("Host", "notes.example.org")]), 200);
    assert_eq!(status(&open, &[("Host", "evil.example")]), 403, "a name that was made to lead here");
    assert_eq!(status(&open, &[("Origin", "https://evil.example")]), 403, "a page of the web");
    assert_eq!(status(&open, &[("Origin", "null")]), 403);

    let locked = start(&place, &["--key-file", "key"]);
    assert_eq!(status(&locked, &[]), 401);
    assert_eq!(status(&locked, &[("Authorization", "Bearer a wrong secret")]), 401);
    assert_eq!(status(&locked, &[("Authorization", "Bearer a long secret")]), 200);
}

#[test]
fn others_can_reach_it_only_with_a_key() {
    let place = Place::new("//- a.md\nx\n");
    let output = place.command(&["mcp", "--http", "0.0.0.0:0"]).stdin(Stdio::null()).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(3) && errors.contains("--key-file"), "{errors}");
}

#[test]
fn a_request_is_limited_in_size() {
    let place = Place::new("//- a.md\nx\n");
    let server = start(&place, &[]);
    let sized = |mib: usize| list().replace("\"id\":1", &format!("\"id\":\"{}\"", "x".repeat(mib << 20)));
    let (status, body) = post(&server, &NEW, &sized(9));
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, &body["id"], &body["error"]["code"]), (413, &Value::Null, &json!(-32600)), "{body}");
    assert!(body["error"]["message"].as_str().unwrap().contains("longer than 8 MiB"), "{body}");
    assert_eq!(post(&server, &NEW, &sized(7)).0, 200);
}

#[test]
fn what_is_no_message_has_an_error_of_the_protocol() {
    let place = Place::new("//- a.md\nx\n");
    let server = start(&place, &[]);
    let deep = list().replace("\"params\":{", &format!("\"params\":{{\"a\":{}{},", "[".repeat(200), "]".repeat(200)));
    for (body, id, code) in [
        ("", Value::Null, -32700),
        ("garbage", Value::Null, -32700),
        (&list()[1..], Value::Null, -32700),
        (&list()[..list().len() - 1], Value::Null, -32700),
        (&deep, json!(1), -32600),
        (&list().replace("2.0", "1.0"), json!(1), -32600),
        (r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":5}"#, Value::Null, -32600),
        ("[]", Value::Null, -32600),
    ] {
        // Of the newest revision, and of the older ones.
        for headers in [&NEW[..], &[]] {
            let (status, answer) = post(&server, headers, body);
            let answer: Value = serde_json::from_str(&answer).unwrap_or_else(|_| panic!("{body}: {status} {answer}"));
            assert_eq!((status, answer.get("id"), &answer["error"]["code"]), (400, Some(&id), &json!(code)), "{body}");
            assert_eq!(answer["jsonrpc"], "2.0");
        }
    }
    // A body that nobody called JSON is not read as JSON.
    let headers = "Content-Type: text/plain\r\nAccept: application/json, text/event-stream\r\n";
    assert_eq!(server.ask("POST", "/mcp", headers, &list()).0, 415);
    // What the client takes is looked at first.
    assert_eq!(server.ask("POST", "/mcp", "Content-Type: application/json\r\n", "garbage").0, 406);
    assert_eq!(post(&server, &NEW, &list()).0, 200);
}

#[test]
fn sessions_of_older_clients_are_limited_in_number() {
    let place = Place::new("//- a.md\nx\n");
    let server = start(&place, &[]);
    let refused = (0..300).map(|_| post(&server, &[], &initialize())).position(|(status, _)| status == 503);
    assert_eq!(refused, Some(256));
    // Clients of the newest revision have none.
    let (status, body) = post(&server, &NEW, &list());
    let json = body.lines().find_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok());
    assert!(status == 200 && json.unwrap()["result"]["tools"].is_array(), "{body}");
}

#[cfg(unix)]
#[test]
fn it_ends_well_when_it_is_asked_to() {
    let place = Place::new("//- a.md\nx\n");
    let mut server = start(&place, &[]);
    let id = rustix::process::Pid::from_child(&server.child);
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}
