//! Evaluates adjacent words: whether the note with a phrase or an identifier, typed without quotes, is found first.
//!
//! A phrase is three to five adjacent words in a line of prose of exactly one note, at least two of which are not stop
//! words. An identifier is a run without spaces that punctuation joins (`max_retry_count`, `https://example.org/a`,
//! `2024-05-01`), in at most two notes. Both are chosen with a fixed seed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde::Serialize;
use vault_index::Grouping;

use super::{Indexed, Plan, Result};
use crate::notes::notes_in;
use crate::random::Random;

/// The maximum numbers of phrases and of identifiers.
const PHRASES: usize = 500;
const IDENTIFIERS: usize = 500;

const SEED: u64 = 28;

/// The maximum number of attempts to find a phrase.
const DRAWS: usize = 100;

/// The maximum number of notes with an identifier. In more notes, it would identify none of them.
const MAX_NOTES: usize = 2;

/// The length of the shortest identifier in bytes.
const LEAST_IDENTIFIER: usize = 6;

const STOP_WORDS: &str = "a about all an and any are as at be been but by can could do does for from had has have he how \
    i if in into is it its me more my no not of on or our out she should so some such than that the their them then there \
    these they this to up was we were what when where which who will with would you your";

/// The report on a vault.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PhrasesReport {
    /// The name of its folder.
    pub vault: String,
    /// The model.
    pub model: String,
    /// The number of notes in it.
    pub notes: usize,
    /// The number of phrases.
    pub phrases: usize,
    /// The number of identifiers.
    pub identifiers: usize,
    /// The results of each mode.
    pub modes: Vec<PhrasesMode>,
}

/// The results of one mode, as shares of the queries.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PhrasesMode {
    /// The mode.
    pub mode: String,
    /// The share of phrases whose note was first.
    pub phrase_first: f64,
    /// The share of identifiers for which one of its notes was first.
    pub identifier_first: f64,
    /// The queries whose note was not first.
    pub missed: Vec<String>,
}

/// A text and the notes that have it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Asked {
    text: String,
    notes: BTreeSet<String>,
}

/// Indexes the vault, which is only read, into `index_file`, and searches for its phrases and identifiers.
///
/// # Errors
/// If notes cannot be read, indexed or searched, or there is no phrase and no identifier.
pub fn find_phrases(vault_name: &str, vault: &Path, index_file: &Path, plan: &Plan) -> Result<PhrasesReport> {
    let indexed = Indexed::sync(vault, index_file, plan)?;
    let mut texts = BTreeMap::new();
    for note in notes_in(vault)? {
        let path = note.strip_prefix(vault).unwrap_or(&note).to_string_lossy().replace('\\', "/");
        texts.insert(path, String::from_utf8_lossy(&fs::read(&note)?).into_owned());
    }
    let mut random = Random(SEED);
    let mut phrases = phrases(&texts, PHRASES.min(plan.queries), &mut random);
    let mut identifiers = identifiers(&texts);
    random.shuffle(&mut identifiers);
    identifiers.truncate(IDENTIFIERS.min(plan.queries));
    phrases.sort();
    let first = phrases.iter().chain(&identifiers).next();
    let first = first.ok_or_else(|| format!("{vault_name}: no note has a phrase of its own"))?.text.clone();
    let mut modes = Vec::new();
    for &mode in &plan.modes {
        indexed.warm_up(&first, mode)?;
        let mut missed = Vec::new();
        let mut share_first = |asked: &[Asked]| -> Result<f64> {
            let before = missed.len();
            for Asked { text, notes } in asked {
                let hits = indexed.ask(text, mode, Grouping::BestPassage, 1)?;
                if !hits.first().is_some_and(|hit| notes.contains(hit.path.as_str())) {
                    missed.push(text.clone());
                }
            }
            Ok(1.0 - (missed.len() - before) as f64 / asked.len().max(1) as f64)
        };
        let (phrase_first, identifier_first) = (share_first(&phrases)?, share_first(&identifiers)?);
        modes.push(PhrasesMode { mode: mode.name().to_owned(), phrase_first, identifier_first, missed });
    }
    let (phrases, identifiers) = (phrases.len(), identifiers.len());
    Ok(PhrasesReport {
        vault: vault_name.to_owned(),
        notes: indexed.notes,
        model: indexed.model,
        phrases,
        identifiers,
        modes,
    })
}

/// Returns the words of a note and of its path.
fn all_words(path: &str, text: &str) -> String {
    folded(path) + &folded(text)
}

/// Folds a text: words in lower case, with a space before and after each.
fn folded(text: &str) -> String {
    let mut folded = String::from(" ");
    for word in words(text) {
        folded.push_str(&word.to_lowercase());
        folded.push(' ');
    }
    folded
}

/// Returns runs of letters and digits, and apostrophes between them.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_alphanumeric() && !matches!(c, '\'' | '\u{2019}'));
    words.map(|word| word.trim_matches(['\'', '\u{2019}'])).filter(|word| !word.is_empty())
}

/// Returns phrases, each of which is in one note.
fn phrases(texts: &BTreeMap<String, String>, most: usize, random: &mut Random) -> Vec<Asked> {
    let stop_words: BTreeSet<&str> = STOP_WORDS.split_whitespace().collect();
    let all: Vec<String> = texts.iter().map(|(path, text)| all_words(path, text)).collect();
    // Only lines of prose, because a person would not type markup.
    let is_prose =
        |line: &&str| line.split_whitespace().count() >= 6 && !line.contains(['[', ']', '<', '>', '|', '`', '$']);
    let lines: Vec<(&String, &str)> =
        texts.iter().flat_map(|(path, text)| text.lines().filter(is_prose).map(move |line| (path, line))).collect();
    let mut phrases: BTreeMap<String, Asked> = BTreeMap::new();
    for _ in 0..most * DRAWS {
        if phrases.len() >= most || lines.is_empty() {
            break;
        }
        let (path, line) = lines[random.below(lines.len())];
        let words: Vec<&str> = words(line).collect();
        let length = 3 + random.below(3);
        let Some(places) = words.len().checked_sub(length) else { continue };
        let start = random.below(places + 1);
        let phrase = &words[start..start + length];
        let telling = phrase.iter().filter(|word| !stop_words.contains(word.to_lowercase().as_str())).count();
        let text = phrase.join(" ");
        let key = folded(&text);
        if telling >= 2 && all.iter().filter(|all| all.contains(&key)).count() == 1 {
            phrases.entry(key).or_insert_with(|| Asked { text, notes: [path.clone()].into() });
        }
    }
    phrases.into_values().collect()
}

/// Returns identifiers, each of which is in a few notes.
fn identifiers(texts: &BTreeMap<String, String>) -> Vec<Asked> {
    let mut notes: BTreeMap<&str, BTreeSet<&String>> = BTreeMap::new();
    for (path, text) in texts {
        let parts = text.split(|c: char| c.is_whitespace() || "()[]{}<>\"'`|,;*=!?…".contains(c));
        for part in parts {
            let part = part.trim_matches(|c: char| !c.is_alphanumeric());
            let is_joined = words(part).count() >= 2 && part.len() >= LEAST_IDENTIFIER;
            if is_joined {
                notes.entry(part).or_default().insert(path);
            }
        }
    }
    let few = notes.into_iter().filter(|(_, notes)| notes.len() <= MAX_NOTES);
    // Leave out an identifier that is part of a longer one in other notes.
    let all: BTreeMap<&String, String> = texts.iter().map(|(path, text)| (path, all_words(path, text))).collect();
    few.filter_map(|(text, _)| {
        let key = folded(text);
        let with: BTreeSet<String> =
            all.iter().filter(|(_, text)| text.contains(&key)).map(|(path, _)| (*path).clone()).collect();
        (with.len() <= MAX_NOTES).then(|| Asked { text: text.to_owned(), notes: with })
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vault() -> BTreeMap<String, String> {
        let notes = [
            ("a.md", "The heron waits in the reeds near the old mill.\n\nSee `max_retry_count` and https://x.org/a.\n"),
            ("b.md", "The heron waits in the reeds near the new bridge; max_retry_count of std::copy_if.\n"),
            ("c.md", "# Short\n\n| a | table of many words is no prose |\nSee https://x.org/a, https://x.org/a-b.\n"),
        ];
        notes.into_iter().map(|(path, text)| (path.to_owned(), text.to_owned())).collect()
    }

    #[test]
    fn phrases_are_of_one_note_and_have_two_words_that_tell() {
        let phrases = phrases(&vault(), 40, &mut Random(1));
        assert!(phrases.len() > 5, "{phrases:?}");
        for Asked { text, notes } in &phrases {
            let words = text.split(' ').count();
            assert!((3..=5).contains(&words) && notes.len() == 1 && !text.contains('|'), "{text}");
            assert!(!"the heron waits in the reeds near the".contains(&text.to_lowercase()), "{text} is in two notes");
        }
    }

    #[test]
    fn identifiers_are_joined_and_of_few_notes() {
        let found = identifiers(&vault());
        let shown: Vec<(&str, usize)> = found.iter().map(|asked| (asked.text.as_str(), asked.notes.len())).collect();
        assert_eq!(
            shown,
            [("https://x.org/a", 2), ("https://x.org/a-b", 1), ("max_retry_count", 2), ("std::copy_if", 1)]
        );
    }
}
