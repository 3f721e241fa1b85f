//! Passages that many notes repeat word for word, as footers and templates: no note is about them, so they score less.
//!
//! Equal texts have one vector, so whoever shares its slot repeats the passage. Half of a score is enough for what a
//! note itself says to come first, and leaves a passage that is asked for by its own words among the results.

use std::collections::HashMap;

use crate::path::FileId;
use crate::store::{PassageRow, Slot};

/// What the score of such a passage is multiplied by, where its note is not named.
pub(super) const REPEATED: f32 = 0.5;

/// The vectors that the passages of many notes share.
#[derive(Debug, Default)]
pub(super) struct Repeated(HashMap<Slot, usize>);

impl Repeated {
    /// How many notes of a vault of `notes` may have a passage in common.
    pub(super) fn allowed(notes: usize) -> usize {
        (notes / 100).max(5)
    }

    /// Those of more notes than `allowed`. Linear.
    pub(super) fn new(passages: &[PassageRow], allowed: usize) -> Self {
        let slots = passages.iter().filter_map(|passage| passage.vector).map(Slot::get).max();
        let slots = slots.map_or(0, |last| last as usize + 1);
        let mut notes: Vec<(u32, Option<FileId>)> = vec![(0, None); slots];
        for passage in passages {
            if let Some(slot) = passage.vector {
                // The passages of a note stand next to each other.
                let (count, last) = &mut notes[slot.get() as usize];
                if last.replace(passage.note) != Some(passage.note) {
                    *count += 1;
                }
            }
        }
        let many = (0_u32..).zip(notes).filter(|(_, (count, _))| *count as usize > allowed);
        Self(many.filter_map(|(slot, (count, _))| Some((Slot::new(slot)?, count as usize))).collect())
    }

    /// How many notes have the passage, if these are too many.
    pub(super) fn notes_with(&self, passage: &PassageRow) -> Option<usize> {
        if self.0.is_empty() { None } else { self.0.get(&passage.vector?).copied() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_counted_and_not_passages() {
        let passage = |(id, note, vector)| PassageRow {
            id,
            note: FileId(note),
            vector: Slot::new(vector),
            title: None,
            length: 1,
        };
        let passages = [(1, 1, 7), (2, 1, 7), (3, 2, 7), (4, 2, 8), (5, 3, 8), (6, 4, 8), (7, 5, 0)].map(passage);
        let repeated = Repeated::new(&passages, 2);
        let counts: Vec<Option<usize>> = passages.iter().map(|passage| repeated.notes_with(passage)).collect();
        assert_eq!(counts, [None, None, None, Some(3), Some(3), Some(3), None]);
        assert_eq!([0, 600, 2000].map(Repeated::allowed), [5, 6, 20]);
    }
}
