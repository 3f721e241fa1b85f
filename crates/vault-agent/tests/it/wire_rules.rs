//! What each provider requires of a request: the path, the key, the tools, and calls with their results. A request that
//! breaks a rule is refused, as the provider would refuse it.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::web_server::ReceivedRequest;

/// The key that every test uses.
pub const KEY: &str = "sk-of-the-test";

/// An API of providers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    Chat,
    Responses,
    Anthropic,
    Gemini,
    Ollama,
}

/// What a provider asks of each request.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    pub wire: Wire,
    /// Where the request goes.
    pub target: &'static str,
    pub has_key: bool,
}

type CheckResult = Result<(), String>;

impl Rules {
    /// # Errors
    /// The rule that a request breaks.
    pub fn check(&self, asked: &ReceivedRequest) -> CheckResult {
        ensure(asked.target == self.target, || format!("it went to {}, not to {}", asked.target, self.target))?;
        self.check_key(asked)?;
        let is_json = asked.header("content-type").is_some_and(|kind| kind.starts_with("application/json"));
        ensure(is_json, || "its content type is not application/json".to_owned())?;
        let body: Value = serde_json::from_str(&asked.body).map_err(|error| error.to_string())?;
        match self.wire {
            Wire::Chat => chat(&body),
            Wire::Responses => responses(&body),
            Wire::Anthropic => anthropic(asked, &body),
            Wire::Gemini => gemini(&body),
            Wire::Ollama => ollama(&body),
        }
    }

    fn check_key(&self, asked: &ReceivedRequest) -> CheckResult {
        let (name, value) = match self.wire {
            Wire::Anthropic => ("x-api-key", KEY.to_owned()),
            Wire::Gemini => ("x-goog-api-key", KEY.to_owned()),
            _ => ("authorization", format!("Bearer {KEY}")),
        };
        let wanted = self.has_key.then_some(&*value);
        ensure(asked.header(name) == wanted, || format!("{name} is {:?}, not {wanted:?}", asked.header(name)))?;
        ensure(!asked.target.contains(KEY), || "the key is in the address".to_owned())
    }
}

fn ensure(holds: bool, rule: impl FnOnce() -> String) -> CheckResult {
    if holds { Ok(()) } else { Err(rule()) }
}

fn list<'v>(value: &'v Value, what: &str) -> Result<&'v [Value], String> {
    match value.as_array() {
        Some(values) if !values.is_empty() => Ok(values),
        _ => Err(format!("{what} is no list, or an empty one: {value}")),
    }
}

fn text<'v>(value: &'v Value, what: &str) -> Result<&'v str, String> {
    value.as_str().filter(|text| !text.is_empty()).ok_or_else(|| format!("{what} is no text, or an empty one: {value}"))
}

/// A tool's name and the schema of its arguments.
fn tool(name: &Value, schema: &Value) -> CheckResult {
    let name = text(name, "a tool's name")?;
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    ensure(name.len() <= 64 && name.chars().all(is_plain), || format!("{name:?} is no name of a tool"))?;
    ensure(schema["type"] == "object", || format!("the arguments of {name} are no object: {schema}"))
}

/// Arguments as a text that is a JSON object.
fn arguments(value: &Value) -> CheckResult {
    let parsed = serde_json::from_str::<Value>(text(value, "the arguments of a call")?);
    ensure(parsed.is_ok_and(|parsed| parsed.is_object()), || format!("arguments are no object: {value}"))
}

/// The same ids on both sides, each once.
fn same_ids(calls: &[&str], results: &[&str]) -> CheckResult {
    let (of_calls, of_results): (BTreeSet<_>, BTreeSet<_>) = (calls.iter().collect(), results.iter().collect());
    let is_each_once = of_calls.len() == calls.len() && of_results.len() == results.len();
    ensure(is_each_once && of_calls == of_results, || format!("calls {calls:?} have the results {results:?}"))
}

fn functions(body: &Value) -> CheckResult {
    for one in list(&body["tools"], "tools")? {
        ensure(one["type"] == "function", || format!("no function: {one}"))?;
        tool(&one["function"]["name"], &one["function"]["parameters"])?;
    }
    Ok(())
}

/// The messages that follow one at once and have a role.
fn run_of<'m>(messages: &'m [Value], after: usize, role: &str) -> &'m [Value] {
    let rest = &messages[after + 1..];
    &rest[..rest.iter().take_while(|message| message["role"] == role).count()]
}

fn chat(body: &Value) -> CheckResult {
    text(&body["model"], "model")?;
    functions(body)?;
    let messages = list(&body["messages"], "messages")?;
    let mut results = 0;
    for (at, message) in messages.iter().enumerate() {
        match message["role"].as_str() {
            Some("system" | "user") => _ = text(&message["content"], "content")?,
            Some("assistant") if message["tool_calls"].is_array() => {
                let mut calls = Vec::new();
                for call in list(&message["tool_calls"], "tool_calls")? {
                    ensure(call["type"] == "function", || format!("a call that is no function: {call}"))?;
                    text(&call["function"]["name"], "the name of a call")?;
                    arguments(&call["function"]["arguments"])?;
                    calls.push(text(&call["id"], "the id of a call")?);
                }
                let answers = run_of(messages, at, "tool");
                let ids = answers.iter().map(|answer| text(&answer["tool_call_id"], "tool_call_id"));
                same_ids(&calls, &ids.collect::<Result<Vec<_>, _>>()?)?;
                results += answers.len();
            }
            Some("assistant") => _ = text(&message["content"], "content")?,
            Some("tool") => _ = text(&message["content"], "the content of a result")?,
            _ => return Err(format!("a message of nobody: {message}")),
        }
    }
    let all = messages.iter().filter(|message| message["role"] == "tool").count();
    ensure(results == all, || "a result that follows no call".to_owned())
}

fn responses(body: &Value) -> CheckResult {
    text(&body["model"], "model")?;
    for one in list(&body["tools"], "tools")? {
        ensure(one["type"] == "function", || format!("no function: {one}"))?;
        tool(&one["name"], &one["parameters"])?;
        ensure(one["strict"].is_boolean(), || format!("what is not said is strict: {one}"))?;
    }
    let (mut calls, mut results) = (Vec::new(), Vec::new());
    for item in list(&body["input"], "input")? {
        match item["type"].as_str() {
            Some("message") => ensure(!item["content"].is_null(), || format!("an empty message: {item}"))?,
            Some("function_call") => {
                text(&item["name"], "the name of a call")?;
                arguments(&item["arguments"])?;
                calls.push(text(&item["call_id"], "call_id")?);
            }
            Some("function_call_output") => {
                text(&item["output"], "output")?;
                let id = text(&item["call_id"], "call_id")?;
                ensure(calls.contains(&id), || format!("a result before its call: {item}"))?;
                results.push(id);
            }
            _ => return Err(format!("an item of no kind: {item}")),
        }
    }
    same_ids(&calls, &results)
}

fn anthropic(asked: &ReceivedRequest, body: &Value) -> CheckResult {
    ensure(asked.header("anthropic-version") == Some("2023-06-01"), || "there is no anthropic-version".to_owned())?;
    text(&body["model"], "model")?;
    ensure(body["max_tokens"].as_u64().is_some_and(|most| most > 0), || "max_tokens is required".to_owned())?;
    for one in list(&body["tools"], "tools")? {
        tool(&one["name"], &one["input_schema"])?;
    }
    let mut calls: Vec<&str> = Vec::new();
    for (at, message) in list(&body["messages"], "messages")?.iter().enumerate() {
        let expected = if at % 2 == 0 { "user" } else { "assistant" };
        ensure(message["role"] == expected, || format!("roles alternate, and a user is first: {message}"))?;
        let blocks = list(&message["content"], "content")?;
        let is_result = |block: &&Value| block["type"] == "tool_result";
        let results: Vec<&Value> = blocks.iter().take_while(is_result).collect();
        let ids = results.iter().map(|block| text(&block["tool_use_id"], "tool_use_id"));
        same_ids(&calls, &ids.collect::<Result<Vec<_>, _>>()?)?;
        calls.clear();
        for block in &blocks[results.len()..] {
            match block["type"].as_str() {
                Some("text") => _ = text(&block["text"], "text")?,
                Some("tool_use") if expected == "assistant" => {
                    text(&block["name"], "the name of a call")?;
                    ensure(block["input"].is_object(), || format!("input is no object: {block}"))?;
                    calls.push(text(&block["id"], "the id of a call")?);
                }
                _ => return Err(format!("a block that may not be here: {block}")),
            }
        }
    }
    same_ids(&calls, &[])
}

fn gemini(body: &Value) -> CheckResult {
    for declaration in list(&body["tools"][0]["functionDeclarations"], "functionDeclarations")? {
        let schema = declaration.get("parametersJsonSchema").or_else(|| declaration.get("parameters"));
        tool(&declaration["name"], schema.unwrap_or(&Value::Null))?;
    }
    let contents = list(&body["contents"], "contents")?;
    ensure(contents[0]["role"] == "user", || "a user is first".to_owned())?;
    let mut calls: Vec<&str> = Vec::new();
    for content in contents {
        let of_model = content["role"] == "model";
        ensure(of_model || content["role"] == "user", || format!("a content of nobody: {content}"))?;
        let parts = list(&content["parts"], "parts")?;
        // As many answers as there were calls, in the turn that follows them.
        let answers: Vec<&Value> = parts.iter().filter_map(|part| part.get("functionResponse")).collect();
        let names = answers.iter().map(|answer| text(&answer["name"], "the name of a result"));
        let names = names.collect::<Result<Vec<_>, _>>()?;
        ensure(names == calls, || format!("the calls {calls:?} have the results {names:?}"))?;
        ensure(answers.iter().all(|answer| answer["response"].is_object()), || "a response is no object".to_owned())?;
        calls.clear();
        for part in parts.iter().filter(|part| part.get("functionResponse").is_none()) {
            match part.get("functionCall") {
                Some(call) if of_model && call["args"].is_object() => {
                    calls.push(text(&call["name"], "the name of a call")?);
                }
                Some(call) => return Err(format!("a call that may not be here: {call}")),
                None => _ = text(&part["text"], "text")?,
            }
        }
    }
    ensure(calls.is_empty(), || format!("calls without results: {calls:?}"))
}

fn ollama(body: &Value) -> CheckResult {
    text(&body["model"], "model")?;
    functions(body)?;
    ensure(body["options"]["num_ctx"].is_u64(), || "the default context does not hold the tools".to_owned())?;
    let messages = list(&body["messages"], "messages")?;
    let mut results = 0;
    for (at, message) in messages.iter().enumerate() {
        ensure(message["content"].is_string(), || format!("content is no text: {message}"))?;
        let Some(calls) = message["tool_calls"].as_array() else { continue };
        let mut names = Vec::new();
        for call in calls {
            let arguments = &call["function"]["arguments"];
            ensure(arguments.is_object(), || format!("arguments are no object: {call}"))?;
            names.push(text(&call["function"]["name"], "the name of a call")?);
        }
        // There are no ids: results are known by their names and their order.
        let answers = run_of(messages, at, "tool");
        let of_answers = answers.iter().map(|answer| text(&answer["tool_name"], "tool_name"));
        let of_answers = of_answers.collect::<Result<Vec<_>, _>>()?;
        ensure(names == of_answers, || format!("the calls {names:?} have the results {of_answers:?}"))?;
        results += answers.len();
    }
    let all = messages.iter().filter(|message| message["role"] == "tool").count();
    ensure(results == all, || "a result that follows no call".to_owned())
}
