//! Evaluates typed names: whether the note is first, and near the top for a prefix or with a typo.
//!
//! A name is a note's file name or its title; both are used if they differ. All notes with the name are right. A prefix
//! has at least three letters. A typo is one letter inserted, left out, replaced or swapped with the next, in a word of
//! six letters or more, but not at its first letter. Typos that are another word of the vault are left out.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::Path;

use serde::Serialize;
use vault_index::{Grouping, VaultPath};

use super::{Indexed, Plan, Result};
use crate::median::median;
use crate::notes::notes_in;
use crate::random::Random;

/// The maximum numbers of names, of names whose prefixes are used, and of typos. They are chosen with a fixed seed.
const NAMES: usize = 2000;
const PREFIXED: usize = 250;
const SLIPS: usize = 1000;

const SEED: u64 = 14;

/// The number of results among which the note of a prefix must be.
const SHOWN: usize = 10;
/// The number of results among which the note of a typo must be.
const TOP: usize = 3;
/// The length of the shortest prefix in letters.
const LEAST_PREFIX: usize = 3;
/// The length of the shortest word with a typo in letters.
const LEAST_SLIP: usize = 6;

/// The report on a vault.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NamesReport {
    /// The name of its folder.
    pub vault: String,
    /// The model.
    pub model: String,
    /// The number of notes in it.
    pub notes: usize,
    /// The number of names.
    pub names: usize,
    /// The number of prefixes.
    pub prefixes: usize,
    /// The number of prefixes that at most ten notes match. With more, not every note can be among the first ten.
    pub short_lists: usize,
    /// The most that can be expected of any ranking: the share of prefixes whose note is among ten that are chosen at
    /// random from the notes that match.
    pub possible10: f64,
    /// The number of names with a typo.
    pub slips: usize,
    /// The results of each mode.
    pub modes: Vec<NamesMode>,
}

/// The results of one mode, as shares of the queries.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NamesMode {
    /// The mode.
    pub mode: String,
    /// The share of names whose note was first.
    pub first: f64,
    /// The share of prefixes whose note was among the first ten.
    pub prefix10: f64,
    /// The same share of the prefixes that at most ten notes match.
    pub short_list10: f64,
    /// The share of names with a typo whose note was among the first three.
    pub slip3: f64,
    /// The same share for these names without the typo.
    pub no_slip3: f64,
    /// The median and the maximum of milliseconds for a prefix.
    pub prefix_ms: (f64, f64),
    /// The names whose note was not first.
    pub missed: Vec<String>,
}

/// A name and the notes that have it.
struct Name {
    text: String,
    notes: BTreeSet<String>,
}

/// Indexes the vault, which is only read, into `index_file`, and searches for its notes by their names.
///
/// # Errors
/// If notes cannot be read, indexed or searched, or no note has a name with a letter.
pub fn find_names(vault_name: &str, vault: &Path, index_file: &Path, plan: &Plan) -> Result<NamesReport> {
    let indexed = Indexed::sync(vault, index_file, plan)?;
    let mut names = names_of(&indexed)?;
    let beginnings = Beginnings::of(&names);
    if names.is_empty() {
        return Err(format!("{vault_name}: no note has a name").into());
    }
    let mut random = Random(SEED);
    random.shuffle(&mut names);
    let words = words_of(vault, &names)?;
    let slips: Vec<(String, &Name)> =
        names.iter().filter_map(|name| Some((slip(&name.text, &words, &mut random)?, name))).collect();
    let slips = &slips[..SLIPS.min(plan.queries).min(slips.len())];
    let prefixed = &names[..PREFIXED.min(plan.queries).min(names.len())];
    let prefixes: Vec<(&str, &Name)> =
        prefixed.iter().flat_map(|name| prefixes(&name.text).map(move |prefix| (prefix, name))).collect();
    let asked = &names[..NAMES.min(plan.queries).min(names.len())];
    let beginning_so: Vec<usize> = prefixes.iter().map(|(prefix, _)| beginnings.count(prefix)).collect();
    let possible = prefixes.iter().zip(&beginning_so);
    let possible = possible.map(|((_, name), notes)| (SHOWN * name.notes.len()) as f64 / (*notes).max(1) as f64);
    let possible: f64 = possible.map(|share| share.min(1.0)).sum();
    let mut modes = Vec::new();
    for &mode in &plan.modes {
        indexed.warm_up(&asked[0].text, mode)?;
        let rank = |text: &str, name: &Name, limit: usize| -> Result<(Option<usize>, f64)> {
            let (hits, ms) = indexed.ask_timed(text, mode, Grouping::BestPassage, limit)?;
            Ok((hits.iter().position(|hit| name.notes.contains(hit.path.as_str())), ms))
        };
        let mut missed = Vec::new();
        for name in asked {
            if rank(&name.text, name, 1)?.0.is_none() {
                missed.push(name.text.clone());
            }
        }
        let (mut found, mut times) = (Vec::new(), Vec::new());
        for (prefix, name) in &prefixes {
            let (at, ms) = rank(prefix, name, SHOWN)?;
            found.push(at.is_some());
            times.push(ms);
        }
        let in_short: Vec<bool> =
            found.iter().zip(&beginning_so).filter(|(_, notes)| **notes <= SHOWN).map(|(f, _)| *f).collect();
        let (mut with, mut without) = (Vec::new(), Vec::new());
        for (text, name) in slips {
            with.push(rank(text, name, TOP)?.0.is_some());
            without.push(rank(&name.text, name, TOP)?.0.is_some());
        }
        modes.push(NamesMode {
            mode: mode.name().to_owned(),
            first: 1.0 - missed.len() as f64 / asked.len() as f64,
            prefix10: share(&found),
            short_list10: share(&in_short),
            slip3: share(&with),
            no_slip3: share(&without),
            prefix_ms: (median(&times), times.iter().copied().fold(0.0, f64::max)),
            missed,
        });
    }
    Ok(NamesReport {
        vault: vault_name.to_owned(),
        notes: indexed.notes,
        names: asked.len(),
        prefixes: prefixes.len(),
        short_lists: beginning_so.iter().filter(|notes| **notes <= SHOWN).count(),
        possible10: possible / prefixes.len().max(1) as f64,
        slips: slips.len(),
        model: indexed.model,
        modes,
    })
}

/// Returns the share of values that are true; 1 without values.
fn share(found: &[bool]) -> f64 {
    if found.is_empty() { 1.0 } else { found.iter().filter(|found| **found).count() as f64 / found.len() as f64 }
}

/// Removes duplicate names, ignoring case, punctuation and spaces. Keeps the first spelling.
fn names_of(indexed: &Indexed) -> Result<Vec<Name>> {
    let mut names: BTreeMap<String, Name> = BTreeMap::new();
    for note in indexed.index.notes()? {
        let Some(path) = VaultPath::new(&note.path) else { continue };
        for text in [path.stem(), note.title.as_str()] {
            let folded = folded(text);
            if !folded.is_empty() {
                let new = || Name { text: text.to_owned(), notes: BTreeSet::new() };
                names.entry(folded).or_insert_with(new).notes.insert(note.path.clone());
            }
        }
    }
    Ok(names.into_values().collect())
}

/// Folds a text: only letters and digits, in lower case.
fn folded(text: &str) -> String {
    text.to_lowercase().chars().filter(|c| c.is_alphanumeric()).collect()
}

/// The number of notes that have a name with a given prefix.
struct Beginnings(Vec<(String, Vec<String>)>);

impl Beginnings {
    fn of(names: &[Name]) -> Self {
        let mut all: Vec<_> =
            names.iter().map(|name| (folded(&name.text), name.notes.iter().cloned().collect())).collect();
        all.sort_unstable();
        Self(all)
    }

    fn count(&self, prefix: &str) -> usize {
        let prefix = folded(prefix);
        let first = self.0.partition_point(|(name, _)| *name < prefix);
        let with = self.0[first..].iter().take_while(|(name, _)| name.starts_with(&prefix));
        let notes: HashSet<&String> = with.flat_map(|(_, notes)| notes).collect();
        notes.len()
    }
}

/// Returns all prefixes of a name, from three letters up to the whole name.
fn prefixes(name: &str) -> impl Iterator<Item = &str> {
    let ends = name.char_indices().map(|(at, c)| (at + c.len_utf8(), c));
    ends.skip(LEAST_PREFIX - 1).filter(|(_, c)| c.is_alphanumeric()).map(|(end, _)| &name[..end])
}

/// Returns all words of the vault's notes and their names, in lower case.
fn words_of(vault: &Path, names: &[Name]) -> Result<HashSet<String>> {
    let mut words = HashSet::new();
    let mut add = |text: &str| {
        let text = text.to_lowercase();
        let new = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        words.extend(new.map(str::to_owned));
    };
    for note in notes_in(vault)? {
        add(&String::from_utf8_lossy(&fs::read(&note)?));
    }
    names.iter().for_each(|name| add(&name.text));
    Ok(words)
}

/// Returns the name with one typo. `None` if it has no word that is long enough, or the typo is a word of the vault.
fn slip(name: &str, words: &HashSet<String>, random: &mut Random) -> Option<String> {
    let is_letter = |c: char| c.is_alphanumeric();
    let mut places = Vec::new();
    let mut start = 0;
    for part in name.split_inclusive(|c: char| !is_letter(c)) {
        let word = part.trim_end_matches(|c: char| !is_letter(c));
        if word.chars().count() >= LEAST_SLIP && word.chars().all(char::is_alphabetic) {
            places.push(start..start + word.len());
        }
        start += part.len();
    }
    let place = places.get(random.below(places.len()))?.clone();
    let mut letters: Vec<char> = name[place.clone()].chars().collect();
    let letter = char::from(b'a' + random.below(26) as u8);
    let at = 1 + random.below(letters.len() - 1);
    match random.below(4) {
        0 => letters.insert(at, letter),
        1 => drop(letters.remove(at)),
        2 => letters[at] = letter,
        _ => {
            let at = at.min(letters.len() - 2);
            letters.swap(at, at + 1);
        }
    }
    let word: String = letters.into_iter().collect();
    let is_new = !words.contains(&word.to_lowercase());
    is_new.then(|| format!("{}{word}{}", &name[..place.start], &name[place.end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_has_three_letters_or_more_and_ends_with_one() {
        assert_eq!(prefixes("Ab cd").collect::<Vec<_>>(), ["Ab c", "Ab cd"]);
        assert_eq!(prefixes("Über").collect::<Vec<_>>(), ["Übe", "Über"]);
        assert!(prefixes("ab").next().is_none());
    }

    #[test]
    fn a_slip_is_one_edit_behind_the_first_letter_of_a_long_word() {
        let words = HashSet::from(["garden".to_owned()]);
        let mut random = Random(1);
        let mut seen = HashSet::new();
        for _ in 0..200 {
            let Some(slipped) = slip("My garden, so", &words, &mut random) else { continue };
            assert!(
                slipped.starts_with("My g") && slipped.ends_with(", so") && slipped != "My garden, so",
                "{slipped}"
            );
            assert!((12..=14).contains(&slipped.len()), "{slipped}");
            seen.insert(slipped);
        }
        assert!(seen.len() > 50);
        assert_eq!(slip("short words", &words, &mut random), None);
    }

    #[test]
    fn beginnings_are_counted_by_note() {
        let name = |text: &str, notes: &[&str]| Name {
            text: text.into(),
            notes: notes.iter().map(|note| (*note).to_owned()).collect(),
        };
        let names = [name("Apple", &["a", "b"]), name("Apple tree", &["b"]), name("Bee", &["c"])];
        let beginnings = Beginnings::of(&names);
        assert_eq!(["app", "Apple-T", "b", "x"].map(|prefix| beginnings.count(prefix)), [2, 1, 1, 0]);
    }
}
