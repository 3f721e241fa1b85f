//! The exact top k of a matrix of codes, for one query or many: what can be among the best, then which of it is.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::bitmap::{Bitmap, bits};
use super::block::BLOCK_ROWS;
use super::codes::{Codes, MAX_SLOTS};
use super::heap::TopK;
use super::kernel::Kernel;
use super::quantize::QueryCodes;
use super::scan::{GROUP, Numbers, Rows};
use super::threads::Threads;
use crate::error::{Error, ErrorKind, Result};

/// What is looked for: the `k` rows that score best with a query; with a filter, only slots in it.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The query. It has the dimensions of the rows.
    pub query: &'a QueryCodes,
    /// How many rows. 0 gets none; more than there are gets all.
    pub k: usize,
    /// The slots that may be found. `None`: all.
    pub filter: Option<&'a Bitmap>,
}

/// The rows wanted, as slot and exact score, best first, equal scores by slot. Fewer than `k` if
/// there are fewer rows.
///
/// `exact` gives the score of a slot: [`rescore`](super::rescore) of the vectors that the query and
/// the row were made from, and nothing else, or the result is not exact. It is called for the rows
/// that may be among the best, once each, likeliest first; usually a small multiple of `k`, at
/// worst every row (when `k` is as large, or scores differ less than codes can tell). A slot for
/// which it gives NaN is left out, and nothing comes in its place.
///
/// # Errors
/// The first error of `exact`.
///
/// # Panics
/// If the query has other dimensions than the rows.
pub fn top_k(
    codes: &Codes,
    wanted: Wanted<'_>,
    threads: Threads,
    exact: impl FnMut(usize) -> Result<f32>,
) -> Result<Vec<(usize, f32)>> {
    scan(codes, &[wanted], threads).remove(0).best(exact)
}

/// [`top_k`] for many queries at once, in their order: all of them look at some rows before any
/// looks at the next, so that memory is read once. `exact` gets the number of the query, too.
///
/// # Errors
/// The first error of `exact`.
///
/// # Panics
/// If a query has other dimensions than the rows.
pub fn top_k_many(
    codes: &Codes,
    wanted: &[Wanted<'_>],
    threads: Threads,
    mut exact: impl FnMut(usize, usize) -> Result<f32>,
) -> Result<Vec<Vec<(usize, f32)>>> {
    let scans = scan(codes, wanted, threads).into_iter().enumerate();
    scans.map(|(query, scan)| scan.best(|slot| exact(query, slot))).collect()
}

/// A scan for each of `wanted` that has seen all rows.
fn scan<'a>(codes: &Codes, wanted: &[Wanted<'a>], threads: Threads) -> Vec<Scan<'a>> {
    /// Groups that a thread takes at once.
    const TAKEN: usize = 64;
    let rows = codes.as_rows();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut scans: Vec<_> = wanted.iter().map(|&wanted| Scan::new(wanted).with_kernel(codes.kernel())).collect();
        loop {
            let first = next.fetch_add(TAKEN, Ordering::Relaxed);
            if first >= rows.groups() {
                break;
            }
            for group in first..(first + TAKEN).min(rows.groups()) {
                scans.iter_mut().for_each(|scan| scan.group(&rows, group));
            }
        }
        scans.iter_mut().for_each(|scan| scan.finish(&rows));
        scans
    };
    for wanted in wanted {
        assert_eq!(wanted.query.dimensions(), codes.dimensions(), "a query of other dimensions than the rows");
    }
    let others = threads.for_bytes(rows.high.len() * wanted.len()).saturating_sub(1).min(rows.groups() / TAKEN);
    if others == 0 {
        return work();
    }
    std::thread::scope(|scope| {
        let others: Vec<_> = (0..others).map(|_| scope.spawn(work)).collect();
        let mut scans = work();
        for other in others {
            let other = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            scans.iter_mut().zip(other).for_each(|(scan, other)| scan.merge(other));
        }
        scans
    })
}

/// The scan for one query, row by row: what [`top_k`] does, for callers that have blocks and no [`Codes`].
///
/// Blocks may come in any order; the result is the same.
#[derive(Debug, Clone)]
pub struct Scan<'a> {
    wanted: Wanted<'a>,
    kernel: Kernel,
    /// The lower ends of the best rows so far.
    lowers: TopK<u32>,
    /// The k-th best lower end: a row that cannot reach it is out.
    least: f32,
    /// The upper ends and slots of rows that could reach it when they were looked at.
    candidates: Vec<(f32, u32)>,
    /// Rows that pass the filter among many that do not, until there are enough for a kernel call.
    listed: List,
    /// Rows that can reach `least` as far as their upper bits tell, until there are enough.
    close: List,
    numbers: Numbers,
}

/// Up to [`GROUP`] rows, by their numbers in [`Rows`], with the sums of their upper bits, where they are known.
#[derive(Debug, Clone)]
struct List {
    len: usize,
    rows: [u32; GROUP],
    high: [i32; GROUP],
}

impl<'a> Scan<'a> {
    /// Nothing looked at yet.
    pub fn new(wanted: Wanted<'a>) -> Self {
        let empty = List { len: 0, rows: [0; GROUP], high: [0; GROUP] };
        Self {
            wanted,
            kernel: Kernel::best(),
            lowers: TopK::new(wanted.k),
            least: f32::NEG_INFINITY,
            candidates: Vec::new(),
            listed: empty.clone(),
            close: empty,
            numbers: Numbers::default(),
        }
    }

    /// The same scan by another kernel. For tests and benchmarks.
    #[must_use]
    pub fn with_kernel(mut self, kernel: Kernel) -> Self {
        self.kernel = kernel;
        self
    }

    /// Looks at the rows of block `number`, as [`Block`](super::Block) describes its bytes.
    ///
    /// # Errors
    /// [`ErrorKind::Damaged`] if they are not those of a block of the query's dimensions.
    pub fn block(&mut self, number: usize, bytes: &[u8]) -> Result<()> {
        if number >= MAX_SLOTS / BLOCK_ROWS {
            return Err(Error::new(ErrorKind::Damaged, format!("a block of vectors has the number {number}"))
                .with_remedy("run `vault-index rebuild`"));
        }
        let mut numbers = std::mem::take(&mut self.numbers);
        let rows = numbers.rows(number * BLOCK_ROWS, self.wanted.query, bytes)?;
        (0..rows.groups()).for_each(|group| self.group(&rows, group));
        self.finish(&rows);
        self.numbers = numbers;
        Ok(())
    }

    /// The best of all rows that were looked at: see [`top_k`].
    ///
    /// # Errors
    /// The first error of `exact`.
    pub fn best(self, mut exact: impl FnMut(usize) -> Result<f32>) -> Result<Vec<(usize, f32)>> {
        let mut candidates = self.candidates;
        candidates.retain(|&(upper, _)| upper >= self.least);
        candidates.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let mut best = TopK::new(self.wanted.k);
        for (upper, slot) in candidates {
            // A row that can only tie may still win by its slot, so equality goes on.
            if best.threshold().is_some_and(|threshold| upper < threshold) {
                break;
            }
            best.push(exact(slot as usize)?, slot as usize);
        }
        Ok(best.into_sorted())
    }

    /// Looks at a group of rows; some of them are put off until [`finish`](Self::finish).
    fn group(&mut self, rows: &Rows<'_>, group: usize) {
        /// From so many of a group on, all of its rows are read: it costs about as much.
        const MANY: u32 = 32;
        if self.wanted.k == 0 {
            return;
        }
        let range = rows.group(group);
        let all = u64::MAX >> (GROUP - range.len());
        let pass = self.wanted.filter.map_or(all, |filter| filter.word(rows.first / GROUP + group) & all);
        if pass.count_ones() < MANY.min(all.count_ones()) {
            for row in bits(pass) {
                self.list(rows, (range.start + row) as u32);
            }
            return;
        }
        let mut high = [0; GROUP];
        let high = &mut high[..range.len()];
        self.kernel.dots(&self.wanted.query.codes, &rows.high[rows.bytes(&range)], high);
        let mut uppers = [0.0; GROUP];
        self.uppers(high, &rows.scales[range.clone()], &rows.coarse[range.clone()], &mut uppers);
        for row in bits(at_least(&uppers, self.least) & pass) {
            self.close(rows, (range.start + row) as u32, high[row]);
        }
    }

    /// Looks at what was put off.
    fn finish(&mut self, rows: &Rows<'_>) {
        self.look_at_listed(rows);
        self.look_at_close(rows);
    }

    fn list(&mut self, rows: &Rows<'_>, row: u32) {
        self.listed.rows[self.listed.len] = row;
        self.listed.len += 1;
        if self.listed.len == GROUP {
            self.look_at_listed(rows);
        }
    }

    fn look_at_listed(&mut self, rows: &Rows<'_>) {
        let (len, which) = (self.listed.len, self.listed.rows);
        self.listed.len = 0;
        let (which, mut high, mut uppers) = (&which[..len], [0; GROUP], [0.0; GROUP]);
        let (mut scales, mut coarse) = ([0.0; GROUP], [0.0; GROUP]);
        for (i, &row) in which.iter().enumerate() {
            (scales[i], coarse[i]) = (rows.scales[row as usize], rows.coarse[row as usize]);
        }
        self.kernel.dots_of(&self.wanted.query.codes, rows.high, which, &mut high[..len]);
        self.uppers(&high[..len], &scales[..len], &coarse[..len], &mut uppers);
        for (i, &row) in which.iter().enumerate() {
            if uppers[i] >= self.least {
                self.close(rows, row, high[i]);
            }
        }
    }

    fn close(&mut self, rows: &Rows<'_>, row: u32, high: i32) {
        self.close.rows[self.close.len] = row;
        self.close.high[self.close.len] = high;
        self.close.len += 1;
        if self.close.len == GROUP {
            self.look_at_close(rows);
        }
    }

    fn look_at_close(&mut self, rows: &Rows<'_>) {
        let which = &self.close.rows[..self.close.len];
        let mut low = [0; GROUP];
        let low = &mut low[..which.len()];
        let query = self.wanted.query;
        self.kernel.dots_of(&query.codes, rows.low, which, low);
        for ((&row, &high), &low) in which.iter().zip(&self.close.high).zip(&*low) {
            let scale = rows.scales[row as usize];
            let score = query.score(high, low, scale);
            let error = query.error(rows.errors[row as usize]);
            if score + error >= self.least && scale != 0.0 {
                let slot = rows.first as u32 + row;
                self.candidates.push((score + error, slot));
                self.lowers.push(score - error, slot);
                self.least = self.lowers.threshold().unwrap_or(self.least);
            }
        }
        self.close.len = 0;
    }

    /// The most that rows can score, as far as their upper bits tell.
    fn uppers(&self, high: &[i32], scales: &[f32], coarse: &[f32], uppers: &mut [f32; GROUP]) {
        let query = self.wanted.query;
        for (((upper, &high), &scale), &coarse) in uppers.iter_mut().zip(high).zip(scales).zip(coarse) {
            *upper = query.coarse_score(high, scale) + query.error(coarse);
        }
    }

    /// Adds what another scan for the same has seen of other rows.
    fn merge(&mut self, other: Self) {
        self.candidates.extend(other.candidates);
        for (slot, lower) in other.lowers.into_sorted() {
            self.lowers.push(lower, slot);
        }
        self.least = self.lowers.threshold().unwrap_or(f32::NEG_INFINITY);
    }
}

/// A bit for each number that is at least `least`. Usually none is.
fn at_least(numbers: &[f32; GROUP], least: f32) -> u64 {
    const SOME: usize = 16;
    let mut word = 0;
    for (i, some) in numbers.as_chunks::<SOME>().0.iter().enumerate() {
        // Without a branch, so that it is compiled to a few instructions for all.
        if some.iter().fold(false, |any, &number| any | (number >= least)) {
            let bits = some.iter().enumerate().map(|(j, &number)| u64::from(number >= least) << (i * SOME + j));
            word |= bits.fold(0, |word, bit| word | bit);
        }
    }
    word
}
