//! The source of the codes of vectors, and the rows of the passages in them.

use std::borrow::Cow;
use std::ops::Range;

use crate::store::{InUse, PassageRow, ReadStore, Slot};
use crate::vectors::{Codes, Interval};

/// The source of the codes.
pub(super) enum VectorSource<'a> {
    /// In memory.
    Loaded(&'a Codes),
    /// In the index.
    Stored { store: InUse<'a, dyn ReadStore>, dimensions: usize },
}

/// The bounds of the score of each slot.
pub(super) enum VectorRows<'a> {
    /// The codes that intervals are computed from.
    Codes(&'a Codes),
    /// An interval from eight bits.
    Intervals(Vec<Interval>),
}

impl VectorRows<'_> {
    /// The slot, if it has a row.
    pub(super) fn slot(&self, slot: Option<Slot>) -> Option<Slot> {
        slot.filter(|slot| match self {
            Self::Codes(codes) => codes.contains(slot.get() as usize),
            Self::Intervals(intervals) => intervals.get(slot.get() as usize).is_some_and(|interval| interval.is_some()),
        })
    }
}

/// The slots of passages and of their titles, if they have rows.
#[derive(Debug, Default)]
pub(super) struct PassageSlots {
    /// By position; [`NO_ROW`] if a passage has no vector.
    texts: Vec<u32>,
    /// For runs of passages that have the same title, in order.
    titles: Vec<(Range<u32>, u32)>,
}

impl PassageSlots {
    pub(super) fn new(passages: &[PassageRow], rows: &VectorRows<'_>) -> Self {
        let texts = passages.iter().map(|passage| rows.slot(passage.vector).map_or(NO_ROW, Slot::get)).collect();
        let mut titles = Vec::new();
        let mut start = 0;
        for run in passages.chunk_by(|a, b| a.title == b.title) {
            let end = start + run.len() as u32;
            titles.extend(rows.slot(run[0].title).map(|title| (start..end, title.get())));
            start = end;
        }
        Self { texts, titles }
    }

    /// The slots of some passages whose positions ascend.
    pub(super) fn texts_of(&self, positions: &[u32]) -> Cow<'_, [u32]> {
        match *positions {
            // Consecutive positions.
            [first, .., last] if (last - first) as usize == positions.len() - 1 => {
                Cow::Borrowed(&self.texts[first as usize..=last as usize])
            }
            _ => positions.iter().map(|position| self.texts[*position as usize]).collect(),
        }
    }

    /// The runs with passages at or between two positions.
    pub(super) fn titles_of(&self, first: u32, last: u32) -> &[(Range<u32>, u32)] {
        let start = self.titles.partition_point(|(run, _)| run.end <= first);
        let end = self.titles.partition_point(|(run, _)| run.start <= last);
        &self.titles[start..end]
    }
}

/// Slots start at 1.
const NO_ROW: u32 = 0;
