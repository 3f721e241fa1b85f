//! Providers with streaming turned off: which request is sent, and how any form of response is read.

use agent_loop::{Delta, EndReason, ErrorKind, Streaming, Wire};
use serde_json::{Value, json};

use super::*;

cases! {
    "streaming turned off; a server that streams anyway" streaming_switched_off,
    "one JSON object where a stream was requested, whatever its content type: its text is one delta, at the end" whole_where_a_stream_was_asked_for,
    "thoughts in one piece are reported" thoughts_that_come_whole,
}

#[tokio::test]
async fn streaming_switched_off() {
    for wire in WIRES {
        let whole = super::wires::whole_body(wire);
        let streamed = super::wires::text_only(wire, EndReason::Complete);
        for (answer, expected) in [
            (Answer::json(200, &whole), "notes.read {\"x\":1}|Complete"),
            (Answer::new(200, "text/plain", whole.to_string(), 9), "notes.read {\"x\":1}|Complete"),
            (Answer::events(streamed, 9), "abc|Complete"),
        ] {
            let (model, seen) = provided(wire, [answer], |provider| provider.streaming = Streaming::No);
            assert_eq!(show(&deltas(&model, request()).await.1.unwrap()), expected, "{wire:?}");
            let (request, body) = sent(&seen);
            assert!(request.headers.contains(&("accept".into(), "application/json".into())));
            if wire == Wire::Gemini {
                assert!(request.url.ends_with("/v1/models/m:generateContent"), "{}", request.url);
                assert!(body.get("stream").is_none());
            } else {
                assert_eq!(body["stream"], json!(false), "{wire:?}");
                assert!(body.get("stream_options").is_none(), "it is refused without a stream");
            }
        }
    }
}

/// The reply of a text, in one object.
pub fn whole_text(wire: Wire) -> Value {
    match wire {
        Wire::OpenAiChat | Wire::Chat => {
            json!({"choices": [{"message": {"role": "assistant", "content": "abc"}, "finish_reason": "stop"}]})
        }
        Wire::OpenAiResponses => {
            let item = json!({"type": "message", "content": [{"type": "output_text", "text": "abc"}]});
            json!({"object": "response", "status": "completed", "output": [item]})
        }
        Wire::Anthropic => {
            json!({"type": "message", "content": [{"type": "text", "text": "abc"}], "stop_reason": "end_turn"})
        }
        Wire::Gemini => json!({"candidates": [{"content": {"parts": [{"text": "abc"}]}, "finishReason": "STOP"}]}),
        Wire::Ollama => {
            json!({"message": {"role": "assistant", "content": "abc"}, "done": true, "done_reason": "stop"})
        }
    }
}

#[tokio::test]
async fn whole_where_a_stream_was_asked_for() {
    for wire in WIRES {
        let body = format!("\n {}\n", whole_text(wire));
        for kind in ["application/json", "text/plain", ""] {
            for size in [1, 9, body.len()] {
                let (model, _) = hosted(wire, [Answer::new(200, kind, &body, size)]);
                let (all, end) = deltas(&model, request()).await;
                assert_eq!(show(&end.unwrap()), "abc|Complete", "{wire:?} {kind}");
                let texts = all
                    .iter()
                    .filter(|delta| matches!(delta, Delta::Text { .. } | Delta::CumulativeText { .. }))
                    .count();
                assert!(texts == 1 && matches!(all.last(), Some(Delta::End(_))), "{all:?}");
            }
        }
        let cut = Answer::new(200, "application/json", &body[..body.len() / 2], 9);
        assert_eq!(reply(wire, cut).await.unwrap_err().kind(), ErrorKind::BadResponse, "{wire:?}");
        // A stream under a type that says nothing.
        let streamed = Answer::new(200, "text/plain", super::wires::text_only(wire, EndReason::Complete), 9);
        assert_eq!(show(&reply(wire, streamed).await.unwrap()), "abc|Complete", "{wire:?}");
    }
}

#[tokio::test]
async fn thoughts_that_come_whole() {
    let item = json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]});
    for wire in WIRES {
        let mut body = whole_text(wire);
        let expected = match wire {
            Wire::OpenAiChat | Wire::Chat => {
                body["choices"][0]["message"]["reasoning_content"] = json!("hm");
                "(hm signed)|abc|Complete"
            }
            Wire::OpenAiResponses => {
                body["output"].as_array_mut().unwrap().insert(0, item.clone());
                "(hm signed)|abc|Complete"
            }
            Wire::Anthropic => {
                let thought = json!({"type": "thinking", "thinking": "hm", "signature": "s"});
                body["content"].as_array_mut().unwrap().insert(0, thought);
                "(hm signed)|abc|Complete"
            }
            Wire::Gemini => {
                let parts = &mut body["candidates"][0]["content"]["parts"];
                parts.as_array_mut().unwrap().insert(0, json!({"text": "hm", "thought": true}));
                "(hm)|abc|Complete"
            }
            Wire::Ollama => {
                body["message"]["thinking"] = json!("hm");
                "(hm signed)|abc|Complete"
            }
        };
        assert_eq!(show(&reply(wire, Answer::json(200, &body)).await.unwrap()), expected, "{wire:?}");
    }
    // Mistral's are parts of the content.
    let thought = json!({"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]});
    let content = json!([thought, {"type": "text", "text": "abc"}]);
    let body = json!({"choices": [{"message": {"content": content}, "finish_reason": "stop"}]});
    assert_eq!(show(&reply(Wire::Chat, Answer::json(200, &body)).await.unwrap()), "(hm signed)|abc|Complete");
    // An item without pieces before it, and one with them, whose text is not told again.
    let done = json!({"type": "response.output_item.done", "output_index": 0, "item": item});
    let piece = json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "hm"});
    for events in [vec![done.clone()], vec![piece, done]] {
        let bytes = super::wires::responses(events, "completed", Value::Null);
        let reply = reply(Wire::OpenAiResponses, Answer::events(bytes, 9)).await.unwrap();
        assert_eq!(show(&reply), "(hm signed)|Complete");
    }
}
