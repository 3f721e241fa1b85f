//! The result of a search: hits, best first, with the parts of their scores and the words that matched.

use std::ops::Range;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::path::VaultPath;
use crate::search::query::Mode;
use crate::terms::Terms;

/// The result of a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Hits {
    /// Best first; equal scores are ordered by path, then line.
    pub results: Vec<Hit>,
    /// The mode of the ranking.
    pub mode: Mode,
    /// The [`id`](crate::Reranker::id) of the reranker that gave the scores, if one was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reranker: Option<String>,
    /// Notes in the index.
    pub indexed: usize,
    /// Passages in the index.
    #[serde(default)]
    pub passages: usize,
    /// Passages and file titles that still have no vector, counted as in a status. They were ranked by their words and
    /// an estimate of their meaning.
    pub pending: usize,
    /// Notes that were found but not read yet, so they cannot be among the results.
    pub unread: usize,
    /// Words of the query that no note contains, and the words that were searched for instead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub substitutions: Vec<Substitution>,
    /// Words of the query, as they are written, that no note contains and that were not replaced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown_words: Vec<String>,
    /// If nothing was found: the nearest notes that contain a word of the query, or that would be found with the usual
    /// minimum score; best first.
    pub near_misses: Vec<NearMiss>,
}

/// One result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Hit {
    /// The path of the note in its vault.
    #[cfg_attr(feature = "schemars", schemars(with = "String"))]
    pub path: VaultPath,
    /// Its title.
    pub title: String,
    /// The headings above `line`, outermost first. If the passage contains none of the query's words, those above the
    /// whole passage.
    pub headings: Vec<String>,
    /// The best line to show, from 1: the line of the first matched word in the part of the passage where most of the
    /// query's words are close together. If the passage contains none of them, its first line.
    pub line: u32,
    /// The passage's first line.
    pub start_line: u32,
    /// Its last line.
    pub end_line: u32,
    /// The score, 0 to 1. It is the same for this passage and query whatever else matches or is filtered. With a
    /// reranker, it is the reranker's score.
    pub score: f32,
    /// The passage.
    pub text: String,
    /// The note's tags, without `#`.
    pub tags: Vec<String>,
    /// When the note's file was last modified; RFC 3339 in JSON.
    #[cfg_attr(feature = "schemars", schemars(with = "String"))]
    pub modified: Timestamp,
    /// The parts of the score.
    pub why: ScoreParts,
    /// Whether the score is close to the minimum below which nothing is found. Never if a reranker gave the score, or
    /// if the note contains everything that the query asks for.
    #[serde(skip)]
    pub is_weak: bool,
}

/// The parts of a score, which `--explain` shows. `fuse.rs` computes them and `make_hits.rs` fills them in.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema), schemars(rename = "Why"))]
#[non_exhaustive]
pub struct ScoreParts {
    /// The cosine of the passage and the query, at least 0, with the file title's share; absent if only words ranked.
    /// With a model whose [`Embedder::cosine_range`](crate::Embedder::cosine_range) is known, it is moved onto the scale
    /// of the bundled model.
    pub semantic: Option<f32>,
    /// The estimated cosine of a passage without a vector; absent if `semantic` is present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated: Option<f32>,
    /// The cosine of the file's name, if the note does not contain it and it was included.
    pub title: Option<f32>,
    /// The share of the best possible BM25 score that the passage reached, 0 to 1.
    pub lexical: f32,
    /// The query's terms, including other forms of its words, that the passage or its note's names, tags, properties
    /// and folders contain, as they are indexed.
    pub terms: Vec<String>,
    /// The weights of `semantic` and `lexical`. Without `name`, the weighted sum is the score, 0 to 0.8.
    pub weights: (f32, f32),
    /// The match of the note's name with the query, which decides the band of the score; absent if it does not match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<NameMatch>,
    /// The minimum score of a passage that contains the whole query word for word, as few passages do, if the sum is
    /// lower; otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least: Option<f32>,
    /// The number of notes with this same passage, if it is so high that the share of its own text in `semantic` and
    /// `lexical` is halved; otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeated: Option<usize>,
    /// The rank and score before reranking; absent if no reranker was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rerank: Option<PriorRank>,
}

/// The match of a note's name (title, file name or alias) with a query. Case, diacritics, punctuation and spaces are
/// ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum NameMatch {
    /// The name equals the query: a score above 0.9, which nothing else reaches.
    Equal,
    /// The name starts with the query: 0.8 to 0.9.
    Begins,
    /// The name contains all words of the query: 0.8 to 0.9.
    Words,
}

/// A passage's position in the ranking before reranking.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema), schemars(rename = "Reranked"))]
#[non_exhaustive]
pub struct PriorRank {
    /// Its rank among the passages that were reranked, from 1.
    pub rank: usize,
    /// Its score in that ranking, which it would have without the reranker.
    pub score: f32,
}

/// A word of the query that no note contains and that was corrected as a typo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Substitution {
    /// The word, folded.
    pub word: String,
    /// The nearest words of the vault, most frequent first.
    pub read_as: Vec<String>,
}

/// A note that nearly matched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NearMiss {
    /// The note.
    pub path: VaultPath,
    /// Its title.
    pub title: String,
    /// Its score, which is below the minimum.
    pub score: f32,
}

/// The byte ranges of `text` that match the query's terms (as in [`ScoreParts::terms`]). Ascending; ranges that touch
/// or overlap are merged.
pub fn matched_ranges(text: &str, terms: &[String]) -> Vec<Range<usize>> {
    let mut marks: Vec<Range<usize>> = Vec::new();
    if terms.is_empty() {
        return marks;
    }
    let mut found = Terms::new();
    found.each(text, |term, span| {
        let first = term.chars().next();
        let matched = terms.iter().any(|wanted| {
            wanted == term
                // In a script without spaces, a single character matches all words that begin with it.
                || (wanted.len() > 1 && wanted.chars().count() == 1 && wanted.chars().next() == first)
        });
        if matched {
            marks = joined(std::mem::take(&mut marks), span);
        }
    });
    let mut compounds: Vec<Range<usize>> = Vec::new();
    found.compounds(text, |compound, span| compounds.extend(terms.iter().any(|term| term == compound).then_some(span)));
    if !compounds.is_empty() {
        marks.extend(compounds);
        marks.sort_by_key(|mark| mark.start);
        marks = marks.into_iter().fold(Vec::new(), joined);
    }
    marks
}

/// Appends a range, or merges it with the last one if they touch.
fn joined(mut marks: Vec<Range<usize>>, span: Range<usize>) -> Vec<Range<usize>> {
    match marks.last_mut() {
        Some(last) if span.start <= last.end => last.end = last.end.max(span.end),
        _ => marks.push(span),
    }
    marks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marked_words() {
        fn check(text: &str, terms: &[&str], expected: &[&str]) {
            let terms: Vec<String> = terms.iter().map(|t| (*t).to_string()).collect();
            let marked: Vec<&str> = matched_ranges(text, &terms).into_iter().map(|r| &text[r]).collect();
            assert_eq!(marked, expected, "{text:?}");
        }
        check("Gardens and gardening", &["gardens", "gardening"], &["Gardens", "gardening"]);
        check("Gardens and gardening", &["garden"], &[]);
        check("Le Café est là", &["cafe"], &["Café"]);
        check("A plug-in, in e-mail", &["plugin", "email"], &["plug-in", "e-mail"]);
        check("東京都に", &["东京", "京都"], &["東京都"]);
        check("nothing here", &["x"], &[]);
        check("", &["x"], &[]);
    }
}
