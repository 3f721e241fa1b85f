//! x86-64 with AVX-512 and its products of bytes (VNNI): 64 products an instruction.
#![expect(unsafe_code, reason = "loads through pointers, and functions that need a feature of the machine")]

use std::arch::x86_64::*;

use super::avx2::sum_of_eight;
use super::lanes::{LANES, Lanes};
use super::linear::{Sums, Tile};
use super::{PANEL, kernel};

kernel!(
    KERNEL,
    "avx512-vnni",
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,fma")],
    Wide,
    Vnni,
    8
);

/// This kernel, if the machine can run it.
pub(super) fn kernel() -> Option<super::Kernel> {
    let can = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vnni")
        && is_x86_feature_detected!("fma");
    can.then_some(KERNEL)
}

struct Vnni;

// SAFETY: used only in `KERNEL`.
unsafe impl Tile for Vnni {
    const ROWS: usize = 6;
    const FLIPPED: bool = true;

    #[inline(always)]
    unsafe fn sums<const R: usize>(
        first: *const u8,
        width: usize,
        panel: *const i8,
        start: &[i32; PANEL],
        out: &mut Sums,
    ) {
        // SAFETY: the caller's promise, and the kernel's that the machine has the features.
        unsafe { sums::<R>(first, width, panel, start, out) }
    }
}

/// 24 registers of sums, four of weights: the sums are independent, and each load is used for four or six products.
///
/// # Safety
/// See [`Tile::sums`], with `R` rows.
#[target_feature(enable = "avx512f,avx512vnni")]
unsafe fn sums<const R: usize>(first: *const u8, width: usize, panel: *const i8, start: &[i32; PANEL], out: &mut Sums) {
    // SAFETY: the start is 64 numbers.
    let start = |i: usize| unsafe { _mm512_loadu_si512(start.as_ptr().add(i * LANES).cast()) };
    let mut sums = [[start(0), start(1), start(2), start(3)]; R];
    for k in (0..width).step_by(4) {
        // SAFETY: four rows of the panel are 256 bytes.
        let weights = |i: usize| unsafe { _mm512_loadu_si512(panel.add(k * PANEL + i * 64).cast()) };
        let weights = [weights(0), weights(1), weights(2), weights(3)];
        for r in 0..R {
            // SAFETY: `k + 4 <= width`, within row `r`.
            let four = _mm512_set1_epi32(unsafe { first.add(r * width + k).cast::<i32>().read_unaligned() });
            for i in 0..4 {
                sums[r][i] = _mm512_dpbusd_epi32(sums[r][i], four, weights[i]);
            }
        }
    }
    for r in 0..R {
        for i in 0..4 {
            // SAFETY: 16 numbers from a multiple of 16, of 64.
            unsafe { _mm512_storeu_si512(out.0[r].as_mut_ptr().add(i * LANES).cast(), sums[r][i]) };
        }
    }
}

/// Sixteen numbers in one register.
#[derive(Clone, Copy)]
struct Wide(__m512);

// SAFETY: used only in `KERNEL`, and so is every block below: its features are available. Loads and stores are of
// arrays as long as a register.
unsafe impl Lanes for Wide {
    #[inline(always)]
    fn splat(x: f32) -> Self {
        Wide(unsafe { _mm512_set1_ps(x) })
    }
    #[inline(always)]
    fn load(line: &[f32; LANES]) -> Self {
        Wide(unsafe { _mm512_loadu_ps(line.as_ptr()) })
    }
    #[inline(always)]
    fn store(self, line: &mut [f32; LANES]) {
        unsafe { _mm512_storeu_ps(line.as_mut_ptr(), self.0) }
    }
    #[inline(always)]
    fn of_sums(sums: &[i32; LANES]) -> Self {
        Wide(unsafe { _mm512_cvtepi32_ps(_mm512_loadu_si512(sums.as_ptr().cast())) })
    }
    #[inline(always)]
    fn of_bytes(bytes: &[i8; LANES]) -> Self {
        Wide(unsafe { _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(bytes.as_ptr().cast()))) })
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Wide(unsafe { _mm512_add_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Wide(unsafe { _mm512_sub_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        Wide(unsafe { _mm512_mul_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn mul_add(self, factor: Self, term: Self) -> Self {
        Wide(unsafe { _mm512_fmadd_ps(self.0, factor.0, term.0) })
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        Wide(unsafe { _mm512_max_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        Wide(unsafe { _mm512_min_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn abs(self) -> Self {
        Wide(unsafe { _mm512_abs_ps(self.0) })
    }
    #[inline(always)]
    fn times_power_of_two(self, whole: Self) -> Self {
        unsafe {
            let exponent = _mm512_slli_epi32::<23>(_mm512_castps_si512(whole.0));
            Wide(_mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(self.0), exponent)))
        }
    }
    #[inline(always)]
    fn low_bytes(self) -> [u8; LANES] {
        let mut out = [0; LANES];
        unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), _mm512_cvtepi32_epi8(_mm512_castps_si512(self.0))) };
        out
    }
    #[inline(always)]
    fn sum(self) -> f32 {
        unsafe {
            let eight = _mm256_add_ps(_mm512_castps512_ps256(self.0), _mm512_extractf32x8_ps::<1>(self.0));
            sum_of_eight(eight)
        }
    }
    #[inline(always)]
    fn peak(self) -> f32 {
        unsafe { _mm512_reduce_max_ps(self.0) }
    }
}
