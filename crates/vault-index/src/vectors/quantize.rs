//! Converts vectors and queries to int8 codes with proven error bounds, and computes exact scores.
//!
//! `codes[i] = round(v[i] / scale)` with `scale = max|v[i]| / 127`, so codes are in -127..=127. The upper four bits of
//! a code are a coarser code: `v[i] ≈ scale · (16 · (codes[i] >> 4) + 7.5)`. A bound is `‖v − v̂‖₂` in f64, where each
//! `v̂[i]` is exact (24 + 8 bits), increased by more than the error of f64 and rounded up to f32.

use super::kernel::LINE;
use crate::error::{Error, ErrorKind, Result};

/// The most dimensions of a vector: `127 · 128 · 2¹⁶` fits an i32.
pub(crate) const MAX_DIMENSIONS: usize = 1 << 16;

/// The largest length of a row. Rows have unit length up to rounding. The error bound relies on this, so longer ones
/// are rejected.
pub(crate) const MAX_NORM: f32 = 1.001;

/// Queries have unit length, too; this limit only keeps scores away from the ends of f32.
const MAX_QUERY_NORM: f64 = 1e6;

/// If the largest component is below this, the scale is computed from this value, because it would be subnormal
/// otherwise.
const TINY: f32 = 1e-30;

/// The middle of the lower four bits.
const MIDDLE: f64 = 7.5;

/// The bytes of half a row, the upper or the lower bits of its codes: two codes a byte, in whole [`LINE`]s.
pub(super) const fn width(dimensions: usize) -> usize {
    dimensions.div_ceil(2).next_multiple_of(LINE)
}

/// One stored row: codes, scale and error bounds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct QuantizedRow {
    /// One code per dimension, in -127..=127.
    pub codes: Vec<i8>,
    /// The row is approximately `scale · codes`. Above zero, because 0 marks a slot without a row.
    pub scale: f32,
    /// At least `‖row − scale·codes‖₂`.
    pub error: f32,
    /// At least `‖row − scale·(16·(codes >> 4) + 7.5)‖₂`.
    pub coarse_error: f32,
}

impl QuantizedRow {
    /// Computes the codes of `row`. A row of zeros is valid and scores 0 with every query.
    ///
    /// # Errors
    /// [`ErrorKind::Model`] if the row is empty or over [`MAX_DIMENSIONS`] long, contains NaN or infinity, or is longer
    /// than [`MAX_NORM`].
    pub(crate) fn new(row: &[f32]) -> Result<Self> {
        let norm = checked_norm(row)?;
        if norm > f64::from(MAX_NORM) {
            return Err(bad(format!("a vector of length {norm:.3}; vectors must be of length 1")));
        }
        let (codes, scale, error) = quantize(row);
        let coarse_error = distance(row, scale, codes.iter().map(|&code| 16.0 * f64::from(code >> 4) + MIDDLE));
        Ok(Self { codes, scale, error, coarse_error })
    }

    /// The upper and the lower four bits of the codes, [`width`] bytes each: byte `j` has those of code `j` in its
    /// lower half and those of code `width + j` in its upper half. Upper bits are stored plus 8, so that all are in
    /// 0..=15; a missing code is 0.
    pub(super) fn halves(&self) -> [Vec<u8>; 2] {
        let width = width(self.codes.len());
        let (first, second) = self.codes.split_at(width.min(self.codes.len()));
        let half = |of: fn(i8) -> u8| {
            let mut bytes = vec![0; width];
            bytes.iter_mut().zip(first).for_each(|(byte, &code)| *byte = of(code));
            bytes.iter_mut().zip(second).for_each(|(byte, &code)| *byte |= of(code) << 4);
            bytes
        };
        [half(|code| ((code >> 4) + 8).cast_unsigned()), half(|code| code.cast_unsigned() & 15)]
    }

    /// The codes with these [`halves`](Self::halves).
    pub(super) fn codes_of(dimensions: usize, high: &[u8], low: &[u8]) -> Vec<i8> {
        let code = |high: u8, low: u8| (high << 4 | low).wrapping_sub(128).cast_signed();
        let first = high.iter().zip(low).map(|(high, low)| code(high & 15, low & 15));
        let second = high.iter().zip(low).map(|(high, low)| code(high >> 4, low >> 4));
        first.chain(second).take(dimensions).collect()
    }
}

/// A query, prepared for scanning: its codes, and the values for estimates and their bounds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct QueryCodes {
    dimensions: usize,
    /// In the order of a row's halves, with zeros for missing dimensions: `2 · width` of them.
    pub(super) codes: Vec<i8>,
    scale: f32,
    /// 128 times the sum of the codes: the contribution of the upper bits' plus 8 to a sum of products.
    offset: i32,
    /// [`MIDDLE`] times the sum of the codes: the approximate contribution of lower bits that are not read.
    middle: f32,
    /// An estimate is off by at most `base + factor · e`, where `e` is the row's stored error.
    base: f32,
    factor: f32,
}

impl QueryCodes {
    /// Computes the codes of `query`. Its length is usually 1, but any length up to a million is valid, including zero.
    ///
    /// # Errors
    /// [`ErrorKind::Model`] if it is empty or over [`MAX_DIMENSIONS`] long, contains NaN or infinity, or is longer than
    /// a million.
    pub(crate) fn new(query: &[f32]) -> Result<Self> {
        let norm = checked_norm(query)?;
        if norm > MAX_QUERY_NORM {
            return Err(bad(format!("a query vector of length {norm:e}")));
        }
        let dimensions = query.len();
        let (mut codes, scale, error) = quantize(query);
        codes.resize(2 * width(dimensions), 0);
        let sum: i32 = codes.iter().map(|&code| i32::from(code)).sum();
        let error = f64::from(error);
        // Rounding, u = 2⁻²⁴. rescore: n·u·‖q‖‖v‖. Estimate: 6u of its parts, which are at most
        // ‖q̂‖·(1.001 + 0.14·sqrt(n)), the latter for the coarse codes: `scale · 16` is at most
        // 0.126 · max|v|. Interval: 4u of its ends, which are as large. So 8 times (n + 16)·2u is
        // ample for every n; 1e-30 covers results that underflow.
        let rounding = (dimensions + 16) as f64 * f64::from(f32::EPSILON) * 8.0 * (norm + error) + 1e-30;
        let base = error * f64::from(MAX_NORM) + rounding;
        Ok(Self {
            dimensions,
            codes,
            scale,
            offset: 128 * sum,
            middle: (f64::from(sum) * MIDDLE) as f32,
            base: round_up(base),
            factor: round_up(error + norm),
        })
    }

    /// The number of dimensions.
    pub(crate) fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// The approximate score of a row whose upper bits give `high`, without its lower bits.
    #[inline]
    pub(super) fn coarse_score(&self, high: i32, scale: f32) -> f32 {
        ((16 * high - self.offset) as f32 + self.middle) * (self.scale * scale)
    }

    /// The approximate score of a row whose upper and lower bits give `high` and `low`.
    #[inline]
    pub(super) fn score(&self, high: i32, low: i32, scale: f32) -> f32 {
        (16 * high - self.offset + low) as f32 * (self.scale * scale)
    }

    /// The largest error of a score, for a row whose codes are off by at most `error`.
    #[inline]
    pub(super) fn error(&self, error: f32) -> f32 {
        self.base + self.factor * error
    }
}

/// Computes the exact score: `Σ a[i]·b[i]` in f32, with the sums in the same order on every machine (16 partial sums,
/// then added pairwise), so equal vectors have bitwise equal scores.
///
/// `a` and `b` have the same length.
pub fn rescore(a: &[f32], b: &[f32]) -> f32 {
    const LANES: usize = 16;
    debug_assert_eq!(a.len(), b.len());
    let (a, a_rest) = a.as_chunks::<LANES>();
    let (b, b_rest) = b.as_chunks::<LANES>();
    let mut sums = [0.0_f32; LANES];
    for (a, b) in a.iter().zip(b) {
        for i in 0..LANES {
            sums[i] += a[i] * b[i];
        }
    }
    for (i, (a, b)) in a_rest.iter().zip(b_rest).enumerate() {
        sums[i] += a * b;
    }
    let mut half = LANES / 2;
    while half > 0 {
        for i in 0..half {
            sums[i] += sums[i + half];
        }
        half /= 2;
    }
    sums[0]
}

/// Returns `‖v‖₂` of a vector, if the vector can be quantized.
fn checked_norm(v: &[f32]) -> Result<f64> {
    if v.is_empty() || v.len() > MAX_DIMENSIONS {
        return Err(bad(format!("a vector of {} dimensions; 1 to {MAX_DIMENSIONS} are possible", v.len())));
    }
    let norm = v.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>().sqrt();
    // The squares of finite f32 cannot overflow an f64, so only NaN or infinity fails here.
    if norm.is_finite() { Ok(norm) } else { Err(bad("a vector that contains NaN or infinity".into())) }
}

fn bad(message: String) -> Error {
    Error::new(ErrorKind::Model, message)
        .with_remedy("the embedding model gave a vector that cannot be used; try another model")
}

fn quantize(v: &[f32]) -> (Vec<i8>, f32, f32) {
    let largest = v.iter().fold(0.0_f32, |largest, x| largest.max(x.abs()));
    let scale = largest.max(TINY) / 127.0;
    // Float casts saturate, so a quotient that rounds above 127 cannot wrap; clamp excludes -128.
    let codes: Vec<i8> = v.iter().map(|x| (x / scale).round_ties_even().clamp(-127.0, 127.0) as i8).collect();
    let error = distance(v, scale, codes.iter().map(|&code| f64::from(code)));
    (codes, scale, error)
}

/// An upper bound of `‖v − scale·codes‖₂`, close to it.
fn distance(v: &[f32], scale: f32, codes: impl Iterator<Item = f64>) -> f32 {
    let squares: f64 = v.iter().zip(codes).map(|(&x, code)| (f64::from(x) - f64::from(scale) * code).powi(2)).sum();
    round_up(squares.sqrt())
}

/// Rounds `x`, which is not below zero, up to f32, despite the rounding errors of the f64 sums.
fn round_up(x: f64) -> f32 {
    if x == 0.0 { 0.0 } else { ((x * (1.0 + 1e-9)) as f32).next_up() }
}
