//! Conversations that are too long for the model: made shorter, and said.

use serde_json::{Value, json};

use crate::chat::{NOTES, chat, command, leave};
use crate::model_server::{ModelServer, Reply};
use crate::stdio::Place;

#[test]
fn a_question_with_long_results_goes_on_without_the_oldest() {
    let place = Place::new(NOTES);
    place.write("Long.md", &"Slugs come at night.\n".repeat(300));
    let paths = ["Long.md", "Garden/Roses.md", "Home.md", "Log.md"];
    let mut has_refused = false;
    let model = ModelServer::that(move |request| {
        let results = request["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "tool");
        match paths.get(results.count()) {
            Some(path) => Reply::call("read_note", json!({ "path": path })),
            None if std::mem::replace(&mut has_refused, true) => Reply::text("In late winter [Garden/Roses.md:3]."),
            None => Reply::Error(400, "This model's maximum context length is 2048 tokens.".into()),
        }
    });
    let output = command(&place, &model, &["ask", "when do I prune roses?"]).output().unwrap();
    let [out, errors] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert_eq!(output.status.code(), Some(0), "{errors}");
    assert!(errors.contains("the conversation was made shorter for the model"), "{errors}");
    assert!(out.starts_with("In late winter [Garden/Roses.md:3]."), "{out}");
    let requests = model.requests();
    assert_eq!(requests.len(), 6, "{errors}");
    let [refused, shorter] = [4, 5].map(|at: usize| requests[at]["messages"].to_string());
    assert!(refused.len() - shorter.len() > 300 * 20, "{} bytes, then {}", refused.len(), shorter.len());
    assert!(refused.contains("Slugs come at night") && !shorter.contains("Slugs come at night"), "{shorter}");
    for kept in ["when do I prune roses?", "Prune them in late winter", "of this result were dropped"] {
        assert!(shorter.contains(kept), "{kept}: {shorter}");
    }
}

/// The system message of a request for a summary begins so.
const SUMMARY: &str = "You are given the older part of a conversation";

/// What a request says, apart from the system message and the tools.
fn said(request: &Value) -> String {
    request["messages"].as_array().unwrap()[1..].iter().map(Value::to_string).collect()
}

#[test]
fn a_conversation_that_is_too_long_is_made_shorter_and_said() {
    let place = Place::new(NOTES);
    // A context of 3,000 bytes, system message and tools aside.
    let mut turn = 0;
    let model = ModelServer::that(move |request| {
        if request["messages"][0].to_string().contains(SUMMARY) {
            return Reply::text("They spoke of slugs.");
        }
        if said(request).len() > 3_000 {
            return Reply::Error(400, "This model's maximum context length is 1000 tokens.".into());
        }
        turn += 1;
        Reply::Text(format!("Answer {turn}. {}", "word ".repeat(150)))
    });
    let mut terminal = chat(&place, &model, &[]);
    for turn in 1..=4 {
        terminal.say(&format!("question {turn}"));
        terminal.until("110 tokens");
    }
    terminal.say("question 5");
    terminal.until("the conversation was made shorter for the model");
    terminal.until("Answer 5.");
    // The summary counts.
    terminal.until("220 tokens");
    let screen = leave(terminal);
    assert_eq!(screen.matches("was made shorter").count(), 1, "{screen}");
    let requests = model.requests();
    assert_eq!(requests.len(), 7, "four answers, a refusal, a summary, an answer");
    let (refused, summed_up, shorter) = (said(&requests[4]), said(&requests[5]), said(&requests[6]));
    assert!(shorter.len() + 500 < refused.len(), "{} bytes, then {}", refused.len(), shorter.len());
    assert!(summed_up.contains("Answer 1."), "{summed_up}");
    // A person still has all of it.
    let shown = String::from_utf8(place.command(&["sessions", "show"]).output().unwrap().stdout).unwrap();
    let answers: Vec<usize> = (1..=5).filter(|turn| shown.matches(&format!("Answer {turn}.")).count() == 1).collect();
    assert_eq!(answers, [1, 2, 3, 4, 5], "{shown}");
    for (text, is_kept) in
        [("Answer 1.", false), ("They spoke of slugs.", true), ("Answer 4.", true), ("question 5", true)]
    {
        assert_eq!(shorter.contains(text), is_kept, "{text}: {shorter}");
    }
}

#[test]
fn with_a_context_length_it_is_made_shorter_before_the_model_refuses() {
    let place = Place::new(NOTES);
    // With the reply it is 1,210 tokens, which is more than eight tenths of 1,500.
    let mut turn = 0;
    let model = ModelServer::that(move |request| {
        if request["messages"][0].to_string().contains(SUMMARY) {
            return Reply::text("They spoke of slugs.");
        }
        turn += 1;
        Reply::Counted(format!("Answer {turn}. {}", "word ".repeat(150)), 1_200)
    });
    let talk = |length: &str| {
        let mut terminal = chat(&place, &model, &["--context-length", length]);
        for turn in 1..=5 {
            terminal.say(&format!("question {turn}"));
            terminal.until("0 tokens");
        }
        let screen = leave(terminal);
        (screen.matches("was made shorter for the model").count(), said(model.requests().last().unwrap()))
    };
    let (times, last) = talk("1500");
    assert_eq!(times, 1, "{last}");
    assert!(last.contains("They spoke of slugs.") && !last.contains("question 1"), "{last}");
    let (times, last) = talk("15000");
    assert_eq!(times, 0, "{last}");
    assert!(last.contains("question 1") && !last.contains("They spoke of slugs."), "{last}");
}

#[test]
fn compact_makes_the_next_request_shorter() {
    let place = Place::new(NOTES);
    let mut turn = 0;
    let model = ModelServer::that(move |request| {
        if request["messages"][0].to_string().contains(SUMMARY) {
            return Reply::text("They spoke of slugs.");
        }
        turn += 1;
        // The first answer is what a summary saves.
        Reply::Text(format!("Answer {turn}. {}", "word ".repeat(if turn == 1 { 400 } else { 1 })))
    });
    let mut terminal = chat(&place, &model, &[]);
    for turn in 1..=4 {
        terminal.say(&format!("question {turn}"));
        terminal.until("110 tokens");
    }
    terminal.say("/compact");
    terminal.until("it is made shorter before your next message is answered");
    assert_eq!(model.requests().len(), 4, "it waits for the next message");
    for turn in 5..=6 {
        terminal.say(&format!("question {turn}"));
        terminal.until(&format!("Answer {turn}."));
        terminal.until("0 tokens");
    }
    leave(terminal);
    let requests = model.requests();
    assert_eq!(requests.len(), 7, "it is made shorter once");
    let [before, after, later] = [3, 5, 6].map(|at: usize| said(&requests[at]));
    assert!(after.len() + 1_500 < before.len(), "{} bytes, then {}", before.len(), after.len());
    for request in [after, later] {
        assert!(request.contains("They spoke of slugs.") && !request.contains("Answer 1."), "{request}");
    }
}
