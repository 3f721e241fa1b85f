//! A person decides in the terminal: `cargo run -p examples --example approve_in_terminal`. The model is scripted.

use std::io::{BufRead, Write};

use agent_loop::{
    Agent, Decision, Event, Question, QuestionSubject, Run, RunId, RunOptions, ScriptedModel, ScriptedReply, Tool,
};
use futures_util::TryStreamExt;
use serde_json::json;

/// Writes a note.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct WriteNote {
    path: String,
    text: String,
}

fn ask(question: &Question) -> Decision {
    let QuestionSubject::Running { why } = &question.about else { return Decision::Allow };
    println!("\n{why}: {} {:#}", question.call.name, question.call.arguments);
    print!("[y]es, [s]ession, [e]dit, anything else is no: ");
    std::io::stdout().flush().expect("the terminal is writable");
    let mut lines = std::io::stdin().lock().lines();
    let mut line = || lines.next().and_then(Result::ok).unwrap_or_default();
    match line().trim() {
        "y" => Decision::Allow,
        "s" => Decision::AllowForSession,
        "e" => {
            println!("all arguments, as JSON on one line:");
            match serde_json::from_str(&line()) {
                Ok(arguments) => Decision::AllowEdited { arguments },
                Err(error) => {
                    Decision::Deny { reason: Some(format!("the edited arguments are not valid JSON: {error}")) }
                }
            }
        }
        reason => Decision::Deny { reason: (!reason.is_empty()).then(|| reason.to_string()) },
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let tools = vec![Tool::write("write_note", |WriteNote { path, text }| async move {
        Ok(format!("wrote {} bytes to {path} (not really)", text.len()))
    })];
    let call = ("write_note", json!({"path": "Plan.md", "text": "1. Prune the roses."}));
    let model = ScriptedModel::new([ScriptedReply::calls([call]), ScriptedReply::text("That is all.")]);
    let agent = Agent::new(model, tools)?.approver(async |question: Question| ask(&question));
    let mut run = Run::new(RunId::random(), RunOptions::default(), "Write down my plan.");
    let mut events = agent.stream(&mut run, ());
    while let Some(event) = events.try_next().await? {
        match event {
            Event::Text(text) => print!("{text}"),
            Event::ToolFinished { result, .. } => println!("  {:?}: {}", result.status, result.text()),
            Event::Done(outcome) => println!("\n({})", outcome.stop),
            _ => {}
        }
    }
    Ok(())
}
