//! The two passes over the codes: an upper bound for every row from four bits, an interval for some rows from eight.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::OnceLock;

use super::bitmap::{Bitmap, bits};
use super::codes::Codes;
use super::quantize::{QueryCodes, width};

/// Rows of a kernel call: one word of a filter.
const GROUP: usize = 64;

/// From so many rows of a group on, all of it is read: that costs about as much as gathering them.
const DENSE: u32 = 32;

/// How many bytes a thread must have to read to be worth starting. That takes about 30 µs, so on an idle machine two
/// threads are faster than one from 10,000 rows of 384 dimensions on (2 MB). On a busy one a new thread can wait 4 ms
/// for a core, which is a bad bargain where all takes less than one: so from about 85,000 rows on.
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
    /// The most that each slot can score, from the upper four bits of the codes: at most .24 or so above the exact
    /// score. Negative infinity where a slot has no row. Slots outside of `filter` are not looked at where that saves
    /// work, and have no particular value.
    ///
    /// # Panics
    /// If the query has other dimensions than the rows.
    pub(crate) fn upper_bounds(&self, query: &QueryCodes, filter: Option<&Bitmap>) -> Vec<f32> {
        let slots = filter.map_or(self.len(), |filter| filter.count().min(self.len()));
        self.upper_bounds_by(threads_for(slots * width(self.dimensions())), query, filter)
    }

    /// The same by so many threads; their number changes nothing about the result.
    pub(super) fn upper_bounds_by(&self, threads: usize, query: &QueryCodes, filter: Option<&Bitmap>) -> Vec<f32> {
        assert_eq!(query.dimensions(), self.dimensions(), "a query of other dimensions than the rows");
        let mut uppers = vec![f32::NEG_INFINITY; self.len()];
        let part = self.len().div_ceil(GROUP).div_ceil(threads).max(1) * GROUP;
        std::thread::scope(|scope| {
            let mut parts = uppers.chunks_mut(part).enumerate();
            let mine = parts.next();
            for (i, bounds) in parts {
                scope.spawn(move || self.upper_bounds_from(i * part, query, filter, bounds));
            }
            if let Some((_, bounds)) = mine {
                self.upper_bounds_from(0, query, filter, bounds);
            }
        });
        uppers
    }

    /// The upper bounds of the slots from `first` on, a multiple of [`GROUP`].
    fn upper_bounds_from(&self, first: usize, query: &QueryCodes, filter: Option<&Bitmap>, uppers: &mut [f32]) {
        // Rows that lie apart, gathered until they fill a kernel call.
        let mut sparse: Vec<u32> = Vec::with_capacity(GROUP);
        let end = first + uppers.len();
        for start in (first..end).step_by(GROUP) {
            let rows = start..(start + GROUP).min(end);
            let all = u64::MAX >> (GROUP - rows.len());
            let wanted = filter.map_or(all, |filter| filter.word(start / GROUP) & all);
            if wanted.count_ones() >= DENSE.min(all.count_ones()) {
                let (at, len) = (start - first, rows.len());
                self.upper_bounds_of_group(query, rows, &mut uppers[at..at + len]);
                continue;
            }
            for bit in bits(wanted) {
                sparse.push((start + bit) as u32);
                if sparse.len() == GROUP {
                    self.upper_bounds_of(query, first, &sparse, uppers);
                    sparse.clear();
                }
            }
        }
        self.upper_bounds_of(query, first, &sparse, uppers);
    }

    fn upper_bounds_of_group(&self, query: &QueryCodes, rows: Range<usize>, uppers: &mut [f32]) {
        let width = width(self.dimensions());
        let mut sums = [0; GROUP];
        let sums = &mut sums[..rows.len()];
        self.kernel().dots(&query.codes, &self.high[rows.start * width..rows.end * width], sums);
        let numbers = sums.iter().zip(&self.scales[rows.clone()]).zip(&self.coarse_errors[rows]);
        for (upper, ((&sum, &scale), &error)) in uppers.iter_mut().zip(numbers) {
            let bound = query.coarse_score(sum, scale) + query.error(error);
            *upper = if scale == 0.0 { f32::NEG_INFINITY } else { bound };
        }
    }

    fn upper_bounds_of(&self, query: &QueryCodes, first: usize, slots: &[u32], uppers: &mut [f32]) {
        let mut sums = [0; GROUP];
        let sums = &mut sums[..slots.len()];
        self.kernel().dots_of(&query.codes, &self.high, slots, sums);
        for (&slot, &sum) in slots.iter().zip(&*sums) {
            let slot = slot as usize;
            if self.contains(slot) {
                let error = query.error(self.coarse_errors[slot]);
                uppers[slot - first] = query.coarse_score(sum, self.scales[slot]) + error;
            }
        }
    }

    /// The intervals of some slots that have rows, from all eight bits of the codes: about .03 wide.
    ///
    /// # Panics
    /// If the query has other dimensions than the rows, or a slot is not below [`len`](Self::len).
    pub(crate) fn intervals(&self, query: &QueryCodes, slots: &[u32]) -> Vec<Interval> {
        assert_eq!(query.dimensions(), self.dimensions(), "a query of other dimensions than the rows");
        let mut intervals = Vec::with_capacity(slots.len());
        for slots in slots.chunks(GROUP) {
            let (mut high, mut low) = ([0; GROUP], [0; GROUP]);
            self.kernel().dots_of(&query.codes, &self.high, slots, &mut high[..slots.len()]);
            self.kernel().dots_of(&query.codes, &self.low, slots, &mut low[..slots.len()]);
            intervals.extend(slots.iter().zip(high).zip(low).map(|((&slot, high), low)| {
                let score = query.score(high, low, self.scales[slot as usize]);
                let error = query.error(self.errors[slot as usize]);
                Interval { lower: score - error, upper: score + error }
            }));
        }
        intervals
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
