//! One pass over all codes: an estimated score for every row, with how far off it may be.

use super::bitmap::Bitmap;
use super::codes::Codes;
use super::quantize::QueryCodes;

/// Rows a kernel call: one word of a filter.
pub(super) const SCAN_ROWS: usize = 64;

/// An estimated score. The exact one is within `score ± error`, both ends included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The estimate; negative infinity where a slot has no row.
    pub score: f32,
    /// How far the exact score can be off; 0 where a slot has no row.
    pub error: f32,
}

impl Estimate {
    /// What a slot without a row gets.
    pub const NONE: Self = Self { score: f32::NEG_INFINITY, error: 0.0 };

    /// The least the exact score can be.
    pub fn lower(&self) -> f32 {
        self.score - self.error
    }

    /// The most the exact score can be.
    pub fn upper(&self) -> f32 {
        self.score + self.error
    }

    /// Whether the slot has a row.
    pub fn is_row(&self) -> bool {
        self.score != f32::NEG_INFINITY
    }
}

impl Codes {
    /// The estimates of all slots, in their order; `out` is emptied first and has
    /// [`len`](Self::len) entries then. One pass over memory, `len · dimensions` products.
    pub fn estimates(&self, query: &QueryCodes, out: &mut Vec<Estimate>) {
        out.clear();
        out.reserve(self.len());
        self.scan(query, None, |_, estimates| out.extend_from_slice(estimates));
    }

    /// Calls `each` with the first slot and the estimates of up to [`SCAN_ROWS`] neighbours, for
    /// all groups of them in which `filter` has a member (its other slots are estimated as well).
    pub(super) fn scan(&self, query: &QueryCodes, filter: Option<&Bitmap>, mut each: impl FnMut(usize, &[Estimate])) {
        assert_eq!(query.dimensions(), self.dimensions, "a query of other dimensions than the rows");
        let mut dots = [0; SCAN_ROWS];
        let mut estimates = [Estimate::NONE; SCAN_ROWS];
        for (group, scales) in self.scales.chunks(SCAN_ROWS).enumerate() {
            if filter.is_some_and(|filter| filter.word(group) == 0) {
                continue;
            }
            let (first, rows) = (group * SCAN_ROWS, scales.len());
            let codes = &self.codes[first * self.dimensions..][..rows * self.dimensions];
            (self.kernel.dots)(&query.codes, codes, &mut dots[..rows]);
            let errors = &self.errors[first..][..rows];
            for (((estimate, &dot), &scale), &error) in estimates.iter_mut().zip(&dots).zip(scales).zip(errors) {
                let score = dot as f32 * (query.scale * scale);
                let error = query.base + query.factor * error;
                *estimate = if scale == 0.0 { Estimate::NONE } else { Estimate { score, error } };
            }
            each(first, &estimates[..rows]);
        }
    }
}
