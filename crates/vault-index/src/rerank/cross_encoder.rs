//! A cross-encoder on ONNX Runtime: `fastembed:NAME` and `onnx:DIR`.

use vault_models::CrossEncoder;

use super::Reranker;
use crate::error::Result;

impl Reranker for CrossEncoder {
    fn id(&self) -> &str {
        CrossEncoder::id(self)
    }

    fn score(&self, query: &str, passages: &[&str]) -> Result<Vec<f32>> {
        Ok(CrossEncoder::score(self, query, passages)?)
    }
}

#[test]
fn the_names_are_fastembeds() {
    assert_eq!(CrossEncoder::names(), super::RerankerName::FASTEMBED);
}
