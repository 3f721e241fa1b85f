//! Notes whose name equals or nearly equals the query, and their scores.
//!
//! A name is a title, a file's name or an alias; `terms/name_key.rs` describes how names are folded.
//!
//! | the query | score |
//! | --- | --- |
//! | equals a name, folded | above .9: the same spelling first, then the nearest to the vault's root, then names of files |
//! | is the start of a name, or has all its words in one name, or in a whole name and its folders | .8 to .9, by the share of the name (and the folders) that it covers |
//! | does not match a name | 0 to .8, the ordinary score |
//!
//! Within each band, the ordinary score decides between equals. All scores increase with it, so its bounds give their
//! bounds.
//!
//! If no note contains the last word of a query, the query is still being typed, or has a typo. Then names that begin
//! with the query, or with a corrected query, get the upper half of their band, and names that contain its words
//! elsewhere the lower half. A query of whole words does not say where they are in a name.
//!
//! An identifier such as `__device__` is near only to names that contain it with its underscores.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use unicode_normalization::UnicodeNormalization;

use crate::error::Result;
use crate::path::FileId;
use crate::search::hit::NameMatch;
use crate::search::note_passages::NotePassages;
use crate::search::rank::bm25::WordScores;
use crate::search::rank::underscores::{contains, identifiers};
use crate::store::{Name, NoteMeta, ReadStore};
use crate::terms::{TermMatch, Terms, is_stop_word, name_key};

/// The best score without a name match.
pub(super) const ORDINARY: f32 = 0.8;

/// The border between the halves of the scores of near matches.
const MIDDLE: f32 = 0.85;

/// The best score of a near match.
const NEARLY: f32 = 0.9;

/// The number of names starting with the query that are considered, the shortest first.
const MAX_BEGINNING: usize = 2000;

/// The number of notes with a query word in their folders that are considered.
const MAX_IN_FOLDERS: usize = 2000;

/// The match of the names of a note.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::search) enum Band {
    /// The name equals the query.
    Equal { spelling: Spelling, folders: u16, is_file_name: bool },
    /// It starts with the query or contains its words, which cover this share of it, 0 to 1.
    Nearly { how: NameMatch, coverage: f32, half: Option<BandHalf> },
}

/// A half of the scores of near matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::search) enum BandHalf {
    Lower,
    Upper,
}

/// The spelling of a name that equals the query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::search) enum Spelling {
    /// Equal only after folding.
    Folded,
    /// Equal except for case.
    OtherCase,
    Same,
}

impl Band {
    /// The score of a passage with this ordinary score. Increases with it.
    pub(in crate::search) fn score(self, ordinary: f32) -> f32 {
        match self {
            // A step of a third for each spelling; within it one for each folder, with names of files in the first
            // half; within those the score.
            Self::Equal { spelling, folders, is_file_name } => {
                let depth = f32::from(folders) + if is_file_name { 0.5 } else { 1.0 } - 0.5 * ordinary;
                let steps = f32::from(spelling as u8) + 1.0 / (1.0 + depth);
                NEARLY + (1.0 - NEARLY) / 3.0 * steps
            }
            Self::Nearly { coverage, half, .. } => {
                let (least, most) = match half {
                    None => (ORDINARY, NEARLY),
                    Some(BandHalf::Lower) => (ORDINARY, MIDDLE),
                    Some(BandHalf::Upper) => (MIDDLE, NEARLY),
                };
                let share = (coverage + ordinary / ORDINARY) / 2.0;
                (least + (most - least) * share).min(most)
            }
        }
    }

    pub(super) fn name_match(self) -> NameMatch {
        match self {
            Self::Equal { .. } => NameMatch::Equal,
            Self::Nearly { how, .. } => how,
        }
    }

    fn is_below(self, other: Self) -> bool {
        self.score(0.0) < other.score(0.0)
    }
}

/// The bands of passages; most passages have none.
#[derive(Debug, Default)]
pub(in crate::search) struct Bands {
    /// By position in the snapshot: 0, or 1 + the index in `bands`. Empty if no name matches.
    of_passages: Vec<u32>,
    bands: Vec<Band>,
}

impl Bands {
    /// Assigns each note's band to all its passages; `passages` is the number of passages.
    pub(in crate::search) fn new(notes: Vec<(FileId, Band)>, of_notes: &NotePassages, passages: usize) -> Self {
        let mut of_passages = vec![0; passages];
        for ((note, _), at) in notes.iter().zip(1..) {
            of_notes.of(*note).for_each(|position| of_passages[position as usize] = at);
        }
        Self { of_passages, bands: notes.into_iter().map(|(_, band)| band).collect() }
    }

    /// Whether no name matches.
    pub(super) fn is_empty(&self) -> bool {
        self.bands.is_empty()
    }

    pub(in crate::search) fn of(&self, position: usize) -> Option<Band> {
        let at = self.of_passages.get(position)?.checked_sub(1)?;
        Some(self.bands[at as usize])
    }
}

/// The notes with a name that the query equals or starts, or that contains its words. `meant` are its texts with typos
/// corrected.
pub(in crate::search) fn named(
    store: &dyn ReadStore,
    query: &str,
    meant: &[String],
    lexical: &WordScores,
) -> Result<Vec<(FileId, Band)>> {
    let query = query.trim();
    let key = name_key(query);
    let mut bands: HashMap<FileId, Band> = HashMap::new();
    let mut add = |note, band: Band| match bands.entry(note) {
        Entry::Vacant(entry) => _ = entry.insert(band),
        Entry::Occupied(mut entry) if entry.get().is_below(band) => _ = entry.insert(band),
        Entry::Occupied(_) => {}
    };
    if key.is_empty() {
        return Ok(Vec::new());
    }
    let mut spelled = query;
    let mut equal = store.notes_named(&key)?;
    if equal.is_empty()
        && let Some(stem) = query.strip_suffix(".md").or_else(|| query.strip_suffix(".markdown"))
    {
        // A file's name in the form of a listing.
        equal = store.notes_named(&name_key(stem))?;
        spelled = stem;
    }
    for named in equal {
        let folders = u16::try_from(named.path.as_str().matches('/').count()).unwrap_or(u16::MAX);
        let is_file_name = named.path.stem() == named.text;
        add(named.note, Band::Equal { spelling: spelling(&named.text, spelled), folders, is_file_name });
    }
    let mut terms = Terms::new();
    let last = terms.words(query).pop();
    let is_whole = match &last {
        Some(last) => meant.is_empty() && store.is_in_a_note(&last.text, last.matching)?,
        None => true,
    };
    // A single letter as a word, as in `R` or `°C`, starts too many names to be taken as a prefix.
    let is_letter = is_whole
        && key.chars().count() == 1
        && last.is_some_and(|last| last.matching == TermMatch::Whole && last.text == key);
    let half = |half| if is_whole { None } else { Some(half) };
    let lower = query.to_lowercase();
    let identifiers: Vec<&str> = identifiers(&lower).into_iter().map(|range| &lower[range]).collect();
    let has_identifiers = |name: &str| identifiers.iter().all(|identifier| contains(name, identifier));
    let meant_keys: Vec<String> = meant.iter().map(|text| name_key(text)).collect();
    for key in meant_keys.iter().chain([&key]).filter(|_| !is_letter) {
        for (note, name) in store.names_beginning_with(key, MAX_BEGINNING)? {
            let begins = |name: &Name| name.text.to_lowercase().starts_with(&lower);
            if !identifiers.is_empty() && !store.names_of(note)?.iter().any(begins) {
                continue;
            }
            let coverage = (key.len() as f32 / name.len() as f32).min(1.0);
            add(note, Band::Nearly { how: NameMatch::Begins, coverage, half: half(BandHalf::Upper) });
        }
    }
    let texts = meant.iter().map(String::as_str).chain([query]);
    let typed: HashSet<String> = texts.flat_map(|text| terms.words(text)).map(|term| term.text).collect();
    let mut coverage = lexical.coverage(&typed);
    for note in lexical.in_names() {
        for name in store.names_of(*note)? {
            if has_identifiers(&name.text)
                && let Some(coverage) = coverage.of(&mut terms, &name.text)
            {
                add(*note, Band::Nearly { how: NameMatch::Words, coverage, half: half(BandHalf::Lower) });
            }
        }
    }
    // A name and its folder, in any order: `pruning readme`. The folder alone does not make a match.
    let others = lexical.in_paths().iter().filter(|note| lexical.in_names().binary_search(note).is_err());
    for note in others.take(MAX_IN_FOLDERS) {
        let (meta, names) = (store.note_meta(*note)?, store.names_of(*note)?);
        let Some(NoteMeta { path, .. }) = meta else { continue };
        for name in names {
            let mut is_whole = true;
            terms.each(&name.text, |term, _| is_whole &= typed.contains(term) || is_stop_word(term));
            let in_folder = format!("{} {}", path.folder(), name.text);
            is_whole &= has_identifiers(&in_folder);
            if is_whole && let Some(coverage) = coverage.of(&mut terms, &in_folder) {
                add(*note, Band::Nearly { how: NameMatch::Words, coverage, half: half(BandHalf::Lower) });
            }
        }
    }
    Ok(bands.into_iter().collect())
}

fn spelling(name: &str, query: &str) -> Spelling {
    if name.nfc().eq(query.nfc()) {
        Spelling::Same
    } else if name.to_lowercase().nfc().eq(query.to_lowercase().nfc()) {
        Spelling::OtherCase
    } else {
        Spelling::Folded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_do_not_overlap_and_grow_with_the_ordinary_score() {
        let equal = |spelling, folders| Band::Equal { spelling, folders, is_file_name: folders != 1 };
        let nearly = |half, coverage| Band::Nearly { how: NameMatch::Begins, coverage, half };
        let [lower, upper] = [Some(BandHalf::Lower), Some(BandHalf::Upper)];
        let best_first = [
            equal(Spelling::Same, 0),
            Band::Equal { spelling: Spelling::Same, folders: 0, is_file_name: false },
            equal(Spelling::Same, 1),
            equal(Spelling::Same, 12),
            equal(Spelling::OtherCase, 0),
            equal(Spelling::OtherCase, 300),
            equal(Spelling::Folded, 0),
            equal(Spelling::Folded, 1000),
        ];
        assert!(best_first[0].score(ORDINARY) <= 1.0 && best_first[7].score(0.0) > NEARLY);
        for pair in best_first.windows(2) {
            assert!(pair[0].score(0.0) > pair[1].score(ORDINARY), "{pair:?}");
        }
        for (lowest, highest) in [(None, None), (lower, upper)] {
            assert!(nearly(highest, 1.0).score(ORDINARY) <= NEARLY && nearly(lowest, 0.0).score(0.0) >= ORDINARY);
        }
        assert!(nearly(lower, 1.0).score(ORDINARY) <= nearly(upper, 0.0).score(0.0));
        let all_nearly =
            [None, lower, upper].into_iter().flat_map(|half| [0.0, 0.3, 1.0].map(|share| nearly(half, share)));
        for band in best_first.into_iter().chain(all_nearly) {
            let scores: Vec<f32> = (0..=1000_u16).map(|i| band.score(f32::from(i) / 1000.0 * ORDINARY)).collect();
            assert!(scores.is_sorted() && scores[0] < scores[1000], "{band:?}");
        }
    }
}
