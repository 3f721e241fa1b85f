//! Each example does what its first line says, on the demo vault.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn demo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/vaults/demo")
}

/// An example, which cargo builds beside the folder of this test, with an index of its own.
fn example(name: &str, index: &tempfile::TempDir) -> Command {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().and_then(Path::parent).unwrap().join("examples");
    let mut command = Command::new(folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX)));
    command.env("VAULT_INDEX_FILE", index.path().join("index.db"));
    command
}

/// What it prints, given the demo vault and a query.
fn ask(name: &str, query: &str) -> String {
    let index = tempfile::tempdir().unwrap();
    let output = example(name, &index).arg(demo()).args(query.split(' ')).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
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
