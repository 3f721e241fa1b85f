//! Counts how often a change is prepared between the model's call and the written note.

use std::sync::atomic::{AtomicUsize, Ordering};

use agent_loop::{CallPermission, CallPolicy, ScriptedModel, ScriptedReply};
use schemars::JsonSchema;
use serde::Deserialize;
use tempfile::TempDir;
use vault_search::VaultArgs;
use vault_tools::{PathArg, Risk, State, Tool};

use serde_json::json;

use super::*;
use crate::model::Destination;
use crate::workspace::PolicyOverrides;

#[derive(Deserialize, JsonSchema)]
struct Args {
    path: PathArg,
    content: String,
}

/// Creates a conversation with a tool `count` that writes a note and counts how often it runs.
fn conversation(replies: Vec<ScriptedReply>) -> (TempDir, Conversation, Arc<AtomicUsize>) {
    let folder = tempfile::tempdir().unwrap();
    let vault = folder.path().join("Notes");
    std::fs::create_dir(&vault).unwrap();
    let args = VaultArgs { vault: vec![vault], index: Some(folder.path().join("index.db")) };
    let workspace = Arc::new(Workspace::open(&args, PolicyOverrides::default()).unwrap());
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    workspace.with(|vaults| {
        vaults.toolbox(0).add(Tool::new("count", Risk::Write, "Counts.", move |args: Args, context| {
            counted.fetch_add(1, Ordering::Relaxed);
            let path = context.path(&args.path)?;
            context.overlay.create(&path, args.content)?;
            Ok(true)
        }));
    });
    let model = ChosenModel {
        name: "scripted".to_owned(),
        provider: "scripted".to_owned(),
        destination: Destination::ThisMachine,
        context_length: None,
        model: Arc::new(ScriptedModel::new(replies)),
    };
    let settings = Settings::default();
    let tools = NoteTools::new(workspace, &settings, Offer::All);
    let sessions = Sessions { folder: State::at(folder.path().join("sessions")) };
    let now = Timestamp::now();
    let info = SessionInfo {
        id: "one".to_owned(),
        title: String::new(),
        vaults: Vec::new(),
        provider: "scripted".to_owned(),
        model: "scripted".to_owned(),
        created: now,
        updated: now,
        sources: Vec::new(),
        removed: Vec::new(),
        waits: false,
    };
    let conversation = Conversation::with(tools, model, settings, Editor::default(), sessions, info).unwrap();
    (folder, conversation, runs)
}

/// Drives a turn as the terminal does: one question after the other.
async fn answered(conversation: &mut Conversation, decide: impl Fn(&Panel) -> Decision) -> usize {
    let cancel = CancellationToken::new();
    let mut turn = conversation.say("Write them.", &mut |_| {}, &cancel).await.unwrap();
    let mut asked = 0;
    while let Turn::Waiting(questions) = turn {
        let decision = match conversation.open_question(&questions[0]) {
            OpenedQuestion::Panel(panel) => {
                asked += 1;
                decide(&panel)
            }
            OpenedQuestion::Decided(decision) => decision,
        };
        conversation.decide(&questions[0], decision).unwrap();
        turn = conversation.go_on(&mut |_| {}, &cancel).await.unwrap();
    }
    asked
}

fn calls(names: &[&str]) -> ScriptedReply {
    ScriptedReply::calls(names.iter().map(|name| ("count", json!({ "path": format!("{name}.md"), "content": "x" }))))
}

#[tokio::test(flavor = "multi_thread")]
async fn each_of_n_changes_is_prepared_once() {
    let names = ["a", "b", "c", "d", "e", "f"];
    let (folder, mut conversation, runs) = conversation(vec![calls(&names), ScriptedReply::text("Done.")]);
    assert_eq!(answered(&mut conversation, |_| Decision::Allow).await, names.len());
    assert_eq!(runs.load(Ordering::Relaxed), names.len(), "one run for each change");
    for name in names {
        assert!(folder.path().join(format!("Notes/{name}.md")).exists(), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_runs_nothing_and_a_refused_change_was_prepared_once() {
    let (folder, mut conversation, runs) = conversation(vec![calls(&["a"]), ScriptedReply::text("Then not.")]);
    let call = ToolCall::new("1", "count", json!({ "path": "a.md", "content": "x" }));
    let spec = agent_loop::Tools::specs(&conversation.tools).into_iter().find(|spec| spec.name == "count").unwrap();
    for _ in 0..3 {
        assert!(matches!(conversation.tools.permission(&call, &spec), CallPermission::Ask { .. }));
    }
    assert_eq!(runs.load(Ordering::Relaxed), 0, "the policy looks at the call alone");
    assert_eq!(answered(&mut conversation, |_| Decision::Deny { reason: None }).await, 1);
    assert_eq!(runs.load(Ordering::Relaxed), 1);
    assert!(!folder.path().join("Notes/a.md").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_fails_is_logged_once_and_nobody_is_asked() {
    let (folder, mut conversation, runs) = conversation(vec![calls(&["a"]), ScriptedReply::text("I see.")]);
    std::fs::write(folder.path().join("Notes/a.md"), "there already").unwrap();
    assert_eq!(answered(&mut conversation, |_| Decision::Allow).await, 0);
    assert_eq!(runs.load(Ordering::Relaxed), 1);
    let log = vault_tools::read_log(conversation.tools.workspace().vaults()[0].vault.state()).unwrap();
    let lines: Vec<_> = log.iter().filter(|record| record.tool == "count").collect();
    assert!(lines.len() == 1 && lines[0].error.is_some(), "{lines:?}");
    let results = conversation.run().unwrap().results();
    assert_eq!(results.map(|result| result.status).collect::<Vec<_>>(), [agent_loop::Status::Error]);
}
