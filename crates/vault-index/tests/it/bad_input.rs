//! Bad input: a clear message that says what, where and what to do; nothing lost, nothing half-written.

use std::io::Write;

use crate::commands::{run, stderr, stdout};
use crate::vault::Vault;

fn sync(vault: &Vault) -> String {
    let output = run(vault, "vault-index", &["sync", "--model", "hashed"]);
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output) + &stderr(&output)
}

fn fails(vault: &Vault, program: &str, arguments: &[&str], says: &[&str]) {
    let output = run(vault, program, arguments);
    assert_eq!(output.status.code(), Some(2), "{program} {arguments:?}: {}", stderr(&output));
    for part in says {
        assert!(stderr(&output).contains(part), "{program} {arguments:?} does not say {part:?}: {}", stderr(&output));
    }
    assert!(!stderr(&output).contains("panicked"));
}

#[test]
fn vaults_with_nothing_in_them() {
    let vault = Vault::new("");
    assert!(sync(&vault).contains("0 notes"));
    assert_eq!(run(&vault, "vault-search", &["anything"]).status.code(), Some(1));
    vault.write("broken.md", b"---\n: [\n---\n\xff\xfe");
    assert!(sync(&vault).contains("broken.md"));
    vault.write("binary.md", [0u8; 5000]);
    vault.write("huge.md", vec![b'x'; 11 << 20]);
    let said = sync(&vault);
    assert!(said.contains("binary.md") && said.contains("huge.md"), "{said}");
}

#[test]
fn names_of_every_kind() {
    let vault = Vault::new("");
    let names =
        ["with space.md", "quote\"s'.md", "new\nline.md", "🌱.md", "-dash.md", "#hash.md", "tab\t.md", "%20.md"];
    for name in names {
        vault.write(name, "a cormorant\n");
    }
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt;
        let name = std::ffi::OsStr::from_bytes(b"inv\xffalid.md");
        std::fs::write(vault.root().join(name), "a cormorant\n").unwrap();
    }
    sync(&vault);
    let output = run(&vault, "vault-search", &["--jsonl", "-n", "50", "cormorant"]);
    let found = stdout(&output).lines().count();
    assert_eq!(found, names.len() + usize::from(cfg!(unix)), "{}", stdout(&output));
    // What a terminal would take for a command is harmless in the text form.
    vault.write("escape\u{1b}[31m.md", "a cormorant\u{1b}]0;title\u{7}\n");
    let output = run(&vault, "vault-search", &["-n", "50", "cormorant"]);
    assert!(!stdout(&output).contains('\u{1b}'), "{:?}", stdout(&output));
}

#[test]
fn yaml_bombs_and_deep_nesting() {
    let vault = Vault::new("");
    let mut bomb = String::from("---\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let uses = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{uses}]\n"));
    }
    vault.write("bomb.md", format!("{bomb}---\na cormorant\n"));
    vault.write("flow.md", format!("---\na: {}\n---\na cormorant\n", "[".repeat(10_000)));
    vault.write("quotes.md", format!("{} a cormorant\n", ">".repeat(10_000)));
    vault.write(
        "lists.md",
        (0..3000).map(|n| format!("{}- x\n", " ".repeat(2 * n))).collect::<String>() + "a cormorant\n",
    );
    vault.write("links.md", "[[".repeat(100_000) + " a cormorant\n");
    vault.write("deep.canvas", format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000)));
    sync(&vault);
    let output =
        run(&vault, "vault-search", &["--files", "--mode", "lexical", "-n", "50", "--min-score", "0", "cormorant"]);
    for name in ["bomb.md", "flow.md", "links.md"] {
        assert!(stdout(&output).contains(name), "{name}: {}", stdout(&output));
    }
}

#[cfg(unix)]
#[test]
fn symbolic_links_in_out_and_in_circles() {
    use std::os::unix::fs::symlink;
    let vault = Vault::new("//- in/a.md\na cormorant\n");
    let root = vault.root();
    let outside = root.parent().unwrap().join("secret.md");
    std::fs::write(&outside, "a secret heron\n").unwrap();
    symlink(&outside, root.join("out.md")).unwrap();
    symlink(root.parent().unwrap(), root.join("up")).unwrap();
    symlink(&root, root.join("in/circle")).unwrap();
    symlink(root.join("nowhere"), root.join("dangling.md")).unwrap();
    symlink(root.join("in/a.md"), root.join("alias.md")).unwrap();
    sync(&vault);
    let files = |word: &str| stdout(&run(&vault, "vault-search", &["--files", "--mode", "lexical", word]));
    assert_eq!(files("cormorant"), "in/a.md\n");
    assert_eq!(files("heron"), "");
}

#[test]
fn damaged_truncated_and_foreign_index_files() {
    let vault = Vault::new("//- a.md\na cormorant\n");
    sync(&vault);
    let file = vault.index_file();
    let whole = std::fs::read(&file).unwrap();
    let found = || stdout(&run(&vault, "vault-search", &["--files", "--mode", "lexical", "cormorant"]));

    let drop_logs = || {
        for log in ["-wal", "-shm"] {
            drop(std::fs::remove_file(file.with_file_name(format!("index.db{log}"))));
        }
    };
    // Garbage in the middle, and a file cut short: said, and mended by a rebuild.
    for (from, to, cut) in [(4096, whole.len(), whole.len()), (0, 0, whole.len() / 2)] {
        let mut damaged = whole.clone();
        damaged[from..to].fill(0x5a);
        damaged.truncate(cut);
        std::fs::write(&file, &damaged).unwrap();
        drop_logs();
        fails(&vault, "vault-search", &["cormorant"], &["damaged", "vault-index rebuild"]);
        let output = run(&vault, "vault-index", &["rebuild", "--model", "hashed"]);
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(found(), "a.md\n");
    }

    // A newer format.
    drop_logs();
    let mut newer = std::fs::read(&file).unwrap();
    newer[60..64].copy_from_slice(&99_u32.to_be_bytes());
    std::fs::write(&file, &newer).unwrap();
    fails(&vault, "vault-search", &["cormorant"], &["format 99"]);
    assert_eq!(std::fs::read(&file).unwrap(), newer, "a newer index is left as it is");

    // A file that is no index at all is never touched.
    for content in [&b"# my only copy of these notes\n"[..], &b"SQLite"[..]] {
        std::fs::write(&file, content).unwrap();
        for (program, arguments) in
            [("vault-index", &["sync"][..]), ("vault-index", &["rebuild"]), ("vault-index", &["forget", "--yes"])]
        {
            let output = run(&vault, program, arguments);
            assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stdout(&output));
            assert_eq!(std::fs::read(&file).unwrap(), content, "{arguments:?}");
        }
    }
}

#[test]
fn a_damaged_index_keeps_its_model_as_long_as_it_can_be_read() {
    let vault = Vault::new("//- a.md\na cormorant\n");
    sync(&vault);
    let file = vault.index_file();
    let db = rusqlite::Connection::open(&file).unwrap();
    let number = |sql: &str| db.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap() as usize;
    let (size, page) = (number("PRAGMA page_size"), number("SELECT rootpage FROM sqlite_master WHERE name = 'note'"));
    drop(db);
    let damage = |bytes: std::ops::Range<usize>| {
        let mut damaged = std::fs::read(&file).unwrap();
        let end = bytes.end.min(damaged.len());
        damaged[bytes.start..end].fill(0x5a);
        std::fs::write(&file, &damaged).unwrap();
        for log in ["-wal", "-shm"] {
            drop(std::fs::remove_file(file.with_file_name(format!("index.db{log}"))));
        }
    };

    damage((page - 1) * size..page * size);
    let output = run(&vault, "vault-index", &["rebuild"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let status = stdout(&run(&vault, "vault-index", &["status", "--json"]));
    assert!(status.contains(r#""model":"hashed""#), "{status}");
    assert!(file.with_file_name("index.db.damaged").exists());

    // Only the first page is left, which says no more than that this was an index.
    damage(size..usize::MAX);
    let options = vault_index::Options { index_file: Some(file.clone()), ..vault_index::Options::default() };
    let index = vault_index::Index::open(vault.root(), options).unwrap();
    let error = index.rebuild(&vault_index::SyncOptions::default()).unwrap_err().to_string();
    assert!(error.contains("vault-index rebuild --model NAME"), "{error}");
    drop(index);
    // The command says which model it takes.
    if cfg!(feature = "minilm") {
        let output = run(&vault, "vault-index", &["rebuild"]);
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(stderr(&output).contains("made anew with minilm"), "{}", stderr(&output));
    }
}

#[test]
fn the_database_of_another_program() {
    let vault = Vault::new("//- a.md\ntext\n");
    std::fs::create_dir_all(vault.index_file().parent().unwrap()).unwrap();
    let db = rusqlite::Connection::open(vault.index_file()).unwrap();
    db.execute_batch("CREATE TABLE precious(x); INSERT INTO precious VALUES(1);").unwrap();
    drop(db);
    fails(&vault, "vault-index", &["sync"], &["another program"]);
    fails(&vault, "vault-index", &["rebuild"], &["another program"]);
    let db = rusqlite::Connection::open(vault.index_file()).unwrap();
    assert_eq!(db.query_row("SELECT x FROM precious", [], |r| r.get::<_, i64>(0)).unwrap(), 1);
}

#[test]
fn an_index_where_nothing_can_be_written() {
    let vault = Vault::new("//- a.md\ntext\n");
    // A file where the folder should be: nobody can make a folder there, not even root.
    std::fs::write(vault.index_file().parent().unwrap(), "in the way").unwrap();
    fails(&vault, "vault-index", &["sync"], &["index"]);
}

/// What `vault-search` answers who may write nowhere: as root it runs as nobody, from a place where nobody can reach it.
#[cfg(unix)]
fn search_read_only(vault: &Vault, arguments: &[&str]) -> std::process::Output {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::os::unix::process::CommandExt;

    let home = vault.root().parent().unwrap().to_path_buf();
    let mode = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let folder = vault.index_file().parent().unwrap().to_path_buf();
    for entry in std::fs::read_dir(&folder).unwrap() {
        mode(&entry.unwrap().path(), 0o444);
    }
    mode(&folder, 0o555);
    mode(&home, 0o755);
    let program = home.join("vault-search");
    std::fs::copy(env!("CARGO_BIN_EXE_vault-search"), &program).unwrap();
    mode(&program, 0o755);
    let mut command = std::process::Command::new(&program);
    command.env_clear().env("HOME", &home).env("VAULT_DIR", vault.root()).env("VAULT_INDEX_FILE", vault.index_file());
    command.args(arguments).stdin(std::process::Stdio::null());
    if std::fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0) {
        command.uid(65_534).gid(65_534);
    }
    let output = command.output().unwrap();
    mode(&folder, 0o755);
    output
}

#[cfg(unix)]
#[test]
fn a_read_only_index_can_be_searched() {
    let vault = Vault::new("//- a.md\na cormorant\n");
    sync(&vault);
    for arguments in [&["--no-sync", "--files", "cormorant"][..], &["--files", "cormorant"]] {
        let output = search_read_only(&vault, arguments);
        assert_eq!(stdout(&output), "a.md\n", "{arguments:?}: {}", stderr(&output));
    }
}

/// A copy of an index in use: part of it stands in its log, which cannot be read where nothing can be written.
#[cfg(unix)]
#[test]
fn a_read_only_index_with_a_log_is_not_read_without_it() {
    let vault = Vault::new("//- a.md\na cormorant\n");
    sync(&vault);
    let log = vault.index_file().with_file_name("index.db-wal");
    let db = rusqlite::Connection::open(vault.index_file()).unwrap();
    db.execute_batch("DELETE FROM warning; INSERT INTO meta VALUES('in the', 'log')").unwrap();
    let kept = std::fs::read(&log).unwrap();
    assert!(!kept.is_empty());
    drop(db);
    drop(std::fs::remove_file(vault.index_file().with_file_name("index.db-shm")));
    std::fs::write(log, kept).unwrap();
    let output = search_read_only(&vault, &["--no-sync", "--files", "cormorant"]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(2), String::new()), "{}", stderr(&output));
    assert!(stderr(&output).contains("index.db"), "{}", stderr(&output));
}

#[test]
fn queries_long_and_strange() {
    let vault = Vault::new("//- a.md\na cormorant dives\n");
    sync(&vault);
    let long = "cormorant dives ".repeat(6_400);
    let queries = vault.root().parent().unwrap().join("q.txt");
    let mut file = std::fs::File::create(&queries).unwrap();
    writeln!(file, "{long}\n\"\n***\n( ) AND OR NOT NEAR(\n日\u{0}x\ncormorant\n").unwrap();
    let output = run(&vault, "vault-search", &["--queries", queries.to_str().unwrap()]);
    assert!(output.status.code().is_some_and(|c| c < 2), "{}", stderr(&output));
    let answers = stdout(&output);
    let answer = answers.lines().find(|line| line.starts_with("{\"query\":\"cormorant\"")).unwrap();
    assert!(answer.contains("a.md"));
    for odd in ["\"", "( ) AND OR NOT", "*", "tag:", "''", "a\"b", "{}[]^~", "-", "%_"] {
        let output = run(&vault, "vault-search", &["--", odd]);
        assert!(matches!(output.status.code(), Some(0..=2)) && !stderr(&output).contains("panicked"), "{odd:?}");
    }
    fails(&vault, "vault-search", &["   "], &["nothing to search for"]);
}

/// Root may list everything, so as root the commands run as nobody.
#[cfg(unix)]
#[test]
fn a_folder_that_cannot_be_listed_keeps_its_notes() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::os::unix::process::CommandExt;

    let vault = Vault::new("//- f/g/a.md\na cormorant\n//- b.md\na heron\n");
    let home = vault.root().parent().unwrap().to_path_buf();
    let mode = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(&home, 0o777);
    let program = home.join("vault-index");
    std::fs::copy(env!("CARGO_BIN_EXE_vault-index"), &program).unwrap();
    mode(&program, 0o755);
    let sync = || {
        let mut command = std::process::Command::new(&program);
        command
            .env_clear()
            .env("HOME", &home)
            .env("VAULT_DIR", vault.root())
            .env("VAULT_INDEX_FILE", vault.index_file());
        command.args(["sync", "--json", "--model", "hashed"]).stdin(std::process::Stdio::null());
        if std::fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0) {
            command.uid(65_534).gid(65_534);
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()
    };
    assert_eq!(sync()["added"], 2);
    mode(&vault.root().join("f"), 0o000);
    std::fs::remove_file(vault.root().join("b.md")).unwrap();
    let report = sync();
    mode(&vault.root().join("f"), 0o755);
    assert_eq!(report["removed"], 1, "{report}");
    assert!(report["skipped"][0]["reason"].as_str().unwrap().contains("stays as it is"), "{report}");
    let report = sync();
    assert_eq!((&report["unchanged"], &report["added"]), (&1.into(), &0.into()), "{report}");
}

#[cfg(target_os = "linux")]
#[test]
fn that_two_files_have_one_name_is_said_until_one_is_gone() {
    let vault = Vault::new("//- e\u{301}.md\none\n//- \u{e9}.md\ntwo\n");
    let is_said = || vault.sync().skipped.iter().filter(|skipped| skipped.reason.contains("left out")).count();
    assert_eq!(is_said(), 1);
    vault.write("e\u{301}.md", "another text of it\n");
    assert_eq!((is_said(), is_said()), (1, 1));
    std::fs::remove_file(vault.root().join("\u{e9}.md")).unwrap();
    assert_eq!(is_said(), 0);
}

#[test]
fn the_last_sync_is_the_last_that_found_the_index_up_to_date() {
    let vault = Vault::new("//- a.md\ntext\n");
    vault.sync();
    let db = rusqlite::Connection::open(vault.index_file()).unwrap();
    let set = |when: &str| db.execute("UPDATE meta SET value = ?1 WHERE key = 'last_sync'", [when]).unwrap();
    let last = || vault.index().status().unwrap().last_sync.unwrap().to_string();
    assert_eq!(set("2001-01-01T00:00:00Z"), 1);
    vault.sync();
    let noted = last();
    assert!(!noted.starts_with("2001"), "{noted}");
    vault.sync();
    assert_eq!(last(), noted, "an unchanged vault is noted once a minute");
}
