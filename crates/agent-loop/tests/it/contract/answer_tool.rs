//! Answers whose schema Anthropic's format cannot express: they are the arguments of a tool.

use std::sync::Arc;

use agent_loop::{ToolChoice, Wire};
use serde_json::{Value, json};

use super::settings::at;
use super::wires::{anthropic, call_block, message, text_block};
use super::*;

cases! {
    "a structured answer that the format cannot express" a_tool_takes_an_answer_that_the_format_cannot_express,
    "a structured answer that the format cannot express" arguments_of_the_tool_are_the_answer,
    "a structured answer that the format cannot express" the_answer_of_a_run_is_what_the_tool_takes,
}

fn open_schema() -> Value {
    let fields = json!({"type": "object", "additionalProperties": true});
    json!({"type": "object", "required": ["args"], "properties": {"args": fields}})
}

fn asking(schema: &Value) -> Request {
    request().tools([].into()).answer_schema(Some(Arc::new(schema.clone())))
}

#[tokio::test]
async fn a_tool_takes_an_answer_that_the_format_cannot_express() {
    let answered = || Answer::events(anthropic(&message(vec![text_block("Yes.")], "end_turn")), 99);
    let body = async |request: Request| {
        let (model, canned) = hosted(Wire::Anthropic, [answered()]);
        deltas(&model, request).await.1.unwrap();
        sent(&canned).1
    };
    let schema = open_schema();
    let sent = body(asking(&schema)).await;
    assert!(sent.get("output_config").is_none(), "{sent}");
    assert_eq!(at(&sent, &["/tools/0/name", "/tools/0/input_schema", "/tools/1"]), json!(["answer", schema, null]));
    // A forced tool is rejected together with thinking, and leaves no room for a question of the model.
    assert_eq!(sent["tool_choice"], json!({"type": "auto", "disable_parallel_tool_use": true}));
    let names = |sent: &Value| -> Vec<String> {
        let tools = sent["tools"].as_array().into_iter().flatten();
        tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    let with_tools = body(asking(&schema).tools(tools().into())).await;
    assert_eq!(names(&with_tools), ["notes_read", "now", "free"]);
    for other in [
        asking(&json!({"type": "object", "properties": {"n": {"type": "integer"}}})),
        asking(&json!({"type": "array"})),
        asking(&json!({"type": "object", "anyOf": [{"additionalProperties": true}]})),
        asking(&schema).tool_choice(ToolChoice::None),
        request().tools([].into()),
    ] {
        let sent = body(other).await;
        assert_eq!((names(&sent).len(), sent.get("tool_choice")), (0, None), "{sent}");
    }
}

#[tokio::test]
async fn arguments_of_the_tool_are_the_answer() {
    let answer = |blocks: Vec<Vec<Value>>, stop: &str| Answer::events(anthropic(&message(blocks, stop)), 17);
    let call = || call_block(1, "toolu_1", "answer", &["", "{\"args\": ", "{\"a\": 1.00}}"]);
    let block = |input: Value| json!({"type": "tool_use", "id": "toolu_1", "name": "answer", "input": input});
    let whole = |content: Value| Answer::json(200, &json!({"content": content, "stop_reason": "tool_use"}));
    for (answer, expected) in [
        (answer(vec![text_block("Here it is:"), call()], "tool_use"), "Here it is:|{\"args\": {\"a\": 1.00}}|Complete"),
        (answer(vec![text_block("Which one?")], "end_turn"), "Which one?|Complete"),
        (answer(vec![call_block(0, "toolu_1", "answer", &["{\"args\": "])], "max_tokens"), "{\"args\": |Length"),
        (whole(json!([{"type": "text", "text": "Here:"}, block(json!({"args": {}}))])), "Here:|{\"args\":{}}|Complete"),
        (whole(json!([block(json!({}))])), "{}|Complete"),
    ] {
        let reply = deltas(&hosted(Wire::Anthropic, [answer]).0, asking(&open_schema())).await.1.unwrap();
        assert_eq!(show(&reply), expected);
    }
    // A tool of the caller may have that name.
    let (model, _) = hosted(Wire::Anthropic, [answer(vec![call()], "tool_use")]);
    let own = ToolSpec { name: "answer".into(), ..tools().remove(1) };
    let reply = deltas(&model, asking(&open_schema()).tools([own].into())).await.1.unwrap();
    assert_eq!(show(&reply), "answer {\"args\":{\"a\":1.0}}|Complete");
}

#[tokio::test]
async fn the_answer_of_a_run_is_what_the_tool_takes() {
    let blocks = vec![text_block("Here it is:"), call_block(1, "toolu_1", "answer", &["{\"args\": {\"a\": 1}}"])];
    let (model, _) = hosted(Wire::Anthropic, [Answer::events(anthropic(&message(blocks, "tool_use")), 17)]);
    let agent = agent_loop::Agent::new(model, Vec::<agent_loop::Tool>::new()).unwrap();
    let options = agent_loop::RunOptions::default().answer(Some(agent_loop::AnswerShape::new(open_schema())));
    let mut run = agent_loop::Run::new(agent_loop::RunId::random(), options, "hi");
    let driven = agent.drive(&mut run, &mut |_: agent_loop::Event| {}, &Default::default()).await.unwrap();
    let agent_loop::Pause::Done(outcome) = driven else { panic!("there is no tool to ask about") };
    assert_eq!(outcome.answer, Some(json!({"args": {"a": 1}})), "{}", outcome.stop);
}
