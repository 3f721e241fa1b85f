//! Processes rows several at a time while later ones are prefetched: shared by the kernels for x86-64.

use super::{LINE, Line};

/// The distance at which rows are prefetched, in bytes. The hardware prefetcher stops at each page of 4 KiB, and does
/// not predict rows that are not adjacent. All distances from 4 to 8 KiB were equally good, and better than no
/// prefetching when the rows came from memory.
const BYTES_AHEAD: usize = 6144;

/// Calls `dot` with the addresses of `N` rows at a time, and with those of rows to prefetch meanwhile. If the last
/// group is not full, its last row is repeated for the missing ones.
///
/// Inlined, so that `dot` may be a function of an instruction set that only the caller enables.
#[inline(always)]
pub(super) fn in_groups<const N: usize>(
    query: &[i8],
    rows: &[Line],
    which: &[u32],
    out: &mut [i32],
    dot: impl Fn([*const u8; N], [*const u8; N]) -> [i32; N],
) {
    let width = query.len() / 2;
    let (ahead, last) = (BYTES_AHEAD.div_ceil(width), which.len() - 1);
    let row = |i: usize| rows.as_ptr().wrapping_add(which[i.min(last)] as usize * (width / LINE)).cast::<u8>();
    let wanted = out.len() - 1;
    // The only call of `dot`, so that the compiler inlines it.
    for start in (0..out.len()).step_by(N) {
        let sums =
            dot(std::array::from_fn(|i| row((start + i).min(wanted))), std::array::from_fn(|i| row(start + i + ahead)));
        let out = &mut out[start..];
        let count = N.min(out.len());
        out[..count].copy_from_slice(&sums[..count]);
    }
}
