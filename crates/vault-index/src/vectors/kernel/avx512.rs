//! The inner loop for x86-64 with AVX-512 and its byte products (VNNI): 128 products in two instructions.
#![expect(unsafe_code, reason = "loads through pointers, and functions that need a feature of the machine")]

use std::arch::x86_64::*;

use super::groups::in_groups;
use super::{Kernel, LINE, Line};

/// This kernel, if the machine can run it.
pub(super) fn kernel() -> Option<Kernel> {
    let can = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vnni");
    can.then_some(Kernel {
        name: "avx512-vnni",
        // SAFETY: `Kernel::dots` has checked lengths and rows; the features were detected above, and no other code
        // creates this kernel.
        dots: |query, rows, which, out| unsafe { dots(query, rows, which, out) },
    })
}

/// Multiplies the query with the rows with the numbers `which[0]`, `which[1]`, … up to `out.len()`.
///
/// # Safety
/// The machine has the features. `query.len() == 2·w` with `w` a multiple of [`LINE`], `out` is no longer than `which`,
/// and each of its rows is within `rows`.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn dots(query: &[i8], rows: &[Line], which: &[u32], out: &mut [i32]) {
    // SAFETY: by the caller's promise, each of the eight rows is `width` bytes within `rows`.
    let dot = |rows, ahead| unsafe { dot_eight(query, rows, ahead) };
    in_groups(query, rows, which, out, dot);
}

/// Multiplies the query with eight rows at once, so that the query is loaded once and the sums are independent.
///
/// # Safety
/// `query.len() == 2·w` with `w` a multiple of [`LINE`], and each of `rows` points to `w` bytes;
/// `ahead` may point anywhere.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn dot_eight(query: &[i8], rows: [*const u8; 8], ahead: [*const u8; 8]) -> [i32; 8] {
    let width = query.len() / 2;
    let low_bits = _mm512_set1_epi8(15);
    let mut low = [_mm512_setzero_si512(); 8];
    let mut high = low;
    for at in (0..width).step_by(LINE) {
        // SAFETY: 64 bytes from `at` are within both halves of the query, because `at + LINE <= width`.
        let (for_low, for_high) = unsafe {
            let query = query.as_ptr().add(at);
            (_mm512_loadu_si512(query.cast()), _mm512_loadu_si512(query.add(width).cast()))
        };
        for i in 0..8 {
            _mm_prefetch::<_MM_HINT_T0>(ahead[i].wrapping_add(at).cast());
            // SAFETY: 64 bytes from `at` are within the row.
            let bytes = unsafe { _mm512_loadu_si512(rows[i].add(at).cast()) };
            // Four products of u8 and i8 are added to each i32, without saturation. The upper bits are not shifted, so
            // sums are 16 times as large, which fits: 127 · 240 · 2¹⁵ < 2³⁰.
            low[i] = _mm512_dpbusd_epi32(low[i], _mm512_and_si512(bytes, low_bits), for_low);
            high[i] = _mm512_dpbusd_epi32(high[i], _mm512_andnot_si512(low_bits, bytes), for_high);
        }
    }
    let sum = |i: usize| _mm512_add_epi32(low[i], _mm512_srai_epi32::<4>(high[i]));
    // The sum of the 16 numbers in each of the eight registers, by transposed additions.
    let add = |a, b| _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    let [ab, cd, ef, gh] = [add(sum(0), sum(1)), add(sum(2), sum(3)), add(sum(4), sum(5)), add(sum(6), sum(7))];
    let add = |a, b| _mm512_add_epi32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
    // Each quarter of these has a part of four sums.
    let (first, second) = (add(ab, cd), add(ef, gh));
    let halves = _mm512_add_epi32(
        _mm512_shuffle_i64x2::<0b10_00_10_00>(first, second),
        _mm512_shuffle_i64x2::<0b11_01_11_01>(first, second),
    );
    // Its quarters: two parts of the first four sums, two of the second.
    let sums = _mm512_add_epi32(halves, _mm512_shuffle_i64x2::<0b11_11_01_01>(halves, halves));
    let sums = _mm512_castsi512_si256(_mm512_shuffle_i64x2::<0b10_00_10_00>(sums, sums));
    let mut out = [0; 8];
    // SAFETY: `out` is 32 bytes long; the store needs no alignment.
    unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), sums) };
    out
}
