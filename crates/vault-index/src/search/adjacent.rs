//! Words of the query that stand side by side in a passage, in the same order, earn it a share of the score that its words
//! leave open.
//!
//! | looked up | share |
//! | --- | --- |
//! | the whole query, without stop words at its ends | `WHOLE` |
//! | each run that punctuation joins, for example `max_retry_count`, `std::copy_if` or `2024-05-01` | `JOINED`, by how much of the query's information (the sum of idf) is in the run |
//! | each run that hyphens alone join, for example `two-dimensional`: a word of the language rather than a name | `HYPHENATED`, likewise |
//!
//! Only runs with two words count that are no stop words and stand in some passage. A passage with the shares `a` and `b`
//! leaves `(1 - a)(1 - b)` of what it left open: its lexical score stays at most 1, and the same whatever else matches.
//!
//! A look-up takes about as long as that of the rarest word in it. The shares were measured: a phrase needs one near 1 to
//! outrank passages that are nearer in meaning, and on the collections of questions `HYPHENATED` above .2 takes more from
//! the first ten than it gives, as does a share of .02 for any two neighbouring words of the query.

use std::ops::Range;

use crate::error::Result;
use crate::search::lexical::{Lexical, holders_of};
use crate::store::{PassageRow, Store};
use crate::terms::{Matching, Terms, is_stop_word};

const WHOLE: f64 = 0.9;

const JOINED: f64 = 0.7;

const HYPHENATED: f64 = 0.2;

/// Words side by side, as a range of the query's text.
struct Run {
    range: Range<usize>,
    share: f64,
}

/// A word of the query: where it is, and how much it tells (idf). Stop words and words in no passage tell nothing.
struct Word {
    span: Range<usize>,
    idf: Option<f64>,
}

/// Raises the lexical scores of passages that have words of the text side by side. `passages` are those of the scores.
pub(super) fn add_adjacent(store: &Store, passages: &[PassageRow], text: &str, lexical: &mut Lexical) -> Result<()> {
    for run in runs(text, &|term| lexical.idf_of(term, passages.len())) {
        let mut holders = holders_of(store, &text[run.range], Matching::Whole)?.unwrap_or_default();
        holders.sort_unstable();
        holders.dedup();
        let position = |id: i64| passages.binary_search_by_key(&id, |passage| passage.id).ok();
        holders.into_iter().filter_map(position).for_each(|position| lexical.raise(position, run.share as f32));
    }
    Ok(())
}

/// What is looked up. `idf` is that of a term; none where no passage has it.
fn runs(text: &str, idf: &dyn Fn(&str) -> Option<f64>) -> Vec<Run> {
    let mut words: Vec<Word> = Vec::new();
    Terms::new().each(text, |term, span| {
        // Of a script without spaces, terms overlap: those that do not are enough.
        if words.last().is_none_or(|last| last.span.end <= span.start) {
            words.push(Word { span, idf: if is_stop_word(term) { None } else { idf(term) } });
        }
    });
    let all: f64 = words.iter().filter_map(|word| word.idf).sum();
    // From the first word that tells something to the last, where there are two; and how much all of them tell.
    let telling = |words: &[Word]| {
        let told: Vec<(&Word, f64)> = words.iter().filter_map(|word| Some((word, word.idf?))).collect();
        let ([(first, _), .., (last, _)], told) = (&told[..], told.iter().map(|(_, idf)| idf).sum::<f64>()) else {
            return None;
        };
        Some((first.span.start..last.span.end, told / all))
    };
    let whole = telling(&words).map(|(range, _)| Run { range, share: WHOLE });
    let is_whole = |range: &Range<usize>| whole.as_ref().is_some_and(|whole| whole.range == *range);
    let is_joined = |a: &Word, b: &Word| !text[a.span.end..b.span.start].contains(char::is_whitespace);
    let joined = words.chunk_by(is_joined).filter_map(telling).filter(|(range, _)| !is_whole(range));
    let joined: Vec<Run> = joined
        .map(|(range, told)| {
            let is_hyphenated = text[range.clone()].chars().all(|c| c == '-' || c.is_alphabetic());
            Run { share: told * if is_hyphenated { HYPHENATED } else { JOINED }, range }
        })
        .collect();
    whole.into_iter().chain(joined).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_looked_up() {
        let looked_up = |text: &str| -> Vec<String> {
            let runs = runs(text, &|term| (term != "unheard").then_some(2.0));
            runs.iter().map(|run| format!("{} {:.3}", &text[run.range.clone()], run.share)).collect()
        };
        for nothing in ["", "heron", "of the heron", "unheard heron", "?!"] {
            assert_eq!(looked_up(nothing), [""; 0], "{nothing}");
        }
        assert_eq!(looked_up("heron in the river"), ["heron in the river 0.900"]);
        assert_eq!(looked_up("max_retry_count"), ["max_retry_count 0.900"]);
        let expected = ["std::copy used 0.900", "std::copy 0.467"];
        assert_eq!(looked_up("where is std::copy used"), expected);
        assert_eq!(looked_up("two-dimensional flow"), ["two-dimensional flow 0.900", "two-dimensional 0.133"]);
    }
}
