//! The matrix in memory: one row of codes a slot, loaded from blocks by straight copies.

use super::block::{BLOCK_ROWS, Parts, floats};
use super::kernel::Kernel;
use super::plane::Plane;
use super::quantize::{MAX_DIMENSIONS, width};
use crate::error::{Error, ErrorKind, Result};

/// Slots are below this; a larger number can only come from a damaged index.
pub(crate) const MAX_SLOTS: usize = 1 << 26;

/// The codes of all rows, addressed by slot. `dimensions + 12` bytes a slot.
#[derive(Debug, Clone)]
pub(crate) struct Codes {
    dimensions: usize,
    kernel: Kernel,
    /// The upper bits of the codes, [`width`] bytes a slot, so that the scan can leave the lower ones alone.
    pub(super) high: Plane,
    /// The lower bits, as many.
    pub(super) low: Plane,
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
            high: Plane::default(),
            low: Plane::default(),
            scales: Vec::new(),
            coarse_errors: Vec::new(),
            errors: Vec::new(),
        }
    }

    /// The same codes, scanned by another kernel.
    #[cfg(test)]
    pub(crate) fn with_kernel(mut self, kernel: Kernel) -> Self {
        self.kernel = kernel;
        self
    }

    /// Makes room for `slots` slots in one go.
    pub(crate) fn reserve(&mut self, slots: usize) {
        let slots = slots.min(MAX_SLOTS);
        for numbers in [&mut self.scales, &mut self.coarse_errors, &mut self.errors] {
            numbers.reserve_exact(slots.saturating_sub(numbers.len()));
        }
        self.high.reserve(slots * width(self.dimensions));
        self.low.reserve(slots * width(self.dimensions));
    }

    /// Puts in the rows of block `number`, in place of what was there. Quickest in ascending order: then it is five
    /// copies.
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
        if self.len() <= first {
            self.resize(first);
            self.scales.extend(floats(parts.scales));
            self.coarse_errors.extend(floats(parts.coarse_errors));
            self.errors.extend(floats(parts.errors));
            self.high.extend(parts.high);
            self.low.extend(parts.low);
        } else {
            self.resize(self.len().max(first + BLOCK_ROWS));
            let put = |to: &mut [f32], from| to[first..].iter_mut().zip(floats(from)).for_each(|(to, from)| *to = from);
            put(&mut self.scales, parts.scales);
            put(&mut self.coarse_errors, parts.coarse_errors);
            put(&mut self.errors, parts.errors);
            let bytes = first * width(self.dimensions);
            self.high[bytes..][..parts.high.len()].copy_from_slice(parts.high);
            self.low[bytes..][..parts.low.len()].copy_from_slice(parts.low);
        }
        self.trim();
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

    /// The kernel that scans.
    pub(super) fn kernel(&self) -> Kernel {
        self.kernel
    }

    fn resize(&mut self, slots: usize) {
        for numbers in [&mut self.scales, &mut self.coarse_errors, &mut self.errors] {
            numbers.resize(slots, 0.0);
        }
        self.high.resize(slots * width(self.dimensions));
        self.low.resize(slots * width(self.dimensions));
    }

    /// Cuts slots without rows off the end.
    fn trim(&mut self) {
        self.resize(self.scales.iter().rposition(|&scale| scale != 0.0).map_or(0, |last| last + 1));
    }
}
