//! The requests that are sent over each wire.

use agent_loop::{Message, Parallel, Part, Status, ToolCall, ToolResult, Wire};
use serde_json::json;

use super::*;

cases! {
    "requests: key, system message, calls, results, tools" chat_completions,
    "requests: key, system message, calls, results, tools" chat_completions_of_others,
    "requests: key, system message, calls, results, tools" messages_of_anthropic,
    "requests: key, system message, calls, results, tools" items_of_responses,
    "requests: key, system message, calls, results, tools" contents_of_gemini,
    "reasoning, signatures and ids are sent back unchanged" thoughts_of_other_providers_are_not_sent_to_anthropic,
    "structured answers, in strict mode where that changes nothing" the_shape_of_an_answer_is_strict_where_that_changes_nothing,
}

/// A conversation with two calls, one of them broken, and a second message of the person.
fn conversation() -> Vec<Message> {
    let mut broken = ToolCall::new("c:2", "now", json!("{\"x"));
    broken.fault = Some("cut".into());
    let calls = [ToolCall::new("c1", "notes.read", json!({"x": 1})), broken];
    let mut results =
        vec![ToolResult::new(&calls[0], Status::Ok, ""), ToolResult::new(&calls[1], Status::Error, "cut")];
    results[0].items = vec!["one".into(), "two".into()];
    let parts = [Part::Reasoning { text: "hm".into(), opaque: None }];
    let parts = parts.into_iter().chain(calls.map(Part::Call)).collect();
    vec![Message::user("hi"), Message::Assistant { parts }, Message::Results { results }, Message::user("and?")]
}

async fn body(wire: Wire, change: impl FnOnce(&mut Request)) -> (HttpRequest, Value) {
    let (model, canned) = hosted(wire, [Answer::json(500, &json!({}))]);
    let mut asked = request().messages(conversation().into_iter().collect());
    change(&mut asked);
    deltas(&model, asked).await.1.unwrap_err();
    sent(&canned)
}

#[tokio::test]
async fn chat_completions() {
    let (request, body) = body(Wire::OpenAiChat, |_| {}).await;
    assert_eq!(request.url, "http://127.0.0.1:1/v1/chat/completions");
    assert!(request.headers.contains(&("authorization".into(), format!("Bearer {KEY}"))));
    let call = |id: &str, name: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
    let expected = json!([
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": null,
         "tool_calls": [call("c1", "notes_read", "{\"x\":1}"), call("c:2", "now", "{}")]},
        {"role": "tool", "tool_call_id": "c1", "content": "one\ntwo"},
        {"role": "tool", "tool_call_id": "c:2", "content": "cut"},
        {"role": "user", "content": "and?"},
    ]);
    assert_eq!(body["messages"], expected);
    assert_eq!((&body["stream"], &body["stream_options"]["include_usage"]), (&json!(true), &json!(true)));
    let strict: Vec<&Value> =
        body["tools"].as_array().unwrap().iter().map(|tool| &tool["function"]["strict"]).collect();
    assert_eq!(strict, [&json!(true), &json!(true), &json!(false)], "strict is always said");
}

#[tokio::test]
async fn chat_completions_of_others() {
    let (_, body) = body(Wire::Chat, |request| {
        request.parallel = Parallel::One;
        request.max_output_tokens = Some(50);
        request.answer_schema = Some(std::sync::Arc::new(json!({"type": "object"})));
        request.temperature = Some(0.5);
    })
    .await;
    assert_eq!(body["tools"][0]["function"]["parameters"], tools()[0].parameters);
    assert!(body["tools"][0]["function"].get("strict").is_none());
    assert_eq!((&body["parallel_tool_calls"], &body["max_tokens"]), (&json!(false), &json!(50)));
    assert_eq!(body["response_format"]["json_schema"]["schema"], json!({"type": "object"}));
    assert_eq!(body["temperature"], 0.5);
    let (_, bare) = self::body(Wire::Chat, |request| request.tools = [].into()).await;
    assert!(bare.get("tools").is_none() && bare.get("tool_choice").is_none());
}

#[tokio::test]
async fn messages_of_anthropic() {
    let (request, body) = body(Wire::Anthropic, |request| request.parallel = Parallel::One).await;
    assert_eq!(request.url, "http://127.0.0.1:1/v1/messages");
    assert!(request.headers.contains(&("x-api-key".into(), KEY.into())));
    assert!(request.headers.iter().any(|(name, _)| name == "anthropic-version"));
    let mark = json!({"type": "ephemeral"});
    assert_eq!(body["system"], json!([{"type": "text", "text": "Be brief.", "cache_control": mark}]));
    let expected = json!([
        {"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": mark}]},
        {"role": "assistant", "content": [
            {"type": "tool_use", "id": "c1", "name": "notes_read", "input": {"x": 1}},
            {"type": "tool_use", "id": "c_2", "name": "now", "input": {}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "c1", "content": "one\ntwo", "is_error": false},
            {"type": "tool_result", "tool_use_id": "c_2", "content": "cut", "is_error": true},
            {"type": "text", "text": "and?", "cache_control": mark}]},
    ]);
    assert_eq!(body["messages"], expected, "all results are in one message, and the roles alternate");
    assert_eq!(body["tool_choice"], json!({"type": "auto", "disable_parallel_tool_use": true}));
    assert_eq!(body["tools"][0]["input_schema"], tools()[0].parameters);
}

#[tokio::test]
async fn thoughts_of_other_providers_are_not_sent_to_anthropic() {
    let thought = |opaque: Value| Part::Reasoning { text: String::new(), opaque: Some(opaque) };
    let own = json!({"type": "thinking", "thinking": "hm", "signature": "s"});
    let hidden = json!({"type": "redacted_thinking", "data": "x"});
    let parts = vec![
        thought(json!({"type": "reasoning", "id": "rs_1", "summary": []})),
        thought(own.clone()),
        thought(hidden.clone()),
        Part::text("a"),
    ];
    let messages = [Message::user("hi"), Message::Assistant { parts }, Message::user("and?")];
    let (_, body) = body(Wire::Anthropic, |request| request.messages = messages.into_iter().collect()).await;
    assert_eq!(body["messages"][1]["content"], json!([own, hidden, {"type": "text", "text": "a"}]));
}

#[tokio::test]
async fn the_shape_of_an_answer_is_strict_where_that_changes_nothing() {
    let count = json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}});
    let closed = json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}},
        "additionalProperties": false});
    let optional = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    for (schema, expected, strict) in [(&count, &closed, true), (&optional, &optional, false)] {
        let ask = |request: &mut Request| request.answer_schema = Some(Arc::new(schema.clone()));
        let (_, chat) = body(Wire::OpenAiChat, ask).await;
        let chat = &chat["response_format"]["json_schema"];
        let (_, responses) = body(Wire::OpenAiResponses, ask).await;
        for shape in [chat, &responses["text"]["format"]] {
            assert_eq!((&shape["schema"], &shape["strict"]), (expected, &json!(strict)));
        }
        let (_, others) = body(Wire::Chat, ask).await;
        assert_eq!(&others["response_format"]["json_schema"]["schema"], schema);
    }
}

#[tokio::test]
async fn items_of_responses() {
    let (request, body) = body(Wire::OpenAiResponses, |_| {}).await;
    assert_eq!(request.url, "http://127.0.0.1:1/v1/responses");
    assert!(request.headers.contains(&("authorization".into(), format!("Bearer {KEY}"))));
    let call = |id: &str, name: &str, arguments: &str| json!({"type": "function_call", "call_id": id, "name": name, "arguments": arguments});
    let result = |id: &str, output: &str| json!({"type": "function_call_output", "call_id": id, "output": output});
    let message = |text: &str| json!({"type": "message", "role": "user", "content": text});
    let expected = json!([
        message("hi"),
        call("c1", "notes_read", "{\"x\":1}"),
        call("c:2", "now", "{}"),
        result("c1", "one\ntwo"),
        result("c:2", "cut"),
        message("and?"),
    ]);
    assert_eq!(body["input"], expected);
    assert_eq!((&body["instructions"], &body["store"]), (&json!("Be brief."), &json!(false)));
    let strict: Vec<&Value> = body["tools"].as_array().unwrap().iter().map(|tool| &tool["strict"]).collect();
    assert_eq!(strict, [&json!(true), &json!(true), &json!(false)], "what is not said is taken for strict");
}

#[tokio::test]
async fn contents_of_gemini() {
    let (request, body) = body(Wire::Gemini, |_| {}).await;
    assert_eq!(request.url, "http://127.0.0.1:1/v1/models/m:streamGenerateContent?alt=sse");
    assert!(request.headers.contains(&("x-goog-api-key".into(), KEY.into())), "the key is in no address");
    let call = |name: &str, args: Value| json!({"functionCall": {"name": name, "args": args}});
    let result =
        |name: &str, field: &str, text: &str| json!({"functionResponse": {"name": name, "response": {field: text}}});
    let expected = json!([
        {"role": "user", "parts": [{"text": "hi"}]},
        {"role": "model", "parts": [call("notes_read", json!({"x": 1})), call("now", json!({}))]},
        {"role": "user", "parts": [result("notes_read", "output", "one\ntwo"), result("now", "error", "cut")]},
        {"role": "user", "parts": [{"text": "and?"}]},
    ]);
    assert_eq!(body["contents"], expected);
    assert_eq!(body["systemInstruction"], json!({"parts": [{"text": "Be brief."}]}));
}
