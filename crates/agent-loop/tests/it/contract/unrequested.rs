//! Formats that arrive although they are never requested, except by an extra body of the caller.

use agent_loop::{ErrorKind, Wire};
use serde_json::{Value, json};

use super::wires::{
    anthropic, block, call_block, chat, delta, finish, gemini, message, response_call, responses, text_block,
};
use super::*;

cases! {
    "formats that are never requested: read, or an error or fault that names them" calls_in_the_field_before_tool_calls,
    "formats that are never requested: read, or an error or fault that names them" a_turn_that_anthropic_pauses,
    "formats that are never requested: read, or an error or fault that names them" calls_by_a_program,
    "formats that are never requested: read, or an error or fault that names them" responses_in_the_background,
    "formats that are never requested: read, or an error or fault that names them" arguments_of_gemini_in_parts,
}

async fn shown(wire: Wire, answer: Answer) -> String {
    show(&reply(wire, answer).await.unwrap())
}

#[tokio::test]
async fn calls_in_the_field_before_tool_calls() {
    let old = |name: Value, arguments: &str| delta(json!({"function_call": {"name": name, "arguments": arguments}}));
    let pieces = [old(json!("now"), ""), old(Value::Null, "{\"a\":"), old(Value::Null, "1}"), finish("function_call")];
    let message = json!({"content": null, "function_call": {"name": "now", "arguments": "{}"}});
    let whole = json!({"choices": [{"index": 0, "message": message, "finish_reason": "function_call"}]});
    // An empty call in that field is no call.
    let message = json!({"content": "4", "function_call": {"name": "", "arguments": ""}, "tool_calls": null});
    let empty = json!({"choices": [{"index": 0, "message": message, "finish_reason": ""}]});
    for wire in [Wire::OpenAiChat, Wire::Chat] {
        assert_eq!(shown(wire, Answer::events(chat(&pieces), 9)).await, "now {\"a\":1}|Complete");
        assert_eq!(shown(wire, Answer::json(200, &whole)).await, "now {}|Complete");
        assert_eq!(shown(wire, Answer::json(200, &empty)).await, "4|Complete");
    }
}

#[tokio::test]
async fn a_turn_that_anthropic_pauses() {
    let search = json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}});
    let query = json!({"type": "input_json_delta", "partial_json": "{\"query\": \"roses\"}"});
    let result = json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []});
    let blocks = vec![text_block("I look."), block(1, search.clone(), &[query]), block(2, result.clone(), &[])];
    let streamed = Answer::events(anthropic(&message(blocks, "pause_turn")), 17);
    let content = json!([{"type": "text", "text": "I look."}, search, result]);
    let whole = Answer::json(200, &json!({"type": "message", "content": content, "stop_reason": "pause_turn"}));
    for answer in [streamed, whole] {
        let error = reply(Wire::Anthropic, answer).await.unwrap_err();
        // Another try would pause as well.
        assert_eq!(error.kind(), ErrorKind::BadResponse, "{error}");
        assert!(error.to_string().contains("pause_turn") && error.remedy().is_some(), "{error}");
    }
}

#[tokio::test]
async fn calls_by_a_program() {
    let fault_of = |reply: &Reply| {
        let mut calls =
            reply.parts.iter().filter_map(|part| if let Part::Call(call) = part { Some(call) } else { None });
        calls.find_map(|call| call.fault.clone()).unwrap()
    };
    let by = |mut events: Vec<Value>, caller: Value| {
        for event in &mut events {
            for part in ["item", "content_block"] {
                event.get_mut(part).into_iter().for_each(|part| part["caller"] = caller.clone());
            }
        }
        events
    };
    let (direct, code) =
        (json!({"type": "direct"}), json!({"type": "code_execution_20260120", "tool_id": "srvtoolu_1"}));
    let input = ["", "{\"x\": ", "1}"];
    let calls = vec![
        by(call_block(0, "toolu_1", "notes_read", &input), code.clone()),
        by(call_block(1, "toolu_2", "notes_read", &input), direct),
    ];
    let reply_of = reply(Wire::Anthropic, Answer::events(anthropic(&message(calls, "tool_use")), 17)).await.unwrap();
    assert_eq!(show(&reply_of), "!notes.read \"{\\\"x\\\": 1}\"|notes.read {\"x\":1}|Complete");
    assert!(fault_of(&reply_of).contains("program"), "{}", fault_of(&reply_of));
    let call = json!({"type": "tool_use", "id": "toolu_1", "name": "now", "input": {"x": 1}, "caller": code});
    let whole = json!({"type": "message", "content": [call], "stop_reason": "tool_use"});
    assert_eq!(shown(Wire::Anthropic, Answer::json(200, &whole)).await, "!now \"{\\\"x\\\":1}\"|Complete");

    // The first tool has strict arguments, the second has not.
    let program = json!({"type": "program", "caller_id": "prog_1"});
    for name in ["notes_read", "free"] {
        let events = by(response_call(0, name, &["{\"x\":", "1}"], "completed"), program.clone());
        let bytes =
            responses([events, response_call(1, "now", &["{}"], "completed")].concat(), "completed", Value::Null);
        let reply_of = reply(Wire::OpenAiResponses, Answer::events(bytes, 17)).await.unwrap();
        let text = show(&reply_of);
        assert!(text.starts_with('!') && text.ends_with("\"{\\\"x\\\":1}\"|now {}|Complete"), "{text}");
        assert!(fault_of(&reply_of).contains("program"), "{}", fault_of(&reply_of));
    }
}

#[tokio::test]
async fn responses_in_the_background() {
    let mut body = super::whole::whole_text(Wire::OpenAiResponses);
    for (status, word) in [("queued", "background"), ("in_progress", "background"), ("cancelled", "cancelled")] {
        body["status"] = json!(status);
        let error = reply(Wire::OpenAiResponses, Answer::json(200, &body)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BadResponse, "{status}");
        assert!(error.to_string().contains(word), "{status}: {error}");
    }
    // A stream waits for the response.
    let queued =
        json!({"type": "response.queued", "response": {"id": "resp_1", "status": "queued", "background": true}});
    let piece = json!({"type": "response.output_text.delta", "output_index": 0, "delta": "abc"});
    let bytes = responses(vec![queued, piece], "completed", Value::Null);
    assert_eq!(shown(Wire::OpenAiResponses, Answer::events(bytes, 17)).await, "abc|Complete");
}

#[tokio::test]
async fn arguments_of_gemini_in_parts() {
    let part = |call: Value| json!({"functionCall": call});
    let argument = json!([{"jsonPath": "$.x", "numberValue": 1}]);
    let parts = [
        part(json!({"name": "notes_read", "willContinue": true})),
        part(json!({"partialArgs": argument, "willContinue": true})),
        part(json!({})),
        part(json!({"name": "now"})),
    ];
    let faulty = "!unreadable_call \"\"";
    let text = shown(Wire::Gemini, Answer::events(gemini(&parts, "STOP"), 17)).await;
    assert_eq!(text, format!("{faulty}|now {{}}|Complete"), "no call runs without what the model wrote");
    // All of them in one part.
    let parts = [part(json!({"name": "notes_read", "partialArgs": argument}))];
    assert_eq!(shown(Wire::Gemini, Answer::events(gemini(&parts, "STOP"), 17)).await, format!("{faulty}|Complete"));
}
