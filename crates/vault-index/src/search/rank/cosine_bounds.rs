//! Ranking by meaning: the cosine of the query and every passage, as a bound first, exact where needed.
//!
//! A note that does not contain its file's name has a short vector of that name, which is included here:
//! `max(r·c, (r - w)·c + w·t)` with the passage's cosine `c`, the name's `t` and `w` = [`TITLE_WEIGHT`]; `r` is
//! [`REPEATED`] if many notes have the passage, [`ONLY_LINKS`] if it has no words outside of links, else 1. So a relevant
//! name raises the score, and an irrelevant one does not lower it. All cosines are on one scale for all models, see
//! [`CosineScale`].

use std::sync::OnceLock;

use crate::error::{Error, ErrorKind, Result};
use crate::search::repeated_passages::REPEATED;
use crate::search::vector_rows::{PassageSlots, VectorRows, VectorSource};
use crate::store::{PassageRow, Slot};
use crate::vectors::{Interval, QueryCodes, rescore};

/// The weight of the file's name against the passage.
const TITLE_WEIGHT: f32 = 0.25;

/// The factor for the meaning of a list of links, because it only names what other notes say: prose that is as close to
/// the query comes first.
pub(in crate::search::rank) const ONLY_LINKS: f32 = 0.9;

/// The cosines of unrelated texts and of a question and its answer, on the scale of scores: those of the bundled model.
const UNRELATED: f32 = 0.018241176;
const RELATED: f32 = 0.3823466;

/// The least difference between the two that is taken at its word: below it, it is mostly noise.
const LEAST_RANGE: f32 = 0.03;

/// Moves the cosines of a model onto the scale of scores, whose floors and weights were measured with the bundled model.
///
/// With a model that gives unrelated texts .76 and answers .83, a difference of .07 means as much as .36 with the bundled
/// one. Without a common scale, words would decide alone, and nothing would be below a floor. Two lines meet at the
/// cosine of related texts: one from unrelated texts, and one to equal ones, which stay at 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::search) struct CosineScale(Option<Lines>);

#[derive(Debug, Clone, Copy, PartialEq)]
struct Lines {
    unrelated: f32,
    below: f32,
    above: f32,
}

impl CosineScale {
    /// For a model with these cosines of unrelated texts and of answers; `None`: cosines stay as they are.
    pub(in crate::search) fn new(range: Option<(f32, f32)>) -> Self {
        let range = range.filter(|(unrelated, related)| related - unrelated >= LEAST_RANGE && *related < 1.0);
        Self(range.map(|(unrelated, related)| Lines {
            unrelated,
            below: (RELATED - UNRELATED) / (related - unrelated),
            above: (1.0 - RELATED) / (1.0 - related),
        }))
    }

    /// Whether cosines are moved.
    pub(in crate::search) fn is_known(self) -> bool {
        self.0.is_some()
    }

    /// Increases with the cosine, also when it is rounded, so that bounds stay bounds.
    pub(in crate::search::rank) fn apply(self, cosine: f32) -> f32 {
        let Some(Lines { unrelated, below, above }) = self.0 else { return cosine };
        let (first, second) = (UNRELATED + (cosine - unrelated) * below, 1.0 - (1.0 - cosine) * above);
        if below >= above { first.min(second) } else { first.max(second) }
    }

    fn interval(self, cosine: Interval) -> Interval {
        Interval { lower: self.apply(cosine.lower), upper: self.apply(cosine.upper) }
    }
}

/// The vector of one query, compared with those of the passages.
pub(in crate::search) struct CosineBounds<'a> {
    query: Vec<f32>,
    scale: CosineScale,
    /// `None`: meaning is not ranked.
    scan: Option<CodeScan<'a>>,
    /// Whether names of files are included; not if the query is a whole note.
    with_titles: bool,
}

struct CodeScan<'a> {
    query: QueryCodes,
    rows: VectorRows<'a>,
    slots: &'a PassageSlots,
}

/// A passage's exact cosine and its parts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::search) struct Cosine {
    /// Including the file's name; half of the passage's own cosine if many notes have it.
    pub score: f32,
    /// The cosine of the file's name, if it has a vector.
    pub title: Option<f32>,
}

impl<'a> CosineBounds<'a> {
    pub(in crate::search) fn none() -> Self {
        Self { query: Vec::new(), scale: CosineScale(None), scan: None, with_titles: false }
    }

    /// Whether meaning is not ranked.
    pub(in crate::search) fn is_none(&self) -> bool {
        self.scan.is_none()
    }

    /// Whether the passage has a vector that is compared with the query's.
    pub(in crate::search) fn has_vector(&self, passage: &PassageRow) -> bool {
        self.scanned_slots(passage).is_some()
    }

    /// Compares a query's vector with those of the index; if they are read from the index, all at once and now. `slots`
    /// are those of the passages, once they are known.
    pub(in crate::search) fn new(
        query: Vec<f32>,
        scale: CosineScale,
        source: VectorSource<'a>,
        passages: &[PassageRow],
        slots: &'a OnceLock<PassageSlots>,
        with_titles: bool,
    ) -> Result<Self> {
        let wanted = match &source {
            VectorSource::Loaded(codes) => codes.dimensions(),
            VectorSource::Stored { dimensions, .. } => *dimensions,
        };
        if query.len() != wanted {
            let has = query.len();
            let message = format!("the query's vector has {has} dimensions, and those of the index have {wanted}");
            return Err(
                Error::new(ErrorKind::Model, message).with_remedy("use a vector of the model that the index has")
            );
        }
        let codes = QueryCodes::new(&query)?;
        let rows = match source {
            VectorSource::Loaded(codes) => VectorRows::Codes(codes),
            VectorSource::Stored { store, .. } => VectorRows::Intervals(store.intervals(&query)?),
        };
        // Without rows, not even [`NO_ROW`] can be read.
        let has_rows = match &rows {
            VectorRows::Codes(codes) => codes.len() > 0,
            VectorRows::Intervals(intervals) => !intervals.is_empty(),
        };
        let slots = slots.get_or_init(|| PassageSlots::new(passages, &rows));
        let scan = has_rows.then_some(CodeScan { query: codes, rows, slots });
        Ok(Self { query, scale, scan, with_titles })
    }

    /// Estimates the bytes that [`upper_bounds`](Self::upper_bounds) reads for a passage.
    pub(super) fn bytes_scanned(&self) -> usize {
        match &self.scan {
            Some(CodeScan { rows: VectorRows::Codes(codes), .. }) => codes.bytes_scanned(),
            _ => 0,
        }
    }

    /// The upper bounds of the scores of the first `count` of some passages, whose positions ascend; the data of the
    /// others is prefetched. Negative infinity: the passage has no vector.
    pub(super) fn upper_bounds(&self, passages: &[PassageRow], positions: &[u32], count: usize) -> Vec<f32> {
        let Some(scan) = &self.scan else { return vec![f32::NEG_INFINITY; count] };
        let mut uppers = self.scan_uppers(scan, &scan.slots.texts_of(positions), count);
        let positions = &positions[..count];
        if let (true, Some((first, last))) = (self.with_titles, positions.first().zip(positions.last())) {
            let titles = scan.slots.titles_of(*first, *last);
            let slots: Vec<u32> = titles.iter().map(|(_, title)| *title).collect();
            let mut rest = positions.iter().zip(&mut uppers).peekable();
            for ((run, _), title) in titles.iter().zip(self.scan_uppers(scan, &slots, slots.len())) {
                while let Some((position, upper)) = rest.next_if(|(position, _)| **position < run.end) {
                    if *position >= run.start {
                        *upper = weigh(&passages[*position as usize], *upper, Some(title));
                    }
                }
            }
        }
        uppers
    }

    /// The intervals of the scores of some passages, whose positions ascend. [`Interval::NONE`]: the passage has no
    /// vector.
    pub(in crate::search) fn intervals(&self, passages: &[PassageRow], positions: &[u32]) -> Vec<Interval> {
        let Some(scan) = &self.scan else { return vec![Interval::NONE; positions.len()] };
        let passages = positions.iter().map(|position| &passages[*position as usize]);
        let title = |passage: &PassageRow| scan.rows.slot(self.slots(passage)[1]);
        let titles: Vec<u32> = passages.clone().filter_map(title).map(Slot::get).collect();
        let mut intervals = self.scan_intervals(scan, &scan.slots.texts_of(positions));
        let mut titles = self.scan_intervals(scan, &titles).into_iter();
        for (interval, passage) in intervals.iter_mut().zip(passages) {
            let title = title(passage).and_then(|_| titles.next());
            let of = |end: fn(Interval) -> f32| weigh(passage, end(*interval), title.map(end));
            *interval = Interval { lower: of(|interval| interval.lower), upper: of(|interval| interval.upper) };
        }
        intervals
    }

    /// The exact score, from the f32 vectors. `None`: the passage has no vector.
    pub(in crate::search) fn exact(
        &self,
        passage: &PassageRow,
        vector: &dyn Fn(i64) -> Result<Vec<f32>>,
    ) -> Result<Option<Cosine>> {
        let Some((text, title)) = self.scanned_slots(passage) else { return Ok(None) };
        let cosine =
            |slot: Slot| vector(slot.get().into()).map(|vector| self.scale.apply(rescore(&self.query, &vector)));
        let (text, title) = (cosine(text)?, title.map(cosine).transpose()?);
        Ok(Some(Cosine { score: weigh(passage, text, title), title }))
    }

    fn scan_uppers(&self, scan: &CodeScan<'_>, slots: &[u32], count: usize) -> Vec<f32> {
        let mut uppers = scan.upper_bounds(slots, count);
        if self.scale.0.is_some() {
            uppers.iter_mut().for_each(|upper| *upper = self.scale.apply(*upper));
        }
        uppers
    }

    fn scan_intervals(&self, scan: &CodeScan<'_>, slots: &[u32]) -> Vec<Interval> {
        scan.intervals(slots).into_iter().map(|interval| self.scale.interval(interval)).collect()
    }

    /// The slots of the passage's vector and of its file's name, if they have codes.
    fn scanned_slots(&self, passage: &PassageRow) -> Option<(Slot, Option<Slot>)> {
        let scan = self.scan.as_ref()?;
        let [text, title] = self.slots(passage).map(|slot| scan.rows.slot(slot));
        Some((text?, title))
    }

    fn slots(&self, passage: &PassageRow) -> [Option<Slot>; 2] {
        [passage.vector, passage.title.filter(|_| self.with_titles)]
    }
}

impl CodeScan<'_> {
    fn upper_bounds(&self, slots: &[u32], count: usize) -> Vec<f32> {
        match &self.rows {
            VectorRows::Codes(codes) => codes.upper_bounds(&self.query, slots, count),
            VectorRows::Intervals(intervals) => {
                slots[..count].iter().map(|slot| intervals[*slot as usize].upper).collect()
            }
        }
    }

    fn intervals(&self, slots: &[u32]) -> Vec<Interval> {
        match &self.rows {
            VectorRows::Codes(codes) => codes.intervals(&self.query, slots),
            VectorRows::Intervals(intervals) => slots.iter().map(|slot| intervals[*slot as usize]).collect(),
        }
    }
}

/// Combines the cosine of a passage with that of its file's name. The result increases with both, so bounds of the
/// parts give bounds of the whole.
fn weigh(passage: &PassageRow, text: f32, title: Option<f32>) -> f32 {
    let own = match passage {
        _ if passage.is_repeated() => REPEATED,
        _ if passage.is_only_links() => ONLY_LINKS,
        _ => 1.0,
    };
    match title {
        Some(title) => (own * text).max((own - TITLE_WEIGHT) * text + TITLE_WEIGHT * title),
        None => own * text,
    }
}

#[cfg(all(test, feature = "minilm"))]
mod tests {
    use super::*;

    #[test]
    fn the_scale_is_that_of_the_bundled_model() {
        let bundled = minilm::COSINE_RANGE;
        assert_eq!((UNRELATED, RELATED), (bundled.unrelated, bundled.related));
        for (unrelated, related) in [(0.76, 0.83), (0.4, 0.68), (0.03, 0.45)] {
            let scale = CosineScale::new(Some((unrelated, related)));
            for (cosine, expected) in [(unrelated, UNRELATED), (related, RELATED), (1.0, 1.0)] {
                assert!((scale.apply(cosine) - expected).abs() < 1e-5, "{cosine}: {}", scale.apply(cosine));
            }
            assert_eq!(scale.interval(Interval::NONE), Interval::NONE);
        }
        let same = CosineScale::new(Some((UNRELATED, RELATED)));
        for cosine in [-0.2, 0.0, 0.3, 0.38, 0.7] {
            assert!((same.apply(cosine) - cosine).abs() < 1e-5, "{cosine}: {}", same.apply(cosine));
        }
        assert_eq!(CosineScale::new(Some((0.9, 0.91))).apply(0.5), 0.5);
    }
}
