//! What `mcp doctor` finds.

use std::net::TcpListener;
use std::process::Output;

use serde_json::{Value, json};
use vault_index::lock::lock_file;

use crate::stdio::{Era, Place};

fn doctor(place: &Place, args: &[&str]) -> Output {
    place.command(&[&["mcp", "doctor"], args].concat()).output().unwrap()
}

/// The one fault that is found, as it is printed.
#[track_caller]
fn fault(place: &Place, args: &[&str]) -> String {
    let output = doctor(place, args);
    let text = String::from_utf8(output.stdout).unwrap();
    let faults: Vec<&str> = text.lines().filter(|line| line.starts_with("fault: ")).collect();
    assert!(output.status.code() == Some(1) && faults.len() == 1, "{text}{}", String::from_utf8_lossy(&output.stderr));
    faults[0].to_owned()
}

fn install(place: &Place, client: &str) {
    let output = place.command(&["mcp", "install", client]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a_server_that_works_is_well() {
    let place = Place::new("//- a.md\nx\n//- b.md\ny\n");
    let output = doctor(&place, &["--json"]);
    assert!(output.status.success(), "{output:?}");
    let checks: Value = serde_json::from_slice(&output.stdout).unwrap();
    let messages: Vec<&str> =
        checks.as_array().unwrap().iter().map(|check| check["message"].as_str().unwrap()).collect();
    assert!(messages[0].starts_with("2 notes") && messages[1].contains("with 18 tools"), "{messages:?}");
    install(&place, "codex");
    install(&place, "zed");
    let output = doctor(&place, &[]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && text.contains("ok: Codex CLI: ") && text.contains("ok: Zed: "), "{text}");
    assert!(doctor(&place, &["zed"]).status.success());
}

#[test]
fn a_vault_that_is_gone_or_empty() {
    let place = Place::new("//- a.md\nx\n");
    install(&place, "zed");
    let nowhere = fault(&place, &["--vault", "nowhere"]);
    assert!(nowhere.contains("nowhere: there is no such folder"), "{nowhere}");
    std::fs::create_dir(place.home().join("empty")).unwrap();
    let empty = place.home().join("empty").display().to_string();
    assert!(fault(&Place::new(""), &["--vault", &empty]).contains("holds no notes"));
    // A client's own server says it too.
    std::fs::remove_dir_all(place.vault()).unwrap();
    let output = String::from_utf8(doctor(&place, &["zed"]).stdout).unwrap();
    assert!(output.contains("fault: the vault: ") && output.contains("fault: Zed: it ended: error: "), "{output}");
}

#[test]
fn no_vault_at_all() {
    let place = Place::new("");
    let output = place.command(&["mcp", "doctor"]).env_remove("VAULT_DIR").current_dir(place.home()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.code() == Some(1) && text.contains("home folder is not taken as a vault"), "{text}");
}

#[test]
fn a_port_in_use() {
    let place = Place::new("//- a.md\nx\n");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let fault = fault(&place, &["--http", &address]);
    assert!(fault.contains(&address) && fault.contains("another program may listen there"), "{fault}");
    drop(taken);
    assert!(doctor(&place, &["--http", "127.0.0.1:0"]).status.success());
}

#[test]
fn an_index_that_is_locked_and_by_whom() {
    let place = Place::new("//- a.md\nx\n");
    let index = place.home().join("index.db");
    let args = ["--index", index.to_str().unwrap()];
    assert!(doctor(&place, &args).status.success());
    let lock = lock_file(&place.home().join("index.db.lock"), None, None).unwrap().unwrap();
    let fault = fault(&place, &args);
    assert!(fault.contains(&format!("the index is held by process {}", std::process::id())), "{fault}");
    drop(lock);
    // A server that watches holds nothing that another needs.
    let mut server = place.client(Era::Old("2025-11-25"), &args);
    server.done("search_notes", json!({ "query": "x" }));
    assert!(doctor(&place, &args).status.success());
}

#[test]
fn an_index_that_is_damaged() {
    let place = Place::new("//- a.md\nx\n");
    let index = place.home().join("index.db");
    std::fs::write(&index, "no index").unwrap();
    let fault = fault(&place, &["--index", index.to_str().unwrap()]);
    assert!(fault.contains("index.db"), "{fault}");
}

#[test]
fn a_configuration_that_points_nowhere() {
    let place = Place::new("//- a.md\nx\n");
    let file = place.home().join(".cursor/mcp.json");
    assert!(fault(&place, &["cursor"]).contains("there is no server `vault` in"));
    install(&place, "cursor");
    let well = std::fs::read_to_string(&file).unwrap();
    let program = crate::stdio::PROGRAM;
    for (text, said) in [
        (well.replace(program, "/gone/vault-agent"), "/gone/vault-agent cannot be started"),
        (well.replace("\"mcp\"", "\"mcp\", \"--no-such-option\""), "--no-such-option"),
        (well.replace("\"type\"", "\"disabled\": true, \"type\""), "is turned off"),
        (well.replace('}', ""), "cannot be parsed"),
    ] {
        std::fs::write(&file, &text).unwrap();
        let fault = fault(&place, &["cursor"]);
        assert!(fault.contains("Cursor") && fault.contains(said), "{fault}");
    }
}
