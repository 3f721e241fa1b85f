//! JSON that programs store or pass on keeps its field names and values: events, deltas, questions, decisions, errors.
//! `AGENT_LOOP_WRITE_RUNS=1 cargo test -p agent-loop formats` writes the fixtures again.

use std::path::PathBuf;
use std::time::Duration;

use agent_loop::*;
use serde_json::{Value, json};

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata/formats").join(name)
}

fn value(of: impl serde::Serialize) -> Value {
    serde_json::to_value(of).unwrap()
}

/// One value of each kind, by name.
fn all() -> Value {
    let call = ToolCall::new("c1", "put", json!({"at": "a"}));
    let run = RunId("run_a".into());
    let output = ToolOutput::items(["x", "y"]);
    let question = |about, output| Question {
        run: run.clone(),
        call: call.clone(),
        effect: Effect::Write,
        about,
        digest: Digest::of(&run, &call, output),
    };
    let running = question(QuestionSubject::Running { why: "it writes".into() }, None);
    let sharing = question(QuestionSubject::Sharing { output: output.clone() }, Some(&output));
    let failure = Failure::from(&Error::new(ErrorKind::RateLimit, "too many requests"));
    let outcome = |stop: StopReason| -> RunOutcome {
        let spent = json!({"turns": 1});
        serde_json::from_value(json!({"stop": stop, "text": "done", "answer": 1, "spent": spent})).unwrap()
    };
    let usage = Usage::default().input(1).output(2).cached(3).reasoning(4);
    let mut ran = ToolResult::new(&call, Status::Ok, "x");
    (ran.items, ran.duration) = (output.items.clone(), Some(Duration::from_millis(9)));
    let events = [
        Event::Text("t".into()),
        Event::Commentary("t".into()),
        Event::Reasoning("r".into()),
        Event::CallStarted { index: 1, id: "x".into(), name: "put".into() },
        Event::CallArguments { index: 1, text: "{".into() },
        Event::CallFault { index: 1, fault: "broken".into() },
        Event::Warning("odd".into()),
        Event::Usage(usage),
        Event::Retry { attempt: 2, delay: Duration::from_millis(7), failure: failure.clone() },
        Event::ApprovalNeeded(running.clone()),
        Event::ToolStarted { index: 1, call: call.clone() },
        Event::ToolFinished { index: 1, result: ran },
        Event::ToolFinished { index: 1, result: ToolResult::new(&call, Status::Denied, "no") },
        Event::Compacted { before: 9, after: 3 },
        Event::NotCompacted { failure: failure.clone() },
        Event::Done(outcome(StopReason::Answered)),
    ];
    let stops = [
        StopReason::Answered,
        StopReason::BadAnswer { faults: "- /n".into() },
        StopReason::Limit { limit: Limit::Turns },
        StopReason::Length,
        StopReason::Filtered,
        StopReason::Refused,
        StopReason::Empty,
        StopReason::Cancelled,
        StopReason::Failed { failure: failure.clone() },
    ];
    let deltas = [
        Delta::Text { text: "t".into() },
        Delta::CumulativeText { begin: 0, text: "tt".into() },
        Delta::TextStart { phase: Some(TextPhase::Commentary) },
        Delta::TextEnd { opaque: json!({"signature": "s"}) },
        Delta::Reasoning { text: "r".into(), opaque: Some(json!({"signature": "s"})) },
        Delta::CallStart { index: 0, id: "c".into(), name: "put".into() },
        Delta::CallArguments { index: 0, text: "{}".into() },
        Delta::CallEnd { index: 0, opaque: None },
        Delta::CallFault { index: 1, fault: "f".into(), raw: "{".into() },
        Delta::Warning { text: "odd".into() },
        Delta::Usage(usage),
        Delta::Progress,
        Delta::End(EndReason::Complete),
    ];
    let decisions = [
        Decision::Allow,
        Decision::AllowForSession,
        Decision::AllowEdited { arguments: json!({"at": "b"}) },
        Decision::Deny { reason: Some("not now".into()) },
        Decision::Share { withheld: vec![1] },
    ];
    let permissions = [
        CallPermission::Allow,
        CallPermission::Ask { why: "it writes".into(), grant: "put".into() },
        CallPermission::Deny { reason: "never".into() },
    ];
    let rejections = [
        RejectionReason::OtherRun,
        RejectionReason::UnknownCall,
        RejectionReason::AlreadyDecided,
        RejectionReason::OtherDigest,
        RejectionReason::OtherQuestion,
        RejectionReason::BadArguments("- /at".into()),
        RejectionReason::NoSuchItem(3),
    ];
    let rejections =
        rejections.map(|why| -> Rejection { serde_json::from_value(json!({"call": "c1", "why": why})).unwrap() });
    json!({
        "events": events.iter().map(Event::to_json).collect::<Vec<_>>(),
        "questions": [running.clone(), sharing],
        "stop reasons": stops.map(|stop| value(outcome(stop))),
        "deltas": deltas.map(value),
        "decisions": decisions.map(|decision| value(running.decide(decision))),
        "permissions": permissions.map(value),
        "rejections": rejections.map(value),
        "reviews": value([Review::Pass, Review::Ask]),
        "limits": value([Limit::Turns, Limit::Calls, Limit::Tokens, Limit::Time, Limit::Repeats]),
    })
}

/// Where the fixtures are to be written, they are.
fn read_or_write(name: &str, now: &str) -> String {
    if std::env::var_os("AGENT_LOOP_WRITE_RUNS").is_some() {
        std::fs::create_dir_all(fixture("")).unwrap();
        std::fs::write(fixture(name), now).unwrap();
    }
    std::fs::read_to_string(fixture(name)).unwrap()
}

#[test]
fn names_and_values_in_json_stay_the_same() {
    let now = all();
    let stored = read_or_write("values.json", &format!("{now:#}\n"));
    assert_eq!(now, serde_json::from_str::<Value>(&stored).unwrap());
    for (group, read) in [
        ("deltas", serde_json::from_value::<Vec<Delta>>(now["deltas"].clone()).map(value)),
        ("decisions", serde_json::from_value::<Vec<BoundDecision>>(now["decisions"].clone()).map(value)),
        ("questions", serde_json::from_value::<Vec<Question>>(now["questions"].clone()).map(value)),
        ("stop reasons", serde_json::from_value::<Vec<RunOutcome>>(now["stop reasons"].clone()).map(value)),
    ] {
        assert_eq!(read.unwrap(), now[group], "{group} are read again");
    }
}

/// A transcript as it is without the times of its lines, as earlier versions wrote it.
fn without_times(lines: &str) -> String {
    let line = |line: &str| {
        let (before, rest) = line.split_once(",\"at\":").expect("every line has its time");
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap();
        assert!(digits >= 13, "milliseconds since 1970: {line}");
        format!("{before}{}\n", &rest[digits..])
    };
    lines.lines().map(line).collect()
}

#[test]
fn a_transcript_of_version_1_loads_and_is_written_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    let run = crate::transcripts::written(&path);
    let written = without_times(&std::fs::read_to_string(&path).unwrap());
    assert_eq!(read_or_write("transcript-v1.jsonl", &written), written);
    let (loaded, repairs) = Transcript::load(fixture("transcript-v1.jsonl")).unwrap();
    assert!(repairs.is_empty(), "{repairs:?}");
    assert_eq!(loaded.to_json(), run.to_json());
}
