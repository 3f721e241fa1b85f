//! `ask`, with a model on loopback and without one; `sessions`.

use std::process::Output;

use serde_json::{Value, json};

use crate::model_server::{ModelServer, Reply};
use crate::stdio::{Place, at_terminal};
use crate::terminal::Terminal;

const NOTES: &str = "//- Garden/Roses.md\n# Roses\n\nPrune them in late winter, never in autumn.\n//- Home.md\nSee [[Roses]].\n\
//- Private/Diary.md\nThe roses were a present.\n";

/// Runs the program with a model.
fn run(place: &Place, model: &ModelServer, args: &[&str]) -> Output {
    command(place, model, args).output().unwrap()
}

fn command(place: &Place, model: &ModelServer, args: &[&str]) -> std::process::Command {
    let mut command = place.command(args);
    command.env("VAULT_AGENT_PROVIDER", &model.address).env("VAULT_AGENT_MODEL", "scripted");
    command
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn errors(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn searches() -> Reply {
    Reply::call("search_notes", json!({ "query": "prune roses" }))
}

#[test]
fn an_answer_has_sources_that_exist() {
    let place = Place::new(NOTES);
    let model = ModelServer::with([
        searches(),
        Reply::call("read_note", json!({ "path": "Garden/Roses.md" })),
        Reply::text(
            "In late winter: \"never in autumn\" [Garden/Roses.md:3]. Or \"in early spring\" [Garden/Roses.md:3], \
             as [Garden/Lilies.md:1] says.",
        ),
    ]);
    let output = run(&place, &model, &["ask", "when", "do I prune roses?"]);
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    assert_eq!(
        out(&output),
        "In late winter: \"never in autumn\" [Garden/Roses.md:3]. Or […] [Garden/Roses.md:3], as says.\n\n\
         Sources\n  Garden/Roses.md:3\n"
    );
    let said = errors(&output);
    for line in [
        "  search_notes \"prune roses\"",
        "  read_note \"Garden/Roses.md\"",
        "not found: \"in early spring\": not in Garden/Roses.md",
        "not found: [Garden/Lilies.md:1]: there is no such note",
        "note: 2 calls in 3 notes",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    let [first, .., last] = &model.requests()[..] else { panic!("three requests") };
    assert!(first["messages"][1]["content"].as_str().unwrap().contains("when do I prune roses?"), "{first}");
    assert!(last["messages"].to_string().contains("never in autumn"), "the note was read");
    // Nothing that writes is offered.
    let names: Vec<&str> =
        first["tools"].as_array().unwrap().iter().map(|tool| tool["function"]["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"search_notes") && !names.contains(&"write_note"), "{names:?}");
}

#[test]
fn the_document_says_the_same() {
    let place = Place::new(NOTES);
    let model = ModelServer::with([searches(), Reply::text("In winter [Garden/Roses.md:3], says [No.md:1].")]);
    let output = run(&place, &model, &["ask", "--json", "--note", "Home.md", "when?"]);
    let record: Value = serde_json::from_str(&out(&output)).unwrap();
    assert_eq!(record["answer"], "In winter [Garden/Roses.md:3], says.");
    assert_eq!(record["sources"], json!([{ "path": "Garden/Roses.md", "line": 3 }]));
    assert_eq!(record["removed"], json!(["[No.md:1]: there is no such note"]));
    assert_eq!((&record["stop"], &record["notes"], &record["tokens"]), (&json!("answered"), &json!(3), &json!(220)));
    assert_eq!(record["cost"], 0.0042);
    assert_eq!(record["calls"][0]["args"]["query"], "prune roses");
    assert!(model.told("system")[0].contains("viewing the note \"Home.md\""));
    let schema: Value = serde_json::from_str(&out(&run(&place, &model, &["ask", "--schema", "x"]))).unwrap();
    jsonschema::validator_for(&schema).unwrap().validate(&record).unwrap();
}

#[test]
fn without_a_model_the_best_passages_help() {
    let place = Place::new(NOTES);
    let output = place.command(&["ask", "when do I prune roses?"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    assert!(out(&output).starts_with("Garden/Roses.md:"), "{}", out(&output));
    assert!(out(&output).contains("Prune them in late winter"));
    assert!(errors(&output).contains("no model is configured"), "{}", errors(&output));
    let output = Place::new("").command(&["ask", "anything"]).output().unwrap();
    assert!(output.status.code() == Some(1) && errors(&output).contains("holds no notes"), "{}", errors(&output));
    let output = place.command(&["ask", "--json", "zzqxv wwkjh"]).output().unwrap();
    let record: Value = serde_json::from_str(&out(&output)).unwrap();
    assert_eq!((output.status.code(), &record["passages"], &record["answer"]), (Some(1), &json!([]), &Value::Null));
}

#[test]
fn passages_are_wrapped_at_words_on_a_terminal() {
    const COLUMNS: u16 = 50;
    let place = Place::new(NOTES);
    let mut command = place.command(&["ask", "when do I prune roses, and never in which season?"]);
    command.env("TERM", "xterm-256color").env("NO_COLOR", "1");
    let (screen, _) = Terminal::start(&command, COLUMNS).end();
    let broken: Vec<&str> = screen.lines().filter(|line| line.chars().count() > usize::from(COLUMNS)).collect();
    assert!(broken.is_empty() && screen.contains("\n  Prune them in late winter, never in autumn.\n"), "{screen}");
    let long = format!("//- Log.md\n{}\n", "a heap of leaves and ".repeat(6));
    let place = Place::new(&long);
    let mut command = place.command(&["ask", "leaves"]);
    command.env("TERM", "xterm-256color").env("NO_COLOR", "1");
    let (screen, _) = Terminal::start(&command, COLUMNS).end();
    assert!(screen.contains("  a heap of leaves and a heap of leaves and a heap\n  of leaves"), "{screen}");
}

#[test]
fn what_goes_wrong_is_said_and_the_conversation_is_kept() {
    let place = Place::new(NOTES);
    for (reply, expected) in [
        (Reply::Error(401, "invalid api key".into()), "key"),
        (Reply::Error(404, "the model `scripted` does not exist".into()), "exist (status 404) (check the model's name"),
        (Reply::Error(400, "maximum context length is 10 tokens".into()), "a longer context"),
    ] {
        let model = ModelServer::that(move |_| reply.clone());
        let output = run(&place, &model, &["ask", "when?"]);
        assert_eq!(output.status.code(), Some(2), "{}", errors(&output));
        assert!(errors(&output).contains(expected), "{expected}: {}", errors(&output));
    }
    // A server that is not there.
    let mut command = place.command(&["ask", "when?"]);
    command.env("VAULT_AGENT_PROVIDER", "http://127.0.0.1:9/v1").env("VAULT_AGENT_MODEL", "m");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(errors(&output).contains("127.0.0.1:9") || errors(&output).contains("reached"), "{}", errors(&output));
    let listed = place.command(&["sessions", "--json"]).output().unwrap();
    let sessions: Value = serde_json::from_str(&out(&listed)).unwrap();
    assert_eq!(sessions.as_array().unwrap().len(), 4);
    assert_eq!(sessions[0]["title"], "when?");
}

#[test]
fn a_model_that_has_too_many_requests_is_asked_again() {
    let place = Place::new(NOTES);
    let model = ModelServer::with([Reply::Busy(1), Reply::text("In late winter.")]);
    let started = std::time::Instant::now();
    let output = run(&place, &model, &["ask", "when?"]);
    assert!(started.elapsed() >= std::time::Duration::from_secs(1), "it waits as long as it is told to");
    assert_eq!((output.status.code(), &*out(&output)), (Some(0), "In late winter.\n"), "{}", errors(&output));
    let said = errors(&output);
    let line = said.lines().find(|line| line.contains("Rate limit reached")).expect(&said);
    // Somewhat more than it is told, so that not all clients come at once.
    assert!(line.starts_with("! ") && line.contains("429") && line.ends_with("; trying again in 2 s"), "{line}");
    let [first, second] = &model.requests()[..] else { panic!("two requests") };
    assert_eq!(first, second);
}

/// While the model thinks, vectors are made, and what is still missing is said.
#[test]
fn vectors_are_made_while_the_model_thinks() {
    let place = Place::new("");
    let text =
        "Prune roses in late winter, when the buds swell and the frost is over, above a bud that looks outwards. ";
    (0..300).for_each(|n| {
        place.write(
            &format!("Note {n}.md"),
            &format!("# Rose {n}\n\n{}", text.repeat(8).replace("roses", &format!("rose {n}"))),
        )
    });
    let file = place.home().join("index.db");
    let options = vault_index::Options::new().index_file(file.clone());
    let index = vault_index::Index::open(place.vault(), options).unwrap();
    index.sync_with(&vault_index::SyncOptions::new().without_vectors()).unwrap();
    let pending = index.status().unwrap().pending;
    let model = ModelServer::with([searches(), Reply::Slowly("In winter.".into(), 300)]);
    let output = run(&place, &model, &["ask", "--json", "when?", "--index", file.to_str().unwrap()]);
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    let left = index.status().unwrap().pending;
    assert!(left < pending, "{left} of {pending}: {}", errors(&output));
    assert_eq!((&record["notes"], record["pending"].as_u64().unwrap() >= left as u64), (&json!(300), true));
}

#[test]
fn a_limit_ends_the_run_with_its_reason() {
    let place = Place::new(NOTES);
    let model = ModelServer::that(|request| {
        let turn = request["messages"].as_array().unwrap().len();
        Reply::call("search_notes", json!({ "query": format!("roses {turn}") }))
    });
    let output = run(&place, &model, &["ask", "--max-turns", "3", "when?"]);
    // One more turn, in which it is to sum up; this one does not.
    assert_eq!((output.status.code(), model.requests().len()), (Some(3), 4), "{}", errors(&output));
    assert!(errors(&output).contains("Agent exceeded maximum iterations"), "{}", errors(&output));
    assert_eq!(out(&output), "");
}

#[test]
fn at_a_limit_the_model_sums_up() {
    let place = Place::new(NOTES);
    let model = ModelServer::that(|request| match request["tool_choice"] == "none" {
        true => Reply::text("So far: in late winter [Garden/Roses.md:3]."),
        false => {
            let turn = request["messages"].as_array().unwrap().len();
            Reply::call("search_notes", json!({ "query": format!("roses {turn}") }))
        }
    });
    let output = run(&place, &model, &["ask", "--max-turns", "2", "when?"]);
    assert_eq!(output.status.code(), Some(3), "{}", errors(&output));
    assert!(out(&output).starts_with("So far: in late winter [Garden/Roses.md:3].\n"), "{}", out(&output));
    assert!(errors(&output).contains("max_turns") && errors(&output).contains("summarizes"), "{}", errors(&output));
}

/// What a model says before its calls is no part of the answer, wherever that goes.
#[test]
fn the_answer_is_the_last_reply() {
    let place = Place::new(NOTES);
    let answers = || {
        let search = ("search_notes".to_owned(), json!({ "query": "prune roses" }));
        let read = ("read_note".to_owned(), json!({ "path": "Garden/Roses.md" }));
        ModelServer::with([
            Reply::Before("I'll search your notes.".into(), vec![search]),
            Reply::Before("Let me read it.".into(), vec![read]),
            Reply::text("In late winter [Garden/Roses.md:3]."),
        ])
    };
    let output = run(&place, &answers(), &["ask", "when?"]);
    assert_eq!(out(&output), "In late winter [Garden/Roses.md:3].\n\nSources\n  Garden/Roses.md:3\n");
    assert!(errors(&output).contains("I'll search your notes.\n  search_notes"), "{}", errors(&output));
    let output = run(&place, &answers(), &["ask", "--json", "when?"]);
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(record["answer"], "In late winter [Garden/Roses.md:3].");
    let output = run(&place, &answers(), &["ask", "--note", "Home.md", "--insert", "--yes", "when?"]);
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    assert!(place.read("Home.md").ends_with("In late winter [Garden/Roses.md:3].\n"), "{}", place.read("Home.md"));
    assert!(!place.read("Home.md").contains("search"));
}

#[test]
fn an_empty_answer_is_said_with_its_thoughts() {
    let place = Place::new(NOTES);
    for (reply, said) in [
        (Reply::text(""), "the model gave no answer"),
        (Reply::Thoughts("It is in late winter.".into()), "its reasoning ends with: It is in late winter."),
    ] {
        let model = ModelServer::that(move |_| reply.clone());
        let output = run(&place, &model, &["ask", "when?"]);
        assert_eq!((output.status.code(), &*out(&output)), (Some(2), ""), "{}", errors(&output));
        assert!(errors(&output).contains(said), "{}", errors(&output));
    }
}

/// Of notes that were not read and of none at all a person learns that.
#[test]
fn what_an_answer_is_from_is_said() {
    let place = Place::new(NOTES);
    let read = || Reply::call("read_note", json!({ "path": "Home.md" }));
    let output = run(&place, &ModelServer::with([read(), Reply::text("As [[Roses]] says.")]), &["ask", "when?"]);
    assert_eq!(out(&output), "As [[Roses]] says.\n\nSources\n  Garden/Roses.md  (not read here)\n");
    let output = run(&place, &ModelServer::with([read(), Reply::text("In winter.")]), &["ask", "when?"]);
    assert_eq!(out(&output), "In winter.\n");
    assert!(errors(&output).contains("cites no note; read for it: Home.md"), "{}", errors(&output));
}

/// A person sees the answer come, wrapped at words, and each line once it is complete.
#[cfg(unix)]
#[test]
fn an_answer_streams_on_a_terminal() {
    let place = Place::new(NOTES);
    let words =
        "In **late winter**, and never in autumn, as every gardener knows who has lost one to frost. ".repeat(8);
    let text = format!("{words}\n\nSo says [Garden/Roses.md:3].");
    let model = ModelServer::with([Reply::Slowly(text, 25)]);
    let mut terminal = crate::terminal::Terminal::start(&command(&place, &model, &["ask", "when?"]), 60);
    terminal.until("In ");
    terminal.until("as every gardener knows who has lost one to frost.");
    let early = terminal.screen();
    assert!(!early.contains("So says"), "{early}");
    let (screen, code) = terminal.end();
    assert_eq!(code, 0, "{screen}");
    assert!(screen.contains("So says [Garden/Roses.md:3].\n\nSources\n  Garden/Roses.md:3"), "{screen}");
    // No word is broken at the edge.
    let plain = |word: &str| word.trim_matches(['*', ',', '.']).to_owned();
    let known: Vec<String> = words.split_whitespace().map(plain).collect();
    for word in screen.lines().take_while(|line| !line.is_empty()).flat_map(str::split_whitespace).map(plain) {
        assert!(known.contains(&word), "{word}: {screen}");
    }
}

/// The model cannot be reached, and what could be shown is shown.
#[test]
fn without_its_model_the_best_passages_help() {
    let place = Place::new(NOTES);
    let ask = |extra: &[&str]| {
        let mut command = place.command(&[&["ask", "when do I prune roses?"], extra].concat());
        command.env("VAULT_AGENT_PROVIDER", "http://127.0.0.1:9/v1").env("VAULT_AGENT_MODEL", "m").output().unwrap()
    };
    let output = ask(&[]);
    assert_eq!(output.status.code(), Some(2), "{}", errors(&output));
    assert!(
        out(&output).starts_with("The model cannot be reached. The best matching passages:\n\nGarden/Roses.md:"),
        "{}",
        out(&output)
    );
    let output = ask(&["--json"]);
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (output.status.code(), &record["stop"], &record["answer"]),
        (Some(2), &json!("unreachable"), &Value::Null)
    );
    assert_eq!(record["passages"][0]["path"], "Garden/Roses.md");
    let before = place.read("Home.md");
    assert_eq!(ask(&["--note", "Home.md", "--insert", "--yes"]).status.code(), Some(2));
    assert_eq!(place.read("Home.md"), before);
}

#[test]
fn an_answer_is_inserted_at_the_cursor_after_a_yes() {
    let place = Place::new("//- Home.md\nfirst\nlast\n");
    let answers = || ModelServer::with([Reply::text("middle\n")]);
    let args = ["ask", "--note", "Home.md", "--cursor", "1:0", "--insert", "what is between?"];
    for (key, expected, code) in [("n", "first\nlast\n", 3), ("y", "first\nmiddlelast\n", 0)] {
        let (shown, ended) = at_terminal(command(&place, &answers(), &args), key);
        assert_eq!((place.read("Home.md").as_str(), ended), (expected, code), "{shown}");
        assert!(shown.contains("Insert the answer?") && !shown.contains("cancelled"), "{shown}");
        assert_eq!(shown.contains("not approved; nothing was done"), key == "n", "{shown}");
    }
    // Nobody is there to ask: the answer is not lost.
    let output = run(&place, &answers(), &args);
    assert_eq!((output.status.code(), &*out(&output)), (Some(3), "middle\n"), "{}", errors(&output));
    assert_eq!(place.read("Home.md"), "first\nmiddlelast\n");
    let output = run(&place, &answers(), &[&args[..], &["--yes", "--json"]].concat());
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &record["answer"]), (Some(0), &json!("middle")));
    assert_eq!(place.read("Home.md"), "first\nmiddlemiddlelast\n");
}

#[test]
fn a_reply_that_is_cut_names_the_setting() {
    let place = Place::new(NOTES);
    let model = ModelServer::with([Reply::Cut("Half".to_owned())]);
    let output = run(&place, &model, &["ask", "when?"]);
    assert_eq!((output.status.code(), &*out(&output)), (Some(3), "Half\n"));
    assert!(errors(&output).contains("max_tokens"), "{}", errors(&output));
}

#[test]
fn a_denied_note_is_no_source_and_is_not_read() {
    let place = Place::new(NOTES);
    place.configure("tools.toml", "denied_paths = [\"Private\"]\n");
    let model = ModelServer::with([
        Reply::call("read_note", json!({ "path": "Private/Diary.md" })),
        searches(),
        Reply::text("A present [Private/Diary.md:1]."),
    ]);
    let output = run(&place, &model, &["ask", "who gave me the roses?"]);
    assert_eq!(out(&output), "A present.\n");
    assert!(!model.requests().iter().any(|request| request.to_string().contains("were a present")));
}

#[test]
fn conversations_are_listed_searched_shown_and_deleted() {
    let place = Place::new(NOTES);
    let model = ModelServer::with([searches(), Reply::text("In late winter [Garden/Roses.md:3].")]);
    run(&place, &model, &["ask", "when do I prune roses?"]);
    let run = |args: &[&str]| place.command(args).output().unwrap();
    let listed = out(&run(&["sessions"]));
    assert!(listed.contains("when do I prune roses?") && listed.lines().count() == 1, "{listed}");
    assert_eq!(out(&run(&["sessions", "search", "LATE winter"])), listed);
    assert_eq!(out(&run(&["sessions", "search", "lilies"])), "");
    let shown = out(&run(&["sessions", "show"]));
    let (question, answer) = shown.split_once("## Answer\n").expect(&shown);
    assert!(
        question.starts_with("## Question\n\nwhen do I prune roses?\n\n- search_notes \"prune roses\": "),
        "{question}"
    );
    assert!(!question.contains("Prune them"), "what a tool returned is no part of it: {question}");
    assert!(out(&run(&["sessions", "show", "--full"])).contains("Prune them in late winter"));
    assert!(answer.contains("In late winter") && answer.contains("- [[Garden/Roses]], line 3"), "{answer}");
    let id = listed.split_whitespace().next().unwrap();
    assert_eq!(run(&["sessions", "delete", id]).status.code(), Some(3));
    assert_eq!(run(&["sessions", "delete", id, "--yes"]).status.code(), Some(0));
    assert_eq!(out(&run(&["sessions"])), "");
    assert_eq!(run(&["sessions", "show", id]).status.code(), Some(2));
}

#[test]
fn an_interrupted_answer_is_kept() {
    use std::io::Read;
    let place = Place::new(NOTES);
    // The second request is never answered.
    let model = ModelServer::that({
        let mut first = true;
        move |_| {
            if std::mem::take(&mut first) {
                return searches();
            }
            loop {
                std::thread::park();
            }
        }
    });
    let mut child = command(&place, &model, &["ask", "when?"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut errors = child.stderr.take().unwrap();
    let (mut said, mut byte) = (Vec::new(), [0]);
    while !String::from_utf8_lossy(&said).contains("search_notes \"prune") {
        assert_eq!(errors.read(&mut byte).unwrap(), 1, "{}", String::from_utf8_lossy(&said));
        said.push(byte[0]);
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let shown = out(&place.command(&["sessions", "show"]).output().unwrap());
    assert!(shown.contains("when?") && shown.contains("search_notes"), "{shown}");
}

#[test]
fn options_without_an_effect_are_refused() {
    let place = Place::new(NOTES);
    let ran = |args: &[&str]| {
        let output = place.command(args).output().unwrap();
        (output.status.code(), errors(&output))
    };
    for (args, option) in [
        (&["ask", "--allow-delete", "roses?"][..], "--allow-delete"),
        (&["ask", "--set", "a=b", "roses?"], "--set"),
        (&["login", "--vault", "/nowhere", "openai"], "--vault"),
        (&["--index", "x.db", "models"], "--index"),
        (&["sessions", "--vault", "/nowhere"], "--vault"),
        (&["config", "path", "--vault", "/nowhere"], "--vault"),
        (&["mcp", "skill", "--vault", "/nowhere"], "--vault"),
        (&["mcp", "doctor", "zed", "--vault", "/nowhere"], "--vault"),
        (&["plan", "--no-tools", "roses?"], "--no-tools"),
        (&["proxy", "--max-turns", "3"], "--with-vault-tools"),
    ] {
        let (code, error) = ran(args);
        assert!(code == Some(2) && error.contains(option), "{args:?}: {code:?} {error}");
    }
    let (code, error) = ran(&["config", "check", "--vault", place.vault().to_str().unwrap()]);
    assert_eq!(code, Some(0), "{error}");
}

#[test]
fn a_question_goes_on_with_the_last_conversation() {
    let place = Place::new(NOTES);
    let none = run(&place, &ModelServer::with([]), &["ask", "-c", "and then?"]);
    assert!(none.status.code() == Some(2) && errors(&none).contains("no conversation"), "{}", errors(&none));
    let model = ModelServer::with([Reply::text("In late winter."), Reply::text("In spring, too.")]);
    run(&place, &model, &["ask", "when do I prune?"]);
    let output = run(&place, &model, &["ask", "--continue", "and when else?"]);
    assert_eq!((output.status.code(), &*out(&output)), (Some(0), "In spring, too.\n"), "{}", errors(&output));
    assert_eq!(model.told("user").len(), 2);
    assert_eq!(out(&place.command(&["sessions"]).output().unwrap()).lines().count(), 1);
}

#[test]
fn a_note_is_named_as_in_a_link() {
    let place = Place::new(NOTES);
    place.command(&["sync"]).output().unwrap();
    let model = ModelServer::with([Reply::text("Yes.")]);
    let output = run(&place, &model, &["ask", "--note", "Roses", "what is this?"]);
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    assert!(model.told("system")[0].contains("viewing the note \"Garden/Roses.md\""));
}
