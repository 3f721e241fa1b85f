//! The encoder in f32 and in its simplest form: what each matrix hears is measured with it, and tests compare it with
//! the original.
//!
//! Sums are taken in the order of the loops, so the result is the same on every processor.

use crate::kernel::{exp_each, gelu_each};

/// `x · weight + bias`.
pub(super) struct PlainLinear {
    /// As it is published: a row for each output.
    pub(super) weight: Vec<f32>,
    pub(super) bias: Vec<f32>,
}

pub(super) struct PlainNorm {
    pub(super) gain: Vec<f32>,
    pub(super) bias: Vec<f32>,
    pub(super) epsilon: f32,
}

pub(super) struct PlainLayer {
    pub(super) heads: usize,
    /// Query, key and value in one.
    pub(super) qkv: PlainLinear,
    pub(super) attention_output: PlainLinear,
    pub(super) attention_norm: PlainNorm,
    pub(super) inner: PlainLinear,
    pub(super) outer: PlainLinear,
    pub(super) output_norm: PlainNorm,
}

/// The inputs of the matrices of a layer, and its output: rows of one text.
pub(super) struct LayerActivations {
    pub(super) qkv: Vec<f32>,
    pub(super) attention_output: Vec<f32>,
    pub(super) inner: Vec<f32>,
    pub(super) outer: Vec<f32>,
    pub(super) output: Vec<f32>,
}

impl PlainLinear {
    pub(super) fn width(&self) -> usize {
        self.weight.len() / self.bias.len()
    }

    /// A row for each input, which is how [`multiply`] reads it.
    pub(super) fn transposed(&self) -> Vec<f32> {
        let (width, columns) = (self.width(), self.bias.len());
        let mut transposed = vec![0.0; self.weight.len()];
        for (column, row) in self.weight.chunks_exact(width).enumerate() {
            for (i, weight) in row.iter().enumerate() {
                transposed[i * columns + column] = *weight;
            }
        }
        transposed
    }
}

fn multiply(x: &[f32], transposed: &[f32], bias: &[f32]) -> Vec<f32> {
    let columns = bias.len();
    let mut out = Vec::with_capacity(x.len() * columns / (transposed.len() / columns));
    for row in x.chunks_exact(transposed.len() / columns) {
        let mut sums = bias.to_vec();
        for (x, weights) in row.iter().zip(transposed.chunks_exact(columns)) {
            for (sum, weight) in sums.iter_mut().zip(weights) {
                *sum += x * weight;
            }
        }
        out.append(&mut sums);
    }
    out
}

impl PlainNorm {
    pub(super) fn apply(&self, rows: &mut [f32]) {
        let width = self.gain.len();
        for row in rows.chunks_exact_mut(width) {
            let mean = row.iter().sum::<f32>() / width as f32;
            let variance = row.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>() / width as f32;
            let deviation = (variance + self.epsilon).sqrt();
            for ((x, gain), bias) in row.iter_mut().zip(&self.gain).zip(&self.bias) {
                *x = (*x - mean) / deviation * gain + bias;
            }
        }
    }
}

/// A layer with its matrices as [`multiply`] reads them, made once for all texts.
pub(super) struct PreparedLayer<'a> {
    layer: &'a PlainLayer,
    qkv: Vec<f32>,
    attention_output: Vec<f32>,
    inner: Vec<f32>,
    outer: Vec<f32>,
}

impl PlainLayer {
    pub(super) fn prepare(&self) -> PreparedLayer<'_> {
        PreparedLayer {
            layer: self,
            qkv: self.qkv.transposed(),
            attention_output: self.attention_output.transposed(),
            inner: self.inner.transposed(),
            outer: self.outer.transposed(),
        }
    }
}

impl PreparedLayer<'_> {
    /// One text through the layer.
    pub(super) fn run(&self, x: Vec<f32>) -> LayerActivations {
        let layer = self.layer;
        let add = |mut sum: Vec<f32>, x: &[f32]| {
            sum.iter_mut().zip(x).for_each(|(sum, x)| *sum += x);
            sum
        };
        let attended = attend(&multiply(&x, &self.qkv, &layer.qkv.bias), layer.qkv.width(), layer.heads);
        let mut middle = add(multiply(&attended, &self.attention_output, &layer.attention_output.bias), &x);
        layer.attention_norm.apply(&mut middle);
        let mut inner = multiply(&middle, &self.inner, &layer.inner.bias);
        gelu_each(&mut inner);
        let mut output = add(multiply(&inner, &self.outer, &layer.outer.bias), &middle);
        layer.output_norm.apply(&mut output);
        LayerActivations { qkv: x, attention_output: attended, inner: middle, outer: inner, output }
    }
}

/// Rows of queries, keys and values in, the weighted values out.
fn attend(qkv: &[f32], width: usize, heads: usize) -> Vec<f32> {
    let (tokens, head_width) = (qkv.len() / (3 * width), width / heads);
    let factor = 1.0 / (head_width as f32).sqrt();
    let mut out = vec![0.0; tokens * width];
    let mut shares = vec![0.0; tokens];
    for head in 0..heads {
        let part = |token: usize, part: usize| &qkv[(3 * token + part) * width + head * head_width..][..head_width];
        for i in 0..tokens {
            for (j, share) in shares.iter_mut().enumerate() {
                *share = factor * part(i, 0).iter().zip(part(j, 1)).map(|(q, k)| q * k).sum::<f32>();
            }
            let most = shares.iter().fold(f32::MIN, |most, share| if *share > most { *share } else { most });
            shares.iter_mut().for_each(|share| *share -= most);
            exp_each(&mut shares);
            let sum: f32 = shares.iter().sum();
            let out = &mut out[i * width + head * head_width..][..head_width];
            for (j, share) in shares.iter().enumerate() {
                for (out, value) in out.iter_mut().zip(part(j, 2)) {
                    *out += share / sum * value;
                }
            }
        }
    }
    out
}
