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
//! ```text
//! least = -∞                                              the k-th best lower end so far
//! for slot in 0..rows, if the filter has slot
//!     if upper(coarse estimate) < least: next             4 bits a dimension: nearly all rows end here
//!     if upper(fine estimate)   < least: next             4 more bits a dimension
//!     candidates.push(slot); update least with lower(fine estimate)
//! for slot in candidates, by upper end, descending
//!     if upper < the k-th best score: break
//!     best.push(rescore(q, v[slot]), slot)                f32
//! ```
//!
//! Measured on 100,000 rows of 384 dimensions (sentence embeddings), k = 10, one thread of a Xeon
//! with AVX-512; `benches/record` has the figures beside those of others, taken in turns.
//!
//! 1. **Codes.** A row is kept as one byte a dimension (`v̂ = scale · codes`), a quarter of its f32
//!    size, with `‖v − v̂‖` rounded up. That turns the estimate `q̂·v̂` into an interval that holds
//!    the true score, about ±0.015. Rows whose interval lies below the k-th best lower end are out;
//!    of what is left, 18 rows are rescored in f32. 30 ms → 5.6 ms.
//! 2. **Kernels** for the machine's instruction set ([`kernel`]): as fast as memory gives the codes,
//!    which is why the next step counts.
//! 3. **Halves.** The upper four bits of all codes lie apart from the lower four. They are codes
//!    themselves, with an interval of about ±0.12, and 98.5 % of the rows are out by those alone,
//!    so that half of the bytes are never read. Half the time. (Of random vectors, the worst case,
//!    90 % are out.) With both steps 5.6 ms → .8 ms when nobody shares the machine, 1.3 to 2 ms when
//!    others do.
//! 4. **Fetching ahead**, since the machine's own fetching stops at each page: nothing at 100,000
//!    rows, which the level-3 cache holds, more than it costs at 1,000,000.
//! 5. **Groups** of 64 rows, one word of the filter. The upper ends of a group are computed without
//!    branches; a word without a bit costs nothing. Where less than half of a group passes, its
//!    rows are gathered until there are 64: a filter that keeps 1 % takes 5 % of the time.
//! 6. **Many queries** look at a group while it is in the level-1 cache ([`top_k_many`]): of 16 at
//!    once, each takes half of the time, or a little more.
//! 7. **Threads** take 4,096 rows at a time ([`Threads`]): with two, half of the time.
//!
//! # Why it is exact
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
//! Every norm is computed in f64 and rounded up. A slack for f32 rounding is added, for that of the
//! estimate, of the interval and of [`rescore`] itself (`n` products and sums are off by at most
//! `n·2⁻²⁴·‖q‖·‖v‖` and a little), so the interval holds the *computed* score: see `quantize.rs`.
//!
//! A row that is left out has `score ≤ upper < least ≤` the k-th best score of all rows: k rows
//! have lower ends of at least `least`, so k scores are no lower. Which rows are left out early
//! depends on the order of the scan, hence on blocks and threads, but never on which are found.
//! Equal scores are ordered by slot.

mod bitmap;
mod block;
mod codes;
mod heap;
pub mod kernel;
mod plane;
mod quantize;
mod scan;
mod threads;
mod top_k;

#[cfg(test)]
mod tests;

pub use bitmap::Bitmap;
pub use block::{BLOCK_ROWS, Block, RowPlace, block_len, place, row_bytes, row_place};
pub use codes::{Codes, MAX_SLOTS};
pub use heap::{Entry, TopK};
pub use quantize::{MAX_DIMENSIONS, MAX_NORM, Quantized, QueryCodes, rescore};
pub use scan::{Estimate, Precision, block_estimates};
pub use threads::Threads;
pub use top_k::{Scan, Wanted, top_k, top_k_many};
