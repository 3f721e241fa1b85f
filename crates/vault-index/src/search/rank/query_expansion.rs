//! Query expansion: the words of the vault that each word of a query stands for.
//!
//! Each word stands for itself, for words of the vault with the same stem, and for words that begin with it. If no note
//! has any of these, it stands for the words that it may be a misspelling of, that end with it, or that it is composed
//! of. A name in a program is found in either form: `retry_count` also stands for `retryCount`, and a `retryCount` that
//! no note has is read as `retry Count`.

use std::collections::HashMap;
use std::ops::Range;

use unicode_normalization::char::is_combining_mark;

use crate::error::Result;
use crate::search::hit::Substitution;
use crate::search::vocabulary::Vocabulary;
use crate::store::{Field, Holder, ReadStore};
use crate::terms::{QueryTerm, TermMatch, Terms, is_stop_word, stem};

/// The weight of other words with the same stem, and of words that differ only in hyphens.
const SAME_STEM: f64 = 0.8;

/// The weight of words that begin with the last word of a query.
const BEGINS_SO: f64 = 0.4;

/// The weight of words that it may be a misspelling of.
const SLIP: f64 = 0.7;

/// With at least this number of letters, the last word of a query also stands for words that begin with it.
const LEAST_LETTERS_OF_PREFIX: usize = 3;

/// The most words that are looked up: the rarest ones. A query of 100 kB is a text, and its rare words carry its
/// subject.
const MAX_WORDS: usize = 48;

/// The number of distinct words among which the rarest are chosen.
const MAX_CONSIDERED: usize = 1500;

/// The most words of a query that are corrected as misspellings, because each correction scans all words of the vault.
const MAX_SLIPS: usize = 4;

/// The number of corrections for a word. Among equally near words the most frequent are taken.
const MAX_MEANT: usize = 3;

/// A query's words, with the forms that each stands for.
#[derive(Default)]
pub(in crate::search) struct ExpandedQuery {
    pub words: Vec<ExpandedWord>,
    pub substitutions: Vec<Substitution>,
    /// The misspelled words. Compounds and their parts do not count, because they were not misspelled: the model reads
    /// the word.
    slips: Vec<String>,
    /// Words that no note contains and that are not near to one of a note.
    unknown: Vec<String>,
    /// The number of words that were not found.
    in_no_note: usize,
    /// The corrected texts, the most probable first. Empty if no word is corrected.
    pub meant: Vec<String>,
}

/// A word of the query, and its forms in notes.
pub(in crate::search) struct ExpandedWord {
    /// The number of its occurrences in the query.
    pub count: f64,
    /// The word itself first; misspelled words do not have this form.
    pub forms: Vec<WordForm>,
    /// The word as a prefix. It is looked up besides `forms`, and it counts towards the rarity of the word only if no
    /// note has one of those.
    pub beginning: Option<WordForm>,
}

/// A term of notes, or a prefix of terms.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::search) struct WordForm {
    pub text: String,
    pub matching: TermMatch,
    pub weight: f64,
    pub is_exact: bool,
}

/// The text of the query.
pub(in crate::search) struct QueryText<'a> {
    pub text: &'a str,
    /// Those of its words that stand for all words that begin with them.
    pub prefixes: &'a [String],
}

/// A word of the query before the vault is searched.
struct QueryWord {
    term: QueryTerm,
    count: f64,
    /// Whether it is the last word, may be incomplete, and is long enough to stand for words that begin with it.
    is_last: bool,
    /// The compounds that it is a part of, written without hyphens.
    compounds: Vec<String>,
}

impl ExpandedQuery {
    /// Looks the words up. `vocabulary` is called if no note has a word. `ahead` asks for what is probably needed next.
    pub(in crate::search) fn new<'v>(
        store: &dyn ReadStore,
        asked: &QueryText<'_>,
        vocabulary: &dyn Fn(&dyn ReadStore) -> Result<&'v Vocabulary>,
        ahead: &dyn Fn(&dyn ReadStore) -> Result<()>,
    ) -> Result<Self> {
        let mut expanded = Self::default();
        let mut terms = Terms::new();
        let prefixes: Vec<QueryTerm> = asked.prefixes.iter().filter_map(|word| terms.words(word).pop()).collect();
        let parted = in_parts(store, asked.text)?;
        let text = match parted {
            Some((ref text, _)) => text,
            None => asked.text,
        };
        let words = choose(store, text)?;
        store.prefetch(&mut || {
            let stems: Vec<String> = words.iter().map(|typed| stem(&typed.term.text).into_owned()).collect();
            store.ask_for_names(&stems)?;
            words.iter().try_for_each(|typed| typed.ask(store))?;
            ahead(store)
        })?;
        for typed in words {
            let is_prefix = prefixes.contains(&typed.term);
            let word = if is_prefix { beginning_so(&typed) } else { expanded.read(store, &typed, vocabulary)? };
            expanded.words.push(word);
        }
        expanded.meant = expanded.meant(text);
        if let Some((text, substitutions)) = parted {
            expanded.substitutions.extend(substitutions);
            if expanded.meant.is_empty() {
                expanded.meant.push(text);
            }
        }
        Ok(expanded)
    }

    /// The text to embed, with misspellings corrected, because a model cannot interpret them.
    pub(in crate::search) fn text<'t>(&'t self, asked: &'t str) -> &'t str {
        self.meant.first().map_or(asked, String::as_str)
    }

    /// Words of the text without any match, as they are written. Parts of a word, as in a compound or in a script
    /// without spaces, do not count.
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
        store: &dyn ReadStore,
        typed: &QueryWord,
        vocabulary: &dyn Fn(&dyn ReadStore) -> Result<&'v Vocabulary>,
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
        if typed.is_last {
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
                store
                    .prefetch(&mut || meant.iter().try_for_each(|meant| of_same_stem(store, meant, SLIP).map(drop)))?;
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

    /// In the n-th text each misspelling is replaced by its n-th correction, or the last one.
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

impl QueryWord {
    /// Asks for all that is known of the word, unless it is misspelled.
    fn ask(&self, store: &dyn ReadStore) -> Result<()> {
        let QueryTerm { text, matching } = &self.term;
        each_occurrence(store, text, *matching, &mut |_, _, _| true)?;
        if *matching == TermMatch::Prefix {
            return Ok(());
        }
        for text in self.compounds.iter().chain([text]) {
            store.words_with_stem(&stem(text))?;
            each_occurrence(store, text, TermMatch::Whole, &mut |_, _, _| true)?;
        }
        match self.is_last {
            true => each_occurrence(store, text, TermMatch::Prefix, &mut |_, _, _| true),
            false => Ok(()),
        }
    }
}

/// Calls `each` for the occurrences of a term until it returns `false`; for stop words, once for each field.
pub(super) fn each_occurrence(
    store: &dyn ReadStore,
    term: &str,
    matching: TermMatch,
    each: &mut dyn FnMut(&str, Holder, Field) -> bool,
) -> Result<()> {
    match matching == TermMatch::Whole && is_stop_word(term) {
        true => store.each_field(term, &mut |holder, field| _ = each(term, holder, field)),
        false => store.each_occurrence(term, matching, each),
    }
}

/// The text with each word like `retryCount` that no note has in parts, if notes have these, and the words and their
/// parts. `None`: there is no such word.
fn in_parts(store: &dyn ReadStore, text: &str) -> Result<Option<(String, Vec<Substitution>)>> {
    let mut names: Vec<(Range<usize>, String, Vec<String>)> = Vec::new();
    let mut terms = Terms::new();
    terms.each(text, |term, span| {
        let chars = || text[span.clone()].char_indices();
        let parts = chars().zip(chars().skip(1)).filter(|((_, a), (_, b))| a.is_lowercase() && b.is_uppercase());
        let mut ends: Vec<usize> = parts.map(|(_, (at, _))| span.start + at).collect();
        if !ends.is_empty() {
            ends.push(span.end);
            let starts = std::iter::once(span.start).chain(ends.clone());
            let parts = starts.zip(&ends).map(|(start, end)| text[start..*end].to_owned()).collect();
            names.push((span, term.to_owned(), parts));
        }
    });
    let mut parted = text.to_owned();
    let mut substitutions = Vec::new();
    for (span, term, parts) in names.into_iter().rev() {
        let mut is_parted =
            !store.is_in_a_note(&term, TermMatch::Prefix)? && store.words_with_stem(&stem(&term))?.is_empty();
        for part in parts.iter().flat_map(|part| terms.words(part)) {
            is_parted = is_parted && store.is_in_a_note(&part.text, part.matching)?;
        }
        if is_parted {
            parted.replace_range(span, &parts.join(" "));
            let read_as = parts.iter().flat_map(|part| terms.words(part)).map(|part| part.text).collect();
            substitutions.insert(0, Substitution { word: term, read_as });
        }
    }
    Ok((!substitutions.is_empty()).then_some((parted, substitutions)))
}

/// A word that was requested as a prefix.
fn beginning_so(typed: &QueryWord) -> ExpandedWord {
    let text = typed.term.text.clone();
    let form = WordForm { text, matching: TermMatch::Prefix, weight: 1.0, is_exact: true };
    ExpandedWord { count: typed.count, forms: vec![form], beginning: None }
}

/// The other words with the stem of a word, with this weight.
fn of_same_stem(store: &dyn ReadStore, word: &str, weight: f64) -> Result<impl Iterator<Item = WordForm>> {
    let words = store.words_with_stem(&stem(word))?;
    let others: Vec<String> = words.into_iter().filter(|other| other != word).collect();
    let weight = SAME_STEM * weight;
    Ok(others.into_iter().map(move |text| WordForm { text, matching: TermMatch::Whole, weight, is_exact: false }))
}

/// Whether a note has any form of the word. Words of the vocabulary may no longer be in a note.
fn is_in_a_note(store: &dyn ReadStore, word: &ExpandedWord) -> Result<bool> {
    for form in word.forms.iter().chain(&word.beginning) {
        if store.is_in_a_note(&form.text, form.matching)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The corrections of a word: the nearest words that a note has, and among equally near ones the most frequent.
fn nearest(store: &dyn ReadStore, vocabulary: &Vocabulary, word: &str) -> Result<Vec<String>> {
    let mut nearest = Vec::new();
    let mut distance = None;
    let all = vocabulary.near(word);
    store.prefetch(&mut || all.iter().try_for_each(|near| store.document_frequency(&near.word).map(drop)))?;
    for near in all {
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

/// The most frequent of the words that a note has.
fn most_frequent(store: &dyn ReadStore, words: Vec<String>) -> Result<Vec<String>> {
    let mut counted: Vec<(u64, String)> = Vec::with_capacity(words.len());
    store.prefetch(&mut || words.iter().try_for_each(|word| store.document_frequency(word).map(drop)))?;
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

/// The words to look up, each once, in the query's order: no stop words unless there are no others.
fn choose(store: &dyn ReadStore, text: &str) -> Result<Vec<QueryWord>> {
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
    // `retry_count` may also be written as `retryCount`, which is one term.
    let hyphenated = text.replace('_', "-");
    Terms::new().compounds(&hyphenated, |compound, span| compounds.push((compound.to_owned(), span)));
    for (compound, span) in compounds {
        for part in Terms::new().words(&text[span]) {
            if let Some(at) = known.get(&part)
                && !words[*at].compounds.contains(&compound)
            {
                words[*at].compounds.push(compound.clone());
            }
        }
    }
    // A word that is followed by another character is complete.
    if let Some(last) = last.filter(|_| text.ends_with(|c: char| c.is_alphanumeric() || is_combining_mark(c))) {
        words[last].is_last = words[last].term.text.chars().count() >= LEAST_LETTERS_OF_PREFIX;
    }
    if words.iter().any(|word| !is_stop_word(&word.term.text)) {
        words.retain(|word| !is_stop_word(&word.term.text));
    }
    if words.len() > MAX_WORDS {
        let mut counted = Vec::with_capacity(words.len());
        store
            .prefetch(&mut || words.iter().try_for_each(|word| store.document_frequency(&word.term.text).map(drop)))?;
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
