//! From the rows of a text to its vector: pooling, the dense layer that some models have, truncation, unit length.
//!
//! The dense layer is computed in f32 and in plain Rust, which gives the same bits on every processor: the order of each
//! sum is that of the loops, and no product is fused with a sum.

use crate::kernel::{Kernel, LANES, Line};
use crate::weights::{Dense, Pooling, Weights};

/// The vector of the text with these rows. `pooled` is working memory: one row.
pub(crate) fn vector(kernel: &Kernel, weights: &Weights<'_>, rows: &[Line], pooled: &mut [Line]) -> Vec<f32> {
    let rows = match weights.pooling {
        Pooling::Mean => rows,
        Pooling::First => &rows[..pooled.len()],
    };
    let Some(dense) = &weights.dense else {
        (kernel.pool)(rows, pooled);
        let mut vector: Vec<f32> = pooled.iter().flat_map(|line| line.0).collect();
        if weights.dimensions < vector.len() {
            vector.truncate(weights.dimensions);
            to_unit(&mut vector);
        }
        return vector;
    };
    // Not by the kernel, which pools to unit length: with a bias, the length counts.
    let mut vector = dense.apply(&mean(rows, pooled.len()));
    vector.truncate(weights.dimensions);
    to_unit(&mut vector);
    vector
}

fn mean(rows: &[Line], lines: usize) -> Vec<f32> {
    let mut sum = vec![0.0f32; lines * LANES];
    for row in rows.chunks_exact(lines) {
        for (sum, x) in sum.iter_mut().zip(row.iter().flat_map(|line| line.0)) {
            *sum += x;
        }
    }
    let count = (rows.len() / lines) as f32;
    sum.iter_mut().for_each(|sum| *sum /= count);
    sum
}

impl Dense<'_> {
    fn apply(&self, input: &[f32]) -> Vec<f32> {
        let mut out = self.bias.to_vec();
        for (x, factors) in input.iter().zip(self.weights.chunks_exact(self.bias.len())) {
            for (out, factor) in out.iter_mut().zip(factors) {
                *out += x * factor;
            }
        }
        out
    }
}

/// A vector of zeros stays as it is.
fn to_unit(vector: &mut [f32]) {
    let squares: f64 = vector.iter().map(|x| f64::from(*x) * f64::from(*x)).sum();
    if squares > 0.0 {
        let length = squares.sqrt();
        vector.iter_mut().for_each(|x| *x = (f64::from(*x) / length) as f32);
    }
}
