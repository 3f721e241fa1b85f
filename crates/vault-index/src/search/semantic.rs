//! Ranking by meaning: the cosine of the query and every passage, as an upper bound first, exactly where it matters.
//!
//! A note that does not say its file's name has a short vector of that name. It is weighed in here:
//! `max(r·c, (r - w)·c + w·t)` with the passage's cosine `c`, the name's `t` and `w` = [`TITLE_WEIGHT`]; `r` is 1, or
//! [`REPEATED`] where many notes have the passage. So a fitting name helps, and one that says nothing does no harm.

use std::sync::MutexGuard;

use crate::error::{Error, ErrorKind, Result};
use crate::search::repeated::REPEATED;
use crate::store::{PassageRow, Slot, Store};
use crate::vectors::{Codes, Interval, QueryCodes, rescore};

/// How much the name of the file counts against the passage.
const TITLE_WEIGHT: f32 = 0.25;

/// One query's vector, compared with those of the passages.
pub(super) struct Semantic<'a> {
    query: Vec<f32>,
    /// `None`: nothing is ranked by meaning.
    scan: Option<Scan<'a>>,
    /// Whether names of files are weighed in: not where the query is a whole note.
    with_titles: bool,
}

struct Scan<'a> {
    query: QueryCodes,
    bounds: Bounds<'a>,
}

/// What is known of the score of each slot.
enum Bounds<'a> {
    /// An upper bound, and the codes that an interval is had from.
    Coarse(&'a Codes, Vec<f32>),
    /// An interval.
    Fine(Vec<Interval>),
}

/// Where the codes are read.
pub(super) enum Source<'a> {
    /// In memory.
    Loaded(&'a Codes),
    /// In the index, a block at a time, by two connections if there is another one.
    Stored { store: MutexGuard<'a, Store>, other: Option<Store>, dimensions: usize },
}

/// A passage's exact cosine and its parts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Cosine {
    /// With the file's name weighed in; half of the passage's own where many notes have it.
    pub score: f32,
    /// That of the file's name, where it has a vector.
    pub title: Option<f32>,
}

impl<'a> Semantic<'a> {
    pub(super) fn none() -> Self {
        Self { query: Vec::new(), scan: None, with_titles: false }
    }

    /// Whether nothing is ranked by meaning.
    pub(super) fn is_none(&self) -> bool {
        self.scan.is_none()
    }

    /// Whether the passage has a vector that the query's is compared with.
    pub(super) fn has_vector(&self, passage: &PassageRow) -> bool {
        self.scanned_slots(passage).is_some()
    }

    /// Scans the vectors of the passages that `eligible` has true for (`None`: of all), and their titles' where they are
    /// weighed in.
    pub(super) fn new(
        query: Vec<f32>,
        source: Source<'a>,
        passages: &[PassageRow],
        eligible: Option<&[bool]>,
        with_titles: bool,
    ) -> Result<Self> {
        let wanted = match &source {
            Source::Loaded(codes) => codes.dimensions(),
            Source::Stored { dimensions, .. } => *dimensions,
        };
        if query.len() != wanted {
            let has = query.len();
            let message = format!("the query's vector has {has} dimensions, and those of the index have {wanted}");
            return Err(
                Error::new(ErrorKind::Model, message).with_remedy("use a vector of the model that the index has")
            );
        }
        let mut semantic = Self { query, scan: None, with_titles };
        let query = QueryCodes::new(&semantic.query)?;
        let bounds = match source {
            Source::Stored { store, other, .. } => Bounds::Fine(store.intervals(other, &query)?),
            Source::Loaded(codes) => {
                let filter: Option<Vec<bool>> = eligible.map(|eligible| {
                    let mut filter = vec![false; codes.len()];
                    for (passage, _) in passages.iter().zip(eligible).filter(|(_, eligible)| **eligible) {
                        let slots = semantic.slots(passage).into_iter().flatten().map(|slot| slot.get() as usize);
                        slots.filter(|slot| *slot < codes.len()).for_each(|slot| filter[slot] = true);
                    }
                    filter
                });
                Bounds::Coarse(codes, codes.upper_bounds(&query, filter.as_deref()))
            }
        };
        semantic.scan = Some(Scan { query, bounds });
        Ok(semantic)
    }

    /// The most that the passage's score can be. `None`: it has no vector.
    pub(super) fn upper_bound(&self, passage: &PassageRow) -> Option<f32> {
        let scan = self.scan.as_ref()?;
        let bound = |slot: Slot| scan.upper_bound(slot.get() as usize);
        let [text, title] = self.slots(passage);
        Some(weigh(passage, bound(text?)?, title.and_then(bound)))
    }

    /// What each passage's score lies within. `None`: it has no vector.
    pub(super) fn intervals<'p>(&self, passages: impl Iterator<Item = &'p PassageRow>) -> Vec<Option<Interval>> {
        let Some(scan) = &self.scan else { return passages.map(|_| None).collect() };
        let mut slots: Vec<u32> = Vec::new();
        let mut add = |slot: Slot| {
            slots.push(slot.get());
            slots.len() - 1
        };
        // Where in `slots` each passage's own are.
        let of_passages: Vec<Option<(&PassageRow, usize, Option<usize>)>> = passages
            .map(|passage| self.scanned_slots(passage).map(|(text, title)| (passage, add(text), title.map(&mut add))))
            .collect();
        let intervals = scan.intervals(&slots);
        let weighed = |(passage, text, title): (&PassageRow, usize, Option<usize>)| {
            let of = |end: fn(&Interval) -> f32| {
                weigh(passage, end(&intervals[text]), title.map(|title| end(&intervals[title])))
            };
            Interval { lower: of(|interval| interval.lower), upper: of(|interval| interval.upper) }
        };
        of_passages.into_iter().map(|slots| slots.map(weighed)).collect()
    }

    /// The exact score, from the f32 vectors. `None`: the passage has no vector.
    pub(super) fn exact(
        &self,
        passage: &PassageRow,
        vector: &dyn Fn(i64) -> Result<Vec<f32>>,
    ) -> Result<Option<Cosine>> {
        let Some((text, title)) = self.scanned_slots(passage) else { return Ok(None) };
        let cosine = |slot: Slot| vector(slot.get().into()).map(|vector| rescore(&self.query, &vector));
        let (text, title) = (cosine(text)?, title.map(cosine).transpose()?);
        Ok(Some(Cosine { score: weigh(passage, text, title), title }))
    }

    /// The slots of the passage's vector and of its file's name, where they are among the codes.
    fn scanned_slots(&self, passage: &PassageRow) -> Option<(Slot, Option<Slot>)> {
        let scan = self.scan.as_ref()?;
        let [text, title] = self.slots(passage).map(|slot| slot.filter(|slot| scan.contains(slot.get() as usize)));
        Some((text?, title))
    }

    fn slots(&self, passage: &PassageRow) -> [Option<Slot>; 2] {
        [passage.vector, passage.title.filter(|_| self.with_titles)]
    }
}

impl Scan<'_> {
    /// `None`: the slot has no row, or was filtered out.
    fn upper_bound(&self, slot: usize) -> Option<f32> {
        let bound = match &self.bounds {
            Bounds::Coarse(_, upper) => *upper.get(slot)?,
            Bounds::Fine(intervals) => intervals.get(slot)?.upper,
        };
        bound.is_finite().then_some(bound)
    }

    /// Of slots that have rows.
    fn intervals(&self, slots: &[u32]) -> Vec<Interval> {
        match &self.bounds {
            Bounds::Coarse(codes, _) => codes.intervals(&self.query, slots),
            Bounds::Fine(intervals) => slots.iter().map(|slot| intervals[*slot as usize]).collect(),
        }
    }

    fn contains(&self, slot: usize) -> bool {
        match &self.bounds {
            Bounds::Coarse(codes, _) => codes.contains(slot),
            Bounds::Fine(_) => self.upper_bound(slot).is_some(),
        }
    }
}

/// The cosine of a passage and that of its file's name as one. Grows with both: so bounds of the parts give bounds of the
/// whole.
fn weigh(passage: &PassageRow, text: f32, title: Option<f32>) -> f32 {
    let own = if passage.is_repeated() { REPEATED } else { 1.0 };
    match title {
        Some(title) => (own * text).max((own - TITLE_WEIGHT) * text + TITLE_WEIGHT * title),
        None => own * text,
    }
}
