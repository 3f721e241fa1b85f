//! Invariants 1, 2 and 10: calls and results pair after any sequence of steps, saves, loads and compactions.

use std::time::Duration;

use agent_loop::{
    AskBeforeWriting, BoxFuture, CallPermission, CallPolicy, Compaction, Decision, Delta, DropThenSummarize, EndReason,
    Error, ErrorKind, History, Message, Messages, Model, NextStep, Part, Reply, ReplyStream, Request, Review, Run,
    Status, ToolCall, ToolError, ToolOutput, ToolResult, ToolSpec,
};
use futures_util::stream;
use proptest::prelude::*;
use serde_json::json;

use crate::test_tools::*;

/// Asks about writing and about what `list` gives; refuses `delete`.
struct StrictPolicy;

impl CallPolicy for StrictPolicy {
    fn permission(&self, call: &ToolCall, spec: &ToolSpec) -> CallPermission {
        match call.name.as_str() {
            "delete" => CallPermission::Deny { reason: "never".into() },
            _ => AskBeforeWriting.permission(call, spec),
        }
    }

    fn review(&self, call: &ToolCall, _: &ToolSpec) -> Review {
        if call.name == "list" { Review::Ask } else { Review::Pass }
    }
}

fn any_call() -> impl Strategy<Value = ToolCall> {
    let name = prop::sample::select(vec!["look", "list", "put", "delete", "unknown"]);
    let arguments = prop::sample::select(vec![json!({}), json!({"at": "a"}), json!({"at": 7}), json!("{\"at")]);
    let id = prop::sample::select(vec!["", "c1", "c2", "fc_001"]);
    let fault = prop::option::weighted(0.1, Just("cut".to_string()));
    (id, name, arguments, fault).prop_map(|(id, name, arguments, fault)| {
        let mut call = ToolCall::new(id, name, arguments);
        call.fault = fault;
        call
    })
}

fn any_reply() -> impl Strategy<Value = Reply> {
    let part = prop_oneof![
        1 => any::<bool>().prop_map(|_| Part::text("text")),
        3 => any_call().prop_map(Part::Call),
    ];
    let end = prop::sample::select(vec![
        EndReason::Complete,
        EndReason::Complete,
        EndReason::Complete,
        EndReason::Length,
        EndReason::Filtered,
    ]);
    (prop::collection::vec(part, 0..5), end).prop_map(|(parts, end)| Reply { parts, end, usage: None })
}

#[test]
fn invariant_01_each_way_to_break_a_history_is_refused() {
    let call = |id: &str| ToolCall::new(id, "look", json!({}));
    let made = |ids: &[&str]| Message::Assistant { parts: ids.iter().map(|id| Part::Call(call(id))).collect() };
    let of = |ids: &[&str]| Message::Results {
        results: ids.iter().map(|id| ToolResult::new(&call(id), Status::Ok, "")).collect(),
    };
    let (go, said) = (|| Message::user("go"), || Message::assistant("done"));
    for fits in [
        vec![go()],
        vec![go(), said()],
        vec![go(), made(&["a", "b"]), of(&["a", "b"]), made(&["c"]), of(&["c"]), said(), go()],
        vec![Message::note("(a summary)"), made(&["a"]), of(&["a"])],
    ] {
        assert!(History::from_messages(fits.clone()).is_ok(), "{fits:?}");
        assert!(Messages::from_iter(fits.clone()).check().is_ok(), "{fits:?}");
    }
    for (what, broken) in [
        ("the model speaks first", vec![said()]),
        ("nothing is said", vec![go(), made(&[])]),
        ("no result before the model speaks", vec![go(), made(&["a"]), said()]),
        ("no result before the person speaks", vec![go(), made(&["a"]), go()]),
        ("no result before other calls", vec![go(), made(&["a"]), made(&["b"]), of(&["b"])]),
        ("a result of another call", vec![go(), made(&["a"]), of(&["b"])]),
        ("a result too few", vec![go(), made(&["a", "b"]), of(&["a"])]),
        ("a result too many", vec![go(), made(&["a"]), of(&["a", "b"])]),
        ("a result twice", vec![go(), made(&["a"]), of(&["a", "a"])]),
        ("results twice", vec![go(), made(&["a"]), of(&["a"]), of(&["a"])]),
        ("results in another order", vec![go(), made(&["a", "b"]), of(&["b", "a"])]),
        ("results of no call", vec![go(), of(&["a"])]),
        ("results of none", vec![go(), made(&["a"]), of(&[])]),
        ("an id twice in a message", vec![go(), made(&["a", "a"]), of(&["a", "a"])]),
        ("an id twice", vec![go(), made(&["a"]), of(&["a"]), made(&["a"]), of(&["a"])]),
        ("an empty id", vec![go(), made(&[""]), of(&[""])]),
    ] {
        assert!(History::from_messages(broken.clone()).is_err(), "{what}");
        assert!(Messages::from_iter(broken.clone()).check().is_err(), "{what}");
        let (mended, repairs) = History::repaired(broken);
        assert!(mended.messages().check().is_ok(), "{what}");
        assert_eq!(repairs.is_empty(), what == "results in another order", "{what}: {repairs:?}");
    }
    let open = vec![go(), made(&["a"])];
    assert!(History::from_messages(open.clone()).is_ok(), "the results may still come");
    assert!(Messages::from_iter(open).check().is_err(), "but it must not be sent");
}

/// What may happen to a run from outside.
#[derive(Debug, Clone)]
enum Act {
    Reply(Reply),
    Fail(ErrorKind),
    Shorter,
    Finish(prop::sample::Index, bool),
    Decide(prop::sample::Index, u8),
    Cancel,
    Say,
    Retry,
    SaveAndLoad,
    CrashAndLoad,
}

fn any_act() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => any_reply().prop_map(Act::Reply),
        1 => prop::sample::select(vec![ErrorKind::ContextTooLong, ErrorKind::Unavailable]).prop_map(Act::Fail),
        1 => Just(Act::Shorter),
        8 => (any::<prop::sample::Index>(), any::<bool>()).prop_map(|(which, ok)| Act::Finish(which, ok)),
        5 => (any::<prop::sample::Index>(), 0..6u8).prop_map(|(which, how)| Act::Decide(which, how)),
        1 => Just(Act::Cancel),
        2 => Just(Act::Say),
        1 => Just(Act::Retry),
        2 => Just(Act::SaveAndLoad),
        1 => Just(Act::CrashAndLoad),
    ]
}

/// Everything that can be seen of a run but the calls that run elsewhere.
fn picture(run: &Run) -> serde_json::Value {
    serde_json::from_str(&run.to_json()).unwrap()
}

fn play(acts: Vec<Act>) -> Result<(), TestCaseError> {
    let tools = set();
    let context = run_context(&tools, &StrictPolicy);
    let mut run = run();
    let mut running: Vec<ToolCall> = Vec::new();
    let mut last_end = EndReason::Complete;
    for act in acts {
        match run.next(context) {
            NextStep::RunTools(calls) => {
                prop_assert!(!calls.is_empty());
                prop_assert_eq!(last_end, EndReason::Complete, "a call of a reply that was cut never runs");
                let writes = calls.iter().filter(|ready| ready.effect == agent_loop::Effect::Write).count();
                prop_assert!(writes == 0 || (calls.len() == 1 && running.is_empty()), "a write runs alone");
                for ready in calls {
                    prop_assert!(ready.call.fault.is_none() && tools.check(&ready.call).is_ok());
                    prop_assert!(ready.call.name != "delete", "denied always wins");
                    running.push(ready.call);
                }
            }
            NextStep::CallModel(request) => {
                prop_assert!(request.messages.check().is_ok());
                prop_assert!(running.is_empty());
            }
            NextStep::Done(_) => prop_assert!(run.history().messages().check().is_ok() && running.is_empty()),
            NextStep::Wait => prop_assert!(!running.is_empty()),
            NextStep::Ask(questions) => prop_assert!(!questions.is_empty() && running.is_empty()),
            NextStep::Compact => prop_assert!(running.is_empty()),
        }
        match act {
            Act::Reply(reply) => {
                let end = reply.end;
                if run.replied(reply).is_ok() {
                    last_end = end;
                }
            }
            Act::Fail(kind) => drop(run.failed(&Error::new(kind, "x"))),
            Act::Shorter => drop(run.compacted(History::from_messages([Message::user("s")]))),
            Act::Finish(which, ok) if !running.is_empty() => {
                let call = running.remove(which.index(running.len()));
                let end = if ok { Ok(ToolOutput::items(["a", "b"])) } else { Err(ToolError::new("failed")) };
                run.finished(context, &call.id, end.clone()).unwrap();
                prop_assert!(run.finished(context, &call.id, end).is_err(), "a call ends once");
            }
            Act::Decide(which, how) => {
                let questions = run.questions(context);
                if !questions.is_empty() {
                    let question = &questions[which.index(questions.len())];
                    let verdict = match how {
                        0 => Decision::Allow,
                        1 => Decision::AllowForSession,
                        2 => Decision::AllowEdited { arguments: json!({"at": "edited"}) },
                        3 => Decision::Deny { reason: None },
                        4 => Decision::Share { withheld: vec![1] },
                        _ => Decision::AllowEdited { arguments: json!({"at": 1}) },
                    };
                    let decision = question.decide(verdict);
                    if run.decide(context, [decision.clone()]).is_ok() {
                        prop_assert!(run.decide(context, [decision]).is_err(), "each call is decided once");
                    }
                }
            }
            Act::Cancel => {
                run.cancel(vec![Part::text("half")]);
                running.clear();
                prop_assert!(run.is_done() && run.history().messages().check().is_ok());
            }
            Act::Say => drop(run.say("more")),
            Act::Retry => drop(run.retry()),
            Act::SaveAndLoad if running.is_empty() => {
                let (loaded, repairs) = Run::from_json(&run.to_json()).unwrap();
                prop_assert!(repairs.is_empty());
                prop_assert_eq!(picture(&loaded), picture(&run));
                run = loaded;
            }
            Act::CrashAndLoad => {
                let (loaded, repairs) = Run::from_json(&run.to_json()).unwrap();
                prop_assert!(repairs.is_empty());
                (run, running) = (loaded, Vec::new());
            }
            Act::Finish(..) | Act::SaveAndLoad => {}
        }
        run.spend_time(Duration::from_millis(1));
    }
    run.cancel(Vec::new());
    prop_assert!(run.history().messages().check().is_ok());
    Ok(())
}

fn any_message() -> impl Strategy<Value = Message> {
    let id = prop::sample::select(vec!["", "a", "b", "c", "a_2", "call_1"]);
    let call = id.clone().prop_map(|id| Part::Call(ToolCall::new(id, "look", json!({}))));
    let part = prop_oneof![Just(Part::text("t")), call];
    let result = id.prop_map(|id| ToolResult::new(&ToolCall::new(id, "look", json!({})), Status::Ok, "r"));
    prop_oneof![
        Just(Message::user("u")),
        Just(Message::note("n")),
        prop::collection::vec(part, 0..4).prop_map(|parts| Message::Assistant { parts }),
        prop::collection::vec(result, 0..4).prop_map(|results| Message::Results { results }),
    ]
}

/// Sums up whatever it is given.
struct Summariser;

impl Model for Summariser {
    fn name(&self) -> &str {
        "summarizer"
    }

    fn reply(&self, request: Request) -> BoxFuture<'_, agent_loop::error::Result<ReplyStream<'_>>> {
        assert!(request.messages.check().is_ok() && request.tools.is_empty());
        let deltas = [Ok(Delta::Text { text: "sum".into() }), Ok(Delta::End(EndReason::Complete))];
        Box::pin(async move { Ok(Box::pin(stream::iter(deltas)) as ReplyStream<'_>) })
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Any whole history that can be made shorter is whole afterwards, and ends as it ended.
    #[test]
    fn invariant_10_compaction_keeps_calls_and_results_together(
        messages in prop::collection::vec(any_message(), 0..20),
        keep_messages in 0..8usize,
        enough in 0..100usize,
    ) {
        let (history, _) = History::repaired(messages);
        let compaction = DropThenSummarize::default().keep_messages(keep_messages).enough(enough).small_result(0);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        if let Ok(shorter) = runtime.block_on(compaction.compact(&history, &Summariser)) {
            prop_assert!(shorter.messages().check().is_ok());
            let kept = keep_messages.min(history.messages().len());
            let ends = [&history, &shorter].map(|history| {
                let messages = history.messages();
                messages[messages.len() - kept..].to_vec()
            });
            prop_assert_eq!(&ends[0], &ends[1], "the last messages stay word for word");
        }
    }

    /// A run is walked at random through replies, failures, decisions, crashes.
    #[test]
    fn invariants_01_and_02_hold_for_random_runs(acts in prop::collection::vec(any_act(), 1..60)) {
        play(acts)?;
    }

    /// Any list of messages can be repaired, a repaired one needs no repair, and what needs none is not changed.
    #[test]
    fn invariant_01_any_history_can_be_repaired(messages in prop::collection::vec(any_message(), 0..12)) {
        let (history, repairs) = History::repaired(messages.clone());
        prop_assert!(history.messages().check().is_ok());
        let again: Vec<Message> = history.messages().iter().map(|message| Message::clone(message)).collect();
        let (twice, none) = History::repaired(again);
        prop_assert!(none.is_empty(), "{none:?}");
        prop_assert_eq!(twice.messages(), history.messages());
        let whole = Messages::from_iter(messages.clone());
        if whole.check().is_ok() {
            prop_assert!(repairs.is_empty(), "{repairs:?}");
            prop_assert_eq!(&whole, history.messages());
        } else {
            // Results in other messages or another order are put together without a word.
            let has_results = messages.iter().any(|message| matches!(message, Message::Results { .. }));
            prop_assert!(!repairs.is_empty() || has_results);
        }
    }

    /// What a history takes is what the check accepts, message by message.
    #[test]
    fn invariant_01_a_broken_history_cannot_be_built(messages in prop::collection::vec(any_message(), 0..8)) {
        let built = History::from_messages(messages.clone());
        let is_whole = |history: &History| history.open_calls().next().is_none();
        let accepted = Messages::from_iter(messages).check().is_ok();
        prop_assert_eq!(built.is_ok_and(|history| is_whole(&history)), accepted);
    }
}
