//! Tests: every kernel that this machine supports gives the same bits as the scalar one.

use proptest::prelude::*;

use super::*;
use crate::MiniLm;

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
fn matrix(width: usize, panels: usize, mut random: impl FnMut() -> u32) -> Linear {
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
    fn every_kernel_multiplies_alike(rows in 1usize..20, width in 1usize..=INNER / PANEL, panels in 1usize..3, seed in any::<u64>()) {
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
        for (row, (bytes, scale)) in rows.chunks(LINES).zip(bytes.chunks(WIDTH).zip(&scales)) {
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

#[test]
fn the_scalar_kernel_is_last() {
    let names: Vec<&str> = Kernel::all().map(|kernel| kernel.name).collect();
    assert_eq!(names.last(), Some(&"scalar"));
    assert_eq!(Kernel::best().name, names[0]);
}
