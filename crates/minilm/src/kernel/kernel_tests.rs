//! Tests: every kernel that this machine supports gives the same bits as the scalar one.

use proptest::prelude::*;

use super::*;
use crate::MiniLm;
use crate::encoder::{Scratch, encode};
use crate::weights::{Layer, Pooling, Weights};

/// The greatest width between the feed-forward matrices: that of a model of 768.
const WIDEST: usize = 4 * 768;
/// The lines of the bundled model.
const LINES: usize = crate::DIMENSIONS / LANES;

/// An endless sequence of numbers, the same for the same seed.
fn random(seed: u64) -> impl FnMut() -> u32 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u32
    }
}

/// Any possible quantized integer, the extremes more often than others.
fn extreme(random: u32) -> i8 {
    match random % 4 {
        0 => 127,
        1 => -127,
        _ => (random >> 8) as i8,
    }
    .max(-127)
}

/// A matrix with the lifetime of the program.
fn matrix(width: usize, panels: usize, mut random: impl FnMut() -> u32) -> Linear<'static> {
    let weights: Vec<i8> = (0..width * panels * PANEL).map(|_| extreme(random())).collect();
    let mut starts = vec![[0; PANEL]; panels];
    for (i, weight) in weights.iter().enumerate() {
        starts[i / (width * PANEL)][i / 4 % PANEL] -= 128 * i32::from(*weight);
    }
    let mut lines = || vec![Line([(); LANES].map(|()| random() as f32 / 1e9 - 2.0)); panels * PANEL / LANES].leak();
    let (scales, bias) = (lines(), lines());
    Linear { width, weights: weights.leak(), starts: starts.leak(), scales, bias }
}

/// `scale · Σ + bias`, in the simplest form.
fn slow(rows: &[Vec<i8>], scales: &[f32], matrix: &Linear) -> Vec<f32> {
    let mut out = Vec::new();
    for (row, scale) in rows.iter().zip(scales) {
        for column in 0..matrix.starts.len() * PANEL {
            let panel = &matrix.weights[column / PANEL * matrix.width * PANEL..];
            let weight = |k: usize| i32::from(panel[(k / 4 * PANEL + column % PANEL) * 4 + k % 4]);
            let sum: i32 = row.iter().enumerate().map(|(k, x)| i32::from(*x) * weight(k)).sum();
            let (line, lane) = (column / LANES, column % LANES);
            out.push((sum as f32 * scale).mul_add(matrix.scales[line].0[lane], matrix.bias[line].0[lane]));
        }
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    /// Includes the extremes: rows of 127 in columns of -127, at the largest width.
    #[test]
    fn every_kernel_multiplies_alike(rows in 1usize..20, width in 1usize..=WIDEST / PANEL, panels in 1usize..3, seed in any::<u64>()) {
        let width = width * PANEL;
        let mut random = random(seed);
        let rows: Vec<Vec<i8>> = (0..rows).map(|_| (0..width).map(|_| extreme(random())).collect()).collect();
        let scales: Vec<f32> = rows.iter().map(|_| random() as f32 / 1e10).collect();
        let matrix = matrix(width, panels, random);
        let expected = slow(&rows, &scales, &matrix);
        for kernel in Kernel::all() {
            let flip = if kernel.name.contains("vnni") { 0x80 } else { 0 };
            let bytes: Vec<u8> = rows.iter().flatten().map(|x| *x as u8 ^ flip).collect();
            let input = QuantizedRows {
                bytes: bytes.as_chunks().0.iter().map(|chunk| Chunk(*chunk)).collect(),
                scales: scales.clone(),
            };
            for epilogue in [Epilogue::Store, Epilogue::Add] {
                let before = if matches!(epilogue, Epilogue::Add) { 0.5 } else { f32::NAN };
                let mut out = vec![Line([before; LANES]); expected.len() / LANES];
                (kernel.linear)(&input, &matrix, epilogue, &mut out);
                for (i, expected) in expected.iter().enumerate() {
                    let expected = if matches!(epilogue, Epilogue::Add) { expected + 0.5 } else { *expected };
                    prop_assert_eq!(out[i / LANES].0[i % LANES].to_bits(), expected.to_bits(), "{} {}", kernel.name, i);
                }
            }
        }
    }

    /// Rows of large and small numbers, zeros, and numbers too small to be quantized.
    #[test]
    fn every_kernel_quantizes_alike(seed in any::<u64>(), loudness in -45f32..30.0) {
        let mut random = random(seed);
        let loudness = 10f32.powf(loudness);
        let rows: Vec<Line> =
            (0..3 * LINES).map(|_| Line([(); LANES].map(|()| (random() as f32 / 2e9 - 1.0) * loudness))).collect();
        let quantized = |kernel: Kernel| {
            let mut out = QuantizedRows::default();
            out.resize(3, LINES);
            (kernel.quantize)(&rows, LINES, None, &mut out);
            let flip = if kernel.name.contains("vnni") { 0x80 } else { 0 };
            let bytes: Vec<i8> = out.bytes.iter().flat_map(|chunk| chunk.0).map(|x| (x ^ flip) as i8).collect();
            (bytes, out.scales)
        };
        let (bytes, scales) = quantized(scalar::KERNEL);
        for (row, (bytes, scale)) in rows.chunks(LINES).zip(bytes.chunks(LINES * LANES).zip(&scales)) {
            prop_assert!(bytes.iter().all(|x| *x > -128));
            for (x, q) in row.iter().flat_map(|line| line.0).zip(bytes) {
                prop_assert!((x - f32::from(*q) * scale).abs() <= 0.5001 * scale.max(2e-30), "{} {} {}", x, q, scale);
            }
        }
        for kernel in Kernel::all() {
            prop_assert_eq!(&quantized(kernel), &(bytes.clone(), scales.clone()), "{}", kernel.name);
        }
    }
}

/// All lengths up to a line of keys, and some more: around a second and a fourth line, and the longest.
#[test]
fn every_kernel_gives_the_same_vectors() {
    let words = "the old mill by the river turns slowly while seven herons wait in reeds for fish 42 times";
    let words: Vec<&str> = words.split(' ').collect();
    let lengths = (0..18).chain([29, 30, 31, 46, 62, 63, 110, 254]);
    let texts: Vec<String> = lengths
        .map(|length| (0..length).map(|i| words[(i * i + length) % words.len()]).collect::<Vec<_>>().join(" "))
        .collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let plain = MiniLm::on(scalar::KERNEL).embed_batch(&texts, 2);
    assert!(plain.iter().flatten().all(|x| x.is_finite()));
    for kernel in Kernel::all() {
        let model = MiniLm::on(kernel);
        assert_eq!(model.embed_batch(&texts, 1), plain, "{}", kernel.name);
        assert_eq!(model.embed(texts[12]), plain[12], "{}", kernel.name);
    }
}

/// Widths and heads of models that are not bundled, and the bundled one's.
const SHAPES: [Shape; 4] = [
    Shape { lines: 4, inner_lines: 8, heads: 2 },
    Shape { lines: 12, inner_lines: 4, heads: 3 },
    Shape { lines: LINES, inner_lines: 4 * LINES, heads: 12 },
    Shape { lines: 48, inner_lines: 192, heads: 12 },
];

/// Numbers from -1 to 1, as lines.
fn lines(count: usize, random: &mut impl FnMut() -> u32) -> Vec<Line> {
    (0..count).map(|_| Line([(); LANES].map(|()| (f64::from(random()) / 2f64.powi(31) - 1.0) as f32))).collect()
}

fn numbers(lines: &[Line]) -> Vec<f64> {
    lines.iter().flat_map(|line| line.0).map(f64::from).collect()
}

fn bits(lines: &[Line]) -> Vec<u32> {
    lines.iter().flat_map(|line| line.0).map(f32::to_bits).collect()
}

fn assert_near(found: &[Line], expected: &[f64], what: &str) {
    assert_eq!(found.len() * LANES, expected.len(), "{what}");
    for (i, (found, expected)) in numbers(found).iter().zip(expected).enumerate() {
        assert!((found - expected).abs() < 1e-5, "{what}, {i}: {expected}, not {found}");
    }
}

/// The attention in double precision, in the simplest form.
fn slow_attention(text: &[f64], tokens: usize, width: usize, heads: usize) -> Vec<f64> {
    let head_width = width / heads;
    let mut out = vec![0.0; tokens * width];
    for head in 0..heads {
        let part = |token: usize, part: usize| &text[(3 * token + part) * width + head * head_width..][..head_width];
        for i in 0..tokens {
            let score = |j: usize| part(i, 0).iter().zip(part(j, 1)).map(|(q, k)| q * k).sum::<f64>();
            let shares: Vec<f64> = (0..tokens).map(|j| score(j).exp()).collect();
            let sum: f64 = shares.iter().sum();
            for d in 0..head_width {
                let mixed: f64 = shares.iter().enumerate().map(|(j, share)| share * part(j, 2)[d]).sum();
                out[i * width + head * head_width + d] = mixed / sum;
            }
        }
    }
    out
}

/// Tokens that fill no, one and several lines of keys and groups of queries. The longest text comes first, so that the
/// scratch has its remains.
#[test]
fn every_kernel_attends_in_every_shape() {
    for shape in SHAPES {
        let mut random = random(7);
        let mut texts: Vec<Vec<Line>> = Vec::new();
        for tokens in [MAX_TOKENS, 1, 7, 16, 33] {
            texts.push(lines(tokens * 3 * shape.lines, &mut random));
        }
        let attended = |kernel: Kernel| -> Vec<Vec<Line>> {
            let mut scratch = AttentionScratch::new();
            let out = |text: &Vec<Line>| {
                let mut out = vec![Line([f32::NAN; LANES]); text.len() / 3];
                (kernel.attend)(text, &shape, &mut scratch, &mut out);
                out
            };
            texts.iter().map(out).collect()
        };
        let plain = attended(scalar::KERNEL);
        for (text, found) in texts.iter().zip(&plain).skip(1) {
            let tokens = found.len() / shape.lines;
            let expected = slow_attention(&numbers(text), tokens, shape.lines * LANES, shape.heads);
            assert_near(found, &expected, &format!("{tokens} tokens, {shape:?}"));
        }
        for kernel in Kernel::all() {
            for (found, plain) in attended(kernel).iter().zip(&plain) {
                assert!(bits(found) == bits(plain), "{}, {shape:?}", kernel.name);
            }
        }
    }
}

#[test]
fn every_kernel_embeds_normalizes_and_pools_in_every_shape() {
    const WORDS: usize = 50;
    for Shape { lines: width, .. } in SHAPES {
        let mut random = random(8);
        let lengths = [5, 1, 9];
        let ids: Vec<u32> = (0..15).map(|_| random() % WORDS as u32).collect();
        let from = embeddings(WORDS, width, &mut random);
        let by = norm(width, &mut random);
        let mut sum = vec![0.0; ids.len() * width * LANES];
        let places = lengths.iter().flat_map(|length| 0..*length);
        for ((row, id), place) in sum.chunks_mut(width * LANES).zip(&ids).zip(places) {
            let id = *id as usize;
            for (i, x) in row.iter_mut().enumerate() {
                let (half, line) = (i / LANES / (width / 2), i / LANES % (width / 2));
                let word = from.words[half][id * (width / 2) + line][i % LANES];
                let place = from.positions[place * width + i / LANES].0[i % LANES];
                *x = f64::from(word) * f64::from(from.scales[id]) + f64::from(place);
            }
        }
        let mut normal = sum.clone();
        for row in normal.chunks_mut(width * LANES) {
            let count = row.len() as f64;
            let mean = row.iter().sum::<f64>() / count;
            let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
            for (x, (gain, bias)) in row.iter_mut().zip(numbers(by.gain).into_iter().zip(numbers(by.bias))) {
                *x = (*x - mean) / variance.sqrt() * gain + bias;
            }
        }
        let mut pooled = vec![0.0; width * LANES];
        for (i, x) in normal.iter().enumerate() {
            pooled[i % (width * LANES)] += x;
        }
        let length = pooled.iter().map(|x| x * x).sum::<f64>().sqrt();
        pooled.iter_mut().for_each(|x| *x /= length);

        let run = |kernel: Kernel| {
            let mut x = vec![Line([f32::NAN; LANES]); ids.len() * width];
            (kernel.embed)(&ids, &lengths, &from, &mut x);
            let embedded = x.clone();
            (kernel.norm)(&mut x, &by);
            let mut vector = vec![Line([f32::NAN; LANES]); width];
            (kernel.pool)(&x, &mut vector);
            [embedded, x, vector]
        };
        let plain = run(scalar::KERNEL);
        for (found, (expected, step)) in plain.iter().zip([(&sum, "embed"), (&normal, "norm"), (&pooled, "pool")]) {
            assert_near(found, expected, &format!("{step}, {width} lines"));
        }
        for kernel in Kernel::all() {
            for (found, plain) in run(kernel).iter().zip(&plain) {
                assert!(bits(found) == bits(plain), "{}, {width} lines", kernel.name);
            }
        }
    }
}

fn embeddings(words: usize, width: usize, random: &mut impl FnMut() -> u32) -> Embeddings<'static> {
    let mut half = || -> &'static [WordLine] {
        (0..words * width / 2).map(|_| [(); LANES].map(|()| extreme(random()))).collect::<Vec<_>>().leak()
    };
    let words_of = [half(), half()];
    Embeddings {
        words: words_of,
        scales: (0..words).map(|i| (i + 1) as f32 / 1e4).collect::<Vec<_>>().leak(),
        positions: lines(MAX_TOKENS * width, random).leak(),
    }
}

fn norm(width: usize, random: &mut impl FnMut() -> u32) -> Norm<'static> {
    Norm { gain: lines(width, random).leak(), bias: lines(width, random).leak(), epsilon: 1e-12 }
}

/// A model with random weights that keep its numbers small.
fn random_model(shape: Shape, layers: usize) -> Weights<'static> {
    let mut random = random(9);
    let random = &mut random;
    let linear = |from: usize, to: usize, random: &mut dyn FnMut() -> u32| Linear {
        scales: vec![Line([2e-4; LANES]); to].leak(),
        ..matrix(from * LANES, to * LANES / PANEL, random)
    };
    let mut layer = || {
        let smooth = |width: usize, random: &mut dyn FnMut() -> u32| {
            let mut random = random;
            SmoothQuant { multiplier: lines(width, &mut random).leak(), shift: lines(width, &mut random).leak() }
        };
        let Shape { lines: width, inner_lines: inner, .. } = shape;
        Layer {
            qkv: (smooth(width, random), linear(width, 3 * width, random)),
            attention_output: linear(width, width, random),
            attention_norm: norm(width, random),
            inner: (smooth(width, random), linear(width, inner, random)),
            outer: (smooth(inner, random), linear(inner, width, random)),
            output_norm: norm(width, random),
        }
    };
    let layers = (0..layers).map(|_| layer()).collect();
    Weights {
        shape,
        embeddings: embeddings(50, shape.lines, random),
        embedded: norm(shape.lines, random),
        layers,
        pooling: Pooling::Mean,
        dense: None,
        dimensions: shape.lines * LANES,
    }
}

#[test]
fn every_kernel_encodes_every_shape_alike() {
    let lengths = [40, 1, 17];
    let ids: Vec<u32> = (0..58).map(|i| i * 7 % 50).collect();
    for (shape, layers) in SHAPES.into_iter().zip([12, 2, 1, 1]) {
        let weights = random_model(shape, layers);
        let plain = encode(&scalar::KERNEL, &weights, &ids, &lengths, &mut Scratch::new());
        assert!(plain.iter().flatten().all(|x| x.is_finite()), "{shape:?}");
        for kernel in Kernel::all() {
            let scratch = &mut Scratch::new();
            assert_eq!(encode(&kernel, &weights, &ids, &lengths, scratch), plain, "{}, {shape:?}", kernel.name);
            let alone = encode(&kernel, &weights, &ids[41..], &lengths[2..], scratch);
            assert_eq!(alone[0], plain[2], "{}, {shape:?}", kernel.name);
        }
    }
}

#[test]
fn the_scalar_kernel_is_last() {
    let names: Vec<&str> = Kernel::all().map(|kernel| kernel.name).collect();
    assert_eq!(names.last(), Some(&"scalar"));
    assert_eq!(Kernel::best().name, names[0]);
}
