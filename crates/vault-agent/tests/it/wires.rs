//! A conversation of five turns with tools through `chat`, over each of the wires.

use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::model_server::{ModelServer, Reply};
use crate::stdio::Place;

const NOTES: &str = "//- Garden/Roses.md\n# Roses\n\nPrune them in late winter.\n//- Log.md\n# Log\n";

/// In each turn a search, in the third also a note that is read beside it, and in the last a change, which is denied.
fn replies() -> Vec<Reply> {
    let search = |turn: usize| ("search_notes".to_owned(), json!({ "query": format!("roses {turn}") }));
    let mut replies = Vec::new();
    for turn in 1..=5 {
        let mut calls = vec![search(turn)];
        if turn == 3 {
            calls.push(("read_note".to_owned(), json!({ "path": "Garden/Roses.md" })));
        }
        if turn == 5 {
            calls.push(("append_to_note".to_owned(), json!({ "path": "Log.md", "content": "- roses" })));
        }
        replies.extend([Reply::Calls(calls), Reply::Text(format!("Answer {turn} [Garden/Roses.md:3]."))]);
    }
    replies
}

/// The results of calls in a request, whatever its wire.
fn results(value: &Value) -> usize {
    let is_result = |value: &Value| {
        let kind = value["type"].as_str();
        value["role"] == "tool"
            || matches!(kind, Some("function_call_output" | "tool_result"))
            || value.get("functionResponse").is_some()
    };
    match value {
        Value::Array(values) => values.iter().map(results).sum(),
        Value::Object(_) if is_result(value) => 1,
        Value::Object(fields) => fields.values().map(results).sum(),
        _ => 0,
    }
}

fn converse(provider: &str, path: &str) {
    let place = Place::new(NOTES);
    let before = place.tree();
    let model = ModelServer::with(replies());
    let address = format!("{}{path}", model.address.trim_end_matches("/v1"));
    let mut command = place.command(&["chat"]);
    command.env("VAULT_AGENT_PROVIDER", provider).env("VAULT_AGENT_BASE_URL", address);
    command.env("VAULT_AGENT_MODEL", "scripted");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let said: String = (1..=5).map(|turn| format!("question {turn}\n")).collect();
    child.stdin.take().unwrap().write_all(said.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{provider}: {errors}");
    let answers: String = (1..=5).map(|turn| format!("Answer {turn} [Garden/Roses.md:3].\n")).collect();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), answers, "{provider}: {errors}");
    let requests = model.requests();
    assert_eq!(requests.len(), 10, "{provider}");
    let counts: Vec<usize> = requests.iter().map(results).collect();
    assert_eq!(counts, [0, 1, 1, 2, 2, 4, 4, 5, 5, 7], "{provider}: every call has its one result from then on");
    let last = requests.last().unwrap().to_string();
    assert!(last.contains("Prune them in late winter") && last.contains("Answer 4"), "{provider}: {last}");
    assert!(last.contains("no one is there to approve it"), "{provider}: {last}");
    assert_eq!(place.tree(), before, "{provider}");
}

#[test]
fn responses() {
    converse("openai", "/v1");
}

#[test]
fn chat_completions() {
    converse("openai-chat", "/v1");
    converse("openrouter", "/v1");
}

#[test]
fn anthropic() {
    converse("anthropic", "/v1");
}

#[test]
fn gemini() {
    converse("gemini", "/v1beta");
}

#[test]
fn ollama() {
    converse("ollama", "/v1");
}
