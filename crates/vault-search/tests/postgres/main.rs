//! The commands with an index in a real PostgreSQL server.

#[expect(dead_code, reason = "the tests of the store use the rest")]
#[path = "../../../vault-postgres/tests/it/server.rs"]
mod server;
#[cfg(feature = "tools")]
mod tools;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use server::{Server, is_long};
use tempfile::TempDir;

/// A copy of the demo vault, and the address of its index in a database.
struct Team {
    folder: TempDir,
    address: String,
}

impl Team {
    fn new(server: &Server) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/vaults/demo");
        copy(&demo, &folder.path().join("demo"));
        let address = format!("postgres:{}", server.address("postgres"));
        Self { folder, address }
    }

    fn vault(&self) -> PathBuf {
        self.folder.path().join("demo")
    }

    fn command(&self, program: &str, index: Option<&str>, arguments: &[&str]) -> Command {
        let program = match program {
            "vault-search" => env!("CARGO_BIN_EXE_vault-search"),
            "vault-tools" => env!("CARGO_BIN_EXE_vault-tools"),
            _ => env!("CARGO_BIN_EXE_vault-index"),
        };
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("HOME", self.folder.path())
            .env("VAULT_DIR", self.vault())
            .env("VAULT_MODEL", "hashed")
            .stdin(Stdio::null());
        index.iter().for_each(|index| _ = command.args(["--index", index]));
        command.args(arguments);
        command
    }

    fn run(&self, program: &str, index: Option<&str>, arguments: &[&str]) -> Output {
        self.command(program, index, arguments).output().unwrap()
    }

    /// The output of a command on the database that ends well.
    fn stdout(&self, program: &str, arguments: &[&str]) -> String {
        self.told(program, Some(&self.address), arguments)
    }

    fn told(&self, program: &str, index: Option<&str>, arguments: &[&str]) -> String {
        let output = self.run(program, index, arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The error of a command on the database.
    fn refused(&self, program: &str, arguments: &[&str]) -> String {
        let output = self.run(program, Some(&self.address), arguments);
        assert!(!output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stderr).unwrap()
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to.join(entry.file_name())),
            false => _ = std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap(),
        }
    }
}

/// The results of a search, with their scores. The order of equal scores is that in which the notes were read.
fn results(json: &str) -> Vec<(String, String, String)> {
    let json: Value = serde_json::from_str(json).unwrap();
    let text = |value: &Value| value.to_string();
    let results = json["results"].as_array().unwrap();
    let mut results: Vec<_> =
        results.iter().map(|hit| (text(&hit["score"]), text(&hit["path"]), text(&hit["start_line"]))).collect();
    results.sort();
    results
}

#[test]
fn a_database_answers_what_the_index_file_answers() {
    let Some(server) = Server::new() else { return };
    let team = Team::new(&server);
    // Nothing is made by a search.
    assert!(team.refused("vault-search", &["apple"]).contains("vault-index sync"));
    let synced = team.run("vault-index", Some(&team.address), &["sync"]);
    assert!(synced.status.success(), "{synced:?}");
    assert!(String::from_utf8_lossy(&synced.stderr).contains("_reader lets a role read it"), "{synced:?}");
    team.told("vault-index", None, &["sync"]);
    let mut found = 0;
    let queries = ["prune apple trees", "how to keep bread fresh", "tag:garden", "sour", "when to sow"];
    for query in queries {
        for mode in ["hybrid", "semantic", "lexical"] {
            let arguments = ["--json", "--mode", mode, query];
            let (file, database) =
                (team.run("vault-search", None, &arguments), team.run("vault-search", Some(&team.address), &arguments));
            assert_eq!(file.status.code(), database.status.code(), "{database:?}");
            let [file, database] = [file, database].map(|output| results(&String::from_utf8(output.stdout).unwrap()));
            assert_eq!(file, database, "{mode} {query}");
            found += file.len();
        }
    }
    assert!(found > 50, "{found}");

    // A change is found after a sync, and not before: a search does not write.
    let new = |results: &str| results.contains("Quince.md");
    std::fs::write(team.vault().join("Quince.md"), "# Quince\n\nMake jelly of the quince. See [[Nowhere at all]].")
        .unwrap();
    let search = || team.run("vault-search", Some(&team.address), &["--json", "quince jelly"]).stdout;
    assert!(!new(&String::from_utf8(search()).unwrap()));
    let report: Value = serde_json::from_str(&team.stdout("vault-index", &["sync", "--json"])).unwrap();
    assert_eq!((&report["added"], &report["pending"]), (&1.into(), &0.into()));
    assert!(new(&String::from_utf8(search()).unwrap()));
    team.told("vault-index", None, &["sync"]);
    for arguments in [
        &["links", "Quince"][..],
        &["links", "--all", "--jsonl"],
        &["unresolved", "--headings", "--json"],
        &["orphans"],
        &["deadends"],
        &["tags", "--json"],
        &["graph", "--format", "json"],
        &["resolve", "Quince", "--json"],
        &["mentions", "Quince"],
    ] {
        let file = team.run("vault-index", None, arguments);
        let database = team.run("vault-index", Some(&team.address), arguments);
        assert_eq!(file.status.code(), database.status.code(), "{arguments:?} {database:?}");
        assert_eq!(String::from_utf8_lossy(&file.stdout), String::from_utf8_lossy(&database.stdout), "{arguments:?}");
    }
    let [file, database] = [None, Some(&*team.address)].map(|index| {
        let mut status: Value = serde_json::from_str(&team.told("vault-index", index, &["status", "--json"])).unwrap();
        let place = status["index"].take();
        assert_eq!(place.as_str().unwrap().ends_with("/postgres#demo"), index.is_some(), "{place}");
        assert!(status["index_bytes"].take().as_u64().unwrap() > 100_000);
        status["last_sync"].take();
        status
    });
    assert_eq!(file, database);

    // A rebuild begins again, also with another model.
    let report: Value = serde_json::from_str(&team.stdout("vault-index", &["rebuild", "--json"])).unwrap();
    assert!(report["embedded"].as_u64().unwrap() > 50 && report["pending"] == 0, "{report}");
    assert!(new(&String::from_utf8(search()).unwrap()));

    // Commands that need a file say so, and change nothing.
    for arguments in [&["doctor"][..], &["stop"], &["adopt", "/nowhere"], &["watch", "--print-service"]] {
        let error = team.refused("vault-index", arguments);
        assert!(error.contains("works with an index file") && error.contains("vault-index"), "{arguments:?}: {error}");
    }
    assert!(team.refused("vault-index", &["forget", "--yes"]).contains("--index-only"));
    assert!(team.refused("vault-index", &["forget", "--index-only"]).contains("confirmation"));
    let deleted = team.stdout("vault-index", &["forget", "--index-only", "--yes"]);
    assert!(deleted.contains("#demo"), "{deleted}");
    assert!(team.refused("vault-search", &["apple"]).contains("no vault \"demo\""));
    assert!(team.vault().join("Quince.md").exists() && !team.folder.path().join("postgres:").exists());
}

#[test]
fn a_check_finds_what_differs_from_the_vault_and_a_repair_keeps_the_vectors() {
    let Some(server) = Server::new() else { return };
    let mut team = Team::new(&server);
    assert!(team.refused("vault-index", &["check"]).contains("vault-index sync"));
    team.stdout("vault-index", &["sync"]);
    let search =
        |team: &Team| results(&team.told("vault-search", Some(&team.address), &["--json", "prune apple trees"]));
    let before = search(&team);
    let sound = team.stdout("vault-index", &["check"]);
    assert!(sound.starts_with("sound: ") && !sound.contains("no vector"), "{sound}");
    // A row of each kind is changed, as a restored part of a backup would be, in a note of its own.
    let note = |n: usize| format!("(SELECT id FROM vault_search.note ORDER BY id OFFSET {n} LIMIT 1)");
    let passages = |n: usize| format!("(SELECT id FROM vault_search.passage WHERE note = {})", note(n));
    let faults = [
        (format!("UPDATE vault_search.passage_text SET text = 'x' WHERE id IN {}", passages(0)), "passages"),
        (format!("DELETE FROM vault_search.posting WHERE field >= 5 AND holder IN {}", passages(1)), "words"),
        (format!("UPDATE vault_search.note SET title = 'x' WHERE id = {}", note(2)), "note"),
        (format!("DELETE FROM vault_search.name WHERE note = {}", note(3)), "names"),
        (format!("UPDATE vault_search.file SET hash = '\\x01' WHERE id = {}", note(4)), "has other content"),
        ("UPDATE vault_search.link SET target = NULL".to_owned(), "links"),
        ("DELETE FROM vault_search.property".to_owned(), "properties"),
        ("DELETE FROM vault_search.vocabulary WHERE word = 'apple'".to_owned(), "vocabulary"),
    ];
    for (sql, part) in &faults {
        server.run(sql);
        let output = team.run("vault-index", Some(&team.address), &["check"]);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.code() == Some(1) && said.contains(part), "{sql}: {output:?}");
    }
    // A reader may check, and not repair.
    server.run("CREATE ROLE ann LOGIN; DO $$ BEGIN EXECUTE format('GRANT %I TO ann', (SELECT reader FROM vault_search.vault)); END $$");
    let owner = std::mem::replace(&mut team.address, format!("postgres:{}", server.address("ann")));
    assert_eq!(team.run("vault-index", Some(&team.address), &["check"]).status.code(), Some(1));
    assert!(team.refused("vault-index", &["check", "--repair"]).contains("_writer TO ann"));
    team.address = owner;
    // The vectors are those from before, by which they can be told.
    server.run("UPDATE vault_search.embedding SET embedding = (SELECT embedding FROM vault_search.embedding ORDER BY id LIMIT 1)");
    let repaired = team.stdout("vault-index", &["check", "--repair"]);
    assert!(repaired.contains("repaired"), "{repaired}");
    assert!(team.stdout("vault-index", &["check"]).starts_with("sound: "));
    assert_ne!(search(&team), before);
    team.stdout("vault-index", &["rebuild"]);
    assert_eq!(search(&team), before);
}

/// The rows of a query that has one column of text, in an index file.
fn rows(file: &Path, sql: &str) -> Vec<String> {
    let file = rusqlite::Connection::open(file).unwrap();
    let mut statement = file.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| row.get(0)).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

#[test]
fn copies_embed_nothing_again_and_are_the_same_byte_for_byte() {
    let Some(server) = Server::new() else { return };
    let team = Team::new(&server);
    let [first, pulled] = ["first.db", "pulled.db"].map(|name| team.folder.path().join("files").join(name));
    team.told("vault-index", first.to_str(), &["sync"]);
    let push = ["push", "--json", "--file", first.to_str().unwrap()];
    let report: Value = serde_json::from_str(&team.stdout("vault-index", &push)).unwrap();
    assert!(report["added"].as_u64().unwrap() > 10 && report["pending"] == 0, "{report}");
    let pull = ["pull", "--json", "--file", pulled.to_str().unwrap()];
    let report: Value = serde_json::from_str(&team.stdout("vault-index", &pull)).unwrap();
    assert_eq!(report["pending"], 0);
    let search = |index: Option<&str>| results(&team.told("vault-search", index, &["--json", "prune apple trees"]));
    assert_eq!(search(first.to_str()), search(Some(&team.address)));
    for sql in [
        // Each vector with the checksum of its bytes.
        "SELECT hex(key) || ' ' || sum FROM embedding ORDER BY 1",
        "SELECT f.path || ':' || t.line || '-' || t.end_line || ' ' || t.headings || ' ' || t.text
         FROM passage_text t JOIN passage p ON p.id = t.id JOIN file f ON f.id = p.note ORDER BY 1",
        "SELECT s.path || ':' || l.line || ' ' || l.raw || ' ' || coalesce(t.path, '')
         FROM link l JOIN file s ON s.id = l.source LEFT JOIN file t ON t.id = l.target ORDER BY 1",
    ] {
        let found = rows(&first, sql);
        assert!(found.len() > 10, "{sql}");
        assert_eq!(found, rows(&pulled, sql), "{sql}");
    }
    let error = team.run("vault-index", None, &["push"]);
    assert!(String::from_utf8_lossy(&error.stderr).contains("--index postgres://"), "{error:?}");
}

#[test]
fn several_vaults_of_one_database_are_searched_together() {
    let Some(server) = Server::new() else { return };
    let team = Team::new(&server);
    let vaults = ["one", "two"].map(|name| team.folder.path().join(name));
    for vault in &vaults {
        copy(&team.vault(), vault);
        let name = vault.file_name().unwrap().to_str().unwrap();
        std::fs::write(vault.join("Own.md"), format!("# Quince of {name}\n\nMake jelly of the quince.")).unwrap();
        team.stdout("vault-index", &["sync", "--vault", vault.to_str().unwrap()]);
    }
    let all = std::env::join_paths(&vaults).unwrap();
    let search = |index: Option<&str>| {
        let output = team.command("vault-search", index, &["--json", "quince jelly"]).env("VAULT_DIR", &all).output();
        let answer: Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
        answer["results"].clone()
    };
    let found = search(Some(&team.address));
    assert_eq!(found, search(None));
    let of = |vault: &Path| found.as_array().unwrap().iter().any(|hit| hit["vault"] == vault.to_str().unwrap());
    assert!(of(&vaults[0]) && of(&vaults[1]), "{found}");
}

#[test]
fn a_killed_writer_is_continued_by_the_next_one() {
    let Some(server) = Server::new() else { return };
    let team = Team::new(&server);
    let started = std::time::Instant::now();
    team.stdout("vault-index", &["sync"]);
    let whole = started.elapsed();
    let (moments, mut killed) = (if is_long() { 50 } else { 6 }, 0);
    for moment in 0..moments {
        for n in 0..20 {
            let text =
                format!("# Bed {moment} {n}\n\nThe quince was pruned, see [[Bed {n}]].\n\n## More\n\nJelly {n}.\n");
            std::fs::write(team.vault().join(format!("Bed {moment} {n}.md")), text).unwrap();
        }
        let mut writer = team.command("vault-index", Some(&team.address), &["sync"]).spawn().unwrap();
        std::thread::sleep(whole * moment / moments);
        writer.kill().unwrap();
        killed += u32::from(!writer.wait().unwrap().success());
        // What is there can be searched.
        team.stdout("vault-search", &["--json", "prune apple trees"]);
    }
    assert!(killed > 0, "no sync was killed");
    let report: Value = serde_json::from_str(&team.stdout("vault-index", &["sync", "--json"])).unwrap();
    assert_eq!(report["pending"], 0, "{report}");
    assert!(team.stdout("vault-index", &["check"]).starts_with("sound: "));
    let count = |index: Option<&str>| team.told("vault-search", index, &["--count", "quince"]);
    team.told("vault-index", None, &["sync"]);
    assert_eq!(count(Some(&team.address)), count(None));
}

#[test]
fn a_watcher_keeps_a_database_up_to_date() {
    use std::io::{BufRead, BufReader};

    let Some(server) = Server::new() else { return };
    let team = Team::new(&server);
    team.stdout("vault-index", &["sync"]);
    let mut watcher = team
        .command("vault-index", Some(&team.address), &["watch", "--jsonl", "--debounce", "20"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watcher.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.next().unwrap().contains("started"));
    std::fs::write(team.vault().join("Quince.md"), "# Quince\n\nMake jelly of the quince.").unwrap();
    assert!(lines.any(|line| line.contains("synced") && line.contains("\"added\":1")));
    let found = team.stdout("vault-search", &["--json", "quince jelly"]);
    watcher.kill().unwrap();
    watcher.wait().unwrap();
    assert!(found.contains("Quince.md"), "{found}");
}

#[test]
fn rights_and_addresses() {
    let Some(server) = Server::new() else { return };
    let mut team = Team::new(&server);
    team.stdout("vault-index", &["sync", "--no-vectors"]);
    server.run("CREATE ROLE ann LOGIN; DO $$ BEGIN EXECUTE format('GRANT %I TO ann', (SELECT reader FROM vault_search.vault)); END $$");
    let owner = std::mem::replace(&mut team.address, format!("postgres:{}", server.address("ann")));
    assert!(team.stdout("vault-search", &["--mode", "lexical", "apple"]).contains("pple"));
    assert!(team.refused("vault-search", &["--wait", "5", "apple"]).contains("--wait works with an index file"));
    assert!(team.refused("vault-index", &["sync"]).contains("_writer TO ann"));
    assert!(team.refused("vault-index", &["rebuild"]).contains("_writer TO ann"));
    assert!(team.refused("vault-index", &["forget", "--index-only", "--yes"]).contains("only the owner"));
    // From the environment, for a vault of another name.
    let folder = owner.split_once("host=").unwrap().1.split(' ').next().unwrap();
    let mut command = team.command("vault-search", Some("postgres:#demo"), &["--mode", "lexical", "--files", "apple"]);
    command.env("PGHOST", folder).env("PGUSER", "ann").env("PGDATABASE", "postgres");
    assert!(command.output().unwrap().status.success());
    let error = team.run("vault-search", Some("postgres://ann:hunter2@127.0.0.1:1/d"), &["apple"]);
    let said = format!("{error:?}");
    assert!(said.contains("cannot be reached") && !said.contains("hunter2"), "{said}");
    let error = team.run("vault-search", Some("postgres://ann:hunter2@h/d?sslmode=verify-full"), &["apple"]);
    let said = format!("{error:?}");
    assert!(said.contains("sslrootcert") && !said.contains("hunter2"), "{said}");
}

/// Three vaults on three servers, by the configuration.
#[test]
fn vaults_are_spread_over_servers_and_the_others_answer_for_one_that_is_down() {
    let Some(mut servers) = (0..3).map(|_| Server::new()).collect::<Option<Vec<_>>>() else { return };
    let team = Team::new(&servers[0]);
    let names = ["one", "two", "three"];
    let vaults = names.map(|name| team.folder.path().join(name));
    let mut table = "[databases]\n".to_owned();
    for ((name, vault), server) in names.iter().zip(&vaults).zip(&servers) {
        copy(&team.vault(), vault);
        std::fs::write(vault.join("Own.md"), format!("# Quince of {name}\n\nMake jelly of the quince.")).unwrap();
        table.push_str(&format!("{name} = \"postgres:{}\"\n", server.address("postgres")));
    }
    let configuration = team.folder.path().join(".config/vault-index/config.toml");
    let all = std::env::join_paths(&vaults).unwrap();
    let run = |program: &str, arguments: &[&str]| {
        team.command(program, None, arguments).env("VAULT_DIR", &all).output().unwrap()
    };
    let json = |output: &Output| -> Value { serde_json::from_slice(&output.stdout).unwrap() };
    let search = ["--json", "quince jelly"];
    // The answers of index files first.
    let file = json(&run("vault-search", &search));
    std::fs::create_dir_all(configuration.parent().unwrap()).unwrap();
    std::fs::write(&configuration, &table).unwrap();
    for vault in &vaults {
        team.told("vault-index", None, &["sync", "--vault", vault.to_str().unwrap()]);
    }
    let whole = run("vault-search", &search);
    assert_eq!(json(&whole)["results"], file["results"], "{whole:?}");
    assert!(json(&whole).get("missing").is_none());
    servers.iter().for_each(|server| server.run("SELECT 1 / count(*) FROM vault_search.note"));
    // A folder that is a vault for no other reason than that a command runs in it.
    let mut nearby = team.command("vault-index", None, &["sync"]);
    let plain = team.folder.path().join("elsewhere/one");
    std::fs::create_dir_all(&plain).unwrap();
    let nearby = nearby.env_remove("VAULT_DIR").current_dir(&plain).output().unwrap();
    assert!(String::from_utf8_lossy(&nearby.stderr).contains("the vault must be named"), "{nearby:?}");

    // An owner has upgraded the tables before this program was.
    let version =
        |version: &str| servers[1].run(&format!("UPDATE vault_search.schema_version SET version = {version}"));
    version("version + 1");
    let output = run("vault-search", &search);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.success() && said.contains("two is missing: ") && said.contains("newer version"),
        "{output:?}"
    );
    assert_eq!(json(&output)["missing"], serde_json::json!([vaults[1]]));
    version("version - 1");

    let counted = || json(&run("vault-search", &["--count", "--json", "quince jelly"]))["count"].as_u64().unwrap();
    let all_count = counted();
    assert!(all_count > 2, "{all_count}");
    servers[1].kill();
    let output = run("vault-search", &search);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.contains("two is missing: ") && said.contains("reached"), "{output:?}");
    let answer = json(&output);
    assert_eq!(answer["missing"], serde_json::json!([vaults[1]]));
    let of = |vault: &Path| {
        let results = answer["results"].as_array().unwrap().iter();
        results.filter(|result| result["vault"] == vault.to_str().unwrap()).count()
    };
    assert!(of(&vaults[0]) > 0 && of(&vaults[1]) == 0 && of(&vaults[2]) > 0, "{answer}");
    assert_eq!(counted() * 3, all_count * 2);
    assert_eq!(run("vault-search", &["-tag:garden", "apple"]).status.code(), Some(0));
    assert_eq!(run("vault-search", &["tag:nothinghasthis"]).status.code(), Some(1));
    let queries = team.folder.path().join("queries");
    std::fs::write(&queries, "quince\napple\n").unwrap();
    let lines = run("vault-search", &["--jsonl", "--queries", queries.to_str().unwrap()]);
    let lines = String::from_utf8(lines.stdout).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.len() == 2 && lines.iter().all(|line| line["missing"] == answer["missing"]), "{lines:?}");
    // Alone, it is an error; so is a server without any.
    let alone = team.run("vault-search", None, &["--vault", vaults[1].to_str().unwrap(), "quince"]);
    assert!(alone.status.code() == Some(2) && String::from_utf8_lossy(&alone.stderr).contains("reached"), "{alone:?}");
    servers[0].kill();
    servers[2].kill();
    let none = run("vault-search", &search);
    assert!(none.status.code() == Some(2) && none.stdout.is_empty(), "{none:?}");
    // Links have an index file beside the database, and so has a search that names one.
    let one = vaults[0].to_str().unwrap();
    let tools = team.command("vault-tools", None, &["lint"]).env("VAULT_DIR", one).output().unwrap();
    assert!(tools.status.code().is_some_and(|code| code < 2), "{tools:?}");
    let named = team.folder.path().join("named.db");
    let of_file = team.run("vault-search", named.to_str(), &["--vault", one, "quince"]);
    assert!(of_file.status.success(), "{of_file:?}");
    std::fs::write(&configuration, "[databases]\none = 'postgres://ann:hunter2@h/d?sslmode=verify-full'").unwrap();
    let error = team.run("vault-search", None, &["--vault", one, "quince"]);
    let said = String::from_utf8_lossy(&error.stderr).into_owned();
    assert!(said.contains("config.toml") && said.contains("\"one\"") && !said.contains("hunter2"), "{said}");
}

/// Both silent servers hold a connection of the search before either is let go.
#[test]
fn databases_are_asked_at_once() {
    use std::io::{ErrorKind, Read};
    use std::net::{TcpListener, TcpStream};
    use std::time::{Duration, Instant};

    let Some(server) = Server::new() else { return };
    let team = Team::new(&server);
    let vaults = ["one", "two", "three"].map(|name| team.folder.path().join(name));
    vaults.iter().for_each(|vault| copy(&team.vault(), vault));
    let all = std::env::join_paths(&vaults).unwrap();
    team.stdout("vault-index", &["sync", "--vault", vaults[1].to_str().unwrap()]);
    let queries = team.folder.path().join("queries");
    std::fs::write(&queries, "apple\n").unwrap();
    for arguments in [
        &["--json", "prune apple trees"][..],
        &["--json", "--count", "apple"],
        &["--jsonl", "--queries", queries.to_str().unwrap()],
    ] {
        let silent = [0, 2].map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
        let address = |listener: &TcpListener| {
            let port = listener.local_addr().unwrap().port();
            format!("postgres://ann@127.0.0.1:{port}/notes?connect_timeout=600")
        };
        let (one, three) = (address(&silent[0]), address(&silent[1]));
        let configuration = team.folder.path().join(".config/vault-index/config.toml");
        std::fs::create_dir_all(configuration.parent().unwrap()).unwrap();
        let table = format!("[databases]\none = \"{one}\"\ntwo = \"{}\"\nthree = \"{three}\"\n", team.address);
        std::fs::write(&configuration, table).unwrap();
        let mut search = team.command("vault-search", None, arguments);
        let search = search.env("VAULT_DIR", &all).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let until = Instant::now() + Duration::from_secs(60);
        let connected = silent.each_ref().map(|listener| {
            listener.set_nonblocking(true).unwrap();
            loop {
                match listener.accept() {
                    Ok((client, _)) => break client,
                    Err(error) => assert!(error.kind() == ErrorKind::WouldBlock, "{error}"),
                }
                assert!(Instant::now() < until, "the second one waits for the first");
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        // Each waits for an answer to its first message.
        let is_waiting = |mut client: &TcpStream| {
            client.set_nonblocking(false).unwrap();
            client.read_exact(&mut [0; 8]).unwrap();
            client.set_nonblocking(true).unwrap();
            client.read(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
        };
        assert!(connected.iter().all(is_waiting));
        drop(silent);
        connected.into_iter().rev().for_each(drop);
        let output = search.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        let place = |name: &str| said.find(&format!("{name} is missing: ")).unwrap_or_else(|| panic!("{name}: {said}"));
        assert!(place("/one") < place("/three") && !said.contains("/two is missing"), "{said}");
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(answer["missing"], serde_json::json!([vaults[0], vaults[2]]));
        assert!(
            answer["count"].as_u64().is_some_and(|count| count > 0) || answer["results"][0].is_object(),
            "{answer}"
        );
    }
}

/// As a program of another version sees them.
#[test]
fn tables_of_another_version_are_refused_and_left_as_they_are() {
    let Some(server) = Server::new() else { return };
    let team = Team::new(&server);
    team.stdout("vault-index", &["sync"]);
    team.told("vault-index", None, &["sync"]);
    let pulled = team.folder.path().join("pulled.db");
    // Newer programs print a random key.
    let content = || -> Vec<String> {
        let dump = String::from_utf8(server.output("pg_dump", &[])).unwrap();
        dump.lines().filter(|line| !line.contains("restrict ")).map(str::to_owned).collect()
    };
    for (version, says) in [("version + 1", "use a newer version of this program"), ("0", "wait until the owner")] {
        server.run(&format!("UPDATE vault_search.schema_version SET version = {version}"));
        std::fs::write(team.vault().join("Quince.md"), "# Quince\n\nMake jelly of the quince.").unwrap();
        let before = content();
        for (program, arguments) in [
            ("vault-search", &["apple"][..]),
            ("vault-search", &["--count", "apple"]),
            ("vault-index", &["sync"]),
            ("vault-index", &["sync", "--no-vectors"]),
            ("vault-index", &["watch"]),
            ("vault-index", &["status"]),
            ("vault-index", &["links", "Quince"]),
            ("vault-index", &["check"]),
            ("vault-index", &["check", "--repair"]),
            ("vault-index", &["rebuild"]),
            ("vault-index", &["push"]),
            ("vault-index", &["pull", "--file", pulled.to_str().unwrap()]),
            ("vault-index", &["forget", "--index-only", "--yes"]),
        ] {
            let said = team.refused(program, arguments);
            assert!(said.contains(says), "{arguments:?}: {said}");
        }
        assert!(content() == before, "the database has changed");
        assert!(!pulled.exists());
    }
    server.run("UPDATE vault_search.schema_version SET version = 1");
    team.stdout("vault-index", &["sync"]);
    assert!(team.stdout("vault-search", &["quince jelly"]).contains("Quince"));
}

#[test]
fn a_replica_answers_searches_and_refuses_to_be_written() {
    use std::time::{Duration, Instant};

    let Some(mut server) = Server::new() else { return };
    let mut team = Team::new(&server);
    team.stdout("vault-index", &["sync"]);
    let replica = server.replica();
    let (primary, read) = (team.address.clone(), format!("postgres:{}", replica.address("postgres")));
    let search = |address: &str| team.told("vault-search", Some(address), &["--json", "prune apple trees"]);
    assert_eq!(results(&search(&primary)), results(&search(&read)));
    for arguments in [
        &["sync"][..],
        &["sync", "--no-vectors"],
        &["rebuild"],
        &["check", "--repair"],
        &["forget", "--index-only", "--yes"],
    ] {
        std::fs::write(team.vault().join("Quince.md"), "# Quince\n\nMake jelly of the quince.").unwrap();
        let output = team.run("vault-index", Some(&read), arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains("read-only"), "{arguments:?}: {output:?}");
    }
    // It follows the primary server.
    team.stdout("vault-index", &["sync"]);
    let until = Instant::now() + Duration::from_secs(60);
    while !team.told("vault-search", Some(&read), &["--json", "quince jelly"]).contains("Quince.md") {
        assert!(Instant::now() < until, "the replica does not follow");
    }
    assert_eq!(
        team.told("vault-index", Some(&read), &["links", "Quince"]),
        team.stdout("vault-index", &["links", "Quince"])
    );
    // An address with both goes on when the first is down.
    server.kill();
    let folder = |address: &str| address.split_once("host=").unwrap().1.split(' ').next().unwrap().to_owned();
    team.address = format!("postgres:host={},{} user=postgres dbname=postgres", folder(&primary), folder(&read));
    assert!(team.stdout("vault-search", &["quince jelly"]).contains("Quince"));
}

#[test]
fn neither_the_database_nor_a_folder_nearby_decides_what_is_written_where() {
    let Some(server) = Server::new() else { return };
    let team = Team::new(&server);
    let said = |command: &mut Command| {
        let output = command.output().unwrap();
        assert!(!output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let other = team.folder.path().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("a.md"), "another folder\n").unwrap();
    let sync = || team.command("vault-index", Some(&team.address), &["sync"]);
    let nearby = said(sync().env_remove("VAULT_DIR").current_dir(&other));
    assert!(nearby.contains("the vault must be named"), "{nearby}");
    let remote = said(sync().env("VAULT_MODEL", "ollama:m"));
    assert!(remote.contains("is not used with an index in a database"), "{remote}");
    team.stdout("vault-index", &["sync"]);
    // Results come from the database: a reader's folder need not have the notes.
    let mut search = team.command("vault-search", Some(&format!("{}#demo", team.address)), &["--files", "apple"]);
    let found = search.env("VAULT_DIR", &other).output().unwrap();
    assert!(found.status.success() && !found.stdout.is_empty(), "{found:?}");
    // Whoever may write the index would get the queries of all readers.
    server.run("UPDATE vault_search.meta SET value = 'openai:m' WHERE key = 'model'");
    let mut search = team.command("vault-search", Some(&team.address), &["apple"]);
    let remote = said(search.env_remove("VAULT_MODEL").env("VAULT_API_KEY", "k"));
    assert!(remote.contains("`openai:m` is not used"), "{remote}");
}
