//! `vault-agent demo`: a tour of the programs on notes that come with them.
//!
//! Each step runs this file as a person would run the command that is printed, in folders that are deleted at the end.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use serde::Deserialize;
use vault_search::{CliResult, ENDED_BY_SIGNAL, Failure, Out, Outcome, SignalGuard, command_named, counted};
use vault_tools::Error;

/// The vault `testdata/vaults/demo`; a test compares them.
const VAULT: &str = include_str!("../../data/demo-vault.json");

/// The plan of the tour, beside the vault.
const PLAN: &str = r##"{
  "version": "1.0",
  "goal": "A note in Projects for each idea",
  "riskLevel": "writes",
  "steps": [
    { "id": "ideas", "tool": "util.parseMarkdownBullets", "args": { "text": "- Cold frame\n- Rain barrel" } },
    { "id": "notes", "tool": "vault.createFile", "foreach": { "from": "$steps.ideas.items", "itemName": "idea" },
      "args": { "path": "Projects/${idea.text}.md", "content": "# ${idea.text}\n\nSee [[Garden/Ideas]].\n" } }
  ]
}
"##;

const PLAN_FILE: &str = "plan.json";

/// How often to check whether a command has ended.
const TICK: Duration = Duration::from_millis(10);

#[derive(Debug, Args)]
pub(super) struct DemoArgs {
    /// Keep the folder with the notes, and print its path
    #[arg(long)]
    pub keep: bool,
}

/// The content of a file of the vault.
#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Bytes { base64: String },
}

/// A command of the tour: why it is run, and its words.
struct Step {
    about: &'static str,
    words: &'static [&'static str],
}

const STEPS: [Step; 7] = [
    Step { about: "Index the notes: their words, their links, and their meaning.", words: &["vault-index", "sync"] },
    Step {
        about: "Search by meaning: the note that answers has hardly a word of this.",
        words: &["vault-search", "-n", "1", "trimming orchard limbs"],
    },
    Step {
        about: "Rename a note. First see what would change: the links to it follow.",
        words: &["vault-tools", "rename", "Garden/Soil.md", "Garden/Clay loam.md", "--dry-run"],
    },
    Step {
        about: "Do it. Without --yes you are shown the changes and asked.",
        words: &["vault-tools", "rename", "Garden/Soil.md", "Garden/Clay loam.md", "--yes"],
    },
    Step { about: "Take it back, to the byte.", words: &["vault-tools", "undo", "--yes"] },
    Step {
        about: "A plan is a list of steps, from a model or by hand. See all it would do before it runs.",
        words: &["vault-tools", "plan", "preview", PLAN_FILE],
    },
    Step {
        about: "Ask. Without a model, you get the passages that an answer would be made from.",
        words: &["vault-agent", "ask", "how do I keep slugs off the lettuce?"],
    },
];

pub(super) fn demo(args: &DemoArgs, out: &mut Out) -> CliResult {
    // A signal ends the tour here, not the process, so that the folder is deleted.
    let listening = vault_search::listen();
    let folder = tempfile::Builder::new().prefix("vault-demo-").tempdir();
    let mut folder = folder.map_err(|error| Error::io(std::env::temp_dir().display(), &error))?;
    folder.disable_cleanup(args.keep);
    let vault = folder.path().join("Demo notes");
    let files = unpack(&vault)?;
    write(&folder.path().join(PLAN_FILE), PLAN.as_bytes())?;
    out.line(&format!("A tour of a vault of {}, unpacked into a temporary folder.", counted(files, "file")))?;
    out.line("Each command below runs as you see it. Nothing else on this machine is read or written.")?;
    for (number, step) in STEPS.iter().enumerate() {
        out.line("")?;
        out.line(&out.paint.bold(&format!("{}. {}", number + 1, step.about)))?;
        out.line(&format!("$ {}", shown(step.words)))?;
        run(step, folder.path(), &vault, &listening, out).map_err(|failure| match failure {
            Failure::Interrupted(_) if args.keep => {
                Failure::Interrupted(format!("the notes are kept in {}", vault.display()))
            }
            failure => failure,
        })?;
    }
    out.line("")?;
    out.line(&out.paint.bold("What you have seen"))?;
    out.line("A search by meaning, links that follow a rename, undo, a plan's preview, and a question.")?;
    out.line("No model, key or network was used, and no note was changed without showing it first.")?;
    match args.keep {
        true => out.line(&format!("The notes are kept in {}", vault.display()))?,
        false => out.line("The folder is deleted now; --keep keeps it.")?,
    }
    out.line("")?;
    out.line(&out.paint.bold("With your own notes"))?;
    out.line("  vault-agent setup                              three questions, then the first search")?;
    out.line("  vault-search --vault ~/Notes \"what you think\"    or search at once; ~/Notes is your folder")?;
    Ok(Outcome::Done)
}

/// Writes the files of the vault, and returns how many there are.
fn unpack(vault: &Path) -> CliResult<usize> {
    let files: BTreeMap<String, Content> = serde_json::from_str(VAULT)?;
    for (path, content) in &files {
        let file = vault.join(path);
        match content {
            Content::Text(text) => write(&file, text.as_bytes())?,
            Content::Bytes { base64 } => {
                let bytes = STANDARD.decode(base64).map_err(|error| Failure::Error(format!("{path}: {error}")))?;
                write(&file, &bytes)?;
            }
        }
    }
    Ok(files.len())
}

fn write(file: &Path, bytes: &[u8]) -> CliResult<()> {
    let folder = file.parent().unwrap_or(file);
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(file, bytes))
        .map_err(|error| Error::io(file.display(), &error).into())
}

/// Runs a command in the folder, with an empty configuration and an index and journal of its own.
fn run(step: &Step, folder: &Path, vault: &Path, listening: &SignalGuard, out: &mut Out) -> CliResult<()> {
    out.flush()?;
    let [program, words @ ..] = step.words else { return Ok(()) };
    let mut command = command_named(program).map_err(|error| Error::io("this program", &error))?;
    let is_ours = |name: &str| name.starts_with("VAULT_");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_ours)) {
        command.env_remove(name);
    }
    let home = folder.join("home");
    for name in ["HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "APPDATA", "LOCALAPPDATA"] {
        command.env(name, &home);
    }
    // Without a terminal to read from, nothing is asked.
    command.args(words).env("VAULT_DIR", vault).env("VAULT_BACKGROUND", "0").current_dir(folder).stdin(Stdio::null());
    let failed = |error| Error::io("this program", &error);
    let mut child = command.spawn().map_err(failed)?;
    let status = loop {
        // A signal may reach only this process.
        if listening.is_cancelled() {
            let _ = child.kill();
        }
        match child.try_wait().map_err(failed)? {
            Some(status) => break status,
            None => std::thread::sleep(TICK),
        }
    };
    // The command can have ended by a signal that this process has not handled yet.
    let is_interrupted = listening.is_cancelled() || status.code() == Some(i32::from(ENDED_BY_SIGNAL));
    match status.success() {
        _ if is_interrupted => Err(Failure::Interrupted("the tour's folder is deleted".into())),
        true => Ok(()),
        false => Err(Failure::Error(format!("the tour ended early: `{}` ended with {status}", shown(step.words)))),
    }
}

/// The command as a person types it.
fn shown(words: &[&str]) -> String {
    let quoted = |word: &&str| if word.contains([' ', '?']) { format!("\"{word}\"") } else { (*word).to_owned() };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}
