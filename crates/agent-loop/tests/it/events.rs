//! Events: the information about a call that a user interface gets, from its first byte to its result.

use std::collections::BTreeMap;
use std::time::Duration;

use agent_loop::{
    Agent, Budget, Decision, Delta, EndReason, Event, Pause, Run, RunOptions, ScriptedModel, ScriptedReply, Status,
    Tool, ToolCall, ToolSpec,
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::test_tools::*;

/// Index, id and status of each call that ended, in the order of their events.
fn ended(events: &[Event]) -> Vec<(usize, String, Status)> {
    let end = |event: &Event| match event {
        Event::ToolFinished { index, result } => Some((*index, result.call.0.clone(), result.status)),
        _ => None,
    };
    events.iter().filter_map(end).collect()
}

async fn drive(agent: &Agent, run: &mut Run, events: &mut Vec<Event>) -> Pause {
    agent.drive(run, &mut |event| events.push(event), &CancellationToken::new()).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn every_call_that_ends_has_one_event_whatever_became_of_it() {
    let script = [
        ("look", json!({"at": "a"})),
        ("look", json!({"at": [7]})),
        ("gone", json!({})),
        ("put", json!({})),
        ("delete", json!({})),
        ("list", json!({})),
    ];
    let filtered = [
        Delta::CallStart { index: 0, id: "late".into(), name: "look".into() },
        Delta::CallEnd { index: 0, opaque: None },
        Delta::End(EndReason::Filtered),
    ];
    let model = ScriptedModel::new([ScriptedReply::calls(script), ScriptedReply::deltas(filtered)]);
    let policy = |call: &ToolCall, spec: &ToolSpec| match call.name.as_str() {
        "delete" => agent_loop::CallPermission::Deny { reason: "never".into() },
        _ => agent_loop::CallPolicy::permission(&agent_loop::AskBeforeWriting, call, spec),
    };
    let agent = Agent::new(model, live(&Default::default())).unwrap().policy(policy);
    let mut run = run_with(RunOptions::default().budget(Budget::default().calls(Some(5)).turns(None)));
    let mut events = Vec::new();
    let Pause::Waiting(asked) = drive(&agent, &mut run, &mut events).await else { panic!() };
    let seen = ended(&events);
    assert_eq!(seen.len(), 5, "{seen:?}");
    decide(&mut run, agent.context(), &asked[0], Decision::Deny { reason: None });
    // Another process goes on with it.
    let (mut run, _) = Run::from_json(&run.to_json()).unwrap();
    let Pause::Done(_) = drive(&agent, &mut run, &mut events).await else { panic!() };
    let all = ended(&events);
    assert_eq!(all.len(), 6, "the limit on calls has ended the run: {all:?}");
    let results: Vec<(String, Status)> = run.results().map(|result| (result.call.0.clone(), result.status)).collect();
    let mut told: Vec<_> = all.clone();
    told.sort_by_key(|(index, ..)| *index);
    assert_eq!(told.into_iter().map(|(_, id, status)| (id, status)).collect::<Vec<_>>(), results);
    assert_eq!(
        results.iter().map(|(_, status)| *status).collect::<Vec<_>>(),
        [Status::Ok, Status::Error, Status::Error, Status::Denied, Status::Denied, Status::Cancelled]
    );
    // Calls of a reply that was stopped never become open.
    run.say("and now?").unwrap();
    events.clear();
    drive(&agent, &mut run, &mut events).await;
    assert_eq!(ended(&events).len(), 1, "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn cancelled_calls_have_their_event_too() {
    let deaf = |name: &str| {
        let spec = specs().into_iter().find(|spec| spec.name == name).unwrap();
        Tool::dynamic(spec, |_, _| std::future::pending())
    };
    let model = ScriptedModel::new([ScriptedReply::calls([("look", json!({})), ("put", json!({}))])]);
    let agent = Agent::new(model, vec![deaf("look"), deaf("put")]).unwrap();
    let (mut run, cancel, mut events) = (run(), CancellationToken::new(), Vec::new());
    let mut observer = |event: Event| {
        if let Event::ToolStarted { .. } = event {
            cancel.cancel();
        }
        events.push(event);
    };
    agent.drive(&mut run, &mut observer, &cancel).await.unwrap();
    let statuses: Vec<Status> = ended(&events).into_iter().map(|(_, _, status)| status).collect();
    assert_eq!(statuses, [Status::Cancelled, Status::Cancelled]);
}

#[tokio::test(start_paused = true)]
async fn all_events_of_a_call_have_its_index() {
    // As providers number them: with gaps, and the text or thoughts counted too.
    let call = |index, id: &str, name: &str| {
        let (id, name) = (id.into(), name.into());
        [Delta::CallStart { index, id, name }, Delta::CallArguments { index, text: "{}".into() }]
    };
    let mut deltas = [call(7, "x", "look"), call(3, "", "list")].concat();
    deltas.extend([3, 7].map(|index| Delta::CallEnd { index, opaque: None }));
    deltas.push(Delta::CallFault { index: 9, fault: "broken".into(), raw: "{".into() });
    deltas.push(Delta::End(EndReason::Complete));
    let model = ScriptedModel::new([ScriptedReply::deltas(deltas), ScriptedReply::text("done")]);
    let agent = Agent::new(model, live(&Default::default())).unwrap();
    let mut events = Vec::new();
    drive(&agent, &mut run(), &mut events).await;
    let mut by_index: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for event in &events {
        let (index, what) = match event {
            Event::CallStarted { index, id, name } => (index, format!("begins {name} {id}")),
            Event::CallArguments { index, .. } => (index, "arguments".into()),
            Event::CallFault { index, .. } => (index, "fault".into()),
            Event::ToolStarted { index, call } => (index, format!("runs {}", call.name)),
            Event::ToolFinished { index, result } => (index, format!("ends {}", result.name)),
            _ => continue,
        };
        by_index.entry(*index).or_default().push(what);
    }
    let expected = [
        (0, vec!["begins look x", "arguments", "runs look", "ends look"]),
        (1, vec!["begins list ", "arguments", "runs list", "ends list"]),
        (2, vec!["fault", "ends unreadable_call"]),
    ];
    let found: Vec<(usize, Vec<&str>)> =
        by_index.iter().map(|(index, what)| (*index, what.iter().map(String::as_str).collect())).collect();
    assert_eq!(found, expected);
}

#[tokio::test(start_paused = true)]
async fn a_duration_is_the_calls_own_and_a_start_is_told_when_it_starts() {
    let slow = |name: &str| {
        let spec = specs().into_iter().find(|spec| spec.name == name).unwrap();
        Tool::dynamic(spec, |_, _| async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            Ok(agent_loop::ToolOutput::text("seen"))
        })
    };
    let script = (0..10).map(|number| ("look", json!({"at": number.to_string()})));
    let model = ScriptedModel::new([ScriptedReply::calls(script), ScriptedReply::text("done")]);
    let agent = Agent::new(model, vec![slow("look")]).unwrap();
    let (mut run, mut events) = (run(), Vec::new());
    drive(&agent, &mut run, &mut events).await;
    let is_end = |event: &Event| matches!(event, Event::ToolFinished { .. });
    let first_end = events.iter().position(is_end).unwrap();
    let started = |events: &[Event]| events.iter().filter(|event| matches!(event, Event::ToolStarted { .. })).count();
    assert_eq!((started(&events[..first_end]), started(&events)), (8, 10));
    assert_eq!(events.iter().filter(|event| is_end(event)).count(), 10);
    let durations: Vec<_> = run.results().map(|result| result.duration.unwrap().as_millis()).collect();
    assert_eq!(durations, [100; 10]);
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_was_cancelled_is_counted() {
    let half = || Delta::Text { text: "half of it".into() };
    for (steps, tokens) in [
        (ScriptedReply::deltas([half()]).then_silence(), 3),
        (
            ScriptedReply::deltas([half(), Delta::Usage(agent_loop::Usage::default().input(40).output(2))])
                .then_silence(),
            42,
        ),
        (ScriptedReply::silence(), 0),
    ] {
        let agent = Agent::new(ScriptedModel::new([steps]), live(&Default::default())).unwrap();
        let (mut run, cancel) = (run(), CancellationToken::new());
        let (canceller, mut nobody) = (cancel.clone(), ());
        let (pause, ()) = tokio::join!(agent.drive(&mut run, &mut nobody, &cancel), async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            canceller.cancel();
        });
        let Pause::Done(outcome) = pause.unwrap() else { panic!() };
        assert_eq!((outcome.spent.turns, outcome.spent.tokens), (u32::from(tokens > 0), tokens));
    }
}
