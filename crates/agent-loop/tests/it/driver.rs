//! The driver: which requests and calls are shown, retried, run in parallel, timed out and cancelled, in paused time.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent_loop::{
    Agent, AllowAll, Budget, Decision, Delta, Effect, EndReason, Error, ErrorKind, Event, Limit, Pause, Run, RunId,
    RunOptions, ScriptedModel, ScriptedReply, Status, StopReason, Tool, ToolCall, ToolOutput, ToolSpec,
};
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::test_tools::*;

type Log = Arc<Mutex<Vec<String>>>;

fn spec(name: &str, effect: Effect) -> ToolSpec {
    specs().into_iter().find(|spec| spec.name == name).map(|spec| ToolSpec { effect, ..spec }).unwrap()
}

fn unavailable() -> Error {
    Error::new(ErrorKind::Unavailable, "overloaded").with_status(503)
}

fn text(text: &str) -> Delta {
    Delta::Text { text: text.into() }
}

#[tokio::test(start_paused = true)]
async fn all_that_happens_is_shown() {
    let log = Log::default();
    let model = ScriptedModel::new([
        ScriptedReply::calls([("look", json!({"at": "a"}))]).usage(10, 5),
        ScriptedReply::calls([("put", json!({}))]),
        ScriptedReply::text("done"),
    ]);
    let agent = Agent::new(model, live(&log)).unwrap();
    let mut run = run();
    let (pause, events) = drive(&agent, &mut run).await;
    let Pause::Waiting(asked) = pause else { panic!("{pause:?}") };
    let kinds: Vec<String> = events.iter().map(|event| event.to_json()["event"].as_str().unwrap().into()).collect();
    let expected = "call_started call_arguments usage tool_started tool_finished call_started call_arguments \
        approval_needed";
    assert_eq!(kinds.join(" "), expected);
    decide(&mut run, agent.context(), &asked[0], Decision::Allow);
    let (pause, events) = drive(&agent, &mut run).await;
    assert_eq!(done(pause).text, "done");
    assert!(events.contains(&Event::Text("done".into())));
    assert_eq!(*log.lock().unwrap(), ["look begins", "look ends", "put begins", "put ends"]);
}

#[tokio::test(start_paused = true)]
async fn invariant_05_a_cut_stream_is_an_error_and_retried_only_while_nothing_was_shown() {
    let usage = Delta::Usage(agent_loop::Usage::default());
    let model = ScriptedModel::new([
        ScriptedReply::deltas([]),
        ScriptedReply::deltas([usage]),
        ScriptedReply::fails(unavailable()),
        ScriptedReply::text("ok"),
    ]);
    let agent = Agent::new(model, live(&Log::default())).unwrap();
    let mut first = run();
    let (pause, events) = drive(&agent, &mut first).await;
    assert_eq!(done(pause).text, "ok");
    assert_eq!(events.iter().filter(|event| matches!(event, Event::Retry { .. })).count(), 3);

    for shown in [
        text("half"),
        Delta::Reasoning { text: "hm".into(), opaque: None },
        Delta::CallStart { index: 0, id: "x".into(), name: "look".into() },
    ] {
        let agent = Agent::new(ScriptedModel::new([ScriptedReply::deltas([shown])]), live(&Log::default())).unwrap();
        let mut run = run();
        let StopReason::Failed { failure } = done(drive(&agent, &mut run).await.0).stop else { panic!() };
        assert_eq!(failure.kind, ErrorKind::CutStream);
        assert!(failure.kind.is_retryable());
        assert_eq!(run.history().messages().len(), 1, "what was cut is no part of the history");
        run.retry().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_honoured_and_what_cannot_succeed_is_not_retried() {
    let limited = Error::new(ErrorKind::RateLimit, "slow").with_retry_after(Duration::from_secs(40));
    let agent = Agent::new(
        ScriptedModel::new([ScriptedReply::fails(limited), ScriptedReply::text("ok")]),
        live(&Log::default()),
    )
    .unwrap();
    let start = Instant::now();
    assert_eq!(done(drive(&agent, &mut run()).await.0).text, "ok");
    let waited = start.elapsed();
    assert!(waited >= Duration::from_secs(40) && waited <= Duration::from_secs(45), "{waited:?}");

    let refused = ScriptedReply::fails(Error::new(ErrorKind::Authentication, "no"));
    let agent = Agent::new(ScriptedModel::new([refused]), live(&Log::default())).unwrap();
    assert!(matches!(done(drive(&agent, &mut run()).await.0).stop, StopReason::Failed { .. }));

    let four = (0..4).map(|_| ScriptedReply::fails(unavailable()));
    let agent = Agent::new(ScriptedModel::new(four), live(&Log::default())).unwrap();
    assert!(matches!(done(drive(&agent, &mut run()).await.0).stop, StopReason::Failed { .. }));
}

#[tokio::test(start_paused = true)]
async fn a_reply_ends_with_the_time_of_the_budget() {
    let budget = Budget::default().time(Some(Duration::from_secs(5)));
    for (step, said) in [(ScriptedReply::silence(), ""), (ScriptedReply::deltas([text("half")]).then_silence(), "half")]
    {
        let begun = tokio::time::Instant::now();
        let agent = Agent::new(ScriptedModel::new([step]), Vec::<Tool>::new()).unwrap();
        let mut run = Run::new(RunId::random(), RunOptions::default().budget(budget.clone()), "hi");
        let Pause::Done(outcome) = agent.drive(&mut run, &mut (), &Default::default()).await.unwrap() else { panic!() };
        assert_eq!(outcome.stop, StopReason::Limit { limit: Limit::Time });
        assert_eq!((&*outcome.text, begun.elapsed()), (said, Duration::from_secs(5)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_model_is_given_up() {
    let steps = [ScriptedReply::silence(), ScriptedReply::deltas([text("a")]).then_silence()];
    let agent = Agent::new(ScriptedModel::new(steps), live(&Log::default())).unwrap();
    let start = Instant::now();
    let StopReason::Failed { failure } = done(drive(&agent, &mut run()).await.0).stop else { panic!() };
    assert_eq!(failure.kind, ErrorKind::TimedOut);
    assert!(start.elapsed() < Duration::from_secs(245));
}

#[tokio::test(start_paused = true)]
async fn invariant_08_reads_overlap_and_writes_do_not() {
    let log = Log::default();
    let script = [("look", json!({})), ("list", json!({})), ("put", json!({})), ("delete", json!({}))];
    let model = ScriptedModel::new([ScriptedReply::calls(script), ScriptedReply::text("done")]);
    let agent = Agent::new(model, live(&log)).unwrap().policy(AllowAll);
    done(drive(&agent, &mut run()).await.0);
    let log = log.lock().unwrap();
    assert_eq!(log[..2], ["look begins", "list begins"]);
    assert_eq!(log[4..], ["put begins", "put ends", "delete begins", "delete ends"]);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_takes_too_long_or_crashes_is_a_result() {
    let slow = Tool::dynamic(spec("put", Effect::Write), |_, _| std::future::pending());
    let slow = slow.time_limit(Duration::from_secs(3));
    let crashing = Tool::dynamic(spec("look", Effect::Read), |_, _| async { panic!("a bug in the tool") });
    let writing = Tool::dynamic(spec("delete", Effect::Write), |_, _| async { panic!("a bug in the tool") });
    let script = [("put", json!({})), ("look", json!({})), ("delete", json!({}))];
    let model = ScriptedModel::new([ScriptedReply::calls(script), ScriptedReply::text("sorry")]);
    let agent = Agent::new(model, vec![slow, crashing, writing]).unwrap().policy(AllowAll);
    let mut run = run();
    let start = Instant::now();
    assert_eq!(done(drive(&agent, &mut run).await.0).text, "sorry");
    assert_eq!(start.elapsed().as_secs(), 3);
    let told = results(&run);
    assert!(told[0].2.contains("Timed out after 3s") && told[0].2.contains("may or may not"), "{}", told[0].2);
    assert_eq!((told[1].1, told[1].2.as_str()), (Status::Error, "The tool crashed."));
    assert!(told[2].2.starts_with("The tool crashed.") && told[2].2.contains("may or may not"), "{}", told[2].2);
}

/// One tool that heeds the cancelling and one that does not.
fn stubborn() -> Vec<Tool> {
    let heeds = Tool::dynamic(spec("look", Effect::Read), |_, cancel: CancellationToken| async move {
        cancel.cancelled().await;
        Ok(ToolOutput::text("stopped early"))
    });
    let deaf = Tool::dynamic(spec("list", Effect::Read), |_, _| std::future::pending());
    vec![heeds, deaf]
}

#[tokio::test(start_paused = true)]
async fn invariant_09_cancelling_answers_within_a_bound() {
    let in_tools = ScriptedReply::calls([("look", json!({})), ("list", json!({}))]);
    let in_a_reply = ScriptedReply::deltas([text("half")]).then_silence();
    let in_a_retry =
        ScriptedReply::fails(Error::new(ErrorKind::RateLimit, "x").with_retry_after(Duration::from_secs(100)));
    for step in [in_tools, in_a_reply, in_a_retry] {
        let agent = Agent::new(ScriptedModel::new([step]), stubborn()).unwrap();
        let (mut run, cancel) = (run(), CancellationToken::new());
        let start = Instant::now();
        let canceller = cancel.clone();
        let mut nobody = ();
        let (pause, ()) = tokio::join!(agent.drive(&mut run, &mut nobody, &cancel), async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            canceller.cancel();
        });
        assert_eq!(done(pause.unwrap()).stop, StopReason::Cancelled);
        assert!(start.elapsed() <= Duration::from_millis(1_501), "{:?}", start.elapsed());
        run.history().messages().check().unwrap();
        let told = results(&run);
        if !told.is_empty() {
            assert_eq!((told[0].1, told[0].2.as_str()), (Status::Ok, "stopped early"));
            assert_eq!(told[1].1, Status::Cancelled);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_driver_leaves_a_run_that_goes_on() {
    let log = Log::default();
    let model = ScriptedModel::new([
        ScriptedReply::calls([("look", json!({})), ("put", json!({}))]),
        ScriptedReply::text("done"),
    ]);
    let agent = Agent::new(model, live(&log)).unwrap().policy(AllowAll);
    let mut run = run();
    let early = tokio::time::timeout(Duration::from_millis(15), drive(&agent, &mut run)).await;
    assert!(early.is_err(), "it is dropped while put runs");
    assert_eq!(done(drive(&agent, &mut run).await.0).text, "done");
    let told = results(&run);
    assert_eq!((told[0].1, told[1].1), (Status::Ok, Status::Cancelled));
    assert_eq!(log.lock().unwrap().iter().filter(|line| *line == "put begins").count(), 1, "a write never runs twice");
}

#[tokio::test(start_paused = true)]
async fn a_conversation_that_is_too_long_is_made_shorter() {
    let too_long = || ScriptedReply::fails(Error::new(ErrorKind::ContextTooLong, "too long"));
    let steps = (0..8).map(|turn| ScriptedReply::calls([("look", json!({"at": turn.to_string()}))]));
    let steps = steps.chain([
        too_long(),
        ScriptedReply::text("done").expecting(|request| {
            let dropped = request.messages.iter().filter(|m| serde_json::to_string(&***m).unwrap().contains("dropped"));
            if dropped.count() >= 3 { Ok(()) } else { Err("old results are still there".into()) }
        }),
    ]);
    let tool = Tool::dynamic(spec("look", Effect::Read), |call: ToolCall, _| async move {
        Ok(ToolOutput::text(format!("{} {}", call.arguments, "x".repeat(5_000))))
    });
    let agent = Agent::new(ScriptedModel::new(steps), vec![tool]).unwrap();
    let mut run = run();
    let (pause, events) = drive(&agent, &mut run).await;
    assert_eq!(done(pause).stop, StopReason::Answered);
    assert!(events.iter().any(|event| matches!(event, Event::Compacted { before, after } if after < before)));
}

/// One result, or one message, of a megabyte must not end a conversation.
#[tokio::test(start_paused = true)]
async fn what_is_too_large_is_cut() {
    let large = || "x".repeat(1_000_000);
    let sizes = Arc::new(Mutex::new(Vec::new()));
    // A model that refuses more than 60,000 bytes.
    let reply = |sizes: &Arc<Mutex<Vec<usize>>>, reply: ScriptedReply| {
        let sizes = Arc::clone(sizes);
        reply.expecting(move |request| {
            let size = request.messages.iter().map(|message| message.size()).sum();
            sizes.lock().unwrap().push(size);
            if size > 60_000 { Err(format!("{size} bytes")) } else { Ok(()) }
        })
    };
    let too_long = || ScriptedReply::fails(Error::new(ErrorKind::ContextTooLong, "too long"));
    let look = || ScriptedReply::calls([("look", json!({}))]);
    let tool = || {
        Tool::dynamic(
            spec("look", Effect::Read),
            move |_, _| async move { Ok(ToolOutput::text("x".repeat(1_000_000))) },
        )
    };
    // Where nothing is known of the context: after each refusal.
    let steps = [look(), too_long(), too_long(), reply(&sizes, ScriptedReply::text("done"))];
    let mut run = run();
    let agent = Agent::new(ScriptedModel::new(steps), vec![tool()]).unwrap();
    assert_eq!(done(drive(&agent, &mut run).await.0).text, "done");
    // Where it is known: before it is sent at all.
    let steps = [look(), reply(&sizes, ScriptedReply::text("done"))];
    let agent = Agent::new(ScriptedModel::new(steps), vec![tool()]).unwrap();
    let mut run = run_with(RunOptions::default().compact_above(Some(8_000)));
    assert_eq!(done(drive(&agent, &mut run).await.0).text, "done");
    assert_eq!(run.history().messages()[0].text(), "go");
    let result = run.results().next().unwrap().text();
    let missing: usize = result.rsplit_once("\n(").unwrap().1.split(' ').next().unwrap().parse().unwrap();
    let kept = result.rsplit_once("\n(").unwrap().0.len();
    assert_eq!(kept + missing, 1_000_000, "however often it was cut");
    // A message that does not fit is the person's own; the next one goes on without most of it.
    let steps = [too_long(), too_long(), too_long(), reply(&sizes, ScriptedReply::text("done"))];
    let agent = Agent::new(ScriptedModel::new(steps), Vec::<Tool>::new()).unwrap();
    let mut run = Run::new(RunId("r".into()), RunOptions::default(), large());
    assert!(matches!(done(drive(&agent, &mut run).await.0).stop, StopReason::Failed { .. }));
    run.say("are you there?").unwrap();
    assert_eq!(done(drive(&agent, &mut run).await.0).text, "done");
    assert_eq!(sizes.lock().unwrap().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_dropped_is_summarized() {
    let mut run = Run::new(RunId("r".into()), RunOptions::default(), "first task: ".to_string() + &"a ".repeat(3_000));
    let mut steps: Vec<ScriptedReply> = (0..4).map(|_| ScriptedReply::text("b ".repeat(3_000))).collect();
    steps.push(ScriptedReply::fails(Error::new(ErrorKind::ContextTooLong, "too long")));
    steps.push(ScriptedReply::text("They talked about a and b.").expecting(|request| {
        let text = request.messages[0].text();
        let is_data = request.messages.len() == 1 && request.tools.is_empty() && text.contains("Person: first task");
        if is_data { Ok(()) } else { Err("the old part is given as text".into()) }
    }));
    steps.push(ScriptedReply::text("done"));
    let agent = Agent::new(ScriptedModel::new(steps), Vec::<Tool>::new()).unwrap();
    for message in ["second", "third", "fourth", "fifth"] {
        done(drive(&agent, &mut run).await.0);
        run.say(message).unwrap();
    }
    assert_eq!(done(drive(&agent, &mut run).await.0).text, "done");
    let messages = run.history().messages();
    assert!(messages[0].text().contains("They talked about a and b."));
    assert!(messages.iter().any(|message| message.text() == "fifth"));
}

#[tokio::test(start_paused = true)]
async fn a_script_fails_on_what_it_does_not_expect() {
    let agent = Agent::new(ScriptedModel::new([]), live(&Log::default())).unwrap();
    let StopReason::Failed { failure } = done(drive(&agent, &mut run()).await.0).stop else { panic!() };
    assert_eq!(failure.kind, ErrorKind::Script);
    let left = std::panic::catch_unwind(|| drop(ScriptedModel::new([ScriptedReply::text("never")])));
    assert!(left.is_err());
    let end = Delta::End(EndReason::Complete);
    let agent =
        Agent::new(ScriptedModel::new([ScriptedReply::deltas([end.clone(), end])]), live(&Log::default())).unwrap();
    let StopReason::Failed { failure } = done(drive(&agent, &mut run()).await.0).stop else { panic!() };
    assert_eq!(failure.kind, ErrorKind::BadResponse);
}

/// A conversation of four long turns whose next request is too long; `summary` is what the model makes of the old part.
async fn too_long(summary: ScriptedReply, then: Vec<ScriptedReply>) -> (Run, Pause, Vec<Event>) {
    let mut run = Run::new(RunId("r".into()), RunOptions::default(), "first: ".to_string() + &"a ".repeat(3_000));
    let mut steps: Vec<ScriptedReply> = (0..4).map(|_| ScriptedReply::text("b ".repeat(3_000)).usage(10, 1)).collect();
    steps.push(ScriptedReply::fails(Error::new(ErrorKind::ContextTooLong, "too long")));
    steps.push(summary);
    steps.extend(then);
    let agent = Agent::new(ScriptedModel::new(steps), Vec::<Tool>::new()).unwrap();
    for message in ["second", "third", "fourth", "fifth"] {
        done(drive(&agent, &mut run).await.0);
        run.say(message).unwrap();
    }
    let (pause, events) = drive(&agent, &mut run).await;
    (run, pause, events)
}

#[tokio::test(start_paused = true)]
async fn invariant_10_an_empty_or_cut_summary_replaces_nothing() {
    for summary in [
        ScriptedReply::text(" \n"),
        ScriptedReply::deltas([text("They talked ab"), Delta::End(EndReason::Length)]),
        ScriptedReply::deltas([text("I will not."), Delta::End(EndReason::Refused)]),
        ScriptedReply::silence(),
    ] {
        let limit = Duration::from_secs(3_600);
        let (run, pause, events) =
            tokio::time::timeout(limit, too_long(summary, Vec::new())).await.expect("it is bounded in time");
        let StopReason::Failed { failure } = done(pause).stop else { panic!() };
        assert_eq!(failure.kind, ErrorKind::ContextTooLong);
        assert!(failure.message.contains("could not be made shorter"), "{failure}");
        assert_eq!(run.history().messages().len(), 9, "the conversation is what it was");
        assert!(!events.iter().any(|event| matches!(event, Event::Compacted { .. })), "{events:?}");
        assert!(events.iter().any(|event| matches!(event, Event::NotCompacted { .. })), "{events:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn invariant_06_tokens_of_a_summary_count() {
    let summary = ScriptedReply::text("They talked.").usage(5_000, 70);
    let (_, pause, _) = too_long(summary, vec![ScriptedReply::text("done").usage(100, 2)]).await;
    assert_eq!(done(pause).spent.tokens, 5_172);

    // Where the provider does not count, four bytes are one token.
    let (_, pause, _) =
        too_long(ScriptedReply::text("They talked."), vec![ScriptedReply::text("done").usage(100, 2)]).await;
    let tokens = done(pause).spent.tokens - 102;
    assert!((1_000..3_000).contains(&tokens), "{tokens} for some 8,000 bytes");

    let refused = ScriptedReply::deltas([text("No."), Delta::End(EndReason::Refused)]).usage(5_000, 70);
    let (_, pause, _) = too_long(refused, Vec::new()).await;
    assert_eq!(done(pause).spent.tokens, 5_070, "a summary that is none was paid for too");
}

#[tokio::test(start_paused = true)]
async fn what_is_summarized_is_bounded_as_a_whole() {
    let fits = ScriptedReply::text("They talked.").expecting(|request| {
        let size = request.messages[0].size();
        if size <= 15_000 { Ok(()) } else { Err(format!("{size} bytes of a conversation of 30,000 that was too long")) }
    });
    let mut steps: Vec<ScriptedReply> = (0..9).map(|_| ScriptedReply::text("b ".repeat(1_500))).collect();
    steps.push(ScriptedReply::fails(Error::new(ErrorKind::ContextTooLong, "too long")));
    steps.extend([fits, ScriptedReply::text("done")]);
    let agent = Agent::new(ScriptedModel::new(steps), Vec::<Tool>::new()).unwrap();
    let mut run = run();
    for _ in 0..9 {
        done(drive(&agent, &mut run).await.0);
        run.say("more").unwrap();
    }
    assert_eq!(done(drive(&agent, &mut run).await.0).text, "done");
}

#[tokio::test(start_paused = true)]
async fn a_failed_compaction_is_an_event_when_only_a_threshold_requested_it() {
    let options = RunOptions::default().compact_above(Some(10));
    let steps = [ScriptedReply::calls([("look", json!({}))]).usage(50, 5), ScriptedReply::text("done")];
    let agent = Agent::new(ScriptedModel::new(steps), live(&Log::default())).unwrap();
    let (pause, events) = drive(&agent, &mut run_with(options)).await;
    assert_eq!(done(pause).text, "done");
    let told = events.iter().find_map(|e| if let Event::NotCompacted { failure } = e { Some(failure) } else { None });
    assert!(told.is_some_and(|failure| failure.message.contains("too short")), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn compaction_keeps_the_users_message_and_distinguishes_notes() {
    let budget = agent_loop::Budget::default().turns(Some(6)).at_limit(agent_loop::AtLimit::SumUp);
    let mut steps: Vec<ScriptedReply> = (0..6)
        .map(|turn| ScriptedReply::calls([("look", json!({"at": turn.to_string() + &"x".repeat(2_000)}))]))
        .collect();
    steps.push(ScriptedReply::fails(Error::new(ErrorKind::ContextTooLong, "too long")));
    steps.push(ScriptedReply::text("They looked."));
    steps.push(ScriptedReply::text("So far: nothing."));
    let agent = Agent::new(ScriptedModel::new(steps), live(&Log::default())).unwrap();
    let mut run = run_with(RunOptions::default().budget(budget));
    assert_eq!(done(drive(&agent, &mut run).await.0).text, "So far: nothing.");
    let said = run.history().messages().iter().filter(|m| matches!(***m, agent_loop::Message::User { .. }));
    assert_eq!(said.map(|message| message.text()).collect::<Vec<_>>(), ["go"], "{:?}", run.history().messages());
}

#[tokio::test(start_paused = true)]
async fn cumulative_text_is_shown_and_stored_once() {
    let so_far = |text: &str| Delta::CumulativeText { begin: 0, text: text.into() };
    let deltas = [text("ha "), text("ha"), so_far("ha ha"), so_far("ha ha!"), Delta::End(EndReason::Complete)];
    let agent = Agent::new(ScriptedModel::new([ScriptedReply::deltas(deltas)]), Vec::<Tool>::new()).unwrap();
    let mut run = run();
    let (pause, events) = drive(&agent, &mut run).await;
    let shown =
        events.iter().filter_map(|event| if let Event::Text(text) = event { Some(text.as_str()) } else { None });
    assert_eq!(shown.collect::<Vec<_>>(), ["ha ", "ha", "!"]);
    assert_eq!(done(pause).text, "ha ha!");
    assert_eq!(run.history().messages()[1].text(), "ha ha!");
}
