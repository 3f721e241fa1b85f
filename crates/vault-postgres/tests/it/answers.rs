//! The answers of the database are those of the index file: passages, order, scores, excerpts.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use vault_index::backend::{self, ReadVectors, StoredVectors, rescore};
use vault_index::{
    Embedder, ErrorKind, Grouping, Index, Mode, Options, Query, Result, Role, Sort, SyncOptions, TokenCount,
};
use vault_postgres::VaultStore;

use crate::server::Server;
use crate::vault::{Vault, assert_same, model};

const MODES: [Mode; 3] = [Mode::Hybrid, Mode::Lexical, Mode::Semantic];

const WORDS: [&str; 16] = [
    "winter",
    "roses",
    "prune",
    "pruning",
    "well-known",
    "apple",
    "trees",
    "café",
    "東京都",
    "Straße",
    "don't",
    "2026-03-01",
    "bud",
    "x",
    "late",
    "a_b.c",
];

fn words(most: usize) -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(&WORDS[..]), 1..most).prop_map(|words| words.join(" "))
}

/// A note with some of everything that an index stores.
fn note() -> impl Strategy<Value = String> {
    let parts = (words(4), words(3), words(30), words(30), 0..9_u8, 0..5_u8);
    parts.prop_map(|(title, alias, first, second, rating, kind)| match kind {
        0 => format!("{first}\n"),
        1 => format!("# {title}\n\n{first}\n\n## {alias}\n\n{second} [[{title}]] #garden/{rating}\n"),
        2 => format!("---\ntitle: \"{title}\\0{alias}\"\naliases: [\"{alias}\"]\nrating: {rating}\ntags: [garden]\nmap: {{a: {rating}}}\n---\n{first}\n\n{second} ![[n1#{title}|{alias}]]\n"),
        3 => format!("# Plan\n\n- {first}\n- [x](n2.md) {second} #kitchen ^block\n\nkey:: {title}\n"),
        _ => String::new(),
    })
}

fn queries() -> Vec<String> {
    let mut queries: Vec<String> = WORDS.iter().map(|word| word.to_string()).collect();
    queries.extend(
        [
            "prune roses in winter",
            "\"apple trees\"",
            "\"late x\" roses",
            "tag:garden apple",
            "tag:garden/3",
            "-tag:garden bud",
            "rating>=4 winter",
            "map.a",
            "map.a>3 roses",
            "path:sub roses",
            "apple -trees",
            "wintr rosse",
            "pla",
            "has:alias",
            "aplpe",
            "京",
            "well known",
            "file:n1",
            "link:n2",
            "\"?!\"",
            "title:plan",
            "roses OR apple",
            "café strasse",
            "tag:kitchen",
        ]
        .map(str::to_owned),
    );
    queries
}

/// Words that are looked for, with some of everything that a query can have.
fn query(words: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    let part = (words, 0..12_u8, 0..9_u8).prop_map(|(words, kind, rating)| match kind {
        0 => format!("\"{words}\""),
        1 => format!("-\"{words}\""),
        2 => format!("OR {words}"),
        3 => format!("tag:garden/{rating}"),
        4 => format!("rating>={rating}"),
        5 => "path:sub".to_owned(),
        6 => format!("title:\"{words}\""),
        // A word that is not whole, or misspelled.
        7 => words.chars().skip(1).collect(),
        8 => words.chars().take(3).collect(),
        _ => words,
    });
    prop::collection::vec(part, 1..4).prop_map(|parts| parts.join(" "))
}

fn compare(file: &vault_index::Searcher, database: &vault_index::Searcher, queries: &[String]) {
    for text in queries {
        let Ok(query) = Query::parse(text) else { continue };
        for mode in MODES {
            assert_same(file, database, &query.clone().mode(mode));
        }
        assert_same(file, database, &query.clone().grouping(Grouping::Passages).sort(Sort::Modified));
    }
}

/// The bounds contain our own score, whatever the order in which pgvector adds.
fn bounds_hold(reader: &VaultStore) {
    let intervals = |query: &[f32]| reader.intervals(query).unwrap();
    let vectors = reader.vectors().unwrap();
    let (_, dimensions) = reader.embedder().unwrap().unwrap();
    let mut seed = 7_u32;
    let mut random = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 8) as f32 / 8_388_608.0 - 1.0
    };
    let mut compared = 0;
    for length in [1.0, 1e-20, 900.0] {
        let query: Vec<f32> = (0..dimensions).map(|_| random() * length).collect();
        for (slot, interval) in intervals(&query).iter().enumerate().filter(|(_, interval)| interval.is_some()) {
            let score = rescore(&query, &vectors(slot as i64).unwrap());
            assert!(interval.lower <= score && score <= interval.upper, "{interval:?} {score}");
            assert!(interval.upper - interval.lower < 1e-3 * length.max(1e-3), "{interval:?}");
            compared += 1;
        }
    }
    assert!(compared > 100, "{compared}");
}

/// Vaults are made, changed and synced step by step in both places.
#[test]
fn a_database_answers_what_a_file_answers() {
    let Some(server) = Server::new() else { return };
    let database = server.database("postgres");
    database.create_schema().unwrap();
    let config = Config { cases: 6, max_shrink_iters: 20, failure_persistence: None, ..Config::default() };
    let steps = prop::collection::vec(prop::collection::vec((0..24_u8, any::<bool>(), note()), 1..14), 1..4);
    let asked = prop::collection::vec(query(words(4)), 40);
    TestRunner::new(config)
        .run(&(steps, asked), |(steps, asked)| {
            let queries = [queries(), asked].concat();
            let vault = Vault::new("generated");
            database.create_vault(vault.name).unwrap();
            for changes in steps {
                for (number, in_folder, text) in changes {
                    let path = format!("{}n{number}.md", if in_folder { "sub/" } else { "" });
                    match text.len() % 7 {
                        0 => drop(std::fs::remove_file(vault.root().join(&path))),
                        1 => drop(std::fs::rename(
                            vault.root().join(&path),
                            vault.root().join(format!("was {number}.md")),
                        )),
                        _ => vault.write(&path, &text),
                    }
                }
                let report = vault.sync(&database).unwrap();
                assert_eq!((report.pending, report.unread), (0, 0));
                let index = vault.index();
                compare(&index.searcher().unwrap(), &vault.searcher(&database).unwrap(), &queries);
            }
            database.forget_vault(vault.name).unwrap();
            Ok(())
        })
        .unwrap();
}

#[test]
fn the_demo_vault_is_answered_alike() {
    let Some(server) = Server::new() else { return };
    let database = server.database("postgres");
    database.create_schema().unwrap();
    let vault = Vault::new("demo");
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/vaults/demo");
    let mut folders = vec![demo.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            match (entry.is_dir(), entry.extension().is_some_and(|extension| extension == "md")) {
                (true, _) => folders.push(entry),
                (false, true) => {
                    let path = entry.strip_prefix(&demo).unwrap().to_str().unwrap().to_owned();
                    vault.write(&path, &std::fs::read_to_string(&entry).unwrap());
                }
                _ => {}
            }
        }
    }
    database.create_vault(vault.name).unwrap();
    vault.sync(&database).unwrap();
    bounds_hold(&database.reader(vault.name).unwrap());
    let index = vault.index();
    let (file, database) = (index.searcher().unwrap(), vault.searcher(&database).unwrap());
    let queries = std::fs::read_to_string(demo.with_file_name("demo-queries.tsv")).unwrap();
    let mut asked = 0;
    for text in queries.lines().filter_map(|line| line.split('\t').next()).filter(|text| !text.starts_with('#')) {
        let Ok(query) = Query::parse(text) else { continue };
        MODES.iter().for_each(|mode| assert_same(&file, &database, &query.clone().mode(*mode)));
        asked += 1;
    }
    assert!(asked > 10, "{asked} queries");
    let mut words: Vec<String> = index.tags().unwrap().into_iter().map(|tag| tag.tag).collect();
    words.extend(queries.split_whitespace().map(str::to_owned));
    let words = prop::collection::vec(prop::sample::select(words), 1..5).prop_map(|words| words.join(" "));
    let config = Config { cases: 100, max_shrink_iters: 20, failure_persistence: None, ..Config::default() };
    TestRunner::new(config)
        .run(&query(words), |text| {
            compare(&file, &database, &[text]);
            Ok(())
        })
        .unwrap();
}

/// A model that fails when it is asked for a passage, unless it may be.
struct Counted {
    may_be_asked: bool,
}

impl TokenCount for Counted {
    fn count(&self, text: &str) -> usize {
        model().count(text)
    }
}

impl Embedder for Counted {
    fn id(&self) -> &str {
        "hashed-for-copies"
    }

    fn dimensions(&self) -> usize {
        model().dimensions()
    }

    fn max_tokens(&self) -> usize {
        model().max_tokens()
    }

    fn embed(&self, texts: &[&str], role: Role) -> Result<Vec<Vec<f32>>> {
        assert!(self.may_be_asked || role == Role::Query, "embedded again: {texts:?}");
        model().embed(texts, role)
    }
}

/// From a file into the database and from there into another file, nothing is embedded.
#[test]
fn copies_need_no_model() {
    let Some(server) = Server::new() else { return };
    let database = server.database("postgres");
    database.create_schema().unwrap();
    let vault = Vault::new("copied");
    database.create_vault(vault.name).unwrap();
    (0..30).for_each(|n| vault.write(&format!("n{n}.md"), &format!("# Heading {n}\n\nAbout day {n}, rose")));
    let file = |name: &str, model: Arc<dyn Embedder>| {
        let file = vault.root().with_file_name(name);
        let index = Index::open(vault.root(), Options::new().index_file(file).embedder(model)).unwrap();
        index.sync().unwrap();
        index
    };
    let first = file("first.db", Arc::new(Counted { may_be_asked: true }));
    let unasked: Arc<dyn Embedder> = Arc::new(Counted { may_be_asked: false });
    let stored = StoredVectors::new(backend::file(first.index_file()).unwrap(), unasked.clone()).unwrap();
    let writer = database.writer(vault.name, &stored, Duration::ZERO).unwrap();
    let report = backend::sync(&writer, &vault.root(), &stored, &[], &SyncOptions::new()).unwrap();
    assert_eq!((report.added, report.pending), (30, 0));
    drop(writer);
    let back = StoredVectors::new(database.reader(vault.name).unwrap(), unasked.clone()).unwrap();
    let second = file("second.db", Arc::new(back));
    let copied =
        backend::searcher(database.reader(vault.name).unwrap(), Arc::new(Counted { may_be_asked: true })).unwrap();
    for text in ["rose", "day 7", "heading"] {
        for mode in MODES {
            let query = Query::parse(text).unwrap().mode(mode);
            assert_same(&first.searcher().unwrap(), &copied, &query);
            assert_same(&first.searcher().unwrap(), &second.searcher().unwrap(), &query);
        }
    }
    let others = StoredVectors::new(database.reader(vault.name).unwrap(), model());
    assert_eq!(others.err().unwrap().kind(), ErrorKind::OtherModel);
}
