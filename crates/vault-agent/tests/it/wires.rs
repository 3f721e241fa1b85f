//! A conversation of five turns with tools through `chat`, over each of the wires. The server refuses a request that the
//! provider would refuse.

use serde_json::{Value, json};

use crate::model_server::{ModelServer, Reply};
use crate::stdio::Place;
use crate::terminal::Terminal;
use crate::web_server::ReceivedRequest;
use crate::wire_rules::{KEY, Rules, Wire};

const NOTES: &str = "//- Garden/Roses.md\n# Roses\n\nPrune them in late winter.\n//- Log.md\n# Log\n";

/// In each turn a search, in the third also a note that is read beside it, and in the last two a change.
fn replies() -> Vec<Reply> {
    let search = |turn: usize| ("search_notes".to_owned(), json!({ "query": format!("roses {turn}") }));
    let append = |text: &str| ("append_to_note".to_owned(), json!({ "path": "Log.md", "content": text }));
    let mut replies = Vec::new();
    for turn in 1..=5 {
        let mut calls = vec![search(turn)];
        match turn {
            3 => calls.push(("read_note".to_owned(), json!({ "path": "Garden/Roses.md" }))),
            4 => calls.push(append("- refused")),
            5 => calls.push(append("- roses")),
            _ => {}
        }
        replies.extend([Reply::Calls(calls), Reply::Text(format!("Answer {turn} [Garden/Roses.md:3]."))]);
    }
    replies
}

/// Whether a part of a request is the result of a call, whatever its wire.
fn is_result(value: &Value) -> bool {
    let kind = value["type"].as_str();
    value["role"] == "tool"
        || matches!(kind, Some("function_call_output" | "tool_result"))
        || value.get("functionResponse").is_some()
}

/// The results of calls in a request.
fn results(value: &Value) -> usize {
    match value {
        Value::Array(values) => values.iter().map(results).sum(),
        Value::Object(_) if is_result(value) => 1,
        Value::Object(fields) => fields.values().map(results).sum(),
        _ => 0,
    }
}

/// Takes the first result out of a request.
fn lose_a_result(value: &mut Value) -> bool {
    match value {
        Value::Array(values) => match values.iter().position(is_result) {
            Some(at) => {
                values.remove(at);
                true
            }
            None => values.iter_mut().any(lose_a_result),
        },
        Value::Object(fields) => fields.values_mut().any(lose_a_result),
        _ => false,
    }
}

/// The rules refuse what is not as this request is.
fn check_rules(rules: Rules, good: &ReceivedRequest) {
    assert_eq!(rules.check(good), Ok(()));
    let elsewhere = ReceivedRequest { target: format!("{}s", good.target), ..good.clone() };
    let other_key = Rules { has_key: !rules.has_key, ..rules };
    let mut body: Value = serde_json::from_str(&good.body).unwrap();
    let without_tools = ReceivedRequest { body: body.to_string().replace("\"tools\"", "\"tool\""), ..good.clone() };
    assert!(lose_a_result(&mut body));
    let without_a_result = ReceivedRequest { body: body.to_string(), ..good.clone() };
    for (rules, bad) in [(rules, &elsewhere), (other_key, good), (rules, &without_tools), (rules, &without_a_result)] {
        assert!(rules.check(bad).is_err(), "{rules:?}: {bad:?}");
    }
}

/// Talks with a provider whose API begins at `base` on the server; `key` is the variable of its key, if it wants one.
/// Without a provider it is the address itself.
fn converse(provider: Option<&str>, base: &str, key: Option<&str>, wire: Wire, target: &'static str) {
    let place = Place::new(NOTES);
    let rules = Rules { wire, target, has_key: key.is_some() };
    let model = ModelServer::with_rules(rules, replies());
    let address = format!("{}{base}", model.address.trim_end_matches("/v1"));
    let mut command = place.command(&["chat"]);
    match provider {
        Some(name) => command.env("VAULT_AGENT_PROVIDER", name).env("VAULT_AGENT_BASE_URL", address),
        None => command.env("VAULT_AGENT_PROVIDER", address),
    };
    command.envs(key.map(|variable| (variable, KEY)));
    command.env("VAULT_AGENT_MODEL", "scripted").env("TERM", "xterm-256color").env("NO_COLOR", "1");
    let mut terminal = Terminal::start(&command, 100);
    for turn in 1..=5 {
        terminal.say(&format!("question {turn}"));
        if turn >= 4 {
            terminal.until("edit the arguments");
            terminal.press(if turn == 4 { "n" } else { "y" });
        }
        if turn == 4 {
            terminal.until("what instead?");
            terminal.press("not now\r");
        }
        terminal.until("220 tokens");
    }
    terminal.say("/quit");
    let (screen, code) = terminal.end();
    assert_eq!(code, 0, "{provider:?}: {screen}");
    for turn in 1..=5 {
        let answer = format!("Answer {turn} [Garden/Roses.md:3].");
        assert_eq!(screen.matches(&answer).count(), 1, "{provider:?}: {answer}: {screen}");
    }
    let requests = model.requests();
    let counts: Vec<usize> = requests.iter().map(results).collect();
    assert_eq!(counts, [0, 1, 1, 2, 2, 4, 4, 6, 6, 8], "{provider:?}: every call has its one result from then on");
    let last = requests.last().unwrap().to_string();
    for told in ["Prune them in late winter", "Answer 4", "not now", "transaction 1"] {
        assert!(last.contains(told), "{provider:?}: {told}: {last}");
    }
    assert!(!last.contains(KEY) && !screen.contains(KEY), "{provider:?}");
    assert_eq!(place.read("Log.md"), "# Log\n\n- roses\n", "{provider:?}");
    check_rules(rules, model.asked().last().unwrap());
}

#[test]
fn responses() {
    converse(Some("openai"), "/v1", Some("OPENAI_API_KEY"), Wire::Responses, "/v1/responses");
}

#[test]
fn chat_completions() {
    let (wire, target) = (Wire::Chat, "/v1/chat/completions");
    converse(Some("openai-chat"), "/v1", Some("OPENAI_API_KEY"), wire, target);
    converse(Some("openrouter"), "/api/v1", Some("OPENROUTER_API_KEY"), wire, "/api/v1/chat/completions");
    converse(Some("lmstudio"), "/v1", None, wire, target);
    converse(None, "/v1", Some("VAULT_AGENT_API_KEY"), wire, target);
}

#[test]
fn anthropic() {
    converse(Some("anthropic"), "/v1", Some("ANTHROPIC_API_KEY"), Wire::Anthropic, "/v1/messages");
}

#[test]
fn gemini() {
    let target = "/v1beta/models/scripted:streamGenerateContent?alt=sse";
    converse(Some("gemini"), "/v1beta", Some("GEMINI_API_KEY"), Wire::Gemini, target);
}

#[test]
fn ollama() {
    converse(Some("ollama"), "/v1", None, Wire::Ollama, "/api/chat");
}
