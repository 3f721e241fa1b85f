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
    /// The most that each of some slots can score, from the upper four bits of the codes: at most about .24 above the
    /// exact score. Negative infinity where a slot has no row.
    ///
    /// # Panics
    /// If the query has other dimensions than the rows, or a slot is not below [`len`](Self::len).
    pub(crate) fn upper_bounds(&self, query: &QueryCodes, slots: &[u32]) -> Vec<f32> {
        self.upper_bounds_by(threads_for(slots.len() * width(self.dimensions())), query, slots)
    }

    /// The same on so many threads; their number does not change the result.
    pub(super) fn upper_bounds_by(&self, threads: usize, query: &QueryCodes, slots: &[u32]) -> Vec<f32> {
        assert_eq!(query.dimensions(), self.dimensions(), "a query of other dimensions than the rows");
        let mut uppers = vec![f32::NEG_INFINITY; slots.len()];
        let part = slots.len().div_ceil(GROUP).div_ceil(threads).max(1) * GROUP;
        std::thread::scope(|scope| {
            let mut parts = slots.chunks(part).zip(uppers.chunks_mut(part));
            let mine = parts.next();
            for (slots, uppers) in parts {
                scope.spawn(move || self.upper_bounds_of(query, slots, uppers));
            }
            if let Some((slots, uppers)) = mine {
                self.upper_bounds_of(query, slots, uppers);
            }
        });
        uppers
    }

    fn upper_bounds_of(&self, query: &QueryCodes, slots: &[u32], uppers: &mut [f32]) {
        for (start, uppers) in (0..).step_by(GROUP).zip(uppers.chunks_mut(GROUP)) {
            let slots = &slots[start..];
            let sums = self.dots(query, &self.high, slots);
            for ((upper, &slot), sum) in uppers.iter_mut().zip(slots).zip(sums) {
                let (scale, error) = (self.scales[slot as usize], self.coarse_errors[slot as usize]);
                if scale != 0.0 {
                    *upper = query.coarse_score(sum, scale) + query.error(error);
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
