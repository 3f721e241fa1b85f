//! The inner loop for AArch64: with the dot-product extension, or with widening products without it.
#![expect(unsafe_code, reason = "loads through pointers, and functions that need a feature of the machine")]

use std::arch::aarch64::*;
use std::arch::asm;

use super::{Kernel, LINE, Line};

/// The kernel with `sdot`, if the machine has it: all but the first generation do.
pub(super) fn dotprod() -> Option<Kernel> {
    std::arch::is_aarch64_feature_detected!("dotprod").then_some(Kernel {
        name: "neon-dotprod",
        // SAFETY: `Kernel::dots` has checked lengths and rows; the feature was detected above, and no other code
        // creates this kernel.
        dots: |query, rows, which, out| unsafe { dots_dotprod(query, rows, which, out) },
    })
}

/// The kernel with plain NEON.
pub(super) fn widening() -> Option<Kernel> {
    std::arch::is_aarch64_feature_detected!("neon").then_some(Kernel {
        name: "neon",
        // SAFETY: `Kernel::dots` has checked lengths and rows; the feature was detected above, and no other code
        // creates this kernel.
        dots: |query, rows, which, out| unsafe { dots_widening(query, rows, which, out) },
    })
}

/// Multiplies the query with the rows with the numbers `which[0]`, `which[1]`, … up to `out.len()`.
///
/// # Safety
/// `query.len() == 2·w` with `w` a multiple of [`LINE`], and each row of `which` is within `rows`.
#[target_feature(enable = "neon,dotprod")]
unsafe fn dots_dotprod(query: &[i8], rows: &[Line], which: &[u32], out: &mut [i32]) {
    let width = query.len() / 2;
    for (&row, out) in which.iter().zip(out) {
        let mut sums = [vdupq_n_s32(0); 4];
        for at in (0..width).step_by(LINE) {
            for (part, sum) in sums.iter_mut().enumerate() {
                // SAFETY: the caller's row is within `rows`, and `at + LINE <= width`.
                let loaded = unsafe { load(query, rows, row as usize, at + 16 * part) };
                *sum = sdot(sdot(*sum, loaded.low, loaded.for_low), loaded.high, loaded.for_high);
            }
        }
        *out = vaddvq_s32(vaddq_s32(vaddq_s32(sums[0], sums[1]), vaddq_s32(sums[2], sums[3])));
    }
}

/// Like [`dots_dotprod`].
///
/// # Safety
/// As [`dots_dotprod`].
#[target_feature(enable = "neon")]
unsafe fn dots_widening(query: &[i8], rows: &[Line], which: &[u32], out: &mut [i32]) {
    let width = query.len() / 2;
    for (&row, out) in which.iter().zip(out) {
        let mut sum = vdupq_n_s32(0);
        for at in (0..width).step_by(LINE) {
            // Eight products to each i16 until they are widened: at most 8 · 15 · 128 = 15,360.
            let mut pairs = [vdupq_n_s16(0); 2];
            for part in 0..4 {
                // SAFETY: the caller's row is within `rows`, and `at + LINE <= width`.
                let loaded = unsafe { load(query, rows, row as usize, at + 16 * part) };
                pairs[0] = vmlal_s8(pairs[0], vget_low_s8(loaded.low), vget_low_s8(loaded.for_low));
                pairs[1] = vmlal_high_s8(pairs[1], loaded.low, loaded.for_low);
                pairs[0] = vmlal_s8(pairs[0], vget_low_s8(loaded.high), vget_low_s8(loaded.for_high));
                pairs[1] = vmlal_high_s8(pairs[1], loaded.high, loaded.for_high);
            }
            sum = vpadalq_s16(vpadalq_s16(sum, pairs[0]), pairs[1]);
        }
        *out = vaddvq_s32(sum);
    }
}

/// 16 bytes of a row as two registers of codes, and their factors from the query.
struct LoadedCodes {
    low: int8x16_t,
    high: int8x16_t,
    for_low: int8x16_t,
    for_high: int8x16_t,
}

/// # Safety
/// `at + 16 <= w` with `w = query.len() / 2`, and row number `row` is within `rows`.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn load(query: &[i8], rows: &[Line], row: usize, at: usize) -> LoadedCodes {
    let width = query.len() / 2;
    // SAFETY: the caller's promise.
    let (bytes, for_low, for_high) = unsafe {
        let query = query.as_ptr().add(at);
        (vld1q_u8(rows.as_ptr().cast::<u8>().add(row * width + at)), vld1q_s8(query), vld1q_s8(query.add(width)))
    };
    // The codes 0 to 15 have the same bits as signed numbers.
    let low = vreinterpretq_s8_u8(vandq_u8(bytes, vdupq_n_u8(15)));
    let high = vreinterpretq_s8_u8(vshrq_n_u8::<4>(bytes));
    LoadedCodes { low, high, for_low, for_high }
}

/// Adds four products of i8 to each i32. The intrinsic for it is not stable yet.
#[inline]
#[target_feature(enable = "neon,dotprod")]
fn sdot(mut sum: int32x4_t, a: int8x16_t, b: int8x16_t) -> int32x4_t {
    // SAFETY: one instruction that reads and writes registers only; its feature is enabled here.
    unsafe {
        asm!("sdot {0:v}.4s, {1:v}.16b, {2:v}.16b", inout(vreg) sum, in(vreg) a, in(vreg) b,
            options(pure, nomem, nostack, preserves_flags));
    }
    sum
}
