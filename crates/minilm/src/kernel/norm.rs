//! The steps between the matrices, row by row: embedding, layer norm, quantization, pooling.
//!
//! ```text
//! embed      x[r] = words[id[r]] · scale[id[r]] + positions[r]
//! norm       x[r] = (x[r] - mean) / √(variance + epsilon) · gain + bias
//! quantize   t = x[r] · multiplier + shift     scale[r] = max |t| / 127     q[r] = round(t / scale[r])
//! pool       v = Σ x[r]     v / |v|
//! ```
//!
//! A row is quantized by itself, so it does not depend on other rows or texts. Sums over a row are taken in sixteen
//! lanes, which are added at the end; sums over rows are taken in the order of the rows.

use super::lanes::{LANES, Lanes, WHOLE};
use super::{Embeddings, Line, Norm, QuantizedRows, SmoothQuant};

/// A row with no number above this counts as zero, because the inverse of its scale would not be finite.
const SILENCE: f32 = 1e-30;

/// The rows of the ids, one text after the other; `lengths` has the number of ids of each.
#[inline(always)]
pub(super) fn embed<L: Lanes>(ids: &[u32], lengths: &[usize], from: &Embeddings, x: &mut [Line]) {
    let lines = x.len() / ids.len();
    let positions = lengths.iter().flat_map(|&length| from.positions[..length * lines].chunks_exact(lines));
    for ((id, place), x) in ids.iter().zip(positions).zip(x.chunks_exact_mut(lines)) {
        let id = *id as usize;
        let scale = L::splat(from.scales[id]);
        for (half, words) in from.words.iter().enumerate() {
            for (i, bytes) in words[id * (lines / 2)..][..lines / 2].iter().enumerate() {
                let line = half * (lines / 2) + i;
                L::of_bytes(bytes).mul_add(scale, L::load(&place[line].0)).store(&mut x[line].0);
            }
        }
    }
}

/// Normalizes rows in place.
#[inline(always)]
pub(super) fn norm<L: Lanes>(rows: &mut [Line], by: &Norm) {
    let width = (by.gain.len() * LANES) as f32;
    for row in rows.chunks_exact_mut(by.gain.len()) {
        let mut sum = L::splat(0.0);
        for line in row.iter() {
            sum = sum.add(L::load(&line.0));
        }
        let mean = L::splat(sum.sum() / width);
        let mut squares = L::splat(0.0);
        for line in row.iter() {
            let off = L::load(&line.0).sub(mean);
            squares = off.mul_add(off, squares);
        }
        let inverse = L::splat(1.0 / (squares.sum() / width + by.epsilon).sqrt());
        for ((line, gain), bias) in row.iter_mut().zip(by.gain).zip(by.bias) {
            let unit = L::load(&line.0).sub(mean).mul(inverse);
            unit.mul_add(L::load(&gain.0), L::load(&bias.0)).store(&mut line.0);
        }
    }
}

/// Turns rows of `width` lines into integers; with `FLIP`, stored from 1 to 255 around 128 instead of -127 to 127.
#[inline(always)]
pub(super) fn quantize<L: Lanes, const FLIP: bool>(
    rows: &[Line],
    width: usize,
    smooth: Option<&SmoothQuant>,
    out: &mut QuantizedRows,
) {
    match smooth {
        Some(SmoothQuant { multiplier, shift }) => {
            let smooth = (multiplier.as_chunks().0, shift.as_chunks().0);
            quantize_rows::<L, FLIP, true>(rows, width, smooth, out);
        }
        None => quantize_rows::<L, FLIP, false>(rows, width, (&[], &[]), out),
    }
}

/// Four lines, which become a chunk of integers.
type ChunkLines = [Line; CHUNK];
const CHUNK: usize = 4;

#[inline(always)]
fn quantize_rows<L: Lanes, const FLIP: bool, const SMOOTH: bool>(
    rows: &[Line],
    width: usize,
    smooth: (&[ChunkLines], &[ChunkLines]),
    out: &mut QuantizedRows,
) {
    let chunks = width / CHUNK;
    let rows = rows.as_chunks().0.chunks_exact(chunks);
    for ((row, out), scale) in rows.zip(out.bytes.chunks_exact_mut(chunks)).zip(&mut out.scales) {
        // Four independent maxima, so that they can be computed in parallel.
        let mut peaks = [L::splat(0.0); CHUNK];
        for (i, four) in row.iter().enumerate() {
            let four = smoothed::<L, SMOOTH>(four, smooth, i);
            for quarter in 0..CHUNK {
                peaks[quarter] = peaks[quarter].max(four[quarter].abs());
            }
        }
        let peak = peaks[0].max(peaks[1]).max(peaks[2].max(peaks[3])).peak();
        let (inverse, back) = scales(peak);
        *scale = back;
        let inverse = L::splat(inverse);
        for (i, (four, out)) in row.iter().zip(out).enumerate() {
            let four = smoothed::<L, SMOOTH>(four, smooth, i);
            for quarter in 0..CHUNK {
                let mut bytes = four[quarter].mul_add(inverse, L::splat(WHOLE)).low_bytes();
                if FLIP {
                    for byte in &mut bytes {
                        *byte ^= 0x80;
                    }
                }
                out.0[quarter * LANES..][..LANES].copy_from_slice(&bytes);
            }
        }
    }
}

#[inline(always)]
fn smoothed<L: Lanes, const SMOOTH: bool>(
    four: &ChunkLines,
    smooth: (&[ChunkLines], &[ChunkLines]),
    i: usize,
) -> [L; CHUNK] {
    let mut out = [L::splat(0.0); CHUNK];
    for quarter in 0..CHUNK {
        out[quarter] = L::load(&four[quarter].0);
        if SMOOTH {
            let (multiplier, shift) = (&smooth.0[i][quarter], &smooth.1[i][quarter]);
            out[quarter] = out[quarter].mul_add(L::load(&multiplier.0), L::load(&shift.0));
        }
    }
    out
}

/// The factor that quantizes a row and the one that scales its integers back.
#[inline(always)]
fn scales(peak: f32) -> (f32, f32) {
    if peak > SILENCE { (127.0 / peak, peak / 127.0) } else { (0.0, 0.0) }
}

/// The direction of the sum of the rows, which is that of their mean.
#[inline(always)]
pub(super) fn pool<L: Lanes>(rows: &[Line], out: &mut [Line]) {
    let mut squares = L::splat(0.0);
    for i in 0..out.len() {
        let mut sum = L::splat(0.0);
        for row in rows.chunks_exact(out.len()) {
            sum = sum.add(L::load(&row[i].0));
        }
        squares = sum.mul_add(sum, squares);
        sum.store(&mut out[i].0);
    }
    let inverse = L::splat(1.0 / squares.sum().sqrt());
    for line in out {
        L::load(&line.0).mul(inverse).store(&mut line.0);
    }
}
