//! Invariants 4, 7 and 8: which calls run, which result the model gets for the others, and in what order they run.

use agent_loop::{
    AllowAll, AskBeforeWriting, Decision, Delta, EndReason, Part, Reply, ReplyBuilder, Run, Status, StopReason,
    ToolCall, ToolError,
};
use serde_json::json;

use crate::test_tools::*;

fn build(deltas: &[Delta]) -> agent_loop::Reply {
    let mut builder = ReplyBuilder::new();
    deltas.iter().for_each(|delta| builder.push(delta).unwrap());
    builder.finish().unwrap()
}

/// A call of `look` whose arguments parse, in a reply that ended like this.
fn look(is_ended: bool, end: EndReason) -> agent_loop::Reply {
    let mut deltas = vec![
        Delta::CallStart { index: 0, id: "c1".into(), name: "look".into() },
        Delta::CallArguments { index: 0, text: "{\"at\":\"a\"}".into() },
    ];
    if is_ended {
        deltas.push(Delta::CallEnd { index: 0, opaque: None });
    }
    deltas.push(Delta::End(end));
    build(&deltas)
}

#[test]
fn invariant_04_only_complete_calls_of_complete_replies_run() {
    let tools = set();
    let context = run_context(&tools, &AllowAll);
    let mut whole = run();
    request(whole.next(context));
    whole.replied(look(true, EndReason::Complete)).unwrap();
    assert_eq!(ready(&whole.next(context)), ["c1"]);

    for reply in [look(false, EndReason::Complete), look(true, EndReason::Length)] {
        let mut run = run();
        request(run.next(context));
        run.replied(reply).unwrap();
        // The model is asked again at once: nothing ran, and it is told why.
        request(run.next(context));
        let (_, status, text) = &results(&run)[0];
        assert_eq!(*status, Status::Error);
        assert!(text.contains("cut off"), "{text}");
    }
    // Whoever builds replies in another way is held to the same.
    let mut cut = run();
    request(cut.next(context));
    cut.replied(Reply { end: EndReason::Length, ..calls(&[("put", json!({"at": "a"}))]) }).unwrap();
    request(cut.next(context));
    assert_eq!(results(&cut)[0].1, Status::Error);
    for (end, stop) in [(EndReason::Filtered, StopReason::Filtered), (EndReason::Refused, StopReason::Refused)] {
        let mut run = run();
        request(run.next(context));
        run.replied(look(true, end)).unwrap();
        assert_eq!(outcome(run.next(context)).stop, stop);
        assert_eq!(results(&run)[0].1, Status::Cancelled);
    }
}

#[test]
fn invariant_04_arguments_must_parse_and_fit() {
    let tools = set();
    let context = run_context(&tools, &AllowAll);
    for (arguments, expected) in [
        ("{\"at\":", "not valid JSON"),
        ("[]", "JSON object"),
        ("{\"at\":7}", "/at"),
        ("{\"to\":\"a\"}", "to"),
        ("{\"at\":\"a\"} {", "not valid JSON"),
    ] {
        let mut run = run();
        request(run.next(context));
        let deltas = [
            Delta::CallStart { index: 0, id: "c1".into(), name: "look".into() },
            Delta::CallArguments { index: 0, text: arguments.into() },
            Delta::CallEnd { index: 0, opaque: None },
            Delta::End(EndReason::Complete),
        ];
        run.replied(build(&deltas)).unwrap();
        request(run.next(context));
        let (_, status, text) = &results(&run)[0];
        assert_eq!(*status, Status::Error, "{arguments}");
        assert!(text.contains(expected), "{arguments}: {text}");
    }
}

#[test]
fn invariant_07_what_a_model_can_correct_is_a_result() {
    let tools = set();
    let context = run_context(&tools, &AllowAll);
    let mut run = called(context, &[("lok", json!({})), ("look", json!({"at": 1})), ("look", json!({}))]);
    assert_eq!(ready(&run.next(context)), ["c3"], "one call that fails keeps no other from running");
    run.finished(context, &"c3".into(), Err(ToolError::new("no such note: a"))).unwrap();
    request(run.next(context));
    let told = results(&run);
    assert!(told.iter().all(|(_, status, _)| *status == Status::Error));
    assert_eq!(told[0].2, "There is no tool \"lok\". The tools are: look, list, put, delete.");
    assert!(told[1].2.contains("- /at: "), "{}", told[1].2);
    assert_eq!(told[2].2, "no such note: a");
}

#[test]
fn invariant_07_what_it_cannot_correct_ends_the_run() {
    let tools = set();
    let context = run_context(&tools, &AllowAll);
    let mut run = run();
    request(run.next(context));
    let error =
        agent_loop::Error::new(agent_loop::ErrorKind::Authentication, "the key is not accepted").with_status(401);
    run.failed(&error).unwrap();
    let StopReason::Failed { failure } = outcome(run.next(context)).stop else { panic!() };
    assert_eq!(failure.kind, agent_loop::ErrorKind::Authentication);
    run.retry().unwrap();
    request(run.next(context));
}

#[test]
fn invariant_08_reads_run_side_by_side_and_a_write_alone_in_order() {
    let tools = set();
    let context = run_context(&tools, &AllowAll);
    let mut run = run();
    request(run.next(context));
    let at = |at: &str| json!({"at": at});
    run.replied(calls(&[
        ("look", at("1")),
        ("list", at("2")),
        ("put", at("3")),
        ("look", at("4")),
        ("delete", at("5")),
        ("put", at("6")),
    ]))
    .unwrap();
    for batch in [&["c1", "c2"][..], &["c3"], &["c4"], &["c5"], &["c6"]] {
        assert_eq!(ready(&run.next(context)), batch);
        for id in batch {
            assert!(matches!(run.next(context), agent_loop::NextStep::Wait), "nothing is handed out twice");
            finish(&mut run, context, id, id);
        }
    }
    request(run.next(context));
    let order: Vec<String> = results(&run).into_iter().map(|(id, ..)| id).collect();
    assert_eq!(order, ["c1", "c2", "c3", "c4", "c5", "c6"]);
}

#[test]
fn invariant_08_a_call_that_waits_for_a_person_holds_up_only_writes_behind_it() {
    let tools = set();
    let policy = |call: &ToolCall, _: &agent_loop::ToolSpec| match call.name.as_str() {
        "put" => agent_loop::CallPermission::Ask { why: "it writes".into(), grant: "put".into() },
        _ => agent_loop::CallPermission::Allow,
    };
    let context = run_context(&tools, &policy);
    let mut run =
        called(context, &[("put", json!({})), ("look", json!({})), ("delete", json!({})), ("list", json!({}))]);
    assert_eq!(run.questions(context).len(), 1, "a person can be asked before the reads have run");
    assert_eq!(ready(&run.next(context)), ["c2", "c4"]);
    finish(&mut run, context, "c2", "");
    finish(&mut run, context, "c4", "");
    let asked = questions(run.next(context));
    decide(&mut run, context, &asked[0], Decision::Allow);
    assert_eq!(ready(&run.next(context)), ["c1"]);
    finish(&mut run, context, "c1", "");
    assert_eq!(ready(&run.next(context)), ["c3"]);
}

#[test]
fn invariant_02_what_ran_when_the_process_died_runs_again_only_if_it_reads() {
    let tools = set();
    let context = run_context(&tools, &AllowAll);
    for (name, runs_again) in [("look", true), ("put", false)] {
        let mut run = called(context, &[(name, json!({}))]);
        assert_eq!(ready(&run.next(context)), ["c1"]);
        let (mut run, repairs) = Run::from_json(&run.to_json()).unwrap();
        assert!(repairs.is_empty());
        if runs_again {
            assert_eq!(ready(&run.next(context)), ["c1"]);
        } else {
            request(run.next(context));
            let (_, status, text) = &results(&run)[0];
            assert_eq!(*status, Status::Cancelled);
            assert!(text.contains("may or may not"), "{text}");
        }
    }
}

#[test]
fn invariant_03_a_read_that_was_interrupted_is_ruled_on_again() {
    let tools = set();
    let asks =
        |_: &ToolCall, _: &agent_loop::ToolSpec| agent_loop::CallPermission::Ask { why: "".into(), grant: "g".into() };
    let asking = run_context(&tools, &asks);
    let allowing = run_context(&tools, &AllowAll);
    let mut run = called(allowing, &[("look", json!({}))]);
    assert_eq!(ready(&run.next(allowing)), ["c1"]);
    let (mut died, _) = Run::from_json(&run.to_json()).unwrap();
    let asked = questions(died.next(asking));
    assert_eq!(asked.len(), 1, "nobody had allowed it but a policy that is gone");

    decide(&mut died, asking, &asked[0], Decision::Allow);
    assert_eq!(ready(&died.next(asking)), ["c1"]);
    let (mut again, _) = Run::from_json(&died.to_json()).unwrap();
    assert_eq!(ready(&again.next(asking)), ["c1"], "a person's yes is kept");
}

#[test]
fn invariant_09_cancelling_leaves_a_valid_history_that_says_what_was_done() {
    let tools = set();
    let context = run_context(&tools, &AskBeforeWriting);
    let mut run = called(context, &[("look", json!({})), ("list", json!({})), ("put", json!({}))]);
    assert_eq!(ready(&run.next(context)), ["c1", "c2"]);
    finish(&mut run, context, "c1", "seen");
    run.cancel(Vec::new());
    assert_eq!(outcome(run.next(context)).stop, StopReason::Cancelled);
    let expected = [
        ("c1", Status::Ok, "seen"),
        ("c2", Status::Cancelled, "Cancelled while it ran."),
        ("c3", Status::Cancelled, "Cancelled before it ran."),
    ];
    assert_eq!(results(&run), expected.map(|(id, status, text)| (id.to_string(), status, text.to_string())));
    run.history().messages().check().unwrap();
    run.say("go on").unwrap();
    request(run.next(context)).messages.check().unwrap();

    run.cancel(vec![Part::text("half a sen")]);
    assert_eq!(outcome(run.next(context)).text, "half a sen");

    // Of a write that was under way nobody knows what became.
    let context = self::run_context(&tools, &AllowAll);
    let mut run = called(context, &[("put", json!({})), ("look", json!({}))]);
    assert_eq!(ready(&run.next(context)), ["c1"]);
    run.cancel(Vec::new());
    let told = results(&run);
    assert!(told[0].1 == Status::Cancelled && told[0].2.contains("may or may not have taken effect"), "{told:?}");
    assert_eq!(told[1].2, "Cancelled before it ran.");
}

#[test]
fn messages_are_shared_from_turn_to_turn_and_never_copied() {
    let tools = set();
    let context = run_context(&tools, &AllowAll);
    let mut run = run();
    let first = request(run.next(context)).messages.to_vec();
    run.replied(calls(&[("look", json!({}))])).unwrap();
    ready(&run.next(context));
    finish(&mut run, context, "c1", "seen");
    let second = request(run.next(context)).messages;
    assert!(std::sync::Arc::ptr_eq(&first[0], &second[0]));
    assert!(second.is_same(run.history().messages()), "a request shares the whole list");
    assert_eq!(second.len(), 3);
}
