//! Killed at any moment, the index is sound and the next sync goes on.

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::vault::{Vault, dump};

#[test]
fn killed_at_any_moment() {
    let vault = Vault::new("");
    let write = |round: usize| {
        for note in 0..400 {
            let link = (note * 7 + round) % 400;
            let text = format!(
                "# Note {note}\n\nRound {} links to [[n{link}]]. {}\n",
                (note + round) / 9,
                "word ".repeat(note % 90)
            );
            vault.write(&format!("f{}/n{note}.md", note % 10), text);
        }
        // Names that come and go, so that links of other notes change.
        let (from, to) = (vault.root().join(format!("f{round}")), vault.root().join(format!("g{round}")));
        drop(std::fs::rename(from, to));
    };
    let file = vault.index_file();
    let sync = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vault-index"));
        command.args(["sync", "--model", "hashed", "--vault"]).arg(vault.root()).arg("--index").arg(&file);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let mut interrupted = 0;
    for round in 0..10 {
        write(round);
        let mut child = sync().spawn().unwrap();
        // The moment is not waited for but chosen: any moment must do.
        std::thread::sleep(Duration::from_millis(3 + 23 * round as u64 % 190));
        if child.try_wait().unwrap().is_none() {
            interrupted += 1;
        }
        drop(child.kill());
        child.wait().unwrap();
        if file.exists() {
            let db = rusqlite::Connection::open(&file).unwrap();
            let verdict: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
            assert_eq!(verdict, "ok", "round {round}");
        }
    }
    assert!(interrupted > 0, "no run was slow enough to be killed");
    assert!(sync().status().unwrap().success());
    let whole = dump(&file);
    assert_eq!(whole, vault.dump_of_rebuild());
}

#[test]
fn an_index_that_was_cut_before_it_had_tables_is_none() {
    let vault = Vault::new("//- a.md\nplums\n");
    std::fs::create_dir_all(vault.index_file().parent().unwrap()).unwrap();
    let begun = rusqlite::Connection::open(vault.index_file()).unwrap();
    begun.pragma_update(None, "application_id", 0x7669_6478).unwrap();
    begun.pragma_update(None, "journal_mode", "wal").unwrap();
    drop(begun);
    let run = |command: &str| {
        let mut program = Command::new(env!("CARGO_BIN_EXE_vault-index"));
        program
            .args([command, "--model", "hashed", "--vault"])
            .arg(vault.root())
            .arg("--index")
            .arg(vault.index_file());
        program.output().unwrap()
    };
    let told = String::from_utf8(run("status").stderr).unwrap();
    assert!(told.contains("there is no index yet") && told.contains("vault-index sync"), "{told}");
    assert!(run("sync").status.success());
    assert!(run("status").status.success());
}
