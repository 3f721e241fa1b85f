//! Vector maths: int8 codes of the vectors, bounds of their scores, and the k best; pure, without I/O.
//!
//! # The result
//!
//! For a query `q` and rows `v₀, v₁, …` (all f32, of unit length), search needs the k rows with the largest `q·v`,
//! exactly as this loop finds them:
//!
//! ```text
//! best = TopK(k)
//! for slot in 0..rows
//!     if slot passes the filter: best.push(rescore(q, v[slot]), slot)
//! ```
//!
//! # Optimizations
//!
//! ```text
//! for each chunk of rows
//!     reaching = rows with coarse upper bound >= least        4 bits a dimension: nearly all rows are out
//!     for slot in reaching: fine interval                     8 bits a dimension
//!     least = the k-th best lower end so far
//! candidates = rows with upper end >= least
//! for slot in candidates, by upper end, descending
//!     if upper end < the k-th best score: break
//!     best.push(rescore(q, v[slot]), slot)                    f32
//! ```
//!
//! The bounds are computed here (`Codes::upper_bounds`, `Codes::intervals`); the rest is in `search/rank`,
//! `k_best_candidates.rs` and `fuse.rs`, where the scores of words and of titles are added to the bounds. The first
//! search by meaning of a snapshot instead computes fine intervals of all rows while `store/vectors.rs` reads them.
//!
//! 1. **Codes.** A row is stored as one byte per dimension (`v̂ = scale · codes`), a quarter of its f32 size, with
//!    `‖v − v̂‖` rounded up. That turns the estimate `q̂·v̂` into an interval of about ±.015 that contains the true
//!    score.
//! 2. **Halves.** The upper four bits of all codes are stored apart from the lower four. They are codes themselves,
//!    with an error of about ±.12, so the other half of the bytes is read only for the few rows that remain.
//! 3. **Kernels** for the machine's instruction set ([`kernel`]): as fast as memory delivers the codes.
//! 4. **Prefetching**, because the hardware prefetcher stops at each page, and the rows that a filter leaves are not
//!    adjacent.
//! 5. **Threads** from about 85,000 rows on.
//! 6. **Many queries** in one pass: a chunk of codes is read from memory once and compared with each.
//!
//! `benches/record` has measurements of whole searches, compared with those of other programs.
//!
//! # Proof of exactness
//!
//! With `q = q̂ + (q − q̂)` and `v = v̂ + (v − v̂)`, where `v̂` may be the codes or their upper bits
//! (with the middle of the lower ones in their place),
//!
//! ```text
//! q·v − q̂·v̂ = (q − q̂)·v̂ + q·(v − v̂)
//! |q·v − q̂·v̂| ≤ ‖q − q̂‖·‖v̂‖ + ‖q‖·‖v − v̂‖          (Cauchy-Schwarz)
//!             ≤ ‖q − q̂‖·(MAX_NORM + e) + ‖q‖·e        with e ≥ ‖v − v̂‖ stored and ‖v‖ ≤ MAX_NORM
//! ```
//!
//! Every norm is computed in f64 and rounded up. A slack for f32 rounding is added, for that of the estimate, of the
//! interval and of [`rescore`] itself (`n` products and sums are off by at most `n·2⁻²⁴·‖q‖·‖v‖` and a little), so the
//! interval contains the *computed* score: see `quantize.rs`.
//!
//! A row that is left out has `score ≤ upper < least ≤` the k-th best score of all rows, because k of the rows so far
//! have lower ends of at least `least`, so k scores are no lower.

mod kernel;
mod quantize;
mod block;
mod scan;
mod score_heap;

#[cfg(test)]
mod tests;

pub(crate) use block::{BLOCK_ROWS, Block, block_and_row, block_len, row_bytes, row_offsets};
pub use kernel::Kernel;
pub use quantize::rescore;
pub(crate) use quantize::{QuantizedRow, QueryCodes};
pub(crate) use scan::{Codes, Interval, MAX_SLOTS};
pub use score_heap::TopK;
