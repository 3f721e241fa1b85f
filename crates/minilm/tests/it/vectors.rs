//! The vectors are near those of the original model, and the same bits however and wherever they are asked for.

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use std::io::Write;
use std::sync::LazyLock;

use minilm::{DIMENSIONS, MiniLm};
use proptest::prelude::*;
use sha2::{Digest, Sha256};

static MODEL: LazyLock<MiniLm> = LazyLock::new(MiniLm::load);

fn texts() -> Vec<String> {
    serde_json::from_str(include_str!("../../testdata/texts.json")).unwrap()
}

/// Each text with the vector that the original weights give in double precision.
fn references() -> Vec<(String, Vec<f32>)> {
    let bytes = include_bytes!("../../testdata/reference.f32");
    let numbers: Vec<f32> = bytes.chunks_exact(4).map(|four| f32::from_le_bytes(four.try_into().unwrap())).collect();
    assert_eq!(numbers.len(), texts().len() * DIMENSIONS);
    texts().into_iter().zip(numbers.chunks_exact(DIMENSIONS).map(<[f32]>::to_vec)).collect()
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
}

fn check_near(references: &[(String, Vec<f32>)]) {
    let mut sum = 0.0;
    for (text, expected) in references {
        let vector = MODEL.embed(text);
        assert!((dot(&vector, &vector) - 1.0).abs() < 1e-5, "{text:?}");
        let cosine = dot(&vector, expected);
        assert!(cosine >= 0.98, "{cosine} for {text:?}");
        sum += cosine;
    }
    let mean = sum / references.len() as f64;
    assert!(mean >= 0.99, "mean cosine {mean}");
}

#[test]
fn near_the_original() {
    check_near(&references());
}

/// SHA-256 of the bits of the vectors, which are the same on every processor. It changes only with `ID`.
fn check_bits(texts: &[String], expected: &str) {
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let vectors = MODEL.embed_batch(&texts, 2);
    let bytes: Vec<u8> = vectors.iter().flatten().flat_map(|x| x.to_bits().to_le_bytes()).collect();
    let found: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(found, expected, "on {:?}", *MODEL);
}

#[test]
fn the_same_bits_everywhere() {
    check_bits(&texts(), "8a25cd1bddd847b79182059c2001e3bcfe7b73d863e54fb0e2f3309520e16c75");
}

/// The part of `the_same_bits_everywhere` that an emulated processor can bear.
#[test]
fn the_same_bits_briefly() {
    let mut texts = texts();
    texts.sort_by_key(String::len);
    texts.truncate(20);
    check_bits(&texts, "250c44d5b11a091d254d4843a60bc0f2662ee3046a5d6a2ebcc0a1e83bb923d7");
}

/// A processor without VNNI, and one without AVX2 and fused products: emulated, for nothing in the library
/// chooses the instructions. Needs `qemu-x86_64` (Debian: qemu-user) and says so where it is missing, but fails where
/// `MINILM_QEMU` names it.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
#[test]
fn the_same_bits_on_older_processors() {
    let named = std::env::var_os("MINILM_QEMU");
    let emulator = named.clone().unwrap_or_else(|| "qemu-x86_64".into());
    for processor in ["Haswell", "Nehalem"] {
        let run = std::process::Command::new(&emulator)
            .args(["-cpu", processor])
            .arg(std::env::current_exe().unwrap())
            .args(["vectors::the_same_bits_briefly", "--exact", "--test-threads=1"])
            .output();
        let output = match run {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && named.is_none() => {
                // Not by a macro: the output of a test that succeeds is kept back.
                let told = "left out: the_same_bits_on_older_processors, since there is no qemu-x86_64\n";
                return std::io::stderr().write_all(told.as_bytes()).unwrap();
            }
            run => run.unwrap(),
        };
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && told.contains("1 passed"), "{processor}: {told}\n{output:?}");
    }
}

#[test]
fn one_handle_serves_all_threads() {
    fn shared<T: Send + Sync>(_: &T) {}
    shared(&*MODEL);
}

#[test]
fn no_texts_no_vectors() {
    assert!(MODEL.embed_batch(&[], 2).is_empty());
}

#[test]
fn what_comes_after_the_limit_does_not_count() {
    let long = "note ".repeat(254);
    let longer = long.clone() + "and more";
    assert_eq!(MODEL.embed(&long), MODEL.embed(&longer));
    assert_ne!(MODEL.embed(&long), MODEL.embed(&long[5..]));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_vector_is_its_texts_alone(
        picks in prop::collection::vec(0usize..64, 0..20),
        extra in prop::collection::vec(any::<String>(), 0..4),
        threads in 0usize..5,
    ) {
        let known = texts();
        let mut batch: Vec<&str> = picks.iter().map(|pick| known[pick % known.len()].as_str()).collect();
        batch.extend(extra.iter().map(String::as_str));
        let together = MODEL.embed_batch(&batch, threads);
        prop_assert_eq!(together.len(), batch.len());
        for (text, vector) in batch.iter().zip(&together) {
            let alone = MODEL.embed(text);
            prop_assert_eq!(vector, &alone, "{:?}", text);
        }
    }
}
