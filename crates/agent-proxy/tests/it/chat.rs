//! Chunks of the Chat Completions API: an accumulator that trusts nothing, over every kind of reply.

use agent_loop::{
    Delta, EndReason, Error, ErrorKind, Message, Model, Parallel, ScriptedModel, ScriptedReply, TextCalls, ToolChoice,
    Usage,
};
use agent_proxy::chat::{ChatEvents, ChatRequest, UsageChunk, to_sse};
use agent_proxy::{Delivery, StrictTools};
use futures_util::StreamExt;
use proptest::prelude::*;
use serde_json::{Value, json};

/// What a stream said.
#[derive(Debug, Default, PartialEq)]
pub struct StreamContent {
    pub text: String,
    /// Name and arguments.
    pub calls: Vec<(String, String)>,
    /// Empty when it failed.
    pub finish: String,
    pub usage: Value,
    /// Null unless it failed.
    pub error: Value,
}

/// Reads chunks as a client does that trusts nothing.
pub fn check_chunks(chunks: &[Value]) -> StreamContent {
    let mut said = StreamContent::default();
    let mut ids: Vec<String> = Vec::new();
    let mut is_done = false;
    assert_eq!(chunks[0]["choices"][0]["delta"]["role"], "assistant", "the role comes first");
    for (number, chunk) in chunks.iter().enumerate() {
        assert!(!is_done && said.error.is_null(), "nothing follows the end: {chunk}");
        if chunk == "[DONE]" {
            assert!(!said.finish.is_empty(), "an end has a reason");
            is_done = true;
            continue;
        }
        if !chunk["error"].is_null() {
            assert!(said.finish.is_empty(), "what has finished does not fail");
            said.error = chunk["error"].clone();
            continue;
        }
        assert_eq!((&chunk["object"], &chunk["id"]), (&json!("chat.completion.chunk"), &chunks[0]["id"]));
        let choices = chunk["choices"].as_array().unwrap();
        let Some(choice) = choices.first() else {
            assert!(!said.finish.is_empty() && said.usage.is_null(), "tokens come once, behind the end");
            said.usage = chunk["usage"].clone();
            continue;
        };
        assert!(said.finish.is_empty(), "one chunk finishes, and it is the last one of the choice");
        let delta = &choice["delta"];
        assert_eq!(delta.get("role").is_some(), number == 0);
        said.text.push_str(delta["content"].as_str().unwrap_or_default());
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            let index = call["index"].as_u64().unwrap() as usize;
            let function = &call["function"];
            if index == said.calls.len() {
                ids.push(call["id"].as_str().filter(|id| !id.is_empty()).unwrap().to_string());
                assert_eq!(call["type"], "function");
                said.calls.push((function["name"].as_str().unwrap().to_string(), String::new()));
            } else {
                assert!(call.get("id").is_none() && function.get("name").is_none(), "name and id come once");
            }
            said.calls[index].1.push_str(function["arguments"].as_str().unwrap());
        }
        said.finish = choice["finish_reason"].as_str().unwrap_or_default().to_string();
    }
    assert_eq!(is_done, said.error.is_null(), "it ends as it should, or with an error: {chunks:?}");
    let unique: std::collections::HashSet<&String> = ids.iter().collect();
    assert_eq!(unique.len(), ids.len(), "ids are unique");
    said
}

fn request(body: &Value) -> ChatRequest {
    ChatRequest::parse(body.to_string().as_bytes()).unwrap()
}

fn simple() -> ChatRequest {
    request(&json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]}))
}

/// The chunks, checked, beside the whole object, which must say the same.
fn said(request: &ChatRequest, deltas: impl IntoIterator<Item = Delta>, error: Option<&Error>) -> StreamContent {
    let mut stream = ChatEvents::new(request, "ab12", 1_700_000_000);
    let mut chunks = stream.start();
    for delta in deltas {
        chunks.extend(stream.push(delta));
    }
    chunks.extend(stream.end(error));
    assert!(stream.is_over());
    let said = check_chunks(&chunks);
    let whole = stream.completion().unwrap();
    if said.finish.is_empty() {
        assert_eq!(whole["error"], said.error);
        return said;
    }
    let choice = &whole["choices"][0];
    assert_eq!(choice["finish_reason"], said.finish);
    assert_eq!(choice["message"]["content"].as_str().unwrap_or_default(), said.text);
    let calls = choice["message"]["tool_calls"].as_array().into_iter().flatten();
    let calls: Vec<_> = calls.map(|call| (&call["function"]["name"], &call["function"]["arguments"])).collect();
    assert_eq!(json!(calls), json!(said.calls));
    said
}

fn call(arguments: &[&str]) -> Vec<Delta> {
    let pieces = arguments.iter().map(|text| Delta::CallArguments { index: 7, text: (*text).into() });
    let start = Delta::CallStart { index: 7, id: String::new(), name: "look".into() };
    std::iter::once(start).chain(pieces).chain([Delta::CallEnd { index: 7, opaque: None }]).collect()
}

const COMPLETE: Delta = Delta::End(EndReason::Complete);

#[test]
fn each_end_of_a_reply_is_reported() {
    let text = || Delta::Text { text: "a".into() };
    let cut = || call(&["{\"x\":4815"]).into_iter().take(2);
    assert_eq!(said(&simple(), [text(), COMPLETE], None).finish, "stop");
    assert_eq!(said(&simple(), call(&[]).into_iter().chain([COMPLETE]), None).finish, "tool_calls");
    assert_eq!(said(&simple(), cut().chain([Delta::End(EndReason::Length)]), None).finish, "length");
    assert_eq!(said(&simple(), [Delta::End(EndReason::Filtered)], None).finish, "content_filter");
    let half = said(&simple(), cut().chain([COMPLETE]), None);
    assert!(half.error["message"].as_str().unwrap().contains("call of look is incomplete"), "{half:?}");
    assert_eq!(said(&simple(), [text()], None).error["code"], "server_error", "a cut stream");
    let limited = Error::new(ErrorKind::RateLimit, "slow down");
    assert_eq!(said(&simple(), cut(), Some(&limited)).error["code"], "rate_limit_exceeded");
    assert_eq!(
        said(&simple(), [COMPLETE, text()], Some(&limited)).finish,
        "stop",
        "what comes behind the end is nothing"
    );
    assert_eq!(to_sse(&json!("[DONE]")), "data: [DONE]\n\n");
}

#[test]
fn arguments_are_an_object_however_they_were_written() {
    for (written, sent) in [
        (vec![], "{}"),
        (vec!["nu", "ll"], "{}"),
        (vec![" ", " {\"a", "\": 1}"], "  {\"a\": 1}"),
        (vec!["\"{\\\"a\\\":", "1}\""], "{\"a\":1}"),
        (vec!["not valid JSON"], "not valid JSON"),
    ] {
        let said = said(&simple(), call(&written).into_iter().chain([COMPLETE]), None);
        assert_eq!(said.calls, [("look".to_string(), sent.to_string())]);
    }
}

#[test]
fn usage_is_sent_on_request() {
    let usage = || Delta::Usage(Usage::default().input(3).output(4).cached(1).reasoning(2));
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}],
        "stream_options": {"include_usage": true}});
    assert_eq!(said(&request(&body), [usage(), COMPLETE], None).usage["prompt_tokens_details"]["cached_tokens"], 1);
    assert!(said(&simple(), [usage(), COMPLETE], None).usage.is_null());
}

#[test]
fn an_enforced_strict_tool_fails_the_reply_when_its_arguments_do_not_fit() {
    let parameters = json!({"type": "object", "required": ["at"], "properties": {"at": {"type": "string"}}});
    let mut request = request(&json!({"model": "m", "messages": [{"role": "user", "content": "hi"}],
        "tools": [{"type": "function", "function": {"name": "look", "strict": true, "parameters": parameters}}]}));
    let unfit = || call(&["{\"at\":7}"]).into_iter().chain([COMPLETE]);
    assert_eq!(said(&request, unfit(), None).calls[0].1, "{\"at\":7}", "by default the client is to say so");
    request.api.strict_tools = StrictTools::Enforced;
    for (arguments, fits) in [("{\"at\":\"a\"}", true), ("{\"at\":7}", false), ("", false)] {
        let said = said(&request, call(&[arguments]).into_iter().chain([COMPLETE]), None);
        assert_eq!(said.error.is_null(), fits, "{arguments}");
    }
}

#[test]
fn requests_are_understood() {
    let body = json!({
        "model": "m", "stream": true, "stream_options": {"include_usage": true}, "parallel_tool_calls": false,
        "max_completion_tokens": 50, "max_tokens": 9, "temperature": 0.5, "of_the_future": 1,
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}},
        "tools": [
            {"type": "function", "function": {"name": "look", "description": "D"}},
            {"type": "function", "function": {"name": "list"}}, {"type": "custom", "custom": {"name": "x"}}],
        "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "required",
            "tools": [{"type": "function", "function": {"name": "look"}}]}},
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "c"}]},
            {"role": "assistant", "content": "I look.", "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{\"k\":1}"}},
                {"id": "c2", "type": "function", "function": {"name": "list", "arguments": ""}}]},
            {"role": "tool", "tool_call_id": "c2", "content": "two"},
            {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "one"}]},
            {"role": "tool", "tool_call_id": "c9", "content": "lost"},
            {"role": "developer", "content": "Answer in French."},
            {"role": "user", "content": "b"}],
    });
    let understood = request(&body);
    let asked = &understood.api.request;
    assert_eq!((understood.usage, understood.api.delivery), (UsageChunk::Sent, Delivery::Events));
    assert_eq!(asked.system.as_deref(), Some("Be brief.\n\nAnswer in French."));
    assert_eq!((asked.parallel, asked.max_output_tokens), (Parallel::One, Some(50)));
    assert_eq!((&asked.tool_choice, asked.tools.len()), (&ToolChoice::Required, 1));
    assert_eq!(asked.answer_schema.as_deref(), Some(&json!({"type": "object"})));
    asked.messages.check().unwrap();
    assert_eq!(asked.messages[0].text(), "a\nc");
    assert_eq!(asked.messages[1].calls().count(), 2);
    let Message::Results { results } = &*asked.messages[2] else { panic!("{:?}", asked.messages) };
    let texts: Vec<_> = results.iter().map(|result| (result.name.as_str(), result.text())).collect();
    assert_eq!(texts, [("look", "one".to_string()), ("list", "two".to_string())]);
    assert!(asked.messages[3].text().contains("lost"), "a result of no call is kept as text");
    assert!(understood.api.warnings[0].contains("tools[2]") && understood.api.warnings[1].contains("c9"));
    assert_eq!(understood.api.warnings.len(), 2);
}

#[test]
fn an_answer_of_json_without_a_schema_is_any_object() {
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}],
        "response_format": {"type": "json_object"}});
    let any = json!({"type": "object", "additionalProperties": true});
    assert_eq!(request(&body).api.request.answer_schema.as_deref(), Some(&any));
}

#[test]
fn a_stop_sequence_ends_the_reply_with_stop() {
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}], "stop": "\nObservation:"});
    let text = |text: &str| Delta::Text { text: text.into() };
    let said = said(&request(&body), [text("Act\nObserv"), text("ation: made up"), COMPLETE], None);
    assert_eq!((&said.text[..], &said.finish[..]), ("Act", "stop"));
}

#[test]
fn wrong_requests_are_refused_by_name() {
    let with = |more: Value| {
        let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body.to_string()
    };
    let messages = |message: Value| with(json!({"messages": [message]}));
    let made = |call: Value| messages(json!({"role": "assistant", "tool_calls": [call]}));
    for (body, param) in [
        ("[".to_string(), Value::Null),
        (with(json!({"model": 7})), json!("model")),
        (with(json!({"messages": "hi"})), json!("messages")),
        (with(json!({"messages": []})), json!("messages")),
        (messages(json!({"role": "king"})), json!("messages[0].role")),
        (messages(json!({"role": "tool", "content": "x"})), json!("messages[0].tool_call_id")),
        (made(json!({"function": {"name": "x"}})), json!("messages[0].tool_calls[0].id")),
        (made(json!({"id": "c", "function": {}})), json!("messages[0].tool_calls[0].function.name")),
        (made(json!({"id": "c", "type": "custom"})), json!("messages[0].tool_calls[0].type")),
        (
            made(json!({"id": "c", "function": {"name": "x", "arguments": {}}})),
            json!("messages[0].tool_calls[0].function.arguments"),
        ),
        (messages(json!({"role": "assistant", "function_call": {"name": "x"}})), json!("messages[0].function_call")),
        (messages(json!({"role": "assistant", "tool_calls": {}})), json!("messages[0].tool_calls")),
        (messages(json!({"role": "function", "name": "x", "content": "y"})), json!("messages[0].role")),
        (
            messages(json!({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]})),
            json!("messages[0].content[0].type"),
        ),
        (with(json!({"n": 2})), json!("n")),
        (with(json!({"n": "one"})), json!("n")),
        (with(json!({"functions": [{"name": "x"}]})), json!("functions")),
        (with(json!({"function_call": "auto"})), json!("function_call")),
        (with(json!({"logprobs": true})), json!("logprobs")),
        (with(json!({"logit_bias": {"50256": -100}})), json!("logit_bias")),
        (with(json!({"modalities": ["text", "audio"]})), json!("modalities")),
        (with(json!({"max_tokens": -5})), json!("max_tokens")),
        (with(json!({"max_completion_tokens": "9"})), json!("max_completion_tokens")),
        (with(json!({"temperature": "hot"})), json!("temperature")),
        (with(json!({"stream": "yes"})), json!("stream")),
        (with(json!({"stream_options": true})), json!("stream_options")),
        (with(json!({"stream_options": {"include_usage": 1}})), json!("stream_options.include_usage")),
        (with(json!({"stop": {}})), json!("stop")),
        (with(json!({"response_format": {"type": "xml"}})), json!("response_format.type")),
        (
            with(json!({"response_format": {"type": "json_schema", "json_schema": {}}})),
            json!("response_format.json_schema.schema"),
        ),
        (with(json!({"tools": [{"type": "function", "function": {}}]})), json!("tools[0].name")),
        (with(json!({"tool_choice": {"type": "function", "function": {"name": "gone"}}})), json!("tool_choice")),
    ] {
        let error = ChatRequest::parse(body.as_bytes()).unwrap_err();
        assert_eq!((error.status, &error.body()["error"]["param"]), (400, &param), "{body}");
    }
}

/// The whole way: a text-only model that writes this in pieces, through the parser.
async fn of_pieces(request: &ChatRequest, pieces: Vec<String>) -> StreamContent {
    let deltas = pieces.into_iter().map(|text| Delta::Text { text }).chain([COMPLETE]);
    let model = TextCalls::new(ScriptedModel::new([ScriptedReply::deltas(deltas)]).without_tools());
    let mut stream = model.reply(request.api.request.clone()).await.unwrap();
    let mut deltas = Vec::new();
    while let Some(delta) = stream.next().await {
        deltas.push(delta.unwrap());
    }
    said(request, deltas, None)
}

fn any_delta() -> impl Strategy<Value = Delta> {
    let index = 0..3usize;
    prop_oneof![
        "[ab]{1,3}".prop_map(|text| Delta::Text { text }),
        (index.clone(), "[{}\" a]{0,3}").prop_map(|(index, text)| Delta::CallArguments { index, text }),
        index.clone().prop_map(|index| Delta::CallEnd { index, opaque: None }),
        index.prop_map(|index| Delta::CallFault { index, fault: "f".into(), raw: "raw".into() }),
        Just(Delta::Reasoning { text: "r".into(), opaque: None }),
        prop::sample::select(vec![EndReason::Complete, EndReason::Length]).prop_map(Delta::End),
    ]
}

proptest! {
    /// Whatever a model streams, however it ends: what goes out ends once.
    #[test]
    fn every_stream_ends_once(
        deltas in prop::collection::vec((any_delta(), any::<bool>()), 0..20),
        fails in any::<bool>(),
    ) {
        let mut next = 0;
        let deltas: Vec<Delta> = deltas.into_iter().flat_map(|(delta, starts)| {
            let start = starts.then(|| {
                next += 1;
                Delta::CallStart { index: next - 1, id: String::new(), name: "t".into() }
            });
            start.into_iter().chain([delta])
        }).collect();
        let error = Error::new(ErrorKind::Unavailable, "gone");
        said(&simple(), deltas, fails.then_some(&error));
    }

    /// It never matters how a model's text was split.
    #[test]
    fn every_split_says_the_same(cuts in prop::collection::vec(any::<bool>(), 90)) {
        let text = "Ich späh.<tool_call>{\"name\":\"look\",\"arguments\":{\"at\":\"</tool_call>\"}}</tool_call> So <b>.\
            <tool_call>{\"name\":\"list\"}";
        let request = request(&json!({"model": "m", "messages": [{"role": "user", "content": "hi"}],
            "tools": [{"type": "function", "function": {"name": "look"}}]}));
        let mut pieces = vec![String::new()];
        for (letter, cut) in text.chars().zip(cuts.iter().cycle()) {
            if *cut && !pieces.last().unwrap().is_empty() {
                pieces.push(String::new());
            }
            pieces.last_mut().unwrap().push(letter);
        }
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let split = runtime.block_on(of_pieces(&request, pieces));
        prop_assert_eq!(&split, &runtime.block_on(of_pieces(&request, vec![text.into()])));
        prop_assert_eq!(&split.text[..], "Ich späh. So <b>.");
        prop_assert_eq!(split.calls.len(), 2);
    }
}
