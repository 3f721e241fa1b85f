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

/// What a note has much of goes with each of its passages in part only.
#[test]
fn a_note_of_thousands_of_tags_costs_no_more_than_its_length() {
    let vault = Vault::new("");
    let tags: String = (0..3000).map(|n| format!("#topic{n}/nested/deeper{n} ")).collect();
    let text: String =
        (0..300).map(|n| format!("Paragraph {n} tells of cormorants.\n\n{}\n\n", "word ".repeat(150))).collect();
    let note = format!("# {}\n\n{tags}\n\n{text}", "long title ".repeat(3000));
    vault.write("many.md", &note);
    let output = run(&vault, "vault-index", &["sync", "--no-vectors", "--model", "hashed"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let size = std::fs::metadata(vault.index_file()).unwrap().len();
    assert!(size < 20 * note.len() as u64, "{size} bytes for a note of {}", note.len());
    for query in ["topic2999", "tag:topic2999/nested cormorants", "\"long title\""] {
        let found = run(&vault, "vault-search", &["--files", "--mode", "lexical", "--no-sync", query]);
        assert_eq!(stdout(&found), "many.md\n", "{query}: {}", stderr(&found));
    }
}

#[test]
fn what_a_sync_reports_is_what_became_of_the_notes() {
    let vault = Vault::new("//- a.md\none\n//- b.md\ntwo\n");
    let stopped = vault_index::SyncOptions::new().deadline(std::time::Instant::now());
    let report = vault.index().sync_with(&stopped).unwrap();
    assert_eq!((report.added, report.unread), (0, 2));
    // What was begun and not done is no change.
    let report = vault.sync();
    assert_eq!((report.added, report.changed, report.removed), (2, 0, 0));
    // A note that cannot be read any more is gone from the index.
    vault.write("b.md", b"\0\0\0\0");
    let report = vault.sync();
    assert_eq!((report.changed, report.removed, report.skipped.len()), (0, 1, 1));
    vault.write("b.md", "three\n");
    assert_eq!(vault.sync().added, 1);
    assert_eq!(vault.dump(), vault.dump_of_rebuild());
}

#[cfg(unix)]
#[test]
fn an_index_file_is_made_private_and_an_empty_one_is_none_yet() {
    use std::os::unix::fs::PermissionsExt;
    let vault = Vault::new("//- a.md\na cormorant\n");
    let file = vault.index_file();
    let open_to_all = || {
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    };
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "").unwrap();
    open_to_all();
    fails(&vault, "vault-index", &["status"], &["no index yet", "vault-index sync"]);
    for _ in 0..2 {
        sync(&vault);
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        open_to_all();
    }
    // A pipe is not waited for.
    let pipe = vault.root().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let pipe = pipe.to_str().unwrap();
    for command in ["status", "sync"] {
        fails(&vault, "vault-index", &[command, "--index", pipe], &["not an index"]);
    }
}

#[cfg(unix)]
#[test]
fn a_picture_is_replaced_when_the_new_one_is_whole() {
    let vault = Vault::new("//- a.md\n[[b]]\n//- b.md\n");
    sync(&vault);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("g.json");
    std::fs::write(&file, "an old picture").unwrap();
    let arguments = ["graph", "--format", "json", "-o", file.to_str().unwrap()];
    assert!(run(&vault, "vault-index", &arguments).status.success());
    assert!(std::fs::read_to_string(&file).unwrap().starts_with('{'));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    fails(&vault, "vault-index", &["graph", "-o", "/dev/full"], &["/dev/full: cannot be written: No space left"]);
    fails(&vault, "vault-index", &["graph", "-o", folder.path().to_str().unwrap()], &["a folder"]);
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
        fails(&vault, "vault-search", &["cormorant"], &["damaged", "vault-index check --repair"]);
        let output = run(&vault, "vault-index", &["rebuild", "--model", "hashed"]);
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(found(), "a.md\n");
    }

    // Another format: said, and rebuilt by the next command that may write.
    drop_logs();
    let mut newer = std::fs::read(&file).unwrap();
    newer[60..64].copy_from_slice(&99_u32.to_be_bytes());
    std::fs::write(&file, &newer).unwrap();
    fails(&vault, "vault-search", &["--no-sync", "cormorant"], &["format 99", "vault-index sync"]);
    assert_eq!(std::fs::read(&file).unwrap(), newer, "reading leaves it as it is");
    let output = run(&vault, "vault-search", &["--files", "cormorant"]);
    assert_eq!(stdout(&output), "a.md\n", "{}", stderr(&output));
    let said = stderr(&output);
    assert!(said.starts_with("note: ") && said.contains("format 99") && said.contains("rebuilt"), "{said}");
    assert!(said.contains("2 vectors are kept"), "{said}");
    assert_eq!(run(&vault, "vault-search", &["--files", "cormorant"]).stderr, b"");

    // A file that is no index at all is never touched; nor is one whose first page is gone.
    for content in [&b"# my only copy of these notes\n"[..], &b"SQLite"[..], &[0; 4096]] {
        std::fs::write(&file, content).unwrap();
        for (program, arguments) in
            [("vault-index", &["sync"][..]), ("vault-index", &["rebuild"]), ("vault-index", &["forget", "--yes"])]
        {
            let output = run(&vault, program, arguments);
            assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stdout(&output));
            assert!(stderr(&output).contains("if it was an index, delete it"), "{}", stderr(&output));
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
    let (size, page) =
        (number("PRAGMA page_size"), number("SELECT rootpage FROM sqlite_master WHERE name = 'note_title_vector'"));
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
    let options = vault_index::Options::new().index_file(&file);
    let index = vault_index::Index::open(vault.root(), options).unwrap();
    let error = index.rebuild(&vault_index::SyncOptions::default()).unwrap_err().to_string();
    assert!(error.contains("vault-index rebuild --model NAME"), "{error}");
    drop(index);
    // The command says which model it takes.
    let output = run(&vault, "vault-index", &["rebuild"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("rebuilt with minilm"), "{}", stderr(&output));
}

/// Every file in a folder, by name.
fn files_in(folder: &std::path::Path) -> std::collections::BTreeMap<std::ffi::OsString, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries.map(|entry| (entry.file_name(), std::fs::read(entry.path()).unwrap())).collect()
}

#[test]
fn the_database_of_another_program() {
    for mode in ["delete", "wal"] {
        let vault = Vault::new("//- a.md\ntext\n");
        let folder = vault.index_file().parent().unwrap().to_path_buf();
        std::fs::create_dir_all(&folder).unwrap();
        let db = rusqlite::Connection::open(vault.index_file()).unwrap();
        db.pragma_update(None, "journal_mode", mode).unwrap();
        db.execute_batch("CREATE TABLE precious(x); INSERT INTO precious VALUES(1);").unwrap();
        drop(db);
        let before = files_in(&folder);
        assert_eq!(before.len(), 1);
        for arguments in [
            &["sync"][..],
            &["sync", "--no-vectors"],
            &["watch"],
            &["status"],
            &["check"],
            &["check", "--repair"],
            &["rebuild"],
            &["rebuild", "--model", "hashed"],
            &["forget", "--yes"],
        ] {
            fails(&vault, "vault-index", arguments, &["another program", "--index"]);
            assert_eq!(files_in(&folder), before, "{arguments:?}, {mode}");
        }
        fails(&vault, "vault-search", &["text"], &["another program"]);
        assert_eq!(files_in(&folder), before, "{mode}");
    }
}

/// The same where an index lies by default.
#[test]
fn the_database_of_another_program_in_the_cache() {
    let vault = Vault::new("//- a.md\ntext\n");
    let run = |arguments: &[&str]| {
        let cache = vault.root().with_file_name("cache");
        crate::commands::command(&vault, "vault-index", arguments)
            .env_remove("VAULT_INDEX_FILE")
            .env("XDG_CACHE_HOME", &cache)
            .env("LOCALAPPDATA", &cache)
            .output()
            .unwrap()
    };
    let synced = run(&["sync", "--model", "hashed"]);
    assert!(synced.status.success(), "{}", stderr(&synced));
    let status: serde_json::Value = serde_json::from_slice(&run(&["status", "--json"]).stdout).unwrap();
    let file = std::path::PathBuf::from(status["index"].as_str().unwrap());
    let folder = file.parent().unwrap();
    for entry in files_in(folder).keys() {
        std::fs::remove_file(folder.join(entry)).unwrap();
    }
    rusqlite::Connection::open(&file).unwrap().execute_batch("CREATE TABLE precious(x)").unwrap();
    let before = files_in(folder);
    for arguments in ["check --repair --model hashed", "rebuild --model hashed", "sync --model hashed", "forget --yes"]
    {
        let output = run(&arguments.split(' ').collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stdout(&output));
        assert!(stderr(&output).contains("another program"), "{arguments:?}: {}", stderr(&output));
        assert_eq!(files_in(folder), before, "{arguments:?}");
    }
    // What is no database at all has our name in our folder, and is taken for a damaged index.
    std::fs::write(&file, [0x5a; 5000]).unwrap();
    assert!(stderr(&run(&["status"])).contains("run `vault-index check --repair`"));
    let output = run(&["check", "--repair", "--model", "hashed"]);
    assert!(output.status.success(), "{}", stdout(&output) + &stderr(&output));
    assert!(run(&["forget", "--yes"]).status.success());
    assert!(!folder.exists());
}

/// Names that an index would use, beside an index that lies where its user chose, may be those of other files.
#[test]
fn files_of_others_beside_the_index() {
    const TEXT: &str = "my only copy of these notes\n";
    let vault = Vault::new("//- a.md\na cormorant\n");
    sync(&vault);
    let beside = |ending: &str| {
        let mut name = vault.index_file().into_os_string();
        name.push(ending);
        std::path::PathBuf::from(name)
    };
    let is_kept = |ending: &str| std::fs::read_to_string(beside(ending)).is_ok_and(|text| text == TEXT);

    std::fs::write(beside(".rebuild"), TEXT).unwrap();
    for arguments in [&["rebuild"][..], &["rebuild", "--model", "hashed"]] {
        fails(&vault, "vault-index", arguments, &["index.db.rebuild", "move it away"]);
        assert!(is_kept(".rebuild"), "{arguments:?}");
    }
    // The index is as it was, and no rebuild is under way.
    assert!(run(&vault, "vault-index", &["sync"]).status.success());
    assert!(run(&vault, "vault-index", &["check"]).status.success());

    // A damaged index is set aside under a name that is free.
    std::fs::remove_file(beside(".rebuild")).unwrap();
    std::fs::write(beside(".damaged"), TEXT).unwrap();
    let mut damaged = std::fs::read(vault.index_file()).unwrap();
    damaged[4096..].fill(0x5a);
    std::fs::write(vault.index_file(), &damaged).unwrap();
    for log in ["-wal", "-shm"] {
        drop(std::fs::remove_file(beside(log)));
    }
    let output = run(&vault, "vault-index", &["rebuild", "--model", "hashed"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(is_kept(".damaged"));
    assert_eq!(std::fs::read(beside(".damaged-2")).unwrap(), damaged);

    // What a lock would be called.
    std::fs::remove_file(beside(".lock")).unwrap();
    std::fs::write(beside(".lock"), TEXT).unwrap();
    for arguments in [&["rebuild"][..], &["sync", "--full"], &["forget", "--yes"]] {
        vault.write("a.md", format!("a cormorant, {arguments:?}\n"));
        fails(&vault, "vault-index", arguments, &["index.db.lock", "move it away"]);
        assert!(is_kept(".lock"), "{arguments:?}");
    }
    std::fs::remove_file(beside(".lock")).unwrap();

    let others = [".rebuild", ".rebuild-wal", ".rebuild.lock", ".damaged", ".damaged-3", ".damaged-x", ".note"];
    for ending in others {
        std::fs::write(beside(ending), TEXT).unwrap();
    }
    let output = run(&vault, "vault-index", &["forget", "--yes"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(!vault.index_file().exists() && !beside(".damaged-2").exists());
    assert!(others.iter().all(|ending| is_kept(ending)), "{}", stdout(&output));
    assert_eq!(files_in(vault.index_file().parent().unwrap()).len(), others.len(), "{}", stdout(&output));
}

#[test]
fn an_index_where_nothing_can_be_written() {
    let vault = Vault::new("//- a.md\ntext\n");
    // A file where the folder should be: nobody can make a folder there, not even root.
    std::fs::write(vault.index_file().parent().unwrap(), "in the way").unwrap();
    fails(&vault, "vault-index", &["sync"], &["index"]);
}

/// Runs a command as somebody whom permissions bind: as root it runs as nobody, from a place where nobody can reach it.
#[cfg(unix)]
pub fn run_unprivileged(vault: &Vault, program: &str, arguments: &[&str]) -> std::process::Output {
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::process::CommandExt;

    let home = vault.root().parent().unwrap().to_path_buf();
    let copy = home.join(program);
    if !copy.exists() {
        let built = match program {
            "vault-search" => env!("CARGO_BIN_EXE_vault-search"),
            _ => env!("CARGO_BIN_EXE_vault-index"),
        };
        // Not copied by this process: what another thread starts meanwhile would inherit the file, open for writing,
        // and no program that is open for writing can be run.
        assert!(std::process::Command::new("cp").arg(built).arg(&copy).status().unwrap().success());
        set_mode(&copy, 0o755);
    }
    let mut command = std::process::Command::new(&copy);
    command.env_clear().env("HOME", &home).env("VAULT_DIR", vault.root()).env("VAULT_INDEX_FILE", vault.index_file());
    command.args(arguments).stdin(std::process::Stdio::null());
    if std::fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0) {
        command.uid(65_534).gid(65_534);
    }
    command.output().unwrap()
}

#[cfg(unix)]
pub fn set_mode(path: &std::path::Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// What a command answers who may write nowhere.
#[cfg(unix)]
fn run_read_only(vault: &Vault, program: &str, arguments: &[&str]) -> std::process::Output {
    let folder = vault.index_file().parent().unwrap().to_path_buf();
    for entry in std::fs::read_dir(&folder).unwrap() {
        set_mode(&entry.unwrap().path(), 0o444);
    }
    set_mode(&folder, 0o555);
    set_mode(vault.root().parent().unwrap(), 0o755);
    let output = run_unprivileged(vault, program, arguments);
    set_mode(&folder, 0o755);
    output
}

#[cfg(unix)]
#[test]
fn a_read_only_index_can_be_searched() {
    let vault = Vault::new("//- a.md\na cormorant\n");
    sync(&vault);
    for arguments in [&["--no-sync", "--files", "cormorant"][..], &["--files", "cormorant"]] {
        let output = run_read_only(&vault, "vault-search", arguments);
        assert_eq!(stdout(&output), "a.md\n", "{arguments:?}: {}", stderr(&output));
    }
    let output = run_read_only(&vault, "vault-index", &["check"]);
    assert!(stdout(&output).starts_with("sound: 1 note read and compared"), "{}", stdout(&output) + &stderr(&output));
    vault.write("a.md", "a heron\n");
    let output = run_read_only(&vault, "vault-index", &["check"]);
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output) + &stderr(&output));
}

#[cfg(unix)]
#[test]
fn an_index_of_another_format_that_cannot_be_written_is_said_to_be_one() {
    let vault = Vault::new("//- a.md\na cormorant\n");
    sync(&vault);
    let db = rusqlite::Connection::open(vault.index_file()).unwrap();
    db.execute_batch("PRAGMA user_version = 8").unwrap();
    drop(db);
    let output = run_read_only(&vault, "vault-search", &["--no-sync", "--files", "cormorant"]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(2), String::new()), "{}", stderr(&output));
    let said = stderr(&output);
    assert!(said.contains("format 8") && said.contains("vault-index sync"), "{said}");
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
    let output = run_read_only(&vault, "vault-search", &["--no-sync", "--files", "cormorant"]);
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

#[cfg(unix)]
#[test]
fn a_folder_that_cannot_be_listed_keeps_its_notes() {
    let vault = Vault::new("//- f/g/a.md\na cormorant\n//- b.md\na heron\n");
    set_mode(vault.root().parent().unwrap(), 0o777);
    let sync = || {
        let output = run_unprivileged(&vault, "vault-index", &["sync", "--json", "--model", "hashed"]);
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()
    };
    assert_eq!(sync()["added"], 2);
    set_mode(&vault.root().join("f"), 0o000);
    std::fs::remove_file(vault.root().join("b.md")).unwrap();
    let report = sync();
    set_mode(&vault.root().join("f"), 0o755);
    assert_eq!(report["removed"], 1, "{report}");
    assert!(
        report["skipped"][0]["reason"].as_str().unwrap().contains("a sync keeps its rows in the index"),
        "{report}"
    );
    let report = sync();
    assert_eq!((&report["unchanged"], &report["added"]), (&1.into(), &0.into()), "{report}");
}

/// What a check cannot read it does not call sound, whether or not a sync has noted it before.
#[cfg(unix)]
#[test]
fn a_check_names_what_it_could_not_read() {
    let vault = Vault::new("//- f/a.md\na cormorant\n//- b.md\na heron\n//- c.md\na stork\n");
    vault.write("binary.md", [0u8; 50]);
    set_mode(vault.root().parent().unwrap(), 0o777);
    let run = |arguments: &[&str]| run_unprivileged(&vault, "vault-index", arguments);
    let check = |notes: usize, unread: &[&str]| {
        let output = run(&["check", "--json"]);
        let record: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(i32::from(!unread.is_empty())), "{record}");
        assert_eq!((&record["sound"], &record["notes"]), (&unread.is_empty().into(), &notes.into()), "{record}");
        assert_eq!(record["faults"], serde_json::json!([]), "{record}");
        let named: Vec<&str> = record["unreadable"].as_array().unwrap().iter().map(|l| l.as_str().unwrap()).collect();
        assert_eq!(named.len(), unread.len(), "{record}");
        assert!(named.iter().zip(unread).all(|(line, path)| line.starts_with(path)), "{record}");
    };
    assert!(run(&["sync", "--model", "hashed"]).status.success());
    check(3, &[]);
    // Read before, and not since.
    vault.write("b.md", "another heron\n");
    set_mode(&vault.root().join("b.md"), 0o000);
    check(2, &["b.md: cannot be read"]);
    // Known to be unreadable since a sync.
    assert!(run(&["sync"]).status.success());
    check(2, &["b.md: cannot be read"]);
    set_mode(&vault.root().join("f"), 0o000);
    vault.write("c.md", "a stork\n");
    assert!(run(&["sync"]).status.success());
    check(1, &["f: the folder cannot be read", "b.md: cannot be read"]);
    let said = stdout(&run(&["check", "--repair"]));
    assert!(said.contains("not compared: b.md: ") && said.contains("not compared: f: "), "{said}");
    assert!(said.contains("could not be read and compared: 2 files or folders") && !said.contains("sound"), "{said}");
    set_mode(&vault.root().join("f"), 0o755);
    set_mode(&vault.root().join("b.md"), 0o644);
    assert!(run(&["sync"]).status.success());
    check(3, &[]);
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

/// As a search does that has no time for vectors.
#[test]
fn a_sync_that_has_read_everything_is_one() {
    let vault = Vault::new("");
    (0..300).for_each(|n| vault.write(&format!("{n}.md"), format!("text {n}\n")));
    let options = vault_index::SyncOptions::new().vectors_within(std::time::Duration::ZERO);
    vault.index().sync_with(&options).unwrap();
    let status = vault.index().status().unwrap();
    assert!(status.pending > 0 && status.last_sync.is_some(), "{status:?}");
}

#[cfg(unix)]
#[test]
fn a_vault_that_cannot_be_read() {
    let vault = Vault::new("//- a.md\ntext\n");
    set_mode(vault.root().parent().unwrap(), 0o755);
    set_mode(&vault.root(), 0o000);
    for (program, arguments) in [("vault-index", vec!["sync"]), ("vault-search", vec!["text"])] {
        let output = run_unprivileged(&vault, program, &arguments);
        let told = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains("this folder cannot be read") && told.contains("give yourself the permission"), "{told}");
    }
    assert!(!vault.index_file().exists(), "nothing is written");
    set_mode(&vault.root(), 0o755);
}
