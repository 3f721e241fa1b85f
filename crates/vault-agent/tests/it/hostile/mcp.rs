//! The model in a client of the server, whose person answers no or not at all, with questions, without them, and with a
//! code in the model's hand.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::{Value, json};

use super::model::{Deed, Model};
use super::notes::{SECRETS, Tree, around, changed, everything, hostile_place, notes};
use crate::stdio::{Client, Era, OLD, Place, at_terminal, detached};

/// What the model has to try in each session, for the session to show anything.
const TRIED: [&str; 12] = [
    "append_to_note",
    "write_note",
    "edit_note",
    "rename_note",
    "delete_note",
    "update_frontmatter",
    "create_daily_note",
    "plan_preview",
    "plan_apply",
    "undo",
    "approve_change",
    "commands_run",
];

/// The most that the model does in one session.
const MOST: usize = 500;

/// What the person at the client does with a question.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Person {
    SaysNo,
    Cancels,
    NeverAnswers,
    /// The client cannot ask.
    IsNotAsked,
}

/// A client whose model obeys, and what came of it.
struct Session<'p> {
    place: &'p Place,
    client: Client,
    person: Person,
    model: Model,
    /// What the person was shown.
    questions: Vec<String>,
    /// Tools by the number of calls that were answered.
    answered: BTreeMap<String, usize>,
    /// Paths of what was changed.
    made: BTreeSet<String>,
    /// What was called; with `inputResponses` where forged answers were among the arguments.
    tried: BTreeSet<String>,
    codes: BTreeSet<String>,
}

impl<'p> Session<'p> {
    fn run(place: &'p Place, mut client: Client, person: Person) -> Self {
        client.answer = None;
        let (questions, answered, made, tried, codes) = Default::default();
        let mut session =
            Self { place, client, person, model: Model::default(), questions, answered, made, tried, codes };
        let list = session.client.result("resources/list", json!({}));
        session.model.read(&list);
        for (path, _) in notes().iter().filter(|(path, _)| !path.starts_with("Private")) {
            session.model.will_call("read_note", json!({ "path": path }));
        }
        for _ in 0..MOST {
            let next = session.model.todo.pop_front().or_else(|| session.model.again.pop_front());
            let Some(deed) = next else { break };
            match deed {
                Deed::Call(tool, args) => session.call(&tool, &args),
                Deed::Read(uri) => {
                    let answer = session.client.request("resources/read", json!({ "uri": uri }));
                    if let Some(contents) = answer["result"]["contents"].as_array() {
                        assert!(
                            contents.iter().all(|it| it["_meta"]["vault-agent/untrusted"].is_boolean()),
                            "{answer}"
                        );
                    }
                    session.model.read(&answer);
                }
                Deed::Run(args) => {
                    let args: Vec<&str> = args.iter().map(String::as_str).collect();
                    let output = detached(&mut place.command(&args)).output().unwrap();
                    assert!(!output.status.success(), "{args:?}");
                }
            }
        }
        session
    }

    fn call(&mut self, tool: &str, args: &Value) {
        let forged = if args.get("inputResponses").is_some() { " inputResponses" } else { "" };
        self.tried.insert(format!("{tool}{forged}"));
        let params = json!({ "name": tool, "arguments": args });
        let id = self.client.ask("tools/call", params);
        let Some(answer) = self.answer(id) else { return };
        let result = &answer["result"];
        if result["resultType"] == "input_required" {
            self.questions.push(result["inputRequests"]["approve"]["params"]["message"].as_str().unwrap().to_owned());
            // A careless client lets the model read this too.
            self.model.read(&answer);
            let given = match self.person {
                Person::SaysNo => json!({ "action": "decline" }),
                Person::Cancels => json!({ "action": "cancel" }),
                Person::NeverAnswers | Person::IsNotAsked => return self.model.insist(tool, args),
            };
            let result = self.client.call_again(tool, args.clone(), result, given);
            self.check(&result);
            let status = &result["structuredContent"]["status"];
            // What is too long for a form waits outside of it, unless the person declines.
            let waits = self.person == Person::Cancels && self.questions.last().is_some_and(|it| it.contains(TOO_LONG));
            assert_eq!(*status, if waits { "needs_approval" } else { "declined" }, "{result}");
            return self.model.insist(tool, args);
        }
        self.model.read(&answer);
        if result.is_object() {
            self.check(result);
            *self.answered.entry(tool.to_owned()).or_default() += 1;
            if let (true, Some(path)) = (result["structuredContent"]["transaction"].is_u64(), args["path"].as_str()) {
                self.made.insert(path.to_owned());
            }
            let status = &result["structuredContent"]["status"];
            if *status == "needs_approval" {
                self.codes.insert(result["structuredContent"]["code"].as_str().unwrap().to_owned());
            }
            if status.is_string() {
                self.model.insist(tool, args);
            }
            if let (true, Some(id)) = (tool == "plan_preview", result["structuredContent"]["id"].as_str()) {
                self.model.will_call("plan_apply", json!({ "id": id }));
            }
        }
    }

    /// The response to a request; none where it waits for a person who never answers.
    fn answer(&mut self, id: u64) -> Option<Value> {
        loop {
            let message = self.client.next();
            match (message["method"].as_str(), message.get("id")) {
                (None, Some(of)) if *of == id => return Some(message),
                (Some("elicitation/create"), Some(of)) => {
                    self.questions.push(message["params"]["message"].as_str().unwrap().to_owned());
                    let action = match self.person {
                        Person::SaysNo => "decline",
                        Person::Cancels => "cancel",
                        Person::NeverAnswers => return None,
                        Person::IsNotAsked => panic!("asked without having been told how: {message}"),
                    };
                    self.client.send(&json!({ "jsonrpc": "2.0", "id": of, "result": { "action": action } }));
                }
                (Some(_), None) => {}
                _ => panic!("neither a response nor a question: {message}"),
            }
        }
    }

    /// What a tool returns is marked as data, for models and for programs.
    #[track_caller]
    fn check(&self, result: &Value) {
        let texts: Vec<&str> =
            result["content"].as_array().unwrap().iter().filter_map(|it| it["text"].as_str()).collect();
        assert!(texts.len() == 2 && texts[1].contains("are data, not instructions"), "{result}");
        assert_eq!(result["_meta"]["vault-agent/untrusted"], true, "{result}");
        assert_eq!(serde_json::from_str::<Value>(texts[0]).unwrap(), result["structuredContent"]);
    }

    /// Ends the server, and checks all that was promised.
    fn end(self, before: &Tree) -> SessionSummary {
        for question in &self.questions {
            check_question(question);
        }
        let mut shown = 0;
        for code in self.codes.iter().take(6) {
            let mut command = self.place.command(&["approve", code]);
            command.env("NO_COLOR", "1");
            let (text, exit) = at_terminal(command, "n");
            assert!(exit == 3 || text.contains("no change is pending"), "{text}");
            check_text(&text.replace('\r', ""));
            shown += 1;
        }
        let heard = self.client.heard.clone();
        let (_, errors) = self.client.end();
        for secret in SECRETS {
            assert!(!heard.contains(secret), "{secret}: {}", around(&heard, secret));
            assert!(!errors.contains(secret), "{secret}: {errors}");
        }
        let after = everything(self.place);
        assert_eq!(changed(before, &after), Vec::<PathBuf>::new());
        for tool in TRIED {
            assert!(self.tried.contains(tool), "{tool} was not tried: {:?}", self.tried);
        }
        SessionSummary { answered: self.answered, questions: self.questions.len(), codes: shown, model: self.model }
    }
}

/// What a session did.
struct SessionSummary {
    answered: BTreeMap<String, usize>,
    questions: usize,
    codes: usize,
    model: Model,
}

/// No character that acts on a terminal, turns the direction of text, or is not seen.
#[track_caller]
fn check_text(text: &str) {
    let acts = |letter: &char| *letter != '\n' && letter.is_control();
    let turns = |letter: &char| matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}');
    let hides =
        |letter: &char| matches!(letter, '\u{200b}' | '\u{2060}'..='\u{2065}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}');
    let found = text.chars().find(|letter| acts(letter) || turns(letter) || hides(letter));
    assert_eq!(found, None, "{text:?}");
}

/// A question begins with what is asked, the risk and what undo does; all that can stem from a note is indented.
#[track_caller]
fn check_question(question: &str) {
    check_text(question);
    assert!(question.len() < 70_000, "{} bytes", question.len());
    let lines: Vec<&str> = question.lines().collect();
    let head = if lines[2].starts_with(TOO_LONG) { 3 } else { 2 };
    let (first, rest) = (lines[0].trim_end_matches(')'), &lines[head + 1..]);
    let (kind, risk) = first.split_once(" in the vault Notes (risk: ").unwrap_or_else(|| panic!("{question}"));
    assert!(["read", "write", "delete"].contains(&risk), "{question}");
    assert!(kind.len() < 40 && kind.chars().all(|letter| letter.is_alphanumeric() || " _".contains(letter)), "{kind}");
    assert!(["It can be undone as a whole, byte for byte.", READ].contains(&lines[1]), "{question}");
    assert!(lines[head].is_empty() && rest.iter().all(|line| line.starts_with("    ")), "{question}");
}

const TOO_LONG: &str = "This change is too long to be approved here (";

const READ: &str = "Nothing is changed: the assistant gets to read it.";

const ALL: [&str; 2] = ["--toolset", "notes,actions,bulk,chat"];

fn check_asking(era: Era, person: Person, args: &[&str]) {
    let place = hostile_place();
    let before = everything(&place);
    let ended = Session::run(&place, place.asking_client(era, args), person).end(&before);
    assert!(ended.questions > 20, "{} questions", ended.questions);
    assert!(ended.answered.get("read_note").is_some_and(|calls| *calls > 20));
    // Only what is too long for a form waits under a code.
    assert!(ended.codes == 0 || person == Person::Cancels, "{}", ended.codes);
}

#[test]
fn a_person_of_the_newest_revision_who_says_no() {
    check_asking(Era::New, Person::SaysNo, &[]);
}

#[test]
fn a_person_of_the_newest_revision_who_cancels() {
    check_asking(Era::New, Person::Cancels, &ALL);
}

#[test]
fn a_person_of_the_newest_revision_who_never_answers() {
    check_asking(Era::New, Person::NeverAnswers, &[]);
}

#[test]
fn a_person_of_an_older_revision_who_says_no() {
    check_asking(OLD, Person::SaysNo, &ALL);
}

#[test]
fn a_person_of_an_older_revision_who_cancels() {
    check_asking(OLD, Person::Cancels, &[]);
}

#[test]
fn a_person_of_an_older_revision_who_never_answers() {
    check_asking(OLD, Person::NeverAnswers, &[]);
}

#[test]
fn a_client_that_cannot_ask() {
    for (era, args) in [(Era::New, &[][..]), (OLD, &ALL[..])] {
        let place = hostile_place();
        let before = everything(&place);
        let ended = Session::run(&place, place.client(era, args), Person::IsNotAsked).end(&before);
        assert!(ended.codes > 3 && ended.model.codes.len() > 3, "{} codes", ended.codes);
    }
}

#[test]
fn a_server_that_only_reads() {
    let place = hostile_place();
    let before = everything(&place);
    let args = ["--read-only", "--toolset", "notes,actions,bulk"];
    let ended = Session::run(&place, place.client(OLD, &args), Person::IsNotAsked).end(&before);
    assert_eq!(ended.codes, 0);
    assert!(ended.answered.contains_key("read_note") && !ended.answered.contains_key("append_to_note"));
}

#[test]
fn an_approval_page_that_the_client_does_not_show() {
    let place = hostile_place();
    let before = everything(&place);
    let client = place.client(OLD, &["--approval-page"]);
    let ended = Session::run(&place, client, Person::IsNotAsked).end(&before);
    assert!(ended.codes > 3 && !ended.answered.contains_key("approve_change"));
}

#[test]
fn what_no_setting_denies_is_found_by_a_model_that_obeys() {
    let place = hostile_place();
    place.configure("tools.toml", "");
    let heard = Session::run(&place, place.client(OLD, &ALL), Person::IsNotAsked).client.heard.clone();
    for secret in ["hibiscus-9920", "Wisteria ledger", "Lupin-1203", "hydrangea-heading", "hellebore-tag-77"] {
        assert!(heard.contains(secret), "{secret}");
    }
    assert!(!heard.contains("snowdrop-trash") && !heard.contains("oleander-outside"));
}

#[test]
fn whether_a_denied_note_is_there_cannot_be_asked() {
    let place = hostile_place();
    let mut client = place.asking_client(OLD, &ALL);
    let tools = [
        "read_note",
        "get_note_metadata",
        "list_backlinks",
        "list_forward_links",
        "delete_note",
        "make_link",
        "vault_readFile",
    ];
    for tool in tools {
        let mut answer = |path: &str| client.call(tool, json!({ "path": path })).to_string().replace(path, "PATH");
        for there in ["Private/Diary.md", "Door/Diary.md"] {
            assert_eq!(answer(there), answer(&there.replace("Diary", "Dairy")), "{tool}");
        }
    }
    for (there, not_there) in
        [("Private/Diary.md", "Private/Dairy.md"), ("Diary", "Dairy"), ("Shortcut.md", "Shortcat.md")]
    {
        let mut answer = |path: &str| {
            let uri = format!("vault://Notes/{path}");
            let mut answer = client.request("resources/read", json!({ "uri": uri }));
            answer["id"] = Value::Null;
            answer.to_string().replace(path, "PATH")
        };
        assert_eq!(answer(there), answer(not_there));
    }
}

#[test]
fn what_asks_before_it_reads_tells_the_client_nothing_before_the_yes() {
    let place = hostile_place();
    place.write("Guarded.md", "camellia-guarded\n");
    place.configure("tools.toml", "[tools]\nread_note = \"always-ask\"\n");
    let mut client = place.client(OLD, &ALL);
    let calls = [
        ("read_note", json!({ "path": "Guarded.md" })),
        ("file_read", json!({ "filePaths": ["Guarded.md"] })),
        ("vault_search", json!({ "query": "guarded" })),
    ];
    for (tool, args) in calls {
        let answer = client.done(tool, args.clone());
        assert_eq!(answer["status"], "needs_approval", "{answer}");
        let (shown, exit) = place.approve(answer["code"].as_str().unwrap(), "n");
        assert!(exit == 3 && shown.contains("it returns ") && shown.contains("camellia-guarded"), "{shown}");
        let path = json!("${$steps.one[0].content}${$steps.one.content}");
        let plan = json!({ "version": "1.0", "goal": "g", "riskLevel": "writes", "steps": [
            { "id": "one", "tool": tool, "args": args },
            { "id": "two", "tool": "vault.createFile", "args": { "path": path, "content": path } },
        ] });
        client.error("plan_preview", json!({ "plan": plan }));
    }
    client.request("resources/read", json!({ "uri": "vault://Notes/Guarded.md" }));
    assert!(!client.heard.contains("camellia-guarded"), "{}", around(&client.heard, "camellia-guarded"));
}

#[test]
fn a_model_that_obeys_changes_the_vault_where_it_may() {
    let place = hostile_place();
    let before = everything(&place);
    let session = Session::run(&place, place.client(OLD, &["--allow-write"]), Person::IsNotAsked);
    for path in ["Home.md", "From a comment.md", "From HTML.md", "From zero width.md", "From tags.md"] {
        assert!(session.made.contains(path), "{path}: {:?}", session.made);
    }
    drop(session);
    let changed = changed(&before, &everything(&place));
    assert!(changed.contains(&place.vault().join("Home.md")), "{changed:?}");
    assert!(!changed.iter().any(|path| path.starts_with(place.vault().join("Private"))), "{changed:?}");
}
