//! The settings: where each value is from, what cannot count, and that each of them does what it says.

use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::{Value, json};

use crate::model_server::{ModelServer, Reply, text_of};
use crate::stdio::Place;
use crate::web_server::WebServer;

const NOTES: &str = "//- Roses.md\n# Roses\n\nPrune them in late winter.\n";

/// The program, with no keyring that a test could reach.
fn command(place: &Place, args: &[&str]) -> Command {
    let mut command = place.command(args);
    command.env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent");
    command
}

fn run(place: &Place, args: &[&str]) -> Output {
    command(place, args).output().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn errors(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn rows(output: &Output) -> Vec<Value> {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

/// The row of a setting.
fn row<'r>(rows: &'r [Value], setting: &str) -> &'r Value {
    rows.iter().find(|row| row["setting"] == setting).unwrap()
}

fn file(place: &Place) -> String {
    place.home().join("vault-index/agent.toml").display().to_string()
}

#[test]
fn each_value_has_its_source_and_the_last_counts() {
    let place = Place::new("");
    place.configure("agent.toml", "# mine\nmax_turns = 3\nmodel = \"from-file\"\ntools = false\n");
    let mut shown = command(&place, &["config", "show", "--json", "--model", "from-flag", "--toolset", "notes,bulk"]);
    let shown = shown.env("VAULT_AGENT_MODEL", "from-variable").env("VAULT_AGENT_TOOLS", "on").output().unwrap();
    let shown = rows(&shown);
    for (setting, value, source, at) in [
        ("model", json!("from-flag"), "flag", json!("--model")),
        ("tools", json!(true), "variable", json!("VAULT_AGENT_TOOLS")),
        ("max_turns", json!(3), "file", json!(format!("{}:2", file(&place)))),
        ("toolsets", json!(["notes", "bulk"]), "flag", json!("--toolset")),
        ("temperature", json!(0.2), "default", Value::Null),
        ("max_calls", json!(64), "default", Value::Null),
        ("streaming", json!(true), "default", Value::Null),
    ] {
        let row = row(&shown, setting);
        assert_eq!((&row["value"], &row["source"], &row["at"]), (&value, &json!(source), &at), "{setting}");
    }
    let human = out(&run(&place, &["config", "show"]));
    assert!(human.contains(&format!("max_turns                      3  ({}:2)", file(&place))), "{human}");
    assert_eq!(out(&run(&place, &["config", "path"])).trim_end(), file(&place));
}

#[test]
fn what_cannot_count_is_named_with_file_and_line() {
    let place = Place::new("");
    let text =
        "model = \"a\"\nmax_turns = \"many\"\nmodle = \"b\"\nreview = \"sometimes\"\nprovider = \"opnai\"\n[tools]\n";
    place.configure("agent.toml", text);
    let checked = run(&place, &["config", "check"]);
    assert_eq!(checked.status.code(), Some(1), "{}", errors(&checked));
    let faults = out(&checked);
    for (line, said) in [
        (2, "max_turns: expected a whole number from 1 to 1000, found string \"many\""),
        (3, "there is no setting \"modle\" (did you mean model?)"),
        (4, "review: unknown variant `sometimes`, expected one of `chat`, `always`, `never`"),
        (5, "provider: unknown provider \"opnai\" (did you mean openai?"),
        (6, "tools: expected true or false, found a table"),
    ] {
        assert!(faults.contains(&format!("fault: {}:{line}: {said}", file(&place))), "{said}: {faults}");
    }
    // Nothing runs on settings of which some do not count.
    let shown = run(&place, &["config", "show"]);
    assert!(shown.status.code() == Some(2) && errors(&shown).contains("agent.toml:2: max_turns"), "{shown:?}");
    place.configure("agent.toml", "model = \"a\"\nmodel = \"b\"\n");
    let twice = run(&place, &["config", "check"]);
    assert!(twice.status.code() == Some(1) && out(&twice).contains("agent.toml:2: duplicate key"), "{twice:?}");
    place.configure("agent.toml", "");
    let mut wrong = command(&place, &["config", "check", "--temperature", "3"]);
    let wrong = wrong.env("VAULT_AGENT_MAX_CALLS", "0").env("VAULT_AGENT_MODLE", "x").output().unwrap();
    let faults = out(&wrong);
    assert!(faults.contains("fault: --temperature: expected a number from 0 to 2"), "{faults}");
    assert!(faults.contains("fault: VAULT_AGENT_MAX_CALLS: max_calls: expected a whole number from 1 to"), "{faults}");
    assert!(faults.contains("fault: VAULT_AGENT_MODLE: there is no such setting"), "{faults}");
    // The files that this program shares with the others.
    for (name, text, said) in [
        ("tools.toml", "\nconfrm_writes = false\n", "tools.toml: line 2: unknown field `confrm_writes`"),
        ("tools.toml", "denied_tools = [\"read_notes\"]\n", "tools.toml: there is no tool \"read_notes\""),
        ("config.toml", "exclude = 3\n", "config.toml: line 1: invalid type"),
    ] {
        place.configure(name, text);
        let checked = run(&place, &["config", "check"]);
        assert!(checked.status.code() == Some(1) && out(&checked).contains(said), "{said}: {}", out(&checked));
        place.configure(name, "");
    }
    // Tools of servers that are not there now can be named.
    place.configure("tools.toml", "denied_tools = [\"files__write\"]\n");
    let checked = run(&place, &["config", "check"]);
    assert!(checked.status.success(), "{}", out(&checked));
    let shown = rows(&run(&place, &["config", "show", "--json"]));
    assert_eq!(row(&shown, "policy.denied_tools")["value"], json!(["files__write"]));
    assert_eq!(row(&shown, "policy.denied_tools")["source"], "file");
    assert_eq!(row(&shown, "policy.confirm_writes")["source"], "default");
    let checked = run(&place, &["config", "check", "--provider", "local:nowhere.gguf"]);
    assert!(checked.status.code() == Some(1) && out(&checked).contains("nowhere.gguf: the file cannot be read"));
}

#[test]
fn what_may_run_is_set_by_name_and_checked_before_it_is_written() {
    let place = Place::new("");
    place.configure("tools.toml", "# mine\nconfirm_writes = true # as it is\n\n[tools]\nedit_note = \"always-ask\"\n");
    let file = place.home().join("vault-index/tools.toml");
    for args in [
        &["policy.confirm_writes", "false"][..],
        &["policy.denied_paths", "Private, Old/Keys"],
        &["policy.trash", "system"],
        &["policy.trash", "--unset"],
        &["policy.tools.append_to_note", "never-ask"],
    ] {
        let set = run(&place, &[&["config", "set"], args].concat());
        assert!(set.status.success(), "{args:?} {set:?}");
    }
    let expected = "# mine\nconfirm_writes = false # as it is\ndenied_paths = [\"Private\", \"Old/Keys\"]\n\n[tools]\n\
                    edit_note = \"always-ask\"\nappend_to_note = \"never-ask\"\n";
    assert_eq!(std::fs::read_to_string(&file).unwrap(), expected);
    for (args, said) in [
        (["policy.alow_delete", "true"], "did you mean policy.allow_delete?"),
        (["policy.allow_delete", "maybe"], "true or false"),
        (["policy.denied_paths", "a[b"], "is not a pattern"),
        (["policy.trash", "bin"], "bin"),
        (["policy.tools.edit_note", "often"], "often"),
        (["policy.vault", "x"], "this is a table"),
        (["policy.permissions", "x"], "/permissions"),
    ] {
        let set = run(&place, &[&["config", "set"], &args[..]].concat());
        let said_all = String::from_utf8_lossy(&set.stderr).into_owned();
        assert!(set.status.code() == Some(2) && said_all.contains(said), "{args:?}: {said_all}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), expected, "{args:?}");
    }
}

#[test]
fn setting_one_leaves_the_rest_of_the_file() {
    let place = Place::new("");
    place.configure("agent.toml", "# mine\nmax_turns = 3 # not many\n\n# local\nprovider = \"ollama\"\n");
    for args in [["max_turns", "4"], ["temperature", "none"], ["allowed_models", "a, b"], ["streaming", "off"]] {
        let set = run(&place, &[&["config", "set"], &args[..]].concat());
        assert!(set.status.success(), "{set:?}");
    }
    let expected = "# mine\nmax_turns = 4 # not many\n\n# local\nprovider = \"ollama\"\ntemperature = \"none\"\n\
                    allowed_models = [\"a\", \"b\"]\nstreaming = false\n";
    assert_eq!(std::fs::read_to_string(file(&place)).unwrap(), expected);
    let shown = rows(&run(&place, &["config", "show", "--json"]));
    assert_eq!(row(&shown, "temperature")["value"], Value::Null);
    assert!(run(&place, &["config", "set", "max_turns", "--unset"]).status.success());
    assert!(!std::fs::read_to_string(file(&place)).unwrap().contains("max_turns"));
    for (args, said) in [
        (["max_turn", "3"], "did you mean max_turns?"),
        (["max_turns", "-1"], "a whole number from 1 to 1000"),
        (["provider", "opnai"], "did you mean openai?"),
    ] {
        let refused = run(&place, &[&["config", "set"], &args[..]].concat());
        assert!(refused.status.code() == Some(2) && errors(&refused).contains(said), "{refused:?}");
    }
    // A file that cannot be understood stays as it is.
    place.configure("agent.toml", "max_turns = \n");
    assert_eq!(run(&place, &["config", "set", "max_turns", "3"]).status.code(), Some(2));
    assert_eq!(std::fs::read_to_string(file(&place)).unwrap(), "max_turns = \n");
}

#[cfg(unix)]
#[test]
fn the_file_is_private_and_a_link_to_it_stays_one() {
    use std::os::unix::fs::PermissionsExt;

    let place = Place::new("");
    assert!(run(&place, &["config", "set", "model", "a"]).status.success());
    let mode = Path::new(&file(&place)).metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let elsewhere = place.home().join("dotfiles.toml");
    std::fs::rename(file(&place), &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, file(&place)).unwrap();
    assert!(run(&place, &["config", "set", "model", "b"]).status.success());
    assert_eq!(std::fs::read_link(file(&place)).unwrap(), elsewhere);
    assert_eq!(std::fs::read_to_string(elsewhere).unwrap(), "model = \"b\"\n");
}

#[test]
fn a_vault_sets_none_of_them() {
    let place = Place::new(NOTES);
    let evil = "provider = \"https://evil.example/v1\"\nmodel = \"evil\"\ntools = true\n";
    place.write(".vault.toml", evil);
    place.write("agent.toml", evil);
    place.write(".obsidian/agent.toml", evil);
    let shown = command(&place, &["config", "show", "--json"]).current_dir(place.vault()).output().unwrap();
    assert!(rows(&shown).iter().all(|row| row["source"] == "default"), "{shown:?}");
    let asked = command(&place, &["ask", "roses?"]).current_dir(place.vault()).output().unwrap();
    assert!(!errors(&asked).contains("evil.example"), "{asked:?}");
}

#[test]
fn half_a_choice_says_what_is_missing() {
    let place = Place::new(NOTES);
    for (args, code, said) in [
        (&["--provider", "ollama"][..], 2, "no model of ollama is chosen"),
        (&["--model", "a"], 2, "the model a has no provider"),
        (&["--provider", "openai", "--model", "gpt-5"], 2, "vault-agent login openai stores one"),
        (&["--provider", "openai", "--model", "gpt-5"], 2, "or set OPENAI_API_KEY"),
        (&["--provider", "azure", "--model", "a"], 2, "set base_url"),
        (&["--provider", "local:a.gguf"], 2, "a.gguf"),
        (&["--provider", "opnai"], 2, "error: --provider: unknown provider \"opnai\" (did you mean openai?"),
    ] {
        let refused = run(&place, &[&["proxy"], args].concat());
        assert!(refused.status.code() == Some(code) && errors(&refused).contains(said), "{args:?}: {refused:?}");
    }
    place.configure("agent.toml", "allowed_models = [\"small\", \"large\"]\n");
    let refused = run(&place, &["proxy", "--provider", "ollama", "--model", "other"]);
    let said = errors(&refused);
    assert!(refused.status.code() == Some(3) && said.contains("the model other is not among"), "{said}");
    assert!(said.contains("choose one of small, large"), "{said}");
}

#[test]
fn what_is_set_is_what_is_sent() {
    let place = Place::new(NOTES);
    let ask = |extra: &[&str], reply: Reply| {
        let model = ModelServer::with([reply]);
        let mut command = command(&place, &[&["ask", "roses?"], extra].concat());
        let output =
            command.env("VAULT_AGENT_PROVIDER", &model.address).env("VAULT_AGENT_MODEL", "m").output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
        model.requests().remove(0)
    };
    let default = ask(&[], Reply::text("x"));
    assert_eq!(
        (&default["temperature"], &default["stream"], &default["model"]),
        (&json!(0.2), &json!(true), &json!("m"))
    );
    assert!(default.get("max_tokens").is_none_or(Value::is_null), "{default}");
    let names = |body: &Value| -> Vec<String> {
        let tools = body["tools"].as_array().cloned().unwrap_or_default();
        tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
    };
    assert!(names(&default).contains(&"search_notes".to_owned()), "tool calling is on by default");
    place.configure("agent.toml", "top_p = 0.5\nseed = 7\n");
    let set = ask(
        &["--temperature", "1.5", "--max-tokens", "77", "--system", "Answer in Latin.", "--toolset", "chat"],
        Reply::text("x"),
    );
    assert_eq!((&set["temperature"], &set["max_tokens"]), (&json!(1.5), &json!(77)));
    assert_eq!((&set["top_p"], &set["seed"]), (&json!(0.5), &json!(7)));
    assert!(text_of(&set["messages"][0]["content"]).ends_with("Answer in Latin."), "{set}");
    let of_chat = names(&set);
    assert!(
        of_chat.contains(&"vault_search".to_owned()) && !of_chat.contains(&"search_notes".to_owned()),
        "{of_chat:?}"
    );
    let none = ask(&["--temperature", "none", "--no-tools"], Reply::text("x"));
    assert!(none.get("temperature").is_none_or(Value::is_null), "{none}");
    assert_eq!(names(&none), Vec::<String>::new());
    let effort = ask(&["--reasoning-effort", "high"], Reply::text("x"));
    assert_eq!(effort["reasoning_effort"], "high", "{effort}");
    // A server that cannot stream answers with one object.
    let whole = WebServer::that(|_| {
        (
            200,
            json!({ "choices": [{ "index": 0, "message": { "role": "assistant", "content": "x" },
            "finish_reason": "stop" }] }),
        )
    });
    let mut whole_command = command(&place, &["ask", "roses?", "--no-stream"]);
    let address = format!("http://{}/v1", whole.address);
    let output = whole_command.env("VAULT_AGENT_PROVIDER", &address).env("VAULT_AGENT_MODEL", "m").output().unwrap();
    assert_eq!((output.status.code(), out(&output).trim_end()), (Some(0), "x"), "{}", errors(&output));
    let body: Value = serde_json::from_str(&whole.asked()[0].body).unwrap();
    assert!(body["stream"] != json!(true), "{body}");
}

#[test]
fn calls_and_time_are_limited() {
    let place = Place::new(NOTES);
    let said = |limit: &str, least: Duration| {
        let mut turn = 0;
        // A model that never answers, and takes its time.
        let model = ModelServer::that(move |_| {
            std::thread::sleep(least);
            turn += 1;
            Reply::call("search_notes", json!({ "query": format!("roses {turn}") }))
        });
        let mut asked = command(&place, &["ask", "roses?", limit, "--max-turns", "50"]);
        let output = asked.env("VAULT_AGENT_PROVIDER", &model.address).env("VAULT_AGENT_MODEL", "m").output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{}", errors(&output));
        (errors(&output), model.requests().len())
    };
    let (of_calls, _) = said("--max-calls=2", Duration::ZERO);
    assert!(of_calls.contains("the setting is max_calls"), "{of_calls}");
    assert_eq!(of_calls.matches("search_notes \"roses").count(), 2, "{of_calls}");
    let (of_time, requests) = said("--max-seconds=1", Duration::from_millis(400));
    assert!(of_time.contains("the setting is max_seconds"), "{of_time}");
    assert!((1..=3).contains(&requests), "{requests}: {of_time}");
}

#[test]
fn ollama_is_asked_for_a_context_that_holds_the_tools() {
    let place = Place::new(NOTES);
    let ollama = WebServer::that(|_| {
        (
            200,
            json!({ "model": "m", "message": { "role": "assistant", "content": "x" }, "done": true,
            "done_reason": "stop" }),
        )
    });
    let base_url = format!("http://{}/v1", ollama.address);
    let ask = |extra: &[&str]| {
        let args = ["ask", "roses?", "--provider", "ollama", "--base-url", &base_url, "--model", "m"];
        let output = run(&place, &[&args, extra].concat());
        assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
        let asked = ollama.asked().pop().unwrap();
        assert_eq!(asked.target, "/api/chat");
        serde_json::from_str::<Value>(&asked.body).unwrap()["options"].clone()
    };
    assert_eq!((&ask(&[])["num_ctx"], &ask(&[])["temperature"]), (&json!(16_384), &json!(0.2)));
    assert_eq!(ask(&["--context-length", "32000"])["num_ctx"], 32_000);
}

#[test]
fn a_model_that_takes_no_temperature_is_asked_without() {
    let place = Place::new(NOTES);
    let refusing = || {
        ModelServer::that(|body| match body["temperature"].as_f64() {
            Some(_) => {
                Reply::Error(400, "Unsupported parameter: 'temperature' is not supported with this model.".into())
            }
            None => Reply::text("In winter."),
        })
    };
    let model = refusing();
    let mut asked = command(&place, &["ask", "roses?"]);
    let output = asked.env("VAULT_AGENT_PROVIDER", &model.address).env("VAULT_AGENT_MODEL", "m").output().unwrap();
    assert_eq!((output.status.code(), model.requests().len()), (Some(0), 2), "{}", errors(&output));
    // One that somebody chose is not left out.
    let model = refusing();
    let mut asked = command(&place, &["ask", "roses?", "--temperature", "0.2"]);
    let output = asked.env("VAULT_AGENT_PROVIDER", &model.address).env("VAULT_AGENT_MODEL", "m").output().unwrap();
    assert_eq!((output.status.code(), model.requests().len()), (Some(2), 1));
    assert!(errors(&output).contains("Unsupported parameter"), "{}", errors(&output));
}

#[test]
fn a_model_without_tools_calls_them_in_text() {
    let place = Place::new(NOTES);
    let call = "<tool_call>{\"name\":\"search_notes\",\"arguments\":{\"query\":\"roses\"}}</tool_call>";
    let scripted = || {
        let mut replies = vec![Reply::text("In winter [Roses.md:3]."), Reply::text(call)];
        ModelServer::that(move |body| match body.get("tools").is_some_and(Value::is_array) {
            true => Reply::Error(400, "this model does not support tools".into()),
            false => replies.pop().unwrap(),
        })
    };
    for (form, requests) in [("auto", 3), ("hermes", 2)] {
        let model = scripted();
        let mut asked = command(&place, &["ask", "roses?", "--text-calls", form]);
        let output = asked.env("VAULT_AGENT_PROVIDER", &model.address).env("VAULT_AGENT_MODEL", "m").output().unwrap();
        assert_eq!((output.status.code(), model.requests().len()), (Some(0), requests), "{}", errors(&output));
        assert!(out(&output).starts_with("In winter [Roses.md:3]."), "{}", out(&output));
    }
    let model = scripted();
    let mut asked = command(&place, &["ask", "roses?", "--text-calls", "never"]);
    let output = asked.env("VAULT_AGENT_PROVIDER", &model.address).env("VAULT_AGENT_MODEL", "m").output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", errors(&output));
}

#[test]
fn a_host_is_named_once_and_its_traffic_shown_without_the_key() {
    let place = Place::new(NOTES);
    // As a proxy, it is every host.
    let model = ModelServer::that(|_| Reply::text("In winter."));
    let proxy = model.address.trim_end_matches("/v1").to_owned();
    let ask = |extra: &[&str]| {
        let args = ["ask", "roses?", "--provider", "http://models.example/v1", "--model", "m"];
        let mut command = command(&place, &[&args, extra].concat());
        let output = command.env("http_proxy", &proxy).env("VAULT_AGENT_API_KEY", "sk-secret").output().unwrap();
        assert_eq!((output.status.code(), out(&output).contains("In winter.")), (Some(0), true), "{output:?}");
        errors(&output)
    };
    let notice = "note: m runs at models.example, unencrypted: your messages";
    let first = ask(&[]);
    assert!(first.contains(notice) && !first.contains("> POST"), "{first}");
    let second = ask(&["--show-traffic"]);
    assert!(!second.contains(notice), "{second}");
    let sent = model.requests().pop().unwrap();
    let lines: Vec<&str> = second.lines().collect();
    assert!(lines.contains(&"> POST http://models.example/v1/chat/completions"), "{second}");
    assert!(lines.contains(&"> authorization: …") && lines.contains(&"< 200"), "{second}");
    let is_sent = |line: &&&str| serde_json::from_str::<Value>(line).is_ok_and(|body| body == sent);
    assert_eq!(lines.iter().filter(is_sent).count(), 1, "the body is one line: {second}");
    assert!(lines.iter().any(|line| line.starts_with("data: {")) && lines.contains(&"data: [DONE]"), "{second}");
    assert!(!first.contains("sk-secret") && !second.contains("sk-secret"));
    // Nor anywhere else.
    let kept = walk(&place.home());
    assert!(kept.iter().all(|file| !std::fs::read(file).unwrap().windows(9).any(|bytes| bytes == b"sk-secret")));
    // What stays on this machine needs no word.
    let local = command(&place, &["ask", "roses?", "--provider", &model.address, "--model", "m"]).output().unwrap();
    assert!(!errors(&local).contains("runs at"), "{local:?}");
}

fn walk(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

#[test]
fn without_a_keyring_the_variable_is_named() {
    use std::io::Write;
    use std::process::Stdio;

    let place = Place::new("");
    let login = |provider: &str, key: &str| {
        let mut command = command(&place, &["login", provider]);
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // What is refused by its arguments is not read.
        let _ = child.stdin.take().unwrap().write_all(key.as_bytes());
        let output = child.wait_with_output().unwrap();
        (output.status.code(), errors(&output))
    };
    let (code, said) = login("anthropic", "sk-secret\n");
    assert_eq!(code, Some(2));
    assert!(said.contains("the system's keyring cannot be used") && said.contains("set ANTHROPIC_API_KEY"), "{said}");
    assert!(!said.contains("sk-secret"), "{said}");
    for (provider, key, expected) in [
        ("anthropic", "", "no key was given"),
        ("anthropic", "two words\n", "a key has no spaces"),
        ("anthropc", "x\n", "did you mean anthropic?"),
        ("local:a.gguf", "x\n", "local takes no key"),
    ] {
        let (code, said) = login(provider, key);
        assert!(code == Some(2) && said.contains(expected), "{said}");
    }
    assert!(walk(&place.home()).is_empty(), "nothing is written");
}

#[test]
fn the_schemas_hold() {
    let place = Place::new("");
    place.configure("agent.toml", "max_turns = 3\n");
    for args in [&["config", "show"][..], &["config", "check"]] {
        let schema: Value = serde_json::from_str(&out(&run(&place, &[args, &["--schema"]].concat()))).unwrap();
        let document = Value::from(rows(&run(&place, &[args, &["--json"]].concat())));
        assert!(document.as_array().is_some_and(|rows| !rows.is_empty()));
        jsonschema::validate(&schema, &document).unwrap_or_else(|error| panic!("{args:?}: {error}"));
    }
}

#[test]
fn the_document_lists_every_setting_with_its_default() {
    let document = include_str!("../../docs/settings.md");
    let in_words = |value: &Value| match value {
        Value::Null => "none".to_owned(),
        Value::Array(values) if values.is_empty() => "none".to_owned(),
        Value::Array(values) => values.iter().map(|value| value.as_str().unwrap()).collect::<Vec<_>>().join(", "),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let place = Place::new("");
    let shown = of_this_program(rows(&run(&place, &["config", "show", "--json"])));
    let expected: Vec<String> = shown
        .iter()
        .map(|row| {
            let (name, what) = (row["setting"].as_str().unwrap(), row["description"].as_str().unwrap());
            format!("| `{name}` | {} | {what} |", in_words(&row["value"]))
        })
        .collect();
    let rows: Vec<&str> = document.lines().filter(|line| expected.iter().any(|row| row == line)).collect();
    assert_eq!(rows, expected, "docs/settings.md has these rows, in this order:\n{}", expected.join("\n"));
}

/// The rows without those of `tools.toml`, which the document of vault-tools describes.
fn of_this_program(mut rows: Vec<Value>) -> Vec<Value> {
    rows.retain(|row| !row["setting"].as_str().unwrap().starts_with("policy."));
    rows
}

/// The sections of the document that name tests, one row for each setting, provider or limit.
fn rows_with_tests(document: &str) -> Vec<&str> {
    let (_, section) = document.split_once("\n## Tests\n").expect("the section of tests");
    let is_row = |line: &&str| line.starts_with("| ") && !line.starts_with("| ---") && !line.ends_with("| test |");
    section.lines().filter(is_row).collect()
}

#[test]
fn every_test_that_the_document_names_exists() {
    let document = include_str!("../../docs/settings.md");
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let rows = rows_with_tests(document);
    let mut tests = 0;
    for row in &rows {
        let named = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        let mut file: Option<(&str, String)> = None;
        for name in named.split('`').skip(1).step_by(2) {
            if name.contains('/') {
                let text = std::fs::read_to_string(crates.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
                file = Some((name, text));
                continue;
            }
            let (path, text) = file.as_ref().unwrap_or_else(|| panic!("{row}: a test of no file"));
            let at = text.find(&format!("fn {name}(")).unwrap_or_else(|| panic!("{path} has no {name}"));
            assert!(text[..at].trim_end().trim_end_matches("async").trim_end().ends_with("test]"), "{path}: {name}");
            tests += 1;
        }
        assert!(file.is_some(), "{row}: no test");
    }
    assert!(tests > rows.len() / 2, "{tests} tests in {} rows", rows.len());
    let place = Place::new("");
    for shown in of_this_program(self::rows(&run(&place, &["config", "show", "--json"]))) {
        let begin = format!("| `{}` | ", shown["setting"].as_str().unwrap());
        assert!(rows.iter().any(|row| row.starts_with(&begin)), "no test of {begin}");
    }
}
