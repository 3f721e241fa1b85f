//! The evaluation from folder to report, with vectors of hashed words: what is found, what is left out, what is kept.

use std::fs;
use std::path::Path;

use benches::eval::{
    Collection, PassagePlan, Plan, ask_with_shares, find_known_items, find_names, find_passages, known_items, retrieve,
    rows_as_text,
};
use tempfile::TempDir;
use vault_index::{Index, Mode, ModelName, Options, SyncOptions};

const CORPUS: &str = r#"{"_id": "a/1", "title": "Heron", "text": "A heron stands in the pond and waits for frogs."}
{"_id": "2", "title": "", "text": "Bread rises slowly when the kitchen is cold in winter."}
{"_id": "x", "title": "Bicycle chains", "text": "Oil the chain and wipe what drips."}
{"_id": "4", "title": "Telescopes", "text": "Saturn shows its rings to a small telescope."}
{"_id": "5", "title": "", "text": ""}
"#;

const QUERIES: &str = r#"{"_id": "q1", "text": "where does the heron wait for frogs"}
{"_id": "q2", "text": "bread in a cold -kitchen \"winter"}
{"_id": "q3", "text": "nobody judged this"}
{"_id": "q4", "text": "rings of saturn"}
"#;

const QRELS: &str = "query-id\tcorpus-id\tscore\nq1\ta/1\t2\nq1\tx\t0\nq2\t2\t1\nq4\t4\t1\nq4\tgone\t1\n";

fn collection() -> Collection {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("corpus.jsonl", CORPUS), ("queries.jsonl", QUERIES), ("qrels.tsv", QRELS)] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    Collection::read(folder.path()).unwrap()
}

fn plan() -> Plan {
    Plan { model: Some(ModelName::Hashed), ..Plan::default() }
}

#[test]
fn a_collection_is_asked_in_all_modes() {
    let (collection, folder) = (collection(), tempfile::tempdir().unwrap());
    let (report, rows) = retrieve(&collection, folder.path(), &plan()).unwrap();
    assert_eq!((report.documents, report.queries, report.unjudged), (5, 3, 1));
    assert!(report.documents_a_second.is_some());
    let modes: Vec<&str> = report.modes.iter().map(|mode| mode.mode.as_str()).collect();
    assert_eq!(modes, ["lexical", "semantic", "hybrid", "rrf"]);
    // Only the answers have a word of their queries, so all three are at rank 1. One of the two documents that are
    // relevant to q4 is not in the collection: 1 / (1 + 1 / log2(3)) = .61315.
    let lexical = &report.modes[0];
    assert!((lexical.ndcg10 - (2.0 + 0.613_147) / 3.0).abs() < 1e-5, "{lexical:?}");
    assert_eq!((lexical.mrr10, lexical.recall100), (1.0, 2.5 / 3.0));
    assert!(report.modes.iter().all(|mode| mode.ms.is_some() == (mode.mode != "rrf")));

    assert_eq!(rows.len(), 4 * 3);
    let row = &rows[0];
    assert_eq!((row.mode.as_str(), row.query.as_str(), row.top[0].as_str()), ("lexical", "q1", "a/1"));
    assert_eq!(rows_as_text(&rows).lines().count(), 1 + rows.len());

    // Kept, it is not indexed again, and answers the same.
    let (again, same) = retrieve(&collection, folder.path(), &plan()).unwrap();
    assert_eq!((again.documents_a_second, same), (None, rows));
    let one = Plan { modes: vec![Mode::Lexical], queries: 1, ..plan() };
    let (report, rows) = retrieve(&collection, folder.path(), &one).unwrap();
    assert_eq!((report.queries, report.modes.len(), rows.len()), (1, 1, 1));
}

#[test]
fn passages_are_found_in_long_notes() {
    let (collection, folder) = (collection(), tempfile::tempdir().unwrap());
    let notes = PassagePlan { sections: 5, seed: 1 };
    let (report, rows) = find_passages(&collection, folder.path(), &plan(), notes).unwrap();
    assert_eq!((report.notes, report.queries, report.modes.len(), rows.len()), (1, 3, 3, 9));
    // There is one note, so it is the right one.
    assert_eq!((report.modes[0].mode.as_str(), report.modes[0].note_ndcg10), ("lexical", 1.0), "{report:?}");
    assert!(rows.iter().all(|row| row.top.iter().all(|shown| shown.contains(".md:"))), "{rows:?}");
}

/// Files as `(path, text)`.
fn vault(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

const VAULT: &[(&str, &str)] = &[
    ("Home.md", "# Home\n\nRead [[Slugs|who eats the lettuce at night]] and [[Slugs|slugs]] and [[Slugs]].\n"),
    ("Garden/Slugs.md", "---\naliases: [snail people]\n---\nThey come at night and eat all of the lettuce.\n"),
    (
        "Garden/Beds.md",
        "[[Slugs|snail people]] ![[Slugs|who eats]] [a bed of leaves](../Bread.md) [[Nothing|a lost note]]\n",
    ),
    ("Bread.md", "# Bread\n\nIt rises. See [[Bread#Crust|the crust of it]], [[Garden/Beds|12]] and [x](Home.md).\n"),
    ("Again.md", "Once more: [[Slugs|Who eats the lettuce, at night?]]\n"),
];

fn synced(vault: &Path, index_file: &Path) -> Index {
    let options = Options::new().index_file(index_file).model(ModelName::Hashed);
    let index = Index::open(vault, options).unwrap();
    index.sync_with(&SyncOptions::new().without_vectors()).unwrap();
    index
}

#[test]
fn links_with_words_of_their_own_are_known_items() {
    let (vault, place) = (vault(VAULT), tempfile::tempdir().unwrap());
    let index = synced(vault.path(), &place.path().join("index/index.db"));
    let items = known_items(&index).unwrap();
    let paths = |paths: &std::collections::BTreeSet<vault_index::VaultPath>| {
        paths.iter().map(ToString::to_string).collect::<Vec<String>>()
    };
    let items: Vec<_> =
        items.iter().map(|item| (item.text.as_str(), paths(&item.answers), paths(&item.left_out))).collect();
    let path = |paths: &[&str]| paths.iter().map(ToString::to_string).collect::<Vec<String>>();
    // Not: what the note is called, embeds, links to nowhere and to itself, words without letters.
    assert_eq!(
        items,
        [
            ("a bed of leaves", path(&["Bread.md"]), path(&["Garden/Beds.md"])),
            ("Who eats the lettuce, at night?", path(&["Garden/Slugs.md"]), path(&["Again.md", "Home.md"])),
        ]
    );
}

#[test]
fn the_notes_that_link_are_not_the_answer() {
    let (vault, place) = (vault(VAULT), tempfile::tempdir().unwrap());
    let file = place.path().join("index/index.db");
    let (report, rows) = find_known_items("v", vault.path(), &file, &plan()).unwrap();
    assert_eq!((report.notes, report.queries, report.modes.len()), (5, 2, 3));
    let lettuce: Vec<_> = rows.iter().filter(|row| row.query.contains("lettuce")).collect();
    assert_eq!((lettuce[0].mode.as_str(), lettuce[0].scores.first), ("lexical", Some(1)), "{lettuce:?}");
    for row in lettuce {
        assert!(!row.top.iter().any(|path| path == "Home.md" || path == "Again.md"), "{row:?}");
    }
    let empty = self::vault(&[("a.md", "[[b]]"), ("b.md", "b")]);
    let error = find_known_items("v", empty.path(), &place.path().join("2/index.db"), &plan()).unwrap_err();
    assert!(error.to_string().contains("no link has words of its own"), "{error}");
}

#[test]
fn notes_are_asked_for_by_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let vault = folder.path().join("vault");
    fs::create_dir(&vault).unwrap();
    for (name, text) in [("Cormorant", "A black bird."), ("heron", "# The grey heron\n\nIt waits."), ("Pond", "Frogs.")]
    {
        fs::write(vault.join(format!("{name}.md")), text).unwrap();
    }
    let report = find_names("v", &vault, &folder.path().join("index.db"), &plan()).unwrap();
    // Cormorant, heron, The grey heron, Pond.
    assert_eq!((report.notes, report.names, report.slips), (3, 4, 1));
    assert_eq!(report.prefixes, 7 + 3 + 10 + 2);
    assert_eq!(report.short_lists, report.prefixes);
    assert!(report.modes.iter().all(|mode| mode.first == 1.0 && mode.no_slip3 == 1.0), "{report:?}");
    assert!(report.to_string().contains("| lexical | 1.0000 |"), "{report}");
}

#[test]
fn a_collection_is_asked_while_vectors_come_in() {
    let (collection, folder) = (collection(), tempfile::tempdir().unwrap());
    let report = ask_with_shares(&collection, folder.path(), &plan()).unwrap();
    assert_eq!((report.documents, report.queries, report.shares.len()), (5, 3, 9));
    assert_eq!(report.shares[0].ndcg10.0, report.words, "without vectors words rank");
    let full = retrieve(&collection, &folder.path().join("full"), &plan()).unwrap().0;
    assert_eq!(report.shares[8].ndcg10.0, full.modes[2].ndcg10, "with all of them nothing is missing");
    // The vectors were kept.
    assert_eq!(ask_with_shares(&collection, folder.path(), &plan()).unwrap(), report);
}
