//! The passages of each note, by their positions in the snapshot.

use std::ops::Range;

use crate::path::FileId;
use crate::store::PassageRow;

/// The passages of a note are adjacent, because they are inserted together and ids are assigned in order.
pub(super) struct NotePassages(Vec<(FileId, Range<u32>)>);

impl NotePassages {
    /// O(n log n) in the number of notes, nearly linear if their ids are in order.
    pub(super) fn new(passages: &[PassageRow]) -> Self {
        let mut notes = Vec::new();
        let mut start = 0;
        for of_note in passages.chunk_by(|a, b| a.note == b.note) {
            let end = start + of_note.len() as u32;
            notes.push((of_note[0].note, start..end));
            start = end;
        }
        notes.sort_by_key(|(note, _)| *note);
        Self(notes)
    }

    /// The passages of a note; empty if it has none.
    pub(super) fn of(&self, note: FileId) -> Range<u32> {
        match self.0.binary_search_by_key(&note, |(note, _)| *note) {
            Ok(at) => self.0[at].1.clone(),
            Err(_) => 0..0,
        }
    }
}
