//! The bundled model, all-MiniLM-L6-v2: counting tokens needs only its word list, embedding loads its weights once.

use std::sync::OnceLock;
use std::thread::available_parallelism;

use ::minilm::{DIMENSIONS, ID, MAX_TOKENS, MiniLm, WordPiece};

use super::{Embedder, Role};
use crate::chunk::TokenCount;
use crate::error::Result;

/// The least share of known words with which the model can read a text.
const LEAST_KNOWN: f32 = 0.5;

/// `[CLS]` and `[SEP]`.
const SPECIAL_TOKENS: usize = 2;

/// The bundled model. Creating one costs nothing.
#[derive(Debug, Default)]
pub(super) struct BundledModel {
    model: OnceLock<MiniLm>,
}

impl BundledModel {
    pub(super) fn new() -> Self {
        Self::default()
    }

    fn model(&self) -> &MiniLm {
        self.model.get_or_init(MiniLm::load)
    }
}

impl TokenCount for BundledModel {
    fn count(&self, text: &str) -> usize {
        WordPiece::bundled().count(text)
    }
}

impl Embedder for BundledModel {
    fn id(&self) -> &str {
        ID
    }

    fn dimensions(&self) -> usize {
        DIMENSIONS
    }

    fn max_tokens(&self) -> usize {
        MAX_TOKENS - SPECIAL_TOKENS
    }

    /// Embeds on all cores, one text per core. A passage that the model cannot read gets zeros, because its vectors for
    /// unknown words are close to those of any other unknown words.
    fn embed(&self, texts: &[&str], role: Role) -> Result<Vec<Vec<f32>>> {
        let threads = available_parallelism().map_or(1, |threads| threads.get());
        let is_read = |text: &&str| role == Role::Query || self.known_share(text) >= LEAST_KNOWN;
        let read: Vec<&str> = texts.iter().copied().filter(is_read).collect();
        let mut vectors = self.model().embed_batch(&read, threads).into_iter();
        let vector = |text| if is_read(text) { vectors.next() } else { None };
        Ok(texts.iter().map(vector).map(|vector| vector.unwrap_or_else(|| vec![0.0; DIMENSIONS])).collect())
    }

    /// Two per thread on common machines: one text takes some milliseconds, and a caller may want to stop.
    fn batch_size(&self) -> usize {
        16
    }

    fn is_english(&self) -> bool {
        true
    }

    fn known_share(&self, text: &str) -> f32 {
        WordPiece::bundled().known_share(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counting_loads_no_weights() {
        let bundled = BundledModel::new();
        assert_eq!(bundled.count("how to prune a tree"), 5 + bundled.count("prune") - 1);
        assert!(bundled.known_share("the garden") > 0.9);
        assert!(bundled.model.get().is_none());
    }

    #[test]
    fn a_passage_that_cannot_be_read_means_nothing() {
        let bundled = BundledModel::new();
        let texts = ["นกกระสายืนอยู่ในน้ำ", "A heron stands in the water.", "鷺は水の中に立っている"];
        let passages = bundled.embed(&texts, Role::Passage).unwrap();
        let is_zero = |vector: &Vec<f32>| vector.iter().all(|x| *x == 0.0);
        assert_eq!(passages.iter().map(is_zero).collect::<Vec<_>>(), [true, false, true]);
        assert_eq!(passages[1], bundled.embed(&texts[1..2], Role::Passage).unwrap()[0]);
        assert!(!is_zero(&bundled.embed(&texts[..1], Role::Query).unwrap()[0]));
    }

    #[test]
    fn meaning_is_near() {
        let bundled = BundledModel::new();
        let texts = ["Cut apple branches back in late winter.", "The bank raised its interest rate."];
        let query = &bundled.embed(&["how do I prune fruit trees"], Role::Query).unwrap()[0];
        let passages = bundled.embed(&texts, Role::Passage).unwrap();
        let cosine = |v: &[f32]| query.iter().zip(v).map(|(x, y)| x * y).sum::<f32>();
        assert!(cosine(&passages[0]) > cosine(&passages[1]) + 0.2);
        assert!((passages[0].iter().map(|x| x * x).sum::<f32>() - 1.0).abs() < 1e-5);
        assert_eq!(passages[0].len(), bundled.dimensions());
    }
}
