//! `forget` and `adopt`: all that is stored about a vault is deleted or taken over, and nothing of another vault.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::command::Shell;

/// A shell with the vaults `one` and `two`, each with a transaction and an index, and the folder of a vault.
fn two_vaults() -> (Shell, impl Fn(&str) -> String) {
    let shell = Shell::new("//- one/.obsidian/app.json\n{}\n//- one/a.md\nx\n//- two/a.md\nx\n");
    let root = shell.vault.root().canonicalize().unwrap();
    let at = move |folder: &str| root.join(folder).to_string_lossy().into_owned();
    for vault in [at("one"), at("two")] {
        shell.done(&["call", "search_notes", r#"{"query": "x"}"#, "--vault", &vault]);
        shell.done(&["append", "a", "more", "--yes", "--vault", &vault]);
    }
    (shell, at)
}

/// Writes a file of `vault-agent`.
fn agent_file(shell: &Shell, name: &str, content: &Value) -> PathBuf {
    let file = shell.home.path().join("vault-agent").join(name);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, content.to_string()).unwrap();
    file
}

fn transactions(shell: &Shell, vault: &str) -> usize {
    shell.done(&["undo", "--list", "--vault", vault]).lines().count()
}

fn indexes(shell: &Shell) -> usize {
    let folder = std::fs::read_dir(shell.home.path().join("vault-index")).unwrap();
    folder.flatten().filter(|entry| entry.path().join("index.db").exists()).count()
}

#[test]
fn all_that_is_stored_about_a_vault_is_deleted_and_nothing_of_another() {
    let (shell, at) = two_vaults();
    let (one, two) = (at("one"), at("two"));
    let gone = [
        agent_file(&shell, "sessions/a1.json", &json!({ "id": "a1", "vaults": [two, one] })),
        agent_file(&shell, "sessions/a1.jsonl", &json!({})),
        agent_file(&shell, "sessions/a1.lock", &json!({})),
        agent_file(&shell, "approvals/K7Q2MX.json", &json!({ "vault": one })),
    ];
    let stays = [
        agent_file(&shell, "sessions/b2.json", &json!({ "id": "b2", "vaults": [two] })),
        agent_file(&shell, "sessions/b2.jsonl", &json!({})),
        agent_file(&shell, "approvals/ABCDEF.json", &json!({ "vault": two })),
    ];
    let refused = shell.run(&["forget", "--vault", &one]);
    assert!(refused.code == 3 && gone.iter().all(|file| file.exists()), "{}", refused.err);
    let deleted = shell.done(&["forget", "--vault", &one, "--yes"]);
    for file in &gone {
        assert!(!file.exists() && deleted.contains(file.to_str().unwrap()), "{deleted}");
    }
    assert!(deleted.contains("journal.db") && deleted.contains("index.db"), "{deleted}");
    assert!(stays.iter().all(|file| file.exists()));
    assert_eq!((transactions(&shell, &one), transactions(&shell, &two), indexes(&shell)), (0, 1, 1));
    assert_eq!(std::fs::read_to_string(format!("{one}/a.md")).unwrap(), "x\n\nmore\n");
    assert!(shell.done(&["forget", "--vault", &one, "--yes"]).starts_with("nothing is stored"));
}

#[test]
fn nothing_is_deleted_while_a_conversation_about_the_vault_is_open() {
    let (shell, at) = two_vaults();
    let one = at("one");
    agent_file(&shell, "sessions/a1.json", &json!({ "id": "a1", "vaults": [one] }));
    let lock = std::fs::File::open(agent_file(&shell, "sessions/a1.lock", &json!({}))).unwrap();
    lock.lock().unwrap();
    let refused = shell.run(&["forget", "--vault", &one, "--yes"]);
    assert!(refused.code == 3 && refused.err.contains("open in another program"), "{}", refused.err);
    assert_eq!((transactions(&shell, &one), indexes(&shell)), (1, 2));
    drop(lock);
    shell.done(&["forget", "--vault", &one, "--yes"]);
    assert_eq!(indexes(&shell), 1);
}

#[test]
fn an_index_can_be_deleted_alone() {
    let (shell, at) = two_vaults();
    let one = at("one");
    let session = agent_file(&shell, "sessions/a1.json", &json!({ "id": "a1", "vaults": [one] }));
    assert_eq!(shell.run(&["forget", "--index-only", "--vault", &one]).code, 3);
    let deleted = shell.done(&["forget", "--index-only", "--vault", &one, "--yes"]);
    assert!(deleted.contains("index.db") && !deleted.contains("journal"), "{deleted}");
    assert_eq!((transactions(&shell, &one), indexes(&shell)), (1, 1));
    assert!(session.exists());
}

#[test]
fn a_vault_that_was_searched_in_its_new_place_still_gets_its_history() {
    let (shell, at) = two_vaults();
    let (one, moved) = (at("one"), at("moved"));
    let session = agent_file(&shell, "sessions/a1.json", &json!({ "id": "a1", "title": "t", "vaults": [one] }));
    std::fs::rename(&one, &moved).unwrap();
    shell.done(&["call", "search_notes", r#"{"query": "x"}"#, "--vault", &moved]);
    // A log of the calls in the new place is a history of its own.
    let refused = shell.run(&["adopt", &one, "--vault", &moved]);
    assert!(refused.code == 3 && refused.err.contains("a history of its own"), "{}", refused.err);
    std::fs::remove_file(state_of(&shell, "moved").join("log.jsonl")).unwrap();
    let adopted = shell.done(&["adopt", &one, "--vault", &moved]);
    assert!(adopted.contains("journal") && adopted.contains("conversations"), "{adopted}");
    assert_eq!((transactions(&shell, &moved), indexes(&shell)), (1, 3));
    let info: Value = serde_json::from_slice(&std::fs::read(&session).unwrap()).unwrap();
    assert_eq!(info, json!({ "id": "a1", "title": "t", "vaults": [moved] }));
    shell.done(&["undo", "--yes", "--vault", &moved]);
    assert_eq!(std::fs::read_to_string(format!("{moved}/a.md")).unwrap(), "x\n");
}

/// The folder of a vault's journal.
fn state_of(shell: &Shell, name: &str) -> PathBuf {
    let mut folders = std::fs::read_dir(shell.home.path().join("vault-tools")).unwrap().flatten();
    let is_its = |entry: &std::fs::DirEntry| entry.file_name().to_string_lossy().starts_with(&format!("{name}-"));
    folders.find(is_its).unwrap().path()
}
