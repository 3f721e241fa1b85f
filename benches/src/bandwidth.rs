//! How fast memory can be read here: the limit of every scan.

use std::hint::black_box;
use std::thread;
use std::time::Instant;

/// Words of a line of the cache.
const LINE: usize = 8;

/// Bytes a second that `threads` threads together can read of a buffer of `bytes` bytes: the best of some runs and of
/// some orders of reading, since the machine's own fetching ahead likes some orders better than others.
///
/// A buffer that a cache can hold measures the cache. A second for a buffer of 1 GiB.
pub fn read_bandwidth(bytes: usize, threads: usize) -> f64 {
    // Written once, so that each page is there.
    let words = vec![1_u64; (bytes / 8).max(LINE * threads * 8)];
    let part = words.len() / threads.max(1);
    let mut best = f64::INFINITY;
    for sum in [streams::<1>, streams::<2>, streams::<4>, streams::<8>] {
        for _ in 0..3 {
            let start = Instant::now();
            thread::scope(|scope| {
                let mut parts = words.chunks_exact(part);
                let mine = parts.next();
                for part in parts {
                    scope.spawn(move || black_box(sum(black_box(part))));
                }
                if let Some(part) = mine {
                    black_box(sum(black_box(part)));
                }
            });
            best = best.min(start.elapsed().as_secs_f64());
        }
    }
    (words.len() * 8) as f64 / best
}

/// The sum of all words, read as `N` streams a line at a time; what is left over at the end is not read.
fn streams<const N: usize>(words: &[u64]) -> u64 {
    let lines = words.len() / LINE / N;
    let parts: [&[[u64; LINE]]; N] =
        std::array::from_fn(|i| words[i * lines * LINE..][..lines * LINE].as_chunks::<LINE>().0);
    let mut sums = [0_u64; LINE];
    for line in 0..lines {
        for part in &parts {
            sums.iter_mut().zip(&part[line]).for_each(|(sum, word)| *sum = sum.wrapping_add(*word));
        }
    }
    sums.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_reads_every_word() {
        let words: Vec<u64> = (0..640).collect();
        for sum in [streams::<1>, streams::<2>, streams::<4>, streams::<8>] {
            assert_eq!(sum(&words), 640 * 639 / 2);
        }
        assert!(read_bandwidth(1 << 16, 2) > 0.0);
    }
}
