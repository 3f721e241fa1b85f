//! The inner loop in plain Rust: the specification that all other kernels are tested against.

use super::{LINE, Line};

/// See [`Kernel::dots`](super::Kernel::dots).
pub(super) fn dots(query: &[i8], rows: &[Line], which: &[u32], out: &mut [i32]) {
    let lines = query.len() / 2 / LINE;
    for (&row, out) in which.iter().zip(out) {
        *out = dot(query, &rows[row as usize * lines..][..lines]);
    }
}

/// `Σ query[j] · (row[j] & 15) + query[w + j] · (row[j] >> 4)`
fn dot(query: &[i8], row: &[Line]) -> i32 {
    /// Independent sums, each of two products a step, which compilers vectorise well.
    const SUMS: usize = 8;
    let (low, high) = query.split_at(query.len() / 2);
    let mut sums = [0; SUMS];
    for (line, (low, high)) in row.iter().zip(low.chunks_exact(LINE).zip(high.chunks_exact(LINE))) {
        // LINE is a multiple of SUMS, so nothing is left over.
        let steps = low.as_chunks::<SUMS>().0.iter().zip(high.as_chunks::<SUMS>().0).zip(line.0.as_chunks::<SUMS>().0);
        for ((low, high), row) in steps {
            for i in 0..SUMS {
                sums[i] += i32::from(low[i]) * i32::from(row[i] & 15) + i32::from(high[i]) * i32::from(row[i] >> 4);
            }
        }
    }
    sums.iter().sum()
}
