//! Providers that are told not to stream: what is asked for, and what is read, whatever the server makes of it.

use agent_loop::{EndReason, Streaming, Wire};

use super::*;

cases! {
    "told not to stream; a server that streams all the same" told_not_to_stream,
}

#[tokio::test]
async fn told_not_to_stream() {
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
