//! What each path takes and gives.

use std::sync::{Arc, Mutex};

use agent_loop::{Delta, EndReason, ScriptedModel, ScriptedReply};
use agent_proxy::{Proxy, ProxyOptions, UnknownModel};
use serde_json::{Value, json};

use super::{CHAT, RESPONSES, RunningProxy, question};
use crate::chat::check_chunks;
use crate::responses::accumulate;

/// A text-only model that makes these replies.
fn writes(texts: &[&str]) -> ScriptedModel {
    ScriptedModel::new(texts.iter().map(|text| ScriptedReply::text(*text).usage(3, 4))).without_tools()
}

const CALLS: &str = "I look.<tool_call>{\"name\":\"look\",\"arguments\":{\"at\":\"ä\"}}</tool_call>\
    <tool_call>{\"name\":\"look\"}</tool_call>";

#[tokio::test]
async fn a_text_only_model_answers_with_events_and_as_one_object() {
    let server = RunningProxy::with(ProxyOptions::default(), writes(&[CALLS, CALLS])).await;
    let mut body = question(RESPONSES, "hi", true);
    body["tools"] = json!([{"type": "function", "name": "look", "parameters": {"type": "object"}}]);
    let mut client = server.client().await;
    client.send("POST", RESPONSES, &[], &body.to_string()).await;
    let head = client.head().await;
    assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream; charset=utf-8")));
    assert!(head.header("x-request-id").is_some_and(|id| id.starts_with("req_")));
    let events = client.events().await;
    let streamed = accumulate(&events)["response"]["output"].clone();

    // On the same connection.
    body["stream"] = json!(false);
    client.send("POST", RESPONSES, &[], &body.to_string()).await;
    let (status, whole) = client.json().await;
    assert_eq!((status, &whole["status"], &whole["usage"]["total_tokens"]), (200, &json!("completed"), &json!(7)));
    let without_ids = |output: &Value| -> Vec<Value> {
        let mut items = output.as_array().unwrap().clone();
        items.iter_mut().for_each(|item| (item["id"], item["call_id"]) = (Value::Null, Value::Null));
        items
    };
    assert_eq!(without_ids(&whole["output"]), without_ids(&streamed));
    assert_ne!(whole["output"][1]["call_id"], streamed[1]["call_id"], "ids are unlike those of any other response");
    assert_eq!(streamed[1]["arguments"], "{\"at\":\"ä\"}");
    server.ended().await;
}

#[tokio::test]
async fn chat_answers_with_chunks_and_as_one_object() {
    let server = RunningProxy::with(ProxyOptions::default(), writes(&[CALLS, CALLS])).await;
    let mut body = question(CHAT, "hi", true);
    body["tools"] = json!([{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]);
    body["stream_options"] = json!({"include_usage": true});
    let mut client = server.client().await;
    client.send("POST", CHAT, &[], &body.to_string()).await;
    assert_eq!(client.head().await.status, 200);
    let streamed = check_chunks(&client.events().await);
    assert_eq!((&streamed.finish[..], &streamed.text[..], streamed.calls.len()), ("tool_calls", "I look.", 2));
    assert_eq!(streamed.usage["total_tokens"], 7);

    body["stream"] = json!(false);
    client.send("POST", CHAT, &[], &body.to_string()).await;
    let (status, whole) = client.json().await;
    let message = &whole["choices"][0]["message"];
    assert_eq!((status, &whole["object"]), (200, &json!("chat.completion")));
    assert_eq!(message["content"], "I look.");
    assert_eq!(message["tool_calls"][1]["function"], json!({"name": "look", "arguments": "{}"}));
    server.ended().await;
}

/// What a client of either API was told, streaming or not.
async fn text_of(server: &RunningProxy, path: &str, body: &Value) -> String {
    let mut client = server.client().await;
    client.send("POST", path, &[], &body.to_string()).await;
    let of_output = |output: &Value| {
        let items = output.as_array().unwrap().iter().filter(|item| item["type"] == "message");
        items.map(|item| item["content"][0]["text"].as_str().unwrap()).collect::<String>()
    };
    match (path, body["stream"] == true) {
        (RESPONSES, true) => {
            client.head().await;
            let events = client.events().await;
            let pieces = events.iter().filter(|event| event["type"] == "response.output_text.delta");
            let pieces: String = pieces.map(|event| event["delta"].as_str().unwrap()).collect();
            assert_eq!(of_output(&accumulate(&events)["response"]["output"]), pieces);
            pieces
        }
        (RESPONSES, false) => of_output(&client.json().await.1["output"]),
        (_, true) => {
            client.head().await;
            check_chunks(&client.events().await).text
        }
        _ => client.json().await.1["choices"][0]["message"]["content"].as_str().unwrap().to_string(),
    }
}

#[tokio::test]
async fn repeated_backend_text_is_passed_on_once() {
    let so_far = |begin: usize, text: &str| Delta::CumulativeText { begin, text: text.into() };
    let reply = || {
        ScriptedReply::deltas([
            Delta::Text { text: "ha ".into() },
            Delta::Text { text: "ha ".into() },
            so_far(0, "ha ha "),
            so_far(3, "ha no<b"),
            so_far(0, "ha ha no<b"),
            Delta::End(EndReason::Complete),
        ])
    };
    for path in [RESPONSES, CHAT] {
        for stream in [true, false] {
            let tool = match path {
                RESPONSES => json!({"type": "function", "name": "look"}),
                _ => json!({"type": "function", "function": {"name": "look"}}),
            };
            let mut body = question(path, "hi", stream);
            body["tools"] = json!([tool]);
            for model in [ScriptedModel::new([reply()]), ScriptedModel::new([reply()]).without_tools()] {
                let server = RunningProxy::with(ProxyOptions::default(), model).await;
                assert_eq!(text_of(&server, path, &body).await, "ha ha no<b", "{body}");
            }
        }
    }
}

#[tokio::test]
async fn results_go_back_and_oddities_are_warnings() {
    let model = ScriptedModel::new([ScriptedReply::text("So.").expecting(|request| {
        let text = request.messages[2].text();
        let is_there = text.contains("crimson") && request.messages[1].text().contains("<tool_call>");
        is_there.then_some(()).ok_or(text)
    })]);
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hear = Arc::clone(&heard);
    let on_warning = move |warning: &str| hear.lock().unwrap().push(warning.to_string());
    let options = ProxyOptions::default().on_warning(Some(Arc::new(on_warning)));
    let server = RunningProxy::with(options, model.without_tools()).await;
    let tool = json!({"type": "function", "name": "look"});
    let input = json!([
        {"role": "user", "content": "hi"},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "crimson"},
        {"type": "function_call_output", "call_id": "c2", "output": "lost"},
    ]);
    let (status, whole) = server.post(RESPONSES, &json!({"model": "m", "input": input, "tools": [tool]})).await;
    assert_eq!((status, &whole["output"][0]["content"][0]["text"]), (200, &json!("So.")));
    let heard = heard.lock().unwrap();
    assert!(heard.len() == 1 && heard[0].contains("c2"), "{heard:?}");
}

#[tokio::test]
async fn models_are_listed_and_found_by_name() {
    let proxy = Proxy::new(ProxyOptions::default()).model("m", writes(&["one"])).model("org/other", writes(&["two"]));
    let proxy = proxy.context_length("org/other", 32_768).context_length("gone", 1);
    let server = RunningProxy::start(proxy).await;
    let (_, list) = server.get("/v1/models").await;
    let names: Vec<&Value> = list["data"].as_array().unwrap().iter().map(|model| &model["id"]).collect();
    assert_eq!(names, [&json!("m"), &json!("org/other")]);
    let other = server.get("/v1/models/org/other").await.1;
    assert_eq!((&other["id"], &other["context_length"]), (&json!("org/other"), &json!(32_768)));
    assert_eq!(list["data"][1], other);
    assert!(list["data"][0].get("context_length").is_none(), "nobody stated it");
    assert_eq!(server.get("/v1/models/gone").await.0, 404);
    assert_eq!(server.get("/health").await, (200, json!({"status": "ok", "replies": 0})));
    for (path, name, text) in [(RESPONSES, "m", "one"), (CHAT, "org/other", "two")] {
        let mut body = question(path, "hi", false);
        body["model"] = json!(name);
        let (status, whole) = server.post(path, &body).await;
        assert!(status == 200 && whole.to_string().contains(text), "{whole}");
        assert_eq!(whole["model"], name);
        body["model"] = json!("gone");
        let (status, error) = server.post(path, &body).await;
        let error = &error["error"];
        assert_eq!((status, &error["code"], &error["param"]), (404, &json!("model_not_found"), &json!("model")));
    }
    server.ended().await;
}

#[tokio::test]
async fn the_first_model_may_stand_in_for_all() {
    let options = ProxyOptions::default().unknown_model(UnknownModel::First);
    let server = RunningProxy::start(Proxy::new(options).model("m", writes(&["one"]))).await;
    let (status, whole) = server.post(RESPONSES, &json!({"model": "gpt-9", "input": "hi"})).await;
    assert_eq!((status, &whole["model"]), (200, &json!("gpt-9")));
}

#[tokio::test]
async fn what_cannot_be_served_is_refused_as_json() {
    let options = ProxyOptions::default().max_body(1000);
    let server = RunningProxy::with(options, writes(&["still there"])).await;
    let long = question(CHAT, &"x".repeat(1000), false).to_string();
    for (method, path, body, status, code, param) in [
        ("POST", RESPONSES, "{", 400, Value::Null, Value::Null),
        ("POST", RESPONSES, "{\"model\":\"m\",\"input\":7}", 400, Value::Null, json!("input")),
        (
            "POST",
            CHAT,
            "{\"model\":\"m\",\"messages\":[{\"role\":\"king\"}]}",
            400,
            Value::Null,
            json!("messages[0].role"),
        ),
        ("POST", CHAT, &long, 413, json!("request_too_large"), Value::Null),
        ("GET", RESPONSES, "", 405, json!("method_not_allowed"), Value::Null),
        ("POST", "/v1/embeddings", "{}", 404, json!("not_found"), Value::Null),
    ] {
        let mut client = server.client().await;
        client.send(method, path, &[], body).await;
        let (got, error) = client.json().await;
        let error = &error["error"];
        assert_eq!((got, &error["code"], &error["param"]), (status, &code, &param), "{method} {path}: {error}");
        assert_eq!(error["type"], "invalid_request_error");
    }
    assert_eq!(server.post(RESPONSES, &question(RESPONSES, "hi", false)).await.0, 200);
}

#[tokio::test]
async fn a_text_only_model_gives_structured_answers() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    for (path, wanted, good) in [
        (RESPONSES, json!({"text": {"format": {"type": "json_schema", "name": "n", "schema": schema}}}), "{\"n\":1}"),
        (RESPONSES, json!({"text": {"format": {"type": "json_object"}}}), "{}"),
        (
            CHAT,
            json!({"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}}),
            "{\"n\":1}",
        ),
        (CHAT, json!({"response_format": {"type": "json_object"}}), "{}"),
    ] {
        let server = RunningProxy::with(ProxyOptions::default(), writes(&["It is 1.", good])).await;
        let mut body = question(path, "hi", false);
        body.as_object_mut().unwrap().extend(wanted.as_object().unwrap().clone());
        let mut client = server.client().await;
        client.send("POST", path, &[], &body.to_string()).await;
        let (status, whole) = client.json().await;
        let text = if path == CHAT {
            &whole["choices"][0]["message"]["content"]
        } else {
            &whole["output"][0]["content"][0]["text"]
        };
        assert_eq!((status, text.as_str(), &whole["usage"]["total_tokens"]), (200, Some(good), &json!(14)), "{whole}");
        server.ended().await;
    }
}
