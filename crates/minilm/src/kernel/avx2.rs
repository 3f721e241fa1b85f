//! x86-64 with AVX2: byte products with AVX-VNNI where the processor has it, sums of pairs elsewhere.
#![expect(unsafe_code, reason = "loads through pointers, and functions that need a feature of the machine")]

use std::arch::x86_64::*;

use super::lanes::{LANES, Lanes};
use super::linear::{Sums, Tile};
use super::{PANEL, kernel};

kernel!(PAIRS_KERNEL, "avx2", #[target_feature(enable = "avx2,fma")], Double, Pairs, 2);
kernel!(VNNI_KERNEL, "avx-vnni", #[target_feature(enable = "avx2,fma,avxvnni")], Double, Vnni, 2);

/// The kernel on plain AVX2, if the machine can run it.
pub(super) fn kernel() -> Option<super::Kernel> {
    (is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")).then_some(PAIRS_KERNEL)
}

/// The kernel with AVX-VNNI, if the machine can run it.
pub(super) fn with_vnni() -> Option<super::Kernel> {
    kernel().filter(|_| is_x86_feature_detected!("avxvnni")).map(|_| VNNI_KERNEL)
}

/// Columns of a tile: two registers of sums a row. A panel is taken in four parts.
const COLUMNS: usize = 16;

struct Vnni;

// SAFETY: used only in `VNNI_KERNEL`.
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
        unsafe { vnni::<R>(first, width, panel, start, out) }
    }
}

/// # Safety
/// See [`Tile::sums`], with `R` rows.
#[target_feature(enable = "avx2,avxvnni")]
unsafe fn vnni<const R: usize>(first: *const u8, width: usize, panel: *const i8, start: &[i32; PANEL], out: &mut Sums) {
    for from in (0..PANEL).step_by(COLUMNS) {
        // SAFETY: 16 numbers from `from`, of 64.
        let start = |i: usize| unsafe { _mm256_loadu_si256(start.as_ptr().add(from + i * 8).cast()) };
        let mut sums = [[start(0), start(1)]; R];
        for k in (0..width).step_by(4) {
            // SAFETY: 64 bytes of the 256 that four rows of the panel have.
            let weights = |i: usize| unsafe { _mm256_loadu_si256(panel.add(k * PANEL + from * 4 + i * 32).cast()) };
            let weights = [weights(0), weights(1)];
            for r in 0..R {
                // SAFETY: `k + 4 <= width`, within row `r`.
                let four = _mm256_set1_epi32(unsafe { first.add(r * width + k).cast::<i32>().read_unaligned() });
                sums[r][0] = _mm256_dpbusd_avx_epi32(sums[r][0], four, weights[0]);
                sums[r][1] = _mm256_dpbusd_avx_epi32(sums[r][1], four, weights[1]);
            }
        }
        for r in 0..R {
            store(&sums[r], from, &mut out.0[r]);
        }
    }
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

/// The instruction for pairs takes one unsigned operand, so the sign of the input is applied to the weights. Neither is
/// ever -128, so a pair is at most 2 · 127 · 127 = 32,258, which fits 16 bits and does not saturate.
///
/// # Safety
/// See [`Tile::sums`], with `R` rows.
#[target_feature(enable = "avx2")]
unsafe fn pairs<const R: usize>(first: *const u8, width: usize, panel: *const i8, out: &mut Sums) {
    let ones = _mm256_set1_epi16(1);
    for from in (0..PANEL).step_by(COLUMNS) {
        let mut sums = [[_mm256_setzero_si256(); 2]; R];
        for k in (0..width).step_by(4) {
            // SAFETY: 64 bytes of the 256 that four rows of the panel have.
            let weights = |i: usize| unsafe { _mm256_loadu_si256(panel.add(k * PANEL + from * 4 + i * 32).cast()) };
            let weights = [weights(0), weights(1)];
            for r in 0..R {
                // SAFETY: `k + 4 <= width`, within row `r`.
                let four = _mm256_set1_epi32(unsafe { first.add(r * width + k).cast::<i32>().read_unaligned() });
                let size = _mm256_abs_epi8(four);
                for i in 0..2 {
                    let pairs = _mm256_maddubs_epi16(size, _mm256_sign_epi8(weights[i], four));
                    sums[r][i] = _mm256_add_epi32(sums[r][i], _mm256_madd_epi16(pairs, ones));
                }
            }
        }
        for r in 0..R {
            store(&sums[r], from, &mut out.0[r]);
        }
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store(sums: &[__m256i; 2], from: usize, out: &mut [i32; PANEL]) {
    for (out, sums) in out[from..from + COLUMNS].as_chunks_mut::<8>().0.iter_mut().zip(sums) {
        // SAFETY: eight numbers.
        unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), *sums) };
    }
}

/// Sixteen numbers in two registers.
#[derive(Clone, Copy)]
struct Double(__m256, __m256);

/// One instruction on both halves.
macro_rules! both {
    ($operation:ident, $($value:expr),+) => {
        // SAFETY: see the implementation of `Lanes`.
        unsafe { Double($operation($($value.0),+), $operation($($value.1),+)) }
    };
}

// SAFETY: used only in the two kernels, and so is every block below: their features are available. Loads and stores are
// of arrays as long as two registers.
unsafe impl Lanes for Double {
    #[inline(always)]
    fn splat(x: f32) -> Self {
        let x = unsafe { _mm256_set1_ps(x) };
        Double(x, x)
    }
    #[inline(always)]
    fn load(line: &[f32; LANES]) -> Self {
        unsafe { Double(_mm256_loadu_ps(line.as_ptr()), _mm256_loadu_ps(line.as_ptr().add(8))) }
    }
    #[inline(always)]
    fn store(self, line: &mut [f32; LANES]) {
        unsafe {
            _mm256_storeu_ps(line.as_mut_ptr(), self.0);
            _mm256_storeu_ps(line.as_mut_ptr().add(8), self.1);
        }
    }
    #[inline(always)]
    fn of_sums(sums: &[i32; LANES]) -> Self {
        unsafe {
            let half = sums.as_ptr().cast::<__m256i>();
            Double(_mm256_cvtepi32_ps(_mm256_loadu_si256(half)), _mm256_cvtepi32_ps(_mm256_loadu_si256(half.add(1))))
        }
    }
    #[inline(always)]
    fn of_bytes(bytes: &[i8; LANES]) -> Self {
        unsafe {
            let all = _mm_loadu_si128(bytes.as_ptr().cast());
            Double(
                _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(all)),
                _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128::<8>(all))),
            )
        }
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        both!(_mm256_add_ps, self, other)
    }
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        both!(_mm256_sub_ps, self, other)
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        both!(_mm256_mul_ps, self, other)
    }
    #[inline(always)]
    fn mul_add(self, factor: Self, term: Self) -> Self {
        both!(_mm256_fmadd_ps, self, factor, term)
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        both!(_mm256_max_ps, self, other)
    }
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        both!(_mm256_min_ps, self, other)
    }
    #[inline(always)]
    fn abs(self) -> Self {
        let sign = Self::splat(-0.0);
        both!(_mm256_andnot_ps, sign, self)
    }
    #[inline(always)]
    fn times_power_of_two(self, whole: Self) -> Self {
        unsafe {
            let low = _mm256_slli_epi32::<23>(_mm256_castps_si256(whole.0));
            let high = _mm256_slli_epi32::<23>(_mm256_castps_si256(whole.1));
            Double(
                _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(self.0), low)),
                _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(self.1), high)),
            )
        }
    }
    #[inline(always)]
    fn low_bytes(self) -> [u8; LANES] {
        let mut out = [0; LANES];
        unsafe {
            let low = _mm256_set1_epi32(0xff);
            let a = _mm256_and_si256(_mm256_castps_si256(self.0), low);
            let b = _mm256_and_si256(_mm256_castps_si256(self.1), low);
            // The instruction packs 128 bits of each operand in turn; the permutation restores the order.
            let words = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packus_epi32(a, b));
            let bytes = _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256::<1>(words));
            _mm_storeu_si128(out.as_mut_ptr().cast(), bytes);
        }
        out
    }
    #[inline(always)]
    fn sum(self) -> f32 {
        unsafe { sum_of_eight(_mm256_add_ps(self.0, self.1)) }
    }
}

/// Lane i plus lane i + 4, of these i plus i + 2, then 1: the last steps of [`Lanes::sum`].
#[inline]
#[target_feature(enable = "avx")]
pub(super) fn sum_of_eight(eight: __m256) -> f32 {
    let four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
    let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
}
