//! A vector as int8 codes with a proven bound on its error, the same for a query, and the exact score.
//!
//! `codes[i] = round(v[i] / scale)` with `scale = max|v[i]| / 127`, so codes are in -127..=127.
//! The bound is `‖v − scale·codes‖₂` in f64, where `scale·codes[i]` is exact (24 + 7 bits), grown
//! by more than f64 can be wrong and rounded up to f32.

use crate::error::{Error, ErrorKind, Result};

/// The most dimensions a vector may have: `127² · 2¹⁶` fits an i32.
pub const MAX_DIMENSIONS: usize = 1 << 16;

/// The largest length a row may have. Rows are of unit length up to rounding; the error bound
/// relies on it, so longer ones are refused.
pub const MAX_NORM: f32 = 1.001;

/// Queries are of unit length, too; this only keeps scores far from the ends of f32.
const MAX_QUERY_NORM: f64 = 1e6;

/// Below this, a largest component counts as zero: its scale would be subnormal.
const TINY: f32 = 1e-30;

/// One row as it is kept: codes, scale and error bound.
#[derive(Debug, Clone, PartialEq)]
pub struct Quantized {
    /// One code a dimension, in -127..=127.
    pub codes: Vec<i8>,
    /// The row is about `scale · codes`. Above zero: 0 marks a slot without a row.
    pub scale: f32,
    /// At least `‖row − scale·codes‖₂`.
    pub error: f32,
}

impl Quantized {
    /// The codes of `row`. A row of zeros is a row like any other: it scores 0 with every query.
    ///
    /// # Errors
    /// [`ErrorKind::Model`] if the row is empty or over [`MAX_DIMENSIONS`] long, has a NaN or an
    /// infinity in it, or is longer than [`MAX_NORM`].
    pub fn new(row: &[f32]) -> Result<Self> {
        let norm = checked_norm(row)?;
        if norm > f64::from(MAX_NORM) {
            return Err(bad(format!("a vector of length {norm:.3}; vectors must be of length 1")));
        }
        let (codes, scale, error) = quantize(row);
        Ok(Self { codes, scale, error })
    }

    /// The codes as the bytes of a [`Block`](super::Block).
    pub fn code_bytes(&self) -> Vec<u8> {
        self.codes.iter().map(|&code| code.cast_unsigned()).collect()
    }
}

/// A query, ready for scanning: its codes, and what the error bounds need of it.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryCodes {
    pub(super) codes: Vec<i8>,
    pub(super) scale: f32,
    /// An estimate is off by at most `base + factor · e`, `e` being the row's stored error.
    pub(super) base: f32,
    pub(super) factor: f32,
}

impl QueryCodes {
    /// The codes of `query`, of unit length, usually; any length up to a million is fine, zero too.
    ///
    /// # Errors
    /// [`ErrorKind::Model`] if it is empty or over [`MAX_DIMENSIONS`] long, has a NaN or an
    /// infinity in it, or is longer than a million.
    pub fn new(query: &[f32]) -> Result<Self> {
        let norm = checked_norm(query)?;
        if norm > MAX_QUERY_NORM {
            return Err(bad(format!("a query vector of length {norm:e}")));
        }
        let (codes, scale, error) = quantize(query);
        let error = f64::from(error);
        // Rounding, u = 2⁻²⁴. rescore: n·u·‖q‖‖v‖. Estimate: 4u·‖q̂‖‖v̂‖. Interval: 4u of its
        // ends. All of ‖q̂‖, ‖v̂‖, errors are below 2·sqrt(n)/254 + 1 times ‖q‖, ‖v‖, so 8 covers
        // their products for n ≤ MAX_DIMENSIONS; 1e-30 covers results that underflow.
        let rounding = (query.len() + 16) as f64 * f64::from(f32::EPSILON) * 8.0 * (norm + error) + 1e-30;
        let base = error * f64::from(MAX_NORM) + rounding;
        let factor = error + norm;
        Ok(Self { codes, scale, base: round_up(base), factor: round_up(factor) })
    }

    /// The number of dimensions.
    pub fn dimensions(&self) -> usize {
        self.codes.len()
    }
}

/// The exact score: `Σ a[i]·b[i]` in f32, the sums always in the same order on every machine
/// (16 partial sums, then added pairwise), so equal vectors have bitwise equal scores.
///
/// `a` and `b` are equally long.
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

/// `‖v‖₂` of a vector that may be quantised.
fn checked_norm(v: &[f32]) -> Result<f64> {
    if v.is_empty() || v.len() > MAX_DIMENSIONS {
        return Err(bad(format!("a vector of {} dimensions; 1 to {MAX_DIMENSIONS} are possible", v.len())));
    }
    let norm = v.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>().sqrt();
    // Finite f32 squares cannot overflow an f64, so only a NaN or an infinity ends here.
    if norm.is_finite() { Ok(norm) } else { Err(bad("a vector with a NaN or an infinity in it".into())) }
}

fn bad(message: String) -> Error {
    Error::new(ErrorKind::Model, message)
        .remedy("the embedding model gave a vector that cannot be used; try another model")
}

fn quantize(v: &[f32]) -> (Vec<i8>, f32, f32) {
    let largest = v.iter().fold(0.0_f32, |largest, x| largest.max(x.abs()));
    let scale = if largest < TINY { 1.0 } else { largest / 127.0 };
    // Saturating float casts: a quotient that rounds above 127 cannot wrap; clamp keeps -128 out.
    let codes: Vec<i8> = v.iter().map(|x| (x / scale).round_ties_even().clamp(-127.0, 127.0) as i8).collect();
    let squares: f64 =
        v.iter().zip(&codes).map(|(&x, &c)| (f64::from(x) - f64::from(scale) * f64::from(c)).powi(2)).sum();
    (codes, scale, round_up(squares.sqrt()))
}

/// `x`, not below zero, as an f32 that is not below it, whatever the last bits of the f64 sums.
fn round_up(x: f64) -> f32 {
    if x == 0.0 { 0.0 } else { ((x * (1.0 + 1e-9)) as f32).next_up() }
}
