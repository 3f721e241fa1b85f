//! States saved by this and earlier versions can be loaded. `AGENT_LOOP_WRITE_RUNS=1 cargo test -p agent-loop saved`
//! writes the states of the current version again; files of earlier versions are never changed.

use std::path::PathBuf;

use agent_loop::{
    AskBeforeWriting, CallPermission, CallPolicy, Decision, EndReason, Error, ErrorKind, Image, NextStep, Part, Reply,
    Review, Run, RunId, RunOptions, ToolCall, ToolChoice, ToolOutput, ToolSpec, Usage, UserMessage,
};
use serde_json::{Value, json};

use crate::settings::all_settings;
use crate::test_tools::*;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata/runs")
}

/// Asks before writing, and shows a person what `list` gives.
struct ReviewPolicy;

impl CallPolicy for ReviewPolicy {
    fn permission(&self, call: &ToolCall, spec: &ToolSpec) -> CallPermission {
        AskBeforeWriting.permission(call, spec)
    }

    fn review(&self, call: &ToolCall, _: &ToolSpec) -> Review {
        if call.name == "list" { Review::Ask } else { Review::Pass }
    }
}

/// A run in every kind of state, with what it needs next.
fn states() -> Vec<(&'static str, Run, &'static str)> {
    let tools = set();
    let context = run_context(&tools, &ReviewPolicy);
    let mut states = Vec::new();
    let options = RunOptions::default()
        .system(Some("Be brief.".into()))
        .answer(Some(agent_loop::AnswerShape::new(json!({"type": "object"})).corrections(1)))
        .compact_above(Some(1_000));
    let mut run = Run::new(RunId("run_a".into()), options, "Tidy up.");
    states.push(("ready", run.clone(), "call model"));
    let shown = UserMessage::from("What is this?").image(Image::new("image/png", [1, 2, 3]));
    let options = RunOptions::default().tool_choice(ToolChoice::Required).settings(all_settings());
    states.push(("settings", Run::new(RunId("run_b".into()), options, shown), "call model"));

    let mut failed = run.clone();
    failed.failed(&Error::new(ErrorKind::Unavailable, "overloaded").with_status(503)).unwrap();
    states.push(("failed", failed, "done"));
    let mut too_long = run.clone();
    too_long.failed(&Error::new(ErrorKind::ContextTooLong, "too long")).unwrap();
    states.push(("too-long", too_long, "compact"));
    let mut cancelled = run.clone();
    cancelled.cancel(vec![Part::text("half")]);
    states.push(("cancelled", cancelled, "done"));

    let mut faulty = ToolCall::new("c5", "look", json!("{\"at"));
    faulty.fault = Some("The arguments are no JSON.".into());
    let mut signed = ToolCall::new("c1", "look", json!({"at": "a"}));
    signed.opaque = Some(json!({"signature": "x"}));
    let reply = Reply {
        parts: vec![
            Part::Reasoning { text: "hm".into(), opaque: Some(json!("sig")) },
            Part::text("I look."),
            Part::Call(signed),
            Part::Call(ToolCall::new("c2", "list", json!({}))),
            Part::Call(ToolCall::new("c3", "put", json!({"at": "b"}))),
            Part::Call(ToolCall::new("c4", "put", json!({"at": "c"}))),
            Part::Call(faulty),
        ],
        end: EndReason::Complete,
        usage: Some(Usage::default().input(100).output(20).cached(5).reasoning(3)),
    };
    run.replied(reply).unwrap();
    states.push(("calls", run.clone(), "run tools"));
    run.next(context);
    states.push(("running", run.clone(), "run tools"));
    run.finished(context, &"c1".into(), Ok(ToolOutput::text("seen"))).unwrap();
    run.finished(context, &"c2".into(), Ok(ToolOutput::items(["x", "y"]))).unwrap();
    states.push(("asking", run.clone(), "ask"));
    let asked = questions(run.next(context));
    decide(&mut run, context, &asked[0], Decision::Share { withheld: vec![0] });
    decide(&mut run, context, &asked[1], Decision::AllowEdited { arguments: json!({"at": "d"}) });
    decide(&mut run, context, &asked[2], Decision::Deny { reason: Some("not now".into()) });
    states.push(("decided", run.clone(), "run tools"));
    run.next(context);
    states.push(("writing", run.clone(), "call model"));
    finish(&mut run, context, "c3", "written");
    request(run.next(context));
    states.push(("results", run.clone(), "call model"));
    let mut corrected = run.clone();
    corrected.replied(Reply::text("It is done.")).unwrap();
    states.push(("corrected", corrected, "call model"));
    run.replied(Reply::text("{\"done\": true}")).unwrap();
    states.push(("answered", run, "done"));
    states
}

fn need(run: &mut Run) -> &'static str {
    let tools = set();
    match run.next(run_context(&tools, &ReviewPolicy)) {
        NextStep::CallModel(request) => {
            request.messages.check().unwrap();
            "call model"
        }
        NextStep::Compact => "compact",
        NextStep::RunTools(_) => "run tools",
        NextStep::Wait => "wait",
        NextStep::Ask(_) => "ask",
        NextStep::Done(_) => "done",
    }
}

#[test]
fn saved_states_of_this_version_are_in_the_corpus() {
    let write = std::env::var_os("AGENT_LOOP_WRITE_RUNS").is_some();
    for (name, mut run, expected) in states() {
        let path = folder().join(format!("v{}-{name}.json", Run::VERSION));
        let state: Value = serde_json::from_str(&run.to_json()).unwrap();
        let file = json!({"next": expected, "run": state});
        if write {
            std::fs::write(&path, format!("{file:#}\n")).unwrap();
        }
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let saved: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(saved, file, "{name}: the format changed; see the first lines of this file and of run/saved.rs");
        // What runs elsewhere runs until the state is loaded.
        if !matches!(name, "running" | "writing") {
            assert_eq!(need(&mut run), expected, "{name}");
        }
    }
}

#[test]
fn saved_states_of_every_version_load() {
    let mut count = 0;
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let file: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let (mut run, repairs) = Run::from_json(&file["run"].to_string()).unwrap();
        assert!(repairs.is_empty(), "{}: {repairs:?}", path.display());
        assert_eq!(need(&mut run), file["next"], "{}", path.display());
        run.cancel(Vec::new());
        run.history().messages().check().unwrap();
        count += 1;
    }
    assert!(count >= 10, "only {count} states");
}

#[test]
fn invalid_saved_runs_are_rejected() {
    let mut state: Value = serde_json::from_str(&run().to_json()).unwrap();
    state["version"] = json!(Run::VERSION + 1);
    state["state"] = json!("of a later version");
    assert_eq!(Run::from_json(&state.to_string()).unwrap_err().kind(), ErrorKind::Newer);
    for text in ["", "{}", "[]", "{\"format\":\"x\",\"version\":1}"] {
        assert_eq!(Run::from_json(text).unwrap_err().kind(), ErrorKind::Damaged, "{text}");
    }
}

#[test]
fn a_state_that_does_not_match_its_messages_is_repaired() {
    let (_, mut whole, _) = states().into_iter().find(|(name, ..)| *name == "asking").unwrap();
    need(&mut whole);
    let mut state: Value = serde_json::from_str(&whole.to_json()).unwrap();
    let messages = state["messages"].as_array_mut().unwrap();
    messages.pop();
    let (mut run, _) = Run::from_json(&state.to_string()).unwrap();
    assert_eq!(need(&mut run), "call model", "the open calls were never made");

    let mut state: Value = serde_json::from_str(&whole.to_json()).unwrap();
    state["state"]["phase"] = json!({"phase": "ready"});
    let (mut run, repairs) = Run::from_json(&state.to_string()).unwrap();
    assert_eq!(repairs.len(), 5, "each open call got a result: {repairs:?}");
    assert_eq!(need(&mut run), "call model");
}
