//! Failures over each wire: typed, with status, request id and delay, and never with the key.

use agent_loop::{EndReason, ErrorKind, Wire};
use serde_json::json;

use super::*;

cases! {
    "401, 403, 429, 500, 529 …: each its kind; context too long, no tools, filtered" statuses_are_kinds,
    "status, request id and delay are told; never the key" what_a_caller_needs_to_know_is_there_and_the_key_is_not,
    "status, request id and delay are told; never the key" a_message_that_is_cut_holds_no_beginning_of_the_key,
    "error inside the stream" errors_inside_a_stream,
    "anything behind the end, in the same bytes or later" data_after_the_end_is_ignored,
    "not of the format: no JSON, no UTF-8, a page, nothing" what_is_not_of_the_format,
}

#[tokio::test]
async fn statuses_are_kinds() {
    let message = |text: &str| json!({"error": {"message": text}});
    let coded = |code: &str| json!({"error": {"message": "m", "code": code}});
    for (status, body, kind) in [
        (401, message("Incorrect API key"), ErrorKind::Authentication),
        (403, message("not allowed"), ErrorKind::Authentication),
        (429, message("Rate limit reached"), ErrorKind::RateLimit),
        (429, coded("insufficient_quota"), ErrorKind::Authentication),
        (500, message("oops"), ErrorKind::Unavailable),
        (
            529,
            json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
            ErrorKind::Unavailable,
        ),
        (400, coded("context_length_exceeded"), ErrorKind::ContextTooLong),
        (
            400,
            json!({"error": {"code": 400, "type": "exceed_context_size_error", "message": "m"}}),
            ErrorKind::ContextTooLong,
        ),
        (400, message("prompt is too long: 210000 tokens > 200000 maximum"), ErrorKind::ContextTooLong),
        (413, message("too large"), ErrorKind::ContextTooLong),
        (400, json!({"error": "registry.ollama.ai/library/gemma does not support tools"}), ErrorKind::ToolsUnsupported),
        (404, message("No endpoints found that support tool use"), ErrorKind::ToolsUnsupported),
        (500, message("tools param requires --jinja flag"), ErrorKind::ToolsUnsupported),
        (400, coded("content_policy_violation"), ErrorKind::Filtered),
        (404, coded("model_not_found"), ErrorKind::BadRequest),
        (400, json!(null), ErrorKind::BadRequest),
    ] {
        for wire in WIRES {
            let error = reply(wire, Answer::json(status, &body)).await.unwrap_err();
            assert_eq!(error.kind(), kind, "{status} {body}: {error}");
            assert_eq!(error.status(), Some(status));
        }
    }
}

#[tokio::test]
async fn what_a_caller_needs_to_know_is_there_and_the_key_is_not() {
    for wire in WIRES {
        let body = json!({"error": {"message": format!("Incorrect API key provided: {KEY}.")}});
        let answer = Answer::json(401, &body).header("X-Request-Id", "req_9");
        let error = reply(wire, answer).await.unwrap_err();
        let text = format!("{error} {error:?}");
        assert!(!text.contains(KEY), "{text}");
        assert_eq!(error.request_id(), Some("req_9"));
        assert!(error.to_string().starts_with("here: Incorrect API key"), "{error}");
        let (model, canned) = hosted(wire, [Answer::json(500, &json!({}))]);
        deltas(&model, request()).await.1.unwrap_err();
        assert!(!format!("{model:?} {:?}", sent(&canned).0).contains(KEY));
    }
    for (name, value, expected) in [
        ("retry-after", "20", Some(Duration::from_secs(20))),
        ("Retry-After-Ms", "1500", Some(Duration::from_millis(1500))),
        ("retry-after", "soon", None),
        ("retry-after", "-1", None),
        ("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT", Some(Duration::from_secs(20))),
        ("retry-after", "Sun, 06 Nov 1994 08:49:07 GMT", Some(Duration::ZERO)),
    ] {
        let answer = Answer::json(429, &json!({})).header(name, value).header("Date", "Sun, 06 Nov 1994 08:49:17 GMT");
        let error = reply(Wire::Chat, answer).await.unwrap_err();
        assert_eq!(error.retry_after(), expected, "{value}");
    }
    let answer = Answer::json(429, &json!({})).header("retry-after", "Fri, 31 Dec 9999 00:00:00 GMT");
    let error = reply(Wire::Chat, answer).await.unwrap_err();
    assert!(error.retry_after() > Some(Duration::from_secs(1 << 30)), "without a date of the server, by our own clock");
}

#[tokio::test]
async fn a_message_that_is_cut_holds_no_beginning_of_the_key() {
    for length in 585..=600 {
        let body = json!({"error": {"message": format!("{}{KEY}", "x".repeat(length))}});
        let error = reply(Wire::Chat, Answer::json(401, &body)).await.unwrap_err().to_string();
        assert!(!error.contains("sk-s") && error.len() < 800, "{length}: {error}");
    }
}

#[tokio::test]
async fn errors_inside_a_stream() {
    let overloaded = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    let limited = json!({"error": {"message": "slow down", "code": 429}});
    for (wire, before, error, kind) in [
        (Wire::Anthropic, "", format!("event: error\ndata: {overloaded}\n\n"), ErrorKind::Unavailable),
        (
            Wire::Chat,
            "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n",
            format!("data: {limited}\n\n"),
            ErrorKind::RateLimit,
        ),
        (
            Wire::OpenAiChat,
            "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n",
            format!("data: {}\n\n", json!({"error": {"message": "oops", "type": "server_error", "code": null}})),
            ErrorKind::Unavailable,
        ),
        (
            Wire::Gemini,
            "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}]}}]}\n\n",
            format!("data: {}\n\n", json!({"error": {"message": "busy", "code": 503, "status": "UNAVAILABLE"}})),
            ErrorKind::Unavailable,
        ),
    ] {
        let bytes = format!("{before}{error}data: {{\"choices\":[]}}\n\n");
        let (model, _) = hosted(wire, [Answer::events(bytes, 10)]);
        let (seen, end) = deltas(&model, request()).await;
        assert_eq!(end.unwrap_err().kind(), kind);
        assert_eq!(seen.len(), usize::from(!before.is_empty()));
    }
}

#[tokio::test]
async fn what_is_not_of_the_format() {
    for wire in WIRES {
        for (answer, kind) in [
            (Answer::events("data: {\"choices\":\n\n", 5), ErrorKind::BadResponse),
            (Answer::events("data: \u{1}\n\n", 5), ErrorKind::BadResponse),
            (Answer::events(b"data: \xff\xfe\n\n", 3), ErrorKind::BadResponse),
            (Answer::events("<html>busy</html>", 5), ErrorKind::CutStream),
            (Answer::events("", 5), ErrorKind::CutStream),
            (Answer::new(200, "application/json", "<html>", 3), ErrorKind::BadResponse),
            (Answer::json(200, &json!({})), ErrorKind::CutStream),
        ] {
            assert_eq!(reply(wire, answer).await.unwrap_err().kind(), kind, "{wire:?}");
        }
    }
}

#[tokio::test]
async fn data_after_the_end_is_ignored() {
    let late = "data: {\"error\":{\"message\":\"late\"}}\n\n";
    for wire in WIRES {
        for behind in ["data: [DONE]\n\n", "data: {\n\n", late, "data: \u{fffd}\n\n", "data: \u{fffd}"] {
            // Gemini's end is that of the body.
            if wire == Wire::Gemini && !behind.contains("DONE") {
                continue;
            }
            let bytes = super::wires::text_only(wire, EndReason::Complete) + behind;
            let broken = bytes.as_bytes().iter().map(|byte| if *byte == 0xbd { 0xff } else { *byte });
            let broken: Vec<u8> = broken.collect();
            for (bytes, size) in [(bytes.as_bytes(), bytes.len()), (bytes.as_bytes(), 5), (&broken, bytes.len())] {
                let reply = reply(wire, Answer::events(bytes, size)).await;
                assert_eq!(show(&reply.unwrap()), "abc|Complete", "{wire:?} {behind:?} in pieces of {size}");
            }
        }
    }
}
