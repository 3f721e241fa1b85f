//! Ranking by words: BM25 over the fields of passages and of their notes, as a share of the best possible score.
//!
//! A word of the query stands for some forms, each with a weight (`query_expansion.rs`). A passage's score is the sum
//! over the words of `q · idf · f·(k1 + 1) / (f + k1·(1 - b + b·length/average))`. Here `q` is the number of
//! occurrences of the word in the query; `f` is the number of occurrences of the forms in each field, times the weights
//! of the field and the form; `length` is the number of terms of the text; and `idf = ln(1 + (N - n + ½) / (n + ½))` if
//! `n` of `N` passages contain one of the forms (Okapi BM25 as in Lucene, whose idf is never below 0; k1 = .9 and b =
//! .4 as in Anserini). A fixed share of each word's score is that of the exact word alone, so that it outranks other
//! words of its stem. The score is at most `(k1 + 1) · Σ q·idf`; the lexical score is the share of this maximum: 0 to
//! 1, independent of other matches and filters.
//!
//! A passage that many notes repeat gets half, except for the score of the fields of its note alone
//! (`repeated_passages.rs`).
//!
//! Stop words, which are looked up only if the query has no other words, count once in each field, because
//! reading each of their many occurrences would take too long, and their number says nothing.
//!
//! SQLite only stores the positions of the terms: its own `bm25()` has a fixed k1 and b, looks up the length of every
//! passage, and scores a word that is in more than half of the passages as 0.

use std::collections::{HashMap, HashSet};

use crate::error::Result;
use crate::path::FileId;
use crate::search::note_passages::NotePassages;
use crate::search::rank::query_expansion::{ExpandedQuery, WordForm, each_occurrence};
use crate::search::repeated_passages::REPEATED;
use crate::store::{FIELD_COUNT, Field, Holder, PassageRow, ReadStore};
use crate::terms::{HYPHENATED, Terms};

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

/// The share of the exact word in the score of a word.
const EXACT: f64 = 0.1;

const K1: f64 = 0.9;

const B: f64 = 0.4;

/// If the last word of the query itself exists, words that begin with it are looked up only up to this number of
/// occurrences: a part of a word says little then, and each occurrence costs a third of a microsecond.
const MAX_PLACES: usize = 30_000;

/// The word scores of every passage for a query.
#[derive(Clone)]
pub(in crate::search) struct WordScores {
    /// By position in the snapshot; empty when nothing matches.
    scores: Vec<f32>,
    /// In the query's order; the terms of one word are adjacent.
    found: Vec<FoundTerm>,
    /// The number of words that were looked up.
    words: usize,
    /// The least total scores of passages, by position, ascending.
    least: Vec<(u32, f32)>,
    /// By id: the notes whose names together contain a form of each word.
    in_names: Vec<FileId>,
    /// By id: the notes whose names and folders together contain a form of each word.
    in_paths: Vec<FileId>,
}

/// A term that the query stands for, and the passages that contain it, by position, ascending.
#[derive(Clone)]
struct FoundTerm {
    /// The index of its word in the query.
    word: usize,
    term: String,
    holders: Vec<u32>,
    /// Whether a note has it in a name.
    in_name: bool,
}

impl FoundTerm {
    /// The term as it is written, without hyphens.
    fn shown(&self) -> &str {
        self.term.strip_prefix(HYPHENATED).unwrap_or(&self.term)
    }
}

/// Counts terms in passages.
struct Counter<'a> {
    store: &'a dyn ReadStore,
    passages: &'a [PassageRow],
    of_notes: &'a NotePassages,
    average_length: f64,
    sums: Vec<f64>,
    found: Vec<FoundTerm>,
    /// The index of the word that is looked up.
    word: usize,
    /// Whether passages are searched, not only the fields of notes.
    in_passages: bool,
    /// For this word: the notes that have a form of it in a name; its weighted forms in each passage; and the passages
    /// that have any, each once.
    named: Vec<FileId>,
    /// The notes that have a form of it in a folder's name.
    in_folders: Vec<FileId>,
    counts: Vec<f64>,
    /// For passages that many notes repeat, the part of the count from the fields of their notes.
    note_counts: HashMap<u32, f64>,
    holders: Vec<u32>,
}

impl WordScores {
    pub(in crate::search) fn none() -> Self {
        Self {
            scores: Vec::new(),
            found: Vec::new(),
            words: 0,
            least: Vec::new(),
            in_names: Vec::new(),
            in_paths: Vec::new(),
        }
    }

    /// Stands for the scores of a text before its words are looked up: as if each were in one passage and in a name.
    pub(in crate::search) fn guess(text: &str) -> Self {
        let terms = Terms::new().words(text).into_iter().map(|term| term.text);
        let found = |(word, term)| FoundTerm { word, term, holders: vec![0], in_name: true };
        Self { found: terms.enumerate().map(found).collect(), ..Self::none() }
    }

    /// Whether no word matches.
    pub(super) fn is_none(&self) -> bool {
        self.scores.is_empty()
    }

    /// Creates the scores from given ones, by position.
    #[cfg(test)]
    pub(super) fn of_scores(scores: Vec<f32>) -> Self {
        Self { scores, ..Self::none() }
    }

    /// Looks the words up. Without `in_passages`, only the notes' own fields are searched, which tell the matches in
    /// names.
    pub(in crate::search) fn run(
        store: &dyn ReadStore,
        passages: &[PassageRow],
        of_notes: &NotePassages,
        expanded: &ExpandedQuery,
        in_passages: bool,
    ) -> Result<Self> {
        // Looking up names only does not need the passages.
        let counted = if in_passages { passages } else { &[] };
        let total: f64 = counted.iter().map(|p| f64::from(p.length)).sum();
        let mut counter = Counter {
            store,
            passages,
            of_notes,
            average_length: (total / counted.len().max(1) as f64).max(1.0),
            sums: vec![0.0; counted.len()],
            found: Vec::new(),
            word: 0,
            named: Vec::new(),
            in_folders: Vec::new(),
            in_passages,
            counts: vec![0.0; counted.len()],
            note_counts: HashMap::new(),
            holders: Vec::new(),
        };
        let mut ideal = 0.0;
        let (mut in_names, mut in_paths): (Vec<FileId>, Vec<FileId>) = Default::default();
        for word in &expanded.words {
            let (exact, others): (Vec<&WordForm>, Vec<&WordForm>) = word.forms.iter().partition(|form| form.is_exact);
            exact.into_iter().try_for_each(|form| counter.look_up(form))?;
            let share = if counter.holders.is_empty() { 0.0 } else { EXACT };
            ideal += counter.add(word.count * share, counter.idf());
            others.into_iter().try_for_each(|form| counter.look_up(form))?;
            let mut idf = counter.idf();
            if let Some(beginning) = &word.beginning {
                let is_alone = counter.found.last().is_none_or(|found| found.word != counter.word);
                let others = |term: &str| word.forms.iter().all(|form| form.text != term);
                counter.look_up_others(beginning, if is_alone { usize::MAX } else { MAX_PLACES }, others)?;
                if is_alone {
                    idf = counter.idf();
                }
            }
            ideal += counter.add(word.count * (1.0 - share), idf);
            let (named, in_path) = counter.end_word();
            match counter.word {
                1 => (in_names, in_paths) = (named, in_path),
                _ => {
                    in_names.retain(|note| named.binary_search(note).is_ok());
                    in_paths.retain(|note| in_path.binary_search(note).is_ok());
                }
            }
            if !in_passages && in_paths.is_empty() {
                break;
            }
        }
        let words = expanded.words.len();
        let scores = match in_passages && words > 0 {
            true => counter.sums.iter().map(|sum| (sum / ideal).clamp(0.0, 1.0) as f32).collect(),
            false => Vec::new(),
        };
        Ok(Self { scores, found: counter.found, words, least: Vec::new(), in_names, in_paths })
    }

    /// Whether some note has a term of the query in a name.
    pub(super) fn is_in_a_name(&self, term: &str) -> bool {
        self.found.iter().any(|found| found.in_name && found.term == term)
    }

    /// The inverse document frequency of a term of the query. `None` if no passage has it, or it was not looked up.
    pub(super) fn idf_of(&self, term: &str, passages: usize) -> Option<f64> {
        let holders = self.found.iter().find(|found| found.term == term)?.holders.len();
        Some(idf(passages, holders))
    }

    /// Adds to a passage's score a share of its distance from 1.
    pub(super) fn raise(&mut self, position: usize, share: f32) {
        if let Some(score) = self.scores.get_mut(position) {
            *score += share * (1.0 - *score);
        }
    }

    /// Sets the least score of a passage, independent of its meaning: a share of what words alone would give. If it has
    /// one, the higher one counts. Fast if positions ascend.
    pub(super) fn raise_least(&mut self, position: u32, share: f32) {
        let least = share * self.score(position as usize);
        match self.least.binary_search_by_key(&position, |(position, _)| *position) {
            Ok(at) => self.least[at].1 = self.least[at].1.max(least),
            Err(at) => self.least.insert(at, (position, least)),
        }
    }

    /// Whether any passage has a least score.
    pub(super) fn has_least(&self) -> bool {
        !self.least.is_empty()
    }

    /// The least score of a passage, as a share of the best possible one by words.
    pub(super) fn least(&self, position: usize) -> f32 {
        let at = self.least.binary_search_by_key(&(position as u32), |(position, _)| *position);
        at.map_or(0.0, |at| self.least[at].1)
    }

    /// The score; 0 if no word matches.
    #[inline]
    pub(in crate::search) fn score(&self, position: usize) -> f32 {
        self.scores.get(position).copied().unwrap_or(0.0)
    }

    /// By id: the notes whose names (title, file name, aliases) together contain all words, each in any of its forms.
    pub(super) fn in_names(&self) -> &[FileId] {
        &self.in_names
    }

    /// By id: the notes whose names and folders together contain all words, each in any of its forms; they include
    /// those of [`Self::in_names`].
    pub(super) fn in_paths(&self) -> &[FileId] {
        &self.in_paths
    }

    /// A measure of how much of a name the words cover. `typed` are the terms in the query.
    pub(super) fn coverage<'a>(&'a self, typed: &'a HashSet<String>) -> Coverage<'a> {
        let mut words_of: HashMap<&str, Vec<usize>> = HashMap::new();
        self.found.iter().for_each(|found| words_of.entry(found.shown()).or_default().push(found.word));
        Coverage { words_of, typed, held: vec![false; self.words] }
    }

    /// The terms of the query that a passage or its note contains, in the query's order.
    pub(in crate::search) fn terms_of(&self, position: usize) -> Vec<String> {
        let holds = |found: &&FoundTerm| found.holders.binary_search(&(position as u32)).is_ok();
        let mut terms: Vec<String> = Vec::new();
        for found in self.found.iter().filter(holds).map(FoundTerm::shown) {
            if !terms.iter().any(|term| term == found) {
                terms.push(found.to_owned());
            }
        }
        terms
    }
}

/// Measures how much of a name the words of a query cover.
pub(super) struct Coverage<'a> {
    /// The words, by the terms that they stand for.
    words_of: HashMap<&'a str, Vec<usize>>,
    typed: &'a HashSet<String>,
    held: Vec<bool>,
}

impl Coverage<'_> {
    /// Returns 0 to 1: a term of the query counts by its length, another form of one of its words by half of its
    /// length. `None` unless the name contains all words, each in any of its forms.
    pub(in crate::search) fn of(&mut self, terms: &mut Terms, name: &str) -> Option<f32> {
        self.held.fill(false);
        let (mut covered, mut length) = (0.0, 0.0);
        terms.each(name, |term, _| {
            let words = self.words_of.get(term);
            words.into_iter().flatten().for_each(|word| self.held[*word] = true);
            let other_form = if words.is_some() { 0.5 } else { 0.0 };
            let share = if self.typed.contains(term) { 1.0 } else { other_form };
            covered += share * term.len() as f32;
            length += term.len() as f32;
        });
        terms.compounds(name, |compound, _| {
            let words = self.words_of.get(compound);
            words.into_iter().flatten().for_each(|word| self.held[*word] = true);
            covered += if words.is_some() { compound.len() as f32 } else { 0.0 };
        });
        (!self.held.is_empty() && self.held.iter().all(|held| *held)).then(|| (covered / length).min(1.0))
    }
}

impl Counter<'_> {
    /// Counts all occurrences of a form.
    fn look_up(&mut self, form: &WordForm) -> Result<()> {
        self.look_up_others(form, usize::MAX, |_| true)
    }

    /// Counts the terms of a form that are `wanted`; nothing if the form has more than `most` occurrences in all.
    fn look_up_others(&mut self, form: &WordForm, most: usize, wanted: impl Fn(&str) -> bool) -> Result<()> {
        let mut places: Vec<(u32, f64, bool)> = Vec::new();
        let mut found: Vec<FoundTerm> = Vec::new();
        let (mut named, mut in_folders): (Vec<FileId>, Vec<FileId>) = Default::default();
        let mut number = 0;
        let mut at = 0;
        let mut count = |term: &str, holder, field| {
            let held = match holder {
                Holder::Note(note) if self.in_passages => self.of_notes.of(note),
                Holder::Note(_) => 0..0,
                Holder::Passage(_) if !self.in_passages => return false,
                Holder::Passage(id) => match self.position(id, at) {
                    Some(position) => {
                        at = position;
                        position..position + 1
                    }
                    // Removed.
                    None => return true,
                },
            };
            number += 1;
            if !wanted(term) {
                return number <= most;
            }
            match (holder, field) {
                (Holder::Note(note), Field::Title | Field::Aliases) => named.push(note),
                (Holder::Note(note), Field::Path) => in_folders.push(note),
                _ => {}
            }
            if found.last().is_none_or(|found| found.term != term) {
                found.push(FoundTerm { word: self.word, term: term.to_owned(), holders: Vec::new(), in_name: false });
            }
            let found = found.last_mut().expect("one was pushed");
            found.in_name |= matches!(field, Field::Title | Field::Aliases);
            let holders = &mut found.holders;
            for position in held {
                places.push((position, FIELDS[field as usize] * form.weight, matches!(holder, Holder::Note(_))));
                if holders.last() != Some(&position) {
                    holders.push(position);
                }
            }
            number <= most
        };
        each_occurrence(self.store, &form.text, form.matching, &mut count)?;
        if number > most {
            return Ok(());
        }
        self.named.append(&mut named);
        self.in_folders.append(&mut in_folders);
        for (position, weight, is_of_note) in places {
            let count = &mut self.counts[position as usize];
            if *count == 0.0 {
                self.holders.push(position);
            }
            *count += weight;
            if is_of_note && self.passages[position as usize].is_repeated() {
                *self.note_counts.entry(position).or_default() += weight;
            }
        }
        // The terms of notes came before those of passages.
        found.sort_by(|a, b| a.term.cmp(&b.term));
        found.dedup_by(|b, a| {
            let is_same = a.term == b.term;
            if is_same {
                a.holders.append(&mut b.holders);
                a.in_name |= b.in_name;
            }
            is_same
        });
        for found in &mut found {
            found.holders.sort_unstable();
            found.holders.dedup();
        }
        self.found.append(&mut found);
        Ok(())
    }

    /// The position of a passage, guessed from that of the previous one: ids ascend, mostly without gaps.
    fn position(&self, id: i64, before: u32) -> Option<u32> {
        let first = self.passages.get(before as usize)?.id;
        // A damaged index can contain any number.
        let gap = id.checked_sub(first).and_then(|gap| usize::try_from(gap).ok()).unwrap_or(0);
        let guess = (before as usize).saturating_add(gap);
        match self.passages.get(guess).is_some_and(|passage| passage.id == id) {
            true => Some(guess as u32),
            false => self.passages.binary_search_by_key(&id, |p| p.id).ok().map(|at| at as u32),
        }
    }

    /// The inverse document frequency of the word, by the passages counted so far.
    fn idf(&self) -> f64 {
        idf(self.passages.len(), self.holders.len())
    }

    /// Adds to the score of each passage from the counts so far. Returns the maximum of the added score.
    fn add(&mut self, weight: f64, idf: f64) -> f64 {
        let best = weight * idf * (K1 + 1.0);
        for at in self.holders.iter().map(|at| *at as usize) {
            let passage = &self.passages[at];
            let length = f64::from(passage.length) / self.average_length;
            let share = |count: f64| count / (count + K1 * (1.0 - B + B * length));
            self.sums[at] += best
                * match passage.is_repeated() {
                    false => share(self.counts[at]),
                    true => {
                        let of_note = share(self.note_counts.get(&(at as u32)).copied().unwrap_or(0.0));
                        of_note + f64::from(REPEATED) * (share(self.counts[at]) - of_note)
                    }
                };
        }
        best
    }

    /// Returns the notes that have the word in a name, and those that have it in a name or a folder, by id.
    fn end_word(&mut self) -> (Vec<FileId>, Vec<FileId>) {
        self.holders.drain(..).for_each(|at| self.counts[at as usize] = 0.0);
        self.note_counts.clear();
        self.word += 1;
        let sorted = |mut notes: Vec<FileId>| {
            notes.sort_unstable();
            notes.dedup();
            notes
        };
        let named = std::mem::take(&mut self.named);
        let in_folders = std::mem::take(&mut self.in_folders);
        (sorted(named.clone()), sorted([named, in_folders].concat()))
    }
}

pub(super) fn idf(passages: usize, holders: usize) -> f64 {
    let (all, holding) = (passages as f64, holders as f64);
    (1.0 + (all - holding + 0.5) / (holding + 0.5)).ln()
}
