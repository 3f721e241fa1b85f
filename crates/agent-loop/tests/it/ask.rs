//! The simple case in one call, and tools with as little code around them as possible.

use std::sync::{Arc, Mutex};

use agent_loop::{
    Agent, AnswerShape, Budget, Decision, Delta, EndReason, Error, ErrorKind, History, Json, Limit, Limits, Message,
    Part, Pause, Run, RunId, RunOptions, ScriptedModel, ScriptedReply, Status, StopReason, Tool, ToolCall, ToolContext,
    ToolError, ToolResult, ToolSpec, tool,
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::test_tools::live;

#[derive(Debug, PartialEq, serde::Deserialize, schemars::JsonSchema)]
struct Sum {
    reasoning: String,
    sum: i64,
}

#[tokio::test(start_paused = true)]
async fn one_call_answers_a_message() {
    let add = tool! {
        /// Adds two numbers.
        read async fn add(a: i64, /** The number that is added. */ b: i64) -> Result<Json<i64>, ToolError> {
            Ok(Json(a.checked_add(b).ok_or("the sum is too large")?))
        }
    };
    assert_eq!(add.spec().parameters["properties"]["b"]["description"], "The number that is added.");
    assert_eq!((add.spec().name.as_str(), add.spec().effect), ("add", agent_loop::Effect::Read));
    let text = r#"{"reasoning": "2 and 3", "sum": 5}"#;
    let model = ScriptedModel::new([
        ScriptedReply::calls([("add", json!({"a": 2, "b": 3}))]),
        ScriptedReply::text(text).expecting(|request| match request.system.as_deref() {
            Some("Be exact.") => Ok(()),
            other => Err(format!("{other:?}")),
        }),
    ]);
    let options = RunOptions::default().system(Some("Be exact.".into())).answer(Some(AnswerShape::of::<Sum>()));
    let agent = Agent::new(model, vec![add]).unwrap().options(options);
    let outcome = agent.ask("What is 2 + 3?").await.unwrap();
    assert_eq!((&outcome.stop, outcome.text.as_str()), (&StopReason::Answered, text));
    assert_eq!(outcome.answer::<Sum>().unwrap(), Sum { reasoning: "2 and 3".into(), sum: 5 });
    assert_eq!(outcome.answer::<Vec<u8>>().unwrap_err().kind(), ErrorKind::BadResponse);
}

#[tokio::test(start_paused = true)]
async fn asking_fails_where_the_run_ends_without_an_answer() {
    let wrong_key = || Error::new(ErrorKind::Authentication, "the key is not valid").with_status(401);
    let ended = |end| ScriptedReply::deltas([Delta::Text { text: "Half".into() }, Delta::End(end)]);
    let cases = [
        (ScriptedReply::fails(wrong_key()), "", StopReason::Failed { failure: (&wrong_key()).into() }),
        (ended(EndReason::Length), "Half", StopReason::Length),
        (ended(EndReason::Filtered), "Half", StopReason::Filtered),
        (ended(EndReason::Refused), "Half", StopReason::Refused),
        (ScriptedReply::deltas([Delta::End(EndReason::Complete)]), "", StopReason::Empty),
        (ScriptedReply::calls([("look", json!({}))]), "", StopReason::Limit { limit: Limit::Turns }),
    ];
    for (reply, text, stop) in cases {
        let options = RunOptions::default().budget(Budget::default().turns(Some(1)));
        let agent = Agent::new(ScriptedModel::new([reply]), live(&Arc::default())).unwrap().options(options);
        let error = agent.ask("go").await.unwrap_err();
        assert_eq!((&error.outcome().stop, error.outcome().text.as_str()), (&stop, text));
        assert_eq!(error.to_string(), stop.to_string());
    }
}

#[tokio::test(start_paused = true)]
async fn a_conversation_that_was_begun_elsewhere_goes_on() {
    let call = ToolCall::new("c1", "look", json!({}));
    let question = || Message::user("Is it there?");
    let asked = Message::Assistant { parts: vec![Part::Call(call.clone())] };
    let results = Message::Results { results: vec![ToolResult::new(&call, Status::Ok, "a lamp")] };
    let history = |messages: &[Message]| History::from_messages(messages.iter().cloned()).unwrap();
    let begin = |messages: &[Message]| Run::of_history(RunId::random(), RunOptions::default(), history(messages));
    let told = |request: &agent_loop::Request| match request.messages.len() {
        3 => Ok(()),
        other => Err(format!("{other} messages")),
    };
    let model = ScriptedModel::new([ScriptedReply::text("A lamp.").expecting(told)]);
    let agent = Agent::new(model, Vec::<Tool>::new()).unwrap();
    let mut run = begin(&[question(), asked.clone(), results]).unwrap();
    let pause = agent.drive(&mut run, &mut (), &CancellationToken::new()).await.unwrap();
    assert!(matches!(pause, Pause::Done(outcome) if outcome.text == "A lamp."));
    // There has to be something to reply to.
    for messages in [&[][..], &[question(), asked], &[question(), Message::assistant("Yes.")]] {
        assert_eq!(begin(messages).unwrap_err().kind(), ErrorKind::History);
    }
}

#[tokio::test(start_paused = true)]
async fn what_needs_a_person_does_not_run_where_there_is_none() {
    let log = Arc::new(Mutex::new(Vec::new()));
    let told = |request: &agent_loop::Request| match request.messages.last().map(|message| &**message) {
        Some(agent_loop::Message::Results { results })
            if results[0].status == Status::Denied && results[0].text().contains("no one is there") =>
        {
            Ok(())
        }
        other => Err(format!("{other:?}")),
    };
    let model = ScriptedModel::new([
        ScriptedReply::calls([("put", json!({})), ("look", json!({}))]),
        ScriptedReply::text("I may not.").expecting(told),
    ]);
    let agent = Agent::new(model, live(&log)).unwrap();
    assert_eq!(agent.ask("go").await.unwrap().text, "I may not.");
    assert_eq!(*log.lock().unwrap(), ["look begins", "look ends"]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_read_from_a_run_that_is_done() {
    let model = ScriptedModel::new([ScriptedReply::text("7"), ScriptedReply::text("seven")]);
    let agent = Agent::new(model, Vec::<Tool>::new()).unwrap();
    let mut run = Run::new(RunId::random(), RunOptions::default().answer(Some(AnswerShape::of::<u32>())), "How many?");
    assert!(run.answer::<u32>().unwrap_err().to_string().contains("under way"));
    agent.drive(&mut run, &mut (), &Default::default()).await.unwrap();
    assert_eq!(run.answer::<u32>().unwrap(), 7);
    let unshaped = agent.ask("How many?").await.unwrap().answer::<u32>().unwrap_err();
    assert_eq!(unshaped.kind(), ErrorKind::State);
    assert!(unshaped.to_string().contains("RunOptions::answer"), "{unshaped}");
}

/// Waits.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Wait {}

#[tokio::test(start_paused = true)]
async fn a_typed_tool_knows_its_calls_id_and_when_to_stop() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let wait = Tool::write_with("wait", move |_: Wait, context: ToolContext| {
        let log = Arc::clone(&log);
        async move {
            context.cancel.cancelled().await;
            log.lock().unwrap().push(context.call.0);
            Ok("stopped early")
        }
    });
    let model = ScriptedModel::new([ScriptedReply::calls([("wait", json!({}))])]);
    let agent = Agent::new(model, vec![wait]).unwrap().limits(Limits::default());
    let (mut run, cancel) = (Run::new(RunId::random(), RunOptions::default(), "go"), CancellationToken::new());
    let Pause::Waiting(asked) = agent.drive(&mut run, &mut (), &cancel).await.unwrap() else { panic!() };
    run.decide(agent.context(), [asked[0].decide(Decision::Allow)]).unwrap();
    let mut stop_at_start = |event| {
        if let agent_loop::Event::ToolStarted { .. } = event {
            cancel.cancel();
        }
    };
    agent.drive(&mut run, &mut stop_at_start, &cancel).await.unwrap();
    assert_eq!(*seen.lock().unwrap(), [asked[0].call.id.0.clone()]);
    assert_eq!(run.results().next().unwrap().text(), "stopped early");
}

#[test]
fn a_request_can_be_written_as_json() {
    let request = agent_loop::Request::default()
        .system(Some("Be brief.".into()))
        .messages([agent_loop::Message::user("hi")].into_iter().collect())
        .tools(crate::test_tools::specs().into());
    let written = serde_json::to_value(&request).unwrap();
    assert_eq!(written["messages"], json!([{"role": "user", "text": "hi"}]));
    assert_eq!((&written["tools"][0]["name"], &written["tool_choice"]), (&json!("look"), &json!("auto")));
}

#[tokio::test(start_paused = true)]
async fn tools_share_a_state_that_their_functions_name() {
    let (notes, prefix) = (Arc::new(Mutex::new(Vec::<String>::new())), "note: ".to_owned());
    let add = tool! {
        /// Adds a note.
        write(notes, prefix) async fn add(text: String, times: Option<usize>) -> Result<String, ToolError> {
            if text.is_empty() {
                return Err("there is no text".into());
            }
            tokio::task::yield_now().await;
            let times = u8::try_from(times.unwrap_or(1))?;
            (0..times).for_each(|_| notes.lock().unwrap().push(prefix.clone() + &text));
            Ok(text)
        }
    };
    let count = tool! {
        /// Counts the notes.
        read(notes) async fn count() -> Result<Json<usize>, ToolError> { Ok(Json(notes.lock().unwrap().len())) }
    };
    let model = ScriptedModel::new([
        ScriptedReply::calls([
            ("add", json!({"text": "a"})),
            ("add", json!({"text": ""})),
            ("add", json!({"text": "b", "times": 2})),
            ("add", json!({"text": "c", "times": 999})),
            ("count", json!({})),
        ]),
        ScriptedReply::text("Done."),
    ]);
    let agent = Agent::new(model, vec![add, count]).unwrap().policy(agent_loop::AllowAll);
    let mut run = Run::new(RunId::random(), RunOptions::default(), "go");
    agent.drive(&mut run, &mut (), &Default::default()).await.unwrap();
    let texts: Vec<String> = run.results().map(ToolResult::text).collect();
    assert_eq!(texts, ["a", "there is no text", "b", "out of range integral type conversion attempted", "3"]);
    assert_eq!(*notes.lock().unwrap(), [format!("{prefix}a"), format!("{prefix}b"), format!("{prefix}b")]);
}

#[test]
fn a_request_can_be_written_as_openai_does() {
    let call = ToolCall::new("c1", "notes.read", json!({"at": "a"}));
    let parts = vec![Part::Reasoning { text: "hm".into(), opaque: None }, Part::Call(call.clone())];
    let messages = [
        Message::user("hi"),
        Message::Assistant { parts },
        Message::Results { results: vec![ToolResult::new(&call, Status::Ok, "a lamp")] },
    ];
    let spec = ToolSpec { name: "notes.read".into(), ..crate::test_tools::specs().remove(0) };
    let request = agent_loop::Request::default()
        .system(Some("Be brief.".into()))
        .messages(messages.into_iter().collect())
        .tools([spec.clone()].into());
    let function = json!({"name": "notes.read", "arguments": "{\"at\":\"a\"}"});
    let expected = json!([
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": "c1", "content": "a lamp"},
    ]);
    assert_eq!(json!(request.to_openai_messages()), expected);
    let function = json!({"name": "notes.read", "description": spec.description, "parameters": spec.parameters});
    assert_eq!(json!(request.to_openai_tools()), json!([{"type": "function", "function": function}]));
}

/// Compiles only while no `Result` comes with the glob: of two globs with the same name, neither could be used.
mod a_glob_import {
    mod own {
        pub type Result<T> = std::result::Result<T, String>;
    }

    use agent_loop::*;
    use own::*;

    #[test]
    fn leaves_result_alone() {
        let id: Result<RunId> = Ok(RunId::random());
        assert!(id.is_ok());
    }
}
