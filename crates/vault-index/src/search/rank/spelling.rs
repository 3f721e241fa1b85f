//! Spelling correction and compounds: the words of a vault that can replace a word that it lacks.
//!
//! These are the nearest words, of which it may be a misspelling, words that end with it, as *Krankenversicherung* does
//! with *Versicherung*, and words that it is composed of.
//!
//! The distance is that of optimal string alignment: letters inserted, deleted or replaced count one each, and so do
//! two swapped neighbours. An edit of the first letter counts half more, because typos are rare there.

use crate::search::vocabulary::{NO_SLIP, Vocabulary, letters};

/// Shorter words are not corrected, because too many other words are within one edit. A word that is missing from a
/// vault may still be spelled correctly, so a correction must be near enough to be unlikely by chance.
const LEAST_LETTERS: usize = 5;

/// With at least this number of letters, the first letter can be wrong.
const FIRST_LETTER: usize = 6;

/// With at least this number of letters, a word can have two edits.
const TWO_EDITS: usize = 9;

/// The least number of letters, including digits, in a part of a word: shorter parts are in many words by chance.
const LEAST_PART: usize = 4;
const LEAST_PART_WITH_DIGIT: usize = 3;

/// The least number of letters in a part, if it is the only known part of the word.
const LEAST_ONLY_PART: usize = 6;

/// A possible correction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NearWord {
    pub word: String,
    /// In half edits.
    pub distance: u32,
}

impl Vocabulary {
    /// The words that end with a word, in order, because the end of a compound says what it is. Linear in the
    /// vocabulary.
    pub(super) fn ending_with(&self, word: &str) -> Vec<String> {
        let has_digit = word.chars().any(|c| c.is_ascii_digit());
        let least = if has_digit { LEAST_PART_WITH_DIGIT } else { LEAST_PART };
        if word.chars().count() < least || !word.chars().any(char::is_alphabetic) {
            return Vec::new();
        }
        self.all().filter(|there| there.len() > word.len() && there.ends_with(word)).map(str::to_owned).collect()
    }

    /// The two words that a word is composed of, or otherwise the longest word that it starts or ends with. Linear in
    /// the vocabulary.
    pub(super) fn parts(&self, word: &str) -> Vec<String> {
        let count = |part: &str| part.chars().count();
        let is_part = |part: &&str| part.len() < word.len() && count(part) >= LEAST_PART;
        if !word.chars().all(char::is_alphabetic) {
            return Vec::new();
        }
        let begins: Vec<&str> = self.all().filter(is_part).filter(|part| word.starts_with(part)).collect();
        let ends: Vec<&str> = self.all().filter(is_part).filter(|part| word.ends_with(part)).collect();
        let pairs = begins.iter().flat_map(|begin| ends.iter().map(move |end| (*begin, *end)));
        // A letter or two may join them: *Arbeitsamt*, *Blumentopf*.
        let joined =
            pairs.filter(|(begin, end)| (0..=2).contains(&(word.len() as isize - (begin.len() + end.len()) as isize)));
        if let Some((begin, end)) = joined.max_by_key(|(begin, end)| (begin.len() + end.len(), begin.len())) {
            return vec![begin.to_owned(), end.to_owned()];
        }
        let is_most = |part: &&str| count(part) >= LEAST_ONLY_PART && count(word) - count(part) >= LEAST_PART;
        let longest = begins.into_iter().chain(ends).filter(is_most).max_by_key(|part| part.len());
        longest.map(str::to_owned).into_iter().collect()
    }

    /// The possible corrections of a word, nearest first, equally near ones in order; not the word itself. Linear in
    /// the vocabulary: some 5 ms for 100,000 words.
    pub(super) fn near(&self, word: &str) -> Vec<NearWord> {
        let wanted: Vec<char> = word.chars().collect();
        if wanted.len() < LEAST_LETTERS || !wanted.iter().all(|c| c.is_alphabetic()) {
            return Vec::new();
        }
        let most = most(wanted.len());
        let edits = most as usize / 2;
        let its_letters = letters(word);
        let mut near = Vec::new();
        let mut rows = Rows::default();
        let mut start = 0;
        for (end, letters) in &self.ends {
            let there = &self.words[start..*end as usize];
            start = *end as usize;
            // An edit adds a letter, removes one, or does both.
            if *letters == NO_SLIP
                || (letters ^ its_letters).count_ones() as usize > 2 * edits
                || there.len().abs_diff(word.len()) > 4 * edits
            {
                continue;
            }
            if let Some(distance) = rows.distance(&wanted, there, most)
                && distance > 0
            {
                near.push(NearWord { word: there.to_owned(), distance });
            }
        }
        near.sort_by(|a, b| a.distance.cmp(&b.distance).then_with(|| a.word.cmp(&b.word)));
        near
    }
}

/// The largest distance for a word with this number of letters, in half edits.
fn most(letters: usize) -> u32 {
    match letters {
        TWO_EDITS.. => 5,
        FIRST_LETTER.. => 3,
        _ => 2,
    }
}

/// The last three rows of the table of distances, reused for the next word.
#[derive(Default)]
struct Rows {
    there: Vec<char>,
    rows: [Vec<u32>; 3],
}

impl Rows {
    /// The distance in half edits. `None`: it is more than `most`.
    fn distance(&mut self, wanted: &[char], there: &str, most: u32) -> Option<u32> {
        self.there.clear();
        self.there.extend(there.chars());
        let there = &self.there;
        if there.len().abs_diff(wanted.len()) > most as usize / 2 {
            return None;
        }
        let edit = |i: usize, j: usize| if i.min(j) == 0 { 3 } else { 2 };
        let [before, last, row] = &mut self.rows;
        last.clear();
        last.push(0);
        (0..there.len()).for_each(|j| last.push(last[j] + edit(0, j)));
        before.clone_from(last);
        for i in 0..wanted.len() {
            row.clear();
            row.push(last[0] + edit(i, 0));
            for j in 0..there.len() {
                let replaced = last[j] + if wanted[i] == there[j] { 0 } else { edit(i, j) };
                let mut least = replaced.min(last[j + 1] + edit(i, j + 1)).min(row[j] + edit(i + 1, j));
                if i > 0 && j > 0 && wanted[i] == there[j - 1] && wanted[i - 1] == there[j] {
                    least = least.min(before[j - 1] + edit(i - 1, j - 1));
                }
                row.push(least);
            }
            if row.iter().all(|distance| *distance > most) {
                return None;
            }
            std::mem::swap(before, last);
            std::mem::swap(last, row);
        }
        last.last().copied().filter(|distance| *distance <= most)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    /// The definition: the cheapest path from `a[i..]` to `b[j..]`. `known` caches results.
    fn plain(a: &[char], b: &[char], i: usize, j: usize, known: &mut HashMap<(usize, usize), u32>) -> u32 {
        if let Some(least) = known.get(&(i, j)) {
            return *least;
        }
        let edit = if i.min(j) == 0 { 3 } else { 2 };
        let mut after = |rows: usize, columns: usize| plain(a, b, i + rows, j + columns, known);
        let least = match (i < a.len(), j < b.len()) {
            (false, false) => 0,
            (false, true) => edit + after(0, 1),
            (true, false) => edit + after(1, 0),
            (true, true) => {
                let replaced = after(1, 1) + if a[i] == b[j] { 0 } else { edit };
                let least = replaced.min(edit + after(0, 1)).min(edit + after(1, 0));
                let is_swapped = i + 1 < a.len() && j + 1 < b.len() && a[i] == b[j + 1] && a[i + 1] == b[j];
                if is_swapped { least.min(edit + after(2, 2)) } else { least }
            }
        };
        known.insert((i, j), least);
        least
    }

    #[test]
    fn misspelled_words_find_the_nearest_known_words() {
        let words =
            "evernote wittgenstein graph grape excalidraw markdown templater gartens гитара übersicht a1b2c3d4 gitary";
        let vocabulary = Vocabulary::new(words.split(' '));
        for (typed, meant) in [
            ("evrnote", &["evernote"][..]),
            ("wittgenstien", &["wittgenstein"]),
            ("exclaidraw", &["excalidraw"]),
            ("markdwon", &["markdown"]),
            ("гитраа", &["гитара"]),
            ("ubersicht", &["übersicht"]),
            ("grapg", &["grape", "graph"]),
            ("tamplater", &["templater"]),
            ("wittgnstien", &["wittgenstein"]),
            ("narkdown", &["markdown"]),
            // Three edits; two edits or the first letter in a short word; too short; a number.
            ("wittxxxstein", &[]),
            ("ewernot", &[]),
            ("brape", &[]),
            ("grap", &[]),
            ("a1b2c3d5", &[]),
        ] {
            let near: Vec<_> = vocabulary.near(typed).into_iter().map(|near| near.word).collect();
            assert_eq!(near, meant, "{typed}");
        }
        // An edit of the first letter counts more.
        let near = Vocabulary::new(["kraphs", "grabhs"].into_iter()).near("graphs");
        assert_eq!(near.iter().map(|near| near.distance).collect::<Vec<_>>(), [2, 3]);
    }

    #[test]
    fn words_that_end_with_a_word_and_those_that_it_is_made_of() {
        let words = "krankenversicherung versicherungen handshake i18n 2018 standort abfrage arbeit amt blume topf";
        let vocabulary = Vocabulary::new(words.split(' '));
        let ending_with = |word: &str| vocabulary.ending_with(word);
        assert_eq!(ending_with("versicherung"), ["krankenversicherung"]);
        assert_eq!([ending_with("shake"), ending_with("18n")], [["handshake"], ["i18n"]]);
        assert_eq!([ending_with("018"), ending_with("amt"), ending_with("handshake")], [[""; 0]; 3]);
        let parts = |word: &str| vocabulary.parts(word);
        assert_eq!(parts("standortabfrage"), ["standort", "abfrage"]);
        assert_eq!(parts("blumentopf"), ["blume", "topf"]);
        assert_eq!(parts("standortwechsel"), ["standort"]);
        for nothing in ["i18next", "standort", "arbeiten"] {
            assert_eq!(parts(nothing), [""; 0], "{nothing}");
        }
    }

    proptest! {
        #[test]
        fn the_distance_is_that_of_the_definition(word in "[abcä]{5,9}", others in prop::collection::vec("[abcä]{1,11}", 1..12)) {
            let vocabulary = Vocabulary::new(others.iter().map(String::as_str));
            let chars = |word: &str| word.chars().collect::<Vec<_>>();
            let mut expected: Vec<NearWord> = others
                .iter()
                .map(|other| NearWord { word: other.clone(), distance: plain(&chars(&word), &chars(other), 0, 0, &mut HashMap::new()) })
                .filter(|near| near.distance > 0 && near.distance <= most(word.chars().count()))
                .collect();
            expected.sort_by(|a, b| a.distance.cmp(&b.distance).then_with(|| a.word.cmp(&b.word)));
            prop_assert_eq!(vocabulary.near(&word), expected);
        }
    }
}
