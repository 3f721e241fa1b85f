//! The encoder: token ids of some texts in, one unit vector for each out; knows no text.
//!
//! Several texts go through the matrices together, one below the other, for their rows do not touch there: each
//! row of integers has a scale of its own, and there is no padding. Only the attention and the pooling look at
//! more than one row, and they get one text at a time. So a vector does not depend on its neighbours.

use crate::kernel::{Kernel, LANES, LINES, Line, Quantised, Room, Row, Smooth, Then};
use crate::weights::{Layer, Weights};

/// Lines of a token between the two feed-forward matrices.
const INNER_LINES: usize = 4 * LINES;
const QKV_LINES: usize = 3 * LINES;

/// What a run needs besides the weights. Kept, so that a later run allocates nothing.
pub(crate) struct Scratch {
    x: Vec<Row>,
    /// Queries, keys and values; later, what lies between the feed-forward matrices.
    wide: Vec<Line>,
    mixed: Vec<Row>,
    /// `x` or `mixed`, and the GELU's results, as integers.
    whole: Quantised,
    wide_whole: Quantised,
    room: Box<Room>,
}

const EMPTY_LINE: Line = Line([0.0; LANES]);

impl Scratch {
    pub(crate) fn new() -> Scratch {
        Scratch {
            x: Vec::new(),
            wide: Vec::new(),
            mixed: Vec::new(),
            whole: Quantised::default(),
            wide_whole: Quantised::default(),
            room: Box::new(Room::new()),
        }
    }
}

/// The vectors of texts whose ids stand one after the other in `ids`; `lengths` says how many each has.
pub(crate) fn encode(
    kernel: &Kernel,
    weights: &Weights,
    ids: &[u32],
    lengths: &[usize],
    scratch: &mut Scratch,
) -> Vec<Vec<f32>> {
    let rows = ids.len();
    let Scratch { x, wide, mixed, whole, wide_whole, room } = scratch;
    x.resize(rows, [EMPTY_LINE; LINES]);
    mixed.resize(rows, [EMPTY_LINE; LINES]);
    wide.resize(rows * INNER_LINES, EMPTY_LINE);
    (kernel.embed)(ids, lengths, &weights.embeddings, x);
    (kernel.norm)(x, &weights.embedded);
    for layer in &weights.layers {
        attention(kernel, layer, lengths, x, &mut wide[..rows * QKV_LINES], mixed, whole, room);
        (kernel.norm)(x, &layer.middle);
        feed_forward(kernel, layer, x, wide, whole, wide_whole);
        (kernel.norm)(x, &layer.out);
    }
    let mut vector = [EMPTY_LINE; LINES];
    let mut rest = &x[..];
    let pooled = lengths.iter().map(|&length| {
        let (text, others) = rest.split_at(length);
        rest = others;
        (kernel.pool)(text, &mut vector);
        vector.iter().flat_map(|line| line.0).collect()
    });
    pooled.collect()
}

#[expect(clippy::too_many_arguments, reason = "parts of one scratch")]
fn attention(
    kernel: &Kernel,
    layer: &Layer,
    lengths: &[usize],
    x: &mut [Row],
    qkv: &mut [Line],
    mixed: &mut [Row],
    whole: &mut Quantised,
    room: &mut Room,
) {
    let (smooth, matrix) = &layer.qkv;
    quantise(kernel, x.as_flattened(), LINES, Some(smooth), whole);
    (kernel.linear)(whole, matrix, Then::Keep, qkv);
    let (mut qkv, _) = qkv.as_chunks();
    let mut rest = &mut mixed[..];
    for &length in lengths {
        let (text, others) = qkv.split_at(length);
        let (out, behind) = rest.split_at_mut(length);
        (kernel.attend)(text, room, out);
        (qkv, rest) = (others, behind);
    }
    quantise(kernel, mixed.as_flattened(), LINES, None, whole);
    (kernel.linear)(whole, &layer.seen, Then::Add, x.as_flattened_mut());
}

fn feed_forward(
    kernel: &Kernel,
    layer: &Layer,
    x: &mut [Row],
    inner: &mut [Line],
    whole: &mut Quantised,
    inner_whole: &mut Quantised,
) {
    let (smooth, matrix) = &layer.inner;
    quantise(kernel, x.as_flattened(), LINES, Some(smooth), whole);
    (kernel.linear)(whole, matrix, Then::Gelu, inner);
    let (smooth, matrix) = &layer.outer;
    quantise(kernel, inner, INNER_LINES, Some(smooth), inner_whole);
    (kernel.linear)(inner_whole, matrix, Then::Add, x.as_flattened_mut());
}

fn quantise(kernel: &Kernel, rows: &[Line], width: usize, smooth: Option<&Smooth>, out: &mut Quantised) {
    out.resize(rows.len() / width, width);
    (kernel.quantise)(rows, width, smooth, out);
}
