//! Features of Ollama's own API only: thoughts beside the text, errors as lines, missing models.

use agent_loop::{EndReason, ErrorKind, Message, Part, ReturnReasoning, Status, ToolCall, ToolResult, Wire};
use serde_json::{Value, json};

use super::wires::{ollama, text_only};
use super::*;

cases! {
    "requests: key, system message, calls, results, tools" messages_of_ollama,
    "dialects: calls in one piece, one index or id for all calls, arguments as null or object, reasoning, no `[DONE]` …" dialects_of_ollama,
    "reasoning, signatures and ids are sent back unchanged" thoughts_of_ollama_go_back_to_it_alone,
    "errors inside the stream" how_ollama_fails,
    "a missing model: the error says how to get it" a_model_that_is_not_pulled,
}

#[tokio::test]
async fn messages_of_ollama() {
    let (model, canned) = hosted(Wire::Ollama, [Answer::json(500, &json!({}))]);
    let call = ToolCall::new("c1", "notes.read", json!({"x": 1}));
    let result = ToolResult::new(&call, Status::Ok, "one");
    let messages = [
        Message::user("hi"),
        Message::Assistant { parts: vec![Part::text("I look."), Part::Call(call)] },
        Message::Results { results: vec![result] },
        Message::user("and?"),
    ];
    deltas(&model, request().messages(messages.into_iter().collect())).await.1.unwrap_err();
    let (request, body) = sent(&canned);
    assert_eq!(request.url, "http://127.0.0.1:1/v1/api/chat");
    assert!(request.headers.contains(&("authorization".into(), format!("Bearer {KEY}"))), "its cloud has keys");
    let function = json!({"name": "notes_read", "arguments": {"x": 1}});
    let expected = json!([
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "I look.", "tool_calls": [{"id": "c1", "type": "function", "function": function}]},
        {"role": "tool", "tool_name": "notes_read", "tool_call_id": "c1", "content": "one"},
        {"role": "user", "content": "and?"},
    ]);
    assert_eq!(body["messages"], expected);
    assert_eq!(body["tools"][0]["function"]["parameters"], tools()[0].parameters);
    assert_eq!((&body["stream"], &body["truncate"]), (&json!(true), &json!(false)), "nothing is lost without a word");
    for open in ["options", "think", "format", "keep_alive"] {
        assert!(body.get(open).is_none(), "{open} is the server's to choose");
    }
}

#[tokio::test]
async fn dialects_of_ollama() {
    let call = |arguments: Value| json!({"content": "", "tool_calls": [{"function": {"index": 0, "name": "now", "arguments": arguments}}]});
    for (what, messages, reason, expected) in [
        (
            "thoughts in pieces",
            vec![json!({"thinking": "h"}), json!({"thinking": "m"}), json!({"content": "a"})],
            "stop",
            "(hm signed)|a|Complete",
        ),
        ("thoughts alone", vec![json!({"thinking": "hm"})], "length", "(hm signed)|Length"),
        ("every call at index 0", vec![call(json!({})), call(json!({}))], "stop", "now {}|now {}|Complete"),
        ("arguments as text", vec![call(json!("{\"z\": 1, \"a\": 2}"))], "stop", "now {\"z\":1,\"a\":2}|Complete"),
        ("no arguments", vec![call(json!(null))], "stop", "now {}|Complete"),
        ("the server unloads the model", vec![json!({"content": "a"})], "unload", "a|Complete"),
    ] {
        let bytes = ollama(&messages, reason);
        for bytes in [bytes.clone(), bytes.replace('\n', "\r\n\r\n"), bytes.trim_end().into()] {
            let answer = Answer::new(200, "application/x-ndjson", bytes, 13);
            assert_eq!(show(&reply(Wire::Ollama, answer).await.unwrap()), expected, "{what}");
        }
    }
}

#[tokio::test]
async fn thoughts_of_ollama_go_back_to_it_alone() {
    let call = json!({"content": "", "tool_calls": [{"id": "c", "function": {"name": "now", "arguments": {}}}]});
    let bytes = ollama(&[json!({"thinking": "hm, "}), json!({"thinking": "yes"}), call], "stop");
    for (name, returned, expected) in [
        ("here", ReturnReasoning::AsReceived, Some("hm, yes")),
        ("here", ReturnReasoning::Never, None),
        ("another", ReturnReasoning::AsReceived, None),
    ] {
        let first = reply(Wire::Ollama, Answer::events(&bytes, 9)).await.unwrap();
        let answer = Answer::events(text_only(Wire::Ollama, EndReason::Complete), 9);
        let (model, canned) = provided(Wire::Ollama, [answer], |provider| {
            provider.name = name.into();
            provider.return_reasoning = returned;
        });
        let message = Message::Assistant { parts: first.parts };
        let results = message.calls().map(|call| ToolResult::new(call, Status::Ok, "done")).collect();
        let messages = [Message::user("hi"), message, Message::Results { results }];
        deltas(&model, request().messages(messages.into_iter().collect())).await.1.unwrap();
        let body = sent(&canned).1;
        assert_eq!(body["messages"][2].get("thinking").and_then(Value::as_str), expected, "{body}");
    }
}

#[tokio::test]
async fn how_ollama_fails() {
    let before = ollama(&[json!({"content": "a"})], "stop");
    let (before, _) = before.split_once('\n').unwrap();
    for (message, kind) in [
        ("an error was encountered while running the model", ErrorKind::Unavailable),
        ("registry.ollama.ai/library/gemma does not support tools", ErrorKind::ToolsUnsupported),
        (
            "request (351 tokens) exceeds the available context size (256 tokens), try increasing it",
            ErrorKind::ContextTooLong,
        ),
    ] {
        let bytes = format!("{before}\n{}\n", json!({"error": message}));
        let (model, _) = hosted(Wire::Ollama, [Answer::new(200, "application/x-ndjson", bytes, 10)]);
        let (seen, end) = deltas(&model, request()).await;
        assert_eq!((seen.len(), end.unwrap_err().kind()), (1, kind), "{message}");
    }
    // The error of the server behind it, as text within its own.
    let inner = json!({"error": {"code": 400, "message": "request (351 tokens) exceeds the available context size (256 tokens)"}});
    let error = reply(Wire::Ollama, Answer::json(400, &json!({"error": inner.to_string()}))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ContextTooLong);
}

#[tokio::test]
async fn a_model_that_is_not_pulled() {
    for message in ["model 'm' not found", "model \"m\" not found, try pulling it first"] {
        let error = reply(Wire::Ollama, Answer::json(404, &json!({"error": message}))).await.unwrap_err();
        assert_eq!((error.kind(), error.status()), (ErrorKind::BadRequest, Some(404)));
        assert_eq!(error.remedy(), Some("pull it first: `ollama pull m`"), "{error}");
        assert!(error.to_string().starts_with(&format!("here: {message}")), "{error}");
    }
    let no_such_page = Answer::new(404, "text/plain", "404 page not found", 9);
    let remedy = "check the model's name and the address";
    assert_eq!(reply(Wire::Ollama, no_such_page).await.unwrap_err().remedy(), Some(remedy));
}
