//! The program with an index in a real PostgreSQL server.

#[expect(dead_code, reason = "the tests of the store use the rest")]
#[path = "../../../vault-postgres/tests/it/server.rs"]
mod server;

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use server::Server;
use tempfile::TempDir;

/// A vault, and the address of its index in a database.
struct Team {
    folder: TempDir,
    address: String,
}

impl Team {
    fn new(server: &Server) -> Self {
        let team =
            Self { folder: tempfile::tempdir().unwrap(), address: format!("postgres:{}", server.address("postgres")) };
        std::fs::create_dir(team.vault()).unwrap();
        team.write("Quince.md", "# Quince\n\nMake jelly of the quince.\n");
        team.write("Roses.md", "# Roses\n\nPrune the roses in late winter.\n");
        assert!(team.run(&["sync", "--index", &team.address]).status.success());
        // The owner of the database has not read this yet.
        team.write("Pantry.md", "Quince jelly of [[Quince]].\n");
        team
    }

    fn vault(&self) -> PathBuf {
        self.folder.path().join("Handbook")
    }

    fn write(&self, path: &str, text: &str) {
        std::fs::write(self.vault().join(path), text).unwrap();
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vault-agent"));
        command.args(args).env_clear().env("HOME", self.folder.path()).env("VAULT_DIR", self.vault());
        command.current_dir(self.folder.path()).stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }
}

/// The answers of a server to calls, made one after the other.
fn mcp(mut command: Command, calls: &[(&str, Value)]) -> Vec<String> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut input, mut lines) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()).lines());
    let client =
        json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let requests = std::iter::once(json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": client }));
    let requests = requests.chain(calls.iter().zip(1..).map(|((tool, args), id)| {
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": tool, "arguments": args } })
    }));
    let mut answers = Vec::new();
    for request in requests {
        writeln!(input, "{request}").unwrap();
        if request["id"] == 0 {
            writeln!(input, "{}", json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).unwrap();
        }
        let is_answer = |line: &String| serde_json::from_str::<Value>(line).unwrap()["id"] == request["id"];
        answers.push(lines.by_ref().map(Result::unwrap).find(is_answer).unwrap());
    }
    drop(input);
    assert!(child.wait().unwrap().success());
    answers.split_off(1)
}

#[test]
fn assistants_search_a_database_and_change_the_notes_of_the_folder() {
    let Some(mut server) = Server::new() else { return };
    let team = Team::new(&server);
    let search = ("search_notes", json!({ "query": "quince jelly" }));
    let links = ("list_backlinks", json!({ "path": "Quince.md" }));
    let args = ["mcp", "--allow-write", "--index", &team.address];
    let rename = ("rename_note", json!({ "path": "Quince.md", "new_path": "Medlar.md" }));
    let answers = mcp(team.command(&args), &[search.clone(), links, rename]);
    assert!(answers[0].contains("Quince.md") && !answers[0].contains("Pantry.md"), "{}", answers[0]);
    assert!(answers[1].contains("Pantry.md"), "{}", answers[1]);
    let pantry = std::fs::read_to_string(team.vault().join("Pantry.md")).unwrap();
    assert_eq!(pantry, "Quince jelly of [[Medlar]].\n", "{}", answers[2]);

    // The table in the configuration is for every program.
    std::fs::create_dir_all(team.folder.path().join(".config/vault-index")).unwrap();
    let table = format!("[databases]\nHandbook = {:?}\n", team.address);
    std::fs::write(team.folder.path().join(".config/vault-index/config.toml"), table).unwrap();
    let answers = mcp(team.command(&["mcp"]), std::slice::from_ref(&search));
    assert!(answers[0].contains("Quince.md"), "the database has the old name: {}", answers[0]);
    let asked = team.run(&["ask", "when are roses pruned"]);
    assert!(String::from_utf8_lossy(&asked.stdout).contains("Roses.md"), "{asked:?}");
    let sound = team.run(&["mcp", "doctor"]);
    assert!(String::from_utf8_lossy(&sound.stdout).contains("2 notes"), "{sound:?}");
    let installed = team.run(&["mcp", "install", "codex", "--print"]);
    assert!(installed.status.success() && !String::from_utf8_lossy(&installed.stdout).contains("--index"));
    // An address may hold a password, which another program would then hold.
    let refused = team.run(&["mcp", "install", "codex", "--print", "--index", &team.address]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("[databases]"), "{refused:?}");

    // Without the server, only what ranks fails.
    server.kill();
    let read = ("read_note", json!({ "path": "Medlar" }));
    let answers = mcp(team.command(&["mcp"]), &[search, read]);
    assert!(answers[0].contains("cannot be reached"), "{}", answers[0]);
    assert!(answers[1].contains("Make jelly"), "{}", answers[1]);
}
