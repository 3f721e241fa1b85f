//! Raises the scores of passages with adjacent words of the query, or with a note name inside it.
//!
//! Query words that are adjacent in a passage, in the same order, or that are the whole name of its note, earn the
//! passage a share of the score that its words leave open.
//!
//! | phrase | share |
//! | --- | --- |
//! | the whole query, without stop words at its ends | `WHOLE` |
//! | each run that punctuation joins, for example `max_retry_count`, `std::copy_if` or `2024-05-01` | `JOINED`, by how much of the query's information (the sum of idf) is in the run |
//! | each run that hyphens alone join, for example `two-dimensional`: a word of the language rather than a name | `HYPHENATED`, likewise |
//! | each identifier that is one ordinary word without its underscores, for example `__device__` or `copy_if` | `WHOLE` or `JOINED`, likewise |
//! | each name of a note inside the query, for example `Kanban` in `best plugin for kanban` | `NAMED`, likewise, to all passages of the note |
//!
//! If a query occurs as a whole in few passages, these are probably what the user wants, however close others are in
//! meaning. So their whole score is at least `LEAST` of the score that words alone would give, multiplied by the rarity
//! of the phrase (its idf, as a share of that of one passage).
//!
//! Only runs with two words count that are not stop words and that occur in some passage; a name may have one such
//! word, and so may an identifier: the texts of passages are read for its underscores. A passage with the shares `a` and
//! `b` leaves `(1 - a)(1 - b)` of what it left open: its lexical score stays at most 1, and does not depend on other
//! matches.
//!
//! A look-up takes about as long as that of its rarest word; that of a name takes some microseconds. The shares were
//! measured: a phrase needs one near 1 to outrank passages that are closer in meaning. On the question collections,
//! `HYPHENATED` above .2 removes more answers from the first ten than it adds, and so does a share of .02 for any two
//! neighbouring words of the query.

use std::ops::Range;

use crate::error::Result;
use crate::search::rank::bm25::{WordScores, idf};
use crate::search::rank::underscores::{contains, identifiers};
use crate::search::repeated_passages::REPEATED;
use crate::search::select::phrase::passages_with_phrase;
use crate::search::snapshot::Snapshot;
use crate::store::ReadStore;
use crate::terms::{TermMatch, Terms, is_stop_word, name_key};

const WHOLE: f64 = 0.9;

const LEAST: f64 = 0.9;

const JOINED: f64 = 0.7;

const HYPHENATED: f64 = 0.2;

const NAMED: f64 = 0.5;

/// If more passages contain the words of an identifier, they are not read.
const MAX_READ: usize = 1000;

/// Longer names inside a query are not looked up.
const MAX_NAME_WORDS: usize = 6;

/// Adjacent words, as a range of the query's text.
struct Run {
    range: Range<usize>,
    share: f64,
    is_whole: bool,
    /// Whether underscores count.
    is_identifier: bool,
}

/// A word of the query: its position, and its information (idf), which is 0 for stop words and words in no passage.
struct Word {
    span: Range<usize>,
    idf: Option<f64>,
    is_in_a_name: bool,
}

/// Raises the lexical scores of passages that contain words of the text side by side, and of notes with such a name.
pub(in crate::search) fn add_adjacent(
    store: &dyn ReadStore,
    snapshot: &Snapshot,
    text: &str,
    lexical: &mut WordScores,
) -> Result<()> {
    let passages = &snapshot.passages;
    let words = words(text, lexical, passages.len());
    for run in runs(text, &words).into_iter().chain(identifier_runs(text, &words)) {
        let run_text = &text[run.range];
        let mut holders = passages_with_phrase(store, run_text, TermMatch::Whole)?.unwrap_or_default();
        if !run.is_identifier && run_text.contains('_') {
            // `retry_count` may also be written as `retryCount`.
            let joined = passages_with_phrase(store, &run_text.replace('_', ""), TermMatch::Whole)?;
            holders.extend(joined.unwrap_or_default());
        }
        holders.sort_unstable();
        holders.dedup();
        if run.is_identifier {
            holders = with_identifier(store, run_text, &holders)?;
        }
        let rarity = idf(passages.len(), holders.len()) / idf(passages.len(), 1);
        let positions: Vec<usize> = holders.into_iter().filter_map(|id| snapshot.position(id)).collect();
        let own = |position: usize| if passages[position].is_repeated() { REPEATED } else { 1.0 };
        positions.iter().for_each(|at| lexical.raise(*at, own(*at) * run.share as f32));
        if run.is_whole {
            positions.iter().for_each(|at| lexical.raise_least(*at as u32, own(*at) * (LEAST * rarity) as f32));
        }
    }
    for run in names(&words) {
        let mut notes: Vec<_> = store.notes_named(&name_key(&text[run.range]))?.into_iter().map(|n| n.note).collect();
        notes.sort_unstable();
        notes.dedup();
        for position in notes.into_iter().flat_map(|note| snapshot.of_notes().of(note)) {
            lexical.raise(position as usize, run.share as f32);
        }
    }
    Ok(())
}

fn words(text: &str, lexical: &WordScores, passages: usize) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    Terms::new().each(text, |term, span| {
        // In a script without spaces, terms overlap; those that do not overlap suffice.
        if words.last().is_none_or(|last| last.span.end <= span.start) {
            let idf = if is_stop_word(term) { None } else { lexical.idf_of(term, passages) };
            words.push(Word { span, idf, is_in_a_name: lexical.is_in_a_name(term) });
        }
    });
    words
}

/// The information in some words.
fn told<'w>(words: impl IntoIterator<Item = &'w Word>) -> f64 {
    words.into_iter().filter_map(|word| word.idf).sum()
}

/// The runs to look up in passages.
fn runs(text: &str, words: &[Word]) -> Vec<Run> {
    let all = told(words);
    // From the first word with information to the last, if there are two; and the information in all of them.
    let telling = |words: &[Word]| {
        let telling: Vec<&Word> = words.iter().filter(|word| word.idf.is_some()).collect();
        let [first, .., last] = &telling[..] else { return None };
        Some((first.span.start..last.span.end, told(words) / all))
    };
    let whole = telling(words).map(|(range, _)| Run { range, share: WHOLE, is_whole: true, is_identifier: false });
    let is_whole = |range: &Range<usize>| whole.as_ref().is_some_and(|whole| whole.range == *range);
    let is_joined = |a: &Word, b: &Word| !text[a.span.end..b.span.start].contains(char::is_whitespace);
    let joined = words.chunk_by(is_joined).filter_map(telling).filter(|(range, _)| !is_whole(range));
    let joined: Vec<Run> = joined
        .map(|(range, told)| {
            let is_hyphenated = text[range.clone()].chars().all(|c| c == '-' || c.is_alphabetic());
            let share = told * if is_hyphenated { HYPHENATED } else { JOINED };
            Run { range, share, is_whole: false, is_identifier: false }
        })
        .collect();
    whole.into_iter().chain(joined).collect()
}

/// The identifiers to look up in passages.
fn identifier_runs(text: &str, words: &[Word]) -> Vec<Run> {
    let all = told(words);
    let run = |range: Range<usize>| {
        let of_range = words.iter().filter(|word| range.start <= word.span.start && word.span.end <= range.end);
        let told = told(of_range);
        // It is as good as the whole query if no other word has information.
        let is_whole = told >= all;
        let share = if is_whole { WHOLE } else { JOINED * told / all };
        (share > 0.0).then_some(Run { range, share, is_whole, is_identifier: true })
    };
    identifiers(text).into_iter().filter_map(run).collect()
}

/// The passages that contain an identifier. `passages` are in order.
fn with_identifier(store: &dyn ReadStore, identifier: &str, passages: &[i64]) -> Result<Vec<i64>> {
    let identifier = identifier.to_lowercase();
    let mut holders = Vec::new();
    if passages.len() <= MAX_READ {
        store.each_text(passages, &mut |id, text| holders.extend(contains(text, &identifier).then_some(id)))?;
    }
    Ok(holders)
}

/// The runs that may be the name of a note, except the whole query, which is looked up as a name anyway.
fn names(words: &[Word]) -> Vec<Run> {
    let all = told(words);
    let is_possible = |word: &Word| word.idf.is_none() || word.is_in_a_name;
    let mut names = Vec::new();
    for (start, first) in words.iter().enumerate().filter(|(_, word)| word.idf.is_some()) {
        let possible = words[start..].iter().take(MAX_NAME_WORDS).take_while(|word| is_possible(word)).count();
        for end in (start + 1..=start + possible).filter(|end| *end - start < words.len()) {
            let last = &words[end - 1];
            if last.idf.is_some() {
                let share = NAMED * told(&words[start..end]) / all;
                let range = first.span.start..last.span.end;
                names.push(Run { range, share, is_whole: false, is_identifier: false });
            }
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All words have the same information and are in names, except `unheard` ones and stop words.
    fn words(text: &str) -> Vec<Word> {
        let mut words = Vec::new();
        Terms::new().each(text, |term, span| {
            let tells = term != "unheard" && !is_stop_word(term);
            words.push(Word { span, idf: tells.then_some(2.0), is_in_a_name: term != "flow" });
        });
        words
    }

    fn shown(text: &str, runs: Vec<Run>) -> Vec<String> {
        runs.iter().map(|run| format!("{} {:.3}", &text[run.range.clone()], run.share)).collect()
    }

    #[test]
    fn what_is_looked_up_in_passages() {
        let looked_up = |text: &str| shown(text, runs(text, &words(text)));
        for nothing in ["", "heron", "of the heron", "unheard heron", "?!"] {
            assert_eq!(looked_up(nothing), [""; 0], "{nothing}");
        }
        assert_eq!(looked_up("heron in the river"), ["heron in the river 0.900"]);
        assert_eq!(looked_up("max_retry_count"), ["max_retry_count 0.900"]);
        let expected = ["std::copy used 0.900", "std::copy 0.467"];
        assert_eq!(looked_up("where is std::copy used"), expected);
        assert_eq!(looked_up("two-dimensional flow"), ["two-dimensional flow 0.900", "two-dimensional 0.133"]);
    }

    #[test]
    fn what_is_looked_up_with_its_underscores() {
        let looked_up = |text: &str| shown(text, identifier_runs(text, &words(text)));
        for nothing in ["", "heron", "max_retry_count", "heron or __all__", "_unheard heron"] {
            assert_eq!(looked_up(nothing), [""; 0], "{nothing}");
        }
        assert_eq!(looked_up("__device__"), ["__device__ 0.900"]);
        assert_eq!(looked_up("__all__ "), ["__all__ 0.900"]);
        assert_eq!(looked_up("what is __device__"), ["__device__ 0.900"]);
        assert_eq!(looked_up("a __device__ of herons"), ["__device__ 0.350"]);
        assert_eq!(looked_up("where is std::copy_if?"), ["copy_if 0.350"]);
    }

    #[test]
    fn what_may_be_a_name_inside_a_query() {
        let looked_up = |text: &str| shown(text, names(&words(text)));
        for nothing in ["", "heron", "heron in the river".split_at(5).0, "the flow of"] {
            assert_eq!(looked_up(nothing), [""; 0], "{nothing}");
        }
        assert_eq!(looked_up("what is kanban"), ["kanban 0.500"]);
        assert_eq!(looked_up("flow of the kanban board"), ["kanban 0.167", "kanban board 0.333", "board 0.167"]);
        let words = "one two three four five six seven eight";
        assert_eq!(looked_up(words).iter().map(|run| run.matches(' ').count()).max(), Some(MAX_NAME_WORDS));
    }
}
