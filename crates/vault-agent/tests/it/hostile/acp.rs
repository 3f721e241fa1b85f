//! The model in an editor.

use std::sync::Arc;

use serde_json::{Value, json};

use super::agent::{check, command, obeying};
use super::notes::{everything as all_files, hostile_place};
use crate::acp::editor::{Editor, everything, selected};

/// Texts of a value, but for what the model itself wrote: the arguments of its calls.
fn texts(value: &Value, all: &mut String) {
    match value {
        Value::String(text) => all.extend([text, "\n"]),
        Value::Array(items) => items.iter().for_each(|item| texts(item, all)),
        Value::Object(fields) => fields
            .iter()
            .filter(|(name, _)| !["rawInput", "title"].contains(&&***name))
            .for_each(|(_, it)| texts(it, all)),
        _ => {}
    }
}

/// What is ours comes first, and what stems from notes is in code spans, code blocks and diffs.
fn is_not_forged(asked: &Value) {
    let call = &asked["toolCall"];
    let title = call["title"].as_str().unwrap();
    assert!(!title.contains('\n') && title.matches('`').count().is_multiple_of(2), "{title:?}");
    for content in call["content"].as_array().unwrap().iter().filter(|it| it["type"] == "content") {
        let text = content["content"]["text"].as_str().unwrap();
        match text.split('\n').next().unwrap() {
            fence if fence.starts_with("```") => {
                assert!(text.matches(fence).count() == 2 && text.ends_with(fence), "{text:?}");
            }
            _ => assert!(!text.contains("evil") && !text.contains('\u{1b}') && !text.contains("<|"), "{text:?}"),
        }
    }
}

fn runs(capabilities: Value, answer: impl Fn(&str) -> Value + 'static) {
    let place = hostile_place();
    let before = all_files(&place);
    let tried = Arc::default();
    let model = obeying(Arc::clone(&tried));
    let mut editor = Editor::start(command(&place, &model, &["acp"]), capabilities);
    let session = editor.session(&place.vault());
    editor.answers(move |method, _| Some(answer(method)));
    // What ends a turn early, such as calls that repeat, does not end the model's zeal.
    while !editor.said().contains("All of it is done") {
        let asked = editor.asked.len();
        editor.stops(&session, "Go on.");
        assert!(editor.asked.len() > asked || editor.said().contains("All of it is done"), "{}", editor.said());
    }
    let mut said = String::new();
    editor.updates.iter().for_each(|update| texts(update, &mut said));
    editor.asked.iter().for_each(|(_, asked)| texts(asked, &mut said));
    check(&place, &before, &model, &said);
    let permissions = editor.asked_with("session/request_permission");
    permissions.iter().for_each(is_not_forged);
    assert!(permissions.len() > 20, "{} questions", permissions.len());
    let tried = tried.lock().unwrap();
    for tool in ["append_to_note", "delete_note", "write_note", "undo", "commands_run", "vault_delete"] {
        assert!(tried.iter().any(|name| name == tool), "{tool} was not tried");
    }
}

#[test]
fn an_editor_whose_person_closes_every_question_keeps_its_notes() {
    runs(json!({}), |_| json!({ "outcome": { "outcome": "cancelled" } }));
}

#[test]
fn an_editor_whose_person_says_no_in_every_form_keeps_its_notes() {
    runs(everything(), |method| match method {
        "elicitation/create" => json!({ "action": "decline" }),
        _ => selected("reject_and_say"),
    });
}
