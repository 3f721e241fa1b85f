//! Tests with a tiny model of our own on a real ONNX Runtime, if one is installed.

use super::*;
use crate::onnx::tests::{has_runtime, testdata};

fn tiny() -> PathBuf {
    testdata("tiny-onnx")
}

#[test]
fn a_model_of_ones_own() {
    if !has_runtime() {
        return;
    }
    let learned = folder(&tiny(), &LoadOptions::default()).unwrap();
    assert_eq!((learned.dimensions(), learned.max_tokens()), (16, 30));
    let given = folder(&tiny(), &LoadOptions { dimensions: Some(16), ..LoadOptions::default() }).unwrap();
    assert!(given.session.lock().unwrap().is_none(), "nothing is loaded before it is needed");
    given.embed(&["", " "], Role::Query).unwrap();
    assert!(given.session.lock().unwrap().is_none());

    let passages = ["apple branches in winter", "the bank and the interest rate", "salt the water and boil the pasta"];
    let queries = ["how do i prune trees", "money", "pasta sauce"];
    let passages_of = given.embed(&passages, Role::Passage).unwrap();
    let queries_of = learned.embed(&queries, Role::Query).unwrap();
    let cosine = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f32>();
    for (i, query) in queries_of.iter().enumerate() {
        assert!((cosine(query, query) - 1.0).abs() < 1e-5);
        for (j, passage) in passages_of.iter().enumerate() {
            assert_eq!(cosine(query, passage) > 0.6, i == j, "{} and {}", queries[i], passages[j]);
        }
    }
    let alone = given.embed(&passages[..1], Role::Passage).unwrap();
    let beside = given.embed(&["", passages[1], passages[0], "a"], Role::Passage).unwrap();
    assert_eq!(alone[0], beside[2], "the same bits, whatever stands beside it");
    assert_eq!(beside[0], [0.0; 16]);
    // 32 tokens are read, the rest is truncated.
    let long = "apple ".repeat(200);
    assert_eq!(
        given.embed(&[&long], Role::Query).unwrap(),
        given.embed(&[&(long.clone() + "bank")], Role::Query).unwrap()
    );

    let wrong = folder(&tiny(), &LoadOptions { dimensions: Some(8), ..LoadOptions::default() }).unwrap();
    assert!(wrong.embed(&["bank"], Role::Query).unwrap_err().to_string().contains("16 dimensions instead of 8"));
    assert!(named("NoSuchModel", &LoadOptions::default()).is_err());
}

#[test]
fn the_names_are_fastembeds() {
    let names = names();
    assert!(names.iter().any(|(name, dimensions, _)| name == "MultilingualE5Small" && *dimensions == 384));
    // The advice of `vault-index status`.
    assert!(crate::models::KnownModel::named(crate::embed::MULTILINGUAL).is_some());
    let error = |name| named(name, &LoadOptions::default()).err().unwrap().to_string();
    assert!(error("multilingual-e5-small").contains("did you mean `fastembed:MultilingualE5Small`?"));
    assert!(names.is_sorted() && names.iter().all(|(name, ..)| name.parse::<EmbeddingModel>().is_ok()));
}
