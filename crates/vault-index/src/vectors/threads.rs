//! How many threads a scan gets.

use std::num::NonZeroUsize;
use std::sync::OnceLock;

/// How many threads a scan gets. The result is the same with any number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Threads {
    /// As many as the machine has cores, where there is enough to do for them, one elsewhere.
    #[default]
    Auto,
    /// The caller's only: for measurements, and where other threads are busy with other queries.
    One,
    /// So many, however little there is to do.
    Exactly(NonZeroUsize),
}

/// How many bytes a thread must have to read to be worth starting. That takes about 30 µs, so on an idle
/// machine two threads are faster than one from 10,000 rows of 384 dimensions on (2 MB; 20,000 rows:
/// 1.5 times, 100,000 rows: 1.7 times). On a busy one a new thread can wait 4 ms for a core, which is
/// a bad bargain where all takes less than one: so from about 85,000 rows on.
const BYTES_A_THREAD: usize = 8 << 20;

impl Threads {
    /// How many to use, the caller's included, for a scan of so many bytes.
    pub(super) fn for_bytes(self, bytes: usize) -> usize {
        // Asking takes longer than a small scan.
        static CORES: OnceLock<usize> = OnceLock::new();
        match self {
            Self::One => 1,
            Self::Exactly(threads) => threads.get(),
            Self::Auto if bytes < 2 * BYTES_A_THREAD => 1,
            Self::Auto => {
                let cores = *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, NonZeroUsize::get));
                cores.min(bytes / BYTES_A_THREAD)
            }
        }
    }
}
