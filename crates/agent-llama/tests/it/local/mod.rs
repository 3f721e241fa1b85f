//! A model in this process: files of random weights that the tests write, through everything that the loop does.

mod tiny_model;
mod calls;
mod cache;
mod conversation;
mod faults;
mod loop_contract;
mod sampling;

use std::path::Path;

use agent_llama::{LocalModel, LocalOptions};
use agent_loop::{
    Delta, Effect, Message, Model, Part, Reply, ReplyBuilder, Request, ToolCall, ToolSpec, Usage, error::Result,
};
use futures_util::StreamExt;
use serde_json::{Value, json};

pub use tiny_model::{TEMPLATE, TinyModel};

/// Loads a tiny model, whose replies are random in the way of its seed.
pub async fn load(model: &TinyModel, change: impl FnOnce(LocalOptions) -> LocalOptions) -> LocalModel {
    let folder = tempfile::tempdir().unwrap();
    load_file(&model.write(folder.path()), change).await
}

pub async fn load_file(path: &Path, change: impl FnOnce(LocalOptions) -> LocalOptions) -> LocalModel {
    let options = LocalOptions::new(path).context(Some(2_048)).threads(Some(1)).seed(Some(1)).temperature(1.0);
    LocalModel::load(change(options), |_| {}, &Default::default()).await.unwrap()
}

/// Tools whose arguments end by themselves, whatever the weights are.
pub fn tools() -> Vec<ToolSpec> {
    let spec = |name: &str, effect, parameters: Value| ToolSpec {
        name: name.into(),
        description: format!("The tool {name}."),
        parameters,
        effect,
        time_limit: None,
    };
    let text = json!({"type": "string", "maxLength": 8});
    vec![
        spec(
            "search",
            Effect::Read,
            json!({"type": "object", "required": ["query", "limit"], "properties": {
                "query": text, "limit": {"type": "integer", "minimum": 1, "maximum": 9},
                "mode": {"enum": ["words", "meaning"]}}}),
        ),
        spec("now", Effect::Read, json!({"type": "object", "properties": {}})),
        spec(
            "write_note",
            Effect::Write,
            json!({"type": "object", "required": ["path", "lines"], "additionalProperties": false, "properties": {
                "path": text, "lines": {"type": "array", "maxItems": 2, "items": {"$ref": "#/$defs/line"}}},
                "$defs": {"line": {"type": "object", "required": ["done"], "properties": {"done": {"type": "boolean"}}}}}),
        ),
    ]
}

pub fn request(text: &str) -> Request {
    Request::default()
        .system(Some("Be brief.".into()))
        .messages([Message::user(text)].into_iter().collect())
        .tools(tools().into())
        .max_output_tokens(Some(600))
}

/// All deltas of one reply but progress, and how it ended.
pub async fn deltas(model: &LocalModel, request: Request) -> (Vec<Delta>, Result<Reply>) {
    let mut stream = match model.reply(request).await {
        Ok(stream) => stream,
        Err(error) => return (Vec::new(), Err(error)),
    };
    let (mut all, mut builder) = (Vec::new(), ReplyBuilder::new());
    while let Some(delta) = stream.next().await {
        match delta.and_then(|delta| builder.push(&delta).map(|()| delta)) {
            Ok(Delta::Progress) => {}
            Ok(delta) => all.push(delta),
            Err(error) => return (all, Err(error)),
        }
    }
    (all, builder.finish())
}

pub async fn reply(model: &LocalModel, request: Request) -> Reply {
    deltas(model, request).await.1.unwrap()
}

pub fn calls_of(reply: &Reply) -> Vec<&ToolCall> {
    reply.parts.iter().filter_map(|part| if let Part::Call(call) = part { Some(call) } else { None }).collect()
}

pub fn usage(reply: &Reply) -> Usage {
    reply.usage.unwrap()
}
