//! Replies over each wire: text, parallel calls, calls without arguments, truncation, dialects.

use agent_loop::{EndReason, ErrorKind, Part, ReturnReasoning, ToolChoice, Wire};
use serde_json::{Value, json};

use super::*;

cases! {
    "text, parallel calls, a call without arguments; in chunks of every size" parallel_calls_at_every_split,
    "complete replies, and replies truncated by the token limit" text_and_length,
    "truncated by the token limit inside arguments: the call never runs" calls_that_are_cut_by_the_limit,
    "a stream that ends or fails at any byte" a_stream_that_is_cut_anywhere_is_cut,
    "one JSON object instead of a stream" whole_replies_are_read_too,
    "dialects: calls in one piece, one index or id for all calls, arguments as null or object, reasoning, no `[DONE]` …" dialects_of_chat,
    "dialects: calls in one piece, one index or id for all calls, arguments as null or object, reasoning, no `[DONE]` …" dialects_of_responses,
    "reasoning, signatures and ids are sent back unchanged" thoughts_are_kept_and_go_back_as_they_came,
    "reasoning, signatures and ids are sent back unchanged" encrypted_reasoning_goes_back_as_it_came,
    "reasoning, signatures and ids are sent back unchanged" reasoning_goes_back_in_the_fields_it_came_in,
    "reasoning, signatures and ids are sent back unchanged" reasoning_goes_back_to_its_own_provider_alone,
    "reasoning, signatures and ids are sent back unchanged" what_comes_with_a_call_goes_back_with_it,
    "commentary is distinguished from the answer, and sent back" phases_of_responses_go_back,
    "reasoning, signatures and ids are sent back unchanged" signatures_of_gemini_texts_go_back,
    "reasoning, signatures and ids are sent back unchanged" signatures_and_ids_of_gemini_go_back_as_they_came,
    "nulls that strict mode forces are removed" nulls_that_strict_mode_forces_are_taken_out,
    "every tool choice; tool names with dots" tool_choices,
    "content filters; calls that the provider could not parse" how_gemini_stops,
    "content filters; calls that the provider could not parse" a_call_that_gemini_did_not_expect_is_not_told_twice,
    "one JSON object without a finish reason counts as complete" whole_replies_that_name_no_end,
    "content filters; calls that the provider could not parse" a_filter_that_leaves_no_message,
    "unrequested alternatives are ignored" only_the_first_alternative_is_read,
    "errors inside the stream" how_responses_fail,
    "a message that restarts: the interrupted call never runs" a_message_of_anthropic_that_begins_again,
}

/// Chunks of Chat Completions.
pub fn chat(chunks: &[Value]) -> String {
    let lines: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    lines + "data: [DONE]\n\n"
}

pub fn delta(delta: Value) -> Value {
    json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

pub fn finish(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn chat_usage() -> Value {
    json!({"choices": [], "usage": {"prompt_tokens": 80, "completion_tokens": 17, "total_tokens": 97}})
}

pub fn fragment(index: u64, id: &str, name: &str, arguments: &str) -> Value {
    let mut call = json!({"index": index, "function": {"arguments": arguments}});
    if !id.is_empty() {
        call["id"] = json!(id);
        call["type"] = json!("function");
    }
    if !name.is_empty() {
        call["function"]["name"] = json!(name);
    }
    delta(json!({"tool_calls": [call]}))
}

/// Events of Anthropic.
pub fn anthropic(events: &[Value]) -> String {
    events.iter().map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap())).collect()
}

pub fn block(index: u64, block: Value, deltas: &[Value]) -> Vec<Value> {
    let start = json!({"type": "content_block_start", "index": index, "content_block": block});
    let deltas = deltas.iter().map(|delta| json!({"type": "content_block_delta", "index": index, "delta": delta}));
    let stop = json!({"type": "content_block_stop", "index": index});
    [start].into_iter().chain(deltas).chain([stop]).collect()
}

pub fn message(blocks: Vec<Vec<Value>>, stop: &str) -> Vec<Value> {
    let start = json!({"type": "message_start", "message": {"id": "msg_1", "role": "assistant", "content": [],
        "usage": {"input_tokens": 80, "output_tokens": 5}}});
    let end = json!({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"input_tokens": 80, "output_tokens": 17}});
    let ping = json!({"type": "ping"});
    let stop = json!({"type": "message_stop"});
    [start, ping].into_iter().chain(blocks.into_iter().flatten()).chain([end, stop]).collect()
}

pub fn text_block(text: &str) -> Vec<Value> {
    let half = text.floor_char_boundary(text.len() / 2);
    let piece = |text: &str| json!({"type": "text_delta", "text": text});
    block(0, json!({"type": "text", "text": ""}), &[piece(&text[..half]), piece(&text[half..])])
}

pub fn call_block(index: u64, id: &str, name: &str, pieces: &[&str]) -> Vec<Value> {
    let pieces: Vec<Value> =
        pieces.iter().map(|json| json!({"type": "input_json_delta", "partial_json": json})).collect();
    block(index, json!({"type": "tool_use", "id": id, "name": name, "input": {}}), &pieces)
}

/// Events of the Responses API; all that is left out means nothing to a client.
pub fn responses(events: Vec<Value>, end: &str, reason: Value) -> String {
    let usage = json!({"input_tokens": 80, "output_tokens": 17, "total_tokens": 97});
    let response = json!({"id": "resp_1", "status": end, "incomplete_details": reason, "usage": usage, "output": []});
    let first = json!({"type": "response.created", "response": {"id": "resp_1"}});
    let last = json!({"type": format!("response.{end}"), "response": response});
    anthropic(&[first].into_iter().chain(events).chain([last]).collect::<Vec<_>>())
}

/// The events of a call in the output of a response.
pub fn response_call(place: u64, name: &str, pieces: &[&str], status: &str) -> Vec<Value> {
    let (id, item_id) = (format!("call_{place}"), format!("fc_{place}"));
    let item = |arguments: &str, status: &str| json!({"type": "function_call", "id": item_id, "call_id": id, "name": name, "arguments": arguments, "status": status});
    let all = pieces.concat();
    let added = json!({"type": "response.output_item.added", "output_index": place, "item": item("", "in_progress")});
    let of_arguments = |kind: &str, field: &str, text: &str| {
        let kind = format!("response.function_call_arguments.{kind}");
        json!({"type": kind, "item_id": item_id, "output_index": place, field: text})
    };
    let pieces = pieces.iter().map(|piece| of_arguments("delta", "delta", piece));
    let done = of_arguments("done", "arguments", &all);
    let item_done = json!({"type": "response.output_item.done", "output_index": place, "item": item(&all, status)});
    [added].into_iter().chain(pieces).chain([done, item_done]).collect()
}

fn response_text(text: &str) -> Vec<Value> {
    let half = text.floor_char_boundary(text.len() / 2);
    let delta = |text: &str| json!({"type": "response.output_text.delta", "output_index": 0, "delta": text});
    vec![delta(&text[..half]), delta(&text[half..])]
}

/// Chunks of Gemini, the last of which has the finish reason.
pub fn gemini(parts: &[Value], finish: &str) -> String {
    let last = json!({"candidates": [{"content": {"role": "model", "parts": []}, "finishReason": finish}],
        "usageMetadata": {"promptTokenCount": 80, "candidatesTokenCount": 17}});
    let chunk = |part: &Value| json!({"candidates": [{"content": {"role": "model", "parts": [part]}}]});
    let chunks = parts.iter().map(chunk).chain([last]);
    chunks.map(|chunk| format!("data: {chunk}\r\n\r\n")).collect()
}

/// The bytes of the same reply on each wire: text and two calls, one without arguments.
pub fn parallel_calls(wire: Wire) -> String {
    let text = "Ich schaue nach: ü";
    match wire {
        Wire::OpenAiChat | Wire::Chat => chat(&[
            delta(json!({"role": "assistant", "content": text})),
            fragment(0, "call_1", "notes_read", ""),
            fragment(0, "", "", "{\"x"),
            fragment(0, "", "", "\":17}"),
            fragment(1, "call_2", "now", ""),
            finish("tool_calls"),
            chat_usage(),
        ]),
        Wire::OpenAiResponses => {
            let calls = [
                response_call(1, "notes_read", &["{\"x", "\":17}"], "completed"),
                response_call(2, "now", &["{}"], "completed"),
            ];
            responses(response_text(text).into_iter().chain(calls.concat()).collect(), "completed", Value::Null)
        }
        Wire::Anthropic => anthropic(&message(
            vec![
                text_block(text),
                call_block(1, "toolu_1", "notes_read", &["", "{\"x", "\":17}"]),
                call_block(2, "toolu_2", "now", &[""]),
            ],
            "tool_use",
        )),
        Wire::Gemini => gemini(
            &[
                json!({"text": text}),
                json!({"functionCall": {"name": "notes_read", "args": {"x": 17}}, "thoughtSignature": "s"}),
                json!({"functionCall": {"name": "now", "args": {}}}),
            ],
            "STOP",
        ),
        Wire::Ollama => ollama(
            &[
                json!({"content": text}),
                json!({"content": "", "tool_calls": [{"function": {"name": "notes_read", "arguments": {"x": 17}}}]}),
                json!({"content": "", "tool_calls": [{"id": "c", "function": {"name": "now", "arguments": {}}}]}),
            ],
            "stop",
        ),
    }
}

/// Lines of Ollama, the last of which is marked as done.
pub fn ollama(messages: &[Value], reason: &str) -> String {
    let last = json!({"model": "m", "message": {"role": "assistant", "content": ""}, "done": true,
        "done_reason": reason, "total_duration": 7, "prompt_eval_count": 80, "eval_count": 17});
    let line = |message: &Value| json!({"model": "m", "message": message, "done": false});
    messages.iter().map(line).chain([last]).map(|line| format!("{line}\n")).collect()
}

pub fn text_only(wire: Wire, end: EndReason) -> String {
    let is_cut = end == EndReason::Length;
    match wire {
        Wire::OpenAiChat | Wire::Chat => {
            chat(&[delta(json!({"content": "abc"})), finish(if is_cut { "length" } else { "stop" }), chat_usage()])
        }
        Wire::OpenAiResponses if is_cut => {
            responses(response_text("abc"), "incomplete", json!({"reason": "max_output_tokens"}))
        }
        Wire::OpenAiResponses => responses(response_text("abc"), "completed", Value::Null),
        Wire::Anthropic => anthropic(&message(vec![text_block("abc")], if is_cut { "max_tokens" } else { "end_turn" })),
        Wire::Gemini => gemini(&[json!({"text": "abc"})], if is_cut { "MAX_TOKENS" } else { "STOP" }),
        Wire::Ollama => ollama(&[json!({"content": "abc"})], if is_cut { "length" } else { "stop" }),
    }
}

/// A call that is cut by the limit of length; Gemini and Ollama send only whole calls.
fn cut_call(wire: Wire) -> Option<String> {
    let cut = "{\"x\":4815";
    Some(match wire {
        Wire::OpenAiChat | Wire::Chat => chat(&[fragment(0, "c", "notes_read", cut), finish("length"), chat_usage()]),
        Wire::OpenAiResponses => responses(
            response_call(0, "notes_read", &[cut], "incomplete"),
            "incomplete",
            json!({"reason": "max_output_tokens"}),
        ),
        Wire::Anthropic => anthropic(&message(vec![call_block(0, "t", "notes_read", &[cut])], "max_tokens")),
        Wire::Gemini | Wire::Ollama => return None,
    })
}

#[tokio::test]
async fn parallel_calls_at_every_split() {
    for wire in WIRES {
        let bytes = parallel_calls(wire);
        for size in (1..40).chain([bytes.len()]) {
            let reply = reply(wire, Answer::events(&bytes, size)).await.unwrap();
            let expected = "Ich schaue nach: ü|notes.read {\"x\":17}|now {}|Complete";
            assert_eq!(show(&reply), expected, "{wire:?} in pieces of {size}");
            assert_eq!(reply.usage, usage(80, 17), "{wire:?}");
        }
        let crlf = bytes.replace("\r\n", "\n").replace('\n', "\r\n");
        assert!(reply(wire, Answer::events(crlf, 5)).await.is_ok(), "{wire:?}");
    }
}

#[tokio::test]
async fn text_and_length() {
    for wire in WIRES {
        for end in [EndReason::Complete, EndReason::Length] {
            let reply = reply(wire, Answer::events(text_only(wire, end), 11)).await.unwrap();
            assert_eq!(show(&reply), format!("abc|{end:?}"), "{wire:?}");
        }
    }
}

#[tokio::test]
async fn calls_that_are_cut_by_the_limit() {
    for (wire, bytes) in WIRES.into_iter().filter_map(|wire| Some((wire, cut_call(wire)?))) {
        let reply = reply(wire, Answer::events(bytes, 9)).await.unwrap();
        assert_eq!(show(&reply), "!notes.read \"{\\\"x\\\":4815\"|Length", "{wire:?}: a call that was cut never runs");
    }
}

#[tokio::test]
async fn a_stream_that_is_cut_anywhere_is_cut() {
    for wire in WIRES {
        let bytes = parallel_calls(wire);
        // Behind the finish reason of chat, and behind the stop of Anthropic, nothing of the reply is missing.
        let last = match wire {
            Wire::OpenAiChat | Wire::Chat => "\"finish_reason\":\"tool_calls\"",
            Wire::OpenAiResponses => "event: response.completed",
            Wire::Anthropic => "event: message_stop",
            Wire::Gemini => "\"finishReason\"",
            Wire::Ollama => "\"done\":true",
        };
        let end = bytes.find(last).unwrap();
        for at in cuts(end) {
            for broken in [false, true] {
                let answer = Answer::events(&bytes.as_bytes()[..at], 16);
                let answer = if broken { answer.broken() } else { answer };
                let error = reply(wire, answer).await.expect_err("it is cut");
                assert_eq!(error.kind(), ErrorKind::CutStream, "{wire:?} at {at}: {error}");
            }
        }
    }
}

/// The reply of a call, in one object.
pub fn whole_body(wire: Wire) -> Value {
    let usage = json!({"input_tokens": 80, "output_tokens": 17});
    match wire {
        Wire::OpenAiChat | Wire::Chat => {
            let function = json!({"name": "notes_read", "arguments": "{\"x\":1}"});
            let call = json!({"id": "c", "type": "function", "function": function});
            json!({"choices": [{"message": {"role": "assistant", "content": null, "tool_calls": [call]},
                "finish_reason": "tool_calls"}], "usage": {"prompt_tokens": 80, "completion_tokens": 17}})
        }
        Wire::OpenAiResponses => {
            let item = json!({"type": "function_call", "call_id": "c", "name": "notes_read", "arguments": "{\"x\":1}",
                "status": "completed"});
            json!({"object": "response", "status": "completed", "error": null, "incomplete_details": null,
                "output": [item], "usage": usage})
        }
        Wire::Anthropic => json!({"type": "message", "content": [
            {"type": "tool_use", "id": "t", "name": "notes_read", "input": {"x": 1}}],
            "stop_reason": "tool_use", "usage": usage}),
        Wire::Gemini => {
            let call = json!({"functionCall": {"name": "notes_read", "args": {"x": 1}}});
            json!({"candidates": [{"content": {"parts": [call]}, "finishReason": "STOP"}],
                "usageMetadata": {"promptTokenCount": 80, "candidatesTokenCount": 17}})
        }
        Wire::Ollama => {
            let call = json!({"function": {"name": "notes_read", "arguments": {"x": 1}}});
            json!({"message": {"role": "assistant", "content": "", "tool_calls": [call]}, "done": true,
                "done_reason": "stop", "prompt_eval_count": 80, "eval_count": 17})
        }
    }
}

#[tokio::test]
async fn whole_replies_are_read_too() {
    for wire in WIRES {
        let body = whole_body(wire);
        // Without `alt=sse` Gemini's chunks come as one list.
        let body = if wire == Wire::Gemini { json!([body]) } else { body };
        let reply = reply(wire, Answer::json(200, &body)).await.unwrap();
        assert_eq!(show(&reply), "notes.read {\"x\":1}|Complete");
        assert_eq!(reply.usage, usage(80, 17));
    }
}

#[tokio::test]
async fn dialects_of_chat() {
    let whole = |index: u64, id: &str, arguments: Value| json!({"index": index, "id": id, "function": {"name": "now", "arguments": arguments}});
    let both = |first: Value, second: Value| json!({"choices": [{"delta": {"tool_calls": [first, second]}, "finish_reason": "tool_calls"}]});
    for (what, chunks, expected) in [
        (
            "whole calls in the chunk of the finish",
            vec![both(whole(0, "a", json!("{}")), whole(1, "b", json!("{}")))],
            "now {}|now {}|Complete",
        ),
        (
            "every call at index 0, finish stop",
            vec![
                delta(json!({"tool_calls": [whole(0, "a", json!("{}"))]})),
                delta(json!({"tool_calls": [whole(0, "b", json!("{}"))]})),
                finish("stop"),
            ],
            "now {}|now {}|Complete",
        ),
        (
            "no ids, every call at index 0",
            vec![
                delta(json!({"tool_calls": [whole(0, "", json!("{}"))]})),
                delta(json!({"tool_calls": [whole(0, "", json!("{}"))]})),
                finish("stop"),
            ],
            "now {}|now {}|Complete",
        ),
        (
            "arguments null as text",
            vec![delta(json!({"tool_calls": [whole(0, "a", json!("null"))]})), finish("tool_calls")],
            "now {}|Complete",
        ),
        (
            "arguments as an object",
            vec![delta(json!({"tool_calls": [whole(0, "a", json!({}))]})), finish("tool_calls")],
            "now {}|Complete",
        ),
        (
            "no index",
            vec![
                delta(
                    json!({"tool_calls": [{"id": "a", "function": {"name": "notes_read", "arguments": "{\"x\":1}"}}]}),
                ),
                finish("stop"),
            ],
            "notes.read {\"x\":1}|Complete",
        ),
        (
            "first fragment with the name",
            vec![fragment(0, "a", "notes_read", "{"), fragment(0, "", "", "\"x\":2}"), finish("tool_calls")],
            "notes.read {\"x\":2}|Complete",
        ),
        (
            "the id in every fragment",
            vec![fragment(0, "a", "notes_read", "{"), fragment(0, "a", "", "\"x\":2}"), finish("tool_calls")],
            "notes.read {\"x\":2}|Complete",
        ),
        (
            "reasoning of DeepSeek and Ollama",
            vec![
                delta(json!({"reasoning_content": "h"})),
                delta(json!({"reasoning": "m"})),
                delta(json!({"content": "a"})),
                finish("stop"),
            ],
            "(hm signed)|a|Complete",
        ),
        (
            "content in parts",
            vec![delta(json!({"content": [{"type": "text", "text": "a"}]})), finish("stop")],
            "a|Complete",
        ),
        ("a filter", vec![delta(json!({"content": "a"})), finish("content_filter")], "a|Filtered"),
        ("a refusal", vec![delta(json!({"refusal": "No."})), finish("stop")], "No.|Refused"),
        ("no finish reason but an end", vec![delta(json!({"content": "a"}))], "a|Complete"),
    ] {
        let reply = reply(Wire::Chat, Answer::events(chat(&chunks), 13)).await.unwrap();
        assert_eq!(show(&reply), expected, "{what}");
    }
    let no_done = chat(&[delta(json!({"content": "a"})), finish("stop")]).replace("data: [DONE]\n\n", "");
    assert_eq!(show(&reply(Wire::Chat, Answer::events(no_done.trim_end(), 13)).await.unwrap()), "a|Complete");
}

#[tokio::test]
async fn thoughts_are_kept_and_go_back_as_they_came() {
    let thinking = block(
        0,
        json!({"type": "thinking", "thinking": "", "signature": ""}),
        &[
            json!({"type": "thinking_delta", "thinking": "hm, "}),
            json!({"type": "thinking_delta", "thinking": "yes"}),
            json!({"type": "signature_delta", "signature": "c2ln"}),
        ],
    );
    let redacted = block(1, json!({"type": "redacted_thinking", "data": "x"}), &[]);
    let events = anthropic(&message(vec![thinking, redacted, call_block(2, "t", "now", &[])], "tool_use"));
    let (model, canned) = hosted(
        Wire::Anthropic,
        [Answer::events(events, 21), Answer::events(text_only(Wire::Anthropic, EndReason::Complete), 9)],
    );
    let first = deltas(&model, request()).await.1.unwrap();
    assert_eq!(show(&first), "(hm, yes signed)|( signed)|now {}|Complete");

    let Part::Call(call) = &first.parts[2] else { panic!() };
    let result = agent_loop::ToolResult::new(call, agent_loop::Status::Ok, "12:00");
    let messages = vec![
        agent_loop::Message::user("hi"),
        agent_loop::Message::Assistant { parts: first.parts.clone() },
        agent_loop::Message::Results { results: vec![result] },
    ];
    let again = request().messages(messages.into_iter().collect());
    deltas(&model, again).await.1.unwrap();
    let content = sent(&canned).1["messages"][1]["content"].clone();
    assert_eq!(content[0], json!({"type": "thinking", "thinking": "hm, yes", "signature": "c2ln"}));
    assert_eq!(content[1], json!({"type": "redacted_thinking", "data": "x"}));
    assert_eq!(content[2]["type"], "tool_use");
}

#[tokio::test]
async fn nulls_that_strict_mode_forces_are_taken_out() {
    let chunks =
        [fragment(0, "a", "notes_read", "{\"x\":1,"), fragment(0, "", "", "\"y\":null}"), finish("tool_calls")];
    for (wire, expected) in
        [(Wire::OpenAiChat, "notes.read {\"x\":1}"), (Wire::Chat, "notes.read {\"x\":1,\"y\":null}")]
    {
        let reply = reply(wire, Answer::events(chat(&chunks), 8)).await.unwrap();
        assert_eq!(show(&reply), format!("{expected}|Complete"));
    }
    let call = response_call(0, "notes_read", &["{\"x\":1,", "\"y\":null}"], "completed");
    let bytes = responses(call, "completed", Value::Null);
    let reply = self::reply(Wire::OpenAiResponses, Answer::events(bytes, 8)).await.unwrap();
    assert_eq!(show(&reply), "notes.read {\"x\":1}|Complete");
    let cut = [fragment(0, "a", "notes_read", "{\"x\":48"), finish("length")];
    let reply = self::reply(Wire::OpenAiChat, Answer::events(chat(&cut), 8)).await.unwrap();
    assert_eq!(show(&reply), "!notes.read \"{\\\"x\\\":48\"|Length");
}

#[tokio::test]
async fn tool_choices() {
    let named = json!({"type": "function", "function": {"name": "notes_read"}});
    let gemini = |mode: &str| json!({"functionCallingConfig": {"mode": mode}});
    let only = json!({"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["notes_read"]}});
    for (choice, chat, responses, anthropic, gemini) in [
        (ToolChoice::Auto, json!("auto"), json!("auto"), json!({"type": "auto"}), gemini("AUTO")),
        (ToolChoice::None, json!("none"), json!("none"), json!({"type": "none"}), gemini("NONE")),
        (ToolChoice::Required, json!("required"), json!("required"), json!({"type": "any"}), gemini("ANY")),
        (
            ToolChoice::Tool("notes.read".into()),
            named,
            json!({"type": "function", "name": "notes_read"}),
            json!({"type": "tool", "name": "notes_read"}),
            only,
        ),
    ] {
        for wire in WIRES {
            let (model, canned) = hosted(wire, [Answer::events(text_only(wire, EndReason::Complete), 9)]);
            let asked = request().tool_choice(choice.clone());
            let end = deltas(&model, asked).await.1;
            if wire == Wire::Ollama && matches!(choice, ToolChoice::Required | ToolChoice::Tool(_)) {
                assert_eq!(end.unwrap_err().kind(), ErrorKind::BadRequest, "the API cannot require a call");
                continue;
            }
            end.unwrap();
            let body = sent(&canned).1;
            if wire == Wire::Ollama {
                assert_eq!(
                    body.get("tools").is_some(),
                    choice == ToolChoice::Auto,
                    "what is not offered is not called"
                );
                continue;
            }
            let (field, expected) = match wire {
                Wire::OpenAiChat | Wire::Chat => ("tool_choice", &chat),
                Wire::OpenAiResponses => ("tool_choice", &responses),
                Wire::Anthropic => ("tool_choice", &anthropic),
                Wire::Gemini => ("toolConfig", &gemini),
                Wire::Ollama => unreachable!(),
            };
            assert_eq!(&body[field], expected, "{wire:?}");
        }
    }
}

/// What a provider wants back with a turn goes back with it.
async fn second_turn(wire: Wire, bytes: String) -> (String, Value) {
    let answers = [Answer::events(bytes, 21), Answer::events(text_only(wire, EndReason::Complete), 9)];
    let (model, canned) = hosted(wire, answers);
    let first = deltas(&model, request()).await.1.unwrap();
    let calls = first.parts.iter().filter_map(|part| if let Part::Call(call) = part { Some(call) } else { None });
    let results = calls.map(|call| agent_loop::ToolResult::new(call, agent_loop::Status::Ok, "done")).collect();
    let messages = vec![
        agent_loop::Message::user("hi"),
        agent_loop::Message::Assistant { parts: first.parts.clone() },
        agent_loop::Message::Results { results },
    ];
    let again = request().messages(messages.into_iter().collect());
    deltas(&model, again).await.1.unwrap();
    (show(&first), sent(&canned).1)
}

#[tokio::test]
async fn encrypted_reasoning_goes_back_as_it_came() {
    let item = json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e"});
    let events = vec![
        json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "hm"}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
    ];
    let events = events.into_iter().chain(response_call(1, "now", &["{}"], "completed")).collect();
    let (shown, body) = second_turn(Wire::OpenAiResponses, responses(events, "completed", Value::Null)).await;
    assert_eq!(shown, "(hm signed)|now {}|Complete");
    assert_eq!(body["input"][1], item);
    let call = json!({"type": "function_call", "call_id": "call_1", "name": "now", "arguments": "{}"});
    assert_eq!(body["input"][2], call);
    assert_eq!(body["input"][3], json!({"type": "function_call_output", "call_id": "call_1", "output": "done"}));
    assert_eq!((&body["store"], &body["instructions"]), (&json!(false), &json!("Be brief.")));
}

/// The assistant's message of the second request, after a reply of these chunks or of one object.
async fn second_chat_turn(wire: Wire, answer: Answer, change: impl FnOnce(&mut Provider)) -> Value {
    let second = Answer::events(text_only(wire, EndReason::Complete), 9);
    let (model, canned) = provided(wire, [answer, second], change);
    let first = deltas(&model, request()).await.1.unwrap();
    let message = agent_loop::Message::Assistant { parts: first.parts };
    let results =
        message.calls().map(|call| agent_loop::ToolResult::new(call, agent_loop::Status::Ok, "done")).collect();
    let messages = vec![agent_loop::Message::user("hi"), message, agent_loop::Message::Results { results }];
    deltas(&model, request().messages(messages.into_iter().collect())).await.1.unwrap();
    sent(&canned).1["messages"][2].clone()
}

#[tokio::test]
async fn reasoning_goes_back_in_the_fields_it_came_in() {
    let text = |text: &str| json!({"type": "reasoning.text", "text": text, "index": 0});
    let signed = json!({"type": "reasoning.text", "text": "hm, yes", "signature": "s", "index": 0});
    let encrypted = json!({"type": "reasoning.encrypted", "data": "e", "id": "call_1", "index": 0});
    let details = |details: &[&Value]| json!({"reasoning_details": details});
    let signature = json!({"type": "reasoning.text", "text": null, "signature": "s", "index": 0});
    for (what, pieces, expected) in [
        (
            "DeepSeek, Kimi, Z.ai, llama.cpp",
            vec![
                json!({"role": "assistant", "content": null, "reasoning_content": ""}),
                json!({"reasoning_content": "hm, "}),
                json!({"content": "", "reasoning_content": "yes"}),
            ],
            json!({"reasoning_content": "hm, yes"}),
        ),
        ("no thought at all", vec![json!({"reasoning_content": ""})], json!({"reasoning_content": ""})),
        ("Groq, Ollama", vec![json!({"reasoning": "hm"})], json!({"reasoning": "hm"})),
        (
            "Claude over OpenRouter",
            vec![details(&[&text("hm, ")]), details(&[&text("yes")]), details(&[&signature])],
            details(&[&signed]),
        ),
        (
            "Gemini over OpenRouter",
            vec![details(&[&text("hm")]), details(&[&encrypted])],
            details(&[&text("hm"), &encrypted]),
        ),
        (
            "the signature behind the text",
            vec![details(&[&text("hm, yes")]), json!({"content": "a"}), details(&[&signature])],
            details(&[&signed]),
        ),
    ] {
        for wire in [Wire::OpenAiChat, Wire::Chat] {
            let pieces: Vec<Value> = pieces.iter().map(|piece| delta(piece.clone())).collect();
            let call = [fragment(0, "call_1", "now", "{}"), finish("tool_calls")];
            let answer = Answer::events(chat(&[pieces, call.to_vec()].concat()), 21);
            let message = second_chat_turn(wire, answer, |_| {}).await;
            assert_eq!(message["tool_calls"][0]["id"], "call_1");
            let fields = ["reasoning_content", "reasoning", "reasoning_details"];
            for field in fields {
                assert_eq!(message.get(field), expected.get(field), "{what}: {message}");
            }
        }
    }
    let call = json!({"id": "c", "type": "function", "function": {"name": "now", "arguments": "{}"}});
    let message = json!({"role": "assistant", "content": null, "reasoning_content": "hm", "tool_calls": [call]});
    let whole = json!({"choices": [{"message": message, "finish_reason": "tool_calls"}]});
    let back = second_chat_turn(Wire::Chat, Answer::json(200, &whole), |_| {}).await;
    assert_eq!(back, message, "one object goes back as it is");
}

#[tokio::test]
async fn reasoning_goes_back_to_its_own_provider_alone() {
    let both = delta(json!({"reasoning": "hm", "reasoning_details": [{"type": "reasoning.text", "text": "hm"}]}));
    let plain = delta(json!({"reasoning": "hm"}));
    let call = [fragment(0, "c", "now", "{}"), finish("tool_calls")];
    for (chunk, returned, expected) in [
        (&both, ReturnReasoning::AsReceived, (true, true)),
        (&both, ReturnReasoning::Details, (false, true)),
        (&plain, ReturnReasoning::Details, (true, false)),
        (&both, ReturnReasoning::Never, (false, false)),
    ] {
        let answer = Answer::events(chat(&[std::slice::from_ref(chunk), &call[..]].concat()), 21);
        let message = second_chat_turn(Wire::Chat, answer, |provider| provider.return_reasoning = returned).await;
        let found = (message.get("reasoning").is_some(), message.get("reasoning_details").is_some());
        assert_eq!(found, expected, "{returned:?} {message}");
    }
    assert_eq!(Provider::openrouter("k").return_reasoning, ReturnReasoning::Details);
    let first = reply(Wire::Chat, Answer::events(chat(&[&[both], &call[..]].concat()), 21)).await.unwrap();
    for wire in WIRES {
        let (model, canned) =
            provided(wire, [Answer::json(500, &json!({}))], |provider| provider.name = "another".into());
        let parts = first.parts.iter().filter(|part| !matches!(part, Part::Call(_))).cloned();
        let parts = parts.chain([Part::text("a")]).collect();
        let messages = [agent_loop::Message::user("hi"), agent_loop::Message::Assistant { parts }];
        deltas(&model, request().messages(messages.into_iter().collect())).await.1.unwrap_err();
        let body = sent(&canned).1.to_string();
        assert!(!body.contains("hm") && body.contains("\"a\""), "{wire:?} {body}");
    }
}

#[tokio::test]
async fn what_comes_with_a_call_goes_back_with_it() {
    let extra = json!({"google": {"thought_signature": "s"}});
    let call = json!({"index": 0, "id": "c", "type": "function", "extra_content": extra, "function": {"name": "now", "arguments": "{}"}});
    let other = json!({"index": 1, "id": "d", "type": "function", "function": {"name": "now", "arguments": "{}"}});
    let bytes = chat(&[delta(json!({"tool_calls": [call]})), delta(json!({"tool_calls": [other]})), finish("stop")]);
    for wire in [Wire::OpenAiChat, Wire::Chat] {
        let message = second_chat_turn(wire, Answer::events(&bytes, 21), |_| {}).await;
        assert_eq!(message["tool_calls"][0]["extra_content"], extra);
        assert!(message["tool_calls"][1].get("extra_content").is_none(), "{message}");
    }
}

#[tokio::test]
async fn phases_of_responses_go_back() {
    let message = |place: u64, phase: &str, text: &str| {
        let item = |text: &[&str]| {
            let content: Vec<Value> = text.iter().map(|text| json!({"type": "output_text", "text": text})).collect();
            json!({"type": "message", "id": format!("msg_{place}"), "role": "assistant", "phase": phase, "content": content})
        };
        vec![
            json!({"type": "response.output_item.added", "output_index": place, "item": item(&[])}),
            json!({"type": "response.output_text.delta", "output_index": place, "item_id": format!("msg_{place}"), "content_index": 0, "delta": text}),
            json!({"type": "response.output_item.done", "output_index": place, "item": item(&[text])}),
        ]
    };
    let both = [message(0, "commentary", "I look."), message(1, "final_answer", "It is 5.")].concat();
    let done: Vec<Value> = both.iter().filter(|event| event["type"] == "response.output_item.done").cloned().collect();
    let items: Vec<&Value> = done.iter().map(|event| &event["item"]).collect();
    let whole = json!({"object": "response", "status": "completed", "output": items});
    let sent_back =
        |phase: &str, text: &str| json!({"type": "message", "role": "assistant", "content": text, "phase": phase});
    for answer in [
        Answer::events(responses(both.clone(), "completed", Value::Null), 21),
        Answer::events(responses(done.clone(), "completed", Value::Null), 21),
        Answer::json(200, &whole),
    ] {
        let wire = Wire::OpenAiResponses;
        let last = Answer::events(text_only(wire, EndReason::Complete), 9);
        let (model, canned) = provided(wire, [answer, last], |_| {});
        let agent = agent_loop::Agent::new(model, Vec::<agent_loop::Tool>::new()).unwrap();
        let options = agent_loop::RunOptions::default();
        let mut run = agent_loop::Run::new(agent_loop::RunId::random(), options, "2 + 3?");
        let (mut commentary, mut text) = (String::new(), String::new());
        let mut observer = |event| match event {
            agent_loop::Event::Commentary(more) => commentary.push_str(&more),
            agent_loop::Event::Text(more) => text.push_str(&more),
            _ => {}
        };
        let pause = agent.drive(&mut run, &mut observer, &Default::default()).await.unwrap();
        let agent_loop::Pause::Done(outcome) = pause else { panic!() };
        assert_eq!((commentary.as_str(), text.as_str(), outcome.text.as_str()), ("I look.", "It is 5.", "It is 5."));
        run.say("and now?").unwrap();
        agent.drive(&mut run, &mut (), &Default::default()).await.unwrap();
        let input = sent(&canned).1["input"].clone();
        assert_eq!(input[1], sent_back("commentary", "I look."));
        assert_eq!(input[2], sent_back("final_answer", "It is 5."));
    }
}

#[tokio::test]
async fn signatures_of_gemini_texts_go_back() {
    for parts in [
        vec![json!({"text": "ab", "thoughtSignature": "s"})],
        vec![json!({"text": "a"}), json!({"text": "b"}), json!({"text": "", "thoughtSignature": "s"})],
    ] {
        let (shown, body) = second_turn(Wire::Gemini, gemini(&parts, "STOP")).await;
        assert_eq!(shown, "ab|Complete");
        let expected = json!([{"text": "ab", "thoughtSignature": "s"}]);
        assert_eq!(body["contents"][1], json!({"role": "model", "parts": expected}));
    }
}

#[tokio::test]
async fn signatures_and_ids_of_gemini_go_back_as_they_came() {
    let parts = [
        json!({"text": "hm", "thought": true}),
        json!({"functionCall": {"name": "now", "args": {}, "id": "g1"}, "thoughtSignature": "sig"}),
        json!({"functionCall": {"name": "now", "args": {}}}),
    ];
    let (shown, body) = second_turn(Wire::Gemini, gemini(&parts, "STOP")).await;
    assert_eq!(shown, "(hm)|now {}|now {}|Complete");
    let contents = &body["contents"];
    assert_eq!(contents[1], json!({"role": "model", "parts": [parts[1], parts[2]]}));
    let answer = |id: Value| {
        let mut response = json!({"name": "now", "response": {"output": "done"}});
        if !id.is_null() {
            response["id"] = id;
        }
        json!({"functionResponse": response})
    };
    assert_eq!(contents[2], json!({"role": "user", "parts": [answer(json!("g1")), answer(Value::Null)]}));
    let declared: Vec<bool> = body["tools"][0]["functionDeclarations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool.get("parameters").is_some())
        .collect();
    assert_eq!(declared, [true, false, true]);
}

#[tokio::test]
async fn how_gemini_stops() {
    for (finish, expected) in [
        ("SAFETY", "a|Filtered"),
        ("STOP", "a|Complete"),
        ("MODEL_ARMOR", "a|Filtered"),
        ("A_NEW_WORD", "a|Filtered"),
        ("MALFORMED_FUNCTION_CALL", "a|!unreadable_call \"\"|Complete"),
    ] {
        let reply = reply(Wire::Gemini, Answer::events(gemini(&[json!({"text": "a"})], finish), 17)).await.unwrap();
        assert_eq!(show(&reply), expected);
    }
    let blocked = "data: {\"promptFeedback\":{\"blockReason\":\"SAFETY\"}}\n\n";
    assert_eq!(show(&reply(Wire::Gemini, Answer::events(blocked, 17)).await.unwrap()), "Filtered");
}

#[tokio::test]
async fn a_call_that_gemini_did_not_expect_is_not_told_twice() {
    let call = json!({"functionCall": {"name": "later", "args": {}}});
    for (parts, expected) in
        [(vec![call], "later {}|Complete"), (vec![json!({"text": "a"})], "a|!unreadable_call \"\"|Complete")]
    {
        let bytes = gemini(&parts, "UNEXPECTED_TOOL_CALL");
        assert_eq!(show(&reply(Wire::Gemini, Answer::events(bytes, 17)).await.unwrap()), expected);
    }
}

#[tokio::test]
async fn whole_replies_that_name_no_end() {
    for wire in WIRES {
        for word in [Some(json!("")), Some(Value::Null), None] {
            let mut body = super::whole::whole_text(wire);
            let (object, field) = match wire {
                Wire::OpenAiChat | Wire::Chat => (&mut body["choices"][0], "finish_reason"),
                Wire::OpenAiResponses => (&mut body, "status"),
                Wire::Anthropic => (&mut body, "stop_reason"),
                Wire::Gemini => (&mut body["candidates"][0], "finishReason"),
                Wire::Ollama => (&mut body, "done_reason"),
            };
            let object = object.as_object_mut().unwrap();
            object.remove(field);
            object.extend(word.map(|word| (field.to_string(), word)));
            let reply = reply(wire, Answer::json(200, &body)).await.unwrap();
            assert_eq!(show(&reply), "abc|Complete", "{wire:?} {body}");
        }
    }
}

#[tokio::test]
async fn a_filter_that_leaves_no_message() {
    let body = json!({"choices": [{"index": 0, "finish_reason": "content_filter", "content_filter_results": {}}]});
    for wire in [Wire::OpenAiChat, Wire::Chat] {
        assert_eq!(show(&reply(wire, Answer::json(200, &body)).await.unwrap()), "Filtered");
    }
    let mut body = super::whole::whole_text(Wire::OpenAiResponses);
    body["status"] = json!("complete");
    assert_eq!(show(&reply(Wire::OpenAiResponses, Answer::json(200, &body)).await.unwrap()), "abc|Complete");
}

#[tokio::test]
async fn only_the_first_alternative_is_read() {
    let piece = |index: u64, text: &str| json!({"choices": [{"index": index, "delta": {"content": text}, "finish_reason": null}]});
    let chunks = [piece(0, "a"), piece(1, "x"), piece(0, "b"), piece(1, "y"), finish("stop")];
    for wire in [Wire::OpenAiChat, Wire::Chat] {
        assert_eq!(show(&reply(wire, Answer::events(chat(&chunks), 13)).await.unwrap()), "ab|Complete");
    }
    let one = |index: u64, text: &str| json!({"index": index, "content": {"parts": [{"text": text}]}, "finishReason": "STOP"});
    for candidates in [json!([one(0, "ab"), one(1, "x")]), json!([one(1, "x"), one(0, "ab")])] {
        let body = json!({"candidates": candidates});
        assert_eq!(show(&reply(Wire::Gemini, Answer::json(200, &body)).await.unwrap()), "ab|Complete");
    }
}

#[tokio::test]
async fn a_message_of_anthropic_that_begins_again() {
    let broken = message(vec![call_block(1, "toolu_1", "notes_read", &["{\"x\": 48"])], "tool_use");
    let whole = message(vec![call_block(1, "toolu_2", "notes_read", &["{\"x\": 4815}"])], "tool_use");
    let is_end = |event: &&Value| {
        let ends = ["content_block_stop", "message_delta", "message_stop"];
        ends.iter().any(|kind| event["type"] == *kind)
    };
    let events: Vec<Value> = broken.iter().filter(|event| !is_end(event)).chain(&whole).cloned().collect();
    let reply = reply(Wire::Anthropic, Answer::events(anthropic(&events), 17)).await.unwrap();
    assert_eq!(show(&reply), "!notes.read \"{\\\"x\\\": 48\"|notes.read {\"x\":4815}|Complete");
}

#[tokio::test]
async fn how_responses_fail() {
    let failed =
        json!({"type": "response.failed", "response": {"error": {"code": "rate_limit_exceeded", "message": "slow"}}});
    let error = json!({"type": "error", "code": "server_error", "message": "oops", "param": null});
    for (event, kind) in [(failed, ErrorKind::RateLimit), (error, ErrorKind::Unavailable)] {
        let found = reply(Wire::OpenAiResponses, Answer::events(anthropic(&[event]), 17)).await.unwrap_err();
        assert_eq!(found.kind(), kind, "{found}");
    }
    let refusal = json!({"type": "response.refusal.delta", "output_index": 0, "delta": "No."});
    let bytes = responses(vec![refusal], "completed", Value::Null);
    assert_eq!(show(&reply(Wire::OpenAiResponses, Answer::events(bytes, 17)).await.unwrap()), "No.|Refused");
}

#[tokio::test]
async fn dialects_of_responses() {
    let two = || {
        let call = |place, x: &str| response_call(place, "notes_read", &["{\"x\":", x], "completed");
        [call(1, "1}"), call(2, "2}")].concat()
    };
    let without = |mut events: Vec<Value>, field: &str| {
        for event in &mut events {
            event.as_object_mut().unwrap().remove(field);
            if let Some(item) = event["item"].as_object_mut() {
                item.remove(if field == "item_id" { "id" } else { field });
            }
        }
        events
    };
    let zero = |mut events: Vec<Value>| {
        events.iter_mut().for_each(|event| event["output_index"] = json!(0));
        events
    };
    // Both calls begin before the first piece of either.
    let mixed = |events: Vec<Value>| {
        let is_start = |event: &Value| event["type"] == "response.output_item.added";
        let (mut starts, rest): (Vec<Value>, Vec<Value>) = events.into_iter().partition(is_start);
        starts.extend(rest);
        starts
    };
    for (what, events) in [
        ("as recorded", two()),
        ("every item at place 0", zero(two())),
        ("every item at place 0, side by side", mixed(zero(two()))),
        ("no ids of items", without(two(), "item_id")),
        ("no ids of items, every item at place 0", zero(without(two(), "item_id"))),
        ("no ids of items, side by side", mixed(without(two(), "item_id"))),
        ("only whole items", two().into_iter().filter(|event| event["type"] == "response.output_item.done").collect()),
    ] {
        let answer = Answer::events(responses(events, "completed", Value::Null), 17);
        let reply = reply(Wire::OpenAiResponses, answer).await.unwrap();
        assert_eq!(show(&reply), "notes.read {\"x\":1}|notes.read {\"x\":2}|Complete", "{what}");
    }
    // Whatever the response says of itself.
    let cut = responses(response_call(0, "notes_read", &["{\"x\":4815}"], "incomplete"), "completed", Value::Null);
    let reply = reply(Wire::OpenAiResponses, Answer::events(cut, 17)).await.unwrap();
    assert!(show(&reply).starts_with("!notes.read "), "an item that is incomplete never runs");
}
