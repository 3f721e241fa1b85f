//! The flags of `vault-index`.

use crate::harness::{Place, Program, Walk, product, walk};
use crate::write_vaults;

pub const PROGRAM: Program = Program {
    name: "vault-index",
    path: env!("CARGO_BIN_EXE_vault-index"),
    // Nothing answers there.
    environment: &[
        ("VAULT_MODEL", "hashed"),
        ("VAULT_BASE_URL", "http://127.0.0.1:1/v1"),
        ("HF_ENDPOINT", "http://127.0.0.1:1"),
    ],
    prepare,
};

/// Nothing answers there either.
const URL: &str = "http://127.0.0.1:2/v1";

/// A vault whose notes were not changed a moment ago.
const OLD: &str = concat!("'", env!("CARGO_MANIFEST_DIR"), "/../../testdata/plans/006-captured-output/input'");

fn prepare(state: &str, place: &Place) {
    write_vaults(place);
    match state {
        "moved" => {
            place.done("sync --vault ../other");
            std::fs::rename(place.root().join("other"), place.root().join("moved")).unwrap();
            return;
        }
        // A note that was changed without a trace in its stat: the index is changed in place of the note.
        "same-stat" => {
            place.done(&format!("sync --vault {OLD}"));
            database(place).execute("UPDATE file SET hash = randomblob(length(hash))", []).unwrap();
            return;
        }
        "remote" => {
            place.done("sync");
            database(place).execute("UPDATE meta SET value = 'openai:x' WHERE key = 'model'", []).unwrap();
            return;
        }
        // What `forget` deletes beside an index.
        "journal" => {
            let mut command = place.command(env!("CARGO_BIN_EXE_vault-tools"));
            assert!(command.args(["append", "Soil", "text", "--yes"]).output().unwrap().status.success());
        }
        "warned" => (0..5).for_each(|n| place.write(&format!("vault/Bad{n}.md"), "---\ntags: [open\n---\nBad\n")),
        _ => {}
    }
    place.done("sync");
    place.write(
        "vault/New.md",
        "---\ntags: [new]\n---\nUnseen words about [[Soil]], [[Soil#Gone]] and [[Nothing]]. Soil, the apple tree.\n",
    );
    place.write("vault/Deadend.md", "No links.\n");
}

/// The index of the vault.
fn database(place: &Place) -> rusqlite::Connection {
    let folder = std::fs::read_dir(place.root().join("home/cache/vault-index")).unwrap().next().unwrap().unwrap();
    rusqlite::Connection::open(folder.path().join("index.db")).unwrap()
}

#[test]
fn each_flag_has_an_effect() {
    let lists = ["links Roses", "backlinks Soil", "mentions Soil", "unresolved", "orphans", "deadends", "tags"];
    // A server on this machine passes the texts on.
    let away = "--model ollama:x:cloud --index ../remote.db";
    let [remote_sync, remote_rebuild] = ["sync", "rebuild"].map(|command| format!("{command} {away}"));
    let on_index = ["sync", "rebuild", "links Roses", "graph", "resolve Long#Second"];
    let remote =
        on_index.iter().chain(&lists[1..]).map(|command| format!("{command} --model openai:x --index ../remote.db"));
    let remote: Vec<String> = remote.collect();
    let remote: Vec<&str> = remote.iter().map(String::as_str).collect();
    let same_stat = format!("@same-stat sync --vault {OLD}");
    let base_url = format!("--base-url {URL}");
    let rows = [
        product(&lists, &["--json", "--jsonl", "--schema"]),
        product(&["models add leaf-ir"], &["--yes", "--from ../other"]),
        product(&["models add leaf-ir --yes"], &["--hub http://127.0.0.1:2"]),
        product(&["links New"], &["--no-sync"]),
        product(&lists[1..], &["--no-sync"]),
        product(&["list", "models", "doctor"], &["--json", "--jsonl", "--schema"]),
        product(&["sync", "rebuild", "status", "check", "resolve Soil"], &["--json", "--schema"]),
        product(&["@warned sync", "@warned rebuild", "@warned status"], &["--warnings"]),
        product(&[&same_stat], &["--full"]),
        product(&["sync"], &["--no-vectors"]),
        product(&[&remote_sync, &remote_rebuild, "forget"], &["--yes"]),
        product(&["@journal forget --yes"], &["--index-only"]),
        product(&["check"], &["--repair"]),
        product(&["links Roses", "backlinks Soil"], &["--depth 2"]),
        product(&["links"], &["--all"]),
        product(&["unresolved"], &["--headings"]),
        product(&["graph"], &["--format dot", "--output ../graph.json", "--no-sync", "--schema"]),
        product(&["resolve New"], &["--no-sync"]),
        product(&["resolve '[[#Second]]'"], &["--from Garden/Roses.md"]),
        product(&["%until=(|synced watch"], &["--jsonl", "--print-service", "--schema"]),
        product(&["%until=(|synced %write=vault/Written.md:1 %least=4000 watch"], &["--debounce 4000"]),
        product(&remote, &[&base_url]),
        product(&["@remote check --repair --model openai:x"], &[&base_url]),
        product(&["%until=127.0.0.1 watch --model openai:x --index ../remote.db"], &[&base_url]),
    ]
    .concat();
    let shared = &[
        ("--vault", "../other"),
        ("--index", "../other.db"),
        ("--model", "minilm"),
        ("--exclude", "'*.md'"),
        ("--base-url", URL),
    ];
    let plain = &[
        "sync",
        "%until=(|synced watch",
        "stop",
        "status",
        "doctor",
        "list",
        "links Roses",
        "backlinks Soil",
        "mentions Soil",
        "unresolved",
        "orphans",
        "deadends",
        "tags",
        "graph",
        "resolve Long#Second",
        "models",
        "models add leaf-ir",
        "models remove leaf-ir",
        "check",
        "rebuild",
        "forget --yes",
        "@moved adopt ../other",
        "completions bash",
        "man",
    ];
    walk(PROGRAM, &Walk { rows: &rows, shared, plain });
}
