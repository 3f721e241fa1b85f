//! Portable Rust: the specification of the other kernels.
#![expect(unsafe_code, reason = "the trait and the functions are those of the other kernels")]

use super::linear::{Sums, Tile};
use super::{PANEL, kernel};

kernel!(PLAIN, "scalar", , Line, Plain, 2);
pub(super) const KERNEL: super::Kernel = PLAIN;

struct Plain;

// SAFETY: plain Rust.
unsafe impl Tile for Plain {
    const ROWS: usize = 4;
    const FLIPPED: bool = false;

    #[inline(always)]
    unsafe fn sums<const R: usize>(
        first: *const u8,
        width: usize,
        panel: *const i8,
        _: &[i32; PANEL],
        sums: &mut Sums,
    ) {
        // SAFETY: the caller's promise.
        let (input, panel) = unsafe {
            (
                std::slice::from_raw_parts(first.cast::<i8>(), R * width),
                std::slice::from_raw_parts(panel.cast::<[[i8; 4]; PANEL]>(), width / 4),
            )
        };
        for (row, sums) in input.chunks_exact(width).zip(&mut sums.0) {
            *sums = [0; PANEL];
            for (four, columns) in row.as_chunks::<4>().0.iter().zip(panel) {
                for (sum, column) in sums.iter_mut().zip(columns) {
                    for k in 0..4 {
                        *sum += i32::from(four[k]) * i32::from(column[k]);
                    }
                }
            }
        }
    }
}
