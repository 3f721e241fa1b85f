//! Any sequence of changes, then a sync: the index is the one that a rebuild would give.

use std::time::Instant;

use proptest::prelude::*;
use vault_index::{Mode, Query, SyncOptions};

use crate::vault::Vault;

/// Few names in few folders, so that they meet: ambiguous, renamed to each other, linked before they exist.
const NAMES: &[&str] =
    &["a.md", "b.md", "Note.md", "x/a.md", "x/b.md", "x/y/a.md", "z/Note.md", "pic.png", "board.canvas"];

const TEXTS: &[&str] = &[
    "# Apples\n\nRed fruit, see [[b]] and [[Note|the note]]. #fruit/apple\n",
    "---\ntags: [garden, fruit]\nrating: 4\n---\nPlain text with [a link](a.md) and ![[pic.png]] and [[x/a]].\n",
    "no title, [[../a]] and [[y/a#Part]]\n\n## Part\n\nmore ^block\n",
    "",
    "---\ntitle: [broken\n---\nbody [[missing]]\n",
    "# Same\n\nThe same text in several notes.\n",
    "{\"nodes\":[{\"id\":\"1\",\"type\":\"text\",\"text\":\"card [[a]] #card\"},{\"id\":\"2\",\"type\":\"file\",\"file\":\"b.md\"}]}",
];

#[derive(Debug, Clone)]
enum Step {
    Write(usize, usize),
    Delete(usize),
    Rename(usize, usize),
    MoveFolder(usize, usize),
    Exclude(usize),
    Sync,
    SyncText,
}

const FOLDERS: &[&str] = &["x", "x/y", "z", "w"];

fn step() -> impl Strategy<Value = Step> {
    let name = 0..NAMES.len();
    let folder = 0..FOLDERS.len();
    prop_oneof![
        5 => (name.clone(), 0..TEXTS.len()).prop_map(|(n, t)| Step::Write(n, t)),
        2 => name.clone().prop_map(Step::Delete),
        3 => (name.clone(), name).prop_map(|(a, b)| Step::Rename(a, b)),
        1 => (folder.clone(), folder).prop_map(|(a, b)| Step::MoveFolder(a, b)),
        1 => (0..3usize).prop_map(Step::Exclude),
        3 => Just(Step::Sync),
        1 => Just(Step::SyncText),
    ]
}

fn take(vault: &Vault, step: &Step) {
    let root = vault.root();
    match step {
        Step::Write(name, text) => vault.write(NAMES[*name], TEXTS[*text]),
        Step::Delete(name) => drop(std::fs::remove_file(root.join(NAMES[*name]))),
        Step::Rename(from, to) => {
            let to = root.join(NAMES[*to]);
            std::fs::create_dir_all(to.parent().unwrap()).unwrap();
            // Fails when there is nothing to rename: then nothing changes.
            drop(std::fs::rename(root.join(NAMES[*from]), to));
        }
        Step::MoveFolder(from, to) => drop(std::fs::rename(root.join(FOLDERS[*from]), root.join(FOLDERS[*to]))),
        Step::Exclude(which) => vault.write(".vaultignore", ["", "x/\n", "b.md\n*.canvas\n"][*which]),
        Step::Sync => drop(vault.sync()),
        Step::SyncText => {
            let options = vault_index::SyncOptions::new().without_vectors();
            vault.index().sync_with(&options).unwrap();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_changes_then_a_sync_equal_a_rebuild(steps in prop::collection::vec(step(), 1..24)) {
        let vault = Vault::new("");
        for step in &steps {
            take(&vault, step);
        }
        let report = vault.sync();
        prop_assert_eq!(report.pending, 0);
        prop_assert_eq!(vault.dump(), vault.dump_of_rebuild());
        prop_assert!(vault.sync().is_unchanged());
        let check = vault.index().check(&Default::default()).unwrap();
        prop_assert_eq!(check.faults, Vec::<String>::new());
    }
}

#[test]
fn what_costs_an_embedding_and_what_does_not() {
    let long = "A paragraph about the weather in the hills. ".repeat(60);
    let vault = Vault::new("//- a.md\n# Alpha\n\nAbout alpha.\n//- b.md\njust text, named by its file\n");
    vault.write("long.md", format!("# Long\n\n## One\n\n{long}\n\n## Two\n\n{long}!\n"));
    let first = vault.sync();
    assert!(first.embedded >= 5 && first.added == 3, "{first:?}");

    let root = vault.root();
    let moved = |from: &str, to: &str| {
        std::fs::create_dir_all(root.join(to).parent().unwrap()).unwrap();
        std::fs::rename(root.join(from), root.join(to)).unwrap();
        vault.sync()
    };
    let report = moved("a.md", "deep/down/a.md");
    assert_eq!((report.renamed, report.embedded), (1, 0), "a move: {report:?}");
    let report = moved("deep/down/a.md", "deep/omega.md");
    assert_eq!((report.renamed, report.embedded), (1, 1), "a rename: {report:?}");
    let report = moved("b.md", "named differently.md");
    assert_eq!((report.renamed, report.embedded), (1, 1), "a rename of a note named by its file: {report:?}");
    let report = moved("long.md", "Long!.md");
    assert_eq!((report.renamed, report.embedded), (1, 0), "to what its heading says: {report:?}");
    moved("Long!.md", "long.md");

    vault.write("copy of omega.md", std::fs::read(root.join("deep/omega.md")).unwrap());
    assert_eq!(vault.sync().embedded, 1, "the name of a copy");

    let text = std::fs::read_to_string(root.join("long.md")).unwrap();
    vault.write("long.md", text.replace("# Long\n\n## One", "# Long\n\nAn introduction, added later.\n\n## One"));
    let report = vault.sync();
    assert_eq!(report.changed, 1);
    assert!(report.embedded <= 2 && report.reused >= 2, "an edit of one section: {report:?}");

    std::fs::remove_dir_all(root.join("deep")).unwrap();
    vault.sync();
    vault.write("back/omega.md", "# Alpha\n\nAbout alpha.\n");
    assert_eq!(vault.sync().embedded, 0, "a note that went and came back");
    assert_eq!(vault.dump(), vault.dump_of_rebuild());
}

#[test]
fn vectors_that_nothing_uses_are_dropped_when_they_are_many() {
    let vault = Vault::new("");
    for note in 0..1500 {
        vault.write(&format!("note {note}.md"), format!("# Note {note}\n\nabout {note}\n"));
    }
    vault.sync();
    assert_eq!(vault.index().status().unwrap().vectors, 1500);
    for note in 1..1500 {
        std::fs::remove_file(vault.root().join(format!("note {note}.md"))).unwrap();
    }
    // Nothing is left to embed.
    assert_eq!(vault.sync().removed, 1499);
    let kept = vault.index().status().unwrap().vectors;
    assert!((1..=1001).contains(&kept), "{kept}");
    assert_eq!(vault.dump(), vault.dump_of_rebuild());
}

#[test]
fn a_warning_goes_with_its_note() {
    let vault = Vault::new("//- x/a.md\n---\na: [\n---\nbody\n");
    vault.sync();
    std::fs::rename(vault.root().join("x"), vault.root().join("z")).unwrap();
    let report = vault.sync();
    assert_eq!(report.warnings.iter().map(|w| w.path.as_str()).collect::<Vec<_>>(), ["z/a.md"]);
    assert_eq!(vault.dump(), vault.dump_of_rebuild());
}

#[test]
fn a_link_to_a_name_that_comes_later_becomes_real_and_goes_again() {
    let vault = Vault::new("//- a.md\n[[Later]] and [[sub/Later]]\n");
    vault.sync();
    let target = |vault: &Vault| -> Vec<Option<String>> {
        vault.index().links("a.md", 1).unwrap().into_iter().map(|l| l.target.map(|t| t.to_string())).collect()
    };
    assert_eq!(target(&vault), [None, None]);
    vault.write("sub/Later.md", "here");
    vault.sync();
    let here = Some("sub/Later.md".to_string());
    assert_eq!(target(&vault), [here.clone(), here.clone()]);
    // A note of that name in the root is now meant by the bare name.
    vault.write("Later.md", "nearer");
    vault.sync();
    assert_eq!(target(&vault), [Some("Later.md".to_string()), here.clone()]);
    std::fs::remove_file(vault.root().join("Later.md")).unwrap();
    vault.sync();
    assert_eq!(target(&vault), [here.clone(), here]);
}

#[test]
fn a_broken_note_is_a_warning_and_the_rest_is_found() {
    let vault = Vault::new("//- good.md\nplums and pears\n//- yaml.md\n---\na: [\n---\nplums too\n");
    vault.write("latin1.md", b"plums \xe9t\xe9");
    vault.write("binary.md", b"\0\x01\x02plums");
    let report = vault.sync();
    assert_eq!(report.added, 3);
    assert_eq!(report.skipped.iter().map(|s| s.path.as_str()).collect::<Vec<_>>(), ["binary.md"]);
    let mut warned: Vec<&str> = report.warnings.iter().map(|w| w.path.as_str()).collect();
    warned.sort_unstable();
    assert_eq!(warned, ["latin1.md", "yaml.md"]);
    let hits = vault.index().search(&Query::literal("plums")).unwrap();
    let mut found: Vec<&str> = hits.results.iter().map(|h| h.path.as_str()).collect();
    found.sort_unstable();
    assert_eq!(found, ["good.md", "latin1.md", "yaml.md"]);
}

#[test]
fn a_sync_that_was_stopped_goes_on_past_notes_that_cannot_be_read() {
    let vault = Vault::new("//- a.md\nplums\n//- b.md\npears\n");
    vault.write("binary.md", b"\0\x01\x02plums");
    let stopped = vault.index().sync_with(&SyncOptions::new().deadline(Instant::now())).unwrap();
    assert_eq!((stopped.added, stopped.unread), (0, 3));
    let report = vault.sync();
    assert_eq!((report.added, report.unread, report.skipped.len()), (2, 0, 1));
    let again = vault.sync();
    assert!(again.is_unchanged() && again.unread == 0, "{again:?}");
    assert_eq!(vault.index().search(&Query::literal("plums")).unwrap().results.len(), 1);
}

/// Each part of the keyword index is looked into by every search, and merged later.
#[test]
fn many_notes_in_one_sync_make_one_part_of_the_keyword_index() {
    let vault = Vault::new("");
    let parts = || {
        let db = rusqlite::Connection::open(vault.index_file()).unwrap();
        let parts = |table: &str| {
            let sql = format!("SELECT count(DISTINCT segid) FROM {table}_idx");
            db.query_row(&sql, [], |row| row.get::<_, u32>(0)).unwrap()
        };
        assert_eq!(parts("note_words"), parts("words"));
        parts("words")
    };
    let write = |word: &str| {
        for n in 0..700 {
            // One in ten has frontmatter that cannot be read, which is noted in a row of its own.
            let title = if n % 10 == 0 { "[broken" } else { "whole" };
            let text = format!("---\ntitle: {title}\naliases: [a{n}]\n---\n{word}{n} #tag [[{}]]\n", n + 1);
            vault.write(&format!("{n}.md"), text);
        }
    };
    write("first");
    assert_eq!((vault.sync().added, parts()), (700, 1));
    write("second");
    assert_eq!((vault.sync().changed, parts()), (700, 2));
    let found = vault.index().search(&Query::literal("second699")).unwrap();
    assert_eq!(found.results[0].path.as_str(), "699.md");
}

#[test]
fn folder_names_and_properties_are_words_and_move_with_the_note() {
    let vault = Vault::new(
        "//- Bicycle/Chain.md\n---\ngear: [green tourer, \"[[Old hub]]\"]\nyear: 1998\n---\nReplace it.\n//- Empty.md\n---\nrider: Eleanor\n---\n",
    );
    vault.sync();
    let found = |query: &str| -> Vec<String> {
        let hits = vault.index().search(&Query::parse(query).unwrap().mode(Mode::Lexical)).unwrap();
        hits.results.iter().map(|hit| hit.path.to_string()).collect()
    };
    for query in ["bicycle", "\"green tourer\"", "hub", "1998", "\"old hub\""] {
        assert_eq!(found(query), ["Bicycle/Chain.md"], "{query}");
    }
    assert_eq!(found("eleanor"), ["Empty.md"]);
    // Not from one item of a list to the next, and the names of properties are no words.
    for query in ["\"tourer old\"", "gear", "rider"] {
        assert_eq!(found(query), [""; 0], "{query}");
    }
    std::fs::create_dir(vault.root().join("Barrow")).unwrap();
    std::fs::rename(vault.root().join("Bicycle/Chain.md"), vault.root().join("Barrow/Chain.md")).unwrap();
    assert_eq!(vault.sync().renamed, 1);
    assert_eq!((found("bicycle"), found("barrow tourer")), (vec![], vec!["Barrow/Chain.md".to_owned()]));
    assert_eq!(vault.dump(), vault.dump_of_rebuild());
}
