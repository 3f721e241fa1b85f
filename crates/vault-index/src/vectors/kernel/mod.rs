//! The inner loop: one int8 query times many int8 rows; `scalar` is its specification, every other file an instruction set.
//!
//! A new kernel is a new file with one function of type [`Dots`] that gives what
//! [`scalar::dots`] gives, bit for bit, and a line in [`Kernel::best`].

pub mod scalar;

/// Dot products of `query` with the rows in `rows`, which lie one after the other:
/// `out[i] = query · rows[i·d .. (i+1)·d]` with `d = query.len()`, in i32, never overflowing for
/// `d` up to [`MAX_DIMENSIONS`](super::MAX_DIMENSIONS) and codes in -127..=127.
///
/// `d` is at least 1 and `rows.len() == out.len() · d`.
pub type Dots = fn(query: &[i8], rows: &[i8], out: &mut [i32]);

/// One implementation of the inner loop.
#[derive(Debug, Clone, Copy)]
pub struct Kernel {
    /// What it is called in benchmarks and reports.
    pub name: &'static str,
    /// The loop.
    pub dots: Dots,
}

impl Kernel {
    /// The portable kernel: plain Rust, which the compiler vectorises for the build's target.
    pub const SCALAR: Self = Self { name: "scalar", dots: scalar::dots };

    /// The quickest kernel of this machine. Cheap, but meant to be called once and kept.
    pub fn best() -> Self {
        Self::SCALAR
    }
}
