//! `vault-agent models`: the lists of providers, each as it has them.

use std::process::Output;

use serde_json::{Value, json};

use crate::stdio::Place;
use crate::terminal::Terminal;
use crate::web_server::{ReceivedRequest, WebServer};

fn models(place: &Place, args: &[&str], env: &[(&str, &str)]) -> Output {
    let mut command = place.command(&[&["models"], args].concat());
    command.env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent");
    command.envs(env.iter().copied()).output().unwrap()
}

/// The models of one provider, and the requests that it got.
fn listed(
    provider: &str,
    key: &str,
    answers: fn(&ReceivedRequest) -> (u16, Value),
) -> (Vec<Value>, Vec<ReceivedRequest>) {
    let place = Place::new("");
    let server = WebServer::that(answers);
    let base_url = format!("http://{}/v1", server.address);
    place.configure("agent.toml", &format!("provider = \"{provider}\"\nbase_url = \"{base_url}\"\nmodel = \"a\"\n"));
    let output = models(&place, &[provider, "--json"], &[(key, "sk-secret")]);
    assert!(output.status.success(), "{output:?}");
    assert!(!format!("{output:?}").contains("sk-secret"));
    (serde_json::from_slice(&output.stdout).unwrap(), server.asked())
}

fn record(provider: &str, model: &str, context_length: Value) -> Value {
    json!({ "provider": provider, "model": model, "is_local": true, "context_length": context_length,
        "takes_tools": null, "is_chosen": model == "a", "is_allowed": true })
}

#[test]
fn as_openai_has_them() {
    let (found, asked) = listed("openai", "OPENAI_API_KEY", |_| {
        (200, json!({ "object": "list", "data": [{ "id": "gpt-4o" }, { "id": "a", "context_length": 8000 }] }))
    });
    // What is known of the families of hosted models.
    let mut known = record("openai", "gpt-4o", json!(128_000));
    known["takes_tools"] = json!(true);
    assert_eq!(found, [record("openai", "a", json!(8000)), known]);
    assert_eq!(asked[0].target, "/v1/models");
    assert_eq!(asked[0].header("authorization"), Some("Bearer sk-secret"));
}

#[test]
fn as_anthropic_has_them() {
    let (found, asked) = listed("anthropic", "ANTHROPIC_API_KEY", |asked| match asked.target.contains("after_id=") {
        false => (200, json!({ "data": [{ "id": "b" }], "has_more": true, "last_id": "b" })),
        true => {
            (200, json!({ "data": [{ "id": "a", "max_input_tokens": 500_000 }], "has_more": false, "last_id": "a" }))
        }
    });
    assert_eq!(found, [record("anthropic", "a", json!(500_000)), record("anthropic", "b", Value::Null)]);
    assert_eq!(
        asked.iter().map(|asked| &*asked.target).collect::<Vec<_>>(),
        ["/v1/models?limit=1000", "/v1/models?limit=1000&after_id=b"]
    );
    assert_eq!(asked[1].header("x-api-key"), Some("sk-secret"));
    assert_eq!(asked[1].header("anthropic-version"), Some("2023-06-01"));
}

#[test]
fn as_gemini_has_them() {
    let (found, asked) =
        listed("gemini", "GEMINI_API_KEY", |asked| match asked.target.contains("pageToken=next%2B1") {
            false => {
                let chat = json!({ "name": "models/b", "supportedGenerationMethods": ["generateContent"] });
                let other = json!({ "name": "models/embed", "supportedGenerationMethods": ["embedContent"] });
                (200, json!({ "models": [chat, other], "nextPageToken": "next+1" }))
            }
            true => (200, json!({ "models": [{ "name": "models/a", "inputTokenLimit": 1_000_000 }] })),
        });
    assert_eq!(found, [record("gemini", "a", json!(1_000_000)), record("gemini", "b", Value::Null)]);
    assert_eq!(asked[0].header("x-goog-api-key"), Some("sk-secret"));
    assert!(asked.iter().all(|asked| !asked.target.contains("sk-secret")));
}

#[test]
fn as_ollama_has_them() {
    let (found, asked) =
        listed("ollama", "UNUSED", |_| (200, json!({ "models": [{ "name": "a" }, { "name": "b:7b" }] })));
    assert_eq!(found, [record("ollama", "a", Value::Null), record("ollama", "b:7b", Value::Null)]);
    assert_eq!((&*asked[0].target, asked[0].header("authorization")), ("/api/tags", None));
}

#[test]
fn what_does_not_answer_is_said() {
    let place = Place::new("");
    // Nobody listens at a port that was just given back.
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let address = format!("http://{closed}/v1");
    let output = models(&place, &[&address], &[]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && said.contains(&format!("no server is running at {closed}")), "{said}");

    let server = WebServer::that(|asked| match asked.header("authorization") {
        Some("Bearer sk-right") => (200, json!({ "data": [{ "id": "x" }] })),
        _ => (401, json!({ "error": { "message": "wrong key: sk-wrong" } })),
    });
    let address = format!("http://{}/v1", server.address);
    let output = models(&place, &[&address], &[("VAULT_AGENT_API_KEY", "sk-wrong")]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && said.contains("status 401: wrong key: [key]"), "{said}");
    assert!(said.contains("check the key"), "{said}");

    // One of several.
    let output = models(&place, &[&address, "openai", "--jsonl"], &[("VAULT_AGENT_API_KEY", "sk-right")]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.contains("warning: openai: there is no key for openai"), "{said}");
    let line: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&line["model"], &line["provider"]), (&json!("x"), &json!(server.address)));

    let page = WebServer::that(|_| (200, json!("<html>")));
    let output = models(&place, &[&format!("http://{}", page.address)], &[]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("is not a list of models"), "{output:?}");
}

#[test]
fn a_host_elsewhere_is_not_local_and_is_reached_through_the_proxy() {
    let place = Place::new("");
    place.configure("agent.toml", "allowed_models = [\"m\"]\n");
    let proxy = WebServer::that(|_| (200, json!({ "data": [{ "id": "m" }, { "id": "n" }] })));
    let env = [("http_proxy", &*format!("http://{}", proxy.address))];
    let output = models(&place, &["http://models.example/v1", "--json"], &env);
    let found: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    let told: Vec<(&Value, &Value)> = found.iter().map(|model| (&model["is_local"], &model["is_allowed"])).collect();
    assert_eq!(told, [(&json!(false), &json!(true)), (&json!(false), &json!(false))]);
    assert_eq!(proxy.asked()[0].target, "http://models.example/v1/models");
    let human = models(&place, &["http://models.example/v1"], &env);
    let human = String::from_utf8(human.stdout).unwrap();
    assert_eq!(human, "m  models.example\nn  models.example, not allowed by allowed_models\n");
    let schema = models(&place, &["--schema"], &[]);
    let schema: Value = serde_json::from_slice(&schema.stdout).unwrap();
    jsonschema::validate(&schema, &Value::from(found)).unwrap();
}

/// The header of a GGUF file without weights.
fn gguf(values: &[(&str, &str)], context: u32) -> Vec<u8> {
    let text = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
    let mut bytes = b"GGUF".to_vec();
    bytes.extend(3_u32.to_le_bytes());
    bytes.extend(0_u64.to_le_bytes());
    bytes.extend((values.len() as u64 + 1).to_le_bytes());
    for (key, value) in values {
        bytes.extend([&text(key)[..], &8_u32.to_le_bytes(), &text(value)].concat());
    }
    bytes.extend([&text("llama.context_length")[..], &4_u32.to_le_bytes(), &context.to_le_bytes()].concat());
    bytes
}

#[test]
fn the_files_of_the_folder_of_models_are_listed() {
    let place = Place::new("//- Home.md\nx\n");
    let folder = place.home().join("models");
    std::fs::create_dir_all(&folder).unwrap();
    let hermes = "{% if tools %}<tool_call>{\"name\": \"x\", \"arguments\": {}}</tool_call>{% endif %}";
    for (name, template) in [("Plain.gguf", "{{ messages }}"), ("Tools.GGUF", hermes)] {
        let values = [("general.architecture", "llama"), ("tokenizer.chat_template", template)];
        std::fs::write(folder.join(name), gguf(&values, 4096)).unwrap();
    }
    std::fs::write(folder.join("Broken.gguf"), "no model").unwrap();
    std::fs::write(folder.join("Notes.txt"), "no model either").unwrap();
    let mut command = place.command(&["models", "--json"]);
    command.env("VAULT_AGENT_MODELS_FOLDER", &folder).env("VAULT_AGENT_PROVIDER", "local:Tools.GGUF");
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let files: Vec<&Value> = listed.as_array().unwrap().iter().filter(|model| model["provider"] == "local").collect();
    let about = |model: &Value| {
        (
            model["model"].clone(),
            model["takes_tools"].clone(),
            model["context_length"].clone(),
            model["is_chosen"].clone(),
        )
    };
    assert_eq!(about(files[0]), (json!("Plain.gguf"), json!(false), json!(4096), json!(false)), "{errors}");
    assert_eq!(about(files[1]), (json!("Tools.GGUF"), json!(true), json!(4096), json!(true)));
    assert_eq!(
        files[0]["bytes"],
        gguf(&[("general.architecture", "llama"), ("tokenizer.chat_template", "{{ messages }}")], 4096).len()
    );
    assert!(files.len() == 2 && errors.contains("Broken.gguf"), "{errors}");
}

/// What the list offers can be chosen, saved and used.
#[test]
fn a_file_is_chosen_by_its_number() {
    let place = Place::new("//- Home.md\nx\n");
    let folder = place.home().join("models");
    std::fs::create_dir_all(&folder).unwrap();
    let values = [("general.architecture", "llama"), ("tokenizer.chat_template", "{{ messages }}")];
    std::fs::write(folder.join("Small.gguf"), gguf(&values, 4096)).unwrap();
    place.configure("agent.toml", &format!("models_folder = {:?}\n", folder.display().to_string()));
    let mut command = place.command(&["chat"]);
    command.env("TERM", "xterm-256color");
    let mut terminal = Terminal::start(&command, 100);
    terminal.until("Number (empty for none)");
    terminal.press("1\r");
    terminal.until("Save it as your default?");
    terminal.press("y\r");
    let (screen, code) = terminal.end();
    // The file has no weights, so that the model itself does not start.
    assert!(code == 2 && !screen.contains("unknown provider"), "{screen}");
    let shown = place.command(&["config", "show", "--json"]).output().unwrap();
    let settings = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(settings.contains(":Small.gguf\"") && settings.contains("\"Small.gguf\""), "{settings}");
    let listed = models(&place, &["--json"], &[]);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let is_chosen = |model: &Value| model["model"] == "Small.gguf" && model["is_chosen"] == true;
    assert!(listed.as_array().unwrap().iter().any(is_chosen), "{listed}");
}

#[test]
fn a_server_of_ones_own_that_does_not_start_says_why() {
    let place = Place::new("//- Home.md\nx\n");
    let program = place.home().join("server");
    for (script, expected) in [(None, "server"), (Some("#!/bin/sh\necho out of luck >&2\nexit 3\n"), "out of luck")] {
        if let Some(script) = script {
            std::fs::write(&program, script).unwrap();
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
        }
        let mut command = place.command(&["ask", "what?"]);
        let output =
            command.env("VAULT_AGENT_PROVIDER", format!("llama-server:{}", program.display())).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && errors.contains(expected), "{errors}");
    }
}
