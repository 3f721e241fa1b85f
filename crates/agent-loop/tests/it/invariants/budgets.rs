//! Invariants 6 and 10: every run ends, and compaction always makes a conversation shorter.

use std::time::Duration;

use agent_loop::{
    AllowAll, AnswerShape, AtLimit, Budget, EndReason, Error, ErrorKind, Failure, History, Limit, Message, NextStep,
    Part, Reply, Run, RunOptions, Status, StopReason, ToolChoice, Usage,
};
use serde_json::json;

use crate::test_tools::*;

fn with(budget: Budget) -> Run {
    run_with(RunOptions::default().budget(budget))
}

/// Lets the model call `look` turn after turn until the run asks for something else than a turn or a tool.
fn exhaust(run: &mut Run, mut arguments: impl FnMut(u32) -> serde_json::Value) -> NextStep {
    let tools = set();
    let context = run_context(&tools, &AllowAll);
    for turn in 0..10_000 {
        match run.next(context) {
            NextStep::CallModel(request) if request.tool_choice == ToolChoice::None => {
                return NextStep::CallModel(request);
            }
            NextStep::CallModel(_) => {
                run.spend_time(Duration::from_secs(1));
                let reply = calls(&[("look", arguments(turn)), ("list", arguments(turn))]);
                let usage = Some(Usage::default().input(900).output(100));
                run.replied(Reply { usage, ..reply }).unwrap();
            }
            NextStep::RunTools(batch) => {
                for ready in batch {
                    finish(run, context, &ready.call.id.0, "the same");
                }
            }
            other => return other,
        }
    }
    panic!("the run does not end")
}

#[test]
fn invariant_06_every_part_of_the_budget_ends_the_run() {
    let free = Budget::default().turns(None).calls(None).tokens(None).time(None).repeats(None).at_limit(AtLimit::Stop);
    let different = |turn: u32| json!({"at": turn.to_string()});
    for (budget, limit, turns, calls) in [
        (Budget::default(), Limit::Turns, 10, 20),
        (free.clone().calls(Some(5)), Limit::Calls, 3, 5),
        (free.clone().tokens(Some(3_500)), Limit::Tokens, 4, 8),
        (free.clone().time(Some(Duration::from_secs(7))), Limit::Time, 7, 14),
    ] {
        let mut run = with(budget);
        let outcome = outcome(exhaust(&mut run, different));
        assert_eq!(outcome.stop, StopReason::Limit { limit });
        assert_eq!((outcome.spent.turns, outcome.spent.calls), (turns, calls), "{limit:?}");
        run.history().messages().check().unwrap();
    }
    let mut run = with(free.repeats(Some(3)));
    let outcome = outcome(exhaust(&mut run, |_| json!({})));
    assert_eq!(outcome.stop, StopReason::Limit { limit: Limit::Repeats });
    assert_eq!(outcome.spent.turns, 3);
}

#[test]
fn invariant_06_the_words_of_the_sources() {
    assert_eq!(StopReason::Limit { limit: Limit::Turns }.to_string(), "Agent exceeded maximum iterations");
    assert_eq!(StopReason::Limit { limit: Limit::Calls }.to_string(), "Maximum number of tool uses reached");
    assert_eq!(Budget::default().turns, Some(10));
    let mut run = with(Budget::default().calls(Some(1)));
    outcome(exhaust(&mut run, |turn| json!({"at": turn.to_string()})));
    let last = results(&run).pop().unwrap();
    assert_eq!((last.1, last.2.as_str()), (Status::Cancelled, "Maximum number of tool uses reached"));
}

#[test]
fn invariant_06_one_last_turn_without_tools() {
    let tools = set();
    let context = run_context(&tools, &AllowAll);
    let budget = Budget::default().turns(Some(2)).at_limit(AtLimit::SumUp);
    let mut run = with(budget.clone());
    let last = request(exhaust(&mut run, |turn| json!({"at": turn.to_string()})));
    assert_eq!(last.tool_choice, ToolChoice::None);
    drop(last);
    let (mut run, _) = Run::from_json(&run.to_json()).unwrap();
    run.replied(Reply::text("So far: a.")).unwrap();
    let end = outcome(run.next(context));
    assert_eq!((end.stop, end.text.as_str()), (StopReason::Limit { limit: Limit::Turns }, "So far: a."));
    assert_eq!(run.results().count(), 4, "what the loop says is not a message of the person");
    let page = agent_loop::to_markdown(run.history().messages().iter().map(|message| &**message));
    assert_eq!(page.matches("## User").count(), 1, "{page}");

    // A model that calls all the same gets no other turn.
    let mut run = with(budget);
    exhaust(&mut run, |turn| json!({"at": turn.to_string()}));
    run.replied(calls(&[("look", json!({}))])).unwrap();
    assert!(matches!(outcome(run.next(context)).stop, StopReason::Limit { .. }));
    run.history().messages().check().unwrap();
}

#[test]
fn invariant_06_a_new_message_begins_a_new_budget() {
    let tools = set();
    let context = run_context(&tools, &AllowAll);
    let mut run = with(Budget::default().turns(Some(1)));
    outcome(exhaust(&mut run, |_| json!({})));
    assert!(run.retry().is_err(), "a limit is no failure");
    run.say("and now?").unwrap();
    assert!(run.say("twice").is_err());
    request(run.next(context));
    run.replied(Reply::text("now")).unwrap();
    assert_eq!(outcome(run.next(context)).stop, StopReason::Answered);
}

#[test]
fn an_answer_has_the_shape_that_was_asked_for_or_the_run_says_why() {
    #[derive(schemars::JsonSchema)]
    #[allow(dead_code)]
    struct Count {
        count: u32,
    }
    let tools = set();
    let context = run_context(&tools, &AllowAll);
    let options = RunOptions::default().answer(Some(AnswerShape::of::<Count>()));
    let mut run = run_with(options.clone());
    assert!(request(run.next(context)).answer_schema.is_some());
    run.replied(Reply::text("three")).unwrap();
    let again = request(run.next(context));
    assert!(again.messages.last().unwrap().text().contains("not valid JSON"));
    drop(again);
    run.replied(Reply::text("```json\n{\"count\": 3}\n```")).unwrap();
    assert_eq!(outcome(run.next(context)).answer, Some(json!({"count": 3})));

    let mut run = run_with(options);
    for _ in 0..3 {
        request(run.next(context));
        run.replied(Reply::text("{\"count\": \"three\"}")).unwrap();
    }
    let StopReason::BadAnswer { faults } = outcome(run.next(context)).stop else { panic!() };
    assert!(faults.contains("/count"), "{faults}");
}

fn too_long() -> Error {
    Error::new(ErrorKind::ContextTooLong, "the context is too long")
}

/// A run whose history is worth shortening and whose last request was refused as too long.
fn refused() -> Run {
    let tools = set();
    let context = run_context(&tools, &AllowAll);
    let mut run = called(context, &[("look", json!({}))]);
    run.next(context);
    finish(&mut run, context, "c1", &"long ".repeat(1000));
    request(run.next(context));
    run.failed(&too_long()).unwrap();
    run
}

#[test]
fn invariant_10_compaction_must_shrink_and_is_tried_a_bounded_number_of_times() {
    let tools = set();
    let context = run_context(&tools, &AllowAll);
    let history = |text: &str| History::from_messages([Message::user(text)]);

    let mut run = refused();
    assert!(matches!(run.next(context), NextStep::Compact));
    run.compacted(history(&"long ".repeat(2000))).unwrap();
    let StopReason::Failed { failure: Failure { kind, message, .. } } = outcome(run.next(context)).stop else {
        panic!()
    };
    assert_eq!(kind, ErrorKind::ContextTooLong);
    assert!(message.contains("did not get shorter"), "{message}");

    let mut run = refused();
    for size in [100, 10] {
        assert!(matches!(run.next(context), NextStep::Compact));
        run.compacted(history(&"long ".repeat(size))).unwrap();
        request(run.next(context));
        run.failed(&too_long()).unwrap();
    }
    assert!(matches!(outcome(run.next(context)).stop, StopReason::Failed { .. }), "two are enough");
}

#[test]
fn invariant_10_a_threshold_alone_never_ends_a_run() {
    let tools = set();
    let context = run_context(&tools, &AllowAll);
    let mut run = run_with(RunOptions::default().compact_above(Some(10)));
    request(run.next(context));
    let usage = Some(Usage::default().input(50).output(1));
    run.replied(Reply { usage, ..calls(&[("look", json!({}))]) }).unwrap();
    run.next(context);
    finish(&mut run, context, "c1", "r");
    assert!(matches!(run.next(context), NextStep::Compact));
    run.compacted(Err(too_long())).unwrap();
    request(run.next(context));
}

#[test]
fn the_text_of_a_run_that_ends_with_results_is_what_the_model_said_last() {
    let tools = set();
    let context = run_context(&tools, &AllowAll);
    let mut run = with(Budget::default().turns(Some(1)));
    request(run.next(context));
    let mut reply = calls(&[("look", json!({}))]);
    reply.parts.insert(0, Part::text("I look."));
    run.replied(reply).unwrap();
    ready(&run.next(context));
    finish(&mut run, context, "c1", "seen");
    let end = outcome(run.next(context));
    assert_eq!((end.stop, end.text.as_str()), (StopReason::Limit { limit: Limit::Turns }, "I look."));

    run.say("and now?").unwrap();
    run.cancel(Vec::new());
    assert_eq!(outcome(run.next(context)).text, "", "what was said before the person's message does not count");
}

#[test]
fn invariant_06_an_empty_last_turn_keeps_the_limit() {
    let tools = set();
    let mut run = with(Budget::default().turns(Some(2)).at_limit(AtLimit::SumUp));
    drop(request(exhaust(&mut run, |turn| json!({"at": turn.to_string()}))));
    run.replied(Reply { parts: Vec::new(), end: EndReason::Complete, usage: None }).unwrap();
    assert_eq!(outcome(run.next(run_context(&tools, &AllowAll))).stop, StopReason::Limit { limit: Limit::Turns });
    run.history().messages().check().unwrap();
}
