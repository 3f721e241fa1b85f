//! The vector of a note for similar notes: the sum of its passages' vectors without shared text.
//!
//! Two notes from one template share most of their text without having the same subject. So lines that too many notes
//! have word for word are left out, and the rest of a passage is embedded again. A note that is all template gets the
//! direction of its passages as they are. So does every note if a text to embed would leave this machine, or if the
//! vectors are of another model.
//!
//! Each line is one look-up of some tens of microseconds; an embedding takes some milliseconds per passage.

use std::collections::HashMap;

use crate::embed::Role;
use crate::error::{Error, ErrorKind, Result};
use crate::path::FileId;
use crate::search::select::phrase::passages_with_phrase;
use crate::search::snapshot::Snapshot;
use crate::store::{ReadStore, may_share};
use crate::terms::TermMatch;

/// The most lines that are looked up; later lines count as the note's own.
const MAX_LINES: usize = 400;

/// The sum of the vectors of the note's own text.
pub(in crate::search) fn note_vector(snapshot: &Snapshot, note: FileId) -> Result<Vec<f32>> {
    let (slots, mut texts) = {
        let store = snapshot.store()?;
        let Some(slots) = store.passage_vectors(note)? else {
            return Err(Error::new(
                ErrorKind::NotFound,
                "this is not an indexed note, so similar notes cannot be searched",
            )
            .with_remedy("name a note; attachments and what is excluded or skipped have no text in the index"));
        };
        let texts = if snapshot.has_vectors { own_texts(snapshot, &*store, note)? } else { vec![None; slots.len()] };
        (slots, texts)
    };
    let mut vectors = Vec::new();
    if texts.iter().any(Option::is_some) {
        let embedder = (snapshot.embedder)()?;
        let own: Vec<&str> = texts.iter().flatten().map(String::as_str).filter(|text| !text.is_empty()).collect();
        if embedder.is_remote() {
            texts.fill(None);
        } else if !own.is_empty() {
            vectors = embedder.embed(&own, Role::Passage)?;
        }
    }
    let store = snapshot.store()?;
    let stored = store.vectors()?;
    for (slot, text) in slots.iter().zip(&texts) {
        if let (Some(slot), None) = (slot, text) {
            vectors.push(stored(*slot)?);
        }
    }
    if vectors.is_empty() {
        for slot in slots.iter().flatten() {
            vectors.push(stored(*slot)?);
        }
    }
    let mut sum: Vec<f32> = Vec::new();
    for vector in vectors {
        sum.resize(vector.len(), 0.0);
        sum.iter_mut().zip(&vector).for_each(|(a, b)| *a += b);
    }
    if sum.iter().all(|x| *x == 0.0) {
        let error = |message, remedy| Err(Error::new(ErrorKind::NotFound, message).with_remedy(remedy));
        return match slots.iter().any(Option::is_some) {
            true => error(
                "the model cannot read this note's text, so similar notes cannot be searched",
                "search for its words",
            ),
            false => error("this note has no vectors yet", "run `vault-index sync` and let it finish"),
        };
    }
    Ok(sum)
}

/// The text of each passage of a note that few other notes share, in order. `None`: all of it.
fn own_texts(snapshot: &Snapshot, store: &dyn ReadStore, note: FileId) -> Result<Vec<Option<String>>> {
    let mut known: HashMap<String, bool> = HashMap::new();
    let mut own_texts = Vec::new();
    for passage in store.passage_texts(note)? {
        let mut own = String::new();
        let mut is_whole = true;
        for line in passage.text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let is_shared = match known.get(line) {
                Some(is_shared) => *is_shared,
                None if known.len() >= MAX_LINES => false,
                None => {
                    let is_shared = is_of_many(snapshot, store, line)?;
                    known.insert(line.to_owned(), is_shared);
                    is_shared
                }
            };
            is_whole &= !is_shared;
            if !is_shared && line.chars().any(char::is_alphanumeric) {
                own.push_str(line);
                own.push('\n');
            }
        }
        own_texts.push((!is_whole).then_some(own));
    }
    Ok(own_texts)
}

/// Whether too many notes contain the words of a line, side by side.
fn is_of_many(snapshot: &Snapshot, store: &dyn ReadStore, line: &str) -> Result<bool> {
    let holders = passages_with_phrase(store, line, TermMatch::Whole)?.unwrap_or_default();
    let mut notes: Vec<FileId> =
        holders.into_iter().filter_map(|id| Some(snapshot.passages[snapshot.position(id)?].note)).collect();
    notes.sort_unstable();
    notes.dedup();
    Ok(notes.len() > may_share(snapshot.notes))
}
