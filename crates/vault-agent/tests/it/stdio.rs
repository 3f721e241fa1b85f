//! A vault in a temporary folder, and clients of the built program that speak its protocol by hand, one JSON a line.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

/// The program.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_vault-agent");

/// A vault, and a home for all that the program keeps.
pub struct Place {
    folder: TempDir,
}

/// Paths and contents of files.
pub type Tree = BTreeMap<PathBuf, Vec<u8>>;

impl Place {
    /// From one text: a line `//- path` begins a file.
    pub fn new(files: &str) -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        std::fs::create_dir_all(place.vault()).unwrap();
        std::fs::create_dir_all(place.home()).unwrap();
        for file in files.split("//- ").skip(1) {
            let (path, content) = file.split_once('\n').unwrap_or((file, ""));
            place.write(path.trim(), content);
        }
        place
    }

    /// The vault's folder, which is called `Notes`.
    pub fn vault(&self) -> PathBuf {
        self.folder.path().join("Notes")
    }

    /// What the program takes for the user's home.
    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// Writes a file of the vault.
    pub fn write(&self, path: &str, content: &str) {
        let file = self.vault().join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, content).unwrap();
    }

    /// Reads a file of the vault.
    pub fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.vault().join(path)).unwrap()
    }

    /// Writes a file of the user's configuration.
    pub fn configure(&self, name: &str, text: &str) {
        let folder = self.home().join("vault-index");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(name), text).unwrap();
    }

    /// All files of the vault.
    pub fn tree(&self) -> Tree {
        fn walk(folder: &Path, root: &Path, tree: &mut Tree) {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => walk(&path, root, tree),
                    false => {
                        _ = tree.insert(path.strip_prefix(root).unwrap().to_owned(), std::fs::read(&path).unwrap())
                    }
                }
            }
        }
        let mut tree = Tree::new();
        walk(&self.vault(), &self.vault(), &mut tree);
        tree
    }

    /// The program, in this home and no other, with this vault.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(args).env_clear().current_dir(self.folder.path());
        command.env("HOME", self.home()).env("VAULT_DIR", self.vault()).env("PATH", "/usr/bin:/bin");
        for name in ["XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "LOCALAPPDATA", "APPDATA"] {
            command.env(name, self.home());
        }
        command
    }

    /// A client of a new server.
    pub fn client(&self, era: Era, args: &[&str]) -> Client {
        Client::start(self, era, json!({}), args)
    }

    /// One whose person can be asked.
    pub fn asking_client(&self, era: Era, args: &[&str]) -> Client {
        Client::start(self, era, json!({ "elicitation": { "form": {} } }), args)
    }

    /// Runs `vault-agent approve` at a terminal, and answers its question.
    #[cfg(unix)]
    pub fn approve(&self, code: &str, answer: &str) -> (String, i32) {
        at_terminal(self.command(&["approve", code]), answer)
    }
}

/// Runs a command whose input and errors are a terminal, answers its one question, and returns what it showed and its
/// exit code.
#[cfg(unix)]
pub fn at_terminal(mut command: Command, answer: &str) -> (String, i32) {
    use rustix::fs::{Mode, OFlags};
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    rustix::io::fcntl_setfd(&terminal, rustix::io::FdFlags::CLOEXEC).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let side = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).unwrap();
    let side = File::from(side);
    command.env("TERM", "xterm").stdin(side.try_clone().unwrap()).stderr(side).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // The command holds the terminal's other side open until it is dropped.
    drop(command);
    let mut terminal = File::from(terminal);
    let mut shown = Vec::new();
    let mut has_answered = false;
    let mut byte = [0];
    // How the end of a terminal's other side is told differs between systems.
    while let Ok(1) = terminal.read(&mut byte) {
        shown.push(byte[0]);
        if !has_answered && shown.ends_with(b"] ") && String::from_utf8_lossy(&shown).contains("[y yes") {
            terminal.write_all(format!("{answer}\n").as_bytes()).unwrap();
            has_answered = true;
        }
    }
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    (String::from_utf8_lossy(&shown).into_owned() + &out, child.wait().unwrap().code().unwrap())
}

/// A command without a controlling terminal.
pub fn detached(command: &mut Command) -> Command {
    let mut detached = Command::new("setsid");
    detached.arg("--wait").arg(command.get_program()).args(command.get_args()).env_clear();
    detached.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    detached.stdin(Stdio::null());
    detached
}

/// Which lifecycle a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// 2026-07-28: everything is in each request.
    New,
    /// Older revisions: `initialize` first.
    Old(&'static str),
}

/// The newest of the old revisions.
pub const OLD: Era = Era::Old("2025-11-25");

/// A client over standard input and output.
pub struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    era: Era,
    capabilities: Value,
    last: u64,
    /// All that the server has written.
    pub heard: String,
    /// What the server asked during calls.
    pub asked: Vec<Value>,
    /// Notifications that came.
    pub told: Vec<Value>,
    /// The result that the client gives when it is asked; none leaves the question open.
    pub answer: Option<Value>,
}

impl Client {
    fn start(place: &Place, era: Era, capabilities: Value, args: &[&str]) -> Self {
        Self::of(place.command(&[&["mcp"], args].concat()), era, capabilities)
    }

    /// A client of the server that a command starts.
    pub fn of(mut command: Command, era: Era, capabilities: Value) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let (heard, asked, told) = (String::new(), Vec::new(), Vec::new());
        let answer = Some(json!({ "action": "cancel" }));
        let mut client = Self { child, input, output, era, capabilities, last: 0, heard, asked, told, answer };
        if let Era::Old(version) = era {
            let hello = json!({
                "protocolVersion": version,
                "capabilities": client.capabilities,
                "clientInfo": { "name": "test", "version": "1" },
            });
            assert_eq!(client.request("initialize", hello)["result"]["protocolVersion"], version);
            client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        }
        client
    }

    /// Writes one message.
    pub fn send(&mut self, message: &Value) {
        self.send_line(message.to_string().as_bytes());
    }

    /// Writes a line, whatever it is.
    pub fn send_line(&mut self, line: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line).unwrap();
        input.write_all(b"\n").unwrap();
        input.flush().unwrap();
    }

    /// Sends a request without waiting, and returns its id.
    pub fn ask(&mut self, method: &str, mut params: Value) -> u64 {
        self.last += 1;
        if self.era == Era::New {
            let meta = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": self.capabilities,
                "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
            });
            for (name, value) in meta.as_object().unwrap() {
                params["_meta"][name] = value.clone();
            }
        }
        let id = self.last;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// The next message of the server, which is kept in `heard`.
    pub fn next(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        self.heard.push_str(&line);
        serde_json::from_str(&line).unwrap_or_else(|_| {
            let mut errors = String::new();
            let _ = self.child.stderr.take().unwrap().read_to_string(&mut errors);
            panic!("no message: {line:?} {errors}")
        })
    }

    /// The response to a request; what comes meanwhile is answered and kept.
    pub fn response(&mut self, id: u64) -> Value {
        loop {
            let message = self.next();
            match (message.get("method"), message.get("id")) {
                (None, Some(of)) if *of == id => return message,
                (None, _) => panic!("a response to nothing: {message}"),
                (Some(_), None) => self.told.push(message),
                (Some(_), Some(of)) => {
                    assert_ne!(self.era, Era::New, "a request to a client of the newest revision: {message}");
                    let answer =
                        self.answer.clone().map(|answer| json!({ "jsonrpc": "2.0", "id": of, "result": answer }));
                    self.asked.push(message.clone());
                    answer.iter().for_each(|answer| self.send(answer));
                }
            }
        }
    }

    /// Sends a request and waits for its response.
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        self.response(id)
    }

    /// The result of a request.
    #[track_caller]
    pub fn result(&mut self, method: &str, params: Value) -> Value {
        let response = self.request(method, params);
        response.get("result").unwrap_or_else(|| panic!("{method}: {response}")).clone()
    }

    /// The result of a call of a tool.
    #[track_caller]
    pub fn call(&mut self, tool: &str, args: Value) -> Value {
        self.result("tools/call", json!({ "name": tool, "arguments": args }))
    }

    /// The structured content of a call that went well.
    #[track_caller]
    pub fn done(&mut self, tool: &str, args: Value) -> Value {
        let result = self.call(tool, args);
        assert_eq!(result["isError"], false, "{result}");
        // Both say the same.
        let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(text, result["structuredContent"]);
        result["structuredContent"].clone()
    }

    /// The error that a call answers.
    #[track_caller]
    pub fn error(&mut self, tool: &str, args: Value) -> Value {
        let result = self.call(tool, args);
        assert_eq!(result["isError"], true, "{result}");
        result["structuredContent"]["error"].clone()
    }

    /// Gives an answer to a question that a call returned, with the state that came with it.
    pub fn call_again(&mut self, tool: &str, args: Value, question: &Value, answer: Value) -> Value {
        let state = &question["requestState"];
        let params =
            json!({ "name": tool, "arguments": args, "requestState": state, "inputResponses": { "approve": answer } });
        self.result("tools/call", params)
    }

    /// Ends the input, and waits for the server: its exit code and what it wrote to standard error.
    pub fn end(mut self) -> (i32, String) {
        drop(self.input.take());
        let mut errors = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        (self.child.wait().unwrap().code().unwrap_or(-1), errors)
    }

    /// The number of the server's process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills the server.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A person who ticks the box.
pub fn yes() -> Value {
    json!({ "action": "accept", "content": { "approve": true } })
}
