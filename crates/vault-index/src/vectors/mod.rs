//! Vector maths: int8 codes of the vectors, the scan over them and the exact top k; pure, without I/O.
//!
//! # What is computed
//!
//! Given a query `q` and rows `v₀, v₁, …` (all f32, of unit length), the k rows with the largest
//! `q·v`, exactly as this loop finds them:
//!
//! ```text
//! best = TopK(k)
//! for slot in 0..rows
//!     if the filter has slot: best.push(rescore(q, v[slot]), slot)
//! ```
//!
//! # How it is made quick
//!
//! 1. A row is kept in memory as one byte a dimension (`v̂ = scale · codes`), a quarter of its f32
//!    size; the scan reads only those. Integer products need no rounding and vectorise well.
//! 2. Each row carries `‖v − v̂‖`, rounded up. That turns the estimate `q̂·v̂` into an interval that
//!    holds the true score.
//! 3. Rows whose interval lies below the k-th best lower end are out. What is left, usually a few
//!    dozen, is rescored in f32 in the order of the upper ends, until none can get in any more.
//! 4. Rows are scanned 64 at a time, one word of the filter: a word without a bit costs nothing.
//!
//! # Why it is exact
//!
//! With `q = q̂ + (q − q̂)` and `v = v̂ + (v − v̂)`,
//!
//! ```text
//! q·v − q̂·v̂ = (q − q̂)·v̂ + q·(v − v̂)
//! |q·v − q̂·v̂| ≤ ‖q − q̂‖·‖v̂‖ + ‖q‖·‖v − v̂‖          (Cauchy-Schwarz)
//!             ≤ ‖q − q̂‖·(MAX_NORM + e) + ‖q‖·e        with e ≥ ‖v − v̂‖ stored and ‖v‖ ≤ MAX_NORM
//! ```
//!
//! Every norm is computed in f64 and rounded up. A slack for f32 rounding is added, for that of the
//! estimate, of the interval and of [`rescore`] itself (`n` products and sums are off by at most
//! `n·2⁻²⁴·‖q‖·‖v‖` and a little), so the interval holds the *computed* score: see `quantize.rs`.
//! Equal scores are ordered by slot, so the answer does not depend on the order of the scan.

mod bitmap;
mod block;
mod codes;
pub mod kernel;
mod quantize;
mod scan;
mod top_k;

#[cfg(test)]
mod tests;

pub use bitmap::Bitmap;
pub use block::{BLOCK_ROWS, Block, RowPlace, block_len, place, row_place};
pub use codes::{Codes, MAX_SLOTS};
pub use quantize::{MAX_DIMENSIONS, MAX_NORM, Quantized, QueryCodes, rescore};
pub use scan::Estimate;
pub use top_k::{TopK, top_k};
