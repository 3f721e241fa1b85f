//! The encoder: token ids of some texts in, one unit vector for each out; knows no text.
//!
//! Several texts go through the matrices together, one below the other, because rows do not interact there: each row of
//! integers has its own scale, and there is no padding. Only the attention and the pooling read more than one row, and
//! they get one text at a time. So a vector does not depend on the other texts of its batch.

use crate::kernel::{AttentionScratch, Epilogue, Kernel, LANES, LINES, Line, QuantizedRows, Row, SmoothQuant};
use crate::weights::{Layer, Weights};

/// Lines of a token between the two feed-forward matrices.
const INNER_LINES: usize = 4 * LINES;
const QKV_LINES: usize = 3 * LINES;

/// Working memory of a forward pass. It is reused, so later passes allocate nothing.
pub(crate) struct Scratch {
    x: Vec<Row>,
    /// Queries, keys and values; later, the activations between the feed-forward matrices.
    wide: Vec<Line>,
    attended: Vec<Row>,
    /// `x`, `attended` or the results of GELU, as integers.
    quantized: QuantizedRows,
    wide_quantized: QuantizedRows,
    attention_scratch: Box<AttentionScratch>,
}

const EMPTY_LINE: Line = Line([0.0; LANES]);

impl Scratch {
    pub(crate) fn new() -> Scratch {
        Scratch {
            x: Vec::new(),
            wide: Vec::new(),
            attended: Vec::new(),
            quantized: QuantizedRows::default(),
            wide_quantized: QuantizedRows::default(),
            attention_scratch: Box::new(AttentionScratch::new()),
        }
    }
}

/// The vectors of texts whose ids are concatenated in `ids`; `lengths` has the number of ids of each text.
pub(crate) fn encode(
    kernel: &Kernel,
    weights: &Weights,
    ids: &[u32],
    lengths: &[usize],
    scratch: &mut Scratch,
) -> Vec<Vec<f32>> {
    let rows = ids.len();
    let Scratch { x, wide, attended, quantized, wide_quantized, attention_scratch } = scratch;
    x.resize(rows, [EMPTY_LINE; LINES]);
    attended.resize(rows, [EMPTY_LINE; LINES]);
    wide.resize(rows * INNER_LINES, EMPTY_LINE);
    (kernel.embed)(ids, lengths, &weights.embeddings, x);
    (kernel.norm)(x, &weights.embedded);
    for layer in &weights.layers {
        attention(kernel, layer, lengths, x, &mut wide[..rows * QKV_LINES], attended, quantized, attention_scratch);
        (kernel.norm)(x, &layer.attention_norm);
        feed_forward(kernel, layer, x, wide, quantized, wide_quantized);
        (kernel.norm)(x, &layer.output_norm);
    }
    let mut vector = [EMPTY_LINE; LINES];
    let mut remaining = &x[..];
    let pooled = lengths.iter().map(|&length| {
        let (text, others) = remaining.split_at(length);
        remaining = others;
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
    attended: &mut [Row],
    quantized: &mut QuantizedRows,
    attention_scratch: &mut AttentionScratch,
) {
    let (smooth, matrix) = &layer.qkv;
    quantize(kernel, x.as_flattened(), LINES, Some(smooth), quantized);
    (kernel.linear)(quantized, matrix, Epilogue::Store, qkv);
    let (mut qkv, _) = qkv.as_chunks();
    let mut remaining = &mut attended[..];
    for &length in lengths {
        let (text, others) = qkv.split_at(length);
        let (out, behind) = remaining.split_at_mut(length);
        (kernel.attend)(text, attention_scratch, out);
        (qkv, remaining) = (others, behind);
    }
    quantize(kernel, attended.as_flattened(), LINES, None, quantized);
    (kernel.linear)(quantized, &layer.attention_output, Epilogue::Add, x.as_flattened_mut());
}

fn feed_forward(
    kernel: &Kernel,
    layer: &Layer,
    x: &mut [Row],
    inner: &mut [Line],
    quantized: &mut QuantizedRows,
    inner_quantized: &mut QuantizedRows,
) {
    let (smooth, matrix) = &layer.inner;
    quantize(kernel, x.as_flattened(), LINES, Some(smooth), quantized);
    (kernel.linear)(quantized, matrix, Epilogue::Gelu, inner);
    let (smooth, matrix) = &layer.outer;
    quantize(kernel, inner, INNER_LINES, Some(smooth), inner_quantized);
    (kernel.linear)(inner_quantized, matrix, Epilogue::Add, x.as_flattened_mut());
}

fn quantize(kernel: &Kernel, rows: &[Line], width: usize, smooth: Option<&SmoothQuant>, out: &mut QuantizedRows) {
    out.resize(rows.len() / width, width);
    (kernel.quantize)(rows, width, smooth, out);
}
