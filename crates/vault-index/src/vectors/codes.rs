//! The matrix in memory: one row of codes a slot, loaded from blocks by straight copies.

use super::block::{BLOCK_ROWS, Parts, floats};
use super::kernel::Kernel;
use super::plane::Plane;
use super::quantize::{MAX_DIMENSIONS, Quantized, width};
use super::scan::Rows;
use crate::error::{Error, ErrorKind, Result};

/// Slots are below this; a larger number can only come from a damaged index.
pub const MAX_SLOTS: usize = 1 << 26;

/// The codes of all rows, addressed by slot. `dimensions + 12` bytes a slot.
#[derive(Debug, Clone)]
pub struct Codes {
    dimensions: usize,
    kernel: Kernel,
    /// The upper bits of the codes, [`width`] bytes a slot, so that the scan can leave the lower ones alone.
    pub(super) high: Plane,
    /// The lower bits, as many.
    pub(super) low: Plane,
    /// 0 where a slot has no row. One a slot, as are the next two.
    pub(super) scales: Vec<f32>,
    pub(super) coarse: Vec<f32>,
    pub(super) errors: Vec<f32>,
}

impl Codes {
    /// No rows yet. `dimensions` is 1 to [`MAX_DIMENSIONS`].
    pub fn new(dimensions: usize) -> Self {
        assert!((1..=MAX_DIMENSIONS).contains(&dimensions), "{dimensions} dimensions");
        Self {
            dimensions,
            kernel: Kernel::best(),
            high: Plane::default(),
            low: Plane::default(),
            scales: Vec::new(),
            coarse: Vec::new(),
            errors: Vec::new(),
        }
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
        let slots = slots.min(MAX_SLOTS);
        for numbers in [&mut self.scales, &mut self.coarse, &mut self.errors] {
            numbers.reserve_exact(slots.saturating_sub(numbers.len()));
        }
        self.high.reserve(slots * width(self.dimensions));
        self.low.reserve(slots * width(self.dimensions));
    }

    /// Puts in the rows of block `number`, in place of what was there. Quickest in ascending order:
    /// then it is five copies.
    ///
    /// # Errors
    /// [`ErrorKind::Damaged`] if the bytes are not those of a block (see [`Block`](super::Block)).
    pub fn load_block(&mut self, number: usize, bytes: &[u8]) -> Result<()> {
        if number >= MAX_SLOTS / BLOCK_ROWS {
            return Err(Error::new(ErrorKind::Damaged, format!("a block of vectors has the number {number}"))
                .with_remedy("run `vault-index rebuild`"));
        }
        let parts = Parts::of(self.dimensions, bytes)?;
        let first = number * BLOCK_ROWS;
        if self.len() <= first {
            self.resize(first);
            self.scales.extend(floats(parts.scales));
            self.coarse.extend(floats(parts.coarse));
            self.errors.extend(floats(parts.errors));
            self.high.extend(parts.high);
            self.low.extend(parts.low);
        } else {
            self.resize(self.len().max(first + BLOCK_ROWS));
            let put = |to: &mut [f32], from| to[first..].iter_mut().zip(floats(from)).for_each(|(to, from)| *to = from);
            put(&mut self.scales, parts.scales);
            put(&mut self.coarse, parts.coarse);
            put(&mut self.errors, parts.errors);
            let bytes = first * width(self.dimensions);
            self.high[bytes..][..parts.high.len()].copy_from_slice(parts.high);
            self.low[bytes..][..parts.low.len()].copy_from_slice(parts.low);
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
        let width = width(self.dimensions);
        let [high, low] = row.halves();
        self.high[slot * width..][..width].copy_from_slice(&high);
        self.low[slot * width..][..width].copy_from_slice(&low);
        self.coarse[slot] = row.coarse;
        self.errors[slot] = row.error;
        self.scales[slot] = row.scale;
        Ok(())
    }

    /// Removes the row of a slot, if there is one. From then on it matches nothing.
    pub fn clear(&mut self, slot: usize) {
        if slot < self.len() {
            let width = width(self.dimensions);
            self.scales[slot] = 0.0;
            self.coarse[slot] = 0.0;
            self.errors[slot] = 0.0;
            self.high[slot * width..][..width].fill(0);
            self.low[slot * width..][..width].fill(0);
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

    /// All of them, to be scanned.
    pub(super) fn as_rows(&self) -> Rows<'_> {
        Rows {
            width: width(self.dimensions),
            first: 0,
            high: &self.high,
            low: &self.low,
            scales: &self.scales,
            coarse: &self.coarse,
            errors: &self.errors,
        }
    }

    fn check(&self, slot: usize, dimensions: usize) -> Result<()> {
        if dimensions != self.dimensions {
            let message = format!("a vector of {dimensions} dimensions among vectors of {}", self.dimensions);
            return Err(Error::new(ErrorKind::Model, message).with_remedy("run `vault-index rebuild`"));
        }
        if slot >= MAX_SLOTS {
            return Err(Error::new(ErrorKind::Damaged, format!("a vector in slot {slot}"))
                .with_remedy("run `vault-index rebuild`"));
        }
        Ok(())
    }

    fn resize(&mut self, slots: usize) {
        for numbers in [&mut self.scales, &mut self.coarse, &mut self.errors] {
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
