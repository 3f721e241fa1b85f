//! Tools and helpers that the tests share: two tools that read, two that write, and a run driven by hand.

use std::sync::{Arc, Mutex};

use agent_loop::{
    Agent, BoundDecision, CallId, CallPolicy, Decision, Effect, EndReason, Event, NextStep, Part, Pause, Question,
    ReadyCall, Reply, Run, RunContext, RunId, RunOptions, Status, Tool, ToolCall, ToolOutput, ToolSet, ToolSpec,
};
use serde_json::{Value, json};

/// `look` and `list` read, `put` and `delete` write; all take an object with an optional text `at`.
pub fn specs() -> Vec<ToolSpec> {
    let parameters = json!({"type": "object", "properties": {"at": {"type": "string"}}, "additionalProperties": false});
    let spec = |name: &str, effect| ToolSpec {
        name: name.into(),
        description: format!("The tool {name}."),
        parameters: parameters.clone(),
        effect,
        time_limit: None,
    };
    vec![
        spec("look", Effect::Read),
        spec("list", Effect::Read),
        spec("put", Effect::Write),
        spec("delete", Effect::Write),
    ]
}

pub fn set() -> ToolSet {
    ToolSet::new(specs()).unwrap()
}

/// The same tools, alive: each notes that it began and ended, and gives back its arguments.
pub fn live(log: &Arc<Mutex<Vec<String>>>) -> Vec<Tool> {
    let tool = |spec: ToolSpec| {
        let log = Arc::clone(log);
        Tool::dynamic(spec, move |call, _| {
            let log = Arc::clone(&log);
            async move {
                log.lock().unwrap().push(format!("{} begins", call.name));
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
                log.lock().unwrap().push(format!("{} ends", call.name));
                Ok(ToolOutput::text(call.arguments.to_string()))
            }
        })
    };
    specs().into_iter().map(tool).collect()
}

/// Drives a run to its next pause, with what was shown.
pub async fn drive(agent: &Agent, run: &mut Run) -> (Pause, Vec<Event>) {
    let mut events = Vec::new();
    let pause = agent.drive(run, &mut |event| events.push(event), &Default::default()).await.unwrap();
    (pause, events)
}

pub fn done(pause: Pause) -> agent_loop::RunOutcome {
    match pause {
        Pause::Done(outcome) => outcome,
        Pause::Waiting(questions) => panic!("{questions:?}"),
    }
}

pub fn run_context<'a>(tools: &'a ToolSet, policy: &'a dyn CallPolicy) -> RunContext<'a> {
    RunContext { tools, policy }
}

pub fn run_with(options: RunOptions) -> Run {
    Run::new(RunId("run_1".into()), options, "go")
}

pub fn run() -> Run {
    run_with(RunOptions::default())
}

/// A complete reply that calls tools, with ids `c1`, `c2`, …
pub fn calls(calls: &[(&str, Value)]) -> Reply {
    let call = |(index, (name, arguments)): (usize, &(&str, Value))| {
        Part::Call(ToolCall::new(format!("c{}", index + 1), *name, arguments.clone()))
    };
    Reply { parts: calls.iter().enumerate().map(call).collect(), end: EndReason::Complete, usage: None }
}

/// A run whose model has made these calls.
pub fn called(context: RunContext<'_>, made: &[(&str, Value)]) -> Run {
    let mut run = run();
    request(run.next(context));
    run.replied(calls(made)).unwrap();
    run
}

/// The ids of the calls that are handed out.
pub fn ready(next: &NextStep) -> Vec<&str> {
    match next {
        NextStep::RunTools(calls) => calls.iter().map(|ready: &ReadyCall| ready.call.id.0.as_str()).collect(),
        other => panic!("{other:?} is no batch of tools"),
    }
}

pub fn questions(next: NextStep) -> Vec<Question> {
    match next {
        NextStep::Ask(questions) => questions,
        other => panic!("{other:?} is no question"),
    }
}

pub fn request(next: NextStep) -> agent_loop::Request {
    match next {
        NextStep::CallModel(request) => request,
        other => panic!("{other:?} is no request"),
    }
}

pub fn outcome(next: NextStep) -> agent_loop::RunOutcome {
    match next {
        NextStep::Done(outcome) => outcome,
        other => panic!("{other:?} is no end"),
    }
}

pub fn finish(run: &mut Run, context: RunContext<'_>, id: &str, text: &str) {
    run.finished(context, &CallId(id.into()), Ok(ToolOutput::text(text))).unwrap();
}

pub fn decide(run: &mut Run, context: RunContext<'_>, question: &Question, verdict: Decision) {
    run.decide(context, [question.decide(verdict)]).unwrap();
}

/// Results of the last batch as (call, status, text).
pub fn results(run: &Run) -> Vec<(String, Status, String)> {
    run.results().map(|result| (result.call.0.clone(), result.status, result.text())).collect()
}

pub fn decision(question: &Question, change: impl FnOnce(&mut BoundDecision)) -> BoundDecision {
    let mut decision = question.decide(Decision::Allow);
    change(&mut decision);
    decision
}
