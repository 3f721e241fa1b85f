//! Whole runs of an agent over a model in the process: a call that needs approval, another process, the answer.

use std::path::PathBuf;
use std::sync::Arc;

use agent_loop::{
    Agent, AskBeforeWriting, Budget, Decision, Event, Pause, Run, RunId, RunOptions, Status, StopReason, Tool,
    ToolOutput,
};

use super::*;

fn live() -> Vec<Tool> {
    let tool = |spec: ToolSpec| {
        Tool::dynamic(spec, |call, _| async move { Ok(ToolOutput::text(format!("{} is done", call.name))) })
    };
    tools().into_iter().map(tool).collect()
}

/// Drives a run to its next pause, with what was shown.
async fn drive(agent: &Agent, run: &mut Run) -> (Pause, Vec<Event>) {
    let mut events = Vec::new();
    let mut watch = |event| events.push(event);
    let pause = agent.drive(run, &mut watch, &Default::default()).await.unwrap();
    (pause, events)
}

#[tokio::test]
async fn a_call_waits_for_a_person_and_another_process_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let file = TinyModel::new(6).bias(&[("<tool_call>", 40.0)]).write(folder.path());
    let state = folder.path().join("run.cache");
    let options = RunOptions::default().budget(Budget::default().turns(Some(6)));
    let mut run = Run::new(RunId("run_1".into()), options, "Search, then write.");
    let (saved, asked) = {
        // Random weights choose the tool; some seed writes within a few turns.
        let mut found = None;
        for seed in 0..40 {
            let model = Arc::new(load_file(&file, |options| options.seed(Some(seed))).await);
            let agent = Agent::new(Arc::clone(&model), live()).unwrap().policy(AskBeforeWriting);
            let mut tried = run.clone();
            if let (Pause::Waiting(questions), _) = drive(&agent, &mut tried).await {
                model.save_cache(&state).await.unwrap();
                found = Some((tried.to_json(), questions));
                break;
            }
        }
        found.expect("one of the seeds calls the tool that writes")
    };
    assert_eq!(asked[0].call.name, "write_note");

    let model = Arc::new(load_file(&file, |options| options.seed(Some(1))).await);
    let restored = model.restore_cache(&state).await.unwrap() as u64;
    let agent = Agent::new(Arc::clone(&model), live()).unwrap().policy(AskBeforeWriting);
    (run, _) = Run::from_json(&saved).unwrap();
    let decisions: Vec<_> = asked.iter().map(|question| question.decide(Decision::Allow)).collect();
    run.decide(agent.context(), decisions).unwrap();
    let (_, events) = drive(&agent, &mut run).await;
    let ran = run.results().find(|result| result.name == "write_note").unwrap();
    assert_eq!((ran.status, ran.text().as_str()), (Status::Ok, "write_note is done"));
    let used = model.cache_use();
    let first = events.iter().find_map(|event| if let Event::Usage(usage) = event { Some(*usage) } else { None });
    assert!(first.is_none_or(|usage| usage.cached * 10 > restored * 9), "{first:?} of {restored}");
    assert!(used.evaluated < used.prompt / 2, "{used:?}");
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
        let Pause::Done(outcome) = pause else { panic!("{pause:?}") };
        assert!(!matches!(outcome.stop, StopReason::Failed { .. }), "{outcome:?}");
        compacted += events.iter().filter(|event| matches!(event, Event::Compacted { .. })).count();
        run.say("more ".repeat(40)).unwrap();
    }
    assert!(compacted > 0, "eight turns of 260 tokens do not fit");
}

/// With `AGENT_LOOP_LOCAL_MODEL` a real one: the flow runs; its answers are not judged.
#[tokio::test]
async fn a_real_model_searches_writes_after_a_yes_and_answers() {
    let Some(path) = std::env::var_os("AGENT_LOOP_LOCAL_MODEL").map(PathBuf::from) else { return };
    let options = LocalOptions::new(path).context(Some(4_096)).threads(Some(1)).seed(Some(1)).temperature(0.2);
    let model = Local::load(options, |_| {}, &Default::default()).await.unwrap();
    let tool = |name: &str| tools().into_iter().find(|tool| tool.name == name).unwrap();
    let mut messages: agent_loop::Messages =
        [Message::user("Find notes on pruning, then write what you found.")].into_iter().collect();
    // The tools are named, since so small a model chooses badly.
    for name in ["search", "write_note"] {
        let request = Request::default().messages(messages.clone()).tools(vec![tool(name)].into());
        let request = request.tool_choice(agent_loop::ToolChoice::Tool(name.into())).max_output_tokens(Some(200));
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
