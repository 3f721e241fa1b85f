//! The codes of all rows in memory, and bounds of scores: upper ones from four bits, intervals from eight.

use super::block::{BLOCK_ROWS, Parts, floats};
use super::kernel::{Kernel, LINE, Line};
use super::quantize::{MAX_DIMENSIONS, QueryCodes, width};
use crate::error::{Error, ErrorKind, Result};

/// All slots are below this; a larger number can only come from a damaged index.
pub(crate) const MAX_SLOTS: usize = 1 << 26;

/// The codes of all rows, addressed by slot. `dimensions + 12` bytes per slot.
#[derive(Debug, Clone)]
pub struct Codes {
    dimensions: usize,
    pub(super) kernel: Kernel,
    /// The upper bits of the codes, [`width`] bytes per slot. They are separate, so that the scan can skip the lower
    /// ones.
    pub(super) high: Vec<Line>,
    /// The lower bits, of the same size.
    pub(super) low: Vec<Line>,
    /// 0 if a slot has no row. One per slot, like the next two.
    pub(super) scales: Vec<f32>,
    pub(super) coarse_errors: Vec<f32>,
    pub(super) errors: Vec<f32>,
}

impl Codes {
    /// Creates codes without rows. `dimensions` is 1 to [`MAX_DIMENSIONS`].
    pub(crate) fn new(dimensions: usize) -> Self {
        assert!((1..=MAX_DIMENSIONS).contains(&dimensions), "{dimensions} dimensions");
        Self {
            dimensions,
            kernel: Kernel::best(),
            high: Vec::new(),
            low: Vec::new(),
            scales: Vec::new(),
            coarse_errors: Vec::new(),
            errors: Vec::new(),
        }
    }

    /// Allocates memory for `slots` slots at once.
    pub(crate) fn reserve(&mut self, slots: usize) {
        let more = slots.min(MAX_SLOTS).saturating_sub(self.len());
        for numbers in [&mut self.scales, &mut self.coarse_errors, &mut self.errors] {
            numbers.reserve_exact(more);
        }
        self.high.reserve_exact(more * width(self.dimensions) / LINE);
        self.low.reserve_exact(more * width(self.dimensions) / LINE);
    }

    /// Loads the rows of block `number`, and replaces those that were there.
    ///
    /// # Errors
    /// [`ErrorKind::Damaged`] if the bytes are not those of a block (see [`Block`](super::Block)).
    pub(crate) fn load_block(&mut self, number: usize, bytes: &[u8]) -> Result<()> {
        if number >= MAX_SLOTS / BLOCK_ROWS {
            return Err(Error::new(ErrorKind::Damaged, format!("a block of vectors has the number {number}"))
                .with_remedy("run `vault-index check --repair`"));
        }
        let parts = Parts::of(self.dimensions, bytes)?;
        let first = number * BLOCK_ROWS;
        self.resize(self.len().max(first + BLOCK_ROWS));
        copy(&mut self.scales[first..], floats(parts.scales));
        copy(&mut self.coarse_errors[first..], floats(parts.coarse_errors));
        copy(&mut self.errors[first..], floats(parts.errors));
        let line = first * width(self.dimensions) / LINE;
        copy(&mut self.high[line..], parts.high.as_chunks().0.iter().map(|bytes| Line(*bytes)));
        copy(&mut self.low[line..], parts.low.as_chunks().0.iter().map(|bytes| Line(*bytes)));
        // Slots without rows are removed from the end.
        self.resize(self.scales.iter().rposition(|&scale| scale != 0.0).map_or(0, |last| last + 1));
        Ok(())
    }

    /// The number of slots: the highest slot with a row plus one.
    pub(crate) fn len(&self) -> usize {
        self.scales.len()
    }

    /// Whether a slot has a row.
    pub(crate) fn contains(&self, slot: usize) -> bool {
        self.scales.get(slot).is_some_and(|&scale| scale != 0.0)
    }

    /// The length of every row.
    pub(crate) fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn resize(&mut self, slots: usize) {
        for numbers in [&mut self.scales, &mut self.coarse_errors, &mut self.errors] {
            numbers.resize(slots, 0.0);
        }
        self.high.resize(slots * width(self.dimensions) / LINE, Line([0; LINE]));
        self.low.resize(slots * width(self.dimensions) / LINE, Line([0; LINE]));
    }
}

fn copy<T>(to: &mut [T], from: impl Iterator<Item = T>) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to = from);
}

/// The number of rows in a kernel call.
const GROUP: usize = 64;

/// The interval of an exact score, both ends included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The lower end.
    pub lower: f32,
    /// The upper end.
    pub upper: f32,
}

impl Interval {
    /// The interval of a slot that has no row.
    pub const NONE: Self = Self { lower: f32::NEG_INFINITY, upper: f32::NEG_INFINITY };

    /// Whether it is the interval of a row.
    #[inline]
    pub fn is_some(self) -> bool {
        self.upper > f32::NEG_INFINITY
    }
}

impl Codes {
    /// The upper bounds of the scores of the first `count` of some slots, from the upper four bits of the codes: at
    /// most about .24 above the exact score. The other slots are prefetched, because they are requested next. Negative
    /// infinity if a slot has no row.
    ///
    /// # Panics
    /// As [`intervals`](Self::intervals).
    pub(crate) fn upper_bounds(&self, query: &QueryCodes, slots: &[u32], count: usize) -> Vec<f32> {
        assert_eq!(query.dimensions(), self.dimensions(), "a query of other dimensions than the rows");
        let mut uppers = Vec::with_capacity(count);
        while uppers.len() < count {
            let (slots, count) = (&slots[uppers.len()..], GROUP.min(count - uppers.len()));
            let sums = self.dots(query, &self.high, slots, count);
            uppers.extend(slots[..count].iter().zip(&sums).map(|(&slot, &sum)| {
                let (scale, error) = (self.scales[slot as usize], query.error(self.coarse_errors[slot as usize]));
                if scale == 0.0 { f32::NEG_INFINITY } else { query.coarse_score(sum, scale) + error }
            }));
        }
        uppers
    }

    /// The intervals of some slots, from all eight bits of the codes: about .03 wide. [`Interval::NONE`] if a slot has
    /// no row.
    ///
    /// # Panics
    /// If the query has other dimensions than the rows, or a slot is not below [`len`](Self::len).
    pub(crate) fn intervals(&self, query: &QueryCodes, slots: &[u32]) -> Vec<Interval> {
        assert_eq!(query.dimensions(), self.dimensions(), "a query of other dimensions than the rows");
        let mut intervals = Vec::with_capacity(slots.len());
        while let Some(slots) = slots.get(intervals.len()..).filter(|slots| !slots.is_empty()) {
            let count = GROUP.min(slots.len());
            let [high, low] = [&self.high, &self.low].map(|rows| self.dots(query, rows, slots, count));
            intervals.extend(slots[..count].iter().zip(&high).zip(&low).map(|((&slot, &high), &low)| {
                let (scale, error) = (self.scales[slot as usize], query.error(self.errors[slot as usize]));
                let score = query.score(high, low, scale);
                if scale == 0.0 { Interval::NONE } else { Interval { lower: score - error, upper: score + error } }
            }));
        }
        intervals
    }

    /// The products of the query with the first `count` of some rows, [`GROUP`] at most. The next ones are prefetched.
    fn dots(&self, query: &QueryCodes, rows: &[Line], slots: &[u32], count: usize) -> [i32; GROUP] {
        let mut sums = [0; GROUP];
        self.kernel.dots(&query.codes, rows, &slots[..slots.len().min(2 * GROUP)], &mut sums[..count]);
        sums
    }

    /// The bytes read for the upper bound of a slot.
    pub(crate) fn bytes_scanned(&self) -> usize {
        width(self.dimensions)
    }
}
