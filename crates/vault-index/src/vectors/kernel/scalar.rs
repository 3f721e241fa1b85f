//! The inner loop in plain Rust: the specification that all other kernels are tested against.

/// See [`Kernel::dots`](super::Kernel::dots).
pub(super) fn dots(query: &[i8], rows: &[u8], out: &mut [i32]) {
    for (row, out) in rows.chunks_exact(query.len() / 2).zip(out) {
        *out = dot(query, row);
    }
}

/// See [`Kernel::dots_of`](super::Kernel::dots_of).
pub(super) fn dots_of(query: &[i8], rows: &[u8], which: &[u32], out: &mut [i32]) {
    let width = query.len() / 2;
    for (&row, out) in which.iter().zip(out) {
        *out = dot(query, &rows[row as usize * width..][..width]);
    }
}

/// `Σ query[j] · (row[j] & 15) + query[w + j] · (row[j] >> 4)`
fn dot(query: &[i8], row: &[u8]) -> i32 {
    /// Sums that do not wait for each other, each of two products a step, which compilers vectorise well.
    const SUMS: usize = 8;
    let (low, high) = query.split_at(row.len());
    let mut sums = [0; SUMS];
    // LINE is a multiple of SUMS, so nothing remains.
    let steps = low.as_chunks::<SUMS>().0.iter().zip(high.as_chunks::<SUMS>().0).zip(row.as_chunks::<SUMS>().0);
    for ((low, high), row) in steps {
        for i in 0..SUMS {
            sums[i] += i32::from(low[i]) * i32::from(row[i] & 15) + i32::from(high[i]) * i32::from(row[i] >> 4);
        }
    }
    sums.iter().sum()
}
