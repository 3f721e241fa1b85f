//! What `vault-index doctor` finds, each in the situation that it is about.

use std::process::{Command, Output};

use serde_json::Value;
use vault_index::lock::lock_file;

#[cfg(unix)]
use crate::bad_input::{run_unprivileged, set_mode};
use crate::commands::{command, run, stderr, stdout};
use crate::vault::Vault;

fn findings(output: &Output) -> Vec<Value> {
    let found: Vec<Value> =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", stderr(output)));
    let has_problem = found.iter().any(|finding| finding["is_problem"] == true);
    assert_eq!(output.status.code(), Some(i32::from(has_problem)), "{found:?}");
    assert!(found.iter().all(|finding| !finding["remedy"].as_str().unwrap().is_empty()), "{found:?}");
    found
}

/// The only finding: its kind, whether it is a problem, and its text.
#[track_caller]
fn only(output: &Output) -> (String, bool, String) {
    let found = findings(output);
    let [one] = found.as_slice() else { panic!("{found:?}") };
    let text = |name: &str| one[name].as_str().unwrap().to_owned();
    let all = format!("{}: {} -> {}", text("subject"), text("message"), text("remedy"));
    (text("kind"), one["is_problem"] == true, all)
}

#[track_caller]
fn check(output: &Output, kind: &str, is_problem: bool, says: &[&str]) {
    let found = only(output);
    assert_eq!((found.0.as_str(), found.1), (kind, is_problem), "{found:?}");
    for part in says {
        assert!(found.2.contains(part), "{part:?} is not in {found:?}");
    }
}

fn doctor(vault: &Vault) -> Output {
    run(vault, "vault-index", &["doctor", "--json"])
}

/// A vault in which nothing is wrong.
fn sound(files: &str) -> Vault {
    let vault = Vault::new(files);
    assert!(run(&vault, "vault-index", &["sync", "--model", "hashed"]).status.success());
    vault
}

#[test]
fn nothing() {
    let vault = sound("//- a.md\na cormorant\n//- b.md\na heron\n");
    assert_eq!(findings(&doctor(&vault)), [] as [Value; 0]);
    let output = run(&vault, "vault-index", &["doctor"]);
    let said = stdout(&output);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(said.starts_with("nothing wrong was found: 2 notes in ") && said.lines().count() == 1, "{said}");
    // What has changed is read first.
    vault.write("c.md", "a stork\n");
    check(&doctor(&vault), "no-vectors", true, &["vault-index sync"]);
}

#[test]
fn no_vault() {
    let vault = Vault::new("");
    let home = vault.root().parent().unwrap().to_path_buf();
    let mut in_home = command(&vault, "vault-index", &["doctor", "--json"]);
    in_home.env_remove("VAULT_DIR").env_remove("VAULT_INDEX_FILE").current_dir(&home);
    check(&in_home.output().unwrap(), "no-vault", true, &["your home folder", "--vault DIR"]);
    let gone = run(&vault, "vault-index", &["doctor", "--json", "--vault", "/no/such/folder"]);
    check(&gone, "no-vault", true, &["/no/such/folder: there is no such folder", "--vault DIR"]);
    check(&doctor(&vault), "no-vault", true, &["holds no notes", "vault-agent setup"]);
}

#[test]
fn settings_that_cannot_be_read() {
    let vault = sound("//- a.md\na cormorant\n");
    let folder = vault.root().parent().unwrap().join(".config/vault-index");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), "colour = 1\n").unwrap();
    let mut linux = command(&vault, "vault-index", &["doctor", "--json"]);
    linux.env("XDG_CONFIG_HOME", folder.parent().unwrap());
    check(&linux.output().unwrap(), "settings", true, &["config.toml", "unknown field `colour`", "it may hold vault"]);
}

#[test]
fn excluded_notes() {
    let vault = sound("//- a.md\na cormorant\n");
    for number in 1..=4 {
        vault.write(&format!("Drafts/{number}.md"), "a heron\n");
    }
    vault.write(".vaultignore", "Drafts/\n");
    check(
        &doctor(&vault),
        "excluded",
        false,
        &["4 notes are excluded: Drafts/1.md, Drafts/2.md, Drafts/3.md, …", ".gitignore"],
    );
    let said = stdout(&run(&vault, "vault-index", &["doctor"]));
    assert!(said.starts_with("notice: ") && said.ends_with("\n1 notice\n"), "{said}");
    // A vault of which nothing can be found.
    vault.write(".vaultignore", "*.md\n");
    check(&doctor(&vault), "excluded", true, &["5 notes are excluded"]);
}

#[cfg(unix)]
#[test]
fn permissions() {
    let vault = Vault::new("//- a.md\na cormorant\n//- f/b.md\na heron\n");
    let home = vault.root().parent().unwrap().to_path_buf();
    set_mode(&home, 0o777);
    set_mode(&vault.root(), 0o777);
    let doctor = || run_unprivileged(&vault, "vault-index", &["doctor", "--json"]);
    assert!(run_unprivileged(&vault, "vault-index", &["sync", "--model", "hashed"]).status.success());
    assert_eq!(findings(&doctor()), [] as [Value; 0]);
    // A note, a folder, the vault, and the place of the index.
    vault.write("a.md", "another cormorant\n");
    set_mode(&vault.root().join("a.md"), 0o000);
    check(&doctor(), "permissions", true, &["a.md: not indexed: ", "permission to read it"]);
    set_mode(&vault.root().join("a.md"), 0o644);
    assert!(run_unprivileged(&vault, "vault-index", &["sync"]).status.success());
    set_mode(&vault.root().join("f"), 0o000);
    let found = findings(&doctor());
    let of_kind =
        |kind: &str| found.iter().find(|finding| finding["kind"] == kind).unwrap_or_else(|| panic!("{found:?}"));
    assert!(of_kind("permissions")["subject"].as_str().unwrap().ends_with("vault/f"), "{found:?}");
    assert!(of_kind("not-watched")["remedy"].as_str().unwrap().contains("permission to read it"), "{found:?}");
    assert_eq!(found.len(), 2, "{found:?}");
    set_mode(&vault.root().join("f"), 0o755);
    set_mode(&vault.root(), 0o555);
    check(&doctor(), "permissions", false, &["searched, but not changed"]);
    set_mode(&vault.root(), 0o755);
}

#[cfg(unix)]
#[test]
fn a_place_for_the_index_that_cannot_be_written() {
    let vault = Vault::new("//- a.md\na cormorant\n");
    let home = vault.root().parent().unwrap().to_path_buf();
    set_mode(&home, 0o777);
    set_mode(&vault.root(), 0o777);
    assert!(run_unprivileged(&vault, "vault-index", &["--version"]).status.success());
    set_mode(&home, 0o555);
    let output = run_unprivileged(&vault, "vault-index", &["doctor", "--json"]);
    set_mode(&home, 0o777);
    check(&output, "permissions", true, &["index", "check its permissions"]);
}

#[test]
fn an_index_that_another_process_holds() {
    let vault = sound("//- a.md\na cormorant\n");
    let mut file = vault.index_file().into_os_string();
    file.push(".lock");
    let lock = lock_file(file.as_ref(), None, None).unwrap().unwrap();
    let own = format!("process {}", std::process::id());
    check(&doctor(&vault), "locked", true, &["index.db: ", &own, "for 3 s", "end it by its number"]);
    // What a killed process leaves behind holds nothing.
    drop(lock);
    assert_eq!(findings(&doctor(&vault)), [] as [Value; 0]);
}

#[test]
fn two_indexes() {
    let vault = sound("//- a.md\na cormorant\n//- Sub/b.md\na heron\n");
    let home = vault.root().parent().unwrap().to_path_buf();
    let with_default = |folder: &str, arguments: &[&str]| {
        let mut with = command(&vault, "vault-index", arguments);
        with.env_remove("VAULT_INDEX_FILE").env("VAULT_DIR", home.join(folder)).output().unwrap()
    };
    let sync = ["sync", "--model", "hashed"];
    assert!(with_default("vault", &sync).status.success());
    check(&doctor(&vault), "other-index", false, &["a second index", "VAULT_INDEX_FILE", "vault-index forget"]);
    assert!(with_default("vault", &["forget", "--yes"]).status.success());
    // One of a folder in the vault, which commands in it would use.
    assert!(with_default("vault/Sub", &sync).status.success());
    check(&doctor(&vault), "other-index", false, &["vault/Sub: this folder is in the vault", "vault-index forget"]);
    // And the other way round.
    assert!(with_default("vault", &sync).status.success());
    check(&with_default("vault/Sub", &["doctor", "--json"]), "other-index", false, &["vault: this folder contains"]);
    std::fs::remove_dir_all(vault.root().join("Sub")).unwrap();
    check(
        &with_default("vault", &["doctor", "--json"]),
        "other-index",
        false,
        &["1 index is of a folder that no longer exists: ", "vault/Sub", "vault-index adopt"],
    );
}

#[cfg(target_os = "linux")]
#[test]
fn limits_of_inotify() {
    let vault = sound("//- a.md\na cormorant\n//- f/b.md\na heron\n");
    let plain = command(&vault, "vault-index", &["doctor", "--json"]);
    let limited = |limit: &str, value: &str| {
        // In a user namespace of its own, the limits are those of nobody else.
        let mut shell = Command::new("unshare");
        shell.args(["-Ur", "sh", "-c", &format!("echo {value} > /proc/sys/user/{limit} && exec \"$@\"")]);
        shell.arg("sh").arg(plain.get_program()).args(plain.get_args()).env_clear();
        shell.env("PATH", "/usr/bin:/bin").envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        shell.output().unwrap()
    };
    check(&limited("max_inotify_watches", "1"), "not-watched", true, &["does not report changes", "max_user_watches"]);
    check(&limited("max_inotify_instances", "0"), "not-watched", true, &["does not report changes", "sysctl"]);
    assert_eq!(findings(&limited("max_inotify_watches", "100")), [] as [Value; 0]);
}

#[test]
fn a_model_that_does_not_read_the_language() {
    let vault = Vault::new("");
    for number in 0..4 {
        let text = "Der Apfelbaum wird im Winter geschnitten, wenn er kein Laub mehr trägt und es nicht friert. Danach \
                    werden die Wunden versorgt, damit keine Pilze in das Holz eindringen können.";
        vault.write(&format!("{number}.md"), format!("# Notiz {number}\n\n{text}\n"));
    }
    assert!(run(&vault, "vault-index", &["sync", "--model", "minilm"]).status.success());
    check(&doctor(&vault), "model", true, &["German", "vault-index rebuild --model"]);
}

#[test]
fn passages_without_vectors() {
    let vault = Vault::new("//- a.md\na cormorant\n//- b.md\na heron\n");
    assert!(run(&vault, "vault-index", &["sync", "--no-vectors", "--model", "hashed"]).status.success());
    check(&doctor(&vault), "no-vectors", true, &["no vector yet", "vault-index sync"]);
}

#[test]
fn a_damaged_index() {
    let vault = sound("//- a.md\na cormorant\n");
    std::fs::write(vault.index_file(), "no database").unwrap();
    check(&doctor(&vault), "index", true, &["index.db: "]);
}
