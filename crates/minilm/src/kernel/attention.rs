//! Multi-head self-attention over one text: scores, softmax, and the weighted sum of values, head by head.
//!
//! ```text
//! for each head, for each token i:
//!     score[j] = Σ query[i][d] · key[j][d]                      d in order; 1 / √32 is in the query's weights
//!     share[j] = 2^((score[j] - max score) · log2 e)
//!     output[i] = Σ share[j] · value[j]  /  Σ share[j]           j in order; the sum of shares in sixteen lanes
//! ```
//!
//! Reasons for its speed:
//! - the keys of a head are transposed once, so that a lane is a key and no sum goes across lanes; its values are
//!   copied, because rows 4,608 bytes apart evict each other from the L1 cache;
//! - several queries are processed at once, so that a loaded key or value is used several times and the sums are
//!   independent; where fewer are left at the end, the last one is computed more than once;
//! - the scores of these queries stay in the L1 cache.

use super::activations::power_of_two;
use super::lanes::{LANES, Lanes};
use super::{HEAD, HEADS, Line, MAX_TOKENS, QkvRow, Row};

/// Lines of a head's part of a row.
const HEAD_LINES: usize = HEAD / LANES;
/// Lines of all queries in a row; the same number of keys and of values follows.
const PART: usize = HEADS * HEAD_LINES;
/// Lines of one component of all keys.
const KEY_LINES: usize = MAX_TOKENS / LANES;
/// The most queries at once.
pub(super) const MOST_QUERIES: usize = 8;

/// Working memory for one head of one text.
pub(crate) struct AttentionScratch {
    /// Transposed: for each component of a key, that component of all tokens. After the text's last token are
    /// components of another text, or zeros: finite, and not used.
    keys: [[Line; KEY_LINES]; HEAD],
    values: [[Line; HEAD_LINES]; MAX_TOKENS],
    shares: [[Line; KEY_LINES]; MOST_QUERIES],
}

impl AttentionScratch {
    pub(crate) fn new() -> AttentionScratch {
        let empty = [Line([0.0; LANES]); KEY_LINES];
        let values = [[Line([0.0; LANES]); HEAD_LINES]; MAX_TOKENS];
        AttentionScratch { keys: [empty; HEAD], values, shares: [empty; MOST_QUERIES] }
    }
}

/// One text: its queries, keys and values in, the attention output out.
#[inline(always)]
pub(super) fn attend<L: Lanes, const QUERIES: usize>(
    text: &[QkvRow],
    scratch: &mut AttentionScratch,
    output: &mut [Row],
) {
    let tokens = text.len();
    assert!(0 < tokens && tokens <= MAX_TOKENS && output.len() == tokens && QUERIES <= MOST_QUERIES);
    for head in 0..HEADS {
        gather(text, head, scratch);
        let mut first = 0;
        while first < tokens {
            // Past the end, repeat the last query.
            let mut queries = [0; QUERIES];
            for i in 0..QUERIES {
                queries[i] = (first + i).min(tokens - 1);
            }
            scores::<L, QUERIES>(text, head, &queries, scratch);
            let sums = softmax::<L, QUERIES>(tokens, &mut scratch.shares);
            mix::<L, QUERIES>(&scratch.values[..tokens], &queries, &sums, &scratch.shares, head, output);
            first += QUERIES;
        }
    }
}

#[inline(always)]
fn gather(text: &[QkvRow], head: usize, scratch: &mut AttentionScratch) {
    for (j, row) in text.iter().enumerate() {
        for half in 0..HEAD_LINES {
            let key = &row[PART + head * HEAD_LINES + half].0;
            for d in 0..LANES {
                scratch.keys[half * LANES + d][j / LANES].0[j % LANES] = key[d];
            }
            scratch.values[j][half] = row[2 * PART + head * HEAD_LINES + half];
        }
    }
}

#[inline(always)]
fn scores<L: Lanes, const QUERIES: usize>(
    text: &[QkvRow],
    head: usize,
    queries: &[usize; QUERIES],
    scratch: &mut AttentionScratch,
) {
    let lines = text.len().div_ceil(LANES);
    let mut rows = [&text[0][..HEAD_LINES]; QUERIES];
    for i in 0..QUERIES {
        rows[i] = &text[queries[i]][head * HEAD_LINES..][..HEAD_LINES];
    }
    let mut line = 0;
    while line + 2 <= lines {
        scores_of::<L, QUERIES, 2>(&rows, line, scratch);
        line += 2;
    }
    if line < lines {
        scores_of::<L, QUERIES, 1>(&rows, line, scratch);
    }
}

/// The scores of some queries with some lines of keys.
#[inline(always)]
fn scores_of<L: Lanes, const QUERIES: usize, const LINES: usize>(
    rows: &[&[Line]; QUERIES],
    line: usize,
    scratch: &mut AttentionScratch,
) {
    let mut sums = [[L::splat(0.0); LINES]; QUERIES];
    for half in 0..HEAD_LINES {
        for d in 0..LANES {
            let mut keys = [L::splat(0.0); LINES];
            for k in 0..LINES {
                keys[k] = L::load(&scratch.keys[half * LANES + d][line + k].0);
            }
            for i in 0..QUERIES {
                let query = L::splat(rows[i][half].0[d]);
                for k in 0..LINES {
                    sums[i][k] = query.mul_add(keys[k], sums[i][k]);
                }
            }
        }
    }
    for i in 0..QUERIES {
        for k in 0..LINES {
            sums[i][k].store(&mut scratch.shares[i][line + k].0);
        }
    }
}

/// Turns scores into shares that are not yet divided by their sums, and returns the sums.
#[inline(always)]
fn softmax<L: Lanes, const QUERIES: usize>(
    tokens: usize,
    shares: &mut [[Line; KEY_LINES]; MOST_QUERIES],
) -> [f32; QUERIES] {
    let lines = tokens.div_ceil(LANES);
    let log2_e = L::splat(std::f32::consts::LOG2_E);
    let mut sums = [0.0; QUERIES];
    for i in 0..QUERIES {
        let row = &mut shares[i][..lines];
        if !tokens.is_multiple_of(LANES) {
            // Lanes past the end of the text: their share becomes 2^-125, which is negligible compared with the
            // largest, 1.
            row[lines - 1].0[tokens % LANES..].fill(f32::MIN);
        }
        let mut most = L::load(&row[0].0);
        for line in row.iter() {
            most = most.max(L::load(&line.0));
        }
        let most = L::splat(-most.peak()).mul(log2_e);
        let mut sum = L::splat(0.0);
        for line in row {
            let share = power_of_two(L::load(&line.0).mul_add(log2_e, most));
            sum = sum.add(share);
            share.store(&mut line.0);
        }
        sums[i] = sum.sum();
    }
    sums
}

#[inline(always)]
fn mix<L: Lanes, const QUERIES: usize>(
    values: &[[Line; HEAD_LINES]],
    queries: &[usize; QUERIES],
    sums: &[f32; QUERIES],
    shares: &[[Line; KEY_LINES]; MOST_QUERIES],
    head: usize,
    output: &mut [Row],
) {
    let mut totals = [[L::splat(0.0); HEAD_LINES]; QUERIES];
    for (j, value) in values.iter().enumerate() {
        let value = [L::load(&value[0].0), L::load(&value[1].0)];
        for i in 0..QUERIES {
            let share = L::splat(shares[i][j / LANES].0[j % LANES]);
            totals[i][0] = share.mul_add(value[0], totals[i][0]);
            totals[i][1] = share.mul_add(value[1], totals[i][1]);
        }
    }
    for i in 0..QUERIES {
        let inverse = L::splat(1.0 / sums[i]);
        for half in 0..HEAD_LINES {
            totals[i][half].mul(inverse).store(&mut output[queries[i]][head * HEAD_LINES + half].0);
        }
    }
}
