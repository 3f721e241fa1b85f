//! The inner loop: an int8 query times rows of 4-bit codes; `scalar` is the specification.
//!
//! A row is `w` bytes in whole [`Line`]s; each byte contains two codes of 4 bits. A query is `2·w` codes of 8 bits:
//! those for the low halves of the row's bytes, then those for the high ones.
//!
//! ```text
//! dot(query, row) = Σ query[j] · (row[j] & 15)  +  query[w + j] · (row[j] >> 4)      0 ≤ j < w
//! ```
//!
//! All numbers are integers, and no sum overflows an i32 (`127 · 15 · 2¹⁶ < 2²⁷`), so the order of the sums does not
//! matter and every kernel gives the result of `scalar`, bit for bit. Query codes are in -127..=127
//! ([`quantize`](super::Quantized) never gives -128), though -128 would do no harm.
//!
//! To add a kernel, add a file with the function of a [`Kernel`] and an entry in [`Kernel::all`]. These files contain
//! the only `unsafe` code of the crate's own.

#[cfg(target_arch = "x86_64")]
mod groups;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;

/// The number of bytes in a [`Line`].
pub const LINE: usize = 64;

/// A part of a row: one cache line, and the widest vector register. It is aligned, so that no load touches two cache
/// lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Line(pub [u8; LINE]);

/// One implementation of the inner loop. A value exists only where the machine can run it.
#[derive(Debug, Clone, Copy)]
pub struct Kernel {
    name: &'static str,
    dots: DotProducts,
}

/// [`Kernel::dots`], after its checks; `out` is not empty.
type DotProducts = fn(query: &[i8], rows: &[Line], which: &[u32], out: &mut [i32]);

impl Kernel {
    /// The portable kernel: plain Rust, which the compiler vectorises for the build's target.
    pub const SCALAR: Self = Self { name: "scalar", dots: scalar::dots };

    /// The fastest kernel of this machine. Costs a few loads, because its features are detected once per process.
    pub fn best() -> Self {
        Self::all().next().unwrap_or(Self::SCALAR)
    }

    /// All kernels that this machine can run, the fastest first and [`SCALAR`](Self::SCALAR) last.
    pub fn all() -> impl Iterator<Item = Self> {
        #[cfg(target_arch = "x86_64")]
        let kernels = [avx512::kernel(), avx2::kernel(), Some(Self::SCALAR)];
        #[cfg(target_arch = "aarch64")]
        let kernels = [neon::dotprod(), neon::widening(), Some(Self::SCALAR)];
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        let kernels = [Some(Self::SCALAR)];
        kernels.into_iter().flatten()
    }

    /// The name of the kernel in benchmarks and reports.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// `out[i] = dot(query, row which[i])`. `which` may be longer than `out`: the rows after those are only prefetched.
    ///
    /// # Panics
    /// If the lengths do not match: `query.len() == 2·w`, `w` a multiple of 64 above zero, `which` at least as
    /// long as `out`, and each row whose dot product is requested within `rows`.
    pub fn dots(&self, query: &[i8], rows: &[Line], which: &[u32], out: &mut [i32]) {
        assert!(!query.is_empty() && query.len().is_multiple_of(2 * LINE), "a query of {} codes", query.len());
        let Some(last) = which[..out.len()].iter().max() else { return };
        assert!((*last as usize) < rows.len() / (query.len() / 2 / LINE), "row {last} is out of range");
        (self.dots)(query, rows, which, out);
    }
}
