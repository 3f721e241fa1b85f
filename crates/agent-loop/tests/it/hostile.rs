//! Unusual use: states edited by hand, odd requests, cancelling at any moment, limits of zero or infinity, and endless
//! replies.

use std::time::Duration;

use agent_loop::{
    Agent, AllowAll, AtLimit, Budget, Delta, EndReason, Error, ErrorKind, Event, Limits, NextStep, Observer, Part,
    Pause, Reply, Retries, Run, RunOptions, ScriptedModel, ScriptedReply, StopReason, TextCalls, ToolOutput,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::edited::edited;
use crate::test_tools::*;

/// Drives a run to its end, whatever it asks for; its history stays whole.
fn drive_to_the_end(run: &mut Run, what: &str) {
    let tools = set();
    let context = run_context(&tools, &AllowAll);
    for turn in 0..40 {
        match run.next(context) {
            NextStep::CallModel(request) => {
                request.messages.check().unwrap_or_else(|error| panic!("{what}: {error}"));
                drop(request);
                let reply = if turn < 2 {
                    calls(&[("look", json!({})), ("put", json!({"at": "x"}))])
                } else {
                    Reply::text("{}")
                };
                run.replied(reply).unwrap();
            }
            NextStep::Compact => drop(run.compacted(Err(Error::new(ErrorKind::Unavailable, "no")))),
            NextStep::RunTools(ready) => {
                for ready in ready {
                    run.finished(context, &ready.call.id, Ok(ToolOutput::text("seen"))).unwrap();
                }
            }
            NextStep::Ask(questions) => {
                let decisions: Vec<_> =
                    questions.iter().map(|question| question.decide(agent_loop::Decision::Allow)).collect();
                run.decide(context, decisions).unwrap_or_else(|rejected| panic!("{what}: {rejected:?}"));
            }
            NextStep::Wait => panic!("{what}: nothing runs"),
            NextStep::Done(_) => {
                run.history().messages().check().unwrap_or_else(|error| panic!("{what}: {error}"));
                return;
            }
        }
    }
    panic!("{what}: no end");
}

#[test]
fn an_edited_saved_run_is_rejected_or_resumes() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/runs");
    let (mut went_on, mut refused) = (0, 0);
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let file: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        for (what, changed) in edited(&file["run"]) {
            match Run::from_json(&changed.to_string()) {
                Err(_) => refused += 1,
                Ok((mut run, _)) => {
                    went_on += 1;
                    let what = format!("{} {what}", path.display());
                    drive_to_the_end(&mut run, &what);
                    run.say("go on").unwrap();
                    drive_to_the_end(&mut run, &what);
                }
            }
        }
    }
    assert!(went_on > 1_000 && refused > 1_000, "{went_on} {refused}");
}

#[tokio::test]
async fn a_schema_that_asks_for_the_same_field_again_and_again_ends() {
    let deep = (0..8).fold(
        json!({"type": "string"}),
        |inner, _| json!({"type": "object", "properties": {"a": inner}, "required": vec!["a"; 100]}),
    );
    let mut tool = specs().remove(0);
    tool.parameters = deep;
    let example = agent_loop::text_calls::example(&tool.parameters);
    assert!(example.to_string().starts_with("{\"a\":{\"a\":"));
}

/// Cancels when it has heard or saved so much.
struct CancelsAt {
    left: usize,
    cancel: CancellationToken,
}

impl CancelsAt {
    fn count(&mut self) {
        match self.left {
            0 => self.cancel.cancel(),
            _ => self.left -= 1,
        }
    }
}

impl Observer for CancelsAt {
    fn event(&mut self, _: Event) {
        self.count();
    }

    fn save(&mut self, _: &Run) -> agent_loop::error::Result<()> {
        self.count();
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn invariant_09_cancelling_at_each_moment_leaves_a_history_to_go_on_from() {
    let (mut cancelled, mut moment) = (0, 0);
    loop {
        let failing = ScriptedReply::fails(Error::new(ErrorKind::Unavailable, "busy"));
        let said = "I look. <tool_call>{\"name\":\"look\"}</tool_call><tool_call>{\"name\":\"put\"}</tool_call>\
            <tool_call>{\"name\":\"list\"}</tool_call>";
        let steps = [
            failing,
            ScriptedReply::text(said).usage(9, 9),
            ScriptedReply::text("Done."),
            ScriptedReply::text("Again."),
        ];
        let model = ScriptedModel::new(steps).without_tools();
        let model = std::sync::Arc::new(model);
        let agent = Agent::new(TextCalls::new(std::sync::Arc::clone(&model)), live(&Default::default())).unwrap();
        let agent = agent.policy(AllowAll);
        let mut run = run();
        let cancel = CancellationToken::new();
        let mut observer = CancelsAt { left: moment, cancel: cancel.clone() };
        let began = tokio::time::Instant::now();
        let pause = agent.drive(&mut run, &mut observer, &cancel).await.unwrap();
        assert!(began.elapsed() < Duration::from_secs(5), "moment {moment}");
        let Pause::Done(outcome) = pause else { panic!("{pause:?}") };
        run.history().messages().check().unwrap();
        let is_cancelled = outcome.stop == StopReason::Cancelled;
        if is_cancelled {
            cancelled += 1;
            // It goes on: in another process, with what the person says next.
            let (mut loaded, repairs) = Run::from_json(&run.to_json()).unwrap();
            assert_eq!(repairs, []);
            loaded.say("go on").unwrap();
            drive_to_the_end(&mut loaded, "after cancelling");
        }
        // A scripted model takes it ill when steps are left, and here some are.
        std::mem::forget(model);
        if !is_cancelled && observer.left > 0 {
            break;
        }
        moment += 1;
    }
    assert!(cancelled > 15, "{cancelled} moments");
}

#[tokio::test(start_paused = true)]
async fn zero_and_infinite_limits_work() {
    let nothing = Budget::default()
        .turns(Some(0))
        .calls(Some(0))
        .tokens(Some(0))
        .time(Some(Duration::ZERO))
        .repeats(Some(0))
        .at_limit(AtLimit::SumUp);
    let all = |limit: usize| {
        Budget::default()
            .turns((limit == 0).then_some(0))
            .calls((limit == 1).then_some(0))
            .tokens((limit == 2).then_some(0))
            .time((limit == 3).then_some(Duration::ZERO))
            .repeats((limit == 4).then_some(0))
            .at_limit(AtLimit::Stop)
    };
    for budget in (0..5).map(all).chain([nothing]) {
        let mut run = run_with(RunOptions::default().budget(budget).compact_above(Some(0)));
        let tools = set();
        let context = run_context(&tools, &AllowAll);
        let mut turns = 0;
        while !matches!(run.next(context), NextStep::Done(_)) {
            match run.next(context) {
                NextStep::Compact => drop(run.compacted(Err(Error::new(ErrorKind::Unavailable, "no")))),
                NextStep::CallModel(_) => {
                    turns += 1;
                    run.replied(calls(&[("look", json!({}))])).unwrap();
                }
                // It was handed out by the look before.
                NextStep::Wait => finish(&mut run, context, &format!("c{turns}"), "seen"),
                other => panic!("{other:?}"),
            }
            assert!(turns < 3);
        }
        run.history().messages().check().unwrap();
    }

    let ever = Duration::MAX;
    let retries = Retries::default().attempts(u32::MAX).first(ever).longest(ever).longest_asked(ever);
    for asked in [None, Some(ever)] {
        let error = Error::new(ErrorKind::RateLimit, "x");
        let error = asked.map_or_else(|| Error::new(ErrorKind::RateLimit, "x"), |asked| error.with_retry_after(asked));
        for random in [0.0, 0.5, 1.0] {
            assert!(retries.delay(u32::MAX - 1, &error, random).unwrap() > Duration::from_secs(1 << 40));
        }
    }
    for (time, seats) in [(ever, usize::MAX), (Duration::ZERO, 0)] {
        let limits = Limits::default().cancel(time).parallel_reads(seats);
        let limits = if time == ever { limits.tool(time).silence(time).compaction(time) } else { limits };
        let model = ScriptedModel::new([
            ScriptedReply::calls([("look", json!({})), ("list", json!({}))]),
            ScriptedReply::text("Done."),
        ]);
        let agent = Agent::new(model, live(&Default::default())).unwrap().limits(limits.clone());
        assert!(matches!(agent.drive(&mut run(), &mut (), &Default::default()).await.unwrap(), Pause::Done(_)));

        // Cancelled while tools run.
        let model = ScriptedModel::new([ScriptedReply::calls([("look", json!({})), ("list", json!({}))])]);
        let agent = Agent::new(model, live(&Default::default())).unwrap().limits(limits);
        let cancel = CancellationToken::new();
        let mut observer = |event| {
            if let Event::ToolStarted { .. } = event {
                cancel.cancel()
            }
        };
        let mut run = run();
        let pause = agent.drive(&mut run, &mut observer, &cancel).await.unwrap();
        assert!(matches!(pause, Pause::Done(outcome) if outcome.stop == StopReason::Cancelled));
        run.history().messages().check().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_reply_of_many_megabytes_and_thousands_of_calls() {
    let text = "x".repeat(1 << 20);
    let mut deltas: Vec<Delta> = (0..20).map(|_| Delta::Text { text: text.clone() }).collect();
    for index in 0..5_000 {
        deltas.push(Delta::CallStart { index, id: "same".into(), name: "look".into() });
        deltas.push(Delta::CallEnd { index, opaque: None });
    }
    deltas.push(Delta::End(EndReason::Complete));
    let agent = Agent::new(ScriptedModel::new([ScriptedReply::deltas(deltas)]), live(&Default::default())).unwrap();
    let mut run = run();
    let Pause::Done(outcome) = agent.drive(&mut run, &mut (), &Default::default()).await.unwrap() else { panic!() };
    assert_eq!(outcome.spent.calls, 64, "the budget's");
    assert_eq!(run.results().count(), 5_000, "each has its result, whatever it was called");
    run.history().messages().check().unwrap();
    let is_whole = |part: &Part| matches!(part, Part::Text { text, .. } if text.len() == 20 << 20);
    assert!(matches!(&*run.history().messages()[1], agent_loop::Message::Assistant { parts } if is_whole(&parts[0])));
}
