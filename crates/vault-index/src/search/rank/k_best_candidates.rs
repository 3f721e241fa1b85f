//! The first step of a ranking: leaves out the passages that cannot be among the k best.
//!
//! It is one pass over all passages, for one or many queries.
//!
//! ```text
//! for each chunk of passages, for each query
//!     reaching = passages with upper bound >= least             four bits of the codes: nearly all are out
//!     for each of them: the interval of its score               eight bits
//!         if its upper end >= least: it is kept
//!     least = the k-th best lower end so far
//! ```
//!
//! A chunk's codes are read from memory once and stay in the cache while all queries are compared with them. If there
//! are many passages, threads share them. Each thread has its own `least`, which is never above that of all passages,
//! so that no passage among the k best is left out.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::OnceLock;

use crate::search::rank::fuse::{BoundedPassage, Candidates};
use crate::vectors::TopK;

/// The number of bytes to read per thread that makes starting it worthwhile. Starting one takes about 30 µs, so on an
/// idle machine two threads are faster than one from 10,000 rows of 384 dimensions on (2 MB). On a busy machine a new
/// thread can wait 4 ms for a core, which is too much if the whole scan takes less than one; so the limit is at about
/// 85,000 rows.
const BYTES_PER_THREAD: usize = 8 << 20;

/// The number of passages that are processed together, and of the following passages whose codes are prefetched. The
/// codes of a chunk of 384 dimensions are 96 kB.
const CHUNK: usize = 512;
const AHEAD: usize = 64;

/// The passages that can be among the k best of each query, with the bounds of their scores.
pub(in crate::search) fn prune(queries: &[Candidates<'_>]) -> Vec<Vec<BoundedPassage>> {
    let bytes: usize = queries.iter().map(Candidates::bytes_scanned).sum();
    prune_by(threads_for(bytes), CHUNK, queries)
}

/// Implements [`prune`] with a number of threads and a chunk size. The k best are kept whatever these are.
pub(super) fn prune_by(threads: usize, chunk: usize, queries: &[Candidates<'_>]) -> Vec<Vec<BoundedPassage>> {
    let passages = queries.iter().map(|query| query.passages.len()).max().unwrap_or(0);
    let length = passages.div_ceil(threads).max(1);
    let part = |number: usize| {
        let range = number * length..passages.min((number + 1) * length);
        prune_range(range.start as u32..range.end as u32, chunk, queries)
    };
    std::thread::scope(|scope| {
        let part = &part;
        let others: Vec<_> = (1..threads).map(|number| scope.spawn(move || part(number))).collect();
        let mut kept = part(0);
        for other in others {
            let more = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            kept.iter_mut().zip(more).for_each(|(kept, more)| kept.extend(more));
        }
        kept
    })
}

fn prune_range(positions: Range<u32>, chunk: usize, queries: &[Candidates<'_>]) -> Vec<Vec<BoundedPassage>> {
    let mut passes: Vec<Pass<'_>> = queries.iter().map(|query| Pass::new(query, positions.clone(), chunk)).collect();
    while passes.iter_mut().map(Pass::go_on).fold(false, |any, more| any | more) {}
    passes.into_iter().map(Pass::kept).collect()
}

/// The pass of one query over a range of passages.
struct Pass<'a> {
    query: &'a Candidates<'a>,
    raises_any: bool,
    /// Positions that have not been processed yet.
    rest: Range<u32>,
    /// The number of passages that are processed together.
    chunk: usize,
    /// The next eligible positions, and [`AHEAD`] after them.
    window: Vec<u32>,
    /// The k best lower ends.
    best: TopK<u32>,
    kept: Vec<BoundedPassage>,
}

impl<'a> Pass<'a> {
    fn new(query: &'a Candidates<'a>, range: Range<u32>, chunk: usize) -> Self {
        let rest = if query.k == 0 { 0..0 } else { range };
        let window = Vec::with_capacity(chunk + AHEAD);
        let (raises_any, best) = (query.raises_any(), TopK::new(query.k));
        Self { query, raises_any, rest, chunk, window, best, kept: Vec::new() }
    }

    /// Processes the next chunk of eligible passages. False: there are no more.
    fn go_on(&mut self) -> bool {
        let (query, missing, rest) = (self.query, self.chunk + AHEAD - self.window.len(), &mut self.rest);
        match query.eligible {
            Some(eligible) => self.window.extend(rest.filter(|position| eligible[*position as usize]).take(missing)),
            None => self.window.extend(rest.take(missing)),
        }
        let count = self.chunk.min(self.window.len());
        let uppers = query.semantic.upper_bounds(query.passages, &self.window, count);
        let least = self.best.threshold().unwrap_or(f32::NEG_INFINITY);
        let mut reaching = Vec::new();
        for (position, cosine) in self.window.drain(..count).zip(uppers) {
            let (at, has_cosine) = (position as usize, cosine > f32::NEG_INFINITY);
            // Nearly all passages are excluded by this.
            let sum = query.sum(cosine.max(0.0), query.lexical.score(at));
            if sum < least && !(self.raises_any && query.raises(at, has_cosine)) {
                continue;
            }
            let upper = query.score(at, has_cosine.then_some(cosine));
            // A passage that shares neither words nor any meaning is not a result, however low the floor is.
            if upper >= least && upper > 0.0 && upper >= query.floor.least(has_cosine) {
                reaching.push(position);
            }
        }
        for bounded in query.bounds_of(&reaching) {
            if self.best.threshold().is_none_or(|least| bounded.interval.upper >= least) {
                self.best.push(bounded.interval.lower, query.group(bounded.position));
                self.kept.push(bounded);
            }
        }
        count > 0
    }

    fn kept(mut self) -> Vec<BoundedPassage> {
        let least = self.best.threshold();
        self.kept.retain(|bounded| least.is_none_or(|least| bounded.interval.upper >= least));
        self.kept
    }
}

/// The number of threads for this number of bytes, including the caller's.
fn threads_for(bytes: usize) -> usize {
    // Cached, because asking the system takes longer than a small scan.
    static CORES: OnceLock<usize> = OnceLock::new();
    if bytes < 2 * BYTES_PER_THREAD {
        return 1;
    }
    let cores = *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, NonZeroUsize::get));
    cores.min(bytes / BYTES_PER_THREAD)
}
