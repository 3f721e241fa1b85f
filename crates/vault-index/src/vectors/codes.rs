//! The codes of all rows in memory, by slot, loaded block by block.

use super::block::{BLOCK_ROWS, Parts, floats};
use super::kernel::{Kernel, LINE, Line};
use super::quantize::{MAX_DIMENSIONS, width};
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
                .with_remedy("run `vault-index rebuild`"));
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
