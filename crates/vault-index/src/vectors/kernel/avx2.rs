//! The inner loop for x86-64 with AVX2: 64 products in six instructions.
#![expect(unsafe_code, reason = "loads through pointers, and functions that need a feature of the machine")]

use std::arch::x86_64::*;

use super::groups::in_groups;
use super::{Kernel, LINE, Line};

/// The number of bytes in a register.
const HALF: usize = LINE / 2;

/// This kernel, if the machine can run it.
pub(super) fn kernel() -> Option<Kernel> {
    is_x86_feature_detected!("avx2").then_some(Kernel {
        name: "avx2",
        // SAFETY: `Kernel::dots` has checked lengths and rows; the feature was detected above, and no other code
        // creates this kernel.
        dots: |query, rows, which, out| unsafe { dots(query, rows, which, out) },
    })
}

/// Multiplies the query with the rows with the numbers `which[0]`, `which[1]`, … up to `out.len()`.
///
/// # Safety
/// The machine has the feature. `query.len() == 2·w` with `w` a multiple of [`LINE`], `out` is no longer than `which`,
/// and each of its rows is within `rows`.
#[target_feature(enable = "avx2")]
unsafe fn dots(query: &[i8], rows: &[Line], which: &[u32], out: &mut [i32]) {
    // SAFETY: by the caller's promise, each of the four rows is `width` bytes within `rows`.
    let dot = |rows, ahead| unsafe { dot_four(query, rows, ahead) };
    in_groups(query, rows, which, out, dot);
}

/// Multiplies the query with four rows at once, so that the query is loaded once and the sums are independent.
///
/// # Safety
/// `query.len() == 2·w` with `w` a multiple of [`LINE`], and each of `rows` points to `w` bytes;
/// `ahead` may point anywhere.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn dot_four(query: &[i8], rows: [*const u8; 4], ahead: [*const u8; 4]) -> [i32; 4] {
    let width = query.len() / 2;
    let (low_bits, ones) = (_mm256_set1_epi8(15), _mm256_set1_epi16(1));
    let mut sums = [_mm256_setzero_si256(); 4];
    for at in (0..width).step_by(LINE) {
        // SAFETY: 64 bytes from `at` are within both halves of the query, because `at + LINE <= width`.
        let load = |at: usize| unsafe { _mm256_loadu_si256(query.as_ptr().add(at).cast()) };
        let for_low = [load(at), load(at + HALF)];
        let for_high = [load(width + at), load(width + at + HALF)];
        for i in 0..4 {
            _mm_prefetch::<_MM_HINT_T0>(ahead[i].wrapping_add(at).cast());
            // Two products of u8 and i8 to each i16, eight until they are widened: at most
            // 8 · 15 · 128 = 15,360, so nothing saturates or wraps.
            let mut pairs = _mm256_setzero_si256();
            for half in 0..2 {
                // SAFETY: 64 bytes from `at` are within the row.
                let bytes = unsafe { _mm256_loadu_si256(rows[i].add(at + half * HALF).cast()) };
                let low = _mm256_and_si256(bytes, low_bits);
                let high = _mm256_and_si256(_mm256_srli_epi16::<4>(bytes), low_bits);
                pairs = _mm256_add_epi16(pairs, _mm256_maddubs_epi16(low, for_low[half]));
                pairs = _mm256_add_epi16(pairs, _mm256_maddubs_epi16(high, for_high[half]));
            }
            sums[i] = _mm256_add_epi32(sums[i], _mm256_madd_epi16(pairs, ones));
        }
    }
    sum_each(sums.map(|sum| _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256::<1>(sum))))
}

/// The sum of the four numbers in each of four registers, by two transposed additions.
#[inline]
#[target_feature(enable = "sse2")]
fn sum_each([a, b, c, d]: [__m128i; 4]) -> [i32; 4] {
    let ab = _mm_add_epi32(_mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b));
    let cd = _mm_add_epi32(_mm_unpacklo_epi32(c, d), _mm_unpackhi_epi32(c, d));
    let sums = _mm_add_epi32(_mm_unpacklo_epi64(ab, cd), _mm_unpackhi_epi64(ab, cd));
    let mut out = [0; 4];
    // SAFETY: `out` is 16 bytes long; the store needs no alignment.
    unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), sums) };
    out
}
