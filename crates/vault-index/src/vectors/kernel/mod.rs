//! The inner loop: an int8 query times rows of 4-bit codes; `scalar` is the specification, each other file a machine's.
//!
//! A row is `w` bytes, `w` a multiple of [`LINE`]; each byte holds two codes of 4 bits. A query is
//! `2·w` codes of 8 bits: those for the low halves of the row's bytes, then those for the high ones.
//!
//! ```text
//! dot(query, row) = Σ query[j] · (row[j] & 15)  +  query[w + j] · (row[j] >> 4)      0 ≤ j < w
//! ```
//!
//! All is integer, and no sum overflows an i32 (`127 · 15 · 2¹⁶ < 2²⁷`), so the order of the sums
//! does not matter and every kernel gives what `scalar` gives, bit for bit. Query codes are in
//! -127..=127 ([`quantize`](super::Quantized) never gives -128), though -128 would do no harm.
//!
//! A new kernel is a new file with the two functions of a [`Kernel`] and a line in [`Kernel::all`].
//! The only `unsafe` code of the crate's own stands in these files.

#[cfg(target_arch = "x86_64")]
mod groups;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;

/// The bytes of a row are a multiple of this: one line of a cache, and the widest vector register.
pub const LINE: usize = 64;

/// One implementation of the inner loop. It can only be had where the machine can run it.
#[derive(Debug, Clone, Copy)]
pub struct Kernel {
    name: &'static str,
    dots: Dots,
    dots_of: DotsOf,
}

/// [`Kernel::dots`], after its checks.
type Dots = fn(query: &[i8], rows: &[u8], out: &mut [i32]);

/// [`Kernel::dots_of`], after its checks; `out` is not empty.
type DotsOf = fn(query: &[i8], rows: &[u8], which: &[u32], out: &mut [i32]);

impl Kernel {
    /// The portable kernel: plain Rust, which the compiler vectorises for the build's target.
    pub const SCALAR: Self = Self { name: "scalar", dots: scalar::dots, dots_of: scalar::dots_of };

    /// The quickest kernel of this machine. A few loads: the machine is asked once a process.
    pub fn best() -> Self {
        Self::all().next().unwrap_or(Self::SCALAR)
    }

    /// All kernels that this machine can run, the quickest first and [`SCALAR`](Self::SCALAR) last.
    pub fn all() -> impl Iterator<Item = Self> {
        #[cfg(target_arch = "x86_64")]
        let kernels = [avx512::kernel(), avx2::kernel(), Some(Self::SCALAR)];
        #[cfg(target_arch = "aarch64")]
        let kernels = [neon::dotprod(), neon::widening(), Some(Self::SCALAR)];
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        let kernels = [Some(Self::SCALAR)];
        kernels.into_iter().flatten()
    }

    /// What it is called in benchmarks and reports.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// `out[i] = dot(query, rows[i·w .. (i+1)·w])`: rows that lie one after the other.
    ///
    /// # Panics
    /// If the lengths do not fit: `query.len() == 2·w`, `w` a multiple of [`LINE`] above zero, and
    /// `rows.len() == out.len()·w`.
    pub fn dots(&self, query: &[i8], rows: &[u8], out: &mut [i32]) {
        let width = width_of(query);
        assert_eq!(rows.len(), out.len() * width, "as many rows as sums");
        (self.dots)(query, rows, out);
    }

    /// `out[i] = dot(query, rows[which[i]·w ..][..w])`: rows that lie anywhere in `rows`.
    ///
    /// # Panics
    /// If the lengths do not fit: `query.len() == 2·w`, `w` a multiple of [`LINE`] above zero,
    /// `which.len() == out.len()`, and each row of `which` lies within `rows`.
    pub fn dots_of(&self, query: &[i8], rows: &[u8], which: &[u32], out: &mut [i32]) {
        let width = width_of(query);
        assert_eq!(which.len(), out.len(), "as many rows as sums");
        let Some(&last) = which.iter().max() else { return };
        assert!((last as usize) < rows.len() / width, "row {last} lies outside");
        (self.dots_of)(query, rows, which, out);
    }
}

fn width_of(query: &[i8]) -> usize {
    assert!(!query.is_empty() && query.len().is_multiple_of(2 * LINE), "a query of {} codes", query.len());
    query.len() / 2
}
