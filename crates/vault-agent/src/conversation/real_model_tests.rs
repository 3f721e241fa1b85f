//! A conversation of a real model about the demo vault. The test checks the flow, not the quality of the answer.
//!
//! `AGENT_LOOP_LOCAL_MODEL` names the model, a GGUF file; if it is empty, the test is skipped.

use std::collections::VecDeque;
use std::fs;
use std::path::Path;
use std::sync::Mutex;

use agent_llama::{LocalModel, LocalOptions};
use agent_loop::{BoxFuture, Model, Parallel, ReplyStream, Request, Status, StopReason, ToolChoice, ToolSpec};
use serde_json::json;
use vault_search::VaultArgs;
use vault_tools::State;

use super::*;
use crate::model::Destination;
use crate::workspace::PolicyOverrides;

/// Tells the model which tool to call and restricts the arguments, because the model is very small. Free arguments
/// would differ between processors, and a call that a tool rejects asks no person.
struct GuidedModel {
    model: LocalModel,
    choices: Mutex<VecDeque<ToolChoice>>,
}

impl Model for GuidedModel {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn reply(&self, request: Request) -> BoxFuture<'_, agent_loop::error::Result<ReplyStream<'_>>> {
        let choice = self.choices.lock().unwrap().pop_front().unwrap_or(ToolChoice::None);
        let length = if choice == ToolChoice::None { 24 } else { 400 };
        let tools: Arc<[_]> = request.tools.iter().cloned().map(narrowed).collect();
        let request = request.tools(tools).tool_choice(choice).parallel(Parallel::One);
        self.model.reply(request.max_output_tokens(Some(length)))
    }
}

fn narrowed(tool: ToolSpec) -> ToolSpec {
    let (name, words) = match &*tool.name {
        "search_notes" => ("query", ["oil the chain", "bicycle"]),
        "create_daily_note" => ("content", ["Oil the chain.", "See the note about the bicycle."]),
        _ => return tool,
    };
    let parameters = json!({
        "type": "object", "properties": { name: { "enum": words } }, "required": [name], "additionalProperties": false,
    });
    ToolSpec { parameters, ..tool }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_model_searches_asks_before_it_writes_and_answers() {
    let file =
        std::env::var_os("AGENT_LOOP_LOCAL_MODEL").expect("AGENT_LOOP_LOCAL_MODEL names a GGUF file, or nothing");
    if file.is_empty() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let vault = folder.path().join("demo");
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/vaults/demo"), &vault);
    let args = VaultArgs { vault: vec![vault.clone()], index: Some(folder.path().join("index.db")) };
    let workspace = Arc::new(Workspace::open(&args, PolicyOverrides::default()).unwrap());

    let options = LocalOptions::new(file).context(Some(8_192)).seed(Some(1)).temperature(0.0);
    let model = LocalModel::load(options, |_| {}, &CancellationToken::new()).await.unwrap();
    let choices = ["search_notes", "create_daily_note"].map(|name| ToolChoice::Tool(name.into()));
    let model = ChosenModel {
        name: model.name().to_owned(),
        provider: "local".to_owned(),
        destination: Destination::ThisMachine,
        context_length: Some(8_192),
        model: Arc::new(GuidedModel { model, choices: Mutex::new(choices.into()) }),
    };
    let settings = Settings::default();
    let tools = NoteTools::new(workspace, &settings, Offer::All);
    let sessions = Sessions { folder: State::at(folder.path().join("sessions")) };
    let info = SessionInfo {
        id: "one".to_owned(),
        title: String::new(),
        vaults: vec![vault.clone()],
        provider: model.provider.clone(),
        model: model.name.clone(),
        created: Timestamp::now(),
        updated: Timestamp::now(),
        sources: Vec::new(),
        removed: Vec::new(),
        waits: false,
    };
    let mut conversation = Conversation::with(tools, model, settings, Editor::default(), sessions, info).unwrap();

    let (cancel, message) = (CancellationToken::new(), "How do I oil the chain of my bicycle? Note it for today.");
    let turn = conversation.say(message, &mut |_| {}, &cancel).await.unwrap();
    let Turn::Waiting(questions) = turn else { panic!("{turn:?}") };
    assert_eq!(questions.iter().map(|question| question.call.name.as_str()).collect::<Vec<_>>(), ["create_daily_note"]);
    let OpenedQuestion::Panel(panel) = conversation.open_question(&questions[0]) else { panic!("no person is asked") };
    let (_, preview) = panel.change.expect("it would write a note");
    let note = vault.join(&preview.files[0].path);
    assert!(!note.exists(), "nothing is written before a yes");
    conversation.decide(&questions[0], Decision::Allow).unwrap();

    let turn = conversation.go_on(&mut |_| {}, &cancel).await.unwrap();
    let Turn::Done(outcome) = turn else { panic!("{turn:?}") };
    assert!(matches!(outcome.stop, StopReason::Answered | StopReason::Length), "{:?}", outcome.stop);
    assert!(!outcome.text.is_empty());
    assert!(note.exists());
    let results: Vec<_> = conversation.run().unwrap().results().map(|result| (&*result.name, result.status)).collect();
    assert_eq!(results, [("search_notes", Status::Ok), ("create_daily_note", Status::Ok)]);
}
