//! Over HTTP: who may ask, and how much.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::stdio::Place;

/// A server at a free port.
struct Server {
    child: Child,
    address: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    fn start(place: &Place, args: &[&str]) -> Self {
        let mut command = place.command(&[&["mcp", "--http", "127.0.0.1:0"], args].concat());
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let errors = BufReader::new(child.stderr.take().unwrap());
        let said = errors.lines().map_while(Result::ok).find_map(|line| {
            let address = line.strip_prefix("note: listening on http://")?.strip_suffix("/mcp")?;
            Some(address.to_owned())
        });
        Self { child, address: said.expect("it says where it listens") }
    }

    /// The status and the body of the answer to a POST.
    fn post(&self, headers: &[(&str, &str)], body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let mut request = String::from("POST /mcp HTTP/1.1\r\nConnection: close\r\nContent-Type: application/json\r\n");
        request += "Accept: application/json, text/event-stream\r\n";
        if !headers.iter().any(|(name, _)| *name == "Host") {
            request += &format!("Host: {}\r\n", self.address);
        }
        headers.iter().for_each(|(name, value)| request += &format!("{name}: {value}\r\n"));
        request += &format!("Content-Length: {}\r\n\r\n{body}", body.len());
        // A server that refuses a large body does not read it.
        let _ = stream.write_all(request.as_bytes());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        (status, answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default())
    }
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
    let open = Server::start(&place, &["--host", "notes.example.org"]);
    let with = |more: &[(&'static str, &'static str)]| [&NEW[..], more].concat();
    let status = |server: &Server, more: &[(&'static str, &'static str)]| server.post(&with(more), &list()).0;
    assert_eq!(status(&open, &[]), 200);
    assert_eq!(status(&open, &[("Host", "notes.example.org")]), 200);
    assert_eq!(status(&open, &[("Host", "evil.example")]), 403, "a name that was made to lead here");
    assert_eq!(status(&open, &[("Origin", "https://evil.example")]), 403, "a page of the web");
    assert_eq!(status(&open, &[("Origin", "null")]), 403);

    let locked = Server::start(&place, &["--key-file", "key"]);
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
    let server = Server::start(&place, &[]);
    let (status, _) = server.post(&NEW, &list().replace("\"id\":1", &format!("\"id\":\"{}\"", "x".repeat(9 << 20))));
    assert_eq!(status, 413);
    assert_eq!(server.post(&NEW, &list()).0, 200);
}

#[test]
fn sessions_of_older_clients_are_limited_in_number() {
    let place = Place::new("//- a.md\nx\n");
    let server = Server::start(&place, &[]);
    let refused = (0..300).map(|_| server.post(&[], &initialize())).position(|(status, _)| status == 503);
    assert_eq!(refused, Some(256));
    // Clients of the newest revision have none.
    let (status, body) = server.post(&NEW, &list());
    let json = body.lines().find_map(|line| serde_json::from_str::<Value>(line.trim_start_matches("data: ")).ok());
    assert!(status == 200 && json.unwrap()["result"]["tools"].is_array(), "{body}");
}

#[cfg(unix)]
#[test]
fn it_ends_well_when_it_is_asked_to() {
    let place = Place::new("//- a.md\nx\n");
    let mut server = Server::start(&place, &[]);
    let id = rustix::process::Pid::from_child(&server.child);
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}
