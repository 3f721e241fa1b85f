//! Whole runs of an agent over a model in the process: a call that needs approval, another process, the answer.

use std::process::Command;
use std::sync::Arc;

use agent_loop::{
    Agent, AskBeforeWriting, Budget, Decision, Event, Pause, Run, RunId, RunOptions, Status, StopReason, Tool,
    ToolChoice, ToolOutput,
};

use crate::real_model::named_by;
use crate::test_tools::{decide, done, drive};

use super::*;

fn live() -> Vec<Tool> {
    let tool = |spec: ToolSpec| {
        Tool::dynamic(spec, |call, _| async move { Ok(ToolOutput::text(format!("{} is done", call.name))) })
    };
    tools().into_iter().map(tool).collect()
}

/// Set for the other process.
const RUN_FOLDER: &str = "AGENT_LOOP_RUN_FOLDER";

#[tokio::test]
async fn a_call_waits_for_a_person_and_another_process_goes_on() {
    if let Some(folder) = std::env::var_os(RUN_FOLDER) {
        return go_on(Path::new(&folder)).await;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = TinyModel::new(6).write(folder.path());
    let model = Arc::new(load_file(&file, |options| options).await);
    let agent = Agent::new(Arc::clone(&model), live()).unwrap();
    let options = RunOptions::default()
        .budget(Budget::default().turns(Some(2)))
        .tool_choice(ToolChoice::Tool("write_note".into()))
        .max_output_tokens(Some(200));
    let mut run = Run::new(RunId("run_1".into()), options, "Write it down.");
    let (Pause::Waiting(asked), _) = drive(&agent, &mut run).await else { panic!("a write is asked about") };
    assert_eq!(asked[0].call.name, "write_note");
    model.save_cache(folder.path().join("run.cache")).await.unwrap();
    std::fs::write(folder.path().join("run.json"), run.to_json()).unwrap();

    let test = "local::conversation::a_call_waits_for_a_person_and_another_process_goes_on";
    let mut process = Command::new(std::env::current_exe().unwrap());
    process.args(["--exact", test, "--nocapture"]).env(RUN_FOLDER, folder.path());
    let output = process.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let went_on = std::fs::read_to_string(folder.path().join("run.json")).unwrap();
    let (run, repairs) = Run::from_json(&went_on).unwrap();
    assert!(repairs.is_empty());
    let ran = run.results().next().expect("the other process has run the call");
    assert_eq!((&ran.call, ran.status, ran.text().as_str()), (&asked[0].call.id, Status::Ok, "write_note is done"));
}

/// Goes on with the run and the cache in a folder.
async fn go_on(folder: &Path) {
    let model = Arc::new(load_file(&folder.join("tiny-6.gguf"), |options| options).await);
    let restored = model.restore_cache(folder.join("run.cache")).await.unwrap() as u64;
    let agent = Agent::new(Arc::clone(&model), live()).unwrap();
    let (mut run, _) = Run::from_json(&std::fs::read_to_string(folder.join("run.json")).unwrap()).unwrap();
    for question in run.questions(agent.context()) {
        decide(&mut run, agent.context(), &question, Decision::Allow);
    }
    let (_, events) = drive(&agent, &mut run).await;
    let usage = events.iter().find_map(|event| if let Event::Usage(usage) = event { Some(*usage) } else { None });
    let usage = usage.expect("the model was asked again");
    assert!(usage.cached * 10 > restored * 9, "{usage:?}: what was saved is not evaluated again, but {restored}");
    std::fs::write(folder.join("run.json"), run.to_json()).unwrap();
}

#[tokio::test]
async fn whatever_the_weights_are_a_run_ends_and_its_history_is_whole() {
    let (mut writes, mut reads) = (0, 0);
    for seed in 0..8 {
        let tiny = TinyModel::new(seed).bias(&[("<tool_call>", 1.2), ("<|im_end|>", 1.0)]);
        let model = load(&tiny, |options| options.context(Some(4_096)).seed(Some(seed as u32))).await;
        let agent = Agent::new(model, live()).unwrap().policy(AskBeforeWriting);
        let options = RunOptions::default().budget(Budget::default().turns(Some(5))).max_output_tokens(Some(200));
        let mut run = Run::new(RunId(format!("run_{seed}")), options, "Tidy up.");
        let outcome = loop {
            match drive(&agent, &mut run).await.0 {
                Pause::Done(outcome) => break outcome,
                Pause::Waiting(questions) => {
                    let (loaded, repairs) = Run::from_json(&run.to_json()).unwrap();
                    assert!(repairs.is_empty());
                    run = loaded;
                    let verdict = if seed % 2 == 0 { Decision::Allow } else { Decision::Deny { reason: None } };
                    let decisions: Vec<_> = questions.iter().map(|question| question.decide(verdict.clone())).collect();
                    run.decide(agent.context(), decisions).unwrap();
                }
            }
        };
        assert!(!matches!(outcome.stop, StopReason::Failed { .. }), "{outcome:?}");
        assert!(run.history().messages().check().is_ok());
        for result in run.results() {
            match (result.name.as_str(), result.status) {
                ("write_note", Status::Ok | Status::Denied) => writes += 1,
                (_, Status::Ok) => reads += 1,
                // A call that a limit has cut.
                (_, status) => assert_ne!(status, Status::Ok),
            }
        }
    }
    assert!(writes > 0 && reads > 0, "{writes} writes, {reads} reads");
}

#[tokio::test]
async fn a_conversation_that_is_too_long_is_made_shorter() {
    let tiny = TinyModel::new(1).bias(&[("a", 1.4), ("<|im_end|>", 1.2)]);
    let model = load(&tiny, |options| options.context(Some(1_024)).top_p(0.9)).await;
    let agent = Agent::new(model, Vec::<Tool>::new()).unwrap();
    let options = RunOptions::default().max_output_tokens(Some(60));
    let mut run = Run::new(RunId("run_1".into()), options, "first ".repeat(40));
    let mut compacted = 0;
    for _ in 0..8 {
        let (pause, events) = drive(&agent, &mut run).await;
        let outcome = done(pause);
        assert!(!matches!(outcome.stop, StopReason::Failed { .. }), "{outcome:?}");
        compacted += events.iter().filter(|event| matches!(event, Event::Compacted { .. })).count();
        run.say("more ".repeat(40)).unwrap();
    }
    assert!(compacted > 0, "eight turns of 260 tokens do not fit");
}

/// The flow runs; the answers of the model that `AGENT_LOOP_LOCAL_MODEL` names are not judged.
#[tokio::test]
async fn a_real_model_searches_writes_after_a_yes_and_answers() {
    let Some(path) = named_by("AGENT_LOOP_LOCAL_MODEL") else { return };
    let options = LocalOptions::new(path).context(Some(4_096)).threads(Some(1)).seed(Some(1)).temperature(0.2);
    let model = LocalModel::load(options, |_| {}, &Default::default()).await.unwrap();
    let tool = |name: &str| tools().into_iter().find(|tool| tool.name == name).unwrap();
    let mut messages: agent_loop::Messages =
        [Message::user("Find notes on pruning, then write what you found.")].into_iter().collect();
    // The tools are named, since so small a model chooses badly.
    for name in ["search", "write_note"] {
        let request = Request::default().messages(messages.clone()).tools(vec![tool(name)].into());
        let request = request.tool_choice(ToolChoice::Tool(name.into())).max_output_tokens(Some(200));
        let said = reply(&model, request.parallel(agent_loop::Parallel::One)).await;
        let calls = calls_of(&said);
        assert_eq!((calls.len(), &calls[0].fault), (1, &None), "{said:?}");
        let mut call = calls[0].clone();
        call.id = name.into();
        let result = agent_loop::ToolResult::new(&call, Status::Ok, "trees.md:3: prune in winter");
        let more = [Message::Assistant { parts: vec![Part::Call(call)] }, Message::Results { results: vec![result] }];
        messages = messages.iter().map(|message| Message::clone(message)).chain(more).collect();
    }
    let answer = reply(&model, Request::default().messages(messages).max_output_tokens(Some(16))).await;
    assert!(!answer.visible_text().is_empty(), "{answer:?}");
    let used = model.cache_use();
    assert!(used.evaluated < used.prompt, "{used:?}");

    // The loop over the same model: whatever it does, the run ends.
    let agent = Agent::new(model, live()).unwrap().policy(AskBeforeWriting);
    let options = RunOptions::default().budget(Budget::default().turns(Some(2))).max_output_tokens(Some(48));
    let mut run = Run::new(RunId("run_2".into()), options, "What is in my notes on pruning?");
    loop {
        match drive(&agent, &mut run).await.0 {
            Pause::Waiting(questions) => {
                let decisions: Vec<_> = questions.iter().map(|question| question.decide(Decision::Allow)).collect();
                run.decide(agent.context(), decisions).unwrap();
            }
            Pause::Done(outcome) => {
                assert!(!matches!(outcome.stop, StopReason::Failed { .. }), "{outcome:?}");
                break;
            }
        }
    }
}
