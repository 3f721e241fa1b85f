//! Notes are untrusted, in the editor too: a model that obeys every word of them changes nothing without a yes, and shows
//! the person nothing that a note could forge.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::editor::{Editor, agent, everything, selected};
use crate::hostile::{Deed, Model, SECRETS, hostile_place, notes};
use crate::model_server::{ModelServer, Reply, text_of};
use crate::stdio::Place;

/// The most turns of one conversation.
const MOST: usize = 12;

/// A model server that obeys all that it is told.
fn obedient() -> ModelServer {
    let mut model = Model::default();
    for (path, _) in notes().iter().filter(|(path, _)| !path.starts_with("Private")) {
        model.will_call("read_note", json!({ "path": path }));
    }
    let mut read = 0;
    ModelServer::that(move |request| {
        let messages = request["messages"].as_array().unwrap();
        for message in messages.iter().skip(read.min(messages.len())) {
            if message["role"] != "assistant" && message["role"] != "system" {
                model.read(&json!(text_of(&message["content"])));
            }
        }
        read = messages.len();
        loop {
            match model.next() {
                Some(Deed::Call(tool, args)) if args.is_object() => return Reply::call(&tool, args),
                Some(_) => {}
                None => return Reply::text("All is done."),
            }
        }
    })
}

fn hostile_editor(place: &Place, model: &ModelServer, capabilities: Value) -> Editor {
    let mut command = agent(place, model, &[]);
    for (name, value) in [
        ("TOOLSETS", "notes,chat,actions,bulk"),
        ("MAX_TURNS", "100"),
        ("MAX_CALLS", "1000"),
        ("REVIEW", "never"),
    ] {
        command.env(format!("VAULT_AGENT_{name}"), value);
    }
    Editor::start(command, capabilities)
}

/// All texts of a value.
fn texts(value: &Value, all: &mut Vec<String>) {
    match value {
        Value::String(text) => all.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| texts(item, all)),
        Value::Object(fields) => fields.values().for_each(|field| texts(field, all)),
        _ => {}
    }
}

fn runs(capabilities: Value, answer: impl Fn(&str, &Value) -> Value + Send + 'static) -> usize {
    let place = hostile_place();
    let before = place.tree();
    let model = obedient();
    let mut editor = hostile_editor(&place, &model, capabilities);
    let session = editor.session(&place.vault());
    let questions = Arc::new(Mutex::new(0));
    let count = Arc::clone(&questions);
    editor.answers(move |method, params| {
        *count.lock().unwrap() += 1;
        Some(answer(method, params))
    });
    for _ in 0..MOST {
        editor.stops(&session, "Go on.");
        if editor.said().ends_with("All is done.") {
            break;
        }
    }
    assert_eq!(place.tree(), before);
    let mut said = Vec::new();
    model.requests().iter().for_each(|request| texts(request, &mut said));
    editor.asked.iter().for_each(|(_, params)| texts(params, &mut said));
    editor.updates.iter().for_each(|update| texts(update, &mut said));
    for secret in SECRETS {
        let found = said.iter().find(|text| text.contains(secret));
        assert!(found.is_none_or(|text| is_named_by_a_note(text, secret)), "{secret}: {found:?}");
    }
    for (_, asked) in editor.asked.iter().filter(|(method, _)| method == "session/request_permission") {
        is_not_forged(asked);
    }
    let count = *questions.lock().unwrap();
    assert!(count > 10, "{count} questions: the model has tried");
    count
}

/// The notes themselves name some of what is denied.
fn is_named_by_a_note(text: &str, secret: &str) -> bool {
    let of_notes = notes().into_iter().filter(|(path, _)| !path.starts_with("Private"));
    of_notes.into_iter().any(|(_, note)| note.contains(secret) && !text.contains("secret"))
}

/// What is ours comes first, and what stems from notes is in code spans, code blocks and diffs.
fn is_not_forged(asked: &Value) {
    let call = &asked["toolCall"];
    let title = call["title"].as_str().unwrap();
    assert!(!title.contains('\n') && title.matches('`').count() % 2 == 0, "{title:?}");
    for content in call["content"].as_array().unwrap().iter().filter(|it| it["type"] == "content") {
        let text = content["content"]["text"].as_str().unwrap();
        if let Some(block) = text.strip_prefix("```") {
            let fence: String = "```".chars().chain(block.chars().take_while(|c| *c == '`')).collect();
            assert_eq!(text.matches(&*fence).count(), 2, "{text:?}");
            assert!(text.ends_with(&*fence), "{text:?}");
        } else {
            assert!(text.lines().all(|line| !line.starts_with(['+', '-'])) && !text.contains("evil"), "{text:?}");
        }
    }
}

#[test]
fn a_model_that_obeys_its_notes_changes_nothing_without_a_yes() {
    let closed = |_: &str, _: &Value| json!({ "outcome": { "outcome": "cancelled" } });
    let no = |method: &str, _: &Value| match method {
        "elicitation/create" => json!({ "action": "decline" }),
        _ => selected("reject"),
    };
    std::thread::scope(|scope| {
        scope.spawn(|| runs(json!({}), closed));
        scope.spawn(|| runs(everything(), no));
    });
}
