//! One run of the program in a fresh place, and all that can be seen of it.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use regex::Regex;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::acp::editor::{Editor, everything, prompt, selected};
use crate::http_server::HttpServer;
use crate::model_server::{ModelServer, Reply};
use crate::stdio::{Client, OLD, Place};
use crate::web_server::WebServer;

const NOTES: &str = "//- Garden/Roses.md\n# Roses\n\nPrune the roses in late winter.\n//- Home.md\nSee [[Roses]]. #garden\n\
//- Old.md\nold roses\n//- ../Other/Lilies.md\n# Lilies\n\nPlant roses beside them.\n//- ../Faulty/.vault.toml\nmodel = 3\n\
//- ../key\na long secret\n//- ../no.pem\n";

/// A plan of one step.
fn plan(tool: &str, args: Value) -> Value {
    json!({ "version": "1.0", "goal": "One step", "riskLevel": "writes",
        "steps": [{ "id": "one", "tool": tool, "args": args }] })
}

/// Plans, each by a name: the model is asked for one by it, and its file is `NAME.json`.
fn plans() -> [(&'static str, Value); 6] {
    let file = |path: &str, content: &str| plan("vault.createFile", json!({ "path": path, "content": content }));
    [
        ("simple", file("New.md", "new")),
        ("named", file("${name}.md", "new")),
        ("picking", file("New.md", "${selection}")),
        ("viewing", file("New.md", "${activeFile}")),
        ("inserting", plan("editor.insertAtCursor", json!({ "text": "here" }))),
        ("deleting", plan("vault.delete", json!({ "path": "Old.md" }))),
    ]
}

/// A run of the program.
#[derive(Debug)]
pub struct Run {
    /// Commands that are run before it.
    pub setup: &'static [&'static str],
    pub args: Vec<String>,
    /// What the program reads, or what a client says to it.
    pub said: String,
}

thread_local! {
    /// Each thread makes its runs one after the other, in the same place: what is stored names it.
    static STAND: Stand = Stand { place: Place::new(""), states: tempfile::tempdir().unwrap() };
}

/// Where runs are made, and what they begin with, by their setup.
struct Stand {
    place: Place,
    states: TempDir,
}

impl Stand {
    fn root(&self) -> PathBuf {
        self.place.vault().parent().unwrap().canonicalize().unwrap()
    }

    /// Makes the place what it is after a setup.
    fn begin(&self, setup: &[&str]) {
        let root = self.root();
        let state = self.states.path().join(format!("after {}", setup.join(", ")));
        empty(&root);
        if !state.exists() {
            write_notes(&self.place, &root);
            let model = ModelServer::that(script(root.clone()));
            for before in setup {
                if let Some(path) = before.strip_prefix("write ") {
                    self.place.write(path, "written meanwhile\n");
                    continue;
                }
                let args: Vec<&str> = before.split_whitespace().collect();
                let output = self.command(&args, &model.address, "").stdin(Stdio::null()).output().unwrap();
                assert!(output.status.success(), "{before}: {output:?}");
            }
            copy(&root, &state);
        } else {
            copy(&state, &root);
        }
    }

    fn command(&self, args: &[&str], model: &str, web: &str) -> Command {
        let (mut command, root) = (self.place.command(args), self.root());
        command.current_dir(&root).env("VAULT_DIR", root.join("Notes"));
        command.env("VAULT_AGENT_PROVIDER", model).env("VAULT_AGENT_MODEL", "scripted");
        // Nothing leaves this machine, and no keyring is asked.
        command.env("HTTPS_PROXY", format!("http://{web}")).env("OPENROUTER_API_KEY", "k");
        command.env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent");
        // What takes longest otherwise: the bundled model, and all certificates of the system.
        command.env("VAULT_MODEL", "hashed");
        command.env("SSL_CERT_FILE", root.join("no.pem"));
        command
    }
}

fn write_notes(place: &Place, root: &Path) {
    for file in NOTES.split("//- ").skip(1) {
        let (path, content) = file.split_once('\n').unwrap();
        place.write(path, content);
    }
    std::fs::create_dir(place.home()).unwrap();
    for (name, plan) in plans() {
        std::fs::write(root.join(format!("{name}.json")), plan.to_string()).unwrap();
    }
    let kept = |(name, plan)| json!({ "name": name, "description": "", "plan": plan });
    let exported = json!({ "version": "1.0", "macros": plans().map(kept) });
    std::fs::write(root.join("macros.json"), exported.to_string()).unwrap();
}

fn empty(folder: &Path) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) }.unwrap();
    }
}

/// With the times of files, by which an index knows whether they have changed.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            std::fs::copy(&path, &target).unwrap();
            let modified = std::fs::metadata(&path).unwrap().modified().unwrap();
            std::fs::File::options().write(true).open(&target).unwrap().set_modified(modified).unwrap();
        }
    }
}

/// All that can be seen of it: what it says and writes, how it ends, and what it asks of the model.
pub fn observed(run: &Run) -> String {
    STAND.with(|stand| observed_at(stand, run))
}

fn observed_at(stand: &Stand, run: &Run) -> String {
    stand.begin(run.setup);
    let (place, root) = (&stand.place, stand.root());
    let model = ModelServer::that(script(root.clone()));
    let web = WebServer::that(|_| (200, json!({ "object": "list", "data": [{ "id": "scripted" }] })));
    let filled = |text: &String| {
        let text = text.replace("{root}", root.to_str().unwrap()).replace("{model}", &model.address);
        let text = text.replace("{web}", &format!("http://{}/v1", web.address));
        if text.contains("{session}") { text.replace("{session}", &session(place)) } else { text }
    };
    let args: Vec<String> = run.args.iter().map(filled).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let command = stand.command(&args, &model.address, &web.address);
    let is = |flag: &str| run.args.iter().any(|arg| arg == flag);
    let name = run.args.iter().find(|arg| ["mcp", "acp", "proxy"].contains(&arg.as_str())).map_or("", |name| name);
    let has_subcommand =
        ["install", "uninstall", "doctor", "add", "list", "remove", "skill"].iter().any(|name| is(name));
    let mut seen = match name {
        "mcp" if has_subcommand => of_command(command, &run.said),
        "mcp" if is("--http") => of_server(command, mcp_requests),
        "mcp" => of_mcp(command),
        "acp" if is("--schema") || is("--choose-model") => of_command(command, &run.said),
        "acp" => of_acp(command, &root, &run.said),
        "proxy" => of_server(command, |server| proxy_requests(server, &run.said)),
        _ => of_command(command, &run.said),
    };
    for asked in model.asked() {
        seen += &format!("\nmodel: {} {}", asked.target, asked.body);
    }
    for (path, content) in place.tree() {
        seen += &format!("\nnote: {} {}", path.display(), String::from_utf8_lossy(&content));
    }
    files(&root, &mut seen);
    normalized(&seen.replace(root.to_str().unwrap(), "PLACE"))
}

/// The id of the conversation that is saved.
fn session(place: &Place) -> String {
    let mut files = std::fs::read_dir(place.home().join("vault-agent/sessions")).unwrap();
    let file = files
        .find_map(|file| Some(file.unwrap().path()).filter(|path| path.extension().is_some_and(|end| end == "json")));
    file.unwrap().file_stem().unwrap().to_string_lossy().into_owned()
}

/// Waits until there is an index anywhere in a folder, for at most 10 seconds.
fn wait_for_index(folder: &Path) {
    let began = Instant::now();
    while !has_index(folder) && began.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether an index is in a folder. The program may remove other files meanwhile.
fn has_index(folder: &Path) -> bool {
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).any(|path| {
        let is_index = path.extension().is_some_and(|ending| ending == "db");
        if path.is_dir() { has_index(&path) } else { is_index }
    })
}

/// Files of the user: indexes by their names, settings by their content.
fn files(folder: &Path, seen: &mut String) {
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            files(&path, seen);
        } else if path.extension().is_some_and(|ending| ending == "db") {
            *seen += &format!("\nfile: {}", path.display());
        } else if path.extension().is_some_and(|ending| ["toml", "json"].iter().any(|kept| ending == *kept)) {
            *seen += &format!("\nfile: {} {}", path.display(), std::fs::read_to_string(&path).unwrap());
        }
    }
}

/// Without what differs from run to run.
fn normalized(text: &str) -> String {
    static RULES: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
        let rule = |pattern: &str, to| (Regex::new(pattern).unwrap(), to);
        vec![
            rule(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?(\[[\w/+-]+\])?", "TIME"),
            rule(r"\b\d+\.\d s\b", "TIME"),
            rule(r"127\.0\.0\.1:\d+", "ADDRESS"),
            rule(r"call[_-][0-9a-zA-Z]+(-[0-9a-f]+)?", "CALL"),
            rule(r"[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{10,}", "ID"),
            rule(r"resume [0-9a-f]+", "resume ID"),
            rule(r"\d+(\.\d+)? ms|(mean|max)_ms.:[\d.]+|duration_ms.:\d+", "TIME"),
            rule(r"in \d+(\.\d+)? s\b", "in TIME"),
            // `ask` embeds while the model thinks, and has done so or not.
            rule(r"; \d+ passages? (was|were) ranked by (its|their) words alone until [^,]+, which [^;]+", ""),
            // A stage of no time is not named.
            rule(r"\(TIME: (walk|read|text|links|vectors) TIME(, (walk|read|text|links|vectors) TIME)*\)", "(TIME)"),
        ]
    });
    RULES.iter().fold(text.to_owned(), |text, (pattern, to)| pattern.replace_all(&text, *to).into_owned())
}

/// The model: it searches twice and answers, or writes a plan; slowly or badly where it is told to.
fn script(root: PathBuf) -> impl FnMut(&Value) -> Reply + Send + 'static {
    let mut asked = 0;
    move |body| {
        asked += 1;
        let text = body.to_string();
        let is_plan = text.contains("The shape of a plan");
        let last = body["messages"].as_array().and_then(|all| all.last()).unwrap_or(&Value::Null);
        let is_first = if is_plan { asked == 1 } else { last["role"] == "user" };
        if is_first && text.contains("slowly") {
            // A second is the least that can be set.
            std::thread::sleep(Duration::from_millis(1100));
        }
        if is_plan {
            // `plan` syncs beside the model, and ends with it.
            wait_for_index(&root);
            if is_first && text.contains("badly") {
                return Reply::text("Here is your plan: {}");
            }
            let meant = last["content"].to_string();
            let [(_, simple), ..] = plans();
            let named = plans().into_iter().find(|(name, _)| meant.contains(name));
            return Reply::Text(named.map_or(simple, |(_, plan)| plan).to_string());
        }
        // Answered from the index, and not by its vectors, which may be made before or after it.
        if is_first && text.contains("searching") {
            return Reply::call("search_by_tag", json!({ "tags": ["garden"] }));
        }
        let results = body["messages"].as_array().into_iter().flatten().filter(|one| one["role"] == "tool").count();
        match body["tools"].as_array().is_some_and(|tools| !tools.is_empty()) && results < 2 {
            true => Reply::call("read_note", json!({ "path": (["Garden/Roses.md", "Home.md"][results]) })),
            false => Reply::text("In late winter [Garden/Roses.md:3]."),
        }
    }
}

/// A command that ends by itself.
fn of_command(mut command: Command, said: &str) -> String {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // One that reads nothing may have ended.
    let _ = child.stdin.take().unwrap().write_all(said.as_bytes());
    let output = child.wait_with_output().unwrap();
    let (out, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    format!("code: {:?}\nout: {out}\nerrors: {errors}", output.status.code())
}

/// A client that can show forms and pages, and whose person says no to all of them.
fn of_mcp(command: Command) -> String {
    let page = json!({ "io.modelcontextprotocol/ui": { "mimeTypes": ["text/html;profile=mcp-app"] } });
    let mut client = Client::of(command, OLD, json!({ "elicitation": { "form": {} }, "extensions": page }));
    client.result("tools/list", json!({}));
    client.request("tools/call", json!({ "name": "read_note", "arguments": { "path": "Old.md" } }));
    client.request("tools/call", json!({ "name": "search_by_tag", "arguments": { "tags": ["garden"] } }));
    let append = json!({ "path": "Home.md", "content": "- done" });
    client.request("tools/call", json!({ "name": "append_to_note", "arguments": append }));
    let heard = std::mem::take(&mut client.heard);
    let (code, errors) = client.end();
    format!("code: {code}\nheard: {heard}\nerrors: {errors}")
}

/// An editor whose person says no.
fn of_acp(command: Command, root: &Path, said: &str) -> String {
    let mut editor = Editor::start(command, everything());
    editor.answers(|method, _| (method == "session/request_permission").then(|| selected("reject")));
    let session = editor.request("session/new", json!({ "cwd": root, "mcpServers": [] }));
    let mut seen = session.to_string();
    if let Some(id) = session["result"]["sessionId"].as_str() {
        let result = editor.request("session/prompt", prompt(id, said));
        seen += &format!("\n{result}");
    }
    // The commands are told beside the turn, at no certain time.
    editor.updates.sort_by_key(|update| update["update"]["sessionUpdate"] != "available_commands_update");
    seen += &format!("\n{:?}\n{:?}", editor.updates, editor.asked);
    let (code, _, errors) = editor.end_with_errors();
    format!("code: {code}\n{seen}\nerrors: {errors}")
}

/// A server over HTTP, which is asked and then ended.
fn of_server(mut command: Command, ask: impl FnOnce(&HttpServer) -> String) -> String {
    let mut child: Child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let (send, said) = channel();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let reader = std::thread::spawn(move || {
        let mut all = String::new();
        let mut line = String::new();
        while errors.read_line(&mut line).unwrap_or(0) > 0 {
            if let Some(address) = line.strip_prefix("note: listening on http://") {
                let _ = send.send(address.split('/').next().unwrap().to_owned());
            }
            all += &std::mem::take(&mut line);
        }
        let _ = errors.read_to_string(&mut all);
        all
    });
    let answers = match said.recv() {
        Ok(address) => {
            let mut server = HttpServer { child, address };
            let answers = ask(&server);
            let pid = rustix::process::Pid::from_child(&server.child);
            rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
            server.child.wait().unwrap();
            answers
        }
        Err(_) => format!("code: {:?}", child.wait().unwrap().code()),
    };
    format!("{answers}\nerrors: {}", reader.join().unwrap())
}

fn mcp_requests(server: &HttpServer) -> String {
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {} });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "_meta": meta } }).to_string();
    let headers = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
                   MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\n";
    ["", "Host: notes.example.org\r\n"]
        .map(|more| format!("{:?}", server.ask("POST", "/mcp", &format!("{headers}{more}"), &body)))
        .join("\n")
}

fn proxy_requests(server: &HttpServer, said: &str) -> String {
    let models = server.ask("GET", "/v1/models", "Host: notes.example.org\r\n", "");
    let tool = json!({ "type": "function", "function": { "name": "ring", "parameters": { "type": "object" } } });
    let body = json!({ "model": "scripted", "messages": [{ "role": "user", "content": said }], "tools": [tool] });
    let answer = server.ask("POST", "/v1/chat/completions", "Content-Type: application/json\r\n", &body.to_string());
    format!("{models:?}\n{answer:?}")
}
