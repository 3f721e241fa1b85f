//! One pass over codes: an estimated score for every row, with how far off it may be.

use std::ops::Range;
use std::slice;

use super::block::{Parts, floats};
use super::codes::Codes;
use super::kernel::Kernel;
use super::quantize::{QueryCodes, width};
use super::threads::Threads;
use crate::error::Result;

/// Rows a kernel call: one word of a filter.
pub(super) const GROUP: usize = 64;

/// Rows that all queries look at before any goes on: their codes stay in the second cache meanwhile.
const SHARED: usize = 16 * GROUP;

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

/// How close estimates are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// From 4 bits a dimension: within about 0.12 of the exact score. Reads half as many bytes.
    Coarse,
    /// From 8 bits a dimension: within about 0.015.
    Fine,
}

impl Codes {
    /// The estimates of all slots, in their order; `out` has [`len`](Self::len) entries then,
    /// whatever it had before. One pass over memory, `len · dimensions` products.
    ///
    /// # Panics
    /// If the query has other dimensions.
    pub fn estimates(&self, query: &QueryCodes, precision: Precision, threads: Threads, out: &mut Vec<Estimate>) {
        self.estimates_many(slice::from_ref(query), precision, threads, slice::from_mut(out));
    }

    /// [`estimates`](Self::estimates) for many queries at once, in their order: one pass over memory for all.
    ///
    /// # Panics
    /// If a query has other dimensions, or `outs` another length than `queries`.
    pub fn estimates_many(
        &self,
        queries: &[QueryCodes],
        precision: Precision,
        threads: Threads,
        outs: &mut [Vec<Estimate>],
    ) {
        assert_eq!(queries.len(), outs.len(), "one list of estimates a query");
        for query in queries {
            assert_eq!(query.dimensions(), self.dimensions(), "a query of other dimensions than the rows");
        }
        let rows = self.as_rows();
        let bytes = queries.len() * rows.high.len() * if precision == Precision::Fine { 2 } else { 1 };
        let part = rows.groups().div_ceil(threads.for_bytes(bytes)).max(1) * GROUP;
        let mut parts: Vec<Vec<&mut [Estimate]>> = Vec::new();
        parts.resize_with(rows.len().div_ceil(part), Vec::new);
        for out in outs {
            out.resize(rows.len(), Estimate::NONE);
            parts.iter_mut().zip(out.chunks_mut(part)).for_each(|(part, out)| part.push(out));
        }
        std::thread::scope(|scope| {
            let mut parts = parts.into_iter().enumerate().map(|(i, outs)| {
                let len = outs.first().map_or(0, |out| out.len());
                (rows.part(i * part..i * part + len), outs)
            });
            let mine = parts.next();
            for (rows, outs) in parts {
                scope.spawn(move || rows.estimates_many(self.kernel(), queries, precision, outs));
            }
            if let Some((rows, outs)) = mine {
                rows.estimates_many(self.kernel(), queries, precision, outs);
            }
        });
    }

    /// The [`Fine`](Precision::Fine) estimate of one slot.
    ///
    /// # Panics
    /// If the query has other dimensions.
    pub fn estimate(&self, query: &QueryCodes, slot: usize) -> Estimate {
        assert_eq!(query.dimensions(), self.dimensions(), "a query of other dimensions than the rows");
        if !self.contains(slot) {
            return Estimate::NONE;
        }
        let (rows, mut sums) = (self.as_rows(), [[0]; 2]);
        for (half, sum) in [rows.high, rows.low].into_iter().zip(&mut sums) {
            self.kernel().dots(&query.codes, &half[slot * rows.width..][..rows.width], sum);
        }
        let score = query.score(sums[0][0], sums[1][0], rows.scales[slot]);
        Estimate { score, error: query.error(rows.errors[slot]) }
    }
}

/// The [`Fine`](Precision::Fine) estimates of the rows in a block, as [`Block`](super::Block) describes its bytes,
/// without loading it into [`Codes`]: for a process that asks once. They are added to `out`, one a row, in their order.
///
/// # Errors
/// [`ErrorKind::Damaged`](crate::ErrorKind::Damaged) if the bytes are not those of a block for the query's dimensions.
pub fn block_estimates(query: &QueryCodes, block: &[u8], out: &mut Vec<Estimate>) -> Result<()> {
    let mut numbers = Numbers::default();
    let (rows, before) = (numbers.rows(0, query, block)?, out.len());
    out.resize(before + rows.len(), Estimate::NONE);
    rows.estimates(Kernel::best(), query, Precision::Fine, &mut out[before..]);
    Ok(())
}

/// Rows that lie one after the other, in a matrix or in the bytes of a block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rows<'a> {
    /// Bytes of a row in `high`, and in `low`.
    pub width: usize,
    /// The slot of the first row; a multiple of [`GROUP`].
    pub first: usize,
    pub high: &'a [u8],
    pub low: &'a [u8],
    pub scales: &'a [f32],
    pub coarse: &'a [f32],
    pub errors: &'a [f32],
}

impl<'a> Rows<'a> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.scales.len()
    }

    /// How many groups of [`GROUP`] rows there are, the last one perhaps shorter.
    pub fn groups(&self) -> usize {
        self.len().div_ceil(GROUP)
    }

    /// The rows of a group.
    pub fn group(&self, group: usize) -> Range<usize> {
        group * GROUP..((group + 1) * GROUP).min(self.len())
    }

    /// The bytes of some rows in `high` and `low`.
    pub fn bytes(&self, rows: &Range<usize>) -> Range<usize> {
        rows.start * self.width..rows.end * self.width
    }

    /// Some of them, from a row that is a multiple of [`GROUP`].
    fn part(&self, rows: Range<usize>) -> Rows<'a> {
        let bytes = self.bytes(&rows);
        Rows {
            width: self.width,
            first: self.first + rows.start,
            high: &self.high[bytes.clone()],
            low: &self.low[bytes],
            scales: &self.scales[rows.clone()],
            coarse: &self.coarse[rows.clone()],
            errors: &self.errors[rows],
        }
    }

    /// Their estimates for each query.
    fn estimates_many(
        &self,
        kernel: Kernel,
        queries: &[QueryCodes],
        precision: Precision,
        mut outs: Vec<&mut [Estimate]>,
    ) {
        for from in (0..self.len()).step_by(SHARED) {
            let shared = from..(from + SHARED).min(self.len());
            for (query, out) in queries.iter().zip(&mut outs) {
                self.part(shared.clone()).estimates(kernel, query, precision, &mut out[shared.clone()]);
            }
        }
    }

    /// Their estimates; `out` is as long, and holds [`Estimate::NONE`] or estimates of before.
    fn estimates(&self, kernel: Kernel, query: &QueryCodes, precision: Precision, out: &mut [Estimate]) {
        let (mut high, mut low) = ([0; GROUP], [0; GROUP]);
        for (group, out) in out.chunks_mut(GROUP).enumerate() {
            let rows = self.group(group);
            let bytes = self.bytes(&rows);
            kernel.dots(&query.codes, &self.high[bytes.clone()], &mut high[..rows.len()]);
            if precision == Precision::Fine {
                kernel.dots(&query.codes, &self.low[bytes], &mut low[..rows.len()]);
            }
            let errors = match precision {
                Precision::Coarse => &self.coarse[rows.clone()],
                Precision::Fine => &self.errors[rows.clone()],
            };
            let numbers = high.iter().zip(&low).zip(&self.scales[rows]).zip(errors);
            for (out, (((&high, &low), &scale), &error)) in out.iter_mut().zip(numbers) {
                let score = match precision {
                    Precision::Coarse => query.coarse_score(high, scale),
                    Precision::Fine => query.score(high, low, scale),
                };
                let estimate = Estimate { score, error: query.error(error) };
                *out = if scale == 0.0 { Estimate::NONE } else { estimate };
            }
        }
    }
}

/// The numbers of a block, in memory as a scan wants them; kept from block to block.
#[derive(Debug, Clone, Default)]
pub(super) struct Numbers {
    scales: Vec<f32>,
    coarse: Vec<f32>,
    errors: Vec<f32>,
}

impl Numbers {
    /// The rows of a block whose first row is in slot `first`.
    pub fn rows<'a>(&'a mut self, first: usize, query: &QueryCodes, block: &'a [u8]) -> Result<Rows<'a>> {
        let parts = Parts::of(query.dimensions(), block)?;
        for (to, from) in
            [(&mut self.scales, parts.scales), (&mut self.coarse, parts.coarse), (&mut self.errors, parts.errors)]
        {
            to.clear();
            to.extend(floats(from));
        }
        Ok(Rows {
            width: width(query.dimensions()),
            first,
            high: parts.high,
            low: parts.low,
            scales: &self.scales,
            coarse: &self.coarse,
            errors: &self.errors,
        })
    }
}
