//! The demo vault, searched with the real model: what README shows.

use std::path::Path;

use vault_index::note::TagKey;
use vault_index::{GraphNode, Index, Mode, Options, Query, VaultPath};

fn demo() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/vaults")
}

/// One index for all tests of this file: embedding is what takes time.
fn index() -> &'static Index {
    static INDEX: std::sync::LazyLock<(tempfile::TempDir, Index)> = std::sync::LazyLock::new(|| {
        let folder = tempfile::tempdir().unwrap();
        let options = Options::new().index_file(folder.path().join("index.db"));
        let index = Index::open(demo().join("demo"), options).unwrap();
        let report = index.sync().unwrap();
        assert_eq!(report.warnings, []);
        assert_eq!(report.skipped, []);
        assert_eq!(report.pending, 0);
        (folder, index)
    });
    &INDEX.1
}

#[test]
fn questions_find_their_notes_by_meaning() {
    let queries = std::fs::read_to_string(demo().join("demo-queries.tsv")).unwrap();
    let mut missed = Vec::new();
    for line in queries.lines() {
        let (query, wanted) = line.split_once('\t').unwrap();
        let hits = index().search(&Query::literal(query).mode(Mode::Semantic)).unwrap();
        if hits.results.first().is_none_or(|h| h.path.as_str() != wanted) {
            missed.push(format!("{query}: {:?}", hits.results.first().map(|h| h.path.to_string())));
        }
    }
    assert_eq!(missed, Vec::<String>::new());
}

#[test]
fn the_default_finds_them_among_the_first_three() {
    let queries = std::fs::read_to_string(demo().join("demo-queries.tsv")).unwrap();
    for line in queries.lines() {
        let (query, wanted) = line.split_once('\t').unwrap();
        let hits = index().search(&Query::literal(query).limit(3)).unwrap();
        let found: Vec<&str> = hits.results.iter().map(|h| h.path.as_str()).collect();
        assert!(found.contains(&wanted), "{query}: {found:?} instead of {wanted}");
    }
}

/// The model knows pieces of German words, and makes of the whole what is near nothing: words decide.
#[test]
fn a_query_in_another_language_falls_back_to_words() {
    let german = "Wie erstelle ich einen Link";
    let found = |query: Query| {
        let hits = index().search(&query).unwrap();
        let results = hits.results.iter().map(|hit| (hit.path.to_string(), hit.score.to_bits()));
        (hits.mode, results.collect::<Vec<_>>())
    };
    let words = found(Query::literal(german).mode(Mode::Lexical));
    assert!(!words.1.is_empty());
    assert_eq!(found(Query::literal(german)), words);
    // Nor does a filter change a score.
    let (mode, filtered) = found(Query::parse(&format!("{german} path:Bicycle")).unwrap());
    assert!(mode == Mode::Lexical && filtered.iter().all(|hit| words.1.contains(hit)), "{filtered:?}");
}

#[test]
fn nonsense_is_not_found() {
    for nonsense in ["qwxzv plorf", "zzzzzz", "xkcdq vvbnm grblx"] {
        let hits = index().search(&Query::literal(nonsense)).unwrap();
        assert!(hits.results.is_empty(), "{nonsense}: {:?}", hits.results[0]);
    }
}

#[test]
fn links_of_the_demo_vault() {
    let resolve = |link: &str, from: &str| {
        index().resolve(link, Some(from)).unwrap().target.map(|t| t.to_string()).unwrap_or_default()
    };
    assert_eq!(resolve("[[Index]]", "Kitchen/Sourdough.md"), "Kitchen/Index.md");
    assert_eq!(resolve("Ideas", "Garden/Index.md"), "Ideas.md");
    assert_eq!(resolve("move/Index", "Home.md"), "House move/Index.md");
    assert_eq!(resolve("Nonna", "Home.md"), "");
    assert_eq!(resolve("v1.2 plan", "Home.md"), "House move/v1.2 plan.md");
    let block = index().resolve("[[Cello practice#^ten-minutes]]", None).unwrap();
    assert!(block.line.is_some() && !block.subpath_missing);
    let backlinks = index().backlinks("Garden/Soil.md", 1).unwrap();
    let pruning = backlinks.iter().find(|row| row.source.as_str() == "Garden/Pruning the apple tree.md").unwrap();
    assert_eq!((pruning.line, pruning.text.as_deref()), (14, Some("- \"[[Soil]]\"")), "a link in the frontmatter");
    let unresolved: Vec<String> = index().unresolved().unwrap().into_iter().map(|u| u.name).collect();
    assert_eq!(unresolved[..2], ["Grafting", "Broadband"]);
    assert_eq!(unresolved.len(), 9);
}

#[test]
fn what_is_asked_of_some_notes_is_what_all_say() {
    let all = index().notes().unwrap();
    let keys = [TagKey::new("#Daily"), TagKey::new("kitchen")];
    let bears = |note: &&GraphNode| note.tags.iter().any(|tag| keys.iter().any(|key| key.covers(&TagKey::new(tag))));
    let expected: Vec<GraphNode> = all.iter().filter(bears).cloned().collect();
    assert!(!expected.is_empty() && expected.len() < all.len());
    assert_eq!(index().notes_tagged(&keys).unwrap(), expected);
    assert_eq!(index().notes_tagged(&[TagKey::new("no-such-tag")]).unwrap(), []);

    let mut paths: Vec<VaultPath> = all.iter().rev().map(|note| VaultPath::new(&note.path).unwrap()).collect();
    paths.extend(["Attachments/moon.png", "No such note.md"].map(|path| VaultPath::new(path).unwrap()));
    assert!(index().notes_at(&paths).unwrap().iter().eq(all.iter().rev()));

    // Each link once, whichever end it is asked from.
    let mut rows = Vec::new();
    index()
        .all_links(&mut |row| {
            rows.push(row);
            Ok(())
        })
        .unwrap();
    for note in &all {
        let backlinks = index().backlinks(&note.path, 1).unwrap();
        let expected = rows.iter().filter(|row| row.target.as_ref().is_some_and(|target| target.as_str() == note.path));
        let place = |row: &vault_index::LinkRow| (row.source.clone(), row.line, row.raw.clone(), row.target.clone());
        assert_eq!(backlinks.iter().map(place).collect::<Vec<_>>(), expected.map(place).collect::<Vec<_>>());
    }
}

#[test]
fn languages_the_model_does_not_know_are_found_by_words() {
    let hits = index().search(&Query::literal("日本")).unwrap();
    assert!(hits.results.iter().any(|h| h.path.as_str().contains("日本語")), "{:?}", hits.results);
    assert!(hits.results.iter().all(|h| h.why.semantic.is_none()));
}
