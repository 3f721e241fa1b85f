//! Rows taken some at a time, with others prefetched meanwhile: what the kernels for x86-64 share.

/// How far ahead rows that lie one after the other are fetched, in bytes. The machine's own fetching
/// stops at each page of 4 KiB. From 4 to 8 KiB all were equally good, and better than none when
/// the rows came from memory.
const BYTES_AHEAD: usize = 6144;

/// How many rows ahead those that lie anywhere are fetched.
pub(super) const ROWS_AHEAD: usize = 16;

/// [`BYTES_AHEAD`] in rows.
pub(super) fn rows_ahead(query: &[i8]) -> usize {
    BYTES_AHEAD.div_ceil(query.len() / 2)
}

/// Calls `dot` with the addresses of `N` rows at a time, the rows with the numbers `which(0)`, `which(1)`, … up to
/// `out.len()`, and with those of the rows `next(0)`, …, to be fetched meanwhile, wherever they are. A last group that
/// is not full has its last row again in place of those that are missing.
///
/// Inlined, so that `dot` may be a function of an instruction set that the caller has.
#[inline(always)]
pub(super) fn in_groups<const N: usize>(
    rows: &[u8],
    width: usize,
    which: impl Fn(usize) -> usize,
    next: impl Fn(usize) -> usize,
    out: &mut [i32],
    dot: impl Fn([*const u8; N], [*const u8; N]) -> [i32; N],
) {
    let group = |numbers: [usize; N]| {
        let row = |i: usize| rows.as_ptr().wrapping_add(which(numbers[i]) * width);
        let ahead = |i: usize| rows.as_ptr().wrapping_add(next(numbers[i]) * width);
        dot(std::array::from_fn(row), std::array::from_fn(ahead))
    };
    let (full, rest) = out.as_chunks_mut::<N>();
    let done = N * full.len();
    for (i, out) in full.iter_mut().enumerate() {
        *out = group(std::array::from_fn(|j| N * i + j));
    }
    if !rest.is_empty() {
        let sums = group(std::array::from_fn(|j| done + j.min(rest.len() - 1)));
        rest.copy_from_slice(&sums[..rest.len()]);
    }
}
