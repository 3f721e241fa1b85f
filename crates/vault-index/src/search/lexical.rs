//! Ranking by words: BM25 over the fields of passages and of their notes, as a share of the best score there can be.
//!
//! A word of the query stands for a class of forms, each with a weight: the word itself, and the other words of the vault
//! that have its stem. A passage's score is the sum over the classes of
//! `q · idf · f·(k1 + 1) / (f + k1·(1 - b + b·length/average))`, where `q` is how often the query has the word, `f` counts
//! the forms in each field times the field's weight times the form's, `length` is the number of terms of the text, and
//! `idf = ln(1 + (N - n + ½) / (n + ½))` for a class that `n` of `N` passages hold (Okapi BM25 as in Lucene, whose idf
//! is never below 0; k1 = .9 and b = .4 as in Anserini). No passage can reach more than `(k1 + 1) · Σ q·idf`; the
//! lexical score is the share of it that is reached: 0 to 1, and the same whatever else matches or is filtered.
//!
//! SQLite only stores where the terms are: its own `bm25()` has a fixed k1 and b, looks up the length of every passage,
//! and scores a word that is in more than half of the passages as 0.

use std::collections::HashMap;

use crate::error::Result;
use crate::search::note_passages::NotePassages;
use crate::store::{FIELD_COUNT, Field, Holder, PassageRow, Store};
use crate::terms::{Matching, QueryTerm, Terms, is_stop_word, stem};

/// The weights of fields, by [`Field`].
const FIELDS: [f64; FIELD_COUNT] = {
    let mut weights = [1.0; FIELD_COUNT];
    weights[Field::Title as usize] = 2.0;
    weights[Field::Aliases as usize] = 2.0;
    weights[Field::Headings as usize] = 1.5;
    weights[Field::Tags as usize] = 1.5;
    weights[Field::Properties as usize] = 1.0;
    weights[Field::Path as usize] = 0.5;
    weights
};

/// The weight of a form with the same stem as the query's word.
const SAME_STEM: f64 = 0.9;

const K1: f64 = 0.9;

const B: f64 = 0.4;

/// More words than this are not looked up: the rarest stay. A query of 100 kB is a text, and its rare words
/// say what it is about.
const MAX_TERMS: usize = 48;

/// The number of different words among which the rarest are chosen.
const MAX_CONSIDERED: usize = 1500;

/// How well every passage matches the words of a query.
pub(super) struct Lexical {
    /// By position in the snapshot; empty when nothing matches.
    scores: Vec<f32>,
    /// In the query's order, those of a word next to each other.
    forms: Vec<Form>,
}

/// A term of notes that was looked up.
struct Form {
    text: String,
    weight: f64,
    /// The passages that hold it, by position, ascending.
    holders: Vec<u32>,
}

/// A word of the query.
struct Word {
    term: QueryTerm,
    /// How often the query has it.
    count: f64,
}

impl Lexical {
    pub(super) fn none() -> Self {
        Self { scores: Vec::new(), forms: Vec::new() }
    }

    /// Given scores, by position.
    #[cfg(test)]
    pub(super) fn of_scores(scores: Vec<f32>) -> Self {
        Self { scores, forms: Vec::new() }
    }

    pub(super) fn run(store: &Store, passages: &[PassageRow], of_notes: &NotePassages, text: &str) -> Result<Self> {
        let mut looked_up: Vec<Form> = Vec::new();
        let mut sums = vec![0.0_f64; passages.len()];
        let mut counts = vec![0.0_f64; passages.len()];
        let mut ideal = 0.0;
        let total: f64 = passages.iter().map(|p| f64::from(p.length)).sum();
        let average = (total / passages.len().max(1) as f64).max(1.0);
        for word in choose(store, text)? {
            // Of any form, each once.
            let mut holders: Vec<u32> = Vec::new();
            let mut count = |at: u32, weight: f64| {
                let count = &mut counts[at as usize];
                if *count == 0.0 {
                    holders.push(at);
                }
                *count += weight;
            };
            let mut forms = forms_of(store, &word.term)?;
            for form in &mut forms {
                let mut at = 0;
                store.each_occurrence(&form.text, word.term.matching, |holder, field| {
                    let weight = FIELDS[field as usize] * form.weight;
                    let held = match holder {
                        Holder::Note(note) => of_notes.of(note),
                        Holder::Passage(id) => {
                            if passages.get(at as usize).is_none_or(|p| p.id != id) {
                                match passages.binary_search_by_key(&id, |p| p.id) {
                                    Ok(found) => at = found as u32,
                                    Err(_) => return,
                                }
                            }
                            at..at + 1
                        }
                    };
                    for at in held {
                        count(at, weight);
                        if form.holders.last() != Some(&at) {
                            form.holders.push(at);
                        }
                    }
                })?;
                form.holders.sort_unstable();
                form.holders.dedup();
            }
            let (all, holding) = (passages.len() as f64, holders.len() as f64);
            let idf = word.count * (1.0 + (all - holding + 0.5) / (holding + 0.5)).ln();
            ideal += (K1 + 1.0) * idf;
            for at in holders.iter().map(|at| *at as usize) {
                let count = std::mem::take(&mut counts[at]);
                let length = f64::from(passages[at].length) / average;
                sums[at] += idf * count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * length));
            }
            looked_up.extend(forms);
        }
        let scores = sums.iter().map(|sum| (sum / ideal).clamp(0.0, 1.0) as f32).collect();
        Ok(Self { scores: if looked_up.is_empty() { Vec::new() } else { scores }, forms: looked_up })
    }

    /// 0 where no word matches.
    pub(super) fn score(&self, position: usize) -> f32 {
        self.scores.get(position).copied().unwrap_or(0.0)
    }

    /// The terms that a passage or its note holds, of those that the query stands for, in the query's order.
    pub(super) fn terms_of(&self, position: usize) -> Vec<String> {
        let holds = |form: &&Form| form.holders.binary_search(&(position as u32)).is_ok();
        self.forms.iter().filter(holds).map(|form| form.text.clone()).collect()
    }
}

/// The words to look up, each once, in the query's order: no stop words unless there is nothing else.
fn choose(store: &Store, text: &str) -> Result<Vec<Word>> {
    let mut known: HashMap<QueryTerm, usize> = HashMap::new();
    let mut words: Vec<Word> = Vec::new();
    for term in Terms::new().words(text) {
        match known.get(&term) {
            Some(at) => words[*at].count += 1.0,
            None if words.len() < MAX_CONSIDERED => {
                known.insert(term.clone(), words.len());
                words.push(Word { term, count: 1.0 });
            }
            None => {}
        }
    }
    if words.iter().any(|word| !is_stop_word(&word.term.text)) {
        words.retain(|word| !is_stop_word(&word.term.text));
    }
    if words.len() > MAX_TERMS {
        let mut counted = Vec::with_capacity(words.len());
        for (order, word) in words.into_iter().enumerate() {
            let frequency = store.document_frequency(&word.term.text)?;
            // A term that no passage has cannot find anything.
            counted.push((if frequency == 0 { u64::MAX } else { frequency }, order, word));
        }
        counted.sort_by_key(|(frequency, order, _)| (*frequency, *order));
        counted.truncate(MAX_TERMS);
        counted.sort_by_key(|(_, order, _)| *order);
        words = counted.into_iter().map(|(_, _, word)| word).collect();
    }
    Ok(words)
}

/// What a word of a query stands for: itself first.
fn forms_of(store: &Store, term: &QueryTerm) -> Result<Vec<Form>> {
    let form = |text: String, weight| Form { text, weight, holders: Vec::new() };
    let mut forms = vec![form(term.text.clone(), 1.0)];
    if term.matching == Matching::Whole {
        let mates = store.words_with_stem(&stem(&term.text))?.into_iter().filter(|word| *word != term.text);
        forms.extend(mates.map(|word| form(word, SAME_STEM)));
    }
    Ok(forms)
}

/// Passages that hold words side by side, in their own fields or those of their notes: exactly, except for case,
/// diacritics and punctuation; with [`Matching::Prefix`], the last word may go on. In no order, some twice. `None`: the
/// text has no term.
pub(super) fn holders_of(store: &Store, text: &str, matching: Matching) -> Result<Option<Vec<i64>>> {
    phrase_expression(text, matching).map(|expression| store.passages_with(&expression)).transpose()
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
    let is_prefix = matching == Matching::Prefix || last.matching == Matching::Prefix;
    text.push_str(if is_prefix { "\"*" } else { "\"" });
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions() {
        let expression = |text: &str, matching| phrase_expression(text, matching);
        assert_eq!(expression("Gardening tools", Matching::Whole).as_deref(), Some("\"gardening tools\""));
        assert_eq!(expression("old Excal", Matching::Prefix).as_deref(), Some("\"old excal\"*"));
        assert_eq!(expression("京", Matching::Whole).as_deref(), Some("\"京\"*"));
        assert_eq!(expression("?!", Matching::Whole), None);
    }
}
