//! The command with several vaults: paths begin with the vault's name, a change stays in one vault.

use serde_json::{Value, json};

use crate::command::Shell;

/// Two vaults inside the folder of a shell.
fn shell() -> Shell {
    Shell::new(
        "//- Home/Garden.md\n# Garden\n\nPrune the apple tree.\n//- Work/Garden.md\n# Garden\n\nThe office plants.\n\
         //- Work/Log.md\n- [[Garden]]\n",
    )
}

const BOTH: [&str; 4] = ["--vault", "Home", "--vault", "Work"];

fn with_both<'a>(args: &[&'a str]) -> Vec<&'a str> {
    args.iter().copied().chain(BOTH).collect()
}

#[test]
fn a_rename_stays_in_its_vault_and_is_undone_there() {
    let shell = shell();
    let args = r#"{"path": "Work/Garden.md", "new_path": "Work/Plants.md"}"#;
    // The preview says which vault it is of, and the way back where it leads.
    let preview = shell.done(&with_both(&["call", "rename_note", args, "--dry-run"]));
    assert!(preview.starts_with("in the vault Work:\nin all: rename 1 file, modify 1 file"), "{preview}");
    let ran = shell.run(&with_both(&["call", "rename_note", args, "--yes"]));
    let read_log = with_both(&["call", "read_note", r#"{"path": "Work/Log.md"}"#, "--json"]);
    let record: Value = serde_json::from_str(&shell.done(&read_log)).unwrap();
    assert_eq!((&record["vault"], &record["args"]["path"]), (&json!("Work"), &json!("Log.md")));
    let undo =
        format!("vault-tools undo --vault {:?} reverts it", shell.vault.root().canonicalize().unwrap().join("Work"));
    assert!(ran.err.contains(&undo), "{}", ran.err);
    let output: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&output["new_path"], &output["notes_updated"]), (&json!("Work/Plants.md"), &json!(["Work/Log.md"])));
    let read = |path: &str| std::fs::read_to_string(shell.vault.root().join(path)).unwrap();
    assert_eq!(read("Work/Log.md"), "- [[Plants]]\n");
    assert!(read("Home/Garden.md").contains("apple"));
    assert_eq!(shell.run(&with_both(&["undo", "--yes"])).code, 2);
    assert!(shell.done(&["undo", "--list", "--vault", "Home"]).is_empty());
    shell.done(&["undo", "--yes", "--vault", "Work"]);
    assert_eq!(read("Work/Log.md"), "- [[Garden]]\n");
}

#[test]
fn settings_can_be_of_one_vault() {
    let shell = shell();
    let settings = "allowed_tools = [\"read_note\"]\n[vault.work]\ndenied_paths = [\"Garden.md\"]\nallowed_tools = [\"get_note_metadata\"]\n";
    shell.configure("tools.toml", settings);
    for (tool, path, code) in [
        ("read_note", "Home/Garden.md", 0),
        ("read_note", "Work/Garden.md", 3),
        ("read_note", "Work/Log.md", 0),
        ("get_note_metadata", "Work/Log.md", 0),
        ("get_note_metadata", "Home/Garden.md", 3),
    ] {
        let ran = shell.run(&with_both(&["call", tool, &format!(r#"{{"path": "{path}"}}"#)]));
        assert_eq!(ran.code, code, "{tool} {path}: {}", ran.err);
    }
}

#[test]
fn a_folder_counts_once_and_none_lies_in_another() {
    let shell = shell();
    let read = ["call", "read_note", r#"{"path": "Garden.md"}"#, "--vault", "Home", "--vault", "./Home"];
    assert!(shell.done(&read).contains("apple"));
    std::fs::create_dir(shell.vault.root().join("Home/Old")).unwrap();
    let ran = shell.run(&["call", "get_random_note", "{}", "--vault", "Home/Old", "--vault", "Home"]);
    assert!(ran.code == 2 && ran.err.contains("the vault Old is inside the vault Home"), "{}", ran.err);
}

#[test]
fn a_search_that_names_no_vault_is_of_all() {
    let shell = shell();
    let found: Value =
        serde_json::from_str(&shell.done(&with_both(&["call", "search_notes", r#"{"query": "garden"}"#]))).unwrap();
    let mut paths: Vec<&str> = found.as_array().unwrap().iter().map(|note| note["path"].as_str().unwrap()).collect();
    paths.sort_unstable();
    assert_eq!(paths, ["Home/Garden.md", "Work/Garden.md", "Work/Log.md"]);
    let ran = shell.run(&with_both(&["call", "read_note", r#"{"path": "Garden.md"}"#]));
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("begins with no vault's name") && ran.err.contains("Home, Work"), "{}", ran.err);
    let ran = shell.run(&with_both(&["call", "read_note", r#"{"path": "Work/Gardn.md"}"#]));
    assert!(ran.err.contains("in the vault Work: Note not found: Gardn.md"), "{}", ran.err);
    let ran = shell.run(&with_both(&["call", "search_notes", r#"{"query": "offise"}"#]));
    assert!(ran.err.contains("note: Work: searched for office"), "{}", ran.err);
}
