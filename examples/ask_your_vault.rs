//! An agent over a folder of notes, offline: the model is scripted, and `HostedModel` can take its place.
//! `cargo run -p examples --example ask_your_vault -- testdata/vaults/demo "how do I keep bread fresh?"`

use std::sync::Arc;

use agent_loop::{Agent, Pause, Run, RunId, RunOptions, ScriptedModel, ScriptedReply, Tool, ToolError, ToolOutput};
use vault_index::{Index, Options, Query};

/// Finds passages of the notes, by meaning and by words.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Search {
    query: String,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [folder, question] =
        std::env::args().skip(1).collect::<Vec<_>>().try_into().map_err(|_| "usage: FOLDER QUESTION")?;
    let index = Arc::new(Index::open(folder, Options::new())?);
    index.sync()?;
    let search = move |Search { query }| {
        let found = Query::parse(&query).and_then(|query| index.search(&query)).map_err(ToolError::from);
        let line = |hit: &vault_index::Hit| format!("[{}:{}] {}", hit.path, hit.line, hit.text);
        async move { found.map(|hits| ToolOutput::items(hits.results.iter().map(line))) }
    };
    let search_for = ScriptedReply::calls([("search", serde_json::json!({ "query": question }))]);
    let model = ScriptedModel::new([search_for, ScriptedReply::text("Your notes answer that:")]);
    let agent = Agent::new(model, vec![Tool::read("search", search)])?;
    let mut run = Run::new(RunId::random(), RunOptions::default(), question);
    let Pause::Done(outcome) = agent.drive(&mut run, &mut (), &Default::default()).await? else { return Ok(()) };
    println!("{}\n{}", outcome.text, run.results().map(|result| result.text()).collect::<String>());
    Ok(())
}
