//! The guarantees of the loop for a run, with any model: each case runs over a scripted model and, in `local`, over a
//! model in this process with random weights.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent_loop::{
    Agent, AllowAll, AnswerShape, AtLimit, Budget, CallPermission, CallPolicy, Decision, Delta, DropThenSummarize,
    Durability, Effect, Event, Limit, Limits, Message, Model, Pause, Question, Review, Run, RunOptions, ScriptedModel,
    ScriptedReply, Status, StopReason, Tool, ToolCall, ToolError, ToolOutput, ToolSpec, Transcript,
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::test_tools::{decide, done, drive, results, run, run_with};

/// What a model does in its next reply.
#[derive(Debug, Clone, Copy)]
pub enum Step {
    /// Calls a tool this often, with arguments of its own choice.
    Call(&'static str, usize),
    /// Answers in text.
    Answer,
    /// Answers with a [`Found`].
    Found,
    /// Writes text that does not end.
    Endless,
}

use Step::{Answer, Call, Endless};

/// An answer with a shape.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Found {
    #[allow(dead_code)]
    found: bool,
}

/// Makes a model that takes these steps.
pub trait Make: AsyncFn(&[Step]) -> Arc<dyn Model> {}

impl<F: AsyncFn(&[Step]) -> Arc<dyn Model>> Make for F {}

async fn scripted(steps: &[Step]) -> Arc<dyn Model> {
    Arc::new(ScriptedModel::new(steps.iter().map(|step| match *step {
        Call(name, count) => ScriptedReply::calls(vec![(name, json!({})); count]),
        Answer => ScriptedReply::text("Well."),
        Step::Found => ScriptedReply::text("{\"found\": true}"),
        Endless => ScriptedReply::deltas([Delta::Text { text: "half".into() }]).then_silence(),
    })))
}

/// A test for each case, over the models that `$make` makes.
macro_rules! loop_contract {
    ($make:expr, $test:meta) => {
        loop_contract! { @ $make, $test:
            an_allowed_call_runs
            a_denied_call_does_not_run_and_the_model_is_told_why
            a_call_runs_as_a_person_has_edited_it
            what_a_person_withholds_of_a_result_stays_here
            what_is_granted_for_the_session_is_not_asked_again
            calls_of_one_reply_run_side_by_side_or_are_asked_about_together
            a_tool_that_fails_or_takes_too_long_is_a_result
            cancelling_ends_a_reply_and_the_conversation_goes_on
            cancelling_ends_a_tool
            every_limit_ends_a_run
            time_ends_a_reply
            identical_calls_end_a_run
            a_long_conversation_is_made_shorter
            a_transcript_that_is_cut_anywhere_goes_on
            an_answer_has_its_shape
            a_person_asks_again
        }
    };
    (@ $make:expr, $test:meta: $($case:ident)*) => {
        $(#[$test]
        async fn $case() {
            $crate::loop_contract::$case($make).await;
        })*
    };
}
pub(crate) use loop_contract;

mod over_a_script {
    super::loop_contract!(super::scripted, tokio::test(start_paused = true));
}

/// The calls that have begun.
type Log = Arc<Mutex<Vec<ToolCall>>>;

fn begun(log: &Log) -> Vec<ToolCall> {
    log.lock().unwrap().clone()
}

/// `look` and `now` read, `put` writes.
fn spec(name: &str) -> ToolSpec {
    let text = json!({"at": {"type": "string", "maxLength": 4}});
    let properties = if name == "now" { json!({}) } else { text };
    ToolSpec {
        name: name.into(),
        description: format!("The tool {name}."),
        parameters: json!({"type": "object", "properties": properties, "additionalProperties": false}),
        effect: if name == "put" { Effect::Write } else { Effect::Read },
        time_limit: None,
    }
}

/// A tool that gives this.
fn tool(name: &str, log: &Log, output: Result<ToolOutput, ToolError>) -> Tool {
    let log = Arc::clone(log);
    Tool::dynamic(spec(name), move |call, _| {
        log.lock().unwrap().push(call);
        std::future::ready(output.clone())
    })
}

fn agent(model: Arc<dyn Model>, log: &Log) -> Agent {
    let tools = ["look", "put", "now"].map(|name| tool(name, log, Ok(ToolOutput::text(format!("{name} is done")))));
    Agent::new(model, Vec::from(tools)).unwrap()
}

fn asked(pause: Pause) -> Vec<Question> {
    match pause {
        Pause::Waiting(questions) => questions,
        Pause::Done(outcome) => panic!("{outcome:?}"),
    }
}

/// Drives a run to its answer.
async fn answered(agent: &Agent, run: &mut Run) -> Vec<Event> {
    let (pause, events) = drive(agent, run).await;
    let outcome = done(pause);
    assert_eq!(outcome.stop, StopReason::Answered);
    assert!(!outcome.text.is_empty());
    run.history().messages().check().unwrap();
    events
}

/// The call and its result, as the history has them.
fn called(run: &Run) -> Vec<(ToolCall, Status, String)> {
    let calls = run.history().messages().iter().flat_map(|message| message.calls()).cloned();
    calls.zip(results(run)).map(|(call, (_, status, text))| (call, status, text)).collect()
}

pub async fn an_allowed_call_runs(make: impl Make) {
    let log = Log::default();
    let agent = agent(make(&[Call("put", 1), Answer]).await, &log);
    let mut run = run();
    let asked = asked(drive(&agent, &mut run).await.0);
    assert_eq!((asked.len(), begun(&log)), (1, vec![]));
    // What waits may wait in a file.
    let (mut run, _) = Run::from_json(&run.to_json()).unwrap();
    decide(&mut run, agent.context(), &asked[0], Decision::Allow);
    answered(&agent, &mut run).await;
    assert_eq!(begun(&log), [asked[0].call.clone()], "what was shown is what runs");
    assert_eq!(called(&run), [(asked[0].call.clone(), Status::Ok, "put is done".into())]);
}

pub async fn a_denied_call_does_not_run_and_the_model_is_told_why(make: impl Make) {
    let log = Log::default();
    let agent = agent(make(&[Call("put", 1), Call("look", 1), Answer]).await, &log);
    let mut run = run();
    let asked = asked(drive(&agent, &mut run).await.0);
    decide(&mut run, agent.context(), &asked[0], Decision::Deny { reason: Some("look instead".into()) });
    answered(&agent, &mut run).await;
    let called = called(&run);
    assert_eq!((called[0].1, called[0].2.as_str()), (Status::Denied, "Tool call denied: look instead"));
    assert_eq!(begun(&log), [called[1].0.clone()], "the model goes on after a no");
}

pub async fn a_call_runs_as_a_person_has_edited_it(make: impl Make) {
    let log = Log::default();
    let agent = agent(make(&[Call("put", 1), Answer]).await, &log);
    let mut run = run();
    let asked = asked(drive(&agent, &mut run).await.0);
    let wrong = asked[0].decide(Decision::AllowEdited { arguments: json!({"at": "too long"}) });
    assert!(run.decide(agent.context(), [wrong]).is_err(), "they are checked as the model's are");
    decide(&mut run, agent.context(), &asked[0], Decision::AllowEdited { arguments: json!({"at": "mine"}) });
    answered(&agent, &mut run).await;
    assert_eq!(begun(&log)[0].arguments, json!({"at": "mine"}));
    let (call, status, told) = called(&run).remove(0);
    assert_eq!((&call, status), (&asked[0].call, Status::Ok), "the history holds what the model said");
    assert!(told.contains("changed the arguments to {\"at\":\"mine\"}"), "{told}");
}

/// Shows a person what tools give.
struct ReviewPolicy;

impl CallPolicy for ReviewPolicy {
    fn permission(&self, _: &ToolCall, _: &ToolSpec) -> CallPermission {
        CallPermission::Allow
    }

    fn review(&self, _: &ToolCall, _: &ToolSpec) -> Review {
        Review::Ask
    }
}

pub async fn what_a_person_withholds_of_a_result_stays_here(make: impl Make) {
    let look = tool("look", &Log::default(), Ok(ToolOutput::items(["public", "private", "open"])));
    let agent = Agent::new(make(&[Call("look", 1), Answer]).await, vec![look]).unwrap().policy(ReviewPolicy);
    let mut run = run();
    let asked = asked(drive(&agent, &mut run).await.0);
    decide(&mut run, agent.context(), &asked[0], Decision::Share { withheld: vec![1] });
    answered(&agent, &mut run).await;
    assert_eq!(called(&run)[0].2, "public\nopen");
    assert!(!run.to_json().contains("private"));
}

pub async fn what_is_granted_for_the_session_is_not_asked_again(make: impl Make) {
    let log = Log::default();
    let agent = agent(make(&[Call("put", 1), Call("put", 1), Answer, Call("put", 1), Answer]).await, &log);
    let mut run = run();
    let asked = asked(drive(&agent, &mut run).await.0);
    decide(&mut run, agent.context(), &asked[0], Decision::AllowForSession);
    answered(&agent, &mut run).await;
    run.say("and once more").unwrap();
    answered(&agent, &mut run).await;
    assert_eq!((begun(&log).len(), run.grants().count()), (3, 1));
}

pub async fn calls_of_one_reply_run_side_by_side_or_are_asked_about_together(make: impl Make) {
    let meeting = Arc::new(tokio::sync::Barrier::new(2));
    let look = Tool::dynamic(spec("look"), move |call: ToolCall, _| {
        let meeting = Arc::clone(&meeting);
        async move {
            meeting.wait().await;
            Ok(ToolOutput::text(call.id.0))
        }
    });
    let log = Log::default();
    let put = tool("put", &log, Ok(ToolOutput::text("put is done")));
    let agent = Agent::new(make(&[Call("look", 2), Call("put", 2), Answer]).await, vec![look, put]).unwrap();
    let mut run = run();
    let asked = asked(drive(&agent, &mut run).await.0);
    let read = called(&run);
    assert_eq!(read.len(), 2);
    assert!(read.iter().all(|(call, _, result)| call.id.0 == *result), "each has its own result: {read:?}");

    assert_eq!(asked.len(), 2);
    decide(&mut run, agent.context(), &asked[1], Decision::Deny { reason: None });
    decide(&mut run, agent.context(), &asked[0], Decision::Allow);
    answered(&agent, &mut run).await;
    assert_eq!(called(&run)[2..].iter().map(|call| call.1).collect::<Vec<_>>(), [Status::Ok, Status::Denied]);
    assert_eq!(begun(&log), [asked[0].call.clone()]);
}

pub async fn a_tool_that_fails_or_takes_too_long_is_a_result(make: impl Make) {
    let look = tool("look", &Log::default(), Err(ToolError::new("There is no such note.")));
    let put = Tool::dynamic(spec("put"), |_, _| std::future::pending()).time_limit(Duration::from_millis(20));
    let model = make(&[Call("look", 1), Call("put", 1), Answer]).await;
    let agent = Agent::new(model, vec![look, put]).unwrap().policy(AllowAll);
    let mut run = run();
    answered(&agent, &mut run).await;
    let told: Vec<_> = called(&run).into_iter().map(|(_, status, text)| (status, text)).collect();
    assert_eq!(told[0], (Status::Error, "There is no such note.".into()));
    assert!(told[1].0 == Status::Error && told[1].1.contains("Timed out after 20ms"), "{told:?}");
    assert!(told[1].1.contains("may or may not have taken effect"), "{told:?}");
}

pub async fn cancelling_ends_a_reply_and_the_conversation_goes_on(make: impl Make) {
    let agent = agent(make(&[Endless, Answer]).await, &Log::default());
    let (mut run, cancel) = (run(), CancellationToken::new());
    let mut at_the_first_text = |event| {
        if let Event::Text(_) = event {
            cancel.cancel();
        }
    };
    let outcome = done(agent.drive(&mut run, &mut at_the_first_text, &cancel).await.unwrap());
    assert_eq!(outcome.stop, StopReason::Cancelled);
    assert!(!outcome.text.is_empty(), "what was shown is kept");
    run.say("shorter, please").unwrap();
    answered(&agent, &mut run).await;
}

pub async fn cancelling_ends_a_tool(make: impl Make) {
    let cancel = CancellationToken::new();
    let at_once = cancel.clone();
    let look = Tool::dynamic(spec("look"), move |_, _| {
        at_once.cancel();
        std::future::pending()
    });
    let model = make(&[Call("look", 1), Answer]).await;
    let agent = Agent::new(model, vec![look]).unwrap().limits(Limits::default().cancel(Duration::from_millis(10)));
    let mut run = run();
    let outcome = done(agent.drive(&mut run, &mut (), &cancel).await.unwrap());
    assert_eq!((outcome.stop, called(&run)[0].1), (StopReason::Cancelled, Status::Cancelled));
    run.say("never mind").unwrap();
    answered(&agent, &mut run).await;
}

async fn limited(model: Arc<dyn Model>, budget: Budget) -> (Run, agent_loop::RunOutcome) {
    let agent = agent(model, &Log::default());
    let mut run = run_with(RunOptions::default().budget(budget));
    let outcome = done(drive(&agent, &mut run).await.0);
    run.history().messages().check().unwrap();
    (run, outcome)
}

pub async fn every_limit_ends_a_run(make: impl Make) {
    let none = Budget::default().turns(None).calls(None).tokens(None).repeats(None);
    for (budget, limit, turns) in [
        (none.clone().turns(Some(2)), Limit::Turns, 2),
        (none.clone().calls(Some(1)), Limit::Calls, 2),
        (none.clone().tokens(Some(1)), Limit::Tokens, 1),
    ] {
        let steps = vec![Call("look", 1); turns];
        let (run, outcome) = limited(make(&steps).await, budget).await;
        assert_eq!((outcome.stop, outcome.spent.turns), (StopReason::Limit { limit }, turns as u32));
        let ran = run.results().filter(|result| result.status == Status::Ok).count();
        assert_eq!(ran, if limit == Limit::Calls { 1 } else { turns }, "{limit:?}");
    }
    let budget = none.turns(Some(1)).at_limit(AtLimit::SumUp);
    let (_, outcome) = limited(make(&[Call("look", 1), Answer]).await, budget).await;
    assert_eq!(outcome.stop, StopReason::Limit { limit: Limit::Turns });
    assert!(!outcome.text.is_empty(), "the last turn sums up");
}

pub async fn time_ends_a_reply(make: impl Make) {
    let limit = Duration::from_millis(50);
    let (_, outcome) = limited(make(&[Endless]).await, Budget::default().time(Some(limit))).await;
    assert_eq!(outcome.stop, StopReason::Limit { limit: Limit::Time });
    assert!(outcome.spent.time >= limit);
}

pub async fn identical_calls_end_a_run(make: impl Make) {
    let (run, outcome) = limited(make(&[Call("now", 1); 3]).await, Budget::default().repeats(Some(3))).await;
    assert_eq!(outcome.stop, StopReason::Limit { limit: Limit::Repeats });
    assert_eq!(called(&run).len(), 3);
}

pub async fn a_long_conversation_is_made_shorter(make: impl Make) {
    let log = Log::default();
    let counted = Arc::clone(&log);
    let look = Tool::dynamic(spec("look"), move |call, _| {
        let mut calls = counted.lock().unwrap();
        calls.push(call);
        std::future::ready(Ok(ToolOutput::text(format!("{} {}", calls.len(), "x".repeat(2_000)))))
    });
    let mut steps = vec![Call("look", 1); 6];
    steps.push(Answer);
    let compaction = DropThenSummarize::default().keep_messages(2).enough(95);
    let agent = Agent::new(make(&steps).await, vec![look]).unwrap().compaction(compaction);
    let mut run = run_with(RunOptions::default().compact_above(Some(2_800)));
    let events = answered(&agent, &mut run).await;
    assert!(events.iter().any(|event| matches!(event, Event::Compacted { before, after } if after < before)));
    let called = called(&run);
    assert_eq!(called.iter().map(|(call, ..)| call.clone()).collect::<Vec<_>>(), begun(&log), "all calls are there");
    assert!(called[0].2.contains("dropped") && called[5].2.starts_with("6 x"), "{called:?}");
}

pub async fn a_transcript_that_is_cut_anywhere_goes_on(make: impl Make) {
    let folder = tempfile::tempdir().unwrap();
    let (whole, cut) = (folder.path().join("whole.jsonl"), folder.path().join("cut.jsonl"));
    let first = agent(make(&[Call("put", 1), Call("look", 1), Answer]).await, &Log::default());
    let mut run = run();
    let mut transcript = Transcript::create(&whole, &run, Durability::Process).unwrap();
    let questions = asked(first.drive(&mut run, &mut transcript, &Default::default()).await.unwrap());
    decide(&mut run, first.context(), &questions[0], Decision::Allow);
    done(first.drive(&mut run, &mut transcript, &Default::default()).await.unwrap());
    let bytes = std::fs::read(&whole).unwrap();
    let first_line = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let mut resumed = 0;
    for end in first_line..=bytes.len() {
        std::fs::write(&cut, &bytes[..end]).unwrap();
        let (mut transcript, mut run, _) = Transcript::open(&cut, Durability::Process).unwrap();
        // Of a line that is cut nothing is left: the run stands where the line before it has put it.
        if bytes[end - 1] != b'\n' || run.is_done() {
            continue;
        }
        resumed += 1;
        let agent = agent(make(&[Answer]).await, &Log::default());
        let outcome = loop {
            match agent.drive(&mut run, &mut transcript, &Default::default()).await.unwrap() {
                Pause::Waiting(questions) => decide(&mut run, agent.context(), &questions[0], Decision::Allow),
                Pause::Done(outcome) => break outcome,
            }
        };
        assert_eq!(outcome.stop, StopReason::Answered, "cut behind {end} bytes");
        let (again, repairs) = Transcript::load(&cut).unwrap();
        assert!(repairs.is_empty(), "{repairs:?}");
        assert_eq!(again.history().messages(), run.history().messages());
        run.history().messages().check().unwrap();
    }
    assert!(resumed > 5, "{resumed}");
}

pub async fn an_answer_has_its_shape(make: impl Make) {
    let agent = agent(make(&[Call("look", 1), Step::Found]).await, &Log::default());
    let mut run = run_with(RunOptions::default().answer(Some(AnswerShape::of::<Found>())));
    answered(&agent, &mut run).await;
    run.answer::<Found>().unwrap();
    assert_eq!(called(&run).len(), 1);
}

pub async fn a_person_asks_again(make: impl Make) {
    let agent = agent(make(&[Answer, Call("look", 1), Answer]).await, &Log::default());
    let mut run = run();
    answered(&agent, &mut run).await;
    run.say("and where?").unwrap();
    answered(&agent, &mut run).await;
    let said = run.history().messages().iter().filter(|message| matches!(***message, Message::User { .. }));
    assert_eq!((said.count(), run.spent().turns), (2, 2), "the budget begins anew");
}
