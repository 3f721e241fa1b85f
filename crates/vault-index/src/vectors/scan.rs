//! The codes of all rows in memory, and the two passes over them: an upper bound for every row from four bits, an
//! interval for some rows from eight.

use std::num::NonZeroUsize;
use std::sync::OnceLock;

use super::block::{BLOCK_ROWS, Parts, floats};
use super::kernel::{Kernel, LINE, Line};
use super::quantize::{MAX_DIMENSIONS, QueryCodes, width};
use crate::error::{Error, ErrorKind, Result};

/// Slots are below this; a larger number can only come from a damaged index.
pub(crate) const MAX_SLOTS: usize = 1 << 26;

/// The codes of all rows, addressed by slot. `dimensions + 12` bytes a slot.
#[derive(Debug, Clone)]
pub(crate) struct Codes {
    dimensions: usize,
    pub(super) kernel: Kernel,
    /// The upper bits of the codes, [`width`] bytes a slot, so that the scan can leave the lower ones alone.
    pub(super) high: Vec<Line>,
    /// The lower bits, as many.
    pub(super) low: Vec<Line>,
    /// 0 where a slot has no row. One a slot, as are the next two.
    pub(super) scales: Vec<f32>,
    pub(super) coarse_errors: Vec<f32>,
    pub(super) errors: Vec<f32>,
}

impl Codes {
    /// No rows yet. `dimensions` is 1 to [`MAX_DIMENSIONS`].
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

    /// Allocates for `slots` slots at once.
    pub(crate) fn reserve(&mut self, slots: usize) {
        let more = slots.min(MAX_SLOTS).saturating_sub(self.len());
        for numbers in [&mut self.scales, &mut self.coarse_errors, &mut self.errors] {
            numbers.reserve_exact(more);
        }
        self.high.reserve_exact(more * width(self.dimensions) / LINE);
        self.low.reserve_exact(more * width(self.dimensions) / LINE);
    }

    /// Puts in the rows of block `number`, in place of what was there.
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
        // Slots without rows are cut off the end.
        self.resize(self.scales.iter().rposition(|&scale| scale != 0.0).map_or(0, |last| last + 1));
        Ok(())
    }

    /// The number of slots: one more than the highest that has a row.
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

/// Rows of a kernel call.
const GROUP: usize = 64;

/// How many bytes a thread must have to read to be worth starting. To start one takes about 30 µs, so on an idle machine
/// two threads are faster than one from 10,000 rows of 384 dimensions on (2 MB). On a busy machine a new thread can wait
/// 4 ms for a core, which is too much where the whole scan takes less than one: so from about 85,000 rows on.
const BYTES_PER_THREAD: usize = 8 << 20;

/// What an exact score lies within, both ends included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Interval {
    pub lower: f32,
    pub upper: f32,
}

impl Interval {
    /// Of a slot that has no row.
    pub(crate) const NONE: Self = Self { lower: f32::NEG_INFINITY, upper: f32::NEG_INFINITY };
}

impl Codes {
    /// The most that each slot can score, from the upper four bits of the codes: at most about .24 above the exact score.
    /// Negative infinity where a slot has no row, or `filter` (by slot; `None`: all pass) has false for it.
    ///
    /// # Panics
    /// If the query has other dimensions than the rows.
    pub(crate) fn upper_bounds(&self, query: &QueryCodes, filter: Option<&[bool]>) -> Vec<f32> {
        let slots = filter.map_or(self.len(), |filter| filter.iter().filter(|passes| **passes).count());
        self.upper_bounds_by(threads_for(slots * width(self.dimensions())), query, filter)
    }

    /// The same on so many threads; their number does not change the result.
    pub(super) fn upper_bounds_by(&self, threads: usize, query: &QueryCodes, filter: Option<&[bool]>) -> Vec<f32> {
        assert_eq!(query.dimensions(), self.dimensions(), "a query of other dimensions than the rows");
        let mut uppers = vec![f32::NEG_INFINITY; self.len()];
        let part = self.len().div_ceil(threads).max(1);
        std::thread::scope(|scope| {
            let mut parts = uppers.chunks_mut(part).enumerate();
            let mine = parts.next();
            for (i, uppers) in parts {
                scope.spawn(move || self.upper_bounds_from(i * part, query, filter, uppers));
            }
            if let Some((_, uppers)) = mine {
                self.upper_bounds_from(0, query, filter, uppers);
            }
        });
        uppers
    }

    /// The upper bounds of the slots from `first` on.
    fn upper_bounds_from(&self, first: usize, query: &QueryCodes, filter: Option<&[bool]>, uppers: &mut [f32]) {
        let range = first as u32..(first + uppers.len()) as u32;
        let slots: Vec<u32> = match filter {
            Some(filter) => range.filter(|slot| filter[*slot as usize]).collect(),
            None => range.collect(),
        };
        for start in (0..slots.len()).step_by(GROUP) {
            let slots = &slots[start..];
            for (&slot, sum) in slots.iter().zip(self.dots(query, &self.high, slots)) {
                let slot = slot as usize;
                if self.scales[slot] != 0.0 {
                    let error = query.error(self.coarse_errors[slot]);
                    uppers[slot - first] = query.coarse_score(sum, self.scales[slot]) + error;
                }
            }
        }
    }

    /// The intervals of some slots, from all eight bits of the codes: about .03 wide. [`Interval::NONE`] where a slot has
    /// no row.
    ///
    /// # Panics
    /// If the query has other dimensions than the rows, or a slot is not below [`len`](Self::len).
    pub(crate) fn intervals(&self, query: &QueryCodes, slots: &[u32]) -> Vec<Interval> {
        assert_eq!(query.dimensions(), self.dimensions(), "a query of other dimensions than the rows");
        let mut intervals = Vec::with_capacity(slots.len());
        while let Some(slots) = slots.get(intervals.len()..).filter(|slots| !slots.is_empty()) {
            let (high, low) = (self.dots(query, &self.high, slots), self.dots(query, &self.low, slots));
            intervals.extend(slots.iter().zip(high).zip(low).map(|((&slot, high), low)| {
                let (scale, error) = (self.scales[slot as usize], query.error(self.errors[slot as usize]));
                let score = query.score(high, low, scale);
                if scale == 0.0 { Interval::NONE } else { Interval { lower: score - error, upper: score + error } }
            }));
        }
        intervals
    }

    /// The query times the first [`GROUP`] of some rows, or as many as there are. The next ones are prefetched.
    fn dots(&self, query: &QueryCodes, rows: &[Line], slots: &[u32]) -> [i32; GROUP] {
        let mut sums = [0; GROUP];
        let out = &mut sums[..slots.len().min(GROUP)];
        self.kernel.dots(&query.codes, rows, &slots[..slots.len().min(2 * GROUP)], out);
        sums
    }
}

/// How many threads read so many bytes, the caller's included.
fn threads_for(bytes: usize) -> usize {
    // Asking the system takes longer than a small scan.
    static CORES: OnceLock<usize> = OnceLock::new();
    if bytes < 2 * BYTES_PER_THREAD {
        return 1;
    }
    let cores = *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, NonZeroUsize::get));
    cores.min(bytes / BYTES_PER_THREAD)
}
