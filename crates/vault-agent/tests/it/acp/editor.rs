//! An editor that speaks the Agent Client Protocol, one JSON a line, and answers as a test says.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};

use crate::model_server::ModelServer;
use crate::stdio::Place;

/// What an editor answers to a request of the agent: its method and parameters. `None` leaves it open.
type Person = Box<dyn FnMut(&str, &Value) -> Option<Value>>;

/// An editor with one agent.
pub struct Editor {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    last: u64,
    person: Person,
    /// The updates of sessions, in order.
    pub updates: Vec<Value>,
    /// What the agent asked: method and parameters.
    pub asked: Vec<(String, Value)>,
    /// The ids of requests of the agent that were withdrawn.
    pub withdrawn: Vec<Value>,
    /// The id of the agent's request that was left open last.
    pub open: Option<Value>,
}

/// The agent of a place, with a model.
pub fn agent(place: &Place, model: &ModelServer, args: &[&str]) -> Command {
    let mut command = place.command(&[&["acp"], args].concat());
    command.env("VAULT_AGENT_PROVIDER", &model.address).env("VAULT_AGENT_MODEL", "scripted");
    command
}

/// A model that never answers, and a signal for each request to it.
pub fn stuck_model() -> (ModelServer, Receiver<()>) {
    let (asked, asks) = channel();
    let model = ModelServer::that(move |_| {
        asked.send(()).unwrap();
        loop {
            std::thread::park();
        }
    });
    (model, asks)
}

/// What an editor declares that can do everything.
pub fn everything() -> Value {
    json!({
        "fs": { "readTextFile": true, "writeTextFile": true },
        "terminal": true,
        "elicitation": { "form": {} },
        "session": { "notices": {}, "compaction": {}, "configOptions": { "boolean": {} } },
    })
}

impl Editor {
    /// Starts an agent, and says nothing yet.
    pub fn silent(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let person: Person = Box::new(|method, _| panic!("the agent asked {method}"));
        let (updates, asked, withdrawn) = Default::default();
        Self { child, input, output, last: 0, person, updates, asked, withdrawn, open: None }
    }

    /// Starts an agent and introduces itself.
    pub fn start(command: Command, capabilities: Value) -> Self {
        let mut editor = Self::silent(command);
        let hello = json!({ "protocolVersion": 1, "clientCapabilities": capabilities });
        assert_eq!(editor.result("initialize", hello)["protocolVersion"], 1);
        editor
    }

    /// One that declares nothing.
    pub fn plain(place: &Place, model: &ModelServer) -> Self {
        Self::start(agent(place, model, &[]), json!({}))
    }

    /// One that declares everything.
    pub fn able(place: &Place, model: &ModelServer) -> Self {
        Self::start(agent(place, model, &[]), everything())
    }

    /// Sets what the person answers.
    pub fn answers(&mut self, person: impl FnMut(&str, &Value) -> Option<Value> + 'static) {
        self.person = Box::new(person);
    }

    /// Has the person choose one option of every permission request.
    pub fn chooses(&mut self, option: &'static str) {
        self.answers(move |_, _| Some(selected(option)));
    }

    /// Has the person choose options one after the other, then the last.
    pub fn chooses_each(&mut self, options: &'static [&'static str]) {
        let mut left = options.iter();
        let mut last = "reject";
        self.answers(move |method, _| {
            assert_eq!(method, "session/request_permission");
            last = left.next().unwrap_or(&last);
            Some(selected(last))
        });
    }

    pub fn send_line(&mut self, line: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line).unwrap();
        input.write_all(b"\n").unwrap();
        input.flush().unwrap();
    }

    fn send(&mut self, message: &Value) {
        self.send_line(message.to_string().as_bytes());
    }

    /// Sends a request without waiting, and gives its id.
    pub fn ask(&mut self, method: &str, params: Value) -> u64 {
        self.last += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": self.last, "method": method, "params": params }));
        self.last
    }

    pub fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// The next message of the agent, whatever it is.
    pub fn next(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        assert!(!line.is_empty(), "the agent has ended: {}", self.errors());
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no message: {line}"));
        assert_eq!(message["jsonrpc"], "2.0");
        message
    }

    /// Takes a message that is no response: an update, or a request, which the person answers.
    pub fn take(&mut self, message: Value) {
        let (method, params) = (message["method"].as_str().unwrap_or_default().to_owned(), message["params"].clone());
        match (method.as_str(), message.get("id")) {
            ("session/update", None) => self.updates.push(params),
            ("$/cancel_request", None) => self.withdrawn.push(params["requestId"].clone()),
            (_, Some(id)) if !method.is_empty() => {
                let answer = (self.person)(&method, &params);
                self.asked.push((method, params));
                match answer {
                    Some(result) => self.send(&json!({ "jsonrpc": "2.0", "id": id, "result": result })),
                    None => self.open = Some(id.clone()),
                }
            }
            _ => panic!("{message}"),
        }
    }

    /// Answers the request that was left open.
    pub fn answer_open(&mut self, result: Value) {
        let id = self.open.take().unwrap();
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    }

    /// The response to a request.
    pub fn response(&mut self, id: u64) -> Value {
        loop {
            let message = self.next();
            if message.get("method").is_none() && message["id"] == id {
                return message;
            }
            self.take(message);
        }
    }

    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        self.response(id)
    }

    pub fn result(&mut self, method: &str, params: Value) -> Value {
        let response = self.request(method, params);
        assert!(response["error"].is_null(), "{method}: {response}");
        response["result"].clone()
    }

    /// The code and the message of the error that a request has.
    pub fn error(&mut self, method: &str, params: Value) -> (i64, String) {
        let response = self.request(method, params);
        let error = &response["error"];
        assert!(error.is_object(), "{method}: {response}");
        (error["code"].as_i64().unwrap(), error["message"].as_str().unwrap().to_owned())
    }

    /// A new session in a folder.
    pub fn session(&mut self, cwd: &Path) -> String {
        let session = self.result("session/new", json!({ "cwd": cwd, "mcpServers": [] }));
        session["sessionId"].as_str().unwrap().to_owned()
    }

    /// Says something, and gives the result of the turn.
    pub fn say(&mut self, session: &str, text: &str) -> Value {
        self.result("session/prompt", prompt(session, text))
    }

    /// Says something, and gives the reason for which the turn ended.
    pub fn stops(&mut self, session: &str, text: &str) -> String {
        self.say(session, text)["stopReason"].as_str().unwrap().to_owned()
    }

    /// Reads messages until one holds.
    pub fn until(&mut self, mut holds: impl FnMut(&Self) -> bool) {
        while !holds(self) {
            let message = self.next();
            self.take(message);
        }
    }

    /// The updates of a kind.
    pub fn of(&self, kind: &str) -> Vec<Value> {
        let updates = self.updates.iter().map(|update| &update["update"]);
        updates.filter(|update| update["sessionUpdate"] == kind).cloned().collect()
    }

    /// All that the agent said in messages.
    pub fn said(&self) -> String {
        let chunks = self.of("agent_message_chunk");
        chunks.iter().map(|chunk| chunk["content"]["text"].as_str().unwrap().to_owned()).collect()
    }

    /// The calls of tools as an editor has them after all updates: each with the fields that came last.
    pub fn calls(&self) -> Vec<Value> {
        let mut calls: Vec<Value> = Vec::new();
        for update in self.updates.iter().map(|update| &update["update"]) {
            match update["sessionUpdate"].as_str().unwrap() {
                "tool_call" => calls.push(update.clone()),
                "tool_call_update" => {
                    let id = &update["toolCallId"];
                    let call = calls.iter_mut().find(|call| call["toolCallId"] == *id).expect("a call that began");
                    for (name, value) in update.as_object().unwrap() {
                        call[name] = value.clone();
                    }
                }
                _ => {}
            }
        }
        calls
    }

    /// What was asked with a method.
    pub fn asked_with(&self, method: &str) -> Vec<Value> {
        self.asked.iter().filter(|(asked, _)| asked == method).map(|(_, params)| params.clone()).collect()
    }

    fn errors(&mut self) -> String {
        let mut errors = String::new();
        let _ = self.child.stderr.as_mut().unwrap().read_to_string(&mut errors);
        errors
    }

    /// Closes the agent's input, and waits for its end: the exit code, and what it wrote since.
    pub fn end(mut self) -> (i32, String) {
        drop(self.input.take());
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap().code().unwrap(), rest)
    }

    /// As [`Editor::end`], and what it wrote to standard error.
    pub fn end_with_errors(mut self) -> (i32, String, String) {
        let errors = self.child.stderr.take().unwrap();
        let (code, rest) = self.end();
        (code, rest, std::io::read_to_string(errors).unwrap())
    }

    /// Asks the agent to end while its input is open, and waits for its end.
    #[cfg(unix)]
    pub fn terminate(mut self) -> i32 {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.child.wait().unwrap().code().unwrap()
    }

    /// Ends the agent as a crash does.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A prompt of one text.
pub fn prompt(session: &str, text: &str) -> Value {
    json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] })
}

/// The answer that chooses an option.
pub fn selected(option: &str) -> Value {
    json!({ "outcome": { "outcome": "selected", "optionId": option } })
}

/// The ids of the options of a permission request.
pub fn options(asked: &Value) -> Vec<String> {
    let options = asked["options"].as_array().unwrap().iter();
    options.map(|option| option["optionId"].as_str().unwrap().to_owned()).collect()
}

/// The address of a file of the vault.
pub fn uri(place: &Place, path: &str) -> String {
    format!("file://{}/{path}", place.vault().display())
}
