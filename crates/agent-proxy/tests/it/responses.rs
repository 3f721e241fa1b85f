//! Events of the Responses API: an accumulator as strict as the official client's, over every kind of reply.

use agent_loop::{
    Delta, EndReason, Error, ErrorKind, Message, Model, Parallel, Part, ScriptedModel, ScriptedReply, TextCalls,
    TextPhase, ToolChoice, Usage,
};
use agent_proxy::{ApiRequest, Delivery, ResponseEvents, StrictTools, to_sse};
use futures_util::StreamExt;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Reads events as a client does that trusts nothing; gives the terminal event.
pub fn accumulate(events: &[Value]) -> Value {
    let mut items: Vec<Value> = Vec::new();
    let mut is_open: Vec<bool> = Vec::new();
    let mut texts: Vec<String> = Vec::new();
    let mut terminal = None;
    assert_eq!(events[0]["type"], "response.created");
    assert_eq!(events[1]["type"], "response.in_progress");
    for (number, event) in events.iter().enumerate() {
        assert_eq!(event["sequence_number"], number, "sequence numbers are dense");
        assert!(terminal.is_none(), "nothing follows the terminal event");
        let index = event["output_index"].as_u64().map(|index| index as usize);
        let kind = event["type"].as_str().unwrap();
        if kind.starts_with("response.output_text") || kind.contains("arguments") || kind.contains("content_part") {
            let index = index.unwrap();
            assert!(is_open[index], "{kind} of an item that is not open");
            assert_eq!(event["item_id"], items[index]["id"]);
        }
        match kind {
            "response.output_item.added" => {
                assert_eq!(index, Some(items.len()), "items open at the next free place");
                if event["item"]["type"] == "function_call" {
                    let message_open =
                        items.iter().zip(&is_open).any(|(item, open)| *open && item["type"] == "message");
                    assert!(!message_open, "a message is closed before a call opens");
                }
                assert_eq!(event["item"]["status"], "in_progress");
                items.push(event["item"].clone());
                is_open.push(true);
                texts.push(String::new());
            }
            "response.output_text.delta" | "response.function_call_arguments.delta" => {
                texts[index.unwrap()].push_str(event["delta"].as_str().unwrap());
            }
            "response.output_text.done" => assert_eq!(event["text"], texts[index.unwrap()]),
            "response.function_call_arguments.done" => {
                let text = &texts[index.unwrap()];
                let is_filled = text.trim().is_empty() && event["arguments"] == "{}";
                assert!(is_filled || event["arguments"] == *text, "{event}");
                assert_eq!(event["name"], items[index.unwrap()]["name"]);
            }
            "response.output_item.done" => {
                let index = index.unwrap();
                assert!(std::mem::replace(&mut is_open[index], false));
                assert_eq!(event["item"]["id"], items[index]["id"]);
                items[index] = event["item"].clone();
            }
            "response.completed" | "response.incomplete" | "response.failed" => terminal = Some(event.clone()),
            "response.created"
            | "response.in_progress"
            | "response.content_part.added"
            | "response.content_part.done" => {}
            other => panic!("{other} is no event of the API"),
        }
    }
    assert!(is_open.iter().all(|open| !open), "every item is closed");
    let terminal = terminal.expect("there is one terminal event");
    assert_eq!(terminal["response"]["output"], Value::Array(items.clone()));
    let mut ids: Vec<&Value> = items.iter().map(|item| &item["id"]).collect();
    ids.extend(items.iter().filter_map(|item| item.get("call_id")));
    let unique: std::collections::HashSet<String> = ids.iter().map(|id| id.to_string()).collect();
    assert_eq!(unique.len(), ids.len(), "ids are unique");
    terminal
}

fn request(body: Value) -> ApiRequest {
    ApiRequest::parse(body.to_string().as_bytes()).unwrap()
}

fn events(request: &ApiRequest, deltas: impl IntoIterator<Item = Delta>, error: Option<&Error>) -> Vec<Value> {
    let mut stream = ResponseEvents::new(request, "ab12", 1_700_000_000);
    let mut events = stream.start();
    for delta in deltas {
        events.extend(stream.push(delta));
    }
    events.extend(stream.end(error));
    assert_eq!(stream.response(), events.last().map(|event| &event["response"]));
    events
}

/// A reply that is one call.
fn call(id: &str, name: &str, arguments: &str) -> Vec<Delta> {
    vec![
        Delta::CallStart { index: 0, id: id.into(), name: name.into() },
        Delta::CallArguments { index: 0, text: arguments.into() },
        Delta::CallEnd { index: 0, opaque: None },
        Delta::End(EndReason::Complete),
    ]
}

fn simple() -> ApiRequest {
    request(json!({"model": "m", "input": "hi"}))
}

/// The whole way: a text-only model that writes this, through the parser.
async fn of_text(body: Value, text: &str) -> Vec<Value> {
    let request = request(body);
    let model = TextCalls::new(ScriptedModel::new([ScriptedReply::text(text)]).without_tools());
    let mut stream = model.reply(request.request.clone()).await.unwrap();
    let mut deltas = Vec::new();
    while let Some(delta) = stream.next().await {
        deltas.push(delta.unwrap());
    }
    events(&request, deltas, None)
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap().trim_start_matches("response.")).collect()
}

#[tokio::test]
async fn text_and_calls_become_items() {
    let tool = json!({"type": "function", "name": "look", "parameters": {"type": "object"}});
    let text = "I look. <tool_call>{\"name\":\"look\",\"arguments\":{\"at\": 1}}</tool_call>\
        <tool_call>{\"name\":\"other\"}</tool_call> Done.";
    let events = of_text(json!({"model": "m", "input": "hi", "tools": [tool]}), text).await;
    let expected = "created in_progress \
        output_item.added content_part.added output_text.delta output_text.done content_part.done output_item.done \
        output_item.added function_call_arguments.delta function_call_arguments.done output_item.done \
        output_item.added function_call_arguments.delta function_call_arguments.done output_item.done \
        output_item.added content_part.added output_text.delta output_text.done content_part.done output_item.done \
        completed";
    assert_eq!(kinds(&events).join(" "), expected);
    let response = accumulate(&events)["response"].clone();
    assert_eq!(response["status"], "completed");
    assert_eq!(response["output"][0]["content"][0]["text"], "I look. ");
    assert_eq!(response["output"][1]["arguments"], "{\"at\": 1}", "arguments are what the model wrote");
    assert_eq!(response["output"][2]["name"], "other", "an unknown name is the client's business");
    assert_eq!(response["tools"], json!([tool]), "tools are repeated as asked");
    let sse = to_sse(&events[0]);
    assert!(sse.starts_with("event: response.created\ndata: {") && sse.ends_with("}\n\n"));
}

#[tokio::test]
async fn a_block_that_is_no_call_is_text() {
    let tool = json!({"type": "function", "name": "look"});
    let events = of_text(json!({"model": "m", "input": "hi", "tools": [tool]}), "a<tool_call>{\"name\":").await;
    let response = accumulate(&events)["response"].clone();
    assert_eq!(response["output"][0]["content"][0]["text"], "a<tool_call>{\"name\":");
}

#[test]
fn each_end_of_a_reply_is_reported() {
    let text = || Delta::Text { text: "a".into() };
    let call = || {
        [
            Delta::CallStart { index: 0, id: String::new(), name: "look".into() },
            Delta::CallArguments { index: 0, text: "{\"x\":4815".into() },
        ]
    };
    let end = accumulate(&events(&simple(), [text(), Delta::End(EndReason::Length)], None));
    assert_eq!(
        (&end["type"], &end["response"]["incomplete_details"]["reason"]),
        (&json!("response.incomplete"), &json!("max_output_tokens"))
    );
    let end = accumulate(&events(&simple(), call().into_iter().chain([Delta::End(EndReason::Length)]), None));
    assert_eq!(end["response"]["output"][0]["status"], "incomplete", "a cut call is not complete");
    let end = accumulate(&events(&simple(), [Delta::End(EndReason::Filtered)], None));
    assert_eq!(end["response"]["incomplete_details"]["reason"], "content_filter");
    let end = accumulate(&events(&simple(), call(), None));
    assert_eq!((&end["type"], &end["response"]["error"]["code"]), (&json!("response.failed"), &json!("server_error")));
    let limited = Error::new(ErrorKind::RateLimit, "slow down");
    let end = accumulate(&events(&simple(), [text()], Some(&limited)));
    assert_eq!(end["response"]["error"], json!({"code": "rate_limit_exceeded", "message": "slow down"}));
    let usage = Delta::Usage(Usage::default().input(3).output(4).cached(1).reasoning(2));
    let end = accumulate(&events(&simple(), [usage, Delta::End(EndReason::Complete)], Some(&limited)));
    assert_eq!(end["type"], "response.completed", "what fails behind the end changes nothing");
    assert_eq!(end["response"]["usage"]["total_tokens"], 7);
}

#[test]
fn commentary_and_answer_are_messages_of_their_own_and_go_back_as_such() {
    let text = |text: &str| Delta::Text { text: text.into() };
    let phase = |phase| Delta::TextStart { phase };
    let (commentary, answer) = (Some(TextPhase::Commentary), Some(TextPhase::FinalAnswer));
    let deltas =
        [phase(commentary), text("I look"), text("."), phase(answer), text("Red."), Delta::End(EndReason::Complete)];
    let response = accumulate(&events(&simple(), deltas, None))["response"].clone();
    let of = |at: usize| (&response["output"][at]["phase"], &response["output"][at]["content"][0]["text"]);
    assert_eq!(of(0), (&json!("commentary"), &json!("I look.")));
    assert_eq!(of(1), (&json!("final_answer"), &json!("Red.")));
    assert_eq!(response["output"].as_array().unwrap().len(), 2);

    let mut input = response["output"].as_array().unwrap().clone();
    input.push(json!({"role": "assistant", "content": "Old.", "phase": null}));
    let again = request(json!({"model": "m", "input": input}));
    let part = |text: &str, phase| Part::Text { text: text.into(), phase, opaque: None };
    let parts = vec![part("I look.", commentary), part("Red.", answer), part("Old.", None)];
    assert_eq!(**again.request.messages.last().unwrap(), Message::Assistant { parts });
}

#[test]
fn text_behind_a_call_does_not_break_it() {
    let deltas = [
        Delta::CallStart { index: 0, id: "c".into(), name: "look".into() },
        Delta::CallArguments { index: 0, text: "{\"at\":1}".into() },
        Delta::Text { text: "\n".into() },
        Delta::CallEnd { index: 0, opaque: None },
        Delta::End(EndReason::Complete),
    ];
    let response = accumulate(&events(&simple(), deltas, None))["response"].clone();
    let call = &response["output"][0];
    assert_eq!((&call["status"], &call["arguments"]), (&json!("completed"), &json!("{\"at\":1}")));
    assert_eq!(response["output"].as_array().unwrap().len(), 1, "a blank is no message: {response}");
}

#[test]
fn blank_text_is_part_of_a_message_and_never_one_of_its_own() {
    let text = |text: &str| Delta::Text { text: text.into() };
    let reply = |parts: Vec<Delta>| {
        let deltas = parts.into_iter().chain([Delta::End(EndReason::Complete)]);
        accumulate(&events(&simple(), deltas, None))["response"]["output"].clone()
    };
    let two_calls = [call("a", "look", "{}"), vec![text("\n"), text(" ")], call("b", "look", "{}")].concat();
    let calls: Vec<Delta> = two_calls.into_iter().filter(|delta| !matches!(delta, Delta::End(_))).collect();
    let kinds: Vec<Value> = reply(calls).as_array().unwrap().iter().map(|item| item["type"].clone()).collect();
    assert_eq!(kinds, ["function_call", "function_call"]);
    assert_eq!(reply(vec![text("\n"), text(" So"), text("\n")])[0]["content"][0]["text"], "\n So\n");
}

#[test]
fn a_log_is_told_what_the_client_is_not() {
    let tool = json!({"type": "function", "name": "look", "strict": true,
        "parameters": {"type": "object", "required": ["at"], "properties": {"at": {"type": "string"}}}});
    let request = request(json!({"model": "m", "input": "hi", "tools": [tool]}));
    for (name, arguments, warning) in [
        ("look", "{\"at\":\"a\"}", None),
        ("look", "{\"at\":7}", Some("the strict tool look do not fit")),
        ("see", "{}", Some("the model calls see, which the request does not offer")),
    ] {
        let mut events = ResponseEvents::new(&request, "0", 0);
        let sent: Vec<Value> = call("c", name, arguments).into_iter().flat_map(|delta| events.push(delta)).collect();
        let warnings = events.take_warnings();
        assert_eq!(warnings.len(), usize::from(warning.is_some()), "{warnings:?}");
        assert!(warnings.iter().all(|said| said.contains(warning.unwrap())), "{warnings:?}");
        assert_eq!(sent.last().unwrap()["response"]["status"], "completed");
    }
}

#[test]
fn arguments_are_an_object_however_a_server_writes_them() {
    for (written, expected) in [
        ("", "{}"),
        ("null", "{}"),
        ("\"{\\\"at\\\":1}\"", "{\"at\":1}"),
        ("{ \"at\": 1 }", "{ \"at\": 1 }"),
        ("[1]", "[1]"),
    ] {
        let events = events(&simple(), call("c", "look", written), None);
        let call = &events.last().unwrap()["response"]["output"][0];
        assert_eq!((&call["arguments"], &call["status"]), (&json!(expected), &json!("completed")), "{written}");
    }
}

#[test]
fn arguments_that_do_not_fit_are_handed_on_unless_strict_tools_are_enforced() {
    let tool = json!({"type": "function", "name": "look", "strict": true,
        "parameters": {"type": "object", "required": ["at"], "properties": {"at": {"type": "string"}}}});
    let mut request = request(json!({"model": "m", "input": "hi", "tools": [tool]}));
    for (strict_tools, arguments, status) in [
        (StrictTools::PassThrough, "{\"at\":7}", "completed"),
        (StrictTools::PassThrough, "not valid JSON", "completed"),
        (StrictTools::Enforced, "{\"at\":\"a\"}", "completed"),
        (StrictTools::Enforced, "{\"at\":7}", "failed"),
        (StrictTools::Enforced, "", "failed"),
    ] {
        request.strict_tools = strict_tools;
        let response = accumulate(&events(&request, call("c", "look", arguments), None))["response"].clone();
        assert_eq!(response["status"], status, "{arguments}");
        match status {
            "failed" => assert!(response["error"]["message"].as_str().unwrap().contains("strict tool look")),
            _ => assert_eq!(response["output"][0]["arguments"], arguments),
        }
    }
}

#[test]
fn a_tool_choice_holds_whatever_the_model_does() {
    let tools = json!([{"type": "function", "name": "look"}, {"type": "function", "name": "list"}]);
    let text = || vec![Delta::Text { text: "a".into() }, Delta::End(EndReason::Complete)];
    let of_list = || call("c", "list", "{}");
    let both = || text().into_iter().take(1).chain(of_list()).collect::<Vec<_>>();
    let one = json!({"type": "function", "name": "look"});
    for (choice, deltas, expected) in [
        (json!("none"), text(), Ok(1)),
        (json!("none"), both(), Ok(1)),
        (json!("none"), of_list(), Err("the model only called list")),
        (json!("auto"), both(), Ok(2)),
        (json!("required"), of_list(), Ok(1)),
        (json!("required"), text(), Err("the model made no call")),
        (one.clone(), call("c", "look", "{}"), Ok(1)),
        (one.clone(), of_list(), Err("the model did not call look")),
        (one, vec![Delta::End(EndReason::Refused)], Ok(0)),
        (json!("required"), vec![Delta::End(EndReason::Length)], Ok(0)),
    ] {
        let request = request(json!({"model": "m", "input": "hi", "tools": tools, "tool_choice": choice}));
        let response = accumulate(&events(&request, deltas, None))["response"].clone();
        match expected {
            Ok(items) => assert!(
                response["error"].is_null() && response["output"].as_array().unwrap().len() == items,
                "{choice}: {response}"
            ),
            Err(what) => assert!(response["error"]["message"].as_str().unwrap().contains(what), "{choice}: {response}"),
        }
    }
}

#[test]
fn ids_of_calls_are_unlike_those_of_the_whole_conversation() {
    let input = json!([{"role": "user", "content": "hi"},
        {"type": "function_call", "call_id": "call_0", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_0", "output": "x"}]);
    let request = request(json!({"model": "m", "input": input}));
    for (written, is_kept) in [("call_0", false), ("call_1", true), ("", false)] {
        let response = accumulate(&events(&request, call(written, "look", "{}"), None))["response"].clone();
        let id = response["output"][0]["call_id"].as_str().unwrap();
        assert!(!id.is_empty() && (id == written) == is_kept, "{written} became {id}");
    }
}

#[test]
fn a_reply_ends_at_a_stop_sequence_that_is_split() {
    let request = request(json!({"model": "m", "input": "hi", "stop": ["\nObservation:", "END"]}));
    let text = |text: &str| Delta::Text { text: text.into() };
    for (pieces, expected) in [
        (vec!["Act: a\nObs", "ervation: invented", " more"], "Act: a"),
        (vec!["one E", "N", "D two"], "one "),
        (vec!["an E", "N"], "an EN"),
    ] {
        let deltas = pieces.iter().map(|piece| text(piece)).chain([Delta::End(EndReason::Complete)]);
        let response = accumulate(&events(&request, deltas, None))["response"].clone();
        assert_eq!(
            (&response["status"], &response["output"][0]["content"][0]["text"]),
            (&json!("completed"), &json!(expected))
        );
    }
    let deltas = std::iter::once(text("I look. E")).chain(call("c", "look", "{\"at\":\"END\"}"));
    let response = accumulate(&events(&request, deltas, None))["response"].clone();
    assert_eq!(response["output"][0]["content"][0]["text"], "I look. E", "what was held comes before the call");
    assert_eq!(response["output"][1]["arguments"], "{\"at\":\"END\"}", "arguments are not cut");
}

#[test]
fn usage_that_nobody_counted_is_null() {
    let end = accumulate(&events(&simple(), [Delta::End(EndReason::Complete)], None));
    assert!(end["response"]["usage"].is_null(), "{end}");
}

#[test]
fn functions_of_a_namespace_are_offered_called_and_read_back() {
    let look = json!({"type": "function", "name": "look", "strict": true,
        "parameters": {"type": "object", "required": ["at"], "properties": {"at": {"type": "string"}}}});
    let tools = json!([look, {"type": "namespace", "name": "notes", "tools": [look, {"type": "of_the_future"}]}]);
    let made = json!([{"role": "user", "content": "hi"},
        {"type": "function_call", "call_id": "a", "namespace": "notes", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "x"}]);
    let mut request = request(json!({"model": "m", "input": made, "tools": tools}));
    request.strict_tools = StrictTools::Enforced;
    let names: Vec<&str> = request.request.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["look", "notes__look"]);
    assert_eq!(request.request.messages[1].calls().next().unwrap().name, "notes__look");
    for (name, namespace, arguments, status) in [
        ("notes__look", json!("notes"), "{\"at\":\"a\"}", "completed"),
        ("notes__look", json!("notes"), "{}", "failed"),
        ("look", json!(null), "{\"at\":\"a\"}", "completed"),
    ] {
        let response = accumulate(&events(&request, call("c", name, arguments), None))["response"].clone();
        let call = &response["output"][0];
        assert_eq!(
            (&call["name"], &call["namespace"], &response["status"]),
            (&json!("look"), &namespace, &json!(status))
        );
    }
}

#[test]
fn requests_are_understood() {
    let body = json!({
        "model": "m", "stream": true, "instructions": "Be brief.", "parallel_tool_calls": false,
        "max_output_tokens": 50, "temperature": 0.5, "metadata": {"a": "b"}, "of_the_future": {"x": 1},
        "top_p": 0.5, "store": true, "background": false, "conversation": null, "truncation": "disabled",
        "tools": [
            {"type": "function", "name": "flat", "parameters": {"type": "object"}},
            {"type": "function", "function": {"name": "nested", "description": "D"}},
            {"type": "web_search"}],
        "tool_choice": {"type": "function", "name": "flat"},
        "input": [
            {"role": "developer", "content": "Answer in French."},
            {"role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "c"}]},
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
            {"type": "function_call", "call_id": "c1", "name": "flat", "arguments": "{\"k\":1}"},
            {"type": "function_call", "call_id": "c2", "name": "flat", "arguments": ""},
            {"type": "function_call_output", "call_id": "c2", "output": "two"},
            {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "one"}]},
            {"type": "function_call_output", "call_id": "c9", "output": "lost"},
            {"role": "user", "content": "b"}],
    });
    let understood = request(body);
    let asked = &understood.request;
    assert_eq!(understood.delivery, Delivery::Events);
    assert_eq!(asked.system.as_deref(), Some("Be brief.\n\nAnswer in French."));
    let names: Vec<&str> = asked.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["flat", "nested"]);
    assert_eq!((asked.parallel, asked.max_output_tokens), (Parallel::One, Some(50)));
    assert_eq!(asked.tool_choice, ToolChoice::Tool("flat".into()));
    asked.messages.check().unwrap();
    assert_eq!(asked.messages[0].text(), "a\nc");
    let Message::Results { results } = &*asked.messages[2] else { panic!("{:?}", asked.messages) };
    let texts: Vec<String> = results.iter().map(|result| result.text()).collect();
    assert_eq!(texts, ["one", "two"], "results stand in the order of the calls");
    assert!(asked.messages[3].text().contains("lost"), "an output of no call is kept as text");
    for (warning, what) in understood.warnings.iter().zip(["input[2]", "tools[2]", "c9", "top_p"]) {
        assert!(warning.contains(what), "{warning}");
    }
    assert_eq!(understood.warnings.len(), 4);
    let response = accumulate(&events(&understood, [Delta::End(EndReason::Complete)], None))["response"].clone();
    assert_eq!(response["metadata"], json!({"a": "b"}));
    assert_eq!((&response["parallel_tool_calls"], &response["store"]), (&json!(false), &json!(false)));
}

#[test]
fn wrong_requests_are_refused_by_name() {
    let with = |more: Value| {
        let mut body = json!({"model": "m", "input": "hi", "tools": [{"type": "function", "name": "t"}]});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body.to_string()
    };
    for (body, param) in [
        ("{".to_string(), Value::Null),
        (with(json!({"model": null})), json!("model")),
        (with(json!({"input": 7})), json!("input")),
        (with(json!({"input": []})), json!("input")),
        (with(json!({"input": [{"role": "king", "content": "x"}]})), json!("input[0].role")),
        (with(json!({"input": [{"type": "function_call", "name": "t"}]})), json!("input[0].call_id")),
        (with(json!({"tools": {}})), json!("tools")),
        (with(json!({"tools": [{"type": "function"}]})), json!("tools[0].name")),
        (
            with(json!({"tools": [{"type": "function", "name": "t", "parameters": {"type": 7}}]})),
            json!("tools[0].parameters"),
        ),
        (with(json!({"tool_choice": "perhaps"})), json!("tool_choice")),
        (with(json!({"tool_choice": {"type": "function", "name": "gone"}})), json!("tool_choice")),
        (with(json!({"tool_choice": {"type": "allowed_tools", "tools": []}})), json!("tool_choice")),
        (with(json!({"tools": [], "tool_choice": "required"})), json!("tool_choice")),
        (with(json!({"tools": [{"name": "t"}]})), json!("tools[0].type")),
        (with(json!({"tools": [{"type": "function", "name": "t", "strict": 1}]})), json!("tools[0].strict")),
        (with(json!({"tools": [{"type": "function", "name": "t", "parameters": []}]})), json!("tools[0].parameters")),
        (with(json!({"tools": [{"type": "function", "name": "t", "description": 1}]})), json!("tools[0].description")),
        (with(json!({"previous_response_id": "resp_1"})), json!("previous_response_id")),
        (with(json!({"previous_response_id": 7})), json!("previous_response_id")),
        (with(json!({"conversation": "conv_1"})), json!("conversation")),
        (with(json!({"conversation": {"id": "conv_1"}})), json!("conversation")),
        (with(json!({"background": true})), json!("background")),
        (with(json!({"prompt": {"id": "p"}})), json!("prompt")),
        (with(json!({"truncation": "auto"})), json!("truncation")),
        (with(json!({"top_logprobs": 3})), json!("top_logprobs")),
        (with(json!({"max_output_tokens": -5})), json!("max_output_tokens")),
        (with(json!({"max_output_tokens": 0})), json!("max_output_tokens")),
        (with(json!({"temperature": "hot"})), json!("temperature")),
        (with(json!({"temperature": 7})), json!("temperature")),
        (with(json!({"stream": "yes"})), json!("stream")),
        (with(json!({"parallel_tool_calls": "no"})), json!("parallel_tool_calls")),
        (with(json!({"instructions": ["a"]})), json!("instructions")),
        (with(json!({"metadata": "a"})), json!("metadata")),
        (with(json!({"stop": [7]})), json!("stop")),
        (with(json!({"stop": ""})), json!("stop")),
        (with(json!({"stop": ["a", "b", "c", "d", "e"]})), json!("stop")),
        (with(json!({"text": "json"})), json!("text")),
        (with(json!({"text": {"format": {"type": "grammar"}}})), json!("text.format.type")),
        (with(json!({"text": {"format": {"type": "json_schema"}}})), json!("text.format.schema")),
        (with(json!({"input": [{"type": "item_reference", "id": "msg_1"}]})), json!("input[0].id")),
        (with(json!({"input": [{"type": "of_the_future"}]})), json!("input[0].type")),
        (with(json!({"input": [7]})), json!("input[0].type")),
        (with(json!({"input": [{"role": "user", "content": 7}]})), json!("input[0].content")),
        (
            with(json!({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]})),
            json!("input[0].content[0].type"),
        ),
        (
            with(
                json!({"input": [{"type": "function_call_output", "call_id": "c", "output": [{"type": "input_file"}]}]}),
            ),
            json!("input[0].output[0].type"),
        ),
        (
            with(json!({"input": [{"type": "function_call", "call_id": "c", "name": "t", "arguments": {}}]})),
            json!("input[0].arguments"),
        ),
    ] {
        let error = ApiRequest::parse(body.as_bytes()).unwrap_err();
        assert_eq!((error.status, &error.body()["error"]["param"]), (400, &param), "{body}");
        assert_eq!(error.body()["error"]["type"], "invalid_request_error");
    }
    for (choice, expected, tools) in [
        (json!("none"), ToolChoice::None, 1),
        (json!("required"), ToolChoice::Required, 1),
        (json!({"type": "function", "function": {"name": "t"}}), ToolChoice::Tool("t".into()), 1),
        (json!({"type": "allowed_tools", "mode": "auto", "tools": []}), ToolChoice::Auto, 0),
    ] {
        let understood = ApiRequest::parse(with(json!({"tool_choice": choice})).as_bytes()).unwrap();
        assert_eq!((understood.request.tool_choice, understood.request.tools.len()), (expected, tools));
    }
}

fn any_delta() -> impl Strategy<Value = Delta> {
    let index = 0..3usize;
    prop_oneof![
        "[ab]{1,3}".prop_map(|text| Delta::Text { text }),
        index.clone().prop_map(|index| Delta::CallArguments { index, text: "{}".into() }),
        index.clone().prop_map(|index| Delta::CallEnd { index, opaque: None }),
        index.prop_map(|index| Delta::CallFault { index, fault: "f".into(), raw: "raw".into() }),
        Just(Delta::Reasoning { text: "r".into(), opaque: None }),
        Just(Delta::Progress),
        Just(Delta::TextStart { phase: Some(TextPhase::Commentary) }),
        Just(Delta::TextStart { phase: None }),
        prop::sample::select(vec![EndReason::Complete, EndReason::Length]).prop_map(Delta::End),
    ]
}

proptest! {
    /// Whatever a model streams, however it ends: what goes out is a response.
    #[test]
    fn every_stream_is_a_response(
        deltas in prop::collection::vec((any_delta(), any::<bool>()), 0..20),
        fails in any::<bool>(),
    ) {
        let mut next = 0;
        let deltas: Vec<Delta> = deltas.into_iter().flat_map(|(delta, starts)| {
            let start = starts.then(|| {
                next += 1;
                Delta::CallStart { index: next - 1, id: format!("c{}", next - 1), name: "t".into() }
            });
            start.into_iter().chain([delta])
        }).collect();
        let (mut open, mut ended) = (Vec::new(), Vec::new());
        for delta in deltas.iter().take_while(|delta| !matches!(delta, Delta::End(_))) {
            match delta {
                Delta::CallStart { index, .. } => open.push(*index),
                Delta::CallFault { index, .. } => open.retain(|open| open != index),
                Delta::CallEnd { index, .. } if open.contains(index) => {
                    open.retain(|open| open != index);
                    ended.push(format!("c{index}"));
                }
                _ => {}
            }
        }
        let error = Error::new(ErrorKind::Unavailable, "gone");
        let terminal = accumulate(&events(&simple(), deltas, fails.then_some(&error)));
        for item in terminal["response"]["output"].as_array().unwrap() {
            let is_ended = item["call_id"].as_str().is_some_and(|id| ended.iter().any(|ended| ended == id));
            prop_assert!(!is_ended || item["status"] == "completed", "a call that ended is complete: {item}");
        }
    }
}
