//! A line hidden behind every cut of every front end: nobody can approve it unseen.

use serde_json::{Value, json};

use crate::acp::editor::{self, Editor};
use crate::chat::{self, KEYS};
use crate::model_server::{ModelServer, Reply};
use crate::stdio::{Client, Era, OLD, Place, at_terminal, yes};

const NOTES: &str = "//- Log.md\n- begun\n";
const EVIL: &str = "- EVIL";

/// A text of so many lines, of which the last is the one to be hidden.
fn lines(count: usize) -> String {
    (1..count).map(|number| format!("- line {number}\n")).collect::<String>() + EVIL
}

fn append(content: &str) -> Value {
    json!({ "path": "Log.md", "content": content })
}

fn message(request: &Value) -> &str {
    request["params"]["message"].as_str().unwrap()
}

#[test]
fn a_form_shows_all_of_what_it_approves() {
    // What was cut before: lines from the 55th on, and what follows 1,000 characters of a line.
    for content in [lines(400), format!("{}{EVIL}", "x".repeat(12_000))] {
        let place = Place::new(NOTES);
        let mut client = place.asking_client(OLD, &[]);
        client.answer = Some(yes());
        assert_eq!(client.done("append_to_note", append(&content))["transaction"], 1);
        assert!(message(&client.asked[0]).contains(EVIL));

        let place = Place::new(NOTES);
        let mut client = place.asking_client(Era::New, &[]);
        let question = client.call("append_to_note", append(&content));
        assert!(message(&question["inputRequests"]["approve"]).contains(EVIL));
    }
}

#[test]
fn a_change_that_is_too_long_for_a_form_can_only_be_declined_in_it() {
    for content in [lines(1_200), format!("{}{EVIL}", "x".repeat(33_000))] {
        for era in [OLD, Era::New] {
            let place = Place::new(NOTES);
            let mut client = place.asking_client(era, &[]);
            let mut asked = |answer: Value| {
                client.answer = Some(answer.clone());
                let before = client.asked.len();
                let first = client.call("append_to_note", append(&content));
                match era {
                    Era::New => {
                        let form = first["inputRequests"]["approve"].clone();
                        (form, client.call_again("append_to_note", append(&content), &first, answer))
                    }
                    Era::Old(_) => (client.asked[before].clone(), first),
                }
            };
            let (form, declined) = asked(json!({ "action": "decline" }));
            assert_eq!(declined["structuredContent"]["status"], "declined", "{declined}");
            assert!(form["params"]["requestedSchema"]["properties"].get("approve").is_none(), "{form}");
            assert!(!message(&form).contains(EVIL) && message(&form).contains("can only be declined"), "{form}");
            // A tick that was not offered is none.
            let (form, waits) = asked(yes());
            let waits = &waits["structuredContent"];
            assert_eq!(waits["status"], "needs_approval", "{waits}");
            let code = waits["code"].as_str().unwrap().to_owned();
            assert!(message(&form).contains(&format!("`vault-agent approve {code}`")), "{form}");
            assert_eq!(place.read("Log.md"), "- begun\n");

            let (shown, exit) = place.approve(&code, "y\ny");
            assert!(exit == 0 && shown.contains(EVIL), "{exit}");
            assert_eq!(client.done("append_to_note", append(&content))["transaction"], 1);
            assert!(place.read("Log.md").contains(EVIL));
        }
    }
}

#[test]
fn a_yes_at_the_terminal_counts_once_all_was_shown() {
    let place = Place::new(NOTES);
    let mut client = place.client(OLD, &[]);
    let waits = client.done("append_to_note", append(&lines(400)));
    // The first yes only shows the rest; the second is one to all of it.
    let code = waits["code"].as_str().unwrap();
    let (shown, exit) = place.approve(code, "y\nn");
    let first = shown.split("once all of it is shown").next().unwrap();
    assert!(exit == 3 && shown.contains(EVIL) && !first.contains(EVIL), "{shown}");
    assert_eq!(client.done("append_to_note", append(&lines(400)))["status"], "needs_approval");
    assert_eq!(place.read("Log.md"), "- begun\n");
}

#[test]
fn a_yes_in_chat_counts_once_all_was_shown() {
    let place = Place::new(NOTES);
    let model = ModelServer::with([Reply::call("append_to_note", append(&lines(400))), Reply::text("Done.")]);
    let mut terminal = chat::chat(&place, &model, &[]);
    terminal.say("write it");
    terminal.until("yes, once all of it is shown");
    terminal.until(KEYS);
    // Nor does a yes for the session.
    terminal.press("a");
    terminal.until(EVIL);
    assert_eq!(place.read("Log.md"), "- begun\n");
    terminal.until(KEYS);
    terminal.press("y");
    terminal.until("220 tokens");
    assert!(place.read("Log.md").contains(EVIL));
    chat::leave(terminal);
}

#[test]
fn a_yes_to_an_insertion_counts_once_all_was_shown() {
    let place = Place::new(NOTES);
    let model = ModelServer::with([Reply::text(&lines(400))]);
    let args = ["ask", "--note", "Log.md", "--cursor", "1:0", "--insert", "what else?"];
    let (shown, exit) = at_terminal(chat::command(&place, &model, &args), "y\nn");
    let first = shown.split("once all of it is shown").next().unwrap();
    assert!(exit == 3 && shown.contains(EVIL) && !first.contains(EVIL), "{shown}");
    assert_eq!(place.read("Log.md"), "- begun\n");
}

#[test]
fn a_question_in_an_editor_shows_all() {
    // Above half a megabyte of texts, an editor gets the lines that differ: more than a block of other text has.
    let notes = format!("//- Log.md\n{}- begun\n", "- filler of a long note\n".repeat(25_000));
    let place = Place::new(&notes);
    let content = lines(2_000);
    let model = ModelServer::with([Reply::call("append_to_note", append(&content)), Reply::text("Done.")]);
    let mut editor = Editor::plain(&place, &model);
    let session = editor.session(&place.vault());
    editor.answers(|_, _| Some(editor::selected("reject")));
    assert_eq!(editor.stops(&session, "Write it"), "end_turn");
    let asked = editor.asked_with("session/request_permission");
    let shown = asked[0]["toolCall"]["content"].as_array().unwrap();
    let text = |block: &Value| block["content"]["text"].as_str().map(str::to_owned);
    assert!(shown.iter().filter_map(text).any(|text| text.contains(EVIL)), "{}", shown.len());
}

#[test]
fn the_approval_page_shows_all() {
    let place = Place::new(NOTES);
    let pages =
        json!({ "extensions": { "io.modelcontextprotocol/ui": { "mimeTypes": ["text/html;profile=mcp-app"] } } });
    let mut client = Client::of(place.command(&["mcp", "--approval-page"]), Era::New, pages);
    // More than the page got before.
    let content = lines(40_000);
    let code = client.done("append_to_note", append(&content))["code"].clone();
    let change = client.done("approve_change", json!({ "code": code }))["change"].clone();
    assert!(change["files"][0]["diff"].as_str().unwrap().contains(EVIL));
}
