//! From f32 matrices to integers in panels, with the SmoothQuant factors that the input of each matrix needs.
//!
//! `PROVENANCE.md` says what is done and why; the names and the arithmetic are those of `recipe/make_model.py`.

use super::plain_encoder::PlainLinear;
use crate::kernel::PANEL;

/// The largest integer. -128 is left out, so that the product of two signs is a change of sign.
const LIMIT: f32 = 127.0;
/// How much of the loudness of a channel goes into its factor; the rest is the weight's.
const STRENGTH: f64 = 0.4;
/// How many per cent of the values at either end do not count for the middle of a channel.
const TRIM: f64 = 0.5;

/// A factor and an offset for each input channel: the matrix gets `(x - offset) · multiplier`.
pub(super) struct Smoothing {
    pub(super) multiplier: Vec<f32>,
    pub(super) offset: Vec<f32>,
}

/// The smoothing of a matrix that heard these rows. The middle of what GELU gives is far from most of it, so there
/// `is_centred` is false.
pub(super) fn smoothing(heard: &[&[f32]], matrix: &PlainLinear, is_centred: bool) -> Smoothing {
    let width = matrix.width();
    let rows = || heard.iter().flat_map(|rows| rows.chunks_exact(width));
    let count = rows().count() as f64;
    let mut offset = vec![0.0; width];
    if is_centred {
        let mut values = Vec::new();
        for (channel, offset) in offset.iter_mut().enumerate() {
            values.clear();
            values.extend(rows().map(|row| row[channel]));
            values.sort_unstable_by(f32::total_cmp);
            let middle = (percentile(&values, TRIM) + percentile(&values, 100.0 - TRIM)) / 2.0;
            *offset = ((middle * 64.0).round_ties_even() / 64.0) as f32;
        }
    }
    let mut loud = vec![0.0; width];
    for row in rows() {
        for ((loud, x), offset) in loud.iter_mut().zip(row).zip(&offset) {
            *loud += (f64::from(*x) - f64::from(*offset)).powi(2);
        }
    }
    let mut heavy = vec![0.0; width];
    for row in matrix.weight.chunks_exact(width) {
        for (heavy, weight) in heavy.iter_mut().zip(row) {
            *heavy += f64::from(*weight).powi(2);
        }
    }
    let columns = matrix.bias.len() as f64;
    let root_mean = |sums: &mut [f64], count: f64| {
        sums.iter_mut().for_each(|sum| *sum = (*sum / count).sqrt());
        let least = sums.iter().fold(0.0, |most: f64, sum| most.max(*sum)) / 1000.0;
        // A channel that is always silent, or a matrix of zeros, has no size.
        sums.iter_mut().for_each(|sum| *sum = sum.max(least).max(f64::MIN_POSITIVE));
    };
    root_mean(&mut loud, count);
    root_mean(&mut heavy, columns);
    let eighths: Vec<f64> = loud
        .iter()
        .zip(&heavy)
        .map(|(loud, heavy)| 8.0 * ((1.0 - STRENGTH) * log2(*heavy) - STRENGTH * log2(*loud)))
        .collect();
    let mut sorted = eighths.clone();
    sorted.sort_unstable_by(f64::total_cmp);
    let median = (sorted[(width - 1) / 2] + sorted[width / 2]) / 2.0;
    let multiplier = eighths.iter().map(|eighths| eighth_power((eighths - median).round_ties_even() as i32)).collect();
    Smoothing { multiplier, offset }
}

/// Between the two nearest of sorted values, by their distance.
fn percentile(sorted: &[f32], percent: f64) -> f64 {
    let at = percent / 100.0 * (sorted.len() - 1) as f64;
    let low = at as usize;
    let high = (low + 1).min(sorted.len() - 1);
    let (from, to) = (f64::from(sorted[low]), f64::from(sorted[high]));
    from + (at - low as f64) * (to - from)
}

/// The binary logarithm of a positive normal number, the same on every processor, which the library's need not be.
fn log2(x: f64) -> f64 {
    let bits = x.to_bits();
    let exponent = ((bits >> 52) & 0x7ff) as i32 - 1023;
    let mantissa = f64::from_bits((bits & ((1 << 52) - 1)) | (1023 << 52));
    // ln m = 2 artanh((m - 1) / (m + 1)), and the argument is below 1/3.
    let t = (mantissa - 1.0) / (mantissa + 1.0);
    let series = (0..20).rev().fold(0.0, |sum, n| sum * t * t + 1.0 / f64::from(2 * n + 1));
    f64::from(exponent) + 2.0 * t * series / std::f64::consts::LN_2
}

/// 2 to an eighth of this, made of square roots, which are correctly rounded everywhere.
fn eighth_power(eighths: i32) -> f32 {
    let root = f64::from(2f32.sqrt().sqrt().sqrt());
    let fraction = (0..eighths.rem_euclid(8)).fold(1.0, |product, _| product * root);
    let whole = f64::from_bits(((eighths.div_euclid(8) + 1023) as u64) << 52);
    (fraction * whole) as f32
}

/// The matrix and bias that give with the smooth input what they gave before. The bias is in f64: it may be scaled and
/// shifted before it is rounded once.
pub(super) fn smoothed(matrix: &PlainLinear, by: &Smoothing) -> (Vec<f32>, Vec<f64>) {
    let width = matrix.width();
    let rows = || matrix.weight.chunks_exact(width);
    let weight = rows().flat_map(|row| row.iter().zip(&by.multiplier).map(|(weight, factor)| weight / factor));
    let constant = |row: &[f32]| -> f64 {
        row.iter().zip(&by.offset).map(|(weight, offset)| f64::from(*weight) * f64::from(*offset)).sum()
    };
    let bias = matrix.bias.iter().zip(rows()).map(|(bias, row)| f64::from(*bias) + constant(row));
    (weight.collect(), bias.collect())
}

/// Symmetric integers with one scale for each row.
pub(super) fn integers(rows: &[f32], width: usize) -> (Vec<i8>, Vec<f32>) {
    let mut whole = Vec::with_capacity(rows.len());
    let mut scales = Vec::with_capacity(rows.len() / width);
    for row in rows.chunks_exact(width) {
        let peak = row.iter().fold(0f32, |peak, x| peak.max(x.abs()));
        let scale = if peak > 0.0 { peak / LIMIT } else { 1.0 };
        // The scale of numbers that are nearly zero is rounded, too: the quotient must not leave the range.
        whole.extend(row.iter().map(|x| (x / scale).round_ties_even().clamp(-LIMIT, LIMIT) as i8));
        scales.push(scale);
    }
    (whole, scales)
}

/// The integers of a matrix in the order in which a kernel reads them (see [`PANEL`]), and the sum that each column
/// starts with where rows are stored around 128.
pub(super) fn panels(integers: &[i8], width: usize) -> (Vec<i8>, Vec<i32>) {
    let columns = integers.len() / width;
    let mut packed = Vec::with_capacity(integers.len());
    for panel in 0..columns / PANEL {
        for k in (0..width).step_by(4) {
            for column in panel * PANEL..(panel + 1) * PANEL {
                packed.extend_from_slice(&integers[column * width + k..][..4]);
            }
        }
    }
    let start = |row: &[i8]| -128 * row.iter().map(|weight| i32::from(*weight)).sum::<i32>();
    (packed, integers.chunks_exact(width).map(start).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_and_powers() {
        for x in [1e-300, 0.001, 0.3, 0.999_999, 1.0, 1.5, 1.999_999, 2.0, 12345.678] {
            assert!((log2(x) - x.log2()).abs() < 1e-13 * x.log2().abs().max(1.0), "{x}");
        }
        for eighths in -40..40 {
            let expected = (f64::from(eighths) / 8.0).exp2();
            assert!((f64::from(eighth_power(eighths)) / expected - 1.0).abs() < 1e-6, "{eighths}");
        }
    }

    #[test]
    fn rows_become_integers_and_panels() {
        let (whole, scales) = integers(&[0.0, 0.0, 127.0, -63.6], 2);
        assert_eq!((whole.as_slice(), scales.as_slice()), (&[0, 0, 127, -64][..], &[1.0, 1.0][..]));
        // Column c of row k holds c + k.
        let integers: Vec<i8> = (0..PANEL).flat_map(|column| (0..8).map(move |k| (column + k) as i8)).collect();
        let (packed, starts) = panels(&integers, 8);
        assert_eq!(packed[..8], [0, 1, 2, 3, 1, 2, 3, 4]);
        assert_eq!(packed[4 * PANEL..][..4], [4, 5, 6, 7]);
        assert_eq!(starts[1], -128 * (1..9).sum::<i32>());
    }
}
