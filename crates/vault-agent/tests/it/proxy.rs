//! `vault-agent proxy`: OpenAI's APIs over a model, the vault's tools inside, and embeddings by the index's model.

use serde_json::{Value, json};

use crate::http_server::HttpServer;
use crate::model_server::{ModelServer, Reply, text_of};
use crate::stdio::Place;

const NOTES: &str = "//- Garden/Roses.md\n# Roses\n\nPrune them in late winter.\n//- Private/Diary.md\nRoses hurt.\n";

/// A proxy of this model.
struct Proxy(HttpServer);

impl Proxy {
    fn start(place: &Place, model: &ModelServer, args: &[&str]) -> Self {
        let mut command = place.command(&[&["proxy", "--http", "127.0.0.1:0", "--model", "m"], args].concat());
        command.env("VAULT_AGENT_PROVIDER", &model.address);
        Self(HttpServer::start(command))
    }

    fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let (status, body) = self.0.ask("POST", path, "", &body.to_string());
        (status, serde_json::from_str(&body).unwrap_or(Value::String(body)))
    }

    /// One answer of Chat Completions, without streaming.
    fn chat(&self, messages: Value, tools: Value) -> Value {
        let mut body = json!({ "model": "m", "messages": messages });
        if !tools.is_null() {
            body["tools"] = tools;
        }
        let (status, answer) = self.post("/v1/chat/completions", &body);
        assert_eq!(status, 200, "{answer}");
        answer["choices"][0].clone()
    }
}

fn question() -> Value {
    json!([{ "role": "system", "content": "Be brief." }, { "role": "user", "content": "When do I prune roses?" }])
}

/// The names of the tools that a request offers.
fn offered(request: &Value) -> Vec<String> {
    let tools = request["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_model_is_served_as_it_is() {
    let place = Place::new("");
    let model = ModelServer::with([Reply::text("In winter.")]);
    let proxy = Proxy::start(&place, &model, &["--context-length", "32000"]);
    let (status, models) = proxy.0.ask("GET", "/v1/models", "", "");
    let models: Value = serde_json::from_str(&models).unwrap();
    assert_eq!(
        (status, &models["data"][0]["id"], &models["data"][0]["context_length"]),
        (200, &json!("m"), &json!(32000))
    );
    let choice = proxy.chat(question(), Value::Null);
    assert_eq!((&choice["message"]["content"], &choice["finish_reason"]), (&json!("In winter."), &json!("stop")));
    let sent = model.requests().remove(0);
    assert_eq!((offered(&sent), text_of(&sent["messages"][0]["content"])), (vec![], "Be brief.".to_owned()));
}

#[test]
fn the_vaults_tools_run_inside() {
    let place = Place::new(NOTES);
    place.configure("tools.toml", "denied_paths = [\"Private\"]\n");
    let model = ModelServer::with([
        Reply::call("search_notes", json!({ "query": "prune roses" })),
        Reply::call("read_note", json!({ "path": "Private/Diary.md" })),
        Reply::call("write_note", json!({ "path": "a.md", "content": "x" })),
        Reply::text("In late winter."),
    ]);
    let proxy = Proxy::start(&place, &model, &["--with-vault-tools"]);
    let choice = proxy.chat(question(), Value::Null);
    assert_eq!((&choice["message"]["content"], &choice["finish_reason"]), (&json!("In late winter."), &json!("stop")));
    assert!(choice["message"].get("tool_calls").is_none_or(Value::is_null), "{choice}");
    let [first, second, third, last] = &model.requests()[..] else { panic!("four requests") };
    assert!(text_of(&first["messages"][0]["content"]).ends_with("Be brief."), "{first}");
    let names = offered(first);
    assert!(names.contains(&"search_notes".to_owned()) && !names.contains(&"write_note".to_owned()), "{names:?}");
    let result = |request: &Value| text_of(&request["messages"].as_array().unwrap().last().unwrap()["content"]);
    assert!(result(second).contains("late winter"), "{}", result(second));
    assert!(result(third).contains("denied by your settings"), "{}", result(third));
    assert!(!last.to_string().contains("Roses hurt"));
    assert_eq!(place.tree().len(), 2, "nothing is written");
}

#[test]
fn what_the_settings_let_run_without_asking_runs() {
    let place = Place::new(NOTES);
    place.configure("tools.toml", "confirm_writes = false\n");
    let model = ModelServer::with([
        Reply::call("write_note", json!({ "path": "a.md", "content": "x" })),
        Reply::call("delete_note", json!({ "path": "Garden/Roses.md" })),
        Reply::text("Done."),
    ]);
    let proxy = Proxy::start(&place, &model, &["--with-vault-tools"]);
    assert_eq!(proxy.chat(question(), Value::Null)["message"]["content"], "Done.");
    let names = offered(&model.requests()[0]);
    assert!(names.contains(&"write_note".to_owned()) && !names.contains(&"delete_note".to_owned()), "{names:?}");
    assert_eq!(place.tree().len(), 3, "written, and nothing deleted");
}

#[test]
fn a_clients_own_tools_are_handed_on() {
    let place = Place::new(NOTES);
    let both = vec![
        ("search_notes".to_owned(), json!({ "query": "roses" })),
        ("weather".to_owned(), json!({ "day": "today" })),
    ];
    let model = ModelServer::with([Reply::Calls(both), Reply::text("Prune today.")]);
    let proxy = Proxy::start(&place, &model, &["--with-vault-tools"]);
    let schema = json!({ "type": "object", "properties": { "day": { "type": "string" } } });
    let tools = json!([{ "type": "function", "function": { "name": "weather", "parameters": schema } }]);
    let choice = proxy.chat(question(), tools.clone());
    assert_eq!(choice["finish_reason"], "tool_calls");
    let calls = choice["message"]["tool_calls"].as_array().unwrap();
    assert_eq!((calls.len(), &calls[0]["function"]["name"]), (1, &json!("weather")));
    let arguments: Value = serde_json::from_str(calls[0]["function"]["arguments"].as_str().unwrap()).unwrap();
    assert_eq!(arguments, json!({ "day": "today" }));
    let mut messages = question();
    let own = messages.as_array_mut().unwrap();
    own.push(choice["message"].clone());
    own.push(json!({ "role": "tool", "tool_call_id": calls[0]["id"], "content": "dry" }));
    assert_eq!(proxy.chat(messages, tools)["message"]["content"], "Prune today.");
    let last = model.requests().pop().unwrap();
    assert!(last["messages"].as_array().unwrap().last().unwrap().to_string().contains("dry"), "{last}");
}

#[test]
fn a_budget_ends_the_search() {
    let place = Place::new(NOTES);
    let model = ModelServer::that(|request| match request["tool_choice"] == "none" {
        true => Reply::text("That is all that I found."),
        false => Reply::call("search_notes", json!({ "query": "roses" })),
    });
    let proxy = Proxy::start(&place, &model, &["--with-vault-tools", "--max-turns", "2"]);
    let choice = proxy.chat(question(), Value::Null);
    assert_eq!(choice["message"]["content"], "That is all that I found.");
    assert_eq!(model.requests().len(), 3, "two turns, and one to sum up");
}

#[test]
fn a_request_gets_the_settings_that_it_leaves_open() {
    let place = Place::new(NOTES);
    let model = ModelServer::that(|_| Reply::text("Ita est."));
    let settings = ["--system", "Answer in Latin.", "--max-tokens", "77", "--temperature", "0.7"];
    for with_tools in [&["--with-vault-tools"][..], &[]] {
        let proxy = Proxy::start(&place, &model, &[&settings, with_tools].concat());
        let mut body = json!({ "model": "m", "messages": question() });
        for (temperature, max_tokens) in [(0.7, 77), (0.1, 5)] {
            assert_eq!(proxy.post("/v1/chat/completions", &body).0, 200);
            let sent = model.requests().pop().unwrap();
            assert_eq!(
                (&sent["temperature"], &sent["max_tokens"]),
                (&json!(temperature), &json!(max_tokens)),
                "{sent}"
            );
            assert!(sent["messages"][0].to_string().contains("Answer in Latin."), "{sent}");
            (body["temperature"], body["max_tokens"]) = (json!(0.1), json!(5));
        }
    }
}

#[test]
fn what_goes_wrong_has_a_status() {
    let place = Place::new(NOTES);
    let model = ModelServer::that(|_| Reply::Error(429, "slow down".into()));
    for args in [&["--with-vault-tools"][..], &[]] {
        let proxy = Proxy::start(&place, &model, args);
        for is_streamed in [true, false] {
            let body = json!({ "model": "m", "messages": question(), "stream": is_streamed });
            let (status, answer) = proxy.post("/v1/chat/completions", &body);
            assert!(status == 429 && answer.to_string().contains("slow down"), "{status} {answer}");
        }
    }
    let exposed = place.command(&["proxy", "--http", "0.0.0.0:0", "--provider", &model.address, "--model", "m"]);
    let output = { exposed }.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(3) && said.contains("--key-file"), "{said}");
}

#[test]
fn a_key_is_required_of_everybody() {
    let place = Place::new("");
    std::fs::write(place.home().join("key"), "proxy-key\n").unwrap();
    let model = ModelServer::with([]);
    let file = place.home().join("key").display().to_string();
    let proxy = Proxy::start(&place, &model, &["--key-file", &file]);
    for path in ["/v1/models", "/v1/embeddings"] {
        let method = if path == "/v1/models" { "GET" } else { "POST" };
        let body = json!({ "model": "minilm", "input": "x" }).to_string();
        assert_eq!(proxy.0.ask(method, path, "", &body).0, 401, "{path}");
        assert_eq!(proxy.0.ask(method, path, "origin: http://evil.example\r\n", &body).0, 403, "{path}");
        assert_eq!(proxy.0.ask(method, path, "authorization: Bearer proxy-key\r\n", &body).0, 200, "{path}");
    }
}

#[test]
fn embeddings_of_the_indexs_model() {
    let place = Place::new(NOTES);
    let model = ModelServer::with([]);
    let proxy = Proxy::start(&place, &model, &[]);
    let ask = |body: Value| proxy.post("/v1/embeddings", &body);
    let vectors = |answer: &Value| -> Vec<Vec<f64>> {
        let data = answer["data"].as_array().unwrap();
        let numbers =
            |entry: &Value| entry["embedding"].as_array().unwrap().iter().map(|n| n.as_f64().unwrap()).collect();
        data.iter().map(numbers).collect()
    };
    let texts = json!(["prune roses in winter", "cutting back rose bushes", "tax returns"]);
    let (status, answer) = ask(json!({ "model": "minilm", "input": texts, "dimensions": 384, "user": "me" }));
    assert_eq!((status, &answer["object"], &answer["model"]), (200, &json!("list"), &json!("minilm")));
    let found = vectors(&answer);
    assert!(found.iter().all(|vector| vector.len() == 384));
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    assert!(dot(&found[0], &found[1]) > dot(&found[0], &found[2]) + 0.2);
    assert!(answer["usage"]["total_tokens"].as_u64() > Some(9), "{}", answer["usage"]);
    // One text, and the same numbers as base64.
    let (_, one) = ask(json!({ "model": "minilm", "input": texts[0], "encoding_format": "base64" }));
    let bytes = decoded(one["data"][0]["embedding"].as_str().unwrap());
    let numbers: Vec<f64> =
        bytes.chunks_exact(4).map(|four| f64::from(f32::from_le_bytes(four.try_into().unwrap()))).collect();
    assert_eq!(numbers, found[0]);
    for (body, status, said) in [
        (json!({ "model": "minilm", "input": "x", "dimensions": 256 }), 400, "can only be 384"),
        (json!({ "model": "text-embedding-3-small", "input": "x" }), 404, "'minilm' is"),
        (json!({ "model": "minilm", "input": [[1, 2]] }), 400, "token numbers are not supported"),
        (json!({ "model": "minilm", "input": [] }), 400, "from 1 to 2048 texts"),
        (json!({ "model": "minilm", "input": vec!["x"; 2049] }), 400, "from 1 to 2048 texts"),
        (json!({ "model": "minilm", "input": ["x", ""] }), 400, "`input[1]` is empty"),
        (json!({ "model": "minilm", "input": "word ".repeat(500) }), 400, "has 500 tokens"),
        (json!({ "model": "minilm", "input": "x", "encoding_format": "int8" }), 400, "`float` or `base64`"),
        (json!({ "input": "x" }), 400, "`model` is missing"),
        (json!({ "model": "minilm", "input": "x".repeat(9 << 20) }), 413, "longer than"),
    ] {
        let (answered, answer) = ask(body);
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(answered == status && message.contains(said), "{answered}: {answer}");
    }
}

/// Base64 without a library, so that what is checked is not what is used.
fn decoded(text: &str) -> Vec<u8> {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bytes, mut bits, mut held) = (Vec::new(), 0_u32, 0);
    for letter in text.bytes().filter(|letter| *letter != b'=') {
        let value = LETTERS.iter().position(|known| *known == letter).unwrap();
        bits = bits << 6 | u32::try_from(value).unwrap();
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
        }
    }
    bytes
}
