//! Shapes in recorded replies of public projects that are not documented.

use std::time::Duration;

use agent_loop::{ErrorKind, Wire};
use serde_json::{Value, json};

use super::wires::{chat, delta, finish, gemini, responses};
use super::*;

async fn shown(wire: Wire, answer: Answer) -> String {
    show(&reply(wire, answer).await.unwrap())
}

#[tokio::test]
async fn calls_of_chat_in_odd_places() {
    let call = |index: u64, id: &str, name: &str, arguments: &str| {
        let mut call = json!({"index": index, "function": {"arguments": arguments}});
        if !name.is_empty() {
            call["id"] = json!(id);
            call["function"]["name"] = json!(name);
        }
        delta(json!({"tool_calls": [call]}))
    };
    // The name at one index, the arguments at another.
    let apart =
        chat(&[call(1, "c1", "now", ""), call(0, "", "", "{\"a\":"), call(0, "", "", "1}"), finish("tool_calls")]);
    assert_eq!(shown(Wire::Chat, Answer::events(apart, 9)).await, "now {\"a\":1}|Complete");
    // A call without a name behind the others.
    let nameless = json!({"tool_calls": [{"index": 1, "id": "c2", "function": {"name": "", "arguments": "{}"}}]});
    let trailing = chat(&[call(0, "c1", "now", "{}"), delta(nameless), finish("tool_calls")]);
    assert_eq!(shown(Wire::Chat, Answer::events(trailing, 9)).await, "now {}|Complete");
    // Text and call as two choices without an index.
    let call = json!({"id": "c1", "type": "function", "function": {"name": "now", "arguments": "{}"}});
    let choice = |message: Value| json!({"message": message, "finish_reason": "tool_calls"});
    let two = json!({"choices": [choice(json!({"content": "I look."})), choice(json!({"tool_calls": [call]}))]});
    assert_eq!(shown(Wire::Chat, Answer::json(200, &two)).await, "I look.|now {}|Complete");
}

#[tokio::test]
async fn thoughts_of_mistral_go_back_as_parts_of_the_content() {
    let thinking =
        |text: &str| json!([{"type": "thinking", "thinking": [{"type": "text", "text": text}], "closed": true}]);
    let pieces = [thinking("h"), thinking("m"), json!("abc")];
    let chunks: Vec<Value> =
        pieces.iter().map(|content| delta(json!({"content": content}))).chain([finish("stop")]).collect();
    let (model, canned) =
        hosted(Wire::Chat, [Answer::events(chat(&chunks), 9), Answer::events(chat(&[finish("stop")]), 9)]);
    let first = deltas(&model, request()).await.1.unwrap();
    assert_eq!(show(&first), "(hm signed)|abc|Complete");
    let history = [
        agent_loop::Message::user("hi"),
        agent_loop::Message::Assistant { parts: first.parts },
        agent_loop::Message::user("more"),
    ];
    deltas(&model, request().messages(history.into_iter().collect())).await.1.unwrap();
    let expected = json!([thinking("hm")[0], {"type": "text", "text": "abc"}]);
    assert_eq!(sent(&canned).1["messages"][2]["content"], expected);
}

#[tokio::test]
async fn a_text_of_responses_comes_once_wherever_its_deltas_stood() {
    let piece = json!({"type": "response.output_text.delta", "item_id": "m1", "output_index": 0, "content_index": 1, "delta": "abc"});
    let item = json!({"type": "message", "id": "m1", "content": [{"type": "output_text", "text": "abc"}]});
    let done = json!({"type": "response.output_item.done", "output_index": 0, "item": item});
    let bytes = responses(vec![piece, done], "completed", Value::Null);
    assert_eq!(shown(Wire::OpenAiResponses, Answer::events(bytes, 9)).await, "abc|Complete");
}

#[tokio::test]
async fn gemini_counts_without_a_prompt() {
    let last = json!({"candidates": [], "usageMetadata": {"candidatesTokenCount": 17, "totalTokenCount": 97}});
    let bytes = format!(
        "{}data: {last}\r\n\r\n",
        gemini(&[json!({"text": "a"})], "STOP").replace("\"promptTokenCount\":80,", "")
    );
    let reply = reply(Wire::Gemini, Answer::events(bytes, 17)).await.unwrap();
    assert_eq!(reply.usage, usage(80, 17));
}

#[tokio::test]
async fn text_before_an_error_is_told_whatever_the_pieces() {
    let error = json!({"error": {"message": "overloaded", "code": 503}});
    let bytes = format!("data: {}\n\ndata: {error}\n\n", delta(json!({"content": "abc"})));
    for size in [1, 50, bytes.len()] {
        let (told, reply) = deltas(&hosted(Wire::Chat, [Answer::events(&bytes, size)]).0, request()).await;
        let text: String = told
            .iter()
            .filter_map(|delta| if let Delta::Text { text } = delta { Some(&**text) } else { None })
            .collect();
        assert_eq!((text.as_str(), reply.unwrap_err().kind()), ("abc", ErrorKind::Unavailable), "{size}");
    }
}

#[tokio::test]
async fn what_is_no_reply_is_not_asked_for_again() {
    for body in ["Service is starting", "Date: today", "<html></html>"] {
        let error = reply(Wire::Chat, Answer::new(200, "text/plain", body, 9)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BadResponse, "{body}: {error}");
    }
    let failed =
        json!({"type": "response.failed", "response": {"error": null}, "error": {"message": "gone", "code": 503}});
    let error = reply(Wire::OpenAiResponses, Answer::events(format!("data: {failed}\n\n"), 9)).await.unwrap_err();
    assert!(error.to_string().contains("gone"), "{error}");
    let waits = Answer::json(429, &json!({})).header("retry-after-ms", "0").header("retry-after", "1");
    assert_eq!(reply(Wire::Chat, waits).await.unwrap_err().retry_after(), Some(Duration::from_secs(1)));
}
