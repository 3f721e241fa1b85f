//! MCP servers of the person's own, added by `mcp add`: what `ask` and `chat` offer of them, and what asks.

use std::path::PathBuf;
use std::process::Output;

use serde_json::{Value, json};

use crate::chat::{KEYS, chat, command, leave};
use crate::model_server::{ModelServer, Reply};
use crate::stdio::{PROGRAM, Place};

/// Adds a server over another vault: this program itself.
fn add(place: &Place, name: &str, flags: &[&str]) -> PathBuf {
    let folder = place.home().join("Other");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("Far.md"), "about herons\n").unwrap();
    let home = place.home().display().to_string();
    let env: Vec<String> = [("HOME", ""), ("XDG_STATE_HOME", ""), ("XDG_CACHE_HOME", ""), ("XDG_CONFIG_HOME", "/far")]
        .iter()
        .flat_map(|(name, below)| ["--env".to_owned(), format!("{name}={home}{below}")])
        .collect();
    let env: Vec<&str> = env.iter().map(String::as_str).collect();
    let (vault, server) = (folder.display().to_string(), ["mcp", "--allow-write", "--vault"]);
    let args = [&["mcp", "add", name], flags, &env, &[PROGRAM, "--"], &server, &[&vault]].concat();
    let added = place.command(&args).output().unwrap();
    assert!(added.status.success(), "{added:?}");
    assert!(text(&added.stdout).contains(&format!("{name}__read_note")), "{added:?}");
    folder
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The tools of servers that a request offers.
fn offered(request: &Value) -> Vec<String> {
    let tools = request["tools"].as_array().unwrap();
    let names = tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned());
    names.filter(|name| name.contains("__")).collect()
}

fn ask(place: &Place, model: &ModelServer) -> Output {
    command(place, model, &["ask", "what of herons?"]).output().unwrap()
}

#[test]
fn a_question_is_offered_only_what_reads_as_the_person_vouches() {
    let place = Place::new("//- Home.md\nx\n");
    let folder = add(&place, "far", &[]);
    let model = ModelServer::that(|_| Reply::text("Nothing."));
    ask(&place, &model);
    assert!(offered(&model.requests()[0]).is_empty());

    add(&place, "far", &["--reads"]);
    let model = ModelServer::with([
        Reply::call("far__read_note", json!({ "path": "Far.md" })),
        Reply::call("far__append_to_note", json!({ "path": "Far.md", "content": "x" })),
        Reply::text("Herons."),
    ]);
    let output = ask(&place, &model);
    let names = offered(&model.requests()[0]);
    assert!(names.contains(&"far__read_note".to_owned()), "{names:?}");
    assert!(!names.contains(&"far__append_to_note".to_owned()), "its server says that it writes: {names:?}");
    assert!(text(&output.stdout).starts_with("Herons."), "{output:?}");
    // What it was sent is shown.
    assert!(text(&output.stderr).contains("far__read_note {\"path\":\"Far.md\"}"), "{output:?}");
    let told = model.told("tool");
    assert!(told[0].contains("about herons") && told[1].contains("no tool"), "{told:?}");
    assert_eq!(std::fs::read_to_string(folder.join("Far.md")).unwrap(), "about herons\n");
    // What the settings deny stays denied.
    place.configure("tools.toml", "denied_tools = [\"far__*\"]\n");
    let model = ModelServer::with([Reply::call("far__read_note", json!({ "path": "Far.md" })), Reply::text("No.")]);
    ask(&place, &model);
    assert!(model.told("tool")[0].contains("denied by your settings"), "{:?}", model.told("tool"));
}

#[test]
fn in_a_conversation_what_reads_asks_once_and_what_writes_each_time() {
    let place = Place::new("//- Home.md\nx\n");
    let folder = add(&place, "far", &["--reads"]);
    let read = || Reply::call("far__read_note", json!({ "path": "Far.md" }));
    let append = |content: &str| Reply::call("far__append_to_note", json!({ "path": "Far.md", "content": content }));
    let model = ModelServer::with([read(), read(), append("otters"), append("owls"), Reply::text("Done.")]);
    let mut terminal = chat(&place, &model, &[]);
    terminal.say("what is far away?");
    terminal.until("you are asked once");
    terminal.until("That program is sent the arguments below.");
    terminal.until(KEYS);
    terminal.press("y");
    for answer in ["y", "n\r"] {
        terminal.until("nothing here can undo it");
        terminal.until(KEYS);
        terminal.press(answer);
    }
    terminal.until("550 tokens");
    terminal.say("/tools");
    terminal.until("far__append_to_note");
    let screen = leave(terminal);
    assert_eq!(screen.matches("you are asked once").count(), 1, "{screen}");
    assert_eq!(std::fs::read_to_string(folder.join("Far.md")).unwrap(), "about herons\n\notters\n");
}

#[test]
fn servers_are_listed_without_secrets_and_removed() {
    let place = Place::new("//- Home.md\nx\n");
    let run = |args: &[&str]| place.command(args).output().unwrap();
    let added = run(&["mcp", "add", "gone", "/gone/program", "--env", "KEY=secret-value", "--", "--flag"]);
    // It is kept, and why it does not start is said.
    assert!(added.status.success() && text(&added.stderr).contains("cannot be started"), "{added:?}");
    let added =
        run(&["mcp", "add", "web", "--url", "http://127.0.0.1:9/mcp", "--header", "Authorization=Bearer secret-value"]);
    assert!(added.status.success(), "{added:?}");
    let listed = run(&["mcp", "list"]);
    assert_eq!(text(&listed.stdout), "gone  /gone/program --flag\nweb   http://127.0.0.1:9/mcp\n");
    let listed = run(&["mcp", "list", "--json"]);
    assert!(!text(&listed.stdout).contains("secret-value"), "{listed:?}");
    // One that does not start is a notice, and the question is answered.
    place.configure("servers.toml", "[gone]\ncommand = \"/gone/program\"\nreads = true\n");
    let model = ModelServer::that(|_| Reply::text("Yes."));
    let output = ask(&place, &model);
    assert!(output.status.success() && text(&output.stderr).contains("! an MCP server"), "{output:?}");
    for (args, said) in [
        (&["mcp", "remove", "none"][..], "there is no server none"),
        (&["mcp", "add", "a__b", "x"], "cannot be the name"),
        (&["mcp", "add", "a"], "required"),
        (&["mcp", "add", "a", "--url", "http://x", "--env", "A=b"], "cannot be used with"),
        (&["mcp", "add", "a", "x", "--env", "A"], "expected NAME=VALUE"),
    ] {
        let output = run(args);
        assert!(output.status.code() == Some(2) && text(&output.stderr).contains(said), "{args:?} {output:?}");
    }
    assert!(run(&["mcp", "remove", "gone"]).status.success());
    assert_eq!(text(&run(&["mcp", "list"]).stdout), "");
    place.configure("servers.toml", "[web]\nreads = true\n\n[x]\ncomand = \"a\"\n");
    let output = ask(&place, &model);
    assert!(text(&output.stderr).contains("line 5: unknown field `comand`"), "{output:?}");
}
