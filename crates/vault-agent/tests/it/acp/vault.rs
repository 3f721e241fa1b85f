//! The methods `_vault/…`: without a session, a model or a key; nothing changes without the digest of what was shown.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use vault_index::lock::lock_file;

use super::editor::Editor;
use crate::stdio::Place;

const NOTES: &str = "\
//- Compost.md
Worms turn kitchen waste into compost. It needs air.
//- Garden/Beds.md
Raised beds need compost every spring. #garden
//- Garden/Roses.md
Prune [[Beds]] in late winter. #garden/roses
//- Home.md
See [[Compost]], [[Garden/Beds|the beds]] and ![[Compost]].
";

const CONFLICT: &str = "CONFLICT";

/// A client of a vault, without a model.
fn client(place: &Place) -> Editor {
    Editor::start(place.command(&["acp"]), json!({}))
}

pub(super) fn schema() -> Value {
    serde_json::from_str(include_str!("../../../../../obsidian/protocol.schema.json")).unwrap()
}

/// Checks that a value fits a part of the schema.
pub(super) fn fits(part: &Value, value: &Value, what: &str) {
    let mut part = part.clone();
    part["$defs"] = schema()["$defs"].clone();
    let validator = jsonschema::validator_for(&part).unwrap();
    let problems: Vec<String> = validator.iter_errors(value).map(|problem| problem.to_string()).collect();
    assert!(problems.is_empty(), "{what}: {problems:?}\n{value}");
}

/// The result of a method, which fits the schema.
pub(super) fn result(editor: &mut Editor, method: &str, params: Value) -> Value {
    let schema = schema();
    let returned = editor.result(method, params.clone());
    for (name, value) in [("params", &params), ("result", &returned)] {
        fits(&schema["properties"][method]["properties"][name], value, &format!("{method} {name}"));
    }
    returned
}

/// The kind of the error that a method answers with.
pub(super) fn refused(editor: &mut Editor, method: &str, params: Value) -> String {
    let response = editor.request(method, params);
    response["error"]["data"]["code"].as_str().unwrap_or_else(|| panic!("{method}: {response}")).to_owned()
}

fn paths(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|entry| entry["path"].as_str().unwrap()).collect()
}

/// A text of segments, with its matches in brackets.
fn marked(segments: &Value) -> String {
    let segment = |segment: &Value| {
        let text = segment["text"].as_str().unwrap();
        if segment["isMatch"] == true { format!("[{text}]") } else { text.to_owned() }
    };
    segments.as_array().unwrap().iter().map(segment).collect()
}

/// A client of a vault in which every passage has an embedding.
fn embedded_client(place: &Place) -> Editor {
    let mut editor = client(place);
    result(&mut editor, "_vault/search", json!({ "query": "x" }));
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let state = result(&mut editor, "_vault/index_state", json!({}));
        if state["index"]["pending"] == 0 {
            return editor;
        }
        assert!(Instant::now() < until, "{state}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Prepares a change and approves it as it was shown.
fn approve(editor: &mut Editor, change: &Value) -> u64 {
    let shown = result(editor, "_vault/prepare", json!({ "change": change }));
    let approval = json!({ "change": change, "digest": shown["digest"] });
    result(editor, "_vault/apply", approval)["transaction"].as_u64().unwrap()
}

#[test]
fn the_schema_of_the_plugin_is_what_the_program_prints() {
    let place = Place::new("");
    let printed = place.command(&["acp", "--schema"]).output().unwrap();
    assert!(printed.status.success());
    let file = include_str!("../../../../../obsidian/protocol.schema.json");
    assert!(
        String::from_utf8(printed.stdout).unwrap() == file,
        "obsidian/protocol.schema.json is out of date: write `vault-agent acp --schema` to it, and run `npm run types` there"
    );
}

#[test]
fn the_methods_are_announced_with_a_version_and_need_initialize_only() {
    let place = Place::new(NOTES);
    let mut editor = Editor::silent(place.command(&["acp"]));
    assert_eq!(editor.error("_vault/search", json!({ "query": "x" })).0, -32600);
    let hello = editor.result("initialize", json!({ "protocolVersion": 1 }));
    let announced = &hello["agentCapabilities"]["_meta"]["vault"];
    assert_eq!(announced["version"], schema()["version"]);
    let methods = announced["methods"].as_array().unwrap();
    assert_eq!(methods.len(), schema()["properties"].as_object().unwrap().len());
    for method in methods {
        // Each is known: what is wrong is at most its parameters.
        let response = editor.request(method.as_str().unwrap(), json!({}));
        assert_ne!(response["error"]["code"], -32601, "{method}: {response}");
    }
    assert_eq!(editor.error("_vault/nope", json!({})).0, -32601);
    assert_eq!(editor.end(), (0, String::new()));
}

#[test]
fn a_search_finds_words_and_meaning_with_marks_and_says_what_it_lacks() {
    let place = Place::new(NOTES);
    let mut editor = embedded_client(&place);
    let words = result(&mut editor, "_vault/search", json!({ "query": "compost", "ranking": "words" }));
    assert_eq!(words["hits"][0]["path"], "Compost.md");
    assert_eq!(words["ranking"], "words");
    assert!(marked(&words["hits"][0]["excerpt"]).contains("into [compost]"), "{words}");
    assert_eq!(words["coverage"]["notes"], 4);
    let meaning =
        result(&mut editor, "_vault/search", json!({ "query": "earthworms that eat leftover food", "limit": 2 }));
    assert_eq!(meaning["hits"][0]["path"], "Compost.md", "{meaning}");
    let tagged = result(&mut editor, "_vault/search", json!({ "query": "tag:garden" }));
    let mut tagged = paths(&tagged["hits"]);
    tagged.sort_unstable();
    assert_eq!(tagged, ["Garden/Beds.md", "Garden/Roses.md"]);
    let none = result(&mut editor, "_vault/search", json!({ "query": "zzzz foo:bar", "ranking": "words" }));
    assert_eq!((none["hits"].as_array().unwrap().len(), &none["unknownOperators"][0]), (0, &json!("foo:bar")));
    assert_eq!(result(&mut editor, "_vault/search", json!({ "query": " " }))["hits"], json!([]));
    for params in [json!({ "query": "x", "limit": 0 }), json!({ "query": "/(/" })] {
        assert_eq!(refused(&mut editor, "_vault/search", params), "INVALID_ARGUMENTS");
    }
    assert_eq!(editor.error("_vault/search", json!({ "query": 7 })).0, -32602);
}

#[test]
fn a_vault_can_be_named_in_each_request() {
    let (place, other) = (Place::new(NOTES), Place::new("//- Heron.md\nA heron stands in the reeds.\n"));
    let mut command = place.command(&["acp"]);
    command.env_remove("VAULT_DIR");
    let mut editor = Editor::start(command, json!({}));
    for (vault, expected) in [(place.vault(), "Compost.md"), (other.vault(), "Heron.md")] {
        let found = result(&mut editor, "_vault/search", json!({ "vault": vault, "query": "heron OR worms" }));
        assert_eq!(paths(&found["hits"]), [expected]);
    }
    for vault in [json!("relative"), json!(place.home().join("gone"))] {
        assert_eq!(editor.error("_vault/search", json!({ "vault": vault, "query": "x" })).0, -32602, "{vault}");
    }
    let mut two = place.command(&["acp"]);
    two.env_remove("VAULT_DIR").arg("--vault").arg(place.vault()).arg("--vault");
    let second = other.home().join("Second");
    std::fs::create_dir_all(&second).unwrap();
    let mut editor = Editor::start(
        {
            two.arg(&second);
            two
        },
        json!({}),
    );
    assert_eq!(refused(&mut editor, "_vault/search", json!({ "query": "x" })), "INVALID_ARGUMENTS");
}

#[test]
fn a_search_that_is_cancelled_is_answered_as_cancelled() {
    let place = Place::new(NOTES);
    let mut editor = client(&place);
    result(&mut editor, "_vault/search", json!({ "query": "compost" }));
    let state = result(&mut editor, "_vault/index_state", json!({}));
    assert_eq!(editor.end().0, 0);
    // Another process writes the index, so that a new program waits before it searches.
    let file = PathBuf::from(state["index"]["file"].as_str().unwrap());
    let mut name = file.into_os_string();
    name.push(".lock");
    let writing = lock_file(&PathBuf::from(name), Some(Duration::from_secs(10)), None).unwrap().unwrap();
    let mut editor = client(&place);
    let search = editor.ask("_vault/search", json!({ "query": "compost" }));
    editor.notify("$/cancel_request", json!({ "requestId": search }));
    assert_eq!(editor.response(search)["error"]["code"], -32800);
    // One that is not cancelled searches the index as it is.
    let found = result(&mut editor, "_vault/search", json!({ "query": "compost" }));
    assert_eq!(
        (found["hits"][0]["path"].as_str(), found["coverage"]["isCurrent"].as_bool()),
        (Some("Compost.md"), Some(false))
    );
    drop(writing);
}

#[test]
fn related_notes_say_whether_a_link_is_there() {
    let place = Place::new(NOTES);
    let mut editor = embedded_client(&place);
    let found = result(&mut editor, "_vault/related", json!({ "path": "Garden/Beds.md" }));
    let linked = |path: &str| {
        let notes = found["notes"].as_array().unwrap().iter();
        notes.clone().find(|note| note["path"] == path).unwrap_or_else(|| panic!("{path}: {found}"))["isLinked"].clone()
    };
    assert_eq!((linked("Compost.md"), linked("Garden/Roses.md")), (json!(false), json!(true)));
    assert!(!paths(&found["notes"]).contains(&"Garden/Beds.md"));
    assert_eq!(refused(&mut editor, "_vault/related", json!({ "path": "Gone.md" })), "NOT_FOUND");
}

#[test]
fn a_mention_becomes_a_link_after_its_preview_and_is_undone_and_redone() {
    let place = Place::new(NOTES);
    let before = place.tree();
    let mut editor = client(&place);
    let found = result(&mut editor, "_vault/mentions", json!({ "path": "Compost.md" }));
    assert_eq!(
        (paths(&json!([found["mentions"][0]["link"]])), &found["mentionsInAll"]),
        (vec!["Garden/Beds.md"], &json!(1))
    );
    assert_eq!(marked(&found["mentions"][0]["sentence"]), "Raised beds need [compost] every spring. #garden");
    let change = json!({ "kind": "links", "links": [found["mentions"][0]["link"]] });
    let shown = result(&mut editor, "_vault/prepare", json!({ "change": change }));
    assert!(
        shown["files"][0]["diff"].as_str().unwrap().contains("+Raised beds need [[Compost|compost]] every"),
        "{shown}"
    );
    assert_eq!((place.tree() == before, &shown["denied"]), (true, &Value::Null));
    let wrong = json!({ "change": change, "digest": "0".repeat(64) });
    assert_eq!(refused(&mut editor, "_vault/apply", wrong), CONFLICT);
    assert!(place.tree() == before, "nothing is done without the digest of the preview");

    let made = approve(&mut editor, &change);
    assert!(place.read("Garden/Beds.md").contains("[[Compost|compost]]"));
    let after = place.tree();
    approve(&mut editor, &json!({ "kind": "undo", "transaction": made }));
    assert!(place.tree() == before);
    approve(&mut editor, &json!({ "kind": "redo", "transaction": made }));
    assert!(place.tree() == after);
    // Without a number: the newest.
    approve(&mut editor, &json!({ "kind": "undo" }));
    approve(&mut editor, &json!({ "kind": "redo" }));
    assert!(place.tree() == after);
    assert_eq!(refused(&mut editor, "_vault/prepare", json!({ "change": { "kind": "redo" } })), "NOT_FOUND");

    let past = result(&mut editor, "_vault/transactions", json!({ "limit": 3 }));
    let rows = past["transactions"].as_array().unwrap();
    let of = |row: &Value| (row["kind"].as_str().unwrap().to_owned(), row["status"].as_str().unwrap().to_owned());
    assert_eq!(
        rows.iter().map(of).collect::<Vec<_>>(),
        [("redo", "done"), ("undo", "undone"), ("redo", "done")]
            .map(|(kind, status)| (kind.to_owned(), status.to_owned()))
    );
    assert_eq!(past["hasMore"], true);
    let older = result(&mut editor, "_vault/transactions", json!({ "before": rows[2]["transaction"] }));
    assert_eq!(older["transactions"][1]["label"], "set_link");
    assert_eq!(older["transactions"][1]["paths"], json!(["Garden/Beds.md"]));
    let diff = result(&mut editor, "_vault/transaction", json!({ "transaction": made }));
    assert!(diff["files"][0]["diff"].as_str().unwrap().contains("+Raised beds need [[Compost|compost]]"), "{diff}");
    assert_eq!(refused(&mut editor, "_vault/transaction", json!({ "transaction": 99 })), "NOT_FOUND");
}

#[test]
fn several_links_are_one_change() {
    let place = Place::new("//- a.md\nabout ${otters} and herons\n//- Otters.md\nx\n//- Herons.md\ny\n");
    let mut editor = client(&place);
    let before = place.tree();
    let link = |text: &str, target: &str| json!({ "path": "a.md", "line": 1, "text": text, "target": target });
    let change = json!({ "kind": "links", "links": [link("otters", "Otters.md"), link("herons", "Herons.md")] });
    let made = approve(&mut editor, &change);
    assert_eq!(place.read("a.md"), "about ${[[Otters|otters]]} and [[Herons|herons]]\n");
    approve(&mut editor, &json!({ "kind": "undo", "transaction": made }));
    assert!(place.tree() == before);
    assert_eq!(
        refused(&mut editor, "_vault/prepare", json!({ "change": { "kind": "links", "links": [] } })),
        "INVALID_ARGUMENTS"
    );
}

#[test]
fn a_rename_shows_every_link_that_changes_and_a_newer_edit_is_a_conflict() {
    let place = Place::new(NOTES);
    let mut editor = client(&place);
    let change = json!({ "kind": "rename", "path": "Compost.md", "newPath": "Garden/Compost heap.md" });
    let shown = result(&mut editor, "_vault/prepare", json!({ "change": change }));
    assert_eq!(paths(&shown["files"]), ["Compost.md", "Home.md"]);
    assert_eq!((&shown["files"][0]["to"], &shown["links"]), (&json!("Garden/Compost heap.md"), &json!(2)));
    assert!(shown["files"][1]["diff"].as_str().unwrap().contains("+See [[Compost heap]]"), "{shown}");
    place.write("Home.md", "Rewritten in the editor, see [[Compost]].\n");
    let before = place.tree();
    let approval = json!({ "change": change, "digest": shown["digest"] });
    assert_eq!(refused(&mut editor, "_vault/apply", approval), CONFLICT);
    assert!(place.tree() == before);
    approve(&mut editor, &change);
    assert_eq!(place.read("Home.md"), "Rewritten in the editor, see [[Compost heap]].\n");
    assert_eq!(
        refused(
            &mut editor,
            "_vault/prepare",
            json!({ "change": { "kind": "rename", "path": "Home.md", "newPath": "Garden/Beds.md" } })
        ),
        "EXISTS"
    );
    // A folder moves with all that is in it.
    let folder = json!({ "kind": "rename", "path": "Garden", "newPath": "Allotment" });
    let made = approve(&mut editor, &folder);
    assert!(place.read("Allotment/Beds.md").contains("Raised beds"));
    let past = result(&mut editor, "_vault/transaction", json!({ "transaction": made }));
    assert_eq!(past["files"][0]["to"], "Allotment");
}

#[test]
fn what_the_settings_deny_is_neither_shown_nor_changed() {
    let place = Place::new(NOTES);
    place.write("Private/Diary.md", "Compost and worms, see [[Home]].\n");
    let mut editor = client(&place);
    approve(&mut editor, &json!({ "kind": "rename", "path": "Private/Diary.md", "newPath": "Private/Journal.md" }));
    assert_eq!(editor.end().0, 0);
    place.configure("tools.toml", "denied_paths = [\"Private\"]\n");
    let mut editor = client(&place);
    let found = result(&mut editor, "_vault/search", json!({ "query": "worms" }));
    assert_eq!(paths(&found["hits"]), ["Compost.md"]);
    assert_eq!(result(&mut editor, "_vault/transactions", json!({}))["transactions"], json!([]));
    let shown = result(&mut editor, "_vault/transaction", json!({ "transaction": 1 }));
    assert_eq!(
        (&shown["files"], &shown["notices"][0]),
        (&json!([]), &json!("Files that the settings of this vault deny are left out."))
    );
    assert_eq!(refused(&mut editor, "_vault/related", json!({ "path": "Private/Journal.md" })), "DENIED");
    let change = json!({ "kind": "rename", "path": "Private/Journal.md", "newPath": "Out.md" });
    assert_eq!(refused(&mut editor, "_vault/prepare", json!({ "change": change })), "DENIED");
    assert_eq!(
        refused(&mut editor, "_vault/prepare", json!({ "change": { "kind": "undo", "transaction": 1 } })),
        "DENIED"
    );
}

#[test]
fn the_index_and_the_words_of_a_query_are_described() {
    let place = Place::new(NOTES);
    place.write("Book.md", "---\nstatus: draft\nrating: 4\n---\nA book.\n");
    let mut editor = client(&place);
    result(&mut editor, "_vault/search", json!({ "query": "compost" }));
    let state = result(&mut editor, "_vault/index_state", json!({}));
    assert_eq!((&state["version"], &state["index"]["notes"]), (&json!(env!("CARGO_PKG_VERSION")), &json!(5)));
    assert_eq!(state["vault"], json!(place.vault().canonicalize().unwrap()));
    let words = result(&mut editor, "_vault/vocabulary", json!({}));
    assert_eq!(words["tags"], json!([{ "name": "garden", "notes": 2 }, { "name": "garden/roses", "notes": 1 }]));
    assert_eq!(words["properties"], json!(["rating", "status"]));
    // Each operator that is offered is one: none is searched for as a word.
    for operator in words["operators"].as_array().unwrap() {
        let insert = operator["insert"].as_str().unwrap();
        let ends = if insert.ends_with('(') {
            "a)"
        } else if insert == "[" {
            "status]"
        } else if insert == "\"" {
            "a\""
        } else {
            "a"
        };
        let query = if insert == "is:orphan" { insert.to_owned() } else { format!("{insert}{ends}") };
        let query = if insert == "link:" || insert == "linked-from:" { format!("{insert}Home") } else { query };
        let query = if insert == "date:" { "date:2026-01".to_owned() } else { query };
        let found = result(&mut editor, "_vault/search", json!({ "query": query, "ranking": "words" }));
        assert_eq!(found["unknownOperators"], json!([]), "{query}");
    }
}
