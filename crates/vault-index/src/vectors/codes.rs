//! The matrix in memory: one row of codes a slot, loaded from blocks by straight copies.

use super::block::{BLOCK_ROWS, Parts, floats};
use super::kernel::Kernel;
use super::quantize::{MAX_DIMENSIONS, Quantized};
use crate::error::{Error, ErrorKind, Result};

/// Slots are below this; a larger number can only come from a damaged index.
pub const MAX_SLOTS: usize = 1 << 26;

/// The codes of all rows, addressed by slot. `dimensions + 8` bytes a slot.
#[derive(Debug, Clone)]
pub struct Codes {
    pub(super) dimensions: usize,
    pub(super) kernel: Kernel,
    /// `codes.len() == scales.len() * dimensions`, `errors.len() == scales.len()`.
    pub(super) codes: Vec<i8>,
    /// 0 where a slot has no row.
    pub(super) scales: Vec<f32>,
    pub(super) errors: Vec<f32>,
}

impl Codes {
    /// No rows yet. `dimensions` is 1 to [`MAX_DIMENSIONS`].
    pub fn new(dimensions: usize) -> Self {
        assert!((1..=MAX_DIMENSIONS).contains(&dimensions), "{dimensions} dimensions");
        let (codes, scales, errors) = (Vec::new(), Vec::new(), Vec::new());
        Self { dimensions, kernel: Kernel::best(), codes, scales, errors }
    }

    /// The rows of many blocks, given as number and bytes, each number once.
    ///
    /// # Errors
    /// See [`load_block`](Self::load_block).
    pub fn with_blocks<B: AsRef<[u8]>>(
        dimensions: usize,
        blocks: impl IntoIterator<Item = (usize, B)>,
    ) -> Result<Self> {
        let mut codes = Self::new(dimensions);
        for (number, bytes) in blocks {
            codes.load_block(number, bytes.as_ref())?;
        }
        Ok(codes)
    }

    /// The same codes, scanned by another kernel. For tests and benchmarks.
    #[must_use]
    pub fn with_kernel(mut self, kernel: Kernel) -> Self {
        self.kernel = kernel;
        self
    }

    /// Makes room for `slots` slots in one go.
    pub fn reserve(&mut self, slots: usize) {
        let more = slots.min(MAX_SLOTS).saturating_sub(self.len());
        self.codes.reserve_exact(more * self.dimensions);
        self.scales.reserve_exact(more);
        self.errors.reserve_exact(more);
    }

    /// Puts in the rows of block `number`, in place of what was there. Quickest in ascending order:
    /// then it is three copies.
    ///
    /// # Errors
    /// [`ErrorKind::Damaged`] if the bytes are not those of a block (see [`Block`](super::Block)).
    pub fn load_block(&mut self, number: usize, bytes: &[u8]) -> Result<()> {
        if number >= MAX_SLOTS / BLOCK_ROWS {
            return Err(Error::new(ErrorKind::Damaged, format!("a block of vectors has the number {number}"))
                .remedy("run `vault-index rebuild`"));
        }
        let parts = Parts::of(self.dimensions, bytes)?;
        let first = number * BLOCK_ROWS;
        let codes = parts.codes.iter().map(|&byte| byte.cast_signed());
        if self.len() <= first {
            self.resize(first);
            self.scales.extend(floats(parts.scales));
            self.errors.extend(floats(parts.errors));
            self.codes.extend(codes);
        } else {
            self.resize(self.len().max(first + BLOCK_ROWS));
            let slots = first..first + BLOCK_ROWS;
            let bytes = first * self.dimensions..(first + BLOCK_ROWS) * self.dimensions;
            self.scales[slots.clone()].iter_mut().zip(floats(parts.scales)).for_each(|(to, from)| *to = from);
            self.errors[slots].iter_mut().zip(floats(parts.errors)).for_each(|(to, from)| *to = from);
            self.codes[bytes].iter_mut().zip(codes).for_each(|(to, from)| *to = from);
        }
        self.trim();
        Ok(())
    }

    /// Puts a row in, in place of what was there, and returns its codes as they are to be stored.
    /// Slots up to it come into being without rows.
    ///
    /// # Errors
    /// [`ErrorKind::Model`] if the row has other dimensions or cannot be quantised (see
    /// [`Quantized::new`]). [`ErrorKind::Damaged`] if the slot is not below [`MAX_SLOTS`].
    pub fn set(&mut self, slot: usize, row: &[f32]) -> Result<Quantized> {
        self.check(slot, row.len())?;
        let quantized = Quantized::new(row)?;
        self.set_quantized(slot, &quantized)?;
        Ok(quantized)
    }

    /// [`set`](Self::set) for a row that has been quantised before.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    pub fn set_quantized(&mut self, slot: usize, row: &Quantized) -> Result<()> {
        self.check(slot, row.codes.len())?;
        self.resize(self.len().max(slot + 1));
        self.codes[slot * self.dimensions..][..self.dimensions].copy_from_slice(&row.codes);
        self.errors[slot] = row.error;
        self.scales[slot] = row.scale;
        Ok(())
    }

    /// Removes the row of a slot, if there is one. From then on it matches nothing.
    pub fn clear(&mut self, slot: usize) {
        if slot < self.len() {
            self.scales[slot] = 0.0;
            self.errors[slot] = 0.0;
            self.codes[slot * self.dimensions..][..self.dimensions].fill(0);
            self.trim();
        }
    }

    /// The number of slots: one more than the highest that has a row.
    pub fn len(&self) -> usize {
        self.scales.len()
    }

    /// Whether there is no row at all.
    pub fn is_empty(&self) -> bool {
        self.scales.is_empty()
    }

    /// Whether a slot has a row.
    pub fn contains(&self, slot: usize) -> bool {
        self.scales.get(slot).is_some_and(|&scale| scale != 0.0)
    }

    /// The number of rows. Linear in the number of slots.
    pub fn rows(&self) -> usize {
        self.scales.iter().filter(|&&scale| scale != 0.0).count()
    }

    /// The length of every row.
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// The kernel that scans.
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    fn check(&self, slot: usize, dimensions: usize) -> Result<()> {
        if dimensions != self.dimensions {
            let message = format!("a vector of {dimensions} dimensions among vectors of {}", self.dimensions);
            return Err(Error::new(ErrorKind::Model, message).remedy("run `vault-index rebuild`"));
        }
        if slot >= MAX_SLOTS {
            return Err(
                Error::new(ErrorKind::Damaged, format!("a vector in slot {slot}")).remedy("run `vault-index rebuild`")
            );
        }
        Ok(())
    }

    fn resize(&mut self, slots: usize) {
        self.scales.resize(slots, 0.0);
        self.errors.resize(slots, 0.0);
        self.codes.resize(slots * self.dimensions, 0);
    }

    /// Cuts slots without rows off the end.
    fn trim(&mut self) {
        let slots = self.scales.iter().rposition(|&scale| scale != 0.0).map_or(0, |last| last + 1);
        self.scales.truncate(slots);
        self.errors.truncate(slots);
        self.codes.truncate(slots * self.dimensions);
    }
}
