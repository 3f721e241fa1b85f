//! Text that a server sends more than once: new text is recognized by its position, never by its content.

use agent_loop::{TextDeltas, Wire};
use serde_json::{Value, json};

use super::wires::{
    anthropic, block, call_block, chat, delta, finish, fragment, gemini, message, ollama, response_call, responses,
    text_block,
};
use super::*;

cases! {
    "the whole text or call repeated after its pieces is dropped; a repetition within the text stays" repeated_whole_text,
    "the same on servers without ids or indexes, with a partial repetition, or without pieces" repeated_text_of_compatible_servers,
    "cumulative pieces, each with the text so far" cumulative_pieces,
}

/// One event of the Responses API about a text of the item at this place.
fn text_event(place: u64, kind: &str, field: &str, value: Value) -> Value {
    let mut event = json!({"type": format!("response.{kind}"), "item_id": format!("msg_{place}"),
        "output_index": place, "content_index": 0});
    event[field] = value;
    event
}

fn message_item(place: u64, text: &str) -> Value {
    json!({"type": "message", "id": format!("msg_{place}"), "role": "assistant",
        "content": [{"type": "output_text", "text": text}]})
}

/// A message as the API tells it: in pieces, then whole as text, part and item.
fn told_message(place: u64, pieces: &[&str], whole: &str) -> Vec<Value> {
    let pieces = pieces.iter().map(|piece| text_event(place, "output_text.delta", "delta", json!(piece)));
    let part = json!({"type": "output_text", "text": whole});
    let item = message_item(place, whole);
    pieces
        .chain([
            text_event(place, "output_text.done", "text", json!(whole)),
            text_event(place, "content_part.done", "part", part),
            json!({"type": "response.output_item.done", "output_index": place, "item": item}),
        ])
        .collect()
}

/// Behind the events, the response with these texts as its output.
fn with_output(events: Vec<Value>, texts: &[&str]) -> String {
    let output: Vec<Value> = texts.iter().enumerate().map(|(place, text)| message_item(place as u64, text)).collect();
    let all = responses(events, "completed", Value::Null);
    all.replace("\"output\":[]", &format!("\"output\":{}", json!(output)))
}

/// With the finish reason, the whole message beside an empty delta.
fn chat_whole(message: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "message": message, "finish_reason": "stop"}]})
}

fn anthropic_whole(mut events: Vec<Value>, content: Value) -> String {
    for event in &mut events {
        if event["type"] == "content_block_stop" {
            event["content_block"] = content[event["index"].as_u64().unwrap() as usize].clone();
        }
        if event["type"] == "message_stop" {
            event["message"] = json!({"role": "assistant", "content": content});
        }
    }
    anthropic(&events)
}

/// Text and a call in pieces, and then all of it again, wherever the wire or its gateways do so.
pub fn with_whole_text_repeated(wire: Wire) -> Option<String> {
    let call = json!({"id": "c", "type": "function", "function": {"name": "notes_read", "arguments": "{\"x\":1}"}});
    Some(match wire {
        Wire::OpenAiChat | Wire::Chat => chat(&[
            delta(json!({"content": "ha "})),
            delta(json!({"content": "ha"})),
            fragment(0, "c", "notes_read", "{\"x\""),
            fragment(0, "", "", ":1}"),
            chat_whole(json!({"role": "assistant", "content": "ha ha", "tool_calls": [call]})),
        ]),
        Wire::OpenAiResponses => {
            let call = response_call(1, "notes_read", &["{\"x\"", ":1}"], "completed");
            let told = told_message(0, &["ha ", "ha"], "ha ha");
            with_output(told.into_iter().chain(call).collect(), &["ha ha"])
        }
        Wire::Anthropic => {
            let blocks = vec![text_block("ha ha"), call_block(1, "t", "notes_read", &["{\"x\"", ":1}"])];
            let call = json!({"type": "tool_use", "id": "t", "name": "notes_read", "input": {"x": 1}});
            anthropic_whole(message(blocks, "tool_use"), json!([{"type": "text", "text": "ha ha"}, call]))
        }
        Wire::Gemini | Wire::Ollama => return None,
    })
}

#[tokio::test]
async fn repeated_whole_text() {
    for (wire, bytes) in WIRES.into_iter().filter_map(|wire| Some((wire, with_whole_text_repeated(wire)?))) {
        for size in [7, bytes.len()] {
            let reply = reply(wire, Answer::events(&bytes, size)).await.unwrap();
            assert_eq!(show(&reply), "ha ha|notes.read {\"x\":1}|Complete", "{wire:?}");
        }
    }
}

#[tokio::test]
async fn repeated_text_of_compatible_servers() {
    let whole = |text: &str| chat_whole(json!({"content": text}));
    for (what, chunks, expected) in [
        ("only whole", vec![whole("abc")], "abc|Complete"),
        ("the last piece only in the whole", vec![delta(json!({"content": "ab"})), whole("abc")], "abc|Complete"),
        ("a whole that lost its end", vec![delta(json!({"content": "abc "})), whole("abc")], "abc |Complete"),
        (
            "a whole twice, then its own finish",
            vec![delta(json!({"content": "abc"})), whole("abc"), whole("abc"), finish("stop")],
            "abc|Complete",
        ),
        (
            "a piece that says the same as all before it",
            vec![delta(json!({"content": "abc"})), delta(json!({"content": "abc"})), finish("stop")],
            "abcabc|Complete",
        ),
    ] {
        let reply = reply(Wire::Chat, Answer::events(chat(&chunks), 13)).await.unwrap();
        assert_eq!(show(&reply), expected, "{what}");
    }

    let two = || [told_message(0, &["a", "b"], "ab"), told_message(1, &["a", "b"], "ab")].concat();
    let without = |mut events: Vec<Value>, fields: &[&str]| {
        for field in fields {
            for event in &mut events {
                event.as_object_mut().unwrap().remove(*field);
                event["item"].as_object_mut().map(|item| item.remove("id")).filter(|_| *field == "item_id");
            }
        }
        events
    };
    let only = |kind: &str| two().into_iter().filter(|event| event["type"] == format!("response.{kind}")).collect();
    for (what, events, output) in [
        ("two messages that say the same", two(), &["ab", "ab"][..]),
        ("no ids", without(two(), &["item_id"]), &["ab", "ab"]),
        ("no ids, no places", without(two(), &["item_id", "output_index"]), &["ab", "ab"]),
        ("only whole texts", only("output_text.done"), &[]),
        ("only whole items", only("output_item.done"), &[]),
        ("only whole items without ids", without(only("output_item.done"), &["item_id"]), &["ab", "ab"]),
        (
            "only whole items, no ids, no places, nothing in the response",
            without(only("output_item.done"), &["item_id", "output_index"]),
            &[],
        ),
        ("only the whole response", vec![], &["ab", "ab"]),
        ("the end of the last piece only in the whole", told_message(0, &["a", "b", "a"], "abab"), &["abab"]),
    ] {
        let reply = reply(Wire::OpenAiResponses, Answer::events(with_output(events, output), 17)).await.unwrap();
        assert_eq!(show(&reply), "abab|Complete", "{what}");
    }

    let refused = vec![
        text_event(0, "refusal.delta", "delta", json!("No")),
        text_event(0, "refusal.done", "refusal", json!("No.")),
    ];
    let bytes = responses(refused, "completed", Value::Null);
    assert_eq!(show(&reply(Wire::OpenAiResponses, Answer::events(bytes, 17)).await.unwrap()), "No.|Refused");

    // A call whose arguments come with its beginning and not in pieces.
    let input = json!({"type": "tool_use", "id": "t", "name": "notes_read", "input": {"x": 1}});
    for (pieces, expected) in [(vec![], 1), (vec![json!({"type": "input_json_delta", "partial_json": "{\"x\":2}"})], 2)]
    {
        let bytes = anthropic(&message(vec![block(0, input.clone(), &pieces)], "tool_use"));
        let reply = reply(Wire::Anthropic, Answer::events(bytes, 17)).await.unwrap();
        assert_eq!(show(&reply), format!("notes.read {{\"x\":{expected}}}|Complete"));
    }
}

#[tokio::test]
async fn cumulative_pieces() {
    let texts = ["ha", "ha ", "ha ha", "ha ha"];
    for wire in WIRES {
        let bytes = match wire {
            Wire::OpenAiChat | Wire::Chat => {
                let pieces = texts.iter().map(|text| delta(json!({"content": text})));
                chat(&pieces.chain([finish("stop")]).collect::<Vec<_>>())
            }
            Wire::OpenAiResponses => with_output(told_message(0, &texts, "ha ha"), &["ha ha"]),
            Wire::Anthropic => {
                let pieces = texts.map(|text| json!({"type": "text_delta", "text": text}));
                anthropic(&message(vec![block(0, json!({"type": "text", "text": ""}), &pieces)], "end_turn"))
            }
            // The last chunk in two parts.
            Wire::Gemini => gemini(&texts.map(|text| json!({"text": text})), "STOP")
                .replace("\"parts\":[]", "\"parts\":[{\"text\":\"ha\"},{\"text\":\" ha\"}]"),
            Wire::Ollama => ollama(&texts.map(|text| json!({"content": text})), "stop"),
        };
        let so_far =
            provided(wire, [Answer::events(&bytes, 13)], |provider| provider.text_deltas = TextDeltas::Cumulative);
        assert_eq!(show(&deltas(&so_far.0, request()).await.1.unwrap()), "ha ha|Complete", "{wire:?}");
        let taken_as_new = reply(wire, Answer::events(&bytes, 13)).await.unwrap();
        assert!(
            show(&taken_as_new).starts_with("haha "),
            "{wire:?}: a piece is new unless the provider says otherwise"
        );
    }
}
