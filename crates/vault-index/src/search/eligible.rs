//! Which passages a query's filters let be found, before anything is ranked.

use std::collections::{HashMap, HashSet};

use jiff::{Timestamp, Zoned};

use crate::error::Result;
use crate::note::{TagKey, property_key};
use crate::path::{FileId, VaultPath};
use crate::search::filter::{Comparison, PropertyTest};
use crate::search::lexical;
use crate::search::path_pattern::{PathPattern, any_matches};
use crate::search::query::Query;
use crate::search::snapshot::Snapshot;
use crate::store::{PropertyValue, Store};
use crate::terms::Matching;

/// Whether each passage may be found, by position. `None`: all may.
pub(super) fn eligible(snapshot: &Snapshot, query: &Query) -> Result<Option<Vec<bool>>> {
    let filter = &query.filter;
    if filter.is_empty() && query.without.is_empty() && query.phrases.is_empty() {
        return Ok(None);
    }
    let store = snapshot.store();
    let wanted = wanted_notes(&store, query)?;
    let mut excluded: HashSet<FileId> = HashSet::new();
    for tag in &filter.without_tags {
        excluded.extend(store.notes_with_tag(TagKey::new(tag).as_str())?);
    }
    if !filter.without_paths.is_empty() {
        let patterns = patterns(&filter.without_paths)?;
        let notes = store.notes()?.into_iter().filter(|(_, path, _)| any_matches(&patterns, path));
        excluded.extend(notes.map(|(id, ..)| id));
    }
    let positions = |ids: Vec<i64>| ids.into_iter().filter_map(|id| snapshot.position(id));
    for word in &query.without {
        let holders = lexical::holders_of(&store, word, Matching::Whole)?.unwrap_or_default();
        excluded.extend(positions(holders).map(|at| snapshot.passages[at].note));
    }
    let is_eligible = |note: FileId| wanted.as_ref().is_none_or(|w| w.contains(&note)) && !excluded.contains(&note);
    let mut eligible = Vec::with_capacity(snapshot.passages.len());
    // The passages of a note are next to each other, so that few notes are looked up.
    for of_note in snapshot.passages.chunk_by(|a, b| a.note == b.note) {
        eligible.resize(eligible.len() + of_note.len(), is_eligible(of_note[0].note));
    }
    for phrase in &query.phrases {
        let holders = lexical::holders_of(&store, phrase, Matching::Whole)?.unwrap_or_default();
        let holders: HashSet<usize> = positions(holders).collect();
        eligible.iter_mut().enumerate().for_each(|(at, eligible)| *eligible &= holders.contains(&at));
    }
    Ok(Some(eligible))
}

/// Notes that meet all conditions but the exclusions. `None`: all do.
fn wanted_notes(store: &Store, query: &Query) -> Result<Option<HashSet<FileId>>> {
    let filter = &query.filter;
    let mut notes: Option<HashSet<FileId>> = None;
    let mut keep = |ids: Vec<FileId>| {
        let ids = ids.into_iter().collect();
        notes = Some(match notes.take() {
            None => ids,
            Some(before) => before.intersection(&ids).copied().collect(),
        });
    };
    for tag in &filter.tags {
        keep(store.notes_with_tag(TagKey::new(tag).as_str())?);
    }
    if filter.after.is_some() || filter.before.is_some() || !filter.paths.is_empty() {
        let patterns = patterns(&filter.paths)?;
        // Times of files end in 1677 and 2262; a date beyond is the end it is beyond.
        let ends = (i128::from(i64::MIN), i128::from(i64::MAX));
        let nanoseconds = |t: Timestamp| t.as_nanosecond().clamp(ends.0, ends.1) as i64;
        let after = filter.after.map_or(i64::MIN, nanoseconds);
        let before = filter.before.map_or(i64::MAX, nanoseconds);
        let holds = |path: &VaultPath, modified: i64| {
            (patterns.is_empty() || any_matches(&patterns, path)) && after <= modified && modified < before
        };
        let found = store.notes()?.into_iter().filter(|(_, path, modified)| holds(path, *modified));
        keep(found.map(|(id, ..)| id).collect());
    }
    let now = Zoned::now();
    for test in &filter.properties {
        keep(holding(store, test, &now)?);
    }
    Ok(notes)
}

/// Notes whose properties pass a test.
pub(super) fn holding(store: &Store, test: &PropertyTest, now: &Zoned) -> Result<Vec<FileId>> {
    let key = property_key(&test.key);
    if test.test == Comparison::Exists {
        return store.notes_with_property(&key);
    }
    let mut of_notes: HashMap<FileId, Vec<PropertyValue>> = HashMap::new();
    if test.test == Comparison::NotEqual {
        // A property that is empty has no values, and is not equal to any.
        of_notes.extend(store.notes_with_property(&key)?.into_iter().map(|note| (note, Vec::new())));
    }
    for (note, value) in store.property_values(&key)? {
        of_notes.entry(note).or_default().push(value);
    }
    let wanted = test.wanted(now);
    of_notes.retain(|_, values| wanted.holds(values));
    Ok(of_notes.into_keys().collect())
}

fn patterns(texts: &[String]) -> Result<Vec<PathPattern>> {
    texts.iter().map(|text| PathPattern::new(text)).collect()
}
