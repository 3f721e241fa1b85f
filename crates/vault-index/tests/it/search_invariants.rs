//! Invariants of search: scores are absolute, filters come first, answers are exact and always the same.

use std::sync::Arc;

use vault_index::{
    DateEdge, Embedder, Filter, Grouping, HashedEmbedder, Index, Mode, Query, Rerank, Reranker, Result, Role, Sort,
    SyncOptions, TokenCount,
};

use crate::vault::Vault;

fn garden() -> Vault {
    let vault = Vault::new(
        "//- Garden/Roses.md
        ---
        tags: [garden/pruning]
        rating: 5
        due: 2026-03-01
        ---
        # Roses

        Prune the roses in late winter, above an outward bud.
        //- Garden/Apple.md
        ---
        aliases: [Malus]
        rating: 3
        ---
        # The apple tree

        Pruning the apple tree. #garden
        //- Kitchen/Apple pie.md
        Apples, butter and flour. The apple trees grow elsewhere. #日本/東京
        //- Notes/東京.md
        東京都に行きました。 #gardens
        //- empty.md
        ",
    );
    vault.sync();
    vault
}

fn found(vault: &Vault, query: &str) -> Vec<String> {
    let query = Query::parse(query).unwrap().mode(Mode::Lexical);
    let mut paths: Vec<String> =
        vault.index().search(&query).unwrap().results.iter().map(|h| h.path.to_string()).collect();
    paths.sort();
    paths
}

#[test]
fn syntax_and_filters() {
    let vault = garden();
    let check = |query: &str, expected: &[&str]| assert_eq!(found(&vault, query), expected, "{query}");
    check("pruning", &["Garden/Apple.md", "Garden/Roses.md"]);
    check("PRUNED", &["Garden/Apple.md", "Garden/Roses.md"]);
    check("apple tag:garden", &["Garden/Apple.md"]);
    check("tag:garden", &["Garden/Apple.md", "Garden/Roses.md"]);
    check("tag:#GARDEN/pruning", &["Garden/Roses.md"]);
    check("tag:日本", &["Kitchen/Apple pie.md"]);
    check("path:Kitchen apple", &["Kitchen/Apple pie.md"]);
    check("path:Kitchen path:Garden/Ap* apple", &["Garden/Apple.md", "Kitchen/Apple pie.md"]);
    check("\"apple tree\"", &["Garden/Apple.md"]);
    check("apple -butter", &["Garden/Apple.md"]);
    check("malus", &["Garden/Apple.md"]);
    check("東京", &["Kitchen/Apple pie.md", "Notes/東京.md"]);
    check("都", &["Notes/東京.md"]);
    check("empty", &["empty.md"]);
    check("pie", &["Kitchen/Apple pie.md"]);
    check("?!", &[]);
    check("-- tag:garden", &["Garden/Apple.md", "Garden/Roses.md", "Notes/東京.md"]);
}

#[test]
fn properties_and_dates() {
    let vault = garden();
    let listed = |properties: &[&str]| {
        let filter = properties.iter().fold(Filter::default(), |filter, p| filter.property(p.parse().unwrap()));
        let hits = vault.index().search(&Query::default().filter(filter)).unwrap();
        let mut paths: Vec<String> = hits.results.iter().map(|h| h.path.to_string()).collect();
        paths.sort();
        paths
    };
    assert_eq!(listed(&["rating"]), ["Garden/Apple.md", "Garden/Roses.md"]);
    assert_eq!(listed(&["Rating>=4"]), ["Garden/Roses.md"]);
    assert_eq!(listed(&["rating", "due<2026-03-02"]), ["Garden/Roses.md"]);
    assert_eq!(listed(&["due>2026-03-01"]), [""; 0]);
    let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(86_400 * 365 * 30);
    let file = std::fs::File::options().write(true).open(vault.root().join("Garden/Roses.md")).unwrap();
    file.set_modified(old).unwrap();
    drop(file);
    vault.sync();
    let now = "2026-11-21T12:00:00Z[UTC]".parse().unwrap();
    let filter = Filter::default().before(DateEdge::End.parse("2001", &now).unwrap());
    let hits = vault.index().search(&Query::default().filter(filter)).unwrap();
    assert_eq!(hits.results.len(), 1);
    assert_eq!(hits.results[0].path.as_str(), "Garden/Roses.md");
}

#[test]
fn every_property_can_be_asked_for() {
    let vault = Vault::new(
        "//- a.md
        ---
        title: The Title
        aliases: [One, Two]
        tags: project/x
        map: {a: 1}
        empty:
        none: []
        pad: \" in the middle \"
        due: 2026-03
        cssclass: wide
        ---
        text #inline
        //- b.md
        text #project",
    );
    vault.sync();
    let index = vault.index();
    let found = |test: &str| {
        let filter = Filter::default().property(test.parse().unwrap());
        index.search(&Query::default().filter(filter)).unwrap().results.len()
    };
    for test in ["title", "title=the title", "aliases=two", "Tags", "tags=project/x", "map", "map.a", "map.a=1"] {
        assert_eq!(found(test), 1, "{test}");
    }
    assert_eq!((found("empty"), found("none"), found("empty=x"), found("empty!=x")), (1, 1, 0, 1));
    for test in
        ["none!=x", "Empty != 1", "tag=project/x", "alias", "alias=one", "cssclass=wide", "cssclasses", "tag!=x"]
    {
        assert_eq!(found(test), 1, "{test}");
    }
    for test in ["pad=in the middle", "pad= in the middle ", "due=2026", "due>2026-02", "due<2026-04-01", "due=2026-03"]
    {
        assert_eq!(found(test), 1, "{test}");
    }
    assert_eq!((found("alias!=one"), found("due>2026-03"), found("nothing!=x")), (0, 0, 0));
    assert_eq!((found("tags=inline"), found("map.b"), found("a"), found("ma")), (0, 0, 0, 0));
    let listed = |query: &str| index.search(&Query::parse(query).unwrap()).unwrap().results.len();
    assert_eq!(
        (listed("-tag:project"), listed("-tag:other"), listed("-path:a"), listed("text -path:b.md")),
        (0, 2, 1, 1)
    );
}

/// In scripts with accents and cases, as in English.
#[test]
fn paths_of_any_script() {
    let vault = Vault::new(
        "//- Caf\u{e9}/x.md
        text
        //- a/r\u{e9}sum\u{e9}.md
        text
        //- \u{c4}rger.md
        text
        //- v1.2 plans/v1.3 note.md
        text",
    );
    vault.sync();
    let check = |query: &str, expected: &[&str]| assert_eq!(found(&vault, query), expected, "{query}");
    check("path:Caf?/*", &["Caf\u{e9}/x.md"]);
    check("path:CAF\u{c9}", &["Caf\u{e9}/x.md"]);
    check("path:Cafe\u{301}", &["Caf\u{e9}/x.md"]);
    check("path:**/r[\u{e9}]sum\u{e9}.md", &["a/r\u{e9}sum\u{e9}.md"]);
    check("path:\u{e4}rger", &["\u{c4}rger.md"]);
    check("path:\"v1.2 plans/v1.3 note\"", &["v1.2 plans/v1.3 note.md"]);
    for query in ["-path:caf?", "-path:CAF\u{c9}"] {
        check(query, &["a/r\u{e9}sum\u{e9}.md", "v1.2 plans/v1.3 note.md", "\u{c4}rger.md"]);
    }
}

/// Ids are in the order of indexing, which differs between an index that grew and a fresh one.
#[test]
fn notes_of_one_time_are_listed_by_path() {
    let vault = Vault::new("");
    vault.write("m.md", format!("# One\n\n{0}\n\n# Two\n\n{0}\n", "many words ".repeat(150)));
    vault.sync();
    vault.write("z.md", "text\n");
    vault.sync();
    vault.write("a.md", "text\n");
    let time = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    for name in ["m.md", "z.md", "a.md"] {
        std::fs::File::options().write(true).open(vault.root().join(name)).unwrap().set_modified(time).unwrap();
    }
    vault.sync();
    let listed = |grouping, limit| {
        let query = Query::parse("-path:none").unwrap().limit(limit).grouping(grouping);
        let results = vault.index().search(&query).unwrap().results;
        results.iter().map(|hit| format!("{}:{}", hit.path, hit.line)).collect::<Vec<_>>()
    };
    assert_eq!(listed(Grouping::BestPassage, 2), ["a.md:1", "m.md:1"]);
    let passages = listed(Grouping::Passages, 20);
    let lines: Vec<u32> = passages.iter().filter_map(|p| p.strip_prefix("m.md:")?.parse().ok()).collect();
    assert!(lines.len() > 1 && lines.is_sorted() && passages.len() == lines.len() + 2, "{passages:?}");
    assert_eq!((passages.first().unwrap().as_str(), passages.last().unwrap().as_str()), ("a.md:1", "z.md:1"));
}

/// Times of files are kept as 64 bits of nanoseconds, which end in 1677 and 2262.
#[test]
fn dates_beyond_all_times_of_files() {
    let vault = garden();
    let now = "2026-11-21T12:00:00Z[UTC]".parse().unwrap();
    let found = |after: Option<&str>, before: Option<&str>| {
        let date = |text: &str, edge: DateEdge| edge.parse(text, &now).unwrap();
        let mut filter = Filter::default();
        filter.after = after.map(|text| date(text, DateEdge::Start));
        filter.before = before.map(|text| date(text, DateEdge::End));
        vault.index().search(&Query::default().filter(filter)).unwrap().results.len()
    };
    assert_eq!((found(Some("1500"), None), found(None, Some("1600"))), (5, 0));
    assert_eq!((found(Some("2900"), None), found(None, Some("2900"))), (0, 5));
}

#[test]
fn scores_are_absolute_and_filters_come_first() {
    let vault = Vault::new("");
    for note in 0..200 {
        let tag = if note % 20 == 0 { "#rare" } else { "#common" };
        let words = ["hill", "river", "cloud", "stone", "road"];
        let text: Vec<&str> = (0..12).map(|w| words[(note * 7 + w * w * 3 + w) % 5]).collect();
        vault.write(&format!("n{note:03}.md"), format!("{tag}\n\n{} note{note}\n", text.join(" ")));
    }
    vault.sync();
    let index = vault.index();
    for mode in [Mode::Hybrid, Mode::Semantic, Mode::Lexical] {
        let ask = |query: &str, limit| {
            let query = Query::parse(query).unwrap().mode(mode).limit(limit).min_score(0.0);
            index.search(&query).unwrap().results
        };
        let all = ask("river stone hill", 1000);
        assert!(all.len() >= 190, "{mode:?}: {}", all.len());
        // A filter takes nothing from what it keeps, and k results come back whenever k match.
        let rare = ask("river stone hill tag:rare", 5);
        let expected: Vec<_> = all.iter().filter(|h| h.tags == ["rare"]).take(5).cloned().collect();
        assert_eq!(rare, expected, "{mode:?}");
        // The first k of many are the same as k asked for.
        assert_eq!(ask("river stone hill", 7), all[..7], "{mode:?}");
        assert!(all.iter().all(|h| h.score.is_finite() && (0.0..=1.0).contains(&h.score)));
        assert!(all.windows(2).all(|w| w[0].score > w[1].score || (w[0].score == w[1].score && w[0].path < w[1].path)));
    }
    let words = Query::literal("stone").mode(Mode::Lexical);
    let many = [Query::literal("cloud"), Query::literal("road river"), Query::literal(""), words];
    let answers = index.searcher().unwrap().search_many(&many);
    assert_eq!(answers[0].as_ref().unwrap(), &index.search(&many[0]).unwrap());
    assert_eq!(answers[1].as_ref().unwrap(), &index.search(&many[1]).unwrap());
    assert!(answers[2].is_err());
    assert_eq!(answers[3].as_ref().unwrap(), &index.search(&many[3]).unwrap());
}

#[test]
fn every_passage_or_the_best_of_each_note() {
    let vault = Vault::new("");
    let section =
        |n: usize| format!("## Part {n}\n\n{}\n\n", format!("lake{n} water and wind over the lake. ").repeat(60));
    vault.write("long.md", format!("# Long\n\n{}{}{}", section(1), section(2), section(3)));
    vault.write("short.md", "a lake\n");
    vault.sync();
    let index = vault.index();
    let query = Query::literal("lake2 water").limit(50);
    let best = index.search(&query).unwrap().results;
    assert_eq!(best.iter().filter(|h| h.path.as_str() == "long.md").count(), 1);
    let shown = best.iter().find(|h| h.path.as_str() == "long.md").unwrap();
    assert!(shown.headings.contains(&"Part 2".to_string()), "{:?}", shown.headings);
    let all = index.search(&query.grouping(Grouping::Passages)).unwrap().results;
    assert!(all.iter().filter(|h| h.path.as_str() == "long.md").count() > 1);
    for hit in &all {
        let text = std::fs::read_to_string(vault.root().join(hit.path.as_str())).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let (from, to) = (hit.start_line as usize - 1, hit.end_line as usize);
        assert!(lines[from..to].join("\n").contains(hit.text.trim()), "lines {from}..{to} of {}", hit.path);
        let line = lines[hit.line as usize - 1];
        assert!(line.contains("lake") || line.contains("water"), "line {} of {}: {line:?}", hit.line, hit.path);
    }
}

#[test]
fn similar_notes() {
    let vault = garden();
    let query = Query::like("Apple").min_score(0.0);
    let hits = vault.index().search(&query).unwrap();
    assert!(!hits.results.is_empty());
    assert!(hits.results.iter().all(|h| h.path.as_str() != "Garden/Apple.md"));
    let words = Query::like("Apple").mode(Mode::Lexical);
    assert!(vault.index().search(&words).unwrap_err().to_string().contains("leave out --mode lexical"));
    vault.write("pic.png", "not really");
    vault.sync();
    let attachment = Query::like("pic.png");
    assert!(vault.index().search(&attachment).unwrap_err().to_string().contains("not an indexed note"));
    let query = "tag:gardn tag:garden path:Nowhere path:Garden -tag:gardn -tag:garden -path:Nowhere -path:Garden";
    let unmatched = vault.index().searcher().unwrap().unmatched(&Query::parse(query).unwrap()).unwrap();
    let names = |lines: &[String], names: [&str; 2]| {
        lines.len() == 2 && lines.iter().zip(names).all(|(line, name)| line.contains(name))
    };
    assert!(names(&unmatched.wanted, ["`gardn`", "`Nowhere`"]), "{unmatched:?}");
    assert!(names(&unmatched.excluded, ["`-tag:gardn` ", "`-path:Nowhere` "]), "{unmatched:?}");
    vault.write("Rated.md", "---\nrating: 4\n---\nfour of five\n");
    vault.sync();
    let filter = Filter::default()
        .property("rating>3".parse().unwrap())
        .property("rating>99".parse().unwrap())
        .after("2200-01-02T12:00Z".parse().unwrap());
    let unmatched = vault.index().searcher().unwrap().unmatched(&Query::default().filter(filter)).unwrap();
    assert!(names(&unmatched.wanted, ["since 2200-01-0", "`rating>99`"]), "{unmatched:?}");
    let unknown = Query::like("Aple");
    let error = vault.index().search(&unknown).unwrap_err().to_string();
    assert!(error.contains("Garden/Apple.md"), "{error}");
}

#[test]
fn nothing_reaches_the_floor_but_something_is_near() {
    let vault = garden();
    let query = Query::literal("pruning").min_score(0.999);
    let hits = vault.index().search(&query).unwrap();
    assert!(hits.results.is_empty());
    assert!(!hits.near_misses.is_empty() && hits.near_misses.len() <= 3);
}

/// The floor of sums of both parts is none for one of them.
#[test]
fn what_words_alone_find_is_found_while_there_are_no_vectors() {
    let vault = Vault::new("//- a.md\nthe heron waits by the water\n");
    for n in 0..20 {
        vault.write(&format!("n{n}.md"), "wings and feathers fly over the wide and quiet land\n");
    }
    let sync = SyncOptions::new().without_vectors();
    vault.index().sync_with(&sync).unwrap();
    let asked = |mode| {
        let query = Query::literal("heron nest tower village").mode(mode);
        vault.index().search(&query).unwrap().results.iter().map(|h| h.path.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(asked(Mode::Lexical), ["a.md"]);
    assert_eq!(asked(Mode::Hybrid), ["a.md"]);
}

/// A model for which no query is near anything.
struct DistantModel;

impl TokenCount for DistantModel {
    fn count(&self, text: &str) -> usize {
        HashedEmbedder::new().count(text)
    }
}

impl Embedder for DistantModel {
    fn id(&self) -> &str {
        "elsewhere"
    }

    fn dimensions(&self) -> usize {
        2
    }

    fn max_tokens(&self) -> usize {
        254
    }

    fn embed(&self, texts: &[&str], role: Role) -> Result<Vec<Vec<f32>>> {
        let vector = if role == Role::Query { vec![0.0, 1.0] } else { vec![1.0, 0.0] };
        Ok(vec![vector; texts.len()])
    }
}

/// A model that gives all texts a common direction, as many do: the cosine of unrelated texts is .8.
struct NarrowModel;

impl TokenCount for NarrowModel {
    fn count(&self, text: &str) -> usize {
        HashedEmbedder::new().count(text)
    }
}

impl Embedder for NarrowModel {
    fn id(&self) -> &str {
        "narrow"
    }

    fn dimensions(&self) -> usize {
        3
    }

    fn max_tokens(&self) -> usize {
        254
    }

    fn cosine_range(&self) -> Option<(f32, f32)> {
        Some((0.8, 0.9))
    }

    fn embed(&self, texts: &[&str], _role: Role) -> Result<Vec<Vec<f32>>> {
        let is_of = |text: &str, words: &[&str]| words.iter().any(|word| text.contains(word));
        let vector = |text: &&str| match is_of(text, &["rain", "river"]) {
            true => vec![0.8_f32.sqrt(), 0.2_f32.sqrt(), 0.0],
            false => vec![0.8_f32.sqrt(), 0.0, 0.2_f32.sqrt()],
        };
        Ok(texts.iter().map(vector).collect())
    }
}

#[test]
fn unrelated_notes_are_below_the_floor_of_any_model() {
    let vault = Vault::new("//- walk.md\nalong the river\n//- oven.md\nbread and flame\n//- tax.md\nforms in May\n");
    let index = Index::open(vault.root(), vault.options().embedder(Arc::new(NarrowModel))).unwrap();
    index.sync().unwrap();
    for mode in [Mode::Hybrid, Mode::Semantic] {
        let hits = index.search(&Query::literal("rain").mode(mode)).unwrap().results;
        assert_eq!(hits.iter().map(|hit| hit.path.as_str()).collect::<Vec<_>>(), ["walk.md"], "{mode:?}");
        assert!(hits[0].why.semantic.is_some_and(|cosine| cosine > 0.99));
    }
    let similar = index.search(&Query::like("oven.md")).unwrap().results;
    assert_eq!(similar.iter().map(|hit| hit.path.as_str()).collect::<Vec<_>>(), ["tax.md"]);
}

/// Whatever is filtered, sorted or reranked, and whatever score is asked for.
#[test]
fn words_alone_rank_what_is_beyond_the_model() {
    struct ConstantReranker;
    impl Reranker for ConstantReranker {
        fn id(&self) -> &str {
            "half"
        }

        fn score(&self, _query: &str, passages: &[&str]) -> Result<Vec<f32>> {
            Ok(vec![0.5; passages.len()])
        }
    }
    let vault = Vault::new("//- a.md\nein Garten\n//- b/c.md\nim Garten\n//- d.md\nam Fluss\n");
    let index = Index::open(vault.root(), vault.options().embedder(Arc::new(DistantModel))).unwrap();
    index.sync().unwrap();
    let query = Query::literal("Garten pflegen");
    let scores = |query: &Query| {
        let hits = index.search(query).unwrap();
        assert_eq!(hits.mode, Mode::Lexical);
        hits.results.into_iter().map(|hit| (hit.path.to_string(), hit.score)).collect::<Vec<_>>()
    };
    let found = scores(&query);
    assert_eq!(found.iter().map(|(path, _)| path.as_str()).collect::<Vec<_>>(), ["a.md", "b/c.md"]);
    assert_eq!(scores(&query.clone().min_score(0.001)), found);
    assert_eq!(scores(&query.clone().sort(Sort::Path)), found);
    assert_eq!(scores(&query.clone().filter(Filter::default().path("b").unwrap())), found[1..]);
    assert_eq!(index.searcher().unwrap().matches(&query).unwrap().len(), 2);
    let reranked = index.search_reranked(&query, &Rerank::new(Arc::new(ConstantReranker))).unwrap();
    assert_eq!((reranked.results.len(), reranked.mode), (2, Mode::Lexical));
}

#[test]
fn the_few_notes_with_vectors_are_not_first_for_having_them() {
    let vault = Vault::new("//- audit.md\nthe incident of the town\n");
    vault.sync();
    vault.write("records.md", "incident records: how an incident is opened, and who closes the incident\n");
    for n in 0..40 {
        vault.write(&format!("n{n}.md"), "wings and feathers fly over the wide and quiet land\n");
    }
    vault.index().sync_with(&SyncOptions::new().without_vectors()).unwrap();
    for query in ["incident", "incident opened"] {
        let hits = vault.index().search(&Query::literal(query)).unwrap().results;
        let found: Vec<_> = hits.iter().map(|hit| (hit.path.as_str(), hit.why.semantic.is_some())).collect();
        assert_eq!(found, [("records.md", false), ("audit.md", true)], "{query}");
    }
}

#[test]
fn near_misses_are_notes_whatever_is_listed() {
    let vault = Vault::new("//- b.md\nheron\n//- a.md\nheron\n");
    let section = |n: usize| format!("## Part {n}\n\n{}\n\n", format!("heron{n} heron water ").repeat(80));
    vault.write("long.md", format!("{}{}{}{}", section(1), section(2), section(3), section(4)));
    vault.sync();
    for grouping in [Grouping::BestPassage, Grouping::Passages] {
        let query = Query::literal("heron crane").grouping(grouping).min_score(1.0).mode(Mode::Lexical);
        let hits = vault.index().search(&query).unwrap();
        assert!(hits.results.is_empty());
        let mut near: Vec<&str> = hits.near_misses.iter().map(|miss| miss.path.as_str()).collect();
        near.sort_unstable();
        assert_eq!(near, ["a.md", "b.md", "long.md"], "{grouping:?}");
    }
}

/// What many notes repeat, a footer whose address differs, is not what they are about.
#[test]
fn a_note_about_the_words_of_a_footer_comes_before_those_that_have_it() {
    let body = "Seeds want light soil, water each morning, and a window that looks south. ".repeat(30);
    let mut files = String::new();
    for n in 0..8 {
        files += &format!("//- Plant {n}.md\n{body} {n}\n\n## About this page\n\n");
        files += &format!("[![Edit](https://img.example/e.svg)](https://g.example/{n}) This note in GitHub. ");
        files += "Whoever finds a mistake can mend the page there, and all readers see what was changed on the next ";
        files += "day, when somebody has looked at it and found that it is right and well said.\n";
        files += &format!("https://git.example/notes/{n} %%made by a template, number {n}%%\n");
    }
    files += "//- Publishing.md\nEach evening a script sends every changed note to GitHub, where readers find it.\n";
    let vault = Vault::new(&files);
    vault.sync();
    for mode in [Mode::Hybrid, Mode::Lexical] {
        let hits = vault.index().search(&Query::literal("note github").mode(mode)).unwrap().results;
        let first = &hits[0];
        assert_eq!((first.path.as_str(), first.why.repeated), ("Publishing.md", None), "{mode:?}");
        let footer = hits.iter().find(|hit| hit.text.contains("GitHub") && hit.path != first.path).unwrap();
        assert_eq!(footer.why.repeated, Some(8), "{footer:?}");
        assert!(footer.score < first.score && first.score < 0.8);
    }
    // Comments are words that can be searched for.
    assert_eq!(found(&vault, "template").len(), 8);
}

/// Notes in the order in which a search by words finds them, with the words of it that the first one has.
fn ranked(vault: &Vault, query: &str) -> (Vec<String>, Vec<String>) {
    let hits = vault.index().search(&Query::parse(query).unwrap().mode(Mode::Lexical)).unwrap();
    let terms = hits.results.first().map(|hit| hit.why.terms.clone()).unwrap_or_default();
    (hits.results.iter().map(|hit| hit.path.to_string()).collect(), terms)
}

#[test]
fn the_exact_word_comes_before_others_of_its_stem() {
    let vault = Vault::new("//- exact.md\nWe thought about informing all the people of the town about the new plan.\n");
    for n in 0..30 {
        vault.write(&format!("n{n}.md"), "Information about information, and informed people.\n");
        vault.write(&format!("o{n}.md"), "Something else.\n");
    }
    vault.sync();
    let (found, terms) = ranked(&vault, "informing");
    assert_eq!((found[0].as_str(), found.len(), terms), ("exact.md", 10, vec!["informing".to_owned()]));
}

#[test]
fn the_last_word_may_be_a_beginning() {
    let vault =
        Vault::new("//- a.md\nwe draw on a canvas\n//- b.md\nthe canvases are here\n//- c.md\nthe can is empty\n");
    vault.write("d.md", "in the cafeteria");
    vault.sync();
    for query in ["canv", "draw canva", "CANV"] {
        let (mut found, terms) = ranked(&vault, query);
        found.sort();
        assert_eq!(found, ["a.md", "b.md"], "{query}");
        assert!(terms.iter().any(|term| term.starts_with("canvas")), "{query}: {terms:?}");
    }
    for query in ["canv*", "canv* xylophone", "draw canva*"] {
        assert!(ranked(&vault, query).0.contains(&"b.md".to_owned()), "{query}");
    }
    for query in ["canv.", "canv xylophone", "ca", "canz", "*canv*"] {
        assert_eq!(ranked(&vault, query).0, [""; 0], "{query}");
    }
    // However its accents are encoded.
    for query in ["caf\u{e9}", "cafe\u{301}"] {
        assert_eq!(ranked(&vault, query).0, ["d.md"], "{query:?}");
    }
    // Where there is the word itself, what begins with it comes after it.
    assert_eq!(ranked(&vault, "canvas").0, ["a.md", "b.md"]);
}

#[test]
fn a_word_in_no_note_is_read_as_the_nearest_and_said() {
    let vault = Vault::new(
        "//- a.md\nmoved from evernote to plain text\n//- b.md\nEvernotes of everyone\n//- c.md\nthe wheel\n",
    );
    vault.sync();
    let search = |query: &str| vault.index().search(&Query::literal(query).mode(Mode::Lexical)).unwrap();
    let hits = search("the evrnote wheel");
    let read: Vec<_> = hits.substitutions.iter().map(|read| (read.word.as_str(), read.read_as.join(" "))).collect();
    assert_eq!(read, [("evrnote", "evernote".to_owned())]);
    assert_eq!(hits.results.len(), 3);
    assert!(hits.results[0].score < 1.0);
    assert_eq!(search("evernote wheel").substitutions, []);
    let nothing = search("qqxzvv wwkjhh");
    assert_eq!((nothing.results.len(), nothing.substitutions.len(), nothing.near_misses.len()), (0, 0, 0));
    // The words of a note that is gone are none any more.
    std::fs::remove_file(vault.root().join("a.md")).unwrap();
    std::fs::remove_file(vault.root().join("b.md")).unwrap();
    vault.sync();
    assert_eq!(search("evrnote").substitutions, []);
}

#[test]
fn exclusions_leave_out_what_holds_the_word_and_nothing_else() {
    let vault = Vault::new(
        "//- a.md\nuniversity life\n//- b.md\nuniversal life\n//- c.md\n---\nat: University\n---\nlife of machines, learning\n",
    );
    vault.sync();
    let check = |query: &str, expected: &[&str]| assert_eq!(found(&vault, query), expected, "{query}");
    check("life -university", &["b.md"]);
    check("life -universal", &["a.md", "c.md"]);
    check("life -univers", &["a.md", "b.md", "c.md"]);
    check("life -\"machines learning\"", &["a.md", "b.md"]);
    check("life -\"machine learning\"", &["a.md", "b.md", "c.md"]);
}

#[test]
fn a_word_said_twice_counts_twice() {
    let vault = Vault::new("//- heron.md\nheron crane\n//- stork.md\nstork crane\n//- other.md\nwater\n");
    vault.sync();
    assert_eq!(ranked(&vault, "heron stork heron").0, ["heron.md", "stork.md"]);
    assert_eq!(ranked(&vault, "heron stork stork").0, ["stork.md", "heron.md"]);
}

#[test]
fn an_emoji_is_ranked_by_words_alone() {
    let vault = Vault::new(
        "//- Thai.md
        สวัสดีครับ ยินดีต้อนรับ
        //- Party.md
        The party was a success 🔥 and we danced.",
    );
    vault.sync();
    let hits = vault.index().search(&Query::literal("🔥")).unwrap();
    let found: Vec<_> = hits.results.iter().map(|hit| (hit.path.as_str(), hit.why.semantic)).collect();
    assert_eq!(found, [("Party.md", None)]);
}

#[test]
fn a_result_names_the_heading_that_its_words_stand_under() {
    let vault = Vault::new(
        "//- A.md
         # Meetings

         Words of all kinds.

         ## Monday

         ### metoo

         Nothing else.

         ## Tuesday

         The budget.",
    );
    vault.sync();
    let index = vault.index();
    for (words, line, headings) in [
        ("metoo", 7, &["Meetings", "Monday", "metoo"][..]),
        ("budget", 13, &["Meetings", "Tuesday"]),
        ("kinds", 3, &["Meetings"]),
    ] {
        let hit = &index.search(&Query::literal(words).mode(Mode::Lexical)).unwrap().results[0];
        assert_eq!((hit.line, hit.start_line), (line, 1));
        assert_eq!(hit.headings, headings);
    }
}

#[test]
fn words_that_no_note_has_are_told_as_they_are_written() {
    let vault = garden();
    let index = vault.index();
    let unknown = |query: &str| index.search(&Query::literal(query).mode(Mode::Lexical)).unwrap().unknown_words;
    assert_eq!(unknown("roses by OSTROWSKI, of Ostrowski and the apple"), ["OSTROWSKI", "Ostrowski"]);
    assert_eq!(unknown("prune roses"), [""; 0]);
    // Read as `prune`.
    assert_eq!(unknown("pruune roses"), [""; 0]);
    // Parts of it are in no note, which says nothing of words.
    assert_eq!(unknown("東京都庁舎"), [""; 0]);
    assert!(index.search(&Query::literal("OSTROWSKI").mode(Mode::Semantic)).unwrap().unknown_words.is_empty());
}

#[test]
fn weak_results_are_little_above_the_floor() {
    let vault = garden();
    let index = vault.index();
    let weak = |query: Query| -> Vec<(f32, bool)> {
        index.search(&query).unwrap().results.iter().map(|hit| (hit.score, hit.is_weak)).collect()
    };
    assert!(weak(Query::literal("apple tree")).iter().all(|(score, weak)| *weak == (*score < 1.75 * 0.112)));
    assert!(weak(Query::literal("apple tree").min_score(0.0)).iter().any(|(_, weak)| *weak));
    assert!(weak(Query::parse("\"apple\"").unwrap()).iter().all(|(_, weak)| !weak));
    assert!(weak(Query::parse("tag:garden").unwrap()).iter().all(|(_, weak)| !weak));
}
