//! Passages that many notes repeat, such as footers and templates, score less: no note is about them.
//!
//! Passages are the same if they have the same text under any title; addresses are not compared, so that a line that
//! links to its own page in each note counts as one passage. Half of the score is low enough that a note's own text
//! comes first, and high enough that a passage stays among the results if the query asks for its own words. The score
//! of its note's title, tags, path and properties is not halved, because they belong to the note.

use std::collections::HashMap;

use crate::path::FileId;
use crate::store::PassageRow;

/// The factor for the words and the meaning of such a passage.
pub(super) const REPEATED: f32 = 0.5;

/// Marks the passages that more than `allowed` notes have.
pub(super) fn mark_repeated(passages: &mut [PassageRow], allowed: usize) {
    let mut said: Vec<(u32, FileId)> =
        passages.iter().filter(|passage| passage.said != 0).map(|passage| (passage.said, passage.note)).collect();
    said.sort_unstable();
    said.dedup();
    let groups = said.chunk_by(|a, b| a.0 == b.0).filter(|notes| notes.len() > allowed);
    let notes: HashMap<u32, usize> = groups.map(|notes| (notes[0].0, notes.len())).collect();
    if !notes.is_empty() {
        passages.iter_mut().for_each(|passage| passage.repeated = notes.get(&passage.said).map_or(0, |n| *n as u32));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_counted_and_not_passages() {
        let row = |(id, note, said)| PassageRow {
            id,
            note: FileId(note),
            vector: None,
            title: None,
            length: 1,
            said,
            repeated: 0,
        };
        let said = [(1, 1, 7), (2, 1, 7), (3, 2, 7), (4, 2, 8), (5, 3, 8), (6, 4, 8), (7, 5, 0), (8, 6, 0), (9, 7, 0)];
        for (allowed, expected) in [(2, [0, 0, 0, 3, 3, 3, 0, 0, 0]), (3, [0; 9])] {
            let mut passages = said.map(row);
            mark_repeated(&mut passages, allowed);
            assert_eq!(passages.map(|passage| passage.repeated), expected);
        }
    }
}
