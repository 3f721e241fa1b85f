//! The configurations of assistants: what `mcp install` writes, what it leaves alone, and that the server starts by it.

use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::{Value, json};

use crate::stdio::{Client, Era, PROGRAM, Place};

/// Each client with the file of its configuration, below the home that the tests set.
const CLIENTS: [(&str, &str); 7] = [
    ("claude-code", ".claude.json"),
    ("claude-desktop", "Claude/claude_desktop_config.json"),
    ("codex", ".codex/config.toml"),
    ("cursor", ".cursor/mcp.json"),
    ("vscode", "Code/User/mcp.json"),
    ("zed", "zed/settings.json"),
    ("opencode", "opencode/opencode.json"),
];

fn run(place: &Place, args: &[&str]) -> Output {
    place.command(&[&["mcp"], args].concat()).output().unwrap()
}

#[track_caller]
fn done(place: &Place, args: &[&str]) -> String {
    let output = run(place, args);
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn refused(place: &Place, args: &[&str]) -> String {
    let output = run(place, args);
    assert!(matches!(output.status.code(), Some(2 | 3)), "{args:?}: {output:?}");
    String::from_utf8(output.stderr).unwrap()
}

fn write(file: &Path, text: &str) {
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
}

/// The command that a configuration names, with its arguments and variables.
fn start_in(file: &Path) -> (Vec<String>, Value) {
    let text = std::fs::read_to_string(file).unwrap();
    let config: Value = match file.extension().is_some_and(|ending| ending == "toml") {
        true => toml::from_str(&text).unwrap(),
        false => serde_json::from_str(&text).unwrap(),
    };
    let servers = ["mcpServers", "mcp_servers", "servers", "context_servers", "mcp"];
    let server = servers.iter().find_map(|key| config.get(key)?.get("vault")).unwrap();
    let texts =
        |value: &Value| value.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect();
    match &server["command"] {
        Value::String(program) => {
            let mut command: Vec<String> = texts(&server["args"]);
            command.insert(0, program.clone());
            (command, server["env"].clone())
        }
        command => (texts(command), server["environment"].clone()),
    }
}

#[test]
fn every_client_starts_the_server_by_what_is_written() {
    for (client, file) in CLIENTS {
        let place = Place::new("//- a.md\nAbout herons.\n");
        let file = place.home().join(file);
        done(&place, &["install", client]);
        let (command, env) = start_in(&file);
        let vault = place.vault().canonicalize().unwrap().display().to_string();
        assert_eq!(command[1..4], ["mcp", "--vault", &vault], "{client}");
        assert!(Path::new(&command[0]).is_absolute() && Path::new(&command[0]).ends_with("vault-agent"), "{client}");

        // As the client starts it: elsewhere, and with few variables.
        let mut server = std::process::Command::new(&command[0]);
        server.args(&command[1..]).env_clear().env("HOME", place.home()).current_dir("/");
        server.envs(env.as_object().unwrap().iter().map(|(name, value)| (name, value.as_str().unwrap())));
        let mut server = Client::of(server, Era::New, json!({}));
        assert!(server.done("read_note", json!({ "path": "a.md" })).to_string().contains("herons"), "{client}");

        let written = std::fs::read_to_string(&file).unwrap();
        assert!(done(&place, &["install", client]).contains("already"), "{client}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), written, "{client}");
        assert_eq!(done(&place, &["install", client, "--print"]), written, "{client}");
        done(&place, &["uninstall", client]);
        assert!(!std::fs::read_to_string(&file).unwrap().contains("vault"), "{client}");
        assert!(done(&place, &["uninstall", client]).contains("does not have it"), "{client}");
    }
}

#[test]
fn everything_else_in_a_configuration_stays_as_it_is() {
    let json = "\u{feff}// mine\n{\n\t\"mcpServers\": {\n\t\t\"other\": { \"command\": \"x\" }, // stays\n\t},\n\t\"z\": [1, 2,],\n}\n";
    let toml = "# mine\nmodel = 'x'\n\n[mcp_servers.other] # stays\ncommand = \"y\"\n\n[tui]\ntheme = \"dark\"\n";
    for (client, file, text) in [("cursor", ".cursor/mcp.json", json), ("codex", ".codex/config.toml", toml)] {
        let place = Place::new("//- a.md\nx\n");
        let file = place.home().join(file);
        write(&file, text);
        let said = done(&place, &["install", client]);
        let backup = PathBuf::from(format!("{}.backup-1", file.display()));
        assert!(said.contains(&*backup.to_string_lossy()), "{said}");
        assert_eq!(std::fs::read_to_string(&backup).unwrap(), text);
        let with = std::fs::read_to_string(&file).unwrap();
        // Every line that was there still is, in the same order.
        let mut lines = with.lines();
        assert!(text.lines().all(|line| lines.any(|other| other == line)), "{with}");
        done(&place, &["install", client, "--read-only"]);
        assert_eq!(std::fs::read_to_string(format!("{}.backup-2", file.display())).unwrap(), with);
        done(&place, &["uninstall", client]);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text, "{client}");
    }
}

#[test]
fn what_others_wrote_into_the_entry_stays() {
    let place = Place::new("//- a.md\nx\n");
    let file = place.home().join(".cursor/mcp.json");
    done(&place, &["install", "cursor"]);
    let text = std::fs::read_to_string(&file).unwrap().replace("\"type\"", "\"autoApprove\": [], \"type\"");
    write(&file, &text);
    done(&place, &["install", "cursor", "--toolset", "notes,bulk"]);
    let config: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(config["mcpServers"]["vault"]["autoApprove"], json!([]));
    let args = config["mcpServers"]["vault"]["args"].as_array().unwrap();
    assert_eq!(args[3..], [json!("--toolset"), json!("notes,bulk")]);
}

#[test]
fn nothing_is_written_where_it_could_do_harm() {
    let place = Place::new("//- a.md\nx\n");
    let file = place.home().join(".cursor/mcp.json");
    for (text, said) in [
        ("{ \"mcpServers\": {", "cannot be parsed"),
        ("{ \"mcpServers\": [] }", "mcpServers is not an object"),
        ("[]", "not an object"),
        ("{ \"mcpServers\": { \"vault\": { \"command\": \"hvac\" } } }", "another server named `vault`"),
    ] {
        write(&file, text);
        let error = refused(&place, &["install", "cursor"]);
        assert!(error.contains(said) && error.contains("mcp.json"), "{error}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    }
    // Another's server is not removed either.
    assert!(done(&place, &["uninstall", "cursor"]).contains("does not have it"));
    assert!(refused(&place, &["install", "cursor", "--vault", "nowhere"]).contains("nowhere"));
    assert_eq!(
        std::fs::read_dir(place.home().join(".cursor")).unwrap().count(),
        1,
        "no backup of what was not changed"
    );
}

#[cfg(unix)]
#[test]
fn a_configuration_that_is_a_link_stays_one_and_private() {
    use std::os::unix::fs::PermissionsExt;

    let place = Place::new("//- a.md\nx\n");
    let (file, real) = (place.home().join(".claude.json"), place.home().join("dotfiles/claude.json"));
    write(&real, "{ \"token\": \"secret\" }\n");
    std::fs::set_permissions(&real, PermissionsExt::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink(&real, &file).unwrap();
    done(&place, &["install", "claude-code"]);
    assert!(file.is_symlink());
    for file in [real.clone(), place.home().join("dotfiles/claude.json.backup-1")] {
        assert!(std::fs::read_to_string(&file).unwrap().contains("secret"));
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600, "{}", file.display());
    }
}

#[test]
fn a_client_is_trusted_only_when_that_is_asked_for_and_it_is_said() {
    let place = Place::new("//- a.md\nx\n");
    for (client, file) in CLIENTS {
        let output = run(&place, &["install", client]);
        let (command, _) = start_in(&place.home().join(file));
        assert!(!command.contains(&"--trust-client".to_owned()), "{client}");
        let has_page = command.contains(&"--approval-page".to_owned());
        assert_eq!(has_page, client == "claude-desktop");
        assert_eq!(String::from_utf8_lossy(&output.stderr).contains("--approval-page"), has_page, "{output:?}");
    }
    let output = run(&place, &["install", "zed", "--trust-client"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("without your approval"), "{output:?}");
    assert!(start_in(&place.home().join("zed/settings.json")).0.contains(&"--trust-client".to_owned()));
}

#[test]
fn the_skill_names_only_tools_that_there_are() {
    let place = Place::new("//- a.md\nx\n");
    let skill = done(&place, &["skill"]);
    let mut client = place.client(Era::New, &[]);
    let listed = client.result("tools/list", json!({}));
    let tools: Vec<&str> =
        listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    let looks_like_one = |word: &&str| word.contains('_') && word.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    let named = skill.split('`').skip(1).step_by(2).filter(looks_like_one);
    let named: Vec<&str> = named.filter(|word| !["needs_approval", "expected_version"].contains(word)).collect();
    assert!(named.len() > 8, "{named:?}");
    assert!(named.iter().all(|name| tools.contains(name)), "{named:?} {tools:?}");
}

#[test]
fn the_pages_of_the_manual_show_what_is_written() {
    let pages = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/book/src/assistants");
    let place = Place::new("//- a.md\nx\n");
    let vault = place.vault().canonicalize().unwrap().display().to_string();
    for (client, _) in CLIENTS {
        let page = std::fs::read_to_string(format!("{pages}/{client}.md")).unwrap();
        let block = page.split("This adds to ").nth(1).unwrap();
        let block = block.split("```").nth(1).unwrap().split_once('\n').unwrap().1;
        let mut command = place.command(&["mcp", "install", client, "--print"]);
        for variable in ["XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"] {
            command.env_remove(variable);
        }
        let printed = String::from_utf8(command.output().unwrap().stdout).unwrap();
        let printed = printed.replace(&vault, "/home/ada/Notes").replace(PROGRAM, "/home/ada/.cargo/bin/vault-agent");
        assert_eq!(printed, block, "{client}");
    }
}
