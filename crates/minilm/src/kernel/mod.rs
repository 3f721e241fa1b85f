//! The hot code: each step of the encoder over all rows, written once and compiled for each instruction set.
//!
//! A naive version, on the rows of a text (one row per token; its width is that of the model, see [`Shape`]);
//! `norm.rs`, `linear.rs` and `attention.rs` give the details:
//!
//! ```text
//! x = norm(embed(ids))
//! for each layer:
//!     q, k, v = linear(quantize(x))
//!     x = norm(x + linear(quantize(attend(q, k, v))))
//!     x = norm(x + linear(quantize(gelu(linear(quantize(x))))))
//! pool(x)
//! ```
//!
//! `linear` is nine tenths of the arithmetic. Its sums are integers, which are exact in any order, so each instruction
//! set may compute them in its own order (the trait `Tile`, one file each). Everything else consists of the operations
//! of `lanes.rs`, which give the same bits everywhere. So the same text has the same vector, bit for bit, on every
//! processor. The kernel `scalar` is the specification; a test compares all others with it.
//!
//! Reasons for its speed (compared with a general ONNX engine in `benches/record`):
//! - products of bytes, 64 per instruction, from registers: 24 sums, four of weights. `linear` takes most of the time,
//!   and runs close to the peak throughput of the processor;
//! - bias, scale, GELU and the residual are applied to a tile's sums before they leave the L1 cache, without a separate
//!   pass over memory;
//! - outlier channels are scaled by SmoothQuant factors computed offline (see `PROVENANCE.md`), in the multiplication
//!   that is needed anyway, not by a second product in f32;
//! - the attention, the next in cost, stays in registers and the L1 cache;
//! - the weights are stored in the order in which a tile reads them, so nothing is parsed, rearranged or copied at the
//!   start.
//!
//! These experiments brought no gain: tiles of 8 by 3 and 12 by 2 registers, rows of integers interleaved, a longer
//! loop body, more than 64 tokens at once.
//!
//! To add a kernel, add a file with its tile, its lanes if the portable ones are too slow, and a line in
//! [`Kernel::all`]. This folder and `mapped.rs` have the only `unsafe` code of the crate.
#![allow(
    clippy::needless_range_loop,
    reason = "closures of iterators would not be compiled for the kernel's instructions"
)]

mod lanes;
mod activations;
mod norm;
mod linear;
mod attention;
mod bytes;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;

#[cfg(test)]
mod kernel_tests;

pub(crate) use activations::{exp_each, gelu_each};
pub(crate) use attention::AttentionScratch;
pub(crate) use bytes::{doubles, floats, integers, lines, pairs, panels, word_lines, words};
pub(crate) use lanes::LANES;

use crate::MAX_TOKENS;

/// The number of columns of a matrix that are stored together. In a panel, four rows at a time:
/// `[width / 4][PANEL][4]`.
pub(crate) const PANEL: usize = 64;

/// The sizes of a model. All widths are multiples of [`PANEL`], because rows are quantized and matrices stored in panels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Lines of a token.
    pub(crate) lines: usize,
    /// Lines of a token between the two feed-forward matrices.
    pub(crate) inner_lines: usize,
    /// Heads of the attention; each has 32 or 64 components.
    pub(crate) heads: usize,
}

/// Sixteen numbers, as they are stored in memory.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Line(pub(crate) [f32; LANES]);

/// 64 integers of a row.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Chunk(pub(crate) [u8; PANEL]);

/// Sixteen numbers of a word.
pub(crate) type WordLine = [i8; LANES];

/// The word embeddings, whose left and right halves are in two files, and the position embeddings; rows of each in
/// succession.
#[derive(Clone, Copy)]
pub(crate) struct Embeddings<'a> {
    pub(crate) words: [&'a [WordLine]; 2],
    pub(crate) scales: &'a [f32],
    pub(crate) positions: &'a [Line],
}

/// The parameters of a layer norm.
#[derive(Clone, Copy)]
pub(crate) struct Norm<'a> {
    pub(crate) gain: &'a [Line],
    pub(crate) bias: &'a [Line],
    /// Added to the variance.
    pub(crate) epsilon: f32,
}

/// SmoothQuant: the per-channel scale and shift of a matrix's input before it is quantized.
#[derive(Clone, Copy)]
pub(crate) struct SmoothQuant<'a> {
    pub(crate) multiplier: &'a [Line],
    pub(crate) shift: &'a [Line],
}

/// A matrix: its integers in panels, and a scale and a bias for each column.
#[derive(Clone, Copy)]
pub(crate) struct Linear<'a> {
    pub(crate) width: usize,
    pub(crate) weights: &'a [i8],
    /// `-128 · Σ column`: the start value of a sum if its rows are stored around 128.
    pub(crate) starts: &'a [[i32; PANEL]],
    pub(crate) scales: &'a [Line],
    pub(crate) bias: &'a [Line],
}

/// Quantized rows, each with its scale.
#[derive(Default)]
pub(crate) struct QuantizedRows {
    pub(crate) bytes: Vec<Chunk>,
    pub(crate) scales: Vec<f32>,
}

impl QuantizedRows {
    /// Allocates space for this many rows of `lines` lines each.
    pub(crate) fn resize(&mut self, rows: usize, lines: usize) {
        self.bytes.resize(rows * lines / 4, Chunk([0; PANEL]));
        self.scales.resize(rows, 0.0);
    }
}

/// The epilogue of [`Kernel::linear`], which is applied to a result while it is still in registers.
#[derive(Clone, Copy)]
pub(crate) enum Epilogue {
    /// Stores the result.
    Store,
    /// Adds the result to the output (residual connection).
    Add,
    /// Stores the GELU of the result.
    Gelu,
}

/// The steps, compiled for one instruction set. A value exists only where the processor supports it.
#[derive(Clone, Copy)]
pub(crate) struct Kernel {
    pub(crate) name: &'static str,
    /// The ids of texts, and the number of ids of each.
    pub(crate) embed: fn(&[u32], &[usize], &Embeddings, &mut [Line]),
    pub(crate) norm: fn(&mut [Line], &Norm),
    /// Rows of this many lines.
    pub(crate) quantize: fn(&[Line], usize, Option<&SmoothQuant>, &mut QuantizedRows),
    pub(crate) linear: fn(&QuantizedRows, &Linear, Epilogue, &mut [Line]),
    /// The rows of one text: the query, key and value of each token.
    pub(crate) attend: fn(&[Line], &Shape, &mut AttentionScratch, &mut [Line]),
    /// The rows of one text.
    pub(crate) pool: fn(&[Line], &mut [Line]),
}

impl Kernel {
    /// The fastest kernel of this machine.
    pub(crate) fn best() -> Kernel {
        Kernel::all().next().unwrap_or(scalar::KERNEL)
    }

    /// All kernels that this machine can run, the fastest first and the scalar one last.
    pub(crate) fn all() -> impl Iterator<Item = Kernel> {
        #[cfg(target_arch = "x86_64")]
        let kernels = [avx512::kernel(), avx2::with_vnni(), avx2::kernel(), Some(scalar::KERNEL)];
        #[cfg(target_arch = "aarch64")]
        let kernels = [neon::with_dot_products(), neon::kernel(), Some(scalar::KERNEL)];
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        let kernels = [Some(scalar::KERNEL)];
        kernels.into_iter().flatten()
    }
}

/// `kernel!(name, features, lanes, tile, queries at once)`: the steps, compiled for the features, as `KERNEL`.
macro_rules! kernel {
    ($kernel:ident, $name:literal, $(#[$features:meta])?, $lanes:ty, $tile:ty, $queries:literal) => {
        const $kernel: $crate::kernel::Kernel = {
            use $crate::kernel::*;

            $(#[$features])?
            unsafe fn embed(ids: &[u32], lengths: &[usize], from: &Embeddings, x: &mut [Line]) {
                norm::embed::<$lanes>(ids, lengths, from, x);
            }
            $(#[$features])?
            unsafe fn norm(rows: &mut [Line], by: &Norm) {
                norm::norm::<$lanes>(rows, by);
            }
            $(#[$features])?
            unsafe fn quantize(rows: &[Line], width: usize, smooth: Option<&SmoothQuant>, out: &mut QuantizedRows) {
                norm::quantize::<$lanes, { <$tile as linear::Tile>::FLIPPED }>(rows, width, smooth, out);
            }
            $(#[$features])?
            unsafe fn linear(input: &QuantizedRows, layer: &Linear, epilogue: Epilogue, out: &mut [Line]) {
                linear::linear::<$lanes, $tile>(input, layer, epilogue, out);
            }
            $(#[$features])?
            unsafe fn attend(text: &[Line], shape: &Shape, scratch: &mut AttentionScratch, output: &mut [Line]) {
                attention::attend::<$lanes, $queries>(text, shape, scratch, output);
            }
            $(#[$features])?
            unsafe fn pool(rows: &[Line], out: &mut [Line]) {
                norm::pool::<$lanes>(rows, out);
            }
            // SAFETY, for all: the file returns the kernel only if the machine has the features.
            Kernel {
                name: $name,
                embed: |ids, lengths, from, x| unsafe { embed(ids, lengths, from, x) },
                norm: |rows, by| unsafe { norm(rows, by) },
                quantize: |rows, width, smooth, out| unsafe { quantize(rows, width, smooth, out) },
                linear: |input, layer, epilogue, out| unsafe { linear(input, layer, epilogue, out) },
                attend: |text, shape, scratch, output| unsafe { attend(text, shape, scratch, output) },
                pool: |rows, out| unsafe { pool(rows, out) },
            }
        };
    };
}
use kernel;
