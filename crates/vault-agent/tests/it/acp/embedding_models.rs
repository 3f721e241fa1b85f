//! The models of the search by meaning, added and used from a client's settings, with a hub on this machine.

use serde_json::{Value, json};

use super::editor::Editor;
use super::vault::{refused, result};
use crate::hub::{Hub, Mood};
use crate::small_model::{NAME, REPOSITORY, files};
use crate::stdio::Place;

const NOTES: &str = "//- Garden.md\nPrune apple trees in late winter.\n";

fn client(place: &Place, hub: &Hub) -> Editor {
    let mut command = place.command(&["acp"]);
    command.env("HF_ENDPOINT", hub.address());
    Editor::start(command, json!({}))
}

fn state(editor: &mut Editor) -> Value {
    result(editor, "_vault/embedding_models", json!({}))
}

fn is_installed(state: &Value) -> bool {
    let models = state["models"].as_array().unwrap();
    models.iter().find(|model| model["name"] == NAME).unwrap()["installed"].as_bool().unwrap()
}

#[test]
fn a_model_is_described_added_and_used() {
    let (place, hub) = (Place::new(NOTES), Hub::serve(REPOSITORY, files().clone()));
    let mut editor = client(&place, &hub);
    result(&mut editor, "_vault/search", json!({ "query": "apple" }));
    let before = state(&mut editor);
    assert_eq!((&before["used"], &before["work"]), (&json!("minilm"), &Value::Null));
    assert_eq!((before["models"][0]["name"].as_str(), is_installed(&before)), (Some("minilm"), false));
    assert_eq!(hub.requests(), [""; 0], "nothing is asked of the hub without a word of the person");

    let described = result(&mut editor, "_vault/describe_download", json!({ "name": NAME }));
    for part in [NAME, hub.address(), "MB", "licence mit"] {
        assert!(described["text"].as_str().unwrap().contains(part), "{part}: {described}");
    }
    assert_eq!(hub.requests().len(), 1, "only the listing was asked for");
    let added =
        result(&mut editor, "_vault/add_embedding_model", json!({ "name": NAME, "revision": described["revision"] }));
    assert_eq!((is_installed(&added), &added["used"], &added["work"]), (true, &json!("minilm"), &Value::Null));

    let used = result(&mut editor, "_vault/use_embedding_model", json!({ "name": NAME }));
    assert_eq!(used["used"], NAME);
    let index = result(&mut editor, "_vault/index_state", json!({}));
    assert_eq!((&index["index"]["model"], &index["index"]["pending"]), (&json!(NAME), &json!(0)));
    let found = result(&mut editor, "_vault/search", json!({ "query": "apple" }));
    assert_eq!(found["hits"][0]["path"], "Garden.md");
    assert_eq!(result(&mut editor, "_vault/use_embedding_model", json!({ "name": "minilm" }))["used"], "minilm");
    assert_eq!(editor.end().0, 0);
}

#[test]
fn a_download_tells_how_far_it_is_and_can_be_stopped() {
    let (place, hub) = (Place::new(NOTES), Hub::serve(REPOSITORY, files().clone()));
    let mut editor = client(&place, &hub);
    let described = result(&mut editor, "_vault/describe_download", json!({ "name": NAME }));
    let request = json!({ "name": NAME, "revision": described["revision"] });
    hub.is_in(Mood { hold_at: Some(100_000), ..Mood::default() });
    let download = editor.ask("_vault/add_embedding_model", request.clone());
    hub.held.recv().unwrap();
    let work = loop {
        let work = state(&mut editor)["work"].clone();
        if work["share"].as_f64().is_some_and(|share| share > 0.0) {
            break work;
        }
    };
    assert_eq!((&work["name"], &work["step"]), (&json!(NAME), &json!("download")));
    assert!(work["share"].as_f64().unwrap() < 1.0, "{work}");
    assert_eq!(refused(&mut editor, "_vault/add_embedding_model", request.clone()), "CONFLICT");
    hub.is_in(Mood { cut_after: Some(0), ..Mood::default() });
    editor.notify("$/cancel_request", json!({ "requestId": download }));
    hub.cut_held();
    assert_eq!(editor.response(download)["error"]["code"], -32800);
    assert_eq!(state(&mut editor)["work"], Value::Null);

    hub.is_in(Mood::default());
    assert!(is_installed(&result(&mut editor, "_vault/add_embedding_model", request)));
    assert_eq!(editor.end().0, 0);
}

#[test]
fn only_what_a_person_has_seen_is_downloaded() {
    let (place, hub) = (Place::new(NOTES), Hub::serve(REPOSITORY, files().clone()));
    let mut editor = client(&place, &hub);
    let described = result(&mut editor, "_vault/describe_download", json!({ "name": NAME }));
    hub.is_in(Mood { is_newer: true, ..Mood::default() });
    hub.requests();
    let request = json!({ "name": NAME, "revision": described["revision"] });
    assert_eq!(refused(&mut editor, "_vault/add_embedding_model", request), "CONFLICT");
    assert_eq!(hub.requests().len(), 1, "only the listing was asked for");
    assert_eq!(refused(&mut editor, "_vault/use_embedding_model", json!({ "name": NAME })), "NOT_FOUND");
    for method in ["_vault/describe_download", "_vault/use_embedding_model"] {
        assert_eq!(refused(&mut editor, method, json!({ "name": "../gte-small" })), "NOT_FOUND", "{method}");
    }
    assert_eq!(editor.end().0, 0);
}
