//! The command `vault-tools` where its journal is damaged, interrupted, or cannot be written.

use serde_json::{Value, json};

use crate::command::Shell;

#[test]
fn a_damaged_journal_is_told_of_and_never_cut_off() {
    let shell = Shell::new("//- a.md\n0\n");
    for number in 1..=3 {
        let args = json!({ "path": format!("n{number}.md"), "content": "x" }).to_string();
        shell.done(&["call", "write_note", &args, "--yes"]);
    }
    let file = shell.state().join("journal.db");
    let mut bytes = std::fs::read(&file).unwrap();
    // Rows of a page are filled in from its end.
    let label = bytes.windows(10).rposition(|window| window == b"write_note").unwrap();
    bytes[label] = b'W';
    std::fs::write(&file, &bytes).unwrap();
    let listed = shell.run(&["undo", "--list", "--json"]);
    assert!(listed.err.contains("damaged"), "{}", listed.err);
    let runs: Value = serde_json::from_str(&listed.out).unwrap();
    assert_eq!((runs.as_array().unwrap().len(), &runs[2]["status"]), (3, &json!("damaged")));
    shell.done(&["call", "write_note", r#"{"path":"n4.md","content":"x"}"#, "--yes"]);
    let listed: Value = serde_json::from_str(&shell.run(&["undo", "--list", "--json"]).out).unwrap();
    assert_eq!((listed.as_array().unwrap().len(), &listed[3]["status"]), (4, &json!("damaged")));
    assert_eq!(shell.run(&["undo", "1", "--yes"]).code, 2);
    shell.done(&["undo", "3", "--yes"]);
}

#[test]
fn an_undo_names_that_the_journal_lost_transactions() {
    let shell = Shell::new("//- a.md\n0\n");
    for number in 1..=2 {
        let args = json!({ "path": format!("n{number}.md"), "content": "x" }).to_string();
        shell.done(&["call", "write_note", &args, "--yes"]);
    }
    let file = shell.state().join("journal.db");
    let mut bytes = std::fs::read(&file).unwrap();
    let mut labels: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(b"write_note")).collect();
    // The last is that of the first transaction. No text in UTF-8, so that the row of the second cannot be read.
    labels.pop();
    labels.into_iter().for_each(|at| bytes[at] = 0xff);
    std::fs::write(&file, &bytes).unwrap();
    assert!(shell.run(&["undo", "--list"]).err.contains("transactions that it lost"));
    let ran = shell.run(&["undo", "--yes"]);
    assert!(ran.code == 0 && ran.err.contains("lost: transactions that the journal no longer has"), "{}", ran.err);
    assert!(!shell.vault.root().join("n1.md").exists() && shell.vault.root().join("n2.md").exists());
}

#[test]
fn redo_says_that_there_is_nothing_to_redo() {
    let ran = Shell::new("//- a.md\n0\n").run(&["redo", "--yes"]);
    assert!(ran.code == 2 && ran.err.contains("there is nothing to redo"), "{}", ran.err);
}

#[test]
fn the_usage_of_undo_shows_what_goes_together() {
    let ran = Shell::new("//- a.md\n0\n").run(&["undo", "--recover", "--dry-run"]);
    assert!(ran.code == 2 && ran.err.contains("undo [OPTIONS] <--recover|--keep>"), "{}", ran.err);
    assert!(!ran.err.contains("--recover [TRANSACTION]"), "{}", ran.err);
}

#[test]
fn a_folder_in_the_place_of_the_journal_is_named() {
    for name in ["journal.db", "journal.db-journal", "journal"] {
        let shell = Shell::new("//- a.md\n0\n");
        let write = ["call", "write_note", r#"{"path":"b.md","content":"x"}"#, "--yes"];
        shell.done(&write);
        let path = shell.state().join(name);
        let _ = std::fs::remove_file(&path);
        std::fs::create_dir(&path).unwrap();
        let ran = shell.run(&["undo", "--yes"]);
        assert!(ran.code == 2 && ran.err.contains("move the folder away"), "{name}: {}", ran.err);
        assert!(ran.err.contains(path.to_str().unwrap()) && !ran.err.contains("room"), "{name}: {}", ran.err);
    }
}

#[test]
fn a_plan_is_not_blamed_for_a_state_folder_that_cannot_be_made() {
    let shell = Shell::new("//- a.md\n0\n");
    shell.done(&["call", "write_note", r#"{"path":"b.md","content":"x"}"#, "--yes"]);
    let state = shell.state();
    std::fs::remove_dir_all(&state).unwrap();
    std::fs::write(&state, "").unwrap();
    let plan = json!({
        "version": "1.0", "goal": "a note", "riskLevel": "writes",
        "steps": [{ "id": "w", "tool": "vault.createFile", "args": { "path": "c.md", "content": "x" } }]
    });
    let ran = shell.run_with(&["plan", "run", "-", "--yes"], &plan.to_string());
    assert!(ran.code == 2 && ran.err.contains("move the file away") && !ran.err.contains("step w"), "{}", ran.err);
    assert!(!shell.vault.root().join("c.md").exists());
}

/// What the record of an interrupted transaction no longer tells stays as it is, and does not count as rolled back.
#[test]
fn a_recovery_from_a_damaged_record_is_no_success() {
    for json in [false, true] {
        let shell = Shell::new("//- a.md\n0\n");
        shell.done(&["call", "write_note", r#"{"path":"a.md","content":"1","mode":"replace"}"#, "--yes"]);
        let journal = rusqlite::Connection::open(shell.state().join("journal.db")).unwrap();
        let row =
            "SELECT json_object('id', id, 'time_ms', time_ms, 'label', label, 'kind', kind, 'of', of, 'first_action',
            first_action, 'actions', actions, 'digest', digest, 'state', 'unfinished', 'done', 0) FROM transaction_";
        let row: String = journal.query_row(row, [], |row| row.get(0)).unwrap();
        let checksum = &blake3::hash(row.as_bytes()).to_hex()[..16];
        journal.execute("UPDATE transaction_ SET state = 'unfinished', done = 0, checksum = ?", [checksum]).unwrap();
        journal.execute("UPDATE action SET path = 'b.md'", []).unwrap();
        drop(journal);
        assert_eq!(shell.run(&["call", "write_note", r#"{"path":"c.md","content":"x"}"#, "--yes"]).code, 2);
        let args = ["undo", "--recover", "--json"];
        let ran = shell.run(if json { &args } else { &args[..2] });
        assert_eq!(ran.code, 3, "{}{}", ran.out, ran.err);
        assert!(ran.err.contains("only in part") && !ran.out.contains("rolled back"), "{}{}", ran.out, ran.err);
        if json {
            let recovered: Value = serde_json::from_str(&ran.out).unwrap();
            assert!(recovered["rolled_back"] == 0 && recovered["left"].as_array().unwrap().len() == 2, "{recovered}");
        } else {
            assert!(ran.err.contains("its record is damaged"), "{}", ran.err);
        }
        assert_eq!(shell.vault.read("a.md"), "1");
    }
}

#[test]
fn nothing_is_written_beside_a_journal_of_another_format_until_it_is_moved_aside() {
    let shell = Shell::new("//- a.md\n0\n");
    let write = ["call", "write_note", r#"{"path":"b.md","content":"x"}"#, "--yes"];
    shell.done(&write);
    let (file, aside) = (shell.state().join("journal.db"), shell.state().join("journal.db.old"));
    rusqlite::Connection::open(&file).unwrap().execute_batch("PRAGMA user_version = 2").unwrap();
    let before = std::fs::read(&file).unwrap();
    let write = ["call", "write_note", r#"{"path":"c.md","content":"x"}"#, "--yes"];
    let plan = json!({
        "version": "1.0", "goal": "a note", "riskLevel": "writes",
        "steps": [{ "id": "w", "tool": "vault.createFile", "args": { "path": "c.md", "content": "x" } }]
    });
    let refused = [
        shell.run(&write),
        shell.run_with(&["plan", "run", "-", "--yes"], &plan.to_string()),
        shell.run(&["undo", "--yes"]),
        shell.run(&["redo", "--yes"]),
        shell.run(&["undo", "--recover"]),
        shell.run(&["undo", "--keep"]),
        shell.run(&["prune", "--max-size", "0", "--yes"]),
    ];
    for ran in refused {
        assert_eq!(ran.code, 2, "{}", ran.err);
        assert!(ran.err.contains(file.to_str().unwrap()), "{}", ran.err);
        assert!(ran.err.contains("vault-tools journal reset"), "{}", ran.err);
    }
    let read = shell.run(&["call", "read_note", r#"{"path":"b.md"}"#]);
    assert_eq!((read.code, read.out.trim()), (0, "x"), "{}", read.err);
    assert_eq!(std::fs::read(&file).unwrap(), before);
    assert!(!shell.vault.root().join("c.md").exists());

    let unasked = shell.run(&["journal", "reset"]);
    assert!(unasked.code == 3 && unasked.err.contains("--yes") && file.exists(), "{}", unasked.err);
    let ran = shell.run(&["journal", "reset", "--yes"]);
    assert!(ran.code == 0 && ran.out.contains(aside.to_str().unwrap()), "{}{}", ran.out, ran.err);
    assert_eq!(std::fs::read(&aside).unwrap(), before);
    shell.done(&write);
    shell.done(&["undo", "--yes"]);
    assert_eq!(shell.run(&["journal", "reset", "--yes"]).code, 0);
    assert_eq!(shell.run(&["journal", "reset"]).out, "there is no journal\n");
    shell.done(&["forget", "--yes"]);
    assert!(!aside.exists());
}
