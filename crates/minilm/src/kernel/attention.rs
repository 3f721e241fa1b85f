//! Multi-head self-attention over one text: scores, softmax, and the weighted sum of values, head by head.
//!
//! ```text
//! for each head, for each token i:
//!     score[j] = Σ query[i][d] · key[j][d]                      d in order; 1 / √(head width) is in the query's weights
//!     share[j] = 2^((score[j] - max score) · log2 e)
//!     output[i] = Σ share[j] · value[j]  /  Σ share[j]           j in order; the sum of shares in sixteen lanes
//! ```
//!
//! Reasons for its speed:
//! - the keys of a head are transposed once, so that a lane is a key and no sum goes across lanes; its values are
//!   copied, because rows that are thousands of bytes apart evict each other from the L1 cache;
//! - several queries are processed at once, so that a loaded key or value is used several times and the sums are
//!   independent; where fewer are left at the end, the last one is computed more than once;
//! - the scores of these queries stay in the L1 cache.

use super::activations::power_of_two;
use super::lanes::{LANES, Lanes};
use super::{Line, MAX_TOKENS, Shape};

/// The most lines of a head's part of a row.
const MOST_HEAD_LINES: usize = 4;
/// Lines of one component of all keys.
const KEY_LINES: usize = MAX_TOKENS / LANES;
/// The most queries at once.
pub(super) const MOST_QUERIES: usize = 8;

/// Working memory for one head of one text.
pub(crate) struct AttentionScratch {
    /// Transposed: for each component of a key, that component of all tokens. After the text's last token are
    /// components of another text, or zeros: finite, and not used.
    keys: [[Line; KEY_LINES]; MOST_HEAD_LINES * LANES],
    /// Without gaps: the lines of a head, token after token.
    values: [Line; MAX_TOKENS * MOST_HEAD_LINES],
    shares: [[Line; KEY_LINES]; MOST_QUERIES],
}

impl AttentionScratch {
    pub(crate) fn new() -> AttentionScratch {
        let empty = [Line([0.0; LANES]); KEY_LINES];
        AttentionScratch {
            keys: [empty; MOST_HEAD_LINES * LANES],
            values: [Line([0.0; LANES]); MAX_TOKENS * MOST_HEAD_LINES],
            shares: [empty; MOST_QUERIES],
        }
    }
}

/// The rows of one text, and where a head's lines are in them: a row has the queries of all heads, then their keys, then
/// their values.
#[derive(Clone, Copy)]
struct Text<'a, const HEAD_LINES: usize> {
    lines: &'a [Line],
    heads: usize,
    tokens: usize,
}

#[derive(Clone, Copy)]
enum Part {
    Query,
    Key,
    Value,
}

impl<'a, const HEAD_LINES: usize> Text<'a, HEAD_LINES> {
    #[inline(always)]
    fn part(self, token: usize, part: Part, head: usize) -> &'a [Line; HEAD_LINES] {
        let at = ((3 * token + part as usize) * self.heads + head) * HEAD_LINES;
        self.lines[at..].first_chunk().unwrap_or_else(|| unreachable!())
    }
}

/// One text: its queries, keys and values in, the attention output out.
#[inline(always)]
pub(super) fn attend<L: Lanes, const QUERIES: usize>(
    text: &[Line],
    shape: &Shape,
    scratch: &mut AttentionScratch,
    output: &mut [Line],
) {
    // The number of lines is a constant of the compiled head, so that its sums stay in registers.
    match shape.lines / shape.heads {
        2 => attend_heads::<L, QUERIES, 2>(text, shape.heads, scratch, output),
        4 => attend_heads::<L, QUERIES, 4>(text, shape.heads, scratch, output),
        lines => unreachable!("heads of {lines} lines"),
    }
}

#[inline(always)]
fn attend_heads<L: Lanes, const QUERIES: usize, const HEAD_LINES: usize>(
    lines: &[Line],
    heads: usize,
    scratch: &mut AttentionScratch,
    output: &mut [Line],
) {
    let tokens = output.len() / (heads * HEAD_LINES);
    assert!(0 < tokens && tokens <= MAX_TOKENS && QUERIES <= MOST_QUERIES);
    assert!(output.len() == tokens * heads * HEAD_LINES && lines.len() == 3 * output.len());
    let text = Text::<HEAD_LINES> { lines, heads, tokens };
    for head in 0..heads {
        gather(text, head, scratch);
        let mut first = 0;
        while first < tokens {
            // Past the end, repeat the last query.
            let mut queries = [0; QUERIES];
            for i in 0..QUERIES {
                queries[i] = (first + i).min(tokens - 1);
            }
            scores::<L, QUERIES, HEAD_LINES>(text, head, &queries, scratch);
            let sums = softmax::<L, QUERIES>(tokens, &mut scratch.shares);
            let mixed = mix::<L, QUERIES, HEAD_LINES>(tokens, &sums, scratch);
            for i in 0..QUERIES {
                let out = &mut output[(queries[i] * heads + head) * HEAD_LINES..];
                for part in 0..HEAD_LINES {
                    mixed[i][part].store(&mut out[part].0);
                }
            }
            first += QUERIES;
        }
    }
}

#[inline(always)]
fn gather<const HEAD_LINES: usize>(text: Text<'_, HEAD_LINES>, head: usize, scratch: &mut AttentionScratch) {
    for j in 0..text.tokens {
        let key = text.part(j, Part::Key, head);
        let value = text.part(j, Part::Value, head);
        for part in 0..HEAD_LINES {
            for d in 0..LANES {
                scratch.keys[part * LANES + d][j / LANES].0[j % LANES] = key[part].0[d];
            }
            scratch.values[j * HEAD_LINES + part] = value[part];
        }
    }
}

#[inline(always)]
fn scores<L: Lanes, const QUERIES: usize, const HEAD_LINES: usize>(
    text: Text<'_, HEAD_LINES>,
    head: usize,
    queries: &[usize; QUERIES],
    scratch: &mut AttentionScratch,
) {
    let lines = text.tokens.div_ceil(LANES);
    let mut rows = [text.part(0, Part::Query, head); QUERIES];
    for i in 0..QUERIES {
        rows[i] = text.part(queries[i], Part::Query, head);
    }
    let mut line = 0;
    while line + 2 <= lines {
        scores_of::<L, QUERIES, HEAD_LINES, 2>(&rows, line, scratch);
        line += 2;
    }
    if line < lines {
        scores_of::<L, QUERIES, HEAD_LINES, 1>(&rows, line, scratch);
    }
}

/// The scores of some queries with some lines of keys.
#[inline(always)]
fn scores_of<L: Lanes, const QUERIES: usize, const HEAD_LINES: usize, const LINES: usize>(
    rows: &[&[Line; HEAD_LINES]; QUERIES],
    line: usize,
    scratch: &mut AttentionScratch,
) {
    let mut sums = [[L::splat(0.0); LINES]; QUERIES];
    for part in 0..HEAD_LINES {
        for d in 0..LANES {
            let mut keys = [L::splat(0.0); LINES];
            for k in 0..LINES {
                keys[k] = L::load(&scratch.keys[part * LANES + d][line + k].0);
            }
            for i in 0..QUERIES {
                let query = L::splat(rows[i][part].0[d]);
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

/// The weighted sums of the values, one for each query.
#[inline(always)]
fn mix<L: Lanes, const QUERIES: usize, const HEAD_LINES: usize>(
    tokens: usize,
    sums: &[f32; QUERIES],
    scratch: &AttentionScratch,
) -> [[L; HEAD_LINES]; QUERIES] {
    let mut totals = [[L::splat(0.0); HEAD_LINES]; QUERIES];
    for j in 0..tokens {
        let mut value = [L::splat(0.0); HEAD_LINES];
        for part in 0..HEAD_LINES {
            value[part] = L::load(&scratch.values[j * HEAD_LINES + part].0);
        }
        for i in 0..QUERIES {
            let share = L::splat(scratch.shares[i][j / LANES].0[j % LANES]);
            for part in 0..HEAD_LINES {
                totals[i][part] = share.mul_add(value[part], totals[i][part]);
            }
        }
    }
    for i in 0..QUERIES {
        let inverse = L::splat(1.0 / sums[i]);
        for part in 0..HEAD_LINES {
            totals[i][part] = totals[i][part].mul(inverse);
        }
    }
    totals
}
