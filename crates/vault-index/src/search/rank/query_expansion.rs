//! Query expansion: each word of a query stands for itself, for words of the vault of the same stem, for words that begin
//! with it, and, where no note has any of these, for the words that it may be a misspelling of, that end with it, or that
//! it is made of.

use std::collections::HashMap;
use std::ops::Range;

use unicode_normalization::char::is_combining_mark;

use crate::error::Result;
use crate::search::hit::Substitution;
use crate::search::vocabulary::Vocabulary;
use crate::store::Store;
use crate::terms::{QueryTerm, TermMatch, Terms, is_stop_word, stem};

/// The weight of the other words of a word's stem, and of those that are written with hyphens, or without them.
const SAME_STEM: f64 = 0.8;

/// The weight of words that begin with the last word of a query.
const BEGINS_SO: f64 = 0.4;

/// The weight of words that it may be a slip of.
const SLIP: f64 = 0.7;

/// From so many letters on, the last word of a query stands for those that begin with it too.
const LEAST_LETTERS_OF_PREFIX: usize = 3;

/// More words than this are not looked up: the rarest stay. A query of 100 kB is a text, and its rare words
/// say what it is about.
const MAX_WORDS: usize = 48;

/// The number of different words among which the rarest are chosen.
const MAX_CONSIDERED: usize = 1500;

/// So many words of a query are read as slips: each looks through all words of the vault.
const MAX_SLIPS: usize = 4;

/// Of equally near words the most frequent are meant.
const MAX_MEANT: usize = 3;

/// A query's words, each with what it stands for.
#[derive(Default)]
pub(in crate::search) struct ExpandedQuery {
    pub words: Vec<ExpandedWord>,
    pub substitutions: Vec<Substitution>,
    /// The words of them that are slips. What a word is a part of, or made of, was not meant: the model reads the word.
    slips: Vec<String>,
    /// Words that are in no note and near to none that is.
    unknown: Vec<String>,
    /// How many words were looked for in vain.
    in_no_note: usize,
    /// The text as it may have been meant, the likeliest first. Empty where no word is read as another.
    pub meant: Vec<String>,
}

/// A word of the query, and what notes may have for it.
pub(in crate::search) struct ExpandedWord {
    /// How often the query has it.
    pub count: f64,
    /// The word itself first; slips have no such form.
    pub forms: Vec<WordForm>,
    /// What it is the beginning of. Looked for beside `forms`, and only where they are in a note not weighed in how rare
    /// the word is.
    pub beginning: Option<WordForm>,
}

/// A term of notes, or how terms of notes begin.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::search) struct WordForm {
    pub text: String,
    pub matching: TermMatch,
    pub weight: f64,
    pub is_exact: bool,
}

/// What is read.
pub(in crate::search) struct QueryText<'a> {
    pub text: &'a str,
    /// Those of its words that stand for all that begin with them.
    pub prefixes: &'a [String],
}

/// What is known of a word of the query before the vault is asked.
struct QueryWord {
    term: QueryTerm,
    count: f64,
    is_last: bool,
    /// What it is a part of, as that is written without hyphens.
    compounds: Vec<String>,
}

impl ExpandedQuery {
    /// Looks the words up. `vocabulary` is asked for where a word is in no note.
    pub(in crate::search) fn new<'v>(
        store: &Store,
        asked: &QueryText<'_>,
        vocabulary: &dyn Fn(&Store) -> Result<&'v Vocabulary>,
    ) -> Result<Self> {
        let mut expanded = Self::default();
        let mut terms = Terms::new();
        let prefixes: Vec<QueryTerm> = asked.prefixes.iter().filter_map(|word| terms.words(word).pop()).collect();
        for typed in choose(store, asked.text)? {
            let is_prefix = prefixes.contains(&typed.term);
            let word = if is_prefix { beginning_so(&typed) } else { expanded.read(store, &typed, vocabulary)? };
            expanded.words.push(word);
        }
        expanded.meant = expanded.meant(asked.text);
        Ok(expanded)
    }

    /// The text to embed: slips say nothing to a model.
    pub(in crate::search) fn text<'t>(&'t self, asked: &'t str) -> &'t str {
        self.meant.first().map_or(asked, String::as_str)
    }

    /// Words of the text that nothing is known for, as they are written. A part of a word is none, as of a compound or in
    /// a script without spaces.
    pub(in crate::search) fn unknown_of(&self, text: &str) -> Vec<String> {
        let mut unknown: Vec<String> = Vec::new();
        if !self.unknown.is_empty() {
            Terms::new().each(text, |term, span| {
                let is_whole = !text[..span.start].ends_with(char::is_alphanumeric)
                    && !text[span.end..].starts_with(char::is_alphanumeric);
                let written = &text[span];
                if is_whole && self.unknown.iter().any(|word| word == term) && !unknown.iter().any(|w| w == written) {
                    unknown.push(written.to_owned());
                }
            });
        }
        unknown
    }

    fn read<'v>(
        &mut self,
        store: &Store,
        typed: &QueryWord,
        vocabulary: &dyn Fn(&Store) -> Result<&'v Vocabulary>,
    ) -> Result<ExpandedWord> {
        let QueryTerm { text, matching } = &typed.term;
        let itself = WordForm { text: text.clone(), matching: *matching, weight: 1.0, is_exact: true };
        let mut word = ExpandedWord { count: typed.count, forms: vec![itself], beginning: None };
        if *matching == TermMatch::Prefix {
            return Ok(word);
        }
        word.forms.extend(of_same_stem(store, text, 1.0)?);
        for text in typed.compounds.iter().cloned() {
            word.forms.extend(of_same_stem(store, &text, 1.0)?);
            word.forms.push(WordForm { text, matching: TermMatch::Whole, weight: SAME_STEM, is_exact: false });
        }
        if typed.is_last && text.chars().count() >= LEAST_LETTERS_OF_PREFIX {
            let text = text.clone();
            word.beginning = Some(WordForm { text, matching: TermMatch::Prefix, weight: BEGINS_SO, is_exact: false });
        }
        if self.in_no_note < MAX_SLIPS && !is_in_a_note(store, &word)? {
            self.in_no_note += 1;
            let vocabulary = vocabulary(store)?;
            let near = nearest(store, vocabulary, text)?;
            if !near.is_empty() {
                self.slips.push(text.clone());
            }
            let mut meant = near.clone();
            let ending = most_frequent(store, vocabulary.ending_with(text))?;
            meant.extend(ending.into_iter().filter(|word| !near.contains(word)));
            if meant.is_empty() {
                meant = most_frequent(store, vocabulary.parts(text))?;
            }
            if meant.is_empty() {
                self.unknown.push(text.clone());
            } else {
                (word.forms, word.beginning) = (Vec::new(), None);
                for meant in &meant {
                    let matching = TermMatch::Whole;
                    word.forms.push(WordForm { text: meant.clone(), matching, weight: SLIP, is_exact: false });
                    word.forms.extend(of_same_stem(store, meant, SLIP)?);
                }
                self.substitutions.push(Substitution { word: text.clone(), read_as: meant });
            }
        }
        Ok(word)
    }

    /// In the n-th text each slip is the n-th word that it may mean, or the last.
    fn meant(&self, text: &str) -> Vec<String> {
        let meant: Vec<&Substitution> =
            self.substitutions.iter().filter(|substitution| self.slips.contains(&substitution.word)).collect();
        let most = meant.iter().map(|substitution| substitution.read_as.len()).max().unwrap_or(0);
        let mut slips: Vec<(Range<usize>, &[String])> = Vec::new();
        if most > 0 {
            Terms::new().each(text, |term, span| {
                let found = meant.iter().find(|substitution| substitution.word == term);
                slips.extend(found.map(|substitution| (span, substitution.read_as.as_slice())));
            });
        }
        let corrected = |n: usize| {
            let mut corrected = text.to_owned();
            for (span, words) in slips.iter().rev() {
                corrected.replace_range(span.clone(), &words[n.min(words.len() - 1)]);
            }
            corrected
        };
        (0..most).map(corrected).collect()
    }
}

/// A word that was asked for as a beginning.
fn beginning_so(typed: &QueryWord) -> ExpandedWord {
    let text = typed.term.text.clone();
    let form = WordForm { text, matching: TermMatch::Prefix, weight: 1.0, is_exact: true };
    ExpandedWord { count: typed.count, forms: vec![form], beginning: None }
}

/// The other words of the stem of a word that has this weight.
fn of_same_stem(store: &Store, word: &str, weight: f64) -> Result<impl Iterator<Item = WordForm>> {
    let words = store.words_with_stem(&stem(word))?;
    let others: Vec<String> = words.into_iter().filter(|other| other != word).collect();
    let weight = SAME_STEM * weight;
    Ok(others.into_iter().map(move |text| WordForm { text, matching: TermMatch::Whole, weight, is_exact: false }))
}

/// Whether a note has anything that the word stands for. Words of the vocabulary may be in none any more.
fn is_in_a_note(store: &Store, word: &ExpandedWord) -> Result<bool> {
    for form in word.forms.iter().chain(&word.beginning) {
        if store.is_in_a_note(&form.text, form.matching)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The words that a word may be a slip of: the nearest that a note has, and of equally near ones the most frequent.
fn nearest(store: &Store, vocabulary: &Vocabulary, word: &str) -> Result<Vec<String>> {
    let mut nearest = Vec::new();
    let mut distance = None;
    for near in vocabulary.near(word) {
        if distance.is_some_and(|distance| distance < near.distance) {
            break;
        }
        if store.document_frequency(&near.word)? > 0 {
            distance = Some(near.distance);
            nearest.push(near.word);
        }
    }
    most_frequent(store, nearest)
}

/// The most frequent of some words, of those that a note has.
fn most_frequent(store: &Store, words: Vec<String>) -> Result<Vec<String>> {
    let mut counted: Vec<(u64, String)> = Vec::with_capacity(words.len());
    for word in words {
        let frequency = store.document_frequency(&word)?;
        if frequency > 0 {
            counted.push((frequency, word));
        }
    }
    counted.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    counted.truncate(MAX_MEANT);
    Ok(counted.into_iter().map(|(_, word)| word).collect())
}

/// The words to look up, each once, in the query's order: no stop words unless there is nothing else.
fn choose(store: &Store, text: &str) -> Result<Vec<QueryWord>> {
    let mut known: HashMap<QueryTerm, usize> = HashMap::new();
    let mut words: Vec<QueryWord> = Vec::new();
    let mut last = None;
    for term in Terms::new().words(text) {
        last = known.get(&term).copied();
        match last {
            Some(at) => words[at].count += 1.0,
            None if words.len() < MAX_CONSIDERED => {
                last = Some(words.len());
                known.insert(term.clone(), words.len());
                words.push(QueryWord { term, count: 1.0, is_last: false, compounds: Vec::new() });
            }
            None => {}
        }
    }
    let mut compounds: Vec<(String, Range<usize>)> = Vec::new();
    Terms::new().compounds(text, |compound, span| compounds.push((compound.to_owned(), span)));
    for (compound, span) in compounds {
        for part in Terms::new().words(&text[span]) {
            if let Some(at) = known.get(&part)
                && !words[*at].compounds.contains(&compound)
            {
                words[*at].compounds.push(compound.clone());
            }
        }
    }
    // A word that something follows is whole.
    if let Some(last) = last.filter(|_| text.ends_with(|c: char| c.is_alphanumeric() || is_combining_mark(c))) {
        words[last].is_last = true;
    }
    if words.iter().any(|word| !is_stop_word(&word.term.text)) {
        words.retain(|word| !is_stop_word(&word.term.text));
    }
    if words.len() > MAX_WORDS {
        let mut counted = Vec::with_capacity(words.len());
        for (order, word) in words.into_iter().enumerate() {
            let frequency = store.document_frequency(&word.term.text)?;
            // A term that no passage has cannot find anything.
            counted.push((if frequency == 0 { u64::MAX } else { frequency }, order, word));
        }
        counted.sort_by_key(|(frequency, order, _)| (*frequency, *order));
        counted.truncate(MAX_WORDS);
        counted.sort_by_key(|(_, order, _)| *order);
        words = counted.into_iter().map(|(_, _, word)| word).collect();
    }
    Ok(words)
}
