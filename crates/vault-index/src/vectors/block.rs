//! The bytes of 1,024 rows in the store, and the offsets of one row in them.
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
//! Byte `j` of a row's upper bits is `(codes[j] >> 4) + 8`, plus 16 times that of `codes[w + j]`; byte `j` of its lower
//! bits is `codes[j] & 15`, plus 16 times that of `codes[w + j]`; 0 if there is no such code. Scale 0 means that there
//! is no row. So a block of zero bytes is an empty block, and four zero bytes at [`RowOffsets::scale`] remove a row.
//! Slot `s` is row `s % 1024` of block `s / 1024`. Each part is stored for all rows together, so that loading a block
//! is five contiguous copies, and the scan can skip the lower bits.

use std::ops::Range;

use super::quantize::{MAX_NORM, QuantizedRow, width};
use crate::error::{Error, ErrorKind, Result};

/// The number of rows in a block, filled or not.
pub(crate) const BLOCK_ROWS: usize = 1024;

/// The length of a block's bytes.
pub(crate) const fn block_len(dimensions: usize) -> usize {
    BLOCK_ROWS * (12 + 2 * width(dimensions))
}

/// The block of a slot, and its row in the block.
pub(crate) const fn block_and_row(slot: usize) -> (usize, usize) {
    (slot / BLOCK_ROWS, slot % BLOCK_ROWS)
}

/// The byte ranges of one row in its block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowOffsets {
    /// Four bytes; set them to zero to remove the row.
    pub scale: Range<usize>,
    /// Four bytes.
    pub coarse_error: Range<usize>,
    /// Four bytes.
    pub error: Range<usize>,
    /// Half a byte per dimension, rounded up (see [`width`]).
    pub high: Range<usize>,
    /// The same number of bytes.
    pub low: Range<usize>,
}

/// The byte ranges of row `row` (below [`BLOCK_ROWS`]) in its block.
pub(crate) fn row_offsets(dimensions: usize, row: usize) -> RowOffsets {
    assert!(row < BLOCK_ROWS, "row {row} of a block of {BLOCK_ROWS}");
    let width = width(dimensions);
    let range = |start: usize, len: usize| start..start + len;
    RowOffsets {
        scale: range(4 * row, 4),
        coarse_error: range(4 * (BLOCK_ROWS + row), 4),
        error: range(4 * (2 * BLOCK_ROWS + row), 4),
        high: range(12 * BLOCK_ROWS + row * width, width),
        low: range(12 * BLOCK_ROWS + (BLOCK_ROWS + row) * width, width),
    }
}

/// The writes that store `quantized` as row `row` (below [`BLOCK_ROWS`]): offsets in the block, and bytes. Write them
/// in this order, or in one transaction, because the last one, the scale, makes the row valid.
pub(crate) fn row_bytes(row: usize, quantized: &QuantizedRow) -> [(usize, Vec<u8>); 5] {
    let offsets = row_offsets(quantized.codes.len(), row);
    let [high, low] = quantized.halves();
    let number = |x: f32| x.to_le_bytes().to_vec();
    [
        (offsets.high.start, high),
        (offsets.low.start, low),
        (offsets.coarse_error.start, number(quantized.coarse_error)),
        (offsets.error.start, number(quantized.error)),
        (offsets.scale.start, number(quantized.scale)),
    ]
}

/// A whole block in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    dimensions: usize,
    bytes: Vec<u8>,
}

impl Block {
    /// Creates a block from its bytes.
    ///
    /// # Errors
    /// [`ErrorKind::Damaged`] if the bytes are not those of a block with this number of dimensions.
    pub(crate) fn from_bytes(dimensions: usize, bytes: Vec<u8>) -> Result<Self> {
        Parts::of(dimensions, &bytes)?;
        Ok(Self { dimensions, bytes })
    }

    /// Returns row `row`, if it exists.
    pub(crate) fn row(&self, row: usize) -> Option<QuantizedRow> {
        let offsets = row_offsets(self.dimensions, row);
        let number = |at: Range<usize>| floats(&self.bytes[at]).next().unwrap_or(0.0);
        let scale = number(offsets.scale);
        (scale != 0.0).then(|| QuantizedRow {
            codes: QuantizedRow::codes_of(self.dimensions, &self.bytes[offsets.high], &self.bytes[offsets.low]),
            scale,
            error: number(offsets.error),
            coarse_error: number(offsets.coarse_error),
        })
    }
}

/// A block's bytes, checked and split into its five parts.
pub(super) struct Parts<'a> {
    pub scales: &'a [u8],
    pub coarse_errors: &'a [u8],
    pub errors: &'a [u8],
    pub high: &'a [u8],
    pub low: &'a [u8],
}

impl<'a> Parts<'a> {
    pub fn of(dimensions: usize, bytes: &'a [u8]) -> Result<Self> {
        let damaged =
            |what: String| Error::new(ErrorKind::Damaged, what).with_remedy("run `vault-index check --repair`");
        if bytes.len() != block_len(dimensions) {
            let (is, should) = (bytes.len(), block_len(dimensions));
            return Err(damaged(format!("a block of vectors has {is} bytes instead of {should}")));
        }
        let (scales, rest) = bytes.split_at(4 * BLOCK_ROWS);
        let (coarse_errors, rest) = rest.split_at(4 * BLOCK_ROWS);
        let (errors, rest) = rest.split_at(4 * BLOCK_ROWS);
        let (high, low) = rest.split_at(rest.len() / 2);
        // A scale is at most MAX_NORM / 127, an error at most half of that for each dimension, a
        // coarse one 8 times it.
        let most = |each: f32| MAX_NORM / 127.0 * each * (dimensions as f32).sqrt() * 1.01;
        let are = |bytes, most| floats(bytes).all(|x| (0.0..=most).contains(&x));
        if are(scales, MAX_NORM / 100.0) && are(coarse_errors, most(8.5)) && are(errors, most(1.0)) {
            Ok(Self { scales, coarse_errors, errors, high, low })
        } else {
            Err(damaged("a block of vectors holds impossible numbers".into()))
        }
    }
}

/// Converts little-endian f32s, which is a plain copy on little-endian machines.
pub(super) fn floats(bytes: &[u8]) -> impl ExactSizeIterator<Item = f32> + '_ {
    bytes.as_chunks::<4>().0.iter().map(|&four| f32::from_le_bytes(four))
}
