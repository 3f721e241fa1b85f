//! What only a terminal shows.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::commands::{command, run, stdout};
use crate::vault::Vault;

/// Starts a command line whose output and errors are terminals of 80 columns or not, and returns the other side.
pub fn start_at(vault: &Vault, mut command: Command, [out, err]: [bool; 2]) -> (Child, File) {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let side = || File::from(rustix::fs::open(&name, flags, Mode::empty()).unwrap());
    let stdio = |is_terminal| if is_terminal { Stdio::from(side()) } else { Stdio::null() };
    command.env("TERM", "xterm").stdout(stdio(out)).stderr(stdio(err)).current_dir(vault.root());
    (command.spawn().unwrap(), File::from(terminal))
}

/// Runs a command line whose output and errors are terminals of 80 columns or not: what is shown, and the exit
/// code.
pub fn run_at(vault: &Vault, command: Command, [out, err]: [bool; 2]) -> (String, Option<i32>) {
    let (mut child, mut terminal) = start_at(vault, command, [out, err]);
    let mut shown = Vec::new();
    // Ends when no process has the terminal open: a process that stays behind must not. Linux tells that by an error.
    // One that was never opened has no end.
    if out || err {
        let _ = terminal.read_to_end(&mut shown);
    }
    let code = child.wait().unwrap().code();
    (String::from_utf8_lossy(&shown).replace("\r\n", "\n"), code)
}

fn vault() -> Vault {
    let vault = Vault::new(
        "//- Heron.md
        # Heron

        A heron stood at the river.",
    );
    assert!(run(&vault, "vault-index", &["sync", "--model", "hashed"]).status.success());
    vault
}

fn at_terminal(vault: &Vault, program: &str, args: &[&str]) -> (String, Option<i32>) {
    run_at(vault, command(vault, program, args), [true, true])
}

#[test]
fn notices_break_between_words() {
    let words = ["quetzal", "ocelot", "kinkajou", "axolotl"].map(|word| word.repeat(3));
    let (shown, code) = at_terminal(&vault(), "vault-search", &["--mode", "lexical", "heron", &words.join(" ")]);
    let lines: Vec<&str> = shown.lines().filter(|line| line.contains("lotl") || line.contains("zal")).collect();
    assert_eq!(
        (lines, code),
        (
            vec![
                "note: no note has quetzalquetzalquetzal, ocelotocelotocelot,",
                "  kinkajoukinkajoukinkajou or axolotlaxolotlaxolotl",
            ],
            Some(0)
        )
    );
}

#[test]
fn the_graph_is_no_flood() {
    let vault = vault();
    let (shown, code) = at_terminal(&vault, "vault-index", &["graph"]);
    assert!(shown.starts_with("error: ") && shown.contains("--format html -o graph.html"), "{shown}");
    assert_eq!(code, Some(2));
    let (shown, code) = at_terminal(&vault, "vault-index", &["graph", "--format", "json"]);
    assert!(shown.contains("Heron.md") && code == Some(0), "{shown}");
    assert!(stdout(&run(&vault, "vault-index", &["graph"])).starts_with("{\"nodes\""));
}

/// A program that says how it was called.
fn fake(folder: &Path, name: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;

    let program = folder.join(name);
    std::fs::write(&program, format!("#!/bin/sh\necho {name} \"$@\"\n")).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    program
}

#[test]
fn a_hit_is_opened_at_its_line() {
    let vault = vault();
    vault.write("Other.md", "Heron and heron.\n");
    let folder = tempfile::tempdir().unwrap();
    let (nvim, code) = (fake(folder.path(), "nvim"), fake(folder.path(), "code"));
    fake(folder.path(), "xdg-open");
    let root = vault.root().canonicalize().unwrap();
    let open = |args: &[&str], variables: &[(&str, &Path)]| {
        let mut command = command(&vault, "vault-search", &[&["--mode", "lexical"], args].concat());
        command.env_remove("VISUAL").env_remove("EDITOR").envs(variables.iter().copied());
        let (shown, code) = run_at(&vault, command, [true, true]);
        (shown.trim_end().replace(root.to_str().unwrap(), ""), code)
    };
    let river = ["river", "--open"];
    assert_eq!(open(&river, &[("EDITOR", &nvim)]), ("nvim +3 /Heron.md".to_owned(), Some(0)));
    let both = [("EDITOR", nvim.as_path()), ("VISUAL", code.as_path())];
    assert_eq!(open(&river, &both), ("code -g /Heron.md:3".to_owned(), Some(0)));
    assert_eq!(open(&["-n", "1", "heron", "--open=2"], &[("EDITOR", &nvim)]).0, "nvim +1 /Other.md");
    let (shown, code) = open(&["heron", "--open=3"], &[("EDITOR", &nvim)]);
    assert_eq!((shown.as_str(), code), ("note: there is no result 3, only 2 results", Some(1)));
    let (shown, code) = open(&river, &[]);
    assert!(shown.starts_with("error: no editor is configured") && code == Some(2), "{shown}");
    let (shown, code) = open(&river, &[("EDITOR", Path::new("false"))]);
    assert_eq!((shown.as_str(), code), ("error: the editor `false` ended with exit code 1", Some(2)));

    // The setting comes first.
    let config = tempfile::tempdir().unwrap();
    std::fs::create_dir(config.path().join("vault-index")).unwrap();
    std::fs::write(config.path().join("vault-index/config.toml"), "editor = 'obsidian'\n").unwrap();
    let path = std::env::join_paths([folder.path(), Path::new("/usr/bin"), Path::new("/bin")]).unwrap();
    let variables = [("EDITOR", nvim.as_path()), ("XDG_CONFIG_HOME", config.path()), ("PATH", Path::new(&path))];
    let (shown, code) = open(&river, &variables);
    assert!(shown.starts_with("xdg-open obsidian://open?path=%2F") && shown.ends_with("%2FHeron.md"), "{shown}");
    assert_eq!(code, Some(0));
}
