//! The encoder: token ids of some texts in, one unit vector for each out; knows no text.
//!
//! Several texts go through the matrices together, one below the other, because rows do not interact there: each row of
//! integers has its own scale, and there is no padding. Only the attention and the pooling read more than one row, and
//! they get one text at a time. So a vector does not depend on the other texts of its batch.

use crate::kernel::{AttentionScratch, Epilogue, Kernel, LANES, Line, QuantizedRows, Shape, SmoothQuant};
use crate::pooling::vector;
use crate::weights::{Layer, Weights};

/// Working memory of a forward pass. It is reused, so later passes allocate nothing.
pub(crate) struct Scratch {
    x: Vec<Line>,
    /// Queries, keys and values; later, the activations between the feed-forward matrices.
    wide: Vec<Line>,
    attended: Vec<Line>,
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
    weights: &Weights<'_>,
    ids: &[u32],
    lengths: &[usize],
    scratch: &mut Scratch,
) -> Vec<Vec<f32>> {
    let rows = ids.len();
    let shape = &weights.shape;
    let lines = shape.lines;
    let Scratch { x, wide, attended, quantized, wide_quantized, attention_scratch } = scratch;
    x.resize(rows * lines, EMPTY_LINE);
    attended.resize(rows * lines, EMPTY_LINE);
    wide.resize(rows * shape.inner_lines.max(3 * lines), EMPTY_LINE);
    (kernel.embed)(ids, lengths, &weights.embeddings, x);
    (kernel.norm)(x, &weights.embedded);
    for layer in &weights.layers {
        let qkv = &mut wide[..rows * 3 * lines];
        attention(kernel, shape, layer, lengths, x, qkv, attended, quantized, attention_scratch);
        (kernel.norm)(x, &layer.attention_norm);
        feed_forward(kernel, shape, layer, x, &mut wide[..rows * shape.inner_lines], quantized, wide_quantized);
        (kernel.norm)(x, &layer.output_norm);
    }
    let mut pooled = vec![EMPTY_LINE; lines];
    let mut remaining = &x[..];
    let vectors = lengths.iter().map(|&length| {
        let (text, others) = remaining.split_at(length * lines);
        remaining = others;
        vector(kernel, weights, text, &mut pooled)
    });
    vectors.collect()
}

#[expect(clippy::too_many_arguments, reason = "parts of one scratch")]
fn attention(
    kernel: &Kernel,
    shape: &Shape,
    layer: &Layer<'_>,
    lengths: &[usize],
    x: &mut [Line],
    qkv: &mut [Line],
    attended: &mut [Line],
    quantized: &mut QuantizedRows,
    attention_scratch: &mut AttentionScratch,
) {
    let (smooth, matrix) = &layer.qkv;
    quantize(kernel, x, shape.lines, Some(smooth), quantized);
    (kernel.linear)(quantized, matrix, Epilogue::Store, qkv);
    let mut qkv = &*qkv;
    let mut remaining = &mut attended[..];
    for &length in lengths {
        let (text, others) = qkv.split_at(3 * length * shape.lines);
        let (out, behind) = remaining.split_at_mut(length * shape.lines);
        (kernel.attend)(text, shape, attention_scratch, out);
        (qkv, remaining) = (others, behind);
    }
    quantize(kernel, attended, shape.lines, None, quantized);
    (kernel.linear)(quantized, &layer.attention_output, Epilogue::Add, x);
}

fn feed_forward(
    kernel: &Kernel,
    shape: &Shape,
    layer: &Layer<'_>,
    x: &mut [Line],
    inner: &mut [Line],
    quantized: &mut QuantizedRows,
    inner_quantized: &mut QuantizedRows,
) {
    let (smooth, matrix) = &layer.inner;
    quantize(kernel, x, shape.lines, Some(smooth), quantized);
    (kernel.linear)(quantized, matrix, Epilogue::Gelu, inner);
    let (smooth, matrix) = &layer.outer;
    quantize(kernel, inner, shape.inner_lines, Some(smooth), inner_quantized);
    (kernel.linear)(inner_quantized, matrix, Epilogue::Add, x);
}

fn quantize(kernel: &Kernel, rows: &[Line], width: usize, smooth: Option<&SmoothQuant>, out: &mut QuantizedRows) {
    out.resize(rows.len() / width, width);
    (kernel.quantize)(rows, width, smooth, out);
}
