//! The commands as a user types them: outputs, exit codes, machine formats.

use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::vault::Vault;

/// Runs one of the two commands on a vault with an index of its own and no model.
pub fn run(vault: &Vault, program: &str, arguments: &[&str]) -> Output {
    command(vault, program, arguments).output().unwrap()
}

pub fn command(vault: &Vault, program: &str, arguments: &[&str]) -> Command {
    let path = match program {
        "vault-search" => env!("CARGO_BIN_EXE_vault-search"),
        _ => env!("CARGO_BIN_EXE_vault-index"),
    };
    let mut command = Command::new(path);
    command
        .env_clear()
        .env("HOME", vault.root().parent().unwrap())
        .env("VAULT_DIR", vault.root())
        .env("VAULT_INDEX_FILE", vault.index_file())
        .stdin(Stdio::null())
        .args(arguments);
    command
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn vault() -> Vault {
    let vault = Vault::new(
        "//- Garden/Roses.md
        ---
        tags: [garden/pruning]
        rating: 5
        ---
        # Roses

        Prune the roses in late winter. See [[Apple]], [[Missing]] and [soil](../Soil.md#pH).
        //- Garden/Apple.md
        # The apple tree

        Pruning the apple tree. ![[pic.png|100]]
        //- Soil.md
        Lime makes it sweet.

        ## pH

        Seven is neutral.
        //- pic.png
        not really",
    );
    assert!(run(&vault, "vault-index", &["sync", "--model", "hashed"]).status.success());
    vault
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", stderr(output));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", stdout(output)))
}

#[test]
fn links_to_headings_and_blocks_that_are_not_there() {
    let vault = Vault::new(
        "//- Src.md
        [[Plain#Nothing here]] [[Plain#^gone]] [[#Mine]] ![[p.pdf#page=3]] [[Nowhere#x]]

        [slug](Plain.md#how-to-prune) [none](Plain.md#how-to-not) [[Plain#how to prune]] [[Plain#^here]] [[plain#nothing HERE]]
        //- Plain.md
        ## How to prune?

        text ^here
        //- p.pdf
        x",
    );
    let index = |arguments: &[&str]| run(&vault, "vault-index", arguments);
    let plain = index(&["unresolved"]);
    assert_eq!(stdout(&plain), "    1  Nowhere  Src.md\n");
    assert!(stderr(&plain).contains("5 links to a missing heading or block; --headings lists them"));
    let listed = index(&["unresolved", "--headings"]);
    assert_eq!(
        stdout(&listed),
        "    1  Nowhere  Src.md
    2  Plain#Nothing here  (no such heading in Plain.md)  Src.md
    1  Plain#^gone  (no such block in Plain.md)  Src.md
    1  Plain.md#how-to-not  (no such heading in Plain.md)  Src.md
    1  Src#Mine  (no such heading in Src.md)  Src.md
"
    );
    let rows: Value = serde_json::from_str(&stdout(&index(&["unresolved", "--headings", "--json"]))).unwrap();
    assert_eq!((rows[0].get("target"), &rows[1]["target"]), (None, &"Plain.md".into()));
    let rows: Value = serde_json::from_str(&stdout(&index(&["unresolved", "--json"]))).unwrap();
    assert_eq!(rows.as_array().unwrap().len(), 1, "what scripts get is what it was");

    let links = stdout(&index(&["links", "Src"]));
    assert!(links.contains("[[Plain#^gone]]  → Plain.md (no such block)\n"), "{links}");
    assert!(links.contains("[slug](Plain.md#how-to-prune)  → Plain.md\n"), "{links}");
    assert_eq!(links.matches("[[Nowhere#x]]").count(), 2, "with its target, and once in its line: {links}");
    let rows: Value = serde_json::from_str(&stdout(&index(&["links", "--all", "--json"]))).unwrap();
    let missing = rows.as_array().unwrap().iter().filter(|row| row["subpath_missing"] == true);
    assert_eq!(missing.count(), 5);
    let resolved = index(&["resolve", "[[p.pdf#page=3]]"]);
    assert!(resolved.status.success() && !stdout(&resolved).contains("no such"), "{}", stdout(&resolved));
    let resolved = index(&["resolve", "[[Plain#Nothing here]]"]);
    assert!(resolved.status.success() && stdout(&resolved).contains("no such heading"), "{}", stdout(&resolved));
}

#[test]
fn search_formats_and_exit_codes() {
    let vault = vault();
    let search = |arguments: &[&str]| run(&vault, "vault-search", arguments);
    let answer = json(&search(&["--json", "pruning", "tag:garden"]));
    for key in ["query", "mode", "vault", "indexed", "pending", "took_ms", "results"] {
        assert!(!answer[key].is_null(), "{key} in {answer}");
    }
    let hit = &answer["results"][0];
    assert_eq!(hit["path"], "Garden/Roses.md");
    for key in ["path", "title", "headings", "line", "end_line", "score", "text", "tags", "modified", "why"] {
        assert!(!hit[key].is_null(), "{key} in {hit}");
    }
    assert_eq!(hit["tags"], serde_json::json!(["garden/pruning"]));

    let files = search(&["--files", "--mode", "lexical", "pruning"]);
    let mut lines: Vec<_> = stdout(&files).lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["Garden/Apple.md", "Garden/Roses.md"]);
    assert_eq!(stdout(&search(&["--jsonl", "--mode", "lexical", "pruning"])).lines().count(), 2);
    assert_eq!(stdout(&search(&["--files", "--prop", "rating>=4"])), "Garden/Roses.md\n");
    assert_eq!(stdout(&search(&["--files", "--mode", "lexical", "pruning", "-tree"])), "Garden/Roses.md\n");
    assert_eq!(stdout(&search(&["--files", "--path", "Soil.md", "--mode", "lexical", "neutral"])), "Soil.md\n");

    let nothing = search(&["--mode", "lexical", "xylophone"]);
    assert_eq!(nothing.status.code(), Some(1), "{}", stderr(&nothing));
    for (wrong, says) in [
        (&["--mode", "psychic", "x"][..], "psychic"),
        (&["--after", "someday", "x"], "someday"),
        (&["--prop", "=", "x"], "property"),
        (&["--frobnicate", "x"], "frobnicate"),
        (&["path:["], "path"),
        (&["--path", "/", "x"], "names no folder or note"),
        (&["--path", "", "x"], "names no folder or note"),
        (&[""], "nothing to search for"),
        (&["--like", "Aple"], "Garden/Apple.md"),
        (&["--model", "minilm", "x"], "rebuild --model"),
        (&["--vault", "/no/such/folder", "x"], "/no/such/folder"),
    ] {
        let output = search(wrong);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(says), "{wrong:?}: {}", stderr(&output));
        assert!(output.stdout.is_empty(), "{wrong:?}");
    }
}

#[test]
fn characters_that_hide_or_steer_are_named_in_text_and_kept_in_json() {
    let vault = Vault::new("//- a.md\nPrune the\u{200b} roses\u{e0041} in\u{1b}[2J winter");
    assert!(run(&vault, "vault-index", &["sync", "--model", "hashed"]).status.success());
    let search = |arguments: &[&str]| run(&vault, "vault-search", arguments);
    let shown = stdout(&search(&["--mode", "lexical", "winter"]));
    assert!(shown.contains("Prune the<U+200B> roses<U+E0041> in␛[2J winter"), "{shown}");
    let answer = json(&search(&["--mode", "lexical", "--json", "winter"]));
    assert!(answer["results"][0]["text"].as_str().unwrap().contains("the\u{200b} roses\u{e0041} in\u{1b}[2J"));
}

#[test]
fn what_leaves_nothing_out_is_said_beside_the_results() {
    let vault = vault();
    let search = |arguments: &[&str]| {
        let output = run(&vault, "vault-search", arguments);
        (output.status.code(), stdout(&output), stderr(&output))
    };
    let (code, found, said) = search(&["--files", "-path:nosuch", "-tag:nosuch", "-path:Soil", "-tag:garden"]);
    assert_eq!((code, found.as_str()), (Some(0), "Garden/Apple.md\n"), "{said}");
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines.len() == 2 && lines.iter().all(|line| line.contains("leaves nothing out")), "{said}");
    assert!(said.contains("-tag:nosuch") && said.contains("-path:nosuch"), "{said}");
    let (code, _, said) = search(&["--files", "-path:Soil", "tag:garden"]);
    assert_eq!((code, said.as_str()), (Some(0), ""));
    let (code, _, said) = search(&["-path:nosuch", "tag:gardn"]);
    assert!(code == Some(1) && said.contains("nothing out") && said.contains("`gardn`"), "{said}");
    let (_, _, said) = search(&["garden", "foo:bar", "--mode", "lexical"]);
    assert!(said.contains("`foo:bar` is searched for as words"), "{said}");
}

#[test]
fn queries_from_a_file_are_taken_literally_and_answered_in_order() {
    let vault = vault();
    let file = vault.root().parent().unwrap().join("queries.txt");
    std::fs::write(&file, "neutral\ntag:garden\napple tree\n").unwrap();
    let output = run(&vault, "vault-search", &["--mode", "lexical", "--queries", file.to_str().unwrap()]);
    let answers: Vec<Value> = stdout(&output).lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let asked: Vec<&str> = answers.iter().map(|a| a["query"].as_str().unwrap()).collect();
    assert_eq!(asked, ["neutral", "tag:garden", "apple tree"]);
    assert_eq!(answers[0]["results"][0]["path"], "Soil.md");
    assert_eq!(answers[2]["results"][0]["path"], "Garden/Apple.md");
}

#[test]
fn search_indexes_what_changed_first_unless_told_not_to() {
    let vault = vault();
    vault.write("New.md", "a xylophone\n");
    assert_eq!(run(&vault, "vault-search", &["--no-sync", "--mode", "lexical", "xylophone"]).status.code(), Some(1));
    assert!(run(&vault, "vault-search", &["--mode", "lexical", "xylophone"]).status.success());
}

#[test]
fn links_and_their_relatives() {
    let vault = vault();
    let index = |arguments: &[&str]| run(&vault, "vault-index", arguments);
    let rows: Vec<Value> =
        stdout(&index(&["links", "--all", "--jsonl"])).lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let row = |source, line, raw, kind, path, subpath: Value, target: Value| {
        serde_json::json!({"source": source, "line": line, "raw": raw, "kind": kind, "path": path,
                           "subpath": subpath, "target": target})
    };
    let null = || Value::Null;
    assert_eq!(
        rows,
        [
            row("Garden/Apple.md", 3, "![[pic.png|100]]", "embed", "pic.png", null(), "pic.png".into()),
            row("Garden/Roses.md", 7, "[[Apple]]", "wikilink", "Apple", null(), "Garden/Apple.md".into()),
            row("Garden/Roses.md", 7, "[[Missing]]", "wikilink", "Missing", null(), null()),
            row("Garden/Roses.md", 7, "[soil](../Soil.md#pH)", "markdown", "../Soil.md", "pH".into(), "Soil.md".into()),
        ]
    );
    assert!(stdout(&index(&["backlinks", "Soil"])).contains("Garden/Roses.md:7"));
    assert!(stdout(&index(&["unresolved"])).contains("Missing"));
    assert_eq!(stdout(&index(&["orphans"])).trim(), "Garden/Roses.md");
    assert_eq!(stdout(&index(&["deadends"])).trim(), "Soil.md");
    assert!(stdout(&index(&["tags"])).contains("garden/pruning"));
    assert!(stdout(&index(&["resolve", "[[Soil#pH]]", "--from", "Garden/Roses"])).contains("Soil.md:3"));
    assert_eq!(index(&["resolve", "[[Nowhere]]", "--from", "Soil"]).status.code(), Some(1));
    vault.write("My note.md", "text\n");
    for (link, leads) in [
        ("[x](../Soil.md#pH)", "Soil.md:3"),
        ("![x](<../My note.md> \"title\")", "My note.md"),
        ("[x](../My%20note.md)", "My note.md"),
        ("My%20note", "My note.md"),
        ("https://example.org/a%20b", "leads out of the vault"),
        ("[x](https://example.org)", "leads out of the vault"),
    ] {
        let output = index(&["resolve", link, "--from", "Garden/Roses"]);
        assert!(output.status.success() && stdout(&output).contains(leads), "{link}: {}", stdout(&output));
    }
    std::fs::remove_file(vault.root().join("My note.md")).unwrap();
    assert_eq!(index(&["links", "Nowhere at all"]).status.code(), Some(2));
    let output = index(&["links", "Soil", "--depth", "0"]);
    assert!(output.status.code() == Some(2) && stderr(&output).contains("1 or more"), "{}", stderr(&output));

    let graph = json(&index(&["graph", "--format", "json"]));
    assert_eq!(graph["nodes"].as_array().unwrap().len(), 5);
    assert!(stdout(&index(&["graph", "--format", "dot"])).starts_with("digraph"));
    let page = stdout(&index(&["graph", "--format", "html"]));
    assert!(page.contains("Garden/Roses.md") && !page.contains("http://") && !page.contains("src=\"http"));
}

#[test]
fn links_come_with_the_line_they_stand_in() {
    let long = "A sentence of some words. ".repeat(120);
    let vault = Vault::new(&format!(
        "//- Soil.md
        Clay.
        //- a.md
        ---
        related:
        - \"[[Soil]]\"
        ---
        First of [[Soil]].
        Then of [[Soil]].
        And over [two
        lines](Soil.md).

        {long}[[Soil]] is far down.
        //- b.canvas
        {{\"nodes\":[{{\"id\":\"1\",\"type\":\"text\",\"text\":\"a card\\nabout [[Soil]]\"}}]}}"
    ));
    assert!(run(&vault, "vault-index", &["sync", "--model", "hashed"]).status.success());
    let rows = json(&run(&vault, "vault-index", &["backlinks", "Soil", "--json"]));
    let mut found: Vec<(&str, u64, &str)> = Vec::new();
    for row in rows.as_array().unwrap() {
        let text = row["text"].as_str().unwrap_or_else(|| panic!("{row} has no text"));
        found.push((row["source"].as_str().unwrap(), row["line"].as_u64().unwrap(), text));
    }
    found.sort_unstable();
    let (.., far) = found[4];
    // Of a line that several passages share, the part that holds the link.
    assert!(far.ends_with("[[Soil]] is far down.") && far.len() < long.len(), "{far}");
    assert_eq!(
        found,
        [
            ("a.md", 3, "- \"[[Soil]]\""),
            ("a.md", 5, "First of [[Soil]]."),
            ("a.md", 6, "Then of [[Soil]]."),
            ("a.md", 7, "And over [two"),
            ("a.md", 10, far),
            ("b.canvas", 1, "about [[Soil]]"),
        ]
    );
}

#[test]
fn status_check_rebuild_forget() {
    let vault = vault();
    let index = |arguments: &[&str]| run(&vault, "vault-index", arguments);
    let status = json(&index(&["status", "--json"]));
    assert_eq!((&status["notes"], &status["unresolved"]), (&3.into(), &1.into()));
    let report = json(&index(&["sync", "--json"]));
    for key in [
        "added",
        "changed",
        "renamed",
        "removed",
        "unchanged",
        "embedded",
        "reused",
        "pending",
        "skipped",
        "warnings",
        "stages_ms",
        "took_ms",
    ] {
        assert!(!report[key].is_null(), "{key} in {report}");
    }
    assert_eq!(report["unchanged"], 3);
    assert_eq!(index(&["check"]).status.code(), Some(0));
    vault.write("Soil.md", "other content\n");
    let output = index(&["check"]);
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    assert!((stdout(&output) + &stderr(&output)).contains("Soil.md"));
    assert_eq!(index(&["check", "--repair"]).status.code(), Some(0));
    assert!(index(&["rebuild"]).status.success());
    assert_eq!(vault.dump(), vault.dump_of_rebuild());
    assert!(index(&["forget", "--yes"]).status.success());
    assert!(!vault.index_file().exists());
    let output = run(&vault, "vault-search", &["--no-sync", "x"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("vault-index sync"));
}

#[test]
fn what_is_kept_about_a_vault_that_is_gone_can_be_deleted() {
    let vault = vault();
    let output = run(&vault, "vault-index", &["adopt", vault.root().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("nothing to adopt"), "{}", stderr(&output));
    let nowhere = vault.index_file().with_file_name("mistyped.db");
    let nowhere = ["adopt", "/moved/away", "--index", nowhere.to_str().unwrap()];
    assert_eq!(run(&vault, "vault-index", &nowhere).status.code(), Some(2));
    assert!(!std::path::Path::new(nowhere[3]).exists());
    let output = run(&vault, "vault-index", &["adopt", "/of/another"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("not of /of/another"), "{}", stderr(&output));
    std::fs::remove_dir_all(vault.root()).unwrap();
    let output = run(&vault, "vault-index", &["forget", "--yes"]);
    assert!(output.status.success() && !vault.index_file().exists(), "{}", stderr(&output));
    let output = run(&vault, "vault-index", &["forget", "--yes", "--vault", vault.root().to_str().unwrap()]);
    assert!(output.status.success() && stdout(&output).contains("nothing is stored"), "{}", stderr(&output));
}

#[test]
fn an_index_is_not_adopted_while_its_vault_is_still_there() {
    let vault = vault();
    let below = vault.root().join("Garden");
    let run = |arguments: &[&str]| {
        let output = command(&vault, "vault-index", arguments).env("VAULT_DIR", &below).output().unwrap();
        (output.status.code(), stderr(&output))
    };
    let root = vault.root();
    let (code, said) = run(&["status"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("this index is of another vault") && said.contains("name that vault with --vault"), "{said}");
    assert!(!said.contains("adopt"), "{said}");
    let (code, said) = run(&["adopt", root.to_str().unwrap()]);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("still there"), "{said}");
    assert!(index_of(&vault, &["status"]).status.success(), "it is as it was");
    // Once it has moved, the error names the command with the options as they are.
    let moved = root.with_file_name("moved");
    std::fs::rename(&root, &moved).unwrap();
    let moved = moved.to_str().unwrap();
    let output = command(&vault, "vault-index", &["status"]).env("VAULT_DIR", moved).output().unwrap();
    let advice = format!("--vault \"{moved}\" --index \"{}\"", vault.index_file().display());
    assert!(stderr(&output).contains(&advice), "{}", stderr(&output));
    let adopt = ["adopt", root.to_str().unwrap(), "--vault", moved];
    assert!(index_of(&vault, &adopt).status.success());
    assert!(index_of(&vault, &["status", "--vault", moved]).status.success());
}

fn index_of(vault: &Vault, arguments: &[&str]) -> Output {
    run(vault, "vault-index", arguments)
}

/// With an index in the user's cache folder, of which the test's vault is the parent.
#[test]
fn all_indexes_are_listed_and_those_of_no_vault_can_be_forgotten() {
    let vault = vault();
    let home = vault.root().parent().unwrap().to_path_buf();
    let run = |arguments: &[&str]| {
        let mut command = command(&vault, "vault-index", arguments);
        command.env_remove("VAULT_INDEX_FILE").env("XDG_CACHE_HOME", home.join("cache")).env("LOCALAPPDATA", &home);
        command.output().unwrap()
    };
    assert_eq!(stdout(&run(&["list"])), "0 indexes, 0 bytes\n");
    let other = home.join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("a.md"), "a note").unwrap();
    for folder in [vault.root(), other.clone()] {
        let synced = run(&["sync", "--no-vectors", "--vault", folder.to_str().unwrap()]);
        assert!(synced.status.success(), "{}", stderr(&synced));
    }
    // Below a vault with an index it is this vault that is meant, and no other index is made.
    let mut below = command(&vault, "vault-search", &["--json", "lime"]);
    below.env_remove("VAULT_INDEX_FILE").env_remove("VAULT_DIR").current_dir(vault.root().join("Garden"));
    below.env("XDG_CACHE_HOME", home.join("cache")).env("LOCALAPPDATA", &home);
    assert_eq!(json(&below.output().unwrap())["results"][0]["path"], "Soil.md");
    assert!(stdout(&run(&["list"])).contains("\n2 indexes, "));
    std::fs::remove_dir_all(&other).unwrap();
    let listed: Vec<Value> =
        stdout(&run(&["list", "--jsonl"])).lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let states: Vec<_> =
        listed.iter().map(|index| (index["state"].as_str().unwrap(), index["notes"].as_u64())).collect();
    assert_eq!(states, [("gone", Some(1)), ("there", Some(3))], "{listed:?}");
    assert_eq!(listed[1]["vault"], vault.root().canonicalize().unwrap().to_str().unwrap());
    let text = stdout(&run(&["list"]));
    let forget = text.lines().find_map(|line| line.split("vault-index forget --vault ").nth(1)).expect(&text);
    let forgotten = run(&["forget", "--yes", "--vault", forget.trim_matches('"')]);
    assert!(forgotten.status.success(), "{}", stderr(&forgotten));
    assert!(stdout(&run(&["list"])).contains("\n1 index, "));
    // A damaged one is listed too.
    let file = listed[1]["index"].as_str().unwrap();
    std::fs::write(file, "no database").unwrap();
    assert!(stdout(&run(&["list"])).contains("is not an index"), "{}", stdout(&run(&["list"])));
}

#[test]
fn unlinked_mentions_of_a_note() {
    let vault = vault();
    vault.write(
        "Notes.md",
        "---\nabout: roses\n---\n# Roses and soil\n\nThe ROSES stand beside [[Roses]], not `roses`.\n\nA rose.\n",
    );
    vault.write("Rosa.md", "---\naliases: [Dog rose]\n---\nA dog rose is no [[Dog rose]], but roses are.\n");
    assert!(index_of(&vault, &["sync"]).status.success());
    let mentions = |note: &str| -> Vec<(String, u64, String)> {
        let output = index_of(&vault, &["mentions", note, "--jsonl"]);
        assert!(output.status.success(), "{}", stderr(&output));
        let fields = |record: Value| {
            let text = |key: &str| record[key].as_str().unwrap().to_string();
            (text("path"), record["line"].as_u64().unwrap(), text("name"))
        };
        stdout(&output).lines().map(|line| fields(serde_json::from_str(line).unwrap())).collect()
    };
    let is = |path: &str, line, name: &str| (path.to_string(), line, name.to_string());
    let expected = [is("Notes.md", 4, "Roses"), is("Notes.md", 6, "ROSES"), is("Rosa.md", 4, "roses")];
    assert_eq!(mentions("Garden/Roses"), expected);
    assert_eq!(mentions("Rosa"), [], "its own text does not count");
    vault.write("New.md", "Is the dog rose wild?");
    assert_eq!(mentions("Rosa"), [is("New.md", 1, "dog rose")], "changed notes are read first");
    let output = index_of(&vault, &["mentions", "Soil"]);
    assert_eq!(stdout(&output), "Notes.md:4  soil\n    # Roses and soil\n");
    assert_eq!(index_of(&vault, &["mentions", "Nowhere"]).status.code(), Some(2));
}

/// Nothing is contacted: no machine has these addresses, and nothing is left to embed.
#[cfg(all(feature = "http", target_os = "linux"))]
#[test]
fn notes_go_to_no_remote_embedder_before_somebody_agreed() {
    const OLD: &str = "http://192.0.2.1:11434";
    const NEW: &str = "http://192.0.2.2:11434";
    let vault = vault();
    let db = rusqlite::Connection::open(vault.index_file()).unwrap();
    for (key, value) in [("model", "ollama:m"), ("embedder", "ollama:m@192.0.2.1:11434"), ("base_url", OLD)] {
        db.execute("INSERT OR REPLACE INTO meta(key, value) VALUES(?1, ?2)", [key, value]).unwrap();
    }
    drop(db);
    let check = |program: &str, arguments: &[&str], code: i32, says: &str| {
        let output = run(&vault, program, arguments);
        assert_eq!(output.status.code(), Some(code), "{program} {arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(says), "{program} {arguments:?}: {}", stderr(&output));
    };
    check(
        "vault-index",
        &["sync"],
        3,
        "agree once with `vault-index sync --model ollama:m --base-url http://192.0.2.1",
    );
    check("vault-search", &["pruning"], 3, "needs your consent");
    check("vault-search", &["--mode", "lexical", "pruning"], 0, "");
    check("vault-index", &["backlinks", "Soil"], 0, "");
    // At another address nothing is asked, since nothing goes there; a rebuild would send everything.
    check(
        "vault-index",
        &["sync", "--base-url", NEW],
        2,
        "vault-index rebuild --model ollama:m --base-url http://192.0.2.2",
    );
    check("vault-search", &["pruning", "--base-url", NEW], 0, "192.0.2.2");
    check("vault-index", &["rebuild", "--base-url", NEW], 3, "ollama:m@192.0.2.2:11434 needs your consent");
    check("vault-index", &["check", "--repair", "--base-url", NEW], 3, "needs your consent");
    // What was agreed to counts.
    let folder = vault.root().with_file_name(".local/state/vault-index");
    std::fs::create_dir_all(&folder).unwrap();
    let agreed =
        serde_json::json!({"vault": vault.root().canonicalize().unwrap(), "model": "ollama:m@192.0.2.1:11434"});
    std::fs::write(folder.join("sending-agreed.jsonl"), agreed.to_string()).unwrap();
    check("vault-index", &["sync"], 0, "");
    // An index that was deleted by hand is forgotten with what was agreed to.
    std::fs::remove_file(vault.index_file()).unwrap();
    check("vault-index", &["forget", "--yes"], 0, "");
    let memory = std::fs::read_to_string(folder.join("sending-agreed.jsonl")).unwrap_or_default();
    assert!(!memory.contains("192.0.2.1"), "{memory}");
}

#[test]
fn manuals_completions_and_schemas() {
    let vault = vault();
    let index = |arguments: &[&str]| run(&vault, "vault-index", arguments);
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(stdout(&index(&["completions", shell])).contains("vault-search"), "{shell}");
    }
    assert!(stdout(&index(&["man"])).contains(".TH"));
    for arguments in [&["sync", "--schema"][..], &["status", "--schema"], &["tags", "--schema"]] {
        assert!(json(&index(arguments))["type"].is_string(), "{arguments:?}");
    }
    assert_eq!(json(&run(&vault, "vault-search", &["--schema"]))["type"], "object");
    for (program, arguments) in [("vault-search", &["--help"][..]), ("vault-index", &["--help"])] {
        let output = run(&vault, program, arguments);
        assert!(output.status.success() && stdout(&output).contains("Examples"), "{program}");
    }
}

#[cfg(unix)]
#[test]
fn a_pipe_closed_early_is_no_error() {
    let vault = vault();
    for note in 0..2000 {
        vault.write(&format!("n{note}.md"), "a heron stands in the water, waiting\n");
    }
    assert!(run(&vault, "vault-index", &["sync"]).status.success());
    let arguments = ["--no-sync", "--mode", "lexical", "-n", "2000", "heron"];
    let mut child =
        command(&vault, "vault-search", &arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(stderr(&output), "");
    assert!(output.status.success());
}

#[test]
fn a_minus_says_what_it_left_out() {
    let vault = Vault::new(
        "//- Keys.md
        Run ssh -T git@example.org to test it.
        //- Tools.md
        ssh and git are tools; at -5 degrees they are cold.",
    );
    let search = |query: &str| run(&vault, "vault-search", &["--files", "--mode", "lexical", "--", query]);
    let pasted = run(&vault, "vault-search", &["--files", "--mode", "lexical", "ssh -T git"]);
    assert_eq!(stdout(&pasted), "Tools.md\n");
    assert!(
        stderr(&pasted).contains("`-T` leaves out 1 note") && stderr(&pasted).contains("\"-T\""),
        "{}",
        stderr(&pasted)
    );
    let quoted = run(&vault, "vault-search", &["--files", "--mode", "lexical", "ssh \"-T\" git"]);
    assert!(stdout(&quoted).starts_with("Keys.md\n"), "{}", stdout(&quoted));
    assert!(stdout(&search("ssh -T git")).starts_with("Keys.md\n"));
    // A number is none.
    let number = run(&vault, "vault-search", &["--files", "--mode", "lexical", "cold -5"]);
    assert_eq!((stdout(&number).as_str(), stderr(&number).as_str()), ("Tools.md\n", ""));
}

#[test]
fn a_query_without_words_is_told_where_to_look() {
    let vault = Vault::new("//- a § b.md\nx :: y\n//- c.md\n§ -> </>\n");
    for (query, remedy) in [
        ("§", "there is no word in `§`; write file:§ to search names for it, /§/ to search texts"),
        ("::", "there is no word in `::`; write file::: to search names for it, /::/ to search texts"),
        ("＊", "there is no word in `＊`; write file:＊ to search names for it, /＊/ to search texts"),
        ("->", "there is no word in `->`; write file:-> to search names for it, /\\->/ to search texts"),
        ("§ ::", "there is no word in `§ ::`; write file:\"§ ::\" to search names for it, /§ ::/ to search texts"),
        ("</>", "there is no word in `</>`; write file:</> to search names for it, /<\\/>/ to search texts"),
    ] {
        let output = run(&vault, "vault-search", &["--mode", "lexical", "--files", "--", query]);
        assert!(stderr(&output).contains(remedy), "{query}: {}", stderr(&output));
        let search = |query: &str| stdout(&run(&vault, "vault-search", &["--mode", "lexical", "--files", query]));
        let pattern = remedy.split("it, ").nth(1).unwrap().split(" to search").next().unwrap();
        assert_eq!(search(pattern).is_empty(), matches!(query, "＊" | "§ ::"), "{pattern}");
    }
    let output = run(&vault, "vault-search", &["--mode", "lexical", "--files", "file:§"]);
    assert_eq!((stdout(&output).as_str(), stderr(&output).as_str()), ("a § b.md\n", ""));
    let output = run(&vault, "vault-search", &["--mode", "lexical", "->"]);
    assert!(stderr(&output).contains("there is no word in `->`"), "{}", stderr(&output));
}
