//! The bytes of 1,024 rows as the store keeps them, and where in them one row lies.
//!
//! A block has no header; its length follows from the dimensions by `w` = [`width`], numbers are little-endian:
//!
//! ```text
//! offset                       what
//! 0                            scale of row 0, 1, …, 1023                  f32 each
//! 4·1024                       coarse error of row 0, 1, …, 1023           f32 each
//! 8·1024                       error of row 0, 1, …, 1023                  f32 each
//! 12·1024                      upper bits of the codes of row 0, 1, …      w bytes each
//! 12·1024 + 1024·w             lower bits of the codes of row 0, 1, …      w bytes each
//! 12·1024 + 2048·w             end
//! ```
//!
//! Byte `j` of a row's upper bits is `(codes[j] >> 4) + 8`, and 16 times that of `codes[w + j]`; byte
//! `j` of its lower bits is `codes[j] & 15`, and 16 times that of `codes[w + j]`; 0 where there is no
//! such code. Scale 0 means: no row here. So a block of zero bytes is an empty block, and four zero
//! bytes at [`RowPlace::scale`] remove a row. Slot `s` is row `s % 1024` of block `s / 1024`.
//! The parts of all rows lie together so that loading a block is five straight copies, and so that
//! the scan can leave the lower bits alone.

use std::ops::Range;

use super::quantize::{MAX_NORM, Quantized, width};
use crate::error::{Error, ErrorKind, Result};

/// Rows in a block, filled or not.
pub const BLOCK_ROWS: usize = 1024;

/// The length of a block's bytes.
pub const fn block_len(dimensions: usize) -> usize {
    BLOCK_ROWS * (12 + 2 * width(dimensions))
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
    pub coarse: Range<usize>,
    /// Four bytes.
    pub error: Range<usize>,
    /// Half a byte a dimension, and some more where the dimensions are odd.
    pub high: Range<usize>,
    /// As many.
    pub low: Range<usize>,
}

/// Where row `row` (below [`BLOCK_ROWS`]) of a block lies.
pub fn row_place(dimensions: usize, row: usize) -> RowPlace {
    assert!(row < BLOCK_ROWS, "row {row} of a block of {BLOCK_ROWS}");
    let width = width(dimensions);
    let range = |start: usize, len: usize| start..start + len;
    RowPlace {
        scale: range(4 * row, 4),
        coarse: range(4 * (BLOCK_ROWS + row), 4),
        error: range(4 * (2 * BLOCK_ROWS + row), 4),
        high: range(12 * BLOCK_ROWS + row * width, width),
        low: range(12 * BLOCK_ROWS + (BLOCK_ROWS + row) * width, width),
    }
}

/// What to write where to put `quantized` in as row `row` (below [`BLOCK_ROWS`]): offsets in the
/// block, and bytes. Write them in this order, or all within one transaction: the last one, the
/// scale, is what makes it a row.
pub fn row_bytes(row: usize, quantized: &Quantized) -> [(usize, Vec<u8>); 5] {
    let place = row_place(quantized.codes.len(), row);
    let [high, low] = quantized.halves();
    let number = |x: f32| x.to_le_bytes().to_vec();
    [
        (place.high.start, high),
        (place.low.start, low),
        (place.coarse.start, number(quantized.coarse)),
        (place.error.start, number(quantized.error)),
        (place.scale.start, number(quantized.scale)),
    ]
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
        let number = |at: Range<usize>| floats(&self.bytes[at]).next().unwrap_or(0.0);
        let scale = number(place.scale);
        (scale != 0.0).then(|| Quantized {
            codes: Quantized::codes_of(self.dimensions, &self.bytes[place.high], &self.bytes[place.low]),
            scale,
            error: number(place.error),
            coarse: number(place.coarse),
        })
    }

    /// Puts a row in, in place of what was there.
    ///
    /// # Panics
    /// If it has other dimensions than the block.
    pub fn set(&mut self, row: usize, quantized: &Quantized) {
        assert_eq!(quantized.codes.len(), self.dimensions, "a row of other dimensions than the block");
        for (at, bytes) in row_bytes(row, quantized) {
            self.bytes[at..][..bytes.len()].copy_from_slice(&bytes);
        }
    }

    /// Removes a row, if there is one.
    pub fn clear(&mut self, row: usize) {
        let place = row_place(self.dimensions, row);
        for range in [place.scale, place.coarse, place.error, place.high, place.low] {
            self.bytes[range].fill(0);
        }
    }
}

/// A block's bytes, checked and cut into its five parts.
pub(super) struct Parts<'a> {
    pub scales: &'a [u8],
    pub coarse: &'a [u8],
    pub errors: &'a [u8],
    pub high: &'a [u8],
    pub low: &'a [u8],
}

impl<'a> Parts<'a> {
    pub fn of(dimensions: usize, bytes: &'a [u8]) -> Result<Self> {
        let damaged = |what: String| Error::new(ErrorKind::Damaged, what).with_remedy("run `vault-index rebuild`");
        if bytes.len() != block_len(dimensions) {
            let (is, should) = (bytes.len(), block_len(dimensions));
            return Err(damaged(format!("a block of vectors has {is} bytes instead of {should}")));
        }
        let (scales, rest) = bytes.split_at(4 * BLOCK_ROWS);
        let (coarse, rest) = rest.split_at(4 * BLOCK_ROWS);
        let (errors, rest) = rest.split_at(4 * BLOCK_ROWS);
        let (high, low) = rest.split_at(rest.len() / 2);
        // A scale is at most MAX_NORM / 127, an error at most half of that for each dimension, a
        // coarse one 8 times it.
        let most = |each: f32| MAX_NORM / 127.0 * each * (dimensions as f32).sqrt() * 1.01;
        let are = |bytes, most| floats(bytes).all(|x| (0.0..=most).contains(&x));
        if are(scales, MAX_NORM / 100.0) && are(coarse, most(8.5)) && are(errors, most(1.0)) {
            Ok(Self { scales, coarse, errors, high, low })
        } else {
            Err(damaged("a block of vectors holds impossible numbers".into()))
        }
    }
}

/// Little-endian f32s, a plain copy on little-endian machines.
pub(super) fn floats(bytes: &[u8]) -> impl ExactSizeIterator<Item = f32> + '_ {
    bytes.as_chunks::<4>().0.iter().map(|&four| f32::from_le_bytes(four))
}
