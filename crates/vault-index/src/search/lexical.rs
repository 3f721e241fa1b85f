//! Ranking by words: BM25 over title, aliases, headings, tags and body, as a share of the best score there can be.
//!
//! A passage's score is the sum over the query's terms of `idf · f·(k1 + 1) / (f + k1·(1 - b + b·length/average))`,
//! where `f` counts the term in each field times the field's weight, `length` the terms of the text, and
//! `idf = ln(1 + (N - n + ½) / (n + ½))` for a term that `n` of `N` passages hold (Okapi BM25 as in Lucene, whose idf
//! is never below 0; k1 = .9 and b = .4 as in Anserini). No passage can reach more than `(k1 + 1) · Σ idf`; the
//! lexical score is the share of it that is reached: 0 to 1, and the same whatever else matches.
//!
//! SQLite only stores where the terms are: its own `bm25()` has a fixed k1 and b, looks up the length of every passage,
//! and scores a word that is in more than half of the passages as 0.

use std::collections::HashSet;

use crate::error::Result;
use crate::search::text_test::{contains_words, folded_words};
use crate::store::{FIELD_COUNT, PassageRow, Store};
use crate::terms::{Matching, QueryTerm, Terms, is_stop_word};

/// Weights of title, aliases, headings, tags, body.
const FIELDS: [f64; FIELD_COUNT] = [2.0, 2.0, 1.5, 1.5, 1.0];

const K1: f64 = 0.9;

const B: f64 = 0.4;

/// More terms than this are not looked up: the rarest stay. A query of 100 kB is a text, and its rare words
/// say what it is about.
const MAX_TERMS: usize = 48;

/// The number of different terms among which the rarest are chosen.
const MAX_CONSIDERED: usize = 1500;

/// How well every passage matches the words of a query.
pub(super) struct Lexical {
    /// By position in the snapshot; empty when nothing matches.
    scores: Vec<f32>,
    terms: Vec<Term>,
}

/// A term of the query that was looked up.
struct Term {
    text: String,
    /// The passages that hold it, by position, ascending.
    holders: Vec<u32>,
}

impl Lexical {
    pub(super) fn none() -> Self {
        Self { scores: Vec::new(), terms: Vec::new() }
    }

    /// Given scores, by position.
    #[cfg(test)]
    pub(super) fn of_scores(scores: Vec<f32>) -> Self {
        Self { scores, terms: Vec::new() }
    }

    pub(super) fn run(store: &Store, passages: &[PassageRow], text: &str) -> Result<Self> {
        let mut terms = Vec::new();
        let mut sums = vec![0.0_f64; passages.len()];
        let mut counts = vec![0.0_f64; passages.len()];
        let mut ideal = 0.0;
        let total: f64 = passages.iter().map(|p| f64::from(p.length)).sum();
        let average = (total / passages.len().max(1) as f64).max(1.0);
        for term in choose(store, text)? {
            let mut holders: Vec<u32> = Vec::new();
            let mut at = 0;
            store.each_occurrence(&term.text, term.matching, |id, field| {
                if passages.get(at).is_none_or(|p| p.id != id) {
                    match passages.binary_search_by_key(&id, |p| p.id) {
                        Ok(found) => at = found,
                        Err(_) => return,
                    }
                }
                if counts[at] == 0.0 {
                    holders.push(at as u32);
                }
                counts[at] += FIELDS[field];
            })?;
            let (all, holding) = (passages.len() as f64, holders.len() as f64);
            let idf = (1.0 + (all - holding + 0.5) / (holding + 0.5)).ln();
            ideal += (K1 + 1.0) * idf;
            for at in holders.iter().map(|at| *at as usize) {
                let count = std::mem::take(&mut counts[at]);
                let length = f64::from(passages[at].length) / average;
                sums[at] += idf * count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * length));
            }
            // A prefix stands for several terms, whose passages come one term after the other.
            holders.sort_unstable();
            terms.push(Term { text: term.text, holders });
        }
        let scores = sums.iter().map(|sum| (sum / ideal).clamp(0.0, 1.0) as f32).collect();
        Ok(Self { scores: if terms.is_empty() { Vec::new() } else { scores }, terms })
    }

    /// 0 where no word matches.
    pub(super) fn score(&self, position: usize) -> f32 {
        self.scores.get(position).copied().unwrap_or(0.0)
    }

    /// The query's terms that a passage holds, in the query's order.
    pub(super) fn terms_of(&self, position: usize) -> Vec<String> {
        let holds = |term: &&Term| term.holders.binary_search(&(position as u32)).is_ok();
        self.terms.iter().filter(holds).map(|term| term.text.clone()).collect()
    }
}

/// The terms to look up, each once, in the query's order: no stop words unless there is nothing else.
fn choose(store: &Store, text: &str) -> Result<Vec<QueryTerm>> {
    let mut seen = HashSet::new();
    let mut terms: Vec<QueryTerm> = Vec::new();
    for term in Terms::new().words(text) {
        if terms.len() < MAX_CONSIDERED && seen.insert((term.text.clone(), term.matching == Matching::Prefix)) {
            terms.push(term);
        }
    }
    if terms.iter().any(|term| !is_stop_word(&term.text)) {
        terms.retain(|term| !is_stop_word(&term.text));
    }
    if terms.len() > MAX_TERMS {
        let mut counted = Vec::with_capacity(terms.len());
        for (order, term) in terms.into_iter().enumerate() {
            let frequency = store.document_frequency(&term.text)?;
            // A term that no passage has cannot find anything.
            counted.push((if frequency == 0 { u64::MAX } else { frequency }, order, term));
        }
        counted.sort_by_key(|(frequency, order, _)| (*frequency, *order));
        counted.truncate(MAX_TERMS);
        counted.sort_by_key(|(_, order, _)| *order);
        terms = counted.into_iter().map(|(_, _, term)| term).collect();
    }
    Ok(terms)
}

/// Passages that hold words side by side (with [`Matching::Prefix`], the last of them may go on), in their text, title,
/// headings, aliases or tags. `None`: there is no word in the text. The keyword index has only stems, so the passages it
/// finds are read again: the words must be equal except for case and diacritics.
pub(super) fn holders_of(store: &Store, text: &str, matching: Matching) -> Result<Option<Vec<i64>>> {
    let Some(expression) = phrase_expression(text, matching) else { return Ok(None) };
    let mut holders = store.passages_with(&expression)?;
    if matching == Matching::Whole {
        let wanted = folded_words(text, false);
        let mut held = Vec::new();
        for passage in holders {
            let texts = store.searchable_texts(passage)?;
            if texts.iter().any(|text| contains_words(&folded_words(text, false), &wanted)) {
                held.push(passage);
            }
        }
        holders = held;
    }
    Ok(Some(holders))
}

fn phrase_expression(phrase: &str, matching: Matching) -> Option<String> {
    let terms = Terms::new().phrase(phrase);
    let (last, first) = terms.split_last()?;
    let mut text = String::from("\"");
    for term in first {
        text.push_str(&term.text);
        text.push(' ');
    }
    text.push_str(&last.text);
    let is_prefix = last.matching == Matching::Prefix || matching == Matching::Prefix;
    text.push_str(if is_prefix { "\"*" } else { "\"" });
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions() {
        assert_eq!(phrase_expression("Gardening tools", Matching::Whole).as_deref(), Some("\"garden tool\""));
        assert_eq!(phrase_expression("京", Matching::Whole).as_deref(), Some("\"京\"*"));
        assert_eq!(phrase_expression("old Excal", Matching::Prefix).as_deref(), Some("\"old excal\"*"));
        assert_eq!(phrase_expression("?!", Matching::Whole), None);
    }
}
