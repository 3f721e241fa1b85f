//! The two passes over the codes: an upper bound for every row from four bits, an interval for some rows from eight.

use std::num::NonZeroUsize;
use std::sync::OnceLock;

use super::codes::Codes;
use super::kernel::Line;
use super::quantize::{QueryCodes, width};

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
