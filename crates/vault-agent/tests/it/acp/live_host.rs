//! A client that is a live host: the program asks it for its editor and its commands, and makes edits in its editor.

use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::editor::{Editor, agent, everything, selected};
use super::vault::{fits, result, schema};
use crate::model_server::{ModelServer, Reply};
use crate::stdio::Place;

const NOTES: &str = "//- Ideas.md\n# Ideas\n\n* Roses\n* Compost heap\n\nend\n//- Other.md\nother\n";

const STATE: &str = "_vault/host/state";
const EDIT: &str = "_vault/host/edit";
const RUN: &str = "_vault/host/run_command";

/// What a client declares whose app has a vault open.
fn live(vault: &Path) -> Value {
    let mut capabilities = everything();
    capabilities["_meta"] = json!({ "vault": { "approvals": true, "host": { "version": 1, "vault": vault } } });
    capabilities
}

/// The app with the bullets of `Ideas.md` selected. `edits` is what it does with an edit: its folder, and the request.
fn app(place: &Place, edits: fn(&Path, &Value)) -> impl FnMut(&str, &Value) -> Option<Value> + 'static {
    let vault = place.vault();
    move |method, params| {
        let answer = match method {
            "session/request_permission" => return Some(selected("allow")),
            STATE => json!({
                "activeFile": "Ideas.md",
                "selection": {
                    "text": "* Roses\n* Compost heap",
                    "from": { "line": 2, "ch": 0 },
                    "to": { "line": 3, "ch": 14 },
                },
                "cursor": { "line": 3, "ch": 14 },
                "openFiles": ["Ideas.md"],
            }),
            "_vault/host/open_files" => json!({ "files": ["Ideas.md", "../Other.md"] }),
            "_vault/host/commands" => json!({ "commands": [
                { "id": "app:sort", "name": "Sort lines" },
                { "id": "app:fold", "name": "Fold \u{1b}[31mall" },
            ] }),
            RUN => json!({ "ran": params["id"] == "app:sort" }),
            "_vault/host/open" => json!({ "opened": true }),
            EDIT => {
                edits(&vault, params);
                json!({ "edited": true })
            }
            _ => panic!("the program asked {method}"),
        };
        let schema = &schema()["$defs"]["HostMethods"]["properties"][method];
        fits(&schema["properties"]["params"], params, method);
        fits(&schema["properties"]["result"], &answer, method);
        Some(answer)
    }
}

fn saves(vault: &Path, edit: &Value) {
    let file = vault.join(edit["path"].as_str().unwrap());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), edit["before"]);
    std::fs::write(file, edit["after"].as_str().unwrap()).unwrap();
}

/// The plan of the flow: a note for each bullet, and links to them in place of the selection.
fn bullets() -> Value {
    json!({ "version": "1.1", "goal": "A note for each bullet", "riskLevel": "writes", "steps": [
        { "id": "folder", "tool": "vault.ensureFolder", "args": { "path": "Projects" } },
        { "id": "bullets", "tool": "util.parseMarkdownBullets", "args": { "text": "${selection}" } },
        {
            "id": "notes", "tool": "vault.createFile", "foreach": { "from": "$steps.bullets.items", "itemName": "item" },
            "args": { "path": "Projects/${item.text}.md", "content": "# ${item.text}\n" },
        },
        { "id": "links", "tool": "editor.replaceSelection", "args": { "links": "$steps.notes.items[*].path" } },
    ] })
}

fn with_plan(place: &Place, plan: Value) -> (ModelServer, Editor) {
    let model = ModelServer::that(move |_| Reply::Text(plan.to_string()));
    let editor = Editor::start(agent(place, &model, &[]), live(&place.vault()));
    (model, editor)
}

fn asked(editor: &Editor, method: &str) -> usize {
    editor.asked_with(method).len()
}

#[test]
fn a_selection_becomes_notes_and_links_in_one_edit_of_the_editor_and_is_undone() {
    let place = Place::new(NOTES);
    let (before, original) = (place.tree(), place.read("Ideas.md"));
    let (model, mut editor) = with_plan(&place, bullets());
    editor.answers(app(&place, saves));
    let session = editor.session(&place.vault());
    editor.say(&session, "/plan create a note for each");
    assert!(model.requests()[0].to_string().contains("* Compost heap"), "the model reads the selection");
    let ideas = "# Ideas\n\n* [[Roses]]\n* [[Compost heap]]\n\nend\n";
    assert_eq!(place.read("Ideas.md"), ideas, "{}", editor.said());
    assert_eq!(place.read("Projects/Compost heap.md"), "# Compost heap\n");
    let edits = editor.asked_with(EDIT);
    assert_eq!(edits, [json!({ "path": "Ideas.md", "before": original, "after": ideas })]);
    editor.say(&session, "/undo");
    assert_eq!(place.tree(), before, "{}", editor.said());
    assert_eq!(editor.asked_with(EDIT).last().unwrap()["after"], edits[0]["before"]);
    // The same plan as a macro, without a session: a dialog shows it and approves its digest.
    result(&mut editor, "_vault/save_macro", json!({ "name": "bullets", "transaction": 1 }));
    let change = json!({ "kind": "macro", "name": "bullets", "parameters": {} });
    let prepared = result(&mut editor, "_vault/prepare", json!({ "change": change }));
    assert_eq!(place.tree(), before);
    result(&mut editor, "_vault/apply", json!({ "change": change, "digest": prepared["digest"] }));
    assert_eq!((place.read("Ideas.md").as_str(), asked(&editor, EDIT)), (ideas, 3));
}

#[test]
fn what_the_settings_deny_is_not_read_from_the_app() {
    let place = Place::new(NOTES);
    place.configure("tools.toml", "denied_paths = [\"Ideas.md\"]\ndenied_commands = [\"app:fold\"]\n");
    let model = ModelServer::with([
        Reply::call("editor_getSelection", json!({})),
        Reply::call("workspace_getContext", json!({})),
        Reply::call("commands_list", json!({})),
        Reply::text("ok"),
    ]);
    let mut editor = Editor::start(agent(&place, &model, &["--toolset", "actions"]), live(&place.vault()));
    editor.answers(app(&place, saves));
    let session = editor.session(&place.vault());
    editor.say(&session, "what is selected?");
    let told = model.told("tool").join("\n");
    assert!(asked(&editor, STATE) > 0 && told.contains("app:sort"), "{told}");
    assert!(!told.contains("Roses") && !told.contains("Ideas") && !told.contains("app:fold"), "{told}");
}

#[test]
fn an_edit_counts_by_the_content_of_the_file() {
    let plan = || {
        let steps = json!([
            { "id": "new", "tool": "vault.createFile", "args": { "path": "New.md", "content": "new\n" } },
            { "id": "insert", "tool": "editor.insertAtCursor", "args": { "text": "!" } },
            { "id": "other", "tool": "append_to_note", "args": { "path": "Other.md", "content": "more" } },
        ]);
        json!({ "version": "1.0", "goal": "g", "riskLevel": "writes", "steps": steps })
    };
    // The app says that it made the edit, and did not: the program makes it.
    let place = Place::new(NOTES);
    let (_model, mut editor) = with_plan(&place, plan());
    editor.answers(app(&place, |_, _| {}));
    let session = editor.session(&place.vault());
    editor.say(&session, "/plan insert");
    assert!(place.read("Ideas.md").contains("* Compost heap!\n"), "{}", editor.said());
    assert_eq!(asked(&editor, EDIT), 1, "only files that are open");
    // It wrote something else: nothing of the plan stays, and its text is left alone.
    let place = Place::new(NOTES);
    let (_model, mut editor) = with_plan(&place, plan());
    editor.answers(app(&place, |vault, _| std::fs::write(vault.join("Ideas.md"), "mine\n").unwrap()));
    let session = editor.session(&place.vault());
    editor.say(&session, "/plan insert");
    assert!(editor.said().contains("was changed by the editor to something else"), "{}", editor.said());
    assert_eq!((place.read("Ideas.md"), place.read("Other.md")), ("mine\n".into(), "other\n".into()));
    assert!(!place.vault().join("New.md").exists());
}

#[test]
fn a_selection_that_is_not_in_the_note_is_not_replaced() {
    let place = Place::new(&NOTES.replace("Roses", "Rosen"));
    let before = place.tree();
    let (_model, mut editor) = with_plan(&place, bullets());
    editor.answers(app(&place, saves));
    let session = editor.session(&place.vault());
    editor.say(&session, "/plan create a note for each");
    assert!(editor.said().contains("changed since it was selected"), "{}", editor.said());
    assert_eq!(place.tree(), before);
}

#[test]
fn a_command_is_listed_and_runs_after_an_approval_that_names_it() {
    let place = Place::new(NOTES);
    let steps = json!([
        { "id": "list", "tool": "commands.list", "args": { "query": "sort" } },
        { "id": "make", "tool": "vault.createFile", "args": { "path": "New.md", "content": "new\n" }, "dependsOn": ["list"] },
        { "id": "run", "tool": "commands.run", "args": { "id": "$steps.list.commands[0].id" }, "dependsOn": ["make"] },
        { "id": "show", "tool": "workspace.openFile", "args": { "path": "New.md", "line": 1 }, "dependsOn": ["run"] },
    ]);
    let (_model, mut editor) =
        with_plan(&place, json!({ "version": "1.0", "goal": "sort", "riskLevel": "commands", "steps": steps }));
    let mut app = app(&place, saves);
    let answer = Arc::new(Mutex::new("reject"));
    let decides = Arc::clone(&answer);
    editor.answers(move |method, params| match method {
        "session/request_permission" => Some(selected(*decides.lock().unwrap())),
        _ => app(method, params),
    });
    let session = editor.session(&place.vault());
    editor.say(&session, "/plan sort");
    assert_eq!((asked(&editor, RUN), place.vault().join("New.md").exists()), (0, false));
    *answer.lock().unwrap() = "allow";
    editor.say(&session, "/plan sort");
    assert_eq!(editor.asked_with(RUN), [json!({ "id": "app:sort" })], "{}", editor.said());
    assert_eq!(editor.asked_with("_vault/host/open"), [json!({ "path": "New.md", "line": 1, "inNewTab": false })]);
    let card = &editor.asked_with("session/request_permission")[1]["toolCall"]["_meta"]["vault"];
    assert_eq!(card["risk"], "command");
    assert!(card["notices"].to_string().contains("runs the command app:sort (Sort lines)"), "{card}");
    editor.say(&session, "/undo");
    assert!(!place.vault().join("New.md").exists(), "what can be undone is undone: {}", editor.said());
}

#[test]
fn a_command_of_the_model_is_shown_with_its_name_and_an_unknown_one_is_none() {
    let place = Place::new(NOTES);
    let run = |id: &str| Reply::call("commands_run", json!({ "id": id }));
    let model = ModelServer::with([run("app:none"), run("app:fold"), Reply::text("ok")]);
    let mut editor = Editor::start(agent(&place, &model, &["--toolset", "actions"]), live(&place.vault()));
    editor.answers(app(&place, saves));
    let session = editor.session(&place.vault());
    editor.say(&session, "fold");
    let told = model.told("tool");
    assert!(told.iter().any(|text| text.contains("there is no command `app:none`")), "{told:?}");
    // The app could not run it, which the model is told.
    assert!(told.iter().any(|text| text.contains("cannot run the command app:fold at the moment")), "{told:?}");
    let cards = editor.asked_with("session/request_permission");
    let card = &cards[0]["toolCall"]["_meta"]["vault"];
    assert_eq!(
        (cards.len(), &card["notices"]),
        (1, &json!(["it runs the command app:fold (Fold ␛[31mall)"])),
        "{card}"
    );
}

#[test]
fn a_client_that_does_not_answer_makes_only_the_calls_fail_that_need_it() {
    let place = Place::new(NOTES);
    let model = ModelServer::with([
        Reply::call("read_note", json!({ "path": "Other.md" })),
        Reply::call("append_to_note", json!({ "path": "Other.md", "content": "more" })),
        Reply::call("editor_getSelection", json!({})),
        Reply::text("ok"),
    ]);
    let args = ["--toolset", "actions,notes"];
    let mut editor = Editor::start(agent(&place, &model, &args), live(&place.vault()));
    editor.answers(|method, _| match method {
        "session/request_permission" => Some(selected("allow")),
        _ => None,
    });
    let session = editor.session(&place.vault());
    editor.say(&session, "read, append, select");
    let told = model.told("tool");
    assert!(told[0].contains("other"), "{told:?}");
    assert_eq!(place.read("Other.md"), "other\n\nmore\n", "the program writes the file itself");
    let last = told.last().unwrap();
    assert!(last.contains("the app around the vault did not answer within 5 seconds"), "{last}");
    let methods: Vec<&str> =
        editor.asked.iter().map(|(method, _)| method.as_str()).filter(|m| m.starts_with("_")).collect();
    assert_eq!((methods, editor.withdrawn.len()), (vec!["_vault/host/open_files", STATE], 2));
}

#[test]
fn only_the_app_of_the_vault_is_asked() {
    let place = Place::new(NOTES);
    let elsewhere = Place::new(NOTES);
    let mut of_other_version = live(&place.vault());
    of_other_version["_meta"]["vault"]["host"]["version"] = json!(2);
    for capabilities in [everything(), live(&elsewhere.vault()), live(Path::new("Notes")), of_other_version] {
        let model = ModelServer::with([Reply::call("editor_getSelection", json!({})), Reply::text("ok")]);
        let mut editor = Editor::start(agent(&place, &model, &["--toolset", "actions"]), capabilities);
        editor.chooses("allow");
        let session = editor.session(&place.vault());
        editor.say(&session, "select");
        assert!(editor.asked.iter().all(|(method, _)| !method.starts_with("_vault/")), "{:?}", editor.asked);
        assert!(model.told("tool")[0].contains("\"isEmpty\":true"), "{:?}", model.told("tool"));
    }
}
