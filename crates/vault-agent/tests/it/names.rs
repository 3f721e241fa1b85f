//! One file answers to four names: links to it in archives, and the names that launchers give.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::stdio::{PROGRAM, Place};

const NAMES: [&str; 4] = ["vault-search", "vault-index", "vault-tools", "vault-agent"];

/// A folder with the program under one name and nothing else. It is beside the program, for a link leads to no other
/// file system.
fn alone(name: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = folder.path().join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    std::fs::hard_link(PROGRAM, &file).unwrap();
    (folder, file)
}

/// What a command prints, with exit code 0.
fn output(program: &Path, args: &[&str], home: &Path) -> String {
    let mut command = Command::new(program);
    command.args(args).env_clear().env("HOME", home).env("XDG_CONFIG_HOME", home).env("XDG_CACHE_HOME", home);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{program:?} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_link_runs_the_command_of_its_name() {
    let place = Place::new("//- Orchard.md\nPrune trees. See [[Nothing]].\n");
    let vault = place.vault();
    let vault = vault.to_str().unwrap();
    let run = |name: &str, args: &[&str]| output(&alone(name).1, args, &place.home());
    for name in NAMES {
        let (_folder, file) = alone(name);
        assert!(output(&file, &["--version"], &place.home()).starts_with(&format!("{name} ")));
        assert!(output(&file, &["--help"], &place.home()).contains(&format!("Usage: {name}")), "{name}");
    }
    let found = run("vault-search", &["--vault", vault, "--json", "--mode", "lexical", "prune"]);
    assert!(found.contains("Orchard.md"), "{found}");
    assert!(run("vault-index", &["unresolved", "--vault", vault]).contains("Nothing"));
    assert!(run("vault-tools", &["list"]).contains("search"));
}

#[test]
fn other_names_are_the_agent() {
    let (_folder, file) = alone("notes");
    assert!(output(&file, &["--version"], file.parent().unwrap()).starts_with("vault-agent "));
}

#[test]
fn a_launcher_names_the_command() {
    let home = tempfile::tempdir().unwrap();
    for name in NAMES {
        let said = output(Path::new(PROGRAM), &["--started-as", name, "--help"], home.path());
        assert!(said.contains(&format!("Usage: {name} ")), "{name}: {said}");
    }
}

/// A symbolic link to the one file is resolved by the system, so that the name has to be said.
#[cfg(unix)]
#[test]
fn a_service_starts_the_command_again() {
    let place = Place::new("//- A.md\nText.\n");
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("vault-index");
    std::os::unix::fs::symlink(PROGRAM, &link).unwrap();
    let (_folder, hard) = alone("vault-index");
    for (file, expected) in [(&link, PROGRAM), (&hard, hard.to_str().unwrap())] {
        let vault = place.vault();
        let service = output(file, &["watch", "--print-service", "--vault", vault.to_str().unwrap()], &place.home());
        assert!(service.contains(expected), "{service}");
        assert_eq!(service.contains("--started-as"), file == &link, "{service}");
    }
}
