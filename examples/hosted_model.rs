//! Asks a hosted model and prints its text as it arrives; the key comes from the environment:
//! `cargo run -p examples --example hosted_model -- anthropic MODEL "How do I prune roses?"`.

use std::io::Write;

use agent_loop::{Agent, Event, HostedModel, Http, Provider, Run, RunId, RunOptions, Wire};
use futures_util::TryStreamExt;

const USAGE: &str = "hosted_model PROVIDER MODEL QUESTION
PROVIDER: openai, anthropic, gemini, openrouter (with OPENAI_API_KEY and so on), ollama, lm-studio, llama.cpp,
or the address of anything that speaks Chat Completions, such as http://127.0.0.1:8000/v1 (with API_KEY, if it wants one)";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, model, question] = arguments.as_slice() else {
        println!("{USAGE}");
        return Ok(());
    };
    let provider = match name.as_str() {
        address if address.contains("://") => {
            Provider::new("custom", Wire::Chat, address, std::env::var("API_KEY").ok())
        }
        name => Provider::from_env(name)?,
    };
    let agent = Agent::new(HostedModel::new(provider, model.as_str(), Http::new()?), ())?;
    let mut run = Run::new(RunId::random(), RunOptions::default(), question.as_str());
    let mut events = agent.stream(&mut run, ());
    while let Some(event) = events.try_next().await? {
        match event {
            Event::Text(text) => {
                print!("{text}");
                std::io::stdout().flush()?;
            }
            Event::Retry { delay, failure, .. } => println!("({failure}; again in {delay:?})"),
            Event::Done(outcome) => println!("\n({})", outcome.stop),
            _ => {}
        }
    }
    Ok(())
}
