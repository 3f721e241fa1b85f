//! Decisions by a callback: which questions it gets, in which order calls run, and how invalid decisions are handled.

use std::sync::{Arc, Mutex};

use agent_loop::{
    Agent, CallPermission, Decision, Event, Pause, Question, QuestionSubject, Review, Run, ScriptedModel,
    ScriptedReply, Status, ToolCall, ToolSpec,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::test_tools::*;

type Log = Arc<Mutex<Vec<String>>>;

/// An agent whose model makes these calls, then says "Done."; its approver logs each question and answers from a list.
fn agent(calls: &[(&str, Value)], decisions: Vec<Decision>, log: &Log) -> Agent {
    let (asked, decisions) = (Arc::clone(log), Mutex::new(decisions.into_iter()));
    let model = ScriptedModel::new([ScriptedReply::calls(calls.iter().cloned()), ScriptedReply::text("Done.")]);
    Agent::new(model, live(log)).unwrap().approver(move |question: Question| {
        asked.lock().unwrap().push(format!("{}?", question.call.arguments));
        let decision = decisions.lock().unwrap().next().expect("nothing more is asked");
        async { decision }
    })
}

fn at(at: &str) -> Value {
    json!({ "at": at })
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_allowed_runs_before_the_next_question() {
    let log = Log::default();
    let no = Decision::Deny { reason: Some("not b".into()) };
    let agent = agent(&[("put", at("a")), ("put", at("b"))], vec![Decision::Allow, no], &log);
    let mut run = run();
    let (pause, events) = drive(&agent, &mut run).await;
    assert_eq!(done(pause).text, "Done.");
    assert_eq!(*log.lock().unwrap(), [r#"{"at":"a"}?"#, "put begins", "put ends", r#"{"at":"b"}?"#]);
    let told = results(&run);
    assert_eq!((told[0].1, told[1].1), (Status::Ok, Status::Denied));
    assert!(told[1].2.contains("not b"), "{told:?}");
    assert_eq!(events.iter().filter(|event| matches!(event, Event::ApprovalNeeded(_))).count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_decision_for_the_session_leaves_nothing_to_ask() {
    let log = Log::default();
    let agent = agent(&[("put", at("a")), ("put", at("b"))], vec![Decision::AllowForSession], &log);
    assert_eq!(agent.ask("go").await.unwrap().text, "Done.");
    assert_eq!(*log.lock().unwrap(), [r#"{"at":"a"}?"#, "put begins", "put ends", "put begins", "put ends"]);
}

#[tokio::test(start_paused = true)]
async fn a_decision_that_does_not_fit_is_a_denial() {
    for wrong in [Decision::AllowEdited { arguments: json!({"at": 7}) }, Decision::Share { withheld: vec![] }] {
        let log = Log::default();
        let agent = agent(&[("put", at("a"))], vec![wrong], &log);
        let mut run = run();
        assert_eq!(done(drive(&agent, &mut run).await.0).text, "Done.");
        assert_eq!(*log.lock().unwrap(), [r#"{"at":"a"}?"#], "it did not run");
        let told = results(&run);
        assert!(told[0].1 == Status::Denied && told[0].2.contains("was not valid"), "{told:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn results_are_withheld_by_it() {
    struct ReviewPolicy;
    impl agent_loop::CallPolicy for ReviewPolicy {
        fn permission(&self, _: &ToolCall, _: &ToolSpec) -> CallPermission {
            CallPermission::Allow
        }
        fn review(&self, _: &ToolCall, _: &ToolSpec) -> Review {
            Review::Ask
        }
    }
    let log = Log::default();
    let agent = agent(&[("look", at("a"))], vec![Decision::Share { withheld: vec![0] }], &log).policy(ReviewPolicy);
    let mut run = run();
    let (pause, events) = drive(&agent, &mut run).await;
    assert_eq!(done(pause).text, "Done.");
    let about = events.iter().find_map(|event| match event {
        Event::ApprovalNeeded(question) => Some(&question.about),
        _ => None,
    });
    assert!(matches!(about, Some(QuestionSubject::Sharing { .. })), "{about:?}");
    assert!(!results(&run)[0].2.contains("\"a\""), "{:?}", results(&run));
}

#[tokio::test(start_paused = true)]
async fn cancelling_does_not_wait_for_it() {
    let model = ScriptedModel::new([ScriptedReply::calls([("put", at("a"))])]);
    let agent = Agent::new(model, live(&Log::default())).unwrap().approver(|_| std::future::pending());
    let cancel = CancellationToken::new();
    let mut cancel_at_question = |event| {
        if let Event::ApprovalNeeded(_) = event {
            cancel.cancel();
        }
    };
    let mut run: Run = run();
    let driving = agent.drive(&mut run, &mut cancel_at_question, &cancel);
    let pause = tokio::time::timeout(std::time::Duration::from_secs(9), driving).await.expect("it ends").unwrap();
    assert!(matches!(&pause, Pause::Done(outcome) if outcome.stop == agent_loop::StopReason::Cancelled), "{pause:?}");
    assert_eq!(results(&run)[0].1, Status::Cancelled);
}
