//! Texts of similar lengths to embed, with the words of a vault.

use std::collections::HashSet;
use std::io;
use std::path::Path;

use crate::random::Random;
use crate::words::learn;

/// Returns `count` different texts. Each gets sentences until `is_long_enough`.
///
/// Words are learned from the vault `source`. The same seed gives the same texts.
///
/// # Errors
/// If a note cannot be read, or the source has no words.
pub fn make_texts(
    source: &Path,
    count: usize,
    seed: u64,
    is_long_enough: impl Fn(&str) -> bool,
) -> io::Result<Vec<String>> {
    let chain = learn(source)?;
    let mut random = Random(seed);
    let mut seen = HashSet::new();
    let mut texts = Vec::with_capacity(count);
    while texts.len() < count {
        let mut text = String::new();
        while !is_long_enough(&text) {
            if !text.is_empty() {
                text.push(' ');
            }
            chain.sentence(&mut random, &mut text);
        }
        if seen.insert(text.clone()) {
            texts.push(text);
        }
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::demo_vault;

    #[test]
    fn as_many_as_asked_and_long_enough() {
        let make = |seed| make_texts(&demo_vault(), 20, seed, |text| text.len() >= 400).unwrap();
        let texts = make(1);
        assert_eq!(texts.len(), 20);
        assert!(texts.iter().all(|text| (400..800).contains(&text.len())));
        assert_eq!(texts, make(1));
        assert_ne!(texts, make(2));
    }
}
