//! A run that waits for a person is saved, and continues in "another process":
//! `cargo run -p examples --example pause_and_resume`.

use agent_loop::{
    Agent, Decision, Durability, Pause, Run, RunId, RunOptions, ScriptedModel, ScriptedReply, Tool, Transcript,
};
use serde_json::json;

/// Deletes a note.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Delete {
    path: String,
}

fn tools() -> Vec<Tool> {
    vec![Tool::write("delete", |Delete { path }| async move { Ok(format!("{path} is gone (not really)")) })]
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::temp_dir().join(format!("{}.jsonl", RunId::random()));

    let call = ScriptedReply::calls([("delete", json!({"path": "Old.md"}))]);
    let first = Agent::new(ScriptedModel::new([call]), tools())?;
    let mut run = Run::new(RunId::random(), RunOptions::default(), "Delete the old note.");
    let mut transcript = Transcript::create(&path, &run, Durability::Machine)?;
    let Pause::Waiting(questions) = first.drive(&mut run, &mut transcript, &Default::default()).await? else {
        return Err("deleting asks first".into());
    };
    println!("waiting for a decision about {}; saved in {}", questions[0].call.name, path.display());
    drop((first, run, transcript));

    let (mut transcript, mut run, repairs) = Transcript::open(&path, Durability::Machine)?;
    println!("loaded with {} repairs", repairs.len());
    let second = Agent::new(ScriptedModel::new([ScriptedReply::text("It is deleted.")]), tools())?;
    let decision = questions[0].decide(Decision::Allow);
    run.decide(second.context(), [decision])?;
    let Pause::Done(outcome) = second.drive(&mut run, &mut transcript, &Default::default()).await? else {
        return Err("no question is left".into());
    };
    println!("{}", outcome.text);
    std::fs::remove_file(path)?;
    Ok(())
}
