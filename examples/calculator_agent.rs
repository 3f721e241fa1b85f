//! The whole loop on one page, offline: `cargo run -p examples --example calculator_agent`.

use agent_loop::{Agent, Event, Json, Pause, Run, RunId, RunOptions, ScriptedModel, ScriptedReply, Tool, ToolError};
use serde_json::json;

/// Calculates with two numbers.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Calculate {
    a: f64,
    operator: Operator,
    b: f64,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
enum Operator {
    #[serde(rename = "+")]
    Plus,
    #[serde(rename = "/")]
    Over,
}

async fn calculate(Calculate { a, operator, b }: Calculate) -> Result<Json<f64>, ToolError> {
    match operator {
        Operator::Plus => Ok(Json(a + b)),
        Operator::Over if b == 0.0 => Err("division by zero".into()),
        Operator::Over => Ok(Json(a / b)),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = ScriptedModel::new([
        // Two calls in parallel. One names an operator that does not exist, and the model gets the list of operators.
        ScriptedReply::calls([
            ("calculate", json!({"a": 1, "operator": "+", "b": 2})),
            ("calculate", json!({"a": 1, "operator": "-", "b": 2})),
        ]),
        ScriptedReply::calls([("calculate", json!({"a": 3, "operator": "/", "b": 0}))]),
        ScriptedReply::text("1 + 2 is 3, and nothing can be divided by zero."),
    ]);
    let agent = Agent::new(model, vec![Tool::read("calculate", calculate)])?;
    let mut run = Run::new(RunId::random(), RunOptions::default(), "What is (1 + 2) / 0?");
    let mut show = |event: Event| match event {
        Event::ToolStarted { call, .. } => println!("{} {}", call.name, call.arguments),
        Event::Text(text) => print!("{text}"),
        _ => {}
    };
    let pause = agent.drive(&mut run, &mut show, &Default::default()).await?;
    let Pause::Done(outcome) = pause else { return Err("a tool that only reads needs no approval".into()) };
    println!("\n({}, {} turns)", outcome.stop, outcome.spent.turns);
    for result in run.results() {
        println!("{}: {}", result.call, result.text());
    }
    Ok(())
}
