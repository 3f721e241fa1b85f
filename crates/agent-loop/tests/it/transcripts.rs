//! Transcripts: every step is on disk, a crash at any byte loses at most the last step, a replay gives the same run.

use agent_loop::{
    Agent, AskBeforeWriting, Decision, Durability, ErrorKind, Event, Message, NextStep, Observer, Pause, ReplayModel,
    Reply, Run, ScriptedModel, ScriptedReply, Tool, Transcript, to_markdown,
};
use serde_json::json;

use crate::test_tools::*;

/// A run of three turns with a decision in it, each step written to `path`.
pub(crate) fn written(path: &std::path::Path) -> Run {
    let tools = set();
    let context = run_context(&tools, &AskBeforeWriting);
    let mut run = run();
    let mut transcript = Transcript::create(path, &run, Durability::Process).unwrap();
    let mut step = |run: &Run| transcript.save(run).unwrap();
    request(run.next(context));
    run.replied(calls(&[("look", json!({"at": "a"})), ("put", json!({"at": "ü"}))])).unwrap();
    step(&run);
    run.next(context);
    step(&run);
    finish(&mut run, context, "c1", "seen\nin two lines");
    step(&run);
    let asked = questions(run.next(context));
    decide(&mut run, context, &asked[0], Decision::Allow);
    step(&run);
    run.next(context);
    step(&run);
    finish(&mut run, context, "c2", "written");
    request(run.next(context));
    step(&run);
    run.replied(Reply::text("done")).unwrap();
    step(&run);
    run
}

fn json(run: &Run) -> serde_json::Value {
    serde_json::from_str(&run.to_json()).unwrap()
}

#[test]
fn a_transcript_loads_as_it_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    let run = written(&path);
    let (loaded, repairs) = Transcript::load(&path).unwrap();
    assert!(repairs.is_empty());
    assert_eq!(json(&loaded), json(&run));
    let text = std::fs::read_to_string(&path).unwrap();
    let messages = text.lines().filter(|line| line.starts_with("{\"entry\":\"message\"")).count();
    assert_eq!(messages, run.history().messages().len(), "each message is written once");
    let error = Transcript::create(&path, &run, Durability::Process).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io, "a file that is there is not overwritten");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn a_crash_at_any_byte_leaves_a_transcript_that_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    written(&path);
    let bytes = std::fs::read(&path).unwrap();
    let first_line = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let tools = set();
    let context = run_context(&tools, &AskBeforeWriting);
    for end in first_line..=bytes.len() {
        let cut = folder.path().join("cut.jsonl");
        std::fs::write(&cut, &bytes[..end]).unwrap();
        let (mut transcript, mut run, _) = Transcript::open(&cut, Durability::Process).unwrap();
        if let NextStep::CallModel(request) = run.next(context) {
            request.messages.check().unwrap();
        }
        run.cancel(Vec::new());
        run.history().messages().check().unwrap();
        transcript.append(&run).unwrap();
        let (again, repairs) = Transcript::load(&cut).unwrap();
        assert!(repairs.is_empty(), "{end}: {repairs:?}");
        assert_eq!(json(&again), json(&run), "{end}");
    }
    for end in [0, first_line - 1] {
        std::fs::write(&path, &bytes[..end]).unwrap();
        assert_eq!(Transcript::load(&path).unwrap_err().kind(), ErrorKind::Damaged);
    }
}

#[test]
fn damage_is_named_and_newer_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    written(&path);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replacen("{\"entry\":\"message\"", "{\"entry\":message\"", 1)).unwrap();
    let error = Transcript::load(&path).unwrap_err();
    assert!(error.kind() == ErrorKind::Damaged && error.to_string().contains("line 2"), "{error}");
    std::fs::write(&path, text.replacen("\"version\":1", "\"version\":99", 1)).unwrap();
    assert_eq!(Transcript::load(&path).unwrap_err().kind(), ErrorKind::Newer);
    std::fs::write(&path, text.clone() + "{\"entry\":\"of a later version\",\"x\":1}\n").unwrap();
    Transcript::load(&path).unwrap();
}

#[test]
fn a_compacted_history_is_written_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    let tools = set();
    let context = run_context(&tools, &AskBeforeWriting);
    let mut run = Run::new(agent_loop::RunId("r".into()), Default::default(), "a long beginning");
    let mut transcript = Transcript::create(&path, &run, Durability::Machine).unwrap();
    request(run.next(context));
    run.failed(&agent_loop::Error::new(ErrorKind::ContextTooLong, "x")).unwrap();
    transcript.append(&run).unwrap();
    run.compacted(agent_loop::History::from_messages([Message::user("short")])).unwrap();
    transcript.append(&run).unwrap();
    request(run.next(context));
    run.replied(Reply::text("ok")).unwrap();
    transcript.append(&run).unwrap();
    assert_eq!(json(&Transcript::load(&path).unwrap().0), json(&run));
}

#[tokio::test(start_paused = true)]
async fn a_paused_run_goes_on_in_another_process_and_a_replay_says_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    let cancel = Default::default();
    let agent = |steps: Vec<ScriptedReply>| Agent::new(ScriptedModel::new(steps), live(&Default::default())).unwrap();

    let first = agent(vec![ScriptedReply::calls([("look", json!({})), ("put", json!({}))])]);
    let mut run = run();
    let transcript = Transcript::create(&path, &run, Durability::Process).unwrap();
    let mut events = 0;
    let mut observer = (transcript, |_: Event| events += 1);
    let Pause::Waiting(asked) = first.drive(&mut run, &mut observer, &cancel).await.unwrap() else { panic!() };
    drop((run, observer));
    assert!(events > 3);

    let second = agent(vec![ScriptedReply::text("done")]);
    let (mut transcript, mut run, _) = Transcript::open(&path, Durability::Process).unwrap();
    decide(&mut run, second.context(), &asked[0], Decision::Allow);
    let Pause::Done(outcome) = second.drive(&mut run, &mut transcript, &cancel).await.unwrap() else { panic!() };
    assert_eq!(outcome.text, "done");

    let recorded = Transcript::load(&path).unwrap().0.history().messages().clone();
    let replay = Agent::new(ReplayModel::new(recorded.clone()), live(&Default::default())).unwrap();
    let mut again = crate::test_tools::run();
    let Pause::Waiting(asked) = replay.drive(&mut again, &mut (), &cancel).await.unwrap() else { panic!() };
    decide(&mut again, replay.context(), &asked[0], Decision::Allow);
    replay.drive(&mut again, &mut (), &cancel).await.unwrap();
    assert_eq!(*again.history().messages(), recorded);

    let other = Agent::new(ReplayModel::new(recorded.clone()), Vec::<Tool>::new()).unwrap();
    let mut differs = Run::new(agent_loop::RunId("r".into()), Default::default(), "another question");
    let Pause::Done(outcome) = other.drive(&mut differs, &mut (), &cancel).await.unwrap() else { panic!() };
    assert!(outcome.stop.to_string().contains("message 1 differs"), "{}", outcome.stop);

    let page = to_markdown(recorded.iter().map(|message| &**message));
    assert!(page.starts_with("## User\n\ngo\n\n## Assistant\n\n**Call of `look`**"), "{page}");
}
