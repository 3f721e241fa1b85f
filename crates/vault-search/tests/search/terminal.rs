//! What only a terminal shows.

use std::fs::File;
use std::io::Read;
use std::process::{Command, Stdio};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::commands::{command, run, stdout};
use crate::vault::Vault;

/// Runs a command line whose output and errors are terminals of 80 columns or not: what is shown, and the exit
/// code.
pub fn run_at(vault: &Vault, mut command: Command, [out, err]: [bool; 2]) -> (String, Option<i32>) {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let side = || File::from(rustix::fs::open(&name, flags, Mode::empty()).unwrap());
    let stdio = |is_terminal| if is_terminal { Stdio::from(side()) } else { Stdio::null() };
    command.env("TERM", "xterm").stdout(stdio(out)).stderr(stdio(err)).current_dir(vault.root());
    let mut child = command.spawn().unwrap();
    drop(command);
    let mut shown = Vec::new();
    // Ends when no process has the terminal open: a process that stays behind must not. Linux tells that by an error.
    // One that was never opened has no end.
    if out || err {
        let _ = File::from(terminal).read_to_end(&mut shown);
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
