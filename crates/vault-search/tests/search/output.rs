//! What `vault-search` prints: which line, which paths, in which order, and how many.

use serde_json::Value;

use crate::commands::{run, stderr, stdout};
use crate::vault::Vault;

fn vault() -> Vault {
    let vault = Vault::new(
        "//- Garden/Roses.md
        # Roses

        Prune them in late winter.

        A heron looked on.
        //- Garden/Pond.md
        A heron, and another heron.
        //- River.md
        No bird.

        Then a heron.
        //- Town/Bridge.md
        Under it, in the dusk, stood a heron.",
    );
    for (name, day) in [("Garden/Roses.md", 3), ("Garden/Pond.md", 1), ("River.md", 4), ("Town/Bridge.md", 2)] {
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_600_000_000 + day * 86_400);
        std::fs::File::options().write(true).open(vault.root().join(name)).unwrap().set_modified(time).unwrap();
    }
    assert!(run(&vault, "vault-index", &["sync", "--model", "hashed"]).status.success());
    vault
}

fn search(vault: &Vault, arguments: &[&str]) -> String {
    let output = run(vault, "vault-search", &[&["--mode", "lexical"], arguments].concat());
    assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    stdout(&output)
}

fn json(vault: &Vault, arguments: &[&str]) -> Value {
    serde_json::from_str(&search(vault, &[&["--json"], arguments].concat())).unwrap()
}

#[test]
fn the_line_is_that_of_the_first_marked_word() {
    let vault = vault();
    let answer = json(&vault, &["--sort", "path", "heron"]);
    let lines: Vec<(&str, u64, u64)> = answer["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|hit| (hit["path"].as_str().unwrap(), hit["line"].as_u64().unwrap(), hit["start_line"].as_u64().unwrap()))
        .collect();
    assert_eq!(
        lines,
        [("Garden/Pond.md", 1, 1), ("Garden/Roses.md", 5, 1), ("River.md", 3, 1), ("Town/Bridge.md", 1, 1)]
    );
    let compact = search(&vault, &["--compact", "--sort", "path", "heron"]);
    let lines: Vec<&str> = compact.lines().collect();
    assert_eq!(lines.len(), 4);
    assert!(lines[1].starts_with("Garden/Roses.md:5  0."), "{compact}");
    assert!(lines[1].ends_with("  A heron looked on."), "{compact}");
}

#[test]
fn blank_lines_before_a_passage_do_not_count() {
    let vault = Vault::new("");
    vault.write("After.md", "---\nweather: fair\n---\n\n \nOn the wall,\n\na heron.\n\nIt left.\n\nNo more.\n");
    assert!(run(&vault, "vault-index", &["sync", "--model", "hashed"]).status.success());
    let hit = &json(&vault, &["heron"])["results"][0];
    assert_eq!((hit["line"].as_u64(), hit["start_line"].as_u64()), (Some(8), Some(6)));
}

/// A program that reads JSON learns what a person reads on standard error.
#[test]
fn json_says_what_standard_error_says() {
    let vault = vault();
    let output = run(&vault, "vault-search", &["--json", "--mode", "lexical", "herons colour:red bridgr"]);
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["unknown_operators"], serde_json::json!(["colour:red"]));
    assert_eq!(answer["substitutions"][0]["word"], "bridgr");
    let notices: Vec<String> = answer["notices"]
        .as_array()
        .unwrap()
        .iter()
        .map(|notice| format!("note: {}", notice.as_str().unwrap()))
        .collect();
    assert!(notices.len() >= 2, "{notices:?}");
    assert_eq!(notices, stderr(&output).lines().collect::<Vec<_>>());
    let answer = json(&vault, &["heron"]);
    assert!(answer.get("notices").is_none() && answer.get("unknown_operators").is_none(), "{answer}");
}

#[test]
fn a_word_that_no_note_has_is_said() {
    let vault = vault();
    let output = run(&vault, "vault-search", &["--mode", "lexical", "heron OSTROWSKI"]);
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), "note: no note has OSTROWSKI\n"));
    let nothing = run(&vault, "vault-search", &["--mode", "lexical", "OSTROWSKI"]);
    assert_eq!(stderr(&nothing), "note: no note has OSTROWSKI\nnote: nothing was found\n");
}

#[test]
fn sort_orders_files_by_path_time_or_score() {
    let vault = vault();
    let paths = |sort: &str, limit: &str| search(&vault, &["--files", "--sort", sort, "-n", limit, "heron"]);
    assert_eq!(paths("path", "9"), "Garden/Pond.md\nGarden/Roses.md\nRiver.md\nTown/Bridge.md\n");
    assert_eq!(paths("modified", "3"), "River.md\nGarden/Roses.md\nTown/Bridge.md\n");
    assert_eq!(paths("score", "1"), search(&vault, &["--files", "-n", "1", "heron"]));
    let filters = search(&vault, &["--files", "--sort", "path", "path:Garden"]);
    assert_eq!(filters, "Garden/Pond.md\nGarden/Roses.md\n");
    assert_eq!(search(&vault, &["--files", "path:Garden"]), "Garden/Roses.md\nGarden/Pond.md\n");
}

#[test]
fn lines_for_other_programs() {
    let vault = vault();
    let lines = search(&vault, &["--grep", "--sort", "path", "heron"]);
    assert_eq!(
        lines,
        "Garden/Pond.md:1:A heron, and another heron.\nGarden/Roses.md:5:A heron looked on.\n\
         River.md:3:Then a heron.\nTown/Bridge.md:1:Under it, in the dusk, stood a heron.\n"
    );
    let root = vault.root().canonicalize().unwrap();
    let absolute = search(&vault, &["--grep", "--absolute", "heron", "path:Town"]);
    assert!(absolute.starts_with(&format!("{}/Town/Bridge.md:1:", root.display())), "{absolute}");
}

#[test]
fn an_editor_needs_a_terminal() {
    let output = run(&vault(), "vault-search", &["--open", "heron"]);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(2), ""));
    assert!(stderr(&output).contains("needs a terminal"), "{}", stderr(&output));
}

#[test]
fn numbers_only() {
    let vault = vault();
    assert_eq!(search(&vault, &["--count", "heron"]), "4\n");
    assert_eq!(search(&vault, &["--count", "heron", "path:Garden"]), "2\n");
    assert_eq!(search(&vault, &["--count", "path:Garden"]), "2\n");
    assert_eq!(search(&vault, &["--count", "--group", "folder", "heron"]), "2  Garden/\n1  ./\n1  Town/\n");
    let answer = json(&vault, &["--count", "--group", "folder", "heron"]);
    assert_eq!((&answer["count"], answer["folders"][0]["folder"].as_str()), (&Value::from(4), Some("Garden")));
    assert_eq!(answer["results"], Value::Array(Vec::new()));
    let none = run(&vault, "vault-search", &["--count", "--mode", "lexical", "xylophone"]);
    assert_eq!((none.status.code(), stdout(&none).as_str()), (Some(1), "0\n"));
}

#[test]
fn folders_together() {
    let vault = vault();
    let grouped = search(&vault, &["--files", "--group", "folder", "--sort", "modified", "heron"]);
    assert_eq!(grouped, "River.md\nGarden/Roses.md\nGarden/Pond.md\nTown/Bridge.md\n");
    let answer = json(&vault, &["--group", "folder", "--sort", "modified", "heron"]);
    let folders: Vec<_> = answer["results"].as_array().unwrap().iter().map(|hit| hit["folder"].as_str()).collect();
    assert_eq!(folders, [Some(""), Some("Garden"), Some("Garden"), Some("Town")]);
    let shown = search(&vault, &["--compact", "--group", "folder", "--sort", "modified", "heron"]);
    let headings: Vec<&str> = shown.lines().filter(|line| line.ends_with('/')).collect();
    assert_eq!(headings, ["./", "Garden/", "Town/"]);
}

#[test]
fn paths_are_of_the_vault_unless_asked_for() {
    let vault = vault();
    let root = vault.root().canonicalize().unwrap();
    let absolute = search(&vault, &["--files", "--absolute", "-n", "1", "heron", "path:Town"]);
    assert_eq!(absolute.trim_end(), root.join("Town/Bridge.md").to_str().unwrap());
    let answer = json(&vault, &["--absolute", "heron", "path:Town"]);
    let hit = &answer["results"][0];
    assert_eq!(
        (hit["path"].as_str(), hit["absolute_path"].as_str()),
        (Some("Town/Bridge.md"), Some(absolute.trim_end()))
    );
    assert!(search(&vault, &["--absolute", "heron", "path:Town"]).starts_with(absolute.trim_end()));
}

/// What is printed can be opened, whatever bytes a name has.
#[cfg(target_os = "linux")]
#[test]
fn names_as_on_disk() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let names: [&[u8]; 4] = ["e\u{301} decomposed.md".as_bytes(), b"latin \xe9.md", b"two\nlines.md", b"plain.md"];
    let vault = Vault::new("");
    for name in names {
        std::fs::write(vault.root().join(OsStr::from_bytes(name)), "a heron\n").unwrap();
    }
    assert!(run(&vault, "vault-index", &["sync", "--model", "hashed"]).status.success());
    let files = run(&vault, "vault-search", &["--files", "--mode", "lexical", "heron"]).stdout;
    for name in names {
        let line = [name, b"\n"].concat();
        assert!(files.windows(line.len()).any(|part| part == line), "{}", name.escape_ascii());
    }
    for absolute in [true, false] {
        let mut arguments = vec!["-0", "--mode", "lexical", "heron"];
        arguments.extend(absolute.then_some("--absolute"));
        let output = run(&vault, "vault-search", &arguments);
        let printed: Vec<&[u8]> = output.stdout.split(|byte| *byte == 0).collect();
        assert_eq!((printed.len(), printed.last()), (names.len() + 1, Some(&&b""[..])), "{}", stderr(&output));
        for name in &printed[..names.len()] {
            let path = std::path::Path::new(OsStr::from_bytes(name));
            assert_eq!(path.is_absolute(), absolute);
            assert!(vault.root().join(path).exists(), "{path:?}");
        }
    }
}
