//! The first step of a ranking: which passages can be among the best, in one pass over all of them, for one query or for
//! many at once.
//!
//! ```text
//! for each chunk of passages, for each query
//!     reaching = passages with upper >= least                   four bits of the codes: nearly all are out
//!     for each of them: interval of its score                   eight bits
//!         if its upper end >= least: it can be among the best
//!     least = the k-th best lower end
//! ```
//!
//! A chunk's codes are read from memory once and stay in the cache while all queries are compared with them. The passages
//! are shared out among threads where they are many. Each has its own `least`, which is no higher than that of all
//! passages: nothing is left out that one thread would keep.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::OnceLock;

use crate::search::fuse::{Bounded, Candidates, Floor};
use crate::vectors::TopK;

/// How many bytes a thread must have to read to be worth starting. To start one takes about 30 µs, so on an idle machine
/// two threads are faster than one from 10,000 rows of 384 dimensions on (2 MB). On a busy machine a new thread can wait
/// 4 ms for a core, which is too much where the whole scan takes less than one: so from about 85,000 rows on.
const BYTES_PER_THREAD: usize = 8 << 20;

/// Passages that are looked at together, and those after them whose codes are prefetched. The codes of a chunk of 384
/// dimensions are 96 kB.
const CHUNK: usize = 512;
const AHEAD: usize = 64;

/// A ranking that is wanted: the `k` best of some candidates with at least a score.
pub(super) struct Wanted<'a> {
    pub candidates: Candidates<'a>,
    pub k: usize,
    pub floor: Floor,
}

/// The passages that can be among the best of each ranking, by position.
pub(super) fn bounded(wanted: &[Wanted<'_>]) -> Vec<Vec<Bounded>> {
    let bytes: usize = wanted.iter().map(|wanted| wanted.candidates.bytes_scanned()).sum();
    bounded_by(threads_for(bytes), CHUNK, wanted)
}

/// The same on so many threads, so many passages at a time: whatever they are, no passage is left out that is among the
/// best.
pub(super) fn bounded_by(threads: usize, chunk: usize, wanted: &[Wanted<'_>]) -> Vec<Vec<Bounded>> {
    let passages = wanted.iter().map(|wanted| wanted.candidates.passages.len()).max().unwrap_or(0);
    let part = passages.div_ceil(threads).max(1);
    let part =
        |number: usize| bounded_in((number * part) as u32..passages.min((number + 1) * part) as u32, chunk, wanted);
    std::thread::scope(|scope| {
        let part = &part;
        let others: Vec<_> = (1..threads).map(|number| scope.spawn(move || part(number))).collect();
        let mut all = part(0);
        for other in others {
            let found = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            all.iter_mut().zip(found).for_each(|(all, found)| all.extend(found));
        }
        all
    })
}

fn bounded_in(positions: Range<u32>, chunk: usize, wanted: &[Wanted<'_>]) -> Vec<Vec<Bounded>> {
    let mut passes: Vec<Pass<'_>> = wanted.iter().map(|wanted| Pass::new(wanted, positions.clone(), chunk)).collect();
    while passes.iter_mut().map(Pass::go_on).fold(false, |any, more| any | more) {}
    passes.into_iter().map(Pass::found).collect()
}

/// How far the pass has come for one query.
struct Pass<'a> {
    wanted: &'a Wanted<'a>,
    raises_any: bool,
    /// Not looked at yet.
    rest: Range<u32>,
    /// How many are looked at together.
    chunk: usize,
    /// Those that are next, and some after them.
    window: Vec<u32>,
    /// The lower ends.
    best: TopK<u32>,
    found: Vec<Bounded>,
}

impl<'a> Pass<'a> {
    fn new(wanted: &'a Wanted<'a>, rest: Range<u32>, chunk: usize) -> Self {
        let window = Vec::with_capacity(chunk + AHEAD);
        Self {
            wanted,
            raises_any: wanted.candidates.raises_any(),
            rest,
            chunk,
            window,
            best: TopK::new(wanted.k),
            found: Vec::new(),
        }
    }

    /// Looks at the next chunk of passages that may be found. False: there is none.
    fn go_on(&mut self) -> bool {
        let Wanted { candidates, floor, .. } = self.wanted;
        let (wanted, rest) = (self.chunk + AHEAD - self.window.len(), &mut self.rest);
        match candidates.eligible {
            Some(eligible) => self.window.extend(rest.filter(|position| eligible[*position as usize]).take(wanted)),
            None => self.window.extend(rest.take(wanted)),
        }
        let count = self.chunk.min(self.window.len());
        let uppers = candidates.semantic.upper_bounds(candidates.passages, &self.window, count);
        let least = self.best.threshold().unwrap_or(f32::NEG_INFINITY);
        let mut reaching = Vec::new();
        for (position, cosine) in self.window.drain(..count).zip(uppers) {
            let (at, has_cosine) = (position as usize, cosine > f32::NEG_INFINITY);
            // Nearly all are out by this.
            let sum = candidates.sum(cosine.max(0.0), candidates.lexical.score(at));
            if sum < least && !(self.raises_any && candidates.raises(at, has_cosine)) {
                continue;
            }
            let upper = candidates.score(at, has_cosine.then_some(cosine));
            // A passage that shares neither words nor any meaning is not a result, however low the floor.
            if upper >= least && upper > 0.0 && upper >= floor.least(has_cosine) {
                reaching.push(position);
            }
        }
        for bounded in candidates.bounds_of(&reaching) {
            if self.best.threshold().is_none_or(|least| bounded.interval.upper >= least) {
                self.best.push(bounded.interval.lower, candidates.group(bounded.position));
                self.found.push(bounded);
            }
        }
        count > 0
    }

    fn found(mut self) -> Vec<Bounded> {
        let least = self.best.threshold();
        self.found.retain(|bounded| least.is_none_or(|least| bounded.interval.upper >= least));
        self.found
    }
}

/// How many threads read so many bytes, the caller's included.
fn threads_for(bytes: usize) -> usize {
    // Asking the system takes longer than a small scan.
    static CORES: OnceLock<usize> = OnceLock::new();
    if bytes < 2 * BYTES_PER_THREAD {
        return 1;
    }
    let cores = *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, NonZeroUsize::get));
    cores.min(bytes / BYTES_PER_THREAD)
}
