//! The int8 vectors are near those of the original model, and the same however they are asked for.

use std::sync::LazyLock;

use minilm::{DIMENSIONS, MiniLm};
use proptest::prelude::*;

static MODEL: LazyLock<MiniLm> = LazyLock::new(|| MiniLm::load().unwrap());

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
        let vector = MODEL.embed(text).unwrap();
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

/// The part of `near_the_original` that an emulated processor can bear.
#[test]
fn near_the_original_briefly() {
    let mut references = references();
    references.sort_by_key(|(text, _)| text.len());
    references.truncate(20);
    check_near(&references);
}

/// A processor without VNNI, where sums of products could saturate: emulated,
/// for nothing in the library chooses the instructions. Needs `qemu-x86_64`
/// (Debian: qemu-user) and does nothing without it.
#[test]
fn near_the_original_without_vnni() {
    if !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        return;
    }
    let run = std::process::Command::new("qemu-x86_64")
        .args(["-cpu", "Haswell"])
        .arg(std::env::current_exe().unwrap())
        .args(["vectors::near_the_original_briefly", "--exact", "--test-threads=1"])
        .output();
    if let Ok(output) = run {
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && told.contains("1 passed"), "{told}\n{output:?}");
    }
}

#[test]
fn one_handle_serves_all_threads() {
    fn shared<T: Send + Sync>(_: &T) {}
    shared(&*MODEL);
}

#[test]
fn no_texts_no_vectors() {
    assert!(MODEL.embed_batch(&[], 2).unwrap().is_empty());
}

#[test]
fn what_comes_after_the_limit_does_not_count() {
    let long = "note ".repeat(254);
    let longer = long.clone() + "and more";
    assert_eq!(MODEL.embed(&long).unwrap(), MODEL.embed(&longer).unwrap());
    assert_ne!(MODEL.embed(&long).unwrap(), MODEL.embed(&long[5..]).unwrap());
}

/// The first calls run the weights as shipped, later ones laid out for the processor.
#[test]
fn early_and_late_calls_agree() {
    let fresh = MiniLm::load().unwrap();
    let texts = texts();
    for text in ["", "hello", &texts[50]] {
        let early = MiniLm::load().unwrap().embed(text).unwrap();
        let runs: Vec<_> = (0..6).map(|_| fresh.embed(text).unwrap()).collect();
        assert!(runs.iter().all(|late| *late == early), "{text:?}");
    }
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
        let together = MODEL.embed_batch(&batch, threads).unwrap();
        prop_assert_eq!(together.len(), batch.len());
        for (text, vector) in batch.iter().zip(&together) {
            let alone = MODEL.embed(text).unwrap();
            prop_assert_eq!(vector, &alone, "{:?}", text);
        }
    }
}
