//! A run as a stream: it has the same events as an observer, and dropping it leaves a valid run.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent_loop::{
    Agent, Decision, Delta, Durability, Error, ErrorKind, Event, EventStream, Observer, Pause, Run, ScriptedModel,
    ScriptedReply, Status, StopReason, Transcript,
};
use futures_util::{StreamExt, TryStreamExt};
use serde_json::json;

use crate::test_tools::*;

fn agent() -> Agent {
    let model = ScriptedModel::new([
        ScriptedReply::calls([("look", json!({"at": "a"}))]).usage(10, 5),
        ScriptedReply::calls([("put", json!({}))]),
        ScriptedReply::text("done"),
    ]);
    Agent::new(model, live(&Arc::default())).unwrap()
}

/// Events without durations, which differ.
fn comparable(events: Vec<Event>) -> Vec<Event> {
    let without_duration = |event| match event {
        Event::ToolFinished { index, mut result } => {
            result.duration = None;
            Event::ToolFinished { index, result }
        }
        Event::Done(mut outcome) => {
            outcome.spent.time = Default::default();
            Event::Done(outcome)
        }
        other => other,
    };
    events.into_iter().map(without_duration).collect()
}

#[tokio::test(start_paused = true)]
async fn it_has_the_events_of_an_observer_and_ends_at_a_pause_and_at_the_end() {
    let (observed, streamed) = (agent(), agent());
    let (mut one, mut other) = (run(), run());
    for has_question in [true, false] {
        let (pause, expected) = drive(&observed, &mut one).await;
        let events: Vec<Event> = streamed.stream(&mut other, ()).try_collect().await.unwrap();
        assert_eq!(comparable(events.clone()), comparable(expected));
        match (pause, events.last()) {
            (Pause::Waiting(asked), Some(Event::ApprovalNeeded(question))) if has_question => {
                assert_eq!(&asked[0], question);
                decide(&mut one, observed.context(), question, Decision::Allow);
                let open = other.questions(streamed.context());
                decide(&mut other, streamed.context(), &open[0], Decision::Allow);
            }
            (Pause::Done(_), Some(Event::Done(outcome))) if !has_question => assert_eq!(outcome.text, "done"),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn each_event_comes_when_it_happens() {
    let text = Delta::Text { text: "first".into() };
    let model = ScriptedModel::new([ScriptedReply::deltas([text]).then_silence()]);
    let agent = Agent::new(model, live(&Arc::default())).unwrap();
    let mut run = run();
    let mut events = agent.stream(&mut run, ());
    assert_eq!(events.next().await.unwrap().unwrap(), Event::Text("first".into()));
}

#[tokio::test(start_paused = true)]
async fn dropped_in_a_reply_or_a_tool_it_leaves_a_run_that_goes_on() {
    let text = Delta::Text { text: "half".into() };
    let model = ScriptedModel::new([
        ScriptedReply::deltas([text]).then_silence(),
        ScriptedReply::calls([("look", json!({})), ("put", json!({}))]),
        ScriptedReply::text("done"),
    ]);
    let log = Arc::new(Mutex::new(Vec::new()));
    let agent = Agent::new(model, live(&log)).unwrap().policy(agent_loop::AllowAll);
    let mut run = run();
    let mut events = agent.stream(&mut run, ());
    events.next().await.unwrap().unwrap();
    drop(events);
    assert_eq!(run.history().messages().len(), 1, "the reply that was cut is no part of the conversation");
    for stops_at in ["look", "put"] {
        let mut events = agent.stream(&mut run, ());
        while let Some(event) = events.try_next().await.unwrap() {
            if matches!(&event, Event::ToolStarted { call, .. } if call.name == stops_at) {
                let early = tokio::time::timeout(Duration::from_millis(5), events.next()).await;
                assert!(early.is_err(), "{stops_at} runs for twice as long");
                break;
            }
        }
    }
    let loaded = Run::from_json(&run.to_json());
    assert!(loaded.is_ok_and(|(_, repairs)| repairs.is_empty()));
    let events: Vec<Event> = agent.stream(&mut run, ()).try_collect().await.unwrap();
    assert!(matches!(events.last(), Some(Event::Done(outcome)) if outcome.text == "done"), "{events:?}");
    assert_eq!(*log.lock().unwrap(), ["look begins", "look begins", "look ends", "put begins"], "no write runs again");
    assert_eq!(results(&run)[1].1, Status::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_streamed_can_be_cancelled() {
    let model = ScriptedModel::new([ScriptedReply::deltas([Delta::Text { text: "half".into() }]).then_silence()]);
    let agent = Agent::new(model, live(&Arc::default())).unwrap();
    let mut run = run();
    agent.stream(&mut run, ()).next().await.unwrap().unwrap();
    run.cancel(Vec::new());
    let last = agent.stream(&mut run, ()).try_collect::<Vec<Event>>().await.unwrap().pop();
    assert!(matches!(last, Some(Event::Done(outcome)) if outcome.stop == StopReason::Cancelled));
}

/// Returns a stream that borrows nothing, as a handler of a web server has to.
async fn handler(agent: Arc<Agent>, run: Arc<tokio::sync::Mutex<Run>>) -> EventStream<'static> {
    agent.stream(run.lock_owned().await, ())
}

#[tokio::test(start_paused = true)]
async fn it_can_be_sent_to_another_task() {
    let model = ScriptedModel::new([ScriptedReply::calls([("look", json!({}))]), ScriptedReply::text("done")]);
    let agent = Arc::new(Agent::new(model, live(&Arc::default())).unwrap());
    let run = Arc::new(tokio::sync::Mutex::new(run()));
    let events = handler(agent, Arc::clone(&run)).await;
    let events: Vec<Event> = tokio::spawn(events.try_collect()).await.unwrap().unwrap();
    assert!(matches!(events.last(), Some(Event::Done(_))), "{events:?}");
    assert!(run.lock().await.is_done());
}

struct FullDisk;

impl Observer for FullDisk {
    fn save(&mut self, _: &Run) -> agent_loop::error::Result<()> {
        Err(Error::new(ErrorKind::Io, "the disk is full"))
    }
}

#[tokio::test(start_paused = true)]
async fn an_observer_saves_it_or_ends_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    let agent = Agent::new(ScriptedModel::new([ScriptedReply::text("done")]), live(&Arc::default())).unwrap();
    let mut saved = run();
    let mut transcript = Transcript::create(&path, &saved, Durability::Process).unwrap();
    let events: Vec<Event> = agent.stream(&mut saved, &mut transcript).try_collect().await.unwrap();
    assert_eq!(events.len(), 2, "{events:?}");
    drop(transcript);
    assert_eq!(
        Transcript::open(&path, Durability::Process).unwrap().1.history().messages(),
        saved.history().messages()
    );

    let agent = Agent::new(ScriptedModel::new([]), live(&Arc::default())).unwrap();
    let mut unsaved = run();
    let mut full = FullDisk;
    let mut events = agent.stream(&mut unsaved, &mut full as &mut dyn Observer);
    assert_eq!(events.next().await.unwrap().unwrap_err().kind(), ErrorKind::Io);
    assert!(events.next().await.is_none());
}
