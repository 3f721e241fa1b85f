//! Each example does what its first line says. The examples of notes run on the demo vault, those of agent-loop
//! offline.

mod agent_loop;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn demo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/vaults/demo")
}

/// Returns an example, which cargo builds beside the folder of this test.
fn program(name: &str) -> Command {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().and_then(Path::parent).unwrap().join("examples");
    Command::new(folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX)))
}

/// Returns an example of notes, with its own index.
fn example(name: &str, index: &tempfile::TempDir) -> Command {
    let mut command = program(name);
    command.env("VAULT_INDEX_FILE", index.path().join("index.db"));
    command
}

/// Copies the demo vault, with index and state beside it.
fn copy_of_demo() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let vault = folder.path().join("vault");
    for (path, bytes) in files(&demo()) {
        std::fs::create_dir_all(vault.join(&path).parent().unwrap()).unwrap();
        std::fs::write(vault.join(path), bytes).unwrap();
    }
    (folder, vault)
}

/// Returns all files below a folder, by their path in it.
fn files(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut found, mut folders) = (BTreeMap::new(), vec![root.to_path_buf()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => drop(found.insert(path.strip_prefix(root).unwrap().into(), std::fs::read(path).unwrap())),
            }
        }
    }
    found
}

/// Returns the output of an example that changes the copy, with these arguments and this answer.
fn change(name: &str, folder: &tempfile::TempDir, arguments: &[&str], answer: &str) -> String {
    let mut child = example(name, folder)
        .env("VAULT_STATE_FOLDER", folder.path().join("state"))
        .arg(folder.path().join("vault"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(answer.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the output for the demo vault and a query.
fn ask(name: &str, query: &str) -> String {
    let index = tempfile::tempdir().unwrap();
    let output = example(name, &index).arg(demo()).args(query.split(' ')).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn ask_your_vault() {
    let home = tempfile::tempdir().unwrap();
    let mut command = program("ask_your_vault");
    command.arg(demo()).arg("how do I keep bread fresh?").env("HOME", home.path()).env("XDG_CACHE_HOME", home.path());
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.starts_with("Your notes answer that:\n[") && said.contains(".md:"), "{said} {:?}", output.stderr);
}

#[test]
fn search_a_folder() {
    let answer = ask("search_a_folder", "naturally leavened loaf");
    assert!(answer.lines().next().is_some_and(|first| first.contains("Kitchen/Sourdough.md")), "{answer}");
    let answer = ask("search_a_folder", "path:NoSuchFolder bread");
    assert!(answer.starts_with("nothing"), "{answer}");
}

#[test]
fn an_embedder_of_your_own() {
    let answer = ask("an_embedder_of_your_own", "pruning trees");
    let first = answer.lines().next().unwrap_or_default();
    assert!(first.contains("Garden/Pruning the apple tree.md"), "{answer}");
    assert!(!answer.contains("Kitchen/"), "the model knows gardens from kitchens: {answer}");
}

#[test]
fn plan_and_undo() {
    let (folder, vault) = copy_of_demo();
    let said = change("plan_and_undo", &folder, &["- Mend the \"gate\"", "- Paint/oil it"], "");
    for line in ["+# Mend the \"gate\"", "Projects/Paint-oil it.md", "done: make", "undone: 3 changes"] {
        assert!(said.contains(line), "{line}: {said}");
    }
    assert_eq!(files(&vault), files(&demo()));
    assert!(!vault.join("Projects").exists());
}

#[test]
fn rename_everywhere() {
    let (folder, vault) = copy_of_demo();
    let arguments = ["Kitchen/Sourdough.md", "Bread/Levain.md"];
    let said = change("rename_everywhere", &folder, &arguments, "n\n");
    assert!(said.contains("Sourdough becomes Levain"), "{said}");
    assert_eq!(files(&vault), files(&demo()));
    let said = change("rename_everywhere", &folder, &arguments, "y\n");
    assert!(said.contains("done as transaction 1"), "{said}");
    let now = files(&vault);
    assert!(now.contains_key(Path::new("Bread/Levain.md")) && !now.contains_key(Path::new("Kitchen/Sourdough.md")));
    let links_to =
        |name: &str| now.values().filter(|text| String::from_utf8_lossy(text).contains(&format!("[[{name}"))).count();
    assert!((links_to("Sourdough"), links_to("Levain") > 1) == (0, true), "{said}");
}

#[test]
fn a_tool_of_your_own() {
    let (folder, vault) = copy_of_demo();
    let said = change("a_tool_of_your_own", &folder, &["Daily/2026-03-15.md", "walk", "with", "Ruth"], "");
    assert!(said.contains("exactly one open task") && said.contains("+- [x] walk with Ruth"), "{said}");
    assert!(said.contains(r#"{"line":16,"open":3}"#), "{said}");
    let text = std::fs::read_to_string(vault.join("Daily/2026-03-15.md")).unwrap();
    assert!(text.contains("- [x] walk with Ruth round") && text.contains("- [ ] [[Broadband]]"), "{text}");
}

#[test]
fn watch_and_search() {
    let (index, vault) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(vault.path().join("Bread.md"), "Sourdough keeps for a week in a linen bag.").unwrap();
    let mut child = example("watch_and_search", &index)
        .arg(vault.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut events = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(events.next().as_deref(), Some("ready"));

    let mut ask = |query: &str| {
        writeln!(input, "{query}").unwrap();
        let mut answer = Vec::new();
        while !answer.last().is_some_and(|line: &String| line.ends_with(" found")) {
            answer.push(answers.next().expect("an answer ends with how many were found"));
        }
        answer
    };
    assert!(ask("how long does bread keep")[0].ends_with("Bread.md:1  Bread"));

    assert!(events.any(|event| event == "Started"));
    std::fs::write(vault.path().join("Roses.md"), "Prune roses to an outward-facing bud.").unwrap();
    assert!(events.any(|event| event.starts_with("1 added")));
    assert!(ask("cutting back roses")[0].ends_with("Roses.md:1  Roses"));

    drop(input);
    assert!(child.wait().unwrap().success());
    assert_eq!(answers.next(), None);
}
