//! What a search answers: hits, best first, why each is where it is, and which of its words matched.

use std::ops::Range;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::path::VaultPath;
use crate::search::query::Mode;
use crate::terms::Terms;

/// The answer to a query.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Hits {
    /// Best first; equal scores are ordered by path, then line.
    pub results: Vec<Hit>,
    /// How the passages were ranked.
    pub mode: Mode,
    /// The [`id`](crate::Reranker::id) of the reranker that gave the scores, if one was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reranker: Option<String>,
    /// Notes in the index.
    pub indexed: usize,
    /// Passages in the index.
    #[serde(default)]
    pub passages: usize,
    /// Passages and file titles still without a vector, as a status counts them: they were ranked by their words
    /// and an estimate of their meaning.
    pub pending: usize,
    /// Notes that were found but not read yet: nothing of them can be among the results.
    pub unread: usize,
    /// Words of the query that are in no note, and what was searched for in their place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub substitutions: Vec<Substitution>,
    /// Words of the query, as they are written, that are in no note and were not read as another.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown_words: Vec<String>,
    /// When nothing was found: the nearest notes that hold a word of the query, or would be found if no higher score were
    /// asked for than the usual one; best first.
    pub near_misses: Vec<NearMiss>,
}

/// One result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Hit {
    /// The note, relative to its vault.
    #[cfg_attr(feature = "schemars", schemars(with = "String"))]
    pub path: VaultPath,
    /// Its title.
    pub title: String,
    /// The headings that `line` is under, outermost first; where none of the query's words stands in the passage, those
    /// that all of it is under.
    pub headings: Vec<String>,
    /// Where to look, from 1: the line of the first matched word in that part of the passage where most of the query's
    /// words stand together; where none of them stands in it, its first line.
    pub line: u32,
    /// The passage's first line.
    pub start_line: u32,
    /// Its last line.
    pub end_line: u32,
    /// 0 to 1, the same for this passage and query whatever else matches or is filtered; the reranker's, where one was
    /// asked.
    pub score: f32,
    /// The passage.
    pub text: String,
    /// The note's tags, without `#`.
    pub tags: Vec<String>,
    /// When the note's file was last changed, in JSON as RFC 3339.
    #[cfg_attr(feature = "schemars", schemars(with = "String"))]
    pub modified: Timestamp,
    /// What the score is made of.
    pub why: ScoreParts,
    /// Whether the score is little above that below which nothing is found. Not where a reranker gave it, nor where the
    /// note holds all that was asked for.
    #[serde(skip)]
    pub is_weak: bool,
}

/// The parts of a score, which `--explain` shows. They are computed in `fuse.rs` and filled in by `make_hits.rs`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema), schemars(rename = "Why"))]
#[non_exhaustive]
pub struct ScoreParts {
    /// Cosine of the passage and the query, 0 where it is below, with the file title's share; absent where words alone ranked.
    pub semantic: Option<f32>,
    /// The cosine that a passage without a vector was taken to have; absent where `semantic` is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated: Option<f32>,
    /// Cosine of the file's name, where the note does not say it and it was weighed in.
    pub title: Option<f32>,
    /// How much of the best possible BM25 score the passage reached, 0 to 1.
    pub lexical: f32,
    /// The query's terms, other forms of its words among them, that the passage or its note's names, tags, properties and
    /// folders hold, as they are indexed.
    pub terms: Vec<String>,
    /// What `semantic` and `lexical` were multiplied by: their sum is the score, 0 to 0.8, where `name` is absent.
    pub weights: (f32, f32),
    /// How the note's name matches the query, which gives the score its band; absent where it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<NameMatch>,
    /// The least score of a passage that holds the whole query word for word as few do, where the sum is below; absent
    /// elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least: Option<f32>,
    /// How many notes have this very passage, where these are so many that `semantic` and `lexical` are half of what
    /// its own text would earn; absent elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeated: Option<usize>,
    /// What the passage had before a reranker gave it its score; absent where none was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rerank: Option<PriorRank>,
}

/// How a name of a note (title, file name or alias) matches a query. Case, diacritics, punctuation and spaces do not
/// count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum NameMatch {
    /// The name is the query: a score above 0.9, which nothing else has.
    Equal,
    /// The name begins with the query: 0.8 to 0.9.
    Begins,
    /// The name has all words of the query: 0.8 to 0.9.
    Words,
}

/// A passage in the ranking that its reranker was given.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema), schemars(rename = "Reranked"))]
#[non_exhaustive]
pub struct PriorRank {
    /// Its rank among the passages that were reranked, from 1.
    pub rank: usize,
    /// Its score there: what it would have without the reranker.
    pub score: f32,
}

/// A word of the query that is in no note and was read as a slip.
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
    /// Its score, below the floor.
    pub score: f32,
}

/// The byte ranges of `text` that the query's terms (as [`ScoreParts::terms`] has them) stand for.
/// Ascending; ranges that touch or overlap are one.
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
                // A single character of a script without spaces stands for all that begin with it.
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

/// Adds a mark behind others, or to the last one that it touches.
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
