//! The tour of `vault-agent demo`, which needs nothing and leaves nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use serde_json::{Value, json};

use crate::stdio::Place;

/// The files below a folder, by their paths.
fn files(root: &Path) -> BTreeMap<String, Vec<u8>> {
    fn walk(folder: &Path, root: &Path, files: &mut BTreeMap<String, Vec<u8>>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => walk(&path, root, files),
                false => {
                    let name = path.strip_prefix(root).unwrap().to_str().unwrap().replace('\\', "/");
                    files.insert(name, std::fs::read(&path).unwrap());
                }
            }
        }
    }
    let mut files_of = BTreeMap::new();
    walk(root, root, &mut files_of);
    files_of
}

fn test_vault() -> BTreeMap<String, Vec<u8>> {
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/vaults/demo"))
}

#[test]
fn the_vault_in_the_program_is_that_of_the_tests() {
    let content = |(path, bytes): (String, Vec<u8>)| match String::from_utf8(bytes) {
        Ok(text) => (path, Value::from(text)),
        Err(error) => {
            let text = base64::engine::general_purpose::STANDARD.encode(error.as_bytes());
            (path, json!({ "base64": text }))
        }
    };
    let vault: BTreeMap<String, Value> = test_vault().into_iter().map(content).collect();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/demo-vault.json");
    if std::env::var_os("WRITE_DEMO_VAULT").is_some() {
        std::fs::write(&file, serde_json::to_string_pretty(&vault).unwrap() + "\n").unwrap();
    }
    let there: BTreeMap<String, Value> = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let recipe = "data/demo-vault.json is out of date: WRITE_DEMO_VAULT=1 cargo test -p vault-agent the_vault_in_the";
    assert!(there == vault, "{recipe}");
}

#[test]
fn the_tour_shows_everything_and_leaves_nothing() {
    let place = Place::new("//- mine.md\nuntouched\n");
    let before = place.tree();
    let temporary = place.home().with_file_name("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let mut command = place.command(&["demo"]);
    // What a person has set must not change the tour.
    command.env("TMPDIR", &temporary).env("VAULT_AGENT_PROVIDER", "ollama").env("VAULT_MODEL", "nonsense");
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let mut at = 0;
    for part in [
        "$ vault-index sync",
        "76 added",
        "$ vault-search -n 1 \"trimming orchard limbs\"",
        "Garden/Pruning the apple tree.md:",
        "$ vault-tools rename Garden/Soil.md \"Garden/Clay loam.md\" --dry-run",
        "+A bucket with a lid stands under the sink at home. See also [[Clay loam]].",
        "$ vault-tools rename Garden/Soil.md \"Garden/Clay loam.md\" --yes",
        "4 links updated in 4 notes",
        "$ vault-tools undo --yes",
        "$ vault-tools plan preview plan.json",
        "create Projects/Cold frame.md",
        "$ vault-agent ask \"how do I keep slugs off the lettuce?\"",
        "Garden/Slugs & snails.md:",
        "What you have seen",
        "With your own notes",
        "vault-agent setup",
    ] {
        at += text[at..].find(part).unwrap_or_else(|| panic!("{part:?} is not next in:\n{}", &text[at..]));
    }
    assert_eq!(place.tree(), before);
    assert_eq!(files(&temporary), BTreeMap::new());
    assert_eq!(files(&place.home()), BTreeMap::new(), "nothing is written to the user's folders");
}

#[test]
fn a_tour_that_is_kept_has_the_notes_as_they_were_before_the_rename() {
    let place = Place::new("");
    let temporary = place.home().with_file_name("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let output = place.command(&["demo", "--keep"]).env("TMPDIR", &temporary).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let kept = text.lines().find_map(|line| line.strip_prefix("The notes are kept in ")).map(PathBuf::from);
    let kept = kept.unwrap_or_else(|| panic!("{text}"));
    assert!(kept.starts_with(temporary.canonicalize().unwrap()) || kept.starts_with(&temporary), "{kept:?}");
    assert!(files(&kept) == test_vault());
}

#[cfg(unix)]
#[test]
fn a_tour_that_is_interrupted_leaves_nothing() {
    use crate::terminal::Terminal;

    for moment in ["A tour of", "$ vault-index sync", "$ vault-search", "--yes", "preview", "$ vault-agent ask"] {
        let place = Place::new("");
        let temporary = place.home().with_file_name("tmp");
        std::fs::create_dir(&temporary).unwrap();
        let mut command = place.command(&["demo"]);
        command.env("TMPDIR", &temporary);
        let mut terminal = Terminal::start(&command, 100);
        terminal.until(moment);
        terminal.press("\x03");
        let (screen, code) = terminal.end();
        assert!(code == 130 && screen.contains("interrupted:"), "{moment}: {code} {screen}");
        assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0, "{moment}");
    }
}

#[test]
fn options_that_have_no_effect_are_refused() {
    let place = Place::new("");
    let output = place.command(&["demo", "--vault", "x"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--vault has no effect here"));
}
