//! Asks a hosted model and prints what it writes as it comes; the key is taken from the environment:
//! `cargo run -p examples --example hosted_model -- anthropic MODEL "How do I prune roses?"`.

use std::io::Write;

use agent_loop::{Agent, Event, Hosted, Http, Pause, Provider, Run, RunId, RunOptions, Tool, Wire};

const USAGE: &str = "hosted_model PROVIDER MODEL QUESTION
PROVIDER: openai, anthropic, gemini, openrouter (with OPENAI_API_KEY and so on), ollama, lm-studio, llama.cpp,
or the address of anything that speaks Chat Completions, such as http://127.0.0.1:8000/v1 (with API_KEY, if it wants one)";

fn provider(name: &str) -> Result<Provider, Box<dyn std::error::Error>> {
    let key = |variable: &str| std::env::var(variable).map_err(|_| format!("{variable} is not set"));
    Ok(match name {
        "openai" => Provider::openai(key("OPENAI_API_KEY")?),
        "anthropic" => Provider::anthropic(key("ANTHROPIC_API_KEY")?),
        "gemini" => Provider::gemini(key("GEMINI_API_KEY")?),
        "openrouter" => Provider::openrouter(key("OPENROUTER_API_KEY")?),
        "ollama" => Provider::ollama(),
        "lm-studio" => Provider::lm_studio(),
        "llama.cpp" => Provider::llama_cpp(),
        address if address.contains("://") => Provider::new("custom", Wire::Chat, address, key("API_KEY").ok()),
        other => return Err(format!("{other} is no provider that this example knows").into()),
    })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, model, question] = arguments.as_slice() else {
        println!("{USAGE}");
        return Ok(());
    };
    let model = Hosted::new(provider(name)?, model.as_str(), Http::new()?);
    let agent = Agent::new(model, Vec::<Tool>::new())?;
    let mut run = Run::new(RunId::random(), RunOptions::default(), question.as_str());
    let mut show = |event: Event| match event {
        Event::Text(text) => {
            print!("{text}");
            std::io::stdout().flush().expect("the terminal is there");
        }
        Event::Retry { delay, failure, .. } => println!("({failure}; again in {delay:?})"),
        _ => {}
    };
    let Pause::Done(outcome) = agent.drive(&mut run, &mut show, &Default::default()).await? else {
        return Err("without tools nobody is asked".into());
    };
    println!("\n({})", outcome.stop);
    Ok(())
}
