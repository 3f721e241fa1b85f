//! Odd requests, schemas that lead to themselves, and a backend that gives one id to several calls.

use agent_loop::{Delta, EndReason};
use agent_proxy::chat::{ChatEvents, ChatRequest};
use agent_proxy::{ApiRequest, ResponseEvents, StrictTools};
use serde_json::json;

use crate::edited::edited;

#[test]
fn odd_requests_are_understood_or_refused_by_name() {
    let tool = json!({"type": "function", "name": "look", "parameters": {"type": "object"}, "strict": true});
    let responses = json!({
        "model": "m", "stream": true, "instructions": "Be brief.", "tools": [tool], "tool_choice": {"type": "function", "name": "look"},
        "parallel_tool_calls": false, "max_output_tokens": 9, "temperature": 0.5, "metadata": {"a": "b"},
        "text": {"format": {"type": "json_schema", "schema": {"type": "object"}}},
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "hi"}]},
            {"type": "reasoning", "id": "r"},
            {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "seen"}]},
        ],
    });
    let function = json!({"name": "look", "arguments": "{}"});
    let chat = json!({
        "model": "m", "n": 1, "stream_options": {"include_usage": true}, "max_tokens": 9,
        "tools": [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}],
        "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"function": {"name": "look"}}]}},
        "response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "object"}}},
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": null, "tool_calls": [{"id": "c", "type": "function", "function": function}]},
            {"role": "tool", "tool_call_id": "c", "content": "seen"},
        ],
    });
    for (what, body) in edited(&responses) {
        match ApiRequest::parse(body.to_string().as_bytes()) {
            Ok(request) => request.request.messages.check().unwrap(),
            Err(error) => assert!(error.status == 400 && !error.message.is_empty(), "{what}: {error}"),
        }
    }
    for (what, body) in edited(&chat) {
        match ChatRequest::parse(body.to_string().as_bytes()) {
            Ok(request) => request.api.request.messages.check().unwrap(),
            Err(error) => assert!(error.status == 400 && !error.message.is_empty(), "{what}: {error}"),
        }
    }
}

#[test]
fn a_schema_that_leads_to_itself_ends() {
    for parameters in [
        json!({"$ref": "#"}),
        json!({"type": "object", "$ref": "#"}),
        json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}),
        json!({"allOf": [{"$ref": "#"}]}),
    ] {
        let tool = json!({"type": "function", "name": "look", "parameters": parameters, "strict": true});
        let body = json!({"model": "m", "input": "hi", "tools": [tool]});
        let Ok(mut request) = ApiRequest::parse(body.to_string().as_bytes()) else { continue };
        request.strict_tools = StrictTools::Enforced;
        let mut events = ResponseEvents::new(&request, "ab", 0);
        events.start();
        events.push(Delta::CallStart { index: 0, id: "c".into(), name: "look".into() });
        events.push(Delta::CallArguments { index: 0, text: "{\"a\":1}".into() });
        events.push(Delta::CallEnd { index: 0, opaque: None });
        events.push(Delta::End(EndReason::Complete));
        assert!(events.response().is_some());
    }
}

#[test]
fn duplicate_backend_ids_are_made_unique() {
    let body = json!({"model": "m", "input": "hi"}).to_string();
    let mut responses = ResponseEvents::new(&ApiRequest::parse(body.as_bytes()).unwrap(), "ab", 0);
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).to_string();
    let chat = ChatRequest::parse(body.as_bytes()).unwrap();
    let mut chat = ChatEvents::new(&chat, "ab", 0);
    responses.start();
    chat.start();
    for index in 0..3 {
        for delta in [
            Delta::CallStart { index, id: "call_0".into(), name: "look".into() },
            Delta::CallEnd { index, opaque: None },
        ] {
            responses.push(delta.clone());
            chat.push(delta);
        }
    }
    responses.push(Delta::End(EndReason::Complete));
    chat.push(Delta::End(EndReason::Complete));
    let chat = chat.completion().unwrap();
    let calls = chat["choices"][0]["message"]["tool_calls"].as_array().unwrap();
    let of_chat: Vec<&str> = calls.iter().map(|call| call["id"].as_str().unwrap()).collect();
    let items = responses.response().unwrap()["output"].as_array().unwrap();
    let of_responses: Vec<&str> = items.iter().map(|item| item["call_id"].as_str().unwrap()).collect();
    for ids in [of_chat, of_responses] {
        assert!(ids[0] == "call_0" && ids[1] != ids[0] && ids[2] != ids[0] && ids[1] != ids[2], "{ids:?}");
    }
}
