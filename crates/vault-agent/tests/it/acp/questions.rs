//! Questions to the person: permission requests, forms, and what a client's own answer is worth.

use serde_json::{Value, json};

use super::editor::{Editor, agent, everything, options, prompt, selected};
use crate::model_server::{ModelServer, Reply};
use crate::stdio::Place;

const NOTES: &str = "//- Home.md\n# Home\n\nfirst\n//- Log.md\nbegun\n";

fn appends(content: &str) -> Reply {
    Reply::call("append_to_note", json!({ "path": "Home.md", "content": content }))
}

fn done() -> Reply {
    Reply::text("Done.")
}

/// What the model was told of its last call.
fn told(model: &ModelServer) -> String {
    model.told("tool").pop().unwrap()
}

#[test]
fn a_change_is_shown_and_made_after_a_yes() {
    let place = Place::new(NOTES);
    let model = ModelServer::with([appends("second"), done()]);
    let mut editor = Editor::plain(&place, &model);
    let session = editor.session(&place.vault());
    let home = place.vault().join("Home.md");
    let before = place.read("Home.md");
    let file = home.clone();
    editor.answers(move |method, _| {
        assert_eq!(method, "session/request_permission");
        assert!(!std::fs::read_to_string(&file).unwrap().contains("second"), "nothing is done before the yes");
        Some(selected("allow"))
    });
    assert_eq!(editor.stops(&session, "Add a line"), "end_turn");
    assert_eq!(place.read("Home.md"), "# Home\n\nfirst\n\nsecond\n");
    let asked = editor.asked_with("session/request_permission");
    let [asked] = &asked[..] else { panic!("one question: {asked:?}") };
    assert_eq!(options(asked), ["allow", "allow_always", "reject", "reject_always"], "no form is offered");
    let kinds: Vec<&Value> = asked["options"].as_array().unwrap().iter().map(|option| &option["kind"]).collect();
    assert_eq!(kinds, ["allow_once", "allow_always", "reject_once", "reject_always"]);
    let always = asked["options"][1]["name"].as_str().unwrap();
    assert!(always.contains("do not ask again for append_to_note in this conversation"), "{always}");
    let call = &asked["toolCall"];
    assert_eq!((&call["title"], &call["kind"]), (&json!("append_to_note `Home.md`"), &Value::Null));
    assert_eq!(call["rawInput"]["content"], "second");
    let content = call["content"].as_array().unwrap();
    let words = content[0]["content"]["text"].as_str().unwrap();
    assert!(words.contains("It can be undone as a whole") && words.contains("stays on this machine"), "{words}");
    let diff = content.iter().find(|it| it["type"] == "diff").unwrap();
    assert_eq!(
        (&diff["path"], &diff["oldText"], &diff["newText"]),
        (&json!(home), &json!(before), &json!("# Home\n\nfirst\n\nsecond\n"))
    );
    assert_eq!(call["locations"], json!([{ "path": home, "line": 4 }]));
    // The diff stays with the call, which is the one that was begun.
    let [shown] = &editor.calls()[..] else { panic!("one call") };
    assert_eq!((&shown["status"], &shown["kind"]), (&json!("completed"), &json!("edit")));
    assert!(shown["content"].as_array().unwrap().iter().any(|it| it["type"] == "diff"), "{shown}");
    assert_eq!(shown["toolCallId"], call["toolCallId"]);
}

#[test]
fn everything_but_a_yes_is_a_no() {
    for answer in [
        selected("reject"),
        selected("reject_always"),
        selected("yes"),
        selected("edit"),
        selected(""),
        json!({ "outcome": { "outcome": "cancelled" } }),
        json!({ "outcome": { "outcome": "allowed" } }),
        json!({ "outcome": "selected" }),
        json!({ "optionId": "allow" }),
        Value::Null,
        json!(true),
    ] {
        let place = Place::new(NOTES);
        let before = place.tree();
        let model = ModelServer::with([appends("second"), done()]);
        let mut editor = Editor::plain(&place, &model);
        let session = editor.session(&place.vault());
        let given = answer.clone();
        editor.answers(move |_, _| Some(given.clone()));
        assert_eq!(editor.stops(&session, "Add a line"), "end_turn", "{answer}");
        assert_eq!(place.tree(), before, "{answer}");
        assert!(told(&model).contains("Tool call denied"), "{answer}: {}", told(&model));
        assert_eq!(editor.calls()[0]["status"], "failed", "{answer}");
    }
}

#[test]
fn what_the_settings_deny_is_denied_whatever_the_client_answers() {
    let place = Place::new(&format!("{NOTES}//- Private/Diary.md\nx\n"));
    place.configure("tools.toml", "denied_tools = [\"append_to_note\"]\ndenied_paths = [\"Private\"]\n");
    let before = place.tree();
    let calls = [
        ("append_to_note", json!({ "path": "Home.md", "content": "x" })),
        ("edit_note", json!({ "path": "Private/Diary.md", "old_text": "x", "new_text": "y" })),
        ("rename_note", json!({ "path": "Home.md", "new_path": "Private/Home.md" })),
        ("delete_note", json!({ "path": "Home.md" })),
        ("read_note", json!({ "path": "Private/Diary.md" })),
    ];
    let replies = calls.iter().map(|(tool, args)| Reply::call(tool, args.clone())).chain([done()]);
    let model = ModelServer::with(replies.collect::<Vec<_>>());
    let mut editor = Editor::able(&place, &model);
    let session = editor.session(&place.vault());
    // A client that answers by itself, and always says yes.
    editor.chooses("allow_always");
    assert_eq!(editor.stops(&session, "Do it"), "end_turn");
    assert_eq!(place.tree(), before);
    assert!(editor.asked.is_empty(), "nobody is asked about what is denied: {:?}", editor.asked);
    let told = model.told("tool");
    assert_eq!(told.len(), calls.len());
    for (told, (tool, _)) in told.iter().zip(&calls) {
        assert!(
            ["denied", "not found", "no such", "there is no tool"].iter().any(|why| told.to_lowercase().contains(why)),
            "{tool}: {told}"
        );
    }
    // Denied while the question is open, it is denied when it is made.
    place.configure("tools.toml", "");
    let model = ModelServer::with([appends("x"), done()]);
    let mut editor = Editor::plain(&place, &model);
    let session = editor.session(&place.vault());
    editor.chooses("allow");
    editor.result("session/set_mode", json!({ "sessionId": session, "modeId": "read" }));
    assert_eq!(editor.stops(&session, "Do it"), "end_turn");
    assert_eq!((place.tree(), editor.asked.len()), (before, 0));
}

#[test]
fn a_yes_for_the_session_is_for_the_tool_and_a_no_too() {
    let place = Place::new(NOTES);
    let edits = |to: &str| Reply::call("edit_note", json!({ "path": "Log.md", "old_text": "begun", "new_text": to }));
    let model = ModelServer::with([appends("a"), appends("b"), edits("x"), edits("y"), done()]);
    let mut editor = Editor::plain(&place, &model);
    let session = editor.session(&place.vault());
    editor.chooses_each(&["allow_always", "reject_always"]);
    editor.say(&session, "Go");
    assert_eq!(place.read("Home.md"), "# Home\n\nfirst\n\na\n\nb\n");
    assert_eq!(place.read("Log.md"), "begun\n");
    assert_eq!(editor.asked.len(), 2, "each tool once");
    assert!(told(&model).contains("refuses every edit_note"), "{}", told(&model));
    // What was not asked about is seen as a diff all the same.
    let second = &editor.calls()[1];
    let diff = second["content"].as_array().unwrap().iter().find(|it| it["type"] == "diff").unwrap();
    assert_eq!(diff["newText"], "# Home\n\nfirst\n\na\n\nb\n");
    assert_eq!(second["status"], "completed");
}

#[test]
fn what_was_not_offered_cannot_be_chosen() {
    let place = Place::new(NOTES);
    place.configure("tools.toml", "allow_delete = true\n");
    let before = place.tree();
    let deletes = || Reply::call("delete_note", json!({ "path": "Home.md" }));
    let model = ModelServer::with([deletes(), deletes(), done()]);
    let mut editor = Editor::plain(&place, &model);
    let session = editor.session(&place.vault());
    // An editor may remember what was chosen for another tool.
    editor.chooses_each(&["allow_always", "pick"]);
    editor.say(&session, "Go");
    assert_eq!(place.tree(), before);
    let asked = editor.asked_with("session/request_permission");
    assert!(asked.iter().all(|asked| !options(asked).contains(&"allow_always".to_owned())), "{asked:?}");
    assert_eq!(asked.len(), 2, "nothing is remembered");
}

#[test]
fn calls_side_by_side_are_asked_about_one_by_one() {
    let place = Place::new(NOTES);
    let append = |content: &str| ("append_to_note".to_owned(), json!({ "path": "Home.md", "content": content }));
    let model = ModelServer::with([Reply::Calls(vec![append("a"), append("b"), append("c")]), done()]);
    let mut editor = Editor::plain(&place, &model);
    let session = editor.session(&place.vault());
    editor.chooses_each(&["allow", "reject", "allow"]);
    editor.say(&session, "Go");
    assert_eq!(place.read("Home.md"), "# Home\n\nfirst\n\na\n\nc\n");
    let asked = editor.asked_with("session/request_permission");
    let ids: Vec<&Value> = asked.iter().map(|asked| &asked["toolCall"]["toolCallId"]).collect();
    let calls = editor.calls();
    assert_eq!(ids, calls.iter().map(|call| &call["toolCallId"]).collect::<Vec<_>>(), "in their order, each its own");
    let statuses: Vec<&Value> = calls.iter().map(|call| &call["status"]).collect();
    assert_eq!(statuses, ["completed", "failed", "completed"]);
    // The last question shows what the first change left.
    let diff = asked[2]["toolCall"]["content"].as_array().unwrap().iter().find(|it| it["type"] == "diff").unwrap();
    assert_eq!(diff["oldText"], "# Home\n\nfirst\n\na\n");
}

#[test]
fn with_forms_a_person_edits_says_why_and_leaves_out() {
    let place = Place::new(NOTES);
    let long = format!("top\n{}bottom\n", "line\n".repeat(20));
    place.write("Long.md", &long);
    let rewrites = Reply::call(
        "write_note",
        json!({ "path": "Long.md", "mode": "replace", "content": long.replace("top", "TOP").replace("bottom", "BOTTOM") }),
    );
    let model = ModelServer::with([appends("a"), appends("b"), rewrites, done()]);
    let mut editor = Editor::able(&place, &model);
    let session = editor.session(&place.vault());
    let mut chosen = ["edit", "allow", "reject_and_say", "pick", "allow"].into_iter();
    let mut filled = [
        json!({ "path": "Log.md", "content": "edited" }),
        json!({ "reason": "Not there; ask me first." }),
        json!({ "ticked": ["1"] }),
    ]
    .into_iter();
    editor.answers(move |method, params| match method {
        "session/request_permission" => {
            let all = options(params);
            let choice = chosen.next().unwrap();
            assert!(all.iter().any(|option| option == choice), "{choice}: {all:?}");
            Some(selected(choice))
        }
        "elicitation/create" => {
            assert_eq!((&params["mode"], params["toolCallId"].is_string()), (&json!("form"), true));
            Some(json!({ "action": "accept", "content": filled.next().unwrap() }))
        }
        other => panic!("{other}"),
    });
    assert_eq!(editor.stops(&session, "Go"), "end_turn");
    assert_eq!((place.read("Home.md"), place.read("Log.md")), ("# Home\n\nfirst\n".into(), "begun\n\nedited\n".into()));
    assert_eq!(place.read("Long.md"), long.replace("bottom", "BOTTOM"));
    let forms = editor.asked_with("elicitation/create");
    let fields = &forms[0]["requestedSchema"]["properties"];
    assert_eq!((&fields["path"]["default"], &fields["content"]["default"]), (&json!("Home.md"), &json!("a")));
    // What was edited is shown again before it is done.
    let asked = editor.asked_with("session/request_permission");
    let diff = asked[1]["toolCall"]["content"].as_array().unwrap().iter().find(|it| it["type"] == "diff").unwrap();
    assert_eq!(diff["path"], json!(place.vault().join("Log.md")));
    let made = asked[4]["toolCall"]["content"].as_array().unwrap().iter().find(|it| it["type"] == "diff").unwrap();
    assert_eq!(made["newText"], json!(long.replace("bottom", "BOTTOM")), "what is left is shown again");
    let told = model.told("tool");
    assert!(told[0].contains("The user changed the arguments"), "{}", told[0]);
    assert!(
        told[1].contains("Tool call denied: User cancelled tool execution: Not there; ask me first."),
        "{}",
        told[1]
    );
}

#[test]
fn a_form_that_is_closed_asks_again_and_not_for_ever() {
    let place = Place::new(NOTES);
    let model = ModelServer::with([appends("a"), done()]);
    let mut editor = Editor::able(&place, &model);
    let session = editor.session(&place.vault());
    editor.answers(|method, _| match method {
        "session/request_permission" => Some(selected("edit")),
        _ => Some(json!({ "action": "cancel" })),
    });
    assert_eq!(editor.stops(&session, "Go"), "end_turn");
    assert_eq!(place.read("Home.md"), "# Home\n\nfirst\n");
    assert!(editor.asked.len() <= 20 && told(&model).contains("did not decide"), "{}", told(&model));
    // Arguments that cannot be used are said, and nothing is done with them.
    let model = ModelServer::with([appends("a"), done()]);
    let mut editor = Editor::able(&place, &model);
    let session = editor.session(&place.vault());
    let mut chosen = ["edit", "reject"].into_iter();
    editor.answers(move |method, _| match method {
        "session/request_permission" => Some(selected(chosen.next().unwrap())),
        _ => Some(json!({ "action": "accept", "content": { "path": "../outside.md", "content": "x" } })),
    });
    editor.say(&session, "Go");
    let asked = editor.asked_with("session/request_permission");
    let said = asked[1]["toolCall"]["content"][0]["content"]["text"].as_str().unwrap();
    assert!(said.contains("cannot be made"), "{said}");
    assert!(!place.vault().parent().unwrap().join("outside.md").exists());
}

#[test]
fn results_of_the_toolset_chat_are_shared_item_by_item() {
    let place = Place::new("//- a.md\nabout otters\n//- b.md\nabout herons\n//- c.md\nabout bitterns\n");
    let reads = || Reply::call("file_read", json!({ "filePaths": ["a.md", "b.md", "c.md"] }));
    for (capabilities, expected) in
        [(everything(), ["allow", "pick", "reject"].as_slice()), (json!({}), ["allow", "reject"].as_slice())]
    {
        let has_forms = expected.len() == 3;
        let model = ModelServer::with([reads(), done(), reads(), done()]);
        let mut command = agent(&place, &model, &[]);
        command.env("VAULT_AGENT_TOOLSETS", "chat");
        let mut editor = Editor::start(command, capabilities);
        let session = editor.session(&place.vault());
        let wanted: Vec<String> = expected.iter().map(|option| (*option).to_owned()).collect();
        editor.answers(move |method, params| match method {
            "elicitation/create" => Some(json!({ "action": "accept", "content": { "ticked": ["0", "2"] } })),
            _ if options(params).contains(&"allow_always".to_owned()) => Some(selected("allow")),
            _ => {
                assert_eq!(options(params), wanted);
                Some(selected(if has_forms { "pick" } else { "reject" }))
            }
        });
        editor.say(&session, "Read them");
        let told = told(&model);
        assert_eq!(told.contains("otters") && told.contains("bitterns"), has_forms, "{told}");
        // That a part is missing is not told.
        assert!(!told.contains("herons") && told.contains("withheld") != has_forms, "{told}");
    }
}

#[test]
fn cancelled_while_a_question_is_open() {
    let place = Place::new(NOTES);
    let before = place.tree();
    let model = ModelServer::with([appends("a"), Reply::text("Then not.")]);
    let mut editor = Editor::plain(&place, &model);
    let session = editor.session(&place.vault());
    editor.answers(|_, _| None);
    let turn = editor.ask("session/prompt", prompt(&session, "Go"));
    editor.until(|editor| editor.open.is_some());
    editor.notify("session/cancel", json!({ "sessionId": session }));
    editor.answer_open(json!({ "outcome": { "outcome": "cancelled" } }));
    assert_eq!(editor.response(turn)["result"]["stopReason"], "cancelled");
    assert_eq!((place.tree(), editor.calls()[0]["status"].clone()), (before, json!("failed")));
    assert_eq!(editor.stops(&session, "Never mind"), "end_turn");
    let told = told(&model);
    assert!(told.contains("Cancelled before it ran"), "{told}");
}
