//! A model without meaning: words and their letter groups hashed into a short vector, for tests and as a template.
//!
//! A model of your own needs an id that changes with its vectors, its dimensions and window, [`TokenCount::count`]
//! (fast, without loading anything), and [`Embedder::embed`], whose vectors have unit length (`to_unit`) and do not
//! depend on the other texts of the call.

use super::{Embedder, Role, to_unit};
use crate::chunk::TokenCount;
use crate::error::Result;

const DIMENSIONS: usize = 64;
const MAX_TOKENS: usize = 254;
/// The number of letters of a word that count as one token.
const TOKEN_LETTERS: usize = 16;

/// An embedder that hashes words: texts that share words, or parts of words, have similar vectors.
///
/// Each word adds 1 to one dimension, and each three consecutive letters in it add one half. A hash of their lower case
/// chooses the dimension and the sign. The result is deterministic on every machine, does not model meaning, and takes
/// microseconds per text.
#[derive(Debug, Clone, Copy, Default)]
pub struct HashedEmbedder;

impl HashedEmbedder {
    /// Creates the embedder, which has no options.
    pub fn new() -> Self {
        Self
    }
}

impl TokenCount for HashedEmbedder {
    /// Every word counts one token for each started 16 letters; signs and white space do not count.
    fn count(&self, text: &str) -> usize {
        words(text).map(|word| word.chars().count().div_ceil(TOKEN_LETTERS)).sum()
    }
}

impl Embedder for HashedEmbedder {
    fn id(&self) -> &str {
        "hashed-64-v1"
    }

    fn dimensions(&self) -> usize {
        DIMENSIONS
    }

    fn max_tokens(&self) -> usize {
        MAX_TOKENS
    }

    fn embed(&self, texts: &[&str], _role: Role) -> Result<Vec<Vec<f32>>> {
        texts.iter().map(|text| to_unit(vector(text), DIMENSIONS)).collect()
    }
}

fn vector(text: &str) -> Vec<f32> {
    let mut vector = vec![0.0; DIMENSIONS];
    let mut add = |feature: &str, weight: f32| {
        let hash = fnv1a(feature.as_bytes());
        let sign = if hash >> 32 & 1 == 0 { 1.0 } else { -1.0 };
        vector[hash as usize % DIMENSIONS] += sign * weight;
    };
    let mut left = MAX_TOKENS;
    for word in words(text) {
        let tokens = word.chars().count().div_ceil(TOKEN_LETTERS);
        if tokens > left {
            break;
        }
        left -= tokens;
        let word = word.to_lowercase();
        add(&word, 1.0);
        let starts: Vec<usize> = word.char_indices().map(|(at, _)| at).chain([word.len()]).collect();
        for letters in starts.windows(4) {
            add(&word[letters[0]..letters[3]], 0.5);
        }
    }
    vector
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// The 64-bit hash FNV-1a (Fowler, Noll, Vo), mixed once more so that its low bits are well distributed.
fn fnv1a(bytes: &[u8]) -> u64 {
    let hash = bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    hash ^ hash >> 29
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cosine(a: &str, b: &str) -> f32 {
        let vectors = HashedEmbedder::new().embed(&[a, b], Role::Passage).unwrap();
        vectors[0].iter().zip(&vectors[1]).map(|(x, y)| x * y).sum()
    }

    #[test]
    fn shared_words_are_near() {
        let near = cosine("pruning apple trees", "how to prune an Apple tree");
        let far = cosine("pruning apple trees", "quarterly interest rates");
        assert!(near > far + 0.3, "{near} {far}");
        assert!((cosine("same text", "Same, text!") - 1.0).abs() < 1e-6);
    }

    #[test]
    fn vectors_are_the_same_everywhere_and_whatever_stands_beside() {
        let hashed = HashedEmbedder::new();
        let alone = hashed.embed(&["über den Garten"], Role::Query).unwrap();
        let beside = hashed.embed(&["x", "über den Garten"], Role::Passage).unwrap();
        assert_eq!(alone[0], beside[1]);
        assert_eq!(fnv1a(b"garden"), 0x7e37_c8da_9b77_dfff);
        assert_eq!(hashed.embed(&["", "--"], Role::Passage).unwrap(), vec![vec![0.0; 64]; 2]);
    }

    #[test]
    fn longer_texts_are_cut() {
        let long = "word ".repeat(MAX_TOKENS);
        assert_eq!(HashedEmbedder::new().count(&long), MAX_TOKENS);
        assert!((cosine(&long, &format!("{long} tail")) - 1.0).abs() < 1e-6);
        assert_eq!(HashedEmbedder::new().count(&"a".repeat(40)), 3);
    }
}
