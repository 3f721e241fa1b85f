//! `chat` and `resume` in a terminal and in a pipe, with a model on loopback.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;

use serde_json::json;

use crate::model_server::{ModelServer, Reply};
use crate::stdio::Place;
use crate::terminal::Terminal;

/// The vault of most tests.
pub const NOTES: &str = "//- Garden/Roses.md\n# Roses\n\nPrune them in late winter, never in autumn.\n//- Log.md\n# Log\n\n\
//- Home.md\nSee [[Roses]]. #garden\n//- Secret.md\napples and pears\n//- Open.md\napples\n";

/// The program with a model, for a terminal that can draw.
pub fn command(place: &Place, model: &ModelServer, args: &[&str]) -> Command {
    let mut command = place.command(args);
    command.env("VAULT_AGENT_PROVIDER", &model.address).env("VAULT_AGENT_MODEL", "scripted");
    command.env("TERM", "xterm-256color").env("NO_COLOR", "1");
    command
}

/// A conversation in a terminal.
pub fn chat(place: &Place, model: &ModelServer, args: &[&str]) -> Terminal {
    Terminal::start(&command(place, model, &[&["chat"], args].concat()), 100)
}

/// A call that adds a text to the log.
pub fn append(text: &str) -> Reply {
    Reply::call("append_to_note", json!({ "path": "Log.md", "content": text }))
}

/// Leaves at the next prompt; the screen.
pub fn leave(mut terminal: Terminal) -> String {
    terminal.say("/quit");
    let (screen, code) = terminal.end();
    assert_eq!(code, 0, "{screen}");
    screen
}

/// The keys of a panel are the last thing that it shows.
pub const KEYS: &str = "edit the arguments";

/// The arrow keys, which a terminal shows as `^[[A` to a program that does not read them.
const ARROWS: &str = "\x1b[A\x1b[B\x1b[D\x1b[C";

#[test]
fn an_answer_is_shown_with_its_calls_sources_and_tokens() {
    let place = Place::new(NOTES);
    let model = ModelServer::with([
        Reply::call("search_notes", json!({ "query": "prune roses" })),
        Reply::text("# Roses\n\n- in **late winter** [Garden/Roses.md:3]\n- says [No.md:1]\n\n```sh\nls\n```\n"),
        Reply::text("You are welcome."),
    ]);
    let mut terminal = chat(&place, &model, &[]);
    terminal.say("when do I prune roses?");
    terminal.until("220 tokens");
    terminal.say("thanks");
    terminal.until("110 tokens");
    let screen = leave(terminal);
    for text in [
        "Notes · scripted on this machine · /help",
        "> when do I prune roses?\n  search_notes \"prune roses\"",
        "# Roses\n\n- in **late winter** [Garden/Roses.md:3]\n- says\n\n```sh\nls\n```\n",
        "Sources\n  Garden/Roses.md:3\n! not found: [No.md:1]: there is no such note\n1 call · 220 tokens",
        "> thanks\nYou are welcome.\n\n110 tokens",
        "saved; vault-agent resume ",
    ] {
        assert!(screen.contains(text), "{text}\n---\n{screen}");
    }
}

#[test]
fn a_yes_changes_the_note_and_undo_takes_it_back() {
    let place = Place::new(NOTES);
    let model = ModelServer::with([append("- prune the roses"), Reply::text("Done.")]);
    let mut terminal = chat(&place, &model, &[]);
    terminal.say("remind me");
    terminal.until(KEYS);
    // A key that is not offered does nothing.
    terminal.press("x\ry");
    terminal.until("220 tokens");
    assert_eq!(place.read("Log.md"), "# Log\n\n- prune the roses\n");
    terminal.say("/undo");
    terminal.until("no (Esc)");
    terminal.press("y");
    terminal.until("undone");
    let screen = leave(terminal);
    assert_eq!(place.read("Log.md"), "# Log\n\n");
    for text in [
        "append_to_note in Notes?\n  risk: write. It can be undone as a whole, byte for byte.\n",
        "modify Log.md (+1 -0)",
        "+- prune the roses",
        "\n  yes\n",
        "undo transaction 1?",
    ] {
        assert!(screen.contains(text), "{text}\n---\n{screen}");
    }
    assert!(!screen.contains(KEYS), "the keys are erased: {screen}");
}

#[test]
fn undo_and_save_ask_where_the_settings_ask_and_nowhere_else() {
    let place = Place::new(NOTES);
    place.configure("tools.toml", "confirm_writes = false\n");
    let model = ModelServer::with([append("- prune the roses"), Reply::text("Done.")]);
    let mut terminal = chat(&place, &model, &[]);
    terminal.say("remind me");
    terminal.until("220 tokens");
    terminal.say("/undo");
    terminal.until("undone");
    assert_eq!(place.read("Log.md"), "# Log\n\n");
    terminal.say("/save Talks/Roses");
    terminal.until("saved as Talks/Roses.md");
    // What undoing deletes is asked about all the same.
    terminal.say("/undo");
    terminal.until("no (Esc)");
    terminal.press("n");
    terminal.until("nothing was done");
    let screen = leave(terminal);
    assert!(place.read("Talks/Roses.md").contains("remind me"), "{screen}");
    assert_eq!(screen.matches("no (Esc)").count(), 0, "the one question was erased: {screen}");
}

#[test]
fn a_yes_for_the_session_is_the_last_question_about_that_tool() {
    let place = Place::new(NOTES);
    let model = ModelServer::with([append("- one"), append("- two"), Reply::text("Both.")]);
    let mut terminal = chat(&place, &model, &[]);
    terminal.say("two of them");
    terminal.until("a  yes, and do not ask again for append_to_note in this conversation");
    terminal.until(KEYS);
    terminal.press("a");
    terminal.until("330 tokens");
    let screen = leave(terminal);
    assert_eq!(place.read("Log.md"), "# Log\n\n- one\n- two\n");
    // A change that is not asked about is shown all the same.
    let shown = |line: &str| screen.matches(line).count();
    assert_eq!((shown("\n+- one\n"), shown("\n+- two\n"), shown("edit the arguments")), (1, 1, 0), "{screen}");
}

#[test]
fn a_no_tells_the_model_what_instead() {
    let place = Place::new(NOTES);
    let before = place.tree();
    let model = ModelServer::with([append("- one"), append("- two"), Reply::text("Then not.")]);
    let mut terminal = chat(&place, &model, &[]);
    terminal.say("note it");
    terminal.until(KEYS);
    terminal.press("n");
    terminal.until("what instead?");
    terminal.press("write it into Home.md\r");
    // Escape is a no, too; Ctrl-C there leads back to the keys.
    terminal.until(KEYS);
    terminal.press("\x1b");
    terminal.until("what instead?");
    terminal.press("\x03");
    terminal.until(KEYS);
    terminal.press("n");
    terminal.until("what instead?");
    terminal.press("\r");
    terminal.until("330 tokens");
    let screen = leave(terminal);
    assert!(screen.contains("append_to_note \"Log.md\": denied"), "{screen}");
    assert_eq!(place.tree(), before);
    let told = model.told("tool");
    assert!(told[0].contains("write it into Home.md"), "{told:?}");
}

#[test]
fn arguments_are_edited_checked_and_shown_again() {
    let place = Place::new(NOTES);
    let model = ModelServer::with([append("- sow peas"), Reply::text("Noted.")]);
    let mut terminal_command = command(&place, &model, &["chat"]);
    // First to something that the tool refuses, then to what is meant.
    let script = r#"if grep -q mistake "$1"; then sed -i 's/mistake/content/; s/peas/beans/' "$1"; else sed -i s/content/mistake/ "$1"; fi"#;
    terminal_command.env("EDITOR", format!("edit() {{ {script}; }}; edit"));
    let mut terminal = Terminal::start(&terminal_command, 100);
    terminal.say("note it");
    terminal.until(KEYS);
    terminal.press("e");
    terminal.until("/mistake");
    terminal.until(KEYS);
    terminal.press("e");
    terminal.until("/mistake");
    terminal.until(KEYS);
    terminal.press("n");
    terminal.until("what instead?");
    terminal.press("\r");
    terminal.until("220 tokens");
    leave(terminal);
    assert_eq!(place.read("Log.md"), "# Log\n\n");

    let model = ModelServer::with([append("- sow peas"), Reply::text("Noted.")]);
    let mut edited = command(&place, &model, &["chat"]);
    edited.env("EDITOR", "sed -i s/peas/beans/");
    let mut terminal = Terminal::start(&edited, 100);
    terminal.say("note it");
    terminal.until("+- sow peas");
    terminal.until(KEYS);
    terminal.press("e");
    terminal.until("+- sow beans");
    terminal.until(KEYS);
    terminal.press("y");
    terminal.until("220 tokens");
    leave(terminal);
    assert_eq!(place.read("Log.md"), "# Log\n\n- sow beans\n");
    assert!(model.told("tool")[0].contains("changed the arguments"), "{:?}", model.told("tool"));
}

#[test]
fn a_hunk_is_left_out() {
    let place = Place::new(NOTES);
    let lines = |first: &str, last: &str| {
        let middle: String = (2..40).map(|line| format!("line {line}\n")).collect();
        format!("{first}\n{middle}{last}\n")
    };
    place.write("Long.md", &lines("first", "last"));
    let args = json!({ "path": "Long.md", "content": lines("FIRST", "LAST"), "mode": "replace" });
    let model = ModelServer::with([Reply::call("write_note", args), Reply::text("Done.")]);
    let mut terminal = chat(&place, &model, &[]);
    terminal.say("shout");
    terminal.until("p  leave out parts");
    terminal.press("p");
    terminal.until("1 of 2: keep it?");
    terminal.press(&format!("{ARROWS}y\r"));
    terminal.until("2 of 2: keep it?");
    terminal.press("n\r");
    terminal.until("+FIRST");
    terminal.until(KEYS);
    terminal.press("y");
    terminal.until("220 tokens");
    let screen = leave(terminal);
    assert!(!screen.contains("^["), "{screen}");
    assert_eq!(place.read("Long.md"), lines("FIRST", "last"));
    assert!(model.told("tool")[0].contains("left out"), "{:?}", model.told("tool"));
}

#[test]
fn of_what_was_found_only_what_is_ticked_is_shared() {
    let place = Place::new(NOTES);
    let model = ModelServer::with([Reply::call("vault_search", json!({ "query": "apples" })), Reply::text("Seen.")]);
    let mut terminal = chat(&place, &model, &["--toolset", "chat"]);
    terminal.say("what of apples?");
    terminal.until("Let the model use vault_search?");
    terminal.until("y  yes");
    terminal.until(KEYS);
    terminal.press("y");
    terminal.until("Enter to share]");
    let screen = terminal.screen();
    let line = screen.lines().find(|line| line.contains("[x]") && line.contains("Secret.md")).expect(&screen);
    let number = line.split_whitespace().nth(1).unwrap().to_owned();
    assert!(screen.contains("What you tick is given to the model on this machine."), "{screen}");
    terminal.press(&format!("{ARROWS}{number}\r"));
    terminal.until("Enter to share]");
    terminal.press("\r");
    terminal.until("220 tokens");
    let screen = leave(terminal);
    assert!(screen.contains("shared 1 of 2") && !screen.contains("^["), "{screen}");
    let told = model.told("tool").concat();
    assert!(told.contains("Open.md") && !told.contains("pears"), "{told}");
}

#[test]
fn the_setting_review_says_which_results_are_seen_first() {
    let place = Place::new(NOTES);
    // Of every tool, where it is always.
    let model = ModelServer::with([Reply::call("read_note", json!({ "path": "Secret.md" })), Reply::text("Seen.")]);
    let mut terminal = chat(&place, &model, &["--review", "always"]);
    terminal.say("what of apples?");
    terminal.until("Share what read_note found?");
    terminal.until("Enter to share]");
    terminal.press("1\r");
    terminal.until("Enter to share]");
    terminal.press("\r");
    terminal.until("220 tokens");
    let screen = leave(terminal);
    assert!(screen.contains("shared 0 of 1"), "{screen}");
    let told = model.told("tool").concat();
    assert_eq!(told, "(no results)", "nothing tells the model what was withheld");
    // Of none, where it is never.
    let model = ModelServer::with([Reply::call("vault_search", json!({ "query": "apples" })), Reply::text("Seen.")]);
    let mut terminal = chat(&place, &model, &["--review", "never", "--toolset", "chat"]);
    terminal.say("what of apples?");
    terminal.until("Let the model use vault_search?");
    terminal.until(KEYS);
    terminal.press("y");
    terminal.until("220 tokens");
    let screen = leave(terminal);
    assert!(!screen.contains("Share what"), "{screen}");
    assert!(model.told("tool").concat().contains("pears"), "{:?}", model.told("tool"));
}

#[test]
fn ctrl_c_denies_all_that_is_asked_and_ends_the_turn() {
    let place = Place::new(NOTES);
    let calls = ["- one", "- two", "- three"];
    let calls = calls.map(|text| ("append_to_note".to_owned(), json!({ "path": "Log.md", "content": text })));
    let model = ModelServer::with([Reply::Calls(calls.into()), Reply::text("I see.")]);
    let mut terminal = chat(&place, &model, &[]);
    terminal.say("three reminders");
    terminal.until("1 of 3");
    terminal.until(KEYS);
    terminal.press("y");
    terminal.until("2 of 3");
    terminal.until(KEYS);
    terminal.press("\x03");
    terminal.until("stopped; 2 calls denied");
    terminal.until("the conversation is kept");
    assert_eq!(model.requests().len(), 1, "nobody asks the model again");
    terminal.say("what happened?");
    terminal.until("110 tokens");
    leave(terminal);
    assert_eq!(place.read("Log.md"), "# Log\n\n- one\n");
    let told = model.told("tool");
    assert!(told[1].contains("stopped this turn") && told[2].contains("stopped this turn"), "{told:?}");
}

#[test]
fn several_changes_of_one_note_build_on_each_other() {
    let place = Place::new(NOTES);
    let calls = ["- one", "- two"];
    let calls = calls.map(|text| ("append_to_note".to_owned(), json!({ "path": "Log.md", "content": text })));
    let model = ModelServer::with([Reply::Calls(calls.into()), Reply::text("Both.")]);
    let mut terminal = chat(&place, &model, &[]);
    terminal.say("two reminders");
    for place in ["1 of 2", "2 of 2"] {
        terminal.until(place);
        terminal.until(KEYS);
        terminal.press("y");
    }
    terminal.until("220 tokens");
    leave(terminal);
    assert_eq!(place.read("Log.md"), "# Log\n\n- one\n- two\n");
}

#[test]
fn ctrl_c_stops_a_turn_and_the_conversation_goes_on() {
    let place = Place::new(NOTES);
    let (hold, held) = channel::<()>();
    let mut requests = 0;
    let model = ModelServer::that(move |_| {
        requests += 1;
        if requests == 1 {
            // Until the test lets go.
            let _ = held.recv();
        }
        Reply::text("Yes.")
    });
    let mut terminal = chat(&place, &model, &[]);
    terminal.say("wait for it");
    terminal.until("thinking");
    terminal.press("\x03");
    terminal.until("stopped; the conversation is kept");
    drop(hold);
    terminal.say("and now?");
    terminal.until("110 tokens");
    // At the prompt, Ctrl-C drops the line, and Ctrl-D leaves.
    terminal.until("\x1b[?2004h");
    terminal.press("half a line\x03");
    terminal.until("\x1b[?2004h");
    terminal.press("\x04");
    let (screen, code) = terminal.end();
    assert_eq!(code, 0, "{screen}");
    assert!(screen.contains("saved; vault-agent resume"), "{screen}");
}

#[test]
fn a_closed_terminal_keeps_the_conversation_with_its_question() {
    let place = Place::new(NOTES);
    let model = ModelServer::with([append("- one"), Reply::text("Done.")]);
    let mut terminal = chat(&place, &model, &[]);
    terminal.say("note it");
    terminal.until(KEYS);
    assert_eq!(terminal.close(), 129);
    assert_eq!(place.read("Log.md"), "# Log\n\n");

    let mut terminal = Terminal::start(&command(&place, &model, &["resume"]), 100);
    terminal.until("resumed: note it");
    terminal.until("+- one");
    terminal.until(KEYS);
    terminal.press("y");
    terminal.until("tokens");
    let screen = leave(terminal);
    assert_eq!(place.read("Log.md"), "# Log\n\n- one\n");
    assert_eq!(screen.matches("\n+- one\n").count(), 1, "{screen}");
}

#[test]
fn commands_show_switch_save_and_resume() {
    let place = Place::new(NOTES);
    let model = ModelServer::that(|_| Reply::text("In winter [Garden/Roses.md:3]."));
    let mut terminal = chat(&place, &model, &[]);
    terminal.say("/help");
    terminal.until("/quit");
    terminal.say("/tools");
    terminal.until("append_to_note");
    terminal.say("/nonsense");
    terminal.until("/nonsense is not a command");
    terminal.say("when?");
    terminal.until("tokens");
    terminal.say("/model");
    terminal.until("Number (empty for none)");
    terminal.press(&format!("{ARROWS}2\r"));
    terminal.until("from now on: scripted");
    terminal.say("/model");
    terminal.until("Number (empty for none)");
    terminal.press("\r");
    terminal.until("it stays as it is");
    terminal.say("/model other");
    terminal.until("from now on: other");
    terminal.say("/status");
    terminal.until("since the start");
    terminal.say("/save Talks/Roses");
    terminal.until("no (Esc)");
    terminal.press("y");
    terminal.until("saved as Talks/Roses.md");
    terminal.say("/save Talks/Roses");
    terminal.until("Talks/Roses.md: the note exists already (save it under another name)");
    terminal.say("/new");
    terminal.until("a new conversation");
    terminal.say("something else?");
    terminal.until("tokens");
    terminal.say("/resume");
    terminal.until("its number");
    terminal.press("1\r");
    terminal.until("resumed: when?");
    let screen = leave(terminal);
    for text in
        ["model    other on this machine", "notes    5 notes", "110 tokens, $0.0021 since the start", "  when?\n"]
    {
        assert!(screen.contains(text), "{text}\n---\n{screen}");
    }
    assert!(!screen.contains("^["), "{screen}");
    assert!(!screen.contains("\n   3  "), "a model is listed twice: {screen}");
    let saved = place.read("Talks/Roses.md");
    assert!(saved.contains("when?") && saved.contains("].\n\n## Sources\n\n- [[Garden/Roses]], line 3"), "{saved}");
    assert_eq!(model.requests().last().unwrap()["model"], "other");
}

#[test]
fn a_plan_is_shown_approved_run_and_undone() {
    let place = Place::new(NOTES);
    let before = place.tree();
    let file = |id: &str, path: &str| {
        let args = json!({ "path": path, "content": "Dig.\n" });
        json!({ "id": id, "tool": "vault.createFile", "args": args })
    };
    let steps = json!([file("first", "Plans/Dig.md"), file("second", "Plans/Sow.md")]);
    let plan = json!({ "version": "1.0", "goal": "Two notes", "riskLevel": "writes", "steps": steps });
    let model = ModelServer::that(move |_| Reply::Text(plan.to_string()));
    let mut terminal = chat(&place, &model, &[]);
    terminal.say("/plan a note for each job");
    terminal.until("create Plans/Dig.md");
    terminal.until("create Plans/Sow.md");
    terminal.until("[y yes");
    assert_eq!(place.tree(), before, "a preview changes nothing");
    terminal.press("n\r");
    terminal.say("/plan a note for each job");
    terminal.until("create Plans/Sow.md");
    terminal.until("[y yes");
    assert_eq!(place.tree(), before, "a no changes nothing");
    terminal.press("y\r");
    terminal.until("transaction");
    terminal.until("Keep it as a macro");
    terminal.press("jobs\r");
    terminal.until("\x1b[?2004h");
    assert_eq!((place.read("Plans/Dig.md"), place.read("Plans/Sow.md")), ("Dig.\n".to_owned(), "Dig.\n".to_owned()));
    assert_eq!(place.tree().len(), before.len() + 2);
    terminal.press("/undo\r");
    terminal.until("no (Esc)");
    terminal.press("y");
    terminal.until("undone");
    let screen = leave(terminal);
    assert_eq!(place.tree(), before, "{screen}");
    assert!(screen.contains("Two notes") && screen.contains("110 tokens"), "{screen}");
    let macros = place.command(&["macro", "list"]).output().unwrap();
    assert!(String::from_utf8_lossy(&macros.stdout).starts_with("jobs"), "{macros:?}");
    let told = model.told("system").remove(0);
    assert!(told.contains("vault.createFile") && model.told("user") == ["a note for each job"], "{told}");
}

#[test]
fn a_note_that_changes_while_a_person_thinks_is_a_conflict() {
    let place = Place::new(NOTES);
    let model = ModelServer::with([append("- one"), Reply::text("I see.")]);
    let mut terminal = chat(&place, &model, &[]);
    terminal.say("note it");
    terminal.until("+- one");
    terminal.until(KEYS);
    place.write("Log.md", "# Log\n\n- of somebody else\n");
    let before = place.tree();
    terminal.press("y");
    terminal.until("220 tokens");
    let screen = leave(terminal);
    assert_eq!(place.tree(), before, "the other's text stays: {screen}");
    assert!(screen.contains("append_to_note \"Log.md\": the notes have changed since this was shown"), "{screen}");
    let told = model.told("tool").remove(0);
    assert!(told.contains("the notes have changed since this was shown"), "{told}");
}

#[test]
fn a_conversation_goes_on_with_the_settings_of_now() {
    let place = Place::new(NOTES);
    let model = ModelServer::that(|_| Reply::text("Yes."));
    let systems = [("Answer in verse.", "chat"), ("Answer in prose.", "resume")].map(|(own, command)| {
        let mut command = self::command(&place, &model, &[command]);
        let mut child =
            command.env("VAULT_AGENT_SYSTEM", own).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"roses?\n").unwrap();
        assert!(child.wait().unwrap().success());
        model.requests().last().unwrap()["messages"][0]["content"].as_str().unwrap().to_owned()
    });
    assert!(systems[0].ends_with("Answer in verse."), "{}", systems[0]);
    assert!(systems[1].ends_with("Answer in prose."), "{}", systems[1]);
    assert_eq!(model.requests().last().unwrap()["messages"].as_array().unwrap().len(), 4, "it went on");
}

#[test]
fn tab_completes_commands_notes_and_tags() {
    let place = Place::new(NOTES);
    let model = ModelServer::with([Reply::text("Yes.")]);
    let mut terminal = chat(&place, &model, &[]);
    terminal.until("\x1b[?2004h");
    for (typed, completed) in [("what of @ros\t", "[[Garden/Roses.md]]"), (" and #gar\t", "#garden")] {
        terminal.press(typed);
        terminal.until(completed);
    }
    terminal.press("\r");
    terminal.until("110 tokens");
    leave(terminal);
    let said = model.told("user");
    assert!(said.last().unwrap().starts_with("what of @[[Garden/Roses.md]]  and #garden"), "{said:?}");
}

#[test]
fn lines_go_on_and_the_history_is_private() {
    let place = Place::new(NOTES);
    let model = ModelServer::that(|_| Reply::text("Yes."));
    let mut terminal = chat(&place, &model, &[]);
    terminal.say("one\\");
    terminal.press("two\x0athree\r");
    terminal.until("110 tokens");
    leave(terminal);
    assert_eq!(model.told("user").last().unwrap(), "one\ntwo\nthree");
    // In the next conversation it is found again.
    let mut terminal = chat(&place, &model, &[]);
    terminal.until("\x1b[?2004h");
    terminal.press("\x1b[A\x1b[A\r");
    terminal.until("110 tokens");
    leave(terminal);
    assert_eq!(model.told("user").last().unwrap(), "one\ntwo\nthree");
    use std::os::unix::fs::PermissionsExt;
    let mut files = 0;
    for (path, mode) in private_files(&place.home()) {
        if path.ends_with("chat-history.txt") || path.contains("/sessions/") {
            assert_eq!(mode.mode() & 0o077, 0, "{path}");
            files += 1;
        }
    }
    assert!(files >= 5, "{files}");
}

/// All files below a folder with their permissions.
fn private_files(folder: &std::path::Path) -> Vec<(String, std::fs::Permissions)> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => files.extend(private_files(&entry.path())),
            false => files.push((entry.path().display().to_string(), entry.metadata().unwrap().permissions())),
        }
    }
    files
}

/// The processes that embed for this vault, which are ended.
fn background_processes(place: &Place) -> usize {
    use rustix::process::{Pid, Signal, kill_process};
    let vault = place.vault().canonicalize().unwrap();
    let pids = std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let is_one = |pid: &i32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        words.contains(&&b"vault-embed"[..]) && words.contains(&vault.as_os_str().as_encoded_bytes())
    };
    let found: Vec<i32> = pids.filter(is_one).collect();
    found.iter().for_each(|pid| kill_process(Pid::from_raw(*pid).unwrap(), Signal::KILL).unwrap_or(()));
    found.len()
}

#[test]
fn embedding_goes_on_after_a_conversation_at_a_terminal_only() {
    // The bundled model needs much longer for them than the conversation lasts.
    let notes = |n: usize| format!("//- {n}.md\n# Note {n}\n\n{}\n", format!("heron {n} river ladder ").repeat(60));
    let place = Place::new(&(0..400).map(notes).collect::<String>());
    let model = ModelServer::with([]);
    let sync = ["--started-as", "vault-index", "sync", "--no-vectors"];
    assert!(place.command(&sync).output().unwrap().status.success());
    let output = command(&place, &model, &["chat"]).stdin(Stdio::null()).output().unwrap();
    assert_eq!((output.status.code(), background_processes(&place)), (Some(0), 0), "{output:?}");
    leave(chat(&place, &model, &[]));
    assert_eq!(background_processes(&place), 1);
}

#[test]
fn in_a_pipe_each_line_is_a_message_and_nobody_is_asked() {
    let place = Place::new(NOTES);
    let before = place.tree();
    let model = ModelServer::with([append("- one"), Reply::text("I may not."), Reply::text("**Yes**\u{1b}[2J")]);
    let mut command = command(&place, &model, &["chat"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    use std::io::Write;
    child.stdin.take().unwrap().write_all(b"note it\n\n/help me\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{errors}");
    // A file gets what the model said.
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "I may not.\n**Yes**\u{1b}[2J\n");
    assert!(errors.contains("append_to_note \"Log.md\": denied"), "{errors}");
    assert_eq!(place.tree(), before);
    assert_eq!(model.told("user").last().unwrap(), "/help me", "in a pipe nothing is a command");
}

#[test]
fn without_a_terminal_that_can_draw_it_works_line_by_line() {
    let place = Place::new(NOTES);
    let model = ModelServer::with([append("- one"), Reply::text("**Done.**")]);
    let mut dumb = command(&place, &model, &["chat"]);
    dumb.env("TERM", "dumb");
    let mut terminal = Terminal::start(&dumb, 100);
    terminal.until("> ");
    terminal.press("note it\n");
    terminal.until("e edit the arguments] ");
    terminal.press("y\n");
    terminal.until("220 tokens");
    terminal.until("> ");
    terminal.press("/quit\n");
    assert!(!terminal.written().contains('\x1b'), "{:?}", terminal.written());
    let (screen, code) = terminal.end();
    assert!(code == 0 && screen.contains("**Done.**"), "{screen}");
    assert_eq!(place.read("Log.md"), "# Log\n\n- one\n");
}

#[test]
fn nothing_that_a_model_or_a_note_says_acts_on_the_terminal() {
    let place = Place::new(NOTES);
    place.write("Bad.md", "text\u{1b}]0;title\u{7}\u{1b}[2J\n");
    let hostile = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\u{202e}x\r\nyes\u{8}\u{8}";
    let model = ModelServer::with([
        Reply::call("read_note", json!({ "path": "Bad.md" })),
        Reply::call(hostile, json!({ "path": hostile })),
        Reply::call("append_to_note", json!({ "path": "Bad.md", "content": hostile })),
        Reply::text(hostile),
    ]);
    let mut terminal_command = command(&place, &model, &["chat"]);
    terminal_command.env_remove("NO_COLOR");
    let mut terminal = Terminal::start(&terminal_command, 100);
    terminal.say("read it");
    terminal.until(KEYS);
    terminal.press("y");
    terminal.until("440 tokens");
    let written = terminal.written();
    for bad in ["\x1b]0;", "\u{9b}", "\u{202e}", "\x1b[2J", "\u{8}"] {
        assert!(!written.contains(bad), "{bad:?}: {written:?}");
    }
    leave(terminal);
}

#[test]
fn a_server_that_is_gone_keeps_the_conversation() {
    let place = Place::new(NOTES);
    let model = ModelServer::with([Reply::text("Yes.")]);
    let mut gone = command(&place, &model, &["chat"]);
    gone.env("VAULT_AGENT_PROVIDER", "http://127.0.0.1:9/v1");
    let mut terminal = Terminal::start(&gone, 100);
    terminal.say("are you there?");
    terminal.until("is kept");
    let screen = leave(terminal);
    assert!(!screen.contains("\n0 tokens"), "{screen}");
    // With the server back, it goes on.
    let mut terminal = Terminal::start(&command(&place, &model, &["resume"]), 100);
    terminal.until("resumed: are you there?");
    terminal.say("and now?");
    terminal.until("110 tokens");
    leave(terminal);
    assert_eq!(model.told("user"), ["are you there?", "and now?"]);
}

#[test]
fn without_a_model_it_says_how_to_set_one_up() {
    let place = Place::new(NOTES);
    let output = place.command(&["chat"]).stdin(Stdio::null()).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("no model is configured") && errors.contains("vault-agent config set"), "{errors}");
    assert!(errors.contains("vault-agent login"), "{errors}");
    let none = place.command(&["resume"]).stdin(Stdio::null()).output().unwrap();
    assert!(String::from_utf8_lossy(&none.stderr).contains("no saved conversation"), "{none:?}");
}

/// Whoever started it, and whatever it waits for: nobody can answer any more.
#[test]
fn a_terminal_that_is_gone_ends_the_program() {
    let place = Place::new(NOTES);
    for is_asked in [false, true] {
        let model = ModelServer::with([append("- prune the roses"), Reply::text("Done.")]);
        let mut terminal = Terminal::start_beside(&command(&place, &model, &["chat"]), 80);
        if is_asked {
            terminal.say("remind me");
            terminal.until(KEYS);
        } else {
            terminal.until("/help");
        }
        assert_ne!(terminal.close(), 0);
        let sessions = place.command(&["sessions"]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&sessions.stdout).contains("waits for your decision"), is_asked);
    }
}

/// A model cites the line that it used, and copies the numbers into what it writes.
#[test]
fn lines_are_numbered_for_the_model_and_not_in_the_note() {
    let place = Place::new(NOTES);
    let edit = json!({ "path": "Garden/Roses.md", "old_text": "3→Prune them in late winter, never in autumn.", "new_text": "3→Prune them in March." });
    let model = ModelServer::with([
        Reply::call("read_note", json!({ "path": "Garden/Roses.md" })),
        Reply::call("edit_note", edit),
        append("3→one\n4→two"),
        Reply::text("Done [Garden/Roses.md:3]."),
    ]);
    let mut terminal = chat(&place, &model, &[]);
    terminal.say("move it to March");
    terminal.until(KEYS);
    terminal.press("y");
    terminal.until(KEYS);
    terminal.press("y");
    terminal.until("tokens");
    leave(terminal);
    assert_eq!(place.read("Garden/Roses.md"), "# Roses\n\nPrune them in March.\n");
    assert!(place.read("Log.md").ends_with("\none\ntwo\n"), "{}", place.read("Log.md"));
    let told = model.requests()[1]["messages"].to_string();
    assert!(told.contains("1→# Roses\\n2→\\n3→Prune them"), "{told}");
    let told = model.requests()[2]["messages"].to_string();
    assert!(told.contains("the line numbers in your text are not part of the note"), "{told}");
}

#[test]
fn the_end_of_input_at_a_question_leaves_with_it_open() {
    let place = Place::new(NOTES);
    let model = ModelServer::with([append("- prune the roses"), Reply::text("Done.")]);
    let mut terminal = chat(&place, &model, &[]);
    terminal.say("remind me");
    terminal.until(KEYS);
    terminal.press("\u{4}");
    let (screen, code) = terminal.end();
    assert!(code == 0 && screen.contains("the question stays open\nsaved; vault-agent resume "), "{screen}");
    assert!(!place.read("Log.md").contains("prune"));
    let mut terminal = Terminal::start(&command(&place, &model, &["resume"]), 100);
    terminal.until(KEYS);
    terminal.press("y");
    terminal.until("Done.");
    leave(terminal);
    assert!(place.read("Log.md").contains("prune"));
}

/// A provider alone is enough: the person chooses among its models, once.
#[test]
fn a_model_is_chosen_where_none_is_set() {
    let place = Place::new(NOTES);
    let model = ModelServer::with([Reply::text("Hello.")]);
    let command = |args: &[&str]| {
        let mut command = command(&place, &model, args);
        command.env_remove("VAULT_AGENT_MODEL");
        command
    };
    let mut terminal = Terminal::start(&command(&["chat"]), 100);
    terminal.until("Number (empty for none)");
    terminal.press("2\r");
    terminal.until("Save it as your default?");
    terminal.press("y\r");
    terminal.say("hello");
    terminal.until("110 tokens");
    let screen = leave(terminal);
    assert!(screen.contains("   1  other\n") && screen.contains("scripted on this machine"), "{screen}");
    assert_eq!(model.requests()[0]["model"], "scripted");
    let shown = place.command(&["config", "show", "--json"]).output().unwrap();
    assert!(String::from_utf8_lossy(&shown.stdout).contains("\"scripted\""));
    // Without a terminal nobody is asked.
    place.command(&["config", "set", "model", "--unset"]).output().unwrap();
    let output = command(&["chat"]).stdin(Stdio::null()).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && errors.contains("model"), "{errors}");
}
