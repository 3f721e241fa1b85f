//! The order of keys and the spelling of numbers are sent on every wire as the model or the program wrote them.

use agent_loop::{
    Budget, Delta, EndReason, Limit, Message, Model, Reply, ReplyBuilder, Run, RunOptions, StopReason, TextCalls,
    ToolChoice, Wire, portable_schema,
};
use serde_json::json;

use crate::contract::{Answer, WIRES, hosted, request, sent};
use crate::test_tools::{finish, outcome, ready, run, run_context, run_with, set};

/// As a model writes it: keys out of alphabetical order, spaces, numbers spelled with more than they need.
const WRITTEN: &str = r#"{ "zoom": 1.50, "at": "a",  "by": [1e2, {"y": 1.0, "b": 12345678901234567890123}]}"#;

fn called(text: &str) -> Reply {
    let mut builder = ReplyBuilder::new();
    let (begin, end) = text.split_at(text.len() / 2);
    for delta in [
        Delta::CallStart { index: 0, id: "c1".into(), name: "look".into() },
        Delta::CallArguments { index: 0, text: begin.into() },
        Delta::CallArguments { index: 0, text: end.into() },
        Delta::CallEnd { index: 0, opaque: None },
        Delta::End(EndReason::Complete),
    ] {
        builder.push(&delta).unwrap();
    }
    builder.finish().unwrap()
}

/// A history with one call of these arguments and its result, saved and loaded on the way.
fn history(text: &str) -> Vec<Message> {
    let tools = set();
    let context = run_context(&tools, &agent_loop::AllowAll);
    let mut run = run();
    run.next(context);
    run.replied(called(text)).unwrap();
    run.next(context);
    let (mut run, repairs) = Run::from_json(&run.to_json()).unwrap();
    assert!(repairs.is_empty());
    if let agent_loop::NextStep::RunTools(_) = run.next(context) {
        finish(&mut run, context, "c1", "seen");
        run.next(context);
    }
    run.history().messages().iter().map(|message| Message::clone(message)).collect()
}

async fn sent_text(wire: Wire, messages: Vec<Message>) -> String {
    let (model, canned) = hosted(wire, [Answer::json(500, &json!({}))]);
    assert!(model.reply(request().messages(messages.into_iter().collect())).await.is_err());
    String::from_utf8(sent(&canned).0.body).unwrap()
}

#[tokio::test]
async fn arguments_go_back_as_the_model_wrote_them() {
    for wire in WIRES {
        let body = sent_text(wire, history(WRITTEN)).await;
        let expected = match wire {
            Wire::Anthropic | Wire::Gemini | Wire::Ollama => WRITTEN.to_string(),
            _ => serde_json::to_string(WRITTEN).unwrap(),
        };
        assert!(body.contains(&expected), "{wire:?}: {body}");
    }
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(200))]
    #[test]
    fn whatever_a_model_writes_as_arguments_cannot_break_the_body(text in r#"\{?[\[\]{}",:0-9.eE+ab\\ -]{0,24}\}?"#) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for wire in [Wire::Anthropic, Wire::Gemini, Wire::Ollama] {
            let body: serde_json::Value = serde_json::from_str(&runtime.block_on(sent_text(wire, history(&text)))).unwrap();
            let (messages, count, arguments) = match wire {
                Wire::Anthropic => (&body["messages"], 3, &body["messages"][1]["content"][0]["input"]),
                Wire::Ollama => (&body["messages"], 4, &body["messages"][2]["tool_calls"][0]["function"]["arguments"]),
                _ => (&body["contents"], 3, &body["contents"][1]["parts"][0]["functionCall"]["args"]),
            };
            proptest::prop_assert_eq!(messages.as_array().map(Vec::len), Some(count));
            proptest::prop_assert!(arguments.is_object());
        }
    }
}

#[tokio::test]
async fn arguments_that_the_program_changed_go_back_changed() {
    for wire in WIRES {
        let mut messages = history(WRITTEN);
        let Some(Message::Assistant { parts }) = messages.get_mut(1) else { panic!() };
        let agent_loop::Part::Call(call) = &mut parts[0] else { panic!() };
        assert_eq!(call.arguments_text(), WRITTEN);
        call.arguments["at"] = json!("elsewhere");
        assert!(call.arguments_text().starts_with(r#"{"zoom":1.5,"at":"elsewhere","by":[100.0,"#));
        let body = sent_text(wire, messages).await;
        assert!(body.contains("elsewhere") && !body.contains("1.50"), "{wire:?}: {body}");
    }
}

#[tokio::test]
async fn a_text_only_model_reads_its_call_as_it_wrote_it() {
    struct Listener(std::sync::Mutex<String>);
    impl Model for Listener {
        fn name(&self) -> &str {
            "listener"
        }
        fn reply(
            &self,
            request: agent_loop::Request,
        ) -> agent_loop::BoxFuture<'_, agent_loop::error::Result<agent_loop::ReplyStream<'_>>> {
            *self.0.lock().unwrap() = request.messages.iter().map(|message| message.text()).collect();
            Box::pin(async { Ok(Box::pin(futures_util::stream::empty()) as agent_loop::ReplyStream<'_>) })
        }
    }
    let listener = std::sync::Arc::new(Listener(Default::default()));
    let asked = request().messages(history(WRITTEN).into_iter().collect()).tool_choice(ToolChoice::Auto);
    drop(TextCalls::new(std::sync::Arc::clone(&listener)).reply(asked).await.unwrap());
    assert!(listener.0.lock().unwrap().contains(WRITTEN));
}

#[tokio::test]
async fn properties_of_schemas_keep_their_order() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    #[allow(dead_code)]
    struct Verdict {
        /// Before the answer, so that it is written first.
        reasoning: String,
        answer: bool,
        #[serde(default)]
        aside: Option<String>,
    }
    let (schema, _) = portable_schema::<Verdict>();
    let order = |text: &str| ["\"reasoning\":{", "\"answer\":{", "\"aside\":{"].map(|key| text.find(key).unwrap());
    assert!(order(&schema.to_string()).is_sorted(), "{schema}");
    let mut tools = crate::contract::tools();
    tools.truncate(1);
    tools[0].parameters = schema;
    for wire in WIRES {
        let (model, canned) = hosted(wire, [Answer::json(500, &json!({}))]);
        assert!(model.reply(request().tools(tools.clone().into())).await.is_err());
        let body = String::from_utf8(sent(&canned).0.body).unwrap();
        assert!(order(&body).is_sorted(), "{wire:?}: {body}");
    }
}

#[test]
fn the_same_call_in_another_spelling_counts_as_the_same() {
    let tools = set();
    let context = run_context(&tools, &agent_loop::AllowAll);
    let mut run = run_with(RunOptions::default().budget(Budget::default().repeats(Some(2))));
    for text in [r#"{"at":"a"}"#, r#"{ "at": "\u0061" }"#] {
        drop(crate::test_tools::request(run.next(context)));
        run.replied(called(text)).unwrap();
        let ids: Vec<String> = ready(&run.next(context)).into_iter().map(str::to_owned).collect();
        finish(&mut run, context, &ids[0], "seen");
    }
    assert_eq!(outcome(run.next(context)).stop, StopReason::Limit { limit: Limit::Repeats });
}
