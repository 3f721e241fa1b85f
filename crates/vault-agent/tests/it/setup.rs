//! `vault-agent setup`: three questions at a terminal, or options, and what is written.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::stdio::Place;
#[cfg(unix)]
use crate::terminal::Terminal;

const NOTES: &str = "//- Roses.md\n---\ntags: [garden]\n---\nPrune the roses in late winter.\n//- Soil.md\n#garden Lime makes it sweet.\n";

/// The program in a home without a vault.
fn command(place: &Place, args: &[&str]) -> Command {
    let mut command = place.command(args);
    command.env_remove("VAULT_DIR").current_dir(place.home());
    command
}

fn setup(place: &Place, args: &[&str]) -> Output {
    command(place, &[&["setup"], args].concat()).output().unwrap()
}

fn read(place: &Place, name: &str) -> String {
    std::fs::read_to_string(place.home().join(name)).unwrap_or_default()
}

#[track_caller]
fn done(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

#[track_caller]
fn refused(output: &Output, says: &[&str]) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    for part in says {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
}

fn setting(place: &Place, name: &str) -> Value {
    let output = command(place, &["config", "show", "--json"]).output().unwrap();
    let all: Value = serde_json::from_str(&done(&output)).unwrap();
    all.as_array().unwrap().iter().find(|one| one["setting"] == name).unwrap()["value"].clone()
}

#[test]
fn everything_by_options() {
    let place = Place::new(NOTES);
    let vault = place.vault().display().to_string();
    let said = done(&setup(&place, &["--vault", &vault, "--assistant", "codex", "--provider", "none"]));
    for part in [
        "2 added",
        "nothing leaves this machine",
        "Added the server to Codex CLI",
        "Try this:\n  restart Codex CLI, and ask it: What do my notes say about garden?",
    ] {
        assert!(said.contains(part), "{part:?} is not in {said}");
    }
    assert!(read(&place, "vault-index/config.toml").contains("vault = "));
    assert!(read(&place, ".codex/config.toml").contains("[mcp_servers.vault]"));
    // From now on, the vault is found from anywhere, and everything in it has been indexed.
    let doctor = command(&place, &["doctor"]).output().unwrap();
    assert!(done(&doctor).starts_with("nothing wrong was found: 2 notes in "));
    // A second time changes nothing.
    let said = done(&setup(&place, &["--vault", &vault, "--assistant", "none", "--provider", "none", "--no-sync"]));
    assert!(said.ends_with("Try this:\n  vault-search \"garden\"\n"), "{said}");
}

#[test]
fn a_folder_without_notes_is_said_to_have_none() {
    let place = Place::new("");
    let vault = place.vault().display().to_string();
    let output = setup(&place, &["--vault", &vault, "--assistant", "none", "--provider", "none"]);
    done(&output);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("the folder holds no notes yet"), "{said}");
}

#[test]
fn a_model_is_set_and_removed() {
    let place = Place::new(NOTES);
    let vault = place.vault().display().to_string();
    let with = |more: &[&str]| {
        done(&setup(&place, &[&["--vault", &vault, "--assistant", "none", "--no-sync"], more].concat()))
    };
    let said = with(&["--provider", "ollama", "--model", "qwen3:8b"]);
    assert!(said.contains("Model: qwen3:8b of ollama") && said.contains("vault-agent ask \""), "{said}");
    assert_eq!((setting(&place, "provider"), setting(&place, "model")), (json!("ollama"), json!("qwen3:8b")));
    with(&["--provider", "none"]);
    assert_eq!((setting(&place, "provider"), setting(&place, "model")), (Value::Null, Value::Null));
}

#[test]
fn what_the_user_has_written_stays() {
    let place = Place::new(NOTES);
    place.configure("config.toml", "# mine\nlimit = 5\nvault = \"/old\"  # the old one\n");
    let vault = place.vault().display().to_string();
    let output = setup(&place, &["--vault", &vault, "--assistant", "none", "--provider", "none", "--no-sync"]);
    done(&output);
    assert!(String::from_utf8_lossy(&output.stderr).contains("it replaces \"/old\""), "{output:?}");
    let config = read(&place, "vault-index/config.toml");
    assert!(config.starts_with("# mine\nlimit = 5\n") && !config.contains("/old"), "{config}");
}

#[test]
fn without_a_terminal_every_answer_must_be_given() {
    let place = Place::new(NOTES);
    let vault = place.vault().display().to_string();
    refused(&setup(&place, &[]), &["no terminal", "--vault DIR", "--assistant NAME", "--provider PROVIDER"]);
    refused(&setup(&place, &["--vault", &vault, "--assistant", "none"]), &["--provider PROVIDER (or none)"]);
    refused(&setup(&place, &["--assistant", "clippy"]), &["clippy", "claude-code", "or none"]);
    refused(&setup(&place, &["--provider", "nobody"]), &["nobody"]);
    let nowhere = setup(&place, &["--vault", "/no/such", "--assistant", "none", "--provider", "none"]);
    refused(&nowhere, &["/no/such: there is no such folder"]);
    assert!(!Path::new(&place.home().join("vault-index")).exists(), "nothing is written before all is answered");
}

#[cfg(unix)]
#[test]
fn three_questions_at_a_terminal() {
    let place = Place::new(NOTES);
    std::fs::create_dir(place.home().join("obsidian")).unwrap();
    let registry = json!({ "vaults": { "a1": { "path": place.vault(), "ts": 1, "open": true } } });
    std::fs::write(place.home().join("obsidian/obsidian.json"), registry.to_string()).unwrap();
    std::fs::create_dir(place.home().join(".codex")).unwrap();
    std::fs::write(place.home().join(".codex/config.toml"), "model = \"x\"\n").unwrap();
    let mut command = command(&place, &["setup"]);
    command.env("ANTHROPIC_API_KEY", "none").env("TERM", "xterm");
    let mut terminal = Terminal::start(&command, 100);
    terminal.until("1 of 3. Which folder holds your notes?");
    terminal.until("Notes");
    terminal.until("Number or folder (empty for 1):");
    // A wrong answer is asked again.
    terminal.press("/no/such\r");
    terminal.until("there is no such folder");
    terminal.until("Number or folder (empty for 1):");
    terminal.press("\r");
    terminal.until("2 of 3. Which assistant or editor");
    terminal.until("Codex CLI       is on this machine");
    terminal.until("Number (empty for none):");
    for wrong in ["codex\r", "99\r"] {
        terminal.press(wrong);
        terminal.until("type a number from the list");
        terminal.until("Number (empty for none):");
    }
    terminal.press("3\r");
    terminal.until("3 of 3. Which model answers your questions?");
    terminal.until("Leaves it, with a hosted model:");
    terminal.until("anthropic");
    terminal.until("Number (empty for none):");
    terminal.press("\r");
    terminal.until("Try this:");
    let (screen, code) = terminal.end();
    assert_eq!(code, 0, "{screen}");
    assert!(screen.contains("2 added") && screen.contains("ask it: What do my notes say about garden?"), "{screen}");
    assert!(read(&place, ".codex/config.toml").starts_with("model = \"x\"\n"));
    assert!(read(&place, ".codex/config.toml").contains("[mcp_servers.vault]"));
    assert!(read(&place, "vault-index/config.toml").contains("/Notes"));
}

#[cfg(unix)]
#[test]
fn leaving_a_question_writes_nothing() {
    let place = Place::new(NOTES);
    let vault = place.vault().display().to_string();
    // The third question lists what can be used; this provider's key is set.
    let command = |place: &Place, args: &[&str]| {
        let mut command = command(place, args);
        command.env("ANTHROPIC_API_KEY", "none");
        command
    };
    let mut terminal = Terminal::start(&command(&place, &["setup"]), 100);
    terminal.until("Folder:");
    terminal.press(&format!("{vault}\r"));
    terminal.until("Number (empty for none):");
    terminal.press("\x04");
    let (screen, code) = terminal.end();
    assert!(code == 2 && screen.contains("nothing was set up"), "{code} {screen}");
    assert!(!place.home().join("vault-index").exists());
    for answered in 0..=2 {
        let mut terminal = Terminal::start(&command(&place, &["setup"]), 100);
        terminal.until("Folder:");
        if answered > 0 {
            terminal.press(&format!("{vault}\r"));
            terminal.until("Number (empty for none):");
        }
        if answered > 1 {
            terminal.press("\r");
            terminal.until("3 of 3.");
            terminal.until("Number (empty for none):");
        }
        terminal.press("\x03");
        let (screen, code) = terminal.end();
        assert_eq!(code, 130, "{screen}");
        assert!(!place.home().join("vault-index").exists(), "{answered}");
    }
}

#[test]
fn doctor_names_settings_that_are_invalid() {
    let place = Place::new(NOTES);
    place.configure("agent.toml", "\nmax_turns = \"many\"\n");
    let output = place.command(&["doctor", "--json"]).output().unwrap();
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{found}");
    let settings: Vec<&Value> = found.as_array().unwrap().iter().filter(|one| one["kind"] == "settings").collect();
    let [one] = settings.as_slice() else { panic!("{found}") };
    assert!(one["subject"].as_str().unwrap().contains("agent.toml"), "{one}");
    assert!(one["message"].as_str().unwrap().contains("max_turns") && one["is_problem"] == true, "{one}");
    // The notes are examined, too.
    assert!(found.as_array().unwrap().iter().any(|one| one["kind"] == "no-vectors"), "{found}");
}
