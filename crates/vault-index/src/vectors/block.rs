//! The bytes of 1,024 rows as the store keeps them, and where in them one row lies.
//!
//! A block has no header; its length follows from the dimensions `d`, numbers are little-endian:
//!
//! ```text
//! offset                       what
//! 0                            scale of row 0, 1, …, 1023     f32 each
//! 4·1024                       error of row 0, 1, …, 1023     f32 each
//! 8·1024                       codes of row 0, 1, …, 1023     d × i8 each
//! 8·1024 + 1024·d              end
//! ```
//!
//! Scale 0 means: no row here. So a block of zero bytes is an empty block, and four zero bytes at
//! [`RowPlace::scale`] remove a row. Slot `s` is row `s % 1024` of block `s / 1024`.
//! The parts of all rows lie together so that loading a block is three straight copies.

use std::ops::Range;

use super::quantize::{MAX_NORM, Quantized};
use crate::error::{Error, ErrorKind, Result};

/// Rows in a block, filled or not.
pub const BLOCK_ROWS: usize = 1024;

/// The length of a block's bytes.
pub const fn block_len(dimensions: usize) -> usize {
    BLOCK_ROWS * (8 + dimensions)
}

/// The block and the row in it of a slot.
pub const fn place(slot: usize) -> (usize, usize) {
    (slot / BLOCK_ROWS, slot % BLOCK_ROWS)
}

/// The byte ranges of one row in its block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowPlace {
    /// Four bytes; zero them to remove the row.
    pub scale: Range<usize>,
    /// Four bytes.
    pub error: Range<usize>,
    /// One byte a dimension.
    pub codes: Range<usize>,
}

/// Where row `row` (below [`BLOCK_ROWS`]) of a block lies. When writing a row in place, write the
/// scale last, or all within one transaction: the scale is what makes it a row.
pub fn row_place(dimensions: usize, row: usize) -> RowPlace {
    assert!(row < BLOCK_ROWS, "row {row} of a block of {BLOCK_ROWS}");
    let range = |start: usize, len: usize| start..start + len;
    RowPlace {
        scale: range(4 * row, 4),
        error: range(4 * (BLOCK_ROWS + row), 4),
        codes: range(8 * BLOCK_ROWS + row * dimensions, dimensions),
    }
}

/// A whole block, to be built or changed in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    dimensions: usize,
    bytes: Vec<u8>,
}

impl Block {
    /// A block without rows.
    pub fn new(dimensions: usize) -> Self {
        Self { dimensions, bytes: vec![0; block_len(dimensions)] }
    }

    /// A block from its bytes.
    ///
    /// # Errors
    /// [`ErrorKind::Damaged`] if these are not the bytes of a block of so many dimensions.
    pub fn from_bytes(dimensions: usize, bytes: Vec<u8>) -> Result<Self> {
        Parts::of(dimensions, &bytes)?;
        Ok(Self { dimensions, bytes })
    }

    /// Its bytes, [`block_len`] of them.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Row `row`, if there is one.
    pub fn row(&self, row: usize) -> Option<Quantized> {
        let place = row_place(self.dimensions, row);
        let scale = f32_at(&self.bytes[place.scale]);
        (scale != 0.0).then(|| Quantized {
            scale,
            error: f32_at(&self.bytes[place.error]),
            codes: self.bytes[place.codes].iter().map(|&byte| byte.cast_signed()).collect(),
        })
    }

    /// Puts a row in, in place of what was there. It has the block's dimensions.
    pub fn set(&mut self, row: usize, quantized: &Quantized) {
        let place = row_place(self.dimensions, row);
        self.bytes[place.codes].copy_from_slice(&quantized.code_bytes());
        self.bytes[place.error].copy_from_slice(&quantized.error.to_le_bytes());
        self.bytes[place.scale].copy_from_slice(&quantized.scale.to_le_bytes());
    }

    /// Removes a row, if there is one.
    pub fn clear(&mut self, row: usize) {
        let place = row_place(self.dimensions, row);
        self.bytes[place.scale].fill(0);
        self.bytes[place.error].fill(0);
        self.bytes[place.codes].fill(0);
    }
}

/// A block's bytes, checked and cut into its three parts.
pub(super) struct Parts<'a> {
    pub scales: &'a [u8],
    pub errors: &'a [u8],
    pub codes: &'a [u8],
}

impl<'a> Parts<'a> {
    pub fn of(dimensions: usize, bytes: &'a [u8]) -> Result<Self> {
        let damaged = |what: String| Error::new(ErrorKind::Damaged, what).remedy("run `vault-index rebuild`");
        if bytes.len() != block_len(dimensions) {
            let (is, should) = (bytes.len(), block_len(dimensions));
            return Err(damaged(format!("a block of vectors has {is} bytes instead of {should}")));
        }
        let (scales, rest) = bytes.split_at(4 * BLOCK_ROWS);
        let (errors, codes) = rest.split_at(4 * BLOCK_ROWS);
        // A scale is at most MAX_NORM / 127 and an error at most MAX_NORM; zero rows have scale 1.
        let most = MAX_NORM * 2.0;
        if floats(scales).chain(floats(errors)).all(|x| (0.0..=most).contains(&x)) {
            Ok(Self { scales, errors, codes })
        } else {
            Err(damaged("a block of vectors holds impossible numbers".into()))
        }
    }
}

/// Little-endian f32s, a plain copy on little-endian machines.
pub(super) fn floats(bytes: &[u8]) -> impl ExactSizeIterator<Item = f32> + '_ {
    bytes.as_chunks::<4>().0.iter().map(|&four| f32::from_le_bytes(four))
}

fn f32_at(four: &[u8]) -> f32 {
    f32::from_le_bytes([four[0], four[1], four[2], four[3]])
}
