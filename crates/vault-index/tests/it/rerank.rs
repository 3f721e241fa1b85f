//! Laws of reranking: what is scored, how it is ordered, what is refused; and the command with a real cross-encoder.

use std::sync::{Arc, Mutex};

use vault_index::{ErrorKind, Grouping, Hits, Mode, NameMatch, Query, Rerank, Reranker, Result};

use crate::vault::Vault;

/// Scores by a function of the passage, and keeps what it was asked.
struct ScriptedReranker {
    score: fn(&str) -> f32,
    asked: Mutex<Vec<(String, Vec<String>)>>,
}

impl ScriptedReranker {
    fn new(score: fn(&str) -> f32) -> Arc<Self> {
        Arc::new(Self { score, asked: Mutex::default() })
    }

    /// The passages of all calls.
    fn passages(&self) -> Vec<String> {
        self.asked.lock().unwrap().iter().flat_map(|(_, passages)| passages.clone()).collect()
    }
}

impl Reranker for ScriptedReranker {
    fn id(&self) -> &str {
        "scripted"
    }

    fn score(&self, query: &str, passages: &[&str]) -> Result<Vec<f32>> {
        let owned = passages.iter().map(|passage| (*passage).to_owned()).collect();
        self.asked.lock().unwrap().push((query.to_owned(), owned));
        Ok(passages.iter().map(|passage| (self.score)(passage)).collect())
    }
}

/// The number behind `mark`, in hundredths; 0 without one.
fn mark(passage: &str) -> f32 {
    let number = passage.split("mark ").nth(1).and_then(|rest| rest.split_whitespace().next());
    number.and_then(|number| number.parse::<f32>().ok()).unwrap_or(0.0) / 100.0
}

/// Twenty notes about a heron, in an order that words do not know, and one about nothing of the kind.
fn herons() -> Vault {
    let vault = Vault::new("//- Other.md\nmark 99 of something else\n");
    for note in 0..20 {
        let tag = if note % 4 == 0 { "#even" } else { "#odd" };
        let (herons, mark) = ("heron ".repeat(1 + note % 5), (note * 37) % 101);
        vault.write(&format!("n{note:02}.md"), format!("# Note {note}\n\n{herons} mark {mark} {tag}\n"));
    }
    vault.sync();
    vault
}

fn heron() -> Query {
    Query::literal("heron").mode(Mode::Lexical)
}

fn order(hits: &Hits) -> Vec<(&str, f32)> {
    hits.results.iter().map(|hit| (hit.path.as_str(), hit.score)).collect()
}

#[test]
fn results_are_in_the_order_of_the_reranker() {
    let vault = herons();
    let index = vault.index();
    let reranker = ScriptedReranker::new(mark);
    let hits = index.search_reranked(&heron(), &Rerank::new(reranker.clone())).unwrap();
    let mut expected: Vec<(String, f32)> =
        (0..20).map(|n| (format!("n{n:02}.md"), (n * 37 % 101) as f32 / 100.0)).collect();
    expected.sort_by(|a, b| b.1.total_cmp(&a.1));
    let expected: Vec<_> = expected.iter().take(10).map(|(path, score)| (path.as_str(), *score)).collect();
    assert_eq!(order(&hits), expected);
    assert_eq!((hits.reranker.as_deref(), hits.mode), (Some("scripted"), Mode::Lexical));

    // Each says what it had before, and the ranking itself is as it was.
    let ranking = index.search(&heron().limit(20).grouping(Grouping::Passages)).unwrap();
    assert!(ranking.reranker.is_none() && ranking.results.iter().all(|hit| hit.why.rerank.is_none()));
    for hit in &hits.results {
        let before = hit.why.rerank.unwrap();
        let there = &ranking.results[before.rank - 1];
        assert_eq!((&there.path, there.score, &there.text), (&hit.path, before.score, &hit.text));
        assert_eq!((there.why.lexical, &there.why.terms), (hit.why.lexical, &hit.why.terms));
    }
    let asked = reranker.asked.lock().unwrap();
    assert_eq!((asked.len(), asked[0].0.as_str(), asked[0].1.len()), (1, "heron", 20));
}

#[test]
fn no_more_than_the_depth_is_scored_and_no_fewer_than_asked_for_come_back() {
    let vault = herons();
    let index = vault.index();
    let ranking = index.search(&heron()).unwrap();
    let search = |depth: usize, limit: usize| {
        let reranker = ScriptedReranker::new(mark);
        let rerank = Rerank::new(reranker.clone()).depth(depth);
        let hits = index.search_reranked(&heron().limit(limit), &rerank).unwrap();
        (hits.results.len(), reranker.passages().len(), hits)
    };
    let (found, scored, hits) = search(5, 3);
    assert_eq!((found, scored), (3, 5));
    let best: Vec<_> = ranking.results[..5].iter().map(|hit| &hit.path).collect();
    assert!(hits.results.iter().all(|hit| best.contains(&&hit.path)));
    let (found, scored, _) = search(0, 7);
    assert_eq!((found, scored), (7, 7));
    let (found, scored, _) = search(500, 100);
    assert_eq!((found, scored), (20, 20));
    let (found, scored, _) = search(5, 0);
    assert_eq!((found, scored), (0, 0));
}

#[test]
fn scores_are_absolute_and_filters_come_first() {
    let vault = herons();
    let index = vault.index();
    let reranker = ScriptedReranker::new(mark);
    let rerank = Rerank::new(reranker.clone()).depth(4);
    let all = index.search_reranked(&heron().limit(100), &rerank).unwrap().results;
    for mode in [Mode::Hybrid, Mode::Semantic, Mode::Lexical] {
        reranker.asked.lock().unwrap().clear();
        let query = Query::parse("heron tag:even -path:n08.md").unwrap().mode(mode).limit(4);
        let even = index.search_reranked(&query, &rerank).unwrap().results;
        assert_eq!((even.len(), reranker.passages().len()), (4, 4), "{mode:?}");
        for hit in &even {
            assert_eq!(hit.tags, ["even"]);
            let same = all.iter().find(|other| other.path == hit.path).unwrap();
            assert_eq!((same.score, &same.text), (hit.score, &hit.text));
        }
    }
}

#[test]
fn equal_scores_are_ordered_by_path_and_line() {
    let vault = herons();
    let rerank = Rerank::new(ScriptedReranker::new(|_| 0.5));
    let hits = vault.index().search_reranked(&heron().limit(20), &rerank).unwrap();
    assert_eq!(
        order(&hits),
        (0..20)
            .map(|n| format!("n{n:02}.md"))
            .collect::<Vec<_>>()
            .iter()
            .map(|p| (p.as_str(), 0.5))
            .collect::<Vec<_>>()
    );
}

#[test]
fn a_note_whose_name_is_the_query_stays_first() {
    let vault = herons();
    vault.write("Birds/Heron.md", "a heron, mark 1\n");
    vault.sync();
    let rerank = Rerank::new(ScriptedReranker::new(mark));
    let hits = vault.index().search_reranked(&heron(), &rerank).unwrap();
    assert_eq!(order(&hits)[..2], [("Birds/Heron.md", 0.01), ("n19.md", 0.97)]);
    assert_eq!((hits.results.len(), hits.results[0].why.name), (10, Some(NameMatch::Equal)));
    let good = vault.index().search_reranked(&heron().min_score(0.9), &rerank).unwrap();
    assert!(good.results.iter().all(|hit| hit.score >= 0.9 && hit.why.name.is_none()) && good.results.len() > 1);
}

/// A long note whose sections say the query's word again and again, and two short ones.
fn long_and_short() -> Vault {
    let vault = Vault::new("//- Short.md\nA heron in passing, mark 30\n//- Small.md\nAnother heron, mark 10\n");
    let section = |n: usize, mark: usize| {
        format!("## Part {n}\n\n{} mark {mark}\n\n", "The heron of herons saw a heron. ".repeat(50))
    };
    let sections: String = [5, 20, 60, 40, 1].into_iter().enumerate().map(|(n, mark)| section(n, mark)).collect();
    vault.write("Long.md", format!("# Long\n\n{sections}"));
    vault.sync();
    vault
}

#[test]
fn a_note_is_shown_by_the_passage_that_scores_best() {
    let vault = long_and_short();
    let rerank = Rerank::new(ScriptedReranker::new(mark));
    let hits = vault.index().search_reranked(&heron(), &rerank).unwrap();
    assert_eq!(order(&hits), [("Long.md", 0.6), ("Short.md", 0.3), ("Small.md", 0.1)]);
    assert_eq!(hits.results[0].headings, ["Long", "Part 2"]);

    let query = heron().grouping(Grouping::Passages);
    let passages = vault.index().search_reranked(&query, &rerank).unwrap();
    let found = order(&passages);
    assert!(found.starts_with(&[("Long.md", 0.6), ("Long.md", 0.4), ("Short.md", 0.3)]), "{found:?}");
}

#[test]
fn one_long_note_does_not_crowd_out_the_others() {
    let vault = long_and_short();
    let reranker = ScriptedReranker::new(mark);
    let rerank = Rerank::new(reranker.clone()).depth(3);
    let hits = vault.index().search_reranked(&heron().limit(3), &rerank).unwrap();
    let ranking = vault.index().search(&heron().limit(3).grouping(Grouping::Passages)).unwrap();
    assert!(
        ranking.results.iter().all(|hit| hit.path.as_str() == "Long.md"),
        "all of the best passages are of one note"
    );
    let mut notes: Vec<_> = hits.results.iter().map(|hit| hit.path.as_str()).collect();
    notes.sort_unstable();
    assert_eq!(notes, ["Long.md", "Short.md", "Small.md"]);
    assert_eq!(reranker.passages().len(), 5);
}

#[test]
fn passages_come_with_title_and_headings_and_without_markup() {
    let vault = Vault::new("//- The heron.md\n## By the *lake*\n\nIt stands [[Water|in the water]].\n");
    vault.sync();
    let reranker = ScriptedReranker::new(|_| 0.5);
    vault.index().search_reranked(&heron(), &Rerank::new(reranker.clone())).unwrap();
    assert_eq!(reranker.passages(), ["The heron\nBy the lake\nIt stands in the water."]);
}

#[test]
fn what_scores_too_low_is_dropped_and_named() {
    let vault = herons();
    let index = vault.index();
    let search = |min_score| {
        let query = heron().min_score(min_score).limit(20);
        index.search_reranked(&query, &Rerank::new(ScriptedReranker::new(mark))).unwrap()
    };
    let some = search(0.5);
    assert!(!some.results.is_empty() && some.results.len() < 20 && some.near_misses.is_empty());
    assert!(some.results.iter().all(|hit| hit.score >= 0.5));
    let none = search(1.0);
    let near: Vec<_> = none.near_misses.iter().map(|miss| (miss.path.as_str(), miss.score)).collect();
    assert_eq!((none.results.len(), near), (0, order(&search(0.0))[..3].to_vec()));

    let reranker = ScriptedReranker::new(mark);
    let nothing = index.search_reranked(&Query::literal("xylophone"), &Rerank::new(reranker.clone())).unwrap();
    assert!(nothing.results.is_empty() && reranker.passages().is_empty(), "what no ranking finds is not scored");
}

#[test]
fn what_cannot_be_reranked_is_refused() {
    let vault = herons();
    let index = vault.index();
    let rerank = Rerank::new(ScriptedReranker::new(mark));
    let like = Query::like("n01");
    for query in [like, Query::parse("tag:even").unwrap(), Query::default(), Query::literal(" ")] {
        let error = index.search_reranked(&query, &rerank).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Query);
        assert!(error.to_string().contains("without a reranker"), "{error}");
    }
    assert!(index.search_reranked(&Query::parse("\"heron\"").unwrap(), &rerank).is_ok(), "phrases are words");
}

#[test]
fn a_reranker_that_breaks_its_word_is_named() {
    struct Bad(Vec<f32>);
    impl Reranker for Bad {
        fn id(&self) -> &str {
            "bad"
        }

        fn score(&self, _query: &str, passages: &[&str]) -> Result<Vec<f32>> {
            Ok(self.0.iter().cycle().take(passages.len() - usize::from(self.0.len() == 1)).copied().collect())
        }
    }
    let vault = herons();
    for (scores, says) in [
        (vec![0.5], "19 scores for 20 passages"),
        (vec![0.5, 1.5], "the score 1.5"),
        (vec![0.5, -0.1], "the score -0.1"),
        (vec![0.5, f32::NAN], "the score NaN"),
    ] {
        let error = vault.index().search_reranked(&heron(), &Rerank::new(Arc::new(Bad(scores)))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Model);
        assert!(error.to_string().contains("`bad`") && error.to_string().contains(says), "{error}");
    }
}
