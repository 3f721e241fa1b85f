//! AArch64: with the dot-product extension where the processor has it, with widening products elsewhere.
#![expect(unsafe_code, reason = "loads through pointers, and functions that need a feature of the machine")]

use std::arch::aarch64::*;
use std::arch::asm;

use super::lanes::{LANES, Lanes};
use super::linear::{Sums, Tile};
use super::{PANEL, kernel};

kernel!(DOT_KERNEL, "neon-dotprod", #[target_feature(enable = "neon,dotprod")], Quad, Dot, 4);
kernel!(PAIRS_KERNEL, "neon", #[target_feature(enable = "neon")], Quad, Pairs, 4);

/// The kernel with `sdot`, if the machine has it: all but the first generation do.
pub(super) fn with_dot_products() -> Option<super::Kernel> {
    std::arch::is_aarch64_feature_detected!("dotprod").then_some(DOT_KERNEL)
}

/// The kernel with plain NEON.
pub(super) fn kernel() -> Option<super::Kernel> {
    std::arch::is_aarch64_feature_detected!("neon").then_some(PAIRS_KERNEL)
}

/// Columns of a tile: four registers of sums a row. A panel is taken in four parts.
const COLUMNS: usize = 16;

struct Dot;

// SAFETY: used only in `DOT_KERNEL`.
unsafe impl Tile for Dot {
    const ROWS: usize = 6;
    const FLIPPED: bool = false;

    #[inline(always)]
    unsafe fn sums<const R: usize>(first: *const u8, width: usize, panel: *const i8, _: &[i32; PANEL], out: &mut Sums) {
        // SAFETY: the caller's promise, and the kernel's that the machine has the features.
        unsafe { dot::<R>(first, width, panel, out) }
    }
}

/// # Safety
/// See [`Tile::sums`], with `R` rows.
#[target_feature(enable = "neon,dotprod")]
unsafe fn dot<const R: usize>(first: *const u8, width: usize, panel: *const i8, out: &mut Sums) {
    for from in (0..PANEL).step_by(COLUMNS) {
        let mut sums = [[vdupq_n_s32(0); 4]; R];
        for k in (0..width).step_by(4) {
            // SAFETY: 64 bytes of the 256 that four rows of the panel have.
            let weights = |i: usize| unsafe { vld1q_s8(panel.add(k * PANEL + from * 4 + i * 16)) };
            let weights = [weights(0), weights(1), weights(2), weights(3)];
            for r in 0..R {
                // SAFETY: `k + 4 <= width`, within row `r`.
                let four = unsafe { first.add(r * width + k).cast::<i32>().read_unaligned() };
                let four = vreinterpretq_s8_s32(vdupq_n_s32(four));
                for i in 0..4 {
                    sums[r][i] = sdot(sums[r][i], four, weights[i]);
                }
            }
        }
        for r in 0..R {
            store(&sums[r], from, &mut out.0[r]);
        }
    }
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

struct Pairs;

// SAFETY: used only in `PAIRS_KERNEL`.
unsafe impl Tile for Pairs {
    const ROWS: usize = 4;
    const FLIPPED: bool = false;

    #[inline(always)]
    unsafe fn sums<const R: usize>(first: *const u8, width: usize, panel: *const i8, _: &[i32; PANEL], out: &mut Sums) {
        // SAFETY: the caller's promise, and the kernel's that the machine has the features.
        unsafe { pairs::<R>(first, width, panel, out) }
    }
}

/// Products of 16 bits, added in pairs to 32 bits, and these in pairs again.
///
/// # Safety
/// See [`Tile::sums`], with `R` rows.
#[target_feature(enable = "neon")]
unsafe fn pairs<const R: usize>(first: *const u8, width: usize, panel: *const i8, out: &mut Sums) {
    for from in (0..PANEL).step_by(COLUMNS) {
        let mut sums = [[vdupq_n_s32(0); 4]; R];
        for k in (0..width).step_by(4) {
            for i in 0..4 {
                // SAFETY: 16 bytes of the 256 that four rows of the panel have.
                let weights = unsafe { vld1q_s8(panel.add(k * PANEL + from * 4 + i * 16)) };
                for r in 0..R {
                    // SAFETY: `k + 4 <= width`, within row `r`.
                    let four = unsafe { first.add(r * width + k).cast::<i32>().read_unaligned() };
                    let four = vreinterpretq_s8_s32(vdupq_n_s32(four));
                    let low = vpaddlq_s16(vmull_s8(vget_low_s8(four), vget_low_s8(weights)));
                    let high = vpaddlq_s16(vmull_high_s8(four, weights));
                    sums[r][i] = vaddq_s32(sums[r][i], vpaddq_s32(low, high));
                }
            }
        }
        for r in 0..R {
            store(&sums[r], from, &mut out.0[r]);
        }
    }
}

#[inline]
#[target_feature(enable = "neon")]
fn store(sums: &[int32x4_t; 4], from: usize, out: &mut [i32; PANEL]) {
    for (out, sums) in out[from..from + COLUMNS].as_chunks_mut::<4>().0.iter_mut().zip(sums) {
        // SAFETY: four numbers.
        unsafe { vst1q_s32(out.as_mut_ptr(), *sums) };
    }
}

/// Sixteen numbers in four registers.
#[derive(Clone, Copy)]
struct Quad(float32x4_t, float32x4_t, float32x4_t, float32x4_t);

/// One expression for each of the four registers: `i` is its number, `$x` its parts of the operands.
macro_rules! four {
    ($i:ident, $($x:ident = $value:expr),* => $result:expr) => {{
        // SAFETY: see the implementation of `Lanes`.
        unsafe {
            Quad(
                { #[allow(unused)] const $i: usize = 0; $(let $x = $value.0;)* $result },
                { #[allow(unused)] const $i: usize = 1; $(let $x = $value.1;)* $result },
                { #[allow(unused)] const $i: usize = 2; $(let $x = $value.2;)* $result },
                { #[allow(unused)] const $i: usize = 3; $(let $x = $value.3;)* $result },
            )
        }
    }};
}

// SAFETY: used only in the two kernels, and so is every block below: their features are available. Loads and stores are
// of arrays as long as four registers.
unsafe impl Lanes for Quad {
    #[inline(always)]
    fn splat(x: f32) -> Self {
        four!(I, => vdupq_n_f32(x))
    }
    #[inline(always)]
    fn load(line: &[f32; LANES]) -> Self {
        four!(I, => vld1q_f32(line.as_ptr().add(I * 4)))
    }
    #[inline(always)]
    fn store(self, line: &mut [f32; LANES]) {
        unsafe {
            vst1q_f32(line.as_mut_ptr(), self.0);
            vst1q_f32(line.as_mut_ptr().add(4), self.1);
            vst1q_f32(line.as_mut_ptr().add(8), self.2);
            vst1q_f32(line.as_mut_ptr().add(12), self.3);
        }
    }
    #[inline(always)]
    fn of_sums(sums: &[i32; LANES]) -> Self {
        four!(I, => vcvtq_f32_s32(vld1q_s32(sums.as_ptr().add(I * 4))))
    }
    #[inline(always)]
    fn of_bytes(bytes: &[i8; LANES]) -> Self {
        let mut wide = [0; LANES];
        for i in 0..LANES {
            wide[i] = i32::from(bytes[i]);
        }
        Self::of_sums(&wide)
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        four!(I, a = self, b = other => vaddq_f32(a, b))
    }
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        four!(I, a = self, b = other => vsubq_f32(a, b))
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        four!(I, a = self, b = other => vmulq_f32(a, b))
    }
    #[inline(always)]
    fn mul_add(self, factor: Self, term: Self) -> Self {
        four!(I, a = self, b = factor, c = term => vfmaq_f32(c, a, b))
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        four!(I, a = self, b = other => vmaxq_f32(a, b))
    }
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        four!(I, a = self, b = other => vminq_f32(a, b))
    }
    #[inline(always)]
    fn abs(self) -> Self {
        four!(I, a = self => vabsq_f32(a))
    }
    #[inline(always)]
    fn times_power_of_two(self, whole: Self) -> Self {
        four!(I, a = self, w = whole => {
            let exponent = vshlq_n_s32::<23>(vreinterpretq_s32_f32(w));
            vreinterpretq_f32_s32(vaddq_s32(vreinterpretq_s32_f32(a), exponent))
        })
    }
    #[inline(always)]
    fn low_bytes(self) -> [u8; LANES] {
        let mut out = [0; LANES];
        unsafe {
            let a = vcombine_u16(vmovn_u32(vreinterpretq_u32_f32(self.0)), vmovn_u32(vreinterpretq_u32_f32(self.1)));
            let b = vcombine_u16(vmovn_u32(vreinterpretq_u32_f32(self.2)), vmovn_u32(vreinterpretq_u32_f32(self.3)));
            vst1q_u8(out.as_mut_ptr(), vcombine_u8(vmovn_u16(a), vmovn_u16(b)));
        }
        out
    }
    #[inline(always)]
    fn sum(self) -> f32 {
        unsafe {
            let four = vaddq_f32(vaddq_f32(self.0, self.2), vaddq_f32(self.1, self.3));
            let two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
            vget_lane_f32::<0>(two) + vget_lane_f32::<1>(two)
        }
    }
}
