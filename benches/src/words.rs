//! Generates sentences from a Markov chain of the word pairs in the notes of a vault.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::notes::notes_in;
use crate::random::Random;

/// The vault whose words are learned: the demo vault of the repository.
pub fn demo_vault() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/vaults/demo")
}

/// The words that begin a sentence, and the words that follow each word, with their frequencies as repetitions.
pub(crate) struct Chain {
    pub(crate) starts: Vec<String>,
    next: HashMap<String, Vec<String>>,
}

/// Learns from all notes below `source`.
///
/// # Errors
/// If a note cannot be read, or there are no words.
pub(crate) fn learn(source: &Path) -> io::Result<Chain> {
    let mut chain = Chain { starts: Vec::new(), next: HashMap::new() };
    for path in notes_in(source)? {
        let text = std::fs::read_to_string(path)?;
        let mut before: Option<&str> = None;
        for word in text.split_whitespace().filter(|w| w.chars().all(|c| c.is_alphabetic() || "',.;".contains(c))) {
            match before {
                Some(before) if !before.ends_with('.') => {
                    chain.next.entry(before.to_string()).or_default().push(word.to_string());
                }
                _ => chain.starts.push(word.to_string()),
            }
            before = Some(word);
        }
    }
    if chain.starts.is_empty() {
        return Err(io::Error::other(format!("{}: no words to learn from", source.display())));
    }
    Ok(chain)
}

impl Chain {
    /// Adds a sentence of at most 24 words.
    pub(crate) fn sentence(&self, random: &mut Random, out: &mut String) {
        let mut word = &self.starts[random.below(self.starts.len())];
        for _ in 0..24 {
            out.push_str(word);
            let Some(next) = self.next.get(word).filter(|_| !word.ends_with('.')) else { break };
            out.push(' ');
            word = &next[random.below(next.len())];
        }
        if !out.ends_with('.') {
            out.push('.');
        }
    }
}
