//! Failures over each wire: typed, with status, request id and delay, and never with the key.

use agent_loop::{EndReason, ErrorKind, Wire};
use serde_json::json;

use super::*;

cases! {
    "401, 403, 429, 500, 529 …: an error kind for each; context too long, no tools, filtered" statuses_are_kinds,
    "errors in each provider's wording: context too long, no key, no quota, no tools" kinds_in_the_words_of_each_provider,
    "status, request id and retry delay are reported, never the key" delays_in_the_words_of_each_provider,
    "status, request id and retry delay are reported, never the key" what_a_caller_needs_to_know_is_there_and_the_key_is_not,
    "status, request id and retry delay are reported, never the key" a_message_that_is_cut_holds_no_beginning_of_the_key,
    "errors inside the stream" errors_inside_a_stream,
    "errors inside the stream" a_quota_inside_a_stream_is_not_asked_for_again,
    "errors inside the stream" a_choice_that_ends_with_an_error_is_an_error,
    "content filters; calls that the provider could not parse" a_call_that_groq_could_not_read_is_told_to_the_model,
    "data after the end is ignored, in the same bytes or later" data_after_the_end_is_ignored,
    "invalid replies: not JSON, not UTF-8, an HTML page, empty" what_is_not_of_the_format,
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
async fn kinds_in_the_words_of_each_provider() {
    let message = |text: &str| json!({"error": {"message": text}});
    let gemini = |status: &str, text: &str, details: Value| json!({"error": {"code": 400, "status": status, "message": text, "details": details}});
    let long = "The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).";
    let info = json!([{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]);
    let xai = json!({"code": "Client specified an invalid argument", "error": "Incorrect API key provided: xa***ey."});
    let quota = json!({"error": {"message": "m", "type": "exceeded_current_quota_error"}});
    for (status, body, kind) in [
        (400, gemini("INVALID_ARGUMENT", long, json!(null)), ErrorKind::ContextTooLong),
        (400, gemini("INVALID_ARGUMENT", "m", info), ErrorKind::Authentication),
        (400, gemini("INVALID_ARGUMENT", "API key not valid.", json!([])), ErrorKind::Authentication),
        (400, xai, ErrorKind::Authentication),
        (400, message("Your credit balance is too low to access the Anthropic API."), ErrorKind::Authentication),
        (
            400,
            message("input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000"),
            ErrorKind::ContextTooLong,
        ),
        (400, message("This model's maximum prompt length is 131072 but 537812 came"), ErrorKind::ContextTooLong),
        (400, message("Your request exceeded model token limit: 262144"), ErrorKind::ContextTooLong),
        (400, json!({"error": {"code": "1261", "message": "Prompt exceeds max length"}}), ErrorKind::ContextTooLong),
        (400, json!({"message": "longer than the maximum model length of 8192"}), ErrorKind::ContextTooLong),
        (429, quota, ErrorKind::Authentication),
        (500, message("image input is not supported - hint: you may need the mmproj"), ErrorKind::BadRequest),
        (
            400,
            message("\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set"),
            ErrorKind::ToolsUnsupported,
        ),
    ] {
        for wire in WIRES {
            let error = reply(wire, Answer::json(status, &body)).await.unwrap_err();
            assert_eq!(error.kind(), kind, "{status} {body}: {error}");
            if kind == ErrorKind::BadRequest {
                assert!(error.remedy().unwrap().contains("image"), "{error}");
            }
        }
    }
}

#[tokio::test]
async fn delays_in_the_words_of_each_provider() {
    let details = json!([{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}]);
    let gemini = json!({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "m", "details": details}});
    let openai = json!({"error": {"code": "rate_limit_exceeded", "message": "Please try again in 1.2s."}});
    for (body, millis) in [(&gemini, 34_000), (&openai, 1_200)] {
        for wire in WIRES {
            let delay = Some(Duration::from_millis(millis));
            assert_eq!(reply(wire, Answer::json(429, body)).await.unwrap_err().retry_after(), delay, "{body}");
            let header = Answer::json(429, body).header("retry-after", "20");
            let error = reply(wire, header).await.unwrap_err();
            assert_eq!(error.retry_after(), Some(Duration::from_secs(20)), "the header is meant for programs");
        }
    }
    let failed = json!({"type": "response.failed", "response": openai});
    let error = reply(Wire::OpenAiResponses, Answer::events(format!("data: {failed}\n\n"), 9)).await.unwrap_err();
    assert_eq!((error.kind(), error.retry_after()), (ErrorKind::RateLimit, Some(Duration::from_millis(1_200))));
    let refused = json!({"error": {"code": "invalid_api_key", "message": "Please try again in 5s."}});
    assert_eq!(reply(Wire::Chat, Answer::json(401, &refused)).await.unwrap_err().retry_after(), None);
}

#[tokio::test]
async fn a_quota_inside_a_stream_is_not_asked_for_again() {
    let quota =
        json!({"type": "insufficient_quota", "code": "insufficient_quota", "message": "You exceeded your quota."});
    let failed = json!({"type": "response.failed", "response": {"status": "failed", "error": quota}});
    for (wire, event) in [
        (Wire::OpenAiResponses, json!({"type": "error", "error": quota})),
        (Wire::OpenAiResponses, failed),
        (Wire::Chat, json!({"error": quota})),
    ] {
        let error = reply(wire, Answer::events(format!("data: {event}\n\n"), 9)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Authentication, "{event}");
        assert!(!error.kind().is_retryable());
    }
}

#[tokio::test]
async fn a_choice_that_ends_with_an_error_is_an_error() {
    let told = json!({"code": 400, "message": "prompt is too long"});
    for (choice, kind) in [
        (json!({"delta": {"content": ""}, "finish_reason": "error"}), ErrorKind::Unavailable),
        (json!({"delta": {}, "finish_reason": "error", "error": told}), ErrorKind::ContextTooLong),
    ] {
        for wire in [Wire::OpenAiChat, Wire::Chat] {
            let body = super::wires::chat(&[json!({"choices": [choice]})]);
            assert_eq!(reply(wire, Answer::events(body, 9)).await.unwrap_err().kind(), kind, "{choice}");
        }
    }
}

#[tokio::test]
async fn a_call_that_groq_could_not_read_is_told_to_the_model() {
    let error = json!({"error": {"message": "Failed to call a function.", "type": "invalid_request_error",
        "code": "tool_use_failed", "failed_generation": "<function=now{}"}});
    let before = super::wires::delta(json!({"content": "a"}));
    let inside = format!("data: {before}\n\nevent: error\ndata: {error}\n\n");
    for (answer, expected) in [
        (Answer::json(400, &error), "!unreadable_call \"<function=now{}\"|Complete"),
        (Answer::json(200, &error), "!unreadable_call \"<function=now{}\"|Complete"),
        (Answer::events(inside, 9), "a|!unreadable_call \"<function=now{}\"|Complete"),
    ] {
        let reply = reply(Wire::Chat, answer).await.unwrap();
        assert_eq!(show(&reply), expected);
        let Some(Part::Call(call)) = reply.parts.last() else { panic!("{reply:?}") };
        assert_eq!(call.fault.as_deref(), Some("The call could not be read: Failed to call a function."));
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
            (Answer::json(200, &json!({})), ErrorKind::BadResponse),
            (Answer::json(200, &json!({"contentType": "text", "status": "queued"})), ErrorKind::BadResponse),
            (Answer::json(200, &json!({"choices": [], "candidates": []})), ErrorKind::BadResponse),
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
