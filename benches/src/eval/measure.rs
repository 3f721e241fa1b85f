//! Measures of the quality of a ranking: nDCG, recall and reciprocal rank. Independent of search.
//!
//! With the judgment `s` of the document at rank `r`, from 1 (0 if it was not judged):
//!
//! ```text
//! DCG@n    = Σ (2^s − 1) / log2(r + 1)      r = 1 … n
//! nDCG@n   = DCG@n of the ranking / DCG@n of all judgments of the query, best first
//! recall@n = relevant ones (s > 0) among the first n / relevant ones
//! RR@n     = 1 / rank of the first relevant one, 0 if it is beyond n
//! ```
//!
//! Järvelin and Kekäläinen 2002, with the gain of Burges et al. 2005. A judged document that is not in the collection
//! still counts in the best ranking, as in trec_eval.

use std::collections::HashMap;

use serde::Serialize;

/// The judgments of one query: the relevance of documents by id. 0 means judged as not relevant.
pub type Judgments = HashMap<String, u32>;

/// The number of ranks that count for nDCG and reciprocal rank.
const TOP: usize = 10;

/// The scores of one ranking.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Scores {
    /// nDCG@10.
    pub ndcg10: f64,
    /// Recall at the requested rank.
    pub recall: f64,
    /// Reciprocal rank, 0 beyond rank 10.
    pub rr10: f64,
    /// The rank of the first relevant document in the whole ranking, from 1.
    pub first: Option<usize>,
}

impl Scores {
    /// Returns the scores of a ranking of distinct ids, best first.
    pub fn of<'a>(ranking: impl IntoIterator<Item = &'a str>, judged: &Judgments, recall_at: usize) -> Self {
        let found: Vec<u32> = ranking.into_iter().map(|id| judged.get(id).copied().unwrap_or(0)).collect();
        Self::of_found(&found, judged, recall_at)
    }

    /// Returns the scores of a ranking of which only the judgments are known; each judged document has at most one
    /// rank.
    pub fn of_found(found: &[u32], judged: &Judgments, recall_at: usize) -> Self {
        let mut ideal: Vec<u32> = judged.values().copied().filter(|s| *s > 0).collect();
        ideal.sort_unstable_by(|a, b| b.cmp(a));
        if ideal.is_empty() {
            return Self::default();
        }
        let first = found.iter().position(|s| *s > 0).map(|at| at + 1);
        let relevant = found.iter().take(recall_at).filter(|s| **s > 0).count();
        Self {
            ndcg10: dcg(found) / dcg(&ideal),
            recall: relevant as f64 / ideal.len() as f64,
            rr10: first.filter(|rank| *rank <= TOP).map_or(0.0, |rank| 1.0 / rank as f64),
            first,
        }
    }
}

/// The DCG of the first ten.
fn dcg(judgments: &[u32]) -> f64 {
    let gain = |s: u32| f64::from(s).exp2() - 1.0;
    judgments.iter().take(TOP).zip(2_u32..).map(|(s, rank)| gain(*s) / f64::from(rank).log2()).sum()
}

/// The means over queries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Means {
    /// The mean of nDCG@10.
    pub ndcg10: f64,
    /// The mean of recall.
    pub recall: f64,
    /// The mean of the reciprocal rank up to 10.
    pub mrr10: f64,
    /// The share of queries with a relevant document at rank 1.
    pub hit1: f64,
    /// The share of queries with a relevant document among the first 10.
    pub hit10: f64,
}

impl Means {
    /// Returns the means over queries; all 0 without queries.
    pub fn of<'a>(scores: impl IntoIterator<Item = &'a Scores>) -> Self {
        let scores: Vec<&Scores> = scores.into_iter().collect();
        let mean = |of: fn(&Scores) -> f64| scores.iter().map(|s| of(s)).sum::<f64>() / scores.len().max(1) as f64;
        Self {
            ndcg10: mean(|s| s.ndcg10),
            recall: mean(|s| s.recall),
            mrr10: mean(|s| s.rr10),
            hit1: mean(|s| f64::from(u8::from(s.first == Some(1)))),
            hit10: mean(|s| f64::from(u8::from(s.first.is_some_and(|rank| rank <= TOP)))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// a is judged 3, b 1, c 0; x and y are not judged.
    fn judged() -> Judgments {
        [("a", 3), ("b", 1), ("c", 0)].map(|(id, s)| (id.to_owned(), s)).into()
    }

    #[track_caller]
    fn check(ranking: &[&str], ndcg10: f64, recall: f64, rr10: f64, first: Option<usize>) {
        let scores = Scores::of(ranking.iter().copied(), &judged(), 100);
        assert!((scores.ndcg10 - ndcg10).abs() < 5e-6, "{ranking:?}: {}", scores.ndcg10);
        assert_eq!((scores.recall, scores.rr10, scores.first), (recall, rr10, first), "{ranking:?}");
    }

    /// Gains are 7 and 1; discounts 1, log2(3) = 1.58496, 2, log2(5) = 2.32193. The best: 7 + 1 / 1.58496 = 7.63093.
    #[test]
    fn computed_by_hand() {
        check(&["a", "b"], 1.0, 1.0, 1.0, Some(1));
        check(&["a", "b", "x"], 1.0, 1.0, 1.0, Some(1));
        // 1 + 7 / 1.58496 = 5.41651
        check(&["b", "a"], 0.709810, 1.0, 1.0, Some(1));
        // 1 + 7 / 2 = 4.5
        check(&["b", "x", "a"], 0.589705, 1.0, 1.0, Some(1));
        // 7 / 2 = 3.5; a document that is judged 0 counts like one that is not judged
        check(&["x", "c", "a"], 0.458660, 0.5, 1.0 / 3.0, Some(3));
        check(&["x", "y", "a"], 0.458660, 0.5, 1.0 / 3.0, Some(3));
        // 1 / 2.32193
        check(&["x", "y", "c", "b"], 0.056438, 0.5, 0.25, Some(4));
        check(&["x", "c"], 0.0, 0.0, 0.0, None);
        check(&[], 0.0, 0.0, 0.0, None);
    }

    #[test]
    fn what_comes_late_counts_for_recall_only() {
        let unjudged: Vec<String> = (0..10).map(|n| format!("x{n}")).collect();
        let ranking = || unjudged.iter().map(String::as_str).chain(["b"]);
        let scores = Scores::of(ranking(), &judged(), 100);
        assert_eq!(scores, Scores { ndcg10: 0.0, recall: 0.5, rr10: 0.0, first: Some(11) });
        assert_eq!(Scores::of(ranking(), &judged(), 10).recall, 0.0);
    }

    /// Twelve relevant documents: only ten fit, so ten of them are the best there is.
    #[test]
    fn the_best_ranking_is_cut_too() {
        let judged: Judgments = (0..12).map(|n| (format!("d{n}"), 1)).collect();
        let ids: Vec<String> = (0..10).map(|n| format!("d{n}")).collect();
        let scores = Scores::of(ids.iter().map(String::as_str), &judged, 10);
        assert_eq!((scores.ndcg10, scores.recall), (1.0, 10.0 / 12.0));
    }

    /// Equally judged ones may stand in any order.
    #[test]
    fn ties_do_not_matter() {
        let judged: Judgments = [("a", 2), ("b", 2), ("c", 1)].map(|(id, s)| (id.to_owned(), s)).into();
        let one = Scores::of(["a", "b", "c"], &judged, 100);
        assert_eq!(one, Scores::of(["b", "a", "c"], &judged, 100));
        assert_eq!(one.ndcg10, 1.0);
    }

    #[test]
    fn a_query_that_nothing_is_relevant_to_scores_nothing() {
        let judged: Judgments = [("a".to_owned(), 0)].into();
        assert_eq!(Scores::of(["a"], &judged, 100), Scores::default());
    }

    #[test]
    fn means() {
        let scores = [
            Scores { ndcg10: 1.0, recall: 1.0, rr10: 1.0, first: Some(1) },
            Scores { ndcg10: 0.5, recall: 0.5, rr10: 0.1, first: Some(10) },
            Scores { ndcg10: 0.0, recall: 0.5, rr10: 0.0, first: Some(11) },
            Scores { ndcg10: 0.5, recall: 0.0, rr10: 0.5, first: Some(2) },
        ];
        let means = Means::of(&scores);
        assert_eq!(means, Means { ndcg10: 0.5, recall: 0.5, mrr10: 0.4, hit1: 0.25, hit10: 0.75 });
        assert_eq!(Means::of(&[] as &[Scores]), Means::default());
    }
}
